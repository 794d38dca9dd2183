// The 16-bit floats, one element at a time: conversion to them rounds to nearest even and keeps NaN. The vector forms
// are in simd_avx2.h and simd_avx512.h; these serve references, portable kernels and tails. Also conversion from the
// 8-bit floats.
#ifndef HONE_KERNELS_COMMON_HALF_H
#define HONE_KERNELS_COMMON_HALF_H

#include "hone/tensor.h"

#include <string.h>

static inline uint32_t hone_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float hone_float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float hone_float_of_bf16(uint16_t half)
{
    return hone_float_of_bits((uint32_t)half << 16);
}

static inline uint16_t hone_bf16_of_float(float value)
{
    uint32_t bits = hone_float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40); // quiet
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static inline float hone_float_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7fffu;
    if (rest >= 0x7c00u) // infinity, NaN
        return hone_float_of_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0));
    if (rest >= 0x400u) return hone_float_of_bits(sign | ((rest << 13) + 0x38000000u));
    float small = (float)rest * 0x1p-24f; // a subnormal is an exact float
    return sign ? -small : small;
}

// FP8 of the OCP: e5m2 is the upper half of an f16. e4m3fn has one exponent bit less than an f16, no infinity, and all
// ones for NaN.
static inline float hone_float_of_f8_e5m2(uint8_t byte)
{
    return hone_float_of_f16((uint16_t)(byte << 8));
}

static inline float hone_float_of_f8_e4m3fn(uint8_t byte)
{
    const uint32_t sign = (uint32_t)(byte & 0x80u) << 24, rest = byte & 0x7fu;
    if (rest == 0x7fu) return hone_float_of_bits(sign | 0x7fc00000u);
    if (rest >= 0x08u) return hone_float_of_bits(sign | ((rest << 20) + 0x3c000000u));
    const float small = (float)rest * 0x1p-9f;
    return sign ? -small : small;
}

// The addition rounds the significand's bits that are lost, since the last place of its result is the step of
// subnormals.
static inline uint16_t hone_f16_subnormal(uint32_t magnitude)
{
    float sum = hone_float_of_bits(magnitude) + 0.5f; // steps of 2^-24 in [0.5, 1)
    return (uint16_t)(hone_float_bits(sum) - 0x3f000000u);
}

static inline uint16_t hone_f16_of_float(float value)
{
    uint32_t bits = hone_float_bits(value), magnitude = bits & 0x7fffffffu;
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
    if (magnitude >= 0x477ff000u) // rounds to 65536 or more
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) return (uint16_t)(sign | hone_f16_subnormal(magnitude));
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1)) >> 13);
}

// Element `index` of an array of f32, f16 or bf16. With a constant dtype the branches are optimised away.
static inline float hone_element_get(const void *data, hone_dtype_id dtype, int64_t index)
{
    if (dtype == HONE_F32) return ((const float *)data)[index];
    uint16_t half = ((const uint16_t *)data)[index];
    return dtype == HONE_BF16 ? hone_float_of_bf16(half) : hone_float_of_f16(half);
}

static inline void hone_element_put(void *data, hone_dtype_id dtype, int64_t index, float value)
{
    if (dtype == HONE_F32)
        ((float *)data)[index] = value;
    else
        ((uint16_t *)data)[index] = dtype == HONE_BF16 ? hone_bf16_of_float(value) : hone_f16_of_float(value);
}

// The same, also for f64.
static inline double hone_element_get_double(const void *data, hone_dtype_id dtype, int64_t index)
{
    return dtype == HONE_F64 ? ((const double *)data)[index] : (double)hone_element_get(data, dtype, index);
}

static inline void hone_element_put_double(void *data, hone_dtype_id dtype, int64_t index, double value)
{
    if (dtype == HONE_F64)
        ((double *)data)[index] = value;
    else
        hone_element_put(data, dtype, index, (float)value);
}

// The size in bytes of one element: f64, f32, i8, or else 16 bits.
static inline int64_t hone_element_size(hone_dtype_id dtype)
{
    return dtype == HONE_F64 ? 8 : dtype == HONE_F32 ? 4 : dtype == HONE_I8 ? 1 : 2;
}

#endif
