// Replaces onednn.c if oneDNN's headers were not found when hone was built.
#include "kernels/softmax/onednn.h"

#include "kernels/rivals/rivals.h"

bool hone_softmax_onednn_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    (void)call;
    hone_onednn_is_absent(why);
    return false;
}

hone_status hone_softmax_onednn_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)out_scratch_bytes;
    return hone_onednn_is_absent(err);
}

hone_status hone_softmax_onednn(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_UNAVAILABLE;
}
