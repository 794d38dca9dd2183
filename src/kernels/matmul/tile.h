// The register tile and the packers of the blocked product, over the including file's vectors and words. A word is one
// lane: a float, two bf16 that are adjacent in k, or a double.
#ifndef HONE_KERNELS_MATMUL_TILE_H
#define HONE_KERNELS_MATMUL_TILE_H

#include "kernels/matmul/gemm.h"
#include "kernels/matmul/words.h"

enum { TILE_ROWS = 14, TILE_VECTORS = 4, TILE_FETCH = HONE_FETCH_BYTES / sizeof(LANE) };

// The properties of a set's tiles. Every member is a constant where it is used, so that all of it is inlined.
typedef struct tile_form {
    int word; // elements of a in a word
    word_product *product;
    // Rounds the first `count` sums to results and stores them from element `index` of `to` on; NULL: only sums are
    // stored.
    void (*round)(void *to, int64_t index, int64_t count, vec sums);
    bool in_place; // a is not packed
    bool packs_b;  // always packs b, so that its rows are whole vectors
} tile_form;

HONE_INLINE void tile_load_row(vec row[TILE_VECTORS], const LANE *b, int64_t last, int vectors, const tile_form form)
{
    HONE_UNROLL
    for (int j = 0; j < vectors; j++)
        row[j] = j == vectors - 1 && !form.packs_b ? load_last(b + j * VEC_WIDTH, last)
                                                   : vec_load(b, LANE_DTYPE, j * VEC_WIDTH);
}

HONE_INLINE void tile_add_row(
    vec sum[TILE_VECTORS], vec factor, const vec row[TILE_VECTORS], int vectors, word_product *product)
{
    HONE_UNROLL
    for (int j = 0; j < vectors; j++)
        sum[j] = product(factor, row[j], sum[j]);
}

// One step of k for a tile of rows x vectors: every word of a's column times the row of b.
HONE_INLINE void tile_step(
    vec sum[TILE_ROWS][TILE_VECTORS],
    const LANE *a,
    const LANE *b,
    int64_t last,
    int rows,
    int vectors,
    const tile_form form)
{
    vec row[TILE_VECTORS];
    tile_load_row(row, b, last, vectors, form);
    HONE_UNROLL
    for (int i = 0; i < rows; i++)
        tile_add_row(sum[i], vec_set(a[i]), row, vectors, form.product);
}

// A word in all lanes, loaded from any address; only its first `bytes` bytes are read, the others are zero.
HONE_INLINE vec tile_word(const char *from, size_t bytes)
{
    LANE word = 0;
    memcpy(&word, from, bytes);
    return vec_set(word);
}

// The same, with the rows of a in place. They are addressed from every third row: nine rows need three pointers.
HONE_INLINE void tile_step_in_place(
    vec sum[TILE_ROWS][TILE_VECTORS],
    const char *const thirds[3],
    int64_t a_stride,
    size_t bytes,
    const LANE *b,
    int64_t last,
    int rows,
    int vectors,
    const tile_form form)
{
    vec row[TILE_VECTORS];
    tile_load_row(row, b, last, vectors, form);
    HONE_UNROLL
    for (int i = 0; i < rows; i++)
        tile_add_row(sum[i], tile_word(thirds[i / 3] + i % 3 * a_stride, bytes), row, vectors, form.product);
}

// Adds the tile's previous sums.
HONE_INLINE void tile_add(
    const hone_gemm_tile *tile, vec sum[TILE_ROWS][TILE_VECTORS], int64_t last, int rows, int vectors)
{
    const LANE *c = tile->c;
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int64_t count = j == vectors - 1 ? last : VEC_WIDTH;
            sum[i][j] = LANE_ADD(load_left(c + i * tile->c_stride, LANE_DTYPE, j * VEC_WIDTH, count), sum[i][j]);
        }
    }
}

// rounds: whether results are stored instead of sums. adds: whether previous sums are added, tested at each vector.
HONE_INLINE void tile_put(
    const hone_gemm_tile *tile,
    vec sum[TILE_ROWS][TILE_VECTORS],
    int64_t last,
    int rows,
    int vectors,
    bool rounds,
    bool adds,
    const tile_form form)
{
    LANE *c = tile->c;
    void *result = tile->result;
    const int64_t stride = tile->c_stride, result_stride = tile->result_stride;
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < vectors; j++) {
            const int64_t count = j == vectors - 1 ? last : VEC_WIDTH, at = j * VEC_WIDTH;
            vec whole = sum[i][j];
            if (adds && tile->accumulate) whole = LANE_ADD(load_left(c + i * stride, LANE_DTYPE, at, count), whole);
            if (rounds)
                form.round(result, i * result_stride + at, count, whole);
            else
                store_left(c + i * stride, LANE_DTYPE, at, count, whole);
        }
    }
}

// Tests only once whether previous sums are added: as far as the compiler knows, a store may change the tile, so it
// would test again at each vector and have code for both cases there, a third of a set's code. The portable set does
// test again: with separate code for the addition gcc keeps the sums in memory during the product, which takes 1.15 to
// 1.4 times as long.
HONE_INLINE void tile_store(
    const hone_gemm_tile *tile,
    vec sum[TILE_ROWS][TILE_VECTORS],
    int64_t last,
    int rows,
    int vectors,
    const tile_form form)
{
    const bool late = sizeof(vec) < 32;
    if (!late && tile->accumulate) tile_add(tile, sum, last, rows, vectors);
    if (form.round != NULL && tile->result != NULL)
        tile_put(tile, sum, last, rows, vectors, true, late, form);
    else
        tile_put(tile, sum, last, rows, vectors, false, late, form);
}

HONE_INLINE void tile_clear(const hone_gemm_tile *tile, vec sum[TILE_ROWS][TILE_VECTORS], int rows, int vectors)
{
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = vec_set(0);
        const LANE *c = (const LANE *)tile->c + i * tile->c_stride;
        __builtin_prefetch(c, 1);
        __builtin_prefetch(c + (vectors - 1) * VEC_WIDTH, 1);
    }
}

// Prefetches a line in step p; returns the address for the next step.
HONE_INLINE const char *tile_fetch(const hone_gemm_tile *tile, const char *line, int64_t p)
{
    const int64_t down = tile->fetch_stride, on = tile->fetch_step - (TILE_FETCH - 1) * down;
    __builtin_prefetch(line, 0, 2);
    return line + (p % TILE_FETCH != TILE_FETCH - 1 ? down : on);
}

HONE_INLINE void tile_product(const hone_gemm_tile *tile, int rows, int vectors, const tile_form form)
{
    vec sum[TILE_ROWS][TILE_VECTORS];
    int64_t last = tile->columns - (vectors - 1) * VEC_WIDTH;
    const LANE *a = tile->a, *b = tile->b;
    const char *fetch = tile->fetch;
    tile_clear(tile, sum, rows, vectors);
    for (int64_t p = 0; p < tile->depth; p++, a += rows, b += tile->b_step) {
        tile_step(sum, a, b, last, rows, vectors, form);
        fetch = tile_fetch(tile, fetch, p);
    }
    tile_store(tile, sum, last, rows, vectors, form);
}

// The last word of two elements may hold only one.
HONE_INLINE void tile_product_in_place(const hone_gemm_tile *tile, int rows, int vectors, const tile_form form)
{
    vec sum[TILE_ROWS][TILE_VECTORS];
    int64_t last = tile->columns - (vectors - 1) * VEC_WIDTH, stride = tile->a_stride;
    const char *a = tile->a, *thirds[3] = {a, a + 3 * stride, a + 6 * stride}, *fetch = tile->fetch;
    const LANE *b = tile->b;
    const bool is_cut = form.word > 1 && tile->a_is_cut, fetches = tile->fetch_step != 0;
    tile_clear(tile, sum, rows, vectors);
    for (int64_t p = 0; p < tile->depth - is_cut; p++, b += tile->b_step) {
        tile_step_in_place(sum, thirds, stride, sizeof(LANE), b, last, rows, vectors, form);
        if (fetches) fetch = tile_fetch(tile, fetch, p);
        thirds[0] += sizeof(LANE);
        thirds[1] += sizeof(LANE);
        thirds[2] += sizeof(LANE);
    }
    if (is_cut) tile_step_in_place(sum, thirds, stride, sizeof(LANE) / 2, b, last, rows, vectors, form);
    tile_store(tile, sum, last, rows, vectors, form);
}

// Compiles only tiles whose sums fit into registers.
HONE_INLINE void tile_that_fits(const hone_gemm_tile *tile, int rows, int vectors, const tile_form form)
{
    if (form.in_place && rows <= 9 && fits(rows, vectors))
        tile_product_in_place(tile, rows, vectors, form);
    else if (!form.in_place && fits(rows, vectors))
        tile_product(tile, rows, vectors, form);
}

// Compiles a separate version for each number of rows.
HONE_INLINE void tile_rows(const hone_gemm_tile *tile, int32_t rows, int vectors, const tile_form form)
{
    switch (rows) {
    case 1:
        tile_that_fits(tile, 1, vectors, form);
        return;
    case 2:
        tile_that_fits(tile, 2, vectors, form);
        return;
    case 3:
        tile_that_fits(tile, 3, vectors, form);
        return;
    case 4:
        tile_that_fits(tile, 4, vectors, form);
        return;
    case 5:
        tile_that_fits(tile, 5, vectors, form);
        return;
    case 6:
        tile_that_fits(tile, 6, vectors, form);
        return;
    case 7:
        tile_that_fits(tile, 7, vectors, form);
        return;
    case 8:
        tile_that_fits(tile, 8, vectors, form);
        return;
    case 9:
        tile_that_fits(tile, 9, vectors, form);
        return;
    case 10:
        tile_that_fits(tile, 10, vectors, form);
        return;
    case 11:
        tile_that_fits(tile, 11, vectors, form);
        return;
    case 12:
        tile_that_fits(tile, 12, vectors, form);
        return;
    case 13:
        tile_that_fits(tile, 13, vectors, form);
        return;
    case 14:
        tile_that_fits(tile, 14, vectors, form);
        return;
    }
}

HONE_INLINE void tile_any(const hone_gemm_tile *tile, int32_t rows, const tile_form form)
{
    switch ((tile->columns + VEC_WIDTH - 1) / VEC_WIDTH) {
    case 1:
        tile_rows(tile, rows, 1, form);
        return;
    case 2:
        tile_rows(tile, rows, 2, form);
        return;
    case 3:
        tile_rows(tile, rows, 3, form);
        return;
    case 4:
        tile_rows(tile, rows, 4, form);
        return;
    }
}

// A vector of words of a row of the source, from element k on; words after the strip's end are zero.
typedef vec strip_load(const hone_gemm_strip *strip, int64_t row, int64_t k);

// Whole vectors are stored, in the order of k: the next store overwrites what a store writes beyond the strip's width.
// This holds for a single group of lines; of several groups, the last is truncated.
HONE_INLINE void pack_square(const hone_gemm_strip *strip, int64_t line, int64_t k, int64_t word, strip_load *load)
{
    vec square[VEC_WIDTH];
    HONE_UNROLL
    for (int i = 0; i < VEC_WIDTH; i++)
        square[i] = line + i < strip->count ? load(strip, line + i, k) : vec_set(0);
    vec_transpose(square);
    int64_t steps = (strip->size - k + word - 1) / word, rest = strip->width - line;
    int64_t count = line > 0 && rest < VEC_WIDTH ? rest : VEC_WIDTH;
    LANE *out = (LANE *)strip->out + k / word * strip->width + line;
    HONE_UNROLL
    for (int i = 0; i < VEC_WIDTH; i++)
        if (i < steps) store_left(out + i * strip->width, LANE_DTYPE, 0, count, square[i]);
}

// Packs one vector width of rows at a time: prefetchers cannot follow more streams (measured: 17 GB/s with 16 rows, 5
// GB/s with 32).
HONE_INLINE void pack_lines(const hone_gemm_strip *strip, int64_t word, strip_load *load)
{
    for (int64_t line = 0; line < strip->width; line += VEC_WIDTH)
        for (int64_t k = 0; k < strip->size; k += VEC_WIDTH * word)
            pack_square(strip, line, k, word, load);
}

// load: a vector of words across columns, of the rows from k on, from column `column` on.
HONE_INLINE void pack_columns(const hone_gemm_strip *strip, int64_t word, strip_load *load)
{
    LANE *out = strip->out;
    for (int64_t k = 0; k < strip->size; k += word, out += strip->width)
        for (int64_t column = 0; column < strip->width; column += VEC_WIDTH)
            vec_store(out, LANE_DTYPE, column, load(strip, k, column));
}

HONE_INLINE void narrow_row(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_WIDTH)
        store_left(to, dtype, i, count - i, load_left(from, HONE_F32, i, count - i));
}

#endif
