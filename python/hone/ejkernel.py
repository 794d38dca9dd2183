"""ejkernel's names, on hone: ``from hone.ejkernel import ConfigCache, PersistentCache, kernel_registry, ...``.

What a name does is what ejkernel's own does; where hone itself does better, ``hone``'s name has it (docs/from-ejkernel.md).
"""

from __future__ import annotations

import functools
import os
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from hone import caches, implementations
from hone.caches import Cfg, overlay_cache
from hone.errors import UnsupportedError as EjkernelRuntimeError
from hone.implementations import Backend, KernelRegistry, KernelSpec, Platform
from hone.invocations import AutotuningResult, Entry, autotune_lowered, get_invocations, record_invocation

__all__ = [
    "AutotuningResult", "Backend", "ConfigCache", "EjkernelRuntimeError", "Entry", "KernelRegistry", "KernelSpec",
    "PersistentCache", "Platform", "autotune_lowered", "get_invocations", "kernel_registry", "left_out", "overlay_cache",
    "record_invocation", "register", "why_not",
]


def __getattr__(name: str) -> Any:
    """What hone does not replace (Kernel, Executor, ConfigSelectorChain, Tuner, ...) is ejkernel's own, where it is
    installed."""
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        import ejkernel.ops
    except ImportError as error:
        raise AttributeError(f"hone.ejkernel has no {name!r}, and ejkernel, which might, is not installed") from error
    return getattr(ejkernel.ops, name)


def register(*operations: str, priority: int = 1000) -> list[str]:
    """Puts hone's operations into ejkernel's own ``kernel_registry``, so that an unchanged program of ejkernel's runs hone's
    kernels on the CPU: eager, under ``jit`` and under ``vmap``. Arguments that hone does not take (a mask, segments, ...),
    other devices, and gradients are left to ejkernel's own kernels; :func:`why_not` says which.

    Args:
        operations: their names; none: all that hone has. Those that stand there already are left as they are.
        priority: above ejkernel's own, which have 0.

    Returns:
        The names of the operations that hone stands in for.

    Raises:
        UnsupportedError: hone cannot stand in for an operation that is named; :func:`left_out` says why.
    """
    from hone import stand_ins

    return stand_ins.register(*operations, priority=priority)


def left_out() -> dict[str, str]:
    """The operations of ejkernel's that :func:`register` leaves alone, each with the reason."""
    from hone import stand_ins

    return stand_ins.left_out()


def why_not(operation: str, *args: Any, **keywords: Any) -> str | None:
    """Why a call of ejkernel's kernel with these arguments does not run hone's; None: it does, once it is registered.
    Arguments are those of the function in ejkernel's registry: by position their order is not that of ``ejkernel.modules``.
    """
    from hone import stand_ins

    return stand_ins.why_not_called(operation, args, keywords)


class ConfigCache(caches.ConfigCache[Cfg]):
    """A cache in memory. Overlays are asked by selectors, before it."""

    def get(self, dev: str, op_id: str, call_key: str) -> Cfg | None:
        return self._data.get((dev, op_id, call_key))


class PersistentCache(caches.PersistentCache[Cfg]):
    """A cache in ejkernel's file of its name, or in the place that is given: hone's stores as well. Objects without a
    cfg_type come back as ``argparse.Namespace``."""

    def _default_place(self) -> str:
        folder = os.environ.get("EJKERNEL_PERSISTENT_CACHE_DIR", "~/ejkernel-presistent-cache")
        return os.path.join(os.path.expanduser(folder), f"{self.opname}.json")

    def _typed(self, members: dict[str, Any]) -> Any:
        return Namespace(**members) if self.cfg_type is None else super()._typed(members)


@functools.cache
def _of_ejkernel() -> Any:
    """ejkernel's own registry, where it is installed; else an empty one."""
    try:
        from ejkernel.kernels import kernel_registry
    except ImportError:
        return KernelRegistry()
    return kernel_registry


class _Registry(KernelRegistry):
    """:data:`hone.kernel_registry`, with ejkernel's kernels behind hone's where ejkernel is installed."""

    def __init__(self, front: KernelRegistry):
        self._registry, self._with_hone, self._lock = front._registry, front._with_hone, front._lock

    def get(
        self, algorithm: str, platform: Platform | str | None = None, backend: Backend | str | None = None
    ) -> Callable[..., Any]:
        try:
            return super().get(algorithm, platform, backend)
        except implementations.MissingError:
            try:
                asked = None if platform is None or platform == "auto" else str(platform)
                return _of_ejkernel().get(algorithm, asked, None if backend is None else str(backend))
            except (ValueError, RecursionError):  # circular arguments, which match nothing
                pass
            raise

    def list_algorithms(self) -> list[str]:
        return sorted({*super().list_algorithms(), *_of_ejkernel().list_algorithms()})

    def list_implementations(self, algorithm: str) -> list[KernelSpec]:
        return [*super().list_implementations(algorithm), *_of_ejkernel().list_implementations(algorithm)]

    def validate_signatures(self, algorithm: str | None, verbose: bool = False) -> bool:
        if algorithm is None:
            return super().validate_signatures(None, verbose)
        theirs = _of_ejkernel()
        known = algorithm.lower() in theirs.list_algorithms()
        front = algorithm.lower() in super().list_algorithms()
        return (super().validate_signatures(algorithm, verbose) if front or not known else True) and (
            bool(theirs.validate_signatures(algorithm, verbose)) if known else True)


kernel_registry = _Registry(implementations.kernel_registry)


if __name__ == "__main__":
    import sys

    from hone import ejkernel_packs

    sys.exit(ejkernel_packs.main())
