// The product and its epilogue in double, for f64 in long double, one element of c at a time, for any strides.
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "kernels/matmul/matmul.h"

enum { BLOCK = 256, MOST_THREADS = 64 };
static const double worth_sharing = 1e6; // multiplications, some milliseconds

static double double_at(const hone_matrix *matrix, int64_t row, int64_t column)
{
    return ((const double *)matrix->data)[row * matrix->row_stride + column * matrix->column_stride];
}

// The same as sum_columns, for doubles.
static void sum_doubles(
    const hone_matrix *a, const hone_matrix *b, int64_t row, int64_t column, int64_t count, double sums[BLOCK])
{
    long double wide[BLOCK] = {0};
    for (int64_t p = 0; p < a->columns; p++) {
        const long double factor = double_at(a, row, p);
        for (int64_t j = 0; j < count; j++)
            wide[j] += factor * double_at(b, p, column + j);
    }
    for (int64_t j = 0; j < count; j++)
        sums[j] = (double)wide[j];
}

// Sums of c[row, column .. column + count): the columns together, since the elements of b's rows are adjacent.
static void sum_columns(
    const hone_matrix *a,
    const hone_matrix *b,
    hone_dtype_id dtype,
    int64_t row,
    int64_t column,
    int64_t count,
    double sums[BLOCK])
{
    if (dtype == HONE_F64) {
        sum_doubles(a, b, row, column, count, sums);
        return;
    }
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = 0; p < a->columns; p++) {
        double factor = (double)hone_element_get(a->data, dtype, row * a->row_stride + p * a->column_stride);
        int64_t from = p * b->row_stride + column * b->column_stride;
        for (int64_t j = 0; j < count; j++)
            sums[j] += factor * (double)hone_element_get(b->data, dtype, from + j * b->column_stride);
    }
}

// The epilogue; NULL for an absent array.
typedef struct epilogue {
    const hone_tensor *bias;
    const hone_matrix *residual;
    hone_matmul_activation activation;
} epilogue;

static double finish(const epilogue *e, hone_dtype_id dtype, int64_t row, int64_t column, double sum)
{
    const hone_matrix *added = e->residual;
    if (e->bias != NULL)
        sum += hone_element_get_double(hone_tensor_data(e->bias), dtype, column * hone_axis_stride(e->bias, 0));
    sum = hone_matmul_activate(e->activation, sum);
    if (added == NULL) return sum;
    return sum + hone_element_get_double(added->data, dtype, row * added->row_stride + column * added->column_stride);
}

typedef struct product {
    hone_matrix a, b, c;
    epilogue e;
    hone_dtype_id dtype;
    int64_t blocks; // of columns
} product;

// Computes a block of columns of a row, so that one row is work for several threads.
static void multiply_block(void *ctx, int64_t index)
{
    const product *p = ctx;
    double sums[BLOCK];
    const int64_t row = index / p->blocks, column = index % p->blocks * BLOCK;
    const int64_t count = p->c.columns - column < BLOCK ? p->c.columns - column : BLOCK;
    sum_columns(&p->a, &p->b, p->dtype, row, column, count, sums);
    for (int64_t j = 0; j < count; j++) {
        int64_t to = row * p->c.row_stride + (column + j) * p->c.column_stride;
        hone_element_put_double(p->c.data, p->dtype, to, finish(&p->e, p->dtype, row, column + j, sums[j]));
    }
}

static hone_matrix matrix_at(const hone_tensor *tensor, int64_t index)
{
    hone_matrix matrix = hone_matrix_of(tensor);
    const int64_t elements = hone_matrix_offset(tensor, tensor->ndim - 2, index);
    matrix.data = (char *)matrix.data + elements * hone_element_size(hone_float_id(tensor->dtype));
    return matrix;
}

hone_status hone_matmul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    const hone_tensor *to = args[MATMUL_C].as.tensor;
    hone_dtype_id dtype = hone_float_id(to->dtype);
    const hone_value *bias = &args[MATMUL_BIAS], *residual = &args[MATMUL_RESIDUAL];
    int64_t batch = 1;
    for (int32_t axis = 0; axis < to->ndim - 2; axis++)
        batch *= to->shape[axis];
    for (int64_t i = 0; i < batch; i++) {
        hone_matrix added = {0};
        if (residual->tag == HONE_VALUE_TENSOR) added = matrix_at(residual->as.tensor, i);
        product p = {
            .a = matrix_at(args[MATMUL_A].as.tensor, i),
            .b = matrix_at(args[MATMUL_B].as.tensor, i),
            .c = matrix_at(to, i),
            .e =
                {.bias = bias->tag == HONE_VALUE_TENSOR ? bias->as.tensor : NULL,
                 .residual = residual->tag == HONE_VALUE_TENSOR ? &added : NULL,
                 .activation = hone_matmul_activation_of(&hone_call_values(plan->call)[MATMUL_ACTIVATION])},
            .dtype = dtype,
        };
        if (hone_matmul_transposes(plan)) p.b = hone_matrix_transposed(p.b);
        p.blocks = (p.c.columns + BLOCK - 1) / BLOCK;
        const int64_t blocks = p.c.rows * p.blocks;
        const bool is_shared = (double)blocks * BLOCK * (double)p.a.columns > worth_sharing;
        hone_plan_parallel_for(plan, execution, is_shared ? MOST_THREADS : 1, blocks, multiply_block, &p);
    }
    return HONE_OK;
}
