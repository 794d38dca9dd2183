// The attention kernels that flash_attention and scaled_dot_product_attention share.
#ifndef HONE_KERNELS_FLASH_ATTENTION_H
#define HONE_KERNELS_FLASH_ATTENTION_H

#include "kernels/flash_attention/problem.h"

// The parameters of the tiles' space.
enum { ATTENTION_LANES, ATTENTION_TILES, ATTENTION_BLOCK_KV, ATTENTION_THREADS };
// The parameters of the streams' space.
enum { STREAM_BLOCK_KV, STREAM_SPLITS, STREAM_PREFETCH, STREAM_THREADS };

// Queries of one kv_head that a stream takes at most.
enum { STREAM_MAX_ROWS = 32 };

typedef hone_status hone_attention_function(
    const hone_attention *problem, const hone_plan *plan, const hone_execution *execution);

// Queries in the lanes of vectors, K and V broadcast: for many queries.
hone_attention_function hone_attention_tiles_portable, hone_attention_tiles_avx2, hone_attention_tiles_avx512;
// K and V streamed through vectors once: for few queries of a kv_head, as in decoding.
hone_attention_function hone_attention_stream_portable, hone_attention_stream_avx2, hone_attention_stream_avx512;

#endif
