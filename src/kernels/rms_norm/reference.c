// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

typedef struct norm {
    hone_rows x, y;
    const void *weight;
    int64_t weight_step;
    double eps;
    hone_dtype_id dtype;
} norm;

static void normalise(const norm *job, int64_t row)
{
    int64_t from = hone_rows_offset(&job->x, row), to = hone_rows_offset(&job->y, row), length = job->x.length;
    double squares = 0;
    for (int64_t i = 0; i < length; i++) {
        double value = (double)hone_element_get(job->x.data, job->dtype, from + i * job->x.step);
        squares += value * value;
    }
    double factor = 1 / sqrt(squares / (double)length + job->eps);
    for (int64_t i = 0; i < length; i++) {
        double value = (double)hone_element_get(job->x.data, job->dtype, from + i * job->x.step);
        double weight = (double)hone_element_get(job->weight, job->dtype, i * job->weight_step);
        hone_element_put(job->y.data, job->dtype, to + i * job->y.step, (float)(value * factor * weight));
    }
}

hone_status hone_rms_norm_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_tensor *weight = args[RMS_NORM_WEIGHT].as.tensor;
    norm job = {
        .x = hone_rows_of(args[RMS_NORM_X].as.tensor),
        .y = hone_rows_of(args[RMS_NORM_Y].as.tensor),
        .weight = hone_tensor_data(weight),
        .weight_step = hone_axis_stride(weight, 0),
        .eps = hone_number_of(&hone_call_values(plan->call)[RMS_NORM_EPS], 1e-6),
        .dtype = hone_float_id(weight->dtype),
    };
    for (int64_t row = 0; row < job.x.count; row++)
        normalise(&job, row);
    return HONE_OK;
}
