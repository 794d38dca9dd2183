// d_x = scale y (d_y - sum(y d_y)), row by row, in float. In a short row a few large elements may cancel down to
// the rounding errors of float, so each thread sums the whole short row in double.
enum { SHORT_ROW = 16 };

__device__ double sum_in_double(const element *y, const element *d_y, int dim)
{
    double sum = 0;
    for (int i = 0; i < dim; i++)
        sum += (double)widen(y[i]) * (double)widen(d_y[i]);
    return sum;
}

extern "C" __global__ void __launch_bounds__(threads_per_row *rows_per_block)
    softmax_vjp(const element *y, const element *d_y, element *d_x, long long rows, int dim, double scale)
{
    const long long row = row_of_block();
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(y + row * dim);
    const pack *slopes = reinterpret_cast<const pack *>(d_y + row * dim);
    pack *to = reinterpret_cast<pack *>(d_x + row * dim);
    const float factor = (float)scale;
    float sum = 0;
    int turn = 0;
    enter_cluster();
#if keep > 0
    pack held[keep], second[keep];
    each_pack(count, [&](int at, int slot) {
        held[slot] = from[at];
        second[slot] = slopes[at];
    });
    const auto values = [&](int, int slot) { return held[slot]; };
    const auto gradients = [&](int, int slot) { return second[slot]; };
#else
    const auto values = [&](int at, int) { return from[at]; };
    const auto gradients = [&](int at, int) { return slopes[at]; };
#endif
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot), d = gradients(at, slot);
#pragma unroll
        for (int i = 0; i < vector; i++)
            sum += widen(own.at[i]) * widen(d.at[i]);
    });
    wait_for_cluster();
    sum = over_row<sum_of>(sum, &turn);
    const double wide = dim < SHORT_ROW && row < rows ? sum_in_double(y + row * dim, d_y + row * dim, dim) : 0;
    each_pack(count, [&](int at, int slot) {
        const pack own = values(at, slot), d = gradients(at, slot);
        pack out;
#pragma unroll
        for (int i = 0; i < vector; i++) {
            const float value = widen(own.at[i]), slope = widen(d.at[i]);
            narrow(
                dim < SHORT_ROW ? (float)(value * (slope - wide) * scale) : value * (slope - sum) * factor, &out.at[i]);
        }
        to[at] = out;
    });
}
