// c = a b in bf16 or f16, summed in float by the tensor cores of compute capability 9.0 (wgmma of 64 x block_n x 16).
//
// Tiles of a and b, 64 deep, come by asynchronous copies in chunks of 16 bytes; `stages` of them have room: two are read by products,
// the others are under way. In shared memory a line has 128 bytes, and the chunks of line l are exchanged by l & 7, which is what
// the tensor cores call a swizzle of 128 bytes (PTX ISA, "Matrix Descriptor").
//
// What is said of layouts is C, too: a test takes it from here and multiplies on the CPU (test_wgmma.c).

#define DEPTH 64
#define LINE_BYTES 128
#define ATOM_BYTES 1024 // 8 lines

// A tile whose lines lie along k: line `row`, chunk `at` of 8 elements.
__device__ int place_along_k(int row, int at)
{
    return row * LINE_BYTES + ((at ^ (row & 7)) << 4);
}

// A tile whose lines lie along n: 64 columns of all DEPTH rows, then the next 64. Chunk `at` of row k.
__device__ int place_along_n(int k, int at)
{
    return at / 8 * (DEPTH * LINE_BYTES) + place_along_k(k, at % 8);
}

// Where the tensor cores find an operand: 1 << 62 is the swizzle of 128 bytes.
__device__ unsigned long long describe(unsigned address, unsigned leading_bytes, unsigned stride_bytes)
{
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading_bytes >> 4) << 16 |
           (unsigned long long)(stride_bytes >> 4) << 32 | 1ull << 62;
}

// 16 of the DEPTH elements along k, for lines along k: a step lies within the line, lines come in atoms of 8.
__device__ unsigned long long describe_along_k(unsigned tile, unsigned step)
{
    return describe(tile + step * 32, 16, ATOM_BYTES);
}

// For lines along n: a step is 16 lines; the next 8 of them are the next atom, the next 64 columns the next part.
__device__ unsigned long long describe_along_n(unsigned tile, unsigned step)
{
    return describe(tile + step * 16 * LINE_BYTES, DEPTH * LINE_BYTES, ATOM_BYTES);
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

#if defined(hone_a_bf16)
#define TYPE "bf16"
#else
#define TYPE "f16"
#endif
typedef unsigned short element;

enum {
    groups = block_m / 64, // of 128 threads
    threads = 128 * groups,
    sums_count = block_n / 2, // of a thread
    a_bytes = block_m * LINE_BYTES,
    stage_bytes = a_bytes + block_n * LINE_BYTES
};

// 16 bytes, or zeros where there are none to copy.
__device__ void copy_chunk(unsigned to, const element *from, bool is_there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(is_there ? 16 : 0) : "memory");
}

// rows x chunks of a matrix of `height` rows and `width` columns, from (row, column) on.
template <int rows, int chunks, bool along_k>
__device__ void copy_tile(unsigned to, const element *matrix, int row, int column, int height, int width)
{
#pragma unroll
    for (int i = threadIdx.x; i < rows * chunks; i += threads) {
        const int r = i / chunks, at = i % chunks, y = row + r, x = column + at * 8;
        const bool is_there = y < height && x < width;
        copy_chunk(
            to + (along_k ? place_along_k(r, at) : place_along_n(r, at)),
            is_there ? matrix + (long long)y * width + x : matrix, is_there);
    }
}

__device__ void copy_stage(
    unsigned stage, const element *a, const element *b, int row, int column, int from, int m, int n, int k)
{
    copy_tile<block_m, 8, true>(stage, a, row, from, m, k);
    if (TRANSPOSE_B)
        copy_tile<block_n, 8, true>(stage + a_bytes, b, column, from, n, k);
    else
        copy_tile<DEPTH, block_n / 8, false>(stage + a_bytes, b, from, column, k, n);
}

#define LIST_32                                                                                                        \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, "  \
    "%24, %25, %26, %27, %28, %29, %30, %31"
#define LIST_64                                                                                                        \
    LIST_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "  \
            "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LIST_128                                                                                                       \
    LIST_64 ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "  \
            "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
            "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "  \
            "%121, %122, %123, %124, %125, %126, %127"
#define SUMS_8(i)                                                                                                      \
    "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3]), "+f"(sums[i + 4]), "+f"(sums[i + 5]),     \
        "+f"(sums[i + 6]), "+f"(sums[i + 7])
#define SUMS_32(i) SUMS_8(i), SUMS_8(i + 8), SUMS_8(i + 16), SUMS_8(i + 24)
#define SUMS_64(i) SUMS_32(i), SUMS_32(i + 32)
#define SUMS_128(i) SUMS_64(i), SUMS_64(i + 64)
// sums = a b, or where `more` is not 0 sums += a b: both from shared memory; b's lines along n are read transposed.
#define PRODUCT(columns, list, a, b, way, more)                                                                        \
    "{.reg .pred p; setp.ne.s32 p, " more ", 0; wgmma.mma_async.sync.aligned.m64n" columns "k16.f32." TYPE "." TYPE    \
    " {" list "}, " a ", " b ", p, 1, 1, 0, " way ";}"

__device__ void multiply(float (&sums)[32], unsigned long long a, unsigned long long b, int more)
{
    asm volatile(PRODUCT("64", LIST_32, "%32", "%33", "%34", "%35")
                 : SUMS_32(0)
                 : "l"(a), "l"(b), "n"(TRANSPOSE_B ? 0 : 1), "r"(more));
}

__device__ void multiply(float (&sums)[64], unsigned long long a, unsigned long long b, int more)
{
    asm volatile(PRODUCT("128", LIST_64, "%64", "%65", "%66", "%67")
                 : SUMS_64(0)
                 : "l"(a), "l"(b), "n"(TRANSPOSE_B ? 0 : 1), "r"(more));
}

__device__ void multiply(float (&sums)[128], unsigned long long a, unsigned long long b, int more)
{
    asm volatile(PRODUCT("256", LIST_128, "%128", "%129", "%130", "%131")
                 : SUMS_128(0)
                 : "l"(a), "l"(b), "n"(TRANSPOSE_B ? 0 : 1), "r"(more));
}

__device__ void multiply_stage(unsigned stage, float (&sums)[sums_count], bool is_first)
{
    const unsigned a = stage + threadIdx.x / 128 * (64 * LINE_BYTES), b = stage + a_bytes;
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int step = 0; step < DEPTH / 16; step++)
        multiply(
            sums, describe_along_k(a, step), TRANSPOSE_B ? describe_along_k(b, step) : describe_along_n(b, step),
            step > 0 || !is_first);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

__device__ unsigned narrow(float low, float high)
{
    unsigned both;
    asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

__device__ void store(element *c, const float (&sums)[sums_count], int row, int column, int m, int n)
{
    const int thread = threadIdx.x % 128;
    row += threadIdx.x / 128 * 64;
#pragma unroll
    for (int i = 0; i < sums_count; i += 2) {
        const int y = row + row_of_sum(thread, i), x = column + column_of_sum(thread, i);
        if (y < m && x < n)
            *reinterpret_cast<unsigned *>(c + (long long)y * n + x) = narrow(sums[i], sums[i + 1]);
    }
}

// Blocks that run at the same time share rows of a and columns of b: they go through c in stripes of `group` rows of tiles.
__device__ void my_tile(int m, int n, int &row, int &column)
{
    const int rows = (m + block_m - 1) / block_m, columns = (n + block_n - 1) / block_n, stripe = group * columns;
    const int first = blockIdx.x / stripe * group, height = min(rows - first, group);
    row = (first + blockIdx.x % stripe % height) * block_m;
    column = blockIdx.x % stripe / height * block_n;
}

extern "C" __global__ void __launch_bounds__(threads, 1)
    matmul(const element *a, const element *b, element *c, int m, int n, int k)
{
    extern __shared__ __align__(ATOM_BYTES) unsigned char memory[];
    const unsigned shared = (unsigned)__cvta_generic_to_shared(memory);
    float sums[sums_count]; // the first product sets them
    int row, column;
    my_tile(m, n, row, column);
    const int steps = (k + DEPTH - 1) / DEPTH;
    for (int step = 0; step < stages - 2; step++) {
        if (step < steps) copy_stage(shared + step * stage_bytes, a, b, row, column, step * DEPTH, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
    }
    for (int step = 0; step < steps; step++) {
        asm volatile("cp.async.wait_group %0;" ::"n"(stages - 3) : "memory");
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads what the copies wrote by another way
        __syncthreads();
        multiply_stage(shared + step % stages * stage_bytes, sums, step == 0);
        // Every warp had done with the product before the last when it came to the barrier: its stage may be filled.
        const int next = step + stages - 2;
        if (next < steps) copy_stage(shared + next % stages * stage_bytes, a, b, row, column, next * DEPTH, m, n, k);
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
    for (int i = 0; i < sums_count; i++)
        asm volatile("" : "+f"(sums[i])); // not read before
    store(c, sums, row, column, m, n);
}

#endif
