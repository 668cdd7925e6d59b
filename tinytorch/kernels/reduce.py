"""Reductions of arrays and cumulative ops: which axes, sums that stay accurate, extremes, moments, norms, truth."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from . import dtypes, parallel
from .checks import in_single, out_of_range, refused, tensor_name
from .dtypes import DIFFERENTIABLE, FLOATS, number
from .intp import as_int64
from .native import twin

# NumPy's stubs know `keepdims` only as a constant.
_add: Any = np.add.reduce
_largest: Any = np.maximum.reduce
_smallest: Any = np.minimum.reduce
_multiply: Any = np.multiply.reduce
_xor: Any = np.bitwise_xor.reduce

_INT64 = np.dtype(np.int64)
_ROWS = 32  # rows that are added one after another; the sums of such blocks are then added likewise
_SHORT = 32  # rows up to this length are summed by a product with a square matrix of ones
_SMALL = 1024  # arrays up to this size are summed without regard to rounding, which `total` controls for larger ones


def axis_of(dim: Any, ndim: int, name: str) -> int:
    """Return a dimension counted from 0, given one that may be negative; 0-d tensors allow 0 and -1, as in PyTorch."""
    if type(dim) is not int:
        dim = int_of(dim, name, "dim")
    bound = ndim or 1
    if not -bound <= dim < bound:
        raise out_of_range(dim, bound)
    return dim + bound if dim < 0 else dim


def int_of(value: Any, name: str, argument: str) -> int:
    """Return the int that `value` is by `__index__`; a bool raises an error, as in PyTorch."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise TypeError(f"{name}(): argument '{argument}' (position 1) must be int, not {type(value).__name__}")


def axes_of(dim: Any, ndim: int, name: str) -> tuple[int, ...] | None:
    """Return a tuple of dimensions counted from 0; None for all of them (also if `dim` is empty).

    Raises:
        IndexError: a dimension is out of range.
        RuntimeError: a dimension appears twice.
        TypeError: `dim` is neither None, an int nor a sequence of ints.
    """
    if dim is None:
        return None
    if isinstance(dim, (tuple, list)):
        axes = tuple([axis_of(axis, ndim, name) for axis in dim])
        for axis in axes:
            if axes.count(axis) > 1:
                raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    elif isinstance(dim, (float, str, bool)):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(dim).__name__}), "
            "but expected dim to be an int or a tuple of ints"
        )
    else:
        axes = (axis_of(dim, ndim, name),)
    return axes if axes and ndim else None


def kept_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """Return the shape after a reduction over `dim` (already checked) that keeps dimensions."""
    ndim = len(shape)
    if dim is None:
        return (1,) * ndim
    if isinstance(dim, (tuple, list)):
        if not dim:
            return (1,) * ndim
        reduced = {operator.index(axis) % ndim for axis in dim} if ndim else set()
        return tuple([1 if i in reduced else length for i, length in enumerate(shape)])
    if not ndim:
        return ()
    dim = operator.index(dim) % ndim
    return (*shape[:dim], 1, *shape[dim + 1 :])


def count_of(shape: tuple[int, ...], axes: tuple[int, ...] | None) -> int:
    """Return how many elements are reduced to one."""
    return math.prod(shape) if axes is None else math.prod([shape[axis] for axis in axes])


@twin
def spread(x: Any, shape: tuple[int, ...], dim: Any = None) -> Any:
    """Return `x`, a reduction of an array of `shape` over `dim`, expanded along the reduced dimensions."""
    x = x.reshape(kept_shape(shape, dim))
    if math.prod(shape) > 1 << 14:
        return np.broadcast_to(x, shape)  # for a small array creating this view takes longer than copying
    out = np.empty_like(x, shape=shape)
    out[...] = x
    return out


def in_rows(out: Any) -> Any:
    """Return an array in row-major order, the layout of PyTorch's reductions of tensors of any layout."""
    return out if out.flags.c_contiguous else out.copy("C")


def all_finite(x: Any) -> bool:
    """Return whether all elements of an array of numbers are finite.

    The product of the array with itself is finite if they are, unless it overflows: BLAS takes a third of the time of a
    test of each element.
    """
    kind = x.dtype
    if kind is _F32 or kind is _F64:
        if x.flags.c_contiguous:
            product = np.vdot(x, x)
        else:
            if 0 in x.strides:  # the elements of an expanded array once each
                x = x[tuple([slice(None) if stride else slice(0, 1) for stride in x.strides])]
            flat = x.ravel("K")
            product = np.dot(flat, flat)
        if math.isfinite(product):
            return True
    return bool(np.isfinite(x).all())


@twin
@in_single
def total(x: Any, axes: tuple[int, ...] | None = None, keepdims: bool = False) -> Any:
    """Return the sum over `axes`, with a rounding error like that of pairwise summation.

    NumPy adds pairwise only along contiguous axes; over other axes it adds row after row, so that the error grows with
    the number of rows. It is also slow if the axis of its innermost loop is short. Therefore short contiguous rows are
    summed by BLAS (a product with ones, several times faster), and columns in blocks, whose sums are added likewise.
    """
    if (not x.flags.c_contiguous or 1 in x.shape) and x.dtype.kind in FLOATS:
        out = _by_memory(total, x, axes, keepdims)
        if out is not None:
            return out
    if x.dtype.kind not in FLOATS:
        return in_rows(_add(x, axes, x.dtype, None, keepdims))
    if x.size <= _SMALL:
        return in_rows(_add(x, axes, None, None, keepdims))  # (a keyword costs time here)
    if axes is None:
        axes = tuple(range(x.ndim))
    if not axes:
        return x.copy("C")
    out = _total(x, [axis in axes for axis in range(x.ndim)])
    return out.reshape(kept_shape(x.shape, axes)) if keepdims else out


def _by_memory(kernel: Any, x: Any, axes: tuple[int, ...] | None, *args: Any) -> Any:
    """Return `kernel(x, axes, *args)`, computed with the axes in the order of memory; None if they already are.

    So the rounding of a sum depends on where its terms lie in memory, and not on how a view orders its dimensions, or
    on dimensions of one element. The last of the arguments says whether dimensions are kept.
    """
    long = [axis for axis, n in enumerate(x.shape) if n != 1]
    order = sorted(long, key=lambda axis: -abs(x.strides[axis]))
    if len(order) == x.ndim and order == long:
        return None
    reduced = range(x.ndim) if axes is None else axes
    moved = None if axes is None else tuple(sorted([order.index(axis) for axis in axes if axis in long]))
    out = kernel(x.squeeze().transpose([long.index(axis) for axis in order]), moved, *args[:-1], True)
    out = in_rows(out.transpose([order.index(axis) for axis in long]))
    if args[-1]:
        return out.reshape([1 if axis in reduced else n for axis, n in enumerate(x.shape)])
    return out.reshape([n for axis, n in enumerate(x.shape) if axis not in reduced])


@functools.lru_cache(256)
def square(n: int, value: float, kind: Any) -> Any:
    """Return a cached, read-only array (n, n) of one number.

    A product with it gives the sums of rows already broadcast along the rows.
    """
    array = np.full((n, n), value, kind)
    array.flags.writeable = False
    return array


_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)


@twin
def add_to_rows(out: Any, row: Any) -> None:
    """Add a vector to each row of `out`, in place: short rows are joined to long ones.

    NumPy's inner loop runs over one row, and takes as long for 10 numbers as for 100.
    """
    rows, columns = out.shape
    several = _WIDE // columns if columns else 0
    if several < 2 or rows < 4 * several or row.ndim != 1 or not out.flags.c_contiguous:
        out += row
        return
    tile = np.empty_like(row, shape=(several, columns))
    tile[...] = row
    whole = rows - rows % several
    body = out[:whole].reshape(-1, several * columns)
    body += tile.reshape(-1)
    if whole < rows:
        out[whole:] += row


_WIDE = 1000  # length of a row from which on the overhead of a loop is negligible


def _dense(x: Any) -> bool:
    return bool(x.flags.c_contiguous or x.flags.f_contiguous)


def _total(x: Any, reduced: list[bool]) -> Any:
    """Return the sum over the axes flagged in `reduced`, of an array whose axes are in memory order."""
    while True in reduced:  # each run of adjacent reduced axes at once, the innermost run first
        last = len(reduced) - 1 - reduced[::-1].index(True)
        first = last
        while first and reduced[first - 1]:
            first -= 1
        before, after = x.shape[:first], x.shape[last + 1 :]
        length = math.prod(x.shape[first : last + 1])
        if not after and length > _SMALL and not x.flags.c_contiguous:
            x = _add(x, axis=-1)  # long rows with gaps between them: one axis at a time needs no copy
            reduced = reduced[:-1]
            continue
        x = _middle(x.reshape((math.prod(before), length, math.prod(after))))
        x = x.reshape(before + after)
        reduced = reduced[:first] + reduced[last + 1 :]
    return x


def _middle(x: Any) -> Any:
    """Return the sum over the middle one of three axes."""
    a, n, m = x.shape
    if m == 1:
        if n > _SMALL:
            return _add(x, axis=(1, 2))
        return x.reshape(a, n).dot(np.ones_like(x, shape=(n,)))
    if n <= _ROWS:
        return _add(x, axis=1)
    blocks, rest = divmod(n, _ROWS)
    body = x[:, : blocks * _ROWS]
    if a == 1 and m < 512:  # short rows: blocks side by side make long rows
        sums = _add(body.reshape(_ROWS, blocks * m), axis=0).reshape(1, blocks, m)
    else:
        sums = _add(body.reshape(a, blocks, _ROWS, m), axis=2)
    out = _middle(sums)
    if rest:
        out = out + _add(x[:, blocks * _ROWS :], axis=1)
    return out


def divided(sums: Any, count: float) -> Any:
    """Return `sums / count`; infinities and NaN for a count of 0, without a warning."""
    if count > 0:
        if type(sums) is np.ndarray and sums.ndim and sums.dtype.kind == "f":
            return sums / number(count, sums.dtype)
        return sums / count
    with np.errstate(divide="ignore", invalid="ignore"):
        return sums / max(count, 0)


@functools.lru_cache(256)
def _full(n: int, value: float, kind: Any) -> Any:
    """Return a cached vector of one number, not to be written to."""
    return np.full(n, value, kind)


def mean(x: Any, axes: tuple[int, ...] | None, keepdims: bool) -> Any:
    """Return the mean over `axes`; NaN if there are no elements."""
    if x.dtype.itemsize < 4:  # the sum may be beyond float16 where the mean is not
        return mean(x.astype(np.float32), axes, keepdims).astype(x.dtype)
    count = x.size if axes is None else count_of(x.shape, axes)
    return divided(total(x, axes, keepdims), count)


# Sums, means and products ---------------------------------------------------------------------------


def cast(x: Any, dtype: Any, name: str) -> Any:
    """Return the array in the dtype of the accumulation: `dtype`, or by default int64 for integers and booleans."""
    if dtype is None:
        return x if x.dtype.kind in DIFFERENTIABLE else x.astype(_INT64, copy=False)
    if not isinstance(dtype, dtypes.dtype):
        try:
            dtype = dtypes.as_dtype(dtype)
        except TypeError:
            raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}") from None
    if dtype in dtypes.UNSIGNED:
        raise refused(f"{name}_{'out_' * name.startswith('cum')}cpu", x.astype(dtype.numpy))
    return x.astype(dtype.numpy, copy=False)


@twin
def sum_over(x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Return the sum of all elements, or over the dimensions `dim`."""
    if x.dtype.kind not in FLOATS or dtype is not None:
        x = cast(x, dtype, "sum")
    if dim is not None:
        dim = axes_of(dim, x.ndim, "sum")
    return total(x, dim, keepdim)


@twin
def mean_over(x: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    """Return the mean of all elements, or over the dimensions `dim`."""
    if x.dtype.kind not in FLOATS or dtype is not None:
        wanted = x if dtype is None else cast(x[:0] if x.ndim else x, dtype, "mean")
        if wanted.dtype.kind not in DIFFERENTIABLE:
            raise RuntimeError(
                f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} dtype must be "
                f"either a floating point or complex dtype. Got: {tensor_name(wanted)}"
            )
        x = x.astype(wanted.dtype, copy=False)
    if dim is not None:
        dim = axes_of(dim, x.ndim, "mean")
    return mean(x, dim, keepdim)


def nansum(x: Any, dim: Any, keepdim: bool, *, dtype: Any) -> Any:
    """Return the sum like `sum_over`, with NaN as zero."""
    x = cast(x, dtype, "nansum")
    axes = axes_of(dim, x.ndim, "nansum")
    if x.dtype.kind in FLOATS:
        x = np.where(np.isnan(x), np.zeros_like(x), x)
    return total(x, axes, keepdim)


def added_dims(shape: tuple[int, ...], size: tuple[int, ...]) -> tuple[int, ...]:
    """Return the dimensions of `shape` that broadcasting from `size` adds or expands."""
    extra = len(shape) - len(size)
    return (*range(extra), *[i + extra for i, length in enumerate(size) if length == 1 != shape[i + extra]])


def sum_to_size(x: Any, size: tuple[int, ...]) -> Any:
    """Return the sum over the dimensions that broadcasting from `size` adds or expands."""
    return total(cast(x, None, ""), added_dims(x.shape, size)).reshape(size)


@twin
def prod(x: Any, dim: int | None, keepdim: bool, dtype: Any) -> Any:
    """Return the product of all elements, or along `dim`."""
    x = cast(x, dtype, "prod")
    axis = None if dim is None or not x.ndim else dim
    wide = x.astype(np.float32) if x.dtype.kind in FLOATS and x.dtype.itemsize < 4 else x
    out = _multiply(wide, axis, wide.dtype, None, keepdim)
    return in_rows(out).astype(x.dtype, copy=False)


# Cumulative ops -----------------------------------------------------------------------------------


def accumulated(ufunc: Any, x: Any, axis: int) -> Any:
    """Return the running sums (or products) of floating-point numbers, accumulated in float64 as in PyTorch."""
    out = np.empty_like(x, order="C")

    def accumulate(begin: int, end: int) -> None:
        wide = x[begin:end].astype(np.float64, "C")  # (the conversion inside `accumulate` takes longer than the sums)
        out[begin:end] = ufunc.accumulate(wide, axis, None, wide)

    if axis:
        parallel.blocks(accumulate, len(x), math.prod(x.shape[1:]))
    else:
        accumulate(0, len(x))
    return out


@twin
def running_sums(x: Any, axis: int, reverse: bool) -> Any:
    """Return the running sums of floating-point numbers; with `reverse`, from the end."""
    if reverse:
        return np.flip(running_sums(np.flip(x, axis), axis, False), axis).copy("C")
    return accumulated(np.add, x, axis)


def cumsum(x: Any, dim: Any, *, dtype: Any) -> Any:
    """Return the cumulative sums along `dim`: element k is the sum of the elements 0 … k."""
    return _cumulated(np.add, x, dim, dtype, "cumsum")


def cumprod(x: Any, dim: Any, *, dtype: Any) -> Any:
    """Return the cumulative products along `dim`: element k is the product of the elements 0 … k."""
    return _cumulated(np.multiply, x, dim, dtype, "cumprod")


def _cumulated(ufunc: Any, x: Any, dim: Any, dtype: Any, name: str) -> Any:
    if dtype is not None or x.dtype.kind not in FLOATS:
        x = cast(x, dtype, name)
    axis = dim if type(dim) is int and 0 <= dim < x.ndim else axis_of(dim, x.ndim, name)
    if not x.ndim or not x.size:
        return x.copy()
    if x.dtype.kind == "b":
        raise refused(f"{name}_out_cpu", x)
    if x.dtype.kind not in FLOATS:
        return ufunc.accumulate(in_rows(x), axis=axis, dtype=x.dtype)
    return running_sums(x, axis, False) if ufunc is np.add else accumulated(ufunc, x, axis)


def sums_from(x: Any, dim: int) -> Any:
    """Return the reversed cumulative sums: element k is the sum of the elements from k on."""
    if x.dtype.kind == "c":
        return np.flip(cumsum(np.flip(x, dim), dim, dtype=None), dim).copy("C") if x.ndim else x.copy()
    return running_sums(x, axis_of(dim, x.ndim, "cumsum"), True) if x.ndim else x.copy()


def shift(x: Any, dim: int, fill: float) -> Any:
    """Return `x` shifted by one along `dim`, with `fill` as the first element."""
    out = np.full_like(x, fill)
    out.swapaxes(dim, 0)[1:] = x.swapaxes(dim, 0)[:-1]
    return out


def scan(x: Any, y: Any, dim: int) -> Any:
    """Return `out` with `out[k] = x[k] + y[k] * out[k - 1]` along `dim`."""
    out = np.empty_like(x)
    if not x.shape[dim]:
        return out
    xs, ys, outs = (np.moveaxis(array, dim, 0) for array in (x, y, out))
    outs[0] = xs[0]
    for k in range(1, len(xs)):
        outs[k] = xs[k] + ys[k] * outs[k - 1]
    return out


# Extremes -----------------------------------------------------------------------------------------


def check_some(x: Any, axes: tuple[int, ...] | None, name: str) -> None:
    """Raise PyTorch's error if there is no element to choose from."""
    if x.size:
        return
    if axes is None:
        if x.ndim == 0:
            return
        text = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
        if name.startswith("arg"):
            raise IndexError(text)
        raise RuntimeError(f"{text} Specify the reduction dim with the 'dim' argument.")
    for axis in axes:
        if not x.shape[axis]:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


@twin
def amax(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return the largest element of all, or over the dimensions `dim`."""
    return _extreme(_largest, x, dim, keepdim, "amax")


@twin
def amin(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return the smallest element of all, or over the dimensions `dim`."""
    return _extreme(_smallest, x, dim, keepdim, "amin")


def _extreme(reduction: Any, x: Any, dim: Any, keepdim: bool, name: str) -> Any:
    axes = axes_of(dim, x.ndim, name)
    if not x.size:
        check_some(x, axes, name)
    return in_rows(reduction(x, axes, None, None, keepdim))  # positional, since keywords are slower here


def aminmax(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return the smallest and the largest element of all, or over `dim`."""
    axes = axes_of(dim, x.ndim, "aminmax")
    least, most = _smallest(x, axes, None, None, keepdim), _largest(x, axes, None, None, keepdim)
    return in_rows(least), in_rows(most)


@twin
def max_all(x: Any) -> Any:
    """Return the largest element."""
    check_some(x, None, "max")
    return _largest(x, axis=None)


@twin
def min_all(x: Any) -> Any:
    """Return the smallest element."""
    check_some(x, None, "min")
    return _smallest(x, axis=None)


@twin
def max_dim(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Return the largest elements along `dim` and the index of each, the first one of ties."""
    return _with_index(_largest, "argmax", x, dim, keepdim)


@twin
def min_dim(x: Any, dim: int, keepdim: bool = False) -> Any:
    """Return the smallest elements along `dim` and the index of each, the first one of ties."""
    return _with_index(_smallest, "argmin", x, dim, keepdim)


def _with_index(reduction: Any, place: str, x: Any, dim: int, keepdim: bool) -> Any:
    if not x.size:
        check_some(x, (dim,), place[3:])
    if not x.ndim:
        return itself(x)
    index = getattr(x, place)
    out = reduction(x, dim, None, None, keepdim)
    return in_rows(out), as_int64(index(dim, keepdims=True) if keepdim else index(dim))


def itself(x: Any) -> tuple[Any, Any]:
    """Return what a selection along a dimension chooses from a 0-d array: its element, and index 0."""
    return x.copy(), np.zeros_like(x, dtype=_INT64)


def argmax(x: Any, dim: int | None, keepdim: bool) -> Any:
    """Return the index of the largest element (the first of ties) of the flattened array, or along `dim`."""
    return _arg(x, dim, keepdim, "argmax")


def argmin(x: Any, dim: int | None, keepdim: bool) -> Any:
    """Return the index of the smallest element (the first of ties) of the flattened array, or along `dim`."""
    return _arg(x, dim, keepdim, "argmin")


def _arg(x: Any, dim: Any, keepdim: bool, name: str) -> Any:
    if x.dtype.kind == "b":
        raise RuntimeError(f"{name}(): does not support bool input")
    axis = None if dim is None else axis_of(dim, x.ndim, name)
    check_some(x, None if axis is None or not x.ndim else (axis,), name)
    if not x.ndim:
        return np.zeros_like(x, dtype=_INT64)
    if keepdim:
        return as_int64(getattr(np, name)(x, axis=axis, keepdims=True))
    return as_int64(x.argmax(axis) if name == "argmax" else x.argmin(axis))


def cummax(x: Any, dim: int) -> Any:
    """Return the cumulative maxima along `dim` and the index of each, the last one of ties."""
    return running_extremes(x, dim, False) if x.ndim else itself(x)


def cummin(x: Any, dim: int) -> Any:
    """Return the cumulative minima along `dim` and the index of each, the last one of ties."""
    return running_extremes(x, dim, True) if x.ndim else itself(x)


@twin
def running_extremes(x: Any, dim: int, least: bool) -> Any:
    """Return the running maxima (or minima) along `dim`, and the index of each."""
    x = in_rows(x)
    values = (np.minimum if least else np.maximum).accumulate(x, axis=dim)
    reached = (x == values) | (x != x)
    steps = np.arange(x.shape[dim], dtype=_INT64, like=x).reshape([-1 if i == dim else 1 for i in range(x.ndim)])
    return values, np.maximum.accumulate(np.where(reached, steps, np.zeros_like(steps)), axis=dim)


# Moments and norms --------------------------------------------------------------------------------


def var(x: Any, dim: tuple[int, ...] | None, degrees: float, keepdim: bool) -> Any:
    """Return the sum over `dim` of squared distances from the mean, divided by `degrees` (of freedom)."""
    if x.dtype.itemsize < 4:
        return var(x.astype(np.float32), dim, degrees, keepdim).astype(x.dtype)
    kind = x.dtype
    if not x.flags.c_contiguous or 1 in x.shape:
        out = _by_memory(var, x, dim, degrees, keepdim)
        if out is not None:
            return out
    if (
        x.size <= _SMALL
        and x.ndim == 2
        and dim == (1,)
        and 0 < x.shape[1] <= _SHORT
        and degrees > 0
        and (kind is _F32 or kind is _F64)
        and type(x) is np.ndarray
    ):
        n = x.shape[1]
        distance = x - x.dot(square(n, 1 / n, kind))
        out = np.multiply(distance, distance, distance).dot(_full(n, 1 / degrees, kind))
        return out.reshape(-1, 1) if keepdim else out
    distance = x - mean(x, dim, keepdims=True)
    if kind.kind == "c":
        return divided(total(np.square(distance.real) + np.square(distance.imag), dim, keepdim), degrees)
    return divided(total(np.square(distance), dim, keepdim), degrees)


@in_single  # (the variance must not be rounded to 16 bits)
def std(x: Any, dim: Any, degrees: float, keepdim: bool) -> Any:
    """Return the square root of `var`."""
    return np.sqrt(var(x, dim, degrees, keepdim))


def var_mean(x: Any, dim: Any, degrees: float, keepdim: bool) -> Any:
    """Return `var` and the mean."""
    return var(x, dim, degrees, keepdim), mean(x, dim, keepdim)


def std_mean(x: Any, dim: Any, degrees: float, keepdim: bool) -> Any:
    """Return `std` and the mean."""
    return std(x, dim, degrees, keepdim), mean(x, dim, keepdim)


@twin
def norm(x: Any, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """Return the p-norm over `dim`."""
    if not x.size and (p < 0 or p == math.inf):
        for axis in range(x.ndim) if dim is None else dim:
            if not x.shape[axis]:
                name = "inf" if p == math.inf else "-inf" if p == -math.inf else f"{p:g}"
                where = "an empty tensor" if dim is None else f"the dimension {axis}"
                raise RuntimeError(
                    f"linalg.vector_norm cannot compute the {name} norm on {where} because "
                    f"{'the' if dim is None else 'this dimension is empty and the'} operation does not have an identity"
                )
    if x.dtype.kind == "c":
        return norm(np.abs(x), p, dim, keepdim)
    if p == 0:
        # (Not np.count_nonzero, whose result before NumPy 2.3 is a Python int if all axes are reduced.)
        return (x != 0).sum(axis=dim, keepdims=keepdim).astype(x.dtype)
    if x.dtype.itemsize < 4:
        return norm(x.astype(np.float32), p, dim, keepdim).astype(x.dtype)
    if not x.flags.c_contiguous or 1 in x.shape:
        out = _by_memory(lambda x, dim, keepdim: norm(x, p, dim, keepdim), x, dim, keepdim)
        if out is not None:
            return out
    if math.isinf(p):
        return in_rows((_largest if p > 0 else _smallest)(np.abs(x), axis=dim, keepdims=keepdim))
    if p == 1:
        return total(np.abs(x), dim, keepdim)
    out = _root_of_powers(x, p, dim, keepdim)
    exact = _has_exact_powers(out, p)
    if not x.size or (exact if dim is None else exact.all()):
        return out
    # Powers of large elements overflow, and those of small ones lose digits: these norms are computed of x / max(|x|).
    top = _largest(np.abs(x), axis=dim, keepdims=True)
    top = np.where((top > 0) & (top < math.inf), top, np.ones_like(top))
    scaled = _root_of_powers(x / top, p, dim, keepdim)
    return np.where(exact, out, scaled * top.reshape(scaled.shape))


def _has_exact_powers(size: Any, p: float) -> Any:
    """Return where the power p of a norm neither overflows nor is so small that terms of its sum lose digits."""
    power = min((30 if size.dtype.itemsize == 4 else 290) / p, 300)
    return (size > 10**-power) & (size < 10**power) if p > 0 else size == size


def norm_unit(out: Any, p: float) -> Any:
    """Return 1, but the norm itself where its powers overflow or lose digits: the unit to compute its gradient in."""
    ones = np.ones_like(out)
    if out.dtype.itemsize < 4:
        return ones
    return np.where(_has_exact_powers(out, p) | (out == 0) | ~(out < math.inf), ones, out)


def _root_of_powers(x: Any, p: float, dim: tuple[int, ...] | None, keepdim: bool) -> Any:
    """Return `sum(|x| ** p) ** (1 / p)` over `dim`."""
    if p != 2:
        return np.power(total(np.power(np.abs(x), p), dim, keepdim), 1 / p).astype(x.dtype, copy=False)
    if dim is None and _dense(x):  # one pass, and more accurate than PyTorch's
        vector = x.ravel("K")
        out = np.sqrt(vector.dot(vector))
        return out.reshape((1,) * x.ndim) if keepdim else out
    return np.sqrt(total(np.square(x), dim, keepdim))


@in_single
def logsumexp(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return `log(sum(exp(x)))` over `dim`; the largest element is subtracted first, so that nothing overflows."""
    if x.dtype.kind not in DIFFERENTIABLE:
        x = x.astype(dtypes.get_default_dtype().numpy)
    axes = axes_of(dim, x.ndim, "logsumexp")
    top = _largest(x.real if x.dtype.kind == "c" else x, axis=axes, keepdims=True, initial=-math.inf)
    top = np.where(np.isinf(top), np.zeros_like(top), top)  # inf - inf would be NaN
    out = in_rows(np.log(total(np.exp(x - top), axes, keepdim)))
    out += top if keepdim else top.reshape(out.shape)
    return out


def shares(x: Any, total: Any, dim: Any) -> Any:
    """Return `exp(x - total)`, the shares in the sum of exp(x) over `dim`, whose logarithm is `total`."""
    return np.exp(x - total)


# Truth and counts ---------------------------------------------------------------------------------


@twin
def any_over(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return whether any element is nonzero, of all or over the dimensions `dim`, as bool (uint8 for uint8)."""
    return _truth(np.logical_or, x, dim, keepdim, "any")


@twin
def all_over(x: Any, dim: Any, keepdim: bool) -> Any:
    """Return whether all elements are nonzero, over all dimensions or `dim`, as bool (uint8 for uint8)."""
    return _truth(np.logical_and, x, dim, keepdim, "all")


def any_true(x: Any) -> Any:
    """Return whether any element of an array of bools is True."""
    return any_over(_bools(x, "_is_any_true"), None, False)


def all_true(x: Any) -> Any:
    """Return whether all elements of an array of bools are True."""
    return all_over(_bools(x, "_is_all_true"), None, False)


def _bools(x: Any, name: str) -> Any:
    if x.dtype != np.bool_:
        raise RuntimeError(f"{name}: self.scalar_type() == at::kBool, a tensor of bools, is expected")
    return x


def _truth(ufunc: Any, x: Any, dim: Any, keepdim: bool, name: str) -> Any:
    if isinstance(dim, (tuple, list)) and not dim:  # unlike in other reductions, () reduces nothing here, as in PyTorch
        out = in_rows(x.astype(np.bool_))
    else:
        out = in_rows(ufunc.reduce(x, axes_of(dim, x.ndim, name), np.bool_, None, keepdim))
    return out.astype(np.uint8) if x.dtype == np.uint8 else out


@twin
def count_nonzero(x: Any, dim: Any) -> Any:
    """Return the number of nonzero elements, of all or over the dimensions `dim`."""
    axes = axes_of(dim, x.ndim, "count_nonzero")
    return np.add.reduce(x.astype(np.bool_, "C"), axis=axes, dtype=_INT64)


def hash_over(x: Any, dim: Any, keepdim: bool, mode: int) -> Any:
    """Return the exclusive or of the bits of the elements, widened to 64 bits, of all or over `dim`, as uint64."""
    axes = axes_of(dim, x.ndim, "hash_tensor")
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if not x.size:
        try:
            check_some(x, axes, "hash_tensor")
        except (IndexError, RuntimeError) as error:
            raise type(error)(str(error).replace("()", "", 1)) from None
    bits = x.astype(np.float64 if x.dtype.kind in FLOATS else np.int64, "C").view(np.uint64)
    return _xor(bits, axes, None, None, keepdim)
