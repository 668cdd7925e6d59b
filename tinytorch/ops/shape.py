"""Shapes: views of a tensor's memory, copies in a memory format, and metadata such as strides.

Ops that PyTorch composes of other ops are composed here too, so that the graph has the same nodes.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.declaration import missing_argument
from tinytorch.core.mode import alike, short
from tinytorch.core.op import op
from tinytorch.core.strided import strided
from tinytorch.core.supplied import bits, declare_members
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, meta, places
from tinytorch.kernels import shape as kernels
from tinytorch.kernels.reduce import axis_of
from tinytorch.ops.arguments import ints_of, op_of
from tinytorch.ops.register import pointwise, public

# Views: another shape -----------------------------------------------------------------------------


_view = op(name="View", view=True, x=lambda g, x_shape: g.reshape(x_shape))(kernels.view)


@public("", method="view")
@short("view", _view)
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """Return a view of the same memory in another shape, or with its bytes read as another dtype.

    The shape is given by ints or one sequence, of which one may be -1 (inferred). RuntimeError: it does not match the
    number of elements, or the strides allow no view (use `reshape`).

    Example:
        >>> torch.arange(6).view(2, -1)
        tensor([[0, 1, 2],
                [3, 4, 5]])
    """
    if len(shape) == 1:
        first = shape[0]
        if isinstance(first, (tuple, list)):
            shape = tuple(first)
        elif isinstance(first, dtypes.dtype):
            return _view_of_type(input, first)
    elif not shape:
        if dtype is not None:
            return _view_of_type(input, dtypes.as_dtype(dtype))
        if size is None:
            raise TypeError(
                "view() received an invalid combination of arguments - got (), but expected a size or a dtype"
            )
        shape = tuple(size)
    return _view(input, shape)


def _view_of_type(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    made: Tensor = wrap(kernels.view_of_type(input._array, dtype))
    if made._cell is not None and input._cell is not None:
        made._cell = input._cell  # one version counter per memory; inference tensors have none
    return made


@public("", method="view_as")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` viewed in the shape of `other`.

    Example:
        >>> torch.arange(4).view_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return _view(input, other._array.shape)


_reshape_alias = op(name="ReshapeAlias", view=True, x=lambda g, x_shape: g.reshape(x_shape))(kernels.view)
_reshape_alias.op.name = "reshape"
_unsafe_view = op_of(kernels.unsafe_view, moves=True, x=lambda g, x_shape: g.reshape(x_shape))


@public(method=True)
@short("view", _view)
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the elements in another shape: a view where the strides allow it, otherwise a copy.

    The shape is given by ints or one sequence, of which one may be -1 (inferred).

    Example:
        >>> torch.reshape(torch.arange(6), (3, -1))
        tensor([[0, 1],
                [2, 3],
                [4, 5]])
    """
    if named:
        shape = ints_of("reshape", "shape", shape, named)
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    elif not shape:
        raise missing_argument("reshape", "shape")
    array = input._memory
    if array.flags.c_contiguous:
        return _view(input, shape)
    sizes = kernels.inferred(array.size, ints_of("reshape", "shape", (shape,)))
    if kernels.can_view(array, sizes):
        return _reshape_alias(input, sizes)
    return _unsafe_view(_contiguous(input), sizes)


@public("", method="reshape_as")
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` in the shape of `other`; see `reshape`.

    Example:
        >>> torch.arange(4).reshape_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return reshape(input, other._array.shape)


@public(method=True)
@short("flatten", _view)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with the dimensions from `start_dim` to `end_dim` merged into one.

    Example:
        >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
        torch.Size([2, 12])
    """
    shape = input._array.shape
    ndim = len(shape)
    start, end = axis_of(start_dim, ndim, "flatten"), axis_of(end_dim, ndim, "flatten")
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not ndim:
        return reshape(input, (1,))
    if start == end:
        return input
    length = 1
    for each in shape[start : end + 1]:
        length *= each
    return reshape(input, (*shape[:start], length, *shape[end + 1 :]))


@public(method=True)
def ravel(input: Tensor) -> Tensor:
    """Return all elements in one dimension, a view where the memory is contiguous.

    Example:
        >>> torch.ravel(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 2, 3, 4])
    """
    return _view(contiguous(input), (-1,)) if numel(input) else _view(contiguous(input), (0,))


@public(method=True, listed="function")
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with dimension `dim` split into dimensions of `sizes`, one of which may be -1 (inferred).

    Example:
        >>> torch.unflatten(torch.zeros(2, 12), 1, (3, -1)).shape
        torch.Size([2, 3, 4])
    """
    shape = input._array.shape
    axis = axis_of(dim, len(shape), "unflatten")
    sizes = ints_of("unflatten", "sizes", (sizes,))
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    if not shape:
        raise RuntimeError("unflatten got an unexpected error: a 0-dim tensor has no dimension to unflatten")
    try:
        new = kernels.inferred(shape[axis], sizes)
    except RuntimeError as error:
        if "invalid for input" not in str(error):
            raise RuntimeError(f"unflatten got an unexpected error:\n{error}") from None
        raise RuntimeError(
            f"unflatten: Provided sizes {kernels.full(sizes)} don't multiply up to the size of dim {axis} "
            f"({shape[axis]}) in the input tensor"
        ) from None
    return _view(input, (*shape[:axis], *new, *shape[axis + 1 :]))


_squeeze, _squeeze_dim, _squeeze_dims = (
    op_of(kernel, batch=batch, name=f"SqueezeBackward{k}", view=True, x=lambda g, x_shape: g.reshape(x_shape))
    for k, kernel, batch in (
        (0, kernels.squeeze, lambda x: _squeeze_dims(x, tuple(range(x.ndim)))),
        (1, kernels.squeeze_dim, None),
        (2, kernels.squeeze_dims, None),
    )
)


@public(method=True)
@short("of_dim", _squeeze, _squeeze_dim)
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Return a view without the dimensions of size 1: all of them, or only those listed in `dim`.

    A dimension in `dim` of another size is kept.

    Example:
        >>> torch.squeeze(torch.zeros(1, 2, 1)).shape, torch.squeeze(torch.zeros(1, 2, 1), 0).shape
        (torch.Size([2]), torch.Size([2, 1]))
    """
    if dim is None:
        dim = axis
    if dim is None:
        return _squeeze(input)
    if isinstance(dim, (tuple, list)):
        return _squeeze_dims(input, tuple(dim))
    return _squeeze_dim(input, dim)


_unsqueeze = op_of(kernels.unsqueeze, batch="unsqueeze", view=True, x=lambda g, x_shape, dim: squeeze(g, dim))


@public(method=True)
@alike(_unsqueeze)
def unsqueeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Return a view with a new dimension of size 1 at position `dim`, from `-ndim - 1` to `ndim`.

    Example:
        >>> torch.unsqueeze(torch.zeros(2, 3), -1).shape
        torch.Size([2, 3, 1])
    """
    if dim is None:
        dim = axis
        if dim is None:
            raise missing_argument("unsqueeze", "dim")
    return _unsqueeze(input, dim)


# Views: another order of dimensions ---------------------------------------------------------------


_transpose = op_of(kernels.transpose, view=True, x=lambda g, dim0, dim1: _transpose(g, dim0, dim1))
_t = op_of(
    kernels.t, batch=lambda x: x.transpose(0, 1) if x.ndim == 2 else x.view(x.shape), view=True, x=lambda g: _t(g)
)


@public(also="swapdims", method=True)
@alike(_transpose)
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two dimensions exchanged.

    Example:
        >>> torch.transpose(torch.zeros(2, 3, 4), 0, 2).shape
        torch.Size([4, 3, 2])
    """
    return _transpose(input, dim0, dim1)


@public(method=True)
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Return `transpose(input, axis0, axis1)`, under NumPy's name.

    Example:
        >>> torch.swapaxes(torch.zeros(2, 3), 0, 1).shape
        torch.Size([3, 2])
    """
    return _transpose(input, axis0, axis1)


@public(method=True)
def t(input: Tensor) -> Tensor:
    """Return the transpose of a matrix as a view; 0-d and 1-d tensors are returned unchanged.

    Example:
        >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _t(input)


def _permute_back(g: Tensor, dims: tuple[int, ...]) -> Tensor:
    order = [dim % len(dims) for dim in dims]
    return _permute(g, tuple([order.index(i) for i in range(len(order))]))


_permute = op_of(kernels.permute, batch="permute", view=True, x=_permute_back)


@public(method=True)
@short("of_ints", _permute)
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return a view with the dimensions in the order `dims`, given as ints or as one sequence.

    Example:
        >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    return _permute(input, ints_of("permute", "dims", dims, named))


@public(also="moveaxis", method=True)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with the dimensions `source` (one or several) moved to the positions `destination`.

    Example:
        >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    if isinstance(source, (tuple, list)) != isinstance(destination, (tuple, list)):
        raise TypeError(
            f"movedim() received an invalid combination of arguments - got ({type(source).__name__}, "
            f"{type(destination).__name__}), but expected two ints or two tuples of ints"
        )
    ndim = input._array.ndim
    sources, destinations = (ints_of("movedim", "source", (dims,)) for dims in (source, destination))
    if len(sources) != len(destinations):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({kernels.full(sources)} dims) should contain the "
            f"same number of dims as destination ({kernels.full(destinations)} dims)"
        )
    places = []
    for dims, what in ((sources, "source"), (destinations, "destination")):
        axes = [axis_of(dim, ndim, "movedim") for dim in dims]
        if len(set(axes)) < len(axes):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({kernels.full(dims)})")
        places.append(axes)
    if not ndim:
        return aliased(input, ())
    order = [i for i in range(ndim) if i not in places[0]]
    for to, at in sorted(zip(places[1], places[0], strict=True)):
        order.insert(to, at)
    return _permute(input, tuple(order))


@public(method=True)
def adjoint(input: Tensor) -> Tensor:
    """Return a view with the last two dimensions exchanged: the (conjugate) transpose of each matrix of a batch.

    Example:
        >>> torch.adjoint(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    return _conjugate(_transposed_matrices(input, "adjoint()"))


def _transposed_matrices(input: Tensor, name: str) -> Tensor:
    ndim = input._array.ndim
    if ndim == 0:
        warn(f"Tensor.{name} is deprecated on 0-D tensors.", UserWarning, once=True)
        return input
    if ndim == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return _transpose(input, -2, -1)


def _reversed_dims(input: Tensor) -> Tensor:
    """A view with the dimensions in reverse order: the transpose of a matrix.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).T
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = input._array.ndim
    if ndim == 0:
        warn(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
            UserWarning, once=True,
        )  # fmt: skip
    elif ndim != 2:
        warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning, once=True,
        )  # fmt: skip
    return _permute(input, tuple(range(ndim))[::-1])


def _matrix_adjoint(input: Tensor) -> Tensor:
    """The (conjugate) transpose of a matrix; of real numbers a view.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).H
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = input._array.ndim
    if ndim == 0:
        warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().", UserWarning, once=True)
        return _conjugate(input)
    if ndim != 2:
        more = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{more}")
    return _conjugate(_transpose(input, 0, 1))


def _conjugate(input: Tensor) -> Tensor:
    return bits.lazy_conjugate(input) if input._memory.dtype.kind == "c" else input


def _mT(input: Tensor) -> Tensor:
    """A view with the last two dimensions exchanged: the transpose of each matrix of a batch.

    Example:
        >>> torch.zeros(5, 2, 3).mT.shape
        torch.Size([5, 3, 2])
    """
    return _transposed_matrices(input, "mT")


def _mH(input: Tensor) -> Tensor:
    """The (conjugate) transpose of each matrix of a batch; of real numbers a view.

    Example:
        >>> torch.zeros(5, 2, 3).mH.shape
        torch.Size([5, 3, 2])
    """
    return _conjugate(_transposed_matrices(input, "mH"))


@public()
def real(input: Tensor) -> Tensor:
    """Return the real part of complex numbers, as a view; `input` itself if it is real.

    Example:
        >>> torch.real(torch.tensor([1 + 2j, 3 - 1j]))
        tensor([1., 3.])
    """
    return bits.real_part(input) if input._array.dtype.kind == "c" else input


def _imag(input: Tensor) -> Tensor:
    """The imaginary part of complex numbers, as a view; RuntimeError for real numbers."""
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return bits.imaginary_part(input)


def _set_real(input: Tensor, value: Any) -> None:
    real(input).copy_(value if isinstance(value, Tensor) else wrap(np.asarray(value)))


def _set_imag(input: Tensor, value: Any) -> None:
    _imag(input).copy_(value if isinstance(value, Tensor) else wrap(np.asarray(value)))


# Views: a part ------------------------------------------------------------------------------------


@op(kernels.embed, complex=OWN, name="SliceBackward", x=lambda g, key: part(g, key))
def embed(x: Any, shape: tuple[int, ...], key: Any) -> Any:
    """Return zeros of `shape` with `x` written at the index `key`: the gradient of `part`."""


def _by_key(name: str) -> Any:
    made = op(name=name, view=True, x=lambda g, x_shape, key: embed(g, x_shape, key))(kernels.part)
    made.op.name = f"_{name.lower()}"
    return made


# Basic indexing by ints, slices, None and Ellipsis, as in NumPy. PyTorch records one node per index;
# here one node covers the whole key and has the name of the node for its last index.
part, selected, inserted = _by_key("Slice"), _by_key("Select"), _by_key("Unsqueeze")
aliased = op_of(kernels.alias, view=True, x=lambda g, key: g)


@public(method=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return a view of the elements from `start` to `start + length` of a dimension.

    `start` is an int or a 0-dim tensor; negative counts from the end.

    Example:
        >>> torch.narrow(torch.arange(6), 0, 2, 3)
        tensor([2, 3, 4])
    """
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start, length = operator.index(start), operator.index(length)
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    axis = axis_of(dim, len(shape), "narrow")
    whole = shape[axis]
    if not -whole <= start <= whole:
        raise IndexError(f"start out of range (expected to be in range of [{-whole}, {whole}], but got {start})")
    if start < 0:
        start += whole
    if start + length > whole:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({whole}).")
    return _slice(input, axis, start, start + length)


def _slice(input: Tensor, axis: int, start: int, end: int) -> Tensor:
    return part(input, (*(slice(None),) * axis, slice(start, end)))


@public(method=True)
def select(input: Tensor, dim: int, index: Any) -> Tensor:
    """Return a view of the slice at `index` of dimension `dim`, without that dimension.

    Example:
        >>> torch.select(torch.arange(6).view(2, 3), 1, -1)
        tensor([2, 5])
    """
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, len(shape), "select")
    index = operator.index(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {kernels.full(shape)} at dimension {axis}"
        )
    return selected(input, (*(slice(None),) * axis, index, ...))


# Views: repeated, on the diagonal, in windows -----------------------------------------------------


_expand = op_of(kernels.expand, view=True, x=lambda g, x_shape: g.sum_to_size(x_shape))


@public("", method="expand")
@short("of_ints", _expand)
def expand(input: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Tensor:
    """Return a view in which dimensions of size 1 are broadcast without copying and new leading dimensions are added.

    The new shape is given by ints or one sequence; -1 keeps the size of a dimension. `implicit` has no effect.

    Example:
        >>> torch.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    return _expand(input, ints_of("expand", "size", size, named))


@public("", method="expand_as")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` expanded to the shape of `other`.

    Example:
        >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return _expand(input, other._array.shape)


@public(method=True)
def broadcast_to(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """Return a view of `input` broadcast to the shape `size`; see `Tensor.expand`.

    Example:
        >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return _expand(input, ints_of("broadcast_to", "size", size, named))


_diagonal = op_of(
    kernels.diagonal, view=True,
    x=lambda g, x_shape, offset, dim1, dim2: _embed_diagonal(g, x_shape, offset, dim1, dim2),
)  # fmt: skip
_embed_diagonal = op_of(
    kernels.embed_diagonal,
    name="DiagEmbed",
    complex=OWN,
    x=lambda g, offset, dim1, dim2: _diagonal(g, offset, dim1, dim2),
)
_diagonal_copy = op_of(
    kernels.diagonal_copy,
    batch=lambda x, offset: x.diagonal(offset).clone(),
    name="DiagonalBackward0_copy",
    complex=OWN,
    x=lambda g, x_shape, offset: _embed_diagonal(g, x_shape, offset, 0, 1),
)


@public(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of the planes spanned by `dim1` and `dim2`, as the last dimension.

    `offset` 0 is the main diagonal, positive lies above it, negative below it.

    Example:
        >>> torch.diagonal(torch.arange(9).view(3, 3), 1)
        tensor([1, 5])
    """
    return _diagonal(input, offset, dim1, dim2)


@public(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return zeros with the last dimension of `input` (*, n) on the diagonals of two new dimensions.

    `offset` 0 is the main diagonal, positive lies above it, negative below it; the planes have side `n + |offset|`.
    `dim1` and `dim2` are the positions of the two new dimensions in the result.

    Example:
        >>> torch.diag_embed(torch.tensor([[1, 2], [3, 4]]))
        tensor([[[1, 0],
                 [0, 2]],
        <BLANKLINE>
                [[3, 0],
                 [0, 4]]])
    """
    shape = input._array.shape
    ndim = len(shape) + 1
    axes = [axis_of(dim, ndim, "diag_embed") for dim in (dim1, dim2)]
    if axes[0] == axes[1]:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    side = shape[-1] + abs(offset)
    sizes = list(shape[:-1])
    for axis in sorted(axes):
        sizes.insert(axis, side)
    return _embed_diagonal(input, tuple(sizes), offset, *axes)


@public(method=True, out="exact")
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """Return a copy of the diagonal of a matrix, or the matrix with a vector on its diagonal.

    Example:
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    ndim = input._array.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim == 2:
        return _diagonal_copy(input, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


@public(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix with the flattened `input` on the diagonal `offset` (see `diagonal`).

    Example:
        >>> torch.diagflat(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    return diag_embed(_view(contiguous(input), (numel(input),)), offset)


_unfold = op_of(
    kernels.unfold, view=True,
    x=lambda g, x_shape, dimension, size, step: _fold(g, x_shape, dimension, size, step),
)  # fmt: skip
_fold = op_of(
    kernels.fold,
    name="UnfoldBackward",
    complex=OWN,
    x=lambda g, dimension, size, step: _unfold(g, dimension, size, step),
)


@public("", method="unfold")
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of `size` elements, `step` apart, along a dimension, as a new last dimension.

    Example:
        >>> torch.arange(5).unfold(0, 3, 2)
        tensor([[0, 1, 2],
                [2, 3, 4]])
    """
    return _unfold(input, axis_of(dimension, input._array.ndim, "unfold"), size, step)


@public(listed=False, method=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a view of the memory of `input` with the given sizes, strides and offset, all in elements.

    The offset in the storage is by default that of `input`. RuntimeError: the view exceeds the storage, or a stride is
    negative.

    Example:
        >>> torch.as_strided(torch.arange(6), (2, 2), (1, 2))
        tensor([[0, 2],
                [1, 3]])
    """
    size, stride = ints_of("as_strided", "size", (size,)), ints_of("as_strided", "stride", (stride,))
    array = input._memory
    if hasattr(input, "_level"):  # (inside of `vmap`: a place in the memory of each example)
        if len(size) != len(stride):
            raise RuntimeError("as_strided: size and stride must have the same length")
        shift = 0 if storage_offset is None else storage_offset - input.storage_offset()
        return strided(input, (size, stride, shift), places.place(array, array))
    offset = places.storage_offset(array) if storage_offset is None else storage_offset
    place = places.checked_place(array, size, stride, operator.index(offset))
    return strided(input, place, places.place(array, array))


# Copies in new memory ----------------------------------------------------------------------------


_clone = pointwise("clone", kernels.clone, moves=True, x=lambda g: g)
_contiguous = pointwise("contiguous", kernels.contiguous, moves=True, own_layout=True, x=lambda g: g, node_name="Clone")
_clone_in = op_of(
    kernels.clone_in, batch="cloned", name="Clone", moves=True, x=lambda g: g
)  # not pointwise: it depends on the whole shape
_FORMATS: dict[str, Any] = {
    "None": _clone,
    "torch.preserve_format": _clone,
    "torch.contiguous_format": _contiguous,
    "torch.channels_last": lambda x: _clone_in(x, "torch.channels_last"),
    "torch.channels_last_3d": lambda x: _clone_in(x, "torch.channels_last_3d"),
}


def _copier(memory_format: Any) -> Any:
    """Return the op that copies a tensor into a memory format."""
    try:
        return _FORMATS[str(memory_format)]
    except KeyError:
        raise TypeError(
            f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}"
        ) from None


@public(method=True)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy; without a `memory_format` it keeps the order of the dimensions in memory.

    The copy is differentiable: gradients flow to `input`. To stop them use `Tensor.detach`.

    Example:
        >>> x = torch.zeros(2)
        >>> torch.clone(x).add_(1), x
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    return (_clone if memory_format is None else _copier(memory_format))(input)


@public("", method="contiguous")
@short("contiguous")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """Return `input` itself if it is contiguous in the memory format, otherwise a contiguous copy.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> x.contiguous() is x, x.t().contiguous().stride()
        (True, (2, 1))
    """
    if memory_format is None or str(memory_format) == "torch.contiguous_format":
        return input if input._memory.flags.c_contiguous else _contiguous(input)
    return input if is_contiguous(input, memory_format) else _copier(memory_format)(input)


@public("", method="is_contiguous")
def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:
    """Return whether the tensor is contiguous in `memory_format` (row-major by default).

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.is_contiguous(), x.t().is_contiguous()
        (True, False)
    """
    array = input._memory
    name = str(memory_format)
    if name in ("torch.channels_last", "torch.channels_last_3d"):
        if array.ndim != (4 if name == "torch.channels_last" else 5):
            return False
        array = np.moveaxis(array, 1, -1)
    return bool(array.flags.c_contiguous)


declare_members(
    {
        "H": property(_matrix_adjoint),
        "T": property(_reversed_dims),
        "imag": property(_imag, _set_imag),
        "mH": property(_mH),
        "mT": property(_mT),
        "real": property(real, _set_real),
    }
)


# Metadata: sizes, strides, addresses -------------------------------------------------------------


@public("", method="size")
@short("size")
def size(input: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the size of one dimension.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.size(), x.size(-1)
        (torch.Size([2, 3]), 3)
    """
    shape = input._memory.shape
    if dim is None:
        return Size(shape)
    return shape[_dimension(dim, shape)]


@public("", method="stride", listed=False)
def stride(input: Tensor, dim: int | None = None) -> Any:
    """Return the strides in elements, or the stride of one dimension.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.stride(), x.t().stride()
        ((3, 1), (1, 3))
    """
    array = input._memory
    strides = places.element_strides(array)
    for d in range(len(strides) - 1, -1, -1):
        if array.shape[d] == 1 and not strides[d]:  # NumPy: newaxis has stride 0; PyTorch derives it from the next
            strides[d] = array.shape[d + 1] * strides[d + 1] if d + 1 < len(strides) else 1
    return tuple(strides) if dim is None else strides[_dimension(dim, array.shape)]


def _dimension(dim: int, shape: tuple[int, ...]) -> int:
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return axis_of(dim, len(shape), "size")


@public(method="nelement numel")
@short("numel")
def numel(input: Tensor) -> int:
    """Return the number of elements.

    Example:
        >>> torch.numel(torch.zeros(2, 3))
        6
    """
    return int(input._memory.size)


@public("", method="dim ndimension")
@short("dim")
def dim(input: Tensor) -> int:
    """Return the number of dimensions.

    Example:
        >>> torch.zeros(2, 3).dim()
        2
    """
    return int(input._memory.ndim)


@public("", method="storage_offset")
def storage_offset(input: Tensor) -> int:
    """Return the offset of the tensor's first element in its storage, in elements.

    Example:
        >>> torch.arange(4)[1:].storage_offset()
        1
    """
    return places.storage_offset(input._memory)


@public("", method="element_size")
def element_size(input: Tensor) -> int:
    """Return the size of one element in bytes.

    Example:
        >>> torch.zeros(2).element_size(), torch.arange(2).element_size()
        (4, 8)
    """
    return int(input._memory.itemsize)


@public("", method="data_ptr", traced="refused")
def data_ptr(input: Tensor) -> int:
    """Return the memory address of the first element.

    Example:
        >>> x = torch.arange(4)
        >>> x[1:].data_ptr() - x.data_ptr()
        8
    """
    return 0 if meta.is_meta(input._memory) else int(input._memory.__array_interface__["data"][0])


@public(method=True)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is a floating-point type.

    Example:
        >>> torch.is_floating_point(torch.zeros(1)), torch.is_floating_point(torch.arange(1))
        (True, False)
    """
    return input.dtype.is_floating_point


@public(method=True)
def is_complex(input: Tensor) -> bool:
    """Return whether the dtype is complex.

    Example:
        >>> torch.is_complex(torch.ones(2)), torch.is_complex(torch.tensor(1j))
        (False, True)
    """
    return input.dtype.is_complex


@public(method=True)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype is signed.

    Example:
        >>> torch.is_signed(torch.tensor([1])), torch.is_signed(torch.tensor([1], dtype=torch.uint8))
        (True, False)
    """
    return input.dtype.is_signed
