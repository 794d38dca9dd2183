"""Kernels of the CuTe DSL as packs that hone runs without Python (docs/cute.md). No GPU is needed.

    python -m hone.cute DIR FILE.py... [--arch 90a] [--configs N]
    python -m hone.cute --libraries      prints the paths of the libraries that exports call

DIR gets pack.json and a file for each config: a shared library with an export for tvm-ffi, or a cubin, as the kernel's "form" says.
FILE.py has a list KERNELS. --configs compiles the first N configs of each kernel alone. Needs the DSL, `pip install
'nvidia-cutlass-dsl[cu13]==4.8.1' apache-tvm-ffi`; HONE_CUTE_DSL_PATH adds a folder to look for them in. Exports are linked by HONE_CC,
or cc. The license of the DSL is NVIDIA's: what it makes is for your own machines. Leaves with 0 when the pack is whole, 1 when a kernel
does not compile, nothing was compiled or hone refuses the pack, 2 on wrong use.

`@hone.kernel(..., platform="cute")` does the same for a function of a program.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Mapping
from typing import Any

# Imported from this folder, because compiling does not need the package's library.
_spec = importlib.util.spec_from_file_location("hone_packing", pathlib.Path(__file__).with_name("_packing.py"))
packing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packing)

TOOL = "hone.cute"
PACKED = ("algorithm", "name", "signature", "priority", "align", "arguments", "grid", "block", "cluster", "shared", "condition")
RUNTIME = ("libcute_dsl_runtime.so", "libtvm_ffi.so")


def fail(status, text):
    packing.fail(TOOL, status, text)


def find_dsl() -> tuple[Any, list[str]]:
    """The DSL, and the libraries that its exports call."""
    if os.environ.get("HONE_CUTE_DSL_PATH") and os.environ["HONE_CUTE_DSL_PATH"] not in sys.path:
        sys.path.insert(0, os.environ["HONE_CUTE_DSL_PATH"])
    try:
        import nvidia_cutlass_dsl

        inside = str(pathlib.Path(nvidia_cutlass_dsl.__path__[0]) / "dsl_packages")
        if inside not in sys.path:
            sys.path.append(inside)
        import cutlass.cute
        import tvm_ffi
    except ImportError as error:
        raise ImportError(f"the CuTe DSL is not here ({error}): pip install 'nvidia-cutlass-dsl[cu13]==4.8.1' apache-tvm-ffi, or name "
                          "their folder in HONE_CUTE_DSL_PATH") from error
    roots = [pathlib.Path(nvidia_cutlass_dsl.__path__[0]), pathlib.Path(tvm_ffi.__file__).parent]
    return cutlass, [find_library(roots, name) for name in RUNTIME]


def find_library(roots, name):
    """The one of the latest CUDA; stubs are for other machines."""
    found = sorted(str(path) for root in roots for path in root.rglob(name) if "stubs" not in path.parts)
    if not found:
        raise ImportError(f"{name} is not in the packages of the CuTe DSL")
    return found[-1]


def compile_one(cutlass, function, examples, arch, folder, *options):
    words = " ".join([f"--gpu-arch sm_{arch}", f"--dump-dir {folder}", *options])
    return cutlass.cute.compile(function, *examples, options=words)


def link(objects, libraries, out):
    compiler = shlex.split(os.environ.get("HONE_CC") or "cc")
    done = subprocess.run([*compiler, "-shared", "-Wl,-z,defs", "-o", out, *objects, *libraries], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{compiler[0]}: {done.stderr.strip().splitlines()[0]}")


def export(dsl, function, examples, arch, out):
    """A function as a library, and what pack.json says of it."""
    cutlass, libraries = dsl
    entry = re.sub(r"\W", "_", out.name)
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_one(cutlass, function, examples, arch, folder, "--enable-tvm-ffi")
        made = str(pathlib.Path(folder) / "export.o")
        compiled.export_to_c(made, function_name=entry)
        link([made], libraries, out.with_name(out.name + ".so"))
    return {"file": out.name + ".so", "entry": entry}


def sections(cubin):
    """Names and bytes of an ELF file's sections."""
    start, = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    heads = [struct.unpack_from("<IIQQQQ", cubin, start + i * size) for i in range(count)]
    for name, _, _, _, offset, length in heads:
        at = heads[names][4] + name
        yield cubin[at:cubin.index(b"\0", at)].decode(), cubin[offset:offset + length]


def parameters_of(cubin):
    """The only function of a cubin, and the bytes of each of its parameters."""
    found = [(name[len(".nv.info."):], info) for name, info in sections(cubin) if name.startswith(".nv.info.")]
    if len(found) != 1:
        raise RuntimeError(f"its cubin has {len(found)} functions, expected one")
    name, info = found[0]
    sizes, at = {}, 0
    while at + 4 <= len(info):
        form, attribute, length = struct.unpack_from("<BBH", info, at)
        if (form, attribute) == (4, 0x17):
            index, flags = struct.unpack_from("<xxxxHxxI", info, at + 4)
            sizes[index] = flags >> 18
        at += 4 + (length if form == 4 else 0)
    return name, [sizes[index] for index in sorted(sizes)]


def binary(dsl, function, examples, arch, out):
    """A function's only kernel as a cubin, and what pack.json says of it."""
    with tempfile.TemporaryDirectory() as folder:
        compiled = compile_one(dsl[0], function, examples, arch, folder, "--keep-cubin").__cubin__
        cubin = pathlib.Path(compiled).read_bytes() if isinstance(compiled, str) else bytes(compiled)
    entry, sizes = parameters_of(cubin)
    out.with_name(out.name + ".cubin").write_bytes(cubin)
    return {"file": out.name + ".cubin", "entry": entry, "facts": {"parameters": sizes}}


def pack_variant(dsl, kernel, config, arch, folder):
    out = folder / "-".join([kernel["name"]] + [str(value) for value in config.values()])
    made = (export if kernel["form"] == "export" else binary)(dsl, kernel["function"](config), kernel["examples"](), arch, out)
    condition = kernel["when"](config) if kernel.get("when") else ""
    digest = hashlib.sha256((folder / made["file"]).read_bytes()).hexdigest()
    return {"config": config, **made, "sha256": digest, **({"condition": condition} if condition else {})}


def pack_kernel(dsl, kernel, folder, asked):
    packed = {name: kernel[name] for name in PACKED if name in kernel}
    packed.update({"platform": "cute", "backend": "gpu", "target": f"sm_{asked.arch}",
                   "producer": {"tool": TOOL, "cute_dsl": dsl[0].__version__}})
    if kernel["form"] == "export":
        packed["facts"] = {"stream": kernel.get("stream", "argument")}
    packed["variants"] = [pack_variant(dsl, kernel, config, asked.arch, folder) for config in kernel["configs"][:asked.configs]]
    return packed


# A function of a program ----------------------------------------------------------------------------------------------

NUMBERS = {"Int8": "i8", "Int16": "i16", "Int32": "i32", "Int64": "i64", "Uint8": "u8", "Uint16": "u16", "Uint32": "u32", "Uint64": "u64",
           "Float32": "f32", "Float64": "f64"}
ELEMENTS = {"f16": "Float16", "bf16": "BFloat16", "f32": "Float32", "f64": "Float64", "i8": "Int8", "i16": "Int16", "i32": "Int32", "i64": "Int64",
            "u8": "Uint8", "u16": "Uint16", "u32": "Uint32", "u64": "Uint64", "f8_e4m3fn": "Float8E4M3FN", "f8_e5m2": "Float8E5M2"}


@dataclasses.dataclass(frozen=True)
class Role:
    """What a parameter of the function is: an array or a number that is passed, a value that is compiled in, or the stream."""

    parameter: str
    kind: str  # "tensor", "number", "constant" or "stream"
    meant: str = ""  # the signature's or the space's name, or an expression
    number: str = ""  # hone's type of a number


def _annotated(function: Any) -> list[tuple[inspect.Parameter, str]]:
    """The parameters of a function and the names of their types."""
    import typing

    plain = inspect.unwrap(function)
    try:
        hints = typing.get_type_hints(plain)
    except Exception:  # names that the module does not have
        hints = dict(getattr(plain, "__annotations__", {}))
    found = []
    for one in inspect.signature(plain).parameters.values():
        hint = hints.get(one.name)
        text = hint if isinstance(hint, str) else getattr(hint, "__name__", None) or str(hint or "")
        found.append((one, re.split(r"[\[(]", text)[0].rpartition(".")[2]))
    return found


def roles_of(function: Any, parameters: list[Mapping[str, Any]], space: list[str], given: Mapping[str, str]) -> list[Role]:
    """What each parameter of a function of ``cute.jit`` is.

    Args:
        parameters: of the algorithm's signature.
        space: names of what can be tuned.
        given: what the author says of some: an array's name, or an expression of dims and scalars.
    """
    from hone.triton import UnfitError

    tensors = {one["name"]: one for one in parameters if one["kind"] == "tensor"}
    names = {*(one["name"] for one in parameters), "size", "ndim", "shape", "min", "max", "ceildiv", "abs",
             *(word for one in tensors.values() for word in re.findall(r"[A-Za-z_]\w*", one["type"].partition("[")[2]))}
    roles = []
    for one, kind in _annotated(function):
        name, meant = one.name, given.get(one.name, one.name)
        if one.kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            raise UnfitError(f"{name} is not a parameter by position: an export has none by keyword and no lists")
        if kind == "Constexpr" or name in space:
            roles.append(Role(name, "constant", meant))
        elif kind == "CUstream":
            roles.append(Role(name, "stream"))
        elif kind == "Tensor":
            if meant not in tensors:
                raise UnfitError(f"{name} is a tensor, and the signature has no array {meant!r} ({', '.join(tensors)}): say which, "
                                 f"arguments={{{name!r}: {next(iter(tensors))!r}}}")
            roles.append(Role(name, "tensor", meant))
        elif kind in NUMBERS:
            unknown = [word for word in re.findall(r"[A-Za-z_]\w*", meant) if word not in names]
            if unknown:
                raise UnfitError(f"what {name} is cannot be told from the signature: say it, arguments={{{name!r}: ...}}, with an expression of its "
                                 f"dims and scalars; {unknown[0]} is not one of them")
            roles.append(Role(name, "number", meant, NUMBERS[kind]))
        else:
            raise UnfitError(f"{name} is {'not annotated' if not kind else f'of type {kind}'}, which hone does not pass to an export: expected cute.Tensor, "
                             f"cutlass.Constexpr, a number ({', '.join(NUMBERS)}), or the stream, CUstream")
    _check_roles(roles, tensors, space)
    return roles


def _check_roles(roles: list[Role], tensors: Mapping[str, Any], space: list[str]) -> None:
    from hone.triton import UnfitError

    passed = [one for one in roles if one.kind != "constant"]
    if [one.kind for one in passed].count("stream") != 1 or passed[-1].kind != "stream":
        raise UnfitError("the last parameter beside those that are compiled in must be the stream to launch on: stream: CUstream (of cuda.bindings.driver), "
                         "kernel(...).launch(..., stream=stream)")
    taken = {one.meant for one in roles if one.kind == "tensor"}
    missing = [name for name, one in tensors.items() if one["is_result"] and name not in taken]
    if missing:
        raise UnfitError(f"no parameter of the function is the result {missing[0]}, which it is to write: name one so, or say which, "
                         f"arguments={{NAME: {missing[0]!r}}}")
    constants = {one.parameter for one in roles if one.kind == "constant"}
    foreign = [name for name in space if name not in constants]
    if foreign:
        raise UnfitError(f"the space has {foreign[0]}, and the function has no parameter of that name: {foreign[0]}: cutlass.Constexpr")


def _known(parameters: list[Mapping[str, Any]], tensors: Mapping[str, tuple[str, tuple[int, ...]]], scalars: Mapping[str, Any]) -> dict[str, Any]:
    """Scalars of a call and the dims that have a name, whose values can be compiled in."""
    from hone import _batching

    known = dict(scalars)
    for one in parameters:
        if one["kind"] != "tensor" or one["name"] not in tensors or " if " in one["type"]:
            continue
        dims, shape = _batching.dims_of(one["type"]), tensors[one["name"]][1]
        if "..." in dims:
            shape = shape[:dims.index("...")] + (None,) + shape[len(shape) - (len(dims) - dims.index("...") - 1):]  # type: ignore[operator]
        known.update({dim: size for dim, size in zip(dims, shape) if dim.isidentifier()})
    return known


@dataclasses.dataclass
class Function:
    """A function that a program registered: exported for the dtypes, ranks and compiled-in values of a call, and kept under the digest of
    its source, the compiler and the target."""

    algorithm: str
    name: str
    signature: str
    function: Any
    roles: list[Role]
    configs: list[dict[str, Any]]
    constraints: list[str]
    condition: str
    divisible: dict[str, int]
    priority: int
    digest: str = ""
    watched: tuple[Any, ...] = dataclasses.field(default=(), repr=False)
    platform: str = "cute"
    backend: str = "gpu"

    def prefix(self) -> str:
        """Of the folders of its packs: the digest of all that goes in beside a call."""
        import tvm_ffi

        key = [self.digest, self.algorithm, self.name, self.signature, [dataclasses.astuple(one) for one in self.roles], self.configs, self.constraints,
               self.condition, self.divisible, self.priority, find_dsl()[0].__version__, tvm_ffi.__version__]
        return f"cute-{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:24]}-"

    def _fixed(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """Values of a call that are compiled in; those of the space and defaults are none."""
        from hone.triton import UnfitError

        defaults = {one.name for one, _ in _annotated(self.function) if one.default is not inspect.Parameter.empty}
        found = {}
        for one in self.roles:
            if one.kind != "constant" or one.parameter in self.configs[0]:
                continue
            if one.meant in known:
                found[one.parameter] = known[one.meant]
            elif one.parameter not in defaults:
                raise UnfitError(f"{one.parameter} is compiled in, and is neither in the space nor a dim or scalar of the signature: "
                                 f"space=\"{one.parameter}: 64 | 128\"")
        return found

    def _examples(self, cutlass: Any, tensors: Mapping[str, tuple[str, tuple[int, ...]]], dims: Mapping[str, list[str]],
                  constants: Mapping[str, Any]) -> list[Any]:
        """What the DSL compiles the function for: any sizes, rows one after the other."""
        from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

        from hone._exports import _DTYPES

        cute = cutlass.cute
        made: list[Any] = []
        for one, kind in _annotated(self.function):
            role = next(role for role in self.roles if role.parameter == one.name)
            if role.kind == "tensor":
                dtype, shape = tensors[role.meant]
                names = dims[role.meant]
                sizes = tuple(cute.sym_int(divisibility=self.divisible.get(names[axis - len(shape)] if axis - len(shape) >= -len(names) else "", 1))
                              for axis in range(len(shape)))
                made.append(make_fake_compact_tensor(getattr(cutlass, ELEMENTS[_DTYPES[dtype]]), sizes, stride_order=tuple(reversed(range(len(sizes)))),
                                                     assumed_align=16))
            elif role.kind == "number":
                made.append(getattr(cutlass, kind)(0))
            elif role.kind == "stream":
                made.append(make_fake_stream())
            else:
                made.append(constants.get(one.name, one.default))
        return made

    def compile_for(self, call: Any) -> pathlib.Path | None:
        """The pack for a call, on the GPU that it is for; None: it is for no GPU of NVIDIA's, or without an array that is passed."""
        from hone import _batching, errors, kernels
        from hone._exports import _conditions, _describe, _DTYPES
        from hone.triton import _narrowed, arch_of, variables_of

        arch = arch_of(call)
        parameters = call.operation.parameters
        tensors, scalars = _describe(call)
        passed = [one.meant for one in self.roles if one.kind == "tensor"]
        if arch is None or any(name not in tensors for name in passed):
            return None
        for one in self.watched:
            if one.has_changed():
                raise errors.InvalidArgumentError(one.words(f"{self.algorithm}: {self.name}"))
        rows = {one["name"]: one for one in parameters if one["kind"] == "tensor"}
        fixed = self._fixed(_known(parameters, tensors, scalars))
        chosen = {}
        for name, (dtype, _) in tensors.items():
            variable = re.match(r"\w+", rows[name]["type"])
            if variable is not None and variable[0] in variables_of(self.signature):
                chosen[variable[0]] = _DTYPES[dtype]
        ranks = {name: len(tensors[name][1]) for name in passed if "..." in rows[name]["type"]}
        target = f"sm_{arch}" + ("a" if arch >= 90 else "")
        words = [*chosen.values(), *(f"{rank}d" for rank in dict.fromkeys(ranks.values())), *(f"{name}{value}" for name, value in fixed.items())]
        name = re.sub(r"[^A-Za-z0-9_]", "_", "_".join([self.name, *words]))
        meant = {role.meant: fixed[role.parameter] for role in self.roles if role.parameter in fixed}
        conditions = [*([self.condition] if self.condition else []), *(f"{one}.ndim == {rank}" for one, rank in ranks.items()),
                      *_conditions({}, meant, []), *(f"({dim}) % {by} == 0" for dim, by in self.divisible.items())]
        dims = {one: _batching.dims_of(row["type"]) if " if " not in row["type"] else [] for one, row in rows.items()}

        def make(folder: pathlib.Path) -> list[dict[str, Any]]:
            dsl = find_dsl()
            variants = []
            for index, config in enumerate(self.configs):
                out = folder / (f"{name}-{index}" if config else name)
                made = export(dsl, self.function, self._examples(dsl[0], tensors, dims, {**fixed, **config}), target.removeprefix("sm_"), out)
                digest = hashlib.sha256((folder / made["file"]).read_bytes()).hexdigest()
                constraints = " and ".join(f"({one})" for one in self.constraints)
                variants.append({**({"config": config} if config else {}), **made, "sha256": digest, **({"condition": constraints} if constraints and config else {})})
            row = {"algorithm": self.algorithm, "name": name, "platform": "cute", "backend": "gpu", "signature": _narrowed(self.signature, chosen),
                   "priority": self.priority, "align": 16, "target": target,
                   "arguments": [one.meant if one.kind == "tensor" else f"{one.number}({one.meant})" for one in self.roles if one.kind in ("tensor", "number")],
                   "facts": {"stream": "argument"}, "producer": {"cute_dsl": dsl[0].__version__}}
            if conditions:
                row["condition"] = " and ".join(f"({one})" for one in conditions)
            return [row | (variants[0] if self.configs == [{}] else {"variants": variants})]

        key = hashlib.sha256(json.dumps([arch, name, conditions]).encode()).hexdigest()[:16]
        return kernels.compiled_once(kernels.cache_folder() / f"{self.prefix()}{key}", self.name, TOOL, make)


_sources_of: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()


def register(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """What ``@hone.kernel(..., platform="cute")`` does: looks at the function, and takes up what was compiled of it before."""
    from hone import _sources, errors, kernels
    from hone.triton import UnfitError, expand

    kernels.check_options("cute", options, ("space", "condition", "arguments", "divisible", "priority", "backend", "arrays"))
    signature, parameters = kernels.parameters_of(algorithm)
    find_dsl()
    try:
        kind = getattr(function, "_decorator_kind", None)
        if kind is None or not callable(function):
            raise UnfitError("it is no function of cute.jit: decorate the function that launches the kernel with @cute.jit, below hone's")
        if "jit" not in str(kind):
            raise UnfitError("it is a function of cute.kernel: decorate the function of cute.jit that launches it")
        configs, constraints = expand(options["space"]) if options.get("space") else ([{}], [])
        roles = roles_of(function, parameters, [*configs[0]], options.get("arguments") or {})
        condition = options.get("condition") or ""
        if set(re.findall(r"[A-Za-z_]\w*", condition)) & set(configs[0]):
            constraints, condition = [*constraints, condition], ""
        made = Function(algorithm, name, signature, function, roles, configs, constraints, condition, dict(options.get("divisible") or {}),
                        options.get("priority", 55))
        made._fixed(dict.fromkeys(re.findall(r"[A-Za-z_]\w*", signature), 0))  # report now what no call can determine
        if function not in _sources_of:  # the DSL rewrites a function when it compiles it
            _sources_of[function] = _sources.source_of(function, caller)
        made.digest, made.watched = _sources_of[function].digest, _sources_of[function].watched
    except UnfitError as error:
        raise errors.InvalidArgumentError(f"{name}: {error}") from error
    kernels.add_lazy(made)
    kernels.take_up(made)


def main(arguments: list[str] | None = None, own: tuple[pathlib.Path, ...] = ()) -> None:
    """The command.

    Args:
        own: files that are compiled where none is named.
    """
    parser = argparse.ArgumentParser(prog=None if own else "python -m hone.cute", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("files", type=pathlib.Path, nargs="*")
    parser.add_argument("--arch", default="90a")
    parser.add_argument("--configs", type=int)
    parser.add_argument("--libraries", action="store_true")
    asked = parser.parse_args(arguments)
    if not asked.libraries and (asked.folder is None or not (asked.files or own)):
        parser.error("DIR is missing" if asked.folder is None else "FILE.py is missing")
    os.environ["CUTE_DSL_ARCH"] = f"sm_{asked.arch}"
    try:
        dsl = find_dsl()
    except ImportError as error:
        fail(2, str(error))
    if asked.libraries:
        print(*dsl[1], sep="\n")
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    kernels = []
    for path in asked.files or own:
        for kernel in packing.module_of(TOOL, path).KERNELS:
            try:
                kernels.append(pack_kernel(dsl, kernel, asked.folder, asked))
            except Exception as error:  # the DSL has no common base class for errors of a kernel
                fail(1, f"{path}: {kernel['name']}: {type(error).__name__}: {error}")
    packing.finish(TOOL, asked.folder, {"hone_pack": 1, "name": asked.folder.resolve().name, "kernels": kernels})


if __name__ == "__main__":
    main()
