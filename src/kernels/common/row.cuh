// Threads that share a row: threads_per_row of each of `cluster` blocks. A row that fits in their registers (`keep`
// packs of `vector` elements per thread) is read once; a row that does not fit (keep = 0) is read again in each pass. A
// block has rows_per_block rows.
typedef pack_of<element, vector> pack;

enum { warps_of_row = threads_per_row > 32 ? threads_per_row / 32 : 1, threads_of_row = threads_per_row * cluster };
enum { parts_of_row = warps_of_row * cluster };

#define INFINITE __int_as_float(0x7f800000)
#define MOST     3.402823466e+38f

// Partial results, which other blocks of the cluster write too. Two arrays, so that one is written while the other is
// read.
__shared__ float parts[2][rows_per_block][parts_of_row];

__device__ unsigned rank_in_cluster()
{
    unsigned rank = 0;
#if cluster > 1
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
#endif
    return rank;
}

__device__ long long row_of_block()
{
    return (long long)(blockIdx.x / cluster) * rows_per_block + threadIdx.y;
}

// Arrives at the cluster's barrier: no block may write to the shared memory of a block that does not run yet.
__device__ void enter_cluster()
{
#if cluster > 1
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}

__device__ void wait_for_cluster()
{
#if cluster > 1
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}

__device__ void wait_for_row()
{
#if cluster > 1
    enter_cluster();
    wait_for_cluster();
#elif rows_per_block > 1
    asm volatile("bar.sync %0, %1;" ::"r"(threadIdx.y + 1), "n"(threads_per_row) : "memory");
#else
    __syncthreads();
#endif
}

// Writes one float to the same address in each block of the cluster, one lane per block.
__device__ void put_part(float *place, float value)
{
    const int lane = threadIdx.x % 32;
#if cluster > 1
    if (lane >= cluster) return;
    unsigned there;
    const unsigned here = (unsigned)__cvta_generic_to_shared(place);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(here), "r"(lane));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(there), "f"(value) : "memory");
#else
    if (lane == 0) *place = value;
#endif
}

struct sum_of {
    static __device__ float of(float a, float b)
    {
        return a + b;
    }
    static __device__ float nothing()
    {
        return 0;
    }
};

struct most_of {
    static __device__ float of(float a, float b)
    {
        return fmaxf(a, b);
    }
    static __device__ float nothing()
    {
        return -INFINITE;
    }
};

template <class join, int lanes> __device__ float over_lanes(float value)
{
#pragma unroll
    for (int step = lanes / 2; step > 0; step /= 2)
        value = join::of(value, __shfl_xor_sync(0xffffffffu, value, step));
    return value;
}

// Reduces a value over the threads of a row. `turn` counts the calls, which alternate between the two arrays, so that a
// warp that is ahead does not overwrite values that other warps still read.
template <class join> __device__ float over_row(float value, int *turn)
{
    value = over_lanes<join, threads_per_row < 32 ? threads_per_row : 32>(value);
    if (parts_of_row == 1) return value;
    float *own = parts[(*turn)++ % 2][threadIdx.y];
    put_part(&own[rank_in_cluster() * warps_of_row + threadIdx.x / 32], value);
    wait_for_row();
    value = join::nothing();
#pragma unroll
    for (int i = 0; i < parts_of_row; i += 32) {
        const int at = i + threadIdx.x % 32;
        if (at < parts_of_row) value = join::of(value, own[at]);
    }
    return over_lanes<join, 32>(value);
}

// Rows that share a warp take the same branch: the condition holds for all of them if it holds for one.
__device__ bool for_row(bool condition)
{
    return threads_per_row < 32 ? __any_sync(0xffffffffu, condition) : condition;
}

// Calls body(at, slot) for this thread's packs of a row.
template <class Body> __device__ void each_pack(int count, Body body)
{
    const int first = rank_in_cluster() * threads_per_row + threadIdx.x;
#if keep > 0
#pragma unroll
    for (int slot = 0; slot < keep; slot++) {
        const int at = first + slot * threads_of_row;
        if (at < count) body(at, slot);
    }
#else
#pragma unroll 4
    for (int at = first; at < count; at += threads_of_row)
        body(at, 0);
#endif
}
