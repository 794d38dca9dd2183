"""Compilers for GPUs for real, without a GPU: Triton, NVRTC with and without CuTe, the CuTe DSL, jax. What they make is launched on the fake driver, which
reads from each binary what it takes, and computes by the name of its function."""

import json
import os
import re
import subprocess
import sys
from ctypes.util import find_library

from support import BUILD, DATA, NO, CommandTest, unittest

ROOT = DATA.resolve().parent
FAKES = BUILD.resolve() / "tests" / "fakes"
PACKAGES = ROOT / "build-python"
TOOLKIT = PACKAGES / "cuda" / "nvidia" / "cu13"


class Compilers(CommandTest):
    def need(self, path):
        self.assertTrue(path.exists(), f"{path} is missing: run scripts/setup python")

    def gpu(self, options, **changes):
        env = {"HONE_CUDA_DRIVER": str(FAKES / "fake_cuda.so"), "HONE_NVRTC": str(TOOLKIT / "lib" / "libnvrtc.so.13"),
               "HONE_CUBLASLT": "/nowhere/libcublasLt.so.13", "FAKE_CUDA_LOG": str(self.folder / "log"),
               "FAKE_CUDA_OPTIONS": options, "CUDA_HOME": str(TOOLKIT)}
        env.update({name: str(value) for name, value in changes.items()})
        return env

    def pack(self, script, *arguments, **changes):
        """Runs a packer; its folder."""
        folder = self.folder / "pack"
        env = {**os.environ, "TRITON_CACHE_DIR": str(self.folder / "triton"), "CUDA_HOME": str(TOOLKIT),
               "HONE_NVRTC": str(TOOLKIT / "lib" / "libnvrtc.so.13")}
        env.update({name: str(value) for name, value in changes.items()})
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts" / script, folder, *arguments], env=env, text=True,
                              capture_output=True, timeout=540)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return folder

    def assert_wins(self, call, kernel, platform, env):
        self.hone("tune", call, "--kernel", kernel, "--seconds", "60", "--evals", "1", env=env)
        answer = self.hone("explain", call, "--json", env=env).json
        self.assertEqual((answer["kernel"], answer["platform"], answer["verified"]), (kernel, platform, True))

    def launches(self, name):
        return [line for line in (self.folder / "log").read_text().splitlines() if line.startswith(f"launch {name} ")]

    def test_triton_compiles_a_pack_whose_kernels_are_launched_with_its_pointers(self):
        self.need(PACKAGES / "triton")
        folder = self.pack("pack-triton", ROOT / "src/kernels/rms_norm/triton_kernels.py", "--configs", "1", HONE_TRITON_PATH=PACKAGES)
        kernels = json.loads((folder / "pack.json").read_text())["kernels"]
        self.assertEqual({kernel["platform"] for kernel in kernels}, {"triton"})
        env = self.gpu("-Dhone_x_f32=1", HONE_PACK_PATH=folder)
        self.assert_wins("rms_norm(f32[8,256], f32[256]) @cuda:0", "triton_whole_f32", "triton", env)
        self.assertRegex(self.launches("rms_norm_whole")[0],
                         "grid 2,1,1 block 128,1,1 .* 08000000 00010000 bd378635 0{16} 0{16}$")

    def test_nvrtc_compiles_hones_own_kernels_whose_lists_of_arguments_are_right(self):
        for call, option, launch in (
                ("softmax(f32[8,256]) @cuda:0", "", "grid 4,1,1 block 64,2,1 .* 0800000000000000 00010000 000000000000f03f$"),
                ("layer_norm(f32[8,256], f32[256], f32[256]) @cuda:0", "-DSUBTRACT_MEAN=1", "grid 4,1,1 .* 0800000000000000 00010000 "),
                ("add_rms_norm(f32[8,256], f32[8,256], f32[256]) @cuda:0", "", "grid 4,1,1 .* 0800000000000000 00010000 "),
                ("silu_mul(f32[8,250], f32[8,250]) @cuda:0", "", "grid 2,1,1 block 256,1,1 .* d007000000000000$"),
                ("rope(f32[2,4,3,16], f32[4,8], f32[4,8]) @cuda:0", "-DHEADS=3", "grid 1,1,1 .* 0800000000000000 0400000000000000$"),
                ("mean_pooling(f32[2,9,100]) @cuda:0", "", "0200000000000000 0900000000000000 6400000000000000$")):
            with self.subTest(call=call):
                answer = self.hone("run", call, "--json", env=self.gpu(option, HONE_POLICY="heuristic")).json
                self.assertEqual((answer["kernel"], answer["platform"], answer["verified"]), ("cuda", "cuda", True))
                self.assertRegex(self.launches(call.split("(")[0])[0], launch)

    def block(self, page, language):
        return re.search(rf"```{language}\n(.*?)```", page, re.S)[1]

    def test_the_commands_of_the_page_about_triton_make_a_pack_that_hone_takes(self):
        self.need(PACKAGES / "triton")
        page = (ROOT / "docs/triton.md").read_text()
        self.write("my_kernels.py", self.block(page, "python"))
        self.write("add.c", self.block(page, "c"))
        commands = [line[2:] for line in page.splitlines() if line.startswith("$ ")]
        pip, pack, check, tune = commands
        self.assertTrue(pip.startswith("pip install triton=="))
        env = {**self.environment(self.gpu("", HONE_TRITON_PATH=PACKAGES, TRITON_CACHE_DIR=self.folder / "triton",
                                           HONE_COMMAND=BUILD.resolve() / "hone")), "PATH": f"{BUILD.resolve()}:{os.environ['PATH']}"}
        for command in (pack.replace("python -m hone.triton", f"{sys.executable} -B {ROOT}/scripts/pack-triton"), check):
            done = subprocess.run(command, shell=True, cwd=self.folder, env=env, text=True, capture_output=True, timeout=540)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"triton_f32 +add +triton +gpu +2 ")
        # The fake driver loads what was compiled, and computes by the name of its function.
        done = subprocess.run(tune + " --seconds 60 --evals 1", shell=True, cwd=self.folder, env=env, text=True,
                              capture_output=True, timeout=540)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("chosen triton_f32", done.stdout)
        self.assertTrue(self.launches("add"))

    TUTORIALS = '''
import triton
import triton.language as tl

@triton.jit
def softmax(out, x, rows, columns, BLOCK: tl.constexpr, num_stages: tl.constexpr):
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=num_stages):
        at = tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
        e = tl.exp(v - tl.max(v, axis=0))
        tl.store(out + row * columns + at, e / tl.sum(e, axis=0), mask=at < columns)

@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACT: tl.constexpr = ""):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    sum = tl.zeros((BM, BN), dtype=tl.float32)
    for at in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m[:, None] < M) & ((at + k)[None, :] < K), other=0.0)
        y = tl.load(b + (at + k)[:, None] * N + n[None, :], mask=((at + k)[:, None] < K) & (n[None, :] < N), other=0.0)
        sum = tl.dot(x, y, sum)
    if ACT == "relu":
        sum = tl.where(sum > 0, sum, 0.0)
    tl.store(c + m[:, None] * N + n[None, :], sum.to(tl.float16), mask=(m[:, None] < M) & (n[None, :] < N))

KERNELS = [{
    "function": softmax, "algorithm": "softmax", "name": "rows",
    "signature": "softmax(x: T[..., dim]) -> y: T[..., dim] where T in f32",
    "arguments": {"out": ("*fp32", "y"), "x": ("*fp32", "x"), "rows": ("i32", "x.size / max(dim, 1)"), "columns": ("i32", "dim")},
    "condition": "dim <= BLOCK", "grid": "132",
    "configs": [{"BLOCK": 1024, "num_stages": 4, "num_warps": 8}, {"BLOCK": 2048, "num_stages": 2}],
}, {
    "function": product, "algorithm": "matmul", "name": "product",
    "signature": "matmul(a: T[m, k], b: T[k, n]) -> c: T[m, n] where T in f16",
    "arguments": {"a": ("*fp16", "a"), "b": ("*fp16", "b"), "c": ("*fp16", "c"), "M": ("i32", "m"), "N": ("i32", "n"), "K": ("i32", "k")},
    "grid": ["ceildiv(m, BM)", "ceildiv(n, BN)"],
    "configs": [{"BM": 64, "BN": 64, "BK": 32}, {"BM": 64, "BN": 64, "BK": 32, "ACT": ""},
                {"BM": 128, "BN": 64, "BK": 32, "num_warps": 8, "num_stages": 4, "maxnreg": 128, "ACT": "relu"}],
}]
'''

    def pack_triton(self, text, *arguments, name="pack"):
        self.need(PACKAGES / "triton")
        path, folder = self.write("kernels.py", text), self.folder / name
        env = {**os.environ, "TRITON_CACHE_DIR": str(self.folder / "triton"), "HONE_TRITON_PATH": str(PACKAGES),
               "HONE_COMMAND": str(BUILD.resolve() / "hone")}
        done = subprocess.run([sys.executable, "-B", ROOT / "scripts/pack-triton", folder, path, *arguments], env=env, text=True,
                              capture_output=True, timeout=540)
        return folder, done.returncode, done.stdout + done.stderr

    def test_configs_of_different_options_make_whole_variants_without_anything_divisible(self):
        folder, code, words = self.pack_triton(self.TUTORIALS)
        self.assertEqual(code, 0, words)
        rows, product = json.loads((folder / "pack.json").read_text())["kernels"]
        self.assertNotIn("align", rows)
        self.assertEqual([variant["config"] for variant in rows["variants"]],
                         [{"BLOCK": 1024, "num_stages": 4, "num_warps": 8}, {"BLOCK": 2048, "num_stages": 2, "num_warps": 4}])
        # A config that comes to the same as another is one; what Triton or the function chose stands in it.
        self.assertEqual([variant["config"] for variant in product["variants"]],
                         [{"BM": 64, "BN": 64, "BK": 32, "ACT": "", "num_warps": 4, "num_stages": 3, "maxnreg": 0},
                          {"BM": 128, "BN": 64, "BK": 32, "ACT": "relu", "num_warps": 8, "num_stages": 4, "maxnreg": 128}])
        self.hone("pack", "check", str(folder))

    def test_a_packer_leaves_with_1_where_hone_refuses_the_pack_or_nothing_was_compiled(self):
        _, code, words = self.pack_triton(self.TUTORIALS.replace('"algorithm": "softmax"', '"algorithm": "nobodys"'))
        self.assertEqual(code, 1)
        self.assertIn("hone refuses the pack", words)
        self.assertIn("no algorithm named 'nobodys'", words)
        for text, arguments in ((self.TUTORIALS, ["--configs", "0"]), ("KERNELS = []\n", [])):
            _, code, words = self.pack_triton(text, *arguments, name="empty")
            self.assertEqual(code, 1)
            self.assertIn("nothing was compiled", words)
        for old, new, says in (('{"BLOCK": 2048, "num_stages": 2}', '{"BLOCK": 2048}', "num_stages is neither"),
                               ('"BK": 32, "ACT": ""}', '"BK": 32, "num_wraps": 4}', "num_wraps is no argument"),
                               ('"grid": "132"', '"gird": "132"', "has no field 'grid'"),
                               ('"grid": "132"', '"grid": "132", "divisable": []', "'divisable' is no field")):
            _, code, words = self.pack_triton(self.TUTORIALS.replace(old, new), name="wrong")
            self.assertIn(code, (1, 2))
            self.assertIn(says, words)

    def test_jax_exports_a_pack_of_pallas_that_is_whole_and_runs_on_the_plugin_of_the_cpu(self):
        self.need(PACKAGES / "jax")
        plugin = PACKAGES / "xla_plugins" / "xla_cpu_pjrt" / "xla_cpu_pjrt.so"
        self.need(plugin)
        folder = self.pack("pack-pallas", PYTHONPATH=PACKAGES)
        pack = json.loads((folder / "pack.json").read_text())
        self.assertEqual([kernel["platform"] for kernel in pack["kernels"]], ["pallas"])
        self.assertEqual(len(pack["kernels"][0]["variants"]), 2)
        env = {"HONE_PJRT_PLUGIN": str(plugin), "HONE_PACK_PATH": str(folder)}
        self.hone("pack", "check", str(folder), env=env)
        # Nobody has a reference of it: what it computes is held to by test xla_plugin.
        answer = self.hone("run", "twice(f32[4096])", env={**env, "HONE_FORCE": "twice=pallas_cpu"}, code=NO)
        self.assertIn("pallas/pallas_cpu", answer.out)

    HALVES = '''
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl

def halves(config, backend):
    def kernel(x, y):
        y[...] = x[...] * 0.5
    spec = pl.BlockSpec((config["block"],), lambda i: (i,))
    return pl.pallas_call(kernel, out_shape=jax.ShapeDtypeStruct((512,), jnp.float32), grid=(512 // config["block"],), in_specs=[spec],
                          out_specs=spec, interpret=backend == "cpu")

ALGORITHMS = [{"signature": "halves(x: f32[n]) -> y: f32[n]"}]
KERNELS = [{"function": halves, "algorithm": "halves", "inputs": [jax.ShapeDtypeStruct((512,), jnp.float32)], "arguments": "x",
            "condition": "n == 512", "configs": {"cpu": [{"block": 128}, {"block": 256}]}}]
'''

    def packer(self, module, *arguments, **changes):
        """A packer of the package, as a user of the wheel runs it: its exit code, and what it printed."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON", "CUDA"))}
        env |= {"PYTHONPATH": f"{BUILD.resolve() / 'python'}:{PACKAGES}", "HONE_COMMAND": str(BUILD.resolve() / "hone"), "PATH": "/usr/bin:/bin"}
        done = subprocess.run([sys.executable, "-B", "-m", f"hone.{module}", *map(str, arguments)], env={**env, **changes}, text=True,
                              capture_output=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    def test_packers_are_modules_of_the_package_and_say_what_is_missing(self):
        self.need(PACKAGES / "jax")
        path, folder = self.write("halves.py", self.HALVES), self.folder / "halves"
        code, words = self.packer("pallas", folder, path, "--configs", "1")
        self.assertEqual(code, 0, words)
        kernel, = json.loads((folder / "pack.json").read_text())["kernels"]
        self.assertEqual((kernel["name"], [one["config"] for one in kernel["variants"]]), ("pallas_cpu", [{"block": 128}]))
        self.hone("pack", "check", str(folder))
        for old, new, says, status in (('"arguments": "x"', '"argument": "x"', "has no field 'arguments'", 2),
                                       ('"condition":', '"conditions":', "'conditions' is no field", 2),
                                       ('{"cpu": [', '{"npu": [', "expected cpu, gpu or tpu", 2),
                                       ("512 // config", "512 // confg", "NameError", 1), ("KERNELS =", "KERNEL =", "has no list KERNELS", 2)):
            code, words = self.packer("pallas", folder, self.write("wrong.py", self.HALVES.replace(old, new)))
            self.assertEqual(code, status, words)
            self.assertIn(says, words)
        code, words = self.packer("pallas", folder, path, "--backend", "gpu")
        self.assertEqual(code, 1)
        self.assertIn("nothing was compiled", words)
        code, words = self.packer("cutlass", folder, self.write("none.py", "KERNELS = []\n"), CUDA_HOME="/nowhere", HONE_CUTLASS_PATH="/nowhere")
        self.assertEqual(code, 2)
        self.assertRegex(words, "hone.cutlass: (CUTLASS|CUDA)'s headers are not here|hone.cutlass: neither nvcc nor NVRTC")
        code, words = self.packer("flashinfer", folder, HONE_FLASHINFER="/nowhere")
        self.assertEqual(code, 1)
        self.assertRegex(words, "hone.flashinfer: (nvcc is not on the PATH|flashinfer is not here)")
        self.assertEqual(self.packer("pallas", folder)[0], 2)

    def test_nvrtc_compiles_a_source_for_the_gpu(self):
        self.need(TOOLKIT)
        self.assert_wins("rms_norm(f32[8,256], f32[256]) @cuda:0", "cuda", "cuda", self.gpu("-Dhone_x_f32=1"))
        self.assertTrue(self.launches("rms_norm"))

    def test_nvrtc_compiles_wgmma_for_its_chip(self):
        self.need(TOOLKIT)
        call = "matmul(bf16[136,72], bf16[72,264]) @cuda:0"
        self.assert_wins(call, "cuda_wgmma", "cuda", self.gpu("-Dhone_a_bf16=1"))
        self.assertRegex(self.launches("matmul")[0],
                         r"grid \d+,1,1 block (160|288),1,1 shared \d+ arguments [0-9a-f]{16} "
                         "88000000 08010000 48000000 [0-9a-f]{256} [0-9a-f]{256}$")
        self.assertIn("map type 9 rank 2 size 72 box 64 rows 136 of 144 box 128 swizzle 3", (self.folder / "log").read_text())

    def test_cute_is_compiled_with_cutlass_into_a_pack(self):
        self.need(TOOLKIT)
        cutlass = PACKAGES / "cuda" / "cutlass_library" / "source"
        one = self.write("one.py", f"import sys\nsys.path.insert(0, {str(ROOT / 'src/kernels/matmul')!r})\n"
                                   "import cute_kernels\nKERNELS = cute_kernels.KERNELS[:1]\n")
        folder = self.pack("pack-cute", one, "--configs", "1", HONE_CUTLASS_PATH=cutlass)
        env = self.gpu("-Dhone_a_bf16=1", HONE_PACK_PATH=folder)
        self.assert_wins("matmul(bf16[40,64], bf16[64,72]) @cuda:0", "cute_bf16", "cute", env)
        self.assertIn("grid 1,1,1 block 256,1,1 shared 131072", self.launches("matmul")[0])

    def test_a_source_in_cute_is_refused_without_cutlass(self):
        folder = self.pack("pack-cute", "--sources")
        pack = json.loads((folder / "pack.json").read_text())
        pack["kernels"][0]["priority"] = 99  # the first in the list of reasons
        (folder / "pack.json").write_text(json.dumps(pack))
        env = self.gpu("-Dhone_a_bf16=1", HONE_PACK_PATH=folder, HONE_CUTLASS_PATH="/nowhere")
        call = "matmul(bf16[40,64], bf16[64,72]) @cuda:0"
        answer = self.hone("tune", call, "--kernel", "cute_bf16_source", "--seconds", "5", "--evals", "1", env=env, code=None)
        self.assertNotEqual(answer.code, 0)
        self.assertIn("nvidia-cutlass", answer.out + answer.err)

    def pack_dsl(self):
        """A pack of hone's own kernels of the CuTe DSL: one config of an export, and one of a cubin."""
        dsl = PACKAGES / "cute-dsl"
        self.need(dsl)
        two = self.write("two.py", f"import sys\nsys.path.insert(0, {str(ROOT / 'src/kernels/matmul')!r})\nimport cute_dsl_gemm\n"
                                   "KERNELS = [cute_dsl_gemm.KERNELS[0], cute_dsl_gemm.KERNELS[-1]]\n")
        folder = self.pack("pack-cute-dsl", two, "--configs", "1", HONE_CUTE_DSL_PATH=dsl)
        env = self.gpu("-Dhone_a_bf16=1", HONE_PACK_PATH=folder, HONE_TVM_FFI=dsl / "tvm_ffi/lib/libtvm_ffi.so",
                       HONE_CUTE_DSL_RUNTIME=dsl / "nvidia_cutlass_dsl/cu13/lib/libcute_dsl_runtime.so")
        self.hone("pack", "check", str(folder))
        return folder, env

    def assert_export_loses(self, says, env):
        answer = self.hone("tune", "matmul(bf16[136,72], bf16[72,264]) @cuda:0", "--kernel", "cute_dsl_bf16", "--seconds", "60",
                           "--evals", "1", "--fresh", env=env, code=None)
        self.assertNotEqual(answer.code, 0)
        self.assertIn(says, answer.out + answer.err)

    def test_the_cute_dsl_compiles_a_pack(self):
        folder, env = self.pack_dsl()
        self.assert_wins("matmul(bf16[136,64], bf16[64,264]) @cuda:0", "cute_dsl_bf16_cubin", "cute", env)
        self.assertRegex(self.launches("matmul_0")[0],
                         "grid 4,1,1 block 256,1,1 shared 196608 arguments [0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16} "
                         "88000000 08010000 40000000$")
        # The export is loaded and called; the library under it asks for a driver of its own.
        if find_library("cuda") is None:
            self.assert_export_loses("RuntimeError: Got Cuda Runtime Error", env)
        pack = json.loads((folder / "pack.json").read_text())
        pack["kernels"][0]["arguments"] = ["a", "c"]
        (folder / "pack.json").write_text(json.dumps(pack))
        self.assert_export_loses("TypeError: Expects 4 parameters", env)

    def test_functions_of_the_cute_dsl_are_kernels_by_a_decorator(self):
        dsl = PACKAGES / "cute-dsl"
        self.need(dsl)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("HONE_", "PYTHON"))}
        paths = (BUILD.resolve() / "python", PACKAGES, dsl, dsl / "nvidia_cutlass_dsl" / "dsl_packages")
        done = subprocess.run([sys.executable, "-B", "-W", "ignore", "-m", "unittest", "test_cute"], cwd=ROOT / "tests" / "python", capture_output=True,
                              text=True, timeout=500, env={**env, "PYTHONPATH": os.pathsep.join(map(str, paths)), "HONE_TEST_COMMAND": str(BUILD.resolve() / "hone"),
                                                           "HONE_TEST_FAKES": str(BUILD.resolve() / "tests" / "fakes")})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
