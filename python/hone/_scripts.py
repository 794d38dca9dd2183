"""Runs kernels that are functions of Python: what libhone asks this interpreter for, in the program and in its workers."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import platform
import signal
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from hone import _hone, _watch

# numpy's names of hone's dtypes, and integer dtypes of the same size for dtypes that numpy or torch cannot view.
_DTYPES = {"bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16", "u32": "uint32",
           "u64": "uint64", "f16": "float16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
           "bf16": "bfloat16", "f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2"}
_RAW = {"bf16": "int16", "f8_e4m3fn": "int8", "f8_e5m2": "int8"}
_WIDE = frozenset(("f16", "f32", "bf16", "f8_e4m3fn", "f8_e5m2"))
_CPU = frozenset((1, 3))  # DLPack's numbers: the host's memory, pinned or not
_LOOKS = 4

live: dict[str, Callable[..., Any]] = {}  # functions of this program, by the digest of their file and their name
watched: dict[str, tuple[Any, ...]] = {}  # of the same: globals that it reads, with the values that were verified
in_worker = False
imports: set[str] = set()  # slow modules that functions of this program use: a worker imports them before its first candidate


# Arrays over hone's memory --------------------------------------------------------------------------------------------


class _Memory:
    """What numpy, torch and CuPy make an array of without a copy."""

    __slots__ = ("__array_interface__", "__cuda_array_interface__", "__weakref__")


class _Lent(threading.local):
    """The memory of the arrays of a run, by the parameter's name; None: it is not recorded."""

    made: list[tuple[str, weakref.ref[_Memory]]] | None = None
    name = ""


_lent = _Lent()


def _memory() -> _Memory:
    memory = _Memory()
    if _lent.made is not None:
        _lent.made.append((_lent.name, weakref.ref(memory)))
    return memory


@functools.lru_cache(maxsize=64)
def _numpy_dtype(name: str) -> Any:
    import numpy

    if name in _RAW:
        import ml_dtypes

        return numpy.dtype(getattr(ml_dtypes, _DTYPES[name]))
    return numpy.dtype(_DTYPES[name])


def _interface(tensor: tuple[Any, ...], dtype: Any, read_only: bool) -> dict[str, Any]:
    address, _, shape, strides = tensor
    return {"version": 3, "data": (address, read_only), "shape": shape, "typestr": dtype.str,
            "strides": tuple(step * dtype.itemsize for step in strides)}


def _numpy_view(tensor: tuple[Any, ...], read_only: bool) -> Any:
    import numpy

    name = tensor[1]
    raw = numpy.dtype(_RAW.get(name) or _DTYPES[name])
    if 0 in tensor[2]:
        return numpy.empty(tensor[2], _numpy_dtype(name))
    memory = _memory()
    memory.__array_interface__ = _interface(tensor, raw, read_only)
    array = numpy.asarray(memory)
    return array.view(_numpy_dtype(name)) if name in _RAW else array


def _torch_view(tensor: tuple[Any, ...], device: tuple[int, int]) -> Any:
    import numpy
    import torch

    name = tensor[1]
    kind = getattr(torch, _DTYPES[name])
    if 0 in tensor[2]:
        return torch.empty(tensor[2], dtype=kind, device="cpu" if device[0] in _CPU else f"cuda:{device[1]}")
    memory = _memory()
    raw = numpy.dtype(_RAW.get(name) or _DTYPES[name])
    if device[0] in _CPU:
        memory.__array_interface__ = _interface(tensor, raw, False)
        made = torch.from_numpy(numpy.asarray(memory))
    else:
        memory.__cuda_array_interface__ = _interface(tensor, raw, False)
        made = torch.as_tensor(memory, device=f"cuda:{device[1]}")
    return made.view(kind) if name in _RAW else made


class _Numpy:
    """How arrays of numpy are made, widened and written."""

    def view(self, tensor: tuple[Any, ...], device: tuple[int, int], written: bool) -> Any:
        return _numpy_view(tensor, not written)

    def widen(self, array: Any) -> Any:
        return array.astype("float64")

    def around(self, device: tuple[int, int], stream: int) -> Any:
        import numpy

        return numpy.errstate(all="ignore")

    def take(self, value: Any) -> Any:
        import numpy

        if isinstance(value, numpy.ma.MaskedArray):
            raise TypeError("gives a masked array, whose mask no result has")
        return numpy.asarray(value)

    def dtype_of(self, array: Any) -> str:
        return str(array.dtype)

    def put(self, target: Any, value: Any) -> None:
        import numpy

        numpy.copyto(target, value, casting="unsafe")


class _Torch:
    """The same of torch's tensors."""

    def view(self, tensor: tuple[Any, ...], device: tuple[int, int], written: bool) -> Any:
        return _torch_view(tensor, device)

    def widen(self, array: Any) -> Any:
        return array.double()

    @contextlib.contextmanager
    def around(self, device: tuple[int, int], stream: int) -> Any:
        import torch

        with torch.no_grad():
            if device[0] in _CPU or torch.cuda.current_stream(device[1]).cuda_stream == stream:
                yield
            elif stream == 0:
                with torch.cuda.stream(torch.cuda.default_stream(device[1])):
                    yield
            else:
                with torch.cuda.stream(torch.cuda.ExternalStream(stream, f"cuda:{device[1]}")):
                    yield

    def take(self, value: Any) -> Any:
        import torch

        return value if isinstance(value, torch.Tensor) else torch.as_tensor(value)

    def dtype_of(self, array: Any) -> str:
        return str(array.dtype).removeprefix("torch.")

    def put(self, target: Any, value: Any) -> None:
        target.copy_(value)


class _Jax(_Numpy):
    """The same of JAX's arrays, which are made by a copy and never written."""

    def view(self, tensor: tuple[Any, ...], device: tuple[int, int], written: bool) -> Any:
        array = _numpy_view(tensor, not written)
        if written:
            return array
        import jax

        return jax.numpy.array(array)

    def widen(self, array: Any) -> Any:
        return array.astype("float64")

    @contextlib.contextmanager
    def around(self, device: tuple[int, int], stream: int) -> Any:
        import jax

        with jax.default_device(jax.devices("cpu")[0]):
            yield


_FAMILIES: dict[str, Any] = {"numpy": _Numpy(), "torch": _Torch(), "jax": _Jax()}
_WIDE_JAX = contextlib.nullcontext


def _x64() -> Any:
    """Enables float64 in JAX, which does not use it by default."""
    import jax

    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable
    return enable(True)


# Function runs --------------------------------------------------------------------------------------------------------


class _Environment:
    """Restores the environment when the last of the concurrent runs and imports ends. Compilers pass messages in environment variables,
    and those must not count as changes by the candidate. A compiler may work in any run, when a shape or an alignment is new."""

    def __init__(self) -> None:
        self.lock, self.under_way = threading.Lock(), 0
        self.before: dict[Any, Any] = {}

    def __enter__(self) -> None:
        with self.lock:
            if self.under_way == 0:
                self.before = dict(os.environ._data)  # type: ignore[attr-defined]
            self.under_way += 1

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.under_way -= 1
            if self.under_way == 0 and os.environ._data != self.before:  # type: ignore[attr-defined]
                self._restore()

    def _restore(self) -> None:
        now = os.environ._data  # type: ignore[attr-defined]
        for name in [name for name in now if name not in self.before]:
            os.unsetenv(name)
            del now[name]
        for name, value in self.before.items():
            if now.get(name) != value:
                os.putenv(name, value)
                now[name] = value


_same_environment = _Environment()


class Script:
    """A function for one call and config: called with the values of a run, it fills the results."""

    def __init__(self, function: Callable[..., Any], facts: dict[str, Any], config: dict[str, Any], signature: str,
                 device: tuple[int, int], is_reference: bool, globals_read: tuple[Any, ...] = ()):
        self.watched = globals_read
        self.function, self.config, self.is_reference = function, config, is_reference
        self.device = device = (1, 0) if is_reference else device  # a reference runs on host memory, whatever the call's device
        self.parameters = _parameters(signature)
        self.family = _FAMILIES[facts.get("arrays", "numpy")]
        self.is_jax = isinstance(self.family, _Jax)
        self.positional: list[str] = facts["positional"]
        self.keywords: list[str] = facts["keywords"]
        self.writes: bool = facts.get("writes", False)
        self.lends: bool = facts.get("lends", False)  # marks all memory as writable, because DLPack has no read-only arrays
        self.compiles = in_worker and bool(facts.get("compiles"))
        # The number of runs of a contest that check that the function keeps no array. Not on a GPU: packages may keep arrays for a while.
        self.looks = _LOOKS if in_worker and not is_reference and device[0] in _CPU else 0
        if device[0] not in _CPU and not isinstance(self.family, _Torch):
            raise NotImplementedError(f"its arrays are {facts.get('arrays', 'numpy')}'s, and the call's lie on a GPU: torch's can")

    def __call__(self, values: tuple[Any, ...], stream: int) -> None:
        if not self.compiles:
            return self._call(values, stream)
        with _same_environment:
            return self._call(values, stream)

    def _call(self, values: tuple[Any, ...], stream: int) -> None:
        with self.family.around(self.device, stream):
            if self.is_reference and self.is_jax:
                with _x64():
                    return self._run(values)
            return self._run(values)

    def _run(self, values: tuple[Any, ...]) -> None:
        for one in self.watched:
            if one.has_changed():
                raise RuntimeError(one.words("it"))
        if self.looks == 0:
            return self._run_once(values)
        self.looks -= 1
        _lent.made = made = []
        try:
            self._run_once(values)
        finally:
            _lent.made = None
        if _keeps_none(made):
            self.looks = 0  # no check in later runs: garbage collection takes longer than a run, and would count in its time

    def _run_once(self, values: tuple[Any, ...]) -> None:
        named: dict[str, Any] = dict(self.config)
        results = []
        for parameter, value in zip(self.parameters, values):
            if type(value) is tuple:
                is_result = parameter["is_result"]
                name = value[1]
                _lent.name = parameter["name"]
                value = self.family.view(value, self.device, is_result or self.lends)
                if is_result:
                    results.append((parameter["name"], value))
                elif self.is_reference and name in _WIDE:
                    value = self.family.widen(value)
            named[parameter["name"]] = value
        came = self.function(*[named[name] for name in self.positional], **{name: named[name] for name in self.keywords})
        if not self.writes:
            self._put(results, came)

    def _put(self, results: list[tuple[str, Any]], came: Any) -> None:
        if isinstance(came, dict):
            missing = [name for name, _ in results if came.get(name) is None]
            if missing:
                given = ", ".join(repr(name)[:40] for name in [*came][:8]) or "no names"
                raise ValueError(f"gives no {missing[0]}: the dict that it returns has {given}, and the results are {', '.join(name for name, _ in results)}")
            came = tuple(came.get(name) for name, _ in results)
        elif not isinstance(came, (tuple, list)) or len(results) == 1 and not isinstance(came, tuple):
            came = (came,)
        if len(came) != len(results):
            raise ValueError(f"returns {len(came)} results, expected {len(results)} by the signature: {', '.join(name for name, _ in results)}")
        for (name, target), value in zip(results, came):
            if value is None:
                raise TypeError(f"gives no {name}: it returns None")
            value = self.family.take(value)
            if tuple(value.shape) != tuple(target.shape):
                raise ValueError(f"gives {name} of shape {tuple(value.shape)}, expected {tuple(target.shape)}")
            dtype, wanted = self.family.dtype_of(value), self.family.dtype_of(target)
            if dtype != wanted and not self.is_reference:
                raise TypeError(f"gives {name} as {dtype}, expected {wanted}")
            self.family.put(target, value)


def _keeps_none(made: list[tuple[str, weakref.ref[_Memory]]]) -> bool:
    """Of the call's memory that the function has arrays of when it has returned: the caller's may be gone by the next run, or another's.

    Returns:
        Whether garbage had to be collected to know, as a function inside of it that refers to itself is.
    """
    if all(memory() is None for _, memory in made):
        return False
    gc.collect()
    for name, memory in made:
        if memory() is not None:
            raise RuntimeError(f"keeps {name} when it has returned, whose memory is the caller's: keep a copy")
    return True


@functools.lru_cache(maxsize=256)
def _parameters(signature: str) -> list[dict[str, Any]]:
    return _hone.signature(signature)[3]


# Exceptions of the program in a run -----------------------------------------------------------------------------------


def _code_of(handler: Any) -> types.CodeType | None:
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    if not hasattr(function, "__code__"):
        function = getattr(type(handler), "__call__", None)
    return getattr(function, "__code__", None)


def is_interrupt(exception: BaseException) -> bool:
    """Whether the program raised it into a kernel's run: Ctrl-C, or from a handler of signals of its own, such as a limit of time."""
    if in_worker:
        return False
    if isinstance(exception, KeyboardInterrupt):
        return True
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = exception.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


# Loading --------------------------------------------------------------------------------------------------------------

_modules: dict[tuple[str, str], types.ModuleType] = {}


def _forget(modules: list[str], folder: str) -> None:
    """Modules of the program that another pack brought: names may mean other files there."""
    for name in modules:
        module = sys.modules.get(name)
        if module is not None and not str(getattr(module, "__file__", "")).startswith(folder + os.sep):
            del sys.modules[name]


def _load(path: str, sha256: str, source: str, modules: list[str]) -> types.ModuleType:
    folder = os.path.dirname(path)
    known = _modules.get((folder, sha256))
    if known is not None:
        return known
    module = types.ModuleType(f"hone_function_{sha256[:12]}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    if modules:
        _forget(modules, folder)
        sys.path.insert(0, folder)
    try:
        exec(compile(source, path, "exec", dont_inherit=True), vars(module))
    except BaseException:
        del sys.modules[module.__name__]
        raise
    finally:
        if modules:
            sys.path.remove(folder)
    _modules[folder, sha256] = module
    return module


def prepare(path: str, sha256: str, source: str, entry: str, facts: str, config: str, signature: str, device: tuple[int, int],
            is_reference: bool) -> Script:
    """What libhone runs: called once for each plan."""
    told = json.loads(facts)
    function = None if in_worker else live.get(f"{sha256}:{entry}")
    if function is None:
        with _same_environment if in_worker else contextlib.nullcontext():
            module = _load(path, sha256, source, told.get("modules", []))
        function = getattr(module, entry, None)
        if not callable(function):
            raise AttributeError(f"its file has no function {entry}")
    for parameter in _parameters(signature):
        if parameter["kind"] == "tensor" and any(word in parameter["type"] for word in ("i4[", "u4[")):
            raise NotImplementedError(f"{parameter['name']} may be of i4 or u4, of which arrays of Python know nothing")
    read = () if in_worker else watched.get(f"{sha256}:{entry}", ())
    return Script(function, told, json.loads(config), signature, device, is_reference, read)


def _worker_words() -> tuple[str, ...]:
    path = [place for place in sys.path if isinstance(place, str)]
    if not sys.executable:
        return ()
    program = f"import sys; sys.path[:] = {path!r}\nfrom hone import _worker\n_worker.main({sorted(imports)!r})"
    return sys.executable, "-c", program


def need(packages: Mapping[str, str], compiles: bool) -> None:
    """Notes what a function imports."""
    found = {name for name in ("torch", "jax") if name in packages}
    if compiles and "torch" in found:
        found.add("torch._inductor.compile_fx")
    if not found <= imports:
        imports.update(found)
        lend()


def _packages() -> str:
    """The folders that this interpreter imports from, as libhone takes them."""
    places = [place for place in sys.path if isinstance(place, str) and os.path.isabs(place) and ":" not in place and "\0" not in place]
    return ":".join(place for place in dict.fromkeys(places) if place.isprintable() and os.path.isdir(place))


def lend() -> None:
    """Lends this interpreter to libhone; again where sys.path or what workers import has changed."""
    _hone.lend(prepare, _watch.watch, f"Python {platform.python_version()}", _worker_words(), _packages())
