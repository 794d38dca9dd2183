// A product (common/operands.cuh) of bf16, f16 or 8-bit elements with the tensor cores: mma.sync of 16 rows, 8 columns
// and 32 bytes of k. For 8-bit elements, b must be transposed, because the tensor cores read rows along k.
//
// Asynchronous copies fill `stages` tiles of a and b. The layout of their 16-byte chunks puts eight rows of one column
// into different banks.
enum {
    warps = warps_m * warps_n,
    threads = 32 * warps,
    warp_m = block_m / warps_m,
    warp_n = block_n / warps_n,
    tiles_m = warp_m / 16,
    pairs_n = warp_n / 16, // two tiles of 8 columns
    a_chunks = block_k / CHUNK,
    b_rows = TRANSPOSE_B ? block_n : block_k,
    b_chunks = (TRANSPOSE_B ? block_k : block_n) / CHUNK,
    a_elements = block_m * block_k,
    b_elements = block_n * block_k
};

// The offset of a row's chunk, in elements.
template <int chunks> __device__ int place(int row, int at)
{
    const int turn = chunks >= 8 ? row & 7 : chunks == 4 ? row >> 1 & 3 : row >> 2 & 1;
    return (row * chunks + (at ^ turn)) * CHUNK;
}

__device__ unsigned shared_address(const element *memory)
{
    return (unsigned)__cvta_generic_to_shared(memory);
}

// Starts a copy of 16 bytes, or of zeros outside the matrix.
__device__ void copy_chunk(element *to, const element *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from),
                 "r"(is_there ? 16 : 0));
}

// Copies a tile of rows x chunks from a matrix of `height` rows and `width` columns.
template <int rows, int chunks>
__device__ void copy_tile(element *to, const element *matrix, int row, int column, int height, int width)
{
#pragma unroll
    for (int i = threadIdx.x; i < rows * chunks; i += threads) {
        const int r = i / chunks, at = i % chunks, y = row + r, x = column + at * CHUNK;
        const bool is_there = y < height && x < width;
        copy_chunk(to + place<chunks>(r, at), is_there ? matrix + (long long)y * width + x : matrix, is_there);
    }
}

__device__ void load_matrices(unsigned (&to)[4], const element *from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from)));
}

__device__ void load_transposed(unsigned (&to)[4], const element *from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(from)));
}

#if IS_SCALED
#define SHAPE "m16n8k32"
#else
#define SHAPE "m16n8k16"
#endif

__device__ void multiply(total (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1)
{
    asm volatile("mma.sync.aligned." SHAPE ".row.col." SUM "." OPERAND "." OPERAND "." SUM
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : REGISTER(sum[0]), REGISTER(sum[1]), REGISTER(sum[2]), REGISTER(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ void copy_stage(
    element *stage, const element *a, const element *b, int row, int column, int from, int m, int n, int k)
{
    copy_tile<block_m, a_chunks>(stage, a, row, from, m, k);
    if (TRANSPOSE_B)
        copy_tile<b_rows, b_chunks>(stage + a_elements, b, column, from, n, k);
    else
        copy_tile<b_rows, b_chunks>(stage + a_elements, b, from, column, k, n);
}

__device__ void multiply_stage(const element *stage, total (&sum)[tiles_m][2 * pairs_n][4])
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int warp_row = warp / warps_n * warp_m, warp_column = warp % warps_n * warp_n;
    const element *left = stage, *right = stage + a_elements;
#pragma unroll
    for (int depth = 0; depth < a_chunks / 2; depth++) {
        unsigned a[tiles_m][4], b[pairs_n][4];
#pragma unroll
        for (int i = 0; i < tiles_m; i++)
            load_matrices(a[i], left + place<a_chunks>(warp_row + 16 * i + lane % 16, 2 * depth + lane / 16));
#pragma unroll
        for (int j = 0; j < pairs_n; j++) {
            if (TRANSPOSE_B)
                load_matrices(
                    b[j], right + place<b_chunks>(
                                      warp_column + 16 * j + lane / 16 * 8 + lane % 8, 2 * depth + lane / 8 % 2));
            else
                load_transposed(
                    b[j], right + place<b_chunks>(
                                      16 * depth + lane % 16, (warp_column + 16 * j) / CHUNK + lane / 16));
        }
#pragma unroll
        for (int i = 0; i < tiles_m; i++)
#pragma unroll
            for (int j = 0; j < pairs_n; j++) {
                multiply(sum[i][2 * j], a[i], b[j][0], b[j][1]);
                multiply(sum[i][2 * j + 1], a[i], b[j][2], b[j][3]);
            }
    }
}

__device__ void store(const output &out, const total (&sum)[tiles_m][2 * pairs_n][4], int row, int column)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first_row = row + warp / warps_n * warp_m + lane / 4;
    const int first_column = column + warp % warps_n * warp_n + lane % 4 * 2;
#pragma unroll
    for (int i = 0; i < tiles_m; i++)
#pragma unroll
        for (int j = 0; j < 2 * pairs_n; j++)
#pragma unroll
            for (int half = 0; half < 2; half++)
                out.store_pair(
                    sum[i][j][2 * half], sum[i][j][2 * half + 1], first_row + 16 * i + 8 * half, first_column + 8 * j);
}

extern "C" __global__ void __launch_bounds__(threads)
    matmul(const element *a, const element *b, SCALES result *c, int m, int n, int k)
{
    extern __shared__ __align__(128) element memory[];
    enum { stage_elements = a_elements + b_elements };
    total sum[tiles_m][2 * pairs_n][4] = {};
    int row, column;
    place_tile(blockIdx.x, m, n, row, column);
    const int steps = (k + block_k - 1) / block_k;
    for (int step = 0; step < stages - 1; step++) {
        if (step < steps) copy_stage(memory + step * stage_elements, a, b, row, column, step * block_k, m, n, k);
        asm volatile("cp.async.commit_group;");
    }
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 2));
        __syncthreads();
        const int next = step + stages - 1;
        if (next < steps)
            copy_stage(memory + next % stages * stage_elements, a, b, row, column, next * block_k, m, n, k);
        asm volatile("cp.async.commit_group;");
        multiply_stage(memory + step % stages * stage_elements, sum);
    }
    store(OUTPUT, sum, row, column);
}
