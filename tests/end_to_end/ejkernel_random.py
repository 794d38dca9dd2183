"""Makes programs of random operations of the real ejkernel: python ejkernel_random.py FOLDER SEED COUNT, with EJKERNEL_OPS_RECORD=1 and
EJKERNEL_OPS_STAMP=hash. Writes N.mlir, programs of ten operations each, and truth.json: what ejkernel itself hashed for each label.
A helper of test_ejkernel.
"""

import math
import os
import pathlib
import random
import sys

os.environ["EJKERNEL_AUTOTUNE_POLICY"] = "heuristics"  # its own blocks are not what is looked at
sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples"))

import ejkernel_record
import jax
import jax.numpy as jnp
import numpy
from ejkernel.modules import FlashAttention, attention, flash_attention, mean_pooling, rwkv4, scaled_dot_product_attention
from ejkernel.modules.operations.flash_attention import _flash_executor
from ejkernel.types.mask import MaskInfo

PER_PROGRAM = 10
DIMS = (16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 256)
FLOATS = (jnp.float32, jnp.bfloat16, jnp.float16)


def array(*shape, dtype=jnp.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def some(r, part, make):
    """make() in a part of the cases, else nothing."""
    return make() if r.random() < part else None


def scale(r, dim):
    ways = (lambda: 1 / math.sqrt(dim), lambda: dim**-0.5, lambda: 0.125, lambda: round(r.uniform(0.01, 1), r.randint(1, 4)), lambda: 1.0,
            lambda: 1 / dim, lambda: float(numpy.float32(1 / numpy.sqrt(numpy.float32(dim)))), lambda: 1 / math.sqrt(2 * dim),
            lambda: 144**-0.5, lambda: float(numpy.float32(dim) ** -0.5))
    return r.choice(ways)()


def window(r, length):
    one = lambda: r.choice((0, 1, 2, 4, 8, 16, 32, 63, 100, length, 256, 4096))
    return r.choice((one, one, lambda: (one(), one()), lambda: (one(), 0), lambda: (length - 1, 0)))()


def given(**arguments):
    """What somebody writes down: nothing of what has no value, but now and then a None."""
    return {name: value for name, value in arguments.items() if value is not None}


class Attention:
    """The arrays and the scalars that the attentions share."""

    def __init__(self, r):
        self.r, self.dim, self.batch = r, r.choice(DIMS), r.choice((1, 2, 3))
        self.heads = r.choice((2, 4, 8))
        self.kv_heads = r.choice([h for h in (1, 2, 4, 8) if self.heads % h == 0])
        self.q_len = r.choice((1, 16, 32, 48, 64, 128))
        self.kv_len = self.q_len if r.random() < 0.7 else r.choice((32, 64, 96, 128))
        self.dtype = r.choice(FLOATS[:2])  # XLA does not multiply f16 on the CPU
        self.query = array(self.batch, self.q_len, self.heads, self.dim, dtype=self.dtype)
        self.key = array(self.batch, self.kv_len, self.kv_heads, self.dim, dtype=self.dtype)
        self.value = self.key if r.random() < 0.9 else array(self.batch, self.kv_len, self.kv_heads, self.dim, dtype=self.dtype)

    def mask(self):
        heads = self.r.choice((1, 1, self.heads))
        return array(self.batch, heads, self.q_len, self.kv_len, dtype=jnp.bool_)

    def bias(self):
        return array(self.batch, self.heads, self.q_len, self.kv_len, dtype=self.dtype)

    def aux(self):
        return array(self.heads, dtype=self.dtype)

    def scalars(self):
        r = self.r
        return given(
            causal=some(r, 0.6, lambda: r.random() < 0.8), softmax_scale=some(r, 0.6, lambda: scale(r, self.dim)),
            sliding_window=some(r, 0.3, lambda: window(r, self.kv_len)))


def cap(r):
    return r.choice((1.0, 5.0, 15.0, 20.0, 30.0, 30.5, 50.0, 100.0, 2.5))


def masked(mask):
    return {} if mask is None else {"mask_info": MaskInfo.from_attention_mask(mask)}


def random_flash(r):
    a = Attention(r)
    arrays = {"q": a.query, "k": a.key, "v": a.value, "bias": some(r, 0.2, a.bias), "mask": some(r, 0.2, a.mask), "aux": some(r, 0.1, a.aux)}
    scalars = a.scalars() | given(
        logits_soft_cap=some(r, 0.25, lambda: cap(r)), platform=some(r, 0.6, lambda: "xla"),
        precision=some(r, 0.1, lambda: r.choice((jax.lax.Precision.HIGHEST, jax.lax.Precision.HIGH))),
        normalize_output=some(r, 0.05, lambda: True), dropout_prob=some(r, 0.05, lambda: 0.0),
        logits_dtype=some(r, 0.1, lambda: jnp.float32))

    def call(q, k, v, bias, mask, aux):
        behind = [bias] + ([None, None, aux] if aux is not None else [])
        return flash_attention(q, k, v, *(behind if bias is not None or aux is not None else ()), **masked(mask), **scalars)
    return call, arrays


def random_positional(r):
    """The executor itself, as the pages of ejkernel call it: arrays by position, only what is said by keyword."""
    a = Attention(r)
    scalars = a.scalars() | given(logits_soft_cap=some(r, 0.2, lambda: cap(r)), platform=some(r, 0.5, lambda: "xla"))

    def call(q, k, v):
        return _flash_executor(FlashAttention(), q, k, v, **scalars)
    return call, {"q": a.query, "k": a.key, "v": a.value}


def random_sdpa(r):
    a = Attention(r)
    arrays = {"q": a.query, "k": a.key, "v": a.value, "bias": some(r, 0.2, a.bias), "mask": some(r, 0.2, a.mask)}
    scalars = a.scalars() | given(platform=some(r, 0.5, lambda: "xla"))

    def call(q, k, v, bias, mask):
        return scaled_dot_product_attention(q, k, v, *([bias] if bias is not None else ()), **masked(mask), **scalars)
    return call, arrays


def random_attention(r):
    a = Attention(r)
    # It gives bf16 where it is told no dtype: what comes next may have queries of another one than keys.
    query = some(r, 0.15, lambda: array(*a.query.shape, dtype=r.choice(FLOATS[:2]))) or a.query
    arrays = {"q": query, "k": a.key, "v": a.value, "bias": some(r, 0.2, a.bias), "mask": some(r, 0.2, a.mask)}
    scalars = a.scalars() | given(
        logits_soft_cap=some(r, 0.25, lambda: cap(r)), dtype=some(r, 0.5, lambda: r.choice((jnp.float32, jnp.bfloat16))),
        softmax_dtype=some(r, 0.3, lambda: jnp.float32), deterministic=some(r, 0.1, lambda: True))

    def call(q, k, v, bias, mask):
        return attention(q, k, v, *([bias] if bias is not None else ()), **masked(mask), **scalars)
    return call, arrays


def random_pooling(r):
    shape = r.choice((1, 2, 4)), r.choice((32, 64, 96, 128)), r.choice((24, 64, 128, 256))
    scalars = given(chunk_size=some(r, 0.6, lambda: r.choice((8, 16, 32, 64, 100, 128))), platform=some(r, 0.5, lambda: "xla"))
    return (lambda x: mean_pooling(x, **scalars)), {"x": array(*shape, dtype=r.choice(FLOATS))}


def random_rwkv4(r):
    channels, batch, length, dtype = r.choice((16, 32, 64, 128)), r.choice((1, 2, 3)), r.choice((16, 32, 64)), r.choice(FLOATS)
    line, table = array(channels, dtype=jnp.float32), array(batch, length, channels, dtype=dtype)
    arrays = {"w": line, "u": line, "k": table, "v": table, "state": some(r, 0.4, lambda: array(batch, 3, channels))}
    scalars = given(return_state=some(r, 0.4, lambda: r.random() < 0.8), platform=some(r, 0.5, lambda: "xla"))

    def call(w, u, k, v, state):
        return rwkv4(w, u, k, v, *([state] if state is not None else ()), **scalars)
    return call, arrays


KINDS = (random_flash,) * 8 + (random_positional,) * 2 + (random_sdpa,) * 4 + (random_attention,) * 3 + (random_pooling, random_rwkv4)


def lower(calls):
    def program(arguments):
        return [call(**arrays) for (call, _), arrays in zip(calls, arguments)]
    return jax.jit(program).lower([arrays for _, arrays in calls])


def main(folder, seed, count):
    r = random.Random(seed)
    for number in range(count // PER_PROGRAM):
        lowered = lower([r.choice(KINDS)(r) for _ in range(PER_PROGRAM)])
        (folder / f"{number}.mlir").write_text(lowered.as_text(debug_info=True))
        ejkernel_record.dump(folder / "truth.json")


main(pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
