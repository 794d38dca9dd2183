"""Runtimes: the registry, the devices and the store of one program, tied together."""

from __future__ import annotations

import atexit
import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Literal, NoReturn, TypedDict, Unpack

from hone import _hone
from hone.audits import Audit
from hone.contexts import Change, Config, Context, Link, chain_change, entry_row, family_change, override_change, overlay_change, policy_change
from hone.counts import Stats
from hone.errors import HoneError, InvalidArgumentError, NotFoundError
from hone.results import Decision, Result, call_of_label
from hone.tuning import beside_text, options_of, watched

_KEY = re.compile("[0-9a-f]{16}")
_log = logging.getLogger("hone")
_lock = threading.Lock()
_default: Runtime | None = None
_default_is_own = True  # opened by default(), not passed to use()
_packs: list[str] = []  # packs that the program registered: every runtime loads them
before_contest: Callable[[Any], None] = lambda call: None  # noqa: E731  (kernels.py: compiles what the call needs)
_open: weakref.WeakSet[Runtime] = weakref.WeakSet()  # their records are written when the interpreter ends


def _renew_lock() -> None:
    """In a child, where the thread of the parent that held it is not there to give it back."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


Regime = Literal["warm", "cold", "graph", "eager"]


class Options(TypedDict, total=False):
    """What :class:`Runtime` is opened with."""

    store: str | None
    policy: str | None
    lock_file: str | None
    system_store: str | None
    threads: int
    stable: bool
    unverified: bool
    persist: bool
    environment: bool
    regime: Regime | None


class Runtime(_hone.Runtime):
    """A runtime of its own. The functions of the module use the default one, which is opened when it is first needed.

    Args:
        store: ``"sqlite:PATH"``, ``"json:FOLDER"``, ``"memory:"``, ``"none"``; None: ``HONE_STORE``, else
            ``sqlite:$XDG_CACHE_HOME/hone/store.db``.
        policy: ``"heuristic"``, ``"tune"``, ``"fail"`` or ``"frozen"``; None: ``HONE_POLICY``, else heuristic.
        lock_file: path of a lock file; None: ``HONE_LOCK``, else none.
        system_store: a store under the user's that is read and never written.
        threads: of hone's own pool; 0: as many as the device has.
        stable: only decisions that leave every bit as it was.
        unverified: kernels that are not built in answer without being verified before.
        persist: whether what is tuned goes to the store; False: it stays in this process.
        environment: whether ``HONE_*`` variables are read.
        regime: decisions of this regime are looked up first, and misses are tuned in it: ``"warm"``, ``"cold"``,
            ``"graph"`` (calls run inside CUDA graphs) or ``"eager"`` (one by one); None: ``HONE_REGIME``, else warm.
    """

    def __init__(self, **options: Unpack[Options]):
        _open.add(self)
        for folder in _packs:
            _load(self, folder)

    def __enter__(self) -> Runtime:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def describe(self, operation: Any, *arrays: Any, **scalars: Any) -> Any:
        """The call that arguments describe. ``operation`` may be a whole call text, without arguments then, or the label
        or key under which a program shows a call: ``"flash_attention@v2:8b529b4a97b75092"``."""
        if isinstance(operation, str) and "(" not in operation and (":" in operation or _KEY.fullmatch(operation)):
            try:
                operation = self.call_of_label(operation)
            except NotFoundError:
                named = call_of_label(self, operation)
                if named is None:
                    raise
                return named
        if isinstance(operation, str) and "(" in operation:
            if arrays or scalars:
                raise TypeError(beside_text(operation, scalars))
            return self.operation(operation.split("(")[0].strip()).parse(operation)
        return self.call(operation, *arrays, **scalars)

    def decide(self, operation: Any, *arrays: Any, **scalars: Any) -> Decision:
        """The chain's answer for a call, without running it."""
        call = self.describe(operation, *arrays, **scalars)
        before_contest(call)
        return Decision.of(call.decide())

    def explain(self, operation: Any, *arrays: Any, json: bool = False, **scalars: Any) -> str:
        """Why a call gets the kernel it gets: each link of the chain, each kernel, the evidence. Never tunes."""
        return self.describe(operation, *arrays, **scalars).explain(json)

    def tune(self, operation: Any = None, *arrays: Any, **keywords: Any) -> Result:
        """See :func:`hone.tune`."""
        scalars, options = options_of(self, operation, keywords)
        call = None if operation is None else self.describe(operation, *arrays, **scalars)
        if call is not None:
            before_contest(call)
        if call is not None and options.get("kernel") is not None:
            options = dict(options, kernel=_kernel_for(call, options["kernel"], options.get("platform")))
        with watched(options) as given:
            return Result(self, self.tune_call(call, **given))

    def audit(self, *calls: str, threshold: float = 0.05, **options: Any) -> Audit:
        """See :func:`hone.audit`."""
        with watched(options) as given:
            return Audit(self.audit_calls([*calls], threshold, **given))

    def stats(self) -> Stats:
        """See :func:`hone.stats`."""
        return Stats(self)

    def offline(self, program: Any, *, unproved: bool = False, **options: Any) -> Result:
        """See :func:`hone.offline`."""
        with watched(options) as given:
            return Result(self, self.read(program).tune(unproved, **given))

    def read(self, program: Any) -> Any:
        """A lowered program: JAX's ``Lowered`` or ``Compiled``, ``bytes`` of it, its text, or the path of a file."""
        if callable(program) and hasattr(program, "lower"):
            raise TypeError("expected a lowered program, got a function: lower it, function.lower(*arguments)")
        read = self._read(program)
        if not read.operations:
            _log.warning("the program has no labelled operation%s", f": {read.note}" if read.note else "")
        return read

    def _read(self, program: Any) -> Any:
        if hasattr(program, "compile"):
            program = program.as_text(debug_info=True)
        elif hasattr(program, "as_text"):  # text of a program that XLA compiled always has its labels
            program = program.as_text()
        if isinstance(program, bytes):
            return self.program("<memory>", program)
        if isinstance(program, str) and "\n" in program:
            return self.program("<memory>", program.encode())
        if not isinstance(program, (str, os.PathLike)):  # open() would also accept a number, as a file descriptor
            raise TypeError(f"a program must be JAX's Lowered or Compiled, its bytes, its text or the path of a file, got {type(program).__name__}")
        path = os.fspath(program)
        with open(path, "rb") as file:
            return self.program(os.fsdecode(path), file.read())

    def context(
        self,
        *,
        overlay: Any = None,
        override: Any = None,
        policy: str | None = None,
        links: Mapping[str, Link | None] | None = None,
        persist: bool | None = None,
    ) -> Context:
        """See :func:`hone.context`."""
        changes = []
        if links or persist is not None:
            changes.append(chain_change(links or {}, persist))
        if policy is not None:
            changes.append(policy_change(policy))
        if overlay is not None:
            changes.append(self._overlay_of(overlay))
        for algorithm, choice in dict(override or {}).items():
            if not isinstance(choice, str) and not (isinstance(choice, (tuple, list)) and len(choice) == 2):
                raise TypeError(f"override must have a kernel's name, or a pair of it and a config, for {algorithm}, got {choice!r}")
            kernel, config = (choice, None) if isinstance(choice, str) else choice
            changes.append(_override(algorithm, kernel, config, None, False))
        return Context(self, changes)

    def override_with(
        self, algorithm: str, kernel: str, config: Config = None, platform: str | None = None, store: bool = False
    ) -> Context:
        """See :func:`hone.override`."""
        return Context(self, [_override(algorithm, kernel, config, platform, store)])

    def _overlay_of(self, overlay: Any) -> Change:
        if isinstance(overlay, Result):
            return overlay_change(overlay._result.overlay(), lambda: ("json", overlay.to_json()))
        rows = [entry_row(entry) for entry in overlay]
        return overlay_change(self.overlay(rows), lambda: ("rows", rows))

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Runtime holds threads, files and devices of its process, and cannot be pickled: hand its options on, and open one there")


def _kernel_for(call: Any, name: str, platform: str | None) -> str:
    from hone import kernels  # kernels imports runtimes

    return kernels.member_for(call, name, platform) if kernels.is_family(call.operation.name, name) else name


def _override(algorithm: str, kernel: str, config: Config, platform: str | None, store: bool) -> Change:
    """By a kernel's name, or by that of a function whose kernels are compiled for calls."""
    from hone import kernels  # kernels imports runtimes

    if not kernels.is_family(algorithm, kernel):
        return override_change(algorithm, kernel, config, platform, store)
    if store:
        raise InvalidArgumentError(f"{kernel} stands for kernels that are compiled for calls: store=True takes the name of one, which hone.decide gives")
    return family_change(algorithm, kernel, config, platform)


def default() -> Runtime:
    """The runtime of the module's functions; opened now if it was not yet."""
    global _default, _default_is_own
    with _lock:
        if _default is None:
            _default, _default_is_own = Runtime(), True
            _hone.use(_default)
        return _default


def _load(runtime: Runtime, folder: str) -> None:
    try:
        runtime.load_pack(folder)
    except HoneError as error:
        _log.warning("going on without what the program has registered in %s: %s", folder, error)


def add_pack(folder: str) -> list[tuple[str, str, str, str]]:
    """Loads a pack into every runtime, those that are opened later as well. Gives what of it was refused."""
    refused = default().load_pack(folder)
    if refused:
        return refused
    _packs.append(folder)
    for runtime in list(_open):
        if runtime is not _default:
            _load(runtime, folder)
    return []


def replace_pack(before: str, folder: str) -> list[tuple[str, str, str, str]]:
    """Has a pack in the place of another. A registry forgets nothing: the default runtime is opened anew, and plans of the one before go
    on. Gives what was refused, and then nothing has changed."""
    global _default
    if _default is not None and not _default_is_own:
        raise InvalidArgumentError("the runtime that the program has opened knows it with another source already: give it another name")
    kept = [*_packs]
    _packs.remove(before)
    fresh = Runtime()
    refused = fresh.load_pack(folder)
    if refused:
        _packs[:] = kept
        fresh.close()
        return refused
    _packs[:] = [folder if one == before else one for one in kept]
    with _lock:
        _default = fresh
        _hone.use(fresh)
    return []


def use(runtime: Runtime | None) -> Runtime | None:
    """Makes a runtime the module's and returns the one before. None: a new default is opened when it is needed."""
    global _default, _default_is_own
    if runtime is not None and not isinstance(runtime, Runtime):
        raise TypeError(f"expected a hone.Runtime or None, got {type(runtime).__name__}")
    with _lock:
        before, _default, _default_is_own = _default, runtime, runtime is None
        _hone.use(runtime)
        return before


@atexit.register
def _close() -> None:
    use(None)
    for runtime in list(_open):
        runtime.close()
