// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// A task sums some rows, block by block of their columns, several rows at once, each in `unroll` independent vectors. A
// block's sum is added to the row's, so a long row loses less precision than in one long chain of additions.
#include "kernels/common/matrix.h"
#include "kernels/reduction/reduction.h"

#include <math.h>

enum { MOST_ROWS = 4, MOST_UNROLL = 8, MOST_ROWS_PER_TASK = 64 };

typedef struct reduction {
    const float *x;
    float *y;
    int64_t count, length, x_row, y_step;
    int64_t unroll, rows, rows_per_task, block, prefetch; // prefetch: bytes ahead
} reduction;

// Adds `length` columns of rows that lie x_row apart to their sums.
HONE_INLINE void add_columns(const reduction *job, const float *x, int64_t length, float *sums, int rows, int unroll)
{
    vec parts[MOST_ROWS][MOST_UNROLL];
    HONE_UNROLL
    for (int r = 0; r < rows; r++)
        HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        parts[r][u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int r = 0; r < rows; r++)
            HONE_UNROLL
        for (int u = 0; u < unroll; u++) {
            const float *at = x + r * job->x_row + i + u * VEC_WIDTH;
            if (job->prefetch > 0) __builtin_prefetch((const char *)at + job->prefetch);
            parts[r][u] = vec_add(parts[r][u], vec_load(at, HONE_F32, 0));
        }
    }
    for (; i < length; i += VEC_WIDTH) {
        int64_t left = length - i;
        HONE_UNROLL
        for (int r = 0; r < rows; r++) {
            const float *at = x + r * job->x_row + i;
            vec value = left < VEC_WIDTH ? vec_load_part(at, HONE_F32, 0, left) : vec_load(at, HONE_F32, 0);
            parts[r][0] = vec_add(parts[r][0], value);
        }
    }
    HONE_UNROLL
    for (int r = 0; r < rows; r++) {
        HONE_UNROLL
        for (int u = 1; u < unroll; u++)
            parts[r][0] = vec_add(parts[r][0], parts[r][u]);
        sums[r] += vec_sum(parts[r][0]);
    }
}

HONE_INLINE void add_unrolled(const reduction *job, const float *x, int64_t length, float *sums, int rows)
{
    switch (job->unroll) {
    case 1:
        add_columns(job, x, length, sums, rows, 1);
        break;
    case 2:
        add_columns(job, x, length, sums, rows, 2);
        break;
    case 4:
        add_columns(job, x, length, sums, rows, 4);
        break;
    default:
        add_columns(job, x, length, sums, rows, 8);
    }
}

static void add_rows(const reduction *job, const float *x, int64_t length, float *sums, int64_t rows)
{
    switch (rows) {
    case 1:
        add_unrolled(job, x, length, sums, 1);
        break;
    case 2:
        add_unrolled(job, x, length, sums, 2);
        break;
    default:
        add_unrolled(job, x, length, sums, 4);
    }
}

static void run_task(void *ctx, int64_t index)
{
    const reduction *job = ctx;
    float sums[MOST_ROWS_PER_TASK] = {0};
    int64_t first = index * job->rows_per_task, count = job->count - first;
    if (count > job->rows_per_task) count = job->rows_per_task;
    for (int64_t column = 0; column < job->length; column += job->block) {
        int64_t length = job->length - column < job->block ? job->length - column : job->block;
        for (int64_t row = 0; row < count;) {
            int64_t rows = count - row < job->rows ? 1 : job->rows;
            add_rows(job, job->x + (first + row) * job->x_row + column, length, &sums[row], rows);
            row += rows;
        }
    }
    for (int64_t row = 0; row < count; row++) {
        float sum = sums[row];
        if (!isfinite(sum)) sum = (float)hone_reduction_sum(job->x + (first + row) * job->x_row, job->length, 1);
        job->y[(first + row) * job->y_step] = sum;
    }
}

hone_status VEC_NAME(hone_reduction)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const int64_t *config = plan->config;
    const hone_tensor *x = args[REDUCTION_X].as.tensor, *y = args[REDUCTION_Y].as.tensor;
    reduction job = {
        .x = hone_tensor_data(x),
        .y = hone_tensor_data(y),
        .count = x->shape[0],
        .length = x->shape[1],
        .x_row = hone_axis_stride(x, 0),
        .y_step = hone_axis_stride(y, 0),
        .unroll = config[REDUCTION_UNROLL],
        .rows = config[REDUCTION_ROWS],
        .rows_per_task = config[REDUCTION_ROWS_PER_TASK],
        .block = config[REDUCTION_BLOCK],
        .prefetch = config[REDUCTION_PREFETCH],
    };
    int64_t tasks = (job.count + job.rows_per_task - 1) / job.rows_per_task;
    hone_plan_parallel_for(plan, execution, (int32_t)config[REDUCTION_THREADS], tasks, run_task, &job);
    return HONE_OK;
}
