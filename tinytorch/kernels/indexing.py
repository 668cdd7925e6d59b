"""Reading and writing arrays by index: masks, index arrays, gather and scatter.

`np.add.at` is slow, except for a vector and an index vector, for which it has a fast loop. So all additions at places
that may coincide go through `add_at`, with positions in the flattened array.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tinytorch.kernels import dtypes
from tinytorch.kernels.native import twin
from tinytorch.kernels.reduce import axis_of

Array = Any
Indices = tuple[Any, ...]  # per dimension an array of ints, a mask (for as many dimensions as it has), or None

_ALL = slice(None)
_INT64 = np.dtype(np.int64)


def flat(x: Array) -> Array:
    """Return all elements in one dimension; of a contiguous array a view, which can be written to."""
    return x.reshape(-1)


def add_at(out: Array, positions: Array, values: Array) -> None:
    """Add `values` to a contiguous array at positions in its flattened form; values at equal positions add up."""
    np.add.at(flat(out), flat(positions), flat(values))


def name_of(x: Array) -> str:
    """Return the name of the dtype in PyTorch's messages."""
    return dtypes.from_numpy_dtype(x.dtype).tensor_name


# Indexing as `x[...]` does, with index arrays and masks -------------------------------------------


def checked(x: Array, indices: Indices) -> None:
    """Raise PyTorch's error if a mask does not fit, or there are too many indices."""
    at = 0
    for i, index in enumerate(indices):
        if index is None:
            at += 1
            continue
        if index.dtype.kind != "b":
            at += 1
            continue
        if at + index.ndim > x.ndim:
            raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
        for d, length in enumerate(index.shape):
            if x.shape[at + d] != length:
                raise IndexError(
                    f"The shape of the mask {list(index.shape)} at index {d} does not match the shape of the indexed "
                    f"tensor {list(x.shape)} at index {i + d}"
                )
        at += index.ndim
    if at > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    if not x.size and not any(
        not (index.any() if index.dtype.kind == "b" else index.size) for index in indices if index is not None
    ):
        at = 0
        for index in indices:
            mask = index is not None and index.dtype.kind == "b"
            if index is not None and not mask and not x.shape[at]:
                raise IndexError("index is out of bounds for dimension with size 0")
            at += index.ndim if mask else 1


def _empty_result(x: Array, indices: Indices, error: IndexError) -> Array | None:
    """Return the result of `take` if it is empty, else None: PyTorch allows indices out of range if it is empty."""
    if "out of bounds" not in str(error):
        return None
    zeros = [index if index is None or index.dtype.kind == "b" else np.zeros_like(index) for index in indices]
    out = x[key_of(tuple(zeros))]
    return None if out.size else out


def key_of(indices: Indices) -> tuple[Any, ...]:
    """Return the index tuple for NumPy."""
    return tuple([_ALL if index is None else index for index in indices])


def translated(error: IndexError, ndim: int) -> IndexError:
    """Return NumPy's error in PyTorch's words."""
    text = str(error)
    if "too many indices" in text:
        if ndim == 0:
            return IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to "
                "convert a 0-dim tensor to a number"
            )
        return IndexError(f"too many indices for tensor of dimension {ndim}")
    if "could not be broadcast" in text:
        shapes = text[text.index("shapes") + 6 :].split(") (")
        lists = ["[" + shape.strip(" ()").rstrip(",").replace(",", ", ") + "]" for shape in shapes]
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {', '.join(lists)}"
        )
    return IndexError(text.replace("axis", "dimension"))


def _single(indices: Indices) -> tuple[int, Array] | None:
    """Return (dimension, index array) if the only index is one array of ints, else None."""
    arrays = [(i, index) for i, index in enumerate(indices) if index is not None]
    if len(arrays) == 1 and arrays[0][1].dtype.kind != "b":
        return arrays[0]
    return None


def _taken(x: Array, index: Array, axis: int) -> Array:
    """Return the elements at `index` along `axis` of an array that is not contiguous.

    NumPy's `take` would copy all of `x` first. Elements along the first axis keep the order of the other axes in
    memory, as in PyTorch: for example a batch of images taken from images in channels-last format.
    """
    if axis or any(not step and n > 1 for step, n in zip(x.strides, x.shape, strict=True)):
        out = x[(slice(None),) * axis + (index,)]
        return out if out.flags.c_contiguous else out.copy("C")
    order = [0, *sorted(range(1, x.ndim), key=lambda axis: -x.strides[axis])]
    laid = x.transpose(order)
    out = laid.take(index, axis=0) if laid.flags.c_contiguous else laid[index].copy("C")
    more = index.ndim - 1
    return out.transpose(*range(more + 1), *[more + order.index(d) for d in range(1, x.ndim)])


def take(x: Array, indices: Indices) -> Array:
    """Return the elements of `x` at `indices`; contiguous, except for one index array of an `x` that is not."""
    checked(x, indices)
    try:
        single = _single(indices)
        if single is not None:
            axis, index = single
            return x.take(index, axis=axis) if x.flags.c_contiguous else _taken(x, index, axis)
        out = x[key_of(indices)]
    except IndexError as error:
        out = _empty_result(x, indices, error)
        if out is None:
            raise translated(error, x.ndim) from None
    return out if out.flags.c_contiguous else out.copy("C")


def positions(shape: tuple[int, ...], indices: Indices, like: Array) -> Array:
    """Return the positions in the flattened array of `shape` of the elements that `take` returns, in its shape."""
    dims: list[int] = []
    arrays: list[Array] = []
    at = 0
    for index in indices:
        if index is None:
            at += 1
        elif index.dtype.kind == "b":
            places = index.nonzero() if index.ndim else (np.zeros(int(index), _INT64, like=like),)
            dims += range(at, at + index.ndim)
            arrays += places
            at += index.ndim
        else:
            dims.append(at)
            arrays.append(index)
            at += 1
    strides = [math.prod(shape[d + 1 :]) for d in range(len(shape))]
    picked: Any = 0
    for d, index in zip(dims, arrays, strict=True):
        picked = picked + np.where(index < 0, index + shape[d], index).astype(_INT64, copy=False) * strides[d]
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if together else 0  # where NumPy puts the dimensions of the index arrays
    rest = [d for d in range(len(shape)) if d not in dims]
    before = len([d for d in rest if d < first])
    total = picked.reshape((1,) * before + picked.shape + (1,) * (len(rest) - before))
    for k, d in enumerate(rest):
        steps = np.arange(0, shape[d] * strides[d], strides[d] or 1, like=like)[: shape[d]]
        total = total + steps.reshape((-1,) + (1,) * (len(rest) - k - 1 + (picked.ndim if k < before else 0)))
    return total


def is_mask(indices: Indices) -> bool:
    """Return whether the only index is one mask, which cannot name a place twice."""
    arrays = [index for index in indices if index is not None]
    return len(arrays) == 1 and arrays[0].dtype.kind == "b"


def _ndim_of(x: Array, indices: Indices) -> int:
    """Return the number of dimensions of the result of `take`."""
    arrays = [index for index in indices if index is not None]
    used = sum(index.ndim if index.dtype.kind == "b" else 1 for index in arrays)
    return x.ndim - used + max(1 if index.dtype.kind == "b" else index.ndim for index in arrays)


def put(x: Array, indices: Indices, values: Any, accumulate: bool) -> None:
    """Write `values` into `x` at `indices`, or add them there.

    Raises:
        RuntimeError: the values do not broadcast to what is indexed.
    """
    checked(x, indices)
    key = key_of(indices)
    try:
        # NumPy accepts values with too many dimensions if these have length 1; PyTorch does so only for one mask.
        if (
            getattr(values, "ndim", 0) > 1
            and (accumulate or values.size != 1 or not is_mask(indices))
            and values.ndim > _ndim_of(x, indices)
        ):
            raise ValueError
        if not accumulate or is_mask(indices):
            if getattr(values, "ndim", 0) > 1 and values.size == 1:
                values = values.reshape(())
            if accumulate:
                x[key] += values
            else:
                x[key] = values
            return
        if not x.flags.c_contiguous:
            np.add.at(x, key, values)
            return
        target = x[key]  # for its shape, and for NumPy's check of the indices
        values = np.broadcast_to(values, target.shape)
    except IndexError as error:
        if _empty_result(x, indices, error) is not None:
            return
        raise translated(error, x.ndim) from None
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(getattr(values, 'shape', ()))} cannot be broadcast to "
            f"indexing result of shape {list(x[key].shape)}"
        ) from None
    add_at(x, positions(x.shape, indices, x), values)


def put_back(values: Array, shape: tuple[int, ...], indices: Indices) -> Array:
    """Return zeros of `shape` with the values added at `indices`: the gradient of `take`."""
    out = np.zeros(shape, values.dtype, like=values)
    if not values.size:
        return out
    if is_mask(indices):
        out[key_of(indices)] = values
        return out
    single = _single(indices)
    if single is not None:
        dim, index = single
        add_rows(out, dim, np.where(index < 0, index + shape[dim], index) if index.size and index.min() < 0 else index,
                 values)  # fmt: skip
    else:
        add_at(out, positions(shape, indices, values), values)
    return out


# One dimension at a time --------------------------------------------------------------------------


@twin
def add_rows(out: Array, dim: int, index: Array, rows: Array) -> None:
    """Add `rows` to `out` at `index` along `dim`: `rows` has the index's dimensions there. No index is negative."""
    if not out.size or not index.size:
        return
    after = math.prod(out.shape[dim + 1 :])
    length = out.shape[dim]
    places = flat(index).astype(_INT64, copy=False) * after
    if after > 1:
        places = places[:, None] + np.arange(after, like=out)
    before = math.prod(out.shape[:dim])
    if before > 1:
        blocks = np.arange(0, before * length * after, length * after, like=out)
        places = blocks.reshape((-1,) + (1,) * places.ndim) + places
    if out.flags.c_contiguous:
        add_at(out, places, rows)
    else:
        key: Any = (_ALL,) * dim + (index,)
        np.add.at(out, key, rows)


def check_kind(name: str, index: Array, words: str = "int32/int64 for index") -> None:
    """Raise PyTorch's error unless the index is of int64 or int32."""
    if index.dtype != _INT64 and index.dtype != np.int32:
        raise RuntimeError(f"{name}(): Expected dtype {words}")


def check_vector(name: str, index: Array) -> None:
    """Raise PyTorch's error if an index has more than one dimension."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector")


def check_bounds(index: Array, length: int, dim: int, error: Any = RuntimeError, text: str = "") -> None:
    """Raise an error unless all indices are in [0, length)."""
    if not index.size:
        return
    if index.dtype == _INT64:
        # Negative numbers, read as unsigned ones, are large: one maximum finds both kinds of error.
        if np.maximum.reduce(flat(index).view(np.uint64)) < length:
            return
    elif index.min() >= 0 and index.max() < length:
        return
    bad = int(flat(index)[((index < 0) | (index >= length)).reshape(-1)][0])
    raise error(text or f"index {bad} is out of bounds for dimension {dim} with size {length}")


def select_rows(x: Array, dim: int, index: Array) -> Array:
    """Return the elements at `index` along `dim`."""
    axis = axis_of(dim, x.ndim, "index_select")
    check_vector("index_select", index)
    check_kind("index_select", index, "int32 or int64 for index")
    if not x.ndim:
        if index.size != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.size} value(s)")
        check_bounds(index, 1, 0, IndexError, "index out of range in self")
        return x.copy()
    if index.size and not x.shape[axis]:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    return take_rows(x, axis, flat(index))


@twin
def take_rows(x: Array, dim: int, index: Array) -> Array:
    """Return the elements of `x` at `index` along `dim`; a negative index is out of range."""
    check_bounds(index, x.shape[dim], dim, IndexError, "index out of range in self")
    return x.take(index, axis=dim)


def at_rows(dim: int, index: Array) -> tuple[Any, ...]:
    """Return the index tuple of the rows at `index` along `dim`."""
    return (_ALL,) * dim + (flat(index),)


# Gather and scatter -------------------------------------------------------------------------------


def check_gather(name: str, x: Array, dim: int, index: Array, src: Any = None) -> int:
    """Check the index of gather or scatter; return the dimension counted from 0."""
    axis = axis_of(dim, x.ndim, name)
    if not index.size:  # an empty index may have any dtype
        return axis
    check_kind(name, index)
    if max(index.ndim, 1) != max(x.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor" if src is None else
                           "Index tensor must have the same number of dimensions as self tensor")  # fmt: skip
    small = index.shape == x.shape or all(
        n <= m for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=False)) if d != axis
    )
    if src is not None and isinstance(src, np.ndarray):
        if max(index.ndim, 1) != max(src.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        if not small or any(n > m for n, m in zip(index.shape, src.shape, strict=False)):
            raise RuntimeError(
                f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension "
                f"{axis} and to be no larger size than src {list(src.shape)}"
            )
    elif not small:
        d = next(d for d, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if d != axis and n > m)
        raise RuntimeError(
            f"Size does not match at dimension {d} expected index {list(index.shape)} to be no larger than self "
            f"{list(x.shape)} apart from dimension {axis}"
        )
    check_bounds(index, x.shape[axis] if x.ndim else 1, axis)
    return axis


def along(shape: tuple[int, ...], dim: int, index: Array) -> Array:
    """Return positions in the flattened array of `shape`: `index` along `dim`, the element's place in all others."""
    if len(shape) <= 1:
        return index
    total = index.astype(_INT64, copy=False)
    if dim % len(shape) != len(shape) - 1:
        total = total * math.prod(shape[dim + 1 :])
    if index.size <= _SMALL and type(index) is np.ndarray:
        return total + _starts_of_small(shape, dim, index.shape)
    for steps in _starts(shape, dim, index):
        total = total + steps
    return total


def _starts(shape: tuple[int, ...], dim: int, index: Array) -> list[Array]:
    """Return the offsets of the elements along each dimension but `dim`, which `along` adds."""
    offsets = []
    for d, length in enumerate(index.shape):
        if d != dim and length > 1:
            stride = math.prod(shape[d + 1 :])
            steps = np.arange(0, length * stride, stride, like=index)
            offsets.append(steps.reshape((-1,) + (1,) * (len(shape) - d - 1)))
    return offsets


_SMALL = 1 << 12


# Programs gather with few different shapes, and computing these offsets takes longer than gathering.
@functools.lru_cache(64)
def _starts_of_small(shape: tuple[int, ...], dim: int, size: tuple[int, ...]) -> Array:
    total = np.zeros(size, _INT64)
    for steps in _starts(shape, dim, total):
        total += steps
    return total


def ranks(places: Array) -> Array:
    """Return for each element of a vector how many equal elements come before it."""
    order = np.argsort(places, kind="stable")
    ranked = places[order]
    steps = np.arange(len(places), like=places)
    fresh = np.ones(places.shape, np.bool_, like=places)
    fresh[1:] = ranked[1:] != ranked[:-1]
    out = np.empty_like(steps)
    out[order] = steps - np.maximum.accumulate(np.where(fresh, steps, 0))
    return out


@twin
def gather(x: Array, dim: int, index: Array) -> Array:
    """Return the elements of `x` at `index` along `dim`."""
    shape = x.shape
    if (
        index.shape == shape  # a short cut for the most frequent case, in half the time
        and index.dtype is _INT64
        and type(index) is np.ndarray
        and 0 < index.size <= _SMALL
        and 0 <= dim < x.ndim
        and (unsigned := index.view(np.uint64)).item(unsigned.argmax()) < shape[dim]  # so none is negative, either
    ):
        places = index if dim == x.ndim - 1 else index * math.prod(shape[dim + 1 :])
        return x.reshape(-1).take(places + _starts_of_small(shape, dim, shape))
    axis = check_gather("gather", x, dim, index)
    if not index.size:
        return np.empty_like(x, shape=index.shape)
    return flat(x).take(flat(along(x.shape, axis, index))).reshape(index.shape)


@twin
def scatter(x: Array, dim: int, index: Array, src: Any, how: str) -> None:
    """Write `src` into `x` at `index` along `dim`, or combine them there; `how` is "put", or names a reduction."""
    axis = check_gather("scatter", x, dim, index, src)
    is_array = isinstance(src, np.ndarray)
    if is_array and src.dtype != x.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    if not index.size:
        return
    if is_array:
        if src.ndim and src.shape != index.shape:
            src = src[tuple([slice(n) for n in index.shape])]
        src = flat(src)
    places = flat(along(x.shape, axis, index))
    if x.flags.c_contiguous:
        _apply(flat(x), places, src, how)
    else:
        copy = x.copy("C")
        _apply(flat(copy), places, src, how)
        x[...] = copy


_REDUCTIONS: dict[str, Any] = {"add": np.add, "multiply": np.multiply, "amax": np.maximum, "amin": np.minimum}


def _apply(vector: Array, places: Array, values: Any, how: str) -> None:
    if how == "put":
        vector[places] = values
    else:
        _REDUCTIONS[how].at(vector, places, values)


@twin
def scattered(x: Array, shape: tuple[int, ...], dim: int, index: Array, distinct: bool) -> Array:
    """Return zeros of `shape` with `x` added at `index` along `dim`: the gradient of `gather`."""
    out = np.zeros(shape, x.dtype, like=x)
    if index.size:
        places = along(shape, dim % (len(shape) or 1), index)
        if distinct:
            flat(out)[flat(places)] = flat(x)
        else:
            add_at(out, places, x)
    return out


# Masks --------------------------------------------------------------------------------------------


def broadcast(x: Array, mask: Array) -> tuple[Array, Array]:
    """Return both arrays in the shape that they broadcast to."""
    if x.shape == mask.shape:
        return x, mask
    shape = np.broadcast_shapes(x.shape, mask.shape)
    return np.broadcast_to(x, shape), np.broadcast_to(mask, shape)
