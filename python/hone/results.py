"""What the chain decided and what tuning found."""

from __future__ import annotations

import contextvars
import dataclasses
import html
import json
import os
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hone import _tables
from hone.contexts import Context, overlay_change
from hone.errors import CorruptError

if TYPE_CHECKING:
    from hone.invocations import Entry


@dataclasses.dataclass(frozen=True)
class Decision:
    """Kernel and config of one call, with what they rest on. Times are nanoseconds of one run; 0 means not known.

    ``disturbed`` is the share of the contest's samples that other work on the machine disturbed. No run takes less than
    ``floor_ns``. ``undecided`` says why the contest left open which is the fastest, and what would settle it; it is empty
    where the contest did not. ``tuner`` names the tuner of the program's own that proposed what was tried, if one did.
    """

    call: str | None
    algorithm: str
    version: str
    key: str
    kernel: str
    platform: str
    backend: str
    config: dict[str, Any]
    source: str
    verified: bool
    bucketed: bool
    system: bool
    time_ns: float
    low_ns: float
    high_ns: float
    runner_up: str
    ratio: float
    ratio_low: float
    ratio_high: float
    default_time_ns: float
    max_error: float
    measured: int
    samples: int
    disturbed: float
    floor_ns: float
    undecided: str
    tuner: str

    @classmethod
    def of(cls, row: dict[str, Any]) -> Decision:
        return cls(**dict(row, config=json.loads(row["config"])))


# The results that this task or thread has entered, newest first.
_entered: contextvars.ContextVar[tuple[Result, ...]] = contextvars.ContextVar("hone.results", default=())


def is_alias(alias: dict[str, Any], label: str) -> bool:
    """Whether a label, ``"ejkernel_ops#OPERATION@vVERSION:KEY"``, also without what stands in front, is that of an alias."""
    name, _, key = label.rpartition("#")[2].rpartition(":")
    return alias["foreign_key"] == key and name in ("", alias["operation"])


def call_of_label(runtime: Any, label: str) -> Any:
    """The call that a label stands for in the results that are entered; None: in none."""
    for result in _entered.get():
        for alias in result._aliases():
            if not is_alias(alias, label):
                continue
            operation = runtime.operation(f"{alias['algorithm']}@v{alias['version']}")
            call = next((row.call for row in result if row.key == alias["key"]), None)  # the call includes the device
            return operation.parse(call) if call else operation.from_spec(alias["spec"])
    return None


class Result(Context):
    """What tuning found: decisions with evidence. Entered with ``with``, they answer the calls made inside.

    ``len``, iteration and indexing go over :class:`Decision`.
    """

    def __init__(self, runtime: Any, native: Any):
        self._result = native
        super().__init__(runtime, [overlay_change(native.overlay(), lambda: ("json", native.json()))])

    def __enter__(self) -> Self:
        entered = super().__enter__()
        _entered.set((self, *_entered.get()))
        return entered

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        _entered.set(_entered.get()[1:])

    @property
    def decisions(self) -> list[Decision]:
        return [Decision.of(row) for row in self._result.decisions()]

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The decisions under the operations and keys that a program's labels, or ejkernel's record, have for the
        calls: ``Entry(op_id_v, call_key, cfg)`` whose ``cfg`` is a :class:`Decision`. Others have none."""
        from hone.invocations import Entry

        found = {(row.algorithm, row.version, row.key): row for row in self.decisions}
        aliases = self._aliases()
        keys = ((alias["algorithm"], alias["version"], alias.get("entry", alias["key"])) for alias in aliases)
        named = zip(aliases, map(found.get, keys))
        return tuple(Entry(alias["operation"], alias["foreign_key"], row) for alias, row in named if row is not None)

    def _aliases(self) -> list[dict[str, Any]]:
        return json.loads(self.to_json()).get("aliases", [])

    @property
    def failed(self) -> list[dict[str, Any]]:
        """What could not be tuned, with its reason."""
        return json.loads(self.to_json()).get("failed", [])

    def __len__(self) -> int:
        return len(self._result.decisions())

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, index: int) -> Decision:
        return self.decisions[index]

    def merge(self, other: Result) -> Result:
        """The entries of both; of two for one call, the one that a store would keep."""
        if not isinstance(other, Result):
            raise TypeError(f"expected a hone.Result to merge with, got {type(other).__name__}")
        return Result(self._runtime, self._result.merge(other._result))

    def to_json(self) -> str:
        """The result document, which ``hone store put`` reads too."""
        return self._result.json()

    @classmethod
    def from_json(cls, text: str, *, runtime: Any = None) -> Result:
        """Reads what :meth:`to_json` wrote, or ``hone tune --json``."""
        from hone import runtimes

        runtime = runtimes.default() if runtime is None else runtime
        return cls(runtime, runtime.parse_result(text))

    def save(self, path: str | os.PathLike[str]) -> None:
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, runtime: Any = None) -> Result:
        with open(os.fspath(path), encoding="utf-8") as file:
            try:
                return cls.from_json(file.read(), runtime=runtime)
            except (CorruptError, UnicodeDecodeError) as error:
                raise CorruptError(f"{os.fspath(path)} is not a result that Result.save wrote: {error}") from error

    def store(self, url: str) -> None:
        """Writes the entries to a store, ``"sqlite:PATH"`` or ``"json:FOLDER"``, in one transaction."""
        self._result.store(url)

    def report(self) -> str:
        """One HTML page that shows what was tried."""
        return self._result.report()

    def table(self) -> str:
        """A row for each call: what was chosen, how fast it is, and what came next."""
        rows = [("call", "kernel", "config", "time", "next best", "takes")]
        for one in self.decisions:
            slower = f"{one.ratio:.2f} times as long" if one.runner_up and one.ratio > 0 else ""
            rows.append((str(one.call), f"{one.platform}/{one.kernel}", _tables.config_text(one.config), _tables.time_text(one.time_ns),
                         one.runner_up, slower))
        return "\n".join(_tables.aligned(rows))

    def __str__(self) -> str:
        """The contest of each call as ``hone tune`` prints it: every kernel, its time, and why the others lost."""
        return _tables.text(json.loads(self.to_json()))

    def _repr_html_(self) -> str:
        """The same as a table with bars, which shows where a notebook runs no scripts; below it the report in a frame, for its styles
        are a page's."""
        return (_tables.page(json.loads(self.to_json())) +
                f'<iframe srcdoc="{html.escape(self.report())}" style="width:100%;height:30em;border:0"></iframe>')

    def __reduce__(self) -> tuple[Any, ...]:
        """By way of JSON: what comes back belongs to the default runtime of the process that reads it."""
        return Result.from_json, (self.to_json(),)

    def __repr__(self) -> str:
        calls = ", ".join(str(decision.call) for decision in self.decisions[:3])
        return f"<hone.Result of {len(self)}: {calls}{', ...' if len(self) > 3 else ''}>"
