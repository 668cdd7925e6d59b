"""Elementwise functions and casts."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.fx.onnx.builder import Builder, UnsupportedCall, Value, elementwise, rule, torch
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F

# Functions of one tensor --------------------------------------------------------------------------


# (Ops that have the name of an operator, such as `exp`, need no rule.)
elementwise(operator.neg)(lambda b, x: x.Neg())
elementwise(operator.pos)(lambda b, x: x.Identity())
elementwise(torch.sgn)(lambda b, x: x.Sign())
elementwise(F.softsign)(lambda b, x: x.Softsign())
elementwise(torch.exp2)(lambda b, x: (x * math.log(2)).Exp())
elementwise(torch.log2)(lambda b, x: x.Log() * (1 / math.log(2)))
elementwise(torch.log10)(lambda b, x: x.Log() * (1 / math.log(10)))
elementwise(torch.log1p)(lambda b, x: (x + 1).Log())
elementwise(torch.expm1)(lambda b, x: x.Exp() + -1)
elementwise(torch.deg2rad)(lambda b, x: x.Identity() * (math.pi / 180))
elementwise(torch.rad2deg)(lambda b, x: x.Identity() * (180 / math.pi))
elementwise(torch.rsqrt)(lambda b, x: x.Sqrt().Reciprocal())
elementwise(torch.square)(lambda b, x: x * x)
elementwise(torch.erfc)(lambda b, x: 1 - x.Erf())


def _rounded(kind: str, x: Value) -> Any:
    return x.builder.node(kind if x.dtype.is_floating_point else "Identity", x)


rule(torch.floor)(lambda b, x: _rounded("Floor", x))
rule(torch.ceil)(lambda b, x: _rounded("Ceil", x))


@rule(torch.round)
def _round(b: Builder, x: Value, *, decimals: int = 0) -> Any:
    if not decimals or not x.dtype.is_floating_point:
        return _rounded("Round", x)
    scale = 10.0 ** b.number(decimals, "decimals")
    return (x * scale).Round() / scale


@rule(torch.trunc)
def _trunc(b: Builder, x: Value) -> Any:
    return x.Sign() * x.Abs().Floor() if x.dtype.is_floating_point else x.Identity()


rule(torch.frac)(lambda b, x: x - _trunc(b, x))


@elementwise(torch.sinc)
def _sinc(b: Builder, x: Value) -> Any:
    y = x * math.pi
    return b.where(y.Equal(0), 1, y.Sin() / y)


@rule(torch.logit)
def _logit(b: Builder, x: Value, eps: float | None = None) -> Any:
    x = x.cast(b.out.dtype)
    if eps is not None:
        x = b.where(x < eps, eps, b.where(x > 1 - eps, 1 - eps, x))
    return (x / (1 - x)).Log()


@rule(torch.nan_to_num)
def _nan_to_num(b: Builder, x: Value, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    if not x.dtype.is_floating_point:
        return x.Identity()
    limits = np.finfo(x.dtype.numpy)
    y = b.where(x.IsNaN(), nan or 0.0, x)
    y = b.where(y.IsInf(detect_negative=0), float(limits.max) if posinf is None else posinf, y)
    return b.where(y.IsInf(detect_positive=0), float(limits.min) if neginf is None else neginf, y)


def _floating(x: Value) -> Value:
    return x if x.dtype.is_floating_point else x.cast(dtypes.float32)


rule(torch.isnan)(lambda b, x: _floating(x).IsNaN())
rule(torch.isinf)(lambda b, x: _floating(x).IsInf())
rule(torch.isposinf)(lambda b, x: _floating(x).IsInf(detect_negative=0))
rule(torch.isneginf)(lambda b, x: _floating(x).IsInf(detect_positive=0))


@rule(torch.isfinite)
def _isfinite(b: Builder, x: Value) -> Any:
    y = _floating(x)
    return ~(y.IsNaN() | y.IsInf())


rule(torch.signbit)(lambda b, x: b.refuse("ONNX does not tell -0.0 from 0.0") if x.dtype.is_floating_point else x < 0)


# Arithmetic ---------------------------------------------------------------------------------------


def _scaled(x: Any, factor: Any) -> Any:
    return x if factor == 1 else x * factor


elementwise(torch.add, operator.add, operator.iadd)(lambda b, x, y, *, alpha=1: x + _scaled(y, alpha))
elementwise(torch.sub, operator.sub, operator.isub)(lambda b, x, y, *, alpha=1: x - _scaled(y, alpha))
elementwise(torch.rsub)(lambda b, x, y, *, alpha=1: y - _scaled(x, alpha))
elementwise(torch.mul, operator.mul, operator.imul)(lambda b, x, y: x * y)
elementwise(torch.floor_divide, operator.floordiv, operator.ifloordiv)(lambda b, x, y: x // y)
elementwise(torch.remainder, operator.mod, operator.imod)(lambda b, x, y: x % y)
elementwise(torch.fmod)(lambda b, x, y: x.Mod(y, fmod=1))
elementwise(torch.maximum)(lambda b, x, y: x.Max(y))
elementwise(torch.minimum)(lambda b, x, y: x.Min(y))
elementwise(torch.lerp)(lambda b, x, end, weight: x + weight * (end - x))
elementwise(torch.addcmul)(lambda b, x, tensor1, tensor2, *, value=1: x + tensor1 * tensor2 * value)
elementwise(torch.addcdiv)(lambda b, x, tensor1, tensor2, *, value=1: x + tensor1 / tensor2 * value)
elementwise(torch.hypot)(lambda b, x, y: (x * x + y * y).Sqrt())
elementwise(torch.ldexp)(lambda b, x, y: x * b.cast(2, x.dtype).Pow(y))
elementwise(torch.bitwise_left_shift, operator.lshift)(lambda b, x, y: x * b.cast(2, x.dtype).Pow(y))
elementwise(torch.bitwise_right_shift, operator.rshift)(lambda b, x, y: x // b.cast(2, x.dtype).Pow(y))


@elementwise(torch.div, torch.true_divide, operator.truediv, operator.itruediv)
def _div(b: Builder, x: Value, y: Value, *, rounding_mode: str | None = None) -> Any:
    if rounding_mode == "floor":
        return x // y
    return _trunc(b, x / y) if rounding_mode == "trunc" and x.dtype.is_floating_point else x / y


@rule(torch.pow, operator.pow, operator.ipow)
def _pow(b: Builder, x: Any, y: Any) -> Any:
    base = b.cast(x, b.out.dtype)
    if isinstance(y, (int, float)) and y in (2, 0.5):
        return base * base if y == 2 else base.Sqrt()
    return base.Pow(b.cast(y, b.out.dtype))


def _without_nan(kind: str, b: Builder, x: Value, y: Value) -> Any:
    if not x.dtype.is_floating_point:
        return b.node(kind, x, y)
    result = b.where(y.IsNaN(), x, b.node(kind, x, y))
    return b.where(x.IsNaN(), y, result)


elementwise(torch.fmax)(lambda b, x, y: _without_nan("Max", b, x, y))
elementwise(torch.fmin)(lambda b, x, y: _without_nan("Min", b, x, y))


@elementwise(torch.clamp)
def _clamp(b: Builder, x: Value, min: Any = None, max: Any = None) -> Any:
    for kind, limit in (("Max", min), ("Min", max)):
        x = x if limit is None else b.node(kind, x, b.cast(limit, x.dtype))
    return x


elementwise(torch.clamp_min)(lambda b, x, min: x.Max(b.cast(min, x.dtype)))
elementwise(torch.clamp_max)(lambda b, x, max: x.Min(b.cast(max, x.dtype)))


@elementwise(torch.logaddexp)
def _logaddexp(b: Builder, x: Value, y: Value) -> Any:
    rest = ((-(x - y).Abs()).Exp() + 1).Log()
    return x.Max(y) + rest


@elementwise(torch.logaddexp2)
def _logaddexp2(b: Builder, x: Value, y: Value) -> Any:
    distance = -(x - y).Abs()
    rest = (b.cast(2, x.dtype).Pow(distance) + 1).Log()
    return x.Max(y) + rest * (1 / math.log(2))


@elementwise(torch.xlogy)
def _xlogy(b: Builder, x: Value, y: Value) -> Any:
    product = x * y.Log()
    return b.where(x.Equal(0) & ~y.IsNaN(), 0, product)


@elementwise(torch.atan2)
def _atan2(b: Builder, y: Value, x: Value) -> Any:
    angle, up = (y / x).Atan(), y < 0
    turned = b.where(up, angle - math.pi, angle + math.pi)
    angle = b.where(x < 0, turned, angle)
    half = b.cast(math.pi / 2, x.dtype)
    upright = b.where(up, -half, b.where(y.Equal(0), 0, half))
    return b.where(x.Equal(0), upright, angle)


@elementwise(torch.copysign)
def _copysign(b: Builder, x: Value, y: Value) -> Any:
    size = x.Abs()
    return b.where(y < 0, -size, size)


@rule(torch.heaviside)
def _heaviside(b: Builder, x: Value, values: Value) -> Any:
    step = (x > 0).convert(x.dtype)
    return b.where(x.Equal(0), values, step)


@rule(torch.isclose)
def _isclose(
    b: Builder, x: Value, other: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
) -> Any:  # fmt: skip
    dtype = dtypes.float64 if x.dtype is dtypes.float64 else dtypes.float32
    x, y = x.cast(dtype), other.cast(dtype)
    limit = atol + rtol * y.Abs()
    near = ((x - y).Abs() <= limit) & ~limit.IsInf() | x.Equal(y)
    return near | x.IsNaN() & y.IsNaN() if equal_nan else near


# Comparisons and logic ----------------------------------------------------------------------------


def _comparison(kind: str, *functions: Any) -> None:
    @rule(*functions)
    def write(b: Builder, x: Any, y: Any) -> Any:
        dtype = b.common(x, y)
        if dtype is dtypes.bool and kind != "Equal":
            dtype = dtypes.int32
        return b.node(kind, b.cast(x, dtype), b.cast(y, dtype))


_comparison("Equal", torch.eq, operator.eq)
_comparison("Less", torch.lt, operator.lt)
_comparison("LessOrEqual", torch.le, operator.le)
_comparison("Greater", torch.gt, operator.gt)
_comparison("GreaterOrEqual", torch.ge, operator.ge)


@rule(torch.ne, operator.ne)
def _ne(b: Builder, x: Any, y: Any) -> Any:
    dtype = b.common(x, y)
    return ~b.cast(x, dtype).Equal(b.cast(y, dtype))


def _logical(kind: str, *functions: Any) -> None:
    rule(*functions)(lambda b, *operands: b.node(kind, *[b.cast(x, dtypes.bool) for x in operands]))


_logical("And", torch.logical_and)
_logical("Or", torch.logical_or)
_logical("Xor", torch.logical_xor)
_logical("Not", torch.logical_not)


def _bitwise(kind: str, *functions: Any) -> None:
    """Enter functions of bits, which are another operator where these are truth values."""
    elementwise(*functions)(lambda b, *x: b.node(kind if b.out.dtype is dtypes.bool else f"Bitwise{kind}", *x))


_bitwise("Not", torch.bitwise_not, operator.invert)
_bitwise("And", torch.bitwise_and, operator.and_, operator.iand)
_bitwise("Or", torch.bitwise_or, operator.or_, operator.ior)
_bitwise("Xor", torch.bitwise_xor, operator.xor, operator.ixor)


@rule(torch.where)
def _where(b: Builder, condition: Value, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise UnsupportedCall("the shape of the result depends on values")
    return b.where(b.cast(condition, dtypes.bool), *[b.cast(each, b.out.dtype) for each in (x, y)])


rule(torch.masked_fill)(lambda b, x, mask, value: b.where(mask, b.cast(value, x.dtype), x))

# Activations --------------------------------------------------------------------------------------

rule(F.hardtanh)(lambda b, x, min_val=-1.0, max_val=1.0, inplace=False: x.Clip(min_val, max_val))
rule(F.leaky_relu)(lambda b, x, negative_slope=0.01, inplace=False: x.LeakyRelu(alpha=float(negative_slope)))
rule(F.elu)(lambda b, x, alpha=1.0, inplace=False: x.Elu(alpha=float(alpha)))
rule(F.selu)(lambda b, x, inplace=False: x.Selu())
rule(F.celu)(lambda b, x, alpha=1.0, inplace=False: x.Celu(alpha=float(alpha)))
rule(F.silu)(lambda b, x, inplace=False: x * x.Sigmoid())
rule(F.mish)(lambda b, x, inplace=False: x.Mish())
rule(F.hardswish)(lambda b, x, inplace=False: x.HardSwish())
rule(F.hardsigmoid)(lambda b, x, inplace=False: x.HardSigmoid(alpha=1 / 6, beta=0.5))
rule(F.hardshrink)(lambda b, x, lambd=0.5: b.where(x.Abs() <= lambd, 0, x))
rule(F.threshold)(lambda b, x, threshold, value, inplace=False: b.where(x <= threshold, value, x))
rule(F.logsigmoid)(lambda b, x: -(-x).Softplus())


@rule(F.softshrink)
def _softshrink(b: Builder, x: Value, lambd: float = 0.5) -> Any:
    inside = x.Abs() <= lambd
    return b.where(inside, 0, x - x.Sign() * lambd)


@rule(F.gelu)
def _gelu(b: Builder, x: Value, approximate: str = "none") -> Any:
    if b.opset >= 20:
        return x.Gelu(approximate=approximate)
    if approximate == "tanh":
        part = ((x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)).Tanh()
    else:
        part = (x / math.sqrt(2)).Erf()
    return x * (part + 1) * 0.5


@rule(F.softplus)
def _softplus(b: Builder, x: Value, beta: float = 1.0, threshold: float = 20.0) -> Any:
    scaled = _scaled(x, beta)
    result = scaled.Softplus()
    result = result if beta == 1 else result / beta
    return b.where(scaled > threshold, x, result)


@rule(F.prelu)
def _prelu(b: Builder, x: Value, weight: Value) -> Any:
    if weight.shape != (1,) and x.ndim > 2:
        return x.PRelu(weight.unsqueeze(*range(1, x.ndim - 1)))
    return x.PRelu(weight if x.ndim else weight.squeeze(0))


@rule(F.glu)
def _glu(b: Builder, x: Value, dim: int = -1) -> Any:
    first, second = x.Split(outputs=2, axis=x.dim(dim), num_outputs=2)
    return first * second.Sigmoid()


def _softmaxes(kind: str, of_number: float, *functions: Any) -> None:
    @rule(*functions)
    def write(b: Builder, x: Value, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
        if not isinstance(dim, int):
            raise UnsupportedCall("dim is not given")
        if not x.ndim:
            return b.cast(of_number, b.out.dtype)
        return b.node(kind, x.cast(b.out.dtype), axis=x.dim(dim))


_softmaxes("Softmax", 1.0, torch.softmax, F.softmax)
_softmaxes("LogSoftmax", 0.0, torch.log_softmax, F.log_softmax)


@rule(torch.dropout, F.dropout1d, F.dropout2d,
      F.dropout3d, F.alpha_dropout, F.feature_alpha_dropout,
      torch.feature_dropout, torch.alpha_dropout)  # fmt: skip
def _dropout(b: Builder, x: Value, p: float = 0.5, training: bool = True, inplace: bool = False, **_: Any) -> Any:
    return b.refuse("random numbers are drawn") if training and p else x.Identity()


# Casts --------------------------------------------------------------------------------------------


@rule(Tensor.to, Tensor.type, Tensor.type_as, Tensor.float, Tensor.double, Tensor.half, Tensor.bfloat16,
      Tensor.long, Tensor.int, Tensor.short, Tensor.char, Tensor.byte, Tensor.bool, Tensor.contiguous,
      torch.clone, torch.detach, Tensor.cpu, torch.as_tensor, torch.asarray)  # fmt: skip
def _to(b: Builder, x: Any, *args: Any, **kwargs: Any) -> Any:
    if not isinstance(x, Value):
        raise UnsupportedCall("a tensor is made of something else")
    return x.Identity() if x.dtype == b.out.dtype else x.convert(b.out.dtype)


@rule(getattr)
def _attribute(b: Builder, x: Value, name: str) -> Any:
    if name in ("data", "real"):
        return x.Identity()
    order = list(range(x.ndim))
    if name in ("T", "H"):
        return x.Transpose(perm=order[::-1])
    if name in ("mT", "mH"):
        return x.Transpose(perm=[*order[:-2], *order[:-3:-1]])
    raise UnsupportedCall(f"{name} of a tensor")
