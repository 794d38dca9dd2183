// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/softmax/softmax.h"
#include "kernels/vector/arguments.h"
#include "kernels/vector/rows.h"

#include <math.h>

typedef struct softmax {
    hone_rows x, y;
    double scale;
    hone_dtype_id dtype;
} softmax;

static double element(const softmax *job, int64_t offset, int64_t i)
{
    return hone_element_get_double(job->x.data, job->dtype, offset + i * job->x.step);
}

// Subtracts before scaling: the product of the scale and an element could be infinite while that of the difference is
// not.
static void normalise(const softmax *job, int64_t row)
{
    int64_t from = hone_rows_offset(&job->x, row), to = hone_rows_offset(&job->y, row), length = job->x.length;
    double sign = job->scale < 0 ? -1 : 1, most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < length; i++)
        most = fmax(most, sign * element(job, from, i)); // ignores NaN, which reaches the sum
    for (int64_t i = 0; i < length; i++)
        sum += exp(job->scale * (element(job, from, i) - sign * most));
    for (int64_t i = 0; i < length; i++) {
        double value = exp(job->scale * (element(job, from, i) - sign * most)) / sum;
        hone_element_put_double(job->y.data, job->dtype, to + i * job->y.step, value);
    }
}

hone_status hone_softmax_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    softmax job = {
        .x = hone_rows_of(args[SOFTMAX_X].as.tensor),
        .y = hone_rows_of(args[SOFTMAX_Y].as.tensor),
        .scale = hone_number_of(&hone_call_values(plan->call)[SOFTMAX_SCALE], 1.0),
        .dtype = hone_float_id(args[SOFTMAX_X].as.tensor->dtype),
    };
    for (int64_t row = 0; row < job.x.count; row++)
        normalise(&job, row);
    return HONE_OK;
}
