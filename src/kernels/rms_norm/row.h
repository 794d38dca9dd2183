// Shared by the kernels of RMS norms, over the vectors of the including file (kernels/vector/*.h): rows in tasks, the
// products of a row whose squares are summed, and the row that exceeds the range of floats.
#ifndef HONE_KERNELS_RMS_NORM_ROW_H
#define HONE_KERNELS_RMS_NORM_ROW_H

#include "kernels/rms_norm/rms_norm.h"

#include <float.h>
#include <math.h>

// Below this, the squares of elements may have been too small for floats.
#define LEAST_SQUARE 0x1p-80f

enum { MOST_UNROLL = 8 };

typedef struct norm {
    hone_rms_norm of;
    hone_rows added[2]; // add_rms_norm's, whose sum is of.x
    int64_t unroll, rows_per_task;
    bool stream;
} norm;

typedef void norm_row(const norm *job, int64_t row, hone_dtype_id dtype, int unroll);

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

// Computes row `row` of y from that of x, whose squares sum to `squares`.
HONE_INLINE void scale_row(const norm *job, int64_t row, float squares, hone_dtype_id dtype, int unroll)
{
    const hone_rms_norm *of = &job->of;
    int64_t size = hone_element_size(dtype), length = of->x.length;
    const char *x = of->x.data + hone_rows_offset(&of->x, row) * size;
    char *y = of->y.data + hone_rows_offset(&of->y, row) * size;
    float square = squares / (float)length + (float)of->eps;
    if (square < LEAST_SQUARE || square > FLT_MAX) { // not if it is NaN, which makes all of y NaN
        hone_rms_norm_row(of, row);
        return;
    }
    float scale = 1.0f / sqrtf(square);
    bool stream = VEC_STREAMS && job->stream && (uintptr_t)y % (uintptr_t)(VEC_WIDTH * size) == 0;
    if (stream)
        multiply(y, x, of->weight, dtype, length, scale, unroll, true);
    else
        multiply(y, x, of->weight, dtype, length, scale, unroll, false);
}

HONE_INLINE void each_row(const norm *job, int64_t first, int64_t last, hone_dtype_id dtype, norm_row *function)
{
    for (int64_t row = first; row < last; row++) {
        switch (job->unroll) {
        case 1:
            function(job, row, dtype, 1);
            break;
        case 2:
            function(job, row, dtype, 2);
            break;
        case 4:
            function(job, row, dtype, 4);
            break;
        default:
            function(job, row, dtype, MOST_UNROLL);
        }
    }
}

HONE_INLINE void each_row_of_task(const norm *job, int64_t index, norm_row *function)
{
    int64_t first = index * job->rows_per_task, last = first + job->rows_per_task;
    if (last > job->of.x.count) last = job->of.x.count;
    switch (job->of.dtype) {
    case HONE_F32:
        each_row(job, first, last, HONE_F32, function);
        break;
    case HONE_BF16:
        each_row(job, first, last, HONE_BF16, function);
        break;
    default:
        each_row(job, first, last, HONE_F16, function);
    }
    if (job->stream) vec_stream_end();
}

// Runs `task` over all rows. The first four parameters of the plan's space are rms_norm's.
static inline hone_status run_norm(
    const hone_plan *plan, const hone_execution *execution, norm *job, void (*task)(void *ctx, int64_t index))
{
    const int64_t *config = plan->config;
    job->unroll = config[RMS_NORM_UNROLL];
    job->rows_per_task = config[RMS_NORM_ROWS_PER_TASK];
    job->stream = config[RMS_NORM_STORE] == 1;
    if (job->of.x.length == 0) return HONE_OK;
    int64_t tasks = (job->of.x.count + job->rows_per_task - 1) / job->rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[RMS_NORM_THREADS], tasks, task, job);
    return HONE_OK;
}

#endif
