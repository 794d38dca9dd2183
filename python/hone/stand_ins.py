"""hone's operations in ejkernel's own registry: ``hone.ejkernel.register()``.

A program that calls ejkernel stays as it is. On the CPU its calls run hone's kernels, decided and recorded as all calls
of hone are; what hone does not take, and every gradient, runs ejkernel's own kernel.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from ejkernel.kernels import kernel_registry

import hone.jax
from hone import runtimes
from hone.errors import HoneError, UnsupportedError

# Higher than the priority 0 of ejkernel's own kernels.
PRIORITY = 1000

Arguments = dict[str, Any]


def _is_float32(value: Any) -> bool:
    return jnp.dtype(value) == jnp.float32


@dataclasses.dataclass(frozen=True)
class _Row:
    """How the arguments of one of ejkernel's kernels are those of the algorithm that has its name, or of
    ``dot_product_attention``, which is slower and takes more.

    Attributes:
        arrays, scalars: that hone takes, by the names that both have.
        means_nothing: of what hone does not take, the values that change nothing, told from all of the arguments.
        takes_more: whether a bias, a window of two sides and values of another dim are dot_product_attention's.
        before: makes the arrays that hone gets.
        after: makes ejkernel's results of hone's.
    """

    arrays: tuple[str, ...]
    scalars: tuple[str, ...]
    means_nothing: dict[str, Callable[[Arguments], bool]]
    takes_more: bool = False
    before: Callable[[Arguments], Arguments] = lambda given: given
    after: Callable[[Any, Arguments], Any] = lambda result, given: result


def _any(given: Arguments) -> bool:
    return True


def _is(name: str, *values: Any) -> dict[str, Callable[[Arguments], bool]]:
    return {name: lambda given: any(given[name] is value or _equal(given[name], value) for value in values)}


def _equal(one: Any, other: Any) -> bool:
    return isinstance(one, (bool, int, float)) and isinstance(other, (bool, int, float)) and one == other


_BLOCKS = dict.fromkeys(("fwd_params", "bwd_params", "weights_block_q", "weights_block_k", "block_dim", "block_size",
                         "num_warps", "num_stages", "block_c"), _any)
_ATTENTION = ("causal", "softmax_scale", "sliding_window")


def _in_their_dtype(given: Arguments) -> Arguments:
    """ejkernel's attention computes in the dtype that it is told, whatever comes in."""
    return dict(given, **{name: given[name].astype(given["dtype"]) for name in ("query", "key", "value")})


@jax.jit
def _last_state(w: Any, k: Any, v: Any, state: Any) -> Any:
    """What the recurrence of RWKV-4 ends with, without its steps: sums of what each leaves, below their largest exponent."""
    decay, k, v = -jnp.exp(w.astype(jnp.float32)), k.astype(jnp.float32), v.astype(jnp.float32)
    steps = k.shape[1]
    if state is None:
        empty = jnp.zeros((k.shape[0], k.shape[2]), jnp.float32)
        state = jnp.stack([empty, empty, empty - 1e30], axis=1)
    alpha, beta, exponent = (state[:, i].astype(jnp.float32) for i in range(3))
    left = k + decay * jnp.arange(steps - 1, -1, -1, dtype=jnp.float32)[None, :, None]
    first = exponent + decay * steps
    largest = jnp.maximum(first, left.max(axis=1))
    weights, begun = jnp.exp(left - largest[:, None]), jnp.exp(first - largest)
    return jnp.stack([begun * alpha + (weights * v).sum(axis=1), begun * beta + weights.sum(axis=1), largest], axis=1)


_ROWS = {
    "flash_attention": _Row(
        ("query", "key", "value", "bias"), (*_ATTENTION, "logits_soft_cap"),
        {**_BLOCKS, **_is("dropout_prob", 0.0), "precision": _any, "dropout_seed": _any, **_is("normalize_output", True),
         "logits_dtype": lambda given: _is_float32(given["logits_dtype"])}, takes_more=True),
    "scaled_dot_product_attention": _Row(("query", "key", "value", "bias"), _ATTENTION, _BLOCKS, takes_more=True),
    "attention": _Row(
        ("query", "key", "value"), (*_ATTENTION, "logits_soft_cap"),
        {**_BLOCKS, "dtype": lambda given: given["dtype"] is not None,
         "softmax_dtype": lambda given: given["softmax_dtype"] is None or _is_float32(given["softmax_dtype"]),
         "dropout_prob": lambda given: given["deterministic"] or given["dropout_rng"] is None or not given["dropout_prob"],
         "deterministic": _any, "dropout_rng": _any},
        before=_in_their_dtype),
    "mean_pooling": _Row(("x",), (), {**_BLOCKS, "chunk_size": _any}),
    "rwkv4": _Row(
        ("w", "u", "k", "v", "state"), (), _BLOCKS,
        before=lambda given: dict(given, state=given["state"] if given["state"] is None else given["state"].astype(jnp.float32)),
        after=lambda result, given: (result, _last_state(given["w"], given["k"], given["v"], given["state"]))),
}


def _is_elsewhere(array: Any) -> bool:
    return not isinstance(array, jax.core.Tracer) and any(device.platform != "cpu" for device in array.devices())


def _is_spread(array: Any) -> bool:
    return not isinstance(array, jax.core.Tracer) and len(array.devices()) > 1


@functools.lru_cache(maxsize=4096)
def _refusal(runtime: Any, algorithm: str, arrays: Any, scalars: Any) -> str | None:
    """Why hone does not take a call of these dtypes and shapes."""
    try:
        runtime.call(algorithm, **dict(arrays), **dict(scalars))
    except (HoneError, TypeError) as error:
        return str(error)
    return None


def _reasons(algorithm: str, given: Arguments) -> Iterator[str]:
    row = _ROWS[algorithm]
    if jax.default_backend() != "cpu":
        yield f"JAX's default backend is {jax.default_backend()}, and hone's operations stand in on the CPU"
    for name, value in given.items():
        if name in row.arrays:
            if value is not None and not isinstance(value, jax.Array):
                yield f"{name} is no array of JAX"
            elif value is not None and _is_elsewhere(value):
                yield f"{name} is not on the CPU"
            elif value is not None and _is_spread(value):
                yield f"{name} is spread over devices, and no program of XLA splits this call"
            elif value is not None and value.dtype == jnp.float64:
                yield f"{name} is of float64, which hone computes by its reference"
        elif name == "sliding_window" and value is not None:
            if not (row.takes_more or isinstance(value, int)):
                yield f"{name} is {value!r}, and hone's {algorithm} takes a number"
            elif not all(isinstance(side, int) and side >= 0 for side in _sides(value)):
                yield f"{name} is {value!r}"
        elif name in row.scalars:
            if not (value is None or isinstance(value, (bool, int, float))):
                yield f"{name} is not a number"
        elif name in row.means_nothing:
            if not row.means_nothing[name](given):
                yield f"{name} is {value!r}"
        elif value is not None:
            yield f"hone's {algorithm} takes no {name}"
    window = given.get("sliding_window")
    if window is not None and given["query"].shape[1] > given["key"].shape[1] + _sides(window)[0]:
        yield "there are queries that see no key"


def _sides(window: Any) -> tuple[Any, ...]:
    return tuple(window) if isinstance(window, (tuple, list)) else (window, window)


def _call(algorithm: str, given: Arguments) -> tuple[str, Arguments, Arguments]:
    """hone's call: the algorithm's name, arrays and scalars."""
    row = _ROWS[algorithm]
    prepared = row.before(given)
    arrays = {name: prepared[name] for name in row.arrays if prepared[name] is not None}
    scalars = {name: prepared[name] for name in row.scalars if prepared[name] is not None}
    window = scalars.get("sliding_window")
    if row.takes_more and ("bias" in arrays or isinstance(window, (tuple, list)) or given["value"].shape != given["key"].shape):
        algorithm = "dot_product_attention"
        if scalars.pop("sliding_window", None) is not None:
            scalars["window_left"], scalars["window_right"] = _sides(window)
    return algorithm, arrays, scalars


def why_not(algorithm: str, given: Arguments) -> str | None:
    """Why a call of one of ejkernel's kernels, with all of its arguments, is not hone's; None: it is."""
    reason = next(_reasons(algorithm, given), None)
    if reason is not None:
        return reason
    name, arrays, scalars = _call(algorithm, given)
    described = tuple((array_name, (str(array.dtype), tuple(array.shape))) for array_name, array in arrays.items())
    return _refusal(runtimes.default(), name, described, tuple(scalars.items()))


def why_not_called(algorithm: str, args: tuple[Any, ...], keywords: Arguments) -> str | None:
    """The same for arguments as they are given."""
    if algorithm not in _ROWS:
        return left_out().get(algorithm, f"ejkernel has no operation named {algorithm!r}")
    bound = inspect.signature(kernel_registry.get(algorithm, "xla", "any")).bind(*args, **keywords)
    bound.apply_defaults()
    return why_not(algorithm, bound.arguments)


def _run(algorithm: str, original: Callable[..., Any], given: Arguments) -> Any:
    """hone's kernel; differentiated, ejkernel's own, whose gradient needs what it computes on the way."""
    row = _ROWS[algorithm]
    names = tuple(name for name in row.arrays if given[name] is not None)
    if not any(isinstance(given[name], jax.core.Tracer) for name in names):
        called, arrays, scalars = _call(algorithm, given)
        return row.after(runtimes.default().run(called, **arrays, **scalars), given)
    fixed = {name: value for name, value in given.items() if name not in names}

    @jax.custom_jvp
    def run(*operands: Any) -> Any:
        taken = {**fixed, **dict(zip(names, operands))}
        called, arrays, scalars = _call(algorithm, taken)
        return row.after(hone.jax.call(called, **arrays, **scalars), taken)

    @run.defjvp
    def differentiate(primals: Any, tangents: Any) -> Any:
        return jax.jvp(lambda *operands: original(**fixed, **dict(zip(names, operands))), primals, tangents)

    return run(*(given[name] for name in names))


def _stand_in(algorithm: str, original: Callable[..., Any]) -> Callable[..., Any]:
    signature = inspect.signature(original)

    def stand_in(*args: Any, **keywords: Any) -> Any:
        bound = signature.bind(*args, **keywords)
        bound.apply_defaults()
        if why_not(algorithm, bound.arguments) is not None:
            return original(*args, **keywords)
        return _run(algorithm, original, bound.arguments)

    functools.update_wrapper(stand_in, original, updated=())
    del stand_in.__wrapped__  # ejkernel would read the source of the wrapped function
    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    stand_in.of_hone = True  # type: ignore[attr-defined]
    return stand_in


def _original(algorithm: str) -> Callable[..., Any] | None:
    """ejkernel's own kernel for any device; None: hone's stands before it already."""
    specs = [spec for spec in kernel_registry.list_implementations(algorithm) if spec.platform == "xla" and spec.backend == "any"]
    return None if any(hasattr(spec.implementation, "of_hone") for spec in specs) else specs[0].implementation


def left_out() -> dict[str, str]:
    """The operations of ejkernel's that no operation of hone's stands in for, with the reason."""
    return {name: f"hone has no algorithm named {name!r}" for name in kernel_registry.list_algorithms() if name not in _ROWS}


def register(*operations: str, priority: int = PRIORITY) -> list[str]:
    """See :func:`hone.ejkernel.register`."""
    for name in operations:
        if name not in _ROWS:
            raise UnsupportedError(f"{left_out().get(name, f'ejkernel has no operation named {name!r}')}; there are: {', '.join(_ROWS)}")
    for name in operations or _ROWS:
        original = _original(name)
        if original is not None:
            kernel_registry.register(name, "xla", "any", priority=priority)(_stand_in(name, original))
    return list(operations or _ROWS)
