"""Kernels of Triton as packs that hone runs without Python (docs/triton.md). No GPU is needed.

    python -m hone.triton DIR FILE.py... [--arch 90]... [--configs N] [--overwrite]

DIR gets pack.json and a cubin for each config. FILE.py has a list KERNELS. --arch is a compute capability, 90 for 9.0, and may be
given several times; --configs compiles the first N configs of each kernel alone. What was edited in pack.json since it was written stays,
unless --overwrite is given. Needs Triton, `pip install triton==3.9.0`; HONE_TRITON_PATH adds a folder to look for it in. Leaves with 0
when the pack is whole, 1 when a kernel does not compile, nothing was compiled, or hone refuses the pack (HONE_COMMAND, or the command of
the path), 2 on wrong use.

`pack` and `@hone.kernel(..., platform="triton")` do the same for a function of a program.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import itertools
import json
import math
import operator
import os
import pathlib
import re
import shutil
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

# Imported from this folder, because compiling does not need the package's library.
_spec = importlib.util.spec_from_file_location("hone_packing", pathlib.Path(__file__).with_name("_packing.py"))
packing = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(packing)

TOOL = "hone.triton"
OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")
REQUIRED = ("function", "algorithm", "name", "signature", "arguments", "grid", "configs")
FIELDS = (*REQUIRED, "constants", "divisible", "condition", "when", "priority")
DESCRIPTOR = "tensordesc"  # Triton's type of a descriptor that the host makes: tensordesc<fp16[128, 64]>

# Gives smaller binaries without paths, and avoids defaults that change between versions of Triton.
os.environ.setdefault("TRITON_DISABLE_LINE_INFO", "1")
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")


def fail(status: int, text: str) -> NoReturn:
    packing.fail(TOOL, status, text)


def find_triton():
    if os.environ.get("HONE_TRITON_PATH") and os.environ["HONE_TRITON_PATH"] not in sys.path:
        sys.path.insert(0, os.environ["HONE_TRITON_PATH"])
    try:
        import triton
    except ImportError as error:
        raise ImportError(f"Triton is not here ({error}): pip install triton==3.9.0, or name its folder in HONE_TRITON_PATH") from error
    return triton


def kernels_of(path):
    module = packing.module_of(TOOL, path)
    for kernel in module.KERNELS:
        check_fields(path, kernel)
    return module.KERNELS, getattr(module, "ALGORITHMS", [])


def check_fields(path, kernel):
    """A kernel with a file is no Triton's: its fields are those of pack.json, and hone's to check."""
    if "file" in kernel:
        return
    where = f"{path}: {kernel.get('name', 'a kernel without a name')}"
    for name in REQUIRED:
        if name not in kernel:
            fail(2, f"{where} has no field '{name}'")
    for name in kernel:
        if name not in FIELDS:
            fail(2, f"{where}: '{name}' is no field, expected one of {', '.join(FIELDS)}")
    for config in kernel["configs"]:
        for name, value in config.items():
            if not isinstance(value, (bool, int, float, str)):
                fail(2, f"{where}: {name} is {value!r} in a config, expected a number, a text, True or False")


def metadata_of(compiled):
    """What Triton has written beside the cubin, without the paths of this machine."""
    fields = compiled.metadata._asdict()
    fields.pop("extern_libs", None)
    return json.loads(json.dumps(fields, default=lambda value: getattr(value, "__dict__", str(value))))


def split_config(kernel, config):
    """As Triton does: what the function has a parameter for is its constexpr, also where an option has the same name."""
    own = kernel["function"].arg_names
    options = {name: value for name, value in config.items() if name in OPTIONS and name not in own}
    return {name: value for name, value in config.items() if name not in options}, options


def defaults_of(function):
    """Constexprs that need not be given."""
    return {name: parameter.default for name, parameter in function.signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty}


def whole_config(kernel, config, metadata):
    """Each variant of a pack has all parameters: where a config leaves one out that another has, Triton's own choice."""
    names = dict.fromkeys(name for each in kernel["configs"] for name in each)
    known = {**defaults_of(kernel["function"]), **kernel.get("constants", {})}
    known.update({name: metadata.get(name) or 0 for name in OPTIONS if name not in kernel["function"].arg_names})
    for name in names:
        if name not in config and name not in known:
            raise ValueError(f"the config {config} has no {name}, which another has")
    return {name: config.get(name, known.get(name)) for name in names}


def compile_variant(triton, kernel, arch, config):
    """One config to a cubin and its metadata."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    options = split_config(kernel, config)[1]
    if options.get("maxnreg") == 0:
        del options["maxnreg"]  # no limit
    constants = constants_of(kernel, config)
    names = list(kernel["arguments"])
    attributes = {(kernel["function"].arg_names.index(name),): [["tt.divisibility", 16]] for name in kernel.get("divisible", [])}
    signature = {name: kernel["arguments"][name][0] for name in names}
    signature.update({name: re.sub(r"[\[>].*", f"{block_of(kernel, name, config)}>", signature[name]) for name in described(kernel)})
    signature.update({name: "constexpr" for name in constants})
    ordered = {name: signature[name] for name in kernel["function"].arg_names}
    source = ASTSource(fn=kernel["function"], signature=ordered, constexprs=constants, attrs=attributes)
    compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    return compiled.asm["cubin"], metadata_of(compiled)


def constants_of(kernel, config):
    """All constexprs of a config, those that the function itself has a default for among them."""
    constants = {**defaults_of(kernel["function"]), **kernel.get("constants", {}), **split_config(kernel, config)[0]}
    constants = {name: value for name, value in constants.items() if name not in kernel["arguments"]}
    for name in kernel["function"].arg_names:
        if name not in kernel["arguments"] and name not in constants:
            raise ValueError(f"the function's {name} is neither among its arguments, nor a constexpr of the config or the constants")
    for name in (*kernel["arguments"], *constants):
        if name not in kernel["function"].arg_names:
            raise ValueError(f"{name} is no argument of the function, and no option of Triton's ({', '.join(OPTIONS)})")
    return constants


def described(kernel):
    """The arguments that are tensor descriptors, which the host makes."""
    return [name for name, (kind, _) in kernel["arguments"].items() if kind.startswith(DESCRIPTOR)]


def number_of(text, values):
    """A whole number of a block: what is written, a parameter of the config, + - * // of such."""
    operations = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv}

    def of(node):
        if isinstance(node, ast.BinOp) and type(node.op) in operations:
            return operations[type(node.op)](of(node.left), of(node.right))
        value = node.value if isinstance(node, ast.Constant) else values.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(value, int):
            return int(value)
        raise UnfitError(f"block {text.strip()!r}: expected a whole number, a parameter of the config ({', '.join(values)}), or + - * // of such")

    try:
        return of(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ZeroDivisionError) as error:
        raise UnfitError(f"block {text.strip()!r}: {error}") from error


def block_of(kernel, name, config):
    """The block of a descriptor: what was found for each config, else of its type, tensordesc<fp16[BLOCK_M, BLOCK_K]>."""
    found = kernel.get("blocks", {}).get(name)
    if found is not None:
        return list(found[kernel["configs"].index(config)])
    kind = kernel["arguments"][name][0]
    inside = re.fullmatch(rf"{DESCRIPTOR}<\w+\[(.+)\]>", kind)
    if inside is None:
        raise UnfitError(f"{name} is {kind}: expected {DESCRIPTOR}<TYPE[BLOCK, ...]>, with a number or a parameter of the config for each dim")
    return [number_of(one, constants_of(kernel, config)) for one in inside[1].split(",")]


def descriptor_texts(kernel, name, config, meta):
    """What stands for a descriptor in the binary's list: a tensor map, or before sm_90 the pointer, sizes and strides that it is made of; then
    sizes and strides. The tensor is row-major, and where it has more dims than the block its first ones count as one.

    Args:
        meta: what Triton says of the descriptor; None: it has taken it apart.
    """
    tensor, rank = kernel["arguments"][name][1], len(block_of(kernel, name, config))
    declared = re.search(rf"\b{tensor}\s*:\s*\w+\[(.*?)\]", kernel["signature"])
    dims = [one.strip() for one in declared[1].split(",")] if declared else []
    inner = dims[len(dims) - rank + 1:] if len(dims) >= rank else []
    if len(inner) != rank - 1 or "..." in inner:
        raise UnfitError(f"{name} has a block of {rank} dims, and {tensor} the dims [{', '.join(dims)}] in the signature")
    rest = " * ".join(inner)
    first = dims[0] if len(dims) == rank and dims[0] != "..." else f"{tensor}.size / max({rest}, 1)" if inner else f"{tensor}.size"
    sizes = [first, *inner]
    strides = [" * ".join(inner[axis:]) or "1" for axis in range(rank)]
    behind = [*(f"i32({one})" for one in sizes), *(f"i64({one})" for one in strides)]
    if meta is not None:
        swizzle = 16 << meta["swizzle"] if meta["swizzle"] else 0
        return [f"map({tensor}, {swizzle}, {', '.join(str(one) for one in meta['block_size'])})", *behind]
    apart = [f"i64({one})" for one in [*sizes, *strides]]
    return [tensor, *apart, "u8(0)", "u8(0)", *behind]  # padding by zeros, no rounding to tf32


def arguments_of(kernel, config=None, metadata=None):
    """The list as hone reads it: a tensor by its name, a number as its type and an expression; ":16" where Triton takes it for
    granted that 16 divides it. With descriptors it is each binary's own."""
    divisible = kernel.get("divisible", [])
    metas = list((metadata or {}).get("tensordesc_meta") or [])
    texts = []
    for name, (kind, text) in kernel["arguments"].items():
        if kind.startswith(DESCRIPTOR):
            texts += descriptor_texts(kernel, name, config, metas.pop(0) if metas else None)
            continue
        number = {"fp32": "f32", "fp64": "f64", "i1": "u8"}.get(kind, kind)
        if not kind.startswith("*") and number not in ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f32", "f64"):
            raise ValueError(f"argument {name} has the type {kind}, which hone does not pass")
        texts.append((text if kind.startswith("*") else f"{number}({text})") + (":16" if name in divisible else ""))
    return texts


def conditions_of(kernel, config=None):
    """What a call must fulfil: the author's words, and 16 dividing what it was promised to."""
    texts = [kernel["condition"]] if kernel.get("condition") else []
    for name in kernel.get("divisible", []):
        kind, text = kernel["arguments"][name]
        if not kind.startswith("*"):
            texts.append(f"({text}) % 16 == 0")
    when = kernel.get("when")
    if config is not None and when is not None and when(config):
        texts.append(when(config))
    return " and ".join(texts)


def pack_variant(triton, kernel, arch, config, folder):
    cubin, metadata = compile_variant(triton, kernel, arch, config)
    own = {"arguments": arguments_of(kernel, config, metadata)} if described(kernel) else {}
    config = whole_config(kernel, config, metadata)
    name = "-".join([kernel["name"], f"sm{arch}"] + [str(value) for value in config.values()]) + ".cubin"
    (folder / name).write_bytes(cubin)
    variant = {"config": config, "file": name, "sha256": hashlib.sha256(cubin).hexdigest(), "facts": metadata, **own}
    condition = conditions_of(kernel, config)
    return {**variant, "condition": condition} if condition else variant


def pack_file(kernel, beside, folder):
    """A kernel that is no Triton's, as the reference of an algorithm may be: a source that hone compiles."""
    source = beside / kernel["file"]
    if source.resolve() != (folder / source.name).resolve():
        shutil.copy(source, folder / source.name)
    return {**kernel, "file": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest()}


def unique(variants):
    """Configs that come to the same, now that each is whole: the first of them."""
    found = {}
    for variant in variants:
        found.setdefault(json.dumps(variant["config"], sort_keys=True), variant)
    return list(found.values())


def pack_kernel(triton, kernel, arch, several, folder, limit):
    configs = kernel["configs"][:limit]
    target = f"sm_{arch}" + ("a" if arch >= 90 else "")
    for config in configs:  # check all before the slow compilation of any
        constants_of(kernel, config)
    return {
        "algorithm": kernel["algorithm"],
        "name": kernel["name"] + (f"_sm{arch}" if several else ""),
        "platform": "triton",
        "backend": "gpu",
        "signature": kernel["signature"],
        "priority": kernel.get("priority", 55),
        "target": target,
        **({"align": 16} if described(kernel) or any(kernel["arguments"][name][0].startswith("*") for name in kernel.get("divisible", [])) else {}),
        **({} if described(kernel) else {"arguments": arguments_of(kernel)}),
        "grid": kernel["grid"],
        "producer": {"tool": TOOL, "triton": triton.__version__},
        "variants": unique([pack_variant(triton, kernel, arch, config, folder) for config in configs]),
    }


# A function of a program ------------------------------------------------------------------------------------------------

TYPES = {"bool": "i1", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64", "u8": "u8", "u16": "u16", "u32": "u32", "u64": "u64",
         "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8_e4m3fn": "fp8e4nv", "f8_e5m2": "fp8e5"}
MOST_CONFIGS = 512


class UnfitError(ValueError):
    """A function that cannot be packed, with what is to be done."""


@dataclasses.dataclass(frozen=True)
class Unwrapped:
    """What stands inside of Triton's decorators."""

    function: Any  # triton.jit's
    configs: list[Any]  # triton.Config objects of triton.autotune; empty without it
    heuristics: dict[str, Callable[..., Any]]


def unwrap(function: Any) -> Unwrapped:
    """The function of ``triton.jit`` inside of ``triton.autotune`` and ``triton.heuristics``."""
    configs: list[Any] = []
    heuristics: dict[str, Callable[..., Any]] = {}
    while not hasattr(function, "arg_names") or hasattr(function, "fn") and hasattr(function.fn, "arg_names"):
        inner = getattr(function, "fn", None)
        if inner is None:
            break
        if hasattr(function, "configs"):
            configs = list(function.configs)
        elif isinstance(getattr(function, "values", None), dict):
            heuristics.update(function.values)
        function = inner
    if not hasattr(function, "arg_names") or not hasattr(function, "params"):
        raise UnfitError(f"{getattr(function, '__name__', function)!s} is no function of triton.jit: decorate it with @triton.jit, below hone's")
    return Unwrapped(function, configs, heuristics)


def _config_of(config: Any) -> dict[str, Any]:
    if not hasattr(config, "kwargs"):
        return dict(config)
    found = {**config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
    if config.num_ctas != 1:
        found["num_ctas"] = config.num_ctas
    if getattr(config, "maxnreg", None):
        found["maxnreg"] = config.maxnreg
    return found


def _hooked_blocks(configs: list[Any], function: Any, values: Mapping[str, Any]) -> dict[str, list[list[int]]]:
    """The blocks that each config's ``pre_hook`` sets, by descriptor: all that one may do, since a binary has none.

    Args:
        values: constexprs that no config has, and numbers that the function is launched with.
    """
    hooks = [getattr(config, "pre_hook", None) for config in configs]
    found: dict[str, list[list[int]]] = {}
    if not any(hooks):
        return found
    from triton.tools.tensor_descriptor import TensorDescriptor

    class StandIn(TensorDescriptor):
        def __init__(self) -> None:
            pass

    for index, (config, hook) in enumerate(zip(configs, hooks)):
        if hook is None:
            raise UnfitError(f"the config {config} has no pre_hook, and another has: let each set the blocks of all descriptors")
        given = {one.name: StandIn() for one in function.params if not one.is_constexpr and one.name not in values}
        try:
            hook({**given, **values, **_config_of(config)})
        except Exception as error:  # the author's own function
            raise UnfitError(f"the config {config} has a pre_hook that does more than set the blocks of descriptors, which a binary does not do "
                             f"({type(error).__name__}: {error}): let the kernel itself do it") from error
        for name, one in given.items():
            if set(vars(one)) - {"block_shape"}:
                raise UnfitError(f"the config {config} has a pre_hook that sets {sorted(vars(one))[0]} of {name}: blocks alone can be set")
            if "block_shape" in vars(one):
                found.setdefault(name, []).append([int(size) for size in one.block_shape])
        if any(len(blocks) != index + 1 for blocks in found.values()):
            raise UnfitError("the configs have pre_hooks that set blocks of different descriptors: let each set all of them")
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip('"')


def _values_of(text: str) -> list[Any]:
    matched = re.fullmatch(r"(-?\d+)\s*\.\.\s*(-?\d+)\s*(?:([*+])\s*(\d+))?", text)
    if matched is None:
        return [_value(one.strip()) for one in text.split("|")]
    first, last, way, step = int(matched[1]), int(matched[2]), matched[3] or "+", int(matched[4] or 1)
    if step < 1 or way == "*" and (step < 2 or first < 1):
        raise UnfitError(f"the range {text} never ends")
    found = []
    while first <= last:
        found.append(first)
        first = first * step if way == "*" else first + step
    return found


def expand(space: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The configs of a space's text, and its constraints, which each binary has as its condition."""
    values: dict[str, list[Any]] = {}
    constraints = []
    for line in filter(None, (one.strip() for one in re.split(r"[;\n]", space))):
        if line.startswith("where "):
            constraints.append(line.removeprefix("where ").strip())
            continue
        name, found, text = line.partition(":")
        if not found:
            raise UnfitError(f"space: {line!r} is no parameter: write NAME: 64 | 128, NAME: 16..256 *2, or where ...")
        text, _, default = text.partition(" default ")
        listed = _values_of(text.strip())
        first = _value(default.strip()) if default else None
        values[name.strip()] = [*([first] if first in listed else []), *(one for one in listed if one != first)]
    configs = [dict(zip(values, one)) for one in itertools.islice(itertools.product(*values.values()), MOST_CONFIGS + 1)]
    if len(configs) > MOST_CONFIGS:
        raise UnfitError(f"the space has more than {MOST_CONFIGS} configs, and each is a binary: narrow it")
    return configs if values else [{}], constraints


# Parameters of a function -----------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    """``X_ptr``, ``x_pointer``, ``ptr_x``, ``x_p``, ``x_desc``, ``desc_x``: ``x``."""
    return re.sub(r"(_?(ptr|pointer|desc|descriptor)s?$)|(^(ptr|p|desc)_)|(_p$)", "", name.lower())


def _dims_of(parameter: Mapping[str, Any]) -> list[str]:
    inside = re.search(r"\[(.*?)\]", parameter["type"])
    return [one.strip() for one in inside[1].split(",") if one.strip()] if inside else []


def _tensor_named(name: str, tensors: list[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    plain = _plain(name)
    for wanted in (plain, plain.removesuffix("s"), {"output": "out", "out": "y", "input": "x", "o": "out"}.get(plain, plain)):
        found = [one for one in tensors if one["name"].lower() == wanted]
        if found:
            return found[0]
    results = [one for one in tensors if one["is_result"]]
    if plain in ("out", "output", "o", "dst", "y", "z") and len(results) == 1:
        return results[0]
    inputs = [one for one in tensors if not one["is_result"]]
    if plain in ("input", "inp", "in", "x", "src") and inputs:
        return inputs[0] if len(inputs) == 1 or plain != "x" else None
    found = [one for one in tensors if one["name"].lower().startswith(plain)] if len(plain) <= 2 else []
    return found[0] if len(found) == 1 else None


def _product(dims: list[str], tensor: str, above: int) -> str:
    """The stride of an axis of a row-major tensor."""
    rest = dims[above + 1:]
    return " * ".join(rest) if rest else "1"


def _stride_named(name: str, tensors: list[Mapping[str, Any]]) -> str | None:
    """``x_row_stride``, ``stride_x``, ``stride_am``: of a row-major tensor."""
    words = [word for word in name.lower().split("_") if word not in ("stride", "strides", "ptr")]
    text = "".join(words)
    for one in sorted(tensors, key=lambda row: -len(row["name"])):
        dims = _dims_of(one)
        for start in (one["name"].lower(), one["name"].lower()[:1], {"y": "out", "output": "out"}.get(one["name"], "?")):
            if not dims or not text.startswith(start):
                continue
            axis = text[len(start):]
            lower = [dim.lower() for dim in dims]
            if axis in ("", "row", "rows", "r") and len(dims) >= 2:
                return _product(dims, one["name"], len(dims) - 2)
            if axis in ("col", "cols", "c", "column"):
                return "1"
            if axis in lower:
                return _product(dims, one["name"], lower.index(axis))
    if not text or text in ("row", "rows"):
        dims = next((_dims_of(one) for one in tensors if len(_dims_of(one)) >= 2), None)
        return _product(dims, "", len(dims) - 2) if dims else None
    return None


def _number_named(name: str, parameters: list[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Triton's type and hone's expression of a number."""
    tensors = [one for one in parameters if one["kind"] == "tensor"]
    for one in parameters:
        if one["kind"] != "tensor" and one["name"].lower() == name.lower():
            return {"float": "fp32", "int": "i32", "bool": "i1"}.get(one["kind"], "i32"), one["name"]
    if "stride" in name.lower():
        stride = _stride_named(name, tensors)
        return None if stride is None else ("i32", stride)
    dims = list(dict.fromkeys(dim for one in tensors for dim in _dims_of(one) if dim.isidentifier()))
    plain = re.sub(r"^(n|num|nb|len|size)_|_(size|dim|len|length)$", "", name.lower())
    for wanted in (name, name.lower(), plain, plain.removesuffix("s")):
        found = [dim for dim in dims if wanted in (dim, dim.lower())]
        if len(found) == 1:
            return "i32", found[0]
    first = tensors[0] if tensors else None
    last = _dims_of(first)[-1] if first is not None and _dims_of(first) else None
    if plain in ("elements", "elems", "elem", "numel") or name in ("numel", "xnumel"):
        return ("i32", f"{first['name']}.size") if first is not None else None
    if plain in ("cols", "col", "columns", "column", "n", "hidden", "features") and last is not None and last.isidentifier():
        return "i32", last
    if plain in ("rows", "row", "m") and last is not None and last.isidentifier():
        return "i32", f"{first['name']}.size / max({last}, 1)"  # type: ignore[index]
    return None


def arguments_for(unwrapped: Unwrapped, parameters: list[Mapping[str, Any]], constexprs: set[str], dtypes: Mapping[str, str],
                  given: Mapping[str, Any], blocks: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Each argument of the function that is no constexpr: Triton's type, and what hone passes.

    Args:
        parameters: of the algorithm's signature.
        dtypes: of each tensor.
        given: what the author says of some of them: a tensor's name, an expression, a pair of type and expression, or
            ``descriptor(a, BLOCK_M, BLOCK_K)``.
        blocks: of those that are known to be descriptors.
    """
    tensors = [one for one in parameters if one["kind"] == "tensor"]
    names = {one["name"] for one in tensors}
    found: dict[str, tuple[str, str]] = {}
    unknown = []
    for parameter in unwrapped.function.params:
        name = parameter.name
        if parameter.is_constexpr or name in constexprs:
            continue
        said = given.get(name)
        made = re.fullmatch(r"descriptor\(\s*(\w+)\s*,(.+)\)", said) if isinstance(said, str) else None
        if isinstance(said, (tuple, list)):
            found[name] = (str(said[0]), str(said[1]))
        elif made is not None and made[1] in names:
            found[name] = (f"{DESCRIPTOR}<{TYPES[dtypes[made[1]]]}[{made[2].strip()}]>", made[1])
        elif said is not None and str(said) in names:
            found[name] = ("*" + TYPES[dtypes[str(said)]], str(said))
        elif said is not None:
            scalar = next((one for one in parameters if one["name"] == said), None)
            found[name] = ("fp32" if scalar is not None and scalar["kind"] == "float" else "i32", str(said))
        else:
            number = _number_named(name, parameters) if name not in blocks else None
            tensor = _tensor_named(name, tensors) if number is None else None
            if tensor is not None:
                dtype = TYPES[dtypes[tensor["name"]]]
                found[name] = (f"{DESCRIPTOR}<{dtype}>" if name in blocks else "*" + dtype, tensor["name"])
            elif number is not None:
                found[name] = number
            else:
                unknown.append(name)
    if unknown:
        raise UnfitError(
            f"what {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} cannot be told from the signature: say it, "
            f"arguments={{{unknown[0]!r}: ...}}, with a tensor's name or an expression of its dims")
    missing = [one["name"] for one in tensors if one["is_result"] and one["name"] not in {text for _, text in found.values()}]
    if missing:
        raise UnfitError(f"no argument of the function is the result {missing[0]}: say which, arguments={{NAME: {missing[0]!r}}}")
    return found


def _grid_for(unwrapped: Unwrapped, parameters: list[Mapping[str, Any]], configs: list[dict[str, Any]]) -> str:
    """One program a row, or a block, where the signature leaves no other."""
    first = next(one for one in parameters if one["kind"] == "tensor")
    dims = _dims_of(first)
    source = getattr(unwrapped.function, "src", "")
    axes = set(re.findall(r"program_id\(\s*(?:axis\s*=\s*)?(\d)", source))
    blocks = [name for name in (configs[0] if configs else {}) if "BLOCK" in name.upper() and name not in OPTIONS]
    if axes <= {"0"} and len(dims) == 2 and dims[0] == "..." and dims[1].isidentifier():
        return f"{first['name']}.size / max({dims[1]}, 1)"
    if axes <= {"0"} and len(dims) == 1 and dims[0].isidentifier() and len(blocks) == 1:
        return f"ceildiv({dims[0]}, {blocks[0]})"
    raise UnfitError("grid: how many programs are started cannot be told from the signature: say it, grid=\"ceildiv(n, BLOCK)\", or a list of up to three")


def variables_of(signature: str) -> dict[str, list[str]]:
    """The type variables of a signature, and what each may be."""
    return {name: [one.strip() for one in dtypes.split(",")]
            for name, dtypes in re.findall(r"where (\w+) in ((?:\w+)(?:\s*,\s*\w+)*)", signature)}


def _narrowed(signature: str, chosen: Mapping[str, str]) -> str:
    for name, dtype in chosen.items():
        signature = re.sub(rf"where {name} in \w+(\s*,\s*\w+)*", f"where {name} in {dtype}", signature)
    return signature


def _dtypes_of(parameters: list[Mapping[str, Any]], chosen: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for one in parameters:
        if one["kind"] == "tensor":
            base = re.match(r"\w+", one["type"])
            found[one["name"]] = chosen.get(base[0], base[0]) if base else ""
    return found


def entries_of(function: Any, algorithm: str, name: str, signature: str, parameters: list[Mapping[str, Any]],
               options: Mapping[str, Any]) -> Callable[[Mapping[str, str]], list[dict[str, Any]]]:
    """What makes entries of KERNELS of a function, for chosen dtypes. What can be wrong is said here.

    Args:
        options: ``space``, ``configs``, ``condition`` and a list of further ``conditions``, ``grid``, ``arguments``, ``constants``, ``divisible``, ``priority``; ``blocks``, of
            each descriptor one for each config, else those that the configs' ``pre_hook`` sets.
    """
    unwrapped = unwrap(function)
    constraints: list[str] = []
    raw: list[Any] = list(options.get("configs") or unwrapped.configs or [{}])
    if options.get("space"):
        raw, constraints = expand(options["space"])
    configs = [_config_of(one) for one in raw]
    if unwrapped.heuristics:
        names = ", ".join(unwrapped.heuristics)
        lacking = [one for one in unwrapped.heuristics if one not in (options.get("constants") or {}) and one not in configs[0]]
        if lacking:
            raise UnfitError(f"@triton.heuristics sets {names} from a call's arguments: say what {lacking[0]} may be, in space= or constants=")
    constexprs = {*(options.get("constants") or {}), *itertools.chain.from_iterable(configs)}
    own = set(unwrapped.function.arg_names)
    foreign = [one for one in constexprs if one not in own and one not in OPTIONS]
    if foreign:
        raise UnfitError(f"{foreign[0]} is no argument of the function, and no option of Triton's ({', '.join(OPTIONS)})")
    defaults = defaults_of(unwrapped.function)
    blocks = options.get("blocks") or _hooked_blocks(raw, unwrapped.function, {**defaults, **(options.get("constants") or {})})
    for parameter in unwrapped.function.params:
        if parameter.is_constexpr and parameter.name not in constexprs and parameter.name not in defaults:
            raise UnfitError(f"{parameter.name} is a constexpr without a value: say what it may be, space=\"{parameter.name}: 64 | 128\"")
    grid = options.get("grid") or _grid_for(unwrapped, parameters, configs)
    if callable(grid):
        raise UnfitError("grid is a function, which only Python can call: give an expression, \"ceildiv(n, BLOCK)\"")
    first = {variable: dtypes[0] for variable, dtypes in variables_of(signature).items()}
    trial = {"function": unwrapped.function, "signature": signature, "configs": configs, "constants": options.get("constants") or {}, "blocks": blocks,
             "arguments": arguments_for(unwrapped, parameters, constexprs, _dtypes_of(parameters, first), options.get("arguments") or {}, blocks)}
    for parameter, config in itertools.product(described(trial), configs):
        descriptor_texts(trial, parameter, config, None)
    words = [*constraints, *([options["condition"]] if options.get("condition") else []), *options.get("conditions", ())]
    reads = set(itertools.chain.from_iterable(configs))
    whole = [text for text in words if not set(re.findall(r"[A-Za-z_]\w*", text)) & reads]
    each = [text for text in words if text not in whole]

    def make(chosen: Mapping[str, str]) -> list[dict[str, Any]]:
        arguments = arguments_for(unwrapped, parameters, constexprs, _dtypes_of(parameters, chosen), options.get("arguments") or {}, blocks)
        suffix = "_".join(chosen.values())
        entry = {"function": unwrapped.function, "algorithm": algorithm, "name": f"{name}_{suffix}" if suffix else name,
                 "signature": _narrowed(signature, chosen), "arguments": arguments, "grid": grid, "configs": configs,
                 "constants": dict(options.get("constants") or {}), "priority": options.get("priority", 55)}
        if blocks:
            entry["blocks"] = blocks
        if whole:
            entry["condition"] = " and ".join(f"({text})" for text in whole)
        if each:
            text = " and ".join(f"({one})" for one in each)
            entry["when"] = lambda config: text
        pointers = [one for one, (kind, _) in arguments.items() if kind.startswith("*")]
        if options.get("divisible") is not None:
            return [{**entry, "divisible": list(options["divisible"])}]
        numbers = [one for one, (kind, text) in arguments.items() if kind in ("i32", "i64") and not text.isdigit()]
        if not numbers:
            return [{**entry, "divisible": pointers}]
        # Triton itself compiles another variant for numbers that 16 divides, because vector loads need it.
        even = " and ".join(f"({arguments[one][1]}) % 16 == 0" for one in numbers)
        rest = " and ".join(filter(None, (entry.get("condition"), f"not ({even})")))
        return [{**entry, "divisible": [*pointers, *numbers]},
                {**entry, "name": entry["name"] + "_any", "divisible": pointers, "condition": rest, "priority": entry["priority"] - 1}]

    return make


@dataclasses.dataclass
class Function:
    """A function that a program registered: compiled when a call or a pack needs it, and kept under the digest of all that goes in."""

    algorithm: str
    name: str
    signature: str
    make: Callable[[Mapping[str, str]], list[dict[str, Any]]]
    jit: Any
    priority: int = 55
    platform: str = "triton"
    backend: str = "gpu"

    def choices(self) -> list[dict[str, str]]:
        """All dtypes that its algorithm takes."""
        variables = variables_of(self.signature)
        return [dict(zip(variables, one)) for one in itertools.product(*variables.values())]

    def _key(self, chosen: Mapping[str, str], arch: int) -> str:
        triton = find_triton()
        entries = [{**{name: value for name, value in entry.items() if name not in ("function", "when")},
                    "when": entry["when"]({}) if "when" in entry else None} for entry in self.make(chosen)]
        text = json.dumps([self.jit.cache_key, triton.__version__, arch, entries], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def folder(self, chosen: Mapping[str, str], arch: int) -> pathlib.Path:
        from hone import kernels

        return kernels.cache_folder() / f"triton-{self._key(chosen, arch)}"

    def compile(self, chosen: Mapping[str, str], arch: int) -> pathlib.Path:
        """The pack of these dtypes, compiled where nobody has before."""
        from hone import kernels

        def make(folder: pathlib.Path) -> list[dict[str, Any]]:
            return [pack_kernel(find_triton(), entry, arch, False, folder, None) for entry in self.make(chosen)]

        return kernels.compiled_once(self.folder(chosen, arch), self.name, TOOL, make)

    def compile_for(self, call: Any) -> pathlib.Path | None:
        """The pack for a call, on the GPU that it is for; None: it is for no GPU of NVIDIA's."""
        arch = arch_of(call)
        if arch is None:
            return None
        chosen = _chosen(call, self.algorithm, self.signature)
        return None if chosen is None else self.compile(chosen, arch)


def _chosen(call: Any, algorithm: str, signature: str) -> dict[str, str] | None:
    """The dtypes of a call, by type variable; None: it does not tell all."""
    dtypes = re.findall(r"[(,]\s*(?:\w+=)?([a-z]+[0-9]+(?:_\w+)?)\[", call.text)
    _, parameters = _signature_of(algorithm)
    inputs = [one for one in parameters if one["kind"] == "tensor" and not one["is_result"]]
    chosen = {}
    for parameter, dtype in zip(inputs, dtypes):
        variable = re.match(r"\w+", parameter["type"])
        if variable is not None and variable[0] in variables_of(signature):
            chosen[variable[0]] = dtype
    return chosen if len(chosen) == len(variables_of(signature)) else None


# Functions under triton.heuristics --------------------------------------------------------------------------------------


class _Tensor:
    """What an expression of hone's says of a tensor."""

    def __init__(self, shape: tuple[int, ...]):
        self.shape, self.ndim, self.size = shape, len(shape), math.prod(shape)


_BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b, ast.Mod: lambda a, b: a % b, ast.FloorDiv: lambda a, b: a // b,
    ast.Div: lambda a, b: a // b if isinstance(a, int) and isinstance(b, int) else a / b}


_FUNCTIONS: dict[str, Callable[..., Any]] = {"ceildiv": lambda above, below: -(-above // below), "min": min, "max": max, "abs": abs}


def _evaluate(node: ast.AST, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Expression():
            return _evaluate(node.body, names)
        case ast.Constant(value=bool() | int() | float() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub()):
            return -_evaluate(node.operand, names)
        case ast.BinOp() if type(node.op) in _BINARY:
            return _BINARY[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
        case ast.Attribute(attr="size" | "ndim" | "shape" as attribute):
            return getattr(_evaluate(node.value, names), attribute)
        case ast.Subscript():
            return _evaluate(node.value, names)[_evaluate(node.slice, names)]
        case ast.Call(func=ast.Name(id="ceildiv" | "min" | "max" | "abs" as name)) if not node.keywords:
            return _FUNCTIONS[name](*(_evaluate(one, names) for one in node.args))
    raise UnfitError(f"the value of {ast.unparse(node)!r} in a call cannot be told")


class _Noted(dict[str, Any]):
    """Arguments of a launch, and which of them were read."""

    def __init__(self, values: Mapping[str, Any]):
        super().__init__(values)
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def items(self) -> Any:
        self.read.update(dict.keys(self))
        return super().items()

    def values(self) -> Any:
        self.read.update(dict.keys(self))
        return super().values()

    def __iter__(self) -> Any:  # its own, so that **arguments and dict(arguments) ask for keys()
        self.read.update(dict.keys(self))
        return super().__iter__()

    def keys(self) -> Any:
        self.read.update(dict.keys(self))
        return super().keys()

    def copy(self) -> Any:
        self.read.update(dict.keys(self))
        return dict(super().items())

    def pop(self, name: str, *default: Any) -> Any:
        self.read.add(name)
        return super().pop(name, *default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().setdefault(name, default)


def _no_address() -> int:
    raise UnfitError("a heuristic reads an address, and a call has none before it runs: give what it sets a value in space= or constants=")


def _stand_in(dtype: str, shape: tuple[int, ...]) -> Any:
    try:
        import torch
    except ImportError:
        return types.SimpleNamespace(dtype=dtype, shape=shape, ndim=len(shape), data_ptr=_no_address)
    made = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
    made.data_ptr = _no_address  # type: ignore[method-assign]
    return made


def _code_of(code: types.CodeType) -> list[Any]:
    """What a function does, alike in every process: the repr of a function within it has an address."""
    return [code.co_code.hex(), [_code_of(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts], list(code.co_names)]


@dataclasses.dataclass
class HeuristicFunction:
    """A function whose ``triton.heuristics`` set constexprs of a call's arguments: compiled for each call, for what they read of it."""

    algorithm: str
    name: str
    signature: str
    function: Any
    options: dict[str, Any]
    configs: list[dict[str, Any]]
    heuristics: dict[str, Callable[..., Any]]  # heuristics without values from the author
    constraints: list[str]
    priority: int = 55
    platform: str = "triton"
    backend: str = "gpu"

    def check(self) -> None:
        """What can be wrong is said when it is registered, with values in the place of the heuristics'."""
        self._entries([{**config, **dict.fromkeys(self.heuristics, 16)} for config in self.configs], [], self.name)

    def _entries(self, configs: list[dict[str, Any]], conditions: list[str], name: str) -> Callable[[Mapping[str, str]], list[dict[str, Any]]]:
        options = {**self.options, "space": None, "configs": configs, "conditions": [*self.constraints, *conditions]}
        return entries_of(self.function, self.algorithm, name, self.signature, [*_signature_of(self.algorithm)[1]], options)

    def prefix(self, arch: int) -> str:
        """Of the folders of its packs: the digest of all that goes in beside a call."""
        codes = [[name, _code_of(one.__code__) if hasattr(one, "__code__") else repr(one)] for name, one in self.heuristics.items()]
        told = {name: repr(value) for name, value in sorted(self.options.items()) if value is not None}
        text = json.dumps([unwrap(self.function).function.cache_key, find_triton().__version__, self.algorithm, self.name, self.signature, told, codes])
        return f"triton-heuristics-{hashlib.sha256(text.encode()).hexdigest()[:24]}-sm{arch}-"

    def _values(self, call: Any, chosen: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, list[str]]]:
        """What a launch of the call has for each argument, and the conditions under which that is so."""
        from hone._exports import _describe
        from hone.cute import _known

        parameters = call.operation.parameters
        tensors, scalars = _describe(call)
        names = {**_known(parameters, tensors, scalars), **{name: _Tensor(shape) for name, (_, shape) in tensors.items()}}
        trial = self._entries([{**config, **dict.fromkeys(self.heuristics, 16)} for config in self.configs], [], self.name)(chosen)[0]
        values: dict[str, Any] = {}
        conditions: dict[str, list[str]] = {}
        for name, (kind, text) in trial["arguments"].items():
            if text in tensors:
                shape = tensors[text][1]
                values[name] = _stand_in(*tensors[text])
                conditions[name] = [f"{text}.ndim == {len(shape)}", *(f"{text}.shape[{axis}] == {size}" for axis, size in enumerate(shape))]
            else:
                values[name] = _evaluate(ast.parse(text.strip(), mode="eval"), names)
                conditions[name] = [f"({text}) == {values[name]!r}" if not isinstance(values[name], bool) else text if values[name] else f"not {text}"]
        return values, conditions

    def _configs_for(self, call: Any, chosen: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
        given, conditions = self._values(call, chosen)
        constants = {**defaults_of(unwrap(self.function).function), **(self.options.get("constants") or {})}
        configs, read = [], set()
        for config in self.configs:
            made = dict(config)
            for name, heuristic in self.heuristics.items():  # each gets the values that earlier ones have set
                arguments = _Noted({**constants, **given, **made})
                try:
                    value = heuristic(arguments)
                except Exception as error:  # the author's own function
                    raise UnfitError(f"the heuristic of {name} fails: {type(error).__name__}: {error}") from error
                if not isinstance(value, (bool, int, float, str)):
                    raise UnfitError(f"the heuristic of {name} gives a {type(value).__name__}: a number, bool or text is expected")
                read |= arguments.read
                made[name] = int(value) if isinstance(value, bool) else value
            configs.append(made)
        return configs, [text for name in conditions if name in read for text in conditions[name]]

    def compile_for(self, call: Any) -> pathlib.Path | None:
        """The pack for a call, on the GPU that it is for; None: it is for no GPU of NVIDIA's."""
        from hone import kernels

        arch, chosen = arch_of(call), _chosen(call, self.algorithm, self.signature)
        if arch is None or chosen is None:
            return None
        configs, conditions = self._configs_for(call, chosen)
        key = hashlib.sha256(json.dumps([configs, conditions]).encode()).hexdigest()[:8]
        make = self._entries(configs, conditions, f"{self.name}_{key}")

        def compile_into(folder: pathlib.Path) -> list[dict[str, Any]]:
            return [pack_kernel(find_triton(), entry, arch, False, folder, None) for entry in make(chosen)]

        place = kernels.cache_folder() / f"{self.prefix(arch)}{key}-{'-'.join(chosen.values())}"
        return kernels.compiled_once(place, self.name, TOOL, compile_into)


def _signature_of(algorithm: str) -> tuple[str, list[dict[str, Any]]]:
    from hone import kernels

    return kernels.parameters_of(algorithm)


def arch_of(call: Any) -> int | None:
    """The compute capability of the GPU that a call is for, 90 for 9.0."""
    from hone import registry

    place = re.search(r"@cuda:(\d+)$", call.text) or re.match(r"cuda:(\d+)$", call.device or "")
    if place is None:
        return None
    return next((arch for number, arch in _gpus(registry.devices()) if number == int(place[1])), None)


def _gpus(devices: list[dict[str, Any]]) -> list[tuple[int, int]]:
    found = []
    for one in devices:
        matched = re.search(r",sm_(\d+)", one["fingerprint"])
        if one["fingerprint"].startswith("cuda|") and matched is not None:
            found.append((int(one["id"]), int(matched[1])))
    return found


def _register_heuristics(made: HeuristicFunction) -> None:
    from hone import kernels, registry

    made.check()
    kernels.add_lazy(made)
    for arch in sorted({arch for _, arch in _gpus(registry.devices())}):
        for folder in sorted(kernels.cache_folder().glob(f"{made.prefix(arch)}*")):
            if (folder / "pack.json").exists():
                kernels.add_compiled(made, folder)


def register(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """What ``@hone.kernel(..., platform="triton")`` does: looks at the function, and takes up what was compiled of it before."""
    from hone import errors, kernels, registry

    kernels.check_options("triton", options, ("space", "configs", "condition", "grid", "arguments", "constants", "divisible", "priority",
                                              "backend", "arrays"))
    signature, parameters = kernels.parameters_of(algorithm)
    try:
        find_triton()
        given = {key: value for key, value in options.items() if value is not None}
        unwrapped = unwrap(function)
        configs, constraints = expand(given["space"]) if given.get("space") else (
            [_config_of(one) for one in given.get("configs") or unwrapped.configs or [{}]], [])
        lacking = {one: value for one, value in unwrapped.heuristics.items() if one not in given.get("constants", {}) and one not in configs[0]}
        if lacking:
            _register_heuristics(HeuristicFunction(algorithm, name, signature, function, given, configs, lacking, constraints, given.get("priority", 55)))
            return
        make = entries_of(function, algorithm, name, signature, parameters, given)
        made = Function(algorithm, name, signature, make, unwrap(function).function, options.get("priority", 55))
    except UnfitError as error:
        raise errors.InvalidArgumentError(f"{name}: {error}") from error
    kernels.add_lazy(made)
    for arch in sorted({arch for _, arch in _gpus(registry.devices())}):
        for chosen in made.choices():
            folder = made.folder(chosen, arch)
            if (folder / "pack.json").exists():
                kernels.add_compiled(made, folder)


# By example -------------------------------------------------------------------------------------------------------------

_NUMPY = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "int8": "i8", "int16": "i16", "int32": "i32",
          "int64": "i64", "uint8": "u8", "bool": "bool", "float8_e4m3fn": "f8_e4m3fn", "float8_e5m2": "f8_e5m2"}


@dataclasses.dataclass(frozen=True)
class Packed:
    """What :func:`pack` made, and what it took the function for."""

    folder: pathlib.Path
    algorithm: str
    signature: str
    arguments: dict[str, tuple[str, str]]
    grid: list[str]
    lost: list[str]  # kernels that a reader without Python does not get

    def __str__(self) -> str:
        passed = ", ".join(f"{name} = {text}" for name, (_, text) in self.arguments.items())
        lines = [f"{self.folder}: {self.signature}", f"  arguments  {passed}", f"  grid       {', '.join(self.grid)}"]
        return "\n".join([*lines, *(f"  {words}" for words in self.lost)])


def _is_descriptor(value: Any) -> bool:
    return hasattr(value, "base") and hasattr(value, "block_shape") and hasattr(value, "strides")


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "data_ptr")


def _dtype_of(tensor: Any) -> str:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _NUMPY:
        raise UnfitError(f"got a tensor of {name}, which hone has no dtype for")
    return _NUMPY[name]


@dataclasses.dataclass
class _Launch:
    """One launch: the function, its arguments by name, and the grid, a tuple or a function of the config."""

    unwrapped: Unwrapped
    values: dict[str, Any]
    grid: Any
    result: Any = None  # of the function that launched it


def _capture(function: Any, example: list[Any]) -> _Launch:
    """Calls a function that launches one kernel, and notes the launch in place of it."""
    import triton.runtime.autotuner as autotuner
    from triton.runtime.jit import JITFunction

    seen: list[tuple[Any, dict[str, Any], Any]] = []

    def note(self: Any, *args: Any, grid: Any, warmup: bool = False, **keywords: Any) -> None:
        seen.append((self, {**dict(zip(self.arg_names, args)), **keywords}, grid))

    def first(self: Any, *args: Any, **keywords: Any) -> Any:
        config = self.configs[0]
        return self.fn.run(*args, **keywords, **config.kwargs)

    before, tuned = JITFunction.run, autotuner.Autotuner.run
    JITFunction.run, autotuner.Autotuner.run = note, first  # type: ignore[method-assign,assignment]
    try:
        result = function(*example)
    except Exception as error:
        raise UnfitError(f"{getattr(function, '__name__', 'the function')} fails on the example: {type(error).__name__}: {error}") from error
    finally:
        JITFunction.run, autotuner.Autotuner.run = before, tuned  # type: ignore[method-assign]
    if len(seen) != 1:
        raise UnfitError(f"{getattr(function, '__name__', 'the function')} launches {len(seen)} kernels on the example: a kernel of hone is one launch")
    jit, values, grid = seen[0]
    outer = next((value for value in [*getattr(function, "__globals__", {}).values(), *_closed(function)]
                  if getattr(value, "fn", None) is jit), jit)
    return _Launch(unwrap(outer), values, grid, result)


def _closed(function: Any) -> list[Any]:
    return [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]


class _Shapes:
    """Names for the sizes of an example: equal sizes are one dim, so sizes that are to be told apart differ."""

    NAMES = ("n", "m", "k", "b", "h", "d", "s", "t", "u", "v", "w")

    def __init__(self, tensors: Mapping[str, Any]):
        sizes = list(dict.fromkeys(size for tensor in tensors.values() for size in tensor.shape))
        order = ("n",) if len(sizes) == 1 else ("m", "n", *self.NAMES[2:])
        if len(sizes) > len(order):
            raise UnfitError(f"the example has {len(sizes)} different sizes, and at most {len(order)} get names")
        self.dims = dict(zip(sizes, order))
        self.tensors = tensors

    def shape(self, tensor: Any) -> str:
        return ", ".join(self.dims[size] for size in tensor.shape)

    def expressions(self) -> dict[int, str]:
        """Numbers that a launch may pass, the plainest first."""
        found: dict[int, str] = {size: name for size, name in self.dims.items() if size != 1}
        for name, tensor in self.tensors.items():
            step = 1
            texts: list[str] = []
            for size in reversed(tensor.shape):
                found.setdefault(step, " * ".join(reversed(texts)) or "1")
                step, texts = step * size, [*texts, self.dims[size]]
            found.setdefault(step, f"{name}.size")
            if tensor.shape:
                found.setdefault(step // tensor.shape[-1], f"{name}.size / {self.dims[tensor.shape[-1]]}")
        found.setdefault(1, "1")
        return found


def _ceildiv(above: int, below: int) -> int:
    return -(-above // below)


def _grid_text(wanted: list[int], configs: list[dict[str, Any]], numbers: Mapping[int, str]) -> str | None:
    """An expression that gives the programs of each config."""
    names = [name for name, value in configs[0].items() if isinstance(value, int) and name not in OPTIONS]
    plain = [(text, [value] * len(configs)) for value, text in numbers.items()]
    split = [(f"ceildiv({text}, {name})", [_ceildiv(value, config[name]) for config in configs])
             for value, text in numbers.items() for name in names if all(config[name] > 0 for config in configs)]
    plain += [(name, [config[name] for config in configs]) for name in names]
    for text, values in [*split, *plain] if len({*wanted}) > 1 else [*plain, *split]:
        if values == wanted:
            return text
    for (one, ours), (other, theirs) in itertools.combinations_with_replacement([*split, *plain], 2):
        if [a * b for a, b in zip(ours, theirs)] == wanted:
            return f"{one} * {other}"
    return None


def _check_one_program(wanted: list[int], configs: list[dict[str, Any]], numbers: Mapping[int, str]) -> None:
    """One program may be all that there is, or all that a small example takes."""
    if {*wanted} != {1}:
        return
    for name, value in configs[0].items():
        if name in OPTIONS or not isinstance(value, int) or isinstance(value, bool):
            continue
        text = next((text for size, text in numbers.items() if 1 < size < value), None)
        if text is not None:
            raise UnfitError(f"grid: the example starts one program, which may be 1 or ceildiv({text}, {name}): take an example that is larger "
                             f"than {name} = {value}, or say it, grid=[\"ceildiv({text}, {name})\"] or grid=[\"1\"]")


def _grids(launch: _Launch, configs: list[dict[str, Any]], numbers: Mapping[int, str]) -> list[str]:
    each = []
    if callable(launch.grid):  # changing a value shows whether the grid depends on it
        names = [name for name, value in configs[0].items() if isinstance(value, int) and not isinstance(value, bool) and name not in OPTIONS]
        configs = [*configs, *({**config, name: config[name] * 2} for config in configs for name in names)]
    for config in configs:
        grid = launch.grid({**launch.values, **config}) if callable(launch.grid) else launch.grid
        each.append(tuple(grid) if isinstance(grid, (tuple, list)) else (grid,))
    known = configs if callable(launch.grid) else [{**{name: value for name, value in launch.values.items() if name in configs[0]}, **{}}]
    each = each if callable(launch.grid) else each[:1]
    known = [{**configs[0], **one} for one in known]
    _check_one_program([int(one[0]) for one in each], known, numbers)
    texts = []
    for axis in range(len(each[0])):
        text = _grid_text([int(one[axis]) for one in each], known, numbers)
        if text is None:
            raise UnfitError(f"grid: {[one[axis] for one in each]} programs on axis {axis} are no expression of the sizes: say it, grid=[...]")
        texts.append(text)
    while len(texts) > 1 and texts[-1] == "1":
        texts.pop()
    return texts


def _number(name: str, value: Any, numbers: Mapping[int, str], scalars: Mapping[str, Any]) -> tuple[str, str]:
    for other, given in scalars.items():
        if other == name or given is value and isinstance(value, float):
            return ("fp32" if isinstance(given, float) else "i1" if isinstance(given, bool) else "i32"), other
    if isinstance(value, int) and value in numbers:
        return "i32", numbers[value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise UnfitError(f"{name} is {value} in the example, and no size of its tensors is: say what it is, arguments={{{name!r}: ...}}")
    raise UnfitError(f"{name} is a {type(value).__name__} in the example: tensors and numbers are passed")


def pack(function: Any, example_args: Any, configs: Any = None, *, reference: Callable[..., Any], folder: Any = None,
         name: str | None = None, grid: Any = None, arguments: Mapping[str, Any] | None = None, independent: str | None = None,
         tolerance: Mapping[str, float] | None = None, arch: int | list[int] | None = None, overwrite: bool = False) -> Packed:
    """Packs a function of Triton by an example: what an example of its arguments tells need not be written.

    Args:
        function: one of ``triton.jit`` (also under ``autotune``), or a function of Python that launches one.
        example_args: its arguments in order, or a dict by name; of a function of ``triton.jit`` those that are no constexprs. Tensors of
            torch on any device; sizes that are not the same dim differ. No GPU is needed.
        configs: dicts, ``triton.Config``, or a space's text; None: those of ``autotune``, else what the function launches it with.
        reference: what is right: a function of torch, numpy or jax.numpy, of the tensors that are read and scalars, by their names. Beside a
            function of Python that launches the kernel also one of C (``torch.add``), a ``functools.partial`` of one, or a module of torch
            without parameters: it gets that function's arguments by place.
        folder: where the pack is written; None: hone's cache.
        name: of the algorithm; None: the function's.
        grid: programs, as expressions, as a tuple of the example, or a function of the config; None: what the function launches.
        arguments: what the example does not tell, from a parameter to a tensor's name or an expression.
        arch: compute capabilities, 90 for 9.0; None: those of the GPUs that are here, else 90.

    Raises:
        InvalidArgumentError: what cannot be told, and how to say it.
    """
    from hone import errors, kernels

    try:
        return _pack(function, example_args, configs, reference, folder, name, grid, dict(arguments or {}), independent, tolerance, arch, overwrite)
    except UnfitError as error:
        raise errors.InvalidArgumentError(f"{name or kernels.name_of(function)}: {error}") from error


def _launch_of(function: Any, example: Any, grid: Any) -> _Launch:
    if hasattr(function, "arg_names") or hasattr(getattr(function, "fn", None), "arg_names"):
        unwrapped = unwrap(function)
        names = [one.name for one in unwrapped.function.params if not one.is_constexpr]
        values = dict(example) if isinstance(example, Mapping) else dict(zip(names, example))
        lacking = [one for one in names if one not in values]
        if lacking:
            raise UnfitError(f"the example has no {lacking[0]}: the function takes {', '.join(names)}")
        return _Launch(unwrapped, values, grid)
    if isinstance(example, Mapping):
        example = list(example.values())
    launch = _capture(function, list(example))
    if grid is not None:
        launch.grid = grid
    return launch


def _pack(function: Any, example: Any, configs: Any, reference: Any, folder: Any, name: str | None, grid: Any, given: dict[str, Any],
          independent: str | None, tolerance: Any, arch: Any, overwrite: bool) -> Packed:
    from hone import kernels, registry

    find_triton()
    launch = _launch_of(function, example, grid)
    jit = launch.unwrapped.function
    reference = _reference_of(reference, function if launch.result is not None else None)
    name = name or kernels.name_of(jit if launch.result is None else function)
    space = configs if isinstance(configs, str) else None
    raw = expand(space)[0] if space else list(configs or launch.unwrapped.configs)
    listed = [_config_of(one) for one in raw]
    if not listed:
        listed = [{one.name: launch.values.get(one.name, _default_of(one)) for one in jit.params
                   if one.is_constexpr and (one.name in launch.values or _default_of(one) is not None)}]
    constexprs = set(itertools.chain.from_iterable(listed))
    constants = {one.name: launch.values[one.name] for one in jit.params
                 if one.is_constexpr and one.name in launch.values and one.name not in constexprs}
    passed = {one.name: launch.values.get(one.name) for one in jit.params if not one.is_constexpr and one.name not in constexprs}
    descriptors = {parameter: value for parameter, value in passed.items() if _is_descriptor(value)}
    passed.update({parameter: value.base for parameter, value in descriptors.items()})
    numbers_of = {one: value for one, value in launch.values.items() if isinstance(value, (int, float, str)) and one not in constexprs}
    blocks = _hooked_blocks(raw, jit, numbers_of)
    tensors, results, scalars = _roles(launch, passed, reference, example)
    shapes = _Shapes({**tensors, **results})
    numbers = shapes.expressions()
    told: dict[str, Any] = {}
    for parameter, value in passed.items():
        if parameter in given:
            told[parameter] = given[parameter]
        elif parameter in descriptors:
            described_one = descriptors[parameter]
            told[parameter] = _describe(parameter, described_one, {**tensors, **results})
            blocks.setdefault(parameter, _blocks_by_example(parameter, described_one, listed, launch.values))
        elif _is_tensor(value):
            told[parameter] = next((one for one, tensor in {**tensors, **results}.items() if tensor is value or _same(tensor, value)), None)
            if told[parameter] is None:
                raise UnfitError(f"{parameter} is a tensor that is neither in the example nor a result: the function makes it")
        else:
            told[parameter] = _number(parameter, value, numbers, scalars)
    signature = _signature_text(name, tensors, results, scalars, shapes)
    texts = [grid] if isinstance(grid, str) else list(grid) if isinstance(grid, (list, tuple)) and all(isinstance(one, str) for one in grid) else None
    if texts is None:
        if launch.grid is None:
            raise UnfitError("grid: say how many programs are started: a tuple, a function of the config, or expressions, [\"ceildiv(n, BLOCK)\"]")
        texts = _grids(launch, listed, numbers)
    kernels.algorithm(signature, independent=independent, tolerance=tolerance)(reference)
    _, parameters = kernels.parameters_of(name)
    bounds = _bounds(listed[0], shapes, texts) if not configs and not launch.unwrapped.configs else _bounds(constants, shapes, texts)
    make = entries_of(function if launch.result is None else launch.unwrapped.function, name, kernels.name_of(jit),
                      kernels.parameters_of(name)[0], parameters,
                      {"configs": listed, "arguments": told, "constants": constants, "grid": texts, "blocks": blocks,
                       "condition": " and ".join(bounds) or None})
    made = Function(name, kernels.name_of(jit), kernels.parameters_of(name)[0], make, jit)
    kernels.add_lazy(made)
    archs = [arch] if isinstance(arch, int) else list(arch or sorted({one for _, one in _gpus(registry.devices())}) or [90])
    place, lost = kernels.pack(folder or kernels.cache_folder() / f"{name}-{made._key({}, archs[0])}", name, target=archs, overwrite=overwrite)
    shown = arguments_for(launch.unwrapped, parameters, constexprs | set(constants), _dtypes_of(parameters, {}), told, blocks)
    return Packed(place, name, kernels.parameters_of(name)[0], shown, texts, lost)


def _describe(parameter: str, descriptor: Any, tensors: Mapping[str, Any]) -> tuple[str, str]:
    """Triton's type of a descriptor of the example, and the tensor that it is of."""
    name, tensor = next(((name, one) for name, one in tensors.items() if one.data_ptr() == descriptor.base.data_ptr()), (None, None))
    shape, strides = [list(map(int, one)) for one in (descriptor.shape, descriptor.strides)]
    if name is None or tensor is None:
        raise UnfitError(f"{parameter} describes a tensor that is neither in the example nor a result: the function makes it")
    if descriptor.padding != "zero" or getattr(descriptor, "round_f32_to_tf32", False):
        raise UnfitError(f"{parameter} pads with {descriptor.padding} or rounds to tf32: hone makes descriptors that pad with zero and do not round")
    rows = list(itertools.accumulate(reversed([*shape[1:], 1]), operator.mul))[::-1]
    joined = len(tensor.shape) - len(shape)
    if not tensor.is_contiguous() or strides != rows or joined < 0 or shape[1:] != list(tensor.shape[joined + 1:]) \
            or shape[0] * rows[0] != tensor.numel():
        raise UnfitError(f"{parameter} describes {shape} with the strides {strides} of {name}{list(tensor.shape)}: hone makes descriptors of whole "
                         "row-major tensors, whose first dims may be joined")
    return f"{DESCRIPTOR}<{TYPES[_dtype_of(tensor)]}>", name


def _blocks_by_example(parameter: str, descriptor: Any, configs: list[dict[str, Any]], launched: Mapping[str, Any]) -> list[list[int]]:
    """The block of each config, where the example has one: by the one parameter of that value, else the number."""
    block = [int(one) for one in descriptor.block_shape]
    if len(configs) == 1:
        return [block]
    known = {**configs[0], **{name: value for name, value in launched.items() if name in configs[0]}}
    found = []
    for size in block:
        names = [name for name, value in known.items() if value == size and name not in OPTIONS and not isinstance(value, bool)]
        if len(names) > 1:
            raise UnfitError(f"{parameter} has a block of {block}, and {' and '.join(names)} are {size}: say it, "
                             f"arguments={{{parameter!r}: \"descriptor(TENSOR, {', '.join(names[:1] * len(block))})\"}}")
        found.append(names[0] if names else size)
    return [[config[one] if isinstance(one, str) else one for one in found] for config in configs]


def _default_of(parameter: Any) -> Any:
    """Of a constexpr whose parameter has one."""
    default = getattr(parameter, "default", inspect.Parameter.empty)
    return None if default is inspect.Parameter.empty else getattr(default, "value", default)


def _bounds(fixed: Mapping[str, Any], shapes: _Shapes, grid: list[str]) -> list[str]:
    """Values that a function worked out of the example's sizes hold for calls of such sizes alone."""
    found = []
    for name, value in fixed.items():
        if name in OPTIONS or not isinstance(value, int) or isinstance(value, bool) or any(re.search(rf"\b{name}\b", text) for text in grid):
            continue
        for size, dim in shapes.dims.items():
            if size == value:
                found.append(f"{dim} == {value}")
            elif size > 1 and 1 << (size - 1).bit_length() == value:
                found.append(f"{dim} <= {value}")
    return found


def _same(one: Any, other: Any) -> bool:
    return one.data_ptr() == other.data_ptr() and tuple(one.shape) == tuple(other.shape)


# Libraries that are searched for the C function of a reference.
_NAMESPACES = ("torch", "torch.nn.functional", "torch.special", "torch.linalg", "torch.fft", "torch.Tensor", "numpy", "jax.numpy", "jax.nn")


def _written_as(value: Any) -> str | None:
    """A Python expression for a value; None if the value has no such expression."""
    if isinstance(value, (bool, int, float, str, type(None))) and value == value and value not in (math.inf, -math.inf):
        return repr(value)
    if type(value) in (tuple, list):
        inside = [_written_as(one) for one in value]
        return None if None in inside else repr(value)
    text = repr(value)
    return text if text.startswith("torch.") and getattr(sys.modules.get("torch"), text[6:], None) is value else None


def _expression_of(reference: Any) -> str | None:
    """What calls a function of C or a module of torch without parameters, written out; None: it is neither."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(reference, torch.nn.Module):
        is_own = type(reference).__module__.startswith("torch.nn.") and not any(True for _ in reference.state_dict())
        is_random = isinstance(reference, torch.nn.modules.dropout._DropoutNd) and reference.training
        if not is_own or is_random or reference._forward_hooks or reference._forward_pre_hooks:
            return None
        text = f"torch.nn.{reference!r}"
        try:
            made = eval(text, {"torch": torch})
        except Exception:  # its repr is no expression
            return None
        return text if type(made) is type(reference) and repr(made) == repr(reference) else None
    name = getattr(reference, "__name__", "")
    for space in _NAMESPACES:
        first, *rest = space.split(".")
        owner = functools.reduce(lambda one, part: getattr(one, part, None), rest, sys.modules.get(first))
        if name.isidentifier() and getattr(owner, name, None) is reference:
            return f"{space}.{name}"
    return None


def _reference_of(reference: Any, function: Any) -> Any:
    """A reference that tells its parameters: one of C, a partial or a module of torch is called by a function that is written for it, with the
    parameters of the function that launches the kernel."""
    inner = reference
    before: list[Any] = []
    named: dict[str, Any] = {}
    while isinstance(inner, functools.partial):
        before, named, inner = [*inner.args, *before], {**inner.keywords, **named}, inner.func
    called = _expression_of(inner)
    if called is None or isinstance(inner, types.FunctionType) and inner is reference or not isinstance(function, types.FunctionType):
        return reference
    names = [one.name for one in inspect.signature(function).parameters.values() if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    bound = [_written_as(one) for one in before]
    keywords = {name: _written_as(value) for name, value in named.items()}
    if None in bound or None in keywords.values():
        return reference
    given = ", ".join([*map(str, bound), *names, *(f"{name}={text}" for name, text in keywords.items())])
    first = called.partition(".")[0]
    needs = [first, *(["jax.numpy", "jax.nn"] if first == "jax" else [])]
    text = "".join(f"import {one}\n" for one in needs) + f"\n\ndef reference({', '.join(names)}):\n    return {called}({given})\n"
    return _imported(text)


def _imported(text: str) -> Any:
    """The function of a source, which stands in a file as a program's own do."""
    from hone import kernels

    name = f"hone_reference_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        place = kernels.cache_folder() / "references" / f"{name}.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_text() != text:
            temporary = place.with_suffix(f".{os.getpid()}")
            temporary.write_text(text)
            os.replace(temporary, place)  # another process may be reading it
        spec = importlib.util.spec_from_file_location(name, place)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name].reference


def _reference_names(reference: Any) -> tuple[list[str], int]:
    """The parameters of a reference, and how many of them have no default."""
    shown = f"{type(reference).__name__} {getattr(reference, '__name__', reference)!s}"
    advice = "write a function around it, with a parameter for each tensor that is read: def right(x): return torch.exp(x)"
    if not callable(reference):
        raise UnfitError(f"reference must be a function that computes what is right, got {reference!r}")
    try:
        parameters = inspect.signature(reference).parameters.values()
    except (TypeError, ValueError):
        raise UnfitError(f"the reference is the {shown}, which does not tell what parameters it has: {advice}") from None
    if any(one.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD) for one in parameters):
        raise UnfitError(f"the reference is the {shown}, which takes any arguments: {advice}")
    return [one.name for one in parameters], sum(one.default is inspect.Parameter.empty for one in parameters)


def _roles(launch: _Launch, passed: Mapping[str, Any], reference: Any,
           example: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Tensors that are read, results, and scalars, by the reference's names."""
    names, needed = _reference_names(reference)
    if launch.result is not None:
        values = list(example.values()) if isinstance(example, Mapping) else list(example)
        if needed > len(values):
            raise UnfitError(f"the reference takes {', '.join(names)}, and the example has {len(values)} arguments")
        names = names[:len(values)]
        named = dict(zip(names, values))
        came = launch.result if isinstance(launch.result, (tuple, list)) else (launch.result,)
        results = {("y" if len(came) == 1 else f"y{index}"): one for index, one in enumerate(came)}
    else:
        named = {}
        for one in names:
            found = [value for parameter, value in passed.items() if parameter == one or _plain(parameter) == _plain(one)]
            if not found and names.index(one) >= needed:
                continue
            if not found:
                raise UnfitError(f"the reference takes {one}, and the function has no argument of that name ({', '.join(passed)})")
            named[one] = found[0]
        results = {_plain(parameter): value for parameter, value in passed.items()
                   if _is_tensor(value) and not any(value is other for other in named.values())}
    if not results or not all(_is_tensor(one) for one in results.values()):
        raise UnfitError("no tensor is a result: one that the reference does not take, or what the function returns")
    tensors = {name: value for name, value in named.items() if _is_tensor(value)}
    results = {(name if name not in tensors else f"{name}_out"): value for name, value in results.items()}
    scalars = {name: value for name, value in named.items() if not _is_tensor(value)}
    if any(_same(one, other) for one in results.values() for other in tensors.values()):
        raise UnfitError("a result lies over an input: write into a tensor of its own")
    return tensors, results, scalars


def _signature_text(name: str, tensors: Mapping[str, Any], results: Mapping[str, Any], scalars: Mapping[str, Any], shapes: _Shapes) -> str:
    inputs = [f"{one}: {_dtype_of(tensor)}[{shapes.shape(tensor)}]" for one, tensor in tensors.items()]
    kinds = {bool: "bool", int: "i64", float: "f64", str: "str"}
    numbers = [f"{one}: {kinds[type(value)]}" for one, value in scalars.items() if type(value) in kinds]
    outputs = [f"{one}: {_dtype_of(tensor)}[{shapes.shape(tensor)}]" for one, tensor in results.items()]
    right = outputs[0] if len(outputs) == 1 else f"({', '.join(outputs)})"
    return f"{name}({', '.join([*inputs, *(['*', *numbers] if numbers else [])])}) -> {right}"


def main(arguments: list[str] | None = None, own: tuple[pathlib.Path, ...] = ()) -> None:
    """The command.

    Args:
        own: files that are compiled where none is named.
    """
    parser = packing.parser_of("python -m hone.triton", __doc__, bool(own))
    parser.add_argument("--arch", type=int, action="append")
    parser.add_argument("--configs", type=int)
    parser.add_argument("--overwrite", action="store_true")
    asked = parser.parse_args(arguments)
    archs = asked.arch or [90]
    try:
        triton = find_triton()
    except ImportError as error:
        fail(2, str(error))
    asked.folder.mkdir(parents=True, exist_ok=True)
    kernels, algorithms = [], []
    for path in asked.files or own:
        listed, named = kernels_of(path)
        algorithms += named
        for kernel, arch in [(kernel, arch) for kernel in listed for arch in archs]:
            try:
                if "file" not in kernel:
                    kernels.append(pack_kernel(triton, kernel, arch, len(archs) > 1, asked.folder, asked.configs))
                elif arch == archs[0]:
                    kernels.append(pack_file(kernel, path.parent, asked.folder))
            except Exception as error:  # Triton raises exceptions of any type
                fail(1, f"{path}: {kernel.get('name')}: {type(error).__name__}: {error}")
    if not any(kernel.get("variants") for kernel in kernels):
        fail(1, "nothing was compiled: there is no kernel with a config")
    pack = {"hone_pack": 1, "name": asked.folder.resolve().name, "kernels": kernels}
    if algorithms:
        pack["algorithms"] = algorithms
    packing.finish(TOOL, asked.folder, pack, f", Triton {triton.__version__}", asked.overwrite)


if __name__ == "__main__":
    main()
