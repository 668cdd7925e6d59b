"""Apple's GPUs: not available."""

from __future__ import annotations

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Return False: tinytorch runs on the CPU.

    Example:
        >>> torch.backends.mps.is_available()
        False
    """
    return False


def is_built() -> bool:
    """Return False."""
    return False
