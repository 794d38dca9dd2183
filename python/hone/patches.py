"""hone's operations in JAX's own: ``hone.jax.patch()``.

``dot_general`` is replaced where JAX lowers it, below ``jit``, ``vmap`` and ``grad``, which stay JAX's. ``softmax``, ``standardize`` and
``dot_product_attention`` are functions of JAX's that call many primitives: their names in ``jax.nn`` are replaced, and of flax the
methods of its norms. On a CPU the weights that a scan takes out of an array of all layers' are read where they lie, and silu(x) * y is one operation, as a norm is.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy
from jax._src.nn import functions as nn_functions
from jax.extend.core import Var
from jax.interpreters import mlir

import hone.jax
from hone.errors import InvalidArgumentError, UnsupportedError

PLATFORMS = ("cpu", "cuda")
DTYPES = ("float32", "bfloat16", "float16")
MOST_DIMS = 8  # the most dims of an array that hone supports
MOST_TRIPS = 2 ** 31 - 1  # of a scan: the largest value of its counter's dtype
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
        self.left: dict[str, Counter[str]] = {"dot_general": Counter(), "softmax": Counter(), "standardize": Counter(),
                                              "dot_product_attention": Counter(), "silu": Counter(), "norm": Counter()}
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


def _refused(shapes: tuple[Any, ...], dtypes: set[str], known: tuple[str, ...] = DTYPES) -> str | None:
    if len(dtypes) > 1:
        return f"dtypes that differ: {', '.join(sorted(dtypes))}"
    if not dtypes <= set(known):
        return f"of {dtypes.pop()}"
    if not all(isinstance(dim, int) for shape in shapes for dim in shape):
        return "a shape with symbols"
    return "no elements" if any(0 in shape for shape in shapes) else None


# dot_general ----------------------------------------------------------------------------------------------------------


def _why_not_product(lhs: Any, rhs: Any, out: Any, devices: int, *, dimension_numbers: Any, precision: Any = None, out_sharding: Any = None,
                     **others: Any) -> str | None:
    reason = _refused((lhs.shape, rhs.shape), {str(aval.dtype) for aval in (lhs, rhs, out)}, (*DTYPES, "float64"))
    (left, right), (batch, of_right) = dimension_numbers
    if reason is not None:
        return reason
    if len(batch) > MOST_DIMS - 2:
        return f"a batch of more than {MOST_DIMS - 2} dims"
    if not left:
        return "an outer product"
    if batch:  # put batch dims in front, as XLA does
        left, right = _in_order(lhs.ndim, batch, left)[1], _in_order(rhs.ndim, of_right, right, first=True)[1]
        batch = of_right = tuple(range(len(batch)))
    if tuple(left) != tuple(range(lhs.ndim - len(left), lhs.ndim)):
        return "the left side's summed dims are not its last"
    if tuple(right) not in (_first(batch, right), tuple(range(rhs.ndim - len(right), rhs.ndim))):
        return "the right side's summed dims are not its first or last"
    if precision is not None and not isinstance(precision, (tuple, jax.lax.Precision)):
        return "an algorithm is named as precision"
    if out_sharding is not None or devices > 1:
        return "spread over devices"
    return None


def _devices(ctx: Any) -> int:
    axes = ctx.module_context.axis_context
    mesh = getattr(axes, "mesh", None)
    return getattr(axes, "num_devices", None) or (1 if mesh is None else mesh.size)


def _first(batch: Any, summed: Any) -> tuple[int, ...]:
    """The dims behind those of a batch."""
    return tuple(range(len(batch), len(batch) + len(summed)))


def _in_order(ndim: int, batch: Any, summed: Any, first: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An operand's dims, those of the batch first and those that are summed behind the others, and where the latter are then.

    Args:
        first: those that are summed may also stand in front of the others, if they do not lie behind them.
    """
    rest = tuple(dim for dim in range(ndim) if dim not in batch)
    others = tuple(dim for dim in rest if dim not in summed)
    dims = (*others, *summed)
    if first and rest[len(others):] != tuple(summed):
        dims = (*summed, *others)
    return (*batch, *dims), tuple(len(batch) + dims.index(dim) for dim in summed)


def _product(lhs: Any, rhs: Any, *, dimension_numbers: Any, **others: Any) -> Any:
    """rhs: an array or a :class:`_Slice` without a batch."""
    (left, right), (batch, of_right) = dimension_numbers
    if batch:
        order, left = _in_order(lhs.ndim, batch, left)
        of_rhs, right = _in_order(rhs.ndim, of_right, right, first=True)
        lhs, rhs = lhs.transpose(order), rhs.transpose(of_rhs)
    products = lhs.shape[:len(batch)]
    kept, deep = lhs.shape[len(batch):lhs.ndim - len(left)], math.prod(lhs.shape[dim] for dim in left)
    transposed = tuple(right) != _first(batch, right)
    added = rhs.shape[len(batch):rhs.ndim - len(right)] if transposed else rhs.shape[len(batch) + len(right):]
    wide = math.prod(added)
    a, shape = lhs.reshape(*products, math.prod(kept), deep), (*products, *((wide, deep) if transposed else (deep, wide)))
    if isinstance(rhs, _Slice):
        made = hone.jax.call_of_stack("matmul", 1, rhs.index, a, rhs.stack.reshape(rhs.stack.shape[0], *shape), transpose_b=transposed)
    else:
        made = hone.jax.call("matmul", a, rhs.reshape(shape), transpose_b=transposed)
    return made.reshape(*products, *kept, *added)


def _lowered(patched: Patched, before: Callable[..., Any], ctx: Any, lhs: Any, rhs: Any, **parameters: Any) -> Any:
    reason = _why_not_product(*ctx.avals_in, *ctx.avals_out, _devices(ctx), **parameters)
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


# Weights of layers in a scan ------------------------------------------------------------------------------------------
#
# A scan takes the weights of each layer out of one array. On a CPU XLA copies them in every step; for 16-bit weights it also converts the whole
# array to float32. For one row that took ten times as long as the products. A product of hone reads the weights in place.


class _Slice:
    """``stack[index]``, which is not computed yet."""

    def __init__(self, stack: Any, index: Any):
        self.stack, self.index = stack, index
        self.shape, self.ndim, self.dtype = stack.shape[1:], stack.ndim - 1, stack.dtype

    def made(self) -> Any:
        return jax.lax.dynamic_index_in_dim(self.stack, self.index, keepdims=False)


def _made(value: Any) -> Any:
    return value.made() if isinstance(value, _Slice) else value


def _inner(eqn: Any) -> Any:
    """The jaxpr that an equation calls and is nothing but."""
    return eqn.params.get("jaxpr") if eqn.primitive.name in ("jit", "pjit", "closed_call") else None


def _is_product(eqn: Any, devices: int) -> bool:
    """Whether an equation is a product of hone's whose right side may be a slice."""
    if eqn.primitive is not jax.lax.dot_general_p or eqn.params["dimension_numbers"][1][0]:
        return False
    return _why_not_product(*(one.aval for one in (*eqn.invars, *eqn.outvars)), devices, **eqn.params) is None


def _weights(jaxpr: Any, inputs: Sequence[Any], devices: int) -> set[Any]:
    """Those of the inputs that are read as the right sides of hone's products alone, and there at least once."""
    asked, found, other = set(inputs), set(), {var for var in jaxpr.outvars if isinstance(var, Var)}
    for eqn in jaxpr.eqns:
        inner = _inner(eqn)
        of_inner = _weights(inner.jaxpr, inner.jaxpr.invars, devices) if inner is not None else set()
        is_product = _is_product(eqn, devices)
        for place, var in enumerate(eqn.invars):
            if isinstance(var, Var) and var in asked:
                fits = is_product and place == 1 or inner is not None and inner.jaxpr.invars[place] in of_inner
                (found if fits else other).add(var)
    return found - other


def _evaluate(patched: Patched, closed: Any, values: Sequence[Any], devices: int) -> list[Any]:
    """A jaxpr's results where some of the inputs are slices."""
    jaxpr, env = closed.jaxpr, dict[Any, Any]()
    env.update(zip(jaxpr.constvars, closed.consts))
    env.update(zip(jaxpr.invars, values))
    for eqn in jaxpr.eqns:
        read = [env[var] if isinstance(var, Var) else var.val for var in eqn.invars]
        inner = _inner(eqn)
        with eqn.ctx.manager:
            if inner is not None and any(isinstance(one, _Slice) for one in read):
                made = _evaluate(patched, inner, read, devices)
            elif any(isinstance(one, _Slice) for one in read) and _is_product(eqn, devices):
                patched._note("dot_general", None)
                made = [_product(_made(read[0]), read[1], **eqn.params)]
            else:
                made = eqn.primitive.bind(*map(_made, read), **eqn.primitive.get_bind_params(eqn.params))
                made = made if eqn.primitive.multiple_results else [made]
        env.update(zip(eqn.outvars, made))
    return [_made(env[var]) if isinstance(var, Var) else var.val for var in jaxpr.outvars]


def _lowered_scan(patched: Patched, before: Callable[..., Any], ctx: Any, *operands: Any, **parameters: Any) -> Any:
    consts, carried = parameters["num_consts"], parameters["num_consts"] + parameters["num_carry"]
    closed, length, devices = parameters["jaxpr"], parameters["length"], _devices(ctx)
    inputs = closed.jaxpr.invars[carried:]
    weights = _weights(closed.jaxpr, inputs, devices) if devices == 1 and 0 < length <= MOST_TRIPS else set()
    if not weights:
        return before(ctx, *operands, **parameters)
    stays = [var not in weights for var in inputs]

    def scan(*args: Any) -> list[Any]:
        stacks = args[carried:]

        def body(carry: Any, given: Any) -> Any:
            index, kept = given[0], iter(given[1])
            xs = [next(kept) if stay else _Slice(stack, index) for stay, stack in zip(stays, stacks)]
            made = _evaluate(patched, closed, [*args[:consts], *carry, *xs], devices)
            return made[:len(carry)], made[len(carry):]

        carry, ys = jax.lax.scan(body, list(args[consts:carried]),
                                 (jnp.arange(length, dtype="int32"), [one for one, stay in zip(stacks, stays) if stay]),
                                 length=length, reverse=parameters["reverse"], unroll=max(1, parameters["unroll"]))
        return [*carry, *ys]

    return mlir.lower_fun(scan, multiple_results=True)(ctx, *operands)


def _patch_scans(patched: Patched) -> None:
    """For CPUs: a GPU's slices are views."""
    from jax._src.interpreters.mlir import _lowerings, _platform_specific_lowerings

    table, scan = _platform_specific_lowerings["cpu"], jax.lax.scan_p
    before = (table.get(scan) or _lowerings[scan]).rule
    patched._undo.append(functools.partial(table.pop, scan))
    mlir.register_lowering(scan, functools.partial(_lowered_scan, patched, before), platform="cpu")


# silu(x) * y ----------------------------------------------------------------------------------------------------------
#
# JAX's silu is a separate function in the lowered program, and the multiplication uses its result. On a CPU XLA rounds each of its five steps
# to 16 bits if x has 16 bits: that is two thirds of a gated layer's time besides its products.

SILU = {"stablehlo.negate": ("argument",), "stablehlo.exponential": ("stablehlo.negate",), "stablehlo.add": ("one", "stablehlo.exponential"),
        "stablehlo.divide": ("one", "stablehlo.add"), "stablehlo.multiply": ("argument", "stablehlo.divide"), "func.return": ("stablehlo.multiply",)}


def _is_silu(function: Any) -> bool:
    """Whether a function of the lowered program is x / (1 + exp(-x)), as jax.nn.silu is."""
    block = function.body.blocks[0]
    names, found = {one: "argument" for one in block.arguments}, {}
    for op in block.operations:
        name, inputs = op.operation.name, tuple(names[one] for one in op.operation.operands)
        if name == "stablehlo.constant":
            is_one = "dense<1.000000e+00>" in str(op.operation.attributes["value"])
            names[op.operation.result] = "one" if is_one else "other"
        elif name == "stablehlo.broadcast_in_dim":
            names[op.operation.result] = inputs[0]
        else:
            names.update((one, name) for one in op.operation.results)
            if name in found:
                return False
            found[name] = inputs
    return len(block.arguments) == 1 and found == SILU


def _gate(ctx: Any, value: Any) -> Any:
    """x, where a value of the lowered program is silu(x); else None."""
    owner = value.owner
    if getattr(owner, "name", None) != "func.call" or len(owner.operands) != 1 or len(owner.results) != 1:
        return None
    function = ctx.module_context.symbol_table[mlir.ir.FlatSymbolRefAttr(owner.attributes["callee"]).value]
    return owner.operands[0] if _is_silu(function) else None


def _lowered_multiply(patched: Patched, before: Callable[..., Any], ctx: Any, lhs: Any, rhs: Any, **parameters: Any) -> Any:
    avals = (*ctx.avals_in, *ctx.avals_out)
    if len({(aval.shape, str(aval.dtype)) for aval in avals}) == 1 and avals[0].ndim > 0 and _devices(ctx) == 1:
        for one, other in ((lhs, rhs), (rhs, lhs)):
            gate = _gate(ctx, one) if str(avals[0].dtype) in DTYPES else None
            if gate is not None and _refused((avals[0].shape,), {str(avals[0].dtype)}) is None:
                patched._note("silu", None)
                return mlir.lower_fun(functools.partial(hone.jax.call, "silu_mul"), multiple_results=False)(ctx, gate, other)
    return before(ctx, lhs, rhs, **parameters)


# Norms that are written out -------------------------------------------------------------------------------------------
#
# Norms of 16-bit rows: widened, multiplied by 1 / sqrt(mean(x^2) + eps), in float32 also by a gain, and rounded. On a CPU XLA makes five loops of
# them, each on one thread, while the threads of the surrounding products fall asleep.


def _operands(value: Any, *names: str) -> tuple[Any, ...]:
    """Of what made a value of the lowered program, if it is one of these operations; else none."""
    owner = value.owner
    return tuple(owner.operands) if getattr(owner, "name", None) in names else ()


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(value.type.shape)


def _number(value: Any) -> float | None:
    """The one that a value has everywhere, where the program says it."""
    while spread := _operands(value, "stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        value = spread[0]
    if getattr(value.owner, "name", None) != "stablehlo.constant":
        return None
    numbers = mlir.ir.DenseElementsAttr(value.owner.attributes["value"])
    return float(mlir.ir.FloatAttr(numbers.get_splat_value()).value) if numbers.is_splat else None


def _orders(value: Any, *names: str) -> tuple[tuple[Any, ...], ...]:
    """The two operands of what made a value, if it is one of these operations, in both orders; else none."""
    operands = _operands(value, *names)
    return (operands, operands[::-1]) if operands else ()


def _and_number(value: Any, name: str) -> tuple[Any, float]:
    """What a number is added to, or multiplied or divided by, and the number; else None and 0."""
    for one, other in _orders(value, name)[:1 if name == "stablehlo.divide" else 2]:
        number = _number(other)
        if number is not None:
            return one, number
    return None, 0.0


def _of_rows(value: Any) -> Any:
    """What is the same for all of a row, as it was before it was spread over the row."""
    while spread := _operands(value, "stablehlo.broadcast_in_dim", "stablehlo.reshape"):
        before, after = _shape(spread[0]), _shape(value)
        if value.owner.name == "stablehlo.reshape":
            if after != (*before, 1):
                break
        elif [*mlir.ir.DenseI64ArrayAttr(value.owner.attributes["broadcast_dimensions"])] != [*range(len(before))] or \
                (after[:-1] != before[:len(after) - 1] or before[len(after) - 1:] not in ((), (1,))):
            break
        value = spread[0]
    return value


def _of_columns(value: Any) -> Any:
    """A vector, where a value is the same vector in every row; else None."""
    if len(_shape(value)) == 1:
        return value
    while spread := _operands(value, "stablehlo.broadcast_in_dim"):
        before, dims = _shape(spread[0]), [*mlir.ir.DenseI64ArrayAttr(value.owner.attributes["broadcast_dimensions"])]
        if dims[-1:] != [len(_shape(value)) - 1] or before[-1] != _shape(value)[-1] or any(size != 1 for size in before[:-1]):
            return None
        value = spread[0]
        if len(before) == 1:
            return value
    return None


def _sums_squares(value: Any, x: Any) -> bool:
    """Whether a value is the sum of x^2 over the last dim."""
    summed = _operands(value, "stablehlo.reduce")
    if len(summed) != 2 or _number(summed[1]) != 0:
        return False
    owner, last = value.owner, len(_shape(summed[0])) - 1
    steps = [op.operation.name for op in owner.regions[0].blocks[0].operations]
    dims = [*mlir.ir.DenseI64ArrayAttr(owner.attributes["dimensions"])]
    factors = _operands(summed[0], "stablehlo.multiply", "chlo.square")
    return steps == ["stablehlo.add", "stablehlo.return"] and dims == [last] and factors != () and all(one == x for one in factors)


def _normed(value: Any) -> tuple[Any, float]:
    """x and eps, where a value is x / sqrt(mean(x^2) + eps), along the last dim; else None and 0."""
    divided = _operands(value, "stablehlo.divide")
    found = [(divided, "stablehlo.sqrt")] if divided else [(order, "stablehlo.rsqrt") for order in _orders(value, "stablehlo.multiply")]
    for (x, factor), root in found:
        for under in _operands(_of_rows(factor), root):
            mean, eps = _and_number(under, "stablehlo.add")
            total, count = _and_number(_of_rows(mean), "stablehlo.divide") if mean is not None else (None, 0.0)
            if mean is not None and total is None:
                total, part = _and_number(_of_rows(mean), "stablehlo.multiply")
                count = 1 / part if part else 0.0
            if total is not None and math.isclose(count, _shape(x)[-1], rel_tol=1e-6) and _sums_squares(_of_rows(total), x):
                return x, eps
    return None, 0.0


def _norm_of(value: Any, dtype: Any) -> tuple[Any, float, Any]:
    """Rows, eps and a gain, which may be None, where a float32 value is a norm of rows of another type; else None and others."""
    x, eps = _normed(value)
    gain = None
    if x is None:
        for one, other in _orders(value, "stablehlo.multiply"):
            gain = _of_columns(other)
            x, eps = _normed(one) if gain is not None else (None, 0.0)
            if x is not None:
                break
    rows = _operands(x, "stablehlo.convert") if x is not None else ()
    return (rows[0], eps, gain) if rows and rows[0].type.element_type == dtype else (None, 0.0, None)


def _lowered_convert(patched: Patched, before: Callable[..., Any], ctx: Any, value: Any, **parameters: Any) -> Any:
    wide, narrow = ctx.avals_in[0], ctx.avals_out[0]
    if str(wide.dtype) == "float32" and str(narrow.dtype) in DTYPES[1:] and 0 < wide.ndim <= MOST_DIMS and _devices(ctx) == 1 and \
            _refused((wide.shape,), {"float32"}) is None:
        rows, eps, gain = _norm_of(value, mlir.dtype_to_ir_type(narrow.dtype))
        if rows is not None:
            patched._note("norm", None)
            given = [rows] if gain is None else [rows, gain]
            avals = [narrow, wide.update(shape=wide.shape[-1:])][:len(given)]
            norm = functools.partial(hone.jax.call, "layer_norm", eps=eps, subtract_mean=False)
            return mlir.lower_fun(norm, multiple_results=False)(ctx.replace(avals_in=avals), *given)
    return before(ctx, value, **parameters)


# Patterns matched at their end ----------------------------------------------------------------------------------------


def _patch_ends(patched: Patched) -> None:
    """What is known by the lowered operations before it. For CPUs: on a GPU XLA fuses it into what is around it."""
    from jax._src.interpreters.mlir import _lowerings, _platform_specific_lowerings
    ends: dict[str, tuple[Any, Callable[..., Any]]] = {"silu": (jax.lax.mul_p, _lowered_multiply),
                                                       "norm": (jax.lax.convert_element_type_p, _lowered_convert)}
    try:
        from jax._src.interpreters.mlir import _uncacheable_primitives
    except ImportError:
        for name in ends:
            patched._note(name, f"JAX {jax.__version__} does not show which lowered operations it uses again")
        return
    table = _platform_specific_lowerings["cpu"]
    for primitive, lowered in ends.values():
        before = (table.get(primitive) or _lowerings[primitive]).rule
        patched._undo.append(functools.partial(table.pop, primitive))
        if primitive not in _uncacheable_primitives:  # JAX would reuse one lowering for all operands of the same shapes, wherever they come from
            patched._undo.append(functools.partial(_uncacheable_primitives.discard, primitive))
        mlir.register_lowering(primitive, functools.partial(lowered, patched, before), platform="cpu", cacheable=False)


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


# Attention ------------------------------------------------------------------------------------------------------------


LENGTHS = ("query_seq_lengths", "key_value_seq_lengths")


def _four(x: Any) -> Any:
    array = jnp.asarray(x)
    return array.reshape((1,) * (4 - array.ndim) + array.shape)


def _why_not_attention(query: Any, key: Any, value: Any, bias: Any, mask: Any, options: dict[str, Any]) -> str | None:
    shapes = query.shape, key.shape, value.shape
    if any(len(shape) != 4 for shape in shapes):
        return "arrays that are not of 3 or 4 dims"
    reason = _refused(shapes, {str(one.dtype) for one in (query, key, value)})
    if reason is not None:
        return reason
    if key.shape != value.shape or query.shape[::3] != key.shape[::3] or query.shape[2] % key.shape[2] != 0:
        return "shapes that JAX refuses"
    whole = (query.shape[0], query.shape[2], query.shape[1], key.shape[1])
    for name, one, dtypes in (("bias", bias, DTYPES), ("mask", mask, ("bool",))):
        if one is not None and (str(one.dtype) not in dtypes or one.ndim != 4 or any(n not in (1, size) for n, size in zip(one.shape, whole))):
            return f"a {name} of {one.dtype}{list(one.shape)}"
    for name in LENGTHS:
        lengths = options[name]
        if lengths is not None and (jnp.shape(lengths) != query.shape[:1] or jnp.asarray(lengths).dtype != "int32"):
            return "lengths that JAX refuses"
    for name, fixed in (("return_residual", False), ("implementation", None)):
        if options[name] != fixed:
            return f"{name} is given"
    if not isinstance(options["scale"], (int, float, numpy.number, type(None))):
        return "scale is not a number"
    if any(len(jax.typeof(one).sharding.mesh.shape) > 0 for one in (query, key, value)):
        return "spread over devices"
    return _why_not_on_gpu(query, bias, mask, options)


def _why_not_on_gpu(query: Any, bias: Any, mask: Any, options: dict[str, Any]) -> str | None:
    if jax.default_backend() == "cpu":
        return None
    if bias is not None or mask is not None or any(options[name] is not None for name in (*LENGTHS, "local_window_size")):
        return "a bias, mask, lengths or window, where only the CPU has a kernel"
    if str(query.dtype) == "float32" or query.shape[3] > 128 or query.shape[3] % 16 != 0:
        return "in float32, or with heads of over 128 elements or of no multiple of 16, where only the CPU has a kernel"
    return None


def _window(size: Any) -> tuple[int | None, int | None]:
    if size is None:
        return None, None
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _attention(query: Any, key: Any, value: Any, given: dict[str, Any], options: dict[str, Any]) -> Any:
    left, right = _window(options["local_window_size"])
    fixed = {} if options["scale"] is None else {"softmax_scale": float(options["scale"])}
    causal = bool(options["is_causal"])
    lengths, mask = given.get("key_value_seq_lengths"), given.get("mask")
    if lengths is not None:
        seen = (jnp.arange(key.shape[1]) < lengths[:, None])[:, None, None, :]
        mask = seen if mask is None else mask & seen
    if mask is None and "bias" not in given and left == right:
        return hone.jax.call("scaled_dot_product_attention", query, key, value, causal=causal, sliding_window=left, **fixed)
    return hone.jax.call("dot_product_attention", query, key, value, bias=given.get("bias"), mask=mask, causal=causal, window_left=left,
                         window_right=right, **fixed)


def _patched_attention(patched: Patched, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def dot_product_attention(query: Any, key: Any, value: Any, bias: Any = None, mask: Any = None, *, scale: Any = None, is_causal: bool = False,
                              query_seq_lengths: Any = None, key_value_seq_lengths: Any = None, local_window_size: Any = None,
                              implementation: Any = None, return_residual: bool = False) -> Any:
        options = {"scale": scale, "is_causal": is_causal, "local_window_size": local_window_size, "implementation": implementation,
                   "return_residual": return_residual, "query_seq_lengths": query_seq_lengths, "key_value_seq_lengths": key_value_seq_lengths}
        q, k, v = _four(query), _four(key), _four(value)
        extra = {"bias": None if bias is None else _four(bias), "mask": None if mask is None else _four(mask)}
        reason = _why_not_attention(q, k, v, extra["bias"], extra["mask"], options)
        patched._note("dot_product_attention", reason)
        if reason is not None:
            return original(query, key, value, bias, mask, **options)
        lengths = {name: jnp.asarray(options[name]) for name in LENGTHS if options[name] is not None}
        given = {**{name: one for name, one in extra.items() if one is not None}, **lengths}

        @jax.custom_jvp
        def run(query: Any, key: Any, value: Any, given: Any) -> Any:
            made = _attention(query, key, value, given, options)
            if "query_seq_lengths" in given:  # JAX returns zeros after the end of a query
                made = made * (jnp.arange(query.shape[1]) < given["query_seq_lengths"][:, None])[:, :, None, None].astype(made.dtype)
            return made

        def plain(query: Any, key: Any, value: Any, given: Any) -> Any:
            return original(query, key, value, **given, **{name: one for name, one in options.items() if name not in given})

        run.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
        return run(q, k, v, given).reshape(jnp.shape(query))

    return dot_product_attention


# Norms of flax --------------------------------------------------------------------------------------------------------


def _why_not_norm(norm: Any, x: Any, mask: Any, weights: Any) -> str | None:
    if mask is not None:
        return "mask is given"
    if norm.axis_name is not None:
        return "axis_name is given"
    if not getattr(norm, "force_float32_reductions", True):
        return "force_float32_reductions is False"
    for name in ("reduction_axes", "feature_axes"):
        axes = getattr(norm, name)
        axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
        if axes not in ((-1,), (x.ndim - 1,)):
            return f"{name} is not the last"
    if len(jax.typeof(x).sharding.mesh.shape) > 0:
        return "spread over devices"
    dtypes = [numpy.dtype(one) for one in (x.dtype, *weights, *(() if norm.dtype is None else (norm.dtype,)))]
    return next((f"of {one}" for one in dtypes if one.name not in DTYPES), _refused((x.shape,), {x.dtype.name}))


def _norm(x: Any, scale: Any, bias: Any, dtype: Any, eps: float, has_mean: bool) -> Any:
    """As flax has it: in float32, of weights that may be wider than the rows, in the dtype that it says."""
    given = {name: one for name, one in (("weight", scale), ("bias", bias)) if one is not None}
    if any(one.dtype != dtype for one in (x, *given.values())):
        x, given = x.astype(numpy.float32), {name: one.astype(numpy.float32) for name, one in given.items()}

    @jax.custom_jvp
    def run(x: Any, given: Any) -> Any:
        if not has_mean and "weight" in given:
            return hone.jax.call("rms_norm", x, eps=eps, **given)
        return hone.jax.call("layer_norm", x, eps=eps, subtract_mean=has_mean, **given)

    def plain(x: Any, given: Any) -> Any:
        wide = x.astype(numpy.float32)
        wide = wide - wide.mean(-1, keepdims=True) if has_mean else wide
        y = wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True) + eps)
        return (y * given.get("weight", 1) + given.get("bias", 0)).astype(x.dtype)

    run.defjvp(lambda primals, tangents: jax.jvp(plain, primals, tangents))
    return run(x, given).astype(dtype)


def _linen_norm(patched: Patched, name: str, kind: Any) -> Callable[..., Any]:
    from flax.linen import dtypes, module

    original = kind.__call__.__wrapped__  # the method inside linen's wrapper
    has_mean = kind.__name__ == "LayerNorm"

    @functools.wraps(original)
    def run(self: Any, x: Any, *, mask: Any = None) -> Any:
        array = jnp.asarray(x)
        named = {"scale": self.use_scale, "bias": has_mean and self.use_bias}
        known = [self.get_variable("params", one).dtype if self.has_variable("params", one) else self.param_dtype for one, there in named.items() if there]
        reason = _why_not_norm(self, array, mask, known)
        patched._note(name, reason)
        if reason is not None:
            return original(self, x, mask=mask)
        inits = {"scale": self.scale_init, "bias": getattr(self, "bias_init", None)}
        scale, bias = (self.param(one, inits[one], (array.shape[-1],), self.param_dtype) if there else None for one, there in named.items())
        dtype = dtypes.canonicalize_dtype(array, scale, bias, dtype=self.dtype)
        return _norm(array, scale, bias, dtype, float(self.epsilon), has_mean)

    return module.wrap_method_once(module.compact(run))  # type: ignore[no-any-return]


def _nnx_norm(patched: Patched, name: str, kind: Any) -> Callable[..., Any]:
    original, has_mean = kind.__call__, kind.__name__ == "LayerNorm"

    @functools.wraps(original)
    def run(self: Any, x: Any, mask: Any = None) -> Any:
        array = jnp.asarray(x)
        scale, bias = (one[...] if one is not None else None for one in (self.scale, self.bias if has_mean else None))
        reason = _why_not_norm(self, array, mask, [one.dtype for one in (scale, bias) if one is not None])
        patched._note(name, reason)
        if reason is not None:
            return original(self, x, mask=mask)
        array, scale, bias = self.promote_dtype((array, scale, bias), dtype=self.dtype)
        return _norm(array, scale, bias, array.dtype, float(self.epsilon), has_mean)

    return run


def _patch_flax(patched: Patched) -> None:
    """Where the program has imported it."""
    for place, make in (("flax.linen.normalization", _linen_norm), ("flax.nnx.nn.normalization", _nnx_norm)):
        for name in ("LayerNorm", "RMSNorm") if place in sys.modules else ():
            kind, shown = getattr(sys.modules[place], name), f"{'.'.join(place.split('.')[:2])}.{name}"
            patched.left[shown] = Counter()
            made = make(patched, shown, kind)
            patched._undo.append(functools.partial(setattr, kind, "__call__", kind.__call__))
            kind.__call__ = made


def _patch_names(patched: Patched) -> None:
    for name, make in (("softmax", _patched_softmax), ("standardize", _patched_standardize), ("dot_product_attention", _patched_attention)):
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
        _patch_scans(patched)
        _patch_ends(patched)
        _patch_names(patched)
        _patch_flax(patched)
        _current = patched
    jax.clear_caches()
    return patched
