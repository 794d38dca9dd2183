// A product (common/operands.cuh) in bf16 or f16, or of bytes, by the tensor cores of compute capability 9.0 (common/wgmma.cuh):
// wgmma of 64 rows, block_n columns and 32 bytes of k. Of bytes b is given transposed.
//
// A block has 64 rows for each of its warpgroups. One thread of one more warp has the copy engine (TMA) bring tiles of a and b, 128
// bytes deep, into a ring of `stages` places, as soon as the warpgroups have done with what is there.
//
// Of 8 bit floats the tensor cores keep some 14 bits of a sum. So after each `promote_every` stages sums are added to totals in
// float, as cuBLASLt does without its "fast accumulation"; 0: the sums are the totals.

enum {
    DEPTH = LINE_BYTES / sizeof(element),
    groups = block_m / 64, // of 128 threads
    threads = 128 * groups + 32,
    sums_count = block_n / 2, // of a thread
    a_bytes = block_m * LINE_BYTES,
    stage_bytes = a_bytes + block_n * LINE_BYTES,
    period = promote_every > 0 ? promote_every : 1,
    totals_count = promote_every > 0 ? sums_count : 1,
    // Blocks that share a multiprocessor: while one begins or ends, another multiplies.
    together = 2 * stages * stage_bytes <= 220 << 10 && sums_count + totals_count <= 66 ? 2 : 1
};

extern __shared__ __align__(ATOM_BYTES) unsigned char memory[];

struct ring {
    unsigned base;

    __device__ unsigned stage(int step) const
    {
        return base + step % stages * stage_bytes;
    }
    __device__ unsigned full(int step) const
    {
        return base + stages * stage_bytes + step % stages * 16;
    }
    __device__ unsigned empty(int step) const
    {
        return full(step) + 8;
    }
};

// A box of a matrix, which the copy engine swizzles as the tensor cores read it. What is not there is 0.
__device__ void copy_box(unsigned to, const tensor_map *map, int row, int column, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row)
                 : "memory");
}

__device__ void copy_stages(const tensor_map *a, const tensor_map *b, ring r, int row, int column, int steps)
{
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const unsigned stage = r.stage(step), full = r.full(step);
        if (step >= stages) wait_for(r.empty(step), (step / stages - 1) & 1);
        arrive_before(full, stage_bytes);
        copy_box(stage, a, row, step * DEPTH, full);
        if (TRANSPOSE_B)
            copy_box(stage + a_bytes, b, column, step * DEPTH, full);
        else // 64 columns of all lines, then the next 64
            for (int part = 0; part < block_n / 64; part++)
                copy_box(stage + a_bytes + part * (DEPTH * LINE_BYTES), b, step * DEPTH, column + part * 64, full);
    }
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

__device__ void multiply_all(const output &out, ring r, int row, int column, int steps)
{
    total sums[sums_count]; // the first product sets them
    total totals[totals_count] = {};
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        wait_for(r.full(step), step / stages & 1);
        multiply_stage(r.stage(step), sums, promote_every > 0 ? step % period == 0 : step == 0);
        if (promote_every > 0 && (step % period == period - 1 || step == steps - 1)) {
            wait_for_products<0>();
            hold(sums);
            add(totals, sums);
        }
        wait_for_products<1>();
        if (step > 0) release(r.empty(step - 1)); // the product before this one has ended
    }
    wait_for_products<0>();
    hold(sums);
#if promote_every > 0
    store(out, totals, row, column);
#else
    store(out, sums, row, column);
#endif
}

extern "C" __global__ void __launch_bounds__(threads, together) matmul(
    SCALES result *c, int m, int n, int k, const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map)
{
    const ring r = {(unsigned)__cvta_generic_to_shared(memory)};
    if (threadIdx.x == 0)
        for (int i = 0; i < stages; i++) {
            begin_barrier(r.full(i), 1);
            begin_barrier(r.empty(i), 4 * groups);
        }
    show_barriers();
    int row, column;
    my_tile(m, n, row, column);
    const int steps = (k + DEPTH - 1) / DEPTH;
    if (threadIdx.x < 128 * groups)
        multiply_all(OUTPUT, r, row, column, steps);
    else if (threadIdx.x == 128 * groups)
        copy_stages(&a_map, &b_map, r, row, column, steps);
}
