// The public functions of the invocation registry. The threads count the hits; the counts are moved to the recorder
// whenever they are read.
#include "base/error.h"
#include "runtime/api/api.h"
#include "runtime/api/inner.h"

static const char where[] = "record";

static hone_status need_runtime(const hone_runtime *rt, hone_error *err)
{
    return rt != NULL ? HONE_OK : hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime is NULL");
}

static void note_calls(void *ctx, hone_plan_entry *entry)
{
    (void)ctx;
    hone_plan_entry_note_calls(entry);
}

static void collect(hone_runtime *rt)
{
    hone_plan_table_visit(&rt->plans, note_calls, NULL);
}

// Calls until now are recorded, or not, according to the old setting.
void hone_record_enable(hone_runtime *rt, bool on)
{
    if (rt == NULL) return;
    collect(rt);
    atomic_store(&rt->recording, on);
    hone_plan_table_count(&rt->plans, on || rt->stats_to != NULL);
}

hone_status hone_record_invocation(hone_runtime *rt, const hone_call *call, uint64_t count, hone_error *err)
{
    if (rt == NULL || call == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime and the call must not be NULL");
    hone_status status = hone_runtime_discover(rt, err);
    if (status != HONE_OK) return status;
    const hone_device_info *device = NULL;
    status = hone_runtime_find_device(rt, hone_call_device(call), &device, err);
    if (status != HONE_OK) return status;
    // The call may be for a device of another machine: it is recorded under this machine's CPU.
    return hone_recorder_add(
        rt->recorder, (device != NULL ? device : rt->cpu)->fingerprint, call, count, NULL, NULL, err);
}

hone_status hone_record_scan(
    hone_runtime *rt,
    const char *device,
    bool (*visit)(void *ctx, const hone_store_invocation *invocation),
    void *ctx,
    hone_error *err)
{
    hone_status status = need_runtime(rt, err);
    if (status == HONE_OK && visit == NULL)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, where, "visit must not be NULL");
    if (status != HONE_OK) return status;
    collect(rt);
    return hone_recorder_visit(rt->recorder, hone_runtime_store(rt), device, visit, ctx, err);
}

hone_status hone_record_clear(hone_runtime *rt, const char *device, hone_error *err)
{
    hone_status status = need_runtime(rt, err);
    if (status != HONE_OK) return status;
    collect(rt);
    return hone_recorder_clear(rt->recorder, hone_runtime_store(rt), device, err);
}

hone_status hone_record_flush(hone_runtime *rt, hone_error *err)
{
    hone_status status = need_runtime(rt, err);
    if (status != HONE_OK) return status;
    collect(rt);
    if (hone_recorder_count(rt->recorder) == 0) return HONE_OK; // then no store needs to be opened
    return hone_recorder_flush(rt->recorder, hone_runtime_store(rt), err);
}

uint64_t hone_record_dropped(hone_runtime *rt)
{
    return hone_recorder_dropped(rt->recorder);
}

hone_status hone_record_import(hone_runtime *rt, const char *json, size_t size, size_t *out_count, hone_error *err)
{
    hone_status status = need_runtime(rt, err);
    if (status == HONE_OK && json == NULL)
        status = hone_fail(err, HONE_INVALID_ARGUMENT, "record.import", "json is NULL: give the document's text");
    return status == HONE_OK ? hone_recorder_import(rt->recorder, json, size, out_count, err) : status;
}
