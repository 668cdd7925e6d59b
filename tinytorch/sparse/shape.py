"""Functions of sparse tensors that move, choose and join entries."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.core.layout import NoArray, sparse_coo
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.reduce import axis_of
from tinytorch.kernels.sparse import ranges
from tinytorch.ops.join import cat as cat_dense
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.tensors import SparseCOO


def _coo(name: str, x: Any) -> SparseCOO:
    """Return a tensor in the format COO, for a function that has a rule for it alone."""
    if x.layout is not sparse_coo:
        raise NoArray(
            f"Could not run 'aten::{name}' with arguments from the 'SparseCsrCPU' backend: convert the tensor by "
            "to_sparse_coo()"
        )
    made: SparseCOO = x
    return made


@rule("permute")
def permute(self: Any, *dims: Any) -> SparseCOO:
    """Return the tensor with its dimensions in another order; sparse dimensions stay before dense ones."""
    x = _coo("permute", self)
    order = tuple(dims[0]) if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    count, ndim = x.sparse_dim(), x.ndim
    order = tuple(axis_of(dim, ndim, "permute") for dim in order)
    if sorted(order) != list(range(ndim)):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(order)}"
            if len(order) != ndim
            else "permute(): duplicate dims are not allowed."
        )
    if set(order[:count]) != set(range(count)):
        raise RuntimeError("transpositions between sparse and dense dimensions are not supported")
    values = x._held
    if order[count:] != tuple(range(count, ndim)):
        values = values.permute(0, *[dim - count + 1 for dim in order[count:]])
    same = order[:count] == tuple(range(count))
    where = x._where if same else x._where[list(order[:count])]
    made = SparseCOO.of(where, values, [x._size[dim] for dim in order], x._coalesced and same)
    if count == 2 and order == (1, 0) and x._kept is not None:
        made._kept = x._kept.across
    return made


@rule("transpose", "swapaxes", "swapdims")
def transpose(self: Any, dim0: int, dim1: int) -> SparseCOO:
    """Return the tensor with two dimensions exchanged."""
    ndim = self.ndim
    order = list(range(ndim))
    a, b = axis_of(dim0, ndim, "transpose"), axis_of(dim1, ndim, "transpose")
    order[a], order[b] = b, a
    return permute(_coo("transpose", self), order)


@rule("t", "T")
def t(self: Any) -> Any:
    """Return the transposed matrix."""
    if self.layout is not sparse_coo:
        raise NotImplementedError(
            "t() of a matrix in the format CSR is one in the format CSC, which tinytorch does not have: use "
            "to_sparse_coo().t()"
        )
    if self.sparse_dim() > 2 or self.dense_dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{self.sparse_dim()} sparse and {self.dense_dim()} dense dimensions"
        )
    return permute(self, 1, 0) if self.ndim == 2 else self


@rule("unsqueeze")
def unsqueeze(self: Any, dim: int) -> SparseCOO:
    """Return the tensor with a further dimension of length 1."""
    x = _coo("unsqueeze", self)
    at = axis_of(dim, x.ndim + 1, "unsqueeze")
    size = (*x._size[:at], 1, *x._size[at:])
    count = x.sparse_dim()
    if at > count:
        return SparseCOO.of(x._where, x._held.unsqueeze(at - count + 1), size, x._coalesced)
    return SparseCOO.of(np.insert(x._where, at, 0, axis=0), x._held, size, x._coalesced)


@rule("select")
def select(self: Any, dim: int, index: int) -> Any:
    """Return the part of the tensor at an index of a dimension, without that dimension."""
    x = self.to_sparse_coo()
    at, index = axis_of(dim, x.ndim, "select"), operator.index(index)
    length = x._size[at]
    if not -length <= index < length:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(x._size)} at dimension {at}")
    index %= length
    size = (*x._size[:at], *x._size[at + 1 :])
    count = x.sparse_dim()
    if at >= count:
        return SparseCOO.of(x._where, x._held.select(at - count + 1, index), size, x._coalesced)
    chosen = np.flatnonzero(x._where[at] == index)
    values = x._held.index_select(0, wrap(chosen))
    if count == 1:
        return values.sum(0)
    return SparseCOO.of(np.delete(x._where[:, chosen], at, axis=0), values, size, x._coalesced)


@rule("__getitem__")
def get_item(self: Any, key: Any) -> Any:
    """Return the part at one index, or at several."""
    keys = key if isinstance(key, tuple) else (key,)
    if all(isinstance(each, (int, np.integer)) and not isinstance(each, bool) for each in keys):
        if len(keys) > self.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
        found = self
        for each in keys:
            found = select(found, 0, int(each)) if is_sparse(found) else found[each]
        return found
    raise NoArray("an index of a sparse tensor must consist of integers: use select, index_select or to_dense()")


@rule("unbind")
def unbind(self: Any, dim: int = 0) -> Any:
    """Return the parts at all indices of a dimension."""
    return tuple(select(self, dim, k) for k in range(self._size[axis_of(dim, self.ndim, "unbind")]))


rule("__iter__")(lambda self: iter(unbind(self)))


@rule("index_select")
def index_select(self: Any, dim: int, index: Tensor) -> SparseCOO:
    """Return the parts of the tensor at the indices of a dimension."""
    x = _coo("index_select", self)
    at = axis_of(dim, x.ndim, "index_select")
    numbers = np.asarray(index._array).reshape(-1)
    length, count = x._size[at], x.sparse_dim()
    size = (*x._size[:at], len(numbers), *x._size[at + 1 :])
    if at >= count:
        return SparseCOO.of(x._where, x._held.index_select(at - count + 1, index), size, x._coalesced)
    for wrong in numbers[(numbers < -length) | (numbers >= length)][:1]:
        raise IndexError(f"index_select(): index contains {wrong} that is out of range for tensor of size {length}")
    numbers = numbers % length if length else numbers
    order = np.argsort(x._where[at], kind="stable")
    in_order = x._where[at][order]
    begin = np.searchsorted(in_order, numbers)
    lengths = np.searchsorted(in_order, numbers, "right") - begin
    entries = order[ranges(begin, lengths)]
    where = x._where[:, entries]
    where[at] = np.repeat(np.arange(len(numbers)), lengths)
    coalesced = x._coalesced and at == 0
    return SparseCOO.of(where, x._held.index_select(0, wrap(entries)), size, coalesced)


@rule("cat", "concat", "concatenate")
def cat(tensors: Any, dim: int = 0) -> SparseCOO:
    """Return sparse tensors joined along a dimension."""
    if not all(is_sparse(x) for x in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found")
    parts = [_coo("cat", x) for x in tensors]
    first = parts[0]
    at, count = axis_of(dim, first.ndim, "cat"), first.sparse_dim()
    for k, each in enumerate(parts):
        others = [[n for d, n in enumerate(x._size) if d != at] for x in (each, first)]
        if others[0] != others[1] or each.sparse_dim() != count:
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first._size)} (except in the concatenating dimension), "
                f"but found shape: {list(each._size)} at position {k}"
            )
    if at >= count:
        raise NoArray("cat of sparse tensors along a dense dimension is not supported")
    wheres, begin = [], 0
    for each in parts:
        where = each._where.copy()
        where[at] += begin
        begin += each._size[at]
        wheres.append(where)
    size = (*first._size[:at], begin, *first._size[at + 1 :])
    values = cat_dense([each._held for each in parts])
    return SparseCOO.of(np.concatenate(wheres, axis=1), values, size)


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> SparseCOO:
    """Return sparse tensors stacked along a new dimension."""
    return cat([unsqueeze(x, dim) for x in tensors], dim)
