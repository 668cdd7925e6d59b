"""Losses on arrays, and the gradients that have a kernel.

Losses over classes see scores of shape (N, C) and labels of shape (N,): `rows` converts other shapes to these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.kernels.activation import log_sigmoid, widened
from tinytorch.kernels.native import twin

Array = Any


def reduced(losses: Array, reduction: str) -> Array:
    """Return the mean or the sum of `losses`; for "none", the losses."""
    if reduction == "none":
        return losses
    total = np.add.reduce(widened(losses), None)
    if reduction == "mean":
        total = total / losses.size if losses.size else total * np.nan
    return total.astype(losses.dtype, copy=False)


@twin
def logistic(x: Array, y: Array) -> Array:
    """Return the binary cross entropy of scores and targets, `(1 - y) * x - log(sigmoid(x))`."""
    return (1 - y) * x - log_sigmoid(x)


# Over classes -------------------------------------------------------------------------------------


def rows(x: Array) -> Array:
    """Return scores of shape (N, C, d1, ...) as (N * d1 * ..., C), of one sample as (1, C)."""
    if x.ndim == 2:
        return x
    if x.ndim == 1:
        return x[None]
    return np.moveaxis(x, 1, -1).reshape(-1, x.shape[1])


def by_class(x: Array, shape: tuple[int, ...]) -> Array:
    """Return the result of `rows` for an array of `shape` in that shape: the inverse of `rows`."""
    if len(shape) <= 2:
        return x.reshape(shape)
    return np.moveaxis(x.reshape(shape[0], *shape[2:], shape[1]), -1, 1)


def _labels(target: Array, classes: int, ignore_index: int) -> tuple[Array, Array | None]:
    """Return the labels as a flat index array, and a mask of those that are not ignored (None if none is ignored).

    Raises:
        IndexError: a label that is not ignored is out of range.
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
    # (If there are no classes, labels that are ignored are still no error.)
    if (lowest < 0 or np.maximum.reduce(labels) >= classes) and (classes or counts is None or counts.any()):
        outside = labels[(labels < 0) | (labels >= classes)]
        raise IndexError(
            f"Target {outside[0]} is out of bounds. With {classes} classes, targets go from 0 to {classes - 1}."
        )
    return labels, counts


def _label_weights(labels: Array, counts: Array | None, weight: Array | None, like: Array) -> Array | None:
    """Return the weight of each sample: that of its class, or 0 if it is ignored; None if all are 1."""
    if weight is None:
        return None if counts is None else counts.astype(like.dtype)
    weights = widened(weight)[labels]
    return weights if counts is None else weights * counts


def _total(losses: Array, weights: Array | None, reduction: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return the reduced loss; the mean is the sum divided by the sum of the weights, NaN if that is 0 / 0."""
    if reduction == "none":
        return losses.reshape(shape).astype(dtype, copy=False)
    total = np.add.reduce(losses)
    if reduction == "mean" and not losses.size:
        total = total * np.nan
    elif reduction == "mean":
        total = total / (losses.size if weights is None else np.add.reduce(weights))
    return total.astype(dtype, copy=False)


def _upstream(g: Array, count: int, weights: Array | None, counts: Array | None, reduction: str) -> Array:
    """Return minus the gradient of each label's log-probability: a scalar, or (N,)."""
    g = widened(g)
    if reduction == "none":
        g = g.reshape(-1)
    elif reduction == "mean":
        g = g / (count if weights is None else np.add.reduce(weights))
    if weights is not None:
        g = g * weights
    if counts is not None:
        g[~counts] = 0  # also if all are ignored, in which case g / 0 of the mean is infinite
    return g


def nll(x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    """Return the negated score of each sample's label, weighted and reduced."""
    scores = rows(x)
    labels, counts = _labels(target, scores.shape[1], ignore_index)
    weights = _label_weights(labels, counts, weight, widened(scores[:0]))
    picked = np.arange(labels.size)
    losses = -widened(scores[picked, labels]) if scores.shape[1] else np.zeros_like(scores, shape=labels.size)
    if counts is not None:
        losses[~counts] = 0
    if weights is not None:
        losses *= weights
    return _total(losses, weights, reduction, target.shape, x.dtype)


def nll_grad(
    g: Array, shape: tuple[int, ...], target: Array, weight: Array | None, ignore_index: int, reduction: str
) -> Array:
    """Return the gradient of `nll` for scores of `shape`, which is 0 except at the labels."""
    classes = shape[0] if len(shape) == 1 else shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    out = np.zeros_like(g, shape=(labels.size, classes))
    weights = _label_weights(labels, counts, weight, widened(out[:0]))
    if labels.size and classes:
        out[np.arange(labels.size), labels] = -_upstream(g, labels.size, weights, counts, reduction)
    return by_class(out, shape)


@twin
def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Array, Array]:
    """Return the cross entropy of scores and labels, and its derivative by the scores.

    Per sample: log(sum(exp(x))) - x[label]. The maximum is subtracted first, so that nothing
    overflows. The derivative, softmax(x) minus 1 at the label, takes one more pass over
    intermediate results of the forward. It is that of the reduced loss; for "none", that of each sample's loss.
    """
    scores = widened(rows(x))
    count, classes = scores.shape
    labels, counts = _labels(target, classes, ignore_index)
    if not scores.size:
        losses = scores.reshape(-1)[:count]
        return _total(losses, None, reduction, target.shape, x.dtype), np.zeros_like(x)
    weights = _label_weights(labels, counts, weight, scores[:0])
    places = np.arange(count)
    shifted = scores - np.maximum.reduce(scores, 1, keepdims=True)
    picked = shifted[places, labels]
    if label_smoothing > 0:  # every class has a part of the target's probability
        shares = np.full_like(scores, label_smoothing / classes, shape=classes)
        if weight is not None:
            shares *= weight
        shared = shifted @ shares
    slope = np.exp(shifted, out=shifted)
    total = np.add.reduce(slope, 1)
    normaliser = np.log(total)
    losses = normaliser - picked
    own: Any = 1 if weights is None else weights  # the weight of the label in the target ...
    every: Any = own  # ... and of all classes together
    if label_smoothing > 0:
        own = own * (1 - label_smoothing)
        every = own + np.add.reduce(shares)
        losses *= own
        losses += normaliser * np.add.reduce(shares) - shared
    elif weights is not None:
        losses *= weights
    scale = 1.0
    if reduction == "mean":
        scale = 1 / (count if weights is None else np.add.reduce(weights))
    slope *= (every * scale / total)[:, None]
    if label_smoothing > 0:
        slope -= shares * scale
    slope[places, labels] -= own * scale
    if counts is not None:
        losses[~counts] = 0  # also where the scores are infinite
        slope[~counts] = 0  # also where the scale is: all are ignored
    return _total(losses, weights, reduction, target.shape, x.dtype), by_class(slope, x.shape)


def soft_targets(
    like: Array, target: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, float]:
    """Return the target distributions q (N, C), with the loss -sum_c q_c log p_c, and the divisor of the mean.

    `like` is an array of the scores' dtype and of shape (N, C).
    """
    count, classes = like.shape
    labels, counts = _labels(target, classes, ignore_index)
    weights = _label_weights(labels, counts, weight, like[:0])
    out = np.zeros_like(like)
    if label_smoothing > 0:
        out += (1 if weight is None else weight) * (label_smoothing / classes)
    if like.size:
        out[np.arange(count), labels] += (1 if weights is None else weights) * (1 - label_smoothing)
    if counts is not None:
        out[~counts] = 0
    return out, count if weights is None else float(np.add.reduce(weights))


# Margins ------------------------------------------------------------------------------------------


def multi_margin(
    x: Array, target: Array, p: int, margin: float, weight: Array | None
) -> tuple[Array, Array, Array, Array]:
    """Return the terms of the loss of scores (N, C) and labels (N,).

    These are `margin - x[label] + x` where it is positive and the class is not the label, else 0; the mask of the
    labels; the factor of each sample, (N, 1); and the losses, (N,).

    Raises:
        RuntimeError: a label is out of range.
    """
    count, classes = x.shape
    if target.size and not 0 <= target.min() <= target.max() < classes:
        raise RuntimeError("target out of range")
    is_own = np.zeros_like(x, dtype=np.bool_)
    is_own[np.arange(count), target] = True
    above = np.maximum(margin - x[is_own][:, None] + x, 0)
    above[is_own] = 0
    factor = np.full_like(x, 1 / classes, shape=(count, 1))
    if weight is not None:
        factor *= weight[target][:, None]
    losses = (above if p == 1 else above * above).sum(1) * factor[:, 0]
    return above, is_own, factor, losses


def multilabel_margin(x: Array, target: Array) -> tuple[Array, Array]:
    """Return the losses, (N,), of scores and labels (N, C), up to the first -1, and the derivatives by the scores.

    A loss is the mean over classes of `max(0, 1 - x[label] + x[other])`, over all pairs of a label and another class.
    """
    count, classes = x.shape
    counts = np.logical_and.accumulate(target >= 0, 1)
    labels = np.where(counts, target, 0)
    is_label = np.zeros_like(counts)
    sample, place = np.nonzero(counts)
    is_label[sample, labels[sample, place]] = True
    own = np.take_along_axis(x, labels, 1)[:, :, None]  # (N, labels, 1) against (N, 1, classes)
    pairs = np.maximum(1 - own + x[:, None], 0)
    pairs *= counts[:, :, None] & ~is_label[:, None, :]
    active = (pairs > 0).astype(x.dtype)
    slope = active.sum(1)
    np.subtract.at(slope, (np.arange(count)[:, None], labels), active.sum(2))
    return pairs.sum((1, 2)) / classes, slope / classes
