"""Connectionist temporal classification."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import ctc
from tinytorch.kernels.checks import tensor_name
from tinytorch.ops.arguments import not_implemented, op_of
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.register import public

_INT64 = np.dtype(np.int64)


_ctc_slope = op_of(ctc.ctc_slope, x=None, alpha=None)
_ctc_grad = op_of(
    ctc.ctc_grad, name="CtcLossBackward", g=lambda gg, slope: (gg * slope).sum((0, 2)),
    x=not_implemented("_ctc_loss_backward"), slope=None,
)  # fmt: skip
_ctc_losses = op_of(
    ctc.ctc_losses, name="CtcLoss", residuals=("alpha",),
    x=lambda g, x, problem, blank, zero_infinity, alpha: _ctc_grad(
        g, x, _ctc_slope(x, problem, blank, zero_infinity, alpha)
    ),
)  # fmt: skip


def _lengths(name: str, lengths: Any, count: int) -> Any:
    array = lengths._array if isinstance(lengths, Tensor) else np.asarray(lengths, _INT64)
    if array.dtype.kind not in "iub":
        raise RuntimeError(f"{name} must be integral")
    if array.size != count:
        raise RuntimeError(f"{name} must be of size batch_size")
    return array.reshape(-1).astype(_INT64)


def _check_range(name: str, lengths: Any, most: int | None) -> None:
    where = "(while checking arguments for ctc_loss_allocate_outputs)"
    if lengths.size and lengths.min() < 0:
        raise RuntimeError(f"Expected {name} to have value at least 0, but got value {lengths.min()} {where}")
    if most is not None and lengths.size and lengths.max() > most:
        raise RuntimeError(f"Expected {name} to have value at most {most}, but got value {lengths.max()} {where}")


def _padded(targets: Any, lengths: Any) -> Any:
    """Return targets, given as (N, S) or concatenated, as (N, S), where S is the length of the longest."""
    longest = int(lengths.max()) if lengths.size else 0
    where = "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)"
    if targets.ndim == 2:
        if targets.shape[0] != len(lengths):
            raise RuntimeError(
                f"Expected tensor to have size {len(lengths)} at dimension 0, but got size {targets.shape[0]} {where}"
            )
        if targets.shape[1] < longest:
            raise RuntimeError(
                f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.shape[1]} "
                f"{where}"
            )
        return targets[:, :longest].astype(_INT64)
    if targets.ndim != 1:
        raise RuntimeError(f"Expected 1 to 2 dimensions, but got {targets.ndim}-dimensional tensor {where}")
    if targets.size != lengths.sum():
        raise RuntimeError(
            f"Expected tensor to have size {lengths.sum()} at dimension 0, but got size {targets.size} {where}"
        )
    out = np.zeros_like(targets, _INT64, shape=(len(lengths), longest))
    out[np.arange(longest) < lengths[:, None]] = targets
    return out


@public(autocast="float32")
@per_example("targets", "input_lengths", "target_lengths")
def ctc_loss(
    log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:  # fmt: skip
    """Return minus the log-probability that alignments of a sequence give its target; see `nn.functional.ctc_loss`.

    The reduction is 0 for one loss per sequence, 1 for the mean (each divided by its target's length), 2 for the sum.

    Example:
        >>> even = torch.full((2, 1, 2), 0.5).log()
        >>> torch.ctc_loss(even, torch.tensor([[1]]), (2,), (1,)).exp()  # 3 of 4 sequences of two read as "1"
        tensor([1.3333])

    Source: Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent
        Neural Networks", 2006.
    """
    batched = log_probs.ndim == 3
    x = log_probs if batched else log_probs.unsqueeze(1)
    if x.ndim != 3:
        raise RuntimeError(
            f"Expected 3-dimensional tensor, but got {x.ndim}-dimensional tensor for argument #1 'log_probs' (while "
            "checking arguments for ctc_loss_allocate_outputs)"
        )
    array = x._array
    if not array.size:
        raise RuntimeError("log_probs tensor must not be empty")
    if array.dtype.kind != "f" or array.dtype.itemsize < 4:
        raise NotImplementedError(f"\"ctc_loss_cpu\" not implemented for '{tensor_name(array)}'")
    time, count, classes = array.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    lengths = _lengths("input_lengths", input_lengths, count)
    of_targets = _lengths("target_lengths", target_lengths, count)
    _check_range("target_lengths", of_targets, None)
    flat = targets._array if batched or targets.ndim == 1 else targets._array.reshape(1, -1)
    padded = _padded(flat, of_targets)
    _check_range("input_lengths", lengths, time)
    # Labels beyond a target's length are ignored.
    padded[np.arange(padded.shape[1]) >= of_targets[:, None]] = blank
    if padded.size and not 0 <= padded.min() <= padded.max() < classes:
        raise RuntimeError(
            f"ctc_loss: Expected every label in targets to be in [0, {classes}), but found one that is not"
        )
    problem = (*ctc.states(padded, blank), lengths, of_targets)
    losses: Tensor = _ctc_losses(x, problem, blank, zero_infinity)
    if zero_infinity:
        zero: Tensor = wrap(np.zeros_like(array, shape=()))
        losses = zero.where(losses == float("inf"), losses)
    if reduction == 1:
        divisors: Tensor = wrap(np.maximum(of_targets, 1).astype(array.dtype))
        return (losses / divisors).mean()
    if reduction == 2:
        return losses.sum()
    return losses if batched else losses.squeeze(0)
