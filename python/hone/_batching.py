"""Folds a batch of vmap into a leading dim along which the parts of a call are independent."""

from __future__ import annotations

import concurrent.futures
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from hone.errors import HoneError, InvalidArgumentError, KernelFailedError

_checked: dict[tuple[Any, ...], bool] = {}  # whether a batch may be folded into a dim, by algorithm, dim and the rest of the call


def dims_of(form: str) -> list[str]:
    """The dims of "T[batch, kv_len ~pow2, ceildiv(n, 2)]"."""
    dims, depth = [""], 0
    for letter in form[form.index("[") + 1:form.rindex("]")]:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            dims.append("")
        else:
            dims[-1] += letter
    return [dim.split("~")[0].strip() for dim in dims if dim.strip()]


def words_of(dim: str) -> list[str]:
    """The names in a dim that may be computed."""
    return re.findall(r"\w+", dim)


def _dims(type_text: str) -> list[str] | None:
    """The dims of a type; None where they depend on something."""
    return None if " if " in type_text or "[" not in type_text else dims_of(type_text)


def _alternatives(type_text: str) -> list[list[str]] | None:
    """The dims of each form of a type: "T[n, k] if transpose_b else [k, n]" has two."""
    forms = []
    for form in type_text.split(" else "):
        dims = _dims(form.split(" if ")[0])
        if dims is None:
            return None
        forms.append(dims)
    return forms


def _has_leading(rows: Sequence[dict[str, Any]], ndims: Sequence[int]) -> bool:
    """Whether "..." matches at least one dim in a call of arrays with these numbers of dims."""
    for row, ndim in zip(rows, ndims):
        forms = _alternatives(row["type"])
        if forms is not None and "..." in forms[0]:
            return ndim > len(forms[0]) - 1
    return False


def _leads(row: dict[str, Any], dim: str, has_leading: bool) -> bool | None:
    """Whether a dim is the first one and occurs nowhere else; None if it does not occur. A "..." that matches no dim does not count."""
    forms = _alternatives(row["type"])
    if forms is None:
        return False
    if dim != "..." and not has_leading:
        forms = [[one for one in form if one != "..."] for form in forms]
    uses = [[one for one in form if dim == one or (dim != "..." and dim in words_of(one))] for form in forms]
    if not any(uses):
        return None
    return all(form and form[0] == dim and len(used) == 1 for form, used in zip(forms, uses))


def _refuse_ranks(site: Any, rows: Sequence[dict[str, Any]], ndims: Sequence[int]) -> None:
    """Refuses numbers of dims that are wrong for one element: with the batch in front they may be valid, and would mix the elements."""
    for row, ndim in zip(rows, ndims):
        forms = _alternatives(row["type"])
        if forms is not None and not any(ndim >= len(form) - 1 if "..." in form else ndim == len(form) for form in forms):
            raise InvalidArgumentError(f"{site.operation.name}: {row['name']} has {ndim} dims inside of vmap, expected {row['type']}")


def folding_dim(site: Any, batched: Sequence[bool], ndims: Sequence[int]) -> str | None:
    """The leading dim that a batch may be put into: parts along it do not touch each other, by the algorithm's own word. Of several
    the one for which the fewest arrays are to be repeated: a product of many rows, and not many products, where b is one.

    Args:
        ndims: dims of the arrays, without the batch.
    """
    rows = [row for row, there in zip(site.tensors, site.given) if there]
    _refuse_ranks(site, rows, ndims)
    has_leading = _has_leading(rows, ndims)
    best, least = None, len(rows) + 1
    for dim in (site.operation.independent or "").replace(":", " ").split():
        leads = [_leads(row, dim, has_leading) for row in rows]
        results = [_leads(row, dim, has_leading) for row in site.results]
        sound = all(lead is not False for lead in leads) and all(results)
        repeated = sum(bool(lead) and not of_batch for lead, of_batch in zip(leads, batched))
        if sound and all(lead for lead, of_batch in zip(leads, batched) if of_batch) and repeated < least:
            best, least = dim, repeated
    return best


def _why_not(call: Any) -> Exception | None:
    """The error if the parts of a call are not independent. Runs in a new thread, because a framework may be tracing in this one."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(call.check_parts).exception()  # type: ignore[return-value]


def checked_dim(site: Any, dim: str | None, call_of: Callable[[Callable[[Any, Any], Any]], Any]) -> str | None:
    """The dim that folding_dim found, or None if the parts along it are not independent, as the algorithm claims. The tests verify the
    claim of builtin algorithms. For others the reference computes a batch of two whole and in parts, once per process. If that gives
    no result, the dim is not used.

    Args:
        call_of: describes the call of a batch of two, by a function of a tensor's row and the shape of an element: its shape in the batch.
    """
    if dim is None:
        return None
    operation = site.operation
    key = (operation.address, operation.signature, operation.independent, dim, tuple(site.given), site.scalars)
    if key not in _checked:
        def batched(row: Any, shape: Any) -> tuple[int, ...]:
            if not _leads(row, dim, False):
                return tuple(shape)
            return (2, *shape) if dim == "..." else (2 * shape[0], *shape[1:])
        why = _why_not(call_of(batched))
        if why is not None and not isinstance(why, HoneError):
            raise why
        if isinstance(why, KernelFailedError):
            warnings.warn(f"vmap makes a call for each element of the batch: {why}", RuntimeWarning, stacklevel=2)
        _checked[key] = why is None
    return dim if _checked[key] else None


def fold(site: Any, dim: str, operands: Sequence[Any], axes: Sequence[Any], size: int, bind: Any, spread: Any) -> list[Any]:
    """One call of all of the batch, and its results with the batch in front.

    Args:
        bind: makes the call.
        spread: spread(operand, axis, size) brings an operand's batch to the front, or repeats it there.
    """
    rows = [row for row, there in zip(site.tensors, site.given) if there]
    given = []
    for row, operand, axis in zip(rows, operands, axes):
        if not _leads(row, dim, False):
            given.append(operand)
            continue
        whole = spread(operand, axis, size)
        given.append(whole if dim == "..." else whole.reshape(size * whole.shape[1], *whole.shape[2:]))
    results = bind(*given)
    return [out if dim == "..." else out.reshape(size, out.shape[0] // size, *out.shape[1:]) for out in results]
