"""`torch.fx._compatibility`: marks of an interface's stability, without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

__all__ = ["compatibility"]

F = TypeVar("F")


def compatibility(is_backward_compatible: bool) -> Callable[[F], F]:
    """Return a decorator that returns its argument; the mark says whether later versions keep the interface."""
    return lambda function: function
