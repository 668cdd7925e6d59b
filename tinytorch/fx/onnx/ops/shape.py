"""Views, and what puts tensors together or takes them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Length, Size, Unsaid, Value, says
from tinytorch.kernels import dtypes


def sizes_of(given: tuple[Any, ...]) -> list[Size]:
    """Return sizes that are given one by one, or as one sequence."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)) and not isinstance(given[0], Length):
        return list(given[0])
    return list(given)


@says("reshape", "Tensor.view")
def _reshape(b: Builder, x: Value, *shape: Any, **kwargs: Any) -> Any:
    shape = tuple([*shape, *kwargs.values()])
    known = b.like_out(x)
    if known is not None:
        return known
    if not isinstance(shape[0], (int, Length, tuple, list)):
        raise Unsaid("a view as another dtype")
    return b.reshaped(x, sizes_of(shape))


@says("Tensor.view_as", "Tensor.reshape_as")
def _reshape_as(b: Builder, x: Value, other: Value) -> Any:
    return b.like_out(x) or b.op("Reshape", x, b.op("Shape", other), allowzero=1)


@says("flatten")
def _flatten(b: Builder, x: Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    known = b.like_out(x)
    if known is not None:
        return known
    first, last, sizes = x.dim(start_dim), x.dim(end_dim), b.sizes(x)
    return b.reshaped(x, [*sizes[:first], -1, *sizes[last + 1 :]])


@says("ravel")
def _ravel(b: Builder, x: Value) -> Any:
    return b.op("Reshape", x, np.array([-1]))


@says("unflatten")
def _unflatten(b: Builder, x: Value, dim: int, sizes: Sequence[Size]) -> Any:
    k, own = x.dim(dim), b.sizes(x)
    return b.like_out(x) or b.reshaped(x, [*own[:k], *sizes, *own[k + 1 :]])


@says("squeeze")
def _squeeze(b: Builder, x: Value, dim: Any = None) -> Any:
    if dim is None:
        dims = [k for k, n in enumerate(x.shape) if n == 1]
    else:
        dims = [x.dim(k) for k in (dim if isinstance(dim, (tuple, list)) else (dim,)) if x.ndim]
        dims = [k for k in dims if x.shape[k] == 1]
    return b.squeezed(x, *dims) if dims else b.op("Identity", x)


@says("unsqueeze")
def _unsqueeze(b: Builder, x: Value, dim: int) -> Any:
    return b.unsqueezed(x, dim + x.ndim + 1 if dim < 0 else dim)


def _transposed(b: Builder, x: Value, order: Sequence[int]) -> Any:
    return b.op("Transpose", x, perm=[int(k) for k in order]) if x.ndim else b.op("Identity", x)


@says("transpose", "swapaxes", "swapdims")
def _transpose(b: Builder, x: Value, dim0: int, dim1: int) -> Any:
    order = list(range(x.ndim))
    if x.ndim:
        first, second = x.dim(dim0), x.dim(dim1)
        order[first], order[second] = second, first
    return _transposed(b, x, order)


@says("t")
def _t(b: Builder, x: Value) -> Any:
    return _transposed(b, x, list(range(x.ndim))[::-1])


@says("adjoint")
def _adjoint(b: Builder, x: Value) -> Any:
    return _transpose(b, x, -2, -1)


@says("permute")
def _permute(b: Builder, x: Value, *dims: Any, **kwargs: Any) -> Any:
    return _transposed(b, x, [x.dim(k) for k in sizes_of((*dims, *kwargs.values()))])  # type: ignore[arg-type]


@says("movedim", "moveaxis")
def _movedim(b: Builder, x: Value, source: Any, destination: Any) -> Any:
    origin, goal = [[x.dim(k) for k in (d if isinstance(d, (tuple, list)) else (d,))] for d in (source, destination)]
    order = [-1] * x.ndim
    for k, j in zip(origin, goal, strict=True):
        order[j] = k
    rest = iter(k for k in range(x.ndim) if k not in origin)
    return _transposed(b, x, [next(rest) if k < 0 else k for k in order])


@says("Tensor.expand")
def _expand(b: Builder, x: Value, *sizes: Any, **kwargs: Any) -> Any:
    wanted = sizes_of(sizes)
    own: list[Size] = [*[1] * (len(wanted) - x.ndim), *b.sizes(x)]
    return b.op("Expand", x, b.ints([n if m == -1 else m for m, n in zip(wanted, own, strict=True)]))


@says("broadcast_to")
def _broadcast_to(b: Builder, x: Value, size: Any) -> Any:
    return _expand(b, x, size)


@says("Tensor.expand_as")
def _expand_as(b: Builder, x: Value, other: Value) -> Any:
    return b.op("Expand", x, b.op("Shape", other))


@says("Tensor.repeat")
def _repeat(b: Builder, x: Value, *repeats: Any, **kwargs: Any) -> Any:
    times = sizes_of((*repeats, *kwargs.values()))
    y = b.unsqueezed(x, *range(len(times) - x.ndim))
    return b.op("Tile", y, b.ints(times))


@says("tile")
def _tile(b: Builder, x: Value, *dims: Any) -> Any:
    times = sizes_of(dims)
    return _repeat(b, x, *[1] * (x.ndim - len(times)), *times)


@says("repeat_interleave")
def _repeat_interleave(b: Builder, x: Value, repeats: Any = 0, dim: int | None = None, **_: Any) -> Any:
    if isinstance(repeats, Value) or repeats == 0:
        raise Unsaid("the shape of the result depends on values")
    if dim is None:
        x, dim = Value(b.op("Reshape", x, np.array([-1])), (None,), x.dtype), 0
    k = x.dim(dim)
    y = b.unsqueezed(x, k + 1)
    sizes = b.sizes(x)
    y = b.op("Expand", y, b.ints([*sizes[: k + 1], repeats, *sizes[k + 1 :]]))
    return b.reshaped(y, [*sizes[:k], b.calculated("Mul", sizes[k], repeats), *sizes[k + 1 :]])


@says("cat", "concat", "concatenate")
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0, **kwargs: Any) -> Any:
    if not isinstance(tensors, (tuple, list)):
        raise Unsaid("what is put together is no list of tensors")
    kept = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    names = [b.cast(x, b.out.dtype) for x in kept]
    return b.op("Concat", *names, axis=kept[0].dim(kwargs.get("axis", dim)))


@says("stack")
def _stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Any:
    k = dim + tensors[0].ndim + 1 if dim < 0 else dim
    return b.op("Concat", *[b.unsqueezed(b.cast(x, b.out.dtype), k) for x in tensors], axis=k)


def _pieces(b: Builder, x: Value, dim: int, lengths: Sequence[int]) -> Any:
    if sum(lengths) != x.shape[dim] or not lengths:
        raise Unsaid("parts that overlap, or none")
    if len(lengths) == 1:
        return (b.op("Identity", x),)
    return b.op("Split", x, np.array(lengths, np.int64), outputs=len(lengths), axis=dim)


@says("split", "Tensor.split")
def _split(b: Builder, x: Value, split_size_or_sections: Any = None, dim: int = 0, **kwargs: Any) -> Any:
    size = kwargs.get("split_size", split_size_or_sections)
    k = x.dim(dim)
    if isinstance(size, (tuple, list)) and all(isinstance(n, int) for n in size):
        return _pieces(b, x, k, list(size))
    n = x.shape[k]
    if n is None or not isinstance(size, int) or not size:
        raise Unsaid("the number of the parts depends on a size")
    return _pieces(b, x, k, [min(size, n - start) for start in range(0, max(n, 1), size)])


@says("chunk")
def _chunk(b: Builder, x: Value, chunks: int, dim: int = 0) -> Any:
    k = x.dim(dim)
    n = x.shape[k]
    if n is None:
        raise Unsaid("the number of the parts depends on a size")
    return _split(b, x, -(-n // chunks), k)


@says("tensor_split")
def _tensor_split(b: Builder, x: Value, indices_or_sections: Any, dim: int = 0) -> Any:
    k = x.dim(dim)
    n = x.shape[k]
    if n is None or isinstance(indices_or_sections, Value):
        raise Unsaid("the number of the parts depends on a size")
    parts = np.array_split(np.arange(n), indices_or_sections)
    return _pieces(b, x, k, [len(part) for part in parts])


@says("unbind")
def _unbind(b: Builder, x: Value, dim: int = 0) -> Any:
    k = x.dim(dim)
    n = x.shape[k]
    if not n:
        raise Unsaid("the number of the parts depends on a size, or is 0")
    return tuple([b.op("Gather", x, np.array(j, np.int64), axis=k) for j in range(n)])


@says("narrow")
def _narrow(b: Builder, x: Value, dim: int, start: Any, length: Any) -> Any:
    if isinstance(start, Value):
        start = Length(b.op("Reshape", b.cast(start, dtypes.int64), np.array([1])))
    if isinstance(start, int) and start < 0:
        start = b.calculated("Add", b.size(x, dim), start)
    return b.sliced(x, x.dim(dim), start, b.calculated("Add", start, length))


@says("select")
def _select(b: Builder, x: Value, dim: int, index: Any) -> Any:
    return b.op("Gather", x, b.scalar(index), axis=x.dim(dim))


@says("flip")
def _flip(b: Builder, x: Value, *dims: Any) -> Any:
    axes = [x.dim(k) for k in sizes_of(dims)]  # type: ignore[arg-type]
    if not axes or not x.ndim:
        return b.op("Identity", x)
    n = len(axes)
    far = np.full(n, np.iinfo(np.int64).min + 1)
    return b.op("Slice", x, np.full(n, -1), far, np.array(axes), np.full(n, -1))


@says("fliplr")
def _fliplr(b: Builder, x: Value) -> Any:
    return _flip(b, x, 1)


@says("flipud")
def _flipud(b: Builder, x: Value) -> Any:
    return _flip(b, x, 0)


@says("roll")
def _roll(b: Builder, x: Value, shifts: Any, dims: Any = None) -> Any:
    if dims is None or dims == ():
        flat = Value(b.op("Reshape", x, np.array([-1])), (None,), x.dtype)
        return b.op("Reshape", _rolled(b, flat, shifts, 0), b.op("Shape", x), allowzero=1)
    for shift, dim in zip(*[d if isinstance(d, (tuple, list)) else (d,) for d in (shifts, dims)], strict=True):
        x = x._replace(name=_rolled(b, x, shift, x.dim(dim)))
    return x.name


def _rolled(b: Builder, x: Value, shift: Any, dim: int) -> str:
    if isinstance(shift, tuple):
        (shift,) = shift
    n = x.shape[dim]
    if n is not None and isinstance(shift, int):
        shift = shift % max(n, 1)
    if shift == 0:
        return b.op("Identity", x)
    back = b.calculated("Mul", shift, -1)
    return b.op(
        "Concat", b.sliced(x, dim, back, np.iinfo(np.int64).max), b.sliced(x, dim, 0, back), axis=dim
    )  # fmt: skip


def _triangle(upper: int, name: str) -> None:
    @says(name)
    def write(b: Builder, x: Value, diagonal: Any = 0) -> Any:
        truth = x.dtype.numpy == np.bool_
        given = b.op("Cast", x, to=6) if truth else x
        result = b.op("Trilu", given, b.scalar(diagonal), upper=upper)
        return b.op("Cast", result, to=9) if truth else result


_triangle(0, "tril")
_triangle(1, "triu")


@says("diagonal")
def _diagonal(b: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    first, second = x.dim(dim1), x.dim(dim2)
    n, m = x.shape[first], x.shape[second]
    if n is None or m is None:
        raise Unsaid("a diagonal of a size that is not known")
    order = [k for k in range(x.ndim) if k not in (first, second)]
    y = b.op("Transpose", x, perm=[*order, first, second])
    sizes = [b.size(x, k) for k in order]
    y = b.reshaped(y, [*sizes, n * m])
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    start = offset if offset >= 0 else -offset * m
    return b.op("Gather", y, np.array([start + k * (m + 1) for k in range(length)], np.int64), axis=len(order))


@says("Tensor.unfold")
def _unfold(b: Builder, x: Value, dimension: int, size: int, step: int) -> Any:
    k = x.dim(dimension)
    n = x.shape[k]
    if n is None:
        raise Unsaid("windows along a size that is not known")
    at = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    y = b.op("Gather", x, at, axis=k)
    order = [*range(k + 1), *range(k + 2, x.ndim + 1), k + 1]
    return b.op("Transpose", y, perm=order)


@says("nn.functional.pad", "constant_pad_nd")
def _pad(b: Builder, x: Value, pad: Sequence[Any], mode: Any = "constant", value: Any = None) -> Any:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    half = len(pad) // 2
    before: list[Size] = [0] * x.ndim
    after: list[Size] = [0] * x.ndim
    for k in range(half):
        before[x.ndim - 1 - k], after[x.ndim - 1 - k] = pad[2 * k], pad[2 * k + 1]
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[mode]
    if kind == "wrap":
        y = x
        for k in range(x.ndim):
            first, last = before[k], after[k]
            if not (isinstance(first, int) and isinstance(last, int)) or min(first, last) < 0:
                raise Unsaid("circular padding by sizes that are not known, or negative")
            parts = [b.sliced(y, k, -first, np.iinfo(np.int64).max)] if first else []
            parts += [y.name, *[b.sliced(y, k, 0, last)] * bool(last)]
            if len(parts) > 1:
                y = Value(b.op("Concat", *parts, axis=k), y.shape, x.dtype)
        return b.op("Identity", y)
    truth = x.dtype.numpy == np.bool_
    fill = None if kind != "constant" else np.array(value or 0, np.int32) if truth else b.cast(value or 0, x.dtype)
    given = b.op("Cast", x, to=6) if truth else x
    result = b.op("Pad", given, b.ints([*before, *after]), fill, mode=kind)
    return b.op("Cast", result, to=9) if truth else result


@says("nn.functional.pixel_shuffle", "pixel_shuffle")
def _pixel_shuffle(b: Builder, x: Value, upscale_factor: int) -> Any:
    if x.ndim == 3:
        return b.squeezed(b.op("DepthToSpace", b.unsqueezed(x, 0), blocksize=upscale_factor, mode="CRD"), 0)
    if x.ndim != 4:
        raise Unsaid("the input has more than four dimensions")
    return b.op("DepthToSpace", x, blocksize=upscale_factor, mode="CRD")


@says("nn.functional.pixel_unshuffle", "pixel_unshuffle")
def _pixel_unshuffle(b: Builder, x: Value, downscale_factor: int) -> Any:
    if x.ndim != 4:
        raise Unsaid("the input has not four dimensions")
    r = downscale_factor
    n, c, h, w = b.sizes(x)
    rows, columns = b.calculated("Div", h, r), b.calculated("Div", w, r)
    y = b.op("Transpose", b.reshaped(x, [n, c, rows, r, columns, r]), perm=[0, 1, 3, 5, 2, 4])
    return b.reshaped(y, [n, b.product([c, r, r]), rows, columns])


@says("nn.functional.channel_shuffle", "channel_shuffle")
def _channel_shuffle(b: Builder, x: Value, groups: int) -> Any:
    n, c, *rest = b.sizes(x)
    y = b.reshaped(x, [n, groups, b.calculated("Div", c, groups), *rest])
    y = b.op("Transpose", y, perm=[0, 2, 1, *range(3, x.ndim + 1)])
    return b.reshaped(y, [n, c, *rest])


@says("meshgrid")
def _meshgrid(b: Builder, *tensors: Any, indexing: str | None = None) -> Any:
    given = list(tensors[0]) if isinstance(tensors[0], (tuple, list)) and not isinstance(tensors[0], Value) else tensors
    places = list(range(len(given)))  # of each tensor's elements, in the results
    if indexing == "xy":
        places[:2] = places[:2][::-1]
    sizes: list[Size] = [1] * len(given)
    for k, x in zip(places, given, strict=True):
        sizes[k] = b.size(x, 0) if x.ndim else 1
    made = []
    for k, x in zip(places, given, strict=True):
        y = b.op("Reshape", x, np.array([-1 if j == k else 1 for j in range(len(given))]))
        made.append(b.op("Expand", y, b.ints(sizes)))
    return tuple(made)


@says("broadcast_tensors")
def _broadcast_tensors(b: Builder, *tensors: Any) -> Any:
    total = b.op("Shape", tensors[0])
    for x in tensors[1:]:
        ones = b.op("Expand", np.ones(1, np.int64), total)
        total = b.op("Shape", b.op("Add", ones, b.op("Expand", np.ones(1, np.int64), b.op("Shape", x))))
    return tuple([b.op("Expand", x, total) for x in tensors])


@says("split_with_sizes")
def _split_with_sizes(b: Builder, x: Value, split_sizes: Any, dim: int = 0) -> Any:
    return _split(b, x, split_sizes, dim)


def _sections(name: str, axis: int) -> None:
    @says(name)
    def write(b: Builder, x: Value, indices_or_sections: Any) -> Any:
        return _tensor_split(b, x, indices_or_sections, 0 if axis == 1 and x.ndim == 1 else axis)


_sections("hsplit", 1)
_sections("vsplit", 0)
_sections("dsplit", 2)


@says("rot90")
def _rot90(b: Builder, x: Value, k: int = 1, dims: Any = (0, 1)) -> Any:
    first, second = [x.dim(d) for d in dims]
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    if k % 4 == 0:
        return b.op("Identity", x)
    if k % 4 == 2:
        return _flip(b, x, first, second)
    if k % 4 == 1:
        return b.op("Transpose", _flip(b, x, second), perm=order)
    return _flip(b, x._replace(name=b.op("Transpose", x, perm=order)), second)


@says("trace")
def _trace(b: Builder, x: Value) -> Any:
    return b.op("ReduceSum", b.cast(x._replace(name=_diagonal(b, x)), b.out.dtype), np.array([0]), keepdims=0)


def _on_diagonal(b: Builder, x: Value, offset: int) -> str:
    """Return matrices with the last dimension of a tensor on a diagonal."""
    n = x.shape[-1]
    if n is None:
        raise Unsaid("a diagonal of a size that is not known")
    size = n + abs(offset)
    mask = np.eye(size, k=offset, dtype=bool)
    at = np.zeros((size, size), np.int64)
    at[mask] = np.arange(n)
    return b.op("Where", mask, b.op("Gather", x, at, axis=x.ndim - 1), b.cast(0, x.dtype))


@says("diag")
def _diag(b: Builder, x: Value, diagonal: int = 0) -> Any:
    return _diagonal(b, x, diagonal) if x.ndim == 2 else _on_diagonal(b, x, diagonal)


@says("diag_embed")
def _diag_embed(b: Builder, x: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    first, second = [k + x.ndim + 1 if k < 0 else k for k in (dim1, dim2)]
    y = _on_diagonal(b, x, offset)
    order = [k for k in range(x.ndim + 1) if k not in (first, second)]
    places = {k: j for j, k in enumerate([*order, first, second])}
    return b.op("Transpose", y, perm=[places[k] for k in range(x.ndim + 1)])


@says("atleast_1d")
def _atleast_1d(b: Builder, *tensors: Any) -> Any:
    if len(tensors) != 1 or not isinstance(tensors[0], Value):
        raise Unsaid("several tensors")
    (x,) = tensors
    return b.op("Identity", x) if x.ndim else b.op("Reshape", x, np.array([1]))


__all__ = ["sizes_of"]
