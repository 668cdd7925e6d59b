"""`torch.accelerator`: the current accelerator, which PyTorch's quickstart asks for; there is none."""

from __future__ import annotations

from tinytorch.core.device import device

from .absent import Idle, device_count, is_available, refusing

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "get_device_capability", "get_memory_info", "is_available", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats", "reset_accumulated_memory_stats",
    "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def current_accelerator(check_available: bool = False) -> device | None:
    """Return None: there is no accelerator.

    Example:
        >>> torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
        'cpu'
    """
    return None


_refuse = refusing(RuntimeError, "Cannot access accelerator device when none is available.")

current_device_idx = current_device_index = current_stream = empty_cache = _refuse
get_device_capability = get_memory_info = max_memory_allocated = max_memory_reserved = _refuse
memory_allocated = memory_reserved = memory_stats = reset_accumulated_memory_stats = _refuse
reset_peak_memory_stats = set_device_idx = set_device_index = set_stream = synchronize = _refuse


class device_index(Idle):
    """Make an accelerator the current one inside a `with` block; None has no effect.

    Raises:
        RuntimeError: the block is entered with an index.
    """

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            _refuse()
