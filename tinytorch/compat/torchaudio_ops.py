"""The operators of torchaudio that are compiled for PyTorch, on NumPy: `torch.ops.torchaudio` has them.

`torch.ops.load_library` imports this module in place of torchaudio's two libraries. A recursive filter is computed in
blocks of samples: the output of a block is the product of its input with the filter's impulse response, plus that
of the last outputs before it with theirs. The dynamic programs of alignments take all labels of a time step
together, or all points of a diagonal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch import library
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.checks import require
from tinytorch.kernels.silence import quiet

Array = np.ndarray[Any, Any]
BLOCK = 64


# Recursive filters --------------------------------------------------------------------------------


def _filter(x: Array, a: Array, last: Array) -> Array:
    """Return y with y[t] = x[t] - sum(a[k] * y[t - 1 - k]).

    Args:
        x: the input (…, time).
        a: the coefficients (order,) of the outputs before, the latest first.
        last: the outputs (…, order) before the first one, the latest first.
    """
    order, y = len(a), np.empty_like(x)
    if not order:
        return np.array(x)
    size = max(BLOCK, order)
    impulse = np.zeros(size, x.dtype)
    impulse[0] = 1
    for t in range(1, size):
        count = min(t, order)
        impulse[t] = -(a[:count] @ impulse[t - count : t][::-1])
    lag = np.subtract.outer(np.arange(size), np.arange(size))
    response = np.where(lag >= 0, impulse[lag], 0)
    # What an output before the block adds to the block's input: coefficient t + k of a, for output k before the block.
    ahead = np.add.outer(np.arange(size), np.arange(order))
    of_last = response @ -np.where(ahead < order, a[np.minimum(ahead, order - 1)], 0)
    for start in range(0, x.shape[-1], size):
        block = x[..., start : start + size]
        count = block.shape[-1]
        out = block @ response[:count, :count].T + last @ of_last[:count].T
        if not np.isfinite(out).all():  # what is not finite must not reach the samples before it
            out = _filter_by_samples(block, a, last)
        y[..., start : start + count] = out
        last = np.concatenate([out[..., ::-1], last], -1)[..., :order]
    return y


def _filter_by_samples(x: Array, a: Array, last: Array) -> Array:
    outputs = []
    for t in range(x.shape[-1]):
        outputs.append(x[..., t] - last @ a)
        last = np.concatenate([outputs[-1][..., None], last[..., :-1]], -1)
    return np.stack(outputs, -1)


def _lfilter_core_loop(input_signal_windows: Tensor, a_coeff_flipped: Tensor, padded_output_waveform: Tensor) -> Tensor:
    """Filter (batch, channel, time) with (channel, order) coefficients, into order - 1 samples more."""
    x, flipped, y = input_signal_windows._array, a_coeff_flipped._array, padded_output_waveform._array
    before = flipped.shape[1] - 1
    require(x.dtype == flipped.dtype == y.dtype and x.dtype.kind == "f", "expected scalar types Float or Double")
    require(x.shape[:1] + y.shape[1:2] == y.shape[:1] + x.shape[1:2] and len(flipped) == x.shape[1], "sizes differ")
    require(x.shape[2] + before == y.shape[2], "the output must have order - 1 samples more than the input")
    result = y.copy()
    for c, a in enumerate(flipped):
        rest = x[:, c] - a[-1] * y[:, c, before:]
        result[:, c, before:] = _filter(rest, a[:before][::-1], y[:, c, :before][:, ::-1])
    return padded_output_waveform.copy_(wrap(result))


def _overdrive_core_loop(
    waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Remove the constant part of `temp` (channel, time) by a filter, and mix it with the waveform."""
    x = temp._array
    steps = x - np.concatenate([last_in._array[:, None], x[:, :-1]], 1)
    y = _filter(steps, np.array([-0.995], x.dtype), last_out._array[:, None])
    output_waveform.copy_(wrap(waveform._array * 0.5 + y * 0.75))
    if x.shape[1]:
        last_in.copy_(temp[:, -1])
        last_out.copy_(wrap(y[:, -1]))
    return last_in, last_out, output_waveform


# Alignments ---------------------------------------------------------------------------------------


def forced_align(
    log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor, blank: int
) -> tuple[Tensor, Tensor]:
    """Return the most probable path (1, time) of labels and blanks, and the log probabilities themselves."""
    require(
        log_probs.dtype.tensor_name in ("Double", "Float", "Half"),
        "log_probs must be float64, float32 or float16 (half) type",
    )
    require(targets.dtype.tensor_name in ("Int", "Long"), "targets must be int32 or int64 type")
    require(log_probs.is_contiguous(), "log_probs must be contiguous")
    require(targets.is_contiguous(), "targets must be contiguous")
    require(log_probs.dim() == 3, "log_probs must be 3-D (batch_size, input length, num classes)")
    require(targets.dim() == 2, "targets must be 2-D (batch_size, target length,)")
    require(input_lengths.dim() == 1, "input_lengths must be 1-D (batch_size,)")
    require(target_lengths.dim() == 1, "target_lengths must be 1-D (batch_size,)")
    require(log_probs.size(0) == 1, "The batch dimension for log_probs must be 1 at the current version.")
    require(targets.size(0) == 1, "The batch dimension for targets must be 1 at the current version.")
    require(0 <= blank < log_probs.size(2), "blank must be within [0, num classes)")
    require(input_lengths.max().item() == log_probs.size(1), "input length mismatch")
    require(target_lengths.max().item() == targets.size(1), "target length mismatch")
    steps, labels = log_probs._array[0], targets._array[0]
    repeats = np.count_nonzero(labels[1:] == labels[:-1])
    require(
        len(steps) >= len(labels) + repeats,
        f"targets length is too long for CTC. Found log_probs length: {len(steps)}, targets length: {len(labels)}, "
        f"and number of repeats: {repeats}",
    )
    states = np.full(2 * len(labels) + 1, blank, labels.dtype)
    states[1::2] = labels
    skips = np.zeros(len(states), bool)  # whether a path may come from the label before, without a blank
    skips[3::2] = labels[1:] != labels[:-1]
    best = np.full(len(states), -np.inf, steps.dtype)
    best[:2] = steps[0, states[:2]]
    came = np.zeros((len(steps), len(states)), np.int8)
    for t in range(1, len(steps)):
        one, two = np.full_like(best, -np.inf), np.full_like(best, -np.inf)
        one[1:] = best[:-1]
        two[2:] = np.where(skips[2:], best[:-2], -np.inf)
        came[t] = np.where((two > one) & (two > best), 2, (one > best) & (one > two))
        best = np.choose(came[t], (best, one, two)) + steps[t, states]
    state = len(states) - 1
    if state and not best[state] > best[state - 1]:
        state -= 1
    path = np.empty(len(steps), labels.dtype)
    for t in range(len(steps) - 1, -1, -1):
        path[t] = states[state]
        state -= came[t, state]
    return wrap(path[None]), log_probs.clone()


def rnnt_loss_forward(
    logits: Tensor, targets: Tensor, logit_lengths: Tensor, target_lengths: Tensor, blank: int, clamp: float,
    fused_log_softmax: bool,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the losses (batch,) of a transducer, and their gradients (batch, time, target, class)."""
    require(logits.dtype.tensor_name in ("Float", "Half"), "logits must be float32 or float16 (half) type")
    for name, x in (("targets", targets), ("logit_lengths", logit_lengths), ("target_lengths", target_lengths)):
        require(x.dtype.tensor_name == "Int", f"{name} must be int32 type")
        require(x.is_contiguous(), f"{name} must be contiguous")
    require(logits.is_contiguous(), "logits must be contiguous")
    require(logits.dim() == 4, "logits must be 4-D (batch, time, target, class)")
    require(targets.dim() == 2, "targets must be 2-D (batch, max target length)")
    require(logit_lengths.dim() == 1, "logit_lengths must be 1-D")
    require(target_lengths.dim() == 1, "target_lengths must be 1-D")
    for name, x in (("logit_lengths", logit_lengths), ("target_lengths", target_lengths), ("targets", targets)):
        require(x.size(0) == logits.size(0), f"batch dimension mismatch between logits and {name}")
    require(0 <= blank < logits.size(3), "blank must be within [0, logits.shape[-1])")
    require(logits.size(1) == logit_lengths.max().item(), "input length mismatch")
    require(logits.size(2) == target_lengths.max().item() + 1, "output length mismatch")
    require(targets.size(1) + 1 == logits.size(2), "target length mismatch")
    numbers = logits._array.astype(np.float32)
    losses, gradients = np.empty(len(numbers), np.float32), np.zeros_like(numbers)
    for b, (time, count) in enumerate(zip(logit_lengths.tolist(), target_lengths.tolist(), strict=True)):
        losses[b], gradients[b, :time, : count + 1] = _transducer(
            numbers[b, :time, : count + 1], targets._array[b, :count], blank, fused_log_softmax
        )
    if clamp > 0:
        gradients = gradients.clip(-clamp, clamp)
    return wrap(losses.astype(logits._array.dtype)), wrap(gradients.astype(logits._array.dtype))


def _transducer(x: Array, labels: Array, blank: int, normalize: bool) -> tuple[Any, Array]:
    """Return the loss of one sequence, and its gradient, for scores (time, target + 1, class)."""
    if normalize:
        top = x.max(-1, keepdims=True)
        x = x - (top + np.log(np.exp(x - top).sum(-1, keepdims=True)))
    count = x.shape[1]
    rows = np.arange(count - 1)
    stay = x[:, :, blank]  # the log probabilities of going on in time, and of emitting the next label
    emit = x[:, rows, labels]
    before = _log_sums(stay[:-1], emit)
    # The same from the end: times and labels reversed.
    after = _log_sums(stay[:-1][::-1, ::-1], emit[::-1, ::-1], stay[-1, -1])[::-1, ::-1]
    with np.errstate(invalid="ignore"):
        through = before - after[0, 0]
        gradient = np.exp(x + (through + after)[..., None]) if normalize else np.zeros_like(x)
        follows = np.full_like(stay, -np.inf)
        follows[:-1] = after[1:]
        follows[-1, -1] = 0
        gradient[:, :, blank] -= np.exp(stay + through + follows)
        of_labels = np.exp(emit + through[:, :-1] + after[:, 1:])
        of_labels[:-1, labels == blank] = 0  # (as torchaudio, for labels that should not be there)
        gradient[:, rows, labels] -= of_labels
    return -after[0, 0], gradient


def _log_sums(down: Array, right: Array, first: Any = 0.0) -> Array:
    """Return the logarithms of the sums over all paths from the first corner of a grid to each of its points.

    Args:
        down: the log weights (rows - 1, columns) of the steps to the next row.
        right: the log weights (rows, columns - 1) of the steps to the next column.
        first: the logarithm at the corner.
    """
    rows, columns = len(right), down.shape[1]
    sums = np.full((rows, columns), -np.inf, right.dtype)
    sums[0, 0] = first
    for diagonal in range(1, rows + columns - 1):
        i = np.arange(max(0, diagonal - columns + 1), min(rows, diagonal + 1))
        j = diagonal - i
        above, left = np.full((2, len(i)), -np.inf, right.dtype)
        above[i > 0] = (sums[i - 1, j] + down[i - 1, j])[i > 0] if rows > 1 else -np.inf
        left[j > 0] = (sums[i, j - 1] + right[i, j - 1])[j > 0] if columns > 1 else -np.inf
        sums[i, j] = np.logaddexp(above, left)
    return sums


for _function in (_lfilter_core_loop, _overdrive_core_loop, forced_align, rnnt_loss_forward):
    library.CustomOpDef(f"torchaudio::{_function.__name__}", quiet(_function))
for _name, _value in (("is_align_available", True), ("cuda_version", None)):
    _constant = library.CustomOpDef(f"_torchaudio::{_name}", lambda value=_value: value)
    _constant._composite = True
