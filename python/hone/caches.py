"""Caches for what any program finds out about its own operations: a value for a device, an operation and the key of a call.

    cache = hone.PersistentCache("my_kernels", "caches/my_kernels.json", cfg_type=Tiles)     # or a store
    cache.put("gpu:0", "matmul@v1", "key123", Tiles(128, 64))
    cache.get("gpu:0", "matmul@v1", "key123")                                                # Tiles(128, 64), also in other processes

They are caches of values alone: what hone decides about its own kernels stands in the same stores and does not meet them.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import fcntl
import hashlib
import itertools
import json
import logging
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Generic, TypeVar, cast

from hone.stores import Store

Cfg = TypeVar("Cfg")
Key = tuple[str, str, str]

_log = logging.getLogger("hone")


# --- overlays

# The overlays of this task or thread, newest first: (mapping, what ends it, the rest), or None.
_overlays: contextvars.ContextVar[Any] = contextvars.ContextVar("hone.cache_overlays", default=None)
_numbers = itertools.count(1)
_trace: Any = None


def _retrace(number: int) -> Any:
    """Makes JAX, if it is in use, trace functions again under an overlay: traced programs contain the configs of another overlay."""
    global _trace
    make = getattr(sys.modules.get("jax"), "make_user_context", None)
    if make is None:
        return contextlib.nullcontext()
    if _trace is None:
        _trace = make(())
    return _trace((*_trace.value, number))


class overlay_cache:
    """A context in which values of a mapping stand before those of caches in memory (:class:`ConfigCache`), for this thread
    or task. Nested ones are asked newest first. Persistent caches say what they keep.

    Args:
        mapping: from (device, operation, call key) to values; None in it says nothing. It is not copied.
    """

    def __init__(self, mapping: Mapping[Key, Any]):
        if not isinstance(mapping, Mapping):
            raise TypeError(f"expected a mapping from (device, operation, call key) to values, got {type(mapping).__name__}")
        self.mapping = mapping

    def __enter__(self) -> overlay_cache:
        with contextlib.ExitStack() as stack:
            stack.enter_context(_retrace(next(_numbers)))
            original = sys.modules.get("ejkernel.ops.config.cache")
            if original is not None:  # selectors of the original package, if it is in use, ask their own overlay
                stack.enter_context(original.overlay_cache(self.mapping))
            _overlays.set((self.mapping, stack.pop_all(), _overlays.get()))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _, stack, rest = _overlays.get()
        _overlays.set(rest)
        stack.close()


def overlaid(device: str, op_id: str, call_key: str) -> Any:
    """What the overlays that are entered say of a key, or None."""
    entered = _overlays.get()
    while entered is not None:
        mapping, _, entered = entered
        found = mapping.get((device, op_id, call_key))
        if found is not None:
            return found
    return None


# --- keys

KeyBuilder = Callable[..., str]


def _described(value: Any) -> Any:
    """What a call's key knows of an argument that JSON has not."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return {"shape": [*value.shape], "dtype": str(value.dtype)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"a {type(value)} is nothing that a key is made of: give the cache a key_builder")


class _Keys:
    """What makes keys of calls."""

    def __init__(self, key_builder: KeyBuilder | None):
        if key_builder is not None and not callable(key_builder):
            raise TypeError(f"key_builder must be a function of a call's arguments, got {type(key_builder).__name__}")
        self.key_builder = key_builder

    def make_key(self, *args: Any, **kwargs: Any) -> str:
        """The key of a call with these arguments, by the cache's key_builder. Without one, of the dtypes and shapes of
        arrays, the members of dataclasses and the values that JSON has: the first 16 hex digits of SHA-256 over the
        canonical JSON of ``[args, kwargs]``, as hone_own_cache_make_key makes it."""
        if self.key_builder is None:
            text = json.dumps([args, kwargs], sort_keys=True, separators=(",", ":"), default=_described)
            return hashlib.sha256(text.encode()).hexdigest()[:16]
        key = self.key_builder(*args, **kwargs)
        if not isinstance(key, str):
            raise TypeError(f"a key is a text, and the key_builder made a {type(key)}")
        return key


# --- in memory


class ConfigCache(_Keys, Generic[Cfg]):
    """A cache in memory, for as many threads as one likes. Overlays (:class:`overlay_cache`) go before what it holds.

    Args:
        key_builder: makes of a call's arguments what :meth:`make_key` gives.
    """

    # Each access is one operation of a dict, which is atomic.
    def __init__(self, *, key_builder: KeyBuilder | None = None) -> None:
        super().__init__(key_builder)
        self._data: dict[Key, Cfg] = {}

    def get(self, dev: str, op_id: str, call_key: str) -> Cfg | None:
        """The value of a key, or None."""
        found = overlaid(dev, op_id, call_key)
        return self._data.get((dev, op_id, call_key)) if found is None else cast(Cfg, found)

    def put(self, dev: str, op_id: str, call_key: str, cfg: Cfg) -> None:
        """Keeps a value in place of the one that is there."""
        self._data[(dev, op_id, call_key)] = cfg

    def clear(self) -> None:
        """Forgets all."""
        self._data.clear()

    def size(self) -> int:
        """How many values there are."""
        return len(self._data)

    def keys(self) -> list[Key]:
        """The keys, oldest first."""
        return list(self._data)


# --- stores of persistent caches


class _NoCache(OSError):
    """A file is something else than a cache, and nothing of ours: it stays as it is."""


def _object(data: bytes) -> dict[str, Any]:
    """The values of a cache's file. Raises _NoCache, or ValueError where it is a damaged one."""
    try:
        values = json.loads(data.decode())
    except ValueError:
        if data.strip(b" \t\r\n\0")[:1] in (b"", b"{"):
            raise
        raise _NoCache("it is not JSON, and was left as it is") from None
    if not isinstance(values, dict) or any(name.count("|") < 2 for name in values):
        raise _NoCache("it is JSON of something else, and was left as it is")
    return values


def _checked(path: str) -> str:
    """The path of a cache's file; ValueError where what is there can never be one."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"{path} is not a regular file: name another path for the cache")
        with open(path, "rb") as file:
            head = file.read(64)
    except OSError:
        return path
    if head.startswith(b"SQLite format 3") or head.replace(b" ", b"").startswith(b'{"hone_store"'):
        raise ValueError(f"{path} is a database or a store of hone's: for a cache in a store write its URL, KIND:{path}")
    return path


class _JsonFile:
    """A file of ejkernel's: one object with keys "DEVICE|OPERATION|KEY", which bars in them may make equal. Writers take turns
    by a lock file beside it, read what others wrote, and rename a whole new file over it: a reader sees one state or another."""

    def __init__(self, path: str):
        self.path = _checked(path)
        self._read: tuple[Any, dict[str, Any]] = (None, {})
        self._unwritten: dict[str, Any] = {}

    def get(self, key: Key) -> Any:
        name = "|".join(key)
        return self._unwritten[name] if name in self._unwritten else self._values().get(name)

    def put(self, key: Key, raw: Any) -> None:
        name = "|".join(key)
        try:
            path = os.path.realpath(self.path)  # keep a symbolic link: replace the file that it points to
            with _locked(path):
                _write(path, {**self._values_to_change(path), name: raw})
            self._unwritten.pop(name, None)
        except OSError as error:
            if not self._unwritten:
                _log.warning("%s cannot be written (%s): this process goes on with what it has in memory", self.path, error)
            self._unwritten[name] = raw

    def _load(self) -> dict[str, Any]:
        with open(self.path, "rb", opener=_open_plain) as file:
            found = os.fstat(file.fileno())
            stamp, read = (found.st_ino, found.st_mtime_ns, found.st_size), self._read
            if read[0] != stamp:
                self._read = read = (stamp, _object(file.read()))
            return read[1]  # not self._read, which another thread may have replaced by an older read

    def _values(self) -> dict[str, Any]:
        try:
            return self._load()
        except OSError:
            return {}
        except ValueError as error:
            _log.warning("%s is damaged (%s) and counts as empty", self.path, error)
            return {}

    def _values_to_change(self, path: str) -> dict[str, Any]:
        """Under the lock. What cannot be read must not be written over."""
        try:
            return self._load()
        except FileNotFoundError:
            return {}
        except ValueError as error:
            aside = f"{path}.damaged-{time.time_ns()}"
            os.replace(path, aside)
            _log.warning("%s is damaged (%s) and counts as empty: it is %s now", self.path, error, aside)
            return {}


def _open_plain(path: str, flags: int) -> int:
    descriptor = os.open(path, flags | os.O_NONBLOCK)  # opening a pipe would wait for a writer
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise _NoCache("it is not a regular file")


@contextlib.contextmanager
def _locked(path: str) -> Iterator[None]:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(f"{path}.lock", "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # closing the file releases the lock
        yield


def _write(path: str, values: dict[str, Any]) -> None:
    """A new file in place of the old one, with its mode. Under the lock: one name is enough, and what a writer that was
    killed has left goes."""
    new = f"{path}.new"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)
        with open(new, "x", encoding="utf-8") as file:
            with contextlib.suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            json.dump(values, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


def _plain(text: str, printable: bool = False) -> str:
    """A text as stores take it: not empty, UTF-8 without NUL, and where it is asked for without control characters.
    Different texts stay different. hone_own_cache of C has the same."""
    refused = _CONTROL if printable else "\0"
    try:
        if text and not text.startswith("\\") and not any(one in text for one in refused) and text.encode():
            return text
    except UnicodeEncodeError:
        pass
    return "\\" + json.dumps(text)


_CONTROL = [*map(chr, range(32)), "\x7f"]


class _InStore:
    """A part of a store, of its own name."""

    def __init__(self, name: str, store: Store):
        self._store, self._name = store, name
        self._scheme = "cache:" + (name and _plain(name, printable=True))
        self.path = store.url

    def get(self, key: Key) -> Any:
        device, op_id, call_key = map(_plain, key)
        native = self._store._open()
        found = native.get_value(self._scheme, op_id, device, call_key)
        if found is None:  # values imported from ejkernel's file of this name
            found = native.get_value("ejkernel", op_id, device, call_key)
            if found is not None and os.path.basename(found[1] or "") != f"{self._name}.json":
                found = None
        return None if found is None else json.loads(found[0])

    def put(self, key: Key, raw: Any) -> None:
        device, op_id, call_key = map(_plain, key)
        self._store._open().put_value(self._scheme, op_id, device, call_key, json.dumps(raw))


def _texts(*key: str) -> Key:
    for text in key:
        if not isinstance(text, str):
            raise TypeError(f"device, operation and key must be texts, got {type(text).__name__}")
    return cast(Key, key)


_URL = re.compile(r"[a-z]{2,}:")


def _is_place(name: str) -> bool:
    return _URL.match(name) is not None or name.endswith(".json")


class PersistentCache(_Keys, Generic[Cfg]):
    """A cache that outlives the process, for as many threads and processes as one likes. Caches of different names, or
    in different places, do not know of each other.

    Args:
        opname: its name. The path of a file, or the URL of a store, may stand here alone.
        path: a store (:class:`hone.Store`) or the URL of one; or the path of a JSON file, as ejkernel reads and writes it.
            None: the store that ``HONE_STORE`` names, else ``$XDG_CACHE_HOME/hone/caches/OPNAME.json``.
        loader: makes a value of what JSON has.
        dumper: makes of a value what JSON can have. None: dataclasses and pydantic's models become objects, others are
            JSON already.
        cfg_type: called with the members of a stored object. None: the object, as a dict.
        key_builder: makes of a call's arguments what :meth:`make_key` gives.
    """

    def __init__(
        self,
        opname: str,
        path: str | os.PathLike[str] | Store | Callable[[Any], Cfg] | None = None,
        loader: Callable[..., Any] | None = None,
        dumper: Callable[[Cfg], Any] | None = None,
        cfg_type: Callable[..., Cfg] | None = None,
        *,
        key_builder: KeyBuilder | None = None,
    ):
        super().__init__(key_builder)
        if callable(path):  # PersistentCache(PATH, loader, dumper)
            path, loader, dumper = None, path, loader
        if not isinstance(opname, str):
            raise TypeError(f"the name of a cache must be a text, got {type(opname).__name__}")
        if path is None and _is_place(opname):
            path, opname = opname, os.path.basename(opname).removesuffix(".json")
        self.opname, self.loader, self.dumper, self.cfg_type = opname, loader, dumper, cfg_type
        self._values = self._place(path)

    def _place(self, path: str | os.PathLike[str] | Store | None) -> _InStore | _JsonFile:
        if isinstance(path, Store):
            return _InStore(self.opname, path)
        place = os.fspath(path) if path is not None else self._default_place()
        if not place:
            raise ValueError("the path of a cache is empty: name a file or the URL of a store")
        if _URL.match(place):
            return _InStore(self.opname, Store(place))
        return _JsonFile(os.path.abspath(os.path.expanduser(place)))

    def _default_place(self) -> str:
        url = os.environ.get("HONE_STORE")
        if url and url != "none":
            return url
        folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return os.path.join(folder, "hone", "caches", f"{self.opname}.json")

    @property
    def path(self) -> str:
        """The file, or the URL of the store."""
        return self._values.path

    def get(self, device: str, op_id: str, call_key: str) -> Cfg | None:
        """The value of a key, or None. What cfg_type does not take counts as missing, with a warning."""
        raw = self._values.get(_texts(device, op_id, call_key))
        if raw is None:
            return None
        value = raw if self.loader is None else self.loader(raw)
        return self._typed(value) if isinstance(value, dict) else value

    def _typed(self, members: dict[str, Any]) -> Any:
        if self.cfg_type is None:
            return members
        try:
            return self.cfg_type(**members)
        except (TypeError, ValueError) as error:
            _log.warning("%s: a value of %s is not taken: %s", self.path, self.opname, error)
            return None

    def put(self, device: str, op_id: str, call_key: str, cfg: Cfg) -> None:
        """Keeps a value in place of the one that is there; all see it at once. What JSON cannot have is a TypeError, and
        nothing is changed."""
        raw = self._dumped(cfg)
        json.dumps(raw)
        self._values.put(_texts(device, op_id, call_key), raw)

    def _dumped(self, cfg: Any) -> Any:
        if self.dumper is not None:
            return self.dumper(cfg)
        if dataclasses.is_dataclass(cfg) and not isinstance(cfg, type):
            return dataclasses.asdict(cfg)
        return cfg.model_dump() if hasattr(cfg, "model_dump") else cfg
