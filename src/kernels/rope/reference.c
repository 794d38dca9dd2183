// In double, pair by pair, for any strides.
#include "kernels/common/half.h"
#include "kernels/rope/rope.h"

static hone_rope_heads heads_of(const hone_tensor *tensor)
{
    int64_t shape[HONE_MAX_RANK], strides[HONE_MAX_RANK];
    const int32_t heads = tensor->ndim - 2;
    hone_tensor tokens = *tensor;
    tokens.ndim = 0;
    tokens.shape = shape;
    tokens.strides = strides;
    for (int32_t i = 0; i < tensor->ndim; i++) {
        if (i == heads) continue;
        shape[tokens.ndim] = tensor->shape[i];
        strides[tokens.ndim++] = hone_axis_stride(tensor, i);
    }
    return (hone_rope_heads){hone_rows_of(&tokens), hone_axis_stride(tensor, heads)};
}

static hone_rope_angles table_of(const hone_tensor *tensor)
{
    return (hone_rope_angles){hone_tensor_data(tensor), hone_axis_stride(tensor, 0), hone_axis_stride(tensor, 1)};
}

hone_rope hone_rope_of(const hone_plan *plan, const hone_value *args, bool is_back)
{
    const hone_tensor *x = args[ROPE_X].as.tensor, *cos = args[ROPE_COS].as.tensor;
    return (hone_rope){
        .x = heads_of(x),
        .y = heads_of(args[ROPE_Y].as.tensor),
        .cos = table_of(cos),
        .sin = table_of(args[ROPE_SIN].as.tensor),
        .positions = cos->shape[0],
        .heads = x->shape[x->ndim - 2],
        .half = cos->shape[1],
        .interleaved = hone_call_values(plan->call)[ROPE_INTERLEAVED].as.i64 != 0,
        .is_back = is_back,
        .dtype = hone_float_id(x->dtype),
        .table_dtype = hone_float_id(cos->dtype),
    };
}

static double angle(const hone_rope *rope, const hone_rope_angles *table, int64_t position, int64_t pair)
{
    return hone_element_get_double(table->data, rope->table_dtype, position * table->row + pair * table->step);
}

static double element(const hone_rope *rope, int64_t head, int64_t i)
{
    return hone_element_get_double(rope->x.tokens.data, rope->dtype, head + i * rope->x.tokens.step);
}

static void put(const hone_rope *rope, int64_t head, int64_t i, double value)
{
    hone_element_put_double(rope->y.tokens.data, rope->dtype, head + i * rope->y.tokens.step, value);
}

// One head, whose first elements are at `from` in x and at `to` in y.
static void turn(const hone_rope *rope, int64_t from, int64_t to, int64_t position)
{
    for (int64_t i = 0; i < rope->half; i++) {
        const int64_t one = rope->interleaved ? 2 * i : i, other = rope->interleaved ? 2 * i + 1 : rope->half + i;
        const double cos = angle(rope, &rope->cos, position, i), turned = angle(rope, &rope->sin, position, i);
        const double sin = rope->is_back ? -turned : turned;
        const double a = element(rope, from, one), b = element(rope, from, other);
        put(rope, to, one, a * cos - b * sin);
        put(rope, to, other, b * cos + a * sin);
    }
    for (int64_t i = 2 * rope->half; i < rope->x.tokens.length; i++)
        put(rope, to, i, element(rope, from, i));
}

static hone_status turn_all(const hone_rope *rope)
{
    for (int64_t token = 0; token < rope->x.tokens.count; token++)
        for (int64_t head = 0; head < rope->heads; head++)
            turn(
                rope, hone_rows_offset(&rope->x.tokens, token) + head * rope->x.head,
                hone_rows_offset(&rope->y.tokens, token) + head * rope->y.head, token % rope->positions);
    return HONE_OK;
}

hone_status hone_rope_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_rope rope = hone_rope_of(plan, args, false);
    return turn_all(&rope);
}

hone_status hone_rope_vjp_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_rope rope = hone_rope_of(plan, args, true);
    return turn_all(&rope);
}
