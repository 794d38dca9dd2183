// A row whose squares leave the range of floats is divided by a power of two near its largest element. The division
// uses two factors, because the inverse of that power may not be a float. Other rows are divided by 1.
struct range {
    float first, then;
    int exponent;
};

__device__ range whole_range()
{
    return range{1, 1, 0};
}

__device__ float power_of_two(int exponent)
{
    return __int_as_float((exponent + 127) << 23);
}

// The range of a row with the largest magnitude `most`, which may be 0 or infinite.
__device__ range range_of(float most)
{
    if (!(most > 0 && most <= MOST)) return whole_range();
    const int exponent = most < 0x1p-126f ? ilogbf(most * 0x1p64f) - 64 : ilogbf(most);
    const int half = exponent / 2;
    return range{power_of_two(-half), power_of_two(half - exponent), exponent};
}

__device__ float in_range(range r, float value)
{
    return value * r.first * r.then;
}

// Below 2^-80, squares of elements may have underflowed. Returns false for NaN.
__device__ bool leaves_range(float square)
{
    return square < 0x1p-80f || square > MOST;
}

// 1 / sqrt(square + eps) of a row that is divided by its range. eps is divided as the squares are. A result over the
// largest float occurs only when all elements are 0; it is limited to a finite value, so that they stay 0.
__device__ float factor_of(range r, float square, double eps)
{
    const double factor = rsqrt((double)square + ldexp(eps, -2 * r.exponent));
    return factor > MOST && eps > 0 ? MOST : (float)factor;
}

// The largest magnitude in a row, ignoring NaN.
template <class Values> __device__ float most_of_row(int count, int *turn, Values values)
{
    float most = 0;
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot);
#pragma unroll
        for (int i = 0; i < vector; i++)
            most = fmaxf(most, fabsf(widen(own.at[i])));
    });
    return over_row<most_of>(most, turn);
}
