"""Products of matrices and vectors, of all dtypes, with the errors of PyTorch's."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .activation import widened
from .checks import broadcast, plain, refused
from .checks import tensor_name as _name
from .dtypes import DIFFERENTIABLE, FLOATS, RARE
from .layouts import arranged
from .meta import MetaArray, is_meta
from .native import twin
from .reduce import add_to_rows

Array = Any
_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)

#: Multiplications below which a product of matrices is left to BLAS; equal to MIN_PRODUCT of native/native.h.
SMALL = 1 << 15


@twin
def product(a: Array, b: Array, out: Array | None = None) -> Array:
    """Return the product of float matrices (m, k) and (k, n) with any strides, of vectors, or of stacks of matrices.

    Args:
        a, b: the factors. Leading dimensions broadcast.
        out: takes the result, and shares no memory with the factors.
    """
    if type(b) is MetaArray:
        return np.matmul(a, b, out=out)  # (`dot` would read its memory)
    if a.ndim < 3 > b.ndim and (out is None or out.flags.c_contiguous):
        # One call of BLAS, without a copy of transposed views. (`dot` treats a matrix of one zero as a scalar factor,
        # which turns infinities into 0 instead of NaN.)
        return a.dot(b, out=out) if a.size != 1 != b.size else np.matmul(a, b, out=out)
    return np.matmul(_regular(a), _regular(b), out=out)


def _regular(a: Array) -> Array:
    """Return `a`, copied if BLAS cannot read its strides (NumPy's loop for these is many times slower)."""
    row, column = a.strides[-2:]
    size = a.itemsize
    if (column == size and row >= size * a.shape[-1]) or (row == size and column >= size * a.shape[-2]):
        return a
    return a.copy() if a.size > 256 else a


@twin
def linear(x: Array, weight: Array, bias: Array | None) -> Array:
    """Return `x weight.T + bias` of matrices (m, k) and (n, k) of floats; the bias broadcasts to (n,), or is None."""
    out = product(x, weight.T)
    if bias is not None:
        add_to_rows(out, bias)
    return out


# Products of all dtypes ---------------------------------------------------------------------------


def multiplied(a: Any, b: Any, name: str) -> Any:
    """Return the product of arrays; `name` is PyTorch's kernel, which the error for an unsupported dtype names."""
    dtype = a.dtype
    if dtype is _F32 or dtype is _F64:
        return product(a, b)
    if dtype.char in RARE and (dtype.kind == "b" or (a.size and b.size)):
        raise refused(name, a)
    if dtype.kind in FLOATS and dtype.itemsize < 4:  # 16-bit floats are summed in float32, as in PyTorch
        return product(a.astype(np.float32), b.astype(np.float32)).astype(dtype)
    if dtype.kind in "iu" and a.size > _MANY and b.size > _MANY and not is_meta(a):
        return _of_integers(a, b)
    return product(a, b)


_MANY = 1 << 9  # elements of matrices whose product takes longer by NumPy's loop of integers than what follows


def _of_integers(a: Array, b: Array) -> Array:
    """Return the product of integers: by BLAS where the sums are so small that a floating-point number holds them."""
    most = a.shape[-1] * math.prod([max(abs(float(x.max())), abs(float(x.min()))) for x in (a, b)])
    for wide, limit in ((np.float32, 2**24), (np.float64, 2**53)):
        if most < limit:
            sums = product(a.astype(wide), b.astype(wide)).astype(np.int64)
            return sums.astype(a.dtype, copy=False)  # (wraps around)
    return product(a, b)


@twin
def mm(a: Array, b: Array) -> Array:
    """Return the product of two matrices."""
    return multiplied(a, b, "addmm_impl_cpu_")


@twin
def mm_nt(a: Array, b: Array) -> Array:
    """Return the product of a matrix and a transposed matrix."""
    return multiplied(a, b.T, "addmm_impl_cpu_")


@twin
def mm_tn(a: Array, b: Array) -> Array:
    """Return the product of a transposed matrix and a matrix."""
    return multiplied(a.T, b, "addmm_impl_cpu_")


def mm_nt_columns(a: Array, b: Array) -> Array:
    """Return `mm_nt`, column-major."""
    return multiplied(b, a.T, "addmm_impl_cpu_").T


def mm_tn_columns(a: Array, b: Array) -> Array:
    """Return `mm_tn`, column-major."""
    return multiplied(b.T, a, "addmm_impl_cpu_").T


def bmm(a: Array, b: Array) -> Array:
    """Return the products of stacks of matrices."""
    return multiplied(a, b, "bmm")


def bmm_nt(a: Array, b: Array) -> Array:
    """Return the products of matrices and transposed matrices."""
    return multiplied(a, b.swapaxes(-1, -2), "bmm")


def bmm_tn(a: Array, b: Array) -> Array:
    """Return the products of transposed matrices and matrices."""
    return multiplied(a.swapaxes(-1, -2), b, "bmm")


def grouped_mm(a: Array, b: Array, offs: Array | None) -> Array:
    """Return products of groups of rows, of columns, or of both, that lie one after the other in one matrix.

    Args:
        a, b: matrices (m, k) and (groups, k, n), whose result is (m, n): groups of rows; or (groups, m, k) and (k, n),
            whose result is (m, n): groups of columns; or (m, k) and (k, n), whose result is (groups, m, n): groups of
            terms of the sums. What belongs to no group is 0. Two stacks are multiplied as by `bmm`.
        offs: where each group ends; the next one starts there. None for two stacks.
    """
    if offs is None:
        return bmm(a, b)
    rows, columns = a.ndim == 2, b.ndim == 2
    shape = (len(offs),) * (rows and columns) + (a.shape[-2], b.shape[-1])
    out = np.zeros_like(a, shape=shape, order="C")
    if is_meta(out):
        return out
    start = 0
    for k, end in enumerate(offs.tolist()):
        part = slice(start, end)
        if rows and columns:
            out[k] = multiplied(a[:, part], b[part], "grouped_mm")
        elif rows:
            out[part] = multiplied(a[part], b[k], "grouped_mm")
        else:
            out[:, part] = multiplied(a[k], b[:, part], "grouped_mm")
        start = end
    return out


def mv(a: Array, b: Array) -> Array:
    """Return the product of a matrix and a vector."""
    return multiplied(a, b, "addmv_impl_cpu")


def mv_t(a: Array, b: Array) -> Array:
    """Return the product of a transposed matrix and a vector."""
    return multiplied(a.T, b, "addmv_impl_cpu")


def vm(a: Array, b: Array) -> Array:
    """Return the product of a vector and a matrix."""
    return multiplied(b.T, a, "addmv_impl_cpu")


def dot(a: Array, b: Array) -> Array:
    """Return the scalar product of two vectors."""
    return multiplied(a, b, "dot")


def vdot(x: Array, y: Array) -> Array:
    """Return the scalar product of two vectors, the first one conjugated."""
    return np.asarray(np.vdot(x, y))


# Checks -------------------------------------------------------------------------------------------


def check_mm(a: Any, b: Any) -> None:
    """Raise PyTorch's error unless two matrices can be multiplied."""
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        first, second = (dtypes.C_NAMES[dtypes.from_numpy_dtype(x.dtype).name] for x in (a, b))
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {first} != {second}. Convert one: x.to(y.dtype)"
        )


def check_mv(a: Any, b: Any, rows: int | None = None) -> None:
    """Raise PyTorch's error unless a matrix and a vector can be multiplied; `rows` is the length of the addend."""
    if a.ndim != 2 or b.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {b.ndim}")
    if a.shape[1] != b.shape[0]:
        rows = a.shape[0] if rows is None else rows
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({a.shape[0]}x{a.shape[1]}), vec ({b.shape[0]})")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {_name(b)}, {_name(a)}, and {_name(b)}"
        )


def check_dot(a: Any, b: Any) -> None:
    """Raise PyTorch's error unless two vectors can be multiplied."""
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {_name(a)} and {_name(b)}")
    if len(a) != len(b):
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{len(a)}] and src [{len(b)}] to have the same number of "
            f"elements, but got {len(a)} and {len(b)} elements respectively"
        )


def check_bmm(a: Any, b: Any, same_batch: bool) -> None:
    """Check batches of matrices; with `same_batch` both must be 3-d and of equal length, otherwise they broadcast."""
    batch = a.shape[:-2]
    if same_batch:
        for array, name in ((a, "batch1"), (b, "batch2")):
            if array.ndim != 3:
                raise RuntimeError(f"{name} must be a 3D tensor")
    else:
        batch = broadcast(batch, b.shape[:-2])
    if a.shape[-1] != b.shape[-2] or (same_batch and b.shape[0] != batch[0]):
        expected = [math.prod(batch), a.shape[-1]]
        got = [b.shape[0] if same_batch else expected[0], b.shape[-2]]
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: {expected} but got: {got}.")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {_name(a)} but found {_name(b)}")


# Products with an addend --------------------------------------------------------------------------


def _factors(name: str, beta: Any, alpha: Any) -> tuple[Any, Any]:
    """Return the factors `beta` and `alpha` as Python numbers; they may be 0-d tensors."""
    if type(beta) is type(alpha) is int:
        return beta, alpha
    for argument, factor in (("beta", beta), ("alpha", alpha)):
        if getattr(factor, "requires_grad", False):
            raise TypeError(f"{name}(): argument '{argument}' must be Number, not Tensor")
        if not isinstance(plain(name, argument, factor), (int, float, complex)):
            raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type(factor).__name__}")
    return plain(name, "beta", beta), plain(name, "alpha", alpha)


def _combined(x: Any, product: Any, beta: Any, alpha: Any, blas: bool = True) -> Any:
    """Return `beta * x + alpha * product`, overwriting `product`; if `beta` is 0, `x` is ignored.

    With `blas` (where PyTorch calls BLAS), the product is ignored if `alpha` is 0, even infinities and NaN.
    """
    if product.dtype.kind not in DIFFERENTIABLE:
        beta, alpha = (np.asarray(int(factor)).astype(product.dtype) for factor in (beta, alpha))
    if alpha == 0 and blas and product.dtype.kind in "fc" and product.dtype.itemsize >= 4:
        product[...] = 0
    elif alpha != 1:
        product *= alpha
    if beta != 0:
        product += x if beta == 1 else x * beta
    return product


def _combined_in_single(product: Callable[[Any, Any], Any], x: Any, a: Any, b: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * product(a, b)` of 16-bit floats, computed in float32 and rounded once."""
    if a.shape[-1] == 0:  # an empty sum: PyTorch only multiplies `x` by `beta`, in the dtype
        beta = np.asarray(beta).astype(a.dtype).astype(np.float32)
    out = product(a.astype(np.float32), b.astype(np.float32))
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += x.astype(np.float32) * beta
    return out.astype(a.dtype)


def _combined_by_steps(x: Any, product: Any, beta: Any, alpha: Any, exact_product: bool, exact_x: bool = False) -> Any:
    """Return `beta * x + alpha * product` of 16-bit floats, rounded at the steps where `addmv` and `addr` round.

    Args:
        x: the addend, of the result's dtype.
        product: the product, in float32.
        beta, alpha: the factors of `x` and of the product.
        exact_product: do not round `alpha * product` before the sum.
        exact_x: do not round `beta * x` before the sum.
    """
    dtype = x.dtype
    beta, alpha = (np.asarray(factor).astype(dtype).astype(np.float32) for factor in (beta, alpha))
    product *= alpha
    if not exact_product:
        product = product.astype(dtype).astype(np.float32)
    if beta != 0:
        scaled = x.astype(np.float32) * beta
        product += scaled if exact_x else scaled.astype(dtype)
    return product.astype(dtype)


def _half(x: Any) -> bool:
    return x.dtype.itemsize == 2 and x.dtype.kind in FLOATS


def _check_addend(x: Any, shape: tuple[int, ...]) -> None:
    if x.ndim > len(shape):
        raise RuntimeError(
            f"expand(torch.{_name(x)}Tensor{{{list(x.shape)}}}, size={list(shape)}): the number of sizes provided "
            f"({len(shape)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})"
        )
    for back in range(1, x.ndim + 1):
        if x.shape[-back] not in (1, shape[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({shape[-back]}) must match the existing size ({x.shape[-back]}) at "
                f"non-singleton dimension {len(shape) - back}.  Target sizes: {list(shape)}.  Tensor sizes: "
                f"{list(x.shape)}"
            )


def addmm(x: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * (mat1 @ mat2)`; with `beta` 0, `x` is ignored."""
    beta, alpha = _factors("addmm", beta, alpha)
    for name, array in (("mat1", mat1), ("mat2", mat2)):
        if array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {array.ndim}-D tensor")
    if x.dtype != mat2.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {_name(x)} and {_name(mat2)}")
    check_mm(mat1, mat2)
    _check_addend(x, (mat1.shape[0], mat2.shape[1]))
    if _half(mat1):
        return _combined_in_single(np.dot, x, mat1, mat2, beta, alpha)
    return _combined(x, mm(mat1, mat2), beta, alpha)


def addmv(x: Any, mat: Any, vec: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * (mat @ vec)`; with `beta` 0, `x` is ignored."""
    beta, alpha = _factors("addmv", beta, alpha)
    rows = x.shape[0] if x.ndim else 1
    check_mv(mat, vec, rows)
    if rows not in (1, mat.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({mat.shape[0]}x{mat.shape[1]}), vec ({vec.shape[0]})"
        )
    if x.dtype != vec.dtype:
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {_name(x)}, {_name(mat)}, and {_name(vec)}"
        )
    if _half(mat):
        product = np.dot(mat.astype(np.float32), vec.astype(np.float32))
        row_major = mat.strides[1] == mat.itemsize or mat.strides[0] != mat.itemsize
        exact_x = row_major and alpha == 1 and mat.dtype.kind == "f" and vec.flags.c_contiguous
        return _combined_by_steps(x, product, beta, alpha, row_major, exact_x)
    return _combined(x, mv(mat, vec), beta, alpha)


def baddbmm(x: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * (batch1 @ batch2)`; with `beta` 0, `x` is ignored."""
    beta, alpha = _factors("baddbmm", beta, alpha)
    check_bmm(batch1, batch2, same_batch=True)
    if x.dtype != batch1.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {_name(x)}, batch1: {_name(batch1)}, batch2: {_name(batch2)}"
        )
    _check_addend(x, (*batch1.shape[:2], batch2.shape[2]))
    if _half(batch1):
        return _combined_in_single(np.matmul, x, batch1, batch2, beta, alpha)
    return _combined(x, bmm(batch1, batch2), beta, alpha, blas=False)


def addbmm(x: Any, batch1: Any, batch2: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * sum(batch1 @ batch2)`; with `beta` 0, `x` is ignored."""
    beta, alpha = _factors("addbmm", beta, alpha)
    check_bmm(batch1, batch2, same_batch=True)
    if x.dtype != batch1.dtype:
        raise RuntimeError(f"expected scalar type {_name(x)} but found {_name(batch1)}")
    _check_addend(x, (batch1.shape[1], batch2.shape[2]))
    if _half(batch1):  # rounded after each matrix
        out = np.broadcast_to(x, (batch1.shape[1], batch2.shape[2]))
        if not len(batch1):
            empty = np.zeros((len(out), 0), x.dtype), np.zeros((0, out.shape[1]), x.dtype)
            return _combined_in_single(np.dot, out, *empty, beta, alpha)
        for a, b in zip(batch1, batch2, strict=True):
            out = _combined_in_single(np.dot, out, a, b, beta, alpha)
            beta = 1
        return out
    products = bmm(batch1, batch2)
    return _combined(x, np.add.reduce(products, axis=0, dtype=products.dtype), beta, alpha)


def addr(x: Any, vec1: Any, vec2: Any, beta: Any, alpha: Any) -> Any:
    """Return `beta * x + alpha * outer(vec1, vec2)`; with `beta` 0, `x` is ignored."""
    beta, alpha = _factors("addr", beta, alpha)
    for vector, name in ((vec1, "vec1"), (vec2, "vec2")):
        if vector.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {vector.ndim}-D")
    _check_addend(x, (len(vec1), len(vec2)))
    dtype = functools.reduce(dtypes.promote_types, [dtypes.from_numpy_dtype(a.dtype) for a in (x, vec1, vec2)]).numpy
    for factor, name in ((beta, "beta"), (alpha, "alpha")):
        if isinstance(factor, bool) and dtype.kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(factor, float) and dtype.kind not in DIFFERENTIABLE:
            raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")
    if dtype.itemsize == 2 and dtype.kind in FLOATS:
        alpha = np.asarray(alpha).astype(dtype).astype(np.float32)
        scaled = (vec1.astype(np.float32) * alpha).astype(dtype).astype(np.float32)
        product = np.multiply.outer(scaled, vec2.astype(np.float32))
        return arranged(_combined_by_steps(x.astype(dtype), product, beta, 1, exact_product=False), x)
    product = np.multiply.outer(vec1.astype(dtype, copy=False), vec2.astype(dtype, copy=False))
    return arranged(_combined(x, product, beta, alpha, blas=False), x)


# The linear layer ---------------------------------------------------------------------------------


@twin
def affine(x: Any, weight: Any, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias` for `x` of any number of dimensions, or raise PyTorch's error."""
    try:
        if (
            x.ndim != 2
            or weight.ndim != 2
            or x.dtype is not weight.dtype
            or x.dtype.kind == "b"
            or x.shape[1] != weight.shape[1]
        ):
            _check_linear(x, weight)
            if x.ndim != 2:  # one large product is faster than many small ones
                flat = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
                out = affine(flat, weight, bias)
                return out.reshape(x.shape[:-1] + weight.shape[:-1])
    except AttributeError:
        raise _no_tensor("weight", 2, weight) from None
    if bias is not None:
        _check_bias(bias, x, weight)
    if x.dtype.itemsize >= 4:
        return linear(x, weight, bias)
    return linear(widened(x), widened(weight), bias).astype(x.dtype, copy=False)


def _no_tensor(argument: str, position: int, value: Any) -> TypeError:
    return TypeError(
        f"linear(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
    )


def _check_linear(x: Any, weight: Any) -> None:
    if x.ndim == 0 or weight.ndim == 0:
        raise RuntimeError(
            f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
        )
    if weight.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {weight.ndim}D")
    if x.dtype != weight.dtype:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {_name(x)} and {_name(weight)}")
    if x.dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if x.shape[-1] != weight.shape[-1]:
        if weight.ndim == 1:
            raise RuntimeError(f"size mismatch, got input ({x.shape[-1]}), vec ({weight.shape[0]})")
        rows = math.prod(x.shape[:-1])
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({rows}x{x.shape[-1]} and {weight.shape[1]}x{weight.shape[0]})"
        )


def _check_bias(bias: Any, x: Any, weight: Any) -> None:
    if weight.ndim == 1:
        raise RuntimeError("mat2 must be a matrix, got 1-D tensor")
    try:
        differ = bias.dtype != x.dtype
    except AttributeError:
        raise _no_tensor("bias", 3, bias) from None
    if differ:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {_name(bias)} and {_name(weight)}")
    if bias.shape != weight.shape[:1]:
        features = weight.shape[0]
        if bias.ndim and bias.shape[-1] not in (1, features):
            raise RuntimeError(
                f"The expanded size of the tensor ({features}) must match the existing size ({bias.shape[-1]}) at "
                f"non-singleton dimension 1.  Target sizes: [{math.prod(x.shape[:-1])}, {features}].  Tensor sizes: "
                f"{list(bias.shape)}"
            )


@twin
def column_sums(x: Any) -> Any:
    """Return the sums of floats (..., n) over all dimensions but the last, as a product with ones, which is fastest."""
    rows = widened(x).reshape(math.prod(x.shape[:-1]), x.shape[-1])
    return np.ones(rows.shape[0], rows.dtype, like=rows).dot(rows).astype(x.dtype, copy=False)


# Others -------------------------------------------------------------------------------------------


_CYCLES = np.array([[1, 2, 0], [2, 0, 1]])


@twin
def cross(x: Any, y: Any, dim: int) -> Any:
    """Return the cross products of vectors along a dimension; the other dimensions broadcast."""
    j, k = _CYCLES
    return x.take(j, dim) * y.take(k, dim) - x.take(k, dim) * y.take(j, dim)


@twin
def trace(x: Any) -> Any:
    """Return the sum of the diagonal of a matrix."""
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    if x.dtype.kind == "b":
        raise NotImplementedError("\"trace\" not implemented for 'Bool'")
    if x.dtype.kind in "iu":
        return np.trace(x, dtype=np.int64)
    if x.dtype.kind == "c":
        return np.asarray(np.trace(x))
    wide = x.astype(np.float32) if x.dtype.kind == "V" else x
    return np.trace(wide, dtype=np.float64).astype(x.dtype)


def diagonal_matrix(x: Any, shape: tuple[int, int]) -> Any:
    """Return a matrix with a number on its diagonal, and zeros elsewhere."""
    out = np.zeros(shape, x.dtype, like=x)
    out.reshape(-1)[: min(shape) * shape[1] : shape[1] + 1] = x
    return out
