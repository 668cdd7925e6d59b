"""The memory of a tensor as PyTorch shows it: storages, `set_`, `resize_`, strides, DLPack (floor 3).

A storage here is the NumPy array that owns a tensor's memory. So a storage that is resized, or a tensor that outgrows
its own, gets *new* memory, and other tensors on the old one do not follow, as they would in PyTorch.
"""

from __future__ import annotations

import math
import mmap
import operator
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor, legacy_new
from tinytorch.autograd.mode import local
from tinytorch.autograd.view import check_write, needs_grad
from tinytorch.device import as_device, cpu, device
from tinytorch.kernels import shape as kernels
from tinytorch.ops.create import _given_array, blank, check_options, finished, shape_of
from tinytorch.ops.shape import aliased, is_contiguous, reshape, stride

__all__ = [
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "DoubleStorage", "FloatStorage", "HalfStorage",
    "IntStorage", "LongStorage", "ShortStorage", "TypedStorage", "UntypedStorage", "empty_permuted", "empty_strided",
    "from_dlpack", "from_file", "get_device", "is_distributed", "is_nonzero", "is_same_size", "is_storage",
    "to_dlpack",
]  # fmt: skip

Array = Any


# Storages -----------------------------------------------------------------------------------------


class UntypedStorage:
    """The bytes that one or more tensors lie in.

    Made from a number of bytes, from a sequence of bytes, or by `Tensor.untyped_storage()`.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(3).untyped_storage().nbytes()
        12
    """

    is_cuda = is_hpu = is_sparse = is_sparse_csr = False
    filename: str | None = None

    def __init__(self, *args: Any, device: Any = None) -> None:
        check_options(device, None)
        if len(args) > 1:
            raise TypeError("UntypedStorage() takes a size or a sequence of bytes")
        content = args[0] if args else 0
        if isinstance(content, (int, np.integer)):
            if content < 0:
                raise RuntimeError(
                    f"Storage size calculation overflowed with sizes=[{int(content)}]"
                )
            self._array: Array = np.empty(int(content), np.uint8)
        else:
            self._array = np.array(content, dtype=np.uint8)

    @classmethod
    def _of(cls, array: Array) -> UntypedStorage:
        """Return the storage that an array lies in."""
        made = object.__new__(cls)
        owner = kernels.storage(array)
        made._array = owner.ravel("K").view(np.uint8)
        return made

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> UntypedStorage:
        """Return a storage that holds a copy of the bytes of an object with a buffer."""
        made = cls()
        made._array = np.frombuffer(args[0], np.uint8).copy()
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return a storage on the bytes of a file; see `tinytorch.from_file`."""
        made = cls()
        made._array = _mapped(filename, shared, nbytes)
        made.filename = os.fspath(filename) if shared else None
        return made

    @property
    def device(self) -> device:
        """Where it is: on the CPU."""
        return cpu

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def nbytes(self) -> int:
        """Return how many bytes there are.

        Example:
            >>> import tinytorch as torch
            >>> torch.ones(3).untyped_storage().nbytes()
            12
        """
        return int(self._array.size)

    size = __len__ = nbytes

    def element_size(self) -> int:
        """Return 1.

        Example:
            >>> import tinytorch as torch
            >>> torch.ones(3).untyped_storage().element_size()
            1
        """
        return 1

    def get_device(self) -> int:
        """Return -1, the CPU's number."""
        return -1

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 if there is none.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2)
            >>> x.untyped_storage().data_ptr() == x.data_ptr()
            True
        """
        return int(self._array.__array_interface__["data"][0]) if self._array.size else 0

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

    def tolist(self) -> list[int]:
        """Return the bytes as ints.

        Example:
            >>> import tinytorch as torch
            >>> torch.tensor([1, 2], dtype=torch.uint8).untyped_storage().tolist()
            [1, 2]
        """
        listed: list[int] = self._array.tolist()
        return listed

    def __getitem__(self, index: Any) -> Any:
        found = self._array[index]
        if isinstance(index, slice):
            if index.step not in (None, 1):
                raise RuntimeError("Trying to slice with a step; only a step of 1 is supported")
            made = UntypedStorage()
            made._array = found
            return made
        return int(found)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._array[index] = value

    def __iter__(self) -> Iterator[int]:
        return iter(self._array.tolist())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def fill_(self, value: int) -> UntypedStorage:
        """Set all bytes to a number and return the storage.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.tensor([1, 2], dtype=torch.uint8)
            >>> _ = x.untyped_storage().fill_(7)
            >>> x
            tensor([7, 7], dtype=torch.uint8)
        """
        self._array[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Copy the bytes of another storage of the same size here and return the storage.

        Raises:
            RuntimeError: the sizes differ.

        Example:
            >>> import tinytorch as torch
            >>> x, y = torch.zeros(2), torch.ones(2)
            >>> _ = x.untyped_storage().copy_(y.untyped_storage())
            >>> x
            tensor([1., 1.])
        """
        other = source.untyped()._array
        if other.size != self._array.size:
            raise RuntimeError(
                f"size does not match, self was {self._array.size} bytes but src was {other.size} bytes"
            )
        self._array[...] = other
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Give this object that many bytes, the first of them as before; tensors keep the memory that they have.

        Example:
            >>> import tinytorch as torch
            >>> torch.UntypedStorage(4).resize_(8).nbytes()
            8
        """
        grown = np.empty(size, np.uint8)
        kept = min(size, self._array.size)
        grown[:kept] = self._array[:kept]
        self._array = grown
        return self

    def clone(self) -> UntypedStorage:
        """Return a copy.

        Example:
            >>> import tinytorch as torch
            >>> x = torch.ones(2)
            >>> x.untyped_storage().clone().data_ptr() == x.untyped_storage().data_ptr()
            False
        """
        made = UntypedStorage()
        made._array = self._array.copy()
        return made

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        found: UntypedStorage = memo[id(self)]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return (UntypedStorage.from_buffer, (self._array.tobytes(),))

    def new(self) -> UntypedStorage:
        """Return an empty storage."""
        return UntypedStorage()

    def cpu(self) -> UntypedStorage:
        """Return the storage itself: it is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> UntypedStorage:
        """Raise AssertionError: there is no CUDA here."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def is_shared(self) -> bool:
        """Return whether other processes, forked from this one, see the same memory.

        Example:
            >>> import tinytorch as torch
            >>> torch.ones(2).untyped_storage().is_shared()
            False
        """
        return _is_mapped(self._array)

    def share_memory_(self) -> UntypedStorage:
        """Move this object's bytes to memory that processes forked from this one share; see `Tensor.share_memory_`."""
        if not self.is_shared():
            self._array = _shared(self._array)
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: there is nothing to pin for.

        Example:
            >>> import tinytorch as torch
            >>> torch.ones(2).untyped_storage().is_pinned()
            False
        """
        return False

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str:
        """Return the type's name."""
        return "torch.storage.UntypedStorage"

    def _as(self, kind: dtypes.dtype) -> TypedStorage:
        made = TypedStorage(dtype=kind)
        made._untyped_storage._array = self._array.astype(kind.numpy).view(np.uint8)
        return made

    def __repr__(self) -> str:
        return _listed(self._array, f"UntypedStorage(device=cpu) of size {self._array.size}")

    __str__ = __repr__


def _listed(array: Array, name: str) -> str:
    """Return the text of a storage: an element a line, the first and last of many."""
    if array.size > 1000:
        shown = [*array[:3].tolist(), "...", *array[-3:].tolist()]
    else:
        shown = array.tolist()
    return "\n".join(f" {each}" for each in shown) + f"\n[torch.storage.{name}]"


class _Named(type):
    """The type of `FloatStorage` and its like: calls make storages, `isinstance` looks at the dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


_warned = [False]


def _warn_once() -> None:
    """Give PyTorch's warning, once in a process as there."""
    if not _warned[0]:
        _warned[0] = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
            "directly, use tensor.untyped_storage() instead of tensor.storage()",
            UserWarning,
            stacklevel=3,
        )


class TypedStorage:
    """A storage read as elements of one dtype; deprecated, as in PyTorch.

    Args:
        *args: how many elements, or a sequence of them.
        wrap_storage: the bytes to read, instead of new ones.
        dtype: the element type, by default the default dtype.
        device: the CPU.

    Example:
        >>> import tinytorch as torch
        >>> torch.TypedStorage([1, 2], dtype=torch.int64).tolist()
        [1, 2]
    """

    is_cuda = is_hpu = is_sparse = False

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        check_options(device, None)
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    "TypedStorage.__new__ received an invalid combination of arguments. No positional arguments "
                    "should be given when using 'wrap_storage'"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}"
                )
            self._untyped_storage = wrap_storage
            return
        content = args[0] if args else 0
        if isinstance(content, (int, np.integer)):
            self._untyped_storage = UntypedStorage(int(content) * self.dtype.itemsize)
        else:
            self._untyped_storage = UntypedStorage()
            self._untyped_storage._array = np.array(content, self.dtype.numpy).view(np.uint8)

    @property
    def _array(self) -> Array:
        memory = self._untyped_storage._array
        item = self.dtype.itemsize
        return memory[: memory.size // item * item].view(self.dtype.numpy)

    @property
    def device(self) -> device:
        """Where it is: on the CPU."""
        return cpu

    @property
    def filename(self) -> str | None:
        """The file that the memory is mapped from, or None."""
        return self._untyped_storage.filename

    def untyped(self) -> UntypedStorage:
        """Return the bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """Return how many elements there are."""
        return int(self._array.size)

    __len__ = size

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def nbytes(self) -> int:
        """Return how many bytes there are."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self.dtype.itemsize

    def get_device(self) -> int:
        """Return -1, the CPU's number."""
        return -1

    def data_ptr(self) -> int:
        """Return the address of the first element; 0 if there is none."""
        return self._untyped_storage.data_ptr()

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers."""
        listed: list[Any] = self._array.tolist()
        return listed

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a TypedStorage with {type(index)}")
        return self._array[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a TypedStorage with {type(index)}")
        self._array[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def fill_(self, value: Any) -> TypedStorage:
        """Set all elements to a number and return the storage."""
        self._array[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of another storage here, converted, and return the storage.

        Raises:
            RuntimeError: the sizes differ.
        """
        if source.size() != self.size():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._array[...] = source._array
        return self

    def resize_(self, size: int) -> None:
        """Give this object that many elements, the first of them as before; tensors keep the memory they have."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        found: TypedStorage = memo[id(self)]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (self._untyped_storage, self.dtype))

    def new(self, *args: Any) -> TypedStorage:
        """Return a storage of the same dtype, made from `args`."""
        return TypedStorage(*args, dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Return the storage itself: it is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """Raise AssertionError: there is no CUDA here."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def is_shared(self) -> bool:
        """Return whether other processes, forked from this one, see the same memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move this object's elements to shared memory; see `Tensor.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: there is nothing to pin for."""
        return False

    def pickle_storage_type(self) -> str:
        """Return the name of the storage type of this dtype."""
        return f"{self.dtype.tensor_name}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str:
        """Return the type's name, "torch.FloatStorage"."""
        return f"torch.{self.pickle_storage_type()}"

    def _as(self, kind: dtypes.dtype) -> TypedStorage:
        made = TypedStorage(dtype=kind)
        made._untyped_storage._array = self._array.astype(kind.numpy).view(np.uint8)
        return made

    def __repr__(self) -> str:
        return _listed(
            self._array, f"TypedStorage(dtype={self.dtype}, device=cpu) of size {self._array.size}"
        )

    __str__ = __repr__


def _rebuilt(untyped: UntypedStorage, dtype: dtypes.dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _named(kind: dtypes.dtype) -> Any:
    name = f"{kind.tensor_name}Storage"
    return _Named(name, (), {"dtype": kind, "__doc__": f"Storages of {kind}; see `TypedStorage`."})


for _kind, _names in (
    (dtypes.bfloat16, "bfloat16"), (dtypes.bool, "bool"), (dtypes.uint8, "byte"), (dtypes.int8, "char"),
    (dtypes.float64, "double"), (dtypes.float32, "float"), (dtypes.float16, "half"), (dtypes.int32, "int"),
    (dtypes.int64, "long"), (dtypes.int16, "short"),
):  # fmt: skip

    def _convert(self: Any, kind: dtypes.dtype = _kind) -> TypedStorage:
        """Return a storage of the numbers in another dtype."""
        made: TypedStorage = self._as(kind)
        return made

    setattr(UntypedStorage, _names, _convert)
    setattr(TypedStorage, _names, _convert)

BFloat16Storage, BoolStorage = _named(dtypes.bfloat16), _named(dtypes.bool)
ByteStorage, CharStorage = _named(dtypes.uint8), _named(dtypes.int8)
DoubleStorage, FloatStorage = _named(dtypes.float64), _named(dtypes.float32)
HalfStorage, IntStorage = _named(dtypes.float16), _named(dtypes.int32)
LongStorage, ShortStorage = _named(dtypes.int64), _named(dtypes.int16)
_BY_DTYPE = {
    each.dtype: each
    for each in (
        BFloat16Storage, BoolStorage, ByteStorage, CharStorage, DoubleStorage, FloatStorage, HalfStorage, IntStorage,
        LongStorage, ShortStorage,
    )
}  # fmt: skip


def is_storage(obj: Any, /) -> bool:
    """Return whether `obj` is a storage.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_storage(torch.zeros(1).untyped_storage()), torch.is_storage(torch.zeros(1))
        (True, False)
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the bytes that the tensor lies in; writes to either show in both.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(3)[1:].untyped_storage().nbytes()
        12
    """
    return UntypedStorage._of(self._array)


def storage(self: Tensor) -> TypedStorage:
    """Return the memory that the tensor lies in, as elements of its dtype; deprecated, as in PyTorch."""
    _warn_once()
    return _typed_storage(self)


def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


def storage_type(self: Tensor) -> Any:
    """Return the type of the tensor's storage."""
    return _BY_DTYPE[self.dtype]


# A tensor on other memory -------------------------------------------------------------------------


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


def _extent(size: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return how many elements of memory a tensor reaches over."""
    if 0 in size:
        return 0
    return 1 + sum((length - 1) * step for length, step in zip(size, strides, strict=True))


def _move(self: Tensor, array: Array) -> Tensor:
    """Put a tensor on another array, and count that as a write; a leaf starts anew in the graph."""
    self._array = array
    self._view = self._accumulator = None
    self._bump()
    return self


def _ints(values: Any) -> tuple[int, ...]:
    return tuple([operator.index(each) for each in values])


def resize_(self: Tensor, *sizes: Any, size: Any = None, memory_format: Any = None) -> Tensor:
    """Give the tensor another shape in place: on its memory where that suffices, else on new memory.

    The elements are those in the memory, one after the other; what lies beyond is whatever new memory holds. Views of
    a tensor that gets new memory stay on the old one (in PyTorch they follow).

    Raises:
        RuntimeError: the tensor requires grad.

    Example:
        >>> import tinytorch as torch
        >>> torch.arange(6).resize_(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    if not sizes and size is None:
        raise TypeError('resize_() missing 1 required positional arguments: "size"')
    if self.requires_grad and not local.state.inference:
        raise RuntimeError("cannot resize variables that require grad")
    flat = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if any(isinstance(each, int) and each < 0 for each in flat):
        raise RuntimeError("numel: integer multiplication overflow")
    shape = shape_of("resize_", sizes, size)
    if shape == self._array.shape and memory_format is None:
        return self
    strides = _strides_of(shape, memory_format)
    array = self._array
    owner = kernels.storage(array)
    offset = kernels.storage_offset(array) if array.size else 0
    needed = offset + _extent(shape, strides)
    if needed * array.itemsize <= owner.nbytes:
        self._array = (
            kernels.at(array, (shape, strides, 0))
            if array.size
            else _window(owner, array.dtype, shape, strides, 0)
        )
        if self._view is not None:
            self._view.array = self._array
        self._bump()
        return self
    memory = np.empty(needed, array.dtype)
    memory.view(np.uint8)[: owner.nbytes] = owner.ravel("K").view(np.uint8)
    return _move(self, _window(memory, array.dtype, shape, strides, offset))


def _window(
    memory: Array, kind: Any, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> Array:
    """Return what lies at a place in the memory of a dense array."""
    raw = memory.ravel("K").view(np.uint8)
    item = np.dtype(kind).itemsize
    steps = [step * item for step in strides]
    made = np.ndarray(shape, kind, raw, 0 if 0 in shape else offset * item, steps)
    made.flags.writeable = raw.flags.writeable
    return made


def resize_as_(self: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the shape of another in place; see `resize_`. `torch.preserve_format` takes its strides too.

    Example:
        >>> import tinytorch as torch
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


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Return the tensor in another shape of as many elements; deprecated, as in PyTorch: use `reshape`."""
    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    return _resized(self, shape_of("resize", sizes))


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Return the tensor in the shape of another of as many elements; deprecated: use `reshape_as`."""
    warnings.warn("non-inplace resize_as is deprecated", UserWarning, stacklevel=2)
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


_C_TYPES = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short int", "int32": "int",
    "int64": "long int", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float",
    "float64": "double",
}  # fmt: skip


def set_(
    self: Tensor,
    source: Any = None,
    storage_offset: int = 0,
    size: Any = None,
    stride: Any = None,
) -> Tensor:
    """Put the tensor on other memory in place: that of a tensor or storage, all of it or a part.

    Args:
        self: the tensor.
        source: a tensor or storage of the same dtype; nothing for no memory at all.
        storage_offset: which element of the storage comes first.
        size: the shape, by default all that is there.
        stride: the strides, by default those of a contiguous tensor.

    Raises:
        RuntimeError: the dtypes differ; the part leaves the memory; the tensor requires grad.

    Example:
        >>> import tinytorch as torch
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
            f"Could not set tensor of type {_C_TYPES[theirs.name]} to a tensor of type "
            f"{_C_TYPES[self.dtype.name]}"
        )
    if size is None:
        return _move(self, whole)
    shape = _ints(size)
    strides = _contiguous_strides(shape) if stride is None else _ints(stride)
    memory = kernels.storage(whole)
    if len(shape) != len(strides):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length ({len(strides)})")
    needed = (storage_offset + _extent(shape, strides)) * kind.itemsize
    if storage_offset < 0 or needed > memory.nbytes:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {storage_offset}, and itemsize "
            f"{kind.itemsize} requiring a storage size of {needed} are out of bounds for storage of size "
            f"{memory.nbytes}"
        )
    return _move(self, _window(memory, kind, shape, strides, storage_offset))


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Return whether two tensors are the same elements of one memory, in the same order.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.arange(4)
        >>> x.is_set_to(x.view(4)), x.is_set_to(x.clone())
        (True, False)
    """
    a, b = self._array, tensor._array
    return kernels.storage(a) is kernels.storage(b) and kernels.same(a, b)


# Memory that processes share ----------------------------------------------------------------------


def _is_mapped(array: Array) -> bool:
    base = kernels.storage(array).base
    return isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def _shared(array: Array) -> Array:
    """Return a copy in memory that processes forked from this one share."""
    if not array.size:
        return array
    raw = np.frombuffer(mmap.mmap(-1, array.nbytes), np.uint8)
    made = np.ndarray(array.shape, array.dtype, raw, 0, _dense_steps(array))
    made[...] = array
    return made


def _dense_steps(array: Array) -> tuple[int, ...]:
    """Return the strides of a copy with the dimensions in the same order in memory."""
    blank_copy = np.empty_like(array)
    steps: tuple[int, ...] = blank_copy.strides
    return steps


def share_memory_(self: Tensor) -> Tensor:
    """Move the tensor to memory that processes forked from this one share: all see what any of them writes.

    Raises:
        NotImplementedError: it is a view, whose base would stay where it is.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(2).share_memory_().is_shared()
        True
    """
    if not is_shared(self):
        if self._view is not None:
            raise NotImplementedError(
                "share_memory_() of a view is not implemented: call it on the tensor that owns the memory"
            )
        self._array = _shared(self._array)
    return self


def is_shared(self: Tensor) -> bool:
    """Return whether other processes, forked from this one, see the same memory.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(2).is_shared(), torch.ones(2).share_memory_().is_shared()
        (False, True)
    """
    return _is_mapped(self._array)


def _mapped(filename: Any, shared: bool | None, nbytes: int) -> Array:
    """Return the first bytes of a file as an array: mapped for writing if `shared`, else for this process only."""
    path = os.fspath(filename)
    if shared and (not os.path.exists(path) or os.path.getsize(path) < nbytes):
        with open(path, "ab") as file:
            file.truncate(nbytes)
    if not nbytes:
        return np.empty(0, np.uint8)
    available = os.path.getsize(path) if os.path.exists(path) else None
    if available is None:
        raise RuntimeError(
            f"unable to open file <{path}> in read-only mode: No such file or directory (2)"
        )
    if available < nbytes:
        raise RuntimeError(
            f"file <{path}> size <{available}> is smaller than the required mapping size <{nbytes}>"
        )
    with open(path, "r+b" if shared else "rb") as file:
        access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
        return np.frombuffer(mmap.mmap(file.fileno(), nbytes, access=access), np.uint8)


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
    """Return a one-dimensional tensor on the memory of a file.

    Args:
        filename: the file.
        shared: whether writes go to the file, which is then made, or made longer, where need be; else they stay in
            this process.
        size: how many elements.
        dtype: the element type, by default the default dtype.
        layout: strided.
        device: the CPU.
        pin_memory: ignored.
        requires_grad: whether operations on the tensor are recorded.

    Raises:
        RuntimeError: there is no such file, or it is too short.

    Example:
        >>> import tinytorch as torch
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     torch.from_file(file.name, shared=True, size=2).copy_(torch.tensor([1.0, 2.0]))
        ...     torch.from_file(file.name, size=2)
        tensor([1., 2.])
        tensor([1., 2.])
    """
    check_options(device, layout)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    memory = _mapped(filename, shared, int(size or 0) * kind.itemsize)
    return finished(memory.view(kind.numpy), requires_grad)


# By strides ---------------------------------------------------------------------------------------


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
    """Return a tensor of a shape and strides with whatever numbers the memory holds.

    Raises:
        RuntimeError: there are more of the one than of the other, or one is negative.

    Example:
        >>> import tinytorch as torch
        >>> torch.empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    check_options(device, layout)
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    shape, strides = _ints(size), _ints(stride)
    if len(shape) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if min((*shape, *strides), default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}"
        )
    memory = np.empty(_extent(shape, strides), kind.numpy)
    return finished(_window(memory, kind.numpy, shape, strides, 0), requires_grad)


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
    """Return a tensor of this one's dtype, of a shape and strides; see `empty_strided`.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(1).new_empty_strided((2, 3), (1, 2)).stride()
        (1, 2)
    """
    kind = self.dtype if dtype is None else dtype
    return empty_strided(
        size, stride, dtype=kind, layout=layout, device=device, requires_grad=requires_grad
    )


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
    """Return a tensor of a shape, without gaps, whose dimensions lie in memory in the order `physical_layout`.

    Raises:
        RuntimeError: `physical_layout` is no order of the dimensions.

    Example:
        >>> import tinytorch as torch
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
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {d})"
            )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    strides = [0] * len(shape)
    for d, step in zip(order, _contiguous_strides(tuple([shape[d] for d in order])), strict=True):
        strides[d] = step
    return empty_strided(
        shape, strides, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Return the dimensions in the order of their strides, from the one that changes slowest in memory.

    Args:
        self: the tensor.
        ambiguity_check: True to refuse a tensor for which several orders are right; a list of memory formats to
            refuse one that is in none, or more than one, of them.

    Raises:
        RuntimeError: the order is refused.

    Example:
        >>> import tinytorch as torch
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


# Element by element, in Python --------------------------------------------------------------------


def _refuse_grad(self: Tensor, name: str) -> None:
    if self.requires_grad:
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
        )


def _put(self: Tensor, values: Any) -> Tensor:
    array = self._array
    found = list(values)
    for each in found:
        if not isinstance(each, (int, float, np.generic)):
            raise TypeError(f"must be real number, not {type(each).__name__}")
    array[...] = np.array(found, dtype=array.dtype).reshape(array.shape)
    return self  # (PyTorch does not count this as a write)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a function of Python numbers returns for it; slow.

    Raises:
        RuntimeError: the tensor requires grad.

    Example:
        >>> import tinytorch as torch
        >>> torch.arange(3).apply_(lambda x: x + 1)
        tensor([1, 2, 3])
    """
    _refuse_grad(self, "apply_")
    return _put(self, map(callable, self._array.ravel().tolist()))


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by what a function of it and the other tensor's element returns; slow.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: the dtypes differ.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.map_(torch.tensor([3.0, 4.0]), lambda a, b: a * b)
        tensor([3., 8.])
    """
    _refuse_grad(self, "map_")
    return _mapped_with(self, "map_", callable, other=tensor)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by what a function of it and two other tensors' elements returns; slow.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: the dtypes differ.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.tensor([1.0, 2.0])
        >>> x.map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a + b + c)
        tensor([3., 4.])
    """
    _refuse_grad(self, "map2_")
    return _mapped_with(self, "map2_", callable, x=x, y=y)


def _mapped_with(self: Tensor, name: str, callable: Callable[..., Any], **others: Tensor) -> Tensor:
    columns = [self._array.ravel().tolist()]
    for argument, other in others.items():
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
        expanded = kernels.expand(other._array, self._array.shape)
        columns.append(expanded.ravel().tolist())
    return _put(self, map(callable, *columns))


# DLPack -------------------------------------------------------------------------------------------


def dlpack(
    self: Tensor,
    *,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """Return a capsule by which another library takes up the tensor's memory (`Tensor.__dlpack__`).

    Raises:
        BufferError: the tensor requires grad, or DLPack has no such dtype in NumPy.
        AssertionError: `stream` is given.
    """
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream is not None:
        raise AssertionError("stream should be None on cpu.")
    return self._array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def dlpack_device(self: Tensor) -> tuple[int, int]:
    """Return DLPack's number of the CPU (`Tensor.__dlpack_device__`)."""
    return (1, 0)


def to_dlpack(tensor: Tensor, /) -> Any:
    """Return a capsule by which another library, or `from_dlpack`, takes up the tensor's memory, once.

    Example:
        >>> import tinytorch as torch
        >>> torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.ones(2)))
        tensor([1., 1.])
    """
    # NumPy calls memory from a capsule of the older kind read-only.
    return dlpack(tensor, max_version=(1, 0))


class _Capsule:
    """What NumPy takes for another library's array: a capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Writable:
    """What NumPy takes for an array: the memory of another one, to be written to."""

    def __init__(self, array: Array) -> None:
        self.array = array  # lives as long as the memory is in use
        told = array.__array_interface__
        self.__array_interface__ = {**told, "data": (told["data"][0], False)}


#: Whether NumPy asks another library if memory is to be written to. Before 2.2.5 it did not, and called all read-only.
_ASKED = np.from_dlpack(np.empty(0)).flags.writeable


def _writable(array: Array, owner: Any) -> Array:
    """Return an array from DLPack to be written to, unless its `owner` has said that it must not be.

    A capsule of the older kind cannot say so, for which NumPy calls it read-only; PyTorch writes to it.
    """
    if array.flags.writeable:
        return array
    if isinstance(owner, np.ndarray):
        said = not owner.flags.writeable
    else:
        said = _ASKED and "versioned" in repr(array.base)  # the name of the capsule
    return array if said else np.asarray(_Writable(array))


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor on the memory of another library's array, or of a capsule.

    Args:
        ext_tensor: an object with `__dlpack__`, or a capsule.
        device: the CPU.
        copy: True for memory of its own, False to refuse any copy.

    Raises:
        RuntimeError: it is neither; a capsule was taken up before.

    Example:
        >>> import tinytorch as torch, numpy as np
        >>> array = np.zeros(2)
        >>> torch.from_dlpack(array)[0] = 1
        >>> array
        array([1., 0.])
    """
    if device is not None:
        as_device(device)
    if isinstance(ext_tensor, Tensor) and ext_tensor.dtype is dtypes.bfloat16:  # unknown to NumPy
        if ext_tensor.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        array = ext_tensor._array
    elif isinstance(ext_tensor, Tensor):
        array = _writable(np.from_dlpack(_Capsule(to_dlpack(ext_tensor))), ext_tensor._array)
    elif hasattr(ext_tensor, "__dlpack__"):
        array = _writable(np.from_dlpack(ext_tensor), ext_tensor)
    elif type(ext_tensor).__name__ == "PyCapsule":
        array = _writable(np.from_dlpack(_Capsule(ext_tensor)), None)
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    if copy or (array.strides and min(array.strides) < 0):
        array = array.copy()
    return finished(_given_array(array))


# What else programs ask a tensor ------------------------------------------------------------------


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Make a tensor of this one's dtype PyTorch's legacy way: from sizes, data, or another tensor.

    Example:
        >>> import tinytorch as torch
        >>> torch.zeros(1, dtype=torch.int64).new([1, 2])
        tensor([1, 2])
    """
    kind = self.dtype
    if len(args) == 1 and is_storage(args[0]):
        return set_(blank((0,), None, kind), args[0])
    if not args and set(kwargs) == {"size"}:
        args, kwargs = tuple(kwargs["size"]), {}
    return legacy_new(Tensor, args, kwargs, kind)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Return what `load_state_dict` puts in this tensor's place: itself with the numbers of `other`, or `other`."""
    made: Tensor = other.detach() if assign else self.copy_(other).detach()
    return made


def get_device(input: Tensor) -> int:
    """Return -1, the CPU's number.

    Example:
        >>> import tinytorch as torch
        >>> torch.get_device(torch.ones(1))
        -1
    """
    return -1


def as_subclass(self: Tensor, cls: Any) -> Any:
    """Return a tensor of a subclass on the same memory; gradients flow to this one.

    Raises:
        TypeError: `cls` is no subclass of Tensor.

    Example:
        >>> import tinytorch as torch
        >>> class Mine(torch.Tensor):
        ...     pass
        >>> type(torch.ones(2).as_subclass(Mine)).__name__
        'Mine'
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor."
        )
    made: Tensor = aliased(self, None)
    made.__class__ = cls
    return made


def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have the same shape.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_same_size(torch.zeros(2, 3), torch.ones(2, 3))
        True
    """
    return bool(input._array.shape == other._array.shape)


def is_nonzero(input: Tensor) -> bool:
    """Return whether the only element is not zero.

    Raises:
        RuntimeError: there is not exactly one.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(2))
        (False, True)
    """
    return bool(input)


def is_distributed(input: Tensor) -> bool:
    """Return False: no tensor is spread over several processes.

    Example:
        >>> import tinytorch as torch
        >>> torch.is_distributed(torch.ones(1))
        False
    """
    return False


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Return False: there is nothing to pin for.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(2).is_pinned()
        False
    """
    return False


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raise RuntimeError, as PyTorch does without a GPU to pin for."""
    raise RuntimeError("Cannot access accelerator device when none is available.")


def to_dense(
    self: Tensor, dtype: dtypes.dtype | None = None, *, masked_grad: bool | None = None
) -> Tensor:
    """Return the tensor itself, which is dense; converted to `dtype` where one is given.

    Example:
        >>> import tinytorch as torch
        >>> torch.ones(2).to_dense()
        tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


def dequantize(self: Tensor) -> Tensor:
    """Return the tensor in float32."""
    return self.to(dtypes.float32)


def contains(self: Tensor, element: Any) -> bool:
    """Return whether an element equals a number, or any of another tensor's where they meet (`element in tensor`)."""
    if not isinstance(element, (Tensor, int, float, complex)):
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )
    return bool((self == element).any().item())


def array_wrap(
    self: Tensor, array: Array, context: Any = None, return_scalar: bool = False
) -> Tensor:
    """Return the result of a NumPy function of this tensor as a tensor (`Tensor.__array_wrap__`)."""
    array = np.asarray(array)
    return finished(array.astype(np.uint8) if array.dtype == np.bool_ else array)


def _raises(error: type[Exception], text: str, what: str) -> Any:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise error(text)

    method.__doc__ = f"Raise {error.__name__}: {what}"
    return method


def _no_backend(name: str) -> Any:
    return _raises(
        NotImplementedError,
        f"Could not run 'aten::{name}' with arguments from the 'CPU' backend.",
        "PyTorch has it for other tensors than strided ones only.",
    )


def _false(self: Tensor) -> bool:
    return False


def _name(self: Tensor) -> str | None:
    return None


def _grad_dtype(self: Tensor) -> dtypes.dtype:
    return self.dtype


def _volatile(self: Tensor) -> bool:
    warnings.warn(
        "volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2
    )
    return False


def _cuda_array(self: Tensor) -> Any:
    raise AttributeError(
        f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
        "tensor.cuda() to copy tensor to device memory."
    )


def const_data_ptr(self: Tensor) -> int:
    """Return the address of the first element, for reading."""
    return self.data_ptr()


def dense_dim(self: Tensor) -> int:
    """Return the number of dense dimensions: all."""
    ndim: int = self._array.ndim
    return ndim


def sparse_dim(self: Tensor) -> int:
    """Return the number of sparse dimensions: none."""
    return 0


_ELSEWHERE = ("ipu", "maia", "mtia", "sparse_csr", "vulkan", "xla")
_SPARSE = "it is a strided tensor, not a sparse one."

#: Members of Tensor that are no names of this module, or that only say what a strided tensor on the CPU is not.
MEMBERS: dict[str, Any] = {
    "__array_wrap__": array_wrap,
    "__contains__": contains,
    "__cuda_array_interface__": property(_cuda_array),
    "__dlpack__": dlpack,
    "__dlpack_device__": dlpack_device,
    "_cdata": property(id),  # programs compare it, to know a tensor from another
    "_typed_storage": _typed_storage,
    "const_data_ptr": const_data_ptr,
    "dense_dim": dense_dim,
    "sparse_dim": sparse_dim,
    "grad_dtype": property(_grad_dtype),
    "name": property(_name),
    "volatile": property(_volatile),
    "xpu": _raises(AssertionError, "Torch not compiled with XPU enabled", "tensors live on the CPU."),
    "mtia": _raises(AssertionError, "Torch not compiled with MTIA enabled", "tensors live on the CPU."),
    "ipu": _raises(
        RuntimeError, "PyTorch is not linked with support for ipu devices", "tensors live on the CPU."
    ),
    "record_stream": _raises(RuntimeError, "unknown parameter type", "there are no streams."),
    "reinforce": _raises(
        RuntimeError, "reinforce() was removed. Use torch.distributions instead.", "PyTorch removed it."
    ),
    "values": _raises(RuntimeError, "values expected sparse tensor layout but got Strided", _SPARSE),
    "smm": _raises(RuntimeError, "tensor.sspaddmm(...) can only be called on sparse tensors", _SPARSE),
}  # fmt: skip
MEMBERS |= {f"is_{kind}": property(_false) for kind in _ELSEWHERE}
MEMBERS |= {
    name: _raises(
        RuntimeError, f"{name} expected sparse coordinate tensor layout but got Strided", _SPARSE
    )
    for name in ("coalesce", "indices", "is_coalesced")
}
MEMBERS |= {
    name: _raises(
        RuntimeError, f"{name} expected sparse {which} compressed tensor layout but got Strided", _SPARSE
    )
    for name, which in (
        ("crow_indices", "row"), ("col_indices", "row"), ("ccol_indices", "column"), ("row_indices", "column"),
    )
}  # fmt: skip
MEMBERS |= {
    name: _raises(
        NotImplementedError, f"tinytorch has strided tensors only: {name}()", "there is one layout."
    )
    for name in (
        "to_sparse", "to_sparse_bsc", "to_sparse_bsr", "to_sparse_coo", "to_sparse_csc", "to_sparse_csr", "to_mkldnn",
    )
}  # fmt: skip
MEMBERS |= {
    name: _no_backend(name)
    for name in (
        "_indices", "_nnz", "_values", "int_repr", "q_per_channel_axis", "q_per_channel_scales",
        "q_per_channel_zero_points", "q_scale", "q_zero_point", "qscheme", "sparse_mask", "sparse_resize_",
        "sparse_resize_and_clear_", "to_padded_tensor",
    )
}  # fmt: skip
