"""Control flow that depends on tensors, by Python's own `if`, `while` and `for`: `torch.cond`, `torch.while_loop`.

`torch._higher_order_ops` has the other functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import tree_flatten, tree_unflatten
from tinytorch.kernels.reduce import axis_of
from tinytorch.ops.join import stack

__all__ = ["cond", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """Return `true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    Args:
        pred: a bool, or a tensor of one element.
        operands: nested tuples, lists and dicts of tensors.

    Example:
        >>> x = torch.ones(2)
        >>> torch.cond(x.sum() > 1, lambda x: x + 1, lambda x: x - 1, (x,))
        tensor([2., 2.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    leaves = tree_flatten(operands)[0] if isinstance(operands, (tuple, list)) else None
    if leaves is None or not all(isinstance(leaf, (Tensor, int)) for leaf in leaves):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]
) -> Any:
    """Run `values = body_fn(*values)` while `cond_fn(*values)` holds, and return the values.

    Args:
        cond_fn: returns a bool, or a tensor of one element.

    Example:
        >>> torch.while_loop(lambda i: i < 3, lambda i: (i + 1,), (torch.tensor(0),))
        (tensor(3),)
    """
    values = carried_inputs
    while cond_fn(*values):
        results = body_fn(*values)
        if not isinstance(results, (tuple, list)) or len(results) != len(values):
            raise RuntimeError(
                f"body_fn should return a tuple of {len(values)} values, as many as carried_inputs, but got {results!r}"
            )
        values = results
    return tuple(values)


# Loops over slices --------------------------------------------------------------------------------


def foreach_map(op: Callable[..., Any], *operands: Any, **kwargs: Any) -> list[Any]:
    """Return the results of `op` for the first elements of all operands that are lists, the second ones, and so on.

    An operand that is not a list is passed unchanged to each call.

    Example:
        >>> torch._higher_order_ops.foreach_map(torch.add, [torch.ones(1), torch.zeros(2)], 2)
        [tensor([3.]), tensor([2., 2.])]
    """
    lists = [operand for operand in operands if isinstance(operand, (list, tuple))]
    count = len(lists[0]) if lists else 0
    if any(len(tensors) != count for tensors in lists):
        raise ValueError("foreach_map: the lists must be of one length")
    return [op(*[x[i] if isinstance(x, (list, tuple)) else x for x in operands], **kwargs) for i in range(count)]


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """Return `f(x, *args)` for each slice `x` of `xs` along the first dimension, stacked.

    Args:
        f: takes a structure like `xs`, and `args`; returns any structure of tensors.

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
    return _stacked(results, 0)


def _stacked(results: list[Any], dim: int) -> Any:
    """Stack structures of tensors, which have the same form, along `dim`: return a structure of that form."""
    flat = [tree_flatten(result) for result in results]
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    return tree_unflatten([stack(column, dim) for column in columns], flat[0][1])


def _slices(function: str, leaves: list[Tensor], form: Any, dim: int, error: type[Exception]) -> tuple[list[Any], int]:
    """Return the slices of a structure of tensors along `dim`, which has one length, and the dimension of the first."""
    axes = [axis_of(dim, leaf.ndim, function) for leaf in leaves]
    lengths = {leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True)}
    if 0 in lengths:
        raise error("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    if len(lengths) > 1:
        raise error(f"All xs leaves must have one length along dimension {dim}: got {sorted(lengths)}")
    columns = [leaf.unbind(axis) for leaf, axis in zip(leaves, axes, strict=True)]
    return [tree_unflatten(list(row), form) for row in zip(*columns, strict=True)], axes[0]


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """Return the prefix results of an associative function along a dimension, as `cumsum` does for `add`.

    Args:
        combine_fn: an associative function of two slices of `xs`, which returns a structure of the same form.
        combine_mode: "generic"; "pointwise" is for GPUs only.

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
    slices, axis = _slices("associative_scan", leaves, form, dim, ValueError)
    if reverse:
        slices.reverse()
    results = slices[:1]
    for x in slices[1:]:
        results.append(combine_fn(results[-1], x))
    return _stacked(results[::-1] if reverse else results, axis)


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """Apply a recurrence along a dimension: `state, y = combine_fn(state, x)` for each slice `x` of `xs`.

    Args:
        combine_fn: takes a state and a slice, returns the next state and a result.
        init: the first state, a tensor or a nested structure of tensors.

    Returns:
        The last state, and the results stacked along `dim`, in the order of the slices.

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
    slices, axis = _slices("scan", leaves, form, dim, RuntimeError)
    state, results = init, []
    for x in reversed(slices) if reverse else slices:
        pair = combine_fn(state, x)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise RuntimeError(f"Expect combine_fn to return a tuple (next_carry, y) but got {type(pair)}")
        state, result = pair
        results.append(result)
    return state, _stacked(results[::-1] if reverse else results, axis)
