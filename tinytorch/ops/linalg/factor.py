"""Matrix factorizations, determinants, norms and products: one half of `torch.linalg`.

The other half, inverses and linear systems, is `solve`. The kernels call LAPACK through `np.linalg`, on batches of
matrices. Each formula is Tensor code, so there are derivatives of every order; outputs that a formula uses (`out0` …)
are differentiable, too. Arguments of a wrong shape or dtype raise RuntimeError, as in PyTorch.

Sources of the formulas: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Townsend,
"Differentiating the singular value decomposition" (2016); Walter and Lehmann, "Algorithmic differentiation of linear
algebra functions" (2010).
"""

from __future__ import annotations

import builtins
import math
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import decompose as kernels
from tinytorch.kernels import products
from tinytorch.kernels.decompose import LinAlgError
from tinytorch.kernels.dtypes import bool as bool_
from tinytorch.kernels.meta import known
from tinytorch.kernels.reduce import axes_of
from tinytorch.ops import return_types
from tinytorch.ops.arguments import also_by, not_implemented, op_of
from tinytorch.ops.complex import complex as make_complex
from tinytorch.ops.complex import conj, imag
from tinytorch.ops.create import ones_like, zeros
from tinytorch.ops.join import broadcast_tensors, cat
from tinytorch.ops.linalg.products import vdot
from tinytorch.ops.linalg.solve import (
    check_batches,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_sides,
    check_system,
    half_name,
    identity,
    inverse_info,
    raise_first,
    solve_ex,
    triangular,
    zeros_of,
)
from tinytorch.ops.masks import where
from tinytorch.ops.rearrange import constant_pad, tril, triu
from tinytorch.ops.reduce import vector_norm, widened_norm
from tinytorch.ops.register import autocasting, public
from tinytorch.ops.shape import diag_embed, real
from tinytorch.ops.shape import diagonal as _diagonal

# Determinants -------------------------------------------------------------------------------------


def _column(x: Any) -> Any:
    """Return a batch of numbers with two further dimensions, so that it broadcasts with a batch of matrices."""
    return x[..., None, None]


def _det_x(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    if not known(np.all, out._array):
        return _column(g) * _cofactors(x)
    return _column(g * out) * inverse_info(x)[0].mT


def _cofactors(x: Tensor) -> Tensor:
    """Return the matrices of cofactors, by products of all singular values but one: also for singular matrices."""
    u, s, vh = _svd(x, False)
    n = x.shape[-1]
    others = s[..., None, :].expand((*s.shape[:-1], n, n))
    others = where(identity(x, n) == 1, 1.0, others).prod(-1)
    sign = det(u) * det(vh)
    return _column(sign) * conj((u * others[..., None, :]) @ vh)


@op(np.linalg.det, batch="leading", name="LinalgDet", x=_det_x, complex=HOLOMORPHIC)
def _det(x: Any) -> Any:
    """Return the determinants."""


@public(method=True)
@public("linalg.det", out="exact")
@also_by(A="input")  # (the parameter of `linalg.det`, which is the same function)
def det(input: Tensor) -> Tensor:
    """Return the determinant of a square matrix, or of each matrix of a batch.

    Example:
        >>> torch.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.)
    """
    check_matrix("linalg.det", input, kernel=half_name(input, "lu_cpu"))
    return _det(input)


def _slogdet_x(g: Any, x: Tensor, out0: Tensor) -> Any:
    """Return the gradient of the logarithm; of complex matrices also that of the sign, which turns with the phase."""
    factor = g[1]
    if g[0] is not None and out0.dtype.is_complex:
        turned = imag(g[0] * conj(out0))
        factor = make_complex(zeros_of(turned) if factor is None else factor, turned)
    return None if factor is None else _column(factor) * inverse_info(x)[0].mH


_slogdet = op_of(kernels.slogdet, batch="leading", name="LinalgSlogdet", outputs=2, complex=OWN, x=_slogdet_x)


@public("linalg.slogdet", out="exact")
def slogdet(A: Tensor) -> Any:
    """Return `(sign, logabsdet)`: the sign of the determinant, and the logarithm of its magnitude (without overflow).

    The sign of a complex number is the number divided by its magnitude.

    Example:
        >>> torch.linalg.slogdet(torch.eye(2) * -1e30).logabsdet
        tensor(138.1551)
    """
    check_matrix("linalg.slogdet", A)
    return return_types.linalg_slogdet(_slogdet(A))


@public(method=True)
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant: NaN if a real determinant is negative, -inf if it is 0.

    Example:
        >>> torch.logdet(torch.eye(3) * 2)
        tensor(2.0794)
    """
    check_matrix("logdet", input)
    sign, logarithm = _slogdet(input)
    if sign.dtype.is_complex:
        return sign.log() + logarithm
    return where(sign == -1, math.nan, logarithm)


# Norms --------------------------------------------------------------------------------------------


def _two_axes(function: str, dim: Any, ndim: int) -> tuple[int, int]:
    """Return the two dimensions of matrices as numbers from 0."""
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise RuntimeError(f"{function}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    for axis in dims:
        axes_of(axis, ndim, function)
    first, second = (axis % ndim for axis in dims)
    if first == second:
        raise RuntimeError(f"{function}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return first, second


def _extreme(x: Tensor, largest: bool, dim: int, keepdim: bool) -> Tensor:
    """Return the maximum (0 for no elements) or the minimum along a dimension."""
    if largest and not x.shape[dim]:
        return x.detach().sum(dim, keepdim)
    return x.amax(dim, keepdim) if largest else x.amin(dim, keepdim)


@public("linalg.matrix_norm", out="matrix_norm")
def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return a norm of a matrix, or of each matrix of a batch.

    Args:
        ord: "fro" (the square root of the sum of squares), "nuc" (the sum of the singular values), 2 and -2 (the
            largest and the smallest singular value), 1 and -1 (the largest and the smallest sum of the magnitudes in
            a column), inf and -inf (in a row).

    Example:
        >>> x = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
        >>> torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, "nuc"), torch.linalg.matrix_norm(x, 2)
        (tensor(5.), tensor(7.), tensor(4.))
    """
    name = "linalg.matrix_norm"
    if not isinstance(dim, (tuple, list)):
        raise TypeError(f"linalg_matrix_norm(): argument 'dim' must be tuple of ints, not {type(dim).__name__}")
    check_matrix(name, input, "input", square=False, low=True)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif builtins.abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    rows, columns = _two_axes(name, dim, input.ndim)
    if ord == "nuc" or ord in (2, -2):
        check_floating(name, input)
    if dtype is not None:
        input = widened_norm(name, input, dtype)
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim)
    if ord == "nuc" or ord in (2, -2):
        order = [*[k for k in builtins.range(input.ndim) if k not in (rows, columns)], rows, columns]
        values = autocasting(svdvals)(input.permute(order))
        result = values.sum(-1, keepdim) if ord == "nuc" else _extreme(values, ord > 0, -1, keepdim)
        if keepdim:
            result = result.unsqueeze(-1).permute([order.index(k) for k in range(input.ndim)])
        return result
    if builtins.abs(ord) == 1:
        rows, columns = columns, rows
    sums = vector_norm(input, 1, columns, keepdim)
    return _extreme(sums, ord > 0, rows if keepdim or rows < columns else rows - 1, keepdim)


@public("linalg.norm", out="matrix_norm")
def norm(input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return a norm of vectors or matrices.

    Args:
        ord: see `matrix_norm` and `vector_norm`; None is the 2-norm of all elements as one vector.
        dim: one dimension for norms of vectors, two for norms of matrices. None stands for all dimensions; if `ord` is
            not None, the input must then be a vector or a matrix.

    Example:
        >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
        tensor([5., 0.])
    """
    if isinstance(dim, (tuple, list)) and len(dim) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}")
    by_name = isinstance(ord, str)
    if ord is not None and dim is None and (input.ndim > 2 or (input.ndim == 0 and not by_name)):
        raise RuntimeError(
            f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
        )
    if by_name:
        pair = (dim,) if isinstance(dim, int) else (-2, -1) if dim is None else dim
        return matrix_norm(input, ord, pair, keepdim, dtype=dtype)
    count = input.ndim if dim is None else len(dim) if isinstance(dim, (tuple, list)) else 1
    if ord is not None and count == 2:
        return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


@public("linalg.cond", out="safe linalg, copied", autocast="float32")
def cond(input: Tensor, p: Any = None) -> Tensor:
    """Return the condition number: the norm of a matrix times the norm of its inverse; inf for a singular matrix.

    Args:
        input: `(..., n, n)`; for `p` None, 2 and -2, `(..., m, n)`.
        p: the norm, see `matrix_norm`; None is 2.

    Example:
        >>> torch.linalg.cond(torch.tensor([[1.0, 0.0], [0.0, 4.0]]))
        tensor(4.)
    """
    if input.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    valid = p in ("fro", "nuc") if isinstance(p, str) else p is None or builtins.abs(p) in (1, 2, math.inf)
    if not valid:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or p in (2, -2):
        values = svdvals(input)
        if not values.shape[-1]:
            return values.detach().sum(-1)
        largest, smallest = values[..., :1], values[..., -1:]
        return (smallest / largest if p == -2 else largest / smallest).squeeze(-1)
    shown = p if isinstance(p, str) else f"{p:g}"
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.cond(ord={shown}): A must be batches of square matrices, but they are {input.shape[-2]} by "
            f"{input.shape[-1]} matrices"
        )
    check_matrix("linalg.cond", input, "input")
    if not input.shape[-1]:
        return zeros(input.shape[:-2], dtype=input.dtype.to_real())
    if p == "nuc":
        values = svdvals(input)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = inverse_info(input)
    number = where(info != 0, math.inf, matrix_norm(input, p) * matrix_norm(inverse, p))
    return number.nan_to_num(math.inf, math.inf, -math.inf)


# Singular values ----------------------------------------------------------------------------------


def _antisymmetric(x: Tensor) -> Tensor:
    return x - x.mH


def _phases(x: Tensor) -> Tensor:
    """Return the imaginary parts of the diagonals: how much a function depends on the phases of vectors."""
    return imag(_diagonal(x, 0, -2, -1))


def _imaginary(x: Tensor) -> Tensor:
    return make_complex(zeros_of(x), x)


def _without_diagonal(x: Tensor) -> Tensor:
    return x * (1 - identity(x, x.shape[-1]))


def _check_phases(name: str, what: str, whole: str, *phases: Tensor) -> None:
    """Raise PyTorch's error if a function depends on phases of vectors, which the decomposition leaves open."""
    first, second = phases[0]._array, phases[-1]._array if len(phases) > 1 else 0
    if known(lambda x, y: (~(np.abs(x + y) <= 1e-2 + 1e-2 * np.abs(y))).any(), first, second):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            f"loss function depends on this {whole}."
        )


def _svd_x(g: Any, out0: Tensor, out1: Tensor, out2: Tensor) -> Tensor:
    gu, gs, gvh = g
    s = out1
    m, n, k = out0.shape[-2], out2.shape[-1], s.shape[-1]
    u, vh = out0[..., :k], out2[..., :k, :]
    if gu is None and gvh is None:
        return (u * gs[..., None, :]) @ vh
    phases: list[Tensor] | None = [] if u.dtype.is_complex else None
    rows, columns = s[..., :, None], s[..., None, :]
    gaps = (columns - rows) * (columns + rows) + identity(s, k)
    inner = None if gs is None else diag_embed(gs)
    if gu is not None:
        gu = gu[..., :k]
        product = _antisymmetric(u.mH @ gu)
        term = product / gaps * columns
        if phases is not None:  # (the phases of the vectors of a pair turn in opposite directions)
            phases.append(_phases(product))
            term = _without_diagonal(term) + diag_embed(_imaginary(phases[-1] / (4 * s)))
        inner = term if inner is None else inner + term
    if gvh is not None:
        gvh = gvh[..., :k, :]
        product = _antisymmetric(vh @ gvh.mH)
        term = rows * (product / gaps)
        if phases is not None:
            phases.append(_phases(product))
            term = _without_diagonal(term) - diag_embed(_imaginary(phases[-1] / (4 * s)))
        inner = term if inner is None else inner + term
    assert inner is not None
    if phases is not None:
        _check_phases("svd_backward", "singular vectors", "phase term, making it ill-defined", *phases)
    left = u @ inner
    if m > k and gu is not None:
        scaled = gu / columns
        left = left + scaled - u @ (u.mH @ scaled)
    gradient = left @ vh
    if n > k and gvh is not None:
        scaled = gvh / rows
        gradient = gradient + u @ (scaled - (scaled @ vh.mH) @ vh)
    return gradient


_svd = op_of(kernels.svd, batch="leading", name="LinalgSvd", outputs=3, x=_svd_x, complex=OWN)


def _svdvals_x(g: Tensor, x: Tensor) -> Tensor:
    u, _, vh = _svd(x, False)
    return (u * g[..., None, :]) @ vh


_svdvals = op_of(kernels.svdvals, batch="leading", name="LinalgSvd", x=_svdvals_x, complex=OWN)


@public("linalg.svd", out="exact", autocast="float32")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return the singular value decomposition `A = U diag(S) Vh`: a named tuple `(U, S, Vh)`, S in descending order.

    The gradients of U and Vh are finite only if all singular values differ, and meaningful only for functions that do
    not depend on the signs of singular vectors; those of complex vectors exist only for functions that do not depend on
    the phases. With `full_matrices`, the columns of U and the rows of Vh beyond the smaller size have no gradient.

    Args:
        A: `(..., m, n)`.
        full_matrices: return U of shape `(m, m)` and Vh of shape `(n, n)`; otherwise `(m, k)` and `(k, n)`, where k is
            the smaller of m and n.
        driver: must be None; PyTorch supports other values for GPUs alone.

    Example:
        >>> torch.linalg.svd(torch.tensor([[0.0, 3.0], [2.0, 0.0]])).S
        tensor([3., 2.])
    """
    check_matrix("linalg.svd", A, square=False, kernel=half_name(A, "linalg_svd_cpu"))
    _no_driver(driver)
    return return_types.linalg_svd(_svd(A, builtins.bool(full_matrices)))


def _no_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@public("linalg.svdvals", out="exact", autocast="float32")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, in descending order.

    Example:
        >>> torch.linalg.svdvals(torch.tensor([[0.0, 3.0], [2.0, 0.0]]))
        tensor([3., 2.])
    """
    check_matrix("linalg.svd", A, square=False, kernel=half_name(A, "linalg_svd_cpu"))
    _no_driver(driver)
    return _svdvals(A)


# Eigenvalues --------------------------------------------------------------------------------------


def _eigh_x(g: Any, out0: Tensor, out1: Tensor) -> Tensor:
    gl, gv = g
    values, vectors = out0, out1
    if gv is None:
        return (vectors * gl[..., None, :]) @ vectors.mH
    gaps = values[..., None, :] - values[..., :, None] + identity(values, values.shape[-1])
    product = vectors.mH @ gv
    inner = _antisymmetric(product) / gaps / 2
    if vectors.dtype.is_complex:
        _check_phases("linalg_eigh_backward", "eigenvectors", "quantity, so it is ill-defined", _phases(product))
        inner = _without_diagonal(inner)
    if gl is not None:
        inner = inner + diag_embed(gl)
    return vectors @ inner @ vectors.mH


_eigh = op_of(kernels.eigh, batch="leading", name="LinalgEigh", outputs=2, x=_eigh_x, complex=OWN)


def _eigvalsh_x(g: Tensor, x: Tensor, lower: bool) -> Tensor:
    vectors = _eigh(x, lower)[1]
    return (vectors * g[..., None, :]) @ vectors.mH


_eigvalsh = op_of(kernels.eigvalsh, batch="leading", name="LinalgEigh", x=_eigvalsh_x, complex=OWN)


def _is_lower(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


@public("linalg.eigh", out="exact", autocast="float32")
def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """Return a named tuple `(eigenvalues, eigenvectors)` of a Hermitian (if it is real: symmetric) matrix.

    The eigenvalues are real, in ascending order; the eigenvectors are the columns of a matrix. The gradient of the
    eigenvectors is finite only if all eigenvalues differ, and meaningful only for functions that do not depend on the
    signs of the eigenvectors; that of complex vectors exists only for functions that do not depend on the phases.

    Args:
        input: `(..., n, n)`, of which one triangle is read.
        UPLO: that triangle: "L", the lower one, or "U", the upper one.

    Example:
        >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        tensor([1., 3.])
    """
    check_matrix("linalg.eigh", input, "input", kernel="linalg_eigh_cpu")
    return return_types.linalg_eigh(_eigh(input, _is_lower(UPLO)))


@public("linalg.eigvalsh", out="exact", autocast="float32")
def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of a Hermitian matrix in ascending order; see `eigh`.

    Example:
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    check_matrix("linalg.eigh", input, "input", kernel="linalg_eigh_cpu")
    return _eigvalsh(input, _is_lower(UPLO))


def _eig_x(g: Any, out0: Tensor, out1: Tensor) -> Tensor:
    """Return the gradient by those of the eigenvalues and of the eigenvectors, which have the length 1."""
    gl, gv = g
    vectors = out1
    adjoint = vectors.mH
    if gv is None:
        return solve_ex(adjoint, gl[..., None] * adjoint, check_errors=True)[0]
    product = adjoint @ gv
    diagonal = _diagonal(product, 0, -2, -1)
    _check_phases("linalg_eig_backward", "eigenvectors", "quantity, so it is ill-defined", imag(diagonal))
    gaps = conj(out0[..., None, :] - out0[..., :, None])
    unit = identity(out0, out0.shape[-1])
    inner = _without_diagonal((product - (adjoint @ vectors) * real(diagonal)[..., None, :]) / (gaps + unit))
    if gl is not None:
        inner = inner + diag_embed(gl)
    return solve_ex(adjoint, inner @ adjoint, check_errors=True)[0]


_eig = op_of(kernels.eig, batch="leading", name="LinalgEig", outputs=2, x=_eig_x, complex=OWN)
_eigvals = op_of(
    kernels.eigvals, batch="leading", name="LinalgEig", x=lambda g, x: _eig_x((g, None), *_eig(x)), complex=OWN
)


def _check_eig(input: Any) -> None:
    if input.ndim > 1 and not (input.is_floating_point() or input.is_complex()):
        raise RuntimeError(f"Unknown Complex ScalarType for {input.dtype.tensor_name}")
    check_matrix("linalg.eig", input, "input", kernel=half_name(input, "linalg_eig_out_cpu"))


@public("linalg.eig", out="eig", autocast="float32")
def eig(input: Tensor) -> Any:
    """Return a named tuple `(eigenvalues, eigenvectors)` of a square matrix, as complex numbers.

    The eigenvalues are in no particular order; the eigenvectors, of length 1, are the columns of a matrix. The gradient
    of the eigenvectors is finite only if all eigenvalues differ, and exists only for functions that do not depend on
    the phases of the eigenvectors. For Hermitian matrices `eigh` is faster and more accurate.

    Raises:
        RuntimeError: the matrices are not square; an element is infinite or NaN; in backward, the function depends on
            the phases.

    Example:
        >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
        tensor([0.+1.j, 0.-1.j])
    """
    _check_eig(input)
    return return_types.linalg_eig(_eig(input))


@public("linalg.eigvals", out="eig", autocast="float32")
def eigvals(input: Tensor) -> Tensor:
    """Return the eigenvalues of a square matrix, as complex numbers; see `eig`.

    Example:
        >>> torch.linalg.eigvals(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))
        tensor([0.+1.j, 0.-1.j])
    """
    _check_eig(input)
    return _eigvals(input)


# Cholesky -----------------------------------------------------------------------------------------


def _cholesky_x(g: Tensor, out: Tensor, upper: bool) -> Tensor:
    if upper:
        g, out = g.mH, out.mH
    inner = tril(out.mH @ g)
    inner = inner + tril(inner, -1).mH  # twice the Hermitian part of the lower triangle with half its diagonal
    return 0.5 * triangular(out, triangular(out.mH, inner, True, False), False, False, False)


_cholesky = op_of(kernels.cholesky, batch="leading", name="LinalgCholeskyEx", x=_cholesky_x, complex=OWN)
_cholesky_info = op_of(
    kernels.cholesky_info,
    batch="leading",
    name="LinalgCholeskyEx",
    outputs=2,
    nondiff=(1,),
    complex=OWN,
    x=lambda g, out0, upper: _cholesky_x(g[0], out0, upper),
)


@op(kernels.cholesky, batch="leading", name="Cholesky", x=_cholesky_x, complex=OWN)
def old_cholesky(x: Any, upper: bool, name: str) -> Any:
    """Return the Cholesky factor, for `torch.cholesky`."""


@public("linalg.cholesky", out="exact", autocast="float32")
def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L of `A = L L^H`, for a Hermitian positive-definite A.

    Args:
        input: A, `(..., n, n)`, of which the lower triangle is read.
        upper: read the upper triangle and return the U of `A = U^H U`.

    Raises:
        LinAlgError: a matrix is not positive-definite.

    Example:
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    check_matrix("linalg.cholesky", input, "input", kernel=half_name(input, "cholesky_cpu"))
    return _cholesky(input, builtins.bool(upper), "linalg.cholesky")


@public("linalg.cholesky_ex", out="exact", autocast="float32")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return `(L, info)`: the Cholesky factor and, per matrix, 0 or the order of the first non-positive leading minor.

    Example:
        >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix("linalg.cholesky", input, "input", kernel=half_name(input, "cholesky_cpu"))
    factor, info = _cholesky_info(input, builtins.bool(upper))
    if check_errors:
        raise_first(
            info,
            "linalg.cholesky_ex: {which}The factorization could not be completed because the input is not "
            "positive-definite (the leading minor of order {k} is not positive-definite).",
        )
    return return_types.linalg_cholesky_ex((factor, info))


# QR -----------------------------------------------------------------------------------------------


def _qr_x(g: Any, x: Tensor, mode: str, out0: Tensor, out1: Tensor) -> Tensor:
    gq, gr = g
    q, r = out0, out1
    m, n = x.shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if m >= n:
        return _qr_tall(gq, gr, q, r)
    # [X | Y] = Q [R | Q^H Y] with a square X
    if gr is None:
        return cat((_qr_tall(gq, None, q, r[..., :m]), zeros_of(x[..., m:])), -1)
    right = gr[..., m:]
    by_right = x[..., m:] @ right.mH
    gq = by_right if gq is None else gq + by_right
    return cat((_qr_tall(gq, gr[..., :m], q, r[..., :m]), q @ right), -1)


def _qr_tall(gq: Any, gr: Any, q: Tensor, r: Tensor) -> Tensor:
    inner = None if gr is None else r @ gr.mH
    if gq is not None:
        by_q = gq.mH @ q
        inner = -by_q if inner is None else inner - by_q
    assert inner is not None
    if inner.dtype.is_complex:  # (R has a real diagonal)
        inner = inner - diag_embed(_imaginary(_phases(inner)))
    inner = q @ (tril(inner) + tril(inner, -1).mH)
    if gq is not None:
        inner = inner + gq
    return triangular(r, inner.mH, True, False).mH


_qr = op_of(kernels.qr, batch="leading", name="LinalgQr", outputs=2, x=_qr_x, complex=OWN)


def _r_has_no_gradient(g: Any) -> Any:
    raise RuntimeError(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
        "linalg.qr(A, mode='reduced') if you are going to require gradients."
    )


_only_r = op_of(kernels.only_r, batch="leading", name="LinalgQr", outputs=2, x=_r_has_no_gradient, complex=OWN)


@public("linalg.qr", out="exact", autocast="float32")
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Return a named tuple `(Q, R)` with `A = Q R`, where Q has orthonormal columns and R is upper triangular.

    Args:
        A: `(..., m, n)`.
        mode: "reduced" (Q is `(m, k)` and R `(k, n)`, where k is the smaller of m and n), "complete" (Q is `(m, m)`)
            or "r" (only R is computed).

    Raises:
        RuntimeError: A is not a matrix of float32 or float64; the mode does not exist; in backward, for the modes
            without a gradient: "complete" with m > n, and "r".

    Example:
        >>> q, r = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.allclose(q @ r, torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        True
    """
    check_matrix("linalg.qr", A, square=False, kernel=half_name(A, "geqrf_cpu"))
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return return_types.linalg_qr(_only_r(A))
    return return_types.linalg_qr(_qr(A, mode))


# Householder reflections --------------------------------------------------------------------------


def _reflections_x(g: Tensor, x: Tensor, tau: Tensor, c: Tensor, left: bool, transpose: bool) -> tuple[Tensor, Tensor]:
    """Return the gradients of the vectors and factors of Householder reflections in `Q C`, for Q = I - V T V^H.

    V and T are those of `kernels.reflections`: T is M^-1 diag(tau) for M = I + diag(tau) S, S = triu(V^H V, 1).
    """
    if not left:  # (C Q)^H = Q^H C^H
        g, c, transpose = g.mH, c.mH, not transpose
    if transpose:  # g . Q^H C = C . Q g
        g, c = c, g
    m, k = x.shape[-2], tau.shape[-1]
    v = tril(x[..., :k], -1) + identity(x, m, k)
    s = triu(v.mH @ v, 1)
    scaled = tau[..., None] * s
    t = triangular(scaled, diag_embed(tau), True, True)
    inside, outside = c.mH @ v, g.mH @ v
    inner = triangular(scaled.mH, -(outside.mH @ inside), False, True)
    by_tau = (inner * conj(identity(x, k) - s @ t)).sum(-1)
    by_s = triu(-(conj(tau)[..., None] * inner) @ t.mH, 1)
    by_v = v @ (by_s + by_s.mH) - g @ (inside @ t.mH) - c @ (outside @ t)
    return constant_pad(tril(by_v, -1), (0, x.shape[-1] - k)), by_tau


_householder = op_of(
    kernels.householder,
    batch="leading",
    name="LinalgHouseholderProduct",
    joint=lambda g, needs, x, tau: _reflections_x(g, x, tau, identity(x, *x.shape[-2:]), True, False),
    inputs=("x", "tau"),
    complex=OWN,
)


def _reflect_joint(
    g: Tensor, needs: Any, x: Tensor, tau: Tensor, y: Tensor, left: bool, transpose: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    by_x, by_tau, by_y = None, None, None
    if needs[0] or needs[1]:
        by_x, by_tau = _reflections_x(g, x, tau, y, left, transpose)
    if needs[2]:
        by_y = reflect(x, tau, g, left, not transpose)
    return by_x, by_tau, by_y


reflect = op(batch="stacks", name="Ormqr", joint=_reflect_joint, inputs=("x", "tau", "y"), complex=OWN)(kernels.reflect)


def check_reflections(name: str, input: Tensor, tau: Tensor, other: Tensor | None = None) -> None:
    """Raise PyTorch's error unless the factors, and the matrices to reflect, match the vectors `input`."""
    given = [(tau, "tau", 1, "have one dimension less than")]
    given += [] if other is None else [(other, "other", 0, "have the same number of dimensions as")]
    for tensor, argument, fewer, relation in given:
        if input.ndim - tensor.ndim != fewer:
            raise RuntimeError(
                f"{name}: Expected {argument} to {relation} input, but got {argument}.ndim equal to {tensor.ndim} and "
                f"input.ndim is equal to {input.ndim}"
            )
    for tensor, argument, *_ in given:
        batch = list(tensor.shape[: input.ndim - 2])
        if batch != list(input.shape[:-2]):
            raise RuntimeError(
                f"{name}: Expected batch dimensions of {argument} to be equal to input.shape[:-2], but got {batch}"
            )


@public("linalg.householder_product", out="safe torch.linalg", autocast="float32")
def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of the product of Householder reflections, such as those of `geqrf`.

    Args:
        input: `(..., m, n)`, m >= n: the vectors of the reflections below the diagonal (with an implicit 1 on the
            diagonal and 0 above it).
        tau: `(..., k)`, k <= n: the factors of the reflections.

    Example:
        >>> torch.linalg.householder_product(torch.tensor([[1.0], [1.0]]), torch.tensor([1.0]))
        tensor([[ 0.],
                [-1.]])
    """
    name = "torch.linalg.householder_product"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if n < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_reflections(name, input, tau)
    if input.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.tensor_name} does not match input dtype {input.dtype.tensor_name}"
        )
    check_floating(name, input, kernel="orgqr_cpu")
    return _householder(input, tau)


# LU -----------------------------------------------------------------------------------------------


def _lu_x(g: Any, lower: Tensor, upper: Tensor, swaps: Tensor) -> Tensor:
    """Return the gradient of A in `A = P L U` from those of L and U; only the triangles of both factors are read."""
    m, n, k = lower.shape[-2], upper.shape[-1], upper.shape[-2]
    gl = zeros_of(lower) if g[0] is None else tril(g[0], -1)
    gu = zeros_of(upper) if g[1] is None else triu(g[1])
    parts: list[Tensor] = []
    if m > n:  # the lower rows: L2 = A2 U^-1
        below = lower[..., k:, :]
        rest = triangular(upper.mT, gl[..., k:, :], False, False, False)
        gu = gu - triu(below.mT @ rest)
        gl = gl[..., :k, :]
        parts = [rest]
    elif n > m:  # the right columns: U2 = L^-1 A2
        right = upper[..., k:]
        rest = triangular(lower.mT, gu[..., k:], True, True)
        gl = gl - tril(rest @ right.mT, -1)
        gu = gu[..., :k]
        parts = [rest]
    lower, upper = lower[..., :k, :], upper[..., :k]
    unit = tril(lower, -1) + identity(lower, k)
    inner = tril(unit.mT @ gl, -1) + triu(gu @ triu(upper).mT)
    inner = triangular(lower.mT, inner, True, True)
    square = triangular(upper.mT, inner, False, False, False)
    if parts:
        square = cat((square, parts[0]), -2 if m > n else -1)
    return swaps @ square


def _compact_x(g: Any, out0: Tensor, out1: Tensor) -> Tensor:
    k = min(out0.shape[-2:])
    gl, gu, lower, upper = (part for x in (g[0], out0) for part in (x[..., :k], x[..., :k, :]))
    return _lu_x((gl, gu), lower, upper, _permutation(out1, out0.shape[-2], out0.dtype.numpy))


_permutation = op_of(kernels.permutation_matrix, batch="stacks", pivots=None)
_lu = op_of(
    kernels.lu, batch="leading", name="LinalgLuFactorEx", outputs=3, nondiff=(1, 2), x=_compact_x, complex=HOLOMORPHIC
)


def check_lu(name: str, A: Any, pivot: bool) -> None:
    """Raise PyTorch's error if `A` and `pivot` are not valid arguments of an LU factorization."""
    if A.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead")
    check_matrix("linalg.lu_factor", A, square=False, kernel="lu_cpu")
    if not pivot and A._array.size:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


@public("linalg.lu_factor", out="exact")
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the LU decomposition in compact form, for `lu_solve`.

    The result is a named tuple `(LU, pivots)`: `LU` contains L below its diagonal (without the ones on L's diagonal),
    and U on and above it; row i was exchanged with row `pivots[i]`, counted from 1.

    Args:
        A: `(..., m, n)`.
        pivot: must be True.

    Raises:
        RuntimeError: A is not a matrix of float32 or float64; U has a zero on its diagonal.

    Example:
        >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> LU, pivots
        (tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]]), tensor([2, 2], dtype=torch.int32))
    """
    check_lu("torch.lu_factor", A, pivot)
    factors, pivots, info = _lu(A)
    check_nonzero(info)
    return return_types.linalg_lu_factor((factors, pivots))


def check_nonzero(info: Tensor) -> None:
    """Raise PyTorch's error if a U has a zero on its diagonal."""
    try:
        raise_first(
            info,
            "torch.linalg.lu_factor: {which}U[{k},{k}] is zero and using it on lu_solve would result in a division by "
            "zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)",
        )
    except LinAlgError as error:
        raise RuntimeError(str(error)) from None


@public("linalg.lu_factor_ex", out="exact")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return `(LU, pivots, info)`: `info` is, per matrix, 0 or the column (from 1) of the first zero on U's diagonal.

    Example:
        >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_lu("torch.lu_factor", A, pivot)
    result = _lu(A)
    if check_errors:
        check_nonzero(result[2])
    return return_types.linalg_lu_factor_ex(result)


_lu_parts = op_of(
    kernels.lu_parts,
    batch="leading",
    name="LinalgLu",
    outputs=3,
    nondiff=(0,),
    x=lambda g, out0, out1, out2: _lu_x(g[1:], out1, out2, out0),
    complex=HOLOMORPHIC,
)


def _unpack_x(g: Any, x_shape: tuple[int, ...]) -> Tensor:
    m, n = x_shape[-2:]
    gl, gu = g[1], g[2]
    parts = []
    if gl is not None:
        parts.append(constant_pad(tril(gl, -1), (0, n - min(m, n))))
    if gu is not None:
        parts.append(constant_pad(triu(gu), (0, 0, 0, m - min(m, n))))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


@op(
    kernels.lu_unpack,
    batch="stacks",
    name="LuUnpack",
    refuses="tril",
    outputs=3,
    nondiff=(0,),
    x=_unpack_x,
    pivots=None,
    complex=OWN,
)
def unpacked_lu(x: Any, pivots: Any) -> Any:
    """Return the P, L and U of compact LU factors."""


@public("linalg.lu", out="exact")
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return `(P, L, U)` with `A = P L U`: a permutation, a unit lower and an upper triangular matrix; see `lu_factor`.

    Example:
        >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).L
        tensor([[1.0000, 0.0000],
                [0.2500, 1.0000]])
    """
    check_lu("linalg.lu", A, pivot)
    P, L, U = _lu_parts(A)
    return return_types.linalg_lu((P if pivot else P.new_empty(0), L, U))


def _lu_solve_joint(
    g: Tensor, needs: Any, x: Tensor, pivots: Tensor, out: Tensor, left: bool, adjoint: bool
) -> tuple[Any, None, Tensor]:
    """Return the gradients of the factors and of the right side, from that of A and dA = P (dL U + L dU)."""
    gb = _lu_solve(x, pivots, g, left, not adjoint)
    if not needs[0]:
        return None, None, gb
    first, second = (gb, out.mH) if left else (out.mH, gb)
    if adjoint:
        first, second = second.mH, first.mH
    n = x.shape[-1]
    inner = -(_permutation(pivots, n, x.dtype.numpy).mT @ (first @ second))
    unit = tril(x, -1) + identity(x, n)
    return tril(inner @ triu(x).mH, -1) + triu(unit.mH @ inner), None, gb


_lu_solve = op_of(
    kernels.lu_solve,
    batch="stacks",
    name="LinalgLuSolve",
    joint=_lu_solve_joint,
    inputs=("x", "pivots", "y"),
    pivots=None,
    broadcasts=True,
    complex=OWN,
)


@public("linalg.lu_solve", out="exact", autocast="alone")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """Return the solution X of `A X = B`, from the LU factors of A.

    Args:
        LU, pivots: the result of `lu_factor`.
        B: `(..., n, k)`.
        adjoint: use `A^H` in place of A.

    Example:
        >>> factors = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> torch.linalg.lu_solve(*factors, torch.tensor([[2.0], [2.0]]))
        tensor([[1.0000],
                [0.5000]])
    """
    name = "linalg.lu_solve"
    check_floating(f"torch.{name}", LU, low=True)
    check_same_dtype(name, LU=LU, B=B)
    check_matrix(name, LU, "LU", kernel=half_name(LU, "linalg.lu_solve_cpu"))
    check_matrix(name, B, "B", square=False)
    if pivots.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_sides(name, LU, B, left)
    if pivots.ndim and pivots.shape[-1] != LU.shape[-1]:
        raise RuntimeError(f"{name}: Number of pivots per batch should be same as the dimension of the matrix")
    _check_pivots(name, "LU", LU, pivots)
    check_batches(LU, B)
    return _lu_solve(LU, pivots, B, left, adjoint)


def _check_pivots(name: str, argument: str, factors: Tensor, pivots: Tensor) -> None:
    if tuple(pivots.shape) != tuple(factors.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected {argument}.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )


# LDL ----------------------------------------------------------------------------------------------


_ldl = op_of(
    kernels.ldl,
    batch="leading",
    name="NotImplemented",
    outputs=3,
    nondiff=(1, 2),
    x=not_implemented("linalg_ldl_factor_ex"),
    complex=OWN,
)
_no_gradient = not_implemented("linalg_ldl_solve")
_ldl_solve = op_of(
    kernels.ldl_solve, batch="stacks", name="NotImplemented", x=_no_gradient, y=_no_gradient, pivots=None, complex=OWN
)


@public("linalg.ldl_factor_ex", out="exact")
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Return `(LD, pivots, info)`: `info` is, per matrix, 0 or the column (from 1) of the first zero on D's diagonal.

    Example:
        >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix("torch.linalg.ldl_factor_ex", input, "input", kernel=half_name(input, "ldl_factor_kernel_cpu"))
    result = _ldl(input, builtins.bool(hermitian))
    if check_errors:
        raise_first(result[2], "torch.linalg.ldl_factor_ex: {which}D[{k},{k}] is zero")
    return return_types.linalg_ldl_factor_ex(result)


@public("linalg.ldl_factor", out="exact")
def ldl_factor(input: Tensor, *, hermitian: bool = False) -> Any:
    """Return `(LD, pivots)`: the factorization `P L D L^T P^T` of a symmetric matrix, for `ldl_solve`.

    With `hermitian` it is the factorization `P L D L^H P^T` of a Hermitian matrix, which may be complex.

    It is in LAPACK's compact form; D is block diagonal with blocks of one or two rows. There is no gradient.

    Args:
        input: `(..., n, n)`, of which the lower triangle is read.
        hermitian: the matrices are Hermitian, not symmetric; has no effect on real ones.

    Raises:
        RuntimeError: the matrices are not square, or not of float32 or float64; a matrix is singular.

    Example:
        >>> torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
        tensor([[2.0000, 0.0000],
                [0.5000, 2.5000]])
    """
    factors, pivots, info = ldl_factor_ex(input, hermitian=hermitian)
    if known(np.any, info._array):
        raise RuntimeError(
            f"torch.linalg.ldl_factor: D has a zero on its diagonal (code {int(info._array.max())}): the matrix is "
            "singular"
        )
    return return_types.linalg_ldl_factor((factors, pivots))


@public("linalg.ldl_solve", out="exact")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Return the solution X of `A X = B`, from the LDL factors of A; there is no gradient.

    Args:
        LD, pivots: the result of `ldl_factor`.
        B: `(..., n, k)`; leading dimensions broadcast.

    Example:
        >>> factors = torch.linalg.ldl_factor(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> torch.linalg.ldl_solve(*factors, torch.tensor([[1.0], [2.0]]))
        tensor([[2.],
                [1.]])
    """
    name = "torch.linalg.ldl_solve"
    check_matrix(name, LD, "LD", kernel=half_name(LD, "ldl_solve_kernel_cpu"))
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    check_system(name, B, LD)
    _check_pivots(name, "LD", LD, pivots)
    if pivots.dtype.is_floating_point or pivots.dtype is bool_:
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype.tensor_name}")
    return _ldl_solve(LD, pivots, B, builtins.bool(hermitian))


# Products -----------------------------------------------------------------------------------------


@public("linalg.vecdot", out="vecdot", autocast="low")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the scalar products of vectors along a dimension, the first ones conjugated; other dimensions broadcast.

    Args:
        x, y: tensors of the same floating-point or complex dtype, whose shapes broadcast.

    Example:
        >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    check_floating("linalg.vecdot", x, low=True)
    check_same_dtype("linalg.vecdot", x=x, y=y)
    if x.ndim == y.ndim == 1:
        return vdot(x, y)
    return (conj(x) * y).sum(dim)


_cross = op_of(
    products.cross,
    refuses="cross",
    complex=HOLOMORPHIC,
    name="LinalgCross",
    x=lambda g, y, dim: _cross(y, g, dim),
    y=lambda g, x, dim: _cross(g, x, dim),
    broadcasts=True,
)


@public("linalg.cross", out="exact")
def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the cross products of vectors of three elements along a dimension; the other dimensions broadcast.

    Example:
        >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axes_of(dim, input.ndim, "linalg.cross")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    if input.dtype != other.dtype or input.dtype is bool_:
        broadcast_tensors(input, other)
        if input.dtype is bool_:
            raise NotImplementedError("\"cross\" not implemented for 'Bool'")
        raise RuntimeError(f"expected scalar type {input.dtype.tensor_name} but found {other.dtype.tensor_name}")
    return _cross(input, other, dim)


@public("linalg.diagonal")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return views of the diagonals of matrices: `torch.diagonal` over the last two dimensions.

    Example:
        >>> torch.linalg.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.])
    """
    return _diagonal(A, offset, dim1, dim2)


@public("linalg.vander")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return Vandermonde matrices of vectors: column j is `x ** j`.

    Args:
        x: `(..., n)`.

    Example:
        >>> torch.linalg.vander(torch.tensor([2.0, 3.0]), N=3)
        tensor([[1., 2., 4.],
                [1., 3., 9.]])
    """
    if (x.dtype.itemsize < 4 and x.dtype.is_floating_point) or x.dtype is bool_:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {x.dtype.tensor_name}"
        )
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    return powers(x, count)


def powers(x: Tensor, count: int) -> Tensor:
    """Return the first powers of the elements, along a new last dimension; integers become int64."""
    positive = x[..., None].expand((*x.shape, max(count - 1, 0))).cumprod(-1)
    ones: Tensor = ones_like(x[..., None]).to(positive.dtype)
    return cat((ones, positive), -1) if count > 1 else ones[..., :count]
