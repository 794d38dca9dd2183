"""A GPU of the fake driver (its memory is the host's), and arrays on it that look like those of torch, CuPy, JAX and others.

Only what hone asks of a framework is here. scripts/gpu streams asks the real ones, on a real GPU.
"""

import contextlib
import ctypes
import os
import pathlib
import sys
import types

import numpy

FAKES = pathlib.Path(os.environ.get("HONE_TEST_FAKES", ""))
GPU = 2


class View(ctypes.Structure):
    """DLTensor."""

    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


class Tensor(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = [*View._fields_, ("manager", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


def capsule(array, kept):
    """Of a row-major float32 array of numpy, as one on the GPU. kept: a list that keeps its memory."""
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = Tensor(array.ctypes.data, GPU, 0, array.ndim, 2, 32, 1, shape, None, 0, None, None)
    kept += [array, shape, tensor]
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(tensor), b"dltensor", None)


class Managed(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("manager", ctypes.c_void_p),
                ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)), ("flags", ctypes.c_uint64), *View._fields_]


_MANAGE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
_VIEW = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Exchange(ctypes.Structure):
    """DLPackExchangeAPI over arrays of this file. asked: which of its functions were called; stream: the current one.

    views: whether it shows arrays without owning a tensor. flags: DLPack's, of what owns one; 1 is read-only."""

    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
                ("allocate", ctypes.c_void_p), ("manage", _MANAGE), ("make", ctypes.c_void_p), ("view", _VIEW),
                ("current", _STREAM)]

    def __init__(self, views=True, flags=0, major=1, previous=None):
        self.asked, self.stream, self.flags, self._kept = [], 0, flags, [previous]
        deleter = dict(Managed._fields_)["deleter"](lambda managed: self.asked.append("delete"))
        self._kept.append(deleter)
        super().__init__(major, 3, ctypes.addressof(previous) if previous else None, None, _MANAGE(self._manage), None,
                         _VIEW(self._view) if views else _VIEW(), _STREAM(self._current))

    def _describe(self, array):
        shape = (ctypes.c_int64 * array.array.ndim)(*array.array.shape)
        self._kept.append(shape)
        return array.array.ctypes.data, GPU, 0, array.array.ndim, 2, 32, 1, shape, None, 0

    def _manage(self, array, out):
        self.asked.append("manage")
        self._kept.append(Managed(1, 3, None, self._kept[1], self.flags, *self._describe(array)))
        out[0] = ctypes.pointer(self._kept[-1])
        return 0

    def _view(self, array, out):
        self.asked.append("view")
        View.from_address(out).__init__(*self._describe(array))
        return 0

    def _current(self, kind, device, out):
        self.asked.append("stream")
        out[0] = self.stream
        return 0

    def capsule(self):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self), b"dlpack_exchange_api", None)


class Array:
    """An array on the GPU of a library that hone does not know. asked: the streams that it was exported for."""

    def __init__(self, array):
        self.array, self.asked, self._kept = numpy.ascontiguousarray(array, numpy.float32), [], []

    def __dlpack__(self, *, stream=None, max_version=None):
        self.asked.append(stream)
        return capsule(self.array, self._kept)


class Stream:
    def __init__(self, number, **rest):
        self.__dict__.update(rest, number=number)


class Framework:
    """One that has a current stream."""

    def __init__(self):
        self.current, self.made = 0, []  # made: the stream under which each result was

    @contextlib.contextmanager
    def on(self, number):
        before, self.current = self.current, number
        yield
        self.current = before


torch_state, cupy_state = Framework(), Framework()


def _family(name, module, state, **others):
    return type(name, (Array,), {"__module__": module, "state": state, **others})


torch = types.ModuleType("torch")
torch.strided, torch.float32, torch.grad_mode = "strided", numpy.float32, True
torch.is_grad_enabled = lambda: torch.grad_mode
torch._C = types.SimpleNamespace()
torch.autograd = types.SimpleNamespace(forward_ad=types.SimpleNamespace(_current_level=-1))
torch.Tensor = _family(
    "Tensor", "torch", torch_state, is_nested=False, is_quantized=False, layout="strided", is_meta=False, requires_grad=False,
    is_conj=lambda self: False, is_neg=lambda self: False, _is_zerotensor=lambda self: False,
    numel=lambda self: self.array.size, data_ptr=lambda self: self.array.ctypes.data, __torch_dispatch__=None,
    device=types.SimpleNamespace(type="cuda", index=0))
torch.utils = types.SimpleNamespace(dlpack=types.SimpleNamespace(to_dlpack=lambda tensor: tensor.__dlpack__(stream=-1)))


def _torch_empty(shape, dtype, device):
    torch_state.made.append(torch_state.current)
    return torch.Tensor(numpy.full(shape, numpy.nan, dtype))


torch.empty = _torch_empty
torch.cuda = types.SimpleNamespace(
    current_stream=lambda device: Stream(0, cuda_stream=torch_state.current),
    default_stream=lambda device: Stream(0, cuda_stream=0),
    ExternalStream=lambda number, device: Stream(number, cuda_stream=number),
    stream=lambda stream: torch_state.on(stream.cuda_stream))

cupy = types.ModuleType("cupy")
cupy.ndarray = _family("ndarray", "cupy", cupy_state, device=type("Device", (contextlib.nullcontext,), {"id": 0})())


def _cupy_empty(shape, dtype):
    cupy_state.made.append(cupy_state.current)
    return cupy.ndarray(numpy.full(shape, numpy.nan, dtype))


class _Null:
    """May be entered several times."""

    def __enter__(self):
        self.on = cupy_state.on(0)
        self.on.__enter__()

    def __exit__(self, *error):
        self.on.__exit__(*error)


cupy.empty = _cupy_empty
cupy.cuda = types.SimpleNamespace(
    get_current_stream=lambda device: Stream(0, ptr=cupy_state.current),
    Stream=types.SimpleNamespace(
        null=_Null(), from_external=lambda stream: cupy_state.on(stream.__cuda_stream__()[1])))


class JaxArray(Array):
    __module__ = "jaxlib.fake"
    ready = False

    def block_until_ready(self):
        self.ready = True
        return self

    def __dlpack__(self, **arguments):
        assert self.ready
        return super().__dlpack__(**arguments)


def begin(folder):
    """Has the process use the fakes; support.py comes before it and hone after. Gives the driver's log."""
    log = pathlib.Path(folder) / "log"
    os.environ.update(HONE_CUDA_DRIVER=str(FAKES / "fake_cuda.so"), HONE_NVRTC=str(FAKES / "fake_nvrtc.so"),
                      HONE_CUBLASLT=str(FAKES / "fake_cublaslt.so"), HONE_COMPILE_CACHE="none", FAKE_CUDA_LOG=str(log))
    sys.modules["torch"], sys.modules["cupy"] = torch, cupy
    return log
