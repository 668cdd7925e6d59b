"""Shapes: views of a tensor's memory, copies in another arrangement, other dtypes.

Views are made everywhere, so they have a caller of their own, `view_op`. What PyTorch composes is composed here too,
so that the graph shows the same nodes.
"""

from __future__ import annotations

import builtins
import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tinytorch.core import dtypes, places
from tinytorch.core.device import as_device
from tinytorch.core.device import device as Device
from tinytorch.core.inplace import strided
from tinytorch.core.op import op, view_op
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.kernels import shape as kernels
from tinytorch.kernels.reduce import axes_of, axis_of, int_of
from tinytorch.ops import autocast
from tinytorch.ops.register import members, pointwise, public


def renamed(caller: Any, name: str) -> Any:
    """Give the node of an op the name of PyTorch's overload, such as "SqueezeBackward1"."""
    caller.op.node_class.__name__ = name
    return caller


def axis_is_dim(function: Callable[..., Any]) -> Any:
    """Let a function understand NumPy's `axis` for `dim`, as PyTorch's do."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        return function(*args, **kwargs)

    return call


def also_by(**names: str) -> Callable[[Callable[..., Any]], Any]:
    """Let a function be called with the names that other overloads of PyTorch's give a parameter."""

    def declare(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if kwargs:
                kwargs = {names.get(key, key): value for key, value in kwargs.items()}
            return function(*args, **kwargs)

        call.also = names  # type: ignore[attr-defined]
        return call

    return declare


_sections_or_indices = also_by(
    sections="indices_or_sections", indices="indices_or_sections", tensor_indices_or_sections="indices_or_sections"
)


def check_tensor(value: Any, name: str, argument: str = "input", position: int = 1) -> None:
    """Raise PyTorch's error unless `value` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def check_tensors(name: str, **values: Any) -> None:
    """Raise PyTorch's error unless the first arguments of a function, by their names, are tensors."""
    for position, (argument, value) in enumerate(values.items(), 1):
        check_tensor(value, name, argument, position)


def _ints(name: str, argument: str, values: tuple[Any, ...], named: dict[str, Any] | None = None) -> tuple[int, ...]:
    """Return ints given one by one, or as one sequence, which may also be `named`.

    Raises:
        TypeError: there are none, or they are no ints.
    """
    if named:
        if set(named) != {argument} or values:
            wrong = next((each for each in named if each != argument), argument)
            raise TypeError(f"{name}() got an unexpected keyword argument '{wrong}'")
        values = (named[argument],)
    given = values
    if len(values) == 1:
        first = values[0]
        if isinstance(first, (tuple, list)):
            values = tuple(first)
        elif first is None:
            raise _missing(name, argument)
    elif not values:
        raise _missing(name, argument)
    for value in values:
        if type(value) is not int:
            break
    else:
        return values
    if bool in map(type, values):  # an int to Python, but not to PyTorch
        at = list(map(type, values)).index(bool)
        what = "not bool" if values == given else f"but found element of type bool at pos {at}"
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, {what}")
    try:
        return tuple([operator.index(value) for value in values])
    except TypeError:
        kinds = ", ".join(type(value).__name__ for value in values)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected ints or a "
            f"sequence of ints as '{argument}'"
        ) from None


def _check_int(value: Any, name: str, argument: str) -> None:
    if type(value) is not int:
        int_of(value, name, argument)


def _missing(name: str, argument: str) -> TypeError:
    return TypeError(f'{name}() missing 1 required positional arguments: "{argument}"')


def _some_dim(input: Tensor, name: str) -> None:
    if not input._array.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")


# Views: another shape -----------------------------------------------------------------------------


_view = view_op("View", lambda g, x_shape: g.reshape(x_shape))(kernels.view)


@public("", method="view")
def view(input: Tensor, *shape: Any, size: Any = None, dtype: Any = None) -> Tensor:
    """Return a view of the same memory in another shape, or with its bytes read as another dtype.

    Args:
        input: the tensor; its strides must allow the shape without moving elements.
        *shape: the new shape, as ints or as one sequence, in which one -1 is worked out; or a dtype.
        size: the shape, by keyword.
        dtype: the dtype, by keyword.

    Raises:
        RuntimeError: the shape does not fit, or the strides do not allow it (use `reshape`, which copies then).

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
        made._cell = input._cell  # (else it is an inference tensor if it is made in inference mode)
    return made


@public("", method="view_as")
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` viewed in the shape of `other`.

    Example:
        >>> torch.arange(4).view_as(torch.zeros(2, 2))
        tensor([[0, 1],
                [2, 3]])
    """
    check_tensor(other, "view_as", "other")
    return _view(input, other._array.shape)


@view_op("ReshapeAlias", lambda g, x_shape: g.reshape(x_shape))
def _reshape_alias(x: Any, shape: tuple[int, ...]) -> Any:
    return kernels.view(x, shape)


_reshape_alias.op.name = "reshape"


@op(name="UnsafeView", x=lambda g, x_shape: g.reshape(x_shape))
def _unsafe_view(x: Any, shape: tuple[int, ...]) -> Any:
    return x.reshape(shape)


@public(method=True)
def reshape(input: Tensor, *shape: Any, **named: Any) -> Tensor:
    """Return the elements in another shape: a view where the strides allow it, a copy where not.

    Args:
        input: the tensor.
        *shape: the new shape, as ints or as one sequence, in which one -1 is worked out.

    Raises:
        RuntimeError: the shape does not fit the number of elements.

    Example:
        >>> torch.reshape(torch.arange(6), (3, -1))
        tensor([[0, 1],
                [2, 3],
                [4, 5]])
    """
    check_tensor(input, "reshape")
    if named:
        shape = _ints("reshape", "shape", shape, named)
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    elif not shape:
        raise _missing("reshape", "shape")
    array = input._array
    if array.flags.c_contiguous:
        return _view(input, shape)
    sizes = kernels.inferred(array.size, _ints("reshape", "shape", (shape,)))
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
    check_tensor(other, "reshape_as", "other")
    return reshape(input, other._array.shape)


@public(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Return the tensor with the dimensions from `start_dim` to `end_dim` made one.

    Raises:
        RuntimeError: `start_dim` comes after `end_dim`.

    Example:
        >>> torch.flatten(torch.zeros(2, 3, 4), 1).shape
        torch.Size([2, 12])
    """
    check_tensor(input, "flatten")
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


@public(method=True)
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with dimension `dim` split up into dimensions of `sizes`, one of which may be -1.

    Raises:
        RuntimeError: the sizes do not multiply up to the size of the dimension.

    Example:
        >>> torch.unflatten(torch.zeros(2, 12), 1, (3, -1)).shape
        torch.Size([2, 3, 4])
    """
    check_tensor(input, "unflatten")
    shape = input._array.shape
    axis = axis_of(dim, len(shape), "unflatten")
    sizes = _ints("unflatten", "sizes", (sizes,))
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


@view_op("Squeeze", lambda g, x_shape: g.reshape(x_shape))
def _squeeze(x: Any) -> Any:
    return x.squeeze()


def _squeezed(x: Any, dims: tuple[int, ...]) -> Any:
    return x.squeeze(tuple([dim for dim in dims if x.shape[dim] == 1]))


@view_op("Squeeze", lambda g, x_shape: g.reshape(x_shape))
def _squeeze_dim(x: Any, dim: int) -> Any:
    return _squeezed(x, (axis_of(dim, x.ndim, "squeeze"),)) if x.ndim or axis_of(dim, 0, "squeeze") else x[...]


@view_op("Squeeze", lambda g, x_shape: g.reshape(x_shape))
def _squeeze_dims(x: Any, dims: tuple[int, ...]) -> Any:
    axes = axes_of(dims, x.ndim, "squeeze") if dims else ()
    return _squeezed(x, axes or ())


renamed(_squeeze_dim, "SqueezeBackward1")
renamed(_squeeze_dims, "SqueezeBackward2")


@public(method=True)
def squeeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Return a view without the dimensions of length 1: all of them, or those of `dim` that have that length.

    Args:
        input: the tensor.
        dim: a dimension or a tuple of them; those of another length stay.
        axis: NumPy's name for `dim`.

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


@view_op("Unsqueeze", lambda g, x_shape, dim: squeeze(g, dim))
def _unsqueeze(x: Any, dim: int) -> Any:
    if dim == 0:
        return x[None]
    return x[(slice(None),) * axis_of(dim, x.ndim + 1, "unsqueeze") + (None,)]


@public(method=True)
def unsqueeze(input: Tensor, dim: Any = None, *, axis: Any = None) -> Tensor:
    """Return a view with a new dimension of length 1 at position `dim`, from `-ndim - 1` to `ndim`.

    Raises:
        IndexError: `dim` is out of that range.

    Example:
        >>> torch.unsqueeze(torch.zeros(2, 3), -1).shape
        torch.Size([2, 3, 1])
    """
    if dim is None:
        dim = axis
        if dim is None:
            raise _missing("unsqueeze", "dim")
    return _unsqueeze(input, dim)


# Views: another order of dimensions ---------------------------------------------------------------


def _swapped(x: Any, dim0: int, dim1: int) -> Any:
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
        return x[...]  # of no dimensions


_transpose = view_op("Transpose", lambda g, dim0, dim1: _transpose(g, dim0, dim1))(
    lambda x, dim0, dim1: _swapped(x, dim0, dim1)
)
_t = view_op("T", lambda g: _t(g))(lambda x: x.T if x.ndim == 2 else x[...])


@public(also="swapdims", method=True)
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
    """Return the transpose of a matrix as a view; vectors and numbers as they are.

    Raises:
        RuntimeError: there are more than two dimensions.

    Example:
        >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    check_tensor(input, "t")
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return _t(input)


def _permuted(x: Any, dims: tuple[int, ...]) -> Any:
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


def _permute_back(g: Tensor, dims: tuple[int, ...]) -> Tensor:
    order = [dim % len(dims) for dim in dims]
    return _permute(g, tuple([order.index(i) for i in range(len(order))]))


_permute = view_op("Permute", _permute_back)(lambda x, dims: _permuted(x, dims))


@public(method=True)
def permute(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return a view with the dimensions in the order `dims`, given as ints or as one sequence.

    Raises:
        RuntimeError: not every dimension is named once.

    Example:
        >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
        torch.Size([4, 2, 3])
    """
    return _permute(input, _ints("permute", "dims", dims, named))


@public(also="moveaxis", method=True)
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Return a view with the dimensions `source` (one or several) moved to the positions `destination`.

    Raises:
        RuntimeError: there are not as many sources as destinations, or one of them comes twice.
        IndexError: a dimension is out of range.

    Example:
        >>> torch.movedim(torch.zeros(2, 3, 4), 0, -1).shape
        torch.Size([3, 4, 2])
    """
    check_tensor(input, "movedim")
    if isinstance(source, (tuple, list)) != isinstance(destination, (tuple, list)):
        raise TypeError(
            f"movedim() received an invalid combination of arguments - got ({type(source).__name__}, "
            f"{type(destination).__name__}), but expected two ints or two tuples of ints"
        )
    ndim = input._array.ndim
    sources, destinations = (_ints("movedim", "source", (dims,)) for dims in (source, destination))
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
    """Return the last two dimensions exchanged: the (conjugate) transpose of a batch of matrices.

    Example:
        >>> torch.adjoint(torch.tensor([[1, 2], [3, 4]]))
        tensor([[1, 3],
                [2, 4]])
    """
    check_tensor(input, "adjoint")
    return _transposed_matrices(input, "mH")


def _transposed_matrices(input: Tensor, name: str) -> Tensor:
    ndim = input._array.ndim
    if ndim == 0:
        warnings.warn(f"Tensor.{name} is deprecated on 0-D tensors.", UserWarning, stacklevel=3)
        return input
    if ndim == 1:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
    return _transpose(input, -2, -1)


def _reversed_dims(input: Tensor) -> Tensor:
    """The dimensions in reverse order, as a view: the transpose of a matrix.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).T
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = input._array.ndim
    if ndim == 0:
        warnings.warn(
            "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
    elif ndim != 2:
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
    return _permute(input, tuple(range(ndim))[::-1])


def _matrix_adjoint(input: Tensor) -> Tensor:
    """The (conjugate) transpose of a matrix, as a view.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).H
        tensor([[1, 3],
                [2, 4]])
    """
    ndim = input._array.ndim
    if ndim == 0:
        warnings.warn("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().", UserWarning, stacklevel=2)
        return input
    if ndim != 2:
        more = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{more}")
    return _transpose(input, 0, 1)


def _mT(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, as a view: the transpose of each matrix of a batch.

    Example:
        >>> torch.zeros(5, 2, 3).mT.shape
        torch.Size([5, 3, 2])
    """
    return _transposed_matrices(input, "mT")


def _mH(input: Tensor) -> Tensor:
    """The (conjugate) transpose of each matrix of a batch, as a view.

    Example:
        >>> torch.zeros(5, 2, 3).mH.shape
        torch.Size([5, 3, 2])
    """
    return _transposed_matrices(input, "mH")


@public()
def real(input: Tensor) -> Tensor:
    """Return `input`: there are no complex numbers here.

    Example:
        >>> x = torch.tensor([1.0, 2.0])
        >>> torch.real(x) is x
        True
    """
    return input


def _imag(input: Tensor) -> Tensor:
    """RuntimeError: there are no complex numbers here."""
    raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")


# Views: a part ------------------------------------------------------------------------------------


@op(name="SliceBackward", x=lambda g, key: part(g, key))
def embed(x: Any, shape: tuple[int, ...], key: Any) -> Any:
    """Return zeros of `shape` with `x` at `key`, which a part was taken by: the gradient of `part`."""
    out = np.zeros(shape, x.dtype, like=x)
    out[key] = x
    return out


# What basic indexing gives: ints, slices, None and an Ellipsis, as NumPy's. PyTorch records one node for each of
# them; here one node takes all steps, and has the name of the last.
part = view_op("Slice", lambda g, x_shape, key: embed(g, x_shape, key))(lambda x, key: x[key])
selected = view_op("Select", lambda g, x_shape, key: embed(g, x_shape, key))(lambda x, key: x[key])
inserted = view_op("Unsqueeze", lambda g, x_shape, key: embed(g, x_shape, key))(lambda x, key: x[key])
aliased = view_op("Alias", lambda g, key: g)(lambda x, key: x[...])


@public(method=True)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return a view of the elements from `start` to `start + length` of a dimension.

    Args:
        input: the tensor.
        dim: the dimension.
        start: the first element, an int or a tensor without dimensions; negative counts from the end.
        length: how many elements.

    Raises:
        RuntimeError: that goes beyond the end.

    Example:
        >>> torch.narrow(torch.arange(6), 0, 2, 3)
        tensor([2, 3, 4])
    """
    check_tensor(input, "narrow")
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
    """Return a view of the elements at `index` of a dimension, without that dimension.

    Raises:
        IndexError: the dimension or the index is out of range.

    Example:
        >>> torch.select(torch.arange(6).view(2, 3), 1, -1)
        tensor([2, 5])
    """
    check_tensor(input, "select")
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


@view_op("Expand", lambda g, x_shape: g.sum_to_size(x_shape))
def _expand(x: Any, size: tuple[int, ...]) -> Any:
    return kernels.expand(x, size)


@public("", method="expand")
def expand(input: Tensor, *size: Any, implicit: bool = False, **named: Any) -> Tensor:
    """Return a view in which dimensions of length 1 are repeated without copying, and new ones stand in front.

    Args:
        input: the tensor.
        *size: the new lengths, as ints or as one sequence; -1 keeps one as it is.
        implicit: has no effect.

    Raises:
        RuntimeError: a dimension longer than 1 would have to change.

    Example:
        >>> torch.tensor([[1], [2]]).expand(-1, 3)
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    return _expand(input, _ints("expand", "size", size, named))


@public("", method="expand_as")
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Return `input` expanded to the shape of `other`.

    Example:
        >>> torch.tensor([1, 2]).expand_as(torch.zeros(2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    check_tensor(other, "expand_as", "other")
    return _expand(input, other._array.shape)


@public(method=True)
def broadcast_to(input: Tensor, *size: Any, **named: Any) -> Tensor:
    """Return a view of `input` broadcast to the shape `size`; see `Tensor.expand`.

    Example:
        >>> torch.broadcast_to(torch.tensor([1, 2]), (2, 2))
        tensor([[1, 2],
                [1, 2]])
    """
    return _expand(input, _ints("broadcast_to", "size", size, named))


@view_op("Diagonal", lambda g, x_shape, offset, dim1, dim2: _embed_diagonal(g, x_shape, offset, dim1, dim2))
def _diagonal(x: Any, offset: int, dim1: int, dim2: int) -> Any:
    return kernels.diagonal(x, offset, dim1, dim2)


@op(name="DiagEmbed", x=lambda g, offset, dim1, dim2: _diagonal(g, offset, dim1, dim2))
def _embed_diagonal(x: Any, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    return kernels.embed_diagonal(x, shape, offset, dim1, dim2)


@op(name="Diagonal", x=lambda g, x_shape, offset: _embed_diagonal(g, x_shape, offset, 0, 1))
def _diagonal_copy(x: Any, offset: int) -> Any:
    return kernels.diagonal(x, offset, 0, 1).copy()


renamed(_diagonal_copy, "DiagonalBackward0_copy")


@public(method=True)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a view of the diagonals of the planes of `dim1` and `dim2`, as the last dimension.

    Args:
        input: the tensor.
        offset: which diagonal: 0 the main one, above it positive, below it negative.
        dim1: the first dimension of the planes.
        dim2: the second.

    Example:
        >>> torch.diagonal(torch.arange(9).view(3, 3), 1)
        tensor([1, 5])
    """
    return _diagonal(input, offset, dim1, dim2)


@public(method=True)
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return zeros with the last dimension of `input` on the diagonals of two new dimensions.

    Args:
        input: `(*, n)`.
        offset: 0 for the main diagonal, above it positive, below it negative; the sides are `n + |offset|`.
        dim1, dim2: where the two new dimensions are in the result.

    Raises:
        RuntimeError: both dimensions are the same.
        IndexError: a dimension is out of range.

    Example:
        >>> torch.diag_embed(torch.tensor([[1, 2], [3, 4]]))
        tensor([[[1, 0],
                 [0, 2]],
        <BLANKLINE>
                [[3, 0],
                 [0, 4]]])
    """
    check_tensor(input, "diag_embed")
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
    """Return a copy of a matrix's diagonal, or the matrix that has a vector on its diagonal.

    Raises:
        RuntimeError: `input` is neither a vector nor a matrix.

    Example:
        >>> torch.diag(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    check_tensor(input, "diag")
    ndim = input._array.ndim
    if ndim == 1:
        return diag_embed(input, diagonal)
    if ndim == 2:
        return _diagonal_copy(input, diagonal)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")


@public(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return the matrix that has all elements of `input` on its diagonal, or `offset` places above it.

    Example:
        >>> torch.diagflat(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    return diag_embed(_view(contiguous(input), (numel(input),)), offset)


@view_op("Unfold", lambda g, x_shape, dimension, size, step: _fold(g, x_shape, dimension, size, step))
def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    return kernels.window(x, dimension, size, step)


@op(name="UnfoldBackward", x=lambda g, dimension, size, step: _unfold(g, dimension, size, step))
def _fold(x: Any, shape: tuple[int, ...], dimension: int, size: int, step: int) -> Any:
    return kernels.overlap_add(x, shape, dimension, size, step)


@public("", method="unfold")
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of windows of `size` elements, `step` apart, along a dimension; a window is the last dimension.

    Raises:
        RuntimeError: `size` is longer than the dimension, or `step` is not positive.

    Example:
        >>> torch.arange(5).unfold(0, 3, 2)
        tensor([[0, 1, 2],
                [2, 3, 4]])
    """
    check_tensor(input, "unfold")
    return _unfold(input, axis_of(dimension, input._array.ndim, "unfold"), size, step)


@public(method=True)
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a view of the memory of `input` by sizes, strides and an offset, all in elements.

    Args:
        input: the tensor; what counts is its memory, not its shape.
        size: the shape.
        stride: per dimension the distance of neighbours in memory.
        storage_offset: where in the memory the first element is; that of `input` by default.

    Raises:
        RuntimeError: the view would leave the memory, or a stride is negative.

    Example:
        >>> torch.as_strided(torch.arange(6), (2, 2), (1, 2))
        tensor([[0, 2],
                [1, 3]])
    """
    check_tensor(input, "as_strided")
    size, stride = _ints("as_strided", "size", (size,)), _ints("as_strided", "stride", (stride,))
    array = input._array
    offset = places.storage_offset(array) if storage_offset is None else storage_offset
    place = places.checked_place(array, size, stride, operator.index(offset))
    made: Tensor = strided(input, place, places.place(array, array))
    return made


# Views: several at once ---------------------------------------------------------------------------


def _joined(g: Any, sizes: Sequence[int], dim: int) -> Tensor:
    """Return the gradients of the pieces along `dim` side by side, zeros for those that have none."""
    some = next(each for each in g if each is not None)
    shape = list(some._array.shape)
    pieces = []
    for each, size in zip(g, sizes, strict=True):
        if each is None:
            shape[dim] = size
            each = wrap(np.zeros(shape, some._array.dtype, like=some._array))
        pieces.append(each)
    return cat(pieces, dim)


@op(name="Split", view=True, outputs=0, x=lambda g, sizes, dim: _joined(g, sizes, dim))
def _split(x: Any, sizes: Sequence[int], dim: int) -> Any:
    return kernels.pieces(x, sizes, dim)


@op(name="SplitWithSizes", view=True, outputs=0, x=lambda g, sizes, dim: _joined(g, sizes, dim))
def _split_with_sizes(x: Any, sizes: Sequence[int], dim: int) -> Any:
    return kernels.pieces(x, sizes, dim)


@public(method=True)
@also_by(split_size="split_size_or_sections")
def split(tensor: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor cut along a dimension into views of one size (the last may be smaller), or of given sizes.

    Args:
        tensor: the tensor.
        split_size_or_sections: the size of each piece, or a list of sizes that sum to the dimension's.
        dim: the dimension.

    Raises:
        RuntimeError: the sizes do not fit.

    Example:
        >>> torch.split(torch.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> torch.split(torch.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    check_tensor(tensor, "split")
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    _some_dim(tensor, "split")
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
@axis_is_dim
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor cut along a dimension into views of the given sizes, which sum to the dimension's.

    Raises:
        RuntimeError: a size is negative, or the sizes do not sum up to the dimension's.

    Example:
        >>> torch.split_with_sizes(torch.arange(4), [1, 3])
        (tensor([0]), tensor([1, 2, 3]))
    """
    check_tensor(input, "split_with_sizes")
    _some_dim(input, "split")
    axis = axis_of(dim, input._array.ndim, "split_with_sizes")
    sizes = _ints("split_with_sizes", "split_sizes", (split_sizes,))
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
@axis_is_dim
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor cut along a dimension into at most `chunks` views of one size, the last may be smaller.

    Raises:
        RuntimeError: `chunks` is not positive.

    Example:
        >>> torch.chunk(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    check_tensor(input, "chunk")
    _some_dim(input, "chunk")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = axis_of(dim, input._array.ndim, "chunk")
    length = input._array.shape[axis]
    if not length:
        return _split_with_sizes(input, (0,) * chunks, axis)
    return _split(input, kernels.split_sizes(length, -(-length // chunks)), axis)


@public(method=True)
@axis_is_dim
@_sections_or_indices
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the tensor cut along a dimension into a number of views of (almost) one size, or at given indices.

    Args:
        input: the tensor.
        indices_or_sections: the number of pieces, the first of them longer by one where need be; or where to cut, as
            several ints or a tensor of them.
        dim: the dimension.

    Raises:
        RuntimeError: there is no dimension, or the number of pieces is not positive.

    Example:
        >>> torch.tensor_split(torch.arange(5), 2)
        (tensor([0, 1, 2]), tensor([3, 4]))
        >>> torch.tensor_split(torch.arange(5), (1, 3))
        (tensor([0]), tensor([1, 2]), tensor([3, 4]))
    """
    check_tensor(input, "tensor_split")
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
    check_tensor(input, name)
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
@_sections_or_indices
def hsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return the tensor split along its second dimension (the first of a vector); see `tensor_split`.

    Example:
        >>> torch.hsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1],
                [3]]), tensor([[2],
                [4]]))
    """
    check_tensor(input, "hsplit")
    return _split_along(input, indices_or_sections, "hsplit", 1 if input._array.ndim > 1 else 0, 1)


@public(method=True)
@_sections_or_indices
def vsplit(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Return the tensor split along its first dimension; see `tensor_split`.

    Example:
        >>> torch.vsplit(torch.tensor([[1, 2], [3, 4]]), 2)
        (tensor([[1, 2]]), tensor([[3, 4]]))
    """
    return _split_along(input, indices_or_sections, "vsplit", 0, 2)


@public(method=True)
@_sections_or_indices
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
        zeros = wrap(np.zeros_like(some._array))
    return stack([zeros if each is None else each for each in g], dim)


@op(view=True, outputs=0, x=_unbind_x, name="Unbind")
def _unbind(x: Any, dim: int) -> Any:
    before = (slice(None),) * dim
    return tuple([x[(*before, k, ...)] for k in range(x.shape[dim])])


@public(method=True)
@axis_is_dim
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return views of the elements of a dimension, without that dimension.

    Raises:
        IndexError: there is no such dimension.

    Example:
        >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
        (tensor([1, 2]), tensor([3, 4]))
    """
    check_tensor(input, "unbind")
    if not input._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = axis_of(dim, input._array.ndim, "unbind")
    if not input._array.shape[axis]:
        return ()
    return _unbind(input, axis)


# Copies: the same elements in memory of their own -------------------------------------------------


def _order(x: Any) -> str:
    """Return NumPy's letter for a copy with the axes in the same order in memory; contiguous if one was expanded."""
    if 0 in x.strides and any(step == 0 and length > 1 for step, length in zip(x.strides, x.shape, strict=True)):
        return "C"
    return "K"


_RANKS = {"torch.channels_last": 4, "torch.channels_last_3d": 5}


def _laid_out(x: Any, kind: Any, memory_format: str) -> Any:
    """Return a copy in a dtype, its dimensions in the order of a memory format."""
    rank = _RANKS.get(memory_format)
    if rank is None:
        return x.astype(kind, "C" if memory_format == "torch.contiguous_format" else _order(x))
    if x.ndim != rank:
        name = memory_format.removeprefix("torch.")
        raise RuntimeError(f"required rank {rank} tensor to use {name} format")
    return np.moveaxis(np.moveaxis(x, 1, -1).astype(kind, "C"), -1, 1)


def suggested_format(x: Any) -> str:
    """Return the memory format that the strides suggest: PyTorch looks at no more when it decides about a copy."""
    name = next((name for name, rank in _RANKS.items() if rank == x.ndim), None)
    if name is None or not x.size or not x.strides[1]:
        return "torch.contiguous_format"
    least = 0
    for d in (1, *range(x.ndim - 1, 1, -1), 0):
        if x.strides[d] < least or (d == 0 and least == x.strides[1]):
            return "torch.contiguous_format"
        least = x.strides[d] * x.shape[d]
    return name


def _channels_last(memory_format: str) -> Any:
    # (Not pointwise: the kernel needs to see the whole shape.)
    return op(name="Clone", x=lambda g: g)(lambda x: _laid_out(x, x.dtype, memory_format))


_clone = pointwise("clone", lambda x: x.copy(_order(x)), x=lambda g: g)
_contiguous = pointwise("contiguous", lambda x: x.copy("C"), x=lambda g: g, node_name="Clone")
_FORMATS = {
    "None": _clone,
    "torch.preserve_format": _clone,
    "torch.contiguous_format": _contiguous,
    "torch.channels_last": _channels_last("torch.channels_last"),
    "torch.channels_last_3d": _channels_last("torch.channels_last_3d"),
}


def _copier(memory_format: Any) -> Any:
    """Return the op that copies into a memory format."""
    try:
        return _FORMATS[str(memory_format)]
    except KeyError:
        raise TypeError(
            f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}"
        ) from None


@public(method=True)
def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """Return a copy, its dimensions in the same order in memory unless `memory_format` says otherwise.

    The copy is recorded: gradients flow to `input`. See `Tensor.detach` for the contrary.

    Example:
        >>> x = torch.zeros(2)
        >>> torch.clone(x).add_(1), x
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    return (_clone if memory_format is None else _copier(memory_format))(input)


@public("", method="contiguous")
def contiguous(input: Tensor, memory_format: Any = None) -> Tensor:
    """Return `input` itself if its elements lie in memory in order, else a copy for which that holds.

    Example:
        >>> x = torch.tensor([[1, 2], [3, 4]])
        >>> x.contiguous() is x, x.t().contiguous().stride()
        (True, (2, 1))
    """
    check_tensor(input, "contiguous")
    if memory_format is None or str(memory_format) == "torch.contiguous_format":
        return input if input._array.flags.c_contiguous else _contiguous(input)
    return input if is_contiguous(input, memory_format) else _copier(memory_format)(input)


@public("", method="is_contiguous")
def is_contiguous(input: Tensor, memory_format: Any = None) -> bool:
    """Return whether the elements lie in memory in order (of `memory_format`), without gaps.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.is_contiguous(), x.t().is_contiguous()
        (True, False)
    """
    array = input._array
    name = str(memory_format)
    if name in ("torch.channels_last", "torch.channels_last_3d"):
        if array.ndim != (4 if name == "torch.channels_last" else 5):
            return False
        array = np.moveaxis(array, 1, -1)
    return bool(array.flags.c_contiguous)


# Copies: joined -----------------------------------------------------------------------------------


def _cat_xs(g: Tensor, xs_shapes: list[tuple[int, ...]], dim: int) -> Any:
    ndim = g._array.ndim
    axis = dim % ndim
    sizes = [0 if shape == (0,) else shape[axis] for shape in xs_shapes]
    pieces = list(_split_with_sizes(g, sizes, axis))
    if ndim > 1:
        for k, shape in enumerate(xs_shapes):
            if shape == (0,):
                pieces[k] = wrap(np.zeros((0,), g._array.dtype, like=g._array))
    return pieces


@op(name="Cat", many="xs", xs=_cat_xs)
def _cat(xs: Any, dim: int) -> Any:
    return kernels.concatenated(xs, dim)


@op(name="Stack", many="xs", xs=lambda g, dim: unbind(g, dim))
def _stack(xs: Any, dim: int) -> Any:
    return kernels.stacked(xs, dim)


def _tensors(name: str, tensors: Any) -> list[Tensor]:
    """Return a sequence of tensors as a list; TypeError where it is none."""
    if isinstance(tensors, Tensor) or not isinstance(tensors, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}"
        )
    for k, each in enumerate(tensors):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(each).__name__}")
    return list(tensors)


@public(also="concat concatenate", out="cat")
def cat(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Return the tensors joined along an existing dimension, in their common dtype.

    Args:
        tensors: a sequence of tensors whose shapes differ in `dim` alone; empty ones of one dimension are skipped.
        dim: the dimension.
        axis: the same by NumPy's name.

    Raises:
        ValueError: there is no tensor.
        RuntimeError: the shapes do not match.

    Example:
        >>> torch.cat([torch.tensor([1, 2]), torch.tensor([3])])
        tensor([1, 2, 3])
    """
    if axis is not None:
        dim = axis
    tensors = tensors if type(tensors) is list else _tensors("cat", tensors)
    return _cat(autocast.promoted(tensors) if autocast.on else tensors, dim)


@public(out="cat")
def stack(tensors: Any, dim: int = 0, *, axis: int | None = None) -> Tensor:
    """Return tensors of one shape side by side along a new dimension.

    Args:
        tensors: a sequence of tensors, each of shape (*).
        dim: where the new dimension stands.
        axis: the same by NumPy's name.

    Raises:
        RuntimeError: there is no tensor, or the shapes differ.

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
    """Return `_tensors`, of which there must be one."""
    found = _tensors(name, tensors)
    if not found:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return found


@public(out="cat")
def hstack(tensors: Any) -> Tensor:
    """Return the tensors joined along their second dimension, vectors along their only one.

    Example:
        >>> torch.hstack((torch.tensor([1, 2]), torch.tensor([3])))
        tensor([1, 2, 3])
    """
    tensors = [atleast_1d(each) for each in _some("hstack", tensors)]
    return cat(tensors, 0 if tensors and tensors[0]._array.ndim == 1 else 1)


@public(also="row_stack", out="cat")
def vstack(tensors: Any) -> Tensor:
    """Return the tensors joined along their first dimension, vectors as rows.

    Example:
        >>> torch.vstack((torch.tensor([1, 2]), torch.tensor([3, 4])))
        tensor([[1, 2],
                [3, 4]])
    """
    return cat([atleast_2d(each) for each in _some("vstack", tensors)], 0)


@public(out="cat")
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


@op(name="BlockDiag", many="xs", xs=_block_diag_xs)
def _block_diag(xs: Any) -> Any:
    blocks = [x.reshape((1, 1, *x.shape)[-2:] if x.ndim < 2 else x.shape) for x in kernels.promoted(xs)]
    rows, columns = (sum(block.shape[i] for block in blocks) for i in (0, 1))
    out = np.zeros((rows, columns), blocks[0].dtype, like=blocks[0])
    row = column = 0
    for block in blocks:
        out[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return out


@public()
def block_diag(*tensors: Tensor) -> Tensor:
    """Return the matrix that has the given matrices (vectors as rows) along its diagonal, and zeros elsewhere.

    Raises:
        RuntimeError: one has more than two dimensions.

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
        made: Tensor = wrap(np.zeros((1, 0), dtypes.get_default_dtype().numpy))
        return made
    return _block_diag(tensors)


# Copies: repeated ---------------------------------------------------------------------------------


def _repeat_x(g: Tensor, x_shape: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    lengths = (1,) * (len(repeats) - len(x_shape)) + x_shape
    pairs = [each for pair in zip(repeats, lengths, strict=True) for each in pair]
    if not pairs:
        return g
    return g.reshape(pairs).sum(tuple(range(0, len(pairs), 2))).reshape(x_shape)


@op(name="Repeat", x=_repeat_x)
def _repeat(x: Any, repeats: tuple[int, ...]) -> Any:
    if len(repeats) < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    if min(repeats, default=0) < 0:
        lengths = (1,) * (len(repeats) - x.ndim) + x.shape
        sizes = [n * length for n, length in zip(repeats, lengths, strict=True)]
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {sizes}")
    return np.tile(x, repeats)


@public("", method="repeat")
def repeat(input: Tensor, *repeats: Any, **named: Any) -> Tensor:
    """Return a copy of the tensor repeated along each dimension; unlike `expand` it holds the elements many times.

    Args:
        input: the tensor.
        *repeats: how often, for each dimension; further ones in front make new dimensions.

    Example:
        >>> torch.tensor([1, 2]).repeat(2, 2)
        tensor([[1, 2, 1, 2],
                [1, 2, 1, 2]])
    """
    return _repeat(input, _ints("repeat", "repeats", repeats, named))


@public(method=True)
def tile(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return the tensor repeated; unlike `Tensor.repeat`, missing numbers in front are 1.

    Example:
        >>> torch.tile(torch.tensor([[1], [2]]), (3,))
        tensor([[1, 1, 1],
                [2, 2, 2]])
    """
    check_tensor(input, "tile")
    repeats = _ints("tile", "dims", dims, named)
    return _repeat(input, (1,) * (input._array.ndim - len(repeats)) + repeats)


@public(method=True)
@axis_is_dim
def repeat_interleave(
    input: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: Any = None
) -> Tensor:
    """Return a copy in which each element along `dim` (of the flattened tensor by default) is repeated in place.

    Args:
        input: the tensor; alone it is the repeats, and the result the index of each repeated element.
        repeats: how often: a number, or a tensor with one for each element along the dimension.
        dim: the dimension.
        output_size: the size of the result along `dim`, checked if given.

    Raises:
        RuntimeError: the repeats are negative, or not as many as there are elements.

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
        >>> torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([0, 3]))
        tensor([2, 2, 2])
    """
    if input is None:
        input, repeats = repeats, None
    check_tensor(input, "repeat_interleave")
    if repeats is None:
        counts: Any = input._array
        return wrap(_interleaved(counts, output_size))
    if dim is None:
        input, dim = flatten(input), 0
    axis = axis_of(dim, input._array.ndim, "repeat_interleave")
    if not input._array.ndim:  # PyTorch's error, for 0 too
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    length = input._array.shape[axis] if input._array.ndim else 1
    if isinstance(repeats, Tensor):
        counts = repeats._array
        if counts.ndim > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        if counts.size == 1 and length != 1:
            counts = np.broadcast_to(counts.reshape(-1), (length,))
        if counts.size != length:
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{counts.size} and input.size({axis}) = {length}"
            )
        return input.index_select(axis, wrap(_interleaved(counts.reshape(-1), output_size)))
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    if not input._array.ndim:
        input = reshape(input, (1,))
    shape = input._array.shape
    if output_size is not None and output_size != length * repeats:
        raise RuntimeError("allocated size does not match required size")
    spread = _expand(unsqueeze(input, axis + 1), (*shape[: axis + 1], repeats, *shape[axis + 1 :]))
    return _view(_contiguous(spread), (*shape[:axis], length * repeats, *shape[axis + 1 :]))


def _interleaved(counts: Any, output_size: Any) -> Any:
    """Return each index as often as `counts` says."""
    if counts.dtype.kind not in "iu":
        kind = dtypes.from_numpy_dtype(counts.dtype).tensor_name
        raise NotImplementedError(f"\"repeat_interleave_cpu\" not implemented for '{kind}'")
    if counts.ndim != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    indices = np.repeat(np.arange(counts.size, like=counts), counts)
    if output_size is not None and indices.size != output_size:
        raise RuntimeError("allocated size does not match required size")
    return indices.astype(counts.dtype, copy=False)


@public()
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid: for each vector, its elements expanded along all other dimensions.

    Args:
        *tensors: vectors (or numbers) of one dtype, also as one sequence.
        indexing: "ij" for matrix order (the first vector runs along the first dimension), "xy" to exchange the first
            two dimensions; "ij" with a warning where it is left out.

    Raises:
        RuntimeError: there are no tensors, of different dtypes or of more than one dimension.

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
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning, stacklevel=2,
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


@public()
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of elements of the vectors, one of each, as rows.

    Example:
        >>> torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([5, 6]))
        tensor([[1, 5],
                [1, 6],
                [2, 5],
                [2, 6]])
    """
    vectors = _tensors("cartesian_prod", tensors)
    if len(vectors) == 1:
        return vectors[0]
    return stack([flatten(grid) for grid in meshgrid(*vectors, indexing="ij")], 1)


@public()
def broadcast_shapes(*shapes: Any) -> Size:
    """Return the shape that tensors of these shapes broadcast to.

    Raises:
        RuntimeError: they do not broadcast.

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


@public()
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """Return the tensors expanded to the shape that they broadcast to.

    Raises:
        RuntimeError: the shapes do not broadcast.

    Example:
        >>> [each.shape for each in torch.broadcast_tensors(torch.zeros(3, 1), torch.zeros(2))]
        [torch.Size([3, 2]), torch.Size([3, 2])]
    """
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    given = _tensors("broadcast_tensors", tensors)
    shape: tuple[int, ...] = ()
    for each in given:
        have = each._array.shape
        try:
            shape = np.broadcast_shapes(shape, have)
        except ValueError:
            back = next(
                k for k, (a, b) in enumerate(zip(shape[::-1], have[::-1], strict=False)) if a != b and 1 not in (a, b)
            )
            raise RuntimeError(
                f"The size of tensor a ({shape[-back - 1]}) must match the size of tensor b ({have[-back - 1]}) at "
                f"non-singleton dimension {max(len(shape), len(have)) - back - 1}"
            ) from None
    return tuple([each if each._array.shape == shape else _expand(each, shape) for each in given])


def _atleast(name: str, tensors: tuple[Any, ...], one: Callable[[Tensor], Tensor]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return one(tensors[0])
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    return tuple([one(each) for each in _tensors(name, tensors)])


@public()
def atleast_1d(*tensors: Any) -> Any:
    """Return numbers as tensors of one dimension, others as they are; a tuple for several.

    Example:
        >>> torch.atleast_1d(torch.tensor(3))
        tensor([3])
    """
    return _atleast("atleast_1d", tensors, lambda x: x if x._array.ndim else reshape(x, (1,)))


@public()
def atleast_2d(*tensors: Any) -> Any:
    """Return numbers and vectors as matrices of one row, others as they are; a tuple for several.

    Example:
        >>> torch.atleast_2d(torch.tensor(3), torch.tensor([1, 2]))
        (tensor([[3]]), tensor([[1, 2]]))
    """

    def one(x: Tensor) -> Tensor:
        ndim = x._array.ndim
        return reshape(x, (1, 1)) if ndim == 0 else unsqueeze(x, 0) if ndim == 1 else x

    return _atleast("atleast_2d", tensors, one)


@public()
def atleast_3d(*tensors: Any) -> Any:
    """Return tensors with at least three dimensions: a vector as (1, n, 1), a matrix as (m, n, 1).

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


# Copies: rearranged -------------------------------------------------------------------------------


@op(name="Flip", x=lambda g, dims: _flip(g, dims))
def _flip(x: Any, dims: tuple[int, ...]) -> Any:
    return kernels.flip(x, (axes_of(dims, x.ndim, "flip") or ()) if dims else ())


@public(method=True)
def flip(input: Tensor, *dims: Any, **named: Any) -> Tensor:
    """Return a copy with the elements in reverse order along the dimensions.

    Example:
        >>> torch.flip(torch.arange(3), (0,))
        tensor([2, 1, 0])
    """
    return _flip(input, _ints("flip", "dims", dims, named))


@public(method=True)
def fliplr(input: Tensor) -> Tensor:
    """Return a copy with the elements of the second dimension in reverse order.

    Raises:
        RuntimeError: there are less than two dimensions.

    Example:
        >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 1],
                [4, 3]])
    """
    check_tensor(input, "fliplr")
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _flip(input, (1,))


@public(method=True)
def flipud(input: Tensor) -> Tensor:
    """Return a copy with the elements of the first dimension in reverse order.

    Raises:
        RuntimeError: there is no dimension.

    Example:
        >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
        tensor([[3, 4],
                [1, 2]])
    """
    check_tensor(input, "flipud")
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _flip(input, (0,))


@op(name="Roll", x=lambda g, shifts, dims: _roll(g, tuple([-shift for shift in shifts]), dims))
def _roll(x: Any, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    if not dims:
        return _in_rows(np.roll(x, shifts))
    out = np.roll(x, shifts, [axis_of(dim, x.ndim, "roll") for dim in dims])
    return _in_rows(out) if suggested_format(x) == "torch.contiguous_format" else out


def _in_rows(x: Any) -> Any:
    return x if x.flags.c_contiguous else x.copy("C")


@public(method=True)
def roll(input: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Return a copy with the elements moved along dimensions, those pushed out at the end coming in at the start.

    Args:
        input: the tensor.
        shifts: by how many places: an int, or one for each of `dims`.
        dims: the dimensions; without them the flattened tensor is rolled.

    Raises:
        RuntimeError: there are not as many shifts as dimensions.

    Example:
        >>> torch.roll(torch.arange(4), 1)
        tensor([3, 0, 1, 2])
    """
    check_tensor(input, "roll")
    moves = _ints("roll", "shifts", (shifts,))
    axes = () if dims is None else _ints("roll", "dims", (dims,))
    if not moves:
        raise RuntimeError("`shifts` required")
    if len(moves) != len(axes) and (axes or len(moves) != 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(axes)}")
    if axes and not input._array.ndim:
        raise IndexError(f"Dimension specified as {axes[0]} but tensor has no dimensions")
    if not input._array.size:  # (PyTorch does not look whether there are such dimensions)
        moves, axes = moves[:1], ()
    return _roll(input, moves, axes)


@op(name="Rot90", x=lambda g, k, dims: _rot90(g, -k, dims))
def _rot90(x: Any, k: int, dims: tuple[int, int]) -> Any:
    return kernels.rotated(x, k, *dims)


@public(method=True)
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Return a copy turned k times by 90 degrees in the plane of two dimensions, from the first to the second.

    Args:
        input: the tensor.
        k: how many times; a negative number turns the other way.
        dims: the plane, as two dimensions.

    Raises:
        RuntimeError: there are less than two dimensions, or the two are the same.

    Example:
        >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
        tensor([[2, 4],
                [1, 3]])
    """
    check_tensor(input, "rot90")
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
@op(x=lambda g, diagonal: tril(g, diagonal))
def tril(x: Any, diagonal: int = 0) -> Any:
    """Return the lower triangles of matrices (*, m, n): zeros above the given diagonal.

    Args:
        x: the matrices.
        diagonal: 0 for the main one, above it positive, below it negative.

    Raises:
        RuntimeError: there are less than two dimensions.

    Example:
        >>> torch.tril(torch.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
    """
    _check_int(diagonal, "tril", "diagonal")
    if x.ndim < 2:
        raise RuntimeError("tril: input tensor must have at least 2 dimensions")
    return _in_rows(np.tril(x, diagonal))


@public(method=True, in_place=True, out="exact")
@op(x=lambda g, diagonal: triu(g, diagonal))
def triu(x: Any, diagonal: int = 0) -> Any:
    """Return the upper triangles of matrices (*, m, n): zeros below the given diagonal.

    Args:
        x: the matrices.
        diagonal: 0 for the main one, above it positive, below it negative.

    Raises:
        RuntimeError: there are less than two dimensions.

    Example:
        >>> torch.triu(torch.ones(2, 2), 1)
        tensor([[0., 1.],
                [0., 0.]])
    """
    _check_int(diagonal, "triu", "diagonal")
    if x.ndim < 2:
        raise RuntimeError("triu: input tensor must have at least 2 dimensions")
    return _in_rows(np.triu(x, diagonal))


# Other dtypes -------------------------------------------------------------------------------------


@functools.cache
def _converter(dtype: dtypes.dtype, memory_format: str = "torch.preserve_format") -> Any:
    """Return the op that copies into a dtype (the engine casts gradients back) and a memory format."""
    kind = dtype.numpy

    def kernel(x: Any) -> Any:
        return _laid_out(x, kind, memory_format)

    if memory_format == "torch.preserve_format":
        return pointwise("to", kernel, x=lambda g: g, node_name="ToCopy")
    return op(name="ToCopy", x=lambda g: g)(kernel)


def converted(input: Tensor, dtype: dtypes.dtype) -> Tensor:
    """Return `input` in another dtype, itself where it has that already."""
    return input if input.dtype is dtype else _converter(dtype)(input)


def _conversion(dtype: dtypes.dtype) -> Any:
    def convert(self: Tensor, memory_format: Any = None) -> Tensor:
        if memory_format is not None:
            return _in_format(self, dtype, memory_format)
        return self if self.dtype is dtype else _converter(dtype)(self)

    convert.__doc__ = f"""Return the tensor as {dtype.name}, itself where it has that dtype already.

    Example:
        >>> torch.tensor([0, 1]).{dtype.tensor_name.lower()}().dtype
        {dtype}
    """
    if dtype is dtypes.bfloat16:  # an example would need a package that is not always there
        convert.__doc__ = "Return the tensor as bfloat16 (needs the extra `bf16`), itself where it is that already."
    return convert


def _in_format(input: Tensor, dtype: dtypes.dtype, memory_format: Any, copy: bool = False) -> Tensor:
    """Return `input` in a dtype and a memory format; itself if it is so already, unless `copy`."""
    _copier(memory_format)  # which refuses what is none
    name = str(memory_format)
    same = name == "torch.preserve_format" or name == suggested_format(input._array)
    if same and not copy and input.dtype is dtype:
        return input
    made: Tensor = _converter(dtype, name)(input)
    return made


@public("", method="to")
def to(
    input: Tensor,
    *args: Any,
    dtype: Any = None,
    device: Any = None,
    other: Tensor | None = None,
    non_blocking: bool = False,
    copy: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return the tensor in another dtype or on another device; itself if it is there already, unless `copy`.

    Called as `to(dtype)`, `to(device, dtype=None)` or `to(other)`, each with `non_blocking` and `copy` after it.
    The conversion is recorded: gradients come back in the dtype of `input`.

    Args:
        input: the tensor.
        *args: see above.
        dtype: the dtype, by keyword.
        device: the device, by keyword.
        other: a tensor to be like in dtype.
        non_blocking: has no effect.
        copy: copy in any case.
        memory_format: the order of the result in memory.

    Raises:
        RuntimeError: there is no such device.

    Example:
        >>> torch.tensor([1.7]).to(torch.int64)
        tensor([1])
    """
    if args:
        first, rest = args[0], args[1:]
        if isinstance(first, dtypes.dtype) or first in (builtins.float, builtins.int, builtins.bool):
            if not rest and not copy and memory_format is None:
                return converted(input, dtypes.as_dtype(first))
            dtype = first
        elif isinstance(first, Tensor):
            other = first
        elif first is None or isinstance(first, (str, Device, int)):
            device = first
            if rest and not isinstance(rest[0], builtins.bool):
                dtype, rest = rest[0], rest[1:]
        else:
            raise TypeError(
                f"to() received an invalid combination of arguments - got ({type(first).__name__}), but expected a "
                "dtype, a device or a Tensor"
            )
        copy = rest[1] if len(rest) > 1 else copy
    if other is not None:
        dtype = other.dtype
    as_device(device)
    kind = input.dtype if dtype is None else dtypes.as_dtype(dtype)
    if memory_format is not None:
        return _in_format(input, kind, memory_format, copy)
    return _converter(kind)(input) if copy or kind is not input.dtype else input


@public("", method="type_as")
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return the tensor in the dtype of `other`.

    Example:
        >>> torch.tensor([1, 2]).type_as(torch.ones(1))
        tensor([1., 2.])
    """
    check_tensor(other, "type_as", "other")
    return converted(input, other.dtype)


@public("", method="cpu")
def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """Return the tensor itself: it is on the CPU.

    Example:
        >>> torch.ones(2).cpu()
        tensor([1., 1.])
    """
    return self if memory_format is None else _in_format(self, self.dtype, memory_format)


@public("", method="cuda")
def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raise AssertionError, as PyTorch without CUDA does: tensors live on the CPU."""
    raise AssertionError("Torch not compiled with CUDA enabled: tinytorch runs on the CPU")


#: `Tensor.float` and the like. (They are no names of this module, where `float` is Python's.)
members(
    {
        name: _conversion(getattr(dtypes, name))
        for name in ("bfloat16", "bool", "double", "float", "half", "int", "long", "short")
    }
    | {"byte": _conversion(dtypes.uint8), "char": _conversion(dtypes.int8)}
)

members(
    {
        "H": property(_matrix_adjoint),
        "T": property(_reversed_dims),
        "imag": property(_imag),
        "mH": property(_mH),
        "mT": property(_mT),
        "real": property(real),
    }
)


# What a tensor's memory looks like ----------------------------------------------------------------


@public("", method="size")
def size(input: Tensor, dim: int | None = None) -> Any:
    """Return the shape, or the length of one dimension.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.size(), x.size(-1)
        (torch.Size([2, 3]), 3)
    """
    shape = input._array.shape
    if dim is None:
        return Size(shape)
    return shape[_dimension(dim, shape)]


@public("", method="stride")
def stride(input: Tensor, dim: int | None = None) -> Any:
    """Return how many elements lie in memory between neighbours along each dimension, or along one.

    Example:
        >>> x = torch.zeros(2, 3)
        >>> x.stride(), x.t().stride()
        ((3, 1), (1, 3))
    """
    array = input._array
    if not array.size and not any(array.strides):  # NumPy's of what is made empty; slices keep theirs
        array = np.empty([max(length, 1) for length in array.shape], array.dtype)
    strides = [step // array.itemsize for step in array.strides]
    for d in range(len(strides) - 1, -1, -1):
        if array.shape[d] == 1 and not strides[d]:  # NumPy's for a new dimension: PyTorch's goes by the next one
            strides[d] = array.shape[d + 1] * strides[d + 1] if d + 1 < len(strides) else 1
    return tuple(strides) if dim is None else strides[_dimension(dim, array.shape)]


def _dimension(dim: int, shape: tuple[int, ...]) -> int:
    if not shape:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return axis_of(dim, len(shape), "size")


@public(method="nelement numel")
def numel(input: Tensor) -> int:
    """Return the number of elements.

    Example:
        >>> torch.numel(torch.zeros(2, 3))
        6
    """
    check_tensor(input, "numel")
    return int(input._array.size)


@public("", method="dim ndimension")
def dim(input: Tensor) -> int:
    """Return the number of dimensions.

    Example:
        >>> torch.zeros(2, 3).dim()
        2
    """
    return int(input._array.ndim)


@public("", method="storage_offset")
def storage_offset(input: Tensor) -> int:
    """Return how many elements of the memory come before the tensor's first.

    Example:
        >>> torch.arange(4)[1:].storage_offset()
        1
    """
    return places.storage_offset(input._array)


@public("", method="element_size")
def element_size(input: Tensor) -> int:
    """Return the bytes of one element.

    Example:
        >>> torch.zeros(2).element_size(), torch.arange(2).element_size()
        (4, 8)
    """
    return int(input._array.itemsize)


@public("", method="data_ptr")
def data_ptr(input: Tensor) -> int:
    """Return the address of the first element, in bytes.

    Example:
        >>> x = torch.arange(4)
        >>> x[1:].data_ptr() - x.data_ptr()
        8
    """
    return int(input._array.__array_interface__["data"][0])


@public(method=True)
def is_floating_point(input: Tensor) -> bool:
    """Return whether the dtype is one of floating point.

    Example:
        >>> torch.is_floating_point(torch.zeros(1)), torch.is_floating_point(torch.arange(1))
        (True, False)
    """
    check_tensor(input, "is_floating_point")
    return input.dtype.is_floating_point


@public(method=True)
def is_complex(input: Tensor) -> bool:
    """Return False: there are no complex numbers here.

    Example:
        >>> torch.is_complex(torch.ones(2))
        False
    """
    check_tensor(input, "is_complex")
    return False


@public(method=True)
def is_signed(input: Tensor) -> bool:
    """Return whether the dtype has negative numbers.

    Example:
        >>> torch.is_signed(torch.tensor([1])), torch.is_signed(torch.tensor([1], dtype=torch.uint8))
        (True, False)
    """
    return input.dtype.is_signed
