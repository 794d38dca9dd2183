"""hone inside real JAX on the CPU."""

import asyncio
import ctypes
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import unittest.mock
import warnings

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax
import jax.export
import jax.numpy as jnp
import numpy
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import hone
from support import QUICK, HoneTest, norm, tune_elsewhere, within_a_minute

import hone.jax  # noqa: E402  (support cleans the environment first)
from block import Hone, Plain, block, loss, made  # noqa: E402

X = jnp.asarray(numpy.random.default_rng(3).standard_normal((4, 8, 64)), jnp.float32)
W = jnp.asarray(numpy.random.default_rng(4).standard_normal(64), jnp.float32)


def rms(x, w, **scalars):
    return hone.jax.call("rms_norm", x, w, **scalars)


def close(actual, expected, rtol=1e-4, atol=1e-4):
    numpy.testing.assert_allclose(numpy.asarray(actual, numpy.float64), numpy.asarray(expected, numpy.float64), rtol, atol)


class Call(HoneTest):
    def test_without_jit_a_call_runs_alone(self):
        x = jnp.arange(8.0).reshape(2, 4)
        with jax.disable_jit():
            numpy.testing.assert_allclose(hone.jax.call("softmax", x), jax.nn.softmax(x), rtol=1e-5)
            with hone.jax.patch():
                numpy.testing.assert_allclose(jax.nn.softmax(x).sum(-1), [1, 1], rtol=1e-5)

    def test_it_runs_with_and_without_jit(self):
        expected = norm(numpy.asarray(X), numpy.asarray(W), 0.5)
        for function in (rms, jax.jit(rms, static_argnames="eps")):
            close(function(X, W, eps=0.5), expected)
            close(function(X, W, eps=numpy.float32(0.5)), expected)

    def test_arrays_that_an_operation_takes_by_name_alone(self):
        generator = numpy.random.default_rng(11)
        a, b, bias, added = (jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in ((5, 7), (7, 9), (9,), (5, 9)))
        for given in ({}, {"bias": bias}, {"residual": added}, {"bias": bias, "residual": added, "activation": "relu"}):
            with self.subTest([*given]):
                def product(a, given=given):
                    return hone.jax.call("matmul", a, b, **given)

                expected = a @ b + given.get("bias", 0)
                expected = (jax.nn.relu(expected) if "activation" in given else expected) + given.get("residual", 0)
                close(jax.jit(product)(a), expected)
                close(jax.vmap(product)(jnp.stack([a, a]))[1], expected)
                with hone.jax.tune(jax.jit(product), a, seconds=0.01) as result:
                    close(jax.jit(product)(a), expected)
                self.assertTrue(all(f"{name}=" in str(result) for name in given), result)

    def test_each_call_of_a_program_has_its_own_scalars_whichever_was_tuned(self):
        several = (0.5, 1e-6, 3.0)
        function = jax.jit(lambda x, w: [rms(x, w, eps=eps) for eps in several])
        with hone.tune("rms_norm", numpy.asarray(X), numpy.asarray(W), eps=0.25, kernel="portable", store=False, **QUICK):
            for _ in range(3):
                for y, eps in zip(function(X, W), several):
                    close(y, norm(numpy.asarray(X), numpy.asarray(W), eps))

    def test_arrays_are_taken_by_hone_run_whatever_their_dtype_and_place(self):
        for dtype in (jnp.float32, jnp.bfloat16, jnp.float16):
            x, w = X.astype(dtype), W.astype(dtype)
            y = hone.run("rms_norm", x, w)
            self.assertEqual(y.dtype, dtype)
            close(y, norm(numpy.asarray(x), numpy.asarray(w)), 1e-2, 1e-2)
        with self.assertRaisesRegex(TypeError, "JAX's arrays cannot be written"):
            hone.run("rms_norm", x, w, x + 0)
        other = jax.device_put(X, jax.devices()[1])
        close(hone.run("rms_norm", other, W), norm(numpy.asarray(X), numpy.asarray(W)))
        spread = jax.device_put(X, NamedSharding(Mesh(jax.devices(), "d"), PartitionSpec("d")))
        with self.assertRaises(Exception):
            hone.run("rms_norm", spread, W)
        gone = X + 0
        gone.delete()
        with self.assertRaisesRegex(RuntimeError, "deleted"):
            hone.run("rms_norm", gone, W)

    def test_bfloat16_and_several_results(self):
        y = jax.jit(rms)(X.astype(jnp.bfloat16), W.astype(jnp.bfloat16))
        self.assertEqual(y.dtype, jnp.bfloat16)
        close(y, norm(numpy.asarray(X), numpy.asarray(W)), 5e-2, 5e-2)
        q = X.reshape(1, 8, 4, 64)
        out, weights = jax.jit(lambda q: hone.jax.call("attention", q, q, q, causal=True))(q)
        self.assertEqual((out.shape, weights.shape), ((1, 8, 4, 64), (1, 4, 8, 8)))
        close(weights.sum(-1), jnp.ones((1, 4, 8)))

    def test_a_wrong_call_is_refused_while_tracing(self):
        for wrong, kind, words in (
                (lambda: rms(X, W[:5]), hone.InvalidArgumentError, r"weight\[0\] is 5 but dim is 64"),
                (lambda: rms(X, W.astype(jnp.float16)), hone.InvalidArgumentError, "f16"),
                (lambda: rms(X, W, epsilon=1), TypeError, "no parameter 'epsilon'"),
                (lambda: hone.jax.call("rms_norm", X, W, x=X), TypeError, "given twice"),
                (lambda: hone.jax.call("rms_norm", X, W, X), TypeError, "by position, got 3"),
                (lambda: hone.jax.call("nothing", X), hone.NotFoundError, "nothing"),
                (lambda: hone.jax.call("rms_norm@v7", X, W), hone.NotFoundError, "rms_norm")):
            with self.assertRaisesRegex(kind, words):
                wrong()
            with self.assertRaisesRegex(kind, words):
                jax.jit(wrong)()
        with self.assertRaisesRegex(TypeError, "must be known when"):
            jax.jit(rms)(X, W, eps=0.5)
        for scalar in ([1.0], jnp.ones(2), numpy.ones(2)):
            with self.assertRaisesRegex(TypeError, "rms_norm: eps must be a scalar"):
                rms(X, W, eps=scalar)
        rows, = jax.export.symbolic_shape("rows")
        with self.assertRaisesRegex(TypeError, r"shape \(rows, 64\).*known when"):
            jax.eval_shape(rms, jax.ShapeDtypeStruct((rows, 64), jnp.float32), W)

    def test_vmap_refuses_what_one_element_would_be_refused_for(self):
        """A number has no softmax of hone's, and the batch in front of it is not its row."""
        for name, arrays, axes in (("softmax", (W,), 0), ("rms_norm", (W, W), (0, None)), ("matmul", (X[0], X[0]), (0, None))):
            with self.assertRaisesRegex(hone.InvalidArgumentError, f"{name}: [xa] has [01] dims inside of vmap, expected T"):
                jax.vmap(functools.partial(hone.jax.call, name), axes)(*arrays)

    def test_vmap_asks_the_reference_whether_parts_are_independent(self):
        """Else one call after the other is right, and who says otherwise is warned once."""
        x = numpy.random.default_rng(5).standard_normal((3, 4, 5)).astype(numpy.float32)

        def less_mean(x, axis):
            return x - x.mean(axis, keepdims=True)

        for name, axis in (("t_less_rows", 0), ("t_less_columns", 1)):
            @hone.algorithm(f"{name}(x: f32[n, d]) -> y: f32[n, d]", independent="n")
            def reference(x, axis=axis):
                return less_mean(x, axis)

            @hone.kernel(name)
            def eager(x, axis=axis):
                return less_mean(x, axis)

            mapped = jax.vmap(functools.partial(hone.jax.call, name))
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                close(mapped(x), x - x.mean(axis + 1, keepdims=True))
                close(jax.jit(mapped)(x), x - x.mean(axis + 1, keepdims=True))
            told = [str(one.message) for one in told if issubclass(one.category, RuntimeWarning) and "vmap" in str(one.message)]
            if axis == 0:
                self.assertEqual(len(told), 1, told)
                self.assertRegex(told[0], "^vmap makes a call for each element of the batch: independent = 'n' is not true of t_less_rows")
            else:
                self.assertEqual(told, [])
                self.assertIn("f32[12,5] = hone_call", str(jax.make_jaxpr(mapped)(x)))

    def test_vmap_puts_the_batch_into_a_leading_dim(self):
        many = jnp.stack([X, 2 * X, 3 * X])
        weights = jnp.stack([W, 2 * W, 3 * W])

        def calls(function, *args):
            program = hone.default().read(hone.jax.lower(function, *args))
            return [(row["call"], row["count"]) for row in program.operations]

        batched = jax.vmap(rms, (0, None))
        close(batched(many, W), norm(numpy.asarray(many), numpy.asarray(W)))
        self.assertEqual(calls(batched, many, W), [("rms_norm(f32[3,4,8,64], f32[64])", 1)])
        close(jax.vmap(rms, (2, None), 1)(X.transpose(1, 2, 0), W), jnp.swapaxes(rms(X, W), 0, 1))
        # A batch of weights has no dim of its own in the signature: one call after the other.
        close(jax.vmap(rms)(many, weights), norm(numpy.asarray(many), numpy.asarray(weights)[:, None, None]))
        self.assertEqual(calls(jax.vmap(rms), many, weights)[0][0], "rms_norm(f32[4,8,64], f32[64])")
        product = functools.partial(hone.jax.call, "matmul")
        rows, matrix = X, jnp.asarray(numpy.random.default_rng(5).standard_normal((64, 16)), jnp.float32)
        close(jax.vmap(product, (0, None))(rows, matrix), rows @ matrix, 1e-3, 1e-3)
        self.assertEqual(calls(jax.vmap(product, (0, None)), rows, matrix), [("matmul(f32[32,64], f32[64,16])", 1)])
        self.assertEqual(jax.vmap(product, (0, None))(rows[:, :, :0], matrix[:0]).shape, (4, 8, 16))
        matrices = jnp.stack([matrix, 2 * matrix, 3 * matrix, -matrix])
        close(jax.vmap(product)(rows, matrices), rows @ matrices, 1e-3, 1e-3)
        self.assertEqual(calls(jax.vmap(product), rows, matrices), [("matmul(f32[4,8,64], f32[4,64,16])", 1)])
        close(jax.vmap(product, (None, 0))(rows[0], matrices), rows[0] @ matrices, 1e-3, 1e-3)
        self.assertEqual(calls(jax.vmap(product, (None, 0)), rows[0], matrices), [("matmul(f32[4,8,64], f32[4,64,16])", 1)])
        twice = jax.vmap(jax.vmap(product), (1, None))(jnp.stack([rows, -rows], 1), matrices)
        close(twice, jnp.stack([rows @ matrices, -rows @ matrices]), 1e-3, 1e-3)
        attention = jax.vmap(lambda q, k: hone.jax.call("flash_attention", q, k, k, causal=True), (0, None))
        q = X.reshape(2, 2, 4, 2, 64)
        close(attention(q, q[0]), jnp.stack([Plain.attention(one * 64 ** -0.5 * 8, q[0], q[0]) for one in q]))
        self.assertEqual(calls(attention, q, q[0])[0][0].split(",")[0], "flash_attention(f32[4")

    def test_a_residual_is_added_and_the_sum_normalised(self):
        for dtype, allowed in ((jnp.float32, 1e-4), (jnp.bfloat16, 2e-2)):
            x, residual, w = X.astype(dtype), X[::-1].astype(dtype), W.astype(dtype)
            total, y = jax.jit(functools.partial(hone.jax.call, "add_rms_norm"))(x, residual, w)
            close(total, x + residual, 0, 0)
            close(y, rms(total, w), allowed, allowed)
            close(jax.vmap(functools.partial(hone.jax.call, "add_rms_norm"), (0, 0, None))(x, residual, w)[1], y, allowed, allowed)

    def test_heads_are_turned_as_jax_turns_them(self):
        x = X.reshape(2, 8, 4, 32)
        angles = numpy.arange(8)[:, None] * 10000.0 ** (-numpy.arange(16) / 16)
        cos, sin = jnp.asarray(numpy.cos(angles), jnp.float32), jnp.asarray(numpy.sin(angles), jnp.float32)
        pairs = (x[..., :16] + 1j * x[..., 16:]) * (cos + 1j * sin)[:, None]
        rope = functools.partial(hone.jax.call, "rope")
        close(jax.jit(rope)(x, cos, sin), jnp.concatenate([pairs.real, pairs.imag], -1))
        close(jax.vmap(rope, (0, None, None))(x, cos, sin), rope(x, cos, sin))
        pairs = (x[..., ::2] + 1j * x[..., 1::2]) * (cos + 1j * sin)[:, None]
        close(rope(x, cos, sin, interleaved=True), jnp.stack([pairs.real, pairs.imag], -1).reshape(x.shape))

    def test_a_gradient_that_is_not_there_is_refused(self):
        with self.assertRaisesRegex(TypeError, "reduction has no gradient: hone has no algorithm named reduction_vjp"):
            jax.grad(lambda x: hone.jax.call("reduction", x).sum())(X)

    def test_a_gradient_that_is_there_is_taken(self):
        def loss(call):
            return lambda x, y: (call(x, y) * W).sum()

        gate = functools.partial(hone.jax.call, "silu_mul")
        x, y = X[0], X[1]
        for ours, plain in zip(jax.jit(jax.grad(loss(gate), (0, 1)))(x, y), jax.grad(loss(Plain.gate), (0, 1))(x, y)):
            close(ours, plain)
        close(jax.vmap(jax.grad(loss(gate)))(X, X[::-1]), jax.vmap(jax.grad(loss(Plain.gate)))(X, X[::-1]))
        with self.assertRaisesRegex(TypeError, "silu_mul is differentiated in reverse mode and once"):
            jax.hessian(lambda x: loss(gate)(x, y))(x)

    def test_each_device_of_a_mesh_has_its_part(self):
        mesh = Mesh(numpy.array(jax.devices()), ("d",))
        parts = functools.partial(jax.shard_map, mesh=mesh, out_specs=PartitionSpec("d"))
        ours = jax.jit(parts(rms, in_specs=(PartitionSpec("d"), PartitionSpec())))
        close(ours(X, W), norm(numpy.asarray(X), numpy.asarray(W)))

        def gradients(gate):
            whole = parts(gate, in_specs=(PartitionSpec("d"), PartitionSpec()))
            return jax.grad(lambda x, y: whole(x, y).sum(), (0, 1))(X, X[:2])

        for ours, plain in zip(gradients(functools.partial(hone.jax.call, "silu_mul")), gradients(Plain.gate)):
            close(ours, plain)
        close(jax.jit(rms)(jax.device_put(X, NamedSharding(mesh, PartitionSpec("d"))), W), norm(numpy.asarray(X), numpy.asarray(W)))

    def test_calls_run_in_loops_and_at_the_same_time(self):
        looped = jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda i, x: rms(x, W) * 0.5, x))
        expected = functools.reduce(lambda x, _: norm(x, numpy.asarray(W)) * 0.5, range(5), numpy.asarray(X))
        failures = []

        def work():
            for _ in range(20):
                if not numpy.allclose(looped(X), expected, 1e-3, 1e-3):
                    failures.append(1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_xlas_own_threads_do_the_work(self):
        a = jnp.asarray(numpy.random.default_rng(5).standard_normal((256, 256)), jnp.float32)
        with hone.override("matmul", "portable"):
            config = dict(hone.decide("matmul", ("f32", (256, 256)), ("f32", (256, 256))).config, threads=2)
        with hone.override("matmul", "portable", config):
            product = jax.jit(lambda a: hone.jax.call("matmul", hone.jax.call("matmul", a, a), a))
            for _ in range(20):
                close(product(a), a @ a @ a, 1e-2, 0.5)


def standardised(x, w=None, b=None, subtract_mean=True, eps=1e-6, weight_offset=0.0):
    away = x - x.mean(-1, keepdims=True) if subtract_mean else x
    y = away / jnp.sqrt(jnp.mean(away * away, -1, keepdims=True) + eps)
    return y * (1 if w is None else w + weight_offset) + (0 if b is None else b)


def attended(q, k, v, causal=False, softmax_scale=None, sliding_window=None, logits_soft_cap=None):
    k, v = (jnp.repeat(one, q.shape[2] // k.shape[2], 2) for one in (k, v))
    logits = jnp.einsum("bqhd,bkhd->bhqk", q, k, precision="highest") * (softmax_scale or q.shape[-1] ** -0.5)
    logits = logits if logits_soft_cap is None else logits_soft_cap * jnp.tanh(logits / logits_soft_cap)
    i, j = jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])
    seen = (j <= i if causal else j >= 0) & (True if sliding_window is None else abs(i - j) <= sliding_window)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(seen, logits, -1e30)), v, precision="highest")


def turned(x, cos, sin, interleaved=False):
    half = cos.shape[1]
    a, b = (x[..., 0:2 * half:2], x[..., 1:2 * half:2]) if interleaved else (x[..., :half], x[..., half:2 * half])
    cos, sin = cos[:, None], sin[:, None]
    pairs = a * cos - b * sin, b * cos + a * sin
    pairs = jnp.stack(pairs, -1).reshape(*x.shape[:-1], -1) if interleaved else jnp.concatenate(pairs, -1)
    return jnp.concatenate([pairs, x[..., 2 * half:]], -1)


def added(x, residual, w, eps=1e-6):
    return x + residual, standardised(x + residual, w, subtract_mean=False, eps=eps)


def r(*shape, seed=5):
    return jnp.asarray(numpy.random.default_rng(seed).standard_normal(shape), jnp.float32)


Q, K, V = r(2, 9, 4, 16), r(2, 12, 2, 16, seed=6), r(2, 12, 2, 16, seed=7)
COS, SIN = jnp.cos(r(8, 24, seed=8)), jnp.sin(r(8, 24, seed=8))
# An operation, what it does in JAX, its arrays, which of them are differentiated, its scalars.
DIFFERENTIATED = [
    ("softmax", lambda x, scale=1.0: jax.nn.softmax(scale * x), (X,), (0,), {}),
    ("softmax", lambda x, scale=1.0: jax.nn.softmax(scale * x), (X,), (0,), {"scale": -0.5}),
    ("rms_norm", functools.partial(standardised, subtract_mean=False), (X, W), (0, 1), {}),
    ("rms_norm", functools.partial(standardised, subtract_mean=False), (X[0, 0], W), (1,), {"eps": 0.5}),
    ("add_rms_norm", added, (X, X[::-1] + 1, W), (0, 1, 2), {"eps": 0.1}),
    ("layer_norm", standardised, (X, W, W + 1), (0, 1, 2), {}),
    ("layer_norm", standardised, (X,), (0,), {"subtract_mean": False, "eps": 0.5}),
    ("layer_norm", standardised, (X, W), (0, 1), {"weight_offset": 1.0}),
    ("silu_mul", lambda x, y: jax.nn.silu(x) * y, (X, X[::-1]), (0, 1), {}),
    ("rope", turned, (r(2, 8, 3, 50), COS, SIN), (0,), {}),
    ("rope", turned, (r(2, 8, 3, 50), COS, SIN), (0,), {"interleaved": True}),
    ("matmul", lambda a, b: jnp.matmul(a, b, precision="highest"), (X[0], r(64, 40)), (0, 1), {}),
    ("matmul", lambda a, b: jnp.matmul(a, b, precision="highest"), (X, r(4, 64, 40)), (0, 1), {}),
    ("matmul", lambda a, b, transpose_b: jnp.matmul(a, b.mT, precision="highest"), (X, r(4, 40, 64)), (0, 1), {"transpose_b": True}),
    ("matmul", lambda a, b, transpose_b: jnp.matmul(a, b.T, precision="highest"), (X[0], r(40, 64)), (0, 1), {"transpose_b": True}),
    ("flash_attention", attended, (Q, K, V), (0, 1, 2), {}),
    ("flash_attention", attended, (Q, K, V), (0, 1, 2), {"causal": True, "softmax_scale": 0.3, "logits_soft_cap": 2.0}),
    ("flash_attention", attended, (Q, K, V), (0, 1, 2), {"sliding_window": 3}),
    ("scaled_dot_product_attention", attended, (Q, K, V), (0, 1, 2), {"causal": True}),
]


class Gradients(HoneTest):
    def asked(self, function, arrays, scalars):
        """A number that depends on each element of each result in its own way, by factors that 16 bit floats hold."""
        results = function(*arrays, **scalars)
        results = results if isinstance(results, tuple) else (results,)
        return sum((one.astype(jnp.float32) * ((jnp.arange(one.size) % 13 - 5) / 8).reshape(one.shape)).sum() for one in results)

    def test_each_is_jaxs(self):
        for name, plain, arrays, places, scalars in DIFFERENTIATED:
            with self.subTest(name, **scalars):
                ours = jax.jit(jax.grad(lambda *a: self.asked(functools.partial(hone.jax.call, name), a, scalars), places))(*arrays)
                theirs = jax.grad(lambda *a: self.asked(plain, a, scalars), places)(*arrays)
                for one, other in zip(ours, theirs, strict=True):
                    close(one, other, 1e-4, 2e-5 * float(abs(other).max()))

    def test_16_bit_floats_are_rounded_once(self):
        for i, (name, plain, arrays, places, scalars) in enumerate({one[0]: one for one in DIFFERENTIATED}.values()):
            dtype, allowed = ((jnp.bfloat16, 2e-2), (jnp.float16, 3e-3))[i % 2]
            with self.subTest(name, dtype=dtype.__name__, **scalars):
                low = [one.astype(dtype) for one in arrays]
                ours = jax.grad(lambda *a: self.asked(functools.partial(hone.jax.call, name), a, scalars), places)(*low)
                theirs = jax.grad(lambda *a: self.asked(plain, a, scalars), places)(*(one.astype(jnp.float32) for one in low))
                for one, other in zip(ours, theirs, strict=True):
                    self.assertEqual(one.dtype, dtype)
                    close(one, other, allowed, allowed * float(abs(other).max()))

    def test_batches_have_gradients_of_their_own(self):
        def loss(call):
            return lambda x, w: (call(x, w) * X[0, 0]).sum()

        ours, theirs = (jax.vmap(jax.grad(loss(call), (0, 1)), (0, None))(X, W)
                        for call in (rms, functools.partial(standardised, subtract_mean=False)))
        for one, other in zip(ours, theirs):
            close(one, other, 1e-3, 1e-3)
        self.assertEqual(ours[1].shape, (4, 64))

    def test_shards_are_run_and_differentiated_with_and_without_jit(self):
        mesh, along = jax.sharding.Mesh(numpy.array(jax.devices()), ("d",)), jax.sharding.PartitionSpec("d")

        def loss(call):
            return lambda x, w: (call(x, w) * X[0, 0]).sum()

        shards = jax.shard_map(rms, mesh=mesh, in_specs=(along, jax.sharding.PartitionSpec()), out_specs=along)
        plain = functools.partial(standardised, subtract_mean=False)
        theirs = jax.grad(loss(plain), (0, 1))(X, W)
        for call in (shards, jax.jit(shards)):
            close(call(X, W), plain(X, W), 1e-4, 1e-4)
            for one, other in zip(jax.grad(loss(call), (0, 1))(X, W), theirs, strict=True):
                close(one, other, 1e-3, 1e-3)

    def test_a_result_that_nobody_uses_gives_nothing_back(self):
        def loss(call):
            return lambda x, w: (call(x, x, w)[1] * X).sum()

        for one, other in zip(jax.grad(loss(functools.partial(hone.jax.call, "add_rms_norm")), (0, 1))(X, W),
                              jax.grad(loss(added), (0, 1))(X, W)):
            close(one, other, 1e-3, 1e-3)

    def test_what_is_taken_for_a_constant_is_refused_by_name(self):
        def loss(x, cos):
            return hone.jax.call("rope", x, cos, SIN).sum()

        x = r(2, 8, 3, 50)
        with self.assertRaisesRegex(TypeError, "rope has no gradient by cos: rope_vjp gives none, .*stop_gradient"):
            jax.grad(loss, (0, 1))(x, COS)
        close(jax.grad(lambda x, cos: loss(x, jax.lax.stop_gradient(cos)), (0, 1))(x, COS)[0], jax.grad(loss)(x, COS))

    def test_a_second_derivative_of_a_product_is_refused(self):
        with self.assertRaisesRegex(TypeError, "matmul is differentiated in reverse mode and once"):
            jax.hessian(lambda a: hone.jax.call("matmul", a, a).sum())(X[0, :8, :8])

    def test_a_transformer_is_trained_as_jax_trains_it(self):
        x, p = made()
        hones, jaxs = (jax.jit(jax.value_and_grad(functools.partial(loss, ops, heads=4, depth=4), argnums=(0, 1))) for ops in (Hone, Plain))
        (value, ours), (expected, theirs) = hones(x, p), jaxs(x, p)
        close(value, expected, 1e-5)
        for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            close(one, other, 1e-3, 1e-4 * float(abs(other).max()))
        low = jax.tree.map(lambda one: one.astype(jnp.bfloat16), (x, p))
        exact = jaxs(*jax.tree.map(lambda one: one.astype(jnp.float32), low))[1]

        def error(gradients):
            return [float(jnp.linalg.norm(one.astype(jnp.float32) - other) / jnp.linalg.norm(other))
                    for one, other in zip(jax.tree.leaves(gradients), jax.tree.leaves(exact), strict=True)]

        of_jax = error(jaxs(*low)[1])
        for ours, theirs in zip(error(hones(*low)[1]), of_jax, strict=True):
            self.assertLess(ours, 0.05)
            self.assertLess(ours, 1.25 * theirs)
        losses = []
        for _ in range(8):
            value, (_, gradients) = hones(x, p)
            p = jax.tree.map(lambda one, by: one - 0.3 * by, p, gradients)
            losses.append(float(value))
        self.assertLess(losses[-1], 0.9 * losses[0])


class Contexts(HoneTest):
    def test_a_context_makes_jax_trace_again_and_travels_in_the_program(self):
        traced = []

        @jax.jit
        def function(x):
            traced.append(hone._contexts.digest())
            return rms(x, W)

        one = hone.override("rms_norm", "portable")
        for context in (one, one, hone.override("rms_norm", "portable")):  # the last says the same
            function(X)
            with context:
                function(X)
                text = hone.jax.lower(function, X)
                self.assertIn(f"hone_context = {traced[-1]} : i64", text)
        self.assertEqual(len(traced), 2)
        self.assertEqual(traced[0], 0)
        with hone.override("rms_norm", "reference"):
            function(X)
        self.assertEqual(len(set(traced)), 3)

    def test_what_runs_is_what_the_context_says(self):
        function = jax.jit(lambda x: rms(x, W))
        with hone.policy("fail"):
            with self.assertRaisesRegex(Exception, "NOT_FOUND: hone: rms_norm.*policy fail"):
                function(X).block_until_ready()
        close(function(X), norm(numpy.asarray(X), numpy.asarray(W)))
        with hone.override("rms_norm", "reference"):
            close(function(X), norm(numpy.asarray(X), numpy.asarray(W)))

    def test_a_function_in_the_chain_is_asked_by_xlas_threads_and_told_from_others_of_its_name(self):
        jitted, asked = jax.jit(lambda x, w: rms(x, w)), []  # programs keep the runtime that they were compiled with

        def told(word):
            return hone.context(links={"store": lambda call: asked.append((word, call.text)) or "portable"})

        contexts = told("one"), told("other")
        for context in (*contexts, *contexts):
            with context:
                close(jitted(X, W), norm(numpy.asarray(X), numpy.asarray(W)))
        self.assertEqual(asked, [("one", "rms_norm(f32[4,8,64], f32[64])"), ("other", "rms_norm(f32[4,8,64], f32[64])")])

        def lost(call):
            raise KeyError("my table")

        with hone.context(links={"store": lost}), self.assertRaisesRegex(Exception, "KeyError\\('my table'\\)"):
            jitted(X, W).block_until_ready()
        close(jitted(X, W), norm(numpy.asarray(X), numpy.asarray(W)))

    def test_execution_never_tunes(self):
        with hone.policy("tune"):
            close(jax.jit(rms)(X, W), norm(numpy.asarray(X), numpy.asarray(W)))
        self.assertNotIn(self.runtime.decide("rms_norm", ("f32", X.shape), ("f32", W.shape)).source, ("memory", "store"))
        self.assertEqual([row["algorithm"] for row in self.runtime.recorded()], ["rms_norm"])  # noted for later

    def test_coroutines_go_through_jit_of_hone(self):
        function = hone.jax.jit(lambda x: rms(x, W))
        plain = jax.jit(lambda x: rms(x, W))

        async def one(kernel, turns):
            with hone.override("rms_norm", kernel):
                for _ in range(turns):
                    await asyncio.sleep(0)
                    close(function(X), norm(numpy.asarray(X), numpy.asarray(W)))
                    text = function.lower(X).as_text()
                return f"hone_context = {hone._contexts.digest()} : i64" in text

        async def hidden(kernel):
            with hone.override("rms_norm", kernel):
                await asyncio.sleep(0.01)
                return plain(X)

        async def everybody():
            self.assertEqual(await asyncio.gather(one("portable", 3), one("reference", 5)), [True, True])
            failures = await asyncio.gather(hidden("portable"), hidden("reference"), return_exceptions=True)
            self.assertTrue(all(isinstance(one, RuntimeError) and "hone.jax.jit" in str(one) for one in failures[:1]))

        asyncio.run(everybody())


class Processes(HoneTest):
    """Programs that outlive their process: JAX's cache on the disk, jax.export."""

    def process(self, *words):
        command = [sys.executable, "-B", pathlib.Path(__file__).with_name("cached.py"), self.folder / "cache", *words]
        process = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=240,
                                 env={**os.environ, "HONE_STORE": "none"})
        self.assertEqual(process.returncode, 0, process.stderr)
        return [json.loads(line) for line in process.stdout.splitlines()]

    def test_a_cached_program_runs_under_what_this_process_says(self):
        failing, portable = self.process("fail", "kernel", "portable")
        self.assertIn("policy fail", failing["outcome"])
        self.assertEqual((portable["outcome"], portable["hits"]), (1.0, 0))
        # Another process, its contexts in another order: alike is found, else is not.
        reference, again, failing_again = self.process("kernel", "reference", "kernel", "portable", "fail")
        self.assertEqual((reference["outcome"], reference["hits"]), (1.0, 0))
        self.assertEqual((again["outcome"], again["hits"]), (1.0, 1))
        self.assertEqual(again["context"], portable["context"])
        self.assertIn("policy fail", failing_again["outcome"])
        self.assertEqual(failing_again["context"], failing["context"])
        self.assertEqual(len({row["context"] for row in (failing, portable, reference)}), 3)

    def test_an_exported_program_whose_context_is_not_known_runs_under_none(self):
        path = self.folder / "norm.exported"
        self.process("export", path)
        unknown, = self.process("run", path)
        self.assertEqual(unknown["outcome"], 1.0)
        _, known = self.process("fail", "run", path)
        self.assertIn("policy fail", known["outcome"])


def plain_block(x, w, v):
    wide = jax.nn.standardize(jnp.einsum("bsd,df->bsf", x, w))
    return jax.nn.softmax(wide @ v.T)


class Patch(HoneTest):
    """A program that does not name hone."""

    def setUp(self):
        super().setUp()
        generator = numpy.random.default_rng(5)
        self.arrays = [jnp.asarray(generator.standard_normal(shape), jnp.float32) for shape in ((2, 8, 16), (16, 32), (24, 32))]
        self.program = jax.jit(plain_block)
        self.loss = jax.grad(lambda *arrays: (self.program(*arrays) ** 2).sum(), (0, 1, 2))
        self.expected, self.gradients = self.program(*self.arrays), self.loss(*self.arrays)

    def calls(self):
        return set(re.findall(r'hone_algorithm = "(\w+)"', self.program.lower(*self.arrays).as_text()))

    def test_a_program_runs_hones_operations_and_jaxs_again_in_a_line(self):
        patched = hone.jax.patch()
        self.addCleanup(patched.undo)
        self.assertEqual(self.calls(), {"matmul", "layer_norm", "softmax"})
        close(self.program(*self.arrays), self.expected)
        close(plain_block(*self.arrays), self.expected)  # without jit
        self.assertGreaterEqual(patched.hits["dot_general"], 2)
        self.assertRegex(str(patched), r"softmax: \d+ places run hone's, 0 JAX's own")
        with self.assertRaisesRegex(hone.InvalidArgumentError, "already"):
            hone.jax.patch()
        patched.undo()
        self.assertEqual(self.calls(), set())
        self.assertEqual(jax.nn.softmax.__module__, "jax._src.nn.functions")
        self.assertTrue((self.program(*self.arrays) == self.expected).all())

    def test_gradients_and_vmap_are_jaxs(self):
        with hone.jax.patch():
            for ours, plain in zip(self.loss(*self.arrays), self.gradients):
                close(ours, plain)
            x, w, v = self.arrays
            close(jax.vmap(lambda rows: plain_block(rows[None], w, v)[0])(x), self.expected)
            second = jax.hessian(lambda x: (jax.nn.softmax(x) ** 2).sum())(jnp.arange(4.0))
        close(second, jax.hessian(lambda x: (jax.nn.softmax(x) ** 2).sum())(jnp.arange(4.0)))

    def test_batches_and_vectors_are_hones(self):
        x = self.arrays[0]
        four = jnp.asarray(numpy.random.default_rng(7).standard_normal((2, 3, 16, 5)), jnp.float32)
        programs = {
            "matmul(f32[2,8,16], f32[2,8,16], transpose_b=true)": (lambda a: jnp.einsum("bsd,btd->bst", a, a), (x,)),
            "matmul(f32[2,3,5,16], f32[2,3,5,16], transpose_b=true)": (lambda a: a.mT @ a, (four,)),
            "matmul(f32[2,8,16], f32[2,16,5])": (lambda a, b: a @ b, (x, four[:, 0])),
            "matmul(f32[2,16,5], f32[2,16,5], transpose_b=true)": (lambda a: jnp.einsum("bhqd,bhkd->bhqk", a, a), (four.swapaxes(0, 1)[0][:, None],)),
            "matmul(f32[3,2,16], f32[3,5,16], transpose_b=true)": (lambda a, b: jnp.einsum("qhd,khd->hqk", a, b), (four[:, :, :, 0], four[0].mT.swapaxes(0, 1))),
            "matmul(f32[3,2,16], f32[3,16,5])": (lambda a, b: jnp.einsum("qhk,khd->hqd", a, b), (four[:, :, :, 0], four[0].swapaxes(0, 1))),
            "matmul(f32[3,5,16], f32[3,16,5])": (lambda a, b: jnp.einsum("khq,hkd->hqd", a, b), (four[0].swapaxes(0, 1), four[0])),
            "matmul(f32[8,2,16], f32[8,2,16], transpose_b=true)": (lambda a: jnp.einsum("sbd,tbd->bst", a, a), (x,)),
            "matmul(f32[2,1,16], f32[2,16,5])": (lambda a, b: jnp.einsum("bd,bdn->bn", a, b), (x[:, 0], four[:, 0])),
            "matmul(f32[1,16], f32[16,5])": (lambda a, b: a @ b, (x[0, 0], four[0, 0])),
            "matmul(f32[8,16], f32[16,1])": (lambda a, b: a @ b, (x[0], x[1, 0])),
            "matmul(f32[1,16], f32[16,1])": (lambda a, b: a @ b, (x[0, 0], x[1, 0])),
        }
        expected = [function(*(numpy.asarray(one) for one in given)) for function, given in programs.values()]
        for (text, (function, given)), right in zip(programs.items(), expected):
            with self.subTest(text), hone.jax.patch() as patched:
                close(jax.jit(function)(*given), right, 1e-5, 1e-5)
                self.assertEqual(patched.hits["dot_general"], 1, patched)

    def test_what_hone_would_answer_otherwise_is_jaxs_with_the_reason(self):
        x = self.arrays[0]
        mesh = Mesh(numpy.array(jax.devices()), ("d",))
        spread = jax.device_put(x, NamedSharding(mesh, PartitionSpec("d")))
        with hone.jax.patch() as patched:
            close(jnp.einsum("sb,td->sbtd", x[0], x[1]), numpy.einsum("sb,td->sbtd", x[0], x[1]))
            close(jax.jit(lambda a, b: a @ b)(spread, self.arrays[1]), x @ self.arrays[1])
            (jnp.ones((4, 4), jnp.int32) @ jnp.ones((4, 4), jnp.int32)).block_until_ready()
            close(jax.nn.softmax(x, axis=0).sum(0), numpy.ones((8, 16)))
            close(jax.nn.softmax(x, where=x > 0).sum(), (x > 0).any(-1).sum())
            jax.export.export(jax.jit(lambda a: a @ a.T))(jax.ShapeDtypeStruct(jax.export.symbolic_shape("n, 4"), jnp.float32))
        left = patched.left
        for reason in ("an outer product", "spread over devices", "of int32", "a shape with symbols"):
            self.assertIn(reason, left["dot_general"], left)
        self.assertEqual({*left["softmax"]}, {"not along the last dim", "where is given"})


class PatchLayers(HoneTest):
    """A scan over the weights of layers, and silu."""

    def setUp(self):
        super().setUp()
        generator = numpy.random.default_rng(9)
        shapes = {"in": (3, 16, 2, 8), "out": (3, 2, 8, 16), "gate": (3, 16, 24), "down": (3, 24, 16), "norm": (3, 16), "table": (3, 5, 16)}
        self.weights = {name: jnp.asarray(generator.standard_normal(shape) * 0.3, jnp.float32) for name, shape in shapes.items()}
        self.x = jnp.asarray(generator.standard_normal((7, 16)), jnp.float32)

    @staticmethod
    def layer(x, w):
        h = jnp.einsum("sd,dhk->shk", x * w["norm"], w["in"])
        x = x + jax.jit(lambda a, b: jnp.einsum("shk,hkd->sd", a, b))(h, w["out"])  # a function of its own
        gate = x @ w["gate"]
        return x + (jax.nn.silu(gate) * jnp.tanh(gate)) @ w["down"], (w["table"] @ x.T, x @ w["table"].T)

    def run_with(self, weights=None, x=None, **options):
        return jax.lax.scan(self.layer, self.x if x is None else x, self.weights if weights is None else weights, **options)

    def test_products_read_the_weights_of_a_scan_where_they_lie(self):
        for dtype, tolerance in ((jnp.float32, 1e-5), (jnp.bfloat16, 8e-2)):
            weights, x = jax.tree.map(lambda one: one.astype(dtype), (self.weights, self.x))
            for options in ({}, {"reverse": True}, {"unroll": 2}, {"unroll": 3}, {"_split_transpose": True}):
                with self.subTest(dtype.__name__, **options):
                    expected = jax.jit(functools.partial(self.run_with, **options))(weights, x)
                    with hone.jax.patch() as patched:
                        program = jax.jit(functools.partial(self.run_with, **options)).lower(weights, x)
                        made = program.compile()(weights, x)
                    jax.tree.map(lambda one, other: numpy.testing.assert_allclose(
                        one.astype(jnp.float32), other.astype(jnp.float32), rtol=tolerance, atol=tolerance), made, expected)
                    self.assertEqual({*re.findall(r"hone_sliced = (\d+)", program.as_text())}, {"2"})
                    self.assertEqual(patched.hits["silu"], 1)
                    # in, out, gate and down: table is also the left side of a product, and is sliced
                    self.assertEqual(program.as_text().count("hone_sliced"), 4)

    def test_a_scan_without_trips_or_products_is_jaxs(self):
        with hone.jax.patch():
            x, (left, right) = jax.jit(self.run_with)(jax.tree.map(lambda one: one[:0], self.weights))
            self.assertEqual((left.shape, right.shape), ((0, 5, 7), (0, 7, 5)))
            self.assertTrue((x == self.x).all())
            sums = jax.jit(lambda x: jax.lax.scan(lambda carry, row: (carry + row, carry), jnp.zeros(16), x)[0])(self.x)
            close(sums, self.x.sum(0))

    def test_gradients_and_vmap_of_a_scan_are_jaxs(self):
        def loss(weights, x):
            made, others = self.run_with(weights, x)
            return (made ** 2).sum() + sum(one.sum() for one in others)

        rows = jnp.stack([self.x, -self.x])
        expected = jax.jit(jax.grad(loss, (0, 1)))(self.weights, self.x), jax.vmap(lambda x: self.run_with(x=x)[0])(rows)
        with hone.jax.patch():
            made = jax.jit(jax.grad(loss, (0, 1)))(self.weights, self.x), jax.vmap(lambda x: self.run_with(x=x)[0])(rows)
        jax.tree.map(lambda one, other: numpy.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-3), made, expected)

    def test_a_tuned_scan_and_its_list(self):
        with hone.jax.patch():
            program = jax.jit(self.run_with)
            with hone.jax.tune(program, seconds=0.01) as result:
                made = program()
        self.assertIn("matmul(f32[7,16], f32[16,24])", str(result))
        close(made[0], self.run_with()[0], 1e-4, 1e-4)

    def test_a_jax_that_keeps_lowered_operations_to_itself_has_silu_and_norms_left(self):
        from jax._src.interpreters import mlir

        with unittest.mock.patch.dict(mlir.__dict__):
            del mlir._uncacheable_primitives
            with hone.jax.patch() as patched:
                for name in ("silu", "norm"):
                    self.assertRegex(str(patched), name + r": 0 places run hone's, 1 JAX's own\n  1: JAX .* does not show")
        with hone.jax.patch() as patched:
            close(jax.jit(lambda x: jax.nn.silu(x) * x)(self.x), self.x * self.x / (1 + jnp.exp(-self.x)))
        self.assertEqual(patched.hits["silu"], 1)

    def test_silu_of_both_sides_and_what_is_no_silu(self):
        def silu(x):  # JAX's name, and another function
            return x * jnp.tanh(x)

        wide = jnp.asarray(numpy.random.default_rng(3).standard_normal((4, 24)), jnp.float32)
        programs = {  # how often it is fused
            "left": (lambda x: jax.nn.silu(x) * (x + 1), 1), "right": (lambda x: (x + 1) * jax.nn.silu(x), 1),
            "itself": (lambda x: jax.nn.silu(x) * jax.nn.silu(x + 1), 1), "alone": (jax.nn.silu, 0),
            "another": (lambda x: jax.jit(silu)(x) * (x + 1), 0), "scaled": (lambda x: jax.nn.silu(x) * 2.0, 0),
            "sigmoid": (lambda x: jax.nn.sigmoid(x) * (x + 1), 0), "a vector": (lambda x: jax.nn.silu(x[0]) * x[1], 1),
            "a number": (lambda x: jax.nn.silu(x[0, 0]) * x[1, 1], 0), "broadcast": (lambda x: jax.nn.silu(x[:1]) * x, 0),
            "swish": (lambda x: jax.nn.swish(x) * (x + 1), 1), "nothing": (lambda x: jax.nn.silu(x[:0]) * x[:0], 0)}
        for name, (function, fused) in programs.items():
            for dtype, tolerance in ((jnp.float32, 1e-5), (jnp.bfloat16, 4e-2), (jnp.float64, 1e-5), (jnp.float16, 4e-3)):
                with self.subTest(name, dtype=dtype.__name__), jax.enable_x64(True):
                    x = wide.astype(dtype)
                    expected = jax.jit(lambda x: function(x))(x)
                    with hone.jax.patch() as patched:
                        made = jax.jit(lambda x: function(x))(x)
                    numpy.testing.assert_allclose(made.astype(jnp.float32), expected.astype(jnp.float32), rtol=tolerance, atol=tolerance)
                    self.assertEqual(patched.hits["silu"], 0 if dtype == jnp.float64 else fused)

    def test_norms_that_are_written_out_and_what_is_no_norm(self):
        def root(x, axis=-1, eps=1e-2):
            return jax.lax.rsqrt(jnp.mean(x * x, axis=axis, keepdims=True) + eps)

        def sums(x):
            return (x ** 2).sum(-1, keepdims=True)

        gain = jnp.asarray(numpy.random.default_rng(4).standard_normal(8), jnp.float32)
        programs = {  # of rows in float32, what is then rounded, and how often it is hone's
            "plain": (lambda x: x * root(x), 1), "root first": (lambda x: root(x) * x, 1), "divided": (lambda x: x / jnp.sqrt(sums(x) / 8 + 0.1), 1),
            "a part": (lambda x: x * jax.lax.rsqrt(0.1 + 0.125 * sums(x)), 1), "spread": (lambda x: x * jax.lax.rsqrt((x * x).mean(-1) + 0.1)[:, None], 1),
            "gain": (lambda x: x * root(x) * gain, 1), "gain first": (lambda x: (1 + gain) * (x * root(x)), 1),
            "squares": (lambda x: x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 0.1), 1),
            "columns": (lambda x: x * root(x, 0), 0), "all": (lambda x: x * root(x, (0, 1)), 0), "another count": (lambda x: x * jax.lax.rsqrt(sums(x) / 7 + 0.1), 0),
            "across": (lambda x: x * root(x)[:, 0], 0), "no eps": (lambda x: x * jax.lax.rsqrt(sums(x) / 8), 0),
            "eps of a row": (lambda x: x * root(x, eps=x[:, :1] ** 2), 0), "other rows": (lambda x: x * root(x + 1), 0),
            "upside down": (lambda x: jnp.sqrt(sums(x) / 8 + 0.1) / x, 0), "the largest": (lambda x: x * jax.lax.rsqrt((x ** 2).max(-1, keepdims=True) / 8 + 0.1), 0),
            "gain of rows": (lambda x: x * root(x) * gain[:, None], 0), "of no rows": (lambda x: (x * root(x))[:0], 0), "products": (lambda x: x * jax.lax.rsqrt((x * (x + 1)).mean(-1, keepdims=True) ** 2 + 1), 0)}
        rows = jnp.asarray(numpy.random.default_rng(3).standard_normal((8, 8)), jnp.float32).at[3].set(0).at[4, 2].set(jnp.nan).at[5, 5].set(jnp.inf)
        for name, (function, normed) in programs.items():
            for dtype, tolerance in ((jnp.bfloat16, 1e-2), *(((jnp.float16, 1e-3), (jnp.float32, 1e-5)) if name in ("plain", "gain") else ())):
                with self.subTest(name, dtype=dtype.__name__):
                    x = rows.astype(dtype)

                    def program(x, function=function):
                        return function(x.astype(jnp.float32)).astype(x.dtype)

                    expected = jax.jit(lambda x: program(x))(x)
                    with hone.jax.patch() as patched:
                        made = jax.jit(lambda x: program(x))(x)
                    numpy.testing.assert_allclose(made.astype(jnp.float32), expected.astype(jnp.float32), rtol=tolerance, atol=tolerance)
                    self.assertEqual(patched.hits["norm"], 0 if dtype == jnp.float32 else normed)
        shaped = {"a row": ((8,), 1), "many dims": ((2, 2, 2, 8), 1), "other types": ((8, 8), 0)}
        for name, (shape, normed) in shaped.items():
            with self.subTest(name):
                x = jnp.asarray(numpy.random.default_rng(5).standard_normal(shape), jnp.bfloat16)

                def program(x, out=jnp.float16 if name == "other types" else jnp.bfloat16):
                    wide = x.astype(jnp.float32)
                    return (wide * root(wide) * gain).astype(out)

                expected = jax.jit(lambda x: program(x))(x)
                with hone.jax.patch() as patched:
                    made, gradient = jax.jit(lambda x: program(x))(x), jax.jit(jax.grad(lambda x: program(x).astype(jnp.float32).sum()))(x)
                close(made.astype(jnp.float32), expected.astype(jnp.float32), 1e-2, 1e-2)
                close(gradient.astype(jnp.float32), jax.jit(jax.grad(lambda x: program(x).astype(jnp.float32).sum()))(x).astype(jnp.float32), 5e-2, 5e-2)
                self.assertGreaterEqual(patched.hits["norm"], normed)
                if not normed:
                    self.assertEqual(patched.hits["norm"], 0)


class PatchAttention(HoneTest):
    """jax.nn.dot_product_attention."""

    def setUp(self):
        super().setUp()
        self.generator = numpy.random.default_rng(6)
        self.arrays = [self.random(*shape) for shape in ((2, 7, 4, 16), (2, 9, 2, 16), (2, 9, 2, 16))]
        mask = self.generator.random((2, 1, 7, 9)) < 0.6
        mask[0, 0, 3] = False  # a query that sees no key
        self.mask = jnp.asarray(mask)

    def random(self, *shape):
        return jnp.asarray(self.generator.standard_normal(shape), jnp.float32)

    def run_with(self, arrays=None, **options):
        made = jax.nn.dot_product_attention(*(self.arrays if arrays is None else arrays), **options)
        return made[0] if isinstance(made, tuple) else made

    def test_attention_is_jaxs(self):
        before, lengths = jax.nn.dot_product_attention, jnp.asarray([3, 9], jnp.int32)
        calls = [{}, {"is_causal": True, "scale": 0.3}, {"local_window_size": 2}, {"mask": self.mask}, {"bias": self.random(1, 4, 7, 9)},
                 {"bias": self.random(2, 1, 1, 9), "mask": self.mask, "is_causal": True}, {"local_window_size": (1, 3)},
                 {"mask": self.mask & False}, {"key_value_seq_lengths": lengths},
                 {"query_seq_lengths": lengths - 2, "key_value_seq_lengths": lengths, "mask": self.mask}]
        expected = [self.run_with(**options) for options in calls]
        one = self.run_with([array[0] for array in self.arrays])
        half = self.run_with([array.astype(jnp.bfloat16) for array in self.arrays], bias=calls[4]["bias"])
        with hone.jax.patch() as patched:
            for options, wanted in zip(calls, expected):
                with self.subTest([*options]):
                    close(self.run_with(**options), wanted)
                    close(jax.jit(functools.partial(self.run_with, is_causal=options.pop("is_causal", False), scale=options.pop("scale", None),
                                                    local_window_size=options.pop("local_window_size", None)))(**options), wanted)
            close(self.run_with([array[0] for array in self.arrays]), one)
            made = self.run_with([array.astype(jnp.bfloat16) for array in self.arrays], bias=calls[4]["bias"])
            self.assertEqual(made.dtype, half.dtype)
            numpy.testing.assert_allclose(made.astype(jnp.float32), half.astype(jnp.float32), rtol=2e-2, atol=2e-2)
        self.assertEqual((patched.hits["dot_product_attention"], dict(patched.left["dot_product_attention"])), (2 * len(calls) + 2, {}))
        self.assertIs(jax.nn.dot_product_attention, before)

    def test_which_operation_it_is(self):
        def operations(**options):
            text = jax.jit(functools.partial(self.run_with, **options)).lower(self.arrays).as_text()
            return set(re.findall(r'hone_algorithm = "(\w+)"', text))

        with hone.jax.patch():
            self.assertEqual(operations(local_window_size=3, is_causal=True), {"scaled_dot_product_attention"})
            self.assertEqual(operations(mask=self.mask), {"dot_product_attention"})

    def test_gradients_and_vmap_are_jaxs(self):
        bias = self.random(1, 4, 7, 9)

        def loss(arrays, bias):
            return (self.run_with(arrays, bias=bias, mask=self.mask) ** 2).sum()

        expected = jax.grad(loss, (0, 1))(self.arrays, bias)
        mapped = jax.vmap(lambda bias: self.run_with(bias=bias))(jnp.stack([bias, -bias]))
        pushed = jax.jvp(self.run_with, (self.arrays,), (self.arrays,))[1]
        with hone.jax.patch() as patched:
            for ours, plain in zip(jax.tree.leaves(jax.grad(loss, (0, 1))(self.arrays, bias)), jax.tree.leaves(expected)):
                numpy.testing.assert_allclose(ours, plain, rtol=1e-3, atol=1e-4)
            close(jax.vmap(lambda bias: self.run_with(bias=bias))(jnp.stack([bias, -bias])), mapped)
            numpy.testing.assert_allclose(jax.jvp(self.run_with, (self.arrays,), (self.arrays,))[1], pushed, rtol=1e-3, atol=1e-4)
        self.assertEqual(dict(patched.left["dot_product_attention"]), {})

    def test_what_hone_would_answer_otherwise_is_jaxs_with_the_reason(self):
        query, key, value = self.arrays
        with jax.enable_x64(True):
            wide = [jnp.asarray(array, jnp.float64) for array in self.arrays]
        with hone.jax.patch() as patched:
            jax.nn.dot_product_attention(*self.arrays, return_residual=True)
            self.run_with(implementation="xla")
            with jax.enable_x64(True):
                self.run_with(wide)
            jax.jit(lambda scale: self.run_with(scale=scale))(0.5)
            for wrong in ({"arrays": [query, key, value[:, :4]]}, {"mask": jnp.ones((1, 1, 7, 9), jnp.int32)}, {"bias": self.random(1, 4, 7, 4)},
                          {"key_value_seq_lengths": jnp.ones(2, jnp.float32)}):
                with self.assertRaises((ValueError, TypeError)):  # JAX's
                    self.run_with(**wrong)
        self.assertEqual(dict(patched.left["dot_product_attention"]), {
            "return_residual is given": 1, "implementation is given": 1, "of float64": 1, "scale is not a number": 1, "shapes that JAX refuses": 1,
            "a mask of int32[1, 1, 7, 9]": 1, "a bias of float32[1, 4, 7, 4]": 1, "lengths that JAX refuses": 1})

    def test_on_a_gpu_what_no_kernel_takes_stays_jaxs(self):
        why = hone.patches._why_not_on_gpu
        plain = dict.fromkeys(("query_seq_lengths", "key_value_seq_lengths", "local_window_size"))
        half = jnp.ones((1, 4, 2, 64), jnp.bfloat16)
        with unittest.mock.patch.object(jax, "default_backend", lambda: "gpu"):
            self.assertIsNone(why(half, None, None, plain))
            self.assertIn("window", why(half, None, None, {**plain, "local_window_size": 2}))
            self.assertIn("mask", why(half, None, self.mask, plain))
            self.assertIn("float32", why(half.astype(jnp.float32), None, None, plain))
            self.assertIn("128", why(half[..., :24], None, None, plain))


class Handler(HoneTest):
    """Frames that no hone.jax.call would make."""

    def call(self, *arrays, result=None, **attributes):
        hone.jax._runtime()
        shape = jax.ShapeDtypeStruct(X.shape, X.dtype) if result is None else result
        return jax.jit(lambda *given: jax.ffi.ffi_call("hone_call", shape)(*given, **attributes))(*arrays)

    def refused(self, words, *arrays, **attributes):
        with self.assertRaisesRegex(Exception, words):
            jax.block_until_ready(self.call(*arrays, **attributes))

    def test_a_program_of_others_may_call_hone(self):
        close(self.call(X, W, hone_algorithm="rms_norm", eps=numpy.float32(0.5)), rms(X, W, eps=0.5))
        close(self.call(X, W, hone_algorithm="rms_norm", hone_version="1", hone_context=numpy.int64(12345)), rms(X, W))

    def test_errors_are_laid_out_as_in_c(self):
        header = pathlib.Path(__file__).parents[2] / "include" / "hone" / "status.h"
        members = re.search(r"typedef struct hone_error \{(.*?)\} hone_error;", header.read_text(), re.S).group(1)
        names = re.findall(r"^\s*[\w ]+?\*?(\w+)(?:\[\d+\])?;", members, re.M)
        self.assertEqual(names, [name for name, _ in hone.jax._Error._fields_])
        self.assertIn(f"char message[{hone.jax._Error.message.size}];", members)

    def test_wrong_frames_are_errors_of_xla_in_hones_words(self):
        name = {"hone_algorithm": "rms_norm"}
        self.refused("INVALID_ARGUMENT: hone: .*hone_algorithm", X, W)
        self.refused("NOT_FOUND: hone: .*nothing", X, W, hone_algorithm="nothing")
        self.refused("NOT_FOUND: hone: ", X, W, hone_version="9", **name)
        self.refused("no parameter epsilon; it is rms_norm", X, W, epsilon=numpy.float32(1), **name)
        self.refused("eps is of another kind than f64", X, W, eps="small", **name)
        self.refused("neither a string nor a scalar", X, W, eps=numpy.ones(3), **name)
        self.refused("expected 2 arrays, got 1", X, **name)
        self.refused("expected 1 result, got 2", X, W, result=[jax.ShapeDtypeStruct((1,), X.dtype)] * 2, **name)
        self.refused(r"INVALID_ARGUMENT: hone: rms_norm: weight\[0\] is 5", X, W[:5], **name)
        self.refused("INVALID_ARGUMENT: hone: rms_norm: y", X, W, result=jax.ShapeDtypeStruct((3,), X.dtype), **name)
        self.refused("XLA's type 21", X, jnp.ones(64, jnp.int4), **name)
        self.refused("dimensions; it is asked for", X.reshape(1, 1, 1, 1, 1, 1, 1, 4, 8, 64), W, **name)

    def compiled(self, source, *flags):
        compiler = shutil.which("cc") or shutil.which("gcc")
        root = pathlib.Path(__file__).parents[2]
        process = subprocess.run(
            [compiler, "-std=c11", f"-I{root}/src", f"-I{root}/include", "-isystem", jax.ffi.include_dir(), *flags,
             str(root / "tests" / "xla_ffi" / source)], capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr)

    def test_the_layouts_are_those_of_jaxlib(self):
        self.compiled("layout.c", "-fsyntax-only")

    def test_xla_lends_no_memory_on_the_cpu(self):
        """Should it ever, hone's kernels may take theirs from there on the CPU too."""
        library = self.folder / "memory.so"
        self.compiled("memory.c", "-shared", "-fPIC", "-o", str(library))
        jax.ffi.register_ffi_target("hone_test_memory", jax.ffi.pycapsule(ctypes.CDLL(library).ask_for_memory), "cpu", 1)
        with self.assertRaisesRegex(Exception, "GPU context is not available"):
            jax.block_until_ready(jax.jit(lambda x: jax.ffi.ffi_call("hone_test_memory", x)(x))(X))


class Tune(HoneTest):
    def test_what_is_tuned_answers(self):
        function = jax.jit(lambda x, w: rms(x, w, eps=0.25))
        before = function(X, W)
        result = hone.jax.tune(function, X, W, **QUICK)
        self.assertEqual([decision.call for decision in result], ["rms_norm(f32[4,8,64], f32[64])"])  # of any eps
        result.save(self.folder / "result.json")
        with hone.Runtime(store="none") as other:  # which has nothing but the result
            restored = hone.use(other)
            self.addCleanup(hone.use, restored)
            again = hone.Result.load(self.folder / "result.json")
            with hone.policy("fail"):
                with self.assertRaisesRegex(Exception, "policy fail"):
                    jax.block_until_ready(function(X, W))
                with again:
                    close(function(X, W), before)
                with self.assertRaisesRegex(Exception, "policy fail"):
                    jax.block_until_ready(function(X, W))
            hone.use(restored)
        abstract = hone.jax.tune(lambda x: hone.jax.call("softmax", x), jax.ShapeDtypeStruct((4, 32), jnp.float32), **QUICK)
        self.assertEqual([decision.call for decision in abstract], ["softmax(f32[4,32])"])

    def test_a_functions_own_parameters_are_not_taken_for_options(self):
        seen = []

        def scaled(x, w, seed=1.0, *, kernel="none", **rest):
            seen.append((seed is not None and not isinstance(seed, float), kernel, sorted(rest)))
            return rms(x, w) * seed
        hone.jax.tune(jax.jit(scaled, static_argnames="kernel"), X, W, seed=2.0, kernel="mine", other=3.0, **QUICK)
        self.assertEqual(seen, [(True, "mine", ["other"])])
        result = hone.jax.tune(jax.jit(functools.partial(scaled, seed=4.0), static_argnames="kernel"), X, W, kernel="own",
                               options={**QUICK, "kernel": "portable", "fresh": True})
        self.assertEqual(seen[1:], [(False, "own", [])])
        self.assertEqual([decision.kernel for decision in result], ["portable"])

    def test_a_compiled_program_counts_its_calls_and_takes_up_what_another_process_tunes(self):
        self.runtime.record(True)
        function = jax.jit(rms)
        for _ in range(100):
            jax.block_until_ready(function(X, W))
        row, = self.runtime.recorded()
        self.assertEqual((row["answered"], row["count"] >= 100), ("heuristic", True))
        tune_elsewhere(self.store, row["call"])

        def is_taken_up():
            jax.block_until_ready(function(X, W))
            return self.runtime.recorded()[0]["answered"] in ("store", "memory")
        self.assertTrue(within_a_minute(is_taken_up))

    def command(self, *arguments):
        return [os.environ["HONE_TEST_COMMAND"], *arguments, "--store", self.store]

    def test_a_block_is_tuned_by_the_command_from_its_file(self):
        x, p = made()
        step = jax.jit(functools.partial(block, Hone, heads=4))
        expected = block(Plain, x, p, 4)
        close(step(x, p), expected)
        forms = {"block.mlir": step.lower(x, p).as_text(debug_info=True).encode(),
                 "plain.mlir": step.lower(x, p).as_text().encode(),
                 "block.hlo": step.lower(x, p).as_text("hlo", debug_info=True).encode(),
                 "optimised.hlo": step.lower(x, p).compile().as_text().encode()}
        found = {}
        for name, data in forms.items():
            (self.folder / name).write_bytes(data)
            out = subprocess.run(self.command("offline", "--list", "--json", str(self.folder / name)), check=True,
                                 capture_output=True, text=True).stdout
            found[name] = {row["call"]: row for row in json.loads(out)["operations"]}
        calls = found["block.mlir"]
        self.assertEqual({call.split("(")[0] for call in calls},
                         {"rms_norm", "matmul", "flash_attention", "softmax", "silu_mul"})
        self.assertEqual({row["matched"] for row in calls.values()}, {"label"})
        self.assertEqual({name: set(rows) for name, rows in found.items()}, {name: set(calls) for name in forms})
        tuning = self.command("offline", "--json", "--seconds", "1", "--evals", "6", str(self.folder / "block.mlir"))
        # Two processes at once: they share the work through the store.
        processes = [subprocess.Popen(tuning, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        evidence = []
        for process in processes:
            out, err = process.communicate(timeout=240)
            self.assertEqual(process.returncode, 0, err)
            evidence.append({entry["call"]: entry["evidence"] for entry in json.loads(out)["entries"]})
            self.assertEqual(set(evidence[-1]), set(calls))
        for call in calls:  # one of the two measured it, and says which kernels it tried; the other took what was found
            self.assertEqual(sorted(bool(one[call].pop("kernels")) for one in evidence), [False, True], call)
            self.assertEqual(evidence[0][call], evidence[1][call])
        stat = json.loads(subprocess.run(self.command("store", "stat", "--json"), check=True, capture_output=True,
                                         text=True).stdout)
        self.assertEqual(stat["decisions"], len(calls))
        self.assertLessEqual(stat["measurements"], 6 * len(calls))
        with hone.Runtime(store=self.store) as tuned:
            before = hone.use(tuned)
            try:
                for call in calls:
                    self.assertEqual(hone.decide(call).source, "store", call)
                with hone.policy("fail"):  # what is not in the store would be an error
                    close(step(x, p), expected)
            finally:
                hone.use(before)
