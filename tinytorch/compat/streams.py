"""`torch.Stream`, `torch.Event` and `torch.get_device_module`, of any device; here there is the CPU."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from tinytorch.core.device import device as _device

from .absent import Idle

__all__ = ["Event", "Stream", "get_device_module"]


class _OnDevice(Idle):
    """What belongs to a device's queue of work: the CPU's, in which all is done when an operation returns."""

    device_index = -1

    def __init__(self, device: Any = None, **options: Any) -> None:
        self.device = _device("cpu" if device is None else device)
        if self.device.type != "cpu":
            raise RuntimeError(f"PyTorch is not linked with support for {self.device.type} devices")
        self.device_type = self.device.type

    def query(self) -> bool:
        """Return True: all work is done."""
        return True

    def synchronize(self) -> None:
        """Wait for all work: it is done."""

    def record(self, stream: Any = None) -> None:
        """Raise RuntimeError, as in PyTorch: the CPU marks nothing."""
        raise RuntimeError("cpu backend doesn't support events.")


class Stream(_OnDevice):
    """A queue of a device's work: the CPU's only one.

    Args:
        device: the CPU.
        priority: no matter.

    Raises:
        RuntimeError: there is no such device.

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
        """Let what follows wait for an event: it has happened."""

    def wait_stream(self, stream: Stream) -> None:
        """Raise RuntimeError, as in PyTorch: the CPU marks nothing."""
        self.record()

    record_event = _OnDevice.record


class Event(_OnDevice):
    """A mark in a stream, which the CPU cannot make.

    Args:
        device: the CPU.
        enable_timing, blocking, interprocess: no matter.

    Raises:
        RuntimeError: there is no such device.

    Example:
        >>> torch.Event().query()
        True
    """

    def wait(self, stream: Any = None) -> None:
        """Let a stream wait for the mark: there is none."""


def get_device_module(device: Any = None) -> ModuleType:
    """Return the module of a kind of devices: `torch.cpu`, `torch.cuda` and so on.

    Args:
        device: a device or its name; the CPU if None.

    Raises:
        RuntimeError: there is no such module.

    Example:
        >>> torch.get_device_module("cpu").device_count()
        1
    """
    if not (device is None or isinstance(device, (str, _device))):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = _device("cpu" if device is None else device).type
    try:
        return importlib.import_module(f"tinytorch.{kind}")
    except ModuleNotFoundError:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        ) from None
