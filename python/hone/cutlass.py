"""Kernels in CuTe C++ as packs that hone loads without a compiler (docs/cute.md). No GPU is needed.

    python -m hone.cutlass DIR FILE.py... [--arch 90a] [--configs N] [--sources] [--overwrite]

DIR gets pack.json and a cubin for each config. FILE.py has a list KERNELS. --configs compiles the first N configs of each kernel alone;
--sources puts the source into the pack in their place, which hone then compiles where it runs. Needs CUTLASS's headers (PyPI's
nvidia-cutlass, or HONE_CUTLASS_PATH) and nvcc, or else NVRTC (HONE_NVRTC) with the headers of CUDA_HOME. Leaves with 0 when the pack is
whole, 1 when a kernel does not compile, nothing was compiled or hone refuses the pack, 2 on wrong use.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Imported from this folder, because compiling does not need the package's library.
_spec = importlib.util.spec_from_file_location("hone_packing", pathlib.Path(__file__).with_name("_packing.py"))
packing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packing)

TOOL = "hone.cutlass"
PACKED = ("algorithm", "name", "signature", "priority", "align", "entry", "arguments", "grid", "block", "shared", "condition")


def fail(status, text):
    packing.fail(TOOL, status, text)


def find_cutlass():
    named = os.environ.get("HONE_CUTLASS_PATH")
    places = [pathlib.Path(named), pathlib.Path(named) / "include"] if named else [
        pathlib.Path(folder) / "cutlass_library/source/include" for folder in sys.path if folder]
    for place in places:
        if (place / "cute/tensor.hpp").exists():
            return place
    fail(2, "CUTLASS's headers are not here: pip install nvidia-cutlass, or name CUTLASS's folder in HONE_CUTLASS_PATH")


def version_of(cutlass):
    text = (cutlass / "cutlass/version.h").read_text()
    parts = dict(re.findall(r"#define CUTLASS_(MAJOR|MINOR|PATCH) (\d+)", text))
    return ".".join(parts[name] for name in ("MAJOR", "MINOR", "PATCH"))


def find_cuda():
    for place in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
        if place and (pathlib.Path(place) / "include/cuda_fp16.h").exists():
            return pathlib.Path(place)
    fail(2, "CUDA's headers are not here: install the CUDA toolkit, or name its folder in CUDA_HOME")


class Nvcc:
    """The compiler of the toolkit: small binaries."""

    def __init__(self, program):
        self.program = program
        self.name = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.splitlines()[-2].strip()

    def compile(self, source, arch, options):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.cubin"
            done = subprocess.run(
                [self.program, "-cubin", f"-arch=sm_{arch}", "--expt-relaxed-constexpr", "-o", out, *options, source],
                capture_output=True, text=True)
            if done.returncode != 0:
                raise RuntimeError(done.stderr.strip().splitlines()[0])
            return out.read_bytes()


class Nvrtc:
    """The compiler as a library, where there is no nvcc."""

    def __init__(self):
        try:
            path = pathlib.Path(os.environ.get("HONE_NVRTC", "libnvrtc.so.13"))
            # NVRTC opens its second library by name only, so the one in its folder must be loaded first.
            self.builtins = [ctypes.CDLL(str(file)) for file in path.parent.glob("libnvrtc-builtins.so.*") if "/" in str(path)]
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            fail(2, f"neither nvcc nor NVRTC is here: {error}")
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.name = f"NVRTC {major.value}.{minor.value}"

    def text(self, program, what):
        size = ctypes.c_size_t()
        getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(self.library, f"nvrtcGet{what}")(program, buffer)
        return buffer.raw

    def compile(self, source, arch, options):
        options = [f"-arch=sm_{arch}", "-default-device", *options]
        program = ctypes.c_void_p()
        self.library.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
        words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
        result = self.library.nvrtcCompileProgram(program, len(options), words)
        if result != 0:
            lines = self.text(program, "ProgramLog").decode(errors="replace").splitlines()
            raise RuntimeError(next((line for line in lines if "error" in line), f"NVRTC answers {result}"))
        return self.text(program, "CUBIN")


def find_compiler(cuda):
    named = cuda / "bin/nvcc"
    program = str(named) if named.exists() else shutil.which("nvcc")
    return Nvcc(program) if program and "HONE_NVRTC" not in os.environ else Nvrtc()


def pack_kernel(kernel, folder, asked, compile_one):
    source = kernel["source"]
    packed = {name: kernel[name] for name in PACKED if name in kernel}
    packed.update({"platform": "cute", "backend": "gpu", "target": f"sm_{asked.arch}"})
    if asked.sources:
        packed["name"] += "_source"
        shutil.copy(source, folder / source.name)
        packed.update({"file": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest(),
                       "space": kernel["space"], "constants": kernel["constants"], "priority": 5})
        return packed
    packed["variants"] = []
    for config in kernel["configs"][:asked.configs]:
        cubin = compile_one(source, {**config, **kernel["macros"]})
        name = "-".join([kernel["name"]] + [str(value) for value in config.values()]) + ".cubin"
        (folder / name).write_bytes(cubin)
        packed["variants"].append({"config": config, "file": name, "sha256": hashlib.sha256(cubin).hexdigest()})
    return packed


def main(arguments: list[str] | None = None, own: tuple[pathlib.Path, ...] = ()) -> None:
    """The command.

    Args:
        own: files that are compiled where none is named.
    """
    parser = packing.parser_of("python -m hone.cutlass", __doc__, bool(own))
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--configs", type=int)
    parser.add_argument("--sources", action="store_true")
    parser.add_argument("--overwrite", action="store_true")
    asked = parser.parse_args(arguments)
    compiler, includes = None, []
    if not asked.sources:
        cuda = find_cuda()
        compiler = find_compiler(cuda)
        includes = [f"-I{place}" for place in (find_cutlass(), cuda / "include", cuda / "include/cccl")]

    def compile_one(source, macros):
        return compiler.compile(source, asked.arch, ["-std=c++17", *includes, *[f"-D{n}={v}" for n, v in macros.items()]])

    asked.folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for path in asked.files or own:
        for kernel in packing.module_of(TOOL, path).KERNELS:
            try:
                kernels.append(pack_kernel(kernel, asked.folder, asked, compile_one))
            except RuntimeError as error:
                fail(1, f"{path}: {kernel['name']}: {error}")
    if compiler is not None:
        for kernel in kernels:
            kernel["producer"] = {"tool": TOOL, "compiler": compiler.name, "cutlass": version_of(find_cutlass())}
    pack = {"hone_pack": 1, "name": asked.folder.resolve().name, "kernels": kernels}
    packing.finish(TOOL, asked.folder, pack, overwrite=asked.overwrite)


if __name__ == "__main__":
    main()
