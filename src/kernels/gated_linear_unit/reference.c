// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/gated_linear_unit/gated_linear_unit.h"
#include "kernels/vector/rows.h"

#include <math.h>
#include <string.h>

hone_activation hone_activation_of(const hone_value *value)
{
    static const char *const names[ACTIVATION_COUNT] = {"none", "silu", "sigmoid", "relu", "gelu", "tanh"};
    if (value->tag != HONE_VALUE_STRING) return ACTIVATION_NONE;
    int i = 0;
    while (i < ACTIVATION_COUNT && strcmp(names[i], value->as.string) != 0)
        i++;
    return (hone_activation)i;
}

static double activate(hone_activation activation, double x)
{
    switch (activation) {
    case ACTIVATION_SILU:
        return x / (1 + exp(-x));
    case ACTIVATION_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACTIVATION_RELU:
        return x > 0 ? x : 0;
    case ACTIVATION_GELU:
        return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case ACTIVATION_TANH:
        return tanh(x);
    default:
        return x;
    }
}

hone_status hone_gated_linear_unit_reference(
    const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_tensor *w = args[GATED_WEIGHTS].as.tensor;
    const hone_rows x = hone_rows_of(args[GATED_X].as.tensor), y = hone_rows_of(args[GATED_Y].as.tensor);
    const hone_dtype_id dtype = hone_float_id(args[GATED_X].as.tensor->dtype);
    const hone_activation activation = hone_activation_of(&hone_call_values(plan->call)[GATED_ACTIVATION]);
    const int64_t deep = hone_axis_stride(w, 0), half = hone_axis_stride(w, 1), wide = hone_axis_stride(w, 2);
    const char *weights = hone_tensor_data(w);
    if (activation == ACTIVATION_COUNT) return HONE_UNSUPPORTED;
    for (int64_t row = 0; row < y.count; row++) {
        for (int64_t n = 0; n < y.length; n++) {
            double gate = 0, up = 0;
            for (int64_t k = 0; k < x.length; k++) {
                const double value = (double)hone_element_get(x.data, dtype, hone_rows_offset(&x, row) + k * x.step);
                gate += value * (double)hone_element_get(weights, dtype, k * deep + n * wide);
                up += value * (double)hone_element_get(weights, dtype, k * deep + half + n * wide);
            }
            hone_element_put(
                y.data, dtype, hone_rows_offset(&y, row) + n * y.step, (float)(activate(activation, gate) * up));
        }
    }
    return HONE_OK;
}
