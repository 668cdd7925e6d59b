"""Activation functions on arrays, and selection by a mask."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from . import elementary, special
from .checks import check_fits, check_floating, in_single, plain, refused, tensor_name
from .dtypes import DIFFERENTIABLE, FLOATS, number
from .native import twin
from .parallel import blockwise, elementwise, takes_out, threaded
from .reduce import axis_of, in_rows, total

#: Where a result of sigmoid, tanh or softmax is above this, slopes are computed without 1 minus it, which loses digits.
FLAT = 1 - 2**-9

# NumPy's product of bfloat16 (dtype.kind "V") and a Python number is float32: kernels that scale convert explicitly.

Array = Any
F = TypeVar("F", bound=Callable[..., Any])


def in_epilogue(form: Callable[..., tuple[Any, ...]]) -> Callable[[F], F]:
    """Declare an activation function as one that convolutions and products can apply to their sums (`channels_last`).

    Args:
        form: takes the function's arguments after the first, and returns the arguments of the epilogue: its name, and
            the bounds of "clamp".
    """

    def declare(function: F) -> F:
        function.epilogue = form  # type: ignore[attr-defined]
        return function

    return declare


def widened(x: Array) -> Array:
    """Return 16-bit floats as float32, in which PyTorch computes too; other dtypes unchanged."""
    kind = x.dtype
    return x.astype(np.float32) if kind.itemsize == 2 and kind.kind not in "iu" else x


# Selecting ----------------------------------------------------------------------------------------
# `np.where` branches on every element: for a mask of random signs, with its mispredicted branches, it takes
# five to fifteen times as long as selection by bits. (Multiplication by the mask is as fast, but turns negative
# numbers into -0.0 and infinities into NaN.)


def _bits(mask: Array, dtype: Any) -> Array:
    """Return integers of the width of `dtype` with all bits set where `mask` holds, and none elsewhere."""
    ones = mask.view(np.int8)
    return np.negative(ones).astype(f"i{dtype.itemsize}")


def keep(x: Array, mask: Array) -> Array:
    """Return `np.where(mask, x, 0)`; `mask` has the shape of `x`."""
    bits = _bits(mask, x.dtype)
    bits &= x.view(bits.dtype)
    return bits.view(x.dtype)


def choose(mask: Array, x: Array, y: Array) -> Array:
    """Return `np.where(mask, x, y)` of arrays of the same shape and dtype; `x` may be 0-d."""
    bits = _bits(mask, x.dtype)
    other = y.view(bits.dtype)
    bits &= x.view(bits.dtype) ^ other
    bits ^= other
    return bits.view(x.dtype)


def where(condition: Array, x: Any, y: Any) -> Array:
    """Return `np.where(condition, x, y)` of operands that broadcast."""
    if (
        condition.size >= _MANY
        and isinstance(x, np.ndarray)
        and isinstance(y, np.ndarray)
        and x.dtype is y.dtype
        and x.itemsize <= 8  # there are integers of that width
        and x.shape == y.shape == condition.shape
        and condition.dtype.kind == "b"
    ):
        return blockwise(choose, condition, x, y)
    return np.where(condition, x, y)


def fill(x: Array, mask: Array, value: Any) -> None:
    """Write a number (which fits) into `x` where `mask`, which broadcasts with it, holds."""
    many, kind = x.size >= _MANY, x.dtype.kind
    if type(x) is np.ndarray and x.flags.c_contiguous and (many or mask.shape == x.shape):
        if not many and type(value) is not np.ndarray:
            np.putmask(x, mask, value)
            return
        if many and kind in "fi":
            blockwise(choose, np.ascontiguousarray(np.broadcast_to(mask, x.shape)), np.array(value, x.dtype), x, out=x)
            return
    np.copyto(x, value, where=mask, casting="unsafe")


_MANY = 1 << 12  # below this size `np.where` is faster than the passes of `choose`

# Piecewise linear functions -----------------------------------------------------------------------


_largest: Any = np.maximum.reduce  # (NumPy's stubs know `keepdims` only as a constant)


@twin
@takes_out
def relu(x: Array, out: Array | None = None) -> Array:
    """Return max(x, 0)."""
    # NumPy compares with an array two to three times as fast as with a number.
    zeros = np.zeros(x.shape if x.flags.c_contiguous else x.shape[-1:], x.dtype, like=x)
    return np.maximum(x, zeros, out=out)


@twin
@threaded
def relu_grad(g: Array, y: Array) -> Array:
    """Return g where y, the result of `relu`, is not 0, else 0."""
    return keep(g, y != 0)


@twin
@threaded
@in_single
def leaky_relu(x: Array, slope: float) -> Array:
    """Return x where it is positive, slope * x elsewhere."""
    check_floating("leaky_relu_cpu", x)
    slope = plain("leaky_relu", "negative_slope", slope)
    low = x * slope
    if 0 < slope <= 1:
        return np.maximum(x, low)
    return choose(x > 0, x, low)


@twin
@threaded
def leaky_relu_grad(g: Array, x: Array, slope: float) -> Array:
    """Return g times the derivative of `leaky_relu`."""
    return choose(x > 0, g, g * slope)


@twin
@threaded
@in_single
def elu(x: Array, alpha: float, scale: float, input_scale: float = 1.0) -> Array:
    """Return scale * x where x > 0, elsewhere scale * alpha * (exp(input_scale * x) - 1)."""
    check_floating("elu_cpu", x)
    low = np.expm1(np.minimum(x, 0) * input_scale)  # no overflow where exp is not needed
    return choose(x > 0, x * scale, low * (alpha * scale))


@twin
@threaded
@in_single
def elu_grad(g: Array, x: Array, alpha: float, scale: float, input_scale: float) -> Array:
    """Return g times the derivative of `elu`."""
    low = np.exp(np.minimum(x, 0) * input_scale) * (alpha * scale * input_scale)
    return choose(x <= 0, g * low, g * scale)


@elementwise
def celu(x: Array, alpha: float) -> Array:
    """Return x where it is positive, elsewhere alpha * (exp(x / alpha) - 1)."""
    check_floating("elu_cpu", x)
    if type(alpha) is not float:
        alpha = plain("celu", "alpha", alpha)
    return elu(x, alpha, 1.0, 1.0 / alpha)


@elementwise
def threshold(x: Array, threshold: float, value: float) -> Array:
    """Return x where it is greater than the threshold, else the value."""
    if x.dtype == bool:
        raise refused("threshold_cpu", x)
    check_fits(x, threshold, value)
    if x.dtype.kind in "iu":
        threshold = int(threshold)
    return choose(x <= threshold, np.full_like(x, value), x)


def threshold_grad(g: Array, x: Array, threshold: float) -> Array:
    """Return g times the derivative of `threshold`."""
    return keep(g, np.logical_not(x <= threshold))


@elementwise
@in_epilogue(lambda min_val=-1.0, max_val=1.0: ("clamp", float(min_val), float(max_val)))
def hardtanh(x: Array, min_val: float = -1.0, max_val: float = 1.0) -> Array:
    """Return x bounded to [min_val, max_val]."""
    if x.dtype.kind == "b":
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if x.dtype == np.uint8 and (min_val < 0 or max_val < 0):
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    check_fits(x, min_val, max_val)
    low, high = x.dtype.type(min_val), x.dtype.type(max_val)
    if x.dtype.kind == "V":  # bfloat16, which NumPy's clip converts to float32
        return np.minimum(np.maximum(x, low), high)
    return np.clip(x, low, high)


def hardtanh_grad(g: Array, x: Array, low: float, high: float) -> Array:
    """Return g times the derivative of `hardtanh`."""
    return keep(g, np.logical_not((x <= low) | (x >= high)))


@elementwise
@in_epilogue(lambda: ("hardsigmoid",))
def hardsigmoid(x: Array) -> Array:
    """Return clip(x + 3, 0, 6) / 6."""
    check_floating("hardsigmoid_cpu", x)
    return (np.clip(widened(x) + 3, 0, 6) / 6).astype(x.dtype, copy=False)


def hardsigmoid_grad(g: Array, x: Array) -> Array:
    """Return g times the derivative of `hardsigmoid`."""
    return keep(g, (x > -3) & (x < 3)) / 6


@elementwise
def hardshrink(x: Array, lambd: float) -> Array:
    """Return x, but 0 where it is in [-lambd, lambd]."""
    check_floating("hardshrink_cpu", x)
    if type(lambd) is not float:
        lambd = plain("hardshrink", "lambd", lambd)
        if isinstance(lambd, complex):
            raise RuntimeError("value cannot be converted to type float without overflow")
    if x.dtype.itemsize == 2:  # (PyTorch compares with the bound in the dtype of `x`)
        lambd = float(np.asarray(lambd).astype(x.dtype))
    return outside(x, x, lambd)


@elementwise
def softshrink(x: Array, lambd: float) -> Array:
    """Return x moved towards 0 by lambd, and 0 where it is in [-lambd, lambd]."""
    check_floating("softshrink_check", x)
    if not lambd >= 0:
        raise RuntimeError(
            f"lambda must be in range [0, {np.finfo(x.dtype).max:g}] for input dtype {tensor_name(x)}, but found "
            f"{lambd:g}"
        )
    if x.itemsize == 2:  # the limits must not be rounded to 16 bits
        wide = x.astype(np.float32)
        return (wide - np.clip(wide, -lambd, lambd)).astype(x.dtype)
    return x - np.clip(x, -lambd, lambd)


def outside(g: Array, x: Array, lambd: float) -> Array:
    """Return g where x is not in [-lambd, lambd], which has no NaN, else 0."""
    return keep(g, np.logical_not((x >= -lambd) & (x <= lambd)))


@elementwise
def rrelu(x: Array, slopes: Array) -> Array:
    """Return x times an array of slopes, in C order, as in PyTorch."""
    return in_rows(x * slopes)


def rrelu_grad(g: Array, x: Array, slopes: Array) -> Array:
    """Return g times the derivative of `rrelu`."""
    return g * slopes


def piecewise_grad(kernel: Callable[..., Array], name: str, g: Array, x: Array, a: Any = None, b: Any = None) -> Array:
    """Return the gradient of a piecewise linear function.

    Args:
        kernel: returns it, given the arrays g and x, which are not bfloat16, and the function's other arguments.
        name: the function's name.
        a, b: the other arguments; None where there are fewer.
    """
    rest = [plain(name, "value", each) for each in (a, b) if each is not None]
    if g.dtype.kind == "V":
        return kernel(widened(g), widened(x), *rest).astype(g.dtype)
    return kernel(g, x, *rest)


def prelu(x: Array, weight: Array) -> Array:
    """Return x where it is positive, elsewhere weight * x."""
    return where(x > 0, x, x * weight)


def prelu_grad(g: Array, x: Array, weight: Array) -> tuple[Array, Array]:
    """Return the gradients of both inputs of `prelu`; the weight's is not summed yet."""
    above = x > 0
    return where(above, g, g * weight), keep(g * x, np.logical_not(above))


@twin
@threaded
@in_epilogue(lambda: ("hardswish",))
@in_single
def hardswish(x: Array) -> Array:
    """Return x * clip(x + 3, 0, 6) / 6."""
    check_floating("hardswish_cpu", x)
    return np.clip(x + 3, 0, 6) / 6 * x


@twin
@threaded
@in_single
def hardswish_grad(g: Array, x: Array) -> Array:
    """Return g times the derivative of `hardswish`."""
    return keep(choose(x < 3, (x / 3 + 0.5) * g, g), np.logical_not(x <= -3))


# Smooth ones --------------------------------------------------------------------------------------


@twin
@takes_out
@in_epilogue(lambda: ("sigmoid",))
def sigmoid(x: Array, out: Array | None = None) -> Array:
    """Return 1 / (1 + exp(-x)); where exp overflows to infinity the result is the correct 0."""
    if x.itemsize == 2 and x.dtype.kind in FLOATS:  # rounded once
        wide = sigmoid(x.astype(np.float32)).astype(x.dtype)
        if out is None:
            return wide
        out[...] = wide
        return out
    out = np.negative(x) if out is None else np.negative(x, out)
    if out.ndim and type(out) is np.ndarray:
        np.exp(out, out)  # (`out` by position, which is faster than by keyword)
        np.add(out, number(1, out.dtype), out)
        return np.reciprocal(out, out)
    return 1 / (np.exp(out) + 1)


@twin
def glu(x: Array, dim: int) -> tuple[Array, Array]:
    """Return a * sigmoid(b), where a and b are the halves of x along `dim`, and sigmoid(b)."""
    before, half = (slice(None),) * (dim % x.ndim), x.shape[dim] // 2
    a, b = x[(*before, slice(half))], x[(*before, slice(half, None))]
    gate = sigmoid(widened(b))
    return (widened(a) * gate).astype(x.dtype, copy=False), gate.astype(x.dtype, copy=False)


@twin
@threaded
@in_epilogue(lambda: ("silu",))
@in_single
def silu(x: Array) -> Array:
    """Return x * sigmoid(x) = x / (1 + exp(-x))."""
    if x.dtype.kind not in DIFFERENTIABLE:
        raise refused("silu_cpu", x)
    return x / (np.exp(-x) + 1)


@twin
@threaded
@in_single
def silu_grad(g: Array, x: Array) -> Array:
    """Return g times the derivative of `silu`, s (1 + x (1 - s)) with s = sigmoid(x)."""
    s = sigmoid(x)
    return ((1 - s) * x + 1) * s * g


def _log1p(x: Array) -> Array:
    """Return log(1 + x) of finite numbers x >= 0.

    NumPy's `log1p` of float32 is not vectorised. The rounding error of 1 + x is corrected for.
    """
    if x.dtype != np.float32:
        return np.log1p(x)
    u = x + 1
    return np.log(u) + (x - (u - 1)) / u


@twin
@threaded
@in_single
def log_sigmoid(x: Array) -> Array:
    """Return log(sigmoid(x)) as min(x, 0) - log(1 + exp(-|x|)), which does not overflow."""
    check_floating("log_sigmoid_cpu", x)
    return np.minimum(x, 0) - _log1p(np.exp(-np.abs(x)))


@elementwise
def logsigmoid(x: Array) -> Array:
    """Return `log_sigmoid(x)` in C order, as in PyTorch."""
    return in_rows(log_sigmoid(x))


@twin
@threaded
@in_single
def softplus(x: Array, beta: float, threshold: float) -> Array:
    """Return log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold."""
    check_floating("softplus_cpu", x)
    given = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    if given[0] is not beta or given[1] is not threshold:
        return softplus(x, *given)
    scaled = x * beta
    out = (_log1p(np.exp(-np.abs(scaled))) + np.maximum(scaled, 0)) / beta
    return choose(scaled > threshold, x, out)


@twin
@threaded
def softplus_grad(g: Array, x: Array, beta: float, threshold: float) -> Array:
    """Return g times the derivative of `softplus`."""
    given = plain("softplus", "beta", beta), plain("softplus", "threshold", threshold)
    if given[0] is not beta or given[1] is not threshold:
        return softplus_grad(g, x, *given)
    scaled = widened(x) * beta
    inner = g * sigmoid(scaled)
    return choose(scaled > threshold, g, inner.astype(g.dtype, copy=False))


# tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2) and e = exp(x); for x >= 20 it is 1.


@twin
@threaded
@in_single
def mish(x: Array) -> Array:
    """Return x * tanh(log(1 + exp(x)))."""
    check_floating("mish_cpu", x)
    e = elementary.exp(np.minimum(x, 20))
    n = (e + 2) * e
    return n / (n + 2) * x


@threaded
@in_single
def mish_grad(g: Array, x: Array) -> Array:
    """Return g times the derivative of `mish`, n / (n + 2) + 4 x e (e + 1) / (n + 2)²."""
    low = np.minimum(x, 20)
    e = elementary.exp(low)
    n = (e + 2) * e
    slope = e * ((e + 1) / (n + 2)) * (4 * low) + 0 * x  # NaN for infinity, as in PyTorch
    return (n + slope) / (n + 2) * g


@twin
@threaded
def softsign(x: Array) -> Array:
    """Return x / (1 + |x|)."""
    return x / (np.abs(x) + x.dtype.type(1))


@twin
@threaded
def tanhshrink(x: Array) -> Array:
    """Return x - tanh(x)."""
    return x - elementary.tanh(x)


# Coefficients by ascending power of a rational function of u = x², for u up to 6.5², that approximates
# -log(Phi(x) / Phi(-x)) / x. They are fitted so that the error of Phi is below 2e-9 everywhere.
_NUMERATOR = (-39564.546560335926, -4904.666330914439, -373.0375870993326, -9.499523520895359)
_DENOMINATOR = (24793.4021871115, 1944.4573121671042, 146.36137277330076, 1.0)


def _normal_cdf(x: Array) -> Array:
    """Return Phi(x), the distribution function of the standard normal distribution."""
    if x.dtype != np.float32:
        return special.erfc(x * -math.sqrt(0.5)) * 0.5  # (1 + erf would lose the digits of small ones)
    u = np.minimum(x * x, number(6.5**2, x.dtype))
    return _logistic(special.polynomial(u, _NUMERATOR) / special.polynomial(u, _DENOMINATOR) * x)


def _tanh_cdf(x: Array) -> Array:
    """Return (1 + tanh(z)) / 2 with z = sqrt(2 / pi) (x + 0.044715 x³), which approximates Phi."""
    k = -2 * math.sqrt(2 / math.pi)
    return _logistic((x * x * (0.044715 * k) + k) * x)


def _logistic(x: Array) -> Array:
    """Return 1 / (1 + exp(x))."""
    return 1 / (np.exp(x) + 1)


@twin
@threaded
@in_epilogue(lambda approximate: ("gelu_tanh" if approximate == "tanh" else "gelu",))
def gelu(x: Array, approximate: str) -> Array:
    """Return x * Phi(x), with the normal distribution's Phi or its approximation by tanh."""
    check_floating("GeluKernelImpl", x)
    wide = widened(x)
    out = (_tanh_cdf(wide) if approximate == "tanh" else _normal_cdf(wide)) * wide
    return out.astype(x.dtype, copy=False)


@elementwise
@in_epilogue(lambda approximate: ("gelu_tanh" if approximate == "tanh" else "gelu",))
def checked_gelu(x: Array, *, approximate: str) -> Array:
    """Return `gelu(x, approximate)`; RuntimeError for an approximation of another name than "none" and "tanh"."""
    if approximate not in ("none", "tanh"):
        check_floating("GeluKernelImpl", x)
        raise RuntimeError("approximate argument must be either none or tanh.")
    return gelu(x, approximate)


@twin
@threaded
def gelu_grad(g: Array, x: Array, approximate: str) -> Array:
    """Return g times the derivative of `gelu`."""
    wide = widened(x)
    if approximate == "tanh":
        cdf, k = _tanh_cdf(wide), 2 * math.sqrt(2 / math.pi)
        slope = ((wide * wide * (3 * 0.044715 * k) + k) * wide * (1 - cdf) + 1) * cdf
    else:
        slope = np.exp(wide * wide * -0.5) * wide * (1 / math.sqrt(2 * math.pi)) + _normal_cdf(wide)
    return (slope * widened(g)).astype(x.dtype, copy=False)


# Normalised exponentials --------------------------------------------------------------------------


@twin
def softmax(x: Array, axis: int) -> Array:
    """Return exp(x) / sum(exp(x)) along `axis`; the maximum is subtracted first, so that nothing overflows."""
    if x.size == 0 or x.ndim == 0:
        return x - x + 1
    wide = widened(x)
    out = np.subtract(wide, _largest(wide, axis, None, None, True), order="C")
    np.exp(out, out=out)
    out /= total(out, (axis,), keepdims=True)
    return out.astype(x.dtype, copy=False)


@twin
def log_softmax(x: Array, axis: int) -> Array:
    """Return x - log(sum(exp(x))) along `axis`; the maximum is subtracted first, so that nothing overflows."""
    if x.size == 0 or x.ndim == 0:
        return x - x
    wide = widened(x)
    out = np.subtract(wide, _largest(wide, axis, None, None, True), order="C")
    out -= np.log(total(np.exp(out), (axis,), keepdims=True))
    return out.astype(x.dtype, copy=False)


@twin
def softmax_grad(g: Array, out: Array, axis: int) -> Array:
    """Return the gradient through softmax, `out * (g - sum(g * out))`."""
    slope = g * out
    if not slope.ndim:
        return slope - out * slope
    slope -= out * total(slope, (axis,), keepdims=True)
    return _balanced(slope, out > FLAT, axis)


@twin
def log_softmax_grad(g: Array, out: Array, axis: int) -> Array:
    """Return the gradient through log_softmax, `g - exp(out) * sum(g)`."""
    if not g.ndim:
        return g - np.exp(out) * g
    shares = np.exp(out)
    return _balanced(g - shares * total(g, (axis,), keepdims=True), shares > FLAT, axis)


def _balanced(slope: Array, sure: Array, axis: int) -> Array:
    """Return a gradient through softmax, which adds up to 0, with minus the sum of the others where a class is sure.

    There the formula loses the digits of 1 - out.
    """
    if not sure.any():
        return slope
    others = total(np.where(sure, np.zeros_like(slope), slope), (axis,), keepdims=True)
    return np.where(sure, -others, slope)


def softmax_along(x: Array, dim: int) -> Array:
    """Return `softmax` of floating-point numbers along a dimension, which may be negative."""
    if x.dtype.kind not in FLOATS and x.size:
        raise refused("softmax_lastdim_kernel_impl", x)
    return softmax(x, dim if 0 <= dim < x.ndim else axis_of(dim, x.ndim, "softmax"))


def log_softmax_along(x: Array, dim: int) -> Array:
    """Return `log_softmax` of floating-point numbers along a dimension, which may be negative."""
    if x.dtype.kind not in FLOATS and x.size:
        raise refused("log_softmax_lastdim_kernel_impl", x)
    return log_softmax(x, dim if 0 <= dim < x.ndim else axis_of(dim, x.ndim, "log_softmax"))


def softmax_grad_along(g: Array, out: Array, dim: int) -> Array:
    """Return the gradient through `softmax_along`."""
    return softmax_grad(g, out, axis_of(dim, out.ndim, "softmax"))


def log_softmax_grad_along(g: Array, out: Array, dim: int) -> Array:
    """Return the gradient through `log_softmax_along`."""
    return log_softmax_grad(g, out, axis_of(dim, out.ndim, "log_softmax"))


# The slopes of sigmoid and tanh, as functions of the result y, lose the digits of 1 - |y| where that is small: there
# they are computed by the input x, if it is known.


@twin
@threaded
def sigmoid_slope(g: Array, y: Array, x: Array | None = None) -> Array:
    """Return `g * (1 - y) * y`, the gradient through y = sigmoid(x); x may be None."""
    slope = (1 - y) * y
    if x is not None and y.dtype.kind != "c":
        far = y > FLAT
        if far.any():
            slope = np.where(far, y * y * np.exp(-x), slope)
    return g * slope


@twin
@threaded
def tanh_slope(g: Array, y: Array, x: Array | None = None) -> Array:
    """Return `g * (1 - y * y)`, the gradient through y = tanh(x); x may be None."""
    slope = 1 - y * y
    if x is not None and y.dtype.kind != "c":
        size = np.abs(y)
        far = size > FLAT
        if far.any():
            slope = np.where(far, np.square(size + 1) * np.exp(-2 * np.abs(x)), slope)
    return g * slope


@elementwise
def minus_twice(x: Array, y: Array) -> Array:
    """Return `-2 * x * y`."""
    out = x * y
    if out.ndim == 0:
        return out * -2
    out *= -2
    return out
