// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

hone_rms_norm hone_rms_norm_of(const hone_plan *plan, const hone_value *args)
{
    const hone_tensor *weight = args[RMS_NORM_WEIGHT].as.tensor;
    hone_rms_norm norm = {
        .x = hone_rows_of(args[RMS_NORM_X].as.tensor),
        .y = hone_rows_of(args[RMS_NORM_Y].as.tensor),
        .weight = hone_tensor_data(weight),
        .weight_step = hone_axis_stride(weight, 0),
        .eps = hone_number_of(&hone_call_values(plan->call)[RMS_NORM_EPS], 1e-6),
        .dtype = hone_float_id(weight->dtype),
    };
    return norm;
}

void hone_rms_norm_row(const hone_rms_norm *norm, int64_t row)
{
    int64_t from = hone_rows_offset(&norm->x, row), to = hone_rows_offset(&norm->y, row), length = norm->x.length;
    double squares = 0;
    for (int64_t i = 0; i < length; i++) {
        double value = hone_element_get_double(norm->x.data, norm->dtype, from + i * norm->x.step);
        squares += value * value;
    }
    double factor = 1 / sqrt(squares / (double)length + norm->eps);
    for (int64_t i = 0; i < length; i++) {
        double value = hone_element_get_double(norm->x.data, norm->dtype, from + i * norm->x.step);
        double weight = hone_element_get_double(norm->weight, norm->dtype, i * norm->weight_step);
        hone_element_put_double(norm->y.data, norm->dtype, to + i * norm->y.step, value * factor * weight);
    }
}

hone_status hone_rms_norm_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    hone_rms_norm norm = hone_rms_norm_of(plan, args);
    for (int64_t row = 0; row < norm.x.count; row++)
        hone_rms_norm_row(&norm, row);
    return HONE_OK;
}
