"""A pack out of an installed ejkernel: ``python -m hone.ejkernel FILE... -o FOLDER``.

Each call of a record becomes an algorithm of its own, with the call's shapes; its kernels are ejkernel's implementations for that call,
exported to StableHLO, and its reference is the one of XLA in wider floats. Packs run without Python and without ejkernel.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import importlib
import inspect
import json
import pathlib
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from hone import _exports, _hone, _packing, errors, runtimes

TOOL = "python -m hone.ejkernel"
_WIDER = {"float16": "float32", "bfloat16": "float32", "float32": "float64"}
# Arguments for which random values would give infinite results: logarithms of decays, and steps.
_DECAYS = re.compile(r"(^|_)(decay|g|gk|gv|g_gamma|w|A)$")
_POSITIVE = re.compile(r"(^|_)(dt|beta|scales?|norms(_pages)?)$")


@dataclasses.dataclass
class Called:
    """One call of a record.

    Attributes:
        operation: with its version, as ejkernel writes it.
        arrays, scalars: by the names of the operation's own parameters.
        others: what is neither: dtypes, precisions, null.
    """

    operation: str
    key: str
    arrays: dict[str, tuple[str, tuple[int, ...]]]
    scalars: dict[str, Any]
    others: dict[str, Any]


class LeftOut(Exception):
    """Why a call has no algorithm in the pack, or an implementation no kernel."""


# Records and programs -------------------------------------------------------------------------------------------------


def _is_array(value: Any) -> bool:
    return isinstance(value, dict) and {*value} == {"dtype", "shape"}


def _called(row: dict[str, Any], operation: Any) -> Called:
    spec = row["spec"] if isinstance(row["spec"], dict) else json.loads(row["spec"])
    if spec.get("batch_axes") is not None or spec.get("method") is not None:
        raise LeftOut("it was called under vmap or shard_map")
    names = [name for name in inspect.signature(operation.run).parameters if name != "cfg"]
    given = {**dict(zip(names, spec["args_spec"])), **spec["kwargs_spec"]}
    found = Called(row["op"], row["key"], {}, {}, {})
    for name, value in given.items():
        if _is_array(value):
            found.arrays[name] = value["dtype"], tuple(value["shape"])
        elif isinstance(value, (bool, int, float, str)) and name != "platform" and "." not in str(value).rstrip("0123456789e-+."):
            found.scalars[name] = value
        elif value is not None:
            found.others[name] = value
    if "axis_name" in found.scalars:
        raise LeftOut(f"it runs across devices, along the axis {found.scalars['axis_name']!r}")
    for name in found.others:
        parameter = inspect.signature(operation.run).parameters.get(name)
        if name != "platform" and (parameter is None or parameter.default is inspect.Parameter.empty):
            raise LeftOut(f"{name} is {json.dumps(found.others[name])}, which no record tells")
    return found


def _rows(paths: list[pathlib.Path]) -> tuple[list[dict[str, Any]], list[pathlib.Path]]:
    """The calls of the records among some files, and those that are programs."""
    rows, programs = [], []
    for path in paths:
        content = path.read_bytes()
        document = None
        if content.lstrip()[:1] == b"{":
            try:
                document = json.loads(content)
            except ValueError:
                pass
        if not isinstance(document, dict):
            programs.append(path)
        elif isinstance(document.get("invocations"), list):
            rows += document["invocations"]
        else:
            raise errors.InvalidArgumentError(f"{path} is no record: examples/ejkernel_record.py writes one, with EJKERNEL_OPS_RECORD=1")
    return rows, programs


def _wanted(paths: list[pathlib.Path]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The recorded calls that hone has no algorithm for, of the programs where some are given; and what of these was not recorded."""
    rows, programs = _rows(paths)
    runtime = runtimes.Runtime(store="none")
    known = {(row["op"], row["key"]): row for row in rows}  # a key does not identify the operation
    missing: dict[str, str] = {}
    if not programs:
        return [row for row in known.values() if row["op"].partition("@")[0] not in runtime.algorithms()], missing
    chosen = {}
    for path in programs:
        for one in runtime.program(str(path), path.read_bytes()).operations:
            if one["matched"] != "none" or not str(one["label"]).startswith("ejkernel_ops"):
                continue
            name = f"{one['algorithm']}@v{one['version']}", one["key"]
            if name in known:
                chosen[name] = known[name]
            elif one["algorithm"] not in runtime.algorithms():
                missing[":".join(name)] = "its label has a hash alone: give the record, too (EJKERNEL_OPS_RECORD=1, examples/ejkernel_record.py)"
    return [*chosen.values()], missing


# ejkernel's implementations -------------------------------------------------------------------------------------------


@functools.cache
def _operations() -> dict[str, Any]:
    """ejkernel's operations by their names with versions."""
    try:
        import ejkernel.modules.operations as package
        from ejkernel.ops import Kernel
    except ImportError as error:
        raise errors.UnsupportedError(f"ejkernel is not installed, or not whole ({error}): pip install ejkernel") from error
    found = {}
    for module in pkgutil.iter_modules(package.__path__):
        for value in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
            if inspect.isclass(value) and issubclass(value, Kernel) and value is not Kernel and not inspect.isabstract(value):
                try:
                    kernel = value()  # type: ignore[call-arg]
                except TypeError:  # an abstract base class
                    continue
                found[f"{kernel.op_id}@v{getattr(kernel, 'version', '0')}"] = kernel
    return found


def _operation(name: str) -> Any:
    operations = _operations()
    if name in operations:
        return operations[name]
    # A class may have several names: GroupedMatmul is also grouped_matmulv2.
    plain, _, version = name.partition("@")
    for known, kernel in operations.items():
        if re.sub(r"v\d+$", "", plain) == known.partition("@")[0] and known.partition("@")[2] == version:
            made = type(kernel)()
            made.op_id = plain
            return made
    raise LeftOut(f"the ejkernel that is installed has no {name}")


def _config(operation: Any, called: Called, shown: dict[str, Any], platform: str) -> Any:
    from ejkernel.ops import Invocation

    invocation = Invocation(op_id=operation.op_id, args=(), kwargs={**shown, **called.scalars}, override_cfg=None, stamp=False, method=None,
                            mesh=None, in_specs=None, out_specs=None, check_vma=False)
    config = operation.heuristic_cfg(invocation)
    fields = {field.name for field in dataclasses.fields(config)} if dataclasses.is_dataclass(config) else set()
    wanted = {"platform": platform, "backend": "any" if platform == "xla" else "gpu"}
    return dataclasses.replace(config, **{name: value for name, value in wanted.items() if name in fields}) if fields else config


def _function(called: Called, platform: str, names: list[str]) -> Callable[..., Any]:
    """ejkernel's implementation of a platform, of arrays in the order of names; its results in a row."""
    import jax

    operation = _operation(called.operation)
    taken = inspect.signature(operation.run).parameters
    scalars = dict(called.scalars, **({"platform": platform} if "platform" in taken else {}))

    def run(*arrays: Any) -> list[Any]:
        shown = dict(zip(names, arrays))
        with _heuristic():
            config = _config(operation, called, shown, platform)
            return [one for one in jax.tree.leaves(operation.run(**shown, **scalars, cfg=config)) if one is not None]

    return run


def _heuristic() -> Any:
    """ejkernel tunes nothing inside of an export."""
    from ejkernel.ops import policy_override

    try:
        import ejkernel.modules.base as base

        return policy_override(base._executor.chooser, allow_autotune=False)  # type: ignore[attr-defined]
    except AttributeError:
        import contextlib

        return contextlib.nullcontext()


def _cast(run: Callable[..., Any], dtypes: list[str], wider: dict[str, str], results: list[Any]) -> Callable[..., Any]:
    """The same in wider floats, its results rounded to the call's dtypes."""
    import jax.numpy as jnp

    def widened(*arrays: Any) -> list[Any]:
        wide = [array.astype(wider.get(dtype, dtype)) for array, dtype in zip(arrays, dtypes)]
        return [jnp.asarray(one).astype(result.dtype) for one, result in zip(run(*wide), results)]

    return widened


# Packs ----------------------------------------------------------------------------------------------------------------


def _dtype(name: str) -> str:
    if name not in _exports._DTYPES:
        raise LeftOut(f"hone has no dtype {name}")
    return _exports._DTYPES[name]


def _tensor(name: str, dtype: str, shape: tuple[int, ...]) -> str:
    made = f"{name}: {_dtype(dtype)}[{', '.join(map(str, shape))}]"
    if "int" in dtype:
        return f"{made} ~ uniform(0, 1)"
    if _DECAYS.search(name):
        return f"{made} ~ uniform(-1, 0)"
    return f"{made} ~ uniform(0, 1)" if _POSITIVE.search(name) else made


def _scalar(name: str, value: Any) -> tuple[str, str]:
    """A parameter that has one value, and what says so."""
    if isinstance(value, bool):
        return f"{name}: bool = {str(value).lower()}", name if value else f"not {name}"
    if isinstance(value, str):
        return f"{name}: str = {json.dumps(value)}", f"{name} == {json.dumps(value)}"
    kind = "i64" if isinstance(value, int) else "f64"
    return f"{name}: {kind} = {value!r}", f"{name} == {value!r}"


def _signature(algorithm: str, called: Called, results: list[Any]) -> str:
    tensors = [_tensor(name, *described) for name, described in called.arrays.items()]
    scalars = [_scalar(name, value) for name, value in called.scalars.items()]
    taken = ", ".join(tensors + (["*", *(one for one, _ in scalars)] if scalars else []))
    made = ", ".join(f"out{i}: {_dtype(str(one.dtype))}[{', '.join(map(str, one.shape))}]" for i, one in enumerate(results))
    return " where ".join([f"{algorithm}({taken}) -> ({made})" if len(results) > 1 else f"{algorithm}({taken}) -> {made}", *(one for _, one in scalars)])


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def _exported(run: Callable[..., Any], shown: list[Any], place: str) -> bytes:
    try:
        content = _exports._module(run, shown, place)
    except Exception as error:  # ejkernel's, JAX's
        raise LeftOut(_words(error)) from error
    library = re.search(rb"lapack_\w+", content)
    if library is not None:
        raise LeftOut(f"it calls {library[0].decode()}, which jaxlib brings and no PJRT plugin")
    return content


@dataclasses.dataclass
class Made:
    """The part of a pack that a call makes."""

    algorithm: dict[str, Any]
    kernels: list[dict[str, Any]]
    files: dict[str, bytes]
    lost: list[str]  # implementations without a kernel


def _others(operation: Any) -> Iterator[tuple[str, str]]:
    """Implementations for GPUs and TPUs."""
    from ejkernel.kernels import kernel_registry

    for one in kernel_registry.list_implementations(operation.op_id):
        platform, backend = (str(getattr(value, "value", value)) for value in (one.platform, one.backend))
        if platform != "xla":
            yield platform, backend


def _kernel(name: str, algorithm: str, platform: str, backend: str, names: list[str], content: bytes, priority: int) -> dict[str, Any]:
    return {"algorithm": algorithm, "name": name, "platform": platform, "backend": backend, "priority": priority, "arguments": ", ".join(names),
            "file": f"{algorithm}.{name}.vhlo", "sha256": hashlib.sha256(content).hexdigest()}


def _make(called: Called) -> Made:
    import jax

    names = [*called.arrays]
    algorithm = f"{re.sub(r'[^a-z0-9_]', '_', called.operation.partition('@')[0].lower())}_{called.key[:8]}"
    shown = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in called.arrays.values()]
    run = _function(called, "xla", names)
    try:
        results = [*jax.eval_shape(run, *shown)]
    except Exception as error:  # ejkernel's own
        raise LeftOut(f"ejkernel does not trace it: {_words(error)}") from error
    signature = _signature(algorithm, called, results)
    content = _exported(run, shown, "cpu")
    dtypes = [dtype for dtype, _ in called.arrays.values()]
    try:
        with _exports._wide():
            reference = _exported(_cast(run, dtypes, _WIDER, results), shown, "cpu")
    except LeftOut:  # kernels that are written for float32
        reference = _exported(_cast(run, dtypes, {"float16": "float32", "bfloat16": "float32"}, results), shown, "cpu")
    made = Made({"signature": signature, "reference": "wide"},
                [_kernel("xla", algorithm, "xla", "cpu", names, content, 10), _kernel("wide", algorithm, "xla", "cpu", names, reference, 0)],
                {f"{algorithm}.xla.vhlo": content, f"{algorithm}.wide.vhlo": reference}, [])
    for platform, backend in _others(_operation(called.operation)):
        try:
            if backend != "gpu":
                raise LeftOut(f"hone launches nothing on a {backend.upper()}")
            if platform not in ("triton", "pallas"):
                raise LeftOut("it is a library of CUDA, which no module of StableHLO holds")
            content = _exported(_function(called, platform, names), shown, "cuda")
        except LeftOut as error:
            made.lost.append(f"{algorithm}: {platform}, {backend}: {error}")
            continue
        made.kernels.append(_kernel(platform, algorithm, "pallas", "gpu", names, content, 20))
        made.files[f"{algorithm}.{platform}.vhlo"] = content
    return made


def _foreign(made: list[tuple[Called, Made]]) -> list[dict[str, Any]]:
    """How hone's reader of programs finds the algorithms: a row for each operation."""
    rows: dict[str, dict[str, Any]] = {}
    for called, one in made:
        name = called.operation.partition("@")[0]
        row = rows.setdefault(name, {"library": "ejkernel", "operation": name, "values": {}, "takes": []})
        row["takes"].append({"algorithm": one.algorithm["signature"].partition("(")[0]})
        for other, value in called.others.items():
            values = row["values"].setdefault(other, [])
            if value not in values:
                values.append(value)
    return [*rows.values()]


def make(paths: list[pathlib.Path], folder: pathlib.Path, overwrite: bool = False) -> tuple[int, dict[str, str], list[str]]:
    """Writes a pack for the calls of records and programs that hone has no algorithm for.

    Args:
        paths: records, by ``examples/ejkernel_record.py``, and lowered programs. With programs only their calls are taken.
        folder: is made; what was edited in a ``pack.json`` that is there stays.
        overwrite: what was edited goes.

    Returns:
        How many algorithms it has; the calls that have none, with the reasons; implementations that have no kernel, with theirs.
    """
    rows, left = _wanted(paths)
    made: list[tuple[Called, Made]] = []
    for row in rows:
        try:
            called = _called(row, _operation(row["op"]))
            made.append((called, _make(called)))
        except LeftOut as error:
            left[f"{row['op']}:{row['key']}"] = str(error)
    if made:
        folder.mkdir(parents=True, exist_ok=True)
        for _, one in made:
            for name, content in one.files.items():
                (folder / name).write_bytes(content)
        pack = {"hone_pack": 1, "name": folder.resolve().name, "algorithms": [one.algorithm for _, one in made],
                "kernels": [kernel for _, one in made for kernel in one.kernels], "foreign": _foreign(made)}
        _packing.write(TOOL, folder, pack, overwrite)
    return len(made), left, [words for _, one in made for words in one.lost]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        TOOL, description="Makes a pack out of the installed ejkernel for the calls that hone has no algorithm for.",
        epilog=f"hone {_hone.version()}. Then: hone record import RECORD; hone offline --pack FOLDER PROGRAM")
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE", help="records (examples/ejkernel_record.py), and lowered programs")
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True, metavar="FOLDER", help="the pack's folder")
    parser.add_argument("--overwrite", action="store_true", help="write pack.json anew, also where it was edited")
    given = parser.parse_args(arguments)
    try:
        count, left, lost = make(given.files, given.output, given.overwrite)
    except (errors.HoneError, OSError) as error:
        print(f"{TOOL}: {error}", file=sys.stderr)
        return 2
    print(f"{given.output}: {count} algorithms" if count else f"{TOOL}: nothing was made")
    for name, reason in left.items():
        print(f"- {name}: {reason}")
    for words in lost:
        print(f"  {words}")
    return 1 if left or not count else 0
