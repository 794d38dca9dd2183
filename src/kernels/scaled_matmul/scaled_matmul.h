// The product of two matrices of 8-bit integers or 8-bit floats, scaled: c = a_scale[row] * b_scale[column] * (a b) +
// bias[column]. Sums of integers' products are exact; those of floats' are computed in double on CPUs, in float on
// GPUs. The rest is computed in float, in the order (sum * a_scale) * b_scale + bias, and rounded to the dtype of c.
//
// The loops are those of matmul: gemm.h for blocks, decode.h for a few rows. This folder has the parts that are
// specific to integers.
#ifndef HONE_KERNELS_SCALED_MATMUL_H
#define HONE_KERNELS_SCALED_MATMUL_H

#include "kernels/matmul/sets.h"

// The order of values.
enum {
    SCALED_MATMUL_A,
    SCALED_MATMUL_B,
    SCALED_MATMUL_A_SCALE,
    SCALED_MATMUL_B_SCALE,
    SCALED_MATMUL_BIAS,
    SCALED_MATMUL_C,
    SCALED_MATMUL_TRANSPOSE_B,
    SCALED_MATMUL_VALUES
};

// Products of two integers are at most 2^14, so the sum of that many fits into 32 bits.
enum { SCALED_MATMUL_MOST_K = (1 << 17) - 1 };

// Its is_plain accepts only integers.
extern const hone_matmul_form hone_scaled_matmul_form;

// Whether the rows of a, b and c and the bias are dense, and b's scales are dense or a single one; else why says which
// are not.
bool hone_scaled_matmul_has_dense_rows(const hone_call *call, hone_error *why);

// Of a and b: HONE_I8, HONE_F8_E4M3FN or HONE_F8_E5M2.
hone_dtype_id hone_scaled_matmul_operands(const hone_tensor *a);

extern const hone_gemm_set hone_scaled_gemm_avx2, hone_scaled_gemm_avx512, hone_scaled_gemm_avx512_vnni;
extern const hone_gemm_set hone_scaled_gemm_amx_int8; // its tile is NULL if the compiler has no AMX
extern const hone_decode_set hone_scaled_decode_avx2, hone_scaled_decode_avx512, hone_scaled_decode_avx512_vnni;

// portable.c, for any strides and any k.
hone_run_function hone_scaled_matmul_portable, hone_scaled_matmul_reference;

// cuda.c: the sources of matmul's kernels, for bytes.
extern const char hone_scaled_tensor_core_signature[], hone_scaled_tensor_core_f8_signature[];
extern const char hone_scaled_wgmma_f8_signature[];
extern const char hone_scaled_tensor_core_space[], hone_scaled_wgmma_space[], hone_scaled_wgmma_f8_space[];
extern const char hone_scaled_simt_space[];
extern const hone_code hone_scaled_tensor_core_code, hone_scaled_tensor_core_f8_code, hone_scaled_wgmma_code;
extern const hone_code hone_scaled_wgmma_f8_code, hone_scaled_simt_code;

// cublaslt.c
extern const char hone_scaled_cublaslt_signature[];
bool hone_scaled_cublaslt_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);

// The CPU features that the sets need.
enum {
    HONE_SCALED_AVX2 = HONE_CPU_AVX2 | HONE_CPU_FMA | HONE_CPU_F16C,
    HONE_SCALED_AVX512 = HONE_CPU_AVX512F | HONE_CPU_AVX512BW | HONE_CPU_AVX512VL | HONE_CPU_AVX512DQ
};

// onednn3.c: the widest set, at least AVX2's, applies the epilogue.
bool hone_scaled_onednn3_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
hone_status hone_scaled_onednn3_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
hone_status hone_scaled_onednn3_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

#endif
