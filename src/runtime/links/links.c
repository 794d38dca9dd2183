// Asks the chain for one request: the table of its links, and what is recorded about an answer.
#include "runtime/links/links.h"

#include "base/error.h"
#include "runtime/links/trust.h"

#define ROW(SOURCE, name, kind, policies, why_not) [HONE_SOURCE_##SOURCE] = hone_request_from_##name,
const hone_links hone_runtime_links = {.find = {HONE_CHAIN(ROW)}, .own = hone_request_from_own};
#undef ROW

// Records a miss that near calls or a heuristic answered, so that `hone tune --recorded` finds it; also an answer that
// was measured in another environment.
static void note_miss(const hone_request *request, const hone_decision *decision)
{
    hone_runtime *rt = request->rt;
    const hone_call *call = request->bucket != NULL ? request->bucket : request->call;
    if (atomic_load_explicit(&rt->recording, memory_order_relaxed)) return; // every call is counted anyway
    hone_error err;
    hone_status status = hone_recorder_add_miss(
        rt->recorder, request->device->fingerprint, call, decision->kernel, hone_source_name(decision->source), &err);
    if (status != HONE_OK) hone_log_write(&rt->log, HONE_LOG_WARNING, "the miss was not noted: %s", err.message);
}

static const hone_kernel_ref *chosen_kernel(const hone_request *request, const hone_decision *decision)
{
    const hone_context_override *override_ = hone_request_override(request);
    if (decision->source == HONE_SOURCE_OVERRIDE && override_ != NULL)
        return hone_request_override_kernel(request, override_);
    return hone_decision_kernel(request->op->algorithm, decision);
}

hone_status hone_request_decide(
    const hone_request *request, hone_decision *out, const hone_kernel_ref **out_kernel, hone_error *err)
{
    hone_status status =
        hone_chain_decide(&hone_runtime_links, request, request->context, hone_request_policy(request), out, err);
    if (status != HONE_OK) return hone_fail_prefix(err, status, "%s", hone_call_text(request->call));
    if (hone_source_is(out->source, HONE_LINK_GUESSED) || out->changed[0] != '\0') note_miss(request, out);
    const hone_kernel_ref *kernel = chosen_kernel(request, out);
    const hone_context_override *override_ = hone_request_override(request);
    if (override_ == NULL || override_->exactly == NULL)
        hone_request_warn(request, kernel, out); // hone_kernel_run asks often, so it logs no warning
    if (out_kernel != NULL) *out_kernel = kernel;
    return HONE_OK;
}
