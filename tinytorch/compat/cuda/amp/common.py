"""`torch.cuda.amp.common`."""

from __future__ import annotations

from ...absent import is_available

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Return whether there is no device for mixed precision: always, there is no GPU."""
    return not is_available()
