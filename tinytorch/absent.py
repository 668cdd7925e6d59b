"""What a kind of device answers that is not there: `torch.cuda`, `torch.xpu` and `torch.mps` take from here (floor 4).

As in PyTorch: seeding does nothing, no memory is in use, and what needs the device raises.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn

from tinytorch._tensor import Tensor

__all__ = [
    "StreamContext", "device_count", "device_of", "empty_cache", "get_arch_list", "get_gencode_flags",
    "get_rng_state_all", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_stats_as_nested_dict", "refusing", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "seed", "seed_all", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
    "without_cuda",
]  # fmt: skip


def refusing(error: type[Exception], words: str) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever it is given."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: the device is not there."""
        raise error(words)

    return refuse


without_cuda = refusing(AssertionError, "Torch not compiled with CUDA enabled")


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> import tinytorch as torch
        >>> "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
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
    """Return an empty list: nothing is compiled for any device of this kind."""
    return []


def get_gencode_flags() -> str:
    """Return an empty text: nothing is compiled for any device of this kind."""
    return ""


# Random numbers: there is no generator to seed ----------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the device's generator: there is none, so nothing happens, as in PyTorch."""
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all devices' generators: there are none, so nothing happens, as in PyTorch."""
    int(seed)


def seed() -> None:
    """Seed the device's generator with a random number: there is none."""


def seed_all() -> None:
    """Seed all devices' generators with a random number: there are none."""


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all devices' generators: an empty list."""
    return []


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Set the state of the device's generator: there is none."""


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all devices' generators: there are none."""


# Memory: none is in use ---------------------------------------------------------------------------


def empty_cache() -> None:
    """Free cached memory of the device: there is none."""


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


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return an empty dict."""
    return collections.OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return an empty dict."""
    return {}


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the peak of memory use: there is none."""


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Forget what memory was used in all: none was."""


# Streams: None is the only one --------------------------------------------------------------------


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


class device_of(StreamContext):
    """Make the device that a tensor is on the current one: none is on one of this kind, so nothing happens."""
