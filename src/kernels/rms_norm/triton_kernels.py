"""y = x / sqrt(mean(x^2) + eps) * weight in Triton: what scripts/pack-triton compiles."""

import triton
import triton.language as tl


@triton.jit
def rms_norm_whole(x, weight, y, rows, dim, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """ROWS rows at a time, held as a whole."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = (row[:, None] < rows) & (column[None, :] < dim)
    at = row[:, None] * dim + column[None, :]
    values = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    factor = tl.rsqrt(tl.sum(values * values, axis=1) / dim + eps)
    scale = tl.load(weight + column, mask=column < dim, other=0.0).to(tl.float32)
    tl.store(y + at, (values * factor[:, None] * scale[None, :]).to(y.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm_twice(x, weight, y, rows, dim, eps, BLOCK: tl.constexpr):
    """A row that is too long to be held is read twice."""
    row = tl.program_id(0).to(tl.int64) * dim
    column = tl.arange(0, BLOCK)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for first in range(0, dim, BLOCK):
        values = tl.load(x + row + first + column, mask=first + column < dim, other=0.0).to(tl.float32)
        squares += values * values
    factor = tl.rsqrt(tl.sum(squares, axis=0) / dim + eps)
    for first in range(0, dim, BLOCK):
        inside = first + column < dim
        values = tl.load(x + row + first + column, mask=inside, other=0.0).to(tl.float32)
        scale = tl.load(weight + first + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row + first + column, (values * factor * scale).to(y.dtype.element_ty), mask=inside)


WHOLE = [(4, 256, 4), (1, 1024, 4), (2, 1024, 4), (4, 1024, 4), (4, 1024, 8), (1, 2048, 4), (2, 2048, 8), (1, 4096, 4), (1, 4096, 8),
         (1, 4096, 16), (2, 4096, 16), (1, 8192, 8), (1, 8192, 16), (1, 16384, 16), (1, 16384, 32)]
TWICE = [(1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 8), (8192, 16), (8192, 32), (16384, 32)]


def kernel_of(function, way, dtype, triton_type, configs, when, grid):
    return {
        "function": function,
        "algorithm": "rms_norm",
        "name": f"triton_{way}_{dtype}",
        "signature": f"rms_norm(x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-6) -> y: T[..., dim] where T in {dtype}",
        "arguments": {"x": (f"*{triton_type}", "x"), "weight": (f"*{triton_type}", "weight"), "y": (f"*{triton_type}", "y"),
                      "rows": ("i32", "x.size / max(dim, 1)"), "dim": ("i32", "dim"), "eps": ("fp32", "eps")},
        "divisible": ["x", "weight", "y", "dim"],
        "condition": "x.size > 0",
        "when": when,
        "grid": grid,
        "configs": configs,
    }


def kernels_of(dtype, triton_type):
    whole = [dict(zip(("ROWS", "BLOCK", "num_warps"), config)) for config in WHOLE]
    twice = [dict(zip(("BLOCK", "num_warps"), config)) for config in TWICE]
    return [
        kernel_of(rms_norm_whole, "whole", dtype, triton_type, whole,
                  lambda config: f"dim <= {config['BLOCK']} and 4 * dim > {config['BLOCK']}",
                  "ceildiv(x.size / max(dim, 1), ROWS)"),
        kernel_of(rms_norm_twice, "twice", dtype, triton_type, twice, lambda config: f"dim > {config['BLOCK']}",
                  "x.size / max(dim, 1)"),
    ]


KERNELS = kernels_of("bf16", "bf16") + kernels_of("f32", "fp32") + kernels_of("f16", "fp16")
