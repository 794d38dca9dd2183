"""Where an algorithm's gradient comes from, for hone.jax and hone.torch.

The gradient of NAME in reverse mode is an algorithm of its own, NAME_vjp. It names what it takes and gives: an array or a result
of NAME by its own name, the cotangent of each with ``d_`` before it.

    softmax(x, *, scale) -> y            softmax_vjp(y, d_y, *, scale) -> d_x

What it gives no cotangent of has none. One with other names takes all arrays and the cotangents of all results in their order,
and gives the cotangents of the arrays that there are. The gradient of a product is two products: matmul's is no algorithm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

SUFFIX = "_vjp"
PRODUCT = "matmul"
# Algorithms that are forms of another one, and use its gradient.
FORMS = {"scaled_dot_product_attention": "flash_attention"}
# Arrays whose cotangent equals that of another array: a residual that is added to x has the cotangent of x.
EQUAL = {"add_rms_norm": {"residual": "x"}}


def of(name: str) -> str:
    """The algorithm of an algorithm's gradient; that of a product is the product."""
    return name if name == PRODUCT else FORMS.get(name, name) + SUFFIX


def has(name: str, algorithms: Container[str]) -> bool:
    """Whether an algorithm has a gradient."""
    return of(name) in algorithms


def is_missing(name: str) -> str:
    """Why an algorithm has no gradient."""
    return (f"{name} has no gradient: hone has no algorithm named {of(name)}, which would take its arrays, its results' cotangents "
            "and its scalars, and give its arrays' cotangents")


def is_constant(name: str, array: str) -> str:
    """Why an array of an algorithm that has a gradient is not differentiated."""
    return f"{name} has no gradient by {array}: {of(name)} gives none, and takes {array} for a constant"


@dataclasses.dataclass
class Plan:
    """A gradient's call: what it takes, an array, a result or a cotangent by number, and what it gives by the array's number."""

    name: str
    arrays: list[str]
    takes: list[tuple[str, int]]
    gives: dict[int, int]
    scalars: set[str]

    def taken(self, kind: str) -> set[int]:
        """The numbers of the arrays or results that are kept for the gradient."""
        return {index for of, index in self.takes if of == kind}

    def refused(self, differentiated: Sequence[bool]) -> str | None:
        """Why one of these arrays has no cotangent; None: all have one."""
        wrong = (array for array, (name, asked) in enumerate(zip(self.arrays, differentiated)) if asked and array not in self.gives)
        first = next(wrong, None)
        return None if first is None else is_constant(self.name, self.arrays[first])


def product_refused(given: Iterable[str]) -> str | None:
    """Why a product of these arguments has no gradient; None: it has one."""
    others = sorted(set(given) - {"a", "b", "transpose_b"})
    return f"{PRODUCT} has no gradient with {', '.join(others)}: it has one of a, b, bias and residual without an activation" if others else None


def plan(name: str, rows: Sequence[dict[str, Any]], gradient: Sequence[dict[str, Any]], given: Sequence[bool]) -> Plan:
    """How NAME_vjp, of the parameters `gradient`, is called for a call of NAME that has these arrays."""
    arrays, results = ([row["name"] for row in rows if row["kind"] == "tensor" and row["is_result"] == of] for of in (False, True))
    wanted = [row["name"] for row in gradient if row["kind"] == "tensor" and not row["is_result"]]
    made = [row["name"] for row in gradient if row["is_result"]]
    scalars = {row["name"] for row in gradient if row["kind"] != "tensor"}
    places = {"d_" + one: ("cotangent", i) for i, one in enumerate(results)}
    places |= {one: ("result", i) for i, one in enumerate(results)}
    places |= {one: ("array", i) for i, one in enumerate(arrays)}
    if all(one in places for one in wanted) and all(one[:2] == "d_" and one[2:] in arrays for one in made):
        gives = {arrays.index(one[2:]): i for i, one in enumerate(made)}
        for array, other in EQUAL.get(name, {}).items():
            gives[arrays.index(array)] = gives[arrays.index(other)]
        return Plan(name, arrays, [places[one] for one in wanted], gives, scalars)
    takes = [("array", i) for i in range(len(arrays))] + [("cotangent", i) for i in range(len(results))]
    there = [i for i, is_there in enumerate(given) if is_there]
    return Plan(name, arrays, takes, dict(zip(there, range(len(made)))), scalars)


def of_product(
    arrays: Sequence[Any], d_c: Any, transpose_b: bool, product: Callable[[Any, Any, bool], Any], turned: Callable[[Any], Any],
    asked: tuple[bool, bool] = (True, True)
) -> tuple[Any, Any]:
    """The cotangents of a and b, of c = a b; None in place of one that nobody asks for.

    Args:
        arrays: a [..., m, k], and b [..., k, n] or transposed [..., n, k].
        product: of two arrays, the second one's matrices transposed or not.
        turned: an array whose matrices are transposed, with dense rows.
    """
    a, b = arrays
    d_a = product(d_c, b, not transpose_b) if asked[0] else None
    if not asked[1]:
        return d_a, None
    return d_a, product(turned(d_c), a, False) if transpose_b else product(turned(a), d_c, False)
