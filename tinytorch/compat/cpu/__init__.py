"""`torch.cpu`: the one device that there is, with the functions that other devices have."""

from __future__ import annotations

from typing import Any

from ..absent import StreamContext, stream
from ..cpu import amp

__all__ = ["Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "is_available",
           "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


class Stream:
    """The CPU's one queue of work, in which everything is done at once.

    Example:
        >>> stream = torch.cpu.Stream()
        >>> with torch.cpu.stream(stream):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority


_stream = Stream()


def is_available() -> bool:
    """Return True.

    Example:
        >>> torch.cpu.is_available()
        True
    """
    return True


def is_initialized() -> bool:
    """Return True.

    Example:
        >>> torch.cpu.is_initialized()
        True
    """
    return True


def device_count() -> int:
    """Return 1.

    Example:
        >>> torch.cpu.device_count()
        1
    """
    return 1


def current_device() -> str:
    """Return "cpu".

    Example:
        >>> torch.cpu.current_device()
        'cpu'
    """
    return "cpu"


def set_device(device: Any) -> None:
    """Choose the device: there is only one.

    Example:
        >>> torch.cpu.set_device(0)
        >>> torch.cpu.current_device()
        'cpu'
    """


def synchronize(device: Any = None) -> None:
    """Wait for all work: it is done when an operation returns.

    Example:
        >>> y = torch.ones(2) * 2
        >>> torch.cpu.synchronize()
    """


def current_stream(device: Any = None) -> Stream:
    """Return the one stream.

    Example:
        >>> with torch.cpu.stream(torch.cpu.current_stream()):
        ...     y = torch.ones(2) * 2
    """
    return _stream
