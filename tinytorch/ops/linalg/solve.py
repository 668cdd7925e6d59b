"""Inverses, linear systems, pseudoinverses, least squares and functions of matrices: one half of `torch.linalg`.

The other half, factorizations and functions based on them, is `factor`. The kernels call LAPACK through `np.linalg`, on
batches of matrices. Each formula is Tensor code, so there are derivatives of every order. Arguments of a wrong shape or
dtype raise RuntimeError, as in PyTorch.

Sources of the formulas: Giles, "An extended collection of matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008); Golub and Pereyra, "The differentiation of pseudo-inverses" (1973).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.layout import contiguous_format
from tinytorch.core.mode import local
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import decompose as kernels
from tinytorch.kernels.checks import broadcast, refused
from tinytorch.kernels.decompose import LinAlgError
from tinytorch.kernels.dtypes import UNSIGNED, int64
from tinytorch.kernels.meta import NotCopied, is_meta, known
from tinytorch.ops import return_types
from tinytorch.ops.arguments import op_of
from tinytorch.ops.create import zeros
from tinytorch.ops.join import cat
from tinytorch.ops.linalg.products import matmul
from tinytorch.ops.rearrange import tril, triu
from tinytorch.ops.register import autocasting, public

# Checks -------------------------------------------------------------------------------------------


def check_matrix(
    function: str, x: Any, argument: str = "A", *, square: bool = True, kernel: str | None = None, low: bool = False
) -> None:
    """Raise PyTorch's error unless `x` is a batch of (square) matrices of float32, float64, or complex numbers.

    Args:
        function: the public name, such as "linalg.inv".
        argument: the name of the argument.
        square: whether the matrices must be square.
        kernel: the name of PyTorch's kernel, if the message for an unsupported dtype names it.
        low: whether 16-bit floats are allowed.
    """
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


def check_floating(function: str, x: Tensor, *, kernel: str | None = None, low: bool = False) -> None:
    """Raise PyTorch's error unless the elements are float32, float64 or complex (with `low`, of any floating type)."""
    dtype = x.dtype
    if (dtype.is_floating_point and (low or dtype.itemsize >= 4)) or dtype.is_complex:
        return
    if kernel is not None:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype.tensor_name}'")
    if not dtype.is_floating_point:
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {dtype.tensor_name}")
    raise RuntimeError(f"{function}: Low precision dtypes not supported. Got {dtype.tensor_name}")


def half_name(x: Any, kernel: str) -> str | None:
    """Return `kernel` if `x` has 16-bit floats, otherwise None: PyTorch's message names its kernel only for these."""
    return kernel if x.dtype.is_floating_point and x.dtype.itemsize < 4 else None


LAPACK_DTYPES = ("float32", "float64", "complex64", "complex128")

# Ops, so that formulas which use them are made of ops alone.
identity = op_of(kernels.identity, batch="of type", x=None, complex=OWN)
zeros_of = op_of(kernels.zeros, batch="of type", x=None, complex=OWN)


def raise_first(info: Tensor, message: str) -> None:
    """Raise LinAlgError if a code is not 0; the message has fields for the matrix, `{which}`, and the code, `{k}`."""
    while hasattr(info, "_under"):  # inside of `vmap`: the codes of all examples
        info = info._under
    if known(np.any, info._array):
        which, k = kernels.first_failure(info._array)
        raise LinAlgError(message.format(which=kernels.batch_words(which), k=k))


def check_same_dtype(function: str, **tensors: Tensor) -> None:
    """Raise PyTorch's error unless the two named arguments have the same dtype."""
    (first, x), (second, y) = tensors.items()
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"{function}: Expected {first} and {second} to have the same dtype, but found {first} of type "
            f"{x.dtype.tensor_name} and {second} of type {y.dtype.tensor_name} instead"
        )


def check_sides(function: str, A: Tensor, B: Tensor, left: bool) -> None:
    """Raise PyTorch's error unless the shapes of A and B match in `A X = B` (with `left`) or `X A = B`."""
    if A.shape[-2] != B.shape[-2 if left else -1]:
        raise RuntimeError(
            f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
            f"({A.shape[-2]}x{A.shape[-1]} and {B.shape[-2]}x{B.shape[-1]})"
        )


def check_system(function: str, B: Tensor, A: Tensor) -> None:
    """Raise PyTorch's error unless the dtypes and shapes of `A X = B` match."""
    if B.dtype != A.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {B.dtype.tensor_name} and A of type "
            f"{A.dtype.tensor_name} instead."
        )
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if B.shape[-2] != A.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {function}: each A matrix is {A.shape[-2]} by {A.shape[-1]} but each "
            f"b matrix is {B.shape[-2]} by {B.shape[-1]}"
        )
    check_batches(A, B)


def check_batches(A: Tensor, B: Tensor) -> None:
    """Raise PyTorch's error unless the leading dimensions of A and B can be broadcast."""
    broadcast(B.shape[:-2], A.shape[:-2])


# Inverses -----------------------------------------------------------------------------------------


def _inverse_x(g: Tensor, out: Tensor) -> Tensor:
    transposed = out.mT
    return -(transposed @ g @ transposed)


_inverse = op_of(kernels.inverse, batch="leading", name="LinalgInvEx", x=_inverse_x, complex=HOLOMORPHIC)
inverse_info = op(
    batch="leading",
    name="LinalgInvEx",
    outputs=2,
    nondiff=(1,),
    x=lambda g, out0: _inverse_x(g[0], out0),
    complex=HOLOMORPHIC,
)(kernels.inverse_info)


@public("linalg.inv", out="exact", autocast="float32")
def inv(A: Tensor) -> Tensor:
    """Return the inverse of a square matrix, or of each matrix of a batch `(..., n, n)`.

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> torch.linalg.inv(torch.tensor([[2.0, 1.0], [1.0, 1.0]]))
        tensor([[ 1., -1.],
                [-1.,  2.]])
    """
    check_matrix("linalg.inv", A)
    return _inverse(A, "linalg.inv")


@public("linalg.inv_ex", out="exact", autocast="float32")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """Return a named tuple `(inverse, info)`: the inverses and, per matrix, 0 or the column (from 1) of a zero pivot.

    Example:
        >>> torch.linalg.inv_ex(torch.zeros(2, 2)).info
        tensor(1, dtype=torch.int32)
    """
    check_matrix("linalg.inv", A)
    inverse, info = inverse_info(A)
    if check_errors:
        raise_first(
            info,
            "linalg.inv_ex: {which}The diagonal element {k} is zero, the inversion could not be completed because the "
            "input matrix is singular.",
        )
    return return_types.linalg_inv_ex((inverse, info))


@public("linalg.tensorinv", out="safe, copied", autocast="float32")
def tensorinv(input: Tensor, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor as a matrix, whose rows are the first `ind` dimensions.

    Example:
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


# Systems ------------------------------------------------------------------------------------------


def _solve_joint(g: Tensor, needs: Any, x: Tensor, out: Tensor, left: bool, vector: bool) -> tuple[Any, Tensor]:
    gb = _solve_info(x.mT, g, left, vector)[0]
    if not needs[0]:
        return None, gb
    if vector:
        return -(gb.unsqueeze(-1) @ out.unsqueeze(-2)), gb
    return -(gb @ out.mT if left else out.mT @ gb), gb


_solve = op_of(
    kernels.solve,
    batch="stacks",
    name="LinalgSolveEx",
    joint=_solve_joint,
    inputs=("x", "y"),
    broadcasts=True,
    complex=HOLOMORPHIC,
)
_solve_info = op_of(
    kernels.solve_info,
    batch="stacks",
    name="LinalgSolveEx",
    joint=lambda g, needs, x, out0, left, vector: _solve_joint(g[0], needs, x, out0, left, vector),
    inputs=("x", "y"),
    outputs=2,
    nondiff=(1,),
    broadcasts=True,
    complex=HOLOMORPHIC,
)


def _check_solve(A: Any, B: Any, left: bool) -> bool:
    """Check the operands of `solve`, and return whether B contains vectors instead of matrices."""
    function = "linalg.solve"
    check_floating(function, A, low=True)
    check_same_dtype(function, A=A, B=B)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and tuple(B.shape) == tuple(A.shape[:-1]))
    columns = B.unsqueeze(-1) if vector else B
    check_matrix(function, A, kernel=half_name(A, "lu_cpu"))
    if columns.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor B must have at least 2 dimensions.")
    check_sides(function, A, columns, left)
    if vector and not left:
        raise RuntimeError(
            f"{function}: Vector broadcasting of the left hand side is not supported for left=False. In this "
            "case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    check_batches(A, columns)
    return vector


@public("linalg.solve", out="exact", autocast="float32")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """Return the solution X of `A X = B`, or of `X A = B`.

    Args:
        A: `(..., n, n)`.
        B: `(..., n, k)`, or vectors `(..., n)`; its leading dimensions broadcast with those of `A`.

    Raises:
        LinAlgError: a matrix is singular.

    Example:
        >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
        tensor([1.0000, 0.5000])
    """
    return _solve(A, B, left, _check_solve(A, B, left), "torch.linalg.solve")


@public("linalg.solve_ex", out="exact")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return `(result, info)`: the solutions and, per matrix A, 0 or the column (from 1) of its first zero pivot.

    Example:
        >>> torch.linalg.solve_ex(torch.zeros(2, 2), torch.ones(2, 1)).info
        tensor(1, dtype=torch.int32)
    """
    solution, info = _solve_info(A, B, left, _check_solve(A, B, left))
    if check_errors:
        raise_first(info, "torch.linalg.solve_ex: {which}The solver failed because the input matrix is singular.")
    return return_types.linalg_solve_ex((solution, info))


def _triangular_joint(
    g: Tensor, needs: Any, x: Tensor, out: Tensor, upper: bool, unit: bool, left: bool
) -> tuple[Any, Tensor]:
    gb = triangular(x.mT, g, not upper, unit, left)
    if not needs[0]:
        return None, gb
    ga = -(gb @ out.mT if left else out.mT @ gb)
    return (triu(ga, int(unit)) if upper else tril(ga, -int(unit))), gb


triangular = op(
    batch="stacks",
    name="LinalgSolveTriangular",
    joint=_triangular_joint,
    inputs=("x", "y"),
    broadcasts=True,
    complex=HOLOMORPHIC,
)(kernels.triangular)


@public("linalg.solve_triangular", out="solve_triangular")
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """Return the solution X of `A X = B`, or of `X A = B`, for a triangular A.

    Args:
        input: A, `(..., n, n)`; the other triangle is not read.
        B: `(..., n, k)`; the result has the dtype of A.

    Example:
        >>> A = torch.tensor([[1.0, 2.0], [0.0, 4.0]])
        >>> torch.linalg.solve_triangular(A, torch.tensor([[1.0], [4.0]]), upper=True)
        tensor([[-1.],
                [ 1.]])
    """
    name = "linalg.solve_triangular"
    check_matrix(name, input, "input", kernel="triangular_solve_cpu")
    if B.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor B must have at least 2 dimensions.")
    check_sides(name, input, B, left)
    check_batches(input, B)
    return triangular(input, B.to(input.dtype), upper, unitriangular, left)


@public("linalg.tensorsolve", out="safe, copied", autocast="float32")
def tensorsolve(input: Tensor, other: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Return the solution X of `tensordot(A, X, X.ndim) = B`.

    Args:
        dims: dimensions of A that are first moved to the end.

    Example:
        >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4) * 2, torch.ones(2, 2))
        tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    if dims is not None:
        order = [dim % input.ndim for dim in dims]
        input = input.permute([k for k in range(input.ndim) if k not in order] + order)
    shape = tuple(input.shape[other.ndim :])
    size = math.prod(shape)
    if size != other.numel() or input.numel() != size * size:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {size} != {other.numel()}"
        )
    return solve(input.reshape((size, size)), other.reshape(size)).reshape(shape)


# Pseudoinverses, ranks, least squares -------------------------------------------------------------


def _pinv_x(g: Tensor, x: Tensor, out: Tensor) -> Tensor:
    p, pt, gt = out, out.mH, g.mH
    left = (gt @ p) @ pt
    right = pt @ (p @ gt)
    return left - x @ (p @ left) + right - (right @ p) @ x - pt @ g @ pt


_pinv = op_of(kernels.pinv, batch="stacks", name="LinalgPinv", x=_pinv_x, complex=OWN)


def _tolerances(name: str, x: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Return the bounds on singular values, absolute and relative to the largest, as numbers or arrays."""
    for bound, argument in ((atol, "atol"), (rtol, "rtol")):
        if isinstance(bound, Tensor) and bound.dtype.is_complex:
            raise RuntimeError(
                f"torch.{name}: {argument} tensor of complex type is not supported. Got {bound.dtype.tensor_name}"
            )
    default = max(x.shape[-2:]) * float(np.finfo(x.dtype.numpy).eps)
    absolute = 0.0 if atol is None else atol._array if isinstance(atol, Tensor) else float(atol)
    if rtol is not None:
        return absolute, rtol._array if isinstance(rtol, Tensor) else float(rtol)
    return absolute, default if atol is None else np.where(np.asarray(absolute) > 0, 0.0, default)


def _forms(last: str) -> tuple[str, ...]:
    """Return the signatures of a function with tolerances, of which `last` is the older one."""
    kinds = ("Tensor", "float")
    bounds = [f"*, {kind} atol = None, {kind} rtol = None, bool hermitian = False" for kind in kinds]
    bounds += [f"{kind} {last}, bool hermitian = False, *" for kind in kinds]
    return tuple([f"Tensor input, {each}, Tensor out = None" for each in bounds])


@public("linalg.pinv", out="safe linalg", forms=_forms("rcond"))
def pinv(input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of a matrix, or of each matrix of a batch.

    It is differentiable where the rank is locally constant.

    Args:
        input: `(..., m, n)`.
        rcond: an older name of `rtol`.
        hermitian: the matrices are Hermitian (symmetric, if they are real); they are decomposed by `eigh`.
        atol: singular values up to this bound count as 0.
        rtol: so do those up to this times the largest singular value; by default the larger of m and n times the
            epsilon of the dtype, or 0 if `atol` is not None.

    Example:
        >>> torch.linalg.pinv(torch.tensor([[3.0, 0.0], [4.0, 0.0]]))
        tensor([[0.1200, 0.1600],
                [0.0000, 0.0000]])
    """
    if input.ndim < 2 or input.dtype.name not in LAPACK_DTYPES:
        raise RuntimeError(
            f"linalg.pinv({input.dtype.tensor_name}{{{list(input.shape)}}}): expected a tensor with 2 or more "
            "dimensions of float, double, cfloat or cdouble types"
        )
    if hermitian:
        check_matrix("linalg.pinv", input, "input")
    for bound, argument in ((atol, "atol"), (rcond if rtol is None else rtol, "rtol")):
        if isinstance(bound, Tensor) and bound.requires_grad and local.state.grad:
            raise RuntimeError(
                f"The function 'linalg_pinv' is not differentiable with respect to argument '{argument}'. This input "
                "cannot have requires_grad True."
            )
    return _pinv(input, *_tolerances("linalg.pinv", input, atol, rcond if rtol is None else rtol), hermitian)


@public("linalg.matrix_rank", out="safe torch.linalg", autocast="float32", forms=_forms("tol"))
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """Return the rank: the number of singular values that do not count as 0.

    Args:
        input: `(..., m, n)`.
        tol: an older name of `atol`.
        hermitian: the matrices are Hermitian; `eigvalsh` computes the singular values.
        atol, rtol: see `pinv`.

    Example:
        >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
        tensor(1)
    """
    name = "linalg.matrix_rank"
    if input.ndim < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if input.dtype.name not in LAPACK_DTYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if hermitian:
        check_matrix(name, input, "input")
    if not input.numel():
        return zeros(input.shape[:-2], dtype=int64)
    absolute, relative = _tolerances(name, input, tol if atol is None else atol, rtol)
    return _rank(input, absolute, relative if tol is None or rtol is not None else 0.0, hermitian)


_rank = op_of(kernels.rank, batch="stacks", x=None, complex=OWN)


def _lstsq_joint(g: Any, needs: Any, x: Tensor, y: Tensor, out0: Tensor, bound: float) -> tuple[Any, Tensor]:
    gx, gr, *_ = g
    vector = y.ndim == x.ndim - 1
    if vector:
        y, out0 = y.unsqueeze(-1), out0.unsqueeze(-1)
    ga, gb = zeros_of(x), zeros_of(y)
    if gx is not None:
        gx = gx.unsqueeze(-1) if vector else gx
        inverse = _pinv(x, 0.0, bound, False)
        ga, gb = _pinv_x(gx @ y.mH, x, inverse), inverse.mH @ gx
    if gr is not None and gr.numel():
        difference = 2 * gr.unsqueeze(-2) * (x @ out0 - y)
        ga, gb = ga + difference @ out0.mH, gb - difference
    return ga, (gb.squeeze(-1) if vector else gb)


_lstsq = op_of(
    kernels.least_squares,
    batch="stacks",
    name="LinalgLstsq",
    joint=_lstsq_joint,
    inputs=("x", "y"),
    outputs=4,
    nondiff=(2, 3),
    broadcasts=True,
    complex=OWN,
)


@public("linalg.lstsq", out="lstsq", autocast="float32")
def lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """Return the least squares solution of `A X = B`: the X of smallest norm that minimizes the norm of `A X - B`.

    The result is a named tuple `(solution, residuals, rank, singular_values)`; the residuals are sums of squares, and
    empty unless m > n, all ranks are n and the driver is not "gelsy".

    Args:
        input: A, `(..., m, n)`.
        b: B, `(..., m, k)`, or vectors `(..., m)`.
        rcond: singular values up to this times the largest one count as 0; by default the larger of m and n times the
            epsilon of the dtype.
        driver: a LAPACK driver, which determines what is returned: the rank for "gelsy" (the default), the rank and the
            singular values for "gelsd" and "gelss", neither for "gels". All are computed by the SVD here.

    Example:
        >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
        >>> solution = torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution
        >>> torch.allclose(solution, torch.tensor([[1.0], [2.0]]), atol=1e-5)
        True
    """
    name = "torch.linalg.lstsq"
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if input.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype "
            f"{input.dtype.tensor_name} and other's dtype {b.dtype.tensor_name}"
        )
    if input.dtype.name not in LAPACK_DTYPES:
        raise RuntimeError("This function doesn't handle types other than float and double")
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    vector = b.ndim == 1 or b.shape == input.shape[:-1]
    if not 0 <= input.ndim - b.ndim <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    other = b.unsqueeze(-1) if vector else b
    if input.shape[-2] != other.shape[-2]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    check_batches(input, other)
    if not vector and b.ndim < input.ndim:  # one right side for all matrices of a batch
        b = b.unsqueeze(0)
    if rcond is None:
        rcond = max(input.shape[-2:]) * float(np.finfo(input.dtype.numpy).eps)
    if is_meta(input._array) and driver in ("gelsd", "gelss"):
        raise NotCopied(f"{name}: the shape of the residuals depends on the elements with driver={driver!r}")
    return return_types.linalg_lstsq(_lstsq(input, b, float(rcond), driver or "gelsy"))


# Functions of matrices ----------------------------------------------------------------------------


def _exponential_x(g: Tensor, x: Tensor) -> Tensor:
    """Return the gradient: the upper right block of exp([[x^T, g], [0, x^T]]).

    Source: Al-Mohy and Higham, "Computing the Frechet derivative of the matrix exponential" (2009), equation 1.1.
    """
    n = x.shape[-1]
    transposed = x.mT
    upper = cat((transposed, g), -1)
    lower = cat((zeros_of(x), transposed), -1)
    return _exponential(cat((upper, lower), -2))[..., :n, n:]


_exponential = op_of(
    kernels.exponential, batch="leading", name="LinalgMatrixExp", x=_exponential_x, complex=HOLOMORPHIC
)


@public(also="linalg.matrix_exp", method=True)
def matrix_exp(input: Tensor) -> Tensor:
    """Return the exponential of a square matrix, `I + A + A^2 / 2 + ...`, or of each matrix of a batch.

    Example:
        >>> torch.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))
        tensor([[1., 1.],
                [0., 1.]])

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.
    """
    check_matrix("linalg.matrix_exp", input, "input", low=True)
    return _exponential(input)


@public(also="linalg.matrix_power", method=True, out="exact")
def matrix_power(input: Tensor, n: int) -> Tensor:
    """Return an integer power of a square matrix, by repeated squaring; a negative one is a power of the inverse.

    Raises:
        LinAlgError: the power is negative, and a matrix is singular.

    Example:
        >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
        tensor([[1., 5.],
                [0., 1.]])
    """
    name = "linalg.matrix_power"
    if input.ndim < 2 or input.shape[-1] != input.shape[-2]:
        check_matrix(name, input, "input")
    n = operator.index(n)
    if n == 0:
        if input.dtype in UNSIGNED:
            raise refused("eye", input._array)
        powers = input.clone(memory_format=contiguous_format)
        return powers.copy_(identity(input, input.shape[-1]))
    if n == 1:
        return input.clone(memory_format=contiguous_format)
    if n < 0:
        input, n = autocasting(inv)(input), -n
    result, square = None, input
    while True:
        n, odd = divmod(n, 2)
        if odd:
            result = square if result is None else matmul(result, square)
        if not n:
            assert result is not None
            return result
        square = matmul(square, square)
