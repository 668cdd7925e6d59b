"""Ops of neural networks: losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import activation, loss
from tinytorch.kernels.checks import check_floating
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.nn.activation import hardtanh, logsigmoid, softmax
from tinytorch.ops.register import pointwise

# Elementwise losses -------------------------------------------------------------------------------


def _share(g: Tensor, reduction: str, count: int) -> Tensor:
    """Return the gradient of each element's loss: `g` divided by `count` for a mean, else `g`."""
    return g / count if reduction == "mean" else g


def _of_difference(name: str, kernel_name: str, values: Any, slope: Any) -> Any:
    """Return the op `loss(x, y, reduction, parameter)` of a loss that depends on x - y alone.

    Args:
        name, kernel_name: the name of the node, and that of PyTorch's kernel for error messages.
        values: returns the losses, given the array x - y and the parameter.
        slope: returns the derivative of the losses, given the tensor x - y and the parameter.
    """

    def rule(g: Tensor, needs: tuple[bool, ...], x: Tensor, y: Tensor, reduction: str, parameter: float) -> Any:
        grad = slope(x - y, parameter) * _share(g, reduction, x._array.size)
        return grad if needs[0] else None, -grad if needs[1] else None

    def kernel(x: Any, y: Any, reduction: str, parameter: float = 1.0) -> Any:
        check_floating(kernel_name, x)
        losses = values(np.subtract(activation.widened(x), y), parameter)
        return loss.reduced(losses, reduction).astype(x.dtype, copy=False)

    return op(joint=rule, inputs=("x", "y"), name=name)(kernel)


def _huber(difference: Any, delta: float) -> Any:
    """Return 0.5 * d**2 where |d| <= delta, else delta * (|d| - 0.5 * delta)."""
    distance = np.abs(difference)
    near = np.minimum(distance, delta)
    return near * (distance - 0.5 * near)


mse_loss = _of_difference("MseLoss", "mse_cpu", lambda d, _: d * d, lambda d, _: d * 2)
smooth_l1_loss = _of_difference(
    "SmoothL1Loss",
    "smooth_l1_cpu",
    lambda d, beta: _huber(d, beta) / beta,
    lambda d, beta: hardtanh(d, -beta, beta) / beta,
)
huber_loss = _of_difference("HuberLoss", "huber_cpu", _huber, lambda d, delta: hardtanh(d, -delta, delta))


#: The derivative of binary cross entropy. As in PyTorch, its formula is not the derivative of its kernel near 0 and 1.
_bce_slope = pointwise(
    "bce_slope",
    lambda x, y: (x - y) / np.maximum((1 - x) * x, 1e-12),
    x=lambda g, x, y: g * (x * x - 2 * x * y + y) / ((x + 1e-12) ** 2 * (1 - x + 1e-12) ** 2),
    y=lambda g, x: -g / ((1 - x) * x).clamp(min=1e-12),
    node_name="BinaryCrossEntropyBackward",
)


def _bce_x(g: Tensor, x: Tensor, y: Tensor, weight: Any, reduction: str) -> Tensor:
    grad = _share(g, reduction, x._array.size) * _bce_slope(x, y)
    return grad if weight is None else grad * weight


def _bce_y(g: Tensor, x: Tensor, weight: Any, reduction: str) -> Tensor:
    grad = _share(g, reduction, x._array.size) * ((-x).log1p() - x.log())
    return grad if weight is None else grad * weight


@op(x=_bce_x, y=_bce_y, weight=None)
def binary_cross_entropy(x: Any, y: Any, weight: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `-weight * (y * log(x) + (1 - y) * log(1 - x))`.

    The logarithms are at least -100.
    """
    check_floating("binary_cross_entropy", x)
    for name, values in (("input", x), ("target", y)):
        if values.size and not (np.min(values) >= 0 and np.max(values) <= 1):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    p = activation.widened(x)
    losses = (y - 1) * np.maximum(np.log1p(-p), -100) - y * np.maximum(np.log(p), -100)
    if weight is not None:
        losses = losses * weight
    return loss.reduced(losses, reduction).astype(x.dtype, copy=False)


def _bce_logits_x(g: Tensor, x: Tensor, y: Tensor, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    grad = x.sigmoid()
    if pos_weight is None:
        grad = grad - y
    else:
        positive = pos_weight * y
        grad = (positive + 1 - y) * grad - positive
    grad = grad * _share(g, reduction, x._array.size)
    return grad if weight is None else grad * weight


def _bce_logits_y(g: Tensor, x: Tensor, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    grad = -x if pos_weight is None else logsigmoid(-x) - pos_weight * logsigmoid(x)
    grad = grad * _share(g, reduction, x._array.size)
    return grad if weight is None else grad * weight


@op(x=_bce_logits_x, y=_bce_logits_y, weight=None, pos_weight=None)
def binary_cross_entropy_with_logits(x: Any, y: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `weight * ((1 - y) * x - w * log(sigmoid(x)))`.

    Here `w = 1 + (pos_weight - 1) * y`.
    """
    check_floating("log_sigmoid_cpu", x)
    scores = activation.widened(x)
    if pos_weight is None:
        losses = loss.logistic(scores, y)
    else:
        losses = (1 - y) * scores - activation.log_sigmoid(scores) * ((pos_weight - 1) * y + 1)
    if weight is not None:
        losses = losses * weight
    return loss.reduced(losses, reduction).astype(x.dtype, copy=False)


def _logistic(u: Any) -> Any:
    z = np.exp(activation.widened(u))
    return (z / (z + 1)).astype(u.dtype, copy=False)


def _logistic_u(g: Tensor, u: Tensor) -> Tensor:
    z = u.exp()
    d = z + 1
    return g * (z / (d * d))


#: The logistic function as PyTorch computes it for this loss: where the exponential overflows it is NaN.
_soft_margin_slope = pointwise("soft_margin_slope", _logistic, u=_logistic_u)


@op(x=lambda g, x, y, reduction: _share(g, reduction, x._array.size) * (-y * _soft_margin_slope(-y * x)), y=None)
def soft_margin_loss(x: Any, y: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `log(1 + exp(-y * x))`; y broadcasts to the shape of x."""
    wide = activation.widened(x)
    losses = np.log1p(np.exp(-activation.widened(y) * wide)).astype(wide.dtype, copy=False)
    return loss.reduced(losses, reduction).astype(x.dtype, copy=False)


# Losses over classes ------------------------------------------------------------------------------

_NLL_NODES = ("NllLoss", "NllLoss2D")


def _nll(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    check_floating("nll_loss2d_forward_out_frame" if x.ndim > 2 else "nll_loss_out_frame", x)
    return loss.nll(x, target, weight, ignore_index, reduction)


def _nll_x(g: Tensor, x: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    return _nll_loss_grad(g, x, target, weight, ignore_index, reduction)


# Two ops with one kernel: PyTorch's node has a different name for scores of shape (N, C, d1, ...).
_nll_losses = [op(name=name, x=_nll_x, target=None, weight=None)(_nll) for name in _NLL_NODES]


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Return the mean, sum or array of minus the scores x (N, C, ...) of the labels (N, ...)."""
    return _nll_losses[x._array.ndim > 2](x, target, weight, ignore_index, reduction)


@op(
    name="NllLossBackward",
    g=lambda g, target, weight, ignore_index, reduction: nll_loss(g, target, weight, ignore_index, reduction),
    x=lambda gg: zero_gradient(gg),
    target=None,
    weight=None,
)
def _nll_loss_grad(g: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    return loss.nll_grad(g, x.shape, target, weight, ignore_index, reduction)


def _cross_entropy_x(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Any,
    ignore_index: int,
    reduction: str,
    label_smoothing: Any,
    slope: Any,
) -> Tensor:
    dim = 0 if x._array.ndim == 1 else 1
    if reduction == "none":
        g = g.unsqueeze(dim)
    if slope is not None:
        return slope * g
    # The same formula in Tensor code: a sample's loss is -sum_c q_c log p_c with a constant q.
    targets, total = loss.soft_targets(
        loss.rows(x._array), target._array, None if weight is None else weight._array, ignore_index, label_smoothing
    )
    if reduction == "mean":
        g = g / (total or 1)  # if all labels are ignored, q is 0
    q: Tensor = wrap(loss.by_class(targets, x._array.shape))
    return (softmax(x, dim) * q.sum(dim, True) - q) * g


def _cross_entropy(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float) -> Any:
    check_floating("log_softmax_lastdim_kernel_impl", x)
    return loss.cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)


#: `nll_loss(log_softmax(x))` in one op: for scores (N, C) and labels (N,); for scores (N, C, d1, ...); and with label
#: smoothing, for which PyTorch's graph adds two terms.
cross_entropy, cross_entropy_of_places, smoothed_cross_entropy = [
    op(name=name, x=_cross_entropy_x, target=None, weight=None, residuals=("slope",))(_cross_entropy)
    for name in (*_NLL_NODES, "Add")
]


def _rows(x: Any) -> Any:
    """Return scores of one sample, (C,) or a number, as (1, C)."""
    return x if x.ndim == 2 else x.reshape(1, -1)


def _multi_margin_x(g: Tensor, x: Tensor, target: Tensor, p: int, margin: float, weight: Any, reduction: str) -> Tensor:
    scores, labels = _rows(x), target._array.reshape(-1)
    weights = None if weight is None else weight._array
    above, is_own, factor, _ = loss.multi_margin(scores._array, labels, p, margin, weights)
    slope: Tensor = wrap((above > 0).astype(above.dtype))
    if p == 2:
        own = scores.gather(1, wrap(labels[:, None]))
        slope = slope * 2 * (margin - own + scores)
    slope = slope - wrap(is_own.astype(above.dtype)) * slope.sum(1, True)
    each = _share(g, reduction, len(labels)).reshape(-1, 1)
    return (slope * wrap(factor) * each).reshape(x.shape)


@op(x=_multi_margin_x, target=None, weight=None)
def multi_margin_loss(x: Any, target: Any, p: int, margin: float, weight: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `weight[y] * sum(max(0, margin - x[y] + x[i]) ** p) / C`, over i != y."""
    losses = loss.multi_margin(_rows(x), target.reshape(-1), p, margin, weight)[-1]
    return loss.reduced(losses.reshape(target.shape), reduction)


def _multilabel_margin_x(g: Tensor, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    _, slope = loss.multilabel_margin(_rows(x._array), _rows(target._array))
    each = _share(g, reduction, len(slope)).reshape(-1, 1)
    return (wrap(slope) * each).reshape(x.shape)


@op(x=_multilabel_margin_x, target=None)
def multilabel_margin_loss(x: Any, target: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `sum(max(0, 1 - x[i] + x[j])) / C` over all labels i and other classes j."""
    losses, _ = loss.multilabel_margin(_rows(x), _rows(target))
    return loss.reduced(losses if x.ndim == 2 else losses.reshape(()), reduction)
