#include "runtime/api/batch.h"

#include "base/error.h"
#include "os/os.h"

#include <math.h>

static const double first_share = 0.5;  // of the budget, for the first slices
static const double least_slice = 0.25; // of a slice: less is not worth a contest
static const char where[] = "tune.batch";

void hone_batch_init(
    hone_batch *batch, hone_runtime *rt, const hone_tune_options *options, size_t call_count, hone_result *result)
{
    *batch = (hone_batch){.rt = rt, .result = result, .options = *options};
    double seconds = fmin(options->batch_seconds, 3e7);
    if (!(seconds > 0) || call_count == 0) return;
    // A call's next slice begins with what the store has of the one before; fresh would measure all of it again.
    batch->moves = hone_runtime_store(rt) != NULL && !options->no_store && !options->fresh;
    batch->slice_seconds = (batch->moves ? first_share : 1) * seconds / (double)call_count;
    if (options->seconds > 0) batch->slice_seconds = fmin(batch->slice_seconds, options->seconds);
    batch->until_ns = hone_os_now_ns() + (uint64_t)(seconds * 1e9);
}

void hone_batch_deinit(hone_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        hone_call_release(&batch->calls[i].call);
    hone_free(&batch->rt->allocator, batch->calls);
    batch->calls = NULL;
    batch->count = 0;
}

static double seconds_left(const hone_batch *batch)
{
    uint64_t now = hone_os_now_ns();
    return now < batch->until_ns ? (double)(batch->until_ns - now) * 1e-9 : 0;
}

static hone_status remember(hone_batch *batch, const hone_batch_call *call, hone_error *err)
{
    if (!hone_grow(&batch->rt->allocator, &batch->calls, &batch->capacity, batch->count + 1, sizeof *batch->calls))
        return hone_fail_memory(err, where);
    batch->calls[batch->count] = *call;
    hone_call_retain(call->call);
    batch->count++;
    return HONE_OK;
}

hone_status hone_batch_tune(hone_batch *batch, const hone_op *op, const hone_call *call, double count, hone_error *err)
{
    hone_tune_options options = batch->options;
    hone_batch_call entry = {.op = op, .count = fmax(count, 1)};
    if (batch->slice_seconds > 0) options.seconds = batch->slice_seconds;
    uint64_t start = hone_os_now_ns();
    hone_status status = hone_runtime_tune_missing(op, call, &options, batch->result, &entry.outlook, err);
    entry.spent_seconds = (double)(hone_os_now_ns() - start) * 1e-9;
    if (status != HONE_OK || !batch->moves || !(entry.outlook.expected_gain > 0)) return status;
    entry.call = (hone_call *)(uintptr_t)call;
    return remember(batch, &entry, err);
}

// What a step of this call is expected to save over all its calls; 0: it gets no more.
static double worth_of(const hone_batch *batch, const hone_batch_call *call)
{
    double most = batch->options.seconds;
    if (most > 0 && call->spent_seconds >= most) return 0;
    return call->count * call->outlook.time_ns * call->outlook.expected_gain;
}

hone_batch_call *hone_batch_next(const hone_batch *batch)
{
    hone_batch_call *best = NULL;
    for (size_t i = 0; i < batch->count; i++) {
        double worth = worth_of(batch, &batch->calls[i]);
        if (worth > 0 && (best == NULL || worth > worth_of(batch, best))) best = &batch->calls[i];
    }
    return best;
}

static hone_status give_slice(hone_batch *batch, hone_batch_call *call, double seconds, hone_error *err)
{
    hone_tune_options options = batch->options;
    hone_error why = {.message = ""};
    options.seconds = seconds;
    call->outlook = (hone_outlook){0};
    uint64_t start = hone_os_now_ns();
    hone_call *bucket = NULL;
    hone_status status = hone_request_bucket(call->call, &bucket, &why);
    const hone_call *target = bucket != NULL ? bucket : call->call;
    if (status == HONE_OK) status = hone_runtime_tune(call->op, target, &options, batch->result, &call->outlook, &why);
    hone_call_release(&bucket);
    call->spent_seconds += (double)(hone_os_now_ns() - start) * 1e-9;
    if (status == HONE_CANCELLED || status == HONE_OUT_OF_MEMORY)
        return hone_fail(err, status, where, "%s", why.message);
    if (status != HONE_OK)
        hone_log_write(
            &batch->rt->log, HONE_LOG_INFO, "%s: a further slice failed: %s", hone_call_text(call->call), why.message);
    return HONE_OK;
}

hone_status hone_batch_spend_rest(hone_batch *batch, hone_error *err)
{
    hone_status status = HONE_OK;
    while (status == HONE_OK && batch->moves) {
        double left = seconds_left(batch);
        hone_batch_call *call = hone_batch_next(batch);
        if (call == NULL || left < least_slice * batch->slice_seconds) break;
        status = give_slice(batch, call, fmin(left, batch->slice_seconds), err);
    }
    return status;
}
