"""`torch._VF`: the functions of `torch`; older recurrent layers call them by this name."""

from __future__ import annotations

from typing import Any

import tinytorch


def _add_relu(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return `relu(input + alpha * other)`.

    Example:
        >>> torch._VF._add_relu(torch.tensor([1.0, -1.0]), torch.tensor([1.0, -1.0]))
        tensor([2., 0.])
    """
    return tinytorch.relu(tinytorch.add(input, other, alpha=alpha))


def __getattr__(name: str) -> Any:
    return getattr(tinytorch, name)
