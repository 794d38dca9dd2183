// The tables of the built-in algorithms, one line each.
#ifndef HONE_KERNELS_TABLES_H
#define HONE_KERNELS_TABLES_H

#include "kernels/kernels.h"

extern const hone_kernel_table hone_matmul_table;
extern const hone_kernel_table hone_rms_norm_table;
extern const hone_kernel_table hone_softmax_table;
extern const hone_kernel_table hone_flash_attention_table;
extern const hone_kernel_table hone_scaled_dot_product_attention_table;
extern const hone_kernel_table hone_attention_table;
extern const hone_kernel_table hone_mean_pooling_table;
extern const hone_kernel_table hone_rwkv4_table;
extern const hone_kernel_table hone_stencil_table;
extern const hone_kernel_table hone_reduction_table;
extern const hone_kernel_table hone_silu_mul_table;
extern const hone_kernel_table hone_silu_mul_vjp_table;

#endif
