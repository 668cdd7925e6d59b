"""`torch.linalg`: systems, factorisations, norms, products and functions of matrices."""

from typing import TYPE_CHECKING

from tinytorch.kernels.decompose import LinAlgError
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops.linalg import factor as _factor  # noqa: F401
from tinytorch.ops.linalg import products as _products  # noqa: F401
from tinytorch.ops.linalg import solve as _solve  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.linalg.factor import cholesky as cholesky
    from tinytorch.ops.linalg.factor import cholesky_ex as cholesky_ex
    from tinytorch.ops.linalg.factor import cond as cond
    from tinytorch.ops.linalg.factor import cross as cross
    from tinytorch.ops.linalg.factor import det as det
    from tinytorch.ops.linalg.factor import diagonal as diagonal
    from tinytorch.ops.linalg.factor import eig as eig
    from tinytorch.ops.linalg.factor import eigh as eigh
    from tinytorch.ops.linalg.factor import eigvals as eigvals
    from tinytorch.ops.linalg.factor import eigvalsh as eigvalsh
    from tinytorch.ops.linalg.factor import householder_product as householder_product
    from tinytorch.ops.linalg.factor import ldl_factor as ldl_factor
    from tinytorch.ops.linalg.factor import ldl_factor_ex as ldl_factor_ex
    from tinytorch.ops.linalg.factor import ldl_solve as ldl_solve
    from tinytorch.ops.linalg.factor import lu as lu
    from tinytorch.ops.linalg.factor import lu_factor as lu_factor
    from tinytorch.ops.linalg.factor import lu_factor_ex as lu_factor_ex
    from tinytorch.ops.linalg.factor import lu_solve as lu_solve
    from tinytorch.ops.linalg.factor import matrix_norm as matrix_norm
    from tinytorch.ops.linalg.factor import norm as norm
    from tinytorch.ops.linalg.factor import qr as qr
    from tinytorch.ops.linalg.factor import slogdet as slogdet
    from tinytorch.ops.linalg.factor import svd as svd
    from tinytorch.ops.linalg.factor import svdvals as svdvals
    from tinytorch.ops.linalg.factor import vander as vander
    from tinytorch.ops.linalg.factor import vecdot as vecdot
    from tinytorch.ops.linalg.products import matmul as matmul
    from tinytorch.ops.linalg.products import multi_dot as multi_dot
    from tinytorch.ops.linalg.solve import inv as inv
    from tinytorch.ops.linalg.solve import inv_ex as inv_ex
    from tinytorch.ops.linalg.solve import lstsq as lstsq
    from tinytorch.ops.linalg.solve import matrix_exp as matrix_exp
    from tinytorch.ops.linalg.solve import matrix_power as matrix_power
    from tinytorch.ops.linalg.solve import matrix_rank as matrix_rank
    from tinytorch.ops.linalg.solve import pinv as pinv
    from tinytorch.ops.linalg.solve import solve as solve
    from tinytorch.ops.linalg.solve import solve_ex as solve_ex
    from tinytorch.ops.linalg.solve import solve_triangular as solve_triangular
    from tinytorch.ops.linalg.solve import tensorinv as tensorinv
    from tinytorch.ops.linalg.solve import tensorsolve as tensorsolve
    from tinytorch.ops.reduce import vector_norm as vector_norm

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals",
    "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu",
    "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals",
    "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]  # fmt: skip

__getattr__, __dir__ = namespace(__name__)
