"""Other choices for a stretch of code: overlays, overrides, policies and links of the chain.

A context is entered with ``with``, is current for the task or thread that entered it (it stands in a
``contextvars.ContextVar``), and costs nothing where none was ever entered.
"""

from __future__ import annotations

import contextvars
import dataclasses
import inspect
import json
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from hone import _hone

_current: contextvars.ContextVar[Any] = contextvars.ContextVar("hone.context", default=None)
# The previously current contexts of the entered ones, newest first: (previous, the rest), or None.
_entered: contextvars.ContextVar[Any] = contextvars.ContextVar("hone.entered", default=None)
# Called with the native context, or None, whenever another one becomes current. hone.jax is one.
_observers: list[Callable[[Any], None]] = []

# The most derived contexts that one Context keeps: it derives one for each parent context.
_KEPT = 16

Config = Mapping[str, Any] | str | None
# Takes a runtime and a native context, and returns a context derived from it.
Change = Callable[[Any, Any], Any]
# A link of the chain: takes a call, and returns a kernel, a pair of kernel and config, or None.
Link = Callable[[Any], str | tuple[str, Config] | None]


def current() -> Any:
    """The native context that calls of this task or thread are made under, or None."""
    return _current.get()


def digest() -> int:
    """The digest of the current context: equal contexts have the same number in every process. 0: no context."""
    context = _current.get()
    return 0 if context is None else context.digest


def _make_current(native: Any) -> None:
    _current.set(native)
    for observer in _observers:
        observer(native)


class Context:
    """Overlays, overrides, a policy and changes of the chain, to be entered with ``with``. What is entered last is
    asked first.

    One may be entered several times, also by several threads. Made by :func:`hone.overlay`, :func:`hone.override`,
    :func:`hone.policy` and :func:`hone.context`.
    """

    def __init__(self, runtime: Any, changes: Iterable[Change]):
        self._runtime = runtime
        self._changes = tuple(changes)
        self._derived: dict[int, Any] = {}

    def _native(self, parent: Any) -> Any:
        # Derived once for each parent, because a context with a new number would make hone decide each call again.
        parent_number = 0 if parent is None else parent.number
        native = self._derived.get(parent_number)
        if native is None:
            native = parent
            for change in self._changes:
                native = change(self._runtime, native)
            while len(self._derived) >= _KEPT:
                self._derived.pop(next(iter(self._derived)), None)
            self._derived[parent_number] = native
        return native

    def __enter__(self) -> Self:
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

    def __reduce__(self) -> tuple[Any, ...]:
        """What is read belongs to the default runtime of the process that reads it. Links pickle as functions do: by their names."""
        return _read, (self._changes,)

    def __repr__(self) -> str:
        return f"<hone.Context: {', '.join(map(str, self._changes)) or 'no change'}>"

    def __or__(self, other: Context) -> Context:
        """Both: ``self`` first, ``other`` over it."""
        if not isinstance(other, Context):
            return NotImplemented
        return Context(self._runtime, self._changes + other._changes)


def _read(changes: tuple[Change, ...]) -> Context:
    from hone import runtimes

    return Context(runtimes.default(), changes)


def _config_text(config: Config) -> str | None:
    return config if config is None or isinstance(config, str) else json.dumps(config)


class _Overlay:
    """Decisions that go before others: what the library made of them, and what says them to another process."""

    def __init__(self, told: Callable[[], tuple[str, Any]], native: Any = None):
        self.told, self.native = told, native

    def __call__(self, runtime: Any, parent: Any) -> Any:
        if self.native is None:
            kind, rows = self.told()
            self.native = runtime.overlay(rows) if kind == "rows" else runtime.parse_result(rows).overlay()
        return runtime.derive(parent, self.native, None, None, None, None, False, None)

    def __str__(self) -> str:
        kind, rows = self.told()
        return f"overlay of {len(rows)} decision{'s' * (len(rows) != 1)}" if kind == "rows" else "overlay of a result"

    def __reduce__(self) -> tuple[Any, ...]:
        return _told_overlay, (self.told(),)


def _told_overlay(told: tuple[str, Any]) -> _Overlay:
    return _Overlay(lambda: told)


@dataclasses.dataclass(frozen=True)
class _Override:
    algorithm: str
    kernel: str
    platform: str | None
    config: str | None
    store: bool

    def __str__(self) -> str:
        kernel = " ".join(part for part in (self.kernel, self.config) if part)
        return f"override {self.algorithm} = {f'{self.platform}/' * (self.platform is not None)}{kernel}{', stored' * self.store}"

    def __call__(self, runtime: Any, parent: Any) -> Any:
        return runtime.derive(parent, None, self.algorithm, self.kernel, self.platform, self.config, self.store, None)


@dataclasses.dataclass(frozen=True)
class _Policy:
    name: str

    def __str__(self) -> str:
        return f"policy {self.name}"

    def __call__(self, runtime: Any, parent: Any) -> Any:
        return runtime.derive(parent, None, None, None, None, None, False, self.name)


@dataclasses.dataclass(frozen=True)
class _Chain:
    links: tuple[tuple[str, Link | None], ...]
    persist: bool | None

    def __str__(self) -> str:
        parts = [f"link {name} {'left out' if own is None else f'= {_name_of(own)}'}" for name, own in self.links]
        return ", ".join(parts + ([] if self.persist is None else [f"persist {self.persist}"]))

    def __call__(self, runtime: Any, parent: Any) -> Any:
        rows = [(source, None if own is None else _name_of(own), own and _link(own, parent)) for source, own in self.links]
        return runtime.derive_chain(parent, rows, self.persist)


def overlay_change(native: Any, told: Callable[[], tuple[str, Any]]) -> Change:
    """
    Args:
        told: the rows of entries, ``("rows", rows)``, or a result's document, ``("json", text)``.
    """
    return _Overlay(told, native)


def override_change(algorithm: str, kernel: str, config: Config, platform: str | None, store: bool) -> Change:
    return _Override(algorithm, kernel, platform, _config_text(config), store)


class _Family:
    """A function that is compiled for calls, where a kernel's name is asked for: a link that names the kernel which a call can have. For
    other algorithms it says what was said before."""

    def __init__(self, *asked: str | None):
        self._asked = asked  # the algorithm, the function's name, a platform, a config
        # Identifies equal contexts across processes.
        self.__qualname__ = f"_Family({', '.join(map(repr, asked))})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Family) and other._asked == self._asked

    def __hash__(self) -> int:
        return hash(self._asked)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Family, self._asked

    def __call__(self, call: Any) -> tuple[str, str | None] | None:
        from hone import kernels

        algorithm, name, platform, config = self._asked
        if str(algorithm).partition("@")[0].lower() == call.operation.name.partition("@")[0].lower():
            return kernels.member_for(call, str(name), platform), config
        before = json.loads(call.explain(True))
        return (before["kernel"], json.dumps(before["config"])) if before["source"] == "override" else None


def family_change(algorithm: str, name: str, config: Config, platform: str | None) -> Change:
    return _Chain((("override", _Family(algorithm, name, platform, _config_text(config))),), None)


def policy_change(name: str) -> Change:
    if not isinstance(name, str):
        raise TypeError(f"a policy must be a text, default, tune, heuristic, fail or frozen, got {type(name).__name__}")
    return _Policy(name)


def chain_change(links: Mapping[str, Link | None], persist: bool | None) -> Change:
    if not isinstance(links, Mapping):
        raise TypeError(f"links must be a mapping from names of links to functions or None, got {type(links).__name__}")
    for own in links.values():
        if own is not None:
            _name_of(own)
    for link in links:
        if not isinstance(link, str):
            raise TypeError(f"the name of a link must be a text, got {type(link).__name__}")
    return _Chain(tuple(links.items()), persist)


# Living functions that replace links, by name. A number distinguishes functions of the same name.
_named: dict[str, list[Callable[[], Any]]] = {}
_named_lock = threading.Lock()


def _name_of(own: Link) -> str:
    if not callable(own):
        raise TypeError(f"a link must be None, which leaves it out, or a function that takes a call, got {type(own).__name__}")
    name = f"{getattr(own, '__module__', None)}.{getattr(own, '__qualname__', type(own).__qualname__)}"
    with _named_lock:
        known = _named.setdefault(name, [])
        place = next((i for i, one in enumerate(known) if one() == own), None)
        if place is None:  # reuse the number of a deleted function, or take the next
            place = next((i for i, one in enumerate(known) if one() is None), len(known))
            known[place:place + 1] = [_reference(own)]
    return name if place == 0 else f"{name}#{place + 1}"


def _reference(own: Link) -> Callable[[], Any]:
    try:
        return weakref.WeakMethod(own) if inspect.ismethod(own) else weakref.ref(own)
    except TypeError:  # an object that does not support weak references
        return lambda: own


class AskedCall:
    """The call of which a link is asked: ``text``, ``key``, ``spec``, ``device``, ``operation``, ``values``."""

    def __init__(self, native: Any):
        self._native = native

    def __getattr__(self, name: str) -> Any:
        return getattr(self._native, name)

    def decide(self) -> Any:
        """The :class:`hone.Decision` of the chain that the link has changed."""
        from hone.results import Decision  # results imports contexts

        return Decision.of(self._native.decide())

    def explain(self, json: bool = False) -> str:
        """That chain, link by link."""
        return self._native.explain(json)


def _answered(answer: Any) -> tuple[str, str | None] | None:
    if answer is None:
        return None
    if isinstance(answer, str):
        return answer, None
    if not isinstance(answer, (tuple, list)) or len(answer) != 2 or not isinstance(answer[0], str):
        raise TypeError(f"a link must return a kernel's name, a pair of it and a config, or None, got {answer!r}")
    return answer[0], _config_text(answer[1])


def _link(own: Link, parent: Any) -> Callable[[Any], tuple[str, str | None] | None]:
    """What the extension calls: the function, under the context that was derived from, which it may ask."""

    def ask(call: Any) -> tuple[str, str | None] | None:
        token = _current.set(parent)
        try:
            return _answered(own(AskedCall(call)))
        finally:
            _current.reset(token)

    return ask


def entry_row(entry: Mapping[str, Any]) -> tuple[str | None, ...]:
    """One entry of an overlay as the extension takes it."""
    names = ("device", "algorithm", "version", "key", "spec", "kernel", "platform", "config")
    unknown = set(entry) - set(names)
    if unknown:
        raise TypeError(f"an entry has {', '.join(names)}, and no {', '.join(sorted(unknown))}")
    row = dict(entry, config=_config_text(entry.get("config")))
    return tuple(row.get(name) for name in names)
