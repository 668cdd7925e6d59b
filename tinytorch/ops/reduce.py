"""Reductions and cumulative ops: sums, products, extremes, medians, moments, norms, truth and counts."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN, refuse
from tinytorch.core.declaration import NUMPY_DIMS
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, constant
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, statistics
from tinytorch.kernels import reduce as kernels
from tinytorch.kernels.activation import FLAT
from tinytorch.kernels.checks import plain
from tinytorch.kernels.dtypes import FLOATS
from tinytorch.kernels.meta import known
from tinytorch.ops import return_types
from tinytorch.ops.arguments import op_of, unless_empty
from tinytorch.ops.arithmetic import abs as absolute
from tinytorch.ops.arithmetic import maximum, minimum, sgn, sign
from tinytorch.ops.compare import isnan
from tinytorch.ops.register import public


def _dim_or_other(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let `max` and `min` take NumPy's names, too: a positional tensor is `other`, a tensor `dim=` a dimension."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {NUMPY_DIMS.get(key, key): value for key, value in kwargs.items()}
            if isinstance(kwargs.get("dim"), Tensor):
                kwargs["dim"] = kernels.int_of(kwargs["dim"], function.__name__, "dim")
        return function(*args, **kwargs)

    return call


def _kept(t: Any, shape: tuple[int, ...], dim: Any) -> Any:
    """Return `t`, a reduction of a tensor of `shape` over `dim`, with the reduced dimensions kept with length 1."""
    kept = kernels.kept_shape(shape, dim)
    return t if t._array.shape == kept else t.reshape(kept)


# Sums ---------------------------------------------------------------------------------------------


spread = op(x=lambda g, x_shape, dim: sum(g, dim, True).reshape(x_shape), name="Expand", complex=OWN)(kernels.spread)


@public(method=True, out="typed")
@op(kernels.sum_over, complex=OWN, overload=("dim", "SumBackward1"), x=lambda g, x_shape, dim: spread(g, x_shape, dim))
def sum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum of all elements, or over the dimensions `dim`.

    `dim` is a dimension, or several in a tuple; None or () for all. `keepdim` keeps them with length 1. The input is
    first converted to `dtype`, by default to int64 for integers and booleans.

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.sum(x), torch.sum(x, dim=0), torch.sum(x, 1, keepdim=True)
        (tensor(10.), tensor([4., 6.]), tensor([[3.],
                [7.]]))
    """


@public(method=True, out="mean")
@op(
    kernels.mean_over,
    complex=OWN,
    overload=("dim", "MeanBackward1"),
    x=lambda g, x_shape, dim: spread(g / _count(x_shape, dim), x_shape, dim),
)
def mean(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the mean of all elements, or over the dimensions `dim`; NaN if there are no elements.

    `dim`, `keepdim` and `dtype` are as for `sum`. RuntimeError for integers without a `dtype`.

    Example:
        >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
        tensor([1.5000, 3.5000])
    """


def _count(shape: tuple[int, ...], dim: Any) -> int:
    return math.prod(shape) if dim is None else kernels.count_of(shape, kernels.axes_of(dim, len(shape), ""))


@public(method=True, out="nansum")
@op(kernels.nansum, x=lambda g, x, dim: spread(g, x._array.shape, dim) * ~isnan(x))
def nansum(x: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the sum like `sum`, but treat NaN as zero.

    Example:
        >>> torch.nansum(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(4.)
    """


@public(method=True, out="nansum")
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean of the elements that are not NaN, with the arguments of `mean`.

    Example:
        >>> torch.nanmean(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(2.)
    """
    if not input.dtype.is_floating_point:
        refuse("nanmean", input)
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.tensor_name}"
        )
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
            f"Got: {dtype.tensor_name}"
        )
    numbers = sum(~isnan(input.detach()), dim, keepdim)
    return nansum(input, dim, keepdim, dtype=dtype) / numbers


def _summed_to(x: Tensor, size: tuple[int, ...]) -> Tensor:
    """Return the sum to a size in Tensor code, by which `vmap` computes it."""
    dims = kernels.added_dims(tuple(x.shape), size)
    return x.sum(dims, True).reshape(size) if dims else x.clone()


_sum_to_size = op_of(
    kernels.sum_to_size, batch=lambda x, size: _summed_to(x, size), complex=OWN, name="SumBackward1",
    x=lambda g, x_shape, size: spread(g, x_shape, kernels.added_dims(x_shape, size)),
)  # fmt: skip


@public("", method="sum_to_size")
def sum_to_size(input: Tensor, *sizes: Any, size: Any = None) -> Tensor:
    """Return `input` summed over the dimensions that broadcasting from `size` adds or expands.

    Example:
        >>> torch.ones(2, 3).sum_to_size(1, 3)
        tensor([[2., 2., 2.]])
    """
    if size is not None and not sizes:
        sizes = (size,)
    if not sizes:
        raise TypeError('sum_to_size() missing 1 required positional arguments: "size"')
    several = len(sizes) == 1 and isinstance(sizes[0], (tuple, list))
    target: tuple[int, ...] = tuple(sizes[0]) if several else sizes
    shape = input._array.shape
    if shape == target and shape:
        return input
    if len(target) > len(shape) or builtins.any(
        want not in (1, have) for want, have in zip(target[::-1], shape[::-1], strict=False)
    ):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    return _sum_to_size(input, target) if target else sum(input)


# Products -----------------------------------------------------------------------------------------


def _prod_x(g: Any, x: Any, out: Any, dim: int | None) -> Any:
    shape = x._array.shape
    if known(np.all, x._array):
        return spread(g * out, shape, dim) / x
    # The product of all other elements: the product of the preceding ones times that of the following ones.
    if dim is None or not shape:
        x = x.reshape(-1)
    axis = 0 if dim is None or not shape else dim
    before = cumprod(_shift(x, axis, 1), axis)
    after = cumprod(_shift(x.flip(axis), axis, 1), axis).flip(axis)
    return spread(g, shape, dim) * (before * after).reshape(shape)


_prod = op_of(kernels.prod, complex=HOLOMORPHIC, overload=("dim", "ProdBackward1"), x=_prod_x)


@public(method=True, out="typed", autocast="float32")
def prod(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product of all elements, or along one dimension `dim`; the other arguments are as for `sum`.

    Example:
        >>> torch.prod(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
        tensor([3., 8.])
    """
    return _prod(input, _one(dim, input, "prod"), keepdim, dtype)


def _one(dim: Any, input: Tensor, name: str) -> int | None:
    """Return `dim`, an int, as a non-negative dimension, or None."""
    if dim is None:
        return None
    if isinstance(dim, (tuple, list, float, str, bool)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(dim).__name__}), "
            "but expected dim to be an int"
        )
    return kernels.axis_of(dim, input._array.ndim, name)


# Cumulative ops -----------------------------------------------------------------------------------


@public(method=True, in_place=True, out="typed")
@op(kernels.cumsum, complex=OWN, x=lambda g, dim: _sums_from(g, dim))
def cumsum(x: Any, dim: Any, *, dtype: Any = None) -> Any:
    """Return the cumulative sums along `dim`: element k is the sum of the elements 0 … k.

    The input is first converted to `dtype`, by default to int64 for integers and booleans.

    Example:
        >>> torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), 0)
        tensor([1., 3., 6.])
    """


_sums_from = op_of(kernels.sums_from, complex=OWN, name="Flip", x=lambda g, dim: cumsum(g, dim))


@public(method=True, in_place=True, out="typed")
@op(kernels.cumprod, complex=HOLOMORPHIC, x=lambda g, x, out, dim: _cumprod_x(g, x, out, dim))
def cumprod(x: Any, dim: Any, *, dtype: Any = None) -> Any:
    """Return the cumulative products along `dim`: element k is the product of the elements 0 … k; see `cumsum`.

    Example:
        >>> torch.cumprod(torch.tensor([1.0, 2.0, 3.0]), 0)
        tensor([1., 2., 6.])
    """


_shift = op_of(kernels.shift, complex=OWN, x=lambda g, dim: _shift(g.flip(dim), dim, 0).flip(dim))


def _cumprod_x(g: Any, x: Any, out: Any, dim: int) -> Any:
    """Return the gradient of cumulative products.

    Without zeros it is the reversed cumulative sum of `g * out`, divided by x. In general it is P[k] S[k], where P[k]
    is the product of the elements before k, and S[k] = g[k] + x[k + 1] S[k + 1].
    """
    if not x._array.ndim:
        return g
    if known(np.all, x._array):
        return _sums_from(g * out, dim) / x
    sums = _scan(g.flip(dim), _shift(x.flip(dim), dim, 0), dim).flip(dim)
    return _shift(out, dim, 1) * sums


# The gradient of a linear recurrence is a linear recurrence that runs from the end.


_scan = op_of(
    kernels.scan,
    complex=HOLOMORPHIC,
    x=lambda g, y, dim: _scan_from_end(g, y, dim),
    y=lambda g, y, out, dim: _scan_from_end(g, y, dim) * _shift(out, dim, 0),
)


def _scan_from_end(g: Any, y: Any, dim: int) -> Any:
    factors = _shift(y.flip(dim), dim, 0)  # element k is multiplied by y[k + 1]
    return _scan(g.flip(dim), factors, dim).flip(dim)


# Extremes -----------------------------------------------------------------------------------------


def _shared_by_all(g: Any, x: Any, out: Any) -> Any:
    """Return the gradient of an extreme of all elements; if the extreme is NaN, the NaNs share the gradient."""
    return _shared(g, x, out, None, isnan(x) if known(np.isnan, out._array) else None)


def _shared(g: Any, x: Any, out: Any, dim: Any, ties: Any = None) -> Any:
    """Return the gradient of an extreme: all elements that tie for the extreme share it evenly."""
    shape = x._array.shape
    ties = x == _kept(out, shape, dim) if ties is None else ties
    count = sum(ties, dim, keepdim=True).to(g.dtype)
    return _kept(g, shape, dim) / count * ties.to(g.dtype)


@public(method=True, out="amax")
@op(kernels.amax, refuses=unless_empty("max_values_cpu"), x=lambda g, x, out, dim: _shared(g, x, out, dim))
def amax(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the largest element of all, or over the dimensions `dim`; NaN if any element is NaN.

    Elements that tie for the maximum share the gradient evenly. `dim` is a dimension, or several in a tuple; () for
    all. IndexError, or without `dim` RuntimeError, if there are no elements.

    Example:
        >>> torch.amax(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), dim=1)
        tensor([2., 3.])
    """


@public(method=True, out="amax")
@op(kernels.amin, refuses=unless_empty("min_values_cpu"), x=lambda g, x, out, dim: _shared(g, x, out, dim))
def amin(x: Any, dim: Any = (), keepdim: bool = False) -> Any:
    """Return the smallest element of all, or over the dimensions `dim`; NaN if any element is NaN.

    Elements that tie for the minimum share the gradient evenly. Arguments and errors are the same as for `amax`.

    Example:
        >>> torch.amin(torch.tensor([[1.0, 2.0], [3.0, 0.0]]), dim=1)
        tensor([1., 0.])
    """


def _placed(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return zeros of `shape` with the gradient scattered to `index`."""
    values = _kept(g[0], shape, dim)
    zeros = constant(np.zeros_like(values._array, shape=shape))
    if not shape:
        return values
    return zeros.scatter(dim, _kept(index, shape, dim), values)


def _gathered_back(g: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return zeros of `shape` with the gradient added at `index`, which may repeat an element."""
    return constant(np.zeros_like(g[0]._array)).scatter_add(dim, index, g[0]) if shape else g[0]


def selection(
    kernel: Callable[..., Any], name: str, back: Callable[..., Any] = _placed, *, refuses: Any = None, overload: int = 0
) -> Any:
    """Return the op of a kernel that returns selected elements along a dimension, and their indices."""
    return op_of(
        kernel,
        x=lambda g, out1, x_shape, dim: back(g, out1, x_shape, dim),
        outputs=2,
        nondiff=(1,),
        result=getattr(return_types, name),
        name=f"{name.capitalize()}Backward{overload}",  # PyTorch's numbering of the overloads
        refuses=refuses,
    )


def _shared_in_rows(g: Any, x: Any, out: Any, dim: Any) -> Any:
    """As `_shared`; if an extreme is NaN, the NaNs share the gradient."""
    return _shared(g, x, out, dim, (x == _kept(out, x._array.shape, dim)) | isnan(x))


def _extreme(kernel: Callable[..., Any], name: str) -> Any:
    """Return the op that computes the extreme of all elements."""
    of_rows = op_of(getattr(kernels, f"a{name}"), x=_shared_in_rows)  # (by which `vmap` computes it)
    return op_of(
        kernel, batch=lambda x: of_rows(x.reshape(x.numel()), 0, False), name=f"{name.capitalize()}Backward1",
        refuses=f"{name}_all", x=_shared_by_all,
    )  # fmt: skip


_max_all, _min_all = _extreme(kernels.max_all, "max"), _extreme(kernels.min_all, "min")
_max_dim = selection(kernels.max_dim, "max", refuses=unless_empty("max_cpu", scalar=True))
_min_dim = selection(kernels.min_dim, "min", refuses=unless_empty("min_cpu", scalar=True))


@public(method=True, out="max")
@short("of_dim", _max_all, _max_dim)
@_dim_or_other
def max(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the largest element; or along `dim` a named tuple `(values, indices)`; or the maximum of two tensors.

    `max(x)` shares the gradient evenly among ties; the gradient of `max(x, dim)` goes to the element at `indices` (the
    first of ties); `max(x, other)` is `maximum(x, other)`. NaN counts as the largest. IndexError, or without `dim`
    RuntimeError, if there are no elements.

    Example:
        >>> x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
        >>> torch.max(x)
        tensor(7.)
        >>> torch.max(x, dim=1)
        torch.return_types.max(
        values=tensor([5., 7.]),
        indices=tensor([1, 0]))
        >>> torch.max(x, torch.tensor(4.0))
        tensor([[4., 5.],
                [7., 4.]])
    """
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return maximum(input, other)
    if type(dim) is not int or not 0 <= dim < input._array.ndim:
        dim = _one(dim, input, "max")
    return _max_all(input) if dim is None else _max_dim(input, dim, keepdim)


@public(method=True, out="max")
@short("of_dim", _min_all, _min_dim)
@_dim_or_other
def min(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
    """Return the smallest element; or along `dim` a named tuple `(values, indices)`; or the minimum of two tensors.

    Arguments, gradients and errors are the same as for `max`; NaN counts as the smallest.

    Example:
        >>> torch.min(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        torch.return_types.min(
        values=tensor([1., 2.]),
        indices=tensor([0, 1]))
    """
    if isinstance(dim, Tensor):
        dim, other = None, dim
    if other is not None:
        return minimum(input, other)
    if type(dim) is not int or not 0 <= dim < input._array.ndim:
        dim = _one(dim, input, "min")
    return _min_all(input) if dim is None else _min_dim(input, dim, keepdim)


def _aminmax_x(g: Any, x: Any, out0: Any, out1: Any, dim: Any) -> Any:
    parts = [_shared(each, x, out, dim) for each, out in zip(g, (out0, out1), strict=True) if each is not None]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_aminmax = op_of(kernels.aminmax, refuses="aminmax_cpu", x=_aminmax_x, outputs=2, result=return_types.aminmax)


@public(method=True, out="exact")
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the smallest and the largest element, as a named tuple `(min, max)`.

    Example:
        >>> torch.aminmax(torch.tensor([3.0, 1.0, 2.0]))
        torch.return_types.aminmax(
        min=tensor(1.),
        max=tensor(3.))
    """
    if dim is None and not input._array.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    axes: Any = () if dim is None else _one(dim, input, "aminmax")
    kernels.check_some(input._array, axes if axes == () or not input._array.ndim else (axes,), "aminmax")
    return _aminmax(input, axes, keepdim)


@public(method=True, out="exact")
@op(kernels.argmax, refuses=unless_empty("argmax_cpu"), x=None)
def argmax(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the largest element (the first of ties) in the flattened input, or along `dim`.

    NaN counts as the largest. IndexError: there is no element; RuntimeError for booleans.

    Example:
        >>> torch.argmax(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([1, 0])
    """


@public(method=True, out="exact")
@op(kernels.argmin, refuses=unless_empty("argmin_cpu"), x=None)
def argmin(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the index of the smallest element (the first of ties) in the flattened input, or along `dim`.

    NaN counts as the smallest. Errors are the same as for `argmax`.

    Example:
        >>> torch.argmin(torch.tensor([[1.0, 5.0], [7.0, 2.0]]))
        tensor(0)
    """


_cummax = selection(kernels.cummax, "cummax", _gathered_back, refuses=unless_empty("cummax_cpu", scalar=True))
_cummin = selection(kernels.cummin, "cummin", _gathered_back, refuses=unless_empty("cummin_cpu", scalar=True))


@public(method=True, out="cummax")
def cummax(input: Tensor, dim: int) -> Any:
    """Return the cumulative maxima along `dim`, as a named tuple `(values, indices)`.

    Example:
        >>> torch.cummax(torch.tensor([1.0, 3.0, 2.0]), 0).values
        tensor([1., 3., 3.])
    """
    array = input._array  # PyTorch checks `dim` only if there are elements
    return _cummax(input, kernels.axis_of(dim, array.ndim, "cummax") if array.size else 0)


@public(method=True, out="cummax")
def cummin(input: Tensor, dim: int) -> Any:
    """Return the cumulative minima along `dim`, as a named tuple `(values, indices)`.

    Example:
        >>> torch.cummin(torch.tensor([2.0, 3.0, 1.0]), 0).values
        tensor([2., 2., 1.])
    """
    array = input._array  # PyTorch checks `dim` only if there are elements
    return _cummin(input, kernels.axis_of(dim, array.ndim, "cummin") if array.size else 0)


# Medians ------------------------------------------------------------------------------------------


def _medians(name: str, of_all: Callable[..., Any], along: Callable[..., Any]) -> tuple[Any, Any]:
    """Return two ops: the median of all elements, and the median along a dimension with its index."""
    of_rows = selection(along, name, refuses="median_out", overload=1)
    whole = op_of(
        of_all, batch=lambda x, *_: of_rows(x.reshape(x.numel()), 0, False)[0] if x.numel() else NotImplemented,
        x=_shared_by_all, name=name.capitalize(), refuses=unless_empty("median_cpu"),
    )  # fmt: skip
    return whole, of_rows


_median_all, _median_dim = _medians("median", statistics.median_all, statistics.median_dim)
_nanmedian_all, _nanmedian_dim = _medians("nanmedian", statistics.nanmedian_all, statistics.nanmedian_dim)


@public(method=True, out="median")
@short("of_dim", _median_all, _median_dim)
def median(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the median (the lower of two middle elements); or along `dim` a named tuple `(values, indices)`.

    The median is NaN if any element is NaN.

    Example:
        >>> torch.median(torch.tensor([4.0, 1.0, 3.0, 2.0]))
        tensor(2.)
    """
    dim = _one(dim, input, "median")
    return _median_all(input) if dim is None else _median_dim(input, dim, keepdim)


@public(method=True, out="median")
@short("of_dim", _nanmedian_all, _nanmedian_dim)
def nanmedian(input: Tensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Return the median of the elements that are not NaN, with the arguments of `median`.

    Example:
        >>> torch.nanmedian(torch.tensor([4.0, torch.nan, 3.0]))
        tensor(3.)
    """
    dim = _one(dim, input, "nanmedian")
    return _nanmedian_all(input) if dim is None else _nanmedian_dim(input, dim, keepdim)


# Variance and standard deviation ------------------------------------------------------------------


def _var_x(g: Any, x: Any, dim: Any, degrees: float) -> Any:
    distance = x - mean(x, dim, True)
    if degrees <= 0 and dim is None:  # infinity, except NaN for elements equal to the mean
        return _kept(g, x._array.shape, dim) * (absolute(distance) * math.inf)
    return _kept(g, x._array.shape, dim) * (2 / degrees if degrees else math.inf) * distance


def _std_x(g: Any, x: Any, out: Any, dim: Any, degrees: float) -> Any:
    return _var_x((g / (2 * out)).masked_fill(out == 0, 0), x, dim, degrees)


def _with_mean(g: Any, x: Any, dim: Any, moment: Callable[[Any], Any]) -> Any:
    """Return the gradient of a moment and of the mean, of which one may be None, from the formula of the moment."""
    of_moment, of_mean = g
    parts = []
    if of_moment is not None:
        parts.append(moment(of_moment))
    if of_mean is not None:
        shape = x._array.shape
        parts.append(spread(of_mean / _count(shape, dim), shape, dim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_var = op_of(kernels.var, batch="over", complex=OWN, x=_var_x)
_std = op_of(kernels.std, batch="over", complex=OWN, x=_std_x)
_var_mean = op_of(
    kernels.var_mean,
    batch="over",
    complex=OWN,
    outputs=2,
    x=lambda g, x, dim, degrees: _with_mean(g, x, dim, lambda g: _var_x(g, x, dim, degrees)),
)
_std_mean = op_of(
    kernels.std_mean,
    batch="over",
    complex=OWN,
    outputs=2,
    x=lambda g, x, out0, dim, degrees: _with_mean(g, x, dim, lambda g: _std_x(g, x, out0, dim, degrees)),
)


def _moment(function: Any, name: str, input: Tensor, dim: Any, unbiased: Any, keepdim: bool, correction: Any) -> Any:
    """Call the op `function` of a moment, after resolving PyTorch's ways to give the correction."""
    shape = input._array.shape
    if (
        type(dim) is builtins.int
        and unbiased is correction is None
        and 0 <= dim < len(shape)
        and shape[dim] > 1
        and input._array.size
        and input._array.dtype.kind in FLOATS
    ):  # fast path for the usual case
        return function(input, (dim,), shape[dim] - 1, keepdim)
    if isinstance(dim, bool):  # var(x, unbiased), the old overload for all dimensions
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}() received an invalid combination of arguments: both unbiased and correction")
        correction = 1 if unbiased else 0
    elif correction is None:
        correction = 1
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = kernels.axes_of(dim, input._array.ndim, name)
    degrees = kernels.count_of(input._array.shape, axes) - plain(name, "correction", correction)
    if degrees <= 0 or not input._array.size:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )
    return function(input, axes, degrees, keepdim)


@public(method=True, out="castable")
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """Return the variance of all elements, or over `dim`: `sum((x - mean)**2) / (N - correction)`.

    `correction` is 1 by default; `unbiased` is its older form: True is 1, False is 0. `dim` and `keepdim` are as for
    `mean`.

    Example:
        >>> torch.var(torch.tensor([1.0, 2.0, 3.0, 4.0]), correction=0)
        tensor(1.2500)
    """
    return _moment(_var, "var", input, dim, unbiased, keepdim, correction)


@public(method=True, out="castable")
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> Tensor:
    """Return the standard deviation, the square root of `var`, with the arguments and errors of `var`.

    The gradient is 0 where the standard deviation is 0.

    Example:
        >>> torch.std(torch.tensor([[1.0, 3.0], [2.0, 6.0]]), dim=1)
        tensor([1.4142, 2.8284])
    """
    return _moment(_std, "std", input, dim, unbiased, keepdim, correction)


@public()
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Return `(var, mean)`, with the arguments of `var`.

    Example:
        >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return _moment(_var_mean, "var_mean", input, dim, unbiased, keepdim, correction)


@public()
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = None
) -> tuple[Tensor, Tensor]:
    """Return `(std, mean)`, with the arguments of `std`.

    Example:
        >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
        (tensor(1.), tensor(2.))
    """
    return _moment(_std_mean, "std_mean", input, dim, unbiased, keepdim, correction)


# Norms --------------------------------------------------------------------------------------------


def _norm_x(g: Any, x: Any, out: Any, p: float, dim: Any) -> Any:
    """Return the gradient of the p-norm: the subgradient 0 where the norm is 0; None for p = 0, a count."""
    shape = x._array.shape
    if p == 0:
        return None
    if p == 1:
        return spread(g, shape, dim) * _direction(x)
    g, out = _kept(g, shape, dim), _kept(out, shape, dim)
    if p == 2:
        return g * (x / out).masked_fill(out == 0, 0)
    if math.isfinite(p):  # (the gradient does not depend on the unit)
        unit = _norm_unit(out, p)
        x, out = x / unit, out / unit
    size = absolute(x)
    if math.isinf(p):
        ties = (size == out) | isnan(size)
        count = sum(ties, dim, keepdim=True).to(g.dtype)
        return _direction(x) * ties.to(g.dtype) * (g / count)
    if p < 2:
        slope = _direction(x) * (size ** (p - 1)).masked_fill(x == 0, 0)
        return slope * (g * (out ** (1 - p)).masked_fill(out == 0, 0))
    return x * size ** (p - 2) * (g / out ** (p - 1)).masked_fill(out == 0, 0)


_norm_unit = op_of(kernels.norm_unit, batch="elementwise", out=None)


def _direction(x: Any) -> Any:
    return sgn(x) if x.dtype.is_complex else sign(x)


_norm = op_of(kernels.norm, batch="over", x=_norm_x, name="LinalgVectorNorm", complex=OWN)


@public("linalg.vector_norm", out="exact")
def vector_norm(input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the `ord`-norm of all elements, or over `dim`: `sum(|x|**ord) ** (1 / ord)`.

    `ord` is any number; inf is the largest magnitude, -inf the smallest, 0 the number of nonzero elements. The input is
    of a floating or complex dtype; `dim`, `keepdim` and `dtype` are as for `sum`.

    Example:
        >>> torch.norm(torch.tensor([3.0, -4.0])), torch.norm(torch.tensor([3.0, -4.0]), p=1)
        (tensor(5.), tensor(7.))
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {input.dtype.tensor_name}"
        )
    if dtype is not None:
        input = widened_norm("linalg.vector_norm", input, dtype)
    axes = kernels.axes_of(dim, input._array.ndim, "linalg.vector_norm")
    return _norm(input, float(ord), axes, keepdim)


def widened_norm(name: str, input: Tensor, dtype: Any) -> Tensor:
    """Return `input` converted to `dtype`, the dtype argument of a norm, which must not be narrower."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.tensor_name}")
    if dtype.is_complex is not input.dtype.is_complex:
        kind = "complex" if input.dtype.is_complex else "real"
        raise RuntimeError(f"{name}: dtype should be {kind} for {kind} inputs, but got {dtype.tensor_name}")
    if dtypes.promote_types(input.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({input.dtype.tensor_name}) should be convertible without narrowing to "
            f"the specified dtype ({dtype.tensor_name})"
        )
    return input.to(dtype)


def centered(g: Any, shares: Any, dim: Any) -> Any:
    """Return `g - sum(g * shares)` over `dim`; the shares add up to 1.

    Where a share is nearly 1 the difference would lose its digits, so the element of `g` there is first subtracted from
    all, which changes nothing else.
    """
    own = g.masked_fill(absolute(shares) <= FLAT, 0).sum(dim, True).detach()
    return (g - own) - ((g - own) * shares).sum(dim, True)


_shares = op_of(kernels.shares, complex=HOLOMORPHIC, x=lambda g, out, dim: out * centered(g, out, dim), total=None)


@public(also="special.logsumexp", method=True, out="logsumexp")
@op(
    kernels.logsumexp,
    complex=HOLOMORPHIC,
    x=lambda g, x, out, dim: _kept(g, x._array.shape, dim) * _shares(x, _kept(out, x._array.shape, dim), dim),
)
def logsumexp(x: Any, dim: Any, keepdim: bool = False) -> Any:
    """Return `log(sum(exp(x)))` over `dim`, one or several dimensions, computed without overflow.

    Example:
        >>> torch.logsumexp(torch.tensor([1000.0, 1000.0]), 0)
        tensor(1000.6932)
    """


# Truth and counts ---------------------------------------------------------------------------------


@public(method=True, out="boolean")
@op(kernels.any_over, complex=OWN, x=None)
def any(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether any element is nonzero, of all or over the dimensions `dim`, as bool (uint8 for uint8).

    Example:
        >>> torch.any(torch.tensor([[0, 1], [0, 0]]), dim=1)
        tensor([ True, False])
    """


@public(method=True, out="boolean")
@op(kernels.all_over, complex=OWN, x=None)
def all(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """Return whether all elements are nonzero, over all dimensions or `dim`, as bool (uint8 for uint8).

    Example:
        >>> torch.all(torch.tensor([[1, 1], [0, 1]]), dim=1)
        tensor([ True, False])
    """


@public(method=True)
@op(kernels.any_true, batch=lambda x: _is_any_true(x._under), x=None)
def _is_any_true(x: Any) -> Any:
    """Return whether any element of a tensor of bools is True: inside of `vmap` of all examples, as one tensor.

    Example:
        >>> torch._is_any_true(torch.tensor([True, False]))
        tensor(True)
    """


@public(method=True)
@op(kernels.all_true, batch=lambda x: _is_all_true(x._under), x=None)
def _is_all_true(x: Any) -> Any:
    """Return whether all elements of a tensor of bools are True: inside of `vmap` of all examples, as one tensor.

    Therefore Python can branch on it there, where it cannot read what differs between the examples.

    Example:
        >>> torch.vmap(lambda x: x if torch._is_all_true(x > 0) else -x)(torch.tensor([1.0, -1.0]))
        tensor([-1.,  1.])
    """


@public(method=True)
@op(kernels.count_nonzero, complex=OWN, refuses=lambda x, dim: None if dim or dim == 0 else "nonzero_count_cpu", x=None)
def count_nonzero(x: Any, dim: Any = None) -> Any:
    """Return the number of nonzero elements, of all or over the dimensions `dim`.

    Example:
        >>> torch.count_nonzero(torch.tensor([[0, 1], [2, 3]]), dim=0)
        tensor([1, 2])
    """


@public(method=True, out="hash_tensor")
@op(kernels.hash_over, refuses=unless_empty("xor_sum_cpu"), x=None)
def hash_tensor(x: Any, dim: Any = (), *, keepdim: bool = False, mode: int = 0) -> Any:
    """Return a hash of all elements, or over the dimensions `dim`, as uint64.

    It is the exclusive or of the bits of the elements, which are converted to float64 or int64. `dim` is a dimension,
    or several in a tuple; () for all. `mode` is the kind of hash; 0 is the only one.

    Example:
        >>> torch.hash_tensor(torch.tensor([[1, 2, 3], [4, 0, 7]]), 1)
        tensor([0, 3], dtype=torch.uint64)
    """
