"""Factorisations of matrices that NumPy's LAPACK does not hand out, over stacks of matrices (floor 1).

Everything here works on `(..., m, n)` at once: loops run over columns (or blocks of them), never over the stack,
but for the error paths.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = [
    "LinAlgError", "cholesky", "cholesky_info", "exponential", "inverse", "inverse_info", "ldl", "ldl_solve", "lu",
    "permutation", "plain", "solve", "solve_info", "triangular",
]  # fmt: skip

_BLOCK = 48


class _LinAlgError(RuntimeError):
    """What functions of `torch.linalg` raise for matrices that they cannot factor or invert."""


LinAlgError = _LinAlgError


def plain(x: Any, results: Any) -> tuple[Any, ...]:
    """Return a named tuple of `np.linalg` as a plain one, its parts of the same class of array as `x`."""
    kind = type(x)
    return tuple([each if type(each) is kind else np.asarray(each).view(kind) for each in results])


def batch_words(index: tuple[int, ...] | int | None) -> str:
    """Return how PyTorch's messages name one matrix of a stack."""
    return "" if index is None else f"(Batch element {index}): "


def _first(info: Any) -> tuple[int | None, int]:
    """Return the number of the first matrix with an error, None if there is no stack, and its error."""
    flat = info.reshape(-1)
    k = int(np.flatnonzero(flat)[0])
    return (k if info.ndim else None), int(flat[k])


# Inverses and systems -----------------------------------------------------------------------------


def inverse(x: Any, name: str) -> Any:
    """Return the inverses, or raise PyTorch's error in the name of a function."""
    try:
        return np.linalg.inv(x)
    except np.linalg.LinAlgError:
        _, info = inverse_info(x)
        k, column = _first(info)
        raise LinAlgError(
            f"{name}: {batch_words(k)}The diagonal element {column} is zero, the inversion could not be completed "
            "because the input matrix is singular."
        ) from None


def inverse_info(x: Any) -> tuple[Any, Any]:
    """Return the inverses, with infinities and NaN in those of singular matrices, and where these fail."""
    identity = np.eye(x.shape[-1], dtype=x.dtype)
    return solve_info(x, np.broadcast_to(identity, x.shape))


def solve(a: Any, b: Any, name: str) -> Any:
    """Return the X of A X = B for stacks that broadcast, or raise PyTorch's error."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        _, info = solve_info(a, b)
        k, _ = _first(info)
        raise LinAlgError(
            f"{name}: {batch_words(k)}The solver failed because the input matrix is singular."
        ) from None


def solve_info(a: Any, b: Any) -> tuple[Any, Any]:
    """Return the X of A X = B, whatever it is for a singular A, and per A the column of its first zero pivot, or 0."""
    info = np.zeros_like(a, shape=a.shape[:-2], dtype=np.int32)
    try:
        return np.linalg.solve(a, b), info
    except np.linalg.LinAlgError:
        factors, pivots, info = lu(a)
        rows = permutation(pivots, a.shape[-1])
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        b = np.broadcast_to(b, (*batch, *b.shape[-2:]))
        rows = np.broadcast_to(rows, (*batch, rows.shape[-1]))
        x = triangular(factors, np.take_along_axis(b, rows[..., None], -2), False, True)
        x = triangular(factors, x, True, False)
        if not info.any():  # LAPACK's rounding met a zero where ours does not
            info = np.where(np.linalg.cond(a) >= 1 / np.finfo(a.dtype).eps, a.shape[-1], info)
            info = info.astype(np.int32)
        return x, info


def triangular(a: Any, b: Any, upper: bool, unit: bool) -> Any:
    """Return the X of A X = B for triangular A, of which the other triangle is not read; no error if A is singular.

    Half the unknowns at a time, so that nearly all work is in products of matrices.

    Args:
        a: `(..., n, n)`; its leading dimensions broadcast with those of `b`.
        b: `(..., n, k)`.
        upper: which triangle counts.
        unit: take the diagonal as ones.
    """
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = np.empty_like(b, shape=(*batch, *b.shape[-2:]), dtype=b.dtype, order="C")
    if upper:
        x[...] = b
        _back_substitute(a, x, unit)
        return x
    x[...] = b[..., ::-1, :]  # the last unknown first: now the system is upper triangular
    _back_substitute(a[..., ::-1, ::-1].copy(), x, unit)
    return x[..., ::-1, :].copy()


def _back_substitute(a: Any, x: Any, unit: bool) -> None:
    n = a.shape[-1]
    if n > _BLOCK:
        half = n // 2
        _back_substitute(a[..., half:, half:], x[..., half:, :], unit)
        x[..., :half, :] -= np.matmul(a[..., :half, half:], x[..., half:, :])
        _back_substitute(a[..., :half, :half], x[..., :half, :], unit)
        return
    block = np.triu(a, 1) + np.eye(n, dtype=a.dtype) if unit else np.triu(a)
    try:  # the factorisation of a triangular matrix is itself: this is exactly back substitution
        x[...] = np.linalg.solve(block, x)
    except np.linalg.LinAlgError:
        for i in reversed(range(n)):
            if i + 1 < n:
                x[..., i : i + 1, :] -= np.matmul(
                    block[..., i : i + 1, i + 1 :], x[..., i + 1 :, :]
                )
            x[..., i, :] /= block[..., i, i, None]


# LU -----------------------------------------------------------------------------------------------


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return the compact LU factors, LAPACK's pivots (from 1) and info (the first zero pivot from 1, or 0).

    Source: the right-looking blocked algorithm of Golub and Van Loan, "Matrix Computations", section 3.4.
    """
    m, n = x.shape[-2:]
    k, batch = min(m, n), x.shape[:-2]
    count = math.prod(batch)
    a = np.empty_like(x, shape=(*batch, m, n), order="C")
    a[...] = x
    a = a.reshape((count, m, n))
    pivots = np.empty_like(x, shape=(count, k), dtype=np.int32)
    info = np.zeros_like(x, shape=(count,), dtype=np.int32)
    each = np.arange(count)
    for start in range(0, k, _BLOCK):
        end = min(start + _BLOCK, k)
        for j in range(start, end):
            row = np.abs(a[:, j:, j]).argmax(1) + j
            pivots[:, j] = row + 1
            if not (row == j).all():
                held = a[each, row]
                a[each, row] = a[:, j]
                a[:, j] = held
            pivot = a[:, j, j]
            zero = pivot == 0
            if zero.any():
                info[zero & (info == 0)] = j + 1
                pivot = np.where(zero, 1, pivot)
            a[:, j + 1 :, j] /= pivot[:, None]
            if j + 1 < end:
                a[:, j + 1 :, j + 1 : end] -= a[:, j + 1 :, j, None] * a[:, j, None, j + 1 : end]
        if end < n:
            a[:, start:end, end:] = triangular(
                a[:, start:end, start:end], a[:, start:end, end:], False, True
            )
            a[:, end:, end:] -= np.matmul(a[:, end:, start:end], a[:, start:end, end:])
    return a.reshape((*batch, m, n)), pivots.reshape((*batch, k)), info.reshape(batch)


def permutation(pivots: Any, m: int) -> Any:
    """Return the rows that LAPACK's pivots, applied in turn, bring to each place: `(..., m)` of int64."""
    k = pivots.shape[-1]
    rows = np.empty_like(pivots, shape=(math.prod(pivots.shape[:-1]), m), dtype=np.int64)
    rows[...] = np.arange(m)
    flat = pivots.reshape((len(rows), k))
    each = np.arange(len(rows))
    for j in range(k):
        other = flat[:, j] - 1
        held = rows[each, other]
        rows[each, other] = rows[:, j]
        rows[:, j] = held
    return rows.reshape((*pivots.shape[:-1], m))


# Cholesky -----------------------------------------------------------------------------------------


def cholesky(x: Any, name: str) -> Any:
    """Return the lower factors, reading the lower triangles, or raise PyTorch's error."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        _, info = cholesky_info(x)
        k, order = _first(info)
        raise LinAlgError(
            f"{name}: {batch_words(k)}The factorization could not be completed because the input is not "
            f"positive-definite (the leading minor of order {order} is not positive-definite)."
        ) from None


def cholesky_info(x: Any) -> tuple[Any, Any]:
    """Return the lower factors and, per matrix, the order of the first minor that is not positive, or 0.

    The factor of a matrix that is not positive-definite is what there is when the column is reached, as LAPACK's.
    """
    info = np.zeros_like(x, shape=x.shape[:-2], dtype=np.int32)
    try:
        return np.linalg.cholesky(x), info
    except np.linalg.LinAlgError:
        pass
    n = x.shape[-1]
    a = np.tril(x)
    going = np.ones(x.shape[:-2], bool)
    for j in range(n):
        done = a[..., j:, :j]
        column = a[..., j:, j] - np.matmul(done, a[..., j, :j, None])[..., 0]
        pivot = column[..., 0]
        fails = going & ~(pivot > 0)
        info[fails] = j + 1
        a[..., j, j] = np.where(fails, pivot, a[..., j, j])
        going = going & ~fails
        column = column / np.sqrt(np.where(going, pivot, 1))[..., None]
        a[..., j:, j] = np.where(going[..., None], column, a[..., j:, j])
    return a, info


# Symmetric indefinite -----------------------------------------------------------------------------

_GROWTH = (1 + math.sqrt(17)) / 8


def ldl(x: Any) -> tuple[Any, Any, Any]:
    """Return LAPACK's compact form of `P L D L^T P^T`, reading the lower triangles, its pivots and info.

    Source: Bunch and Kaufman, "Some stable methods for calculating inertia and solving symmetric linear systems"
        (1977), in the form of LAPACK's `sytf2`: the partial pivoting that looks at two columns at most.
    """
    n, batch = x.shape[-1], x.shape[:-2]
    a = np.tril(x).reshape((-1, n, n))
    pivots = np.zeros_like(x, shape=(len(a), n), dtype=np.int32)
    info = np.zeros_like(x, shape=(len(a),), dtype=np.int32)
    for k in range(len(a)):
        info[k] = _ldl_one(a[k], pivots[k])
    return a.reshape(x.shape), pivots.reshape((*batch, n)), info.reshape(batch)


def _ldl_one(a: Any, pivots: Any) -> int:
    n, k, info = len(a), 0, 0
    while k < n:
        step, p = 1, k
        size = abs(a[k, k])
        largest, i = 0.0, k
        if k + 1 < n:
            i = k + 1 + int(np.abs(a[k + 1 :, k]).argmax())
            largest = abs(a[i, k])
        if max(size, largest) == 0 or np.isnan(size):
            info = info or k + 1
            pivots[k] = k + 1
            k += 1
            continue
        if size < _GROWTH * largest:
            rest = max(np.abs(a[i, k:i]).max(), np.abs(a[i + 1 :, i]).max() if i + 1 < n else 0.0)
            if size >= _GROWTH * largest * (largest / rest):
                p = k
            elif abs(a[i, i]) >= _GROWTH * rest:
                p = i
            else:
                p, step = i, 2
        at = k + step - 1
        if p != at:
            _swap(a, at, p)
            if step == 2:
                a[at, k], a[p, k] = a[p, k].copy(), a[at, k].copy()
        if step == 1:
            if k + 1 < n:
                column = a[k + 1 :, k] / a[k, k]
                a[k + 1 :, k + 1 :] -= np.tril(np.multiply.outer(column, a[k + 1 :, k]))
                a[k + 1 :, k] = column
            pivots[k] = p + 1
        else:
            if k + 2 < n:
                lower = a[k + 1, k]
                block = np.array([[a[k, k], lower], [lower, a[k + 1, k + 1]]], a.dtype)
                columns = np.linalg.solve(block, a[k + 2 :, k : k + 2].T).T
                a[k + 2 :, k + 2 :] -= np.tril(np.matmul(columns, a[k + 2 :, k : k + 2].T))
                a[k + 2 :, k : k + 2] = columns
            pivots[k] = pivots[k + 1] = -(p + 1)
        k += step
    return info


def _swap(a: Any, i: int, p: int) -> None:
    """Exchange rows and columns i < p of a symmetric matrix of which the lower triangle is kept, from column i on."""
    below = a[p + 1 :, i].copy()
    a[p + 1 :, i] = a[p + 1 :, p]
    a[p + 1 :, p] = below
    between = a[i + 1 : p, i].copy()
    a[i + 1 : p, i] = a[p, i + 1 : p]
    a[p, i + 1 : p] = between
    a[i, i], a[p, p] = a[p, p].copy(), a[i, i].copy()


def ldl_solve(factors: Any, pivots: Any, b: Any) -> Any:
    """Return the X of A X = B by the factors of `ldl`; leading dimensions broadcast."""
    n = factors.shape[-1]
    batch = np.broadcast_shapes(factors.shape[:-2], b.shape[:-2])
    x = np.empty_like(b, shape=(*batch, *b.shape[-2:]), order="C")
    x[...] = b
    flat = x.reshape((-1, *b.shape[-2:]))
    a = np.broadcast_to(factors, (*batch, n, n)).reshape((-1, n, n))
    p = np.broadcast_to(pivots, (*batch, n)).reshape((-1, n))
    for k in range(len(flat)):
        _ldl_solve_one(a[k], p[k], flat[k])
    return flat.reshape(x.shape)


def _ldl_solve_one(a: Any, pivots: Any, x: Any) -> None:
    n, k = len(a), 0
    starts = []
    while k < n:  # P and L, block by block, and D
        step = 1 if pivots[k] > 0 else 2
        at, p = k + step - 1, abs(int(pivots[k])) - 1
        if p != at:
            x[[at, p]] = x[[p, at]]
        x[k + step :] -= np.matmul(a[k + step :, k : k + step], x[k : k + step])
        if step == 1:
            x[k] /= a[k, k]
        else:
            lower = a[k + 1, k]
            block = np.array([[a[k, k], lower], [lower, a[k + 1, k + 1]]], a.dtype)
            x[k : k + 2] = np.linalg.solve(block, x[k : k + 2])
        starts.append((k, step, at, p))
        k += step
    for k, step, at, p in reversed(starts):  # their transposes
        x[k : k + step] -= np.matmul(a[k + step :, k : k + step].T, x[k + step :])
        if p != at:
            x[[at, p]] = x[[p, at]]


# The exponential ----------------------------------------------------------------------------------

_PADE = (
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
_RADIUS = 5.371920351148152


def exponential(x: Any) -> Any:
    """Return the matrix exponentials.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited" (2005): the Padé
        approximant of degree 13, whose backward error is below float64's unit roundoff for norms up to 5.37. Each
        matrix of a stack has its own scaling.
    """
    n = x.shape[-1]
    if not x.size:
        return x.copy()
    wide = x if x.dtype.kind == "f" and x.dtype.itemsize == 8 else x.astype(np.float64)
    norms = np.abs(wide).sum(-2).max(-1)
    finite = np.isfinite(norms)
    ratio = np.maximum(np.where(finite, norms, 0) / _RADIUS, 1)
    times = np.ceil(np.log2(ratio)).astype(np.int64)
    a = np.where(finite[..., None, None], wide, 0) / np.exp2(times)[..., None, None]
    identity = np.eye(n)
    b = _PADE
    a2 = np.matmul(a, a)
    a4 = np.matmul(a2, a2)
    a6 = np.matmul(a2, a4)
    odd = np.matmul(a6, b[13] * a6 + b[11] * a4 + b[9] * a2)
    odd = np.matmul(a, odd + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * identity)
    even = np.matmul(a6, b[12] * a6 + b[10] * a4 + b[8] * a2)
    even = even + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * identity
    result = np.linalg.solve(even - odd, even + odd)
    for k in range(int(times.max())):
        squared = np.matmul(result, result)
        result = np.where((times > k)[..., None, None], squared, result)
    if not finite.all():
        result = np.where(finite[..., None, None], result, np.nan)
    return result.astype(x.dtype, copy=False)
