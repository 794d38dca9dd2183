"""hone's operations in PyTorch: eager, under ``torch.compile`` and ``torch.export``, in ``torch.func``.

    import hone.torch

    def block(x, w):
        return hone.torch.ops.rms_norm(x, w, eps=1e-6)      # torch.ops.hone.rms_norm, an operation like torch's own

    fast = torch.compile(block, fullgraph=True)

Each algorithm of the registry is an operation of torch's, made from its signature. With results given by name it is an operation
that writes them: ``hone.torch.ops.rms_norm(x, w, y=y)``. Where a graph is traced with shapes that are known, each call is decided
then; a run is a look at hone's table and the plan that stands there.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from torch._functorch.autograd_function import enable_single_level_autograd_function
from torch.autograd.function import _SingleLevelFunction
from torch.compiler import is_dynamo_compiling

from hone import _arrays, _batching, _flops, _gradients, _hone, _imports, _second_gradients, _sharding, agreements, runtimes
from hone.errors import HoneError, InvalidArgumentError, NotFoundError, UnsupportedError

if TYPE_CHECKING:
    from hone.replacements import Replaced

__all__ = ["agree", "matmul", "ops", "replace"]

NAMESPACE = "hone"
# Under autocast these, and all whose name ends so, take their tensors in autocast's dtype, as torch's own products do; all others
# in the widest that came. So does a product of 8 bit operands: autocast has no say in them, and of its bias comes the result's dtype.
LOWERED = ("matmul", "gated_linear_unit", "attention")

_WIDTHS = {torch.float16: 1, torch.bfloat16: 1, torch.float32: 2}
_DEVICES = {"cpu": 1, "cuda": 2}
# Keys of torch's dispatcher for tensors that are not what their shape and memory say.
_REFUSED = [key for kind in ("Sparse", "SparseCsr", "Quantized", "NestedTensor") for key in (f"{kind}CPU", f"{kind}CUDA")] + ["MkldnnCPU"]
_lock = threading.RLock()
_library = torch.library.Library(NAMESPACE, "FRAGMENT")


def _renew_lock() -> None:
    """As that of runtimes.py."""
    global _lock
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_renew_lock)


# Schemas --------------------------------------------------------------------------------------------------------------

_KINDS = {"tensor": "Tensor", "bool": "bool", "int": "SymInt", "float": "float", "str": "str"}


def _argument(row: dict[str, Any], may_default: bool) -> str:
    """One parameter. A default that depends on dims is None, which hone fills in."""
    default = row["default"]
    left_out = row["has_default"] or row["nullable"]
    text = _KINDS[row["kind"]] + ("?" if left_out and default is None else "") + " " + row["name"]
    if left_out and may_default:
        text += "=" + (json.dumps(default) if isinstance(default, str) else repr(default))
    return text


def _by_place(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parameters that torch takes by place: tensors that the signature takes by name stand behind the others, since torch maps,
    casts and differentiates nothing that is given by name alone."""
    parameters = [row for row in rows if not row["is_result"]]
    return ([row for row in parameters if not row["keyword_only"]] +
            [row for row in parameters if row["keyword_only"] and row["kind"] == "tensor"])


def _schema(rows: Sequence[dict[str, Any]], asks_axes: bool, writes: bool) -> str:
    """What stands behind the name. writes: the results are given by name, and written."""
    parameters = [row for row in rows if not row["is_result"]]
    results = [row for row in rows if row["is_result"]]
    by_place = _by_place(parameters)
    last = max((i for i, row in enumerate(by_place) if not (row["has_default"] or row["nullable"])), default=-1)
    place = [_argument(row, i > last) for i, row in enumerate(by_place)]
    named = [_argument(row, True) for row in parameters if row not in by_place]
    if asks_axes:
        named.append("str axes")
    if writes:
        named += [f"Tensor({chr(ord('a') + i)}!) {row['name']}" for i, row in enumerate(results)]
    given = ", ".join(place + (["*"] + named if named else []))
    made = "Tensor" if len(results) == 1 else "(" + ", ".join(f"Tensor {row['name']}" for row in results) + ")"
    return f"({given}) -> {'()' if writes else made}"


# Shapes that are symbols ----------------------------------------------------------------------------------------------

_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a // b,  # of integers, in hone's language
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_COMPARISONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "min": torch.sym_min,
    "max": torch.sym_max,
    "ceildiv": lambda a, b: -(-a // b),
    "abs": abs,
}


def _evaluate(node: ast.AST, names: dict[str, Any]) -> Any:
    match node:
        case ast.Expression():
            return _evaluate(node.body, names)
        case ast.Constant(value=bool() | int() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id="true" | "false" | "none" as name):
            return {"true": True, "false": False, "none": None}[name]
        case ast.BinOp() if type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
        case ast.UnaryOp(op=ast.Not()):
            return not _evaluate(node.operand, names)
        case ast.UnaryOp(op=ast.USub()):
            return -_evaluate(node.operand, names)
        case ast.BoolOp():
            values = (_evaluate(value, names) for value in node.values)
            return all(values) if isinstance(node.op, ast.And) else any(values)
        case ast.Compare(ops=[operator]) if type(operator) in _COMPARISONS:
            return _COMPARISONS[type(operator)](_evaluate(node.left, names), _evaluate(node.comparators[0], names))
        case ast.Call(func=ast.Name(id=name)) if name in _FUNCTIONS and not node.keywords:
            return _FUNCTIONS[name](*(_evaluate(argument, names) for argument in node.args))
    raise SyntaxError


def _value(text: str, names: dict[str, Any], algorithm: str) -> Any:
    """An expression of a signature over dims that may be symbols."""
    try:
        return _evaluate(ast.parse(text.replace("&&", " and ").replace("||", " or ").strip(), mode="eval"), names)
    except SyntaxError:
        raise UnsupportedError(
            f"{algorithm}: the dim {text!r} of its signature cannot be told for shapes that are symbols: trace with known shapes "
            "(torch.compile(dynamic=False), torch.export without dynamic_shapes)") from None


def _form(type_text: str, names: dict[str, Any], algorithm: str) -> tuple[str, list[str]]:
    """The element type and the dims of "T[n, k] if transpose_b else [k, n]" in this call."""
    element = type_text[:type_text.index("[")]
    for form in type_text.rstrip("?").split(" else "):
        shape, _, condition = form.partition(" if ")
        if not condition or _value(condition, names, algorithm):
            return element, _batching.dims_of(shape)
    raise AssertionError(type_text)


class _Symbols:
    """What a call's tensors say of the names in its signature, where sizes may be symbols."""

    def __init__(self, algorithm: str, scalars: dict[str, Any]):
        self.algorithm, self.names = algorithm, dict(scalars)
        self.leading: tuple[Any, ...] | None = None
        self.elements: dict[str, torch.dtype] = {}

    def _ask(self, holds: Any, words: str) -> None:
        torch._check(holds, lambda: f"{self.algorithm}: {words}")

    def _size(self, dim: str, size: Any, where: str) -> None:
        if dim.isidentifier() and dim not in self.names:
            self.names[dim] = size
        else:
            wanted = _value(dim, self.names, self.algorithm)
            self._ask(size == wanted, f"{where} is {size} but {dim} is {wanted}")

    def bind(self, row: dict[str, Any], tensor: torch.Tensor) -> None:
        name, shape = row["name"], tuple(tensor.shape)
        element, dims = _form(row["type"], self.names, self.algorithm)
        if self.elements.setdefault(element, tensor.dtype) != tensor.dtype:
            raise InvalidArgumentError(f"{self.algorithm}: {name} is {tensor.dtype}, and {element} is {self.elements[element]}")
        if "..." in dims:
            at, more = dims.index("..."), len(shape) - len(dims) + 1
            if more >= 0:
                self._lead(shape[at:at + more], name)
                dims, shape = dims[:at] + dims[at + 1:], shape[:at] + shape[at + more:]
        if len(dims) != len(shape):
            raise InvalidArgumentError(f"{self.algorithm}: {name} has {tensor.dim()} dims, expected {row['type']}")
        for i, (dim, size) in enumerate(zip(dims, shape)):
            self._size(dim, size, f"{name}[{i}]")

    def _lead(self, sizes: tuple[Any, ...], name: str) -> None:
        if self.leading is None:
            self.leading = sizes
        elif len(self.leading) != len(sizes):
            raise InvalidArgumentError(f"{self.algorithm}: {name} has {len(sizes)} leading dims, and others {len(self.leading)}")
        for one, other in zip(self.leading, sizes):
            self._ask(one == other, f"the leading dims of {name} are {sizes}, and others' {self.leading}")

    def result(self, row: dict[str, Any]) -> tuple[torch.dtype, tuple[Any, ...]]:
        element, dims = _form(row["type"], self.names, self.algorithm)
        sizes: list[Any] = []
        for dim in dims:
            sizes += (self.leading or ()) if dim == "..." else [_value(dim, self.names, self.algorithm)]
        return self.elements[element] if element in self.elements else _dtype(element), tuple(sizes)


_ELEMENTS = {"f8_e4m3fn": "float8_e4m3fn", "f8_e5m2": "float8_e5m2", "bf16": "bfloat16", "c64": "complex64", "c128": "complex128"}


def _dtype(element: str) -> torch.dtype:
    """torch's type of hone's "f32"."""
    words = {"f": "float", "i": "int", "u": "uint"}
    return getattr(torch, _ELEMENTS.get(element) or words.get(element[0], element[0]) + element[1:])  # type: ignore[no-any-return]


def _swapped(shape: Sequence[Any], axes: str | None) -> tuple[Any, ...]:
    return (shape[0], shape[2], shape[1], *shape[3:]) if axes == "bhsd" else tuple(shape)


# Operations -----------------------------------------------------------------------------------------------------------


class _Operation:
    """One algorithm as an operation of torch's, and as one that writes its results."""

    def __init__(self, name: str):
        operation = runtimes.default().operation(name)
        self.name, self.parameters = name, operation.parameters
        self.site = types.SimpleNamespace(name=name, independent=operation.independent, signature=operation.signature, address=operation.address)
        self.tensors = [row for row in self.parameters if row["kind"] == "tensor" and not row["is_result"]]
        self.results = [row for row in self.parameters if row["is_result"]]
        self.by_place = [row["name"] for row in _by_place(self.parameters)]
        self.tensors_by_place = [row for row in _by_place(self.parameters) if row["kind"] == "tensor"]
        tags = [torch.Tag.pt2_compliant_tag]
        if hasattr(torch.Tag, "needs_exact_strides"):  # a decision is for the strides that were traced
            tags.append(torch.Tag.needs_exact_strides)
        for overload, writes in (("", False), (".out", True)):
            _library.define(name + overload + _schema(self.parameters, operation.asks_axes, writes), tags=tags)
        self.packet = getattr(getattr(torch.ops, NAMESPACE), name)
        self.packet.__doc__ = operation.signature
        self.called = _hone.torch_kernel(name, self._called, True, torch.Tensor, True)
        self._plans: dict[tuple[bool, ...], _gradients.Plan] = {}
        self._has_gradient = False  # not known to have one
        self._implement(self.packet.default, self._recorded, True)
        self._implement(self.packet.out, self._recorded_out, False)
        self._rules()

    def _implement(self, overload: Any, recorded: Callable[..., Any], makes: bool) -> None:
        name = self.name + ("" if makes else ".out")
        for key in ("CPU", "CUDA"):
            _library.impl(name, _hone.torch_kernel(self.name, None, makes, torch.Tensor), key)
        for key in _REFUSED:
            _library.impl(name, self._refuse, key)
        _library.impl(name, _hone.torch_kernel(self.name, recorded, makes, torch.Tensor), "Autograd")
        torch.library.register_fake(overload, self._fake if makes else self._fake_out, lib=_library)

    def _refuse(self, *args: Any, **keywords: Any) -> Any:
        for name, value in self._named(args, keywords).items():
            words = _arrays.torch_refusal(torch, value) if isinstance(value, torch.Tensor) else None
            if words is not None:
                raise TypeError(f"{self.name}: {name}: {words}")
        raise TypeError(f"{self.name}: got a tensor of torch that hone does not take: give a dense one on the CPU or on a GPU")

    def _rules(self) -> None:
        name = f"{NAMESPACE}::{self.name}"
        torch.library.register_vmap(name, self._vmap, lib=_library)
        _library.impl(self.name + ".out", self._vmap_out, "FuncTorchBatched")
        _library.impl(self.name + ".out", self._raise_versions, "ADInplaceOrView", with_keyset=True)
        for device in ("cpu", "cuda"):
            key = getattr(torch.DispatchKey if hasattr(torch, "DispatchKey") else torch._C.DispatchKey, "Autocast" + device.upper())
            _library.impl(self.name, self._autocast(device, key), "Autocast" + device.upper())

    def _named(self, args: Sequence[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        named = {**dict(zip(self.by_place, args)), **keywords}
        return {name: value for name, value in named.items() if value is not None}

    # --- shapes

    def _one_device(self, named: dict[str, Any]) -> Any:
        """Of the call's tensors. torch's dispatcher calls this for one on meta whatever the others are on."""
        devices = {name: value.device for name, value in named.items() if isinstance(value, torch.Tensor)}
        first, device = next(iter(devices.items()))
        for name, other in devices.items():
            if other != device:
                raise InvalidArgumentError(f"{self.name}: {first} is on {device} and {name} on {other}, expected one device: move {name}, {name}.to({str(device)!r})")
        return device

    def _fake(self, *args: Any, **keywords: Any) -> Any:
        named = self._named(args, keywords)
        device, axes = self._one_device(named), named.get("axes")
        # In hone's order, whatever order the caller sees: as arguments.c allocates it.
        made = [torch.empty(_swapped(shape, axes), dtype=dtype, device=device) for dtype, shape in self._describe(named)]
        made = [one.transpose(1, 2) if axes == "bhsd" else one for one in made]
        return made[0] if len(made) == 1 else tuple(made)

    def _fake_out(self, *args: Any, **keywords: Any) -> None:
        named = self._named(args, keywords)
        self._one_device(named)
        self._describe(named)

    def _describe(self, named: dict[str, Any]) -> list[tuple[torch.dtype, tuple[Any, ...]]]:
        """Dtypes and shapes of the results. Wrong calls are refused; one whose sizes are known is decided."""
        tensors = [value for value in named.values() if isinstance(value, torch.Tensor)]
        sizes = [size for tensor in tensors for size in (*tensor.shape, *tensor.stride())]
        if all(type(size) is int for size in sizes) and not any(isinstance(value, torch.SymInt) for value in named.values()):
            return self._decide(named)
        axes = named.get("axes")
        names = {row["name"]: row["default"] for row in self.parameters if row["kind"] != "tensor"}
        names.update({name: value for name, value in named.items() if not isinstance(value, torch.Tensor)})
        symbols = _Symbols(self.name, names)
        for row in self.tensors:
            if row["name"] in named:
                tensor = named[row["name"]]
                symbols.bind(row, tensor.transpose(1, 2) if axes == "bhsd" else tensor)
        results = [(dtype, _swapped(shape, axes)) for dtype, shape in map(symbols.result, self.results)]
        for row, (dtype, shape) in zip(self.results, results):
            if row["name"] in named:
                self._check_written(row["name"], named[row["name"]], dtype, shape)
        return results

    def _check_written(self, name: str, tensor: torch.Tensor, dtype: torch.dtype, shape: tuple[Any, ...]) -> None:
        if tensor.dtype != dtype or tensor.dim() != len(shape):
            raise InvalidArgumentError(
                f"{self.name}: {name} is {tensor.dtype} with {tensor.dim()} dims, expected {dtype} with {len(shape)}")
        for size, wanted in zip(tensor.shape, shape):
            torch._check(size == wanted, lambda: f"{self.name}: {name} is {tuple(tensor.shape)}, expected {shape}")

    def _decide(self, named: dict[str, Any]) -> list[tuple[torch.dtype, tuple[int, ...]]]:
        def described(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            device = value.device
            return (str(value.dtype).removeprefix("torch."), tuple(value.shape), _DEVICES.get(device.type, 1), device.index or 0,
                    tuple(value.stride()))

        call = runtimes.default().operation(self.name).call(**{name: described(value) for name, value in named.items()})
        if any(_is_traced(value) for value in named.values()):
            with contextlib.suppress(HoneError):  # it says so when it runs
                call.decide()
        values = [value for row, value in zip(self.parameters, call.values) if row["is_result"]]
        return [(getattr(torch, dtype), _swapped(shape, named.get("axes"))) for dtype, shape in values]

    # --- gradients

    def _recorded(self, *args: Any, **keywords: Any) -> Any:
        """At torch's autograd, where something is recorded."""
        if _is_differentiated(args, keywords):
            with enable_single_level_autograd_function():
                return _Function.apply(self, keywords, *args)  # type: ignore[no-untyped-call]
        with torch._C._AutoDispatchBelowAutograd():
            return self.packet.default(*args, **keywords)

    def _called(self, *args: Any, **keywords: Any) -> Any:
        """Where the kernel could not take a call: one whose gradient is recorded, and that nothing else sees, needs no dispatcher."""
        if (_hone.torch_is_ordinary() and _is_differentiated(args, {}) and not any(isinstance(one, torch.Tensor) for one in keywords.values()) and
                all(type(one) in (torch.Tensor, torch.nn.Parameter) for one in args if isinstance(one, torch.Tensor))):
            return _Function.apply(self, keywords, *args)  # type: ignore[no-untyped-call]
        return self.packet(*args, **keywords)

    def has_gradient(self) -> bool:
        self._has_gradient = self._has_gradient or _gradients.has(self.name, runtimes.default().algorithms())
        return self._has_gradient

    def _recorded_out(self, *args: Any, **keywords: Any) -> None:
        if _is_differentiated(args, keywords):
            raise RuntimeError(
                f"{self.name}(): with results given it has no gradient, and one of the tensors requires grad: leave them out, or call "
                "under torch.no_grad()")
        with torch._C._AutoDispatchBelowAutograd():
            self.packet.out(*args, **keywords)

    def _raise_versions(self, keyset: Any, *args: Any, **keywords: Any) -> None:
        for row in self.results:
            torch.autograd.graph.increment_version(keywords[row["name"]])
        self.packet.out.redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *args, **keywords)

    def gradient_plan(self, given: Sequence[bool]) -> _gradients.Plan:
        """How the algorithm of the gradient is called."""
        key = tuple(given)
        if key not in self._plans:
            gradient = _registered(_gradients.of(self.name))
            self._plans[key] = _gradients.plan(self.name, self.parameters, gradient.parameters, key)
        return self._plans[key]

    def independent_of(self) -> str | None:
        """Of a gradient, the dims along which the algorithm is independent that it is the gradient of."""
        algorithms = runtimes.default().algorithms()
        base = self.name.removesuffix(_gradients.SUFFIX)
        return _registered(base).site.independent if base != self.name and base in algorithms else None

    def kept(self, args: Sequence[Any]) -> tuple[set[int], set[int]]:
        """The arguments by place and the results that the gradient takes; without a gradient none."""
        if self.name == _gradients.PRODUCT or not self.has_gradient():
            return set(range(len(args))), set()
        named = dict(zip(self.by_place, args))
        plan = self.gradient_plan([named.get(row["name"]) is not None for row in self.tensors])
        names = {plan.arrays[i] for i in plan.taken("array")}
        return {i for i, name in enumerate(self.by_place[:len(args)]) if name in names}, plan.taken("result")

    def gradients(
        self, args: Sequence[Any], results: dict[int, Any], keywords: dict[str, Any], cotangents: Sequence[Any], like: Sequence[Any]
    ) -> list[Any]:
        """One for each argument by place, None for what is no tensor.

        Args:
            args: by place; None as well for arrays that are not kept.
            results: those that are kept.
            like: the dtype of each argument that asks for its gradient, else None.
        """
        # sum()'s has one element, and not every kernel takes strides
        is_turned = keywords.get("axes") == "bhsd"
        plain = [one.transpose(1, 2).contiguous().transpose(1, 2) if is_turned else one.contiguous() for one in cotangents]
        of = self._cotangents(dict(zip(self.by_place, args)), results, keywords, plain, dict(zip(self.by_place, like)))
        return [None if dtype is None else of[name].to(dtype) for name, dtype in zip(self.by_place, like)]

    def _cotangents(
        self, named: dict[str, Any], results: dict[int, Any], keywords: dict[str, Any], cotangents: Sequence[Any], like: dict[str, Any]
    ) -> dict[str, Any]:
        """Of each array that has one, by name."""
        if self.name == _gradients.PRODUCT:
            given = {name: value for name, value in {**named, **keywords}.items() if value is not None}
            added = {name: given.pop(name) for name in ("bias", "residual") if name in given and "activation" not in given}
            refused = _gradients.product_refused(given)
            if refused is not None:
                raise RuntimeError(f"{NAMESPACE}::{refused}. Differentiate another form of it")

            def product(a: Any, b: Any, transpose_b: bool) -> Any:
                return self.called(a, b, transpose_b=transpose_b)

            made = _gradients.of_product(
                [named["a"], named["b"]], cotangents[0], keywords.get("transpose_b", False), product, lambda one: one.transpose(-1, -2).contiguous(),
                (like.get("a") is not None, like.get("b") is not None))
            return {"a": made[0], "b": made[1], "bias": cotangents[0].sum(tuple(range(cotangents[0].dim() - 1))) if "bias" in added else None, "residual": cotangents[0]}
        if not self.has_gradient():
            raise RuntimeError(f"{NAMESPACE}::{_gradients.is_missing(self.name)}. Differentiate another form of it, or wrap it in "
                               "torch.autograd.Function")
        operation = _registered(_gradients.of(self.name))
        plan = self.gradient_plan([like.get(row["name"]) is not None or named.get(row["name"]) is not None for row in self.tensors])
        refused = plan.refused([like.get(name) is not None for name in plan.arrays])
        if refused is not None:
            raise RuntimeError(f"{NAMESPACE}::{refused}. Give it detached, or differentiate another form of {self.name}")
        values = {"array": {i: named.get(name) for i, name in enumerate(plan.arrays)}, "result": results,
                  "cotangent": dict(enumerate(cotangents))}
        is_turned = keywords.get("axes") == "bhsd"  # the gradient's arrays are [batch, position, head, element]
        tensors = [values[kind][index] for kind, index in plan.takes]
        tensors = [one.transpose(1, 2) if is_turned else one for one in tensors]
        given = {**{name: value for name, value in named.items() if not isinstance(value, torch.Tensor)}, **keywords}
        made = operation.called(*tensors, **{name: value for name, value in given.items() if name in plan.scalars and value is not None})
        made = [one.transpose(1, 2) if is_turned else one for one in (made if isinstance(made, tuple) else (made,))]
        found = {plan.arrays[array]: made[result] for array, result in plan.gives.items()}
        if self.name == "layer_norm" and cotangents[0].dtype is torch.float64:
            found.update(self._double_sums(named["x"], cotangents[0], keywords))
        return found

    def _double_sums(self, x: torch.Tensor, d_y: torch.Tensor, keywords: dict[str, Any]) -> dict[str, torch.Tensor]:
        """The cotangents of layer_norm's weight and bias, which its gradient gives in f32 whatever its rows are."""
        plain = self.packet.default(x, **{name: value for name, value in keywords.items() if name != "weight_offset"})
        return {"weight": (d_y * plain).reshape(-1, x.shape[-1]).sum(0), "bias": d_y.reshape(-1, x.shape[-1]).sum(0)}

    # --- vmap

    def _vmap(self, info: Any, in_dims: Sequence[Any], *args: Any, **keywords: Any) -> Any:
        """Into a leading dim where the signature allows it, else one call after the other."""
        named, axes = dict(zip(self.by_place, args)), dict(zip(self.by_place, in_dims))
        names = [row["name"] for row in self.tensors if named.get(row["name"]) is not None]
        scalars = tuple((name, value) for name, value in {**named, **keywords}.items()
                        if value is not None and name not in names and name != "axes")
        site = types.SimpleNamespace(operation=self.site, tensors=self.tensors, results=self.results, scalars=scalars,
                                     given=[row["name"] in names for row in self.tensors])

        def bind(*operands: Any) -> Sequence[Any]:
            call = {**named, **dict(zip(names, operands))}
            made = self.packet.default(*(call[name] for name in self.by_place[:len(args)]), **keywords)
            return made if isinstance(made, tuple) else (made,)

        operands, dims = [named[name] for name in names], [axes[name] for name in names]
        foldable = info.batch_size > 0 and keywords.get("axes") != "bhsd"
        ndims = [operand.dim() - (one is not None) for operand, one in zip(operands, dims)]
        dim = _batching.folding_dim(site, [one is not None for one in dims], ndims) if foldable else None

        def call_of(batched_shape: Any) -> Any:
            rows = [row for row, there in zip(self.tensors, site.given) if there]
            described = {}
            for row, operand, axis in zip(rows, operands, dims):
                shape = [size for place, size in enumerate(operand.shape) if axis is None or place != axis % operand.dim()]
                described[row["name"]] = (str(operand.dtype).removeprefix("torch."), batched_shape(row, shape), 1, 0)
            return runtimes.default().operation(self.name).call(**described, **dict(scalars))

        dim = _batching.checked_dim(site, dim, call_of)
        if dim is not None:
            results = _batching.fold(site, dim, operands, dims, info.batch_size, bind, _spread)
        else:
            results = _one_by_one(operands, dims, info.batch_size, bind)
        return (results[0], 0) if len(results) == 1 else (tuple(results), (0,) * len(results))

    def _vmap_out(self, *args: Any, **keywords: Any) -> Any:
        raise RuntimeError(f"{self.name}(): with results given it cannot be mapped by vmap: leave them out")

    # --- autocast

    def _autocast(self, device: str, key: Any) -> Callable[..., Any]:
        keys = torch._C.DispatchKeySet(key)

        def cast(*args: Any, **keywords: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(keys):
                named = dict(zip(self.by_place, args))
                named.update(self._cast(named, torch.get_autocast_dtype(device)))
                return self.packet.default(*named.values(), **keywords)

        return cast

    def _cast(self, named: dict[str, Any], lower: torch.dtype) -> dict[str, torch.Tensor]:
        """Tensors whose dtypes have to agree, by the signature, in one."""
        groups: dict[str, list[str]] = {}
        for row in self.tensors:
            if isinstance(named.get(row["name"]), torch.Tensor) and named[row["name"]].dtype in _WIDTHS:
                groups.setdefault(row["type"][:row["type"].index("[")], []).append(row["name"])
        operand = next(named[row["name"]] for row in self.tensors if isinstance(named.get(row["name"]), torch.Tensor))
        is_lowered = self.name.endswith(LOWERED) and operand.dtype in _WIDTHS
        made = {}
        for element, names in groups.items():
            wanted = lower if is_lowered else _widest([named[name].dtype for name in names])
            if element[0].isupper():
                made.update({name: named[name].to(wanted) for name in names})
        return made


def _widest(dtypes: Sequence[torch.dtype]) -> torch.dtype:
    """float16 and bfloat16 meet in float32, as torch has it."""
    wide = dtypes[0]
    for dtype in dtypes[1:]:
        wide = torch.promote_types(wide, dtype)
    return wide


def _is_traced(value: Any) -> bool:
    """Whether a tensor is one of a graph that is traced, and not one that stands for a shape alone: DTensor asks so for the shape that all
    parts have together, and no call has it."""
    return getattr(getattr(value, "fake_mode", None), "shape_env", None) is not None


def _is_differentiated(args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    if getattr(torch.autograd.forward_ad, "_current_level", -1) >= 0:
        return True
    tensors = [value for value in (*args, *keywords.values()) if isinstance(value, torch.Tensor)]
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _on_for_others() -> contextlib.AbstractContextManager[None]:
    return _ALONE if torch._C._functorch.peek_interpreter_stack() is None else _on_around()


_ALONE: contextlib.AbstractContextManager[None] = contextlib.nullcontext()


@contextlib.contextmanager
def _on_around() -> Iterator[None]:
    """torch calls a function's forward with modes off that hold for the transforms of torch.func around this one, too: what they record
    would be lost."""
    with torch.enable_grad(), torch.autograd.forward_ad._set_fwd_grad_enabled(True):
        yield


class _Function(_SingleLevelFunction):
    """An operation that is recorded for its gradient, at the level of torch.func that it is called in: torch's dispatcher has gone
    through the others."""

    @staticmethod
    def forward(ctx: Any, operation: _Operation, keywords: dict[str, Any], *args: Any) -> Any:
        with _on_for_others(), torch._C._AutoDispatchBelowAutograd():
            results = operation.called(*args, **keywords)
        ctx.operation, ctx.keywords = operation, keywords
        made = results if isinstance(results, tuple) else (results,)
        places, numbers = operation.kept(args)
        ctx.others = [None if isinstance(value, torch.Tensor) else value for value in args]
        ctx.places = [i for i in sorted(places) if isinstance(args[i], torch.Tensor)]
        ctx.results = sorted(numbers)
        ctx.dtypes = [value.dtype if isinstance(value, torch.Tensor) else None for value in args]
        ctx.save_for_backward(*(args[i] for i in ctx.places), *(made[i] for i in ctx.results))
        return results

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        args, saved = list(ctx.others), list(ctx.saved_tensors)
        for i, tensor in zip(ctx.places, saved):
            args[i] = tensor
        results = dict(zip(ctx.results, saved[len(ctx.places):]))
        like = [dtype if asked else None for dtype, asked in zip(ctx.dtypes, ctx.needs_input_grad[2:])]
        if ctx.operation.name in _second_gradients.OF:
            return None, None, *_second_gradients.differentiate(ctx.operation.name, args, ctx.keywords, list(cotangents), [one is not None for one in like])
        return None, None, *ctx.operation.gradients(args, results, ctx.keywords, cotangents, like)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise RuntimeError(f"{NAMESPACE}::{ctx.operation.name} has no tangent: hone computes none in torch's forward mode (torch.func.jvp, jacfwd, hessian, "
                           "linearize, torch.autograd.forward_ad). Take torch.func.jacrev or vjp, of products also twice, or torch's own function there")


def _spread(operand: torch.Tensor, axis: int | None, size: int) -> torch.Tensor:
    """The batch in front."""
    return operand.expand(size, *operand.shape) if axis is None else operand.movedim(axis, 0)


def _one_by_one(operands: Sequence[Any], dims: Sequence[Any], size: int, bind: Callable[..., Sequence[Any]]) -> list[Any]:
    def part(operand: Any, axis: int | None, i: int) -> Any:
        if axis is None:
            return operand
        return operand.select(axis, i) if size > 0 else operand.new_zeros([n for at, n in enumerate(operand.shape) if at != axis])

    made = [bind(*(part(operand, axis, i) for operand, axis in zip(operands, dims))) for i in range(max(size, 1))]
    return [torch.stack(results)[:size] for results in zip(*made)]


# Names ----------------------------------------------------------------------------------------------------------------

_operations: dict[str, _Operation] = {}
_following: list[Callable[[_Operation], None]] = []


def _registered(name: str) -> _Operation:
    with _lock:
        if name not in _operations:
            if not name.isidentifier():
                raise UnsupportedError(f"the algorithm {name!r} has a name that no operation of torch can have")
            _operations[name] = _Operation(name)
            setattr(ops, name, _operations[name].packet)
            for each in _following:
                each(_operations[name])
        return _operations[name]


def _follow(each: Callable[[_Operation], None]) -> None:
    """Calls a function of every operation, those that are registered later, too."""
    with _lock:
        _following.append(each)
        for operation in list(_operations.values()):
            each(operation)


class _Operations(types.ModuleType):
    """``hone.torch.ops``: an operation of torch's for each algorithm, those that were registered later, too."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _registered(name).packet
        except NotFoundError as error:
            raise AttributeError(f"hone.torch.ops has no {name!r}: {error}") from error

    def __dir__(self) -> list[str]:
        return [name for name in runtimes.default().algorithms() if name.isidentifier()]


# Models ---------------------------------------------------------------------------------------------------------------


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product that ``torch.matmul`` gives, of all shapes and dtypes that it takes.

    hone's ``matmul`` computes those of float16, bfloat16, float32 and float64: vectors are matrices of one row or column, leading
    dims of ``a`` are rows where ``b`` is a matrix, and else those of a batch, broadcast as torch does. Products of other dtypes, or of
    more than 8 dims, are torch's own.
    """
    known = (*_WIDTHS, torch.float64)
    if a.dtype not in known or b.dtype not in known or min(a.dim(), b.dim()) < 1 or max(a.dim(), b.dim()) > 8:
        return torch.matmul(a, b)
    if a.dim() == b.dim() == 2:
        return product(a, b)
    if b.dim() > 2:
        return _batched(a, b)
    rows = a.flatten(0, -2) if a.dim() > 1 else a.unsqueeze(0)  # no reshape to -1 rows: of nothing there are any number
    made = product(rows, b if b.dim() == 2 else b.unsqueeze(1))
    return made.reshape((*a.shape[:-1], *(b.shape[1:] if b.dim() == 2 else ())))


def product(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None = None, residual: torch.Tensor | None = None) -> torch.Tensor:
    """hone's ``matmul`` of matrices that may be turned, as ``q @ k.transpose(-1, -2)`` has one. Kernels take rows without gaps; what has neither
    such rows nor such columns is copied, since only the reference takes any strides, which is some hundred times as slow."""
    is_turned = b.stride(-1) != 1 and b.stride(-2) == 1
    b = dense(b.transpose(-1, -2) if is_turned else b)
    return called("matmul")(dense(a), b, bias, residual, transpose_b=is_turned)  # type: ignore[no-any-return]


def called(name: str) -> Callable[..., Any]:
    """An operation, for a call by place as its schema has it, past torch's dispatcher where nobody there has to see it."""
    return getattr(ops, name) if is_dynamo_compiling() else _operations[name].called


def dense(x: torch.Tensor) -> torch.Tensor:
    """Whose last axis has no gaps."""
    return x if x.stride(-1) == 1 else x.contiguous()


def _batched(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.dim() == b.dim() and a.shape[:-2] == b.shape[:-2]:
        return product(a, b)
    rows = a if a.dim() > 1 else a.unsqueeze(0)
    leading = torch.broadcast_shapes(rows.shape[:-2], b.shape[:-2])
    made = product(rows.expand(*leading, *rows.shape[-2:]), b.expand(*leading, *b.shape[-2:]))
    return made if a.dim() > 1 else made.squeeze(-2)


def replace(model: torch.nn.Module) -> Replaced:
    """Puts hone's operations into a model: linear layers, norms, softmax, gated activations, ``nn.MultiheadAttention``, and functions of
    torch that its modules call themselves (``F.scaled_dot_product_attention``, ``F.linear``, ``torch.matmul``). The model stays the same object, with its parameters, hooks and
    ``state_dict``; calls that hone would not answer as torch does run torch's own.

    Returns:
        What was replaced and what was left, what was hit and gained: print it. ``undo()`` undoes it, and so does the end of ``with``.

    Raises:
        InvalidArgumentError: it is no module, has been replaced already, or was scripted or traced.
        RuntimeError: when it runs: torch would record a gradient that hone does not have.
    """
    from hone import replacements

    return replacements.replace(model)


# Ranks ----------------------------------------------------------------------------------------------------------------

_exchanges: dict[tuple[int, ...], int] = {}  # how often the ranks of a group have asked each other


def _board() -> agreements.Board:
    store = torch.distributed.distributed_c10d._get_default_store()

    def get(key: str) -> str | None:
        return store.get(key).decode() if store.check([key]) else None

    return agreements.Board(store.set, get, "the store of torch.distributed (often a thread of rank 0)")


def agree(
    group: Any = None, calls: Iterable[str] | None = None, *, timeout: float = 60.0, check: bool = True
) -> agreements.Agreement:
    """Finds out whether the ranks of a process group choose alike, before anything runs. All ranks of the group call it.

    It is no collective: what each rank would choose goes through the store that ``init_process_group`` made. A rank that does not
    answer in time is named, and the group can be used as before.

    Args:
        group: of ``torch.distributed``; None: all ranks.
        calls: call texts; None: every call that this process has made or bound so far.
        timeout: seconds until the ranks that have not answered count as missing.
        check: raise where they do not choose alike; False: the agreement says so.

    Returns:
        Entered with ``with``, this rank's choices answer, whatever is tuned or stored meanwhile.

    Raises:
        IncompatibleError: which call, which rank, and why.
        BusyError: which rank has not answered.
    """
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        raise InvalidArgumentError("there is no process group: call torch.distributed.init_process_group first")
    rank = torch.distributed.get_rank(group)
    if rank < 0:
        raise InvalidArgumentError("this process is not of the group: only its ranks can agree")
    members = tuple(torch.distributed.get_process_group_ranks(group))
    with _lock:
        number = _exchanges[members] = _exchanges.get(members, 0) + 1
    prefix = f"hone/agree/{'-'.join(map(str, members))}/{number}"
    return agreements.agree(_board(), prefix, rank, len(members), calls, timeout, check)


ops = _Operations("hone.torch.ops", _Operations.__doc__)
for _name in dir(ops):
    _registered(_name)
_imports.once_imported("torch.utils.flop_counter", lambda: _follow(lambda operation: _flops.count(operation.name, operation.packet)))
_imports.once_imported("torch.distributed.tensor", lambda: _follow(_sharding.register))
