"""Connectionist temporal classification on arrays: probabilities of all alignments, by dynamic programming.

Source: Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent Neural
    Networks", 2006, section 4: its alpha and beta, in logarithms, for all sequences of a batch at once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any


def states(targets: Array, blank: int) -> tuple[Array, Array]:
    """Return the states of alignments with labels (N, S), and which may be entered from two states before.

    The states, (N, 2S + 1), are the labels with a blank before and after each. None is skipped but a blank between
    different labels.
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
    top[np.isneginf(top)] = 0  # so that -inf less -inf is not asked for
    total = np.exp(a - top)
    total += np.exp(b - top)
    total += np.exp(c - top)
    return np.log(total, out=total) + top


def forward(x: Array, labels: Array, skips: Array, lengths: Array, target_lengths: Array) -> tuple[Array, Array]:
    """Return minus the log-probability of each target, (N,), and alpha, (T, N, states).

    Args:
        x: log-probabilities, (T, N, C).
        labels, skips: what `states` returns.
        lengths, target_lengths: of the sequences and the targets, (N,).
    """
    time, count, _ = x.shape
    alpha = np.full_like(x, -np.inf, shape=(time, count, labels.shape[1]))
    emitted = np.take_along_axis(x, labels[None], 2)
    if time:
        alpha[0, :, :2] = emitted[0, :, :2]
    # What is entered from one and from two states before, with room for those before the first.
    before = np.full_like(alpha, -np.inf, shape=(count, labels.shape[1] + 2))
    for t in range(1, time):
        before[:, 2:] = alpha[t - 1]
        two = np.where(skips, before[:, :-2], -np.inf)
        alpha[t] = _log_sum(before[:, 2:], before[:, 1:-1], two) + emitted[t]
    return ended(x, alpha, lengths, target_lengths), alpha


def ended(x: Array, alpha: Array, lengths: Array, target_lengths: Array) -> Array:
    """Return the losses, given alpha: an alignment ends with the last label or the blank after it."""
    each = np.arange(len(lengths))
    final = alpha[np.maximum(lengths - 1, 0), each] if len(alpha) else alpha.sum(0)
    last = 2 * target_lengths
    both = np.logaddexp(final[each, last], np.where(target_lengths > 0, final[each, last - 1], -np.inf))
    nothing = np.where(target_lengths == 0, 0, -np.inf)  # the log-probability of a target in no time
    return -np.where(lengths > 0, both, nothing).astype(x.dtype)


def gradient(
    x: Array, labels: Array, skips: Array, lengths: Array, target_lengths: Array, losses: Array, alpha: Array,
    blank: int, zero_infinity: bool,
) -> Array:  # fmt: skip
    """Return the derivative of each loss by its sequence's log-probabilities, zeros beyond its length.

    That is exp(x) less the probability, given the target, that the alignment is at a class then. (By itself it would be
    that probability alone; exp(x) is what a softmax before adds, and PyTorch has it here.)
    """
    time, count, classes = x.shape
    width = labels.shape[1]
    emitted = np.take_along_axis(x, labels[None], 2)
    state = np.arange(width)
    last = 2 * target_lengths[:, None]
    begin = np.where((state == last) | ((state == last - 1) & (state >= 0)), 0, -np.inf)
    begin = begin.astype(x.dtype)
    ends = lengths - 1
    beta = np.full_like(alpha, -np.inf)  # of what comes after a moment, without its own emission
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
    at = np.exp(beta, out=beta)  # the probability to be in a state at a moment
    # The labels' states are scattered to the classes; the blank has every other one.
    places = np.arange(time * count).reshape(time, count, 1) * classes + labels[:, 1::2]
    taken = np.bincount(places.reshape(-1), at[:, :, 1::2].reshape(-1), minlength=time * count * classes)
    taken = taken.reshape(x.shape).astype(x.dtype)
    taken[:, :, blank] += at[:, :, ::2].sum(2)
    out = np.exp(x)
    out -= taken
    out[:, np.isposinf(losses)] = 0 if zero_infinity else np.nan
    out[np.arange(time)[:, None] >= lengths] = 0
    return out
