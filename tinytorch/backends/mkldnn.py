"""Intel's oneDNN: not used; the switches have no effect."""

from __future__ import annotations

__all__ = ["deterministic", "enabled", "is_available"]

enabled = True
deterministic = False


def is_available() -> bool:
    """Return False: NumPy does the work."""
    return False
