"""Algorithms and kernels that a program writes in Python, in the same registry as C's.

    @hone.algorithm("scale(x: T[n], *, by: f64 = 2) -> y: T[n] where T in f32, f64", independent="n")
    def scale(x, by):                     # the reference: gets float64
        return x * by

    @hone.kernel("scale")
    def doubled(x, by):
        return x * x.dtype.type(by)
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import inspect
import json
import logging
import os
import pathlib
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar

from hone import _hone, _scripts, _sources, errors, runtimes

F = TypeVar("F", bound=Callable[..., Any])

REFERENCE = "reference"
_log = logging.getLogger("hone")


@dataclasses.dataclass(frozen=True)
class Registered:
    """What a decorator has registered: a pack in a folder of the cache."""

    algorithm: str
    name: str
    platform: str
    folder: pathlib.Path
    signature: str | None = None  # of an algorithm only
    watched: tuple[_sources.Watched, ...] = dataclasses.field(default=(), compare=False)
    family: str | None = None  # the name of the function that it was compiled from


_lock = threading.RLock()
_registered: dict[tuple[str, str, str], Registered] = {}
_path: list[str] = []


def registered() -> list[Registered]:
    """What this program has registered, in its order."""
    return [*_registered.values()]


# Folders --------------------------------------------------------------------------------------------------------------


def cache_folder() -> pathlib.Path:
    """Where packs of programs are kept: beside what was compiled for kernels."""
    named = os.environ.get("HONE_COMPILE_CACHE")
    if named is None:
        caches = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        named = os.path.join(caches, "hone", "compiled")
    return pathlib.Path(named) / "packs"


def _write_pack(pack: dict[str, Any], files: Mapping[str, bytes]) -> pathlib.Path:
    """A pack under the digest of all that it holds; one that is there already is left as it is."""
    text = json.dumps(pack, indent=1) + "\n"
    whole = hashlib.sha256(text.encode())
    for name, content in sorted(files.items()):
        whole.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    try:
        place = cache_folder()
        place.mkdir(parents=True, exist_ok=True)
    except OSError:
        place = pathlib.Path(tempfile.mkdtemp(prefix="hone-packs-"))
    folder = place / whole.hexdigest()[:32]
    if (folder / "pack.json").exists() and all(
            (folder / name).is_file() and (folder / name).read_bytes() == content for name, content in files.items()):
        return folder
    made = pathlib.Path(tempfile.mkdtemp(prefix=".making-", dir=place))
    try:
        for name, content in files.items():
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(content)
        (made / "pack.json").write_text(text)
        made.chmod(0o755)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    except OSError:
        if not (folder / "pack.json").exists():  # otherwise another process has written it first
            raise
        shutil.rmtree(made, ignore_errors=True)
    return folder


@contextlib.contextmanager
def making(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder that takes its place when it is whole; another process may be first."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = pathlib.Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    try:
        yield made
        made.chmod(0o755)
        try:
            made.rename(folder)
        except OSError:
            if not (folder / "pack.json").exists():
                raise
    finally:
        shutil.rmtree(made, ignore_errors=True)


def compiled_once(folder: pathlib.Path, name: str, tool: str, make: Callable[[pathlib.Path], list[dict[str, Any]]]) -> pathlib.Path:
    """The pack of a folder, whose name is the digest of all that goes in, compiled where nobody has before.

    Args:
        make: writes files into a folder, and gives the kernels in pack.json.
    """
    from hone import _packing

    if (folder / "pack.json").exists():
        return folder
    with making(folder) as made:
        pack = {"hone_pack": 1, "name": name, "kernels": make(made)}
        _packing.mark(pack, tool)
        (made / "pack.json").write_text(json.dumps(pack, indent=1) + "\n")
    return folder


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Signatures and functions ---------------------------------------------------------------------------------------------


def _described(parameters: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(str(one["name"]) for one in parameters)


def _check_arguments(name: str, arguments: Any, given: Mapping[str, Any] | None, kinds: set[Any]) -> None:
    if not isinstance(arguments, Mapping):
        raise errors.InvalidArgumentError(
            f"{name}: arguments must be a dict, from the function's parameters to the signature's names, got {arguments!r}")
    if given is None or inspect.Parameter.VAR_KEYWORD in kinds:
        return
    for one in arguments:
        if one not in given:
            raise errors.InvalidArgumentError(f"{name}: arguments names {one!r}, and the function's parameters are {', '.join(given) or 'none'}")


def _check_text(what: str, value: Any, example: str) -> None:
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise errors.InvalidArgumentError(f"{what} must be a text, {example}, got {value!r}")


def check_options(platform: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuses the first option that a platform does not have."""
    known = tuple(known)
    for one in options:
        if one not in known:
            raise errors.InvalidArgumentError(f"platform \"{platform}\" has no option {one!r}, expected one of {', '.join(known)}")


def _check_decorated(decorator: str, function: Any) -> None:
    if inspect.isclass(function):
        raise errors.InvalidArgumentError(f"{decorator} registers functions, got the class {function.__name__}")
    for tells, what, instead in (
            (inspect.iscoroutinefunction, "an async function", "which nobody awaits: make it a plain one"),
            (inspect.isgeneratorfunction, "a generator", "which nobody goes through: have it return its results"),
            (inspect.isasyncgenfunction, "an async generator", "which nobody goes through: have it return its results")):
        if tells(function):
            raise errors.InvalidArgumentError(f"{decorator}: {_sources.name_of(function)} is {what}, {instead}")


def _check_name(name: str | None) -> None:
    if name == REFERENCE:
        raise errors.InvalidArgumentError(f"{REFERENCE!r} is what the function of hone.algorithm is named: give the kernel another name")
    if name is not None and re.fullmatch(r"[A-Za-z0-9_.+-]{1,63}", name) is None:
        shown = name if len(name) <= 64 else name[:64] + "..."
        raise errors.InvalidArgumentError(f"{shown!r} is not a valid name of a kernel: 1 to 63 letters, digits and _ . + -")


_WORDS = frozenset(("and", "or", "not", "in", "if", "else", "true", "false", "True", "False", "None", "none",
                    "min", "max", "ceildiv", "abs", "log2", "sqrt", "device"))


def _check_condition(name: str, condition: str | None, signature: str, space: str | None) -> None:
    """A name that no call has would be found when the first call comes."""
    words = re.findall(r"(?<![\w.])[A-Za-z_]\w*", re.sub(r"\"[^\"]*\"|'[^']*'", "", condition or ""))
    known = {*re.findall(r"[A-Za-z_]\w*", signature.partition("(")[2]), *re.findall(r"[A-Za-z_]\w*", space or "")}
    for word in words:
        if word not in known and word not in _WORDS:
            raise errors.InvalidArgumentError(f"{name}: its condition reads {word}, which neither the signature ({signature}) nor the space has")


def plan_call(function: Any, name: str, parameters: list[dict[str, Any]], space: list[str],
               arguments: Mapping[str, str]) -> tuple[list[str], list[str], bool]:
    """What a function is called with: by position, by name, and whether it writes results that it is given."""
    inputs = [one for one in parameters if not one["is_result"]]
    results = [one for one in parameters if one["is_result"]]
    known = {one["name"] for one in parameters} | set(space)
    twice = next((one["name"] for one in parameters if one["name"] in space), None)
    if twice is not None:
        raise errors.InvalidArgumentError(f"{name}: its space has {twice}, as the signature does ({_described(parameters)}): give the space's another name")
    given: Mapping[str, inspect.Parameter] | None
    try:
        given = inspect.signature(function).parameters
    except (TypeError, ValueError):  # of C
        given = None
    kinds = {one.kind for one in (given or {}).values()}
    _check_arguments(name, arguments, given, kinds)
    if given is None or inspect.Parameter.VAR_POSITIONAL in kinds:
        return [one["name"] for one in inputs if not one["keyword_only"]], [one["name"] for one in inputs if one["keyword_only"]], False
    positional, keywords, taken = [], [], set()
    for one in given.values():
        meant = arguments.get(one.name, one.name)
        if one.kind is inspect.Parameter.VAR_KEYWORD:
            continue
        if meant not in known:
            if one.default is not inspect.Parameter.empty:
                continue
            raise errors.InvalidArgumentError(
                f"{name} asks for {one.name}, which neither the signature ({_described(parameters)}) nor the space "
                f"({', '.join(space) or 'none'}) has: name it so, or say what it is, arguments={{{one.name!r}: ...}}")
        taken.add(meant)
        if one.kind is inspect.Parameter.KEYWORD_ONLY or meant == one.name and one.kind is not inspect.Parameter.POSITIONAL_ONLY:
            if meant != one.name:
                raise errors.InvalidArgumentError(f"{name}: {one.name} is keyword-only and is to have the signature's name {meant}")
            keywords.append(meant)
        elif keywords:
            raise errors.InvalidArgumentError(f"{name}: {one.name} stands behind {keywords[-1]}: give all arguments names of the signature")
        else:
            positional.append(meant)
    if inspect.Parameter.VAR_KEYWORD in kinds:
        keywords += [one["name"] for one in inputs if one["name"] not in taken]
        keywords += [one for one in space if one not in taken]
        taken |= {one["name"] for one in inputs} | set(space)
    missing = [one["name"] for one in inputs if one["name"] not in taken] + [one for one in space if one not in taken]
    if missing:
        raise errors.InvalidArgumentError(
            f"{name} does not take {', '.join(missing)}, which its signature or space has: its parameters are {', '.join(given) or 'none'}")
    written = [one["name"] for one in results if one["name"] in taken]
    if written and len(written) < len(results):
        raise errors.InvalidArgumentError(f"{name} takes the result {written[0]} and not all of {_described(results)}: it takes all, or returns all")
    return positional, keywords, bool(written)


def names_of_space(space: str | None) -> list[str]:
    lines = [line for line in _space_lines(space) if not line.startswith("where ")]
    return [line.split(":")[0].strip() for line in lines]


def _space_lines(space: str | None) -> list[str]:
    return [line.strip() for line in re.split(r"[;\n]", space or "") if line.strip()]


def space_and_condition(space: str | None, condition: str | None) -> dict[str, Any]:
    """Both as pack.json has them: what speaks of parameters is a constraint of the space, the rest a condition of the kernel."""
    lines = _space_lines(space)
    if condition is None:
        return {"space": lines} if lines else {}
    if set(re.findall(r"[A-Za-z_]\w*", condition)) & set(names_of_space(space)):
        return {"space": [*lines, f"where {condition}"]}
    return {"condition": condition, **({"space": lines} if lines else {})}


def _arrays_of(source: _sources.Source, asked: str | None) -> str:
    if asked is not None:
        if asked not in ("numpy", "torch", "jax"):
            raise errors.InvalidArgumentError(f"arrays must be \"numpy\", \"torch\" or \"jax\", got {asked!r}")
        return asked
    for package in ("torch", "jax"):
        if package in source.packages:
            return package
    return "numpy"


def _python_kernel(function: Any, source: _sources.Source, algorithm: str, name: str, parameters: list[dict[str, Any]],
                   options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The kernel in pack.json and its files."""
    plan = plan_call(function, name, parameters, names_of_space(options.get("space")),
                     options["arguments"] if options.get("arguments") is not None else {})
    return _python_row(function, source, algorithm, name, plan, options)


def _python_row(function: Any, source: _sources.Source, algorithm: str, name: str, plan: tuple[list[str], list[str], bool],
                options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The same of a function whose call is planned."""
    space = options.get("space")
    positional, keywords, writes = plan
    content = source.text.encode()
    file = f"{re.sub(r'[^A-Za-z0-9_.-]', '_', name)}-{_sha(content)[:12]}.py"
    modules = sorted({path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in source.files})
    facts = {"arrays": _arrays_of(source, options.get("arrays")), "positional": positional, "keywords": keywords, "writes": writes,
             "packages": source.packages, "compiles": source.compiles, "modules": modules, **({"lends": True} if options.get("lends") else {})}
    kernel = {"algorithm": algorithm, "name": name, "platform": "python", "backend": options.get("backend") or ("cpu" if name == REFERENCE or facts["arrays"] != "torch" else "any"),
              "priority": options.get("priority", 10), "file": file, "sha256": _sha(content), "entry": source.entry, "facts": facts,
              "producer": {"tool": "hone.kernel", "hone": _hone.version()}}
    if source.files:
        kernel["files"] = [{"file": path, "sha256": _sha(one)} for path, one in sorted(source.files.items())]
    kernel |= space_and_condition(space, options.get("condition"))
    key = f"{_sha(content)}:{source.entry}"
    _scripts.live[key], _scripts.watched[key] = function, source.watched
    _scripts.need(source.packages, source.compiles)
    return kernel, {file: content, **source.files}


# Registering ----------------------------------------------------------------------------------------------------------


def _raise_refusals(refused: list[tuple[str, str, str, str]]) -> None:
    for algorithm, kernel, _, reason in refused:
        raise errors.InvalidArgumentError(re.sub(r"^pack [^:]*: ", "", reason) or f"{algorithm} {kernel} is refused")


def _register(new: Registered) -> None:
    """Loads the pack into every runtime; those that open later load it then."""
    if sys.path != _path:
        _path[:] = sys.path
        _scripts.lend()
    with _lock:
        key = (new.algorithm, new.name, new.platform)
        before = _registered.get(key)
        if before is not None and before.folder == new.folder:
            return
        if before is not None:
            _raise_refusals(runtimes.replace_pack(str(before.folder), str(new.folder)))
        else:
            _raise_refusals(runtimes.add_pack(str(new.folder)))
        _registered[key] = new


def _caller() -> dict[str, Any]:
    frame = sys._getframe(2)
    return frame.f_globals


def algorithm(signature: str, *, independent: str | None = None, tolerance: Mapping[str, float] | None = None, special: str | None = None,
              arrays: str | None = None) -> Callable[[F], F]:
    """Registers an algorithm whose reference is the decorated function. The function stays as it is.

    The reference gets arrays in float64 (integers as they are) and scalars, by the signature's names, and returns the results, which
    are rounded to the call's dtypes: one, a tuple, or a dict by name.

    Args:
        signature: its name, parameters and results (docs/signatures.md).
        independent: dims along which parts can be computed one by one.
        tolerance: ``{"absolute": 1e-6, "relative": 1e-5}``; None: as the dtypes have it.
        special: for which elements kernels must give what the reference gives, words of ``"small lowest minus_infinity infinity nan"``: in rows of the first
            array of floats, with ``"everywhere"`` of the others too (docs/tolerance.md). None: ordinary, large and tiny numbers alone.
        arrays: ``"numpy"``, ``"torch"`` or ``"jax"``; None: torch's or JAX's where the function uses them, else numpy's.

    Raises:
        InvalidArgumentError: the signature is none, does not fit the function, or is registered with other words.
    """
    if callable(signature):
        raise errors.InvalidArgumentError('hone.algorithm is called with a signature: @hone.algorithm("name(x: f32[n]) -> y: f32[n]")')
    if not isinstance(signature, str) or not signature.strip():
        raise errors.InvalidArgumentError(f'a signature must be a text, "name(x: f32[n]) -> y: f32[n]", got {signature!r}')
    _check_text("independent", independent, "as \"n\" or \"...\"")
    _check_text("special", special, "as \"infinity nan\"")
    name, version, text, parameters = _hone.signature(signature)
    caller = _caller()

    def decorate(function: F) -> F:
        _check_decorated("hone.algorithm", function)
        source = _sources.source_of(function, caller)
        written = name if version == "1" else f"{name}@v{version}"
        kernel, files = _python_kernel(function, source, written, REFERENCE, parameters, {"arrays": arrays, "priority": 0})
        row: dict[str, Any] = {"signature": text, "reference": REFERENCE}
        if independent is not None:
            row["independent"] = independent
        if special is not None:
            row["special"] = special
        if tolerance is not None:
            row["tolerance"] = dict(tolerance)
        folder = _write_pack({"hone_pack": 1, "name": name, "algorithms": [row], "kernels": [kernel]}, files)
        _register(Registered(written, REFERENCE, "python", folder, text, source.watched))
        return function

    return decorate


def parameters_of(algorithm: str) -> tuple[str, list[dict[str, Any]]]:
    """The signature of a registered algorithm, and its parameters and results."""
    operation = runtimes.default().operation(algorithm)
    return operation.signature, operation.parameters


def kernel(algorithm: str, *, platform: str | None = None, name: str | None = None, space: str | None = None,
           condition: str | None = None, arguments: Mapping[str, str] | str | None = None, arrays: str | None = None,
           backend: str | None = None, priority: int | None = None, **options: Any) -> Callable[[F], F]:
    """Registers the decorated function as a kernel of an algorithm. The function stays as it is.

    Args:
        algorithm: its name, with a version where one is meant.
        platform: ``"python"``: any callable, in a worker of Python for contests and in this process for calls. ``"ffi"``: a function
            of a shared library, ``library=PATH, function=NAME, arguments="x, y, f64(eps)"``, or an object of tvm_ffi, ``function=OBJECT``
            (docs/ffi.md), which is registered at once and decorates nothing. ``"triton"``, ``"cute"``, ``"xla"``, ``"pallas"``: a function that is compiled
            and leaves Python. None: by what the function is.
        name: None: the function's.
        space: what can be tuned, ``"BLOCK: 256..8192 *2; num_warps: 2..16 *2"`` (docs/spaces.md): the function gets the values by name.
        condition: what a call must fulfil, an expression.
        arguments: what parameters of the function are that have other names than the signature's.
        arrays: of a callable: ``"numpy"``, ``"torch"`` or ``"jax"``, as of :func:`algorithm`.
        backend: ``"cpu"``, ``"gpu"`` or ``"any"``.
        priority: among kernels that nobody has measured; higher first.

    Raises:
        InvalidArgumentError: the function does not fit the algorithm's signature, or a text is not valid.
        NotFoundError: there is no such algorithm.
    """
    if callable(algorithm):
        raise errors.InvalidArgumentError('hone.kernel is called with the name of an algorithm: @hone.kernel("name")')
    _check_text("algorithm", algorithm, "the name of an algorithm")
    _check_text("name", name, "as \"blocks\"")
    _check_name(name)
    _check_text("condition", condition, "as \"n % 64 == 0\"")
    _check_text("space", space, "as \"BLOCK: 256..8192 *2\"")
    if priority is not None and type(priority) is not int:
        raise errors.InvalidArgumentError(f"priority must be an integer, got {priority!r}")
    caller = _caller()
    if platform is not None and platform not in PLATFORMS:
        raise errors.InvalidArgumentError(
            f"platform must be one of {', '.join(sorted(PLATFORMS))}, got {platform!r}: kernels of others come in packs (docs/packs.md)")
    if platform == "ffi" and ("library" in options or "function" in options):  # no function to decorate
        asked = {"space": space, "condition": condition, "arguments": arguments, "arrays": arrays, "backend": backend, "priority": priority,
                 **options}
        given = options.get("function", algorithm.partition("@")[0])
        _register_library(None, algorithm, name or (given if isinstance(given, str) else "function"), asked, caller)
        return lambda function: function

    def decorate(function: F) -> F:
        _check_decorated("hone.kernel", function)
        maker = PLATFORMS[platform or _platform_of(function)]
        asked = {"space": space, "condition": condition, "arguments": arguments, "arrays": arrays, "backend": backend, **options}
        if priority is not None:
            asked["priority"] = priority
        own = _sources.name_of(function)
        if name is None and own != "<lambda>":  # lambdas are refused later
            _check_name(own)
        maker(function, algorithm, name or own, asked, caller)
        return function

    return decorate


def _platform_of(function: Any) -> str:
    """Functions of Triton, JAX and the CuTe DSL leave Python."""
    inner = function
    for _ in range(8):
        module = type(inner).__module__
        if module.startswith("triton."):
            return "triton"
        if not hasattr(inner, "fn"):
            break
        inner = inner.fn
    if hasattr(function, "lower") and type(function).__module__.startswith(("jax", "jaxlib")):
        return "xla"
    if hasattr(function, "_decorator_kind") and getattr(function, "__globals__", {}).get("__name__", "").startswith("cutlass."):
        return "cute"
    return "python"


def _register_python(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    check_options("python", options, ("space", "condition", "arguments", "arrays", "backend", "priority"))
    if not callable(function):
        raise TypeError(f"expected a function, got {type(function).__name__}")
    signature, parameters = parameters_of(algorithm)
    _check_condition(name, options.get("condition"), signature, options.get("space"))
    source = _sources.source_of(function, caller)
    _add_python(algorithm, name, source, _python_kernel(function, source, algorithm, name, parameters, options))


def _add_python(algorithm: str, name: str, source: _sources.Source, made: tuple[dict[str, Any], dict[str, bytes]]) -> None:
    row, files = made
    folder = _write_pack({"hone_pack": 1, "name": name, "kernels": [row]}, files)
    _register(Registered(algorithm, name, "python", folder, watched=source.watched))


def add_planned(function: Any, source: _sources.Source, algorithm: str, name: str, plan: tuple[list[str], list[str], bool],
                options: dict[str, Any]) -> None:
    """Registers what is called by position with values that are named, as a function of Python.

    Args:
        plan: names by position, names by keyword, and whether it writes the results that it is given.
    """
    _add_python(algorithm, name, source, _python_row(function, source, algorithm, name, plan, options))


# Compiled functions ---------------------------------------------------------------------------------------------------


class Lazy(Protocol):
    """A function that is compiled when a call needs it."""

    algorithm: str
    name: str
    platform: str
    backend: str
    priority: int

    def compile_for(self, call: Any) -> pathlib.Path | None: ...


_lazy: dict[tuple[str, str], Any] = {}


def add_lazy(function: Any) -> None:
    with _lock:
        _lazy[function.algorithm, function.name] = function


def add_compiled(function: Any, folder: pathlib.Path) -> None:
    """Registers what was compiled of a function."""
    for row in json.loads((folder / "pack.json").read_text())["kernels"]:
        _register(Registered(function.algorithm, row["name"], row["platform"], folder, family=function.name))


def take_up(function: Any) -> None:
    """Registers what was compiled of a function before, in this process or another."""
    for folder in sorted(cache_folder().glob(f"{function.prefix()}*")):
        if (folder / "pack.json").exists():
            add_compiled(function, folder)


def _plain(algorithm: str) -> str:
    return algorithm.partition("@")[0].lower()


def declared(algorithm: str) -> list[Any]:
    """The functions of an algorithm that are compiled when a call needs them."""
    with _lock:
        return [one for one in _lazy.values() if _plain(one.algorithm) == _plain(algorithm)]


def is_family(algorithm: str, name: str) -> bool:
    """Whether a name is that of a function whose kernels have names of their own: one for each call, or choice of dtypes."""
    return any(one.name == name for one in declared(algorithm)) and not any(
        row["name"] == name for row in runtimes.default().kernels(algorithm))


def _members(call: Any, name: str, platform: str | None) -> list[dict[str, Any]]:
    """Of the call's explanation, in the registry's order."""
    with _lock:
        names = {one.name for one in _registered.values() if one.family == name and _plain(one.algorithm) == _plain(call.operation.name)}
    return [row for row in json.loads(call.explain(True))["kernels"] if row["name"] in names and platform in (None, row["platform"])]


def member_for(call: Any, name: str, platform: str | None = None) -> str:
    """The kernel of a function that a call can have, the first in the registry's order; it is compiled where none is there yet.

    Raises:
        NotFoundError: none was compiled for the call, or none can run it.
    """
    for compiles in (True, False):
        rows = _members(call, name, platform)
        found = next((row["name"] for row in rows if row["eligible"]), None)
        if found is not None:
            return str(found)
        if compiles:
            compile_for(call)
    why = "; ".join(f"{row['name']}: {row['why']}" for row in rows)
    raise errors.NotFoundError(f"{name} has no kernel for {call.text}: {why or 'it is not for this device, or does not compile, which the log says'}")


def _check_globals(algorithm: str) -> None:
    """A worker has globals as they were when a function was registered: what it would verify is to be what runs here."""
    with _lock:
        rows = [one for one in _registered.values() if one.algorithm.split("@")[0] == algorithm.split("@")[0]]
    for row in rows:
        for one in row.watched:
            if one.has_changed():
                raise errors.InvalidArgumentError(one.words(f"{row.algorithm}: {row.name}"))


def compile_for(call: Any) -> None:
    """Compiles what a call needs of the functions that leave Python, before it is tuned or decided."""
    _check_globals(call.operation.name)
    with _lock:
        functions = [one for (algorithm, _), one in _lazy.items() if algorithm.split("@")[0] == call.operation.name.split("@")[0]]
    for function in functions:
        try:
            folder = function.compile_for(call)
        except Exception as error:  # any exception of the compiler
            _log.warning("%s of %s does not compile for %s and does not compete: %s: %s", function.name, function.algorithm, call.text,
                         type(error).__name__, error)
            continue
        if folder is not None:
            add_compiled(function, folder)


runtimes.before_contest = compile_for


def _register_cute(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    from hone import cute

    cute.register(function, algorithm, name, options, caller)


def _register_triton(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    from hone import triton

    triton.register(function, algorithm, name, options, caller)


def _register_export(platform: str, function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    from hone import _exports

    _exports.register(platform, function, algorithm, name, options, caller)


def name_of(function: Any) -> str:
    return _sources.name_of(function)


# Packs ----------------------------------------------------------------------------------------------------------------


class Pack(NamedTuple):
    """What :func:`pack` wrote."""

    folder: pathlib.Path
    lost: list[str]  # kernels that a reader without Python does not get, one text each


def _collect(folder: pathlib.Path, into: pathlib.Path, pack: dict[str, Any], written: dict[str, str], suffix: str = "") -> None:
    """Adds the kernels of a pack of the cache. Files keep their names, and so kernels their revisions, under which decisions are stored;
    where two of a name differ, the second goes into a folder of its own.

    Args:
        suffix: of the kernels' names.
    """
    document = json.loads((folder / "pack.json").read_text())
    pack["algorithms"] += [row for row in document.get("algorithms", []) if row not in pack["algorithms"]]
    for row in document["kernels"]:
        row["name"] += suffix
        parts = [part for part in (row, *row.get("files", []), *row.get("variants", [])) if "file" in part]
        place = ""
        if any(written.get(part["file"], part["sha256"]) != part["sha256"] for part in parts):
            place = f"{row['algorithm'].replace('@', '-')}/{row['name']}-{row['platform']}/"
        for part in parts:
            target = into / f"{place}{part['file']}"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / part["file"], target)
            part["file"] = f"{place}{part['file']}"
            written[part["file"]] = part["sha256"]
        pack["kernels"] = [one for one in pack["kernels"] if (one["algorithm"], one["name"], one["platform"]) != (
            row["algorithm"], row["name"], row["platform"])] + [row]


def pack(folder: Any, *algorithms: str, target: int | Iterable[int] | None = None, overwrite: bool = False) -> Pack:
    """Writes what this program registered as a pack, which any program loads (``HONE_PACK_PATH``).

    Args:
        folder: is made; what was edited in a ``pack.json`` that is there stays.
        algorithms: their names; none: all.
        target: compute capabilities that functions of Triton are compiled for, 90 for 9.0; None: those of the GPUs that are here, else 90.
            Of several one keeps the kernels' names, that of a GPU that is here, else the first; those of others end with _sm80.
        overwrite: what was edited goes.

    Returns:
        The folder, and what a program without Python loses.

    Raises:
        NotFoundError: nothing is registered, or nothing of an algorithm that is named.
        InvalidArgumentError: hone refuses the pack.
    """
    from hone import _packing

    archs = [target] if isinstance(target, int) else [*target] if target is not None else None
    wanted = {name.lower() for name in algorithms}
    with _lock:
        rows = [one for one in _registered.values() if not wanted or one.algorithm.lower() in wanted]
        lazy = [one for (name, _), one in _lazy.items() if not wanted or name.lower() in wanted]
    known = {one.algorithm.lower() for one in (*rows, *lazy)}
    if not known or wanted - known:
        raise errors.NotFoundError(f"this program has registered nothing{' of ' + ', '.join(sorted(wanted - known)) if wanted else ''}")
    into = pathlib.Path(folder)
    into.mkdir(parents=True, exist_ok=True)
    written: dict[str, Any] = {"hone_pack": 1, "name": into.resolve().name, "algorithms": [], "kernels": []}
    files: dict[str, str] = {}
    for one in rows:
        _collect(one.folder, into, written, files)
    for function in lazy:
        for made, suffix in _all_of(function, archs):
            _collect(made, into, written, files, suffix)
    if not written["algorithms"]:
        del written["algorithms"]
    told = _packing.write("hone.pack", into, written, overwrite)
    for words in told:
        _log.info("%s: kept as it was edited: %s", into, words)
    _raise_refusals(runtimes.Runtime(store="none").check_pack(str(into)))
    return Pack(into, _lost(written))


def _all_of(function: Any, archs: list[int] | None) -> list[tuple[pathlib.Path, str]]:
    """All that can be compiled of a function without a call, and what its kernels' names end with. What is for a GPU that is here, else for
    the first target, keeps its name, under which this program stores decisions; of other targets it ends with _sm80."""
    if not hasattr(function, "choices"):  # kernels that were exported for calls are registered already
        return []
    from hone import registry, triton

    here = sorted({arch for _, arch in triton._gpus(registry.devices())})
    found = archs or here or [90]
    plain = next((arch for arch in found if arch in here), found[0])
    made = []
    for chosen, arch in ((chosen, arch) for chosen in function.choices() for arch in found):
        try:
            made.append((function.compile(chosen, arch), "" if arch == plain else f"_sm{arch}"))
        except Exception as error:  # any exception of the compiler
            dtypes = f" with {', '.join(chosen.values())}" if chosen else ""
            raise errors.UnsupportedError(
                f"{function.name} of {function.algorithm} does not compile for sm_{arch}{dtypes}: {type(error).__name__}: {error}") from error
    return made


def _lost(written: dict[str, Any]) -> list[str]:
    references = {row["signature"].split("(")[0] for row in written.get("algorithms", [])}
    words = []
    for row in written["kernels"]:
        if row["platform"] == "python" and row["name"] == REFERENCE and row["algorithm"].split("@")[0] in {one.split("@")[0] for one in references}:
            words.append(f"{row['algorithm']}: its reference is a function of Python: a program without Python runs the other kernels by stored "
                         "decisions, and cannot tune or verify them")
        elif row["platform"] == "python":
            words.append(f"{row['algorithm']}: {row['name']} is a function of Python: a program without Python takes the next best")
    return words


def _register_library(function: Any, algorithm: str, name: str, options: dict[str, Any], caller: dict[str, Any]) -> None:
    from hone import libraries

    libraries.register(function, algorithm, name, options, caller)


# Registration functions by platform. They take (function, algorithm, name, options, globals of the caller).
Maker = Callable[[Any, str, str, dict[str, Any], dict[str, Any]], None]
PLATFORMS: dict[str, Maker] = {"python": _register_python, "ffi": _register_library, "triton": _register_triton, "cute": _register_cute,
                               "xla": functools.partial(_register_export, "xla"), "pallas": functools.partial(_register_export, "pallas")}
