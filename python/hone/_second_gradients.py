"""Gradients of hone's gradients: each gradient that has no algorithm of its own gradient, in functions of torch, which differentiates them.

They take what the gradient takes, and compute in float32 or wider.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Tensor = torch.Tensor


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype is torch.float64 else x.float()


def _over_rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1]).sum(0)


def _softmax(y: Tensor, d_y: Tensor, *, scale: float = 1.0) -> Tensor:
    weights, d = _wide(y), _wide(d_y)
    return (scale * weights * (d - (weights * d).sum(-1, keepdim=True))).to(y.dtype)


def _silu_mul(gate: Tensor, up: Tensor, d_y: Tensor) -> tuple[Tensor, Tensor]:
    g, u, d = map(_wide, (gate, up, d_y))
    s = torch.sigmoid(g)
    return (d * u * s * (1 + g * (1 - s))).to(gate.dtype), (d * g * s).to(up.dtype)


def _of_norm(x: Tensor, d: Tensor, scale: Tensor | float, eps: float, subtract_mean: bool) -> tuple[Tensor, Tensor]:
    """The cotangent of x, and what each row adds to the scale's."""
    centred = x - x.mean(-1, keepdim=True) if subtract_mean else x
    inverse = torch.rsqrt(centred.square().mean(-1, keepdim=True) + eps)
    normal, scaled = centred * inverse, d * scale
    rest = scaled - scaled.mean(-1, keepdim=True) if subtract_mean else scaled
    return inverse * (rest - normal * (scaled * normal).mean(-1, keepdim=True)), d * normal


def _rms_norm(x: Tensor, weight: Tensor, d_y: Tensor, *, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    d_x, d_scale = _of_norm(*map(_wide, (x, d_y, weight)), eps, False)
    return d_x.to(x.dtype), _over_rows(d_scale).to(weight.dtype)


def _add_rms_norm(sum: Tensor, weight: Tensor, d_sum: Tensor, d_y: Tensor, *, eps: float = 1e-6) -> tuple[Tensor, Tensor]:
    d_x, d_scale = _of_norm(*map(_wide, (sum, d_y, weight)), eps, False)
    return (d_x + _wide(d_sum)).to(sum.dtype), _over_rows(d_scale).to(weight.dtype)


def _layer_norm(
    x: Tensor, d_y: Tensor, weight: Tensor | None = None, *, subtract_mean: bool = True, eps: float = 1e-6, weight_offset: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    d_x, d_scale = _of_norm(_wide(x), _wide(d_y), 1.0 if weight is None else _wide(weight) + weight_offset, eps, subtract_mean)
    return d_x.to(x.dtype), _over_rows(d_scale).float(), _over_rows(_wide(d_y)).float()


OF: dict[str, Callable[..., Any]] = {
    "softmax_vjp": _softmax, "silu_mul_vjp": _silu_mul, "rms_norm_vjp": _rms_norm, "add_rms_norm_vjp": _add_rms_norm, "layer_norm_vjp": _layer_norm,
}


def differentiate(name: str, args: list[Any], keywords: dict[str, Any], cotangents: list[Any], is_asked: list[bool]) -> list[Any]:
    """The cotangents of the arguments that ask for theirs, of the gradient NAME_vjp."""
    own, asked = OF[name], [i for i, wanted in enumerate(is_asked) if wanted]

    def of(*given: Any) -> Any:
        return own(*(dict(zip(asked, given)).get(i, one) for i, one in enumerate(args)), **keywords)

    made = iter(torch.func.vjp(of, *(args[i] for i in asked))[1](cotangents[0] if len(cotangents) == 1 else tuple(cotangents)))
    return [next(made) if wanted else None for wanted in is_asked]
