"""A program with a kernel of the CuTe DSL: `tune` compiles it, `check` finds it compiled. Both print what of it is registered."""

import sys

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream

import hone
import hone.kernels

LANES = 32


@cute.kernel
def rows(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, eps: cutlass.Float32):
    """A warp a row."""
    lane, _, _ = cute.arch.thread_idx()
    row, _, _ = cute.arch.block_idx()
    total = cutlass.Float32(0.0)
    for at in range(lane, x.shape[1], LANES):
        value = x[row, at].to(cutlass.Float32)
        total += value * value
    total = cute.arch.warp_reduction_sum(total)
    factor = cute.math.rsqrt(total / cutlass.Float32(x.shape[1]) + eps)
    for at in range(lane, x.shape[1], LANES):
        y[row, at] = (x[row, at].to(cutlass.Float32) * factor * weight[at].to(cutlass.Float32)).to(y.element_type)


@hone.kernel("rms_norm", name="warps", space="unroll: 1 | 2", divisible={"dim": 4}, condition="x.size > 0", arguments={"out": "y"})
@cute.jit
def norm(x: cute.Tensor, weight: cute.Tensor, out: cute.Tensor, eps: cutlass.Float32, unroll: cutlass.Constexpr, stream: CUstream):
    rows(x, weight, out, eps).launch(grid=(x.shape[0], 1, 1), block=(LANES, 1, 1), stream=stream)


if __name__ == "__main__":
    if sys.argv[1] == "check":
        cute.compile = None
    else:
        for dtype in ("f32", "bf16"):
            try:
                print(hone.tune(f"rms_norm({dtype}[8,64], {dtype}[64]) @cuda:0", kernel=f"warps_{dtype}_2d", seconds=6, evaluations=2, progress=False))
            except hone.HoneError as error:
                print(type(error).__name__, error)
    for one in hone.kernels.registered():
        print("registered", one.name, one.folder)
