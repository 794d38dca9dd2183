"""What the library has to say, as messages of Python's logging."""

from __future__ import annotations

_LEVELS = ("ERROR", "WARNING", "INFO", "DEBUG")  # by the library's numbers


def tell(level: int, message: str) -> None:
    import logging  # most programs are told nothing, and then it is not loaded

    logging.getLogger("hone").log(getattr(logging, _LEVELS[level]), "%s", message)
