// A result as an overlay of the runtime that made it.
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
    *out = NULL;
    if (result->owner == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the result belongs to no runtime: parse it with one");
    hone_entry *entries = hone_alloc_array(&result->allocator, result->count, sizeof *entries);
    if (entries == NULL) return hone_fail_memory(err, where);
    for (size_t i = 0; i < result->count; i++)
        fill_entry(result, &result->entries[i], &entries[i]);
    hone_status status = hone_overlay_create(result->owner, entries, result->count, out, err);
    hone_free(&result->allocator, entries);
    return status;
}
