// In double, for any strides.
#include "kernels/common/matrix.h"
#include "kernels/reduction/reduction.h"

double hone_reduction_sum(const float *x, int64_t length, int64_t step)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++)
        sum += (double)x[i * step];
    return sum;
}

hone_status hone_reduction_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    const hone_tensor *x = args[REDUCTION_X].as.tensor, *y = args[REDUCTION_Y].as.tensor;
    const float *from = hone_tensor_data(x);
    float *to = hone_tensor_data(y);
    for (int64_t i = 0; i < x->shape[0]; i++) {
        double sum = hone_reduction_sum(from + i * hone_axis_stride(x, 0), x->shape[1], hone_axis_stride(x, 1));
        to[i * hone_axis_stride(y, 0)] = (float)sum;
    }
    return HONE_OK;
}
