"""Functions of sparse tensors that move, choose and join entries."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.core.layout import NoArray, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.reduce import axis_of
from tinytorch.kernels.sparse import ranges
from tinytorch.ops.join import cat as cat_dense
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.tensors import SparseCompressed, SparseCOO


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


#: The layout of the transposed matrices.
_TRANSPOSED = {
    sparse_csr: sparse_csc, sparse_csc: sparse_csr, sparse_bsr: sparse_bsc, sparse_bsc: sparse_bsr,
}  # fmt: skip


@rule("transpose", "swapaxes", "swapdims")
def transpose(self: Any, dim0: int, dim1: int) -> Any:
    """Return the tensor with two dimensions exchanged."""
    ndim = self.ndim
    a, b = axis_of(dim0, ndim, "transpose"), axis_of(dim1, ndim, "transpose")
    if self.layout is not sparse_coo:
        return _transposed(self, a, b)
    order = list(range(ndim))
    order[a], order[b] = b, a
    return permute(self, order)


def _transposed(x: SparseCompressed, a: int, b: int) -> SparseCompressed:
    """Return a tensor in a compressed format with two dimensions of the batch, or of the matrices, exchanged."""
    if x.dense_dim():
        raise RuntimeError("transpose(): hybrid sparse compressed tensors with dense dimensions are not supported")
    if a == b:
        return x
    batch = x._batch_dim
    if (a < batch) is not (b < batch):
        kinds = ["Batch" if dim < batch else "Sparse" for dim in (a, b)]
        raise RuntimeError(
            "transpose(): can only transpose dimensions of the same type (Batch, Sparse, Dense), got "
            f"{a}({kinds[0]}) and {b}({kinds[1]})"
        )
    size = list(x._size)
    size[a], size[b] = size[b], size[a]
    if a < batch:
        start, plain = x._start.swapaxes(a, b), x._plain.swapaxes(a, b)
        return SparseCompressed.of(x.layout, start, plain, x._held.transpose(a, b), size)
    values = x._held.transpose(batch + 1, batch + 2) if x._of_blocks else x._held
    made = SparseCompressed.of(_TRANSPOSED[x.layout], x._start, x._plain, values, size)
    if x._kept is not None and not x._of_blocks:
        made._kept = x._kept.across
    return made


@rule("T", of=(sparse_coo,))
@rule("t")
def t(self: Any) -> Any:
    """Return the transposed matrix."""
    if self.layout is not sparse_coo:
        if self.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
        return _transposed(self, 0, 1)
    if self.sparse_dim() > 2 or self.dense_dim():
        raise RuntimeError(
            "t() expects a tensor with <= 2 sparse and 0 dense dimensions, but got "
            f"{self.sparse_dim()} sparse and {self.dense_dim()} dense dimensions"
        )
    return permute(self, 1, 0) if self.ndim == 2 else self


def _check_matrices(self: Any, name: str) -> None:
    if self.ndim < 2:
        raise RuntimeError(
            f"tensor.{name} is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
        )


@rule("mT")
def matrix_transposed(self: Any) -> Any:
    """Return the transposed matrices."""
    _check_matrices(self, "mT")
    return transpose(self, -2, -1)


@rule("mH", "adjoint")
def matrix_adjoint(self: Any) -> Any:
    """Return the conjugate transposes of the matrices."""
    _check_matrices(self, "mH")
    return transpose(self.conj(), -2, -1) if self.is_complex() else transpose(self, -2, -1)


@rule("H")
def conjugate_transposed(self: Any) -> Any:
    """Return the conjugate transpose of a matrix."""
    if self.ndim not in (0, 2):
        raise RuntimeError(
            f"tensor.H is only supported on matrices (2-D tensors). Got {self.ndim}-D tensor. For batches of matrices, "
            "consider using tensor.mH"
        )
    return transpose(self.conj(), 0, 1) if self.ndim else self


@rule("unsqueeze")
def unsqueeze(self: Any, dim: int) -> SparseCOO:
    """Return the tensor with a further dimension of length 1."""
    x = _coo("unsqueeze", self)
    at = axis_of(dim, x.ndim + 1, "unsqueeze")
    size = (*x._size[:at], 1, *x._size[at:])
    count = x.sparse_dim()
    if at > count:
        return SparseCOO.of(x._where, x._held.unsqueeze(at - count + 1), size)
    return SparseCOO.of(np.insert(x._where, at, 0, axis=0), x._held, size)


@rule("select", "select_copy")
def select(self: Any, dim: int, index: int) -> Any:
    """Return the part of the tensor at an index of a dimension, without that dimension."""
    if not self.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, index = axis_of(dim, self.ndim, "select"), operator.index(index)
    length = self._size[at]
    if not -length <= index < length:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self._size)} at dimension {at}"
        )
    index %= length
    if self.layout is not sparse_coo and at not in (self._batch_dim, self._batch_dim + 1):
        return _selected(self, at, index)
    if self.layout is not sparse_coo and self._batch_dim:
        raise RuntimeError(
            "select(): selecting sparse dimensions is not supported for batched sparse compressed tensors."
        )
    x = self.to_sparse_coo()
    size = (*x._size[:at], *x._size[at + 1 :])
    count = x.sparse_dim()
    if at >= count:
        return SparseCOO.of(x._where, x._held.select(at - count + 1, index), size)
    chosen = np.flatnonzero(x._where[at] == index)
    values = x._held.index_select(0, wrap(chosen))
    if count == 1:
        return values.sum(0)
    where = np.delete(x._where[:, chosen], at, axis=0)
    return SparseCOO.of(where, values, size, self.layout is not sparse_coo and x._coalesced)


def _selected(x: SparseCompressed, at: int, index: int) -> SparseCompressed:
    """Return the part at an index of a dimension of the batch, or of a dense dimension."""
    size = (*x._size[:at], *x._size[at + 1 :])
    if at < x._batch_dim:
        key = (slice(None),) * at + (index,)
        return SparseCompressed.of(x.layout, x._start[key], x._plain[key], x._held.select(at, index), size)
    values = x._held.select(at - x.ndim, index)
    return SparseCompressed.of(x.layout, x._start, x._plain, values, size)


@rule("narrow_copy")
def narrow_copy(self: Any, dim: int, start: int, length: int) -> SparseCOO:
    """Return the part of the tensor at a range of indices of a dimension."""
    x = _coo("narrow_copy", self)
    at = axis_of(dim, x.ndim, "narrow_copy")
    whole = x._size[at]
    if not (0 <= start <= whole and length >= 0 and start + length <= whole):
        raise RuntimeError(
            f"Invalid range to narrow. range(start, start+length) must be a subset of range(0, {whole})."
        )
    size, count = (*x._size[:at], length, *x._size[at + 1 :]), x.sparse_dim()
    if at >= count:
        return SparseCOO.of(x._where, x._held.narrow(at - count + 1, start, length), size, x._coalesced)
    chosen = np.flatnonzero((x._where[at] >= start) & (x._where[at] < start + length))
    where = x._where[:, chosen]
    where[at] -= start
    return SparseCOO.of(where, x._held.index_select(0, wrap(chosen)), size, x._coalesced)


@rule("__getitem__")
def get_item(self: Any, key: Any) -> Any:
    """Return the part at one index, or at several."""
    keys = list(key) if isinstance(key, tuple) else [key]
    if keys.count(Ellipsis) == 1:
        at = keys.index(Ellipsis)
        keys[at : at + 1] = [slice(None)] * (self.ndim - len(keys) + 1)
    whole = slice(None)
    if all(
        (isinstance(each, (int, np.integer)) and not isinstance(each, bool)) or (type(each) is slice and each == whole)
        for each in keys
    ):
        if len(keys) > self.ndim:
            raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
        found, dim = self, 0
        for each in keys:
            if type(each) is slice:
                dim += 1
            else:
                found = select(found, dim, int(each)) if is_sparse(found) else found.select(dim, int(each))
        return found
    raise NoArray(
        "an index of a sparse tensor must consist of integers, `:` and `...`: use select, index_select or to_dense()"
    )


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
        return SparseCOO.of(x._where, x._held.index_select(at - count + 1, index), size)
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
    return SparseCOO.of(where, x._held.index_select(0, wrap(entries)), size)


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
        return _joined_values(parts, at)
    wheres, begin = [], 0
    for each in parts:
        where = each._where.copy()
        where[at] += begin
        begin += each._size[at]
        wheres.append(where)
    size = (*first._size[:at], begin, *first._size[at + 1 :])
    values = cat_dense([each._held for each in parts])
    return SparseCOO.of(np.concatenate(wheres, axis=1), values, size)


def _joined_values(parts: list[SparseCOO], at: int) -> SparseCOO:
    """Return tensors joined along a dense dimension: each entry is padded with zeros on both sides."""
    along, first = at - parts[0].sparse_dim() + 1, parts[0]
    length, begin, values = sum(x._size[at] for x in parts), 0, []
    for each in parts:
        around = [begin, length - begin - each._size[at]]
        shapes = [(*each._held.shape[:along], n, *each._held.shape[along + 1 :]) for n in around]
        before, after = (each._held.new_zeros(shape) for shape in shapes)
        values.append(cat_dense([before, each._held, after], along))
        begin += each._size[at]
    where = np.concatenate([x._where for x in parts], axis=1)
    return SparseCOO.of(where, cat_dense(values), (*first._size[:at], length, *first._size[at + 1 :]))


@rule("stack")
def stack(tensors: Any, dim: int = 0) -> SparseCOO:
    """Return sparse tensors stacked along a new dimension."""
    return cat([unsqueeze(x, dim) for x in tensors], dim)
