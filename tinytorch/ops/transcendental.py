"""Elementwise powers, exponentials, logarithms, trigonometric and hyperbolic functions, and activations."""

from __future__ import annotations

import builtins
import cmath
import math
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import activation, dtypes, elementary, special
from tinytorch.kernels import transcendental as kernels
from tinytorch.kernels.limits import fits
from tinytorch.ops.arguments import elementwise, exemplified
from tinytorch.ops.arithmetic import zero_gradient
from tinytorch.ops.compare import logical_or
from tinytorch.ops.register import no_such_call, pointwise, public

#: Declaration arguments that several ops share.
_OF_FLOATS: dict[str, Any] = {"floating": True, "method": True, "in_place": "function", "out": "promoted"}
_OF_TWO: dict[str, Any] = {"method": True, "out": "promoted", "of_tensors": True}

_POWERS = tuple(
    f"{each} exponent, *, Tensor out = None"
    for each in ("Tensor input, Tensor", "Number self, Tensor", "Tensor input, Number")
)

# Powers -------------------------------------------------------------------------------------------


def _pow_x(g: Tensor, x: Any, y: Any) -> Tensor:
    if isinstance(y, Tensor):
        return (g * (y * pow(x, y - 1))).masked_fill(y == 0, 0)
    if y == 0:
        return zero_gradient(g)
    return g * (y * (x if y == 2 else pow(x, y - 1)))


def _pow_y(g: Tensor, x: Any, y: Any, out: Tensor) -> Tensor:
    if isinstance(x, Tensor):
        if out._array.dtype.kind == "c":
            x = x.to(out.dtype)
        return g * (out * log(x)).masked_fill((x == 0) & (_real(y) >= 0), 0)
    if x == 0:
        return g * (out * -math.inf).masked_fill(_real(y) >= 0, 0)
    if out._array.dtype.kind == "c":
        return g * (out * cmath.log(x))
    return g * (out * (math.nan if x < 0 else math.log(x)))


def _real(y: Any) -> Any:
    return y.real if isinstance(y, (Tensor, builtins.complex)) else y


def _refused_power(base: Any, exponent: Any) -> str | None:
    """Return the name of PyTorch's kernel, or None for trivial powers, for which PyTorch does not call it."""
    known = (not np.ndim(base) and base == 1) or (not np.ndim(exponent) and exponent in (0, 1))
    return None if known else "pow"


# PyTorch's overloads, whose nodes have different names: tensor ** number, tensor ** tensor, number ** tensor.
_raised, _raised_to, _number_raised = (
    pointwise(
        "pow", kernel, node_name=f"PowBackward{k}", refuses=_refused_power, complex=HOLOMORPHIC, own_layout=k == 2,
        numbers=True, x=_pow_x, y=_pow_y,
    )
    for k, kernel in enumerate((kernels.power, kernels.power, kernels.power_of_number))
)  # fmt: skip


@public(method=True, out="promoted")
@short("of_floats", _raised)
def pow(input: Any, exponent: Any) -> Tensor:
    """Return `input` to the power `exponent`, elementwise. RuntimeError for integers to a negative number.

    Example:
        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """
    kind = type(exponent)
    if kind is builtins.int:
        if not 0 <= exponent < 128:
            check_exponent(input, exponent)
    elif kind is builtins.float or kind is builtins.complex:
        pass
    elif isinstance(exponent, Tensor):
        return (_raised_to if isinstance(input, Tensor) else _number_raised)(input, exponent)
    elif kind is bool and isinstance(input, Tensor) and input.dtype is dtypes.bool:
        return logical_or(input, wrap(np.asarray(not exponent)))
    if type(input) is not Tensor and not isinstance(input, Tensor):
        raise no_such_call("pow", (input, exponent), _POWERS)
    return _raised(input, exponent)


pow.op = _raised.op  # type: ignore[attr-defined]  # (`in_place` and `out=` look for it)


def check_exponent(base: Any, exponent: Any) -> None:
    """Raise PyTorch's error if an integer tensor is raised to a negative number, or to one out of its dtype's range."""
    if isinstance(base, Tensor) and base.dtype.category < dtypes.FLOATING:
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        fits(exponent, base.dtype)


@public(method=True, out="float_power")
def float_power(input: Any, exponent: Any) -> Tensor:
    """Return `input` to the power `exponent`, tensors or numbers, computed in float64.

    Example:
        >>> torch.float_power(torch.tensor([1, 2, 3]), 2)
        tensor([1., 4., 9.], dtype=torch.float64)
    """
    if not isinstance(input, Tensor) and not isinstance(exponent, Tensor):
        raise no_such_call("float_power", (input, exponent), _POWERS)
    kind = float_power_dtype(input, exponent)
    number = builtins.complex if kind.is_complex else builtins.float
    base = input.to(kind) if isinstance(input, Tensor) else number(input)
    return pow(base, exponent.to(kind) if isinstance(exponent, Tensor) else exponent)


def float_power_dtype(*operands: Any) -> dtypes.dtype:
    """Return the dtype that `float_power` computes in: complex128 if one of the operands is complex, else float64."""
    is_complex = any(
        each.dtype.is_complex if isinstance(each, Tensor) else isinstance(each, builtins.complex) for each in operands
    )
    return dtypes.complex128 if is_complex else dtypes.float64


@elementwise(
    kernels.square,
    x=lambda g, x: g * (2 * x),
    complex=HOLOMORPHIC,
    node_name="Pow",
    refuses="pow",
    method=True,
    in_place="function",
    out="promoted",
)
def square(x: Any) -> Any:
    """Return `x * x`.

    Example:
        >>> torch.square(torch.tensor([-2.0, 3.0]))
        tensor([4., 9.])
    """


def _of_one(
    name: str, kernel: Any, what: str, argument: str, result: str, slope: Any, facts: dict[str, Any] | None = None
) -> Any:
    """Return the public op of a function of one tensor, from the formula of its gradient."""
    given = {"complex": HOLOMORPHIC} | _OF_FLOATS | (facts or {})
    return exemplified(name, kernel, what, f"torch.tensor({argument})", result, x=slope, **given)


sqrt, rsqrt, reciprocal = (
    _of_one(*row)
    for row in (
        ("sqrt", np.sqrt, "the square root; NaN for negative numbers", "[4.0, 2.0]", "[2.0000, 1.4142]",
         lambda g, out: g / (2 * out)),
        ("rsqrt", kernels.rsqrt, "`1 / sqrt(x)`", "[4.0, 0.25]", "[0.5000, 2.0000]",
         lambda g, out: -0.5 * g * pow(out, 3)),
        ("reciprocal", np.reciprocal, "`1 / x`", "[2.0, -4.0]", "[ 0.5000, -0.2500]", lambda g, out: -g * out * out),
    )
)  # fmt: skip


# Exponentials and logarithms ----------------------------------------------------------------------


exp, exp2, expm1, log, log2, log10, log1p = (
    _of_one(*row)
    for row in (
        ("exp", elementary.exp, "`e ** x`", "[0.0, 1.0]", "[1.0000, 2.7183]", lambda g, out: g * out),
        ("exp2", elementary.exp2, "`2 ** x`", "[0.0, 3.0]", "[1., 8.]", lambda g, out: g * out * math.log(2),
         {"also": "special.exp2"}),
        ("expm1", elementary.expm1, "`exp(x) - 1`, accurate also for small x", "[0.0, 1.0]", "[0.0000, 1.7183]",
         lambda g, out: g * (out + 1), {"also": "special.expm1"}),
        ("log", elementary.log, "the natural logarithm: minus infinity for 0, NaN for negative numbers",
         "[1.0, 10.0, 0.0]", "[0.0000, 2.3026,   -inf]", lambda g, x: g / x),
        ("log2", elementary.log2, "the logarithm to base 2", "[1.0, 8.0]", "[0., 3.]",
         lambda g, x: g / (x * math.log(2))),
        ("log10", elementary.log10, "the logarithm to base 10", "[1.0, 10.0]", "[0., 1.]",
         lambda g, x: g / (x * math.log(10))),
        ("log1p", elementary.log1p, "`log(1 + x)`, accurate also for small x", "[0.0, 1.0]", "[0.0000, 0.6931]",
         lambda g, x: g / (x + 1), {"node_name": "Log1P", "also": "special.log1p"}),
    )
)  # fmt: skip


@elementwise(
    kernels.logaddexp, complex=HOLOMORPHIC, x=lambda g, x, y: g * sigmoid(x - y), y=lambda g, x, y: g * sigmoid(y - x),
    **_OF_TWO,
)  # fmt: skip
def logaddexp(x: Any, y: Any) -> Any:
    """Return `log(exp(x) + exp(y))`, computed without overflow.

    Example:
        >>> torch.logaddexp(torch.tensor([0.0, 1000.0]), torch.tensor([0.0, 1000.0]))
        tensor([6.9315e-01, 1.0007e+03])
    """


@elementwise(
    kernels.xlogy, x=lambda g, x, y: xlogy(g, y).masked_fill((x == 0) & (y <= 0), 0), y=lambda g, x, y: g * x / y,
    also="special.xlogy", operands="either", **_OF_FLOATS,
)  # fmt: skip
def xlogy(x: Any, y: Any) -> Any:
    """Return `x * log(y)`, which is 0 where x is 0.

    Example:
        >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))
        tensor([0.0000, 2.1972])
    """


erf, erfc = (
    _of_one(*row)
    for row in (
        ("erf", special.erf, "the error function, `2 / sqrt(pi) * integral of exp(-t * t) from 0 to x`",
         "[0.0, 0.5, 3.0]", "[0.0000, 0.5205, 1.0000]", lambda g, x: g * (2 / math.sqrt(math.pi) * exp(-x * x)),
         {"also": "special.erf", "complex": None}),
        ("erfc", special.erfc, "`1 - erf(x)`, accurate also where the result is small", "[0.0, 0.5, 3.0]",
         "[1.0000e+00, 4.7950e-01, 2.2090e-05]", lambda g, x: g * (-2 / math.sqrt(math.pi) * exp(-x * x)),
         {"also": "special.erfc", "complex": None}),
    )
)  # fmt: skip


# Trigonometry -------------------------------------------------------------------------------------


sin, cos, tan = (
    _of_one(*row)
    for row in (
        ("sin", elementary.sin, "the sine of an angle in radians", "[0.0, torch.pi / 2]", "[0., 1.]",
         lambda g, x: g * cos(x)),
        ("cos", elementary.cos, "the cosine of an angle in radians", "[0.0, torch.pi]", "[ 1., -1.]",
         lambda g, x: g * -sin(x)),
        ("tan", elementary.tan, "the tangent of an angle in radians", "[0.0, 1.0]", "[0.0000, 1.5574]",
         lambda g, out: g * (1 + out * out)),
    )
)  # fmt: skip


# 1 - x², with its digits near 1 and those of its derivative near 0.
_rest = pointwise("rest_of_square", kernels.rest_of_square, complex=HOLOMORPHIC, x=lambda g, x: _minus_twice(g, x))


asin, acos, atan, sinh, cosh, asinh, acosh, atanh = (
    _of_one(*row)
    for row in (
        ("asin", elementary.arcsin, "the inverse sine, in radians from -pi/2 to pi/2; NaN outside -1 to 1",
         "[0.5, 1.0, 2.0]", "[0.5236, 1.5708,    nan]", lambda g, x: g * rsqrt(_rest(x)), {"also": "arcsin"}),
        ("acos", elementary.arccos, "the inverse cosine, in radians from 0 to pi; NaN outside -1 to 1",
         "[0.5, -1.0, 2.0]", "[1.0472, 3.1416,    nan]", lambda g, x: -g * rsqrt(_rest(x)), {"also": "arccos"}),
        ("atan", elementary.arctan, "the inverse tangent, in radians between -pi/2 and pi/2", "[0.0, 1.0]",
         "[0.0000, 0.7854]", lambda g, x: g / (x * x + 1), {"also": "arctan"}),
        ("sinh", elementary.sinh, "the hyperbolic sine", "[0.0, 1.0]", "[0.0000, 1.1752]", lambda g, x: g * cosh(x)),
        ("cosh", elementary.cosh, "the hyperbolic cosine", "[0.0, 1.0]", "[1.0000, 1.5431]", lambda g, x: g * sinh(x)),
        ("asinh", elementary.arcsinh, "the inverse of sinh", "[0.0, 1.0]", "[0.0000, 0.8814]",
         lambda g, x: g * rsqrt(x * x + 1), {"also": "arcsinh"}),
        ("acosh", elementary.arccosh, "the inverse of cosh; NaN below 1", "[1.0, 2.0]", "[0.0000, 1.3170]",
         lambda g, x: g * (rsqrt(x - 1) * rsqrt(x + 1) if x.dtype.is_complex else rsqrt(0 - _rest(x))),
         {"also": "arccosh"}),
        ("atanh", elementary.arctanh, "the inverse of tanh; NaN outside -1 to 1", "[0.0, 0.5]", "[0.0000, 0.5493]",
         lambda g, x: g / _rest(x), {"also": "arctanh"}),
    )
)  # fmt: skip


def _over_square(part: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return `part / (x * x + y * y)` of a part of the point (x, y), but 0 at the origin."""
    radius = hypot(x, y)
    return (part / radius / radius).masked_fill(radius == 0, 0)


@elementwise(
    np.arctan2,
    floating=True,
    x=lambda g, x, y: g * _over_square(y, x, y),
    y=lambda g, x, y: g * -_over_square(x, x, y),
    also="arctan2",
    in_place=True,
    **_OF_TWO,
)
def atan2(x: Any, y: Any) -> Any:
    """Return the angle of the point (y, x), from -pi to pi: the inverse tangent of `x / y` in its quadrant.

    Example:
        >>> torch.atan2(torch.tensor([1.0, 1.0]), torch.tensor([1.0, -1.0]))
        tensor([0.7854, 2.3562])
    """


@elementwise(
    kernels.hypot, x=lambda g, x, out: g * (x / out), y=lambda g, y, out: g * (y / out), in_place=True, **_OF_TWO
)
def hypot(x: Any, y: Any) -> Any:
    """Return `sqrt(x * x + y * y)`, computed without overflow.

    Example:
        >>> torch.hypot(torch.tensor([3.0, 5.0]), torch.tensor([4.0, 12.0]))
        tensor([ 5., 13.])
    """


@elementwise(np.deg2rad, node_name="Deg2Rad", x=lambda g: g * (math.pi / 180), **_OF_FLOATS)
def deg2rad(x: Any) -> Any:
    """Convert degrees to radians.

    Example:
        >>> torch.deg2rad(torch.tensor([90.0, 180.0]))
        tensor([1.5708, 3.1416])
    """


@elementwise(kernels.degrees, node_name="Rad2Deg", x=lambda g: g * (180 / math.pi), **_OF_FLOATS)
def rad2deg(x: Any) -> Any:
    """Convert radians to degrees.

    Example:
        >>> torch.rad2deg(torch.tensor([0.0, torch.pi]))
        tensor([  0., 180.])
    """


def _sinc_x(g: Tensor, x: Tensor) -> Tensor:
    t = math.pi * x
    near = t.abs() < 0.5  # where the terms of the direct formula cancel
    far, inner = t.masked_fill(near, 1), t.masked_fill(~near, 0)
    square, series = inner * inner, 0.0
    for k in range(8, 0, -1):
        series = series * square + (-1) ** k * 2 * k / math.factorial(2 * k + 1)
    return g * (series * inner * math.pi).where(near, (far * cos(far) - sin(far)) / (far * far) * math.pi)


sinc = _of_one(
    "sinc", kernels.sinc, "`sin(pi x) / (pi x)`, 1 at 0", "[0.0, 0.5]", "[1.0000, 0.6366]", _sinc_x,
    {"also": "special.sinc"},
)  # fmt: skip


# Activations that are also methods of Tensor ------------------------------------------------------


# Fused kernels compute these gradients in one pass; as ops they have derivatives of every order.


@op(
    activation.tanh_slope, batch="elementwise", complex=HOLOMORPHIC, name="TanhBackward",
    g=lambda gg, y, x: tanh_backward(gg, y, x), y=lambda gg, g, y: _minus_twice(gg * g, y), x=None,
)  # fmt: skip
def tanh_backward(g: Any, y: Any, x: Any = None) -> Any:
    """Return the gradient through `y = tanh(x)`."""


_minus_twice = pointwise(  # -2 * x * y: the partial derivatives are the op itself
    "minus_twice",
    activation.minus_twice,
    complex=HOLOMORPHIC,
    x=lambda g, y: _minus_twice(g, y),
    y=lambda g, x: _minus_twice(g, x),
)


@op(
    activation.sigmoid_slope, batch="elementwise", complex=HOLOMORPHIC, name="SigmoidBackward",
    g=lambda gg, y, x: sigmoid_backward(gg, y, x), y=lambda gg, g, y: gg * g * (1 - 2 * y), x=None,
)  # fmt: skip
def sigmoid_backward(g: Any, y: Any, x: Any = None) -> Any:
    """Return the gradient through `y = sigmoid(x)`."""


_relu_grad = pointwise(
    "threshold_backward", activation.relu_grad,
    g=lambda gg, out: _relu_grad(gg, out), out=lambda gg: zero_gradient(gg), node_name="ThresholdBackward",
)  # fmt: skip


@elementwise(
    elementary.tanh, x=lambda g, out, x_kept: tanh_backward(g, out, x_kept), complex=HOLOMORPHIC, **_OF_FLOATS
)  # fmt: skip
def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent.

    Example:
        >>> torch.tanh(torch.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """


@elementwise(
    activation.sigmoid,
    x=lambda g, out, x_kept: sigmoid_backward(g, out, x_kept),
    also="special.expit",
    complex=HOLOMORPHIC,
    **_OF_FLOATS,
)
def sigmoid(x: Any) -> Any:
    """Return `1 / (1 + exp(-x))`.

    Example:
        >>> torch.sigmoid(torch.tensor([0.0, 2.0]))
        tensor([0.5000, 0.8808])
    """


@elementwise(
    kernels.relu, refuses="clamp_min_scalar_cpu", x=lambda g, out: _relu_grad(g, out), method=True, in_place="function"
)
def relu(x: Any) -> Any:
    """Return `max(x, 0)`, elementwise.

    Example:
        >>> torch.relu(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
