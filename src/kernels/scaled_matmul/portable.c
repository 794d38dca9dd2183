// Plain C for any strides: sums in blocks of columns, exact for integers, in float for 8-bit floats. They are scaled in
// float. The reference does the latter two in double.
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "kernels/matmul/matmul.h"
#include "kernels/scaled_matmul/scaled_matmul.h"

// STEPS of k are summed in 32 bits: products of two integers are at most 2^14.
enum { BLOCK = 64, STEPS = 1 << 16, BYTES = 256 };

// A run, which its workers share: each has some of the rows or, if there are few rows, of the blocks of columns.
typedef struct scaled_job {
    hone_matrix a, b, c; // b as [k, n]
    const hone_tensor *a_scale, *b_scale, *bias;
    hone_dtype_id operands, dtype; // of a and b, of c
    const float *numbers;          // the values of the 256 bytes of 8-bit floats
    bool in_double;                // for everything but integer sums
    int64_t rows_of_task, blocks_of_task, tasks_across;
} scaled_job;

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

// Rows of b together.
static void add_across(
    const scaled_job *job, const int8_t *a, int64_t p, int64_t end, int64_t column, int64_t count, int32_t *sums)
{
    for (; p < end; p++) {
        const int8_t *b = (const int8_t *)job->b.data + p * job->b.row_stride + column;
        const int32_t factor = a[p * job->a.column_stride];
        for (int64_t j = 0; j < count; j++)
            sums[j] += factor * b[j];
    }
}

// One column after another: the elements of a column are adjacent if b is transposed.
static void add_along(
    const scaled_job *job, const int8_t *a, int64_t p, int64_t end, int64_t column, int64_t count, int32_t *sums)
{
    const bool dense = job->a.column_stride == 1 && job->b.row_stride == 1;
    for (int64_t j = 0; j < count; j++) {
        const int8_t *b = (const int8_t *)job->b.data + (column + j) * job->b.column_stride;
        int32_t sum = 0;
        for (int64_t i = p; dense && i < end; i++)
            sum += a[i] * b[i];
        for (int64_t i = p; !dense && i < end; i++)
            sum += a[i * job->a.column_stride] * b[i * job->b.row_stride];
        sums[j] += sum;
    }
}

static void sum_block(const scaled_job *job, int64_t row, int64_t column, int64_t count, int64_t totals[BLOCK])
{
    const int8_t *a = (const int8_t *)job->a.data + row * job->a.row_stride;
    for (int64_t j = 0; j < count; j++)
        totals[j] = 0;
    for (int64_t p = 0; p < job->a.columns; p += STEPS) {
        int32_t sums[BLOCK] = {0};
        const int64_t end = smaller(p + STEPS, job->a.columns);
        (job->b.column_stride == 1 ? add_across : add_along)(job, a, p, end, column, count, sums);
        for (int64_t j = 0; j < count; j++)
            totals[j] += sums[j];
    }
}

// Floats: rows of b together, or one column after another. A product of two elements is exact. Sums are computed in
// double: in float, a sum of a million terms of one sign would have 10 times the allowed error.
static void sum_floats(const scaled_job *job, int64_t row, int64_t column, int64_t count, double sums[BLOCK])
{
    const uint8_t *a = (const uint8_t *)job->a.data + row * job->a.row_stride;
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = 0; p < job->a.columns; p++) {
        const uint8_t *b = (const uint8_t *)job->b.data + p * job->b.row_stride + column * job->b.column_stride;
        const double factor = (double)job->numbers[a[p * job->a.column_stride]];
        for (int64_t j = 0; j < count; j++)
            sums[j] += factor * (double)job->numbers[b[j * job->b.column_stride]];
    }
}

// Sums of integers are exact in double too: they stay below 2^53.
static void sum_any(const scaled_job *job, int64_t row, int64_t column, int64_t count, double sums[BLOCK])
{
    int64_t totals[BLOCK];
    if (job->operands != HONE_I8) {
        sum_floats(job, row, column, count, sums);
        return;
    }
    sum_block(job, row, column, count, totals);
    for (int64_t j = 0; j < count; j++)
        sums[j] = (double)totals[j];
}

static float scale_at(const hone_tensor *scale, int64_t index)
{
    return ((const float *)hone_tensor_data(scale))[index * hone_axis_stride(scale, 0)];
}

static double finish(const scaled_job *job, int64_t row, int64_t column, double sum)
{
    const float a = scale_at(job->a_scale, row), b = scale_at(job->b_scale, column);
    const float bias =
        hone_element_get(hone_tensor_data(job->bias), job->dtype, column * hone_axis_stride(job->bias, 0));
    if (job->in_double) return sum * (double)a * (double)b + (double)bias;
    return (double)((float)sum * a * b + bias);
}

static void multiply_block(const scaled_job *job, int64_t row, int64_t column)
{
    double sums[BLOCK];
    const int64_t count = smaller(BLOCK, job->c.columns - column);
    sum_any(job, row, column, count, sums);
    for (int64_t j = 0; j < count; j++) {
        const int64_t to = row * job->c.row_stride + (column + j) * job->c.column_stride;
        hone_element_put_double(job->c.data, job->dtype, to, finish(job, row, column + j, sums[j]));
    }
}

static void work(void *ctx, int64_t index)
{
    const scaled_job *job = ctx;
    const int64_t row = index / job->tasks_across * job->rows_of_task,
                  block = index % job->tasks_across * job->blocks_of_task * BLOCK;
    const int64_t end = smaller(row + job->rows_of_task, job->c.rows),
                  last = smaller(block + job->blocks_of_task * BLOCK, job->c.columns);
    for (int64_t column = block; column < last; column += BLOCK)
        for (int64_t i = row; i < end; i++)
            multiply_block(job, i, column);
}

static void list_numbers(hone_dtype_id operands, float numbers[BYTES])
{
    for (int i = 0; operands != HONE_I8 && i < BYTES; i++)
        numbers[i] = operands == HONE_F8_E5M2 ? hone_float_of_f8_e5m2((uint8_t)i) : hone_float_of_f8_e4m3fn((uint8_t)i);
}

// numbers  memory that the job borrows, and that this function fills
static scaled_job job_of(const hone_plan *plan, const hone_value *args, float numbers[BYTES])
{
    const hone_matrix b = hone_matrix_of(args[SCALED_MATMUL_B].as.tensor);
    const bool is_transposed = hone_call_values(plan->call)[SCALED_MATMUL_TRANSPOSE_B].as.i64 != 0;
    const hone_dtype_id operands = hone_scaled_matmul_operands(args[SCALED_MATMUL_A].as.tensor);
    list_numbers(operands, numbers);
    return (scaled_job){
        .operands = operands,
        .numbers = numbers,
        .a = hone_matrix_of(args[SCALED_MATMUL_A].as.tensor),
        .b = is_transposed ? hone_matrix_transposed(b) : b,
        .c = hone_matrix_of(args[SCALED_MATMUL_C].as.tensor),
        .a_scale = args[SCALED_MATMUL_A_SCALE].as.tensor,
        .b_scale = args[SCALED_MATMUL_B_SCALE].as.tensor,
        .bias = args[SCALED_MATMUL_BIAS].as.tensor,
        .dtype = hone_float_id(args[SCALED_MATMUL_C].as.tensor->dtype),
    };
}

// Each worker gets about four tasks; with few rows, the blocks of columns are divided.
hone_status hone_scaled_matmul_portable(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    float numbers[BYTES];
    scaled_job job = job_of(plan, args, numbers);
    const int64_t threads = plan->config[0], blocks = (job.c.columns + BLOCK - 1) / BLOCK;
    if (job.c.rows == 0 || blocks == 0) return HONE_OK;
    const int64_t wanted = threads > 1 ? 4 * threads : 1, down = smaller(wanted, job.c.rows);
    job.tasks_across = smaller((wanted + down - 1) / down, blocks);
    job.rows_of_task = (job.c.rows + down - 1) / down;
    job.blocks_of_task = (blocks + job.tasks_across - 1) / job.tasks_across;
    const int64_t tasks = (job.c.rows + job.rows_of_task - 1) / job.rows_of_task * job.tasks_across;
    if (threads == 1)
        for (int64_t i = 0; i < tasks; i++)
            work(&job, i);
    else
        hone_plan_parallel_for(plan, execution, (int32_t)threads, tasks, work, &job);
    return HONE_OK;
}

hone_status hone_scaled_matmul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    float numbers[BYTES];
    scaled_job job = job_of(plan, args, numbers);
    job.in_double = true;
    job.tasks_across = 1;
    job.rows_of_task = job.c.rows;
    job.blocks_of_task = (job.c.columns + BLOCK - 1) / BLOCK;
    work(&job, 0);
    return HONE_OK;
}
