"""ejkernel's names, on hone: ``from hone.ejkernel import ConfigCache, PersistentCache, kernel_registry, ...``.

What a name does is what ejkernel's own does; where hone itself does better, ``hone``'s name has it (docs/from-ejkernel.md).
"""

from __future__ import annotations

import os
from argparse import Namespace
from typing import Any

from hone import caches
from hone.caches import Cfg, overlay_cache
from hone.errors import UnsupportedError as EjkernelRuntimeError
from hone.implementations import Backend, KernelRegistry, KernelSpec, Platform, kernel_registry
from hone.invocations import AutotuningResult, Entry, autotune_lowered, get_invocations, record_invocation

__all__ = [
    "AutotuningResult", "Backend", "ConfigCache", "EjkernelRuntimeError", "Entry", "KernelRegistry", "KernelSpec",
    "PersistentCache", "Platform", "autotune_lowered", "get_invocations", "kernel_registry", "overlay_cache",
    "record_invocation",
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
