// sum = x + residual, y = sum / sqrt(mean(sum^2) + eps) * weight, row by row.
// y is computed from the stored sum, which is rounded to its dtype.
__device__ pack added(const pack &a, const pack &b)
{
    pack out;
#pragma unroll
    for (int i = 0; i < vector; i++)
        narrow(widen(a.at[i]) + widen(b.at[i]), &out.at[i]);
    return out;
}

extern "C" __global__ void __launch_bounds__(threads_per_row * rows_per_block) add_rms_norm(
    const element *x,
    const element *residual,
    const element *weight,
    element *sum,
    element *y,
    long long rows,
    int dim,
    double eps)
{
    const long long row = row_of_block();
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(x + row * dim);
    const pack *other = reinterpret_cast<const pack *>(residual + row * dim);
    const pack *scale = reinterpret_cast<const pack *>(weight);
    pack *sums = reinterpret_cast<pack *>(sum + row * dim);
    pack *to = reinterpret_cast<pack *>(y + row * dim);
    enter_cluster();
#if keep > 0
    pack held[keep], second[keep];
    each_pack(count, [&](int at, int slot) {
        held[slot] = from[at];
        second[slot] = other[at];
    });
    each_pack(count, [&](int at, int slot) {
        held[slot] = added(held[slot], second[slot]);
        sums[at] = held[slot];
    });
    const auto values = [&](int, int slot) { return held[slot]; };
#else
    each_pack(count, [&](int at, int) { sums[at] = added(from[at], other[at]); });
    const auto values = [&](int at, int) { return sums[at]; };
#endif
    wait_for_cluster();
    const norm_factor factor = norm_of_row(count, dim, eps, values);
    each_pack(count, [&](int at, int slot) { to[at] = normalised(values(at, slot), scale[at], factor); });
}
