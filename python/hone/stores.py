"""Stores as objects: what is remembered, to be looked at, carried elsewhere and brought together."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import Any, NoReturn

from hone import _hone, runtimes
from hone.errors import HoneError, UnsupportedError
from hone.results import Result, is_alias

# A document: the path of a file, or its bytes.
Document = str | os.PathLike[str] | bytes


@dataclasses.dataclass(frozen=True)
class StoredDecision:
    """A decision as it is stored, of any device and program. ``time_ns`` is of one run, in nanoseconds."""

    device: str
    algorithm: str
    version: str
    key: str
    call: str | None
    kernel: str
    platform: str
    config: dict[str, Any]
    source: str
    verified: bool
    regime: str
    revision: str | None
    time_ns: float
    evidence: dict[str, Any]
    environment: dict[str, Any]

    @classmethod
    def of(cls, entry: dict[str, Any], document: dict[str, Any]) -> StoredDecision:
        """Of an entry of a bundle, and of what the bundle says of all of its entries."""
        evidence = entry.get("evidence") or {}
        values = {
            "device": document.get("device"), "environment": document.get("environment") or {}, "call": None, "revision": None,
            "regime": evidence.get("regime", "warm"), "verified": False, "config": {}, "version": "1", "platform": "native",
            **entry, "time_ns": evidence.get("time_ns", 0.0), "evidence": evidence,
        }
        return cls(**{field.name: values[field.name] for field in dataclasses.fields(cls)})


class Store:
    """A store of decisions, open: ``with hone.Store("sqlite:team.db") as store: ...``. Any thread may use it.

    Args:
        url: ``"sqlite:PATH"``, ``"json:FOLDER"`` or ``"memory:"``; made where it is not there.
        read_only: nothing is written to it or beside it; it must be there (``sqlite:`` alone).
    """

    def __init__(self, url: str, *, read_only: bool = False):
        if not isinstance(url, str):
            raise TypeError(f"a store must be named by its URL, a text, got {type(url).__name__}")
        self._native: Any = _hone.open_store(url, read_only)

    def _open(self) -> Any:
        if self._native is None:
            raise ValueError("the store is closed")
        return self._native

    def close(self) -> None:
        """Lets go of it, when the last call that uses it has ended."""
        self._native = None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        return self._open().url

    def decisions(self, *, device: str | None = None, algorithm: str | None = None) -> list[StoredDecision]:
        """What is decided, by key: all of it, or that of a device's fingerprint, or of an algorithm."""
        document = json.loads(self.export(device=device))
        return [StoredDecision.of(entry, document) for entry in document.get("entries", [])
                if algorithm is None or entry["algorithm"] == algorithm]

    def __iter__(self) -> Iterator[StoredDecision]:
        return iter(self.decisions())

    def __len__(self) -> int:
        return self.stat()["decisions"]

    def get(self, call: str, *, device: str | None = None) -> StoredDecision | None:
        """The decision of a call text, ``"rms_norm(f32[64,4096], f32[4096])"``, of a call key, or of the label or key by
        which a program of ejkernel's shows a call; None: there is none. One for any ``eps`` or ``softmax_scale`` serves them
        all.

        One look-up, however much the store holds. Of a key: one for each operation that there is; what is stored for
        others, and labels, are searched for.

        Args:
            call: the text or key.
            device: a fingerprint; None: of this machine's devices, that of the call, or the first that has it.
        """
        if not isinstance(call, str):
            raise TypeError(f"expected a call text, a call key or a label, got {type(call).__name__}")
        runtime = runtimes.default()
        devices = [device] if device else [row["fingerprint"] for row in runtime.devices()]
        if "(" in call:
            described = runtime.describe(call)
            return self._serving(described, devices if device else [described.device] if described.device else [])
        for operation in map(runtime.operation, runtime.algorithms() if call and ":" not in call else ()):
            for fingerprint in devices:
                found = self._get(fingerprint, operation.name, operation.version, call, None)
                if found is not None:
                    return found
        document = json.loads(self.export(device=device))
        aliases = [alias for alias in document.get("aliases", []) if is_alias(alias, call)]
        keys = {call, *(alias["key"] for alias in aliases)}
        rows = (StoredDecision.of(entry, document) for entry in document.get("entries", []))
        exact = next((row for row in rows if row.key in keys), None)
        return exact or next(filter(None, (self._of_alias(alias, devices) for alias in aliases)), None)

    def _of_alias(self, alias: dict[str, Any], devices: list[str]) -> StoredDecision | None:
        try:
            operation = runtimes.default().operation(f"{alias['algorithm']}@v{alias['version']}")
            return self._serving(operation.from_spec(alias["spec"]), devices)
        except (KeyError, HoneError):  # the algorithm is not registered, or has changed
            return None

    def _serving(self, call: Any, devices: list[str]) -> StoredDecision | None:
        """The decision of a call, else the one that serves it, too: that of its bucket."""
        for one in filter(None, (call, call.bucket)):
            for device in devices:
                found = self._get(device, one.operation.name, one.operation.version, one.key, one.spec)
                if found is not None:
                    return found
        return None

    def _get(self, device: str, algorithm: str, version: str, key: str, spec: str | None) -> StoredDecision | None:
        found = self._open().get(device, algorithm.lower(), version, key, spec)
        if found is None:
            return None
        for name in ("config", "evidence", "environment"):
            found[name] = json.loads(found[name] or "{}")
        found["evidence"].setdefault("time_ns", found["time_ns"])
        return StoredDecision(**found)

    def put(self, result: Result) -> None:
        """Stores what tuning found, in place of what stands there, in one transaction."""
        if not isinstance(result, Result):
            raise TypeError(f"expected a hone.Result to put into a store, got {type(result).__name__}")
        self._open().put(result._result)

    def export(
        self, *, format: str = "hone", device: str | None = None, measurements: bool = False, file: str | None = None,
        foreign_device: str | None = None,
    ) -> str:
        """All that it holds as one document, as ``hone store export`` writes it.

        Args:
            format: ``"hone"``, a bundle; ``"ejkernel"`` or ``"tokamax"``, in the words of their caches.
            device: only this fingerprint's decisions.
            measurements: in a bundle, also what the decisions rest on.
            file: only what stands in this file of the folder that ``hone store export FOLDER`` makes.
            foreign_device: what ejkernel calls the GPU (``ejkernel.ops.utils.fingerprint.device_fingerprint()``).
        """
        return self._open().export(runtimes.default(), format, device, measurements, file, foreign_device)

    def import_(self, *documents: Document, format: str | None = None) -> dict[str, int]:
        """Stores what documents hold, in one transaction; of two decisions for one call, the better stays.

        Args:
            documents: paths, or bytes.
            format: that of :meth:`export`; None: told from the text.

        Returns:
            How many entries were taken, kept, equal, foreign and refused.
        """
        return self._open().import_(runtimes.default(), [_read(document) for document in documents], format)

    def merge(self, other: Store | str) -> dict[str, int]:
        """Puts what another store, or the one of a URL, holds into this one; the better of two stays. Returns counts."""
        if isinstance(other, Store):
            return self._open().merge(other._open())
        if not isinstance(other, str):
            raise TypeError(f"expected a hone.Store or its URL to merge, got {type(other).__name__}")
        try:
            opened = Store(other, read_only=True)
        except UnsupportedError:  # a kind that cannot be read alone
            opened = Store(other)
        with opened:
            return self.merge(opened)

    def stat(self) -> dict[str, int]:
        """How many decisions, measurements, failures, ... it holds, and its size in bytes."""
        return self._open().stat()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"{self!r} holds files and connections of its process, and cannot be pickled: hand its URL on, and open it there")

    def __repr__(self) -> str:
        return f"<hone.Store {'closed' if self._native is None else self.url}>"


def _read(document: Document) -> tuple[str, bytes]:
    if isinstance(document, bytes):
        return "<memory>", document
    path = os.fspath(document)  # open() would also accept a number
    with open(path, "rb") as file:
        return path, file.read()
