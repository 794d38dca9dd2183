// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set.
//
// Two passes over a row, which stays in the first-level cache between them: the sum of squares in `unroll` independent
// accumulators, then the products. Rows are grouped into tasks, so that short rows do not have the overhead of a task
// each. A row whose mean square exceeds the range of floats, such as one of 1e25, is computed in double.
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rms_norm/row.h"

HONE_INLINE float sum_of_squares(const void *x, hone_dtype_id dtype, int64_t length, int unroll)
{
    vec sums[MOST_UNROLL];
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u + 1 < unroll; u += 2) {
            vec two[2];
            vec_load_two(x, dtype, i + u * VEC_WIDTH, two);
            sums[u] = vec_fma(two[0], two[0], sums[u]);
            sums[u + 1] = vec_fma(two[1], two[1], sums[u + 1]);
        }
        if (unroll % 2 == 0) continue;
        vec value = vec_load(x, dtype, i);
        sums[0] = vec_fma(value, value, sums[0]);
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

HONE_INLINE void normalise(const norm *job, int64_t row, hone_dtype_id dtype, int unroll)
{
    const hone_rows *x = &job->of.x;
    const char *data = x->data + hone_rows_offset(x, row) * hone_element_size(dtype);
    scale_row(job, row, sum_of_squares(data, dtype, x->length, unroll), dtype, unroll);
}

static void run_task(void *ctx, int64_t index)
{
    each_row_of_task(ctx, index, normalise);
}

hone_status VEC_NAME(hone_rms_norm)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    norm job = {.of = hone_rms_norm_of(plan, args)};
    return run_norm(plan, execution, &job, run_task);
}
