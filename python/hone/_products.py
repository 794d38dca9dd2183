"""The product of arrays as numpy has it, by hone's ``matmul``, which is of matrices and of batches of them with the same leading dims."""

from __future__ import annotations

import math
from typing import Any

from hone import _arrays, _hone

_MOST_DIMS = 8  # the most dims that hone supports
_KNOWN = ("float16", "bfloat16", "float32", "float64")


def matmul(a: Any, b: Any) -> Any:
    """The product that ``numpy.matmul`` gives, of all shapes and dtypes that it takes; of torch's tensors :func:`hone.torch.matmul`.

    hone's ``matmul`` computes those of float16, bfloat16, float32 and float64 where both are of one: vectors are matrices of one row or column,
    leading dims of ``a`` are rows where ``b`` is a matrix, and else those of a batch, broadcast as numpy does. ``b`` may be turned
    (``a @ b.T``): it is read as it lies. What has gaps between the elements of a row is copied. Of bfloat16 it is bfloat16, where numpy has float32.
    Other products are the arrays' own library's.
    """
    if "torch" in (_arrays.family(a), _arrays.family(b)):
        import hone.torch

        return hone.torch.matmul(a, b)
    a, b = map(_array, (a, b))
    dtype = getattr(a.dtype, "name", "")
    if dtype not in _KNOWN or b.dtype != a.dtype or min(a.ndim, b.ndim) < 1 or max(a.ndim, b.ndim) > _MOST_DIMS:
        return a.__array_namespace__().matmul(a, b)
    rows, columns = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    if columns.ndim == 2:
        made = _product(rows.reshape(math.prod(rows.shape[:-1]), rows.shape[-1]), columns)
        shape = rows.shape[:-1] + columns.shape[1:]
    else:
        made = _batched(rows, columns)
        shape = made.shape
    shape = shape if a.ndim > 1 else shape[:-2] + shape[-1:]
    return made.reshape(shape if b.ndim > 1 else shape[:-1])[()]  # the product of two vectors is a number, as in numpy


def _array(one: Any) -> Any:
    if hasattr(one, "__array_namespace__"):
        return one
    import numpy

    return numpy.asarray(one)


def _batched(a: Any, b: Any) -> Any:
    import numpy

    library = a.__array_namespace__()
    leading = numpy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return _product(*(library.broadcast_to(one, leading + one.shape[-2:]) for one in (a, b)))


def _is_dense(x: Any) -> bool:
    """Whether its rows have no gaps, as far as the array says how it lies."""
    strides = getattr(x, "strides", None)
    return strides is None or x.shape[-1] <= 1 or strides[-1] == x.dtype.itemsize


def _product(a: Any, b: Any) -> Any:
    """Kernels take rows without gaps: only the reference takes any strides, which is some hundred times as slow."""
    turned = b.swapaxes(-1, -2)
    is_turned = not _is_dense(b) and _is_dense(turned)
    return _hone.run("matmul", _dense(a), turned if is_turned else _dense(b), transpose_b=is_turned)


def _dense(x: Any) -> Any:
    return x if _is_dense(x) else x.copy()
