"""Functions for tvm-ffi as kernels: those that a shared library exports, and objects of them, tvm_ffi.Function (docs/ffi.md)."""

from __future__ import annotations

import ast
import ctypes
import dataclasses
import os
import pathlib
import re
from collections.abc import Callable, Sequence
from typing import Any

from hone import _sources, errors, kernels

TEXTS = ("arguments", "condition", "scratch", "signature")
_NO_ARGUMENTS = "arguments: is missing: what the function takes, in its order, \"x, weight, y, f64(eps)\""
OPTIONS = (*TEXTS, "library", "function", "space", "backend", "priority")


def _text(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _read(library: Any) -> tuple[str, bytes]:
    try:
        path = pathlib.Path(os.fspath(library))
    except TypeError:
        raise TypeError(f"library must be the path of a shared library, got {type(library).__name__}") from None
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise errors.NotFoundError(f"library: {path} cannot be read: {error.strerror}") from error


def register(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """``hone.kernel(algorithm, platform="ffi", library=..., function=..., arguments=...)``."""
    options = {key: value for key, value in options.items() if value is not None}
    held = options.get("function", function)
    if held is not None and not isinstance(held, str):
        return _register_object(held, algorithm, name, {key: value for key, value in options.items() if key != "function"}, caller)
    kernels.check_options("ffi", options, OPTIONS)
    if "library" not in options:
        raise errors.InvalidArgumentError(
            "platform \"ffi\" takes library, the path of a shared library, and function, a name that it exports, or function alone, an object "
            "of tvm_ffi")
    if "arguments" not in options:
        raise errors.InvalidArgumentError(_NO_ARGUMENTS)
    file, content = _read(options["library"])
    entry = options.get("function", algorithm.partition("@")[0])
    row = {"algorithm": algorithm, "name": name, "platform": "ffi", "entry": str(entry), "file": file, "sha256": kernels._sha(content),
           "backend": options.get("backend", "gpu" if b".nv_fatbin" in content else "cpu"),
           **{key: _text(options[key]) for key in TEXTS if key in options}}
    if "space" in options:
        row["space"] = [line.strip() for line in str(options["space"]).replace(";", "\n").splitlines() if line.strip()]
    if "priority" in options:
        row["priority"] = int(options["priority"])
    folder = kernels._write_pack({"hone_pack": 1, "name": name, "kernels": [row]}, {file: content})
    kernels._register(kernels.Registered(algorithm, name, "ffi", folder))


# Function objects -----------------------------------------------------------------------------------------------------

_OF_OBJECTS = ("arguments", "arrays", "backend", "condition", "priority", "space")
_CASTS: dict[str, Callable[[Any], Any]] = {"bool": bool, "text": str, "f32": float, "f64": float,
                                           **{f"{sign}{bits}": int for sign in "iu" for bits in (8, 16, 32, 64)}}


@dataclasses.dataclass(frozen=True)
class Passed:
    """One argument of a function: a value of the call, by its name, or one that is always the same."""

    name: str | None
    cast: str | None = None  # of _CASTS
    value: Any = None

    def of(self, value: Any) -> Any:
        return value if self.cast is None or value is None else _CASTS[self.cast](value)


def _passed(item: str) -> Passed:
    cast, inner = None, item
    match = re.fullmatch(r"(\w+)\((.*)\)", item)
    if match is not None and match[1] in _CASTS:
        cast, inner = match[1], match[2].strip()
    if item == "none":
        return Passed(None)
    if inner.isidentifier():
        return Passed(inner, cast)
    try:
        return Passed(None, None, Passed(None, cast).of(ast.literal_eval(inner)))
    except (ValueError, SyntaxError, TypeError):
        raise errors.InvalidArgumentError(
            f"arguments: {item!r}: an object of a function takes values by name, x, i64(n), f64(eps), bool(causal), text(mode), what is written "
            "out, i64(4), text('none'), [1, 4], and none: write a function of Python that calls it with anything else, for platform "
            "\"python\"") from None


def _items(text: str) -> list[str]:
    """Between commas that stand in no bracket and no text."""
    found = re.findall(r"(?:\[[^\]]*\]|\([^)]*\)|'[^']*'|[^,])+", text)
    return [one.strip() for one in found if one.strip()]


class Held:
    """A function of tvm-ffi with what it takes, for arrays of numpy, which DLPack is asked for, and tensors of torch, which tvm_ffi reads."""

    def __init__(self, function: Any, taken: Sequence[Passed], returns: int):
        import tvm_ffi

        self.function, self.taken, self.returns = function, tuple(taken), returns
        self.tensor = tvm_ffi.from_dlpack

    @staticmethod
    def is_numpys(value: Any) -> bool:
        return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"

    def __call__(self, *values: Any) -> Any:
        """Values in the order in which arguments name them."""
        come, given, lent = iter(values), [], []
        for index, one in enumerate(self.taken):
            value = one.value if one.name is None else one.of(next(come))
            if self.is_numpys(value):
                value = self.tensor(value)
                lent.append((index, value))
            given.append(value)
        came = self.function(*given)
        for index, tensor in lent:
            kept = ctypes.c_uint32.from_address(tensor.__chandle__()).value - 1
            if kept > 0:
                _kept.append(tensor)
                raise RuntimeError(f"keeps {kept} references to argument {index} when it has returned: what it is lent is hone's again then")
        if self.returns == 0:
            return None
        results = (came,) if self.returns == 1 else tuple(came)
        return tuple(_array(one) for one in results)


_kept: list[Any] = []


def _array(value: Any) -> Any:
    if type(value).__module__.startswith("torch"):
        return value
    import numpy

    try:
        return numpy.from_dlpack(value)
    except (TypeError, AttributeError, BufferError):
        raise TypeError(f"returns a {type(value).__name__}, expected a tensor on the host") from None


def _plan(text: str, parameters: list[dict[str, Any]], space: list[str]) -> tuple[list[Passed], list[str], bool]:
    """What is passed, which results are returned, and whether results are written."""
    before, arrow, behind = text.partition("->")
    taken, returned = [_passed(one) for one in _items(before)], [one.strip() for one in behind.split(",")] if arrow else []
    results = [one["name"] for one in parameters if one["is_result"]]
    known = {one["name"] for one in parameters} | set(space)
    for one in taken:
        if one.name is not None and one.name not in known:
            raise errors.InvalidArgumentError(f"arguments: {one.name} is neither in the signature ({', '.join(sorted(known))}) nor in the space")
    written = [name for name in results if name in {one.name for one in taken}]
    if (returned or written) != results or (returned and written):
        raise errors.InvalidArgumentError(
            f"arguments: the results {', '.join(results)} are all given to the function, or all returned: \"... -> {', '.join(results)}\"")
    return taken, returned, bool(written)


def _register_object(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """A worker of Python makes the object again, by the statements of its module that made it here, and runs it."""
    if not type(function).__module__.startswith("tvm_ffi") or not callable(function):
        raise errors.InvalidArgumentError(
            f"platform \"ffi\" takes a name that library exports, or an object of tvm_ffi, got a {type(function).__name__} of "
            f"{type(function).__module__}: functions of Python are platform \"python\"'s")
    unknown = [one for one in options if one not in _OF_OBJECTS]
    if unknown:
        raise errors.InvalidArgumentError(
            f"an object of a function has no option {unknown[0]!r}, expected one of {', '.join(_OF_OBJECTS)}: scratch and signature are for "
            "a library's")
    if "arguments" not in options:
        raise errors.InvalidArgumentError(_NO_ARGUMENTS)
    parameters = kernels.parameters_of(algorithm)[1]
    taken, returned, writes = _plan(_text(options["arguments"]), parameters, kernels.names_of_space(options.get("space")))
    source = _sources.source_of(function, caller)
    made = (f"{source.text}from hone import libraries as hone_libraries\n"
            f"hone_held = hone_libraries.Held({source.entry}, [hone_libraries.Passed(*one) for one in {[dataclasses.astuple(one) for one in taken]!r}], {len(returned)})\n")
    positional = [one.name for one in taken if one.name is not None]
    whole = dataclasses.replace(source, text=made, entry="hone_held", compiles=True)
    kernels.add_planned(Held(function, taken, len(returned)), whole, algorithm, name, (positional, [], writes), {**options, "lends": True})
