"""What ejkernel's pages say of its five systems, statement by statement, as far as no other test shows it: of hone's
names, of hone.ejkernel's, and of the real ejkernel's where that does what its pages say."""

import asyncio
import contextlib
import dataclasses
import inspect
import io
import json
import os
import pathlib
import subprocess
import sys
import threading
import unittest

os.environ.update(JAX_PLATFORMS="cpu", JAX_ENABLE_COMPILATION_CACHE="false", JAXTYPING_DISABLE="1")

import hone
import hone.ejkernel
from support import HoneTest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "build-python" / "ejkernel-imports"))
try:
    import ejkernel.kernels._registry as original_kernels
    import ejkernel.ops as original
    import ejkernel.ops.config.persistent
except ImportError:
    if os.environ.get("HONE_REQUIRE"):
        raise
    original = original_kernels = None

KEY = ("gpu:0", "matmul@v1", "key123")


def every(*names):
    """hone, hone.ejkernel, and what is there of the real ejkernel."""
    return [one for one in (hone, hone.ejkernel, *names) if one is not None]


@dataclasses.dataclass
class Both:
    """A dataclass that also looks like a model of pydantic."""

    rows: int

    def model_dump(self):
        return {"dumped": self.rows}


class Dumped:
    def model_dump(self):
        return {"dumped": True}


class Invocations(HoneTest):
    """Global registry for tracking kernel invocations across devices."""

    def test_arguments_are_copied(self):
        for names in every(original):
            args, kwargs, kernel = [1, 2], {"causal": True}, object()
            names.record_invocation("statement", "op@v1", "copied", kernel, args, kwargs)
            args.append(3)
            kwargs["causal"] = False
            found = names.get_invocations("statement")["op@v1"]["copied"]
            self.assertIs(found[0], kernel)
            self.assertEqual(found[1:], ((1, 2), {"causal": True}))

    def test_the_last_record_of_a_key_stands_and_devices_are_apart(self):
        for i, names in enumerate(every(original)):
            for kernel in (1, 2):
                names.record_invocation(f"apart{i}", "op@v1", "key", kernel, (), {})
            names.record_invocation(f"apart{i}", "op@v2", "key", 3, (), {})
            names.record_invocation(f"other{i}", "op@v1", "key", 4, (), {})
            self.assertEqual(names.get_invocations(f"apart{i}"),
                             {"op@v1": {"key": (2, (), {})}, "op@v2": {"key": (3, (), {})}})
            self.assertEqual(list(names.get_invocations(f"other{i}")), ["op@v1"])

    def test_the_second_example_of_the_page_runs(self):
        printed = io.StringIO()
        hone.record_invocation('gpu|cuda_12.0', 'matmul@v1', 'abc123def456', None, (), {})
        get_invocations = hone.get_invocations
        with contextlib.redirect_stdout(printed):
            invocations = get_invocations('gpu|cuda_12.0')
            for op_id, calls in invocations.items():
                for call_key, (kernel, args, kwargs) in calls.items():
                    print(f"Found {op_id} call {call_key[:8]}...")
        self.assertIn("Found matmul@v1 call abc123de...", printed.getvalue())

    def test_it_does_not_persist_across_program_runs(self):
        hone.record_invocation("statement", "op@v1", "mine", None, (), {})
        code, settings = "import hone; print(hone.get_invocations('statement'))", {**os.environ, "HONE_STORE": self.store}
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=settings).stdout
        self.assertEqual(out.strip(), "{}")


class ConfigCaches(unittest.TestCase):
    """Thread-safe cache for storing kernel configurations."""

    def test_it_is_generic_and_keys_are_tuples_of_a_list_of_the_callers(self):
        for names in every(original):
            cache = names.ConfigCache[dict]()
            cache.put(*KEY, {"block": 64})
            keys = cache.keys()
            self.assertEqual((keys, type(keys), cache.size()), ([KEY], list, 1))
            keys.clear()
            self.assertEqual((cache.keys(), cache.get("gpu:1", *KEY[1:])), ([KEY], None))
            cache.put(*KEY, {"block": 32})
            self.assertEqual((cache.get(*KEY), cache.size()), ({"block": 32}, 1))

    def test_threads_may_use_it_at_once(self):
        for names in every(original):
            cache = names.ConfigCache()

            def work(worker, cache=cache):
                for i in range(200):
                    cache.put("d", f"op{worker}", str(i), i)
                    cache.get("d", "op0", str(i))
                    cache.keys()

            threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(cache.size(), 800)

    def test_an_overlay_is_itself_inside_and_ends_with_an_exception(self):
        for names in every(original):
            mapping = {KEY: 1}
            overlay = names.overlay_cache(mapping)
            with overlay as entered:
                self.assertIs(entered, overlay)
            self.assertIs(overlay.mapping, mapping)
        with self.assertRaises(KeyError), hone.overlay_cache({KEY: 1}):
            raise KeyError
        self.assertIsNone(hone.caches.overlaid(*KEY))

    def test_what_is_put_into_the_mapping_later_is_seen(self):
        mapping = {}
        with hone.overlay_cache(mapping):
            mapping[KEY] = 1
            self.assertEqual(hone.ConfigCache().get(*KEY), 1)

    def test_an_overlay_is_of_its_context(self):
        cache = hone.ConfigCache()

        async def inside(value):
            with hone.overlay_cache({KEY: value}):
                await asyncio.sleep(0)
                return cache.get(*KEY), await asyncio.create_task(child())

        async def child():
            await asyncio.sleep(0)
            return cache.get(*KEY)

        async def all_of_them():
            return await asyncio.gather(inside(1), inside(2), child())

        self.assertEqual(asyncio.run(all_of_them()), [(1, 1), (2, 2), None])

    def test_selectors_of_the_original_ask_hones_overlays(self):
        if original is None:
            self.skipTest("ejkernel is not installed: scripts/setup python")
        selector = original.ConfigSelectorChain(hone.ejkernel.ConfigCache())
        members = {"op_id": "statement_op", "heuristic_cfg": lambda self, inv: "heuristic"}
        kernel = type("K", (original.Kernel,), members)()
        invocation = original.Invocation(op_id="statement_op", args=(1,), kwargs={})
        key = (original.device_fingerprint(), "statement_op@v0", invocation.call_key)
        with hone.overlay_cache({key: "overlaid"}):
            self.assertEqual(selector.choose(invocation, kernel), "overlaid")


class PersistentCaches(HoneTest):
    """Persistent disk-based configuration cache for kernel optimization."""

    def each(self):
        theirs = None if original is None else ejkernel.ops.config.persistent
        return every(theirs)

    def test_it_is_generic_and_tells_its_path_loader_and_dumper(self):
        def loader(data): return data
        def dumper(cfg): return cfg
        for i, names in enumerate(self.each()):
            path = f"{self.folder}/{i}/deep/cache.json"
            cache = names.PersistentCache[dict]("op", path, loader, dumper)
            self.assertEqual((str(cache.path), cache.loader, cache.dumper), (path, loader, dumper))
            cache.put(*KEY, {"a": 1})
            self.assertTrue(os.path.exists(path))  # with the folders above it
            self.assertIsNone(cache.get(*KEY[:2], "another"))

    def test_a_path_may_begin_with_the_users_folder(self):
        before = os.environ.get("HOME")
        self.addCleanup(lambda: os.environ.update(HOME=before) if before is not None else os.environ.pop("HOME"))
        os.environ["HOME"] = str(self.folder)
        for i, names in enumerate(self.each()):
            names.PersistentCache("op", f"~/{i}.json").put(*KEY, 1)
            self.assertTrue((self.folder / f"{i}.json").exists())

    def test_a_dumper_goes_before_a_dataclass_and_that_before_a_model_and_that_before_the_value(self):
        cases = [(lambda cfg: {"own": cfg.rows}, Both(3), {"own": 3}), (None, Both(3), {"rows": 3}),
                 (None, Dumped(), {"dumped": True}), (None, {"raw": [1]}, {"raw": [1]})]
        for i, names in enumerate(self.each()):
            for j, (dumper, value, expected) in enumerate(cases):
                path = f"{self.folder}/{i}-{j}.json"
                names.PersistentCache("op", path, dumper=dumper).put(*KEY, value)
                self.assertEqual(list(json.loads(pathlib.Path(path).read_text()).values()), [expected])

    def test_a_loader_makes_values_and_without_one_they_are_raw(self):
        for i, names in enumerate(self.each()):
            path = f"{self.folder}/{i}.json"
            names.PersistentCache("op", path).put(*KEY, [1, "two"])
            self.assertEqual(names.PersistentCache("op", path, loader=tuple).get(*KEY), (1, "two"))
            self.assertEqual(names.PersistentCache("op", path).get(*KEY), [1, "two"])

    def test_a_reader_never_sees_half_a_file(self):
        path, done, wrong = self.folder / "atomic.json", threading.Event(), []
        cache = hone.PersistentCache("op", str(path))
        cache.put(*KEY, 0)

        def read():
            while not done.is_set():
                try:
                    json.loads(path.read_text())
                except (OSError, ValueError) as error:
                    wrong.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        for i in range(50):
            cache.put("d", "o", str(i), "x" * 2000)
        done.set()
        reader.join()
        self.assertEqual(wrong, [])
        self.assertEqual([name for name in os.listdir(self.folder) if ".new" in name], [])


class KernelRegistries(unittest.TestCase):
    """Kernel registry system for managing multi-platform implementations."""

    def each(self):
        return every(original_kernels)

    def test_platforms_and_backends_are_texts(self):
        for names in self.each():
            for name in ("triton", "pallas", "cuda", "cute", "xla"):
                self.assertEqual((names.Platform(name), str(names.Platform[name.upper()])), (name, name))
            for name in ("gpu", "tpu", "cpu", "any"):
                self.assertEqual((names.Backend(name), str(names.Backend[name.upper()])), (name, name))
            with self.assertRaises(ValueError):
                names.Platform("auto")

    def test_a_spec_is_immutable_and_says_what_was_registered(self):
        for names in self.each():
            registry = names.KernelRegistry()
            impl = registry.register("flash_attention", names.Platform.TRITON, "gpu")(lambda q: q)
            spec, = registry.list_implementations("FLASH_attention")
            self.assertEqual((spec.platform, spec.backend, spec.algorithm, spec.implementation, spec.priority),
                             (names.Platform.TRITON, names.Backend.GPU, "flash_attention", impl, 0))
            with self.assertRaises(dataclasses.FrozenInstanceError):
                spec.priority = 3
            self.assertEqual(names.KernelSpec(names.Platform.XLA, names.Backend.ANY, "a", impl).priority, 0)

    def test_what_is_registered_keeps_its_signature_and_words(self):
        def flash_attention(q, k, *, causal: bool = False):
            """Attends."""
            return q + k
        for names in self.each():
            wrapped = names.KernelRegistry().register("flash_attention", "xla", "any")(flash_attention)
            self.assertEqual(inspect.signature(wrapped), inspect.signature(flash_attention))
            self.assertEqual((wrapped.__name__, wrapped.__doc__, wrapped(1, 2)), ("flash_attention", "Attends.", 3))

    def test_lists_are_the_callers_and_registries_do_not_know_of_each_other(self):
        for names in self.each():
            registry, other = names.KernelRegistry(), names.KernelRegistry()
            for name in ("Zeta", "alpha"):
                registry.register(name, "xla", "any")(lambda q: q)
            self.assertEqual((registry.list_algorithms(), other.list_algorithms()), (["alpha", "zeta"], []))
            registry.list_implementations("alpha").clear()
            self.assertEqual(len(registry.list_implementations("ALPHA")), 1)
            self.assertEqual(registry.list_implementations("beta"), [])

    def test_any_answers_every_backend_and_priority_decides(self):
        for names in self.each():
            registry = names.KernelRegistry()
            general = registry.register("a", "xla", names.Backend.ANY)(lambda q: "general")
            exact = registry.register("a", "xla", "tpu", priority=5)(lambda q: "exact")
            for backend in ("gpu", "cpu"):
                self.assertIs(registry.get("A", backend=backend), general)
            self.assertIs(registry.get("a", names.Platform.XLA, names.Backend.TPU), exact)

    def test_verbose_tells_the_parameters_of_each(self):
        for names in self.each():
            registry = names.KernelRegistry()
            registry.register("a", "xla", "any")(lambda q, causal=False: q)
            registry.register("a", "triton", "gpu")(lambda q, causal=False: q)
            told = io.StringIO()
            with contextlib.redirect_stdout(told):
                self.assertTrue(registry.validate_signatures("a", verbose=True))
            for word in ("causal", "False", "xla", "triton"):
                self.assertIn(word, told.getvalue())
            quiet = io.StringIO()
            with contextlib.redirect_stdout(quiet):
                registry.validate_signatures("a")
            self.assertEqual(quiet.getvalue(), "")


@unittest.skipIf(original is None, "ejkernel is not installed: scripts/setup python")
class Offline(HoneTest):
    """Offline autotuning for pre-compiled JAX computations."""

    def tuned(self, kernel, **more):
        import jax
        import jax.numpy as jnp

        class Last:
            def autotune(self, make, args, kwargs, candidates):
                return [(config, float(make(config)(*args, **kwargs)[0])) for config in candidates][-1]

        hone.invocations._calls.clear()
        selector = original.ConfigSelectorChain(hone.ejkernel.ConfigCache(), tuner=Last(), **more)
        x = jnp.ones(4)
        hone.record_invocation("cpu|cpu", "statement@v1", "0123456789abcdef", kernel, (x,), {"act": jnp.negative})

        def labelled(x):
            with jax.named_scope("ejkernel_ops#statement@v1:0123456789abcdef"):
                return x * 2

        lowered = jax.jit(labelled).lower(x)
        result = hone.autotune_lowered(selector, lowered)
        return selector, result

    class Kernel:
        op_id = "statement"

        def prepare(self, *args, **kwargs):
            return args, kwargs

        def candidate_cfgs(self, inv):
            return [1, 2]

        def run(self, x, *, cfg, act):
            return act(x) * cfg

    class OfPlatform(Kernel):
        def candidate_cfgs_cpu(self, inv):
            return [10]

        def run_cpu(self, x, *, cfg, act):
            return act(x) * cfg * 100

    def test_what_is_found_stands_in_the_cache_and_persists_unless_that_is_switched_off(self):
        key = ("cpu|cpu", "statement@v1", "0123456789abcdef")
        for persists in (True, False):
            persistent = hone.ejkernel.PersistentCache("op", f"{self.folder}/{persists}.json")
            selector, result = self.tuned(self.Kernel(), persistent=persistent, persist_autotune=persists)
            self.assertEqual(result, hone.AutotuningResult("cpu|cpu", (hone.Entry(*key[1:], (2, -2.0)),)))
            self.assertEqual(selector.cache.get(*key), (2, -2.0))
            self.assertEqual(persistent.get(*key), [2, -2.0] if persists else None)

    def test_a_kernels_own_methods_for_the_platform_go_first(self):
        _, result = self.tuned(self.OfPlatform())
        self.assertEqual([entry.cfg for entry in result.entries], [(10, -1000.0)])


if __name__ == "__main__":
    unittest.main()
