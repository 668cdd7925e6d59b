"""Products of matrices, and attention."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from tinytorch.kernels import dtypes
from tinytorch.onnx.builder import Builder, Unsaid, Value, says


@says("matmul", "mm", "bmm", "mv", "dot", "vdot", "linalg.matmul", operator.matmul)
def _matmul(b: Builder, x: Value, y: Value) -> Any:
    return b.op("MatMul", x, y)


@says("inner")
def _inner(b: Builder, x: Value, y: Value) -> Any:
    if not x.ndim or not y.ndim:
        return b.op("Mul", x, y)
    return b.op("MatMul", x, y) if y.ndim == 1 else _with_transposed(b, x, y)


def _with_transposed(b: Builder, x: Any, y: Value) -> str:
    if y.ndim != 2:
        raise Unsaid("an inner product of tensors of many dimensions")
    return b.op("MatMul", x, b.op("Transpose", y, perm=[1, 0]))


@says("outer", "ger")
def _outer(b: Builder, x: Value, y: Value) -> Any:
    return b.op("Mul", b.unsqueezed(b.cast(x, b.out.dtype), 1), b.unsqueezed(b.cast(y, b.out.dtype), 0))


@says("nn.functional.linear")
def linear(b: Builder, x: Value, weight: Value, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias`."""
    if x.ndim == 2 and weight.ndim == 2 and (bias is None or bias.ndim == 1):
        return b.op("Gemm", x, weight, bias, transB=1)
    y = b.op("MatMul", x, b.op("Transpose", weight, perm=[1, 0]) if weight.ndim == 2 else weight)
    return y if bias is None else b.op("Add", y, bias)


def _sum_of(b: Builder, x: Value, product: str, beta: Any, alpha: Any) -> str:
    dtype = b.out.dtype
    product = product if alpha == 1 else b.op("Mul", product, b.cast(alpha, dtype))
    if beta == 0:
        return b.op("Expand", product, b.op("Shape", product))
    return b.op("Add", b.cast(x, dtype) if beta == 1 else b.op("Mul", x, b.cast(beta, dtype)), product)


@says("baddbmm")
def _baddbmm(b: Builder, x: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _sum_of(b, x, b.op("MatMul", batch1, batch2), beta, alpha)


@says("addmv")
def _addmv(b: Builder, x: Value, mat: Value, vec: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _sum_of(b, x, b.op("MatMul", mat, vec), beta, alpha)


@says("addmm")
def _addmm(b: Builder, x: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if mat1.ndim == 2 and mat2.ndim == 2 and x.ndim <= 2 and b.out.dtype.is_floating_point:
        return b.op("Gemm", mat1, mat2, x, alpha=float(alpha), beta=float(beta))
    return _sum_of(b, x, b.op("MatMul", mat1, mat2), beta, alpha)


@says("addbmm")
def _addbmm(b: Builder, x: Value, batch1: Value, batch2: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    product = b.op("ReduceSum", b.op("MatMul", batch1, batch2), np.array([0]), keepdims=0)
    return _sum_of(b, x, product, beta, alpha)


@says("addr")
def _addr(b: Builder, x: Value, vec1: Value, vec2: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    return _sum_of(b, x, b.op("Mul", b.unsqueezed(vec1, 1), b.unsqueezed(vec2, 0)), beta, alpha)


@says("einsum")
def _einsum(b: Builder, equation: Any, *operands: Any) -> Any:
    if not isinstance(equation, str):
        raise Unsaid("the equation is not a string")
    if len(operands) == 1 and isinstance(operands[0], list):
        operands = tuple(operands[0])
    known: dict[str, str] = {}
    free = iter([letter for letter in "abcdefghijklmnopqrstuvwxyz" if letter not in equation])
    lower = "".join([
        letter if not letter.isupper() else known.setdefault(letter, known.get(letter) or next(free))
        for letter in equation.replace(" ", "")
    ])  # fmt: skip
    return b.op("Einsum", *operands, equation=lower)


@says("tensordot")
def _tensordot(b: Builder, x: Value, y: Value, dims: Any = 2, out: Any = None) -> Any:
    if isinstance(dims, int):
        first, second = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    else:
        first, second = [list(d) if isinstance(d, (tuple, list)) else [d] for d in dims]
    letters = "abcdefghijklmnopqrstuvwxyz"
    left = list(letters[: x.ndim])
    right = list(letters[x.ndim : x.ndim + y.ndim])
    for i, j in zip(first, second, strict=True):
        right[y.dim(j)] = left[x.dim(i)]
    summed = {left[x.dim(i)] for i in first}
    result = "".join([letter for letter in left + right if letter not in summed])
    return b.op("Einsum", x, y, equation=f"{''.join(left)},{''.join(right)}->{result}")


@says("bilinear", "nn.functional.bilinear")
def _bilinear(b: Builder, input1: Value, input2: Value, weight: Value, bias: Any = None) -> Any:
    y = b.op("Einsum", input1, weight, input2, equation="...i,oij,...j->...o")
    return y if bias is None else b.op("Add", y, bias)


@says("nn.functional.scaled_dot_product_attention")
def _attention(
    b: Builder, query: Value, key: Value, value: Value, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p:
        raise Unsaid("random numbers are drawn")
    dtype, width = query.dtype, query.shape[-1]
    if scale is None:
        if width is None:
            raise Unsaid("the width of the heads is not known")
        scale = 1 / math.sqrt(width)
    keys, values = key, value
    if enable_gqa:
        keys, values = [_repeated(b, x, query) for x in (key, value)]
    order = list(range(keys.ndim))
    order[-2:] = order[:-3:-1]
    # (Both factors are scaled, as the numbers of their product may be large.)
    root = b.cast(math.sqrt(b.number(scale, "the scale")), dtype)
    scores = b.op("MatMul", b.op("Mul", query, root), b.op("Mul", b.op("Transpose", keys, perm=order), root))
    lowest = b.cast(-math.inf, dtype)
    if is_causal:
        shape = b.ints([b.size(query, -2), b.size(key, -2)])
        ones = b.op("ConstantOfShape", shape, value=b.onnx.numpy_helper.from_array(np.ones(1, np.float32)))
        seen = b.op("Cast", b.op("Trilu", ones, upper=0), to=b.type_of(dtypes.bool))
        scores = b.op("Where", seen, scores, lowest)
    if attn_mask is not None and attn_mask.dtype is dtypes.bool:
        scores = b.op("Where", attn_mask, scores, lowest)
    elif attn_mask is not None:
        scores = b.op("Add", scores, b.cast(attn_mask, dtype))
    weights = b.op("Softmax", scores, axis=-1)
    if attn_mask is not None and attn_mask.dtype is dtypes.bool:  # (a row that sees nothing gives zeros)
        weights = b.op("Where", b.op("IsNaN", weights), b.cast(0, dtype), weights)
    return b.op("MatMul", weights, values)


def _repeated(b: Builder, x: Value, query: Value) -> Value:
    """Return keys or values, each of whose heads is used by several heads of the query."""
    heads, wanted = x.shape[-3], query.shape[-3]
    if heads is None or wanted is None:
        raise Unsaid("the number of heads is not known")
    times = wanted // heads
    sizes = b.sizes(x)
    y = b.op("Expand", b.unsqueezed(x, x.ndim - 2), b.ints([*sizes[:-2], times, *sizes[-2:]]))
    shape = (*x.shape[:-3], wanted, *x.shape[-2:])
    return Value(b.reshaped(y, [*sizes[:-3], wanted, *sizes[-2:]]), shape, x.dtype)


__all__ = ["linear"]
