"""A small transformer block, once of hone's operations and once of JAX's."""

import jax
import jax.numpy as jnp
import numpy

import hone.jax

EPS = 1e-6


class Hone:
    @staticmethod
    def norm(x, w):
        return hone.jax.call("rms_norm", x, w, eps=EPS)

    @staticmethod
    def product(a, b):
        return hone.jax.call("matmul", a, b)

    @staticmethod
    def attention(q, k, v):
        return hone.jax.call("flash_attention", q, k, v, causal=True, softmax_scale=q.shape[-1] ** -0.5)

    @staticmethod
    def gate(x, y):
        return hone.jax.call("silu_mul", x, y)

    @staticmethod
    def softmax(x):
        return hone.jax.call("softmax", x)


class Plain:
    @staticmethod
    def norm(x, w):
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True) + EPS) * w

    @staticmethod
    def product(a, b):
        return jnp.matmul(a, b, precision="highest")

    @staticmethod
    def attention(q, k, v):
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k, precision="highest") * q.shape[-1] ** -0.5
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -jnp.inf)
        return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v, precision="highest")

    @staticmethod
    def gate(x, y):
        return jax.nn.silu(x) * y

    @staticmethod
    def softmax(x):
        return jax.nn.softmax(x)


def layer(ops, x, p, heads):
    """x [tokens, width] -> [tokens, width]"""
    tokens, width = x.shape
    h = ops.norm(x, p["norm_1"])
    q, k, v = (ops.product(h, p[name]).reshape(1, tokens, heads, width // heads) for name in ("q", "k", "v"))
    x = x + ops.product(ops.attention(q, k, v).reshape(tokens, width), p["o"])
    h = ops.norm(x, p["norm_2"])
    return x + ops.product(ops.gate(ops.product(h, p["gate"]), ops.product(h, p["up"])), p["down"])


def block(ops, x, p, heads, depth=1):
    """x [tokens, width] -> probabilities [tokens, words]; all layers have the same parameters."""
    for _ in range(depth):
        x = layer(ops, x, p, heads)
    return ops.softmax(ops.product(ops.norm(x, p["norm_3"]), p["words"]))


def loss(ops, x, p, heads, depth=1):
    """How little a model expects, at each token, the word that has the token's number."""
    found = block(ops, x, p, heads, depth).astype(jnp.float32)
    return -jnp.log(found[jnp.arange(len(x)), jnp.arange(len(x)) % found.shape[1]]).mean()


def made(tokens=32, width=64, hidden=128, words=96):
    """An input and parameters."""
    generator = numpy.random.default_rng(7)

    def matrix(rows, columns):
        return jnp.asarray(generator.standard_normal((rows, columns)) * rows ** -0.5, jnp.float32)

    p = {name: matrix(width, width) for name in ("q", "k", "v", "o")}
    p |= {"gate": matrix(width, hidden), "up": matrix(width, hidden), "down": matrix(hidden, width),
          "words": matrix(width, words)}
    p |= {name: jnp.asarray(generator.uniform(0.5, 1.5, width), jnp.float32) for name in ("norm_1", "norm_2", "norm_3")}
    return jnp.asarray(generator.standard_normal((tokens, width)), jnp.float32), p
