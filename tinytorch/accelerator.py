"""`torch.accelerator`, as PyTorch's quickstart asks it: there is none (floor 4)."""

from __future__ import annotations

from tinytorch.device import device

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> import tinytorch as torch
        >>> torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
        'cpu'
    """
    return False


def current_accelerator(check_available: bool = False) -> device | None:
    """Return None: there is no accelerator."""
    return None


def device_count() -> int:
    """Return 0."""
    return 0
