// The product in double, one element of c at a time, for any strides.
#include "kernels/common/half.h"
#include "kernels/common/matrix.h"
#include "kernels/matmul/matmul.h"

enum { BLOCK = 64 };

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
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t p = 0; p < a->columns; p++) {
        double factor = (double)hone_element_get(a->data, dtype, row * a->row_stride + p * a->column_stride);
        int64_t from = p * b->row_stride + column * b->column_stride;
        for (int64_t j = 0; j < count; j++)
            sums[j] += factor * (double)hone_element_get(b->data, dtype, from + j * b->column_stride);
    }
}

static void multiply_row(
    const hone_matrix *a, const hone_matrix *b, const hone_matrix *c, hone_dtype_id dtype, int64_t row)
{
    double sums[BLOCK];
    for (int64_t column = 0; column < c->columns; column += BLOCK) {
        int64_t count = c->columns - column < BLOCK ? c->columns - column : BLOCK;
        sum_columns(a, b, dtype, row, column, count, sums);
        for (int64_t j = 0; j < count; j++) {
            int64_t to = row * c->row_stride + (column + j) * c->column_stride;
            hone_element_put(c->data, dtype, to, (float)sums[j]);
        }
    }
}

static hone_matrix transposed(hone_matrix matrix)
{
    return (hone_matrix){matrix.data, matrix.columns, matrix.rows, matrix.column_stride, matrix.row_stride};
}

hone_status hone_matmul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    hone_matrix a = hone_matrix_of(args[MATMUL_A].as.tensor), b = hone_matrix_of(args[MATMUL_B].as.tensor),
                c = hone_matrix_of(args[MATMUL_C].as.tensor);
    hone_dtype_id dtype = hone_float_id(args[MATMUL_C].as.tensor->dtype);
    if (hone_matmul_transposes(plan)) b = transposed(b);
    for (int64_t row = 0; row < c.rows; row++)
        multiply_row(&a, &b, &c, dtype, row);
    return HONE_OK;
}
