"""Lowers a step of AlphaFold 3's trunk that calls the real tokamax: python tokamax_model.py FOLDER.

Pairs of tokens attend along rows and columns with a bias and a mask, tokens with a bias from their pairs; transitions are gated. Writes NAME.mlir
and NAME.hlo. A helper of test_models.
"""

import functools
import pathlib
import sys
import types

# tokamax asks qwix for the type of quantized arrays, and there are none here: it would bring flax and what that imports.
sys.modules["qwix"] = types.ModuleType("qwix")
sys.modules["qwix"].QArray = type("QArray", (), {})

import jax
import jax.numpy as jnp
import tokamax

BLOCKS, TOKENS, HEADS, HEAD_DIM, CHANNELS = 3, 20, 4, 8, 32


def norm(x, w):
    """Of pairs as AlphaFold has it, of tokens without a mean."""
    scale, offset = w["norm"]
    paired = x.ndim == 3 and x.shape[0] == x.shape[1]
    return tokamax.layer_norm(x, scale, offset if paired else None, subtract_mean=paired, epsilon=1e-5, implementation="xla")


def attend(x, w, bias, mask):
    h = norm(x, w)
    q, k, v = (jnp.einsum("...nc,chd->...nhd", h, w[name]) for name in "qkv")
    return x + jnp.einsum("...nhd,hdc->...nc", tokamax.dot_product_attention(q, k, v, bias=bias, mask=mask, implementation="xla"), w["o"])


def transition(x, w):
    return x + tokamax.gated_linear_unit(norm(x, w), w["in"], activation=jax.nn.swish, implementation="xla") @ w["out"]


def block(pair, single, w, mask):
    rows = lambda pair: jnp.einsum("ijc,ch->hij", pair, w["rows"]["bias"])[None]
    pair = attend(pair, w["rows"], rows(pair), mask[:, None, None, :])
    pair = transition(pair, w["pair"])
    bias = jnp.einsum("ijc,ch->hij", pair, w["tokens"]["bias"])[None]
    single = attend(single[None], w["tokens"], bias, mask[:1, None, None, :])[0]
    return pair, transition(single, w["single"])


def weights(dtype):
    array = lambda *shape: jax.ShapeDtypeStruct((BLOCKS, *shape), dtype)
    heads = (CHANNELS, HEADS, HEAD_DIM)
    attention = {"norm": (array(CHANNELS), array(CHANNELS)), "q": array(*heads), "k": array(*heads), "v": array(*heads), "o": array(HEADS, HEAD_DIM, CHANNELS),
                 "bias": array(CHANNELS, HEADS)}
    gated = {"norm": (array(CHANNELS), array(CHANNELS)), "in": array(CHANNELS, 2, 4 * CHANNELS), "out": array(4 * CHANNELS, CHANNELS)}
    return {"rows": attention, "tokens": attention, "pair": gated, "single": gated}


def trunk(w, pair, single, mask):
    return jax.lax.scan(lambda state, one: (block(*state, one, mask), None), (pair, single), w)[0]


def train(w, pair, single, mask):
    return jax.value_and_grad(lambda w: sum(x.mean() for x in trunk(w, pair, single, mask)))(w)


def lower(folder, name, function, tokens=TOKENS, dtype=jnp.float32):
    pair, single = jax.ShapeDtypeStruct((tokens, tokens, CHANNELS), dtype), jax.ShapeDtypeStruct((tokens, CHANNELS), dtype)
    lowered = jax.jit(function).lower(weights(dtype), pair, single, jax.ShapeDtypeStruct((tokens, tokens), jnp.bool_))
    (folder / f"{name}.mlir").write_text(lowered.as_text(debug_info=True))
    (folder / f"{name}.hlo").write_text(lowered.as_text("hlo", debug_info=True))


def main(folder):
    lower(folder, "trunk", trunk)
    lower(folder, "trunk_longer", trunk, TOKENS + 4)
    lower(folder, "trunk_half", trunk, dtype=jnp.bfloat16)
    lower(folder, "trunk_train", train)


main(pathlib.Path(sys.argv[1]))
