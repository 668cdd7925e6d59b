"""Inverses, determinants, systems, factorisations, norms and functions of matrices: `torch.linalg` (floor 3).

The kernels are LAPACK's, through `np.linalg`, over stacks of matrices. Each formula is Tensor code, so there are
derivatives of every order; where an output is in it (`out0` …), that is differentiable too.

Sources of the formulas: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); Murray, "Differentiation of the Cholesky decomposition" (2016); Townsend,
"Differentiating the singular value decomposition" (2016); Walter and Lehmann, "Algorithmic differentiation of linear
algebra functions" (2010); Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch import return_types
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.op import op
from tinytorch.dtypes import bool as bool_
from tinytorch.dtypes import int64
from tinytorch.kernels import decompose as kernels
from tinytorch.kernels.decompose import LinAlgError
from tinytorch.kernels.reduce import axes_of
from tinytorch.ops.create import eye, ones_like, zeros, zeros_like
from tinytorch.ops.index import where
from tinytorch.ops.linalg import matmul
from tinytorch.ops.reduce import vector_norm
from tinytorch.ops.shape import also_by, broadcast_tensors, cat, diag_embed, stack, tril, triu
from tinytorch.ops.shape import diagonal as _diagonal

__all__ = [
    "det", "logdet", "matrix_exp", "matrix_power",
]  # fmt: skip


# Checks -------------------------------------------------------------------------------------------


def check_matrix(
    function: str,
    x: Any,
    argument: str = "A",
    *,
    square: bool = True,
    position: int = 1,
    kernel: str | None = None,
    low: bool = False,
) -> None:
    """Raise PyTorch's error unless `x` is a stack of (square) matrices of float32 or float64.

    Args:
        function: the public name, such as "linalg.inv".
        x: the argument.
        argument, position: which argument it is.
        square: whether the matrices must be.
        kernel: the name in PyTorch's message for 16-bit floats, where it has another one.
        low: whether 16-bit floats are fine.
    """
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{function.replace('.', '_')}(): argument '{argument}' (position {position}) must be Tensor, not "
            f"{type(x).__name__}"
        )
    shape = x._array.shape
    if len(shape) < 2:
        raise RuntimeError(
            f"{function}: The input tensor {'B' if argument == 'B' else 'A'} must have at least 2 dimensions."
        )
    if square and shape[-1] != shape[-2]:
        raise RuntimeError(
            f"{function}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
    check_floating(function, x, kernel=kernel, low=low)


def check_floating(
    function: str, x: Tensor, *, kernel: str | None = None, low: bool = False
) -> None:
    """Raise PyTorch's error unless the elements are float32 or float64 (with `low`, any floating type)."""
    kind = x.dtype
    if not kind.is_floating_point:
        if kernel == "linalg_eigh_cpu" or kernel == "lu_cpu":
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.tensor_name}'")
        raise RuntimeError(
            f"{function}: Expected a floating point or complex tensor as input. Got {kind.tensor_name}"
        )
    if kind.itemsize < 4 and not low:
        if kernel is not None:
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.tensor_name}'")
        raise RuntimeError(
            f"{function}: Low precision dtypes not supported. Got {kind.tensor_name}"
        )


def _identity(x: Tensor, n: int) -> Tensor:
    return eye(n, dtype=x.dtype)


def _column(x: Any) -> Any:
    """Return one number per matrix so that it multiplies the matrix."""
    return x[..., None, None]


def _raise_first(info: Tensor, message: Any) -> None:
    """Raise LinAlgError with `message(which, code)` for the first code that is not 0."""
    codes = info._array
    if codes.any():
        flat = codes.reshape(-1)
        k = int(np.flatnonzero(flat)[0])
        raise LinAlgError(message(kernels.batch_words(k if codes.ndim else None), int(flat[k])))


# Inverses and determinants ------------------------------------------------------------------------


def _inverse_x(g: Tensor, out: Tensor) -> Tensor:
    transposed = out.mT
    return -(transposed @ g @ transposed)


@op(name="LinalgInvEx", x=_inverse_x)
def _inverse(x: Any) -> Any:
    return kernels.inverse(x, "linalg.inv")


@op(name="LinalgInvEx", outputs=2, nondiff=(1,), x=lambda g, out0: _inverse_x(g[0], out0))
def _inverse_info(x: Any) -> Any:
    return kernels.inverse_info(x)


def inv(A: Tensor) -> Tensor:
    """Return the inverse of a square matrix, or of each of a stack `(..., n, n)`.

    Raises:
        RuntimeError: the matrices are not square, or not of float32 or float64.
        LinAlgError: a matrix is singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.inv(torch.tensor([[2.0, 1.0], [1.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  2.]])
    """
    check_matrix("linalg.inv", A)
    return _inverse(A)


def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Return the inverses and, per matrix, 0 or the column (from 1) where inverting it failed.

    Args:
        A: `(..., n, n)`.
        check_errors: raise LinAlgError if one fails.

    Returns:
        A named tuple `(inverse, info)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix("linalg.inv", A)
    inverse, info = _inverse_info(A)
    if check_errors:
        _raise_first(
            info,
            lambda which, k: (
                f"linalg.inv_ex: {which}The diagonal element {k} is zero, the inversion could not be "
                "completed because the input matrix is singular."
            ),
        )
    return return_types.linalg_inv_ex((inverse, info))


def _det_x(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    if (out._array == 0).any():
        return _column(g) * _cofactors(x)
    return _column(g * out) * _inverse_info(x)[0].mT


def _cofactors(x: Tensor) -> Tensor:
    """Return the matrices of cofactors, also of singular matrices: by the products of all singular values but one."""
    u, s, vh = _svd(x, False)
    n = x.shape[-1]
    others = s[..., None, :].expand((*s.shape[:-1], n, n))
    others = where(_identity(x, n) == 1, ones_like(others), others).prod(-1)
    sign = det(u) * det(vh)
    return _column(sign) * ((u * others[..., None, :]) @ vh)


@op(name="LinalgDet", x=_det_x)
def _det(x: Any) -> Any:
    return np.linalg.det(x)


@also_by(A="input")  # (the parameter of `linalg.det`, which is the same function)
def det(input: Tensor) -> Tensor:
    """Return the determinant of a square matrix, or of each of a stack.

    Raises:
        RuntimeError: the matrices are not square, or not of float32 or float64.

    Example:
        >>> import tinytorch as torch
        >>> torch.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor(-2.)
    """
    check_matrix("linalg.det", input, kernel=_half_name(input, "lu_cpu"))
    return _det(input)


def _slogdet_x(g: Any, x: Tensor) -> Tensor:
    if g[1] is None:
        return zeros_like(x)
    return _column(g[1]) * _inverse_info(x)[0].mT


@op(name="LinalgSlogdet", outputs=2, x=_slogdet_x)
def _slogdet(x: Any) -> Any:
    return kernels.plain(x, np.linalg.slogdet(x))


def slogdet(A: Tensor) -> Any:
    """Return the sign of the determinant, and the logarithm of its magnitude (which does not overflow).

    Returns:
        A named tuple `(sign, logabsdet)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.slogdet(torch.eye(2) * -1e30).logabsdet
        tensor(138.1551)
    """
    check_matrix("linalg.slogdet", A)
    return return_types.linalg_slogdet(_slogdet(A))


def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant: NaN where that is negative, -inf where it is 0.

    Example:
        >>> import tinytorch as torch
        >>> torch.logdet(torch.eye(3) * 2)
        tensor(2.0794)
    """
    check_matrix("logdet", input)
    sign, logarithm = _slogdet(input)
    return where(sign == -1, math.nan, logarithm)


# Systems ------------------------------------------------------------------------------------------


def _solve_both(g: Tensor, needs: Any, x: Tensor, out: Tensor) -> Any:
    gb = _solve_info(x.mT, g)[0]
    return (-(gb @ out.mT) if needs[0] else None), gb


@op(name="LinalgSolveEx", joint=_solve_both, inputs=("x", "y"), broadcasts=True)
def _solve(x: Any, y: Any) -> Any:
    return kernels.solve(x, y, "torch.linalg.solve")


@op(
    name="LinalgSolveEx",
    joint=lambda g, needs, x, out0: _solve_both(g[0], needs, x, out0),
    inputs=("x", "y"),
    outputs=2,
    nondiff=(1,),
    broadcasts=True,
)
def _solve_info(x: Any, y: Any) -> Any:
    return kernels.solve_info(x, y)


def _system(function: str, A: Any, B: Any, left: bool) -> tuple[Tensor, Tensor, bool]:
    """Return the operands of `solve` checked, as matrices with the unknowns to the right, and whether B is vectors."""
    check_matrix(function, A)
    if not isinstance(B, Tensor):
        raise TypeError(
            f"{function.replace('.', '_')}(): argument 'B' (position 2) must be Tensor, not {type(B).__name__}"
        )
    if A.dtype != B.dtype:
        raise RuntimeError(
            f"{function}: Expected A and B to have the same dtype, but found A of type {A.dtype.tensor_name} and B "
            f"of type {B.dtype.tensor_name} instead"
        )
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    if vector:
        if not left:
            raise RuntimeError(
                f"{function}: Vector broadcasting of the left hand side is not supported for left=False. In this "
                "case linalg.solve is equivalent to B / A.squeeze(-1)"
            )
        B = B.unsqueeze(-1)
    _check_sides(function, A, B, left)
    _check_batches(A, B)
    return A, B, vector


def _check_sides(function: str, A: Tensor, B: Tensor, left: bool) -> None:
    if A.shape[-2] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


def _check_batches(A: Tensor, B: Tensor) -> None:
    a, b = A.shape[:-2], B.shape[:-2]
    for back in range(1, min(len(a), len(b)) + 1):
        if a[-back] != b[-back] and 1 not in (a[-back], b[-back]):
            dim = builtins.max(len(a), len(b)) - back
            raise RuntimeError(
                f"The size of tensor a ({b[-back]}) must match the size of tensor b ({a[-back]}) at non-singleton "
                f"dimension {dim}"
            )


def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return the solution X of `A X = B`, or of `X A = B`.

    Args:
        A: `(..., n, n)`.
        B: `(..., n, k)`, or vectors `(..., n)`; its leading dimensions broadcast with those of `A`.
        left: whether A stands to the left of X.

    Raises:
        RuntimeError: shapes do not match; the dtypes differ, or are not float32 or float64.
        LinAlgError: a matrix is singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    A, B, vector = _system("linalg.solve", A, B, left)
    if not left:
        return _solve(A.mT, B.mT).mT
    solution = _solve(A, B)
    return solution.squeeze(-1) if vector else solution


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return the solution of `A X = B` (or `X A = B`) and, per A, 0 or the column (from 1) of its first zero pivot.

    Returns:
        A named tuple `(result, info)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2, 1)).info
        tensor(1, dtype=torch.int32)
    """
    A, B, vector = _system("linalg.solve", A, B, left)
    solution, info = _solve_info(A, B) if left else _solve_info(A.mT, B.mT)
    if check_errors:
        _raise_first(
            info,
            lambda which, k: (
                f"torch.linalg.solve_ex: {which}The solver failed because the input matrix is singular."
            ),
        )
    solution = (solution.squeeze(-1) if vector else solution) if left else solution.mT
    return return_types.linalg_solve_ex((solution, info))


def _triangular_both(g: Tensor, needs: Any, x: Tensor, out: Tensor, upper: bool, unit: bool) -> Any:
    gb = _triangular(x.mT, g, not upper, unit)
    if not needs[0]:
        return None, gb
    ga = -(gb @ out.mT)
    return (triu(ga, int(unit)) if upper else tril(ga, -int(unit))), gb


@op(
    name="LinalgSolveTriangular",
    joint=_triangular_both,
    inputs=("x", "y"),
    broadcasts=True,
)
def _triangular(x: Any, y: Any, upper: bool, unit: bool) -> Any:
    return kernels.triangular(x, y, upper, unit)


def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return the solution X of `A X = B`, or of `X A = B`, for a triangular A.

    Args:
        input: A, `(..., n, n)`; the other triangle is not read.
        B: `(..., n, k)`.
        upper: which triangle of A counts.
        left: whether A stands to the left of X.
        unitriangular: take the diagonal of A as ones.

    Raises:
        RuntimeError: shapes do not match; the dtypes differ.

    Example:
        >>> import tinytorch as torch
        >>> A = torch.tensor([[1.0, 2.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(A, torch.tensor([[1.0], [4.0]]), upper=True)
        tensor([[-1.],
                [ 1.]])
    """
    name = "linalg.solve_triangular"
    check_matrix(name, input, "input")
    check_matrix(name, B, "B", square=False, position=2)
    if input.dtype != B.dtype:
        raise RuntimeError(
            f"{name}: Expected A and B to have the same dtype, but found A of type {input.dtype.tensor_name} and B "
            f"of type {B.dtype.tensor_name} instead"
        )
    _check_sides(name, input, B, left)
    _check_batches(input, B)
    if left:
        return _triangular(input, B, upper, unitriangular)
    return _triangular(input.mT, B.mT, not upper, unitriangular).mT


# Norms --------------------------------------------------------------------------------------------


def _two(function: str, dim: Any, ndim: int) -> tuple[int, int]:
    dims = tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if len(dims) != 2:
        raise RuntimeError(
            f"{function}: dim must be a 2-tuple. Got {' '.join(str(each) for each in dims)}"
        )
    for each in dims:
        axes_of(each, ndim, function)
    first, second = (each % ndim for each in dims)
    if first == second:
        raise RuntimeError(f"{function}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return first, second


def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Any = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return a norm of a matrix, or of each of a stack.

    Args:
        input: the tensor, of floating point.
        ord: "fro" (the square root of the sum of squares), "nuc" (the sum of the singular values), 2 and -2 (the
            largest and smallest of them), 1 and -1 (the largest and smallest sum of a column's magnitudes), inf and
            -inf (of a row's).
        dim: the two dimensions that are the matrices.
        keepdim: keep these, with length 1.
        dtype: convert the elements to this first.

    Raises:
        RuntimeError: there are no two dimensions, or no such norm.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
        >>> torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, "nuc"), torch.linalg.matrix_norm(x, 2)
        (tensor(5.), tensor(7.), tensor(4.))
    """
    name = "linalg.matrix_norm"
    check_matrix(name, input, "input", square=False, low=True)
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{name}: Order {ord} not supported.")
    elif builtins.abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    rows, columns = _two(name, dim, input.ndim)
    if dtype is not None:
        input = input.to(dtype)
    if ord == "fro":
        return vector_norm(input, 2, (rows, columns), keepdim)
    if ord == "nuc" or builtins.abs(ord) == 2:
        check_floating(name, input)
        values = svdvals(input.movedim((rows, columns), (-2, -1)))
        if ord == "nuc":
            found = values.sum(-1)
        elif not values.shape[-1] and ord > 0:
            found = values.detach().sum(-1)
        else:
            found = values.amax(-1) if ord > 0 else values.amin(-1)
        if keepdim:
            for axis in sorted((rows, columns)):
                found = found.unsqueeze(axis)
        return found
    if builtins.abs(ord) == 1:
        rows, columns = columns, rows
    sums = vector_norm(input, 1, columns, True)
    if not sums.shape[rows] and ord > 0:
        largest = sums.detach().sum(rows, keepdim=True)
    else:
        largest = sums.amax(rows, True) if ord > 0 else sums.amin(rows, True)
    return largest if keepdim else largest.squeeze((rows, columns))


def norm(
    input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """Return a norm of vectors or matrices.

    Args:
        input: the tensor, of floating point.
        ord: see `matrix_norm` and `vector_norm`; None is the 2-norm of all elements taken as one vector.
        dim: one dimension for norms of vectors, two for norms of matrices; None for all, or, with `ord`, for the
            vector or matrix that the input must be.
        keepdim: keep the reduced dimensions, with length 1.
        dtype: convert the elements to this first.

    Raises:
        RuntimeError: there is no such norm; the input is neither a vector nor a matrix and `dim` is not given.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), dim=1)
        tensor([5., 0.])
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"linalg_norm(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    if isinstance(ord, str):
        return matrix_norm(input, ord, (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if ord is not None:
        count = len(dim) if isinstance(dim, (tuple, list)) else 1
        if dim is None:
            if input.ndim not in (1, 2):
                raise RuntimeError(
                    "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                    f"{input.ndim}D."
                )
            count = input.ndim
        elif count not in (1, 2):
            raise RuntimeError(
                f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dim)}"
            )
        if count == 2:
            return matrix_norm(input, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, dim, keepdim, dtype=dtype)


def cond(input: Tensor, p: Any = None) -> Tensor:
    """Return the condition number: the norm of a matrix times that of its inverse; inf if it is singular.

    Args:
        input: `(..., n, n)`; for `p` None, 2 and -2, `(..., m, n)`.
        p: the norm, see `matrix_norm`; None is 2.

    Raises:
        RuntimeError: the matrices are not square; there is no such norm.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.cond(torch.tensor([[1.0, 0.0], [0.0, 4.0]]))
        tensor(4.)
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"linalg_cond(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}"
        )
    if input.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if isinstance(p, str) and p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not isinstance(p, (str, type(None))) and builtins.abs(p) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if p is None or p in (2, -2):
        values = svdvals(input)
        if not values.shape[-1]:
            return values.detach().sum(-1)
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    shown = p if isinstance(p, str) else f"{p:g}"
    if input.shape[-1] != input.shape[-2]:
        raise RuntimeError(
            f"linalg.cond(ord={shown}): A must be batches of square matrices, but they are {input.shape[-2]} by "
            f"{input.shape[-1]} matrices"
        )
    check_matrix("linalg.cond", input, "input")
    if not input.shape[-1]:
        return zeros(input.shape[:-2], dtype=input.dtype)
    if p == "nuc":
        values = svdvals(input)
        return values.sum(-1) * values.reciprocal().sum(-1)
    inverse, info = _inverse_info(input)
    found = matrix_norm(input, p) * matrix_norm(inverse, p)
    return where(info != 0, math.inf, found)


# Singular values ----------------------------------------------------------------------------------


def _antisymmetric(x: Tensor) -> Tensor:
    return x - x.mT


def _svd_x(g: Any, out0: Tensor, out1: Tensor, out2: Tensor) -> Tensor:
    gu, gs, gvh = g
    s = out1
    m, n, k = out0.shape[-2], out2.shape[-1], s.shape[-1]
    u, vh = out0[..., :k], out2[..., :k, :]
    if gu is None and gvh is None:
        return (u * gs[..., None, :]) @ vh
    rows, columns = s[..., :, None], s[..., None, :]
    gaps = (columns - rows) * (columns + rows) + _identity(s, k)
    inner = None if gs is None else diag_embed(gs)
    if gu is not None:
        gu = gu[..., :k]
        term = _antisymmetric(u.mT @ gu) / gaps * columns
        inner = term if inner is None else inner + term
    if gvh is not None:
        gvh = gvh[..., :k, :]
        term = rows * (_antisymmetric(vh @ gvh.mT) / gaps)
        inner = term if inner is None else inner + term
    assert inner is not None
    left = u @ inner
    if m > k and gu is not None:
        scaled = gu / columns
        left = left + scaled - u @ (u.mT @ scaled)
    found = left @ vh
    if n > k and gvh is not None:
        scaled = gvh / rows
        found = found + u @ (scaled - (scaled @ vh.mT) @ vh)
    return found


@op(name="LinalgSvd", outputs=3, x=_svd_x)
def _svd(x: Any, full_matrices: bool) -> Any:
    return kernels.plain(x, np.linalg.svd(x, full_matrices=full_matrices))


def _svdvals_x(g: Tensor, x: Tensor) -> Tensor:
    u, _, vh = _svd(x, False)
    return (u * g[..., None, :]) @ vh


@op(name="LinalgSvd", x=_svdvals_x)
def _svdvals(x: Any) -> Any:
    return np.linalg.svd(x, compute_uv=False)


def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """Return the singular value decomposition `A = U diag(S) Vh`.

    The gradients of U and Vh are finite only where all singular values differ, and mean something only for what does
    not depend on the signs of singular vectors. With `full_matrices`, the columns of U and rows of Vh beyond the
    smaller size have no gradient.

    Args:
        A: `(..., m, n)`.
        full_matrices: whether U is `(m, m)` and Vh `(n, n)`; else `(m, k)` and `(k, n)` for k the smaller size.
        driver: must be None: LAPACK's algorithms are for GPUs to choose.

    Returns:
        A named tuple `(U, S, Vh)`, S in descending order.

    Raises:
        RuntimeError: A is no matrix of float32 or float64.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.svd(torch.tensor([[0.0, 3.0], [2.0, 0.0]])).S
        tensor([3., 2.])
    """
    check_matrix("linalg.svd", A, square=False, kernel=_half_name(A, "linalg_svd_cpu"))
    _no_driver(driver)
    return return_types.linalg_svd(_svd(A, builtins.bool(full_matrices)))


def _half_name(x: Any, kernel: str) -> str | None:
    """Return the name of PyTorch's kernel if `x` has 16-bit floats: then it is in the message."""
    low = isinstance(x, Tensor) and x.dtype.is_floating_point and x.dtype.itemsize < 4
    return kernel if low else None


def _no_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """Return the singular values, in descending order.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.svdvals(torch.tensor([[0.0, 3.0], [2.0, 0.0]]))
        tensor([3., 2.])
    """
    check_matrix("linalg.svd", A, square=False, kernel=_half_name(A, "linalg_svd_cpu"))
    _no_driver(driver)
    return _svdvals(A)


# Eigenvalues --------------------------------------------------------------------------------------


def _eigh_x(g: Any, out0: Tensor, out1: Tensor) -> Tensor:
    gl, gv = g
    values, vectors = out0, out1
    if gv is None:
        return (vectors * gl[..., None, :]) @ vectors.mT
    identity = _identity(values, values.shape[-1])
    gaps = values[..., None, :] - values[..., :, None] + identity
    inner = _antisymmetric(vectors.mT @ gv) / gaps / 2
    if gl is not None:
        inner = inner + diag_embed(gl)
    return vectors @ inner @ vectors.mT


@op(name="LinalgEigh", outputs=2, x=_eigh_x)
def _eigh(x: Any, lower: bool) -> Any:
    return kernels.plain(x, np.linalg.eigh(x, "L" if lower else "U"))


def _eigvalsh_x(g: Tensor, x: Tensor, lower: bool) -> Tensor:
    vectors = _eigh(x, lower)[1]
    return (vectors * g[..., None, :]) @ vectors.mT


@op(name="LinalgEigh", x=_eigvalsh_x)
def _eigvalsh(x: Any, lower: bool) -> Any:
    return np.linalg.eigvalsh(x, "L" if lower else "U")


def _is_lower(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "L"


def eigh(input: Tensor, UPLO: str = "L") -> Any:
    """Return the eigenvalues, ascending, and the eigenvectors (columns) of a symmetric matrix.

    The gradient of the vectors is finite only where all eigenvalues differ, and means something only for what does not
    depend on the vectors' signs.

    Args:
        input: `(..., n, n)`, of which one triangle is read.
        UPLO: which: "L", the lower, or "U".

    Returns:
        A named tuple `(eigenvalues, eigenvectors)`.

    Raises:
        RuntimeError: the matrices are not square, `UPLO` is something else.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
        tensor([1., 3.])
    """
    check_matrix("linalg.eigh", input, "input", kernel="linalg_eigh_cpu")
    return return_types.linalg_eigh(_eigh(input, _is_lower(UPLO)))


def eigvalsh(input: Tensor, UPLO: str = "L") -> Tensor:
    """Return the eigenvalues of a symmetric matrix, ascending; see `eigh`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
        tensor([1., 3.])
    """
    check_matrix("linalg.eigh", input, "input", kernel="linalg_eigh_cpu")
    return _eigvalsh(input, _is_lower(UPLO))


def eig(input: Tensor) -> Any:
    """Raise NotImplementedError: the eigenvalues of a general matrix are complex numbers, which are left out."""
    check_matrix("linalg.eig", input, "input")
    raise NotImplementedError(_COMPLEX.format("eig", "eigh"))


def eigvals(input: Tensor) -> Any:
    """Raise NotImplementedError: the eigenvalues of a general matrix are complex numbers, which are left out."""
    check_matrix("linalg.eigvals", input, "input")
    raise NotImplementedError(_COMPLEX.format("eigvals", "eigvalsh"))


_COMPLEX = (
    "linalg.{0} returns complex numbers, which tinytorch leaves out: for symmetric matrices, whose eigenvalues are "
    "real, use linalg.{1} (torch.linalg.eigh)"
)


# Cholesky -----------------------------------------------------------------------------------------


def _cholesky_x(g: Tensor, out: Tensor) -> Tensor:
    inner = tril(out.mT @ g)
    inner = (
        inner + tril(inner, -1).mT
    )  # twice the symmetric part of the triangle with half its diagonal
    inner = _triangular(out.mT, inner, True, False)
    return 0.5 * _triangular(out.mT, inner.mT, True, False).mT


@op(name="LinalgCholeskyEx", x=_cholesky_x)
def _cholesky(x: Any, name: str) -> Any:
    return kernels.cholesky(x, name)


@op(name="LinalgCholeskyEx", outputs=2, nondiff=(1,), x=lambda g, out0: _cholesky_x(g[0], out0))
def _cholesky_info(x: Any) -> Any:
    return kernels.cholesky_info(x)


def cholesky_factor(function: str, x: Tensor, upper: bool) -> Tensor:
    """Return the Cholesky factor in the name of a function; `upper`: the factor U of `U^T U`, of the upper triangle."""
    if upper:
        return _cholesky(x.mT, function).mT
    return _cholesky(x, function)


def cholesky(input: Tensor, *, upper: bool = False) -> Tensor:
    """Return the lower triangular L of `A = L L^T`, for a symmetric positive-definite A.

    Args:
        input: A, `(..., n, n)`, of which the lower triangle is read.
        upper: read the upper triangle and return the U of `A = U^T U`.

    Raises:
        RuntimeError: the matrices are not square, or not of float32 or float64.
        LinAlgError: one is not positive-definite.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
        tensor([[2., 0.],
                [1., 2.]])
    """
    check_matrix("linalg.cholesky", input, "input", kernel=_half_name(input, "cholesky_cpu"))
    return cholesky_factor("linalg.cholesky", input, upper)


def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """Return the Cholesky factor and, per matrix, 0 or the order of its first minor that is not positive.

    Returns:
        A named tuple `(L, info)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.cholesky_ex(-torch.eye(2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix("linalg.cholesky", input, "input", kernel=_half_name(input, "cholesky_cpu"))
    factor, info = _cholesky_info(input.mT if upper else input)
    if check_errors:
        _raise_first(
            info,
            lambda which, k: (
                f"linalg.cholesky_ex: {which}The factorization could not be completed because the input "
                f"is not positive-definite (the leading minor of order {k} is not positive-definite)."
            ),
        )
    return return_types.linalg_cholesky_ex((factor.mT if upper else factor, info))


# QR -----------------------------------------------------------------------------------------------


def _qr_x(g: Any, x: Tensor, mode: str, out0: Tensor, out1: Tensor) -> Tensor:
    gq, gr = g
    q, r = out0, out1
    m, n = x.shape[-2:]
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and nrows > ncols"
        )
    if m >= n:
        return _qr_tall(gq, gr, q, r)
    # [X | Y] = Q [R | Q^T Y] with a square X
    if gr is None:
        return cat((_qr_tall(gq, None, q, r[..., :m]), zeros_like(x[..., m:])), -1)
    right = gr[..., m:]
    through = x[..., m:] @ right.mT
    gq = through if gq is None else gq + through
    return cat((_qr_tall(gq, gr[..., :m], q, r[..., :m]), q @ right), -1)


def _qr_tall(gq: Any, gr: Any, q: Tensor, r: Tensor) -> Tensor:
    inner = None if gr is None else r @ gr.mT
    if gq is not None:
        through = gq.mT @ q
        inner = -through if inner is None else inner - through
    assert inner is not None
    inner = q @ (tril(inner) + tril(inner, -1).mT)
    if gq is not None:
        inner = inner + gq
    return _triangular(r, inner.mT, True, False).mT


@op(name="LinalgQr", outputs=2, x=_qr_x)
def _qr(x: Any, mode: Any) -> Any:
    return kernels.plain(x, np.linalg.qr(x, mode))


def _r_has_no_gradient(g: Any) -> Any:
    raise RuntimeError(
        "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
        "linalg.qr(A, mode='reduced') if you are going to require gradients."
    )


@op(name="LinalgQr", outputs=2, x=_r_has_no_gradient)
def _only_r(x: Any) -> Any:
    return np.empty_like(x, shape=(0,)), np.linalg.qr(x, "r")


def qr(A: Tensor, mode: str = "reduced") -> Any:
    """Return the decomposition `A = Q R` into orthonormal columns and an upper triangular matrix.

    Args:
        A: `(..., m, n)`.
        mode: "reduced": Q is `(m, k)` and R `(k, n)` for k the smaller size; "complete": Q is `(m, m)`; "r": only R is
            computed.

    Returns:
        A named tuple `(Q, R)`.

    Raises:
        RuntimeError: A is no matrix of float32 or float64; there is no such mode; in backward, where there is no
            gradient: "complete" with m > n, and "r".

    Example:
        >>> import tinytorch as torch
        >>> q, r = torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        >>> torch.allclose(q @ r, torch.tensor([[3.0, 1.0], [4.0, 2.0]]))
        True
    """
    check_matrix("linalg.qr", A, square=False, kernel=_half_name(A, "geqrf_cpu"))
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    if mode == "r":
        return return_types.linalg_qr(_only_r(A))
    return return_types.linalg_qr(_qr(A, mode))


# LU -----------------------------------------------------------------------------------------------


def _lu_x(g: Any, out0: Tensor, out1: Tensor) -> Tensor:
    """Return the gradient of the compact factors: below the diagonal that of L, from there that of U."""
    factors = out0
    m, n = factors.shape[-2:]
    k = min(m, n)
    gl, gu = tril(g[0], -1)[..., :k], triu(g[0])[..., :k, :]
    lower, upper = factors[..., :k, :k], factors[..., :k, :k]
    parts: list[Tensor] = []
    if m > n:  # the rows below: L2 = A2 U^-1
        below = factors[..., k:, :]
        rest = _triangular(upper, gl[..., k:, :].mT, True, False).mT
        gu = gu - triu(below.mT @ rest)
        gl = gl[..., :k, :]
        parts = [rest]
    elif n > m:  # the columns to the right: U2 = L^-1 A2
        right = factors[..., k:]
        rest = _triangular(lower.mT, gu[..., k:], True, True)
        gl = gl - tril(rest @ right.mT, -1)
        gu = gu[..., :k]
        parts = [rest]
    unit = tril(lower, -1) + _identity(factors, k)
    inner = tril(unit.mT @ gl, -1) + triu(gu @ triu(upper).mT)
    inner = _triangular(lower.mT, inner, True, True)
    square = _triangular(upper, inner.mT, True, False).mT
    if parts:
        square = cat((square, parts[0]), -2 if m > n else -1)
    return _unpermuted(square, out1)


def _unpermuted(x: Tensor, pivots: Tensor) -> Tensor:
    """Return P x, for the P of `A = P L U`."""
    return _permutation(pivots, x.shape[-2], x.dtype) @ x


def _permutation(pivots: Tensor, m: int, dtype: Any) -> Tensor:
    rows = kernels.permutation(pivots._array, m)
    return wrap((np.arange(m)[:, None] == rows[..., None, :]).astype(dtype.numpy))


@op(name="LinalgLuFactorEx", outputs=3, nondiff=(1, 2), x=_lu_x)
def _lu(x: Any) -> Any:
    return kernels.lu(x)


def check_lu(name: str, A: Any, pivot: bool) -> None:
    """Raise PyTorch's error unless LU factors of A can be computed."""
    if isinstance(A, Tensor) and A.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(A.shape)} instead"
        )
    check_matrix("linalg.lu_factor", A, square=False, kernel="lu_cpu")
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the LU decomposition in compact form, for `lu_solve`.

    Args:
        A: `(..., m, n)`.
        pivot: must be True.

    Returns:
        A named tuple `(LU, pivots)`: L below the diagonal of `LU` (its own is of ones), U from there; row i was
        exchanged with row `pivots[i]`, counted from 1.

    Raises:
        RuntimeError: A is no matrix of float32 or float64; U has a zero on its diagonal.

    Example:
        >>> import tinytorch as torch
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
    """Raise PyTorch's error for factors with a zero on the diagonal of U."""
    try:
        _raise_first(
            info,
            lambda which, k: (
                f"torch.linalg.lu_factor: {which}U[{k},{k}] is zero and using it on lu_solve would "
                "result in a division by zero. If you still want to perform the factorization, consider calling "
                "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)"
            ),
        )
    except LinAlgError as error:
        raise RuntimeError(str(error)) from None


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """Return what `lu_factor` does and, per matrix, 0 or the column (from 1) of the first zero on the diagonal of U.

    Returns:
        A named tuple `(LU, pivots, info)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.lu_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_lu("torch.lu_factor", A, pivot)
    found = _lu(A)
    if check_errors:
        check_nonzero(found[2])
    return return_types.linalg_lu_factor_ex(found)


def unpacked_lu(factors: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the P, L and U of compact factors."""
    m, n = factors.shape[-2:]
    k = min(m, n)
    lower = factors[..., :k]
    diagonal = wrap(np.eye(m, k, dtype=factors.dtype.numpy))
    return (
        _permutation(pivots, m, factors.dtype),
        tril(lower, -1) + diagonal,
        triu(factors[..., :k, :]),
    )


def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """Return the decomposition `A = P L U`: a permutation, a lower triangle with ones on its diagonal, an upper one.

    Args:
        A: `(..., m, n)`.
        pivot: must be True.

    Returns:
        A named tuple `(P, L, U)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [4.0, 4.0]])).L
        tensor([[1.0000, 0.0000],
                [0.2500, 1.0000]])
    """
    check_lu("linalg.lu", A, pivot)
    factors, pivots, _ = _lu(A)
    return return_types.linalg_lu(unpacked_lu(factors, pivots))


def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """Return the solution of `A X = B` by the factors of A.

    Args:
        LU, pivots: what `lu_factor` returned.
        B: `(..., n, k)`.
        left: whether A stands to the left of X.
        adjoint: solve with `A^T` in place of A.

    Raises:
        RuntimeError: shapes do not match; `B` is no matrix.

    Example:
        >>> import tinytorch as torch
        >>> factors = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
        >>> torch.linalg.lu_solve(*factors, torch.tensor([[2.0], [2.0]]))
        tensor([[1.0000],
                [0.5000]])
    """
    name = "linalg.lu_solve"
    check_matrix(name, LU, "LU")
    check_matrix(name, B, "B", square=False, position=3)
    if pivots.dtype.name != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    _check_sides(name, LU, B, left)
    _check_batches(LU, B)
    if not left:
        return lu_solve(LU, pivots, B.mT, adjoint=not adjoint).mT
    swaps = _permutation(pivots, LU.shape[-1], LU.dtype)
    if adjoint:
        y = _triangular(LU.mT, B, False, False)
        return swaps @ _triangular(LU.mT, y, True, True)
    y = _triangular(LU, swaps.mT @ B, False, True)
    return _triangular(LU, y, True, False)


# LDL ----------------------------------------------------------------------------------------------


def _no_gradient(name: str) -> Any:
    def refuse(g: Any) -> Any:
        raise NotImplementedError(f"derivative for {name} is not implemented")

    return refuse


@op(name="NotImplemented", outputs=3, nondiff=(1, 2), x=_no_gradient("linalg_ldl_factor_ex"))
def _ldl(x: Any) -> Any:
    return kernels.ldl(x)


@op(
    name="NotImplemented",
    x=_no_gradient("linalg_ldl_solve"),
    y=_no_gradient("linalg_ldl_solve"),
    pivots=None,
)
def _ldl_solve(x: Any, pivots: Any, y: Any) -> Any:
    return kernels.ldl_solve(x, pivots, y)


def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """Return what `ldl_factor` does and, per matrix, 0 or the column (from 1) of the first zero on the diagonal of D.

    Returns:
        A named tuple `(LD, pivots, info)`.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix(
        "torch.linalg.ldl_factor_ex", input, "input",
        kernel=_half_name(input, "ldl_factor_kernel_cpu"),
    )  # fmt: skip
    found = _ldl(input)
    if check_errors:
        _raise_first(
            found[2],
            lambda which, k: f"torch.linalg.ldl_factor_ex: {which}D[{k},{k}] is zero",
        )
    return return_types.linalg_ldl_factor_ex(found)


def ldl_factor(input: Tensor, *, hermitian: bool = False) -> Any:
    """Return the decomposition `P L D L^T P^T` of a symmetric matrix in LAPACK's compact form, for `ldl_solve`.

    D has blocks of one and two rows on its diagonal. There is no gradient.

    Args:
        input: `(..., n, n)`, of which the lower triangle is read.
        hermitian: makes no difference for real matrices.

    Returns:
        A named tuple `(LD, pivots)`.

    Raises:
        RuntimeError: the matrices are not square, or not of float32 or float64; one is singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 3.0]])).LD
        tensor([[2.0000, 0.0000],
                [0.5000, 2.5000]])
    """
    factors, pivots, info = ldl_factor_ex(input, hermitian=hermitian)
    if info._array.any():
        raise RuntimeError(
            f"torch.linalg.ldl_factor: D has a zero on its diagonal (code {int(info._array.max())}): the matrix is "
            "singular"
        )
    return return_types.linalg_ldl_factor((factors, pivots))


def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """Return the solution of `A X = B` by what `ldl_factor` returned for A; there is no gradient.

    Example:
        >>> import tinytorch as torch
        >>> factors = torch.linalg.ldl_factor(torch.tensor([[0.0, 1.0], [1.0, 0.0]]))
        >>> torch.linalg.ldl_solve(*factors, torch.tensor([[1.0], [2.0]]))
        tensor([[2.],
                [1.]])
    """
    name = "torch.linalg.ldl_solve"
    check_matrix(name, LD, "LD")
    if B.ndim < 2:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected B to have at least 2 dimensions, but it has {B.ndim} dimensions instead"
        )
    _check_sides(name, LD, B, True)
    _check_batches(LD, B)
    return _ldl_solve(LD, pivots, B)


# Pseudoinverses, ranks, least squares -------------------------------------------------------------


def _pinv_x(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    p, pt, gt = out, out.mT, g.mT
    left = (gt @ p) @ pt
    right = pt @ (p @ gt)
    return left - x @ (p @ left) + right - (right @ p) @ x - pt @ g @ pt


@op(name="LinalgPinv", x=_pinv_x)
def _pinv(x: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not x.size:
        return np.empty_like(x, shape=(*x.shape[:-2], x.shape[-1], x.shape[-2]))
    if hermitian:
        values, vectors = kernels.plain(x, np.linalg.eigh(x))
        sizes, left, right = np.abs(values), vectors, vectors.swapaxes(-1, -2)
    else:
        left, values, right = kernels.plain(x, np.linalg.svd(x, full_matrices=False))
        sizes = values
    bound = np.maximum(atol, rtol * sizes.max(-1))[..., None]
    scaled = np.where(sizes > bound, 1 / np.where(sizes > bound, values, 1), 0).astype(x.dtype)
    return np.matmul(right.swapaxes(-1, -2) * scaled[..., None, :], left.swapaxes(-1, -2))


def _tolerances(x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return the bounds on singular values, absolute and relative to the largest, as numbers or arrays."""
    usual = max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    absolute_given = atol is not None
    atol = 0.0 if atol is None else atol._array if isinstance(atol, Tensor) else float(atol)
    if rtol is None:
        if absolute_given:
            return atol, np.where(np.asarray(atol) > 0, 0.0, usual)
        return atol, usual
    return atol, rtol._array if isinstance(rtol, Tensor) else float(rtol)


def _check_float_matrix(name: str, x: Any) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(
            f"{name.replace('.', '_')}() received an invalid combination of arguments - got "
            f"({type(x).__name__}), but expected one of: (Tensor input, *, Tensor atol, Tensor rtol, bool hermitian)"
        )


def pinv(
    input: Tensor,
    rcond: Any = None,
    hermitian: bool = False,
    *,
    atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of a matrix, or of each of a stack.

    Its derivative exists as long as the rank stays the same.

    Args:
        input: `(..., m, n)`.
        rcond: an older name of `rtol`.
        hermitian: the matrices are symmetric: use `eigh`.
        atol: singular values up to this count as 0.
        rtol: and up to this times the largest; by default the larger size times the dtype's epsilon, or 0 if `atol`
            is given.

    Raises:
        RuntimeError: the input is no matrix of float32 or float64.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.pinv(torch.tensor([[3.0, 0.0], [4.0, 0.0]]))
        tensor([[0.1200, 0.1600],
                [0.0000, 0.0000]])
    """
    _check_float_matrix("linalg.pinv", input)
    if input.ndim < 2 or input.dtype.name not in ("float32", "float64"):
        raise RuntimeError(
            f"linalg.pinv({input.dtype.tensor_name}{{{list(input.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_matrix("linalg.pinv", input, "input")
    return _pinv(input, *_tolerances(input, atol, rcond if rtol is None else rtol), hermitian)


def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Return the rank: how many singular values count as more than 0.

    Args:
        input: `(..., m, n)`.
        tol: an older name of `atol`.
        hermitian: the matrices are symmetric: use `eigvalsh`.
        atol, rtol: see `pinv`.

    Raises:
        RuntimeError: the input is no matrix of float32 or float64.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    name = "linalg.matrix_rank"
    _check_float_matrix(name, input)
    if input.ndim < 2:
        raise RuntimeError(
            "torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions."
        )
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if hermitian:
        check_matrix(name, input, "input")
    if not input.numel():
        return zeros(input.shape[:-2], dtype=int64)
    low, relative = _tolerances(input, tol if atol is None else atol, rtol)
    return _rank(input, low, relative if tol is None or rtol is not None else 0.0, hermitian)


@op(x=None)
def _rank(x: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if not x.shape[-1] or not x.shape[-2]:
        return np.zeros_like(x, shape=x.shape[:-2], dtype=np.int64)
    values = np.abs(np.linalg.eigvalsh(x)) if hermitian else np.linalg.svd(x, compute_uv=False)
    bound = np.maximum(atol, rtol * values.max(-1))
    return (values > bound[..., None]).sum(-1)


@op(x=None)
def _nothing(x: Any, dtype: Any) -> Any:
    """Return an empty vector, what a result is that was not asked for."""
    return np.empty_like(x, shape=(0,), dtype=dtype)


def lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Return the X that makes the norm of `A X - B` smallest, and of those the smallest.

    Args:
        input: A, `(..., m, n)`.
        b: B, `(..., m, k)`, or vectors `(..., m)`.
        rcond: singular values up to this times the largest count as 0; by default the larger size times the dtype's
            epsilon.
        driver: LAPACK's names of algorithms say what is returned: "gelsy" (the default) the rank, "gelsd" and "gelss"
            the rank and the singular values, "gels" neither. All are computed by singular values here.

    Returns:
        A named tuple `(solution, residuals, rank, singular_values)`; the residuals are sums of squares, and empty
        unless m > n, all ranks are n and the driver is not "gelsy".

    Raises:
        RuntimeError: shapes do not match; the dtypes differ; there is no such driver.

    Example:
        >>> import tinytorch as torch
        >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> solution = torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution
        >>> torch.allclose(solution, torch.tensor([[1.0], [2.0]]), atol=1e-5)
        True
    """
    name = "torch.linalg.lstsq"
    for each, argument, position in ((input, "input", 1), (b, "b", 2)):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"linalg_lstsq(): argument '{argument}' (position {position}) must be Tensor, not "
                f"{type(each).__name__}"
            )
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if input.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{input.dtype.tensor_name} and other's dtype {b.dtype.tensor_name}"
        )
    if input.dtype.name not in ("float32", "float64"):
        raise RuntimeError("This function doesn't handle types other than float and double")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    vector = input.ndim - 1 == b.ndim and tuple(b.shape) == tuple(input.shape[:-1])
    if b.ndim < input.ndim - 1 or input.ndim - b.ndim > 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    other = b.unsqueeze(-1) if vector else b
    if input.shape[-2] != other.shape[-2]:
        where_ = "size(-1)" if vector else "size(-2)"
        raise RuntimeError(f"{name}: input.size(-2) should match other.{where_}")
    _check_batches(input, other)
    m, n = input.shape[-2:]
    driver = driver or "gelsy"
    if rcond is None:
        rcond = max(m, n) * float(np.finfo(input.dtype.numpy).eps)
    rank = _rank(input, 0.0, float(rcond), False)
    solution = matmul(_pinv(input, 0.0, float(rcond), False), other)
    residuals = nothing = _nothing(input, input.dtype.numpy)
    if m > n and driver != "gelsy" and (rank._array == n).all():
        residuals = (matmul(input, solution) - other).square().sum(-2)
    return return_types.linalg_lstsq(
        (
            solution.squeeze(-1) if vector else solution,
            residuals,
            _nothing(input, np.int64) if driver == "gels" else rank,
            _svdvals(input.detach()) if driver in ("gelsd", "gelss") else nothing,
        )
    )


# Functions of matrices ----------------------------------------------------------------------------


def _exponential_x(g: Tensor, x: Tensor) -> Tensor:
    """Return the gradient: the upper right block of exp([[x^T, g], [0, x^T]]).

    Source: Al-Mohy and Higham, "Computing the Frechet derivative of the matrix exponential" (2009), equation 1.1.
    """
    n = x.shape[-1]
    transposed = x.mT
    upper = cat((transposed, g), -1)
    lower = cat((zeros_like(x), transposed), -1)
    return _exponential(cat((upper, lower), -2))[..., :n, n:]


@op(name="LinalgMatrixExp", x=_exponential_x)
def _exponential(x: Any) -> Any:
    return kernels.exponential(x)


def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponential of a square matrix, `I + A + A^2 / 2 + ...`, or of each of a stack.

    Raises:
        RuntimeError: the matrices are not square, or not of floating point.

    Example:
        >>> import tinytorch as torch
        >>> torch.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])
    """
    check_matrix("linalg.matrix_exp", input, "input", low=True)
    return _exponential(input)


def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return a square matrix to an integer power, by repeated squaring; of the inverse where that is negative.

    Raises:
        RuntimeError: the matrices are not square.
        LinAlgError: the power is negative, and a matrix singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
        tensor([[1., 5.],
                [0., 1.]])
    """
    name = "linalg.matrix_power"
    if not isinstance(input, Tensor) or input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        check_matrix(name, input, "input")
    n = operator.index(n)
    if n == 0:
        nothing = input.masked_fill(ones_like(input, dtype=bool_), 0)
        return nothing + eye(input.shape[-1], dtype=input.dtype)
    if n < 0:
        input, n = inv(input), -n
    if n == 1:
        return input.clone()
    found, square = None, input
    while True:
        n, odd = divmod(n, 2)
        if odd:
            found = square if found is None else matmul(found, square)
        if not n:
            assert found is not None
            return found
        square = matmul(square, square)


# Products -----------------------------------------------------------------------------------------


def reflections(input: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """Return the V and T of a product of Householder reflections, `I - V T V^T`.

    Source: Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder
        transformations" (1989); T by Puglisi (1992): the inverse of `diag(1 / tau) + triu(V^T V, 1)`, written so that
        tau may be 0.
    """
    m, k = input.shape[-2], tau.shape[-1]
    v = tril(input[..., :k], -1) + wrap(np.eye(m, k, dtype=input.dtype.numpy))
    scaled = tau[..., :, None] * triu(v.mT @ v, 1)
    return v, _triangular(scaled, diag_embed(tau), True, True)


def householder_product(input: Tensor, tau: Tensor) -> Tensor:
    """Return the first n columns of a product of Householder reflections, as `geqrf` gives them.

    Args:
        input: `(..., m, n)`, m >= n: below its diagonal, the reflections' vectors (1 on the diagonal, 0 above).
        tau: `(..., k)`, k <= n: their factors.

    Raises:
        RuntimeError: shapes do not match; the dtypes differ.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.householder_product(torch.tensor([[1.0], [1.0]]), torch.tensor([1.0]))
        tensor([[ 0.],
                [-1.]])
    """
    name = "torch.linalg.householder_product"
    for each, argument, position in ((input, "input", 1), (tau, "tau", 2)):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"linalg_householder_product(): argument '{argument}' (position {position}) must be Tensor, not "
                f"{type(each).__name__}"
            )
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = input.shape[-2:]
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if n < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if tuple(input.shape[:-2]) != tuple(tau.shape[:-1]):
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape[:-1])}"
        )
    if input.dtype != tau.dtype:
        raise RuntimeError(
            f"{name}: tau dtype {tau.dtype.tensor_name} does not match input dtype {input.dtype.tensor_name}"
        )
    check_floating(name, input)
    v, factor = reflections(input, tau)
    return wrap(np.eye(m, n, dtype=input.dtype.numpy)) - v @ (factor @ v[..., :n, :].mT)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the scalar products of vectors along a dimension; the others broadcast.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
        tensor([3., 7.])
    """
    for position, each in enumerate((x, y)):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"linalg_vecdot(): argument '{'xy'[position]}' (position {position + 1}) must be Tensor, not "
                f"{type(each).__name__}"
            )
    check_floating("linalg.vecdot", x, low=True)
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected x and y to have the same dtype, but found x of type {x.dtype.tensor_name} and "
            f"y of type {y.dtype.tensor_name} instead"
        )
    x, y = broadcast_tensors(x, y)
    x, y = x.movedim(dim, -1), y.movedim(dim, -1)
    return matmul(x.unsqueeze(-2), y.unsqueeze(-1)).squeeze((-2, -1))


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Return the vector products of vectors of three elements along a dimension; the others broadcast.

    Raises:
        RuntimeError: that dimension is not of length 3; the tensors have different numbers of dimensions.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
        tensor([0., 0., 1.])
    """
    if input.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    if input.dtype != other.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.tensor_name} but found {other.dtype.tensor_name}"
        )
    axes_of(dim, input.ndim, "linalg.cross")
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}"
        )
    a, b = input.unbind(dim), other.unbind(dim)
    parts = [
        a[(i + 1) % 3] * b[(i + 2) % 3] - a[(i + 2) % 3] * b[(i + 1) % 3] for i in builtins.range(3)
    ]
    return stack(parts, dim)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as views: `torch.diagonal` of the last two dimensions.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.diagonal(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.])
    """
    return _diagonal(A, offset, dim1, dim2)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the matrices of powers of a vector's elements: column j is `x ** j`.

    Args:
        x: `(..., n)`.
        N: how many columns; n by default.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.vander(torch.tensor([2.0, 3.0]), N=3)
        tensor([[1., 2., 4.],
                [1., 3., 9.]])
    """
    if x.ndim < 1:
        raise RuntimeError("linalg.vander: Expected input to be at least 1D, but it is a scalar")
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise RuntimeError("N must be greater than 1.")
    ones = ones_like(x[..., None])
    if count < 2:
        return ones[..., :count] if x.shape[-1] else ones
    powers = x[..., None].expand((*x.shape, count - 1)).cumprod(-1)
    return cat((ones.to(powers.dtype), powers), -1)


def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor taken as a matrix: the first `ind` dimensions are its rows.

    Raises:
        RuntimeError: that matrix is not square, or singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape
        torch.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    rows, columns = tuple(input.shape[:ind]), tuple(input.shape[ind:])
    size = math.prod(rows)
    if size != math.prod(columns):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(columns)} != {size}"
        )
    return inv(input.reshape((size, size))).reshape((*columns, *rows))


def tensorsolve(input: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return the X of `tensordot(A, X, X.ndim) = B`.

    Args:
        input: A.
        other: B.
        dims: dimensions of A to move to the end first.

    Raises:
        RuntimeError: A, taken as a matrix, is not square, or singular.

    Example:
        >>> import tinytorch as torch
        >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4) * 2, torch.ones(2, 2))
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        order = [each % input.ndim for each in dims]
        input = input.permute([k for k in range(input.ndim) if k not in order] + order)
    shape = tuple(input.shape[other.ndim :])
    size = math.prod(shape)
    if size != other.numel() or input.numel() != size * size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {size} != {other.numel()}"
        )
    return solve(input.reshape((size, size)), other.reshape(size)).reshape(shape)
