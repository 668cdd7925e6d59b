"""Samples of `ops.attention`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples import Sample, booleans, normal, sample

F = "nn.functional."


def whole(value: Any) -> Any:
    """Return a part of an array as an array of its own, anything else as it is."""
    return value.copy() if isinstance(value, np.ndarray) else value


def attend(*args: Any, **kwargs: Any) -> Sample:
    """Return a sample of `scaled_dot_product_attention`."""
    return sample(F + "scaled_dot_product_attention", *map(whole, args), **kwargs)


def heads(*args: Any, **kwargs: Any) -> Sample:
    """Return a sample of `multi_head_attention_forward`."""
    return sample(F + "multi_head_attention_forward", *map(whole, args), **kwargs)


Q, K, V = normal(2, 3, 4, 5), normal(2, 3, 6, 5, seed=1), normal(2, 3, 6, 2, seed=2)
SEEN = booleans(4, 6)
SEEN[1] = False  # a query that may attend to nothing

SDPA = [
    attend(Q, K, V),
    attend(Q[0], K[0], V[0]),
    attend(Q[0, 0], K[0, 0], V[0, 0]),
    attend(Q[None], K[None], V[None]),
    attend(Q, K, V, is_causal=True),
    attend(K, Q, V[:, :, :4], is_causal=True),
    attend(Q, K, V, scale=-0.3),
    attend(Q, K, V, SEEN),
    attend(Q, K, V, booleans(2, 1, 4, 6)),
    attend(Q, K, V, normal(4, 6)),
    attend(Q, K, V, normal(2, 1, 1, 6)),
    attend(Q[:, :1], K, V[:1]),
    attend(Q[:1], K[:1], V),
    attend(normal(2, 6, 4, 5), K, V[:, :2], enable_gqa=True),
    attend(Q, K, V, None, 1.0),
    attend(Q[:, :, :0], K, V),
    attend(Q[:0], K[:0], V[:0]),
    attend(Q[..., :0], K[..., :0], V),
]

L, S, N, E = 3, 4, 2, 4
X, Y = normal(L, N, E), normal(S, N, E, seed=1)
PROJECTIONS = (normal(3 * E, E, seed=3), normal(3 * E))
OUT = (normal(E, E, seed=4), normal(E, seed=5))


def several(
    query: Any, key: Any, value: Any, count: int = 2, weight: Any = PROJECTIONS[0], bias: Any = PROJECTIONS[1],
    bias_k: Any = None, bias_v: Any = None, zero: bool = False, **kwargs: Any,
) -> Sample:  # fmt: skip
    """Return a sample with the usual projections, without dropout."""
    return heads(query, key, value, E, count, weight, bias, bias_k, bias_v, zero, 0.0, *OUT, **kwargs)


MULTI_HEAD = [
    several(X, X, X),
    several(X, Y, Y),
    several(X, Y, 2 * Y, 1),
    several(X, Y, Y, bias=None),
    several(X[:, 0], Y[:, 0], Y[:, 0]),
    several(X, Y, Y, need_weights=False),
    several(X, Y, Y, average_attn_weights=False),
    several(X, Y, Y, bias_k=normal(1, 1, E), bias_v=normal(1, 1, E, seed=7), zero=True),
    several(X, Y, Y, key_padding_mask=np.arange(S) > np.array([[1], [2]])),
    several(X, Y, Y, attn_mask=normal(L, S)),
    several(X, Y, Y, attn_mask=normal(N * 2, L, S), need_weights=False),
    several(X, X, X, attn_mask=np.tri(L) == 0, is_causal=True, need_weights=False),
    heads(
        X, normal(S, N, 3), normal(S, N, 2), E, 2, None, PROJECTIONS[1], None, None, False, 0.0, *OUT,
        use_separate_proj_weight=True, q_proj_weight=normal(E, E), k_proj_weight=normal(E, 3),
        v_proj_weight=normal(E, 2),
    ),
]  # fmt: skip
SAMPLES = SDPA + MULTI_HEAD
