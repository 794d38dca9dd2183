// Writes the result document (formats.md).
#include "tune/result/result.h"

#include "base/error.h"
#include "base/json.h"
#include "hone/describe.h"
#include "hone/result.h"
#include "registry/names.h"
#include "tune/result/bundle.h"

#include <string.h>

enum { DOCUMENT_VERSION = 1 };

static const char where[] = "tune.result";

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
    hone_buffer_format(out, ",\"samples\":%u,\"max_error\":", row->samples);
    hone_json_number(out, row->max_error);
    if (row->default_time_ns <= 0) return;
    hone_buffer_text(out, ",\"default_time_ns\":");
    hone_json_number(out, row->default_time_ns);
    hone_buffer_format(out, ",\"default_samples\":%u", row->default_samples);
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
    if (row->elsewhere) hone_buffer_text(out, ",\"elsewhere\":true");
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

static void put_kernels(hone_buffer *out, const hone_contest *contest)
{
    for (size_t i = 0; i < contest->count; i++) {
        hone_buffer_char(out, i == 0 ? '[' : ',');
        put_kernel(out, &contest->kernels[i]);
    }
    hone_buffer_text(out, contest->count > 0 ? "]" : "[]");
}

hone_status hone_result_add_contest(
    hone_result *result,
    const hone_device_info *device,
    const hone_call *call,
    const hone_contest *contest,
    hone_error *err)
{
    const hone_kernel_ref *winner = winner_of(contest);
    hone_buffer kernels, environment;
    hone_buffer_init(&kernels, result->allocator);
    hone_buffer_init(&environment, result->allocator);
    put_kernels(&kernels, contest);
    hone_result_texts texts = {
        .call = hone_call_text(call),
        .spec = hone_call_spec(call),
        .revision = winner != NULL ? winner->kernel.revision : "1",
        .kernels = hone_buffer_string(&kernels),
        .history = contest->history,
    };
    hone_status status = kernels.failed ? hone_fail_memory(err, where) : HONE_OK;
    if (status == HONE_OK) status = hone_result_of_device(result, device, &texts, &environment, err);
    if (status == HONE_OK) status = hone_result_add(result, &contest->decision, &texts, err);
    hone_buffer_deinit(&kernels);
    hone_buffer_deinit(&environment);
    return status;
}

// The best of every kernel is the last field of the evidence.
static void put_evidence(hone_buffer *out, const hone_result_entry *entry)
{
    hone_buffer_text(out, "\"evidence\":");
    size_t start = out->size;
    hone_evidence_json(&entry->decision.evidence, out);
    if (!entry->kernels[0] || out->failed) return;
    out->size--; // removes the closing brace
    bool empty = out->size == start + 1;
    hone_buffer_format(out, "%s\"kernels\":", empty ? "" : ",");
    hone_buffer_text(out, entry->kernels);
    hone_buffer_char(out, '}');
}

static void put_entry(hone_buffer *out, const hone_result_entry *entry, bool history)
{
    const hone_decision *decision = &entry->decision;
    const char *const texts[][2] = {
        {"device", entry->device},
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
    if (entry->environment[0]) hone_buffer_format(out, ",\"environment\":%s", entry->environment);
    if (history && entry->history[0]) hone_buffer_format(out, ",\"trail\":%s", entry->history);
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

void hone_result_document(const hone_result *result, bool history, hone_buffer *out)
{
    hone_buffer_format(out, "{\"hone_result\":%d,", DOCUMENT_VERSION);
    hone_json_field(out, "device", result->device);
    hone_buffer_text(out, ",\"entries\":[");
    for (size_t i = 0; i < result->count; i++) {
        hone_buffer_text(out, i > 0 ? "," : "");
        put_entry(out, &result->entries[i], history);
    }
    hone_buffer_char(out, ']');
    for (size_t i = 0; i < result->alias_count; i++) {
        hone_buffer_text(out, i > 0 ? "," : ",\"aliases\":[");
        const hone_result_alias *one = &result->aliases[i];
        hone_bundle_put_alias(&one->alias, strcmp(one->entry, one->alias.key.key) == 0 ? NULL : one->entry, out);
    }
    if (result->alias_count > 0) hone_buffer_char(out, ']');
    for (size_t i = 0; i < result->failure_count; i++) {
        hone_buffer_text(out, i > 0 ? "," : ",\"failed\":[");
        put_failure(out, &result->failures[i]);
    }
    if (result->failure_count > 0) hone_buffer_char(out, ']');
    hone_buffer_format(out, ",\"environment\":%s}\n", result->environment[0] ? result->environment : "{}");
}

// The caller frees the text without a result, so it is from the system's allocator.
hone_status hone_result_json(const hone_result *result, char **out_text, hone_error *err)
{
    if (result == NULL || out_text == NULL) {
        if (out_text != NULL) *out_text = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result or out_text is NULL");
    }
    hone_buffer out;
    *out_text = NULL;
    hone_buffer_init(&out, hone_allocator_system());
    hone_result_document(result, false, &out);
    *out_text = hone_buffer_take(&out);
    hone_buffer_deinit(&out);
    return *out_text != NULL ? HONE_OK : hone_fail_memory(err, where);
}

void hone_text_release(char **text)
{
    const hone_allocator allocator = hone_allocator_system();
    if (text == NULL) return;
    hone_free(&allocator, *text);
    *text = NULL;
}
