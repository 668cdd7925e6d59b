"""Embeddings on arrays: look-up of rows, and its gradient."""

from __future__ import annotations

from typing import Any

import numpy as np

from .indexing import add_rows, take_rows
from .intp import as_intp
from .native import twin

Array = Any


def embedding(weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Array:
    """Return the rows of `weight` at `indices`; the other arguments are for the gradient."""
    return take_rows(weight, 0, indices)


@twin
def one_hot(labels: Array, num_classes: int) -> Array:
    """Return zeros with a one, in a new last dimension, at the index of each label."""
    if labels.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if labels.size and labels.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if labels.size and labels.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return (labels[..., None] == np.arange(num_classes)).astype(np.int64, "C")


def embedding_grad(g: Array, count: int, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """Return the gradient of a weight with `count` rows.

    Args:
        g: the gradient of the result of `embedding`.
        count: the number of rows of the weight.
        indices: those of `embedding`.
        padding_idx: the row that gets no gradient; negative for none.
        scale_grad_by_freq: divide a row's gradient by the number of times it was looked up.
    """
    width, flat = g.shape[-1], indices.reshape(-1)
    out = np.zeros_like(g, shape=(count, width))
    add_rows(out, 0, flat, g.reshape(flat.size, width))
    if scale_grad_by_freq:
        out /= np.maximum(np.bincount(as_intp(flat), minlength=count), 1)[:, None]
    if padding_idx >= 0:
        out[padding_idx : padding_idx + 1] = 0
    return out


def embedding_factors(rows: Array, indices: Array, padding_idx: int, scale_grad_by_freq: bool) -> Array:
    """Return the factor by which `embedding_grad` multiplied each row that it added, in the dtype of the rows."""
    factors = (indices != padding_idx).astype(rows.dtype)
    if scale_grad_by_freq and indices.size:
        factors /= np.bincount(as_intp(indices.reshape(-1)))[indices]
    return factors[..., None]
