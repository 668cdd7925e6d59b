"""`linear_cross_entropy`: the cross entropy of the scores that a linear layer computes, with little memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.autograd.function import Function
from tinytorch.autograd.grad_mode import is_grad_enabled, no_grad
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, meta, projected_loss
from tinytorch.kernels.silence import cast
from tinytorch.nn.functional.loss import cross_entropy
from tinytorch.ops.nn.linear import linear
from tinytorch.ops.register import public

if TYPE_CHECKING:
    from tinytorch.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions


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
        return wrap(cast(np.asarray(total), arrays[0].dtype, copy=False))

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        saved = ctx.saved_tensors
        if ctx.reduction == "none":
            arrays: Any = [None if each is None else each._array for each in saved]
            scales = ctx.scales * cast(g._array, ctx.kind.numpy)
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

    Shapes: samples (N, F) or (F,); weights (C, F), or (C, d1, …, F) for scores (N, C, d1, …); classes (N,), () or (N,
    d1, …), int64, or probabilities of the shape of the scores; bias (C,) or (C, d1, …). `ignore_index` is -100 by
    default, and not for probabilities. `options` are ignored, with a warning, with smoothed labels, probabilities, and
    scores of more dimensions. Other arguments as for `cross_entropy`.

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
