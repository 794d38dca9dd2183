// Eight floats from and to f32, f16 and bf16 memory. For files compiled with AVX2, FMA and F16C.
#ifndef HONE_KERNELS_COMMON_SIMD_AVX2_H
#define HONE_KERNELS_COMMON_SIMD_AVX2_H

#include "kernels/common/half.h"

#include <immintrin.h>

// Lanes below count are -1 (selected), the others 0. count 0 to 8.
static inline __m256i hone_mask8(int64_t count)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)count), lanes);
}

static inline __m256 hone_widen8(__m128i half, hone_dtype_id dtype)
{
    if (dtype == HONE_F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

// Rounds to bf16 in the upper halves: to nearest even; NaN stays NaN.
static inline __m256i hone_round8(__m256 value)
{
    __m256i bits = _mm256_castps_si256(value);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(rounded, quiet, nan);
}

static inline __m128i hone_bf16x8(__m256 value)
{
    __m256i high = _mm256_srli_epi32(hone_round8(value), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
}

static inline __m128i hone_narrow8(__m256 value, hone_dtype_id dtype)
{
    return dtype == HONE_F16 ? _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT) : hone_bf16x8(value);
}

// dtype is a constant at every call, so that only one branch remains.
static inline __m256 hone_load8(const void *data, hone_dtype_id dtype, int64_t index)
{
    if (dtype == HONE_F32) return _mm256_loadu_ps((const float *)data + index);
    return hone_widen8(_mm_loadu_si128((const __m128i *)((const uint16_t *)data + index)), dtype);
}

static inline void hone_store8(void *data, hone_dtype_id dtype, int64_t index, __m256 value)
{
    if (dtype == HONE_F32)
        _mm256_storeu_ps((float *)data + index, value);
    else
        _mm_storeu_si128((__m128i *)((uint16_t *)data + index), hone_narrow8(value, dtype));
}

// The first count (0 to 8) elements; the other lanes are 0. Reads no memory after them.
static inline __m256 hone_load8_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    if (count >= 8) return hone_load8(data, dtype, index);
    if (dtype == HONE_F32) return _mm256_maskload_ps((const float *)data + index, hone_mask8(count));
    uint16_t part[8] = {0};
    memcpy(part, (const uint16_t *)data + index, (size_t)count * 2);
    return hone_widen8(_mm_loadu_si128((const __m128i *)part), dtype);
}

static inline void hone_store8_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, __m256 value)
{
    if (count >= 8) {
        hone_store8(data, dtype, index, value);
    } else if (dtype == HONE_F32) {
        _mm256_maskstore_ps((float *)data + index, hone_mask8(count), value);
    } else {
        uint16_t part[8];
        _mm_storeu_si128((__m128i *)part, hone_narrow8(value, dtype));
        memcpy((uint16_t *)data + index, part, (size_t)count * 2);
    }
}

static inline float hone_sum8(__m256 value)
{
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

#endif
