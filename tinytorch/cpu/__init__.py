"""`torch.cpu`: the one device that there is, with the functions that other devices have (floor 4)."""

from __future__ import annotations

from typing import Any

from tinytorch.cpu import amp

__all__ = ["Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "is_available",
           "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


class Stream:
    """The CPU's one queue of work, in which everything is done at once."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority


class StreamContext:
    """Do what is inside a `with` block on a stream: there is only one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


_stream = Stream()


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return True."""
    return True


def device_count() -> int:
    """Return 1."""
    return 1


def current_device() -> str:
    """Return "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the device: there is only one."""


def synchronize(device: Any = None) -> None:
    """Wait for all work: it is done when an operation returns."""


def current_stream(device: Any = None) -> Stream:
    """Return the one stream."""
    return _stream


def stream(stream: Any) -> StreamContext:
    """Return a context manager for a stream."""
    return StreamContext(stream)
