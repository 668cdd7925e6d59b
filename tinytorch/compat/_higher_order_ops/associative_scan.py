"""`associative_scan`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.reduce import axis_of
from tinytorch.utils._pytree import tree_flatten, tree_unflatten

from .._higher_order_ops.map import stacked

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return the prefix results of an associative function along a dimension, as `cumsum` does for `add`.

    Args:
        combine_fn: an associative function of two slices of `xs`, which returns a structure of the same form.
        xs: a tensor, or a nested structure of tensors.
        dim: the dimension of the slices.
        reverse: start with the last slice.
        combine_mode: "generic"; "pointwise" is for GPUs only.

    Raises:
        ValueError: an argument has a wrong type, or the dimension is empty or differs in length between tensors.
        IndexError: `dim` is out of range.

    Example:
        >>> torch._higher_order_ops.associative_scan(torch.mul, torch.tensor([1, 2, 3]), 0, combine_mode="generic")
        tensor([1, 2, 6])
    """
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, form = tree_flatten(xs)
    if not all(isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise":
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    axes = [axis_of(dim, leaf.ndim, "associative_scan") for leaf in leaves]
    lengths = [leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True)]
    if 0 in lengths:
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if len(set(lengths)) > 1:
        raise ValueError(f"All xs leaves must have one length along dimension {dim}: got {lengths}")
    columns = [leaf.unbind(axis) for leaf, axis in zip(leaves, axes, strict=True)]
    slices = [tree_unflatten(list(row), form) for row in zip(*columns, strict=True)]
    if reverse:
        slices.reverse()
    results = slices[:1]
    for x in slices[1:]:
        results.append(combine_fn(results[-1], x))
    return stacked(results[::-1] if reverse else results, axes[0])
