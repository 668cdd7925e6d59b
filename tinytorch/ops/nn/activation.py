"""Ops of neural networks: softmax and activations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import activation
from tinytorch.kernels.checks import check_fits, check_floating, plain, tensor_name
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.kernels.parallel import elementwise
from tinytorch.ops.arguments import check_tensor
from tinytorch.ops.arithmetic import kept, zero_gradient
from tinytorch.ops.join import cat
from tinytorch.ops.register import public

# Softmax ------------------------------------------------------------------------------------------


def _axis(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front; a 0-d tensor has dimension 0 here, as in PyTorch."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def _softmax_grad_out(gg: Tensor, g: Tensor, out: Tensor, dim: int) -> Tensor:
    return gg * (g - (g * out).sum(dim, True)) - g * (gg * out).sum(dim, True)


@op(name="SoftmaxBackwardData", g=lambda gg, out, dim: _softmax_grad(gg, out, dim), out=_softmax_grad_out)
def _softmax_grad(g: Any, out: Any, dim: int) -> Any:
    return activation.softmax_grad(g, out, _axis(dim, out.ndim))


@op(
    name="LogSoftmaxBackwardData",
    g=lambda gg, out, dim: gg - (gg * out.exp()).sum(dim, True),
    out=lambda gg, g, out, dim: -gg * out.exp() * g.sum(dim, True),
)
def _log_softmax_grad(g: Any, out: Any, dim: int) -> Any:
    return activation.log_softmax_grad(g, out, _axis(dim, out.ndim))


def _axis_for_dim(name: str, axis: Any) -> Any:
    if axis is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
    return axis


@op(name="Softmax", x=lambda g, out, dim: _softmax_grad(g, out, dim))
def _softmax(x: Any, dim: int) -> Any:
    if x.dtype.kind not in FLOATS and x.size:
        check_floating("softmax_lastdim_kernel_impl", x)
    return activation.softmax(x, dim if 0 <= dim < x.ndim else _axis(dim, x.ndim))


@op(name="LogSoftmax", x=lambda g, out, dim: _log_softmax_grad(g, out, dim))
def _log_softmax(x: Any, dim: int) -> Any:
    if x.dtype.kind not in FLOATS and x.size:
        check_floating("log_softmax_lastdim_kernel_impl", x)
    return activation.log_softmax(x, dim if 0 <= dim < x.ndim else _axis(dim, x.ndim))


@public(method=True, out="exact")
@public("special.softmax")
def softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """Return `exp(input) / sum(exp(input))` along `dim`: positive numbers that add up to 1.

    Args:
        input: any shape.
        dim: the dimension to sum over.
        dtype: convert to this dtype first (to accept integers, or for more precision).
        axis: NumPy's name of `dim`.

    Raises:
        IndexError: there is no such dimension.
        NotImplementedError: integers; give a floating-point `dtype`.

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

    Args:
        input: any shape.
        dim: the dimension to sum over.
        dtype: convert to this dtype first.
        axis: NumPy's name of `dim`.

    Raises:
        IndexError: there is no such dimension.
        NotImplementedError: integers; give a floating-point `dtype`.

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
    """Return the op of g and x that computes the gradient of a piecewise linear function.

    Args:
        name: the function's name.
        kernel: returns the gradient, given the arrays g and x and the function's other arguments.
    """

    def gradient(g: Any, x: Any, a: Any = None, b: Any = None) -> Any:
        rest = [plain(name, "value", each) for each in (a, b) if each is not None]
        if g.dtype.kind == "V":
            return kernel(activation.widened(g), activation.widened(x), *rest).astype(g.dtype)
        return kernel(g, x, *rest)

    gradient.__name__ = f"{name}_backward"
    made = op(g=lambda gg, x, a, b: made(gg, x, a, b), x=lambda g: zero_gradient(g))(gradient)
    return made


def _outside(g: Any, x: Any, lambd: float) -> Any:
    return activation.keep(g, np.logical_not((x >= -lambd) & (x <= lambd)))


_threshold_grad = _slope_op("threshold", lambda g, x, threshold: activation.keep(g, np.logical_not(x <= threshold)))
_leaky_relu_grad = _slope_op("leaky_relu", activation.leaky_relu_grad)
_rrelu_grad = _slope_op("rrelu_with_noise", lambda g, x, slopes: g * slopes)
_hardtanh_grad = _slope_op(
    "hardtanh", lambda g, x, low, high: activation.keep(g, np.logical_not((x <= low) | (x >= high)))
)
_hardsigmoid_grad = _slope_op("hardsigmoid", lambda g, x: activation.keep(g, (x > -3) & (x < 3)) / 6)
_hardshrink_grad = _slope_op("hardshrink", _outside)
_softshrink_grad = _slope_op("softshrink", _outside)


@op(refuses="threshold_cpu", x=lambda g, x, threshold: _threshold_grad(g, x, threshold))
@elementwise
def threshold(x: Any, threshold: float, value: float) -> Any:
    """Return `x` where it is greater than `threshold`, else `value`.

    Example:
        >>> torch.threshold(torch.tensor([0.5, 1.5]), 1.0, -1.0)
        tensor([-1.0000,  1.5000])
    """
    check_fits(x, threshold, value)
    return activation.choose(x <= threshold, np.full_like(x, value), x)


@op(name="LeakyRelu", x=lambda g, x, negative_slope: _leaky_relu_grad(g, x, negative_slope))
@elementwise
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """Return `x` where it is positive, else `negative_slope * x`."""
    check_floating("leaky_relu_cpu", x)
    if type(negative_slope) is not float:
        negative_slope = plain("leaky_relu", "negative_slope", negative_slope)
    return activation.leaky_relu(x, negative_slope)


@op(name="RreluWithNoise", x=lambda g, x, slopes: _rrelu_grad(g, x, slopes))
@elementwise
def rrelu(x: Any, slopes: Any) -> Any:
    """Return `x` times an array of slopes."""
    return x * slopes


@op(refuses="clamp_scalar_cpu", x=lambda g, x, min_val, max_val: _hardtanh_grad(g, x, min_val, max_val))
@elementwise
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Return `x` bounded to [min_val, max_val]."""
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    check_fits(x, min_val, max_val)
    low, high = x.dtype.type(min_val), x.dtype.type(max_val)
    if x.dtype.kind == "V":  # bfloat16, which NumPy's clip converts to float32
        return np.minimum(np.maximum(x, low), high)
    return np.clip(x, low, high)


@op(x=lambda g, x: _hardsigmoid_grad(g, x))
@elementwise
def hardsigmoid(x: Any) -> Any:
    """Return `clip(x + 3, 0, 6) / 6`."""
    check_floating("hardsigmoid_cpu", x)
    return (np.clip(x + 3, 0, 6) / 6).astype(x.dtype, copy=False)


@op(
    name="HardswishBackward",
    g=lambda gg, x: _hardswish_grad(gg, x),
    x=lambda gg, g, x: kept(gg * g / 3, (x > -3) & (x < 3)),
)
@elementwise
def _hardswish_grad(g: Any, x: Any) -> Any:
    return activation.hardswish_grad(g, x)


@op(x=lambda g, x: _hardswish_grad(g, x))
@elementwise
def hardswish(x: Any) -> Any:
    """Return `x * clip(x + 3, 0, 6) / 6`."""
    check_floating("hardswish_cpu", x)
    return activation.hardswish(x)


@public(binds=False, also="nn.functional.hardshrink", method=True, out="same")
@op(x=lambda g, x, lambd: _hardshrink_grad(g, x, lambd))
@elementwise
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x`, but 0 where it is in [-lambd, lambd].

    Example:
        >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.2, 0.7]))
        tensor([-1.0000,  0.0000,  0.7000])
    """
    check_floating("hardshrink_cpu", x)
    if type(lambd) is not float:
        lambd = plain("hardshrink", "lambd", lambd)
    return activation.keep(x, ~((x >= -lambd) & (x <= lambd)))  # NaN is in no interval


@public("nn.functional.softshrink", binds=False, out="same")
@op(x=lambda g, x, lambd: _softshrink_grad(g, x, lambd))
@elementwise
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x` moved towards 0 by `lambd`, and 0 where it is in [-lambd, lambd].

    Raises:
        RuntimeError: `lambd` is negative.

    Example:
        >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.2, 0.75]))
        tensor([-0.5000,  0.0000,  0.2500])
    """
    check_floating("softshrink_check", x)
    if not lambd >= 0:
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(x.dtype).max:g}] for input dtype {tensor_name(x)}, but found "
            f"{lambd:g}"
        )
    return (x - np.clip(x, -lambd, lambd)).astype(x.dtype, copy=False)


@op(
    refuses="prelu_cpu",
    joint=lambda g, needs, x, weight: _prelu_grad(g, x, weight),
    inputs=("x", "weight"),
    name="PreluKernel",
    broadcasts=True,
)
def _prelu(x: Any, weight: Any) -> Any:
    return activation.where(x > 0, x, x * weight)


def _prelu_grad_g(gg: tuple[Any, Any], x: Tensor, weight: Tensor) -> Tensor:
    of_x, of_weight = gg
    below = None if of_x is None else of_x * weight
    if of_weight is not None:
        below = of_weight * x if below is None else below + of_weight * x
    above = zero_gradient(of_weight) if of_x is None else of_x
    return above.where(x >= 0, below)


def _prelu_below(g: Tensor, gg: Any, x: Tensor) -> Tensor:
    return zero_gradient(g) if gg is None else kept(g * gg, ~(x >= 0))


@op(
    name="PreluKernelBackward",
    outputs=2,
    g=_prelu_grad_g,
    x=lambda gg, g, x: _prelu_below(g, gg[1], x),
    weight=lambda gg, g, x: _prelu_below(g, gg[0], x),
    broadcasts=True,
)
def _prelu_grad(g: Any, x: Any, weight: Any) -> Any:
    """Return the gradients of both inputs of `_prelu`; the weight's is not summed yet."""
    above = x > 0
    return activation.where(above, g, g * weight), activation.keep(g * x, np.logical_not(above))


@public(binds=False, also="nn.functional.prelu", method=True, autocast="low")
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return `input` where it is positive, else `weight * input`.

    Args:
        input: shape (N, C, *), or (N,).
        weight: one number for all, or one for each of the C channels.

    Raises:
        RuntimeError: the number of weights is neither 1 nor C; the dtypes differ.

    Example:
        >>> torch.prelu(torch.tensor([[-1.0, -1.0]]), torch.tensor([0.5, 0.1]))
        tensor([[-0.5000, -0.1000]])
    """
    try:
        differ = input.dtype != weight.dtype
    except AttributeError:
        check_tensor(input, "prelu")
        check_tensor(weight, "prelu", "weight", 2)
        raise
    if differ:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {input.dtype.tensor_name} and {weight.dtype.tensor_name}"
        )
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


@op(
    name="EluBackward",
    g=lambda gg, x, alpha, scale, input_scale: _elu_grad(gg, x, alpha, scale, input_scale),
    x=_elu_grad_x,
)
@elementwise
def _elu_grad(g: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    return activation.elu_grad(g, x, alpha, scale, input_scale)


@op(x=lambda g, x, alpha, scale: _elu_grad(g, x, alpha, scale, 1.0))
@elementwise
def elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    """Return `scale * x` where x is positive, else `scale * alpha * (exp(x) - 1)`."""
    check_floating("elu_cpu", x)
    return activation.elu(x, alpha, scale, 1.0)


@op(x=lambda g, x, alpha: _elu_grad(g, x, float(alpha), 1.0, 1.0 / float(alpha)))
@elementwise
def celu(x: Any, alpha: float = 1.0) -> Any:
    """Return `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    check_floating("elu_cpu", x)
    if type(alpha) is not float:
        alpha = plain("celu", "alpha", alpha)
    return activation.elu(x, alpha, 1.0, 1.0 / alpha)


def _silu_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    return gg * g * (s * (1 - s) * (2 + x * (1 - 2 * s)))


@op(name="SiluBackward", g=lambda gg, x: _silu_grad(gg, x), x=_silu_grad_x)
@elementwise
def _silu_grad(g: Any, x: Any) -> Any:
    return activation.silu_grad(g, x)


@op(x=lambda g, x: _silu_grad(g, x))
@elementwise
def silu(x: Any) -> Any:
    """Return `x * sigmoid(x)`."""
    check_floating("silu_cpu", x)
    return activation.silu(x)


def _mish_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s, t = x.sigmoid(), softplus(x).tanh()
    return gg * g * (s * (1 - t * t) * (2 + x * (1 - s - 2 * s * t)))


@op(name="MishBackward", g=lambda gg, x: _mish_grad(gg, x), x=_mish_grad_x)
@elementwise
def _mish_grad(g: Any, x: Any) -> Any:
    return activation.mish_grad(g, x)


@op(x=lambda g, x: _mish_grad(g, x))
@elementwise
def mish(x: Any) -> Any:
    """Return `x * tanh(softplus(x))`."""
    check_floating("mish_cpu", x)
    return activation.mish(x)


def _gelu_grad_x(gg: Tensor, g: Tensor, x: Tensor, approximate: str) -> Tensor:
    square = x * x
    if approximate == "tanh":
        k = 2 * math.sqrt(2 / math.pi)
        cdf = ((0.044715 * square + 1) * x * k).sigmoid()
        inner = (3 * 0.044715 * square + 1) * k
        second = cdf * (1 - cdf) * (2 * inner + x * ((1 - 2 * cdf) * inner * inner + 6 * 0.044715 * k * x))
    else:
        second = (-0.5 * square).exp() * (2 - square) * (1 / math.sqrt(2 * math.pi))
    return gg * g * second


@op(name="GeluBackward", g=lambda gg, x, approximate: _gelu_grad(gg, x, approximate), x=_gelu_grad_x)
@elementwise
def _gelu_grad(g: Any, x: Any, approximate: str) -> Any:
    return activation.gelu_grad(g, x, approximate)


@public("nn.functional.gelu", binds=False, out="same")
@op(x=lambda g, x, approximate: _gelu_grad(g, x, approximate))
@elementwise
def gelu(x: Any, *, approximate: str = "none") -> Any:
    """Return `x * Phi(x)`, Phi the cumulative distribution of the normal distribution.

    Args:
        x: any shape.
        approximate: "tanh" for `0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`.

    Raises:
        RuntimeError: `approximate` is neither "none" nor "tanh".

    Example:
        >>> torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 2.0]))
        tensor([-0.1587,  0.0000,  1.9545])

    Source:
        Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016.
    """
    check_floating("GeluKernelImpl", x)
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return activation.gelu(x, approximate)


def _glu_x(g: Tensor, x: Tensor, dim: int, gate: Any) -> Tensor:
    a, b = x.chunk(2, dim)
    if gate is None:
        gate = b.sigmoid()
    of_a = g * gate
    return cat([of_a, of_a * (1 - gate) * a], dim)


@op(x=_glu_x, residuals=("gate",))
def glu(x: Any, dim: int) -> Any:
    """Return `a * sigmoid(b)`, where a and b are the halves of `x` along `dim`."""
    a, b = np.split(x, 2, dim)
    gate = activation.sigmoid(b)
    return a * gate, gate


@public("nn.functional.logsigmoid", binds=False, out="logsigmoid")
@op(name="LogSigmoid", x=lambda g, x: g * (-x).sigmoid())
@elementwise
def logsigmoid(x: Any) -> Any:
    """Return `log(sigmoid(x))`, computed without overflow.

    Example:
        >>> torch.nn.functional.logsigmoid(torch.tensor([-100.0, 0.0]))
        tensor([-100.0000,   -0.6931])
    """
    check_floating("log_sigmoid_cpu", x)
    out = activation.log_sigmoid(x)
    return out if out.flags.c_contiguous else out.copy("C")  # in C order, as in PyTorch


def _softplus_grad_x(gg: Tensor, g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = x * beta
    s = scaled.sigmoid()
    return gg * g * (s * (1 - s)) * (scaled < threshold) * beta  # 0 at the threshold


@op(
    name="SoftplusBackward", g=lambda gg, x, beta, threshold: _softplus_grad(gg, x, beta, threshold), x=_softplus_grad_x
)
@elementwise
def _softplus_grad(g: Any, x: Any, beta: float, threshold: float) -> Any:
    if type(beta) is not float or type(threshold) is not float:
        beta, threshold = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    return activation.softplus_grad(g, x, beta, threshold)


@public("nn.functional.softplus", binds=False, out="same")
@op(x=lambda g, x, beta, threshold: _softplus_grad(g, x, beta, threshold))
@elementwise
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return `log(1 + exp(beta * x)) / beta`, a smooth relu; x where `beta * x > threshold`.

    Example:
        >>> torch.nn.functional.softplus(torch.tensor([0.0, 100.0]))
        tensor([  0.6931, 100.0000])
    """
    check_floating("softplus_cpu", x)
    if type(beta) is not float or type(threshold) is not float:
        beta, threshold = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    return activation.softplus(x, beta, threshold)
