// Computes in double, for any strides; also reads the arguments for all kernels.
#include "kernels/common/half.h"
#include "kernels/rwkv4/rwkv4.h"

#include <math.h>

static hone_rwkv4_array array_of(const hone_value *value)
{
    hone_rwkv4_array array = {0};
    if (value->tag != HONE_VALUE_TENSOR) return array;
    const hone_tensor *tensor = value->as.tensor;
    array.data = hone_tensor_data(tensor);
    array.dtype = hone_float_id(tensor->dtype);
    array.channel = hone_axis_stride(tensor, tensor->ndim - 1);
    if (tensor->ndim < 3) return array;
    array.batch = hone_axis_stride(tensor, 0);
    array.step = hone_axis_stride(tensor, 1);
    return array;
}

hone_rwkv4 hone_rwkv4_of(const hone_value *args)
{
    const hone_tensor *k = args[RWKV4_K].as.tensor;
    hone_rwkv4 problem = {.batch = k->shape[0], .seq_len = k->shape[1], .channels = k->shape[2]};
    problem.w = array_of(&args[RWKV4_W]);
    problem.u = array_of(&args[RWKV4_U]);
    problem.k = array_of(&args[RWKV4_K]);
    problem.v = array_of(&args[RWKV4_V]);
    problem.state = array_of(&args[RWKV4_STATE]);
    problem.wkv = array_of(&args[RWKV4_WKV]);
    return problem;
}

static double get(const hone_rwkv4_array *array, int64_t batch, int64_t step, int64_t channel)
{
    const char *at = hone_rwkv4_at(array, hone_element_size(array->dtype), batch, step, channel);
    return (double)hone_element_get(at, array->dtype, 0);
}

// The weights of the terms with exponent `old` and with exponent `new`: that of the larger is 1, even if it is
// infinite.
static void relate(double old, double new, double *out_old, double *out_new)
{
    double smaller = exp(-fabs(new - old));
    *out_old = new >= old ? smaller : 1;
    *out_new = new >= old ? 1 : smaller;
}

static void mix(const hone_rwkv4 *p, int64_t batch, int64_t channel)
{
    double decay = exp(get(&p->w, 0, 0, channel)), bonus = get(&p->u, 0, 0, channel), a = 0, b = 0, e = -INFINITY;
    if (p->state.data != NULL) {
        a = get(&p->state, batch, 0, channel);
        b = get(&p->state, batch, 1, channel);
        e = get(&p->state, batch, 2, channel);
    }
    for (int64_t t = 0; t < p->seq_len; t++) {
        double k = get(&p->k, batch, t, channel), v = get(&p->v, batch, t, channel);
        double old, new;
        relate(e, bonus + k, &old, &new);
        char *out = hone_rwkv4_at(&p->wkv, hone_element_size(p->wkv.dtype), batch, t, channel);
        hone_element_put(out, p->wkv.dtype, 0, (float)((old * a + new *v) / (old * b + new)));
        relate(e - decay, k, &old, &new);
        a = old * a + new *v;
        b = old * b + new;
        e = fmax(e - decay, k);
    }
}

hone_status hone_rwkv4_reference(const hone_plan *plan, const hone_value *args, const hone_execution *execution)
{
    (void)plan;
    (void)execution;
    hone_rwkv4 problem = hone_rwkv4_of(args);
    for (int64_t batch = 0; batch < problem.batch; batch++)
        for (int64_t channel = 0; channel < problem.channels; channel++)
            mix(&problem, batch, channel);
    return HONE_OK;
}
