"""Layers that change only the shape."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules._family import ReprLayer

__all__ = ["Flatten", "Unflatten"]


class Flatten(ReprLayer):
    """Merges the dimensions from `start_dim` to `end_dim` into one; by default all but the batch.

    Example:
        >>> torch.nn.Flatten()(torch.ones(32, 1, 28, 28)).shape
        torch.Size([32, 784])
    """

    _repr_attributes = "start_dim end_dim"

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the flattened tensor, a view where that is possible."""
        return input.flatten(self.start_dim, self.end_dim)


class Unflatten(ReprLayer):
    """Splits the dimension `dim` into dimensions of the sizes `unflattened_size`.

    Raises:
        TypeError: `unflattened_size` is not a tuple of ints.

    Example:
        >>> torch.nn.Unflatten(1, (2, 5))(torch.ones(3, 10)).shape
        torch.Size([3, 2, 5])
    """

    _repr_attributes = "dim unflattened_size"

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
            )
        for i, size in enumerate(unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {i}"
                )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the tensor with the dimension split."""
        return input.unflatten(self.dim, self.unflattened_size)
