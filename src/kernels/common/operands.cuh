// The types of a product's operands, sums and results. `matmul` computes c = a b in f32, f16 or bf16. `scaled_matmul`,
// whose operands have 8 bits, computes c = (sum * a_scale[row]) * b_scale[column] + bias[column]. This text precedes
// the source of a kernel, so that one source serves both operations.
#if defined(hone_a_i8)
#define OPERAND "s8"
#define SUM "s32"
typedef signed char element;
typedef int total; // exact
#elif defined(hone_a_f8_e4m3fn)
#define OPERAND "e4m3"
#define SUM "f32"
typedef unsigned char element;
typedef float total;
#elif defined(hone_a_f8_e5m2)
#define OPERAND "e5m2"
#define SUM "f32"
typedef unsigned char element;
typedef float total;
#elif defined(hone_a_f32)
typedef float element;
typedef float total;
#elif defined(hone_a_bf16)
#define OPERAND "bf16"
#define SUM "f32"
typedef unsigned short element;
typedef float total;
#else
#define OPERAND "f16"
#define SUM "f32"
typedef unsigned short element;
typedef float total;
#endif

#if defined(hone_a_i8) || defined(hone_a_f8_e4m3fn) || defined(hone_a_f8_e5m2)
#define IS_SCALED 1
#else
#define IS_SCALED 0
#endif

#if defined(hone_c_f32)
typedef float result;
#else
typedef unsigned short result;
#endif

#if defined(hone_c_bf16)
#define RESULT "bf16"
#else
#define RESULT "f16"
#endif

// The assembler constraint of a register that holds a sum.
#if defined(hone_a_i8)
#define REGISTER "+r"
#else
#define REGISTER "+f"
#endif

enum { CHUNK = 16 / sizeof(element) }; // elements of one copy

__device__ float of_f16(unsigned bits)
{
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"((unsigned short)bits));
    return wide;
}

// Converts an operand for a product without tensor cores.
__device__ total widen(element value)
{
#if defined(hone_a_f8_e4m3fn)
    // Its bits read as an f16, whose exponent has one bit more, give a value that is 2^8 times too small. e4m3fn has no
    // infinity: all ones are NaN.
    const unsigned size = value & 0x7f;
    return size == 0x7f ? __int_as_float(0x7fffffff) : of_f16((value & 0x80) << 8 | size << 7) * 256;
#elif defined(hone_a_f8_e5m2)
    return of_f16(value << 8); // the upper half of an f16
#else
    return value;
#endif
}

__device__ float of_result(float value)
{
    return value;
}

__device__ float of_result(unsigned short bits)
{
#if defined(hone_c_bf16)
    return __uint_as_float((unsigned)bits << 16);
#else
    return of_f16(bits);
#endif
}

__device__ void put(float *to, float value)
{
    *to = value;
}

__device__ void put(unsigned short *to, float value)
{
    asm("cvt.rn." RESULT ".f32 %0, %1;" : "=h"(*to) : "f"(value));
}

// Stores two adjacent elements. `to` is aligned to the pair.
__device__ void put_pair(float *to, float low, float high)
{
    *reinterpret_cast<float2 *>(to) = make_float2(low, high);
}

__device__ void put_pair(unsigned short *to, float low, float high)
{
    asm("cvt.rn." RESULT "x2.f32 %0, %1, %2;" : "=r"(*reinterpret_cast<unsigned *>(to)) : "f"(high), "f"(low));
}

// The parameters of a kernel after a and b, and the conversion of its sums to results.
#if IS_SCALED
#define SCALES const float *a_scale, const float *b_scale, const result *bias,
#define OUTPUT {c, m, n, a_scale, b_scale, bias}
#else
#define SCALES
#define OUTPUT {c, m, n}
#endif

struct output {
    result *c;
    int m, n;
#if IS_SCALED
    const float *a_scale, *b_scale;
    const result *bias;
#endif

    __device__ float finish(total sum, int y, int x) const
    {
#if IS_SCALED
        return (float)sum * a_scale[y] * b_scale[x] + of_result(bias[x]);
#else
        return sum;
#endif
    }

    __device__ void store(total sum, int y, int x) const
    {
        if (y < m && x < n) put(c + (long long)y * n + x, finish(sum, y, x));
    }

    // Stores columns x, which must be even, and x + 1. With an odd number of columns the pairs of some rows are not
    // aligned.
    __device__ void store_pair(total low, total high, int y, int x) const
    {
        if (y < m && x + 1 < n && n % 2 == 0)
            put_pair(c + (long long)y * n + x, finish(low, y, x), finish(high, y, x + 1));
        else {
            store(low, y, x);
            store(high, y, x + 1);
        }
    }
};

#ifdef group // kernels with a one-dimensional grid
// Blocks cover c in stripes of `group` rows of tiles, so that blocks that run at the same time share rows of a and
// columns of b.
__device__ void place_tile(int tile, int m, int n, int &row, int &column)
{
    const int rows = (m + block_m - 1) / block_m, columns = (n + block_n - 1) / block_n, stripe = group * columns;
    const int first = tile / stripe * group, height = min(rows - first, group);
    row = (first + tile % stripe % height) * block_m;
    column = tile % stripe / height * block_n;
}
#endif
