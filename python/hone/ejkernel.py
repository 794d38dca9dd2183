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

__all__ = [
    "Backend", "ConfigCache", "EjkernelRuntimeError", "KernelRegistry", "KernelSpec", "PersistentCache", "Platform",
    "kernel_registry", "overlay_cache",
]


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
