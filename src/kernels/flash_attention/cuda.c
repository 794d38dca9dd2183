// The kernels of NVIDIA's GPUs: how flash_attention.cu and wgmma.cu are compiled and launched, for each form of the
// operation.
#include "kernels/common/cuda.h"
#include "base/error.h"
#include "kernels/flash_attention/flash_attention.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

enum { WARPS_M, WARPS_N, KEYS_PER_WARP, STAGES, SPLITS, PARAMETERS };
enum { GROUPS, KEYS, WGMMA_STAGES, TURNS, SPREAD, COPIERS, WGMMA_SPLITS, AHEAD, WGMMA_PARAMETERS };

// Rows are queries of a head of keys.
#define ROWS "query.shape[1] * (heads / max(kv_heads, 1))"
#define TILE "keys_per_warp * warps_n"
// The size of the tiles of keys and values, of the queries, or of the warps' results.
#define SHARED                                                                                                         \
    "max(max(16 * warps_m * (dim + 8) * 2, stages * 2 * " TILE " * (dim + 8) * 2), warps_m * warps_n * 64 * (dim + "   \
    "2))"

const char hone_attention_cuda_space[] =
    "warps_m: 1 | 2 | 4 | 8 default 4\n"
    "warps_n: 1 | 2 | 4 | 8\n"
    "keys_per_warp: 16 | 32 | 64 | 128 default 64\n"
    "stages: 2 | 3 | 4\n"
    "splits: 1 | 2 | 4 | 8\n"
    "where warps_m * warps_n >= 2 and warps_m * warps_n <= 8\n"
    "where " TILE " <= 256\n"
    "where warps_m == 1 or 8 * warps_m < " ROWS "\n"
    "where splits == 1 or device.capability >= 90 and splits * " TILE " <= 2 * key.shape[1]\n"
    "where " SHARED " <= device.smem_bytes\n";

#define ARGUMENTS                                                                                                      \
    "query, key, value, out, i64(query.shape[1]), i64(key.shape[1]), i32(heads), i32(kv_heads), f64(softmax_scale)"
#define TENSOR_CORE                                                                                                    \
    HONE_CODE, .source = hone_source_flash_attention_flash_attention_cu, .entry = "flash_attention",                   \
               .grid = "ceildiv(" ROWS ", 16 * warps_m) * splits, kv_heads, batch", .block = "32 * warps_m * warps_n", \
               .cluster = "splits", .shared = SHARED,                                                                  \
               .condition = "dim % 16 == 0 and dim <= 128 and query.size > 0 and key.size > 0", .target = "sm_80",     \
               .align = 16

const hone_code hone_attention_cuda_code = {
    TENSOR_CORE, .arguments = ARGUMENTS, .constants = "DIM = dim, CAUSAL = causal, RANGED = 0"};
// For an operation that has both a window and a cap, and for one that has no cap.
const hone_code hone_attention_cuda_ranged_code = {
    TENSOR_CORE, .arguments = ARGUMENTS ", i64(sliding_window, -1), f64(logits_soft_cap, 0)",
    .constants = "DIM = dim, CAUSAL = causal, RANGED = 1"};
const hone_code hone_attention_cuda_window_code = {
    TENSOR_CORE, .arguments = ARGUMENTS ", i64(sliding_window, -1), f64(0)",
    .constants = "DIM = dim, CAUSAL = causal, RANGED = 1"};

// Queries, the ring of tiles and its barriers.
#define WGMMA_SHARED "64 * groups * dim * 2 + stages * (keys * dim * 2 + 16)"

const char hone_attention_wgmma_space[] = "groups: 1 | 2 | 3 default 2\n"
                                          "keys: 64 | 80 | 96 | 128 | 176 default 128\n"
                                          "stages: 3 | 4 | 5 | 6 | 8 | 12 default 4\n"
                                          "turns: 0 | 1\n"
                                          "spread: 1 | 2 | 4 | 8 | 16 | 32\n"
                                          "copiers: 0 | 1 | 2 | 4\n"
                                          "splits: 1 | 2 | 4 | 8 | 12\n"
                                          "ahead: 0 | 1\n"
                                          "where turns == 0 or groups > 1\n"
                                          "where stages * copiers % 4 == 0\n" // 0: the copy engine
                                          "where ahead == 0 or copiers > 0 and copiers < 4 and stages * copiers > 4\n"
                                          "where splits == 1 or groups == 1 and splits * keys <= 2 * key.shape[1]\n"
                                          "where groups == 1 or 64 * (groups - 1) < " ROWS "\n"
                                          // Registers of a thread: sums, logits, and the weights of the last tile.
                                          "where 2 * dim + 3 * keys <= 800\n"
                                          "where groups < 3 or 2 * dim + 3 * keys <= 512\n"
                                          "where " WGMMA_SHARED " <= device.smem_bytes\n";

const hone_code hone_attention_wgmma_code = {
    HONE_CODE,
    .source = hone_source_flash_attention_wgmma_cu,
    .entry = "flash_attention",
    .arguments = "query, key, value, out, i64(query.shape[1]), i64(key.shape[1]), i32(batch), i32(heads), "
                 "i32(kv_heads), f64(softmax_scale), map(key, 128, 1, keys, 1, 64), map(value, 128, 1, keys, 1, 64)",
    .constants = "DIM = dim, CAUSAL = causal",
    .grid = "ceildiv(" ROWS ", 64 * groups) * kv_heads * batch * splits",
    .block = "128 * groups + 128",
    .cluster = "splits",
    .shared = WGMMA_SHARED,
    .condition = "(dim == 64 or dim == 128 or dim == 256) and query.size > 0 and key.size > 0",
    .target = "sm_90a",
    .align = 16,
};

bool hone_attention_cuda_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_attention_form *form = ((const hone_attention_choice *)kernel->user)->form;
    const hone_attention problem = hone_attention_of_call(call, form);
    const char *given = problem.has_window ? "sliding_window" : problem.has_cap ? "logits_soft_cap" : NULL;
    if (given == NULL) return hone_attention_supports(call, form, why);
    hone_fail(why, HONE_UNSUPPORTED, "kernels.attention", "%s is given; this kernel knows none", given);
    return false;
}

bool hone_attention_cuda_ranged_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why)
{
    const hone_attention_form *form = ((const hone_attention_choice *)kernel->user)->form;
    const hone_attention p = hone_attention_of_call(call, form);
    const char *reason = NULL;
    if (!p.has_window && !p.has_cap)
        reason = "neither a window nor a cap is given: cuda_tensor_core is for such calls";
    else if (p.has_window && (p.window < 0 || p.q_len - p.window > p.kv_len))
        reason = "a query of this window sees no key; this kernel asks for one";
    if (reason == NULL) return hone_attention_supports(call, form, why);
    hone_fail(why, HONE_UNSUPPORTED, "kernels.attention", "%s", reason);
    return false;
}

// The size of a block's tiles.
static int64_t bytes_of(const int64_t *values, int64_t dim)
{
    return values[STAGES] * 4 * values[KEYS_PER_WARP] * values[WARPS_N] * (dim + 8);
}

// With many rows, a block has 64 or 128 of them. With few, as in decoding, warps and blocks share the keys.
bool hone_attention_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_attention p = hone_attention_of_call(call, ((const hone_attention_choice *)kernel->user)->form);
    const int64_t rows = p.q_len * p.group;
    int64_t *values = out_config->values, blocks = p.batch * p.kv_heads * ((rows + 63) / 64);
    const bool many = rows > 32;
    out_config->count = PARAMETERS;
    values[WARPS_M] = rows >= 256 ? 8 : many ? 4 : rows > 16 ? 2 : 1;
    values[WARPS_N] = many ? 1 : 4 / values[WARPS_M];
    values[KEYS_PER_WARP] = many ? 64 : 32;
    values[STAGES] = many ? 2 : 3;
    while (device != NULL && device->smem_bytes > 0 && bytes_of(values, p.dim) > device->smem_bytes) {
        if (values[STAGES] > 2)
            values[STAGES]--;
        else if (values[KEYS_PER_WARP] > 16)
            values[KEYS_PER_WARP] /= 2;
        else
            return false;
    }
    values[SPLITS] = 1;
    while (device != NULL && device->capability >= 90 && values[SPLITS] < 8 && blocks * values[SPLITS] < device->sms &&
           values[SPLITS] * 2 * values[KEYS_PER_WARP] * values[WARPS_N] <= 2 * p.kv_len)
        values[SPLITS] *= 2;
    return true;
}

// Whether clusters of one block per multiprocessor are likely to run at once. A cluster lies within a group of 16 or 18
// multiprocessors, and large clusters leave some of them idle; not every GPU supports clusters of more than eight
// blocks.
static bool is_resident(int64_t clusters, int64_t size, int64_t multiprocessors)
{
    return clusters * size <= (size > 2 ? multiprocessors * 7 / 8 : multiprocessors);
}

bool hone_attention_wgmma_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    const hone_attention p = hone_attention_of_call(call, ((const hone_attention_choice *)kernel->user)->form);
    const int64_t rows = p.q_len * p.group, blocks = p.batch * p.kv_heads * ((rows + 63) / 64);
    int64_t *values = out_config->values;
    const int64_t seen = p.causal && p.q_len < p.kv_len ? p.q_len : p.kv_len;
    const bool is_low = rows <= 64 || (device != NULL && 2 * blocks <= device->sms);
    // Chosen by the fastest configs at fourteen shapes on an H200 (docs/gpu.md).
    const bool is_narrow = p.dim <= 64 && rows >= 2048;
    out_config->count = WGMMA_PARAMETERS;
    values[GROUPS] = is_low ? 1 : is_narrow ? 3 : 2;
    values[KEYS] = p.dim > 128 ? 80 : 128;
    values[WGMMA_STAGES] = (is_low && p.dim <= 128) || is_narrow ? 6 : 4;
    values[TURNS] = !is_low;
    values[SPREAD] = is_low || seen > 2048 ? 1 : 16;
    values[COPIERS] = 0;
    values[WGMMA_SPLITS] = 1;
    values[AHEAD] = 0;
    // Combining the results of many rows takes about 10 us (H200).
    const int64_t least_keys = rows > 16 ? 8 * values[KEYS] : values[KEYS] / 2;
    while (is_low && device != NULL && values[WGMMA_SPLITS] < 8 &&
           is_resident(blocks, values[WGMMA_SPLITS] * 2, device->sms) && values[WGMMA_SPLITS] * 2 * least_keys <= seen)
        values[WGMMA_SPLITS] *= 2;
    // Threads that copy have more memory accesses in flight than the copy engine, if there are as many blocks as
    // multiprocessors.
    if (is_low && (device == NULL || 2 * blocks * values[WGMMA_SPLITS] > device->sms)) {
        values[COPIERS] = 2;
        values[AHEAD] = 1;
    }
    return true;
}
