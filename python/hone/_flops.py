"""What ``torch.utils.flop_counter.FlopCounterMode`` counts of hone's operations: what it counts of torch's own.

That is the multiplications and additions of products, without regard to masks. Norms, softmax and the like count nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

Shape = Sequence[Any]


def _product(a: Shape, b: Shape, *others: Any, transpose_b: bool = False, **keywords: Any) -> Any:
    return 2 * math.prod(a) * b[-2 if transpose_b else -1]


def _gated(x: Shape, weights: Shape, **keywords: Any) -> Any:
    return 2 * math.prod(x) * weights[1] * weights[2]


def _pairs(query: Shape, key: Shape, axes: str | None) -> Any:
    """Of a query and a key in every head."""
    position = 2 if axes == "bhsd" else 1
    return query[0] * query[1] * query[2] * key[position]


def _attention(query: Shape, key: Shape, value: Shape, *others: Any, axes: str | None = None, **keywords: Any) -> Any:
    return 2 * _pairs(query, key, axes) * (query[3] + value[3])


def _attention_vjp(query: Shape, key: Shape, value: Shape, *others: Any, axes: str | None = None, **keywords: Any) -> Any:
    """The weights once more, and the two cotangents of each product."""
    return 2 * _pairs(query, key, axes) * (3 * query[3] + 2 * value[3])


_ATTENTIONS = ("attention", "biased_attention", "dot_product_attention", "flash_attention", "scaled_dot_product_attention")
_FORMULAS: dict[str, Callable[..., Any]] = {
    "matmul": _product, "scaled_matmul": _product, "gated_linear_unit": _gated, "flash_attention_vjp": _attention_vjp,
    **dict.fromkeys(_ATTENTIONS, _attention),
}


def count(name: str, packet: Any) -> None:
    """Registers the formula of an operation that has one."""
    from torch.utils.flop_counter import register_flop_formula

    if name in _FORMULAS:
        register_flop_formula(packet)(_FORMULAS[name])
