// The kernels of NVIDIA's GPUs: what simt.cu, tensor_core.cu and wgmma.cu are compiled and launched with.
#include "kernels/matmul/kernels.h"
#include "kernels/sources.h"

const char hone_tensor_core_signature[] =
    "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
    "where T in f16, bf16";

const char hone_tensor_core_space[] = HONE_TENSOR_CORE_SPACE("32 | 64 | 128 default 32", " * 2");

const hone_code hone_tensor_core_code = {
    HONE_CODE,
    .source = hone_source_matmul_tensor_core_cu,
    .entry = "matmul",
    .arguments = "a, b, c, i32(m), i32(n), i32(k)",
    .constants = "TRANSPOSE_B = transpose_b",
    .grid = "ceildiv(m, block_m) * ceildiv(n, block_n)",
    .block = "32 * warps_m * warps_n",
    .shared = "stages * (block_m + block_n) * block_k * 2",
    // Whole chunks of 16 bytes along the rows of a, b and c.
    .condition = "k % 8 == 0 and n % 8 == 0 and m > 0 and n > 0",
    .target = "sm_80",
    .align = 16,
};

const char hone_wgmma_space[] = HONE_WGMMA_SPACE("64 | 128 | 256");

const hone_code hone_wgmma_code = {
    HONE_CODE,
    .source = hone_source_matmul_wgmma_cu,
    .entry = "matmul",
    .arguments = "c, i32(m), i32(n), i32(k), map(a, 128, block_m, 64), map(b, 128, max(64, transpose_b * block_n), 64)",
    .constants = "TRANSPOSE_B = transpose_b, promote_every = 0",
    .grid = "ceildiv(m, block_m) * ceildiv(n, block_n)",
    .block = HONE_WGMMA_BLOCK,
    .shared = HONE_WGMMA_SHARED,
    // Whole chunks of 16 bytes along the rows of a, b and c.
    .condition = "k % 8 == 0 and n % 8 == 0 and m > 0 and n > 0 and k > 0",
    .target = "sm_90a",
    .align = 16,
};

const char hone_simt_signature[] =
    "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
    "where T in f32";

const char hone_simt_space[] = "block_m: 32 | 64 | 128 default 64\n"
                               "block_n: 32 | 64 | 128 default 64\n"
                               "block_k: 8 | 16 | 32 default 16\n"
                               "thread_m: 1 | 4 | 8 default 4\n"
                               "thread_n: 4 | 8 default 4\n"
                               "where block_m * block_n >= 64 * thread_m * thread_n\n"
                               "where block_m * block_n <= 512 * thread_m * thread_n\n"
                               "where (block_m + block_n + 8) * block_k * 4 <= 49152\n";

const hone_code hone_simt_code = {
    HONE_CODE,
    .source = hone_source_matmul_simt_cu,
    .entry = "matmul",
    .arguments = "a, b, c, i32(m), i32(n), i32(k)",
    .constants = "TRANSPOSE_B = transpose_b",
    .grid = "ceildiv(n, block_n), ceildiv(m, block_m)",
    .block = "block_m / thread_m * (block_n / thread_n)",
    .condition = "m > 0 and n > 0",
};
