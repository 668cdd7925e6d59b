"""Splitting, joining, and broadcasting of tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.mode import alike, short
from tinytorch.core.op import op
from tinytorch.core.tensor import Size, Tensor, constant, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels import shape as kernels
from tinytorch.kernels.checks import broadcast
from tinytorch.kernels.reduce import axis_of, int_of
from tinytorch.ops import autocast
from tinytorch.ops.arguments import also_by, check_elements, check_some_dim, ints_of, op_of, sections_or_indices
from tinytorch.ops.register import public
from tinytorch.ops.shape import _expand, _slice, _unsqueeze, _view, flatten, numel, part, reshape, unsqueeze

# Splitting into views -----------------------------------------------------------------------------


def _joined(g: Any, sizes: Sequence[int], dim: int) -> Tensor:
    """Concatenate the gradients of the pieces along `dim`, with zeros for pieces without a gradient."""
    some = next(each for each in g if each is not None)
    shape = list(some._array.shape)
    pieces = []
    for each, size in zip(g, sizes, strict=True):
        if each is None:
            shape[dim] = size
            each = constant(np.zeros(shape, some._array.dtype, like=some._array))
        pieces.append(each)
    return cat(pieces, dim)


@op(kernels.pieces, name="Split", view=True, outputs=0, x=lambda g, sizes, dim: _joined(g, sizes, dim))
def _split(x: Any, sizes: Sequence[int], dim: int) -> Any: ...


@op(kernels.pieces, name="SplitWithSizes", view=True, outputs=0, x=lambda g, sizes, dim: _joined(g, sizes, dim))
def _split_with_sizes(x: Any, sizes: Sequence[int], dim: int) -> Any: ...


@public(python=True, method=True)
@short("split", _split, _split_with_sizes)
@also_by(split_size="split_size_or_sections")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor split along a dimension into views of one size (the last may be smaller) or of given sizes.

    RuntimeError unless the given sizes sum to the size of the dimension.

    Example:
        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> torch.split(torch.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    check_some_dim(tensor, "split")
    try:
        size = operator.index(split_size_or_sections)
    except TypeError:
        raise TypeError(
            "split_with_sizes(): argument 'split_sizes' (position 2) must be tuple of ints, not "
            f"{type(split_size_or_sections).__name__}"
        ) from None
    axis = axis_of(dim, tensor._array.ndim, "split")
    sizes = kernels.split_sizes(tensor._array.shape[axis], size)
    return _split(tensor, sizes, axis)


@public(method=True)
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor split along a dimension into views of the given sizes, which sum to the size of the dimension.

    Example:
        >>> torch.split_with_sizes(torch.arange(4), [1, 3])
        (tensor([0]), tensor([1, 2, 3]))
    """
    check_some_dim(input, "split")
    axis = axis_of(dim, input._array.ndim, "split_with_sizes")
    sizes = ints_of("split_with_sizes", "split_sizes", (split_sizes,))
    length = input._array.shape[axis]
    if min(sizes, default=0) < 0:
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={kernels.full(sizes)}"
        )
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
            f"{axis}), but got split_sizes={kernels.full(sizes)}"
        )
    return _split_with_sizes(input, sizes, axis)


@public(method=True)
@short("split", _split, None)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor split along a dimension into at most `chunks` views of one size (the last may be smaller).

    Example:
        >>> torch.chunk(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    check_some_dim(input, "chunk")
    if type(chunks) is not int:
        chunks = int_of(chunks, "chunk", "chunks")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = axis_of(dim, input._array.ndim, "chunk")
    length = input._array.shape[axis]
    if not length:
        return _split_with_sizes(input, (0,) * chunks, axis)
    return _split(input, kernels.split_sizes(length, -(-length // chunks)), axis)


@public(method=True)
@sections_or_indices
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor split along a dimension into a number of views of nearly equal size, or at given indices.

    The first pieces are longer by one as needed; the indices are a sequence or tensor of ints.

    Example:
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
        >>> torch.tensor_split(torch.arange(5), (1, 3))
        (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    if not input._array.ndim:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    axis = axis_of(dim, input._array.ndim, "tensor_split")
    length = input._array.shape[axis]
    if isinstance(indices_or_sections, Tensor):
        if indices_or_sections.dtype is not dtypes.int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{indices_or_sections.dtype.tensor_name}"
            )
        if indices_or_sections._array.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                f"but got a tensor with {indices_or_sections._array.ndim} dims"
            )
        indices_or_sections = indices_or_sections.tolist()
    if isinstance(indices_or_sections, (tuple, list)):
        cuts = [0, *indices_or_sections, length]
    else:
        if isinstance(indices_or_sections, bool):
            raise TypeError(
                "tensor_split() received an invalid combination of arguments - got (Tensor, bool), but expected an "
                "int, or a tuple or tensor of them"
            )
        count = operator.index(indices_or_sections)
        if count <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {count}")
        size, longer = divmod(length, count)
        cuts = [i * size + min(i, longer) for i in range(count + 1)]
    return tuple([_slice(input, axis, *slice(a, b).indices(length)[:2]) for a, b in pairwise(cuts)])


def _split_along(input: Tensor, how: Any, name: str, dim: int, least: int) -> tuple[Tensor, ...]:
    ndim = input._array.ndim
    if ndim < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!"
        )
    if not isinstance(how, (tuple, list, Tensor)):
        if not isinstance(how, (int, np.integer)):
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got (Tensor, {type(how).__name__}), but "
                "expected one of:\n * (Tensor input, int sections)\n * (Tensor input, tuple of ints indices)\n"
            )
        length = input._array.shape[dim]
        if how <= 0 or length % how:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {length} is "
                f"not divisible by the split_size {how}!"
            )
    return tensor_split(input, how, dim)


@public(method=True)
@sections_or_indices
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return the tensor split along its second dimension (a vector along its only one); see `tensor_split`.

    Example:
        >>> torch.hsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1],
                [3]]), tensor([[2],
                [4]]))
    """
    return _split_along(input, indices_or_sections, "hsplit", 1 if input._array.ndim > 1 else 0, 1)


@public(method=True)
@sections_or_indices
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return the tensor split along its first dimension; see `tensor_split`.

    Example:
        >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along(input, indices_or_sections, "vsplit", 0, 2)


@public(method=True)
@sections_or_indices
def dsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return the tensor split along its third dimension; see `tensor_split`.

    Example:
        >>> [part.shape for part in torch.dsplit(torch.zeros(2, 1, 4), 2)]
        [torch.Size([2, 1, 2]), torch.Size([2, 1, 2])]
    """
    return _split_along(input, indices_or_sections, "dsplit", 2, 3)


def _unbind_x(g: Any, dim: int) -> Tensor:
    some = next(each for each in g if each is not None)
    zeros = None
    if any(each is None for each in g):
        zeros = constant(np.zeros_like(some._array))
    return stack([zeros if each is None else each for each in g], dim)


_unbind = op_of(kernels.unbind, view=True, outputs=0, x=_unbind_x)


@public(method=True)
@alike(_unbind)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices along a dimension as views without that dimension.

    Example:
        >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    return _unbind(input, dim)


# Joining copies -----------------------------------------------------------------------------------


def _cat_xs(g: Tensor, xs_shapes: list[tuple[int, ...]], dim: int) -> Any:
    ndim = g._array.ndim
    axis = dim % ndim
    sizes = [0 if shape == (0,) else shape[axis] for shape in xs_shapes]
    pieces = list(_split_with_sizes(g, sizes, axis))
    if ndim > 1:
        for k, shape in enumerate(xs_shapes):
            if shape == (0,):
                pieces[k] = constant(np.zeros((0,), g._array.dtype, like=g._array))
    return pieces


@op(kernels.concatenated, moves=True, name="Cat", many="xs", xs=_cat_xs)
def _cat(xs: Any, dim: int = 0) -> Any: ...


@op(kernels.stacked, moves=True, name="Stack", many="xs", xs=lambda g, dim: unbind(g, dim))
def _stack(xs: Any, dim: int = 0) -> Any: ...


def _tensors(name: str, tensors: Any) -> list[Tensor]:
    """Return a sequence of tensors as a list, or raise TypeError for other values."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    check_elements(tensors)
    return list(tensors)


@public(also="concat concatenate", out="cat")
@alike(_cat)
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Return the tensors joined along an existing dimension, in their common dtype.

    Their shapes differ only in `dim`; empty 1-d tensors are skipped.

    Example:
        >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3])
    """
    if axis is not None:
        dim = axis
    tensors = tensors if type(tensors) is list else _tensors("cat", tensors)
    return _cat(autocast.promoted(tensors) if autocast.on else tensors, dim)


@public(out="cat")
@alike(_stack)
def stack(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Return tensors of one shape stacked along a new dimension at position `dim`.

    Example:
        >>> torch.stack([torch.tensor([1, 2]), torch.tensor([3, 4])], dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    if axis is not None:
        dim = axis
    tensors = tensors if type(tensors) is list else _tensors("stack", tensors)
    return _stack(autocast.promoted(tensors) if autocast.on else tensors, dim)


def _some(name: str, tensors: Any) -> list[Tensor]:
    """Return `_tensors(name, tensors)`, or raise PyTorch's error if the sequence is empty."""
    found = _tensors(name, tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


@public(out="cat")
@short("join", _cat, 1, 1, _unsqueeze)
def hstack(tensors: Any) -> Tensor:
    """Return the tensors joined along their second dimension (vectors along their only dimension).

    Example:
        >>> torch.hstack((torch.tensor([1, 2]), torch.tensor([3])))
        tensor([1, 2, 3])
    """
    tensors = [atleast_1d(each) for each in _some("hstack", tensors)]
    return cat(tensors, 0 if tensors and tensors[0]._array.ndim == 1 else 1)


@public(also="row_stack", out="cat")
@short("join", _cat, 0, 2, _unsqueeze)
def vstack(tensors: Any) -> Tensor:
    """Return the tensors joined along their first dimension, vectors as rows.

    Example:
        >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
        tensor([[1, 2],
                [3, 4]])
    """
    return cat([atleast_2d(each) for each in _some("vstack", tensors)], 0)


@public(out="cat")
@short("join", _cat, 2, 3, _unsqueeze)
def dstack(tensors: Any) -> Tensor:
    """Return the tensors joined along their third dimension.

    Example:
        >>> torch.dstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
        tensor([[[1, 3],
                 [2, 4]]])
    """
    return cat([atleast_3d(each) for each in _some("dstack", tensors)], 2)


@public(out="cat")
def column_stack(tensors: Any) -> Tensor:
    """Return the tensors joined along their second dimension, vectors as columns.

    Example:
        >>> torch.column_stack((torch.tensor([1, 2]), torch.tensor([3, 4])))
        tensor([[1, 3],
                [2, 4]])
    """
    columns = [
        each if each._array.ndim > 1 else reshape(each, (numel(each), 1)) for each in _some("column_stack", tensors)
    ]
    return hstack(columns)


def _block_diag_xs(g: Tensor, xs_shapes: list[tuple[int, ...]]) -> Any:
    pieces, row, column = [], 0, 0
    for shape in xs_shapes:
        height, width = (1, 1, *shape)[-2:] if shape else (1, 1)
        block = part(g, (slice(row, row + height), slice(column, column + width)))
        pieces.append(reshape(block, shape))
        row, column = row + height, column + width
    return pieces


def _composed(xs: Sequence[Tensor]) -> Any:
    """Return the matrix in Tensor code, by which `vmap` computes it."""
    if len({x.dtype for x in xs}) > 1:
        return NotImplemented
    blocks = [x if x.ndim == 2 else x.reshape((1, 1, *x.shape)[-2:]) for x in xs]
    widths = [block.shape[1] for block in blocks]
    return cat([
        cat([block.new_zeros(len(block), n) if j != i else block for j, n in enumerate(widths)], 1)
        for i, block in enumerate(blocks)
    ])  # fmt: skip


_block_diag = op_of(kernels.block_diag, batch=_composed, complex=OWN, many="xs", xs=_block_diag_xs)


@public(python=True)
def block_diag(*tensors: Tensor) -> Tensor:
    """Return the block-diagonal matrix with the given matrices (vectors as rows) on its diagonal.

    Example:
        >>> torch.block_diag(torch.tensor([[1, 2]]), torch.tensor([[3]]))
        tensor([[1, 2, 0],
                [0, 0, 3]])
    """
    for i, each in enumerate(_tensors("block_diag", tensors)):
        if each._array.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has "
                f"{each._array.ndim} dimensions"
            )
    if not tensors:
        return wrap(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
    return _block_diag(tensors)


@public(python=True)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinate tensors of a grid: each vector is expanded along the dimensions of the other vectors.

    The tensors, also one sequence of them, are 0-d or 1-d, of one dtype. `indexing` is "ij" for matrix order (the first
    vector varies along the first dimension), "xy" to exchange the first two dimensions; the default is "ij" with a
    warning.

    Example:
        >>> torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4]), indexing="ij")
        (tensor([[1, 1],
                [2, 2]]), tensor([[3, 4],
                [3, 4]]))
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    vectors = _tensors("meshgrid", tensors)
    if indexing is None:
        warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning, once=True,
        )  # fmt: skip
        indexing = "ij"
    if not vectors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for each in vectors:
        if each._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {each}")
        if each.dtype is not vectors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    exchange = indexing == "xy" and len(vectors) > 1
    if exchange:
        vectors[:2] = vectors[1::-1]
    sizes = tuple([each._array.size for each in vectors])
    grids = []
    for i, each in enumerate(vectors):
        shape = [1] * len(sizes)
        shape[i] = sizes[i]
        grids.append(_expand(_view(each, tuple(shape)), sizes))
    if exchange:
        grids[:2] = grids[1::-1]
    return tuple(grids)


@public(python=True)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return the Cartesian product of the vectors, one combination per row.

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([5, 6]))
        tensor([[1, 5],
                [1, 6],
                [2, 5],
                [2, 6]])
    """
    vectors = _tensors("cartesian_prod", tensors)
    for each in vectors:
        if each.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(each.shape)}")
    if len(vectors) == 1:
        return vectors[0]
    return stack([flatten(grid) for grid in meshgrid(*vectors, indexing="ij")], 1)


@public(python=True, asks="nobody")
def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape to which tensors of the given shapes broadcast.

    Example:
        >>> torch.broadcast_shapes((2, 1), (3,))
        torch.Size([2, 3])
    """
    result: list[int] = []
    for index, shape in enumerate(shapes):
        sizes = [shape] if isinstance(shape, int) else list(shape)
        if any(size < 0 for size in sizes):
            raise ValueError("Attempting to broadcast a dimension with negative length!")
        result = [1] * (len(sizes) - len(result)) + result
        for back in range(1, len(sizes) + 1):
            have = sizes[-back]
            if have != 1 and result[-back] not in (1, have):
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {have} at -{back}! Mismatching argument at index "
                    f"{index} had {tuple(sizes)}; but expected shape should be broadcastable to {result}"
                )
            if have != 1:
                result[-back] = have
    return Size(result)


@public(python=True)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors expanded to their common broadcast shape.

    Example:
        >>> [each.shape for each in torch.broadcast_tensors(torch.zeros(3, 1), torch.zeros(2))]
        [torch.Size([3, 2]), torch.Size([3, 2])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    given = _tensors("broadcast_tensors", tensors)
    shape = broadcast(*[each._array.shape for each in given])
    return tuple([each if each._array.shape == shape else _expand(each, shape) for each in given])


def _atleast(name: str, tensors: tuple[Any, ...], one: Callable[[Tensor], Tensor]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return one(tensors[0])
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return tuple([one(each) for each in _tensors(name, tensors)])


@public(python=True)
def atleast_1d(*tensors: Any) -> Any:
    """Return 0-d tensors as 1-d, others unchanged; a tuple for several tensors.

    Example:
        >>> torch.atleast_1d(torch.tensor(3))
        tensor([3])
    """
    return _atleast("atleast_1d", tensors, lambda x: x if x._array.ndim else reshape(x, (1,)))


@public(python=True)
def atleast_2d(*tensors: Any) -> Any:
    """Return 0-d and 1-d tensors as matrices of one row, others unchanged; a tuple for several tensors.

    Example:
        >>> torch.atleast_2d(torch.tensor(3), torch.tensor([1, 2]))
        (tensor([[3]]), tensor([[1, 2]]))
    """

    def one(x: Tensor) -> Tensor:
        ndim = x._array.ndim
        return reshape(x, (1, 1)) if ndim == 0 else unsqueeze(x, 0) if ndim == 1 else x

    return _atleast("atleast_2d", tensors, one)


@public(python=True)
def atleast_3d(*tensors: Any) -> Any:
    """Return the tensors with at least three dimensions: a vector as (1, n, 1), a matrix as (m, n, 1).

    Example:
        >>> torch.atleast_3d(torch.zeros(2)).shape, torch.atleast_3d(torch.zeros(2, 3)).shape
        (torch.Size([1, 2, 1]), torch.Size([2, 3, 1]))
    """

    def one(x: Tensor) -> Tensor:
        ndim = x._array.ndim
        if ndim == 0:
            return reshape(x, (1, 1, 1))
        return unsqueeze(unsqueeze(x, 0), -1) if ndim == 1 else unsqueeze(x, -1) if ndim == 2 else x

    return _atleast("atleast_3d", tensors, one)
