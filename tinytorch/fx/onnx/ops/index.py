"""Indices and masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Length, Size, Unsaid, Value, says
from tinytorch.kernels import dtypes

_FAR = np.iinfo(np.int64).max


def _bound(b: Builder, x: Any) -> Size:
    if isinstance(x, Value):
        raise Unsaid("a tensor's value is an index")
    return x


@says(operator.getitem)
def _getitem(b: Builder, x: Value, key: Any) -> Any:
    keys = list(key) if isinstance(key, tuple) and not isinstance(key, (Value, Length)) else [key]
    count = sum(not (k is None or k is Ellipsis or isinstance(k, bool)) for k in keys)
    if any(isinstance(k, bool) for k in keys):
        raise Unsaid("a truth value is an index")
    if any(k is Ellipsis for k in keys):
        at = next(i for i, k in enumerate(keys) if k is Ellipsis)
        keys[at : at + 1] = [slice(None)] * (x.ndim - count)
    else:
        keys += [slice(None)] * (x.ndim - count)
    slices: list[tuple[int, Size, Size, int]] = []
    squeezed: list[int] = []  # dimensions of `x`
    tensors: dict[int, Any] = {}
    added: list[int] = []  # dimensions of the result before tensors are indices
    dim = place = 0
    for k in keys:
        if k is None:
            added.append(place)
            place += 1
            continue
        if isinstance(k, slice):
            step = 1 if k.step is None else b.number(k.step, "a step")
            if k.start is not None or k.stop is not None or step != 1:
                start = 0 if k.start is None else _bound(b, k.start)
                stop = _FAR if k.stop is None else _bound(b, k.stop)
                slices.append((dim, start, stop, step))
            place += 1
        elif isinstance(k, (Value, list, tuple)) and not isinstance(k, Length):
            index = k if isinstance(k, Value) else _as_index(b, k)
            if index.dtype in (dtypes.bool, dtypes.uint8):
                raise Unsaid("the shape of the result depends on values")
            tensors[place] = index
            place += 1
        else:
            start = _bound(b, k)
            if start == -1:
                stop = _FAR
            else:
                stop = b.calculated("Add", start, 1)
                if isinstance(start, Length):
                    last = b.op("Equal", start, np.array([-1], np.int64))
                    stop = Length(b.op("Where", last, np.array([_FAR], np.int64), stop))
            slices.append((dim, start, stop, 1))
            squeezed.append(dim)
        dim += 1
    y = x.name
    if len(slices) == 1 and squeezed and not tensors and isinstance(slices[0][1], int):
        y = b.op("Gather", y, np.array(slices[0][1], np.int64), axis=squeezed[0])
    elif slices:
        dims, starts, stops, steps = zip(*slices, strict=True)
        y = b.op("Slice", y, b.ints(starts), b.ints(stops), np.array(dims, np.int64), np.array(steps, np.int64))
        y = b.squeezed(y, *squeezed)
    y = b.unsqueezed(y, *added)
    if tensors:
        y = _gathered(b, y, place, tensors)
    return b.op("Identity", y) if y == x.name else y


def _as_index(b: Builder, key: Any) -> Value:
    array = np.array(key)
    if array.dtype.kind not in "iu":
        raise Unsaid("a list of something else than numbers is an index")
    return Value(b.constant(array.astype(np.int64)), array.shape, dtypes.int64)


def _gathered(b: Builder, y: str, ndim: int, tensors: dict[int, Value]) -> str:
    """Return `y[..., i, ..., j, ...]` for tensors at dimensions of `y`."""
    dims = sorted(tensors)
    if len(dims) == 1:
        return b.op("Gather", y, tensors[dims[0]], axis=dims[0])
    rank = max(x.ndim for x in tensors.values())
    rest = [k for k in range(ndim) if k not in tensors]
    y = b.op("Transpose", y, perm=[*dims, *rest])
    whole: str | None = None
    for k in dims:
        shape = b.op("Shape", tensors[k])
        ones = b.op("Expand", np.ones(1, np.int64), shape) if tensors[k].ndim else b.constant(np.array(1, np.int64))
        whole = ones if whole is None else b.op("Mul", whole, ones)
    parts = []
    for k in dims:
        index = b.cast(tensors[k], dtypes.int64)
        parts.append(b.unsqueezed(b.op("Mul", index, whole), rank))
    y = b.op("GatherND", y, b.op("Concat", *parts, axis=rank))
    if dims != list(range(dims[0], dims[-1] + 1)):  # apart from each other: their dimensions come first
        return y
    before = [k for k in rest if k < dims[0]]
    order = [*range(rank, rank + len(before)), *range(rank), *range(rank + len(before), rank + len(rest))]
    return b.op("Transpose", y, perm=order)


def places(b: Builder, x: Value) -> Value:
    """Return the place of each element of a tensor in its memory, as a tensor of its shape."""
    if None not in x.shape:
        numbers = np.arange(int(np.prod(x.shape)), dtype=np.int64).reshape(x.shape)  # type: ignore[arg-type]
        if numbers.size <= 4096:
            return Value(b.constant(numbers), x.shape, dtypes.int64)
    flat = b.op("Range", b.scalar(0), b.op("Size", x), b.scalar(1))
    return Value(b.op("Reshape", flat, b.op("Shape", x), allowzero=1), x.shape, dtypes.int64)


def put(b: Builder, x: Value, at: str, values: Any) -> str:
    """Return a tensor with other values at some places (see `places`)."""
    given = b.op("Expand", b.cast(values, x.dtype), b.op("Shape", at))
    flat = b.op("Reshape", x, np.array([-1]))
    new = b.op("ScatterElements", flat, b.op("Reshape", at, np.array([-1])), b.op("Reshape", given, np.array([-1])))
    return b.op("Reshape", new, b.op("Shape", x), allowzero=1)


@says(operator.setitem)
def _setitem(b: Builder, x: Value, key: Any, value: Any) -> Any:
    given = value
    if isinstance(given, Value):
        ones = 0
        while ones < given.ndim and given.shape[ones] == 1:
            ones += 1
        at = _getitem(b, places(b, x), key)
        return put(b, x, at, _fitted(b, given, ones))
    return put(b, x, _getitem(b, places(b, x), key), value)


def _fitted(b: Builder, value: Value, ones: int) -> Value:
    """Return a value without the leading dimensions of size 1, which an assignment ignores."""
    return Value(b.squeezed(value, *range(ones)), value.shape[ones:], value.dtype) if ones else value


def _index(b: Builder, x: Value) -> str:
    return b.cast(x, dtypes.int64)


@says("gather")
def _gather(b: Builder, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Any:
    if not x.ndim or not index.ndim:
        raise Unsaid("a number is gathered from")
    k = x.dim(dim)
    # (ONNX asks that the index has the other sizes of the tensor; PyTorch allows smaller ones.)
    y: Any = x
    for j in range(x.ndim):
        if j != k and (x.shape[j] != index.shape[j] or x.shape[j] is None):
            y = b.sliced(y, j, 0, b.size(index, j))
    return b.op("GatherElements", y, _index(b, index), axis=k)


@says("take_along_dim")
def _take_along_dim(b: Builder, x: Value, indices: Value, dim: int | None = None) -> Any:
    if dim is None:
        flat = b.op("Reshape", x, np.array([-1]))
        return b.op("Gather", flat, b.op("Reshape", _index(b, indices), np.array([-1])), axis=0)
    k = x.dim(dim)
    y, at = x.name, _index(b, indices)
    if any(j != k and (x.shape[j] != indices.shape[j] or x.shape[j] is None) for j in range(x.ndim)):
        one = np.ones(1, np.int64)
        both = b.op("Max", b.op("Shape", x), b.op("Shape", indices))
        here = np.array([j == k for j in range(x.ndim)])
        y = b.op("Expand", x, b.op("Where", here, one, both))
        at = b.op("Expand", at, b.op("Where", here, one, both))
    return b.op("GatherElements", y, at, axis=k)


@says("take")
def _take(b: Builder, x: Value, index: Value) -> Any:
    return b.op("Gather", b.op("Reshape", x, np.array([-1])), _index(b, index), axis=0)


@says("index_select")
def _index_select(b: Builder, x: Value, dim: int, index: Value) -> Any:
    if not x.ndim:
        return b.op("Identity", x)
    given = index if index.ndim else Value(b.unsqueezed(index, 0), (1,), index.dtype)
    return b.op("Gather", x, _index(b, given), axis=x.dim(dim))


def _scattered(b: Builder, x: Value, dim: int, index: Value, source: Any, reduction: str | None) -> str:
    if not x.ndim or not index.ndim:
        raise Unsaid("a number is scattered into")
    if isinstance(source, Value):
        given: Any = b.cast(source, x.dtype)
        if source.shape != index.shape or None in source.shape:
            for j in range(index.ndim):
                if source.shape[j] != index.shape[j] or source.shape[j] is None:
                    given = b.sliced(given, j, 0, b.size(index, j))
    else:
        given = b.op("Expand", b.cast(source, x.dtype), b.op("Shape", index))
    return b.op("ScatterElements", x, _index(b, index), given, axis=x.dim(dim), reduction=reduction)


@says("scatter")
def _scatter(
    b: Builder, x: Value, dim: int, index: Value, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    kind = None if reduce is None else {"add": "add", "multiply": "mul"}[reduce]
    return _scattered(b, x, dim, index, value if src is None else src, kind)


@says("scatter_add")
def _scatter_add(b: Builder, x: Value, dim: int, index: Value, src: Value) -> Any:
    return _scattered(b, x, dim, index, src, "add")


@says("scatter_reduce")
def _scatter_reduce(
    b: Builder, x: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Any:
    kind = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}.get(reduce)
    if kind is None or not include_self:
        raise Unsaid("a mean, or include_self=False")
    return _scattered(b, x, dim, index, src, kind)


def _rows(b: Builder, x: Value, dim: int, index: Value, source: Any) -> str:
    """Return an index of the shape of `source`, for `scatter`, of an index of whole slices."""
    k = x.dim(dim)
    at = b.op("Reshape", _index(b, index), np.array([-1 if j == k else 1 for j in range(x.ndim)]))
    return b.op("Expand", at, b.op("Shape", source))


@says("index_add")
def _index_add(b: Builder, x: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Any:
    if not x.ndim:
        raise Unsaid("a number is written to")
    given = b.cast(source, x.dtype)
    given = given if alpha == 1 else b.op("Mul", given, b.cast(alpha, x.dtype))
    return b.op("ScatterElements", x, _rows(b, x, dim, index, source), given, axis=x.dim(dim), reduction="add")


@says("index_copy")
def _index_copy(b: Builder, x: Value, dim: int, index: Value, source: Value) -> Any:
    if not x.ndim:
        raise Unsaid("a number is written to")
    return b.op("ScatterElements", x, _rows(b, x, dim, index, source), b.cast(source, x.dtype), axis=x.dim(dim))


@says("index_fill")
def _index_fill(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Any:
    if not x.ndim or index.ndim != 1:
        raise Unsaid("a number is written to, or is the index")
    k = x.dim(dim)
    sizes = b.sizes(x)
    shape = b.ints([*sizes[:k], b.size(index, 0), *sizes[k + 1 :]])
    at = b.op("Reshape", _index(b, index), np.array([-1 if j == k else 1 for j in range(x.ndim)]))
    given = b.op("Expand", b.cast(value, x.dtype), shape)
    return b.op("ScatterElements", x, b.op("Expand", at, shape), given, axis=k)


@says("index_put", "Tensor.index_put_")
def _index_put(b: Builder, x: Value, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if accumulate:
        raise Unsaid("accumulate=True")
    key: tuple[Any, ...] = tuple([slice(None) if k is None else k for k in indices])
    if any(isinstance(k, Value) and k.dtype is dtypes.bool for k in key):
        (mask, *rest) = key
        trailing = x.ndim - mask.ndim if isinstance(mask, Value) else -1
        if rest or not isinstance(values, Value) or values.ndim > trailing + 1:
            raise Unsaid("a mask is an index, among others")
        if values.ndim == trailing + 1:
            if values.shape[0] != 1:
                raise Unsaid("a mask is an index, and chooses how many values are needed")
            values = Value(b.squeezed(values, 0), values.shape[1:], values.dtype)
        return b.op("Where", b.unsqueezed(mask, *range(mask.ndim, x.ndim)), b.cast(values, x.dtype), x)
    return _setitem(b, x, key, values)


def _searched(b: Builder, boundaries: Value, x: Any, right: bool) -> str:
    """Return how many of the sorted numbers of each row are less than a number, or not greater if `right`."""
    dtype = b.common(boundaries, x)
    rows = b.unsqueezed(b.cast(boundaries, dtype), boundaries.ndim - 1)
    given = b.cast(x, dtype)
    given = b.unsqueezed(given, x.ndim) if isinstance(x, Value) else given
    before = b.op("LessOrEqual" if right else "Less", rows, given)
    count = b.op("ReduceSum", b.op("Cast", before, to=b.type_of(dtypes.int64)), np.array([-1]), keepdims=0)
    return b.cast(Value(count, (), dtypes.int64), b.out.dtype)


@says("bucketize")
def _bucketize(b: Builder, x: Any, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Any:
    if not isinstance(x, Value):
        raise Unsaid("a number is searched for")
    rows = boundaries._replace(name=b.op("Reshape", boundaries, np.array([*[1] * x.ndim, -1])))
    rows = rows._replace(shape=(*[1] * x.ndim, None))
    dtype = b.common(boundaries, x)
    before = b.op("LessOrEqual" if right else "Less", b.cast(rows, dtype), b.unsqueezed(b.cast(x, dtype), x.ndim))
    count = b.op("ReduceSum", b.op("Cast", before, to=b.type_of(dtypes.int64)), np.array([-1]), keepdims=0)
    return b.cast(Value(count, (), dtypes.int64), b.out.dtype)


@says("searchsorted")
def _searchsorted(
    b: Builder, sorted_sequence: Value, x: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    if sorter is not None or not isinstance(x, Value):
        raise Unsaid("a sorter, or a number that is searched for")
    if sorted_sequence.ndim == 1:
        return _bucketize(b, x, sorted_sequence, right=right or side == "right")
    return _searched(b, sorted_sequence, x, right or side == "right")


@says("Tensor.copy_")
def _copy(b: Builder, x: Value, source: Any, non_blocking: bool = False) -> Any:
    return b.op("Expand", b.cast(source, x.dtype), b.op("Shape", x))


__all__ = ["places", "put"]
