// The set of lines: sorted, so that a choice is found by halves and a file differs only where choices do.
#include "lock/lock.h"

#include "base/assert.h"
#include "base/buffer.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "base/text.h"

#include <string.h>

static const char create_where[] = "lock.create";
static const char append_where[] = "lock.append";
static const char put_where[] = "lock.put";
static const char put_store_where[] = "lock.put_store";

hone_status hone_lock_create(hone_allocator allocator, hone_lock **out, hone_error *err)
{
    if (out == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, create_where, "out is NULL: give it an address");
    allocator = hone_allocator_given(allocator);
    *out = hone_alloc(&allocator, sizeof **out);
    if (*out == NULL) return hone_fail_memory(err, create_where);
    (*out)->arena.allocator = allocator;
    return HONE_OK;
}

void hone_lock_release(hone_lock **lock)
{
    if (lock == NULL || *lock == NULL) return;
    hone_lock *last = *lock;
    *lock = NULL;
    hone_allocator allocator = last->arena.allocator;
    hone_free(&allocator, last->lines);
    hone_arena_destroy(&last->arena);
    hone_free(&allocator, last);
}

int hone_lock_line_compare(const hone_lock_line *a, const hone_lock_line *b)
{
    int order = strcmp(a->algorithm, b->algorithm);
    if (order == 0) order = strcmp(a->version, b->version);
    if (order == 0) order = strcmp(a->key, b->key);
    return order != 0 ? order : strcmp(a->device, b->device);
}

size_t hone_lock_size(const hone_lock *lock)
{
    return lock == NULL ? 0 : lock->count;
}

const hone_lock_line *hone_lock_at(const hone_lock *lock, size_t index)
{
    return index < hone_lock_size(lock) ? lock->lines[index] : NULL;
}

// Where a line stands or would stand.
static size_t place_of(const hone_lock *lock, const hone_lock_line *line, bool *out_there)
{
    size_t low = 0, high = lock->count;
    *out_there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = hone_lock_line_compare(lock->lines[middle], line);
        *out_there = *out_there || order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const hone_lock_line *hone_lock_find(
    const hone_lock *lock, const char *algorithm, const char *version, const char *key, const char *device)
{
    if (lock == NULL || algorithm == NULL || version == NULL || key == NULL || device == NULL) return NULL;
    const hone_lock_line wanted = {.algorithm = algorithm, .version = version, .key = key, .device = device};
    bool there;
    size_t place = place_of(lock, &wanted, &there);
    return there ? lock->lines[place] : NULL;
}

// Lines ---------------------------------------------------------------------------------------------------------------

static hone_status check_size(const char *name, const char *text, size_t limit, const char *where, hone_error *err)
{
    if (text == NULL || text[0] == '\0') return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%s is missing", name);
    if (limit == 0 || strlen(text) < limit) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "%s is '%.40s...', expected at most %zu bytes", name, text, limit - 1);
}

static hone_status check_key(const char *key, const char *where, hone_error *err)
{
    if (hone_is_key(key)) return HONE_OK;
    return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the key is '%.40s', expected 16 lower-case hex digits", key);
}

// Names are looked for in lower case: a line with another form would never be found.
static hone_status check_lower(const char *algorithm, const char *where, hone_error *err)
{
    hone_buffer lower;
    hone_buffer_init(&lower, hone_allocator_system());
    hone_text_lower(&lower, algorithm, strlen(algorithm));
    hone_status status = lower.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK && strcmp(hone_buffer_string(&lower), algorithm) != 0)
        status = hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the algorithm is '%.40s', expected its name in lower case, '%.40s'",
            algorithm, hone_buffer_string(&lower));
    hone_buffer_deinit(&lower);
    return status;
}

static hone_status check_platform(const char *platform, const char *where, hone_error *err)
{
    if (strchr(platform, '/') == NULL) return HONE_OK;
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, where, "the platform is '%.40s', expected a name without '/'", platform);
}

hone_status hone_lock_line_check(const hone_lock_line *line, const char *where, hone_error *err)
{
    const struct {
        const char *name, *text;
        size_t limit; // 0: none
    } fields[] = {
        {"the algorithm", line->algorithm, HONE_NAME_SIZE},
        {"the version", line->version, HONE_LOCK_VERSION_SIZE},
        {"the key", line->key, 0},
        {"the device", line->device, 0},
        {"the platform", line->platform, HONE_NAME_SIZE},
        {"the kernel", line->kernel, HONE_NAME_SIZE},
        {"the revision", line->revision == NULL ? "1" : line->revision, 0},
    };
    hone_status status = HONE_OK;
    for (size_t i = 0; i < sizeof fields / sizeof *fields && status == HONE_OK; i++)
        status = check_size(fields[i].name, fields[i].text, fields[i].limit, where, err);
    if (status == HONE_OK) status = check_lower(line->algorithm, where, err);
    if (status == HONE_OK) status = check_key(line->key, where, err);
    return status == HONE_OK ? check_platform(line->platform, where, err) : status;
}

// Puts a text at *at, which moves behind it; NULL stays NULL.
static const char *put_text(char **at, const char *text)
{
    if (text == NULL) return NULL;
    char *start = *at;
    *at = stpcpy(start, text) + 1;
    return start;
}

static size_t text_size(const char *text)
{
    return text == NULL ? 0 : strlen(text) + 1;
}

// A line and its texts in one block: a file of many short lines takes little more than its size.
static hone_lock_line *copy_texts(hone_arena *arena, const hone_lock_line *line)
{
    size_t size = text_size(line->algorithm) + text_size(line->version) + text_size(line->key) +
                  text_size(line->device) + text_size(line->platform) + text_size(line->kernel) +
                  text_size(line->config) + text_size(line->config_text) + text_size(line->call) +
                  text_size(line->revision);
    hone_lock_line *out = hone_arena_alloc(arena, sizeof *out + size);
    if (out == NULL) return NULL;
    char *at = (char *)(out + 1);
    *out = (hone_lock_line){
        .algorithm = put_text(&at, line->algorithm),
        .version = put_text(&at, line->version),
        .key = put_text(&at, line->key),
        .device = put_text(&at, line->device),
        .platform = put_text(&at, line->platform),
        .kernel = put_text(&at, line->kernel),
        .config = put_text(&at, line->config),
        .config_text = put_text(&at, line->config_text),
        .call = put_text(&at, line->call),
        .revision = put_text(&at, line->revision),
        .number = line->number,
    };
    return out;
}

static hone_lock_line *copy_line(hone_arena *arena, const hone_lock_line *line, const json_t *config)
{
    hone_buffer text, json;
    hone_buffer_init(&text, arena->allocator);
    hone_buffer_init(&json, arena->allocator);
    hone_lock_config_text(config, &text);
    hone_lock_config_json(config, &json);
    hone_lock_line whole = *line;
    whole.config_text = hone_buffer_string(&text);
    whole.config = hone_buffer_string(&json);
    hone_lock_line *out = text.failed || json.failed ? NULL : copy_texts(arena, &whole);
    hone_buffer_deinit(&text);
    hone_buffer_deinit(&json);
    return out;
}

static bool make_room(hone_lock *lock)
{
    return hone_grow(&lock->arena.allocator, &lock->lines, &lock->capacity, lock->count + 1, sizeof *lock->lines);
}

hone_status hone_lock_append(hone_lock *lock, const hone_lock_line *line, const json_t *config, hone_error *err)
{
    hone_lock_line *copied = make_room(lock) ? copy_line(&lock->arena, line, config) : NULL;
    if (copied == NULL) return hone_fail_memory(err, append_where);
    lock->lines[lock->count++] = copied;
    return HONE_OK;
}

static hone_status insert(hone_lock *lock, const hone_lock_line *line, const json_t *config, hone_error *err)
{
    bool there;
    size_t place = place_of(lock, line, &there);
    hone_lock_line *copied = make_room(lock) ? copy_line(&lock->arena, line, config) : NULL;
    if (copied == NULL) return hone_fail_memory(err, put_where);
    hone_lock_line **at = &lock->lines[place];
    hone_assert(place == 0 || hone_lock_line_compare(lock->lines[place - 1], line) < 0);
    if (!there) memmove(at + 1, at, (lock->count++ - place) * sizeof *at);
    *at = copied;
    return HONE_OK;
}

// Checks a whole line. *out_config is a new reference.
static hone_status read_line(const hone_lock_line *line, json_t **out_config, hone_error *err)
{
    hone_status status = hone_lock_line_check(line, put_where, err);
    if (status != HONE_OK) return status;
    const char *json = line->config == NULL || line->config[0] == '\0' ? "{}" : line->config;
    *out_config = NULL;
    status = hone_json_parse(json, strlen(json), out_config, err);
    if (status == HONE_CORRUPT)
        status =
            hone_fail(err, HONE_INVALID_ARGUMENT, put_where, "the config is '%.60s', expected a JSON object", json);
    return status == HONE_OK ? hone_lock_config_check(*out_config, put_where, err) : status;
}

static hone_status lock_put_known(hone_lock *lock, const hone_lock_line *line, hone_error *err)
{
    if (lock == NULL || line == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, put_where, "the lock and the line must not be NULL");
    json_t *config = NULL;
    hone_status status = read_line(line, &config, err);
    if (status == HONE_OK) status = insert(lock, line, config, err);
    json_decref(config);
    return status;
}

hone_status hone_lock_put_sized(hone_lock *lock, const hone_lock_line *line, size_t size, hone_error *err)
{
    hone_structs taken;
    hone_status status = hone_structs_take(&taken, line, 1, size, sizeof *line, "hone_lock_line", put_where, err);
    if (status == HONE_OK) status = lock_put_known(lock, taken.items, err);
    hone_structs_drop(&taken);
    return status;
}

// From a store --------------------------------------------------------------------------------------------------------

typedef struct collector {
    hone_lock *lock;
    bool (*accept)(void *ctx, const hone_store_decision *decision);
    void *ctx;
    hone_buffer last, current; // the four texts of a line's key, each with its NUL
    hone_status status;
    hone_error *err;
} collector;

static void put_key(hone_buffer *out, const hone_store_key *key)
{
    const char *const texts[] = {key->device, key->algorithm, key->version, key->key};
    hone_buffer_clear(out);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        hone_buffer_append(out, texts[i], strlen(texts[i]) + 1);
}

// A store visits what it knows of one call one after the other, warm first: the first is what it answers with.
static bool is_first(collector *c, const hone_store_key *key)
{
    put_key(&c->current, key);
    bool first = c->current.size != c->last.size || memcmp(c->current.data, c->last.data, c->last.size) != 0;
    hone_buffer swap = c->last;
    c->last = c->current;
    c->current = swap;
    if (c->last.failed) c->status = hone_fail_memory(c->err, put_store_where);
    return first && c->status == HONE_OK;
}

// Borrows its texts.
static hone_lock_line line_of(const hone_store_decision *decision)
{
    return (hone_lock_line){
        .algorithm = decision->key.algorithm,
        .version = decision->key.version,
        .key = decision->key.key,
        .device = decision->key.device,
        .platform = decision->platform,
        .kernel = decision->kernel,
        .config = decision->config,
        .call = decision->call,
        .revision = decision->revision,
    };
}

static bool collect(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *decision = record->decision;
    collector *c = ctx;
    const hone_lock_line line = line_of(decision);
    if (!is_first(c, &decision->key)) return c->status == HONE_OK;
    if (c->accept != NULL && !c->accept(c->ctx, decision)) return true;
    c->status = hone_lock_put(c->lock, &line, c->err);
    if (c->status != HONE_OK)
        c->status = hone_fail_prefix(
            c->err, c->status, "the stored choice for %s@v%s %s", line.algorithm, line.version, line.key);
    return c->status == HONE_OK;
}

hone_status hone_lock_put_store(
    hone_lock *lock,
    hone_store *store,
    const hone_store_key *filter,
    bool (*accept)(void *ctx, const hone_store_decision *decision),
    void *ctx,
    hone_error *err)
{
    if (lock == NULL || store == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, put_store_where, "the lock and the store must not be NULL");
    collector c = {.lock = lock, .accept = accept, .ctx = ctx, .status = HONE_OK, .err = err};
    hone_buffer_init(&c.last, lock->arena.allocator);
    hone_buffer_init(&c.current, lock->arena.allocator);
    hone_status status = hone_store_scan(store, HONE_RECORD_DECISION, filter, collect, &c, err);
    hone_buffer_deinit(&c.last);
    hone_buffer_deinit(&c.current);
    return c.status != HONE_OK ? c.status : status;
}

// Comparing -----------------------------------------------------------------------------------------------------------

// A revision that is not known is any.
static bool same_choice(const hone_lock_line *a, const hone_lock_line *b)
{
    const bool same_revision = a->revision == NULL || b->revision == NULL || strcmp(a->revision, b->revision) == 0;
    return same_revision && strcmp(a->platform, b->platform) == 0 && strcmp(a->kernel, b->kernel) == 0 &&
           strcmp(a->config, b->config) == 0;
}

// Two sorted lists walked side by side: the lesser of the two heads has no partner, equal heads are compared. Each line
// is looked at once.
hone_status hone_lock_compare(
    const hone_lock *before,
    const hone_lock *after,
    bool (*visit)(void *ctx, const hone_lock_change *change),
    void *ctx,
    hone_error *err)
{
    if (visit == NULL) return hone_fail(err, HONE_INVALID_ARGUMENT, "lock.compare", "visit is NULL");
    size_t i = 0, j = 0;
    while (i < hone_lock_size(before) || j < hone_lock_size(after)) {
        const hone_lock_line *a = i < hone_lock_size(before) ? before->lines[i] : NULL;
        const hone_lock_line *b = j < hone_lock_size(after) ? after->lines[j] : NULL;
        int order = a == NULL ? 1 : b == NULL ? -1 : hone_lock_line_compare(a, b);
        i += order <= 0;
        j += order >= 0;
        if (order == 0 && same_choice(a, b)) continue;
        const hone_lock_change change = {.before = order <= 0 ? a : NULL, .after = order >= 0 ? b : NULL};
        if (!visit(ctx, &change)) break;
    }
    return HONE_OK;
}
