// Importing: documents are read one by one, and all that they hold is stored in one transaction.
#include "interchange/importer.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "hone/signature.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char where[] = "interchange.import";

enum { DOCUMENT_LIMIT = 1 << 30, WHAT_SIZE = 200 };

// Names --------------------------------------------------------------------------------------------------------

static const char *const format_names[HONE_EXCHANGE_COUNT] = {"any", "hone", "ejkernel", "tokamax"};

const char *hone_exchange_name(hone_exchange format)
{
    return (int)format < 0 || format >= HONE_EXCHANGE_COUNT ? "unknown" : format_names[format];
}

hone_status hone_exchange_parse(const char *name, hone_exchange *out, hone_error *err)
{
    for (int i = HONE_EXCHANGE_HONE; name != NULL && i < HONE_EXCHANGE_COUNT; i++) {
        if (strcmp(format_names[i], name) != 0) continue;
        *out = (hone_exchange)i;
        return HONE_OK;
    }
    return hone_fail(
        err, HONE_INVALID_ARGUMENT, "interchange.format", "'%.40s' is no format: hone, ejkernel or tokamax is expected",
        name == NULL ? "NULL" : name);
}

const char *hone_import_outcome_name(hone_import_outcome outcome)
{
    static const char *const names[HONE_IMPORT_COUNT] = {"taken", "kept", "equal", "foreign", "refused"};
    return (int)outcome < 0 || outcome >= HONE_IMPORT_COUNT ? "unknown" : names[outcome];
}

// Opening and closing ------------------------------------------------------------------------------------------

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
    importer->arena.allocator = allocator;
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
    const hone_allocator allocator = gone->arena.allocator;
    *importer = NULL;
    hone_free(&allocator, gone->decisions);
    hone_free(&allocator, gone->measured);
    hone_free(&allocator, gone->aliases);
    hone_free(&allocator, gone->foreigns);
    hone_free(&allocator, gone->entries);
    hone_arena_destroy(&gone->arena);
    hone_free(&allocator, gone);
}

// Texts --------------------------------------------------------------------------------------------------------

const char *hone_importer_text(hone_importer *importer, hone_view text)
{
    const char *kept = hone_arena_text(&importer->arena, text.data, text.size);
    importer->failed |= kept == NULL;
    return kept != NULL ? kept : "";
}

const char *hone_importer_format(hone_importer *importer, const char *format, ...)
{
    va_list list;
    hone_buffer text;
    va_start(list, format);
    hone_buffer_init(&text, importer->arena.allocator);
    hone_buffer_format_list(&text, format, list);
    va_end(list);
    importer->failed |= text.failed;
    const char *kept = hone_importer_text(importer, (hone_view){hone_buffer_string(&text), text.size});
    hone_buffer_deinit(&text);
    return kept;
}

const char *hone_importer_string(hone_importer *importer, hone_view string)
{
    hone_buffer text;
    hone_buffer_init(&text, importer->arena.allocator);
    const char *kept = NULL;
    if (hone_json_decode(string, &text))
        kept = hone_importer_text(importer, (hone_view){hone_buffer_string(&text), text.size});
    importer->failed |= text.failed;
    hone_buffer_deinit(&text);
    return kept;
}

// Entries ------------------------------------------------------------------------------------------------------

// Appends an element to one of the importer's arrays.
static void add(
    hone_importer *importer, void *array_pointer, size_t *count, size_t *capacity, const void *element, size_t size)
{
    char *elements;
    if (!hone_grow(&importer->arena.allocator, array_pointer, capacity, *count + 1, size)) {
        importer->failed = true;
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

// Decisions ----------------------------------------------------------------------------------------------------

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
    const hone_kernel_ref *kernel =
        algorithm == NULL ? NULL : hone_kernel_by_name(algorithm, decision->kernel, platform);
    if (kernel == NULL) return HONE_OK;
    return hone_config_from_json(kernel->space, decision->config, strlen(decision->config), &config, why);
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
    return hone_importer_format(
        importer, "%.64s@v%.20s %.20s", key->algorithm != NULL ? key->algorithm : "?",
        key->version != NULL ? key->version : "?", key->key != NULL ? key->key : "?");
}

void hone_importer_take(hone_importer *importer, const char *origin, const hone_store_decision *decision)
{
    hone_error why = {0};
    const char *what = name_of(importer, &decision->key);
    // What came out of a store is not asked whether a kernel has its config, only whether a store takes it.
    if ((importer->is_trusting ? hone_store_check_decision(decision, &why)
                               : check_decision(importer, decision, &why)) != HONE_OK) {
        hone_importer_refuse(importer, origin, what, hone_importer_text(importer, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->decisions, &importer->decision_count, &importer->decision_capacity, decision,
        sizeof *decision);
    add_entry(importer, HONE_IMPORT_TAKEN, true, origin, what, "");
}

// Foreign entries ----------------------------------------------------------------------------------------------

const char *hone_importer_copy(hone_importer *importer, const char *text)
{
    return text == NULL ? NULL : hone_importer_text(importer, hone_view_of(text));
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

// "flash_attention@v2" is algorithm flash_attention at version 2.
static void name_algorithm(hone_importer *importer, const char *operation, hone_store_key *out)
{
    const char *at = strstr(operation, "@v");
    hone_buffer name;
    hone_buffer_init(&name, importer->arena.allocator);
    hone_text_lower(&name, operation, at != NULL ? (size_t)(at - operation) : strlen(operation));
    importer->failed |= name.failed;
    out->algorithm = hone_importer_text(importer, (hone_view){hone_buffer_string(&name), name.size});
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
    name_algorithm(importer, foreign->operation, &decision.key);
    hone_status status = codec->load(codec->ctx, foreign, &decision, &why);
    if (status == HONE_NOT_FOUND) return false;
    if (status != HONE_OK) {
        const char *reason = why.message[0] != '\0' ? why.message : "the loader refused it";
        hone_importer_refuse(importer, foreign->origin, what, hone_importer_text(importer, hone_view_of(reason)));
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
    const char *what = hone_importer_format(importer, "%.80s %.80s", foreign->operation, foreign->foreign_key);
    if (load(importer, foreign, what)) return;
    hone_error why = {0};
    if (hone_store_check_foreign(foreign, &why) != HONE_OK) {
        hone_importer_refuse(importer, foreign->origin, what, hone_importer_text(importer, hone_view_of(why.message)));
        return;
    }
    add(importer, &importer->foreigns, &importer->foreign_count, &importer->foreign_capacity, foreign, sizeof *foreign);
    add_entry(importer, HONE_IMPORT_FOREIGN, false, foreign->origin, what, reason);
}

// Reading ------------------------------------------------------------------------------------------------------

typedef struct format_reader {
    hone_exchange format;
    hone_json_dialect dialect;
    hone_status (*read)(hone_importer *importer, const char *origin, hone_view document, hone_error *err);
} format_reader;

static const format_reader readers[] = {
    {HONE_EXCHANGE_HONE, HONE_JSON_STRICT, hone_read_bundle},
    {HONE_EXCHANGE_EJKERNEL, HONE_JSON_PYTHON, hone_read_ejkernel},
    {HONE_EXCHANGE_TOKAMAX, HONE_JSON_PYTHON, hone_read_tokamax},
};

// A bundle says so; tokamax's keys are JSON in strings; the rest can only be ejkernel's.
static hone_exchange detect(hone_view document)
{
    hone_view key, value;
    if (hone_json_member(document, "hone_result").size > 0) return HONE_EXCHANGE_HONE;
    hone_json_walk walk = hone_json_walk_of(document);
    if (hone_json_walk_next(&walk, &key, &value) && key.size > 2 && key.data[1] == '{') return HONE_EXCHANGE_TOKAMAX;
    return HONE_EXCHANGE_EJKERNEL;
}

static const format_reader *reader_of(hone_exchange format)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (readers[i].format == format) return &readers[i];
    return NULL;
}

static hone_status read_document(
    hone_importer *importer, const char *origin, hone_exchange format, const char *text, size_t size, hone_error *err)
{
    hone_view document;
    const format_reader *reader = reader_of(format);
    hone_json_dialect dialect = reader != NULL ? reader->dialect : HONE_JSON_PYTHON;
    hone_status status = hone_json_text_check((hone_view){text, size}, dialect, &document, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", origin);
    if (!hone_json_is_object(document))
        return hone_fail(err, HONE_CORRUPT, where, "%s: a JSON object is expected", origin);
    if (reader == NULL) reader = reader_of(detect(document));
    size_t before = importer->entry_count;
    status = reader->read(importer, origin, document, err);
    if (status != HONE_OK) importer->entry_count = before;
    return status == HONE_OK && importer->failed ? hone_fail_memory(err, where) : status;
}

hone_status hone_importer_add(
    hone_importer *importer, const char *origin, hone_exchange format, const char *text, size_t size, hone_error *err)
{
    if (importer == NULL || text == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer and the text must not be NULL");
    if ((int)format < 0 || format >= HONE_EXCHANGE_COUNT)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "%d is no format", (int)format);
    if (importer->is_committed)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer was committed: create another");
    if (size > DOCUMENT_LIMIT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "%.200s is larger than %d bytes: split it", origin == NULL ? "" : origin,
            (int)DOCUMENT_LIMIT);
    const char *kept_origin = hone_importer_text(importer, hone_view_of(origin == NULL ? "-" : origin));
    // What is read borrows from the text.
    const char *kept = hone_arena_text(&importer->arena, text, size);
    if (kept == NULL || importer->failed) return hone_fail_memory(err, where);
    return read_document(importer, kept_origin, format, kept, size, err);
}

// Aliases ------------------------------------------------------------------------------------------------------

typedef struct recorded {
    hone_importer *importer;
    const char *spec; // the importer's; NULL: not recorded
} recorded;

static bool take_recorded(void *ctx, const hone_store_invocation *invocation)
{
    recorded *r = ctx;
    if (invocation->key.spec != NULL) r->spec = hone_importer_copy(r->importer, invocation->key.spec);
    return r->spec == NULL;
}

static hone_status add_alias(
    hone_importer *importer,
    const hone_store_foreign *foreign,
    const char *spec,
    const hone_algorithm_entry *algorithm,
    size_t *out_count)
{
    hone_call *call = NULL;
    hone_status status =
        hone_call_from_spec(importer->arena.allocator, algorithm->signature, spec, strlen(spec), &call, NULL);
    if (status != HONE_OK) return status == HONE_OUT_OF_MEMORY ? status : HONE_OK;
    const hone_store_alias alias = {
        .scheme = foreign->scheme,
        .operation = foreign->operation,
        .foreign_key = foreign->foreign_key,
        .foreign_spec = spec,
        .key =
            {.algorithm = algorithm->name,
             .version = algorithm->version,
             .key = hone_importer_copy(importer, hone_call_key(call)),
             .spec = hone_importer_copy(importer, hone_call_spec(call))},
    };
    hone_call_release(&call);
    hone_importer_take_alias(importer, &alias);
    ++*out_count;
    return HONE_OK;
}

// A foreign key is a hash: which call it names is known where that call was recorded.
static hone_status bind_foreign(
    hone_importer *importer, hone_store *store, const hone_store_foreign *foreign, size_t *out_count, hone_error *err)
{
    hone_store_key filter = {.key = foreign->foreign_key};
    recorded found = {.importer = importer};
    if (importer->registry == NULL || !hone_is_key(foreign->foreign_key)) return HONE_OK;
    name_algorithm(importer, foreign->operation, &filter);
    // hone's versions are its own: the operation is the newest algorithm of its name.
    const hone_algorithm_entry *algorithm = hone_registry_find(importer->registry, filter.algorithm, NULL);
    if (algorithm == NULL) return HONE_OK;
    hone_status status = hone_store_find_invocations(store, &filter, take_recorded, &found, err);
    if (status != HONE_OK && status != HONE_CORRUPT) return status;
    if (found.spec == NULL) return HONE_OK;
    status = add_alias(importer, foreign, found.spec, algorithm, out_count);
    return status == HONE_OUT_OF_MEMORY ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status bind_all(hone_importer *importer, hone_store *store, size_t *out_count, hone_error *err)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; status == HONE_OK && i < importer->foreign_count; i++)
        status = bind_foreign(importer, store, &importer->foreigns[i], out_count, err);
    return status == HONE_OK && importer->failed ? hone_fail_memory(err, where) : status;
}

// Committing ---------------------------------------------------------------------------------------------------

typedef struct telling {
    hone_importer *importer;
    size_t at; // the next entry
} telling;

static void note_outcome(void *ctx, size_t index, hone_merge_outcome outcome, const char *reason)
{
    static const hone_import_outcome outcomes[] = {
        [HONE_MERGE_TAKEN] = HONE_IMPORT_TAKEN,
        [HONE_MERGE_KEPT] = HONE_IMPORT_KEPT,
        [HONE_MERGE_EQUAL] = HONE_IMPORT_EQUAL,
    };
    (void)index;
    telling *tell = ctx;
    while (!tell->importer->entries[tell->at].is_decision)
        tell->at++;
    hone_import_line *line = &tell->importer->entries[tell->at++].line;
    line->outcome = outcomes[outcome];
    line->reason = reason;
}

static void report(const hone_importer *importer, hone_import_report *out)
{
    for (size_t i = 0; i < importer->entry_count; i++) {
        const hone_import_line *line = &importer->entries[i].line;
        out->outcomes[line->outcome]++;
        if (importer->options.line != NULL) importer->options.line(importer->options.ctx, line);
    }
}

hone_status hone_importer_commit(hone_importer *importer, hone_store *store, hone_import_report *out, hone_error *err)
{
    hone_import_report counts = {0};
    if (importer == NULL || store == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer and the store must not be NULL");
    if (importer->is_committed)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the importer was committed: create another");
    counts.aliases = importer->alias_count;
    hone_status status = bind_all(importer, store, &counts.aliases, err);
    telling tell = {importer, 0};
    const hone_store_batch batch = {
        .decisions = importer->decisions,
        .decision_count = importer->decision_count,
        .on_outcome = note_outcome,
        .ctx = &tell,
        .measured = importer->measured,
        .measured_count = importer->measured_count,
        .out_measured = &counts.measurements,
        .aliases = importer->aliases,
        .alias_count = importer->alias_count,
        .foreigns = importer->foreigns,
        .foreign_count = importer->foreign_count,
    };
    if (status == HONE_OK) status = hone_store_put_batch(store, &batch, err);
    if (status != HONE_OK) return status;
    importer->is_committed = true;
    report(importer, &counts);
    if (out != NULL) *out = counts;
    return HONE_OK;
}
