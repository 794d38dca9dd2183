// out[b, h] = mean over s of x[b, s, h], in float. A block has `lanes` packs of `vector` channels. Its `steps` rows of
// threads, and those of the other blocks of its cluster, share the sequence. A sum that leaves the range of floats is
// computed again in double.
typedef pack_of<element, vector> pack;

enum { at_once = rows_at_once };

__shared__ float sums[steps][lanes * vector];

__device__ float mean_in_double(const element *from, long long length, long long channels)
{
    double sum = 0;
    for (long long i = 0; i < length; i++)
        sum += (double)widen(from[i * channels]);
    return (float)(sum / (double)length);
}

__device__ void wait_for_cluster()
{
#if cluster > 1
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
#else
    __syncthreads();
#endif
}

// The sum of a channel in one block of the cluster.
__device__ float sum_of_block(int rank, int channel)
{
    float sum = 0;
    for (int step = 0; step < steps; step++) {
        float part;
#if cluster > 1
        unsigned there;
        asm("mapa.shared::cluster.u32 %0, %1, %2;"
            : "=r"(there)
            : "r"((unsigned)__cvta_generic_to_shared(&sums[step][channel])), "r"(rank));
        asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(part) : "r"(there) : "memory");
#else
        part = sums[step][channel];
#endif
        sum += part;
    }
    return sum;
}

extern "C" __global__ void __launch_bounds__(lanes * steps) mean_pooling(const element *x, element *out, long long batches, long long length, long long channels)
{
    const int rank = blockIdx.x % cluster;
    const long long blocks = channels > 0 ? (channels + lanes * vector - 1) / (lanes * vector) : 1;
    const long long batch = blockIdx.x / cluster / blocks, first = blockIdx.x / cluster % blocks * (lanes * vector);
    const long long own = first + threadIdx.x * vector;
    const element *from = x + batch * length * channels;
    if (batch >= batches) return;
    float sum[vector] = {};
    if (own < channels) {
#pragma unroll at_once
        for (long long i = rank * steps + threadIdx.y; i < length; i += cluster * steps) {
            const pack values = *reinterpret_cast<const pack *>(from + i * channels + own);
#pragma unroll
            for (int j = 0; j < vector; j++)
                sum[j] += widen(values.at[j]);
        }
    }
#pragma unroll
    for (int j = 0; j < vector; j++)
        sums[threadIdx.y][threadIdx.x * vector + j] = sum[j];
    wait_for_cluster();
    // The blocks of a cluster share its channels.
    const int thread = threadIdx.y * lanes + threadIdx.x;
    for (int i = thread * cluster + rank; i < lanes * vector && first + i < channels; i += steps * lanes * cluster) {
        float total = 0;
        for (int other = 0; other < cluster; other++)
            total += sum_of_block(other, i);
        const bool fits = fabsf(total) <= 3.402823466e+38f;
        narrow(fits ? total / length : mean_in_double(from + first + i, length, channels), &out[batch * channels + first + i]);
    }
    if (cluster > 1) wait_for_cluster();
}
