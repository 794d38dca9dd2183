// Rotary embedding: the first 2 * half elements of each head are pairs, and pair i is rotated by the angle whose cosine
// and sine are in row `position` of the tables: (a, b) becomes (a cos - b sin, b cos + a sin). Pair i is elements i and
// half + i, or interleaved 2 i and 2 i + 1. Elements after the pairs are copied. rope_vjp, the gradient of x, rotates
// the pairs of d_y back by the same angles.
#ifndef HONE_KERNELS_ROPE_H
#define HONE_KERNELS_ROPE_H

#include "kernels/vector/rows.h"

#include "hone/kernel.h"

// The order of values, and of the space's parameters. rope_vjp's d_y has the position of x, and its d_x that of y.
enum { ROPE_X, ROPE_COS, ROPE_SIN, ROPE_Y, ROPE_INTERLEAVED };
enum { ROPE_TOKENS_PER_TASK, ROPE_STORE, ROPE_THREADS };

// Heads of x or y: a row is the first head of a token, and each next head is `head` elements further on.
typedef struct hone_rope_heads {
    hone_rows tokens;
    int64_t head;
} hone_rope_heads;

// A table: row p belongs to position p.
typedef struct hone_rope_angles {
    const char *data;
    int64_t row, step;
} hone_rope_angles;

typedef struct hone_rope {
    hone_rope_heads x, y;
    hone_rope_angles cos, sin;
    int64_t positions, heads, half; // token t has position t % positions
    bool interleaved, is_back;      // is_back: rotate back
    hone_dtype_id dtype, table_dtype;
} hone_rope;

hone_rope hone_rope_of(const hone_plan *plan, const hone_value *args, bool is_back);

hone_run_function hone_rope_reference, hone_rope_portable, hone_rope_avx2, hone_rope_avx512;
hone_run_function hone_rope_vjp_reference, hone_rope_vjp_portable, hone_rope_vjp_avx2, hone_rope_vjp_avx512;

#endif
