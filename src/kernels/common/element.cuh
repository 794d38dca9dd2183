// Storage types of tensor elements, and their conversion to and from float. This text precedes the source of a kernel.
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

// The element type of the kernel's tensors: that of x, or of gate, k or d_y in kernels without a tensor x.
#if defined(hone_x_f32) || defined(hone_gate_f32) || defined(hone_k_f32) || defined(hone_d_y_f32)
typedef float element;
#elif defined(hone_x_f16) || defined(hone_gate_f16) || defined(hone_k_f16) || defined(hone_d_y_f16)
typedef f16 element;
#else
typedef bf16 element;
#endif

// Elements that are read and written together, in accesses of at most 16 bytes.
template <class T, int count> struct alignas(sizeof(T) * count > 16 ? 16 : sizeof(T) * count) pack_of {
    T at[count];
};
