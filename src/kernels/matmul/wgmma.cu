// A product (common/operands.cuh) in bf16 or f16, or of bytes, by the tensor cores of compute capability 9.0 (common/wgmma.cuh):
// wgmma of 64 rows, block_n columns and 32 bytes of k. Of bytes b is given transposed.
//
// Tiles of a and b, 128 bytes deep, come by asynchronous copies in chunks of 16 bytes; `stages` of them have room: two are read by
// products, the others are under way.
//
// Of 8 bit floats the tensor cores keep some 14 bits of a sum. So after each `promote_every` stages sums are added to totals in
// float, as cuBLASLt does without its "fast accumulation"; 0: the sums are the totals.

enum {
    DEPTH = LINE_BYTES / sizeof(element),
    groups = block_m / 64, // of 128 threads
    threads = 128 * groups,
    sums_count = block_n / 2, // of a thread
    a_bytes = block_m * LINE_BYTES,
    stage_bytes = a_bytes + block_n * LINE_BYTES,
    period = promote_every > 0 ? promote_every : 1,
    totals_count = promote_every > 0 ? sums_count : 1
};

// rows x chunks of a matrix of `height` rows and `width` columns, from (row, column) on.
template <int rows, int chunks, bool along_k>
__device__ void copy_tile(unsigned to, const element *matrix, int row, int column, int height, int width)
{
#pragma unroll
    for (int i = threadIdx.x; i < rows * chunks; i += threads) {
        const int r = i / chunks, at = i % chunks, y = row + r, x = column + at * CHUNK;
        const bool is_there = y < height && x < width;
        copy_chunk(
            to + (along_k ? place_along_k(r, at) : place_along_n(r, at, DEPTH)),
            is_there ? matrix + (long long)y * width + x : matrix, is_there);
    }
}

__device__ void copy_stage(
    unsigned stage, const element *a, const element *b, int row, int column, int from, int m, int n, int k)
{
    copy_tile<block_m, 8, true>(stage, a, row, from, m, k);
    if (TRANSPOSE_B)
        copy_tile<block_n, 8, true>(stage + a_bytes, b, column, from, n, k);
    else
        copy_tile<DEPTH, block_n / 8, false>(stage + a_bytes, b, from, column, k, n);
}

__device__ void multiply_stage(unsigned stage, total (&sums)[sums_count], bool is_first)
{
    const unsigned a = stage + threadIdx.x / 128 * (64 * LINE_BYTES), b = stage + a_bytes;
    begin_products();
#pragma unroll
    for (int step = 0; step < LINE_BYTES / 32; step++)
        multiply<TRANSPOSE_B ? 0 : 1>(
            sums, describe_along_k(a, step), TRANSPOSE_B ? describe_along_k(b, step) : describe_along_n(b, step, DEPTH),
            step > 0 || !is_first);
    end_products();
}

__device__ void store(const output &out, const total (&sums)[sums_count], int row, int column)
{
    const int thread = threadIdx.x % 128;
    row += threadIdx.x / 128 * 64;
#pragma unroll
    for (int i = 0; i < sums_count; i += 2)
        out.store_pair(sums[i], sums[i + 1], row + row_of_sum(thread, i), column + column_of_sum(thread, i));
}

template <int count> __device__ void add(total (&totals)[count], const total (&sums)[sums_count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        totals[i] += sums[i];
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    matmul(const element *a, const element *b, SCALES result *c, int m, int n, int k)
{
    extern __shared__ __align__(ATOM_BYTES) unsigned char memory[];
    const unsigned shared = (unsigned)__cvta_generic_to_shared(memory);
    total sums[sums_count]; // the first product sets them
    total totals[totals_count] = {};
    int row, column;
    my_tile(m, n, row, column);
    const int steps = (k + DEPTH - 1) / DEPTH;
    for (int step = 0; step < stages - 2; step++) {
        if (step < steps) copy_stage(shared + step * stage_bytes, a, b, row, column, step * DEPTH, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads what the copies wrote by another way
        __syncthreads();
        multiply_stage(shared + step % stages * stage_bytes, sums, promote_every > 0 ? step % period == 0 : step == 0);
        // Every warp had done with the product before the last when it came to the barrier: its stage may be filled.
        const int next = step + stages - 2;
        if (next < steps) copy_stage(shared + next % stages * stage_bytes, a, b, row, column, next * DEPTH, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
        if (promote_every > 0 && (step % period == period - 1 || step == steps - 1)) {
            wait_for_products<0>();
            hold(sums);
            add(totals, sums);
        }
        wait_for_products<1>();
    }
    wait_for_products<0>();
    hold(sums);
#if promote_every > 0
    store(OUTPUT, totals, row, column);
#else
    store(OUTPUT, sums, row, column);
#endif
}
