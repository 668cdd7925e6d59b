"""`torch.linalg`: systems, factorisations, norms, products and functions of matrices."""

# ruff: noqa: F405 (type checkers have the names of `__all__` from `ops/faces`)

from typing import TYPE_CHECKING

from tinytorch.kernels.decompose import LinAlgError
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops.linalg import factor as _factor  # noqa: F401
from tinytorch.ops.linalg import products as _products  # noqa: F401
from tinytorch.ops.linalg import solve as _solve  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.linalg import *  # noqa: F403

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu",
    "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

__getattr__, __dir__ = namespace(__name__)
