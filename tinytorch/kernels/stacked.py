"""Functions of stacks: arrays whose first dimension counts runs of one program (`tinytorch.compiler.sweep`).

Most steps of a program are functions of stacks already, such as elementwise ones. `each` calls any other kernel once
per run, and `view_of` makes the views of all runs at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .places import is_dense
from .products import SMALL, product
from .programs import Bailout

Array = Any

__all__ = [
    "affine",
    "aligned",
    "all_hold",
    "each",
    "folded",
    "loss",
    "matrices",
    "on_each",
    "over",
    "several",
    "stack_like",
    "view_of",
    "views_of",
]


def aligned(x: Array, ndim: int) -> Array:
    """Return a view of a stack with `ndim` dimensions, so that it broadcasts with a stack of larger arrays."""
    return x.reshape(x.shape[0], *[1] * (ndim - x.ndim), *x.shape[1:])


def stack_like(array: Array, runs: int) -> Array:
    """Return an uninitialized stack of arrays with the strides of `array`, which has no gaps."""
    if array.flags.c_contiguous or not is_dense(array):
        return np.empty((runs, *array.shape), array.dtype)
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    made = np.empty((runs, *[array.shape[d] for d in order]), array.dtype)
    return made.transpose(0, *[1 + order.index(d) for d in range(array.ndim)])


def each(call: Callable[..., Any], runs: int, *arrays: Array) -> Array:
    """Return the stack of the results of `call(k, *arrays)` for every run k."""
    first = np.asarray(call(0, *arrays))
    made = stack_like(first, runs)
    made[0] = first
    for k in range(1, runs):
        made[k] = call(k, *arrays)
    return made


def several(call: Callable[..., Any], runs: int, *arrays: Array) -> tuple[Array | None, ...]:
    """Return the stacks of the results of `call(k, *arrays)`, which returns several."""
    first = call(0, *arrays)
    made = tuple([None if x is None else stack_like(np.asarray(x), runs) for x in first])
    for k in range(runs):
        for stack, x in zip(made, call(k, *arrays) if k else first, strict=True):
            if stack is not None:
                stack[k] = x
    return made


def on_each(call: Callable[..., Any], runs: int, *arrays: Array) -> None:
    """Call `call(k, *arrays)`, which writes into its first array, for every run k."""
    for k in range(runs):
        call(k, *arrays)


def view_of(call: Callable[..., Any], runs: int, *arrays: Array) -> Array:
    """Return the stack of the views that `call(k, *arrays)` returns: of the first array, at the same places in each."""
    return _repeated(call(0, *arrays), runs, arrays[0])


def views_of(call: Callable[..., Any], runs: int, *arrays: Array) -> tuple[Array, ...]:
    """Return the stacks of views of a `call` that returns several (see `view_of`)."""
    return tuple([_repeated(x, runs, arrays[0]) for x in call(0, *arrays)])


def _repeated(view: Array, runs: int, stack: Array) -> Array:
    strides = (stack.strides[0], *view.strides)
    return np.lib.stride_tricks.as_strided(view, (runs, *view.shape), strides)


def matrices(a: Array, b: Array, a_turned: bool = False, b_turned: bool = False, out: Array | None = None) -> Array:
    """Return the products of floats (runs, m, k) and (runs, k, n), one of which may be a single matrix.

    They are those of `product` for each run, bit for bit: it also leaves small ones to BLAS.

    Args:
        a_turned, b_turned: the matrices are transposed first.
        out: memory for the result.
    """
    a, b = (x.swapaxes(-1, -2) if turned else x for x, turned in ((a, a_turned), (b, b_turned)))
    if a.shape[-2] * a.shape[-1] * b.shape[-1] < SMALL:
        return np.matmul(a, b, out=out)
    return product(a, b, out=out)


def affine(x: Array, weight: Array, bias: Array | None, out: Array | None = None) -> Array:
    """Return the products of (runs, ..., k) and the transposed weights (runs, n, k), plus the biases (runs, n).

    What is the same in all runs has no first dimension: a weight, a bias, or a matrix `x`.
    """
    rows = x.reshape(len(x), -1, x.shape[-1]) if x.ndim > 3 else x
    made = matrices(rows, weight, b_turned=True, out=None if out is None else out.reshape(len(out), -1, out.shape[-1]))
    if bias is not None:
        np.add(made, bias[:, None] if bias.ndim == 2 else bias, out=made)
    return made.reshape(len(made), *x.shape[1:-1], -1) if x.ndim > 3 else made


def reduced(losses: Array, reduction: str) -> Array:
    """Return the mean or the sum of each run's losses."""
    total = np.add.reduce(losses.reshape(len(losses), -1), 1)
    return total / np.prod(losses.shape[1:]) if reduction == "mean" else total


def loss(kernel: Callable[..., Array], x: Array, y: Array, reduction: str, *others: Any) -> Array:
    """Return each run's loss by a kernel whose losses are elementwise before they are reduced."""
    return reduced(kernel(x, y, "none", *others), reduction).astype(x.dtype, copy=False)


def folded(kernel: Callable[..., Any], *args: Any) -> tuple[Any, ...]:
    """Return what a kernel returns that treats each index of the first dimension of all arrays independently."""
    runs = next(len(x) for x in args if isinstance(x, np.ndarray))
    flat = [x.reshape(-1, *x.shape[2:]) if isinstance(x, np.ndarray) else x for x in args]
    return tuple([None if x is None else x.reshape(runs, -1, *x.shape[1:]) for x in kernel(*flat)])


def over(kernel: Callable[..., Array], x: Array, dim: Any, keepdim: bool, dtype: Any) -> Array:
    """Return what a reduction returns for each run."""
    if dim is None or dim == ():
        found = kernel(x.reshape(len(x), -1), 1, False, dtype=dtype)
        return found.reshape(len(x), *[1] * (x.ndim - 1)) if keepdim else found
    dims = [d % (x.ndim - 1) + 1 for d in ((dim,) if isinstance(dim, int) else dim)]
    return kernel(x, tuple(dims), keepdim, dtype=dtype)


def all_hold(x: Array, expected: bool) -> None:
    """Raise Bailout if the truth value of a number is not the recorded one in a run."""
    if (x.astype(bool) != expected).any():
        raise Bailout
