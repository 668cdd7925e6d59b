"""`torch.fx._compatibility`: marks of an interface's stability, without effect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compatibility"]

F = TypeVar("F")

#: The marked objects as keys, and those whose interface stays.
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[F], F]:
    """Return a decorator that returns its argument; the mark says whether later versions keep the interface.

    Example:
        >>> @torch.fx._compatibility.compatibility(is_backward_compatible=True)
        ... def double(x):
        ...     return 2 * x
        >>> double(3)
        6
    """

    def mark(function: F) -> F:
        _MARKED_WITH_COMPATIBILITY.setdefault(function)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(function)
        return function

    return mark
