"""Results that a call leaves out: arrays like its first argument."""

from __future__ import annotations

import sys
from typing import Any


def _numpy_dtype(name: str) -> Any:
    import numpy

    try:
        return numpy.dtype(name)
    except TypeError:
        import ml_dtypes  # bfloat16, float8

        return numpy.dtype(getattr(ml_dtypes, name))


def allocate(like: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    """An uninitialised array of the kind of ``like``: torch's on its device, else numpy's.

    Args:
        like: the first array of the call.
        dtype: numpy's name of the element type, ``"float32"``.
        shape: of the result.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(like, torch.Tensor):
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)
    import numpy

    return numpy.empty(shape, _numpy_dtype(dtype))
