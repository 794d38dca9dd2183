"""Kernels that cheat and kernels with mistakes on an NVIDIA GPU, as those of test_cpu.py: each meets an honest kernel, three times as
slow as it, must fall out with its kind, and the honest one wins. Sources of a pack (gpu.cu) and functions of a program. On a GPU's
machine: scripts/gpu run DIR - cheats."""

import collections
import ctypes
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support import BUILD, DATA, CommandTest, unittest

HERE = pathlib.Path(__file__).resolve().parent
BUILT = pathlib.Path(os.environ["HONE_CHEATS"])

Operation = collections.namedtuple("Operation", "call honest arguments grid")
ROWS, PRODUCT = "x.size / max(dim, 1)", "m * n"
OPERATIONS = {
    "rms_norm": Operation("rms_norm(f32[1024,1024], f32[1024])", "honest_norm",
                          f"x, weight, y, i32({ROWS}), i32(dim), i32(1), f32(eps)", ROWS),
    "softmax": Operation("softmax(f32[1024,1024])", "honest_softmax", f"x, x, y, i32({ROWS}), i32(dim), i32(1), f32(scale)", ROWS),
    "matmul": Operation("matmul(f32[512,512], f32[512,512])", "honest_matmul", "a, b, c, i32(m), i32(n), i32(k), f32(0)",
                        f"ceildiv({PRODUCT}, 256)"),
}

Cheat = collections.namedtuple("Cheat", "name operation kinds call", defaults=(None,))
CHEATS = [
    Cheat("kept_by_elements_of_rows", "rms_norm", "stale replayed impossible wrong"),
    Cheat("kept_in_device_memory", "matmul", "replayed wrong"),
    Cheat("returns_when_written", "rms_norm", "stale impossible"),
    Cheat("writes_half_by_turns", "rms_norm", "partial stale"),
    Cheat("adds_to_what_was_there", "matmul", "wrong"),
    Cheat("right_at_first", "rms_norm", "stale wrong partial"),
    Cheat("works_in_the_next_run", "rms_norm", "stale hidden"),
    Cheat("wrong_now_and_then", "rms_norm", "wrong racy"),
    Cheat("zeros_in_sixteen_rows", "rms_norm", "wrong partial"),
    Cheat("drops_the_tail", "rms_norm", "partial", "rms_norm(f32[512,1001], f32[1001])"),
    Cheat("norm_without_eps", "rms_norm", "wrong"),
    Cheat("softmax_without_maximum", "softmax", "wrong partial"),
    Cheat("right_up_to_4", "rms_norm", "wrong"),
    Cheat("right_for_seed_0", "rms_norm", "wrong"),
    Cheat("sums_in_bf16", "matmul", "wrong"),
    Cheat("loads_vectors", "rms_norm", "unaligned crash run", "rms_norm(f32[1024,1024]{align=4}, f32[1024])"),
    Cheat("static_work_buffer", "rms_norm", "racy"),
]
FUNCTIONS = {"copies_on_a_side_stream": "hidden stale wrong partial", "copies_in_a_thread": "hidden stale wrong partial traces"}


class Contest(CommandTest):
    """Each contest is a process of its own; compiled sources and the machine's peaks are made once."""

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="hone-cheats-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)

    def environment(self, changes):
        deny = "rms_norm=cuda,rms_norm=opencl,rms_norm=xla,softmax=cuda,matmul=cuda_simt,matmul=cublaslt,matmul=opencl,matmul=xla"
        return super().environment({"HONE_STORE": "none", "XDG_CACHE_HOME": str(self.shared), "HONE_CUDA_DRIVER": None,
                                    "HONE_WORKER": str(BUILD / "hone-worker"), "HONE_DENY": deny, **changes})

    def write_pack(self, operation, names):
        pack, how = self.folder / "pack", OPERATIONS[operation]
        pack.mkdir(exist_ok=True)
        shutil.copy(HERE / "gpu.cu", pack)
        row = {"algorithm": operation, "platform": "cuda", "backend": "gpu", "priority": 99, "file": "gpu.cu",
               "sha256": hashlib.sha256((pack / "gpu.cu").read_bytes()).hexdigest(), "entry": "cheat", "target": "sm_80",
               "arguments": how.arguments, "grid": how.grid, "block": 256}
        kernels = [{**row, "name": name, "options": f"-DCHEAT={name}"} for name in names]
        (pack / "pack.json").write_text(json.dumps({"hone_pack": 1, "name": "cheats", "kernels": kernels}))
        return str(pack)

    def check(self, entry, name, kinds, honest):
        rows = {row["kernel"]: row for row in entry["evidence"]["kernels"]}
        self.assertEqual(rows[honest]["rejected"], {}, rows[honest])
        self.assertTrue(set(rows[name]["rejected"]) & set(kinds.split()), f"expected one of {kinds}: {json.dumps(rows[name])}")
        self.assertEqual(entry["kernel"], honest)

    def check_source(self, cheat):
        operation = OPERATIONS[cheat.operation]
        pack = self.write_pack(cheat.operation, [cheat.name, operation.honest])
        call = (cheat.call or operation.call) + " @cuda:0"
        entry = self.hone("tune", "--pack", pack, call, "--seconds", "20", "--evals", "4", "--json").json["entries"][0]
        self.check(entry, cheat.name, cheat.kinds, operation.honest)

    def contest_of_functions(self, name, env):
        done = subprocess.run([str(BUILT / "cheats_gpu_program"), name], env=self.environment(env), cwd=self.folder, text=True,
                              capture_output=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["entries"][0]

    def check_function(self, name):
        self.check(self.contest_of_functions(name, {}), name, FUNCTIONS[name], "honest_copy")


OnGpu = type("OnGpu", (Contest,), {
    **{f"test_{cheat.name}_does_not_win": lambda self, cheat=cheat: self.check_source(cheat) for cheat in CHEATS},
    **{f"test_{name}_does_not_win": lambda self, name=name: self.check_function(name) for name in FUNCTIONS}})


class WithoutGpu(Contest):
    """What can be seen without one: that each source is one for the compiler, and that the honest function runs, on the fake driver."""

    FAKES = BUILD.resolve() / "tests" / "fakes"
    LIBRARIES = DATA.resolve().parent / "build-python" / "cuda" / "nvidia" / "cu13" / "lib"

    def compile(self, nvrtc, source, name):
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        self.assertEqual(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"gpu.cu", 0, None, None), 0)
        options = (ctypes.c_char_p * 2)(f"-DCHEAT={name}".encode(), b"--gpu-architecture=sm_80")
        failed = nvrtc.nvrtcCompileProgram(program, 2, options)
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        self.assertEqual(failed, 0, f"{name}: {log.value.decode()}")

    def test_each_source_compiles(self):
        self.assertTrue(self.LIBRARIES.exists(), f"{self.LIBRARIES} is missing: run scripts/setup python")
        ctypes.CDLL(str(next(self.LIBRARIES.glob("libnvrtc-builtins.so.13*"))), mode=ctypes.RTLD_GLOBAL)
        nvrtc, source = ctypes.CDLL(str(self.LIBRARIES / "libnvrtc.so.13")), (HERE / "gpu.cu").read_bytes()
        for name in [cheat.name for cheat in CHEATS] + [operation.honest for operation in OPERATIONS.values()]:
            self.compile(nvrtc, source, name)

    def test_each_pack_is_in_order(self):
        for name, operation in OPERATIONS.items():
            pack = self.write_pack(name, [cheat.name for cheat in CHEATS if cheat.operation == name] + [operation.honest])
            self.hone("pack", "check", pack, env={"HONE_CUDA_DRIVER": "/nowhere/libcuda.so.1"})

    def test_each_cheat_of_the_source_has_its_row(self):
        found = re.findall(r"^__device__ void (\w+)\(const job &j\)$", (HERE / "gpu.cu").read_text(), re.MULTILINE)
        self.assertEqual(sorted(found), sorted([cheat.name for cheat in CHEATS] + ["norm", "softmax", "matmul"]))

    def test_the_honest_function_is_right(self):
        entry = self.contest_of_functions("copies_on_a_side_stream", {"HONE_CUDA_DRIVER": str(self.FAKES / "fake_cuda.so")})
        rows = {row["kernel"]: row for row in entry["evidence"]["kernels"]}
        self.assertEqual((rows["honest_copy"]["tried"], rows["honest_copy"]["rejected"]), (1, {}))


if __name__ == "__main__":
    unittest.main()
