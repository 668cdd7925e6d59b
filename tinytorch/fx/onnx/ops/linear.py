"""Products of matrices, and attention."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, Unsaid, Value, says
from tinytorch.kernels import dtypes
from tinytorch.ops.nn.attention import canonical_mask

#: The letters of equations, in the order in which dimensions of results stand.
_LETTERS = string.ascii_uppercase + string.ascii_lowercase


@says("matmul", "mm", "bmm", "mv", "dot", "vdot", "linalg.matmul", operator.matmul)
def _matmul(b: Builder, x: Value, y: Value) -> Any:
    if x.dtype.is_floating_point or x.dtype in (dtypes.int32, dtypes.int64):
        return b.op("MatMul", x, y)
    product = b.op("MatMul", b.cast(x, dtypes.int32), b.cast(y, dtypes.int32))
    return b.cast(Value(product, (), dtypes.int32), x.dtype)


@says("inner")
def _inner(b: Builder, x: Value, y: Value) -> Any:
    if not x.ndim or not y.ndim:
        return b.op("Mul", x, y)
    return _tensordot(b, x, y, ([-1], [-1]))


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
def _einsum(b: Builder, *args: Any) -> Any:
    if isinstance(args[0], str):
        equation, operands = args[0].replace(" ", ""), list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], list):
            operands = operands[0]
    else:  # operands, and lists of the numbers of their dimensions, in turn
        operands = list(args[: len(args) // 2 * 2 : 2])
        lists = [*args[1 : len(operands) * 2 : 2], *args[len(operands) * 2 :]]
        texts = ["".join(["..." if k is Ellipsis else _LETTERS[k] for k in each]) for each in lists]
        equation = (
            ",".join(texts[: len(operands)]) + "->" * (len(texts) > len(operands)) + "".join(texts[len(operands) :])
        )
    given, arrow, result = equation.partition("->")
    terms = given.split(",")
    # ONNX knows lower-case letters; "..." stands for as many of them as a term needs.
    free = iter([letter for letter in string.ascii_lowercase if letter not in equation])
    known: dict[str, str] = {}
    lower = [_renamed(term, known, free) for term in (*terms, result)]
    counts = [x.ndim - len(term.replace("...", "")) for term, x in zip(lower, operands, strict=False) if "..." in term]
    more = "".join([next(free) for _ in range(max(counts, default=0))])
    for k, x in enumerate(operands):
        count = x.ndim - len(lower[k].replace("...", ""))
        lower[k] = lower[k].replace("...", more[len(more) - count :])
    lower[-1] = lower[-1].replace("...", more)
    if not arrow:
        own = "".join(lower[:-1])
        kept = sorted({letter for letter in own if own.count(letter) == 1 and letter not in more}, key=_place(known))
        lower[-1] = more + "".join(kept)
    names = []
    for k, x in enumerate(operands):  # dimensions of size 1 that are broadcast
        ones = [
            j for j, letter in enumerate(lower[k])
            if x.shape[j] == 1 and lower[k].count(letter) == 1
            and any(letter in other for i, other in enumerate(lower[:-1]) if i != k)
        ]  # fmt: skip
        names.append(b.squeezed(x, *ones))
        lower[k] = "".join([letter for j, letter in enumerate(lower[k]) if j not in ones])
    if any(letter not in "".join(lower[:-1]) for letter in lower[-1]):
        raise Unsaid("a dimension of size 1 in all operands")
    return b.op("Einsum", *names, equation=f"{','.join(lower[:-1])}->{lower[-1]}")


def _renamed(term: str, known: dict[str, str], free: Iterator[str]) -> str:
    """Return a term with lower-case letters."""
    for letter in term:
        if letter.isupper() and letter not in known:
            known[letter] = next(free)
    return "".join([known.get(letter, letter) for letter in term])


def _place(known: dict[str, str]) -> Callable[[str], int]:
    """Return the order of letters: that of their names in the equation."""
    names = {new: old for old, new in known.items()}
    return lambda letter: _LETTERS.index(names.get(letter, letter))


@says("nn.functional.cosine_similarity", "cosine_similarity")
def _cosine_similarity(b: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Any:
    dtype = b.out.dtype
    axes = np.array([x1.dim(dim) - max(x1.ndim, x2.ndim)])
    sides = []
    for x in (x1, x2):
        y = b.cast(x, dtype)
        sides.append(b.op("Div", y, b.op("Max", b.op("ReduceL2", y, axes, keepdims=1), b.cast(eps, dtype))))
    return b.op("ReduceSum", b.op("Mul", *sides), axes, keepdims=0)


@says("cdist")
def _cdist(b: Builder, x1: Value, x2: Value, p: Any = 2.0, compute_mode: Any = None) -> Any:
    gap = b.op("Abs", b.op("Sub", b.unsqueezed(x1, x1.ndim - 1), b.unsqueezed(x2, x2.ndim - 2)))
    axes = np.array([-1])
    if p in (1, 2):
        return b.op(f"ReduceL{int(p)}", gap, axes, keepdims=0)
    if p == math.inf:
        return b.op("ReduceMax", gap, axes, keepdims=0)
    if not p:
        some = b.op("Cast", b.op("Cast", gap, to=b.type_of(dtypes.bool)), to=b.type_of(b.out.dtype))
        return b.op("ReduceSum", some, axes, keepdims=0)
    total = b.op("ReduceSum", b.op("Pow", gap, b.cast(p, b.out.dtype)), axes, keepdims=0)
    return b.op("Pow", total, b.cast(1 / p, b.out.dtype))


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


@says(canonical_mask)
def _canonical_mask(b: Builder, mask: Value, name: str, other: Any, other_name: str, dtype: Any) -> Any:
    return b.op("Where", mask, b.cast(-math.inf, b.out.dtype), b.cast(0.0, b.out.dtype))


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
    scale = b.number(scale, "the scale")
    root = b.cast(math.sqrt(abs(scale)), dtype)
    scores = b.op("MatMul", b.op("Mul", query, root), b.op("Mul", b.op("Transpose", keys, perm=order), root))
    scores = scores if scale >= 0 else b.op("Neg", scores)
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
