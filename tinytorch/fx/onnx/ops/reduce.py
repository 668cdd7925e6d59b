"""Sums, extrema, norms, sorting and cumulative functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Unsaid, Value, says
from tinytorch.kernels import dtypes


def axes_of(x: Value, dim: Any) -> list[int]:
    """Return the dimensions along which a function reduces: all of them for None, or none given."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(x.ndim))
    return [x.dim(k) for k in (dim if isinstance(dim, (tuple, list)) else (dim,)) if x.ndim]


def reduced(b: Builder, kind: str, x: Any, axes: list[int], keepdim: bool) -> str:
    """Return the reduction of a tensor along axes."""
    if not axes:  # of a number
        return b.op("Abs" if kind in ("ReduceL1", "ReduceL2") else "Identity", x)
    return b.op(kind, x, np.array(axes, np.int64), keepdims=int(bool(keepdim)))


def _some(x: Value, axes: list[int]) -> list[int]:
    """Return axes; Unsaid for those without elements, of which ONNX Runtime makes other numbers."""
    if any(x.shape[k] == 0 for k in axes):
        raise Unsaid("a reduction of no elements")
    return axes


def _reduction(kind: str, *names: str) -> None:
    @says(*names)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        axes = axes_of(x, dim)
        if kind not in ("ReduceSum", "ReduceProd"):
            _some(x, axes)
        truth = b.out.dtype is dtypes.bool
        result = reduced(b, kind, b.cast(x, dtypes.int32 if truth else b.out.dtype), axes, keepdim)
        return b.op("Cast", result, to=b.type_of(dtypes.bool)) if truth else result


_reduction("ReduceSum", "sum")
_reduction("ReduceMean", "mean")
_reduction("ReduceMax", "amax")
_reduction("ReduceMin", "amin")
_reduction("ReduceProd", "prod")
_reduction("ReduceLogSumExp", "logsumexp")


def _whether(kind: str, name: str) -> None:
    @says(name)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        truth = b.op("Cast", b.cast(x, dtypes.bool), to=b.type_of(dtypes.int32))
        axes = [] if dim in ((), []) else _some(x, axes_of(x, dim))
        return b.op("Cast", reduced(b, kind, truth, axes, keepdim), to=b.type_of(b.out.dtype))


_whether("ReduceMax", "any")
_whether("ReduceMin", "all")


@says("count_nonzero")
def _count_nonzero(b: Builder, x: Value, dim: Any = None) -> Any:
    truth = b.op("Cast", b.cast(x, dtypes.bool), to=b.type_of(dtypes.int64))
    return reduced(b, "ReduceSum", truth, axes_of(x, dim), False)


def _arg(kind: str, name: str) -> None:
    @says(name)
    def write(b: Builder, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
        given = b.cast(x, dtypes.int32) if x.dtype is dtypes.bool else x.name
        if not x.ndim:
            return b.constant(np.array(0, np.int64))
        if dim is None:
            flat = b.op("Reshape", given, np.array([-1]))
            at = b.op(kind, flat, axis=0, keepdims=0)
            return b.op("Reshape", at, np.array([1] * x.ndim)) if keepdim else at
        return b.op(kind, given, axis=x.dim(dim), keepdims=int(keepdim))


_arg("ArgMax", "argmax")
_arg("ArgMin", "argmin")


def _extremum(kind: str, name: str) -> None:
    @says(name)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if isinstance(dim, Value):
            dim, other = None, dim
        if other is not None:
            return b.op(kind, b.cast(x, b.out.dtype), b.cast(other, b.out.dtype))
        _some(x, axes_of(x, dim))
        if x.dtype is dtypes.bool:
            raise Unsaid("an extremum of truth values")
        if dim is None:
            return reduced(b, f"Reduce{kind}", x, axes_of(x, None), False)
        if not x.ndim:
            return b.op("Identity", x), b.constant(np.array(0, np.int64))
        axis = x.dim(dim)
        values = reduced(b, f"Reduce{kind}", x, [axis], keepdim)
        return values, b.op(f"Arg{kind}", x, axis=axis, keepdims=int(keepdim))


_extremum("Max", "max")
_extremum("Min", "min")


@says("aminmax")
def _aminmax(b: Builder, x: Value, *, dim: int | None = None, keepdim: bool = False) -> Any:
    axes = axes_of(x, dim)
    if dim is None and keepdim:
        raise Unsaid("keepdim without dim")
    return reduced(b, "ReduceMin", x, axes, keepdim), reduced(b, "ReduceMax", x, axes, keepdim)


# Variances and norms ------------------------------------------------------------------------------


def _variance(
    b: Builder, x: Value, dim: Any, unbiased: Any, keepdim: bool, correction: Any, root: bool
) -> tuple[str, str]:
    if isinstance(dim, bool):  # `x.std(False)`
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    axes = axes_of(x, dim)
    dtype = x.dtype
    mean = reduced(b, "ReduceMean", x, axes, True)
    _some(x, axes)
    gap = b.op("Sub", x, mean)
    square = b.op("Mul", gap, gap)
    count = b.product([b.size(x, k) for k in axes])
    if isinstance(count, int):
        if count - correction <= 0:
            raise Unsaid("a variance of too few numbers")
        total = reduced(b, "ReduceMean", square, axes, keepdim)
        result = total if not correction else b.op("Mul", total, b.cast(count / (count - correction), dtype))
    else:
        total = reduced(b, "ReduceSum", square, axes, keepdim)
        result = b.op("Div", total, b.op("Sub", b.cast(count, dtype), b.cast(correction, dtype)))
    mean = mean if keepdim else reduced(b, "ReduceMean", x, axes, False)
    return (b.op("Sqrt", result) if root else result), mean


def _statistic(name: str, root: bool, mean: bool) -> None:
    @says(name)
    def write(
        b: Builder, x: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        both = _variance(b, x, dim, unbiased, keepdim, correction, root)
        return both if mean else both[0]


_statistic("var", False, False)
_statistic("std", True, False)
_statistic("var_mean", False, True)
_statistic("std_mean", True, True)


def _norm(b: Builder, x: Value, p: Any, axes: list[int], keepdim: bool) -> str:
    given = b.cast(x, b.out.dtype)
    if p == 2:
        return reduced(b, "ReduceL2", given, axes, keepdim)
    if p == 1:
        return reduced(b, "ReduceL1", given, axes, keepdim)
    size = b.op("Abs", given)
    if p in (math.inf, -math.inf):
        return reduced(b, "ReduceMax" if p > 0 else "ReduceMin", size, axes, keepdim)
    if p == 0:
        some = b.op("Cast", b.op("Cast", size, to=b.type_of(dtypes.bool)), to=b.type_of(b.out.dtype))
        return reduced(b, "ReduceSum", some, axes, keepdim)
    total = reduced(b, "ReduceSum", b.op("Pow", size, b.cast(p, b.out.dtype)), axes, keepdim)
    return b.op("Pow", total, b.cast(1 / p, b.out.dtype))


@says("norm")
def _any_norm(b: Builder, x: Value, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    if isinstance(p, str) and p != "fro":
        raise Unsaid("a norm of matrices")
    return _norm(b, x, 2 if p in ("fro", None) else p, axes_of(x, dim), keepdim)


@says("linalg.vector_norm")
def _vector_norm(
    b: Builder, x: Value, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return _norm(b, x, ord, axes_of(x, dim), keepdim)


@says("linalg.norm")
def _linalg_norm(
    b: Builder, x: Value, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    axes = axes_of(x, dim)
    if ord is not None and ord != "fro" and (len(axes) != 1 or isinstance(ord, str)):
        raise Unsaid("a norm of matrices")
    return _norm(b, x, 2 if ord in (None, "fro") else ord, axes, keepdim)


@says("linalg.matrix_norm")
def _matrix_norm(
    b: Builder, x: Value, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    if ord != "fro":
        raise Unsaid("a norm of matrices")
    return _norm(b, x, 2, axes_of(x, dim), keepdim)


@says("dist")
def _dist(b: Builder, x: Value, other: Value, p: Any = 2) -> Any:
    gap = b.op("Sub", x, other)
    return _norm(b, Value(gap, (1,) * max(x.ndim, other.ndim), x.dtype), p, list(range(max(x.ndim, other.ndim))), False)


# Cumulative functions and sorting -----------------------------------------------------------------


@says("cumsum")
def _cumsum(b: Builder, x: Value, dim: int, *, dtype: Any = None) -> Any:
    given = b.cast(x, b.out.dtype)
    return b.op("CumSum", given, np.array(x.dim(dim), np.int64)) if x.ndim else b.op("Identity", given)


@says("nansum")
def _nansum(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    y = b.cast(x, b.out.dtype)
    if x.dtype.is_floating_point:
        y = b.op("Where", b.op("IsNaN", x), b.cast(0, b.out.dtype), y)
    return reduced(b, "ReduceSum", y, axes_of(x, dim), keepdim)


@says("nanmean")
def _nanmean(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    total = _nansum(b, x, dim, keepdim)
    known = b.op("Cast", b.op("Not", b.op("IsNaN", x)), to=b.type_of(b.out.dtype))
    return b.op("Div", total, reduced(b, "ReduceSum", known, axes_of(x, dim), keepdim))


@says("cumprod")
def _cumprod(b: Builder, x: Value, dim: int, *, dtype: Any = None) -> Any:
    if not x.ndim:
        return b.cast(x, b.out.dtype)
    k = x.dim(dim)
    n = x.shape[k]
    if not n or n > 64:
        raise Unsaid("a product along a size that is large, or not known")
    y = b.cast(x, b.out.dtype)
    step = 1
    while step < n:  # (each element is multiplied by that before it, by those two before it, and so on)
        shape: list[Any] = [b.size(x, j) for j in range(x.ndim)]
        shape[k] = step
        ones = b.op("Expand", b.cast(1, b.out.dtype), b.ints(shape))
        y = b.op("Mul", y, b.op("Concat", ones, b.sliced(y, k, 0, n - step), axis=k))
        step *= 2
    return y


@says("diff")
def _diff(b: Builder, x: Value, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [b.cast(part, x.dtype) for part in (prepend, x, append) if part is not None]
    y: Any = x if len(parts) == 1 else b.op("Concat", *parts, axis=x.dim(dim))
    k, far = x.dim(dim), np.iinfo(np.int64).max
    for _ in range(n):
        y = b.op("Xor" if x.dtype is dtypes.bool else "Sub", b.sliced(y, k, 1, far), b.sliced(y, k, 0, -1))
    return b.op("Identity", y) if y is x else y


@says("topk")
def _topk(b: Builder, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not x.ndim:
        return b.op("Identity", x), b.constant(np.array(0, np.int64))
    return b.op("TopK", x, b.ints([k]), outputs=2, axis=x.dim(dim), largest=int(largest), sorted=1)


@says("sort")
def _sort(b: Builder, x: Value, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    if not x.ndim:
        return b.op("Identity", x), b.constant(np.array(0, np.int64))
    if x.dtype is dtypes.bool:
        values, at = _topk(b, x._replace(name=b.cast(x, dtypes.int32)), b.size(x, dim), dim, descending)
        return b.op("Cast", values, to=b.type_of(dtypes.bool)), at
    return _topk(b, x, b.size(x, dim), dim, descending)


@says("argsort")
def _argsort(b: Builder, x: Value, dim: int = -1, descending: bool = False, stable: Any = None) -> Any:
    return _sort(b, x, dim, descending)[1]


@says("msort")
def _msort(b: Builder, x: Value) -> Any:
    return _sort(b, x, 0)[0]


@says("kthvalue")
def _kthvalue(b: Builder, x: Value, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if not x.ndim:
        return b.op("Identity", x), b.constant(np.array(0, np.int64))
    at = np.array([k - 1] if keepdim else k - 1, np.int64)
    return tuple([b.op("Gather", y, at, axis=x.dim(dim)) for y in _topk(b, x, k, dim, False)])


@says("median")
def _median(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    _some(x, axes_of(x, dim))
    if dim is None:
        flat = Value(b.op("Reshape", x, np.array([-1])), (None,), x.dtype)
        count = b.calculated("Div", b.calculated("Add", b.product(b.sizes(x)), 1), 2)
        values, _ = _topk(b, flat, count, 0, False)
        return b.op("Gather", values, np.array(-1, np.int64), axis=0)
    if not x.ndim:
        return b.op("Identity", x), b.constant(np.array(0, np.int64))
    count = b.calculated("Div", b.calculated("Add", b.size(x, dim), 1), 2)
    at = np.array([-1] if keepdim else -1, np.int64)
    return tuple([b.op("Gather", y, at, axis=x.dim(dim)) for y in _topk(b, x, count, dim, False)])


__all__ = ["axes_of", "reduced"]
