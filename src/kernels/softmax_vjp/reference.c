// In double, element by element, for any strides.
#include "kernels/common/half.h"
#include "kernels/softmax_vjp/softmax_vjp.h"
#include "kernels/vector/arguments.h"

hone_softmax_vjp hone_softmax_vjp_of(const hone_plan *plan, const hone_value *args)
{
    return (hone_softmax_vjp){
        .y = hone_rows_of(args[SOFTMAX_VJP_Y].as.tensor),
        .d_y = hone_rows_of(args[SOFTMAX_VJP_D_Y].as.tensor),
        .d_x = hone_rows_of(args[SOFTMAX_VJP_D_X].as.tensor),
        .scale = hone_number_of(&hone_call_values(plan->call)[SOFTMAX_VJP_SCALE], 1.0),
        .dtype = hone_float_id(args[SOFTMAX_VJP_Y].as.tensor->dtype),
    };
}

static double element(const hone_rows *rows, hone_dtype_id dtype, int64_t row, int64_t i)
{
    return hone_element_get_double(rows->data, dtype, row + i * rows->step);
}

void hone_softmax_vjp_row(const hone_softmax_vjp *job, int64_t row)
{
    const int64_t y = hone_rows_offset(&job->y, row), d_y = hone_rows_offset(&job->d_y, row);
    const int64_t d_x = hone_rows_offset(&job->d_x, row);
    double sum = 0;
    for (int64_t i = 0; i < job->y.length; i++)
        sum += element(&job->y, job->dtype, y, i) * element(&job->d_y, job->dtype, d_y, i);
    for (int64_t i = 0; i < job->y.length; i++) {
        const double apart = element(&job->d_y, job->dtype, d_y, i) - sum;
        const double value = element(&job->y, job->dtype, y, i) * apart * job->scale;
        hone_element_put_double(job->d_x.data, job->dtype, d_x + i * job->d_x.step, value);
    }
}

hone_status hone_softmax_vjp_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)execution;
    const hone_softmax_vjp job = hone_softmax_vjp_of(plan, args);
    for (int64_t row = 0; row < job.y.count; row++)
        hone_softmax_vjp_row(&job, row);
    return HONE_OK;
}
