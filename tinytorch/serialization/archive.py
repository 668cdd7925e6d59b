"""The zip archive of a checkpoint: a writer that needs only `write`, and a reader that validates all numbers."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from typing import IO, Any, cast

import numpy as np

_ALIGNMENT = 64  # bytes, of every record, so that storages can be memory-mapped
_FULL32, _FULL16 = 0xFFFFFFFF, 0xFFFF  # placeholders of numbers that are in 64-bit fields
_LIMIT32, _LIMIT16 = _FULL32, _FULL16  # sizes, offsets and counts from these on need 64-bit fields
# Names are UTF-8; the date is 1 January 1980, so that equal contents give equal files.
_UTF8, _DATE = 0x800, 0x21


def _complete_writer(write: Callable[[Any], Any]) -> Callable[[Any], None]:
    """Return a function that calls `write` until all data are written, or raises."""
    raw = isinstance(getattr(write, "__self__", None), io.RawIOBase)

    def put(data: Any) -> None:
        view = memoryview(data)
        while len(view):  # an unbuffered file may write only a part
            count = write(view)
            if not isinstance(count, int):
                # None from a raw file means that it could not write; other objects need not return a count.
                count = 0 if raw and count is None else len(view)
            if not 0 < count <= len(view):
                raise OSError(f"file write failed: of {len(view)} bytes, {count} were written")
            view = view[count:]

    return put


def _write_archive(write: Callable[[Any], Any], records: list[tuple[str, Any]]) -> None:
    """Write a zip archive of uncompressed, aligned records, using only `write`.

    Unlike Python's zipfile it does not seek back to fill in sizes, so it can write to pipes and to any object
    with a `write` method.
    """
    import zlib

    checks = [(name, data, zlib.crc32(data), memoryview(data).nbytes) for name, data in records]
    names = "".join(name for name, _, _, _ in checks).encode()
    combined = 0
    for _, _, crc, _ in checks:
        combined = zlib.crc32(struct.pack("<I", crc), combined)
    serialization_id = f"{zlib.crc32(names):020d}{combined:020d}".encode()
    checks.append((".data/serialization_id", serialization_id, zlib.crc32(serialization_id), 40))
    put = _complete_writer(write)
    position, directory = 0, b""
    for name, data, crc, size in checks:
        path = f"archive/{name}".encode()
        large = size >= _LIMIT32 or position >= _LIMIT32
        short_size = _FULL32 if large else size
        sizes = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        padding = -(position + 30 + len(path) + len(sizes) + 4) % _ALIGNMENT
        extra = sizes + struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        needed = 45 if large else 20
        fields = (needed, _UTF8, 0, 0, _DATE, crc, short_size, short_size, len(path))
        put(struct.pack("<4s5H3I2H", b"PK\3\4", *fields, len(extra)) + path + extra)
        put(data)
        offset, extra = position, b""
        if large:
            offset, extra = _FULL32, struct.pack("<HHQQQ", 1, 24, size, size, position)
        tail = (len(extra), 0, 0, 0, 0, offset)
        directory += struct.pack("<4s6H3I5H2I", b"PK\1\2", needed, *fields, *tail) + path + extra
        position += 30 + len(path) + len(sizes) + 4 + padding + size
    put(directory)
    count, end = len(checks), position + len(directory)
    if count >= _LIMIT16 or end >= _LIMIT32:
        sizes64 = (44, 45, 45, 0, 0, count, count, len(directory), position)
        put(struct.pack("<4sQ2H2I4Q", b"PK\6\6", *sizes64))
        put(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1))
        count, position = _FULL16, _FULL32
    size = min(len(directory), _FULL32)
    put(struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, position, 0))


class _Archive:
    """The records of a checkpoint. All sizes and offsets in the file are validated."""

    def __init__(self, file: IO[bytes]) -> None:
        import zipfile

        self.file = file
        start = file.tell()
        self.length = file.seek(0, io.SEEK_END)
        try:
            entries = zipfile.ZipFile(file).infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OSError) as error:
            raise RuntimeError(_damaged(f"failed reading zip archive: {error}")) from error
        if not entries:
            raise RuntimeError(_damaged("failed finding central directory: no records"))
        if min(entry.header_offset for entry in entries) != start:
            raise RuntimeError(_damaged("the archive does not begin where the file is read from: is it the second?"))
        self.prefix = entries[0].filename.split("/")[0] + "/"
        self.entries: dict[str, zipfile.ZipInfo] = {}
        end = start
        for entry in sorted(entries, key=lambda entry: entry.header_offset):
            name = entry.orig_filename
            if not name.startswith(self.prefix):
                raise RuntimeError(_damaged(f"record {name!r} lies outside {self.prefix}"))
            if name in self.entries:
                raise RuntimeError(_damaged(f"there are two records named {name!r}"))
            if entry.compress_type or entry.flag_bits & 1 or entry.compress_size != entry.file_size:
                raise RuntimeError(_damaged(f"record {name!r} is compressed or encrypted"))
            if entry.header_offset < end or entry.header_offset + entry.file_size > self.length:
                raise RuntimeError(_damaged(f"record {name!r} overlaps another or ends too late"))
            end = entry.header_offset + entry.file_size
            self.entries[name] = entry
        # PyTorch can omit checksums (set_crc32_options); then all of them are 0.
        self.has_checksums = any(entry.CRC for entry in entries)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.entries

    def size(self, name: str) -> int:
        """Return the number of bytes of a record; raise RuntimeError if it does not exist."""
        if name not in self:
            raise RuntimeError(_damaged(f"failed locating file {name}: file not found"))
        return self.entries[self.prefix + name].file_size

    def offset(self, name: str) -> int:
        """Return the offset of a record's bytes in the file."""
        size, entry = self.size(name), self.entries[self.prefix + name]
        self.file.seek(entry.header_offset)
        header = self.file.read(30)
        if len(header) != 30 or header[:4] != b"PK\3\4":
            raise RuntimeError(_damaged(f"failed reading file {name}: no record is there"))
        path_length, extra_length = struct.unpack("<2H", header[26:])
        path = self.file.read(path_length)
        begin: int = entry.header_offset + 30 + path_length + extra_length
        if path != entry.orig_filename.encode() or begin + size > self.length:
            raise RuntimeError(_damaged(f"failed reading file {name}: file read failed"))
        return begin

    def read(self, name: str) -> bytes:
        """Return the bytes of a record."""
        return self.read_into(name, np.empty(self.size(name), np.uint8)).tobytes()

    def read_into(self, name: str, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Fill `memory` with the first bytes of a record; verify the checksum if it is read completely."""
        import zlib

        self.file.seek(self.offset(name))
        target = memoryview(cast(Any, memory.view(np.uint8)))
        whole = memory.nbytes == self.size(name)
        if _read_fully(self.file, target) != target.nbytes:
            raise RuntimeError(_damaged(f"failed reading file {name}: file read failed"))
        if whole and self.has_checksums and zlib.crc32(target) != self.entries[self.prefix + name].CRC:
            raise RuntimeError(_damaged(f"failed reading file {name}: its bytes were changed"))
        return memory


class PyTorchFileReader:
    """A reader of single records of a checkpoint.

    Raises:
        RuntimeError: the file does not exist, or is not a checkpoint.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"x": torch.zeros(2)}, file)
        >>> _ = file.seek(0)
        >>> reader = torch.PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), len(reader.get_record("data/0"))
        (True, 8)
    """

    __module__ = "tinytorch.serialization"  # its public place

    def __init__(self, file: Any) -> None:
        opened = isinstance(file, (str, os.PathLike))
        if opened:
            try:
                file = open(file, "rb")  # noqa: SIM115 (closed in __del__)
            except OSError as error:
                raise RuntimeError(
                    f"open file failed because of errno {error.errno} on fopen: {error.strerror}, file path: {file}"
                ) from error
        self._opened = file if opened else None
        self._archive = _Archive(file)

    def __del__(self) -> None:
        opened = getattr(self, "_opened", None)
        if opened is not None:
            opened.close()

    def get_all_records(self) -> list[str]:
        """Return the names of the records."""
        start = len(self._archive.prefix)
        return [name[start:] for name in self._archive.entries]

    def has_record(self, name: str) -> bool:
        """Return whether a record exists."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record.

        Raises:
            RuntimeError: the record does not exist, or its checksum is wrong.
        """
        return self._archive.read(name)

    def get_record_offset(self, name: str) -> int:
        """Return the offset of a record's bytes in the file."""
        return self._archive.offset(name)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return self._archive.size(name)

    def serialization_id(self) -> str:
        """Return the identifier of the file's contents, or "" if there is none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


def _read_fully(file: Any, target: memoryview) -> int:
    """Read until `target` is full or the file ends; return the number of bytes read."""
    done: int = 0
    while done < len(target):  # an unbuffered file may return less than requested
        if hasattr(file, "readinto"):
            count: int = file.readinto(target[done:])
        else:
            chunk = file.read(len(target) - done)
            count = len(chunk)
            target[done : done + count] = chunk
        if not count:
            break
        done += count
    return done


def _damaged(what: str) -> str:
    return (
        f"PytorchStreamReader {what}. There is a high likelihood that your checkpoint file is "
        "corrupted: it may not have been saved or transferred as a whole, or was changed since."
    )
