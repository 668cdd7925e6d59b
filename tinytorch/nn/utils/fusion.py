"""Batch normalisation in evaluation mode, folded into the preceding layer."""

from __future__ import annotations

import copy
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.create import ones_like, zeros_like

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a convolution equivalent to `conv` followed by `bn`, in evaluation mode.

    Example:
        >>> conv, norm = torch.nn.Conv2d(1, 2, 3).eval(), torch.nn.BatchNorm2d(2).eval()
        >>> fused = torch.nn.utils.fuse_conv_bn_eval(conv, norm)
        >>> x = torch.ones(1, 1, 4, 4)
        >>> torch.allclose(fused(x), norm(conv(x)), atol=1e-6)
        True
    """
    _refuse_training(conv, bn)
    return _fused(conv, bn, transpose)


def _refuse_training(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _fused(layer: Any, bn: Any, transpose: bool) -> Any:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("BatchNorm must have running statistics to be fused")
    fused = copy.deepcopy(layer)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return weight and bias of the convolution equivalent to a convolution followed by a batch normalisation.

    The arguments are those of the convolution (`transpose`: its output channels are the weight's second dimension) and
    of the normalisation: running mean and variance, eps, weight and bias, which may be None.

    Example:
        >>> one = torch.ones(1)
        >>> torch.nn.utils.fuse_conv_bn_weights(torch.ones(1, 1, 1), None, one, one, 3.0, None, None)[1].item()
        -0.5
    """
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = zeros_like(bn_rm) if bn_b is None else bn_b
    factor = bn_w * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    weight = (conv_w * factor.reshape(shape)).to(conv_w.dtype)
    bias = ((conv_b - bn_rm) * factor + bn_b).to(conv_b.dtype)
    return (Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a linear layer equivalent to `linear` followed by `bn`, in evaluation mode.

    Example:
        >>> linear, bn = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval()
        >>> x = torch.randn(4, 2)
        >>> torch.allclose(torch.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
        True
    """
    _refuse_training(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got linear.out_features="
            f"{linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, transpose=False)


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return weight and bias of the linear layer equivalent to a linear layer followed by a batch normalisation.

    The arguments are those of `fuse_conv_bn_weights`, with the linear layer in place of the convolution.

    Example:
        >>> ones, zeros = torch.ones(1), torch.zeros(1)
        >>> fuse = torch.nn.utils.fuse_linear_bn_weights
        >>> weight, bias = fuse(torch.ones(1, 2), zeros, ones, 3 * ones, 1.0, 2 * ones, ones)
        >>> weight.data, bias.data
        (tensor([[1., 1.]]), tensor([0.]))
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
