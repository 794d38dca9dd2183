// Products with the tensor cores of compute capability 9.0: wgmma of 64 rows, a number of columns and 32 bytes of k,
// and the layouts that it reads. This text precedes the source of a kernel, and follows operands.cuh in matrix
// products.
//
// A line in shared memory has 128 bytes. The index of each of its 16-byte chunks is XORed with the line's number & 7:
// the 128-byte swizzle of the tensor cores (PTX ISA, "Matrix Descriptor"). Tiles begin at multiples of ATOM_BYTES.
//
// The layout functions are valid C as well: test_wgmma.c includes them and computes a product on the CPU.

#define LINE_BYTES 128
#define ATOM_BYTES 1024 // 8 lines

// The offset in bytes of 16-byte chunk `at` of line `row`, in a tile whose lines lie along k.
__device__ int place_along_k(int row, int at)
{
    return row * LINE_BYTES + ((at ^ (row & 7)) << 4);
}

// The offset in bytes of chunk `at` of line k, in a tile of `depth` lines of 16-bit elements that lie along n. The
// first 64 columns of all lines come first, then the next 64.
__device__ int place_along_n(int k, int at, int depth)
{
    return at / 8 * (depth * LINE_BYTES) + place_along_k(k, at % 8);
}

// The descriptor of an operand in shared memory. 1 << 62 selects the 128-byte swizzle.
__device__ unsigned long long describe(unsigned address, unsigned leading_bytes, unsigned stride_bytes)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}

// An operand whose lines lie along k. A step is 32 of a line's 128 bytes. Lines are grouped in atoms of 8.
__device__ unsigned long long describe_along_k(unsigned tile, unsigned step)
{
    return describe(tile + step * 32, 16, ATOM_BYTES);
}

// An operand whose lines lie along n. A step is 16 lines, which are two atoms of 8. The next 64 columns are in the next
// part.
__device__ unsigned long long describe_along_n(unsigned tile, unsigned step, unsigned depth)
{
    return describe(tile + step * 16 * LINE_BYTES, depth * LINE_BYTES, ATOM_BYTES);
}

// The descriptor of the operand `bytes` further on. The low 14 bits of a descriptor are the address divided by 16, and
// cover all of shared memory, so that an addition suffices.
__device__ unsigned long long move(unsigned long long operand, unsigned bytes)
{
    return operand + (bytes >> 4);
}

// The row and column, in the 64 rows of a warpgroup, of a thread's sum i.
__device__ int row_of_sum(int thread, int i)
{
    return thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8;
}

__device__ int column_of_sum(int thread, int i)
{
    return i / 4 * 8 + thread % 4 * 2 + i % 2;
}

#ifndef HONE_LAYOUTS_ALONE

#ifndef OPERAND // attention, which has no operands.cuh
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
#define FACTORS "" // integer products take no scale factors
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

// Tiles are copied into a ring of slots. Each slot has two barriers: full and empty. A barrier flips its parity when
// the number of arrivals that it was initialised with, and the number of bytes that it expects, have arrived.
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

// Arrives, and makes the barrier wait for `bytes` more from the copy engine.
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

// Signals, by one thread of the warp, that the warp has finished with a slot of the ring.
__device__ void release(unsigned barrier)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barrier);
}

// Waits until all threads of the cluster's blocks arrive here.
__device__ void wait_for_cluster()
{
    __syncwarp();
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Reads the shared memory of another block of the cluster, at the same address as `own` in this block.
__device__ unsigned read_from(int rank, unsigned own)
{
    unsigned there, bits;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(own), "r"(rank));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(bits) : "r"(there) : "memory");
    return bits;
}

// The descriptor of a tensor for the copy engine (TMA): a CUtensorMap.
struct __align__(64) tensor_map {
    unsigned char bytes[128];
};

// Must precede a group of products: orders this thread's writes to their registers before them.
__device__ void begin_products()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

__device__ void end_products()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most `count` committed groups of products are still running.
template <int count> __device__ void wait_for_products()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(count) : "memory");
}

// Keeps the compiler from moving reads or writes of these registers to before this point.
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

// Computes sums = a b, or sums += a b if `more` is not 0, for one step of 32 bytes of k. a comes from shared memory or
// registers. b comes from shared memory, and its lines lie along k (`way` 0) or along n (`way` 1). Operands of 8-bit
// elements lie along k and come from shared memory. p0 to p6 are the numbers of the assembler operands that follow the
// sums.
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
