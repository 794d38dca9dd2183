"""Waits for the import of a module of others, which is slow and which most programs do without: hone does not import it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class _Finder:
    """First in ``sys.meta_path`` until the module comes."""

    def __init__(self, name: str, then: Callable[[], None]):
        self.name, self.then, self.is_asking = name, then, False

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name or self.is_asking:
            return None
        self.is_asking = True  # while it asks the other finders
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.is_asking = False
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def execute_and_follow(module: ModuleType) -> Any:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)  # type: ignore[arg-type]
                self.then()

        spec.loader.exec_module = execute_and_follow  # type: ignore[method-assign]
        return spec


def once_imported(name: str, then: Callable[[], None]) -> None:
    """Calls a function as soon as a module has been imported; now, if it has been."""
    if name in sys.modules:
        then()
    else:
        sys.meta_path.insert(0, _Finder(name, then))  # type: ignore[arg-type]
