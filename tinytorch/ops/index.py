"""Indexing: `x[...]`, writes to whole tensors, and the `index_*` ops on rows.

Basic indexing (ints, slices, None, ...) returns views, with one op per key; indexing by tensors returns copies.
Ops that write into a copy of their first argument are declared by `writing`, which also defines the in-place form.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.complex import OWN
from tinytorch.core.inplace import on_one_memory
from tinytorch.core.mode import Event, alike, local, short
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.view import announce, count_write, expanded, needs_grad, shared_places
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, places
from tinytorch.kernels import indexing as kernels
from tinytorch.kernels import shape as shapes
from tinytorch.kernels.checks import check_expands, fitting
from tinytorch.kernels.indexing import check_same_dtype, fitting_item
from tinytorch.kernels.meta import MetaArray, NotCopied, WithoutElements, copied
from tinytorch.kernels.silence import cast, quietly
from tinytorch.ops.arguments import check_elements, named, op_of
from tinytorch.ops.register import public
from tinytorch.ops.shape import aliased, expand, inserted, part, reshape, selected
from tinytorch.ops.writing import writing

_ALL = slice(None)
_INT64, _BOOL = np.dtype(np.int64), np.dtype(np.bool_)
_NUMBERS = (int, float, complex, np.number, np.bool_)
_OPERANDS = (Tensor, *_NUMBERS)


def _zeros(g: Tensor) -> Tensor:
    """Return the gradient of overwritten elements: zeros."""
    return constant(np.zeros(g._array.shape, g._array.dtype, like=g._array))


def _scalar(name: str, value: Any) -> Any:
    """Return `value`, or raise PyTorch's error unless it is a number or a 0-dim tensor."""
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
    """Return whether two tensors have the same elements in memory, so that copying one to the other is a no-op."""
    return y is x or (isinstance(y, Tensor) and places.same(x._array, y._array))


_copy = writing(
    moves=True, names=("CopyBackwards",), x=_zeros, y=lambda g: g, broadcasts=True, repeats=_same_places,
    reads="same",
)(kernels.copy)  # fmt: skip
_fill = writing(
    batch="filled",
    moves=True,
    names=("FillBackward2", "FillBackward3", "ZeroBackward0", "FillBackward0", "FillBackward1"),
    repeats=lambda x, value: not isinstance(value, Tensor),
    reads="any",
    x=_zeros,
    value=lambda g: g.sum(),
)(kernels.fill)


def _seen(*operands: Any) -> bool:
    """Return whether a write must go through its op: it is recorded or checked, or a mode is active."""
    state = local.state
    return (
        state.modes is not None
        or state.run is not None
        or (state.grad and any(isinstance(each, Tensor) and needs_grad(each) for each in operands))
    )


@public("", method="copy_")
def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `other`, broadcast to this tensor and cast to its dtype, into it and return it.

    Example:
        >>> torch.zeros(2, 2).copy_(torch.tensor([1, 2]))
        tensor([[1., 2.],
                [1., 2.]])
    """
    if isinstance(other, Tensor) and not _fits_into(other._array.shape, self._array.shape):
        check_expands(other._array.shape, self._array.shape)
    if not isinstance(other, Tensor):
        other = wrap(np.asarray(other))
    if other.is_complex() and not (self.is_complex() or self.dtype is dtypes.bool):
        warn("Casting complex values to real discards the imaginary part", once=True)
        other = other.real
    if other._cell is self._cell or _seen(self, other):
        return _copy[1](self, other)
    target, source = self._array, other._array
    if expanded(target) and not _same_places(self, other):
        raise shared_places()
    if target.itemsize == 1:
        source = dtypes.narrowed(source, target.dtype)
    quietly(np.copyto, target, source, "unsafe")  # (which refuses to copy from the meta device)
    count_write(self)
    return self


def _fits_into(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether an array of shape `given` broadcasts to `shape`."""
    return given == shape or (
        len(given) <= len(shape)
        and all(have in (1, want) for have, want in zip(given[::-1], shape[::-1], strict=False))
    )


@public(listed=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """Return a tensor like `input`, filled with a number or the value of a 0-dim tensor.

    Example:
        >>> torch.fill(torch.zeros(2), 7)
        tensor([7., 7.])
    """
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
    """Fill the tensor with a number or the value of a 0-dim tensor and return it.

    Example:
        >>> torch.zeros(2).fill_(7)
        tensor([7., 7.])
    """
    if isinstance(value, Tensor):
        _check_value(value)
        return _fill[1][1](self, value)
    if not isinstance(value, _NUMBERS):
        raise TypeError(
            f"fill_() received an invalid combination of arguments - got ({type(value).__name__}), but expected one "
            "of:\n * (Tensor value)\n * (Number value)"
        )
    if _seen(self):
        return _fill[0][1](self, value)
    self._array[...] = fitting(value, self._array)
    count_write(self)
    return self


@public(method=True)
def zero_(self: Tensor) -> Tensor:
    """Fill the tensor with zeros and return it."""
    if _seen(self):
        return _fill[2][1](self, 0)
    self._array[...] = 0
    count_write(self)
    return self


@public("", method="fill_diagonal_")
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number on the main diagonal of a matrix (or of a tensor whose dimensions are all equal)."""
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
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    setitem(self, keys, fitting(value, self._array))
    return self


def _wrapped(array: Any) -> Tensor:
    return wrap(array)


# Parsing of index keys ---------------------------------------------------------------------------


def _is_full(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _checked_slice(key: slice) -> slice:
    """Return the slice with bounds that are ints or None and a positive step."""
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
    warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        UserWarning,
    )  # fmt: skip


def _index_array(index: Tensor, input: Tensor) -> Any:
    """Return the array of an index tensor of `input`; raise PyTorch's error for a dtype that cannot index."""
    array = index._array
    if type(array) is MetaArray and type(input._array) is not MetaArray:
        raise RuntimeError("Tensor on device meta is not on the expected device cpu!")
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
    """Return a nested sequence of numbers or a NumPy array as an index array of int64 or bool."""
    if isinstance(index, (list, tuple)):
        index = [each.tolist() if isinstance(each, Tensor) else each for each in index]
    array = np.asarray(index)
    if array.dtype.kind in "US":
        raise TypeError("new(): invalid data type 'str'")
    if array.dtype == np.uint8 and array.ndim:
        _warn_of_bytes()
    if array.dtype.kind == "b" or array.dtype == np.uint8:
        return constant(array.astype(np.bool_))._array
    if array.dtype.kind == "O" and array.size:
        raise RuntimeError(f"Could not infer dtype of {type(array.reshape(-1)[0]).__name__}")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"new(): invalid data type '{array.dtype}'")
    return constant(array.astype(_INT64))._array


def _means_tuple(key: Any) -> bool:
    """Return whether a sequence is interpreted as a tuple of indices (deprecated in PyTorch)."""
    return len(key) < 32 and any(
        each is None or each is Ellipsis or isinstance(each, (Tensor, slice, list, tuple, range, str)) for each in key
    )


def _parsed(input: Tensor, key: Any) -> tuple[Any, tuple[Any, ...], Any]:
    """Split the key of `input[key]` into basic and advanced indexing.

    Returns:
        The view op for basic indexing (None if there is none), its key for NumPy, and for advanced indexing of the
        resulting view one index array or None per dimension (an empty tuple if there is none).
    """
    if type(key) is not tuple:
        if isinstance(key, (list, range)) and _means_tuple(key):
            warn(
                "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch "
                "2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, "
                "x[torch.tensor(seq)], which will result either in an error or a different result",
                UserWarning,
            )  # fmt: skip
            key = tuple(key)
        else:
            key = (key,)
    ndim = input._array.ndim
    steps: list[Any] = []
    indices: list[Any] = []
    step_op = aliased if len(key) != 1 or key[0] is Ellipsis else None
    used = 0  # number of dimensions indexed so far, as PyTorch counts them: 1 for any sequence
    ellipsis_at = None
    again_at = None  # a second Ellipsis
    uncounted = 0  # further dimensions indexed by masks that are sequences (`used` counts 1 for each)
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
        elif isinstance(each, (Tensor, list, tuple, range, str, np.ndarray)):
            array = _index_array(each, input) if isinstance(each, Tensor) else _from_sequence(each)
            is_tensor = isinstance(each, Tensor)
            used += not is_tensor
            if array.ndim == 0 and isinstance(array, WithoutElements) and type(array) is not MetaArray:
                steps.append(_ALL)  # (inside of `vmap`: the index of each example)
                indices.append(array)
                used += 1
                continue
            if array.ndim == 0:
                if array.dtype.kind == "b":
                    steps.append(None)
                    indices.append(np.zeros(int(array), _INT64))
                    step_op = inserted
                else:
                    steps.append(int(array))
                    step_op = selected
                    used += is_tensor
                continue
            count = array.ndim if array.dtype.kind == "b" else 1
            steps += [_ALL] * count
            indices.append(array)
            if is_tensor:
                used += count
            else:
                uncounted += count - 1
        elif isinstance(each, np.integer):
            steps.append(int(each))
            step_op = selected
            used += 1
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
                f"(got {_kind_name(each)})"
            )
    if used > ndim:
        # For a mask with too many dimensions the error is about its shape, not about the number of indices.
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
        for _ in range(used + uncounted - ndim):  # drop full slices beyond the last dimension
            if indices[-1] is None and isinstance(steps[-1], slice) and _is_full(steps[-1]):
                steps.pop()
                indices.pop()
    steps.append(Ellipsis)  # so that NumPy returns an array, not a scalar, if no dimension is left
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


@op(
    kernels.take,
    batch="index",
    name="Index",
    moves=True,
    holds="indices",
    x=lambda g, x_shape, indices: _put_back(g, x_shape, indices),
)
def _index(x: Any, indices: tuple[Any, ...]) -> Any: ...


_put_back = op_of(
    kernels.put_back, batch="put back", complex=OWN, name="IndexBackward", x=lambda g, indices: _index(g, indices)
)


def _kept(indices: tuple[Any, ...], recorded: bool) -> tuple[Any, ...]:
    """Return copies of the indices if the op is recorded: later writes to the indices must not affect backward."""
    if not recorded:
        return indices
    kept = tuple([None if each is None else each.copy() for each in indices])
    for mode in local.state.modes or ():
        for each, copy in zip(indices, kept, strict=True):
            if each is not None:
                mode.event(Event.COPIED, array=each, copy=copy)
    return kept


def _indexed(input: Tensor, indices: tuple[Any, ...]) -> Tensor:
    if type(input._array) is MetaArray and any(each is not None and each.dtype.kind == "b" for each in indices):
        raise NotCopied("the number of elements that a mask selects is not known of a tensor on the meta device")
    return _index(input, _kept(indices, local.state.grad and input.requires_grad))


@short("getitem", selected, part, inserted, _index)
def getitem(self: Tensor, key: Any) -> Tensor:
    """Return the elements selected by `key`: a view for ints, slices, None and ..., a copy for tensors."""
    kind = type(key)
    try:
        if kind is int:
            return selected(self, (key, ...))
        if kind is slice and key.step is None and self._array.ndim:
            return part(self, (_checked_slice(key),))
        if (
            kind is Tensor
            and (array := key._array).dtype is _INT64
            and type(array) is np.ndarray
            and array.ndim
            and self._array.ndim
        ):
            return _indexed(self, (array,))
        step_op, steps, indices = _parsed(self, key)
        if not indices:
            return step_op(self, steps)
        return _indexed(self if step_op is None else step_op(self, steps), indices)
    except IndexError as error:
        if "array" in str(error) or "axis" in str(error):
            raise kernels.translated(error, self._array.ndim) from None
        raise


@short("setitem", kernels.put)
def setitem(self: Tensor, key: Any, value: Any) -> None:
    """Write `value`, a number or a tensor that broadcasts, to the elements selected by `key`."""
    if not isinstance(value, _OPERANDS):
        raise TypeError(f"can't assign a {_kind_name_of(value)} to a {self.type()}")
    if key is False:
        return  # selects nothing
    try:
        step_op, steps, indices = _parsed(self, None if key is True else key)
        recorded = _seen(self, value)
        own = isinstance(value, Tensor) and on_one_memory(value, self)
        if not (recorded or own or 0 in self._array.strides):
            _write_directly(self, step_op, steps, indices, value)  # nothing to record, no view needed
            return
        whole = step_op is None or _takes_all(steps, self._array.shape)
        target = self if whole else step_op(self, steps)
        if not isinstance(value, Tensor):
            value = constant(cast(np.asarray(fitting_item(value, target._array)), target._array.dtype))
        if not indices:
            shape = value._array.shape
            if shape or not target._array.ndim:
                _copy[1](target, _expanded(value, target._array.shape))
            else:
                _fill[1][1](target, value)
            return
        if own and _is_fill(indices, value):
            value = value.clone()  # read the number before the write changes it
        value = _without_leading_ones(value, target._array, indices)
        _index_put[1](target, _kept(indices, recorded), value, False)
    except IndexError as error:
        if "array" in str(error) or "axis" in str(error):
            raise kernels.translated(error, self._array.ndim) from None
        raise


def delitem(self: Tensor, key: Any) -> None:
    """Raise TypeError: elements of a tensor cannot be deleted."""
    raise TypeError("Tensor does not support deleting items")


def _takes_all(steps: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    """Return whether a basic key selects all elements in order, e.g. `x[:]`."""
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
            check_same_dtype(region, given, indices, False)
        else:
            given = fitting_item(value, region, indices)
        quietly(kernels.put, region, indices, given, False)
        count_write(self)
        return
    if isinstance(value, Tensor):
        given = value._array
        while given.ndim > region.ndim and given.shape[0] == 1:
            given = given[0, ...]
        if given.shape != region.shape:
            given = shapes.expand(given, region.shape)
        if type(given) is MetaArray:
            copied(given, region)
    else:
        given = fitting_item(value, region)
    if region.itemsize == 1:
        given = dtypes.narrowed(given, region.dtype)
    if type(given) in (float, int) and given and region.dtype.kind == "f":
        given = dtypes.number(given, region.dtype)
    if type(given) in (float, int, bool) or getattr(given, "dtype", None) is region.dtype:
        region[...] = given
    else:
        quietly(operator.setitem, region, ..., given)
    count_write(self)


def _expanded(value: Tensor, shape: tuple[int, ...]) -> Tensor:
    given = value._array.shape
    if given == shape:
        return value
    while len(given) > len(shape) and given[0] == 1:
        given = given[1:]
    return expand(value if given == value._array.shape else reshape(value, given), shape)


def _without_leading_ones(value: Tensor, target: Any, indices: tuple[Any, ...]) -> Tensor:
    """Return `value` without the leading dimensions of size 1 that exceed the rank of `target[indices]`."""
    given = value._array.shape
    if len(given) <= 1 or given[0] != 1:
        return value
    ndim = target[kernels.key_of(indices)].ndim
    while len(given) > ndim and given[0] == 1:
        given = given[1:]
    return value if given == value._array.shape else reshape(value, given)


def _index_put_x(g: Tensor, indices: tuple[Any, ...], accumulate: bool) -> Tensor:
    if accumulate:
        return g
    return _index_put[0](g, indices, constant(np.zeros((), g._array.dtype, like=g._array)), False)


def _is_fill(indices: tuple[Any, ...], value: Tensor) -> bool:
    """Return whether a single element is written to a mask."""
    return value._array.size == 1 and kernels.is_mask(indices)


def _deprecated(name: str, example: str) -> Callable[..., bool]:
    """Return a `repeats` rule that allows writes to expanded memory with PyTorch's warning."""

    def allowed(*values: Any) -> bool:
        warn(
            f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this "
            f"operation. This also applies to advanced indexing e.g. {example}",
            UserWarning,
        )  # fmt: skip
        return True

    return allowed


_deprecated_fill = _deprecated("masked_fill_", "tensor[mask] = scalar")
_deprecated_put = _deprecated("index_put_", "tensor[indices] = tensor")


def _deprecated_fill_or_put(x: Tensor, indices: tuple[Any, ...], y: Tensor, accumulate: bool) -> bool:
    _deprecated_put()
    return accumulate or not _is_fill(indices, y) or _deprecated_fill()


_index_put = writing(
    batch="index put",
    complex=OWN,
    refuses="index_put",
    names=("IndexPutBackward0",),
    prepare=kernels.copy_in_order,
    repeats=_deprecated_fill_or_put,
    x=_index_put_x,
    y=lambda g, indices: _index(g, indices),
    broadcasts=True,
)(kernels.index_put)


def _tensor_indices(name: str, input: Tensor, indices: Any) -> tuple[Any, ...]:
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise TypeError(
            f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}"
        )
    check_elements(indices)
    if len(indices) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(indices)})")
    arrays = tuple([_index_array(each, input) for each in indices])
    if any(each.dtype.kind == "i" and each.itemsize < 4 for each in arrays):
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return _kept(arrays, local.state.grad)


@public(method=True)
@short("index_put", _index_put[0])
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy with `values` written at `indices`, as `x[indices] = values` does.

    `indices` is a tuple of index tensors or masks; the values have the dtype of `input` and broadcast to the shape of
    `input[indices]`. `accumulate` adds them instead of writing; values for the same element add up.

    Example:
        >>> torch.index_put(torch.zeros(3), (torch.tensor([0, 0]),), torch.ones(2), accumulate=True)
        tensor([2., 0., 0.])
    """
    return _index_put[0](input, _tensor_indices("index_put", input, indices), values, accumulate)


@public(method=True)
@short("index_put", _index_put[1])
def index_put_(self: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of `index_put`."""
    alike = [each._array for each in indices if isinstance(each, Tensor) and each._cell is self._cell is not None]
    if any(np.may_share_memory(each, self._array) for each in alike):
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )
    return _index_put[1](self, _tensor_indices("index_put_", self, indices), values, accumulate)


# Rows along a dimension ---------------------------------------------------------------------------


@public(method=True, out="index_select")
@op(
    kernels.select_rows, batch="rows",
    moves=True, x=lambda g, x_shape, dim, index: _rows_back(g, x_shape, dim, index),
    index=None,
)  # fmt: skip
def index_select(x: Any, dim: int, index: Any) -> Any:
    """Return the slices of `x` along a dimension at the indices of a vector (n,), which are not negative.

    Example:
        >>> torch.index_select(torch.arange(6).view(2, 3), 1, torch.tensor([2, 0]))
        tensor([[2, 0],
                [5, 3]])
    """


_rows_back = op_of(
    kernels.rows_back,
    batch="rows",
    complex=OWN,
    name="IndexSelectBackward",
    x=lambda g, dim, index: index_select(g, dim, index),
    index=None,
)


def _index_add_source(g: Tensor, dim: int, index: Tensor, source_shape: tuple[int, ...], alpha: Any) -> Tensor:
    rows = index_select(g, dim, index)
    rows = rows if rows._array.shape == source_shape else reshape(rows, source_shape)
    return rows if alpha == 1 else rows * alpha


_index_add = writing(
    batch="rows",
    complex=OWN,
    refuses="index_add_",
    names=("IndexAddBackward0",),
    x=lambda g: g,
    index=None,
    source=_index_add_source,
)(kernels.index_add)


def _alpha_last(function: Any, name: str, doc: str) -> Any:
    @short("at_most", function, 4)
    def call(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
        return function(input, dim, index, source, alpha)

    return named(call, name, doc)


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


_index_copy = writing(
    batch="rows",
    complex=OWN,
    refuses="index_copy_cpu",
    names=("IndexCopyBackward0",),
    x=lambda g, dim, index: index_fill(g, dim, index, 0),
    index=None,
    source=lambda g, dim, index, source_shape: reshape(index_select(g, dim, index), source_shape),
)(kernels.index_copy)


@public(method=True, out="gather", autocast="widest")
@alike(_index_copy[0])
def index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Return a copy in which the rows at `index` along `dim` are replaced by the rows of `source`.

    `index` is an int64 vector; for a repeated index the last of its rows is written. `source` has the shape of `input`,
    except that its size in `dim` is the length of the index.

    Example:
        >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2]), torch.tensor([5.0]))
        tensor([0., 0., 5.])
    """
    return _index_copy[0](input, dim, index, source)


index_copy_ = public("", method="index_copy_")(_index_copy[1])


_index_fill = writing(
    batch="rows",
    complex=OWN,
    refuses="index_fill_cpu",
    names=("IndexFillBackward0", "IndexFillBackward1"),
    prepare=kernels.copy_in_order,
    repeats=_deprecated("index_fill_", "tensor[mask] = scalar"),
    reads={"value": "any"},
    x=lambda g, dim, index: index_fill(g, dim, index, 0),
    index=None,
    value=lambda g, dim, index: _filled_sum(g, dim, index) if g._array.ndim else g,
)(kernels.index_fill)


def _filled_sum_x(g: Tensor, x_shape: tuple[int, ...], dim: int, index: Tensor) -> Tensor:
    return _index_fill[1][0](constant(np.zeros(x_shape, g._array.dtype, like=g._array)), dim, index, g)


def _sum_once(x: Tensor, dim: int, index: Any) -> Any:
    """Return the sum of the rows, each counted once, in Tensor code, by which `vmap` computes it."""
    if type(index) is not Tensor:
        return NotImplemented
    return index_select(x, dim, (index % max(x.shape[dim], 1)).unique()).sum() if x.ndim else x.clone()


_filled_sum = op_of(kernels.filled_sum, batch=_sum_once, complex=OWN, name="Sum", x=_filled_sum_x, index=None)


@public(method=True)
@short("of_value", *[function for function, _ in _index_fill], True)
def index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Return a copy with the rows at `index`, an int64 vector, along `dim` filled with a number (or a 0-dim tensor).

    Example:
        >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 7)
        tensor([7., 0., 7.])
    """
    return _index_fill[isinstance(value, Tensor)][0](input, dim, index, _scalar("index_fill", value))


@public("", method="index_fill_")
@short("of_value", *[function for _, function in _index_fill], True)
def index_fill_(self: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """In-place version of `index_fill`."""
    return _index_fill[isinstance(value, Tensor)][1](self, dim, index, _scalar("index_fill", value))
