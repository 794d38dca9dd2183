// y = exp(scale (x - m)) / sum(exp(scale (x - m))), row by row, in float, where scale m is the largest scale x.
//
// Powers of 2 of t = (u / 2 - m / 2) * factor, where u is x with the sign of scale, m is the largest u and factor is
// 2 |scale| log2 e. The values are halved because the difference of two halves never leaves the range of floats.
__device__ float power(float u, float most, float factor)
{
    float value;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"((0.5f * u - 0.5f * most) * factor));
    return value;
}

// Adds one element to a sum of powers relative to `most`. `most` stays minus infinity if all elements are minus
// infinity.
__device__ void take(float u, float *most, float *sum, float factor)
{
    if (u > *most) {
        *sum = *sum == 0 ? 0 : *sum * power(*most, u, factor);
        *most = u;
    }
    *sum += power(u, *most == -INFINITE ? 0 : *most, factor);
}

extern "C" __global__ void __launch_bounds__(threads_per_row * rows_per_block) softmax(const element *x, element *y, long long rows, int dim, double scale)
{
    const long long row = row_of_block();
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(x + row * dim);
    pack *to = reinterpret_cast<pack *>(y + row * dim);
    const float sign = scale < 0 ? -1 : 1, factor = (float)(2.8853900817779268 * fabs(scale));
    float most = -INFINITE, sum = 0;
    int turn = 0;
    enter_cluster();
#if keep > 0
    float held[keep][vector];
    each_pack(count, [&](int at, int slot) {
        const pack values = from[at];
#pragma unroll
        for (int i = 0; i < vector; i++)
            held[slot][i] = sign * widen(values.at[i]);
    });
    each_pack(count, [&](int, int slot) {
#pragma unroll
        for (int i = 0; i < vector; i++)
            most = fmaxf(most, held[slot][i]);
    });
    wait_for_cluster();
    most = over_row<most_of>(most, &turn);
    each_pack(count, [&](int, int slot) {
#pragma unroll
        for (int i = 0; i < vector; i++) {
            held[slot][i] = power(held[slot][i], most, factor);
            sum += held[slot][i];
        }
    });
#else
    each_pack(count, [&](int at, int) {
        const pack values = from[at];
#pragma unroll
        for (int i = 0; i < vector; i++)
            take(sign * widen(values.at[i]), &most, &sum, factor);
    });
    wait_for_cluster();
    const float own = most;
    most = over_row<most_of>(most, &turn);
    if (sum != 0 && own > -INFINITE) sum *= power(own, most, factor);
#endif
    const float share = 1 / over_row<sum_of>(sum, &turn);
    each_pack(count, [&](int at, int slot) {
        pack out;
#if keep > 0
#pragma unroll
        for (int i = 0; i < vector; i++)
            narrow(held[slot][i] * share, &out.at[i]);
#else
        const pack values = from[at];
#pragma unroll
        for (int i = 0; i < vector; i++)
            narrow(power(sign * widen(values.at[i]), most, factor) * share, &out.at[i]);
#endif
        to[at] = out;
    });
}
