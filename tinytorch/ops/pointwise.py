"""Ops on each element: arithmetic, powers, exponentials, trigonometry, rounding, comparison, logic (floor 3).

Each is one entry: NumPy's ufunc, and per argument the formula of its gradient.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.op import as_array, op, pointwise
from tinytorch.kernels import activation, special

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "addcdiv", "addcmul", "allclose", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clamp",
    "clamp_max", "clamp_min", "clip", "copysign", "cos", "cosh", "deg2rad", "div", "divide", "eq", "equal", "erf",
    "erfc", "exp", "exp2", "expm1", "fix", "float_power", "floor", "floor_divide", "fmax", "fmin", "fmod", "frac",
    "ge", "greater", "greater_equal", "gt", "hypot", "isclose", "isfinite", "isinf", "isnan", "isneginf", "isposinf",
    "isreal", "le", "lerp", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "logical_xor", "lt", "maximum", "minimum", "mul", "multiply", "nan_to_num", "ne",
    "neg", "negative", "not_equal", "pow", "positive", "rad2deg", "reciprocal", "relu", "remainder", "round", "rsqrt",
    "rsub", "sgn", "sigmoid", "sign", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "sub", "subtract", "tan",
    "tanh", "true_divide", "trunc", "xlogy",
]  # fmt: skip


def zero_gradient(g: Tensor) -> Tensor:
    """Return the gradient of a function that is constant almost everywhere."""
    return wrap(np.zeros_like(g._array))


# Arithmetic ---------------------------------------------------------------------------------------

plus = pointwise("add", np.add, x=lambda g: g, y=lambda g: g, doc="Return `x + y`.")
minus = pointwise("sub", np.subtract, x=lambda g: g, y=lambda g: -g, doc="Return `x - y`.")
mul = multiply = pointwise(
    "mul", np.multiply,
    x=lambda g, y: g * y,
    y=lambda g, x: g * x,
    doc="""Return `x * y`, elementwise with broadcasting.

    Example:
        >>> import tinytorch as torch
        >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
        tensor([3., 6.])
    """,
)  # fmt: skip
true_divide = pointwise(
    "div", np.true_divide, floating=True,
    x=lambda g, y: g / y,
    y=lambda g, y, out: -(g * out) / y,
    doc="Return `x / y`; integers are divided as floating-point numbers.",
)  # fmt: skip
neg = negative = pointwise("neg", np.negative, x=lambda g: -g, doc="Return `-x`.")


def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input + alpha * other`, elementwise with broadcasting.

    Example:
        >>> import tinytorch as torch
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.])
    """
    return plus(input, _scaled(input, other, alpha))


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `input - alpha * other`, elementwise with broadcasting.

    Example:
        >>> import tinytorch as torch
        >>> torch.sub(torch.tensor([1.0, 2.0]), 1)
        tensor([0., 1.])
    """
    return minus(input, _scaled(input, other, alpha))


subtract = sub


def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `other - alpha * input`."""
    return sub(other, input, alpha=alpha)


def _scaled(input: Any, other: Any, alpha: Any) -> Any:
    if isinstance(alpha, int) and alpha == 1:
        return other
    if isinstance(alpha, float) and all(
        not (each.dtype.is_floating_point if isinstance(each, Tensor) else isinstance(each, float))
        for each in (input, other)
    ):
        raise RuntimeError(
            "For integral input tensors, argument alpha must not be a floating point number."
        )
    return other * alpha


def _floor_divided(a: Any, b: Any) -> Any:
    _refuse_zero(a, b)
    return np.floor_divide(a, b)


def _refuse_zero(a: Any, b: Any) -> None:
    """Raise PyTorch's error where integers are divided by zero (NumPy would warn and give 0)."""
    if getattr(b, "dtype", None) is not None and b.dtype.kind in "iu" and not np.all(b):
        raise RuntimeError("ZeroDivisionError")
    if b is not None and isinstance(b, int) and b == 0 and a.dtype.kind in "iu":
        raise RuntimeError("ZeroDivisionError")


def _remainder(a: Any, b: Any) -> Any:
    _refuse_zero(a, b)
    return np.remainder(a, b)


def _fmod(a: Any, b: Any) -> Any:
    _refuse_zero(a, b)
    return np.fmod(a, b)


def _trunc_divided(a: Any, b: Any) -> Any:
    _refuse_zero(a, b)
    if np.result_type(a, b).kind in "iu":
        quotient = np.floor_divide(a, b)
        return quotient + ((quotient < 0) & (quotient * b != a))
    return np.trunc(np.true_divide(a, b))


def _no_derivative(g: Tensor) -> Any:
    raise RuntimeError("derivative for aten::floor_divide is not implemented")


floor_divide = pointwise(
    "floor_divide", _floor_divided, x=_no_derivative, y=_no_derivative,
    doc="Return `floor(x / y)`, elementwise.",
)  # fmt: skip
_div_trunc = pointwise(
    "div", _trunc_divided, x=lambda g: zero_gradient(g), y=lambda g: zero_gradient(g)
)
_div_floor = pointwise(
    "div", _floor_divided, x=lambda g: zero_gradient(g), y=lambda g: zero_gradient(g)
)
remainder = pointwise(
    "remainder", _remainder, x=lambda g: g, y=lambda g, x, y: -g * _div_floor(x, y),
    doc="Return the remainder of `x / y` with the sign of `y`, as Python's `%`.",
)  # fmt: skip
fmod = pointwise(
    "fmod", _fmod, x=lambda g: g, y=lambda g, x, y: -g * _div_trunc(x, y),
    doc="Return the remainder of `x / y` with the sign of `x`, as C's `fmod`.",
)  # fmt: skip


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return `input / other`; with `rounding_mode` "trunc" rounded towards zero, with "floor" down.

    Raises:
        RuntimeError: `rounding_mode` is neither None, "trunc" nor "floor"; an integer is divided by zero.

    Example:
        >>> import tinytorch as torch
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
        tensor([ 3, -3])
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if rounding_mode == "trunc":
        return _div_trunc(input, other)
    if rounding_mode == "floor":
        return _div_floor(input, other)
    raise RuntimeError(
        f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
    )


divide = div

# Powers -------------------------------------------------------------------------------------------


def _power(a: Any, b: Any) -> Any:
    if isinstance(b, (builtins.int, builtins.float)) and not isinstance(b, bool):
        if a.dtype.kind == "f":
            if b == 2:
                return np.square(a)
            if b == 3:
                return a * a * a
            if b == 0.5:
                return np.sqrt(a)
            if b == -1:
                return np.reciprocal(a)
            if b == -2:
                return np.reciprocal(np.square(a))
            if b == -0.5:
                return np.reciprocal(np.sqrt(a))
        elif b < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
    elif (
        getattr(b, "dtype", None) is not None
        and b.dtype.kind == "i"
        and np.result_type(a, b).kind in "iu"
    ):
        if b.ndim == 0 and b < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        if np.any(b < 0):  # a tensor of exponents: PyTorch truncates 1 / a ** -b
            return np.trunc(np.power(a.astype(np.float64), b)).astype(np.result_type(a, b))
    return np.power(a, b)


def _pow_x(g: Tensor, x: Any, y: Any) -> Tensor:
    if not isinstance(y, Tensor):
        return (
            zero_gradient(g)
            if y == 0
            else g * y
            if y == 1
            else g * (y * x)
            if y == 2
            else g * (y * pow(x, y - 1))
        )
    return g * (y * pow(x, y - 1)).masked_fill(y == 0, 0)


def _pow_y(g: Tensor, x: Any, y: Any, out: Tensor) -> Tensor:
    if not isinstance(x, Tensor):
        return g * (out * math.log(x)) if x != 0 else (g * (out * -math.inf)).masked_fill(y >= 0, 0)
    return g * (out * log(x)).masked_fill((x == 0) & (y >= 0), 0)


pow = pointwise(
    "pow", _power, x=_pow_x, y=_pow_y,
    doc="""Return `x` to the power `y`, elementwise.

    Raises:
        RuntimeError: integers to a negative power.

    Example:
        >>> import tinytorch as torch
        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """,
)  # fmt: skip


def float_power(input: Any, exponent: Any) -> Tensor:
    """Return `input` to the power `exponent`, computed in float64."""
    base = input.double() if isinstance(input, Tensor) else builtins.float(input)
    return pow(base, exponent.double() if isinstance(exponent, Tensor) else exponent)


square = pointwise(
    "square", np.square, x=lambda g, x: g * (2 * x), node_name="Pow", doc="Return `x * x`."
)
sqrt = pointwise(
    "sqrt", np.sqrt, floating=True, x=lambda g, out: g / (2 * out), doc="Return the square root."
)
rsqrt = pointwise(
    "rsqrt", lambda a: np.reciprocal(np.sqrt(a)), floating=True,
    x=lambda g, out: -0.5 * g * pow(out, 3), doc="Return `1 / sqrt(x)`.",
)  # fmt: skip
reciprocal = pointwise(
    "reciprocal",
    np.reciprocal,
    floating=True,
    x=lambda g, out: -g * out * out,
    doc="Return `1 / x`.",
)

# Exponentials and logarithms ----------------------------------------------------------------------

exp = pointwise(
    "exp", np.exp, floating=True, x=lambda g, out: g * out,
    doc="""Return `e ** x`.

    Example:
        >>> import tinytorch as torch
        >>> torch.exp(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """,
)  # fmt: skip
exp2 = pointwise(
    "exp2", np.exp2, floating=True, x=lambda g, out: g * out * math.log(2), doc="Return `2 ** x`."
)
expm1 = pointwise(
    "expm1", np.expm1, floating=True, x=lambda g, out: g * (out + 1), doc="Return `exp(x) - 1`."
)
log = pointwise(
    "log", np.log, floating=True, x=lambda g, x: g / x, doc="Return the natural logarithm."
)
log2 = pointwise(
    "log2",
    np.log2,
    floating=True,
    x=lambda g, x: g / (x * math.log(2)),
    doc="Return the logarithm to base 2.",
)
log10 = pointwise(
    "log10",
    np.log10,
    floating=True,
    x=lambda g, x: g / (x * math.log(10)),
    doc="Return the logarithm to base 10.",
)
log1p = pointwise(
    "log1p", np.log1p, floating=True, x=lambda g, x: g / (x + 1), doc="Return `log(1 + x)`."
)
logaddexp = pointwise(
    "logaddexp", np.logaddexp, floating=True,
    x=lambda g, x, out: g * exp(x - out), y=lambda g, y, out: g * exp(y - out),
    doc="Return `log(exp(x) + exp(y))`, computed without overflow.",
)  # fmt: skip


def _xlogy(a: Any, b: Any) -> Any:
    return np.where(np.equal(a, 0) & ~np.isnan(b), np.zeros_like(b), a * np.log(b))


xlogy = pointwise(
    "xlogy", _xlogy, floating=True,
    x=lambda g, x, y: g * log(y).masked_fill((x == 0) & (y <= 0), 0), y=lambda g, x, y: g * x / y,
    doc="Return `x * log(y)`, which is 0 where x is 0.",
)  # fmt: skip
erf = pointwise(
    "erf", special.erf, floating=True, x=lambda g, x: g * (2 / math.sqrt(math.pi) * exp(-x * x)),
    doc="Return the error function, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`.",
)  # fmt: skip
erfc = pointwise(
    "erfc", special.erfc, floating=True, x=lambda g, x: g * (-2 / math.sqrt(math.pi) * exp(-x * x)),
    doc="Return `1 - erf(x)`, accurate where that is small.",
)  # fmt: skip

# Trigonometry -------------------------------------------------------------------------------------

sin = pointwise(
    "sin",
    np.sin,
    floating=True,
    x=lambda g, x: g * cos(x),
    doc="Return the sine of an angle in radians.",
)
cos = pointwise("cos", np.cos, floating=True, x=lambda g, x: g * -sin(x), doc="Return the cosine.")
tan = pointwise(
    "tan", np.tan, floating=True, x=lambda g, out: g * (1 + out * out), doc="Return the tangent."
)
asin = arcsin = pointwise(
    "asin",
    np.arcsin,
    floating=True,
    x=lambda g, x: g * rsqrt(1 - x * x),
    doc="Return the inverse sine.",
)
acos = arccos = pointwise(
    "acos",
    np.arccos,
    floating=True,
    x=lambda g, x: -g * rsqrt(1 - x * x),
    doc="Return the inverse cosine.",
)
atan = arctan = pointwise(
    "atan",
    np.arctan,
    floating=True,
    x=lambda g, x: g / (x * x + 1),
    doc="Return the inverse tangent.",
)
sinh = pointwise(
    "sinh", np.sinh, floating=True, x=lambda g, x: g * cosh(x), doc="Return the hyperbolic sine."
)
cosh = pointwise(
    "cosh", np.cosh, floating=True, x=lambda g, x: g * sinh(x), doc="Return the hyperbolic cosine."
)
asinh = arcsinh = pointwise(
    "asinh",
    np.arcsinh,
    floating=True,
    x=lambda g, x: g * rsqrt(x * x + 1),
    doc="Return the inverse of sinh.",
)
acosh = arccosh = pointwise(
    "acosh",
    np.arccosh,
    floating=True,
    x=lambda g, x: g * rsqrt(x * x - 1),
    doc="Return the inverse of cosh.",
)
atanh = arctanh = pointwise(
    "atanh",
    np.arctanh,
    floating=True,
    x=lambda g, x: g / (1 - x * x),
    doc="Return the inverse of tanh.",
)
atan2 = arctan2 = pointwise(
    "atan2", np.arctan2, floating=True,
    x=lambda g, x, y: g * (y / (x * x + y * y)), y=lambda g, x, y: g * (-x / (x * x + y * y)),
    doc="Return the angle of the point (y, x): the inverse tangent of `x / y` in its quadrant.",
)  # fmt: skip
hypot = pointwise(
    "hypot", np.hypot, floating=True, x=lambda g, x, out: g * (x / out), y=lambda g, y, out: g * (y / out),
    doc="Return `sqrt(x * x + y * y)`.",
)  # fmt: skip
deg2rad = pointwise(
    "deg2rad",
    np.deg2rad,
    floating=True,
    x=lambda g: g * (math.pi / 180),
    doc="Return degrees in radians.",
)
rad2deg = pointwise(
    "rad2deg",
    np.rad2deg,
    floating=True,
    x=lambda g: g * (180 / math.pi),
    doc="Return radians in degrees.",
)


def _sinc_x(g: Tensor, x: Tensor) -> Tensor:
    t = math.pi * x
    slope = (t * cos(t) - sin(t)) / (x * t)
    return g * slope.masked_fill(x == 0, 0)


sinc = pointwise(
    "sinc", np.sinc, floating=True, x=_sinc_x, doc="Return `sin(pi x) / (pi x)`, 1 at 0."
)

# Activations that are ops of Tensor too -----------------------------------------------------------


def _sigmoid(a: Any) -> Any:
    out = np.negative(a)
    out = np.exp(out, out=out) if out.ndim else np.exp(out)
    out += 1
    return np.reciprocal(out)


# The gradients of the hot ones are ops with kernels of their own: one pass less, and derivatives of every order.

_tanh_grad = pointwise(
    "tanh_backward", lambda g, out: g * (1 - out * out),
    g=lambda gg, out: gg * (1 - out * out), out=lambda gg, g, out: gg * (-2 * g * out), node_name="TanhBackward",
)  # fmt: skip
_sigmoid_grad = pointwise(
    "sigmoid_backward", lambda g, out: g * ((1 - out) * out),
    g=lambda gg, out: gg * ((1 - out) * out), out=lambda gg, g, out: gg * g * (1 - 2 * out),
    node_name="SigmoidBackward",
)  # fmt: skip
_relu_grad = pointwise(
    "threshold_backward", lambda g, out: activation.keep(g, out != 0),
    g=lambda gg, out: _relu_grad(gg, out), out=lambda gg: zero_gradient(gg), node_name="ThresholdBackward",
)  # fmt: skip
tanh = pointwise(
    "tanh",
    np.tanh,
    floating=True,
    x=lambda g, out: _tanh_grad(g, out),
    doc="Return the hyperbolic tangent.",
)
sigmoid = pointwise(
    "sigmoid",
    _sigmoid,
    floating=True,
    x=lambda g, out: _sigmoid_grad(g, out),
    doc="Return `1 / (1 + exp(-x))`.",
)
relu = pointwise(
    "relu",
    activation.relu,
    x=lambda g, out: _relu_grad(g, out),
    doc="Return `max(x, 0)`, elementwise.",
)

# Absolute value, sign, rounding -------------------------------------------------------------------

sign = pointwise(
    "sign", np.sign, x=lambda g: zero_gradient(g), doc="Return -1, 0 or 1: the sign of x."
)
sgn = sign
abs = absolute = pointwise(
    "abs", np.abs, x=lambda g, x: g * sign(x), doc="Return the absolute value."
)
floor = pointwise(
    "floor",
    np.floor,
    x=lambda g: zero_gradient(g),
    doc="Return the largest integer that is not above x.",
)
ceil = pointwise(
    "ceil",
    np.ceil,
    x=lambda g: zero_gradient(g),
    doc="Return the smallest integer that is not below x.",
)
trunc = fix = pointwise(
    "trunc", np.trunc, x=lambda g: zero_gradient(g), doc="Return x without its fraction."
)
frac = pointwise(
    "frac", lambda a: a - np.trunc(a), x=lambda g: g, doc="Return the fraction of x, with its sign."
)
positive = pointwise("positive", np.positive, x=lambda g: g, doc="Return x.")
signbit = pointwise(
    "signbit", np.signbit, x=None, doc="Return whether the sign bit is set (true for -0.0)."
)
copysign = pointwise(
    "copysign", np.copysign, floating=True,
    x=lambda g, x, out: (g * (out / x)).masked_fill(x == 0, 0), y=lambda g: zero_gradient(g),
    doc="Return the magnitude of `x` with the sign of `y`.",
)  # fmt: skip


@op(x=lambda g: zero_gradient(g))
def round(x: Any, *, decimals: builtins.int = 0) -> Any:
    """Return `x` rounded to `decimals` places, halves to the even neighbour.

    Example:
        >>> import tinytorch as torch
        >>> torch.round(torch.tensor([0.5, 1.5, 2.345]), decimals=0)
        tensor([0., 2., 2.])
    """
    return x.copy() if x.dtype.kind in "iu" else np.round(x, decimals)


# Bounds -------------------------------------------------------------------------------------------


def _share(x: Tensor, y: Tensor) -> Any:
    """Return the share of x in the gradient of max(x, y): 1 where it is larger, half of it where they tie."""
    return (x > y) + 0.5 * (x == y)


maximum = pointwise(
    "maximum", np.maximum,
    x=lambda g, x, y: g * _share(x, y).to(g.dtype), y=lambda g, x, y: g * _share(y, x).to(g.dtype),
    doc="Return the larger of `x` and `y`; NaN where one of them is. Ties share the gradient.",
)  # fmt: skip
minimum = pointwise(
    "minimum", np.minimum,
    x=lambda g, x, y: g * _share(y, x).to(g.dtype), y=lambda g, x, y: g * _share(x, y).to(g.dtype),
    doc="Return the smaller of `x` and `y`; NaN where one of them is. Ties share the gradient.",
)  # fmt: skip
fmax = pointwise(
    "fmax", np.fmax,
    x=lambda g, x, y: g * ((x >= y) | isnan(y)), y=lambda g, x, y: g * ~((x >= y) | isnan(y)),
    doc="Return the larger of `x` and `y`, or the one that is not NaN.",
)  # fmt: skip
fmin = pointwise(
    "fmin", np.fmin,
    x=lambda g, x, y: g * ((x <= y) | isnan(y)), y=lambda g, x, y: g * ~((x <= y) | isnan(y)),
    doc="Return the smaller of `x` and `y`, or the one that is not NaN.",
)  # fmt: skip


def _between(x: Any, min: Any = None, max: Any = None) -> Any:
    if min is not None:
        x = np.maximum(x, min)
    return x if max is None else np.minimum(x, max)


@op(name="Clamp", x=lambda g, x, min, max: g * _inside(x, min, max))
def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    return _between(x, min, max)


_clamp.op.node_class.__name__ = "ClampBackward1"  # PyTorch's number of the overload for numbers


@op(
    name="Clamp",
    x=lambda g, x, min, max: g * _inside(x, min, max),
    min=lambda g, x, min, max: g * ((x < min) if max is None else (x < min) & (min < max)),
    max=lambda g, x, min, max: g * ((x > max) if min is None else (x > max) | (max < min)),
    broadcasts=True,
)
def _clamp_to_tensors(x: Any, min: Any = None, max: Any = None) -> Any:
    return _between(x, min, max)


def _inside(x: Tensor, min: Any, max: Any) -> Tensor:
    if min is None:
        return x <= max
    return x >= min if max is None else (x >= min) & (x <= max)


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return `input` bounded below by `min` and above by `max`, numbers or tensors that broadcast.

    The gradient is 1 inside the bounds (the bounds included) and 0 outside.

    Raises:
        RuntimeError: neither bound is given.

    Example:
        >>> import tinytorch as torch
        >>> torch.clamp(torch.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if (
        input.dtype.is_floating_point
        and type(min) in _NUMBER_OR_NONE
        and type(max) in _NUMBER_OR_NONE
    ):
        if min is None and max is None:
            raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
        return _clamp(input, min, max)
    return _clamp_to_tensors(*_bounded(input, min, max))


_NUMBER_OR_NONE = frozenset((builtins.int, builtins.float, type(None)))


def _bounded(input: Tensor, min: Any, max: Any) -> tuple[Any, Any, Any]:
    """Return input and bounds in the dtype that PyTorch's promotion gives them."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    operands = [(input.dtype, 2 if input.ndim else 1)]
    for bound in (min, max):
        if isinstance(bound, Tensor):
            operands.append((bound.dtype, 2 if bound.ndim else 1))
        elif bound is not None:
            operands.append((dtypes.of_number(bound), 0))
    kind = dtypes.result_dtype(*operands)
    if kind is not input.dtype:
        input = input.to(kind)
    low, high = (bound.to(kind) if isinstance(bound, Tensor) else bound for bound in (min, max))
    return input, low, high


clip = clamp


def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return `input` bounded below by `min`."""
    return clamp(input, min=min)


def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return `input` bounded above by `max`."""
    return clamp(input, max=max)


@op(x=lambda g, x: g * isfinite(x))
def nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Return `x` with NaN and infinities replaced: by 0 and the dtype's largest numbers unless given."""
    return np.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)


# Compositions -------------------------------------------------------------------------------------


def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return `input + weight * (end - input)`, computed from the nearer end."""
    if isinstance(weight, Tensor):
        near = (abs(weight) < 0.5).to(weight.dtype)
        return near * (input + weight * (end - input)) + (1 - near) * (
            end - (end - input) * (1 - weight)
        )
    if builtins.abs(weight) < 0.5:
        return input + weight * (end - input)
    return end - (end - input) * (1 - weight)


def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Return `input + value * tensor1 * tensor2`."""
    return input + (tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Return `input + value * tensor1 / tensor2`.

    Raises:
        RuntimeError: both are integers, as in PyTorch.
    """
    if not (tensor1.dtype.is_floating_point or tensor2.dtype.is_floating_point):
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2."
        )
    return input + (tensor1 / tensor2 if value == 1 else value * tensor1 / tensor2)


# Comparison and logic -----------------------------------------------------------------------------

eq = pointwise("eq", np.equal, x=None, y=None, doc="Return whether `x == y`, elementwise.")
ne = not_equal = pointwise(
    "ne", np.not_equal, x=None, y=None, doc="Return whether `x != y`, elementwise."
)
lt = less = pointwise("lt", np.less, x=None, y=None, doc="Return whether `x < y`, elementwise.")
le = less_equal = pointwise(
    "le", np.less_equal, x=None, y=None, doc="Return whether `x <= y`, elementwise."
)
gt = greater = pointwise(
    "gt", np.greater, x=None, y=None, doc="Return whether `x > y`, elementwise."
)
ge = greater_equal = pointwise(
    "ge", np.greater_equal, x=None, y=None, doc="Return whether `x >= y`, elementwise."
)
logical_and = pointwise(
    "logical_and", np.logical_and, x=None, y=None, doc="Return whether both are not zero."
)
logical_or = pointwise(
    "logical_or", np.logical_or, x=None, y=None, doc="Return whether either is not zero."
)
logical_xor = pointwise(
    "logical_xor", np.logical_xor, x=None, y=None, doc="Return whether exactly one is not zero."
)
logical_not = pointwise("logical_not", np.logical_not, x=None, doc="Return whether `x` is zero.")
bitwise_and = pointwise(
    "bitwise_and", np.bitwise_and, x=None, y=None, doc="Return `x & y` of integers or booleans."
)
bitwise_or = pointwise(
    "bitwise_or", np.bitwise_or, x=None, y=None, doc="Return `x | y` of integers or booleans."
)
bitwise_xor = pointwise(
    "bitwise_xor", np.bitwise_xor, x=None, y=None, doc="Return `x ^ y` of integers or booleans."
)
bitwise_not = pointwise(
    "bitwise_not", np.invert, x=None, doc="Return `~x` of integers or booleans."
)
bitwise_left_shift = pointwise(
    "bitwise_left_shift", np.left_shift, x=None, y=None, doc="Return `x << y`."
)
bitwise_right_shift = pointwise(
    "bitwise_right_shift", np.right_shift, x=None, y=None, doc="Return `x >> y`."
)
isnan = pointwise("isnan", np.isnan, x=None, doc="Return whether each element is NaN.")
isinf = pointwise("isinf", np.isinf, x=None, doc="Return whether each element is infinite.")
isfinite = pointwise(
    "isfinite", np.isfinite, x=None, doc="Return whether each element is neither NaN nor infinite."
)
isposinf = pointwise(
    "isposinf", np.isposinf, x=None, doc="Return whether each element is plus infinity."
)
isneginf = pointwise(
    "isneginf", np.isneginf, x=None, doc="Return whether each element is minus infinity."
)
isreal = pointwise(
    "isreal",
    lambda a: np.ones_like(a, dtype=np.bool_),
    x=None,
    doc="Return true: there are no complex numbers.",
)


def isclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Return whether `|input - other| <= atol + rtol * |other|`, elementwise.

    Raises:
        RuntimeError: the dtypes differ.

    Example:
        >>> import tinytorch as torch
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
        tensor([ True, False])
    """
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.tensor_name} did not match {other.dtype.tensor_name}")
    close: Tensor = wrap(as_array(np.isclose(input._array, other._array, rtol, atol, equal_nan)))
    return close


def allclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Return whether `isclose` holds for all elements.

    Example:
        >>> import tinytorch as torch
        >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-9]))
        True
    """
    return builtins.bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether both have the same shape and the same elements.

    Example:
        >>> import tinytorch as torch
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
    """
    return builtins.bool(np.array_equal(input._array, other._array))
