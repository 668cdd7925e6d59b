"""Copies with repeated or reordered elements, triangles of matrices, constant padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.mode import short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import rearrange as kernels
from tinytorch.kernels.checks import out_of_range
from tinytorch.kernels.reduce import axis_of, int_of
from tinytorch.ops.arguments import ints_of, op_of, unless_empty
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.register import public
from tinytorch.ops.shape import _contiguous, _expand, _view, flatten, reshape, unsqueeze

# Copies: repeated ---------------------------------------------------------------------------------


def _repeat_x(g: Tensor, x_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    lengths = (1,) * (len(repeats) - len(x_shape)) + x_shape
    pairs = [each for pair in zip(repeats, lengths, strict=True) for each in pair]
    if not pairs:
        return g
    return g.reshape(pairs).sum(tuple(range(0, len(pairs), 2))).reshape(x_shape)


_repeat = op_of(kernels.repeat, moves=True, x=_repeat_x)


@public("", method="repeat")
@short("of_ints", _repeat)
def repeat(input: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """Return a copy of the tensor repeated along each dimension; unlike `expand`, the repeats occupy memory.

    Extra leading numbers add new dimensions.

    Example:
        >>> torch.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    return _repeat(input, ints_of("repeat", "repeats", repeats, named))


@public(method=True)
def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return the tensor repeated along each dimension; unlike in `Tensor.repeat`, missing leading repeats are 1.

    Example:
        >>> torch.tile(torch.tensor([[1], [2]]), (3,))
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    repeats = ints_of("tile", "dims", dims, named)
    return _repeat(input, (1,) * (input._array.ndim - len(repeats)) + repeats)


@public(method=True)
@per_example("repeats")
def repeat_interleave(
    input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Return a copy with each element along `dim` (of the flattened tensor by default) repeated consecutively.

    `repeats` is a number, or a tensor with the repeats of each element along the dimension; if it is missing, `input`
    holds the repeats and the result is the repeated indices. `output_size` is the expected size of the result along
    `dim`, checked if given.

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
        >>> torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([0, 3]))
        tensor([2, 2, 2])
    """
    if input is None:
        input, repeats = repeats, None
    if repeats is None:
        return _interleaved(input, output_size)
    if dim is None:
        input, dim = flatten(input), 0
    axis = axis_of(dim, input._array.ndim, "repeat_interleave")
    if not input._array.ndim:  # PyTorch's error, even if `dim` is 0
        raise out_of_range(1, 1)
    length = input._array.shape[axis] if input._array.ndim else 1
    if isinstance(repeats, Tensor):
        counts: Any = repeats._array
        if counts.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if counts.size == 1 and length != 1:
            counts = np.broadcast_to(counts.reshape(-1), (length,))
        if counts.size != length:
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{counts.size} and input.size({axis}) = {length}"
            )
        return input.index_select(axis, wrap(kernels.interleaved(counts.reshape(-1), output_size)))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if not input._array.ndim:
        input = reshape(input, (1,))
    shape = input._array.shape
    if output_size is not None and output_size != length * repeats:
        raise RuntimeError("allocated size does not match required size")
    spread = _expand(unsqueeze(input, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return _view(_contiguous(spread), (*shape[:axis], length * repeats, *shape[axis + 1 :]))


@per_example()
def _interleaved(repeats: Tensor, output_size: Any) -> Tensor:
    return wrap(kernels.interleaved(repeats._array, output_size))


# Copies: rearranged -------------------------------------------------------------------------------


def _refused_flip(x: Any, dims: tuple[int, ...]) -> str | None:
    """Return the name of PyTorch's flip kernel, or None where PyTorch copies whole rows without a kernel."""
    flipped = [d % x.ndim for d in dims if x.ndim and x.shape[d] > 1]
    inner = min((abs(step), -d) for d, step in enumerate(x.strides) if x.shape[d] > 1) if flipped else (x.itemsize, 1)
    return "flip_cpu" if inner[0] != x.itemsize or -inner[1] in flipped else None


_flip = op_of(kernels.flip, refuses=_refused_flip, complex=OWN, x=lambda g, dims: _flip(g, dims))


@public(method=True)
@short("of_ints", _flip)
def flip(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return a copy with the elements in reverse order along the given dimensions.

    Example:
        >>> torch.flip(torch.arange(3), (0,))
        tensor([2, 1, 0])
    """
    return _flip(input, ints_of("flip", "dims", dims, named))


@public(method=True)
def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the elements in reverse order along the second dimension.

    Example:
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(input, (1,))


@public(method=True)
def flipud(input: Tensor) -> Tensor:
    """Return a copy with the elements in reverse order along the first dimension.

    Example:
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(input, (0,))


_roll = op_of(
    kernels.roll,
    batch="rolled",
    moves=True,
    x=lambda g, shifts, dims: _roll(g, tuple([-shift for shift in shifts]), dims),
)


@public(method=True)
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Return a copy with the elements shifted along dimensions; elements shifted past the end reappear at the start.

    `shifts` is an int, or one int per dimension in `dims`; without dimensions the flattened tensor is rolled.

    Example:
        >>> torch.roll(torch.arange(4), 1)
        tensor([3, 0, 1, 2])
    """
    moves = ints_of("roll", "shifts", (shifts,))
    axes = () if dims is None else ints_of("roll", "dims", (dims,))
    if not moves:
        raise RuntimeError("`shifts` required")
    if len(moves) != len(axes) and (axes or len(moves) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}")
    if axes and not input._array.ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    if not input._array.size:  # PyTorch does not check the dimensions of an empty tensor
        moves, axes = moves[:1], ()
    return _roll(input, moves, axes)


def _refused_rotation(x: Any, k: int, dims: tuple[int, int]) -> str | None:
    return _refused_flip(x, ((), dims[1:], dims, dims[:1])[k % 4])


_rot90 = op_of(kernels.rot90, complex=OWN, refuses=_refused_rotation, x=lambda g, k, dims: _rot90(g, -k, dims))


@public(method=True)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Return a copy rotated k times by 90 degrees in the plane of two dimensions, from the first to the second.

    A negative k rotates in the opposite direction.

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    dims, ndim = tuple(dims), input._array.ndim
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    dim0, dim1 = (axis_of(dim, ndim, "rot90") for dim in dims)
    if dim0 == dim1:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return _rot90(input, int_of(k, "rot90", "k"), (dim0, dim1))


@public(method=True, in_place=True, out="exact")
@op(kernels.tril, batch="leading", complex=OWN, refuses=unless_empty("tril"), x=lambda g, diagonal: tril(g, diagonal))
def tril(x: Any, diagonal: int = 0) -> Any:
    """Return the lower triangles of matrices (*, m, n): zeros above the given diagonal.

    `diagonal` 0 is the main diagonal, positive lies above it, negative below it.

    Example:
        >>> torch.tril(torch.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
    """


@public(method=True, in_place=True, out="exact")
@op(kernels.triu, batch="leading", complex=OWN, refuses=unless_empty("triu"), x=lambda g, diagonal: triu(g, diagonal))
def triu(x: Any, diagonal: int = 0) -> Any:
    """Return the upper triangles of matrices (*, m, n): zeros below the given diagonal; see `tril`.

    Example:
        >>> torch.triu(torch.ones(2, 2), 1)
        tensor([[0., 1.],
                [0., 0.]])
    """


@op(
    kernels.constant_pad,
    batch="leading",
    moves=True,
    name="ConstantPadNd",
    x=lambda g, pad: constant_pad(g, tuple([-width for width in pad]), 0),
)
def constant_pad(x: Any, pad: tuple[int, ...], value: Any = 0) -> Any:
    """Return `x` padded with `value`.

    `pad` holds pairs of widths (before, after), from the last dimension to the first.
    Negative widths crop, so the gradient is the same op with the negated widths.
    """
