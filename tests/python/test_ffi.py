"""Libraries for tvm-ffi from Python: as kernels, and hone as one, for tvm_ffi and for JAX through jax_tvm_ffi where that is installed."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy

import hone
from support import QUICK, HoneTest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TVM_FFI = ROOT / "build-python" / "cute-dsl" / "tvm_ffi"
os.environ["HONE_TVM_FFI"] = str(TVM_FFI / "lib" / "libtvm_ffi.so")  # behind support, which cleans the environment
SIGNATURE = "silu_mul(gate: T[..., dim], up: T[..., dim]) -> y: T[..., dim] where T in f32"
SOURCE = """
#include <cmath>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/optional.h>
namespace ffi = tvm::ffi;
void silu_mul(ffi::TensorView gate, ffi::TensorView up, ffi::TensorView y)
{
    const float *g = (const float *)gate.data_ptr(), *u = (const float *)up.data_ptr();
    for (int64_t i = 0; i < gate.numel(); i++) ((float *)y.data_ptr())[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
}
void keeping(ffi::Tensor gate, ffi::TensorView up, ffi::TensorView y, int64_t count)
{
    static ffi::Optional<ffi::Tensor> kept;
    if (count != 4) TVM_FFI_THROW(ValueError) << "not 4";
    kept = gate;
    silu_mul(gate, up, y);
}
void counting(ffi::Tensor gate, ffi::Tensor up, ffi::Tensor y)
{
    static const int64_t before = gate.use_count() + up.use_count() + y.use_count();
    if (gate.use_count() + up.use_count() + y.use_count() != before) TVM_FFI_THROW(RuntimeError) << "another count of references";
    silu_mul(gate, up, y);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(silu_mul, silu_mul);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(keeping, keeping);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(counting, counting);
"""

# A program that holds objects of functions: of a library, and of Python's functions that tvm-ffi has wrapped.
PROGRAM = """
import sys
import numpy
import tvm_ffi
import hone

library = tvm_ffi.load_module({library!r})
silu, keeping = library.silu_mul, library.keeping
returning = tvm_ffi.convert(lambda gate, up: tvm_ffi.from_dlpack(numpy.from_dlpack(gate) / (1 + numpy.exp(-numpy.from_dlpack(gate))) * numpy.from_dlpack(up)))
speaking = tvm_ffi.convert(lambda gate, up: "a text")
kernels = {{"silu": (silu, "gate, up, y"), "returning": (returning, "gate, up -> y"), "keeping": (keeping, "gate, up, y, i64(4)"),
           "counting": (keeping, "gate, up, y, 5"), "speaking": (speaking, "gate, up -> y")}}

if __name__ == "__main__":
    gate, up = (numpy.random.default_rng(3).standard_normal((8, 64)).astype(numpy.float32) for _ in range(2))
    for name, (function, arguments) in kernels.items():
        hone.kernel("silu_mul", platform="ffi", name=name, function=function, arguments=arguments)
    for name in kernels:
        try:
            hone.tune("silu_mul", gate, up, seconds=1, evaluations=3, kernel=name, progress=False)
        except hone.HoneError as error:
            print(name, "loses:", error)
            continue
        numpy.testing.assert_allclose(hone.run("silu_mul", gate, up), gate / (1 + numpy.exp(-gate)) * up, rtol=1e-5)
        before = sys.getrefcount(gate), sys.getrefcount(silu)
        for _ in range(1000):
            hone.run("silu_mul", gate, up)
        print(name, "is right, references", "as before" if (sys.getrefcount(gate), sys.getrefcount(silu)) == before else "changed")
    for options in ({{"function": tvm_ffi.convert(lambda *given: None), "arguments": "gate, up, y"}}, {{"function": silu}},
                    {{"function": silu, "arguments": "gate, wait, y"}}, {{"function": silu, "arguments": "gate, up"}},
                    {{"function": silu, "arguments": "gate, up, y, i64(dim * 2)"}}, {{"function": silu, "arguments": "gate, up, y", "scratch": "4"}},
                    {{"function": lambda *given: None, "arguments": "gate, up, y"}}):
        try:
            hone.kernel("silu_mul", platform="ffi", name="wrong", **options)
        except hone.HoneError as error:
            print("refused:", error)
"""

# A library that registers a function with tvm-ffi when it is loaded, which ends a process where that is done twice.
REGISTERING = SOURCE + """
#include <tvm/ffi/reflection/registry.h>
TVM_FFI_STATIC_INIT_BLOCK() { tvm::ffi::reflection::GlobalDef().def("test_ffi.twice", [](int64_t i) { return 2 * i; }); }
"""
TWICE = """
import numpy
import tvm_ffi
import hone

held = tvm_ffi.load_module({library!r})
gate, up = (numpy.random.default_rng(3).standard_normal((8, 64)).astype(numpy.float32) for _ in range(2))
for name in ("one", "two"):
    hone.kernel("silu_mul", platform="ffi", name=name, library={library!r}, function="silu_mul", arguments="gate, up, y")
    hone.tune("silu_mul", gate, up, seconds=1, evaluations=1, kernel=name, progress=False)
    numpy.testing.assert_allclose(hone.run("silu_mul", gate, up), gate / (1 + numpy.exp(-gate)) * up, rtol=1e-5)
print("loaded once:", tvm_ffi.get_global_func("test_ffi.twice")(4))
"""
OUTLIVING = """
import gc
import numpy
import tvm_ffi

library = tvm_ffi.load_module({library!r}, keep_module_alive=False)
x, weight, y = (tvm_ffi.from_dlpack(numpy.full(shape, 3, numpy.float32)) for shape in ((4, 256), 256, (4, 256)))
plan, made = library.hone_bind("rms_norm", x, weight, y), library.hone_run("rms_norm", x, weight)
del library
gc.collect()
plan(x, weight, y)
del made, plan
print("%.3f" % numpy.from_dlpack(y)[0, 0])
"""


def tvm_ffi():
    """The real package, which tests of other frameworks do not import."""
    if str(TVM_FFI.parent) not in sys.path:
        sys.path.append(str(TVM_FFI.parent))
    import tvm_ffi

    return tvm_ffi


def compile_library(text, library):
    source = library.with_suffix(".cc")
    source.write_text(text)
    subprocess.run(["c++", "-std=c++17", "-O2", "-fPIC", "-shared", f"-I{TVM_FFI}/include", str(source), "-o", str(library),
                    f"-L{TVM_FFI}/lib", "-ltvm_ffi"], check=True, timeout=300)


class Libraries(HoneTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = tempfile.TemporaryDirectory(prefix="hone-ffi-")
        cls.addClassCleanup(cls.folder.cleanup)
        cls.library = pathlib.Path(cls.folder.name) / "silu.so"
        compile_library(SOURCE, cls.library)

    def setUp(self):
        super().setUp()
        random = numpy.random.default_rng(3)
        self.gate, self.up = (random.standard_normal((8, 64)).astype(numpy.float32) for _ in range(2))
        self.right = self.gate / (1 + numpy.exp(-self.gate)) * self.up

    def test_a_function_of_a_library_is_registered_tuned_and_called(self):
        tvm_ffi()  # hone takes the libtvm_ffi.so that is loaded
        hone.kernel("silu_mul", platform="ffi", name="library", library=self.library, function="silu_mul", arguments="gate, up, y",
                    signature=SIGNATURE)
        result = hone.tune("silu_mul", self.gate, self.up, **{**QUICK, "kernel": "library"})
        self.assertEqual([one.kernel for one in result], ["library"])
        numpy.testing.assert_allclose(hone.run("silu_mul", self.gate, self.up), self.right, rtol=1e-5)

    def test_a_function_finds_as_many_references_in_each_of_100000_calls(self):
        tvm_ffi()
        hone.kernel("silu_mul", platform="ffi", name="counting", library=self.library, function="counting", arguments="gate, up, y",
                    signature=SIGNATURE)
        hone.tune("silu_mul", self.gate, self.up, **{**QUICK, "kernel": "counting"})
        y = numpy.zeros_like(self.gate)
        plan = hone.bind("silu_mul", self.gate, self.up, y)
        self.assertEqual(plan.kernel, "counting")
        before = [sys.getrefcount(one) for one in (self.gate, self.up, y)]
        for _ in range(100_000):
            plan(self.gate, self.up, y)
        self.assertEqual([sys.getrefcount(one) for one in (self.gate, self.up, y)], before)
        numpy.testing.assert_allclose(y, self.right, rtol=1e-5)

    def test_what_is_missing_is_named(self):
        for options, says in (({"library": self.library}, "arguments: is missing"),
                              ({"library": "/nowhere/none.so", "arguments": "gate, up, y"}, "none.so cannot be read"),
                              ({"library": self.library, "arguments": "gate, wait, y"}, "'wait' is not a tensor"),
                              ({"library": self.library, "arguments": "gate, up, y", "grid": "1"}, "has no option 'grid'"),
                              ({"library": None, "arguments": "gate, up, y"}, "takes library, the path of a shared library"),
                              ({"function": [1], "arguments": "gate, up, y"}, "got a list of builtins: functions")):
            with self.assertRaises(hone.HoneError) as caught:
                hone.kernel("silu_mul", platform="ffi", name="wrong", **options)
            self.assertIn(says, str(caught.exception))

    def test_a_platform_that_python_has_no_door_to_is_refused_at_once(self):
        with self.assertRaisesRegex(hone.HoneError, "platform must be one of .*ffi.*, got 'fff'"):
            hone.kernel("silu_mul", platform="fff", library=self.library, function="silu_mul", arguments="gate, up, y")

    def run_program(self, text):
        program = self.folder / "program.py"
        program.write_text(text)
        env = {**os.environ, "HONE_STORE": self.store, "PYTHONPATH": os.pathsep.join([str(TVM_FFI.parent), *sys.path])}
        return subprocess.run([sys.executable, str(program)], env=env, text=True, capture_output=True, timeout=300)

    def test_a_library_that_registers_functions_is_loaded_once_in_a_process(self):
        library = pathlib.Path(self.folder) / "registering.so"
        compile_library(REGISTERING, library)
        done = self.run_program(TWICE.format(library=str(library)))
        self.assertEqual((done.returncode, done.stdout), (0, "loaded once: 8\n"), done.stderr)

    def test_a_plan_outlives_the_module_that_made_it(self):
        done = self.run_program(OUTLIVING.format(library=str(pathlib.Path(hone.__file__).parent / "libhone_ffi.so")))
        self.assertEqual((done.returncode, done.stdout), (0, "3.000\n"), done.stderr)

    def test_an_object_of_a_function_competes_in_a_worker_that_makes_it_again(self):
        done = self.run_program(PROGRAM.format(library=str(self.library)))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        lines = done.stdout.splitlines()
        for line, says in zip(lines, (
                "silu is right, references as before", "returning is right, references as before", "keeps 1 references to argument 0",
                "ValueError: not 4", "returns a str, expected a tensor", "give it a name in your module first", "arguments: is missing",
                "wait is neither in the signature", "y are all given to the function, or all returned", "'i64(dim * 2)'", "has no option 'scratch'",
                "functions of Python are platform")):
            self.assertIn(says, line)
        self.assertEqual(len(lines), 12, done.stdout)


class AsLibrary(HoneTest):
    def setUp(self):
        super().setUp()
        self.ffi = tvm_ffi()
        self.module = self.ffi.load_module(str(pathlib.Path(hone.__file__).parent / "libhone_ffi.so"))
        self.x, self.weight = numpy.random.default_rng(5).standard_normal((4, 256)).astype(numpy.float32), numpy.full(256, 2, numpy.float32)
        self.right = 2 * self.x / numpy.sqrt((self.x * self.x).mean(-1, keepdims=True) + 1e-6)

    def test_tensors_of_numpy_are_read_and_written_through_tvm_ffi(self):
        y = numpy.zeros_like(self.x)
        x, weight, out = (self.ffi.from_dlpack(one) for one in (self.x, self.weight, y))
        self.assertIsNone(self.module.hone_run("rms_norm", x, weight, out))
        numpy.testing.assert_allclose(y, self.right, rtol=1e-5)
        made = self.module.hone_run("rms_norm", x, weight)
        numpy.testing.assert_allclose(numpy.from_dlpack(made), self.right, rtol=1e-5)
        y[:] = 0
        self.module.hone_bind("rms_norm", x, weight, out)(x, weight, out)
        numpy.testing.assert_allclose(y, self.right, rtol=1e-5)
        self.assertIn('"platform": "native"', self.module.hone_decide("rms_norm(f32[4,256], f32[256])"))
        for error, call in ((ValueError, lambda: self.module.hone_run("rms_norm", x, x, out)), (KeyError, lambda: self.module.hone_run("none")),
                            (TypeError, lambda: self.module.hone_run(x))):
            self.assertRaises(error, call)

    def test_programs_of_jax_call_it_through_jax_tvm_ffi(self):
        try:
            import jax_tvm_ffi
        except ImportError:
            if os.environ.get("HONE_REQUIRE"):
                raise
            self.skipTest("jax_tvm_ffi is not installed: scripts/setup python")
        import jax

        norm = self.ffi.convert(lambda *given: self.module.hone_run("rms_norm", *given))  # texts of more than 7 characters do not arrive
        jax_tvm_ffi.register_ffi_target("hone.norm", norm, ["args", "rets"], platform="cpu")
        jax_tvm_ffi.register_ffi_target("hone.run", self.module.hone_run, ["attrs.algorithm", "args", "rets"], platform="cpu")
        like = jax.ShapeDtypeStruct(self.x.shape, self.x.dtype)
        y = jax.jit(lambda x, weight: jax.ffi.ffi_call("hone.norm", like)(x, weight))(self.x, self.weight)
        numpy.testing.assert_allclose(numpy.asarray(y), self.right, rtol=1e-5)
        y = jax.jit(lambda x: jax.ffi.ffi_call("hone.run", like)(x, algorithm="softmax"))(self.x)
        numpy.testing.assert_allclose(numpy.asarray(y).sum(-1), numpy.ones(4), rtol=1e-5)

    def test_references_are_as_many_after_100000_calls(self):
        y = numpy.zeros_like(self.x)
        arrays = (self.x, self.weight, y)
        x, weight, out = (self.ffi.from_dlpack(one) for one in arrays)
        run, plan = self.module.hone_run, self.module.hone_bind("rms_norm", x, weight, out)
        before = [sys.getrefcount(one) for one in (*arrays, x, weight, out)]
        for _ in range(50_000):
            run("rms_norm", x, weight, out)
            plan(x, weight, out)
        self.assertEqual([sys.getrefcount(one) for one in (*arrays, x, weight, out)], before)


if __name__ == "__main__":
    unittest.main()
