"""Elementwise ops: arithmetic, absolute value, sign, rounding, bounds.

Each op is one declaration: its kernel, and for each argument the formula of its gradient.
"""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.layout import strided
from tinytorch.core.mode import short, tell_of_reading
from tinytorch.core.op import op
from tinytorch.core.supplied import sparse
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.unusual import refuse_booleans
from tinytorch.core.warning import warn
from tinytorch.kernels import arithmetic, dtypes, limits
from tinytorch.kernels.checks import plain, refused
from tinytorch.kernels.silence import cast
from tinytorch.ops.arguments import also_by, elementwise, not_implemented, op_of
from tinytorch.ops.compare import isfinite, isnan, logical_and
from tinytorch.ops.register import no_such_call, pointwise, public

#: Declaration arguments that several ops share.
_OF_ONE: dict[str, Any] = {"method": True, "in_place": "function", "out": "same"}
_OF_TENSORS: dict[str, Any] = {"method": True, "out": "promoted", "of_tensors": True}


def zero_gradient(g: Tensor) -> Tensor:
    """Return the gradient of a function that is constant almost everywhere."""
    return constant(np.zeros_like(g._array))


kept = op(batch="elementwise", name="Where", x=lambda g, mask: kept(g, mask), mask=None, complex=OWN)(arithmetic.kept)


def _alike(*operands: Any) -> list[Any]:
    """Return the operands, tensors among them converted to the result dtype of PyTorch's type promotion."""
    given = operands[0]._array.dtype if isinstance(operands[0], Tensor) else None
    for each in operands:
        if not isinstance(each, Tensor) or each._array.dtype is not given:
            break
    else:  # the most frequent case
        return [*operands]
    kind = dtypes.result_dtype(
        *[
            (each.dtype, 2 if each.ndim else 1) if isinstance(each, Tensor) else (dtypes.of_number(each), 0)
            for each in operands
            if each is not None
        ]
    )
    return [each.to(kind) if isinstance(each, Tensor) else each for each in operands]


def _alike_or_none(x: Tensor, *bounds: Any) -> list[Any]:
    """As `_alike`, with None among the operands; numbers become 0-d tensors of the common dtype."""
    given = _alike(x, *bounds)
    kind = given[0].dtype
    for k, each in enumerate(given):
        if each is not None and not isinstance(each, Tensor):
            given[k] = constant(cast(np.asarray(limits.fits(each, kind)), kind.numpy))
    return given


# Arithmetic ---------------------------------------------------------------------------------------


@elementwise(
    np.add, name="add", refuses="add_stub", complex=OWN, of_floats=arithmetic.add, x=lambda g: g, y=lambda g: g,
)  # fmt: skip
def plus(x: Any, y: Any) -> Any:
    """Return `x + y`."""


@elementwise(
    np.subtract, name="sub", refuses="add_stub", of_floats=arithmetic.subtract, complex=OWN, x=lambda g: g,
    y=lambda g: -g,
)  # fmt: skip
def minus(x: Any, y: Any) -> Any:
    """Return `x - y`."""


@elementwise(
    np.multiply, complex=HOLOMORPHIC, of_floats=arithmetic.multiply, in_float32=True, x=lambda g, y: g * y,
    y=lambda g, x: g * x, also="multiply", method=True, in_place=True, out="promoted",
)  # fmt: skip
def mul(x: Any, y: Any) -> Any:
    """Return `x * y`, elementwise with broadcasting.

    Example:
        >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
        tensor([3., 6.])
    """


@elementwise(
    np.true_divide, name="div", complex=HOLOMORPHIC, of_floats=arithmetic.divide, floating=True, in_float32=True,
    public="true_divide", method=True, in_place=True, out="promoted", x=lambda g, y: g / y,
    # (Uses the inputs, as PyTorch does, and not the output, which a program may overwrite.)
    y=lambda g, x, y: -g * (x / y / y),
)  # fmt: skip
def true_divide(x: Any, y: Any) -> Any:
    """Return `x / y`; integers are divided as floating-point numbers.

    Example:
        >>> torch.true_divide(torch.tensor([3, 5]), 2)
        tensor([1.5000, 2.5000])
    """


@elementwise(arithmetic.negative, refuses="neg_cpu", complex=OWN, x=lambda g: -g, also="negative", **_OF_ONE)
def neg(x: Any) -> Any:
    """Return `-x`.

    Example:
        >>> torch.neg(torch.tensor([1.0, -2.0]))
        tensor([-1.,  2.])
    """


_plus_scaled = op_of(
    arithmetic.plus_scaled, refuses="add_stub", name="Add", broadcasts=True, complex=HOLOMORPHIC,
    x=lambda g: g, y=lambda g, alpha: g * alpha,
)  # fmt: skip
_minus_scaled = op_of(
    arithmetic.minus_scaled, refuses="add_stub", name="Sub", broadcasts=True, complex=HOLOMORPHIC,
    x=lambda g: g, y=lambda g, alpha: -g * alpha,
)  # fmt: skip


@public(method=True, out="promoted")
@short("plus_scaled", plus, _plus_scaled, np.multiply, np.add)
def add(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """Return `input + alpha * other`, elementwise with broadcasting.

    Example:
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.])
    """
    if type(alpha) is int and alpha == 1:
        return plus(input, other)
    other, alpha = factor("add", input, other, alpha)
    if alpha == 1:
        return plus(input, other)
    return _plus_scaled(*_alike(input, other), alpha)


@public(also="subtract", method=True, out="promoted")
@short("plus_scaled", minus, _minus_scaled, np.multiply, np.subtract)
def sub(input: Any, other: Any, alpha: Any = 1) -> Tensor:
    """Return `input - alpha * other`, elementwise with broadcasting.

    Example:
        >>> torch.sub(torch.tensor([1.0, 2.0]), 1)
        tensor([0., 1.])
    """
    if type(alpha) is int and alpha == 1:
        return minus(input, other)
    refuse_booleans(input, other)
    other, alpha = factor("sub", input, other, alpha)
    if alpha == 1:
        return minus(input, other)
    return _minus_scaled(*_alike(input, other), alpha)


@public(forms=("Tensor input, Tensor other, *, Number alpha = 1", "Tensor input, Number other, Number alpha = 1"))
def rsub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """Return `other - alpha * input`.

    Example:
        >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
        tensor([9., 8.])
    """
    kind = type(other)
    if input.dtype.is_floating_point and (kind is builtins.float or kind is builtins.int):
        return _number_less(input, other, plain("rsub", "alpha", alpha))
    refuse_booleans(input, other)
    other, alpha = factor("rsub", input, other, plain("rsub", "alpha", alpha))
    if alpha == 1 and not isinstance(other, Tensor):
        return minus(other, input)
    out = _from_scaled(*_alike(input, other), alpha)
    return out


_from_scaled = op_of(
    arithmetic.from_scaled, refuses="add_stub", name="Rsub", broadcasts=True, complex=HOLOMORPHIC,
    own_layout=True, x=lambda g, alpha: -g * alpha, y=lambda g: g,
)  # fmt: skip
_number_less = op_of(
    arithmetic.number_less, batch="elementwise", complex=HOLOMORPHIC, name="RsubBackward1",
    x=lambda g, alpha: -g if alpha == 1 else -g * alpha,
)  # fmt: skip


def scaled(name: str, input: Any, other: Any, alpha: Any) -> Any:
    """Return `alpha * other`, to be added to `input` in place."""
    other, alpha = factor(name, input, other, alpha)
    if alpha == 1:
        return other
    if type(other) is bool and input.dtype is dtypes.bool:
        return other and bool(alpha)
    if isinstance(other, Tensor) and (other.dtype is not input.dtype or other.dtype is dtypes.bool):
        other = _alike(input, other)[1]
        if other.dtype is dtypes.bool:
            return logical_and(other, wrap(np.asarray(bool(alpha))))
    return other * alpha


def factor(name: str, input: Any, other: Any, alpha: Any) -> tuple[Any, Any]:
    """Return `other` and its factor `alpha`, checked.

    The two may be in the order of PyTorch's deprecated overload `x.add_(2, y)`.
    """
    kind = type(alpha)
    if isinstance(other, np.generic):
        other = other.item()
    if kind is int:
        return other, alpha
    if kind is not float:
        if isinstance(alpha, Tensor) and (
            not isinstance(other, Tensor) or (alpha._array.ndim and not other._array.ndim)
        ):
            _older_call(name, "Number alpha, Tensor other", "Tensor other, *, Number alpha = 1")
            other, alpha = alpha, other
        alpha = plain(name, "alpha", alpha)
        if isinstance(alpha, bool) and any(
            (each.dtype if isinstance(each, Tensor) else dtypes.of_number(each)) is not dtypes.bool
            for each in (input, other)
        ):
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, complex) and not any(
        each.dtype.is_complex if isinstance(each, Tensor) else isinstance(each, complex) for each in (input, other)
    ):
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if isinstance(alpha, float) and all(
        each.dtype.category < dtypes.FLOATING if isinstance(each, Tensor) else not isinstance(each, (float, complex))
        for each in (input, other)
    ):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    return other, alpha


def factor_of_products(name: str, input: Tensor, tensor1: Any, tensor2: Any, value: Any) -> tuple[Any, Any, Any]:
    """Return the factors of `addcmul` and `addcdiv`, reordered if a call uses PyTorch's deprecated overload."""
    if isinstance(value, Tensor) and (
        not isinstance(tensor1, Tensor) or (value._array.ndim and not tensor1._array.ndim)
    ):
        both = "Tensor tensor1, Tensor tensor2"
        _older_call(name, f"Number value, {both}", f"{both}, *, Number value = 1")
        tensor1, tensor2, value = tensor2, value, tensor1
    value = plain(name, "value", value)
    if isinstance(value, complex):
        operands = [each.dtype for each in (input, tensor1, tensor2) if isinstance(each, Tensor)]
        if not any(kind.is_complex for kind in operands):
            value = limits.fits(value, input.dtype)
    return tensor1, tensor2, value


_warned = False


def _older_call(name: str, old: str, new: str) -> None:
    """Warn once about a call with the argument order of early versions of PyTorch."""
    global _warned
    if _warned:
        return
    _warned = True
    if not name.endswith("_"):
        old, new = (f"Tensor input, {old}, *, Tensor out = None", f"Tensor input, {new}, Tensor out = None")
    warn(
        f"This overload of {name} is deprecated:\n\t{name}({old})\n"
        f"Consider using one of the following signatures instead:\n\t{name}({new})",
        UserWarning,
    )


@public(method=True, in_place=True, out="promoted")
@elementwise(
    arithmetic.floor_divide, refuses="div_floor_cpu", in_float32=True, x=not_implemented("floor_divide"),
    y=not_implemented("floor_divide"), node_name="NotImplemented",
)  # fmt: skip
def floor_divide(x: Any, y: Any) -> Any:
    """Return `floor(x / y)`, elementwise: rounded towards minus infinity. RuntimeError for an integer divided by 0.

    Example:
        >>> torch.floor_divide(torch.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """


_div_trunc, _div_floor = (
    pointwise("div", kernel, node_name="DivBackward2", refuses=name, in_float32=True, x=zero_gradient, y=zero_gradient)
    for kernel, name in ((arithmetic.trunc_divide, "div_trunc_cpu"), (arithmetic.floor_divide, "div_floor_cpu"))
)


@elementwise(
    arithmetic.remainder, refuses="remainder_cpu", x=lambda g: g, y=lambda g, x, y: -g * _div_floor(x, y), method=True,
    in_place=True, out="promoted", operands="number first",
)  # fmt: skip
def remainder(x: Any, y: Any) -> Any:
    """Return the remainder of `x / y` with the sign of `y`, as Python's `%`. RuntimeError for an integer divided by 0.

    Example:
        >>> torch.remainder(torch.tensor([-3.0, 3.0]), 2)
        tensor([1., 1.])
    """


@elementwise(
    arithmetic.fmod, refuses="fmod_cpu", x=lambda g: g, y=lambda g, x, y: -g * _div_trunc(x, y), method=True,
    in_place=True, out="promoted", operands="tensor first",
)  # fmt: skip
def fmod(x: Any, y: Any) -> Any:
    """Return the remainder of `x / y` with the sign of `x`, as C's `fmod`. RuntimeError for an integer divided by 0.

    Example:
        >>> torch.fmod(torch.tensor([-3.0, 3.0]), 2)
        tensor([-1.,  1.])
    """


@public(also="divide", method=True, out="promoted")
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return `input / other`, rounded towards zero for `rounding_mode` "trunc", down for "floor".

    RuntimeError: another mode; an integer is divided by zero.

    Example:
        >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="trunc")
        tensor([ 3, -3])
    """
    if rounding_mode is None:
        return true_divide(input, other)
    if isinstance(input, Tensor) and input.layout is not strided:  # (the ops do not tell the rule of the rounding)
        return sparse.of_sparse("div", (input, other), {"rounding_mode": rounding_mode})
    if rounding_mode == "trunc":
        return _div_trunc(input, other)
    if rounding_mode == "floor":
        return _div_floor(input, other)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


# Absolute value, sign, rounding -------------------------------------------------------------------


@elementwise(arithmetic.sign, refuses="sign_cpu", x=lambda g: zero_gradient(g), method=True, in_place=True, out="same")
def sign(x: Any) -> Any:
    """Return -1, 0 or 1: the sign of x.

    Example:
        >>> torch.sign(torch.tensor([-2.5, 0.0, 3.0]))
        tensor([-1.,  0.,  1.])
    """


def _sgn_x(g: Tensor, x: Tensor) -> Tensor:
    if x._array.dtype.kind != "c":
        return zero_gradient(g)
    # The part of g that is orthogonal to x, divided by abs(x).
    return (g - (g * sgn(x).conj()).real * sgn(x)).div(x.abs()).masked_fill(x == 0, 0)


@elementwise(arithmetic.sgn, refuses="sign_cpu", x=_sgn_x, complex=OWN, method=True, in_place=True, out="same")
def sgn(x: Any) -> Any:
    """Return the sign of x, as `sign`; of complex numbers `x / abs(x)`, 0 for 0.

    Example:
        >>> torch.sgn(torch.tensor([-2.5, 0.0, 3.0]))
        tensor([-1.,  0.,  1.])
    """


@elementwise(arithmetic.absolute, refuses="abs_cpu", complex=OWN, x=lambda g, x: g * sgn(x), **_OF_ONE)
def abs(x: Any) -> Any:
    """Return the absolute value; its gradient at 0 is 0.

    Example:
        >>> torch.abs(torch.tensor([-1.5, 2.0]))
        tensor([1.5000, 2.0000])
    """


public("absolute", method=True, in_place=True, out="same")(abs)


@elementwise(arithmetic.floor, x=lambda g: zero_gradient(g), **_OF_ONE)
def floor(x: Any) -> Any:
    """Return the largest integer not greater than x.

    Example:
        >>> torch.floor(torch.tensor([-0.5, 1.7]))
        tensor([-1.,  1.])
    """


@elementwise(arithmetic.ceil, x=lambda g: zero_gradient(g), **_OF_ONE)
def ceil(x: Any) -> Any:
    """Return the smallest integer not less than x.

    Example:
        >>> torch.ceil(torch.tensor([-1.5, 1.2]))
        tensor([-1.,  2.])
    """


@elementwise(arithmetic.trunc, x=lambda g: zero_gradient(g), also="fix", **_OF_ONE)
def trunc(x: Any) -> Any:
    """Return the integer part of x: x rounded towards zero.

    Example:
        >>> torch.trunc(torch.tensor([-1.7, 1.7]))
        tensor([-1.,  1.])
    """


@elementwise(arithmetic.frac, x=lambda g: g, **_OF_ONE)
def frac(x: Any) -> Any:
    """Return the fractional part of x, with the sign of x.

    Example:
        >>> torch.frac(torch.tensor([-1.25, 2.5]))
        tensor([-0.2500,  0.5000])
    """


@public(method=True)
def positive(input: Tensor) -> Tensor:
    """Return `input` itself. RuntimeError for booleans.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.positive(x) is x
        True
    """
    if input.dtype is dtypes.bool:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


@elementwise(np.signbit, x=None, method=True, out="boolean result")
def signbit(x: Any) -> Any:
    """Return whether the sign bit is set (true for -0.0).

    Example:
        >>> torch.signbit(torch.tensor([1.0, -0.0]))
        tensor([False,  True])
    """


@elementwise(
    np.copysign, floating=True, x=lambda g, x, out: g * (out / x).masked_fill(x == 0, 0), y=lambda g: zero_gradient(g),
    method=True, in_place=True, out="promoted", operands="tensor first",
)  # fmt: skip
def copysign(x: Any, y: Any) -> Any:
    """Return the magnitude of `x` with the sign of `y`.

    Example:
        >>> torch.copysign(torch.tensor([1.0, -2.0]), torch.tensor([-1.0, 1.0]))
        tensor([-1.,  2.])
    """


@public(also="special.round", method=True, in_place="function", out="same")
@op(arithmetic.rounded, batch="elementwise", x=lambda g: zero_gradient(g), overload=("decimals", "RoundBackward1"))
def round(x: Any, *, decimals: builtins.int | None = None) -> Any:
    """Return `x` rounded to `decimals` places, halves to the even neighbour.

    Example:
        >>> torch.round(torch.tensor([0.5, 1.5, 2.345]), decimals=0)
        tensor([0., 2., 2.])
    """


# Bounds -------------------------------------------------------------------------------------------


_of_larger = op_of(
    arithmetic.of_larger,
    batch="elementwise",
    name="MaskedFill",
    g=lambda gg, x, y: _of_larger(gg, x, y),
    x=None,
    y=None,
)


@elementwise(
    np.maximum,
    refuses="maximum_cpu",
    x=lambda g, y, x: _of_larger(g, x, y),
    y=lambda g, x, y: _of_larger(g, y, x),
    **_OF_TENSORS,
)
def maximum(x: Any, y: Any) -> Any:
    """Return the larger of `x` and `y`; NaN where either is NaN. Ties share the gradient.

    Example:
        >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
        tensor([3, 5])
    """


@elementwise(
    np.minimum,
    refuses="minimum_cpu",
    x=lambda g, y, x: _of_larger(g, y, x),
    y=lambda g, x, y: _of_larger(g, x, y),
    **_OF_TENSORS,
)
def minimum(x: Any, y: Any) -> Any:
    """Return the smaller of `x` and `y`; NaN where either is NaN. Ties share the gradient.

    Example:
        >>> torch.minimum(torch.tensor([1, 5]), torch.tensor([3, 2]))
        tensor([1, 2])
    """


@elementwise(
    np.fmax, refuses="maximum_cpu", x=lambda g, x, y: kept(g, (x >= y) | isnan(y)),
    y=lambda g, x, y: kept(g, ~((x >= y) | isnan(y))), method=True, out="promoted", of_tensors=True,
)  # fmt: skip
def fmax(x: Any, y: Any) -> Any:
    """Return the larger of `x` and `y`; where one is NaN, the other.

    Example:
        >>> torch.fmax(torch.tensor([1.0, torch.nan]), torch.tensor([3.0, 2.0]))
        tensor([3., 2.])
    """


@elementwise(
    np.fmin, refuses="minimum_cpu", x=lambda g, x, y: kept(g, (x <= y) | isnan(y)),
    y=lambda g, x, y: kept(g, ~((x <= y) | isnan(y))), method=True, out="promoted", of_tensors=True,
)  # fmt: skip
def fmin(x: Any, y: Any) -> Any:
    """Return the smaller of `x` and `y`; where one is NaN, the other.

    Example:
        >>> torch.fmin(torch.tensor([1.0, torch.nan]), torch.tensor([3.0, 2.0]))
        tensor([1., 2.])
    """


_clamp = op_of(
    arithmetic.clamp, batch="elementwise", name="ClampBackward1", refuses="clamp_scalar_cpu",
    x=lambda g, x, min, max: kept(g, _inside(x, min, max)),
)  # fmt: skip
_clamp_min = op_of(
    arithmetic.clamp_min, batch="elementwise", refuses="clamp_min_scalar_cpu", x=lambda g, x, min: kept(g, x >= min)
)
_clamp_max = op_of(
    arithmetic.clamp_max, batch="elementwise", refuses="clamp_max_scalar_cpu", x=lambda g, x, max: kept(g, x <= max)
)
_clamp_min_to, _clamp_max_to = (
    pointwise(name, kernel, node_name=f"{node}Backward1", refuses=refuses, x=to_x, y=to_bound)
    for name, node, kernel, refuses, to_x, to_bound in (
        ("clamp_min", "ClampMin", np.maximum, "maximum_cpu",
         lambda g, x, y: kept(g, x >= y), lambda g, x, y: kept(g, x < y)),
        ("clamp_max", "ClampMax", np.minimum, "minimum_cpu",
         lambda g, x, y: kept(g, x <= y), lambda g, x, y: kept(g, x > y)),
    )
)  # fmt: skip


_clamp_to_tensors = op_of(
    arithmetic.clamp_to_tensors,
    refuses="clamp_cpu",
    name="Clamp",
    x=lambda g, x, min, max: g.masked_fill(~_inside(x, min, max), 0),
    min=lambda g, x, min, max: g.masked_fill(~((x < min) if max is None else (x < min) & (min < max)), 0),
    max=lambda g, x, min, max: g.masked_fill(~((x > max) if min is None else (x > max) | (max < min)), 0),
    broadcasts=True,
)


def _inside(x: Tensor, min: Any, max: Any) -> Tensor:
    if min is None:
        return x <= max
    return x >= min if max is None else (x >= min) & (x <= max)


def _bounds(names: str) -> tuple[str, ...]:
    """Return the signatures of a function that takes bounds, which are tensors or numbers."""
    bounds = [", ".join([f"{kind} {name}" for name in names.split(", ")]) for kind in ("Tensor", "Number")]
    return tuple([f"Tensor input, {each}, *, Tensor out = None" for each in bounds])


@public(also="clip", method=True, out="clamp", forms=_bounds("min = None, max = None"))
@short("of_floats", _clamp)
def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Return `input` clamped to the range from `min` to `max`, which are numbers or tensors that broadcast.

    The gradient is 1 inside the bounds (the bounds included) and 0 outside. RuntimeError: neither bound is given.

    Example:
        >>> torch.clamp(torch.tensor([-2.0, 0.5, 2.0]), min=-1, max=1)
        tensor([-1.0000,  0.5000,  1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    floating = input.dtype.is_floating_point
    if type(min) in _NO_TENSOR and type(max) in _NO_TENSOR and (floating or _keep_integers(input, min, max)):
        return _clamp(input, min, max)
    refuse_bools(input, min, max)
    return _clamp_to_tensors(*_alike_or_none(input, min, max))


def _keep_integers(input: Tensor, *bounds: Any) -> bool:
    """Return whether `input` has signed integers, and clamping it to these numbers (or None) keeps its dtype."""
    return input._array.dtype.kind == "i" and float not in map(type, bounds)


def refuse_bools(input: Tensor, min: Any, max: Any) -> None:
    """Raise PyTorch's error for clamping booleans by booleans, which PyTorch supports for one tensor bound only."""
    bounds = [each for each in (min, max) if each is not None]
    operands = [each.dtype for each in (input, *bounds) if isinstance(each, Tensor)]
    if all(kind is dtypes.bool for kind in operands):
        numbers = [each for each in bounds if not isinstance(each, Tensor)]
        if all(isinstance(each, bool) for each in numbers) and (numbers or len(bounds) == 2):
            which = "" if len(bounds) == 2 else "_min" if max is None else "_max"
            scalar = "_scalar" if numbers else ""
            raise refused(f"clamp{which}{scalar}_cpu", input._array)


def bounds_of(input: Tensor, min: Any, max: Any) -> list[Any]:
    """Return the bounds for the in-place form: tensors of the result's dtype, or None."""
    refuse_bools(input, min, max)
    return _alike_or_none(input, min, max)[1:]


_NO_TENSOR = frozenset((builtins.int, builtins.float, type(None)))


@public(method=True, out="clamp", forms=_bounds("min"))
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Return `max(input, min)`, elementwise.

    Example:
        >>> torch.clamp_min(torch.tensor([-2.0, 0.5, 2.0]), 0)
        tensor([0.0000, 0.5000, 2.0000])
    """
    if takes_number("clamp_min", input, min):
        return _clamp_min(input, min)
    refuse_bools(input, min, None)
    return _clamp_min_to(*_alike_or_none(input, min))


@public(method=True, out="clamp", forms=_bounds("max"))
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Return `min(input, max)`, elementwise.

    Example:
        >>> torch.clamp_max(torch.tensor([-2.0, 0.5, 2.0]), 1)
        tensor([-2.0000,  0.5000,  1.0000])
    """
    if takes_number("clamp_max", input, max):
        return _clamp_max(input, max)
    refuse_bools(input, None, max)
    return _clamp_max_to(*_alike_or_none(input, max))


def takes_number(name: str, input: Tensor, bound: Any) -> builtins.bool:
    """Check `input` and `bound`; return whether the tensor is floating-point, and the bound a number."""
    floating = input.dtype.is_floating_point
    if bound is None:
        raise no_such_call(name, (input, bound), _bounds(name.strip("_")[-3:]))
    return floating and type(bound) in arithmetic.REAL


@public(method=True, in_place="function", out="nan_to_num")
@op(arithmetic.nan_to_num, batch="elementwise", complex=OWN, x=lambda g, x: g * isfinite(x))
def nan_to_num(x: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Return `x` with NaN and infinities replaced by numbers; integers are unchanged.

    `nan` is 0 by default; `posinf` and `neginf` are the dtype's largest and lowest numbers.

    Example:
        >>> torch.nan_to_num(torch.tensor([1.0, torch.nan, torch.inf]), nan=0.0, posinf=9.0)
        tensor([1., 0., 9.])
    """


# Ternary ops --------------------------------------------------------------------------------------


_lerp = op_of(
    arithmetic.lerp, broadcasts=True, complex=HOLOMORPHIC,
    x=lambda g, weight: g * (1 - weight), end=lambda g, weight: g * weight,
)  # fmt: skip
_lerp_to = op_of(
    arithmetic.lerp_to, name="LerpBackward1", broadcasts=True, complex=HOLOMORPHIC,
    x=lambda g, weight: g * (1 - weight), end=lambda g, weight: g * weight, weight=lambda g, x, end: g * (end - x),
)  # fmt: skip


@public(method=True, out="promoted")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Return `input + weight * (end - input)`, computed from the nearer end. RuntimeError if the dtypes differ.

    Example:
        >>> torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), 0.5)
        tensor([ 5.5000, 11.0000])
    """
    _check_same_dtype("end", end, input)
    if not isinstance(weight, Tensor):
        return _lerp(input, end, plain("lerp", "weight", weight))
    return _lerp_to(input, end, lerp_weight(input, weight))


def lerp_weight(input: Tensor, weight: Tensor) -> Tensor:
    """Return the weight tensor of `lerp`, checked to have the dtype of `input` unless it is 0-d."""
    if weight.ndim:
        _check_same_dtype("weight", weight, input)
    return weight


def _check_same_dtype(name: str, given: Tensor, input: Tensor) -> None:
    if not isinstance(given, Tensor):
        forms = [f"Tensor input, Tensor end, {each} weight" for each in ("Tensor", "Number")]
        raise no_such_call("lerp", (input, given), tuple(forms))
    if given.dtype is not input.dtype:
        want, have = (each.dtype.tensor_name.lower() for each in (input, given))
        raise RuntimeError(f"expected dtype {want} for `{name}` but got dtype {have}")


@op(
    arithmetic.add_product,
    refuses="addcmul_cpu_out", name="Addcmul", broadcasts=True, complex=HOLOMORPHIC,
    x=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (tensor2 * value),
    tensor2=lambda g, tensor1, value: g * (tensor1 * value),
)  # fmt: skip
def _addcmul(x: Any, tensor1: Any, tensor2: Any, value: Any) -> Any: ...


@public(method=True, out="promoted")
def addcmul(input: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Return `input + value * tensor1 * tensor2`.

    Example:
        >>> torch.addcmul(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=10)
        tensor([30., 80.])
    """
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = factor_of_products("addcmul", input, tensor1, tensor2, value)
    return _addcmul(*_alike(input, tensor1, tensor2), value)


_addcdiv = op_of(
    arithmetic.addcdiv, broadcasts=True, complex=HOLOMORPHIC, x=lambda g: g,
    tensor1=lambda g, tensor2, value: g * (value / tensor2),
    tensor2=lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
)  # fmt: skip


@public(method=True, out="promoted")
def addcdiv(input: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Return `input + value * tensor1 / tensor2`. RuntimeError if both tensors hold integers.

    Example:
        >>> torch.addcdiv(torch.zeros(2), torch.tensor([1.0, 2.0]), torch.tensor([4.0, 4.0]), value=2)
        tensor([0.5000, 1.0000])
    """
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = factor_of_products("addcdiv", input, tensor1, tensor2, value)
    check_true_division(tensor1, tensor2)
    return _addcdiv(*_alike(input, tensor1, tensor2), value)


def check_products(x: Tensor, tensor1: Tensor, tensor2: Tensor) -> None:
    """Raise PyTorch's error if `addcmul` would add products of booleans to booleans."""
    if dtypes.bool is x.dtype is tensor1.dtype is tensor2.dtype:
        raise refused("addcmul_cpu_out", x._array)


def check_true_division(tensor1: Tensor, tensor2: Tensor) -> None:
    """Raise PyTorch's error if `addcdiv` would divide integers."""
    if max(tensor1.dtype.category, tensor2.dtype.category) < dtypes.FLOATING:
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a "
            "true division of tensor1 and tensor2. For the historic behaviour with integer inputs use (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype), and for float inputs (input + value * tensor1 / tensor2)."
        )


@public(listed=False)
@also_by(scalar1="tensor", scalar2="other")
def result_type(tensor: Any, other: Any) -> dtypes.dtype:
    """Return the result dtype of arithmetic on two tensors or numbers.

    Example:
        >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int32), 1.5)
        torch.float32
    """
    operands = [
        (each.dtype, 2 if each.ndim else 1) if isinstance(each, Tensor) else (dtypes.of_number(each), 0)
        for each in (tensor, other)
    ]
    return dtypes.result_dtype(*operands)


_isclose = op_of(arithmetic.isclose, broadcasts=True, complex=OWN, x=None, y=None)


@public(method=True)
def isclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> Tensor:
    """Return whether `|input - other| <= atol + rtol * |other|`, elementwise, of tensors of one dtype that broadcast.

    `equal_nan`: two NaNs count as close. RuntimeError: the dtypes differ; a tolerance is negative.

    Example:
        >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))
        tensor([ True, False])
    """
    for position, each in enumerate((input, other)):
        if not isinstance(each, Tensor):
            which = ("input", "other")[position]
            raise TypeError(
                f"isclose(): argument '{which}' (position {position + 1}) must be Tensor, not {type(each).__name__}"
            )
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.tensor_name} did not match {other.dtype.tensor_name}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    return _isclose(input, other, rtol, atol, equal_nan)


@public(method=True)
def allclose(
    input: Tensor,
    other: Tensor,
    rtol: builtins.float = 1e-05,
    atol: builtins.float = 1e-08,
    equal_nan: builtins.bool = False,
) -> builtins.bool:
    """Return whether `isclose` holds for all elements.

    Example:
        >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-9]))
        True
    """
    tell_of_reading(input)
    return builtins.bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@public(method=True)
def equal(input: Tensor, other: Tensor) -> builtins.bool:
    """Return whether two tensors have the same shape and the same elements.

    Example:
        >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
        True
    """
    tell_of_reading(input)
    x, y = input._array, other._array
    if x.dtype != y.dtype and x.shape == y.shape:
        dtypes.promote_types(input.dtype, other.dtype)  # raises where there is no common dtype
    return builtins.bool(np.array_equal(x, y))
