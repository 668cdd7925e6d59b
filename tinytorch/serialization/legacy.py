"""PyTorch's format before 1.6, a sequence of pickles followed by the bytes of the storages; and 0.1's tar archive."""

from __future__ import annotations

import io
import pickle
import reprlib
import struct
import sys
from collections.abc import Callable, Iterable
from typing import IO, Any

import numpy as np

from tinytorch.kernels import dtypes
from tinytorch.ops.storage import TypedStorage, UntypedStorage
from tinytorch.serialization.archive import _complete_writer, _read_fully
from tinytorch.serialization.storage import Storage, _StorageReader
from tinytorch.serialization.weights_only import _rebuild_tensor

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001


def _write_legacy(file: Any, pickled: bytes, storages: Iterable[Storage], protocol: int) -> None:
    put = _complete_writer(file.write)
    sizes = {"short": 2, "int": 4, "long": 4}
    system = {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for header in (_MAGIC, _VERSION, system):
        put(pickle.dumps(header, protocol))
    put(pickled)
    ordered = sorted(storages, key=lambda storage: storage.key)
    put(pickle.dumps([storage.key for storage in ordered], protocol))
    for storage in ordered:
        array = storage.array if sys.byteorder == "little" else storage.array.byteswap()
        put(struct.pack("<q", array.size))
        put(array.view(np.uint8))
    if hasattr(file, "flush"):
        file.flush()


class _LegacyStorages(_StorageReader):
    """Storages whose bytes follow the pickle that refers to them."""

    def __init__(self, file: IO[bytes], map_location: Any) -> None:
        self.file, self.map_location, self.loaded = file, map_location, {}
        start = file.tell()
        self.length = file.seek(0, io.SEEK_END)
        file.seek(start)
        self.views: dict[str, Any] = {}

    def load(self, identity: Any) -> Any:
        """Return the storage for a persistent id, which may end in None or in a view's (key, offset, length)."""
        # Strings written by Python 2 are bytes with `encoding="bytes"`.
        if isinstance(identity, tuple):
            identity = tuple(part.decode("ascii") if isinstance(part, bytes) else part for part in identity)
            if identity[0] == "module" and len(identity) == 4:
                return identity[1]  # a class, followed by its source file and text
        storage = super().load(identity[:5] if isinstance(identity, tuple) else identity)
        if identity[5:] in ((), (None,)):
            return storage
        try:
            key, offset, length = identity[5]
            return self.views.setdefault(key, _view(storage, offset, length))
        except (TypeError, ValueError) as error:
            raise pickle.UnpicklingError(f"invalid view of a storage: {reprlib.repr(identity[5])}") from error

    def read(self, dtype: dtypes.dtype, key: str, numel: int) -> Storage:
        """Allocate a storage, whose bytes follow in the file."""
        missing = numel * dtype.itemsize - self.length
        if missing > 0:
            raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
        return Storage(np.empty(numel, dtype.numpy), dtype, key)

    def fill(self, array: np.ndarray[Any, Any]) -> None:
        """Read the number of elements and the bytes of a storage."""
        (numel,) = struct.unpack("<q", self.bytes(8))
        if numel != array.size:
            raise RuntimeError(f"storage has wrong byte size: expected {numel * array.itemsize} got {array.nbytes}")
        array.view(np.uint8)[:] = np.frombuffer(self.bytes(array.nbytes), np.uint8)
        if sys.byteorder != "little":
            array.byteswap(inplace=True)

    def bytes(self, count: int) -> bytearray:
        """Return the next bytes of the file."""
        target = bytearray(min(count, self.length))
        read = _read_fully(self.file, memoryview(target))
        if read != count:
            raise RuntimeError(f"unexpected EOF, expected {count - read} more bytes. The file might be corrupted.")
        return target


def _view(storage: Any, offset: int, length: int) -> TypedStorage:
    memory = UntypedStorage()
    memory._array = storage._array[offset : offset + length].view(np.uint8)
    return TypedStorage(wrap_storage=memory, dtype=storage.dtype)


def _load_legacy(file: IO[bytes], map_location: Any, unpickle: Callable[..., Any], weights_only: bool) -> Any:
    storages = _LegacyStorages(file, map_location)
    start = file.tell()
    head = file.read(262)
    file.seek(start)
    if not start and head[257:] == b"ustar":
        if weights_only:
            raise RuntimeError("Cannot use ``weights_only=True`` with files saved in the legacy .tar format.")
        return _load_tar(file, map_location, unpickle)
    if head[:1] != pickle.PROTO:
        raise pickle.UnpicklingError(
            f"{'Weights only load failed. ' if weights_only else ''}The file is no checkpoint: it begins with "
            f"{head[:8]!r}, which is neither a zip archive nor PyTorch's legacy format."
        )
    if unpickle(file, storages) != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = unpickle(file, storages)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    unpickle(file, storages)  # properties of the system that wrote the file
    obj = unpickle(file, storages)
    for key in unpickle(file, storages):
        key = key.decode("ascii") if isinstance(key, bytes) else key
        if key not in storages.loaded:
            raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
        storages.fill(storages.loaded[key][1].array)
    return obj


def _load_tar(file: IO[bytes], map_location: Any, unpickle: Callable[..., Any]) -> Any:
    """Return the object in a tar archive of storages, tensors, and a pickle that refers to both."""
    import tarfile

    objects: dict[Any, Any] = {}

    class Numbered(_LegacyStorages):
        def load(self, identity: Any) -> Any:
            return identity[0] if isinstance(identity, tuple) else objects[int(identity)]

    with tarfile.open(fileobj=file, mode="r:") as tar:
        part: Any = tar.extractfile("storages")
        storages = Numbered(part, map_location)
        for _ in range(unpickle(part, storages)):
            key, location, kind = unpickle(part, storages)
            (numel,) = struct.unpack("<q", storages.bytes(8))
            part.seek(-8, io.SEEK_CUR)
            storage = storages.restore(storages.read(kind.dtype, key, numel), location)
            storages.fill(storage.array)
            objects[key] = storage.to_public(False)
        for key, root, offset, numel in unpickle(part, storages):
            objects[key] = _view(objects[root], offset, numel)
        part = tar.extractfile("tensors")
        tensors = Numbered(part, map_location)
        for _ in range(unpickle(part, tensors)):
            key, root, _ = unpickle(part, tensors)
            (ndim,) = struct.unpack("<i4x", tensors.bytes(8))
            numbers = struct.unpack(f"<{2 * ndim + 1}q", tensors.bytes(16 * ndim + 8))
            objects[key] = _rebuild_tensor(objects[root], numbers[-1], numbers[:ndim], numbers[ndim:-1])
        return unpickle(tar.extractfile("pickle"), tensors)
