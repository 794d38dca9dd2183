"""Which stream of a GPU a call runs on: the caller's where one is named, else the current one of the arrays' framework."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from typing import Any

from hone._arrays import family

_LOG = logging.getLogger("hone")
_told: set[type] = set()
_LEGACY = 1  # the driver's number of the legacy default stream, which waits for other streams; 0 is the same stream


def _torch_current(device: int) -> int:
    return int(sys.modules["torch"].cuda.current_stream(device).cuda_stream)


def _cupy_current(device: int) -> int:
    return int(sys.modules["cupy"].cuda.get_current_stream(device).ptr)


_CURRENT: dict[str, tuple[str, Callable[[int], int]]] = {
    "torch": ("torch", _torch_current),
    "cupy": ("CuPy", _cupy_current),
}


def _number_of(stream: Any) -> int:
    """The driver's number of a stream: an int, torch's, CuPy's, or what has ``__cuda_stream__``."""
    for name in ("cuda_stream", "ptr"):
        number = getattr(stream, name, None)
        if isinstance(number, int):
            return number
    if hasattr(stream, "__cuda_stream__"):
        return int(stream.__cuda_stream__()[1])
    if isinstance(stream, int) and not isinstance(stream, bool) and stream >= 0:
        return stream
    raise TypeError(
        f"stream must be a stream of torch or CuPy, what has __cuda_stream__, or the driver's number of one, got {stream!r}")


def _check_device(stream: Any, device: int) -> None:
    """torch's and CuPy's say where they are; -1 is CuPy's for the current one."""
    where = getattr(stream, "device_index", getattr(stream, "device_id", device))
    if isinstance(where, int) and where >= 0 and where != device:
        raise ValueError(f"the stream is of cuda:{where}, and the arrays lie on cuda:{device}")


def _current(families: set[str], device: int) -> int:
    found = {name: ask(device) or _LEGACY for key, (name, ask) in _CURRENT.items() if key in families}
    if len(set(found.values())) > 1:
        said = ", ".join(f"{name}'s is {number:#x}" for name, number in found.items())
        raise ValueError(
            f"got arrays of several frameworks whose current streams differ ({said}): make one the other's, for example "
            "with torch.cuda.stream(torch.cuda.ExternalStream(cupy.cuda.get_current_stream().ptr)), or name one with stream=")
    return next(iter(found.values()), _LEGACY)


def _tell_once(arrays: Sequence[Any]) -> None:
    """That nothing is known of a stream, once for each type of array."""
    for kind in {type(array) for array in arrays if family(array) not in _CURRENT} - _told:
        _told.add(kind)
        _LOG.info(
            "%s.%s has no current stream to ask for: calls with such arrays on a GPU wait for their end; stream= names one",
            kind.__module__, kind.__qualname__)


def choose(given: Any, device: int, arrays: Sequence[Any]) -> tuple[int, bool]:
    """The stream of a call, and whether the call waits for its end.

    Arrays of a framework that has no current stream to ask for are there when they are shown (JAX's), or in the order of the
    default stream, as DLPack has it (anybody's else). Nothing orders what is done with them later, so that the call waits.

    Args:
        given: what the caller named; None: nothing.
        device: number of the GPU.
        arrays: those that lie on it.
    """
    families = {family(array) for array in arrays}
    if given is not None:
        _check_device(given, device)
    stream = _number_of(given) if given is not None else _current(families, device)
    if stream not in (0, _LEGACY):
        for array in arrays:
            if family(array) == "":
                array.__dlpack__(stream=stream)  # makes the stream wait for the array's producer
    if given is not None:
        return stream, "jax" in families
    waits = not families <= set(_CURRENT)
    if waits:
        _tell_once(arrays)
    return stream, waits
