#include "kernels/softmax/onednn.h"

#include "base/error.h"
#include "kernels/common/matrix.h"
#include "kernels/rivals/onednn.h"
#include "kernels/softmax/softmax.h"
#include "kernels/vector/arguments.h"

static const char where[] = "rivals.onednn";

static bool goes_back(const hone_tensor *tensor)
{
    for (int32_t i = 0; tensor->strides != NULL && i < tensor->ndim; i++)
        if (tensor->strides[i] < 0) return true;
    return false;
}

bool hone_softmax_onednn_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    if (!hone_onednn_is_here(why)) return false;
    const hone_tensor *x = hone_call_tensor(call, SOFTMAX_X);
    const char *reason = NULL;
    if (hone_float_id(x->dtype) == HONE_F16)
        reason = "oneDNN 2.6 has softmax in f32 and bf16 on a CPU";
    else if (hone_number_of(&hone_call_values(call)[SOFTMAX_SCALE], 1) != 1)
        reason = "oneDNN's softmax has no scale";
    else if (hone_tensor_elements(x) == 0)
        reason = "there is nothing to do";
    else if (goes_back(x) || goes_back(hone_call_tensor(call, SOFTMAX_Y)))
        reason = "oneDNN takes no negative strides";
    if (reason != NULL) hone_fail(why, HONE_UNSUPPORTED, where, "%s", reason);
    return reason == NULL;
}

hone_status hone_softmax_onednn_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_DST};
    const hone_tensor *x = hone_call_tensor(plan->call, SOFTMAX_X);
    hone_onednn onednn;
    dnnl_memory_desc_t operands[2];
    dnnl_softmax_v2_desc_t operation;
    hone_status status = hone_onednn_open(&onednn, err);
    if (status != HONE_OK) return status;
    if (!hone_onednn_describe(&onednn, &operands[0], x) ||
        !hone_onednn_describe(&onednn, &operands[1], hone_call_tensor(plan->call, SOFTMAX_Y)) ||
        onednn.softmax_v2_forward_desc_init(
            &operation, dnnl_forward_inference, dnnl_softmax_accurate, &operands[0], &operands[1], x->ndim - 1) !=
            dnnl_success) {
        hone_onednn_close(&onednn);
        return hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN refuses these sizes or strides");
    }
    hone_onednn_primitive *primitive = NULL;
    int32_t threads = (int32_t)plan->config[0];
    status = hone_onednn_primitive_create(&onednn, &operation, operands, arguments, 2, threads, &primitive, err);
    if (status != HONE_OK) return status;
    *out_scratch_bytes = 0;
    *out_state = primitive;
    return HONE_OK;
}

hone_status hone_softmax_onednn(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    void *const data[] = {hone_tensor_data(args[SOFTMAX_X].as.tensor), hone_tensor_data(args[SOFTMAX_Y].as.tensor)};
    return hone_onednn_primitive_run(plan->state, data, execution != NULL ? execution->threads : 0);
}
