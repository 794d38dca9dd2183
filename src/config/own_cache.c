// Caches of a program's own, in memory or as rows of a store, and the overlays before them.
#include "config/own_values.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/json_text.h"
#include "base/structs.h"
#include "call/ejkernel.h"
#include "os/mutex.h"
#include "store/records.h"

#include <stdatomic.h>
#include <string.h>

static const char open_where[] = "own_cache.open";
static const char get_where[] = "own_cache.get";
static const char put_where[] = "own_cache.put";
static const char keys_where[] = "own_cache.keys";
static const char derive_where[] = "own_overlay.derive";

struct hone_own_cache {
    hone_own_cache_options options; // name, url and store are not read behind open
    hone_allocator allocator;
    char *scheme,
        *file; // of its rows in a store, and of the file of ejkernel's that may have been imported; NULL: in memory
    hone_store *store; // NULL: in memory
    bool closes_store;
    hone_mutex mutex; // values
    hone_own_values values;
};

struct hone_own_overlay {
    atomic_size_t references;
    hone_own_overlay *parent; // retained
    hone_own_values values;
};

static _Thread_local hone_own_overlay *current_overlay __attribute__((tls_model("initial-exec")));

// Texts ---------------------------------------------------------------------------------------------------------------

static hone_status check_text(const char *name, const char *text, const char *where, hone_error *err)
{
    if (text == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is NULL", name);
    if (hone_text_is_utf8(text, strlen(text))) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is not UTF-8: '%.60s'", name, text);
}

static hone_status check_key(const hone_own_value *value, const char *where, hone_error *err)
{
    if (value == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the key is NULL");
    hone_status status = check_text("device", value->device, where, err);
    if (status == HONE_OK) status = check_text("operation", value->operation, where, err);
    return status == HONE_OK ? check_text("key", value->key, where, err) : status;
}

static hone_status check_value(const hone_own_value *value, const char *where, hone_error *err)
{
    hone_view ignored;
    hone_error why = {.message = ""};
    hone_status status = check_key(value, where, err);
    if (status != HONE_OK) return status;
    if (value->json == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "json is NULL");
    const hone_view text = {value->json, strlen(value->json)};
    if (hone_json_text_check(text, HONE_JSON_PYTHON, &ignored, &why) == HONE_OK) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "the value of %.60s %.60s: %s", value->operation, value->key, why.message);
}

// Stores take no empty text. What begins with a backslash stands for another: different texts stay different.
static void append_plain(hone_buffer *out, const char *text)
{
    if (text[0] != '\0' && text[0] != '\\') {
        hone_buffer_text(out, text);
        return;
    }
    hone_buffer_char(out, '\\');
    hone_json_string(out, text, strlen(text));
}

// The other way; what is not one of these stays as it is.
static const char *read_plain(hone_buffer *out, const char *text)
{
    hone_buffer_clear(out);
    const hone_view rest = {text + 1, strlen(text) - (text[0] != '\0')};
    hone_view ignored;
    if (text[0] != '\\' || hone_json_text_check(rest, HONE_JSON_STRICT, &ignored, NULL) != HONE_OK ||
        !hone_json_is_string(rest) || !hone_json_decode(rest, out))
        return text;
    return hone_buffer_string(out);
}

// A value's row in a store.
typedef struct row {
    hone_buffer device, operation, key;
    hone_store_foreign foreign;
} row;

static hone_status make_row(
    const hone_own_cache *cache, const hone_own_value *value, row *out, const char *where, hone_error *err)
{
    const char *const texts[] = {value->device, value->operation, value->key};
    hone_buffer *const buffers[] = {&out->device, &out->operation, &out->key};
    bool failed = false;
    for (int i = 0; i < 3; i++) {
        hone_buffer_init(buffers[i], cache->allocator);
        append_plain(buffers[i], texts[i]);
        failed = failed || buffers[i]->failed;
    }
    out->foreign = (hone_store_foreign){
        .scheme = cache->scheme,
        .device = hone_buffer_string(&out->device),
        .operation = hone_buffer_string(&out->operation),
        .foreign_key = hone_buffer_string(&out->key),
        .text = value->json,
    };
    return failed ? hone_fail_memory(err, where) : HONE_OK;
}

static void free_row(row *r)
{
    hone_buffer_deinit(&r->device);
    hone_buffer_deinit(&r->operation);
    hone_buffer_deinit(&r->key);
}

// Opening -------------------------------------------------------------------------------------------------------------

static hone_status check_options(const hone_own_cache_options *options, hone_error *err)
{
    const bool is_stored = options->url != NULL || options->store != NULL;
    if (options->url != NULL && options->store != NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "both url and store are given: one is the place");
    if (is_stored && options->name == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "name is NULL: a cache in a store needs one");
    if (options->name == NULL) return HONE_OK;
    const size_t size = strlen(options->name);
    if (hone_text_control(options->name, size) < size || !hone_text_is_utf8(options->name, size))
        return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "name is not printable UTF-8: '%.60s'", options->name);
    return HONE_OK;
}

static char *join(const hone_allocator *allocator, const char *before, const char *name, const char *behind)
{
    hone_buffer out;
    hone_buffer_init(&out, *allocator);
    hone_buffer_text(&out, before);
    if (before[0] != '\0' && name[0] == '\\')
        append_plain(&out, name);
    else
        hone_buffer_text(&out, name);
    hone_buffer_text(&out, behind);
    return hone_buffer_take(&out);
}

static hone_status open_store(hone_own_cache *cache, const hone_own_cache_options *options, hone_error *err)
{
    cache->store = options->store;
    if (options->url == NULL && options->store == NULL) return HONE_OK;
    cache->scheme = join(&cache->allocator, "cache:", options->name, "");
    cache->file = join(&cache->allocator, "", options->name, ".json");
    if (cache->scheme == NULL || cache->file == NULL) return hone_fail_memory(err, open_where);
    cache->closes_store = options->url != NULL;
    return options->url != NULL ? hone_store_open(options->allocator, options->url, &cache->store, err) : HONE_OK;
}

hone_status hone_own_cache_open(const hone_own_cache_options *options, hone_own_cache **out, hone_error *err)
{
    hone_own_cache_options read = {.struct_size = sizeof read};
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, open_where, "out is NULL");
    *out = NULL;
    hone_status status = HONE_OK;
    if (options != NULL)
        status = hone_struct_copy(
            &read, sizeof read, options, options->struct_size, "hone_own_cache_options", open_where, err);
    if (status == HONE_OK) status = check_options(&read, err);
    if (status != HONE_OK) return status;
    const hone_allocator allocator = hone_allocator_given(read.allocator);
    hone_own_cache *cache = hone_alloc(&allocator, sizeof *cache);
    if (cache == NULL) return hone_fail_memory(err, open_where);
    cache->options = read;
    cache->allocator = cache->values.allocator = allocator;
    hone_mutex_init(&cache->mutex);
    status = open_store(cache, &read, err);
    if (status == HONE_OK)
        *out = cache;
    else
        hone_own_cache_close(&cache);
    return status;
}

void hone_own_cache_close(hone_own_cache **cache_pointer)
{
    if (cache_pointer == NULL) return;
    hone_own_cache *cache = *cache_pointer;
    *cache_pointer = NULL;
    if (cache == NULL) return;
    if (cache->closes_store && cache->store != NULL) hone_store_close(&cache->store);
    hone_own_values_deinit(&cache->values);
    hone_mutex_deinit(&cache->mutex);
    hone_free(&cache->allocator, cache->scheme);
    hone_free(&cache->allocator, cache->file);
    hone_free(&cache->allocator, cache);
}

// Overlays ------------------------------------------------------------------------------------------------------------

static hone_own_overlay *overlay_retain(hone_own_overlay *overlay)
{
    if (overlay != NULL) atomic_fetch_add_explicit(&overlay->references, 1, memory_order_relaxed);
    return overlay;
}

hone_status hone_own_overlay_derive(
    hone_allocator allocator,
    hone_own_overlay *parent,
    const hone_own_value *values,
    size_t count,
    hone_own_overlay **out,
    hone_error *err)
{
    if (out == NULL || (values == NULL && count > 0))
        return hone_fail(err, HONE_INVALID_ARGUMENT, derive_where, "the values and out must not be NULL");
    *out = NULL;
    allocator = hone_allocator_given(allocator);
    hone_own_overlay *overlay = hone_alloc(&allocator, sizeof *overlay);
    if (overlay == NULL) return hone_fail_memory(err, derive_where);
    atomic_init(&overlay->references, 1);
    overlay->values.allocator = allocator;
    overlay->parent = overlay_retain(parent);
    hone_status status = HONE_OK;
    for (size_t i = 0; i < count && status == HONE_OK; i++) {
        status = check_value(&values[i], derive_where, err);
        if (status == HONE_OK && !hone_own_values_put(&overlay->values, &values[i]))
            status = hone_fail_memory(err, derive_where);
    }
    if (status == HONE_OK)
        *out = overlay;
    else
        hone_own_overlay_release(&overlay);
    return status;
}

void hone_own_overlay_release(hone_own_overlay **overlay_pointer)
{
    if (overlay_pointer == NULL) return;
    hone_own_overlay *overlay = *overlay_pointer;
    *overlay_pointer = NULL;
    while (overlay != NULL && atomic_fetch_sub_explicit(&overlay->references, 1, memory_order_acq_rel) == 1) {
        hone_own_overlay *parent = overlay->parent;
        const hone_allocator allocator = overlay->values.allocator;
        hone_own_values_deinit(&overlay->values);
        hone_free(&allocator, overlay);
        overlay = parent;
    }
}

hone_own_overlay *hone_own_overlay_enter(hone_own_overlay *overlay)
{
    hone_own_overlay *previous = current_overlay;
    current_overlay = overlay;
    return previous;
}

static const hone_own_row *find_overlaid(const hone_own_value *key)
{
    const hone_own_row *found = NULL;
    for (const hone_own_overlay *overlay = current_overlay; overlay != NULL && found == NULL; overlay = overlay->parent)
        found = hone_own_values_get(&overlay->values, key);
    return found;
}

// Getting and putting -------------------------------------------------------------------------------------------------

static char *copy_for_caller(const char *json)
{
    const hone_allocator system = hone_allocator_system(); // hone_text_release's
    return hone_copy_text(&system, json, strlen(json));
}

typedef struct looking {
    const char *file; // the only origin that counts; NULL: any
    char *json;
    bool found;
} looking;

static bool visit_row(void *ctx, const hone_store_record *record)
{
    const hone_store_foreign *foreign = record->foreign;
    looking *l = ctx;
    if (l->file != NULL) {
        const char *slash = foreign->origin != NULL ? strrchr(foreign->origin, '/') : NULL;
        const char *name = slash != NULL ? slash + 1 : foreign->origin;
        if (name == NULL || strcmp(name, l->file) != 0) return true;
    }
    l->found = true;
    l->json = copy_for_caller(foreign->text);
    return true;
}

// What the program put, else what was imported from ejkernel's file of the cache's name.
static hone_status get_stored(hone_own_cache *cache, const hone_own_value *key, looking *l, hone_error *err)
{
    row r;
    hone_status status = make_row(cache, key, &r, get_where, err);
    hone_store_key stored = hone_store_foreign_key(&r.foreign);
    if (status == HONE_OK)
        status = hone_store_get(cache->store, HONE_RECORD_FOREIGN, &stored, HONE_WARM, visit_row, l, err);
    if (status == HONE_NOT_FOUND) {
        l->file = cache->file;
        stored.version = "ejkernel";
        status = hone_store_get(cache->store, HONE_RECORD_FOREIGN, &stored, HONE_WARM, visit_row, l, err);
    }
    free_row(&r);
    return status;
}

static hone_status get_in_memory(hone_own_cache *cache, const hone_own_value *key, looking *l)
{
    hone_mutex_lock(&cache->mutex);
    const hone_own_row *found = hone_own_values_get(&cache->values, key);
    l->found = found != NULL;
    if (found != NULL) l->json = copy_for_caller(found->json);
    hone_mutex_unlock(&cache->mutex);
    return found != NULL ? HONE_OK : HONE_NOT_FOUND;
}

hone_status hone_own_cache_get(hone_own_cache *cache, const hone_own_value *key, char **out_json, hone_error *err)
{
    looking l = {.found = false};
    if (cache == NULL || out_json == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, get_where, "the cache and out_json must not be NULL");
    *out_json = NULL;
    hone_status status = check_key(key, get_where, err);
    if (status != HONE_OK) return status;
    const hone_own_row *overlaid = cache->options.no_overlays ? NULL : find_overlaid(key);
    if (overlaid != NULL) {
        l.found = true;
        l.json = copy_for_caller(overlaid->json);
    } else {
        status = cache->store != NULL ? get_stored(cache, key, &l, err) : get_in_memory(cache, key, &l);
    }
    if (status == HONE_NOT_FOUND || (status == HONE_OK && !l.found))
        return hone_fail(
            err, HONE_NOT_FOUND, get_where, "no value of %.60s for key %.60s on %.60s", key->operation, key->key,
            key->device);
    if (status == HONE_OK && l.json == NULL) return hone_fail_memory(err, get_where);
    *out_json = l.json;
    return status;
}

static hone_status put_stored(hone_own_cache *cache, const hone_own_value *value, hone_error *err)
{
    row r;
    hone_status status = make_row(cache, value, &r, put_where, err);
    if (status == HONE_OK) status = hone_store_put_foreign(cache->store, &r.foreign, 1, err);
    free_row(&r);
    return status;
}

hone_status hone_own_cache_put(hone_own_cache *cache, const hone_own_value *value, hone_error *err)
{
    if (cache == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, put_where, "the cache is NULL");
    hone_status status = check_value(value, put_where, err);
    if (status != HONE_OK) return status;
    if (cache->store != NULL) return put_stored(cache, value, err);
    hone_mutex_lock(&cache->mutex);
    const bool is_put = hone_own_values_put(&cache->values, value);
    hone_mutex_unlock(&cache->mutex);
    return is_put ? HONE_OK : hone_fail_memory(err, put_where);
}

// All of it -----------------------------------------------------------------------------------------------------------

typedef struct listing {
    bool (*visit)(void *ctx, const hone_own_value *value);
    void *ctx;
    hone_buffer device, operation, key;
} listing;

static bool visit_stored(void *ctx, const hone_store_foreign *foreign)
{
    listing *l = ctx;
    const char *device = foreign->device != NULL ? foreign->device : "";
    const hone_own_value value = {
        .device = read_plain(&l->device, device),
        .operation = read_plain(&l->operation, foreign->operation),
        .key = read_plain(&l->key, foreign->foreign_key)};
    return l->visit(l->ctx, &value);
}

static hone_status list_stored(hone_own_cache *cache, listing *l, hone_error *err)
{
    hone_buffer *const buffers[] = {&l->device, &l->operation, &l->key};
    bool failed = false;
    for (int i = 0; i < 3; i++)
        hone_buffer_init(buffers[i], cache->allocator);
    hone_status status = hone_store_foreigns(cache->store, cache->scheme, visit_stored, l, err);
    for (int i = 0; i < 3; i++) {
        failed = failed || buffers[i]->failed;
        hone_buffer_deinit(buffers[i]);
    }
    return status == HONE_OK && failed ? hone_fail_memory(err, keys_where) : status;
}

static void list_in_memory(hone_own_cache *cache, const listing *l)
{
    hone_mutex_lock(&cache->mutex);
    for (size_t i = 0; i < cache->values.count; i++) {
        const hone_own_row *one = &cache->values.rows[i];
        const hone_own_value value = {.device = one->device, .operation = one->operation, .key = one->key};
        if (!l->visit(l->ctx, &value)) break;
    }
    hone_mutex_unlock(&cache->mutex);
}

hone_status hone_own_cache_keys(
    hone_own_cache *cache, bool (*visit)(void *ctx, const hone_own_value *value), void *ctx, hone_error *err)
{
    listing l = {.visit = visit, .ctx = ctx};
    if (cache == NULL || visit == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, keys_where, "the cache and visit must not be NULL");
    if (cache->store != NULL) return list_stored(cache, &l, err);
    list_in_memory(cache, &l);
    return HONE_OK;
}

static bool count_key(void *ctx, const hone_own_value *value)
{
    (void)value;
    ++*(size_t *)ctx;
    return true;
}

hone_status hone_own_cache_size(hone_own_cache *cache, size_t *out, hone_error *err)
{
    size_t count = 0;
    hone_status status = hone_own_cache_keys(cache, count_key, &count, err);
    if (status == HONE_OK) *out = count;
    return status;
}

hone_status hone_own_cache_clear(hone_own_cache *cache, hone_error *err)
{
    static const char where[] = "own_cache.clear";
    if (cache == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the cache is NULL");
    if (cache->store != NULL) return hone_store_clear_foreigns(cache->store, cache->scheme, err);
    hone_mutex_lock(&cache->mutex);
    hone_own_values_clear(&cache->values);
    hone_mutex_unlock(&cache->mutex);
    return HONE_OK;
}

// Keys ----------------------------------------------------------------------------------------------------------------

static hone_status key_of_json(
    const hone_own_cache *cache, const char *text, char out[HONE_KEY_SIZE], const char *where, hone_error *err)
{
    hone_buffer canonical;
    json_t *value = NULL;
    hone_error why = {.message = ""};
    hone_status status = hone_json_parse(text, strlen(text), &value, &why);
    if (status == HONE_CORRUPT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "what the key is made of, '%.60s': %s", text, why.message);
    if (status != HONE_OK) return hone_fail_memory(err, where);
    hone_buffer_init(&canonical, cache->allocator);
    hone_json_canonical(&canonical, value);
    hone_hash_key(hone_buffer_string(&canonical), canonical.size, out);
    if (canonical.failed) status = hone_fail_memory(err, where);
    json_decref(value);
    hone_buffer_deinit(&canonical);
    return status;
}

hone_status hone_own_cache_make_key(
    const hone_own_cache *cache, const void *what, char *out, size_t size, hone_error *err)
{
    static const char where[] = "own_cache.make_key";
    char key[HONE_KEY_SIZE];
    if (cache == NULL || what == NULL || out == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the cache, what and out must not be NULL");
    if (cache->options.make_key != NULL)
        return cache->options.make_key(cache->options.make_key_ctx, what, out, size, err);
    if (size < sizeof key)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "out has %zu bytes, and a key takes %zu", size, sizeof key);
    hone_status status = key_of_json(cache, what, key, where, err);
    if (status == HONE_OK) memcpy(out, key, sizeof key);
    return status;
}
