#include "kernels/layer_norm/onednn.h"

#include "base/error.h"
#include "kernels/common/matrix.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/rivals/onednn.h"
#include "kernels/vector/arguments.h"

static const char where[] = "rivals.onednn";

// oneDNN 2.6 accepts rows with gaps between them, but writes into the gaps.
static bool is_dense(const hone_tensor *tensor)
{
    int64_t stride = 1;
    for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
        if (tensor->shape[i] != 1 && hone_axis_stride(tensor, i) != stride) return false;
        stride *= tensor->shape[i];
    }
    return true;
}

static bool is_f32_or_none(const hone_tensor *vector)
{
    return vector == NULL || hone_float_id(vector->dtype) == HONE_F32;
}

bool hone_layer_norm_onednn_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    (void)kernel;
    if (!hone_onednn_is_here(why)) return false;
    const hone_value *values = hone_call_values(call);
    const hone_tensor *x = hone_call_tensor(call, LAYER_NORM_X);
    const char *reason = NULL;
    if (hone_float_id(x->dtype) == HONE_F16)
        reason = "oneDNN 2.6 has layer normalization in f32 and bf16 on a CPU";
    else if (
        !is_f32_or_none(hone_call_tensor(call, LAYER_NORM_WEIGHT)) ||
        !is_f32_or_none(hone_call_tensor(call, LAYER_NORM_BIAS)))
        reason = "oneDNN's layer normalization takes weight and bias in f32";
    else if (values[LAYER_NORM_SUBTRACT_MEAN].as.i64 == 0)
        reason = "oneDNN's layer normalization subtracts the mean";
    else if (hone_number_of(&values[LAYER_NORM_WEIGHT_OFFSET], 0) != 0)
        reason = "oneDNN's layer normalization has no weight_offset";
    else if (x->shape[x->ndim - 1] < 16) // of many such rows some lie so close to a large mean that f32 loses them
        reason = "oneDNN's layer normalization is too coarse for rows of fewer than 16 elements";
    else if (!is_dense(x) || !is_dense(hone_call_tensor(call, LAYER_NORM_Y)))
        reason = "oneDNN 2.6 writes between rows that lie apart";
    else if (x->ndim < 2 || hone_tensor_elements(x) == 0)
        reason = "oneDNN's layer normalization asks for rows";
    if (reason != NULL) hone_fail(why, HONE_UNSUPPORTED, where, "%s", reason);
    return reason == NULL && hone_last_axis_is_dense(call, LAYER_NORM_WEIGHT, why) &&
           hone_last_axis_is_dense(call, LAYER_NORM_BIAS, why);
}

// The tensors of the call, in the order of the data in a run, and oneDNN's names for them.
typedef struct operands {
    dnnl_memory_desc_t descriptors[HONE_ONEDNN_OPERANDS];
    int arguments[HONE_ONEDNN_OPERANDS], count;
    unsigned flags;
} operands;

static bool describe_all(const hone_onednn *onednn, const hone_call *call, operands *out)
{
    static const int arguments[] = {DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT, DNNL_ARG_DST};
    *out = (operands){.flags = dnnl_normalization_flags_none};
    for (int i = LAYER_NORM_X; i <= LAYER_NORM_Y; i++) {
        const hone_tensor *tensor = hone_call_tensor(call, (size_t)i);
        if (tensor == NULL) continue;
        if (!hone_onednn_describe(onednn, &out->descriptors[out->count], tensor)) return false;
        out->arguments[out->count++] = arguments[i];
        if (i == LAYER_NORM_WEIGHT) out->flags |= dnnl_use_scale;
        if (i == LAYER_NORM_BIAS) out->flags |= dnnl_use_shift;
    }
    return true;
}

hone_status hone_layer_norm_onednn_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err)
{
    hone_onednn onednn;
    operands all;
    dnnl_layer_normalization_desc_t operation;
    const float eps = (float)hone_number_of(&hone_call_values(plan->call)[LAYER_NORM_EPS], 1e-6);
    hone_status status = hone_onednn_open(&onednn, err);
    if (status != HONE_OK) return status;
    if (!describe_all(&onednn, plan->call, &all) ||
        onednn.layer_normalization_forward_desc_init(
            &operation, dnnl_forward_inference, &all.descriptors[0], NULL, eps, all.flags) != dnnl_success) {
        hone_onednn_close(&onednn);
        return hone_fail(err, HONE_UNSUPPORTED, where, "oneDNN refuses these sizes or strides");
    }
    hone_onednn_primitive *primitive = NULL;
    status = hone_onednn_primitive_create(
        &onednn, &operation, all.descriptors, all.arguments, all.count, (int32_t)plan->config[0], &primitive, err);
    if (status != HONE_OK) return status;
    *out_scratch_bytes = 0;
    *out_state = primitive;
    return HONE_OK;
}

hone_status hone_layer_norm_onednn(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    void *data[HONE_ONEDNN_OPERANDS];
    int count = 0;
    for (int i = LAYER_NORM_X; i <= LAYER_NORM_Y; i++)
        if (args[i].tag == HONE_VALUE_TENSOR) data[count++] = hone_tensor_data(args[i].as.tensor);
    return hone_onednn_primitive_run(plan->state, data, execution != NULL ? execution->threads : 0);
}
