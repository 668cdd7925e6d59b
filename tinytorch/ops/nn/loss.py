"""Ops of neural networks: losses."""

from __future__ import annotations

import math
from typing import Any

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import loss
from tinytorch.ops.arguments import op_of
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.nn.activation import hardtanh, log_softmax, log_softmax_backward, logsigmoid
from tinytorch.ops.register import pointwise

# Elementwise losses -------------------------------------------------------------------------------


def _share(g: Tensor, reduction: str, count: int) -> Tensor:
    """Return the gradient of each element's loss: `g` divided by `count` for a mean, else `g`."""
    return g / count if reduction == "mean" else g


def _of_difference(kernel: Any, slope: Any) -> Any:
    """Return the op of a loss that depends on x - y alone.

    Args:
        kernel: the kernel.
        slope: returns the derivative of the losses, given the tensor x - y and the parameter.
    """

    def rule(g: Tensor, needs: tuple[bool, ...], x: Tensor, y: Tensor, reduction: str, parameter: float) -> Any:
        grad = slope(x - y, parameter) * _share(g, reduction, x._array.size)
        return grad if needs[0] else None, -grad if needs[1] else None

    return op(loss="value", joint=rule, inputs=("x", "y"))(kernel)


mse_loss = _of_difference(loss.mse_loss, lambda d, _: d * 2)
smooth_l1_loss = _of_difference(loss.smooth_l1_loss, lambda d, beta: hardtanh(d, -beta, beta) / beta)
huber_loss = _of_difference(loss.huber_loss, lambda d, delta: hardtanh(d, -delta, delta))


#: The derivative of binary cross entropy. As in PyTorch, its formula is not the derivative of its kernel near 0 and 1.
_bce_slope = pointwise(
    "bce_slope",
    loss.bce_slope,
    batch="leading",
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


binary_cross_entropy = op(loss="prob", x=_bce_x, y=_bce_y, weight=None)(loss.binary_cross_entropy)


#: The derivative of binary cross entropy by the logits, `sigmoid(x) - y`.
_logit_slope = pointwise(
    "logit_slope", loss.logit_slope, x=lambda g, x: g * (x.sigmoid() * (-x).sigmoid()), y=lambda g: -g
)


def _bce_logits_x(g: Tensor, x: Tensor, y: Tensor, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    if pos_weight is None:
        grad = _logit_slope(x, y)
    else:
        grad = (1 - y) * x.sigmoid() - pos_weight * y * (-x).sigmoid()
    grad = grad * _share(g, reduction, x._array.size)
    return grad if weight is None else grad * weight


def _bce_logits_y(g: Tensor, x: Tensor, weight: Any, pos_weight: Any, reduction: str) -> Tensor:
    grad = -x if pos_weight is None else logsigmoid(-x) - pos_weight * logsigmoid(x)
    grad = grad * _share(g, reduction, x._array.size)
    return grad if weight is None else grad * weight


binary_cross_entropy_with_logits = op(
    loss="logit", x=_bce_logits_x, y=_bce_logits_y, weight=None, pos_weight=None
)(loss.binary_cross_entropy_with_logits)  # fmt: skip


def _logistic_u(g: Tensor, u: Tensor) -> Tensor:
    z = u.exp()
    d = z + 1
    return g * (z / (d * d))


_soft_margin_slope = pointwise("soft_margin_slope", loss.soft_margin_slope, u=_logistic_u)
soft_margin_loss = op(
    loss="logit",
    x=lambda g, x, y, reduction: _share(g, reduction, x._array.size) * (-y * _soft_margin_slope(-y * x)),
    y=None,
)(loss.soft_margin_loss)


# Losses over classes ------------------------------------------------------------------------------

_NLL_NODES = ("NllLoss", "NllLoss2D")


def _nll_x(g: Tensor, x: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    return _nll_loss_grad(g, x, target, weight, ignore_index, reduction)


# Two ops with one kernel: PyTorch's node has a different name for scores of shape (N, C, d1, ...).
_nll_losses = [op_of(loss.nll, loss="nll", name=name, x=_nll_x, target=None, weight=None) for name in _NLL_NODES]


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Return the mean, sum or array of minus the scores x (N, C, ...) of the labels (N, ...)."""
    return _nll_losses[x._array.ndim > 2](x, target, weight, ignore_index, reduction)


def _nll_gradient(g: Any, x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    """Return minus the weight of each label, at its place, in Tensor code, by which `vmap` computes it."""
    dim = 0 if x.ndim == 1 else 1
    kept = target != ignore_index
    safe = target.where(kept, target.new_zeros(()))
    share = kept.to(x.dtype) if weight is None else weight[safe] * kept
    if reduction == "mean":
        total = share.sum()
        g = g / total.masked_fill(total == 0, math.nan)
    places, values = safe.unsqueeze(dim).long(), (-share * g).masked_fill(~kept, 0).unsqueeze(dim)
    return x.new_zeros(x.shape).scatter(dim, places, values)


_nll_loss_grad = op_of(
    loss.nll_loss_grad,
    batch=_nll_gradient,
    name="NllLossBackward",
    g=lambda g, target, weight, ignore_index, reduction: nll_loss(g, target, weight, ignore_index, reduction),
    x=lambda gg: zero_gradient(gg),
    target=None,
    weight=None,
)
_soft_targets = op_of(loss.soft_targets, batch="of type", outputs=2, x=None, target=None, weight=None)


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
    if slope is not None and reduction != "none":
        return slope * g
    ignored = (target == ignore_index).reshape([1 if k == dim else n for k, n in enumerate(x._array.shape)])
    if slope is not None:
        return slope * g.masked_fill(ignored, 0)  # also if it is infinite
    # The same formula in Tensor code: a sample's loss is -sum_c q_c log p_c with a constant q.
    q, total = _soft_targets(x, target, weight, ignore_index, label_smoothing)
    if reduction == "mean":
        g = (g.to(total.dtype) / total).to(g.dtype)
    # (The gradient of an ignored sample is 0 also if its scores are infinite or the total is 0.)
    slope = -log_softmax_backward(q, log_softmax(x, dim), dim)
    return slope.masked_fill(ignored, 0) * g.masked_fill(ignored, 0)


#: `nll_loss(log_softmax(x))` in one op: for scores (N, C) and labels (N,); for scores (N, C, d1, ...); and with label
#: smoothing, for which PyTorch's graph adds two terms.
cross_entropy, cross_entropy_of_places, smoothed_cross_entropy = [
    op_of(
        loss.cross_entropy, loss="class", name=name, x=_cross_entropy_x, target=None, weight=None, residuals=("slope",)
    )
    for name in (*_NLL_NODES, "Add")
]


_multi_margin_terms = op_of(loss.multi_margin_terms, outputs=3, x=None, target=None, weight=None)
_multilabel_margin_slope = op_of(loss.multilabel_margin_slope, x=None, target=None)


def _multi_margin_x(g: Tensor, x: Tensor, target: Tensor, p: int, margin: float, weight: Any, reduction: str) -> Tensor:
    slope, is_own, factor = _multi_margin_terms(x, target, margin, weight)
    if p == 2:
        scores = x if x.ndim == 2 else x.reshape(1, -1)
        own = scores.gather(1, target.reshape(-1, 1))
        slope = slope * 2 * (margin - own + scores)
    slope = slope - is_own * slope.sum(1, True)
    each = _share(g, reduction, target._array.size).reshape(-1, 1)
    return (slope * factor * each).reshape(x.shape)


multi_margin_loss = op(loss="class", x=_multi_margin_x, target=None, weight=None)(loss.multi_margin_loss)


def _multilabel_margin_x(g: Tensor, x: Tensor, target: Tensor, reduction: str) -> Tensor:
    slope = _multilabel_margin_slope(x, target)
    each = _share(g, reduction, len(slope)).reshape(-1, 1)
    return (slope * each).reshape(x.shape)


multilabel_margin_loss = op(x=_multilabel_margin_x, target=None)(loss.multilabel_margin_loss)
