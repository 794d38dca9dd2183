// The loops of decode.h over the including file's vectors and words.
#ifndef HONE_KERNELS_MATMUL_STREAM_H
#define HONE_KERNELS_MATMUL_STREAM_H

#include "kernels/matmul/decode.h"
#include "kernels/matmul/words.h"

enum { DOT_ROWS = 6, DOT_STREAMS = 8, SWEEP_ROWS = 6, SWEEP_VECTORS = 4, SWEEP_DEPTH = 8, LINE_BYTES = 64 };

// How words are read and multiplied. Every member is a constant where it is used, so that all of it is inlined. `left`
// is the number of elements of k from the index on; elements after them count as zero.
typedef struct stream_words {
    int64_t word;    // elements of k in a word
    int64_t a_bytes; // of an element of a
    word_product *product;
    vec (*a_words)(const void *a, int64_t index, int64_t left);
    vec (*b_words)(const void *b, hone_dtype_id dtype, int64_t index, int64_t left);
    vec (*a_word)(const void *a, int64_t index, int64_t left); // one word in all lanes
    // a word of each of `count` columns from `index` on; its elements are in consecutive rows
    vec (*b_columns)(const void *b, hone_dtype_id dtype, int64_t index, int64_t stride, int64_t left, int64_t count);
    // if not NULL, used instead: the words of two vectors of columns in the set's own order, in which sums are kept
    void (*b_two)(const void *b, int64_t index, int64_t stride, int64_t left, int64_t count, vec out[2]);
} stream_words;

// Prefetches to the second-level cache: prefetching to the first is too early (measured at 4096 x 4096 on Zen 4: 38
// GB/s, 23 to 27 GB/s into the first or without prefetching).
HONE_INLINE void fetch(const void *b, hone_dtype_id dtype, int64_t index)
{
    __builtin_prefetch((const char *)b + index * hone_element_size(dtype), 0, 2);
}

// dot -----------------------------------------------------------------------------------------------------------------

// left: the number of elements of k; a constant except at the end.
HONE_INLINE void dot_step(
    const hone_decode_part *part,
    const void *a,
    const void *b,
    int64_t p,
    int64_t left,
    vec sum[DOT_ROWS][DOT_STREAMS],
    int rows,
    int streams,
    hone_dtype_id dtype,
    const stream_words words)
{
    vec column[DOT_STREAMS];
    HONE_UNROLL
    for (int j = 0; j < streams; j++) {
        column[j] = words.b_words(b, dtype, j * part->b_stride + p, left);
        fetch(b, dtype, j * part->b_stride + p + part->ahead);
    }
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        vec factor = words.a_words(a, i * part->a_stride + p, left);
        HONE_UNROLL
        for (int j = 0; j < streams; j++)
            sum[i][j] = words.product(factor, column[j], sum[i][j]);
    }
}

HONE_INLINE void dot_put(const hone_decode_part *part, int64_t row, int64_t column, hone_dtype_id dtype, LANE sum)
{
    if (part->sums != NULL)
        ((LANE *)part->sums)[row * part->sums_stride + column] = sum;
    else
        hone_element_put_double(part->c, dtype, row * part->c_stride + column, (double)sum);
}

// c[row .. row + rows)[column .. column + streams)
HONE_INLINE void dot_tile(
    const hone_decode_part *part,
    int64_t row,
    int64_t column,
    int rows,
    int streams,
    hone_dtype_id dtype,
    const stream_words words)
{
    vec sum[DOT_ROWS][DOT_STREAMS];
    const void *a = (const char *)part->a + row * part->a_stride * words.a_bytes;
    const void *b = (const char *)part->b + column * part->b_stride * hone_element_size(dtype);
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < streams; j++)
            sum[i][j] = vec_set(0);
    }
    int64_t p = 0, step = VEC_WIDTH * words.word;
    for (; p + step <= part->k; p += step)
        dot_step(part, a, b, p, VEC_WIDTH * words.word, sum, rows, streams, dtype, words);
    if (p < part->k) dot_step(part, a, b, p, part->k - p, sum, rows, streams, dtype, words);
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < streams; j++)
            dot_put(part, row + i, column + j, dtype, LANE_SUM(sum[i][j]));
    }
}

// Multiplies all rows of a by one group of b's rows, which stay in the cache.
HONE_INLINE void dot_rows(
    const hone_decode_part *part, int64_t column, int streams, hone_dtype_id dtype, const stream_words words)
{
    int64_t row = 0, m = part->m;
    for (; fits(6, streams) && row + 6 <= m; row += 6)
        dot_tile(part, row, column, 6, streams, dtype, words);
    for (; fits(4, streams) && row + 4 <= m; row += 4)
        dot_tile(part, row, column, 4, streams, dtype, words);
    for (; fits(2, streams) && row + 2 <= m; row += 2)
        dot_tile(part, row, column, 2, streams, dtype, words);
    for (; row < m; row++)
        dot_tile(part, row, column, 1, streams, dtype, words);
}

HONE_INLINE void dot_all(const hone_decode_part *part, hone_dtype_id dtype, const stream_words words)
{
    int64_t column = 0, n = part->n;
    for (; part->streams >= 8 && column + 8 <= n; column += 8)
        dot_rows(part, column, 8, dtype, words);
    for (; part->streams >= 4 && column + 4 <= n; column += 4)
        dot_rows(part, column, 4, dtype, words);
    for (; column < n; column++)
        dot_rows(part, column, 1, dtype, words);
}

// sweep ---------------------------------------------------------------------------------------------------------------

// Processes one word of k. whole: all of the tile's columns, and both elements of a word of two, exist.
HONE_INLINE void sweep_step(
    const hone_decode_part *part,
    int64_t row,
    int64_t column,
    int64_t k,
    vec sum[SWEEP_ROWS][SWEEP_VECTORS],
    int rows,
    bool whole,
    hone_dtype_id dtype,
    const stream_words words)
{
    int64_t from = k * part->b_stride + column, left = whole ? words.word : part->k - k;
    vec b[SWEEP_VECTORS];
    HONE_UNROLL
    for (int j = 0; j < SWEEP_VECTORS; j++) {
        int64_t index = j * VEC_WIDTH, count = whole ? 2 * VEC_WIDTH : part->n - column - index;
        if (words.b_two == NULL)
            b[j] = words.b_columns(part->b, dtype, from + index, part->b_stride, left, count);
        else if (j % 2 == 0)
            words.b_two(part->b, from + index, part->b_stride, left, count, b + j);
    }
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        vec factor = words.a_word(part->a, (row + i) * part->a_stride + k, left);
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            sum[i][j] = words.product(factor, b[j], sum[i][j]);
    }
}

HONE_INLINE void sweep_load(
    const hone_decode_part *part, const LANE *sums, int64_t k, vec sum[SWEEP_ROWS][SWEEP_VECTORS], int rows)
{
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            sum[i][j] = k ? vec_load(sums, LANE_DTYPE, i * part->sums_stride + j * VEC_WIDTH) : vec_set(0);
    }
}

HONE_INLINE void sweep_store(const hone_decode_part *part, LANE *sums, vec sum[SWEEP_ROWS][SWEEP_VECTORS], int rows)
{
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            vec_store(sums, LANE_DTYPE, i * part->sums_stride + j * VEC_WIDTH, sum[i][j]);
    }
}

// sums[row .. row + rows)[column ..) += a[.., k ..) b[k .., ..), `depth` words of k; from k = 0 on the sums are set.
HONE_INLINE void sweep_tile(
    const hone_decode_part *part,
    int64_t row,
    int64_t column,
    int64_t k,
    int64_t depth,
    int rows,
    bool whole,
    hone_dtype_id dtype,
    const stream_words words)
{
    vec sum[SWEEP_ROWS][SWEEP_VECTORS];
    LANE *sums = (LANE *)part->sums + row * part->sums_stride + column;
    sweep_load(part, sums, k, sum, rows);
    for (int64_t q = 0; q < depth; q++)
        sweep_step(part, row, column, k + q * words.word, sum, rows, whole, dtype, words);
    sweep_store(part, sums, sum, rows);
}

// The same for one row and a constant depth: each row of b has its own instructions, from which a prefetcher learns its
// stride.
HONE_INLINE void sweep_row(
    const hone_decode_part *part, int64_t row, int64_t column, int64_t k, hone_dtype_id dtype, const stream_words words)
{
    vec sum[SWEEP_ROWS][SWEEP_VECTORS];
    LANE *sums = (LANE *)part->sums + row * part->sums_stride + column;
    sweep_load(part, sums, k, sum, 1);
    HONE_UNROLL
    for (int q = 0; q < SWEEP_DEPTH; q++)
        sweep_step(part, row, column, k + q * words.word, sum, 1, true, dtype, words);
    sweep_store(part, sums, sum, 1);
}

// Prefetches `rows` rows of b, as wide as a tile, part->ahead elements further on.
HONE_INLINE void sweep_fetch(const hone_decode_part *part, int64_t column, int64_t k, int64_t rows, hone_dtype_id dtype)
{
    if (part->ahead == 0) return;
    for (int64_t p = k; p < k + rows; p++)
        for (int64_t j = 0; j < SWEEP_VECTORS * VEC_WIDTH; j += LINE_BYTES / hone_element_size(dtype))
            fetch(part->b, dtype, p * part->b_stride + column + j + part->ahead);
}

HONE_INLINE void sweep_rows(
    const hone_decode_part *part,
    int64_t column,
    int64_t k,
    int64_t depth,
    hone_dtype_id dtype,
    const stream_words words)
{
    int64_t row = 0, m = part->m;
    sweep_fetch(part, column, k, depth * words.word, dtype);
    for (; fits(6, SWEEP_VECTORS) && row + 6 <= m; row += 6)
        sweep_tile(part, row, column, k, depth, 6, true, dtype, words);
    for (; fits(4, SWEEP_VECTORS) && row + 4 <= m; row += 4)
        sweep_tile(part, row, column, k, depth, 4, true, dtype, words);
    for (; row + 2 <= m; row += 2)
        sweep_tile(part, row, column, k, depth, 2, true, dtype, words);
    for (; row < m && depth == SWEEP_DEPTH; row++)
        sweep_row(part, row, column, k, dtype, words);
    for (; row < m; row++)
        sweep_tile(part, row, column, k, depth, 1, true, dtype, words);
}

// A tile that is partial on the right or at the bottom.
HONE_INLINE void sweep_edge(
    const hone_decode_part *part,
    int64_t column,
    int64_t k,
    int64_t depth,
    hone_dtype_id dtype,
    const stream_words words)
{
    for (int64_t row = 0; row < part->m; row++)
        sweep_tile(part, row, column, k, depth, 1, false, dtype, words);
}

// Processes `depth` rows of words of b from end to end.
HONE_INLINE void sweep_pass(
    const hone_decode_part *part, int64_t k, int64_t depth, hone_dtype_id dtype, const stream_words words)
{
    int64_t column = 0, width = SWEEP_VECTORS * VEC_WIDTH;
    for (; k + depth * words.word <= part->k && column + width <= part->n; column += width)
        sweep_rows(part, column, k, depth, dtype, words);
    for (; column < part->n; column += width)
        sweep_edge(part, column, k, depth, dtype, words);
}

// Processes as many rows of b in a pass as there are streams; a partial word has its own pass.
HONE_INLINE void sweep_all(const hone_decode_part *part, hone_dtype_id dtype, const stream_words words)
{
    int64_t total = part->k / words.word, p = 0;
    while (p < total) {
        int64_t depth = total - p < part->streams ? total - p : part->streams;
        sweep_pass(part, p * words.word, depth, dtype, words);
        p += depth;
    }
    if (p * words.word < part->k) sweep_pass(part, p * words.word, 1, dtype, words);
}

HONE_INLINE void gather_sums(
    const LANE *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec sum = vec_load(from, LANE_DTYPE, i);
        for (int64_t part = 1; part < parts; part++)
            sum = LANE_ADD(sum, vec_load(from, LANE_DTYPE, part * step + i));
        store_left(to, dtype, i, count - i, sum);
    }
}

#endif
