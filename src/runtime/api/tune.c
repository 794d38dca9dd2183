// hone_tune: one call, its permit, and answers that others found meanwhile.
#include "base/error.h"
#include "base/hash.h"
#include "base/structs.h"
#include "hone/offline.h"
#include "registry/names.h"
#include "runtime/api/api.h"
#include "store/records.h"
#include "tune/result/result.h"

#include <string.h>

static const char where[] = "tune";

// Whether these options accept an answer that another thread or process has just found.
static bool takes_answers(const hone_tune_options *options)
{
    return !options->no_store && !options->fresh && options->platform == NULL && options->kernel == NULL &&
           options->tuner == NULL;
}

// Another process's answer is in the store, while this process's memory may hold an older one.
static bool read_again(const hone_request *request, hone_decision *out)
{
    hone_error why;
    if (hone_runtime_links.find[HONE_SOURCE_STORE](request, out, &why) != HONE_OK || !out->verified ||
        out->changed[0] != '\0')
        return false;
    return hone_runtime_remember(request->rt, request->device, hone_call_spec(request->call), out, &why) == HONE_OK;
}

// Takes an answer that another thread or process has found while this one waited for the permit.
static bool take_answer(
    const hone_permit *permit,
    const hone_request *request,
    hone_result *result,
    hone_status *out_status,
    hone_error *err)
{
    hone_contest found = {.count = 0};
    bool is_found = takes_answers(permit->options) &&
                    (permit->key.waited ? read_again(request, &found.decision)
                                        : hone_runtime_is_decided(request->op, permit->call, &found.decision, NULL));
    if (!is_found || found.decision.evidence.regime != permit->options->regime) return false;
    *out_status = hone_permit_add_to_result(result, permit, &found, HONE_OK, err);
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
    const hone_permit_environment environment = hone_runtime_permit_environment(op->rt);
    hone_status status = hone_request_init(&request, op, call, NULL, err);
    while (status == HONE_OK && !done) {
        hone_permit permit;
        status = hone_permit_begin(&permit, &environment, op->algorithm, request.device, call, options, &landed, err);
        if (status == HONE_OK && (landed || permit.key.waited))
            done = take_answer(&permit, &request, result, &status, err);
        if (status == HONE_OK && !done && !landed) {
            status = hone_runtime_contest(&permit, op, result, NULL, outlook, err);
            done = true;
        }
        hone_permit_end(&permit);
    }
    hone_request_deinit(&request);
    return status;
}

// The regime also says whether a decision is a stable one, in the store and everywhere else.
static hone_status choose_regime(const hone_runtime *rt, hone_tune_options *options, hone_error *err)
{
    if (options->regime < HONE_WARM || options->regime >= HONE_REGIME_COUNT)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "options.regime is %d: expected HONE_WARM, HONE_COLD, HONE_GRAPH or HONE_EAGER", (int)options->regime);
    options->stable = options->stable || rt->stable || hone_regime_is_stable(options->regime);
    options->regime = hone_regime_with(options->regime, options->stable);
    return HONE_OK;
}

// Limits a time so that its deadline, in nanoseconds, fits in 64 bits.
static double within_clock(double seconds)
{
    static const double most = 1e8;
    return seconds < most ? seconds : most;
}

hone_status hone_tune_options_read(
    const hone_runtime *rt, const hone_tune_options *given, hone_tune_options *out, hone_error *err)
{
    *out = (hone_tune_options){.struct_size = sizeof *out, .no_store = !hone_runtime_keeps(rt, hone_context_current())};
    if (given == NULL) return choose_regime(rt, out, err);
    hone_status status = hone_struct_copy(out, sizeof *out, given, given->struct_size, "hone_tune_options", where, err);
    if (status != HONE_OK) return status;
    out->no_store = out->no_store || !hone_runtime_keeps(rt, hone_context_current());
    if (!(out->seconds >= 0) || !(out->candidate_seconds >= 0) || !(out->wait_seconds >= 0) ||
        !(out->expected_calls >= 0) || !(out->batch_seconds >= 0))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "seconds, candidate_seconds, wait_seconds, batch_seconds and expected_calls must be 0 (the default) or "
            "more");
    if (!hone_tolerance_is_valid(&out->tolerance))
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "options.tolerance is absolute %g, relative %g, scale %g: expected numbers of 0 (all: the algorithm's) or "
            "more",
            out->tolerance.absolute, out->tolerance.relative, out->tolerance.scale);
    if (out->isolation < HONE_ISOLATION_DEFAULT || out->isolation > HONE_ISOLATION_IN_PROCESS)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where,
            "options.isolation is %d: expected HONE_ISOLATION_DEFAULT, HONE_ISOLATION_WORKER or "
            "HONE_ISOLATION_IN_PROCESS",
            (int)out->isolation);
    out->seconds = within_clock(out->seconds);
    out->candidate_seconds = within_clock(out->candidate_seconds);
    out->wait_seconds = within_clock(out->wait_seconds);
    out->batch_seconds = within_clock(out->batch_seconds);
    if (out->tuner != NULL && out->tuner->struct_size < sizeof *out->tuner)
        return hone_fail(
            err, HONE_INVALID_ARGUMENT, where, "struct_size of options.tuner is %zu: set it to sizeof(hone_tuner)",
            out->tuner->struct_size);
    if (out->tuner != NULL && out->tuner->run == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "options.tuner has no function: tuner->run is NULL");
    return choose_regime(rt, out, err);
}

hone_status hone_tune_finish(hone_result *result, hone_status status, hone_result **out_result)
{
    if (status == HONE_OK || (status == HONE_CANCELLED && hone_result_size(result) > 0))
        *out_result = result;
    else
        hone_result_release(&result);
    return status;
}

typedef struct labelling {
    const hone_call *call;
    const char *entry;
    hone_result *result;
    hone_status status;
    hone_error *err;
} labelling;

static bool take_label(void *ctx, const hone_store_alias *alias)
{
    labelling *l = ctx;
    const hone_signature *signature = hone_call_signature(l->call);
    if (strcmp(alias->key.key, hone_call_key(l->call)) == 0 &&
        strcmp(alias->key.algorithm, hone_signature_name(signature)) == 0 &&
        strcmp(alias->key.version, hone_signature_version(signature)) == 0)
        l->status = hone_result_add_alias(l->result, alias, l->entry, l->err);
    return l->status == HONE_OK;
}

// The labels by which the store knows the call go with the result to other machines. If the store fails to provide
// them, the result is still returned.
static hone_status note_labels(
    hone_runtime *rt, const hone_call *call, const char *entry, hone_result *result, hone_error *err)
{
    hone_store *store = hone_runtime_store(rt);
    hone_error why = {.message = ""};
    labelling l = {call, entry, result, HONE_OK, err};
    if (store != NULL && hone_store_aliases(store, NULL, take_label, &l, &why) != HONE_OK)
        hone_log_write(&rt->log, HONE_LOG_WARNING, "the labels of a call were not read: %s", why.message);
    return l.status;
}

// The call that remains to be tuned after a call is decided: the one with other scalars of role `any`, if the winner
// does not accept those. *out is NULL if none remains.
static hone_status find_left(const hone_op *op, const hone_call *call, hone_call **out, hone_error *err)
{
    hone_decision decision;
    hone_status status = hone_call_general(call, out, err);
    if (status == HONE_OK && *out != NULL &&
        (!hone_runtime_is_decided(op, call, &decision, NULL) || hone_runtime_is_decided(op, *out, &decision, NULL)))
        hone_call_release(out);
    return status;
}

static hone_status tune_left(
    const hone_op *op, const hone_call *call, const hone_tune_options *options, hone_result *result, hone_error *err)
{
    hone_call *left = NULL;
    hone_status status = find_left(op, call, &left, err);
    if (status == HONE_OK && left != NULL) status = hone_runtime_tune(op, left, options, result, NULL, err);
    hone_call_release(&left);
    return status;
}

// The winner for the bucket of a call may refuse the call itself, for example if only the reference accepts a scalar.
static hone_status check_serves(const hone_op *op, const hone_call *bucket, const hone_call *call, hone_error *err)
{
    hone_decision decision;
    if (!hone_runtime_is_decided(op, bucket, &decision, NULL) || hone_runtime_is_decided(op, call, &decision, NULL))
        return HONE_OK;
    return hone_fail(
        err, HONE_NOT_FOUND, where,
        "none of the kernels for %s supports %s: the reference computes it; hone explain says what each kernel asks "
        "for",
        hone_call_text(bucket), hone_call_text(call));
}

hone_status hone_tune(
    const hone_op *op,
    const hone_call *call,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err)
{
    if (op == NULL || call == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the operation, the call and out_result must not be NULL");
    *out_result = NULL;
    hone_tune_options read;
    hone_runtime *rt = op->rt;
    hone_status status = hone_call_check(call, op->algorithm->signature, where, err);
    if (status == HONE_OK) status = hone_tune_options_read(rt, options, &read, err);
    options = &read;
    hone_result *result = NULL;
    if (status == HONE_OK) status = hone_runtime_discover(rt, err);
    if (status == HONE_OK) status = hone_result_create(rt->allocator, rt->cpu, rt, &result, err);
    if (status != HONE_OK) return status;
    // The decision is stored for the bucket, where later lookups of its calls find it.
    hone_call *bucket = NULL;
    status = hone_request_bucket(call, &bucket, err);
    const hone_call *target = bucket != NULL ? bucket : call;
    if (status == HONE_OK) status = hone_runtime_tune(op, target, options, result, NULL, err);
    if (status == HONE_OK) status = tune_left(op, target, options, result, err);
    if (status == HONE_OK) status = note_labels(rt, call, hone_call_key(target), result, err);
    if (status == HONE_OK && bucket != NULL) status = check_serves(op, bucket, call, err);
    hone_call_release(&bucket);
    return hone_tune_finish(result, status, out_result);
}

typedef struct answered {
    hone_evidence *evidence;
    bool verified;
} answered;

static bool read_answer(void *ctx, const hone_store_record *record)
{
    const hone_store_decision *row = record->decision;
    answered *answer = ctx;
    answer->verified = row->verified && hone_evidence_of(row->evidence, answer->evidence);
    return true;
}

// Reads the decision of the user's store for a regime other than the one that answers.
static bool is_stored(const hone_op *op, const hone_call *call, const hone_tune_options *options, hone_evidence *out)
{
    hone_request request;
    hone_error why;
    answered answer = {out, false};
    hone_store *store = hone_runtime_store(op->rt);
    hone_status status = hone_request_init(&request, op, call, NULL, &why);
    if (status == HONE_OK && store != NULL) {
        const hone_store_key key = hone_request_key(&request, call);
        status = hone_store_get(store, HONE_RECORD_DECISION, &key, options->regime, read_answer, &answer, &why);
    }
    hone_request_deinit(&request);
    return status == HONE_OK && answer.verified;
}

bool hone_runtime_is_answered(
    const hone_op *op, const hone_call *call, const hone_tune_options *options, hone_evidence *out)
{
    hone_call *bucket = NULL;
    hone_decision decision;
    hone_error why;
    bool is_there = false;
    if (options->fresh || hone_request_bucket(call, &bucket, &why) != HONE_OK) return false;
    const hone_call *target = bucket != NULL ? bucket : call;
    if (hone_runtime_is_decided(op, target, &decision, NULL)) {
        *out = decision.evidence;
        is_there = decision.evidence.regime == options->regime || is_stored(op, target, options, out);
    }
    hone_call *left = NULL;
    is_there = is_there && find_left(op, target, &left, &why) == HONE_OK && left == NULL;
    hone_call_release(&left);
    hone_call_release(&bucket);
    return is_there;
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
    // A decision of the other regime does not count; the store may have one of this regime.
    bool is_others = is_there && decided.decision.evidence.regime != options->regime;
    hone_tune_options wanted = *options;
    wanted.keep_existing = wanted.keep_existing || is_others;
    if (is_there && !is_others)
        status = hone_result_add_contest(result, device, target, &decided, err);
    else if (status == HONE_OK)
        status = hone_runtime_tune(op, target, &wanted, result, outlook, err);
    if (status == HONE_OK) status = tune_left(op, target, &wanted, result, err);
    hone_call_release(&bucket);
    return status;
}

hone_status hone_tune_text(
    hone_runtime *rt,
    const char *call_text,
    const hone_tune_options *options,
    hone_result **out_result,
    hone_error *err)
{
    if (rt == NULL || call_text == NULL || out_result == NULL)
        return hone_fail(err, HONE_INVALID_ARGUMENT, where, "the runtime, the call and out_result must not be NULL");
    *out_result = NULL;
    const hone_op *op = NULL;
    hone_call *call = NULL;
    hone_status status = hone_call_of_label(rt, call_text, &op, &call, err);
    if (status == HONE_OK) status = hone_tune(op, call, options, out_result, err);
    hone_call_release(&call);
    return status;
}
