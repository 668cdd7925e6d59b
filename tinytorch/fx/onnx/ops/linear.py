"""Products of matrices, and attention."""

from __future__ import annotations

import math
import operator
import string
from itertools import chain
from typing import Any

import numpy as np

from tinytorch.fx.onnx.builder import Builder, UnsupportedCall, Value, elementwise, rule, torch
from tinytorch.fx.onnx.ops.reduce import norm
from tinytorch.kernels import dtypes
from tinytorch.nn import functional as F
from tinytorch.ops.linalg.products import equation_of, parsed_equation
from tinytorch.ops.nn.attention import canonical_mask


@rule(torch.matmul, torch.mm, torch.bmm, torch.mv, torch.dot, torch.vdot, operator.matmul)
def _matmul(b: Builder, x: Value, y: Value) -> Any:
    if x.dtype.is_floating_point or x.dtype in (dtypes.int32, dtypes.int64):
        return x.MatMul(y)
    return x.cast(dtypes.int32).MatMul(y.cast(dtypes.int32)).cast(x.dtype)


elementwise(torch.outer)(lambda b, x, y: x.unsqueeze(1) * y.unsqueeze(0))


@rule(F.linear)
def linear(b: Builder, x: Value, weight: Value, bias: Any = None) -> Any:
    """Return `x @ weight.T + bias`."""
    if x.ndim == 2 and weight.ndim == 2 and (bias is None or bias.ndim == 1):
        return x.Gemm(weight, bias, transB=1)
    y = x.MatMul(weight.Transpose(perm=[1, 0]) if weight.ndim == 2 else weight)
    return y if bias is None else y + bias


def _sum_of(x: Value, product: Value, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product.Expand(product.Shape())
    return (x.cast(product.dtype) if beta == 1 else x * beta) + product


@rule(torch.addmm)
def _addmm(b: Builder, x: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if mat1.ndim == 2 and mat2.ndim == 2 and x.ndim <= 2 and b.out.dtype.is_floating_point:
        return mat1.Gemm(mat2, x, alpha=float(alpha), beta=float(beta))
    return _sum_of(x, mat1.MatMul(mat2), beta, alpha)


rule(torch.baddbmm)(lambda b, x, batch1, batch2, *, beta=1, alpha=1: _sum_of(x, batch1.MatMul(batch2), beta, alpha))
rule(torch.addmv)(lambda b, x, mat, vec, *, beta=1, alpha=1: _sum_of(x, mat.MatMul(vec), beta, alpha))
rule(torch.addbmm)(
    lambda b, x, batch1, batch2, *, beta=1, alpha=1: _sum_of(
        x, batch1.MatMul(batch2).ReduceSum([0], keepdims=0), beta, alpha
    )
)
rule(torch.addr)(
    lambda b, x, vec1, vec2, *, beta=1, alpha=1: _sum_of(x, vec1.unsqueeze(1) * vec2.unsqueeze(0), beta, alpha)
)


@rule(torch.einsum)
def _einsum(b: Builder, *args: Any) -> Any:
    terms, target, operands = equation_of(*parsed_equation(*args))
    used = {*chain(*terms)}
    free = iter([letter for letter in string.ascii_lowercase if letter not in used])
    # (ONNX knows lower-case letters.)
    names = {each: each if each in [*string.ascii_lowercase] else next(free) for each in dict.fromkeys(chain(*terms))}
    given, texts = [], []
    for k, (term, x) in enumerate(zip(terms, operands, strict=True)):  # without dimensions of size 1 that are broadcast
        others = [letter for i, other in enumerate(terms) if i != k for letter in other]
        ones = [j for j, n in enumerate(x.shape) if n == 1 and term.count(term[j]) == 1 and term[j] in others]
        given.append(x.squeeze(*ones))
        texts.append("".join([names[letter] for j, letter in enumerate(term) if j not in ones]))
    result = "".join([names[letter] for letter in target])
    if any(letter not in "".join(texts) for letter in result):
        raise UnsupportedCall("a dimension of size 1 in all operands")
    return b.node("Einsum", *given, equation=f"{','.join(texts)}->{result}")


@rule(F.cosine_similarity)
def _cosine_similarity(b: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Any:
    axes = [x1.dim(dim) - max(x1.ndim, x2.ndim)]
    x, y = [y / y.ReduceL2(axes, keepdims=1).Max(eps) for y in [x.cast(b.out.dtype) for x in (x1, x2)]]
    return (x * y).ReduceSum(axes, keepdims=0)


@rule(torch.cdist)
def _cdist(b: Builder, x1: Value, x2: Value, p: Any = 2.0, compute_mode: Any = None) -> Any:
    return norm(x1.unsqueeze(x1.ndim - 1) - x2.unsqueeze(x2.ndim - 2), p, [-1])


@rule(torch.tensordot)
def _tensordot(b: Builder, x: Value, y: Value, dims: Any = 2, out: Any = None) -> Any:
    if isinstance(dims, int):
        first, second = list(range(x.ndim - dims, x.ndim)), list(range(dims))
    else:
        first, second = [list(d) if isinstance(d, (tuple, list)) else [d] for d in dims]
    letters = string.ascii_lowercase
    left = list(letters[: x.ndim])
    right = list(letters[x.ndim : x.ndim + y.ndim])
    for i, j in zip(first, second, strict=True):
        right[y.dim(j)] = left[x.dim(i)]
    summed = {left[x.dim(i)] for i in first}
    result = "".join([letter for letter in left + right if letter not in summed])
    return x.Einsum(y, equation=f"{''.join(left)},{''.join(right)}->{result}")


@rule(torch.bilinear)
def _bilinear(b: Builder, input1: Value, input2: Value, weight: Value, bias: Any = None) -> Any:
    y = input1.Einsum(weight, input2, equation="...i,oij,...j->...o")
    return y if bias is None else y + bias


rule(canonical_mask)(lambda b, mask, name, other, other_name, dtype: b.where(mask, -math.inf, 0.0))


@rule(F.scaled_dot_product_attention)
def _attention(
    b: Builder, query: Value, key: Value, value: Value, attn_mask: Any = None, dropout_p: float = 0.0,
    is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
) -> Any:  # fmt: skip
    if dropout_p:
        raise UnsupportedCall("random numbers are drawn")
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1] or b.refuse("the width of the heads is not known"))
    keys, values = [_repeated(x, query) for x in (key, value)] if enable_gqa else (key, value)
    order = list(range(keys.ndim))
    order[-2:] = order[:-3:-1]
    # (Both factors are scaled, as the numbers of their product may be large.)
    root = math.sqrt(abs(b.number(scale, "the scale")))
    scores = (query * root).MatMul(keys.Transpose(perm=order) * root)
    scores = scores if scale >= 0 else -scores
    if is_causal:
        number = b.onnx.numpy_helper.from_array(np.ones(1, np.float32))
        ones = b.node("ConstantOfShape", [query.size(-2), key.size(-2)], value=number)
        seen = ones.Trilu(upper=0).convert(dtypes.bool)
        scores = b.where(seen, scores, -math.inf)
    masked = attn_mask is not None and attn_mask.dtype is dtypes.bool
    if masked:
        scores = b.where(attn_mask, scores, -math.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask.cast(query.dtype)
    weights = scores.Softmax(axis=-1)
    if masked:  # (a row that sees nothing gives zeros)
        weights = b.where(weights.IsNaN(), 0, weights)
    return weights.MatMul(values)


def _repeated(x: Value, query: Value) -> Value:
    """Return keys or values, each of whose heads is used by several heads of the query."""
    heads, wanted = x.shape[-3], query.shape[-3]
    if heads is None or wanted is None:
        raise UnsupportedCall("the number of heads is not known")
    sizes = x.sizes
    y = x.unsqueeze(x.ndim - 2).Expand([*sizes[:-2], wanted // heads, *sizes[-2:]])
    return y.reshape([*sizes[:-3], wanted, *sizes[-2:]]).with_shape(*x.shape[:-3], wanted, *x.shape[-2:])
