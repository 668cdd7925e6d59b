"""Tensors from numbers, arrays and shapes: `tensor`, `zeros`, `full`, ….

Autograd records none of these functions except copies of tensors in `as_tensor` and `asarray`. The parameter `layout`
chooses a sparse layout in `empty` and `zeros`; elsewhere tensors are strided. `pin_memory` has no effect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from tinytorch.core.deterministic import mode as deterministic
from tinytorch.core.deterministic import unwritten
from tinytorch.core.device import chosen, cpu, defaults
from tinytorch.core.device import device as Device
from tinytorch.core.layout import layout as Layout
from tinytorch.core.layout import strided
from tinytorch.core.mode import Event, local, short, tell_of_reading
from tinytorch.core.supplied import batching, dlpack, sparse
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import expanded, shared_places
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, layouts, meta, places
from tinytorch.kernels.checks import MOST_DIMENSIONS, too_many_dimensions
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.kernels.limits import fits, limits_of
from tinytorch.kernels.programs import copy_into
from tinytorch.kernels.silence import cast, quietly
from tinytorch.ops.arguments import named
from tinytorch.ops.register import public

Array = Any


# Shared helpers -----------------------------------------------------------------------------------


def shape_of(name: str, sizes: tuple[Any, ...], size: Any = None) -> tuple[int, ...]:
    """Return the shape from separate sizes, one sequence of sizes, or the keyword `size`."""
    if size is not None:
        sizes = (size,)
    elif len(sizes) == 1 and type(sizes[0]) is int and 0 <= sizes[0] < 1 << 60:
        return sizes
    if not sizes:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    first = sizes[0]
    usual = first if type(first) is tuple and len(sizes) == 1 else sizes
    plain = {*map(type, usual)} == {int} and min(usual) > 0
    if plain and len(usual) <= MOST_DIMENSIONS and math.prod(usual) < 1 << 60:  # the most frequent case
        return usual
    if isinstance(first, (tuple, list)) and len(sizes) == 1:
        sizes = tuple(first)
    elif not is_index(first):
        raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(first).__name__}")
    for position, each in enumerate(sizes, 1):
        if type(each) is not int and not is_index(each):
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {position} with error "
                f'"type must be tuple of ints,but got {type(each).__name__}"'
            )
    shape = tuple(map(int, sizes))
    if shape and min(shape) < 0:
        if name == "zeros":
            raise RuntimeError(f"zeros: Dimension size must be non-negative, got {list(shape)}")
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    count = math.prod(shape)
    if count >= 1 << 60:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if len(shape) > MOST_DIMENSIONS:
        raise too_many_dimensions(len(shape))
    if not count and math.prod([length or 1 for length in shape]) >= 1 << 59:
        if math.prod([length or 1 for length in shape[1:]]) >= 1 << 63:
            raise RuntimeError("Stride calculation overflowed")
        raise NotImplementedError(
            f"a tensor without elements of the sizes {list(shape)} cannot be made: as for NumPy's arrays, the product "
            "of the sizes other than 0 has to be below 2**59"
        )
    return shape


def is_index(value: Any) -> bool:
    """Return whether a value is an int, or an array or a tensor of one that Python takes for an int."""
    if isinstance(value, np.ndarray):
        return value.ndim == 0 and value.dtype.kind in "iu"
    if isinstance(value, Tensor):
        return value._array.size == 1 and value._array.dtype.kind in "iu"
    return _is_size(value)


def _is_size(value: Any) -> bool:
    if type(value) is int:
        return True
    if isinstance(value, Tensor):
        return value._array.ndim == 0 and value._array.dtype.kind in "iu"
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def blank(
    shape: tuple[int, ...],
    out: Tensor | None,
    dtype: Any,
    device: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    sequence: str = "",
) -> Tensor:
    """Return a tensor of `shape` for the caller to fill: a new tensor, or `out` resized to `shape`.

    `memory_format` is that of a new tensor; `sequence` is the name of a function that fills `out` in element order:
    `out` then keeps its shape if the number of elements matches.
    """
    on = checked_device(device, layout)
    if out is None:
        kind = (dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)).numpy
        if on is not cpu:
            return finished(_allocate(shape, kind, memory_format, meta.empty), requires_grad)
        array = np.empty(shape, kind) if memory_format is None else _allocate(shape, kind, memory_format)
        return finished(array, requires_grad)
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if dtype is not None and dtypes.as_dtype(dtype) is not out.dtype:
        raise RuntimeError(
            f"dtype {dtypes.as_dtype(dtype).tensor_name} does not match dtype of out parameter "
            f"({out.dtype.tensor_name})"
        )
    if out.requires_grad and local.state.grad:
        raise RuntimeError(
            "functions with out=... arguments don't support automatic differentiation, but one of "
            "the arguments requires grad."
        )
    if out._array.shape != shape and not (sequence and out._array.size == shape[0]):
        if out._array.size and sequence == "arange":
            warn(
                f"The number of elements in the out tensor of shape {list(out._array.shape)} is {out._array.size} "
                f"which does not match the computed number of elements {shape[0]}. Note that this may occur as a "
                f"result of rounding error. The out tensor will be resized to a tensor of shape ({shape[0]},)."
            )
        bring_to(out, shape)
    if sequence and expanded(out._array):
        raise shared_places()
    out._bump()
    return out


def bring_to(x: Tensor, shape: tuple[int, ...], order: Sequence[int] | None = None) -> None:
    """Resize `x` to a dense shape, within its storage from its storage offset, or in new memory if too small.

    `order` has the dimensions in the order of the memory, the outermost first; by default C order. Tensors that shared
    the old storage keep it, while in PyTorch they share the reallocated one.
    """
    array, count = x._array, math.prod(shape)
    order = range(len(shape)) if order is None else order
    lengths, back = tuple([shape[d] for d in order]), [order.index(d) for d in range(len(shape))]
    strides = tuple([math.prod(lengths[k + 1 :]) for k in range(len(shape))])
    view = x._view
    whole = places.storage(array)
    if (
        count
        and whole.dtype == array.dtype
        and places.storage_offset(array) + count <= whole.size
        and whole.flags.writeable
    ):
        x._array = places.at(array, (lengths, strides, 0)).transpose(back)
    else:
        x._array = np.empty_like(array, shape=lengths, order="C").transpose(back)
        if view is not None:  # `x` is no longer a view: it has new memory
            x._view, x._edge = None, None
            x._cell = None if x._cell is None else list(x._cell)
            return
    if view is not None:
        view.array = x._array


def written(x: Tensor, array: Array) -> Tensor:
    """Return `x`, an `out` whose new version is counted already, after writing an array of its shape into it."""
    for mode in local.state.modes or ():
        mode.event(Event.KNOWN, x=x)  # (it may have new memory)
        mode.event(Event.WROTE, function=copy_into, array=x._array, args=(array,), counts=True)
    copy_into(x._array, array)
    return x


def checked_device(device: Any, layout: Any = None) -> Device:
    """Return the device of a new tensor; raise an error for an unsupported device or layout."""
    if layout is not None and str(layout) != "torch.strided":
        raise NotImplementedError(f"tinytorch has strided tensors only, not {layout}")
    return chosen(device)


def finished(array: Array, requires_grad: bool = False, on: Device = cpu) -> Tensor:
    """Return `array` as a new leaf on a device."""
    made: Tensor = wrap(array if on is cpu or meta.is_meta(array) else meta.like(array))
    if requires_grad:
        if array.dtype.kind not in dtypes.DIFFERENTIABLE:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made._requires_grad = True
    for mode in local.state.modes or ():
        mode.event(Event.MADE, x=made)
    return made


def _allocate(shape: tuple[int, ...], kind: Any, memory_format: Any = None, empty: Any = np.empty) -> Array:
    """Return an uninitialized array of `shape` in PyTorch's memory format (None: contiguous)."""
    name = str(memory_format)
    if name == "torch.channels_last" or name == "torch.channels_last_3d":
        rank = 4 if name == "torch.channels_last" else 5
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {name[6:]} format")
        return np.moveaxis(empty((shape[0], *shape[2:], shape[1]), kind), -1, 1)
    if memory_format is not None and name not in ("torch.contiguous_format", "torch.preserve_format"):
        raise TypeError(f"argument 'memory_format' must be torch.memory_format, not {type(memory_format).__name__}")
    return empty(shape, kind)


def blank_like(
    name: str,
    input: Tensor,
    dtype: Any,
    device: Any = None,
    layout: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return an uninitialized tensor with the shape, dtype and dimension order in memory of `input`."""
    if hasattr(input, "_level"):  # (inside of `vmap`: what is written to it may differ between the examples)
        example: Any = input
        of_all = blank_like(name, example._under, dtype, device, layout, requires_grad, memory_format)
        return batching.batched(of_all, example._level)
    on = checked_device(input.device if device is None else device, layout)
    array = input._array
    if (on is cpu) is meta.is_meta(array):  # the array in the same layout on the other device
        array = meta.like(array) if on is not cpu else array.view(np.ndarray)
    kind = array.dtype if dtype is None else dtypes.as_dtype(dtype).numpy
    if memory_format is not None and str(memory_format) != "torch.preserve_format":
        empty = np.empty if on is cpu else meta.empty
        return finished(_allocate(array.shape, kind, memory_format, empty), requires_grad)
    return finished(layouts.empty_like(array, kind), requires_grad)


def number(name: str, argument: str, position: int, value: Any) -> Any:
    """Return a number, or the value of a 0-d tensor, as a Python number."""
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, Tensor) and value._array.ndim == 0:
        tell_of_reading(value)
        return value._array.item()
    if isinstance(value, (np.number, np.bool_)):
        return value.item()
    if not isinstance(value, (int, float, complex)):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Number, not {type(value).__name__}"
        )
    return value


# From data ----------------------------------------------------------------------------------------


def _short(name: str, filling: Any = None) -> Any:
    """Declare the twin of a creation function: see methods.c; the result is filled with a number, or not at all."""
    return short(name, filling, dtypes.default, defaults, cpu, deterministic)


@public(asks="modes", listed=False, traced="creates")
@_short("tensor")
def tensor(
    data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a new leaf tensor that holds a copy of `data`.

    `data` is a number, nested sequences of numbers, a NumPy array or scalar, or an object with `__array__`. The dtype
    is inferred from it by default, with Python floats as the default dtype. ValueError: sequences at the same depth
    differ in length; RuntimeError: a number does not fit into `dtype`.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> torch.tensor(1.5, dtype=torch.float64)
        tensor(1.5000, dtype=torch.float64)
    """
    on = checked_device(device)
    if isinstance(data, Tensor):
        _warn_copy("torch.tensor(sourceTensor)")
    return finished(_copied(data, dtype), requires_grad, on)


def _warn_copy(call: str) -> None:
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        f"or sourceTensor.detach().clone().requires_grad_(True), rather than {call}."
    )


def _copied(data: Any, dtype: Dtype | None) -> Array:
    """Return a copy of `data` as an array of `dtype`, or of the dtype inferred from the data."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    array = data._array if isinstance(data, Tensor) else _given_array(data)
    if array is not None:
        if kind in dtypes.FLOAT8:
            array = dtypes.narrowed(array, kind.numpy)
        return cast(array, array.dtype if kind is None else kind.numpy, order="K", copy=True)
    own, array = _numbers(data, kind)
    kind = own if kind is None else kind
    if kind.category == dtypes.INTEGER:
        _check_range(array, kind)
    if kind in dtypes.FLOAT8:
        array = dtypes.narrowed(array, kind.numpy)
    return cast(array, kind.numpy, copy=False)


def _given_array(data: Any) -> Array | None:
    """Return `data`, or the result of its `__array__`, as an array; None for numbers and sequences of numbers."""
    if isinstance(data, (bool, int, float, complex, list, tuple, str, bytes)):
        return None
    if isinstance(data, np.generic):
        data = np.asarray(data)
    elif not isinstance(data, np.ndarray):
        if not hasattr(data, "__array__") and not hasattr(data, "__dlpack__"):
            return None
        # An array of another library.
        data = np.asarray(data) if hasattr(data, "__array__") else dlpack.from_dlpack(data)._array
    dtypes.from_numpy_dtype(data.dtype)  # TypeError for an unsupported dtype
    if not data.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion "
            "between byte orders is currently not supported."
        )
    if any(stride < 0 for stride in data.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array with array.copy().)"
        )
    return data


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return True
    if isinstance(value, (Tensor, str, bytes, dict, set)):
        return False
    if isinstance(value, np.ndarray):
        return value.ndim > 0
    # An object with __array__ (another library's array, a NumPy scalar) counts as one number, like a tensor in a list.
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and not hasattr(value, "__array__")


_DEEPEST = 128  # limit on nesting depth, for lists that contain themselves


def _numbers(data: Any, wanted: Dtype | None) -> tuple[Dtype, Array]:
    """Return the inferred dtype of nested sequences of numbers, and an array of them in that dtype or a wider one.

    Ints become floats at once if `wanted` is a floating dtype, since they may exceed int64. One level of nesting is
    flattened at a time, so that `chain` and NumPy iterate over long lists instead of a Python loop.
    """
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    shape: list[int] = []
    level: Any = [data]
    while level and _is_sequence(level[0]):
        if all(isinstance(each, np.ndarray) for each in level):
            return _stacked(level, shape)
        length = len(level[0])
        for each in level:
            if not _is_sequence(each):
                if isinstance(each, (str, bytes)):
                    raise _invalid(each)
                raise TypeError("not a sequence")
            if len(each) != length and length > 0:
                raise ValueError(f"expected sequence of length {length} at dim {len(shape)} (got {len(each)})")
        shape.append(length)
        if len(shape) > _DEEPEST:
            raise ValueError(f"too many dimensions '{type(level[0]).__name__}'")
        if length == 0:
            level = []
        else:
            level = level[0] if len(level) == 1 else list(chain.from_iterable(level))
    kinds = set(map(type, level))
    if kinds <= {float, int, bool}:
        if float in kinds or not kinds or (wanted is not None and wanted.is_floating_point):
            if wanted is dtypes.uint64 and kinds:
                raise TypeError("an integer is required")
            return dtypes.get_default_dtype(), np.array(level, np.float64).reshape(shape)
        kind = dtypes.bool if int not in kinds else dtypes.uint64 if wanted is dtypes.uint64 else dtypes.int64
        try:
            return kind, np.array(level, kind.numpy).reshape(shape)
        except OverflowError:
            if kind is dtypes.uint64:
                wrong = "can't convert negative int to unsigned" if min(level) < 0 else "int too big to convert"
                raise OverflowError(wrong) from None
            raise ValueError("Overflow when unpacking long long") from None
    return _mixed(level, shape, wanted)


def _stacked(level: Any, shape: list[int]) -> tuple[Dtype, Array]:
    """Stack the arrays at the innermost level of nested sequences; `shape` is the shape of the nesting."""
    warn(
        "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
        "single numpy.ndarray with numpy.array() before converting to a tensor.",
        once=True,
    )
    for each in level:
        if each.shape != level[0].shape:
            raise ValueError(f"expected sequence of length {level[0].shape[0]} at dim {len(shape)} (got {len(each)})")
    array = np.stack(level)
    return dtypes.from_numpy_dtype(array.dtype), array.reshape(*shape, *array.shape[1:])


def _mixed(level: Any, shape: list[int], wanted: Dtype | None) -> tuple[Dtype, Array]:
    """Return numbers of mixed types, perhaps tensors, as an array of their promoted dtype; `wanted` is for errors."""
    kind = None
    numbers = []
    for each in level:
        if isinstance(each, Tensor) or (hasattr(each, "__array__") and not isinstance(each, np.generic)):
            array = each._array if isinstance(each, Tensor) else np.asarray(each)
            if array.size != 1:
                if array.dtype.kind in "iub":
                    raise TypeError("only integer tensors of a single element can be converted to an index")
                raise ValueError("only one element tensors can be converted to Python scalars")
            own, value = dtypes.from_numpy_dtype(array.dtype), array.item()
        elif isinstance(each, (np.number, np.bool_)):
            own, value = dtypes.from_numpy_dtype(each.dtype), each.item()
        elif isinstance(each, (int, float, complex)):
            own, value = dtypes.of_number(each), each
        else:
            raise _invalid(each, level[0], kind, wanted)
        kind = own if kind is None else dtypes.promote_types(kind, own)
        numbers.append(value)
    assert kind is not None
    if kind.is_complex:
        if wanted is not None and not wanted.is_complex:
            raise TypeError("must be real number, not complex")
        return kind, np.array(numbers, np.complex128).reshape(shape)
    return kind, np.array(numbers, kind.numpy).reshape(shape)


def _invalid(value: Any, first: Any = None, kind: Dtype | None = None, wanted: Dtype | None = None) -> Exception:
    """Return PyTorch's error for a value in the data that is not a number."""
    name = type(value).__name__
    if isinstance(value, str) and value is first:
        return ValueError("too many dimensions 'str'")
    if isinstance(value, (str, bytes)) and wanted is None:
        return TypeError(f"new(): invalid data type '{name}'")
    if isinstance(value, complex):
        return TypeError(f"must be real number, not {name}")
    if _is_sequence(value) or wanted is not None:
        kind = wanted or kind
        if kind is not None and kind.is_floating_point:
            return TypeError(f"must be real number, not {name}")
        return TypeError(f"'{name}' object cannot be interpreted as an integer")
    return RuntimeError(f"Could not infer dtype of {name}")


def _check_range(array: Array, kind: Dtype) -> None:
    """Raise an error for numbers out of the range of integer `kind`, which for unsigned dtypes starts at -max."""
    if array.size == 0 or array.dtype == kind.numpy or array.dtype.kind == "b":
        return
    least, greatest = limits_of(kind)
    if not kind.is_signed and array.dtype.kind != "f":
        least = -greatest
    # `not … <=` rather than `>`, so that NaN raises, too.
    if not least <= array.min().item() or not array.max().item() <= greatest:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")


@public(asks="modes", listed=False, traced="creates")
@_short("as_tensor")
def as_tensor(data: Any, dtype: Dtype | None = None, device: Any = None) -> Tensor:
    """Return `data` as a tensor, sharing its memory where possible.

    `data` is as for `tensor`; a tensor of the right dtype is returned unchanged, and a NumPy array's memory is shared.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> torch.as_tensor(array)[0] = 1
        >>> array
        array([1., 0.])
    """
    on = checked_device(device)
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(data, Tensor):
        return data.to(device, kind) if device is not None else data if kind is None else data.to(kind)
    array = _given_array(data)
    if array is None:
        return finished(_copied(data, kind), on=on)
    if isinstance(data, np.generic):
        array = array.copy()
    _warn_read_only(array)
    return finished(array if kind is None else cast(array, kind.numpy, copy=False), on=on)


@public(listed=False, traced="refused")
def asarray(
    obj: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """Return `obj` as a tensor.

    `obj` is a tensor, storage, NumPy array, number, nested sequences of numbers, or an object that supports the buffer
    protocol (`bytes` …), whose bytes are read as elements of `dtype`. True as `copy` always copies, False never copies
    (ValueError if it cannot be avoided), None shares memory where possible. `requires_grad` is by default as for `obj`.

    Example:
        >>> torch.asarray([1.0, 2.0])
        tensor([1., 2.])
    """
    on = checked_device(device)
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if isinstance(obj, Tensor):
        made = obj if device is None else obj.to(device)
        if kind is not None and kind is not obj.dtype:
            if copy is False:
                raise _no_alias(obj.dtype, kind)
            made = obj.to(kind)
        elif copy:
            made = obj.clone()
        if requires_grad is None and obj.requires_grad:
            warn(
                "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
                "requires_grad=False explicitly to get the old behavior and silence this warning."
            )
        if requires_grad is None or made.requires_grad == requires_grad:
            return made
        return made.detach().requires_grad_(requires_grad)
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    array = obj._array if hasattr(obj, "untyped") else _given_array(obj)  # (a storage: its memory is shared)
    if array is None and _has_buffer(obj):
        array = frombuffer(obj, dtype=dtypes.get_default_dtype() if kind is None else kind)._array
    if array is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return finished(_copied(obj, kind), bool(requires_grad), on)
    own = dtypes.from_numpy_dtype(array.dtype)
    if kind is not None and kind is not own:
        if copy is False:
            raise _no_alias(own, kind)
        array = cast(array, kind.numpy)
    elif copy or isinstance(obj, np.generic):
        array = array.copy()
    else:
        _warn_read_only(array)
    return finished(array, bool(requires_grad), on)


def _no_alias(own: Dtype, kind: Dtype) -> ValueError:
    return ValueError(f"can't alias tensor with dtype '{own.tensor_name}' into dtype '{kind.tensor_name}'.")


def _has_buffer(obj: Any) -> bool:
    if isinstance(obj, (bool, int, float, list, tuple, str)):
        return False
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _warn_read_only(array: Array) -> None:
    if not array.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You "
            "may want to copy the array to protect its data or make it writable before converting "
            "it to a tensor. This type of warning will be suppressed for the rest of this program.",
            once=True,
        )


@public(asks="nobody", traced="refused")
@_short("from_numpy")
def from_numpy(ndarray: Array, /) -> Tensor:
    """Return a tensor that shares the memory of a NumPy array: writes to either show in both.

    Example:
        >>> import numpy as np
        >>> torch.from_numpy(np.arange(3))
        tensor([0, 1, 2])
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    array = _given_array(ndarray)
    _warn_read_only(array)
    return finished(array)


@public(listed=False, traced="refused")
def frombuffer(buffer: Any, *, dtype: Dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a one-dimensional tensor that shares the memory of an object with the buffer protocol.

    `count` is the number of elements, negative for all, and `offset` the number of bytes to skip at the start.
    ValueError: the buffer is too small, or its length is not a multiple of the element size.

    Example:
        >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    kind = dtypes.as_dtype(dtype)
    try:
        view = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, item = view.nbytes, kind.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0 and offset + count * item > length:
        raise ValueError(
            f"requested buffer length ({count} * {item} bytes) after offset ({offset} bytes) must "
            f"not be greater than actual buffer length ({length} bytes)"
        )
    if count < 0 and (length - offset) % item:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a "
            f"multiple of element size ({item})"
        )
    if view.readonly:
        warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the "
            "buffer to protect its data or make it writable before converting it to a tensor. This type of warning "
            "will be suppressed for the rest of this program.",
            once=True,
        )
    return finished(np.frombuffer(view, kind.numpy, max(count, -1), offset), requires_grad)


# From a shape -------------------------------------------------------------------------------------


@public(listed=False, traced="creates")
@_short("create", NotImplemented)
def empty(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """Return an uninitialized tensor of the given shape.

    Example:
        >>> torch.empty(2, 3).shape
        torch.Size([2, 3])
    """
    shape = shape_of("empty", sizes, size)
    if layout is not None and layout is not strided:
        return _sparse("empty", shape, dtype, device, layout, requires_grad)
    made = blank(shape, out, dtype, device, layout, requires_grad, memory_format)
    unwritten(made._array)
    return made


def _sparse(name: str, shape: tuple[int, ...], dtype: Any, device: Any, layout: Any, requires_grad: bool) -> Tensor:
    """Return a sparse tensor without entries."""
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
    if chosen(device) is not cpu:
        raise NotImplementedError(f"{name}: sparse tensors on the device {device} are not supported")
    return sparse.sparse_zeros(shape, dtype, layout, requires_grad, name)


@public(listed=False, traced="creates")
@_short("create", 0)
def zeros(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of zeros.

    The sizes are separate ints, one sequence, or as a keyword `size`; `out` takes the result. The dtype is by default
    the default dtype. `layout` is `torch.strided` or a sparse layout; `device` is "cpu" or "meta"; `pin_memory` has no
    effect.

    Example:
        >>> torch.zeros(2, 3, dtype=torch.int64)
        tensor([[0, 0, 0],
                [0, 0, 0]])
    """
    shape = shape_of("zeros", sizes, size)
    if layout is not None and layout is not strided:
        return _sparse("zeros", shape, dtype, device, layout, requires_grad)
    if out is None and checked_device(device, layout) is cpu:  # np.zeros allocates zeroed memory
        kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        return finished(np.zeros(shape, kind.numpy), requires_grad)
    made = blank(shape, out, dtype, device, layout)
    made._array[...] = 0
    return finished(made._array, True) if requires_grad and out is None else made


@public(listed=False, traced="creates")
@_short("create", 1)
def ones(
    *sizes: Any,
    size: Sequence[int] | None = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of ones, with the parameters of `zeros`.

    Example:
        >>> torch.ones(3)
        tensor([1., 1., 1.])
    """
    made = blank(shape_of("ones", sizes, size), out, dtype, device, layout, requires_grad)
    made._array[...] = 1
    return made


@public(listed=False, traced="creates")
@_short("full", None)
def full(
    size: Sequence[int],
    fill_value: Any,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of shape `size` filled with `fill_value`, a number or a 0-d tensor.

    The dtype is by default bool, int64 or the default dtype, inferred from `fill_value`; RuntimeError if the number
    does not fit into it. The other arguments are as for `zeros`.

    Example:
        >>> torch.full((2, 2), 7)
        tensor([[7, 7],
                [7, 7]])
    """
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    value = number("full", "fill_value", 2, fill_value)
    if dtype is None and out is None:
        dtype = dtypes.of_number(value)
    return _filled(blank(shape_of("full", (size,)), out, dtype, device, layout, requires_grad), value)


def whole(made: Tensor) -> Array:
    """Return the array of a new tensor; inside of `vmap` that of all examples."""
    return plain(made)._array


def plain(x: Any) -> Any:
    """Return the tensor of all examples, of a tensor that is batched inside of `vmap`."""
    while hasattr(x, "_level"):
        x = x._under
    return x


def _filled(made: Tensor, value: Any) -> Tensor:
    kind = made.dtype
    if made._array.size == 1 and kind.is_floating_point and kind.itemsize < 4:
        kind = dtypes.float64  # PyTorch's kernel for a single element lets the value overflow to infinity
    value = fits(value, kind)
    array = whole(made)
    quietly(array.__setitem__, ..., dtypes.narrowed(value, array.dtype) if array.itemsize == 1 else value)
    return made


@public(listed=False, traced="creates")
def scalar_tensor(
    s: Any,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a 0-d tensor that holds the number `s`, by default in the default dtype.

    Example:
        >>> torch.scalar_tensor(3)
        tensor(3.)
    """
    return _filled(blank((), None, dtype, device, layout, requires_grad), number("scalar_tensor", "s", 1, s))


def _like(name: str, what: str, value: Any, example: str) -> Any:
    """Return the public function `name`, whose result like another tensor is filled with a number, if one is given."""

    def like(
        input: Tensor,
        *,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        memory_format: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        made = blank_like(name, input, dtype, device, layout, requires_grad, memory_format)
        array = whole(made)
        if value is NotImplemented:
            unwritten(array)
        else:
            array[...] = value
        return made

    doc = f"""Return {what} with the shape, and unless told otherwise the dtype and memory format, of `input`.

    `layout`, `device`, `requires_grad` and `pin_memory` are as for `zeros`.

    Example:
        >>> torch.{example}
    """
    return public(traced="creates")(_short("create_like", value)(named(like, name, doc)))


empty_like = _like(
    "empty_like", "an uninitialized tensor", NotImplemented,
    "empty_like(torch.ones(2, 3)).shape\n        torch.Size([2, 3])",
)  # fmt: skip
zeros_like = _like("zeros_like", "zeros", 0, "zeros_like(torch.ones(3))\n        tensor([0., 0., 0.])")
ones_like = _like(
    "ones_like", "ones", 1,
    "ones_like(torch.zeros(2, dtype=torch.int64))\n        tensor([1, 1])",
)  # fmt: skip


@public(traced="creates")
@_short("create_like", None)
def full_like(
    input: Tensor,
    fill_value: Any,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    memory_format: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor with the shape and dtype of `input`, filled with `fill_value`; see `zeros_like`.

    Example:
        >>> torch.full_like(torch.zeros(2), 0.5)
        tensor([0.5000, 0.5000])
    """
    value = number("full_like", "fill_value", 2, fill_value)
    return _filled(blank_like("full_like", input, dtype, device, layout, requires_grad, memory_format), value)


# Methods of Tensor: the result has the dtype of `self`, but a given shape.


def _new(name: str, what: str, example: str, value: int | None) -> Any:
    """Return the Tensor method `name`, whose result is filled with `value`, or uninitialized if `value` is None."""

    def new(
        self: Tensor,
        *sizes: Any,
        size: Sequence[int] | None = None,
        dtype: Dtype | None = None,
        device: Any = None,
        requires_grad: bool = False,
        layout: Any = None,
        pin_memory: bool = False,
    ) -> Tensor:
        kind = self.dtype if dtype is None else dtype
        on = self.device if device is None else device
        if hasattr(self, "_level"):
            example: Any = self
            shape = (example._level.size, *shape_of(name, sizes, size))
            of_all = new(example._under, shape, dtype=kind, device=on, requires_grad=requires_grad, layout=layout)
            return batching.batched(of_all, example._level)
        made = blank(shape_of(name, sizes, size), None, kind, on, layout, requires_grad)
        if value is None:
            unwritten(made._array)
            return made
        return _filled(made, value)

    doc = f"""Return {what} of the shape, of this tensor's dtype unless told otherwise.

    Example:
        >>> {example}
    """
    short = _short("create_new", NotImplemented if value is None else value)
    return public("", method=name, listed=False, traced="creates")(short(named(new, name, doc)))


new_empty = _new(
    "new_empty", "whatever the memory holds", "torch.ones(2).new_empty(3).shape\n        torch.Size([3])", None
)
new_zeros = _new("new_zeros", "zeros", "torch.ones(2, dtype=torch.int64).new_zeros(3)\n        tensor([0, 0, 0])", 0)
new_ones = _new("new_ones", "ones", "torch.zeros(2, dtype=torch.int64).new_ones(3)\n        tensor([1, 1, 1])", 1)


@public("", method="new_full", listed=False, traced="creates")
def new_full(
    self: Tensor,
    size: Sequence[int],
    fill_value: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor of shape `size` and of this tensor's dtype, filled with `fill_value`.

    Example:
        >>> torch.zeros(1).new_full((2,), 3)
        tensor([3., 3.])
    """
    value = number("new_full", "fill_value", 2, fill_value)
    kind = self.dtype if dtype is None else dtype
    on = self.device if device is None else device
    return _filled(blank(shape_of("new_full", (size,)), None, kind, on, layout, requires_grad), value)


@public("", method="new_tensor", listed=False, traced="creates")
def new_tensor(
    self: Tensor,
    data: Any,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    layout: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a copy of `data` as a tensor of this tensor's dtype; see `tensor`.

    Example:
        >>> torch.zeros(1).new_tensor([1, 2])
        tensor([1., 2.])
    """
    on = checked_device(self.device if device is None else device, layout)
    if isinstance(data, Tensor):
        _warn_copy("tensor.new_tensor(sourceTensor)")
    return finished(_copied(data, self.dtype if dtype is None else dtype), requires_grad, on)
