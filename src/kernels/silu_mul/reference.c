// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/silu_mul/silu_mul.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

typedef struct arrays {
    hone_rows rows[SILU_MUL_ARRAYS];
    hone_dtype_id dtype;
} arrays;

static arrays arrays_of(const hone_value *args, int count)
{
    arrays all = {.dtype = hone_float_id(args[0].as.tensor->dtype)};
    for (int i = 0; i < count; i++)
        all.rows[i] = hone_rows_of(args[i].as.tensor);
    return all;
}

static int64_t offset(const hone_rows *rows, int64_t row, int64_t i)
{
    return hone_rows_offset(rows, row) + i * rows->step;
}

static double get(const arrays *all, int array, int64_t row, int64_t i)
{
    const hone_rows *rows = &all->rows[array];
    return hone_element_get_double(rows->data, all->dtype, offset(rows, row, i));
}

static void put(const arrays *all, int array, int64_t row, int64_t i, double value)
{
    const hone_rows *rows = &all->rows[array];
    hone_element_put_double(rows->data, all->dtype, offset(rows, row, i), value);
}

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

hone_status hone_silu_mul_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    arrays all = arrays_of(args, SILU_MUL_Y + 1);
    for (int64_t row = 0; row < all.rows[0].count; row++)
        for (int64_t i = 0; i < all.rows[0].length; i++) {
            double gate = get(&all, SILU_MUL_GATE, row, i);
            put(&all, SILU_MUL_Y, row, i, gate * sigmoid(gate) * get(&all, SILU_MUL_UP, row, i));
        }
    return HONE_OK;
}

hone_status hone_silu_mul_vjp_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan, (void)execution;
    arrays all = arrays_of(args, SILU_MUL_VJP_D_UP + 1);
    for (int64_t row = 0; row < all.rows[0].count; row++)
        for (int64_t i = 0; i < all.rows[0].length; i++) {
            double gate = get(&all, SILU_MUL_VJP_GATE, row, i), d_y = get(&all, SILU_MUL_VJP_D_Y, row, i);
            double slope = sigmoid(gate) * (1 + gate * sigmoid(-gate));
            put(&all, SILU_MUL_VJP_D_GATE, row, i, slope * get(&all, SILU_MUL_VJP_UP, row, i) * d_y);
            put(&all, SILU_MUL_VJP_D_UP, row, i, gate * sigmoid(gate) * d_y);
        }
    return HONE_OK;
}
