// The product and what follows it in double, of f64 in long double, one element of c at a time, for any strides.
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "kernels/matmul/matmul.h"

enum { BLOCK = 64 };

static double double_at(const hone_matrix *matrix, int64_t row, int64_t column)
{
    return ((const double *)matrix->data)[row * matrix->row_stride + column * matrix->column_stride];
}

// As below.
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

// Sums of c[row, column .. column + count): the columns side by side, since b's rows are what lies together.
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

// What follows the sums; NULL: there is no such array.
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

static void multiply_row(
    const hone_matrix *a,
    const hone_matrix *b,
    const hone_matrix *c,
    const epilogue *e,
    hone_dtype_id dtype,
    int64_t row)
{
    double sums[BLOCK];
    for (int64_t column = 0; column < c->columns; column += BLOCK) {
        int64_t count = c->columns - column < BLOCK ? c->columns - column : BLOCK;
        sum_columns(a, b, dtype, row, column, count, sums);
        for (int64_t j = 0; j < count; j++) {
            int64_t to = row * c->row_stride + (column + j) * c->column_stride;
            hone_element_put_double(c->data, dtype, to, finish(e, dtype, row, column + j, sums[j]));
        }
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
    (void)execution;
    const hone_tensor *to = args[MATMUL_C].as.tensor;
    hone_dtype_id dtype = hone_float_id(to->dtype);
    const hone_value *bias = &args[MATMUL_BIAS], *residual = &args[MATMUL_RESIDUAL];
    int64_t batch = 1;
    for (int32_t axis = 0; axis < to->ndim - 2; axis++)
        batch *= to->shape[axis];
    for (int64_t i = 0; i < batch; i++) {
        hone_matrix a = matrix_at(args[MATMUL_A].as.tensor, i), b = matrix_at(args[MATMUL_B].as.tensor, i),
                    c = matrix_at(to, i), added = {0};
        if (residual->tag == HONE_VALUE_TENSOR) added = matrix_at(residual->as.tensor, i);
        const epilogue e = {
            .bias = bias->tag == HONE_VALUE_TENSOR ? bias->as.tensor : NULL,
            .residual = residual->tag == HONE_VALUE_TENSOR ? &added : NULL,
            .activation = hone_matmul_activation_of(&hone_call_values(plan->call)[MATMUL_ACTIVATION]),
        };
        if (hone_matmul_transposes(plan)) b = hone_matrix_transposed(b);
        for (int64_t row = 0; row < c.rows; row++)
            multiply_row(&a, &b, &c, &e, dtype, row);
    }
    return HONE_OK;
}
