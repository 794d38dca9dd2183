// Products by the tensor cores of compute capability 9.0: wgmma of 64 rows, columns and 32 bytes of k, and the layouts that it
// reads. Put in front of the sources of kernels, behind operands.cuh where they are products.
//
// In shared memory a line has 128 bytes, and its chunks of 16 bytes are exchanged by the line's number & 7, which is what the
// tensor cores call a swizzle of 128 bytes (PTX ISA, "Matrix Descriptor"). Tiles begin at multiples of ATOM_BYTES.
//
// What is said of layouts is C, too: a test takes it from here and multiplies on the CPU (test_wgmma.c).

#define LINE_BYTES 128
#define ATOM_BYTES 1024 // 8 lines

// A tile whose lines lie along k: line `row`, chunk `at` of 16 bytes.
__device__ int place_along_k(int row, int at)
{
    return row * LINE_BYTES + ((at ^ (row & 7)) << 4);
}

// A tile of `depth` lines of 16 bit elements whose lines lie along n: 64 columns of all lines, then the next 64. Chunk `at` of line k.
__device__ int place_along_n(int k, int at, int depth)
{
    return at / 8 * (depth * LINE_BYTES) + place_along_k(k, at % 8);
}

// Where the tensor cores find an operand: 1 << 62 is the swizzle of 128 bytes.
__device__ unsigned long long describe(unsigned address, unsigned leading_bytes, unsigned stride_bytes)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}

// 32 of 128 bytes along k, for lines along k: a step lies within the line, lines come in atoms of 8.
__device__ unsigned long long describe_along_k(unsigned tile, unsigned step)
{
    return describe(tile + step * 32, 16, ATOM_BYTES);
}

// For lines along n: a step is 16 lines; the next 8 of them are the next atom, the next 64 columns the next part.
__device__ unsigned long long describe_along_n(unsigned tile, unsigned step, unsigned depth)
{
    return describe(tile + step * 16 * LINE_BYTES, depth * LINE_BYTES, ATOM_BYTES);
}

// The operand that lies `bytes` further: a descriptor begins with its address, whose 14 bits reach over all shared memory.
__device__ unsigned long long move(unsigned long long operand, unsigned bytes)
{
    return operand + (bytes >> 4);
}

// Where sum i of a thread of the warpgroup stands in its 64 rows.
__device__ int row_of_sum(int thread, int i)
{
    return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}

__device__ int column_of_sum(int thread, int i)
{
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

#ifndef HONE_LAYOUTS_ALONE

#ifndef OPERAND // of attention
#if defined(hone_query_bf16)
#define OPERAND "bf16"
#else
#define OPERAND "f16"
#endif
#define SUM "f32"
#define IS_SCALED 0
#define REGISTER "+f"
typedef unsigned short element;
typedef float total;
#endif

#if defined(hone_a_i8)
#define FACTORS "" // integers have none
#else
#define FACTORS ", 1, 1"
#endif

#if !IS_SCALED
__device__ unsigned narrow(float low, float high)
{
    unsigned both;
    asm("cvt.rn." OPERAND "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#endif

// Tiles come into a ring of places, each with two barriers: that it is full, and that it is empty again. A barrier changes its parity
// when as many as it was begun with have arrived, and as many bytes as it expects.
__device__ void begin_barrier(unsigned barrier, int count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ void show_barriers()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    __syncthreads();
}

__device__ void arrive(unsigned barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and has the barrier wait for what the copy engine brings besides.
__device__ void arrive_before(unsigned barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ bool has_passed(unsigned barrier, int parity)
{
    unsigned passed;
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(passed)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return passed != 0;
}

__device__ void wait_for(unsigned barrier, int parity)
{
    while (!has_passed(barrier, parity)) {
    }
}

// One of the threads of a warp says that the warp has done with a place of the ring.
__device__ void release(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
}

// All threads of the blocks of a cluster.
__device__ void wait_for_cluster()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// What another block of the cluster has at the address at which this one has its own.
__device__ unsigned read_from(int rank, unsigned own)
{
    unsigned there, bits;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(bits) : "r"(there) : "memory");
    return bits;
}

// What the copy engine (TMA) is told of a tensor (CUtensorMap).
struct __align__(64) tensor_map {
    unsigned char bytes[128];
};

// Before the first product of some: their operands in registers are as this thread left them.
__device__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most so many of the groups that ended are at work.
template <int count> __device__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(count) : "memory");
}

// Registers of products are not read or written before.
template <int count> __device__ void hold(total (&sums)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : REGISTER(sums[i])::"memory");
}

template <int count> __device__ void hold(unsigned (&values)[count])
{
#pragma unroll
    for (int i = 0; i < count; i++)
        asm volatile("" : "+r"(values[i])::"memory");
}

#define LIST_32                                                                                                        \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define LIST_40 LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39"
#define LIST_48 LIST_40 ", %40, %41, %42, %43, %44, %45, %46, %47"
#define LIST_64                                                                                                        \
    LIST_48 ", %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST_88                                                                                                        \
    LIST_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "  \
            "%84, %85, %86, %87"
#define LIST_128                                                                                                       \
    LIST_88 ", %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, "      \
            "%106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, "  \
            "%123, %124, %125, %126, %127"
#define SUMS_8(i)                                                                                                      \
    REGISTER(sums[i]), REGISTER(sums[i + 1]), REGISTER(sums[i + 2]), REGISTER(sums[i + 3]), REGISTER(sums[i + 4]), REGISTER(sums[i + 5]),     \
        REGISTER(sums[i + 6]), REGISTER(sums[i + 7])
#define SUMS_32    SUMS_8(0), SUMS_8(8), SUMS_8(16), SUMS_8(24)
#define SUMS_40    SUMS_32, SUMS_8(32)
#define SUMS_48    SUMS_40, SUMS_8(40)
#define SUMS_64    SUMS_48, SUMS_8(48), SUMS_8(56)
#define SUMS_88    SUMS_64, SUMS_8(64), SUMS_8(72), SUMS_8(80)
#define SUMS_128   SUMS_88, SUMS_8(88), SUMS_8(96), SUMS_8(104), SUMS_8(112), SUMS_8(120)

// sums = a b, or where `more` is not 0 sums += a b, of one step of 32 bytes: a from shared memory or registers, b from shared memory,
// whose lines lie along k or along n (`way` 0 or 1). Bytes lie along k, and come from shared memory. The numbers are the places of
// what follows the sums.
#if IS_SCALED
#define PRODUCTS(columns, count, p0, p1, p2, p3, p4, p5, p6)                                                           \
    template <int way>                                                                                                 \
    __device__ void multiply(total (&sums)[count], unsigned long long a, unsigned long long b, int more)               \
    {                                                                                                                  \
        static_assert(way == 0, "lines of bytes lie along k");                                                         \
        asm volatile("{.reg .pred p; setp.ne.s32 p, %" #p2 ", 0; wgmma.mma_async.sync.aligned.m64n" #columns           \
                     "k32." SUM "." OPERAND "." OPERAND " {" LIST_##count "}, %" #p0 ", %" #p1 ", p" FACTORS ";}"      \
                     : SUMS_##count                                                                                    \
                     : "l"(a), "l"(b), "r"(more));                                                                     \
    }
#else
#define PRODUCTS(columns, count, p0, p1, p2, p3, p4, p5, p6)                                                           \
    template <int way>                                                                                                 \
    __device__ void multiply(total (&sums)[count], unsigned long long a, unsigned long long b, int more)               \
    {                                                                                                                  \
        asm volatile("{.reg .pred p; setp.ne.s32 p, %" #p3 ", 0; wgmma.mma_async.sync.aligned.m64n" #columns           \
                     "k16." SUM "." OPERAND "." OPERAND " {" LIST_##count "}, %" #p0 ", %" #p1 ", p, 1, 1, 0, %" #p2 ";}"        \
                     : SUMS_##count                                                                                    \
                     : "l"(a), "l"(b), "n"(way), "r"(more));                                                           \
    }                                                                                                                  \
    template <int way>                                                                                                 \
    __device__ void multiply(total (&sums)[count], const unsigned *a, unsigned long long b, int more)                  \
    {                                                                                                                  \
        asm volatile("{.reg .pred p; setp.ne.s32 p, %" #p6 ", 0; wgmma.mma_async.sync.aligned.m64n" #columns           \
                     "k16." SUM "." OPERAND "." OPERAND " {" LIST_##count "}, {%" #p0 ", %" #p1 ", %" #p2 ", %" #p3 "}, %" #p4   \
                     ", p, 1, 1, %" #p5 ";}"                                                                           \
                     : SUMS_##count                                                                                    \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(way), "r"(more));                       \
    }
#endif

PRODUCTS(64, 32, 32, 33, 34, 35, 36, 37, 38)
PRODUCTS(80, 40, 40, 41, 42, 43, 44, 45, 46)
PRODUCTS(96, 48, 48, 49, 50, 51, 52, 53, 54)
PRODUCTS(128, 64, 64, 65, 66, 67, 68, 69, 70)
PRODUCTS(176, 88, 88, 89, 90, 91, 92, 93, 94)
PRODUCTS(256, 128, 128, 129, 130, 131, 132, 133, 134)

#endif
