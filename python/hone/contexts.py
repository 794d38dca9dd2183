"""Other choices for a stretch of code: overlays, overrides and policies.

A context is entered with ``with``, is current for the task or thread that entered it (it stands in a
``contextvars.ContextVar``), and costs nothing where none was ever entered.
"""

from __future__ import annotations

import contextvars
import json
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

from hone import _hone

_current: contextvars.ContextVar[Any] = contextvars.ContextVar("hone.context", default=None)
# What was current before each context that is entered, newest first: (previous, the rest), or None.
_entered: contextvars.ContextVar[Any] = contextvars.ContextVar("hone.entered", default=None)
# Called with the native context, or None, whenever another one becomes current. hone.jax is one.
_observers: list[Callable[[Any], None]] = []

# Derived contexts that one manager keeps: one for each context in which it is entered.
_KEPT = 16

Config = Mapping[str, Any] | str | None


def current() -> Any:
    """The native context that calls of this task or thread are made under, or None."""
    return _current.get()


def digest() -> int:
    """What the current context says, as a number: contexts that are alike have the same in every process. 0: nothing."""
    context = _current.get()
    return 0 if context is None else context.digest


def _make_current(native: Any) -> None:
    _current.set(native)
    for observer in _observers:
        observer(native)


class Context:
    """Overlays, overrides and a policy, to be entered with ``with``. What is entered last is asked first.

    One may be entered several times, also by several threads. Made by :func:`hone.overlay`, :func:`hone.override`,
    :func:`hone.policy` and :func:`hone.context`.
    """

    def __init__(self, runtime: Any, changes: Iterable[tuple[Any, ...]]):
        self._runtime = runtime
        self._changes = tuple(changes)
        self._derived: dict[int, Any] = {}

    def _native(self, parent: Any) -> Any:
        # Derived once for each parent: a new number would make hone decide anew.
        parent_number = 0 if parent is None else parent.number
        native = self._derived.get(parent_number)
        if native is None:
            native = parent
            for change in self._changes:
                native = self._runtime.derive(native, *change)
            while len(self._derived) >= _KEPT:
                self._derived.pop(next(iter(self._derived)), None)
            self._derived[parent_number] = native
        return native

    def __enter__(self) -> Context:
        previous = _current.get()
        native = self._native(previous)
        _hone.contexts_used()
        _entered.set((previous, _entered.get()))
        _make_current(native)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        entered = _entered.get()
        if entered is None:
            raise RuntimeError("a context of hone is left where none was entered: enter and leave it in one task or thread")
        previous, rest = entered
        _entered.set(rest)
        _make_current(previous)

    def __or__(self, other: Context) -> Context:
        """Both: ``self`` first, ``other`` over it."""
        if not isinstance(other, Context):
            return NotImplemented
        return Context(self._runtime, self._changes + other._changes)


def _config_text(config: Config) -> str | None:
    return config if config is None or isinstance(config, str) else json.dumps(config)


# Changes, as the native runtime's `derive` takes them.


def overlay_change(overlay: Any) -> tuple[Any, ...]:
    return (overlay, None, None, None, None, False, None)


def override_change(
    algorithm: str, kernel: str, config: Config, platform: str | None, store: bool
) -> tuple[Any, ...]:
    return (None, algorithm, kernel, platform, _config_text(config), store, None)


def policy_change(name: str) -> tuple[Any, ...]:
    return (None, None, None, None, None, False, name)


def entry_row(entry: Mapping[str, Any]) -> tuple[str | None, ...]:
    """One entry of an overlay as the extension takes it."""
    names = ("device", "algorithm", "version", "key", "spec", "kernel", "platform", "config")
    unknown = set(entry) - set(names)
    if unknown:
        raise TypeError(f"an entry has {', '.join(names)}, and no {', '.join(sorted(unknown))}")
    row = dict(entry, config=_config_text(entry.get("config")))
    return tuple(row.get(name) for name in names)
