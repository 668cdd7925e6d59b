"""Ops of neural networks: softmax and activations."""

from __future__ import annotations

import functools
import math
from typing import Any

from tinytorch.core.complex import HOLOMORPHIC
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import activation, dtypes
from tinytorch.kernels.checks import refused
from tinytorch.ops.arguments import op_of
from tinytorch.ops.arithmetic import kept, zero_gradient
from tinytorch.ops.join import cat
from tinytorch.ops.reduce import centered
from tinytorch.ops.register import public
from tinytorch.ops.transcendental import sigmoid_backward

# Softmax ------------------------------------------------------------------------------------------


def _softmax_grad_out(gg: Tensor, g: Tensor, out: Tensor, dim: int) -> Tensor:
    return gg * (g - (g * out).sum(dim, True)) - g * (gg * out).sum(dim, True)


_softmax_grad = op_of(
    activation.softmax_grad_along,
    name="SoftmaxBackwardData",
    g=lambda gg, out, dim: _softmax_grad(gg, out, dim),
    out=_softmax_grad_out,
)
log_softmax_backward = op_of(
    activation.log_softmax_grad_along,
    name="LogSoftmaxBackwardData",
    g=lambda gg, out, dim: centered(gg, out.exp(), dim),
    out=lambda gg, g, out, dim: -gg * out.exp() * g.sum(dim, True),
)


def _axis_for_dim(name: str, axis: Any) -> Any:
    if axis is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
    return axis


@op(activation.softmax_along, x=lambda g, out, dim: _softmax_grad(g, out, dim))
def _softmax(x: Any, dim: int) -> Any:
    """Return `softmax(x)`."""


@op(activation.log_softmax_along, x=lambda g, out, dim: log_softmax_backward(g, out, dim))
def _log_softmax(x: Any, dim: int) -> Any:
    """Return `log_softmax(x)`."""


@public(method=True, out="exact")
@public("special.softmax")
def softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """Return `exp(input) / sum(exp(input))` along `dim`: positive numbers that add up to 1.

    `dtype` is what `input` is converted to first, such as integers; `axis` is NumPy's name of `dim`.

    Example:
        >>> torch.softmax(torch.tensor([0.0, 1.0, 1000.0]), dim=0)
        tensor([0., 0., 1.])
    """
    if dim is None:
        dim = _axis_for_dim("softmax", axis)
    return _softmax(input if dtype is None else input.to(dtype), dim)


@public(method=True, out="exact")
@public("special.log_softmax")
def log_softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """Return `log(softmax(input))` along `dim`, exact also where the softmax is 0.

    Arguments as for `softmax`.

    Example:
        >>> torch.log_softmax(torch.tensor([0.0, 0.0, 100.0]), dim=0)
        tensor([-100., -100.,    0.])
    """
    if dim is None:
        dim = _axis_for_dim("log_softmax", axis)
    return _log_softmax(input if dtype is None else input.to(dtype), dim)


# Piecewise linear activations ---------------------------------------------------------------------
# As in PyTorch, the gradient of such a function is an op of the input too, although its derivative with respect
# to the input is 0, so that second derivatives are zeros rather than an error.


def _slope_op(name: str, kernel: Any) -> Any:
    """Return the op of g, x and up to two more arguments that computes the gradient of a piecewise linear function."""

    def gradient(g: Any, x: Any, a: Any = None, b: Any = None) -> Any: ...

    gradient.__name__ = f"{name}_backward"
    made = op(
        functools.partial(activation.piecewise_grad, kernel, name),
        batch="elementwise",
        g=lambda gg, x, a, b: made(gg, x, a, b),
        x=lambda g: zero_gradient(g),
    )(gradient)
    return made


_threshold_grad = _slope_op("threshold", activation.threshold_grad)
_leaky_relu_grad = _slope_op("leaky_relu", activation.leaky_relu_grad)
_rrelu_grad = _slope_op("rrelu_with_noise", activation.rrelu_grad)
_hardtanh_grad = _slope_op("hardtanh", activation.hardtanh_grad)
_hardsigmoid_grad = _slope_op("hardsigmoid", activation.hardsigmoid_grad)
_hardshrink_grad = _slope_op("hardshrink", activation.outside)
_softshrink_grad = _slope_op("softshrink", activation.outside)

threshold = op(
    batch="elementwise", refuses="threshold_cpu", x=lambda g, x, threshold: _threshold_grad(g, x, threshold)
)(activation.threshold)


@op(activation.leaky_relu, batch="elementwise", x=lambda g, x, negative_slope: _leaky_relu_grad(g, x, negative_slope))
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """Return `x` where it is positive, else `negative_slope * x`."""


rrelu = op(name="RreluWithNoise", x=lambda g, x, slopes: _rrelu_grad(g, x, slopes))(activation.rrelu)
hardtanh = op(
    batch="elementwise",
    refuses="clamp_scalar_cpu",
    x=lambda g, x, min_val, max_val: _hardtanh_grad(g, x, min_val, max_val),
)(activation.hardtanh)
hardsigmoid = op(batch="elementwise", x=lambda g, x: _hardsigmoid_grad(g, x))(activation.hardsigmoid)
_hardswish_grad = op_of(
    activation.hardswish_grad,
    batch="elementwise",
    name="HardswishBackward",
    g=lambda gg, x: _hardswish_grad(gg, x),
    x=lambda gg, g, x: kept(gg * g / 3, (x > -3) & (x < 3)),
)
hardswish = op(batch="elementwise", x=lambda g, x: _hardswish_grad(g, x))(activation.hardswish)


@public(binds=False, also="nn.functional.hardshrink", method=True, out="same")
@op(activation.hardshrink, batch="elementwise", x=lambda g, x, lambd: _hardshrink_grad(g, x, lambd))
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x`, but 0 where it is in [-lambd, lambd].

    Example:
        >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.2, 0.7]))
        tensor([-1.0000,  0.0000,  0.7000])
    """


@public("nn.functional.softshrink", binds=False, out="same")
@op(activation.softshrink, batch="elementwise", x=lambda g, x, lambd: _softshrink_grad(g, x, lambd))
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x` moved towards 0 by `lambd`, and 0 where it is in [-lambd, lambd].

    Example:
        >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.2, 0.75]))
        tensor([-0.5000,  0.0000,  0.2500])
    """


_prelu = op_of(
    activation.prelu,
    refuses="prelu_cpu",
    joint=lambda g, needs, x, weight: _prelu_grad(g, x, weight),
    inputs=("x", "weight"),
    name="PreluKernel",
    broadcasts=True,
)


def _prelu_grad_g(gg: tuple[Any, Any], x: Tensor, weight: Tensor) -> Tensor:
    of_x, of_weight = gg
    below = None if of_x is None else of_x * weight
    if of_weight is not None:
        below = of_weight * x if below is None else below + of_weight * x
    above = zero_gradient(of_weight) if of_x is None else of_x
    return above.where(x >= 0, below)


def _prelu_below(g: Tensor, gg: Any, x: Tensor) -> Tensor:
    return zero_gradient(g) if gg is None else kept(g * gg, ~(x >= 0))


_prelu_grad = op_of(
    activation.prelu_grad,
    batch=lambda g, x, weight: (g.where(x > 0, g * weight), (g * x).masked_fill(x > 0, 0)),
    name="PreluKernelBackward",
    outputs=2,
    g=_prelu_grad_g,
    x=lambda gg, g, x: _prelu_below(g, gg[1], x),
    weight=lambda gg, g, x: _prelu_below(g, gg[0], x),
    broadcasts=True,
)


@public(binds=False, also="nn.functional.prelu", method=True, autocast="low")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return `input` where it is positive, else `weight * input`.

    Shapes: (N, C, *) or (N,), and a weight for all or one for each of the C channels.

    Example:
        >>> torch.prelu(torch.tensor([[-1.0, -1.0]]), torch.tensor([0.5, 0.1]))
        tensor([[-0.5000, -0.1000]])
    """
    if input.dtype != weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.tensor_name} and {weight.dtype.tensor_name}"
        )
    if input.dtype.category < dtypes.FLOATING:
        raise refused("prelu_cpu", input._array)
    count = weight.numel()
    if count != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if channels != count:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{count} and channel size = {channels}."
            )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    shape = [1] * input.ndim
    if input.ndim > 1:
        shape[1] = count
    return _prelu(input, weight if [*weight.shape] == shape else weight.reshape(shape))


# Smooth activations -------------------------------------------------------------------------------


def _elu_grad_x(gg: Tensor, g: Tensor, x: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    return _elu_grad(gg * g * input_scale, x, alpha, scale, input_scale) * (x < 0)  # 0 at the kink


_elu_grad = op_of(
    activation.elu_grad,
    batch="elementwise",
    name="EluBackward",
    g=lambda gg, x, alpha, scale, input_scale: _elu_grad(gg, x, alpha, scale, input_scale),
    x=_elu_grad_x,
)


@op(activation.elu, batch="elementwise", x=lambda g, x, alpha, scale: _elu_grad(g, x, alpha, scale, 1.0))
def elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    """Return `scale * x` where x is positive, else `scale * alpha * (exp(x) - 1)`."""


celu = op(batch="elementwise", x=lambda g, x, alpha: _elu_grad(g, x, float(alpha), 1.0, 1.0 / float(alpha)))(
    activation.celu
)


def _silu_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s, rest = x.sigmoid(), (-x).sigmoid()  # (1 - s would lose its digits)
    return gg * g * (s * rest * (2 + x * (rest - s)))


_silu_grad = op_of(
    activation.silu_grad,
    batch="elementwise",
    complex=HOLOMORPHIC,
    name="SiluBackward",
    g=lambda gg, x: _silu_grad(gg, x),
    x=_silu_grad_x,
)
silu = op(batch="elementwise", complex=HOLOMORPHIC, x=lambda g, x: _silu_grad(g, x))(activation.silu)


def _mish_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s, rest = x.sigmoid(), (-x).sigmoid()
    square = rest * rest
    below = square + 1
    t = (1 - square) / below  # tanh(softplus(x))
    return gg * g * (4 * s * square / (below * below) * (2 + x * (rest - 2 * s * t)))


_mish_grad = op_of(
    activation.mish_grad, batch="elementwise", name="MishBackward", g=lambda gg, x: _mish_grad(gg, x), x=_mish_grad_x
)
mish = op(batch="elementwise", x=lambda g, x: _mish_grad(g, x))(activation.mish)


softsign = op(batch="elementwise", name="Div", x=lambda g, x, out: (g - g * out * x.sign()) / (x.abs() + 1))(
    activation.softsign
)
tanhshrink = op(batch="elementwise", name="Sub", x=lambda g, x: g * x.tanh().square())(activation.tanhshrink)


def _gelu_grad_x(gg: Tensor, g: Tensor, x: Tensor, approximate: str) -> Tensor:
    square = x * x
    if approximate == "tanh":
        k = 2 * math.sqrt(2 / math.pi)
        z = (0.044715 * square + 1) * x * k
        cdf, tail = z.sigmoid(), (-z).sigmoid()
        inner = (3 * 0.044715 * square + 1) * k
        second = cdf * tail * (2 * inner + x * ((tail - cdf) * inner * inner + 6 * 0.044715 * k * x))
    else:
        second = (-0.5 * square).exp() * (2 - square) * (1 / math.sqrt(2 * math.pi))
    return gg * g * second


_gelu_grad = op_of(
    activation.gelu_grad, batch="elementwise",
    name="GeluBackward", g=lambda gg, x, approximate: _gelu_grad(gg, x, approximate),
    x=_gelu_grad_x,
)  # fmt: skip


@public("nn.functional.gelu", binds=False, out="same")
@op(activation.checked_gelu, batch="elementwise", x=lambda g, x, approximate: _gelu_grad(g, x, approximate))
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """Return `x * Phi(x)`, Phi the cumulative distribution of the normal distribution.

    `approximate` may be "tanh", for `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.

    Example:
        >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016.
    """


def _glu_x(g: Tensor, x: Tensor, dim: int, gate: Any) -> Tensor:
    a, b = x.chunk(2, dim)
    if gate is None:
        gate = b.sigmoid()
    return cat([g * gate, sigmoid_backward(g * a, gate, b)], dim)


glu = op(x=_glu_x, residuals=("gate",))(activation.glu)


@public("nn.functional.logsigmoid", binds=False, out="logsigmoid")
@op(activation.logsigmoid, batch="elementwise", name="LogSigmoid", own_layout=True, x=lambda g, x: g * (-x).sigmoid())
def logsigmoid(x: Any) -> Any:
    """Return `log(sigmoid(x))`, computed without overflow.

    Example:
        >>> torch.nn.functional.logsigmoid(torch.tensor([-100.0, 0.0]))
        tensor([-100.0000,   -0.6931])
    """


def _softplus_grad_x(gg: Tensor, g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = x * beta
    return gg * g * (scaled.sigmoid() * (-scaled).sigmoid()) * (scaled < threshold) * beta  # 0 at the threshold


_softplus_grad = op_of(
    activation.softplus_grad, batch="elementwise", name="SoftplusBackward",
    g=lambda gg, x, beta, threshold: _softplus_grad(gg, x, beta, threshold), x=_softplus_grad_x,
)  # fmt: skip


@public("nn.functional.softplus", binds=False, out="same")
@op(activation.softplus, batch="elementwise", x=lambda g, x, beta, threshold: _softplus_grad(g, x, beta, threshold))
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return `log(1 + exp(beta * x)) / beta`, a smooth relu; x where `beta * x > threshold`.

    Example:
        >>> torch.nn.functional.softplus(torch.tensor([0.0, 100.0]))
        tensor([  0.6931, 100.0000])
    """
