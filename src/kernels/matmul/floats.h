// Words of one float: f32 in place, f16 and bf16 widened as they are read; or, over vectors of doubles, of one double.
// Gives the including file, which provides its vectors, all members of hone_gemm_set and hone_decode_set.
#ifndef HONE_KERNELS_MATMUL_FLOATS_H
#define HONE_KERNELS_MATMUL_FLOATS_H

#include "kernels/matmul/sets.h"
#include "kernels/matmul/stream.h"
#include "kernels/matmul/tile.h"

// The blocked product -------------------------------------------------------------------------------------------------

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    const tile_form form = {.word = 1, .product = vec_fma};
    tile_any(work, rows, form);
}

HONE_INLINE vec line(const hone_gemm_strip *strip, int64_t row, int64_t k, hone_dtype_id dtype)
{
    return load_left(strip->data, dtype, row * strip->stride + k, strip->size - k);
}

HONE_INLINE vec column(const hone_gemm_strip *strip, int64_t k, int64_t from, hone_dtype_id dtype)
{
    return load_left(strip->data, dtype, k * strip->stride + from, strip->count - from);
}

// Products of a few rows ----------------------------------------------------------------------------------------------

HONE_INLINE vec a_words(const void *a, int64_t index, int64_t left)
{
    return load_left(a, LANE_DTYPE, index, left);
}

HONE_INLINE vec b_words(const void *b, hone_dtype_id dtype, int64_t index, int64_t left)
{
    return load_left(b, dtype, index, left);
}

HONE_INLINE vec a_word(const void *a, int64_t index, int64_t left)
{
    (void)left;
    return vec_set(((const LANE *)a)[index]);
}

HONE_INLINE vec
b_columns(const void *b, hone_dtype_id dtype, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    (void)stride;
    (void)left;
    return load_left(b, dtype, index, count);
}

static const stream_words words = {1, sizeof(LANE), vec_fma, a_words, b_words, a_word, .b_columns = b_columns};

// By dtype ------------------------------------------------------------------------------------------------------------

#ifdef VEC_F64

HONE_INLINE vec line_f64(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return line(strip, row, k, HONE_F64);
}

static void lines(const hone_gemm_strip *strip)
{
    pack_lines(strip, 1, line_f64);
}

HONE_INLINE vec column_f64(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return column(strip, k, from, HONE_F64);
}

static void columns(const hone_gemm_strip *strip)
{
    pack_columns(strip, 1, column_f64);
}

static void dot(const hone_decode_part *part)
{
    dot_all(part, HONE_F64, words);
}

static void sweep(const hone_decode_part *part)
{
    sweep_all(part, HONE_F64, words);
}

static void gather(const void *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    (void)dtype;
    gather_sums(from, step, parts, to, HONE_F64, count);
}

#else

HONE_INLINE vec line_f32(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return line(strip, row, k, HONE_F32);
}

HONE_INLINE vec line_f16(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return line(strip, row, k, HONE_F16);
}

HONE_INLINE vec line_bf16(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return line(strip, row, k, HONE_BF16);
}

static void lines(const hone_gemm_strip *strip)
{
    if (strip->dtype == HONE_F32)
        pack_lines(strip, 1, line_f32);
    else if (strip->dtype == HONE_BF16)
        pack_lines(strip, 1, line_bf16);
    else
        pack_lines(strip, 1, line_f16);
}

HONE_INLINE vec column_f32(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return column(strip, k, from, HONE_F32);
}

HONE_INLINE vec column_f16(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return column(strip, k, from, HONE_F16);
}

HONE_INLINE vec column_bf16(const hone_gemm_strip *strip, int64_t k, int64_t from)
{
    return column(strip, k, from, HONE_BF16);
}

static void columns(const hone_gemm_strip *strip)
{
    if (strip->dtype == HONE_F32)
        pack_columns(strip, 1, column_f32);
    else if (strip->dtype == HONE_BF16)
        pack_columns(strip, 1, column_bf16);
    else
        pack_columns(strip, 1, column_f16);
}

static void narrow(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    if (dtype == HONE_BF16)
        narrow_row(from, to, HONE_BF16, count);
    else
        narrow_row(from, to, HONE_F16, count);
}

static void dot(const hone_decode_part *part)
{
    if (part->dtype == HONE_F32)
        dot_all(part, HONE_F32, words);
    else if (part->dtype == HONE_BF16)
        dot_all(part, HONE_BF16, words);
    else
        dot_all(part, HONE_F16, words);
}

static void sweep(const hone_decode_part *part)
{
    if (part->dtype == HONE_F32)
        sweep_all(part, HONE_F32, words);
    else if (part->dtype == HONE_BF16)
        sweep_all(part, HONE_BF16, words);
    else
        sweep_all(part, HONE_F16, words);
}

static void gather(const void *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    if (dtype == HONE_F32)
        gather_sums(from, step, parts, to, HONE_F32, count);
    else if (dtype == HONE_BF16)
        gather_sums(from, step, parts, to, HONE_BF16, count);
    else
        gather_sums(from, step, parts, to, HONE_F16, count);
}

HONE_INLINE void widen_row(const void *from, float *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_WIDTH)
        store_left(to, HONE_F32, i, count - i, load_left(from, dtype, i, count - i));
}

static void widen(const void *from, float *to, hone_dtype_id dtype, int64_t count)
{
    if (dtype == HONE_BF16)
        widen_row(from, to, HONE_BF16, count);
    else
        widen_row(from, to, HONE_F16, count);
}

#endif

#endif
