// The instruction sets of the blocked product.
#ifndef HONE_KERNELS_MATMUL_SETS_H
#define HONE_KERNELS_MATMUL_SETS_H

#include "kernels/matmul/gemm.h"

extern const hone_gemm_set hone_gemm_avx512;

#endif
