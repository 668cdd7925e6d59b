"""`torch.cond` and `torch.while_loop`: control flow that depends on tensors, by Python's own `if` and `while`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.func.pytree import flatten

__all__ = ["cond", "while_loop"]


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """Return `true_fn(*operands)` if `pred` holds, else `false_fn(*operands)`.

    Args:
        pred: a bool, or a tensor of one element.
        operands: nested tuples, lists and dicts of tensors.

    Raises:
        RuntimeError: `operands` is something else.

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
    _check_operands("operands", operands)
    return true_fn(*operands) if pred else false_fn(*operands)


def while_loop(
    cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: tuple[Any, ...] | list[Any]
) -> Any:
    """Run `values = body_fn(*values)` while `cond_fn(*values)` holds, and return the values.

    Args:
        cond_fn: returns a bool, or a tensor of one element.
        body_fn: takes the values, and returns the same number of values.

    Raises:
        RuntimeError: `body_fn` returns another number of values.

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


def _check_operands(name: str, operands: Any) -> None:
    leaves = flatten(operands)[0] if isinstance(operands, (tuple, list)) else None
    if leaves is None or not all(isinstance(leaf, (Tensor, int)) for leaf in leaves):
        raise RuntimeError(
            f"Expect {name} to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but "
            f"got {operands}."
        )
