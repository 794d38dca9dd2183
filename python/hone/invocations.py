"""Calls of a program's own kernels: recorded, found again in the program that JAX lowered, and tuned by its own tuner.

    lowered = jax.jit(my_model).lower(example_input)
    result = hone.autotune_lowered(selector, lowered)
    with result:
        output = jax.jit(my_model)(real_input)

hone tunes its own kernels for such a program with :func:`hone.offline`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import threading
import types
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from hone import runtimes
from hone.caches import Key, overlay_cache

# The kernel, positional arguments and keyword arguments of a call.
Call = tuple[Any, tuple[Any, ...], dict[str, Any]]

LABEL = "ejkernel_ops#"
_lock = threading.Lock()
_calls: dict[str, dict[str, dict[str, Call]]] = {}


def record_invocation(
    dev: str, op_id_v: str, call_key: str, kernel: Any, args: tuple[Any, ...] | list[Any], kwargs: dict[str, Any]
) -> None:
    """Keeps a call of a kernel in place of the one with the same device, operation and key.

    Args:
        dev: the device's fingerprint.
        op_id_v: operation and version, ``"matmul@v1"``.
        call_key: of the call, by which its label in a program names it.
        kernel: what :func:`autotune_lowered` asks for candidates and runs.
    """
    with _lock:
        _calls.setdefault(dev, {}).setdefault(op_id_v, {})[call_key] = (kernel, tuple(args), dict(kwargs))


def get_invocations(dev: str) -> dict[str, dict[str, Call]]:
    """The calls of a device by operation and key, as they are now; also those that ejkernel recorded in this process."""
    with _lock:
        own = {name: dict(calls) for name, calls in _calls.get(dev, {}).items()}
    found = {name: dict(calls) for name, calls in _of_ejkernel(dev).items()}
    for name, calls in own.items():
        found.setdefault(name, {}).update(calls)
    return found


def _of_ejkernel(dev: str) -> dict[str, dict[str, Call]]:
    original = sys.modules.get("ejkernel.ops.registry")
    return {} if original is None else original.get_invocations(dev)


# --- results


@dataclasses.dataclass(frozen=True)
class Entry:
    """The config of one call."""

    op_id_v: str
    call_key: str
    cfg: Any


@dataclasses.dataclass(frozen=True)
class AutotuningResult:
    """What :func:`autotune_lowered` found. Entered with ``with``, its configs stand before all caches.

    Attributes:
        failed: labels of the operations that were not tuned, with the reason.
    """

    device: str
    entries: tuple[Entry, ...]
    failed: tuple[tuple[str, str], ...] = ()

    def as_overlay(self) -> dict[Key, Any]:
        """The configs as :class:`hone.overlay_cache` takes them."""
        return {(self.device, entry.op_id_v, entry.call_key): entry.cfg for entry in self.entries}

    def __enter__(self) -> AutotuningResult:
        overlay_cache(self.as_overlay()).__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        overlay_cache({}).__exit__(kind, error, trace)  # leaves the overlay that was entered last


# --- tuning


def _device() -> tuple[str, str]:
    """The fingerprint of JAX's first device, in ejkernel's form, and the suffix of a kernel's methods for it."""
    import jax

    device = jax.devices()[0]
    kind, version = device.device_kind, getattr(device.client, "platform_version", "")
    return f"{kind}|{version}", "gpu" if device.platform in ("gpu", "cuda", "rocm") else device.platform


def _concrete(value: Any) -> Any:
    """An array in place of what was traced: what is timed must run."""
    import jax
    import jax.numpy as jnp
    import numpy

    if not isinstance(value, (jax.core.Tracer, jax.ShapeDtypeStruct)):
        return value
    if not jnp.issubdtype(value.dtype, jnp.floating):
        return jnp.zeros(value.shape, value.dtype)
    return jnp.asarray(numpy.random.default_rng(0).standard_normal(value.shape), value.dtype)


def _method(kernel: Any, name: str, platform: str) -> Callable[..., Any]:
    return getattr(kernel, f"{name}_{platform}", None) or getattr(kernel, name)


def _tuned(selector: Any, call: Call, platform: str, prepared: bool) -> Any:
    """The fastest config of a call, by the selector's tuner; None: no candidate ran."""
    import jax

    kernel, args, keywords = call
    args, keywords = jax.tree_util.tree_map(_concrete, (args, keywords))
    if not prepared:
        args, keywords = kernel.prepare(*args, **keywords)
    fixed = {name: value for name, value in keywords.items() if callable(value)}
    given = {name: value for name, value in keywords.items() if name not in fixed}
    invocation = types.SimpleNamespace(
        op_id=kernel.op_id, args=args, kwargs=keywords, batch_axes=None, override_cfg=None, stamp=False, method=None,
        mesh=None, in_specs=None, out_specs=None, check_vma=False)
    run = _method(kernel, "run", platform)

    def under(config: Any) -> Callable[..., Any]:
        return lambda *arrays, **rest: run(*arrays, cfg=config, **rest, **fixed)

    candidates = tuple(_method(kernel, "candidate_cfgs", platform)(invocation))
    with getattr(jax.core, "eval_context", contextlib.nullcontext)():
        return selector.tuner.autotune(under, args, given, candidates)


def _labelled(lowered: Any) -> Iterator[tuple[str, str, str]]:
    """Each operation that has a label in a program: the label, operation with version, and key."""
    for row in runtimes.default().read(lowered).operations:
        label = row["label"] or ""
        if label.startswith(LABEL):
            yield label, f"{row['algorithm']}@v{row['version']}", row["key"]


def autotune_lowered(selector: Any, lowered: Any) -> AutotuningResult:
    """Tunes the recorded calls that a program makes, each once.

    Args:
        selector: has a ``tuner`` (``autotune(make, args, kwargs, candidates)``), a ``cache`` and, perhaps None, a
            ``persistent`` one, as ejkernel's ``ConfigSelectorChain``; what is found is put into both, into the second
            unless ``persist_autotune`` is false.
        lowered: what ``jax.jit(function).lower(...)`` gives; or the program's text, bytes or path.

    Returns:
        What was found, and what was not tuned: a call that was not recorded, that no candidate could run, or that failed.
    """
    device, platform = _device()
    own, originals = _calls.get(device, {}), _of_ejkernel(device)
    entries, failed = [], []
    for label, op_id_v, key in _labelled(lowered):
        given = own.get(op_id_v, {}).get(key)
        call = given or originals.get(op_id_v, {}).get(key)
        if call is None:
            failed.append((label, "it was not recorded: EJKERNEL_OPS_RECORD=1, or hone.record_invocation"))
            continue
        try:
            config = _tuned(selector, call, platform, prepared=given is None)  # ejkernel records prepared arguments
        except Exception as error:  # raised by a kernel or a tuner: continue with the other calls
            failed.append((label, f"{type(error).__name__}: {error}"))
            continue
        if config is None:
            failed.append((label, "no candidate ran"))
            continue
        selector.cache.put(device, op_id_v, key, config)
        if selector.persistent is not None and getattr(selector, "persist_autotune", True):
            selector.persistent.put(device, op_id_v, key, config)
        entries.append(Entry(op_id_v, key, config))
    return AutotuningResult(device, tuple(entries), tuple(failed))
