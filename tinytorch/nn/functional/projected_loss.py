"""`linear_cross_entropy`: the cross entropy of the scores that a linear layer computes, with little memory."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from tinytorch.autograd.function import Function
from tinytorch.autograd.grad_mode import is_grad_enabled, no_grad
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, meta, projected_loss
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.nn.functional.loss import cross_entropy
from tinytorch.ops.nn.linear import linear
from tinytorch.ops.register import public

__all__ = ["LinearCrossEntropyOptions", "linear_cross_entropy"]

_POLICIES = ("auto", "accurate", "balanced", "compact")


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` divides the samples into chunks, so that the scores of all never exist at once.

    Args:
        allow_retain_graph: accepted for PyTorch's sake: a second backward pass through a retained graph is always
            possible here.
        batch_chunk_size: the number of samples in a chunk; by default `chunking_method` chooses it.
        chunking_method: "aspect_ratio": the scores of a chunk are about as large as the input; "aspect_ratio:2": half
            as large, and so on; "auto" chooses one of these; None: `batch_chunk_size`, or a single chunk.
        acc_policy: accepted for PyTorch's sake; sums are always accumulated in `acc_dtype` ("accurate").
        acc_dtype: the dtype to compute with; by default float32 for inputs of 16 bits, otherwise the input's.

    Raises:
        ValueError: an option has no such value.

    Example:
        >>> torch.nn.LinearCrossEntropyOptions(batch_chunk_size=64).batch_chunk_size
        64
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Dtype | None = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if self.chunking_method not in (None, "auto") and self._divisor(self.chunking_method) < 1:
            raise ValueError(f"invalid chunking_method: {self.chunking_method!r}")
        size = self.batch_chunk_size
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype not in (None, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64):
            raise ValueError(
                "acc_dtype must be one of {None, torch.float16, torch.bfloat16, torch.float32, torch.float64}, got "
                f"{self.acc_dtype!r}. Pass acc_dtype=None to let the op pick automatically."
            )

    @staticmethod
    def _divisor(method: Any) -> int:
        """Return the number in "aspect_ratio:number", 1 if there is none; 0 for another text."""
        name, colon, number = method.partition(":")
        number = number if colon else "1"
        return int(number) if name == "aspect_ratio" and number.isdigit() else 0

    def _rows(self, samples: int, features: int, classes: int, kind: Dtype) -> int:
        """Return the number of samples in a chunk."""
        method, size = self.chunking_method, self.batch_chunk_size
        if method == "auto":
            method = None if size else "aspect_ratio" if kind.itemsize == 2 else "aspect_ratio:2"
        if method is None:
            return max(1, min(size or samples, samples))
        target = -(-samples // -(-classes // features))
        rows = min((1 << (target - 1).bit_length()) // self._divisor(method), samples)
        if size is not None and size != rows:
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk sizes ({size} vs "
                f"{rows}); pass only one."
            )
        return max(1, rows)

    def _kind(self, kind: Dtype) -> Dtype:
        """Return the dtype to compute with, for inputs of dtype `kind`."""
        wide = self.acc_dtype or (dtypes.float32 if kind.itemsize == 2 else kind)
        if wide is not kind and not (kind.itemsize == 2 and wide is dtypes.float32):
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                f"{wide} acc_dtype and {kind} inputs."
            )
        return dtypes.float32 if wide.itemsize == 2 else wide


class _InChunks(Function):
    """The loss, chunk by chunk: of a mean or sum, forward computes the gradients; otherwise backward does."""

    @staticmethod
    def forward(ctx: Any, input: Any, matrix: Any, bias: Any, target: Any, weight: Any, options: Any) -> Any:
        reduction, ignored, rows, kind, wanted = options
        arrays: Any = [None if each is None else each._array for each in (input, matrix, target, bias)]
        scales = projected_loss.sample_weights(
            target._array, None if weight is None else weight._array, ignored, len(arrays[1]), kind.numpy
        )
        count = scales.sum() if reduction == "mean" else 1
        ctx.reduction, ctx.wanted, ctx.rows, ctx.kind, ctx.scales = reduction, wanted, rows, kind, scales
        early = wanted if reduction != "none" else (False, False, False)
        now = scales / count if count else scales
        given: Any = (*arrays, now, rows, kind.numpy, True, early)
        losses, gradients = projected_loss.in_chunks(*given)
        assert losses is not None
        total = losses if reduction == "none" else losses.sum() if count else np.array(np.nan, kind.numpy)
        ctx.gradients = [None if each is None else wrap(each) for each in gradients]
        if reduction == "none":
            ctx.save_for_backward(input, matrix, target, bias)
        else:
            ctx.save_for_backward(input, matrix, bias)  # so that writing to them before backward is an error
        return wrap(np.asarray(total).astype(arrays[0].dtype, copy=False))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        saved = ctx.saved_tensors
        if ctx.reduction == "none":
            arrays: Any = [None if each is None else each._array for each in saved]
            scales = ctx.scales * g._array.astype(ctx.kind.numpy)
            given: Any = (*arrays, scales, ctx.rows, ctx.kind.numpy, False, ctx.wanted)
            _, gradients = projected_loss.in_chunks(*given)
            found = [None if each is None else wrap(each) for each in gradients]
        else:
            with no_grad():
                found = [None if each is None else each * g for each in ctx.gradients]
        if is_grad_enabled():
            found = [None if each is None else _OnlyOnce.apply(each, g, *saved) for each in found]
        return (*found, None, None, None)


class _OnlyOnce(Function):
    """Returns the gradients of `_InChunks`, as results of what they depend on: their derivative is an error."""

    @staticmethod
    def forward(ctx: Any, gradient: Any, *sources: Any) -> Any:
        return gradient.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        raise RuntimeError(
            "linear_cross_entropy: the gradients of the chunked loss have no derivatives; pass options=None"
        )


@public("nn.functional.linear_cross_entropy")
def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """Return `cross_entropy(linear(input, linear_weight, linear_bias), target)`.

    With `options`, the samples are processed in chunks, which needs much less memory if there are many classes; there
    are no derivatives of the gradients then, and none in forward mode.

    Args:
        input: the samples, (N, F) or (F,).
        linear_weight: (C, F), or (C, d1, …, F) for scores of shape (N, C, d1, …).
        target: classes, (N,), () or (N, d1, …), int64; or probabilities of the shape of the scores.
        linear_bias: the bias, (C,) or (C, d1, …).
        weight: a factor of each class's losses, (C,).
        reduction: "mean", "sum" or "none".
        ignore_index: a target whose samples are left out; -100 by default. Not with probabilities.
        label_smoothing: as for `cross_entropy`.
        options: how to compute in chunks; by default all scores are computed at once. Ignored, with a warning, with
            smoothed labels, probabilities, and scores of more dimensions.

    Raises:
        RuntimeError: shapes that do not fit; `ignore_index` with probabilities.
        IndexError: a class is out of range.

    Example:
        >>> x, w = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.eye(2)
        >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 0]))
        tensor(0.8133)
    """
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    batch, features, (classes, *places) = input.shape[:-1], input.shape[-1], linear_weight.shape[:-1]
    if features != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{features} and {linear_weight.shape[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *places):
        raise RuntimeError(f"expected linear_bias shape {(classes, *places)}, got {tuple(linear_bias.shape)}")
    if places and not batch:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {features}), got unbatched input with shape {tuple(input.shape)}"
        )
    shape = (*batch, classes, *places)
    if target.shape == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if not places and reduction in ("mean", "sum", "none") and not label_smoothing and target.dtype is dtypes.int64:
            if not any(meta.is_meta(each._array) for each in (input, linear_weight, target)):
                return _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
        else:
            warn(
                "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, "
                f"label_smoothing == 0, target.dtype == int64, out_features == (). Got reduction={reduction!r}, "
                f"label_smoothing={label_smoothing}, target.dtype={target.dtype}, out_features={tuple(places)}, "
                "tracing=False, linear_bias.shape="
                f"{tuple(linear_bias.shape) if linear_bias is not None else None}."
            )
    if places:
        rows = math.prod(places) * classes
        linear_weight = linear_weight.reshape(rows, features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(rows)
    scores = linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        scores, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing
    )


def _chunked(
    input: Tensor, matrix: Tensor, target: Tensor, bias: Tensor | None, weight: Tensor | None, reduction: str,
    ignored: int, options: LinearCrossEntropyOptions,
) -> Tensor:  # fmt: skip
    single = input.dim() == 1
    if single:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    if target.shape != input.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size ({math.prod(target.shape)})."
        )
    samples, features = input.shape
    rows = options._rows(samples, features, len(matrix), input.dtype)
    wanted = tuple([is_grad_enabled() and each is not None and each.requires_grad for each in (input, matrix, bias)])
    chosen = (reduction, ignored, rows, options._kind(input.dtype), wanted)
    result: Tensor = _InChunks.apply(input, matrix, bias, target, weight, chosen)
    return result.squeeze(0) if single and reduction == "none" else result
