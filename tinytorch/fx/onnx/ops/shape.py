"""Views, and what puts tensors together or takes them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.fx.onnx.builder import Builder, Length, Size, UnsupportedCall, Value, rule, torch
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F

_FAR = np.iinfo(np.int64).max


def sizes_of(given: tuple[Any, ...]) -> list[Size]:
    """Return sizes that are given one by one, or as one sequence."""
    return list(given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given)


def known(x: Value, k: int, what: str = "the number of the parts depends on a size") -> int:
    """Return a size of a tensor; UnsupportedCall if it is not known."""
    n: int | None = x.shape[x.dim(k)]
    return x.builder.refuse(what) if n is None else n


def _swapped(x: Value, first: int, second: int) -> list[int]:
    """Return the order of dimensions in which two have changed places."""
    order = list(range(x.ndim))
    if order:
        order[first], order[second] = order[second], order[first]
    return order


@rule(torch.reshape, Tensor.view)
def _reshape(b: Builder, x: Value, *shape: Any, **kwargs: Any) -> Any:
    shape = tuple([*shape, *kwargs.values()])
    result = b.like_out(x)
    if result is None and not isinstance(shape[0], (int, Length, tuple, list)):
        raise UnsupportedCall("a view as another dtype")
    return result or x.reshape(sizes_of(shape))


@rule(torch.flatten)
def _flatten(b: Builder, x: Value, start_dim: int = 0, end_dim: int = -1) -> Any:
    result = b.like_out(x)
    if result is not None:
        return result
    sizes = x.sizes
    return x.reshape([*sizes[: x.dim(start_dim)], -1, *sizes[x.dim(end_dim) + 1 :]])


@rule(torch.unflatten)
def _unflatten(b: Builder, x: Value, dim: int, sizes: Sequence[Size]) -> Any:
    k, own = x.dim(dim), x.sizes
    return b.like_out(x) or x.reshape([*own[:k], *sizes, *own[k + 1 :]])


@rule(torch.squeeze)
def _squeeze(b: Builder, x: Value, dim: Any = None) -> Any:
    dims = [k for k in (x.axes(dim) if dim not in ((), []) else ()) if x.shape[k] == 1]
    return x.squeeze(*dims) if dims else x.Identity()


@rule(torch.movedim)
def _movedim(b: Builder, x: Value, source: Any, destination: Any) -> Any:
    origin, goal = [[x.dim(k) for k in (d if isinstance(d, (tuple, list)) else (d,))] for d in (source, destination)]
    order = [-1] * x.ndim
    for k, j in zip(origin, goal, strict=True):
        order[j] = k
    rest = iter(k for k in range(x.ndim) if k not in origin)
    return x.permute([next(rest) if k < 0 else k for k in order])


rule(Tensor.view_as, Tensor.reshape_as)(lambda b, x, other: b.like_out(x) or x.reshape_as(other))
rule(torch.ravel)(lambda b, x: x.flat())
rule(torch.unsqueeze)(lambda b, x, dim: x.unsqueeze(dim + x.ndim + 1 if dim < 0 else dim))
rule(torch.transpose, torch.swapaxes)(lambda b, x, dim0, dim1: x.permute(_swapped(x, dim0, dim1)))
rule(torch.t)(lambda b, x: x.permute(range(x.ndim)[::-1]))
rule(torch.adjoint)(lambda b, x: x.permute(_swapped(x, -2, -1)))
rule(torch.permute)(lambda b, x, *dims, **kwargs: x.permute([x.dim(k) for k in sizes_of((*dims, *kwargs.values()))]))


@rule(Tensor.expand)
def _expand(b: Builder, x: Value, *sizes: Any, **kwargs: Any) -> Any:
    wanted = sizes_of(sizes)
    own: list[Size] = [*[1] * (len(wanted) - x.ndim), *x.sizes]
    return x.Expand([n if m == -1 else m for m, n in zip(wanted, own, strict=True)])


@rule(Tensor.repeat)
def _repeat(b: Builder, x: Value, *repeats: Any, **kwargs: Any) -> Any:
    times = sizes_of((*repeats, *kwargs.values()))
    return x.unsqueeze(*range(len(times) - x.ndim)).Tile(times)


rule(torch.broadcast_to)(lambda b, x, size: _expand(b, x, size))
rule(Tensor.expand_as)(lambda b, x, other: x.Expand(other.Shape()))
rule(torch.tile)(lambda b, x, *dims: _repeat(b, x, *[1] * (x.ndim - len(sizes_of(dims))), *sizes_of(dims)))


@rule(torch.repeat_interleave)
def _repeat_interleave(b: Builder, x: Value, repeats: Any = 0, dim: int | None = None, **_: Any) -> Any:
    if isinstance(repeats, Value) or repeats == 0:
        raise UnsupportedCall("the shape of the result depends on values")
    if dim is None:
        x, dim = x.flat(), 0
    k = x.dim(dim)
    y, sizes = x.unsqueeze(k + 1), x.sizes
    y = y.Expand([*sizes[: k + 1], repeats, *sizes[k + 1 :]])
    return y.reshape([*sizes[:k], sizes[k] * repeats, *sizes[k + 1 :]])


@rule(torch.cat)
def _cat(b: Builder, tensors: Sequence[Value], dim: int = 0, **kwargs: Any) -> Any:
    if not isinstance(tensors, (tuple, list)):
        raise UnsupportedCall("what is put together is no list of tensors")
    kept = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    return b.concat(*[x.cast(b.out.dtype) for x in kept], axis=kept[0].dim(kwargs.get("axis", dim)))


@rule(torch.stack)
def _stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Any:
    k = dim + tensors[0].ndim + 1 if dim < 0 else dim
    return b.concat(*[x.cast(b.out.dtype).unsqueeze(k) for x in tensors], axis=k)


def _pieces(x: Value, dim: int, lengths: Sequence[int]) -> Any:
    if sum(lengths) != x.shape[dim] or not lengths:
        raise UnsupportedCall("parts that overlap, or none")
    return x.Split(lengths, outputs=len(lengths), axis=dim) if len(lengths) > 1 else (x.Identity(),)


@rule(torch.split)
def _split(b: Builder, x: Value, split_size_or_sections: Any = None, dim: int = 0, **kwargs: Any) -> Any:
    size = kwargs.get("split_size", split_size_or_sections)
    if isinstance(size, (tuple, list)) and all(isinstance(n, int) for n in size):
        return _pieces(x, x.dim(dim), list(size))
    n = known(x, dim)
    if not isinstance(size, int) or not size:
        raise UnsupportedCall("the number of the parts depends on a size")
    return _pieces(x, x.dim(dim), [min(size, n - start) for start in range(0, max(n, 1), size)])


rule(torch.split_with_sizes)(lambda b, x, split_sizes, dim=0: _split(b, x, split_sizes, dim))
rule(torch.chunk)(lambda b, x, chunks, dim=0: _split(b, x, -(-known(x, dim) // chunks), dim))


@rule(torch.tensor_split)
def _tensor_split(b: Builder, x: Value, indices_or_sections: Any, dim: int = 0) -> Any:
    if isinstance(indices_or_sections, Value):
        raise UnsupportedCall("the number of the parts depends on a size")
    parts = np.array_split(np.arange(known(x, dim)), indices_or_sections)
    return _pieces(x, x.dim(dim), [len(part) for part in parts])


@rule(torch.unbind)
def _unbind(b: Builder, x: Value, dim: int = 0) -> Any:
    n = known(x, dim) or b.refuse("the number of the parts depends on a size, or is 0")
    return tuple([x.Gather(b.scalar(j), axis=x.dim(dim)) for j in range(n)])


@rule(torch.narrow)
def _narrow(b: Builder, x: Value, dim: int, start: Any, length: Any) -> Any:
    if isinstance(start, Value):
        start = Length(b, start.cast(dtypes.int64).Reshape([1]).name)
    if isinstance(start, int) and start < 0:
        start = x.size(dim) + start
    return x.slice(x.dim(dim), start, start + length)


rule(torch.select)(lambda b, x, dim, index: x.Gather(b.scalar(index), axis=x.dim(dim)))


@rule(torch.flip)
def _flip(b: Builder, x: Value, *dims: Any) -> Any:
    axes = [x.dim(k) for k in sizes_of(dims)]  # type: ignore[arg-type]
    n = len(axes)
    return x.Slice([-1] * n, [-_FAR] * n, axes, [-1] * n) if axes and x.ndim else x.Identity()


rule(torch.fliplr)(lambda b, x: _flip(b, x, 1))
rule(torch.flipud)(lambda b, x: _flip(b, x, 0))


@rule(torch.roll)
def _roll(b: Builder, x: Value, shifts: Any, dims: Any = None) -> Any:
    if dims is None or dims == ():
        return _rolled(x.flat(), shifts, 0).reshape_as(x)
    y = x
    for shift, dim in zip(*[d if isinstance(d, (tuple, list)) else (d,) for d in (shifts, dims)], strict=True):
        y = _rolled(y.with_shape(*x.shape), shift, x.dim(dim))
    return y


def _rolled(x: Value, shift: Any, dim: int) -> Value:
    if isinstance(shift, tuple):
        (shift,) = shift
    n = x.shape[dim]
    if n is not None and isinstance(shift, int):
        shift = shift % max(n, 1)
    back = shift * -1
    return x.builder.concat(x.slice(dim, back, _FAR), x.slice(dim, 0, back), axis=dim) if back else x.Identity()


def _by_int32(x: Value, write: Any) -> Value:
    """Return the result of an operator that does not know truth values."""
    result: Value = write(x.convert(dtypes.int32)).convert(x.dtype) if x.dtype is dtypes.bool else write(x)
    return result


def _triangle(upper: int, function: Any) -> None:
    @rule(function)
    def write(b: Builder, x: Value, diagonal: Any = 0) -> Any:
        return _by_int32(x, lambda y: y.Trilu(b.scalar(diagonal), upper=upper))


_triangle(0, torch.tril)
_triangle(1, torch.triu)


@rule(torch.diagonal)
def _diagonal(b: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    first, second = x.dim(dim1), x.dim(dim2)
    n, m = [known(x, k, "a diagonal of a size that is not known") for k in (first, second)]
    order = [k for k in range(x.ndim) if k not in (first, second)]
    y = x.Transpose(perm=[*order, first, second])
    y = y.reshape([*[x.size(k) for k in order], n * m])
    length = max(0, min(n, m - offset) if offset >= 0 else min(n + offset, m))
    start = offset if offset >= 0 else -offset * m
    return y.Gather([start + k * (m + 1) for k in range(length)], axis=len(order))


@rule(Tensor.unfold)
def _unfold(b: Builder, x: Value, dimension: int, size: int, step: int) -> Any:
    k = x.dim(dimension)
    n = known(x, k, "windows along a size that is not known")
    at = np.arange(0, n - size + 1, step)[:, None] + np.arange(size)
    return x.Gather(at, axis=k).permute([*range(k + 1), *range(k + 2, x.ndim + 1), k + 1])


@rule(F.pad, torch.constant_pad_nd)
def _pad(b: Builder, x: Value, pad: Sequence[Any], mode: Any = "constant", value: Any = None) -> Any:
    if not isinstance(mode, str):
        mode, value = "constant", mode
    before: list[Size] = [0] * x.ndim
    after: list[Size] = [0] * x.ndim
    for k in range(len(pad) // 2):
        before[-1 - k], after[-1 - k] = pad[2 * k], pad[2 * k + 1]
    if mode == "circular":
        y = x
        for k, (first, last) in enumerate(zip(before, after, strict=True)):
            if not (isinstance(first, int) and isinstance(last, int)) or min(first, last) < 0:
                raise UnsupportedCall("circular padding by sizes that are not known, or negative")
            parts = [*[y.slice(k, -first, _FAR)] * bool(first), y, *[y.slice(k, 0, last)] * bool(last)]
            y = b.concat(*parts, axis=k) if len(parts) > 1 else y
        return y.Identity()
    kind = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}[mode]
    fill = (value or 0,) if kind == "constant" else ()
    return _by_int32(x, lambda y: y.Pad([*before, *after], *[b.cast(n, y.dtype) for n in fill], mode=kind))


@rule(F.pixel_shuffle)
def _pixel_shuffle(b: Builder, x: Value, upscale_factor: int) -> Any:
    if x.ndim not in (3, 4):
        raise UnsupportedCall("the input has more than four dimensions")
    single = range(x.ndim == 3)
    return x.unsqueeze(*single).DepthToSpace(blocksize=upscale_factor, mode="CRD").squeeze(*single)


@rule(F.pixel_unshuffle)
def _pixel_unshuffle(b: Builder, x: Value, downscale_factor: int) -> Any:
    if x.ndim != 4:
        raise UnsupportedCall("the input has not four dimensions")
    r = downscale_factor
    n, c, h, w = x.sizes
    rows, columns = h // r, w // r
    y = x.reshape([n, c, rows, r, columns, r]).Transpose(perm=[0, 1, 3, 5, 2, 4])
    return y.reshape([n, b.product([c, r, r]), rows, columns])


@rule(F.channel_shuffle)
def _channel_shuffle(b: Builder, x: Value, groups: int) -> Any:
    n, c, *rest = x.sizes
    y = x.reshape([n, groups, c // groups, *rest]).Transpose(perm=[0, 2, 1, *range(3, x.ndim + 1)])
    return y.reshape([n, c, *rest])


@rule(torch.meshgrid)
def _meshgrid(b: Builder, *tensors: Any, indexing: str | None = None) -> Any:
    given = tensors[0] if isinstance(tensors[0], (tuple, list)) else tensors
    places = list(range(len(given)))  # of each tensor's elements, in the results
    if indexing == "xy":
        places[:2] = places[:2][::-1]
    sizes: list[Size] = [1] * len(given)
    for k, x in zip(places, given, strict=True):
        sizes[k] = x.size(0) if x.ndim else 1
    return tuple([
        x.Reshape([-1 if j == k else 1 for j in range(len(given))]).Expand(sizes)
        for k, x in zip(places, given, strict=True)
    ])  # fmt: skip


@rule(torch.broadcast_tensors)
def _broadcast_tensors(b: Builder, *tensors: Any) -> Any:
    total = tensors[0].Shape()
    for x in tensors[1:]:
        total = (b.ints([1]).Expand(total) + b.ints([1]).Expand(x.Shape())).Shape()
    return tuple([x.Expand(total) for x in tensors])


@rule(torch.rot90)
def _rot90(b: Builder, x: Value, k: int = 1, dims: Any = (0, 1)) -> Any:
    first, second = [x.dim(d) for d in dims]
    order = _swapped(x, first, second)
    if k % 4 == 0:
        return x.Identity()
    if k % 4 == 2:
        return _flip(b, x, first, second)
    if k % 4 == 1:
        return _flip(b, x, second).Transpose(perm=order)
    return _flip(b, x.Transpose(perm=order).with_shape(*x.shape), second)


rule(torch.trace)(lambda b, x: _diagonal(b, x).cast(b.out.dtype).ReduceSum([0], keepdims=0))


def _on_diagonal(b: Builder, x: Value, offset: int) -> Value:
    """Return matrices with the last dimension of a tensor on a diagonal."""
    n = known(x, -1, "a diagonal of a size that is not known")
    size = n + abs(offset)
    mask = np.eye(size, k=offset, dtype=bool)
    at = np.zeros((size, size), np.int64)
    at[mask] = np.arange(n)
    return b.where(mask, x.Gather(at, axis=x.ndim - 1), 0)


rule(torch.diag)(lambda b, x, diagonal=0: _diagonal(b, x, diagonal) if x.ndim == 2 else _on_diagonal(b, x, diagonal))


@rule(torch.diag_embed)
def _diag_embed(b: Builder, x: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    first, second = [k + x.ndim + 1 if k < 0 else k for k in (dim1, dim2)]
    order = [*[k for k in range(x.ndim + 1) if k not in (first, second)], first, second]
    return _on_diagonal(b, x, offset).permute([*np.argsort(order)])
