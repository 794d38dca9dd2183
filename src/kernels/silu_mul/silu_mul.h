// The gate of SwiGLU: y = silu(gate) up with silu(x) = x / (1 + e^-x), and its gradient:
// d_up = silu(gate) d_y, d_gate = s (1 + gate (1 - s)) up d_y with s = 1 / (1 + e^-gate).
#ifndef HONE_KERNELS_SILU_MUL_H
#define HONE_KERNELS_SILU_MUL_H

#include "hone/kernel.h"

// The order of values, and of the space's parameters.
enum { SILU_MUL_GATE, SILU_MUL_UP, SILU_MUL_Y };
enum { SILU_MUL_VJP_GATE, SILU_MUL_VJP_UP, SILU_MUL_VJP_D_Y, SILU_MUL_VJP_D_GATE, SILU_MUL_VJP_D_UP };
enum { SILU_MUL_UNROLL, SILU_MUL_ROWS_PER_TASK, SILU_MUL_STORE, SILU_MUL_THREADS };

enum { SILU_MUL_ARRAYS = 5 };

hone_run_function hone_silu_mul_reference, hone_silu_mul_portable, hone_silu_mul_avx2, hone_silu_mul_avx512;
hone_run_function hone_silu_mul_vjp_reference, hone_silu_mul_vjp_portable, hone_silu_mul_vjp_avx2,
    hone_silu_mul_vjp_avx512;

#endif
