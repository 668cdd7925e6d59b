"""Shapes of arrays: checked sizes, views with other strides, splitting, joining, memory formats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from . import dtypes, layouts
from .checks import MOST_DIMENSIONS, exceeds_dimensions, tensor_name, too_many_dimensions
from .meta import is_meta
from .native import twin
from .places import storage_offset
from .reduce import axes_of, axis_of

Array = Any


def full(sizes: Sequence[int]) -> list[int]:
    """Return sizes as a list of ints, for PyTorch's messages."""
    return [int(size) for size in sizes]


def inferred(size: int, shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` with its -1, if any, replaced by the length that gives `size` elements.

    Raises:
        RuntimeError: the shape does not fit, or has more than one -1.
    """
    known, unknown = 1, None
    for i, length in enumerate(shape):
        if length == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        elif length < 0:
            raise RuntimeError(f"invalid shape dimension {length} at index {i} of shape {full(shape)}")
        else:
            known *= length
    if unknown is None:
        if known != size:
            raise RuntimeError(f"shape '{full(shape)}' is invalid for input of size {size}")
        return tuple(shape)
    if known == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {full(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
            if size == 0
            else f"shape '{full(shape)}' is invalid for input of size {size}"
        )
    if size % known:
        raise RuntimeError(f"shape '{full(shape)}' is invalid for input of size {size}")
    return (*shape[:unknown], size // known, *shape[unknown + 1 :])


def view(x: Array, shape: tuple[int, ...]) -> Array:
    """Return `x` in another shape, on the same memory.

    Raises:
        RuntimeError: the shape does not fit, or the strides do not allow it.
    """
    try:
        if not shape or min(shape) >= -1:  # (NumPy accepts any negative length as -1)
            # A contiguous array is never copied, and `reshape` without `copy` is faster.
            return x.reshape(shape) if x.flags.c_contiguous else x.reshape(shape, copy=False)
    except ValueError:
        pass
    except TypeError:
        kinds = ", ".join(type(length).__name__ for length in shape)
        raise TypeError(
            f"view() received an invalid combination of arguments - got ({kinds}), but expected a shape or a dtype"
        ) from None
    inferred(x.size, shape)  # raises an error if the shape does not fit
    if len(shape) > MOST_DIMENSIONS:
        raise too_many_dimensions(len(shape))
    raise RuntimeError(
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead."
    )


def unsafe_view(x: Array, shape: tuple[int, ...]) -> Array:
    """Return a contiguous array in a shape that has the right number of elements."""
    return x.reshape(shape)


def can_view(x: Array, shape: tuple[int, ...]) -> bool:
    """Return whether `x` can have a shape, which has the right number of elements, on the same memory."""
    if not x.flags.c_contiguous:
        try:
            x.reshape(shape, copy=False)
        except ValueError:
            return False
    return True


def view_of_type(x: Array, kind: dtypes.dtype) -> Array:
    """Return the bytes of `x` as another dtype; if the item sizes differ, the length of the last dimension changes."""
    mine = dtypes.from_numpy_dtype(x.dtype)
    if mine.itemsize != kind.itemsize:
        what = f"to view {mine.tensor_name} as {kind.tensor_name} (different element sizes)"
        if not x.ndim:
            raise RuntimeError(f"self.dim() cannot be 0 {what}")
        last = x.strides[-1] // mine.itemsize
        if last != 1 and x.shape[-1] > 1 and x.size:
            raise RuntimeError(f"self.stride(-1) must be 1 {what}, but got {last}")
        ratio = kind.itemsize // mine.itemsize
        if ratio and x.shape[-1] % ratio:
            raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {what}, but got {x.shape[-1]}")
        if ratio and x.size:
            steps = [step // mine.itemsize for step in x.strides[:-1]]
            named = [("storage_offset()", storage_offset(x)), *[(f"stride({k})", s) for k, s in enumerate(steps)]]
            for name, value in named:
                if value % ratio:
                    raise RuntimeError(f"self.{name} must be divisible by {ratio} {what}, but got {value}")
    return x.view(kind.numpy)


def squeeze(x: Array) -> Array:
    """Return a view without the dimensions of length 1."""
    return x.squeeze()


def squeeze_dim(x: Array, dim: int) -> Array:
    """Return a view without a dimension if its length is 1."""
    return _squeezed(x, (axis_of(dim, x.ndim, "squeeze"),)) if x.ndim or axis_of(dim, 0, "squeeze") else x[...]


def squeeze_dims(x: Array, dims: tuple[int, ...]) -> Array:
    """Return a view without those of the dimensions whose length is 1."""
    return _squeezed(x, (axes_of(dims, x.ndim, "squeeze") or ()) if dims else ())


def _squeezed(x: Array, dims: tuple[int, ...]) -> Array:
    return x.squeeze(tuple([dim for dim in dims if x.shape[dim] == 1]))


def unsqueeze(x: Array, dim: int) -> Array:
    """Return a view with a new dimension of length 1."""
    if x.ndim == MOST_DIMENSIONS:
        raise too_many_dimensions(x.ndim + 1)
    if dim == 0:
        return x[None]
    return x[(slice(None),) * axis_of(dim, x.ndim + 1, "unsqueeze") + (None,)]


def transpose(x: Array, dim0: int, dim1: int) -> Array:
    """Return a view with two dimensions exchanged."""
    try:
        return x.swapaxes(dim0, dim1)
    except (np.exceptions.AxisError, TypeError):
        for position, dim in enumerate((dim0, dim1)):
            if isinstance(dim, float) or not hasattr(dim, "__index__"):
                raise TypeError(
                    f"transpose(): argument 'dim{position}' (position {position + 1}) must be int, "
                    f"not {type(dim).__name__}"
                ) from None
            axis_of(dim, x.ndim, "transpose")
        return x[...]  # 0-dim tensor


def t(x: Array) -> Array:
    """Return a view of the transpose of a matrix, or of all of another array."""
    return x.T if x.ndim == 2 else x[...]


def permute(x: Array, dims: tuple[int, ...]) -> Array:
    """Return a view with the dimensions in another order."""
    try:
        if len(dims) == x.ndim:
            return x.transpose(dims)
    except ValueError:
        pass
    if len(dims) != x.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(dims)}"
        )
    for dim in dims:
        axis_of(dim, x.ndim, "permute")
    raise RuntimeError("permute(): duplicate dims are not allowed.")


def part(x: Array, key: Any) -> Array:
    """Return the view that a key of ints, slices, None and Ellipsis selects."""
    try:
        return x[key]
    except IndexError as error:
        raise (too_many_dimensions() if exceeds_dimensions(error) else error) from None


def alias(x: Array, key: Any) -> Array:
    """Return a view of all of `x`, whatever the key."""
    return x[...]


def second(input: Array, result: Array) -> Array:
    """Return the second argument."""
    return result


def embed(x: Array, shape: tuple[int, ...], key: Any) -> Array:
    """Return zeros of `shape` with `x` written at the index `key`."""
    out = np.zeros(shape, x.dtype, like=x)
    out[key] = x
    return out


def writable(view: Array, x: Array) -> Array:
    """Return a view of `x`, which NumPy made read-only, writable if `x` is writable."""
    if isinstance(view, np.ndarray) and x.flags.writeable:
        view.flags.writeable = True
    return view


@twin
def expand(x: Array, sizes: Sequence[int]) -> Array:
    """Return a view with dimensions of length 1 expanded to `sizes`, and new ones in front; -1 keeps a length."""
    extra = len(sizes) - x.ndim
    if extra < 0:
        raise RuntimeError(
            f"expand(torch.{tensor_name(x)}Tensor{{{full(x.shape)}}}, size={full(sizes)}): the number of sizes "
            f"provided ({len(sizes)}) must be greater or equal to the number of dimensions in the tensor ({x.ndim})"
        )
    shape = list(sizes)
    strides = [0] * len(shape)
    for i, want in enumerate(sizes):
        if i < extra:
            if want < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({want}) isn't allowed in a leading, non-existing dimension {i}"
                )
            continue
        have = x.shape[i - extra]
        if want == -1 or want == have:
            shape[i], strides[i] = have, x.strides[i - extra]
        elif have != 1 or want < 0:
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {full(sizes)}.  Tensor sizes: {full(x.shape)}"
            )
    if type(x) is np.ndarray and x.flags.c_contiguous and x.flags.writeable:
        return np.ndarray(shape, x.dtype, x, 0, strides)  # in a tenth of the time of `broadcast_to`
    if x.flags.c_contiguous and (is_meta(x) or type(x) is np.ndarray):
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok=True)
    return writable(np.broadcast_to(x, shape), x)


def unfold(x: Array, dimension: int, size: int, step: int) -> Array:
    """Return windows of `size` elements, `step` apart, along a dimension; their elements are the last dimension."""
    length = x.shape[dimension] if x.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not x.ndim:
        return x[None][:size]
    if size == 0:
        count = length // step + 1
        return np.empty_like(x, shape=(*x.shape[:dimension], count, *x.shape[dimension + 1 :], 0))
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=dimension, writeable=x.flags.writeable)
    return windows[(slice(None),) * dimension + (slice(None, None, step),)]


def fold(x: Array, shape: tuple[int, ...], dimension: int, size: int, step: int) -> Array:
    """Return zeros of `shape` with the elements of windows added at the places that `unfold` reads: its transpose."""
    out = np.zeros(shape, x.dtype, like=x)
    if not shape:
        out[...] = x.sum()
        return out
    count, before = x.shape[dimension], (slice(None),) * dimension
    apart = -(-size // step)  # windows with this difference of their numbers do not overlap
    if apart < size and size > 1:
        windows = np.lib.stride_tricks.sliding_window_view(out, size, axis=dimension, writeable=True)
        for k in range(min(apart, count)):
            part = windows[(*before, slice(k * step, (count - 1) * step + 1, apart * step))]
            part += x[(*before, slice(k, None, apart))]
        return out
    for k in range(size):
        out[(*before, slice(k, k + (count - 1) * step + 1, step))] += x[..., k]
    return out


def diagonal(x: Array, offset: int, dim1: int, dim2: int) -> Array:
    """Return a view of the diagonals of the planes of two dimensions; its last dimension runs along the diagonals."""
    axis1, axis2 = axis_of(dim1, x.ndim, "diagonal"), axis_of(dim2, x.ndim, "diagonal")
    if axis1 == axis2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return writable(x.diagonal(offset, axis1, axis2), x)


def diagonal_copy(x: Array, offset: int) -> Array:
    """Return a copy of the diagonal of a matrix."""
    return diagonal(x, offset, 0, 1).copy()


def embed_diagonal(x: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Array:
    """Return zeros of `shape` with `x` on the diagonals that `diagonal` returns."""
    out = np.zeros(shape, x.dtype, like=x)
    places = np.arange(x.shape[-1], like=x)
    planes = np.moveaxis(out, (dim1, dim2), (-2, -1))
    planes[..., places + max(-offset, 0), places + max(offset, 0)] = x
    return out


def promoted(xs: Sequence[Array]) -> list[Array]:
    """Return arrays in their common dtype by PyTorch's rules."""
    kind = xs[0].dtype
    if all(x.dtype is kind or x.dtype == kind for x in xs):
        return list(xs)
    ranked = [(dtypes.from_numpy_dtype(x.dtype), 2 if x.ndim else 1) for x in xs]
    common = dtypes.result_dtype(*ranked).numpy
    return [x.astype(common, copy=False) for x in xs]


def _as_joined(out: Array, xs: Sequence[Array]) -> Array:
    """Return NumPy's concatenation of `xs` in PyTorch's layout: row-major, unless all of them are channels-last."""
    if out.flags.c_contiguous or all(channels_last(x) for x in xs):
        return out
    return out.copy("C")


@twin
def concatenated(xs: Sequence[Array], dim: int) -> Array:
    """Return arrays joined along `dim`; one-dimensional empty arrays are skipped, as in PyTorch."""
    if xs:
        kind = xs[0].dtype
        for x in xs:
            if x.dtype is not kind:
                break
        else:  # the most frequent case; if NumPy raises an error, the code below handles it
            try:
                out = np.concatenate(xs, dim)
            except (ValueError, TypeError, IndexError):
                pass
            else:
                return out if out.flags.c_contiguous else _as_joined(out, xs)
    if not xs:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, x in enumerate(xs):
        if not x.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    arrays = promoted(xs)
    filled = [x for x in arrays if x.shape != (0,)]
    if len(filled) != len(arrays) and filled and filled[0].ndim > 1:
        arrays = filled
    first = arrays[0]
    axis = axis_of(dim, first.ndim, "cat")
    try:
        return _as_joined(np.concatenate(arrays, axis=axis), arrays)
    except ValueError:
        pass
    for i, x in enumerate(xs):
        if x.shape == (0,):
            continue
        if x.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}")
        for d, (want, have) in enumerate(zip(first.shape, x.shape, strict=True)):
            if want != have and d != axis:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {axis}. Expected size {want} but got size "
                    f"{have} for tensor number {i} in the list."
                )
    raise AssertionError("unreachable: NumPy refused shapes that fit")


@twin
def stacked(xs: Sequence[Array], dim: int) -> Array:
    """Return arrays of one shape stacked along a new dimension."""
    if not xs:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = xs[0].shape
    for i, x in enumerate(xs):
        if x.shape != shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {full(shape)} at entry 0 and {full(x.shape)} "
                f"at entry {i}"
            )
    axis = axis_of(dim, len(shape) + 1, "stack")
    xs, one = promoted(xs), (*shape[:axis], 1, *shape[axis:])
    out = np.concatenate([x.reshape(one) for x in xs], axis)
    if not out.flags.c_contiguous:
        if axis == len(shape):
            return out.copy("C")
        out = _as_joined(np.concatenate(xs, axis), xs).reshape(out.shape)
    return out


def split_sizes(length: int, size: int) -> list[int]:
    """Return the lengths of the pieces when `length` is split into pieces of `size`; the last may be shorter."""
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    if not length:
        return [0]
    count = math.ceil(length / size)
    return [size] * (count - 1) + [length - size * (count - 1)]


@twin
def pieces(x: Array, sizes: Sequence[int], dim: int) -> tuple[Array, ...]:
    """Return views of `x`, split along `dim` (from 0) into pieces of these lengths."""
    parts, at = [], 0
    before = (slice(None),) * dim
    for size in sizes:
        parts.append(x[(*before, slice(at, at + size))])
        at += size
    return tuple(parts)


@twin
def unbind(x: Array, dim: int = 0) -> tuple[Array, ...]:
    """Return views of the slices of `x` along `dim`."""
    if not x.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = axis_of(dim, x.ndim, "unbind")
    before = (slice(None),) * axis
    return tuple([x[(*before, k, ...)] for k in range(x.shape[axis])])


def block_diag(xs: Sequence[Array]) -> Array:
    """Return the matrix with the given matrices, vectors as rows, on its diagonal."""
    blocks = [x.reshape((1, 1, *x.shape)[-2:] if x.ndim < 2 else x.shape) for x in promoted(xs)]
    rows, columns = (sum(block.shape[i] for block in blocks) for i in (0, 1))
    out = np.zeros((rows, columns), blocks[0].dtype, like=blocks[0])
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


def clone(x: Array) -> Array:
    """Return a copy that keeps the order of the dimensions in memory."""
    return layouts.copy(x)


def contiguous(x: Array) -> Array:
    """Return a copy in row-major order."""
    return x.copy("C")


_RANKS = {"torch.channels_last": 4, "torch.channels_last_3d": 5}

# Whether the processor makes 0 of a negative float that is converted to an unsigned integer (ARM and WebAssembly do).
# PyTorch converts it to int64 first: -1.0 becomes 255.
with np.errstate(invalid="ignore"):
    _CUTS_OFF = not np.full(64, -1.0, np.float32).astype(np.uint8).all()


def converted(kind: Any, memory_format: str, x: Array) -> Array:
    """Return a copy of an array with the given dtype and memory format."""
    if x.dtype.kind == "c" and kind.kind not in "cb":
        x = x.real
    if kind.itemsize == 1:
        x = dtypes.narrowed(x, kind)
    if _CUTS_OFF and kind.kind == "u" and kind.itemsize < 8 and x.dtype.kind in dtypes.FLOATS:
        x = x.astype(np.int64)
    rank = _RANKS.get(memory_format)
    if rank is None:
        return x.astype(kind, "C") if memory_format == "torch.contiguous_format" else layouts.copy(x, kind)
    if x.ndim != rank:
        name = memory_format.removeprefix("torch.")
        raise RuntimeError(f"required rank {rank} tensor to use {name} format")
    return np.moveaxis(np.moveaxis(x, 1, -1).astype(kind, "C"), -1, 1)


def clone_in(x: Array, memory_format: str) -> Array:
    """Return a copy in a memory format."""
    return converted(x.dtype, memory_format, x)


def suggested_format(x: Array) -> str:
    """Return the memory format that the strides suggest, by PyTorch's rule for copies."""
    if not channels_last(x):
        return "torch.contiguous_format"
    return next(name for name, rank in _RANKS.items() if rank == x.ndim)


def formatted(out: Array, x: Array) -> Array:
    """Return `out` in channels-last format if `x` is: PyTorch's kernels propagate the memory format.

    Both have the shape (N, C, *). If one channel or one place makes the format ambiguous, it is the contiguous one.
    """
    if x.flags.c_contiguous or not channels_last(x):
        return out
    return with_channels_last(out)


def with_channels_last(out: Array) -> Array:
    """Return an array (N, C, *) in channels-last format."""
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(out, 1, -1)), -1, 1)


def channels_last(x: Array) -> bool:
    """Return whether the strides of an array (N, C, *) are channels-last by PyTorch's criterion."""
    shape, strides, least = x.shape, x.strides, 0
    if len(shape) not in (4, 5):
        return False
    if 0 in strides:
        # NumPy's stride of a new dimension is 0, where PyTorch derives it from the next dimension (`Tensor.stride`).
        by_next = [*strides, x.itemsize]
        for dim in range(x.ndim - 1, -1, -1):
            if shape[dim] == 1 and not by_next[dim]:
                by_next[dim] = by_next[dim + 1] * (*shape, 1)[dim + 1]
        strides = tuple(by_next)
    if len(strides) > 1 and not strides[1]:
        return False
    for dim in (1, *range(x.ndim - 1, 1, -1), 0):
        if not shape[dim] or strides[dim] < least or (not dim and least == strides[1]):
            return False
        least = strides[dim] * max(shape[dim], 1)
    return True
