"""Embeddings in the namespace `torch`: look-up of rows, sums over bags of rows, and renormalisation in place."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.op import op
from tinytorch.core.supplied import sparse
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import count_write
from tinytorch.kernels import dtypes
from tinytorch.kernels import embedding as kernels
from tinytorch.kernels.intp import as_int64, as_intp
from tinytorch.kernels.meta import is_meta, known, within
from tinytorch.kernels.silence import quietly
from tinytorch.kernels.statistics import segments_of
from tinytorch.ops.arguments import check_tensors, op_of
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.index import index_select
from tinytorch.ops.masks import masked_fill
from tinytorch.ops.reduce import vector_norm
from tinytorch.ops.register import public
from tinytorch.ops.scatter import gather

_INT64 = np.dtype(np.int64)
_MODES = ("sum", "mean", "max")


def _check_indices(name: str, indices: Tensor) -> None:
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{indices.dtype.tensor_name}Tensor instead (while checking arguments for {name})"
        )


@public()
def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Return the rows of `weight` at `indices`; `nn.functional.embedding` has the arguments in a different order.

    Shapes: (rows, width), and int64 or int32 of any shape (*). The row `padding_idx` gets no gradient; -1 is for none.
    With `sparse` the gradient is a sparse tensor.

    Example:
        >>> torch.embedding(torch.tensor([[1.0, 1.5], [2.0, 2.5]]), torch.tensor([1, 1]))
        tensor([[2.0000, 2.5000],
                [2.0000, 2.5000]])
    """
    try:
        dims, kind = weight._array.ndim, indices.dtype
    except AttributeError:
        check_tensors("embedding", weight=weight, indices=indices)
        raise
    if dims != 2:
        raise RuntimeError("'weight' must be 2-D")
    if kind is not dtypes.int64:
        _check_indices("embedding", indices)
    return (_rows_of_sparse if sparse else rows_of)(weight, indices, padding_idx, scale_grad_by_freq)


@public()
@per_example()
def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float = 2.0) -> Tensor:
    """Scale the rows of `weight` at `indices` whose norm is larger down to `max_norm`, in place, and return it.

    Shapes: (n, d), and int64 or int32 of any shape.

    Example:
        >>> torch.embedding_renorm_(torch.tensor([[3.0, 4.0], [9.0, 9.0]]), torch.tensor([0]), 1.0, 2.0)
        tensor([[0.6000, 0.8000],
                [9.0000, 9.0000]])
    """
    _check_indices("embedding_renorm_", indices)
    used = np.unique(indices._array)
    if used.size and not 0 <= used[0] <= used[-1] < weight._array.shape[0]:
        raise IndexError("index out of range in self")
    rows = weight._array[used]
    norms = vector_norm(wrap(rows), norm_type, 1, True)._array
    scaled = quietly(lambda: rows * (max_norm / (norms + 1e-7)).astype(rows.dtype))
    weight._array[used] = np.where(norms > max_norm, scaled, rows)
    count_write(weight)
    return weight


def _sizes(count: int, offsets: Tensor, last: bool) -> Any:
    """Return the lengths of the bags.

    Raises:
        RuntimeError: the first bag does not begin at 0, the last begins after the end, or the offsets decrease.
    """
    begin = offsets._array.astype(_INT64)
    if not begin.size:
        if last:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        return begin
    if known(begin[0] != 0):
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {begin[0]}"
        )
    if known(begin[-1] > count):
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of {begin[-1]}"
        )
    ends = begin[1:] if last else np.append(begin[1:], count)
    begin = begin[:-1] if last else begin
    if known((ends < begin).any()):
        raise RuntimeError("embedding_bag: expected offsets to be in ascending order")
    return ends - begin


@public()
@per_example()
def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return sums, means or maxima of rows of `weight`, one per bag of indices; see `nn.functional.embedding_bag`.

    The results are the bags' values, shape (bags, width); the bag of each index; the length of each bag (without rows
    that are left out); and the row of each maximum. For sums the latter are zeros or empty.

    The mode is 0 for sums, 1 for means, 2 for maxima; `padding_idx` is left out of its bags.

    Example:
        >>> weight = torch.arange(6.0).view(3, 2)
        >>> torch.embedding_bag(weight, torch.tensor([0, 1, 2]), torch.tensor([0, 2]))[0]
        tensor([[2., 4.],
                [4., 5.]])
    """
    if sparse and mode == 2:
        raise ValueError("max mode does not support sparse weights")
    kind = dtypes.promote_types(indices.dtype, offsets.dtype)
    indices = indices if indices.dtype is kind else indices.to(kind)
    _check_indices("embedding_bag", indices)
    if not weight.dtype.is_floating_point:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {weight.type()} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {weight.type()} does not equal {per_sample_weights.type()} (while "
            "checking arguments for embedding_bag)"
        )
    rows, width = weight._array.shape
    sizes = _sizes(indices._array.size, offsets, include_last_offset)
    used = indices._array if is_meta(sizes) else indices._array[: int(sizes.sum())]  # what is in a bag
    if per_sample_weights is not None:
        per_sample_weights = per_sample_weights[: len(used)]
    which = segments_of(sizes, used.size)
    padded = padding_idx is not None and padding_idx != -1
    if not within(used, 0, rows):
        place = int(np.argmax((used < 0) | (used >= rows)))
        if mode == 2 or padded or weight.dtype is dtypes.float64:
            raise RuntimeError(
                f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {used[place]}"
            )
        raise RuntimeError(  # (the error of PyTorch's kernel for sums)
            f"Index {place} of input takes value {used[place]} which is not in the valid range [0, {rows})"
        )
    if padding_idx is not None and padded:
        row = operator.index(padding_idx) % rows
        kept = used if is_meta(used) else as_int64(np.flatnonzero(used != row))
        if len(kept) < len(used):
            used, which = used[kept], which[kept]
            sizes = as_int64(np.bincount(as_intp(which), minlength=len(sizes)))
            if per_sample_weights is not None:
                per_sample_weights = index_select(per_sample_weights, 0, wrap(kept))
    bags: Tensor = wrap(which)
    lengths: Tensor = wrap(sizes)
    if mode == 2:
        out, best = _largest(weight, used, sizes)
        return out, bags, lengths, best
    found = (_rows_of_sparse if sparse else rows_of)(weight, wrap(used), -1, scale_grad_by_freq)
    if per_sample_weights is not None:
        found = found * per_sample_weights.unsqueeze(1)
    if sizes.size and known(sizes[0]) and (sizes == sizes[0]).all():
        out = found.reshape(len(sizes), int(sizes[0]), width).sum(1)
    else:
        zeros: Tensor = wrap(np.zeros_like(weight._array, shape=(len(sizes), width)))
        out = zeros.index_add(0, bags, found)
    if mode == 1:
        counts = np.maximum(sizes, 1)[:, None].astype(weight._array.dtype)
        return out / wrap(counts), bags, lengths, wrap(sizes.copy())
    none: Tensor = wrap(np.zeros(0, _INT64, like=sizes))
    return out, none, wrap(np.zeros_like(sizes)), wrap(np.zeros_like(sizes))


def _largest(weight: Tensor, used: Any, sizes: Any) -> tuple[Tensor, Tensor]:
    """Return the maxima of the rows `used` in each bag, and the row of each maximum (the first of equal ones)."""
    width = weight._array.shape[1]
    without_data = [x for x in (weight._array, used, sizes) if is_meta(x)]
    best = np.full((len(sizes), width), -1, _INT64, like=without_data[0] if without_data else sizes)
    filled = np.flatnonzero(sizes) if not without_data else best[:0]
    if filled.size and width:
        begin = as_intp((np.cumsum(sizes) - sizes)[filled])
        found = weight._array[used]
        top = np.maximum.reduceat(found, begin, axis=0)
        reached = (found == np.repeat(top, as_intp(sizes[filled]), axis=0)) | (found != found)
        places = np.where(reached, np.arange(len(used))[:, None], len(used))
        best[filled] = used[np.minimum.reduceat(places, begin, axis=0)]
    out: Tensor = gather(weight, 0, wrap(np.maximum(best, 0)))
    return masked_fill(out, wrap(best < 0), 0) if known((best < 0).any()) else out, wrap(best)


#: Returns rows of the weight, without checks of the arguments.
rows_of = op(
    batch="embedding",
    complex=OWN,
    weight=lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq: _embedding_grad(
        g, weight_shape[0], indices, padding_idx, scale_grad_by_freq
    ),
    indices=None,
)(kernels.embedding)

_rows_of_sparse = op(
    kernels.embedding,
    batch="embedding",
    name="Embedding",
    weight=lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq: _sparse_grad(
        g, weight_shape[0], indices, padding_idx, scale_grad_by_freq
    ),
    indices=None,
)(kernels.embedding)


def _sparse_grad(g: Tensor, count: int, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    return sparse.sparse_rows(g, count, indices._array, padding_idx)


def _embedding_gather(g: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """Return the gradient of `_embedding_grad`: rows of `g`, scaled like the rows that it added."""
    rows = rows_of(g, indices, padding_idx, scale_grad_by_freq)
    return rows * _embedding_factors(rows, indices, padding_idx, scale_grad_by_freq)


one_hot = op_of(kernels.one_hot, batch="leading", labels=None)
_embedding_factors = op_of(kernels.embedding_factors, complex=OWN, rows=None, indices=None)
_embedding_grad = op_of(
    kernels.embedding_grad,
    batch="embedding gradient",
    complex=OWN,
    name="EmbeddingDenseBackward",
    g=lambda g, indices, padding_idx, scale_grad_by_freq: _embedding_gather(
        g, indices, padding_idx, scale_grad_by_freq
    ),
    indices=None,
)
