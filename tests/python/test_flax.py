"""Norms of flax, which hone.jax.patch replaces."""

import unittest

import jax
import jax.numpy as jnp
import numpy
from flax import linen, nnx

import hone
import hone.jax
from support import HoneTest

KINDS = ("LayerNorm", "RMSNorm")
CASES = [(kind, dtype, wide, options) for kind in KINDS for dtype in (None, jnp.bfloat16, jnp.float32) for wide in (jnp.float32, jnp.bfloat16)
         for options in ({}, {"use_scale": False, "epsilon": 1e-3}, {"reduction_axes": (-1,), "feature_axes": (-1,)})]


class Net(nnx.Module):
    """A block as programs write it."""

    def __init__(self, rngs):
        self.norm, self.attention = nnx.RMSNorm(32, rngs=rngs), nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.last, self.head = nnx.LayerNorm(32, rngs=rngs), nnx.Linear(32, 8, rngs=rngs)

    def __call__(self, x, mask):
        return self.head(self.last(x + self.attention(self.norm(x), mask=mask)))


class Norms(HoneTest):
    def setUp(self):
        super().setUp()
        self.x = jnp.asarray(numpy.random.default_rng(3).standard_normal((3, 5, 32)) + 1, jnp.float32)

    def linen(self, case, x):
        kind, dtype, wide, options = case
        module = getattr(linen, kind)(dtype=dtype, param_dtype=wide, **options)
        weights = jax.tree.map(lambda one: one + 0.3, module.init(jax.random.key(1), x))
        return module.apply(weights, x)

    def nnx(self, case, x):
        kind, dtype, wide, options = case
        module = getattr(nnx, kind)(32, dtype=dtype, param_dtype=wide, rngs=nnx.Rngs(0), **options)
        nnx.update(module, jax.tree.map(lambda one: one + 0.3, nnx.state(module)))
        return module(x)

    def test_norms_are_flaxs(self):
        runs = [(make, case, x) for make in (self.linen, self.nnx) for case in CASES for x in (self.x, self.x.astype(jnp.bfloat16))]
        expected = [make(case, x) for make, case, x in runs]
        with hone.jax.patch() as patched:
            for (make, case, x), wanted in zip(runs, expected):
                made = make(case, x)
                self.assertEqual(made.dtype, wanted.dtype, case)
                tolerance = 1e-4 if made.dtype == jnp.float32 and x.dtype == jnp.float32 else 2e-2
                numpy.testing.assert_allclose(made.astype(jnp.float32), wanted.astype(jnp.float32), rtol=tolerance, atol=tolerance, err_msg=str(case))
        for kind in KINDS:
            self.assertEqual((patched.hits[f"flax.linen.{kind}"], patched.hits[f"flax.nnx.{kind}"]), (2 * len(CASES), len(CASES)))
            self.assertEqual((dict(patched.left[f"flax.linen.{kind}"]), dict(patched.left[f"flax.nnx.{kind}"])), ({}, {}))
        again = patched.hits.copy()
        self.linen(CASES[0], self.x)
        self.nnx(CASES[0], self.x)
        self.assertEqual(patched.hits, again)  # undone

    def test_a_model_hits_and_is_trained_as_flax_trains_it(self):
        model, mask = Net(nnx.Rngs(0)), jnp.ones((5, 5), bool)
        mask = jnp.tril(mask)[None, None]
        step = nnx.jit(nnx.value_and_grad(lambda model, x: (model(x, mask) ** 2).sum()))
        value, gradients = step(model, self.x)
        with hone.jax.patch() as patched:
            ours, found = step(model, self.x)
        numpy.testing.assert_allclose(ours, value, rtol=1e-4)
        for one, wanted in zip(jax.tree.leaves(found), jax.tree.leaves(gradients)):
            numpy.testing.assert_allclose(one, wanted, rtol=1e-3, atol=1e-3)
        for name in ("flax.nnx.LayerNorm", "flax.nnx.RMSNorm", "dot_product_attention"):
            self.assertGreaterEqual(patched.hits[name], 1, str(patched))

    def test_what_hone_would_answer_otherwise_is_flaxs_with_the_reason(self):
        def all_of(x):
            mask = jnp.arange(32) < 20
            return [linen.LayerNorm().apply(weights, x, mask=mask), linen.LayerNorm(reduction_axes=(1, 2)).apply(weights, x),
                    linen.LayerNorm(force_float32_reductions=False).apply(weights, x), nnx.RMSNorm(32, rngs=nnx.Rngs(0))(x, mask),
                    jax.vmap(nnx.LayerNorm(32, axis_name="rows", rngs=nnx.Rngs(0)), axis_name="rows")(x),
                    nnx.LayerNorm(32, dtype=jnp.float16, rngs=nnx.Rngs(0), feature_axes=1, reduction_axes=1)(jnp.ones((4, 32, 2)))]

        weights = linen.LayerNorm().init(jax.random.key(0), self.x)
        expected = all_of(self.x)
        with hone.jax.patch() as patched:
            for made, wanted in zip(all_of(self.x), expected):
                numpy.testing.assert_array_equal(made, wanted)
        self.assertEqual(dict(patched.left["flax.linen.LayerNorm"]),
                         {"mask is given": 1, "reduction_axes is not the last": 1, "force_float32_reductions is False": 1})
        self.assertEqual(dict(patched.left["flax.nnx.RMSNorm"]), {"mask is given": 1})
        self.assertEqual(dict(patched.left["flax.nnx.LayerNorm"]), {"axis_name is given": 1, "reduction_axes is not the last": 1})
        self.assertIn("flax.linen.LayerNorm: 0 places run hone's, 3 JAX's own", str(patched))


if __name__ == "__main__":
    unittest.main()
