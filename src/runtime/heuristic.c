// The last answer: the first kernel in the registry's order that can run the call, with its default.
#include "base/error.h"
#include "runtime/negatives.h"

#include <string.h>

static const char where[] = "decide";

// What a first look has found so far.
typedef struct look {
    const hone_request *request;
    hone_negatives negatives;
    bool asked;         // the stores, for what failed
    hone_error reason;  // why the last kernel cannot run the call
    hone_error failure; // of the last that could, and failed
} look;

static bool is_harm(hone_failure failure)
{
    return failure == HONE_FAILURE_RUN || failure == HONE_FAILURE_WRONG || failure == HONE_FAILURE_BOUNDS ||
           failure == HONE_FAILURE_CRASH || failure == HONE_FAILURE_TIMEOUT || failure == HONE_FAILURE_TRACES;
}

// A contest has found this very config wrong or harmful, in a process of its own: it is not tried in this one.
static hone_status refuse_known(look *l, const hone_kernel_ref *kernel, const hone_config *config)
{
    char text[sizeof l->negatives.rows->config];
    if (!l->asked && hone_negatives_of_call(l->request, &l->negatives, &l->reason) != HONE_OK)
        return HONE_OUT_OF_MEMORY;
    l->asked = true;
    if (l->negatives.count == 0 || hone_config_json(kernel->space, config, text, sizeof text) >= sizeof text)
        return HONE_OK;
    for (size_t i = 0; i < l->negatives.count; i++) {
        const hone_negative *row = &l->negatives.rows[i];
        if (!row->stands || !is_harm(row->failure) || strcmp(row->kernel, kernel->kernel.name) != 0 ||
            strcmp(row->config, text) != 0)
            continue;
        return hone_fail(
            &l->reason, HONE_KERNEL_FAILED, where, "%s %s failed when it was measured (%s: %s)", row->kernel, text,
            hone_failure_name(row->failure), row->reason);
    }
    return HONE_OK;
}

// HONE_OK: it answers. HONE_NOT_FOUND: another has to. HONE_OUT_OF_MEMORY.
static hone_status consider(look *l, const hone_kernel_ref *kernel, hone_decision *out)
{
    const hone_request *request = l->request;
    hone_config config;
    hone_status status = hone_request_admits(request, kernel, &l->reason);
    if (status == HONE_OK)
        status = hone_kernel_default_config(kernel, request->call, request->device, &config, &l->reason);
    if (status == HONE_OK && !kernel->kernel.is_reference) status = refuse_known(l, kernel, &config);
    if (status == HONE_KERNEL_FAILED) l->failure = l->reason;
    if (status != HONE_OK) return status == HONE_OUT_OF_MEMORY ? status : HONE_NOT_FOUND;
    hone_decision_fill(out, kernel, &config, hone_call_key(request->call));
    out->verified = false;
    return HONE_OK;
}

// The reference only when nothing else can.
static hone_status look_through(look *l, hone_decision *out)
{
    size_t count = 0;
    const hone_kernel_ref *const *kernels = hone_registry_list(l->request->op->algorithm, &count);
    for (int references = 0; references < 2; references++) {
        for (size_t i = 0; i < count; i++) {
            if (kernels[i]->kernel.is_reference != (references == 1)) continue;
            hone_status status = consider(l, kernels[i], out);
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
    if (l.failure.message[0] != '\0')
        return hone_fail(
            why, HONE_KERNEL_FAILED, where, "every kernel that could run it failed; the last was %s",
            l.failure.message);
    return hone_fail(why, HONE_NOT_FOUND, where, "no kernel can run it; the last said: %s", l.reason.message);
}
