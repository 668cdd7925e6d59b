"""`torch.nn.attention.flex_attention`: attention whose scores and mask are functions of the indices.

The functions are called once, with index tensors that broadcast: `b` of shape (B, 1, 1, 1), `h` of (1, H, 1, 1),
`q_idx` of (1, 1, Q, 1) and `kv_idx` of (1, 1, 1, KV); PyTorch maps a function of scalars over all indices. For
functions composed of pointwise operations and indexing, the results are the same. All scores are computed: a
`BlockMask` saves no work here.
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
    """The results that `flex_attention` shall return besides its output."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(typing.NamedTuple):
    """The results of `flex_attention` besides its output; None unless requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(typing.TypedDict, total=False):
    """Options of PyTorch's kernels on other devices; they have no effect."""

    BACKEND: str


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """Return True for all indices."""
    return (token_q == token_q) & (token_kv == token_kv) & (head == head) & (batch == batch)


def and_masks(*mask_mods: _Mask) -> _Mask:
    """Return the conjunction of mask functions."""
    return _combined(operator.and_, mask_mods, noop_mask)


def or_masks(*mask_mods: _Mask) -> _Mask:
    """Return the disjunction of mask functions."""
    return _combined(operator.or_, mask_mods, lambda *indices: ~noop_mask(*indices))


def _combined(operation: Callable[[Tensor, Tensor], Tensor], mask_mods: tuple[_Mask, ...], neutral: _Mask) -> _Mask:
    if not all(callable(mask_mod) for mask_mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def combined(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = neutral(b, h, q_idx, kv_idx)
        for mask_mod in mask_mods:
            result = operation(result, mask_mod(b, h, q_idx, kv_idx))
        return result

    return combined


def _indices(*sizes: int) -> list[Tensor]:
    """Return the index tensors of the four dimensions, which broadcast to `sizes`."""
    return [arange(size).view([-1 if k == i else 1 for k in range(4)]) for i, size in enumerate(sizes)]


def create_mask(
    mod_fn: Callable[..., Tensor], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the mask (B, H, Q_LEN, KV_LEN) of a mask function or a score function.

    `mod_fn` is a function `(b, h, q_idx, kv_idx)` that returns booleans, or `(score, b, h, q_idx, kv_idx)`, whose
    scores of -inf are masked; B and H may be None, for 1.

    Example:
        >>> from tinytorch.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 2, 2)[0, 0]
        tensor([[ True, False],
                [ True,  True]])
    """
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    indices = _indices(*shape)
    count = getattr(getattr(mod_fn, "__code__", None), "co_argcount", 4)
    if count == 5:
        scores = zeros(shape)
        return where(mod_fn(scores, *indices) == -math.inf, scores == 1, scores == 0).expand(shape)
    return mod_fn(*indices).expand(shape)


class BlockMask:
    """A mask function with the shape of its mask, created by `create_block_mask`."""

    mask_mod: _Mask
    seq_lengths: tuple[int, int]
    BLOCK_SIZE: tuple[int, int]
    _heads: tuple[int, int]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError(
            "tinytorch creates block masks from a function, by create_block_mask(), not from the indices of blocks"
        )

    @classmethod
    def from_kv_blocks(cls, *args: Any, **kwargs: Any) -> BlockMask:
        """Raise NotImplementedError: masks by block indices are not supported."""
        return cls(*args, **kwargs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the mask: batches, heads, queries, keys."""
        return (*self._heads, *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of elements of the mask."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Return 1 for all blocks with an unmasked element, else 0."""
        mask = create_mask(self.mask_mod, *self._heads, *self.seq_lengths)
        (rows, columns), (height, width) = self.seq_lengths, self.BLOCK_SIZE
        mask = pad(mask, (0, -columns % width, 0, -rows % height))
        blocks = mask.view(*self._heads, mask.shape[2] // height, height, -1, width)
        return blocks.any(5).any(3).int()

    def sparsity(self) -> float:
        """Return the percentage of elements in fully masked blocks."""
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
    """Return the mask of a mask function, for `flex_attention`.

    `mask_mod(b, h, q_idx, kv_idx)` is True where the query attends to the key; `BLOCK_SIZE` is one number, or one each
    for queries and keys. Other arguments as for `create_mask`, or without effect.

    Example:
        >>> from tinytorch.nn.attention.flex_attention import create_block_mask
        >>> causal = create_block_mask(lambda b, h, q_idx, kv_idx: q_idx >= kv_idx, None, None, 8, 8, BLOCK_SIZE=4)
        >>> causal.to_dense()[0, 0]
        tensor([[1, 0],
                [1, 1]], dtype=torch.int32)
    """
    block_mask = object.__new__(BlockMask)
    block_mask.mask_mod = mask_mod
    block_mask.seq_lengths = (Q_LEN, KV_LEN)
    block_mask.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    block_mask._heads = (B or 1, H or 1)
    return block_mask


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.shape[-1]} and E={key.shape[-1]}."
        )
    heads, kv_heads = query.shape[1], key.shape[1]
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % kv_heads:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={kv_heads}."
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

    Shapes: (B, Hq, L, E), (B, Hkv, S, E) and (B, Hkv, S, Ev). `score_mod(score, b, h, q_idx, kv_idx)` returns the new
    score; see the docstring of the module for the shapes of its arguments. The result of a query that `block_mask`
    leaves without keys is 0. `return_lse` adds the logsumexp of the scores, `return_aux` an `AuxOutput`;
    `kernel_options` has no effect.

    Example:
        >>> from tinytorch.nn.attention.flex_attention import flex_attention
        >>> x = torch.eye(2)[None, None]
        >>> flex_attention(x, x, x, lambda score, b, h, q_idx, kv_idx: score - (kv_idx > q_idx) * 1e9)
        tensor([[[[1.0000, 0.0000],
                  [0.3302, 0.6698]]]])
    """
    _check_shapes(query, key, value, enable_gqa)
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
    dtype = query.dtype
    if dtype.itemsize < 4:
        query, key = query.float(), key.float()
    scores = query @ key.transpose(-2, -1)
    scores = scores * (query.shape[-1] ** -0.5 if scale is None else scale)
    indices = _indices(batch, heads, rows, columns)
    if score_mod is not None:
        scores = score_mod(scores, *indices).to(scores.dtype).expand(scores.shape)
    if block_mask is not None:
        scores = where(block_mask.mask_mod(*indices), scores, -math.inf)
    masked_rows = (scores == -math.inf).all(-1, keepdim=True)
    weights = softmax(scores, -1).masked_fill(masked_rows, 0)
    out = weights.to(dtype) @ value
    if return_lse or (return_aux is not None and return_aux.lse):
        lse = scores.logsumexp(-1)
    if return_lse:
        return out, lse
    if return_aux is None:
        return out
    return out, AuxOutput(lse if return_aux.lse else None, scores.amax(-1) if return_aux.max_scores else None)
