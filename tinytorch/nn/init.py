"""Initialization of parameters; all functions write into their tensor and return it.

Autograd does not record them. Random functions draw the same numbers as PyTorch from the same seed, and take
`generator=`. The names without underscore are deprecated.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.complex import refuse
from tinytorch.core.mode import set_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.ops.create import empty_like
from tinytorch.ops.linalg.factor import qr
from tinytorch.ops.random import randperm
from tinytorch.ops.register import asking
from tinytorch.ops.sequences import eye as _eye

__all__ = [
    "calculate_gain", "constant", "constant_", "dirac", "dirac_", "eye", "eye_", "kaiming_normal",
    "kaiming_normal_", "kaiming_uniform", "kaiming_uniform_", "normal", "normal_", "ones_",
    "orthogonal", "orthogonal_", "sparse", "sparse_", "trunc_normal_", "uniform", "uniform_",
    "xavier_normal", "xavier_normal_", "xavier_uniform", "xavier_uniform_", "zeros_",
]  # fmt: skip

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
_GAINS = {
    **dict.fromkeys(_LINEAR, 1),
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,  # stable in practice (Klambauer et al. derive 1)
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor that compensates for the reduction of the standard deviation by an activation function.

    1 for linear functions, convolutions and sigmoid, 5/3 for tanh, sqrt(2) for relu, sqrt(2 / (1 +
    slope²)) for leaky_relu, 3/4 for selu.

    `param` is the slope, 0.01 by default.

    Example:
        >>> from tinytorch import nn
        >>> nn.init.calculate_gain("leaky_relu", 1)
        1.0
    """
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    slope = 0.01 if param is None else param
    if isinstance(slope, bool) or not isinstance(slope, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + slope**2))


def _unrecorded(draw: Any, first: float, second: float, generator: Any) -> Tensor:
    """Return what a method draws into its tensor, unrecorded: `no_grad` without its object."""
    before = set_grad(False)
    try:
        drawn: Tensor = draw(first, second, generator=generator)
        return drawn
    finally:
        set_grad(before)


@asking("nn.init.uniform_")
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with samples of the uniform distribution U(a, b).

    Example:
        >>> w = torch.nn.init.uniform_(torch.empty(100), 2, 3)
        >>> bool(((w >= 2) & (w < 3)).all())
        True
    """
    return _unrecorded(tensor.uniform_, a, b, generator)


@asking("nn.init.normal_")
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Tensor:
    """Fill with samples of the normal distribution N(mean, std²).

    Example:
        >>> torch.nn.init.normal_(torch.empty(3, 5), std=0.02).shape
        torch.Size([3, 5])
    """
    return _unrecorded(tensor.normal_, mean, std, generator)


def trunc_normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Tensor:
    """Fill with samples of N(mean, std²), truncated to [a, b].

    Example:
        >>> w = torch.nn.init.trunc_normal_(torch.empty(1000), std=2)
        >>> bool((w.abs() <= 2).all())
        True
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect."
        )
    probability = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    draw = _redraw_outside if probability > 0.3 else _rejection_sample
    with no_grad():
        if tensor.is_meta:
            return tensor.normal_()  # which has no samples to reject
        tensor.copy_(draw(tensor, mean, std, a, b, generator))
    return tensor


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_outside(tensor: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Return normal samples, redrawn while they are outside [a, b]: fast if most samples are inside.

    As in PyTorch, the first samples are drawn into the tensor, in its memory order.
    """
    low, high = (tensor._array.dtype.type(a), tensor._array.dtype.type(b))  # rounded to the dtype of the tensor
    drawn: Tensor = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (drawn < low.item()) | (drawn > high.item())
        if not outside.any():
            return drawn
        drawn = empty_like(tensor).normal_(mean, std, generator=generator).where(outside, drawn)


def _rejection_sample(like: Tensor, mean: float, std: float, a: float, b: float, generator: Any) -> Tensor:
    """Return uniform samples of [a, b], accepted with probability density / peak density: fast in a tail."""
    peak = max(a, min(mean, b))
    log_peak = -0.5 * ((peak - mean) / std) ** 2

    def rejected(drawn: Tensor) -> Tensor:
        log_density: Any = ((drawn - mean) / std) ** 2 * -0.5 - log_peak
        return empty_like(like).uniform_(generator=generator).log() > log_density

    drawn: Tensor = empty_like(like).uniform_(a, b, generator=generator)
    pending = rejected(drawn)
    while pending.any():
        redrawn = empty_like(like).uniform_(a, b, generator=generator)
        drawn = redrawn.where(pending, drawn)
        pending = rejected(redrawn) & pending
    return drawn


@asking("nn.init.constant_")
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value.

    Example:
        >>> torch.nn.init.constant_(torch.empty(2), 0.3)
        tensor([0.3000, 0.3000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with 1.

    Example:
        >>> torch.nn.init.ones_(torch.empty(2))
        tensor([1., 1.])
    """
    with no_grad():
        return tensor.fill_(1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with 0.

    Example:
        >>> torch.nn.init.zeros_(torch.empty(2))
        tensor([0., 0.])
    """
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity: 1 on the diagonal, else 0.

    Example:
        >>> torch.nn.init.eye_(torch.empty(2, 3))
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    _check_matrix(tensor)
    with no_grad():
        tensor.copy_(_eye(*tensor.shape, dtype=tensor.dtype))
    return tensor


def _check_matrix(tensor: Tensor) -> None:
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it preserves its channels: 1 at the center of kernel (c, c), else 0.

    The weight is `(out_channels, in_channels / groups, *kernel)`, with 1 to 3 kernel dimensions.

    Example:
        >>> torch.nn.init.dirac_(torch.empty(1, 1, 3))
        tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    out_channels, in_channels, *kernel = tensor.shape
    if out_channels % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = out_channels // groups
    center = tuple(size // 2 for size in kernel)
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, in_channels)):
                tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """Return the number of inputs per output of the layer, and of outputs per input."""
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *kernel = shape
    receptive_field = math.prod(kernel)
    return inputs * receptive_field, outputs * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes, mode = ["fan_in", "fan_out"], mode.lower()
    if mode not in modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode)]


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out)): Glorot initialization.

    The weight is `(out_features, in_features, *kernel)`; for `gain` see `calculate_gain`.

    Example:
        >>> w = torch.nn.init.xavier_uniform_(torch.empty(3, 3))
        >>> bool((w.abs() <= 1).all())
        True

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.
    """
    bound = math.sqrt(3.0) * _xavier_std(tensor, gain)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Any = None) -> Tensor:
    """Fill from N(0, std²) with std = gain * sqrt(2 / (fan_in + fan_out)): Glorot initialization.

    Args, errors and source are those of `xavier_uniform_`.

    Example:
        >>> torch.nn.init.xavier_normal_(torch.empty(3, 5)).shape
        torch.Size([3, 5])
    """
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor: Tensor, gain: float) -> float:
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / (fan_in + fan_out))


@asking("nn.init.kaiming_uniform_")
def kaiming_uniform_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill from U(-bound, bound) with bound = gain * sqrt(3 / fan): He initialization.

    The weight is `(out_features, in_features, *kernel)`; the mode "fan_in" preserves the variance in the forward pass,
    "fan_out" in the backward pass. The gain is that of `nonlinearity`, see `calculate_gain`, of which `a` is the slope.

    Example:
        >>> w = torch.nn.init.kaiming_uniform_(torch.empty(3, 6), nonlinearity="relu")
        >>> bool((w.abs() <= 1).all())
        True

    Source: He et al., "Delving deep into rectifiers", 2015.
    """
    if 0 in tensor.shape:
        return _warn_of_empty(tensor)
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Tensor:
    """Fill from N(0, std²) with std = gain / sqrt(fan): He initialization.

    Args, errors and source are those of `kaiming_uniform_`.

    Example:
        >>> torch.nn.init.kaiming_normal_(torch.empty(3, 5), mode="fan_out").shape
        torch.Size([3, 5])
    """
    if 0 in tensor.shape:
        return _warn_of_empty(tensor)
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _warn_of_empty(tensor: Tensor) -> Tensor:
    warn("Initializing zero-element tensors is a no-op")
    return tensor


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Any = None) -> Tensor:
    """Fill with orthonormal rows (or columns, if these are fewer) times `gain`.

    The tensor has at least two dimensions; those after the first are flattened.

    Example:
        >>> w = torch.nn.init.orthogonal_(torch.empty(3, 5))
        >>> torch.allclose(w @ w.T, torch.eye(3), atol=1e-5)
        True

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural networks", 2013.
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if 0 in tensor.shape:
        return tensor
    rows = tensor.shape[0]
    with no_grad():
        drawn = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
        if tensor.dtype.itemsize < 4:
            raise NotImplementedError(f"\"geqrf_cpu\" not implemented for '{tensor.dtype.tensor_name}'")
        refuse("sign", tensor)
        wide = drawn.shape[0] < drawn.shape[1]
        q, r = qr(drawn.t() if wide else drawn)
        q = q * r.diagonal().sign()  # (makes the distribution uniform over the orthogonal matrices)
        tensor.copy_((q.t() if wide else q).reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Any = None) -> Tensor:
    """Fill a matrix from N(0, std²), with the fraction `sparsity` of each column set to 0.

    As in PyTorch, `generator` draws the values, and the default generator the places of the zeros.

    Example:
        >>> (torch.nn.init.sparse_(torch.empty(4, 3), sparsity=0.5) == 0).sum(0)
        tensor([2, 2, 2])

    Source: Martens, "Deep learning via Hessian-free optimization", 2010.
    """
    _check_matrix(tensor)
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for column in range(columns):
            tensor[randperm(rows)[:zeros], column] = 0
    return tensor


def _deprecated(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return `function` under its deprecated name without underscore, with a warning."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def renamed(*args: Any, **kwargs: Any) -> Tensor:
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    renamed.__name__ = renamed.__qualname__ = old
    renamed.__doc__ = f"Deprecated name of `{new}`."
    del renamed.__wrapped__
    return renamed


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
