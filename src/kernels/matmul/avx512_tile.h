// The AVX-512 micro-kernel and packers, for words of one float or of two bf16: avx512.c and avx512_bf16.c give the
// product of words, and each compiles all of it with its own flags.
#ifndef HONE_KERNELS_MATMUL_AVX512_TILE_H
#define HONE_KERNELS_MATMUL_AVX512_TILE_H

#include "kernels/common/simd_avx512.h"
#include "kernels/common/unroll.h"
#include "kernels/matmul/gemm.h"

enum { LANES = 16, TILE_VECTORS = 4, TILE_ROWS = 14 };

// sum + the product of two vectors of words.
typedef __m512 hone_word_product(__m512 a, __m512 b, __m512 sum);

// One step of k for a tile of rows x vectors: every word of a's column times the row of b.
HONE_INLINE void tile_step(
    __m512 sum[TILE_ROWS][TILE_VECTORS],
    const float *a,
    const float *b,
    __mmask16 last,
    int rows,
    int vectors,
    hone_word_product *product)
{
    __m512 row[TILE_VECTORS];
    HONE_UNROLL
    for (int j = 0; j < vectors; j++)
        row[j] = _mm512_maskz_loadu_ps(j == vectors - 1 ? last : 0xffff, b + j * LANES);
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        __m512 factor = _mm512_set1_ps(a[i]);
        HONE_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = product(factor, row[j], sum[i][j]);
    }
}

HONE_INLINE void tile_store(
    const hone_gemm_tile *tile, __m512 sum[TILE_ROWS][TILE_VECTORS], __mmask16 last, int rows, int vectors)
{
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < vectors; j++) {
            float *c = tile->c + i * tile->c_stride + j * LANES;
            __mmask16 mask = j == vectors - 1 ? last : 0xffff;
            __m512 old = tile->accumulate ? _mm512_maskz_loadu_ps(mask, c) : _mm512_setzero_ps();
            _mm512_mask_storeu_ps(c, mask, _mm512_add_ps(old, sum[i][j]));
        }
    }
}

HONE_INLINE void tile_product(const hone_gemm_tile *tile, int rows, int vectors, hone_word_product *product)
{
    __m512 sum[TILE_ROWS][TILE_VECTORS];
    __mmask16 last = hone_mask16(tile->columns - (vectors - 1) * LANES);
    const float *a = tile->a, *b = tile->b;
    HONE_UNROLL
    for (int i = 0; i < rows; i++) {
        HONE_UNROLL
        for (int j = 0; j < vectors; j++)
            sum[i][j] = _mm512_setzero_ps();
        __builtin_prefetch(tile->c + i * tile->c_stride, 1);
        __builtin_prefetch(tile->c + i * tile->c_stride + (vectors - 1) * LANES, 1);
    }
    for (int64_t p = 0; p < tile->depth; p++, a += rows, b += tile->b_step)
        tile_step(sum, a, b, last, rows, vectors, product);
    tile_store(tile, sum, last, rows, vectors);
}

// The tiles that fit in 32 registers: rows x vectors sums, a row of b and one factor. One function a width, so that
// each count of rows is compiled for itself.
HONE_INLINE void tile_one(const hone_gemm_tile *tile, int32_t rows, hone_word_product *product)
{
    switch (rows) {
    case 1:
        tile_product(tile, 1, 1, product);
        return;
    case 2:
        tile_product(tile, 2, 1, product);
        return;
    case 3:
        tile_product(tile, 3, 1, product);
        return;
    case 4:
        tile_product(tile, 4, 1, product);
        return;
    case 5:
        tile_product(tile, 5, 1, product);
        return;
    case 6:
        tile_product(tile, 6, 1, product);
        return;
    case 7:
        tile_product(tile, 7, 1, product);
        return;
    case 8:
        tile_product(tile, 8, 1, product);
        return;
    case 9:
        tile_product(tile, 9, 1, product);
        return;
    case 10:
        tile_product(tile, 10, 1, product);
        return;
    case 11:
        tile_product(tile, 11, 1, product);
        return;
    case 12:
        tile_product(tile, 12, 1, product);
        return;
    case 13:
        tile_product(tile, 13, 1, product);
        return;
    case 14:
        tile_product(tile, 14, 1, product);
        return;
    default:
        return;
    }
}

HONE_INLINE void tile_two(const hone_gemm_tile *tile, int32_t rows, hone_word_product *product)
{
    switch (rows) {
    case 1:
        tile_product(tile, 1, 2, product);
        return;
    case 2:
        tile_product(tile, 2, 2, product);
        return;
    case 3:
        tile_product(tile, 3, 2, product);
        return;
    case 4:
        tile_product(tile, 4, 2, product);
        return;
    case 5:
        tile_product(tile, 5, 2, product);
        return;
    case 6:
        tile_product(tile, 6, 2, product);
        return;
    case 7:
        tile_product(tile, 7, 2, product);
        return;
    case 8:
        tile_product(tile, 8, 2, product);
        return;
    case 9:
        tile_product(tile, 9, 2, product);
        return;
    case 10:
        tile_product(tile, 10, 2, product);
        return;
    case 11:
        tile_product(tile, 11, 2, product);
        return;
    case 12:
        tile_product(tile, 12, 2, product);
        return;
    case 13:
        tile_product(tile, 13, 2, product);
        return;
    case 14:
        tile_product(tile, 14, 2, product);
        return;
    default:
        return;
    }
}

HONE_INLINE void tile_three(const hone_gemm_tile *tile, int32_t rows, hone_word_product *product)
{
    switch (rows) {
    case 1:
        tile_product(tile, 1, 3, product);
        return;
    case 2:
        tile_product(tile, 2, 3, product);
        return;
    case 3:
        tile_product(tile, 3, 3, product);
        return;
    case 4:
        tile_product(tile, 4, 3, product);
        return;
    case 5:
        tile_product(tile, 5, 3, product);
        return;
    case 6:
        tile_product(tile, 6, 3, product);
        return;
    case 7:
        tile_product(tile, 7, 3, product);
        return;
    case 8:
        tile_product(tile, 8, 3, product);
        return;
    case 9:
        tile_product(tile, 9, 3, product);
        return;
    default:
        return;
    }
}

HONE_INLINE void tile_four(const hone_gemm_tile *tile, int32_t rows, hone_word_product *product)
{
    switch (rows) {
    case 1:
        tile_product(tile, 1, 4, product);
        return;
    case 2:
        tile_product(tile, 2, 4, product);
        return;
    case 3:
        tile_product(tile, 3, 4, product);
        return;
    case 4:
        tile_product(tile, 4, 4, product);
        return;
    case 5:
        tile_product(tile, 5, 4, product);
        return;
    case 6:
        tile_product(tile, 6, 4, product);
        return;
    default:
        return;
    }
}

HONE_INLINE void tile_any(const hone_gemm_tile *tile, int32_t rows, hone_word_product *product)
{
    switch ((tile->columns + LANES - 1) / LANES) {
    case 1:
        tile_one(tile, rows, product);
        return;
    case 2:
        tile_two(tile, rows, product);
        return;
    case 3:
        tile_three(tile, rows, product);
        return;
    default:
        tile_four(tile, rows, product);
    }
}

// Sixteen vectors as the rows of a square become its columns: pairs, fours, eights, sixteens.
HONE_INLINE void transpose16(__m512 v[LANES])
{
    __m512 t[LANES];
    HONE_UNROLL
    for (int i = 0; i < LANES; i += 2) {
        t[i] = _mm512_unpacklo_ps(v[i], v[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(v[i], v[i + 1]);
    }
    HONE_UNROLL
    for (int i = 0; i < LANES; i += 4) {
        v[i] = _mm512_shuffle_ps(t[i], t[i + 2], 0x44);
        v[i + 1] = _mm512_shuffle_ps(t[i], t[i + 2], 0xee);
        v[i + 2] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        v[i + 3] = _mm512_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    HONE_UNROLL
    for (int i = 0; i < LANES; i += 8) {
        HONE_UNROLL
        for (int j = 0; j < 4; j++) {
            t[i + j] = _mm512_shuffle_f32x4(v[i + j], v[i + j + 4], 0x88);
            t[i + j + 4] = _mm512_shuffle_f32x4(v[i + j], v[i + j + 4], 0xdd);
        }
    }
    HONE_UNROLL
    for (int j = 0; j < 8; j++) {
        v[j] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0x88);
        v[j + 8] = _mm512_shuffle_f32x4(t[j], t[j + 8], 0xdd);
    }
}

// Sixteen words of a row from element k on; those behind the strip's end are zero.
typedef __m512 hone_load_words(const hone_gemm_strip *strip, int64_t row, int64_t k);

HONE_INLINE void pack_square(const hone_gemm_strip *strip, int64_t line, int64_t k, int64_t word, hone_load_words *load)
{
    __m512 square[LANES];
    HONE_UNROLL
    for (int i = 0; i < LANES; i++)
        square[i] = line + i < strip->count ? load(strip, line + i, k) : _mm512_setzero_ps();
    transpose16(square);
    int64_t steps = (strip->size - k + word - 1) / word;
    float *out = strip->out + k / word * strip->width + line;
    HONE_UNROLL
    for (int i = 0; i < LANES; i++)
        if (i < steps) _mm512_storeu_ps(out + i * strip->width, square[i]);
}

// Sixteen rows at a time: more streams than that and the prefetchers lose them (measured: 17 GB/s, 5 GB/s with 32 rows).
// Whole vectors are stored, in the order of k: what a store puts behind its width is overwritten by the next one.
HONE_INLINE void pack_lines(const hone_gemm_strip *strip, int64_t word, hone_load_words *load)
{
    for (int64_t line = 0; line < strip->width; line += LANES)
        for (int64_t k = 0; k < strip->size; k += LANES * word)
            pack_square(strip, line, k, word, load);
}

// A vector of words that run across columns: from row k on, from column `column` on.
HONE_INLINE void pack_columns(const hone_gemm_strip *strip, int64_t word, hone_load_words *load)
{
    float *out = strip->out;
    for (int64_t k = 0; k < strip->size; k += word, out += strip->width)
        for (int64_t column = 0; column < strip->width; column += LANES)
            _mm512_storeu_ps(out + column, load(strip, k, column));
}

#endif
