"""The package opt_einsum, which would choose the order of products in `einsum`: not used."""

from __future__ import annotations

from typing import Any

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled = False
strategy: str | None = None


def is_available() -> bool:
    """Return False."""
    return False


def get_opt_einsum() -> Any:
    """Return None: the package is not used."""
    return None
