// Reading record documents, hone's own and ejkernel's: what others recorded, so that their labels are found.
#include "record/record.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/text.h"
#include "os/os.h"
#include "store/ops.h"

#include <string.h>

enum { DOCUMENT_VERSION = 1 };

static const char where[] = "record.import";

// One entry on its way in. Texts are borrowed from the document, but for the algorithm's lower case and what is escaped in
// the fingerprint.
typedef struct reading {
    const json_t *entry;
    const char *device; // of the document; NULL: none
    double now;
    hone_buffer algorithm, fingerprint;
    hone_store_invocation invocation;
} reading;

// A member that is a text. *out is NULL for one that is missing or null.
static hone_status read_text(const json_t *entry, const char *name, const char **out, hone_error *err)
{
    const json_t *member = json_object_get(entry, name);
    *out = json_string_value(member);
    if (*out != NULL || member == NULL || json_is_null(member)) return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, where, "\"%s\" is not a string", name);
}

static hone_status need_text(const json_t *entry, const char *name, const char **out, hone_error *err)
{
    hone_status status = read_text(entry, name, out, err);
    if (status == HONE_OK && (*out == NULL || **out == '\0'))
        return hone_fail(err, HONE_CORRUPT, where, "\"%s\" is missing", name);
    return status;
}

// "flash_attention@v2": the part behind "@v" is the version; without one it is 1.
static hone_status read_operation(reading *r, hone_error *err)
{
    const char *operation = NULL, *version = NULL;
    hone_status status = HONE_OK;
    if (json_object_get(r->entry, "op") != NULL) {
        status = need_text(r->entry, "op", &operation, err);
    } else {
        status = need_text(r->entry, "algorithm", &operation, err);
        if (status == HONE_OK) status = read_text(r->entry, "version", &version, err);
    }
    if (status != HONE_OK) return status;
    const char *at = strstr(operation, "@v");
    if (at != NULL) version = at + strlen("@v");
    size_t size = at != NULL ? (size_t)(at - operation) : strlen(operation);
    if (version == NULL) version = "1";
    if (size == 0 || *version == '\0')
        return hone_fail(err, HONE_CORRUPT, where, "'%s' is not an operation: expected NAME@vVERSION", operation);
    hone_buffer_clear(&r->algorithm);
    hone_text_lower(&r->algorithm, operation, size);
    r->invocation.key.algorithm = hone_buffer_string(&r->algorithm);
    r->invocation.key.version = version;
    return r->algorithm.failed ? hone_fail_memory(err, where) : HONE_OK;
}

// The text proves the key: an entry where it does not would match labels to the wrong arguments.
static hone_status read_key(reading *r, hone_error *err)
{
    hone_store_key *key = &r->invocation.key;
    hone_status status = need_text(r->entry, "key", &key->key, err);
    if (status == HONE_OK) status = read_text(r->entry, "spec", &key->spec, err);
    if (status != HONE_OK) return status;
    if (!hone_is_key(key->key))
        return hone_fail(err, HONE_CORRUPT, where, "\"key\" is '%s': expected 16 lower-case hex digits", key->key);
    if (key->spec == NULL) return HONE_OK;
    char proved[HONE_KEY_SIZE];
    hone_hash_key(key->spec, strlen(key->spec), proved);
    if (strcmp(proved, key->key) == 0) return HONE_OK;
    return hone_fail(
        err, HONE_CORRUPT, where, "\"spec\" hashes to %s, not to its \"key\" %s: one of them is damaged", proved,
        key->key);
}

static hone_status read_device(reading *r, hone_error *err)
{
    hone_status status = read_text(r->entry, "device", &r->invocation.key.device, err);
    if (status != HONE_OK) return status;
    if (r->invocation.key.device == NULL) r->invocation.key.device = r->device;
    if (r->invocation.key.device == NULL || *r->invocation.key.device == '\0')
        return hone_fail(err, HONE_CORRUPT, where, "\"device\" is missing, here and in the document");
    hone_buffer_clear(&r->fingerprint);
    hone_text_escape_controls(&r->fingerprint, r->invocation.key.device);
    r->invocation.key.device = hone_buffer_string(&r->fingerprint);
    return r->fingerprint.failed ? hone_fail_memory(err, where) : HONE_OK;
}

static hone_status read_count(reading *r, hone_error *err)
{
    const json_t *member = json_object_get(r->entry, "count");
    r->invocation.count = 1;
    if (member == NULL || json_is_null(member)) return HONE_OK;
    if (!json_is_integer(member) || json_integer_value(member) < 1)
        return hone_fail(err, HONE_CORRUPT, where, "\"count\" is not a positive integer");
    r->invocation.count = (uint64_t)json_integer_value(member);
    return HONE_OK;
}

// A time as text, or as seconds since 1970; missing: now.
static hone_status read_time(const reading *r, const char *name, double *out, hone_error *err)
{
    const json_t *member = json_object_get(r->entry, name);
    *out = r->now;
    if (member == NULL || json_is_null(member)) return HONE_OK;
    if (json_is_string(member) && hone_os_parse_utc(json_string_value(member), out)) return HONE_OK;
    if (json_is_number(member) && json_number_value(member) >= 0) {
        *out = json_number_value(member);
        return HONE_OK;
    }
    return hone_fail(err, HONE_CORRUPT, where, "\"%s\" is not a time: expected 2026-11-20T12:34:56Z", name);
}

// Documents from before had the source under "decided", where a truth stands now, which is of the exporting machine.
static hone_status read_answered(reading *r, hone_error *err)
{
    const char *name = json_is_string(json_object_get(r->entry, "decided")) ? "decided" : "answered";
    return read_text(r->entry, name, &r->invocation.decided, err);
}

static hone_status read_entry(reading *r, hone_error *err)
{
    r->invocation = (hone_store_invocation){0};
    if (!json_is_object(r->entry)) return hone_fail(err, HONE_CORRUPT, where, "it is not an object");
    hone_status status = read_operation(r, err);
    if (status == HONE_OK) status = read_key(r, err);
    if (status == HONE_OK) status = read_device(r, err);
    if (status == HONE_OK) status = read_count(r, err);
    if (status == HONE_OK) status = read_time(r, "first", &r->invocation.first, err);
    if (status == HONE_OK) status = read_time(r, "last", &r->invocation.last, err);
    if (status == HONE_OK) status = read_text(r->entry, "call", &r->invocation.call, err);
    if (status == HONE_OK) status = read_text(r->entry, "kernel", &r->invocation.kernel, err);
    if (status == HONE_OK) status = read_answered(r, err);
    if (status == HONE_OK && r->invocation.last < r->invocation.first) r->invocation.last = r->invocation.first;
    // What no store takes would keep the others of the recorder out of it too.
    return status == HONE_OK ? hone_store_check_invocation(&r->invocation, err) : status;
}

static hone_status check_document(const json_t *document, hone_error *err)
{
    const json_t *version = json_object_get(document, "hone_record");
    if (version != NULL && json_is_integer(version) && json_integer_value(version) > DOCUMENT_VERSION)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "a record document of version %lld; this hone reads version %d",
            (long long)json_integer_value(version), DOCUMENT_VERSION);
    if (version != NULL && (!json_is_integer(version) || json_integer_value(version) != DOCUMENT_VERSION))
        return hone_fail(err, HONE_CORRUPT, where, "\"hone_record\" is not a version: expected %d", DOCUMENT_VERSION);
    if (json_is_array(json_object_get(document, "invocations"))) return HONE_OK;
    return hone_fail(err, HONE_CORRUPT, where, "no record document: an object with a list \"invocations\" is expected");
}

// Takes every sound entry; the first failure is what it answers in the end. Without memory it stops at once.
static hone_status take_entries(
    hone_recorder *recorder, const json_t *invocations, reading *r, size_t *out_count, hone_error *err)
{
    hone_status first = HONE_OK;
    size_t index;
    json_t *entry;
    json_array_foreach(invocations, index, entry)
    {
        hone_error *words = first == HONE_OK ? err : NULL;
        uint64_t dropped = hone_recorder_dropped(recorder);
        r->entry = entry;
        hone_status status = read_entry(r, words);
        if (status != HONE_OK) (void)hone_fail_prefix(words, status, "invocations[%zu]", index);
        if (status == HONE_OK) status = hone_recorder_add_invocation(recorder, &r->invocation, words);
        if (status == HONE_OK && hone_recorder_dropped(recorder) == dropped) ++*out_count;
        if (first == HONE_OK) first = status;
        if (status == HONE_OUT_OF_MEMORY) break;
    }
    return first;
}

hone_status hone_recorder_import(
    hone_recorder *recorder, const char *json, size_t size, size_t *out_count, hone_error *err)
{
    json_t *document = NULL;
    size_t count = 0;
    hone_status status = hone_json_parse(json, size, &document, err);
    if (status == HONE_OK) status = check_document(document, err);
    if (status == HONE_OK) {
        reading r = {.now = hone_os_now_utc()};
        hone_buffer_init(&r.algorithm, *hone_recorder_allocator(recorder));
        hone_buffer_init(&r.fingerprint, *hone_recorder_allocator(recorder));
        status = read_text(document, "device", &r.device, err);
        if (status == HONE_OK)
            status = take_entries(recorder, json_object_get(document, "invocations"), &r, &count, err);
        hone_buffer_deinit(&r.algorithm);
        hone_buffer_deinit(&r.fingerprint);
    }
    json_decref(document);
    if (out_count != NULL) *out_count = count;
    return status;
}
