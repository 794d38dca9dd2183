// The gradient of flash_attention, from its arguments alone: the weights are computed again. With p the weights of a
// query over the keys that it sees, and slope = scale, or scale (1 - tanh^2) under a soft cap:
//   d_value[j] = sum over the queries of p[j] d_out
//   e[j]       = p[j] (d_out . value[j] - sum over k of p[k] d_out . value[k]) slope[j]
//   d_query    = sum over the keys of e[j] key[j]
//   d_key[j]   = sum over the queries of e[j] query
// A query that sees no key has equal weights for all values, whatever its elements are: its own gradient is 0, and it
// only adds to d_value.
#ifndef HONE_KERNELS_FLASH_ATTENTION_VJP_H
#define HONE_KERNELS_FLASH_ATTENTION_VJP_H

#include "kernels/flash_attention/flash_attention.h"

// The order of values, and of the space's parameters.
enum {
    ATTENTION_VJP_QUERY,
    ATTENTION_VJP_KEY,
    ATTENTION_VJP_VALUE,
    ATTENTION_VJP_D_OUT,
    ATTENTION_VJP_D_QUERY,
    ATTENTION_VJP_D_KEY,
    ATTENTION_VJP_D_VALUE,
    ATTENTION_VJP_CAUSAL,
    ATTENTION_VJP_SOFTMAX_SCALE,
    ATTENTION_VJP_SLIDING_WINDOW,
    ATTENTION_VJP_LOGITS_SOFT_CAP
};
enum { ATTENTION_VJP_SPLITS, ATTENTION_VJP_THREADS };

typedef struct hone_attention_vjp {
    hone_attention of; // `out` is d_out
    hone_attention_array d_query, d_key, d_value;
} hone_attention_vjp;

extern const hone_attention_form hone_attention_vjp_form;
hone_attention_vjp hone_attention_vjp_of(const hone_plan *plan, const hone_value *args);

hone_run_function hone_attention_vjp_reference, hone_attention_vjp_portable, hone_attention_vjp_avx2,
    hone_attention_vjp_avx512;

#endif
