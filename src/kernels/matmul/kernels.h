// The functions that the rows of table.c refer to.
#ifndef HONE_KERNELS_MATMUL_KERNELS_H
#define HONE_KERNELS_MATMUL_KERNELS_H

#include "kernels/matmul/sets.h"

// The order of a blocked kernel's parameters, and of a decoding one's.
enum { BLOCKED_MR, BLOCKED_NR, BLOCKED_KC, BLOCKED_MC, BLOCKED_THREADS, BLOCKED_PARAMETERS };
enum { DECODING_STREAMS, DECODING_AHEAD, DECODING_SPLIT_K, DECODING_THREADS, DECODING_PARAMETERS };

// A kernel's `user`.
typedef struct hone_blocked {
    const hone_matmul_form *form;
    const hone_gemm_set *set, *f64; // f64: NULL, none
    bool a_in_place, b_in_place;    // not packed
    bool bf16_only, tiles;          // tiles: of AMX
    int64_t mr, nr, kc, mc;         // the heuristic's values
    int64_t narrow_mr, narrow_nr;   // the same for a tile of fewer columns; 0: none
    int64_t low_mr, low_nr;         // the same for a tile that a product of few rows fills; 0: none
    int64_t columns;                // of b, packed together
    const char *slow_on;            // processors on which the next kernel is faster, for hone_is_processor; NULL: none
    bool slow_in_place;             // only slower there if a kernel that packs less can run the product
} hone_blocked;

// Whether a product's operands can be read in place.
bool hone_blocked_reads_in_place(const hone_matmul *product, hone_error *why);

typedef struct hone_decoding {
    const hone_matmul_form *form;
    const hone_decode_set *set, *f64; // f64: NULL, none
    bool bf16_only;
    // The numbers of rows from which other kernels are faster (docs/bf16-on-a-cpu.md), so that this one yields to them:
    // the AMX kernel for the same operands, and the blocked kernel of the same instructions. 0: none.
    const hone_blocked *tiles;
    int64_t tiles_from, blocked_from;
    // Processors on which other kernels are faster from slow_from rows on: for bf16 the one that widens it, else the
    // blocked kernel that packs nothing, if it supports the call.
    const char *slow_on;
    int64_t slow_from;
    int64_t split_until; // by default threads divide k instead of columns up to this number of rows; 0: for any number
} hone_decoding;

// The fields of each row of a table, besides name, needs, space and user.
#define HONE_BLOCKED_KERNEL                                                                                            \
    .supports = hone_blocked_supports, .heuristic = hone_blocked_heuristic, .prepare = hone_blocked_prepare,           \
    .run = hone_blocked_run, .digest = hone_blocked_digest, .yields = hone_blocked_yields
#define HONE_DECODING_KERNEL                                                                                           \
    .supports = hone_decoding_supports, .heuristic = hone_decoding_heuristic, .prepare = hone_decoding_prepare,        \
    .run = hone_decoding_run, .yields = hone_decoding_yields

extern const char hone_decoding_space[];

bool hone_blocked_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_blocked_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
bool hone_blocked_yields(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device);
hone_status hone_blocked_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
uint64_t hone_blocked_digest(const hone_plan *plan);
hone_status hone_blocked_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

// Whether the compiler supports AMX and the system lends it.
bool hone_blocked_has_tiles(const hone_blocked *blocked);

bool hone_decoding_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_decoding_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
bool hone_decoding_yields(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device);
hone_status hone_decoding_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
hone_status hone_decoding_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

bool hone_rival_kernel_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_rival_kernel_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
hone_status hone_rival_kernel_prepare(
    const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
void hone_rival_kernel_release(const hone_kernel *kernel, void *state);
bool hone_rival_kernel_find_library(const hone_kernel *kernel, char *path, size_t size);
hone_status hone_rival_kernel_run(const hone_plan *plan, const hone_value *args, const hone_execution *execution);

// cuda.c: the kernels of NVIDIA's GPUs.
// The number of tiles of c, each computed by a block or a cluster.
#define HONE_PRODUCT_TILES "ceildiv(m, block_m) * ceildiv(n, block_n)"
// The spaces of tensor_core.cu and wgmma.cu, for operands of different sizes.
//   depths, size   values of block_k, and the text after it that converts elements to bytes: " * 2", or "" for bytes
//   columns        values of block_n
// In tensor_core.cu a thread has at most 128 sums, and a warp at least one tile's work. At least a quarter of the
// multiprocessors get a block, if smaller tiles would give them one.
#define HONE_TENSOR_CORE_SPACE(depths, size)                                                                           \
    "block_m: 16 | 32 | 64 | 128 | 256 default 128\n"                                                                  \
    "block_n: 32 | 64 | 128 | 256 default 128\n"                                                                       \
    "block_k: " depths "\n"                                                                                            \
    "warps_m: 1 | 2 | 4 default 2\n"                                                                                   \
    "warps_n: 1 | 2 | 4 default 2\n"                                                                                   \
    "stages: 2..6 default 4\n"                                                                                         \
    "group: 1 | 8\n"                                                                                                   \
    "where block_m % (16 * warps_m) == 0 and block_n % (16 * warps_n) == 0\n"                                          \
    "where block_m * block_n <= 4096 * warps_m * warps_n and block_m * block_n >= 256 * warps_m * warps_n\n"           \
    "where warps_m * warps_n <= 8\n"                                                                                   \
    "where stages * (block_m + block_n) * block_k" size " <= device.smem_bytes\n"                                      \
    "where block_m == 16 or block_m < 2 * m\n"                                                                         \
    "where block_n == 32 or block_n < 2 * n\n"                                                                         \
    "where 4 * " HONE_PRODUCT_TILES " >= min(ceildiv(m, 16) * ceildiv(n, 32), device.sms)\n"
#define HONE_WGMMA_BLOCK  "2 * block_m + 32"
#define HONE_WGMMA_SHARED "stages * ((block_m + block_n) * 128 + 16)"
#define HONE_WGMMA_SPACE(columns)                                                                                      \
    "block_m: 64 | 128 default 128\n"                                                                                  \
    "block_n: " columns " default 128\n"                                                                               \
    "stages: 3..8 default 5\n"                                                                                         \
    "group: 1 | 8 | 16 default 8\n"                                                                                    \
    "splits: 1 | 2 | 4 | 8 default 1\n"                                                                                \
    "where splits == 1 or " HONE_PRODUCT_TILES " * splits <= 2 * device.sms and splits * 512 <= k\n"                   \
    "where " HONE_WGMMA_SHARED " <= device.smem_bytes\n"                                                               \
    "where block_m == 64 or block_m < 2 * m\n"                                                                         \
    "where block_n == 64 or block_n < 2 * n\n"
extern const hone_code hone_tensor_core_code, hone_wgmma_code, hone_simt_code;
bool hone_wgmma_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
bool hone_tensor_core_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
extern const char hone_tensor_core_space[], hone_wgmma_space[], hone_simt_space[];
extern const char hone_tensor_core_signature[], hone_simt_signature[];

// opencl.c: the kernel of OpenCL's devices.
extern const hone_code hone_matmul_opencl_code;
extern const char hone_matmul_opencl_space[];

// xla.c: the kernels of XLA.
extern const hone_code hone_matmul_xla_cpu_code, hone_matmul_xla_gpu_code;
extern const char hone_matmul_xla_cpu_space[], hone_matmul_xla_gpu_space[];

#endif
