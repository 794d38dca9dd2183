"""Calls of a program's own kernels, tuned from what JAX lowered: ejkernel's pages, with the real ejkernel beside hone."""

import dataclasses
import os
import pathlib
import sys
import threading
import unittest
import unittest.mock

os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_COMPILATION_CACHE="false", JAXTYPING_DISABLE="1",
                  EJKERNEL_OPS_RECORD="1", EJKERNEL_OPS_STAMP="hash")

import jax
import jax.numpy as jnp
import numpy

import hone
import hone.ejkernel
from support import QUICK, HoneTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build-python" / "ejkernel-imports"))
try:
    import ejkernel.ops as original
    import ejkernel.ops.registry
except ImportError:
    if os.environ.get("HONE_REQUIRE"):
        raise
    original = None


@dataclasses.dataclass(frozen=True)
class Cfg:
    block: int


class Tuner:
    """Takes the config of the largest block that runs, and keeps what it ran."""

    def __init__(self):
        self.ran = []

    def autotune(self, make, args, kwargs, candidates):
        best = None
        for config in candidates:
            try:
                jax.block_until_ready(make(config)(*args, **kwargs))
            except ZeroDivisionError:
                continue
            self.ran.append((config, args))
            best = config if best is None or config.block > best.block else best
        return best


class Scale(original.Kernel if original else object):
    op_id, version = "scale_op", "3"
    blocks = (1, 4, 2)

    def run(self, x, *, cfg, factor=2.0, act=lambda x: x):
        used.append(cfg)
        return act(x) * factor * (cfg.block / cfg.block)

    def heuristic_cfg(self, inv):
        return Cfg(1)

    def candidate_cfgs(self, inv):
        return [Cfg(block) for block in self.blocks]


class Broken(Scale):
    op_id = "broken_op"
    blocks = (0,)


class Failing(Scale):
    op_id = "failing_op"

    def candidate_cfgs(self, inv):
        raise KeyError("no such table")


used = []


def selector_of(names, **more):
    policy = original.AutotunePolicy(cache_miss_fallback="heuristics")
    return original.ConfigSelectorChain(names.ConfigCache(), policy=policy, tuner=Tuner(), **more)


@unittest.skipIf(original is None, "ejkernel is not installed: scripts/setup python")
class Invocations(HoneTest):
    def setUp(self):
        super().setUp()
        for registry in (ejkernel.ops.registry._REG, hone.invocations._calls):
            registry.clear()

    def test_the_pages_example_counts_calls(self):
        kernel, args, kwargs = object(), [1, 2], {"causal": True}
        found = []
        for names in (hone, hone.ejkernel, original):
            names.record_invocation('gpu|cuda_12.0', 'matmul@v1', 'abc123', kernel, args, kwargs)
            invocations = names.get_invocations('gpu|cuda_12.0')
            for op_id, calls in invocations.items():
                found.append(f"Operation {op_id} has {len(calls)} recorded calls")
            self.assertEqual(invocations, {"matmul@v1": {"abc123": (kernel, (1, 2), {"causal": True})}})
            self.assertEqual(names.get_invocations("tpu"), {})
        self.assertEqual(found, ["Operation matmul@v1 has 1 recorded calls"] * 3)

    def test_many_threads_record_at_once(self):
        def record(worker):
            for i in range(200):
                hone.record_invocation("d", f"op{i % 5}@v1", f"{worker}-{i}", None, (), {})
        threads = [threading.Thread(target=record, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(map(len, hone.get_invocations("d").values())), 800)

    def program(self, selector, *kernels):
        executor = original.Executor(selector)

        def my_function(x):
            for kernel in kernels:
                x = executor(kernel, x, factor=3.0)
            return x

        return my_function, jnp.ones((4, 8))

    def test_the_pages_example_tunes_what_jax_lowered_and_its_result_answers(self):
        selector = selector_of(hone.ejkernel, persistent=hone.ejkernel.PersistentCache("scale", f"{self.folder}/scale.json"))
        my_function, real_args = self.program(selector, Scale(), Scale())
        lowered = jax.jit(my_function).lower(real_args)
        selector.cache.clear()
        result = hone.ejkernel.autotune_lowered(selector, lowered)
        entry, = result.entries
        self.assertEqual((entry.op_id_v, entry.cfg, result.failed), ("scale_op@v3", Cfg(4), ()))
        self.assertEqual([config for config, _ in selector.tuner.ran], [Cfg(1), Cfg(4), Cfg(2)])  # once, though called twice
        self.assertFalse(any(isinstance(x, jax.core.Tracer) for _, args in selector.tuner.ran for x in args))
        key = ("cpu|cpu", "scale_op@v3", entry.call_key)
        self.assertEqual(result.as_overlay(), {key: Cfg(4)})
        self.assertEqual((selector.cache.get(*key), selector.persistent.get(*key)), (Cfg(4), hone.ejkernel.Namespace(block=4)))
        fresh, real_args = self.program(selector_of(hone.ejkernel), Scale())
        jitted = jax.jit(fresh)
        output = jitted(real_args)
        self.assertEqual(used.pop(), Cfg(1))
        with result:  # Apply optimized configurations
            with result:
                output = jitted(real_args)
            self.assertEqual(used.pop(), Cfg(4))
            self.assertEqual(hone.caches.overlaid(*key), Cfg(4))
        self.assertEqual(float(output[0, 0]), 3.0)
        self.assertIsNone(hone.caches.overlaid(*key))
        with self.assertRaises(dataclasses.FrozenInstanceError):
            with original.AutotuningResult("cpu|cpu", ()):  # the original's own cannot be entered
                pass

    def test_a_function_is_traced_anew_under_an_overlay(self):
        cache, key = hone.ConfigCache(), ("cpu", "op@v1", "key")
        cache.put(*key, 1)
        jitted = jax.jit(lambda x: x * cache.get(*key))
        with unittest.mock.patch.dict(sys.modules):
            del sys.modules["ejkernel.ops.config.cache"]  # which would see to it
            found = [float(jitted(1.0))]
            for value in (2, 3):
                with hone.overlay_cache({key: value}):
                    found.append(float(jitted(1.0)))
            found.append(float(jitted(1.0)))
        self.assertEqual(found, [1.0, 2.0, 3.0, 1.0])

    def test_a_call_and_its_gradient_are_tuned_once(self):
        selector = selector_of(original)
        my_function, x = self.program(selector, Scale())
        lowered = jax.jit(jax.grad(lambda x: my_function(x).sum())).lower(x)
        self.assertEqual([entry.cfg for entry in hone.autotune_lowered(selector, lowered).entries], [Cfg(4)])

    def test_what_is_not_tuned_is_named_and_stops_nothing(self):
        selector = selector_of(original)
        my_function, x = self.program(selector, Broken(), Failing(), Scale())
        lowered = jax.jit(my_function).lower(x)
        result = hone.autotune_lowered(selector, lowered)
        self.assertEqual([entry.op_id_v for entry in result.entries], ["scale_op@v3"])
        reasons = {label.split("#")[1].split("@")[0]: reason for label, reason in result.failed}
        self.assertEqual(reasons, {"broken_op": "no candidate ran", "failing_op": "KeyError: 'no such table'"})
        ejkernel.ops.registry._REG.clear()
        result = hone.autotune_lowered(selector, lowered)
        self.assertEqual((result.entries, len(result.failed)), ((), 3))
        self.assertIn("was not recorded", result.failed[0][1])

    def test_what_a_program_recorded_itself_is_prepared(self):
        class Prepared(Scale):
            def prepare(self, x, **kwargs):
                return (x[:2],), kwargs

        selector = selector_of(original)
        my_function, x = self.program(selector, Scale())
        lowered = jax.jit(my_function).lower(x)
        calls = hone.get_invocations("cpu|cpu")["scale_op@v3"]
        hone.record_invocation("cpu|cpu", "scale_op@v3", *calls, Prepared(), (x,), {"factor": 3.0, "act": jnp.tanh})
        self.assertEqual(len(hone.autotune_lowered(selector, lowered).entries), 1)
        self.assertEqual({args[0].shape for _, args in selector.tuner.ran}, {(2, 8)})

    def test_hone_tunes_its_own_kernels_for_what_jax_lowered(self):
        import hone.jax

        x, w = jnp.ones((8, 64)), jnp.ones(64)
        lowered = jax.jit(lambda x, w: hone.jax.call("rms_norm", x, w)).lower(x, w)
        self.assertEqual([decision.algorithm for decision in hone.offline(lowered, **QUICK)], ["rms_norm"])
        self.assertEqual([decision.algorithm for decision in hone.offline(lowered.compile(), **QUICK)], ["rms_norm"])
        with self.assertLogs("hone", "WARNING") as logs:
            self.assertEqual(len(hone.offline(jax.jit(lambda x: x + 1).lower(1.0), **QUICK)), 0)
        self.assertIn("no labelled operation", logs.output[0])
        with self.assertRaisesRegex(TypeError, "lower it"):
            hone.offline(jax.jit(lambda x: x + 1))

    def test_the_registry_has_ejkernels_kernels_behind_hones(self):
        from ejkernel.kernels import kernel_registry as theirs
        from hone.ejkernel import Platform, kernel_registry

        # List all registered algorithms
        algorithms = kernel_registry.list_algorithms()
        # Get implementations for an algorithm
        impls = kernel_registry.list_implementations("flash_attention")
        # Get best implementation for current platform
        impl = kernel_registry.get("flash_attention", platform=Platform.XLA)
        self.assertIs(impl, theirs.get("flash_attention", platform="xla"))
        self.assertLessEqual({"softmax", *theirs.list_algorithms()}, {*algorithms})
        self.assertEqual(impls, hone.kernel_registry.list_implementations("flash_attention")
                         + theirs.list_implementations("flash_attention"))
        q = jax.random.normal(jax.random.key(0), (1, 16, 2, 16))
        found = kernel_registry.get("flash_attention")
        self.assertIsInstance(found, hone.registry.Kernel)
        numpy.testing.assert_allclose(numpy.asarray(found(q, q, q)), impl(q, q, q), rtol=2e-3, atol=2e-3)
        self.assertTrue(kernel_registry.validate_signatures("flash_attention"))
        self.assertTrue(kernel_registry.validate_signatures("ring_attention"))
        for query in (("flash_attention", "tilelang", "tpu"), ("nothing",)):
            with self.assertRaises(ValueError):
                kernel_registry.get(*query)

    def test_what_hone_does_not_replace_is_ejkernels_own(self):
        self.assertIs(hone.ejkernel.ConfigSelectorChain, original.ConfigSelectorChain)
        with self.assertRaises(AttributeError):
            hone.ejkernel.nothing_of_the_kind


if __name__ == "__main__":
    unittest.main()
