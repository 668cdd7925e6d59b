"""Steps of optimizers: a parameter's array and its state, changed in place.

The arguments `sign, stays, decay` of a step, its `pull`, are the sign of the gradient (-1 to maximize), the factor of
the parameter before the step (decoupled weight decay), and the factor of the parameter in the gradient (weight decay).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tinytorch.kernels.native import twin

Array = Any

#: Elements updated at a time: few enough that the pieces of parameter, gradient, buffers and
#: scratch stay in the cache, and enough that the overhead of a call is negligible.
#: Adam on 12 million float32, measured: whole arrays 22.6 ms, 2**16 14.7 ms, 2**14 17.4 ms.
BLOCK = 2**16
#: Below this many elements the overhead of calls dominates.
SMALL = 2**12


def blocks(*arrays: Any, scratch: int, pull: tuple[float, float, float] = (1, 1, 0)) -> Iterator[tuple[Any, ...]]:
    """Yield matching pieces of `arrays`, each time with `scratch` temporary arrays of their shape.

    The pieces are views: writing into them writes into the arrays. With a `pull`, the first two arrays are a parameter
    and its gradient; the pull is applied, and the adjusted gradient yielded in place of the gradient. It is written
    into the first temporary array, unless it equals the gradient.
    """
    first = arrays[0]
    if first.size < SMALL or not all(a.flags.c_contiguous for a in arrays):
        # Too small to gain from blocks, or (rarely, a transposed view) without a common order in memory.
        yield _pulled((*arrays, *[np.empty_like(first) for _ in range(scratch)]), scratch, pull)
        return
    temporaries = [np.empty_like(first, shape=(min(BLOCK, first.size),)) for _ in range(scratch)]
    flat = [a.reshape(-1) for a in arrays]
    for start in range(0, first.size, BLOCK):
        cut = [a[start : start + BLOCK] for a in flat]
        yield _pulled((*cut, *[a[: cut[0].size] for a in temporaries]), scratch, pull)


def _pulled(pieces: tuple[Any, ...], scratch: int, pull: tuple[float, float, float]) -> tuple[Any, ...]:
    if pull == (1, 1, 0):
        return pieces
    sign, stays, decay = pull
    p, g, *rest = pieces
    d, s = rest[len(rest) - scratch :][:2]
    if sign < 0:
        g = np.negative(g, out=d)
    if stays != 1:
        np.multiply(p, stays, out=p)
    if decay:
        g = np.add(g, np.multiply(p, decay, out=s), out=d)
    return p, g, *rest


@twin
def sgd(
    p: Array, g: Array, buffer: Array | None, sign: float, stays: float, decay: float,
    lr: float, momentum: float, entering: float, nesterov: bool, starts: bool,
) -> None:  # fmt: skip
    """Make a step of SGD; `entering` is the factor of the gradient in the buffer, which `starts` as the gradient."""
    arrays = [p, g] if buffer is None else [p, g, buffer]
    for p, g, *optional, d, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `g` is the adjusted gradient (the gradient or `d`); `s` holds products.
        for b in optional:
            if starts:
                np.copyto(b, g)
            else:
                np.multiply(b, momentum, out=b)
                np.add(b, g if entering == 1 else np.multiply(g, entering, out=s), out=b)
            g = np.add(g, np.multiply(b, momentum, out=s), out=d) if nesterov else b
        np.subtract(p, np.multiply(g, lr, out=s), out=p)


@twin
def adam(
    p: Array, g: Array, m: Array, v: Array, greatest: Array | None, sign: float, stays: float, decay: float,
    entering: float, beta2: float, entering_square: float, scale: float, eps: float,
) -> None:  # fmt: skip
    """Make a step of Adam: update the averages `m`, `v` of gradient and square; subtract `scale * m / (√v + eps)`."""
    arrays = [array for array in (p, g, m, v, greatest) if array is not None]
    for p, g, m, v, *optional, _, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `s` holds intermediate results.
        np.subtract(g, m, out=s)
        np.add(m, np.multiply(s, entering, out=s), out=m)
        np.multiply(np.square(g, out=s), entering_square, out=s)
        np.add(np.multiply(v, beta2, out=v), s, out=v)
        for w in optional:
            v = np.maximum(w, v, out=w)
        np.add(np.sqrt(v, out=s), eps, out=s)
        np.multiply(np.divide(m, s, out=s), scale, out=s)
        np.subtract(p, s, out=p)


@twin
def rmsprop(
    p: Array, g: Array, v: Array, m: Array | None, b: Array | None, sign: float, stays: float, decay: float,
    lr: float, alpha: float, entering: float, eps: float, momentum: float,
) -> None:  # fmt: skip
    """Make a step of RMSprop, centered if there is an average `m`, with momentum if there is a buffer `b`."""
    centered, arrays = m is not None, [array for array in (p, g, v, m, b) if array is not None]
    for p, g, v, *optional, _, s in blocks(*arrays, scratch=2, pull=(sign, stays, decay)):
        # `s` holds intermediate results.
        np.multiply(np.square(g, out=s), entering, out=s)
        np.add(np.multiply(v, alpha, out=v), s, out=v)
        if centered:
            m = optional[0]
            np.subtract(g, m, out=s)
            np.add(m, np.multiply(s, entering, out=s), out=m)
            np.subtract(v, np.square(m, out=s), out=s)
            np.sqrt(s, out=s)
        else:
            np.sqrt(v, out=s)
        np.divide(g, np.add(s, eps, out=s), out=s)
        if b is not None:
            buffer = optional[-1]
            np.add(np.multiply(buffer, momentum, out=buffer), s, out=buffer)
            np.multiply(buffer, lr, out=s)
        else:
            np.multiply(s, lr, out=s)
        np.subtract(p, s, out=p)
