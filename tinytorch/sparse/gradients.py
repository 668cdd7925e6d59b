"""Sparse gradients: those of rows that were looked up in a table, and their sums with other gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.ops.index import index_select
from tinytorch.sparse.elementwise import add, add_, sum_of_sparse
from tinytorch.sparse.rules import is_sparse
from tinytorch.sparse.tensors import SparseCOO, dense_of, gradient_of_values


def sparse_rows(g: Tensor, count: int, indices: Any, padding_idx: int = -1) -> SparseCOO:
    """Return the gradient of a table whose rows were looked up.

    Args:
        g: the gradient of the rows, shape (*, width).
        count: the number of rows of the table.
        indices: the rows that were looked up, an array of shape (*).
        padding_idx: the row that gets no gradient; negative for none.
    """
    width = g.shape[-1]
    flat, rows = indices.reshape(-1).astype(np.int64, copy=False), g.reshape(-1, width)
    if padding_idx >= 0:
        kept = np.flatnonzero(flat != padding_idx)
        if len(kept) < len(flat):
            flat, rows = flat[kept], index_select(rows, 0, wrap(kept))
    return SparseCOO.of(flat[None], rows, (count, width))


def sparse_root_gradient(root: Any, g: Any) -> Tensor:
    """Return the gradient of the values of a sparse tensor from which a backward pass starts, given the tensor's."""
    if g is None:
        if root.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return root._held.detach() * 0 + 1
    return gradient_of_values(root, g)


def fitted_gradient(g: Any, shape: Any, dtype: Any) -> Any:
    """Return a sparse gradient in the dtype (NumPy's) of its input.

    Raises:
        RuntimeError: its shape is not that of the input.
    """
    if tuple(g.shape) != tuple(shape):
        raise RuntimeError(f"a sparse gradient of shape {list(g.shape)} does not fit an input of shape {list(shape)}")
    return g.to(dtypes.from_numpy_dtype(dtype)) if g.dtype.numpy != dtype else g


def add_gradient(old: Any, g: Any, create_graph: bool) -> Any:
    """Return the gradient of a leaf after a further one has arrived; at least one of the two is sparse.

    Args:
        old: the gradient so far, which may be changed; or None.
        g: the gradient that has arrived.
        create_graph: keep both in the graph.
    """
    if old is None:
        return g.clone() if create_graph else g.detach().clone()
    if is_sparse(old) and is_sparse(g):
        return sum_of_sparse(old, g, 1)
    if create_graph:
        return add(g, old) if is_sparse(old) else add(old, g)
    if is_sparse(old):
        return g.detach() + dense_of(old.detach())
    with_entries: Tensor = add_(old, g.detach())
    return with_entries
