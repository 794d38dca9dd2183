// y = x / sqrt(mean(x^2) + eps) * weight, row by row, in float. `items` work-items share a row, `vector` elements at a time.
__kernel void rms_norm(
    const __global element *x, const __global element *weight, __global element *y, int rows, int dim, float eps)
{
    __local float parts[rows_per_group][items];
    const int item = get_local_id(0), lane = get_local_id(1);
    const long row = (long)get_group_id(0) * rows_per_group + lane;
    const int count = row < rows ? dim : 0;
    const __global element *from = x + row * dim;
    float sum = 0;
    for (int at = item * vector; at < count; at += items * vector)
        for (int i = 0; i < vector; i++) {
            const float value = widen(from + at + i);
            sum += value * value;
        }
    parts[lane][item] = sum;
    for (int reach = items / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (item < reach) parts[lane][item] += parts[lane][item + reach];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const float factor = 1 / sqrt(parts[lane][0] / dim + eps);
    for (int at = item * vector; at < count; at += items * vector)
        for (int i = 0; i < vector; i++)
            narrow(widen(from + at + i) * factor * widen(weight + at + i), y + row * dim + at + i);
}
