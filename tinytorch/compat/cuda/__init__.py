"""`torch.cuda`: programs ask whether a GPU is available; none is."""

from __future__ import annotations

from typing import Any

from tinytorch.kernels import dtypes

from .. import absent
from ..absent import *  # noqa: F403
from ..absent import Idle, OutOfMemoryError, Refused, without_cuda
from ..cuda import amp, memory, nvtx, random
from ..cuda.memory import *  # noqa: F403
from ..cuda.random import *  # noqa: F403
from ..named import names_of

__all__ = [
    *absent.__all__, *memory.__all__, *random.__all__,
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream", "amp",
    "can_device_access_peer", "cudart", "current_device", "current_stream", "default_generators", "default_stream",
    "device", "get_device_capability", "get_device_name", "get_device_properties", "get_sync_debug_mode", "has_half",
    "init", "ipc_collect", "memory", "nvtx", "random", "set_device", "set_sync_debug_mode", "synchronize",
]  # fmt: skip


default_generators: tuple[Any, ...] = ()
has_half = True


# What needs a GPU ---------------------------------------------------------------------------------

can_device_access_peer = current_device = current_stream = default_stream = without_cuda
get_device_capability = get_device_name = get_device_properties = without_cuda
get_sync_debug_mode = set_sync_debug_mode = init = ipc_collect = synchronize = cudart = without_cuda


def set_device(device: Any) -> None:
    """Make a GPU the current one; a negative index has no effect.

    Raises:
        AssertionError: the index is not negative.

    Example:
        >>> torch.cuda.set_device(-1)
    """
    if not (isinstance(device, int) and device < 0):
        without_cuda()


class device(Idle):
    """Make a GPU the current one inside a `with` block; a negative index, or None, has no effect.

    Raises:
        RuntimeError: the block is entered with another index.

    Example:
        >>> with torch.cuda.device(None):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, device: Any) -> None:
        index = getattr(device, "index", device)
        self.idx = index if isinstance(index, int) else -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")


class Stream(Refused):
    """A GPU's queue of work."""

    _error = (RuntimeError, "torch.cuda.Stream requires CUDA support")


class Event(Refused):
    """A marker in a stream."""

    _error = (RuntimeError, "Tried to instantiate dummy base class Event")


class CUDAGraph(Refused):
    """A recorded sequence of a GPU's kernels."""

    _error = (RuntimeError, "Tried to instantiate dummy base class CUDAGraph")


class _OnGpu(type):
    """The metaclass of `torch.cuda.FloatTensor` and the like: no tensor is an instance, and calling one raises."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


_initialized = False
graph = without_cuda


def _typed(dtype: dtypes.dtype) -> Any:
    return _OnGpu(f"{dtype.tensor_name}Tensor", (), {"__doc__": f"Tensors of {dtype} on a GPU: there are none."})


BFloat16Tensor, BoolTensor, ByteTensor, CharTensor = map(
    _typed, (dtypes.bfloat16, dtypes.bool, dtypes.uint8, dtypes.int8)
)
DoubleTensor, FloatTensor, HalfTensor = map(_typed, (dtypes.float64, dtypes.float32, dtypes.float16))
IntTensor, LongTensor, ShortTensor = map(_typed, (dtypes.int32, dtypes.int64, dtypes.int16))

globals().update(names_of(__name__))
