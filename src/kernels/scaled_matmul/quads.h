// Words of four integers as AVX-512 reads them: from a row, and from four consecutive rows.
#ifndef HONE_KERNELS_SCALED_MATMUL_QUADS_H
#define HONE_KERNELS_SCALED_MATMUL_QUADS_H

#include "kernels/scaled_matmul/integers.h"

enum { WORD = 4, STEP = WORD * VEC_WIDTH };

HONE_INLINE __mmask64 mask64(int64_t count)
{
    return count >= 64 ? ~UINT64_C(0) : count <= 0 ? 0 : (UINT64_C(1) << count) - 1;
}

// The words of a row, without rearrangement.
HONE_INLINE vec along(const void *data, int64_t index, int64_t left)
{
    const int8_t *from = (const int8_t *)data + index;
    if (__builtin_constant_p(left) && left >= STEP) return of_lanes(_mm512_loadu_si512(from));
    return of_lanes(_mm512_maskz_loadu_epi8(mask64(left), from));
}

// Interleaves four rows of 16 columns into 16 words.
HONE_INLINE vec interleave(__m128i first, __m128i second, __m128i third, __m128i fourth)
{
    const __m128i low = _mm_unpacklo_epi8(first, second), high = _mm_unpackhi_epi8(first, second);
    const __m128i low_below = _mm_unpacklo_epi8(third, fourth), high_below = _mm_unpackhi_epi8(third, fourth);
    __m512i all = _mm512_castsi128_si512(_mm_unpacklo_epi16(low, low_below));
    all = _mm512_inserti32x4(all, _mm_unpackhi_epi16(low, low_below), 1);
    all = _mm512_inserti32x4(all, _mm_unpacklo_epi16(high, high_below), 2);
    return of_lanes(_mm512_inserti32x4(all, _mm_unpackhi_epi16(high, high_below), 3));
}

HONE_INLINE vec across(const void *data, int64_t index, int64_t stride, int64_t left, int64_t count)
{
    const int8_t *from = (const int8_t *)data + index;
    const __mmask16 there = hone_mask16(count);
    return interleave(
        _mm_maskz_loadu_epi8(left > 0 ? there : 0, from), _mm_maskz_loadu_epi8(left > 1 ? there : 0, from + stride),
        _mm_maskz_loadu_epi8(left > 2 ? there : 0, from + 2 * stride),
        _mm_maskz_loadu_epi8(left > 3 ? there : 0, from + 3 * stride));
}

#endif
