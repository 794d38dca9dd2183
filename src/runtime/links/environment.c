// The resources that a contest borrows from a runtime, and the host's rules about which kernels may compete.
#include "base/error.h"
#include "runtime/links/links.h"
#include "runtime/links/trust.h"

// Kernels that HONE_DENY names do not compete. Kernels that were disabled for the call do: the contest checks them
// itself.
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
    out->verifies = hone_verification_run;
    out->failed = hone_runtime_found_wrong;
    out->failed_ctx = rt;
    return status;
}
