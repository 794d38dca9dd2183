// What an import has read so far: checked, copied, and kept with a line for each entry.
#include "interchange/importer.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "hone/describe.h"

#include <math.h>
#include <string.h>

static const char where[] = "interchange.import";

// Opening and closing -------------------------------------------------------------------------------------------------

hone_status hone_importer_new(
    hone_allocator allocator,
    hone_registry *registry,
    const hone_import_options *options,
    hone_importer **out,
    hone_error *err)
{
    *out = NULL;
    hone_import_options known = {.struct_size = sizeof known};
    hone_codec codec = {.struct_size = sizeof codec};
    hone_status status =
        options == NULL
            ? HONE_OK
            : hone_struct_copy(&known, sizeof known, options, options->struct_size, "hone_import_options", where, err);
    if (status == HONE_OK && known.codec != NULL)
        status =
            hone_struct_copy(&codec, sizeof codec, known.codec, known.codec->struct_size, "hone_codec", where, err);
    if (status != HONE_OK) return status;
    hone_importer *importer = hone_alloc(&allocator, sizeof *importer);
    if (importer == NULL) return hone_fail_memory(err, where);
    importer->texts.arena.allocator = allocator;
    importer->registry = registry;
    importer->options = known;
    importer->codec = codec;
    *out = importer;
    return HONE_OK;
}

void hone_importer_destroy(hone_importer **importer)
{
    if (importer == NULL || *importer == NULL) return;
    hone_importer *gone = *importer;
    const hone_allocator allocator = gone->texts.arena.allocator;
    *importer = NULL;
    hone_free(&allocator, gone->decisions);
    hone_free(&allocator, gone->measured);
    hone_free(&allocator, gone->aliases);
    hone_free(&allocator, gone->foreigns);
    hone_free(&allocator, gone->entries);
    hone_arena_destroy(&gone->texts.arena);
    hone_free(&allocator, gone);
}

// Entries -------------------------------------------------------------------------------------------------------------

// Appends an element to one of the importer's arrays.
static void add(
    hone_importer *importer, void *array_pointer, size_t *count, size_t *capacity, const void *element, size_t size)
{
    char *elements;
    if (!hone_grow(&importer->texts.arena.allocator, array_pointer, capacity, *count + 1, size)) {
        importer->texts.failed = true;
        return;
    }
    memcpy(&elements, array_pointer, sizeof elements);
    memcpy(elements + *count * size, element, size);
    ++*count;
}

static void add_entry(
    hone_importer *importer,
    hone_import_outcome outcome,
    bool is_decision,
    const char *origin,
    const char *what,
    const char *reason)
{
    const hone_import_entry entry = {{outcome, origin, what, reason}, is_decision};
    add(importer, &importer->entries, &importer->entry_count, &importer->entry_capacity, &entry, sizeof entry);
}

void hone_importer_refuse(hone_importer *importer, const char *origin, const char *what, const char *reason)
{
    add_entry(importer, HONE_IMPORT_REFUSED, false, origin, what, reason);
}

void hone_importer_take_measured(hone_importer *importer, const hone_store_measured *measured)
{
    add(importer, &importer->measured, &importer->measured_count, &importer->measured_capacity, measured,
        sizeof *measured);
}

void hone_importer_take_alias(hone_importer *importer, const hone_store_alias *alias)
{
    add(importer, &importer->aliases, &importer->alias_count, &importer->alias_capacity, alias, sizeof *alias);
}

// Decisions -----------------------------------------------------------------------------------------------------------

static bool fits(const char *text, size_t size)
{
    return text != NULL && text[0] != '\0' && strlen(text) < size;
}

static hone_status check_texts(const hone_store_decision *decision, hone_error *why)
{
    const struct {
        const char *name, *text;
        size_t size;
    } texts[] = {
        {"device", decision->key.device, 4096},           {"algorithm", decision->key.algorithm, HONE_NAME_SIZE},
        {"version", decision->key.version, 16},           {"kernel", decision->kernel, HONE_NAME_SIZE},
        {"platform", decision->platform, HONE_NAME_SIZE}, {"config", decision->config, 1024},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!fits(texts[i].text, texts[i].size))
            return hone_fail(
                why, HONE_CORRUPT, where, "%s: a text of 1 to %zu bytes is expected", texts[i].name, texts[i].size - 1);
    if (!hone_is_key(decision->key.key))
        return hone_fail(why, HONE_CORRUPT, where, "key: 16 lower-case hex digits are expected");
    if (!isfinite(decision->time_ns) || decision->time_ns < 0)
        return hone_fail(why, HONE_CORRUPT, where, "time_ns: a number from 0 is expected");
    return HONE_OK;
}

// The text proves the key.
static hone_status check_spec(const hone_store_decision *decision, hone_error *why)
{
    char proved[HONE_KEY_SIZE];
    if (decision->key.spec == NULL) return HONE_OK;
    hone_hash_key(decision->key.spec, strlen(decision->key.spec), proved);
    if (strcmp(proved, decision->key.key) == 0) return HONE_OK;
    return hone_fail(why, HONE_CORRUPT, where, "spec hashes to %s, not to its key: one of them is damaged", proved);
}

// What is registered here is checked here; the rest by who serves it.
static hone_status check_config(const hone_importer *importer, const hone_store_decision *decision, hone_error *why)
{
    hone_platform platform;
    hone_config config;
    hone_status status = hone_platform_parse(decision->platform, &platform, why);
    if (status != HONE_OK || importer->registry == NULL) return status;
    const hone_algorithm_entry *algorithm =
        hone_registry_find(importer->registry, decision->key.algorithm, decision->key.version);
    hone_registry_reader reader;
    hone_registry_enter(importer->registry, &reader);
    const hone_kernel_ref *kernel =
        algorithm == NULL ? NULL : hone_kernel_by_name(algorithm, decision->kernel, platform);
    if (kernel != NULL) status = HONE_INVALID_ARGUMENT;
    // One for each backend may have the name.
    for (; kernel != NULL && status == HONE_INVALID_ARGUMENT; kernel = hone_kernel_after(algorithm, kernel, platform))
        status = hone_config_from_json(kernel->space, decision->config, strlen(decision->config), &config, why);
    hone_registry_leave(&reader);
    return status;
}

static hone_status check_decision(const hone_importer *importer, const hone_store_decision *decision, hone_error *why)
{
    hone_status status = check_texts(decision, why);
    if (status == HONE_OK) status = hone_store_check_decision(decision, why);
    if (status == HONE_OK) status = check_spec(decision, why);
    return status == HONE_OK ? check_config(importer, decision, why) : status;
}

static const char *name_of(hone_importer *importer, const hone_store_key *key)
{
    return hone_texts_format(
        &importer->texts, "%.64s@v%.20s %.20s", key->algorithm != NULL ? key->algorithm : "?",
        key->version != NULL ? key->version : "?", key->key != NULL ? key->key : "?");
}

void hone_importer_take(hone_importer *importer, const char *origin, const hone_store_decision *decision)
{
    hone_error why = {0};
    const char *what = name_of(importer, &decision->key);
    // What came out of a store is not asked whether a kernel has its config, only whether a store takes it.
    if ((importer->is_trusting ? hone_store_check_decision(decision, &why)
                               : check_decision(importer, decision, &why)) != HONE_OK) {
        hone_importer_refuse(importer, origin, what, hone_texts_keep(&importer->texts, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->decisions, &importer->decision_count, &importer->decision_capacity, decision,
        sizeof *decision);
    add_entry(importer, HONE_IMPORT_TAKEN, true, origin, what, "");
}

// Foreign entries -----------------------------------------------------------------------------------------------------

const char *hone_importer_copy(hone_importer *importer, const char *text)
{
    return text == NULL ? NULL : hone_texts_keep(&importer->texts, hone_view_of(text));
}

hone_store_key hone_importer_copy_key(hone_importer *importer, const hone_store_key *key)
{
    return (hone_store_key){
        .device = hone_importer_copy(importer, key->device),
        .algorithm = hone_importer_copy(importer, key->algorithm),
        .version = hone_importer_copy(importer, key->version),
        .key = hone_importer_copy(importer, key->key),
        .spec = hone_importer_copy(importer, key->spec),
    };
}

hone_store_decision hone_importer_copy_decision(hone_importer *importer, const hone_store_decision *decision)
{
    hone_store_decision copy = *decision;
    const char **const texts[] = {
        &copy.call,   &copy.kernel,   &copy.platform, &copy.config,
        &copy.source, &copy.revision, &copy.evidence, &copy.environment,
    };
    copy.key = hone_importer_copy_key(importer, &decision->key);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        *texts[i] = hone_importer_copy(importer, *texts[i]);
    return copy;
}

void hone_importer_name_algorithm(hone_importer *importer, const char *operation, hone_store_key *out)
{
    const char *at = strstr(operation, "@v");
    hone_buffer name;
    hone_buffer_init(&name, importer->texts.arena.allocator);
    hone_text_lower(&name, operation, at != NULL ? (size_t)(at - operation) : strlen(operation));
    importer->texts.failed |= name.failed;
    out->algorithm = hone_texts_keep(&importer->texts, (hone_view){hone_buffer_string(&name), name.size});
    out->version = at != NULL ? at + 2 : "1";
    hone_buffer_deinit(&name);
}

// True: the loader took or refused it.
static bool load(hone_importer *importer, const hone_store_foreign *foreign, const char *what)
{
    const hone_codec *codec = &importer->codec;
    hone_error why = {0};
    if (codec->load == NULL) return false;
    hone_store_decision decision = {.key = {.device = foreign->device, .key = foreign->foreign_key}, .source = "store"};
    hone_importer_name_algorithm(importer, foreign->operation, &decision.key);
    hone_status status = codec->load(codec->ctx, foreign, &decision, &why);
    if (status == HONE_NOT_FOUND) return false;
    if (status != HONE_OK) {
        const char *reason = why.message[0] != '\0' ? why.message : "the loader refused it";
        hone_importer_refuse(importer, foreign->origin, what, hone_texts_keep(&importer->texts, hone_view_of(reason)));
        return true;
    }
    decision.verified = false;
    decision.source = "store";
    // The loader's texts die with its next call.
    const hone_store_decision kept = hone_importer_copy_decision(importer, &decision);
    hone_importer_take(importer, foreign->origin, &kept);
    return true;
}

void hone_importer_keep(hone_importer *importer, const hone_store_foreign *foreign, const char *reason)
{
    const char *what = hone_texts_format(&importer->texts, "%.80s %.80s", foreign->operation, foreign->foreign_key);
    if (load(importer, foreign, what)) return;
    hone_error why = {0};
    if (hone_store_check_foreign(foreign, &why) != HONE_OK) {
        hone_importer_refuse(
            importer, foreign->origin, what, hone_texts_keep(&importer->texts, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->foreigns, &importer->foreign_count, &importer->foreign_capacity, foreign, sizeof *foreign);
    add_entry(importer, HONE_IMPORT_FOREIGN, false, foreign->origin, what, reason);
}
