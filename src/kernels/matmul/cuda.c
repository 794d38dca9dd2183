// The kernels of NVIDIA's GPUs: how simt.cu, tensor_core.cu and wgmma.cu are compiled and launched.
#include "kernels/matmul/kernels.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

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
    .grid = HONE_PRODUCT_TILES,
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
    .grid = HONE_PRODUCT_TILES " * splits",
    .cluster = "splits",
    .block = HONE_WGMMA_BLOCK,
    .shared = HONE_WGMMA_SHARED,
    // Whole chunks of 16 bytes along the rows of a, b and c.
    .condition = "k % 8 == 0 and n % 8 == 0 and m > 0 and n > 0 and k > 0",
    .target = "sm_90a",
    .align = 16,
};

// The config that is used without measuring, chosen by the fastest configs at 24 shapes on an H200 (docs/gpu.md).
bool hone_wgmma_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    enum { BLOCK_M, BLOCK_N, STAGES, GROUP, SPLITS, PROMOTE_EVERY };
    const hone_tensor *a = hone_call_tensor(call, MATMUL_A);
    const int64_t m = hone_dim_of(call, "m"), k = hone_dim_of(call, "k"), n = hone_dim_of(call, "n");
    const bool is_f8 = a->dtype.code != HONE_CODE_INT && a->dtype.bits == 8;
    int64_t *values = out_config->values;
    if (device == NULL || device->sms == 0) return false;
    const int64_t tiles = (m + 127) / 128 * ((n + 127) / 128);
    const bool is_low = m <= 64, is_small = 2 * tiles <= device->sms;
    const bool is_wide = a->dtype.bits == 16 && tiles >= 4 * (int64_t)device->sms && n > 128;
    (void)kernel;
    values[BLOCK_M] = is_low ? 64 : 128;
    values[BLOCK_N] = is_low || is_small || n <= 64 ? 64 : is_wide ? 256 : 128;
    // With three stages of 128 columns two blocks fit into a multiprocessor.
    values[STAGES] = values[BLOCK_N] == 64                                                ? 8
                     : a->dtype.code == HONE_CODE_INT && tiles > 2 * (int64_t)device->sms ? 3
                                                                                          : 4;
    values[GROUP] = is_low ? 1 : 8;
    values[SPLITS] = 1;
    while (is_low && values[SPLITS] < 8 && (n + 63) / 64 * values[SPLITS] * 2 <= device->sms &&
           values[SPLITS] * 1024 <= k)
        values[SPLITS] *= 2;
    values[PROMOTE_EVERY] = 2;
    out_config->count = is_f8 ? PROMOTE_EVERY + 1 : PROMOTE_EVERY;
    return values[STAGES] * ((values[BLOCK_M] + values[BLOCK_N]) * 128 + 16) <= device->smem_bytes;
}

// A product of few tiles ends before several of them could overlap: it needs as many blocks as possible, each with deep
// tiles. At f16[130,72] x [72,200] such a block takes 3.07 us on an H200, while the space's default takes 5.8 us
// (docs/gpu.md).
bool hone_tensor_core_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    enum { BLOCK_M, BLOCK_N, BLOCK_K, WARPS_M, WARPS_N, STAGES, GROUP, PARAMETERS };
    enum { DEEPEST_BYTES = 256 };
    const int64_t m = hone_dim_of(call, "m"), k = hone_dim_of(call, "k"), n = hone_dim_of(call, "n");
    const int64_t tiles = (m + 63) / 64 * ((n + 63) / 64);
    const int64_t depth = DEEPEST_BYTES / (hone_call_tensor(call, MATMUL_A)->dtype.bits / 8);
    (void)kernel;
    if (device == NULL || device->sms == 0 || tiles > device->sms) return false;
    const bool is_low = m <= 16;
    out_config->values[BLOCK_M] = is_low ? 16 : 32;
    out_config->values[BLOCK_N] = 32;
    out_config->values[BLOCK_K] = depth;
    out_config->values[WARPS_M] = is_low ? 1 : 2;
    out_config->values[WARPS_N] = 2;
    out_config->values[STAGES] = k <= 2 * depth ? 2 : 4;
    out_config->values[GROUP] = 1;
    out_config->count = PARAMETERS;
    return true;
}

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
