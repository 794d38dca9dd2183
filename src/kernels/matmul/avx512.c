// The blocked product on AVX-512 with words of one float: f32 as it lies, f16 and bf16 widened while they are packed.
#include "kernels/matmul/avx512_tile.h"
#include "kernels/matmul/sets.h"

HONE_INLINE __m512 multiply_add(__m512 a, __m512 b, __m512 sum)
{
    return _mm512_fmadd_ps(a, b, sum);
}

static void tile(const hone_gemm_tile *work, int32_t rows)
{
    tile_any(work, rows, multiply_add);
}

HONE_INLINE __m512 line_f32(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return hone_load16(strip->data, HONE_F32, row * strip->stride + k, hone_mask16(strip->size - k));
}

HONE_INLINE __m512 line_f16(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return hone_load16(strip->data, HONE_F16, row * strip->stride + k, hone_mask16(strip->size - k));
}

HONE_INLINE __m512 line_bf16(const hone_gemm_strip *strip, int64_t row, int64_t k)
{
    return hone_load16(strip->data, HONE_BF16, row * strip->stride + k, hone_mask16(strip->size - k));
}

HONE_INLINE __m512 columns_f32(const hone_gemm_strip *strip, int64_t k, int64_t column)
{
    return hone_load16(strip->data, HONE_F32, k * strip->stride + column, hone_mask16(strip->count - column));
}

HONE_INLINE __m512 columns_f16(const hone_gemm_strip *strip, int64_t k, int64_t column)
{
    return hone_load16(strip->data, HONE_F16, k * strip->stride + column, hone_mask16(strip->count - column));
}

HONE_INLINE __m512 columns_bf16(const hone_gemm_strip *strip, int64_t k, int64_t column)
{
    return hone_load16(strip->data, HONE_BF16, k * strip->stride + column, hone_mask16(strip->count - column));
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

static void columns(const hone_gemm_strip *strip)
{
    if (strip->dtype == HONE_F32)
        pack_columns(strip, 1, columns_f32);
    else if (strip->dtype == HONE_BF16)
        pack_columns(strip, 1, columns_bf16);
    else
        pack_columns(strip, 1, columns_f16);
}

static void narrow(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += LANES) {
        __mmask16 mask = hone_mask16(count - i);
        __m512 value = _mm512_maskz_loadu_ps(mask, from + i);
        if (dtype == HONE_BF16)
            hone_store16(to, HONE_BF16, i, mask, value);
        else
            hone_store16(to, HONE_F16, i, mask, value);
    }
}

const hone_gemm_set hone_gemm_avx512 = {
    .vector = LANES,
    .word = 1,
    .max_rows = TILE_ROWS,
    .tile = tile,
    .pack_lines = lines,
    .pack_columns = columns,
    .narrow = narrow,
};
