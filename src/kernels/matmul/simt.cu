// A product (common/operands.cuh) without tensor cores. Each thread has a tile of c in registers. Each block has tiles
// of a and b in shared memory and steps along k.
enum { threads = (block_m / thread_m) * (block_n / thread_n) };

__device__ total b_at(const element *b, int i, int j, int n, int k)
{
    return widen(TRANSPOSE_B ? b[(long long)j * k + i] : b[(long long)i * n + j]);
}

extern "C" __global__ void __launch_bounds__(threads)
    matmul(const element *a, const element *b, SCALES result *c, int m, int n, int k)
{
    // Rows have one element of padding, because columns are read and must not lie in one bank.
    __shared__ total rows[block_k][block_m + 4], columns[block_k][block_n + 4];
    const int row = blockIdx.y * block_m, column = blockIdx.x * block_n;
    const int my_row = threadIdx.x / (block_n / thread_n), my_column = threadIdx.x % (block_n / thread_n);
    total sum[thread_m][thread_n] = {};
    for (int from = 0; from < k; from += block_k) {
        for (int i = threadIdx.x; i < block_m * block_k; i += threads) {
            const int at = row + i / block_k, depth = from + i % block_k;
            rows[i % block_k][i / block_k] = at < m && depth < k ? widen(a[(long long)at * k + depth]) : 0;
        }
        for (int i = threadIdx.x; i < block_n * block_k; i += threads) {
            const int x = TRANSPOSE_B ? i / block_k : i % block_n, y = TRANSPOSE_B ? i % block_k : i / block_n;
            const int at = column + x, depth = from + y;
            columns[y][x] = at < n && depth < k ? b_at(b, depth, at, n, k) : 0;
        }
        __syncthreads();
#pragma unroll
        for (int depth = 0; depth < block_k; depth++) {
            total left[thread_m], right[thread_n];
#pragma unroll
            for (int i = 0; i < thread_m; i++)
                left[i] = rows[depth][my_row * thread_m + i];
#pragma unroll
            for (int j = 0; j < thread_n; j++)
                right[j] = columns[depth][my_column * thread_n + j];
#pragma unroll
            for (int i = 0; i < thread_m; i++)
#pragma unroll
                for (int j = 0; j < thread_n; j++)
                    sum[i][j] += left[i] * right[j];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < thread_m; i++)
#pragma unroll
        for (int j = 0; j < thread_n; j++) {
            const output out = OUTPUT;
            out.store(sum[i][j], row + my_row * thread_m + i, column + my_column * thread_n + j);
        }
}
