"""Layers that change only the shape."""

from __future__ import annotations

from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules._family import ReprLayer, layer

__all__ = ["Flatten", "Unflatten"]


@layer(shown="start_dim end_dim")
class Flatten(ReprLayer):
    """Merges the dimensions from `start_dim` to `end_dim` into one; by default all but the batch.

    Example:
        >>> torch.nn.Flatten()(torch.ones(32, 1, 28, 28)).shape
        torch.Size([32, 784])
    """

    start_dim: int = 1
    end_dim: int = -1

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)


@layer(shown="dim unflattened_size")
class Unflatten(ReprLayer):
    """Splits the dimension `dim` into dimensions of the sizes `unflattened_size`.

    Example:
        >>> torch.nn.Unflatten(1, (2, 5))(torch.ones(3, 10)).shape
        torch.Size([3, 2, 5])
    """

    dim: int
    unflattened_size: Any

    def __post_init__(self) -> None:
        if not isinstance(self.unflattened_size, (tuple, list)):
            kind = type(self.unflattened_size).__name__
            raise TypeError(f"unflattened_size must be a tuple of ints, but found type {kind}")
        for i, size in enumerate(self.unflattened_size):
            if not isinstance(size, int):
                kind = type(size).__name__
                raise TypeError(f"unflattened_size must be tuple of ints, but found element of type {kind} at pos {i}")

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)
