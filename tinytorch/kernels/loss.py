"""Losses on arrays: forward, and the gradients that are worth a pass of their own (floor 1).

Losses over classes see scores of shape (N, C) and labels of shape (N,): `rows` brings other shapes
into this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels.activation import widened

__all__ = [
    "by_class",
    "cross_entropy",
    "cross_entropy_grad",
    "nll",
    "nll_grad",
    "reduced",
    "rows",
    "soft_targets",
]

Array = Any


def reduced(losses: Array, reduction: str) -> Array:
    """Return the mean or the sum of `losses`, or for "none" themselves."""
    if reduction == "none":
        return losses
    total = np.add.reduce(widened(losses), None)
    if reduction == "mean":
        total = total / losses.size if losses.size else total * np.nan
    return total.astype(losses.dtype, copy=False)


# Over classes -------------------------------------------------------------------------------------


def rows(x: Array) -> Array:
    """Return scores of shape (N, C, d1, ...) as (N * d1 * ..., C), of one sample as (1, C)."""
    if x.ndim == 2:
        return x
    if x.ndim == 1:
        return x[None]
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def by_class(x: Array, shape: tuple[int, ...]) -> Array:
    """Return what `rows` made of an array of `shape` in that shape again."""
    if len(shape) <= 2:
        return x.reshape(shape)
    return np.moveaxis(x.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


def _labels(target: Array, classes: int, ignore_index: int) -> tuple[Array, Array | None]:
    """Return the labels as a flat index array, and which are not to be ignored (None: all count).

    Raises:
        IndexError: a label that counts is no class.
    """
    labels = target.reshape(-1)
    if labels.dtype != np.int64:
        labels = labels.astype(np.int64)
    if not labels.size:
        return labels, None
    counts = None
    lowest = np.minimum.reduce(labels)
    if lowest < 0 or ignore_index >= 0:
        counts = labels != ignore_index
        if counts.all():
            counts = None
        else:
            labels = np.where(counts, labels, 0)
            lowest = np.minimum.reduce(labels)
    # (Where there is no class at all, what is ignored is still no error.)
    if (lowest < 0 or np.maximum.reduce(labels) >= classes) and (
        classes or counts is None or counts.any()
    ):
        outside = labels[(labels < 0) | (labels >= classes)]
        raise IndexError(f"Target {outside[0]} is out of bounds.")
    return labels, counts


def _label_weights(
    labels: Array, counts: Array | None, weight: Array | None, like: Array
) -> Array | None:
    """Return each sample's weight, that of its class or 0 where ignored; None where all are 1."""
    if weight is None:
        return None if counts is None else counts.astype(like.dtype)
    weights = widened(weight)[labels]
    return weights if counts is None else weights * counts


def _total(
    losses: Array, weights: Array | None, reduction: str, shape: tuple[int, ...], dtype: Any
) -> Array:
    """Return the reduced loss; the mean is that over the samples' weights, 0 / 0 without any."""
    if reduction == "none":
        return losses.reshape(shape).astype(dtype, copy=False)
    total = np.add.reduce(losses)
    if reduction == "mean" and not losses.size:
        total = total * np.nan
    elif reduction == "mean":
        total = total / (losses.size if weights is None else np.add.reduce(weights))
    return total.astype(dtype, copy=False)


def _unweighted(g: Array, count: int, weights: Array | None, reduction: str) -> Array:
    """Return the gradient of each sample's loss before its weight: a scalar, or (N,)."""
    g = widened(g)
    if reduction == "none":
        return g.reshape(-1)
    if reduction == "mean":
        return g / (count if weights is None else np.add.reduce(weights))
    return g


def _upstream(
    g: Array, count: int, weights: Array | None, counts: Array | None, reduction: str
) -> Array:
    """Return minus the gradient of each label's log-probability: a scalar, or (N,)."""
    g = _unweighted(g, count, weights, reduction)
    if weights is not None:
        g = g * weights
    if counts is not None:
        g[~counts] = 0  # also where all are ignored, so that the mean's g / 0 was infinite
    return g


def nll(x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    """Return minus the score of each sample's label, weighted and reduced."""
    scores = rows(x)
    labels, counts = _labels(target, scores.shape[1], ignore_index)
    weights = _label_weights(labels, counts, weight, widened(scores[:0]))
    picked = np.arange(labels.size)
    losses = (
        -widened(scores[picked, labels])
        if scores.shape[1]
        else np.zeros_like(scores, shape=labels.size)
    )
    if counts is not None:
        losses[~counts] = 0
    if weights is not None:
        losses *= weights
    return _total(losses, weights, reduction, target.shape, x.dtype)


def nll_grad(
    g: Array,
    shape: tuple[int, ...],
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
) -> Array:
    """Return the gradient of `nll` for scores of `shape`: zeros but for the labels."""
    classes = shape[0] if len(shape) == 1 else shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    out = np.zeros_like(g, shape=(labels.size, classes))
    weights = _label_weights(labels, counts, weight, widened(out[:0]))
    if labels.size and classes:
        out[np.arange(labels.size), labels] = -_upstream(g, labels.size, weights, counts, reduction)
    return by_class(out, shape)


def cross_entropy(
    x: Array,
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> tuple[Array, Array]:
    """Return the cross entropy, and the probabilities (N, C) that its gradient needs.

    Per sample: log(sum(exp(x))) - x[label]. The maximum is subtracted first, so that nothing
    overflows.
    """
    scores = widened(rows(x))
    classes = scores.shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    if not scores.size:
        return _total(
            scores.reshape(-1)[: labels.size], None, reduction, target.shape, x.dtype
        ), scores
    weights = _label_weights(labels, counts, weight, scores[:0])
    shifted = scores - np.maximum.reduce(scores, 1, keepdims=True)
    picked = shifted[np.arange(labels.size), labels]
    if label_smoothing > 0:  # the share of every class in the target: sum_c weight_c * x_c
        ones = np.ones(classes, scores.dtype, like=scores) if weight is None else widened(weight)
        all_classes, all_weights = shifted @ ones, np.add.reduce(ones)
    probabilities = np.exp(shifted, out=shifted)
    total = np.add.reduce(probabilities, 1)
    probabilities /= total[:, None]
    normaliser = np.log(total)
    losses = normaliser - picked
    if weights is not None:
        losses *= weights
    if label_smoothing > 0:
        smooth = normaliser * all_weights
        smooth -= all_classes
        losses *= 1 - label_smoothing
        losses += smooth * (label_smoothing / classes)
    if counts is not None:
        losses[~counts] = 0  # also where the scores are infinite
    return _total(losses, weights, reduction, target.shape, x.dtype), probabilities


def cross_entropy_grad(
    g: Array,
    shape: tuple[int, ...],
    target: Array,
    weight: Array | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
    probabilities: Array,
) -> Array:
    """Return the gradient of `cross_entropy`: probabilities * sum(target) - target."""
    if not probabilities.size:
        return np.zeros_like(g, shape=shape)
    classes = probabilities.shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    weights = _label_weights(labels, counts, weight, probabilities[:0])
    if label_smoothing > 0:
        targets, _ = soft_targets(probabilities, target, weight, ignore_index, label_smoothing)
        out = probabilities * np.add.reduce(targets, 1, keepdims=True)
        out -= targets
        upstream = _unweighted(g, labels.size, weights, reduction)
        out *= upstream[:, None] if upstream.ndim else upstream
        if counts is not None:
            out[~counts] = 0
    else:
        upstream = _upstream(g, labels.size, weights, counts, reduction)
        out = probabilities * (upstream[:, None] if upstream.ndim else upstream)
        out[np.arange(labels.size), labels] -= upstream
    return by_class(out, shape)


def soft_targets(
    like: Array, target: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, Array | None]:
    """Return q (N, C), a sample's loss being -sum_c q_c log p_c, and its weights in the mean.

    `like` is an array of the scores' dtype and of shape (N, C).
    """
    classes = like.shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    weights = _label_weights(labels, counts, weight, like[:0])
    out = np.zeros_like(like)
    if label_smoothing > 0:
        out += (1 if weight is None else weight) * (label_smoothing / classes)
    if labels.size and classes:
        out[np.arange(labels.size), labels] += (1 if weights is None else weights) * (
            1 - label_smoothing
        )
    if counts is not None:
        out[~counts] = 0
    return out, weights
