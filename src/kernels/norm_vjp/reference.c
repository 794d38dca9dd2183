// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/common/scratch.h"
#include "kernels/norm_vjp/norm_vjp.h"
#include "kernels/vector/arguments.h"

#include <math.h>
#include <string.h>

static hone_norm_vjp_vector vector_of(const hone_value *value)
{
    if (value->tag != HONE_VALUE_TENSOR) return (hone_norm_vjp_vector){.data = NULL};
    const hone_tensor *t = value->as.tensor;
    return (hone_norm_vjp_vector){hone_tensor_data(t), hone_axis_stride(t, 0), hone_float_id(t->dtype)};
}

hone_norm_vjp hone_rms_norm_vjp_of(const hone_plan *plan, const hone_value *args)
{
    return (hone_norm_vjp){
        .x = hone_rows_of(args[RMS_NORM_VJP_X].as.tensor),
        .d_y = hone_rows_of(args[RMS_NORM_VJP_D_Y].as.tensor),
        .d_x = hone_rows_of(args[RMS_NORM_VJP_D_X].as.tensor),
        .weight = vector_of(&args[RMS_NORM_VJP_WEIGHT]),
        .d_weight = vector_of(&args[RMS_NORM_VJP_D_WEIGHT]),
        .eps = hone_number_of(&hone_call_values(plan->call)[RMS_NORM_VJP_EPS], 1e-6),
        .dtype = hone_float_id(args[RMS_NORM_VJP_X].as.tensor->dtype),
    };
}

hone_norm_vjp hone_add_rms_norm_vjp_of(const hone_plan *plan, const hone_value *args)
{
    return (hone_norm_vjp){
        .x = hone_rows_of(args[ADD_RMS_NORM_VJP_SUM].as.tensor),
        .d_y = hone_rows_of(args[ADD_RMS_NORM_VJP_D_Y].as.tensor),
        .d_sum = hone_rows_of(args[ADD_RMS_NORM_VJP_D_SUM].as.tensor),
        .d_x = hone_rows_of(args[ADD_RMS_NORM_VJP_D_X].as.tensor),
        .weight = vector_of(&args[ADD_RMS_NORM_VJP_WEIGHT]),
        .d_weight = vector_of(&args[ADD_RMS_NORM_VJP_D_WEIGHT]),
        .eps = hone_number_of(&hone_call_values(plan->call)[ADD_RMS_NORM_VJP_EPS], 1e-6),
        .dtype = hone_float_id(args[ADD_RMS_NORM_VJP_SUM].as.tensor->dtype),
    };
}

hone_norm_vjp hone_layer_norm_vjp_of(const hone_plan *plan, const hone_value *args)
{
    const hone_value *fixed = hone_call_values(plan->call);
    return (hone_norm_vjp){
        .x = hone_rows_of(args[LAYER_NORM_VJP_X].as.tensor),
        .d_y = hone_rows_of(args[LAYER_NORM_VJP_D_Y].as.tensor),
        .d_x = hone_rows_of(args[LAYER_NORM_VJP_D_X].as.tensor),
        .weight = vector_of(&args[LAYER_NORM_VJP_WEIGHT]),
        .d_weight = vector_of(&args[LAYER_NORM_VJP_D_WEIGHT]),
        .d_bias = vector_of(&args[LAYER_NORM_VJP_D_BIAS]),
        .eps = hone_number_of(&fixed[LAYER_NORM_VJP_EPS], 1e-6),
        .weight_offset = hone_number_of(&fixed[LAYER_NORM_VJP_WEIGHT_OFFSET], 0),
        .subtract_mean = fixed[LAYER_NORM_VJP_SUBTRACT_MEAN].as.i64 != 0,
        .dtype = hone_float_id(args[LAYER_NORM_VJP_X].as.tensor->dtype),
    };
}

double hone_norm_vjp_weight(const hone_norm_vjp *norm, int64_t index)
{
    const hone_norm_vjp_vector *weight = &norm->weight;
    if (weight->data == NULL) return 1;
    return hone_element_get_double(weight->data, weight->dtype, index * weight->step) + norm->weight_offset;
}

void hone_norm_vjp_put(const hone_norm_vjp_vector *vector, int64_t index, double value)
{
    hone_element_put_double(vector->data, vector->dtype, index * vector->step, value);
}

static double get(const hone_norm_vjp *norm, const hone_rows *rows, int64_t row, int64_t i)
{
    return hone_element_get_double(rows->data, norm->dtype, row + i * rows->step);
}

void hone_norm_vjp_row(const hone_norm_vjp *norm, int64_t row, double *weights, double *biases)
{
    const int64_t x = hone_rows_offset(&norm->x, row), d_y = hone_rows_offset(&norm->d_y, row);
    const int64_t d_x = hone_rows_offset(&norm->d_x, row), length = norm->x.length;
    const double count = (double)length;
    double sum = 0, gradients = 0, squares = 0, products = 0;
    for (int64_t i = 0; i < length; i++) {
        sum += get(norm, &norm->x, x, i);
        gradients += get(norm, &norm->d_y, d_y, i) * hone_norm_vjp_weight(norm, i);
    }
    const double mean = norm->subtract_mean ? sum / count : 0, gradient = norm->subtract_mean ? gradients / count : 0;
    for (int64_t i = 0; i < length; i++) {
        const double away = get(norm, &norm->x, x, i) - mean;
        squares += away * away;
        products += (get(norm, &norm->d_y, d_y, i) * hone_norm_vjp_weight(norm, i) - gradient) * away;
    }
    const double factor = 1 / sqrt(squares / count + norm->eps), along = products * factor / count;
    for (int64_t i = 0; i < length; i++) {
        const double given = get(norm, &norm->d_y, d_y, i), h = (get(norm, &norm->x, x, i) - mean) * factor;
        double value = factor * (given * hone_norm_vjp_weight(norm, i) - gradient - h * along);
        if (norm->d_sum.data != NULL) value += get(norm, &norm->d_sum, hone_rows_offset(&norm->d_sum, row), i);
        hone_element_put_double(norm->d_x.data, norm->dtype, d_x + i * norm->d_x.step, value);
        weights[i] += given * h;
        if (biases != NULL) biases[i] += given;
    }
}

static hone_status run(const hone_norm_vjp *norm)
{
    const int64_t length = norm->x.length;
    double *weights = hone_scratch_get((size_t)(2 * length) * sizeof *weights), *biases = weights + length;
    if (weights == NULL) return HONE_OUT_OF_MEMORY;
    memset(weights, 0, (size_t)(2 * length) * sizeof *weights);
    for (int64_t row = 0; row < norm->x.count; row++)
        hone_norm_vjp_row(norm, row, weights, biases);
    for (int64_t i = 0; i < length; i++) {
        hone_norm_vjp_put(&norm->d_weight, i, weights[i]);
        if (norm->d_bias.data != NULL) hone_norm_vjp_put(&norm->d_bias, i, biases[i]);
    }
    return HONE_OK;
}

hone_status hone_rms_norm_vjp_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_norm_vjp norm = hone_rms_norm_vjp_of(plan, args);
    return run(&norm);
}

hone_status hone_add_rms_norm_vjp_reference(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_norm_vjp norm = hone_add_rms_norm_vjp_of(plan, args);
    return run(&norm);
}

hone_status hone_layer_norm_vjp_reference(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_norm_vjp norm = hone_layer_norm_vjp_of(plan, args);
    return run(&norm);
}
