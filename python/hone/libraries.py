"""Functions of shared libraries as kernels: those that a library exports for tvm-ffi (docs/ffi.md)."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from typing import Any

from hone import errors, kernels

TEXTS = ("arguments", "condition", "scratch", "signature")
OPTIONS = (*TEXTS, "library", "function", "space", "backend", "priority")


def _text(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, Sequence) and not isinstance(value, str) else str(value)


def _read(library: Any) -> tuple[str, bytes]:
    try:
        path = pathlib.Path(os.fspath(library))
    except TypeError:
        raise TypeError(f"library is the path of a shared library, and a {type(library).__name__} came") from None
    try:
        return path.name, path.read_bytes()
    except OSError as error:
        raise errors.NotFoundError(f"library: {path} cannot be read: {error.strerror}") from error


def register(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    """``hone.kernel(algorithm, platform="ffi", library=..., function=..., arguments=...)``."""
    options = {key: value for key, value in options.items() if value is not None}
    unknown = [one for one in options if one not in OPTIONS]
    if unknown:
        raise errors.InvalidArgumentError(f"platform \"ffi\" has no option {unknown[0]!r}, expected one of {', '.join(OPTIONS)}")
    if "library" not in options:
        raise errors.InvalidArgumentError(
            "platform \"ffi\" takes library, the path of a shared library, and function, a name that it exports: an object of a function "
            "cannot leave this process, where contests are not held")
    if "arguments" not in options:
        raise errors.InvalidArgumentError("arguments: is missing: what the function takes, in its order, \"x, weight, y, f64(eps)\"")
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
