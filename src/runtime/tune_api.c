// hone_tune on top of the tuner: where a contest's answer goes.
#include "base/error.h"
#include "base/structs.h"
#include "runtime/batch.h"
#include "runtime/runtime.h"
#include "runtime/trust.h"
#include "tune/result/result.h"

#include <string.h>

// What HONE_DENY names does not compete. Kernels put aside do: the contest finds out for itself.
static hone_status admits(void *ctx, const hone_kernel_ref *kernel, const hone_device_info *device, hone_error *why)
{
    hone_runtime *rt = ctx;
    if (hone_rules_match(&rt->deny, kernel->algorithm->name, kernel->kernel.name))
        return hone_fail(why, HONE_UNSUPPORTED, "tune", "HONE_DENY names it");
    return hone_runtime_visit(rt, kernel, device, why);
}

hone_status hone_runtime_contest_environment(
    hone_runtime *rt, const hone_device_info *device, bool store, hone_tune_environment *out, hone_error *err)
{
    hone_status status = hone_runtime_tune_environment(rt, device, store, out, err);
    out->admits = admits;
    out->admits_ctx = rt;
    out->failed = hone_runtime_found_wrong;
    out->failed_ctx = rt;
    return status;
}

static hone_status add_to_result(
    hone_result *result, const hone_turn *turn, const hone_contest *contest, hone_status status, hone_error *err)
{
    bool won = contest->decision.kernel[0] != '\0';
    if (result == NULL || (!won && status != HONE_OK)) return status;
    hone_status added =
        hone_result_add_contest(result, turn->device, turn->call, contest, status == HONE_OK ? err : NULL);
    return status == HONE_OK ? added : status;
}

hone_status hone_runtime_contest(
    hone_turn *turn, const hone_op *op, hone_result *result, hone_decision *out, hone_error *err)
{
    hone_runtime *rt = op->rt;
    hone_tune_environment environment;
    hone_contest contest = {0};
    hone_status status =
        hone_runtime_contest_environment(rt, turn->device, !turn->options->no_store, &environment, err);
    if (status != HONE_OK) return status;
    environment.begin_measuring = hone_turn_begin_measuring;
    environment.end_measuring = hone_turn_end_measuring;
    environment.measuring_ctx = turn;
    // What kernels and callbacks call meanwhile is nested.
    hone_thread_self.depth++;
    status = hone_contest_run(&environment, op->algorithm, turn->call, turn->options, &contest, err);
    hone_thread_self.depth--;
    if (turn->outlook) *turn->outlook = (hone_outlook){contest.decision.evidence.time_ns, contest.expected_gain};
    if (contest.decision.kernel[0] != '\0') {
        hone_error why = {.message = ""};
        hone_status kept = hone_runtime_keep(op, &environment, turn, &contest.decision, &why);
        if (kept != HONE_OK && status == HONE_OK) {
            status = kept;
            if (err != NULL) *err = why;
        }
        if (out != NULL) *out = contest.decision;
    }
    status = add_to_result(result, turn, &contest, status, err);
    hone_contest_deinit(&contest);
    return status;
}

// Whether what somebody else has just found is what these options ask for.
static bool takes_answers(const hone_tune_options *options)
{
    return !options->no_store && !options->fresh && options->platform == NULL && options->kernel == NULL;
}

// Another process's answer is in the store, and this one's memory may hold an older one.
static bool read_again(const hone_request *request, hone_decision *out)
{
    hone_error why;
    if (hone_runtime_links.find[HONE_SOURCE_STORE](request, out, &why) != HONE_OK || !out->verified ||
        out->changed[0] != '\0')
        return false;
    return hone_runtime_remember(request->rt, request->device, hone_call_spec(request->call), out, &why) == HONE_OK;
}

// What another thread or process has found while the turn was waited for.
static bool take_answer(
    const hone_turn *turn, const hone_request *request, hone_result *result, hone_status *out_status, hone_error *err)
{
    hone_contest found = {.count = 0};
    bool is_found = takes_answers(turn->options) &&
                    (turn->key.waited ? read_again(request, &found.decision)
                                      : hone_runtime_is_decided(request->op, turn->call, &found.decision, NULL));
    if (!is_found || found.decision.evidence.regime != turn->options->regime) return false;
    *out_status = add_to_result(result, turn, &found, HONE_OK, err);
    return true;
}

hone_status hone_runtime_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err)
{
    hone_request request;
    bool landed = false, done = false;
    const hone_turn_environment environment = hone_runtime_turn_environment(op->rt);
    hone_status status = hone_request_init(&request, op, call, NULL, err);
    while (status == HONE_OK && !done) {
        hone_turn turn;
        status = hone_turn_begin(&turn, &environment, op->algorithm, request.device, call, options, &landed, err);
        if (status == HONE_OK && (landed || turn.key.waited)) done = take_answer(&turn, &request, result, &status, err);
        if (status == HONE_OK && !done && !landed) {
            turn.outlook = outlook;
            status = hone_runtime_contest(&turn, op, result, NULL, err);
            done = true;
        }
        hone_turn_end(&turn);
    }
    hone_request_deinit(&request);
    return status;
}

// The regime says whether a decision is a stable one, in the store and everywhere.
static hone_status choose_regime(const hone_runtime *rt, hone_tune_options *options, hone_error *err)
{
    if (options->regime < HONE_WARM || options->regime > HONE_COLD_STABLE)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "tune", "options.regime is %d: HONE_WARM or HONE_COLD is asked for",
            (int)options->regime);
    bool cold = options->regime == HONE_COLD || options->regime == HONE_COLD_STABLE;
    options->stable = options->stable || rt->stable || options->regime >= HONE_WARM_STABLE;
    if (options->stable) options->regime = cold ? HONE_COLD_STABLE : HONE_WARM_STABLE;
    return HONE_OK;
}

hone_status hone_tune_options_read(
    const hone_runtime *rt, const hone_tune_options *given, hone_tune_options *out, hone_error *err)
{
    *out = (hone_tune_options){.struct_size = sizeof *out};
    if (given == NULL) return choose_regime(rt, out, err);
    hone_status status =
        hone_struct_copy(out, sizeof *out, given, given->struct_size, "hone_tune_options", "tune", err);
    if (status != HONE_OK) return status;
    if (!(out->seconds >= 0) || !(out->candidate_seconds >= 0) || !(out->wait_seconds >= 0) ||
        !(out->expected_calls >= 0) || !(out->batch_seconds >= 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, "tune",
            "seconds, candidate_seconds, wait_seconds, batch_seconds and expected_calls must be 0 (the default) or "
            "more");
    return choose_regime(rt, out, err);
}

static hone_status finish(hone_result *result, hone_status status, hone_result **out_result)
{
    if (status == HONE_OK || (status == HONE_CANCELLED && hone_result_size(result) > 0))
        *out_result = result;
    else
        hone_result_release(&result);
    return status;
}

hone_status hone_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err)
{
    if (op == NULL || call == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "tune", "the operation, the call and out_result must not be NULL");
    *out_result = NULL;
    hone_tune_options read;
    hone_runtime *rt = op->rt;
    hone_status status = hone_tune_options_read(rt, options, &read, err);
    options = &read;
    hone_result *result = NULL;
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = hone_result_create(rt->allocator, rt->cpu, rt, &result, err);
    if (status != HONE_OK) return status;
    // What is stored for a bucket is what later look-ups of the bucket's calls find.
    hone_call *bucket = NULL;
    status = hone_request_bucket(call, &bucket, err);
    if (status == HONE_OK) status = hone_runtime_tune(op, bucket != NULL ? bucket : call, options, result, NULL, err);
    hone_call_release(&bucket);
    return finish(result, status, out_result);
}

hone_status hone_runtime_parse_call(
    hone_runtime *rt, const char *text, const hone_op **op, hone_call **call, hone_error *err)
{
    char name[HONE_NAME_SIZE], version[16], full[HONE_NAME_SIZE + 20];
    hone_status status = hone_call_text_name(text, name, sizeof name, version, sizeof version, err);
    if (status != HONE_OK) return status;
    char *end = stpcpy(full, name);
    if (version[0] != '\0') strcpy(stpcpy(end, "@v"), version);
    status = hone_op_get(rt, full, op, err);
    return status == HONE_OK ? hone_call_parse(rt->allocator, (*op)->algorithm->signature, text, call, err) : status;
}

hone_status hone_tune_text(
    hone_runtime *rt,
    const char *call_text,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err)
{
    if (rt == NULL || call_text == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "tune", "the runtime, the call and out_result must not be NULL");
    *out_result = NULL;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_status status = hone_runtime_parse_call(rt, call_text, &op, &call, err);
    if (status == HONE_OK) status = hone_tune(op, call, options, out_result, err);
    hone_call_release(&call);
    return status;
}

// Recorded calls --------------------------------------------------------------------------------------------------

typedef struct queue_item {
    char *algorithm; // "name@vVERSION"
    char *call;      // call text; NULL: from spec
    char *spec;
    char *key;
    double count;
} queue_item;

typedef struct queue {
    hone_runtime *rt;
    queue_item *items;
    size_t count, capacity;
    bool failed;
} queue;

static char *copy_or_null(const hone_allocator *allocator, const char *text)
{
    return text == NULL ? NULL : hone_copy_text(allocator, text, strlen(text));
}

static bool add_to_queue(void *ctx, const hone_store_invocation *invocation)
{
    queue *calls = ctx;
    const hone_allocator *allocator = &calls->rt->allocator;
    char name[HONE_NAME_SIZE + 20];
    if (strlen(invocation->key.algorithm) >= HONE_NAME_SIZE || strlen(invocation->key.version) >= 16) return true;
    strcpy(stpcpy(stpcpy(name, invocation->key.algorithm), "@v"), invocation->key.version);
    if (!hone_grow(allocator, &calls->items, &calls->capacity, calls->count + 1, sizeof *calls->items)) {
        calls->failed = true;
        return false;
    }
    queue_item *item = &calls->items[calls->count++];
    *item = (queue_item){
        .algorithm = copy_or_null(allocator, name),
        .call = copy_or_null(allocator, invocation->call),
        .spec = copy_or_null(allocator, invocation->key.spec),
        .key = copy_or_null(allocator, invocation->key.key),
        .count = (double)invocation->count,
    };
    calls->failed = calls->failed || item->algorithm == NULL || item->key == NULL;
    return !calls->failed;
}

static void free_queue(queue *calls)
{
    const hone_allocator *allocator = &calls->rt->allocator;
    for (size_t i = 0; i < calls->count; i++) {
        hone_free(allocator, calls->items[i].algorithm);
        hone_free(allocator, calls->items[i].call);
        hone_free(allocator, calls->items[i].spec);
        hone_free(allocator, calls->items[i].key);
    }
    hone_free(allocator, calls->items);
}

// An ejkernel record carries ejkernel's version, so a version that hone does not have means its newest.
static hone_status find_recorded(
    hone_runtime *rt, const queue_item *item, const hone_op **op, hone_call **call, hone_error *err)
{
    hone_status status = hone_op_get(rt, item->algorithm, op, err);
    if (status == HONE_NOT_FOUND) {
        char name[HONE_NAME_SIZE + 20];
        strcpy(name, item->algorithm);
        *strstr(name, "@v") = '\0';
        status = hone_op_get(rt, name, op, err);
    }
    if (status != HONE_OK) return status;
    hone_signature *signature = (*op)->algorithm->signature;
    if (item->call != NULL) return hone_call_parse(rt->allocator, signature, item->call, call, err);
    if (item->spec != NULL)
        return hone_call_from_spec(rt->allocator, signature, item->spec, strlen(item->spec), call, err);
    return hone_fail(err, HONE_NOT_FOUND, "tune.recorded", "the record holds neither call nor spec");
}

hone_status hone_runtime_tune_missing(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result *result,
    hone_outlook *outlook,
    hone_error *err)
{
    hone_call *bucket = NULL;
    hone_contest decided = {.count = 0};
    hone_status status = hone_request_bucket(call, &bucket, err);
    const hone_call *target = bucket != NULL ? bucket : call;
    const hone_device_info *device = NULL;
    bool is_there =
        status == HONE_OK && !options->fresh && hone_runtime_is_decided(op, target, &decided.decision, &device);
    // An answer of the other regime is none; the store may have one of this.
    bool is_others = is_there && decided.decision.evidence.regime != options->regime;
    hone_tune_options wanted = *options;
    wanted.keep_existing = wanted.keep_existing || is_others;
    if (is_there && !is_others)
        status = hone_result_add_contest(result, device, target, &decided, err);
    else if (status == HONE_OK)
        status = hone_runtime_tune(op, target, &wanted, result, outlook, err);
    hone_call_release(&bucket);
    return status;
}

static hone_status tune_item(hone_batch *batch, const queue_item *item, hone_error *err)
{
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_error why = {.message = ""};
    hone_status status = find_recorded(batch->rt, item, &op, &call, &why);
    if (status == HONE_OK) status = hone_batch_tune(batch, op, call, item->count, &why);
    if (status != HONE_OK && status != HONE_CANCELLED && status != HONE_OUT_OF_MEMORY) {
        hone_result_note_status(batch->result, status);
        status = hone_result_add_failure(
            batch->result, item->call != NULL ? item->call : item->algorithm, item->key, why.message, err);
    } else if (status != HONE_OK && err != NULL)
        *err = why;
    hone_call_release(&call);
    return status;
}

hone_status hone_tune_recorded(
    hone_runtime *rt, const hone_tune_options *options, hone_result **out_result, hone_error *err)
{
    if (rt == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, "tune.recorded", "the runtime and out_result must not be NULL");
    *out_result = NULL;
    hone_tune_options read;
    hone_status status = hone_tune_options_read(rt, options, &read, err);
    options = &read;
    hone_result *result = NULL;
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = hone_result_create(rt->allocator, rt->cpu, rt, &result, err);
    if (status != HONE_OK) return status;
    queue calls = {.rt = rt};
    status = hone_record_get(rt, NULL, add_to_queue, &calls, err);
    if (status == HONE_OK && calls.failed) status = hone_fail_memory(err, "tune.recorded");
    hone_batch batch;
    hone_batch_init(&batch, rt, options, calls.count, result);
    for (size_t i = 0; i < calls.count && status == HONE_OK; i++)
        status = tune_item(&batch, &calls.items[i], err);
    if (status == HONE_OK) status = hone_batch_spend_rest(&batch, err);
    hone_batch_deinit(&batch);
    free_queue(&calls);
    return finish(result, status, out_result);
}
