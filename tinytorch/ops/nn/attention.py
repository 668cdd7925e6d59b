"""Attention: `scaled_dot_product_attention`, and multi-head attention, which uses it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.mode import recording, traced_as
from tinytorch.core.tensor import Tensor, constant
from tinytorch.core.warning import warn
from tinytorch.kernels import attention, dtypes
from tinytorch.kernels.checks import check_expands, out_of_range
from tinytorch.kernels.products import check_bmm
from tinytorch.ops import autocast
from tinytorch.ops.arguments import op_of
from tinytorch.ops.join import cat
from tinytorch.ops.masks import where
from tinytorch.ops.nn.activation import softmax
from tinytorch.ops.nn.linear import linear
from tinytorch.ops.random import apart
from tinytorch.ops.rearrange import constant_pad
from tinytorch.ops.register import public


def _weights(query: Tensor, key: Tensor, attn_mask: Any, is_causal: bool, scale: float) -> Tensor:
    """Return the attention weights as a composition of ops, for derivatives of a higher order."""
    scores: Tensor = query @ key.transpose(-2, -1) * scale
    if is_causal:
        attn_mask = constant(attention.causal(*scores.shape[-2:]))
    if attn_mask is not None:
        if attn_mask.dtype is dtypes.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        else:
            scores = scores + attn_mask
    nothing = (scores == -math.inf).all(-1, True)
    # (Rows are filled with zeros first: softmax of a row of -inf is NaN, and so is its gradient.)
    return softmax(scores.masked_fill(nothing, 0), -1).masked_fill(nothing, 0)


def _attention_rule(
    g: Tensor, needs: tuple[bool, ...], query: Tensor, key: Tensor, value: Tensor, attn_mask: Any,
    keep: Any, is_causal: bool, scale: float, weights: Any, out: Tensor,
) -> Any:  # fmt: skip
    if weights is not None:
        grads = _attention_grad(g, needs, query, key, value, keep, is_causal, scale, weights, out)
        return (*grads, None)
    if query._array.dtype.itemsize == 2:  # as the kernel does; the engine casts the gradients
        g, query, key, value = g.float(), query.float(), key.float(), value.float()
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


_attention = op_of(
    attention.attention,
    batch="attention",
    joint=_attention_rule,
    inputs=("query", "key", "value", "attn_mask", "keep"),
    residuals=("weights",),
    multiply_adds=lambda out, q, k, v, *rest: math.prod(out[:-1]) * k[-2] * (q[-1] + v[-1]),
    name="ScaledDotProductFlashAttentionForCpu",
    broadcasts=True,
)
_attention_grad = op_of(
    attention.attention_grad, batch="attention",
    name="ScaledDotProductFlashAttentionForCpuBackward", outputs=4, g=None, query=None,
    key=None, value=None, keep=None, weights=None, out=None,
)  # fmt: skip


def _drawn(like: Tensor, shape: tuple[int, ...], p: float) -> Tensor | None:
    """Return the factors of dropout with probability p: zeros and `1 / (1 - p)`; None where there is none."""
    if not p > 0:
        return None
    if p > 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    factors: Tensor = constant(np.zeros_like(like._array, shape=shape, order="C"))
    if p < 1 and factors._array.size:
        with recording(False):
            factors = apart(factors).bernoulli_(1 - p).div_(1 - p)
    return factors


@public("nn.functional.scaled_dot_product_attention", binds=False)
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
    """Return `softmax(query @ key.T * scale + attn_mask) @ value`, of shape (*, L, Ev).

    Shapes: (*, L, E), (*, S, E), (*, S, Ev), and for the mask one that broadcasts to (*, L, S): booleans, True where to
    attend, or numbers to add. A query that may attend to nothing gets zeros. Dropout is applied whenever `dropout_p` is
    not 0, also in evaluation. With `is_causal` each query attends only to the keys up to its own position; together
    with a mask only where PyTorch has a fused kernel: inputs of four dimensions, a mask of two or four without
    gradient, no dropout. With `enable_gqa` key and value may have fewer heads (dimension -3), each for a group of query
    heads.

    Example:
        >>> x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
        >>> torch.nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)
        tensor([[[1.0000, 0.0000],
                 [0.3302, 0.6698]]])

    Source:
        Vaswani et al., "Attention Is All You Need", 2017, equation 1.
        Dao et al., "FlashAttention", 2022, for the gradient.
    """
    if autocast.on:
        query, key, value, attn_mask = autocast.lowered(query, key, value, attn_mask)
    _check_attention(query, key, value, attn_mask)
    if attn_mask is not None:
        nothing = not value._array.size or 0 in query.shape[:-1]
        if not (nothing or (not dropout_p and _is_fused(query, key, value, attn_mask, enable_gqa))) and is_causal:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
    if enable_gqa:
        for each in (query, key, value):
            if each.ndim < 3:
                raise out_of_range(-3, each.ndim)
        heads = query.shape[-3]
        if any(not each.shape[-3] or heads % each.shape[-3] for each in (key, value)):
            raise RuntimeError("Number of heads in key and value must divide the number of heads in query")
        key, value = (
            each if each.shape[-3] == heads else each.repeat_interleave(heads // each.shape[-3], -3)
            for each in (key, value)
        )
    q, k, v = query._array, key._array, value._array
    batch = q.shape[:-2]
    if not batch == k.shape[:-2] == v.shape[:-2] or q.shape[-1] != k.shape[-1]:
        check_bmm(q, k.swapaxes(-1, -2), same_batch=False)
        batch = np.broadcast_shapes(batch, k.shape[:-2])
    shape = (*batch, q.shape[-2], k.shape[-2])
    if v.shape[:-2] != batch or v.shape[-2] != k.shape[-2]:
        check_bmm(np.broadcast_to(q.dtype.type(0), shape), v, same_batch=False)
    if attn_mask is not None:
        check_expands(attn_mask.shape, shape)
        attn_mask = attn_mask if attn_mask.ndim > 1 else attn_mask.reshape(1, -1)
        if is_causal:
            causal = constant(attention.causal(*shape[-2:]))
            attn_mask = attn_mask & causal if attn_mask.dtype is dtypes.bool else attn_mask.where(causal, -math.inf)
            is_causal = False
    if scale is None:
        scale = 1 / math.sqrt(q.shape[-1]) if q.shape[-1] else math.inf
    if not q.shape[-1]:
        scale = 1.0  # of scores that are zeros
    keep = _drawn(query, shape, dropout_p)
    return _attention(query, key, value, attn_mask, keep, is_causal, scale)


def _check_attention(query: Any, key: Any, value: Any, attn_mask: Any) -> None:
    if not query.dtype is key.dtype is value.dtype:
        found = [dtypes.C_NAMES[each.dtype.name] for each in (query, key, value)]
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
    if attn_mask.dtype not in (dtypes.bool, dtypes.float32, query.dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{dtypes.C_NAMES[attn_mask.dtype.name]} and  query.dtype: {dtypes.C_NAMES[query.dtype.name]} instead."
        )


def _is_fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, enable_gqa: bool) -> bool:
    """Return whether PyTorch calls its fused kernel, which takes a mask together with `is_causal`, without dropout.

    Raises:
        IndexError: the mask has no dimension -2, as in PyTorch, which asks for it where it would call that kernel.
    """
    shapes = query.shape, key.shape, value.shape
    if mask.requires_grad or any(len(each) != 4 for each in shapes) or len({each[0] for each in shapes}) > 1:
        return False
    heads = [each[1] for each in shapes]
    if not heads[0] == heads[1] == heads[2] and not (
        enable_gqa and heads[1] == heads[2] and heads[1] and heads[0] % heads[1] == 0
    ):
        return False
    if mask.ndim < 2:
        raise out_of_range(-2, 1) if mask.ndim else IndexError("Dimension specified as -2 but tensor has no dimensions")
    scores = (*query.shape[:3], key.shape[2])
    fits = mask.ndim in (2, 4) and all(n in (1, m) for n, m in zip(mask.shape[::-1], scores[::-1], strict=False))
    return fits and len({each[3] for each in shapes}) == 1


# Multi-head attention -----------------------------------------------------------------------------


@traced_as("trusted")
def decides(x: Tensor) -> bool:
    """Return a truth value that a compiled program looks at: where it is another one, the function runs without it."""
    return bool(x)


@traced_as("inline")
def canonical_mask(mask: Tensor | None, name: str, other: Tensor | None, other_name: str, dtype: Any) -> Tensor | None:
    """Return a mask as numbers to add: -inf where booleans are True.

    The mask is called `name` in messages; its dtype should be that of the mask `other`.
    """
    if mask is None:
        return None
    _check_kind(mask.dtype, name, None if other is None else other.dtype, other_name)
    return where(mask, -math.inf, 0.0).to(dtype) if mask.dtype is dtypes.bool else mask


@traced_as("pure")
def _check_kind(kind: dtypes.dtype, name: str, other: dtypes.dtype | None, other_name: str) -> None:
    if kind is not dtypes.bool and not kind.is_floating_point:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if other is not None and other is not kind:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _check_heads(query: Tensor, key: Tensor, value: Tensor, padding: Any, mask: Any, heads: int) -> None:
    """Check the numbers of dimensions: all inputs have a batch dimension, or none has."""
    if query.ndim not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.ndim}-D query tensor"
        )
    n = query.ndim
    which = f"For {'batched' if n == 3 else 'unbatched'} ({n}-D) `query`, expected"
    _require(
        key.ndim == n and value.ndim == n,
        f"{which} `key` and `value` to be {n}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively",
    )
    if padding is not None and padding.ndim != n - 1:
        raise AssertionError(
            f"{which} `key_padding_mask` to be `None` or {n - 1}-D but found {padding.ndim}-D tensor instead"
        )
    if mask is not None:
        _require(
            mask.ndim in (2, 3), f"{which} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead"
        )
        shape = (heads, query.shape[0], key.shape[0])
        _require(
            n == 3 or mask.ndim == 2 or mask.shape == shape,
            f"Expected `attn_mask` shape to be {shape} but got {mask.shape}",
        )


def _projected(query: Tensor, key: Tensor, value: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
    """Return the three projections by one weight, computed in one product where the inputs are the same tensor."""
    if query is key is value:
        return linear(query, weight, bias).chunk(3, -1)
    size = weight.shape[0] // 3
    if key is value:
        b = (None, None) if bias is None else bias.split([size, 2 * size])
        w = weight.split([size, 2 * size])
        return (linear(query, w[0], b[0]), *linear(key, w[1], b[1]).chunk(2, -1))
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(*each) for each in zip((query, key, value), weight.chunk(3), biases, strict=True)]


def _split(x: Tensor, heads: int) -> Tensor:
    """Return (L, N, E) as (N, heads, L, E / heads)."""
    length, batch, features = x.shape
    return x.reshape(length, batch, heads, features // heads).permute(1, 2, 0, 3)


def _static(x: Tensor, name: str, batch: int, heads: int, features: int) -> Tensor:
    _require(x.shape[0] == batch * heads, f"expecting {name}.size(0) of {batch * heads}, but got {x.shape[0]}")
    _require(x.shape[2] == features, f"expecting {name}.size(2) of {features}, but got {x.shape[2]}")
    return x.reshape(batch, heads, x.shape[1], features)


def full_mask(mask: Tensor | None, padding: Tensor | None, batch: int, heads: int, more: int) -> Tensor | None:
    """Return the sum of both masks, broadcastable to (N, heads, L, S); the last `more` keys are not masked."""
    if mask is not None:
        mask = mask if mask.ndim == 2 else mask.reshape(batch, heads, *mask.shape[1:])
        mask = constant_pad(mask, (0, more)) if more else mask
    if padding is not None:
        padding = constant_pad(padding, (0, more)) if more else padding
        padding = padding.reshape(batch, 1, 1, padding.shape[1])
    if mask is None or padding is None:
        return padding if mask is None else mask
    return mask + padding


@public("nn.functional.multi_head_attention_forward")
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Return multi-head attention and its weights, as `nn.MultiheadAttention` computes them.

    The result is (L, N, E) or (L, E); the weights are (N, L, S) or (L, S), with a dimension of heads before L unless
    they are averaged, or None if `need_weights` is False.

    Shapes: (L, N, E), (S, N, Ek) and (S, N, Ev), or without N; `in_proj_weight` (3 E, E) or the three separate weights
    (E, E), (E, Ek) and (E, Ev); `bias_k` and `bias_v`, one more key and its value, (1, 1, E); `static_k` and `static_v`
    (N * heads, S, E / heads) instead of the projected ones. `key_padding_mask` (N, S) is True (or -inf) at keys that
    are ignored, `attn_mask` (L, S) or (N * heads, L, S) where not to attend; `is_causal` is a hint that it is the
    causal mask.

    Example:
        >>> x, w = torch.eye(2), torch.eye(2).repeat(3, 1)
        >>> out, weights = torch.nn.functional.multi_head_attention_forward(
        ...     x, x, x, 2, 1, w, None, None, None, False, 0.0, torch.eye(2), None)
        >>> weights
        tensor([[0.6698, 0.3302],
                [0.3302, 0.6698]])

    Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
    """
    _check_heads(query, key, value, key_padding_mask, attn_mask, num_heads)
    batched = query.ndim == 3
    if not batched:
        same_key, same_value = key is query, value is key
        query = query.unsqueeze(1)
        key = query if same_key else key.unsqueeze(1)
        value = key if same_value else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, features = query.shape
    keys = key.shape[0]
    dtype = query.dtype
    key_padding_mask = canonical_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    is_causal = is_causal and key_padding_mask is None and not need_weights
    attn_mask = None if is_causal else canonical_mask(attn_mask, "attn_mask", None, "", dtype)
    _require(
        features == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {features}"
    )
    per_head = features // num_heads
    _require(per_head * num_heads == features, f"embed_dim {features} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(
            key.shape[:2] == value.shape[:2],
            f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}",
        )
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        projected = []
        for name, x, weight, bias in zip(
            "qkv", (query, key, value), (q_proj_weight, k_proj_weight, v_proj_weight), biases, strict=True
        ):
            if weight is None:
                raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
            projected.append(linear(x, weight, bias))
        q, k, v = projected
    else:
        _require(key.shape == value.shape, f"key shape {key.shape} does not match value shape {value.shape}")
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        q, k, v = _projected(query, key, value, in_proj_weight, in_proj_bias)
    if attn_mask is not None:
        wanted = (length, keys) if attn_mask.ndim == 2 else (batch * num_heads, length, keys)
        if attn_mask.shape != wanted:
            raise RuntimeError(
                f"The shape of the {attn_mask.ndim}D attn_mask is {attn_mask.shape}, but should be {wanted}."
            )
    more = int(add_zero_attn)
    if bias_k is not None and bias_v is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k = cat([k, bias_k.expand(1, batch, features)])
        v = cat([v, bias_v.expand(1, batch, features)])
        more += 1
    _require(bias_k is None or bias_v is not None, "bias_k is set but bias_v is None")
    _require(bias_v is None or bias_k is not None, "bias_v is set but bias_k is None")
    q = _split(q, num_heads)
    k, v = (
        _split(x, num_heads) if fixed is None else _static(fixed, name, batch, num_heads, per_head)
        for x, fixed, name in ((k, static_k, "static_k"), (v, static_v, "static_v"))
    )
    if add_zero_attn:
        zeros: Tensor = constant(np.zeros_like(k._array, shape=(batch, num_heads, 1, per_head)))
        k, v = cat([k, zeros], 2), cat([v, zeros], 2)
    if key_padding_mask is not None:
        rows, columns = key_padding_mask.shape
        _require(rows == batch, f"Expected key_padded_mask.shape[0] to be {batch}, but got {rows}")
        _require(
            columns + more == k.shape[2],
            f"Expected key_padded_mask.shape[1] to be {k.shape[2]}, but got {columns + more}",
        )
    mask = full_mask(attn_mask, key_padding_mask, batch, num_heads, more)
    if autocast.on:
        (mask,) = autocast.lowered(mask)
    dropout_p = dropout_p if training else 0.0
    weights = None
    if need_weights:
        scores = q * math.sqrt(1 / per_head) @ k.transpose(-2, -1)
        weights = softmax(scores if mask is None else scores + mask, -1)
        keep = _drawn(weights, weights._array.shape, dropout_p)
        weights = weights if keep is None else weights * keep
        out = weights @ v
    else:
        out = scaled_dot_product_attention(q, k, v, mask, dropout_p, is_causal)
    out = out.permute(2, 0, 1, 3).reshape(length * batch, features)
    out = linear(out, out_proj_weight, out_proj_bias).reshape(length, batch, out_proj_weight.shape[0])
    if weights is not None and average_attn_weights:
        weights = weights.mean(1)
    if not batched:
        out = out.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return out, weights
