"""Sums, norms and softmax of sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.layout import NoArray, sparse_coo, sparse_csr
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.reduce import axis_of
from tinytorch.kernels.sparse import distinct, linear
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.tensors import SparseCOO, summed

__all__ = ["log_softmax", "softmax", "sum"]


def _dimensions(dim: Any, ndim: int) -> list[int]:
    """Return dimensions as sorted numbers from 0."""
    dims = [dim] if isinstance(dim, int) else list(dim)
    numbers = [axis_of(each, ndim, "sum") for each in dims]
    if len(set(numbers)) != len(numbers):
        raise RuntimeError("dim appears multiple times in the list of dims")
    return sorted(numbers)


def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """Return the sum of a sparse tensor's elements, or of those along dimensions.

    The result is dense if no sparse dimension remains, else sparse.

    Args:
        input: a tensor in the format COO.
        dim: a dimension, or several.
        dtype: convert the elements first.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
        >>> torch.sparse.sum(x), torch.sparse.sum(x, dim=1).to_dense()
        (tensor(12.), tensor([3., 9.]))
    """
    if not is_sparse(input) or input.layout is not sparse_coo:
        name = "Strided" if not is_sparse(input) else "SparseCsr"
        raise RuntimeError(f"coalesce expected sparse coordinate tensor layout but got {name}")
    x: SparseCOO = input
    values = x._held if dtype is None else x._held.to(dtype)
    if dim is None:
        return values.sum()
    dims, count = _dimensions(dim, x.ndim), x.sparse_dim()
    of_values = [each - count + 1 for each in dims if each >= count]
    left = [each for each in range(count) if each not in dims]
    if of_values:
        values = values.sum(of_values)
    if not left:
        return values.sum(0)
    size = [x._size[each] for each in range(x.ndim) if each not in dims]
    if len(left) == count:
        return SparseCOO.of(x._where, values, size, x._coalesced).coalesce()
    return SparseCOO.of(x._where[left], values, size).coalesce()


@rule("linalg.vecdot")
def vecdot(self: Any, other: Any, *, dim: int = -1) -> Any:
    """Return the sums of products along a dimension."""
    return (self.conj() * other if self.dtype.is_complex else self * other).sum(dim)


@rule("sum")
def method_sum(
    self: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    """Return the sum of the elements, or of those along dimensions."""
    dim, keepdim = axis if dim is None else dim, keepdim or keepdims
    whole = not (self.dtype.is_floating_point or self.dtype.is_complex)
    kind = dtypes.int64 if dtype is None and whole else dtype
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return (self._held if kind is None else self._held.to(kind)).sum()
    if self.layout is not sparse_coo:
        if not keepdim:
            raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
        if self.layout is not sparse_csr or self.ndim > 2:
            raise RuntimeError(
                "Currently the only compressed sparse format supported for sum.dim_IntList is CSR, and of matrices, "
                f"but got layout {self._backend()} and {self.ndim} dimensions"
            )
        return method_sum(self.to_sparse_coo(), dim, keepdim, dtype=dtype).to_sparse_csr()
    out = sum(self, dim, kind)
    if not keepdim:
        return out
    for each in _dimensions(dim, self.ndim):
        out = out.unsqueeze(each)
    return out


@rule("norm", of=(sparse_coo,))
def norm(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the norm of all elements."""
    if dim is not None and len(_dimensions(dim, self.ndim)) < self.ndim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must either be empty or contain all "
            "dimensions of the input"
        )
    values = self._unique()._held
    if values.is_complex():
        values = values.abs()
    return values.reshape(-1).norm(2 if p in ("fro", None) else p, dtype=dtype)


rule("is_nonzero")(bool)


@rule("any", of=(sparse_coo,))
def any_of(self: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Return whether an element is not 0."""
    if args or kwargs:
        raise NoArray("any of a sparse tensor along a dimension is not supported")
    return self._unique()._held.any()


def _scaled(input: Any, dim: int, dtype: Any, logarithm: bool) -> SparseCOO:
    """Return the softmax along a dimension, or its logarithm; only the entries take part."""
    if not is_sparse(input) or input.layout is not sparse_coo:
        name = "_sparse_log_softmax" if logarithm else "_sparse_softmax"
        raise NoArray(f"Could not run 'aten::{name}' with arguments of the layout {input.layout}: it needs sparse_coo")
    x = input if dtype is None else input.to(dtype)
    if not x.dtype.is_floating_point:
        raise RuntimeError(f"softmax of a sparse tensor needs floats, got {x.dtype}")
    x = x.coalesce()
    at, count, values = axis_of(dim, x.ndim, "softmax"), x.sparse_dim(), x._held
    if at >= count:
        along = at - count + 1
        return x._with(values.log_softmax(along) if logarithm else values.softmax(along))
    if not x._nnz():
        return x
    left = [each for each in range(count) if each != at]
    numbers = linear(x._where[left], tuple(x._size[each] for each in left))
    first, rank = distinct(numbers)
    order = np.argsort(rank, kind="stable")
    begin = np.searchsorted(rank[order], np.arange(len(first)))
    largest = np.maximum.reduceat(values._array[order], begin, axis=0)[rank]
    shifted = values - wrap(largest)
    group: Tensor = wrap(rank)
    exponentials = shifted.exp()
    totals = summed(exponentials, rank, len(first))
    if logarithm:
        return x._with(shifted - totals.log().index_select(0, group))
    return x._with(exponentials / totals.index_select(0, group))


def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the softmax of a sparse tensor along a dimension: elements that are not entries count as minus infinity.

    Args:
        input: a tensor in the format COO.
        dim: the dimension.
        dtype: convert the elements first.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> torch.sparse.softmax(x, dim=1).to_dense()
        tensor([[0.5000, 0.0000, 0.5000]])
    """
    return _scaled(input, dim, dtype, logarithm=False)


def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """Return the logarithm of the softmax of a sparse tensor along a dimension.

    Args:
        input, dim, dtype: as for `softmax`.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 0], [0, 2]], [1.0, 1.0], (1, 3))
        >>> torch.sparse.log_softmax(x, dim=1).values()
        tensor([-0.6931, -0.6931])
    """
    return _scaled(input, dim, dtype, logarithm=True)
