// The result document (formats.md): written, read back, checked.
#include "tune/result.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "registry/names.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCUMENT_VERSION = 1 };

static const char where[] = "tune.result";

// Writing ----------------------------------------------------------------------------------------------------------

static void put_rejected(hone_buffer *out, const hone_contest_kernel *row)
{
    const char *between = "";
    hone_buffer_text(out, ",\"rejected\":{");
    for (int kind = HONE_FAILURE_NONE + 1; kind < HONE_FAILURE_COUNT; kind++) {
        if (row->rejected[kind] == 0) continue;
        hone_buffer_format(out, "%s\"%s\":%u", between, hone_failure_name((hone_failure)kind), row->rejected[kind]);
        between = ",";
    }
    hone_buffer_char(out, '}');
}

static void put_times(hone_buffer *out, const hone_contest_kernel *row)
{
    char config[1024];
    hone_config_json(row->kernel->space, &row->best, config, sizeof config);
    hone_buffer_format(out, ",\"config\":%s,\"time_ns\":", row->kernel->kernel.is_reference ? "{}" : config);
    hone_json_number(out, row->time_ns);
    hone_buffer_text(out, ",\"low_ns\":");
    hone_json_number(out, row->low_ns);
    hone_buffer_text(out, ",\"high_ns\":");
    hone_json_number(out, row->high_ns);
    hone_buffer_text(out, ",\"max_error\":");
    hone_json_number(out, row->max_error);
    if (row->default_time_ns <= 0) return;
    hone_buffer_text(out, ",\"default_time_ns\":");
    hone_json_number(out, row->default_time_ns);
}

static void put_kernel(hone_buffer *out, const hone_contest_kernel *row)
{
    hone_buffer_char(out, '{');
    hone_json_field(out, "kernel", row->kernel->kernel.name);
    hone_buffer_char(out, ',');
    hone_json_field(out, "platform", hone_platform_name(row->kernel->kernel.platform));
    if (row->time_ns > 0)
        put_times(out, row);
    else
        hone_buffer_text(out, ",\"config\":null,\"time_ns\":null");
    hone_buffer_format(out, ",\"tried\":%u", row->tried);
    put_rejected(out, row);
    if (row->reason[0]) {
        hone_buffer_char(out, ',');
        hone_json_field(out, "reason", row->reason);
    }
    hone_buffer_char(out, '}');
}

static const hone_kernel_ref *winner_of(const hone_contest *contest)
{
    const hone_decision *decision = &contest->decision;
    for (size_t i = 0; i < contest->count; i++) {
        const hone_kernel *kernel = &contest->kernels[i].kernel->kernel;
        if (strcmp(kernel->name, decision->kernel) == 0 && kernel->platform == decision->platform &&
            kernel->backend == decision->backend)
            return contest->kernels[i].kernel;
    }
    return NULL;
}

hone_status hone_result_add_contest(
    hone_result *result, const hone_call *call, const hone_contest *contest, hone_error *err)
{
    const hone_kernel_ref *winner = winner_of(contest);
    hone_buffer kernels;
    hone_buffer_init(&kernels, result->allocator);
    for (size_t i = 0; i < contest->count; i++) {
        hone_buffer_char(&kernels, i == 0 ? '[' : ',');
        put_kernel(&kernels, &contest->kernels[i]);
    }
    hone_buffer_text(&kernels, contest->count > 0 ? "]" : "[]");
    const char *revision = winner ? winner->kernel.revision : "1";
    hone_status status = kernels.failed ? hone_fail_memory(err, where)
                                        : hone_result_add(
                                              result, &contest->decision, hone_call_text(call), hone_call_spec(call),
                                              revision, hone_buffer_string(&kernels), contest->trail, err);
    hone_buffer_deinit(&kernels);
    return status;
}

// Every kernel's best stands inside the evidence, as its last field.
static void put_evidence(hone_buffer *out, const hone_result_entry *entry)
{
    hone_buffer_text(out, "\"evidence\":");
    size_t start = out->size;
    hone_evidence_json(&entry->decision.evidence, out);
    if (!entry->kernels[0] || out->failed) return;
    out->size--; // the closing brace
    bool empty = out->size == start + 1;
    hone_buffer_format(out, "%s\"kernels\":", empty ? "" : ",");
    hone_buffer_text(out, entry->kernels);
    hone_buffer_char(out, '}');
}

static void put_entry(hone_buffer *out, const hone_result_entry *entry, bool trail)
{
    const hone_decision *decision = &entry->decision;
    const char *const texts[][2] = {
        {"algorithm", decision->algorithm},
        {"version", decision->version},
        {"key", decision->key},
        {"call", entry->call},
        {"spec", entry->spec},
        {"kernel", decision->kernel},
        {"platform", hone_platform_name(decision->platform)},
        {"source", hone_source_name(decision->source)},
        {"revision", entry->revision},
    };
    hone_buffer_char(out, '{');
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!texts[i][1][0]) continue;
        hone_json_field(out, texts[i][0], texts[i][1]);
        hone_buffer_char(out, ',');
    }
    hone_buffer_format(out, "\"config\":%s,", decision->config_json[0] ? decision->config_json : "{}");
    put_evidence(out, entry);
    if (trail && entry->trail[0]) hone_buffer_format(out, ",\"trail\":%s", entry->trail);
    hone_buffer_char(out, '}');
}

static void put_failure(hone_buffer *out, const hone_result_failure *failure)
{
    hone_buffer_char(out, '{');
    hone_json_field(out, "call", failure->call);
    hone_buffer_char(out, ',');
    hone_json_field(out, "key", failure->key);
    hone_buffer_char(out, ',');
    hone_json_field(out, "reason", failure->reason);
    hone_buffer_char(out, '}');
}

void hone_result_document(const hone_result *result, bool trail, hone_buffer *out)
{
    hone_buffer_format(out, "{\"hone_result\":%d,", DOCUMENT_VERSION);
    hone_json_field(out, "device", result->device);
    hone_buffer_text(out, ",\"entries\":[");
    for (size_t i = 0; i < result->count; i++) {
        hone_buffer_text(out, i > 0 ? "," : "");
        put_entry(out, &result->entries[i], trail);
    }
    hone_buffer_char(out, ']');
    for (size_t i = 0; i < result->failure_count; i++) {
        hone_buffer_text(out, i > 0 ? "," : ",\"failed\":[");
        put_failure(out, &result->failures[i]);
    }
    if (result->failure_count > 0) hone_buffer_char(out, ']');
    hone_buffer_format(out, ",\"environment\":%s}\n", result->environment[0] ? result->environment : "{}");
}

// The text is freed without a result at hand, hence the system's allocator.
hone_status hone_result_json(const hone_result *result, char **out_text, hone_error *err)
{
    hone_buffer out;
    *out_text = NULL;
    hone_buffer_init(&out, hone_allocator_system());
    hone_result_document(result, false, &out);
    *out_text = hone_buffer_take(&out);
    hone_buffer_deinit(&out);
    return *out_text ? HONE_OK : hone_fail_memory(err, where);
}

void hone_text_free(char *text)
{
    const hone_allocator allocator = hone_allocator_system();
    hone_free(&allocator, text);
}

// Reading ------------------------------------------------------------------------------------------------------------

typedef struct reading {
    hone_registry *registry; // NULL: configs stay text
    hone_result *result;
    size_t index; // of the entry, for messages
    hone_error *err;
} reading;

static const char *optional(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

static hone_status fail_entry(const reading *r, const char *what)
{
    return hone_fail(r->err, HONE_CORRUPT, where, "entries[%zu].%s", r->index, what);
}

// A text field of an entry; missing: fallback, unless that is NULL.
static hone_status get_text(
    const reading *r, const json_t *entry, const char *name, const char *fallback, char *out, size_t size)
{
    const json_t *value = json_object_get(entry, name);
    const char *text = json_string_value(value);
    if (!value || json_is_null(value)) text = fallback;
    char words[160];
    if (text && strlen(text) < size && strlen(text) > 0) {
        snprintf(out, size, "%s", text);
        return HONE_OK;
    }
    snprintf(words, sizeof words, "%s: expected a text of 1 to %zu bytes", name, size - 1);
    return fail_entry(r, words);
}

static hone_status get_key(const reading *r, const json_t *entry, hone_decision *decision)
{
    hone_status status = get_text(r, entry, "key", NULL, decision->key, sizeof decision->key);
    if (status != HONE_OK) return status;
    if (hone_is_key(decision->key)) return HONE_OK;
    return fail_entry(r, "key: expected 16 lower-case hex digits");
}

static hone_status get_origin(const reading *r, const json_t *entry, hone_decision *decision)
{
    char platform[32], source[32];
    hone_status status = get_text(r, entry, "platform", "native", platform, sizeof platform);
    if (status == HONE_OK) status = get_text(r, entry, "source", "autotune", source, sizeof source);
    if (status != HONE_OK) return status;
    hone_error why = {0};
    if (hone_platform_parse(platform, &decision->platform, &why) != HONE_OK)
        return hone_fail(r->err, HONE_CORRUPT, where, "entries[%zu].platform: %s", r->index, why.message);
    return hone_source_by_name(source, &decision->source) ? HONE_OK : fail_entry(r, "source: no source of that name");
}

static hone_status get_config(const reading *r, const json_t *entry, hone_decision *decision)
{
    const json_t *config = json_object_get(entry, "config");
    if (!config || json_is_null(config)) {
        memcpy(decision->config_json, "{}", 3);
        return HONE_OK;
    }
    if (!json_is_object(config)) return fail_entry(r, "config: expected an object");
    char *text = json_dumps(config, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));
    bool fits = text && strlen(text) < sizeof decision->config_json;
    if (fits) snprintf(decision->config_json, sizeof decision->config_json, "%s", text);
    free(text);
    return fits ? HONE_OK : fail_entry(r, "config: longer than 1023 bytes");
}

// With a registry at hand the config's values are filled in too. One that it does not know stays text: the reader of the
// store checks again, against the kernels of its day.
static void resolve_config(const reading *r, hone_decision *decision)
{
    const hone_algorithm_entry *algorithm =
        r->registry ? hone_registry_find(r->registry, decision->algorithm, decision->version) : NULL;
    const hone_kernel_ref *kernel =
        algorithm ? hone_kernel_by_name(algorithm, decision->kernel, decision->platform) : NULL;
    if (!kernel) return;
    decision->backend = kernel->kernel.backend;
    const char *text = decision->config_json;
    (void)!hone_config_from_json(kernel->space, text, strlen(text), &decision->config, NULL);
}

static hone_status get_evidence(const reading *r, const json_t *entry, hone_decision *decision)
{
    const json_t *evidence = json_object_get(entry, "evidence");
    if (!json_is_number(json_object_get(evidence, "time_ns")))
        return fail_entry(r, "evidence.time_ns: expected a number");
    char *text = json_dumps(evidence, JSON_COMPACT);
    if (!text) return hone_fail_memory(r->err, where);
    hone_status status = hone_evidence_parse(text, strlen(text), &decision->evidence, r->err);
    free(text);
    if (status != HONE_OK) return hone_fail_prefix(r->err, status, "entries[%zu]", r->index);
    if (!(decision->evidence.time_ns > 0)) return fail_entry(r, "evidence.time_ns: expected more than 0");
    decision->verified = decision->evidence.verified_against[0] != '\0';
    return HONE_OK;
}

static hone_status keep_entry(const reading *r, const json_t *entry, const hone_decision *decision)
{
    const json_t *kernels = json_object_get(json_object_get(entry, "evidence"), "kernels");
    char *text = json_is_array(kernels) ? json_dumps(kernels, JSON_COMPACT) : NULL;
    hone_status status = hone_result_add(
        r->result, decision, optional(entry, "call"), optional(entry, "spec"), optional(entry, "revision"), text, NULL,
        r->err);
    free(text);
    return status;
}

static hone_status read_entry(const reading *r, const json_t *entry)
{
    hone_decision decision = {0};
    if (!json_is_object(entry)) return fail_entry(r, "expected an object");
    const char *device = optional(entry, "device");
    if (device && strcmp(device, r->result->device) != 0)
        return fail_entry(r, "device: another than the document's: hone store import reads bundles of several");
    hone_status status = get_text(r, entry, "algorithm", NULL, decision.algorithm, sizeof decision.algorithm);
    if (status == HONE_OK) status = get_text(r, entry, "version", "1", decision.version, sizeof decision.version);
    if (status == HONE_OK) status = get_text(r, entry, "kernel", NULL, decision.kernel, sizeof decision.kernel);
    if (status == HONE_OK) status = get_key(r, entry, &decision);
    if (status == HONE_OK) status = get_origin(r, entry, &decision);
    if (status == HONE_OK) status = get_config(r, entry, &decision);
    if (status == HONE_OK) status = get_evidence(r, entry, &decision);
    if (status != HONE_OK) return status;
    resolve_config(r, &decision);
    return keep_entry(r, entry, &decision);
}

static hone_status check_root(const json_t *root, hone_error *err)
{
    const json_t *version = json_object_get(root, "hone_result");
    if (!json_is_integer(version))
        return hone_fail(err, HONE_CORRUPT, where, "no result document: expected an object with \"hone_result\":1");
    if (json_integer_value(version) != DOCUMENT_VERSION)
        return hone_fail(
            err, HONE_INCOMPATIBLE, where, "a result document of version %lld, this hone reads version %d",
            (long long)json_integer_value(version), DOCUMENT_VERSION);
    const char *device = optional(root, "device");
    if (!device || !*device) return hone_fail(err, HONE_CORRUPT, where, "device: expected the fingerprint, a text");
    if (!json_is_array(json_object_get(root, "entries")))
        return hone_fail(err, HONE_CORRUPT, where, "entries: expected an array");
    return HONE_OK;
}

static hone_status read_failures(const reading *r, const json_t *failed)
{
    hone_status status = HONE_OK;
    for (size_t i = 0; i < json_array_size(failed) && status == HONE_OK; i++) {
        const json_t *row = json_array_get(failed, i);
        status = hone_result_add_failure(
            r->result, optional(row, "call"), optional(row, "key"), optional(row, "reason"), r->err);
    }
    return status;
}

static hone_status read_document(reading *r, const json_t *root)
{
    const json_t *entries = json_object_get(root, "entries");
    hone_status status = HONE_OK;
    for (r->index = 0; r->index < json_array_size(entries) && status == HONE_OK; r->index++)
        status = read_entry(r, json_array_get(entries, r->index));
    return status == HONE_OK ? read_failures(r, json_object_get(root, "failed")) : status;
}

static hone_status start_result(
    hone_allocator allocator, const json_t *root, void *owner, hone_result **out, hone_error *err)
{
    const json_t *environment = json_object_get(root, "environment");
    char *text = json_is_object(environment) ? json_dumps(environment, JSON_COMPACT) : NULL;
    hone_status status = hone_result_new(allocator, optional(root, "device"), text, owner, out, err);
    free(text);
    return status;
}

hone_status hone_result_read(
    hone_allocator allocator,
    hone_registry *registry,
    void *owner,
    const char *json,
    size_t size,
    hone_result **out,
    hone_error *err)
{
    json_t *root = NULL;
    reading r = {registry, NULL, 0, err};
    *out = NULL;
    hone_status status = hone_json_parse(json, size, &root, err);
    if (status == HONE_OK) status = check_root(root, err);
    if (status == HONE_OK) status = start_result(allocator, root, owner, &r.result, err);
    if (status == HONE_OK) status = read_document(&r, root);
    json_decref(root);
    if (status == HONE_OK)
        *out = r.result;
    else
        hone_result_release(&r.result);
    return status;
}

hone_status hone_result_parse(hone_runtime *rt, const char *json, size_t size, hone_result **out, hone_error *err)
{
    return hone_result_read(hone_allocator_system(), NULL, rt, json, size, out, err);
}
