// The kernel over the vectors of the including file (kernels/vector/*.h), which is compiled for one instruction set. It
// is rms_norm's, except for the first pass over a row, which adds, stores the sum, and sums the squares of the stored
// values.
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "kernels/rms_norm/row.h"

// The arrays at one row.
typedef struct addition {
    const char *x, *residual;
    char *sum;
} addition;

HONE_INLINE vec square_of_sum(const addition *row, hone_dtype_id dtype, int64_t i, vec squares)
{
    vec sum = vec_add(vec_load(row->x, dtype, i), vec_load(row->residual, dtype, i));
    vec_store(row->sum, dtype, i, sum);
    if (dtype != HONE_F32) sum = vec_load(row->sum, dtype, i); // the stored value, which is rounded
    return vec_fma(sum, sum, squares);
}

HONE_INLINE vec square_of_part(const addition *row, hone_dtype_id dtype, int64_t i, int64_t count, vec squares)
{
    vec sum = vec_add(vec_load_part(row->x, dtype, i, count), vec_load_part(row->residual, dtype, i, count));
    vec_store_part(row->sum, dtype, i, count, sum);
    if (dtype != HONE_F32) sum = vec_load_part(row->sum, dtype, i, count);
    return vec_fma(sum, sum, squares);
}

HONE_INLINE float add(const addition *row, hone_dtype_id dtype, int64_t length, int unroll)
{
    vec sums[MOST_UNROLL];
    HONE_UNROLL
    for (int u = 0; u < unroll; u++)
        sums[u] = vec_set(0.0f);
    int64_t i = 0;
    for (; i + unroll * VEC_WIDTH <= length; i += unroll * VEC_WIDTH) {
        HONE_UNROLL
        for (int u = 0; u < unroll; u++)
            sums[u] = square_of_sum(row, dtype, i + u * VEC_WIDTH, sums[u]);
    }
    for (; i + VEC_WIDTH <= length; i += VEC_WIDTH)
        sums[0] = square_of_sum(row, dtype, i, sums[0]);
    if (i < length) sums[0] = square_of_part(row, dtype, i, length - i, sums[0]);
    HONE_UNROLL
    for (int u = 1; u < unroll; u++)
        sums[0] = vec_add(sums[0], sums[u]);
    return vec_sum(sums[0]);
}

HONE_INLINE char *row_of(const hone_rows *rows, int64_t row, hone_dtype_id dtype)
{
    return rows->data + hone_rows_offset(rows, row) * hone_element_size(dtype);
}

HONE_INLINE void add_and_normalise(const norm *job, int64_t row, hone_dtype_id dtype, int unroll)
{
    const addition arrays = {
        row_of(&job->added[0], row, dtype), row_of(&job->added[1], row, dtype), row_of(&job->of.x, row, dtype)};
    scale_row(job, row, add(&arrays, dtype, job->of.x.length, unroll), dtype, unroll);
}

static void run_task(void *ctx, int64_t index)
{
    each_row_of_task(ctx, index, add_and_normalise);
}

hone_status VEC_NAME(hone_add_rms_norm)(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    norm job = {
        .of = hone_add_rms_norm_of(plan, args),
        .added = {hone_rows_of(args[ADD_RMS_NORM_X].as.tensor), hone_rows_of(args[ADD_RMS_NORM_RESIDUAL].as.tensor)},
    };
    return run_norm(plan, execution, &job, run_task);
}
