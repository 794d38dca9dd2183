// Deciding a call before it is executed, from its description.
#include "xla_ffi/host.h"
#include "xla_ffi/site.h"

// A call is bound to addresses that nobody reads: aligned as XLA's are, and so far apart that nothing overlaps.
static void *made_up_address(size_t i)
{
    return (void *)(uintptr_t)((i + 1) << 40);
}

hone_status hone_xla_prepare(const hone_op *op, const hone_call *call, hone_context *context, hone_error *err)
{
    size_t count = hone_signature_count(hone_call_signature(call));
    const hone_value *described = hone_call_values(call);
    hone_value values[HONE_XLA_VALUES];
    hone_tensor tensors[HONE_XLA_VALUES];
    hone_context *quiet;
    hone_runtime *rt = hone_xla_runtime(err);
    if (rt == NULL || count > HONE_XLA_VALUES) return rt == NULL ? HONE_UNAVAILABLE : HONE_UNSUPPORTED;
    for (size_t i = 0; i < count; i++) {
        values[i] = described[i];
        if (described[i].tag != HONE_VALUE_TENSOR) continue;
        tensors[i] = *described[i].as.tensor;
        tensors[i].data = made_up_address(i);
        tensors[i].byte_offset = 0;
        values[i] = hone_of_tensor(&tensors[i]);
    }
    hone_status status = hone_xla_quiet(rt, context, &quiet, err);
    if (status != HONE_OK) return status;
    const hone_plan *plan = NULL;
    hone_context *previous = hone_context_enter(quiet);
    status = hone_bind(op, values, count, &plan, err);
    hone_context_enter(previous);
    hone_plan_release(&plan);
    return status;
}
