// c = a b in bf16 or f16 with the tensor cores of compute capability 9.0 (wgmma), in CuTe. Asynchronous copies fill
// `stages` tiles ahead. Rows outside the matrices are not read; the old contents of their shared memory affect only
// results that are not written.
#include <cute/tensor.hpp>

#if defined(hone_a_bf16)
typedef cute::bfloat16_t element;
#define TYPE "bf16"
#else
typedef cute::half_t element;
#define TYPE "f16"
#endif

using namespace cute;

enum { warpgroups = block_m / 64, threads = 128 * warpgroups, chunk = 8 };

using deep = Int<block_k>;
using a_layout = decltype(tile_to_shape(GMMA::Layout_K_SW128_Atom<element>{}, Shape<Int<block_m>, deep, Int<stages>>{}));
#if TRANSPOSE_B
using b_atom = GMMA::Layout_K_SW128_Atom<element>;
using b_major = integral_constant<GMMA::Major, GMMA::Major::K>;
#else
using b_atom = GMMA::Layout_MN_SW128_Atom<element>;
using b_major = integral_constant<GMMA::Major, GMMA::Major::MN>;
#endif
using b_layout = decltype(tile_to_shape(b_atom{}, Shape<Int<block_n>, deep, Int<stages>>{}));

using copy_one = Copy_Atom<SM80_CP_ASYNC_CACHEGLOBAL<uint128_t>, element>;
// Adjacent threads read adjacent chunks of a row of memory.
using along_k = decltype(make_tiled_copy(
    copy_one{}, Layout<Shape<Int<threads / 8>, _8>, Stride<_8, _1>>{}, Layout<Shape<_1, Int<chunk>>>{}));
using along_n = decltype(make_tiled_copy(copy_one{}, Layout<Shape<_8, Int<threads / 8>>>{}, Layout<Shape<Int<chunk>, _1>>{}));
#if TRANSPOSE_B
using copy_b_way = along_k;
#else
using copy_b_way = along_n;
#endif

using mma_way = decltype(make_tiled_mma(
    GMMA::ss_op_selector<element, element, float, Shape<Int<block_m>, Int<block_n>, deep>, GMMA::Major::K, b_major::value>(),
    Layout<Shape<Int<warpgroups>, _1, _1>>{}));

// Blocks cover c in stripes of `stripe_rows` rows of tiles, so that blocks that run at the same time share rows of a
// and columns of b.
__device__ void my_tile(int m, int n, int &row, int &column)
{
    const int rows = (m + block_m - 1) / block_m, columns = (n + block_n - 1) / block_n, stripe = stripe_rows * columns;
    const int first = blockIdx.x / stripe * stripe_rows, height = ::min(rows - first, (int)stripe_rows);
    row = first + blockIdx.x % stripe % height;
    column = blockIdx.x % stripe / height;
}

// Which rows of a thread's copies lie inside the matrix. Positions along the other axis are not checked.
template <class Coordinates> __device__ auto inside(const Coordinates &at, int limit)
{
    auto rows = make_tensor<bool>(make_shape(size<1>(at), size<2>(at)), Stride<_1, Int<0>>{});
    CUTE_UNROLL
    for (int i = 0; i < size<1>(at); i++)
        rows(i, 0) = get<0>(at(0, i, 0)) < limit;
    return rows;
}

template <class Sums, class Coordinates>
__device__ void store(element *c, const Sums &sums, const Coordinates &at, int m, int n)
{
    CUTE_UNROLL
    for (int i = 0; i < size(sums); i += 2) {
        const int y = get<0>(at(i)), x = get<1>(at(i));
        unsigned both;
        asm("cvt.rn." TYPE "x2.f32 %0, %1, %2;" : "=r"(both) : "f"(sums(i + 1)), "f"(sums(i)));
        if (y < m && x < n) *reinterpret_cast<unsigned *>(c + (long long)y * n + x) = both;
    }
}

extern "C" __global__ void __launch_bounds__(threads)
    matmul(const element *a, const element *b, element *c, int m, int n, int k)
{
    extern __shared__ __align__(1024) unsigned char memory[];
    const auto all_a = make_tensor(make_gmem_ptr(a), make_shape(m, k), make_stride(k, _1{}));
#if TRANSPOSE_B
    const auto all_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(k, _1{}));
#else
    const auto all_b = make_tensor(make_gmem_ptr(b), make_shape(n, k), make_stride(_1{}, n));
#endif
    int row, column;
    my_tile(m, n, row, column);
    const auto tile_a = local_tile(all_a, Shape<Int<block_m>, deep>{}, make_coord(row, _));
    const auto tile_b = local_tile(all_b, Shape<Int<block_n>, deep>{}, make_coord(column, _));
    element *const shared = reinterpret_cast<element *>(memory);
    const auto shared_a = make_tensor(make_smem_ptr(shared), a_layout{});
    const auto shared_b = make_tensor(make_smem_ptr(shared + cosize_v<a_layout>), b_layout{});

    const auto copy_a = along_k{}.get_slice(threadIdx.x);
    const auto copy_b = copy_b_way{}.get_slice(threadIdx.x);
    const auto from_a = copy_a.partition_S(tile_a);
    auto to_a = copy_a.partition_D(as_position_independent_swizzle_tensor(shared_a));
    const auto from_b = copy_b.partition_S(tile_b);
    auto to_b = copy_b.partition_D(as_position_independent_swizzle_tensor(shared_b));
    const auto in_a =
        inside(copy_a.partition_S(make_identity_tensor(Shape<Int<block_m>, deep>{})), m - row * block_m);
    const auto in_b =
        inside(copy_b.partition_S(make_identity_tensor(Shape<Int<block_n>, deep>{})), n - column * block_n);

    const auto mine = mma_way{}.get_slice(threadIdx.x);
    const auto a_parts = mine.make_fragment_A(mine.partition_A(shared_a));
    const auto b_parts = mine.make_fragment_B(mine.partition_B(shared_b));
    auto sums = partition_fragment_C(mma_way{}, Shape<Int<block_m>, Int<block_n>>{});
    clear(sums);

    const int steps = k / block_k;
    const auto fetch = [&](int step) {
        if (step < steps) {
            copy_if(along_k{}, in_a, from_a(_, _, _, step), to_a(_, _, _, step % stages));
            copy_if(copy_b_way{}, in_b, from_b(_, _, _, step), to_b(_, _, _, step % stages));
        }
        cp_async_fence();
    };
    for (int step = 0; step < stages - 1; step++)
        fetch(step);
    mma_way multiply;
    for (int step = 0; step < steps; step++) {
        cp_async_wait<stages - 2>();
        warpgroup_wait<0>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); // wgmma reads shared memory through the async proxy
        __syncthreads();
        warpgroup_fence_operand(sums);
        warpgroup_arrive();
        gemm(multiply, a_parts(_, _, _, step % stages), b_parts(_, _, _, step % stages), sums);
        warpgroup_commit_batch();
        fetch(step + stages - 1); // into the stage that every warp has finished with
    }
    warpgroup_wait<0>();
    warpgroup_fence_operand(sums);
    const auto places = mine.partition_C(local_tile(
        make_identity_tensor(make_shape(m, n)), Shape<Int<block_m>, Int<block_n>>{}, make_coord(row, column)));
    store(c, sums, places, m, n);
}
