// The mean over a sequence: out[b, h] = mean over s of x[b, s, h].
#ifndef HONE_KERNELS_MEAN_POOLING_H
#define HONE_KERNELS_MEAN_POOLING_H

#include "kernels/common/matrix.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters. chunk_size is ejkernel's; no kernel for a CPU reads it.
enum { MEAN_POOLING_X, MEAN_POOLING_OUT, MEAN_POOLING_CHUNK_SIZE };
enum { MEAN_POOLING_CHANNELS, MEAN_POOLING_ROWS, MEAN_POOLING_THREADS };

// Strides are in elements.
typedef struct hone_pooling {
    const char *x;
    char *out;
    hone_dtype_id dtype;
    int64_t batch, seq_len, channels;
    int64_t x_batch, x_step, x_channel, out_batch, out_channel;
} hone_pooling;

static inline hone_pooling hone_pooling_of(const hone_value *args)
{
    const hone_tensor *x = args[MEAN_POOLING_X].as.tensor, *out = args[MEAN_POOLING_OUT].as.tensor;
    hone_pooling pooling = {
        .x = hone_tensor_data(x),
        .out = hone_tensor_data(out),
        .dtype = hone_float_id(x->dtype),
        .batch = x->shape[0],
        .seq_len = x->shape[1],
        .channels = x->shape[2],
        .x_batch = hone_axis_stride(x, 0),
        .x_step = hone_axis_stride(x, 1),
        .x_channel = hone_axis_stride(x, 2),
        .out_batch = hone_axis_stride(out, 0),
        .out_channel = hone_axis_stride(out, 1),
    };
    return pooling;
}

// Computes one mean in double: the reference, and the fallback of a kernel if a sum of floats exceeds their range.
double hone_pooling_mean(const hone_pooling *pooling, int64_t batch, int64_t channel);

hone_run_function hone_mean_pooling_reference, hone_mean_pooling_portable, hone_mean_pooling_avx2,
    hone_mean_pooling_avx512;

#endif
