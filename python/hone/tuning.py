"""Options of tuning, and its progress."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hone import _logging
from hone.errors import InvalidArgumentError

OPTIONS = frozenset(
    "evaluations seconds patience candidate_seconds wait_seconds isolation cold seed store fresh keep_existing platform "
    "kernel stable expected_calls batch_seconds progress tuner same_regime regime".split()
)

Progress = Callable[[dict[str, Any]], object]


# --- custom tuners


@dataclasses.dataclass(frozen=True)
class Tried:
    """What came of trying a config. Times are nanoseconds of one run; ``failure`` is None where it was right."""

    time_ns: float
    low_ns: float
    high_ns: float
    failure: str | None
    reason: str


class TuningKernel:
    """A kernel that competes.

    Attributes:
        name, platform, backend: its own.
        default: its config without tuning.
    """

    def __init__(self, native: Any, index: int, row: tuple[str, str, str, str]):
        self._native, self._index = native, index
        self.name, self.platform, self.backend, default = row
        self.default: dict[str, Any] = json.loads(default)

    def configs(self) -> Iterator[dict[str, Any]]:
        """The configs that hone's own search would try, one after the other, by what was tried until then. All of them,
        where the contest has that many evaluations."""
        while (text := self._native.propose(self._index)) is not None:
            yield json.loads(text)

    def measure(self, config: Mapping[str, Any]) -> Tried:
        """Tries a config as hone does: in a worker process, verified, then timed. What was tried before is not run
        again.

        Raises:
            InvalidArgumentError: its space refuses the config.
            UnsupportedError: the kernel was disabled, since it crashes or hangs.
            CancelledError: the contest's seconds or evaluations are spent. A tuner that lets it pass has done its work.
        """
        if not isinstance(config, Mapping):
            raise TypeError(f"a config must be a mapping from parameters to values, got {config!r}")
        return Tried(*self._native.measure(self._index, json.dumps(dict(config))))

    def __repr__(self) -> str:
        return f"<hone.tuning.TuningKernel {self.name} ({self.platform})>"


class Tuning:
    """A contest in the hands of a tuner of the program's own, for as long as that runs, in its thread.

    Attributes:
        call: text of the call.
        device: fingerprint of the device.
        kernels: those that compete.
    """

    def __init__(self, native: Any):
        self._native = native
        self.call: str = native.call
        self.device: str = native.device
        self.kernels = [TuningKernel(native, index, row) for index, row in enumerate(native.kernels())]

    @property
    def seconds(self) -> float:
        """What is left for trying."""
        return self._native.seconds

    @property
    def evaluations(self) -> int:
        """What is left of them."""
        return self._native.evaluations

    def choose(self, kernel: TuningKernel, config: Mapping[str, Any]) -> None:
        """Says which config wins, as far as it is right in the last look at it. The last word counts; without one the
        fastest wins.

        Raises:
            InvalidArgumentError: it was not tried, or was rejected.
        """
        self._native.choose(kernel._index, json.dumps(dict(config)))


Tuner = Callable[[Tuning], Any]


def _tuner(own: Tuner) -> Callable[[Any], None]:
    """What the extension calls for a tuner, which may give back its choice as a pair of kernel and config."""
    if not callable(own):
        raise TypeError(f"a tuner must be a callable that takes a hone.tuning.Tuning, got {type(own).__name__}")

    def tune(native: Any) -> None:
        tuning = Tuning(native)
        choice = own(tuning)
        if choice is None:
            return
        if not isinstance(choice, tuple) or len(choice) != 2 or not isinstance(choice[0], TuningKernel) or \
                not isinstance(choice[1], Mapping):
            raise TypeError(f"a tuner must return None or a pair of a kernel and a config, got {choice!r}")
        tuning.choose(*choice)

    tune.__name__ = getattr(own, "__name__", type(own).__name__)
    return tune


# --- options


def options_of(runtime: Any, operation: Any, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments parted into scalars of the call and options of tuning. The call's own names go first."""
    parameters: set[str] = set()
    if operation is not None and not (isinstance(operation, str) and "(" in operation):
        parameters = {row["name"] for row in runtime.operation(operation).parameters}
    scalars = {name: value for name, value in keywords.items() if name in parameters or name not in OPTIONS}
    return scalars, {name: value for name, value in keywords.items() if name not in scalars}


def beside_text(call: str, given: Mapping[str, Any]) -> str:
    """Why a call text takes no arguments beside it; names the option that was probably meant."""
    meant = [near for name in given for near in difflib.get_close_matches(name, OPTIONS, 1, 0.8)]
    got = ", ".join(given) if given else "an array"
    return f"{call} has its arguments in its text and takes no others: got {got}" + (f"; did you mean {meant[0]}?" if meant else "")


class _Bar:
    """tqdm's bar, fed by a contest; without tqdm only what the contest waits for is told. Where nobody watches, nothing is."""

    def __init__(self, tqdm: Any):
        self._tqdm, self._call, self._waits = tqdm, "", ""
        self._bar: Any = None

    def _tell_wait(self, progress: dict[str, Any]) -> None:
        """Once for each call and what it waits for: a contest asks again every second."""
        words = f"{progress['call']}: waits for {_logging.plain(progress['waiting'])}"
        if words != self._waits:
            self._waits = words
            print(f"hone: {words}", file=sys.stderr, flush=True)

    def __call__(self, progress: dict[str, Any]) -> None:
        if progress["waiting"]:
            self._tell_wait(progress)
            return
        if self._tqdm is None:
            return
        if self._bar is None or progress["call"] != self._call:
            self.close()
            self._call = progress["call"]
            self._bar = self._tqdm(total=progress["total"], desc=self._call, unit="config", leave=False)
        self._bar.total = progress["total"]
        self._bar.n = progress["done"]
        if progress["best_ns"]:
            self._bar.set_postfix_str(f"{progress['best_kernel']} {progress['best_ns'] / 1e3:.1f} us", refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None


def _tqdm(asked: bool) -> Any:
    if not asked and not _logging.is_watched():
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if asked:
            raise
        return None
    return tqdm


def _is_from_zero(value: Any) -> bool:
    try:
        return not isinstance(value, (str, bytes, bool)) and float(value) >= 0
    except (TypeError, ValueError, OverflowError):
        return False


@contextlib.contextmanager
def watched(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options as the extension takes them, with their progress as a callable: the caller's own; tqdm's bar where it
    is asked for, or where there is a terminal or a notebook and tqdm; else what it waits for, where somebody sees it."""
    for name in ("seconds", "candidate_seconds", "wait_seconds", "batch_seconds", "expected_calls"):
        if not _is_from_zero(options.get(name, 0)):
            raise InvalidArgumentError(f"{name} must be a number of 0 (the default) or more, got {options[name]!r}")
    if options.get("tuner") is not None:
        options = dict(options, tuner=_tuner(options["tuner"]))
    progress = options.get("progress")
    if callable(progress):
        yield options
        return
    if progress not in (None, True, False):
        raise TypeError(f"progress must be a callable, True, False or None, got {type(progress).__name__}")
    tqdm = None if progress is False else _tqdm(progress is True)
    given = {name: value for name, value in options.items() if name != "progress"}
    if tqdm is None and (progress is False or not _logging.is_watched()):
        yield given
        return
    bar = _Bar(tqdm)
    try:
        yield dict(given, progress=bar)
    finally:
        bar.close()
