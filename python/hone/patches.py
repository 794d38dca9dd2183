"""hone's operations in JAX's own: ``hone.jax.patch()``.

``dot_general`` is replaced where JAX lowers it, below ``jit``, ``vmap`` and ``grad``, which stay JAX's. ``softmax`` and
``standardize`` are functions of JAX's that call many primitives: their names in ``jax.nn`` are replaced.
"""

from __future__ import annotations

import functools
import math
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax._src.nn import functions as nn_functions
from jax.interpreters import mlir

import hone.jax
from hone.errors import InvalidArgumentError, UnsupportedError

PLATFORMS = ("cpu", "cuda")
DTYPES = ("float32", "bfloat16", "float16")
_lock = threading.Lock()
_current: Patched | None = None


class Patched:
    """What :func:`hone.jax.patch` did. Printed it says which operations of the programs that JAX traced since run hone's, and why others do
    not; entered with ``with``, it is undone at the end.

    Attributes:
        hits: from JAX's names to places in programs that run hone's operation.
        left: from JAX's names to the reasons and the places that run JAX's own.
    """

    def __init__(self) -> None:
        self.hits: Counter[str] = Counter()
        self.left: dict[str, Counter[str]] = {"dot_general": Counter(), "softmax": Counter(), "standardize": Counter()}
        self._undo: list[Callable[[], None]] = []

    def _note(self, name: str, reason: str | None) -> None:
        if reason is None:
            self.hits[name] += 1
        else:
            self.left[name][reason] += 1

    def undo(self) -> None:
        """JAX's own operations are back. Programs are traced anew."""
        global _current
        with _lock:
            if _current is not self:
                return
            for step in reversed(self._undo):
                step()
            _current = None
        jax.clear_caches()

    def __enter__(self) -> Patched:
        return self

    def __exit__(self, *error: Any) -> None:
        self.undo()

    def __repr__(self) -> str:
        lines = []
        for name, reasons in self.left.items():
            lines.append(f"{name}: {self.hits[name]} places run hone's, {sum(reasons.values())} JAX's own")
            lines += [f"  {count}: {reason}" for reason, count in reasons.most_common()]
        return "\n".join(lines)


def _refused(shapes: tuple[Any, ...], dtypes: set[str]) -> str | None:
    if len(dtypes) > 1:
        return f"dtypes that differ: {', '.join(sorted(dtypes))}"
    if not dtypes <= set(DTYPES):
        return f"of {dtypes.pop()}"
    if not all(isinstance(dim, int) for shape in shapes for dim in shape):
        return "a shape with symbols"
    return "no elements" if any(0 in shape for shape in shapes) else None


# dot_general ----------------------------------------------------------------------------------------------------------


def _why_not_product(ctx: Any, dimension_numbers: Any, precision: Any, out_sharding: Any) -> str | None:
    lhs, rhs = ctx.avals_in
    reason = _refused((lhs.shape, rhs.shape), {str(aval.dtype) for aval in (lhs, rhs, *ctx.avals_out)})
    (left, right), (batch, _) = dimension_numbers
    if reason is not None:
        return reason
    if len(batch) > 0:
        return "a batch of products"
    if not left or tuple(left) != tuple(range(lhs.ndim - len(left), lhs.ndim)):
        return "the left side's summed dims are not its last"
    if tuple(right) not in (tuple(range(len(right))), tuple(range(rhs.ndim - len(right), rhs.ndim))):
        return "the right side's summed dims are not its first or last"
    if precision is not None and not isinstance(precision, (tuple, jax.lax.Precision)):
        return "an algorithm is named as precision"
    if out_sharding is not None or _devices(ctx) > 1:
        return "spread over devices"
    return None


def _devices(ctx: Any) -> int:
    axes = ctx.module_context.axis_context
    mesh = getattr(axes, "mesh", None)
    return getattr(axes, "num_devices", None) or (1 if mesh is None else mesh.size)


def _product(lhs: Any, rhs: Any, *, dimension_numbers: Any, **others: Any) -> Any:
    (left, right), _ = dimension_numbers
    kept, deep = lhs.shape[:lhs.ndim - len(left)], math.prod(lhs.shape[dim] for dim in left)
    transposed = tuple(right) != tuple(range(len(right)))
    added = rhs.shape[:rhs.ndim - len(right)] if transposed else rhs.shape[len(right):]
    wide = math.prod(added)
    made = hone.jax.call("matmul", lhs.reshape(-1, deep), rhs.reshape((wide, deep) if transposed else (deep, wide)), transpose_b=transposed)
    return made.reshape(*kept, *added)


def _lowered(patched: Patched, before: Callable[..., Any], ctx: Any, lhs: Any, rhs: Any, **parameters: Any) -> Any:
    reason = _why_not_product(ctx, parameters["dimension_numbers"], parameters.get("precision"), parameters.get("out_sharding"))
    patched._note("dot_general", reason)
    if reason is not None:
        return before(ctx, lhs, rhs, **parameters)
    return mlir.lower_fun(functools.partial(_product, **parameters), multiple_results=False)(ctx, lhs, rhs)


def _patch_products(patched: Patched) -> None:
    try:
        from jax._src.interpreters.mlir import _lowerings, _platform_specific_lowerings
    except ImportError as error:
        raise UnsupportedError(f"JAX {jax.__version__} does not show how it lowers dot_general ({error})") from error
    product = jax.lax.dot_general_p
    for platform in PLATFORMS:
        table = _platform_specific_lowerings[platform]
        entry = table.get(product)
        before = (entry or _lowerings[product]).rule

        def restore(table: Any = table, entry: Any = entry) -> None:
            if entry is None:
                del table[product]
            else:
                table[product] = entry

        patched._undo.append(restore)
        mlir.register_lowering(product, functools.partial(_lowered, patched, before), platform=platform)


# Functions ------------------------------------------------------------------------------------------------------------


def _why_not_rows(x: Any, axis: Any) -> str | None:
    if not isinstance(axis, int) or x.ndim == 0 or axis not in (-1, x.ndim - 1):
        return "not along the last dim"
    if len(jax.typeof(x).sharding.mesh.shape) > 0:
        return "spread over devices"
    return _refused((x.shape,), {str(x.dtype)})


@jax.custom_jvp
def _softmax(x: Any) -> Any:
    return hone.jax.call("softmax", x)


@_softmax.defjvp
def _softmax_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (tangent,) = primals, tangents
    y = _softmax(x)
    return y, y * (tangent - (y * tangent).sum(-1, keepdims=True))


def _patched_softmax(patched: Patched, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
        array = jnp.asarray(x)
        reason = "where is given" if where is not None else _why_not_rows(array, axis)
        patched._note("softmax", reason)
        return original(x, axis, where) if reason is not None else _softmax(array)

    return softmax


def _patched_standardize(patched: Patched, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def standardize(x: Any, axis: Any = -1, mean: Any = None, variance: Any = None, epsilon: Any = 1e-5, where: Any = None, **options: Any) -> Any:
        array = jnp.asarray(x)
        reason = _why_not_rows(array, axis)
        if mean is not None or variance is not None or where is not None:
            reason = "mean, variance or where is given"
        elif not isinstance(epsilon, (int, float, numpy.number)):
            reason = "epsilon is not a number"
        patched._note("standardize", reason)
        if reason is not None:
            return original(x, axis, mean, variance, epsilon, where, **options)

        @jax.custom_jvp
        def run(rows: Any) -> Any:
            return hone.jax.call("layer_norm", rows, eps=float(epsilon))

        run.defjvp(lambda primals, tangents: jax.jvp(lambda rows: original(rows, axis, epsilon=epsilon, **options), primals, tangents))
        return run(array)

    return standardize


def _patch_names(patched: Patched) -> None:
    for name, make in (("softmax", _patched_softmax), ("standardize", _patched_standardize)):
        made = make(patched, getattr(nn_functions, name))
        for module in (jax.nn, nn_functions):
            patched._undo.append(functools.partial(setattr, module, name, getattr(module, name)))
            setattr(module, name, made)


def patch() -> Patched:
    """See :func:`hone.jax.patch`."""
    global _current
    with _lock:
        if _current is not None:
            raise InvalidArgumentError("JAX runs hone's operations already: undo() of what patch gave comes first")
        patched = Patched()
        _patch_products(patched)
        _patch_names(patched)
        _current = patched
    jax.clear_caches()
    return patched
