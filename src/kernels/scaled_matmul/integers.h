// Lanes of 32-bit integers in the including file's vectors: their bits are moved as those of floats. Provides what
// words.h, gemm.h and decode.h need for integer sums.
#ifndef HONE_KERNELS_SCALED_MATMUL_INTEGERS_H
#define HONE_KERNELS_SCALED_MATMUL_INTEGERS_H

#include "kernels/common/half.h"
#include "kernels/common/unroll.h"

#ifdef __AVX512F__

typedef __m512i lanes;

HONE_INLINE vec of_lanes(lanes a)
{
    return _mm512_castsi512_ps(a);
}

HONE_INLINE lanes lanes_of(vec a)
{
    return _mm512_castps_si512(a);
}

HONE_INLINE vec add_lanes(vec a, vec b)
{
    return of_lanes(_mm512_add_epi32(lanes_of(a), lanes_of(b)));
}

// The sums minus an integer, as floats.
HONE_INLINE vec floats_of(vec sums, int32_t less)
{
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(lanes_of(sums), _mm512_set1_epi32(less)));
}

#else

typedef __m256i lanes;

HONE_INLINE vec of_lanes(lanes a)
{
    return _mm256_castsi256_ps(a);
}

HONE_INLINE lanes lanes_of(vec a)
{
    return _mm256_castps_si256(a);
}

HONE_INLINE vec add_lanes(vec a, vec b)
{
    return of_lanes(_mm256_add_epi32(lanes_of(a), lanes_of(b)));
}

HONE_INLINE vec floats_of(vec sums, int32_t less)
{
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(lanes_of(sums), _mm256_set1_epi32(less)));
}

#endif

// Vectors wrap on integer overflow; in C it is undefined.
HONE_INLINE int32_t sum_integers(vec a)
{
#ifdef __AVX512F__
    const __m256i halves =
        _mm256_add_epi32(_mm512_castsi512_si256(lanes_of(a)), _mm512_extracti64x4_epi64(lanes_of(a), 1));
#else
    const __m256i halves = lanes_of(a);
#endif
    __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1)));
}

HONE_INLINE float sum_lanes(vec a)
{
    return hone_float_of_bits((uint32_t)sum_integers(a));
}

#define LANE_ADD add_lanes
#define LANE_SUM sum_lanes

#include "kernels/matmul/stream.h"
#include "kernels/scaled_matmul/scaled_matmul.h"

// Subtracts an integer from sums, converts them to floats, and multiplies by both scales.
HONE_INLINE void scale_row(
    const hone_matmul *product, float *sums, int64_t row, int64_t column, int64_t count, int32_t less)
{
    const vec a = vec_set(product->a_scale[row * product->a_scale_stride]), one = vec_set(product->b_scale[0]);
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        const int64_t left = count - i;
        const vec b = product->b_scale_stride != 0 ? load_left(product->b_scale, HONE_F32, column + i, left) : one;
        const vec x = floats_of(load_left(sums, HONE_F32, i, left), less);
        store_left(sums, HONE_F32, i, left, vec_mul(vec_mul(x, a), b));
    }
}

HONE_INLINE void put_row(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    for (int64_t i = 0; i < count; i += VEC_WIDTH)
        store_left(to, dtype, i, count - i, load_left(from, HONE_F32, i, count - i));
}

HONE_INLINE void narrow(const float *from, void *to, hone_dtype_id dtype, int64_t count)
{
    if (dtype == HONE_F32)
        put_row(from, to, HONE_F32, count);
    else if (dtype == HONE_BF16)
        put_row(from, to, HONE_BF16, count);
    else
        put_row(from, to, HONE_F16, count);
}

HONE_INLINE void gather(const void *from, int64_t step, int64_t parts, void *to, hone_dtype_id dtype, int64_t count)
{
    if (parts > 1)
        gather_sums(from, step, parts, to, HONE_F32, count);
    else
        narrow(from, to, dtype, count);
}

#endif
