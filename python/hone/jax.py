"""hone inside JAX: operations that XLA calls, and tuning of the programs that hold them.

    import hone.jax

    @jax.jit
    def block(x, w):
        return hone.jax.call("rms_norm", x, w, eps=1e-6)

    with hone.jax.tune(block, x, w, seconds=5):   # lowers, tunes every operation, stores it
        y = block(x, w)                           # traced again, with what was tuned

An execution never tunes, waits or compiles for long: what was not decided when a program was lowered runs by the heuristic
and is noted for ``hone tune --recorded``.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import os
import pathlib
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.sharding import NamedSharding, PartitionSpec

from hone import _batching, _gradients, _hone, agreements, contexts, errors, kernels, runtimes
from hone.results import Result

if TYPE_CHECKING:
    from hone.patches import Patched

__all__ = ["agree", "call", "jit", "kernel", "lower", "patch", "tune"]

kernel = functools.partial(kernels.kernel, platform="xla")
"""As :func:`hone.kernel`, of a function of JAX: exported to StableHLO for each call that is tuned, it runs without Python."""

TARGET = "hone_call"

_lock = threading.Lock()
_library: Any = None
_kept: list[Any] = []  # runtimes and contexts that compiled programs refer to


def _renew_lock() -> None:
    """As that of runtimes.py."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


class _Error(ctypes.Structure):
    """hone_error, include/hone/status.h."""

    _fields_ = [("status", ctypes.c_int), ("system_code", ctypes.c_int32), ("where", ctypes.c_char_p),
                ("message", ctypes.c_char * 1000)]


def _load() -> Any:
    """libhone_xla.so with its handlers registered; once."""
    global _library
    with _lock:
        if _library is None:
            library = ctypes.CDLL(str(pathlib.Path(__file__).with_name("libhone_xla.so")))
            for platform, handler in (("cpu", library.hone_xla_call_cpu), ("CUDA", library.hone_xla_call_cuda)):
                capsule = jax.ffi.pycapsule(handler)
                jax.ffi.register_ffi_target(
                    TARGET, {"instantiate": capsule, "execute": capsule}, platform=platform, api_version=1)
            _let_export()
            library.hone_xla_use.argtypes = [ctypes.c_void_p]
            library.hone_xla_use.restype = None
            library.hone_xla_add_context.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Error)]
            library.hone_xla_prepare.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(_Error)]
            _library = library
        return _library


def _let_export() -> None:
    """jax.export takes calls of hone, whose attributes later versions read as well. A JAX that keeps its list elsewhere asks
    for ``disabled_checks``, in its own words."""
    try:
        from jax._src.export._export import _CUSTOM_CALL_TARGETS_GUARANTEED_STABLE as stable
    except ImportError:
        return
    if isinstance(stable, set):
        stable.add(TARGET)


def _check(status: int, error: _Error) -> None:
    if status == 0:
        return
    raised = errors.BY_STATUS[status](error.message.decode("utf-8", "replace"))
    raised.where, raised.system_code = (error.where or b"").decode(), error.system_code
    raise raised


def _runtime() -> Any:
    """The default runtime, which XLA's calls use from now on and which therefore stays open."""
    runtime = runtimes.default()
    library = _load()
    if not any(runtime is one for one in _kept):
        _kept.append(runtime)
    library.hone_xla_use(runtime.address)
    return runtime


# --- contexts: their digest is part of JAX's keys of compiled programs, in memory and in its persistent cache

_trace = jax.make_user_context(0)
_thread = threading.local()
_addresses: dict[int, int] = {}


def _follow(native: Any) -> None:
    """Tells JAX which context is current in this thread."""
    manager = getattr(_thread, "manager", None)
    if manager is not None:
        _thread.manager = None
        manager.__exit__(None, None, None)
    if native is not None:
        _thread.manager = _trace(native.digest)
        _thread.manager.__enter__()


contexts._observers.append(_follow)
if contexts.current() is not None:
    _follow(contexts.current())


def _context() -> int:
    """The digest of the current context, known to the handlers from now on."""
    native = contexts.current()
    digest = contexts.digest()
    if _trace.value != digest:
        raise RuntimeError(
            "a context of hone was entered by another coroutine or taken along by copy_context, where JAX cannot see it: "
            "call the function through hone.jax.jit")
    if digest != 0 and digest not in _addresses:
        error = _Error()
        address = native.retain()
        _check(_load().hone_xla_add_context(address, ctypes.byref(error)), error)
        _addresses[digest] = address
    return digest


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """``jax.jit`` for functions that are called from coroutines: each call is made under its own task's context.

    Args:
        function: what to compile.
        options: those of ``jax.jit``.
    """
    jitted = jax.jit(function, **options)

    def under_context(method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **keywords: Any) -> Any:
            with _trace(contexts.digest()):
                return method(*args, **keywords)

        return wrapped

    wrapped = under_context(jitted)
    wrapped.lower = under_context(jitted.lower)  # type: ignore[attr-defined]
    return wrapped


# --- the primitive

_call_p = Primitive("hone_call")
_call_p.multiple_results = True


def _pair(aval: Any) -> tuple[str, tuple[int, ...]]:
    if not all(isinstance(dim, int) for dim in aval.shape):
        raise TypeError(f"got an array of shape {aval.shape}: calls of hone are decided for shapes that are known when a "
                        "program is lowered")
    return str(aval.dtype), tuple(aval.shape)


def _varying(aval: Any) -> frozenset[str]:
    """The mesh axes of a shard_map along which an array differs."""
    return getattr(getattr(aval, "manual_axis_type", None), "varying", frozenset())


def _result(shape: tuple[int, ...], dtype: str, avals: Sequence[Any]) -> Any:
    if not avals or not _varying(avals[0]):
        return jax.core.ShapedArray(shape, jnp.dtype(dtype))
    sharding = NamedSharding(avals[0].sharding.mesh, PartitionSpec(*[None] * len(shape)))
    return jax.core.ShapedArray(shape, jnp.dtype(dtype), sharding=sharding, manual_axis_type=avals[0].manual_axis_type)


def _alike(operands: Sequence[Any]) -> list[Any]:
    """The operands, each differing along all mesh axes along which one of them does, as shard_map asks for."""
    axes = frozenset[str]().union(*(_varying(jax.typeof(operand)) for operand in operands))
    missing = [tuple(axes - _varying(jax.typeof(operand))) for operand in operands]
    return [jax.lax.pcast(operand, more, to="varying") if more else operand for operand, more in zip(operands, missing)]


@functools.lru_cache(maxsize=1024)
def _operation(runtime: Any, name: str) -> tuple[Any, tuple[dict[str, Any], ...]]:
    operation = runtime.operation(name)
    return operation, tuple(operation.parameters)


class _Site:
    """One call: operation, which of its tensors are there, scalars."""

    def __init__(self, algorithm: str, given: tuple[bool, ...], scalars: tuple[tuple[str, Any], ...]):
        self.operation, self.parameters = _operation(_runtime(), algorithm)
        self.given, self.scalars = given, scalars
        self.tensors = [row for row in self.parameters if row["kind"] == "tensor" and not row["is_result"]]
        self.results = [row for row in self.parameters if row["is_result"]]

    def describe(self, avals: Sequence[Any], device: int = 1) -> Any:
        """The call of these operands on the first device of a type of DLPack's; wrong ones are refused in hone's words."""
        pairs = iter((*_pair(aval), device, 0) for aval in avals)
        named = {row["name"]: next(pairs) for row, there in zip(self.tensors, self.given) if there}
        return self.operation.call(**named, **dict(self.scalars))

    def results_of(self, call: Any) -> list[tuple[str, tuple[int, ...]]]:
        return [value for row, value in zip(self.parameters, call.values) if row["is_result"]]


def _abstract(*avals: Any, algorithm: str, given: Any, scalars: Any, context: int) -> list[Any]:
    site = _Site(algorithm, given, scalars)
    return [_result(shape, dtype, avals) for dtype, shape in site.results_of(site.describe(avals))]


_call_p.def_abstract_eval(_abstract)


@functools.lru_cache(maxsize=1024)
def _compiled(**parameters: Any) -> Callable[..., Any]:
    return jax.jit(lambda *operands: _call_p.bind(*operands, **parameters))


@_call_p.def_impl
def _alone(*operands: Any, **parameters: Any) -> Any:
    with jax.disable_jit(False):  # it can only run compiled
        return _compiled(**parameters)(*operands)


def _attribute(value: Any, kind: str) -> Any:
    as_kind = {"bool": numpy.bool_, "int": numpy.int64, "float": numpy.float64, "str": str}
    return as_kind[kind](value)


def _prepare(site: _Site, call: Any, context: int) -> None:
    """Decides the call now, so that its first execution is a hit. If that fails, the call reports the error when it runs."""
    error = _Error()
    _load().hone_xla_prepare(site.operation.address, call.address, _addresses.get(context), ctypes.byref(error))


def _emit(ctx: Any, operands: Sequence[Any], avals: Sequence[Any], more: dict[str, Any], *, algorithm: str, given: Any, scalars: Any,
          context: int, device: int) -> Any:
    """The custom call.

    Args:
        avals: what the call takes.
        more: further attributes.
    """
    site = _Site(algorithm, given, scalars)
    call = site.describe(avals, device)
    _prepare(site, call, context)
    kinds = {row["name"]: row["kind"] for row in site.parameters}
    name, version = site.operation.name, site.operation.version
    attributes: dict[str, Any] = {
        "hone_algorithm": name, "hone_version": version, "hone_label": f"hone#{name}.v{version}:{call.key}", "hone_call": call.text,
        "hone_context": numpy.int64(context),
        **more,
        **{key: _attribute(value, kinds[key]) for key, value in scalars},
    }
    if not all(given):
        attributes["hone_given"] = numpy.int64(sum(1 << i for i, there in enumerate(given) if there))
    return jax.ffi.ffi_lowering(TARGET)(ctx, *operands, **attributes)


def _lower(ctx: Any, *operands: Any, **parameters: Any) -> Any:
    return _emit(ctx, operands, ctx.avals_in, {}, **parameters)


mlir.register_lowering(_call_p, functools.partial(_lower, device=1), platform="cpu")
mlir.register_lowering(_call_p, functools.partial(_lower, device=2), platform="cuda")


# A call that takes one array out of a stack: one operand is the stack, and the last operand is the index. XLA would copy the array out of the
# stack. The call is made while a program is lowered (patches.py), so it is never differentiated or mapped. For CPUs only: on a GPU the handler
# could not read the index.
_sliced_p = Primitive("hone_sliced_call")
_sliced_p.multiple_results = True


def _of_stack(avals: Sequence[Any], place: int) -> list[Any]:
    return [jax.core.ShapedArray(aval.shape[1:], aval.dtype) if i == place else aval for i, aval in enumerate(avals[:-1])]


@_sliced_p.def_abstract_eval
def _sliced_abstract(*avals: Any, place: int, **parameters: Any) -> list[Any]:
    return _abstract(*_of_stack(avals, place), **parameters)


def _lower_sliced(ctx: Any, *operands: Any, place: int, **parameters: Any) -> Any:
    return _emit(ctx, operands, _of_stack(ctx.avals_in, place), {"hone_sliced": numpy.int64(1 << place)}, device=1, **parameters)


mlir.register_lowering(_sliced_p, _lower_sliced, platform="cpu")


def _no_gradient(primals: Any, tangents: Any, *, algorithm: str, **parameters: Any) -> Any:
    algorithm = algorithm.split("@")[0]
    if _gradients.has(algorithm, _runtime().algorithms()):
        raise TypeError(
            f"{algorithm} is differentiated in reverse mode and once: by jax.grad and jax.vjp, and neither by jax.jvp nor by "
            "jax.hessian")
    raise TypeError(f"{_gradients.is_missing(algorithm)}. Differentiate another form of it, or wrap it in jax.custom_vjp")


ad.primitive_jvps[_call_p] = _no_gradient


# --- vmap


def _spread(operand: Any, axis: Any, size: int) -> Any:
    """The batch in front."""
    if axis is None:
        return jnp.broadcast_to(operand, (size, *operand.shape))
    return jnp.moveaxis(operand, axis, 0)


def _element_shape(operand: Any, axis: Any) -> tuple[int, ...]:
    """Of one element of the batch."""
    return tuple(size for place, size in enumerate(operand.shape) if axis is None or place != axis % operand.ndim)


def _batch(operands: Sequence[Any], axes: Sequence[Any], **parameters: Any) -> Any:
    """Into a leading dim where the signature allows it, else one call after the other."""
    site = _Site(parameters["algorithm"], parameters["given"], parameters["scalars"])
    bind = functools.partial(_call_p.bind, **parameters)
    batched = [axis is not None for axis in axes]
    size = next(operand.shape[axis] for operand, axis in zip(operands, axes) if axis is not None)
    ndims = [operand.ndim - of_batch for operand, of_batch in zip(operands, batched)]
    dim = _batching.folding_dim(site, batched, ndims) if size > 0 else None

    def call_of(batched_shape: Any) -> Any:
        rows = [row for row, there in zip(site.tensors, site.given) if there]
        shapes = [_element_shape(operand, axis) for operand, axis in zip(operands, axes)]
        return site.describe([jax.ShapeDtypeStruct(batched_shape(row, shape), operand.dtype) for row, shape, operand in zip(rows, shapes, operands)])

    dim = _batching.checked_dim(site, dim, call_of)
    if dim is not None:
        results = _batching.fold(site, dim, operands, axes, size, bind, _spread)
    else:
        mapped = [_spread(operand, axis, size) for operand, axis in zip(operands, axes)]
        results = jax.lax.map(lambda one: tuple(bind(*one)), tuple(mapped))
    return list(results), [0] * len(results)


batching.primitive_batchers[_call_p] = _batch


# --- calling


def _parted(site_rows: Any, arrays: Sequence[Any], keywords: dict[str, Any], name: str) -> tuple[list[Any], dict[str, Any]]:
    """Tensors in order, None where one is not there, and scalars."""
    rows = [row for row in site_rows if not row["is_result"]]
    by_place = [row for row in rows if not row["keyword_only"]]
    if len(arrays) > len(by_place):
        raise TypeError(f"{name} takes {len(by_place)} arguments by position, got {len(arrays)}")
    values = {row["name"]: value for row, value in zip(by_place, arrays)}
    for key, value in keywords.items():
        if key not in {row["name"] for row in rows}:
            raise TypeError(f"{name} has no parameter {key!r}; it has {', '.join(row['name'] for row in rows)}")
        if key in values:
            raise TypeError(f"{name}: {key} is given twice")
        values[key] = value
    tensors = [values.pop(row["name"], None) for row in rows if row["kind"] == "tensor"]
    return tensors, {key: value for key, value in values.items() if value is not None}


def _scalar(value: Any, key: str, name: str) -> Any:
    if isinstance(value, jax.core.Tracer):
        raise TypeError(f"{name}: {key} is part of the call and must be known when the function is traced")
    if isinstance(value, (numpy.generic, numpy.ndarray, jax.Array)) and value.ndim == 0:
        return value.item()
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"{name}: {key} must be a scalar, got {type(value).__name__}")
    return value


def call(operation: str, *arrays: Any, **scalars: Any) -> Any:
    """An operation of hone in a JAX program: under ``jit``, ``vmap``, and ``grad`` where it has a gradient.

    Args:
        operation: a name, with a version where one is meant, ``"rms_norm@v1"``.
        arrays: the operation's arrays in the order of its signature (``hone.registry.signature``), with the dtypes and
            shapes that it asks for; by name as well.
        scalars: the rest, known when the function is traced.

    Returns:
        The result, or a tuple of them, with the dtypes and shapes that the signature infers.

    Raises:
        InvalidArgumentError: while tracing: names the parameter, what came, and what the signature asks.
        TypeError: differentiated, and there is no algorithm of the same name with ``_vjp`` behind it, or it takes that array
            for a constant.

    ``vmap`` puts the batch into a leading dim along which the algorithm's parts do not touch each other; where there is
    none, the calls are made one after the other.
    """
    runtime = _runtime()
    known, rows = _operation(runtime, operation)
    parameters, tensors = _parameters(known, rows, arrays, scalars)
    operands = _alike(tensors)
    results = _differentiable(runtime, known.name, rows, parameters, operands)(*operands)
    return results[0] if len(results) == 1 else tuple(results)


def _parameters(known: Any, rows: Any, arrays: Sequence[Any], scalars: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """The primitive's, and the arrays that are there."""
    tensors, values = _parted(rows, arrays, scalars, known.name)
    given = tuple(tensor is not None for tensor in tensors)
    fixed = tuple(sorted((key, _scalar(value, key, known.name)) for key, value in values.items()))
    parameters = dict(algorithm=f"{known.name}@v{known.version}", given=given, scalars=fixed, context=_context())
    return parameters, [jnp.asarray(tensor) for tensor in tensors if tensor is not None]


def call_of_stack(operation: str, place: int, index: Any, *arrays: Any, **scalars: Any) -> Any:
    """A call that takes ``arrays[place][index]`` where it lies; for what is being lowered for a CPU.

    Args:
        index: int32; one outside is the nearest.
    """
    known, rows = _operation(_runtime(), operation)
    parameters, tensors = _parameters(known, rows, arrays, scalars)
    results = _sliced_p.bind(*tensors, index, place=place, **parameters)
    return results[0] if len(results) == 1 else tuple(results)


def _bind(parameters: dict[str, Any], *operands: Any) -> tuple[Any, ...]:
    return tuple(_call_p.bind(*operands, **parameters))


def _product(parameters: dict[str, Any], a: Any, b: Any, transpose_b: bool) -> Any:
    return _bind(dict(parameters, scalars=(("transpose_b", transpose_b),)), *_alike([a, b]))[0]


def _differentiable(
    runtime: Any, name: str, rows: Any, parameters: dict[str, Any], like: Sequence[Any]
) -> Callable[..., Any]:
    """The call with its gradient, if it has one (_gradients.py).

    Args:
        rows: the parameters of the signature.
        like: the operands, or others of their dtypes.
    """
    bind = functools.partial(_bind, parameters)
    if not _gradients.has(name, runtime.algorithms()):
        return bind
    dtypes = [operand.dtype for operand in like]
    reverse = (_Products(rows, parameters) if name == _gradients.PRODUCT else _Vjp(runtime, name, rows, parameters))
    function = jax.custom_vjp(bind)

    # JAX calls this to differentiate. Each primal says whether JAX differentiates with respect to it.
    def forward(*primals: Any) -> Any:
        refused = reverse.refused([primal.perturbed for primal in primals])
        if refused is not None:
            raise TypeError(f"{refused}. Put jax.lax.stop_gradient around it, or differentiate another form of {name}")
        operands = tuple(primal.value for primal in primals)
        results = bind(*operands)
        return results, (tuple(operand if i in reverse.arrays else None for i, operand in enumerate(operands)),
                         tuple(result if i in reverse.results else None for i, result in enumerate(results)))

    def backward(kept: Any, cotangents: Any) -> Any:
        dense = [jnp.zeros(one.shape, one.dtype) if isinstance(one, jax.custom_derivatives.SymbolicZero) else one for one in cotangents]
        made = reverse(*kept, dense)
        return tuple(None if one is None else one.astype(dtype) for one, dtype in zip(made, dtypes))

    function.defvjp(forward, backward, symbolic_zeros=True)

    # Eager shard_map does not differentiate. JAX refuses rules with symbolic zeros there, while it ignores other rules.
    def in_shards_as_well(*operands: Any) -> Any:
        try:
            return function(*operands)
        except NotImplementedError as error:
            if "shard_map" not in str(error):
                raise
            return bind(*operands)

    return in_shards_as_well


class _Products:
    """The gradient of a product."""

    arrays, results = {0, 1}, set[int]()

    def __init__(self, rows: Any, parameters: dict[str, Any]):
        tensors = [row["name"] for row in rows if row["kind"] == "tensor" and not row["is_result"]]
        given = [name for name, there in zip(tensors, parameters["given"]) if there]
        self.parameters, self.given = parameters, [*given, *dict(parameters["scalars"])]

    def refused(self, differentiated: Sequence[bool]) -> str | None:
        return _gradients.product_refused(self.given)

    def __call__(self, operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        transpose_b = bool(dict(self.parameters["scalars"]).get("transpose_b", False))
        product = functools.partial(_product, self.parameters)
        return _gradients.of_product(operands, cotangents[0], transpose_b, product, lambda one: jnp.swapaxes(one, -1, -2))


class _Vjp:
    """The algorithm NAME_vjp. Operands are those that are given: numbers of the signature's arrays count the others as well."""

    def __init__(self, runtime: Any, name: str, rows: Any, parameters: dict[str, Any]):
        gradient, own = _operation(runtime, _gradients.of(name))
        self.plan = _gradients.plan(name, rows, own, parameters["given"])
        self.places = [i for i, there in enumerate(parameters["given"]) if there]
        taken = self.plan.taken("array")
        self.arrays = {at for at, place in enumerate(self.places) if place in taken}
        self.results = self.plan.taken("result")
        self.parameters = dict(parameters, algorithm=f"{gradient.name}@v{gradient.version}",
                               scalars=tuple((key, value) for key, value in parameters["scalars"] if key in self.plan.scalars))

    def refused(self, differentiated: Sequence[bool]) -> str | None:
        asked = dict(zip(self.places, differentiated))
        return self.plan.refused([asked.get(i, False) for i in range(len(self.plan.arrays))])

    def __call__(self, operands: Sequence[Any], results: Sequence[Any], cotangents: Sequence[Any]) -> Sequence[Any]:
        values = {"array": dict(zip(self.places, operands)), "result": dict(enumerate(results)), "cotangent": dict(enumerate(cotangents))}
        tensors = [values[kind].get(index) for kind, index in self.plan.takes]
        given = tuple(tensor is not None for tensor in tensors)
        made = _bind(dict(self.parameters, given=given), *_alike([tensor for tensor in tensors if tensor is not None]))
        return [made[self.plan.gives[place]] if place in self.plan.gives else None for place in self.places]


# --- tuning


def lower(function: Callable[..., Any], *args: Any, **keywords: Any) -> str:
    """A function's program as ``hone offline`` reads it: StableHLO text with locations.

    Args:
        function: jitted or not.
        args, keywords: as the function is called; ``jax.ShapeDtypeStruct`` in place of arrays will do.
    """
    lowered = function if hasattr(function, "lower") else jax.jit(function)
    return lowered.lower(*args, **keywords).as_text(debug_info=True)


def _has_parameter(function: Callable[..., Any], name: str) -> bool:
    """Whether a function names a parameter so; one that takes any is no reason to keep an option from hone."""
    try:
        parameter = inspect.signature(function).parameters.get(name)
    except (TypeError, ValueError):  # a callable without a signature
        return False
    return parameter is not None and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)


def tune(function: Callable[..., Any], *args: Any, options: dict[str, Any] | None = None, **keywords: Any) -> Result:
    """Lowers a function and tunes every operation in it: hone's own, and those of ejkernel that hone has.

    Args:
        function: jitted or not; not executed.
        args: as the function is called, or ``jax.ShapeDtypeStruct``.
        options: of :func:`hone.tune`.
        keywords: arguments of the function; what the function has no parameter for, under the name of an option, is one.

    Returns:
        What was found, stored already. Entered with ``with``, it answers, and JAX traces anew.
    """
    from hone.tuning import OPTIONS

    own = {name: value for name, value in keywords.items() if name in OPTIONS and not _has_parameter(function, name)}
    rest = {name: value for name, value in keywords.items() if name not in own}
    text = lower(function, *args, **rest)
    return _runtime().offline(text, **{**own, **(options or {})})


def patch() -> Patched:
    """Has JAX's own operations run hone's, in this process: ``dot_general`` (``jnp.matmul``, ``@``, ``jnp.einsum``, ...) where JAX lowers it,
    ``jax.nn.softmax``, ``jax.nn.standardize``, ``jax.nn.dot_product_attention``, and the norms of flax; on a CPU ``jax.nn.silu(x) * y``, and the
    weights of layers that a ``scan`` goes through are read where they lie. Gradients and ``vmap`` stay JAX's; what hone would not answer as JAX does is JAX's.
    All programs are traced anew.

    Returns:
        What runs hone's and what was left, with the reasons: print it. ``undo()`` undoes it, and so does the end of ``with``.

    Raises:
        InvalidArgumentError: it is patched already.
        UnsupportedError: this JAX does not show how it lowers its primitives.
    """
    from hone import patches

    return patches.patch()


# Processes of one program ---------------------------------------------------------------------------------------------

_exchanges = 0  # number of exchanges between the processes


def _board(state: Any) -> agreements.Board:
    client = state.client

    def get(key: str) -> str | None:
        try:
            return client.key_value_try_get(key)  # type: ignore[no-any-return]
        except Exception as error:
            if "NOT_FOUND" in str(error):
                return None
            raise

    return agreements.Board(client.key_value_set, get, "the coordinator of jax.distributed")


def agree(calls: Iterable[str] | None = None, *, timeout: float = 60.0, check: bool = True) -> agreements.Agreement:
    """Finds out whether the processes of a program choose alike, before anything runs. All processes call it, after
    ``jax.distributed.initialize``.

    It is no collective and wakes no device: what each process would choose goes through the coordinator's table. A process
    that does not answer in time is named.

    Args:
        calls: call texts; None: every call that this process has made so far.
        timeout: seconds until the processes that have not answered count as missing.
        check: raise where they do not choose alike; False: the agreement says so.

    Returns:
        Entered with ``with``, this process's choices answer, whatever is tuned or stored meanwhile.

    Raises:
        IncompatibleError: which call, which process, and why.
        BusyError: which process has not answered.
        UnsupportedError: this JAX has no table that hone knows how to ask.
    """
    global _exchanges
    try:
        from jax._src.distributed import global_state as state
    except ImportError as error:
        raise errors.UnsupportedError(
            f"JAX {jax.__version__} shows no coordinator ({error}): exchange hone.agreements.say() by means of the program's own"
        ) from error
    if getattr(state, "client", None) is None:
        raise errors.InvalidArgumentError("JAX runs as one process: call jax.distributed.initialize first")
    if not hasattr(state.client, "key_value_try_get"):
        raise errors.UnsupportedError(
            f"JAX {jax.__version__} cannot ask its coordinator without waiting: exchange hone.agreements.say() by means of "
            "the program's own"
        )
    with _lock:
        _exchanges += 1
        prefix = f"hone/agree/{_exchanges}"
    return agreements.agree(_board(state), prefix, state.process_id, state.num_processes, calls, timeout, check)


_load()  # programs written by jax.export find hone once this module is imported
