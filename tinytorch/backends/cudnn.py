"""cuDNN's switches: programs may set them; without a GPU they have no effect, as in PyTorch."""

from __future__ import annotations

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available"]

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Return False."""
    return False
