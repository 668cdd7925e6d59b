"""The operators of Tensor, and in-place methods whose arguments differ from the op's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.inplace import check_overlap
from tinytorch.core.mode import short
from tinytorch.core.op import in_place, operator_of
from tinytorch.core.supplied import declare_members
from tinytorch.core.tensor import Tensor
from tinytorch.core.unusual import refuse_booleans
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.ops import arithmetic, compare, index, masks, special, transcendental
from tinytorch.ops.linalg import products as linalg
from tinytorch.ops.register import public


def _divided_by(self: Tensor, other: Any) -> Any:
    """Return `other / self` with PyTorch's rounding: its operator multiplies by the reciprocal."""
    return self.reciprocal() * other


def _operator(op: Any) -> Any:
    """Wrap a function as an operator: NotImplemented on TypeError, so that Python tries the other operand."""

    def call(self: Any, other: Any) -> Any:
        try:
            return op(self, other)
        except TypeError:
            return NotImplemented

    call.operated = op  # type: ignore[attr-defined]
    return call


def _reflected(op: Any) -> Any:
    return _operator(lambda self, other: op(other, self))


def _comparison(op: Any) -> Any:
    """Return a comparison operator: NotImplemented for an operand that is neither a number nor array-like."""

    def compare(self: Any, other: Any) -> Any:
        if (
            isinstance(other, (Tensor, int, float, complex))
            or hasattr(other, "dtype")
            or hasattr(other, "__torch_function__")
        ):
            try:
                return op(self, other)
            except TypeError:
                return NotImplemented
        return NotImplemented

    compare.operated = op  # type: ignore[attr-defined]
    return compare


# The in-place forms that the methods add_, sub_, div_, clamp_ … below call.
_add, _sub, _mul, _div = (
    in_place(each) for each in (arithmetic.plus, arithmetic.minus, arithmetic.mul, arithmetic.true_divide)
)
_div_rounded = {"trunc": in_place(arithmetic._div_trunc, "div_"), "floor": in_place(arithmetic._div_floor, "div_")}
_clamp = in_place(arithmetic._clamp, "clamp_")
_clamp_to_tensors = in_place(arithmetic._clamp_to_tensors, "clamp_")
_pow, _pow_to = (in_place(each, "pow_") for each in (transcendental._raised, transcendental._raised_to))
_add_scaled, _sub_scaled = in_place(arithmetic._plus_scaled, "add_"), in_place(arithmetic._minus_scaled, "sub_")
_addcmul, _addcdiv = in_place(arithmetic._addcmul, "addcmul_"), in_place(arithmetic._addcdiv, "addcdiv_")
_lerp, _lerp_to = (in_place(each, "lerp_") for each in (arithmetic._lerp, arithmetic._lerp_to))


def _check_read(self: Tensor, other: Any) -> None:
    """Raise PyTorch's error if `other` partially overlaps `self` (after `alpha * other` it would go unnoticed)."""
    if isinstance(other, Tensor) and other._cell is self._cell and self._cell is not None:
        check_overlap(self._array, other._array)


def _in_half(x: Any, *operands: Any) -> bool:
    """Return whether operands are added to `x` in its dtype of 16 bits: then products must not be rounded first."""
    if not isinstance(x, Tensor) or x._array.dtype.itemsize != 2 or x._array.dtype.kind not in FLOATS:
        return False
    return all(not isinstance(each, Tensor) or each._array.dtype is x._array.dtype for each in operands)


@public("", method="add_")
@short("plus_scaled", _add, None, np.multiply, np.add)
def add_(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """In-place version of `add`."""
    _check_read(self, other)
    if (type(alpha) is not int or alpha != 1) and _in_half(self, other):
        return _add_scaled(self, *arithmetic.factor("add_", self, other, alpha))
    return _add(self, arithmetic.scaled("add_", self, other, alpha))


@public("", method="sub_ subtract_")
@short("plus_scaled", _sub, None, np.multiply, np.subtract)
def sub_(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """In-place version of `sub`."""
    _check_read(self, other)
    refuse_booleans(self, other)
    if (type(alpha) is not int or alpha != 1) and _in_half(self, other):
        return _sub_scaled(self, *arithmetic.factor("sub_", self, other, alpha))
    return _sub(self, arithmetic.scaled("sub_", self, other, alpha))


@public("", method="div_ divide_")
def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place version of `div`."""
    if rounding_mode is None:
        return _div(self, other)
    return _div_rounded[rounding_mode](self, other)


@public(also="clip_", method=True)
def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place version of `clamp`."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp_: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor) or not self.dtype.is_floating_point:
        return _clamp_to_tensors(self, *arithmetic.bounds_of(self, min, max))
    return _clamp(self, min, max)


@public("", method="lerp_")
def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place version of `lerp`."""
    arithmetic._check_same_dtype("end", end, self)
    if isinstance(weight, Tensor):
        return _lerp_to(self, end, arithmetic.lerp_weight(self, weight))
    return _lerp(self, end, weight)


@public("", method="addcmul_")
def addcmul_(self: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """In-place version of `addcmul`."""
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = arithmetic.factor_of_products("addcmul_", self, tensor1, tensor2, value)
    arithmetic.check_products(self, tensor1, tensor2)
    if type(value) is float and self.dtype.category < dtypes.FLOATING:  # as PyTorch's kernel for integers takes it
        value = int(value)
    if _in_half(self, tensor1, tensor2):
        return _addcmul(self, tensor1, tensor2, value)
    return _add(self, tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


@public("", method="addcdiv_")
def addcdiv_(self: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """In-place version of `addcdiv`."""
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = arithmetic.factor_of_products("addcdiv_", self, tensor1, tensor2, value)
    arithmetic.check_true_division(tensor1, tensor2)
    if _in_half(self, tensor1, tensor2):
        return _addcdiv(self, tensor1, tensor2, value)
    return _add(self, tensor1 / tensor2 if value == 1 else value * tensor1 / tensor2)


@public("", method="pow_")
def pow_(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of `pow`."""
    if type(exponent) is int:
        transcendental.check_exponent(self, exponent)
    elif type(exponent) is bool and self._array.dtype == bool:
        return self.copy_(transcendental.pow(self, exponent))
    return (_pow_to if isinstance(exponent, Tensor) else _pow)(self, exponent)


def invert(self: Tensor) -> Tensor:
    """Return `~self`; see `bitwise_not`."""
    if self.dtype.is_floating_point:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return compare.bitwise_not(self)


_plus, _minus, _times, _over = (
    operator_of(each) for each in (arithmetic.plus, arithmetic.minus, arithmetic.mul, arithmetic.true_divide)
)
_over_in_place, _from_the_right = _operator(_div), _operator(_divided_by)


def _family(name: str, op: Any, reflected: Callable[[Any], Any] = _reflected) -> dict[str, Any]:
    """Return an operator, its reflected and its in-place form, by their names."""
    return {f"__{name}__": _operator(op), f"__r{name}__": reflected(op), f"__i{name}__": _operator(in_place(op))}


declare_members(
    _family("floordiv", arithmetic.floor_divide)
    | _family("mod", arithmetic.remainder)
    | _family("and", compare.bitwise_and, _operator)
    | _family("or", compare.bitwise_or, _operator)
    | _family("xor", compare.bitwise_xor, _operator)
    | _family("lshift", compare.bitwise_left_shift)
    | _family("rshift", compare.bitwise_right_shift)
    | {f"__{name}__": _comparison(getattr(compare, name)) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
    | {
        "__add__": _plus,
        "__radd__": _plus,
        "__iadd__": _operator(_add),
        "__sub__": _minus,
        "__rsub__": _operator(arithmetic.rsub),
        "__isub__": _operator(_sub),
        "__mul__": _times,
        "__rmul__": _times,
        "__imul__": _operator(_mul),
        "__truediv__": _over,
        "__rtruediv__": _from_the_right,
        "__itruediv__": _over_in_place,
        "__div__": _over,
        "__rdiv__": _from_the_right,
        "__idiv__": _over_in_place,
        "__pow__": _operator(transcendental.pow),
        "__rpow__": _reflected(transcendental.pow),
        "__ipow__": _operator(pow_),
        "__neg__": arithmetic.neg,
        "__pos__": arithmetic.positive,
        "__abs__": arithmetic.abs,
        "__invert__": invert,
        "__matmul__": linalg.operator_matmul,
        "__rmatmul__": linalg.operator_rmatmul,
        "__getitem__": index.getitem,
        "__setitem__": index.setitem,
        "where": masks.where_method,
        "polygamma": special.polygamma_method,
    }
)
declare_members({"__delitem__": index.delitem}, listed=False)
public("detach")(Tensor.detach)
public("detach_")(Tensor.detach_)
