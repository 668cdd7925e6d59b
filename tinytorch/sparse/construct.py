"""The constructors of sparse tensors, and the conversions between layouts."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.device import as_device
from tinytorch.core.layout import NoArray, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import tensor_name
from tinytorch.kernels.meta import is_meta
from tinytorch.kernels.sparse import compressed_lines, entries, linear, places
from tinytorch.ops.arguments import op_of
from tinytorch.ops.create import as_tensor
from tinytorch.ops.join import cat as cat_dense
from tinytorch.ops.register import Builtin
from tinytorch.sparse.elementwise import mul
from tinytorch.sparse.invariants import check_sparse_tensor_invariants
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.tensors import BACKENDS, BY_ROWS, OF_BLOCKS, SparseCompressed, SparseCOO, compressed_of, dense_of

__all__ = [
    "compressed_from_dense", "resize_as_sparse_", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "sparse_zeros",
    "sparsified", "spdiags",
]  # fmt: skip


#: The values of a tensor, as those of a tensor in the format COO or a compressed one.
_of_coo = op_of(entries, view=True, name="SparseCooTensorWithDimsAndTensors", x=lambda g: g)
_of_compressed = op_of(entries, view=True, name="SparseCompressedTensor", x=lambda g: g)


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
    made.requires_grad = requires_grad
    return made


def _integers(indices: Any, name: str) -> Any:
    """Return indices as an array of integers."""
    array = np.asarray(indices._array if isinstance(indices, Tensor) else as_tensor(indices)._array)
    if array.dtype.kind == "f" and (not array.size or name == "indices"):
        array = array.astype(np.int64)  # (PyTorch's, for the format COO)
    if array.dtype.kind not in "iu":
        kind = tensor_name(array)
        raise RuntimeError(f"{name} dtype must be Int or Long, but got {kind}")
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


def _compressed(
    kind: Any,
    start: Any,
    plain: Any,
    values: Any,
    size: Any,
    dtype: Any,
    device: Any,
    requires_grad: bool,
    check_invariants: bool | None,
) -> SparseCompressed:
    """Return a tensor in a compressed format, after PyTorch's checks of its parts."""
    by_rows, of_blocks = kind in BY_ROWS, kind in OF_BLOCKS
    names = ("crow_indices", "col_indices") if by_rows else ("ccol_indices", "row_indices")
    starts, plains = (_integers(each, name) for each, name in zip((start, plain), names, strict=True))
    held = _values_of(values, dtype, device, requires_grad, _of_compressed)
    for name, each in zip(names, (starts, plains), strict=True):
        if not each.ndim:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got 0")
    if starts.ndim != plains.ndim:
        raise RuntimeError(
            f"number of dimensions of {names[0]} and {names[1]} must be the same but got {starts.ndim} and "
            f"{plains.ndim}, respectively"
        )
    batch, inner, shape = starts.ndim - 1, 2 * of_blocks, tuple(held.shape)
    if len(shape) <= batch + inner:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {inner}) but got "
            f"{len(shape)}"
        )
    height, width = shape[batch + 1 : batch + 3] if of_blocks else (1, 1)
    dense = shape[batch + 1 + inner :]
    if size is None:
        lines, length = starts.shape[-1] - 1, int(plains.max()) + 1 if plains.size else 0
        rows, columns = (lines, length) if by_rows else (length, lines)
        size = (*starts.shape[:-1], rows * height, columns * width, *dense)
    size = Size(int(n) for n in size)
    if len(size) != batch + 2 + len(dense):
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + "
            f"{len(dense)}) but got {len(size)}"
        )
    for k, block in enumerate((height, width)):
        if block <= 0 or size[batch + k] % block:
            raise RuntimeError(
                f"tensor shape[{batch + k}] (={size[batch + k]}) must be divisible with blocksize[{k}] (={block}) as "
                "defined by values shape"
            )
    if not starts.shape[:-1] == plains.shape[:-1] == shape[:batch] == tuple(size[:batch]):
        raise RuntimeError(
            f"all batch dimensions of {names[0]} (={list(starts.shape[:-1])}), {names[1]} "
            f"(={list(plains.shape[:-1])}), and values (={list(shape[:batch])}) must be equal to tensor batch "
            f"dimensions (={list(size[:batch])})"
        )
    counts = size[batch] // height, size[batch + 1] // width
    lines, length = counts if by_rows else counts[::-1]
    what, across = ("row", "col") if by_rows else ("column", "row")
    nnz = shape[batch]
    if starts.shape[-1] != lines + 1:
        raise RuntimeError(
            f"{names[0]}.shape[-1] must be equal to the number of {what}{' block' * of_blocks}s + 1 (={lines + 1}), "
            f"but got {starts.shape[-1]}"
        )
    if plains.shape[-1] != nnz:
        raise RuntimeError(
            f"{names[1]}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got "
            f"{plains.shape[-1]}"
        )
    if dense != tuple(size[batch + 2 :]):
        raise RuntimeError(
            f"values.shape[{batch + 1 + inner}:] must be equal to dense shape (={list(size[batch + 2 :])}), but got "
            f"{list(dense)}"
        )
    if starts.dtype != plains.dtype:
        kinds = [tensor_name(each) for each in (starts, plains)]
        raise RuntimeError(
            f"{names[0]} and {names[1]} must have the same dtype, bot got {kinds[0]} and {kinds[1]}, respectively"
        )
    if (starts[..., 0] != 0).any():
        raise RuntimeError(f"`{names[0]}[..., 0] == 0` is not satisfied.")
    if (starts[..., -1] != nnz).any():
        raise RuntimeError(f"`{names[0]}[..., -1] == nnz` is not satisfied.")
    lengths = np.diff(starts, axis=-1)
    if (lengths < 0).any() or (check_invariants and (lengths > length).any()):
        raise RuntimeError(f"`0 <= {names[0]}[..., 1:] - {names[0]}[..., :-1] <= n{across}s` is not satisfied.")
    if plains.size and not 0 <= plains.min() <= plains.max() < length:
        raise RuntimeError(f"`0 <= {names[1]} < n{across}s` is not satisfied.")
    made = SparseCompressed.of(kind, starts, plains, held, size)
    if check_invariants or (check_invariants is None and check_sparse_tensor_invariants.is_enabled()):
        steps = np.diff(plains, axis=-1)
        same = np.diff(compressed_lines(starts, plains), axis=-1) == 0
        if (steps[same] <= 0).any():
            raise RuntimeError(
                f"`{names[1]}[..., {names[0]}[..., i - 1]:{names[0]}[..., i]] for all i = 1, ..., n{what[:3]}s are "
                "sorted and distinct along the last dimension values` is not satisfied."
            )
    return made


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
    """Return a sparse matrix in the format CSR, or a batch of them.

    Indices are always checked, except that the columns of a row need not be sorted without `check_invariants`.

    Args:
        crow_indices: where each row begins among the entries, and the end: shape (batch ..., rows + 1).
        col_indices: the column of each entry: shape (batch ..., entries).
        values: the values of the entries, shape (batch ..., entries, length of each dense dimension ...); if they
            require grad, so does the result.
        size: the shape; by default the smallest one that has all entries.
        dtype, device, requires_grad: of the result.
        layout, pin_memory: have no effect.
        check_invariants: also check that the columns of a row are sorted and distinct.

    Raises:
        RuntimeError: the indices describe no matrix of this size.

    Example:
        >>> x = torch.sparse_csr_tensor([0, 1, 2], [2, 0], [3.0, 4.0], (2, 3))
        >>> x @ torch.tensor([1.0, 2.0, 3.0])
        tensor([9., 4.])
    """
    return _compressed(
        sparse_csr, crow_indices, col_indices, values, size, dtype, device, requires_grad, check_invariants
    )


@Builtin
def sparse_csc_tensor(
    ccol_indices: Any,
    row_indices: Any,
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
    """Return a sparse matrix in the format CSC, or a batch of them; see `sparse_csr_tensor`.

    Args:
        ccol_indices: where each column begins among the entries, and the end: shape (batch ..., columns + 1).
        row_indices: the row of each entry: shape (batch ..., entries).
        values, size, dtype, layout, device, pin_memory, requires_grad, check_invariants: as for `sparse_csr_tensor`.

    Example:
        >>> torch.sparse_csc_tensor([0, 1, 2], [1, 0], [3.0, 4.0], (2, 2)).to_dense()
        tensor([[0., 4.],
                [3., 0.]])
    """
    return _compressed(
        sparse_csc, ccol_indices, row_indices, values, size, dtype, device, requires_grad, check_invariants
    )


@Builtin
def sparse_bsr_tensor(
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
    """Return a sparse matrix of blocks in the format BSR, or a batch of them; see `sparse_csr_tensor`.

    Args:
        crow_indices: where each row of blocks begins among the blocks, and the end: shape (batch ..., rows + 1).
        col_indices: the column of each block: shape (batch ..., blocks).
        values: the blocks, shape (batch ..., blocks, height, width, length of each dense dimension ...).
        size, dtype, layout, device, pin_memory, requires_grad, check_invariants: as for `sparse_csr_tensor`.

    Example:
        >>> torch.sparse_bsr_tensor([0, 1, 1], [1], [[[1.0, 2.0]]], (2, 4)).to_dense()
        tensor([[0., 0., 1., 2.],
                [0., 0., 0., 0.]])
    """
    return _compressed(
        sparse_bsr, crow_indices, col_indices, values, size, dtype, device, requires_grad, check_invariants
    )


@Builtin
def sparse_bsc_tensor(
    ccol_indices: Any,
    row_indices: Any,
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
    """Return a sparse matrix of blocks in the format BSC, or a batch of them; see `sparse_csr_tensor`.

    Args:
        ccol_indices: where each column of blocks begins among the blocks, and the end: shape (batch ..., columns + 1).
        row_indices: the row of each block: shape (batch ..., blocks).
        values: the blocks, shape (batch ..., blocks, height, width, length of each dense dimension ...).
        size, dtype, layout, device, pin_memory, requires_grad, check_invariants: as for `sparse_csr_tensor`.

    Example:
        >>> torch.sparse_bsc_tensor([0, 1, 1], [1], [[[1.0, 2.0]]], (2, 4)).to_dense()
        tensor([[0., 0., 0., 0.],
                [1., 2., 0., 0.]])
    """
    return _compressed(
        sparse_bsc, ccol_indices, row_indices, values, size, dtype, device, requires_grad, check_invariants
    )


_CONSTRUCTORS = {
    sparse_csr: sparse_csr_tensor, sparse_csc: sparse_csc_tensor, sparse_bsr: sparse_bsr_tensor,
    sparse_bsc: sparse_bsc_tensor,
}  # fmt: skip


@Builtin
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, layout: Any = None, **options: Any
) -> Any:
    """Return a sparse matrix in a compressed format, or a batch of them.

    Args:
        compressed_indices, plain_indices, values, size: as for the constructor of the layout.
        layout: `torch.sparse_csr`, `sparse_csc`, `sparse_bsr` or `sparse_bsc`.
        options: `dtype`, `device`, `requires_grad`, `check_invariants`.

    Raises:
        RuntimeError: another layout, or none.

    Example:
        >>> torch.sparse_compressed_tensor([0, 1], [0], [2.0], layout=torch.sparse_csr).to_dense()
        tensor([[2.]])
    """
    if layout is None:
        raise RuntimeError("sparse_compressed_tensor expected sparse compressed tensor layout but got none")
    if layout not in _CONSTRUCTORS:
        raise RuntimeError(
            "expected compressed_indices and plain_indices of a compressed sparse layout: sparse_compressed_tensor "
            f"expected sparse compressed tensor layout but got {layout}"
        )
    return _CONSTRUCTORS[layout](compressed_indices, plain_indices, values, size, **options)


# Conversions ----------------------------------------------------------------------------------------


def _stored(x: Tensor, filled: Any) -> SparseCOO:
    """Return the elements of a dense tensor at chosen places of its first dimensions, in the format COO."""
    where = np.ascontiguousarray(np.stack(np.nonzero(filled)).astype(np.int64, copy=False))
    return SparseCOO.of(where, x[tuple(wrap(row) for row in where)], x.shape, True)


def _is_filled(x: Tensor, count: int) -> Any:
    """Return where a dense tensor is not 0, of its first dimensions: an array of booleans."""
    filled = x._array != 0
    return filled.any(axis=tuple(range(count, filled.ndim))) if count < filled.ndim else filled


def sparsified(
    x: Tensor, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Any:
    """Return a dense tensor as a sparse one: its entries are the elements that are not 0.

    Args:
        x: the dense tensor.
        sparse_dim: the number of sparse dimensions, the first ones; by default all.
        layout: the sparse layout; by default `torch.sparse_coo`.
        blocksize: the height and width of a block, for the layouts `sparse_bsr` and `sparse_bsc`.
        dense_dim: the number of dense dimensions, the last ones, for the layouts but `sparse_coo`.
    """
    if layout is strided:
        return x
    _check_conversion(x, sparse_dim, layout, blocksize, dense_dim)
    if layout not in (None, sparse_coo):
        return compressed_from_dense(x, layout, blocksize, dense_dim)
    ndim = x._array.ndim
    count = ndim if sparse_dim is None else sparse_dim
    if not 0 <= count <= ndim:
        raise RuntimeError(
            f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {sparse_dim} is given"
        )
    if ndim and not count:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    filled = _is_filled(x, count)
    if not ndim:
        return SparseCOO.of(np.zeros((0, int(filled)), np.int64), x.reshape(1)[: int(filled)], x.shape, True)
    return _stored(x, filled)


def _check_conversion(x: Any, sparse_dim: Any, layout: Any, blocksize: Any, dense_dim: Any) -> None:
    """Raise PyTorch's errors for options of `to_sparse` that do not fit together."""
    source = "Sparse" if is_sparse(x) and x.layout is sparse_coo else "Strided" if not is_sparse(x) else x._backend()
    if sparse_dim is not None and layout is not None:
        raise TypeError("to_sparse() received an invalid combination of arguments: sparse_dim and layout")
    target = BACKENDS.get(layout)
    if layout is not None and target is None:
        raise RuntimeError(f"to_sparse: conversion from {source} to {layout} is not supported")
    if blocksize is not None and layout not in OF_BLOCKS:
        if layout is None:
            raise RuntimeError("to_sparse: conversion with blocksize but without a layout is not supported")
        raise RuntimeError(
            f"to_sparse: conversion from {source} to {target} with blocksize argument given is not supported"
        )
    if blocksize is None and layout in OF_BLOCKS and layout is not getattr(x, "layout", None):
        raise RuntimeError(
            f"{'to_sparse' if is_sparse(x) else 'dense_to_sparse'}: conversion from {source} to {target} without "
            "blocksize argument given is not supported"
        )
    if dense_dim is not None and layout in (None, sparse_coo):
        raise RuntimeError(f"to_sparse: conversion from {source} to Sparse with dense_dim argument is not supported")


def compressed_from_dense(x: Tensor, layout: Any, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """Return a dense matrix, or a batch of them, in a compressed format."""
    name = str(layout).removeprefix("torch.")
    dense = 0 if dense_dim is None else dense_dim
    batch = x._array.ndim - 2 - dense
    if batch < 0 or dense < 0:
        raise RuntimeError(
            f"to_{name}: the total number of dense dimensions {dense} and of the two sparse ones exceeds {x.ndim}: "
            f"dense_dim argument must be in [0,{x.ndim - 2}] range, but {dense} is given"
        )
    count = batch + 2
    blocks = _blocksize(f"dense_to_{name}", blocksize, x.shape[batch:count]) if layout in OF_BLOCKS else None
    filled = _is_filled(x, count)
    if blocks is not None:
        height, width = blocks
        *outer, rows, columns = filled.shape
        grid = filled.reshape(*outer, rows // height, height, columns // width, width).any(axis=(-3, -1))
        filled = grid.repeat(height, axis=-2).repeat(width, axis=-1)
    return compressed_of(_stored(x, filled), layout, blocks, batch)


def _blocksize(name: str, blocksize: Any, size: Any) -> tuple[int, int]:
    """Return the argument `blocksize`, checked against the size of the matrix."""
    blocks = tuple(int(n) for n in blocksize)
    if len(blocks) != 2:
        raise RuntimeError(f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocks)}")
    if min(blocks) <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got {list(blocks)}")
    if size[0] % blocks[0] or size[1] % blocks[1]:
        raise RuntimeError(
            f"{name}: Tensor size({list(size)}) needs to be divisible by blocksize {list(blocks)}: tensor sparse "
            f"size ({size[0]},{size[1]}) must be divisible by given blocksize ({blocks[0]},{blocks[1]})"
        )
    return blocks[0], blocks[1]


@rule("to_sparse")
def to_sparse(
    self: Any, sparse_dim: int | None = None, *, layout: Any = None, blocksize: Any = None, dense_dim: Any = None
) -> Any:
    """Return the tensor in another sparse layout."""
    _check_conversion(self, sparse_dim, layout, blocksize, dense_dim)
    if layout in (None, sparse_coo):
        if sparse_dim not in (None, self.sparse_dim()):
            source, name = self._backend(), "to_sparse" if self.layout is sparse_coo else "sparse_compressed_to_sparse"
            raise RuntimeError(
                f"{name}: conversion from {source} to Sparse with sparse_dim argument !="
                f"{'self.sparse_dim()' if self.layout is sparse_coo else 2} is not supported"
            )
        return to_sparse_coo(self)
    return _to_compressed(self, layout, blocksize)


@rule("to_sparse_coo")
def to_sparse_coo(self: Any) -> SparseCOO:
    """Return the tensor in the format COO."""
    if isinstance(self, SparseCOO):
        return self
    where, size = self._places(), self._size
    numbers = linear(where, size[: len(where)])
    if (numbers[1:] > numbers[:-1]).all():
        made = SparseCOO.of(where, self._flat, size, True)
        if len(size) == 2:
            made._kept = self._rows()
        return made
    order = np.argsort(numbers, kind="stable")
    values = self._flat.index_select(0, wrap(order))
    return SparseCOO.of(where[:, order], values, size, bool(np.diff(numbers[order]).all()))


def _to_compressed(x: Any, kind: Any, blocksize: Any = None, dense_dim: Any = None) -> SparseCompressed:
    """Return a sparse tensor in a compressed format."""
    name = str(kind).removeprefix("torch.")
    if dense_dim is not None:
        what = f"conversion from {x._backend()} to {BACKENDS[kind]} with dense_dim argument given is not supported"
        raise RuntimeError(f"to_{name}: {what}")
    of_blocks = kind in OF_BLOCKS
    if x.layout is kind:
        if blocksize is not None and of_blocks and tuple(blocksize) != x._blocksize:
            raise RuntimeError(
                f"to_{name}: conversion from {x._backend()} to {x._backend()} with blocksize changed from "
                f"{list(x._blocksize)} to {list(blocksize)} is not supported"
            )
        same: SparseCompressed = x
        return same
    if x.layout is sparse_coo:
        blocks = _blocksize(f"to_{name}", blocksize, x._size[:2]) if of_blocks else None
        return compressed_of(x, kind, blocks)
    source, target = x._backend(), BACKENDS[kind]
    batch = x._batch_dim
    if not of_blocks:
        if x._of_blocks:
            raise RuntimeError(f"sparse_compressed_to_{name}: expected SparseCsr or SparseCsc layout but got {source}")
        return compressed_of(to_sparse_coo(x), kind, None, batch, x._start.dtype)
    if x._of_blocks:
        if blocksize is not None and tuple(blocksize) != x._blocksize:
            raise RuntimeError(
                f"sparse_compressed_to_{name}: conversion from {source} to {target} with blocksize changed from "
                f"{list(x._blocksize)} to {list(blocksize)} is not supported"
            )
        return compressed_of(to_sparse_coo(x), kind, x._blocksize, batch, x._start.dtype)
    if batch:
        raise RuntimeError(
            f"sparse_compressed_to_{name}: conversion from {source} to {target} for batched inputs is not supported"
        )
    return compressed_of(
        to_sparse_coo(x), kind, _blocksize(f"sparse_compressed_to_{name}", blocksize, x._size[:2]), 0, x._start.dtype
    )


def _conversion(kind: Any) -> Any:
    if kind in OF_BLOCKS:
        return lambda self, blocksize, dense_dim=None: _to_compressed(self, kind, blocksize, dense_dim)
    return lambda self, dense_dim=None: _to_compressed(self, kind, dense_dim=dense_dim)


for _kind in (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
    rule(f"to_{str(_kind).removeprefix('torch.')}")(_conversion(_kind))


@rule("to_dense")
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor as a dense one."""
    if dtype is not None:
        kind = "sparse" if self.layout is sparse_coo else "sparse_csr"
        raise RuntimeError(f"dtype argument is not supported by {kind}_to_dense")
    return dense_of(self)


@rule("sparse_mask")
def sparse_mask(self: Any, mask: Any) -> Any:
    """Return the elements of a tensor at the entries of a sparse one, as a sparse tensor."""
    if not is_sparse(mask):
        raise RuntimeError("sparse_mask(): the mask must be a sparse tensor")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask.shape)}"
        )
    if self.layout is mask.layout is not sparse_coo and not _has_same_places(self, mask):
        return mul(self, full_like(mask, dtype=self.dtype))  # (only places that both have)
    return at_places(self, mask)


@rule("_at_places")
def at_places(self: Any, mask: Any) -> Any:
    """Return the elements of a tensor, dense or sparse, at the places of a sparse one of its size."""
    if not is_sparse(self):
        at = tuple(wrap(row) for row in mask._places())
        return mask._with_flat(self[at] if at else self.expand(mask._flat.shape))
    if self.layout is mask.layout and _has_same_places(self, mask):
        return mask._with(self._held)
    x = to_sparse_coo(self).coalesce()
    where = mask._places()
    if x.sparse_dim() != len(where):
        raise RuntimeError(
            f"sparse_mask(): self has {x.sparse_dim()} sparse dimensions but mask has {len(where)} sparse dimensions"
        )
    have, wanted = x._numbers(), linear(where, mask._size[: len(where)])
    found = np.searchsorted(have, wanted)
    held = np.append(have, -1)[np.minimum(found, len(have))] == wanted
    padded = cat_dense([x._held, x._held.new_zeros((1, *x._held.shape[1:]))])
    return mask._with_flat(padded.index_select(0, wrap(np.where(held, found, len(have)))))


def _has_same_places(x: Any, y: Any) -> bool:
    """Return whether two tensors of one layout have their entries at the same places, in the same order."""
    if x._held.shape != y._held.shape:
        return False
    if x.layout is sparse_coo:
        return np.array_equal(x._where, y._where)
    return np.array_equal(x._start, y._start) and np.array_equal(x._plain, y._plain)


def sparse_zeros(size: Any, dtype: Any, layout: Any, requires_grad: bool = False, name: str = "empty") -> Any:
    """Return a sparse tensor without entries, in a layout."""
    if layout is sparse_coo:
        return _empty_coo(size, dtype, requires_grad)
    if layout in OF_BLOCKS:
        raise RuntimeError(
            f"{name}_sparse_compressed expected sparse compressed (non-block) tensor layout but got {BACKENDS[layout]}"
        )
    if len(size) < 2:
        raise RuntimeError(
            f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    made = _without_entries(layout, Size(size), len(size) - 2, None, (), kind)
    made.requires_grad = requires_grad
    return made


def _without_entries(
    layout: Any, size: Any, batch: int, blocks: Any, dense: tuple[int, ...], dtype: Any, index: Any = np.int64
) -> SparseCompressed:
    """Return a tensor in a compressed format without entries."""
    height, width = blocks or (1, 1)
    lines = size[batch] // height if layout in BY_ROWS else size[batch + 1] // width
    outer = tuple(size[:batch])
    values = np.zeros((*outer, 0, *(blocks or ()), *dense), dtype.numpy)
    start, plain = np.zeros((*outer, lines + 1), index), np.zeros((*outer, 0), index)
    return SparseCompressed.of(layout, start, plain, wrap(values), size)


@rule("zeros_like", "empty_like")
def zeros_like(self: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return a tensor without entries, like another one."""
    kind = self.dtype if dtype is None else dtypes.as_dtype(dtype)
    if layout is strided:
        made: Any = wrap(np.zeros(self._size, kind.numpy))
    elif layout not in (None, self.layout):
        made = sparse_zeros(self._size, kind, layout)
    elif self.layout is sparse_coo:
        made = _empty_coo(self._size, kind, False, self.sparse_dim())
    else:
        dense = tuple(self._size[len(self._size) - self.dense_dim() :])
        made = _without_entries(
            self.layout, self._size, self._batch_dim, self._blocksize, dense, kind, self._start.dtype
        )
    made.requires_grad = requires_grad
    return made


@rule("ones_like", "full_like")
def full_like(self: Any, fill_value: Any = 1, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return a tensor in a compressed format whose entries have one value, at the places of another's."""
    if self.layout is sparse_coo:
        raise NoArray("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
    kind = self.dtype if dtype is None else dtypes.as_dtype(dtype)
    values = np.full_like(self._held._array, fill_value, dtype=kind.numpy)
    made = self._with(wrap(values))
    made.requires_grad = requires_grad
    return made


@rule("fill_")
def fill_(self: Any, value: Any) -> Any:
    """Give all entries of a tensor in a compressed format one value."""
    if self.layout is sparse_coo:
        raise NoArray("Could not run 'aten::fill_.Scalar' with arguments from the 'SparseCPU' backend.")
    self._held.fill_(value)
    return self


@rule("new_zeros", "new_empty")
def new_zeros(self: Any, *size: Any, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return a tensor of the layout without entries."""
    shape = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    return sparse_zeros(shape, self.dtype if dtype is None else dtype, self.layout, requires_grad)


@rule("new")
def new(self: Any, *args: Any, **options: Any) -> Any:
    """Return a tensor of the dtype in the format COO: of indices, values and a size, or without entries."""
    if self.layout is not sparse_coo:
        raise RuntimeError("Cannot map DispatchKey SparseCsrCPU to a unique layout.")
    if args and isinstance(args[0], Tensor):
        return sparse_coo_tensor(*args[:3])
    size = args[0] if args and isinstance(args[0], (tuple, list)) else args
    return _empty_coo(size or (0,), self.dtype, sparse_dim=len(size) or 1)


@rule("new_tensor")
def new_tensor(self: Any, data: Any, *, dtype: Any = None, requires_grad: bool = False, **options: Any) -> Any:
    """Return a dense tensor of the dtype."""
    if self.layout is not sparse_coo:
        raise RuntimeError("Cannot map DispatchKey SparseCsrCPU to a unique layout.")
    return self._held.detach().new_tensor(data, dtype=dtype, requires_grad=requires_grad)


# Indices --------------------------------------------------------------------------------------------


@Builtin
def _convert_indices_from_coo_to_csr(input: Any, size: int, *, out_int32: bool = False) -> Tensor:
    """Return where each of `size` rows begins among sorted row indices, with the end (graph packages call it)."""
    start = np.searchsorted(input._array, np.arange(size + 1)).astype(np.int32 if out_int32 else np.int64)
    made: Tensor = wrap(start)
    return made


@Builtin
def _convert_indices_from_csr_to_coo(
    crow_indices: Any, col_indices: Any, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """Return the rows and columns of a matrix in the format CSR, shape (2, entries); exchanged by `transpose`."""
    where = places(crow_indices._array, col_indices._array, not transpose)
    made: Tensor = wrap(where.astype(np.int32 if out_int32 else np.int64, copy=False))
    return made


# Sizes ----------------------------------------------------------------------------------------------


def _resized(values: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return the elements in their order in a tensor of another shape, padded with zeros."""
    held = values.detach()
    if held.shape == shape:
        return held
    made: Tensor = wrap(np.zeros_like(held._array, shape=shape))
    count = min(held.numel(), made.numel())
    made._array.reshape(-1)[:count] = held._array.reshape(-1)[:count]
    return made


def _check_size(size: Any, sparse_dim: int, dense_dim: int) -> None:
    if len(size) != sparse_dim + dense_dim:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: number of dimensions must be sparse_dim "
            f"({sparse_dim}) + dense_dim ({dense_dim}), but got {len(size)}"
        )


@rule("sparse_resize_")
def sparse_resize_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a tensor in the format COO another size in place; one that has entries cannot shrink."""
    if self.layout is not sparse_coo:
        raise NoArray("Could not run 'aten::sparse_resize_' with arguments from the 'SparseCsrCPU' backend.")
    size = Size(int(n) for n in size)
    _check_size(size, sparse_dim, dense_dim)
    if self._nnz():
        for kind, new, old in (("sparse", sparse_dim, self.sparse_dim()), ("dense", dense_dim, self.dense_dim())):
            if new != old:
                raise RuntimeError(
                    f"changing the number of {kind} dimensions (from {old} to {new}) on a non-empty sparse tensor is "
                    "not supported."
                )
        old_size, count = self._size, self.sparse_dim()
        for kind, part in (("sparse", slice(None, count)), ("dense", slice(count, None))):
            if any(new < old for new, old in zip(size[part], old_size[part], strict=True)):
                raise RuntimeError(
                    f"shrinking the size of {kind} dimensions (from {list(old_size[part])} to {list(size[part])}) on a "
                    "non-empty sparse tensor is not supported."
                )
        where = self._where
    else:
        where = np.zeros((sparse_dim, 0), np.int64)
    values = _resized(self._held, (where.shape[1], *size[sparse_dim:]))
    return self._become(SparseCOO.of(where, values, size, self._coalesced))


@rule("sparse_resize_and_clear_")
def sparse_resize_and_clear_(self: Any, size: Any, sparse_dim: int, dense_dim: int) -> Any:
    """Give a tensor in the format COO another size in place, and remove its entries."""
    if self.layout is not sparse_coo:
        raise NoArray("Could not run 'aten::sparse_resize_and_clear_' with arguments from the 'SparseCsrCPU' backend.")
    _check_size(size, sparse_dim, dense_dim)
    return self._become(_empty_coo(size, self.dtype, sparse_dim=sparse_dim))


@Builtin
@rule("resize_as_sparse_", "resize_as_")
def resize_as_sparse_(self: Any, the_template: Any, memory_format: Any = None) -> Any:
    """Give a sparse tensor the size of another one in place, and in a compressed format also its places.

    Example:
        >>> x = torch.sparse_coo_tensor((2, 2))
        >>> torch.resize_as_sparse_(x, torch.eye(3).to_sparse()).shape
        torch.Size([3, 3])
    """
    other = the_template
    if not (is_sparse(self) and is_sparse(other)) or self.layout is not other.layout:
        raise RuntimeError(
            f"resize_as_sparse_: layout for self, {self.layout}, must be equal to that of the source, {other.layout}"
        )
    if self.layout is sparse_coo:
        if self._size == other._size and self.sparse_dim() == other.sparse_dim():
            return self
        return sparse_resize_(self, other._size, other.sparse_dim(), other.dense_dim())
    if self._of_blocks and self._blocksize != other._blocksize:
        raise RuntimeError(
            "resize_as_sparse_compressed_tensor_: self and src must have the same block size: "
            f"{list(self._blocksize)} != {list(other._blocksize)}"
        )
    values = _resized(self._held, tuple(other._held.shape))
    return self._become(SparseCompressed.of(self.layout, other._start.copy(), other._plain.copy(), values, other._size))


def spdiags(diagonals: Any, offsets: Any, shape: Any, layout: Any = None) -> Any:
    """Return a sparse matrix with given diagonals: `diagonals[k, j]` is its element `(j - offsets[k], j)`.

    Args:
        diagonals: shape (diagonals, length), or (length,) for one diagonal.
        offsets: for each diagonal how far it is above the main one: distinct integers.
        shape: the number of rows and of columns.
        layout: `torch.sparse_coo` (the default), `sparse_csr` or `sparse_csc`.

    Example:
        >>> torch.sparse.spdiags(torch.ones(2, 3), torch.tensor([0, 1]), (3, 3)).to_dense()
        tensor([[1., 1., 0.],
                [0., 1., 1.],
                [0., 0., 1.]])
    """
    rows = diagonals if diagonals.ndim == 2 else diagonals.unsqueeze(0)
    where = offsets._array.reshape(-1) if offsets.ndim < 2 else None
    if diagonals.ndim > 2 or diagonals.ndim == 0:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if where is None:
        raise RuntimeError("Offsets must be scalar or vector")
    if where.dtype.kind not in "iu":
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {tensor_name(where)}")
    if len(where) != len(rows):
        raise RuntimeError(f"Number of diagonals ({len(rows)}) does not match the number of offsets ({len(where)})")
    if len(set(where.tolist())) != len(where):
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, and SparseCsr) are supported, got {layout}")
    column = np.tile(np.arange(min(rows.shape[1], shape[1])), (len(where), 1))
    row = column - where[:, None]
    kept = (row >= 0) & (row < shape[0])
    k, j = np.nonzero(kept)
    made = SparseCOO.of(np.stack([row[k, j], j]), rows[wrap(k), wrap(j)], shape)
    return made if layout in (None, sparse_coo) else compressed_of(made, layout)


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
