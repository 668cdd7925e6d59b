"""The order of a result's dimensions in memory, by the rule of PyTorch's elementwise functions (`TensorIterator`).

NumPy's functions have nearly the same rule, but where two operands differ, their result is in C order, where PyTorch's
has the order of the first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .parallel import blockwise

Array = Any


def ordered(kernel: Callable[[Any, Any], Array], x: Any, y: Any) -> Array:
    """Return `blockwise(kernel, x, y)`, of two large arrays in the order that PyTorch derives from them."""
    if type(x) is type(y) is np.ndarray and x.shape == y.shape and x.strides != y.strides:
        order = order_of(x, y)
        turned = blockwise(kernel, x.transpose(order), y.transpose(order))
        return turned.transpose([order.index(d) for d in range(x.ndim)])
    return blockwise(kernel, x, y)


def arranged(out: Array, *operands: Any) -> Array:
    """Return a result, or a copy of it in the order that PyTorch derives from the operands."""
    arrays = [x for x in operands if isinstance(x, np.ndarray) and x.ndim]
    if out.size < 2 or all([x.strides == out.strides and x.shape == out.shape for x in arrays]):
        return out
    return in_order(out, innermost_first(out.shape, *[(x.shape, x.strides, x.itemsize) for x in arrays]))


def in_order(out: Array, order: tuple[int, ...]) -> Array:
    """Return a result, or a copy of it, whose dimensions are in this order in memory, the innermost first."""
    step = out.itemsize
    for d in order:
        if out.shape[d] > 1:
            if out.strides[d] != step:
                made = _empty(out, order)
                made[...] = out
                return made
            step *= out.shape[d]
    return out


def order_of(*arrays: Array) -> tuple[int, ...]:
    """Return the dimensions of a result of arrays of one shape in their order in memory, the outermost first."""
    return innermost_first(arrays[0].shape, *[(x.shape, x.strides, x.itemsize) for x in arrays])[::-1]


def empty_like(x: Array, dtype: Any = None) -> Array:
    """Return an uninitialized array whose dimensions are in the same order as those of `x`, without gaps."""
    made = np.empty_like(x, dtype)
    if 1 in x.shape and type(made) is np.ndarray:  # PyTorch keeps all strides of an array without gaps
        strides = tuple([step // x.itemsize * made.itemsize for step in x.strides])
        if all([n == 1 or a == b for n, a, b in zip(x.shape, strides, made.strides, strict=True)]):
            return np.ndarray(x.shape, made.dtype, strides=strides)
    elif 0 not in x.strides or x.size < 2:
        return made
    return _empty(x, innermost_first(x.shape, (x.shape, x.strides, x.itemsize)), dtype)


def copy(x: Array, dtype: Any = None) -> Array:
    """Return a copy, in another dtype if one is given, in the order of `x`."""
    if (0 in x.strides and x.size > 1) or 1 in x.shape:
        made = empty_like(x, dtype)
        made[...] = x
        return made
    return x.copy("K") if dtype is None else x.astype(dtype)


def _empty(like: Array, order: tuple[int, ...], dtype: Any = None) -> Array:
    """Return an uninitialized array of the shape of `like`; `order` has its dimensions from the innermost."""
    outermost_first = order[::-1]
    shape = tuple([like.shape[d] for d in outermost_first])
    made = np.empty_like(like, dtype, "C", shape=shape)
    return made.transpose([outermost_first.index(d) for d in range(len(shape))])


@functools.lru_cache(1024)
def innermost_first(shape: tuple[int, ...], *operands: tuple[tuple[int, ...], tuple[int, ...], int]) -> tuple[int, ...]:
    """Return the dimensions of the result of operands (shape, strides, size of an element), the innermost first.

    The first operand that tells two dimensions apart decides; one that is expanded along a dimension does not.
    """
    all_strides = [_strides(shape, *operand) for operand in operands]
    order = list(range(len(shape)))[::-1]
    for i in range(1, len(order)):
        here = i
        for j in range(i - 1, -1, -1):
            wrong = _wrong(shape, all_strides, order[j], order[here])
            if wrong:
                order[j], order[here] = order[here], order[j]
                here = j
            elif wrong is False:
                break
    return tuple(order)


def _wrong(shape: tuple[int, ...], all_strides: list[list[int]], inner: int, outer: int) -> bool | None:
    """Return whether two dimensions have to be exchanged; None if no operand says."""
    for strides in all_strides:
        a, b = strides[inner], strides[outer]
        if a and b:
            if a != b:
                return a > b
            if shape[inner] > shape[outer]:
                return True
    return None


def _strides(to: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...], size: int) -> list[int]:
    """Return the strides of an operand that is broadcast to a shape."""
    own = list(strides)
    for d in range(len(own) - 1, -1, -1):
        if shape[d] == 1 and not own[d]:  # NumPy's stride of a new dimension; PyTorch derives it from the next one
            own[d] = own[d + 1] * shape[d + 1] if d + 1 < len(own) else size
    missing = len(to) - len(own)
    return [0] * missing + [0 if n == 1 != to[d + missing] else own[d] for d, n in enumerate(shape)]
