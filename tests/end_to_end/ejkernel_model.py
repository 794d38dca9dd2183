"""Lowers whole models that call the real ejkernel, as EasyDeL writes them: python ejkernel_model.py FOLDER, with EJKERNEL_OPS_STAMP=hash.

Llama's layers are a scan, its answer is prefill and then a loop of decoding steps. Gemma's layers alternate windows, with norms of queries and
keys, a soft cap, bf16. Writes NAME.mlir and NAME.hlo. A helper of test_models.
"""

import dataclasses
import functools
import math
import os
import pathlib
import sys

os.environ["EJKERNEL_AUTOTUNE_POLICY"] = "heuristics"  # its own blocks are not what is looked at
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy
from ejkernel.modules import attention, flash_attention, mean_pooling, scaled_dot_product_attention
from ejkernel.types.mask import MaskInfo
from jax import lax
from jax.sharding import Mesh, PartitionSpec

BATCH, PROMPT, STEPS, ROOM = 2, 24, 5, 32


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 3
    heads: int = 4
    kv_heads: int = 2
    head_dim: int = 128
    hidden: int = 32
    inner: int = 48
    vocabulary: int = 64
    dtype: object = jnp.float32
    windows: tuple = (None,)
    soft_cap: float | None = None
    norms_queries: bool = False
    attends: object = None  # q, k, v and what is said -> the layer's attention, in place of a plain one


LLAMA = Config()
GEMMA = Config(layers=4, kv_heads=1, head_dim=64, dtype=jnp.bfloat16, windows=((8, 0), None), soft_cap=50.0, norms_queries=True)


def norm(x, weight):
    wide = x.astype(jnp.float32)
    return (wide * lax.rsqrt((wide * wide).mean(-1, keepdims=True) + 1e-6)).astype(x.dtype) * weight


def rotate(x, positions):
    half = x.shape[-1] // 2
    angles = positions[:, :, None, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin, a, b = jnp.cos(angles).astype(x.dtype), jnp.sin(angles).astype(x.dtype), x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], -1)


def attend(config, q, k, v, window, **more):
    said = {"sliding_window": window, "logits_soft_cap": config.soft_cap}
    attends = config.attends or flash_attention
    return attends(q, k, v, softmax_scale=1 / math.sqrt(config.head_dim), **{n: x for n, x in said.items() if x is not None}, **more)


def layer(config, x, w, positions, window=None, cache=None):
    def heads(y, count):
        return y.reshape(*y.shape[:2], count, config.head_dim)

    h = norm(x, w["norm"])
    q, k, v = heads(h @ w["q"], config.heads), heads(h @ w["k"], config.kv_heads), heads(h @ w["v"], config.kv_heads)
    if config.norms_queries:
        q, k = norm(q, w["q_norm"]), norm(k, w["q_norm"])
    q, k = rotate(q, positions), rotate(k, positions)
    if cache is None:
        out, cache = attend(config, q, k, v, window, causal=True), (k, v)
    else:
        at = positions[0, 0]
        cache = tuple(lax.dynamic_update_slice_in_dim(old, new, at, 1) for old, new in zip(cache, (k, v)))
        out = attend(config, q, *cache, window)
    x = x + out.reshape(*x.shape[:2], -1) @ w["o"]
    h = norm(x, w["norm_inner"])
    return x + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"], cache


def weights(c):
    wide = c.heads * c.head_dim
    shapes = {"norm": (c.hidden,), "norm_inner": (c.hidden,), "q_norm": (c.head_dim,), "q": (c.hidden, wide), "o": (wide, c.hidden),
              "k": (c.hidden, c.kv_heads * c.head_dim), "v": (c.hidden, c.kv_heads * c.head_dim),
              "gate": (c.hidden, c.inner), "up": (c.hidden, c.inner), "down": (c.inner, c.hidden)}
    layers = {name: jax.ShapeDtypeStruct((c.layers, *shape), c.dtype) for name, shape in shapes.items()}
    return {"embed": jax.ShapeDtypeStruct((c.vocabulary, c.hidden), c.dtype), "layers": layers}


def places(tokens):
    return jnp.broadcast_to(jnp.arange(tokens.shape[1]), tokens.shape)


def prefill(config, w, tokens):
    step = lambda x, one: layer(config, x, one, places(tokens))
    x, cache = lax.scan(step, w["embed"][tokens], w["layers"])
    return x @ w["embed"].T, cache


def answer(config, w, tokens):
    logits, cache = prefill(config, w, tokens)
    cache = jax.tree.map(lambda a: jnp.pad(a, ((0, 0), (0, 0), (0, ROOM - a.shape[2]), (0, 0), (0, 0))), cache)

    def decode(i, state):
        token, cache = state
        positions = jnp.full(token.shape, tokens.shape[1] + i)
        step = lambda x, one: layer(config, x, one[0], positions, cache=one[1])
        x, cache = lax.scan(step, w["embed"][token], (w["layers"], cache))
        return (x @ w["embed"].T).argmax(-1).astype(token.dtype), cache
    return lax.fori_loop(0, STEPS, decode, (logits[:, -1:].argmax(-1).astype(tokens.dtype), cache))[0]


def train(config, w, tokens):
    """A step of training: the layers' values are computed again for the gradient."""
    def loss(w):
        step = jax.checkpoint(lambda x, one: (layer(config, x, one, places(tokens))[0], None))
        return (lax.scan(step, w["embed"][tokens], w["layers"])[0] @ w["embed"].T).mean()
    return jax.value_and_grad(loss)(w)


def each(config, w, tokens):
    """Requests of different users, one by one under vmap."""
    return jax.vmap(lambda one: prefill(config, w, one[None])[0])(tokens)


def embed(config, w, tokens):
    """Layers one after the other; what a text means is the mean of what its parts do."""
    x = w["embed"][tokens]
    for i in range(config.layers):
        one = jax.tree.map(lambda a: a[i], w["layers"])
        x, _ = layer(config, x, one, places(tokens), config.windows[i % len(config.windows)])
    pooled = x.reshape(*x.shape[:2], 1, -1)
    return mean_pooling(scaled_dot_product_attention(pooled, pooled, pooled)[:, :, 0], chunk_size=8)


def part(q, k, v, **said):
    """Rows and heads on devices of their own."""
    mesh, parts = Mesh(numpy.array(jax.devices()).reshape(2, 2), ("rows", "heads")), PartitionSpec("rows", None, "heads")
    one = functools.partial(flash_attention, **said)
    return jax.shard_map(one, mesh=mesh, in_specs=(parts,) * 3, out_specs=parts, check_vma=False)(q, k, v)


def padded(q, k, v, **said):
    mask = jnp.broadcast_to(jnp.arange(k.shape[1]) < k.shape[1] - 3, (q.shape[0], 1, q.shape[1], k.shape[1]))
    return attention(q, k, v, mask_info=MaskInfo.from_attention_mask(mask), dtype=q.dtype, **said)[0]


def lower(folder, name, function, config, length=PROMPT):
    tokens = jax.ShapeDtypeStruct((BATCH, length), jnp.int32)
    lowered = jax.jit(functools.partial(function, config)).lower(weights(config), tokens)
    (folder / f"{name}.mlir").write_text(lowered.as_text(debug_info=True))
    (folder / f"{name}.hlo").write_text(lowered.as_text("hlo", debug_info=True))


def main(folder):
    lower(folder, "llama", answer, LLAMA)
    lower(folder, "llama_longer", answer, LLAMA, PROMPT + 4)
    lower(folder, "llama_train", train, LLAMA)
    lower(folder, "llama_each", each, LLAMA)
    lower(folder, "llama_parted", train, dataclasses.replace(LLAMA, attends=part))
    lower(folder, "llama_padded", train, dataclasses.replace(LLAMA, attends=padded))
    lower(folder, "gemma", embed, GEMMA)


main(pathlib.Path(sys.argv[1]))
