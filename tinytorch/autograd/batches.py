"""Derivatives for a batch of vectors by one walk or one call, whose tensors are batched (`ops/batching.py`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.autograd.batched_function import function_of_batch as function_of_batch
from tinytorch.autograd.forward_ad import Level
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.ops.batching import Batch, batched, physical, plain, zeros_like
from tinytorch.ops.join import cat

__all__ = ["forward_jacobian", "gradients_of_batch", "reverse_jacobian", "tangent_of"]


def gradients_of_batch(
    grad: Callable[..., Any], size: int, outputs: Any, inputs: Any, vectors: Any, given: dict[str, Any]
) -> list[Tensor | None]:
    """Return the gradients for vectors whose first dimension is a batch, with the batch as their first dimension.

    Args:
        grad: `autograd.grad`; `given` are further arguments of it.
        vectors: per output the vectors.
    """
    if isinstance(vectors, Tensor):
        vectors = (vectors,)
    with Batch(size) as level:
        found = grad(outputs, inputs, [None if v is None else batched(v, level) for v in vectors], **given)
        return in_full(found.values() if isinstance(found, dict) else found, level)


def in_full(tensors: Sequence[Any] | Any, level: Batch) -> list[Any]:
    """Return tensors with the batch of a level as their first dimension; None stays None."""
    return [None if each is None else physical(each, level) for each in tensors]


def _units(like: Tensor, start: int, count: int) -> Tensor:
    """Return tensors like `like`, stacked: each is 1 at one element, from number `start` on, and 0 elsewhere."""
    n = like.numel()
    array = np.zeros_like(plain(like)._array, shape=(count, n), order="C")
    np.fill_diagonal(array[:, start:], 1)
    units: Tensor = wrap(array.reshape(count, *like.shape))
    return units


def reverse_jacobian(
    rows: Callable[[int, Tensor, Tensor], Sequence[Tensor]], outs: Sequence[Tensor], xs: Sequence[Tensor],
    chunk_size: int | None = None,
) -> list[list[Tensor]]:  # fmt: skip
    """Return the blocks `[i][j]` of the Jacobian for output i and input j, by one backward pass per output.

    Args:
        rows: from the number of an output, the output, and a batch of vectors, to the gradients of the inputs.
        chunk_size: the most rows of a backward pass.
    """
    jacobian = []
    for number, out in enumerate(outs):
        n = out.numel()
        parts = []
        for start in range(0, n, chunk_size or max(n, 1)):
            count = min(chunk_size or n, n - start)
            with Batch(count) as level:
                found = rows(number, out, batched(_units(out, start, count), level))
                parts.append(in_full(found, level))
        blocks = []
        for j, x in enumerate(xs):
            shape = (*out.shape, *x.shape)
            columns = [part[j] for part in parts]
            if not columns:
                blocks.append(wrap(np.zeros_like(plain(out)._array, shape=shape)))
            else:
                blocks.append((columns[0] if len(columns) == 1 else cat(columns)).reshape(shape))
        jacobian.append(blocks)
    return jacobian


def forward_jacobian(
    func: Callable[..., Sequence[Tensor]], inputs: Sequence[Tensor], randomness: str = "error"
) -> list[list[Tensor]]:
    """Return the blocks `[i][j]` of the Jacobian for output i and input j, by one call of the function per input.

    Args:
        func: takes the level (None if no tangents are needed) and the inputs; returns a sequence of Tensors.
        randomness: as for `vmap`.
    """
    columns: list[list[Tensor] | None] = []  # [input][output]
    outs: Sequence[Tensor] = ()
    for j, x in enumerate(inputs):
        n = x.numel()
        if not n:
            columns.append(None)
            continue
        with Batch(n, randomness) as batch, Level() as level:
            outs = func(level, *inputs[:j], level.dual(x, batched(_units(x, 0, n), batch)), *inputs[j + 1 :])
            columns.append([tangent_of(level, out) for out in outs])
        outs = [physical(out, batch)[0] for out in outs]  # (if random numbers differ between columns, of the first)
        columns[j] = [physical(each, batch) for each in columns[j] or ()]
    if all([column is None for column in columns]):
        outs = func(None, *inputs)  # for the outputs' shapes
    blocks = []
    for i, out in enumerate(outs):
        row = []
        for j, x in enumerate(inputs):
            shape, column = (*out.shape, *x.shape), columns[j]
            if column is None:
                row.append(wrap(np.zeros_like(plain(out)._array, shape=shape)))
            else:
                row.append(column[i].movedim(0, -1).reshape(shape))
        blocks.append(row)
    return blocks


def tangent_of(level: Level, out: Tensor) -> Tensor:
    """Return the tangent of an output, zeros if it has none."""
    primal, tangent = level.unpack(out)
    return zeros_like(primal) if tangent is None else tangent
