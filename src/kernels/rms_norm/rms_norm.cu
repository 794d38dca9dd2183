// y = x / sqrt(mean(x^2) + eps) * weight, row by row, in float.
//
// threads_per_row threads share a row; a row that their registers hold (keep vectors each) is read once.
#if defined(hone_x_f32)
typedef float element;
__device__ float widen(element value)
{
    return value;
}
__device__ element narrow(float value)
{
    return value;
}
#else
typedef unsigned short element;
__device__ float widen(element value)
{
    float wide;
#if defined(hone_x_bf16)
    wide = __uint_as_float((unsigned)value << 16);
#else
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value));
#endif
    return wide;
}
__device__ element narrow(float value)
{
    element bits;
#if defined(hone_x_bf16)
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
#endif
    return bits;
}
#endif

struct alignas(sizeof(element) * vector) pack {
    element at[vector];
};

__device__ float squares_of(const pack &values)
{
    float sum = 0;
#pragma unroll
    for (int i = 0; i < vector; i++)
        sum += widen(values.at[i]) * widen(values.at[i]);
    return sum;
}

__device__ pack scaled(const pack &values, const pack &weight, float factor)
{
    pack out;
#pragma unroll
    for (int i = 0; i < vector; i++)
        out.at[i] = narrow(widen(values.at[i]) * factor * widen(weight.at[i]));
    return out;
}

// The sum over the threads of one row.
__device__ float sum_of_row(float sum)
{
    enum { warps = threads_per_row / 32 };
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (warps == 1) return sum;
    __shared__ float parts[rows_per_block][warps];
    if (threadIdx.x % 32 == 0) parts[threadIdx.y][threadIdx.x / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int i = 0; i < warps; i++)
        sum += parts[threadIdx.y][i];
    return sum;
}

extern "C" __global__ void rms_norm(
    const element *x, const element *weight, element *y, int rows, int dim, float eps)
{
    const long long row = (long long)blockIdx.x * rows_per_block + threadIdx.y;
    const int count = row < rows ? dim / vector : 0;
    const pack *from = reinterpret_cast<const pack *>(x + row * dim);
    const pack *scale = reinterpret_cast<const pack *>(weight);
    pack *to = reinterpret_cast<pack *>(y + row * dim);
    float sum = 0;
#if keep > 0
    pack held[keep];
#pragma unroll
    for (int i = 0; i < keep; i++) {
        const int at = threadIdx.x + i * threads_per_row;
        if (at >= count) continue;
        held[i] = from[at];
        sum += squares_of(held[i]);
    }
#else
    for (int at = threadIdx.x; at < count; at += threads_per_row)
        sum += squares_of(from[at]);
#endif
    const float factor = rsqrtf(sum_of_row(sum) / dim + eps);
#if keep > 0
#pragma unroll
    for (int i = 0; i < keep; i++) {
        const int at = threadIdx.x + i * threads_per_row;
        if (at < count) to[at] = scaled(held[i], scale[at], factor);
    }
#else
    for (int at = threadIdx.x; at < count; at += threads_per_row)
        to[at] = scaled(from[at], scale[at], factor);
#endif
}
