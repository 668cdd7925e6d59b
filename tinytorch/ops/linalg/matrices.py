"""Linear algebra under the names of `torch` itself; distances, covariances, integrals of samples.

Most functions are composed of the ops of `torch.linalg`, which are in `factor` and `solve`.
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.mode import local
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import decompose as kernels
from tinytorch.kernels import distances
from tinytorch.kernels.checks import broadcast, refused
from tinytorch.kernels.reduce import axes_of, axis_of
from tinytorch.ops import complex as complexes
from tinytorch.ops import reduce, return_types
from tinytorch.ops.arguments import also_by, check_tensors, not_derived, op_of
from tinytorch.ops.arithmetic import _alike, abs, clamp, sgn
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.create import zeros_like
from tinytorch.ops.index import index_add, index_select
from tinytorch.ops.linalg import factor as decompose
from tinytorch.ops.linalg import solve
from tinytorch.ops.linalg.products import matmul, mm
from tinytorch.ops.linalg.solve import check_matrix, check_system
from tinytorch.ops.masks import where
from tinytorch.ops.random import randn
from tinytorch.ops.rearrange import flip, tril, triu
from tinytorch.ops.reduce import vector_norm
from tinytorch.ops.register import autocasting, public
from tinytorch.ops.shape import _unsafe_view
from tinytorch.ops.transcendental import sqrt


def _deprecated(name: str, instead: str) -> None:
    text = f"torch.{name} is deprecated in favor of {instead} and will be removed in a future PyTorch release."
    warn(text, once=True)


# Older names of functions of torch.linalg ---------------------------------------------------------


@public(method=True, out="exact", autocast="float32")
def inverse(input: Tensor) -> Tensor:
    """Return the inverse; see `linalg.inv`."""
    return solve.inv(input)


@public(method=True, autocast="float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the pseudoinverse; see `linalg.pinv`, whose `rtol` is `rcond`."""
    return solve.pinv(input, rcond)


@public(method=True, out="exact")
def slogdet(input: Tensor) -> Any:
    """Return the sign and the logarithm of the magnitude of the determinant; see `linalg.slogdet`."""
    return return_types.slogdet(decompose.slogdet(input))


@public(method=True, out="exact", autocast="float32")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """Return the Cholesky factor; see `linalg.cholesky`."""
    _deprecated("cholesky", "torch.linalg.cholesky")
    check_matrix("cholesky", input, "input", kernel="cholesky_cpu")
    return decompose.old_cholesky(input, upper, "cholesky")


def _factor_gradient(common: Tensor, factor: Tensor, upper: bool) -> Tensor:
    """Return the gradient of a Cholesky factor of A, whose gradient is `-common / 2`; only one triangle is read."""
    return -(factor.triu() @ common).triu() if upper else -(common @ factor.tril()).tril()


def _cholesky_solve_joint(g: Tensor, needs: Any, y: Tensor, x: Tensor, out: Tensor, upper: bool) -> tuple[Any, Any]:
    gb = _cholesky_solve(g, x, upper)
    if not needs[1]:
        return gb, None
    half = gb @ out.mH
    return gb, _factor_gradient(half + half.mH, x, upper)


_cholesky_solve = op_of(
    kernels.cholesky_solve,
    batch="leading",
    joint=_cholesky_solve_joint,
    inputs=("y", "x"),
    broadcasts=True,
    complex=OWN,
)
_cholesky_inverse = op_of(
    kernels.cholesky_inverse,
    batch="leading",
    x=lambda g, x, out, upper: _factor_gradient(out @ (g + g.mH) @ out, x, upper),
    complex=OWN,
)


def _check_old_system(function: str, B: Any, A: Any, second: str) -> None:
    """Raise PyTorch's error unless the operands of `A X = B` match, with the messages of the older functions."""
    for tensor, name in ((B, "b"), (A, "u" if second == "input2" else "A")):
        if tensor.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {tensor.ndim} dimensions instead"
                if second == "input2"
                else f"torch.{function}: Expected {name} to have at least 2 dimensions, but it has {tensor.ndim} "
                "dimensions instead"
            )
    check_system(function, B, A)
    if A.dtype.name not in solve.LAPACK_DTYPES:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for '{A.dtype.tensor_name}'")


@public(method=True, out="safe", autocast="float32")
@also_by(input2="L")
def cholesky_solve(input: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Return the solution X of `A X = B`, from the Cholesky factor of A.

    Args:
        input: B, `(..., n, k)`.
        L: the Cholesky factor, `(..., n, n)`.
        upper: the factor is upper triangular.

    Example:
        >>> torch.cholesky_solve(torch.tensor([[4.0], [9.0]]), torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
        tensor([[1.],
                [1.]])
    """
    _check_old_system("cholesky_solve", input, L, "input2")
    return _cholesky_solve(input, L, upper)


@public(method=True, out="safe", autocast="float32")
def cholesky_inverse(input: Tensor, upper: bool = False) -> Tensor:
    """Return the inverse of a matrix, from its Cholesky factor.

    Args:
        input: the Cholesky factor, `(..., n, n)`.

    Example:
        >>> torch.cholesky_inverse(torch.tensor([[2.0]]))
        tensor([[0.2500]])
    """
    check_matrix("cholesky_inverse", input, "input", kernel="cholesky_inverse_out_cpu")
    return _cholesky_inverse(input, upper)


@public(method=True, out="exact", autocast="float32")
def qr(input: Tensor, some: bool = True) -> Any:
    """Return the QR decomposition; see `linalg.qr`, whose mode is "reduced" if `some`, else "complete"."""
    _deprecated("qr", "torch.linalg.qr")
    return return_types.qr(decompose.qr(input, "reduced" if some else "complete"))


@public(method=True, out="exact", autocast="float32")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """Return `(U, S, V)`, the singular value decomposition `A = U diag(S) V^H`; see `linalg.svd`, which returns `V^H`.

    Args:
        input: `(..., m, n)`.
        compute_uv: compute U and V; otherwise they are zeros.

    Example:
        >>> torch.svd(torch.tensor([[0.0, 3.0], [2.0, 0.0]])).S
        tensor([3., 2.])
    """
    if not compute_uv:
        values = decompose.svdvals(input)
        batch, (m, n) = input.shape[:-2], input.shape[-2:]
        u, v = (solve.zeros_of(input, (*batch, k, k)).contiguous() for k in (m, n))
        return return_types.svd((u, values, v.mH))
    u, values, vh = decompose.svd(input, not some)
    return return_types.svd((u, values, vh.mH))


@public(python=True, method=True)
def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return the LU decomposition in compact form; see `linalg.lu_factor`, and with `get_infos` `lu_factor_ex`."""
    _deprecated("lu", "torch.linalg.lu_factor / torch.linalg.lu_factor_ex")
    result = decompose.lu_factor_ex(A, pivot=pivot, check_errors=False)
    if out is None:
        return return_types.lu_with_info(result) if get_infos else tuple(result[:2])
    if len(out) != 2 + get_infos:
        raise TypeError(f"expected tuple of {2 + get_infos} elements but got {len(out)}")
    for target, tensor in zip(out, result, strict=False):
        target.resize_as_(tensor).copy_(tensor)
    return out


@public(method=True, out="exact", autocast="float32")
def lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """Return the solution X of `A X = B`, from the LU factors of A; see `linalg.lu_solve`, whose last argument is B."""
    _deprecated("lu_solve", "torch.linalg.lu_solve")
    return decompose.lu_solve(LU_data, LU_pivots, input)


@public(out="exact")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """Return P, L and U from the result of `linalg.lu_factor`.

    Args:
        LU_data, LU_pivots: the result of `linalg.lu_factor`.

    Example:
        >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))).P
        tensor([[0., 1.],
                [1., 0.]])
    """
    if LU_data.ndim < 2:
        raise RuntimeError(
            f"torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {list(LU_data.shape)} instead"
        )
    if unpack_pivots and LU_pivots.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this "
            "function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    parts = list(decompose.unpacked_lu(LU_data, LU_pivots if unpack_pivots else LU_pivots.reshape(-1)[:0]))
    for k, wanted in enumerate((unpack_pivots, unpack_data, unpack_data)):
        if not wanted:
            parts[k] = parts[k].reshape(-1)[:0]
    return return_types.lu_unpack(parts)


def _triangular_solve_joint(
    g: Any, needs: Any, y: Tensor, x: Tensor, out0: Tensor, upper: bool, transpose: bool, unit: bool
) -> tuple[Any, Any]:
    ga, gb = g[1], None
    if g[0] is not None:
        gb = solve.triangular(x if transpose else x.mT, g[0], upper is transpose, unit)
        if needs[1]:
            by_x = -(out0 @ gb.mT if transpose else gb @ out0.mT)
            by_x = triu(by_x, int(unit)) if upper else tril(by_x, -int(unit))
            ga = by_x if ga is None else ga + by_x
    return gb, ga


_triangular_solve = op_of(
    kernels.triangular_solve,
    batch="stacks",
    joint=_triangular_solve_joint,
    inputs=("y", "x"),
    outputs=2,
    broadcasts=True,
    complex=HOLOMORPHIC,
)


@public(method=True, out="safe", autocast="float32")
def triangular_solve(
    input: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """Return the solution X of `A X = B` for a triangular A, and a copy of A; see `linalg.solve_triangular`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.triangular_solve(torch.tensor([[4.0], [2.0]]), torch.tensor([[1.0, 1.0], [0.0, 2.0]])).solution
        tensor([[3.],
                [1.]])
    """
    _deprecated("triangular_solve", "torch.linalg.solve_triangular")
    _check_old_system("triangular_solve", input, A, "A")
    return return_types.triangular_solve(_triangular_solve(input, A, upper, transpose, unitriangular))


_geqrf = op_of(kernels.geqrf, batch="leading", outputs=2, x=not_derived("geqrf"), complex=OWN)


@public(method=True, out="geqrf", autocast="float32")
def geqrf(input: Tensor) -> Any:
    """Return the Householder reflections of the QR decomposition, for `orgqr` and `ormqr`; there is no gradient.

    The result is a named tuple `(a, tau)`: `a` contains R on and above its diagonal, and the vectors of the reflections
    below it.

    Example:
        >>> torch.geqrf(torch.tensor([[3.0], [4.0]])).a
        tensor([[-5.0000],
                [ 0.5000]])
    """
    if input.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_matrix("geqrf", input, "input", square=False, kernel="geqrf_cpu")
    if input.dtype.is_complex and input.requires_grad and local.state.grad:
        raise RuntimeError("geqrf does not support automatic differentiation for outputs with complex dtype.")
    return return_types.geqrf(_geqrf(input))


@public(method=True, out="householder", autocast="float32")
@also_by(input2="tau")
def orgqr(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first columns of a product of Householder reflections; see `linalg.householder_product`.

    Example:
        >>> vectors, tau = torch.geqrf(torch.tensor([[3.0], [4.0]]))
        >>> torch.orgqr(vectors, tau)
        tensor([[-0.6000],
                [-0.8000]])
    """
    return decompose.householder_product(input, tau)


@public(method=True, out="ormqr", autocast="float32")
def ormqr(input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """Return the product of a matrix C with the orthogonal (or unitary) matrix Q of Householder reflections.

    Args:
        input, input2: the vectors, `(..., m, k)`, and the factors of the reflections; see `geqrf`.

    Example:
        >>> a, tau = torch.geqrf(torch.tensor([[3.0], [4.0]]))
        >>> torch.ormqr(a, tau, torch.tensor([[3.0], [4.0]]), transpose=True).abs().round(decimals=4)
        tensor([[5.],
                [0.]])
    """
    tau, other = input2, input3
    for tensor, name in ((input, "input"), (other, "other")):
        if tensor.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions.")
    side = -2 if left else -1
    if tau.ndim and other.shape[side] < tau.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    axes_of(-1, tau.ndim, "ormqr")
    if tau.shape[-1] != min(other.shape[side], input.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    decompose.check_reflections("torch.ormqr", input, tau, other)
    for tensor, name in ((tau, "tau"), (other, "other")):
        if tensor.dtype != input.dtype:
            raise RuntimeError(
                f"torch.ormqr: Expected input and {name} to have the same dtype, but input has dtype "
                f"{input.dtype.tensor_name} and {name} has dtype {tensor.dtype.tensor_name}"
            )
    if input.dtype.itemsize < 4 or not (input.is_floating_point() or input.is_complex()):
        raise refused("ormqr_cpu", input._array)
    return decompose.reflect(input, tau, other, left, transpose)


# Norms --------------------------------------------------------------------------------------------


@public(python=True, method=True, out="exact")
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """Return the p-norm of all elements as one vector, or over `dim`; the subgradient at 0 is 0.

    Args:
        p: any number, inf, -inf; "fro", the same as 2; "nuc", the sum of the singular values of a matrix.

    Example:
        >>> x = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
        >>> torch.norm(x), torch.norm(x, p=1, dim=1), torch.norm(x, "nuc")
        (tensor(5.), tensor([3., 4.]), tensor(7.))
        >>> torch.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
        tensor([5., 0.])
    """
    if p == "nuc" or (p == "fro" and isinstance(dim, (tuple, list)) and len(dim) > 2):
        dims = tuple(builtins.range(input.ndim)) if dim is None else dim
        dims = (dims,) if isinstance(dims, int) else dims
        return decompose.matrix_norm(input, p, dims, keepdim, dtype=dtype)
    if out is not None:
        raise NotImplementedError("norm(out=...) is left out: assign the result instead")
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    return vector_norm(input, 2 if p is None or p == "fro" else p, dim, keepdim, dtype=dtype)


@public()
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """Return the norms over all dimensions but `dim`, which keep length 1; for `dim` -1, the norm of all elements.

    Example:
        >>> torch.norm_except_dim(torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
        tensor([[5.],
                [1.]])
    """
    if dim == -1:
        return vector_norm(v, pow)
    if type(pow) is not int:
        raise TypeError(f"norm_except_dim(): argument 'pow' (position 2) must be int, not {type(pow).__name__}")
    kept = axis_of(dim, v.ndim, "norm_except_dim")
    if v.ndim < 2:
        v.size(dim)  # (raises PyTorch's error for a 0-d tensor)
        return vector_norm(v.unsqueeze(-1), pow, -1)
    return vector_norm(v, pow, tuple([k for k in builtins.range(v.ndim) if k != kept]), True)


@public()
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """Return `v` rescaled to the norms `g` over all dimensions but `dim`.

    Example:
        >>> torch._weight_norm(torch.tensor([[3.0, 4.0], [0.0, 1.0]]), torch.tensor([[1.0], [2.0]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 2.0000]])
    """
    return v * (g / norm_except_dim(v, 2, dim))


@public(out="exact")
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return the square root of the sum of squares over `dim`; see `linalg.vector_norm`."""
    if dim is None:
        raise TypeError("frobenius_norm(): argument 'dim' (position 2) must be tuple of ints, not NoneType")
    _deprecated("frobenius_norm", "torch.linalg.vector_norm")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {input.dtype.tensor_name} instead."
        )
    empty = isinstance(dim, (tuple, list)) and not dim
    return vector_norm(input, 2, None if empty else dim, keepdim)


@public(out="nuclear_norm")
def nuclear_norm(input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the sum of the singular values of matrices; see `linalg.matrix_norm`."""
    _deprecated("nuclear_norm", "torch.linalg.matrix_norm")
    if isinstance(dim, bool):
        dim, keepdim = None, dim
    if isinstance(dim, int):
        dim = (dim,)
    return decompose.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim)


def _dist_x(g: Tensor, x: Tensor, y: Tensor, out: Tensor, p: float) -> Any:
    return reduce._norm_x(g, x - y, out, p, None)


def _dist_y(g: Tensor, x: Tensor, y: Tensor, out: Tensor, p: float) -> Any:
    gradient = _dist_x(g, x, y, out, p)
    return None if gradient is None else -gradient


_dist = op_of(distances.dist, batch=lambda x, y, p: (x - y).norm(p), x=_dist_x, y=_dist_y, broadcasts=True)


@public(method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the p-norm of `input - other`.

    Example:
        >>> torch.dist(torch.tensor([1.0, 1.0]), torch.tensor([4.0, 5.0]))
        tensor(5.)
    """
    check_tensors("dist", input=input, other=other)
    x, y = _alike(input, other)
    if x.dtype.is_complex:
        return _dist(abs(x - y), 0, float(p))
    if not x.dtype.is_floating_point:
        x - y  # raises another error for dtypes without subtraction
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {x.dtype.tensor_name} instead."
        )
    return _dist(x, y, float(p))


@public(method=True, out="exact")
def renorm(input: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Return the tensor with slices along `dim` scaled down to the p-norm `maxnorm` if their norm is larger.

    Example:
        >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
        tensor([[0.6000, 0.8000],
                [0.3000, 0.4000]])
    """
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    axis = axis_of(dim, input.ndim, "renorm")
    others = tuple(k for k in builtins.range(input.ndim) if k != axis)
    # (the norms and factors of 16-bit floats are computed in float32)
    wide = input.float() if input.dtype.itemsize < 4 and input.dtype.is_floating_point else input
    norms = vector_norm(wide, p, others, True)
    factors = where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
    return (input * factors.to(input.dtype)).contiguous()


@public("", method="renorm_")
def renorm_(self: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Scale slices down in place; see `renorm`."""
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))


# Distances ----------------------------------------------------------------------------------------


def _weights(g: Tensor, out: Tensor) -> Tensor:
    return (g / out).masked_fill(out == 0, 0)


def _euclidean_x(g: Tensor, x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    w = _weights(g, out)
    return w.sum(-1, keepdim=True) * x - w @ y


def _euclidean_y(g: Tensor, x: Tensor, y: Tensor, out: Tensor) -> Tensor:
    w = _weights(g, out)
    return w.sum(-2).unsqueeze(-1) * y - w.mT @ x


_euclidean = op_of(
    distances.euclidean, batch="leading", name="EuclideanDist", x=_euclidean_x, y=_euclidean_y, broadcasts=True
)


def _cdist_differences(g: Tensor, x: Tensor, y: Tensor, out: Tensor, p: float) -> Tensor:
    """Return the gradient of the distances with respect to the differences of all pairs of rows."""
    differences, g, out = x.unsqueeze(-2) - y.unsqueeze(-3), g.unsqueeze(-1), out.unsqueeze(-1)
    if p == 0:  # the number of differences that are not 0 has gradient 0
        return (differences * g).masked_fill(out >= 0, 0)
    if p == math.inf:  # unlike the gradient of a norm, this one is not divided among equal maxima
        return sgn(differences) * g * (differences.abs() == out).to(g.dtype)
    return reduce._norm_x(g, differences, out, p, (differences.ndim - 1,))


_cdist = op_of(
    distances.cdist, batch="leading", broadcasts=True,
    x=lambda g, x, y, out, p: _cdist_differences(g, x, y, out, p).sum(-2),
    y=lambda g, x, y, out, p: -_cdist_differences(g, x, y, out, p).sum(-3),
)  # fmt: skip


def _pdist_x(g: Tensor, x: Tensor, out: Tensor, p: float) -> Tensor:
    """Return the gradient of the distances of all pairs of rows."""
    first, second = (wrap(indices) for indices in np.triu_indices(x.shape[-2], 1))
    a, b = (index_select(x, -2, each).unsqueeze(-2) for each in (first, second))
    g, out = (each.unsqueeze(-1).unsqueeze(-1) for each in (g, out))
    slopes = _cdist_differences(g, a, b, out, p).squeeze(-2).squeeze(-2)
    return index_add(index_add(zeros_like(x), -2, first, slopes), -2, second, -slopes)


_pdist = op_of(distances.pdist, batch="leading", x=_pdist_x)

_EUCLIDEAN = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@public(python=True, autocast="float32")
def cdist(
    x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary"
) -> Tensor:
    """Return the distances, `(..., P, R)`, between all rows of two matrices.

    Args:
        x1, x2: `(..., P, m)` and `(..., R, m)`; leading dimensions broadcast.
        compute_mode: for p = 2, "use_mm_for_euclid_dist" uses a matrix product, which is faster and less exact, and
            "donot_use_mm_for_euclid_dist" uses differences; the default uses the former for more than 25 rows.

    Example:
        >>> torch.cdist(torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([[0.],
                [5.]])
    """
    mode = _EUCLIDEAN[0] if compute_mode is None else compute_mode
    if mode not in _EUCLIDEAN:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if not x.dtype.is_floating_point:
            raise RuntimeError(f"cdist only supports floating-point dtypes, {name} got: {x.dtype.tensor_name}")
        if len(x._array.shape) < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
        if x.dtype.itemsize < 4:
            raise NotImplementedError(f"\"cdist\" not implemented for '{x.dtype.tensor_name}'")
    a, b = x1._array.shape, x2._array.shape
    if a[-1] != b[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {a[-1]} X2: {b[-1]}")
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    if x1.dtype != x2.dtype:
        raise RuntimeError(f"expected scalar type {x1.dtype.tensor_name} but found {x2.dtype.tensor_name}")
    broadcast(a[:-2], b[:-2])
    many_rows = max(a[-2], b[-2]) > 25
    if p == 2 and (mode == _EUCLIDEAN[1] or (many_rows and mode != _EUCLIDEAN[2])):
        return _euclidean(x1, x2)
    return _cdist(x1, x2, float(p))


@public(binds=False, also="nn.functional.pdist")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the distances between all pairs of rows: `cdist(input, input)` above its diagonal, row by row.

    Args:
        input: `(n, m)`.

    Example:
        >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
        tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not input.dtype.is_floating_point:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if input.dtype.itemsize < 4 and input.shape[0] > 1 and input.shape[1]:
        raise NotImplementedError(f"\"pdist\" not implemented for '{input.dtype.tensor_name}'")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    return _pdist(input, float(p))


# Products -----------------------------------------------------------------------------------------


@public(method=True, out="exact")
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """Return the cross products along a dimension of length 3, by default the first such dimension.

    Example:
        >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=0)
        tensor([0., 0., 1.])
    """
    if dim is None:
        if 3 not in input.shape:
            raise RuntimeError("no dimension of size 3 in input")
        dim = tuple(input.shape).index(3)
        warn(
            "Using torch.cross without specifying the dim arg is deprecated. Please either pass the dim explicitly or "
            "simply use torch.linalg.cross. The default value of dim will change to agree with that of linalg.cross in "
            "a future release.",
            once=True,
        )
    return decompose.cross(input, other, dim=dim)


@public(method=True, out="castable")
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: each element of `input` is replaced by its product with all of `other`.

    Example:
        >>> torch.kron(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 10.0]))
        tensor([ 1., 10.,  2., 20.])
    """
    count = max(input.ndim, other.ndim)
    a = (1,) * (count - input.ndim) + tuple(input.shape)
    b = (1,) * (count - other.ndim) + tuple(other.shape)
    left = input.reshape([size for m in a for size in (m, 1)])
    right = other.reshape([size for n in b for size in (1, n)])
    return _unsafe_view(left * right, [m * n for m, n in zip(a, b, strict=True)])


@public(listed=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of a vector: the columns are powers of the elements, the highest power first.

    Example:
        >>> torch.vander(torch.tensor([2.0, 3.0]), N=3)
        tensor([[4., 2., 1.],
                [9., 3., 1.]])
    """
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    result = decompose.powers(x, count)
    return result if increasing else flip(result, (-1,))


# Integrals ----------------------------------------------------------------------------------------


def _spacing(name: str, y: Tensor, x: Tensor, axis: int) -> Tensor:
    """Return the distances between the sample points, in a shape that broadcasts with the samples along `axis`."""
    if x.ndim == 1:
        if x.shape[0] != y.shape[axis]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        return (x[1:] - x[:-1]).reshape((-1, *[1] * (y.ndim - axis - 1)))
    if x.ndim < y.ndim:
        x = x.reshape((*[1] * (y.ndim - x.ndim), *x.shape))
    count = max(x.shape[axis] - 1, 0)
    return x.narrow(axis, min(1, x.shape[axis]), count) - x.narrow(axis, 0, count)


def _areas(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> tuple[Tensor, int]:
    """Return twice the areas of the trapezoids, and the dimension."""
    if y.dtype.name == "bool" or (x is not None and x.dtype.name == "bool"):
        arguments = "`y`" if x is None else "`x` or `y`"
        raise RuntimeError(f"{name}: received a bool input for {arguments}, but bool is not supported")
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = axis_of(dim, y.ndim, name)
    count = max(y.shape[axis] - 1, 0)
    heights = y.narrow(axis, min(1, y.shape[axis]), count) + y.narrow(axis, 0, count)
    if x is not None:
        return _spacing(name, y, x, axis) * heights, axis
    return (heights if dx is None else heights * dx), axis


@public()
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral of samples along a dimension by the trapezoidal rule.

    Args:
        x: the sample points: a vector, or a tensor that broadcasts with `y`.
        dx: the distance between the sample points, in place of `x`; 1 by default.

    Example:
        >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))
        tensor(10.5000)
    """
    if x is not None and dx is not None:
        raise TypeError("trapezoid() received an invalid combination of arguments: both x and dx")
    if not y._array.size and y.ndim and not y.shape[axis_of(dim, y.ndim, "trapezoid")]:
        return y.detach().sum(dim, dtype=y.dtype)  # zeros, which are not recorded
    if x is not None:
        areas, axis = _areas("trapezoid", y, x, None, dim)
        return areas.sum(axis) / 2
    if y.dtype.name == "bool" or not y.ndim:
        _areas("trapezoid", y, None, None, dim)  # raises
    axis = axis_of(dim, y.ndim, "trapezoid")
    return (y.sum(axis) - (y.select(axis, 0) + y.select(axis, -1)) * 0.5) * (1 if dx is None else dx)


@public()
def trapz(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral by the trapezoidal rule; see `trapezoid`."""
    return trapezoid(y, x, dx=dx, dim=dim)


@public()
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the cumulative integrals by the trapezoidal rule, up to the second and each later sample; see `trapezoid`.

    Example:
        >>> torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))
        tensor([ 3.0000, 10.5000])
    """
    if x is not None and dx is not None:
        raise TypeError("cumulative_trapezoid() received an invalid combination of arguments: both x and dx")
    if x is None:  # scaled before the sum, as in PyTorch
        areas, axis = _areas("cumulative_trapezoid", y, None, (1 if dx is None else dx) / 2, dim)
        return areas.cumsum(axis)
    areas, axis = _areas("cumulative_trapezoid", y, x, None, dim)
    return areas.cumsum(axis) / 2


# Covariances --------------------------------------------------------------------------------------


def _check_variables(name: str, input: Any) -> None:
    if input.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )


def _check_weights(name: str, weights: Tensor, count: int, integral: bool) -> None:
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights.dtype.is_floating_point is integral or weights.dtype.name == "bool":
        raise RuntimeError(
            f"cov(): expected {name} to have {'integral' if integral else 'floating point'} dtype but got {name} with "
            f"{weights.dtype.tensor_name} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if (weights._array < 0).any():
        raise RuntimeError(f"cov(): {name} cannot be negative")


@public(method=True)
@per_example("fweights", "aweights")
def cov(
    input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
) -> Tensor:
    """Return the covariance matrix of variables.

    Args:
        input: `(variables, observations)`, or the observations of one variable.
        correction: is subtracted from the number of observations; with 1 the estimate is unbiased.
        fweights: the frequency of each observation, an integer.
        aweights: the weight of each observation.

    Example:
        >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    _check_variables("cov", input)
    if input.dtype.name == "bool":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape((1, -1)) if input.ndim < 2 else input
    count = x.shape[1]
    weights: Any = None
    if fweights is not None:
        _check_weights("fweights", fweights, count, True)
        weights = fweights
    if aweights is not None:
        _check_weights("aweights", aweights, count, False)
        weights = aweights if weights is None else weights * aweights
    total: Any = count if weights is None else weights.sum()
    if weights is not None and not total.item():
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    mean = (x if weights is None else x * weights).sum(1) / total
    if weights is not None and aweights is not None and correction:
        degrees = total - correction * (weights * aweights).sum() / total
    else:
        degrees = total - correction
    if degrees <= 0:
        warn("cov(): degrees of freedom is <= 0")
        degrees = 0
    centred = x - mean.unsqueeze(1)
    weighted = centred if weights is None else centred * weights.to(centred.dtype)
    return (mm(centred, weighted.t().conj()) / degrees).squeeze()


@public(method=True)
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation coefficients of variables: `cov` divided by the standard deviations.

    Example:
        >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
        tensor([[ 1., -1.],
                [-1.,  1.]])
    """
    _check_variables("corrcoef", input)
    covariances = cov(input)
    if not covariances.ndim:
        return covariances / covariances
    deviations = sqrt(covariances.diagonal())
    out = covariances / deviations.unsqueeze(1) / deviations.unsqueeze(0)
    if out.dtype.is_complex:
        return complexes.complex(clamp(out.real, -1, 1), clamp(out.imag, -1, 1))
    return clamp(out, -1, 1)


# Low rank -----------------------------------------------------------------------------------------


def _range_of(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Return orthonormal columns that approximately span the range of `A - M`.

    Source: Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithm 4.4.
    """

    def product(x: Tensor, transposed: bool = False) -> Tensor:
        result = matmul(A.mH if transposed else A, x)
        return result if M is None else result - matmul(M.mH if transposed else M, x)

    basis = autocasting(decompose.qr)(product(randn(A.shape[-1], q, dtype=A.dtype))).Q
    for _ in builtins.range(niter):
        basis = autocasting(decompose.qr)(product(basis, True)).Q
        basis = autocasting(decompose.qr)(product(basis)).Q
    return basis


@public(python=True)
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return `(U, S, V)`: approximations of the q largest singular values of `A - M` and their singular vectors.

    They are computed by random projection.

    Source: Halko, Martinsson and Tropp, "Finding structure with randomness" (2009), algorithm 5.1.

    Args:
        A: `(..., m, n)`.
        q: the number of singular values, or a few more than needed.
        M: is subtracted from A; it broadcasts to the shape of A.

    Example:
        >>> torch.svd_lowrank(torch.tensor([[3.0, 0.0], [0.0, 0.0]]), q=1)[1]
        tensor([3.])
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    m, n = A.shape[-2:]
    if M is not None:
        M = M.broadcast_to(A.shape)
    if m < n:
        A, M = A.mH, None if M is None else M.mH
    basis = _range_of(A, q, niter, M)
    small = matmul(basis.mH, A)
    if M is not None:
        small = small - matmul(basis.mH, M)
    u, values, vh = autocasting(decompose.svd)(small, False)
    u, v = matmul(basis, u), vh.mH
    return (v, values, u) if m < n else (u, values, v)


@public(python=True)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """Return `(U, S, V)` of a principal component analysis of samples (rows): `svd_lowrank` of A minus its mean row.

    The columns of V approximate the principal directions.

    Args:
        A: the samples, `(..., m, n)`.
        q: the number of components; the smallest of 6, m and n by default.

    Example:
        >>> torch.pca_lowrank(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]), q=1)[1]
        tensor([1.4142])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter)


@public(binds=True)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """Return the k largest (or smallest) eigenvalues, `(..., k)`, of a symmetric A or of `A x = B x e`.

    The eigenvectors are the second result. Both are computed directly by `linalg.eigh`, so the arguments that control
    PyTorch's iteration have no effect.

    Args:
        A: `(..., m, m)`.
        B: symmetric positive-definite; the identity by default.
        X: PyTorch's initial guess; only its number of columns is used.
        n, iK, niter, tol, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams: have no effect.

    Example:
        >>> torch.lobpcg(torch.tensor([1.0, 3.0, 2.0]).diag(), k=1)[0]
        tensor([3.])
    """
    check_matrix("lobpcg", A, "A")
    if k is None:
        k = 1 if X is None else X.shape[-1]
    if A.shape[-1] < 3 * k:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={A.shape[-1]}) is smaller than 3 x the "
            f"number of requested eigenpairs (={k})"
        )
    if B is None:
        values, vectors = autocasting(decompose.eigh)((A + A.mH) / 2)
    else:
        factor = autocasting(decompose.cholesky)(B)
        half = solve.solve_triangular(factor, A, upper=False)
        reduced = solve.solve_triangular(factor, half.mH, upper=False)
        values, vectors = autocasting(decompose.eigh)((reduced + reduced.mH) / 2)
        vectors = solve.solve_triangular(factor.mH, vectors, upper=True)
    if largest is None or largest:
        return flip(values[..., -k:], (-1,)), flip(vectors[..., -k:], (-1,))
    return values[..., :k], vectors[..., :k]
