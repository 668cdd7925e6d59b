"""`torch.cpu`: the functions that other devices' modules have, for the CPU."""

from __future__ import annotations

from typing import Any

from .absent import StreamContext, stream
from .names import answering

amp: Any

__all__ = ["Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "is_available",
           "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip


class Stream:
    """The CPU's only queue of work, in which an operation has finished when it returns.

    Example:
        >>> stream = torch.cpu.Stream()
        >>> with torch.cpu.stream(stream):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority


_stream = Stream()

is_available = answering("is_available", lambda: True, "Return True.")
is_initialized = answering("is_initialized", lambda: True, "Return True.")
device_count = answering("device_count", lambda: 1, "Return 1.")
current_device = answering("current_device", lambda: "cpu", 'Return "cpu".')
set_device = answering(
    "set_device", lambda device: None, "Select the device: there is only one.",
    ">>> torch.cpu.set_device(0)\n>>> torch.cpu.current_device()\n'cpu'",
)  # fmt: skip
synchronize = answering(
    "synchronize", lambda device=None: None, "Do nothing: an operation has finished when it returns."
)


def current_stream(device: Any = None) -> Stream:
    """Return the only stream.

    Example:
        >>> with torch.cpu.stream(torch.cpu.current_stream()):
        ...     y = torch.ones(2) * 2
    """
    return _stream
