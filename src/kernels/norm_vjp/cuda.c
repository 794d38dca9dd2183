// The kernels of NVIDIA's GPUs: how norm_vjp.cu is compiled and launched.
#include "kernels/common/cuda.h"
#include "kernels/norm_vjp/norm_vjp.h"
#include "kernels/sources.h"
#include "kernels/vector/arguments.h"

#include <string.h>

enum { THREADS_PER_ROW, ROWS_PER_BLOCK, VECTOR, KEEP, BLOCKS_PER_SM, AHEAD, PARAMETERS };

// Some threads of a warp, or a block, share a row. The held part of a row, and the sums of its columns, are in the
// registers of its threads.
#define ROWS(X) X ".size / max(dim, 1)"
#define SPACE(X)                                                                                                       \
    "threads_per_row: 4..1024 *2 default 256\n"                                                                        \
    "rows_per_block: 1..64 *2 default 1\n"                                                                             \
    "vector: 1 | 2 | 4 | 8\n"                                                                                          \
    "keep: 0..16\n"                                                                                                    \
    "blocks_per_sm: 1..32 *2 default 2\n"                                                                              \
    "ahead: 0 | 1\n"                                                                                                   \
    "where dim % vector == 0\n"                                                                                        \
    "where threads_per_row * rows_per_block >= 32\n"                                                                   \
    "where rows_per_block <= 1 or threads_per_row <= 32 and threads_per_row * rows_per_block <= 512\n"                 \
    "where keep == 0 or keep * vector * threads_per_row >= dim\n"                                                      \
    "where keep <= 1 or (keep - 1) * vector * threads_per_row < dim\n"                                                 \
    "where threads_per_row <= 4 or vector * threads_per_row < 2 * dim\n"                                               \
    "where keep * vector <= 32 and keep * vector * threads_per_row <= 16384\n"                                         \
    "where keep > 0 or ahead == 0\n"                                                                                   \
    "where blocks_per_sm * threads_per_row * rows_per_block <= 2048\n"                                                 \
    "where blocks_per_sm <= 1 or blocks_per_sm * rows_per_block * device.sms < 2 * " ROWS(X) "\n"

#define GRID(X)  "max(1, min(ceildiv(" ROWS(X) ", rows_per_block), blocks_per_sm * device.sms))"
#define SIZES(X) "i64(" ROWS(X) "), i32(dim), i32(" GRID(X) "), f64(eps), "
// Columns are summed in double if a part has more rows than are summed in registers.
#define CONSTANTS(X, MEAN, SUM, BIAS)                                                                                  \
    "SUBTRACT_MEAN = " MEAN ", HAS_SUM = " SUM ", HAS_BIAS = " BIAS ", "                                               \
    "WIDE_SUMS = " ROWS(X) " > 64 * rows_per_block * " GRID(X)

#define CODE(X, VECTORS)                                                                                               \
    HONE_CODE, .source = hone_source_norm_vjp_norm_vjp_cu, .entry = "rows", .grid = GRID(X),                           \
               .block = "threads_per_row, rows_per_block", .finish = "columns",                                        \
               .finish_grid = "max(1, ceildiv(dim, 32))", .finish_block = "32, 16",                                    \
               .scratch = VECTORS " * 8 * dim * rows_per_block * " GRID(X), .target = "sm_80", .align = 16

const char hone_rms_norm_vjp_cuda_space[] = SPACE("x");
const char hone_add_rms_norm_vjp_cuda_space[] = SPACE("sum");

// u64(0): an array that this algorithm lacks.
const hone_code hone_rms_norm_vjp_cuda_code = {
    CODE("x", "1"),
    .arguments = "x, weight, d_y, u64(0), d_x, d_weight, u64(0), scratch, " SIZES("x") "f64(0)",
    .constants = CONSTANTS("x", "0", "0", "0"),
};

const hone_code hone_add_rms_norm_vjp_cuda_code = {
    CODE("sum", "1"),
    .arguments = "sum, weight, d_y, d_sum, d_x, d_weight, u64(0), scratch, " SIZES("sum") "f64(0)",
    .constants = CONSTANTS("sum", "0", "1", "0"),
};

const hone_code hone_layer_norm_vjp_cuda_code = {
    CODE("x", "2"),
    .arguments = "x, weight, d_y, u64(0), d_x, d_weight, d_bias, scratch, " SIZES("x") "f64(weight_offset)",
    .constants = CONSTANTS("x", "subtract_mean", "0", "1"),
};

// Two accesses of 16 bytes per thread, and a quarter of the threads that fit into a multiprocessor, since the sums of a
// row's columns are in registers, too. layer_norm has twice as many columns: in 16 bits it uses twice as much per
// thread and half as many threads, in f32 up to twice as many threads without a row ahead (chosen by the fastest
// configs at nine shapes on an H200, docs/gpu.md).
bool hone_norm_vjp_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config)
{
    enum { BLOCK = 128, MOST_HELD = 16384 };
    const bool is_layer = strcmp(kernel->algorithm, "layer_norm_vjp") == 0;
    const bool is_wide = hone_call_dtype(call, "T")->bits > 16;
    const int64_t dim = hone_dim_of(call, "dim"), sms = device != NULL ? device->sms : 1;
    if (dim == 0) return false;
    const int64_t rows = hone_tensor_elements(hone_call_tensor(call, 0)) / dim;
    const int64_t vector = hone_cuda_vector(dim, hone_call_dtype(call, "T")), packs = dim / vector;
    const int64_t wanted = is_layer && !is_wide ? 4 : 2;
    const int64_t most_threads = !is_layer ? 512 : is_wide ? 1024 : 256;
    int64_t threads = 4, blocks = 1;
    while (threads < 1024 && threads * wanted < packs)
        threads *= 2;
    const int64_t held = (packs + threads - 1) / threads, rows_at_once = threads <= 32 ? BLOCK / threads : 1;
    const bool fits = held * vector <= 32 && held <= 16 && held * vector * threads <= MOST_HELD;
    while (blocks * 2 * threads * rows_at_once <= most_threads && blocks * 2 * rows_at_once * sms < 2 * rows)
        blocks *= 2;
    out_config->count = PARAMETERS;
    out_config->values[THREADS_PER_ROW] = threads;
    out_config->values[ROWS_PER_BLOCK] = rows_at_once;
    out_config->values[VECTOR] = vector;
    out_config->values[KEEP] = fits ? held : 0;
    out_config->values[BLOCKS_PER_SM] = blocks;
    out_config->values[AHEAD] = fits && !(is_layer && is_wide);
    return true;
}
