"""Functions as implementations: what ejkernel's pages show of its registry, beside the real one."""

import importlib.util
import itertools
import json
import os
import pathlib
import random
import sys
import types
import unittest
import unittest.mock
import warnings

import numpy

import hone
import hone.ejkernel
from hone.implementations import MissingError
from support import HoneTest, arrays, norm

ORIGINAL = pathlib.Path(__file__).resolve().parents[2] / "build-python/ejkernel/kernels/_registry.py"
VECTORS = pathlib.Path(__file__).resolve().parents[1] / "golden/vectors/registry.jsonl"


def registered(specs):
    registry, names = hone.KernelRegistry(), {}
    for spec in specs:
        def implementation(q): ...
        made = registry.register(spec["algorithm"], spec["platform"], spec["backend"], spec["priority"])(implementation)
        names[made] = spec["id"]
    return registry, names


def original_registry():
    """The real ejkernel's module, without the kernels that its package imports."""
    if not ORIGINAL.exists():
        if os.environ.get("HONE_REQUIRE"):
            raise AssertionError(f"{ORIGINAL} is missing: scripts/setup python")
        raise unittest.SkipTest("ejkernel is not installed: scripts/setup python")
    spec = importlib.util.spec_from_file_location("original_registry", ORIGINAL)
    module = importlib.util.module_from_spec(spec)
    errors = types.ModuleType("ejkernel.errors")
    errors.EjkernelRuntimeError = type("EjkernelRuntimeError", (RuntimeError,), {})
    stand_ins = {"ejkernel": types.ModuleType("ejkernel"), "ejkernel.errors": errors}
    sys.modules[spec.name] = module
    with unittest.mock.patch.dict(sys.modules, stand_ins):
        spec.loader.exec_module(module)
    return module


ANNOTATIONS = ["", ": int", ": 'jax.Array'", ": 'Array'", ": 'jaxtyping.Float'", ": 'Float'", ": 'jax.lax.PrecisionLike'",
               ": 'jax.typing.DTypeLike'", ": 'DTypeLike'", ": 'int | None'"]


def random_function(random):
    """One of up to four parameters; the first ones may have no default."""
    names = random.sample(["q", "k", "v", "bias", "causal", "block_q", "num_warps", "scale"], random.randint(1, 4))
    bare, keywords = random.randint(0, len(names)), random.randint(1, 6)
    parameters = [name + random.choice(ANNOTATIONS) + ("" if i < bare else random.choice(["=None", "=1", "=1.0", "='a'", "=True", "=(1,)"]))
                  for i, name in enumerate(names)]
    made = {}
    exec(f"def f({', '.join([*parameters[:keywords], *(['*'] if keywords < len(names) else []), *parameters[keywords:]])}): ...", made)
    return made["f"]


def outcome(ask, *query):
    """What is answered, with all warnings; or the text of the error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            answer = ask(*query)
        except RecursionError:
            return "circles"
        except ValueError as error:
            answer = str(error)
    return answer, [str(one.message) for one in told]


class Registry(HoneTest):
    def test_random_registries_answer_and_validate_as_the_original(self):
        original, chance = original_registry(), random.Random(3)
        for _ in range(150):
            registries, ids = (original.KernelRegistry(), hone.KernelRegistry()), {}
            functions = [random_function(chance) for _ in range(chance.randint(1, 3))]
            for function in functions + functions[:chance.randint(0, 1)]:
                place = (chance.choice(["Fa", "fa", "G"]), chance.choice(["triton", "xla", "cuda"]),
                         chance.choice(["gpu", "any", "cpu"]), chance.randint(-1, 1))
                for registry in registries:
                    ids[registry.register(*place)(function)] = len(ids) // 2
            for name in ("fa", "G", "nope"):
                self.assertEqual(*[outcome(registry.validate_signatures, name) for registry in registries])
                for platform, backend in itertools.product((None, "triton", "xla", "pallas"), (None, "gpu", "cpu", "tpu")):
                    theirs, ours = [outcome(lambda *query: ids[registry.get(*query)], name, platform, backend)
                                    for registry in registries]
                    missing = f"No implementation found for algorithm={name}, platform={platform}, backend={backend}"
                    self.assertEqual(ours, (missing, []) if theirs == "circles" else theirs)

    def test_the_pages_examples_run(self):
        from hone import Backend, KernelRegistry, Platform

        registry = KernelRegistry()

        @registry.register("flash_attention", Platform.TRITON, Backend.GPU)
        def flash_attention_triton(q, k, v): return q + k + v

        @registry.register("flash_attention", Platform.TRITON, Backend.GPU, priority=10)
        def flash_attention_impl(q, k, v):
            return q * k * v

        impl = registry.get("flash_attention", platform="triton", backend="gpu")
        result = impl(2, 3, 4)
        self.assertEqual((impl, result, impl.__name__), (flash_attention_impl, 24, "flash_attention_impl"))
        self.assertEqual(registry.list_algorithms(), ["flash_attention"])
        specs = registry.list_implementations("Flash_Attention")
        self.assertEqual([spec.implementation for spec in specs], [flash_attention_impl, flash_attention_triton])
        self.assertEqual((specs[0].platform, specs[0].backend, specs[0].priority), (Platform.TRITON, Backend.GPU, 10))
        self.assertTrue(registry.validate_signatures("flash_attention"))

    def test_it_answers_as_the_original_answered(self):
        for line in VECTORS.read_text().splitlines():
            vector = json.loads(line)
            with self.subTest(vector["tag"], query=vector["query"]):
                registry, names = registered(vector["specs"])
                self.assertEqual(registry.list_algorithms(), vector["list_algorithms"])
                for name, order in vector["order"].items():
                    found = [names[spec.implementation] for spec in registry.list_implementations(name)]
                    self.assertEqual(found, order)
                with unittest.mock.patch("hone.implementations._default_backend", lambda: vector["default_backend"]):
                    self.check(registry, names, vector["query"], vector["result"], vector["default_backend"])

    def check(self, registry, names, query, expected, default):
        if isinstance(expected, int):
            self.assertEqual(names[registry.get(**query)], expected)
        elif expected["error"] == "RecursionError" and query["backend"] == "any":  # (xla, any) is for the default backend
            here = [names[spec.implementation] for spec in registry.list_implementations(query["algorithm"])
                    if (spec.platform, spec.backend) == ("xla", default)]
            found = [names[registry.get(**query)]] if here else []
            self.assertEqual(found, here[:1])
        elif query["platform"] != "auto":  # which the original refuses
            with self.assertRaises(ValueError) as raised:
                registry.get(**query)
            if expected["error"] == "ValueError" and query["backend"] != "any":  # where the original names the default
                self.assertEqual(str(raised.exception), expected["message"])

    def test_a_wrong_platform_leaves_nothing_behind(self):
        registry = hone.KernelRegistry()
        for names in (("metal", "gpu"), ("triton", "vulkan"), ("Triton", "gpu")):
            with self.assertRaises(ValueError):
                registry.register("softmax", *names)
        self.assertEqual(registry.list_algorithms(), [])
        with self.assertRaises(MissingError):
            registry.validate_signatures("softmax")

    def test_a_wrong_name_or_priority_is_told(self):
        registry = hone.KernelRegistry()
        for name in (None, 5, ""):
            with self.assertRaisesRegex(TypeError, "the name of an algorithm"):
                registry.register(name, "xla", "any")
        with self.assertRaisesRegex(TypeError, "the name of an algorithm"):
            registry.get(None)
        with self.assertRaisesRegex(TypeError, "a priority must be a whole number"):
            registry.register("a", "xla", "any", priority="high")
        self.assertEqual(registry.list_algorithms(), [])

    def test_what_is_not_supported_is_refused_by_name(self):
        registry = hone.KernelRegistry()

        @registry.register("Attention", "xla", "any")
        def attention(q, bias=None, scale=1.0, block_q=64, mode="a"):
            del scale, bias, block_q
            if mode == "b":
                raise NotImplementedError("mode b is Not Supported")
            if mode == "c":
                raise ValueError("mode c")
            return q

        self.assertEqual(attention(1, None, 1.0, 32), 1)
        for call, words in ((dict(bias=2, scale=3.0), "bias is not supported; scale is not supported"),
                            (dict(scale=numpy.ones(3)), "scale is not supported"), (dict(mode="b"), "mode b is Not Supported")):
            with self.assertRaises(hone.ejkernel.EjkernelRuntimeError) as raised:
                attention(1, **call)
            self.assertIsInstance(raised.exception, RuntimeError)
            self.assertEqual(str(raised.exception), f"Attention (platform=xla): {words}")
        with self.assertRaisesRegex(ValueError, "^mode c$"):
            attention(1, mode="c")
        with self.assertRaisesRegex(TypeError, "unexpected keyword argument 'zzz'"):
            attention(1, zzz=2)

        def hooked(q, causal=False): return q
        hooked.__ejkernel_unsupported__ = lambda q, causal=False: ["causal", "and more"] if causal else None
        hooked = registry.register("Attention", "triton", "gpu")(hooked)
        self.assertEqual(hooked(5), 5)
        with self.assertRaisesRegex(RuntimeError, "triton.*: causal; and more$"):
            hooked(5, causal=True)

    def test_each_difference_of_signatures_is_a_warning(self):
        registry = hone.KernelRegistry()
        for function in (lambda q, k, *, causal=False, block_q=1: 0, lambda q, k, *, causal=False, num_warps=2: 0):
            registry.register("same", "xla", "any")(function)
        for function in (lambda q, k, causal=False: 0, lambda q, v, *, causal=None: 0, lambda q: 0):
            registry.register("other", "xla", "any")(function)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            self.assertTrue(registry.validate_signatures("SAME"))
            self.assertEqual(told, [])
            self.assertFalse(registry.validate_signatures("other"))
        texts = [str(one.message) for one in told]
        self.assertEqual(len(texts), 4)
        self.assertEqual(texts[0], "Signature mismatch for algorithm 'other':\n  Reference (xla/any): parameter 'k'\n"
                         "  Implementation (xla/any): parameter 'v'")
        self.assertIn("parameter 'causal'", texts[1])
        self.assertTrue(texts[3].endswith("1 parameters"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.assertFalse(registry.validate_signatures(None))

    def test_what_is_registered_by_many_threads_is_all_there(self):
        import concurrent.futures

        registry = hone.KernelRegistry()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda i: registry.register("a", "xla", "any", i)(lambda: i), range(200)))
        self.assertEqual([spec.priority for spec in registry.list_implementations("a")], [*range(199, -1, -1)])

    def test_hones_own_kernels_answer_and_are_called(self):
        x, w = arrays()
        for found in (hone.kernel_registry.get("rms_norm"), hone.kernel_registry.get("RMS_norm", "native", hone.Backend.CPU),
                      hone.registry.get("rms_norm", "auto")):
            numpy.testing.assert_allclose(found(x, w, eps=1e-5), norm(x, w, 1e-5), rtol=1e-4)
        self.assertIn("rms_norm", hone.kernel_registry.list_algorithms())
        self.assertEqual(len(hone.kernel_registry.list_implementations("rms_norm")), len(hone.registry.kernels("rms_norm")))
        self.assertTrue(hone.kernel_registry.validate_signatures("rms_norm"))
        with self.assertRaisesRegex(ValueError, "algorithm=rms_norm, platform=triton, backend=tpu"):
            hone.kernel_registry.get("rms_norm", "triton", "tpu")

    def test_the_kernel_that_is_called_is_the_one_that_runs(self):
        x, w = arrays()
        self.runtime.record(True)
        for kernel in hone.registry.kernels("rms_norm"):
            if kernel.platform == "native" and kernel.name in ("portable", "reference"):
                kernel(x, w)
                self.assertEqual(self.runtime.recorded()[0]["kernel"], kernel.name)

    def test_a_kernel_runs_inside_a_program_of_jax(self):
        import jax

        x, w = arrays()
        kernel = next(one for one in hone.registry.kernels("rms_norm") if one.name == "portable")
        lowered = jax.jit(lambda x, w: kernel(x, w, eps=1e-6)).lower(x, w)
        numpy.testing.assert_allclose(lowered.compile()(x, w), norm(x, w), rtol=1e-4)
        self.assertIn("hone_call", lowered.as_text())

    def test_what_a_program_registers_goes_before_hones_own(self):
        registry = hone.KernelRegistry(with_hone=True)

        @registry.register("rms_norm", "native", "cpu")
        def mine(x, w): return "mine"

        self.assertIs(registry.get("rms_norm", "native"), mine)
        self.assertEqual(registry.get("softmax").algorithm, "softmax")
        self.assertIs(registry.list_implementations("rms_norm")[0].implementation, mine)


if __name__ == "__main__":
    unittest.main()
