"""Attention: `scaled_dot_product_attention` and the function of several heads on it (floor 3)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, wrap
from tinytorch.autograd.mode import no_grad
from tinytorch.autograd.op import op
from tinytorch.kernels import attention
from tinytorch.ops.linalg import _C_NAMES, _check_bmm
from tinytorch.ops.nn import softmax

__all__ = ["scaled_dot_product_attention"]


def _weights(
    query: Tensor, key: Tensor, attn_mask: Any, is_causal: bool, scale: float
) -> tuple[Tensor, Any]:
    """Return the attention weights as a composition of ops, for derivatives of a higher order."""
    scores: Tensor = query @ key.transpose(-2, -1) * scale
    if is_causal:
        attn_mask = wrap(attention.causal(*scores.shape[-2:]))
    if attn_mask is not None:
        if attn_mask.dtype is dtypes.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    nothing = (scores == -math.inf).all(-1, True)
    # (Zeros first: softmax of nothing but -inf is NaN, and so would be its gradient.)
    return softmax(scores.masked_fill(nothing, 0), -1).masked_fill(nothing, 0)


def _attention_rule(
    g: Tensor, needs: tuple[bool, ...], query: Tensor, key: Tensor, value: Tensor, attn_mask: Any,
    keep: Any, is_causal: bool, scale: float, weights: Any, out: Tensor,
) -> Any:  # fmt: skip
    if weights is not None:
        arrays = attention.backward(
            g._array, needs, query._array, key._array, value._array,
            None if keep is None else keep._array, scale, weights._array, out._array,
        )  # fmt: skip
        return (*[None if array is None else wrap(array) for array in arrays], None)
    weights = _weights(query, key, attn_mask, is_causal, scale)
    kept = weights if keep is None else weights * keep
    of_value = kept.transpose(-2, -1) @ g if needs[2] else None
    of_query = of_key = of_mask = None
    if needs[0] or needs[1] or needs[3]:
        slope = g @ value.transpose(-2, -1)
        if keep is not None:
            slope = slope * keep
        slope = weights * (slope - (slope * weights).sum(-1, True))
        of_mask = slope if needs[3] else None
        of_query = slope @ key * scale if needs[0] else None
        of_key = slope.transpose(-2, -1) @ query * scale if needs[1] else None
    return of_query, of_key, of_value, of_mask, None


@op(
    joint=_attention_rule,
    inputs=("query", "key", "value", "attn_mask", "keep"),
    residuals=("weights",),
    name="ScaledDotProductFlashAttentionForCpu",
    broadcasts=True,
)
def _attention(
    query: Any, key: Any, value: Any, attn_mask: Any, keep: Any, is_causal: bool, scale: float
) -> Any:
    if query.dtype.kind not in "fV":
        name = dtypes.from_numpy_dtype(query.dtype).tensor_name
        raise RuntimeError(f"expected scalar type Float but found {name}")
    return attention.forward(query, key, value, attn_mask, keep, is_causal, scale)


def _drawn(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor | None:
    """Return the factors of dropout with probability p: zeros and `1 / (1 - p)`; None where there is none."""
    if not p > 0:
        return None
    if p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    factors: Tensor = wrap(np.zeros_like(like._array, shape=shape, order="C"))
    if p < 1 and factors._array.size:
        with no_grad():
            factors.bernoulli_(1 - p).div_(1 - p)
    return factors


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return `softmax(query @ key.T * scale + attn_mask) @ value`.

    Args:
        query: shape (*, L, E).
        key: shape (*, S, E).
        value: shape (*, S, Ev).
        attn_mask: a shape that broadcasts to (*, L, S): booleans, True where to attend, or numbers
            to add. A query that may attend to nothing gets zeros.
        dropout_p: the probability with which attention weights are dropped; it is up to you to give
            0 in evaluation.
        is_causal: each query attends to the keys up to its own place only.
        scale: by default `1 / sqrt(E)`.
        enable_gqa: key and value may have fewer heads (dimension -3), each for a group of query
            heads.

    Returns:
        A tensor of shape (*, L, Ev).

    Raises:
        RuntimeError: both `attn_mask` and `is_causal` are given; shapes or dtypes do not fit.
        TypeError: query, key or value is no tensor.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        tensor([[[1.0000, 0.0000],
                 [0.3302, 0.6698]]])

    Source:
        Vaswani et al., "Attention Is All You Need", 2017, equation 1.
        Dao et al., "FlashAttention", 2022, for the gradient.
    """
    _check_attention(query, key, value, attn_mask, is_causal)
    if enable_gqa:
        for each in (query, key, value):
            if each.ndim < 3:
                raise IndexError(
                    f"Dimension out of range (expected to be in range of [{-each.ndim}, {each.ndim - 1}], but got -3)"
                )
        heads = query.shape[-3]
        if any(not each.shape[-3] or heads % each.shape[-3] for each in (key, value)):
            raise RuntimeError(
                "Number of heads in key and value must divide the number of heads in query"
            )
        key, value = (
            each if each.shape[-3] == heads else each.repeat_interleave(heads // each.shape[-3], -3)
            for each in (key, value)
        )
    q, k, v = query._array, key._array, value._array
    batch = q.shape[:-2]
    if not batch == k.shape[:-2] == v.shape[:-2] or q.shape[-1] != k.shape[-1]:
        _check_bmm(q, k.swapaxes(-1, -2), same_batch=False)
        batch = np.broadcast_shapes(batch, k.shape[:-2])
    shape = (*batch, q.shape[-2], k.shape[-2])
    if v.shape[:-2] != batch or v.shape[-2] != k.shape[-2]:
        _check_bmm(np.broadcast_to(q.dtype.type(0), shape), v, same_batch=False)
    if attn_mask is not None:
        _check_mask(attn_mask, shape)
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1]) if q.shape[-1] else math.inf
    if not q.shape[-1]:
        scale = 1.0  # of scores that are zeros
    keep = _drawn(query, shape, dropout_p)
    out: Tensor = _attention(query, key, value, attn_mask, keep, is_causal, scale)
    return out


def _check_attention(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
    name = "scaled_dot_product_attention"
    for position, (what, each) in enumerate((("query", query), ("key", key), ("value", value))):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{name}(): argument '{what}' (position {position + 1}) must be Tensor, not {type(each).__name__}"
            )
    if not query.dtype is key.dtype is value.dtype:
        found = [_C_NAMES[each.dtype.name] for each in (query, key, value)]
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{found[0]} key.dtype: {found[1]} and value.dtype: {found[2]} instead."
        )
    if query.ndim < 2 or key.ndim < 2 or value.ndim < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if attn_mask is None:
        return
    if not isinstance(attn_mask, Tensor):
        raise TypeError(
            f"{name}(): argument 'attn_mask' (position 4) must be Tensor, not {type(attn_mask).__name__}"
        )
    if attn_mask.dtype not in (dtypes.bool, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{_C_NAMES[attn_mask.dtype.name]} and  query.dtype: {_C_NAMES[query.dtype.name]} instead."
        )
    if is_causal:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )


def _check_mask(mask: Tensor, scores: tuple[int, ...]) -> None:
    """Raise PyTorch's error if the mask does not broadcast to the shape of the scores."""
    if mask.ndim < 2:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(mask.ndim, 1)}, {max(mask.ndim, 1) - 1}], "
            "but got -2)"
        )
    for back in range(1, min(mask.ndim, len(scores)) + 1):
        if mask.shape[-back] not in (1, scores[-back]):
            raise RuntimeError(
                f"The size of tensor a ({scores[-back]}) must match the size of tensor b ({mask.shape[-back]}) at "
                f"non-singleton dimension {len(scores) - back}"
            )
    if mask.ndim > len(scores):
        raise RuntimeError(
            f"output with shape {list(scores)} doesn't match the broadcast shape "
            f"{[*mask.shape[: mask.ndim - len(scores)], *scores]}"
        )
