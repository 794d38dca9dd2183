"""How operations of ``hone.torch`` run over tensors that are spread over a mesh of devices (``torch.distributed.tensor.DTensor``).

Each rank runs the operation on its part. Which parts may be computed apart is what the algorithm says of itself: along a dim that it
names as independent. Tensors that lie otherwise are brought there by DTensor, as for torch's own operations.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

from hone import _batching, _gradients
from hone.errors import UnsupportedError

Row = dict[str, Any]
# The index of a dim in each given tensor, and in each result; None: the tensor does not have it.
Places = tuple[list[int | None], list[int | None]]


def _form(row: Row, scalars: dict[str, Any]) -> list[str] | None:
    """The dims of a tensor in a call; None where its type has a condition that is no flag."""
    for form in row["type"].rstrip("?").split(" else "):
        shape, _, condition = form.partition(" if ")
        if not condition or scalars.get(condition.strip()) is True:
            return _batching.dims_of(shape)
        if condition.strip() not in scalars:
            return None
    return None


def _place(dims: Sequence[str], dim: str, ndim: int, is_turned: bool) -> int | None:
    """The index of a dim in a tensor with `ndim` dims, counting those that "..." matches."""
    at = dims.index(dim) if dim in dims else None
    if at is None:
        return None
    before = dims.index("...") if "..." in dims else len(dims)
    at += ndim - len(dims) if at > before else 0
    return {1: 2, 2: 1}.get(at, at) if is_turned else at


def _is_computed(dims: Sequence[str], dim: str) -> bool:
    """Whether a dim occurs in an expression, or twice."""
    return sum(dim in _batching.words_of(one) for one in dims) > (dim in dims)


class Call:
    """The tensors of one call, by their rows in the signature."""

    def __init__(self, tensors: Sequence[Row], results: Sequence[Row], ndims: Sequence[int], scalars: dict[str, Any]):
        forms = [_form(row, scalars) for row in (*tensors, *results)]
        self.is_known = None not in forms
        self.ndims, self.is_turned = ndims, scalars.get("axes") == "bhsd"
        self.tensors = [form or [] for form in forms[:len(tensors)]]
        self.results = [form or [] for form in forms[len(tensors):]]
        self.names = [row["name"] for row in tensors], [row["name"] for row in results]

    def leading(self) -> int:
        """How many dims "..." matches."""
        return next((ndim - len(dims) + 1 for dims, ndim in zip(self.tensors, self.ndims) if "..." in dims), 0)

    def places(self, dims: Sequence[str]) -> Places | None:
        """Where a dim is, or a pair that is split alike, as heads and kv_heads; None where it cannot be split."""
        every = [*self.tensors, *self.results]
        if not self.is_known or any(_is_computed(form, dim) for form in every for dim in dims):
            return None
        if any(sum(dim in form for dim in dims) > 1 for form in every):
            return None

        def of(forms: Sequence[Sequence[str]], ndims: Sequence[int]) -> list[int | None]:
            found = [[_place(form, dim, ndim, self.is_turned) for dim in dims if dim in form] for form, ndim in zip(forms, ndims)]
            return [one[0] if one else None for one in found]

        leading = self.leading()
        made = of(self.results, [len(form) - ("..." in form) + leading * ("..." in form) for form in self.results])
        return of(self.tensors, self.ndims), made

    def leading_places(self, index: int) -> Places:
        """Of one of the dims that "..." stands for."""
        def of(forms: Sequence[Sequence[str]]) -> list[int | None]:
            return [form.index("...") + index if "..." in form else None for form in forms]

        return of(self.tensors), of(self.results)


def _independent(call: Call, words: str | None) -> Iterator[tuple[Places, bool]]:
    """Each dim that an algorithm names, and whether its size has to be a multiple of the ranks, so that pairs are split alike."""
    for word in (words or "").split():
        dims = word.split(":")
        if dims == ["..."]:
            yield from ((call.leading_places(index), False) for index in range(call.leading() if call.is_known else 0))
        else:
            places = call.places(dims)
            if places is not None:
                yield places, len(dims) > 1


def _of_product(call: Call, scalars: dict[str, Any]) -> Iterator[tuple[Places, bool]]:
    """A product is independent along its columns, too, and its sum may be formed in parts where nothing follows it."""
    columns = call.places(["n"])
    if columns is not None:
        yield columns, False
    sums = call.places(["k"])
    if sums is not None and len(call.tensors) == 2 and scalars.get("activation") is None:
        yield sums, False


def shardings(call: Call, scalars: dict[str, Any], name: str, independent: str | None, of_gradient: str | None) -> Iterator[tuple[Places, bool]]:
    """The dims that a call can be split along. A result that has not the dim is a sum over the parts.

    Args:
        of_gradient: of the gradient of an algorithm, what that one says is independent: the cotangent of what all parts share is the
            sum over them.
    """
    for places, is_even in _independent(call, independent):
        if all(place is not None for place in places[1]):
            yield places, is_even
    if name == _gradients.PRODUCT:
        yield from _of_product(call, scalars)
    if independent is None and of_gradient is not None and all(result.startswith("d_") for result in call.names[1]):
        yield from _independent(call, of_gradient)


def _strategy(operation: Any, schema: Any) -> Any:
    from torch.distributed.tensor import Partial, Replicate, Shard
    from torch.distributed.tensor._ops.utils import expand_to_full_mesh_op_strategy

    named = dict(zip(operation.by_place, schema.args_schema)) | dict(schema.kwargs_schema)
    tensors = [row for row in operation.tensors_by_place if hasattr(named.get(row["name"]), "strategies")]
    given = [named[row["name"]].strategies[0].output_spec for row in tensors]
    scalars = {row["name"]: row["default"] for row in operation.parameters if row["kind"] != "tensor"}
    scalars |= {name: value for name, value in named.items() if not hasattr(value, "strategies")}
    call = Call(tensors, operation.results, [spec.ndim for spec in given], scalars)
    mesh = schema.get_mesh_from_args()

    def placed(places: Places) -> list[Any]:
        made = [Partial() if place is None else Shard(place) for place in places[1]]
        return made + [Replicate() if place is None else Shard(place) for place in places[0]]

    rows = [[Replicate()] * (len(operation.results) + len(tensors))]
    for places, is_even in shardings(call, scalars, operation.name, operation.site.independent, operation.independent_of()):
        sizes = [spec.shape[place] for spec, place in zip(given, places[0]) if place is not None]
        if not is_even or all(size % mesh.size() == 0 for size in sizes):
            rows.append(placed(places))
    return expand_to_full_mesh_op_strategy(mesh, schema, rows, input_index=len(operation.results))


def _refuse(operation: Any, schema: Any) -> Any:
    results = ", ".join(f"{row['name']}=..." for row in operation.results)
    raise UnsupportedError(f"{operation.name}(..., {results}): results that are given cannot be written where tensors are DTensors: "
                           "leave them out, and take what it gives back")


def register(operation: Any) -> None:
    """Tells DTensor how an operation of hone.torch is split, where this torch can be told."""
    try:
        from torch.distributed.tensor import DTensor
        from torch.distributed.tensor._op_schema import RuntimeSchemaInfo

        splits = DTensor._op_dispatcher.sharding_propagator.register_op_strategy
    except (ImportError, AttributeError):  # another version of torch: DTensor then reports that the operation has no strategy
        return
    tensors = [row["name"] for row in operation.tensors_by_place]
    first = next((i for i, name in enumerate(operation.by_place) if name not in tensors), len(operation.by_place))
    named = [one.name for one in operation.packet.default._schema.arguments if one.kwarg_only]
    splits(operation.packet.default, functools.partial(_strategy, operation), RuntimeSchemaInfo(first, named or None, needs_pytree=True))
    splits(operation.packet.out, functools.partial(_refuse, operation))
