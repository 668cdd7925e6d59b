"""PyTorch's `torch.utils.hooks`: what registering a hook returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that a file cannot hold, as PyTorch does; returns the function itself.

    Example:
        >>> @torch.utils.hooks.unserializable_hook
        ... def hook(g):
        ...     return g
        >>> hook.__torch_unserializable__
        True
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
