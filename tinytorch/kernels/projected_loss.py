"""The cross entropy of scores `x W^T + b`, chunk by chunk of the samples: the scores never exist as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def sample_weights(target: Array, weight: Array | None, ignore_index: int, classes: int, kind: Any) -> Array:
    """Return the weight of each sample's loss, of dtype `kind`: its class's weight, and 0 where it is ignored.

    Raises:
        IndexError: a target is neither a class nor ignored.
    """
    taken = target != ignore_index
    wrong = target[taken & ((target < 0) | (target >= classes))]
    if wrong.size:
        raise IndexError(f"Target {int(wrong[0])} is out of bounds.")
    if weight is None:
        return taken.astype(kind)
    return np.where(taken, weight.astype(kind)[np.where(taken, target, 0)], 0).astype(kind, copy=False)


def in_chunks(
    x: Array, matrix: Array, target: Array, bias: Array | None, scales: Array, rows: int, kind: Any,
    losses: bool, wanted: tuple[bool, bool, bool],
) -> tuple[Array | None, list[Array | None]]:  # fmt: skip
    """Return the losses of all samples times `scales`, or None, and the gradients of their sum by x, matrix and bias.

    Args:
        x: the samples, (N, F).
        matrix: the weights of the linear layer, (C, F); `bias`, (C,), is added.
        target: the classes, (N,).
        scales: a factor of each sample's loss, (N,); samples with factor 0 may have any target.
        rows: the number of samples in a chunk.
        kind: the dtype to compute with.
        losses: whether the losses are wanted.
        wanted: of which arguments the gradients are wanted; others are None.
    """
    wide = matrix.astype(kind, copy=False)
    added = None if bias is None else bias.astype(kind, copy=False)
    classes = np.where(scales != 0, target, 0)
    found = np.empty(len(x), kind) if losses else None
    by_x = np.empty(x.shape, x.dtype) if wanted[0] else None
    by_matrix = np.zeros(matrix.shape, kind) if wanted[1] else None
    by_bias = np.zeros(matrix.shape[0], kind) if wanted[2] else None
    for start in range(0, len(x), rows):
        part = slice(start, start + rows)
        samples, own = x[part].astype(kind, copy=False), classes[part]
        places = np.arange(len(samples)), own
        scores = samples @ wide.T
        if added is not None:
            scores += added
        scores -= scores.max(1, keepdims=True)
        at_target = scores[places]
        np.exp(scores, out=scores)
        totals = scores.sum(1)
        if found is not None:
            found[part] = np.where(scales[part] != 0, (np.log(totals) - at_target) * scales[part], 0)
        if not any(wanted):
            continue
        scores *= (scales[part] / totals)[:, None]
        scores[places] = 0
        scores[places] = -scores.sum(1)  # minus the sum of the others: 1 - p may have lost its digits
        if by_x is not None:
            by_x[part] = scores @ wide
        if by_matrix is not None:
            by_matrix += scores.T @ samples
        if by_bias is not None:
            by_bias += scores.sum(0)
    gradients = [by_x, *[None if each is None else each.astype(x.dtype, copy=False) for each in (by_matrix, by_bias)]]
    return found, gradients
