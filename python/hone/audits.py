"""Stored choices, measured again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any


@dataclasses.dataclass(frozen=True)
class Audited:
    """A stored choice, measured again. Times are nanoseconds of one run; shares are of 1; None: not measured."""

    algorithm: str
    version: str
    key: str
    call: str | None
    regime: str
    kernel: str
    config: dict[str, Any]
    stored_ns: float | None
    time_ns: float | None
    low_ns: float | None
    high_ns: float | None
    default_ns: float | None
    best_kernel: str | None
    best_config: dict[str, Any] | None
    best_ns: float | None
    regret: float | None
    regret_low: float | None
    regret_high: float | None
    drift: float | None
    rivals: int
    rounds: int
    flipped: bool
    changed: str | None
    failure: str | None
    reason: str | None
    taken_back: bool | None
    next_kernel: str | None
    next_config: dict[str, Any] | None
    next_ns: float | None
    pinned: str | None
    served: bool
    passed: bool


class Audit:
    """What an audit found. ``len``, iteration and indexing go over :class:`Audited`."""

    def __init__(self, document: str):
        self._text = document
        content = json.loads(document)
        names = [field.name for field in dataclasses.fields(Audited)]
        self.threshold: float = content["threshold"]
        self.summary: dict[str, Any] = content["summary"]
        self.choices = [Audited(**{name: row.get(name) for name in names}) for row in content["choices"]]

    @property
    def passed(self) -> bool:
        """Whether no choice is past the threshold."""
        return self.summary["past"] == 0

    def __len__(self) -> int:
        return len(self.choices)

    def __iter__(self) -> Iterator[Audited]:
        return iter(self.choices)

    def __getitem__(self, index: int) -> Audited:
        return self.choices[index]

    def to_json(self) -> str:
        """The audit document, as ``hone tune --audit --json`` prints it."""
        return self._text

    def __repr__(self) -> str:
        return f"<hone.Audit of {len(self)}: {self.summary['past']} past the threshold>"
