// In place of onednn.c where oneDNN's headers were not found when hone was built.
#include "kernels/layer_norm/onednn.h"

#include "base/error.h"

static const char where[] = "rivals.onednn";

static const char words[] = "hone was built without oneDNN: install libdnnl-dev (Debian) and build again";

bool hone_layer_norm_onednn_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    (void)call;
    hone_fail(why, HONE_UNAVAILABLE, where, "%s", words);
    return false;
}

hone_status hone_layer_norm_onednn_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    (void)plan;
    (void)out_state;
    (void)out_scratch_bytes;
    return hone_fail(err, HONE_UNAVAILABLE, where, "%s", words);
}

void hone_layer_norm_onednn_release(const hone_kernel *kernel, void *state)
{
    (void)kernel;
    (void)state;
}

hone_status hone_layer_norm_onednn(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)args;
    (void)execution;
    return HONE_UNAVAILABLE;
}
