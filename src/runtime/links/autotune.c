// The link that tunes: runs a contest for the call, unless another thread or process tunes it.
#include "runtime/links/links.h"

#include "base/error.h"
#include "registry/names.h"
#include "runtime/links/trust.h"

hone_status hone_permit_add_to_result(
    hone_result *result, const hone_permit *permit, const hone_contest *contest, hone_status status, hone_error *err)
{
    bool won = contest->decision.kernel[0] != '\0';
    if (result == NULL || (!won && status != HONE_OK)) return status;
    hone_status added =
        hone_result_add_contest(result, permit->device, permit->call, contest, status == HONE_OK ? err : NULL);
    return status == HONE_OK ? added : status;
}

hone_status hone_runtime_contest(
    hone_permit *permit,
    const hone_op *op,
    hone_result *result,
    hone_decision *out,
    hone_outlook *outlook,
    hone_error *err)
{
    hone_runtime *rt = op->rt;
    hone_tune_environment environment;
    hone_contest contest = {0};
    hone_status status =
        hone_runtime_contest_environment(rt, permit->device, !permit->options->no_store, &environment, err);
    if (status != HONE_OK) return status;
    environment.begin_measuring = hone_permit_begin_measuring;
    environment.end_measuring = hone_permit_end_measuring;
    environment.measuring_ctx = permit;
    const hone_contest_request request = {&environment, op->algorithm, permit->call, permit->options};
    // Calls that kernels and callbacks make meanwhile are nested.
    hone_thread_self.depth++;
    status = hone_contest_run(&request, &contest, err);
    hone_thread_self.depth--;
    const double seconds = permit->options->seconds;
    contest.decision.evidence.allowed_seconds = seconds > 0 ? seconds : HONE_TUNE_SECONDS;
    if (outlook != NULL) *outlook = (hone_outlook){contest.decision.evidence.time_ns, contest.expected_gain};
    if (contest.decision.kernel[0] != '\0') {
        hone_error why = {.message = ""};
        hone_status kept = hone_runtime_keep(op, &environment, permit, &contest.decision, &why);
        if (kept != HONE_OK && status == HONE_OK) {
            status = kept;
            if (err != NULL) *err = why;
        }
        if (out != NULL) *out = contest.decision;
    }
    status = hone_permit_add_to_result(result, permit, &contest, status, err);
    hone_contest_deinit(&contest);
    return status;
}

static hone_status tune_now(const hone_request *request, hone_permit *permit, hone_decision *out, hone_error *why)
{
    hone_status status = hone_runtime_contest(permit, request->op, NULL, out, NULL, why);
    if (status == HONE_OK) status = hone_request_accept(request, out, why);
    out->bucketed = permit->call != request->call;
    return status == HONE_OK ? hone_request_still_trusts(request, out, why) : status;
}

// Checks what others may have found while this thread waited for the permit. If the context has replaced the memory
// link, only an answer that was found just now counts.
static hone_status look_again(
    const hone_request *request, const hone_permit *permit, bool landed, hone_decision *out, hone_error *why)
{
    const bool asks = landed || hone_context_find_link(request->context, HONE_SOURCE_MEMORY) == NULL;
    hone_status status = HONE_NOT_FOUND;
    if (asks) status = hone_request_from_memory(request, out, why);
    return status == HONE_NOT_FOUND && permit->key.waited ? hone_request_from_store(request, out, why) : status;
}

static hone_status tune(const hone_request *request, const hone_call *call, hone_decision *out, hone_error *why)
{
    hone_regime regime = hone_regime_with(request->rt->regime, request->rt->stable);
    // A program that runs on several devices has one regime. On a device that does not have it, warm is the same.
    if (!hone_platform_has_regime(request->device->platform, regime))
        regime = hone_regime_with(HONE_WARM, request->rt->stable);
    const hone_tune_options options = {
        .struct_size = sizeof options,
        .regime = regime,
        .no_store = !hone_runtime_keeps(request->rt, request->context),
        .stable = request->rt->stable};
    const hone_permit_environment environment = hone_runtime_permit_environment(request->rt);
    hone_permit permit;
    bool landed = false;
    hone_status status =
        hone_permit_begin(&permit, &environment, request->op->algorithm, request->device, call, &options, &landed, why);
    if (status == HONE_OK) status = look_again(request, &permit, landed, out, why);
    if (status == HONE_NOT_FOUND && landed) // trying the same again would find nothing
        hone_fail(why, HONE_NOT_FOUND, "decide", "another thread tuned it meanwhile and found no answer");
    else if (status == HONE_NOT_FOUND)
        status = tune_now(request, &permit, out, why);
    hone_permit_end(&permit);
    return status;
}

// The winner of a bucket may not accept the scalars of this call: then the call with general scalars is tuned.
hone_status hone_request_from_autotune(const hone_request *request, hone_decision *out, hone_error *why)
{
    const hone_call *general = request->stand_ins.general;
    hone_status status = tune(request, request->bucket != NULL ? request->bucket : request->call, out, why);
    if (status == HONE_NOT_FOUND && general != NULL) status = tune(request, general, out, why);
    // Whatever prevented the tuner from answering, the heuristic can still answer.
    if (status != HONE_OK && status != HONE_OUT_OF_MEMORY && status != HONE_CANCELLED)
        why->status = status = HONE_NOT_FOUND;
    return status;
}
