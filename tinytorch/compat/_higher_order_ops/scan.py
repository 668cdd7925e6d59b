"""`scan`: a recurrence along a dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.reduce import axis_of
from tinytorch.utils._pytree import tree_flatten, tree_unflatten

from .._higher_order_ops.map import stacked

__all__ = ["scan"]


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Apply a recurrence along a dimension: `state, y = combine_fn(state, x)` for each slice `x` of `xs`.

    Args:
        combine_fn: takes a state and a slice, returns the next state and a result.
        init: the first state, a tensor or a nested structure of tensors.
        xs, dim, reverse: as for `associative_scan`.

    Returns:
        The last state, and the results stacked along `dim`, in the order of the slices.

    Raises:
        RuntimeError: the state holds a value that is not a tensor, or the dimension is empty or differs in length.
        IndexError: `dim` is out of range.

    Example:
        >>> torch._higher_order_ops.scan(lambda s, x: (s + x, s * 2), torch.tensor(0), torch.tensor([1, 2, 3]))
        (tensor(6), tensor([0, 2, 6]))
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    for what, tree in (("init", init), ("xs", xs)):
        for leaf in tree_flatten(tree)[0]:
            if not isinstance(leaf, Tensor):
                raise RuntimeError(f"All {what} leaves must be a Tensor but got {leaf}")
    leaves, form = tree_flatten(xs)
    if not leaves:
        return init, []
    axes = [axis_of(dim, leaf.ndim, "scan") for leaf in leaves]
    lengths = {leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True)}
    if 0 in lengths:
        raise RuntimeError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if len(lengths) > 1:
        raise RuntimeError(f"All xs leaves must have one length along dimension {dim}: got {sorted(lengths)}")
    count = lengths.pop()
    state, results = init, []
    for i in reversed(range(count)) if reverse else range(count):
        x = [leaf.select(axis, i) for leaf, axis in zip(leaves, axes, strict=True)]
        pair = combine_fn(state, tree_unflatten(x, form))
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise RuntimeError(f"Expect combine_fn to return a tuple (next_carry, y) but got {type(pair)}")
        state, result = pair
        results.append(result)
    return state, stacked(results[::-1] if reverse else results, axes[0])
