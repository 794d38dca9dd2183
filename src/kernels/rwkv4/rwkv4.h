// RWKV-4's time mix. For each batch and channel, with decay = exp(w), from (a, b, e) = state or (0, 0, minus infinity):
//   wkv[t] = (exp(e) a + exp(u + k[t]) v[t]) / (exp(e) b + exp(u + k[t]))
//   (a, b) = exp(e - decay - e') (a, b) + exp(k[t] - e') (v[t], 1), e = e' with e' = max(e - decay, k[t])
// where a and b have been divided by exp(e), so that nothing overflows.
#ifndef HONE_KERNELS_RWKV4_H
#define HONE_KERNELS_RWKV4_H

#include "kernels/common/matrix.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { RWKV4_W, RWKV4_U, RWKV4_K, RWKV4_V, RWKV4_STATE, RWKV4_WKV };
enum { RWKV4_VECTORS, RWKV4_THREADS };

// An array [batch, step, channel], strides in elements. w and u have no batch and no step.
typedef struct hone_rwkv4_array {
    char *data; // NULL: no state was given
    hone_dtype_id dtype;
    int64_t batch, step, channel;
} hone_rwkv4_array;

typedef struct hone_rwkv4 {
    hone_rwkv4_array w, u, k, v, state, wkv; // a state's steps are a, b and e
    int64_t batch, seq_len, channels;
} hone_rwkv4;

hone_rwkv4 hone_rwkv4_of(const hone_value *args);

static inline char *hone_rwkv4_at(
    const hone_rwkv4_array *array, int64_t size, int64_t batch, int64_t step, int64_t channel)
{
    return array->data + (batch * array->batch + step * array->step + channel * array->channel) * size;
}

hone_run_function hone_rwkv4_reference, hone_rwkv4_portable, hone_rwkv4_avx2, hone_rwkv4_avx512;

#endif
