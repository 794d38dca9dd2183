// 2^x and tanh over the including file's vectors.
//
// 2^x = 2^n * 2^r with n the nearest integer and r in [-1/2, 1/2]; 2^r - 1 is a polynomial without a constant term. Its
// coefficients minimise the largest relative error of 2^r (a linear program over 2001 Chebyshev points): 2.0e-9, so
// that what is left is rounding. Against double: vec_exp2 1.2 ulp, vec_exp 1.5 ulp, vec_tanh 3.7 ulp;
// tests/unit/kernels_norm holds them to 1.3, 1.6 and 4.

// 2^r - 1 for |r| <= 1/2.
HONE_INLINE vec vec_exp2_minus_one(vec r)
{
    vec p = vec_set(0x1.41ff7cp-13f);
    p = vec_fma(p, r, vec_set(0x1.5f3f5cp-10f));
    p = vec_fma(p, r, vec_set(0x1.3b2d48p-7f));
    p = vec_fma(p, r, vec_set(0x1.c6aee6p-5f));
    p = vec_fma(p, r, vec_set(0x1.ebfbdcp-3f));
    p = vec_fma(p, r, vec_set(0x1.62e430p-1f));
    return vec_mul(p, r);
}

// 2^x for x below 128; 0 from VEC_LOWEST down, including minus infinity; NaN stays NaN.
HONE_INLINE vec vec_exp2(vec x)
{
    x = vec_max(vec_set((float)VEC_LOWEST), x);
    vec n = vec_round(x);
    return vec_scale(vec_add(vec_exp2_minus_one(vec_sub(x, n)), vec_set(1.0f)), n);
}

// e^x for x <= 0. ln 2 is split into two parts, the first with so few bits that its product with n is exact.
HONE_INLINE vec vec_exp(vec x)
{
    x = vec_max(vec_set((float)VEC_LOWEST * 0.693147f), x);
    vec n = vec_round(vec_mul(x, vec_set(0x1.715476p0f)));
    vec rest = vec_fma(n, vec_set(-0x1.62ep-1f), x);
    rest = vec_fma(n, vec_set(-0x1.0bfbe8p-15f), rest);
    vec r = vec_mul(rest, vec_set(0x1.715476p0f));
    return vec_scale(vec_add(vec_exp2_minus_one(r), vec_set(1.0f)), n);
}

// tanh x = t / (t + 2) with t = e^(2x) - 1, which keeps its precision for small x.
HONE_INLINE vec vec_tanh(vec x)
{
    vec y = vec_mul(x, vec_set(0x1.715476p1f));
    y = vec_max(vec_set(-30.0f), vec_min(vec_set(30.0f), y)); // beyond this, tanh is 1 in float
    vec n = vec_round(y);
    vec power = vec_scale(vec_set(1.0f), n);
    vec t = vec_fma(power, vec_exp2_minus_one(vec_sub(y, n)), vec_sub(power, vec_set(1.0f)));
    return vec_div(t, vec_add(t, vec_set(2.0f)));
}
