// The kernels of NVIDIA's GPUs, whose launches are in each folder's cuda.c, and what kernels over rows share (row.cuh).
#ifndef HONE_KERNELS_COMMON_CUDA_H
#define HONE_KERNELS_COMMON_CUDA_H

#include "hone/kernel.h"

// The space of kernels over rows, whose signature has the rows' length as `dim` and their dtype as T. Blocks are whole
// warps. A row is held completely or not at all, and is shared by at most as many threads as have work. Then come the
// limits of a multiprocessor's registers. The last condition excludes configs that leave three quarters of the device's
// threads idle while there is work for them (32 rows of 128,256 elements by one warp each took 100 times as long as by
// the best config).
#define HONE_ROWS_CUDA_SPACE_OF(X)                                                                                     \
    "threads_per_row: 4..1024 *2 default 256\n"                                                                        \
    "rows_per_block: 1..64 *2\n"                                                                                       \
    "vector: 1 | 2 | 4 | 8\n"                                                                                          \
    "keep: 0 | 1 | 2 | 4 | 8 | 16\n"                                                                                   \
    "cluster: 1 | 2 | 4 | 8\n"                                                                                         \
    "where dim % vector == 0\n"                                                                                        \
    "where threads_per_row * rows_per_block >= 32 and threads_per_row * rows_per_block <= 1024\n"                      \
    "where rows_per_block <= 1 or threads_per_row * rows_per_block <= 512\n"                                           \
    "where cluster <= 1 or device.capability >= 90 and rows_per_block <= 1 and threads_per_row >= 128\n"               \
    "where keep == 0 or keep * vector * threads_per_row * cluster >= dim\n"                                            \
    "where keep == 0 or threads_per_row * keep <= 4 or keep * vector * threads_per_row * cluster < 2 * dim\n"          \
    "where keep > 0 or threads_per_row <= 32 or vector * threads_per_row * cluster < 2 * dim\n"                        \
    "where keep * vector <= 64 and threads_per_row * rows_per_block * keep * vector <= 32768\n"                        \
    "where 4 * threads_per_row * cluster * " X ".size / max(dim, 1) >= min(" X ".size / vector, 1024 * device.sms)\n"
#define HONE_ROWS_CUDA_SPACE HONE_ROWS_CUDA_SPACE_OF("x")

// The number of blocks for all rows of an array, x.
#define HONE_ROWS_CUDA_GRID_OF(X) "max(1, ceildiv(" X ".size / max(dim, 1), rows_per_block)) * cluster"
#define HONE_ROWS_CUDA_GRID       HONE_ROWS_CUDA_GRID_OF("x")
#define HONE_ROWS_CUDA_BLOCK      "threads_per_row, rows_per_block"

typedef bool hone_cuda_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);

// Elements of one access: 16 bytes if dim, a row's length, is a multiple of that, else fewer.
int64_t hone_cuda_vector(int64_t dim, const hone_dtype_info *dtype);

// For kernels over rows, for kernels like rms_norm, and for layer_norm. docs/gpu.md, "Defaults of kernels over rows",
// has the times by which they were chosen.
hone_cuda_heuristic hone_rows_cuda_heuristic, hone_rms_rows_cuda_heuristic, hone_rows_cuda_wide_heuristic;
extern const hone_code hone_softmax_cuda_code, hone_layer_norm_cuda_code, hone_add_rms_norm_cuda_code;

hone_cuda_heuristic hone_silu_mul_cuda_heuristic, hone_rope_cuda_heuristic, hone_mean_pooling_cuda_heuristic;
extern const hone_code hone_silu_mul_cuda_code, hone_silu_mul_vjp_cuda_code, hone_rope_cuda_code;
extern const hone_code hone_mean_pooling_cuda_code, hone_rwkv4_cuda_code;
extern const char hone_silu_mul_cuda_space[], hone_rope_cuda_space[], hone_mean_pooling_cuda_space[];
extern const char hone_rwkv4_cuda_space[];

// For the gradients of norms: src/kernels/norm_vjp/norm_vjp.cu.
hone_cuda_heuristic hone_norm_vjp_cuda_heuristic;
extern const hone_code hone_rms_norm_vjp_cuda_code, hone_add_rms_norm_vjp_cuda_code, hone_layer_norm_vjp_cuda_code;
extern const char hone_rms_norm_vjp_cuda_space[], hone_add_rms_norm_vjp_cuda_space[];
extern const hone_code hone_softmax_vjp_cuda_code;

// For flash_attention and its forms: kernel->user is a hone_attention_choice.
hone_cuda_heuristic hone_attention_cuda_heuristic, hone_attention_wgmma_heuristic;
bool hone_attention_cuda_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
// Supports calls with a window or a cap in which each query sees a key.
bool hone_attention_cuda_ranged_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
extern const hone_code hone_attention_cuda_code, hone_attention_cuda_ranged_code, hone_attention_cuda_window_code,
    hone_attention_wgmma_code;
extern const char hone_attention_cuda_space[], hone_attention_wgmma_space[];

#endif
