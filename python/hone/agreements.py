"""Ranks that must choose alike: each says what it would choose, and any finds what differs, before anything runs.

Nothing here is a collective. The texts go through the key-value store that a job has for its start, each rank asks for those of
the others until a deadline, and a rank that has not answered by then is named.
"""

from __future__ import annotations

import dataclasses
import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from hone import _hone, contexts, runtimes
from hone.errors import BusyError, HoneError, IncompatibleError, InvalidArgumentError

_FAILED = "failed: "  # the prefix of an error message that replaces a digest
_SHOWN = 10  # the most differences in the text of an exception
_PAUSE = 0.02  # seconds between two reads of the board


@dataclasses.dataclass(frozen=True)
class Difference:
    """What one rank chooses otherwise.

    Attributes:
        rank: in the group.
        other: the first of the most ranks that choose the same.
        field: ``"call"``, ``"answer"``, ``"platform"``, ``"kernel"``, ``"config"``, ``"revision"``, or ``"unsettled"``: all would tune.
        words: both choices, and what of stores, devices and policies differs.
    """

    rank: int
    other: int
    call: str
    algorithm: str
    version: str
    key: str
    field: str
    words: str

    def __str__(self) -> str:
        return f"{self.call}: {self.words}"


class Agreement:
    """What the ranks of a group choose. True where all have answered and choose alike.

    Entered with ``with``, this rank's choices answer, whatever is tuned or stored meanwhile.

    Attributes:
        rank, size: of this process in the group, and how many ranks that has.
        digest: of this rank's choices.
        differences: by call.
        missing: ranks that had not answered in time.
        failed: words of ranks that could not say what they choose, by rank.
    """

    def __init__(
        self,
        runtime: Any,
        rank: int,
        size: int,
        document: str,
        digest: str,
        differences: Sequence[Difference] = (),
        missing: Sequence[int] = (),
        failed: dict[int, str] | None = None,
        waited: float = 0.0,
        trouble: str = "",
    ):
        self._runtime = runtime
        self._document = document
        self._waited = waited
        self._trouble = trouble
        self._entered: list[Any] = []
        self.rank = rank
        self.size = size
        self.digest = digest
        self.differences = tuple(differences)
        self.missing = tuple(missing)
        self.failed = dict(failed or {})

    def __bool__(self) -> bool:
        return not (self.differences or self.missing or self.failed)

    def __str__(self) -> str:
        if self:
            return f"{self.size} ranks choose alike ({self.digest[:16]})"
        lines = [str(difference) for difference in self.differences[:_SHOWN]]
        if len(self.differences) > _SHOWN:
            lines.append(f"and {len(self.differences) - _SHOWN} more")
        lines += [f"rank {rank} could not say what it chooses: {words}" for rank, words in sorted(self.failed.items())]
        if self.missing:
            names = ", ".join(map(str, self.missing))
            lines.append(
                f"rank{'s' if len(self.missing) > 1 else ''} {names} of {self.size} had not said what "
                f"{'they choose' if len(self.missing) > 1 else 'it chooses'} after {self._waited:.1f} s{self._trouble}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<hone.Agreement of rank {self.rank} of {self.size}: {self}>"

    def check(self) -> Agreement:
        """Itself, where all ranks choose alike.

        Raises:
            IncompatibleError: they do not, or a rank could not say.
            BusyError: of those that answered all do, and others have not answered.
        """
        if self.differences or self.failed:
            raise IncompatibleError(f"the ranks do not choose alike:\n{self}")
        if self.missing:
            raise BusyError(str(self))
        return self

    def context(self) -> contexts.Context:
        """A context in which this rank's choices answer their calls."""
        entries = []
        for row in json.loads(self._document)["rows"]:
            choice = row["choice"]
            if choice is not None:
                entries.append({name: row[name] for name in ("algorithm", "version", "key", "device")})
                entries[-1].update(kernel=choice["kernel"], config=choice["config"], platform=choice["platform"])
        return self._runtime.context(overlay=entries)  # type: ignore[no-any-return]

    def __enter__(self) -> Agreement:
        entered = self.context()
        entered.__enter__()
        self._entered.append(entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.pop().__exit__(kind, error, trace)


class Board:
    """Where ranks put texts for each other: ``put(key, text)``, and ``get(key)``, which gives None where nothing stands yet."""

    def __init__(self, put: Callable[[str, str], None], get: Callable[[str], str | None], words: str):
        self.put = put
        self.get = get
        self.words = words  # of the message about a board that does not answer


class _Exchange:
    """One exchange, in a thread of its own: a board whose host is stopped answers nobody, and gives up no wait."""

    def __init__(self, board: Board, prefix: str, rank: int, size: int, digest: str, document: str, deadline: float):
        self._board, self._prefix, self._deadline = board, prefix, deadline
        self._rank, self._size = rank, size
        self._digest, self._document = digest, document
        self.digests: dict[int, str] = {rank: digest}
        self.documents: dict[int, str] = {rank: document}  # documents of the first rank with each digest
        self.error: BaseException | None = None
        self.answered = threading.Event()  # the board has accepted this rank's texts
        self.thread = threading.Thread(target=self._run, daemon=True, name="hone agree")

    def _await(self, key: str) -> str | None:
        while True:
            text = self._board.get(key)
            if text is not None or time.monotonic() > self._deadline:
                return text
            time.sleep(_PAUSE)

    def _run(self) -> None:
        try:
            self._board.put(f"{self._prefix}/{self._rank}/document", self._document)
            self._board.put(f"{self._prefix}/{self._rank}/digest", self._digest)
            self.answered.set()
            for rank in range(self._size):
                text = self._await(f"{self._prefix}/{rank}/digest")
                if text is not None:
                    self.digests[rank] = text
            known = {self._digest}
            for rank, digest in sorted(self.digests.items()):
                if digest in known or digest.startswith(_FAILED):
                    continue
                text = self._board.get(f"{self._prefix}/{rank}/document")
                if text is not None:
                    self.documents[rank] = text
                    known.add(digest)
        except BaseException as error:  # raised by the waiting thread
            self.error = error


def _differences(digests: dict[int, str], documents: dict[int, str], size: int) -> list[Difference]:
    by_digest = {digests[rank]: text for rank, text in documents.items()}
    texts = [by_digest.get(digests.get(rank, "")) for rank in range(size)]
    return [Difference(**row) for row in _hone.compare_agreements(texts)]


def agree(
    board: Board,
    prefix: str,
    rank: int,
    size: int,
    calls: Iterable[str] | None,
    timeout: float,
    check: bool,
    runtime: Any = None,
) -> Agreement:
    """One exchange of all ranks over a board. ``prefix`` is the same on all of them, and no other exchange's."""
    if not timeout > 0:
        raise InvalidArgumentError(f"the timeout is {timeout!r}, expected seconds above 0")
    texts = _list_of(calls)
    runtime = runtime if runtime is not None else runtimes.default()
    timeout = min(timeout, threading.TIMEOUT_MAX / 4)
    start = time.monotonic()
    failure: HoneError | None = None
    document, digest = "", ""
    try:
        document, digest = runtime.agree(texts)
        if not json.loads(document)["rows"]:
            raise InvalidArgumentError(
                "there is no call to agree on: name some, calls=[...], or make or bind them before, which is what counts without"
            )
    except HoneError as error:  # the other ranks get the error, and need not wait
        failure, digest = error, _FAILED + str(error)
    exchange = _Exchange(board, prefix, rank, size, digest, document, start + timeout)
    exchange.thread.start()
    exchange.thread.join(start + timeout + 10 * _PAUSE - time.monotonic() if failure is None else min(timeout, 1.0))
    if failure is not None:
        raise failure
    trouble = ""
    if exchange.error is not None:
        trouble = f": {board.words} fails: {exchange.error}"
    elif not exchange.answered.is_set():
        trouble = f": {board.words} does not answer"
    digests, documents = dict(exchange.digests), dict(exchange.documents)
    failed = {of: text.removeprefix(_FAILED) for of, text in digests.items() if text.startswith(_FAILED)}
    answered = {of: text for of, text in digests.items() if of not in failed}
    agreement = Agreement(
        runtime, rank, size, document, digest, _differences(answered, documents, size),
        [of for of in range(size) if of not in digests], failed, time.monotonic() - start, trouble,
    )
    return agreement.check() if check else agreement


def _list_of(calls: Iterable[str] | None) -> list[str] | None:
    if calls is None:
        return None
    if isinstance(calls, (str, bytes)) or not isinstance(calls, Iterable):
        raise InvalidArgumentError(f"calls is {calls!r}, expected a list of call texts")
    texts = [*calls]
    for text in texts:
        if not isinstance(text, str):
            raise InvalidArgumentError(f"calls has {text!r}, expected call texts")
    return texts


def say(calls: Iterable[str] | None = None) -> tuple[str, str]:
    """What this process would choose, as ``(document, digest)``, for means of a program's own.

    Args:
        calls: call texts; None: all that the runtime was asked for until now.
    """
    return runtimes.default().agree(_list_of(calls))  # type: ignore[no-any-return]


def compare(documents: Sequence[str | None]) -> list[Difference]:
    """What differs between the documents of ranks, in their order; None for a rank that has none."""
    if isinstance(documents, (str, bytes)):
        raise InvalidArgumentError("documents is one text, expected a list of the ranks' documents, None for a rank without one")
    return [Difference(**row) for row in _hone.compare_agreements([*documents])]
