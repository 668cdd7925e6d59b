"""OpenMP: not used."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False: NumPy does the work."""
    return False
