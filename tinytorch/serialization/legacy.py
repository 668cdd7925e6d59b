"""PyTorch's format before 1.6: pickles, one after the other, then the bytes of the storages; and 0.1's tar archive."""

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
from tinytorch.serialization.archive import _read_fully, _whole
from tinytorch.serialization.storage import Storage, _StorageReader
from tinytorch.serialization.weights_only import _rebuild_tensor

_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001


def _write_legacy(file: Any, pickled: bytes, storages: Iterable[Storage], protocol: int) -> None:
    put = _whole(file.write)
    sizes = {"short": 2, "int": 4, "long": 4}
    facts = {"protocol_version": _VERSION, "little_endian": sys.byteorder == "little", "type_sizes": sizes}
    for fact in (_MAGIC, _VERSION, facts):
        put(pickle.dumps(fact, protocol))
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
    """Storages whose bytes come after the pickle that names them."""

    def __init__(self, file: IO[bytes], map_location: Any) -> None:
        self.file, self.map_location, self.loaded = file, map_location, {}
        start = file.tell()
        self.length = file.seek(0, io.SEEK_END)
        file.seek(start)
        self.views: dict[str, Any] = {}

    def load(self, identity: Any) -> Any:
        """Return the storage that the pickle names: ("storage", type, key, location, length, which part of it)."""
        # Python 2 wrote strings that `encoding="bytes"` leaves as they are.
        if isinstance(identity, tuple):
            identity = tuple(part.decode("ascii") if isinstance(part, bytes) else part for part in identity)
            if identity[0] == "module" and len(identity) == 4:
                return identity[1]  # a class, with the file and the text of its source
        found = super().load(identity[:5] if isinstance(identity, tuple) else identity)
        if identity[5:] in ((), (None,)):
            return found
        try:
            key, offset, length = identity[5]
            return self.views.setdefault(key, _part(found, offset, length))
        except (TypeError, ValueError) as error:
            raise pickle.UnpicklingError(f"a part of a storage is described by {reprlib.repr(identity[5])}") from error

    def read(self, dtype: dtypes.dtype, key: str, numel: int) -> Storage:
        """Return memory for what is still to be read."""
        missing = numel * dtype.itemsize - self.length
        if missing > 0:
            raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
        return Storage(np.empty(numel, dtype.numpy), dtype, key)

    def fill(self, array: np.ndarray[Any, Any]) -> None:
        """Read the bytes of a storage, which come after their number."""
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


def _part(whole: Any, offset: int, length: int) -> TypedStorage:
    memory = UntypedStorage()
    memory._array = whole._array[offset : offset + length].view(np.uint8)
    return TypedStorage(wrap_storage=memory, dtype=whole.dtype)


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
    unpickle(file, storages)  # facts about the machine that wrote it
    made = unpickle(file, storages)
    for key in unpickle(file, storages):
        key = key.decode("ascii") if isinstance(key, bytes) else key
        if key not in storages.loaded:
            raise AssertionError(f"storage key {key!r} not found in deserialized_objects")
        storages.fill(storages.loaded[key][1].array)
    return made


def _load_tar(file: IO[bytes], map_location: Any, unpickle: Callable[..., Any]) -> Any:
    """Return the object of an archive of the storages, the tensors on them, and the pickle that names both."""
    import tarfile

    known: dict[Any, Any] = {}

    class Known(_LegacyStorages):
        def load(self, identity: Any) -> Any:
            return identity[0] if isinstance(identity, tuple) else known[int(identity)]

    with tarfile.open(fileobj=file, mode="r:") as tar:
        part: Any = tar.extractfile("storages")
        storages = Known(part, map_location)
        for _ in range(unpickle(part, storages)):
            key, location, kind = unpickle(part, storages)
            (numel,) = struct.unpack("<q", storages.bytes(8))
            part.seek(-8, io.SEEK_CUR)
            storage = storages.restore(storages.read(kind.dtype, key, numel), location)
            storages.fill(storage.array)
            known[key] = storage.as_users_see_it(False)
        for key, root, offset, numel in unpickle(part, storages):
            known[key] = _part(known[root], offset, numel)
        part = tar.extractfile("tensors")
        tensors = Known(part, map_location)
        for _ in range(unpickle(part, tensors)):
            key, root, _ = unpickle(part, tensors)
            (ndim,) = struct.unpack("<i4x", tensors.bytes(8))
            numbers = struct.unpack(f"<{2 * ndim + 1}q", tensors.bytes(16 * ndim + 8))
            known[key] = _rebuild_tensor(known[root], numbers[-1], numbers[:ndim], numbers[ndim:-1])
        return unpickle(tar.extractfile("pickle"), tensors)
