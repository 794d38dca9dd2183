// A turn on a device, for callers that measure without tuning.
#include "base/error.h"
#include "base/memory.h"
#include "config/permit.h"
#include "hone/measure.h"
#include "runtime/api/api.h"

static const char where[] = "turn.begin";

struct hone_turn {
    hone_runtime *rt;
    hone_permit permit;
    hone_permit_environment environment;
    hone_tune_options options;
};

hone_status hone_turn_begin(
    hone_runtime *rt,
    const hone_device_info *device,
    const hone_call *call,
    const hone_tune_options *options,
    hone_turn **out,
    hone_error *err)
{
    if (out != NULL) *out = NULL;
    if (rt == NULL || device == NULL || call == NULL || out == NULL)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "the runtime, the device, the call and out must not be NULL");
    hone_turn *turn = hone_alloc(&rt->allocator, sizeof *turn);
    if (turn == NULL) return hone_fail_memory(err, where);
    turn->rt = rt;
    turn->environment = hone_runtime_permit_environment(rt);
    hone_status status = hone_tune_options_read(rt, options, &turn->options, err);
    if (status == HONE_OK)
        status = hone_permit_begin_device(&turn->permit, &turn->environment, device, call, &turn->options, err);
    if (status == HONE_OK)
        *out = turn;
    else
        hone_free(&rt->allocator, turn);
    return status;
}

void hone_turn_end(hone_turn **turn)
{
    if (turn == NULL || *turn == NULL) return;
    hone_permit_end_measuring(&(*turn)->permit);
    hone_free(&(*turn)->rt->allocator, *turn);
    *turn = NULL;
}
