// The instruction sets of the blocked product and of the product of a few rows.
#ifndef HONE_KERNELS_MATMUL_SETS_H
#define HONE_KERNELS_MATMUL_SETS_H

#include "kernels/matmul/decode.h"
#include "kernels/matmul/gemm.h"

extern const hone_gemm_set hone_gemm_portable, hone_gemm_avx2, hone_gemm_avx512, hone_gemm_avx512_bf16;
extern const hone_gemm_set hone_gemm_portable_f64, hone_gemm_avx2_f64, hone_gemm_avx512_f64;
extern const hone_gemm_set hone_gemm_amx_bf16; // its tile is NULL if the compiler has no AMX
extern const hone_decode_set hone_decode_portable, hone_decode_avx2, hone_decode_avx512, hone_decode_avx512_bf16;
extern const hone_decode_set hone_decode_portable_f64, hone_decode_avx2_f64, hone_decode_avx512_f64;

#endif
