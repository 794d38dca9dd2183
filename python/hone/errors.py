"""What hone answers when it cannot do what was asked: one exception for each thing a caller can do about it."""

from __future__ import annotations


class HoneError(Exception):
    """Any failure of hone. Its text says what came, what was expected and what to do.

    Attributes:
        where: the part of hone that failed, such as ``"call.bind"``.
        system_code: ``errno``, ``CUresult`` or the like; 0 when there is none.
    """

    where: str | None = None
    system_code: int = 0


class InvalidArgumentError(HoneError, ValueError):
    """The call itself is wrong: fix the caller."""


class OutOfMemoryError(HoneError, MemoryError):
    """Free something and try again."""


class NotFoundError(HoneError, LookupError):
    """Nothing by that name or key."""


class UnsupportedError(HoneError, NotImplementedError):
    """Understood, but this kernel, build or version cannot do it."""


class UnavailableError(HoneError, RuntimeError):
    """Needs a library, driver or device that is not here; the text says which."""


class IncompatibleError(HoneError):
    """Written by a newer or other version."""


class CorruptError(HoneError):
    """What was read is damaged; it was left as it was."""


class BusyError(HoneError, TimeoutError):
    """Somebody else holds it: wait, or take the heuristic."""


class IOFailedError(HoneError, OSError):
    """The operating system said no; ``system_code`` holds errno."""


class CancelledError(HoneError):
    """The contest was cancelled."""


class KernelFailedError(HoneError, RuntimeError):
    """A kernel ran and failed."""


# Exceptions by the number of the status in C. Entry 0 is for unknown numbers.
BY_STATUS: tuple[type[HoneError], ...] = (
    HoneError,
    InvalidArgumentError,
    OutOfMemoryError,
    NotFoundError,
    UnsupportedError,
    UnavailableError,
    IncompatibleError,
    CorruptError,
    BusyError,
    IOFailedError,
    CancelledError,
    KernelFailedError,
)
