"""Storages: the memory of tensors as objects, typed and untyped."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from tinytorch.core.device import cpu, device, meta
from tinytorch.core.supplied import saving
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes, places
from tinytorch.kernels.meta import empty, is_meta
from tinytorch.kernels.silence import cast
from tinytorch.ops.create import checked_device
from tinytorch.ops.register import public

__all__ = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "DoubleStorage",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LongStorage",
    "ShortStorage",
    "TypedStorage",
    "UntypedStorage",
]

Array = Any


# Storages -----------------------------------------------------------------------------------------


class _Storage:
    """The common base of `UntypedStorage` and `TypedStorage`."""

    is_cuda = is_hpu = is_sparse = False
    _array: Array
    untyped: Any
    clone: Any

    @property
    def device(self) -> device:
        """The device of the storage."""
        return meta if is_meta(self._array) else cpu

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def get_device(self) -> int:
        """Return -1, the device index of a device without numbers."""
        return -1

    def tolist(self) -> list[Any]:
        """Return the elements as a list (of ints, if the storage is untyped).

        Example:
            >>> torch.tensor([1, 2], dtype=torch.uint8).untyped_storage().tolist()
            [1, 2]
        """
        return self._array.tolist()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._array.tolist())

    def fill_(self, value: Any) -> Self:
        """Set all elements (or bytes) to a number and return the storage.

        Example:
            >>> x = torch.tensor([1, 2], dtype=torch.uint8)
            >>> _ = x.untyped_storage().fill_(7)
            >>> x
            tensor([7, 7], dtype=torch.uint8)
        """
        self._array[...] = value
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return saving.reduced(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def cpu(self) -> Self:
        """Return the storage itself, which is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Self:
        """Raise AssertionError: CUDA is not supported."""
        raise AssertionError("Torch not compiled with CUDA enabled")

    def is_pinned(self, device: Any = None) -> bool:
        """Return False: pinned memory is not supported.

        Example:
            >>> torch.ones(2).untyped_storage().is_pinned()
            False
        """
        return False

    def nbytes(self) -> int:
        """Return the size of the storage in bytes.

        Example:
            >>> torch.ones(3).untyped_storage().nbytes()
            12
        """
        return int(self.untyped()._array.size)

    def data_ptr(self) -> int:
        """Return the address of the first byte; 0 if the storage is empty.

        Example:
            >>> x = torch.ones(2)
            >>> x.untyped_storage().data_ptr() == x.data_ptr()
            True
        """
        memory = self.untyped()._array
        if is_meta(memory):
            return 0
        return int(memory.__array_interface__["data"][0]) if memory.size else 0

    def is_shared(self) -> bool:
        """Return whether the memory is shared with processes forked from this one.

        Example:
            >>> torch.ones(2).untyped_storage().is_shared()
            False
        """
        return _is_mapped(self.untyped()._array)

    def share_memory_(self) -> Self:
        """Move the bytes to memory shared with processes forked from this one; see `Tensor.share_memory_`."""
        if not self.is_shared():
            untyped = self.untyped()
            untyped._array = _shared(untyped._array)
        return self

    def _as(self, kind: dtypes.dtype) -> TypedStorage:
        made = TypedStorage(dtype=kind)
        made._untyped_storage._array = cast(self._array, kind.numpy).view(np.uint8)
        return made


class UntypedStorage(_Storage):
    """The memory of one or more tensors, as bytes.

    Constructed from a size in bytes, from a sequence of bytes, or by `Tensor.untyped_storage()`.

    Example:
        >>> torch.zeros(3).untyped_storage().nbytes()
        12
    """

    is_sparse_csr = False
    filename: str | None = None

    def __init__(self, *args: Any, device: Any = None) -> None:
        on = checked_device(device)
        if len(args) > 1:
            raise TypeError("UntypedStorage() takes a size or a sequence of bytes")
        content = args[0] if args else 0
        if isinstance(content, (int, np.integer)):
            if content < 0:
                raise RuntimeError(f"Storage size calculation overflowed with sizes=[{int(content)}]")
            self._array: Array = (np.empty if on is cpu else empty)((int(content),), np.uint8)
        else:
            self._array = np.array(content, dtype=np.uint8)

    @classmethod
    def _of(cls, array: Array) -> UntypedStorage:
        """Return the storage that owns the memory of an array."""
        made = object.__new__(cls)
        owner = places.storage(array)
        made._array = owner.ravel("K").view(np.uint8)
        return made

    @classmethod
    def from_buffer(
        cls,
        buffer: Any,
        byte_order: str | None = None,
        count: int = -1,
        offset: int = 0,
        dtype: dtypes.dtype | None = None,
    ) -> UntypedStorage:
        """Return a storage with a copy of the bytes of an object that supports the buffer protocol.

        `byte_order` is "big", "little" or "native", not needed for single bytes; `count` the number of elements of
        `dtype`, which must be given, by default all; `offset` the first byte. ValueError: the buffer is too small, or
        is no whole number of elements.

        Example:
            >>> torch.UntypedStorage.from_buffer(b"ab", dtype=torch.int16, byte_order="big").tolist()
            [98, 97]
        """
        if dtype is None:
            raise RuntimeError("argument 'dtype' cannot be None")
        item, size = dtype.itemsize, memoryview(buffer).nbytes
        if byte_order is None and dtype not in (dtypes.uint8, dtypes.int8):
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        if byte_order not in (None, "big", "little", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if offset < 0 or offset > size:
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({offset}) , but got {size}"
            )
        if count < 0:
            if (size - offset) % item:
                raise ValueError(f"buffer size ({size}) must be a multiple of element size ({item})")
            count = (size - offset) // item
        elif count * item > size - offset:
            raise ValueError(
                f"buffer has only {size - offset} elements after offset {offset}, but specified a size of {count}"
            )
        made = cls()
        part = np.frombuffer(buffer, np.uint8)[offset : offset + count * item] if size else np.empty(0, np.uint8)
        made._array = (part != 0).view(np.uint8) if dtype is dtypes.bool else part.copy()
        if byte_order not in (None, "native", sys.byteorder):
            made.byteswap(dtype)
        return made

    def byteswap(self, dtype: dtypes.dtype) -> None:
        """Reverse the bytes of each element of a dtype.

        Example:
            >>> storage = torch.UntypedStorage([1, 2, 3, 4])
            >>> storage.byteswap(torch.int16)
            >>> storage.tolist()
            [2, 1, 4, 3]
        """
        whole = self._array[: self._array.size // dtype.itemsize * dtype.itemsize].reshape(-1, dtype.itemsize)
        whole[...] = whole[:, ::-1].copy()

    @classmethod
    def _new_shared(cls, size: int, *, device: Any = "cpu") -> UntypedStorage:
        """Return a storage in memory that processes share."""
        return cls(size, device=device).share_memory_()

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """Return a storage mapped from a file; see `tinytorch.from_file`."""
        made = cls()
        made._array = _mapped(filename, shared, nbytes)
        made.filename = os.fspath(filename) if shared else None
        return made

    size = __len__ = _Storage.nbytes

    def element_size(self) -> int:
        """Return 1.

        Example:
            >>> torch.ones(3).untyped_storage().element_size()
            1
        """
        return 1

    def untyped(self) -> UntypedStorage:
        """Return the storage itself."""
        return self

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

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return (self.data_ptr(), self.nbytes()) == (other.data_ptr(), other.nbytes())

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def copy_(self, source: Any, non_blocking: bool | None = None) -> UntypedStorage:
        """Copy the bytes of another storage of the same size into this storage and return it.

        Example:
            >>> x, y = torch.zeros(2), torch.ones(2)
            >>> _ = x.untyped_storage().copy_(y.untyped_storage())
            >>> x
            tensor([1., 1.])
        """
        other = source.untyped()._array
        if other.size != self._array.size:
            raise RuntimeError(f"size does not match, self was {self._array.size} bytes but src was {other.size} bytes")
        self._array[...] = other
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Resize the storage to `size` bytes, keeping the leading bytes; existing tensors keep the old memory.

        Example:
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
            >>> x = torch.ones(2)
            >>> x.untyped_storage().clone().data_ptr() == x.untyped_storage().data_ptr()
            False
        """
        made = UntypedStorage()
        made._array = self._array.copy()
        return made

    __copy__ = clone

    def new(self) -> UntypedStorage:
        """Return an empty storage."""
        return UntypedStorage()

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str:
        """Return the name of the storage type."""
        return "torch.storage.UntypedStorage"

    def __repr__(self) -> str:
        return _listed(self._array, f"UntypedStorage(device={self.device}) of size {self._array.size}")

    __str__ = __repr__


def _listed(array: Array, name: str) -> str:
    """Return the repr of a storage: one element per line, above 1000 only the first and last three."""
    if is_meta(array):
        shown = ["..."]
    elif array.size > 1000:
        shown = [*array[:3].tolist(), "...", *array[-3:].tolist()]
    else:
        shown = array.tolist()
    return (
        "\n".join(f" {each}" if each != "..." or len(shown) > 1 else each for each in shown)
        + f"\n[torch.storage.{name}]"
    )


class _Named(type):
    """The metaclass of `FloatStorage` etc.: calls construct a `TypedStorage`, `isinstance` checks its dtype."""

    dtype: dtypes.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return TypedStorage(*args, dtype=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, TypedStorage) and instance.dtype is cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def _from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """Return a storage with a copy of the elements in a buffer; see `UntypedStorage.from_buffer`."""
        if dtype is not None or len(args) == 5:
            raise RuntimeError(
                "from_buffer: 'dtype' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer"
            )
        return TypedStorage._from_buffer(*args, dtype=cls.dtype, device=device, **kwargs)

    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Return a storage with a copy of the elements in a buffer; see `UntypedStorage.from_buffer`."""
        _warn_once()
        return cls._from_buffer(*args, **kwargs)


_warned = [False]


def _warn_once() -> None:
    """Issue PyTorch's deprecation warning, once per process as PyTorch does."""
    if not _warned[0]:
        _warned[0] = True
        warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage "
            "class. This should only matter to you if you are using storages directly.  To access UntypedStorage "
            "directly, use tensor.untyped_storage() instead of tensor.storage()"
        )


class TypedStorage(_Storage):
    """A storage read as elements of one dtype; deprecated, as in PyTorch.

    It is made of a number of elements, a sequence of them, or an untyped storage, `wrap_storage`, to interpret.

    Example:
        >>> torch.TypedStorage([1, 2], dtype=torch.int64).tolist()
        [1, 2]
    """

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: dtypes.dtype | None = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        checked_device(device)
        self.dtype = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
        if wrap_storage is not None:
            if args:
                raise RuntimeError(
                    "TypedStorage.__new__ received an invalid combination of arguments. No positional arguments "
                    "should be given when using 'wrap_storage'"
                )
            if not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
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
    def filename(self) -> str | None:
        """The file that the memory is mapped from, or None."""
        return self._untyped_storage.filename

    def untyped(self) -> UntypedStorage:
        """Return the untyped storage of the same memory."""
        return self._untyped_storage

    def size(self) -> int:
        """Return the number of elements."""
        return int(self._array.size)

    __len__ = size

    def element_size(self) -> int:
        """Return the size of one element in bytes."""
        return self.dtype.itemsize

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

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def copy_(self, source: Any, non_blocking: bool | None = None) -> TypedStorage:
        """Copy the elements of another storage of the same size into this one, cast to its dtype, and return it."""
        if source.size() != self.size():
            raise RuntimeError(
                f"size does not match, self was {self.nbytes()} bytes but src was {source.nbytes()} bytes"
            )
        self._array[...] = source._array
        return self

    def resize_(self, size: int) -> None:
        """Resize the storage to `size` elements, keeping the leading ones; existing tensors keep the old memory."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        """Return a copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    __copy__ = clone

    def new(self, *args: Any) -> TypedStorage:
        """Return a new storage of the same dtype, constructed from `args`."""
        return TypedStorage(*args, dtype=self.dtype)

    @classmethod
    def _from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """Return a storage with a copy of the elements in a buffer; see `UntypedStorage.from_buffer`."""
        checked_device(device)
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        untyped = UntypedStorage.from_buffer(*args, **{**kwargs, "dtype": dtype})
        return cls(wrap_storage=untyped, dtype=dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """Return a storage with a copy of the elements in a buffer; see `UntypedStorage.from_buffer`."""
        _warn_once()
        return cls._from_buffer(*args, **kwargs)

    def pickle_storage_type(self) -> str:
        """Return the name of the storage type of this dtype."""
        return f"{self.dtype.tensor_name}Storage"

    def type(self, dtype: Any = None, non_blocking: bool = False) -> str:
        """Return the name of the storage type, e.g. "torch.FloatStorage"."""
        return f"torch.{self.pickle_storage_type()}"

    def __repr__(self) -> str:
        return _listed(
            self._array, f"TypedStorage(dtype={self.dtype}, device={self.device}) of size {self._array.size}"
        )

    __str__ = __repr__


def _named(kind: dtypes.dtype) -> Any:
    name = f"{kind.tensor_name}Storage"
    return _Named(name, (), {"dtype": kind, "__doc__": f"Storages of {kind}; see `TypedStorage`."})


_BY_DTYPE = {}
for _kind, _name in (
    (dtypes.bfloat16, "bfloat16"), (dtypes.bool, "bool"), (dtypes.uint8, "byte"), (dtypes.int8, "char"),
    (dtypes.float64, "double"), (dtypes.float32, "float"), (dtypes.float16, "half"), (dtypes.int32, "int"),
    (dtypes.int64, "long"), (dtypes.int16, "short"), (dtypes.complex128, "complex_double"),
    (dtypes.complex64, "complex_float"),
):  # fmt: skip

    def _convert(self: Any, kind: dtypes.dtype = _kind) -> TypedStorage:
        """Return a copy of the storage, cast to another dtype."""
        return self._as(kind)

    setattr(UntypedStorage, _name, _convert)
    setattr(TypedStorage, _name, _convert)
    _BY_DTYPE[_kind] = _named(_kind)

BFloat16Storage, BoolStorage, ByteStorage, CharStorage, DoubleStorage, FloatStorage, *_more = _BY_DTYPE.values()
HalfStorage, IntStorage, LongStorage, ShortStorage, ComplexDoubleStorage, ComplexFloatStorage = _more


@public(binds=True, asks="nobody")
def is_storage(obj: Any, /) -> bool:
    """Return whether `obj` is a storage.

    Example:
        >>> torch.is_storage(torch.zeros(1).untyped_storage()), torch.is_storage(torch.zeros(1))
        (True, False)
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


@public("", method="untyped_storage", traced="refused")
def untyped_storage(self: Tensor) -> UntypedStorage:
    """Return the storage of the tensor, which shares its memory, as bytes.

    Example:
        >>> torch.zeros(3)[1:].untyped_storage().nbytes()
        12
    """
    return UntypedStorage._of(self._memory)


@public("", method="storage", traced="refused")
def storage(self: Tensor) -> TypedStorage:
    """Return the storage of the tensor as elements of its dtype; deprecated, as in PyTorch."""
    _warn_once()
    return _typed_storage(self)


def _typed_storage(self: Tensor) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped_storage(self), dtype=self.dtype)


@public("", method="storage_type")
def storage_type(self: Tensor) -> Any:
    """Return the type of the tensor's storage."""
    return _BY_DTYPE.get(self.dtype)


# Memory shared by processes -----------------------------------------------------------------------


def _is_mapped(array: Array) -> bool:
    base = places.storage(array).base
    mmap = sys.modules.get("mmap")  # without it nothing is mapped
    return mmap is not None and isinstance(base.obj if isinstance(base, memoryview) else base, mmap.mmap)


def _shared(array: Array) -> Array:
    """Return a copy in memory shared with processes forked from this one."""
    if not array.size:
        return array
    try:
        import mmap
    except ImportError:  # this Python cannot share memory, nor start processes
        return array.copy()
    raw = np.frombuffer(mmap.mmap(-1, array.nbytes), np.uint8)
    made = np.ndarray(array.shape, array.dtype, raw, 0, np.empty_like(array).strides)
    made[...] = array
    return made


def _mapped(filename: Any, shared: bool | None, nbytes: int) -> Array:
    """Map the first `nbytes` of a file as an array: writes reach the file if `shared`, else only this process."""
    path = os.fspath(filename)
    if shared:
        check_writes_reach_files("from_file(shared=True)", "shared=False")
    if shared and (not os.path.exists(path) or os.path.getsize(path) < nbytes):
        with open(path, "ab") as file:
            file.truncate(nbytes)
    if not nbytes:
        return np.empty(0, np.uint8)
    available = os.path.getsize(path) if os.path.exists(path) else None
    if available is None:
        raise RuntimeError(f"unable to open file <{path}> in read-only mode: No such file or directory (2)")
    if available < nbytes:
        raise RuntimeError(f"file <{path}> size <{available}> is smaller than the required mapping size <{nbytes}>")
    with open(path, "r+b" if shared else "rb") as file:
        return np.frombuffer(map_file(file, nbytes, bool(shared)), np.uint8)


def map_file(file: Any, nbytes: int, writes: bool) -> Any:
    """Return the first `nbytes` of an open file (0: all of it) as memory; writes reach the file, if they should."""
    try:
        import mmap
    except ImportError:
        data = file.read(nbytes or -1)
        return bytearray(data)
    return mmap.mmap(file.fileno(), nbytes, access=mmap.ACCESS_WRITE if writes else mmap.ACCESS_COPY)


def check_writes_reach_files(what: str, instead: str) -> None:
    """Raise an error where a file that is mapped into memory is a copy of it: then writes to it would be lost."""
    if sys.platform in ("emscripten", "wasi") or importlib.util.find_spec("mmap") is None:
        raise NotImplementedError(
            f"{what}: this Python maps a file by copying it ({sys.platform}), so writes to the tensor would not reach "
            f"the file. Use {instead}, and save the tensor by torch.save or by tensor.numpy().tofile(file)."
        )
