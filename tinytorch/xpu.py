"""`torch.xpu`: Intel's GPUs, of which there are none (floor 4)."""

from __future__ import annotations

__all__ = ["device_count", "is_available", "manual_seed"]


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


def manual_seed(seed: int) -> None:
    """Seed the generator of the device: there is none, so nothing happens."""
