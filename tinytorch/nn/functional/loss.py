"""Losses of `nn.functional`, and the distances that some of them use; their ops are in `ops/nn/loss.py`.

The variants in `torch` itself, whose `reduction` is a number, are in `unlike.py`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from tinytorch.autograd.grad_mode import is_grad_enabled, no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.unusual import refuse_booleans
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import broadcast, check_expands, check_floating
from tinytorch.kernels.meta import within
from tinytorch.nn.functional.reduction import NUMBERS, checked_reduction
from tinytorch.ops import autocast
from tinytorch.ops.arguments import check_tensors
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.create import ones_like
from tinytorch.ops.masks import where
from tinytorch.ops.nn import ctc as _ctc
from tinytorch.ops.nn import loss as ops
from tinytorch.ops.nn.activation import log_softmax, logsigmoid
from tinytorch.ops.nn.versions import rewritten
from tinytorch.ops.reduce import vector_norm
from tinytorch.ops.register import public

Function = TypeVar("Function", bound=Callable[..., Any])

# Shared helpers -----------------------------------------------------------------------------------


def _loss(**facts: Any) -> Callable[[Function], Function]:
    """Return a decorator that publishes a loss; `size_average` and `reduce`, deprecated, come before `reduction`."""

    def declare(function: Any) -> Any:
        parameters = list(inspect.signature(function).parameters.values())
        names = [each.name for each in parameters]
        deprecated = [
            inspect.Parameter(each, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="bool | None")
            for each in ("size_average", "reduce")
        ]
        parameters[names.index("reduction") : names.index("reduction")] = deprecated
        names[names.index("reduction")] = "checked_reduction(size_average, reduce, reduction)"
        name = function.__name__
        return public(f"nn.functional.{name}", **facts)(rewritten(function, name, parameters, ", ".join(names)))

    return declare


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def _matched(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both broadcast to one shape, which is warned of, and promoted to one dtype."""
    if target.shape != input.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
        )
        shape = broadcast(input.shape, target.shape)
        input, target = input.expand(shape), target.expand(shape)
    if input._array.dtype != target._array.dtype:
        common = dtypes.promote_types(input.dtype, target.dtype)
        input, target = input.to(common), target.to(common)
    return input, target


def _weighted(losses: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Return the reduced losses times weights; the mean is divided by the sum of the weights."""
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else _reduced(losses, reduction)


# Regression ---------------------------------------------------------------------------------------


@_loss()
def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the mean squared error, `mean((input - target) ** 2)`.

    Input, target and `weight` have one shape. The reduction is "mean", "sum", or "none" for the loss of each element
    (sample, pair); `size_average` and `reduce` are its deprecated form.

    Example:
        >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    if autocast.on and weight is None:
        input, target = autocast.raised(input, target)
    x, y = _matched(input, target)
    if weight is not None:
        return _weighted((x - y).square(), input, weight, reduction)
    return ops.mse_loss(x, y, reduction)


@_loss()
def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Return the mean absolute error, `mean(|input - target|)`; arguments as `mse_loss`.

    Example:
        >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    if autocast.on and weight is None:
        input, target = autocast.raised(input, target)
    refuse_booleans(input, target)
    x, y = _matched(input, target)
    if weight is not None:
        return _weighted((x - y).abs(), input, weight, reduction)
    return _reduced((x - y).abs(), reduction)


@_loss(autocast="float32")
def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Return the mean error, squared where it is small, absolute where it is large.

    With d = input - target it is `0.5 * d ** 2 / beta` where `|d| < beta`, else `|d| - 0.5 * beta`.

    Arguments as for `mse_loss`; `beta=0` is `l1_loss`.

    Example:
        >>> x, y = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0])
        >>> torch.nn.functional.smooth_l1_loss(x, y, reduction="none")
        tensor([0.5000, 2.5000])

    Source: Girshick, "Fast R-CNN", 2015.
    """
    x, y = _matched(input, target)
    if beta == 0:
        return _reduced((x - y).abs(), reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return ops.smooth_l1_loss(x, y, reduction, beta)


@public("nn.functional.huber_loss", autocast="float32")
def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return the mean squared error, linear where it is large.

    With d = input - target it is `0.5 * d ** 2` where `|d| <= delta`, else `delta * (|d| - 0.5 * delta)`.

    Arguments as for `mse_loss`.

    Example:
        >>> torch.nn.functional.huber_loss(torch.tensor([0.0]), torch.tensor([3.0]), delta=2.0)
        tensor(4.)

    Source: Huber, "Robust Estimation of a Location Parameter", 1964.
    """
    reduction = checked_reduction(None, None, reduction)
    x, y = _matched(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if x.dtype.category > input.dtype.category:
        raise _no_cast(x.dtype, input.dtype)
    if weight is None and x.dtype is input.dtype:
        return ops.huber_loss(x, y, reduction, delta)
    losses = ops.huber_loss(x, y, "none", delta).to(input.dtype)  # as PyTorch, whatever the dtype of the target
    if weight is not None:  # as in PyTorch, the mean is divided by the number of elements, unlike other losses
        losses = _weighted(losses, input, weight, "none")
    return _reduced(losses, reduction)


def _no_cast(have: Any, want: Any) -> RuntimeError:
    return RuntimeError(f"result type {have.tensor_name} can't be cast to the desired output type {want.tensor_name}")


# Classification and probabilities -----------------------------------------------------------------


@_loss(autocast="float32")
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean of `-(target * log(input) + (1 - target) * log(1 - input))`.

    The logarithms are at least -100, so that the loss is finite.

    Input and target are probabilities of one shape, with which `weight` broadcasts; other arguments as for `mse_loss`.

    Example:
        >>> x, y = torch.tensor([0.5, 0.0]), torch.tensor([1.0, 0.0])
        >>> torch.nn.functional.binary_cross_entropy(x, y)
        tensor(0.3466)
    """
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype != input.dtype:
        raise RuntimeError(f"Found dtype {target.dtype.tensor_name} but expected {input.dtype.tensor_name}")
    if weight is not None:
        _refuse_grad(weight, "binary_cross_entropy", "weight")
        weight = weight.expand(broadcast(weight.shape, target.shape))
    return ops.binary_cross_entropy(input, target, weight, reduction)


@_loss(autocast="float32")
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return `binary_cross_entropy(sigmoid(input), target)`, computed without loss of precision or overflow.

    The input holds scores; `pos_weight` is a factor of the positive part, `target * log(sigmoid(input))`. Other
    arguments as for `binary_cross_entropy`.

    Example:
        >>> scores, labels = torch.tensor([0.0, -200.0]), torch.tensor([1.0, 0.0])
        >>> torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        tensor(0.3466)
    """
    if target.shape != input.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if not target.dtype.is_floating_point and input.dtype.is_floating_point:
        raise RuntimeError(
            f"result type {input.dtype.tensor_name} can't be cast to the desired output type "
            f"{target.dtype.tensor_name}; convert the target with .to(input.dtype)"
        )
    for name, tensor in (("weight", weight), ("pos_weight", pos_weight)):
        if tensor is not None:
            _refuse_grad(tensor, "binary_cross_entropy_with_logits", name)
            broadcast(tensor.shape, target.shape)
    if target.dtype is not input.dtype and target.dtype.is_floating_point:
        # The result has the target's dtype, since PyTorch computes it in place on `1 - target`.
        likelihood = logsigmoid(input)
        if pos_weight is not None:
            factor = (pos_weight - 1) * target + 1
            likelihood = (factor * likelihood).to(factor.dtype)
        loss = ((1 - target) * input).to(target.dtype)
        loss = (loss - likelihood).to(target.dtype)
        if weight is not None:
            loss = (loss * weight).to(target.dtype)
        return loss if reduction == "none" else getattr(loss, reduction)()
    return ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


@public("nn.functional.cross_entropy", autocast="float32")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the mean cross entropy of scores and labels, `-log(softmax(input))[target]`.

    Shapes: scores (logits) (C,), (N, C) or (N, C, d1, d2, ...); class indices (), (N,) or (N, d1, d2, ...), or
    probabilities of the shape of the scores; weights of the classes (C,), by which the mean is divided, too. Samples
    whose label is `ignore_index` are left out; `label_smoothing` is the share of the target that is spread over all
    classes. Other arguments as for `mse_loss`.

    Example:
        >>> scores = torch.tensor([[0.0, 0.0], [0.0, 100.0]])
        >>> torch.nn.functional.cross_entropy(scores, torch.tensor([0, 1]))
        tensor(0.3466)

    Source: Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015, section 7 (smoothing).
    """
    if size_average is not None or reduce is not None or reduction not in ("mean", "sum", "none"):
        reduction = checked_reduction(size_average, reduce, reduction)
    shape = input._array.shape
    if target._array.shape == shape:
        return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    check_floating("log_softmax_lastdim_kernel_impl", input._array)
    _check_labels(input, target, weight)
    if label_smoothing > 0:
        loss = ops.smoothed_cross_entropy
    else:
        loss = ops.cross_entropy if len(shape) < 3 else ops.cross_entropy_of_places
    return loss(input, target, weight, ignore_index, reduction, label_smoothing)


def _soft_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str, label_smoothing: float
) -> Tensor:
    """Return the cross entropy of scores and probabilities of the classes."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            f"Expected floating point type for target with class probabilities, got {target.dtype.tensor_name} (class "
            "labels have the shape of input without its dimension of classes)"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = 0 if input.ndim == 1 else 1
    classes = input.shape[dim]
    _check_class_weight(weight, classes)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / max(classes, 1)
    gains = log_softmax(input, dim) * target
    if weight is not None:
        gains = gains * weight.reshape([classes if k == dim else 1 for k in range(input.ndim)])
    if reduction == "none":
        return -gains.sum(dim)
    loss = -gains.sum()
    return loss / (input.numel() // classes if classes else 0) if reduction == "mean" else loss


@public("nn.functional.nll_loss", autocast="float32")
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood, `-input[target]`.

    The input holds log-probabilities, (C,), (N, C) or (N, C, d1, d2, ...); other arguments as for `cross_entropy`.

    Example:
        >>> scores = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]])
        >>> torch.nn.functional.nll_loss(scores, torch.tensor([0, 1]))
        tensor(2.5000)
    """
    reduction = checked_reduction(size_average, reduce, reduction)
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    _check_labels(input, target, weight)
    return ops.nll_loss(input, target, weight, ignore_index, reduction)


def _check_labels(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise PyTorch's errors unless scores (N, C, ...), labels (N, ...) and weights (C,) match."""
    shape, labels = input._array.shape, target._array.shape
    if len(shape) == 2 and len(labels) == 1 and shape[0] == labels[0]:
        pass
    elif len(shape) == 1:
        if len(labels) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if labels not in ((), (1,)):
            raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {labels[0]}")
    elif not labels or shape[0] != labels[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({labels[0] if labels else 0})."
        )
    elif len(shape) == 2:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    elif labels[1:] != shape[2:]:
        if len(shape) != 4:
            raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(labels)}")
        if len(labels) != 3:
            raise RuntimeError(
                f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(labels)}"
            )
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(labels)}")
    if len(shape) > 2 and target._array.dtype == np.uint8:
        raise RuntimeError("expected scalar type Long but found Byte")
    if target._array.dtype != np.int64 and target._array.dtype != np.uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.tensor_name}: convert class "
            "indices by target.long(). (Class probabilities have the shape of the input.)"
        )
    if weight is not None:
        _check_class_weight(weight, shape[0] if len(shape) == 1 else shape[1])
        if weight.dtype != input.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.tensor_name} but found {weight.dtype.tensor_name} (the weight)"
            )
        _refuse_grad(weight, "nll_loss_forward", "weight")


def _check_class_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _refuse_grad(tensor: Tensor | None, function: str, argument: str) -> None:
    """Raise PyTorch's error if a tensor requires grad for which the loss has no derivative."""
    if tensor is not None and tensor.requires_grad and is_grad_enabled():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument '{argument}'. This input "
            "cannot have requires_grad True."
        )


@public("nn.functional.kl_div", autocast="float32")
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the mean of `target * (log(target) - input)`, the Kullback-Leibler divergence.

    The input holds log-probabilities, and so does the target with `log_target`. The reduction "batchmean" (the sum
    divided by the batch size) is the definition; other arguments as for `mse_loss`.

    Example:
        >>> input, target = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]])
        >>> torch.nn.functional.kl_div(input, target, reduction="batchmean")
        tensor(0.6931)
    """
    if size_average is not None or reduce is not None:
        reduction = checked_reduction(size_average, reduce, reduction)
    elif reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    by_batch = reduction == "batchmean"
    reduction = "sum" if by_batch else checked_reduction(None, None, reduction)
    losses = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    result = _reduced(losses, reduction)
    return result / input.shape[0] if by_batch and input.ndim else result


@public("nn.functional.poisson_nll_loss", autocast="float32")
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the negative log-likelihood of counts under a Poisson distribution.

    It is `exp(input) - target * input`, or without `log_input` `input - target * log(input + eps)`.

    `input` holds the expected counts, or their logarithms with `log_input`. `full` adds Stirling's approximation of
    log(target!) where target > 1. Other arguments as for `mse_loss`.

    Example:
        >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
    """
    check_tensors("poisson_nll_loss", input=input, target=target)
    reduction = checked_reduction(size_average, reduce, reduction)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = (losses + stirling.masked_fill(target <= 1, 0)).to(losses.dtype)
    return _reduced(losses, reduction)


@public("nn.functional.gaussian_nll_loss")
@per_example("var")
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Return the mean negative log-likelihood under normal distributions.

    It is `0.5 * (log(var) + (input - target) ** 2 / var)`.

    `var` is a number, or a tensor of the shape of `input`, of that shape with one length replaced by 1, or without the
    last dimension; it is at least `eps`. `full` adds `0.5 * log(2 * pi)`.

    Example:
        >>> mean, target, var = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
        >>> torch.nn.functional.gaussian_nll_loss(mean, target, var)
        tensor(2.)

    Source: Nix and Weigend, "Estimating the Mean and Variance of the Target Probability Distribution", 1994.
    """
    if var < 0 if isinstance(var, float) else (var._array < 0).any():
        raise ValueError("var has negative entry/entries")
    variance = var * ones_like(input) if isinstance(var, float) else var
    if variance.shape != input.shape:
        if input.shape[:-1] == variance.shape:
            variance = variance.unsqueeze(-1)
        elif (
            variance.ndim != input.ndim
            or sum(v for v, n in zip(variance.shape, input.shape, strict=True) if v != n) != 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    variance = variance.clone()
    with no_grad():  # As in PyTorch, the bound does not stop gradients.
        variance.clamp_(min=eps)
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return _reduced(losses, reduction)


# Margins and embeddings ---------------------------------------------------------------------------


@_loss(autocast="float32")
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """Return the mean of `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1.

    `cos` is the cosine of the angle between the vectors of a pair.

    Shapes: (N, D) twice and (N,), or (D,) twice and (); other arguments as for `mse_loss`.

    Example:
        >>> a, b = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> torch.nn.functional.cosine_embedding_loss(a, b, torch.tensor([1, -1]), reduction="none")
        tensor([1., 1.])
    """
    dims = target.ndim + 1
    if dims > 2:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != dims or input2.ndim != dims:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {dims}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    # As in PyTorch, epsilon is added to the squared norms, unlike in `cosine_similarity`.
    product = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = product / squares.sqrt()
    similar = (1 - cosine).masked_fill(target != 1, 0)
    dissimilar = (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return _reduced(similar + dissimilar, reduction)


@_loss(autocast="float32")
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, reduction: str = "mean"
) -> Tensor:
    """Return the mean of `max(0, -target * (input1 - input2) + margin)`.

    The target is 1 where the first should rank higher, -1 where the second should; other arguments as for `mse_loss`.

    Example:
        >>> a, b = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 3.0])
        >>> target = torch.tensor([1.0, -1.0])
        >>> torch.nn.functional.margin_ranking_loss(a, b, target, reduction="none")
        tensor([2., 0.])
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduced((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


@_loss(autocast="float32")
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """Return the mean of `input` where target is 1, of `max(0, margin - input)` where it is -1.

    The input holds distances, the target, of that shape, 1 or -1; other arguments as for `mse_loss`.

    Example:
        >>> distances, target = torch.tensor([0.25, 0.25]), torch.tensor([1, -1])
        >>> torch.nn.functional.hinge_embedding_loss(distances, target, reduction="none")
        tensor([0.2500, 0.7500])
    """
    check_tensors("hinge_embedding_loss", input=input, target=target)
    margin = margin if input.is_floating_point() else int(margin)
    dissimilar = where(target == 1, 0, (margin - input).clamp_min(0))
    return _reduced(dissimilar + where(target == -1, 0, input), reduction)


@_loss(autocast="float32")
def soft_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the mean of `log(1 + exp(-target * input))`, targets 1 or -1; arguments as `mse_loss`.

    Example:
        >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    _refuse_grad(target, "soft_margin_loss", "target")
    check_expands(target.shape, input.shape)
    if target.dtype.category < dtypes.FLOATING:
        target = target.to(input.dtype)
    if input.dtype.is_complex:
        return _reduced((1 + (input * -target).exp()).log(), reduction)
    if not input.dtype.is_floating_point:
        -input  # noqa: B018  (raises for dtypes without negation)
        kind = target.dtype if target.dtype.is_floating_point else dtypes.get_default_dtype()
        raise _no_cast(kind, input.dtype)
    return ops.soft_margin_loss(input, target, reduction)


@_loss()
def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """Return the mean of the binary cross entropies of all classes, for samples with several labels.

    Shapes: scores and targets (0 or 1) (N, C) or (C,), weights of the classes (C,); other arguments as for `mse_loss`.

    Example:
        >>> target = torch.tensor([[1.0, 0.0]])
        >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), target)
        tensor(0.6931)
    """
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    classes = input.ndim - 1
    return _reduced(losses.sum(classes) / input.shape[classes], reduction)


@_loss(autocast="float32")
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `sum(max(0, margin - x[y] + x[i]) ** p) / C`, y the label, over i != y.

    Shapes: scores (N, C) or (C,), labels (N,) or (), weights of the classes (C,); `p` is 1 or 2. Other arguments as for
    `mse_loss`.

    Example:
        >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.0, 0.5]]), torch.tensor([0]))
        tensor(0.7500)
    """
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    shape = [*input.shape]
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}")
    count, classes = [1] * (2 - len(shape)) + shape
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {[*target.shape]}. Input has shape {shape}."
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {[*weight.shape]}")
    _refuse_grad(weight, "multi_margin_loss", "weight")
    _check_margin("multi_margin_loss_cpu_kernel", input, target)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_name} but found {weight.dtype.tensor_name}")
    return ops.multi_margin_loss(input, target, p, margin, weight, reduction)


@_loss(autocast="float32")
def multilabel_margin_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the mean of `sum(max(0, 1 - x[label] + x[other])) / C`, over all pairs of a label and another class.

    Shapes: scores (N, C) or (C,), and the int64 labels of each sample, terminated by -1, of that shape; other arguments
    as for `mse_loss`.

    Example:
        >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    shape = [*input.shape]
    if input.ndim > 2 or (input.ndim and not shape[-1]):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}")
    if target.numel() != input.numel() or (input.ndim and target.shape != input.shape):
        raise RuntimeError(f"inconsistent target size: {[*target.shape]} for input of size: {shape}")
    _check_margin("multilabel_margin_loss_forward_out_frame", input, target)
    labels = target._array
    if not within(labels, -1, (shape or [1])[-1]):
        raise RuntimeError("argument #2 'target' is out of range")
    # (The mean of no samples is 0; in PyTorch it is uninitialized memory.)
    reduction = "sum" if reduction == "mean" and not input._array.size else reduction
    return ops.multilabel_margin_loss(input, target, reduction)


def _check_margin(kernel: str, input: Tensor, target: Tensor) -> None:
    """Raise PyTorch's errors unless the scores are float32 or float64, and the labels int64."""
    if input._array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.tensor_name}'")
    check_floating(kernel, input._array)
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.tensor_name}")


@_loss(autocast="float32")
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `max(0, |anchor - positive| - |anchor - negative| + margin)`.

    Shapes: (N, D) or (D,). The distance is the `p`-norm of the difference plus `eps`; with `swap` the distance of
    positive and negative replaces that of anchor and negative where it is smaller. Other arguments as for `mse_loss`.

    Example:
        >>> a, b, c = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[-1.0]])
        >>> torch.nn.functional.triplet_margin_loss(a, b, c)
        tensor(2.0000)

    Source:
        Balntas et al., "Learning local feature descriptors with triplets and shallow convolutional
        neural networks", 2016 (`swap`).
    """
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
    )  # fmt: skip


@public("nn.functional.triplet_margin_with_distance_loss")
def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` with a user-defined distance.

    `distance_function` takes two tensors; by default `pairwise_distance`. Other arguments as for `triplet_margin_loss`.

    Example:
        >>> a, b, c = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[-1.0]])
        >>> def squared(x, y):
        ...     return ((x - y) ** 2).sum(-1)
        >>> loss = torch.nn.functional.triplet_margin_with_distance_loss
        >>> loss(a, b, c, distance_function=squared)
        tensor(4.)
    """
    reduction = checked_reduction(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((near + margin - far).clamp_min(0), reduction)


# Sequences ----------------------------------------------------------------------------------------


@public("nn.functional.ctc_loss", autocast="float32")
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return the negative log-probability of each target, summed over its alignments with the sequence.

    An alignment has a label or the blank at each step; repeated labels count once, unless a blank separates them.

    Shapes: log-probabilities (T, N, C) or (T, C), labels (N, S) or concatenated, and the lengths (N,) of sequences and
    targets, tensors or tuples. The reduction "mean" divides the losses by the targets' lengths; with `zero_infinity`
    infinite losses, of targets too long for their sequences, become 0 with zero gradient.

    Example:
        >>> even = torch.full((2, 1, 2), 0.5).log()
        >>> loss = torch.nn.functional.ctc_loss(even, torch.tensor([[1]]), (2,), (1,))
        >>> loss.exp()  # 3 of the 4 alignments of two steps read "1"
        tensor(1.3333)

    Source:
        Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent
        Neural Networks", 2006.
    """
    number = NUMBERS[checked_reduction(None, None, reduction)]
    return _ctc.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


# Distances ----------------------------------------------------------------------------------------


@public(binds=False, also="nn.functional.cosine_similarity")
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors.

    It is `sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))`.

    The shapes broadcast; `dim` is the dimension of the vectors.

    Example:
        >>> a, b = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])
        >>> torch.cosine_similarity(a, b)
        tensor([1.0000, 0.7071])
    """
    kind = x1.dtype if x1.dtype is x2.dtype else dtypes.promote_types(x1.dtype, x2.dtype)
    if not kind.is_floating_point:
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {kind.tensor_name}")
    shape = x1._array.shape
    if shape != x2._array.shape or x1.dtype is not x2.dtype:
        shape = broadcast(shape, x2._array.shape)
        x1, x2 = [x.expand(shape).to(kind) for x in (x1, x2)]
    x1, x2 = [x / vector_norm(x, 2, dim, True).clamp(eps) for x in (x1, x2)]
    return (x1 * x2).sum(dim)


@public(binds=False, also="nn.functional.pairwise_distance")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last dimension.

    The shapes broadcast; `keepdim` keeps the last dimension, with length 1.

    Example:
        >>> torch.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)
