"""What programs ask of `torch.cuda` before they use it: there is no GPU here, and it says so (floor 4)."""

from __future__ import annotations

import collections
import warnings
from typing import Any, NoReturn

from tinytorch import dtypes
from tinytorch.cuda import amp

__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "Event", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "Stream", "StreamContext", "amp",
    "can_device_access_peer", "current_device", "current_stream", "default_generators", "default_stream", "device",
    "device_count", "device_of", "empty_cache", "get_arch_list", "get_device_capability", "get_device_name",
    "get_device_properties", "get_gencode_flags", "get_rng_state", "get_rng_state_all", "get_sync_debug_mode",
    "has_half", "init", "initial_seed", "ipc_collect", "is_available", "is_bf16_supported", "is_initialized",
    "is_tf32_supported", "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_stats",
    "reset_max_memory_allocated", "reset_max_memory_cached", "reset_peak_memory_stats", "seed", "seed_all",
    "set_device", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all", "set_stream",
    "set_sync_debug_mode", "stream", "synchronize",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """A device has too little memory; programs catch it. Never raised here."""


default_generators: tuple[Any, ...] = ()
has_half = True


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> import tinytorch as torch
        >>> "cuda" if torch.cuda.is_available() else "cpu"
        'cpu'
    """
    return False


def is_initialized() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False."""
    return False


def is_tf32_supported() -> bool:
    """Return False."""
    return False


def get_arch_list() -> list[str]:
    """Return an empty list: nothing is compiled for any GPU."""
    return []


def get_gencode_flags() -> str:
    """Return an empty text: nothing is compiled for any GPU."""
    return ""


# Random numbers: there is no generator to seed ----------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the GPU's generator: there is none, so nothing happens, as in PyTorch."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all GPUs' generators: there are none, so nothing happens, as in PyTorch."""
    int(seed)


def seed() -> None:
    """Seed the GPU's generator with a random number: there is none."""


def seed_all() -> None:
    """Seed all GPUs' generators with a random number: there are none."""


def get_rng_state_all() -> list[Any]:
    """Return the states of all GPUs' generators: an empty list."""
    return []


def set_rng_state(new_state: Any, device: Any = "cuda") -> None:
    """Set the state of the GPU's generator: there is none."""


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all GPUs' generators: there are none."""


# Memory: none is in use ---------------------------------------------------------------------------


def empty_cache() -> None:
    """Free cached GPU memory: there is none."""


def memory_allocated(device: Any = None) -> int:
    """Return 0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Return 0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """Return 0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Return 0."""
    return 0


def memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `memory_reserved`."""
    _renamed("memory_cached", "memory_reserved")
    return 0


def max_memory_cached(device: Any = None) -> int:
    """Return 0: the old name of `max_memory_reserved`."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return 0


def _renamed(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3
    )


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return an empty dict."""
    return collections.OrderedDict()


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the peak of memory use: there is none."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


# What needs a GPU ---------------------------------------------------------------------------------


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    """Raise AssertionError: there is no GPU."""
    raise AssertionError("Torch not compiled with CUDA enabled")


can_device_access_peer = current_device = current_stream = default_stream = _refuse
get_device_capability = get_device_name = get_device_properties = get_rng_state = _refuse
get_sync_debug_mode = set_sync_debug_mode = init = initial_seed = ipc_collect = mem_get_info = (
    _refuse
)
set_per_process_memory_fraction = synchronize = _refuse


def set_device(device: Any) -> None:
    """Make a GPU the current one; a negative index does nothing.

    Raises:
        AssertionError: it is not negative: there is no GPU.
    """
    if not (isinstance(device, int) and device < 0):
        _refuse()


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


class device_of(device):
    """Make the GPU that a tensor is on the current one: none is on one, so nothing happens."""

    def __init__(self, obj: Any) -> None:
        super().__init__(-1)


class StreamContext:
    """Do what is inside a `with` block on a stream: None, the only one that there can be, changes nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """Return a context manager for a stream, which can only be None."""
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """Set the current stream, which can only be None."""


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
