"""PyTorch's switch for the fast path of attention; here it affects only where results imitate that path."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = [True]


def get_fastpath_enabled() -> bool:
    """Return the value of `set_fastpath_enabled`, by default True."""
    return _enabled[0]


def set_fastpath_enabled(value: bool) -> None:
    """Set whether the fast path may be used."""
    _enabled[0] = value
