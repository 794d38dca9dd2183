// A result as an overlay of the runtime that made it.
#include "runtime/api/entry.h"
#include "tune/result/result.h"

#include "base/error.h"

static const char where[] = "tune.result.overlay";

static void fill_entry(const hone_result *result, const hone_result_entry *from, hone_entry *out)
{
    *out = (hone_entry){
        .device = hone_result_entry_device(result, from),
        .algorithm = from->decision.algorithm,
        .version = from->decision.version,
        .key = from->decision.key,
        .spec = from->spec[0] ? from->spec : NULL,
        .kernel = from->decision.kernel,
        .platform = from->decision.platform,
        .config = from->decision.config_json,
    };
}

hone_status hone_result_overlay(const hone_result *result, hone_overlay **out, hone_error *err)
{
    if (result == NULL || out == NULL) {
        if (out != NULL) *out = NULL;
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result or out is NULL");
    }
    *out = NULL;
    if (result->owner == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result belongs to no runtime: parse it with one");
    const hone_allocator *a = &result->allocator;
    hone_entry *entries = hone_alloc_array(a, result->count, sizeof *entries);
    hone_entry_ground *grounds = hone_alloc_array(a, result->count, sizeof *grounds);
    const bool room = entries != NULL && grounds != NULL;
    for (size_t i = 0; room && i < result->count; i++) {
        fill_entry(result, &result->entries[i], &entries[i]);
        grounds[i] = (hone_entry_ground){&result->entries[i].decision, result->entries[i].revision};
    }
    hone_status status = room ? hone_entry_overlay(result->owner, entries, grounds, result->count, out, err)
                              : hone_fail_memory(err, where);
    hone_free(a, grounds);
    hone_free(a, entries);
    return status;
}
