"""`map`: a function applied to the slices of tensors along their first dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.ops.join import stack
from tinytorch.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["map"]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return `f(x, *args)` for each slice `x` of `xs` along the first dimension, stacked.

    Args:
        f: takes a structure like `xs`, and `args`; returns any structure of tensors.

    Raises:
        RuntimeError: the first dimension is empty, or differs in length between tensors.

    Example:
        >>> from tinytorch._higher_order_ops.map import map
        >>> map(lambda x, y: x.sum() + y, torch.ones(2, 3), torch.tensor(1.0))
        tensor([4., 4.])
    """
    leaves, form = tree_flatten(xs)
    lengths = {leaf.shape[0] for leaf in leaves}
    if len(lengths) > 1:
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got {lengths}.")
    if lengths == {0}:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    results = [f(tree_unflatten([leaf.select(0, i) for leaf in leaves], form), *args) for i in range(*lengths)]
    return stacked(results, 0)


def stacked(results: list[Any], dim: int) -> Any:
    """Stack structures of tensors, which have the same form, along `dim`: return a structure of that form."""
    flat = [tree_flatten(result) for result in results]
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    return tree_unflatten([stack(column, dim) for column in columns], flat[0][1])
