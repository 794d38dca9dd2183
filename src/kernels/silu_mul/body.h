// The kernels over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

typedef struct silu_mul {
    hone_rows arrays[SILU_MUL_ARRAYS]; // in the order of values
    int count;
    hone_dtype_id dtype;
    int64_t unroll, rows_per_task;
    bool stream;
} silu_mul;

// One row of each array.
typedef struct row {
    char *arrays[SILU_MUL_ARRAYS];
    int64_t length;
    bool stream;
} row;

// The position of elements, and their number.
typedef struct place {
    int64_t index, count;
} place;

HONE_INLINE vec get(const row *r, int array, hone_dtype_id dtype, place at)
{
    if (at.count == VEC_WIDTH) return vec_load(r->arrays[array], dtype, at.index);
    return vec_load_part(r->arrays[array], dtype, at.index, at.count);
}

HONE_INLINE void put(const row *r, int array, hone_dtype_id dtype, place at, vec value)
{
    if (at.count < VEC_WIDTH)
        vec_store_part(r->arrays[array], dtype, at.index, at.count, value);
    else if (r->stream)
        vec_stream(r->arrays[array], dtype, at.index, value);
    else
        vec_store(r->arrays[array], dtype, at.index, value);
}

// 1 / (1 + e^-x), and 1 minus that. The exponent is never positive, so nothing overflows.
HONE_INLINE vec sigmoid(vec x, vec *out_rest)
{
    vec one = vec_set(1.0f), zero = vec_set(0.0f), far = vec_set(INFINITY);
    vec power = vec_exp(vec_min(x, vec_sub(zero, x)));
    vec sum = vec_add(one, power);
    *out_rest = vec_div(vec_within(zero, x, far, power, one), sum);
    return vec_div(vec_within(zero, x, far, one, power), sum);
}

HONE_INLINE vec magnitude(vec x)
{
    return vec_max(x, vec_sub(vec_set(0.0f), x));
}

// factor a b, multiplying the larger of a and b first: a factor below 1 times a subnormal number may be 0, and 0 times
// infinity is NaN.
HONE_INLINE vec times_both(vec factor, vec a, vec b)
{
    const vec zero = vec_set(0.0f), far = vec_set(INFINITY), more = vec_sub(magnitude(a), magnitude(b));
    return vec_mul(vec_mul(factor, vec_within(zero, more, far, a, b)), vec_within(zero, more, far, b, a));
}

typedef void vector_function(const row *r, hone_dtype_id dtype, place at);

HONE_INLINE void forward(const row *r, hone_dtype_id dtype, place at)
{
    vec rest, gate = get(r, SILU_MUL_GATE, dtype, at), up = get(r, SILU_MUL_UP, dtype, at);
    put(r, SILU_MUL_Y, dtype, at, times_both(sigmoid(gate, &rest), gate, up));
}

HONE_INLINE void backward(const row *r, hone_dtype_id dtype, place at)
{
    vec rest, gate = get(r, SILU_MUL_VJP_GATE, dtype, at), up = get(r, SILU_MUL_VJP_UP, dtype, at);
    vec d_y = get(r, SILU_MUL_VJP_D_Y, dtype, at), share = sigmoid(gate, &rest);
    vec slope = vec_mul(share, vec_fma(gate, rest, vec_set(1.0f)));
    put(r, SILU_MUL_VJP_D_GATE, dtype, at, times_both(slope, up, d_y));
    put(r, SILU_MUL_VJP_D_UP, dtype, at, times_both(share, gate, d_y));
}

HONE_INLINE void each_rest(const row *r, hone_dtype_id dtype, int64_t i, vector_function *function)
{
    for (; i < r->length; i += VEC_WIDTH)
        function(r, dtype, (place){i, r->length - i < VEC_WIDTH ? r->length - i : VEC_WIDTH});
}

HONE_OUTLINE void forward_rest(const row *r, hone_dtype_id dtype, int64_t i)
{
    each_rest(r, dtype, i, forward);
}

HONE_OUTLINE void backward_rest(const row *r, hone_dtype_id dtype, int64_t i)
{
    each_rest(r, dtype, i, backward);
}

// The function for a vector, and the function for the rest of a row, from element i on, after the unrolled loop.
typedef struct direction {
    vector_function *vector;
    void (*rest)(const row *r, hone_dtype_id dtype, int64_t i);
} direction;

HONE_INLINE void each_vector(const row *r, hone_dtype_id dtype, int unroll, const direction to)
{
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= r->length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++)
            to.vector(r, dtype, (place){i + u * VEC_WIDTH, VEC_WIDTH});
    }
    if (i < r->length) to.rest(r, dtype, i);
}

HONE_INLINE void each_row(
    const silu_mul *job, int64_t first, int64_t last, hone_dtype_id dtype, int unroll, const direction to)
{
    int64_t size = hone_element_size(dtype);
    for (int64_t i = first; i < last; i++) {
        row r = {.length = job->arrays[0].length, .stream = job->stream};
        for (int a = 0; a < job->count; a++) {
            r.arrays[a] = job->arrays[a].data + hone_rows_offset(&job->arrays[a], i) * size;
            r.stream &= (uintptr_t)r.arrays[a] % (uintptr_t)(VEC_WIDTH * size) == 0;
        }
        each_vector(&r, dtype, unroll, to);
    }
}

HONE_INLINE void each_type(const silu_mul *job, int64_t first, int64_t last, int unroll, const direction to)
{
    switch (job->dtype) {
    case HONE_F32:
        each_row(job, first, last, HONE_F32, unroll, to);
        break;
    case HONE_BF16:
        each_row(job, first, last, HONE_BF16, unroll, to);
        break;
    default:
        each_row(job, first, last, HONE_F16, unroll, to);
    }
}

HONE_INLINE void run_rows(const silu_mul *job, int64_t index, const direction to)
{
    int64_t first = index * job->rows_per_task, last = first + job->rows_per_task;
    if (last > job->arrays[0].count) last = job->arrays[0].count;
    switch (job->unroll) {
    case 1:
        each_type(job, first, last, 1, to);
        break;
    case 2:
        each_type(job, first, last, 2, to);
        break;
    default:
        each_type(job, first, last, 4, to);
    }
    if (job->stream) vec_stream_end();
}

static void run_forward(void *ctx, int64_t index)
{
    run_rows(ctx, index, (direction){forward, forward_rest});
}

static void run_backward(void *ctx, int64_t index)
{
    run_rows(ctx, index, (direction){backward, backward_rest});
}

static hone_status run(
    const hone_plan *plan,
    const hone_value *args,
    const hone_execution *execution,
    int count,
    void (*task)(void *ctx, int64_t index))
{
    const int64_t *config = plan->config;
    silu_mul job = {
        .count = count,
        .dtype = hone_float_id(args[0].as.tensor->dtype),
        .unroll = config[SILU_MUL_UNROLL],
        .rows_per_task = config[SILU_MUL_ROWS_PER_TASK],
        .stream = config[SILU_MUL_STORE] == 1,
    };
    for (int i = 0; i < count; i++)
        job.arrays[i] = hone_rows_of(args[i].as.tensor);
    if (job.arrays[0].length == 0) return HONE_OK;
    int64_t tasks = (job.arrays[0].count + job.rows_per_task - 1) / job.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[SILU_MUL_THREADS], tasks, task, &job);
    return HONE_OK;
}

hone_status VEC_NAME(hone_silu_mul)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_Y + 1, run_forward);
}

hone_status VEC_NAME(hone_silu_mul_vjp)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    return run(plan, args, execution, SILU_MUL_VJP_D_UP + 1, run_backward);
}
