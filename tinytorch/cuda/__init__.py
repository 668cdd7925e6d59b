"""What programs ask of `torch.cuda` before they use it: there is no GPU here, and it says so (floor 4)."""

from __future__ import annotations

from typing import Any

from tinytorch import dtypes
from tinytorch.absent import (
    StreamContext,
    device_count,
    device_of,
    get_arch_list,
    get_gencode_flags,
    is_available,
    is_bf16_supported,
    is_initialized,
    is_tf32_supported,
    set_stream,
    stream,
    without_cuda,
)
from tinytorch.cuda import amp, memory, nvtx, random
from tinytorch.cuda.memory import (
    empty_cache,
    get_per_process_memory_fraction,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_stats,
    memory_stats_as_nested_dict,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
)
from tinytorch.cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream", "StreamContext", "amp",
    "can_device_access_peer", "cudart", "current_device", "current_stream", "default_generators", "default_stream",
    "device", "device_count", "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_per_process_memory_fraction", "get_rng_state",
    "get_rng_state_all", "get_sync_debug_mode",
    "has_half", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_stats", "memory_stats_as_nested_dict", "nvtx", "random", "reset_accumulated_memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "synchronize",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """A device has too little memory; programs catch it. Never raised here."""


default_generators: tuple[Any, ...] = ()
has_half = True


# What needs a GPU ---------------------------------------------------------------------------------

can_device_access_peer = current_device = current_stream = default_stream = without_cuda
get_device_capability = get_device_name = get_device_properties = without_cuda
get_sync_debug_mode = set_sync_debug_mode = init = ipc_collect = synchronize = cudart = without_cuda


def set_device(device: Any) -> None:
    """Make a GPU the current one; a negative index does nothing.

    Raises:
        AssertionError: it is not negative: there is no GPU.
    """
    if not (isinstance(device, int) and device < 0):
        without_cuda()


class device:
    """Make a GPU the current one inside a `with` block; a negative index, or None, does nothing.

    Raises:
        RuntimeError: it is entered with another index.
    """

    def __init__(self, device: Any) -> None:
        index = getattr(device, "index", device)
        self.idx = index if isinstance(index, int) else -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            raise RuntimeError("PyTorch was compiled without CUDA support")

    def __exit__(self, *exc: object) -> None:
        return None


class Stream:
    """A queue of a GPU's work: there is none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Stream:
        """Raise RuntimeError."""
        raise RuntimeError("torch.cuda.Stream requires CUDA support")


class Event:
    """A mark in a stream: there is none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Event:
        """Raise RuntimeError."""
        raise RuntimeError("Tried to instantiate dummy base class Event")


class CUDAGraph:
    """Recorded work of a GPU: there is none."""

    def __new__(cls, *args: Any, **kwargs: Any) -> CUDAGraph:
        """Raise RuntimeError."""
        raise RuntimeError("Tried to instantiate dummy base class CUDAGraph")


class _OnGpu(type):
    """The type of `torch.cuda.FloatTensor` and its like: no tensor is an instance, and none can be made."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled."
        )

    def __repr__(cls) -> str:
        return f"<class 'torch.cuda.{cls.__name__}'>"


def _typed(kind: dtypes.dtype) -> Any:
    name = f"{kind.tensor_name}Tensor"
    return _OnGpu(name, (), {"__doc__": f"Tensors of {kind} on a GPU, of which there are none."})


BFloat16Tensor, BoolTensor, ByteTensor, CharTensor = map(
    _typed, (dtypes.bfloat16, dtypes.bool, dtypes.uint8, dtypes.int8)
)
DoubleTensor, FloatTensor, HalfTensor = map(
    _typed, (dtypes.float64, dtypes.float32, dtypes.float16)
)
IntTensor, LongTensor, ShortTensor = map(_typed, (dtypes.int32, dtypes.int64, dtypes.int16))
