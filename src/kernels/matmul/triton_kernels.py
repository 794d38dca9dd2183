"""c = a b in Triton: what scripts/pack-triton compiles."""

import triton
import triton.language as tl


@triton.jit
def tile_of(pid, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    """Programs that run at the same time share rows of a and columns of b: c is gone through in stripes of GROUP rows of tiles."""
    rows = tl.cdiv(m, BLOCK_M)
    columns = tl.cdiv(n, BLOCK_N)
    first = pid // (GROUP * columns) * GROUP
    height = min(rows - first, GROUP)
    inside = pid % (GROUP * columns)
    return first + inside % height, inside // height


@triton.jit
def matmul(a, b, c, m, n, k, TRANSPOSE_B: tl.constexpr, PRECISION: tl.constexpr, BLOCK_M: tl.constexpr,
           BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr):
    row, column = tile_of(tl.program_id(0), m, n, BLOCK_M, BLOCK_N, GROUP)
    # What lies outside is read from inside, and not written.
    y = (row * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    x = (column * BLOCK_N + tl.arange(0, BLOCK_N)).to(tl.int64)
    z = tl.arange(0, BLOCK_K)
    a_at = a + (y % m)[:, None] * k + z[None, :]
    if TRANSPOSE_B:
        b_at = b + (x % n)[None, :] * k + z[:, None]
        b_step = BLOCK_K
    else:
        b_at = b + z[:, None].to(tl.int64) * n + tl.max_contiguous(tl.multiple_of(x % n, 8), 8)[None, :]
        b_step = BLOCK_K * n
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for left in range(k, 0, -BLOCK_K):
        if EVEN_K:
            one = tl.load(a_at)
            two = tl.load(b_at)
        else:
            one = tl.load(a_at, mask=z[None, :] < left, other=0.0)
            two = tl.load(b_at, mask=z[:, None] < left, other=0.0)
        total = tl.dot(one, two, total, input_precision=PRECISION)
        a_at += BLOCK_K
        b_at += b_step
    tl.store(c + y[:, None] * n + x[None, :], total.to(c.dtype.element_ty), mask=(y[:, None] < m) & (x[None, :] < n))


HALF = [(16, 32, 128, 4, 4, 1), (16, 64, 128, 4, 5, 1), (16, 64, 256, 4, 3, 1), (32, 64, 128, 4, 4, 1), (64, 32, 128, 4, 4, 1),
        (64, 64, 64, 4, 4, 1), (64, 64, 128, 4, 4, 8), (64, 128, 64, 4, 4, 8), (128, 64, 64, 4, 4, 8), (128, 128, 64, 4, 4, 8),
        (128, 128, 64, 8, 3, 8), (128, 128, 128, 8, 3, 8), (128, 256, 64, 8, 3, 8), (128, 256, 64, 8, 4, 8),
        (256, 128, 64, 8, 3, 8), (64, 256, 64, 8, 4, 8), (128, 256, 64, 8, 3, 16)]
SINGLE = [(32, 32, 32, 4, 3, 1), (64, 64, 32, 4, 3, 8), (64, 128, 32, 4, 3, 8), (128, 128, 32, 8, 3, 8), (128, 128, 16, 8, 4, 8),
          (128, 64, 32, 4, 4, 8)]


def configs_of(tiles, even):
    names = ("BLOCK_M", "BLOCK_N", "BLOCK_K", "num_warps", "num_stages", "GROUP")
    return [{**dict(zip(names, tile)), "EVEN_K": even} for tile in tiles]


# Tiles that are much larger than the result are left to those that are not; and what EVEN_K means.
def condition_of(config):
    texts = [f"k % {config['BLOCK_K']} == 0"] if config["EVEN_K"] else []
    if config["BLOCK_M"] > 16:
        texts.append(f"2 * m > {config['BLOCK_M']}")
    if config["BLOCK_N"] > 32:
        texts.append(f"2 * n > {config['BLOCK_N']}")
    return " and ".join(texts + ["m > 0 and n > 0"])


def kernel_of(dtype, triton_type, precision, transposed, configs):
    b = "T[n, k]" if transposed else "T[k, n]"
    return {
        "function": matmul,
        "algorithm": "matmul",
        "name": f"triton_{dtype}{'_' + precision if dtype == 'f32' else ''}{'_transposed' if transposed else ''}",
        "signature": "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
                     f"where T in {dtype}",
        "arguments": {"a": (f"*{triton_type}", "a"), "b": (f"*{triton_type}", "b"), "c": (f"*{triton_type}", "c"),
                      "m": ("i32", "m"), "n": ("i32", "n"), "k": ("i32", "k")},
        "divisible": ["a", "b", "c", "n", "k"],
        "constants": {"TRANSPOSE_B": transposed, "PRECISION": precision},
        "condition": "transpose_b" if transposed else "not transpose_b",
        "when": condition_of,
        "grid": "ceildiv(m, BLOCK_M) * ceildiv(n, BLOCK_N)",
        "configs": configs,
    }


HALF_CONFIGS = configs_of(HALF, True) + configs_of(HALF[4:6], False)
SINGLE_CONFIGS = configs_of(SINGLE, True) + configs_of(SINGLE[1:2], False)

KERNELS = [
    kernel_of("bf16", "bf16", "ieee", False, HALF_CONFIGS),
    kernel_of("bf16", "bf16", "ieee", True, HALF_CONFIGS),
    kernel_of("f16", "fp16", "ieee", False, HALF_CONFIGS),
    kernel_of("f32", "fp32", "ieee", False, SINGLE_CONFIGS),
    # Three products of the tensor cores in place of one in single precision: as exact, within a few bits.
    kernel_of("f32", "fp32", "tf32x3", False, SINGLE_CONFIGS),
]
