"""The processor."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Return "DEFAULT": NumPy chooses among its own kernels."""
    return "DEFAULT"
