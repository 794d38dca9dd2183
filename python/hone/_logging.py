"""What the library has to say, as messages of Python's logging, and what a call waits for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")  # indexed by the library's level numbers
_WAIT, _AFTER = -1, 1.0  # seconds
_waits: dict[str, threading.Timer] = {}  # by the call that is verified


def tell(level: int, message: str) -> None:
    if sys.is_finalizing():  # the interpreter is ending: nothing can be imported or logged
        return
    if level == _WAIT:
        _note_wait(*message.rsplit(": ", 1))
        return
    import logging  # imported late: most programs get no message

    logging.getLogger("hone").log(getattr(logging, _LEVELS[level]), "%s", message)


def plain(words: str) -> str:
    """What others wrote, in one line, without characters that move a terminal's cursor or turn text around."""
    line = " ".join(words.splitlines())
    return line if line.isprintable() else "".join(one if one.isprintable() else f"\\x{ord(one):02x}" if ord(one) < 256 else f"\\u{ord(one):04x}" for one in line)


def _note_wait(what: str, state: str) -> None:
    import threading

    before = _waits.pop(what, None)
    if before is not None:
        before.cancel()
    if state == "is being verified":
        _waits[what] = timer = threading.Timer(_AFTER, _say_wait, (what,))
        timer.daemon = True
        timer.start()


def is_watched() -> bool:
    """Whether a user sees the output: at a terminal, or in a notebook."""
    return "ipykernel" in sys.modules or sys.stderr is not None and sys.stderr.isatty()


def _say_wait(what: str) -> None:
    words = f"{what}: it is compared with the reference in a process of its own, once; the call waits for that"
    if is_watched():
        print(f"hone: {words}", file=sys.stderr, flush=True)
        return
    import logging

    logging.getLogger("hone").info("%s", words)
