"""What a candidate changes of the interpreter that it runs in, which all candidates of a worker and later the program share."""

from __future__ import annotations

import _tracemalloc  # the C part of tracemalloc, whose Python part is slow to import
import gc
import sys
from collections.abc import Callable, Iterator
from typing import Any

# Modules and classes whose functions a candidate must not replace, because other kernels or the verification call them.
_MODULES = (
    "builtins", "sys", "os", "gc", "time", "math", "cmath", "random", "threading", "weakref", "operator", "functools", "itertools", "contextlib",
    "json", "struct", "array", "ctypes", "numpy", "numpy.linalg", "numpy.fft", "numpy.random", "scipy.special", "scipy.linalg", "torch",
    "torch.linalg", "torch.special", "torch.fft", "torch.nn.functional", "torch.Tensor", "torch.cuda", "jax", "jax.numpy", "jax.lax", "jax.nn", "ml_dtypes",
    "hone", "hone.torch", "hone.jax", "hone._scripts", "hone._hone", "hone._scripts.Script", "hone._scripts._Numpy", "hone._scripts._Torch", "hone._scripts._Jax",
)

RECURSION = "sys.setrecursionlimit"
_MISSING = object()


def _owner(name: str) -> Any:
    """The module, or the class in one."""
    found = sys.modules.get(name)
    if found is None and "." in name:
        module, _, attribute = name.rpartition(".")
        found = vars(sys.modules[module]).get(attribute) if module in sys.modules else None
        found = found if isinstance(found, type) else None
    return found


def _functions() -> dict[str, tuple[Any, dict[str, Any]]]:
    found = {}
    for name in _MODULES:
        owner = _owner(name)
        if owner is not None:
            found[name] = (owner, {key: value for key, value in dict(vars(owner)).items() if callable(value) and not isinstance(value, type)})
    return found


# Settings: what is read, and how it is put back -----------------------------------------------------------------------


def _torch_settings(torch: Any) -> Iterator[tuple[str, Any, Callable[[Any], object]]]:
    yield "torch's default dtype", torch.get_default_dtype(), torch.set_default_dtype
    if hasattr(torch, "get_default_device"):
        yield "torch's default device", str(torch.get_default_device()), torch.set_default_device
    yield "torch's number of threads", torch.get_num_threads(), torch.set_num_threads
    yield "torch's mode of gradients", torch.is_grad_enabled(), torch.set_grad_enabled
    yield "torch's deterministic algorithms", torch.are_deterministic_algorithms_enabled(), torch.use_deterministic_algorithms
    yield "torch's precision of f32 products", torch.get_float32_matmul_precision(), torch.set_float32_matmul_precision
    # Which libraries torch may call, and how: without one, the products of all other candidates would be slower.
    for name in ("mkldnn.enabled", "cudnn.enabled", "cudnn.benchmark", "cudnn.deterministic", "cudnn.allow_tf32", "cuda.matmul.allow_tf32"):
        owner, attribute = torch.backends, name.rpartition(".")[2]
        for part in name.split(".")[:-1]:
            owner = getattr(owner, part, None)
        value = getattr(owner, attribute, _MISSING)
        if value is not _MISSING:
            yield f"torch.backends.{name}", value, lambda value, owner=owner, attribute=attribute: setattr(owner, attribute, value)
    if hasattr(torch, "is_anomaly_enabled"):
        yield "torch's search for anomalies", torch.is_anomaly_enabled(), torch.autograd.set_detect_anomaly


def _numpy_settings(numpy: Any) -> Iterator[tuple[str, Any, Callable[[Any], object]]]:
    yield "numpy's handling of errors", numpy.geterr(), lambda value: numpy.seterr(**value)
    yield "numpy's print options", numpy.get_printoptions(), lambda value: numpy.set_printoptions(**value)
    yield "numpy's size of buffers", numpy.getbufsize(), numpy.setbufsize


def _jax_settings(jax: Any) -> Iterator[tuple[str, Any, Callable[[Any], object]]]:
    for name in ("jax_enable_x64", "jax_default_matmul_precision", "jax_disable_jit", "jax_numpy_dtype_promotion", "jax_debug_nans", "jax_platforms"):
        value = getattr(jax.config, name, _MISSING)
        if value is not _MISSING:
            yield f"JAX's {name}", value, lambda value, name=name: jax.config.update(name, value)


def _put_callbacks(value: tuple[Any, ...]) -> None:
    gc.callbacks[:] = value


def _put_path(value: tuple[str, ...]) -> None:
    sys.path[:] = value


def _put_decimal(decimal: Any) -> Callable[[Any], object]:
    return lambda value: decimal.setcontext(decimal.Context(prec=value[0], rounding=value[1], Emin=value[2], Emax=value[3]))


def _settings() -> Iterator[tuple[str, Any, Callable[[Any], object]]]:
    yield RECURSION, sys.getrecursionlimit(), sys.setrecursionlimit
    yield "sys.setswitchinterval", sys.getswitchinterval(), sys.setswitchinterval
    if hasattr(sys, "get_int_max_str_digits"):
        yield "sys.set_int_max_str_digits", sys.get_int_max_str_digits(), sys.set_int_max_str_digits
    yield "sys.settrace", sys.gettrace(), sys.settrace
    yield "sys.setprofile", sys.getprofile(), sys.setprofile
    yield "sys.path", tuple(sys.path), _put_path
    for name in ("stdin", "stdout", "stderr"):
        yield f"sys.{name}", getattr(sys, name, None), lambda value, name=name: setattr(sys, name, value)
    yield "the collector of garbage", gc.isenabled(), lambda value: gc.enable() if value else gc.disable()
    yield "the thresholds of the collector of garbage", gc.get_threshold(), lambda value: gc.set_threshold(*value)
    yield "objects that the collector of garbage leaves out", gc.get_freeze_count() > 0, lambda value: None if value else gc.unfreeze()
    yield "the callbacks of the collector of garbage", tuple(gc.callbacks), _put_callbacks
    yield "tracemalloc", _tracemalloc.is_tracing(), lambda value: _tracemalloc.start() if value else _tracemalloc.stop()
    threading = sys.modules.get("threading")
    if threading is not None:
        yield "threading.settrace", getattr(threading, "_trace_hook", None), threading.settrace
        yield "threading.setprofile", getattr(threading, "_profile_hook", None), threading.setprofile
    decimal = sys.modules.get("decimal")
    if decimal is not None:
        context = decimal.getcontext()
        yield "decimal's context", (context.prec, context.rounding, context.Emin, context.Emax), _put_decimal(decimal)
    for name, read in (("numpy", _numpy_settings), ("torch", _torch_settings), ("jax", _jax_settings)):
        if name in sys.modules:
            yield from read(sys.modules[name])


# Around a candidate ---------------------------------------------------------------------------------------------------

BEGINS, PREPARED, ENDS, RACES, RACED = range(5)  # hone_interpreter_stage, include/hone/interpreter.h

_noted_functions: dict[str, tuple[Any, dict[str, Any]]] = {}
_noted_settings: dict[str, Any] = {}


def _note_settings() -> None:
    _noted_settings.clear()
    _noted_settings.update({name: value for name, value, _ in _settings()})


def _restore() -> list[str]:
    """Undoes changes of functions and settings, and returns their names."""
    changed = []
    for name, (owner, functions) in _noted_functions.items():
        now = vars(owner)
        for key, value in functions.items():
            if now.get(key, _MISSING) is not value:
                changed.append(f"{name}.{key}")
                setattr(owner, key, value)
    for name, value, put in list(_settings()):
        before = _noted_settings.get(name, _MISSING)
        if name == RECURSION and before is not _MISSING and value > before:
            continue  # compilers raise the limit when they are imported, perhaps in a first run, and a higher limit is harmless
        if before is not _MISSING and before is not value and before != value:
            changed.append(name)
            put(before)
    return changed


def watch(stage: int) -> str:
    """What libhone asks of a worker's interpreter around each candidate.

    Returns:
        At the end: what was changed since, in words; nothing: nothing was. It is put back.
    """
    if stage == ENDS:
        changed = _restore()
        return " and ".join(changed[:2]) + (f" and {len(changed) - 2} more" if len(changed) > 2 else "")
    if stage in (RACES, RACED):
        # A thread keeps the interpreter lock for 5 ms. A run that releases it at each operation would take a hundred times as long.
        sys.setswitchinterval(5e-5 if stage == RACES else _noted_settings["sys.setswitchinterval"])
        return ""
    if stage == BEGINS:
        _noted_functions.clear()
        _noted_functions.update(_functions())
    # Settings that a module changes when it is imported stay: they are the program's choice.
    _note_settings()
    return ""
