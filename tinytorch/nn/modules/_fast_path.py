"""The fast path of attention: there is one path only; the switch is kept."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = [True]


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` was told, True by default."""
    return _enabled[0]


def set_fastpath_enabled(value: bool) -> None:
    """Keep whether a fast path may be used."""
    _enabled[0] = value
