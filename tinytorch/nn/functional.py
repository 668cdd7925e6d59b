"""`torch.nn.functional`: the list of its functions, and those that know no places in space (floor 4).

Where they are written, which is where they are to be looked for and added:

| module | what |
|---|---|
| here, in this order | activations, softmax, bilinear forms, embeddings, dropout, losses, distances, normalisation |
| `_padding` | borders: `pad` |
| `_pooling` | maxima and averages of windows, and maxima put back |
| `_resampling` | resizing and warping: `interpolate`, `grid_sample`, `affine_grid` |
| `ops` | what needs nothing but its op: `linear`, `gelu`, convolutions, attention, `pixel_shuffle` |

The functions of these modules see to arguments (in place or not, deprecated ones, shapes, dtypes) and hand on to
`ops`; some are composed of Tensor operations.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd import autocast
from tinytorch.autograd.inplace import in_place
from tinytorch.autograd.mode import is_grad_enabled, no_grad
from tinytorch.autograd.op import op
from tinytorch.kernels.shape import channels_last
from tinytorch.nn._padding import pad
from tinytorch.nn._pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from tinytorch.nn._resampling import (
    affine_grid,
    grid_sample,
    interpolate,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from tinytorch.ops import ctc as _ctc
from tinytorch.ops import embedding as _embedding
from tinytorch.ops import nn
from tinytorch.ops import norm as _norm
from tinytorch.ops.attention import multi_head_attention_forward, scaled_dot_product_attention
from tinytorch.ops.conv import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)
from tinytorch.ops.copies import (
    channel_shuffle,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)
from tinytorch.ops.matrices import pdist
from tinytorch.ops.nn import gelu, hardshrink, linear, logsigmoid, prelu, softplus, softshrink
from tinytorch.ops.norm import check_normalized_shape
from tinytorch.ops.shape import check_tensor, renamed

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "alpha_dropout", "avg_pool1d",
    "avg_pool2d", "avg_pool3d", "batch_norm", "bilinear", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d",
    "conv_tbc", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu",
    "elu_", "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "gumbel_softmax", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "leaky_relu_", "linear",
    "local_response_norm", "log_softmax", "logsigmoid", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "margin_ranking_loss", "max_pool1d", "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices",
    "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish",
    "mse_loss", "multi_head_attention_forward", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "native_channel_shuffle", "nll_loss", "normalize", "one_hot", "pad",
    "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu",
    "relu6", "relu_", "rms_norm", "rrelu", "rrelu_", "scaled_dot_product_attention", "selu", "selu_",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink",
    "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample", "upsample_bilinear", "upsample_nearest",
]  # fmt: skip

# Activations --------------------------------------------------------------------------------------


def _written_over(caller: Any) -> Any:
    """Return the in-place form of an op whose node PyTorch gives a name of its own, "...Backward1"."""
    made = caller.op
    name = made.node_class.__name__.replace("Backward0", "Backward1")
    return in_place(renamed(op(**made.formulas)(made.kernel), name))


_celu_in_place = _written_over(nn.celu)
_elu_in_place = _written_over(nn.elu)
_hardsigmoid_in_place = in_place(nn.hardsigmoid)
_hardswish_in_place = in_place(nn.hardswish)
_hardtanh_in_place = in_place(nn.hardtanh)
_leaky_relu_in_place = _written_over(nn.leaky_relu)
_mish_in_place = in_place(nn.mish)
_rrelu_in_place = _written_over(nn.rrelu)
_silu_in_place = in_place(nn.silu)
_threshold_in_place = _written_over(nn.threshold)

# Klambauer et al., the fixed point of mean 0 and variance 1
_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `max(input, 0)`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    try:
        return input.relu_() if inplace else input.relu()
    except AttributeError:
        check_tensor(input, "relu")
        raise


def relu_(input: Tensor) -> Tensor:
    """In-place version of `relu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> _ = torch.nn.functional.relu_(x)
        >>> x
        tensor([0., 2.])
    """
    return input.relu_()


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input, 0), 6)`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.relu6(torch.tensor([-1.0, 2.0, 10.0]))
        tensor([0., 2., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def _numbers(name: str, **numbers: Any) -> list[Any]:
    """Return arguments that are to be numbers, tensors without dimensions as theirs.

    Raises:
        TypeError: one is neither.
    """
    values = []
    for position, (argument, value) in enumerate(numbers.items(), 2):
        tensor = isinstance(value, Tensor)
        if (tensor and (value._array.ndim or value.requires_grad)) or (
            not tensor and not isinstance(value, (int, float, np.number, np.bool_))
        ):
            raise TypeError(
                f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}"
            )
        values.append(value.item() if tensor else value)
    return values


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return `input` where it is greater than `threshold`, else `value`; in place if `inplace`.

    Args:
        input: any shape.
        threshold: the bound.
        value: what stands for elements up to the bound.
        inplace: write into `input`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.threshold(torch.tensor([0.5, 1.5]), 1.0, -1.0)
        tensor([-1.0000,  1.5000])
    """
    if type(threshold) is not float or type(value) is not float:
        threshold, value = _numbers("threshold", threshold=threshold, value=value)
    return _either(inplace, _threshold_in_place, nn.threshold)(input, threshold, value)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place version of `threshold`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([0.0, 2.0])
        >>> _ = torch.nn.functional.threshold_(x, 1.0, 9.0)
        >>> x
        tensor([9., 2.])
    """
    return _threshold_in_place(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """Return `min(max(input, min_val), max_val)`, elementwise; in place if `inplace`.

    Raises:
        ValueError: `min_val` is greater than `max_val`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 2.0]))
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if type(min_val) is not float or type(max_val) is not float:
        min_val, max_val = _numbers("hardtanh", min_val=min_val, max_val=max_val)
    return _either(inplace, _hardtanh_in_place, nn.hardtanh)(input, min_val, max_val)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place version of `hardtanh`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([-3.0, 0.5])
        >>> _ = torch.nn.functional.hardtanh_(x)
        >>> x
        tensor([-1.0000,  0.5000])
    """
    return hardtanh(input, min_val, max_val, True)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `min(max(input + 3, 0), 6) / 6`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))
        tensor([0.0000, 0.5000, 0.7500])
    """
    return _either(inplace, _hardsigmoid_in_place, nn.hardsigmoid)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * min(max(input + 3, 0), 6) / 6`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.hardswish(torch.tensor([-4.0, 1.5, 4.0]))
        tensor([-0.0000,  1.1250,  4.0000])

    Source:
        Howard et al., "Searching for MobileNetV3", 2019.
    """
    return _either(inplace, _hardswish_in_place, nn.hardswish)(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + negative_slope * min(input, 0)`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
        tensor([-0.1000,  2.0000])
    """
    if inplace:
        return leaky_relu_(input, negative_slope)
    if type(negative_slope) is not float:
        (negative_slope,) = _numbers("leaky_relu", negative_slope=negative_slope)
    return nn.leaky_relu(input, negative_slope)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place version of `leaky_relu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([-1.0, 2.0])
        >>> _ = torch.nn.functional.leaky_relu_(x, 0.5)
        >>> x
        tensor([-0.5000,  2.0000])
    """
    if type(negative_slope) is not float:
        (negative_slope,) = _numbers("leaky_relu_", negative_slope=negative_slope)
    return _leaky_relu_in_place(input, negative_slope)


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return `input` where it is positive, else `a * input`; in place if `inplace`.

    In training each `a` is drawn from [lower, upper); otherwise it is their mean.

    Raises:
        RuntimeError: `lower` is above `upper`, or one of them is not finite.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.rrelu(torch.tensor([-1.0, 2.0]), 0.1, 0.3)
        tensor([-0.2000,  2.0000])

    Source:
        Xu et al., "Empirical Evaluation of Rectified Activations in Convolutional Network", 2015.
    """
    for which, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound:g}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    nn._check_floating("leaky_relu_cpu", input._array)
    slopes = np.ones_like(input._array)
    if training:
        falling = input._array <= 0
        drawn = np.empty_like(slopes, dtype=np.float64, shape=np.count_nonzero(falling))
        slopes[falling] = wrap(drawn).uniform_(lower, upper)._array
    else:
        slopes[~(input._array > 0)] = (lower + upper) / 2
    return _either(inplace, _rrelu_in_place, nn.rrelu)(input, slopes)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """In-place version of `rrelu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([-4.0, 2.0])
        >>> _ = torch.nn.functional.rrelu_(x, 0.25, 0.75)
        >>> x
        tensor([-2.,  2.])
    """
    return rrelu(input, lower, upper, training, True)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + min(alpha * (exp(input) - 1), 0)`; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])

    Source:
        Clevert et al., "Fast and Accurate Deep Network Learning by Exponential Linear Units
        (ELUs)", 2015.
    """
    if type(alpha) is not float:
        (alpha,) = _numbers("elu", alpha=alpha)
    return _either(inplace, _elu_in_place, nn.elu)(input, alpha)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `elu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([0.0, 2.0])
        >>> _ = torch.nn.functional.elu_(x)
        >>> x
        tensor([0., 2.])
    """
    return elu(input, alpha, True)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `scale * elu(input, alpha)` with constants that keep mean 0 and variance 1.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.selu(torch.tensor([-1.0, 1.0]))
        tensor([-1.1113,  1.0507])

    Source:
        Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return _either(inplace, _elu_in_place, nn.elu)(input, _SELU_ALPHA, _SELU_SCALE)


def selu_(input: Tensor) -> Tensor:
    """In-place version of `selu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([0.0, 1.0])
        >>> _ = torch.nn.functional.selu_(x)
        >>> x
        tensor([0.0000, 1.0507])
    """
    return selu(input, True)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return `max(input, 0) + min(alpha * (exp(input / alpha) - 1), 0)`; in place if `inplace`.

    Raises:
        RuntimeError: `alpha` is 0.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.celu(torch.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.4323,  2.0000])

    Source:
        Barron, "Continuously Differentiable Exponential Linear Units", 2017.
    """
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if type(alpha) is not float:
        (alpha,) = _numbers("celu", alpha=alpha)
    return _either(inplace, _celu_in_place, nn.celu)(input, alpha)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place version of `celu`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([0.0, 2.0])
        >>> _ = torch.nn.functional.celu_(x)
        >>> x
        tensor([0., 2.])
    """
    return celu(input, alpha, True)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * sigmoid(input)`, also known as swish, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])

    Source:
        Elfwing et al., "Sigmoid-Weighted Linear Units for Neural Network Function Approximation",
        2017.
    """
    return _either(inplace, _silu_in_place, nn.silu)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return `input * tanh(softplus(input))`, elementwise; in place if `inplace`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])

    Source:
        Misra, "Mish: A Self Regularized Non-Monotonic Neural Activation Function", 2019.
    """
    return _either(inplace, _mish_in_place, nn.mish)(input)


def _either(inplace: bool, changing: Any, making: Any) -> Callable[..., Tensor]:
    return changing if inplace else making


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return `a * sigmoid(b)`, where a and b are the halves of `input` along `dim`.

    Raises:
        RuntimeError: the length of `dim` is odd.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 100.0]))
        tensor([0.5000, 2.0000])

    Source:
        Dauphin et al., "Language Modeling with Gated Convolutional Networks", 2016.
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    nn._check_floating("glu_cpu", input._array)
    axis = nn._axis(dim, input.ndim)
    length = input.shape[axis]
    if length % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {length}")
    out: Tensor = nn.glu(input, axis)
    return out


def softsign(input: Tensor) -> Tensor:
    """Return `input / (1 + |input|)`, elementwise.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Return `input - tanh(input)`, elementwise.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.tanhshrink(torch.tensor([0.0, 2.0]))
        tensor([0.0000, 1.0360])
    """
    return input - input.tanh()


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent; `torch.tanh` is the name to use.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """
    try:
        return input.tanh()
    except AttributeError:
        check_tensor(input, "tanh")
        raise


def sigmoid(input: Tensor) -> Tensor:
    """Return `1 / (1 + exp(-input))`; `torch.sigmoid` is the name to use.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.sigmoid(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """
    try:
        return input.sigmoid()
    except AttributeError:
        check_tensor(input, "sigmoid")
        raise


# Softmax ------------------------------------------------------------------------------------------


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return `exp(input) / sum(exp(input))` along `dim`: positive numbers that add up to 1.

    Args:
        input: any shape.
        dim: the dimension to sum over; to leave it out is deprecated.
        dtype: convert to this dtype first (so that integers are understood, or less is lost).

    Raises:
        IndexError: there is no such dimension.
        NotImplementedError: integers; give a floating-point `dtype`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.softmax(torch.tensor([[0.0, 0.0], [1.0, 3.0]]), dim=1)
        tensor([[0.5000, 0.5000],
                [0.1192, 0.8808]])
    """
    if dim is None:
        dim = _softmax_dim("softmax", input, _stacklevel)
    return nn.softmax(input, dim, dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return `softmax(-input)` along `dim`; arguments as `softmax`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.softmin(torch.tensor([1.0, 3.0]), dim=0)
        tensor([0.8808, 0.1192])
    """
    if dim is None:
        dim = _softmax_dim("softmin", input, _stacklevel)
    return nn.softmax(-input, dim, dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
) -> Tensor:
    """Return `log(softmax(input))`, exact also where the softmax is 0; arguments as `softmax`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.log_softmax(torch.tensor([0.0, 1000.0]), dim=0)
        tensor([-1000.,     0.])
    """
    if dim is None:
        dim = _softmax_dim("log_softmax", input, _stacklevel)
    return nn.log_softmax(input, dim, dtype)


def _softmax_dim(name: str, input: Tensor, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include "
        "dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Return a sample of the Gumbel-Softmax distribution: `softmax((logits + noise) / tau)`.

    Args:
        logits: logarithms of probabilities, unnormalised, any shape.
        tau: the temperature; the lower, the nearer to one-hot.
        hard: return one-hot vectors, with the gradient of the soft sample.
        eps: ignored, as in PyTorch.
        dim: the dimension of the classes.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 5), hard=True).sum(-1)
        tensor([1., 1.])

    Source:
        Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2016.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -wrap(np.empty_like(logits._array)).exponential_().log()
    soft = nn.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    axis = nn._axis(dim, logits.ndim)
    chosen = np.zeros_like(soft._array)
    np.put_along_axis(chosen, np.expand_dims(soft._array.argmax(axis), axis), 1, axis)
    out: Tensor = wrap(chosen) - soft.detach() + soft
    return out


# Linear -------------------------------------------------------------------------------------------


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2 + bias[k]` for every output feature k.

    Args:
        input1: shape (*, in1_features).
        input2: shape (*, in2_features).
        weight: shape (out_features, in1_features, in2_features).
        bias: shape (out_features,).

    Returns:
        A tensor of shape (*, out_features).

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> import tinytorch as torch
        >>> weight = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> torch.nn.functional.bilinear(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), weight)
        tensor([11.])
    """
    given = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    tensors = {name: each for name, each in given.items() if each is not None}
    if len({each.dtype for each in tensors.values()}) > 1:
        kinds = ", ".join(f"{name}: {each.dtype}" for name, each in tensors.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {kinds}")
    if not input1.ndim or not input2.ndim:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for dim, (a, b) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if a != b:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {dim}: got {a} and {b}"
            )
    for k, each in ((1, input1), (2, input2)):
        if each.shape[-1] != weight.shape[k]:
            raise RuntimeError(
                f"bilinear(): input{k} size does not match weight size: got {each.shape[-1]} but "
                "expected "
                f"{weight.shape[k]}"
            )
    outputs, first, second = weight.shape
    if bias is not None and bias.shape != (outputs,):
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.numel()} but expected {outputs}"
        )
    # (*, in1) x (out * in2, in1) -> (*, out, in2), then the sum over in2 with the second input.
    rows = linear(input1, weight.permute(0, 2, 1).reshape(outputs * second, first))
    products = rows.reshape(*input1.shape[:-1], outputs, second) * input2.unsqueeze(-2)
    out: Tensor = products.sum(-1, dtype=input1.dtype)
    return out if bias is None else out + bias


# Tables and labels --------------------------------------------------------------------------------


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Return the rows of `weight` whose numbers are in `input`.

    Args:
        input: integers of any shape (*).
        weight: shape (num_embeddings, embedding_dim).
        padding_idx: the row that gets no gradient.
        max_norm: rows looked up whose norm is larger are scaled down to it first, in place.
        norm_type: which norm, the p of the p-norm.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up.
        sparse: left out (NotImplementedError).

    Returns:
        A tensor of shape (*, embedding_dim).

    Raises:
        IndexError: there is no such row.
        RuntimeError: `input` does not hold integers; `weight` has not two dimensions.

    Example:
        >>> import tinytorch as torch
        >>> weight = torch.tensor([[1.0, 1.5], [2.0, 2.5]])
        >>> torch.nn.functional.embedding(torch.tensor([1, 0, 1]), weight)
        tensor([[2.0000, 2.5000],
                [1.0000, 1.5000],
                [2.0000, 2.5000]])
    """
    if sparse:
        raise NotImplementedError(
            "embedding(sparse=True): tinytorch has no sparse tensors; leave `sparse` out"
        )
    try:
        dtype = input.dtype
    except AttributeError:
        check_tensor(input, "embedding", "indices", 2)
        raise
    if dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            "Long, Int; but got "
            f"torch.{dtype.tensor_name}Tensor instead (while checking arguments for "
            "embedding)"
        )
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if padding_idx is not None:
        if not -weight.shape[0] <= padding_idx < weight.shape[0]:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= weight.shape[0]
    if max_norm is not None:
        _embedding.embedding_renorm_(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else padding_idx
    return nn.embedding(weight, input, padding, scale_grad_by_freq)


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Return the sum, mean or maximum of the rows of `weight` in each bag of row numbers; zeros of an empty bag.

    Args:
        input: integers, shape (bags, length); or all bags one after another, shape (N,).
        weight: shape (num_embeddings, embedding_dim).
        offsets: where each bag begins in an `input` of one dimension.
        max_norm: rows looked up whose norm is larger are scaled down to it first, in place.
        norm_type: which norm, the p of the p-norm.
        scale_grad_by_freq: divide a row's gradient by how often it was looked up; not for "max".
        mode: "sum", "mean" or "max".
        sparse: left out (NotImplementedError).
        per_sample_weights: what to multiply each row with, of the shape of `input`; only for "sum".
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: the row that is left out of its bags.

    Returns:
        A tensor of shape (bags, embedding_dim).

    Raises:
        ValueError: the shapes, `offsets` or the mode do not fit.
        RuntimeError: there is no such row; `offsets` are not in order; `input` does not hold integers.
        NotImplementedError: `per_sample_weights` with another mode than "sum".

    Example:
        >>> import tinytorch as torch
        >>> weight = torch.arange(6.0).view(3, 2)
        >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1], [2, 2]]), weight, mode="sum")
        tensor([[ 2.,  4.],
                [ 8., 10.]])
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        offsets = wrap(np.arange(0, bags * length, length) if length else np.zeros(bags, np.int64))
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    elif not isinstance(offsets, Tensor):
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if max_norm is not None:
        _embedding.embedding_renorm_(weight, input, max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{weight.shape[0]} through {weight.shape[0] - 1}, "
            f"but got {padding_idx}"
        )
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    found = _embedding.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, ("sum", "mean", "max").index(mode), sparse,
        per_sample_weights, include_last_offset, padding,
    )  # fmt: skip
    return found[0]


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """Return vectors of zeros with a one at the place that each label says.

    Args:
        input: int64 labels of any shape (*).
        num_classes: the length of the vectors; -1 for the largest label plus one.

    Returns:
        An int64 tensor of shape (*, num_classes).

    Raises:
        RuntimeError: labels are negative, too large, or not int64.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    labels = input._array
    if labels.dtype != np.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if labels.size == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
    elif labels.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    elif num_classes == -1:
        num_classes = int(labels.max()) + 1
    elif labels.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    vectors: Tensor = wrap((labels[..., None] == np.arange(num_classes)).astype(np.int64, "C"))
    return vectors


# Dropout ------------------------------------------------------------------------------------------


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Return `input`, each element zeroed with probability `p`, the others divided by `1 - p`.

    Args:
        input: any shape.
        p: the probability of an element to be zeroed.
        training: False returns `input` as it is.
        inplace: write into `input`.

    Raises:
        ValueError: `p` is not between 0 and 1.

    Example:
        >>> import tinytorch as torch
        >>> sorted(set(torch.nn.functional.dropout(torch.ones(100), 0.75).tolist()))
        [0.0, 4.0]

    Source:
        Srivastava et al., "Dropout: A Simple Way to Prevent Neural Networks from Overfitting",
        2014.
    """
    try:
        shape = input._array.shape
    except AttributeError:
        check_tensor(input, "dropout")
        raise
    return _dropped(input, p, training, inplace, shape)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input`, (N, C, L) or (C, L), with whole channels dropped; arguments as `dropout`.

    Raises:
        RuntimeError: `input` has not two or three dimensions.

    Example:
        >>> import tinytorch as torch
        >>> channels = torch.nn.functional.dropout1d(torch.ones(1, 100, 3))
        >>> set(channels.sum(-1).flatten().tolist()) == {0.0, 6.0}
        True
    """
    _check_probability(p)
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.ndim}D input. Note that "
            "dropout1d exists to "
            "provide channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, "
            "and an optional "
            "batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channels_dropped(input, p, training, inplace, input.ndim == 3)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input`, (N, C, H, W), with whole channels dropped; arguments as `dropout`.

    Example:
        >>> import tinytorch as torch
        >>> channels = torch.nn.functional.dropout2d(torch.ones(1, 100, 2, 2))
        >>> set(channels.sum((-2, -1)).flatten().tolist()) == {0.0, 8.0}
        True
    """
    _check_probability(p)
    if input.ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.ndim}-D input to dropout2d, which is deprecated and "
            "will result in an "
            "error in a future release. To retain the behavior and silence this warning, please "
            "use dropout instead. "
            "Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial "
            "dimensions, a "
            "channel dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout "
            "behavior is "
            "desired - input is interpreted as shape (N, C, L), where C is the channel dim. This "
            "behavior will change "
            "in a future release to interpret the input as one without a batch dimension, i.e. "
            "shape (C, H, W). To "
            "maintain the 1D channel-wise dropout behavior, please switch to using dropout1d "
            "instead.",
            stacklevel=2,
        )
    return _channels_dropped(input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return `input`, (N, C, D, H, W), with whole channels dropped; arguments as `dropout`.

    Example:
        >>> import tinytorch as torch
        >>> channels = torch.nn.functional.dropout3d(torch.ones(1, 100, 1, 1, 1))
        >>> set(channels.flatten().tolist()) == {0.0, 2.0}
        True
    """
    _check_probability(p)
    if input.ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.ndim}-D input to dropout3d, which is deprecated and "
            "will result in an "
            "error in a future release. To retain the behavior and silence this warning, please "
            "use dropout instead. "
            "Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial "
            "dimensions, a "
            "channel dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    return _channels_dropped(input, p, training, inplace, input.ndim == 5)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with elements set at random to what keeps mean and variance after `selu`.

    Arguments as `dropout`, but `training` is False by default, as in PyTorch.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.alpha_dropout(torch.ones(2))
        tensor([1., 1.])

    Source:
        Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    return _alpha_dropped(input, p, training, inplace, input._array.shape)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return `input` with whole channels set at random to what keeps mean and variance after `selu`.

    Args:
        input: shape (N, C, *).
        p: the probability of a channel to be set.
        training: False to return the input.
        inplace: whether to write into the input.

    Raises:
        ValueError: `p` is not between 0 and 1.
        RuntimeError: there are less than two dimensions.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2))
        tensor([[1., 1.]])

    Source:
        Klambauer et al., "Self-Normalizing Neural Networks", 2017.
    """
    _check_probability(p)
    if input.ndim < 2 and p and training and input._array.size:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _alpha_dropped(input, p, training, inplace, _of_channels(input))


def _check_probability(p: float) -> None:
    if p < 0 or p > 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _of_channels(input: Tensor) -> tuple[int, ...]:
    """Return the shape of a mask of the channels, (N, C, 1, ...)."""
    return (*input.shape[:2], *[1] * (input.ndim - 2))


def _kept(input: Tensor, p: float, shape: tuple[int, ...]) -> Tensor:
    """Return a mask of `shape` that is 0 with probability `p`, else 1."""
    array = input._array
    if p == 1:
        return wrap(np.zeros_like(array, shape=shape))
    # Like the input also in its order in memory, which is the order in which numbers are drawn.
    mask: Tensor = wrap(
        np.empty_like(array) if shape == array.shape else np.empty_like(array, shape=shape)
    )
    with no_grad():
        return mask.bernoulli_(1 - p)


def _dropped(
    input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]
) -> Tensor:
    """Return `input` times a mask of `shape` of zeros and `1 / (1 - p)`."""
    _check_probability(p)
    if not training or p == 0 or not input._array.size:
        return input
    mask = _kept(input, p, shape)
    if p < 1:
        with no_grad():
            mask.div_(1 - p)
    return input.mul_(mask) if inplace else input * mask


def _alpha_dropped(
    input: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]
) -> Tensor:
    """Return `input` with what a mask of `shape` hides set to the least `selu`, then scaled and shifted."""
    _check_probability(p)
    if not training or p == 0 or not input._array.size:
        return input
    kept = _kept(input, p, shape)
    if p == 1:
        return input.mul_(kept) if inplace else input * kept
    alpha = _SELU_ALPHA * _SELU_SCALE
    a = 1 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    shift = (kept - 1) * (alpha * a) + alpha * a * p
    return input.mul_(kept * a).add_(shift) if inplace else input * (kept * a) + shift


def _channels_dropped(
    input: Tensor, p: float, training: bool, inplace: bool, batched: bool = True
) -> Tensor:
    if not batched:
        if inplace:
            return _channels_dropped(input.unsqueeze_(0), p, training, True).squeeze_(0)
        return _channels_dropped(input.unsqueeze(0), p, training, False).squeeze(0)
    if input.ndim < 2 and training and p > 0:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return _dropped(input, p, training, inplace, _of_channels(input))


# Losses -------------------------------------------------------------------------------------------


def _reduction(
    size_average: bool | None, reduce: bool | None, reduction: str, stacklevel: int = 3
) -> str:
    """Return the reduction, as asked for by its name or by the deprecated arguments.

    Raises:
        ValueError: there is no such reduction.
    """
    if size_average is not None or reduce is not None:
        if reduce is not None and not reduce:
            reduction = "none"
        else:
            reduction = "mean" if size_average is None or size_average else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' "
            "instead.",
            stacklevel=stacklevel,
        )
    if reduction not in ("none", "mean", "sum"):
        if reduction == "elementwise_mean":
            warnings.warn(
                "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.",
                stacklevel=stacklevel,
            )
            return "mean"
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return losses.mean()
    return losses.sum() if reduction == "sum" else losses


def _pair(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both with one shape and dtype; sizes that differ are warned of."""
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}). "
            "This will likely lead to incorrect results due to broadcasting. Please ensure they "
            "have the same size.",
            stacklevel=3,
        )
        shape = _broadcast(input.shape, target.shape)
        input, target = input.expand(shape), target.expand(shape)
    if input._array.dtype != target._array.dtype:
        common = dtypes.promote_types(input.dtype, target.dtype)
        input, target = input.to(common), target.to(common)
    return input, target


def _broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            raise RuntimeError(
                f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) "
                "at non-singleton "
                f"dimension {max(len(a), len(b)) - back}"
            )
    return np.broadcast_shapes(a, b)


def _weighted(losses: Tensor, input: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Return losses times weights; the mean is that over the weights."""
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if reduction == "mean" else _reduced(losses, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean squared error, `mean((input - target) ** 2)`.

    Args:
        input: any shape.
        target: the same shape.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.
        weight: the same shape, a weight for each element.

    Raises:
        ValueError: there is no such reduction; the weights have another shape.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(2.)
    """
    if autocast.on and weight is None:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    x, y = _pair(input, target)
    if weight is not None:
        return _weighted(nn.mse_loss(x, y, "none"), input, weight, reduction)
    return nn.mse_loss(x, y, reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean absolute error, `mean(|input - target|)`; arguments as `mse_loss`.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        tensor(1.)
    """
    if autocast.on and weight is None:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    x, y = _pair(input, target)
    if weight is not None:
        return _weighted((x - y).abs(), input, weight, reduction)
    return _reduced((x - y).abs(), reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return the mean error, squared where it is small.

    With d = input - target it is `0.5 * d ** 2 / beta` where `|d| < beta`, else `|d| - 0.5 * beta`.

    Args:
        input: any shape.
        target: the same shape.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.
        beta: where squares go over into straight lines; with 0 it is `l1_loss`.

    Raises:
        RuntimeError: `beta` is negative.

    Example:
        >>> import tinytorch as torch
        >>> x, y = torch.tensor([0.0, 0.0]), torch.tensor([1.0, 3.0])
        >>> torch.nn.functional.smooth_l1_loss(x, y, reduction="none")
        tensor([0.5000, 2.5000])

    Source:
        Girshick, "Fast R-CNN", 2015.
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    x, y = _pair(input, target)
    if beta == 0:
        return _reduced((x - y).abs(), reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return nn.smooth_l1_loss(x, y, reduction, beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return the mean squared error, linear where it is large.

    With d = input - target it is `0.5 * d ** 2` where `|d| <= delta`, else
    `delta * (|d| - 0.5 * delta)`.

    Args:
        input: any shape.
        target: the same shape.
        reduction: "mean", "sum", or "none" for each element's own.
        delta: where squares go over into straight lines.
        weight: the same shape, a weight for each element.

    Raises:
        RuntimeError: `delta` is not positive.
        ValueError: there is no such reduction; the weights have another shape.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.huber_loss(torch.tensor([0.0]), torch.tensor([3.0]), delta=2.0)
        tensor(4.)

    Source:
        Huber, "Robust Estimation of a Location Parameter", 1964.
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(None, None, reduction)
    x, y = _pair(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        # Unlike the others this one divides by the number of elements, in PyTorch too.
        losses = _weighted(nn.huber_loss(x, y, "none", delta), input, weight, "none")
        return _reduced(losses, reduction)
    return nn.huber_loss(x, y, reduction, delta)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `-(target * log(input) + (1 - target) * log(1 - input))`.

    The logarithms are at least -100, so that the loss is finite.

    Args:
        input: probabilities, any shape.
        target: probabilities, the same shape.
        weight: a factor for each element, of a shape that broadcasts.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.

    Raises:
        RuntimeError: elements are not between 0 and 1; the dtypes differ.
        ValueError: the shapes differ; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> x, y = torch.tensor([0.5, 0.0]), torch.tensor([1.0, 0.0])
        >>> torch.nn.functional.binary_cross_entropy(x, y)
        tensor(0.3466)
    """
    if autocast.on:
        input, target, weight = autocast.raised(input, target, weight)
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size "
            f"({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype != input.dtype:
        raise RuntimeError(
            f"Found dtype {target.dtype.tensor_name} but expected {input.dtype.tensor_name}"
        )
    if weight is not None:
        _refuse_grad(weight, "binary_cross_entropy", "weight")
        weight = weight.expand(_broadcast(weight.shape, target.shape))
    return nn.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return `binary_cross_entropy(sigmoid(input), target)` without loss of digits or overflow.

    Args:
        input: scores, any shape.
        target: probabilities, the same shape.
        weight: a factor for each element, of a shape that broadcasts.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.
        pos_weight: a factor for the positive part, `target * log(sigmoid(input))`, of a shape that
            broadcasts.

    Raises:
        ValueError: the shapes differ; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> scores, labels = torch.tensor([0.0, -200.0]), torch.tensor([1.0, 0.0])
        >>> torch.nn.functional.binary_cross_entropy_with_logits(scores, labels)
        tensor(0.3466)
    """
    if autocast.on:
        input, target, weight, pos_weight = autocast.raised(input, target, weight, pos_weight)
    reduction = _reduction(size_average, reduce, reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    if not target.dtype.is_floating_point and input.dtype.is_floating_point:
        raise RuntimeError(
            f"result type {input.dtype.tensor_name} can't be cast to the desired output type "
            f"{target.dtype.tensor_name}; convert the target with .to(input.dtype)"
        )
    for argument, each in (("weight", weight), ("pos_weight", pos_weight)):
        if each is not None:
            _refuse_grad(each, "binary_cross_entropy_with_logits", argument)
            _broadcast(each.shape, target.shape)
    if target.dtype is not input.dtype and target.dtype.is_floating_point:
        # The result is of the target's dtype: PyTorch computes it by writes into `1 - target`.
        likelihood = logsigmoid(input)
        if pos_weight is not None:
            factor = (pos_weight - 1) * target + 1
            likelihood = (factor * likelihood).to(factor.dtype)
        loss = ((1 - target) * input).to(target.dtype)
        loss = (loss - likelihood).to(target.dtype)
        if weight is not None:
            loss = (loss * weight).to(target.dtype)
        return loss if reduction == "none" else getattr(loss, reduction)()
    out: Tensor = nn.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)
    return out


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

    Args:
        input: scores, not normalised: shape (C,), (N, C) or (N, C, d1, d2, ...).
        target: labels from 0 to C - 1, of shape (), (N,) or (N, d1, d2, ...); or probabilities of
            each class, of the shape of `input`.
        weight: a factor for each class, shape (C,); the mean is that over the labels' weights.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        ignore_index: the label that does not count.
        reduction: "mean", "sum", or "none" for each sample's own.
        label_smoothing: the share of the target, from 0 to 1, that is spread evenly over all
            classes.

    Raises:
        IndexError: a label is no class.
        RuntimeError: shapes do not fit, or labels are not int64 (or uint8).
        ValueError: the batch sizes differ; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> scores = torch.tensor([[0.0, 0.0], [0.0, 100.0]])
        >>> torch.nn.functional.cross_entropy(scores, torch.tensor([0, 1]))
        tensor(0.3466)

    Source:
        Szegedy et al., "Rethinking the Inception Architecture for Computer Vision", 2015, section 7
        (smoothing).
    """
    if autocast.on:
        input, target, weight = autocast.raised(input, target, weight)
    if size_average is not None or reduce is not None or reduction not in ("mean", "sum", "none"):
        reduction = _reduction(size_average, reduce, reduction)
    shape = input._array.shape
    if target._array.shape == shape:
        return _soft_cross_entropy(input, target, weight, ignore_index, reduction, label_smoothing)
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    nn._check_floating("log_softmax_lastdim_kernel_impl", input._array)
    _check_labels(input, target, weight)
    if label_smoothing > 0:
        loss = nn.smoothed_cross_entropy
    else:
        loss = nn.cross_entropy if len(shape) < 3 else nn.cross_entropy_of_places
    out: Tensor = loss(input, target, weight, ignore_index, reduction, label_smoothing)
    return out


def _soft_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    label_smoothing: float,
) -> Tensor:
    """Return the cross entropy of scores and of a probability for each class."""
    if not target.dtype.is_floating_point:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.tensor_name} (class labels have the shape of input without its "
            "dimension of classes)"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if label_smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = 0 if input.ndim == 1 else 1
    classes = input.shape[dim]
    _check_class_weight(weight, classes)
    if label_smoothing > 0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    gains = nn.log_softmax(input, dim) * target
    if weight is not None:
        gains = gains * weight.reshape([classes if k == dim else 1 for k in range(input.ndim)])
    if reduction == "none":
        return -gains.sum(dim)
    loss = -gains.sum()
    return loss / (input.numel() // classes if classes else 0) if reduction == "mean" else loss


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

    Args:
        input: logarithms of probabilities, shape (C,), (N, C) or (N, C, d1, d2, ...).
        target: labels from 0 to C - 1, of shape (), (N,) or (N, d1, d2, ...).
        weight: a factor for each class, shape (C,); the mean is that over the labels' weights.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        ignore_index: the label that does not count.
        reduction: "mean", "sum", or "none" for each sample's own.

    Raises:
        IndexError: a label is no class.
        RuntimeError: shapes do not fit, or labels are not int64 (or uint8).
        ValueError: the batch sizes differ; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> scores = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]])
        >>> torch.nn.functional.nll_loss(scores, torch.tensor([0, 1]))
        tensor(2.5000)
    """
    if autocast.on:
        input, target, weight = autocast.raised(input, target, weight)
    reduction = _reduction(size_average, reduce, reduction)
    if input.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    nn._check_floating("nll_loss_out_frame", input._array)
    _check_labels(input, target, weight)
    out: Tensor = nn.nll_loss(input, target, weight, ignore_index, reduction)
    return out


def _check_labels(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise PyTorch's errors unless scores (N, C, ...), labels (N, ...) and weights (C,) fit."""
    shape, labels = input._array.shape, target._array.shape
    if len(shape) == 2 and len(labels) == 1 and shape[0] == labels[0]:
        pass
    elif len(shape) == 1:
        if len(labels) > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if labels not in ((), (1,)):
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {labels[0]}"
            )
    elif not labels or shape[0] != labels[0]:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size "
            f"({labels[0] if labels else 0})."
        )
    elif len(shape) == 2:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    elif labels[1:] != shape[2:]:
        if len(shape) != 4:
            raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(labels)}")
        if len(labels) != 3:
            raise RuntimeError(
                "only batches of spatial targets supported (3D tensors) but got targets of "
                "dimension: "
                f"{len(labels)}"
            )
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(labels)}")
    if target._array.dtype != np.int64 and target._array.dtype != np.uint8:
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.tensor_name}: convert class "
            "indices by target.long(). (Class probabilities have the shape of the input.)"
        )
    if weight is not None:
        _check_class_weight(weight, shape[0] if len(shape) == 1 else shape[1])
        if weight.dtype != input.dtype:
            raise RuntimeError(
                f"expected scalar type {input.dtype.tensor_name} but found "
                f"{weight.dtype.tensor_name} (the weight)"
            )
        _refuse_grad(weight, "nll_loss_forward", "weight")


def _check_class_weight(weight: Tensor | None, classes: int) -> None:
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but "
            "got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


def _refuse_grad(tensor: Tensor | None, function: str, argument: str) -> None:
    """Raise PyTorch's error if a gradient is asked for that does not exist."""
    if tensor is not None and tensor.requires_grad and is_grad_enabled():
        raise RuntimeError(
            f"The function '{function}' is not differentiable with respect to argument "
            f"'{argument}'. This input "
            "cannot have requires_grad True."
        )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return the mean of `target * (log(target) - input)`, the Kullback-Leibler divergence.

    Args:
        input: logarithms of probabilities, any shape.
        target: probabilities, or with `log_target` their logarithms, the same shape.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "batchmean" (the sum divided by the batch size: the definition), "sum", "mean" or
            "none".
        log_target: whether `target` holds logarithms.

    Raises:
        ValueError: there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> input, target = torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]])
        >>> torch.nn.functional.kl_div(input, target, reduction="batchmean")
        tensor(0.6931)
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    if size_average is not None or reduce is not None:
        reduction = _reduction(size_average, reduce, reduction)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support "
            "size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be "
            "changed to behave the "
            "same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    by_batch = reduction == "batchmean"
    reduction = "sum" if by_batch else _reduction(None, None, reduction)
    losses = (
        target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    )
    result = _reduced(losses, reduction)
    return result / input.shape[0] if by_batch and input.ndim else result


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

    Args:
        input: logarithms of the expected counts, or with `log_input=False` these themselves.
        target: the counts.
        log_input: what `input` is.
        full: add Stirling's approximation of log(target!), where target > 1.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        eps: keeps the logarithm finite.
        reduction: "mean", "sum", or "none" for each element's own.

    Raises:
        ValueError: there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]))
        tensor(1.)
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    losses = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return _reduced(losses, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean negative log-likelihood under normal distributions.

    It is `0.5 * (log(var) + (input - target) ** 2 / var)`.

    Args:
        input: the means, any shape.
        target: the same shape.
        var: the variances: one number, the shape of `input`, that shape with one length of 1 in place of
            another, or without the last length.
        full: add `0.5 * log(2 * pi)`.
        eps: the least variance that is reckoned with.
        reduction: "mean", "sum", or "none" for each element's own.

    Raises:
        ValueError: a variance is negative or of the wrong size; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> mean, target, var = torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1.0])
        >>> torch.nn.functional.gaussian_nll_loss(mean, target, var)
        tensor(2.)

    Source:
        Nix and Weigend, "Estimating the Mean and Variance of the Target Probability Distribution",
        1994.
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        variance = wrap(np.full_like(input._array, var))
    elif (var._array < 0).any():
        raise ValueError("var has negative entry/entries")
    else:
        variance = var
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
    with no_grad():  # The bound counts for the value only: gradients pass, as in PyTorch.
        variance.clamp_(min=eps)
    losses = 0.5 * (variance.log() + (input - target) ** 2 / variance)
    if full:
        losses = losses + 0.5 * math.log(2 * math.pi)
    return _reduced(losses, reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return a loss that brings pairs together or apart by the cosine of their angle.

    It is `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1.

    Args:
        input1: shape (N, D) or (D,).
        input2: the same shape.
        target: 1 or -1 for each pair, shape (N,) or ().
        margin: the cosine up to which unlike pairs cost nothing.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each pair's own.

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> import tinytorch as torch
        >>> a, b = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> torch.nn.functional.cosine_embedding_loss(a, b, torch.tensor([1, -1]), reduction="none")
        tensor([1., 1.])
    """
    if autocast.on:
        input1, input2, target = autocast.raised(input1, input2, target)
    reduction = _reduction(size_average, reduce, reduction)
    if target.ndim == 0:
        if input1.ndim != 1 or input2.ndim != 1:
            raise RuntimeError(
                "0D target tensor expects 1D input tensors, but found inputs with sizes "
                f"{list(input1.shape)} and {list(input2.shape)}."
            )
    elif target.ndim == 1:
        if input1.ndim != 2 or input2.ndim != 2:
            raise RuntimeError(
                "1D target tensor expects 2D input tensors, but found inputs with sizes "
                f"{list(input1.shape)} and {list(input2.shape)}."
            )
    else:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    # The epsilon is of PyTorch's old definition of this loss: it is added to the squares.
    product = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + 1e-12) * ((input2 * input2).sum(-1) + 1e-12)
    cosine = product / squares.sqrt()
    alike = (1 - cosine).masked_fill(target != 1, 0)
    unlike = (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return _reduced(alike + unlike, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `max(0, -target * (input1 - input2) + margin)`.

    Args:
        input1: scores, any shape.
        input2: scores, the same shape.
        target: 1 where the first should rank higher, -1 where the second should.
        margin: by how much.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.

    Raises:
        RuntimeError: the numbers of dimensions differ.

    Example:
        >>> import tinytorch as torch
        >>> a, b = torch.tensor([1.0, 1.0]), torch.tensor([3.0, 3.0])
        >>> target = torch.tensor([1.0, -1.0])
        >>> torch.nn.functional.margin_ranking_loss(a, b, target, reduction="none")
        tensor([2., 0.])
    """
    if autocast.on:
        input1, input2, target = autocast.raised(input1, input2, target)
    reduction = _reduction(size_average, reduce, reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            "input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `input` where target is 1, of `max(0, margin - input)` where it is -1.

    Args:
        input: distances, any shape.
        target: 1 or -1, the same shape.
        margin: the distance from which on unlike pairs cost nothing.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each element's own.

    Raises:
        ValueError: there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> distances, target = torch.tensor([0.25, 0.25]), torch.tensor([1, -1])
        >>> torch.nn.functional.hinge_embedding_loss(distances, target, reduction="none")
        tensor([0.2500, 0.7500])
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    unlike = (margin - input).clamp_min(0).masked_fill(target == 1, 0)
    alike = (input + wrap(np.zeros_like(unlike._array))).masked_fill(target == -1, 0)
    return _reduced(unlike + alike, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `log(1 + exp(-target * input))`, targets 1 or -1; arguments as `mse_loss`.

    Raises:
        RuntimeError: the target broadcasts to another shape than that of `input`; `input` is of integers.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
        tensor(0.6931)
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    _refuse_grad(target, "soft_margin_loss", "target")
    shape = _broadcast(input.shape, target.shape)
    if shape != input.shape:
        raise RuntimeError(
            f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}"
        )
    if not input.dtype.is_floating_point:
        kind = target.dtype if target.dtype.is_floating_point else dtypes.get_default_dtype()
        raise RuntimeError(
            f"result type {kind.tensor_name} can't be cast to the desired output type {input.dtype.tensor_name}"
        )
    out: Tensor = nn.soft_margin_loss(input, target, reduction)
    return out


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of each class's binary cross entropy, for samples with several labels.

    Args:
        input: scores, shape (N, C) or (C,).
        target: 0 or 1 for each class, the same shape.
        weight: a factor for each class, shape (C,).
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each sample's own.

    Raises:
        ValueError: there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> target = torch.tensor([[1.0, 0.0]])
        >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), target)
        tensor(0.6931)
    """
    reduction = _reduction(size_average, reduce, reduction)
    losses = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        losses = losses * weight
    return _reduced(losses.mean(-1), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `sum(max(0, margin - x[y] + x[i]) ** p) / C`, y the label, over i != y.

    Args:
        input: scores, shape (N, C) or (C,).
        target: labels, shape (N,) or ().
        p: 1 or 2.
        margin: by how much the label's score should be above the others.
        weight: a factor for each class, shape (C,), that of the label.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each sample's own.

    Raises:
        ValueError: `p` is neither 1 nor 2.
        RuntimeError: a label is no class, or sizes do not fit.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.0, 0.5]]), torch.tensor([0]))
        tensor(0.7500)
    """
    if autocast.on:
        input, target, weight = autocast.raised(input, target, weight)
    reduction = _reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    shape = [*input.shape]
    if len(shape) > 2 or 0 in shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}"
        )
    count, classes = [1] * (2 - len(shape)) + shape
    if target.ndim > 1 or target.numel() != count:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{count}], but got {[*target.shape]}. Input has shape {shape}."
        )
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(
            f"inconsistent weight size, expected {classes} but got {[*weight.shape]}"
        )
    _refuse_grad(weight, "multi_margin_loss", "weight")
    _check_margin("multi_margin_loss_cpu_kernel", input, target)
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.tensor_name} but found {weight.dtype.tensor_name}"
        )
    out: Tensor = nn.multi_margin_loss(input, target, p, margin, weight, reduction)
    return out


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `sum(max(0, 1 - x[label] + x[other])) / C`, over all pairs of a label and another class.

    Args:
        input: scores, shape (N, C) or (C,).
        target: the labels of each sample, then a -1; of the input's shape, int64.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each sample's own.

    Raises:
        RuntimeError: the shapes do not fit, or a label is no class.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> torch.nn.functional.multilabel_margin_loss(x, torch.tensor([[3, 0, -1, 1]]))
        tensor(0.8500)
    """
    if autocast.on:
        input, target = autocast.raised(input, target)
    reduction = _reduction(size_average, reduce, reduction)
    shape = [*input.shape]
    if input.ndim > 2 or (input.ndim and not shape[-1]):
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {shape}"
        )
    if target.numel() != input.numel() or (input.ndim and target.shape != input.shape):
        raise RuntimeError(
            f"inconsistent target size: {[*target.shape]} for input of size: {shape}"
        )
    _check_margin("multilabel_margin_loss_forward_out_frame", input, target)
    labels = target._array
    if labels.size and (labels.min() < -1 or labels.max() >= (shape or [1])[-1]):
        raise RuntimeError("argument #2 'target' is out of range")
    # (The mean of no samples is 0; in PyTorch it is memory that was not written to.)
    reduction = "sum" if reduction == "mean" and not input._array.size else reduction
    out: Tensor = nn.multilabel_margin_loss(input, target, reduction)
    return out


def _check_margin(kernel: str, input: Tensor, target: Tensor) -> None:
    """Raise PyTorch's errors unless the scores have 32 or 64 bits, and the labels are int64."""
    if input._array.dtype.itemsize == 2:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.tensor_name}'")
    nn._check_floating(kernel, input._array)
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.tensor_name}")


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean of `max(0, |anchor - positive| - |anchor - negative| + margin)`.

    Args:
        anchor: shape (N, D) or (D,).
        positive: what should be near, the same shape.
        negative: what should be far, the same shape.
        margin: by how much farther.
        p: the norm of the distance.
        eps: added to the differences, so that the gradient exists.
        swap: take the distance of positive and negative instead of that to the anchor, where it is
            smaller.
        size_average: deprecated, see `reduction`.
        reduce: deprecated, see `reduction`.
        reduction: "mean", "sum", or "none" for each triplet's own.

    Raises:
        RuntimeError: the numbers of dimensions differ.
        ValueError: `margin` is not positive.

    Example:
        >>> import tinytorch as torch
        >>> a, b, c = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[-1.0]])
        >>> torch.nn.functional.triplet_margin_loss(a, b, c)
        tensor(2.0000)

    Source:
        Balntas et al., "Learning local feature descriptors with triplets and shallow convolutional
        neural networks", 2016 (`swap`).
    """
    if autocast.on:
        anchor, positive, negative = autocast.raised(anchor, positive, negative)
    reduction = _reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
    )  # fmt: skip


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
    """Return `triplet_margin_loss` with any distance.

    Args:
        anchor: shape (N, *) or (*).
        positive: what should be near, the same shape.
        negative: what should be far, the same shape.
        distance_function: a function of two tensors; by default `pairwise_distance`.
        margin: by how much farther.
        swap: take the distance of positive and negative instead of that to the anchor, where it is
            smaller.
        reduction: "mean", "sum", or "none" for each triplet's own.

    Raises:
        RuntimeError: the numbers of dimensions differ.
        ValueError: `margin` is not positive; there is no such reduction.

    Example:
        >>> import tinytorch as torch
        >>> a, b, c = torch.tensor([[0.0]]), torch.tensor([[2.0]]), torch.tensor([[-1.0]])
        >>> def squared(x, y):
        ...     return ((x - y) ** 2).sum(-1)
        >>> loss = torch.nn.functional.triplet_margin_with_distance_loss
        >>> loss(a, b, c, distance_function=squared)
        tensor(4.)
    """
    reduction = _reduction(None, None, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    _check_triplet(anchor, positive, negative)
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return _reduced((near - far + margin).clamp_min(0), reduction)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Return minus the log-probability that alignments of each sequence give its target.

    An alignment has a label or the blank at each moment; repeated labels count once, unless a blank is between.

    Args:
        log_probs: log-probabilities of the classes at each moment, as `log_softmax` gives them, shape (T, N, C) or
            (T, C).
        targets: labels, shape (N, S), or those of all targets one after another.
        input_lengths: of the sequences, (N,): a tensor or a tuple of integers.
        target_lengths: of the targets.
        blank: the class that stands for no label.
        reduction: "mean" (each divided by its target's length), "sum", or "none" for each sequence's own.
        zero_infinity: 0 for targets that are too long for their sequences, and no gradient, instead of infinity.

    Raises:
        RuntimeError: sizes or lengths do not fit; `blank` is no class; a second derivative.

    Example:
        >>> import tinytorch as torch
        >>> even = torch.full((2, 1, 2), 0.5).log()
        >>> loss = torch.nn.functional.ctc_loss(even, torch.tensor([[1]]), (2,), (1,))
        >>> loss.exp()  # 3 of the 4 alignments of two moments read "1"
        tensor(1.3333)

    Source:
        Graves et al., "Connectionist Temporal Classification: Labelling Unsegmented Sequence Data with Recurrent
        Neural Networks", 2006.
    """
    if autocast.on:
        (log_probs,) = autocast.raised(log_probs)
    number = ("none", "mean", "sum").index(_reduction(None, None, reduction))
    return _ctc.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity
    )


# Distances ----------------------------------------------------------------------------------------


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between vectors.

    It is `sum(x1 * x2) / (max(norm(x1), eps) * max(norm(x2), eps))`.

    Args:
        x1: any shape.
        x2: a shape that broadcasts with it.
        dim: the dimension of the vectors.
        eps: the least norm that is divided by.

    Raises:
        RuntimeError: the shapes do not broadcast.

    Example:
        >>> import tinytorch as torch
        >>> a, b = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[2.0, 0.0], [1.0, 1.0]])
        >>> torch.cosine_similarity(a, b)
        tensor([1.0000, 0.7071])
    """
    shape = _broadcast(x1.shape, x2.shape)
    x1, x2 = x1.expand(shape), x2.expand(shape)
    return (
        x1 / x1.norm(2, dim, True).clamp(min=eps) * (x2 / x2.norm(2, dim, True).clamp(min=eps))
    ).sum(dim)


def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Tensor:
    """Return the p-norm of `x1 - x2 + eps` along the last dimension.

    Args:
        x1: shape (N, D) or (D,).
        x2: a shape that broadcasts with it.
        p: the exponent of the norm.
        eps: added to the differences, so that the gradient exists.
        keepdim: keep the last dimension, with length 1.

    Raises:
        RuntimeError: the shapes do not broadcast.

    Example:
        >>> import tinytorch as torch
        >>> torch.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim)


# Normalisation ------------------------------------------------------------------------------------


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(input - mean) / sqrt(variance + eps) * weight + bias`, over the last dimensions.

    Args:
        input: shape (*, *normalized_shape).
        normalized_shape: the lengths of the last dimensions, over which mean and (biased) variance
            are taken.
        weight: a factor, shape `normalized_shape`.
        bias: a summand, shape `normalized_shape`.
        eps: keeps the division finite.

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.layer_norm(torch.tensor([[1.0, 2.0, 3.0]]), (3,))
        tensor([[-1.2247,  0.0000,  1.2247]])

    Source:
        Ba et al., "Layer Normalization", 2016.
    """
    try:
        shape = check_normalized_shape("layer_norm", input, normalized_shape, weight, bias, "[*, ")
    except AttributeError:
        check_tensor(input, "layer_norm")
        raise
    return nn.layer_norm(input, shape, weight, bias, eps)


def rms_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """Return `input / sqrt(mean(input ** 2) + eps) * weight`, the mean over the last dimensions.

    Args:
        input: shape (*, *normalized_shape).
        normalized_shape: the lengths of the last dimensions.
        weight: a factor, shape `normalized_shape`.
        eps: keeps the division finite; by default the dtype's machine epsilon.

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.rms_norm(torch.tensor([[3.0, 4.0]]), (2,))
        tensor([[0.8485, 1.1314]])

    Source:
        Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
    """
    shape = check_normalized_shape("rms_norm", input, normalized_shape, weight, None, "[*")
    if weight is not None and weight.dtype is not input.dtype:
        warnings.warn(
            f"Mismatch dtype between input and weight: input dtype = {input.dtype}, weight dtype = {weight.dtype}, "
            "Cannot dispatch to fused implementation.",
            stacklevel=2,
        )
    dims = tuple(range(-len(shape), 0))
    x = input.float() if input._array.dtype.itemsize == 2 else input
    if not x._array.flags.c_contiguous and not channels_last(x._array):
        x = x.contiguous()
    eps = dtypes.finfo(x.dtype).eps if eps is None else eps
    out: Tensor = x * ((x * x).mean(dims, keepdim=True) + eps).rsqrt()
    if weight is not None:
        out = out * weight
    return out if out.dtype is input.dtype else out.to(input.dtype)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `(input - mean) / sqrt(variance + eps) * weight + bias`, channel by channel.

    Args:
        input: shape (N, C, *).
        running_mean: the running mean of the channels, shape (C,), or None.
        running_var: the running variance.
        weight: a factor for each channel.
        bias: a summand for each channel.
        training: take mean and variance of this batch, and move the running ones towards them, in place; otherwise
            take the running ones.
        momentum: by which part these move.
        eps: keeps the divisor from 0.

    Raises:
        ValueError: in training, there is only one value per channel; `eps` is negative, or 0 in training; only one
            running statistic is given.
        RuntimeError: sizes or dtypes do not fit; without `training`, running statistics are missing.

    Example:
        >>> import tinytorch as torch
        >>> mean, var = torch.zeros(1), torch.ones(1)
        >>> x = torch.tensor([[1.0], [3.0]])
        >>> torch.nn.functional.batch_norm(x, mean, var, training=True)
        tensor([[-1.0000],
                [ 1.0000]])
        >>> mean
        tensor([0.2000])

    Source:
        Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate
        Shift", 2015.
    """
    if training:
        shape = input.shape
        if (
            math.prod((*shape[:1], *shape[2:])) == 1
        ):  # (an empty batch is let through, as in PyTorch)
            raise ValueError(
                f"Expected more than 1 value per channel when training, got input size {shape}"
            )
        if eps <= 0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return _norm.batch_norm(
        input, weight, bias, running_mean, running_var, training, momentum, eps, True
    )


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with each channel of each sample normalised by its own mean and variance.

    Args:
        input: shape (N, C, *).
        running_mean: the running mean of the channels, shape (C,), or None.
        running_var: the running variance.
        weight: a factor for each channel.
        bias: a summand for each channel.
        use_input_stats: False to normalise by the running statistics; otherwise these, if given, are moved in place.
        momentum: by which part they move.
        eps: keeps the divisor from 0.

    Raises:
        ValueError: with `use_input_stats`, a channel of a sample has only one value.
        RuntimeError: sizes or dtypes do not fit; running statistics are missing.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.instance_norm(torch.tensor([[[1.0, 3.0], [5.0, 5.0]]]))
        tensor([[[-1.0000,  1.0000],
                 [ 0.0000,  0.0000]]])

    Source:
        Ulyanov et al., "Instance Normalization: The Missing Ingredient for Fast Stylization", 2016.
    """
    if use_input_stats and math.prod(input.shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 spatial element when training, got input size {input.shape}"
        )
    return _norm.instance_norm(
        input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True
    )


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Return `input` with each group of channels of each sample normalised.

    Args:
        input: shape (N, C, *).
        num_groups: into how many groups the channels are divided.
        weight: a factor for each channel, shape (C,).
        bias: a summand for each channel.
        eps: keeps the divisor from 0.

    Raises:
        RuntimeError: the channels cannot be divided so; shapes or dtypes do not fit.
        ValueError: there is only one value per group, and one sample.

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.group_norm(torch.tensor([[1.0, 3.0, 5.0, 5.0]]), 2)
        tensor([[-1.0000,  1.0000,  0.0000,  0.0000]])

    Source:
        Wu and He, "Group Normalization", 2018.
    """
    if input.ndim < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.ndim}"
        )
    shape = input.shape
    if shape[0] * shape[1] // num_groups * math.prod(shape[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {list(shape)}"
        )
    return _norm.group_norm(input, num_groups, weight, bias, eps)


def normalize(
    input: Tensor,
    p: float = 2.0,
    dim: int | Sequence[int] = 1,
    eps: float = 1e-12,
    out: Tensor | None = None,
) -> Tensor:
    """Return `input / max(norm(input), eps)`, the p-norm along `dim`.

    Args:
        input: any shape.
        p: the exponent of the norm.
        dim: the dimension, or dimensions, of the vectors.
        eps: the least norm that is divided by.
        out: a tensor to write the result into.

    Raises:
        IndexError: there is no such dimension (the default is 1).

    Example:
        >>> import tinytorch as torch
        >>> torch.nn.functional.normalize(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000]])
    """
    result: Tensor = input / input.norm(p, dim, True).clamp(min=eps)
    return result if out is None else out.copy_(result)


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """Return `input / (k + alpha * mean(input ** 2)) ** beta`, the mean over `size` neighbouring channels.

    Args:
        input: shape (N, C, *), at least three dimensions; beyond the first and the last channel there are zeros.
        size: over how many channels, of which `size // 2` come before.
        alpha: a factor.
        beta: an exponent.
        k: a summand.

    Raises:
        ValueError: there are fewer than three dimensions.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([[[1.0], [2.0]]])
        >>> torch.nn.functional.local_response_norm(x, 2, alpha=2.0, beta=1.0).flatten()
        tensor([0.5000, 0.3333])

    Source:
        Krizhevsky et al., "ImageNet Classification with Deep Convolutional Neural Networks", 2012, section 3.3.
    """
    if input.ndim < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.ndim} dimensions)"
        )
    if size <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got {size}")
    if not input.numel():
        return input
    squares = input * input
    if autocast.on and input.ndim > 3:  # PyTorch takes the means of volumes
        (squares,) = autocast.raised(squares)
    return input / _sum_of_neighbours(squares, size // 2, (size - 1) // 2).mul(alpha / size).add(
        k
    ).pow(beta)


def _sum_of_neighbours(x: Tensor, before: int, after: int) -> Tensor:
    """Return the sums of each channel of (N, C, *) and so many before and after it."""
    channels = x.shape[1]
    border = [0, 0] * (x.ndim - 2)
    padded = pad(x, [*border, before, after])
    total = padded.narrow(1, 0, channels)
    for k in range(1, before + after + 1):
        total = total + padded.narrow(1, k, channels)
    return total
