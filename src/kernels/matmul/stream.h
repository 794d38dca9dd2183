// The loops of decode.h over the including file's vectors and words.
#ifndef HONE_KERNELS_MATMUL_STREAM_H
#define HONE_KERNELS_MATMUL_STREAM_H

#include "kernels/matmul/decode.h"
#include "kernels/matmul/words.h"

enum { DOT_ROWS = 8, DOT_STREAMS = 8, SWEEP_ROWS = 6, SWEEP_VECTORS = 4, LINE_BYTES = 64 };

// How words are read and multiplied. Every member is a constant where it is used, so that all of it is inlined.
// `left` is how many elements of k are there from the index on; those behind them count as zero.
typedef struct stream_words {
    int64_t word;    // elements of k in a word
    int64_t a_bytes; // of an element of a
    word_product *product;
    vec (*a_words)(const void *a, int64_t index, int64_t left);
    vec (*b_words)(const void *b, hone_dtype_id dtype, int64_t index, int64_t left);
    vec (*a_word)(const void *a, int64_t index, int64_t left); // one word in all lanes
    // a word of each of `count` columns from `index` on; its second element lies a row below
    vec (*b_columns)(const void *b, hone_dtype_id dtype, int64_t index, int64_t stride, int64_t left, int64_t count);
} stream_words;

HONE_INLINE void fetch(const void *b, hone_dtype_id dtype, int64_t index)
{
    __builtin_prefetch((const char *)b + index * hone_element_size(dtype));
}

// dot ------------------------------------------------------------------------------------------------------------

HONE_INLINE void dot_step(
    const hone_decode_part *part,
    const void *a,
    const void *b,
    int64_t p,
    vec sum[DOT_ROWS][DOT_STREAMS],
    int rows,
    int streams,
    hone_dtype_id dtype,
    const stream_words words)
{
    vec column[DOT_STREAMS];
    int64_t left = part->k - p;
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
            sum[i][j] = vec_set(0.0f);
    }
    for (int64_t p = 0; p < part->k; p += VEC_WIDTH * words.word)
        dot_step(part, a, b, p, sum, rows, streams, dtype, words);
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < streams; j++)
            hone_element_put(part->c, dtype, (row + i) * part->c_stride + column + j, vec_sum(sum[i][j]));
    }
}

// All rows of a over one group of b's rows, which stay in the cache.
HONE_INLINE void dot_rows(
    const hone_decode_part *part, int64_t column, int streams, hone_dtype_id dtype, const stream_words words)
{
    int64_t row = 0, m = part->m;
    for (; fits(8, streams) && row + 8 <= m; row += 8)
        dot_tile(part, row, column, 8, streams, dtype, words);
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
    for (; part->streams == 3 && column + 3 <= n; column += 3)
        dot_rows(part, column, 3, dtype, words);
    for (; part->streams >= 2 && column + 2 <= n; column += 2)
        dot_rows(part, column, 2, dtype, words);
    for (; column < n; column++)
        dot_rows(part, column, 1, dtype, words);
}

// sweep ----------------------------------------------------------------------------------------------------------

HONE_INLINE void sweep_step(
    const hone_decode_part *part,
    int64_t row,
    int64_t column,
    int64_t k,
    vec sum[SWEEP_ROWS][SWEEP_VECTORS],
    int rows,
    hone_dtype_id dtype,
    const stream_words words)
{
    int64_t from = k * part->b_stride + column, left = part->k - k;
    vec b[SWEEP_VECTORS];
    HONE_UNROLL
    for (int j = 0; j < SWEEP_VECTORS; j++) {
        int64_t index = j * VEC_WIDTH;
        b[j] = words.b_columns(part->b, dtype, from + index, part->b_stride, left, part->n - column - index);
    }
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        vec factor = words.a_word(part->a, (row + i) * part->a_stride + k, left);
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            sum[i][j] = words.product(factor, b[j], sum[i][j]);
    }
}

// sums[row .. row + rows)[column ..) += a[.., k ..) b[k .., ..), `depth` words of k; from k = 0 on they are made.
HONE_INLINE void sweep_tile(
    const hone_decode_part *part,
    int64_t row,
    int64_t column,
    int64_t k,
    int64_t depth,
    int rows,
    hone_dtype_id dtype,
    const stream_words words)
{
    vec sum[SWEEP_ROWS][SWEEP_VECTORS];
    float *sums = part->sums + row * part->sums_stride + column;
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            sum[i][j] = k ? vec_load(sums, HONE_F32, i * part->sums_stride + j * VEC_WIDTH) : vec_set(0.0f);
    }
    for (int64_t q = 0; q < depth; q++)
        sweep_step(part, row, column, k + q * words.word, sum, rows, dtype, words);
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < SWEEP_VECTORS; j++)
            vec_store(sums, HONE_F32, i * part->sums_stride + j * VEC_WIDTH, sum[i][j]);
    }
}

// `rows` rows of b, as wide as a tile, part->ahead elements further on.
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
        sweep_tile(part, row, column, k, depth, 6, dtype, words);
    for (; fits(4, SWEEP_VECTORS) && row + 4 <= m; row += 4)
        sweep_tile(part, row, column, k, depth, 4, dtype, words);
    for (; row + 2 <= m; row += 2)
        sweep_tile(part, row, column, k, depth, 2, dtype, words);
    for (; row < m; row++)
        sweep_tile(part, row, column, k, depth, 1, dtype, words);
}

// Passes from end to end, over as many rows of b at a time as there are streams.
HONE_INLINE void sweep_all(const hone_decode_part *part, hone_dtype_id dtype, const stream_words words)
{
    int64_t total = (part->k + words.word - 1) / words.word;
    for (int64_t p = 0; p < total; p += part->streams) {
        int64_t depth = total - p < part->streams ? total - p : part->streams;
        for (int64_t column = 0; column < part->n; column += SWEEP_VECTORS * VEC_WIDTH)
            sweep_rows(part, column, p * words.word, depth, dtype, words);
    }
}

HONE_INLINE void gather_sums(
    const float *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec sum = vec_load(from, HONE_F32, i);
        for (int64_t part = 1; part < parts; part++)
            sum = vec_add(sum, vec_load(from, HONE_F32, part * step + i));
        store_left(to, dtype, i, count - i, sum);
    }
}

#endif
