"""What is not there, and how it answers: devices above all (`torch.cuda` and `torch.xpu`, others in part).

As in PyTorch: seeding does nothing, no memory is in use, and what needs the device raises. The helpers, `answering`,
`refusing`, `Refused` and `Idle`, are for other modules too, whose functions do nothing or cannot do what they say.
"""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any, NoReturn

from tinytorch.core.device import without_cuda as without_cuda

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


# Ways to answer -----------------------------------------------------------------------------------


def answering(name: str, function: Callable[..., Any], does: str, example: str = "") -> Callable[..., Any]:
    """Return a function that always answers the same, with its name, a docstring, and an example in it.

    Args:
        function: a lambda with PyTorch's parameters that returns the answer.
        does: what the docstring says.
        example: lines as in an interpreter. By default a call without arguments, and what it returns.
    """
    function.__name__ = function.__qualname__ = name
    if not example:
        home = function.__module__.replace("tinytorch.absent", "tinytorch.cuda").removeprefix("tiny")
        answer = function()
        example = f">>> {home}.{name}()" + ("" if answer is None else f"\n{answer!r}")
    function.__doc__ = f"{does}\n\n    Example:\n        " + example.replace("\n", "\n        ") + "\n    "
    return function


def refusing(error: type[Exception], words: str) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever it is given."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: the device is not there."""
        raise error(words)

    return refuse


def is_refusing(value: Any) -> bool:
    """Return whether a value is such a function."""
    return getattr(value, "__code__", None) is refusing(OSError, "").__code__


def same(function: Any) -> Any:
    """Return what is given: for decorators that mark a function for what is not there."""
    return function


def marking(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return such a decorator."""
    return same


class Refused:
    """The base of classes that have no objects; programs ask whether they got one. Whoever makes one gets an error."""

    _error: tuple[type[Exception], str] = (NotImplementedError, "torch.fx: tinytorch traces no programs")

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: there are no objects of this class."""
        error, words = cls._error
        raise error(words)


class Idle:
    """Do what is inside a `with` block, and nothing else."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


# What is there: nothing ---------------------------------------------------------------------------

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


# Memory: none is in use ---------------------------------------------------------------------------

empty_cache = answering("empty_cache", lambda: None, "Free cached memory of the device: there is none.")
memory_allocated = answering("memory_allocated", lambda device=None: 0, "Return 0.")
max_memory_allocated = answering("max_memory_allocated", lambda device=None: 0, "Return 0.")
memory_reserved = answering("memory_reserved", lambda device=None: 0, "Return 0.")
max_memory_reserved = answering("max_memory_reserved", lambda device=None: 0, "Return 0.")
memory_stats = answering("memory_stats", lambda device=None: collections.OrderedDict(), "Return an empty dict.")
memory_stats_as_nested_dict = answering("memory_stats_as_nested_dict", lambda device=None: {}, "Return an empty dict.")
reset_peak_memory_stats = answering(
    "reset_peak_memory_stats", lambda device=None: None, "Forget the peak of memory use: there is none."
)
reset_accumulated_memory_stats = answering(
    "reset_accumulated_memory_stats", lambda device=None: None, "Forget what memory was used in all: none was."
)


# Streams: None is the only one --------------------------------------------------------------------


class StreamContext(Idle):
    """Do what is inside a `with` block on a stream: the only one that there can be, which changes nothing.

    Example:
        >>> with torch.cuda.StreamContext(None):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, stream: Any) -> None:
        self.stream = stream


def stream(stream: Any) -> StreamContext:
    """Return a context manager for a stream: the only one that there can be.

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
    """Make the device that a tensor is on the current one: none is on one of this kind, so nothing happens.

    Example:
        >>> with torch.cuda.device_of(torch.ones(2)):
        ...     y = torch.ones(2) * 2
    """
