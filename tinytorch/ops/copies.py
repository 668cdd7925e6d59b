"""The `*_copy`, `*_scatter` and in-place forms of view ops, `unsafe_split`, padding, and channel shuffles.

The forms are derived from the views of `shape.py`: a copy takes its gradient formulas from the view op's node, and
a scatter replaces the elements in the memory region of a view.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core import mode
from tinytorch.core.complex import OWN
from tinytorch.core.graph import enter
from tinytorch.core.mode import local, recording
from tinytorch.core.node import OpNode
from tinytorch.core.strided import copy_slices, restrided, strided
from tinytorch.core.supplied import declare_members
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import check_write, count_write, needs_grad
from tinytorch.kernels import places, rearrange
from tinytorch.kernels import shape as kernels
from tinytorch.kernels.meta import WithoutElements
from tinytorch.kernels.reduce import axis_of
from tinytorch.ops import convert, join
from tinytorch.ops import shape as views
from tinytorch.ops.arguments import ints_of, named, op_of, unless_empty
from tinytorch.ops.rearrange import constant_pad
from tinytorch.ops.register import public

# Copies of views ----------------------------------------------------------------------------------


@functools.cache
def _copy_class(view_class: type[OpNode], name: str | None) -> type[OpNode]:
    """Return a subclass of the view's node class, by default named with the suffix "_copy" as in PyTorch."""
    return type(name or f"{view_class.__name__}_copy", (view_class,), {"__slots__": ()})


def _node_of_copies(node: Any, name: str | None) -> Any:
    """Return a node for copies of the outputs of a view op, with the edges and saved values of the op's node."""
    view_class: Any = type(node)
    copy: Any = _copy_class(view_class, name)()
    enter(copy, node.edges, node.shape, node.dtype)
    copy.plan, copy.saved = node.plan, node.saved
    if not node.op.outputs:
        copy.outputs = node.outputs
    return copy


def _copied(view: Tensor, name: str | None = None) -> Tensor:
    """Return a contiguous copy of a view; its node, named `name`, has the gradient formulas of the view op."""
    return _copies([view], name)[0]


def _copies(outputs: Sequence[Tensor], name: str | None = None) -> list[Tensor]:
    """Return contiguous copies of all outputs of a view op; see `_copied`."""
    if local.state.modes is not None or any([mode.is_lazy(each) for each in outputs]):
        return [views.clone(view, memory_format="torch.contiguous_format") for view in outputs]
    copies = [wrap(view._array.copy("C")) for view in outputs]
    edge = outputs[0]._edge if outputs else None
    if edge is not None:
        node = _node_of_copies(edge[0], name)
        for number, copy in enumerate(copies):
            copy._edge, copy._requires_grad = (node, number), True
    return copies


def _copying(view: Callable[..., Any]) -> Any:
    """Decorate a function that returns views so that it returns copies."""

    @functools.wraps(view)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = view(*args, **kwargs)
        return tuple(_copies(result)) if type(result) is tuple else _copied(result)

    return call


def _copy_of(view: Callable[..., Any], example: str, result: str) -> Any:
    """Return the public function `<view>_copy`; `example` and `result` form the example of its docstring."""
    name = f"{view.__name__}_copy"
    copy = _copying(view)
    copy.__module__ = __name__
    doc = f"""Return a copy of what `{view.__name__}` views, contiguous.

    Example:
        >>> torch.{name}({example})
{textwrap.indent(result, " " * 8)}
    """
    return public(out="exact")(named(copy, name, doc))


as_strided_copy = _copy_of(views.as_strided, "torch.arange(4), (2, 2), (1, 2)", "tensor([[0, 2],\n        [1, 3]])")
diagonal_copy = _copy_of(views.diagonal, "torch.tensor([[1, 2], [3, 4]])", "tensor([1, 4])")
select_copy = _copy_of(views.select, "torch.tensor([[1, 2], [3, 4]]), 0, 1", "tensor([3, 4])")
split_with_sizes_copy = _copy_of(join.split_with_sizes, "torch.arange(4), [1, 3]", "(tensor([0]), tensor([1, 2, 3]))")
squeeze_copy = _copy_of(views.squeeze, "torch.tensor([[1], [2]])", "tensor([1, 2])")
t_copy = _copy_of(views.t, "torch.tensor([[1, 2], [3, 4]])", "tensor([[1, 3],\n        [2, 4]])")
transpose_copy = _copy_of(views.transpose, "torch.tensor([[1, 2], [3, 4]]), 0, 1", "tensor([[1, 3],\n        [2, 4]])")
unbind_copy = _copy_of(join.unbind, "torch.tensor([[1, 2], [3, 4]])", "(tensor([1, 2]), tensor([3, 4]))")
unfold_copy = _copy_of(views.unfold, "torch.arange(5), 0, 3, 2", "tensor([[0, 1, 2],\n        [2, 3, 4]])")
unsqueeze_copy = _copy_of(views.unsqueeze, "torch.tensor([1, 2]), 1", "tensor([[1],\n        [2]])")


@public(out="exact")
@_copying
def alias_copy(input: Tensor) -> Tensor:
    """Return a contiguous copy of the tensor.

    Example:
        >>> x = torch.zeros(2)
        >>> y = torch.alias_copy(x)
        >>> y += 1
        >>> x
        tensor([0., 0.])
    """
    return views.aliased(input, ())


@public(out="exact")
def detach_copy(input: Tensor) -> Tensor:
    """Return a copy of the tensor that does not require grad.

    Example:
        >>> x = torch.zeros(2)
        >>> y = torch.detach_copy(x).add_(1)
        >>> x
        tensor([0., 0.])
    """
    return _copied(input.detach())


@public(out="exact")
@_copying
def expand_copy(input: Tensor, size: Any, *, implicit: bool = False) -> Tensor:
    """Return a contiguous copy of `Tensor.expand`, in which the repeated elements occupy memory.

    Example:
        >>> torch.expand_copy(torch.tensor([1, 2]), (2, 2)).stride()
        (2, 1)
    """
    return views.expand(input, size)


@public(method=True, out="narrow_copy")
def narrow_copy(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return a contiguous copy of the view `narrow(input, dim, start, length)`.

    Example:
        >>> torch.narrow_copy(torch.arange(5), 0, 1, 3)
        tensor([1, 2, 3])
    """
    shape = input._array.shape
    if 0 < len(shape) <= dim:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    if length < 0:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({shape[dim]}).")
    return _copied(views.narrow(input, dim, start, length), "NarrowCopyBackward0")


@public(out="exact")
@_copying
def permute_copy(input: Tensor, dims: Any) -> Tensor:
    """Return a copy of the view `permute(input, dims)`, contiguous in the new order of dimensions.

    Example:
        >>> torch.permute_copy(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    return views.permute(input, dims)


@public(out="exact")
@_copying
def slice_copy(input: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """Return a copy of the slice `start:end:step` of a dimension.

    Example:
        >>> torch.slice_copy(torch.arange(6), 0, 1, 5, 2)
        tensor([1, 3])
    """
    return _sliced(input, dim, start, end, step)


@public(out="exact")
@_copying
def split_copy(input: Tensor, split_size: int, dim: int = 0) -> Any:
    """Return contiguous copies of the views that `split` returns.

    Example:
        >>> torch.split_copy(torch.arange(3), 2)
        (tensor([0, 1]), tensor([2]))
    """
    return join.split(input, split_size, dim)


@public(out="exact")
@_copying
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None) -> Tensor:
    """Return a contiguous copy of `Tensor.view`, with another shape or dtype.

    Example:
        >>> torch.view_copy(torch.arange(4), (2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    return views.view(input, *(() if size is None else (size,)), dtype=dtype)


def _sliced(input: Tensor, dim: int, start: Any, end: Any, step: int) -> Tensor:
    """Return a slice of a dimension as a view."""
    array = input._array
    if not array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = axis_of(dim, array.ndim, "slice")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return views.part(input, (*(slice(None),) * axis, slice(start, end, step)))


# Scatter into views -------------------------------------------------------------------------------


def _replacing(name: str) -> Any:
    """Return the op, with PyTorch's node name, that replaces the elements of a memory region."""
    return op_of(
        places.replaced,
        batch="placed in memory",
        name=name,
        complex=OWN,
        x=lambda g, whole, part: copy_slices(g, 0.0, whole, part),
        y=lambda g, whole, part: restrided(g, whole, part),
    )


_select_scatter = _replacing("SelectScatter")
_slice_scatter = _replacing("SliceScatter")
_diagonal_scatter = _replacing("DiagonalScatter")
_as_strided_scatter = _replacing("AsStridedScatter")


def _replaced(name: str, replace: Any, input: Tensor, src: Tensor, view: Callable[[Tensor], Tensor]) -> Tensor:
    """Return a copy of `input` in which the elements of `view(input)` are replaced by `src`."""
    if places.overlaps(places.place(input._array, input._array)):
        input = views.clone(input)
    array = input._array
    array = array.view(np.ndarray) if isinstance(array, WithoutElements) else array  # (no element is read)
    with recording(False):
        seen = view(wrap(array))._array
    if src._array.shape != seen.shape:
        raise RuntimeError(
            "expected src to have a size equal to the slice of self. "
            f"src size = {list(src._array.shape)}, slice size = {list(seen.shape)}"
        )
    where = places.place(array, array), places.place(seen, array)
    return replace(input, convert.converted(src, input.dtype), *where)


@public(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """Return a copy of `input` with the slice at `index` of dimension `dim` replaced by `src`, of its shape.

    Example:
        >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])
    """
    return _replaced("select_scatter", _select_scatter, input, src, lambda x: views.select(x, dim, index))


@public(method=True, out="exact")
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return a copy of `input` with the slice `start:end:step` of dimension `dim` replaced by `src`, of its shape.

    Example:
        >>> torch.slice_scatter(torch.zeros(4), torch.ones(2), start=1, end=3)
        tensor([0., 1., 1., 0.])
    """
    return _replaced("slice_scatter", _slice_scatter, input, src, lambda x: _sliced(x, dim, start, end, step))


@public(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a copy of `input` with `src` on the diagonal, of its shape; see `diagonal`.

    Example:
        >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    return _replaced("diagonal_scatter", _diagonal_scatter, input, src, lambda x: views.diagonal(x, offset, dim1, dim2))


@public(method=True)
def as_strided_scatter(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a copy of `input` with the elements of the view `as_strided(input, ...)` replaced by `src`, of its shape.

    RuntimeError: `input` requires grad and is not contiguous.

    Example:
        >>> torch.as_strided_scatter(torch.zeros(2, 2), torch.ones(2), (2,), (3,))
        tensor([[1., 0.],
                [0., 1.]])
    """
    place = size, stride, storage_offset
    if not input._array.flags.c_contiguous:
        if input.requires_grad:
            raise RuntimeError("as_strided_scatter is currently only supported for contiguous inputs")
        made = views.clone(input)  # keeps the order of dimensions in memory
        views.as_strided(made, *place).copy_(src)
        return made
    if input._view is not None:
        input = views.clone(input)
    return _replaced("as_strided_scatter", _as_strided_scatter, input, src, lambda x: views.as_strided(x, *place))


@public(method=True)
def slice_inverse(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """Return the memory of `input`, a slice of a tensor with the layout of `src`, viewed as the whole tensor.

    Example:
        >>> x = torch.arange(4)
        >>> torch.slice_inverse(x[:2], x, 0, 0, 2)
        tensor([0, 1, 2, 3])
    """
    return views.as_strided(input, src._array.shape, views.stride(src), views.storage_offset(src))


# Splits not tracked as views ----------------------------------------------------------------------


def _pieces(name: str) -> Any:
    return op_of(kernels.pieces, name=name, outputs=0, complex=OWN, x=lambda g, sizes, dim: join._joined(g, sizes, dim))


_unsafe_split = _pieces("UnsafeSplit")
_unsafe_split_with_sizes = _pieces("UnsafeSplitWithSizes")


def _unsafe(cut: Any, pieces: tuple[Tensor, ...], input: Tensor, dim: int) -> tuple[Tensor, ...]:
    """Split `input` into the sizes of `pieces` as tensors that autograd does not treat as views."""
    axis = axis_of(dim, input._array.ndim, "split")
    return cut(input, [each._array.shape[axis] for each in pieces], axis)


@public(method=True)
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the pieces of `split`, but not as views for autograd, so that they may be modified in place.

    This is safe only if `input` is not used afterwards.

    Example:
        >>> first, second = torch.unsafe_split(torch.arange(4), 2)
        >>> first.add_(10), second
        (tensor([10, 11]), tensor([2, 3]))
    """
    return _unsafe(_unsafe_split, join.split(input.detach(), split_size, dim), input, dim)


@public(method=True)
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the pieces of `split_with_sizes`, not as views for autograd; see `unsafe_split`.

    Example:
        >>> torch.unsafe_split_with_sizes(torch.arange(4), [1, 3])
        (tensor([0]), tensor([1, 2, 3]))
    """
    pieces = join.split_with_sizes(input.detach(), split_sizes, dim)
    return _unsafe(_unsafe_split_with_sizes, pieces, input, dim)


@public(method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the pieces of `chunk`, not as views for autograd; see `unsafe_split`.

    Example:
        >>> torch.unsafe_chunk(torch.arange(4), 2)
        (tensor([0, 1]), tensor([2, 3]))
    """
    return _unsafe(_unsafe_split, join.chunk(input.detach(), chunks, dim), input, dim)


# Padding and shuffles -----------------------------------------------------------------------------


@public()
def constant_pad_nd(input: Tensor, pad: Any, value: Any = 0) -> Tensor:
    """Return the tensor padded with the constant `value`; see `nn.functional.pad`.

    `pad` has pairs of widths (before, after) from the last dimension to the first; negative widths crop.

    Example:
        >>> torch.constant_pad_nd(torch.ones(2), (1, 2))
        tensor([0., 1., 1., 0., 0.])
    """
    widths = ints_of("constant_pad_nd", "pad", (tuple(pad),))
    ndim = input._array.ndim
    if len(widths) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(widths)}")
    if len(widths) > 2 * ndim:
        raise RuntimeError(
            "Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
            f"{len(widths)} while the input has {ndim} dimensions."
        )
    return constant_pad(input, widths, value)


_pixel_shuffle = op_of(
    rearrange.pixel_shuffle, batch="leading", complex=OWN, refuses=unless_empty("pixel_shuffle"),
    x=lambda g, factor: _pixel_unshuffle(g, factor),
)  # fmt: skip
_pixel_unshuffle = op_of(
    rearrange.pixel_unshuffle, batch="leading",
    complex=OWN, refuses=unless_empty("pixel_unshuffle"),
    x=lambda g, factor: _pixel_shuffle(g, factor),
)  # fmt: skip


@public(binds=False, also="nn.functional.pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Return (*, c * r * r, h, w) rearranged to (*, c, h * r, w * r): channels become pixels (Shi et al. 2016).

    Example:
        >>> torch.pixel_shuffle(torch.arange(4).view(4, 1, 1), 2)
        tensor([[[0, 1],
                 [2, 3]]])
    """
    _check_pixels("pixel_shuffle", input, "upscale_factor", upscale_factor)
    channels = input._array.shape[-3]
    if channels % upscale_factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {upscale_factor**2}"
        )
    return _pixel_shuffle(input, upscale_factor)


@public(binds=False, also="nn.functional.pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Return (*, c, h * r, w * r) rearranged to (*, c * r * r, h, w): the inverse of `pixel_shuffle`.

    Example:
        >>> torch.pixel_unshuffle(torch.arange(4).view(1, 2, 2), 2).flatten()
        tensor([0, 1, 2, 3])
    """
    _check_pixels("pixel_unshuffle", input, "downscale_factor", downscale_factor)
    for what, dim in (("height", -2), ("width", -1)):
        length = input._array.shape[dim]
        if length % downscale_factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({dim})={length} "
                f"is not divisible by {downscale_factor}"
            )
    return _pixel_unshuffle(input, downscale_factor) if input.numel() else input.clone()


def _check_pixels(name: str, input: Tensor, argument: str, factor: int) -> None:
    ndim = input._array.ndim
    if ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {ndim} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


_channel_shuffle = op_of(
    rearrange.channel_shuffle, batch="folded",
    complex=OWN, refuses=unless_empty("channel_shuffle"),
    x=lambda g, x_shape, groups: _channel_shuffle(g, max(x_shape[1] // groups, 1)),
)  # fmt: skip


@public(binds=False, also="native_channel_shuffle nn.functional.channel_shuffle nn.functional.native_channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Return (n, c, *) with the channels of `groups` groups interleaved (ShuffleNet, Zhang et al. 2018).

    Example:
        >>> torch.channel_shuffle(torch.arange(4).view(1, 4, 1), 2).flatten()
        tensor([0, 2, 1, 3])
    """
    shape = input._array.shape
    if len(shape) < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups."
        )
    return _channel_shuffle(input, groups)


# In-place view methods ----------------------------------------------------------------------------


def _again(caller: Any, number: int) -> Any:
    """Return a second view op with the node name of PyTorch's in-place form (`<stem>Backward<number>`)."""
    made = caller.op
    stem = made.node_class.__name__.partition("Backward")[0]
    return op_of(made.kernel, batch=made.batch, name=f"{stem}Backward{number}", view=True, x=made.formulas["x"])


def _view_in_place(name: str, view: Callable[..., Tensor]) -> Any:
    """Return the in-place form of a view op: it changes shape and strides of `self` without moving elements."""

    def call(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        target = mode.innermost(self)
        recorded = local.state.grad and needs_grad(target)
        check_write(target, recorded, overlap=True)
        target._current()
        before = target._view
        if "axis" in kwargs and "squeeze" in name:
            kwargs["dim"] = kwargs.pop("axis")
        made = mode.innermost(view(self, *args, **kwargs))
        target._array = made._array
        count_write(target)
        if before is not None:
            before.array = made._array
        if recorded:
            target._edge, target._requires_grad = made._edge, True
            if before is not None and target._cell is not None:
                before.seen = target._cell[0]
        return self

    doc = f"Make this tensor what `{name[:-1]}` of it is: it looks at its memory that way from now on."
    return named(call, name, doc)


_t_again, _transpose_again = _again(views._t, 1), _again(views._transpose, 1)
_unsqueeze_again = _again(views._unsqueeze, 1)
_squeeze_again, _squeeze_dim_again = _again(views._squeeze, 3), _again(views._squeeze_dim, 4)
_squeeze_dims_again = _again(views._squeeze_dims, 5)
_strided_again = _again(strided, 1)


def _t_of(x: Tensor) -> Tensor:
    if x._array.ndim > 2:
        raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {x._array.ndim}D")
    return _t_again(x)


def _transpose_of(x: Tensor, dim0: int, dim1: int) -> Tensor:
    return _transpose_again(x, dim0, dim1)


def _squeeze_of(x: Tensor, dim: Any = None) -> Tensor:
    return (
        _squeeze_again(x)
        if dim is None
        else _squeeze_dims_again(x, tuple(dim))
        if isinstance(dim, (tuple, list))
        else _squeeze_dim_again(x, dim)
    )


def _strided_of(x: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    array = x._array
    size = ints_of("as_strided_", "size", (size,))
    stride = ints_of("as_strided_", "stride", (stride,))
    offset = places.storage_offset(array) if storage_offset is None else storage_offset
    place = places.checked_place(array, size, stride, offset)
    return _strided_again(x, place, places.place(array, array))


as_strided_ = public("as_strided_")(_view_in_place("as_strided_", _strided_of))
#: The methods that change shape and strides of a tensor in place.
declare_members(
    {
        "as_strided_": as_strided_,
        "squeeze_": _view_in_place("squeeze_", _squeeze_of),
        "swapaxes_": _view_in_place("swapaxes_", lambda x, axis0, axis1: _transpose_again(x, axis0, axis1)),
        "swapdims_": _view_in_place("swapdims_", _transpose_of),
        "t_": _view_in_place("t_", _t_of),
        "transpose_": _view_in_place("transpose_", _transpose_of),
        "unsqueeze_": _view_in_place("unsqueeze_", lambda x, dim: _unsqueeze_again(x, dim)),
    }
)
