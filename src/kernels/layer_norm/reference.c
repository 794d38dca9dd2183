// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/layer_norm/layer_norm.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

static hone_layer_norm_vector vector_of(const hone_value *value)
{
    if (value->tag != HONE_VALUE_TENSOR) return (hone_layer_norm_vector){.data = NULL};
    const hone_tensor *t = value->as.tensor;
    return (hone_layer_norm_vector){hone_tensor_data(t), hone_axis_stride(t, 0), hone_float_id(t->dtype)};
}

hone_layer_norm hone_layer_norm_of(const hone_plan *plan, const hone_value *args)
{
    const hone_value *fixed = hone_call_values(plan->call);
    return (hone_layer_norm){
        .x = hone_rows_of(args[LAYER_NORM_X].as.tensor),
        .y = hone_rows_of(args[LAYER_NORM_Y].as.tensor),
        .weight = vector_of(&args[LAYER_NORM_WEIGHT]),
        .bias = vector_of(&args[LAYER_NORM_BIAS]),
        .eps = hone_number_of(&fixed[LAYER_NORM_EPS], 1e-6),
        .weight_offset = hone_number_of(&fixed[LAYER_NORM_WEIGHT_OFFSET], 0),
        .subtract_mean = fixed[LAYER_NORM_SUBTRACT_MEAN].as.i64 != 0,
        .dtype = hone_float_id(args[LAYER_NORM_X].as.tensor->dtype),
    };
}

static double element_of(const hone_layer_norm_vector *vector, int64_t index)
{
    return hone_element_get_double(vector->data, vector->dtype, index * vector->step);
}

double hone_layer_norm_weight(const hone_layer_norm *norm, int64_t index)
{
    return norm->weight.data != NULL ? element_of(&norm->weight, index) + norm->weight_offset : 1;
}

double hone_layer_norm_bias(const hone_layer_norm *norm, int64_t index)
{
    return norm->bias.data != NULL ? element_of(&norm->bias, index) : 0;
}

void hone_layer_norm_row(const hone_layer_norm *norm, int64_t row)
{
    const int64_t from = hone_rows_offset(&norm->x, row), to = hone_rows_offset(&norm->y, row), length = norm->x.length;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < length; i++)
        sum += hone_element_get_double(norm->x.data, norm->dtype, from + i * norm->x.step);
    const double mean = norm->subtract_mean ? sum / (double)length : 0;
    for (int64_t i = 0; i < length; i++) {
        const double away = hone_element_get_double(norm->x.data, norm->dtype, from + i * norm->x.step) - mean;
        squares += away * away;
    }
    const double factor = 1 / sqrt(squares / (double)length + norm->eps);
    for (int64_t i = 0; i < length; i++) {
        const double away = hone_element_get_double(norm->x.data, norm->dtype, from + i * norm->x.step) - mean;
        const double value = away * factor * hone_layer_norm_weight(norm, i) + hone_layer_norm_bias(norm, i);
        hone_element_put_double(norm->y.data, norm->dtype, to + i * norm->y.step, value);
    }
}

hone_status hone_layer_norm_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_layer_norm norm = hone_layer_norm_of(plan, args);
    for (int64_t row = 0; row < norm.x.count; row++)
        hone_layer_norm_row(&norm, row);
    return HONE_OK;
}
