"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions of places.

The functions are called once, with tensors of places that broadcast against each other: `b` of shape (B, 1, 1, 1), `h`
of (1, H, 1, 1), `q_idx` of (1, 1, Q, 1) and `kv_idx` of (1, 1, 1, KV); where PyTorch maps a function of scalars over
all places. For functions made of pointwise operations and indexing, both are the same. Every score is computed: a
`BlockMask` spares nothing here.
"""

from __future__ import annotations

import math
import operator
import typing
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.functional import pad, softmax
from tinytorch.ops.create import zeros
from tinytorch.ops.masks import where
from tinytorch.ops.sequences import arange

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_Mask = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


class AuxRequest(typing.NamedTuple):
    """What `flex_attention` shall return besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(typing.NamedTuple):
    """What `flex_attention` returned besides the result; None for what was not asked for."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(typing.TypedDict, total=False):
    """Options of PyTorch's kernels on other devices; without effect."""

    BACKEND: str


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True for every place."""
    return (token_q == token_q) & (token_kv == token_kv) & (head == head) & (batch == batch)


def and_masks(*mask_mods: _Mask) -> _Mask:
    """Return the function that is True where all of some are.

    Raises:
        RuntimeError: one of them cannot be called.
    """
    return _joined(operator.and_, mask_mods, noop_mask)


def or_masks(*mask_mods: _Mask) -> _Mask:
    """Return the function that is True where one of some is.

    Raises:
        RuntimeError: one of them cannot be called.
    """
    return _joined(operator.or_, mask_mods, lambda *places: ~noop_mask(*places))


def _joined(by: Callable[[Tensor, Tensor], Tensor], mask_mods: tuple[_Mask, ...], first: _Mask) -> _Mask:
    if not all(callable(each) for each in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = first(b, h, q_idx, kv_idx)
        for each in mask_mods:
            result = by(result, each(b, h, q_idx, kv_idx))
        return result

    return joined


def _places(*sizes: int) -> list[Tensor]:
    return [arange(size).view([-1 if k == i else 1 for k in range(4)]) for i, size in enumerate(sizes)]


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the mask (B, H, Q_LEN, KV_LEN) that a function of places gives, or its scores for scores of zero.

    Args:
        mod_fn: a function `(b, h, q_idx, kv_idx)` that returns booleans, or `(score, b, h, q_idx, kv_idx)`.
        B, H: how many batches and heads; None is 1.
        Q_LEN, KV_LEN: how many queries and keys.
        device: "cpu".

    Example:
        >>> from tinytorch.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 2, 2)[0, 0]
        tensor([[ True, False],
                [ True,  True]])
    """
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(*shape)
    count = getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4)
    if count == 5:
        scores = zeros(shape)
        return where(mod_fn(scores, *places) == -math.inf, scores == 1, scores == 0).expand(shape)
    return mod_fn(*places).expand(shape)


class BlockMask:
    """A mask by a function of places, as `create_block_mask` makes it.

    Attributes:
        mask_mod: the function.
        seq_lengths: how many queries and keys it is for.
        BLOCK_SIZE: the size of the blocks that PyTorch leaves out when they have nothing in them.
    """

    mask_mod: _Mask
    seq_lengths: tuple[int, int]
    BLOCK_SIZE: tuple[int, int]
    _heads: tuple[int, int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "tinytorch makes block masks by create_block_mask(), of a function; not of the indices of blocks"
        )

    @classmethod
    def from_kv_blocks(cls, *args: Any, **kwargs: Any) -> BlockMask:
        """Raise NotImplementedError: there are no masks by the indices of blocks."""
        return cls(*args, **kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask: batches, heads, queries, keys."""
        return (*self._heads, *self.seq_lengths)

    def numel(self) -> int:
        """Return how many places the mask has."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Return for each block 1 if anything in it is to be computed, else 0."""
        mask = create_mask(self.mask_mod, *self._heads, *self.seq_lengths)
        (rows, columns), (height, width) = self.seq_lengths, self.BLOCK_SIZE
        mask = pad(mask, (0, -columns % width, 0, -rows % height))
        blocks = mask.view(*self._heads, mask.shape[2] // height, height, -1, width)
        return blocks.any(5).any(3).int()

    def sparsity(self) -> float:
        """Return how many per cent of the places are in blocks with nothing to be computed."""
        computed = int(self.to_dense().sum()) * math.prod(self.BLOCK_SIZE)
        return 100 * (1 - computed / self.numel())


def create_block_mask(
    mask_mod: _Mask,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the mask that a function of places gives, for `flex_attention`.

    Args:
        mask_mod: a function `(b, h, q_idx, kv_idx)` that is True where the key is seen.
        B, H: how many batches and heads; None where all have the same mask.
        BLOCK_SIZE: the size of blocks: one for queries and keys, or two.
        the others: as for `create_mask`, or without effect.

    Example:
        >>> from tinytorch.nn.attention.flex_attention import create_block_mask
        >>> causal = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 8, 8, BLOCK_SIZE=4)
        >>> causal.to_dense()[0, 0]
        tensor([[1, 0],
                [1, 1]], dtype=torch.int32)
    """
    made = object.__new__(BlockMask)
    made.mask_mod = mask_mod
    made.seq_lengths = (Q_LEN, KV_LEN)
    made.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    made._heads = (B or 1, H or 1)
    return made


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    heads, others = query.shape[1], key.shape[1]
    if not enable_gqa and heads != others:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={others}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % others:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={others}."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Tensor] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return `softmax(score_mod(query @ key^T * scale)) @ value`, of the places that a mask leaves.

    Args:
        query, key, value: (B, Hq, L, E), (B, Hkv, S, E) and (B, Hkv, S, Ev).
        score_mod: a function `(score, b, h, q_idx, kv_idx)` that returns the new score; see the module for what it
            is called with.
        block_mask: which keys each query sees, see `create_block_mask`. A query that sees none gets zeros.
        scale: factor of the scores; None is `1 / sqrt(E)`.
        enable_gqa: let groups of query heads share a head of keys and values.
        return_lse: return the scores' logsumexp too.
        kernel_options: without effect.
        return_aux: return an `AuxOutput` with what it asks for too.

    Raises:
        NotImplementedError: the tensors do not have four dimensions.
        ValueError: the shapes do not match; the mask is for other lengths.

    Example:
        >>> from tinytorch.nn.attention.flex_attention import flex_attention
        >>> x = torch.eye(2)[None, None]
        >>> flex_attention(x, x, x, lambda score, b, h, q_idx, kv_idx: score - (kv_idx > q_idx) * 1e9)
        tensor([[[[1.0000, 0.0000],
                  [0.3302, 0.6698]]]])
    """
    _check(query, key, value, enable_gqa)
    batch, heads, rows, _ = query.shape
    columns = key.shape[2]
    if block_mask is not None and block_mask.seq_lengths != (rows, columns):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={rows} and "
            f"kv_len={columns}: create a block mask of this length"
        )
    if heads != key.shape[1]:
        groups = heads // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    kind = query.dtype
    if kind.itemsize < 4:
        query, key = query.float(), key.float()
    scores = query @ key.transpose(-2, -1)
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    places = _places(batch, heads, rows, columns)
    if score_mod is not None:
        scores = score_mod(scores, *places).to(scores.dtype).expand(scores.shape)
    if block_mask is not None:
        scores = where(block_mask.mask_mod(*places), scores, -math.inf)
    unseen = (scores == -math.inf).all(-1, keepdim=True)
    weights = softmax(scores, -1).masked_fill(unseen, 0)
    out = weights.to(kind) @ value
    if return_lse or (return_aux is not None and return_aux.lse):
        lse = scores.logsumexp(-1)
    if return_lse:
        return out, lse
    if return_aux is None:
        return out
    return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
