// Elements of tensors as they lie in memory, computed with in float. Put in front of the sources of kernels.
struct f16 {
    unsigned short bits;
};
struct bf16 {
    unsigned short bits;
};

__device__ inline float widen(float value)
{
    return value;
}
__device__ inline float widen(f16 value)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
    return wide;
}
__device__ inline float widen(bf16 value)
{
    return __uint_as_float((unsigned)value.bits << 16);
}

__device__ inline void narrow(float value, float *to)
{
    *to = value;
}
__device__ inline void narrow(float value, f16 *to)
{
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
}
__device__ inline void narrow(float value, bf16 *to)
{
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to->bits) : "f"(value));
}

// The type of the tensor that the kernel computes with: x, or the first of a kernel that has none of this name; of a gradient
// d_y, too.
#if defined(hone_x_f32) || defined(hone_gate_f32) || defined(hone_k_f32) || defined(hone_d_y_f32)
typedef float element;
#elif defined(hone_x_f16) || defined(hone_gate_f16) || defined(hone_k_f16) || defined(hone_d_y_f16)
typedef f16 element;
#else
typedef bf16 element;
#endif

// Elements that are read and written at once, in accesses of at most 16 bytes.
template <class T, int count> struct alignas(sizeof(T) * count > 16 ? 16 : sizeof(T) * count) pack_of {
    T at[count];
};
