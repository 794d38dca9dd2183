"""What was hit: how often each call was made, what answered it, and how long that took to decide."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from typing import Any

_LINE, _JSON, _PROMETHEUS = range(3)  # hone_stats_format


@dataclasses.dataclass(frozen=True)
class Counted:
    """A call and one choice that answered it.

    Attributes:
        call: None, as all that names it: all calls beyond the first 16,384 kinds.
        link: of the chain that answered; ``"none"``: none did.
        hits: runs that found a plan.
        misses: runs and binds that had to decide.
        decided_seconds: which took so long, preparing and tuning included.
    """

    device: str | None
    algorithm: str | None
    version: str | None
    key: str | None
    call: str | None
    link: str
    kernel: str
    platform: str
    config: dict[str, Any] | None
    hits: int
    misses: int
    decided_seconds: float


@dataclasses.dataclass(frozen=True)
class Unstored:
    """A call that was asked for, was guessed or not answered, and is not stored.

    Attributes:
        nearest: key of the stored call that is most like it; None: there is none, or 100 heavier ones have theirs.
        differs: what differs from it, ``"x.shape[0]: 2048, stored 1024"``.
    """

    device: str
    algorithm: str
    version: str
    key: str
    call: str | None
    link: str
    kernel: str
    calls: int
    nearest: str | None
    differs: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Unasked:
    """A stored choice for this machine that no call of this process asked for."""

    device: str
    algorithm: str
    version: str
    key: str
    call: str | None
    kernel: str


def _fields(kind: type, row: dict[str, Any]) -> dict[str, Any]:
    return {field.name: row[field.name] for field in dataclasses.fields(kind)}


class Stats:
    """The counts of a runtime, as they were when this was made. ``len``, iteration and indexing go over :class:`Counted`."""

    def __init__(self, runtime: Any):
        self._runtime = runtime
        self._line = runtime.stats_text(_LINE).rstrip()
        self._json = runtime.stats_text(_JSON).rstrip()
        self._prometheus = runtime.stats_text(_PROMETHEUS)
        self.rows = [Counted(**_fields(Counted, row)) for row in json.loads(self._json)["rows"]]

    def __getstate__(self) -> dict[str, Any]:
        """The counts alone: what they were counted in belongs to its process."""
        return {**vars(self), "_runtime": None}

    @property
    def hits(self) -> int:
        return sum(row.hits for row in self.rows)

    @property
    def misses(self) -> int:
        return sum(row.misses for row in self.rows)

    @property
    def links(self) -> dict[str, int]:
        """Calls by the link that answered them."""
        sums: dict[str, int] = {}
        for row in self.rows:
            sums[row.link] = sums.get(row.link, 0) + row.hits + row.misses
        return sums

    def compare(self) -> tuple[list[Unstored], list[Unasked]]:
        """What was asked for and is not stored, most calls first; and what is stored and was not asked for. As of now.

        Raises:
            UnavailableError: the runtime has no store.
        """
        unstored, unasked = [], []
        for row in self._runtime.compare_stats():
            if row["is_stored"]:
                unasked.append(Unasked(**_fields(Unasked, row)))
            else:
                row["differs"] = tuple((row["differs"] or "").splitlines())
                unstored.append(Unstored(**_fields(Unstored, row)))
        return unstored, unasked

    def to_json(self) -> str:
        """The document that ``hone stats FILE`` reads."""
        return self._json

    def prometheus(self) -> str:
        """Prometheus' text, by algorithm, link and kernel."""
        return self._prometheus

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Counted]:
        return iter(self.rows)

    def __getitem__(self, index: int) -> Counted:
        return self.rows[index]

    def __str__(self) -> str:
        return self._line

    def __repr__(self) -> str:
        return f"<hone.Stats: {self._line}>"
