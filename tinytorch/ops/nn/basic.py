"""Ops of neural networks: linear, activations, softmax, losses, normalisation.

Where a formula is the gradient of an op that is itself linear (`nll_loss`, `embedding`,
`constant_pad`), the two are each other's gradients, so that derivatives of every order come for
free.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core import dtypes, parallel
from tinytorch.core.dtypes import FLOATS
from tinytorch.core.graph import Within
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import activation, loss
from tinytorch.kernels import layer_norm as layer_norms
from tinytorch.kernels.indexing import add_rows
from tinytorch.kernels.reduce import add_to_rows
from tinytorch.ops.linalg.products import mm_nn, mm_tn
from tinytorch.ops.pointwise import check_fits, kept, plain, zero_gradient
from tinytorch.ops.register import pointwise, public
from tinytorch.ops.shape import cat, check_tensor, suggested_format


def _check_floating(kernel: str, x: Any) -> None:
    """Raise PyTorch's error where its kernel of this name takes floating-point numbers only."""
    if x.dtype.kind not in FLOATS:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{_tensor_name(x)}'")


def _tensor_name(x: Any) -> str:
    return dtypes.from_numpy_dtype(x.dtype).tensor_name


# Linear -------------------------------------------------------------------------------------------


def _flat(x: Tensor) -> Tensor:
    """Return (..., I) as (N, I)."""
    return x if x.ndim == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _linear_x(g: Tensor, weight: Tensor, x_shape: tuple[int, ...]) -> Tensor:
    if weight.ndim == 1:
        return g.unsqueeze(-1) * weight
    out: Tensor = mm_nn(_flat(g), weight)
    return out if len(x_shape) == 2 else out.reshape(x_shape)


def _linear_weight(g: Tensor, x: Tensor, weight_shape: tuple[int, ...]) -> Tensor:
    if len(weight_shape) == 1:
        g = g.unsqueeze(-1)
    # g.T @ x, not (x.T @ g).T: so it comes out in the weight's layout.
    out: Tensor = mm_tn(_flat(g), _flat(x))
    return out if len(weight_shape) == 2 else out.reshape(weight_shape)


def _linear_bias(g: Tensor, bias_shape: tuple[int, ...]) -> Tensor:
    shape = g._array.shape
    if len(shape) > 1 and bias_shape == shape[-1:]:
        return _column_sums(g)
    return g.sum_to_size(bias_shape)


@op(x=lambda g, x_shape: g.expand(x_shape))
def _column_sums(x: Any) -> Any:
    """Return the sums of (..., O) over all dimensions but the last: a product with ones is fastest."""
    wide = activation.widened(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return np.ones(wide.shape[0], wide.dtype, like=wide).dot(wide).astype(x.dtype, copy=False)


@public("nn.functional.linear", out="exact", autocast="op")
@op(name="Mm", overload=("bias", "AddmmBackward0"), x=_linear_x, weight=_linear_weight, bias=_linear_bias)
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias`.

    Args:
        x: shape (*, in_features), with any number of leading dimensions.
        weight: shape (out_features, in_features), or (in_features,).
        bias: shape (out_features,), or what broadcasts to that.

    Returns:
        A tensor of shape (*, out_features); of shape (*) for a weight of one dimension.

    Raises:
        RuntimeError: the shapes do not fit, or the dtypes differ; convert with `.to(dtype)`.

    Example:
        >>> x, weight = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> torch.nn.functional.linear(x, weight, torch.tensor([10.0, 20.0]))
        tensor([[11., 23.]])
    """
    try:
        if (
            x.ndim != 2
            or weight.ndim != 2
            or x.dtype is not weight.dtype
            or x.dtype.kind == "b"
            or x.shape[1] != weight.shape[1]
        ):
            _check_linear(x, weight)
            if x.ndim != 2:  # one large product is faster than many small ones
                flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
                out = linear.op.kernel(flat, weight, bias)
                return out.reshape(x.shape[:-1] + weight.shape[:-1])
    except AttributeError:
        raise _no_tensor("weight", 2, weight) from None
    wide = x.dtype.itemsize >= 4
    if not wide:
        out = np.matmul(activation.widened(x), activation.widened(weight).T)
    elif x.size != 1 != weight.size:
        out = x.dot(weight.T)
    else:  # (`dot` takes a matrix of one zero for a factor, and gives 0 for infinities)
        out = np.matmul(x, weight.T)
    if bias is not None:
        _check_bias(bias, x, weight)
        add_to_rows(out, bias)
    return out if wide else out.astype(x.dtype, copy=False)


linear.op.node_class._order = (0, 1)
linear.op.overload[1]._order = (2, 0, 1)  # `addmm(bias, input, weight.t())`
linear.op.node_class._within = {1: "TBackward0"}


def _named_by_last_step(product: Any, last: str) -> Any:
    """Return a class of nodes that is named as PyTorch's last step, and shows the product before it."""
    before = property(lambda step: product.next_functions.fget(step.node))
    inner = type(product.__name__, (Within,), {"__slots__": (), "next_functions": before})
    shown = property(lambda node: ((inner(node, 0), 0),))
    return type(last, (product,), {"__slots__": (), "next_functions": shown})


def _show_last_steps(product: Any, after_vector: str, after_stack: str) -> None:
    """Let nodes of an input that is no matrix be shown as PyTorch's: a product of matrices, and a view of that."""
    vector, stack = [_named_by_last_step(product, last) for last in (after_vector, after_stack)]

    def shown(node: Any) -> Any:
        if type(node) is product and len(node.shape) != 2:
            node.__class__ = stack if node.shape[:-1] else vector
        return node

    product.shown = shown


_show_last_steps(linear.op.node_class, "SqueezeBackward4", "UnsafeViewBackward0")
_show_last_steps(linear.op.overload[1], "ViewBackward0", "ViewBackward0")


def _no_tensor(argument: str, position: int, value: Any) -> TypeError:
    return TypeError(
        f"linear(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def _check_linear(x: Any, weight: Any) -> None:
    if x.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if x.dtype != weight.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {_tensor_name(x)} and {_tensor_name(weight)}"
        )
    if x.dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if x.shape[-1] != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(f"size mismatch, got input ({x.shape[-1]}), vec ({weight.shape[0]})")
        rows = math.prod(x.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {weight.shape[1]}x{weight.shape[0]})"
        )


def _check_bias(bias: Any, x: Any, weight: Any) -> None:
    if weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    try:
        differ = bias.dtype != x.dtype
    except AttributeError:
        raise _no_tensor("bias", 3, bias) from None
    if differ:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {_tensor_name(bias)} and {_tensor_name(weight)}"
        )
    if bias.shape != weight.shape[:1]:
        features = weight.shape[0]
        if bias.ndim and bias.shape[-1] not in (1, features):
            raise RuntimeError(
                f"The expanded size of the tensor ({features}) must match the existing size "
                f"({bias.shape[-1]}) at "
                f"non-singleton dimension 1.  Target sizes: [{math.prod(x.shape[:-1])}, "
                f"{features}].  "
                f"Tensor sizes: {list(bias.shape)}"
            )


# Softmax ------------------------------------------------------------------------------------------


def _axis(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front; a 0-d tensor has dimension 0 here, as in PyTorch."""
    count = max(ndim, 1)
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    return dim % count


def _softmax_x(g: Tensor, out: Tensor, dim: int) -> Tensor:
    gy = g * out
    return gy - out * gy.sum(dim, True)


def _axis_for_dim(name: str, axis: Any) -> Any:
    if axis is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "dim"')
    return axis


@op(name="Softmax", x=_softmax_x)
def _softmax(x: Any, dim: int) -> Any:
    if x.dtype.kind not in FLOATS:
        _check_floating("softmax_lastdim_kernel_impl", x)
    return activation.softmax(x, dim if 0 <= dim < x.ndim else _axis(dim, x.ndim))


@op(name="LogSoftmax", x=lambda g, out, dim: g - out.exp() * g.sum(dim, True))
def _log_softmax(x: Any, dim: int) -> Any:
    if x.dtype.kind not in FLOATS:
        _check_floating("log_softmax_lastdim_kernel_impl", x)
    return activation.log_softmax(x, dim if 0 <= dim < x.ndim else _axis(dim, x.ndim))


@public(method=True, out="exact")
@public("special.softmax")
def softmax(input: Tensor, dim: Any = None, dtype: Any = None, *, axis: Any = None) -> Tensor:
    """Return `exp(input) / sum(exp(input))` along `dim`: positive numbers that add up to 1.

    Args:
        input: any shape.
        dim: the dimension to sum over.
        dtype: convert to this dtype first (so that integers are understood, or less is lost).
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
    out: Tensor = _softmax(input if dtype is None else input.to(dtype), dim)
    return out


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
    out: Tensor = _log_softmax(input if dtype is None else input.to(dtype), dim)
    return out


# Activations of straight lines --------------------------------------------------------------------
# As in PyTorch, the gradient of such a function is an op of the input too, though its derivative by
# that is 0: so that second derivatives are zeros, and no error.


def _slope_op(name: str, kernel: Any) -> Any:
    """Return the op of g and x that is the gradient of a function with a slope constant in pieces.

    Args:
        name: the function's.
        kernel: from the arrays g and x, and the function's other arguments, its gradient.
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


@op(x=lambda g, x, threshold: _threshold_grad(g, x, threshold))
def threshold(x: Any, threshold: float, value: float) -> Any:
    """Return `x` where it is greater than `threshold`, else `value`.

    Example:
        >>> torch.threshold(torch.tensor([0.5, 1.5]), 1.0, -1.0)
        tensor([-1.0000,  1.5000])
    """
    check_fits(x, threshold, value)
    return activation.choose(x <= threshold, np.full_like(x, value), x)


@op(name="LeakyRelu", x=lambda g, x, negative_slope: _leaky_relu_grad(g, x, negative_slope))
def leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    """Return `x` where it is positive, else `negative_slope * x`."""
    _check_floating("leaky_relu_cpu", x)
    if type(negative_slope) is not float:
        negative_slope = plain("leaky_relu", "negative_slope", negative_slope)
    return activation.leaky_relu(x, negative_slope)


@op(name="RreluWithNoise", x=lambda g, x, slopes: _rrelu_grad(g, x, slopes))
def rrelu(x: Any, slopes: Any) -> Any:
    """Return `x` times an array of slopes."""
    return x * slopes


@op(x=lambda g, x, min_val, max_val: _hardtanh_grad(g, x, min_val, max_val))
def hardtanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Return `x` bounded to [min_val, max_val]."""
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    check_fits(x, min_val, max_val)
    low, high = x.dtype.type(min_val), x.dtype.type(max_val)
    if x.dtype.kind == "V":  # (which NumPy's clip makes float32 of)
        return np.minimum(np.maximum(x, low), high)
    return np.clip(x, low, high)


@op(x=lambda g, x: _hardsigmoid_grad(g, x))
def hardsigmoid(x: Any) -> Any:
    """Return `clip(x + 3, 0, 6) / 6`."""
    _check_floating("hardsigmoid_cpu", x)
    return (np.clip(x + 3, 0, 6) / 6).astype(x.dtype, copy=False)


@op(
    name="HardswishBackward",
    g=lambda gg, x: _hardswish_grad(gg, x),
    x=lambda gg, g, x: kept(gg * g / 3, (x > -3) & (x < 3)),
)
def _hardswish_grad(g: Any, x: Any) -> Any:
    return activation.hardswish_grad(g, x)


@op(x=lambda g, x: _hardswish_grad(g, x))
def hardswish(x: Any) -> Any:
    """Return `x * clip(x + 3, 0, 6) / 6`."""
    _check_floating("hardswish_cpu", x)
    return activation.hardswish(x)


@public(also="nn.functional.hardshrink", method=True, out="same")
@op(x=lambda g, x, lambd: _hardshrink_grad(g, x, lambd))
def hardshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x`, but 0 where it is in [-lambd, lambd].

    Example:
        >>> torch.nn.functional.hardshrink(torch.tensor([-1.0, 0.2, 0.7]))
        tensor([-1.0000,  0.0000,  0.7000])
    """
    _check_floating("hardshrink_cpu", x)
    if type(lambd) is not float:
        lambd = plain("hardshrink", "lambd", lambd)
    return activation.keep(x, ~((x >= -lambd) & (x <= lambd)))  # NaN is in no interval


@public("nn.functional.softshrink", out="same")
@op(x=lambda g, x, lambd: _softshrink_grad(g, x, lambd))
def softshrink(x: Any, lambd: float = 0.5) -> Any:
    """Return `x` brought nearer to 0 by `lambd`, 0 where it is in [-lambd, lambd].

    Raises:
        RuntimeError: `lambd` is negative.

    Example:
        >>> torch.nn.functional.softshrink(torch.tensor([-1.0, 0.2, 0.75]))
        tensor([-0.5000,  0.0000,  0.2500])
    """
    _check_floating("softshrink_check", x)
    if not lambd >= 0:
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(x.dtype).max:g}] for input dtype "
            f"{_tensor_name(x)}, "
            f"but found {lambd:g}"
        )
    return (x - np.clip(x, -lambd, lambd)).astype(x.dtype, copy=False)


@op(
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
    """Return the gradients of both inputs of `_prelu`, the weight's before it is summed."""
    above = x > 0
    return activation.where(above, g, g * weight), activation.keep(g * x, np.logical_not(above))


@public(also="nn.functional.prelu", method=True, autocast="low")
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
    out: Tensor = _prelu(input, weight if [*weight.shape] == shape else weight.reshape(shape))
    return out


# Smooth activations -------------------------------------------------------------------------------


def _elu_grad_x(gg: Tensor, g: Tensor, x: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    return _elu_grad(gg * g * input_scale, x, alpha, scale, input_scale) * (x < 0)  # 0 at the kink


@op(
    name="EluBackward",
    g=lambda gg, x, alpha, scale, input_scale: _elu_grad(gg, x, alpha, scale, input_scale),
    x=_elu_grad_x,
)
def _elu_grad(g: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    return activation.elu_grad(g, x, alpha, scale, input_scale)


@op(x=lambda g, x, alpha, scale: _elu_grad(g, x, alpha, scale, 1.0))
def elu(x: Any, alpha: float = 1.0, scale: float = 1.0) -> Any:
    """Return `scale * x` where x is positive, else `scale * alpha * (exp(x) - 1)`."""
    _check_floating("elu_cpu", x)
    return activation.elu(x, alpha, scale, 1.0)


@op(x=lambda g, x, alpha: _elu_grad(g, x, float(alpha), 1.0, 1.0 / float(alpha)))
def celu(x: Any, alpha: float = 1.0) -> Any:
    """Return `x` where it is positive, else `alpha * (exp(x / alpha) - 1)`."""
    _check_floating("elu_cpu", x)
    if type(alpha) is not float:
        alpha = plain("celu", "alpha", alpha)
    return activation.elu(x, alpha, 1.0, 1.0 / alpha)


def _silu_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s = x.sigmoid()
    return gg * g * (s * (1 - s) * (2 + x * (1 - 2 * s)))


@op(name="SiluBackward", g=lambda gg, x: _silu_grad(gg, x), x=_silu_grad_x)
def _silu_grad(g: Any, x: Any) -> Any:
    return activation.silu_grad(g, x)


@op(x=lambda g, x: _silu_grad(g, x))
def silu(x: Any) -> Any:
    """Return `x * sigmoid(x)`."""
    _check_floating("silu_cpu", x)
    return activation.silu(x)


def _mish_grad_x(gg: Tensor, g: Tensor, x: Tensor) -> Tensor:
    s, t = x.sigmoid(), softplus(x).tanh()
    return gg * g * (s * (1 - t * t) * (2 + x * (1 - s - 2 * s * t)))


@op(name="MishBackward", g=lambda gg, x: _mish_grad(gg, x), x=_mish_grad_x)
def _mish_grad(g: Any, x: Any) -> Any:
    return activation.mish_grad(g, x)


@op(x=lambda g, x: _mish_grad(g, x))
def mish(x: Any) -> Any:
    """Return `x * tanh(softplus(x))`."""
    _check_floating("mish_cpu", x)
    return activation.mish(x)


def _gelu_x(g: Tensor, x: Tensor, approximate: str, cdf: Any) -> Tensor:
    if cdf is not None:
        grad: Tensor = wrap(activation.gelu_grad(g._array, x._array, cdf._array, approximate))
        return grad
    if approximate == "tanh":
        k = math.sqrt(2 / math.pi)
        square = x * x
        t = ((0.044715 * square + 1) * x * k).tanh()
        slope = 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (k + 3 * 0.044715 * k * square)
        return g * slope
    cdf = 0.5 * (1 + (x * math.sqrt(0.5)).erf())
    density = (-0.5 * (x * x)).exp() * (1 / math.sqrt(2 * math.pi))
    return g * (cdf + x * density)


@public("nn.functional.gelu", out="same")
@op(x=_gelu_x, residuals=("cdf",))
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
    _check_floating("GeluKernelImpl", x)
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return activation.gelu(x, approximate)


def _glu_x(g: Tensor, x: Tensor, dim: int, gate: Any) -> Tensor:
    a, b = x.chunk(2, dim)
    if gate is None:
        gate = b.sigmoid()
    of_a = g * gate
    out: Tensor = cat([of_a, of_a * (1 - gate) * a], dim)
    return out


@op(x=_glu_x, residuals=("gate",))
def glu(x: Any, dim: int) -> Any:
    """Return `a * sigmoid(b)` of the halves a and b of `x` along `dim`."""
    a, b = np.split(x, 2, dim)
    gate = activation.sigmoid(b)
    return a * gate, gate


@public("nn.functional.logsigmoid", out="logsigmoid")
@op(name="LogSigmoid", x=lambda g, x: g * (-x).sigmoid())
def logsigmoid(x: Any) -> Any:
    """Return `log(sigmoid(x))`, computed so that nothing overflows.

    Example:
        >>> torch.nn.functional.logsigmoid(torch.tensor([-100.0, 0.0]))
        tensor([-100.0000,   -0.6931])
    """
    _check_floating("log_sigmoid_cpu", x)
    out = activation.log_sigmoid(x)
    return out if out.flags.c_contiguous else out.copy("C")  # in rows, as PyTorch's


def _softplus_grad_x(gg: Tensor, g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    scaled = x * beta
    s = scaled.sigmoid()
    return gg * g * (s * (1 - s)) * (scaled < threshold) * beta  # 0 at the threshold


@op(
    name="SoftplusBackward", g=lambda gg, x, beta, threshold: _softplus_grad(gg, x, beta, threshold), x=_softplus_grad_x
)
def _softplus_grad(g: Any, x: Any, beta: float, threshold: float) -> Any:
    if type(beta) is not float or type(threshold) is not float:
        beta, threshold = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    return activation.softplus_grad(g, x, beta, threshold)


@public("nn.functional.softplus", out="same")
@op(x=lambda g, x, beta, threshold: _softplus_grad(g, x, beta, threshold))
def softplus(x: Any, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return `log(1 + exp(beta * x)) / beta`, a smooth relu; x where `beta * x > threshold`.

    Example:
        >>> torch.nn.functional.softplus(torch.tensor([0.0, 100.0]))
        tensor([  0.6931, 100.0000])
    """
    _check_floating("softplus_cpu", x)
    if type(beta) is not float or type(threshold) is not float:
        beta, threshold = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    return activation.softplus(x, beta, threshold)


# Losses of element by element ---------------------------------------------------------------------


def _share(g: Tensor, reduction: str, count: int) -> Tensor:
    """Return the gradient of each element's loss: its part of the mean, or `g` itself."""
    return g / count if reduction == "mean" else g


def _of_difference(name: str, kernel_name: str, values: Any, slope: Any) -> Any:
    """Return the op `loss(x, y, reduction, parameter)` of a loss that depends on x - y alone.

    Args:
        name: the node's.
        kernel_name: PyTorch's name of the kernel, for the error.
        values: the losses, given the array x - y and the parameter.
        slope: their derivative, given the tensor x - y and the parameter.
    """

    def rule(g: Tensor, needs: tuple[bool, ...], x: Tensor, y: Tensor, reduction: str, parameter: float) -> Any:
        grad = slope(x - y, parameter) * _share(g, reduction, x._array.size)
        return grad if needs[0] else None, -grad if needs[1] else None

    def kernel(x: Any, y: Any, reduction: str, parameter: float = 1.0) -> Any:
        _check_floating(kernel_name, x)
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


def _bce_slope_x(g: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return g * (x * x - 2 * x * y + y) / ((x + 1e-12) ** 2 * (1 - x + 1e-12) ** 2)


#: The derivative of the binary cross entropy. Near 0 and 1, its own is another than that of its kernel: PyTorch's.
_bce_slope = pointwise(
    "bce_slope",
    lambda x, y: (x - y) / np.maximum((1 - x) * x, 1e-12),
    x=_bce_slope_x,
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
    _check_floating("log_sigmoid_cpu", x)
    scores = activation.widened(x)
    log_sigmoid = activation.log_sigmoid(scores)
    if pos_weight is not None:
        log_sigmoid = log_sigmoid * ((pos_weight - 1) * y + 1)
    losses = (1 - y) * scores - log_sigmoid
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


def _soft_margin_x(g: Tensor, x: Tensor, y: Tensor, reduction: str) -> Tensor:
    return _share(g, reduction, x._array.size) * (-y * _soft_margin_slope(-y * x))


@op(x=_soft_margin_x, y=None)
def soft_margin_loss(x: Any, y: Any, reduction: str) -> Any:
    """Return the mean, sum or array of `log(1 + exp(-y * x))`; y broadcasts to the shape of x."""
    wide = activation.widened(x)
    losses = np.log1p(np.exp(-activation.widened(y) * wide)).astype(wide.dtype, copy=False)
    return loss.reduced(losses, reduction).astype(x.dtype, copy=False)


# Losses over classes ------------------------------------------------------------------------------

_NLL_NODES = ("NllLoss", "NllLoss2D")


def _nll(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str) -> Any:
    _check_floating("nll_loss_out_frame", x)
    return loss.nll(x, target, weight, ignore_index, reduction)


def _nll_x(g: Tensor, x: Tensor, target: Tensor, weight: Any, ignore_index: int, reduction: str) -> Tensor:
    grad: Tensor = _nll_loss_grad(g, x, target, weight, ignore_index, reduction)
    return grad


# Two ops of one kernel: PyTorch's node has another name for scores of more than one place, (N, C, d1, ...).
_nll_losses = [op(name=name, x=_nll_x, target=None, weight=None)(_nll) for name in _NLL_NODES]


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str) -> Tensor:
    """Return the mean, sum or array of minus the scores x (N, C, ...) of the labels (N, ...)."""
    out: Tensor = _nll_losses[x._array.ndim > 2](x, target, weight, ignore_index, reduction)
    return out


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
    label_smoothing: float,
    slope: Any,
) -> Tensor:
    dim = 0 if x._array.ndim == 1 else 1
    if reduction == "none":
        g = g.unsqueeze(dim)
    if slope is not None:
        return slope * g
    # The same in Tensor code: a sample's loss is -sum_c q_c log p_c with a constant q.
    targets, total = loss.soft_targets(
        loss.rows(x._array), target._array, None if weight is None else weight._array, ignore_index, label_smoothing
    )
    if reduction == "mean":
        g = g / (total or 1)  # where all are ignored, q is 0
    q: Tensor = wrap(loss.by_class(targets, x._array.shape))
    return (softmax(x, dim) * q.sum(dim, True) - q) * g


def _cross_entropy(x: Any, target: Any, weight: Any, ignore_index: int, reduction: str, label_smoothing: float) -> Any:
    _check_floating("log_softmax_lastdim_kernel_impl", x)
    return loss.cross_entropy(x, target, weight, ignore_index, reduction, label_smoothing)


#: `nll_loss(log_softmax(x))` of scores (N, C) and labels (N,), in one op; of scores (N, C, d1, ...); and with smoothing
#: of labels, where PyTorch adds two terms.
cross_entropy, cross_entropy_of_places, smoothed_cross_entropy = [
    op(name=name, x=_cross_entropy_x, target=None, weight=None, residuals=("slope",))(_cross_entropy)
    for name in (*_NLL_NODES, "Add")
]
for _each in (cross_entropy, cross_entropy_of_places):
    _each.op.node_class._within = {0: "LogSoftmaxBackward0"}


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
    """Return the mean, sum or array of `sum(max(0, 1 - x[label] + x[other])) / C` over all such pairs."""
    losses, _ = loss.multilabel_margin(_rows(x), _rows(target))
    return loss.reduced(losses if x.ndim == 2 else losses.reshape(()), reduction)


# Normalisation, embedding, padding ----------------------------------------------------------------


def _layer_norm_rule(
    g: Tensor,
    needs: tuple[bool, ...],
    x: Tensor,
    normalized_shape: tuple[int, ...],
    weight: Any,
    eps: float,
    mean: Any,
    scale: Any,
) -> Any:
    if mean is not None:
        weights = None if weight is None else weight._array
        grads = layer_norms.backward(
            g._array, needs, x._array, len(normalized_shape), weights, mean._array, scale._array
        )
        return tuple([None if each is None else wrap(each) for each in grads])
    # Under create_graph: differentiable, from the input; the gradients are cast on their way.
    if x._array.dtype.itemsize == 2:
        g, x = g.float(), x.float()
    dims = tuple(range(x.ndim - len(normalized_shape), x.ndim))
    leading = tuple(range(x.ndim - len(normalized_shape)))
    mean = x.mean(dims, keepdim=True)
    scale = ((x - mean) ** 2).mean(dims, keepdim=True).add(eps).rsqrt()
    normal = (x - mean) * scale
    grad = grad_weight = grad_bias = None
    if needs[0]:
        slope = g if weight is None else g * weight
        grad = (slope - slope.mean(dims, keepdim=True) - normal * (slope * normal).mean(dims, keepdim=True)) * scale
    if needs[1]:
        grad_weight = (g * normal).sum(leading) if leading else g * normal
    if needs[2]:
        grad_bias = g.sum(leading) if leading else g
    return grad, grad_weight, grad_bias


@op(joint=_layer_norm_rule, inputs=("x", "weight", "bias"), residuals=("mean", "scale"), name="NativeLayerNorm")
def layer_norm(x: Any, normalized_shape: tuple[int, ...], weight: Any, bias: Any, eps: float) -> Any:
    """Return `(x - mean) / sqrt(variance + eps) * weight + bias` over the last dimensions."""
    _check_floating("LayerNormKernelImpl", x)
    return layer_norms.forward(x, len(normalized_shape), weight, bias, eps)


@op(
    weight=lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq: _embedding_grad(
        g, weight_shape[0], indices, padding_idx, scale_grad_by_freq
    ),
    indices=None,
)
def embedding(weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False) -> Any:
    """Return the rows of `weight` at `indices`; row `padding_idx` gets no gradient."""
    if indices.size and (np.min(indices) < 0 or np.max(indices) >= weight.shape[0]):
        raise IndexError("index out of range in self")
    return weight[indices]


@op(
    name="EmbeddingDenseBackward",
    g=lambda g, indices, padding_idx, scale_grad_by_freq: _embedding_gather(
        g, indices, padding_idx, scale_grad_by_freq
    ),
    indices=None,
)
def _embedding_grad(g: Any, count: int, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    width = g.shape[-1]
    out, rows = np.zeros_like(g, shape=(count, width)), g.reshape(-1, width)
    flat = indices.reshape(-1)
    some = max(parallel.BLOCK // max(width, 1), 1)  # rows at a time: each number needs its place
    for begin in range(0, flat.size, some):
        add_rows(out, 0, flat[begin : begin + some], rows[begin : begin + some])
    if scale_grad_by_freq:
        out /= np.maximum(np.bincount(flat, minlength=count), 1)[:, None]
    if padding_idx >= 0:
        out[padding_idx] = 0
    return out


def _embedding_gather(g: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Return the gradient of `_embedding_grad`: rows of `g`, as often as it counted them."""
    rows = embedding(g, indices, padding_idx, scale_grad_by_freq)
    positions = indices._array
    factor = (positions != padding_idx).astype(rows._array.dtype)
    if scale_grad_by_freq and positions.size:
        factor /= np.bincount(positions.reshape(-1))[positions]
    return rows * wrap(factor[..., None])


@op(x=lambda g, pad: constant_pad(g, tuple([-width for width in pad]), 0), name="ConstantPadNd")
def constant_pad(x: Any, pad: tuple[int, ...], value: Any = 0) -> Any:
    """Return `x` with a border of `value`.

    `pad` holds (before, after) of the last dimension, then of the one before it, and so on.
    Negative widths take away, so that the gradient is the same op.
    """
    widths = [(0, 0)] * (x.ndim - len(pad) // 2) + [(pad[k], pad[k + 1]) for k in range(len(pad) - 2, -1, -2)]
    for length, (before, after) in zip(x.shape, widths, strict=True):
        if length + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError("narrow(): length must be non-negative.")
    shape = tuple([length + before + after for length, (before, after) in zip(x.shape, widths, strict=True)])
    check_fits(x, value)
    laid_out = x.flags.c_contiguous or suggested_format(x) == "torch.contiguous_format"
    out = np.full_like(x, value, order="C" if laid_out else "K", shape=shape)
    inner = tuple([slice(max(before, 0), n - max(after, 0)) for n, (before, after) in zip(shape, widths, strict=True)])
    part = tuple(
        [slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, widths, strict=True)]
    )
    out[inner] = x[part]
    return out
