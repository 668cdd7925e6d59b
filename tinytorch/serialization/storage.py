"""Storages of checkpoints: the memory of which tensors are views."""

from __future__ import annotations

import pickle
import reprlib
import sys
from typing import Any, NoReturn, cast

import numpy as np

from tinytorch.core.device import device
from tinytorch.kernels import dtypes, meta
from tinytorch.ops.storage import TypedStorage, UntypedStorage, check_writes_reach_files, map_file
from tinytorch.serialization.archive import _Archive, _damaged

MAP_SHARED, MAP_PRIVATE = 1, 2  # as in the module mmap, which is imported where it is used


class set_default_mmap_options:
    """Set whether `load` with `mmap=True` lets writes to tensors reach the file; also a context manager.

    Args:
        flags: `mmap.MAP_PRIVATE`, the default: writes stay in this process; or `mmap.MAP_SHARED`: they change the file,
            whose checksums are wrong from then on, so that it can only be loaded with `mmap=True`.

    Example:
        >>> import mmap
        >>> with torch.serialization.set_default_mmap_options(mmap.MAP_SHARED):
        ...     torch.serialization.get_default_mmap_options() == mmap.MAP_SHARED
        True
    """

    flags: int = MAP_PRIVATE  # of the class: the current setting

    def __init__(self, flags: int) -> None:
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, "
                f"but got {flags}"
            )
        self.prev = set_default_mmap_options.flags
        set_default_mmap_options.flags = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        set_default_mmap_options.flags = self.prev


def get_default_mmap_options() -> int:
    """Return what `set_default_mmap_options` has set.

    Example:
        >>> torch.serialization.get_default_mmap_options()
        2
    """
    return set_default_mmap_options.flags


class Storage:
    """Memory of which tensors are views; the argument that `load` passes to a callable `map_location`.

    Attributes:
        array: the elements in memory order, one-dimensional.
        dtype: the dtype of the elements.
    """

    __module__ = "tinytorch.serialization"  # its public place
    __slots__ = ("array", "dtype", "key", "seen")

    def __init__(self, array: np.ndarray[Any, Any], dtype: dtypes.dtype, key: str) -> None:
        self.array, self.dtype, self.key = array, dtype, key
        self.seen: TypedStorage | None = None  # the public storage object, created on demand

    def cpu(self) -> Storage:
        """Return the storage, which is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Raise RuntimeError: the device does not exist."""
        _refuse_location("cuda")

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self.array.nbytes

    def to_public(self, untyped: bool) -> TypedStorage | UntypedStorage:
        """Return the public storage object, the same one at every call."""
        if self.seen is None:
            memory = UntypedStorage()
            memory._array = self.array.view(np.uint8)
            self.seen = TypedStorage(wrap_storage=memory, dtype=self.dtype)
        return self.seen.untyped() if untyped else self.seen


class _StorageType:
    """The meaning of a name such as torch.FloatStorage in a file."""

    def __init__(self, dtype: dtypes.dtype, untyped: bool = False) -> None:
        self.dtype, self.untyped = dtype, untyped


def _address(array: np.ndarray[Any, Any]) -> int:
    return cast(int, array.__array_interface__["data"][0])


def _refuse_location(location: str) -> NoReturn:
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {location}): use map_location='cpu'"
    )


class _StorageReader:
    """Reads every storage of an archive once, and maps it to the device that `map_location` specifies."""

    def __init__(self, archive: _Archive, map_location: Any, mapped: bool) -> None:
        self.archive = archive
        self.map_location = map_location
        self.loaded: dict[str, tuple[Storage, Storage]] = {}
        self.swapped = False
        self.map: Any = None
        if "byteorder" in archive:
            order = archive.read("byteorder")
            if order not in (b"little", b"big"):
                raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
            self.swapped = order.decode() != sys.byteorder
        else:
            self.swapped = sys.byteorder != "little"  # as PyTorch assumes
        if mapped:
            if set_default_mmap_options.flags == MAP_SHARED:
                check_writes_reach_files("load(mmap=True) with mmap.MAP_SHARED", "mmap.MAP_PRIVATE")
                with open(archive.file.name, "r+b") as file:
                    self.map = map_file(file, 0, True)
            else:  # a private copy-on-write mapping: tensors are writable, the file is not changed
                archive.file.seek(0)
                self.map = map_file(archive.file, 0, False)

    def load(self, identity: Any) -> TypedStorage | UntypedStorage:
        """Return the storage for a persistent id, ("storage", type, key, location, length)."""
        if type(identity) is not tuple or len(identity) != 5 or identity[0] != "storage":
            raise pickle.UnpicklingError(
                f"Unknown typename for persistent_load, expected 'storage' but got {reprlib.repr(identity)}"
            )
        _, kind, key, location, numel = identity
        if type(kind) is not _StorageType or type(key) is not str or type(location) is not str:
            raise pickle.UnpicklingError(f"a storage is described by {reprlib.repr(identity)}")
        if type(numel) is not int or numel < 0:
            raise pickle.UnpicklingError(f"storage {key} has an impossible length: {reprlib.repr(numel)}")
        if key not in self.loaded:
            if str(self.map_location) == "meta":  # nothing is read
                read = restored = Storage(meta.empty((numel,), kind.dtype.numpy), kind.dtype, key)
            else:
                read = self.read(kind.dtype, key, numel)
                restored = self.restore(read, location)
            self.loaded[key] = (read, restored)
        read, restored = self.loaded[key]
        if read.dtype is not kind.dtype or read.array.size != numel:
            raise RuntimeError(_damaged(f"storage {key} is described in two ways"))
        return restored.to_public(kind.untyped)

    def read(self, dtype: dtypes.dtype, key: str, numel: int) -> Storage:
        name, size = f"data/{key}", self.archive.size(f"data/{key}")
        if size // dtype.itemsize != numel:
            raise RuntimeError(
                _damaged(
                    f"failed reading file {name}: {size} bytes are not {numel} of {dtype}, "
                    "so the storage has the wrong size"
                )
            )
        if self.map is None:
            array = self.archive.read_into(name, np.empty(numel, dtype.numpy))
        else:
            array = np.frombuffer(self.map, np.uint8, size, self.archive.offset(name))
            array = array[: numel * dtype.itemsize]
            aligned = _address(array) % dtype.itemsize == 0
            array = (array if aligned else array.copy()).view(dtype.numpy)
        if self.swapped:
            array = array.byteswap()
        return Storage(array, dtype, key)

    def restore(self, storage: Storage, location: str) -> Storage:
        mapping = self.map_location
        if isinstance(mapping, dict):
            location = str(mapping.get(location, location))
        elif isinstance(mapping, (str, device)):
            location = str(mapping)
        elif mapping is not None:
            result = mapping(storage, location)
            if result is not None:
                if not isinstance(result, Storage):
                    raise TypeError(
                        "load: map_location must return a storage such as its argument, or None, "
                        f"but returned {type(result).__name__}"
                    )
                return result
        if location != "cpu":
            _refuse_location(location)
        return storage
