"""Gather and scatter as ops define them, reductions by an index, and places in the flattened array."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes, indexing
from .checks import fitting, tensor_name
from .indexing import along, flat
from .intp import as_intp
from .limits import limits_of
from .meta import copied
from .native import twin
from .reduce import accumulated, axis_of

Array = Any

_INT64 = np.dtype(np.int64)


def gather(x: Array, dim: int, index: Array, *, sparse_grad: bool) -> Array:
    """Return the elements of `x` at `index` along `dim`; the gradient is dense in any case."""
    return indexing.gather(x, dim, index)


@twin
def scatter(x: Array, dim: int, index: Array, src: Any) -> None:
    """Write `src` into `x` at `index` along `dim`."""
    indexing.scatter_by(x, dim, index, fitting(src, x), "put")


@twin
def scatter_add(x: Array, dim: int, index: Array, src: Any) -> None:
    """Add `src` to `x` at `index` along `dim`."""
    indexing.scatter_by(x, dim, index, fitting(src, x), "add")


def scatter_multiply(x: Array, dim: int, index: Array, src: Any) -> None:
    """Multiply `x` at `index` along `dim` by `src`."""
    indexing.scatter_by(x, dim, index, fitting(src, x), "multiply")


# Reductions ---------------------------------------------------------------------------------------


def scatter_extreme(x: Array, dim: int, index: Array, src: Array, how: str, include_self: bool) -> Array:
    """Return a copy of `x` with `src` combined by "amax", "amin", "add" or "multiply" into the elements at `index`."""
    out = x.copy("C")
    if not include_self:
        if how in ("add", "multiply"):
            start: Any = int(how == "multiply")
        elif x.dtype.kind in dtypes.FLOATS:
            start = -np.inf if how == "amax" else np.inf
        else:
            start = limits_of(dtypes.from_numpy_dtype(x.dtype))[how == "amin"]
        indexing.scatter_by(out, dim, index, start, "put")
    indexing.scatter_by(out, dim, index, fitting(src, out), how)
    return out


def scatter_sum(x: Array, dim: int, index: Array, src: Array, how: str, include_self: bool) -> Array:
    """Return the sums."""
    return scatter_extreme(x, dim, index, src, "add", include_self)


def scatter_prod(x: Array, dim: int, index: Array, src: Array, how: str, include_self: bool) -> Array:
    """Return the products."""
    return scatter_extreme(x, dim, index, src, "multiply", include_self)


def scatter_mean(x: Array, dim: int, index: Array, src: Array, how: str, include_self: bool) -> tuple[Array, Array]:
    """Return the means and the number of elements of each mean."""
    if x.dtype.kind == "b":
        raise NotImplementedError("\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'")
    total = scatter_extreme(x, dim, index, src, "add", include_self)
    counts = met(x.shape, dim, index, include_self)
    if total.dtype.kind in "iu":
        return total // counts.astype(total.dtype), counts
    return total / counts.astype(total.dtype), counts


def met(shape: tuple[int, ...], dim: int, index: Array, include_self: bool) -> Array:
    """Return the number of elements reduced into each output element, at least 1."""
    counts = np.ones(shape, _INT64, like=index)
    if not include_self:
        indexing.scatter_by(counts, dim, index, 0, "put")
    indexing.scatter_by(counts, dim, index, np.ones(index.shape, _INT64, like=index), "add")
    return counts


def prod_grad(
    g: Array, x: Array, dim: int, index: Array, src: Array, include_self: bool, out: Array
) -> tuple[Array, Array]:
    """Return the gradients of `x` and `src` for products: product / factor, or of the other factors if one is zero."""
    whole = np.zeros(src.shape, src.dtype, like=src)
    used = tuple([slice(n) for n in index.shape[: src.ndim]])
    src = src[used]
    if src.all() and (not include_self or x.all()):
        share = g * out
        to_x = share / x if include_self else g.copy("C")
        to_src = indexing.gather(share, dim, index) / src
    else:
        to_x, to_src = _products_of_others(g, x, dim, index, src, include_self)
    if not include_self:
        indexing.scatter_by(to_x, dim, index, 0, "put")
    whole[used] = to_src.reshape(src.shape)
    return to_x, whole


def _products_of_others(
    g: Array, x: Array, dim: int, index: Array, src: Array, include_self: bool
) -> tuple[Array, Array]:
    """Return the products from a matrix of factors with one column per element of `x`."""
    places = flat(along(x.shape, axis_of(dim, x.ndim, "scatter"), index))
    key = (indexing.ranks(places) + 1, places)
    factors = np.ones((1 + int(key[0].max(initial=0)), x.size), x.dtype, like=x)
    factors[0] = flat(x)
    if not include_self:
        factors[0, places] = 1
    factors[key] = flat(src)
    shares = flat(g) * _before(factors) * _before(factors[::-1])[::-1]
    return shares[0].reshape(x.shape), shares[key].reshape(index.shape)


def _before(factors: Array) -> Array:
    """Return for each row the product of the rows before it."""
    moved = np.ones_like(factors)
    moved[1:] = factors[:-1]
    return accumulated(np.multiply, moved, 0)


# The flattened array ------------------------------------------------------------------------------


def _check_flat(name: str, x: Array, index: Array) -> None:
    if index.dtype != _INT64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {tensor_name(index)}")
    if index.size and not x.size:
        raise IndexError(f"{name}(): tried to {name} from an empty tensor")
    bad = index[(index < -x.size) | (index >= x.size)]
    if bad.size:
        raise IndexError(
            f"out of range: tried to access index {int(bad.reshape(-1)[0])} on a tensor of {x.size} elements."
        )


@twin
def taken(x: Array, index: Array) -> Array:
    """Return the elements of the flattened array at `index`."""
    _check_flat("take", x, index)
    return flat(x).take(as_intp(flat(index))).reshape(index.shape)


def taken_back(x: Array, shape: tuple[int, ...], index: Array) -> Array:
    """Return zeros of `shape` with `x` added at `index` of the flattened array: the gradient of `take`."""
    out = np.zeros(shape, x.dtype, like=x)
    indexing.add_at(out, index, x)
    return out


def put(x: Array, index: Array, source: Array, accumulate: bool) -> None:
    """Write `source` into `x` at `index` of the flattened array, or add it there."""
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {tensor_name(x)} and "
            f"source.dtype = {tensor_name(source)}"
        )
    _check_flat("put", x, index)
    places, values = flat(index), flat(copied(source, x))
    target = x if x.flags.c_contiguous else x.copy("C")
    if accumulate:
        np.add.at(flat(target), places, values)
    else:
        flat(target)[places] = values
    if target is not x:
        x[...] = target
