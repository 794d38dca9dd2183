"""c = a b in bf16 or f16 in the CuTe DSL, for compute capability 9.0: what scripts/pack-cute-dsl compiles.

Product is exported for tvm-ffi: its host part makes the descriptors of the tensor memory accelerator. PlainProduct copies without it, so that
its cubin takes addresses and numbers alone.
"""

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils.hopper_helpers as hopper
from cuda.bindings.driver import CUstream
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream, make_ptr
from cutlass.utils import LayoutEnum

TYPES = {"bf16": cutlass.BFloat16, "f16": cutlass.Float16}
BLOCK_K = 64
A_WAY = LayoutEnum.ROW_MAJOR


@cute.jit
def my_tile(stripe_rows, rows, columns):
    """Blocks that run at the same time share rows of a and columns of b: they go through c in stripes of rows of tiles."""
    block, _, _ = cute.arch.block_idx()
    stripe = stripe_rows * columns
    first = block // stripe * stripe_rows
    height = cutlass.min(rows - first, stripe_rows)
    return first + block % stripe % height, block % stripe // height


@cute.jit
def store(dtype: cutlass.Constexpr, sums, places, c):
    """What lies inside c, two neighbours at a time: n is even."""
    narrow = cute.make_rmem_tensor(sums.shape, dtype)
    narrow.store(sums.load().to(dtype))
    pairs = cute.recast_tensor(narrow, cutlass.Int32)
    for i in cutlass.range_constexpr(cute.size(pairs)):
        y, x = places[2 * i]
        if cute.elem_less((y, x), c.shape):
            at = c.iterator + (cutlass.Int64(y) * c.shape[1] + x)
            to = cute.make_tensor(cute.recast_ptr(at.align(4), dtype=cutlass.Int32), cute.make_layout(1))
            to[0] = pairs[i]


@cute.jit
def inside(places, limit):
    """Which of a thread's rows of copies lie inside; along the other axis all do."""
    rows = cute.make_rmem_tensor(
        cute.make_layout((places.shape[0][1], cute.size(places, mode=[1]), cute.size(places, mode=[2])),
                         stride=(cute.size(places, mode=[1]), 1, 0)), cutlass.Boolean)
    for v in cutlass.range_constexpr(rows.shape[0]):
        for i in cutlass.range_constexpr(rows.shape[1]):
            rows[v, i, 0] = places[(0, v), i, 0][0] < limit
    return rows


class Tiles:
    """What both have in common. a: [m, k], b: [k, n] or transposed [n, k], c: [m, n], their rows one after the other."""

    def __init__(self, dtype, transposed, config):
        self.dtype, self.transposed = TYPES[dtype], transposed
        self.tile = (config["block_m"], config["block_n"], BLOCK_K)
        self.stages, self.stripe_rows = config["stages"], config["stripe_rows"]
        self.groups = config["block_m"] // 64  # of 128 threads, with 64 rows each
        self.b_way = LayoutEnum.ROW_MAJOR if transposed else LayoutEnum.COL_MAJOR

    def view_b(self, b, n, k):
        """[n, k], wherever its columns lie."""
        return cute.make_tensor(b, cute.make_layout((n, k), stride=(k, 1) if self.transposed else (1, n)))

    def multiplication(self):
        return hopper.make_trivial_tiled_mma(
            self.dtype, self.dtype, A_WAY.sm90_mma_major_mode(), self.b_way.sm90_mma_major_mode(), cutlass.Float32,
            (self.groups, 1, 1), (64, self.tile[1]))

    def layouts(self):
        return (hopper.make_smem_layout_a(A_WAY, self.tile, self.dtype, self.stages),
                hopper.make_smem_layout_b(self.b_way, self.tile, self.dtype, self.stages))

    def sums_of(self, mine, shape, row, column):
        """A thread's sums, and where they stand in c."""
        places = mine.partition_C(cute.local_tile(cute.make_identity_tensor(shape), self.tile[:2], (row, column)))
        sums = cute.make_rmem_tensor(places.shape, cutlass.Float32)
        sums.fill(0.0)
        return sums, places


class Product(Tiles):
    """One warp fetches tiles, `stages` of them under way; the other warpgroups multiply them."""

    @cute.jit
    def __call__(self, a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: CUstream):
        block_m, block_n, _ = self.tile
        b = self.view_b(b.iterator, c.shape[1], a.shape[1])
        a_layout, b_layout = self.layouts()
        fetch = cpasync.CopyBulkTensorTileG2SOp()
        a_copy, a_far = cpasync.make_tiled_tma_atom(fetch, a, cute.slice_(a_layout, (None, None, 0)), (block_m, BLOCK_K))
        b_copy, b_far = cpasync.make_tiled_tma_atom(fetch, b, cute.slice_(b_layout, (None, None, 0)), (block_n, BLOCK_K))
        tiles = cute.ceil_div(c.shape[0], block_m) * cute.ceil_div(c.shape[1], block_n)
        self.kernel(self.multiplication(), a_copy, a_far, b_copy, b_far, c, a_layout, b_layout).launch(
            grid=(tiles, 1, 1), block=(128 * (self.groups + 1), 1, 1), stream=stream)

    @cute.kernel
    def kernel(self, multiply: cute.TiledMma, a_copy: cute.CopyAtom, a_far: cute.Tensor, b_copy: cute.CopyAtom,
               b_far: cute.Tensor, c: cute.Tensor, a_layout: cute.ComposedLayout, b_layout: cute.ComposedLayout):
        block_m, block_n, _ = self.tile
        thread, _, _ = cute.arch.thread_idx()
        warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
        row, column = my_tile(self.stripe_rows, cute.ceil_div(c.shape[0], block_m), cute.ceil_div(c.shape[1], block_n))

        @cute.struct
        class Shared:
            barriers: cute.struct.MemRange[cutlass.Int64, 2 * self.stages]
            a: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(a_layout)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(b_layout)], 1024]

        shared = cutlass.memory.SmemAllocator().allocate(Shared)
        a_near = shared.a.get_tensor(a_layout.outer, swizzle=a_layout.inner)
        b_near = shared.b.get_tensor(b_layout.outer, swizzle=b_layout.inner)
        line = pipeline.PipelineTmaAsync.create(
            barrier_storage=shared.barriers.data_ptr(), num_stages=self.stages,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4 * self.groups),  # a thread of each warp
            tx_count=(block_m + block_n) * BLOCK_K * 2, cta_layout_vmnk=cute.make_layout((1, 1, 1, 1)))
        a_tiles = cute.local_tile(a_far, (block_m, BLOCK_K), (row, None))
        b_tiles = cute.local_tile(b_far, (block_n, BLOCK_K), (column, None))
        one = cute.make_layout(1)
        a_to, a_from = cpasync.tma_partition(a_copy, 0, one, cute.group_modes(a_near, 0, 2), cute.group_modes(a_tiles, 0, 2))
        b_to, b_from = cpasync.tma_partition(b_copy, 0, one, cute.group_modes(b_near, 0, 2), cute.group_modes(b_tiles, 0, 2))
        steps = cute.size(a_tiles, mode=[2])

        if warp >= 4 * self.groups:
            cute.arch.setmaxregister_decrease(40)
            if warp == 4 * self.groups:
                filling = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, self.stages)
                for step in cutlass.range(steps, unroll=1):
                    line.producer_acquire(filling)
                    ready = line.producer_get_barrier(filling)
                    cute.copy(a_copy, a_from[None, step], a_to[None, filling.index], tma_bar_ptr=ready)
                    cute.copy(b_copy, b_from[None, step], b_to[None, filling.index], tma_bar_ptr=ready)
                    line.producer_commit(filling)
                    filling.advance()
                line.producer_tail(filling)
        else:
            cute.arch.setmaxregister_increase(232)
            mine = multiply.get_slice(thread)
            a_parts = multiply.make_fragment_A(mine.partition_A(a_near))
            b_parts = multiply.make_fragment_B(mine.partition_B(b_near))
            sums, places = self.sums_of(mine, c.shape, row, column)
            multiply.set(warpgroup.Field.ACCUMULATE, True)
            reading = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            done = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, self.stages)
            for step in cutlass.range(steps, unroll=1):
                line.consumer_wait(reading)
                warpgroup.fence()
                for depth in cutlass.range_constexpr(cute.size(a_parts, mode=[2])):
                    part = (None, None, depth, reading.index)
                    cute.gemm(multiply, sums, a_parts[part], b_parts[part], sums)
                warpgroup.commit_group()
                # The product before this one has been read by now: its stage may be filled again.
                warpgroup.wait_group(1)
                if step > 0:
                    line.consumer_release(done)
                    done.advance()
                reading.advance()
            warpgroup.wait_group(0)
            line.consumer_release(done)
            store(self.dtype, sums, places, c)


class PlainProduct(Tiles):
    """All threads copy and multiply in turn. k is a multiple of 64."""

    @cute.jit
    def __call__(self, a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32,
                 stream: CUstream):
        tiles = cute.ceil_div(m, self.tile[0]) * cute.ceil_div(n, self.tile[1])
        self.kernel(a, b, c, m, n, k).launch(grid=(tiles, 1, 1), block=(128 * self.groups, 1, 1), stream=stream)

    def copies(self):
        """Chunks of 16 bytes; neighbouring threads read neighbouring chunks of a row of memory."""
        one = cute.make_copy_atom(cpasync.CopyG2SOp(cache_mode=cpasync.LoadCacheMode.GLOBAL), self.dtype, num_bits_per_copy=128)
        lines = 16 * self.groups
        along_k = cute.make_tiled_copy_tv(one, cute.make_layout((lines, 8), stride=(8, 1)), cute.make_layout((1, 8)))
        along_n = cute.make_tiled_copy_tv(one, cute.make_layout((8, lines)), cute.make_layout((8, 1)))
        return along_k, along_k if self.transposed else along_n

    @cute.kernel
    def kernel(self, a: cute.Pointer, b: cute.Pointer, c: cute.Pointer, m: cutlass.Int32, n: cutlass.Int32, k: cutlass.Int32):
        block_m, block_n, _ = self.tile
        thread, _, _ = cute.arch.thread_idx()
        row, column = my_tile(self.stripe_rows, cute.ceil_div(m, block_m), cute.ceil_div(n, block_n))
        n, k = cute.assume(n, divby=8), cute.assume(k, divby=8)
        all_a = cute.make_tensor(a, cute.make_layout((m, k), stride=(k, 1)))
        all_b = self.view_b(b, n, k)
        all_c = cute.make_tensor(c, cute.make_layout((m, n), stride=(n, 1)))
        multiply = self.multiplication()
        a_layout, b_layout = self.layouts()

        @cute.struct
        class Shared:
            a: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(a_layout)], 1024]
            b: cute.struct.Align[cute.struct.MemRange[self.dtype, cute.cosize(b_layout)], 1024]

        shared = cutlass.memory.SmemAllocator().allocate(Shared)
        a_near = shared.a.get_tensor(a_layout.outer, swizzle=a_layout.inner)
        b_near = shared.b.get_tensor(b_layout.outer, swizzle=b_layout.inner)
        a_copy, b_copy = self.copies()
        a_mine, b_mine = a_copy.get_slice(thread), b_copy.get_slice(thread)
        a_from = a_mine.partition_S(cute.local_tile(all_a, (block_m, BLOCK_K), (row, None)))
        b_from = b_mine.partition_S(cute.local_tile(all_b, (block_n, BLOCK_K), (column, None)))
        a_to, b_to = a_mine.partition_D(a_near), b_mine.partition_D(b_near)
        a_inside = inside(a_mine.partition_S(cute.make_identity_tensor((block_m, BLOCK_K))), m - row * block_m)
        b_inside = inside(b_mine.partition_S(cute.make_identity_tensor((block_n, BLOCK_K))), n - column * block_n)
        steps = k // BLOCK_K

        mine = multiply.get_slice(thread)
        a_parts = multiply.make_fragment_A(mine.partition_A(a_near))
        b_parts = multiply.make_fragment_B(mine.partition_B(b_near))
        sums, places = self.sums_of(mine, all_c.shape, row, column)
        multiply.set(warpgroup.Field.ACCUMULATE, True)
        for step in cutlass.range_constexpr(self.stages - 1):
            if step < steps:
                cute.copy(a_copy, a_from[None, None, None, step], a_to[None, None, None, step], pred=a_inside)
                cute.copy(b_copy, b_from[None, None, None, step], b_to[None, None, None, step], pred=b_inside)
            cute.arch.cp_async_commit_group()
        for step in cutlass.range(steps, unroll=1):
            cute.arch.cp_async_wait_group(self.stages - 2)
            warpgroup.wait_group(0)
            cute.arch.fence_proxy("async.shared", space="cta")  # wgmma reads what the copies wrote by another way
            cute.arch.sync_threads()
            warpgroup.fence()
            for depth in cutlass.range_constexpr(cute.size(a_parts, mode=[2])):
                part = (None, None, depth, step % self.stages)
                cute.gemm(multiply, sums, a_parts[part], b_parts[part], sums)
            warpgroup.commit_group()
            # Where every warp has done with the step before.
            coming = step + self.stages - 1
            stage = coming % self.stages
            if coming < steps:
                cute.copy(a_copy, a_from[None, None, None, coming], a_to[None, None, None, stage], pred=a_inside)
                cute.copy(b_copy, b_from[None, None, None, coming], b_to[None, None, None, stage], pred=b_inside)
            cute.arch.cp_async_commit_group()
        warpgroup.wait_group(0)
        store(self.dtype, sums, places, all_c)


# The packs ------------------------------------------------------------------------------------------------------------

PlainProduct.kernel.set_name_prefix("matmul", remove_cutlass_symbol=True, keep_mangled_name=False)

# block_m, block_n, stages, stripe_rows
TILES = [(128, 256, 4, 8), (128, 128, 4, 8), (64, 128, 6, 8), (64, 64, 8, 1), (128, 256, 3, 8), (64, 256, 5, 8), (128, 64, 6, 8),
         (128, 128, 6, 16)]


def tensors(dtype, transposed):
    """Any m; rows of a, b and c begin at multiples of 16 bytes, as the tensor memory accelerator wants."""
    m, n, k = cute.sym_int(), cute.sym_int(divisibility=8), cute.sym_int(divisibility=8)

    def tensor(*shape):
        return make_fake_compact_tensor(TYPES[dtype], shape, stride_order=(1, 0), assumed_align=16)

    return tensor(m, k), tensor(n, k) if transposed else tensor(k, n), tensor(m, n), make_fake_stream()


def pointers(dtype):
    def pointer():
        return make_ptr(TYPES[dtype], 0, cute.AddressSpace.gmem, assumed_align=16)

    return pointer(), pointer(), pointer(), cutlass.Int32(0), cutlass.Int32(0), cutlass.Int32(0), make_fake_stream()


def condition_of(config):
    """Tiles that are much larger than the result are left to those that are not."""
    texts = [f"2 * {dim} > {config[block]}" for dim, block in (("m", "block_m"), ("n", "block_n")) if config[block] > 64]
    return " and ".join(texts)


def kernel_of(dtype, transposed, form, tiles):
    name = f"cute_dsl_{dtype}{'_transposed' if transposed else ''}"
    common = {
        "algorithm": "matmul",
        "signature": "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
                     f"where T in {dtype}",
        "align": 16,
        "when": condition_of,
        "configs": [dict(zip(("block_m", "block_n", "stages", "stripe_rows"), tile)) for tile in tiles],
    }
    wanted = f"n % 8 == 0 and m > 0 and n > 0 and k > 0 and {'' if transposed else 'not '}transpose_b"
    if form == "export":
        return {**common, "form": form, "name": name, "priority": 59, "arguments": ["a", "b", "c"],
                "condition": f"k % 8 == 0 and {wanted}", "function": lambda config: Product(dtype, transposed, config),
                "examples": lambda: tensors(dtype, transposed)}
    return {**common, "form": form, "name": name + "_cubin", "priority": 57,
            "arguments": ["a", "b", "c", "i32(m)", "i32(n)", "i32(k)"], "grid": "ceildiv(m, block_m) * ceildiv(n, block_n)",
            "block": "2 * block_m", "shared": f"stages * (block_m + block_n) * {2 * BLOCK_K}",
            "condition": f"k % {BLOCK_K} == 0 and {wanted}", "function": lambda config: PlainProduct(dtype, transposed, config),
            "examples": lambda: pointers(dtype)}


KERNELS = [kernel_of("bf16", False, "export", TILES), kernel_of("bf16", True, "export", TILES[:4]),
           kernel_of("f16", False, "export", TILES[:4]), kernel_of("bf16", False, "cubin", TILES[:4])]
