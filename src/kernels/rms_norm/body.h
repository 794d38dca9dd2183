// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Two passes over a row, which stays in the nearest cache between them: the sum of squares in `unroll` independent
// accumulators, then the products. Rows are grouped into tasks, so that small ones do not pay for a task each. A row
// whose mean square leaves the range of floats, as one of 1e25 does, is computed in double.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <float.h>
#include <math.h>

// Below, the squares of elements may have been too small for floats.
#define LEAST_SQUARE 0x1p-80f

typedef struct norm {
    hone_rms_norm of;
    int64_t unroll, rows_per_task;
    bool stream;
} norm;

HONE_INLINE float sum_of_squares(const void *x, hone_dtype_id dtype, int64_t length, int unroll)
{
    vec sums[8];
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            vec value = vec_load(x, dtype, i + u * VEC_WIDTH);
            sums[u] = vec_fma(value, value, sums[u]);
        }
    }
    for (; i < length; i += VEC_WIDTH) {
        vec value = length - i < VEC_WIDTH ? vec_load_part(x, dtype, i, length - i) : vec_load(x, dtype, i);
        sums[0] = vec_fma(value, value, sums[0]);
    }
    HONE_UNROLL
    for (int u = 1; u < unroll; u++)
        sums[0] = vec_add(sums[0], sums[u]);
    return vec_sum(sums[0]);
}

HONE_INLINE vec product(const void *x, const void *weight, hone_dtype_id dtype, int64_t i, vec factor)
{
    return vec_mul(vec_mul(vec_load(x, dtype, i), factor), vec_load(weight, dtype, i));
}

HONE_INLINE void multiply(
    void *y,
    const void *x,
    const void *weight,
    hone_dtype_id dtype,
    int64_t length,
    float scale,
    int unroll,
    bool stream)
{
    vec factor = vec_set(scale);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            int64_t at = i + u * VEC_WIDTH;
            vec value = product(x, weight, dtype, at, factor);
            stream ? vec_stream(y, dtype, at, value) : vec_store(y, dtype, at, value);
        }
    }
    for (; i + VEC_WIDTH <= length; i += VEC_WIDTH)
        vec_store(y, dtype, i, product(x, weight, dtype, i, factor));
    if (i == length) return;
    vec value = vec_mul(vec_load_part(x, dtype, i, length - i), factor);
    vec_store_part(y, dtype, i, length - i, vec_mul(value, vec_load_part(weight, dtype, i, length - i)));
}

HONE_INLINE void normalise(const norm *job, int64_t row, hone_dtype_id dtype, int unroll)
{
    const hone_rms_norm *of = &job->of;
    int64_t size = hone_element_size(dtype), length = of->x.length;
    const char *x = of->x.data + hone_rows_offset(&of->x, row) * size;
    char *y = of->y.data + hone_rows_offset(&of->y, row) * size;
    float square = sum_of_squares(x, dtype, length, unroll) / (float)length + (float)of->eps;
    if (square < LEAST_SQUARE || square > FLT_MAX) { // not where it is NaN, which all of y becomes
        hone_rms_norm_row(of, row);
        return;
    }
    float scale = 1.0f / sqrtf(square);
    bool stream = job->stream && (uintptr_t)y % (uintptr_t)(VEC_WIDTH * size) == 0;
    if (stream)
        multiply(y, x, of->weight, dtype, length, scale, unroll, true);
    else
        multiply(y, x, of->weight, dtype, length, scale, unroll, false);
}

HONE_INLINE void normalise_range(const norm *job, int64_t first, int64_t last, hone_dtype_id dtype)
{
    for (int64_t row = first; row < last; row++) {
        switch (job->unroll) {
        case 1:
            normalise(job, row, dtype, 1);
            break;
        case 2:
            normalise(job, row, dtype, 2);
            break;
        case 4:
            normalise(job, row, dtype, 4);
            break;
        default:
            normalise(job, row, dtype, 8);
        }
    }
}

static void run_task(void *ctx, int64_t index)
{
    const norm *job = ctx;
    int64_t first = index * job->rows_per_task, last = first + job->rows_per_task;
    if (last > job->of.x.count) last = job->of.x.count;
    switch (job->of.dtype) {
    case HONE_F32:
        normalise_range(job, first, last, HONE_F32);
        break;
    case HONE_BF16:
        normalise_range(job, first, last, HONE_BF16);
        break;
    default:
        normalise_range(job, first, last, HONE_F16);
    }
    if (job->stream) vec_stream_end();
}

hone_status VEC_NAME(hone_rms_norm)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    norm job = {
        .of = hone_rms_norm_of(plan, args),
        .unroll = config[RMS_NORM_UNROLL],
        .rows_per_task = config[RMS_NORM_ROWS_PER_TASK],
        .stream = config[RMS_NORM_STORE] == 1,
    };
    if (job.of.x.length == 0) return HONE_OK;
    int64_t tasks = (job.of.x.count + job.rows_per_task - 1) / job.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[RMS_NORM_THREADS], tasks, run_task, &job);
    return HONE_OK;
}
