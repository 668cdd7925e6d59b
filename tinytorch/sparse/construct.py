"""The constructors of sparse tensors, and the conversions between layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.device import as_device
from tinytorch.core.layout import sparse_coo, sparse_csr, strided
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.sparse import entries, is_sorted, linear
from tinytorch.ops.arguments import op_of
from tinytorch.ops.create import as_tensor
from tinytorch.ops.register import Builtin
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.tensors import SparseCOO, SparseCSR, csr_of, dense_of

__all__ = ["sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "sparsified"]


#: The values of a tensor, as those of a tensor in the format COO or CSR.
_of_coo = op_of(entries, view=True, name="SparseCooTensorWithDimsAndTensors", x=lambda g: g)
_of_csr = op_of(entries, view=True, name="SparseCompressedTensor", x=lambda g: g)


def _values_of(values: Any, dtype: Any, device: Any, requires_grad: bool, entered: Any) -> Tensor:
    """Return the values of a new sparse tensor: in the graph if they require grad, else of a leaf."""
    given = values if isinstance(values, Tensor) else as_tensor(values, dtype=dtype)
    if dtype is not None:
        given = given.to(dtype)
    if device is not None:
        given = given.to(as_device(device))
    if is_meta(given._array):
        raise NotImplementedError("sparse tensors on the meta device are not supported")
    if given.requires_grad and not requires_grad:
        return entered(given)
    made = given.detach()
    return made.requires_grad_() if requires_grad else made


def _integers(indices: Any, name: str) -> Any:
    """Return indices as an array of integers."""
    array = np.asarray(indices._array if isinstance(indices, Tensor) else as_tensor(indices)._array)
    if array.dtype.kind == "f" and not array.size:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {dtypes.from_numpy_dtype(array.dtype)}")
    return array


@Builtin
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Any:
    """Return a sparse tensor in the format COO, of entries given by their indices and values.

    Several entries at one place mean the sum of their values. Indices are always checked: an index that is out of range
    is an error also without `check_invariants`.

    Args:
        indices: shape (sparse dimensions, entries).
        values: shape (entries, length of each dense dimension ...); if they require grad, so does the result.
        size: the shape; by default the smallest one that has all indices. `sparse_coo_tensor(size)` has no entries.
        dtype, device, requires_grad: of the result.
        layout, pin_memory: have no effect.
        check_invariants: also check `is_coalesced`.
        is_coalesced: whether the places are sorted and distinct.

    Raises:
        RuntimeError: an index is out of range; the numbers of dimensions or of entries do not match.
        TypeError: the indices are no integers.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        >>> x.to_dense()
        tensor([[0., 0., 3.],
                [4., 0., 0.]])
    """
    if values is None:
        shape = indices if size is None else size
        return _empty_coo(shape, dtype, requires_grad)
    where = _integers(indices, "indices")
    held = _values_of(values, dtype, device, requires_grad, _of_coo)
    if where.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(where.shape)}")
    where = where.astype(np.int64, copy=False)
    if not held._array.ndim:
        held = held.expand(where.shape[1]) if held.requires_grad else held.repeat(where.shape[1])
    if where.shape[1] != held.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {where.shape[1]}, nnz from values: "
            f"{held.shape[0]}"
        )
    lowest = where.min(axis=1) if where.shape[1] else np.zeros(len(where), np.int64)
    highest = where.max(axis=1) if where.shape[1] else np.full(len(where), -1)
    for dim in np.flatnonzero(lowest < 0)[:1]:
        raise RuntimeError(f"found negative index {lowest[dim]} for dim {dim}")
    if size is None:
        size = (*[int(n) + 1 for n in highest], *held.shape[1:])
    size = Size(int(n) for n in size)
    dense = held._array.ndim - 1
    if len(size) != len(where) + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
            f"{len(where)}, dense_dim = {dense}"
        )
    if tuple(size[len(where) :]) != tuple(held.shape[1:]):
        raise RuntimeError(
            f"values has incorrect size, expected {[len(held), *size[len(where) :]]}, got {list(held.shape)}"
        )
    for dim, (length, largest) in enumerate(zip(size, highest, strict=False)):
        if largest >= length:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {length} but found index {largest}"
            )
    made = SparseCOO.of(where, held, size, bool(is_coalesced))
    if is_coalesced and check_invariants:
        numbers = linear(where, size[: len(where)])
        if not (numbers[1:] > numbers[:-1]).all():
            raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    return made


def _empty_coo(size: Any, dtype: Any = None, requires_grad: bool = False, sparse_dim: int | None = None) -> SparseCOO:
    """Return a tensor in the format COO without entries."""
    size = Size(int(n) for n in size)
    count = len(size) if sparse_dim is None else sparse_dim
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    values: Tensor = wrap(np.zeros((0, *size[count:]), kind.numpy))
    values.requires_grad = requires_grad
    return SparseCOO.of(np.zeros((count, 0), np.int64), values, size, True)


@Builtin
def sparse_csr_tensor(
    crow_indices: Any,
    col_indices: Any,
    values: Any,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    """Return a sparse matrix in the format CSR. Batches of matrices, and dense dimensions, are not supported.

    Indices are always checked, except that the columns of a row need not be sorted without `check_invariants`.

    Args:
        crow_indices: where each row begins among the entries, and the end: shape (rows + 1,).
        col_indices: the column of each entry.
        values: the values of the entries; if they require grad, so does the result.
        size: the shape; by default the smallest one that has all entries.
        dtype, device, requires_grad: of the result.
        layout, pin_memory: have no effect.
        check_invariants: also check that the columns of a row are sorted and distinct.

    Raises:
        RuntimeError: the indices describe no matrix of this size.
        NotImplementedError: a batch of matrices.

    Example:
        >>> x = torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3))
        >>> x @ torch.tensor([1.0, 2.0, 3.0])
        tensor([9., 4.])
    """
    crow, col = _integers(crow_indices, "crow_indices"), _integers(col_indices, "col_indices")
    held = _values_of(values, dtype, device, requires_grad, _of_csr)
    if crow.ndim > 1 or held._array.ndim > 1:
        raise NotImplementedError("sparse_csr_tensor: batches of matrices and dense dimensions are not supported")
    if crow.dtype != col.dtype:
        names = [dtypes.from_numpy_dtype(each.dtype).tensor_name for each in (crow, col)]
        raise RuntimeError(
            f"crow_indices and col_indices must have the same dtype, bot got {names[0]} and {names[1]}, respectively"
        )
    if size is None:
        size = (len(crow) - 1, int(col.max()) + 1 if col.size else 0)
    size = Size(int(n) for n in size)
    if len(size) != 2:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + 0) but got "
            f"{len(size)}"
        )
    nnz = held.numel()
    if len(crow) != size[0] + 1:
        raise RuntimeError(
            f"crow_indices.shape[-1] must be equal to the number of rows + 1 (={size[0] + 1}), but got {len(crow)}"
        )
    if len(col) != nnz:
        raise RuntimeError(
            f"col_indices.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[0], but got {len(col)}"
        )
    if crow[0] != 0:
        raise RuntimeError("`crow_indices[..., 0] == 0` is not satisfied.")
    if crow[-1] != nnz:
        raise RuntimeError("`crow_indices[..., -1] == nnz` is not satisfied.")
    if not is_sorted(crow):
        raise RuntimeError("`0 <= crow_indices[..., 1:] - crow_indices[..., :-1] <= ncols` is not satisfied.")
    if nnz and not 0 <= col.min() <= col.max() < size[1]:
        raise RuntimeError("`0 <= col_indices < ncols` is not satisfied.")
    made = SparseCSR.of(crow, col, held, size)
    if check_invariants:
        numbers = linear(made._places(), size)
        if not (numbers[1:] > numbers[:-1]).all():
            raise RuntimeError(
                "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., nrows are sorted "
                "and distinct along the last dimension values` is not satisfied."
            )
    return made


@Builtin
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, layout: Any = None, **options: Any
) -> Any:
    """Return a sparse matrix in a compressed format: `sparse_csr_tensor`, for `layout=torch.sparse_csr`.

    Raises:
        NotImplementedError: another layout.

    Example:
        >>> torch.sparse_compressed_tensor([0, 1], [0], [2.0], layout=torch.sparse_csr).to_dense()
        tensor([[2.]])
    """
    if layout is not sparse_csr:
        raise NotImplementedError(
            f"sparse_compressed_tensor(layout={layout}): tinytorch has the layout sparse_csr alone"
        )
    return sparse_csr_tensor(compressed_indices, plain_indices, values, size, **options)


# Conversions ----------------------------------------------------------------------------------------


def sparsified(x: Tensor, sparse_dim: int | None = None, *, layout: Any = None) -> Any:
    """Return a dense tensor as a sparse one: its entries are the elements that are not 0.

    Args:
        x: the dense tensor.
        sparse_dim: the number of sparse dimensions, the first ones; by default all.
        layout: `torch.sparse_coo` (the default) or `torch.sparse_csr`.
    """
    if layout is sparse_csr:
        return csr_of(sparsified(x))
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse(layout={layout}): tinytorch has the layouts sparse_coo and sparse_csr")
    ndim = x._array.ndim
    count = ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {sparse_dim} is given"
        )
    if ndim and not count:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    filled = x._array != 0
    if count < ndim:
        filled = filled.any(axis=tuple(range(count, ndim)))
    if not ndim:
        return SparseCOO.of(np.zeros((0, int(filled)), np.int64), x.reshape(1)[: int(filled)], x.shape, True)
    where = np.ascontiguousarray(np.stack(np.nonzero(filled)).astype(np.int64, copy=False))
    values = x[tuple(wrap(row) for row in where)]
    return SparseCOO.of(where, values, x.shape, True)


def sparsified_as_csr(x: Tensor, dense_dim: int | None = None) -> Any:
    """Return a dense matrix in the format CSR."""
    if x.ndim != 2 or dense_dim:
        raise NotImplementedError("to_sparse_csr: only matrices are supported, without dense dimensions")
    return csr_of(sparsified(x))


@rule("to_sparse")
def to_sparse(self: Any, sparse_dim: int | None = None, *, layout: Any = None, **options: Any) -> Any:
    """Return the tensor in another sparse layout."""
    if layout is sparse_csr:
        return to_sparse_csr(self)
    if layout not in (None, sparse_coo):
        raise NotImplementedError(f"to_sparse(layout={layout}): tinytorch has the layouts sparse_coo and sparse_csr")
    if sparse_dim not in (None, self.sparse_dim()):
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    return to_sparse_coo(self)


@rule("to_sparse_coo")
def to_sparse_coo(self: Any) -> SparseCOO:
    """Return the tensor in the format COO."""
    if isinstance(self, SparseCOO):
        return self
    where, size = self._places(), self._size
    numbers = linear(where, size)
    made = SparseCOO.of(where, self._held, size, bool((numbers[1:] > numbers[:-1]).all()))
    made._kept = self._rows()
    return made


@rule("to_sparse_csr")
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> SparseCSR:
    """Return the matrix in the format CSR."""
    return self if isinstance(self, SparseCSR) else csr_of(self)


@rule("to_dense")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor as a dense one."""
    if dtype is not None:
        kind = "sparse" if self.layout is sparse_coo else "sparse_csr"
        raise RuntimeError(f"dtype argument is not supported by {kind}_to_dense")
    return dense_of(self)


@rule("sparse_mask")
def sparse_mask(self: Any, mask: Any) -> Any:
    """Return the elements of a dense tensor at the entries of a sparse one, as a sparse tensor."""
    if is_sparse(self):
        raise NotImplementedError("sparse_mask of a sparse tensor is not supported")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    return mask._with(self[tuple(wrap(row) for row in mask._places())])


def zeros(size: Any, dtype: Any, layout: Any, requires_grad: bool = False) -> Any:
    """Return a sparse tensor without entries, in a layout."""
    if layout is sparse_coo:
        return _empty_coo(size, dtype, requires_grad)
    if layout is not sparse_csr or len(size) != 2:
        raise NotImplementedError(f"zeros of size {tuple(size)} in the layout {layout} are not supported")
    return zeros(size, dtype, sparse_coo, requires_grad).to_sparse_csr()


@rule("zeros_like", "empty_like")
def zeros_like(self: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return a tensor without entries, like another one."""
    if layout is strided:
        return wrap(np.zeros(self._size, (dtype or self.dtype).numpy))
    if self.layout is sparse_coo:
        return _empty_coo(self._size, dtype or self.dtype, requires_grad, self.sparse_dim())
    return zeros(self._size, dtype or self.dtype, self.layout, requires_grad)


# The names of old programs --------------------------------------------------------------------------


class _OldType(type):
    """The metaclass of `torch.sparse.FloatTensor` …: a call creates a tensor, `isinstance` compares dtypes."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], Tensor):
            values = args[1] if len(args) > 1 else None
            if values is None:
                raise TypeError(f"torch.sparse.{cls.__name__}: indices and values are expected")
            return sparse_coo_tensor(args[0], values, *args[2:3])
        size = args[0] if args and isinstance(args[0], (tuple, list)) else args
        return _empty_coo(size or (0,), cls.dtype, sparse_dim=len(size) or 1)

    def __instancecheck__(cls, instance: Any) -> bool:
        return is_sparse(instance) and instance.layout is sparse_coo and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.sparse.{cls.__name__}'>"


def old_type(dtype: dtypes.dtype) -> Any:
    """Return the old constructor of sparse tensors of a dtype, such as `torch.sparse.FloatTensor`."""
    name = f"{dtype.tensor_name}Tensor"
    doc = f"""Sparse tensors of {dtype}: `{name}(indices, values, size)`; also a type for `isinstance`."""
    return _OldType(name, (), {"dtype": dtype, "__doc__": doc, "__module__": "tinytorch.sparse"})
