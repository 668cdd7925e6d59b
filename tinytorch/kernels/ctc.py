"""Connectionist temporal classification on arrays: probabilities of all alignments, by dynamic programming.

Source: Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent Neural
    Networks", 2006, section 4: its alpha and beta, in logarithms, for all sequences of a batch at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .intp import as_intp

Array = Any


def states(targets: Array, blank: int) -> tuple[Array, Array]:
    """Return the states of alignments with labels (N, S), and a mask of those that may be entered by skipping a state.

    The states, (N, 2S + 1), are the labels with a blank before and after each. Only a blank between different labels
    can be skipped.
    """
    count, length = targets.shape
    labels = np.full_like(targets, blank, shape=(count, 2 * length + 1))
    labels[:, 1::2] = targets
    skips = np.zeros_like(labels, dtype=np.bool_)
    skips[:, 2:] = labels[:, 2:] != labels[:, :-2]
    return labels, skips


def _log_sum(a: Array, b: Array, c: Array) -> Array:
    """Return log(exp(a) + exp(b) + exp(c))."""
    top = np.maximum(np.maximum(a, b), c)
    top[np.isneginf(top)] = 0  # (-inf minus -inf would be NaN)
    total = np.exp(a - top)
    total += np.exp(b - top)
    total += np.exp(c - top)
    return np.log(total, out=total) + top


def forward(x: Array, labels: Array, skips: Array, lengths: Array, target_lengths: Array) -> tuple[Array, Array]:
    """Return the negative log-probability of each target, (N,), and alpha, (T, N, states).

    Args:
        x: log-probabilities, (T, N, C).
        labels, skips: the results of `states`.
        lengths, target_lengths: the lengths of the sequences and of the targets, (N,).
    """
    time, count, _ = x.shape
    alpha = np.full_like(x, -np.inf, shape=(time, count, labels.shape[1]))
    emitted = np.take_along_axis(x, labels[None], 2)
    if time:
        alpha[0, :, :2] = emitted[0, :, :2]
    # Alpha of the previous moment, with two states before the first, of probability 0.
    before = np.full_like(alpha, -np.inf, shape=(count, labels.shape[1] + 2))
    for t in range(1, time):
        before[:, 2:] = alpha[t - 1]
        two = np.where(skips, before[:, :-2], -np.inf)
        alpha[t] = _log_sum(before[:, 2:], before[:, 1:-1], two) + emitted[t]
    return ended(x, alpha, lengths, target_lengths), alpha


def ctc_losses(x: Array, problem: tuple[Array, ...], blank: int, zero_infinity: bool) -> tuple[Array, Array]:
    """Return the results of `forward`; the last two arguments are for the gradient."""
    return forward(x, *problem)


def ctc_slope(x: Array, problem: tuple[Array, ...], blank: int, zero_infinity: bool, alpha: Array | None) -> Array:
    """Return the derivative of each loss of `ctc_losses`; alpha is computed if it is None."""
    labels, skips, lengths, target_lengths = problem
    alpha = forward(x, *problem)[1] if alpha is None else alpha
    losses = ended(x, alpha, lengths, target_lengths)
    return gradient(x, labels, skips, lengths, target_lengths, losses, alpha, blank, zero_infinity)


def ctc_grad(g: Array, x: Array, slope: Array) -> Array:
    """Return the gradient of `ctc_losses`, given the derivative of each loss."""
    return g[:, None] * slope


def ended(x: Array, alpha: Array, lengths: Array, target_lengths: Array) -> Array:
    """Return the losses, given alpha: an alignment ends with the last label or the blank after it."""
    sequence = np.arange(len(lengths))
    final = alpha[np.maximum(lengths - 1, 0), sequence] if len(alpha) else alpha.sum(0)
    last = 2 * target_lengths
    both = np.logaddexp(final[sequence, last], np.where(target_lengths > 0, final[sequence, last - 1], -np.inf))
    nothing = np.where(target_lengths == 0, 0, -np.inf)  # the log-probability for a sequence of length 0
    return -np.where(lengths > 0, both, nothing).astype(x.dtype)


def gradient(
    x: Array, labels: Array, skips: Array, lengths: Array, target_lengths: Array, losses: Array, alpha: Array,
    blank: int, zero_infinity: bool,
) -> Array:  # fmt: skip
    """Return the derivative of each loss by the log-probabilities of its sequence, zeros beyond its length.

    It is exp(x) minus the probability, given the target, that the alignment is at a class at that time. (Strictly it is
    minus that probability; exp(x) is the part of a preceding log_softmax, which PyTorch includes here.)
    """
    time, count, classes = x.shape
    width = labels.shape[1]
    emitted = np.take_along_axis(x, labels[None], 2)
    state = np.arange(width)
    last = 2 * target_lengths[:, None]
    begin = np.where((state == last) | ((state == last - 1) & (state >= 0)), 0, -np.inf)
    begin = begin.astype(x.dtype)
    ends = lengths - 1
    beta = np.full_like(alpha, -np.inf)  # for the moments after t, without the emission at t
    after = np.full_like(alpha, -np.inf, shape=(count, width + 2))
    leaps = np.zeros_like(skips)
    leaps[:, :-2] = skips[:, 2:]
    for t in range(time - 1, -1, -1):
        if t + 1 < time:
            after[:, :-2] = beta[t + 1] + emitted[t + 1]
            two = np.where(leaps, after[:, 2:], -np.inf)
            beta[t] = _log_sum(after[:, :-2], after[:, 1:-1], two)
        starting = ends == t
        if starting.any():
            beta[t][starting] = begin[starting]
    beta += alpha
    beta += losses[:, None]
    at = np.exp(beta, out=beta)  # the probability of being in a state at time t
    # The probabilities of label states are added to their classes; every other state is the blank.
    places = np.arange(time * count).reshape(time, count, 1) * classes + labels[:, 1::2]
    taken = np.bincount(as_intp(places.reshape(-1)), at[:, :, 1::2].reshape(-1), minlength=time * count * classes)
    taken = taken.reshape(x.shape).astype(x.dtype)
    taken[:, :, blank] += at[:, :, ::2].sum(2)
    out = np.exp(x)
    out -= taken
    out[:, np.isposinf(losses)] = 0 if zero_infinity else np.nan
    out[np.arange(time)[:, None] >= lengths] = 0
    return out
