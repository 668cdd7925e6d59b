"""What a kind of device answers that is not there: `torch.cuda` and `torch.xpu` all of it, others in part.

As in PyTorch: seeding does nothing, no memory is in use, and what needs the device raises.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn

from tinytorch.core.device import without_cuda as without_cuda
from tinytorch.core.tensor import Tensor

__all__ = [
    "StreamContext", "device_count", "device_of", "empty_cache", "get_arch_list", "get_gencode_flags",
    "get_rng_state_all", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """A device has too little memory; programs catch it. Never raised here.

    Example:
        >>> try:
        ...     y = torch.ones(2) * 2
        ... except torch.OutOfMemoryError:
        ...     torch.cuda.empty_cache()
    """


def refusing(error: type[Exception], words: str) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever it is given."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: the device is not there."""
        raise error(words)

    return refuse


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"
        'cpu'
    """
    return False


def is_initialized() -> bool:
    """Return False.

    Example:
        >>> torch.cuda.is_initialized()
        False
    """
    return False


def device_count() -> int:
    """Return 0.

    Example:
        >>> torch.cuda.device_count()
        0
    """
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Return False.

    Example:
        >>> torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32
        torch.float32
    """
    return False


def is_tf32_supported() -> bool:
    """Return False.

    Example:
        >>> torch.cuda.is_tf32_supported()
        False
    """
    return False


def get_arch_list() -> list[str]:
    """Return an empty list: nothing is compiled for any device of this kind.

    Example:
        >>> torch.cuda.get_arch_list()
        []
    """
    return []


def get_gencode_flags() -> str:
    """Return an empty text: nothing is compiled for any device of this kind.

    Example:
        >>> torch.cuda.get_gencode_flags()
        ''
    """
    return ""


# Random numbers: there is no generator to seed ----------------------------------------------------


def manual_seed(seed: int) -> None:
    """Seed the device's generator: there is none, so nothing happens, as in PyTorch.

    Example:
        >>> torch.cuda.manual_seed(0)
    """
    int(seed)


def manual_seed_all(seed: int) -> None:
    """Seed all devices' generators: there are none, so nothing happens, as in PyTorch.

    Example:
        >>> torch.cuda.manual_seed_all(0)
    """
    int(seed)


def seed() -> None:
    """Seed the device's generator with a random number: there is none.

    Example:
        >>> torch.cuda.seed()
    """


def seed_all() -> None:
    """Seed all devices' generators with a random number: there are none.

    Example:
        >>> torch.cuda.seed_all()
    """


def get_rng_state_all() -> list[Tensor]:
    """Return the states of all devices' generators: an empty list.

    Example:
        >>> torch.cuda.get_rng_state_all()
        []
    """
    return []


def set_rng_state(new_state: Any, device: Any = None) -> None:
    """Set the state of the device's generator: there is none."""


def set_rng_state_all(new_states: Any) -> None:
    """Set the states of all devices' generators: there are none.

    Example:
        >>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())
    """


# Memory: none is in use ---------------------------------------------------------------------------


def empty_cache() -> None:
    """Free cached memory of the device: there is none.

    Example:
        >>> torch.cuda.empty_cache()
    """


def memory_allocated(device: Any = None) -> int:
    """Return 0.

    Example:
        >>> torch.cuda.memory_allocated()
        0
    """
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """Return 0.

    Example:
        >>> torch.cuda.max_memory_allocated() / 2**20
        0.0
    """
    return 0


def memory_reserved(device: Any = None) -> int:
    """Return 0.

    Example:
        >>> torch.cuda.memory_reserved()
        0
    """
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """Return 0.

    Example:
        >>> torch.cuda.max_memory_reserved()
        0
    """
    return 0


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return an empty dict.

    Example:
        >>> dict(torch.cuda.memory_stats())
        {}
    """
    return collections.OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return an empty dict.

    Example:
        >>> torch.cuda.memory_stats_as_nested_dict()
        {}
    """
    return {}


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forget the peak of memory use: there is none.

    Example:
        >>> torch.cuda.reset_peak_memory_stats()
    """


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Forget what memory was used in all: none was.

    Example:
        >>> torch.cuda.reset_accumulated_memory_stats()
    """


# Streams: None is the only one --------------------------------------------------------------------


class StreamContext:
    """Do what is inside a `with` block on a stream: the only one that there can be, which changes nothing.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


def stream(stream: Any) -> StreamContext:
    """Return a context manager for a stream: the only one that there can be.

    Example:
        >>> with torch.cuda.stream(None):
        ...     y = torch.ones(2) * 2
    """
    return StreamContext(stream)


def set_stream(stream: Any) -> None:
    """Set the current stream, which can only be None.

    Example:
        >>> torch.cuda.set_stream(None)
    """


class device_of(StreamContext):
    """Make the device that a tensor is on the current one: none is on one of this kind, so nothing happens.

    Example:
        >>> with torch.cuda.device_of(torch.ones(2)):
        ...     y = torch.ones(2) * 2
    """
