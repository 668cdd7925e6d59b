"""Products of sparse matrices with dense and sparse ones, differentiable in both factors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.layout import NoArray, sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import sparse as kernels
from tinytorch.kernels.intp import as_intp
from tinytorch.kernels.sparse import Rows, distinct, linear, ranges
from tinytorch.ops.arguments import op_of
from tinytorch.ops.join import cat as cat_dense
from tinytorch.ops.join import stack as stack_dense
from tinytorch.ops.linalg.products import mm as dense_mm
from tinytorch.ops.register import Builtin, public
from tinytorch.ops.scatter import scatter_reduce
from tinytorch.sparse.elementwise import sum_of_sparse
from tinytorch.sparse.rules import is_sparse, rule
from tinytorch.sparse.shape import select
from tinytorch.sparse.tensors import SparseCOO, compressed_of, summed

__all__ = ["addmm", "hsmm", "hspmm", "mm", "saddmm", "sampled_addmm", "smm", "sspaddmm"]

#: The product of a sparse matrix, given by its values and `Rows`, and a dense one.
_multiply: Any = op_of(
    kernels.multiply,
    name="SparseAddmm",
    values=lambda g, dense, rows: _sampled(g, dense, rows),
    dense=lambda g, values, rows: _multiply(values, g, rows.across),
)
#: The elements of `x @ y.T` at the entries of a sparse matrix.
_sampled: Any = op_of(
    kernels.sampled,
    name="SparseSampled",
    x=lambda g, y, rows: _multiply(g, y, rows),
    y=lambda g, x, rows: _multiply(g, x, rows.across),
)


def _check_matrix(x: Any) -> None:
    if x.ndim != 2 or (is_sparse(x) and x.dense_dim()):
        ndim = x.sparse_dim() if is_sparse(x) else x.ndim
        raise RuntimeError(f"addmm: matrices expected, got {ndim}D tensor")


def _check_dtypes(x: Any, y: Any) -> None:
    if x.dtype is not y.dtype:
        raise RuntimeError(f"expected scalar type {x.dtype.tensor_name} but found {y.dtype.tensor_name}")


def _check_shapes(x: Any, y: Any) -> None:
    if x.shape[1] != y.shape[0]:
        if is_sparse(x) and x.layout is sparse_coo and not is_sparse(y):
            raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {x.shape[1]}, got {y.shape[0]}")
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and {y.shape[0]}x{y.shape[1]})"
        )


def _product(x: Any, y: Any) -> Any:
    """Return the product of two matrices, of which at least one is sparse."""
    _check_matrix(x)
    _check_matrix(y)
    _check_shapes(x, y)
    _check_dtypes(x, y)
    blocks = [each for each in (x, y) if each.layout in (sparse_bsr, sparse_bsc)]
    if blocks and (x.layout, y.layout) not in ((sparse_bsr, strided), (strided, sparse_bsc)):
        raise RuntimeError(f"addmm: computation on CPU is not implemented for a product of {blocks[0]._backend()}")
    if not is_sparse(y):
        return _multiply(x._flat, y, x._rows())
    if not is_sparse(x):
        return _multiply(y._flat, x.t(), y._rows().across).t()
    return _of_two_sparse(x, y)


def _of_two_sparse(x: Any, y: Any) -> Any:
    """Return the product of two sparse matrices, both in the format COO or in compressed formats without blocks.

    For each entry of `x` there are products with all entries of a row of `y`; those at one place are added.
    """
    if x.layout is not y.layout and {x.layout, y.layout} != {sparse_csr, sparse_csc}:
        kinds = [each._backend() for each in (x, y)]
        raise RuntimeError(f"addmm: computation on CPU is not implemented for {kinds[0]} + {kinds[0]} @ {kinds[1]}")
    left, right = x._rows(), y._rows()
    begin = right.start[left.columns]
    lengths = right.start[left.columns + 1] - begin
    of_left = np.repeat(np.arange(len(left.columns)), as_intp(lengths))
    of_right = ranges(begin, lengths)
    if right.order is not None:
        of_right = right.order[of_right]
    size = (x.shape[0], y.shape[1])
    where = np.stack([left.rows[of_left], right.columns[of_right]])
    first, rank = distinct(linear(where, size))
    products = x._flat.index_select(0, wrap(of_left)) * y._flat.index_select(0, wrap(of_right))
    made = SparseCOO.of(where[:, first], summed(products, rank, len(first)), size, True)
    if x.layout is sparse_coo:
        return made
    return compressed_of(made, sparse_csc if x.layout is y.layout is sparse_csc else sparse_csr)


@rule("mm", "spmm", "dsmm")
def mm(sparse: Any, dense: Any, reduce: Any = None) -> Any:
    """Return the product of two matrices, at least one of them sparse; of two sparse ones it is sparse.

    Args:
        sparse, dense: matrices `(n, m)` and `(m, p)` of one dtype.
        reduce: of a matrix in the format CSR: how the products of a row are combined: "sum", "mean", "amax" or "amin".

    Raises:
        RuntimeError: one is not a matrix; the sizes do not match; the dtypes differ.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        >>> torch.sparse.mm(x, torch.ones(3, 1))
        tensor([[3.],
                [4.]])
    """
    if reduce is not None:
        return _reduced(sparse, dense, reduce)
    if not (is_sparse(sparse) or is_sparse(dense)):
        return dense_mm(sparse, dense)
    return _product(sparse, dense)


def _reduced(sparse: Any, dense: Any, reduce: str) -> Tensor:
    """Return, for each row of a matrix and each column of a dense one, the sum, mean or extremum of their products."""
    if not is_sparse(sparse) or sparse.layout is not sparse_csr:
        raise NoArray("sparse.mm(reduce=...): expect self to be SparseCsr: convert the matrix by to_sparse_csr()")
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"sparse_mm_reduce: reduce type of {reduce} has not been enabled.")
    _check_matrix(sparse)
    _check_shapes(sparse, dense)
    _check_dtypes(sparse, dense)
    rows = sparse._rows()
    if reduce in ("sum", "mean"):
        total: Tensor = _multiply(sparse._held, dense, rows)
        counts = np.maximum(np.diff(rows.start), 1)
        return total if reduce == "sum" else total / wrap(counts).to(total.dtype).unsqueeze(1)
    products = sparse._held.unsqueeze(1) * dense.index_select(0, wrap(rows.columns))
    at = wrap(rows.rows).unsqueeze(1).expand(products.shape)
    zeros = products.new_zeros((sparse.shape[0], dense.shape[1]))
    return scatter_reduce(zeros, 0, at, products, reduce, include_self=False)


@rule("bmm")
def bmm(self: Any, mat2: Any) -> Tensor:
    """Return the products of the matrices of a tensor in the format COO and of a dense one."""
    if not is_sparse(self) or self.layout is not sparse_coo or is_sparse(mat2):
        raise NoArray("bmm is supported for a tensor in the format COO and a dense one")
    if self.sparse_dim() != 3 or self.dense_dim():
        raise RuntimeError(f"bmm_sparse: Tensor 'self' must have 3 sparse dims, but has {self.sparse_dim()}")
    if mat2.ndim != 3 or self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"bmm_sparse: 'self' of size {list(self.shape)} and 'mat2' of size {list(mat2.shape)} do not match"
        )
    return stack_dense([_product(select(self, 0, k), mat2[k]) for k in range(self.shape[0])])


@rule("addmv")
def addmv(self: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return `beta * self + alpha * (mat @ vec)` for a sparse matrix."""
    product = mv(mat, vec)
    scaled = product if alpha == 1 else product * alpha
    return scaled if beta == 0 else self * beta + scaled


@rule("addmm_")
def addmm_(self: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Compute `addmm` in place."""
    result = addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return self._become(result) if is_sparse(self) else self.copy_(result)


def _rows_of_product(name: str, x: Any, dense: Any) -> tuple[Any, Tensor]:
    """Return the rows in which a matrix in the format COO has entries, and those of its product with a dense one."""
    if not is_sparse(x) or x.layout is not sparse_coo or is_sparse(dense):
        raise NoArray(f"Could not run 'aten::{name}': it needs a matrix in the format COO and a dense one")
    if x.sparse_dim() != 2 or dense.ndim != 2:
        raise RuntimeError(f"{name}: Argument #2: matrices expected, got {x.sparse_dim()}D and {dense.ndim}D tensors")
    if x.dense_dim():
        raise RuntimeError(f"{name}: Argument #2: scalar values expected, got {x.dense_dim()}D values")
    if x.shape[1] != dense.shape[0]:
        raise RuntimeError(f"{name}: Argument #3: Expected dim 0 size {x.shape[1]}, got {dense.shape[0]}")
    rows = np.unique(x._where[0])
    return rows, _product(x, dense).index_select(0, wrap(rows))


def _of_rows(rows: Any, width: int) -> Any:
    """Return the places of all elements of some rows."""
    return np.stack([np.repeat(rows, width), np.tile(np.arange(width), len(rows))])


@public(binds=False)
@rule("hspmm", "hsmm")
def hspmm(mat1: Any, mat2: Any) -> SparseCOO:
    """Return the product of a sparse matrix and a dense one, with rows as entries: one sparse and one dense dimension.

    Args:
        mat1: a matrix `(n, m)` in the format COO.
        mat2: a dense matrix `(m, p)`.

    Example:
        >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 1)).dense_dim()
        1
    """
    rows, values = _rows_of_product("hspmm", mat1, mat2)
    return SparseCOO.of(rows[None], values, (mat1.shape[0], mat2.shape[1]))


@public(binds=False)
@rule("sspaddmm", "saddmm")
def sspaddmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> SparseCOO:
    """Return `beta * input + alpha * (mat1 @ mat2)` as a tensor in the format COO, of sparse `input` and `mat1`.

    Example:
        >>> x = torch.eye(2).to_sparse()
        >>> torch.sspaddmm(x, x, torch.ones(2, 2), beta=2).to_dense()
        tensor([[3., 1.],
                [1., 3.]])
    """
    rows, values = _rows_of_product("sspaddmm", mat1, mat2)
    if not is_sparse(input) or input.layout is not sparse_coo:
        raise RuntimeError("sspaddmm: expected 'self' to be a sparse tensor in the format COO")
    size = (mat1.shape[0], mat2.shape[1])
    if tuple(input.shape) != size:
        raise RuntimeError(f"sspaddmm: Argument #1: Expected size {list(size)}, got {list(input.shape)}")
    where = _of_rows(rows, size[1])
    held = input._held if beta == 1 else input._held * beta
    product = values.reshape(-1)
    joined = cat_dense([held, product if alpha == 1 else product * alpha])
    return SparseCOO.of(np.concatenate([input._where, where], axis=1), joined, size)


hsmm, saddmm = Builtin(hspmm), Builtin(sspaddmm)


@public(binds=False)
@rule("smm")
def smm(input: Any, mat2: Any) -> SparseCOO:
    """Return the product of a sparse matrix and a dense one in the format COO.

    Example:
        >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 1)).to_dense()
        tensor([[1.],
                [1.]])
    """
    rows, values = _rows_of_product("sspaddmm", input, mat2)
    size = (input.shape[0], mat2.shape[1])
    return SparseCOO.of(_of_rows(rows, size[1]), values.reshape(-1), size)


@rule("mv")
def mv(self: Any, vec: Any) -> Tensor:
    """Return the product of a sparse matrix and a vector."""
    if not is_sparse(self) or is_sparse(vec):
        raise NoArray("mv is supported for a sparse matrix and a dense vector")
    _check_matrix(self)
    if vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError("mv: expected self.size(-1) == vec.size(-1)")
    _check_dtypes(self, vec)
    if self.layout is sparse_bsc:
        raise RuntimeError("torch.addmv: operation not supported for mat with SparseBsc layout")
    return _multiply(self._flat, vec.unsqueeze(1), self._rows()).squeeze(1)


@rule("matmul", "__matmul__")
def matmul(self: Any, other: Any) -> Any:
    """Return the product of matrices or of a matrix and a vector."""
    if not is_sparse(other) and other.ndim == 1:
        return mv(self, other)
    if not is_sparse(self) and self.ndim == 1:
        return matmul(self.unsqueeze(0), other).squeeze(0)
    if self.ndim > 2 or other.ndim > 2:
        raise RuntimeError("expand is unsupported for Sparse tensors: matmul of batches with a sparse tensor")
    return _product(self, other)


rule("__rmatmul__")(lambda self, other: matmul(other, self))


@rule("addmm")
def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return `beta * mat + alpha * (mat1 @ mat2)`.

    Args:
        mat: the addend, dense or sparse as the product is; a dense one is broadcast.
        mat1, mat2: matrices `(n, m)` and `(m, p)`, at least one of them sparse.
        beta, alpha: numbers.

    Example:
        >>> x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
        >>> torch.sparse.addmm(torch.ones(2, 1), x, torch.ones(3, 1), alpha=2)
        tensor([[7.],
                [9.]])
    """
    product = mm(mat1, mat2)
    scaled = product if alpha == 1 else product * alpha
    if is_sparse(mat) is not is_sparse(product):
        raise NoArray("addmm: the addend must be sparse exactly if the product is")
    if is_sparse(product):
        return sum_of_sparse(mat * beta, scaled, 1)
    return scaled if beta == 0 else mat * beta + scaled


@rule("nn.functional.linear")
def linear_function(input: Any, weight: Any, bias: Any = None) -> Any:
    """Return `input @ weight.T + bias`."""
    if is_sparse(weight) and weight.layout is not sparse_coo:
        weight = weight.to_sparse_coo()
    out = matmul(input, weight.t())
    return out if bias is None else out + bias


def sampled_addmm(input: Any, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1, out: Any = None) -> Any:
    """Return `beta * input + alpha * (mat1 @ mat2)` at the entries of a sparse matrix: only these are computed.

    Args:
        input: a matrix `(batch ..., n, p)` in the format CSR.
        mat1, mat2: dense matrices `(batch ..., n, m)` and `(batch ..., m, p)`.
        beta, alpha: numbers.
        out: the tensor to write the result to.

    Example:
        >>> x = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 1.0])
        >>> torch.sparse.sampled_addmm(x, torch.ones(2, 3), torch.ones(3, 2)).values()
        tensor([4., 4.])
    """
    if not is_sparse(input) or input.layout is not sparse_csr:
        raise RuntimeError("sampled_addmm: Expected self to have sparse csr layout")
    if input.dense_dim():
        raise RuntimeError("sampled_addmm: Expected non-hybrid self tensor")
    batch = tuple(input.shape[: input._batch_dim])
    for name, each in (("mat1", mat1), ("mat2", mat2)):
        if tuple(each.shape[:-2]) != batch:
            raise RuntimeError(
                f"sampled_addmm: Expected self and {name} to have the same batch size, but got {list(batch)} and "
                f"{list(each.shape[:-2])}"
            )
    n, m, p = mat1.shape[-2], mat2.shape[-2], mat2.shape[-1]
    if mat1.shape[-1] != m:
        raise RuntimeError(
            f"sampled_addmm: mat1 and mat2 shapes cannot be multiplied ({n}x{mat1.shape[-1]} and {m}x{p})"
        )
    if tuple(input.shape[-2:]) != (n, p):
        raise RuntimeError(f"sampled_addmm: self has shape {list(input.shape)}, which is not that of mat1 @ mat2")
    if batch:  # the matrices of a batch are the blocks of one block-diagonal matrix
        place = np.ravel_multi_index(tuple(input._places()[:-2]), batch)
        row, column = input._places()[-2:]
        count = math.prod(batch)
        rows = Rows(place * n + row, place * p + column, (count * n, count * p))
    else:
        rows = input._rows()
    product = _sampled(mat1.reshape(-1, m), mat2.transpose(-2, -1).reshape(-1, m), rows)
    result = input._with_flat(input._flat * beta + product * alpha)
    return result if out is None else out._become(result)
