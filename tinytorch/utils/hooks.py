"""`torch.utils.hooks`: the handle that registering a hook returns, and a mark for hooks that cannot be saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as not serializable, by the attribute that PyTorch uses, and return it.

    Example:
        >>> @torch.utils.hooks.unserializable_hook
        ... def hook(g):
        ...     return g
        >>> hook.__torch_unserializable__
        True
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
