"""Functions of the CuTe DSL as kernels, compiled by the real DSL, without a GPU."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
from ctypes.util import find_library
from unittest import mock

import cutlass
import cutlass.cute as cute
from cuda.bindings.driver import CUstream

import hone
import hone.cute
from cute_program import norm, rows
from hone import kernels, runtimes
from support import HoneTest

CACHE = tempfile.TemporaryDirectory(prefix="hone-cache-")
os.environ["XDG_CACHE_HOME"] = CACHE.name
CALL = "rms_norm(f32[8,64], f32[64]) @cuda:0"


@cute.jit
def whole(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, eps: cutlass.Float32, stream: CUstream):
    rows(x, weight, y, eps).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1), stream=stream)


@cute.jit
def streamless(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, eps: cutlass.Float32):
    rows(x, weight, y, eps).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1))


@cute.jit
def stream_first(stream: CUstream, x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, eps: cutlass.Float32):
    rows(x, weight, y, eps).launch(grid=(x.shape[0], 1, 1), block=(32, 1, 1), stream=stream)


@cute.jit
def pointers(x: cute.Pointer, weight: cute.Tensor, y: cute.Tensor, stream: CUstream):
    pass


@cute.jit
def unnamed(x, weight: cute.Tensor, y: cute.Tensor, stream: CUstream):
    pass


@cute.jit
def resultless(x: cute.Tensor, weight: cute.Tensor, stream: CUstream):
    pass


@cute.jit
def by_keyword(x: cute.Tensor, y: cute.Tensor, *, n: cutlass.Int32, stream: CUstream):
    pass


@cute.jit
def numbered(x: cute.Tensor, y: cute.Tensor, elements: cutlass.Int64, stream: CUstream):
    pass


@cute.jit
def fixed(x: cute.Tensor, weight: cute.Tensor, y: cute.Tensor, dim: cutlass.Constexpr, eps: cutlass.Constexpr, stages: cutlass.Constexpr, stream: CUstream):
    rows(x, weight, y, eps * dim / dim).launch(grid=(x.shape[0], 1, 1), block=(32 * stages, 1, 1), stream=stream)


@cute.jit
def broken(x: cute.Tensor, y: cute.Tensor, stream: CUstream):
    x.nothing_of_the_kind()


def plain(x, y, stream):
    pass


class Decorated(HoneTest):
    def refused(self, words, function, **options):
        with self.assertRaises(hone.InvalidArgumentError) as caught:
            hone.kernel("rms_norm", **{"name": "refused", "platform": "cute", **options})(function)
        self.assertIn(words, str(caught.exception))

    def test_what_cannot_be_exported_is_refused_with_words(self):
        self.refused("the last parameter beside those that are compiled in must be the stream", streamless)
        self.refused("the last parameter beside those that are compiled in must be the stream", stream_first)
        self.refused("x is of type Pointer, which hone does not pass to an export: expected cute.Tensor", pointers)
        self.refused("x is not annotated, which hone does not pass", unnamed)
        self.refused("no parameter of the function is the result y", resultless)
        self.refused("n is not a parameter by position", by_keyword)
        self.refused("what elements is cannot be told from the signature: say it, arguments={'elements': ...}", numbered)
        self.refused("x is a tensor, and the signature has no array 'z'", whole, arguments={"x": "z"})
        self.refused("the space has tile, and the function has no parameter of that name", whole, space="tile: 64 | 128")
        self.refused("stages is compiled in, and is neither in the space nor a dim or scalar", fixed)
        self.refused("has no option 'grid'", whole, grid="1")
        self.refused("is a function of cute.kernel: decorate the function of cute.jit that launches it", rows)
        self.refused("is no function of cute.jit", plain)

    def call(self, dtype="float32", shape=(8, 64), **scalars):
        operation = runtimes.default().operation("rms_norm")
        return operation.call(x=(dtype, shape, 2, 0), weight=(dtype, shape[-1:], 2, 0), **scalars)

    def compiled(self, name, call):
        function = kernels._lazy["rms_norm", name]
        with mock.patch("hone.triton.arch_of", lambda call: 90):
            folder = function.compile_for(call)
        return folder, json.loads((folder / "pack.json").read_text())["kernels"][0]

    def test_sizes_and_scalars_that_are_compiled_in_are_conditions(self):
        self.assertIs(hone.kernel("rms_norm", space="stages: 1 | 2; where dim >= stages")(fixed), fixed)
        folder, row = self.compiled("fixed", self.call(eps=0.5))
        self.assertEqual((row["name"], row["arguments"]), ("fixed_f32_2d_dim64_eps0_5", ["x", "weight", "y"]))
        for words in ("dim == 64", "eps == 0.5", "x.ndim == 2"):
            self.assertIn(words, row["condition"])
        self.assertEqual([(one["config"], one["condition"]) for one in row["variants"]], [({"stages": 1}, "(dim >= stages)"), ({"stages": 2}, "(dim >= stages)")])
        other, row = self.compiled("fixed", self.call(eps=0.25))
        self.assertNotEqual(folder, other)
        self.assertEqual(row["name"], "fixed_f32_2d_dim64_eps0_25")
        self.assertEqual(self.compiled("fixed", self.call(shape=(4, 64), eps=0.5))[0], folder)
        runtimes.default().check_pack(str(folder))

    def test_dtypes_and_ranks_are_kernels_of_their_own(self):
        hone.kernel("rms_norm", priority=70, arguments={"eps": "eps * 2"})(whole)
        with self.assertRaisesRegex(Exception, "coordinate"):  # the DSL's: the kernel reads rows of two dims
            self.compiled("whole", self.call(shape=(2, 4, 64)))
        names = {self.compiled("whole", self.call(dtype))[1]["name"] for dtype in ("float32", "bfloat16")}
        self.assertEqual(names, {"whole_f32_2d", "whole_bf16_2d"})
        row = self.compiled("whole", self.call())[1]
        self.assertEqual((row["priority"], row["target"], row["arguments"]), (70, "sm_90a", ["x", "weight", "y", "f32(eps * 2)"]))
        self.assertRegex(row["file"], r"\.so$")

    def test_what_the_dsl_cannot_compile_does_not_compete_and_says_why(self):
        hone.kernel("rms_norm", platform="cute")(broken)
        self.addCleanup(kernels._lazy.pop, ("rms_norm", "broken"))
        with mock.patch("hone.triton.arch_of", lambda call: 90), self.assertLogs("hone", "WARNING") as told:
            kernels.compile_for(self.call())
        self.assertIn("broken of rms_norm does not compile for rms_norm(f32[8,64], f32[64])", told.output[0])
        self.assertIn("nothing_of_the_kind", told.output[0])

    def test_without_the_dsl_it_says_what_to_install(self):
        with mock.patch.dict(sys.modules, {"nvidia_cutlass_dsl": None}), self.assertRaisesRegex(ImportError, "pip install 'nvidia-cutlass-dsl"):
            hone.kernel("rms_norm", platform="cute", name="none")(whole)

    def test_a_function_of_the_dsl_is_known_without_its_platform(self):
        self.assertEqual(kernels._platform_of(norm), "cute")
        self.assertEqual(kernels._platform_of(plain), "python")


class Processes(HoneTest):
    """One process compiles, the next and the command without Python find what it made."""

    def run_program(self, how, text=None):
        path = pathlib.Path(__file__).with_name("cute_program.py")
        if text is not None:
            path = self.folder / "cute_program.py"
            path.write_text(text)
        done = subprocess.run([sys.executable, "-B", str(path), how], env=self.environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def setUp(self):
        super().setUp()
        fakes, dsl = os.environ["HONE_TEST_FAKES"], pathlib.Path(hone.cute.find_dsl()[1][0])
        runtime, ffi = hone.cute.find_dsl()[1]
        self.assertTrue(dsl.exists())
        self.environment = {**os.environ, "HONE_STORE": "none", "XDG_CACHE_HOME": str(self.folder), "HONE_CUDA_DRIVER": f"{fakes}/fake_cuda.so",
                            "HONE_NVRTC": "/nowhere/libnvrtc.so.13", "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"),
                            "FAKE_CUDA_OPTIONS": "", "HONE_TVM_FFI": ffi, "HONE_CUTE_DSL_RUNTIME": runtime}

    def registered(self, out):
        return dict(re.findall(r"registered (\S+) (\S+)", out))

    def test_the_next_process_and_a_program_without_python_run_what_was_compiled(self):
        out = self.run_program("tune")
        found = self.registered(out)
        self.assertEqual({*found}, {"warps_f32_2d", "warps_bf16_2d"}, out)
        self.assertEqual(self.registered(self.run_program("check")), found)
        row = json.loads((pathlib.Path(found["warps_f32_2d"]) / "pack.json").read_text())["kernels"][0]
        self.assertEqual((row["arguments"], row["facts"], row["align"]), (["x", "weight", "y", "f32(eps)"], {"stream": "argument"}, 16))
        self.assertIn("(dim) % 4 == 0", row["condition"])
        tune = [os.environ["HONE_TEST_COMMAND"], "tune", CALL, "--kernel", "warps_f32_2d", "--seconds", "30", "--evals", "1"]
        told = subprocess.run(tune, env={**self.environment, "HONE_PACK_PATH": found["warps_f32_2d"]}, capture_output=True, text=True, timeout=120)
        if find_library("cuda") is None:  # the export is called in both; the library under it asks for a driver of its own
            for words in (out, told.stdout + told.stderr):
                self.assertIn("RuntimeError: Got Cuda Runtime Error", words)

    def test_a_changed_source_is_another_kernel(self):
        text = pathlib.Path(__file__).with_name("cute_program.py").read_text()
        found = self.registered(self.run_program("tune", text))
        self.assertEqual(self.registered(self.run_program("check", text + "\n# a line that the kernel does not read\n")), found)
        self.assertEqual(self.registered(self.run_program("check", text.replace("LANES = 32", "LANES = 64"))), {})
        self.assertEqual(self.registered(self.run_program("check", text.replace("total += value * value", "total += value"))), {})


if __name__ == "__main__":
    unittest.main()
