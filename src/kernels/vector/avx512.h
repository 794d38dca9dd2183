// Sixteen floats as `vec`: the vectors of the row and attention kernels. For files compiled with AVX-512 F, BW, VL and
// DQ. avx2.h and portable.h provide the same functions.
#ifndef HONE_KERNELS_VECTOR_H
#define HONE_KERNELS_VECTOR_H

#include "kernels/common/simd_avx512.h"
#include "kernels/common/unroll.h"

typedef __m512 vec;

// VEC_TILE: rows of a register tile whose columns are up to three vectors. VEC_LOWEST: 2 to this power and below is
// computed as 0.
enum { VEC_WIDTH = 16, VEC_TILE = 8, VEC_LOWEST = -160, VEC_STREAMS = 1 };

HONE_INLINE vec vec_set(float value)
{
    return _mm512_set1_ps(value);
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

HONE_INLINE vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

HONE_INLINE vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

HONE_INLINE vec vec_div(vec a, vec b)
{
    return _mm512_div_ps(a, b);
}

// a * b + c
HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

// The larger; b if either is NaN.
HONE_INLINE vec vec_max(vec a, vec b)
{
    return _mm512_max_ps(a, b);
}

// The smaller; b if either is NaN.
HONE_INLINE vec vec_min(vec a, vec b)
{
    return _mm512_min_ps(a, b);
}

// To the nearest integer.
HONE_INLINE vec vec_round(vec a)
{
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

// a * 2^n for an integer n from VEC_LOWEST to 127.
HONE_INLINE vec vec_scale(vec a, vec n)
{
    return _mm512_scalef_ps(a, n);
}

// a where low <= x and x <= high, else b.
HONE_INLINE vec vec_within(vec low, vec x, vec high, vec a, vec b)
{
    __mmask16 mask = _mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(low, x, _CMP_LE_OQ), x, high, _CMP_LE_OQ);
    return _mm512_mask_blend_ps(mask, b, a);
}

// The first count lanes of a, the others of b.
HONE_INLINE vec vec_first(int64_t count, vec a, vec b)
{
    return _mm512_mask_blend_ps(hone_mask16(count), b, a);
}

// dtype is a constant at every call of the loads and stores, so only one branch remains.
HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    if (dtype == HONE_F32) return _mm512_loadu_ps((const float *)data + index);
    return hone_widen16(_mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)data + index)), dtype);
}

// Two vectors of elements in any order, which is enough for sums: bf16 need not be reordered.
HONE_INLINE void vec_load_two(const void *data, hone_dtype_id dtype, int64_t index, vec out[2])
{
    if (dtype == HONE_BF16) {
        const __m512i both = _mm512_loadu_si512((const uint16_t *)data + index);
        out[0] = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
        out[1] = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32((int)0xffff0000)));
    } else {
        out[0] = vec_load(data, dtype, index);
        out[1] = vec_load(data, dtype, index + VEC_WIDTH);
    }
}

// Floats in the order in which vec_load_two returns elements of a dtype.
HONE_INLINE void vec_floats_of_two(const float *from, hone_dtype_id dtype, int64_t index, vec out[2])
{
    static const int32_t places[32] = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30,
                                       1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31};
    const __m512 low = _mm512_loadu_ps(from + index), high = _mm512_loadu_ps(from + index + VEC_WIDTH);
    out[0] = dtype == HONE_BF16 ? _mm512_permutex2var_ps(low, _mm512_loadu_si512(places), high) : low;
    out[1] = dtype == HONE_BF16 ? _mm512_permutex2var_ps(low, _mm512_loadu_si512(places + 16), high) : high;
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    if (dtype == HONE_F32)
        _mm512_storeu_ps((float *)data + index, value);
    else
        _mm256_storeu_si256((__m256i *)(void *)((uint16_t *)data + index), hone_narrow16(value, dtype));
}

// Stores two vectors in the order in which vec_load_two returned them.
HONE_INLINE void vec_store_two(void *data, hone_dtype_id dtype, int64_t index, const vec two[2])
{
    if (dtype == HONE_BF16) {
        const __m512i low = _mm512_srli_epi32(hone_round16(two[0]), 16), high = hone_round16(two[1]);
        _mm512_storeu_si512((uint16_t *)data + index, _mm512_mask_blend_epi16(0xaaaaaaaa, low, high));
    } else {
        vec_store(data, dtype, index, two[0]);
        vec_store(data, dtype, index + VEC_WIDTH, two[1]);
    }
}

// Stores past the caches. The address is a multiple of VEC_WIDTH elements.
HONE_INLINE void vec_stream(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    if (dtype == HONE_F32)
        _mm512_stream_ps((float *)data + index, value);
    else
        _mm256_stream_si256((__m256i *)(void *)((uint16_t *)data + index), hone_narrow16(value, dtype));
}

// Orders streamed stores before what follows.
HONE_INLINE void vec_stream_end(void)
{
    _mm_sfence();
}

// The first count elements (all, if there are more than lanes), 0 in the other lanes; reads no memory after them.
HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    return hone_load16(data, dtype, index, hone_mask16(count));
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    hone_store16(data, dtype, index, hone_mask16(count), value);
}

HONE_INLINE float vec_sum(vec a)
{
    return _mm512_reduce_add_ps(a);
}

HONE_INLINE float vec_highest(vec a)
{
    return _mm512_reduce_max_ps(a);
}

// rows[i] lane j becomes rows[j] lane i.
HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    vec half[VEC_WIDTH];
    HONE_UNROLL
    for (int i = 0; i < 16; i += 2) {
        half[i] = _mm512_unpacklo_ps(rows[i], rows[i + 1]);
        half[i + 1] = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
    }
    HONE_UNROLL
    for (int i = 0; i < 16; i += 4) {
        rows[i] = _mm512_shuffle_ps(half[i], half[i + 2], 0x44);
        rows[i + 1] = _mm512_shuffle_ps(half[i], half[i + 2], 0xee);
        rows[i + 2] = _mm512_shuffle_ps(half[i + 1], half[i + 3], 0x44);
        rows[i + 3] = _mm512_shuffle_ps(half[i + 1], half[i + 3], 0xee);
    }
    HONE_UNROLL
    for (int i = 0; i < 4; i++) {
        half[i] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0x88);
        half[i + 4] = _mm512_shuffle_f32x4(rows[i], rows[i + 4], 0xdd);
        half[i + 8] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0x88);
        half[i + 12] = _mm512_shuffle_f32x4(rows[i + 8], rows[i + 12], 0xdd);
    }
    HONE_UNROLL
    for (int i = 0; i < 8; i++) {
        rows[i] = _mm512_shuffle_f32x4(half[i], half[i + 8], 0x88);
        rows[i + 8] = _mm512_shuffle_f32x4(half[i], half[i + 8], 0xdd);
    }
}

// Lane i is the sum of rows[i]: halves are added as they are shuffled together, which takes half as many steps as a
// transposition. Destroys rows.
HONE_INLINE vec vec_sums(vec rows[VEC_WIDTH])
{
    HONE_UNROLL
    for (int i = 0; i < 8; i++)
        rows[i] = _mm512_add_ps(
            _mm512_unpacklo_ps(rows[2 * i], rows[2 * i + 1]), _mm512_unpackhi_ps(rows[2 * i], rows[2 * i + 1]));
    HONE_UNROLL
    for (int i = 0; i < 4; i++)
        rows[i] = _mm512_add_ps(
            _mm512_shuffle_ps(rows[2 * i], rows[2 * i + 1], 0x44),
            _mm512_shuffle_ps(rows[2 * i], rows[2 * i + 1], 0xee));
    HONE_UNROLL
    for (int i = 0; i < 2; i++)
        rows[i] = _mm512_add_ps(
            _mm512_shuffle_f32x4(rows[2 * i], rows[2 * i + 1], 0x88),
            _mm512_shuffle_f32x4(rows[2 * i], rows[2 * i + 1], 0xdd));
    return _mm512_add_ps(_mm512_shuffle_f32x4(rows[0], rows[1], 0x88), _mm512_shuffle_f32x4(rows[0], rows[1], 0xdd));
}

#include "kernels/vector/exponential.h"

#endif
