// y = (x - mean) / sqrt(variance + eps) * (weight + weight_offset) + bias, row by row, in float. Without SUBTRACT_MEAN the
// mean counts as 0.
#if defined(hone_weight_f32)
typedef float weight_element;
#elif defined(hone_weight_f16)
typedef f16 weight_element;
#else
typedef bf16 weight_element;
#endif
#if defined(hone_bias_f32)
typedef float bias_element;
#elif defined(hone_bias_f16)
typedef f16 bias_element;
#else
typedef bf16 bias_element;
#endif
typedef pack_of<weight_element, vector> weight_pack;
typedef pack_of<bias_element, vector> bias_pack;

// The range and pivot of a row, the mean of its elements minus the pivot, and the mean square around that mean.
struct spread {
    range r;
    float pivot, mean, square;
};

// The pivot is an element, so that equal elements have a variance of 0, and a common offset costs no precision.
template <class Values>
__device__ spread spread_of_row(int count, int dim, range r, float pivot, int *turn, Values values)
{
    float sum = 0, squares = 0;
    pivot = in_range(r, pivot);
#if SUBTRACT_MEAN
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot);
#pragma unroll
        for (int i = 0; i < vector; i++)
            sum += in_range(r, widen(own.at[i])) - pivot;
    });
    sum = over_row<sum_of>(sum, turn);
#endif
    const float mean = sum / dim;
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot);
#pragma unroll
        for (int i = 0; i < vector; i++) {
            const float away = in_range(r, widen(own.at[i])) - pivot - mean;
            squares += away * away;
        }
    });
    return spread{r, pivot, mean, over_row<sum_of>(squares, turn) / dim};
}

extern "C" __global__ void __launch_bounds__(threads_per_row * rows_per_block) layer_norm(
    const element *x,
    const weight_element *weight,
    const bias_element *bias,
    element *y,
    long long rows,
    int dim,
    double eps,
    double weight_offset)
{
    const long long row = row_of_block();
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(x + row * dim);
    const weight_pack *scale = reinterpret_cast<const weight_pack *>(weight);
    const bias_pack *shift = reinterpret_cast<const bias_pack *>(bias);
    const float offset = (float)weight_offset;
    pack *to = reinterpret_cast<pack *>(y + row * dim);
    const float pivot = SUBTRACT_MEAN && row < rows && dim > 0 ? widen(x[row * dim]) : 0;
    enter_cluster();
#if keep > 0
    pack held[keep];
    each_pack(count, [&](int at, int slot) { held[slot] = from[at]; });
    const auto values = [&](int, int slot) { return held[slot]; };
#else
    const auto values = [&](int at, int) { return from[at]; };
#endif
    wait_for_cluster();
    int turn = 0;
    spread s = spread_of_row(count, dim, whole_range(), pivot, &turn, values);
    float factor = rsqrtf(s.square + (float)eps);
    if (for_row(leaves_range(s.square + (float)eps) || !(fabsf(s.mean) <= MOST))) {
        const range r = range_of(most_of_row(count, &turn, values));
        s = spread_of_row(count, dim, r, pivot, &turn, values);
        factor = factor_of(s.r, s.square, eps);
    }
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot);
        weight_pack scales;
        bias_pack shifts;
        pack out;
        if (weight != nullptr) scales = scale[at];
        if (bias != nullptr) shifts = shift[at];
#pragma unroll
        for (int i = 0; i < vector; i++) {
            float value = (in_range(s.r, widen(own.at[i])) - s.pivot - s.mean) * factor;
            if (weight != nullptr) value *= widen(scales.at[i]) + offset;
            if (bias != nullptr) value += widen(shifts.at[i]);
            narrow(value, &out.at[i]);
        }
        to[at] = out;
    });
}
