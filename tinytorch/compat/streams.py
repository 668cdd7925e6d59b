"""`torch.Stream`, `torch.Event` and `torch.get_device_module`; the only device is the CPU."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from tinytorch.core.device import device as _device

from .names import Idle

__all__ = ["Event", "Stream", "get_device_module"]


class _OnDevice(Idle):
    """The base of streams and events. On the CPU an operation has finished when it returns: nothing is queued."""

    device_index = -1

    def __init__(self, device: Any = None, **options: Any) -> None:
        self.device = _device("cpu" if device is None else device)
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.device_type = self.device.type

    def query(self) -> bool:
        """Return True: all work has finished."""
        return True

    def synchronize(self) -> None:
        """Do nothing: all work has finished."""

    def record(self, stream: Any = None) -> None:
        """Raise RuntimeError, as in PyTorch: the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")


class Stream(_OnDevice):
    """A device's queue of work: the only one of the CPU.

    Args:
        priority: has no effect.

    Example:
        >>> with torch.Stream() as stream:
        ...     y = torch.ones(2) * 2
        >>> stream.query()
        True
    """

    stream_id = 0

    def __init__(self, device: Any = None, *, priority: int = 0) -> None:
        super().__init__(device)

    def __enter__(self) -> Any:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash(Stream)

    def wait_event(self, event: Event) -> None:
        """Do nothing: the event has happened."""

    def wait_stream(self, stream: Stream) -> None:
        """Raise RuntimeError, as in PyTorch: the CPU has no events."""
        self.record()

    record_event = _OnDevice.record


class Event(_OnDevice):
    """A marker in a stream, which cannot be recorded on the CPU.

    Args:
        enable_timing, blocking, interprocess: have no effect.

    Example:
        >>> torch.Event().query()
        True
    """

    def wait(self, stream: Any = None) -> None:
        """Do nothing: no event is recorded."""


def get_device_module(device: Any = None) -> ModuleType:
    """Return the module for a type of device: `torch.cpu`, `torch.cuda` and so on.

    Example:
        >>> torch.get_device_module("cpu").device_count()
        1
    """
    if not (device is None or isinstance(device, (str, _device))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    device_type = _device("cpu" if device is None else device).type
    try:
        return importlib.import_module(f"tinytorch.{device_type}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        ) from None
