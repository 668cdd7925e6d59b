"""Indices and masks."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.fx.onnx.builder import Builder, Length, Size, UnsupportedCall, Value, rule, torch
from tinytorch.kernels import dtypes

_FAR = np.iinfo(np.int64).max


def _bound(b: Builder, x: Any) -> Size:
    if isinstance(x, Value):
        raise UnsupportedCall("a tensor's value is an index")
    return x


@rule(operator.getitem)
def _getitem(b: Builder, x: Value, key: Any) -> Any:
    keys = list(key) if isinstance(key, tuple) else [key]
    count = sum(not (k is None or k is Ellipsis or isinstance(k, bool)) for k in keys)
    if any(isinstance(k, bool) for k in keys):
        raise UnsupportedCall("a truth value is an index")
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
        elif isinstance(k, (Value, list, tuple)):
            index = k if isinstance(k, Value) else _as_index(b, k)
            if index.dtype in (dtypes.bool, dtypes.uint8):
                raise UnsupportedCall("the shape of the result depends on values")
            tensors[place] = index
            place += 1
        else:
            start = _bound(b, k)
            if start == -1:
                stop = _FAR
            else:
                stop = start + 1
                if isinstance(start, Length):
                    last = start.Equal(b.ints([-1]))
                    stop = Length(b, b.node("Where", last, [_FAR], stop).name)
            slices.append((dim, start, stop, 1))
            squeezed.append(dim)
        dim += 1
    y: Any = x
    if len(slices) == 1 and squeezed and not tensors and isinstance(slices[0][1], int):
        y = x.Gather(b.scalar(slices[0][1]), axis=squeezed[0])
    elif slices:
        dims, starts, stops, steps = zip(*slices, strict=True)
        y = x.Slice(starts, stops, dims, steps).squeeze(*squeezed)
    y = y.unsqueeze(*added)
    if tensors:
        y = _gathered(b, y, place, tensors)
    return y.Identity() if y is x else y


def _as_index(b: Builder, key: Any) -> Value:
    array = np.array(key)
    if array.dtype.kind not in "iu":
        raise UnsupportedCall("a list of something else than numbers is an index")
    return b.constant(array.astype(np.int64))


def _gathered(b: Builder, y: Value, ndim: int, tensors: dict[int, Value]) -> Any:
    """Return `y[..., i, ..., j, ...]` for tensors at dimensions of `y`."""
    dims = sorted(tensors)
    if len(dims) == 1:
        return y.Gather(tensors[dims[0]], axis=dims[0])
    rank = max(x.ndim for x in tensors.values())
    rest = [k for k in range(ndim) if k not in tensors]
    y = y.Transpose(perm=[*dims, *rest])
    whole: Any = None
    for k in dims:
        shape = tensors[k].Shape()
        ones = b.ints([1]).Expand(shape) if tensors[k].ndim else b.scalar(1)
        whole = ones if whole is None else whole * ones
    parts = [(tensors[k].cast(dtypes.int64) * whole).unsqueeze(rank) for k in dims]
    result: Any = y.GatherND(b.concat(*parts, axis=rank))
    if dims != list(range(dims[0], dims[-1] + 1)):  # apart from each other: their dimensions come first
        return result
    count = sum(k < dims[0] for k in rest)
    order = [*range(rank, rank + count), *range(rank), *range(rank + count, rank + len(rest))]
    return result.Transpose(perm=order)


def places(b: Builder, x: Value) -> Value:
    """Return the place of each element of a tensor in its memory, as a tensor of its shape."""
    if None not in x.shape:
        numbers = np.arange(int(np.prod(x.shape)), dtype=np.int64).reshape(x.shape)
        if numbers.size <= 4096:
            return b.constant(numbers)
    return b.node("Range", b.scalar(0), x.Size(), b.scalar(1)).reshape_as(x).with_shape(*x.shape)


def put(b: Builder, x: Value, at: Value, values: Any) -> Any:
    """Return a tensor with other values at some places (see `places`)."""
    given = b.cast(values, x.dtype).Expand(at.Shape())
    return x.flat().ScatterElements(at.flat(), given.flat()).reshape_as(x)


@rule(operator.setitem)
def _setitem(b: Builder, x: Value, key: Any, value: Any) -> Any:
    at = _getitem(b, places(b, x), key)
    if isinstance(value, Value):  # (an assignment ignores leading dimensions of size 1)
        ones = next((k for k, n in enumerate(value.shape) if n != 1), value.ndim)
        value = value.squeeze(*range(ones))
    return put(b, x, at, value)


def _index(x: Value) -> Value:
    return x.cast(dtypes.int64)


def _cut(y: Any, shape: Any, index: Value, but: int = -1) -> Any:
    """Return a tensor that has no more elements than an index along all dimensions but one."""
    for j in range(index.ndim):
        if j != but and (shape[j] != index.shape[j] or shape[j] is None):
            y = y.slice(j, 0, index.size(j))
    return y


@rule(torch.gather)
def _gather(b: Builder, x: Value, dim: int, index: Value, *, sparse_grad: bool = False) -> Any:
    if not x.ndim or not index.ndim:
        raise UnsupportedCall("a number is gathered from")
    k = x.dim(dim)
    # (ONNX asks that the index has the other sizes of the tensor; PyTorch allows smaller ones.)
    return _cut(x, x.shape, index, k).GatherElements(_index(index), axis=k)


@rule(torch.take_along_dim)
def _take_along_dim(b: Builder, x: Value, indices: Value, dim: int | None = None) -> Any:
    if dim is None:
        return x.flat().Gather(_index(indices).flat(), axis=0)
    k = x.dim(dim)
    y, at = x, _index(indices)
    if any(j != k and (x.shape[j] != indices.shape[j] or x.shape[j] is None) for j in range(x.ndim)):
        both = x.Shape().Max(indices.Shape())
        here = np.array([j == k for j in range(x.ndim)])
        y, at = [each.Expand(b.node("Where", here, [1], both)) for each in (x, at)]
    return y.GatherElements(at, axis=k)


rule(torch.take)(lambda b, x, index: x.flat().Gather(_index(index), axis=0))


@rule(torch.index_select)
def _index_select(b: Builder, x: Value, dim: int, index: Value) -> Any:
    if not x.ndim:
        return x.Identity()
    return x.Gather(_index(index if index.ndim else index.unsqueeze(0)), axis=x.dim(dim))


def _scattered(x: Value, dim: int, index: Value, source: Any, reduction: str | None) -> Any:
    if not x.ndim or not index.ndim:
        raise UnsupportedCall("a number is scattered into")
    given = x.builder.cast(source, x.dtype)
    if not isinstance(source, Value):
        given = given.Expand(index.Shape())
    elif source.shape != index.shape or None in source.shape:
        given = _cut(given, source.shape, index)
    return x.ScatterElements(_index(index), given, axis=x.dim(dim), reduction=reduction)


@rule(torch.scatter)
def _scatter(
    b: Builder, x: Value, dim: int, index: Value, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Any:
    kind = None if reduce is None else {"add": "add", "multiply": "mul"}[reduce]
    return _scattered(x, dim, index, value if src is None else src, kind)


rule(torch.scatter_add)(lambda b, x, dim, index, src: _scattered(x, dim, index, src, "add"))


@rule(torch.scatter_reduce)
def _scatter_reduce(
    b: Builder, x: Value, dim: int, index: Value, src: Value, reduce: str, *, include_self: bool = True
) -> Any:
    kind = {"sum": "add", "prod": "mul", "amax": "max", "amin": "min"}.get(reduce)
    if kind is None or not include_self:
        raise UnsupportedCall("a mean, or include_self=False")
    return _scattered(x, dim, index, src, kind)


def _rows(x: Value, dim: int, index: Value) -> Any:
    """Return an index of slices, for `ScatterElements`, with a size of 1 along the other dimensions."""
    if not x.ndim:
        raise UnsupportedCall("a number is written to")
    return _index(index).Reshape([-1 if j == x.dim(dim) else 1 for j in range(x.ndim)])


@rule(torch.index_add)
def _index_add(b: Builder, x: Value, dim: int, index: Value, source: Value, *, alpha: Any = 1) -> Any:
    given = source.cast(x.dtype) if alpha == 1 else source.cast(x.dtype) * alpha
    at = _rows(x, dim, index).Expand(source.Shape())
    return x.ScatterElements(at, given, axis=x.dim(dim), reduction="add")


@rule(torch.index_copy)
def _index_copy(b: Builder, x: Value, dim: int, index: Value, source: Value) -> Any:
    at = _rows(x, dim, index).Expand(source.Shape())
    return x.ScatterElements(at, source.cast(x.dtype), axis=x.dim(dim))


@rule(torch.index_fill)
def _index_fill(b: Builder, x: Value, dim: int, index: Value, value: Any) -> Any:
    if index.ndim != 1:
        raise UnsupportedCall("a number is the index")
    k, sizes = x.dim(dim), x.sizes
    shape = b.ints([*sizes[:k], index.size(0), *sizes[k + 1 :]])
    at, given = _rows(x, dim, index), b.cast(value, x.dtype).Expand(shape)
    return x.ScatterElements(at.Expand(shape), given, axis=k)


@rule(torch.index_put, Tensor.index_put_)
def _index_put(b: Builder, x: Value, indices: Any, values: Any, accumulate: bool = False) -> Any:
    if accumulate:
        raise UnsupportedCall("accumulate=True")
    key: tuple[Any, ...] = tuple([slice(None) if k is None else k for k in indices])
    if not any(isinstance(k, Value) and k.dtype is dtypes.bool for k in key):
        return _setitem(b, x, key, values)
    (mask, *rest) = key
    trailing = x.ndim - mask.ndim if isinstance(mask, Value) else -1
    if rest or not isinstance(values, Value) or values.ndim > trailing + 1:
        raise UnsupportedCall("a mask is an index, among others")
    if values.ndim == trailing + 1:
        if values.shape[0] != 1:
            raise UnsupportedCall("a mask is an index, and chooses how many values are needed")
        values = values.squeeze(0)
    return b.where(mask.unsqueeze(*range(mask.ndim, x.ndim)), values.cast(x.dtype), x)


def _searched(b: Builder, rows: Value, x: Value, right: bool) -> Any:
    """Return how many of the sorted numbers of each row are less than a number, or not greater if `right`."""
    dtype = b.common(rows, x)
    boundaries, numbers = rows.cast(dtype), x.cast(dtype).unsqueeze(x.ndim)
    before: Any = boundaries <= numbers if right else boundaries < numbers
    return before.convert(dtypes.int64).ReduceSum([-1], keepdims=0).cast(b.out.dtype)


def _bucketize(b: Builder, x: Any, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Any:
    if not isinstance(x, Value):
        raise UnsupportedCall("a number is searched for")
    ones = [1] * x.ndim
    return _searched(b, boundaries.Reshape([*ones, -1]).with_shape(*ones, None), x, right)


@rule(torch.searchsorted)
def _searchsorted(
    b: Builder, sorted_sequence: Value, x: Any, *, out_int32: bool = False, right: bool = False, side: Any = None,
    sorter: Any = None,
) -> Any:  # fmt: skip
    if sorter is not None or not isinstance(x, Value):
        raise UnsupportedCall("a sorter, or a number that is searched for")
    right = right or side == "right"
    if sorted_sequence.ndim == 1:
        return _bucketize(b, x, sorted_sequence, right=right)
    return _searched(b, sorted_sequence.unsqueeze(sorted_sequence.ndim - 1), x, right)


rule(Tensor.copy_)(lambda b, x, source, non_blocking=False: b.cast(source, x.dtype).Expand(x.Shape()))
