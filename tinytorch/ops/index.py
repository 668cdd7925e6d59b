"""Reading and writing by index: `x[...]`, gather and scatter, masks, sorting, searching.

Basic indexing (ints, slices, None, ...) gives views, one op for all its steps; indexing by tensors gives copies.
Ops that write into a copy of their first argument are declared by `writing`, which makes their in-place form too.
"""

from __future__ import annotations

import builtins
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.core import dtypes, places
from tinytorch.core.dtypes import FLOATS
from tinytorch.core.inplace import check_overlap, in_place
from tinytorch.core.mode import local
from tinytorch.core.op import as_array, op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import announce, count_write, expanded, needs_grad, shared_places
from tinytorch.kernels import indexing as kernels
from tinytorch.kernels import shape as shapes
from tinytorch.kernels.activation import fill as fill_where
from tinytorch.kernels.activation import where as where_
from tinytorch.kernels.reduce import axis_of, int_of
from tinytorch.ops import limits, return_types
from tinytorch.ops.limits import fits
from tinytorch.ops.register import public
from tinytorch.ops.shape import (
    aliased,
    also_by,
    axis_is_dim,
    cat,
    check_tensor,
    embed,
    expand,
    inserted,
    part,
    reshape,
    selected,
)
from tinytorch.ops.writing import on_one_memory, writing

_ALL = slice(None)
#: The greatest number, by NumPy's letter for a dtype.
_GREATEST = {each: float(np.finfo(each).max) for each in "efd"}
_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_NUMBERS = (int, float, np.number, np.bool_)
_OPERANDS = (Tensor, *_NUMBERS)


def _zeros(g: Tensor) -> Tensor:
    """Return the gradient of what was written over."""
    made: Tensor = wrap(np.zeros(g._array.shape, g._array.dtype, like=g._array))
    return made


def _fitting(value: Any, x: Any) -> Any:
    """Return what is to be written into `x`: a number that fits its dtype, or an array."""
    if isinstance(value, np.ndarray):
        return value
    greatest = _GREATEST.get(x.dtype.char)
    if greatest is not None and -greatest <= value <= greatest:
        return value  # (the usual case)
    return fits(value, dtypes.from_numpy_dtype(x.dtype))


def _fitting_item(value: Any, x: Any) -> Any:
    """Return a number that is assigned by `x[...] = value`: in less than float32 it may become infinity."""
    dtype = x.dtype
    if dtype.kind in FLOATS and (dtype.itemsize < 4 or -_GREATEST["f"] <= value <= _GREATEST["f"]):
        return value
    return fits(value, dtypes.from_numpy_dtype(dtype))


def _scalar(name: str, value: Any) -> Any:
    """Raise PyTorch's error unless `value` is a number or a tensor without dimensions."""
    if isinstance(value, Tensor):
        ndim = value._array.ndim
        if ndim:
            raise RuntimeError(
                f"{name}_ only supports a 0-dimensional value tensor, but got tensor with {ndim} dimension(s)."
            )
    elif not isinstance(value, _NUMBERS):
        raise TypeError(f"{name}_(): argument 'value' must be Tensor or Number, not {type(value).__name__}")
    return value


def _same_places(x: Tensor, y: Any) -> bool:
    """Return whether two tensors are the same elements, so that to copy one to the other changes nothing."""
    return y is x or (isinstance(y, Tensor) and places.same(x._array, y._array))


@writing(names=("CopyBackwards",), x=_zeros, y=lambda g: g, broadcasts=True, repeats=_same_places, reads="same")
def _copy(x: Any, y: Any) -> None:
    try:
        x[...] = y
    except ValueError:
        np.broadcast_to(y, x.shape)  # raises for shapes
        raise


_copy[0].op.node_class.name = lambda self: "torch::autograd::CopyBackwards"


@writing(
    names=("FillBackward2", "FillBackward3", "ZeroBackward0", "FillBackward0", "FillBackward1"),
    repeats=lambda x, value: not isinstance(value, Tensor),
    reads="any",
    x=_zeros,
    value=lambda g: g.sum(),
)
def _fill(x: Any, value: Any) -> None:
    x[...] = _fitting(value, x)


def _seen(*operands: Any) -> bool:
    """Return whether a write goes through its op: it is recorded, or a mode looks on. Else it takes a short way."""
    state = local.state
    return state.modes is not None or (
        state.grad and any(isinstance(each, Tensor) and needs_grad(each) for each in operands)
    )


@public("", method="copy_")
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Write the elements of `other`, which broadcasts to this tensor and is cast to its dtype, and return the tensor.

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
    """
    if isinstance(other, Tensor) and not _fits_into(other._array.shape, self._array.shape):
        shape, given = self._array.shape, other._array.shape
        if len(given) > len(shape):
            raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(given)}")
        back = next(k for k in range(1, len(given) + 1) if given[-k] not in (1, shape[-k]))
        raise RuntimeError(
            f"The size of tensor a ({shape[-back]}) must match the size of tensor b ({given[-back]}) at "
            f"non-singleton dimension {len(shape) - back}"
        )
    if not isinstance(other, Tensor):
        other = wrap(np.asarray(other))
    if other._cell is self._cell or _seen(self, other):
        return _copy[1](self, other)
    if expanded(self._array) and not _same_places(self, other):
        raise shared_places()
    self._array[...] = other._array
    count_write(self)
    return self


def _fits_into(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether an array of the shape `given` broadcasts to `shape`."""
    return given == shape or (
        len(given) <= len(shape)
        and all(have in (1, want) for have, want in zip(given[::-1], shape[::-1], strict=False))
    )


@public()
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor like `input` that holds a number, or what a tensor without dimensions holds, everywhere.

    Raises:
        RuntimeError: the value is a tensor with dimensions.

    Example:
        >>> torch.fill(torch.zeros(2), 7)
        tensor([7., 7.])
    """
    check_tensor(input, "fill")
    number = not isinstance(value, Tensor)
    if not number:
        _check_value(value)
    return _fill[3 if number else 4][0](input, value)


def _check_value(value: Tensor) -> None:
    if value._array.ndim:
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
        )


@public(method=True)
def fill_(self: Tensor, value: Any) -> Tensor:
    """Write a number, or what a tensor without dimensions holds, everywhere, and return the tensor.

    Example:
        >>> torch.zeros(2).fill_(7)
        tensor([7., 7.])
    """
    if isinstance(value, Tensor):
        _check_value(value)
        return _fill[1][1](self, value)
    if _seen(self):
        return _fill[0][1](self, value)
    self._array[...] = _fitting(value, self._array)
    count_write(self)
    return self


@public(method=True)
def zero_(self: Tensor) -> Tensor:
    """Write zeros everywhere, and return the tensor."""
    if _seen(self):
        return _fill[2][1](self, 0)
    self._array[...] = 0
    count_write(self)
    return self


@public("", method="fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal of a matrix (or of a tensor whose dimensions are all equal).

    Raises:
        RuntimeError: there are fewer than two dimensions.
    """
    shape = self._array.shape
    if len(shape) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if wrap and len(shape) == 2 and shape[0] > shape[1]:
        places = np.arange(0, shape[0] * shape[1], shape[1] + 1)
    else:
        places = np.arange(min(shape)) * builtins.sum(int(np.prod(shape[d + 1 :])) for d in range(len(shape)))
    keys = tuple([_wrapped(each) for each in np.unravel_index(places, shape)])
    setitem(self, keys, fill_value.item() if isinstance(fill_value, Tensor) else fill_value)
    return self


def _wrapped(array: Any) -> Tensor:
    made: Tensor = wrap(array)
    return made


# What stands between the brackets -----------------------------------------------------------------


def _is_full(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _checked_slice(key: slice) -> slice:
    """Return a slice of ints, None and a positive step."""
    step = key.step
    if step is not None:
        step = operator.index(step)
        if step == 0:
            raise ValueError("slice step cannot be zero")
        if step < 0:
            raise ValueError("step must be greater than zero")
    start, stop = key.start, key.stop
    if (start is None or type(start) is int) and (stop is None or type(stop) is int):
        return key
    for bound in (start, stop):
        if bound is not None and not hasattr(bound, "__index__"):
            raise TypeError("slice indices must be integers or None or have an __index__ method")
    return slice(None if start is None else operator.index(start), None if stop is None else operator.index(stop), step)


def _warn_of_bytes() -> None:
    warnings.warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning, stacklevel=6,
    )  # fmt: skip


def _index_array(index: Tensor) -> Any:
    """Return the array of an index tensor of a dtype that can be one."""
    array = index._array
    kind = array.dtype
    if kind == _INT64 or kind.kind == "b" or kind == np.int32:
        return array
    if not array.ndim and kind.kind in "iu":
        return array.astype(np.bool_) if kind == np.uint8 else array
    if kind == np.uint8:
        _warn_of_bytes()
        return array.astype(np.bool_)
    raise IndexError("tensors used as indices must be long, int, byte or bool tensors")


def _from_sequence(index: Any) -> Any:
    """Return nested sequences of numbers (or an array of NumPy's) as an index array: int64 or bool."""
    if isinstance(index, (list, tuple)):
        index = [each.tolist() if isinstance(each, Tensor) else each for each in index]
    array = np.asarray(index)
    if array.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if array.dtype == np.uint8 and array.ndim:
        _warn_of_bytes()
    if array.dtype.kind == "b" or array.dtype == np.uint8:
        return array.astype(np.bool_)
    if array.dtype.kind == "O" and array.size:
        raise RuntimeError(f"Could not infer dtype of {type(array.reshape(-1)[0]).__name__}")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"new(): invalid data type '{array.dtype}'")
    return array.astype(_INT64)


def _means_tuple(key: Any) -> bool:
    """Return whether a sequence stands for a tuple of indices, as PyTorch still has it."""
    return len(key) < 32 and any(
        each is None or each is Ellipsis or isinstance(each, (Tensor, slice, list, tuple, range, str)) for each in key
    )


def _parsed(input: Tensor, key: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Return what is done to `input` for `input[key]`.

    Returns:
        The op for the basic steps and their key in NumPy's terms (None: there are none); then per dimension of what
        they give an index array or None, or an empty tuple.
    """
    if type(key) is not tuple:
        if isinstance(key, (list, range)) and _means_tuple(key):
            warnings.warn(
                "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
                "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
                "x[torch.tensor(seq)], which will result either in an error or a different result",
                UserWarning, stacklevel=4,
            )  # fmt: skip
            key = tuple(key)
        else:
            key = (key,)
    ndim = input._array.ndim
    steps: list[Any] = []
    indices: list[Any] = []
    step_op = aliased if len(key) != 1 or key[0] is Ellipsis else None
    used = 0  # dimensions of the input that the key has dealt with, as PyTorch counts them: 1 for any sequence
    ellipsis_at = None
    again_at = None  # a second one
    uncounted = 0  # dimensions that masks take which are sequences, beyond the 1 that is counted
    for each in key:
        kind = type(each)
        if kind is int:
            steps.append(each)
            step_op = selected
            used += 1
        elif kind is slice:
            if not ndim:
                raise IndexError("slice() cannot be applied to a 0-dim tensor.")
            steps.append(_checked_slice(each))
            indices.append(None)
            if not _is_full(each) or len(key) == 1:
                step_op = part
            used += 1
        elif each is None:
            steps.append(None)
            indices.append(None)
            step_op = inserted
        elif each is Ellipsis:
            if ellipsis_at is None:
                ellipsis_at = (len(steps), len(indices))
            else:
                again_at = len(steps)
        elif kind is bool:
            steps.append(None)
            indices.append(np.zeros(int(each), _INT64))
            step_op = inserted
        elif isinstance(each, Tensor):
            array = _index_array(each)
            if array.ndim == 0:
                if array.dtype.kind == "b":
                    steps.append(None)
                    indices.append(np.zeros(int(array), _INT64))
                    step_op = inserted
                else:
                    steps.append(int(array))
                    step_op = selected
                    used += 1
                continue
            count = array.ndim if array.dtype.kind == "b" else 1
            steps += [_ALL] * count
            indices.append(array)
            used += count
        elif isinstance(each, np.integer):
            steps.append(int(each))
            step_op = selected
            used += 1
        elif isinstance(each, (list, tuple, range, str, np.ndarray)):
            array = _from_sequence(each)
            used += 1
            if array.ndim == 0:
                if array.dtype.kind == "b":
                    steps.append(None)
                    indices.append(np.zeros(int(array), _INT64))
                    step_op = inserted
                else:
                    steps.append(int(array))
                    step_op = selected
                continue
            count = array.ndim if array.dtype.kind == "b" else 1
            uncounted += count - 1
            steps += [_ALL] * count
            indices.append(array)
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {_kind_name(each)})"
            )
    if used > ndim:
        # A mask that is too wide is told of its shape, not of the number of indices.
        if not any(index is not None and index.dtype.kind == "b" for index in indices) or ndim == 0:
            if not indices:
                raise kernels.translated(IndexError("too many indices"), ndim)
            raise IndexError(f"too many indices for tensor of dimension {ndim}")
        kernels.checked(input._array, tuple(indices))
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    if again_at is not None and used < ndim and again_at < len(steps):
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    if ellipsis_at is not None:
        at, index_at = ellipsis_at
        wide = ndim - used
        if at == len(steps):
            wide = max(wide - uncounted, 0)
        steps[at:at] = [_ALL] * wide
        indices[index_at:index_at] = [None] * wide
    elif uncounted:
        for _ in range(used + uncounted - ndim):  # full slices behind the last dimension do nothing
            if indices[-1] is None and isinstance(steps[-1], slice) and _is_full(steps[-1]):
                steps.pop()
                indices.pop()
    steps.append(Ellipsis)  # so that NumPy gives an array, not a number, where no dimension is left
    if all(index is None for index in indices):
        return step_op, tuple(steps), ()
    while indices[-1] is None:
        indices.pop()
    if step_op is aliased or step_op is None or all(isinstance(s, slice) and _is_full(s) for s in steps[:-1]):
        return None, (), tuple(indices)
    return step_op, tuple(steps), tuple(indices)


def _kind_name(value: Any) -> str:
    kind = type(value)
    return f"numpy.{kind.__name__.strip('_')}" if isinstance(value, np.generic) else kind.__name__


@op(x=lambda g, x_shape, indices: _put_back(g, x_shape, indices), name="Index")
def _index(x: Any, indices: tuple[Any, ...]) -> Any:
    return kernels.take(x, indices)


def _let_go(node: Any) -> None:
    node.saved = None


_index.op.node_class.release = _let_go  # indices are saved tensors in PyTorch: a second backward is an error


@op(x=lambda g, indices: _index(g, indices), name="IndexBackward")
def _put_back(x: Any, shape: tuple[int, ...], indices: tuple[Any, ...]) -> Any:
    return kernels.put_back(x, shape, indices)


def _kept(indices: tuple[Any, ...], recorded: bool) -> tuple[Any, ...]:
    """Return indices that the graph can keep: nobody may write to them before backward."""
    return tuple([None if each is None else each.copy() for each in indices]) if recorded else indices


def _indexed(input: Tensor, indices: tuple[Any, ...]) -> Tensor:
    return _index(input, _kept(indices, local.state.grad and input.requires_grad))


def getitem(self: Tensor, key: Any) -> Tensor:
    """Return the part of the tensor that `key` names: a view for ints, slices, None and ..., a copy for tensors."""
    kind = type(key)
    try:
        if kind is int:
            return selected(self, (key, ...))
        if kind is slice and key.step is None and self._array.ndim:
            return part(self, (_checked_slice(key),))
        step_op, steps, indices = _parsed(self, key)
        if not indices:
            return step_op(self, steps)
        return _indexed(self if step_op is None else step_op(self, steps), indices)
    except IndexError as error:
        if "array" in str(error) or "axis" in str(error):
            raise kernels.translated(error, self._array.ndim) from None
        raise


def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write `value`, a number or a tensor that broadcasts, into the part of the tensor that `key` names."""
    if not isinstance(value, _OPERANDS):
        raise TypeError(f"can't assign a {_kind_name_of(value)} to a {self.type()}")
    if key is False:
        return  # names nothing
    try:
        step_op, steps, indices = _parsed(self, None if key is True else key)
        recorded = _seen(self, value)
        own = isinstance(value, Tensor) and on_one_memory(value, self)
        if not (recorded or own or 0 in self._array.strides):
            _write_directly(self, step_op, steps, indices, value)  # nothing to record, no view to make
            return
        whole = step_op is None or _takes_all(steps, self._array.shape)
        target = self if whole else step_op(self, steps)
        if not isinstance(value, Tensor):
            value = wrap(np.asarray(_fitting_item(value, target._array)).astype(target._array.dtype))
        if not indices:
            shape = value._array.shape
            if shape or not target._array.ndim:
                _copy[1](target, _expanded(value, target._array.shape))
            else:
                _fill[1][1](target, value)
            return
        if own and _is_fill(indices, value):
            value = value.clone()  # the number is taken out first
        value = _without_leading_ones(value, target._array, indices)
        _index_put[1](target, _kept(indices, recorded), value, False)
    except IndexError as error:
        if "array" in str(error) or "axis" in str(error):
            raise kernels.translated(error, self._array.ndim) from None
        raise


def delitem(self: Tensor, key: Any) -> None:
    """Raise TypeError: no elements of a tensor can be taken away."""
    raise TypeError("Tensor does not support deleting items")


def _takes_all(steps: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Return whether the basic steps of a key take all elements as they are."""
    *slices, _ = steps
    return len(slices) <= len(shape) and builtins.all(
        isinstance(each, slice) and each.step in (None, 1) and range(n)[each] == range(n)
        for each, n in zip(slices, shape, strict=False)
    )


def _kind_name_of(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _write_directly(self: Tensor, step_op: Any, steps: Any, indices: tuple[Any, ...], value: Any) -> None:
    if local.state.modes is not None:
        announce(self)
    region = self._array if step_op is None else self._array[steps]
    if indices:
        if isinstance(value, Tensor):
            given = _without_leading_ones(value, region, indices)._array
            _check_same_dtype(region, given, indices, False)
        else:
            given = _fitting_item(value, region)
        kernels.put(region, indices, given, False)
    elif isinstance(value, Tensor):
        given = value._array
        while given.ndim > region.ndim and given.shape[0] == 1:
            given = given[0, ...]
        if given.shape != region.shape:
            given = shapes.expand(given, region.shape)
        region[...] = given
    else:
        region[...] = _fitting_item(value, region)
    count_write(self)


def _expanded(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    given = value._array.shape
    if given == shape:
        return value
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    return expand(value if given == value._array.shape else reshape(value, given), shape)


def _without_leading_ones(value: Tensor, target: Any, indices: tuple[Any, ...]) -> Tensor:
    """Return `value` without the dimensions of length 1 in front that what is indexed does not have."""
    given = value._array.shape
    if len(given) <= 1 or given[0] != 1:
        return value
    ndim = target[kernels.key_of(indices)].ndim
    while len(given) > ndim and given[0] == 1:
        given = given[1:]
    return value if given == value._array.shape else reshape(value, given)


def _check_same_dtype(x: Any, y: Any, indices: tuple[Any, ...], accumulate: bool) -> None:
    # One element for a mask is a fill, which casts.
    if y.dtype != x.dtype and (accumulate or y.size != 1 or not kernels.is_mask(indices)):
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {kernels.name_of(x)} for the "
            f"destination and {kernels.name_of(y)} for the source."
        )


def _index_put_x(g: Tensor, indices: tuple[Any, ...], accumulate: bool) -> Tensor:
    if accumulate:
        return g
    return _index_put[0](g, indices, wrap(np.zeros((), g._array.dtype, like=g._array)), False)


def _is_fill(indices: tuple[Any, ...], value: Tensor) -> bool:
    """Return whether one element is written wherever a mask is true."""
    return value._array.size == 1 and kernels.is_mask(indices)


def _deprecated(name: str, example: str) -> Callable[..., bool]:
    """Let an op write to expanded memory, with PyTorch's warning."""

    def warn(*values: Any) -> bool:
        warnings.warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
            f"operation. This also applies to advanced indexing e.g. {example}",
            UserWarning, stacklevel=5,
        )  # fmt: skip
        return True

    return warn


_deprecated_fill = _deprecated("masked_fill_", "tensor[mask] = scalar")
_deprecated_put = _deprecated("index_put_", "tensor[indices] = tensor")


def _deprecated_fill_or_put(x: Tensor, indices: tuple[Any, ...], y: Tensor, accumulate: bool) -> bool:
    _deprecated_put()
    return accumulate or not _is_fill(indices, y) or _deprecated_fill()


def _copy_in_order(x: Any, *_: Any) -> Any:
    """Return a copy with the dimensions in the same order in memory, as PyTorch's `clone` makes it."""
    return x.copy("C" if 0 in x.strides else "K")


@writing(
    names=("IndexPutBackward0",),
    prepare=_copy_in_order,
    repeats=_deprecated_fill_or_put,
    x=_index_put_x,
    y=lambda g, indices: _index(g, indices),
    broadcasts=True,
)
def _index_put(x: Any, indices: tuple[Any, ...], y: Any, accumulate: bool) -> None:
    _check_same_dtype(x, y, indices, accumulate)
    kernels.put(x, indices, y, accumulate)


def _tensor_indices(name: str, input: Tensor, indices: Any) -> tuple[Any, ...]:
    check_tensor(input, name)
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    for k, each in enumerate(indices):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(each).__name__}")
    if len(indices) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(indices)})")
    arrays = tuple([_index_array(each) for each in indices])
    if any(each.dtype.kind == "i" and each.itemsize < 4 for each in arrays):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return _kept(arrays, local.state.grad)


@public(method=True)
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with `values` written at `indices`, as `x[indices] = values` does.

    Args:
        input: the tensor.
        indices: a tuple of index tensors or masks.
        values: a tensor of the same dtype that broadcasts to what is indexed.
        accumulate: add the values; those for one place add up.

    Raises:
        IndexError: an index is out of range.
        RuntimeError: the values do not fit in shape or dtype.

    Example:
        >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 0]),), torch.ones(2), accumulate=True)
        tensor([2., 0., 0.])
    """
    return _index_put[0](input, _tensor_indices("index_put", input, indices), values, accumulate)


@public(method=True)
def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `index_put`."""
    return _index_put[1](self, _tensor_indices("index_put_", self, indices), values, accumulate)


# Rows along a dimension ---------------------------------------------------------------------------


@public(method=True, out="index_select")
@op(x=lambda g, x_shape, dim, index: _rows_back(g, x_shape, dim, index), index=None)
def index_select(x: Any, dim: int, index: Any) -> Any:
    """Return the elements at the indices of a vector along a dimension.

    Args:
        x: the tensor.
        dim: the dimension.
        index: int64 or int32 vector, (n,); none negative.

    Returns:
        A tensor with length n in dimension `dim`.

    Raises:
        IndexError: an index is out of range.

    Example:
        >>> torch.index_select(torch.arange(6).view(2, 3), 1, torch.tensor([2, 0]))
        tensor([[2, 0],
                [5, 3]])
    """
    return kernels.select_rows(x, dim, index)


@op(x=lambda g, dim, index: index_select(g, dim, index), index=None, name="IndexSelectBackward")
def _rows_back(x: Any, shape: tuple[int, ...], dim: int, index: Any) -> Any:
    """Return zeros of `shape` with the rows of `x` added at `index`: the gradient of `index_select`."""
    if not shape:
        return x.copy()
    out = np.zeros(shape, x.dtype, like=x)
    kernels.add_rows(out, dim % len(shape), index, x)
    return out


def _rows_of(name: str, x: Any, dim: int, index: Any, source: Any) -> int:
    """Return the dimension from 0, having checked what the `index_...` ops ask of their arguments."""
    axis = axis_of(dim, x.ndim, name)
    if index.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{kernels.name_of(index)} and size: {list(index.shape)}"
        )
    if index.dtype != _INT64 and index.dtype != np.int32:
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {kernels.name_of(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"{name}_(): self ({kernels.name_of(x)}) and source ({kernels.name_of(source)}) must have the same "
            "scalar type"
        )
    return axis


def _check_rows(name: str, x: Any, axis: int, index: Any, source: Any) -> None:
    """Raise PyTorch's error unless `source` has a row for each index, of the shape of those of `x`."""
    if not source.ndim and index.size > 1:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if source.ndim != x.ndim or any(
        n != m for d, (n, m) in enumerate(zip(x.shape, source.shape, strict=True)) if d != axis
    ):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{list(x.shape)} source.shape = {list(source.shape)}"
        )
    if not source.ndim and not index.size:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    rows = source.shape[axis] if source.ndim else 1
    if index.size != rows:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index.size}) should be equal to source.size(dim): ({rows}), for dim: "
            f"{axis}"
        )


def _index_add_source(g: Tensor, dim: int, index: Tensor, source_shape: tuple[int, ...], alpha: Any) -> Tensor:
    rows = index_select(g, dim, index)
    rows = rows if rows._array.shape == source_shape else reshape(rows, source_shape)
    return rows if alpha == 1 else rows * alpha


@writing(names=("IndexAddBackward0",), x=lambda g: g, index=None, source=_index_add_source)
def _index_add(x: Any, dim: int, index: Any, source: Any, alpha: Any) -> None:
    axis = _rows_of("index_add", x, dim, index, source)
    _check_rows("index_add", x, axis, index, source)
    kernels.check_bounds(index, x.shape[axis] if x.ndim else 1, axis)
    if alpha != 1:
        source = source * np.asarray(alpha).astype(source.dtype)
    if x.ndim:
        kernels.add_rows(x, axis, index, source)
    else:
        x[...] += source


def _alpha_last(function: Any, name: str, doc: str) -> Any:
    @axis_is_dim
    def call(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        return function(input, dim, index, source, alpha)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc
    return call


_ADDED = """Return a copy with `alpha * source` added to the rows at `index` along `dim`; same rows add up.

    Args:
        input: the tensor.
        dim: the dimension.
        index: int64 or int32 vector of as many indices as `source` has rows.
        source: what to add, of the shape of `input` but for `dim`.
        alpha: a number to multiply it with.

    Example:
        >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.ones(3))
        tensor([2., 0., 1.])
    """
index_add = public("index_add", method=True, out="gather")(_alpha_last(_index_add[0], "index_add", _ADDED))
index_add_ = public("", method="index_add_")(
    _alpha_last(_index_add[1], "index_add_", "In-place version of `index_add`.")
)


@writing(
    names=("IndexCopyBackward0",),
    x=lambda g, dim, index: index_fill(g, dim, index, 0),
    index=None,
    source=lambda g, dim, index, source_shape: reshape(index_select(g, dim, index), source_shape),
)
def _index_copy(x: Any, dim: int, index: Any, source: Any) -> None:
    axis = axis_of(dim, x.ndim, "index_copy")
    if index.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim})")
    if not source.ndim and index.size != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.size})")
    if source.ndim != x.ndim and source.ndim and x.ndim:
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.ndim}), destination dimensionality ({x.ndim})"
        )
    if index.dtype != _INT64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {kernels.name_of(index)}")
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {kernels.name_of(x)} and "
            f"(source) {kernels.name_of(source)}"
        )
    slices = [each.shape[:axis] + each.shape[axis + 1 :] if each.ndim else () for each in (x, source)]
    if slices[0] != slices[1]:
        mine, theirs = (" ".join(map(str, each)) for each in slices)
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{mine} at dimension {axis} and source slice shape: {theirs} at dimension 0."
        )
    if source.ndim and index.size != source.shape[axis]:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.size}) should be equal to source.size(dim) "
            f"({source.shape[axis]})"
        )
    length = x.shape[axis] if x.ndim else 1
    bad = index[(index < 0) | (index >= length)]
    if bad.size:
        raise IndexError(
            f"index_copy_(): index {int(bad.reshape(-1)[0])} is out of bounds for dimension {axis} with size {length}"
        )
    if x.ndim:
        x[kernels.at_rows(axis, index)] = source
    else:
        x[...] = source.reshape(())


@public(method=True, out="gather", autocast="widest")
@axis_is_dim
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the rows of `source` in place of those at `index` along `dim`.

    Args:
        input: the tensor.
        dim: the dimension.
        index: a vector of int64; where an index comes twice, the last of its rows is taken.
        source: as `input`, but along `dim` as long as the index.

    Raises:
        IndexError: an index is out of range, or the shapes do not fit.

    Example:
        >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2]), torch.tensor([5.0]))
        tensor([0., 0., 5.])
    """
    return _index_copy[0](input, dim, index, source)


index_copy_ = public("", method="index_copy_")(axis_is_dim(_index_copy[1]))


@writing(
    names=("IndexFillBackward0", "IndexFillBackward1"),
    prepare=_copy_in_order,
    repeats=_deprecated("index_fill_", "tensor[mask] = scalar"),
    reads={"value": "any"},
    x=lambda g, dim, index: index_fill(g, dim, index, 0),
    index=None,
    value=lambda g, dim, index: _filled_sum(g, dim, index),
)
def _index_fill(x: Any, dim: int, index: Any, value: Any) -> None:
    axis = axis_of(dim, x.ndim, "index_fill")
    if index.dtype != _INT64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    length = x.shape[axis] if x.ndim else 1
    bad = index[(index < -length) | (index >= length)]
    if bad.size:
        raise IndexError(f"index {int(bad.reshape(-1)[0])} is out of bounds for dimension {axis} with size {length}")
    if x.ndim or index.size:
        x[kernels.at_rows(axis, index) if x.ndim else ...] = _fitting(value, x)


def _filled_sum(g: Tensor, dim: int, index: Tensor) -> Tensor:
    """Return the sum of the gradients in the rows that were filled, each row once."""
    if not g._array.ndim:
        return g
    rows = np.unique(index._array % (g._array.shape[dim] or 1))
    return index_select(g, dim, wrap(rows)).sum()


@public(method=True)
@axis_is_dim
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with a number (or a tensor without dimensions) in the rows at `index` along `dim`.

    Args:
        input: the tensor.
        dim: the dimension.
        index: a vector of int64.
        value: the number.

    Raises:
        IndexError: an index is out of range.

    Example:
        >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 7)
        tensor([7., 0., 7.])
    """
    return _index_fill[isinstance(value, Tensor)][0](input, dim, index, _scalar("index_fill", value))


@public("", method="index_fill_")
@axis_is_dim
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """In-place version of `index_fill`."""
    return _index_fill[isinstance(value, Tensor)][1](self, dim, index, _scalar("index_fill", value))


# Gather and scatter -------------------------------------------------------------------------------


@public(method=True, out="gather")
@op(x=lambda g, x_shape, dim, index: _scattered(g, x_shape, dim, index, False), index=None)
def gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    """Return the elements at `index` along a dimension: for dim 0, `out[i, j] = x[index[i, j], j]`.

    Args:
        x: the tensor.
        dim: the dimension.
        index: int64 or int32, with as many dimensions as `x`, in the others not longer than it.
        sparse_grad: has no effect: gradients are dense.

    Returns:
        A tensor of the shape of `index`.

    Raises:
        RuntimeError: the index is out of range, or does not fit in shape or dtype.

    Example:
        >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0, 0], [1, 0]]))
        tensor([[1, 1],
                [4, 3]])
    """
    return kernels.gather(x, dim, index)


@op(x=lambda g, dim, index: gather(g, dim, index), index=None, name="GatherBackward")
def _scattered(x: Any, shape: tuple[int, ...], dim: int, index: Any, distinct: bool) -> Any:
    return kernels.scattered(x, shape, dim, index, distinct)


def _gathered_src(g: Tensor, dim: int, index: Tensor, src_shape: tuple[int, ...]) -> Tensor:
    """Return the gradient of what was scattered; zeros where `src` is larger than the index."""
    taken = gather(g, dim, index)
    shape = taken._array.shape
    if shape == src_shape:
        return taken
    if not taken._array.size:
        return wrap(np.zeros(src_shape, g._array.dtype, like=g._array))
    if len(shape) != len(src_shape):  # one of them has no dimensions
        return reshape(taken, src_shape)
    return embed(taken, src_shape, tuple([slice(n) for n in shape]))


@writing(
    names=("ScatterBackward1", "ScatterBackward0"),
    x=lambda g, dim, index: _scatter[0][0](g, dim, index, 0),
    index=None,
    src=_gathered_src,
)
def _scatter(x: Any, dim: int, index: Any, src: Any) -> None:
    kernels.scatter(x, dim, index, _fitting(src, x), "put")


@writing(names=("ScatterAddBackward0",), x=lambda g: g, index=None, src=_gathered_src)
def _scatter_add(x: Any, dim: int, index: Any, src: Any) -> None:
    kernels.scatter(x, dim, index, _fitting(src, x), "add")


def _no_gradient(g: Tensor) -> Any:
    raise RuntimeError("the derivative for 'aten::scatter' with reduce='multiply' is not implemented")


@writing(names=("NotImplemented",), x=_no_gradient, index=None, src=_no_gradient)
def _scatter_multiply(x: Any, dim: int, index: Any, src: Any) -> None:
    kernels.scatter(x, dim, index, _fitting(src, x), "multiply")


_scatter_multiply[0].op.node_class.name = lambda self: "torch::autograd::NotImplemented"


def _scatterer(reduce: str | None, src: Any) -> Any:
    """Return the pair of ops (out of place, in place) for a call of scatter."""
    if reduce is None:
        return _scatter[isinstance(src, Tensor)]
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if isinstance(src, Tensor):
        warnings.warn(
            "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
            "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
            UserWarning, stacklevel=4,
        )  # fmt: skip
    return _scatter_add if reduce == "add" else _scatter_multiply


def _source(src: Any, value: Any) -> Any:
    if src is None and value is None:
        raise TypeError('scatter() missing 1 required positional arguments: "src"')
    if isinstance(value, Tensor) and not value._array.ndim:
        value = value.item()
    return value if src is None else src


@public(method=True, out="scatter")
@axis_is_dim
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Return a copy with `src` written at `index` along a dimension: for dim 0, `out[index[i, j], j] = src[i, j]`.

    Args:
        input: the tensor.
        dim: the dimension.
        index: int64 or int32, with as many dimensions as `input`.
        src: a tensor of the same dtype, at least as large as the index; or a number.
        value: the number, by keyword.
        reduce: "add" or "multiply" to combine with what is there.

    Raises:
        RuntimeError: the index is out of range, or something does not fit in shape or dtype.

    Example:
        >>> torch.scatter(torch.zeros(2, 3), 1, torch.tensor([[2], [0]]), 1.0)
        tensor([[0., 0., 1.],
                [1., 0., 0.]])
    """
    src = _source(src, value)
    return _scatterer(reduce, src)[0](input, dim, index, src)


@public("", method="scatter_")
@axis_is_dim
def scatter_(
    self: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place version of `scatter`."""
    src = _source(src, value)
    return _scatterer(reduce, src)[1](self, dim, index, src)


@public(method=True, out="scatter")
@axis_is_dim
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Return a copy with `src` added at `index` along a dimension; what goes to one place adds up. See `scatter`.

    Example:
        >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.ones(3))
        tensor([2., 0., 1.])
    """
    check_tensor(src, "scatter_add", "src", 4)
    return _scatter_add[0](input, dim, index, src)


scatter_add_ = public("", method="scatter_add_")(axis_is_dim(_scatter_add[1]))


def _extreme_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, dim: int, index: Tensor, src: Tensor, how: str, include_self: bool,
    out: Tensor,
) -> Any:  # fmt: skip
    """Return the gradients of "amax" and "amin": shared by all elements that are equal to the result."""
    part_of_src = src if src._array.shape == index._array.shape else src[tuple([slice(n) for n in index.shape])]
    mine = (x == out).to(g.dtype)
    if not include_self:
        mine = _scatter[0][0](mine, dim, index, 0)
    theirs = (part_of_src == gather(out, dim, index)).to(g.dtype)
    share = g / _scatter_add[0](mine, dim, index, theirs)
    to_src = theirs * gather(share, dim, index)
    if to_src._array.shape != src._array.shape:
        to_src = embed(to_src, src._array.shape, tuple([slice(n) for n in index.shape]))
    return mine * share, None, to_src


def _reduced_by(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool) -> Any:
    out = x.copy("C")
    if not include_self:
        lowest = dtypes.from_numpy_dtype(x.dtype)
        if how in ("add", "multiply"):
            start: Any = int(how == "multiply")
        elif lowest.is_floating_point:
            start = -np.inf if how == "amax" else np.inf
        elif lowest is dtypes.bool:
            start = how == "amin"
        else:
            info = limits.iinfo(lowest)
            start = info.min if how == "amax" else info.max
        kernels.scatter(out, dim, index, start, "put")
    kernels.scatter(out, dim, index, _fitting(src, out), how)
    return out


def _kept_self(g: Tensor, dim: int, index: Tensor, include_self: bool) -> Tensor:
    """Return the gradient of what was added to: none where it did not take part."""
    return g if include_self else _scatter[0][0](g, dim, index, 0)


@op(
    x=lambda g, dim, index, include_self: _kept_self(g, dim, index, include_self),
    index=None,
    src=lambda g, dim, index, src_shape: _gathered_src(g, dim, index, src_shape),
    name="ScatterReduce",
)
def _scatter_sum(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool) -> Any:
    return _reduced_by(x, dim, index, src, "add", include_self)


def _met(shape: tuple[int, ...], dim: int, index: Any, include_self: bool) -> Any:
    """Return how many elements meet in each place; 1 where there are none."""
    counts = np.ones(shape, _INT64, like=index)
    if not include_self:
        kernels.scatter(counts, dim, index, 0, "put")
    kernels.scatter(counts, dim, index, np.ones(index.shape, _INT64, like=index), "add")
    return counts


def _mean_rule(
    g: Tensor, needs: tuple[bool, ...], counts: Tensor | None, x_shape: tuple[int, ...], dim: int, index: Tensor,
    src_shape: tuple[int, ...], include_self: bool,
) -> Any:  # fmt: skip
    if counts is None:
        counts = wrap(_met(x_shape, dim, index._array, include_self))
    share = g / counts
    to_x = _kept_self(share, dim, index, include_self) if needs[0] else None
    return to_x, None, _gathered_src(share, dim, index, src_shape) if needs[2] else None


@op(joint=_mean_rule, inputs=("x", "index", "src"), index=None, residuals=("counts",), name="ScatterReduce")
def _scatter_mean(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool) -> Any:
    """Return the means, and of how many elements each is."""
    if x.dtype.kind == "b":
        raise NotImplementedError("\"scatter_gather_tensor_cpu_reduce_mean\" not implemented for 'Bool'")
    total = _reduced_by(x, dim, index, src, "add", include_self)
    counts = _met(x.shape, dim, index, include_self)
    if total.dtype.kind in "iu":
        return total // counts.astype(total.dtype), counts
    return total / counts.astype(total.dtype), counts


@op(joint=_extreme_rule, inputs=("x", "index", "src"), index=None, name="ScatterReduce")
def _scatter_extreme(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool) -> Any:
    return _reduced_by(x, dim, index, src, how, include_self)


def _scatter_prod_rule(
    g: Tensor, needs: tuple[bool, ...], x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool, out: Tensor
) -> Any:
    """Return the gradients of "prod": the product over the factor, or of the other factors where one is zero."""
    part_of_src = src if src._array.shape == index._array.shape else src[tuple([slice(n) for n in index.shape])]
    if part_of_src._array.all() and (not include_self or x._array.all()):
        share = g * out
        to_x = share / x if include_self else _scatter[0][0](g, dim, index, 0)
        to_src = gather(share, dim, index) / part_of_src
    else:
        to_x, to_src = _products_of_others(g, x, dim, index, part_of_src, include_self)
    if to_src._array.shape != src._array.shape:
        to_src = embed(to_src, src._array.shape, tuple([slice(n) for n in index.shape]))
    return to_x, None, to_src


def _products_of_others(
    g: Tensor, x: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool
) -> tuple[Tensor, Tensor]:
    """Return the gradients of the factors that meet in each place, in a matrix with a column for each place."""
    shape = x._array.shape
    axis = axis_of(dim, len(shape), "scatter")
    places = kernels.flat(kernels.along(shape, axis, index._array))
    key = (wrap(kernels.ranks(places) + 1), wrap(places))
    factors = reshape(x, (1, -1))
    if not include_self:
        ones = wrap(np.ones(places.shape, x._array.dtype, like=x._array))
        factors = index_put(factors, (wrap(np.zeros_like(places)), key[1]), ones)
    count = int(key[0]._array.max()) if places.size else 0
    rest = wrap(np.ones((count, x._array.size), x._array.dtype, like=x._array))
    matrix = cat([factors, rest], 0)
    matrix = index_put(matrix, key, reshape(src, (-1,)))
    # The product of the others: of those before times those after.
    edge = wrap(np.ones((1, x._array.size), x._array.dtype, like=x._array))
    before = _product_before(cat([edge, matrix[:-1]], 0))
    after = _product_before(cat([edge, matrix.flip(0)[:-1]], 0)).flip(0)
    shares = reshape(g, (1, -1)) * before * after
    to_x = reshape(shares[0], shape)
    if not include_self:
        to_x = _scatter[0][0](to_x, dim, index, 0)
    return to_x, reshape(shares[key], index._array.shape)


def _product_before(x: Tensor) -> Tensor:
    made: Tensor = x.cumprod(0)
    return made


@op(joint=_scatter_prod_rule, inputs=("x", "index", "src"), index=None, name="ScatterReduce")
def _scatter_prod(x: Any, dim: int, index: Any, src: Any, how: str, include_self: bool) -> Any:
    return _reduced_by(x, dim, index, src, "multiply", include_self)


#: By the name of the reduction: the op, and its in-place form.
_SCATTER_REDUCTIONS = {
    reduce: (made, in_place(made))
    for reduce, made in {
        "sum": _scatter_sum, "mean": _scatter_mean, "prod": _scatter_prod, "amax": _scatter_extreme,
        "amin": _scatter_extreme,
    }.items()
}  # fmt: skip


def _as_index_reduce(made: Any, joint: Callable[..., Any], *residuals: str) -> tuple[Any, Any]:
    """Return an op of `scatter_reduce` under the name of `index_reduce`, and its in-place form."""
    inputs = ("x", "index", "src")
    declare = op(joint=joint, inputs=inputs, index=None, residuals=residuals, name="IndexReduce")
    again = declare(made.op.kernel)
    return again, in_place(again)


_index_extreme = _as_index_reduce(_scatter_extreme, _extreme_rule)
_INDEX_REDUCTIONS = {
    "amax": _index_extreme, "amin": _index_extreme, "mean": _as_index_reduce(_scatter_mean, _mean_rule, "counts"),
    "prod": _as_index_reduce(_scatter_prod, _scatter_prod_rule),
}  # fmt: skip


def _scatter_reducer(reduce: str) -> tuple[Callable[..., Any], Callable[..., Any], str]:
    """Return the op, its in-place form, and the reduction's name: PyTorch knows two by another name also."""
    how = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    try:
        return (*_SCATTER_REDUCTIONS[how], how)
    except KeyError:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}") from None


@public(method=True, out="scatter")
@axis_is_dim
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with `src` combined with what is at `index` along a dimension; see `scatter`.

    Args:
        input: the tensor.
        dim: the dimension.
        index: int64 or int32, with as many dimensions as `input`.
        src: a tensor of the same dtype, at least as large as the index.
        reduce: "sum", "prod", "mean", "amax" or "amin".
        include_self: whether what `input` holds there takes part.

    Raises:
        RuntimeError: `reduce` is none of these; see also `scatter`.

    Example:
        >>> torch.scatter_reduce(torch.zeros(2), 0, torch.tensor([0, 0, 1]), torch.tensor([1.0, 5.0, -2.0]), "amax")
        tensor([5., 0.])
    """
    check_tensor(src, "scatter_reduce", "src", 4)
    reducer, _, how = _scatter_reducer(reduce)
    made: Tensor = reducer(input, dim, index, src, how, include_self)
    return made


@public("", method="scatter_reduce_")
def scatter_reduce_(
    self: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `scatter_reduce`."""
    check_tensor(src, "scatter_reduce_", "src", 3)
    if src._cell is self._cell:
        check_overlap(self._array, src._array, False)
    _, reducer, how = _scatter_reducer(reduce)
    made: Tensor = reducer(self, dim, index, src, how, include_self)
    return made


@public(method=True, out="gather")
@axis_is_dim
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return a copy with the rows of `source` combined with those at `index` along `dim`.

    Args:
        input: the tensor.
        dim: the dimension.
        index: int64 or int32 vector of as many indices as `source` has rows.
        source: the rows, of the shape of `input` but for `dim`.
        reduce: "prod", "mean", "amax" or "amin".
        include_self: whether what `input` holds there takes part.

    Raises:
        RuntimeError: `reduce` is none of these, or something does not fit in shape or dtype.
        IndexError: an index is out of range.

    Example:
        >>> torch.index_reduce(torch.zeros(2), 0, torch.tensor([0, 0]), torch.tensor([1.0, 5.0]), "amax")
        tensor([5., 0.])
    """
    everywhere = _rows_everywhere(input, dim, index, source, reduce)
    made: Tensor = _INDEX_REDUCTIONS[reduce][0](input, dim, everywhere, source, reduce, include_self)
    return made


def _rows_everywhere(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str) -> Tensor:
    """Return the index of `index_reduce` as `scatter_reduce` takes it: for each element of `source`."""
    check_tensor(input, "index_reduce")
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    x, rows, places = input._array, source._array, index._array
    axis = _rows_of("index_reduce", x, dim, places, rows)
    _check_rows("index_reduce", x, axis, places, rows)
    if x.dtype.kind == "b":
        raise NotImplementedError("\"index_func_\" not implemented for 'Bool'")
    kernels.check_bounds(places, x.shape[axis] if x.ndim else 1, axis, IndexError, "index out of range in self")
    wide = places.reshape((-1,) + (1,) * (x.ndim - axis - 1)) if x.ndim else places.reshape(())
    everywhere: Tensor = wrap(np.broadcast_to(wide, rows.shape))
    return everywhere


@public("", method="index_reduce_")
def index_reduce_(
    self: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of `index_reduce`."""
    everywhere = _rows_everywhere(self, dim, index, source, reduce)
    if source._cell is self._cell:
        check_overlap(self._array, source._array, False)
    made: Tensor = _INDEX_REDUCTIONS[reduce][1](self, dim, everywhere, source, reduce, include_self)
    return made


# The flattened tensor -----------------------------------------------------------------------------


def _check_flat(name: str, x: Any, index: Any) -> None:
    if index.dtype != _INT64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {kernels.name_of(index)}")
    if index.size and not x.size:
        raise IndexError(f"{name}(): tried to {name} from an empty tensor")
    bad = index[(index < -x.size) | (index >= x.size)]
    if bad.size:
        raise IndexError(
            f"out of range: tried to access index {int(bad.reshape(-1)[0])} on a tensor of {x.size} elements."
        )


@public(method=True, out="take")
@op(x=lambda g, x_shape, index: _taken_back(g, x_shape, index), index=None)
def take(x: Any, index: Any) -> Any:
    """Return the elements of the flattened tensor at `index` (int64, any shape).

    Raises:
        IndexError: an index is out of range.

    Example:
        >>> torch.take(torch.tensor([[4, 3, 5], [6, 7, 8]]), torch.tensor([0, 2, 5]))
        tensor([4, 5, 8])
    """
    _check_flat("take", x, index)
    return kernels.flat(x).take(kernels.flat(index)).reshape(index.shape)


@op(x=lambda g, index: take(g, index), index=None, name="TakeBackward")
def _taken_back(x: Any, shape: tuple[int, ...], index: Any) -> Any:
    out = np.zeros(shape, x.dtype, like=x)
    kernels.add_at(out, index, x)
    return out


def _put_x(g: Tensor, index: Tensor, accumulate: bool) -> Tensor:
    if accumulate:
        return g
    zeros = wrap(np.zeros(index._array.shape, g._array.dtype, like=g._array))
    return _put[0](g, index, zeros, False)


@writing(
    names=("PutBackward0",), prepare=_copy_in_order, x=_put_x, index=None,
    source=lambda g, index, source_shape: reshape(take(g, index), source_shape),
)  # fmt: skip
def _put(x: Any, index: Any, source: Any, accumulate: bool) -> None:
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.size}, index.numel() = {index.size}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {kernels.name_of(x)} and "
            f"source.dtype = {kernels.name_of(source)}"
        )
    _check_flat("put", x, index)
    places, values = kernels.flat(index), kernels.flat(source)
    target = x if x.flags.c_contiguous else x.copy("C")
    if accumulate:
        np.add.at(kernels.flat(target), places, values)
    else:
        kernels.flat(target)[places] = values
    if target is not x:
        x[...] = target


@public(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with `source` written (or added) at `index` of the flattened tensor.

    Example:
        >>> torch.put(torch.zeros(2, 2), torch.tensor([0, 3]), torch.tensor([1.0, 2.0]))
        tensor([[1., 0.],
                [0., 2.]])
    """
    return _put[0](input, index, source, accumulate)


@public("", method="put_")
def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `put`."""
    return _put[1](self, index, source, accumulate)


@public(method=True, out="gather")
@axis_is_dim
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """Return the elements at `indices` along a dimension, the other dimensions broadcasting; flattened without `dim`.

    Raises:
        RuntimeError: the numbers of dimensions differ, or the indices are not int64.

    Example:
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, torch.argsort(x, dim=1), dim=1)
        tensor([[1, 3],
                [2, 4]])
    """
    check_tensor(input, "take_along_dim")
    check_tensor(indices, "take_along_dim", "indices", 2)
    shape, wanted = input._array.shape, indices._array.shape
    if dim is not None and len(shape) != len(wanted):
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{len(shape)} dimensions for input, and {len(wanted)} dimensions for indices"
        )
    if indices._array.dtype != _INT64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {kernels.name_of(indices._array)}"
        )
    if dim is None:
        return gather(reshape(input, (-1,)), 0, reshape(indices, (-1,)))
    axis = axis_of(dim, len(shape), "take_along_dim")
    if not shape:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    places = indices._array
    length = shape[axis]
    if length and places.size and not 0 <= places.min() <= places.max() < length:
        indices = wrap(places % length)  # as PyTorch: what is out of range begins anew
    common = [max(n, m) if 0 not in (n, m) else 0 for n, m in zip(shape, wanted, strict=True)]
    sizes, reached = list(common), list(common)
    sizes[axis], reached[axis] = shape[axis], wanted[axis]
    return gather(expand(input, sizes), axis, expand(indices, reached))


# Masks --------------------------------------------------------------------------------------------


def _check_mask(name: str, mask: Any) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"{name}_ only supports boolean masks, but got mask with dtype {_C_NAMES.get(mask.dtype.name, 'unknown')}"
        )


_C_NAMES = {
    "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "float32": "float", "float64": "double",
}  # fmt: skip


def _wide_copy(x: Any, mask: Any, *_: Any) -> Any:
    """Return a copy of `x` in the shape that it and the mask broadcast to."""
    if x.shape == mask.shape:
        return x.copy("C")
    return kernels.broadcast(x, mask)[0].copy("C")


def _check_fit(x: Any, mask: Any) -> None:
    shape = np.broadcast_shapes(x.shape, mask.shape)
    if shape != x.shape:
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")


@writing(
    names=("MaskedFillBackward0", "MaskedFillBackward1"),
    prepare=_wide_copy,
    repeats=_deprecated_fill,
    reads={"mask": "same", "value": "any"},
    broadcasts=True,
    x=lambda g, mask: masked_fill(g, mask, 0),
    mask=None,
    value=lambda g, mask: _where(mask, g, 0.0).sum(),
)
def _masked_fill(x: Any, mask: Any, value: Any) -> None:
    _check_mask("masked_fill", mask)
    if mask.shape != x.shape:
        _check_fit(x, mask)
    fill_where(x, mask, _fitting(value, x))


@public(method=True)
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Return a copy with a number (or a tensor without dimensions) where the mask is true.

    Args:
        input: the tensor.
        mask: booleans that broadcast with it.
        value: what to write; it is cast to the dtype of `input`.

    Raises:
        RuntimeError: the mask is not boolean, or does not broadcast.

    Example:
        >>> torch.masked_fill(torch.tensor([1.0, -2.0]), torch.tensor([False, True]), 0)
        tensor([1., 0.])
    """
    return _masked_fill[isinstance(value, Tensor)][0](input, mask, _scalar("masked_fill", value))


@public("", method="masked_fill_")
def masked_fill_(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place version of `masked_fill`."""
    return _masked_fill[isinstance(value, Tensor)][1](self, mask, _scalar("masked_fill", value))


@public(method=True, out="index_select")
@op(x=lambda g, x_shape, mask: _unmasked(g, x_shape, mask), mask=None, broadcasts=True)
def masked_select(x: Any, mask: Any) -> Any:
    """Return the elements where the mask, which broadcasts with `x`, is true, in one dimension.

    Raises:
        RuntimeError: the mask is not boolean, or does not broadcast.

    Example:
        >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
        tensor([1, 3])
    """
    if mask.dtype.kind != "b":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    x, mask = kernels.broadcast(x, mask)
    return x[mask]


@op(x=lambda g, shape, mask: masked_select(expand(g, np.broadcast_shapes(shape, mask.shape)), mask), mask=None,
    name="MaskedSelectBackward")  # fmt: skip
def _unmasked(x: Any, shape: tuple[int, ...], mask: Any) -> Any:
    """Return zeros with `x` where the mask is true; `shape` is what was masked, before broadcasting."""
    out = np.zeros(np.broadcast_shapes(shape, mask.shape), x.dtype, like=x)
    out[np.broadcast_to(mask, out.shape)] = x
    return out


def _masked_source(g: Tensor, mask: Tensor, source_shape: tuple[int, ...]) -> Tensor:
    taken = masked_select(g, mask)
    size = int(np.prod(source_shape))
    if taken._array.size < size:
        taken = embed(taken, (size,), (slice(taken._array.size),))
    return reshape(taken, source_shape)


@writing(
    names=("MaskedScatterBackward0",),
    prepare=_wide_copy,
    reads="same",
    broadcasts=True,
    x=lambda g, mask: masked_fill(g, mask, 0),
    mask=None,
    source=_masked_source,
)
def _masked_scatter(x: Any, mask: Any, source: Any) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {kernels.name_of(mask)}"
        )
    if source.dtype != x.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got {kernels.name_of(x)} and "
            f"{kernels.name_of(source)}"
        )
    _check_fit(x, mask)
    wide = np.broadcast_to(mask, x.shape)
    count = int(np.count_nonzero(wide))
    if source.size < count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    x[wide] = kernels.flat(source)[:count]


@public(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Return a copy with the first elements of `source`, in order, where the mask is true.

    Example:
        >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([5.0, 6.0]))
        tensor([5., 0., 6.])
    """
    return _masked_scatter[0](input, mask, source)


masked_scatter_ = public("", method="masked_scatter_")(_masked_scatter[1])


@op(
    condition=None,
    x=lambda g, condition: _where(condition, g, 0.0),
    y=lambda g, condition: _where(condition, 0.0, g),
    broadcasts=True,
    name="Where",
)
def _where(condition: Any, x: Any, y: Any) -> Any:
    return where_(condition, x, y)


@public(out="where")
def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Return `input` where the condition is true and `other` elsewhere; alone, the places where it is true.

    Args:
        condition: booleans.
        input: a tensor or number; all three broadcast.
        other: a tensor or number.

    Returns:
        A tensor of the common shape and dtype; without `input` and `other`, `nonzero(condition, as_tuple=True)`.

    Raises:
        RuntimeError: the shapes do not broadcast, or the condition is not of booleans.
        TypeError: only one of `input` and `other` is given, or one is neither tensor nor number.

    Example:
        >>> x = torch.tensor([1.0, -2.0])
        >>> torch.where(x > 0, x, 0.0)
        tensor([1., 0.])
    """
    if (
        type(condition) is type(input) is type(other) is Tensor
        and condition._array.dtype is _BOOL
        and input._array.dtype is other._array.dtype
    ):  # the usual case
        try:
            return _where(condition, input, other)
        except RuntimeError:
            _check_broadcast(condition, input, other)
            raise
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if not (isinstance(condition, Tensor) and isinstance(input, _OPERANDS) and isinstance(other, _OPERANDS)):
        kinds = ", ".join(type(each).__name__ for each in (condition, input, other) if each is not None)
        raise TypeError(
            f"where() received an invalid combination of arguments - got ({kinds}), but expected (Tensor condition, "
            "Tensor or Number input, Tensor or Number other)"
        )
    kind = condition._array.dtype
    if kind.kind != "b":
        if kind != np.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor with dtype "
                f"{kernels.name_of(condition._array)}"
            )
        warnings.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead.",
            UserWarning, stacklevel=2,
        )  # fmt: skip
        condition = wrap(condition._array.astype(np.bool_))
    pair: list[Any] = [input, other]
    if not (isinstance(input, Tensor) and isinstance(other, Tensor) and input._array.dtype == other._array.dtype):
        ranked = [
            (each.dtype, 2 if each._array.ndim else 1) if isinstance(each, Tensor) else (dtypes.of_number(each), 0)
            for each in pair
        ]
        common = dtypes.result_dtype(*ranked)
        for i, each in enumerate(pair):
            if not isinstance(each, Tensor):
                pair[i] = wrap(np.asarray(each).astype(common.numpy))
            elif each.dtype is not common:
                pair[i] = each.to(common)
    try:
        return _where(condition, *pair)
    except RuntimeError:
        _check_broadcast(condition, *pair)
        raise


def _check_broadcast(*tensors: Tensor) -> None:
    try:
        np.broadcast_shapes(*[each._array.shape for each in tensors])
    except ValueError:
        from_shapes: tuple[int, ...] = ()
        for each in tensors:
            have = each._array.shape
            for back in range(1, min(len(from_shapes), len(have)) + 1):
                if from_shapes[-back] != have[-back] and 1 not in (from_shapes[-back], have[-back]):
                    raise RuntimeError(
                        f"The size of tensor a ({from_shapes[-back]}) must match the size of tensor b ({have[-back]}) "
                        f"at non-singleton dimension {max(len(from_shapes), len(have)) - back}"
                    ) from None
            from_shapes = np.broadcast_shapes(from_shapes, have)


def where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Return this tensor where the condition is true and `other` elsewhere; see `where`."""
    return where(condition, self, other)


@public(method=True, out="nonzero")
def nonzero(input: Tensor, *, out: Any = None, as_tuple: bool = False) -> Any:
    """Return the indices of all elements that are not zero.

    Args:
        input: the tensor.
        out: where the function writes its result, if that is no tuple; the method has no `out`.
        as_tuple: return a tuple of vectors, one per dimension, fit for indexing.

    Returns:
        An int64 tensor of shape (number of elements that are not zero, ndim), or the tuple.

    Example:
        >>> torch.nonzero(torch.tensor([[1, 0], [0, 2]]))
        tensor([[0, 0],
                [1, 1]])
    """
    check_tensor(input, "nonzero")
    if type(as_tuple) is not bool:
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {type(as_tuple).__name__}")
    if out is not None:  # the function's is seen to in `ops/out.py`
        raise TypeError('nonzero() missing 1 required positional arguments: "as_tuple"')
    array = input._array
    if not array.ndim and not as_tuple:
        return wrap(np.zeros((int(bool(array)), 0), _INT64, like=array))
    # In memory, as PyTorch's, the indices of one dimension after those of another.
    found = np.stack(np.nonzero(array if array.ndim else array[None]))
    return tuple([wrap(each) for each in found]) if as_tuple else wrap(found.T)


@public(method=True, out="nonzero")
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """Return the indices of the first `size` elements that are not zero; `fill_value` where there are fewer.

    Raises:
        RuntimeError: `size` is negative.

    Example:
        >>> torch.nonzero_static(torch.tensor([1, 0, 2]), size=3)
        tensor([[ 0],
                [ 2],
                [-1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    found = nonzero(input)._array
    out = np.full_like(found, fill_value, shape=(size, found.shape[1]), order="C")
    out[: len(found)] = found[:size]
    return _wrapped(out)


@public(method=True)
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of all elements that are not zero, one row for each; see `nonzero`.

    Example:
        >>> torch.argwhere(torch.tensor([[0, 1], [2, 0]]))
        tensor([[0, 1],
                [1, 0]])
    """
    return nonzero(input)


# Sorting ------------------------------------------------------------------------------------------


def _placed(g: Any, x_shape: tuple[int, ...], dim: int, out1: Tensor) -> Tensor:
    """Return zeros with the gradients of the sorted elements where these came from."""
    if not x_shape:
        return g[0] if g[0]._array.size else wrap(np.zeros((), g[0]._array.dtype, like=g[0]._array))
    return _scattered(g[0], x_shape, dim, out1, True)


def _sorter(name: str, node_name: str) -> Callable[[Callable[..., Any]], Any]:
    """Declare an op that returns elements in order, and their indices."""
    return op(x=_placed, outputs=2, nondiff=(1,), name=node_name, result=getattr(return_types, name))


@_sorter("sort", "Sort")
def _sort(x: Any, dim: int, descending: bool) -> Any:
    return kernels.sort(x, dim, descending)


@_sorter("sort", "Sort")
def _sort_stable(x: Any, dim: int, descending: bool) -> Any:
    return kernels.sort(x, dim, descending)


_sort_stable.op.node_class.__name__ = "SortBackward1"


@_sorter("topk", "Topk")
def _topk(x: Any, k: int, dim: int, largest: bool) -> Any:
    return kernels.topk(x, k, dim, largest)


@public(method=True, out="exact")
@axis_is_dim
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None) -> Any:
    """Return the elements sorted along a dimension, and their indices, as a named tuple `(values, indices)`.

    Args:
        input: the tensor.
        dim: the dimension.
        descending: the largest first.
        stable: equal elements keep their order; here they always do.

    Example:
        >>> torch.sort(torch.tensor([3, 1, 2])).indices
        tensor([1, 2, 0])
    """
    check_tensor(input, "sort")
    return (_sort if stable is None else _sort_stable)(input, dim, descending)


@public(method=True, out="exact")
@axis_is_dim
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """Return the indices that sort a tensor along a dimension; see `sort`.

    Example:
        >>> torch.argsort(torch.tensor([3.0, 1.0, 2.0]))
        tensor([1, 2, 0])
    """
    return sort(input.detach(), dim, descending)[1]


@public(method=True, out="exact")
def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first dimension.

    Example:
        >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
        tensor([[2, 1],
                [3, 4]])
    """
    return sort(input, 0)[0]


@public(method=True, out="exact")
@axis_is_dim
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """Return the k largest elements along a dimension, and their indices, as a named tuple `(values, indices)`.

    Which ones of equal elements are taken, and in what order, may differ from PyTorch.

    Args:
        input: the tensor.
        k: how many.
        dim: the dimension.
        largest: False for the k smallest.
        sorted: has no effect: they come in order.

    Raises:
        RuntimeError: there are fewer than k.

    Example:
        >>> torch.topk(torch.tensor([1, 4, 2]), 2).values
        tensor([4, 2])
    """
    check_tensor(input, "topk")
    return _topk(input, k if type(k) is int else int_of(k, "topk", "k"), dim, largest)


def _not_derived(name: str) -> Callable[[Any], Any]:
    """Return the formula of an op that has no derivative, in PyTorch's words."""

    def refuse(g: Any) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


@op(x=_not_derived("_unique2"), outputs=3, nondiff=(1, 2), name="Unique2")
def _unique2(x: Any, dim: None) -> Any:
    return kernels.unique(x, None)


@op(x=_not_derived("unique_dim"), outputs=3, nondiff=(1, 2), name="UniqueDim")
def _unique_dim(x: Any, dim: int) -> Any:
    return kernels.unique(x, dim)


@op(x=_not_derived("unique_consecutive"), outputs=3, nondiff=(1, 2), name="UniqueConsecutive")
def _unique_runs(x: Any, dim: int | None) -> Any:
    return kernels.unique_consecutive(x, dim)


@public(method=True)
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the different elements in ascending order; every NaN is different.

    Args:
        input: the tensor.
        sorted: has no effect: they come in order.
        return_inverse: return also, for each element, which one of the different ones it is.
        return_counts: return also how often each occurs.
        dim: compare whole parts along this dimension, not single elements.

    Returns:
        The tensor of different elements; a tuple with the inverse and the counts, where asked for.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    check_tensor(input, "unique")
    return _asked_for((_unique2 if dim is None else _unique_dim)(input, dim), return_inverse, return_counts)


@public(method=True)
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return one element of each run of equal ones; arguments as `unique`.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    check_tensor(input, "unique_consecutive")
    values, inverse, counts = _unique_runs(input, dim)
    return _asked_for((values, inverse, counts), return_inverse, return_counts)


def _asked_for(found: Sequence[Tensor], return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    results = (values, *([inverse] if return_inverse else []), *([counts] if return_counts else []))
    return results if len(results) > 1 else values


# Counting and searching ---------------------------------------------------------------------------


@public(method=True)
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each number from 0 on occurs in a vector, or the sums of the weights at each.

    Args:
        input: a vector of integers, none negative.
        weights: as many numbers, to be summed instead of counted.
        minlength: the least length of the result.

    Raises:
        RuntimeError: the input has negative numbers or other than one dimension.

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    check_tensor(input, "bincount")
    array = input._array
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if array.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{kernels.name_of(array)}'")
    if array.ndim != 1 or (array.size and array.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights._array.shape != array.shape and array.size:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None or not array.size:
        return wrap(np.bincount(array, minlength=minlength).astype(_INT64, copy=False))
    return _bincount(weights, array, minlength)


def _refuse_bincount(g: Any) -> Any:
    raise RuntimeError("derivative for aten::bincount is not implemented")


@op(weights=_refuse_bincount, name="NotImplemented")
def _bincount(weights: Any, places: Any, minlength: int) -> Any:
    total = np.bincount(places, weights, minlength)
    return total.astype(np.float32) if weights.dtype == np.float32 else total


_bincount.op.node_class.name = lambda self: "torch::autograd::NotImplemented"


@public(out="searchsorted")
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return where each value would have to be inserted to keep a sequence (or each row of it) in order.

    Args:
        sorted_sequence: ascending along the last dimension, (n,) or (*, n).
        input: the values: any shape for a vector, (*, m) for rows; or a number.
        out_int32: return int32 rather than int64.
        right: insert behind equal elements, not before.
        side: "left" or "right", another way to say so.
        sorter: indices that sort the sequence, which then need not be in order.

    Raises:
        RuntimeError: the shapes do not fit.

    Example:
        >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
        tensor([1, 3])
    """
    check_tensor(sorted_sequence, "searchsorted", "sorted_sequence")
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    sequence = sorted_sequence._array
    values = input._array if isinstance(input, Tensor) else np.asarray(input)
    if not sequence.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if sequence.ndim > 1 and not values.ndim:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we "
            f"got boundaries tensor dim({sequence.ndim}) and input value's dim(0) numel(1)"
        )
    if sequence.ndim > 1 and sequence.shape[:-1] != values.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(sequence.shape)} and input "
            f"value tensor {list(values.shape)}"
        )
    if sorter is not None:
        order = sorter._array
        if order.shape != sequence.shape:
            raise RuntimeError(
                "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
                f"{list(sequence.shape)} and got sorter tensor {list(order.shape)}"
            )
        if order.dtype != _INT64:
            raise RuntimeError(
                f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {kernels.name_of(order)}"
            )
        kernels.check_bounds(
            order, sequence.shape[-1], 0, RuntimeError, "torch.searchsorted(): sorter index out of range"
        )
        sequence = np.take_along_axis(sequence, order, -1)
    if values.dtype != sequence.dtype:
        rank = 0 if not isinstance(input, Tensor) else 2 if values.ndim else 1
        kind = dtypes.of_number(input) if rank == 0 else input.dtype
        common = dtypes.result_dtype((sorted_sequence.dtype, 2), (kind, rank)).numpy
        sequence, values = sequence.astype(common), values.astype(common)
    if sequence.dtype.kind == "b" and values.size:
        raise NotImplementedError("\"searchsorted_out_cpu\" not implemented for 'Bool'")
    found = as_array(kernels.search(sequence, values, right or side == "right"))
    return wrap(found.astype(np.int32 if out_int32 else _INT64, copy=False))


@public(out="searchsorted")
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Return for each value the bucket between the ascending boundaries that it falls into; see `searchsorted`.

    Args:
        input: the values, a tensor or a number.
        boundaries: a vector, in ascending order.
        out_int32: return int32, not int64.
        right: a value that is a boundary falls into the bucket above it, not below.

    Raises:
        RuntimeError: the boundaries are no vector.

    Example:
        >>> torch.bucketize(torch.tensor([1, 4, 9]), torch.tensor([2, 5]))
        tensor([0, 1, 2])
    """
    check_tensor(boundaries, "bucketize", "boundaries", 2)
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@public(out="exact")
@also_by(element="elements", test_element="test_elements")
def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Return whether each of `elements` is among `test_elements` (`invert`: is not).

    Args:
        elements, test_elements: tensors; one of them may be a number.
        assume_unique: a promise that no element comes twice in either, which changes nothing here.
        invert: return whether they are not.

    Raises:
        TypeError: neither is a tensor.

    Example:
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2]))
        tensor([False,  True, False])
    """
    if not isinstance(elements, Tensor) and not isinstance(test_elements, Tensor):
        raise TypeError(
            "isin() received an invalid combination of arguments - got "
            f"({type(elements).__name__}, {type(test_elements).__name__}), but expected a Tensor among them"
        )
    given, among = (each._array if isinstance(each, Tensor) else np.asarray(each) for each in (elements, test_elements))
    if given.dtype.kind == "b" or among.dtype.kind == "b":
        raise RuntimeError("Unsupported input type encountered for isin(): Bool")
    return wrap(as_array(np.isin(given, among, invert=invert)))


@public()
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return indices of a flattened tensor of `shape` as one index tensor per dimension.

    Args:
        indices: integers.
        shape: a tuple of ints, or one int.

    Raises:
        TypeError: the indices or the sizes are no integers.
        ValueError: a size is negative.

    Example:
        >>> torch.unravel_index(torch.tensor([3, 7]), (2, 4))
        (tensor([0, 1]), tensor([3, 3]))
    """
    check_tensor(indices, "unravel_index", "indices")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    array = indices._array
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if array.size and 0 in sizes:
        raise RuntimeError("ZeroDivisionError")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not sizes:
        return ()
    steps = np.asarray([int(np.prod(sizes[d + 1 :])) for d in range(len(sizes))], like=array)
    # As PyTorch: what is out of range begins anew, no error; and the indices lie side by side.
    found = array[..., None] // steps % np.asarray(sizes, like=array)
    return tuple([wrap(found[..., d]) for d in range(len(sizes))])
