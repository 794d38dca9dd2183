#include "kernels/dot_product_attention/biased.h"

#include "kernels/common/half.h"
#include "kernels/vector/arguments.h"

#include <math.h>

static hone_dtype_id id_of(hone_dtype dtype)
{
    const hone_dtype_info *info = hone_dtype_find(dtype);
    return info != NULL ? info->id : HONE_F32;
}

// The stride of an axis; 0 if it has one element, which is broadcast.
static int64_t stride_of(const hone_tensor *tensor, int32_t axis)
{
    return tensor->shape[axis] == 1 ? 0 : hone_axis_stride(tensor, axis);
}

static hone_biased_array array_of(const hone_value *value)
{
    if (value->tag != HONE_VALUE_TENSOR) return (hone_biased_array){.data = NULL};
    const hone_tensor *t = value->as.tensor;
    return (hone_biased_array){
        .data = hone_tensor_data(t),
        .dtype = id_of(t->dtype),
        .batch = stride_of(t, 0),
        .head = stride_of(t, 1),
        .position = stride_of(t, 2),
        .key = stride_of(t, 3),
    };
}

// [batch, q_len] or [batch, kv_len].
static hone_biased_array segments_of(const hone_value *value)
{
    if (value->tag != HONE_VALUE_TENSOR) return (hone_biased_array){.data = NULL};
    const hone_tensor *t = value->as.tensor;
    return (hone_biased_array){
        .data = hone_tensor_data(t),
        .dtype = id_of(t->dtype),
        .batch = hone_axis_stride(t, 0),
        .position = hone_axis_stride(t, 1),
        .key = hone_axis_stride(t, 1),
    };
}

// Limited so that positions can be added to it.
static int64_t clamped(int64_t window)
{
    const int64_t most = INT64_C(1) << 61;
    return window > most ? most : window < -most ? -most : window;
}

static hone_attention_array rows_of(const hone_tensor *tensor)
{
    return (hone_attention_array){
        .data = hone_tensor_data(tensor),
        .batch = hone_axis_stride(tensor, 0),
        .position = hone_axis_stride(tensor, 1),
        .head = hone_axis_stride(tensor, 2),
        .element = hone_axis_stride(tensor, 3),
    };
}

static hone_attention_array weights_of(const hone_tensor *tensor)
{
    return (hone_attention_array){
        .data = hone_tensor_data(tensor),
        .batch = hone_axis_stride(tensor, 0),
        .head = hone_axis_stride(tensor, 1),
        .position = hone_axis_stride(tensor, 2),
        .element = hone_axis_stride(tensor, 3),
    };
}

// fixed: the scalars, without weights among the results.
static hone_attention attention_of(const hone_value *args, const hone_value *fixed, bool has_weights)
{
    const hone_tensor *query = args[BIASED_QUERY].as.tensor, *key = args[BIASED_KEY].as.tensor,
                      *value = args[BIASED_VALUE].as.tensor;
    hone_attention a = {
        .query = rows_of(query),
        .key = rows_of(key),
        .value = rows_of(value),
        .out = rows_of(args[BIASED_OUT].as.tensor),
        .dtype = hone_float_id(query->dtype),
        .batch = query->shape[0],
        .q_len = query->shape[1],
        .heads = query->shape[2],
        .dim = query->shape[3],
        .kv_len = key->shape[1],
        .kv_heads = key->shape[2],
        .value_dim = value->shape[3],
        .has_cap = fixed[BIASED_LOGITS_SOFT_CAP].tag != HONE_VALUE_NONE,
    };
    if (has_weights) a.weights = weights_of(args[BIASED_WEIGHTS].as.tensor);
    a.group = a.kv_heads ? a.heads / a.kv_heads : 1;
    a.scale = hone_number_of(&fixed[BIASED_SOFTMAX_SCALE], 1 / sqrt((double)a.dim));
    a.cap = a.has_cap ? hone_number_of(&fixed[BIASED_LOGITS_SOFT_CAP], 1) : 1;
    return a;
}

static hone_biased biased_of(const hone_call *call, const hone_value *args)
{
    const bool has_weights = hone_signature_count(hone_call_signature(call)) > BIASED_COUNT;
    const hone_value *fixed = hone_call_values(call) + has_weights;
    const bool no_mask = has_weights && args[BIASED_BIAS].tag == HONE_VALUE_TENSOR;
    const hone_value none = hone_of_none();
    return (hone_biased){
        .attention = attention_of(args, fixed, has_weights),
        .has_weights = has_weights,
        .bias = array_of(&args[BIASED_BIAS]),
        .mask = array_of(no_mask ? &none : &args[BIASED_MASK]),
        .q_segments = segments_of(&args[BIASED_Q_SEGMENTS]),
        .kv_segments = segments_of(&args[BIASED_KV_SEGMENTS]),
        .causal = fixed[BIASED_CAUSAL].as.i64 != 0,
        .has_left = fixed[BIASED_WINDOW_LEFT].tag != HONE_VALUE_NONE,
        .has_right = fixed[BIASED_WINDOW_RIGHT].tag != HONE_VALUE_NONE,
        .left = clamped(fixed[BIASED_WINDOW_LEFT].as.i64),
        .right = clamped(fixed[BIASED_WINDOW_RIGHT].as.i64),
    };
}

hone_biased hone_biased_of(const hone_plan *plan, const hone_value *args)
{
    return biased_of(plan->call, args);
}

hone_biased hone_biased_of_call(const hone_call *call)
{
    return biased_of(call, hone_call_values(call));
}

void hone_biased_range(const hone_biased *problem, int64_t position, int64_t *out_first, int64_t *out_last)
{
    int64_t first = 0, last = problem->attention.kv_len;
    if (problem->causal && position + 1 < last) last = position + 1;
    if (problem->has_left && position - problem->left > first) first = position - problem->left;
    if (problem->has_right && position + problem->right + 1 < last) last = position + problem->right + 1;
    bool some = first < last;
    *out_first = some ? first : 0;
    *out_last = some ? last : 0;
}

static int32_t segment_at(const hone_biased_array *segments, int64_t batch, int64_t position)
{
    return ((const int32_t *)segments->data)[batch * segments->batch + position * segments->position];
}

bool hone_biased_sees(const hone_biased *problem, int64_t batch, int64_t head, int64_t position, int64_t key)
{
    const hone_biased_array *mask = &problem->mask;
    if (mask->data != NULL) {
        const int64_t at = hone_biased_at(mask, batch, head, position, key);
        const bool seen = mask->dtype == HONE_BOOL ? mask->data[at] != 0 : ((const int32_t *)mask->data)[at] != 0;
        if (!seen) return false;
    }
    if (problem->q_segments.data == NULL || problem->kv_segments.data == NULL) return true;
    return segment_at(&problem->q_segments, batch, position) == segment_at(&problem->kv_segments, batch, key);
}

bool hone_biased_is_void(const hone_biased *problem, int64_t batch, int64_t position)
{
    return problem->q_segments.data != NULL && segment_at(&problem->q_segments, batch, position) < 0;
}
