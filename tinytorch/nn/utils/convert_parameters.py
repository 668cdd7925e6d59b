"""Conversion between the parameters of a model and one vector."""

from __future__ import annotations

from collections.abc import Iterable

from tinytorch.core.tensor import Tensor
from tinytorch.ops.join import cat
from tinytorch.ops.members import typename

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Return the elements of all parameters in one vector, differentiably.

    Example:
        >>> torch.nn.utils.parameters_to_vector([torch.ones(2), torch.zeros(1, 1)])
        tensor([1., 1., 0.])
    """
    return cat([param.view(-1) for param in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give the parameters, in their order, the slices of `vec` as their data (they share its memory).

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2, 1))
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])
        >>> w.detach()
        tensor([[1.],
                [2.]])
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {typename(vec)}")
    start = 0
    for param in parameters:
        end = start + param.numel()
        param.data = vec[start:end].view_as(param).data
        start = end
