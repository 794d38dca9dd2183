"""hone's operations in a model of PyTorch that stays as it is: ``hone.torch.replace(model)``.

A module keeps its object, its parameters, hooks and ``state_dict``: its class becomes one that is derived from its own, and whose
``forward`` runs hone's operation, or torch's where hone's would not give the same.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import statistics
import time
import types
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

import hone.torch
from hone import _gradients, runtimes
from hone.errors import InvalidArgumentError

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
# What a probe of a module of the program's own may differ by from what its name says.
_PROBED = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


# What a module was asked ----------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Site:
    """One module that was replaced.

    Attributes:
        name: in the model.
        kind: its class.
        operation: hone's.
        hits: calls that ran hone's operation, outside of compiled graphs.
        passed: calls that ran torch's, by reason.
        torch_seconds, hone_seconds: of all its distinct calls together, after :meth:`Replaced.measure`.
    """

    name: str
    kind: str
    operation: str
    module: nn.Module = dataclasses.field(repr=False)
    before: type[nn.Module] = dataclasses.field(repr=False)
    hits: int = 0
    passed: Counter[str] = dataclasses.field(default_factory=Counter)
    torch_seconds: float | None = None
    hone_seconds: float | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    calls: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = dataclasses.field(default_factory=dict, repr=False)
    trained_on: frozenset[str] = frozenset()
    is_measured: bool = False

    def note(self, reason: str | None, tensors: tuple[torch.Tensor, ...], ours: Callable[..., Any], torchs: Callable[..., Any]) -> None:
        """A call outside of a compiled graph."""
        if self.is_measured:
            return
        if reason is not None:
            self.passed[reason] += 1
            return
        self.hits += 1
        key = tuple((tuple(tensor.shape), tensor.dtype, tensor.device) for tensor in tensors)
        if len(self.calls) < 64:
            self.calls.setdefault(key, (ours, torchs))

    def refuse_training(self, tensors: tuple[torch.Tensor | None, ...]) -> None:
        if not torch.is_grad_enabled():
            return
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad and tensor.device.type not in self.trained_on:
                raise RuntimeError(
                    f"{self.name or 'the model'} ({self.kind}) runs hone's {self.operation}, whose gradient has no kernel for "
                    f"{tensor.device.type} (hone.registry.kernels({_gradients.of(self.operation)!r})), and torch would record one: run the "
                    "model under torch.no_grad(), or take torch's own back by undo() of what hone.torch.replace gave")


def _refused_dtype(*tensors: torch.Tensor | None) -> str | None:
    """Why hone does not take these; None: it does."""
    first: torch.Tensor | None = None
    for tensor in tensors:
        if tensor is None:
            continue
        if tensor.dtype not in DTYPES:
            return f"{str(tensor.dtype).removeprefix('torch.')}"
        if tensor.device.type not in ("cpu", "cuda"):
            return f"on {tensor.device.type}"
        if first is None:
            first = tensor
        elif tensor.dtype != first.dtype and not torch.is_autocast_enabled(tensor.device.type):
            return "dtypes that differ"
    return None


def _is_cast(tensor: torch.Tensor) -> bool:
    return torch.is_autocast_enabled(tensor.device.type)


class _Replaced:
    """In front of a module's class. ``_hone_site`` says what it was."""

    _hone_site: Site

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and what is pickled, is torch's own again."""
        state = {name: value for name, value in vars(self).items() if name != "_hone_site"}
        return object.__new__, (self._hone_site.before,), state

    def _run(self, reason: str | None, tensors: tuple[torch.Tensor, ...], weights: tuple[torch.Tensor | None, ...], *args: Any) -> Any:
        site = self._hone_site
        if reason is None:
            site.refuse_training((*tensors, *weights))
        if not torch.compiler.is_compiling():
            site.note(reason, tensors, self._hone, functools.partial(site.before.forward, self))
        return self._hone(*tensors) if reason is None else site.before.forward(self, *args)  # type: ignore[arg-type]

    def _hone(self, *tensors: torch.Tensor) -> Any:
        raise NotImplementedError


# Kinds of modules -----------------------------------------------------------------------------------------------------


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    rows = x.reshape(-1, x.shape[-1])
    is_one_call = bias is None or x.device.type == "cpu"  # on a GPU no kernel of hone's own adds a bias
    made = hone.torch.ops.matmul(rows, weight, bias if is_one_call else None, transpose_b=True)
    if not is_one_call:
        made = made + bias
    return made.reshape(*x.shape[:-1], weight.shape[0])  # type: ignore[no-any-return]


class _Linear(_Replaced):
    operation = "matmul"

    def forward(self, input: torch.Tensor) -> Any:
        reason = _refused_dtype(input, self.weight) or ("no elements" if input.numel() == 0 else None)  # type: ignore[attr-defined]
        return self._run(reason, (input,), (self.weight, self.bias), input)  # type: ignore[attr-defined]

    def _hone(self, *tensors: torch.Tensor) -> Any:
        return _product(tensors[0], self.weight, self.bias)  # type: ignore[attr-defined]


class _Norm(_Replaced):
    """Of one dim, the last. What settings say of eps, offset and the mean is what the module does."""

    operation = "layer_norm"

    def forward(self, x: torch.Tensor) -> Any:
        weight, bias = getattr(self, "weight", None), getattr(self, "bias", None)
        reason = _refused_dtype(x, weight, bias) or ("autocast" if _is_cast(x) else None) or ("no elements" if x.numel() == 0 else None)
        return self._run(reason, (x,), (weight, bias), x)

    def _hone(self, *tensors: torch.Tensor) -> Any:
        x, weight, said = tensors[0], getattr(self, "weight", None), self._hone_site.settings
        eps = torch.finfo(x.dtype).eps if said["eps"] is None else said["eps"]
        if self._hone_site.operation == "rms_norm":
            return hone.torch.ops.rms_norm(x, weight, eps=eps)
        return hone.torch.ops.layer_norm(x, weight, getattr(self, "bias", None), eps=eps, subtract_mean=said["subtract_mean"],
                                         weight_offset=said["offset"])


class _Softmax(_Replaced):
    operation = "softmax"

    def forward(self, input: torch.Tensor) -> Any:
        last = self.dim in (-1, input.dim() - 1)  # type: ignore[attr-defined]
        reason = _refused_dtype(input) or (None if last else "not along the last dim") or ("autocast" if _is_cast(input) else None)
        return self._run(reason or ("no elements" if input.numel() == 0 else None), (input,), (), input)

    def _hone(self, *tensors: torch.Tensor) -> Any:
        return hone.torch.ops.softmax(tensors[0])


class _GatedMlp(_Replaced):
    """down(silu(gate(x)) * up(x)), whose products are modules of their own."""

    operation = "silu_mul"

    def forward(self, x: torch.Tensor) -> Any:
        names = self._hone_site.settings["names"]
        gate, up = getattr(self, names[0])(x), getattr(self, names[1])(x)
        reason = _refused_dtype(gate, up) or ("no elements" if gate.numel() == 0 else None)
        if reason is None:
            self._hone_site.refuse_training((gate, up))
        if not torch.compiler.is_compiling():
            self._hone_site.note(reason, (gate, up), self._hone, _silu_mul)
        return getattr(self, names[2])(self._hone(gate, up) if reason is None else _silu_mul(gate, up))

    def _hone(self, *tensors: torch.Tensor) -> Any:
        return hone.torch.ops.silu_mul(*tensors)


def _silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


# Attention: whatever calls F.scaled_dot_product_attention -------------------------------------------------------------


def _why_not_attention(q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, gqa: bool) -> str | None:
    reason = _refused_dtype(q, k, v)
    if reason is not None:
        return reason
    if mask is not None:
        return "attn_mask: of a row that is masked whole hone's result is another than torch's"
    if dropout > 0.0:
        return "dropout"
    if q.dim() != 4 or k.dim() != 4 or v.dim() != 4:
        return f"queries of {q.dim()} dims, expected 4"
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or k.shape[1] != q.shape[1] and not gqa:
        return "shapes that torch broadcasts"
    if q.shape[3] != v.shape[3]:
        return "values of another dim than queries"
    return "no elements" if q.numel() == 0 or k.numel() == 0 else None


def _attend(site: Site, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
            scale: float | None = None, enable_gqa: bool = False) -> Any:
    def ours(q: Any, k: Any, v: Any) -> Any:
        return hone.torch.ops.scaled_dot_product_attention(q, k, v, causal=is_causal, softmax_scale=scale, axes="bhsd")

    def torchs(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    reason = _why_not_attention(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if reason is None:
        site.refuse_training((query, key, value))
    if not torch.compiler.is_compiling():
        site.note(reason, (query, key, value), ours, torchs)
    return ours(query, key, value) if reason is None else torchs(query, key, value)


class _Attending(TorchFunctionMode):
    def __init__(self, site: Site):
        super().__init__()
        self.site = site

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return _attend(self.site, *args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class _Attention(_Replaced):
    operation = "scaled_dot_product_attention"

    def forward(self, *args: Any, **keywords: Any) -> Any:
        with _Attending(self._hone_site):
            return self._hone_site.before.forward(self, *args, **keywords)  # type: ignore[arg-type]


def _reads(function: Any, word: str, depth: int = 3) -> bool:
    """Whether a function of Python, or one that it calls, reads a name."""
    code = getattr(function, "__code__", None)
    if code is None or depth == 0:
        return False
    if word in code.co_names:
        return True
    called = (function.__globals__.get(name) for name in code.co_names)
    return any(isinstance(one, types.FunctionType) and _reads(one, word, depth - 1) for one in called)


def _attends(kind: type[nn.Module]) -> bool:
    if kind.__module__.startswith("torch.nn."):
        return False
    methods = [one for base in kind.__mro__[:-1] if base is not nn.Module for one in vars(base).values() if isinstance(one, types.FunctionType)]
    return kind.__name__.endswith("Attention") or any(_reads(one, "scaled_dot_product_attention") for one in methods)


# Which modules are what -----------------------------------------------------------------------------------------------


Found = tuple[type[_Replaced], str, dict[str, Any]]


def _has_own_forward(module: nn.Module, base: type[nn.Module]) -> bool:
    return isinstance(module, base) and (type(module).forward is not base.forward or "forward" in vars(module))


def _agrees(module: nn.Module, dim: int, expected: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor) -> bool:
    """Whether a module does what its name says, on numbers that are made up."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(2, 3, dim, generator=generator).to(device=like.device, dtype=like.dtype)
    try:
        with torch.no_grad():
            made, wanted = module.forward(x), expected(x)
    except Exception:  # a module of the program's own may ask for anything
        return False
    if not isinstance(made, torch.Tensor) or made.shape != wanted.shape or made.dtype != x.dtype:
        return False
    return torch.allclose(made.double(), wanted.double(), rtol=_PROBED[like.dtype], atol=_PROBED[like.dtype])


def _own_rms_norm(module: nn.Module) -> Found | str | None:
    """RMSNorm as models write it themselves."""
    if not re.search(r"RMS_?Norm$", type(module).__name__, re.I) or [*module._parameters] != ["weight"] or [*module.children()]:
        return None
    weight = module.weight
    eps = next((value for name in ("variance_epsilon", "eps", "epsilon", "norm_eps") if isinstance(value := getattr(module, name, None), float)), None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1 or weight.dtype not in DTYPES or weight.is_meta or eps is None:
        return "its weight and eps are not found"
    for offset in (0.0, 1.0):
        def expected(x: torch.Tensor) -> torch.Tensor:
            wide = x.double()
            return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps) * (weight.double() + offset)

        if _agrees(module, weight.shape[0], expected, weight):
            return _Norm, "layer_norm" if offset else "rms_norm", {"eps": eps, "subtract_mean": False, "offset": offset}
    return "it does something else than its name says"


def _gated_mlp(module: nn.Module) -> Found | str | None:
    for names in (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")):
        parts = [getattr(module, name, None) for name in names]
        if not all(isinstance(part, nn.Linear) for part in parts):
            continue
        gate, up, down = parts
        if gate.weight.dtype not in DTYPES or gate.weight.is_meta:  # type: ignore[union-attr]
            return "its dtype is not one of hone's"

        def expected(x: torch.Tensor) -> torch.Tensor:
            return down(_silu_mul(gate(x), up(x)))  # type: ignore[misc, no-any-return]

        if _agrees(module, gate.in_features, expected, gate.weight):  # type: ignore[union-attr, arg-type]
            return _GatedMlp, "silu_mul", {"names": names}
        return "it does something else than silu(gate) * up"
    return None


def _norm(module: nn.Module) -> Found | str | None:
    if not isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
        return None
    if len(module.normalized_shape) != 1:
        return "it is normalized over several dims"
    if isinstance(module, nn.LayerNorm):
        return _Norm, "layer_norm", {"eps": module.eps, "subtract_mean": True, "offset": 0.0}
    return _Norm, "layer_norm" if module.weight is None else "rms_norm", {"eps": module.eps, "subtract_mean": False, "offset": 0.0}


_NONE_OF_HONES = (nn.GELU, nn.SiLU, nn.ReLU, nn.Sigmoid, nn.Tanh, nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.Conv1d, nn.Conv2d, nn.Embedding)


def _find(module: nn.Module) -> Found | str | None:
    """What a module becomes, or why it stays; None: nobody would ask."""
    for base in (nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Softmax):
        if isinstance(module, base):
            if _has_own_forward(module, base):
                return f"its forward is not that of {base.__name__}"
            if any(type(value) not in (torch.Tensor, nn.Parameter) for value in module._parameters.values() if value is not None):
                return "its weights are of a class of their own"
            if base is nn.Linear:
                return _Linear, "matmul", {}
            return (_Softmax, "softmax", {}) if base is nn.Softmax else _norm(module)
    if isinstance(module, nn.MultiheadAttention):
        return "torch computes it in one function: nn.functional.multi_head_attention_forward"
    if isinstance(module, nn.TransformerEncoderLayer):
        return "in eval mode torch runs the layer as one function, past its modules: torch.backends.mha.set_fastpath_enabled(False) ends that"
    if isinstance(module, _NONE_OF_HONES):
        return f"hone has no operation for {type(module).__name__}"
    own = _own_rms_norm(module) or _gated_mlp(module)
    if own is None and _attends(type(module)):
        return _Attention, "scaled_dot_product_attention", {}
    return own


@functools.cache
def _derived(front: type[_Replaced], kind: type[nn.Module]) -> type[nn.Module]:
    return type(kind.__name__, (front, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__})


# The report -----------------------------------------------------------------------------------------------------------


class Replaced:
    """What :func:`hone.torch.replace` did. Printed it is a table; entered with ``with``, it is undone at the end.

    Attributes:
        sites: the modules that run hone's operations.
        left: names of modules of known kinds that stayed, with the reason.
    """

    def __init__(self, sites: list[Site], left: dict[str, str]):
        self.sites, self.left = sites, left
        self._is_undone = False

    def undo(self) -> None:
        """Every module is torch's own again. What was counted stays."""
        for site in self.sites if not self._is_undone else ():
            vars(site.module).pop("_hone_site", None)
            site.module.__class__ = site.before
        self._is_undone = True

    def __enter__(self) -> Replaced:
        return self

    def __exit__(self, *error: Any) -> None:
        self.undo()

    def measure(self, repeats: int = 11) -> Replaced:
        """Times each distinct call that was noted, on numbers that are made up, torch's and hone's in turn.

        Args:
            repeats: how often each is timed; the medians are kept.
        """
        if self._is_undone:
            raise InvalidArgumentError("what was undone cannot be measured: measure before undo()")
        if type(repeats) is not int or repeats < 1:
            raise InvalidArgumentError(f"repeats is a number from 1, and {repeats!r} came")
        for site in self.sites:
            if site.calls:
                site.is_measured = True
                try:
                    site.torch_seconds, site.hone_seconds = _times(site, repeats)
                finally:
                    site.is_measured = False
        return self

    def __repr__(self) -> str:
        return "\n".join([f"{len(self.sites)} modules run hone's operations, {len(self.left)} were left", *_rows(self)])


def _clock(run: Callable[[], Any], device: torch.device) -> float:
    begun = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun


def _times(site: Site, repeats: int) -> tuple[float, float]:
    """Of all distinct calls, once each."""
    whole = [0.0, 0.0]
    for key, (ours, torchs) in site.calls.items():
        made = [torch.randn(shape, device=device).to(dtype) for shape, dtype, device in key]
        with torch.no_grad():
            pairs = [[_clock(lambda: one(*made), made[0].device) for one in (torchs, ours)] for _ in range(repeats + 1)][1:]
        for i in range(2):
            whole[i] += statistics.median(pair[i] for pair in pairs)
    return whole[0], whole[1]


def _cells(site: Site) -> tuple[str, ...]:
    gained = "" if site.torch_seconds is None or not site.hone_seconds else (
        f"{site.torch_seconds * 1e6:.1f} us -> {site.hone_seconds * 1e6:.1f} us ({site.torch_seconds / site.hone_seconds:.2f} x)")
    passed = "; ".join(f"{count}: {reason}" for reason, count in site.passed.items())
    return site.name or "(the model)", site.kind, site.operation, str(site.hits), gained or "-", passed or "-"


def _rows(replaced: Replaced) -> Iterator[str]:
    table = [("module", "class", "operation", "hit", "gained", "left to torch"), *map(_cells, replaced.sites)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    for name, reason in replaced.left.items():
        yield f"  {name or '(the model)'} stays torch's: {reason}"


def _refuse(model: Any) -> None:
    if isinstance(model, (torch.jit.ScriptModule, torch.fx.GraphModule)):
        raise InvalidArgumentError(f"a {type(model).__name__} has no modules to replace: replace those of the model that it was made of, before")
    if not isinstance(model, nn.Module):
        raise InvalidArgumentError(f"hone.torch.replace takes a torch.nn.Module, and a {type(model).__name__} came")
    if any(isinstance(module, _Replaced) for module in model.modules()):
        raise InvalidArgumentError("the model has modules that run hone's operations already: undo() of what replace gave comes first")


def replace(model: nn.Module) -> Replaced:
    """See :func:`hone.torch.replace`."""
    _refuse(model)
    model = getattr(model, "_orig_mod", model)  # of torch.compile
    found: list[tuple[str, nn.Module, Found]] = []
    left: dict[str, str] = {}
    for name, module in model.named_modules():
        what = _find(module)
        if isinstance(what, str):
            left[name] = what
        elif what is not None and not isinstance(_parent(model, name), nn.MultiheadAttention):
            found.append((name, module, what))
    for name, _, (front, _, _) in found:
        if front is _GatedMlp:  # whose activation is in silu_mul
            left = {one: reason for one, reason in left.items() if one.rpartition(".")[0] != name}
    sites = []
    for name, module, (front, operation, settings) in found:
        site = Site(name, type(module).__name__, operation, module, type(module), settings=settings,
                    trained_on=_trained_on(operation))
        vars(module)["_hone_site"] = site
        module.__class__ = _derived(front, type(module))
        sites.append(site)
    return Replaced(sites, left)


def _trained_on(operation: str) -> frozenset[str]:
    """The devices of torch that an operation's gradient has a kernel for."""
    backends = {kernel["backend"] for kernel in runtimes.default().kernels(_gradients.of(operation))}
    return frozenset(device for device, backend in (("cpu", "cpu"), ("cuda", "gpu")) if backends & {backend, "any"})


def _parent(model: nn.Module, name: str) -> nn.Module | None:
    return model.get_submodule(name.rpartition(".")[0]) if name else None
