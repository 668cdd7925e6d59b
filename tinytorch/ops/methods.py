"""Which op is which method, operator and in-place method of Tensor (floor 4): one table, bound at import."""

from __future__ import annotations

from typing import Any

from tinytorch.core import engine
from tinytorch.core.inplace import check_overlap, in_place
from tinytorch.core.layout import strided
from tinytorch.core.op import operator_of, refuse_booleans
from tinytorch.core.tensor import Tensor
from tinytorch.ops import (
    copies,
    create,
    index,
    pointwise,
    random,
    reduce,
    shape,
    special,
    statistics,
)
from tinytorch.ops import memory as storage
from tinytorch.ops.linalg import factor as decompose
from tinytorch.ops.linalg import matrices, solve
from tinytorch.ops.linalg import products as linalg
from tinytorch.ops.nn import basic as nn

# module: the names in it that are methods of Tensor under the same name (first argument: the tensor) …
METHODS: dict[Any, str] = {
    pointwise: """
        abs absolute acos acosh add addcdiv addcmul allclose arccos arccosh arcsin arcsinh arctan arctan2 arctanh
        asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift
        bitwise_xor ceil clamp clamp_max clamp_min clip copysign cos cosh deg2rad div divide eq equal erf erfc exp
        exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac ge greater greater_equal gt hypot isclose
        isfinite isinf isnan isneginf isposinf isreal le lerp less less_equal log log10 log1p log2 logaddexp
        logical_and logical_not logical_or logical_xor lt maximum minimum mul multiply nan_to_num ne neg negative
        not_equal pow positive rad2deg reciprocal relu remainder round rsqrt sgn sigmoid sign signbit sin sinc sinh
        sqrt square sub subtract tan tanh true_divide trunc xlogy
    """,
    copies: """
        diagonal_scatter narrow_copy select_scatter slice_inverse slice_scatter as_strided_scatter unsafe_chunk
        unsafe_split unsafe_split_with_sizes
    """,
    create: "new_empty new_full new_ones new_tensor new_zeros",
    random: """
        bernoulli bernoulli_ cauchy_ exponential_ geometric_ log_normal_ multinomial normal_ random_ uniform_
    """,
    reduce: """
        all amax amin aminmax any argmax argmin count_nonzero cummax cummin cumprod cumsum logsumexp max mean median
        min nanmean nanmedian nansum prod std sum sum_to_size var
    """,
    shape: """
        adjoint as_strided broadcast_to chunk clone contiguous cpu cuda data_ptr diag diag_embed diagflat diagonal dim
        dsplit element_size expand expand_as flatten flip fliplr flipud hsplit is_complex is_contiguous
        is_floating_point is_signed moveaxis movedim narrow ndimension nelement numel permute ravel real repeat
        repeat_interleave reshape reshape_as roll rot90 select size split split_with_sizes squeeze storage_offset
        stride swapaxes swapdims t tensor_split tile to transpose tril triu type_as unbind unflatten unfold unsqueeze
        view view_as vsplit
    """,
    index: """
        argsort argwhere bincount copy_ fill_ fill_diagonal_ gather index_add index_add_ index_copy index_copy_
        index_fill index_fill_ index_put index_put_ index_reduce index_reduce_ index_select masked_fill masked_fill_
        masked_scatter masked_scatter_ masked_select msort nonzero nonzero_static put put_ scatter scatter_ scatter_add
        scatter_add_ scatter_reduce scatter_reduce_ sort take take_along_dim topk unique unique_consecutive zero_
    """,
    statistics: "diff histc histogram kthvalue mode nanquantile quantile",
    linalg: """
        addbmm addmm addmv addr baddbmm bmm dot ger inner matmul mm mv outer trace vdot
    """,
    decompose: "det logdet",
    solve: "matrix_exp matrix_power",
    matrices: """
        cholesky cholesky_inverse cholesky_solve corrcoef cov cross dist geqrf inverse kron lu lu_solve norm orgqr
        ormqr pinverse qr renorm renorm_ slogdet svd triangular_solve
    """,
    nn: "hardshrink log_softmax prelu softmax",
    storage: """
        apply_ as_subclass dequantize dim_order get_device is_distributed is_nonzero is_pinned is_same_size is_set_to
        is_shared map2_ map_ module_load new new_empty_strided pin_memory resize resize_ resize_as resize_as_ set_
        share_memory_ storage storage_type to_dense untyped_storage
    """,
    special: """
        angle clamp_max_ clamp_min_ conj conj_physical conj_physical_ digamma erfinv float_power_ frexp gcd heaviside
        heaviside_ i0 igamma igammac is_conj is_neg lcm ldexp ldexp_ lgamma logaddexp2 logcumsumexp logit logit_
        mvlgamma mvlgamma_ nextafter polygamma_ resolve_conj resolve_neg
    """,
}
# … and those of which an in-place method `name_` is derived.
IN_PLACE: dict[Any, str] = {
    pointwise: """
        abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh
        bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil copysign cos cosh
        deg2rad eq erf erfc exp exp2 expm1 fix floor floor_divide fmod frac ge greater greater_equal gt hypot le less
        less_equal log log10 log1p log2 logical_and logical_not logical_or logical_xor lt mul multiply nan_to_num ne
        neg negative not_equal rad2deg reciprocal relu remainder round rsqrt sgn sigmoid sign sin sinc sinh sqrt
        square tan tanh true_divide trunc xlogy
    """,
    reduce: """
        cumprod cumsum
    """,
    shape: "tril triu",
    linalg: """
        addbmm addmm addmv addr baddbmm
    """,
    special: "digamma erfinv gcd i0 igamma igammac lcm lgamma nextafter",
}


def bind() -> None:
    """Set the methods on Tensor."""
    for module, names in METHODS.items():
        for name in names.split():
            setattr(Tensor, name, getattr(module, name))
    for module, names in IN_PLACE.items():
        for name in names.split():
            setattr(Tensor, f"{name}_", in_place(getattr(module, name)))
    for name, function in (
        OPERATORS | shape.CONVERSIONS | shape.PROPERTIES | storage.MEMBERS | copies.METHODS
    ).items():
        setattr(Tensor, name, function)
    Tensor.layout = strided


def bound_names() -> set[str]:
    """Return the names of all members of Tensor that `bind` sets."""
    names = {name for listed in METHODS.values() for name in listed.split()}
    names |= {f"{name}_" for listed in IN_PLACE.values() for name in listed.split()}
    names |= set(OPERATORS) | set(shape.CONVERSIONS) | set(shape.PROPERTIES)
    return names | set(storage.MEMBERS) | set(copies.METHODS)


def _backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradient of this tensor to `.grad` of the leaves that it was computed from.

    Args:
        gradient: a tensor of this one's shape, for the vector-Jacobian product; may be left out for one element.
        retain_graph, create_graph, inputs: see `autograd.backward`.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> (x ** 2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    engine.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


def _divided_by(self: Tensor, other: Any) -> Any:
    """Return `other / self`, rounded as PyTorch does: its operator multiplies by the reciprocal."""
    return self.reciprocal() * other


def _operator(op: Any) -> Any:
    """Return a function as an operator: NotImplemented for its TypeError, so that Python asks the other operand."""

    def call(self: Any, other: Any) -> Any:
        try:
            return op(self, other)
        except TypeError:
            return NotImplemented

    return call


def _reflected(op: Any) -> Any:
    return _operator(lambda self, other: op(other, self))


def _comparison(op: Any) -> Any:
    """Return the operator: unlike the function it answers False for what is no number, as Python expects."""

    def compare(self: Any, other: Any) -> Any:
        if isinstance(other, (Tensor, int, float)) or hasattr(other, "dtype"):
            try:
                return op(self, other)
            except TypeError:
                return NotImplemented
        return NotImplemented

    return compare


# add_, sub_, div_ and clamp_ have arguments of their own, so their in-place forms stand here.
_add, _sub, _mul, _div = (
    in_place(each)
    for each in (pointwise.plus, pointwise.minus, pointwise.mul, pointwise.true_divide)
)
_div_rounded = {
    "trunc": in_place(pointwise._div_trunc, "div_"),
    "floor": in_place(pointwise._div_floor, "div_"),
}
_clamp = in_place(pointwise._clamp, "clamp_")
_clamp_to_tensors = in_place(pointwise._clamp_to_tensors, "clamp_")
_pow, _pow_to = (in_place(each, "pow_") for each in (pointwise._raised, pointwise._raised_to))
_lerp, _lerp_to = (in_place(each, "lerp_") for each in (pointwise._lerp, pointwise._lerp_to))


def _check_read(self: Tensor, other: Any) -> None:
    """Raise PyTorch's error if a write to `self` would change `other` on the way (`alpha * other` hides it)."""
    if isinstance(other, Tensor) and other._cell is self._cell and self._cell is not None:
        check_overlap(self._array, other._array)


def add_(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """Add `alpha * other` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([1.0, 2.0]).add_(torch.tensor([3.0, 4.0]), alpha=10)
        tensor([31., 42.])
    """
    _check_read(self, other)
    return _add(self, pointwise.scaled("add_", self, other, alpha))


def sub_(self: Tensor, other: Any, alpha: Any = 1) -> Tensor:
    """Subtract `alpha * other` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([1.0, 2.0]).sub_(1)
        tensor([0., 1.])
    """
    _check_read(self, other)
    refuse_booleans(self, other)
    return _sub(self, pointwise.scaled("sub_", self, other, alpha))


def div_(self: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Divide by `other` in place; see `div`.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([1.0, 5.0]).div_(2, rounding_mode="floor")
        tensor([0., 2.])
    """
    if rounding_mode is None:
        return _div(self, other)
    return _div_rounded[rounding_mode](self, other)


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Bound in place; see `clamp`.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([-1.0, 0.5, 2.0]).clamp_(0, 1)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp_: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor) or not self.dtype.is_floating_point:
        return _clamp_to_tensors(self, *pointwise.bounds_of(self, min, max))
    return _clamp(self, min, max)


def lerp_(self: Tensor, end: Tensor, weight: Any) -> Tensor:
    """Interpolate in place; see `lerp`.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([0.0, 10.0]).lerp_(torch.tensor([10.0, 20.0]), 0.5)
        tensor([ 5., 15.])
    """
    pointwise._check_same_dtype("end", end, self)
    if isinstance(weight, Tensor):
        return _lerp_to(self, end, pointwise.lerp_weight(self, weight))
    return _lerp(self, end, weight)


def addcmul_(self: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Add `value * tensor1 * tensor2` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(2).addcmul_(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]), value=10)
        tensor([31., 81.])
    """
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = pointwise.factor_of_products("addcmul_", tensor1, tensor2, value)
    pointwise.check_products(self, tensor1, tensor2)
    return _add(self, tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


def addcdiv_(self: Tensor, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """Add `value * tensor1 / tensor2` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(2).addcdiv_(torch.tensor([1.0, 2.0]), torch.tensor([2.0, 4.0]), value=10)
        tensor([6., 6.])
    """
    if type(value) is not int and type(value) is not float:
        tensor1, tensor2, value = pointwise.factor_of_products("addcdiv_", tensor1, tensor2, value)
    pointwise.check_true_division(tensor1, tensor2)
    return _add(self, tensor1 / tensor2 if value == 1 else value * tensor1 / tensor2)


def pow_(self: Tensor, exponent: Any) -> Tensor:
    """Raise to the power `exponent` in place.

    Example:
        >>> import tinytorch as torch
        >>> torch.tensor([2.0, 3.0]).pow_(2)
        tensor([4., 9.])
    """
    if type(exponent) is int:
        pointwise.check_exponent(self, exponent)
    elif type(exponent) is bool and self._array.dtype == bool:
        return self.copy_(pointwise.pow(self, exponent))
    return (_pow_to if isinstance(exponent, Tensor) else _pow)(self, exponent)


def invert(self: Tensor) -> Tensor:
    """Return `~self`; see `bitwise_not`."""
    if self.dtype.is_floating_point:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return pointwise.bitwise_not(self)


_plus, _minus, _times, _over = (
    operator_of(each)
    for each in (pointwise.plus, pointwise.minus, pointwise.mul, pointwise.true_divide)
)
_over_in_place, _from_the_right = _operator(_div), _operator(_divided_by)

OPERATORS: dict[str, Any] = {
    "__add__": _plus,
    "__radd__": _plus,
    "__iadd__": _operator(_add),
    "__sub__": _minus,
    "__rsub__": _operator(pointwise.rsub),
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
    "__floordiv__": _operator(pointwise.floor_divide),
    "__rfloordiv__": _reflected(pointwise.floor_divide),
    "__ifloordiv__": _operator(in_place(pointwise.floor_divide)),
    "__mod__": _operator(pointwise.remainder),
    "__rmod__": _reflected(pointwise.remainder),
    "__imod__": _operator(in_place(pointwise.remainder)),
    "__pow__": _operator(pointwise.pow),
    "__rpow__": _reflected(pointwise.pow),
    "__ipow__": _operator(pow_),
    "__neg__": pointwise.neg,
    "__pos__": pointwise.positive,
    "__abs__": pointwise.abs,
    "__invert__": invert,
    "__and__": _operator(pointwise.bitwise_and),
    "__rand__": _operator(pointwise.bitwise_and),
    "__iand__": _operator(in_place(pointwise.bitwise_and)),
    "__or__": _operator(pointwise.bitwise_or),
    "__ror__": _operator(pointwise.bitwise_or),
    "__ior__": _operator(in_place(pointwise.bitwise_or)),
    "__xor__": _operator(pointwise.bitwise_xor),
    "__rxor__": _operator(pointwise.bitwise_xor),
    "__ixor__": _operator(in_place(pointwise.bitwise_xor)),
    "__lshift__": _operator(pointwise.bitwise_left_shift),
    "__rshift__": _operator(pointwise.bitwise_right_shift),
    "__rlshift__": _reflected(pointwise.bitwise_left_shift),
    "__rrshift__": _reflected(pointwise.bitwise_right_shift),
    "__ilshift__": _operator(in_place(pointwise.bitwise_left_shift)),
    "__irshift__": _operator(in_place(pointwise.bitwise_right_shift)),
    "__matmul__": linalg.operator_matmul,
    "__rmatmul__": linalg.operator_rmatmul,
    "__eq__": _comparison(pointwise.eq),
    "__ne__": _comparison(pointwise.ne),
    "__lt__": _comparison(pointwise.lt),
    "__le__": _comparison(pointwise.le),
    "__gt__": _comparison(pointwise.gt),
    "__ge__": _comparison(pointwise.ge),
    "__delitem__": index.delitem,
    "__getitem__": index.getitem,
    "__setitem__": index.setitem,
    "where": index.where_method,
    "backward": _backward,
    "polygamma": special.polygamma_method,
    "add_": add_,
    "sub_": sub_,
    "subtract_": sub_,
    "div_": div_,
    "divide_": div_,
    "clamp_": clamp_,
    "clip_": clamp_,
    "lerp_": lerp_,
    "addcmul_": addcmul_,
    "addcdiv_": addcdiv_,
    "pow_": pow_,
}
