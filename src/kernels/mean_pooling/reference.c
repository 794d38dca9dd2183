// In double, for any strides.
#include "kernels/common/half.h"
#include "kernels/mean_pooling/mean_pooling.h"

double hone_pooling_mean(const hone_pooling *p, int64_t batch, int64_t channel)
{
    double sum = 0;
    for (int64_t i = 0; i < p->seq_len; i++)
        sum += (double)hone_element_get(p->x, p->dtype, batch * p->x_batch + i * p->x_step + channel * p->x_channel);
    return sum / (double)p->seq_len;
}

hone_status hone_mean_pooling_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    hone_pooling p = hone_pooling_of(args);
    for (int64_t b = 0; b < p.batch; b++)
        for (int64_t c = 0; c < p.channels; c++)
            hone_element_put(p.out, p.dtype, b * p.out_batch + c * p.out_channel, (float)hone_pooling_mean(&p, b, c));
    return HONE_OK;
}
