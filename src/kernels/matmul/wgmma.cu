// A product (common/operands.cuh) in bf16 or f16, or of bytes, by the tensor cores of compute capability 9.0 (common/wgmma.cuh):
// wgmma of 64 rows, block_n columns and 32 bytes of k. Of bytes b is given transposed.
//
// A block has 64 rows for each of its warpgroups. One thread of one more warp has the copy engine (TMA) bring tiles of a and b, 128
// bytes deep, into a ring of `stages` places, as soon as the warpgroups have done with what is there.
//
// Where c has few tiles, the blocks of a cluster, `splits` of them, share k, and add up their sums through each other's memory.
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

// Before it is used for the first time.
__device__ void fetch(const tensor_map *map)
{
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

__device__ void copy_stages(const tensor_map *a, const tensor_map *b, ring r, int row, int column, int from, int steps)
{
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        const int k = (from + step) * DEPTH;
        const unsigned stage = r.stage(step), full = r.full(step);
        if (step >= stages) wait_for(r.empty(step), (step / stages - 1) & 1);
        arrive_before(full, stage_bytes);
        copy_box(stage, a, row, k, full);
        if (TRANSPOSE_B)
            copy_box(stage + a_bytes, b, column, k, full);
        else // 64 columns of all lines, then the next 64
            for (int part = 0; part < block_n / 64; part++)
                copy_box(stage + a_bytes + part * (DEPTH * LINE_BYTES), b, k, column + part * 64, full);
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

#if splits > 1
// Where the block's tiles were, once the products of all its warps have read them.
__device__ void write_part(const total (&sums)[sums_count])
{
    asm volatile("bar.sync 1, %0;" ::"n"(128 * groups) : "memory");
#pragma unroll
    for (int i = 0; i < sums_count; i++)
        reinterpret_cast<total *>(memory)[i * (128 * groups) + threadIdx.x] = sums[i];
}

__device__ total add_parts(int i)
{
    total sum = 0;
#pragma unroll
    for (int rank = 0; rank < splits; rank++) {
        const unsigned bits = read_from(rank, (unsigned)__cvta_generic_to_shared(memory) + (i * (128 * groups) + threadIdx.x) * 4);
        sum += *reinterpret_cast<const total *>(&bits);
    }
    return sum;
}
#endif

// Each block of a cluster stores some of the columns.
__device__ void store(const output &out, const total (&sums)[sums_count], int row, int column)
{
    const int thread = threadIdx.x % 128;
    row += threadIdx.x / 128 * 64;
#if splits > 1
#pragma unroll
    for (int each = 0; each < sums_count / splits; each += 2) {
        const int i = blockIdx.x % splits * (sums_count / splits) + each;
        out.store_pair(add_parts(i), add_parts(i + 1), row + row_of_sum(thread, i), column + column_of_sum(thread, i));
    }
#else
#pragma unroll
    for (int i = 0; i < sums_count; i += 2)
        out.store_pair(sums[i], sums[i + 1], row + row_of_sum(thread, i), column + column_of_sum(thread, i));
#endif
}

template <int count> __device__ void add(total (&totals)[count], const total (&sums)[sums_count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        totals[i] += sums[i];
}

__device__ void multiply_stages(ring r, total (&sums)[sums_count], total (&totals)[totals_count], int steps)
{
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
}

extern "C" __global__ void __launch_bounds__(threads, together) matmul(
    SCALES result *c, int m, int n, int k, const __grid_constant__ tensor_map a_map, const __grid_constant__ tensor_map b_map)
{
    const ring r = {(unsigned)__cvta_generic_to_shared(memory)};
    if (threadIdx.x == 128 * groups) {
        fetch(&a_map);
        fetch(&b_map);
    }
    if (threadIdx.x == 0)
        for (int i = 0; i < stages; i++) {
            begin_barrier(r.full(i), 1);
            begin_barrier(r.empty(i), 4 * groups);
        }
    show_barriers();
    int row, column;
    place_tile(blockIdx.x / splits, m, n, row, column);
    const int all = (k + DEPTH - 1) / DEPTH, each = (all + splits - 1) / splits;
    const int from = min(blockIdx.x % splits * each, all), steps = min(each, all - from);
    const bool multiplies = threadIdx.x < 128 * groups;
    total sums[sums_count]; // the first product sets them
    total totals[totals_count] = {};
    if (multiplies) {
        if (steps == 0)
            for (int i = 0; i < sums_count; i++)
                sums[i] = 0;
        multiply_stages(r, sums, totals, steps);
    } else if (threadIdx.x == 128 * groups)
        copy_stages(&a_map, &b_map, r, row, column, from, steps);
#if promote_every > 0
#define FOUND totals
#else
#define FOUND sums
#endif
#if splits > 1
    if (multiplies) write_part(FOUND);
    wait_for_cluster();
    if (multiplies) store(OUTPUT, FOUND, row, column);
    wait_for_cluster(); // nobody's memory goes while others read it
#else
    if (multiplies) store(OUTPUT, FOUND, row, column);
#endif
}
