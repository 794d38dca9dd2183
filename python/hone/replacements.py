"""hone's operations in a model of PyTorch that stays as it is: ``hone.torch.replace(model)``.

A module keeps its object, its parameters, hooks and ``state_dict``: its class becomes one that is derived from its own, and whose
``forward`` runs hone's operation, or torch's where hone's would not give the same.
"""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import functools
import html
import inspect
import re
import statistics
import textwrap
import threading
import time
import types
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.compiler import is_dynamo_compiling
from torch.overrides import TorchFunctionMode

import hone.torch
from hone import _gradients, _hone, _rewriting, runtimes
from hone.errors import InvalidArgumentError

DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_WIDER = (*DTYPES, torch.float64)
_MOST_DIMS = 8  # of an array of hone's
_PLAIN = (torch.Tensor, nn.Parameter)
_REFUSED = "arguments that torch refuses, or further ones"
# What a probe of a module of the program's own may differ by from what its name says.
_PROBED = {torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


# What a module was asked ----------------------------------------------------------------------------------------------


def _not_run(module: Any, *inputs: Any) -> None:
    return None


def _without_memory(made: torch.Tensor) -> torch.Tensor:
    like = torch.empty_like(made, memory_format=torch.contiguous_format)
    like.untyped_storage().resize_(0)
    return like


@dataclasses.dataclass
class Site:
    """One module that was replaced.

    Attributes:
        name: in the model.
        kind: its class.
        operation: hone's.
        hits: calls that ran hone's operation, outside of compiled graphs; noted: those of them that went through Python.
        masked: those of them that ran ``dot_product_attention``, which takes a mask.
        passed: calls that ran torch's, by reason.
        torch_seconds, hone_seconds: of all its distinct calls together, after :meth:`Replaced.measure`.
    """

    name: str
    kind: str
    operation: str
    module: nn.Module = dataclasses.field(repr=False)
    before: type[nn.Module] = dataclasses.field(repr=False)
    front: type[_Replaced] = dataclasses.field(repr=False)
    noted: int = 0
    masked: int = 0
    passed: Counter[str] = dataclasses.field(default_factory=Counter)
    torch_seconds: float | None = None
    hone_seconds: float | None = None
    settings: dict[str, Any] = dataclasses.field(default_factory=dict, repr=False)
    calls: dict[Any, tuple[Callable[..., Any], Callable[..., Any]]] = dataclasses.field(default_factory=dict, repr=False)
    trained_on: frozenset[str] = frozenset()
    masked_on: frozenset[str] = frozenset()
    is_measured: bool = False
    parts: dict[str, Site] = dataclasses.field(default_factory=dict, repr=False)
    told: set[tuple[str, bool]] = dataclasses.field(default_factory=set, repr=False)  # methods, in training or not, whose sources tell all their calls
    not_measured: Counter[str] = dataclasses.field(default_factory=Counter)
    layer: _hone.TorchLayer | None = dataclasses.field(default=None, repr=False)  # what runs calls that were noted
    run: Callable[..., Any] = dataclasses.field(default=_not_run, repr=False)  # its

    @property
    def hits(self) -> int:
        return self.noted + (0 if self.layer is None else self.layer.hits)

    def learn(self, made: torch.Tensor, module: nn.Module, *inputs: torch.Tensor) -> None:
        if self.layer is not None:
            self.layer.learn(functools.partial(_without_memory, made), module, *inputs)

    def part(self, function: str) -> Site:
        """Of a function of torch that this module calls itself."""
        if function == _ATTENTION and self.operation:
            return self
        if function not in self.parts:
            self.parts.setdefault(function, _site(self.name, function, _OPERATIONS[function], self.module, self.before, self.front, {}))
        return self.parts[function]

    def note(self, reason: str | None, tensors: tuple[torch.Tensor, ...], ours: Callable[..., Any], torchs: Callable[..., Any],
             is_masked: bool = False) -> None:
        """A call outside of a compiled graph."""
        if self.is_measured:
            return
        if reason is not None:
            self.passed[reason] += 1
            return
        self.noted += 1
        self.masked += is_masked
        if len(self.calls) < 64:
            cast = _autocast_dtype(tensors[0].device.type)
            call = cast, tuple([(tensor.shape, tensor.dtype, tensor.device) for tensor in tensors])
            with contextlib.suppress(TypeError):  # sizes that are symbols (make_fx) have no hash, and nothing that could be timed
                self.calls.setdefault(call, (ours, torchs))

    def why_not_trained(self, tensors: tuple[torch.Tensor | None, ...]) -> str | None:
        """Why torch answers where it would record a gradient; None: hone has it."""
        if not torch.is_grad_enabled():
            return None
        for tensor in tensors:
            if tensor is not None and tensor.requires_grad and tensor.device.type not in self.trained_on:
                return f"a gradient is recorded, which has no kernel on {tensor.device.type}"
        return None


def _is_own_class(tensor: torch.Tensor) -> bool:
    """Whether it says itself what a function of torch makes of it, as masks of torch.nn.attention.bias do, or has other tensors in it and
    knows torch's own operations alone, as DTensor and quantised weights do."""
    if type(tensor) in _PLAIN:
        return False
    if hasattr(type(tensor), "__tensor_flatten__"):
        return True
    says = type(tensor).__torch_function__
    return getattr(says, "__func__", says) not in (torch.Tensor.__torch_function__.__func__, torch._C._disabled_torch_function_impl)


def _refused_dtype(*tensors: torch.Tensor | None, dtypes: tuple[torch.dtype, ...] = DTYPES) -> str | None:
    """Why hone does not take these; None: it does."""
    first: torch.Tensor | None = None
    if torch.autograd.forward_ad._current_level >= 0:
        return "forward mode"
    for tensor in tensors:
        if tensor is None:
            continue
        if type(tensor) not in _PLAIN and _is_own_class(tensor):
            return f"a {type(tensor).__name__}"
        if tensor.is_nested:
            return "nested"
        if tensor.dtype not in dtypes:
            return f"{str(tensor.dtype).removeprefix('torch.')}"
        if not (tensor.is_cpu or tensor.is_cuda):
            return f"on {tensor.device.type}"
        if first is None:
            first = tensor
            if tensor.dim() > _MOST_DIMS:
                return f"more than {_MOST_DIMS} dims"
        elif tensor.dtype != first.dtype and not torch.is_autocast_enabled(tensor.device.type):
            return "dtypes that differ"
    return None


def _refused_row(x: torch.Tensor, dim: int) -> str | None:
    """Why a module of rows of so many elements leaves a tensor to torch, which says what is wrong with it."""
    if x.dim() == 0 or x.shape[-1] != dim:
        return _REFUSED
    return "no elements" if x.numel() == 0 else None


def _is_cast(tensor: torch.Tensor) -> bool:
    return torch.is_autocast_enabled(tensor.device.type)


def _autocast_dtype(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


_ABSENT = object()


class _Replaced:
    """In front of a module's class. ``_hone_site`` says what it was."""

    _hone_site: Site

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A copy, and what is pickled, is torch's own again."""
        state = {name: value for name, value in vars(self).items() if name != "_hone_site"}
        return object.__new__, (self._hone_site.before,), state

    def __prepare_scriptable__(self) -> Any:
        raise InvalidArgumentError(f"{self._hone_site.name or 'the model'} ({self._hone_site.kind}) runs hone's operations, which torch.jit.script cannot see: script a copy, "
                                   "torch.jit.script(copy.deepcopy(model)), which is torch's own, or call undo() of what hone.torch.replace gave; torch.jit.trace takes the model as it is")

    def _run(self, reason: str | None, tensors: tuple[torch.Tensor, ...], weights: tuple[torch.Tensor | None, ...], *args: Any) -> Any:
        site = self._hone_site
        reason = reason or site.why_not_trained((*tensors, *weights))
        torchs = functools.partial(site.before.forward, self)  # type: ignore[arg-type]
        if torch.compiler.is_compiling():
            return self._with(weights, *tensors) if reason is None else torchs(*args)
        site.note(reason, tensors, self._hone, torchs)
        if reason is not None:
            return _by_torch(torchs, args, {})
        made = self._with(weights, *tensors)
        site.learn(made, self, *tensors)  # type: ignore[arg-type]
        return made

    def _run_torchs(self, reason: str, *args: Any, **keywords: Any) -> Any:
        if not torch.compiler.is_compiling():
            self._hone_site.note(reason, (), self._hone, self._hone)
        return self._hone_site.before.forward(self, *args, **keywords)  # type: ignore[arg-type]

    def _is_as_it_was(self) -> bool:
        """Whether what a probe saw of the module's attributes is so still."""
        for name, value in self._hone_site.settings["attributes"]:
            if getattr(self, name, _ABSENT) != value:
                return False
        return True

    def _hone(self, *tensors: torch.Tensor) -> Any:
        """Of the call's tensors, with the weights that the module has now."""
        made = self._hone_site.run(self, *tensors)
        return self._with(self._weights(), *tensors) if made is None else made

    @classmethod
    def _layer(cls, module: nn.Module, operation: str, settings: dict[str, Any]) -> _hone.TorchLayer | None:
        """What runs calls without Python; None: they all go through it."""
        return None

    def _weights(self) -> tuple[torch.Tensor | None, ...]:
        return ()

    def _with(self, weights: tuple[torch.Tensor | None, ...], *tensors: torch.Tensor) -> Any:
        raise NotImplementedError


def _made_layer(module: nn.Module, operation: str, weights: tuple[tuple[str, str], ...], scalars: dict[str, bool | float], *, eps: str | None = None,
                attributes: tuple[tuple[str, Any], ...] = (), takes_rows: bool = False) -> _hone.TorchLayer | None:
    """For a module whose weights are those of its class' own attributes, if any."""
    if any(hasattr(type(module), name) for name, _ in weights):
        return None
    return _hone.torch_layer(operation, weights, scalars, eps, torch.finfo(torch.float32).eps, attributes, takes_rows)


# Kinds of modules -----------------------------------------------------------------------------------------------------


# Where a product adds its bias itself, by the type of the device. On a GPU cuBLASLt does, and no kernel of hone's own.
_adding = {"cpu": True}


def _ask_who_adds() -> None:
    """What is not known of GPUs, before a model runs there."""
    if "cuda" in _adding or not torch.cuda.is_available():
        return
    x = torch.empty(16, 16, device="cuda")
    try:
        with hone.context(policy="heuristic"):
            hone.decide("matmul", x, x, bias=x[0])
        _adding["cuda"] = True
    except hone.HoneError:
        _adding["cuda"] = False


def _adds(x: torch.Tensor) -> bool:
    return _adding.get(x.device.type, False)


def _product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    rows = x if x.dim() == 2 else x.flatten(0, -2) if x.dim() > 1 else x.unsqueeze(0)
    is_one_call = bias is None or _adds(x)
    added = bias if is_one_call else None
    if weight.stride(1) == 1:
        made = hone.torch.called("matmul")(hone.torch.dense(rows), weight, added, None, transpose_b=True)
    else:
        made = hone.torch.product(rows, weight.transpose(0, 1), added)
    if not is_one_call:
        made = made + bias
    return made if x.dim() == 2 else made.reshape(*x.shape[:-1], weight.shape[0])  # type: ignore[no-any-return]


class _Linear(_Replaced):
    operation = "matmul"

    def forward(self, input: torch.Tensor) -> Any:
        made = None if is_dynamo_compiling() else self._hone_site.run(self, input)
        return self._forward(input) if made is None else made

    def _forward(self, input: torch.Tensor) -> Any:
        if not isinstance(input, torch.Tensor):
            return self._run_torchs("no tensor", input)
        weights = self._weights()
        reason = _refused_dtype(input, weights[0], dtypes=_dtypes_of_products(input)) or _refused_row(input, weights[0].shape[1])  # type: ignore[union-attr]
        return self._run(reason, (input,), weights, input)

    @classmethod
    def _layer(cls, module: nn.Module, operation: str, settings: dict[str, Any]) -> _hone.TorchLayer | None:
        return _made_layer(module, operation, (("weight", "b"), ("bias", "bias")), {"transpose_b": True}, takes_rows=True)

    def _weights(self) -> tuple[torch.Tensor | None, ...]:
        return self.weight, self.bias  # type: ignore[attr-defined]

    def _with(self, weights: tuple[torch.Tensor | None, ...], *tensors: torch.Tensor) -> Any:
        weight, bias = weights
        return _product(tensors[0], weight, bias)  # type: ignore[arg-type]


class _Norm(_Replaced):
    """Of one dim, the last. What settings say of the operation, the offset and the mean is what the module does; eps is its own."""

    operation = "layer_norm"

    def forward(self, *args: Any, **keywords: Any) -> Any:
        made = None if is_dynamo_compiling() or len(args) != 1 or keywords else self._hone_site.run(self, args[0])
        return self._forward(*args, **keywords) if made is None else made

    def _forward(self, *args: Any, **keywords: Any) -> Any:
        if len(args) != 1 or keywords or not isinstance(args[0], torch.Tensor):
            return self._run_torchs("other arguments than one tensor", *args, **keywords)
        if not self._is_as_it_was():
            return self._run_torchs("attributes that were changed", *args)
        x, weights = args[0], self._weights()
        reason = _refused_dtype(x, *weights) or ("autocast" if _is_cast(x) else None)
        if reason is None:
            dim = self.normalized_shape[0] if weights[0] is None else weights[0].shape[0]  # type: ignore[attr-defined]
            reason = _refused_row(x, dim)
        return self._run(reason, (x,), weights, x)

    @classmethod
    def _layer(cls, module: nn.Module, operation: str, settings: dict[str, Any]) -> _hone.TorchLayer | None:
        scalars = {} if operation == "rms_norm" else {"subtract_mean": settings["subtract_mean"], "weight_offset": settings["offset"]}
        weights = (("weight", "weight"), ("bias", "bias"))[:1 if operation == "rms_norm" else 2]
        return _made_layer(module, operation, weights, scalars, eps=settings["eps"], attributes=settings["attributes"])

    def _weights(self) -> tuple[torch.Tensor | None, ...]:
        return getattr(self, "weight", None), getattr(self, "bias", None)

    def _with(self, weights: tuple[torch.Tensor | None, ...], *tensors: torch.Tensor) -> Any:
        x, (weight, bias), said = hone.torch.dense(tensors[0]), weights, self._hone_site.settings
        eps = getattr(self, said["eps"])
        if eps is None:
            eps = torch.finfo(torch.float32).eps  # torch's, whatever the dtype: it computes in float32
        if self._hone_site.operation == "rms_norm":
            return hone.torch.called("rms_norm")(x, weight, eps=eps)
        return hone.torch.called("layer_norm")(x, weight, bias, eps=eps, subtract_mean=said["subtract_mean"], weight_offset=said["offset"])


class _Softmax(_Replaced):
    operation = "softmax"

    def forward(self, input: torch.Tensor) -> Any:
        made = None if is_dynamo_compiling() else self._hone_site.run(self, input)
        return self._forward(input) if made is None else made

    @classmethod
    def _layer(cls, module: nn.Module, operation: str, settings: dict[str, Any]) -> _hone.TorchLayer | None:
        return _made_layer(module, operation, (), {}, attributes=(("dim", module.dim),))

    def _forward(self, input: torch.Tensor) -> Any:
        if not isinstance(input, torch.Tensor):
            return self._run_torchs("no tensor", input)
        last = input.dim() > 0 and self.dim in (-1, input.dim() - 1)  # type: ignore[attr-defined]
        reason = _refused_dtype(input) or (None if last else "not along the last dim") or ("autocast" if _is_cast(input) else None)
        return self._run(reason or ("no elements" if input.numel() == 0 else None), (input,), (), input)

    def _with(self, weights: tuple[torch.Tensor | None, ...], *tensors: torch.Tensor) -> Any:
        return hone.torch.called("softmax")(hone.torch.dense(tensors[0]))


class _GatedMlp(_Replaced):
    """down(silu(gate(x)) * up(x)), whose products are modules of their own."""

    operation = "silu_mul"

    def forward(self, *args: Any, **keywords: Any) -> Any:
        if len(args) != 1 or keywords or not isinstance(args[0], torch.Tensor):
            return self._run_torchs("other arguments than one tensor", *args, **keywords)
        site = self._hone_site
        names, others = site.settings["names"], site.settings["others"]
        if not self._is_as_it_was() or any(getattr(self, name)._forward_hooks or getattr(self, name)._forward_pre_hooks for name in others):
            return self._run_torchs("attributes or hooks that were changed", *args)
        gate, up = self._part(names[0])(args[0]), self._part(names[1])(args[0])
        made = None if is_dynamo_compiling() else site.run(self, gate, up)
        return self._part(names[2])(self._made(gate, up) if made is None else made)

    def _part(self, name: str) -> Any:
        part = None if is_dynamo_compiling() else self._modules.get(name)  # type: ignore[attr-defined]
        return getattr(self, name) if part is None else part

    def _made(self, gate: Any, up: Any) -> Any:
        site = self._hone_site
        reason = _refused_dtype(gate, up) or ("no elements" if gate.numel() == 0 else site.why_not_trained((gate, up)))
        if torch.compiler.is_compiling():
            return self._with((), gate, up) if reason is None else _silu_mul(gate, up)
        site.note(reason, (gate, up), self._hone, _silu_mul)
        if reason is not None:
            return _silu_mul(gate, up)
        made = self._with((), gate, up)
        site.learn(made, self, gate, up)
        return made

    @classmethod
    def _layer(cls, module: nn.Module, operation: str, settings: dict[str, Any]) -> _hone.TorchLayer | None:
        return _made_layer(module, operation, (), {})

    def _with(self, weights: tuple[torch.Tensor | None, ...], *tensors: torch.Tensor) -> Any:
        return hone.torch.called("silu_mul")(*map(hone.torch.dense, tensors))


def _silu_mul(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return F.silu(gate) * up


# Attention: whatever calls F.scaled_dot_product_attention, and torch's own modules ------------------------------------

MASKED = "dot_product_attention"  # hone's with a mask


def _why_not_attention(site: Site, q: Any, k: Any, v: Any, mask: Any, dropout: float, causal: bool, gqa: bool) -> str | None:
    reason = _refused_dtype(q, k, v)
    if reason is not None:
        return reason
    if dropout > 0.0:
        return "dropout"
    if q.dim() != 4 or k.dim() != 4 or v.dim() != 4:
        return f"queries of {q.dim()} dims, expected 4"
    if q.shape[0] != k.shape[0] or k.shape[:3] != v.shape[:3] or k.shape[1] != q.shape[1] and not gqa:
        return "shapes that torch broadcasts"
    if q.shape[3] != k.shape[3] or gqa and q.shape[1] % k.shape[1] != 0:
        return _REFUSED
    if q.shape[3] != v.shape[3]:
        return "values of another dim than queries"
    if q.numel() == 0 or k.numel() == 0:
        return "no elements"
    if mask is not None:
        return _why_not_mask(site, q, k, v, mask, causal)
    return _why_not_heads(q, q.shape[3])


def _why_not_heads(q: Any, dim: int) -> str | None:
    if q.device.type == "cuda" and (q.dtype == torch.float32 and not _is_cast(q) or dim > 128 or dim % 16 != 0):
        return "on cuda in float32, or with heads of over 128 elements or of no multiple of 16"
    return None


def _why_not_mask(site: Site, q: Any, k: Any, v: Any, mask: Any, causal: bool) -> str | None:
    if causal:
        return "attn_mask beside is_causal"
    if _is_own_class(mask):
        return f"attn_mask that is a {type(mask).__name__}"
    if mask.dtype not in (torch.bool, torch.float32, q.dtype) and not (_is_cast(q) and mask.dtype in DTYPES):
        return f"attn_mask of {str(mask.dtype).removeprefix('torch.')}"
    if mask.device != q.device:
        return "attn_mask on another device"
    if q.device.type not in site.masked_on:
        return f"attn_mask on {q.device.type}: {MASKED} has no kernel there"
    whole = (q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    if not 2 <= mask.dim() <= 4 or any(size not in (1, wanted) for size, wanted in zip(reversed(mask.shape), reversed(whole))):
        return "attn_mask of a shape that torch refuses or broadcasts queries to"
    if torch.is_grad_enabled() and any(one.requires_grad for one in (q, k, v, mask)):
        return f"attn_mask where a gradient is recorded: {MASKED} has none"
    return None


def _packed(x: torch.Tensor) -> torch.Tensor:
    """Kernels for GPUs take [batch, position, head, element] without gaps."""
    return x.transpose(1, 2).contiguous().transpose(1, 2) if x.device.type == "cuda" else x


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float | None) -> torch.Tensor:
    """Of [batch, head, position, element], as torch has it."""
    if mask is None:
        q, k, v = (_packed(hone.torch.dense(one)) for one in (q, k, v))
        return hone.torch.called("scaled_dot_product_attention")(q, k, v, causal=causal, softmax_scale=scale, axes="bhsd")  # type: ignore[no-any-return]
    mask = mask[(None,) * (4 - mask.dim())]
    is_bool = mask.dtype is torch.bool
    if _is_cast(q) and not is_bool:
        mask = mask.to(torch.get_autocast_dtype(q.device.type))
    by = {"mask": mask} if is_bool else {"bias": mask if mask.stride(-1) == 1 else mask.contiguous()}
    q, k, v = (hone.torch.dense(one).transpose(1, 2) for one in (q, k, v))
    made = hone.torch.called("dot_product_attention")(q, k, v, softmax_scale=scale, **by)
    # A query that sees no key: hone weighs all keys the same, torch none.
    blind = (mask.logical_not() if is_bool else mask == float("-inf")).all(-1, keepdim=True)
    return made.transpose(1, 2).masked_fill(blind, 0.0)  # type: ignore[no-any-return]


def _attend(site: Site, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False,
            scale: float | None = None, enable_gqa: bool = False) -> Any:
    def ours(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return _attention(q, k, v, mask, is_causal, scale)

    def torchs(q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)

    given = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
    reason = _why_not_attention(site, query, key, value, attn_mask, dropout_p, is_causal, enable_gqa) or site.why_not_trained(given)
    if not torch.compiler.is_compiling():
        site.note(reason, given, ours, torchs, is_masked=attn_mask is not None)
    return ours(*given) if reason is None else _by_torch(torchs, given, {})


class _Calling(_Replaced):
    """Whose methods call functions of torch themselves: hone's answer in their place while these methods run (:func:`_calling`)."""

    operation = ""


class _MultiheadAttention(_Replaced):
    """Its three projections, attention, and the one behind it, where no weights are asked for."""

    operation = "scaled_dot_product_attention"

    def forward(self, query: Any, key: Any, value: Any, key_padding_mask: Any = None, need_weights: bool = True, attn_mask: Any = None,
                average_attn_weights: bool = True, is_causal: bool = False) -> Any:
        site, is_self = self._hone_site, query is key and key is value
        # The hint says that attn_mask is causal, and torch takes its word as well.
        causal = is_causal and attn_mask is not None and key_padding_mask is None
        reason = self._why_not(query, key, value, key_padding_mask, need_weights, attn_mask, is_causal)
        arrays = (query, *((None, None) if is_self else (key, value)), key_padding_mask, attn_mask)
        places = [i for i, one in enumerate(arrays) if one is not None]

        def named(given: Any) -> Any:
            """Query, key, value and masks of those that are there."""
            one = dict(zip(places, given))
            return one[0], one.get(1, one[0]), one.get(2, one[0]), one.get(3), one.get(4)

        def ours(*given: Any) -> Any:
            query, key, value, padding, mask = named(given)
            return self._attended(query, key, value, padding, None if causal else mask, causal)

        def torchs(*given: Any) -> Any:
            query, key, value, padding, mask = named(given)
            return site.before.forward(self, query, key, value, padding, need_weights, mask, average_attn_weights, is_causal)  # type: ignore[arg-type]

        given = tuple(arrays[i] for i in places)
        reason = reason or site.why_not_trained((*given, *self.parameters()))  # type: ignore[attr-defined]
        if not torch.compiler.is_compiling():
            site.note(reason, given, ours, torchs, is_masked=key_padding_mask is not None or attn_mask is not None and not causal)
        return (ours(*given), None) if reason is None else torchs(*given)

    def _why_not(self: Any, query: Any, key: Any, value: Any, padding: Any, need_weights: bool, mask: Any, is_causal: bool) -> str | None:
        if need_weights:
            return "need_weights"
        if query.dim() != 3 or key.dim() != 3 or value.dim() != 3:
            return f"queries of {query.dim()} dims, expected 3"
        reason = _refused_dtype(query, key, value, self.out_proj.weight) or ("autocast" if _is_cast(query) else None)
        if reason is not None:
            return reason
        if self.bias_k is not None or self.add_zero_attn:
            return "add_bias_kv or add_zero_attn"
        if self.training and self.dropout > 0.0:
            return "dropout"
        if query.numel() == 0 or key.numel() == 0:
            return "no elements"
        batch, length = (0, 1) if self.batch_first else (1, 0)
        sizes = query.shape[batch], query.shape[length], key.shape[length]
        if key.shape[:2] != value.shape[:2] or key.shape[batch] != sizes[0] or (query.shape[2], key.shape[2], value.shape[2]) != (
                self.embed_dim, self.kdim, self.vdim) or is_causal and mask is None:
            return "arguments that torch refuses"
        shapes = ((sizes[0], sizes[2]),), ((sizes[1], sizes[2]), (sizes[0] * self.num_heads, sizes[1], sizes[2]))
        for one, allowed in zip((padding, mask), shapes):
            if one is None:
                continue
            if _is_own_class(one) or one.dtype is not torch.bool and one.dtype not in DTYPES or tuple(one.shape) not in allowed or one.device != query.device:
                return "masks that torch refuses"
            if query.device.type not in self._hone_site.masked_on:
                return f"masks on {query.device.type}: {MASKED} has no kernel there"
            if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value, one, *self.parameters())):
                return f"masks where a gradient is recorded: {MASKED} has none"
        return _why_not_heads(query, self.head_dim)

    def _attended(self: Any, query: Any, key: Any, value: Any, padding: Any, mask: Any, causal: bool) -> torch.Tensor:
        def heads(x: torch.Tensor) -> torch.Tensor:
            x = x.unflatten(-1, (self.num_heads, self.head_dim))
            return x.transpose(1, 2) if self.batch_first else x.permute(1, 2, 0, 3)

        q, k, v = map(heads, self._projected(query, key, value))
        parts = [_additive(one, q.dtype) for one in (padding, mask) if one is not None]
        if padding is not None:
            parts[0] = parts[0][:, None, None, :]
        if mask is not None:
            parts[-1] = parts[-1].unflatten(0, (-1, self.num_heads)) if mask.dim() == 3 else parts[-1][None, None]
        made = _attention(q, k, v, sum(parts[1:], parts[0]) if parts else None, causal, None)
        made = (made.transpose(1, 2) if self.batch_first else made.permute(2, 0, 1, 3)).flatten(2)
        return _product(made, self.out_proj.weight, self.out_proj.bias)

    def _projected(self: Any, query: Any, key: Any, value: Any) -> Any:
        if query is key and key is value and self.in_proj_weight is not None:
            return _product(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        biases = (None,) * 3 if self.in_proj_bias is None else self.in_proj_bias.chunk(3)
        weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight) if self.in_proj_weight is None else self.in_proj_weight.chunk(3)
        return map(_product, (query, key, value), weights, biases)


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of nn.MultiheadAttention, whose True hides a key."""
    return torch.zeros_like(mask, dtype=dtype).masked_fill(mask, float("-inf")) if mask.dtype is torch.bool else mask


class _EncoderLayer(_Replaced):
    """torch runs such a layer as one function, past its modules, unless its activation is another: so it says, and stays as it is."""

    operation = ""
    activation_relu_or_gelu = property(lambda self: 0)


class _Encoder(_Replaced):
    """torch packs a batch that is padded into nested tensors for that function, which gives zeros where the padding is."""

    operation = ""
    use_nested_tensor = property(lambda self: False)

    def forward(self: Any, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None) -> Any:
        if is_causal is None and torch.compiler.is_compiling():
            is_causal = False  # torch would look at the mask's numbers
        if not self._packs(src, mask, src_key_padding_mask):
            return self._hone_site.before.forward(self, src, mask, src_key_padding_mask, is_causal)
        for layer in self.layers:
            src = layer(src, src_key_padding_mask=src_key_padding_mask)
        padded = src_key_padding_mask if src_key_padding_mask.dtype is torch.bool else src_key_padding_mask == float("-inf")
        src = src.masked_fill(padded.unsqueeze(-1), 0.0)
        return src if self.norm is None else self.norm(src)

    def _packs(self: Any, src: Any, mask: Any, padding: Any) -> bool:
        if not self._hone_site.settings["packs"] or padding is None or mask is not None or src.is_nested or src.dim() != 3:
            return False
        if self.layers[0].training or torch.is_autocast_enabled() or not torch.backends.mha.get_fastpath_enabled():
            return False
        if torch.is_grad_enabled() and any(one.requires_grad for one in (src, *self.layers[0].parameters())):
            return False
        if not getattr(self, "mask_check", True):
            return True
        kept = padding.logical_not() if padding.dtype is torch.bool else padding == 0
        return not torch.compiler.is_compiling() and bool(torch._nested_tensor_from_mask_left_aligned(src, kept))


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


def _attributes(module: nn.Module) -> tuple[tuple[str, Any], ...]:
    """What a forward may read of a module beside its parameters and parts: numbers, texts, functions."""
    kept = (bool, int, float, str, type(None), types.FunctionType, types.BuiltinFunctionType)
    return tuple((name, value) for name, value in vars(module).items() if name not in ("training", "_hone_site") and isinstance(value, kept))


@contextlib.contextmanager
def _set_apart(module: nn.Module) -> Iterator[None]:
    """What is called within changes nothing of a module: hooks of its parts stay quiet, and what it keeps comes back."""
    parts = [*module.modules()]
    before = [dict(vars(part)) for part in parts]
    try:
        for part in parts:
            vars(part).update(_forward_hooks=OrderedDict(), _forward_pre_hooks=OrderedDict())
        yield
    finally:
        for part, kept in zip(parts, before):
            vars(part).clear()
            vars(part).update(kept)


def _agrees(module: nn.Module, dim: int, expected: Callable[[torch.Tensor], torch.Tensor], like: torch.Tensor) -> bool:
    """Whether a module does what its name says, in training and outside of it, on made-up numbers: ordinary, large and tiny, of a batch
    of several positions, of one, as a step that decodes has it, and of rows alone."""
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(2, 3, dim, generator=generator)
    devices = [like.device] if like.device.type == "cuda" else []
    for scale, training, of in ((1.0, False, x), (1.0, True, x), (300.0, False, x), (1e-3, True, x), (1.0, False, x[:, :1]), (1.0, False, x[0])):
        given = (of * scale).to(device=like.device, dtype=like.dtype)
        with _set_apart(module), torch.random.fork_rng(devices), torch.no_grad():
            for part in module.modules():
                part.training = training
            attributes = _attributes(module)
            try:
                made, wanted = module.forward(given), expected(given)
            except Exception:  # a module of the program's own may ask for anything
                if of is x:
                    return False
                continue
            if attributes != _attributes(module):
                return False
        if not isinstance(made, torch.Tensor) or made.shape != wanted.shape or made.dtype != given.dtype:
            return False
        least = _PROBED[like.dtype]
        largest = float(wanted.double().abs().max())
        if not torch.allclose(made.double(), wanted.double(), rtol=least, atol=least * min(1.0, largest)):
            return False
    return True


def _own_rms_norm(module: nn.Module) -> Found | str | None:
    """RMSNorm as models write it themselves."""
    if not re.search(r"RMS_?Norm$", type(module).__name__, re.I) or [*module._parameters] != ["weight"] or [*module.children()]:
        return None
    weight = module.weight
    name = next((name for name in ("variance_epsilon", "eps", "epsilon", "norm_eps") if isinstance(getattr(module, name, None), float)), None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 1 or weight.dtype not in DTYPES or weight.is_meta or name is None:
        return "its weight and eps are not found"
    if module._buffers:
        return "it has buffers"
    attributes = tuple(one for one in _attributes(module) if one[0] != name)
    for offset in (0.0, 1.0):
        def expected(x: torch.Tensor) -> torch.Tensor:
            wide = x.double()
            return wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + getattr(module, name)) * (weight.double() + offset)

        if _agrees(module, weight.shape[0], expected, weight):
            return _Norm, "layer_norm" if offset else "rms_norm", {"eps": name, "subtract_mean": False, "offset": offset, "attributes": attributes}
    return "it does something else than its name says"


def _gated_mlp(module: nn.Module) -> Found | str | None:
    for names in (("gate_proj", "up_proj", "down_proj"), ("w1", "w3", "w2")):
        parts = [getattr(module, name, None) for name in names]
        if not all(isinstance(part, nn.Linear) for part in parts):
            continue
        gate, up, down = parts
        if gate.weight.dtype not in DTYPES or gate.weight.is_meta:  # type: ignore[union-attr]
            return "its dtype is not one of hone's"
        others = [name for name, _ in module.named_children() if name not in names]
        strange = next((name for name in others if type(getattr(module, name)) is not nn.SiLU), None)
        if strange is not None or [*module._parameters] or module._buffers or any([*part.children()] for part in parts):  # type: ignore[union-attr]
            return f"it has parts, parameters or buffers beside its three products{'' if strange is None else f': {strange}'}"

        def expected(x: torch.Tensor) -> torch.Tensor:
            return down(_silu_mul(gate(x), up(x)))  # type: ignore[misc, no-any-return]

        if _agrees(module, gate.in_features, expected, gate.weight):  # type: ignore[union-attr, arg-type]
            return _GatedMlp, "silu_mul", {"names": names, "others": others, "attributes": _attributes(module)}
        return "it does something else than silu(gate) * up"
    return None


def _norm(module: nn.Module) -> Found | str | None:
    if not isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
        return None
    if len(module.normalized_shape) != 1:
        return "it is normalized over several dims"
    settings: dict[str, Any] = {"eps": "eps", "subtract_mean": isinstance(module, nn.LayerNorm), "offset": 0.0,
                                "attributes": (("normalized_shape", module.normalized_shape),)}
    return _Norm, "rms_norm" if isinstance(module, nn.RMSNorm) and module.weight is not None else "layer_norm", settings


_NONE_OF_HONES = (nn.GELU, nn.SiLU, nn.ReLU, nn.Sigmoid, nn.Tanh, nn.BatchNorm1d, nn.BatchNorm2d, nn.GroupNorm, nn.Conv1d, nn.Conv2d, nn.Embedding)


def _find(module: nn.Module) -> Found | str | None:
    """What a module becomes, or why it stays; None: nobody would ask."""
    kind = type(module)
    what = _find_kind(module)
    if isinstance(what, tuple) or not (_attends(kind) or _calls(kind)):
        return what
    if "forward" in vars(module):
        return "a forward was set on this object, which its class does not see"
    return _Calling, "scaled_dot_product_attention" if _attends(kind) else "", {}


def _find_kind(module: nn.Module) -> Found | str | None:
    for base in (nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Softmax):
        if isinstance(module, base):
            if _has_own_forward(module, base):
                return f"its forward is not that of {base.__name__}"
            if any(type(value) not in (torch.Tensor, nn.Parameter) for value in module._parameters.values() if value is not None):
                return "its weights are of a class of their own"
            if base is nn.Linear:
                return _Linear, "matmul", {}
            return (_Softmax, "softmax", {}) if base is nn.Softmax else _norm(module)
    for base, front in ((nn.MultiheadAttention, _MultiheadAttention), (nn.TransformerEncoderLayer, _EncoderLayer), (nn.TransformerEncoder, _Encoder)):
        if isinstance(module, base):
            own = _has_own_forward(module, base)
            return f"its forward is not that of {base.__name__}" if own else (front, front.operation, {"packs": getattr(module, "use_nested_tensor", False)})
    if isinstance(module, _NONE_OF_HONES):
        return f"hone has no operation for {type(module).__name__}"
    return _own_rms_norm(module) or _gated_mlp(module)


@functools.cache
def _derived(front: type[_Replaced], kind: type[nn.Module]) -> type[nn.Module]:
    members: dict[str, Any] = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__qualname__": kind.__qualname__}
    if front is _Calling:
        names = [name for name, functions in _methods_of(kind).items() if not _OPERATIONS.keys().isdisjoint(functions)]
        members.update({name: _calling(getattr(kind, name)) for name in (*names, *["forward"] * _attends(kind))})
    return type(kind.__name__, (front, kind), members)


# Functions that a module calls itself -----------------------------------------------------------------------------------

# What hone makes of a call of torch's: why torch answers it, or None; its tensors; hone's and torch's function of these.
Asked = tuple[str | None, tuple[Any, ...], Callable[..., Any], Callable[..., Any]]
def _nobody(*tensors: Any) -> Any:
    raise NotImplementedError


def _left_to_torch(reason: str) -> Asked:
    return reason, (), _nobody, _nobody


def _refused_operands(*operands: Any, dtypes: tuple[torch.dtype, ...] = DTYPES) -> str | None:
    if not isinstance(operands[0], torch.Tensor) or any(one is not None and not isinstance(one, torch.Tensor) for one in operands):
        return _REFUSED
    refused = _refused_dtype(*operands, dtypes=dtypes)
    if refused is not None:
        return refused
    return "no elements" if any(one is not None and one.numel() == 0 for one in operands) else None


def _dtypes_of_products(x: Any) -> tuple[torch.dtype, ...]:
    return _WIDER if isinstance(x, torch.Tensor) and x.is_cpu else DTYPES


def _ask_linear(input: Any = None, weight: Any = None, bias: Any = None, **others: Any) -> Asked:
    reason = _refused_operands(input, weight, bias, dtypes=_dtypes_of_products(input))
    if reason is None and (others or weight is None or input.dim() == 0 or weight.dim() != 2 or input.shape[-1] != weight.shape[1] or
                           bias is not None and tuple(bias.shape) != (weight.shape[0],)):
        reason = _REFUSED
    return reason, (input, weight, bias), _product, F.linear


def _ask_product(input: Any = None, other: Any = None, mat2: Any = None, dims: int | None = None, **others: Any) -> Asked:
    """Of torch.matmul; with dims of those that take as many."""
    other = mat2 if other is None else other
    reason = _refused_operands(input, other, dtypes=_dtypes_of_products(input))
    if reason is None and (others or other is None or min(input.dim(), other.dim()) < 1 or dims is not None and (input.dim(), other.dim()) != (dims, dims) or
                           dims == 3 and input.shape[0] != other.shape[0] or max(input.dim(), other.dim()) > _MOST_DIMS or
                           input.shape[-1] != other.shape[-2 if other.dim() > 1 else 0]):
        reason = _REFUSED
    if reason is None and other.dim() > 2 and other.device.type != "cpu":
        reason = f"a batch of products on {other.device.type}, which hone's own kernels refuse there"
    return reason, (input, other), hone.torch.matmul, torch.matmul


def _ask_mm(input: Any = None, mat2: Any = None, **others: Any) -> Asked:
    return _ask_product(input, mat2, dims=2, **others)


def _ask_bmm(input: Any = None, mat2: Any = None, **others: Any) -> Asked:
    return _ask_product(input, mat2, dims=3, **others)


def _added_product(bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if not _adds(a):
        return hone.torch.product(a, b) + bias
    return hone.torch.product(a, b, bias) if bias.dim() == 1 else hone.torch.product(a, b, None, hone.torch.dense(bias))


def _ask_addmm(input: Any = None, mat1: Any = None, mat2: Any = None, *, beta: Any = 1, alpha: Any = 1, **others: Any) -> Asked:
    reason = _refused_operands(input, mat1, mat2, dtypes=_dtypes_of_products(input))
    if reason is None and (others or mat1 is None or mat2 is None or mat1.dim() != 2 or mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]):
        reason = _REFUSED
    if reason is None and (beta != 1 or alpha != 1):
        reason = "beta or alpha"
    if reason is None and tuple(input.shape) not in ((mat2.shape[1],), (mat1.shape[0], mat2.shape[1])):
        reason = "what is added is broadcast"
    return reason, (input, mat1, mat2), _added_product, torch.addmm


def _ask_softmax(input: Any = None, dim: Any = None, _stacklevel: int = 3, dtype: Any = None, **others: Any) -> Asked:
    reason = _refused_operands(input)
    if reason is None and (others or type(dim) is not int):
        reason = _REFUSED
    if reason is None and (input.dim() == 0 or dim not in (-1, input.dim() - 1)):
        reason = "not along the last dim"
    if reason is None and dtype not in (None, *DTYPES):
        reason = f"{str(dtype).removeprefix('torch.')}"
    if reason is None and dtype is None and _is_cast(input):
        reason = "autocast"

    def ours(x: torch.Tensor) -> torch.Tensor:
        return hone.torch.called("softmax")(hone.torch.dense(x if dtype is None else x.to(dtype)))  # type: ignore[no-any-return]

    def torchs(x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1, dtype=dtype)

    return reason, (input,), ours, torchs


def _ask_torchs_softmax(input: Any = None, dim: Any = None, dtype: Any = None, **others: Any) -> Asked:
    return _ask_softmax(input, dim, 3, dtype, **others)


def _refused_norm(x: Any, normalized_shape: Any, *weights: Any) -> str | None:
    reason = _refused_operands(x, *weights)
    if reason is None and (not isinstance(normalized_shape, (tuple, list)) or x.dim() == 0):
        return _REFUSED
    if reason is None and len(normalized_shape) != 1:
        return "normalized over several dims"
    if reason is None and any(one is not None and tuple(one.shape) != tuple(normalized_shape) for one in (x[(0,) * (x.dim() - 1)], *weights)):
        return _REFUSED
    return reason or ("autocast" if _is_cast(x) else None)


def _ask_layer_norm(input: Any = None, normalized_shape: Any = None, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn_enable: bool = True,
                    **others: Any) -> Asked:
    def ours(x: torch.Tensor, weight: Any = None, bias: Any = None) -> torch.Tensor:
        return hone.torch.called("layer_norm")(hone.torch.dense(x), weight, bias, eps=eps)  # type: ignore[no-any-return]

    def torchs(x: torch.Tensor, weight: Any = None, bias: Any = None) -> torch.Tensor:
        return F.layer_norm(x, x.shape[-1:], weight, bias, eps)

    return _refused_norm(input, normalized_shape, weight, bias) or (_REFUSED if others else None), (input, weight, bias), ours, torchs


def _ask_rms_norm(input: Any = None, normalized_shape: Any = None, weight: Any = None, eps: float | None = None, **others: Any) -> Asked:
    least = torch.finfo(torch.float32).eps if eps is None else eps

    def ours(x: torch.Tensor, weight: Any = None) -> torch.Tensor:
        if weight is None:
            return hone.torch.called("layer_norm")(hone.torch.dense(x), eps=least, subtract_mean=False)  # type: ignore[no-any-return]
        return hone.torch.called("rms_norm")(hone.torch.dense(x), weight, eps=least)  # type: ignore[no-any-return]

    def torchs(x: torch.Tensor, weight: Any = None) -> torch.Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, eps)

    return _refused_norm(input, normalized_shape, weight) or (_REFUSED if others else None), (input, weight), ours, torchs


# By the name that the report has: torch's functions, hone's operation, and what asks for it.
_ANSWERED: tuple[tuple[str, tuple[Any, ...], str, Callable[..., Asked]], ...] = (
    ("F.linear", (F.linear,), "matmul", _ask_linear),
    ("torch.matmul", (torch.matmul, torch.Tensor.matmul, torch.linalg.matmul), "matmul", _ask_product),
    ("torch.bmm", (torch.bmm, torch.Tensor.bmm), "matmul", _ask_bmm),
    ("torch.mm", (torch.mm, torch.Tensor.mm), "matmul", _ask_mm),
    ("torch.addmm", (torch.addmm, torch.Tensor.addmm), "matmul", _ask_addmm),
    ("F.softmax", (F.softmax,), "softmax", _ask_softmax),
    ("torch.softmax", (torch.softmax, torch.Tensor.softmax, torch.special.softmax), "softmax", _ask_torchs_softmax),
    ("F.layer_norm", (F.layer_norm, torch.layer_norm), "layer_norm", _ask_layer_norm),
    ("F.rms_norm", (F.rms_norm, torch.rms_norm), "rms_norm", _ask_rms_norm),
)
_ATTENTION = "F.scaled_dot_product_attention"
_NAMES = {function: name for name, functions, _, _ in _ANSWERED for function in functions} | {F.scaled_dot_product_attention: _ATTENTION}
_OPERATIONS = {name: operation for name, _, operation, _ in _ANSWERED} | {_ATTENTION: "scaled_dot_product_attention"}
_ASKS = {function: ask for _, functions, _, ask in _ANSWERED for function in functions}
# Those that hone answers by no operation of its own: they are told.
_UNANSWERED = {torch.einsum: "torch.einsum", torch.baddbmm: "torch.baddbmm"}
_METHODS = {"matmul": "torch.matmul", "bmm": "torch.bmm", "mm": "torch.mm", "addmm": "torch.addmm", "softmax": "torch.softmax"}
_FUNCTION = (types.FunctionType, types.BuiltinFunctionType)


class _State(threading.local):
    """Of the innermost method of a replaced module that runs."""

    site: Site | None = None
    hooks: Any = None  # of saved tensors, where it began
    is_torchs = False  # torch answers a call that hone has seen: those around it are not asked


_state = _State()


def _by_torch(func: Any, args: Any, keywords: Any) -> Any:
    if torch.compiler.is_compiling():
        return func(*args, **keywords)
    before, _state.is_torchs = _state.is_torchs, True
    try:
        return func(*args, **keywords)
    finally:
        _state.is_torchs = before


def _saving_hooks() -> Any:
    return None if torch.compiler.is_compiling() else torch._C._autograd._top_saved_tensors_default_hooks(True)


# Methods of tensors that torch has written in Python. torch.compile knows them as methods: as functions, which a mode is given, torch 2.11
# follows them into their super(), where it gives up.
_IN_PYTHON = ((torch.Tensor.split, "split"), (torch.Tensor.unflatten, "unflatten"))


class _Functions(TorchFunctionMode):
    """While a method of a module runs. Each function of torch that is called within costs a microsecond, whatever it is."""

    def __init__(self, site: Site):
        super().__init__()
        self.site, self.hooks, self.has_met = site, _saving_hooks(), False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        keywords = kwargs or {}
        if func not in _NAMES or not torch.compiler.is_compiling() and _state.is_torchs:
            for method, name in _IN_PYTHON if torch.compiler.is_compiling() else ():
                if func is method:
                    return getattr(args[0], name)(*args[1:], **keywords)
            return func(*args, **keywords)
        self.has_met = True
        return _reply(self.site, self.hooks, func, args, keywords)


def _reply(site: Site, hooks: Any, func: Any, args: Any, keywords: Any) -> Any:
    now = _saving_hooks()
    if now is not None and now != hooks:  # torch.utils.checkpoint runs it again, where nobody asks hone
        site.part(_NAMES[func]).note("inside of torch.utils.checkpoint, or other hooks of saved tensors", (), _nobody, _nobody)
        return _by_torch(func, args, keywords)
    if func is F.scaled_dot_product_attention:
        return _attend(site.part(_ATTENTION), *args, **keywords)
    return _answer(site.part(_NAMES[func]), func, args, keywords)


def _meet(func: Any, *args: Any, **keywords: Any) -> Any:
    """A call of torch's function at a place that the sources tell."""
    site = _state.site
    return func(*args, **keywords) if site is None or _state.is_torchs else _reply(site, _state.hooks, func, args, keywords)


_MEET = {function: functools.partial(_meet, function) for function in _NAMES}


def _answer(site: Site, func: Any, args: Any, keywords: Any) -> Any:
    reason, tensors, ours, torchs = _ASKS[func](*args, **keywords)
    given = tuple(one for one in tensors if one is not None)
    if reason is None:
        reason = site.why_not_trained(given)
    if torch.compiler.is_compiling():
        return ours(*tensors) if reason is None else func(*args, **keywords)
    places = [i for i, one in enumerate(tensors) if one is not None]
    count = len(tensors)

    def of(function: Callable[..., Any]) -> Callable[..., Any]:
        """Of the tensors that are there alone."""
        return lambda *given: function(*(dict(zip(places, given)).get(i) for i in range(count)))

    if reason is not None:
        site.note(reason, (), _nobody, _nobody)
        return _by_torch(func, args, keywords)
    site.note(None, given, of(ours), of(torchs))
    return ours(*tensors)


def _calling(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a module in which hone answers functions of torch: at the places that the sources tell, and, until one run has met no others,
    wherever they are called."""
    direct = _direct(method)

    @functools.wraps(method)
    def run(self: Any, *args: Any, **keywords: Any) -> Any:
        site = self._hone_site
        if torch.compiler.is_compiling():
            with _Functions(site):
                return method(self, *args, **keywords)
        key = method.__name__, self.training
        before = _state.site, _state.hooks
        _state.site, _state.hooks = site, _saving_hooks()
        try:
            if direct is not None and key in site.told:
                return direct(self, *args, **keywords)
            with _Functions(site) as mode:
                made = (direct or method)(self, *args, **keywords)
        finally:
            _state.site, _state.hooks = before
        if not mode.has_met:
            site.told.add(key)
        return made

    return run


def _direct(function: Any, depth: int = 3) -> types.FunctionType | None:
    """A copy of a function that asks hone itself where it calls torch's functions; None: where it calls them cannot be seen."""
    if not isinstance(function, types.FunctionType):
        return None
    copies: dict[Any, Callable[..., Any]] = dict(_MEET)

    def kind_of(node: ast.Call) -> str | None:
        name, value = _named(node, function.__globals__)
        if name is not None and name not in _OPERATIONS:
            return None
        if name is None and value is not None and value not in copies and _called(value, depth - 1):
            inner = _direct(value, depth - 1)
            copies.update({} if inner is None else {value: inner})
        return _rewriting.METHOD if name is not None and value is None else _rewriting.CALL if value in copies else None

    def call(value: Any) -> Any:
        return copies.get(value, value) if isinstance(value, _FUNCTION) else value

    return _rewriting.rewritten(function, kind_of, {_rewriting.CALL: call, _rewriting.METHOD: _bound, _rewriting.PRODUCT: _multiplied})


def _bound(owner: Any, name: str) -> Any:
    return functools.partial(_meet, getattr(torch.Tensor, name), owner) if type(owner) in _PLAIN else getattr(owner, name)


def _multiplied(a: Any, b: Any) -> Any:
    return _meet(torch.matmul, a, b) if type(a) in _PLAIN and type(b) in _PLAIN else a @ b


def _named(node: ast.Call, names: dict[str, Any]) -> tuple[str | None, Any]:
    """The function of torch that a call is of, by a name in its module or as a method of a tensor, and any other function."""
    parts: list[str] = []
    function: ast.AST = node.func
    while isinstance(function, ast.Attribute):
        parts.insert(0, function.attr)
        function = function.value
    root = function.id if isinstance(function, ast.Name) else ""
    if root not in names:
        return _METHODS.get(parts[-1]) if parts and (root, len(parts)) != ("self", 1) else None, None
    value = functools.reduce(lambda one, part: getattr(one, part, None), parts, names[root])
    if not isinstance(value, _FUNCTION):
        return None, None
    return _NAMES.get(value) or _UNANSWERED.get(value), value


def _called(function: Any, depth: int = 3) -> Counter[str]:
    """Functions of torch that hone has operations for and that a function calls in its source, or one that it calls."""
    found: Counter[str] = Counter()
    function = inspect.unwrap(function)
    if not isinstance(function, types.FunctionType) or (function.__module__ or "").startswith("torch.") or depth == 0:
        return found
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # it was made by exec
        return found
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            found["torch.matmul"] += 1
        elif isinstance(node, ast.Call):
            name, value = _named(node, function.__globals__)
            found.update([name] if name is not None else _called(value, depth - 1) if value is not None else [])
    return found


@functools.cache
def _methods_of(kind: type[nn.Module]) -> dict[str, Counter[str]]:
    """Functions that a class' methods call, by method; those of a static method, a property or the like are forward's."""
    found: dict[str, Counter[str]] = {}
    for base in kind.__mro__[:-1]:
        if base.__module__.startswith("torch."):  # also what torch lays over a class, as a parametrization
            continue
        for name, method in vars(base).items():
            is_plain = isinstance(method, types.FunctionType)
            inner = method if is_plain else getattr(method, "__func__", None) or getattr(method, "fget", None)
            functions = _called(inner) if inner is not None else Counter()
            if functions and (name == "__call__" or not name.startswith("__")):
                found.setdefault(name if is_plain else "forward", Counter()).update(functions)
    return found


def _functions_of(kind: type[nn.Module]) -> Counter[str]:
    return sum(_methods_of(kind).values(), Counter())


def _calls(kind: type[nn.Module]) -> bool:
    return not _OPERATIONS.keys().isdisjoint(_functions_of(kind))


def _functional(model: nn.Module) -> dict[str, Counter[str]]:
    """By module: those that are left to torch."""
    found = {}
    for name, module in model.named_modules():
        site = vars(module).get("_hone_site")
        if site is not None and site.front is not _Calling:  # what hone runs in its place
            continue
        functions = _functions_of(type(module) if site is None else site.before)
        functions = Counter({one: count for one, count in functions.items() if site is None or one not in _OPERATIONS})
        if functions:
            found[name] = functions
    return found


# The report -----------------------------------------------------------------------------------------------------------


class Replaced:
    """What :func:`hone.torch.replace` did. Printed it is a table; entered with ``with``, it is undone at the end.

    Attributes:
        sites: the modules that run hone's operations, and functions of torch that modules call themselves, one of each module and function.
        left: names of modules of known kinds that stayed, with the reason.
        functions: by module, which functions of torch its source calls itself and how often that stay torch's (``torch.einsum``).
    """

    def __init__(self, sites: list[Site], left: dict[str, str], functions: dict[str, Counter[str]]):
        self.functions, self.left = functions, left
        self._all = sites  # of modules, also of those that have no operation of their own
        self._is_undone = False

    @property
    def sites(self) -> list[Site]:
        return [one for site in self._all for one in (site, *list(site.parts.values())) if one.operation]

    def undo(self) -> None:
        """Every module is torch's own again. What was counted stays.

        Raises:
            InvalidArgumentError: something was laid over a module since, a parametrization or another ``forward``: it has to go first, and
                the module stays as it is. The others are undone.
        """
        held = []
        for site in self._all if not self._is_undone else ():
            module = site.module
            if "_hone_site" not in vars(module):
                continue
            if type(module) is not _derived(site.front, site.before) or "forward" in vars(module):
                held.append(f"{site.name or 'the model'} ({type(module).__name__}{', with a forward of its own' * ('forward' in vars(module))})")
                continue
            del vars(module)["_hone_site"]
            module.__class__ = site.before
        if held:
            raise InvalidArgumentError(f"something was laid over {', '.join(held)} after replace(): take it away first "
                                       "(torch.nn.utils.parametrize.remove_parametrizations, or the forward that was there), then undo() again")
        self._is_undone = True

    def __enter__(self) -> Replaced:
        if self._is_undone:
            raise InvalidArgumentError("what was undone replaces nothing: call hone.torch.replace(model) again")
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
            raise InvalidArgumentError(f"repeats must be a number from 1, got {repeats!r}")
        for site in self.sites:
            if site.calls:
                site.is_measured, hits = True, 0 if site.layer is None else site.layer.hits
                try:
                    site.torch_seconds, site.hone_seconds = _times(site, repeats)
                finally:
                    site.is_measured = False
                    if site.layer is not None:
                        site.layer.hits = hits
        return self

    def __repr__(self) -> str:
        return "\n".join([self._summary(), *_rows(self)])

    def _summary(self) -> str:
        calls = sum(map(Counter.total, self.functions.values()))
        told = f"; {calls} call{'s' * (calls != 1)} of torch's functions in {len(self.functions)} module{'s' * (len(self.functions) != 1)}" if calls else ""
        modules = len({id(site.module) for site in self.sites})
        run = "ran" if self._is_undone else f"run{'s' * (modules == 1)}"
        undone = "; undone: the model runs torch's own" if self._is_undone else ""
        return f"{modules} module{'s' * (modules != 1)} {run} hone's operations, {len(self.left)} were left{told}{undone}"

    def _repr_html_(self) -> str:
        """The same table, as a notebook shows it."""
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f'<{tag} style="text-align:left">{html.escape(cell)}</{tag}>' for cell in cells) + "</tr>"

        rows = "".join(line(cells, "td") for cells in map(_cells, self.sites))
        told = "".join(f"<br>{html.escape(text)}" for text in _left(self))
        return f"<p>{html.escape(self._summary())}</p><table>{line(_HEAD, 'th')}{rows}</table><p>{told.removeprefix('<br>')}</p>"


def _clock(run: Callable[[], Any], device: torch.device) -> float:
    begun = time.perf_counter()
    run()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begun


def _times(site: Site, repeats: int) -> tuple[float, float] | tuple[None, None]:
    """Of all distinct calls, once each, under the autocast that they had. A module whose weights have changed their dtype, device or shape
    since may not run one of them any more: it is left out, and told. None where none is left."""
    whole, ran = [0.0, 0.0], 0
    site.not_measured.clear()
    for (cast, key), (ours, torchs) in site.calls.items():
        made = [torch.randn(shape, device=device).to(dtype) for shape, dtype, device in key]
        device = made[0].device
        try:
            with torch.no_grad(), torch.autocast(device.type, dtype=cast, enabled=cast is not None):
                pairs = [[_clock(lambda: one(*made), device) for one in (torchs, ours)] for _ in range(repeats + 1)][1:]
        except (RuntimeError, ValueError, TypeError) as error:
            site.not_measured[(str(error).splitlines() or [type(error).__name__])[0]] += 1
            continue
        ran += 1
        for i in range(2):
            whole[i] += statistics.median(pair[i] for pair in pairs)
    return (whole[0], whole[1]) if ran else (None, None)


def _cells(site: Site) -> tuple[str, ...]:
    gained = "" if site.torch_seconds is None or not site.hone_seconds else (
        f"{site.torch_seconds * 1e6:.1f} us -> {site.hone_seconds * 1e6:.1f} us ({site.torch_seconds / site.hone_seconds:.2f} x)")
    passed = "; ".join(f"{count}: {reason}" for reason, count in site.passed.items())
    ran = [site.operation] * (site.hits > site.masked or site.masked == 0) + [MASKED] * (site.masked > 0)
    return site.name or "(the model)", site.kind, ", ".join(ran), str(site.hits), gained or "-", passed or "-"


_HEAD = ("module", "class", "operation", "hit", "gained", "left to torch")


def _left(replaced: Replaced) -> Iterator[str]:
    for name, reason in replaced.left.items():
        yield f"{name or '(the model)'} stays torch's: {reason}"
    for name, functions in replaced.functions.items():
        calls = ", ".join(f"{one}{f' {count} times' if count > 1 else ''}" for one, count in functions.items())
        yield f"{name or '(the model)'} calls {calls} itself: these stay torch's"
    for site in replaced.sites:
        for words, count in site.not_measured.items():
            noted = "1 call that was noted no longer runs and is" if count == 1 else f"{count} calls that were noted no longer run and are"
            yield f"{site.name or '(the model)'}: {noted} not measured: {words}"


def _rows(replaced: Replaced) -> Iterator[str]:
    table = [_HEAD, *map(_cells, replaced.sites)]
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    for row in table:
        yield "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
    yield from (f"  {text}" for text in _left(replaced))


def _refuse(model: Any) -> None:
    if isinstance(model, (torch.jit.ScriptModule, torch.fx.GraphModule)):
        raise InvalidArgumentError(f"a {type(model).__name__} has no modules to replace: replace those of the model that it was made of, before")
    if not isinstance(model, nn.Module):
        raise InvalidArgumentError(f"hone.torch.replace takes a torch.nn.Module, got {type(model).__name__}")
    if any(isinstance(module, _Replaced) for module in model.modules()):
        raise InvalidArgumentError("the model has modules that run hone's operations already: undo() of what replace gave comes first")


def replace(model: nn.Module) -> Replaced:
    """See :func:`hone.torch.replace`."""
    _refuse(model)
    _ask_who_adds()
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
        site = _site(name, type(module).__name__, operation, module, type(module), front, settings)
        site.layer = front._layer(module, operation, settings)
        if site.layer is not None:
            site.run = site.layer.run
        for function in _functions_of(type(module)) if front is _Calling else ():
            if function in _OPERATIONS:
                site.part(function)
        vars(module)["_hone_site"] = site
        module.__class__ = _derived(front, type(module))
        sites.append(site)
    return Replaced(sites, left, _functional(model))


def _site(name: str, kind: str, operation: str, module: nn.Module, before: type[nn.Module], front: type[_Replaced], settings: dict[str, Any]) -> Site:
    return Site(name, kind, operation, module, before, front, settings=settings, trained_on=_trained_on(operation) if operation else frozenset(),
                masked_on=_devices_of(MASKED))


def _trained_on(operation: str) -> frozenset[str]:
    """The devices of torch that an operation's gradient has a kernel for."""
    return _devices_of(_gradients.of(operation))


def _devices_of(operation: str) -> frozenset[str]:
    backends = {kernel["backend"] for kernel in runtimes.default().kernels(operation)}
    return frozenset(device for device, backend in (("cpu", "cpu"), ("cuda", "gpu")) if backends & {backend, "any"})


def _parent(model: nn.Module, name: str) -> nn.Module | None:
    return model.get_submodule(name.rpartition(".")[0]) if name else None
