// Doubles as `vec`, for products of f64: eight with AVX-512, four with AVX2, else two, depending on the flags of the
// including file. avx512.h describes the functions; all arrays are of f64.
#ifndef HONE_KERNELS_VECTOR_H
#define HONE_KERNELS_VECTOR_H

#include "kernels/common/half.h"
#include "kernels/common/unroll.h"

#define VEC_F64

#if defined(__AVX512F__)

#    include <immintrin.h>

typedef __m512d vec;

enum { VEC_WIDTH = 8 };

HONE_INLINE __mmask8 vec_mask(int64_t count)
{
    return (__mmask8)(count >= 8 ? 0xff : count <= 0 ? 0 : (1u << count) - 1);
}

HONE_INLINE vec vec_set(double value)
{
    return _mm512_set1_pd(value);
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_pd(a, b);
}

HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_pd(a, b, c);
}

HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    (void)dtype;
    return _mm512_loadu_pd((const double *)data + index);
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    (void)dtype;
    _mm512_storeu_pd((double *)data + index, value);
}

HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    (void)dtype;
    return _mm512_maskz_loadu_pd(vec_mask(count), (const double *)data + index);
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    (void)dtype;
    _mm512_mask_storeu_pd((double *)data + index, vec_mask(count), value);
}

HONE_INLINE double vec_sum(vec a)
{
    return _mm512_reduce_add_pd(a);
}

// Exchanges pairs of rows, then their 128-bit lanes, of which each shuffle takes two from either operand.
HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    vec pairs[VEC_WIDTH], lanes[4];
    HONE_UNROLL
    for (int i = 0; i < 4; i++) {
        pairs[i] = _mm512_unpacklo_pd(rows[2 * i], rows[2 * i + 1]);
        pairs[4 + i] = _mm512_unpackhi_pd(rows[2 * i], rows[2 * i + 1]);
    }
    HONE_UNROLL
    for (int odd = 0; odd < 2; odd++) {
        const vec *of = pairs + 4 * odd;
        lanes[0] = _mm512_shuffle_f64x2(of[0], of[1], 0x88);
        lanes[1] = _mm512_shuffle_f64x2(of[0], of[1], 0xdd);
        lanes[2] = _mm512_shuffle_f64x2(of[2], of[3], 0x88);
        lanes[3] = _mm512_shuffle_f64x2(of[2], of[3], 0xdd);
        rows[odd] = _mm512_shuffle_f64x2(lanes[0], lanes[2], 0x88);
        rows[odd + 4] = _mm512_shuffle_f64x2(lanes[0], lanes[2], 0xdd);
        rows[odd + 2] = _mm512_shuffle_f64x2(lanes[1], lanes[3], 0x88);
        rows[odd + 6] = _mm512_shuffle_f64x2(lanes[1], lanes[3], 0xdd);
    }
}

#elif defined(__AVX2__)

#    include <immintrin.h>

typedef __m256d vec;

enum { VEC_WIDTH = 4 };

HONE_INLINE __m256i vec_mask(int64_t count)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}

HONE_INLINE vec vec_set(double value)
{
    return _mm256_set1_pd(value);
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return _mm256_add_pd(a, b);
}

HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_pd(a, b, c);
}

HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    (void)dtype;
    return _mm256_loadu_pd((const double *)data + index);
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    (void)dtype;
    _mm256_storeu_pd((double *)data + index, value);
}

HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    (void)dtype;
    return _mm256_maskload_pd((const double *)data + index, vec_mask(count));
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    (void)dtype;
    _mm256_maskstore_pd((double *)data + index, vec_mask(count), value);
}

HONE_INLINE double vec_sum(vec a)
{
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}

HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    vec even = _mm256_unpacklo_pd(rows[0], rows[1]), odd = _mm256_unpackhi_pd(rows[0], rows[1]);
    vec later_even = _mm256_unpacklo_pd(rows[2], rows[3]), later_odd = _mm256_unpackhi_pd(rows[2], rows[3]);
    rows[0] = _mm256_permute2f128_pd(even, later_even, 0x20);
    rows[1] = _mm256_permute2f128_pd(odd, later_odd, 0x20);
    rows[2] = _mm256_permute2f128_pd(even, later_even, 0x31);
    rows[3] = _mm256_permute2f128_pd(odd, later_odd, 0x31);
}

#else

typedef double vec __attribute__((vector_size(16)));

enum { VEC_WIDTH = 2 };

HONE_INLINE vec vec_set(double value)
{
    return (vec){value, value};
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return a + b;
}

// Rounds twice, since there may be no fused instruction.
HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return a * b + c;
}

HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    vec value;
    (void)dtype;
    memcpy(&value, (const double *)data + index, sizeof value);
    return value;
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    (void)dtype;
    memcpy((double *)data + index, &value, sizeof value);
}

HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    const double *from = (const double *)data + index;
    (void)dtype;
    return (vec){count > 0 ? from[0] : 0, count > 1 ? from[1] : 0};
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    double *to = (double *)data + index;
    (void)dtype;
    if (count > 0) to[0] = value[0];
    if (count > 1) to[1] = value[1];
}

HONE_INLINE double vec_sum(vec a)
{
    return a[0] + a[1];
}

HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    const vec first = rows[0], second = rows[1];
    rows[0] = (vec){first[0], second[0]};
    rows[1] = (vec){first[1], second[1]};
}

#endif

#endif
