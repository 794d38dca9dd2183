// In double, element by element, for any strides.
#include "kernels/add_rms_norm/add_rms_norm.h"
#include "kernels/common/half.h"
#include "kernels/vector/arguments.h"

hone_rms_norm hone_add_rms_norm_of(const hone_plan *plan, const hone_value *args)
{
    const hone_tensor *weight = args[ADD_RMS_NORM_WEIGHT].as.tensor;
    return (hone_rms_norm){
        .x = hone_rows_of(args[ADD_RMS_NORM_SUM].as.tensor),
        .y = hone_rows_of(args[ADD_RMS_NORM_Y].as.tensor),
        .weight = hone_tensor_data(weight),
        .weight_step = hone_axis_stride(weight, 0),
        .eps = hone_number_of(&hone_call_values(plan->call)[ADD_RMS_NORM_EPS], 1e-6),
        .dtype = hone_float_id(weight->dtype),
    };
}

hone_status hone_add_rms_norm_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_rms_norm norm = hone_add_rms_norm_of(plan, args);
    const hone_rows x = hone_rows_of(args[ADD_RMS_NORM_X].as.tensor);
    const hone_rows residual = hone_rows_of(args[ADD_RMS_NORM_RESIDUAL].as.tensor);
    for (int64_t row = 0; row < norm.x.count; row++) {
        const int64_t from = hone_rows_offset(&x, row), other = hone_rows_offset(&residual, row);
        const int64_t to = hone_rows_offset(&norm.x, row);
        for (int64_t i = 0; i < x.length; i++) {
            const double sum = hone_element_get_double(x.data, norm.dtype, from + i * x.step) +
                               hone_element_get_double(residual.data, norm.dtype, other + i * residual.step);
            hone_element_put_double(norm.x.data, norm.dtype, to + i * norm.x.step, sum);
        }
        hone_rms_norm_row(&norm, row);
    }
    return HONE_OK;
}
