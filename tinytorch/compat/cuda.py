"""`torch.cuda`: programs ask whether a GPU is available; none is. The modules below it are rows of `names.txt`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tinytorch import amp as _amp
from tinytorch.amp.older import deprecated, older_autocast, older_scaler
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes

from . import absent
from .absent import *  # noqa: F403
from .absent import OutOfMemoryError, reset_peak_memory_stats, without_cuda
from .names import Idle, Refused

amp: Any
memory: Any
nvtx: Any
random: Any

__all__ = [
    *absent.__all__,
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream", "amp",
    "can_device_access_peer", "cudart", "current_device", "current_stream", "default_generators", "default_stream",
    "device", "get_device_capability", "get_device_name", "get_device_properties",
    "get_per_process_memory_fraction", "get_rng_state", "get_sync_debug_mode", "has_half", "init", "initial_seed",
    "ipc_collect", "max_memory_cached", "mem_get_info", "memory", "memory_cached", "nvtx", "random",
    "reset_max_memory_allocated", "reset_max_memory_cached", "set_device", "set_per_process_memory_fraction",
    "set_sync_debug_mode", "synchronize",
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


# Memory: old names --------------------------------------------------------------------------------


def memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return 0


def max_memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return 0


def _renamed(old: str, new: str) -> None:
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
get_per_process_memory_fraction = set_per_process_memory_fraction = mem_get_info = without_cuda
get_rng_state = initial_seed = without_cuda


@contextmanager
def _nvtx_range(msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
    """Annotate the work inside a `with` block."""
    import_module("tinytorch.cuda.nvtx").range_push(msg.format(*args, **kwargs))
    yield


# `torch.cuda.amp` and `torch.cpu.amp`: older names of `torch.amp` -----------------------------------

_Autocast, _CpuAutocast = older_autocast("cuda", dtypes.float16), older_autocast("cpu", dtypes.bfloat16)
_Scaler, _CpuScaler = older_scaler("cuda"), older_scaler("cpu")


def _custom_fwd(fwd: Any = None, *, cast_inputs: dtypes.dtype | None = None) -> Any:
    """`torch.amp.custom_fwd(…, device_type="cuda")`: deprecated, as in PyTorch."""
    deprecated("cuda.amp.custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return functools.partial(_amp.custom_fwd, device_type="cuda")(fwd, cast_inputs=cast_inputs)


def _custom_bwd(bwd: Callable[..., Any]) -> Any:
    """`torch.amp.custom_bwd(…, device_type="cuda")`: deprecated, as in PyTorch."""
    deprecated("cuda.amp.custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return _amp.custom_bwd(bwd, device_type="cuda")
