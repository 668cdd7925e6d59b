"""Sums, extrema, norms, sorting and cumulative functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, UnsupportedCall, Value, rule, torch
from tinytorch.kernels import dtypes


def reduced(kind: str, x: Value, axes: list[int], keepdim: bool) -> Value:
    """Return the reduction of a tensor along axes."""
    b = x.builder
    if not axes:  # of a number
        result: Value = b.node("Abs" if kind in ("ReduceL1", "ReduceL2") else "Identity", x)
    else:
        result = b.node(kind, x, axes, keepdims=int(bool(keepdim)))
    return result


def _filled_axes(x: Value, dim: Any) -> list[int]:
    """Return axes; UnsupportedCall for those without elements, of which ONNX Runtime makes other numbers."""
    axes = x.axes(dim)
    if any(x.shape[k] == 0 for k in axes):
        raise UnsupportedCall("a reduction of no elements")
    return axes


def _reduction(kind: str, *functions: Any) -> None:
    @rule(*functions)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        axes = (Value.axes if kind in ("ReduceSum", "ReduceProd") else _filled_axes)(x, dim)
        given = x.cast(dtypes.int32 if b.out.dtype is dtypes.bool else b.out.dtype)
        return reduced(kind, given, axes, keepdim).cast(b.out.dtype)


_reduction("ReduceSum", torch.sum)
_reduction("ReduceMean", torch.mean)
_reduction("ReduceMax", torch.amax)
_reduction("ReduceMin", torch.amin)
_reduction("ReduceProd", torch.prod)
_reduction("ReduceLogSumExp", torch.logsumexp)


def _whether(kind: str, function: Any) -> None:
    @rule(function)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
        truth = x.cast(dtypes.bool).convert(dtypes.int32)
        axes = [] if dim in ((), []) else _filled_axes(x, dim)
        return reduced(kind, truth, axes, keepdim).convert(b.out.dtype)


_whether("ReduceMax", torch.any)
_whether("ReduceMin", torch.all)


@rule(torch.count_nonzero)
def _count_nonzero(b: Builder, x: Value, dim: Any = None) -> Any:
    return reduced("ReduceSum", x.cast(dtypes.bool).convert(dtypes.int64), x.axes(dim), False)


def _arg(kind: str, function: Any) -> None:
    @rule(function)
    def write(b: Builder, x: Value, dim: int | None = None, keepdim: bool = False) -> Any:
        given = x.cast(dtypes.int32) if x.dtype is dtypes.bool else x
        if not x.ndim:
            return b.scalar(0)
        if dim is not None:
            return b.node(kind, given, axis=x.dim(dim), keepdims=int(keepdim))
        at = b.node(kind, given.flat(), axis=0, keepdims=0)
        return at.Reshape([1] * x.ndim) if keepdim else at


_arg("ArgMax", torch.argmax)
_arg("ArgMin", torch.argmin)


def _extremum(kind: str, function: Any) -> None:
    @rule(function)
    def write(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, other: Any = None) -> Any:
        if isinstance(dim, Value):
            dim, other = None, dim
        if other is not None:
            return b.node(kind, x.cast(b.out.dtype), b.cast(other, b.out.dtype))
        axes = _filled_axes(x, dim)
        if x.dtype is dtypes.bool:
            raise UnsupportedCall("an extremum of truth values")
        if dim is None:
            return reduced(f"Reduce{kind}", x, axes, False)
        if not x.ndim:
            return x.Identity(), b.scalar(0)
        values = reduced(f"Reduce{kind}", x, axes, keepdim)
        return values, b.node(f"Arg{kind}", x, axis=axes[0], keepdims=int(keepdim))


_extremum("Max", torch.max)
_extremum("Min", torch.min)


@rule(torch.aminmax)
def _aminmax(b: Builder, x: Value, *, dim: int | None = None, keepdim: bool = False) -> Any:
    if dim is None and keepdim:
        raise UnsupportedCall("keepdim without dim")
    return tuple([reduced(kind, x, x.axes(dim), keepdim) for kind in ("ReduceMin", "ReduceMax")])


# Variances and norms ------------------------------------------------------------------------------


def _statistic(function: Any, root: bool, both: bool) -> None:
    """Enter a variance or its root, perhaps with the mean."""

    @rule(function)
    def write(
        b: Builder, x: Value, dim: Any = None, unbiased: Any = None, keepdim: bool = False, *, correction: Any = None
    ) -> Any:
        if isinstance(dim, bool):  # `x.std(False)`
            dim, unbiased = None, dim
        if correction is None:
            correction = 1 if unbiased is None else int(unbiased)
        axes = _filled_axes(x, dim)
        mean = reduced("ReduceMean", x, axes, True)
        gap = x - mean
        square = gap * gap
        count = b.product([x.size(k) for k in axes])
        if not isinstance(count, int):
            total = reduced("ReduceSum", square, axes, keepdim)
            result = total / (b.cast(count, x.dtype) - correction)
        elif count - correction <= 0:
            raise UnsupportedCall("a variance of too few numbers")
        else:
            result = reduced("ReduceMean", square, axes, keepdim)
            result = result * (count / (count - correction)) if correction else result
        mean = mean if keepdim else reduced("ReduceMean", x, axes, False)
        result = result.Sqrt() if root else result
        return (result, mean) if both else result


_statistic(torch.var, False, False)
_statistic(torch.std, True, False)
_statistic(torch.var_mean, False, True)
_statistic(torch.std_mean, True, True)


def norm(x: Value, p: Any, axes: list[int], keepdim: bool = False) -> Any:
    """Return the norm of order `p` of vectors along axes."""
    x = x.cast(x.builder.out.dtype)
    if p in (1, 2):
        return reduced(f"ReduceL{int(p)}", x, axes, keepdim)
    size = x.Abs()
    if p in (math.inf, -math.inf):
        return reduced("ReduceMax" if p > 0 else "ReduceMin", size, axes, keepdim)
    if p == 0:
        return reduced("ReduceSum", size.convert(dtypes.bool).convert(x.dtype), axes, keepdim)
    total = reduced("ReduceSum", size.Pow(p), axes, keepdim)
    return total.Pow(1 / p)


def _vector_norm(x: Value, p: Any, dim: Any, keepdim: bool) -> Any:
    """Return a norm of vectors; `p` may also be "fro", or None, which are the second."""
    if isinstance(p, str) and p != "fro":
        raise UnsupportedCall("a norm of matrices")
    return norm(x, 2 if p in ("fro", None) else p, x.axes(dim), keepdim)


rule(torch.linalg.vector_norm)(
    lambda b, x, ord=2, dim=None, keepdim=False, *, dtype=None: _vector_norm(x, ord, dim, keepdim)
)


@rule(torch.linalg.matrix_norm)
def _matrix_norm(
    b: Builder, x: Value, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Any:
    return _vector_norm(x, str(ord), dim, keepdim)


rule(torch.dist)(lambda b, x, other, p=2: norm(x - other, p, list(range(max(x.ndim, other.ndim)))))


# Cumulative functions and sorting -----------------------------------------------------------------


@rule(torch.cumsum)
def _cumsum(b: Builder, x: Value, dim: int, *, dtype: Any = None) -> Any:
    given = x.cast(b.out.dtype)
    return given.CumSum(b.scalar(x.dim(dim))) if x.ndim else given.Identity()


@rule(torch.nansum)
def _nansum(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    y = x.cast(b.out.dtype)
    if x.dtype.is_floating_point:
        y = b.where(x.IsNaN(), 0, y)
    return reduced("ReduceSum", y, x.axes(dim), keepdim)


@rule(torch.nanmean)
def _nanmean(b: Builder, x: Value, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    total = _nansum(b, x, dim, keepdim)
    return total / reduced("ReduceSum", (~x.IsNaN()).convert(b.out.dtype), x.axes(dim), keepdim)


@rule(torch.cumprod)
def _cumprod(b: Builder, x: Value, dim: int, *, dtype: Any = None) -> Any:
    y: Any = x.cast(b.out.dtype)
    if not x.ndim:
        return y
    k = x.dim(dim)
    n = x.shape[k]
    if not n or n > 64:
        raise UnsupportedCall("a product along a size that is large, or not known")
    step = 1
    while step < n:  # (each element is multiplied by that before it, by those two before it, and so on)
        ones = b.cast(1, y.dtype).Expand([step if j == k else x.size(j) for j in range(x.ndim)])
        y = y * b.concat(ones, y.slice(k, 0, n - step), axis=k)
        step *= 2
    return y


@rule(torch.diff)
def _diff(b: Builder, x: Value, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Any:
    parts = [part.cast(x.dtype) for part in (prepend, x, append) if part is not None]
    k, far = x.dim(dim), np.iinfo(np.int64).max
    y = x if len(parts) == 1 else b.concat(*parts, axis=k)
    for _ in range(n):
        y = b.node("Xor" if x.dtype is dtypes.bool else "Sub", y.slice(k, 1, far), y.slice(k, 0, -1))
    return y.Identity() if y is x else y


@rule(torch.topk)
def _topk(b: Builder, x: Value, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    if not x.ndim:
        return x.Identity(), b.scalar(0)
    return x.TopK([k], outputs=2, axis=x.dim(dim), largest=int(largest), sorted=1)


@rule(torch.sort)
def _sort(b: Builder, x: Value, dim: int = -1, descending: bool = False, *, stable: Any = None) -> Any:
    truth = x.dtype is dtypes.bool and x.ndim
    values, at = _topk(b, x.cast(dtypes.int32) if truth else x, x.size(dim) if x.ndim else 1, dim, descending)
    return values.convert(dtypes.bool) if truth else values, at


def _ranked(b: Builder, x: Value, k: Any, dim: int, keepdim: bool, at: int) -> Any:
    """Return one of the `k` smallest elements, with its index."""
    if not x.ndim:
        return x.Identity(), b.scalar(0)
    place = np.array([at] if keepdim else at, np.int64)
    return tuple([y.Gather(place, axis=x.dim(dim)) for y in _topk(b, x, k, dim, False)])


rule(torch.kthvalue)(lambda b, x, k, dim=-1, keepdim=False: _ranked(b, x, k, dim, keepdim, k - 1))


@rule(torch.median)
def _median(b: Builder, x: Value, dim: Any = None, keepdim: bool = False) -> Any:
    _filled_axes(x, dim)
    if dim is None:
        return _ranked(b, x.flat(), (b.product(x.sizes) + 1) // 2, 0, False, -1)[0]
    return _ranked(b, x, (x.size(dim) + 1) // 2 if x.ndim else 1, dim, keepdim, -1)
