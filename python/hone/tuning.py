"""Options of tuning, and its progress."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

OPTIONS = frozenset(
    "evaluations seconds patience candidate_seconds wait_seconds isolation cold seed store fresh keep_existing platform "
    "kernel stable expected_calls batch_seconds progress".split()
)

Progress = Callable[[dict[str, Any]], object]


def options_of(runtime: Any, operation: Any, keywords: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keyword arguments parted into scalars of the call and options of tuning. The call's own names go first."""
    parameters: set[str] = set()
    if operation is not None and not (isinstance(operation, str) and "(" in operation):
        parameters = {row["name"] for row in runtime.operation(operation).parameters}
    scalars = {name: value for name, value in keywords.items() if name in parameters or name not in OPTIONS}
    return scalars, {name: value for name, value in keywords.items() if name not in scalars}


class _Bar:
    """tqdm's bar, fed by a contest."""

    def __init__(self, tqdm: Any):
        self._tqdm, self._call = tqdm, ""
        self._bar: Any = None

    def __call__(self, progress: dict[str, Any]) -> None:
        if progress["waiting"]:
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
    if not asked and not sys.stderr.isatty():
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        if asked:
            raise
        return None
    return tqdm


@contextlib.contextmanager
def watched(options: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The options with their progress as a callable: the caller's own; tqdm's bar where it is asked for, or where
    there is a terminal and tqdm; else none."""
    progress = options.get("progress")
    if callable(progress):
        yield options
        return
    if progress not in (None, True, False):
        raise TypeError(f"progress is a callable, True, False or None, and a {type(progress)} came")
    tqdm = None if progress is False else _tqdm(progress is True)
    given = {name: value for name, value in options.items() if name != "progress"}
    if tqdm is None:
        yield given
        return
    bar = _Bar(tqdm)
    try:
        yield dict(given, progress=bar)
    finally:
        bar.close()
