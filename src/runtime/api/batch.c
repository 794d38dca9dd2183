#include "runtime/api/batch.h"

#include "base/error.h"
#include "os/os.h"
#include "store/records.h"
#include "tune/result/result.h"

#include <math.h>

static const double first_share = 0.5;           // of the budget, for the first slices
static const double least_slice = 0.25;          // as a share of a slice: with less a contest is not worthwhile
static const double growth = 2, most_growth = 8; // of the seconds of a call that was left open
static const char where[] = "tune.batch";

void hone_batch_init(
    hone_batch *batch, hone_runtime *rt, const hone_tune_options *options, size_t call_count, hone_result *result)
{
    *batch = (hone_batch){.rt = rt, .result = result, .options = *options};
    double seconds = fmin(options->batch_seconds, 3e7);
    if (!(seconds > 0) || call_count == 0) return;
    // The next slice of a call starts with the stored samples of the previous one; fresh would measure them again.
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

static hone_tune_options options_of(const hone_batch *batch, bool cold)
{
    hone_tune_options options = batch->options;
    if (cold) options.regime = options.stable ? HONE_COLD_STABLE : HONE_COLD;
    return options;
}

hone_status hone_batch_tune(
    hone_batch *batch, const hone_op *op, const hone_call *call, double count, hone_regime regime, hone_error *err)
{
    const bool cold =
        regime == HONE_COLD && !batch->options.same_regime && hone_call_device(call).type == HONE_DEVICE_CPU;
    hone_tune_options options = options_of(batch, cold);
    hone_batch_call entry = {.op = op, .count = fmax(count, 1), .cold = cold};
    if (batch->slice_seconds > 0) options.seconds = batch->slice_seconds;
    uint64_t start = hone_os_now_ns();
    hone_status status = hone_runtime_tune_missing(op, call, &options, batch->result, &entry.outlook, err);
    entry.spent_seconds = (double)(hone_os_now_ns() - start) * 1e-9;
    if (status != HONE_OK || !batch->moves || !(entry.outlook.expected_gain > 0)) return status;
    entry.call = (hone_call *)(uintptr_t)call;
    return remember(batch, &entry, err);
}

hone_status hone_batch_alias(hone_batch *batch, const hone_store_alias *alias, const hone_call *call, hone_error *err)
{
    hone_store *store = batch->options.no_store ? NULL : hone_runtime_store(batch->rt);
    hone_call *bucket = NULL;
    hone_status status = hone_request_bucket(call, &bucket, err);
    if (status == HONE_OK)
        status = hone_result_add_alias(batch->result, alias, hone_call_key(bucket != NULL ? bucket : call), err);
    hone_call_release(&bucket);
    return status == HONE_OK && store != NULL ? hone_store_put_alias(store, alias, err) : status;
}

// The expected saving of a step over all runs of this call; 0 if it gets no more slices.
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

// HONE_CANCELLED or HONE_OUT_OF_MEMORY end the batch. *out_done: whether it found an answer.
static hone_status tune_again(
    hone_batch *batch,
    const hone_batch_call *call,
    double seconds,
    hone_outlook *outlook,
    bool *out_done,
    hone_error *err)
{
    hone_tune_options options = options_of(batch, call->cold);
    hone_error why = {.message = ""};
    hone_call *bucket = NULL;
    options.seconds = seconds;
    hone_status status = hone_request_bucket(call->call, &bucket, &why);
    const hone_call *target = bucket != NULL ? bucket : call->call;
    if (status == HONE_OK) status = hone_runtime_tune(call->op, target, &options, batch->result, outlook, &why);
    hone_call_release(&bucket);
    *out_done = status == HONE_OK;
    if (status == HONE_CANCELLED || status == HONE_OUT_OF_MEMORY)
        return hone_fail(err, status, where, "%s", why.message);
    if (status != HONE_OK)
        hone_log_write(
            &batch->rt->log, HONE_LOG_INFO, "%s: a further slice failed: %s", hone_call_text(call->call), why.message);
    return HONE_OK;
}

static hone_status give_slice(hone_batch *batch, hone_batch_call *call, double seconds, hone_error *err)
{
    bool done;
    call->outlook = (hone_outlook){0};
    uint64_t start = hone_os_now_ns();
    hone_status status = tune_again(batch, call, seconds, &call->outlook, &done, err);
    call->spent_seconds += (double)(hone_os_now_ns() - start) * 1e-9;
    return status;
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

// Contests left open ---------------------------------------------------------------------------------------------------

// Answers from before allowed_seconds existed only have the duration of their contest.
static double allowed_of(const hone_evidence *answer)
{
    return answer->allowed_seconds > 0 ? answer->allowed_seconds : answer->seconds;
}

bool hone_batch_is_open(const hone_batch *batch, const hone_evidence *answer, double *out_seconds)
{
    const hone_tune_options *options = &batch->options;
    const double asked = options->seconds > 0 ? options->seconds : HONE_TUNE_SECONDS;
    const double least = batch->slice_seconds > 0 ? batch->slice_seconds : asked;
    const double before = allowed_of(answer), most = most_growth * asked;
    // A contest among only some of the kernels decides nothing.
    const bool of_all = options->kernel == NULL && options->platform == NULL && !options->keep_existing;
    *out_seconds = fmin(fmax(growth * before, least), most);
    return answer->undecided[0] != '\0' && of_all && before < most;
}

hone_status hone_batch_take_up(
    hone_batch *batch, const hone_op *op, const hone_call *call, double seconds, hone_error *err)
{
    const hone_batch_call open = {.op = op, .call = (hone_call *)(uintptr_t)call};
    const double left = batch->until_ns > 0 ? seconds_left(batch) : seconds;
    bool done = false;
    hone_status status = HONE_OK;
    if (left > least_slice * batch->slice_seconds)
        status = tune_again(batch, &open, fmin(seconds, left), NULL, &done, err);
    if (status != HONE_OK || done) return status;
    return hone_runtime_tune_missing(op, call, &batch->options, batch->result, NULL, err);
}
