"""What the library has to say, as messages of Python's logging."""

from __future__ import annotations

import sys

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")  # by the library's numbers


def tell(level: int, message: str) -> None:
    if sys.is_finalizing():  # nothing can be imported any more, and nobody listens
        return
    import logging  # most programs are told nothing, and then it is not loaded

    logging.getLogger("hone").log(getattr(logging, _LEVELS[level]), "%s", message)
