// Sixteen floats from and to f32, f16 and bf16 memory. For files compiled with AVX-512 F, BW, VL and DQ.
#ifndef HONE_KERNELS_COMMON_SIMD_AVX512_H
#define HONE_KERNELS_COMMON_SIMD_AVX512_H

#include "kernels/common/half.h"

#include <immintrin.h>

// The first count lanes; all from 16 on, none from 0 down.
static inline __mmask16 hone_mask16(int64_t count)
{
    if (count >= 16) return 0xffff;
    if (count <= 0) return 0;
    return (__mmask16)((1u << count) - 1);
}

static inline __m512 hone_widen16(__m256i half, hone_dtype_id dtype)
{
    if (dtype == HONE_F16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

// Rounds to bf16 in the upper halves: to nearest even; NaN stays NaN.
static inline __m512i hone_round16(__m512 value)
{
    const __m512i bits = _mm512_castps_si512(value);
    const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    __m512i rounded = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff));
    rounded = _mm512_mask_add_epi32(rounded, odd, rounded, _mm512_set1_epi32(1));
    return _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
}

// One permutation selects the upper halves; a shift and a conversion take three steps.
static inline __m256i hone_bf16x16(__m512 value)
{
    static const uint16_t upper[32] = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    return _mm512_castsi512_si256(_mm512_permutexvar_epi16(_mm512_loadu_si512(upper), hone_round16(value)));
}

static inline __m256i hone_narrow16(__m512 value, hone_dtype_id dtype)
{
    return dtype == HONE_F16 ? _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT) : hone_bf16x16(value);
}

// Lanes outside the mask are 0 and their memory is not read. dtype is a constant at every call.
static inline __m512 hone_load16(const void *data, hone_dtype_id dtype, int64_t index, __mmask16 mask)
{
    if (dtype == HONE_F32) return _mm512_maskz_loadu_ps(mask, (const float *)data + index);
    return hone_widen16(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)data + index), dtype);
}

static inline void hone_store16(void *data, hone_dtype_id dtype, int64_t index, __mmask16 mask, __m512 value)
{
    if (dtype == HONE_F32)
        _mm512_mask_storeu_ps((float *)data + index, mask, value);
    else
        _mm256_mask_storeu_epi16((uint16_t *)data + index, mask, hone_narrow16(value, dtype));
}

#endif
