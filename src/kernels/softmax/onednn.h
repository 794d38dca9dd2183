// oneDNN's softmax as a kernel.
#ifndef HONE_KERNELS_SOFTMAX_ONEDNN_H
#define HONE_KERNELS_SOFTMAX_ONEDNN_H

#include "hone/kernel.h"

bool hone_softmax_onednn_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
hone_status hone_softmax_onednn_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
hone_run_function hone_softmax_onednn;

#endif
