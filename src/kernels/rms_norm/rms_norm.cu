// y = x / sqrt(mean(x^2) + eps) * weight, row by row, in float.
extern "C" __global__ void __launch_bounds__(threads_per_row * rows_per_block) rms_norm(
    const element *x, const element *weight, element *y, int rows, int dim, float eps)
{
    const long long row = row_of_block();
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(x + row * dim);
    const pack *scale = reinterpret_cast<const pack *>(weight);
    pack *to = reinterpret_cast<pack *>(y + row * dim);
    enter_cluster();
#if keep > 0
    pack held[keep];
    each_pack(count, [&](int at, int slot) { held[slot] = from[at]; });
    const auto values = [&](int, int slot) { return held[slot]; };
#else
    const auto values = [&](int at, int) { return from[at]; };
#endif
    wait_for_cluster();
    const norm_factor factor = norm_of_row(count, dim, eps, values);
    each_pack(count, [&](int at, int slot) { to[at] = normalised(values(at, slot), scale[at], factor); });
}
