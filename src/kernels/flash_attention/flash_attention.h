// The attention kernels that flash_attention and scaled_dot_product_attention share.
#ifndef HONE_KERNELS_FLASH_ATTENTION_H
#define HONE_KERNELS_FLASH_ATTENTION_H

#include "kernels/flash_attention/problem.h"
#include "kernels/vector/arguments.h"

// The parameters of the tiles' space.
enum { TILES_LANES, TILES_TILES, TILES_BLOCK_KV, TILES_THREADS };
#define TILES_SPACE                                                                                                    \
    "lanes: 1 | 2 | 3 default 2\n"                                                                                     \
    "tiles: 1..8 *2 default 4\n"                                                                                       \
    "block_kv: 32..256 *2 default 64\n" HONE_THREADS_SPACE

// The parameters of the streams' space.
enum { STREAM_BLOCK_KV, STREAM_SPLITS, STREAM_PREFETCH, STREAM_THREADS };
#define STREAM_SPACE                                                                                                   \
    "block_kv: 64..2048 *2 default 256\n"                                                                              \
    "splits: 1..64 *2\n"                                                                                               \
    "prefetch: 0 | 4 | 8 | 16 | 32\n" HONE_THREADS_SPACE "\n"                                                          \
    "where splits == 1 or (splits <= 2 * threads and splits * 64 <= kv_len)"

// The parameters of the compositions' space. `parallel` selects where the threads are used: over heads, or inside the
// library.
enum { COMPOSED_PARALLEL, COMPOSED_THREADS };
enum { COMPOSED_OVER_HEADS, COMPOSED_IN_LIBRARY };
#define COMPOSED_SPACE "parallel: heads | library\n" HONE_THREADS_SPACE

// The most queries of one kv_head that a stream processes together.
enum { STREAM_MAX_ROWS = 16 };

typedef hone_status hone_attention_function(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution);

// Queries in the lanes of vectors, K and V broadcast: for many queries.
hone_attention_function hone_attention_tiles_portable, hone_attention_tiles_avx2, hone_attention_tiles_avx512;
hone_attention_function hone_attention_tiles_avx512_bf16;
// K and V streamed through vectors once: for few queries of a kv_head, as in decoding.
hone_attention_function hone_attention_stream_portable, hone_attention_stream_avx2, hone_attention_stream_avx512;
// Double, for any strides.
hone_attention_function hone_attention_in_double;

// Converts count logits to weights of a softmax: cap * tanh(scale * x / cap) if cap is not 0, else scale * x.
typedef void hone_attention_weigh(float *logits, int64_t count, double scale, double cap);
hone_attention_weigh hone_attention_weigh_portable, hone_attention_weigh_avx2, hone_attention_weigh_avx512;

// A kernel's `user`: the operation's form, and the function or the library that does the work.
typedef struct hone_attention_choice {
    const hone_attention_form *form;
    hone_attention_function *function;
    const struct hone_rival *rival; // of a composition
    bool transposes_key;            // the library only multiplies [m, k] [k, n]
} hone_attention_choice;

// The functions of a kernel's table.
bool hone_tiles_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_stream_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_tiles_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
bool hone_stream_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
bool hone_tiles_of_bf16_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_tiles_of_bf16_yield(const hone_kernel *kernel, const hone_call *call, const hone_device_info *device);
hone_run_function hone_attention_run;

bool hone_composed_supports(const hone_kernel *kernel, const hone_call *call, hone_error *why);
bool hone_composed_heuristic(
    const hone_kernel *kernel, const hone_call *call, const hone_device_info *device, hone_config *out_config);
hone_status hone_composed_prepare(const hone_plan *plan, void **out_state, size_t *out_scratch_bytes, hone_error *err);
void hone_composed_release(const hone_kernel *kernel, void *state);
hone_run_function hone_composed_run;

#endif
