"""Operations of FlashInfer as libraries for tvm-ffi, in a pack for NVIDIA's GPUs (docs/packs.md). No GPU is needed.

    python -m hone.flashinfer DIR [--arch 90a] [--jobs N] [--overwrite]

FlashInfer's sources come from its package of PyPI, flashinfer-python: HONE_FLASHINFER names the folder that has flashinfer/data,
else it is looked for among this Python's packages. So are tvm-ffi's headers (apache-tvm-ffi; HONE_TVM_FFI_PATH: the folder
tvm_ffi). The compiler is nvcc of the PATH. A library that is there already is not compiled again. What is compiled on the way goes to
DIR.build, which may be deleted. Leaves with 0 when the pack is whole, 1 when something is missing or does not compile or hone refuses
the pack, 2 on wrong use.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

# Imported from this folder, because compiling does not need the package's library.
_spec = importlib.util.spec_from_file_location("hone_packing", pathlib.Path(__file__).with_name("_packing.py"))
packing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packing)

TOOL = "hone.flashinfer"
FLOATS = "where T in f16, bf16"
DECODE_TYPES = {"f16": "half", "bf16": "nv_bfloat16"}

# The C++ file of an activation. FlashInfer generates it when it compiles one, so its sources do not contain it.
SILU = """
#include <flashinfer/activation.cuh>
#include "tvm_ffi_utils.h"
__device__ __forceinline__ float silu(const float &x) { return x / (1.0f + __expf(-x)); }
void silu_and_mul(TensorView out, TensorView input)
{
    const int wide = static_cast<int>(input.size(input.ndim() - 1) / 2);
    const int64_t rows = input.numel() / input.size(input.ndim() - 1);
    const cudaStream_t stream = get_stream(out.device());
    DISPATCH_DLPACK_DTYPE_TO_CTYPE_FP16(input.dtype(), c_type, [&] {
        constexpr uint32_t vector = 16 / sizeof(c_type);
        TVM_FFI_ICHECK(wide % vector == 0) << "rows of whole vectors, not of " << wide;
        flashinfer::activation::act_and_mul_kernel<c_type, silu, vector>
            <<<static_cast<unsigned>(rows), std::min(wide / vector, 256u), 0, stream>>>(
                static_cast<c_type *>(out.data_ptr()), static_cast<c_type *>(input.data_ptr()), wide);
        const cudaError_t status = cudaGetLastError();
        TVM_FFI_ICHECK(status == cudaSuccess) << cudaGetErrorString(status);
        return true;
    });
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(silu_and_mul, silu_and_mul);
"""


# An algorithm of FlashInfer that hone does not have: its reference, and a plain kernel as a competitor.
REFERENCE = """
#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(hone_x_f16)
typedef _Float16 element;
static double get(const element *x) { return (double)*x; }
static void put(element *x, double value) { *x = (element)value; }
#else
typedef uint16_t element;
static double get(const element *x)
{
    const uint32_t bits = (uint32_t)*x << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}
static void put(element *x, double wide)
{
    const float value = (float)wide;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    *x = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#endif

void silu_and_mul(const element *x, element *y, int64_t rows, int64_t wide)
{
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < wide; i++) {
            const double gate = get(x + 2 * row * wide + i);
            put(y + row * wide + i, gate / (1 + exp(-gate)) * get(x + (2 * row + 1) * wide + i));
        }
}
"""
OURS = """
#if defined(hone_x_bf16)
#include <cuda_bf16.h>
typedef __nv_bfloat162 pair;
__device__ float2 widen(pair x) { return __bfloat1622float2(x); }
__device__ pair narrow(float2 x) { return __float22bfloat162_rn(x); }
#else
#include <cuda_fp16.h>
typedef __half2 pair;
__device__ float2 widen(pair x) { return __half22float2(x); }
__device__ pair narrow(float2 x) { return __float22half2_rn(x); }
#endif
struct alignas(16) pack { pair at[4]; };
__device__ float silu(float x) { return x / (1 + __expf(-x)); }
extern "C" __global__ void silu_and_mul(const pack *x, pack *y, int wide)
{
    const pack *gate = x + 2ll * blockIdx.x * wide, *up = gate + wide;
    for (int i = threadIdx.x; i < wide; i += threads) {
        const pack g = gate[i], u = up[i];
        pack out;
        for (int k = 0; k < 4; k++) {
            const float2 a = widen(g.at[k]), b = widen(u.at[k]);
            out.at[k] = narrow(make_float2(silu(a.x) * b.x, silu(a.y) * b.y));
        }
        y[(long long)blockIdx.x * wide + i] = out;
    }
}
"""


def find(variable, package, below):
    named = os.environ.get(variable)
    spec = None if named else importlib.util.find_spec(package)
    folder = pathlib.Path(named) if named else pathlib.Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (folder / below).is_dir():
        sys.exit(f"{TOOL}: {package} is not here: install it from PyPI, or name its folder in {variable}")
    return folder


def render(source, target, **values):
    """A template of FlashInfer's, whose fields stand in {{ }}."""
    text = source.read_text()
    for name, value in values.items():
        text = text.replace("{{ " + name + " }}", str(value))
    if "{{" in text:
        sys.exit(f"{TOOL}: {source.name} has fields that are not known: another version of FlashInfer?")
    target.write_text(text)


def write_decode(csrc, folder, kind, dim):
    """One decode attention, of a type and a head dimension: its sources are templates."""
    variant = "DefaultAttention<false, false, false, false>"
    scalars = ["logits_soft_cap", "sm_scale", "rope_rcp_scale", "rope_rcp_theta"]
    setters = ["params.maybe_alibi_slopes = maybe_alibi_slopes ? static_cast<float*>(maybe_alibi_slopes.value().data_ptr()) : nullptr;"]
    folder.mkdir(parents=True, exist_ok=True)
    values = {"dtype_q": kind, "dtype_kv": kind, "dtype_o": kind, "head_dim_qk": dim, "head_dim_vo": dim,
              "pos_encoding_mode": "PosEncodingMode::kNone", "use_sliding_window": "false", "use_logits_soft_cap": "false",
              "variant_name": variant, "variant_decl": "#include <flashinfer/attention/variants.cuh>",
              "additional_params_decl": "float* maybe_alibi_slopes;" + "".join(f" double {name};" for name in scalars),
              "additional_func_params": ", Optional<ffi::Tensor> maybe_alibi_slopes" + "".join(f", double {name}" for name in scalars),
              "additional_params_setter": " ".join(setters + [f"params.{name} = {name};" for name in scalars])}
    render(csrc / "single_decode_customize_config.jinja", folder / "single_decode_config.inc", **values)
    render(csrc / "single_decode_kernel_inst.jinja", folder / "single_decode_kernel.cu", **values)
    for name in ("single_decode.cu", "single_decode_jit_binding.cu"):
        shutil.copy(csrc / name, folder / name)
    return sorted(folder.glob("*.cu"))


def sources(data, work):
    """name -> the files of a library."""
    csrc, silu = data / "csrc", work / "silu_and_mul.cu"
    silu.write_text(SILU)
    made = {"norm": [csrc / "norm.cu", csrc / "flashinfer_norm_binding.cu"], "silu_and_mul": [silu],
            "sampling": [csrc / "sampling.cu", csrc / "renorm.cu", csrc / "flashinfer_sampling_binding.cu"]}
    for name, kind in DECODE_TYPES.items():
        made[f"decode_{name}_128"] = write_decode(csrc, work / f"decode_{name}_128", kind, 128)
    return made


def options(data, tvm_ffi, arch, folder):
    includes = [folder, data / "cccl/libcudacxx/include", data / "cccl/cub", data / "cccl/thrust", data / "include", data / "csrc", tvm_ffi / "include", data / "spdlog" / "include", data / "cutlass" / "include",
                data / "cutlass" / "tools" / "util" / "include"]
    return ["-std=c++17", "-O3", "-use_fast_math", "-DNDEBUG", "--expt-relaxed-constexpr",
            "-Xcompiler", "-fPIC", "-Xfatbin=-compress-all", "--compress-mode=size", f"-gencode=arch=compute_{arch},code=sm_{arch}",
            "-DFLASHINFER_ENABLE_F16", "-DFLASHINFER_ENABLE_BF16", "-DFLASHINFER_ENABLE_FP8_E4M3", "-DFLASHINFER_ENABLE_FP8_E5M2",
            "-DENABLE_BF16", "-DENABLE_FP8", *(part for path in includes for part in ("-I", str(path)))]


def compile_one(source, target, flags):
    done = subprocess.run(["nvcc", *flags, "-c", str(source), "-o", str(target)], text=True, capture_output=True)
    if done.returncode != 0:
        sys.exit(f"{TOOL}: {source.name} does not compile:\n{done.stderr[-4000:]}")
    return target


def build(made, folder, work, data, tvm_ffi, arch, jobs):
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = {name: [pool.submit(compile_one, file, work / f"{name}_{file.stem}.o", options(data, tvm_ffi, arch, file.parent))
                        for file in files] for name, files in made.items() if not (folder / f"{name}.so").exists()}
        for name, objects in parts.items():
            subprocess.run(["nvcc", "-shared", *(str(part.result()) for part in objects), "-o", str(folder / f"{name}.so"),
                            f"-L{tvm_ffi / 'lib'}", "-ltvm_ffi", "-Xlinker", "--strip-all"], check=True)
            print(f"{name}.so", flush=True)


def row(folder, file, **fields):
    return {"file": file, "sha256": hashlib.sha256((folder / file).read_bytes()).hexdigest(), **fields}


def kernels(folder, producer):
    def theirs(library, algorithm, entry, parameters, types, arguments, name="flashinfer", **fields):
        return row(folder, f"{library}.so", platform="ffi", backend="gpu", producer=producer, algorithm=algorithm, name=name, entry=entry,
                   signature=f"{algorithm}({parameters} {types}", arguments=arguments, **fields)

    rows = [
        theirs("norm", "rms_norm", "rmsnorm", "x: T[..., dim], weight: T[dim], *, eps: f64 = 1e-06 #any) -> y: T[..., dim]", FLOATS,
               "view(y, x.size / dim, dim), view(x, x.size / dim, dim), weight, f64(eps), bool(false)", condition="dim % 8 == 0"),
        theirs("norm", "layer_norm", "layernorm",
               "x: T[..., dim], weight: W[dim], bias: B[dim], *, subtract_mean: bool = true, eps: f64 = 1e-06 #any, "
               "weight_offset: f64 = 0.0 #any) -> y: T[..., dim]", "where T in bf16 where W in f32 where B in f32",
               "view(y, x.size / dim, dim), view(x, x.size / dim, dim), weight, bias, f64(eps)",
               condition="dim % 8 == 0 and subtract_mean and weight_offset == 0"),
        theirs("silu_and_mul", "silu_and_mul", "silu_and_mul", "x: T[rows, 2, wide]) -> y: T[rows, wide]", FLOATS,
               "y, view(x, rows, 2 * wide)", condition="wide % 8 == 0"),
        theirs("sampling", "softmax", "softmax", "x: T[..., dim], *, scale: f64 = 1.0 #any) -> y: T[..., dim]", "where T in f32",
               "scratch, view(x, x.size / dim, dim), view(y, x.size / dim, dim), none, f64(1.0 / scale), bool(false)", scratch="1048576",
               condition="scale > 0"),
        row(folder, "silu_and_mul.c", platform="native", backend="cpu", algorithm="silu_and_mul", name="plain", entry="silu_and_mul",
            arguments="x, y, i64(rows), i64(wide)"),
        row(folder, "silu_and_mul.cu", platform="cuda", backend="gpu", algorithm="silu_and_mul", name="vectors", entry="silu_and_mul",
            arguments="x:16, y:16, i32(wide / 8)", grid="rows", block="threads", space="threads: 64..512 *2 default 256",
            condition="wide % 8 == 0"),
    ]
    for dtype in DECODE_TYPES:
        rows.append(theirs(
            f"decode_{dtype}_128", "scaled_dot_product_attention", "run",
            "query: T[batch, seq_len, heads, dim], key: T[batch, kv_len ~pow2, kv_heads, dim], value: T[batch, kv_len, kv_heads, dim], "
            "*, causal: bool = false, softmax_scale: f64 = 1 / sqrt(dim) #any, sliding_window: i64? = none) "
            "-> out: T[batch, seq_len, heads, dim]", f"where T in {dtype} where heads % kv_heads == 0",
            "view(query, heads, dim), view(key, kv_len, kv_heads, dim), view(value, kv_len, kv_heads, dim), scratch, "
            "view(out, heads, dim), none, i64(0), i64(-1), none, f64(0.0), f64(softmax_scale), f64(1.0), f64(1.0)",
            name=f"flashinfer_decode_{dtype}", scratch="33554432",
            condition="batch == 1 and seq_len == 1 and dim == 128 and not causal and sliding_window == none"))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m hone.flashinfer", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--arch", default="90a", help="compute capability: 90a, 100a")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--overwrite", action="store_true")
    asked = parser.parse_args(arguments)
    if shutil.which("nvcc") is None:
        sys.exit(f"{TOOL}: nvcc is not on the PATH: install the CUDA toolkit, and add its bin folder to PATH")
    package = find("HONE_FLASHINFER", "flashinfer", "data/csrc")
    tvm_ffi = find("HONE_TVM_FFI_PATH", "tvm_ffi", "include")
    work = asked.folder.resolve().parent / (asked.folder.name + ".build")
    asked.folder.mkdir(parents=True, exist_ok=True)
    work.mkdir(exist_ok=True)
    build(sources(package / "data", work), asked.folder.resolve(), work, package / "data", tvm_ffi, asked.arch, asked.jobs)
    version = next((path.name.split("-")[1] for path in package.parent.glob("flashinfer_python-*.dist-info")), "?")
    (asked.folder / "silu_and_mul.c").write_text(REFERENCE)
    (asked.folder / "silu_and_mul.cu").write_text(OURS)
    producer = {"flashinfer-python": version, "arch": asked.arch}
    pack = {"hone_pack": 1, "name": "flashinfer",
            "algorithms": [{"signature": f"silu_and_mul(x: T[rows, 2, wide]) -> y: T[rows, wide] {FLOATS}", "reference": "plain"}],
            "kernels": kernels(asked.folder, producer)}
    packing.finish(TOOL, asked.folder, pack, overwrite=asked.overwrite)


if __name__ == "__main__":
    main()
