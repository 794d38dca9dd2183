// The last link: the first kernel in the registry's order that can run the call, with its default config. Kernels that
// yield to others come after these, and the reference comes last.
#include "base/error.h"
#include "runtime/links/negatives.h"
#include "runtime/links/trust.h"
#include "runtime/links/verified.h"

static const char where[] = "decide";

// The state of one search.
typedef struct look {
    const hone_request *request;
    hone_negatives negatives;
    bool asked;           // the stores were asked for failures
    bool any_yields;      // some kernel that can run the call yields to others
    hone_error reason;    // why the last kernel cannot run the call
    hone_error failure;   // of the last that could, and failed
    hone_error untrusted; // of the first that could, and was never verified
} look;

// A contest has found this exact config wrong or harmful, in a separate process: it is not tried in this one.
static hone_status refuse_known(look *l, const hone_kernel_ref *kernel, const hone_config *config)
{
    if (!l->asked && hone_negatives_of_call(l->request, &l->negatives, &l->reason) != HONE_OK)
        return HONE_OUT_OF_MEMORY;
    l->asked = true;
    return hone_negatives_check(&l->negatives, kernel, config, &l->reason);
}

typedef enum turn { FIRST, YIELDING, REFERENCES, TURNS } turn;

// Whether a kernel is considered in this pass. Called only for a kernel that can run the call, since the checks assume
// that.
static bool is_its_turn(look *l, const hone_kernel_ref *kernel, turn now)
{
    if (now == REFERENCES) return true;
    const hone_request *request = l->request;
    // A kernel that is not built in was not verified for a large call.
    const bool is_unsure = !kernel->builtin && !request->rt->allows_unverified && hone_request_is_large(request);
    const bool yields = is_unsure || hone_kernel_yields(kernel, request->call, request->device);
    l->any_yields = l->any_yields || yields;
    return yields == (now == YIELDING);
}

// HONE_OK if the kernel answers the call; HONE_NOT_FOUND if another has to; HONE_OUT_OF_MEMORY.
static hone_status consider(look *l, const hone_kernel_ref *kernel, turn now, hone_decision *out)
{
    const hone_request *request = l->request;
    hone_config config;
    hone_status status = hone_request_admits(request, kernel, &l->reason);
    if (status == HONE_OK && !is_its_turn(l, kernel, now)) return HONE_NOT_FOUND;
    if (status == HONE_OK)
        status = hone_kernel_default_config(kernel, request->call, request->device, &config, &l->reason);
    if (status == HONE_OK && !kernel->kernel.is_reference) status = refuse_known(l, kernel, &config);
    if (status == HONE_OK) {
        status = hone_request_trusts(request, kernel, &config, &l->reason);
        if (status == HONE_NOT_FOUND && l->untrusted.message[0] == '\0') l->untrusted = l->reason;
    }
    if (status == HONE_KERNEL_FAILED) l->failure = l->reason;
    if (status != HONE_OK) return status == HONE_OUT_OF_MEMORY ? status : HONE_NOT_FOUND;
    hone_decision_fill(out, kernel, &config, hone_call_key(request->call));
    out->verified = false;
    return HONE_OK;
}

static hone_status look_through(look *l, hone_decision *out)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(l->request->op->algorithm, &count);
    for (turn now = FIRST; now < TURNS; now++) {
        if (now == YIELDING && !l->any_yields) continue;
        for (size_t i = 0; i < count; i++) {
            if (kernels[i]->kernel.is_reference != (now == REFERENCES)) continue;
            hone_status status = consider(l, kernels[i], now, out);
            if (status != HONE_NOT_FOUND) return status;
        }
    }
    return HONE_NOT_FOUND;
}

hone_status hone_request_from_heuristic(const hone_request *request, hone_decision *out, hone_error *why)
{
    look l = {
        .request = request,
        .negatives = {.allocator = request->rt->allocator},
        .reason = {.message = "no kernel is registered"},
    };
    hone_status status = look_through(&l, out);
    hone_negatives_deinit(&l.negatives);
    if (status == HONE_OUT_OF_MEMORY) return hone_fail_memory(why, where);
    if (status == HONE_OK) return HONE_OK;
    if (l.untrusted.message[0] != '\0') return hone_fail(why, HONE_NOT_FOUND, where, "%s", l.untrusted.message);
    if (l.failure.message[0] != '\0')
        return hone_fail(
            why, HONE_KERNEL_FAILED, where, "every kernel that could run it failed; the last was %s",
            l.failure.message);
    return hone_fail(why, HONE_NOT_FOUND, where, "no kernel can run it; the last said: %s", l.reason.message);
}
