"""c = a b in CuTe, cute_gemm.cu: what scripts/pack-cute compiles."""

import pathlib

SOURCE = pathlib.Path(__file__).with_name("cute_gemm.cu")

# block_m, block_n, stages, stripe_rows
TILES = [(128, 128, 4, 8), (128, 256, 4, 8), (64, 128, 6, 8), (64, 64, 8, 1), (128, 256, 3, 8), (64, 256, 5, 8), (128, 64, 6, 8),
         (128, 128, 6, 16)]

SPACE = "\n".join([
    "block_m: 64 | 128 default 128",
    "block_n: 64 | 128 | 256 default 128",
    "block_k: 64",
    "stages: 3..8 default 4",
    "stripe_rows: 1 | 8 | 16 default 8",
    "where stages * (block_m + block_n) * block_k * 2 <= device.smem_bytes",
])


def kernel_of(dtype, transposed, tiles):
    return {
        "source": SOURCE,
        "algorithm": "matmul",
        "name": f"cute_{dtype}{'_transposed' if transposed else ''}",
        "signature": "matmul(a: T[m, k], b: T[n, k] if transpose_b else [k, n], *, transpose_b: bool = false) -> c: T[m, n] "
                     f"where T in {dtype}",
        "priority": 58,
        "align": 16,
        "entry": "matmul",
        "arguments": ["a", "b", "c", "i32(m)", "i32(n)", "i32(k)"],
        "grid": "ceildiv(m, block_m) * ceildiv(n, block_n)",
        "block": "2 * block_m",
        "shared": "stages * (block_m + block_n) * block_k * 2",
        "condition": f"k % 64 == 0 and n % 8 == 0 and m > 0 and n > 0 and k > 0 and {'' if transposed else 'not '}transpose_b",
        "constants": "TRANSPOSE_B = transpose_b",
        "macros": {f"hone_a_{dtype}": 1, "TRANSPOSE_B": int(transposed)},
        "space": SPACE,
        "configs": [dict(zip(("block_m", "block_n", "block_k", "stages", "stripe_rows"), (m, n, 64, stages, rows)))
                    for m, n, stages, rows in tiles],
    }


KERNELS = [kernel_of("bf16", False, TILES), kernel_of("bf16", True, TILES[:2]), kernel_of("f16", False, TILES[:2])]
