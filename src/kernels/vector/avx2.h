// Eight floats as `vec`, for files compiled with AVX2, FMA and F16C; the functions are described in avx512.h.
#ifndef HONE_KERNELS_VECTOR_H
#define HONE_KERNELS_VECTOR_H

#include "kernels/common/simd_avx2.h"
#include "kernels/common/unroll.h"

typedef __m256 vec;

enum { VEC_WIDTH = 8, VEC_TILE = 4, VEC_LOWEST = -127, VEC_STREAMS = 1 };

HONE_INLINE vec vec_set(float value)
{
    return _mm256_set1_ps(value);
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

HONE_INLINE vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

HONE_INLINE vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

HONE_INLINE vec vec_div(vec a, vec b)
{
    return _mm256_div_ps(a, b);
}

HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

HONE_INLINE vec vec_max(vec a, vec b)
{
    return _mm256_max_ps(a, b);
}

HONE_INLINE vec vec_min(vec a, vec b)
{
    return _mm256_min_ps(a, b);
}

HONE_INLINE vec vec_round(vec a)
{
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// The exponent -127 is that of zero, so numbers smaller than a normal float become 0.
HONE_INLINE vec vec_scale(vec a, vec n)
{
    __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_mul_ps(a, _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23)));
}

HONE_INLINE vec vec_within(vec low, vec x, vec high, vec a, vec b)
{
    __m256 mask = _mm256_and_ps(_mm256_cmp_ps(low, x, _CMP_LE_OQ), _mm256_cmp_ps(x, high, _CMP_LE_OQ));
    return _mm256_blendv_ps(b, a, mask);
}

HONE_INLINE vec vec_first(int64_t count, vec a, vec b)
{
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(hone_mask8(count)));
}

HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    return hone_load8(data, dtype, index);
}

HONE_INLINE void vec_load_two(const void *data, hone_dtype_id dtype, int64_t index, vec out[2])
{
    if (dtype == HONE_BF16) {
        const __m256i both = _mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)data + index));
        out[0] = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
        out[1] = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000)));
    } else {
        out[0] = vec_load(data, dtype, index);
        out[1] = vec_load(data, dtype, index + VEC_WIDTH);
    }
}

HONE_INLINE void vec_floats_of_two(const float *from, hone_dtype_id dtype, int64_t index, vec out[2])
{
    out[0] = _mm256_loadu_ps(from + index);
    out[1] = _mm256_loadu_ps(from + index + VEC_WIDTH);
    if (dtype != HONE_BF16) return;
    const __m256 even = _mm256_shuffle_ps(out[0], out[1], _MM_SHUFFLE(2, 0, 2, 0)),
                 odd = _mm256_shuffle_ps(out[0], out[1], _MM_SHUFFLE(3, 1, 3, 1));
    out[0] = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(even), _MM_SHUFFLE(3, 1, 2, 0)));
    out[1] = _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(odd), _MM_SHUFFLE(3, 1, 2, 0)));
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    hone_store8(data, dtype, index, value);
}

HONE_INLINE void vec_store_two(void *data, hone_dtype_id dtype, int64_t index, const vec two[2])
{
    if (dtype == HONE_BF16) {
        const __m256i low = _mm256_srli_epi32(hone_round8(two[0]), 16);
        _mm256_storeu_si256(
            (__m256i *)(void *)((uint16_t *)data + index), _mm256_blend_epi16(low, hone_round8(two[1]), 0xaa));
    } else {
        vec_store(data, dtype, index, two[0]);
        vec_store(data, dtype, index + VEC_WIDTH, two[1]);
    }
}

HONE_INLINE void vec_stream(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    if (dtype == HONE_F32)
        _mm256_stream_ps((float *)data + index, value);
    else
        _mm_stream_si128((__m128i *)(void *)((uint16_t *)data + index), hone_narrow8(value, dtype));
}

HONE_INLINE void vec_stream_end(void)
{
    _mm_sfence();
}

HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    return hone_load8_part(data, dtype, index, count);
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    hone_store8_part(data, dtype, index, count, value);
}

HONE_INLINE float vec_sum(vec a)
{
    return hone_sum8(a);
}

HONE_INLINE float vec_highest(vec a)
{
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    vec half[VEC_WIDTH];
    HONE_UNROLL
    for (int i = 0; i < 8; i += 2) {
        half[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
        half[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    HONE_UNROLL
    for (int i = 0; i < 8; i += 4) {
        rows[i] = _mm256_shuffle_ps(half[i], half[i + 2], 0x44);
        rows[i + 1] = _mm256_shuffle_ps(half[i], half[i + 2], 0xee);
        rows[i + 2] = _mm256_shuffle_ps(half[i + 1], half[i + 3], 0x44);
        rows[i + 3] = _mm256_shuffle_ps(half[i + 1], half[i + 3], 0xee);
    }
    HONE_UNROLL
    for (int i = 0; i < 4; i++) {
        half[i] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x20);
        half[i + 4] = _mm256_permute2f128_ps(rows[i], rows[i + 4], 0x31);
    }
    HONE_UNROLL
    for (int i = 0; i < 8; i++)
        rows[i] = half[i];
}

HONE_INLINE vec vec_sums(vec rows[VEC_WIDTH])
{
    HONE_UNROLL
    for (int i = 0; i < 4; i++)
        rows[i] = _mm256_add_ps(
            _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]), _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));
    HONE_UNROLL
    for (int i = 0; i < 2; i++)
        rows[i] = _mm256_add_ps(
            _mm256_shuffle_ps(rows[2 * i], rows[2 * i + 1], 0x44),
            _mm256_shuffle_ps(rows[2 * i], rows[2 * i + 1], 0xee));
    return _mm256_add_ps(
        _mm256_permute2f128_ps(rows[0], rows[1], 0x20), _mm256_permute2f128_ps(rows[0], rows[1], 0x31));
}

#include "kernels/vector/exponential.h"

#endif
