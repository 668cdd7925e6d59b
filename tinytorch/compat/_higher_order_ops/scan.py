"""`scan`: a state carried along a dimension."""

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
    """Carry a state along a dimension: `state, y = combine_fn(state, x)` for each part `x` of `xs`.

    Args:
        combine_fn: takes a state and a part, returns the next state and a result.
        init: the first state, a tensor or a structure of tensors.
        xs, dim, reverse: as for `associative_scan`.

    Returns:
        The last state, and the results stacked along `dim`, in the order of the parts.

    Raises:
        RuntimeError: the state holds something else than tensors, or the dimension is empty or of different lengths.
        IndexError: there is no such dimension.

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
        parts = [leaf.select(axis, i) for leaf, axis in zip(leaves, axes, strict=True)]
        made = combine_fn(state, tree_unflatten(parts, form))
        if not isinstance(made, (tuple, list)) or len(made) != 2:
            raise RuntimeError(f"Expect combine_fn to return a tuple (next_carry, y) but got {type(made)}")
        state, result = made
        results.append(result)
    return state, stacked(results[::-1] if reverse else results, axes[0])
