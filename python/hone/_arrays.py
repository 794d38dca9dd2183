"""Arrays of others: how they are shown to hone, which of them are not what they look like, and results that a call leaves out."""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

Show = Callable[[Any], Any]


def _family(kind: type) -> str:
    """Whose arrays a type's are: "torch", "cupy", "jax", or "" for numpy's and those that DLPack is all one knows of."""
    for base in kind.__mro__:
        root = base.__module__.split(".")[0]
        if base.__name__ == "Tensor" and root == "torch":
            return "torch"
        if base.__name__ in ("ndarray", "_ndarray_base") and root == "cupy":
            return "cupy"
        if root == "jaxlib":
            return "jax"
    return ""


def family(array: Any) -> str:
    return _family(type(array))


# Refusals -------------------------------------------------------------------------------------------------------------

# Refused types by the module and name of their class, with a description and a remedy.
_NOT_DENSE = (
    ("numpy.ma", "MaskedArray", "got a masked array of numpy, whose mask hone would not see: give array.filled(value), or "
     "array.data where nothing is masked"),
    ("scipy.sparse", "", "got a sparse array of scipy, expected a dense one: give array.toarray()"),
    ("cupyx.scipy.sparse", "", "got a sparse array of CuPy, expected a dense one: give array.toarray()"),
    ("jax.experimental.sparse", "", "got a sparse array of JAX, expected a dense one: give array.todense()"),
    ("sparse", "SparseArray", "got a sparse array, expected a dense one: give array.todense()"),
)


def _is_from(base: type, module: str, name: str) -> bool:
    inside = base.__module__ == module or base.__module__.startswith(module + ".")
    return inside and name in ("", base.__name__)


def _refusal(kind: type) -> str | None:
    """Why arrays of a type are refused whatever they hold."""
    for module, name, words in _NOT_DENSE:
        if any(_is_from(base, module, name) for base in kind.__mro__):
            return words
    if _family(kind) == "torch" and kind.__torch_dispatch__ is not sys.modules["torch"].Tensor.__torch_dispatch__:
        return (f"got a {kind.__module__}.{kind.__qualname__}, a tensor that is made of others or of nothing (masked, nested, "
                "fake, quantised, distributed): give the plain tensor of its values, or call the operation of hone.torch.ops, which torch traces")
    return None


def _refuse(words: str) -> Show:
    def show(array: Any) -> Any:
        raise TypeError(words)

    return show


def torch_refusal(torch: Any, tensor: Any) -> str | None:
    """Why a tensor of torch is not what its shape and memory say."""
    if tensor.is_nested:
        return "got a nested tensor of torch, whose parts differ in shape: give one after the other, or tensor.to_padded_tensor(0.0)"
    if tensor.is_quantized:
        return f"got a quantised tensor of torch ({tensor.dtype}): give tensor.dequantize()"
    if tensor.layout is not torch.strided:
        return f"got a tensor of torch with layout {tensor.layout}, expected a strided one: give tensor.to_dense()"
    if tensor.is_meta:
        return "got a meta tensor of torch, which has no memory: where only shapes count, give a pair, (\"float32\", (64, 4096))"
    if tensor.is_conj():
        return "got a tensor of torch that is yet to be conjugated: give tensor.resolve_conj()"
    if tensor.is_neg():
        return "got a tensor of torch that is yet to be negated: give tensor.resolve_neg()"
    functorch = getattr(torch._C, "_functorch", None)  # torch has no public function for this
    if functorch is not None and functorch.is_functorch_wrapped_tensor(tensor):
        return "got a tensor inside torch.func (vmap, grad, functionalize), where hone.run cannot be called: call the operation of hone.torch.ops there"
    if tensor._is_zerotensor():
        return "got a tensor of torch that stands for zeros and has no memory: give tensor.clone()"
    if tensor.requires_grad and torch.is_grad_enabled():
        return ("got a tensor of torch that requires grad, and hone.run computes no gradients: call the operation of hone.torch.ops, give "
                "tensor.detach(), or call under torch.no_grad()")
    level = getattr(torch.autograd.forward_ad, "_current_level", -1)
    if level >= 0 and torch.autograd.forward_ad.unpack_dual(tensor).tangent is not None:
        return ("got a dual tensor of torch's forward mode, and hone computes no tangents: give "
                "torch.autograd.forward_ad.unpack_dual(tensor).primal")
    if tensor.numel() > 0 and tensor.data_ptr() == 0:
        return "got a tensor of torch whose storage was given up (resize_(0)): give it memory again before the call"
    return None


# Array views ----------------------------------------------------------------------------------------------------------


def show_torch(tensor: Any) -> Any:
    """A capsule of DLPack, without an order between streams: the call runs on the current one."""
    torch = sys.modules["torch"]
    words = torch_refusal(torch, tensor)
    if words is not None:
        raise TypeError(words)
    return torch.utils.dlpack.to_dlpack(tensor)


def show_cupy(array: Any) -> Any:
    return array.__dlpack__(stream=-1)


@functools.lru_cache(maxsize=64)
def _is_one_cpu(sharding: Any) -> bool:
    return type(sharding).__name__ == "SingleDeviceSharding" and {device.platform for device in sharding.device_set} == {"cpu"}


def _show_jax(array: Any) -> Any:
    """JAX has no current stream to order by, so this waits for the array's computation. On the CPU numpy can view the same memory in a
    fifth of the time, but not for every dtype, and not for an array that is spread over devices."""
    if _is_one_cpu(getattr(array, "sharding", None)):
        try:
            return sys.modules["numpy"].asarray(array).__dlpack__(max_version=(1, 1))
        except (BufferError, TypeError):  # bfloat16; a numpy without versions
            pass
    return array.block_until_ready()


def _show_buffer(value: Any) -> Any:
    """Memory that another object owns, as it is."""
    import numpy

    return numpy.asarray(value)


def _numbers_of(value: Any) -> Any:
    """A list or tuple as numpy's array of numbers."""
    import numpy

    try:
        array = numpy.asarray(value)
    except ValueError as error:
        raise TypeError(f"got a list that is not an array, expected rows of one length: {error}") from error
    if array.dtype == object or array.dtype.kind in "USMmV":
        raise TypeError("got a list that holds something other than numbers, expected an array, or a list of numbers nested once for each dim")
    return array


def _show_list(value: Any) -> Any:
    """A copy that nothing can be written to; numbers with a point are float32, as torch and JAX have it."""
    import numpy

    array = _numbers_of(value)
    array = array.astype(numpy.float32) if array.dtype == numpy.float64 else array.copy()
    array.flags.writeable = False
    return array


def _show_array(value: Any) -> Any:
    """The view of any other object. It may not own the memory that it describes, so nothing is written to it."""
    import numpy

    try:
        array = numpy.asarray(value).view()
    except ValueError as error:
        raise TypeError(f"got a {type(value).__module__}.{type(value).__qualname__}, whose __array__ gives no array: {error}") from error
    if array.dtype == object or array.dtype.kind in "USMmV":
        raise TypeError(f"got a {type(value).__module__}.{type(value).__qualname__} of dtype {array.dtype}, expected an array of numbers")
    array.flags.writeable = False
    return array


# Numbers in lists -----------------------------------------------------------------------------------------------------

_WORDS = {"f": "float", "i": "int", "u": "uint", "c": "complex"}


def _numpy_name(element: str) -> str:
    """numpy's, or ml_dtypes', of hone's "f32"."""
    if element == "bf16":
        return "bfloat16"
    found = re.fullmatch(r"([fiuc])(\d+)(_\w+)?", element)
    return element if found is None else _WORDS[found[1]] + found[2] + (found[3] or "")


def _natural(kind: str, choices: list[str]) -> str:
    """Of the dtypes that a type variable may be, the one for numbers that numpy knows by a kind."""
    wanted = {"b": ["bool"], "i": ["i64", "i32", *(one for one in choices if one[0] in "iu")], "u": ["u64", *(one for one in choices if one[0] in "iu")],
              "c": ["c64", "c128"]}.get(kind, [])
    return next((one for one in (*wanted, "f32", "f64", *choices) if one in choices), "f32")


def _holds(name: str, array: Any) -> bool:
    """Whether the numbers of a list are those of a dtype; numbers with a point are rounded."""
    import numpy

    if array.dtype.kind == "c":
        return name.startswith("complex")
    if not name.startswith(("int", "uint", "bool")) or array.dtype.kind == "b":
        return True
    bits = 1 if name == "bool" else int(re.findall(r"\d+", name)[0]) - name.startswith("int")
    low, high = (-(2**bits) if name.startswith("int") else 0), 2**bits - 1
    return bool(((array == numpy.floor(array)) & (array >= low) & (array <= high)).all())


def listed(value: Any, type_text: str, signature: str, taken: Sequence[tuple[str, str, Any]]) -> Any:
    """A list or tuple of numbers, which is copied, as an array of the dtype that its parameter has in the call: that of the other arrays
    of its type variable. Without one, integers are f32 unless the signature allows an integer dtype, and numbers with a point are f32.

    Args:
        type_text: of its parameter, "T[n]".
        taken: the arrays of the call, with the text of their type and numpy's name of their dtype.
    """
    element = type_text.partition("[")[0]
    name, like = next(((one, array) for text, one, array in taken if text.partition("[")[0] == element), (None, taken[0][2] if taken else None))
    array = _numbers_of(value)
    if name is None:
        choices = re.search(rf"\bwhere {element} in (\w+(?:\s*,\s*\w+)*)", signature)
        name = _numpy_name(element if choices is None else _natural(array.dtype.kind, re.split(r"\s*,\s*", choices[1])))
    if not _holds(name, array):
        raise TypeError(f"got a list with numbers that {name} does not hold, and the call takes it as {name}: give an array of {name}, or other numbers")
    if like is not None and family(like) == "torch":
        torch = sys.modules["torch"]
        return torch.as_tensor(array).to(dtype=getattr(torch, name), device=like.device, copy=True)
    array = array.astype(_numpy_dtype(name))
    array.flags.writeable = False
    return sys.modules["cupy"].asarray(array) if like is not None and family(like) == "cupy" else array


def exporter(kind: type) -> Show | None:
    """What shows arrays of a type: gives back a capsule, or the array that is to show itself. None: they do themselves."""
    if kind in (list, tuple):  # given as a result to write to
        return _show_list
    if kind is memoryview or (kind.__module__, kind.__name__) == ("array", "array") or \
            any((base.__module__, base.__name__) == ("_ctypes", "Array") for base in kind.__mro__):
        return _show_buffer
    words = _refusal(kind)
    if words is not None:
        return _refuse(words)
    show = {"torch": show_torch, "cupy": show_cupy, "jax": _show_jax}.get(_family(kind))
    return _show_array if show is None and not hasattr(kind, "__dlpack__") and hasattr(kind, "__array__") else show


# Results --------------------------------------------------------------------------------------------------------------


def _numpy_dtype(name: str) -> Any:
    import numpy

    try:
        return numpy.dtype(name)
    except TypeError:
        import ml_dtypes  # bfloat16, float8

        return numpy.dtype(getattr(ml_dtypes, name))


def _torch_empty(like: Any, dtype: str, shape: tuple[int, ...], stream: int | None) -> Any:
    torch = sys.modules["torch"]
    on: Any = contextlib.nullcontext()
    if stream is not None:  # so that torch's allocator knows which stream writes it
        device = like.device
        on = torch.cuda.stream(torch.cuda.ExternalStream(stream, device) if stream else torch.cuda.default_stream(device))
    with on:
        return torch.empty(shape, dtype=getattr(torch, dtype), device=like.device)


class _Numbered:
    """A stream by its number, as CuPy takes those of others."""

    def __init__(self, number: int):
        self._number = number

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._number


def _cupy_stream(cupy: Any, number: int, device: int) -> Any:
    if number == 0:
        return cupy.cuda.Stream.null
    if hasattr(cupy.cuda.Stream, "from_external"):  # CuPy 14 and later
        return cupy.cuda.Stream.from_external(_Numbered(number))
    return cupy.cuda.ExternalStream(number, device)


def _cupy_empty(like: Any, dtype: str, shape: tuple[int, ...], stream: int | None) -> Any:
    cupy = sys.modules["cupy"]
    with like.device:
        on: Any = contextlib.nullcontext()
        if stream is not None:
            on = _cupy_stream(cupy, stream, like.device.id)
        with on:
            return cupy.empty(shape, _numpy_dtype(dtype))


def _jax_empty(like: Any, dtype: str, shape: tuple[int, ...]) -> Any:
    import jax

    return jax.numpy.empty(shape, _numpy_dtype(dtype), device=next(iter(like.devices())))


def allocate(like: Any, dtype: str, shape: tuple[int, ...], stream: int | None) -> Any:
    """An uninitialised array of the kind of ``like``: torch's and CuPy's on its device, JAX's on a GPU, else numpy's.

    Args:
        like: the first array of the call.
        dtype: numpy's name of the element type, ``"float32"``.
        shape: of the result.
        stream: the one that the caller named, on which it is written; None: the framework's current one.
    """
    kind = family(like)
    if kind == "torch":
        return _torch_empty(like, dtype, shape, stream)
    if kind == "cupy":
        return _cupy_empty(like, dtype, shape, stream)
    if kind == "jax" and next(iter(like.devices())).platform == "gpu":
        return _jax_empty(like, dtype, shape)
    import numpy

    return numpy.empty(shape, _numpy_dtype(dtype))


def maker(kind: type, dtype: str) -> tuple[Callable[[tuple[int, ...], Any], Any], Any] | None:
    """What :func:`allocate` comes to for arrays of exactly a type: a function of shape and dtype, and the dtype. None: it is asked."""
    if kind.__module__ != "numpy" or kind.__name__ != "ndarray":
        return None
    import numpy

    return numpy.empty, _numpy_dtype(dtype)
