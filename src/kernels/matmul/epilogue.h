// The epilogue of a product, over the including file's vectors: activation(sum + bias) + residual, in float, before the
// result is rounded to its dtype.
#ifndef HONE_KERNELS_MATMUL_EPILOGUE_H
#define HONE_KERNELS_MATMUL_EPILOGUE_H

#include "kernels/matmul/matmul.h"
#include "kernels/matmul/words.h"

#include <math.h>

// `positive` for the lanes that are at least 0, `negative` for the others, including NaN.
HONE_INLINE vec epilogue_by_sign(vec x, vec positive, vec negative)
{
    return vec_within(vec_set(0.0f), x, vec_set(INFINITY), positive, negative);
}

// x / (1 + e^-u). The exponent is never positive, so nothing overflows, and small results keep their precision.
HONE_INLINE vec epilogue_gated(vec x, vec u)
{
    const vec one = vec_set(1.0f), power = vec_exp(vec_min(u, vec_sub(vec_set(0.0f), u)));
    return vec_mul(x, vec_div(epilogue_by_sign(u, one, power), vec_add(one, power)));
}

// x (1 + tanh u) / 2 = x / (1 + e^-2u) with u = sqrt(2 / pi) (x + 0.044715 x^3).
HONE_INLINE vec epilogue_gelu_tanh(vec x)
{
    const vec cube = vec_mul(vec_mul(x, x), vec_mul(x, vec_set(0.044715f)));
    return epilogue_gated(x, vec_mul(vec_set(1.59576912f), vec_add(x, cube)));
}

// x Phi(x), with Phi(-|x|) = erfc(z) / 2, z = |x| / sqrt(2). erfc(z) = e^(-z^2) t p(t) with t = 1 / (1 + 0.3 z): p is a
// polynomial whose largest relative error for z <= 10 is near the least that its degree allows (weighted least squares
// over 600 Chebyshev points, weights by Lawson's rule): 2.0e-8. Beyond, e^(-z^2) is 0 in float.
HONE_INLINE vec epilogue_gelu_erf(vec x)
{
    const vec one = vec_set(1.0f), size = vec_max(x, vec_sub(vec_set(0.0f), x));
    const vec t = vec_div(one, vec_fma(size, vec_set(0.212132034f), one));
    vec p = vec_set(-0x1.0943c4p-3f);
    p = vec_fma(p, t, vec_set(0x1.f138a8p-2f));
    p = vec_fma(p, t, vec_set(-0x1.064a94p-1f));
    p = vec_fma(p, t, vec_set(0x1.187048p-1f));
    p = vec_fma(p, t, vec_set(-0x1.83b956p-4f));
    p = vec_fma(p, t, vec_set(0x1.b82d28p-3f));
    p = vec_fma(p, t, vec_set(0x1.2fcbe6p-3f));
    p = vec_fma(p, t, vec_set(0x1.5da006p-3f));
    p = vec_fma(p, t, vec_set(0x1.5a7f3cp-3f));
    const vec power = vec_exp(vec_mul(vec_set(-0.5f), vec_mul(x, x)));
    const vec below = vec_mul(vec_mul(vec_set(0.5f), power), vec_mul(t, p));
    return vec_mul(x, epilogue_by_sign(x, vec_sub(one, below), below));
}

HONE_INLINE vec epilogue_activate(hone_matmul_activation activation, vec x)
{
    switch (activation) {
    case MATMUL_RELU:
        return vec_max(vec_set(0.0f), x); // NaN stays NaN
    case MATMUL_GELU_TANH:
        return epilogue_gelu_tanh(x);
    case MATMUL_GELU_ERF:
        return epilogue_gelu_erf(x);
    case MATMUL_SILU:
        return epilogue_gated(x, x);
    default:
        return x;
    }
}

HONE_INLINE void epilogue_row(
    const hone_matmul *product,
    float *sums,
    int64_t row,
    int64_t column,
    int64_t count,
    hone_dtype_id dtype,
    hone_matmul_activation activation)
{
    const int64_t added = row * product->residual_stride + column;
    for (int64_t i = 0; i < count; i += VEC_WIDTH) {
        vec x = load_left(sums, HONE_F32, i, count - i);
        if (product->has_bias) x = vec_add(x, load_left(product->bias, dtype, column + i, count - i));
        x = epilogue_activate(activation, x);
        if (product->has_residual) x = vec_add(x, load_left(product->residual, dtype, added + i, count - i));
        store_left(sums, HONE_F32, i, count - i, x);
    }
}

HONE_INLINE void epilogue_of_dtype(
    const hone_matmul *product, float *sums, int64_t row, int64_t column, int64_t count, hone_dtype_id dtype)
{
    switch (product->activation) {
    case MATMUL_RELU:
        epilogue_row(product, sums, row, column, count, dtype, MATMUL_RELU);
        return;
    case MATMUL_GELU_TANH:
        epilogue_row(product, sums, row, column, count, dtype, MATMUL_GELU_TANH);
        return;
    case MATMUL_GELU_ERF:
        epilogue_row(product, sums, row, column, count, dtype, MATMUL_GELU_ERF);
        return;
    case MATMUL_SILU:
        epilogue_row(product, sums, row, column, count, dtype, MATMUL_SILU);
        return;
    default:
        epilogue_row(product, sums, row, column, count, dtype, MATMUL_NONE);
    }
}

HONE_INLINE void epilogue_any(const hone_matmul *product, void *sums, int64_t row, int64_t column, int64_t count)
{
    if (product->dtype == HONE_F32)
        epilogue_of_dtype(product, sums, row, column, count, HONE_F32);
    else if (product->dtype == HONE_BF16)
        epilogue_of_dtype(product, sums, row, column, count, HONE_BF16);
    else
        epilogue_of_dtype(product, sums, row, column, count, HONE_F16);
}

#endif
