// Normalises an element by the root mean square of its row: x * first * then. Two factors keep each one in the range of
// floats.
struct norm_factor {
    float first, then;
};

template <class Values> __device__ float squares_of_row(int count, range r, int *turn, Values values)
{
    float sum = 0;
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot);
#pragma unroll
        for (int i = 0; i < vector; i++) {
            const float value = in_range(r, widen(own.at[i]));
            sum += value * value;
        }
    });
    return over_row<sum_of>(sum, turn);
}

template <class Values> __device__ norm_factor norm_of_row(int count, int dim, double eps, Values values)
{
    int turn = 0;
    const float square = squares_of_row(count, whole_range(), &turn, values) / dim + (float)eps;
    if (!for_row(leaves_range(square))) return norm_factor{1, rsqrtf(square)};
    const range r = range_of(most_of_row(count, &turn, values));
    return norm_factor{r.first, r.then * factor_of(r, squares_of_row(count, r, &turn, values) / dim, eps)};
}

__device__ pack normalised(const pack &values, const pack &weight, norm_factor factor)
{
    pack out;
#pragma unroll
    for (int i = 0; i < vector; i++)
        narrow(widen(values.at[i]) * factor.first * factor.then * widen(weight.at[i]), &out.at[i]);
    return out;
}
