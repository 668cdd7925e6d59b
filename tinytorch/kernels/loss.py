"""Losses on arrays, and the gradients that have a kernel.

Losses over classes see scores of shape (N, C) and labels of shape (N,): `rows` converts other shapes to these.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .activation import FLAT, log_sigmoid, widened
from .checks import check_floating
from .indexing import check_bounds
from .layouts import arranged
from .native import twin

Array = Any


def reduced(losses: Array, reduction: str, dtype: Any, *operands: Array) -> Array:
    """Return the mean or the sum of `losses`, or for "none" the losses, in this dtype, laid out by the operands."""
    losses = losses.astype(dtype, copy=False)  # (PyTorch, too, rounds the losses before it adds them)
    if reduction == "none":
        return arranged(losses, *operands) if operands else losses
    total = np.add.reduce(widened(losses), None)
    if reduction == "mean":
        total = total / losses.size if losses.size else total * np.nan
    return total.astype(dtype, copy=False)


# Elementwise --------------------------------------------------------------------------------------


def mse_loss(x: Array, y: Array, reduction: str, parameter: float = 1.0) -> Array:
    """Return the mean, sum or array of `(x - y)**2`; the parameter is unused."""
    check_floating("mse_cpu", x)
    difference = np.subtract(x, y)
    return reduced(difference * difference, reduction, x.dtype, x, y)


def smooth_l1_loss(x: Array, y: Array, reduction: str, parameter: float = 1.0) -> Array:
    """Return `huber_loss` divided by the parameter."""
    check_floating("smooth_l1_cpu", x)
    if x.dtype == np.float16:
        distance, parameter, half = np.abs(x - y), x.dtype.type(parameter), x.dtype.type(0.5)
        near = half * distance * distance / parameter
        return reduced(np.where(distance < parameter, near, distance - half * parameter), reduction, x.dtype, x, y)
    return reduced(_huber(x, y, parameter) / parameter, reduction, x.dtype, x, y)


def huber_loss(x: Array, y: Array, reduction: str, parameter: float = 1.0) -> Array:
    """Return the mean, sum or array of 0.5 * d**2 where |d| <= p, else p * (|d| - 0.5 * p), with d = x - y."""
    check_floating("huber_cpu", x)
    if x.dtype.kind == "V":
        distance, delta, half = np.abs(x - y), x.dtype.type(parameter), x.dtype.type(0.5)
        far = delta * (distance - half * delta)
        return reduced(np.where(distance <= delta, half * distance * distance, far), reduction, x.dtype, x)
    return reduced(_huber(x, y, parameter), reduction, x.dtype, x)


def _huber(x: Array, y: Array, delta: float) -> Array:
    distance = np.abs(np.subtract(widened(x), y))
    near = np.minimum(distance, delta)
    return near * (distance - 0.5 * near)


def binary_cross_entropy(x: Array, y: Array, weight: Array | None, reduction: str) -> Array:
    """Return the mean, sum or array of `-weight * (y * log(x) + (1 - y) * log(1 - x))`.

    The logarithms are at least -100.
    """
    check_floating("binary_cross_entropy", x)
    losses = binary_entropies(x, y)
    return reduced(losses if weight is None else losses * weight, reduction, x.dtype, x, y)


@twin
def binary_entropies(x: Array, y: Array) -> Array:
    """Return `-(y * log(x) + (1 - y) * log(1 - x))` with logarithms of at least -100."""
    for name, values in (("input", x), ("target", y)):
        if values.size and not (np.min(values) >= 0 and np.max(values) <= 1):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    p = widened(x)
    return (y - 1) * np.maximum(np.log1p(-p), -100) - y * np.maximum(np.log(p), -100)


def bce_slope(x: Array, y: Array) -> Array:
    """Return the derivative of binary cross entropy, bounded near 0 and 1."""
    return (x - y) / np.maximum((1 - x) * x, 1e-12)


def binary_cross_entropy_with_logits(
    x: Array, y: Array, weight: Array | None, pos_weight: Array | None, reduction: str
) -> Array:
    """Return the mean, sum or array of `weight * ((1 - y) * x - w * log(sigmoid(x)))`.

    Here `w = 1 + (pos_weight - 1) * y`.
    """
    check_floating("log_sigmoid_cpu", x)
    scores = widened(x)
    if pos_weight is None:
        losses = logistic(scores, y)
    else:
        losses = (1 - y) * scores - log_sigmoid(scores) * ((pos_weight - 1) * y + 1)
    return reduced(losses if weight is None else losses * weight, reduction, x.dtype, y)


@twin
def logistic(x: Array, y: Array) -> Array:
    """Return the binary cross entropy of scores and targets, `(1 - y) * x - log(sigmoid(x))`."""
    return (1 - y) * x - log_sigmoid(x)


def logit_slope(x: Array, y: Array) -> Array:
    """Return `sigmoid(x) - y`, with the digits of both tails: (1 - y) - sigmoid(-x) for positive x."""
    e = np.exp(-np.abs(widened(x)))
    small = e / (e + 1)
    return np.where(x > 0, (1 - y) - small, small - y).astype(x.dtype, copy=False)


def soft_margin_loss(x: Array, y: Array, reduction: str) -> Array:
    """Return the mean, sum or array of `log(1 + exp(-y * x))`; y broadcasts to the shape of x."""
    wide = widened(x)
    losses = np.log1p(np.exp(-widened(y) * wide)).astype(wide.dtype, copy=False)
    return reduced(losses, reduction, x.dtype, x)


def soft_margin_slope(u: Array) -> Array:
    """Return the logistic function as PyTorch computes it for this loss: where the exponential overflows it is NaN."""
    z = np.exp(widened(u))
    return (z / (z + 1)).astype(u.dtype, copy=False)


# Over classes -------------------------------------------------------------------------------------


def rows(x: Array) -> Array:
    """Return scores of shape (N, C, d1, ...) as (N * d1 * ..., C), of one sample as (1, C)."""
    if x.ndim == 2:
        return x
    if x.ndim == 1:
        return x[None]
    return np.moveaxis(x, 1, -1).reshape(math.prod((x.shape[0], *x.shape[2:])), x.shape[1])


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
    """Return the reduced loss; the mean is the sum divided by the sum of the weights, NaN if that is 0."""
    if reduction == "none":
        return losses.reshape(shape).astype(dtype, copy=False)
    total = np.add.reduce(losses)
    if reduction == "mean" and not losses.size:
        total = total * np.nan
    elif reduction == "mean":
        total = total / (losses.size if weights is None else np.add.reduce(weights) or np.nan)
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


@twin
def nll(x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    """Return the negated score of each sample's label, weighted and reduced."""
    check_floating("nll_loss2d_forward_out_frame" if x.ndim > 2 else "nll_loss_out_frame", x)
    scores = rows(x)
    labels, counts = _labels(target, scores.shape[1], ignore_index)
    weights = _label_weights(labels, counts, weight, widened(scores[:0]))
    picked = np.arange(labels.size)
    losses = -widened(scores[picked, labels]) if scores.shape[1] else np.zeros_like(scores, shape=labels.size)
    if counts is not None:
        losses[~counts] = 0
    if weights is not None:
        losses *= weights
    return _total(losses, weights, reduction, target.shape if x.ndim > 1 else (), x.dtype)


@twin
def nll_loss_grad(g: Array, x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str) -> Array:
    """Return the gradient of `nll`, which is 0 except at the labels."""
    classes = x.shape[0] if x.ndim == 1 else x.shape[1]
    labels, counts = _labels(target, classes, ignore_index)
    out = np.zeros_like(g, shape=(labels.size, classes))
    weights = _label_weights(labels, counts, weight, widened(out[:0]))
    if labels.size and classes:
        out[np.arange(labels.size), labels] = -_upstream(g, labels.size, weights, counts, reduction)
    return by_class(out, x.shape)


@twin
def cross_entropy(
    x: Array, target: Array, weight: Array | None, ignore_index: int, reduction: str, label_smoothing: float
) -> tuple[Array, Array]:
    """Return the cross entropy of scores and labels, and its derivative by the scores.

    Per sample: log(sum(exp(x))) - x[label]. The maximum is subtracted first, so that nothing
    overflows. The derivative, softmax(x) minus 1 at the label, takes one more pass over
    intermediate results of the forward. It is that of the reduced loss; for "none", that of each sample's loss.
    """
    check_floating("log_softmax_lastdim_kernel_impl", x)
    scores = widened(rows(x))
    count, classes = scores.shape
    labels, counts = _labels(target, classes, ignore_index)
    weights = _label_weights(labels, counts, weight, scores[:0])
    if not scores.size:
        losses = np.zeros_like(scores, shape=count)
        return _total(losses, weights, reduction, target.shape if x.ndim > 1 else (), x.dtype), np.zeros_like(x)
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
    sure = (picked == 0) & (total < 1 / FLAT)
    if not label_smoothing and sure.any():  # minus the sum of the others, since 1 - p has lost its digits
        rest = slope[sure]
        rest[np.arange(len(rest)), labels[sure]] = 0
        slope[sure, labels[sure]] = -np.add.reduce(rest, 1)
    if counts is not None:
        losses[~counts] = 0  # also where the scores are infinite
        slope[~counts] = 0  # also where the scale is: all are ignored
    return _total(losses, weights, reduction, target.shape if x.ndim > 1 else (), x.dtype), by_class(slope, x.shape)


def soft_targets(
    x: Array, target: Array, weight: Array | None, ignore_index: int, label_smoothing: float
) -> tuple[Array, Array]:
    """Return the target distributions q of scores, with the loss -sum_c q_c log p_c, and the divisor of the mean."""
    like = rows(x)
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
    total = count if weights is None else np.add.reduce(weights)
    return by_class(out, x.shape), np.full_like(widened(like[:0]), total or np.nan, shape=())


# Margins ------------------------------------------------------------------------------------------


def _of_samples(x: Array) -> Array:
    """Return scores or labels of one sample, (C,) or a number, as (1, C)."""
    return x if x.ndim == 2 else x.reshape(1, -1)


@twin
def multi_margin_loss(x: Array, target: Array, p: int, margin: float, weight: Array | None, reduction: str) -> Array:
    """Return the mean, sum or array of `weight[y] * sum(max(0, margin - x[y] + x[i]) ** p) / C`, over i != y."""
    above, _, factor = _margins(x, target, margin, weight)
    losses = (above if p == 1 else above * above).sum(1) * factor[:, 0]
    return reduced(losses.reshape(target.shape), reduction, losses.dtype)


def multi_margin_terms(x: Array, target: Array, margin: float, weight: Array | None) -> tuple[Array, Array, Array]:
    """Return where the terms of `multi_margin_loss` are positive and the labels, as 0 and 1; the factors, (N, 1)."""
    above, is_own, factor = _margins(x, target, margin, weight)
    return (above > 0).astype(above.dtype), is_own.astype(above.dtype), factor


def _margins(x: Array, target: Array, margin: float, weight: Array | None) -> tuple[Array, Array, Array]:
    """Return the terms of the loss of scores and labels.

    These are `margin - x[label] + x` where it is positive and the class is not the label, else 0; the mask of the
    labels; and the factor of each sample, (N, 1).

    Raises:
        RuntimeError: a label is out of range.
    """
    x, target = _of_samples(x), target.reshape(-1)
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
    return above, is_own, factor


def multilabel_margin_loss(x: Array, target: Array, reduction: str) -> Array:
    """Return the mean, sum or array of `sum(max(0, 1 - x[i] + x[j])) / C` over all labels i and other classes j.

    The labels are those up to the first -1.
    """
    pairs, *_ = _pairs(x, target)
    losses = pairs.sum((1, 2)) / pairs.shape[2]
    return reduced(losses if x.ndim == 2 else losses.reshape(()), reduction, losses.dtype)


def multilabel_margin_slope(x: Array, target: Array) -> Array:
    """Return the derivatives of each sample's `multilabel_margin_loss` by the scores, (N, C)."""
    pairs, labels = _pairs(x, target)
    active = (pairs > 0).astype(x.dtype)
    slope = active.sum(1)
    np.subtract.at(slope, (np.arange(len(slope))[:, None], labels), active.sum(2))
    return slope / slope.shape[1]


def _pairs(x: Array, target: Array) -> tuple[Array, Array]:
    """Return `max(0, 1 - x[label] + x[other])`, (N, labels, C), 0 where the other is a label too; and the labels."""
    x, target = _of_samples(x), _of_samples(target)
    check_bounds(target + 1, x.shape[1] + 1, 1, text="argument #3 'target' is out of range")
    counts = np.logical_and.accumulate(target >= 0, 1)
    labels = np.where(counts, target, 0)
    is_label = np.zeros_like(counts)
    sample, place = np.nonzero(counts)
    is_label[sample, labels[sample, place]] = True
    own = np.take_along_axis(x, labels, 1)[:, :, None]  # (N, labels, 1) against (N, 1, classes)
    pairs = np.maximum(1 - own + x[:, None], 0)
    pairs *= counts[:, :, None] & ~is_label[:, None, :]
    return pairs, labels
