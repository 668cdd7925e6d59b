"""The functions of devices that are not available: all of `torch.cuda` and `torch.xpu`, and some of other devices.

As in PyTorch, seeding has no effect, no memory is in use, and functions that need the device raise an error.
"""

from __future__ import annotations

import collections
from typing import Any

from tinytorch.core.device import device
from tinytorch.core.device import without_cuda as without_cuda

from .names import Idle, answering
from .names import is_refusing as is_refusing

__all__ = [
    "StreamContext", "device_count", "device_of", "empty_cache", "get_arch_list", "get_gencode_flags",
    "get_rng_state_all", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported", "manual_seed",
    "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved",
    "memory_stats", "memory_stats_as_nested_dict", "reset_accumulated_memory_stats", "reset_peak_memory_stats", "seed",
    "seed_all", "set_rng_state", "set_rng_state_all", "set_stream", "stream",
]  # fmt: skip


class OutOfMemoryError(RuntimeError):
    """A device has too little memory. tinytorch never raises it; programs catch it.

    Example:
        >>> try:
        ...     y = torch.ones(2) * 2
        ... except torch.OutOfMemoryError:
        ...     torch.cuda.empty_cache()
    """


# Availability -------------------------------------------------------------------------------------

is_available = answering(
    "is_available", lambda: False, "Return False: tinytorch runs on the CPU.",
    """>>> "cuda" if torch.cuda.is_available() else "xpu" if torch.xpu.is_available() else "cpu"\n'cpu'""",
)  # fmt: skip
is_initialized = answering("is_initialized", lambda: False, "Return False.")
device_count = answering("device_count", lambda: 0, "Return 0.")
is_bf16_supported = answering(
    "is_bf16_supported", lambda including_emulation=True: False, "Return False.",
    ">>> torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float32\ntorch.float32",
)  # fmt: skip
is_tf32_supported = answering("is_tf32_supported", lambda: False, "Return False.")

_COMPILED = "nothing is compiled for any device of this kind."
get_arch_list = answering("get_arch_list", lambda: [], f"Return an empty list: {_COMPILED}")
get_gencode_flags = answering("get_gencode_flags", lambda: "", f"Return an empty text: {_COMPILED}")


# Random numbers: the device has no generator ------------------------------------------------------


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


seed = answering("seed", lambda: None, "Seed the device's generator with a random number: there is none.")
seed_all = answering("seed_all", lambda: None, "Seed all devices' generators with a random number: there are none.")
get_rng_state_all = answering(
    "get_rng_state_all", lambda: [], "Return the states of all devices' generators: an empty list."
)
set_rng_state = answering(
    "set_rng_state", lambda new_state, device=None: None, "Set the state of the device's generator: there is none.",
    ">>> torch.cuda.set_rng_state(torch.get_rng_state())",
)  # fmt: skip
set_rng_state_all = answering(
    "set_rng_state_all", lambda new_states: None, "Set the states of all devices' generators: there are none.",
    ">>> torch.cuda.set_rng_state_all(torch.cuda.get_rng_state_all())",
)  # fmt: skip


# Memory: always 0 bytes ---------------------------------------------------------------------------

empty_cache = answering("empty_cache", lambda: None, "Free cached memory of the device: there is none.")
memory_allocated = answering("memory_allocated", lambda device=None: 0, "Return 0.")
max_memory_allocated = answering("max_memory_allocated", lambda device=None: 0, "Return 0.")
memory_reserved = answering("memory_reserved", lambda device=None: 0, "Return 0.")
max_memory_reserved = answering("max_memory_reserved", lambda device=None: 0, "Return 0.")
memory_stats = answering("memory_stats", lambda device=None: collections.OrderedDict(), "Return an empty dict.")
memory_stats_as_nested_dict = answering("memory_stats_as_nested_dict", lambda device=None: {}, "Return an empty dict.")
reset_peak_memory_stats = answering(
    "reset_peak_memory_stats", lambda device=None: None, "Reset the peak of memory use, which is 0."
)
reset_accumulated_memory_stats = answering(
    "reset_accumulated_memory_stats", lambda device=None: None, "Reset the totals of memory use, which are 0."
)


# Streams: the only one is None --------------------------------------------------------------------


class StreamContext(Idle):
    """A context manager for a stream, without effect: the only stream is None.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream


def stream(stream: Any) -> StreamContext:
    """Return a context manager for a stream, without effect: the only stream is None.

    Example:
        >>> with torch.cuda.stream(None):
        ...     y = torch.ones(2) * 2
    """
    return StreamContext(stream)


set_stream = answering(
    "set_stream", lambda stream: None, "Set the current stream, which can only be None.",
    ">>> torch.cuda.set_stream(None)",
)  # fmt: skip


class device_of(StreamContext):
    """A context manager that selects a tensor's device, without effect: no tensor is on a device of this kind.

    Example:
        >>> with torch.cuda.device_of(torch.ones(2)):
        ...     y = torch.ones(2) * 2
    """


# `torch.accelerator` ---------------------------------------------------------------------------------


def current_accelerator(check_available: bool = False) -> device | None:
    """Return None: there is no accelerator.

    Example:
        >>> torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
        'cpu'
    """
    return None


class device_index(Idle):
    """Make an accelerator the current one inside a `with` block; None has no effect.

    Raises:
        RuntimeError: the block is entered with an index.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
