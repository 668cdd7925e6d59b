"""Elementwise functions and casts."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Unsaid, Value, says
from tinytorch.kernels import dtypes

# Functions of one tensor --------------------------------------------------------------------------


def _unary(kind: str, *names: Any) -> None:
    """Enter a function of one tensor that is one operator; integers become floats where the function does that."""

    @says(*names)
    def write(b: Builder, x: Any, **_: Any) -> Any:
        return b.op(kind, b.cast(x, b.out.dtype))


_unary("Exp", "exp")
_unary("Log", "log")
_unary("Sqrt", "sqrt")
_unary("Sin", "sin")
_unary("Cos", "cos")
_unary("Tan", "tan")
_unary("Asin", "asin")
_unary("Acos", "acos")
_unary("Atan", "atan")
_unary("Sinh", "sinh")
_unary("Cosh", "cosh")
_unary("Tanh", "tanh", "nn.functional.tanh")
_unary("Asinh", "asinh")
_unary("Acosh", "acosh")
_unary("Atanh", "atanh")
_unary("Sigmoid", "sigmoid", "nn.functional.sigmoid")
_unary("Erf", "erf")
_unary("Neg", "neg", operator.neg)
_unary("Sign", "sign", "sgn")
_unary("Reciprocal", "reciprocal")
_unary("Softsign", "nn.functional.softsign")
_unary("Identity", "positive", operator.pos)


@says("abs")
def _abs(b: Builder, x: Value) -> Any:
    return b.op("Abs", x)


def _rounding(kind: str, *names: str) -> None:
    @says(*names)
    def write(b: Builder, x: Value) -> Any:
        return b.op(kind, x) if x.dtype.is_floating_point else b.op("Identity", x)


_rounding("Floor", "floor")
_rounding("Ceil", "ceil")


@says("round")
def _round(b: Builder, x: Value, *, decimals: int = 0) -> Any:
    if not x.dtype.is_floating_point:
        return b.op("Identity", x)
    if not decimals:
        return b.op("Round", x)
    scale = b.cast(10.0 ** b.number(decimals, "decimals"), x.dtype)
    return b.op("Div", b.op("Round", b.op("Mul", x, scale)), scale)


@says("trunc")
def _trunc(b: Builder, x: Value) -> Any:
    if not x.dtype.is_floating_point:
        return b.op("Identity", x)
    return b.op("Mul", b.op("Sign", x), b.op("Floor", b.op("Abs", x)))


@says("frac")
def _frac(b: Builder, x: Value) -> Any:
    return b.op("Sub", x, _trunc(b, x))


@says("square")
def _square(b: Builder, x: Value) -> Any:
    return b.op("Mul", x, x)


@says("rsqrt")
def _rsqrt(b: Builder, x: Value) -> Any:
    return b.op("Reciprocal", b.op("Sqrt", b.cast(x, b.out.dtype)))


def _scaled(name: str, kind: str, before: float = 1.0, after: float = 1.0, plus: float = 0.0, add: float = 0.0) -> None:
    """Enter the function `f(x * before + add) * after + plus`."""

    @says(name)
    def write(b: Builder, x: Value) -> Any:
        dtype = b.out.dtype
        y = b.cast(x, dtype)
        if before != 1:
            y = b.op("Mul", y, b.cast(before, dtype))
        if add:
            y = b.op("Add", y, b.cast(add, dtype))
        y = b.op(kind, y)
        if after != 1:
            y = b.op("Mul", y, b.cast(after, dtype))
        return b.op("Add", y, b.cast(plus, dtype)) if plus else y


_scaled("exp2", "Exp", before=math.log(2))
_scaled("log2", "Log", after=1 / math.log(2))
_scaled("log10", "Log", after=1 / math.log(10))
_scaled("log1p", "Log", add=1)
_scaled("expm1", "Exp", plus=-1)
_scaled("deg2rad", "Identity", after=math.pi / 180)
_scaled("rad2deg", "Identity", after=180 / math.pi)


@says("erfc")
def _erfc(b: Builder, x: Value) -> Any:
    return b.op("Sub", b.cast(1, b.out.dtype), b.op("Erf", b.cast(x, b.out.dtype)))


@says("sinc")
def _sinc(b: Builder, x: Value) -> Any:
    dtype = b.out.dtype
    y = b.op("Mul", b.cast(x, dtype), b.cast(math.pi, dtype))
    zero = b.op("Equal", y, b.cast(0, dtype))
    return b.op("Where", zero, b.cast(1, dtype), b.op("Div", b.op("Sin", y), y))


@says("logit")
def _logit(b: Builder, x: Value, eps: float | None = None) -> Any:
    dtype = b.out.dtype
    y = b.cast(x, dtype)
    if eps is not None:
        low, high = b.cast(eps, dtype), b.cast(1 - eps, dtype)
        y = b.op("Where", b.op("Less", y, low), low, b.op("Where", b.op("Greater", y, high), high, y))
    return b.op("Log", b.op("Div", y, b.op("Sub", b.cast(1, dtype), y)))


@says("nan_to_num")
def _nan_to_num(b: Builder, x: Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not x.dtype.is_floating_point:
        return b.op("Identity", x)
    limits = np.finfo(x.dtype.numpy)
    low, high = [b.cast(given, x.dtype) for given in (
        limits.min if neginf is None else neginf, limits.max if posinf is None else posinf,
    )]  # fmt: skip
    y = b.op("Where", b.op("IsNaN", x), b.cast(nan or 0.0, x.dtype), x)
    y = b.op("Where", b.op("IsInf", y, detect_negative=0), high, y)
    return b.op("Where", b.op("IsInf", y, detect_positive=0), low, y)


@says("isnan")
def _isnan(b: Builder, x: Value) -> Any:
    return b.op("IsNaN", x if x.dtype.is_floating_point else b.cast(x, dtypes.float32))


def _infinite(name: str, **which: int) -> None:
    @says(name)
    def write(b: Builder, x: Value) -> Any:
        return b.op("IsInf", x if x.dtype.is_floating_point else b.cast(x, dtypes.float32), **which)


_infinite("isinf")
_infinite("isposinf", detect_negative=0)
_infinite("isneginf", detect_positive=0)


@says("isfinite")
def _isfinite(b: Builder, x: Value) -> Any:
    y = x.name if x.dtype.is_floating_point else b.cast(x, dtypes.float32)
    return b.op("Not", b.op("Or", b.op("IsNaN", y), b.op("IsInf", y)))


@says("signbit")
def _signbit(b: Builder, x: Value) -> Any:
    if x.dtype.is_floating_point:
        b.refuse("ONNX does not tell -0.0 from 0.0")
    return b.op("Less", x, b.cast(0, x.dtype))


# Arithmetic ---------------------------------------------------------------------------------------


def _operands(b: Builder, dtype: Any, *operands: Any) -> list[str]:
    return [b.cast(x, dtype) for x in operands]


def _arithmetic(kind: str, *names: Any) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any, *, alpha: Any = 1) -> Any:
        first, second = _operands(b, b.out.dtype, x, y)
        if alpha != 1:
            second = b.op("Mul", second, b.cast(alpha, b.out.dtype))
        if b.out.dtype is dtypes.bool:
            logic = {"Add": "Or", "Mul": "And"}.get(kind)
            return b.op(logic, first, second) if logic else b.refuse("truth values are subtracted")
        return b.op(kind, first, second)


_arithmetic("Add", "add", operator.add, operator.iadd)
_arithmetic("Sub", "sub", operator.sub, operator.isub)
_arithmetic("Mul", "mul", operator.mul, operator.imul)


@says("rsub")
def _rsub(b: Builder, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    return b.op("Sub", second, first if alpha == 1 else b.op("Mul", first, b.cast(alpha, b.out.dtype)))


def _quotient(b: Builder, x: str, y: str, dtype: Any) -> Any:
    """Return a quotient that is rounded down."""
    if dtype.is_floating_point:
        return b.op("Floor", b.op("Div", x, y))
    return b.op("Div", b.op("Sub", x, b.op("Mod", x, y)), y)


@says("div", "true_divide", operator.truediv, operator.itruediv)
def _div(b: Builder, x: Any, y: Any, *, rounding_mode: str | None = None) -> Any:
    dtype = b.out.dtype
    first, second = _operands(b, dtype, x, y)
    if rounding_mode == "floor":
        return _quotient(b, first, second, dtype)
    result = b.op("Div", first, second)
    if rounding_mode == "trunc" and dtype.is_floating_point:
        return _trunc(b, Value(result, (), dtype))
    return result


@says("floor_divide", operator.floordiv, operator.ifloordiv)
def _floor_divide(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    return _quotient(b, first, second, b.out.dtype)


@says("remainder", operator.mod, operator.imod)
def _remainder(b: Builder, x: Any, y: Any) -> Any:
    dtype = b.out.dtype
    first, second = _operands(b, dtype, x, y)
    if not dtype.is_floating_point:
        return b.op("Mod", first, second)
    return b.op("Sub", first, b.op("Mul", b.op("Floor", b.op("Div", first, second)), second))


@says("fmod")
def _fmod(b: Builder, x: Any, y: Any) -> Any:
    return b.op("Mod", *_operands(b, b.out.dtype, x, y), fmod=1)


@says("pow", operator.pow, operator.ipow)
def _pow(b: Builder, x: Any, y: Any) -> Any:
    if isinstance(y, (int, float)) and y == 2:
        first = b.cast(x, b.out.dtype)
        return b.op("Mul", first, first)
    if isinstance(y, (int, float)) and y == 0.5:
        return b.op("Sqrt", b.cast(x, b.out.dtype))
    return b.op("Pow", *_operands(b, b.out.dtype, x, y))


@says("float_power")
def _float_power(b: Builder, x: Any, y: Any) -> Any:
    return b.op("Pow", *_operands(b, b.out.dtype, x, y))


def _extremum(kind: str, *names: str) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any) -> Any:
        return b.op(kind, *_operands(b, b.out.dtype, x, y))


_extremum("Max", "maximum")
_extremum("Min", "minimum")


def _without_nan(kind: str, name: str) -> None:
    @says(name)
    def write(b: Builder, x: Any, y: Any) -> Any:
        first, second = _operands(b, b.out.dtype, x, y)
        if not b.out.dtype.is_floating_point:
            return b.op(kind, first, second)
        result = b.op("Where", b.op("IsNaN", second), first, b.op(kind, first, second))
        return b.op("Where", b.op("IsNaN", first), second, result)


_without_nan("Max", "fmax")
_without_nan("Min", "fmin")


@says("clamp", "clip")
def _clamp(b: Builder, x: Value, min: Any = None, max: Any = None) -> Any:
    y = b.cast(x, b.out.dtype)
    for kind, limit in (("Max", min), ("Min", max)):
        if limit is not None:
            y = b.op(kind, y, b.cast(limit, b.out.dtype))
    return y


@says("clamp_min")
def _clamp_min(b: Builder, x: Value, min: Any) -> Any:
    return _clamp(b, x, min)


@says("clamp_max")
def _clamp_max(b: Builder, x: Value, max: Any) -> Any:
    return _clamp(b, x, None, max)


@says("lerp")
def _lerp(b: Builder, x: Value, end: Value, weight: Any) -> Any:
    first, last, part = _operands(b, b.out.dtype, x, end, weight)
    return b.op("Add", first, b.op("Mul", part, b.op("Sub", last, first)))


@says("addcmul")
def _addcmul(b: Builder, x: Value, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    first, one, two, scale = _operands(b, b.out.dtype, x, tensor1, tensor2, value)
    return b.op("Add", first, b.op("Mul", b.op("Mul", one, two), scale))


@says("addcdiv")
def _addcdiv(b: Builder, x: Value, tensor1: Any, tensor2: Any, *, value: Any = 1) -> Any:
    first, one, two, scale = _operands(b, b.out.dtype, x, tensor1, tensor2, value)
    return b.op("Add", first, b.op("Mul", b.op("Div", one, two), scale))


@says("hypot")
def _hypot(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    return b.op("Sqrt", b.op("Add", b.op("Mul", first, first), b.op("Mul", second, second)))


@says("logaddexp")
def _logaddexp(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    distance = b.op("Neg", b.op("Abs", b.op("Sub", first, second)))
    rest = b.op("Log", b.op("Add", b.op("Exp", distance), b.cast(1, b.out.dtype)))
    return b.op("Add", b.op("Max", first, second), rest)


@says("xlogy", "special.xlogy")
def _xlogy(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    zero = b.cast(0, b.out.dtype)
    product = b.op("Mul", first, b.op("Log", second))
    return b.op("Where", b.op("And", b.op("Equal", first, zero), b.op("Not", b.op("IsNaN", second))), zero, product)


@says("atan2")
def _atan2(b: Builder, y: Any, x: Any) -> Any:
    dtype = b.out.dtype
    first, second = _operands(b, dtype, y, x)
    zero, pi, half = [b.cast(number, dtype) for number in (0, math.pi, math.pi / 2)]
    angle = b.op("Atan", b.op("Div", first, second))
    up = b.op("Less", first, zero)
    turned = b.op("Where", up, b.op("Sub", angle, pi), b.op("Add", angle, pi))
    angle = b.op("Where", b.op("Less", second, zero), turned, angle)
    upright = b.op("Where", up, b.op("Neg", half), b.op("Where", b.op("Equal", first, zero), zero, half))
    return b.op("Where", b.op("Equal", second, zero), upright, angle)


@says("copysign")
def _copysign(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    size, zero = b.op("Abs", first), b.cast(0, b.out.dtype)
    return b.op("Where", b.op("Less", second, zero), b.op("Neg", size), size)


def _shift(direction: str, *names: Any) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any) -> Any:
        first, second = _operands(b, b.out.dtype, x, y)
        factor = b.op("Pow", b.cast(2, b.out.dtype), second)
        return b.op("Mul", first, factor) if direction == "LEFT" else _quotient(b, first, factor, b.out.dtype)


_shift("LEFT", "bitwise_left_shift", operator.lshift)
_shift("RIGHT", "bitwise_right_shift", operator.rshift)


@says("ldexp")
def _ldexp(b: Builder, x: Any, y: Any) -> Any:
    first, second = _operands(b, b.out.dtype, x, y)
    return b.op("Mul", first, b.op("Pow", b.cast(2, b.out.dtype), second))


@says("heaviside")
def _heaviside(b: Builder, x: Value, values: Value) -> Any:
    zero = b.cast(0, x.dtype)
    step = b.op("Cast", b.op("Greater", x, zero), to=b.type_of(x.dtype))
    return b.op("Where", b.op("Equal", x, zero), values, step)


@says("logaddexp2")
def _logaddexp2(b: Builder, x: Any, y: Any) -> Any:
    dtype = b.out.dtype
    first, second = _operands(b, dtype, x, y)
    distance = b.op("Neg", b.op("Abs", b.op("Sub", first, second)))
    rest = b.op("Log", b.op("Add", b.op("Pow", b.cast(2, dtype), distance), b.cast(1, dtype)))
    return b.op("Add", b.op("Max", first, second), b.op("Mul", rest, b.cast(1 / math.log(2), dtype)))


@says("isclose")
def _isclose(
    b: Builder, x: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:  # fmt: skip
    dtype = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    first, second = _operands(b, dtype, x, other)
    limit = b.op("Add", b.cast(atol, dtype), b.op("Mul", b.cast(rtol, dtype), b.op("Abs", second)))
    gap = b.op("Abs", b.op("Sub", first, second))
    near = b.op("And", b.op("LessOrEqual", gap, limit), b.op("Not", b.op("IsInf", limit)))
    near = b.op("Or", near, b.op("Equal", first, second))
    if not equal_nan:
        return near
    return b.op("Or", near, b.op("And", b.op("IsNaN", first), b.op("IsNaN", second)))


# Comparisons and logic ----------------------------------------------------------------------------


def _comparison(kind: str, *names: Any) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any) -> Any:
        dtype = b.common(x, y)
        if dtype is dtypes.bool and kind != "Equal":
            dtype = dtypes.int32
        first, second = _operands(b, dtype, x, y)
        return b.op(kind, first, second)


_comparison("Equal", "eq", operator.eq)
_comparison("Less", "lt", operator.lt)
_comparison("LessOrEqual", "le", operator.le)
_comparison("Greater", "gt", operator.gt)
_comparison("GreaterOrEqual", "ge", operator.ge)


@says("ne", operator.ne)
def _ne(b: Builder, x: Any, y: Any) -> Any:
    return b.op("Not", b.op("Equal", *_operands(b, b.common(x, y), x, y)))


def _truth(b: Builder, x: Any) -> str:
    """Return whether numbers are not zero."""
    if not isinstance(x, Value):
        return b.constant(np.array(bool(x)))
    return b.cast(x, dtypes.bool)


def _logical(kind: str, *names: Any) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any) -> Any:
        return b.op(kind, _truth(b, x), _truth(b, y))


_logical("And", "logical_and")
_logical("Or", "logical_or")
_logical("Xor", "logical_xor")


@says("logical_not")
def _logical_not(b: Builder, x: Value) -> Any:
    return b.op("Not", _truth(b, x))


@says("bitwise_not", operator.invert)
def _bitwise_not(b: Builder, x: Value) -> Any:
    return b.op("Not" if x.dtype is dtypes.bool else "BitwiseNot", x)


def _bitwise(kind: str, *names: Any) -> None:
    @says(*names)
    def write(b: Builder, x: Any, y: Any) -> Any:
        first, second = _operands(b, b.out.dtype, x, y)
        return b.op(kind if b.out.dtype is dtypes.bool else f"Bitwise{kind}", first, second)


_bitwise("And", "bitwise_and", operator.and_, operator.iand)
_bitwise("Or", "bitwise_or", operator.or_, operator.ior)
_bitwise("Xor", "bitwise_xor", operator.xor, operator.ixor)


@says("where")
def _where(b: Builder, condition: Value, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise Unsaid("the shape of the result depends on values")
    return b.op("Where", _truth(b, condition), *_operands(b, b.out.dtype, x, y))


@says("Tensor.where")
def _where_method(b: Builder, x: Value, condition: Value, other: Any) -> Any:
    return _where(b, condition, x, other)


@says("masked_fill")
def _masked_fill(b: Builder, x: Value, mask: Value, value: Any) -> Any:
    return b.op("Where", mask, b.cast(value, x.dtype), x)


# Activations --------------------------------------------------------------------------------------


@says("relu", "nn.functional.relu")
def _relu(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("Relu", x)


@says("nn.functional.relu6")
def _relu6(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("Clip", x, b.cast(0, x.dtype), b.cast(6, x.dtype))


@says("nn.functional.hardtanh")
def _hardtanh(b: Builder, x: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    return b.op("Clip", x, b.cast(min_val, x.dtype), b.cast(max_val, x.dtype))


@says("nn.functional.leaky_relu")
def _leaky_relu(b: Builder, x: Value, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    return b.op("LeakyRelu", x, alpha=float(negative_slope))


@says("nn.functional.elu")
def _elu(b: Builder, x: Value, alpha: float = 1.0, inplace: bool = False) -> Any:
    return b.op("Elu", x, alpha=float(alpha))


@says("nn.functional.selu", "selu")
def _selu(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("Selu", x)


@says("nn.functional.celu", "celu")
def _celu(b: Builder, x: Value, alpha: float = 1.0, inplace: bool = False) -> Any:
    return b.op("Celu", x, alpha=float(alpha))


@says("nn.functional.gelu")
def _gelu(b: Builder, x: Value, approximate: str = "none") -> Any:
    if b.opset >= 20:
        return b.op("Gelu", x, approximate=approximate)
    half, one = b.cast(0.5, x.dtype), b.cast(1, x.dtype)
    if approximate == "tanh":
        cube = b.op("Mul", b.op("Mul", x, x), x)
        inner = b.op("Add", x, b.op("Mul", cube, b.cast(0.044715, x.dtype)))
        part = b.op("Tanh", b.op("Mul", inner, b.cast(math.sqrt(2 / math.pi), x.dtype)))
    else:
        part = b.op("Erf", b.op("Div", x, b.cast(math.sqrt(2), x.dtype)))
    return b.op("Mul", b.op("Mul", x, b.op("Add", part, one)), half)


@says("nn.functional.silu")
def _silu(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("Mul", x, b.op("Sigmoid", x))


@says("nn.functional.mish")
def _mish(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("Mish", x)


@says("nn.functional.hardswish")
def _hardswish(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("HardSwish", x)


@says("nn.functional.hardsigmoid")
def _hardsigmoid(b: Builder, x: Value, inplace: bool = False) -> Any:
    return b.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)


@says("nn.functional.hardshrink", "hardshrink")
def _hardshrink(b: Builder, x: Value, lambd: float = 0.5) -> Any:
    inside = b.op("LessOrEqual", b.op("Abs", x), b.cast(lambd, x.dtype))
    return b.op("Where", inside, b.cast(0, x.dtype), x)


@says("nn.functional.softshrink")
def _softshrink(b: Builder, x: Value, lambd: float = 0.5) -> Any:
    inside = b.op("LessOrEqual", b.op("Abs", x), b.cast(lambd, x.dtype))
    outside = b.op("Sub", x, b.op("Mul", b.op("Sign", x), b.cast(lambd, x.dtype)))
    return b.op("Where", inside, b.cast(0, x.dtype), outside)


@says("nn.functional.tanhshrink")
def _tanhshrink(b: Builder, x: Value) -> Any:
    y = b.cast(x, b.out.dtype)
    return b.op("Sub", y, b.op("Tanh", y))


@says("nn.functional.threshold", "threshold")
def _threshold(b: Builder, x: Value, threshold: float, value: float, inplace: bool = False) -> Any:
    below = b.op("LessOrEqual", x, b.cast(threshold, x.dtype))
    return b.op("Where", below, b.cast(value, x.dtype), x)


@says("nn.functional.softplus")
def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = x.name if beta == 1 else b.op("Mul", x, b.cast(beta, x.dtype))
    result = b.op("Softplus", scaled)
    result = result if beta == 1 else b.op("Div", result, b.cast(beta, x.dtype))
    return b.op("Where", b.op("Greater", scaled, b.cast(threshold, x.dtype)), x, result)


@says("nn.functional.logsigmoid")
def _logsigmoid(b: Builder, x: Value) -> Any:
    return b.op("Neg", b.op("Softplus", b.op("Neg", x)))


@says("nn.functional.prelu", "prelu")
def _prelu(b: Builder, x: Value, weight: Value) -> Any:
    if weight.shape != (1,) and x.ndim > 2:
        return b.op("PRelu", x, b.unsqueezed(weight, *range(1, x.ndim - 1)))
    return b.op("PRelu", x, weight if x.ndim else b.squeezed(weight, 0))


@says("nn.functional.glu")
def _glu(b: Builder, x: Value, dim: int = -1) -> Any:
    first, second = b.op("Split", x, outputs=2, axis=x.dim(dim), num_outputs=2)
    return b.op("Mul", first, b.op("Sigmoid", second))


def _softmaxes(kind: str, *names: str) -> None:
    @says(*names)
    def write(b: Builder, x: Value, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        if not isinstance(dim, int):
            raise Unsaid("dim is not given")
        return b.op(kind, b.cast(x, b.out.dtype), axis=x.dim(dim) if x.ndim else -1) if x.ndim else _of_number(b, kind)


def _of_number(b: Builder, kind: str) -> str:
    return b.cast(0.0 if kind == "LogSoftmax" else 1.0, b.out.dtype)


_softmaxes("Softmax", "softmax", "nn.functional.softmax", "special.softmax")
_softmaxes("LogSoftmax", "log_softmax", "nn.functional.log_softmax", "special.log_softmax")


@says("nn.functional.softmin")
def _softmin(b: Builder, x: Value, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    if not isinstance(dim, int):
        raise Unsaid("dim is not given")
    if not x.ndim:
        return _of_number(b, "Softmax")
    return b.op("Softmax", b.op("Neg", b.cast(x, b.out.dtype)), axis=x.dim(dim))


@says("dropout", "nn.functional.dropout", "nn.functional.dropout1d", "nn.functional.dropout2d",
      "nn.functional.dropout3d", "nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout",
      "feature_dropout", "alpha_dropout")  # fmt: skip
def _dropout(b: Builder, x: Value, p: float = 0.5, training: bool = True, inplace: bool = False, **_: Any) -> Any:
    if training and p:
        raise Unsaid("random numbers are drawn")
    return b.op("Identity", x)


# Casts --------------------------------------------------------------------------------------------


@says("Tensor.to", "Tensor.type", "Tensor.type_as", "Tensor.float", "Tensor.double", "Tensor.half", "Tensor.bfloat16",
      "Tensor.long", "Tensor.int", "Tensor.short", "Tensor.char", "Tensor.byte", "Tensor.bool", "Tensor.contiguous",
      "clone", "detach", "Tensor.cpu", "as_tensor", "asarray")  # fmt: skip
def _to(b: Builder, x: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(x, Value):
        raise Unsaid("a tensor is made of something else")
    return b.op("Identity", x) if x.dtype == b.out.dtype else b.cast(x, b.out.dtype)


@says(getattr)
def _attribute(b: Builder, x: Value, name: str) -> Any:
    if name in ("data", "real"):
        return b.op("Identity", x)
    if name in ("T", "mT", "H", "mH"):
        order = list(range(x.ndim))
        order = order[::-1] if name in ("T", "H") else [*order[:-2], x.ndim - 1, x.ndim - 2]
        return b.op("Transpose", x, perm=order)
    raise Unsaid(f"{name} of a tensor")


__all__: list[str] = []
