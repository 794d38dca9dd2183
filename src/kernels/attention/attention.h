// attention: flash_attention's rules, with the weights [batch, heads, seq_len, kv_len] as a second result.
#ifndef HONE_KERNELS_ATTENTION_H
#define HONE_KERNELS_ATTENTION_H

#include "kernels/flash_attention/flash_attention.h"

// The parameters of the space.
enum { ATTENTION_ROWS, ATTENTION_THREADS };

hone_attention_function hone_attention_weights_portable, hone_attention_weights_avx2, hone_attention_weights_avx512;

#endif
