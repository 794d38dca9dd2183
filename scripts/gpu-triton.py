"""What Triton brings to the contests with FlashInfer's kernels (scripts/gpu, part ffi): for scripts/pack-triton."""

import triton
import triton.language as tl


@triton.jit
def layer_norm(x, weight, bias, y, rows, dim, eps, offset, BLOCK: tl.constexpr):
    """A row is held as a whole."""
    row = tl.program_id(0).to(tl.int64) * dim
    column = tl.arange(0, BLOCK)
    inside = column < dim
    values = tl.load(x + row + column, mask=inside, other=0.0).to(tl.float32)
    centred = tl.where(inside, values - tl.sum(values, axis=0) / dim, 0.0)
    factor = tl.rsqrt(tl.sum(centred * centred, axis=0) / dim + eps)
    scale = tl.load(weight + column, mask=inside, other=0.0)
    shift = tl.load(bias + column, mask=inside, other=0.0)
    tl.store(y + row + column, (centred * factor * (scale + offset) + shift).to(y.dtype.element_ty), mask=inside)


@triton.jit
def silu_and_mul(x, y, rows, wide, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = column < wide
    gate = tl.load(x + 2 * row * wide + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x + (2 * row + 1) * wide + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + row * wide + column, (gate * tl.sigmoid(gate) * up).to(y.dtype.element_ty), mask=inside)


@triton.jit
def softmax(x, y, rows, dim, scale, BLOCK: tl.constexpr):
    """A row is read twice: the largest and the sum, then the results."""
    row = tl.program_id(0).to(tl.int64) * dim
    column = tl.arange(0, BLOCK)
    most = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, dim, BLOCK):
        values = tl.load(x + row + first + column, mask=first + column < dim, other=-float("inf")) * scale
        higher = tl.maximum(most, values)
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        total = total * tl.exp(most - safe) + tl.exp(values - safe)
        most = higher
    largest = tl.max(most, axis=0)
    total = tl.sum(total * tl.exp(most - largest), axis=0)
    for first in range(0, dim, BLOCK):
        inside = first + column < dim
        values = tl.load(x + row + first + column, mask=inside, other=0.0) * scale
        tl.store(y + row + first + column, tl.exp(values - largest) / total, mask=inside)


@triton.jit
def decode(query, key, value, out, kv_len, heads, kv_heads, scale, BLOCK: tl.constexpr, DIM: tl.constexpr):
    """One query a head, over all keys."""
    head = tl.program_id(0)
    from_head = head // (heads // kv_heads)
    dim = tl.arange(0, DIM)
    q = tl.load(query + head * DIM + dim).to(tl.float32) * scale
    most = -float("inf")
    total = 0.0
    sums = tl.zeros((DIM,), tl.float32)
    for first in range(0, kv_len, BLOCK):
        at = first + tl.arange(0, BLOCK)
        inside = at < kv_len
        where = (at[:, None].to(tl.int64) * kv_heads + from_head) * DIM + dim[None, :]
        k = tl.load(key + where, mask=inside[:, None], other=0.0).to(tl.float32)
        scores = tl.where(inside, tl.sum(k * q[None, :], axis=1), -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=0))
        weights = tl.exp(scores - higher)
        fade = tl.exp(most - higher)
        v = tl.load(value + where, mask=inside[:, None], other=0.0).to(tl.float32)
        sums = sums * fade + tl.sum(v * weights[:, None], axis=0)
        total = total * fade + tl.sum(weights, axis=0)
        most = higher
    tl.store(out + head * DIM + dim, (sums / total).to(out.dtype.element_ty))


def configs(names, *values):
    return [dict(zip(names, one)) for one in values]


# As in the pack of FlashInfer, which has the reference.
ALGORITHMS = [{"signature": "silu_and_mul(x: T[rows, 2, wide]) -> y: T[rows, wide] where T in f16, bf16"}]

KERNELS = [
    {"function": layer_norm, "algorithm": "layer_norm", "name": "triton_layer_norm_bf16",
     "signature": "layer_norm(x: T[..., dim], weight: W[dim], bias: B[dim], *, subtract_mean: bool = true, eps: f64 = 1e-06 #any, "
                  "weight_offset: f64 = 0.0 #any) -> y: T[..., dim] where T in bf16 where W in f32 where B in f32",
     "arguments": {"x": ("*bf16", "x"), "weight": ("*fp32", "weight"), "bias": ("*fp32", "bias"), "y": ("*bf16", "y"),
                   "rows": ("i32", "x.size / max(dim, 1)"), "dim": ("i32", "dim"), "eps": ("fp32", "eps"), "offset": ("fp32", "weight_offset")},
     "divisible": ["x", "weight", "bias", "y", "dim"], "condition": "x.size > 0 and subtract_mean",
     "when": lambda config: f"dim <= {config['BLOCK']} and 4 * dim > {config['BLOCK']}", "grid": "x.size / max(dim, 1)",
     "configs": configs(("BLOCK", "num_warps"), (1024, 4), (2048, 4), (4096, 4), (4096, 8), (4096, 16), (8192, 8), (8192, 16))},
    {"function": silu_and_mul, "algorithm": "silu_and_mul", "name": "triton_silu_and_mul_bf16",
     "signature": "silu_and_mul(x: T[rows, 2, wide]) -> y: T[rows, wide] where T in bf16",
     "arguments": {"x": ("*bf16", "x"), "y": ("*bf16", "y"), "rows": ("i32", "rows"), "wide": ("i32", "wide")},
     "divisible": ["x", "y", "wide"], "condition": "rows > 0 and wide > 0", "when": lambda config: f"4 * wide > {config['BLOCK']}",
     "grid": "rows, ceildiv(wide, BLOCK)",
     "configs": configs(("BLOCK", "num_warps"), (1024, 4), (2048, 4), (2048, 8), (4096, 8))},
    {"function": softmax, "algorithm": "softmax", "name": "triton_softmax_f32",
     "signature": "softmax(x: T[..., dim], *, scale: f64 = 1.0 #any) -> y: T[..., dim] where T in f32",
     "arguments": {"x": ("*fp32", "x"), "y": ("*fp32", "y"), "rows": ("i32", "x.size / max(dim, 1)"), "dim": ("i32", "dim"),
                   "scale": ("fp32", "scale")},
     "divisible": ["x", "y", "dim"], "condition": "x.size > 0 and scale > 0", "when": lambda config: f"4 * dim > {config['BLOCK']}",
     "grid": "x.size / max(dim, 1)",
     "configs": configs(("BLOCK", "num_warps"), (1024, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16), (32768, 32))},
    {"function": decode, "algorithm": "scaled_dot_product_attention", "name": "triton_decode_bf16",
     "signature": "scaled_dot_product_attention(query: T[batch, seq_len, heads, dim], key: T[batch, kv_len ~pow2, kv_heads, dim], "
                  "value: T[batch, kv_len, kv_heads, dim], *, causal: bool = false, softmax_scale: f64 = 1 / sqrt(dim) #any, "
                  "sliding_window: i64? = none) -> out: T[batch, seq_len, heads, dim] where T in bf16 where heads % kv_heads == 0",
     "arguments": {"query": ("*bf16", "query"), "key": ("*bf16", "key"), "value": ("*bf16", "value"), "out": ("*bf16", "out"),
                   "kv_len": ("i32", "kv_len"), "heads": ("i32", "heads"), "kv_heads": ("i32", "kv_heads"), "scale": ("fp32", "softmax_scale")},
     "divisible": ["query", "key", "value", "out"],
     "condition": "batch == 1 and seq_len == 1 and dim == 128 and not causal and sliding_window == none",
     "when": lambda config: "dim == 128", "constants": {"DIM": 128}, "grid": "heads",
     "configs": configs(("BLOCK", "num_warps"), (32, 4), (64, 4), (64, 8), (128, 8))},
]
