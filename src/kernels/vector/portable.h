// Four floats as `vec`, in the vector extension that gcc and clang share, for any machine; avx512.h describes the
// functions.
#ifndef HONE_KERNELS_VECTOR_H
#define HONE_KERNELS_VECTOR_H

#include "kernels/common/half.h"
#include "kernels/common/unroll.h"

typedef float vec __attribute__((vector_size(16)));
typedef int32_t vec_bits __attribute__((vector_size(16)));
typedef uint32_t vec_words __attribute__((vector_size(16))); // bits that may wrap around, such as those of NaN
typedef uint16_t vec_halves __attribute__((vector_size(8)));

enum { VEC_WIDTH = 4, VEC_TILE = 4, VEC_LOWEST = -127, VEC_STREAMS = 0 };

HONE_INLINE vec vec_set(float value)
{
    return (vec){value, value, value, value};
}

HONE_INLINE vec vec_add(vec a, vec b)
{
    return a + b;
}

HONE_INLINE vec vec_sub(vec a, vec b)
{
    return a - b;
}

HONE_INLINE vec vec_mul(vec a, vec b)
{
    return a * b;
}

HONE_INLINE vec vec_div(vec a, vec b)
{
    return a / b;
}

// Rounds twice, since there may be no fused instruction.
HONE_INLINE vec vec_fma(vec a, vec b, vec c)
{
    return a * b + c;
}

// a where the mask is -1, b where it is 0.
HONE_INLINE vec vec_choose(vec_bits mask, vec a, vec b)
{
    return (vec)(((vec_bits)a & mask) | ((vec_bits)b & ~mask));
}

HONE_INLINE vec vec_max(vec a, vec b)
{
    return vec_choose(a > b, a, b);
}

HONE_INLINE vec vec_min(vec a, vec b)
{
    return vec_choose(a < b, a, b);
}

// Adding 1.5 * 2^23 leaves no bits for a fraction. |a| < 2^22.
HONE_INLINE vec vec_round(vec a)
{
    vec shift = vec_set(0x1.8p23f);
    return (a + shift) - shift;
}

// The exponent -127 is that of zero. A NaN in n means a NaN in a.
HONE_INLINE vec vec_scale(vec a, vec n)
{
    vec_words exponent = (vec_words)(n + vec_set(0x1.8p23f)) << 23;
    return a * (vec)(exponent + (127u << 23));
}

HONE_INLINE vec vec_within(vec low, vec x, vec high, vec a, vec b)
{
    return vec_choose((low <= x) & (x <= high), a, b);
}

HONE_INLINE vec vec_first(int64_t count, vec a, vec b)
{
    int32_t n = (int32_t)count;
    return vec_choose((vec_bits){0, 1, 2, 3} < (vec_bits){n, n, n, n}, a, b);
}

HONE_INLINE vec vec_load_elements(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    vec value = vec_set(0.0f);
    for (int64_t i = 0; i < count; i++)
        value[i] = hone_element_get(data, dtype, index + i);
    return value;
}

HONE_INLINE void vec_store_elements(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    for (int64_t i = 0; i < count; i++)
        hone_element_put(data, dtype, index + i, value[i]);
}

// Not inlined, since each element takes a dozen instructions and more.
HONE_OUTLINE vec vec_load_few_halves(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    return vec_load_elements(data, dtype, index, count);
}

HONE_OUTLINE void vec_store_few_halves(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    vec_store_elements(data, dtype, index, count, value);
}

// A 16 bit float's bits in each lane.
HONE_INLINE vec_bits vec_load_halves(const void *data, int64_t index)
{
    vec_halves halves;
    memcpy(&halves, (const uint16_t *)data + index, sizeof halves);
    return __builtin_convertvector(halves, vec_bits);
}

// The shifted bits of an f16 are the number divided by 2^112, for subnormals too.
HONE_INLINE vec vec_widen_f16(vec_bits half)
{
    vec_bits rest = (half & 0x7fff) << 13;
    vec_bits special = (rest >= (0x7c00 << 13)) & 0x7f800000;
    vec value = (vec)rest * vec_set(0x1p112f);
    return (vec)((vec_bits)value | special | (half & 0x8000) << 16);
}

HONE_INLINE vec vec_load(const void *data, hone_dtype_id dtype, int64_t index)
{
    if (dtype == HONE_BF16) return (vec)(vec_load_halves(data, index) << 16);
    if (dtype == HONE_F16) return vec_widen_f16(vec_load_halves(data, index));
    vec value;
    memcpy(&value, (const float *)data + index, sizeof value);
    return value;
}

// Rounds to nearest even; NaN stays NaN.
HONE_INLINE void vec_store_bf16(void *data, int64_t index, vec value)
{
    vec_words bits = (vec_words)value, nan = (vec_words)(value != value);
    vec_words rounded = bits + 0x7fff + (bits >> 16 & 1);
    vec_words kept = ((rounded & ~nan) | ((bits | 0x400000) & nan)) >> 16;
    vec_halves halves = __builtin_convertvector(kept, vec_halves);
    memcpy((uint16_t *)data + index, &halves, sizeof halves);
}

// hone_f16_of_float in each lane.
HONE_INLINE void vec_store_f16(void *data, int64_t index, vec value)
{
    const vec_words bits = (vec_words)value, size = bits & 0x7fffffff;
    const vec_words nan = (vec_words)(value != value), far = (vec_words)((vec_bits)size >= 0x477ff000),
                    near = (vec_words)((vec_bits)size < 0x38800000);
    const vec_words steps = (vec_words)((vec)size + vec_set(0.5f)) - 0x3f000000; // of a subnormal
    vec_words half = (steps & near) | (((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13) & ~near);
    half = (far & 0x7c00) | (half & ~far);
    half |= nan & (0x200 | (size >> 13 & 0x3ff));
    const vec_halves halves = __builtin_convertvector(half | (bits >> 16 & 0x8000), vec_halves);
    memcpy((uint16_t *)data + index, &halves, sizeof halves);
}

HONE_INLINE void vec_load_two(const void *data, hone_dtype_id dtype, int64_t index, vec out[2])
{
    out[0] = vec_load(data, dtype, index);
    out[1] = vec_load(data, dtype, index + VEC_WIDTH);
}

HONE_INLINE void vec_store(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    if (dtype == HONE_F32)
        memcpy((float *)data + index, &value, sizeof value);
    else if (dtype == HONE_BF16)
        vec_store_bf16(data, index, value);
    else
        vec_store_f16(data, index, value);
}

// The first `count` elements, or all.
HONE_INLINE vec vec_load_part(const void *data, hone_dtype_id dtype, int64_t index, int64_t count)
{
    if (count >= VEC_WIDTH) return vec_load(data, dtype, index);
    if (dtype == HONE_F32) return vec_load_elements(data, HONE_F32, index, count);
    return vec_load_few_halves(data, dtype, index, count);
}

HONE_INLINE void vec_store_part(void *data, hone_dtype_id dtype, int64_t index, int64_t count, vec value)
{
    if (count >= VEC_WIDTH)
        vec_store(data, dtype, index, value);
    else if (dtype == HONE_F32)
        vec_store_elements(data, HONE_F32, index, count, value);
    else
        vec_store_few_halves(data, dtype, index, count, value);
}

HONE_INLINE void vec_floats_of_two(const float *from, hone_dtype_id dtype, int64_t index, vec out[2])
{
    (void)dtype;
    vec_load_two(from, HONE_F32, index, out);
}

HONE_INLINE void vec_store_two(void *data, hone_dtype_id dtype, int64_t index, const vec two[2])
{
    vec_store(data, dtype, index, two[0]);
    vec_store(data, dtype, index + VEC_WIDTH, two[1]);
}

// No store past the caches exists on every machine.
HONE_INLINE void vec_stream(void *data, hone_dtype_id dtype, int64_t index, vec value)
{
    vec_store(data, dtype, index, value);
}

HONE_INLINE void vec_stream_end(void)
{
}

HONE_INLINE float vec_sum(vec a)
{
    return (a[0] + a[2]) + (a[1] + a[3]);
}

HONE_INLINE float vec_highest(vec a)
{
    float low = a[0] > a[1] ? a[0] : a[1], high = a[2] > a[3] ? a[2] : a[3];
    return low > high ? low : high;
}

HONE_INLINE void vec_transpose(vec rows[VEC_WIDTH])
{
    vec columns[VEC_WIDTH];
    HONE_UNROLL
    for (int i = 0; i < 4; i++)
        columns[i] = (vec){rows[0][i], rows[1][i], rows[2][i], rows[3][i]};
    HONE_UNROLL
    for (int i = 0; i < 4; i++)
        rows[i] = columns[i];
}

HONE_INLINE vec vec_sums(vec rows[VEC_WIDTH])
{
    vec_transpose(rows);
    return (rows[0] + rows[2]) + (rows[1] + rows[3]);
}

#include "kernels/vector/exponential.h"

#endif
