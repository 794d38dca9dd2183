// The link of the memory cache: what this process has decided, or was given by the program.
#include "runtime/links/links.h"

#include "base/error.h"
#include "runtime/links/trust.h"

#include <string.h>

static bool copy_memory_row(const hone_request *request, const char *key, const char *spec, hone_decision *out)
{
    const hone_algorithm_entry *algorithm = request->op->algorithm;
    hone_runtime *rt = request->rt;
    hone_mutex_lock(&rt->mutex);
    const hone_decision_row *row =
        hone_decisions_get(&rt->cache, request->device->fingerprint, algorithm->name, algorithm->version, key, spec);
    // A decision that is also in a store is valid only until another process changes the store: then the store is
    // asked.
    if (row != NULL && row->as_of != 0 && row->as_of != atomic_load(&rt->changes)) row = NULL;
    if (row != NULL) *out = row->decision;
    hone_mutex_unlock(&rt->mutex);
    return row != NULL;
}

hone_status hone_request_from_memory(const hone_request *request, hone_decision *out, hone_error *why)
{
    hone_status status = hone_request_look_up(request, copy_memory_row, out, why);
    return status == HONE_OK ? hone_request_still_trusts(request, out, why) : status;
}

// Remembering ---------------------------------------------------------------------------------------------------------

typedef struct drop_filter {
    const hone_decision *decision;
    const hone_device_info *device;
} drop_filter;

// Whether a plan for calls of this key came from a heuristic or an older decision.
static bool is_replaced(void *ctx, const hone_plan_entry *entry)
{
    const drop_filter *filter = ctx;
    const char *key = filter->decision->key;
    if (entry->plan.device != filter->device ||
        strcmp(entry->kernel->algorithm->name, filter->decision->algorithm) != 0)
        return false;
    return strcmp(entry->call_key, key) == 0 || strcmp(entry->bucket_key, key) == 0 ||
           strcmp(entry->general_key, key) == 0;
}

void hone_runtime_drop_replaced(hone_runtime *rt, const hone_device_info *device, const hone_decision *decision)
{
    drop_filter filter = {decision, device};
    hone_plan_table_drop(&rt->plans, is_replaced, &filter);
}

// Treats its row as one of a store that has changed. A row that is in no store was set by the program, and stays.
void hone_runtime_doubt(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision)
{
    hone_mutex_lock(&rt->mutex);
    const hone_decision_row *row = hone_decisions_get(
        &rt->cache, device->fingerprint, decision->algorithm, decision->version, decision->key, spec);
    if (row != NULL && row->as_of != 0)
        hone_decisions_note_stored(&rt->cache, device->fingerprint, decision, UINT64_MAX);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    hone_runtime_drop_replaced(rt, device, decision);
}

hone_status hone_runtime_remember(
    hone_runtime *rt, const hone_device_info *device, const char *spec, const hone_decision *decision, hone_error *err)
{
    hone_mutex_lock(&rt->mutex);
    hone_status status = hone_decisions_put(&rt->cache, device->fingerprint, spec, decision, err);
    hone_mutex_unlock(&rt->mutex);
    hone_runtime_answers_changed(rt);
    hone_runtime_drop_replaced(rt, device, decision);
    return status;
}
