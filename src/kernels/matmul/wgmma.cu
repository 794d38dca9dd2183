// A product (common/operands.cuh) of bf16, f16 or 8-bit elements with the tensor cores of compute capability 9.0
// (common/wgmma.cuh): wgmma of 64 rows, block_n columns and 32 bytes of k. For 8-bit elements, b must be transposed.
//
// A block has 64 rows for each of its warpgroups. One thread of an additional warp makes the copy engine (TMA) copy
// tiles of a and b, 128 bytes deep, into a ring of `stages` slots, as soon as the warpgroups have finished with a slot.
//
// When c has few tiles, the `splits` blocks of a cluster share k, and add their sums through each other's shared
// memory.
//
// For 8-bit floats the tensor cores keep about 14 bits of a sum. Therefore the sums are added to totals in float after
// every `promote_every` stages, as in cuBLASLt without "fast accumulation". With 0 the sums are the totals.

enum {
    DEPTH = LINE_BYTES / sizeof(element),
    groups = block_m / 64, // warpgroups, of 128 threads each
    threads = 128 * groups + 32,
    sums_count = block_n / 2, // per thread
    a_bytes = block_m * LINE_BYTES,
    stage_bytes = a_bytes + block_n * LINE_BYTES,
    period = promote_every > 0 ? promote_every : 1,
    totals_count = promote_every > 0 ? sums_count : 1,
    // Blocks per multiprocessor. With two, one multiplies while the other begins or ends.
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

// Starts the copy of a box of a matrix. The copy engine swizzles it as the tensor cores read it, and writes 0 outside
// the matrix.
__device__ void copy_box(unsigned to, const tensor_map *map, int row, int column, unsigned barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
                 "l"(map), "r"(barrier), "r"(column), "r"(row)
                 : "memory");
}

// Prefetches a descriptor before its first use.
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
// Writes the sums over the shared memory of the tiles, once all warps have finished the products that read them.
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

// Stores the results. Each block of a cluster stores a share of the columns.
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
        if (step > 0) release(r.empty(step - 1)); // the previous product has finished
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
    wait_for_cluster(); // keep this block's shared memory until the other blocks have read it
#else
    if (multiplies) store(OUTPUT, FOUND, row, column);
#endif
}
