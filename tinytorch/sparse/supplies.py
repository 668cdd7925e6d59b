"""What `core` and `ops` call of this package, once a program has a sparse tensor (`core/supplied.py`)."""

from tinytorch.sparse.construct import compressed_from_dense, sparse_zeros, sparsified
from tinytorch.sparse.gradients import add_gradient, fitted_gradient, sparse_root_gradient, sparse_rows
from tinytorch.sparse.rules import of_sparse, refused

__all__ = [
    "add_gradient", "compressed_from_dense", "fitted_gradient", "of_sparse", "refused", "sparse_root_gradient",
    "sparse_rows", "sparse_zeros", "sparsified",
]  # fmt: skip
