// c = a b, summed in float. Each work-item has a tile of c. Each work-group has tiles of a and b in local memory and
// steps along k.
enum { columns_of_items = tile_n / item_n, items = (tile_m / item_m) * columns_of_items };

float b_at(const __global element *b, int i, int j, int n, int k)
{
    return TRANSPOSE_B ? widen(b + (long)j * k + i) : widen(b + (long)i * n + j);
}

__kernel void matmul(
    const __global element *a, const __global element *b, __global element *c, int m, int n, int k)
{
    // Rows have one element of padding, because columns are read and must not lie in one bank.
    __local float left[tile_k][tile_m + 1], right[tile_k][tile_n + 1];
    const int item = get_local_id(0), row = (int)get_group_id(1) * tile_m, column = (int)get_group_id(0) * tile_n;
    const int my_row = item / columns_of_items * item_m, my_column = item % columns_of_items * item_n;
    float sum[item_m][item_n];
    for (int i = 0; i < item_m; i++)
        for (int j = 0; j < item_n; j++)
            sum[i][j] = 0;
    for (int from = 0; from < k; from += tile_k) {
        for (int i = item; i < tile_m * tile_k; i += items) {
            const int at = row + i / tile_k, depth = from + i % tile_k;
            left[i % tile_k][i / tile_k] = at < m && depth < k ? widen(a + (long)at * k + depth) : 0;
        }
        for (int i = item; i < tile_n * tile_k; i += items) {
            const int x = TRANSPOSE_B ? i / tile_k : i % tile_n, y = TRANSPOSE_B ? i % tile_k : i / tile_n;
            const int at = column + x, depth = from + y;
            right[y][x] = at < n && depth < k ? b_at(b, depth, at, n, k) : 0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int depth = 0; depth < tile_k; depth++)
            for (int i = 0; i < item_m; i++)
                for (int j = 0; j < item_n; j++)
                    sum[i][j] += left[depth][my_row + i] * right[depth][my_column + j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < item_m; i++)
        for (int j = 0; j < item_n; j++) {
            const int at = row + my_row + i, to = column + my_column + j;
            if (at < m && to < n) narrow(sum[i][j], c + (long)at * n + to);
        }
}
