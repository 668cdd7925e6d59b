"""Direct access to a tensor's memory: `set_`, `resize_`, strided construction, DLPack.

A storage is the NumPy array that owns a tensor's memory. Resizing a storage, or a tensor beyond its storage,
therefore allocates *new* memory; unlike in PyTorch, other tensors on the old memory do not follow.
"""

from __future__ import annotations

import enum
import math
import operator
from typing import Any

import numpy as np

from tinytorch.core.deterministic import unwritten
from tinytorch.core.device import as_device, cpu
from tinytorch.core.mode import local
from tinytorch.core.supplied import batching
from tinytorch.core.tensor import Tensor
from tinytorch.core.view import check_inference, check_write, needs_grad
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, meta, places
from tinytorch.kernels.checks import MOST_DIMENSIONS, too_many_dimensions
from tinytorch.ops.create import _given_array, checked_device, finished, shape_of
from tinytorch.ops.register import public
from tinytorch.ops.shape import is_contiguous, reshape, stride
from tinytorch.ops.storage import Array, TypedStorage, UntypedStorage, _is_mapped, _mapped, _shared

# Replacing a tensor's memory ----------------------------------------------------------------------


def _contiguous_strides(size: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(size)
    for d in range(len(size) - 2, -1, -1):
        strides[d] = strides[d + 1] * max(size[d + 1], 1)
    return tuple(strides)


def _strides_of(size: tuple[int, ...], memory_format: Any) -> tuple[int, ...]:
    """Return the strides of a dense tensor in a memory format."""
    name = str(memory_format)
    if name == "torch.preserve_format":
        raise RuntimeError("Unsupported memory formatPreserve")
    if name in ("torch.channels_last", "torch.channels_last_3d"):
        rank = 4 if name == "torch.channels_last" else 5
        if len(size) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {name[6:]} format")
        last = _contiguous_strides((size[0], *size[2:], size[1]))
        return (last[0], last[-1], *last[1:-1])
    return _contiguous_strides(size)


def _move(self: Tensor, array: Array) -> Tensor:
    """Replace the array of a tensor, which counts as a write; view and gradient accumulator are reset."""
    self._array = array
    self._view = self._accumulator = None
    self._bump()
    return self


def _ints(values: Any) -> tuple[int, ...]:
    return tuple([operator.index(each) for each in values])


@public("", method="resize_", traced="refused")
def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Resize the tensor in place: on its storage if that is large enough, otherwise on new memory.

    The elements are read from the storage in order; additional elements are uninitialized. If new memory is allocated,
    existing views of the tensor stay on the old memory (in PyTorch they follow).

    Example:
        >>> torch.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if not sizes and size is None:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    if self.requires_grad and not local.state.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if local.state.run is not None:
        local.state.run.check(self)
    flat = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if any(isinstance(each, int) and each < 0 for each in flat):
        raise RuntimeError("numel: integer multiplication overflow")
    shape = shape_of("resize_", sizes, size)
    if shape == self._array.shape and memory_format is None:
        return self
    if self._cell is None:
        check_inference()
    strides = _strides_of(shape, memory_format)
    array = self._array
    owner = places.storage(array)
    offset = places.storage_offset(array) if array.size else 0
    needed = offset + places.end((shape, strides, 0))
    if needed * array.itemsize <= owner.nbytes:
        self._array = (
            places.at(array, (shape, strides, 0)) if array.size else _window(owner, array.dtype, shape, strides, 0)
        )
        if self._view is not None:
            self._view.array = self._array
        self._bump()
        return self
    memory = unwritten(np.empty(needed, array.dtype))
    memory.view(np.uint8)[: owner.nbytes] = owner.ravel("K").view(np.uint8)
    return _move(self, _window(memory, array.dtype, shape, strides, offset))


def _window(memory: Array, kind: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """Return a strided array over the memory of a dense array; `strides` and `offset` count elements."""
    raw = memory.ravel("K").view(np.uint8)
    item = np.dtype(kind).itemsize
    steps = [step * item for step in strides]
    made = np.ndarray(shape, kind, raw, 0 if 0 in shape else offset * item, steps)
    made.flags.writeable = raw.flags.writeable
    return made


@public(method=True, traced="refused")
def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Resize the tensor in place to the shape of another (`torch.preserve_format`: and its strides); see `resize_`.

    Example:
        >>> x = torch.ones(2)
        >>> x.resize_as_(torch.zeros(1, 2)).shape
        torch.Size([1, 2])
    """
    if str(memory_format) == "torch.preserve_format":
        last = {4: "torch.channels_last", 5: "torch.channels_last_3d"}.get(the_template._array.ndim)
        alike = last is not None and is_contiguous(the_template, last)
        alike = alike and not is_contiguous(the_template)
        memory_format = last if alike else None
    return resize_(self, tuple(the_template._array.shape), memory_format=memory_format)


@public("", method="resize")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor in another shape with as many elements; deprecated, as in PyTorch: use `reshape`."""
    warn("non-inplace resize is deprecated")
    return _resized(self, shape_of("resize", sizes))


@public("", method="resize_as")
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the tensor in the shape of another tensor with as many elements; deprecated: use `reshape_as`."""
    warn("non-inplace resize_as is deprecated")
    return _resized(self, tuple(tensor._array.shape))


def _resized(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    count = math.prod(shape)
    if count != self._array.size:
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, shape))} ({count} elements in total), but the given tensor has a "
            f"size of {'x'.join(map(str, self._array.shape))} ({self._array.size} elements). autograd's resize can "
            "only change the shape of a given tensor, while preserving the number of elements. "
        )
    return reshape(self, shape)


@public("", method="set_", traced="refused")
def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Replace the tensor's memory in place with all or a part of the memory of a tensor or storage of the same dtype.

    None as `source` makes the tensor empty. `storage_offset`, `size` and `stride` describe the part; by default it has
    the shape of `source`, and contiguous strides.

    Example:
        >>> torch.empty(0).set_(torch.ones(4), 0, (2, 2))
        tensor([[1., 1.],
                [1., 1.]])
    """
    recorded = local.state.grad and needs_grad(self)
    check_write(self, recorded, overlap=True)
    if recorded:
        raise RuntimeError("the derivative for 'set_' is not implemented")
    kind = self._array.dtype
    if source is None:
        return _move(self, np.empty(0, kind))
    whole: Array
    if isinstance(source, (Tensor, TypedStorage)):
        theirs = source.dtype
        whole = source._array
    elif isinstance(source, UntypedStorage):
        theirs = self.dtype
        item = theirs.itemsize
        whole = source._array[: source._array.size // item * item].view(kind)
    else:
        raise TypeError(
            f"set_() received an invalid combination of arguments - got ({type(source).__name__}), but expected a "
            "Tensor or a Storage"
        )
    if theirs is not self.dtype and isinstance(source, TypedStorage):
        raise RuntimeError(
            f"Expected a Storage of type {self.dtype.name} or an UntypedStorage, but got type "
            f"{theirs.tensor_name} for argument 1 'storage'"
        )
    if theirs is not self.dtype:
        raise RuntimeError(
            f"Could not set tensor of type {dtypes.C_NAMES[theirs.name]} to a tensor of type "
            f"{dtypes.C_NAMES[self.dtype.name]}"
        )
    if size is None:
        return _move(self, whole)
    shape = _ints(size)
    strides = _contiguous_strides(shape) if stride is None else _ints(stride)
    memory = places.storage(whole)
    if len(shape) != len(strides):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length ({len(strides)})")
    needed = (storage_offset + places.end((shape, strides, 0))) * kind.itemsize
    if storage_offset < 0 or needed > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {storage_offset}, and itemsize "
            f"{kind.itemsize} requiring a storage size of {needed} are out of bounds for storage of size "
            f"{memory.nbytes}"
        )
    return _move(self, _window(memory, kind, shape, strides, storage_offset))


@public("", method="is_set_to")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether two tensors have the same storage, offset, sizes and strides.

    Example:
        >>> x = torch.arange(4)
        >>> x.is_set_to(x.view(4)), x.is_set_to(x.clone())
        (True, False)
    """
    a, b = self._memory, tensor._memory
    return places.storage(a) is places.storage(b) and places.same(a, b)


@public("", method="share_memory_", traced="refused")
def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor to memory shared with processes forked from this one: each process sees all writes.

    NotImplementedError: the tensor is a view; its base would stay on the old memory.

    Example:
        >>> torch.zeros(2).share_memory_().is_shared()
        True
    """
    if meta.is_meta(self._array):
        raise RuntimeError("_share_fd_: only available on CPU")
    if not is_shared(self):
        if self._view is not None:
            raise NotImplementedError(
                "share_memory_() of a view is not implemented: call it on the tensor that owns the memory"
            )
        self._array = _shared(self._array)
    return self


@public("", method="is_shared", traced="refused")
def is_shared(self: Tensor) -> bool:
    """Return whether the memory is shared with processes forked from this one.

    Example:
        >>> torch.ones(2).is_shared(), torch.ones(2).share_memory_().is_shared()
        (False, True)
    """
    return _is_mapped(self._memory)


@public(listed=False)
def from_file(
    filename: Any,
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return a one-dimensional tensor of `size` elements whose memory is mapped from a file.

    `shared`: writes go to the file, which is created or extended as needed; otherwise they are private to this process.
    The other arguments are as for `zeros`.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     torch.from_file(file.name, shared=True, size=2).copy_(torch.tensor([1.0, 2.0]))
        ...     torch.from_file(file.name, size=2)
        tensor([1., 2.])
        tensor([1., 2.])
    """
    checked_device("cpu", layout)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    memory = _mapped(filename, shared, int(size or 0) * kind.itemsize)
    return finished(memory.view(kind.numpy), requires_grad)


# By strides ---------------------------------------------------------------------------------------


@public(listed=False, traced="creates")
def empty_strided(
    size: Any,
    stride: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialized tensor with the given shape and strides.

    Example:
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    on = checked_device(device, layout)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    shape, strides = _ints(size), _ints(stride)
    if len(shape) > MOST_DIMENSIONS:
        raise too_many_dimensions(len(shape))
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if min((*shape, *strides), default=0) < 0:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    if on is not cpu:
        return finished(meta.empty(shape, kind.numpy, tuple([step * kind.itemsize for step in strides])), requires_grad)
    memory = unwritten(np.empty(places.end((shape, strides, 0)), kind.numpy))
    return finished(_window(memory, kind.numpy, shape, strides, 0), requires_grad)


@public("", method="new_empty_strided", listed=False)
def new_empty_strided(
    self: Tensor,
    size: Any,
    stride: Any,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return an uninitialized tensor of the same dtype with the given shape and strides; see `empty_strided`.

    Example:
        >>> torch.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    kind = self.dtype if dtype is None else dtype
    if hasattr(self, "_level"):  # (inside of `vmap`: each example has a memory of its own)
        example: Any = self
        size, stride = (example._level.size, *size), (places.end((tuple(size), tuple(stride), 0)), *stride)
        of_all = new_empty_strided(example._under, size, stride, kind, layout, device, requires_grad=requires_grad)
        return batching.batched(of_all, example._level)
    return empty_strided(size, stride, dtype=kind, layout=layout, device=device, requires_grad=requires_grad)


@public(listed=False)
def empty_permuted(
    size: Any,
    physical_layout: Any,
    *,
    dtype: dtypes.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return an uninitialized dense tensor whose dimensions are in the order `physical_layout` in memory.

    Example:
        >>> torch.empty_permuted((2, 3, 5, 7), (0, 2, 3, 1)).stride()
        (105, 1, 21, 3)
    """
    shape, order = _ints(size), _ints(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for d in order:
        if not 0 <= d < len(shape):
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {d})")
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides = [0] * len(shape)
    for d, step in zip(order, _contiguous_strides(tuple([shape[d] for d in order])), strict=True):
        strides[d] = step
    return empty_strided(shape, strides, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


@public("", method="dim_order")
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions sorted by stride, largest stride first.

    True for `ambiguity_check` raises RuntimeError if the order is not unique; a list of memory formats unless the
    tensor is contiguous in exactly one of them.

    Example:
        >>> torch.empty(2, 3, 5).transpose(0, 1).dim_order()
        (1, 0, 2)
    """
    steps = stride(self)
    if isinstance(ambiguity_check, bool):
        ambiguous = ambiguity_check and len(set(steps)) != len(steps)
    elif isinstance(ambiguity_check, (list, tuple)) and all(
        type(each).__name__ == "memory_format" for each in ambiguity_check
    ):
        ambiguous = sum(is_contiguous(self, each) for each in ambiguity_check) != 1
    else:
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if ambiguous:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )
    return tuple(sorted(range(len(steps)), key=lambda d: -steps[d]))


# DLPack -------------------------------------------------------------------------------------------


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Return a DLPack capsule that shares the tensor's memory with another library (`Tensor.__dlpack__`).

    BufferError: the tensor requires grad, or NumPy cannot export its dtype by DLPack.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None:
        raise AssertionError("stream should be None on cpu.")
    options: dict[str, Any] = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    if self.dtype is not dtypes.bfloat16:  # (which is not a NumPy dtype)
        return self._array.__dlpack__(**options)
    capsule = self._array.view(np.uint16).__dlpack__(**options)
    _code(capsule).value = _BFLOAT
    return capsule


_DEVICES = "CPU CUDA CUDAHost OpenCL _ _ Vulkan Metal VPI ROCM ROCMHost ExtDev CUDAManaged OneAPI WebGPU Hexagon MAIA"
DLDeviceType: Any = enum.IntEnum(  # type: ignore[misc]
    "DLDeviceType",
    {f"kDL{name}": number for number, name in enumerate(_DEVICES.split(), 1) if name != "_"},
    module="tinytorch.utils.dlpack",
)


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return DLPack's device type and index of the CPU (`Tensor.__dlpack_device__`)."""
    return (DLDeviceType(1), 0)


@public(listed=False)
def to_dlpack(tensor: Tensor, /) -> Any:
    """Return a DLPack capsule with the tensor's memory; another library or `from_dlpack` can consume it once.

    Example:
        >>> torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2)))
        tensor([1., 1.])
    """
    # NumPy treats memory from an unversioned capsule as read-only.
    return dlpack(tensor, max_version=(1, 0))


#: DLPack's numbers of kinds of dtypes.
_UINT, _BFLOAT = 1, 4


def _code(capsule: Any) -> Any:
    """Return the number of the kind of dtype in a capsule, in its memory: it can be set."""
    import ctypes  # a Python may lack it

    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    versioned = "versioned" in repr(capsule)  # a capsule's name; then a version, two pointers and flags come first
    start = get(capsule, b"dltensor_versioned" if versioned else b"dltensor")
    return ctypes.c_uint8.from_address(start + 32 * versioned + 20)


class _Exporter:
    """An array of another library, or a capsule, for `np.from_dlpack`, which sees bfloat16 as uint16."""

    def __init__(self, source: Any) -> None:
        self.source, self.narrow = source, False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self.source.__dlpack__(**options) if hasattr(self.source, "__dlpack__") else self.source
        code = _code(capsule)
        if code.value == _BFLOAT:
            code.value, self.narrow = _UINT, True
        return capsule

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__() if hasattr(self.source, "__dlpack_device__") else (1, 0)

    def array(self, owner: Any) -> Array:
        """Return the array; `owner` as for `_writable`."""
        array = _writable(np.from_dlpack(self), owner)
        return array.view(dtypes.bfloat16.numpy) if self.narrow else array


class _Writable:
    """Exposes the memory of a read-only array as writable by `__array_interface__`."""

    def __init__(self, array: Array) -> None:
        self.array = array  # keeps the memory alive
        told = array.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}


#: Whether NumPy honours DLPack's read-only flag; before 2.2.5 it treated all imported memory as read-only.
_ASKED = np.from_dlpack(np.empty(0)).flags.writeable


def _writable(array: Array, owner: Any) -> Array:
    """Return an array imported by DLPack as writable, unless its `owner` marked it as read-only.

    An unversioned capsule has no read-only flag, so NumPy treats it as read-only; PyTorch writes to it.
    """
    if array.flags.writeable:
        return array
    if isinstance(owner, np.ndarray):
        said = not owner.flags.writeable
    else:
        said = _ASKED and "versioned" in repr(array.base)  # the capsule's name
    return array if said else np.asarray(_Writable(array))


@public(binds=True, asks="nobody", listed=False, traced="refused")
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array, or of a DLPack capsule that is not consumed.

    `copy` copies the memory; negative strides are copied in any case.

    Example:
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> torch.from_dlpack(array)[0] = 1
        >>> array
        array([1., 0.])
    """
    if device is not None:
        as_device(device)
    if isinstance(ext_tensor, Tensor):
        array = _Exporter(ext_tensor).array(ext_tensor._array)
    elif hasattr(ext_tensor, "__dlpack__"):
        array = _Exporter(ext_tensor).array(ext_tensor)
    elif type(ext_tensor).__name__ == "PyCapsule":
        array = _Exporter(ext_tensor).array(None)
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    if copy or (array.strides and min(array.strides) < 0):
        array = array.copy()
    return finished(_given_array(array))
