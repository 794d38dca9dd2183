// The kernels of NVIDIA's GPUs: how matmul's sources are compiled and launched for operands of bytes.
//
// The tensor cores read bytes only along k, so b must be transposed; simt.cu accepts both forms. There are separate
// kernels for integers and for floats, because different GPUs support them.
#include "kernels/matmul/kernels.h"
#include "kernels/scaled_matmul/scaled_matmul.h"
#include "kernels/sources.h"

#include <assert.h>

static_assert(
    (int)SCALED_MATMUL_A == (int)MATMUL_A && (int)SCALED_MATMUL_B == (int)MATMUL_B,
    "the heuristics read a and b of either");

#define SIGNATURE(operands, results)                                                                                   \
    "scaled_matmul(a: Q[m, k], b: Q[n, k] if transpose_b else [k, n], a_scale: f32[m], b_scale: f32[n], bias: T[n], "  \
    "*, transpose_b: bool = false) -> c: T[m, n] where T in " results " where Q in " operands
#define F8 "f8_e4m3fn, f8_e5m2"
const char hone_scaled_tensor_core_signature[] = SIGNATURE("i8", "f32, f16, bf16");
const char hone_scaled_tensor_core_f8_signature[] = SIGNATURE(F8, "f32, f16, bf16");
// wgmma of 8-bit floats keeps too few bits of a sum for more: on an H200 sums of 208 products are off by 1 in 600 of c
// if terms of 384 cancel each other.
const char hone_scaled_wgmma_f8_signature[] = SIGNATURE(F8, "bf16");

#define ARGUMENTS "a, b, a_scale, b_scale, bias, c, i32(m), i32(n), i32(k)"
// Whole chunks of 16 bytes along the rows of a and b.
#define ALONG_K "transpose_b and k % 16 == 0 and m > 0 and n > 0 and k > 0"
#define EXACT   " and k < 131072" // a 32-bit sum can hold that many products

const char hone_scaled_tensor_core_space[] = HONE_TENSOR_CORE_SPACE("64 | 128 | 256 default 64", "");

#define TENSOR_CORE                                                                                                    \
    HONE_CODE, .source = hone_source_matmul_tensor_core_cu, .entry = "matmul", .arguments = ARGUMENTS,                 \
               .constants = "TRANSPOSE_B = 1", .grid = HONE_PRODUCT_TILES, .block = "32 * warps_m * warps_n",          \
               .shared = "stages * (block_m + block_n) * block_k", .align = 16
const hone_code hone_scaled_tensor_core_code = {TENSOR_CORE, .condition = ALONG_K EXACT, .target = "sm_80"};
const hone_code hone_scaled_tensor_core_f8_code = {TENSOR_CORE, .condition = ALONG_K, .target = "sm_89"};

const char hone_scaled_wgmma_space[] = HONE_WGMMA_SPACE("64 | 128 | 256");
// The totals of 256 columns would not fit into registers together with the sums.
const char hone_scaled_wgmma_f8_space[] = HONE_WGMMA_SPACE("64 | 128") "promote_every: 1 | 2 | 4 default 2\n";

#define WGMMA                                                                                                          \
    HONE_CODE, .source = hone_source_matmul_wgmma_cu, .entry = "matmul",                                               \
               .arguments = "a_scale, b_scale, bias, c, i32(m), i32(n), i32(k), "                                      \
                            "map(a, 128, block_m, 128), map(b, 128, block_n, 128)",                                    \
               .grid = HONE_PRODUCT_TILES " * splits", .cluster = "splits", .block = HONE_WGMMA_BLOCK,                 \
               .shared = HONE_WGMMA_SHARED, .target = "sm_90a", .align = 16
const hone_code hone_scaled_wgmma_code = {
    WGMMA, .constants = "TRANSPOSE_B = 1, promote_every = 0", .condition = ALONG_K EXACT};
const hone_code hone_scaled_wgmma_f8_code = {WGMMA, .constants = "TRANSPOSE_B = 1", .condition = ALONG_K};

const char hone_scaled_simt_space[] = "block_m: 16 | 32 | 64 | 128 default 64\n"
                                      "block_n: 32 | 64 | 128 default 64\n"
                                      "block_k: 16 | 32 default 16\n"
                                      "thread_m: 1 | 4 | 8 default 4\n"
                                      "thread_n: 4 | 8 default 4\n"
                                      "where block_m * block_n >= 32 * thread_m * thread_n\n"
                                      "where block_m * block_n <= 512 * thread_m * thread_n\n"
                                      "where (block_m + block_n + 8) * block_k * 4 <= 49152\n";

const hone_code hone_scaled_simt_code = {
    HONE_CODE,
    .source = hone_source_matmul_simt_cu,
    .entry = "matmul",
    .arguments = ARGUMENTS,
    .constants = "TRANSPOSE_B = transpose_b",
    .grid = "ceildiv(n, block_n), ceildiv(m, block_m)",
    .block = "block_m / thread_m * (block_n / thread_n)",
    .condition = "m > 0 and n > 0" EXACT,
};
