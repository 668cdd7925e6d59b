"""`save` and `load`: PyTorch's checkpoint files, written and read without PyTorch (floor 4).

A checkpoint is a zip archive whose records are stored, not compressed:

- `archive/data.pkl`: the object as a pickle, in which each tensor stands as the call of one of
  PyTorch's rebuild functions (`torch._utils._rebuild_tensor_v2`) on a storage, given by its number;
- `archive/data/<number>`: the bytes of a storage, the memory that one or more tensors are views of;
- `archive/byteorder`, `archive/version`, `archive/.data/serialization_id`: facts about the file.

Writing is `_Pickler`, which puts PyTorch's names for tensors and what belongs to them, and pickles
everything else (whole modules, optimizers …) as Python does, then `_write_archive`.
Reading is `_Archive`, which trusts no number in the file, then one of two:

- `_Reader`, a small machine for the part of the pickle language that describes data. It looks names
  up in a list (`_ALLOWED`) instead of importing them, so a file cannot make it run code;
- for `weights_only=False`, Python's own Unpickler with PyTorch's names found here (`_Trusting`).
"""

from __future__ import annotations

import codecs
import collections
import importlib
import io
import math
import os
import pickle
import reprlib
import struct
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import IO, Any, ClassVar, NoReturn, cast

import numpy as np

from tinytorch._atomic import replacing
from tinytorch.core import dtypes
from tinytorch.core.device import device
from tinytorch.core.layout import layout
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.random import Generator
from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = [
    "DEFAULT_PROTOCOL", "PyTorchFileReader", "add_safe_globals", "clear_safe_globals", "get_safe_globals", "load",
    "safe_globals", "save",
]  # fmt: skip

DEFAULT_PROTOCOL = 2  # of pickles
MAP_LOCATION = Callable[[Any, str], Any] | device | str | dict[str, str] | None  # for annotations


class Storage:
    """Memory that tensors are views of: what `load` hands to a callable `map_location`.

    Attributes:
        array: the elements in the order of memory, one-dimensional.
        dtype: their type.
    """

    __slots__ = ("array", "dtype", "key", "seen")

    def __init__(self, array: np.ndarray[Any, Any], dtype: dtypes.dtype, key: str) -> None:
        self.array, self.dtype, self.key = array, dtype, key
        self.seen: TypedStorage | None = None  # the storage as users know it, once it is asked for

    def cpu(self) -> Storage:
        """Return the storage, which is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Raise RuntimeError: there is no such device."""
        _refuse_location("cuda")

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self.array.nbytes

    def as_users_see_it(self, untyped: bool) -> TypedStorage | UntypedStorage:
        """Return the storage that an object holds, one for all that hold it."""
        if self.seen is None:
            memory = UntypedStorage()
            memory._array = self.array.view(np.uint8)
            self.seen = TypedStorage(wrap_storage=memory, dtype=self.dtype)
        return self.seen.untyped() if untyped else self.seen


# Names allowed by the user ------------------------------------------------------------------------

_safe: dict[str, Any] = {}
#: Modules whose functions are refused even when the user allows them, as in PyTorch.
_BLOCKED = frozenset({"nt", "os", "posix", "sys"})


def add_safe_globals(safe_globals: Iterable[Any]) -> None:
    """Let `load` with `weights_only=True` make instances of these classes, and call these functions.

    Only add what is safe to call with any arguments: who writes the file chooses them.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name it has in files.

    Example:
        >>> import io
        >>> from collections import defaultdict
        >>> from tinytorch.serialization import load, safe_globals, save
        >>> buffer = io.BytesIO()
        >>> with safe_globals([defaultdict, list]):
        ...     save(defaultdict(list, a=[1]), buffer)
        ...     load(io.BytesIO(buffer.getvalue()))
        defaultdict(<class 'list'>, {'a': [1]})
    """
    for each in safe_globals:
        _safe.update([_named(each)])


def _named(entry: Any) -> tuple[str, Any]:
    if not isinstance(entry, tuple):
        return f"{entry.__module__}.{entry.__qualname__}", entry
    if len(entry) != 2:
        raise ValueError(
            f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
        )
    if not isinstance(entry[1], str):
        raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
    return entry[1], entry[0]


def get_safe_globals() -> list[Any]:
    """Return what `add_safe_globals` has added.

    Example:
        >>> torch.serialization.get_safe_globals()
        []
    """
    return list(_safe.values())


def clear_safe_globals() -> None:
    """Forget all that `add_safe_globals` has added.

    Example:
        >>> torch.serialization.clear_safe_globals()
    """
    _safe.clear()


@contextmanager
def safe_globals(safe_globals: Iterable[Any]) -> Iterator[None]:
    """Do `add_safe_globals` for a `with` block only.

    Example:
        >>> with torch.serialization.safe_globals([frozenset]):
        ...     torch.serialization.get_safe_globals()
        [<class 'frozenset'>]
    """
    before = dict(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        clear_safe_globals()
        _safe.update(before)


# Saving -------------------------------------------------------------------------------------------


def save(
    obj: Any,
    f: str | os.PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` to a file that both PyTorch's `torch.load` and `load` read.

    A file at a path is replaced as a whole or not at all, also if the program is killed: the bytes
    go to a temporary file, reach the disk, and only then take its name. What a program that was
    killed may leave of that (on Linux next to never), the next `save` in the directory removes.
    Tensors that share memory share it in the file.

    Args:
        obj: best a `state_dict()`, or other data: tensors and parameters, numbers, strings, bytes,
            None, dtypes, devices, sizes, and dicts, lists, tuples and sets of them. Whatever else
            can be pickled is saved, too, such as a whole module or an optimizer; `load` then needs
            `weights_only=False` and the classes at the places where they are now.
        f: a path, or an object with a `write` method, such as `io.BytesIO`.
        pickle_module: `pickle`; nothing else is supported.
        pickle_protocol: 2, which is what PyTorch reads with `weights_only=True`; 3 to 5 work here.

    Raises:
        pickle.PicklingError: `obj` holds something that has no name to be found by, such as a
            lambda. Nothing has been written then.
        RuntimeError: the parent directory does not exist, the file cannot be opened, or there is no
            space for it. What was there before is still there then.
        OSError: an object `f` takes fewer bytes than it is given, or what its own `write` raises.
        AttributeError: `f` is neither a path nor a file.
        NotImplementedError: an option that is left out.

    Example:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save({"epoch": 3, "weight": torch.ones(2)}, buffer)
        >>> torch.load(io.BytesIO(buffer.getvalue()))
        {'epoch': 3, 'weight': tensor([1., 1.])}
    """
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    if pickle_module is not None and pickle_module is not pickle:
        raise NotImplementedError("save: pickle_module other than pickle is not supported")
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save: the legacy format (_use_new_zipfile_serialization=False) is not supported")
    if pickle_protocol not in (2, 3, 4, 5):
        raise ValueError(f"save: pickle_protocol must be 2, 3, 4 or 5, got {pickle_protocol}")
    # All that can be wrong with `obj` shows here, before any file is touched.
    pickled = io.BytesIO()
    pickler = _Pickler(pickled, pickle_protocol)
    pickler.dump(obj)
    records: list[tuple[str, Any]] = [("data.pkl", pickled.getvalue())]
    if not _disable_byteorder_record:
        records.append(("byteorder", sys.byteorder.encode()))
    records += [(f"data/{s.key}", s.array.view(np.uint8)) for s in pickler.storages.values()]
    records.append(("version", b"3\n"))
    if isinstance(f, (str, os.PathLike)):
        _write_file(os.fspath(f), records)
        return
    _write_archive(f.write, records)
    if hasattr(f, "flush"):
        f.flush()


class _Global:
    """A name for the pickle, such as torch._utils._rebuild_tensor_v2: nothing here has it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __call__(self, *args: Any) -> NoReturn:
        """Raise: there only because a pickler wants what it writes calls of to be callable."""
        raise NotImplementedError(f"{self.module}.{self.name} is a name for files")


_REBUILD_TENSOR = _Global("torch._utils", "_rebuild_tensor_v2")
_REBUILD_ATTRIBUTES = _Global("torch._tensor", "_rebuild_from_type_v2")
_REBUILD_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_REBUILD_PARAMETER_STATE = _Global("torch._utils", "_rebuild_parameter_with_state")
_TENSOR, _SIZE, _DEVICE = (_Global("torch", name) for name in ("Tensor", "Size", "device"))
_DTYPES = {each: _Global("torch", each.name) for each in dtypes.ALL}
_UNTYPED = _Global("torch.storage", "UntypedStorage")
#: Classes that PyTorch reads with `weights_only` too.
_CLASSES: dict[Any, _Global] = {
    Tensor: _TENSOR,
    Parameter: _Global("torch.nn.parameter", "Parameter"),
    Size: _SIZE,
    device: _DEVICE,
}
_GET_LAYOUT = _Global("torch.serialization", "_get_layout")
_STORAGES = {each: _Global("torch", each.tensor_name + "Storage") for each in dtypes.ALL}


# Python's pickler, not C's: only it lets a name be written that does not import.
class _Pickler(pickle._Pickler):
    """Pickles tensors under PyTorch's names, and collects the storages that it mentions."""

    def __init__(self, file: IO[bytes], protocol: int) -> None:
        super().__init__(file, protocol)
        self.protocol = protocol
        self.storages: dict[tuple[int, int], Storage] = {}

    def persistent_id(self, obj: Any) -> Any:
        """Return what stands for a storage in the pickle."""
        kind: Any = None
        if isinstance(obj, UntypedStorage):
            kind, obj = _UNTYPED, self.keep(obj._array, dtypes.uint8)
        elif isinstance(obj, TypedStorage):
            obj = self.keep(obj._array, obj.dtype)
        if isinstance(obj, Storage):
            return ("storage", kind or _STORAGES[obj.dtype], obj.key, "cpu", obj.array.size)
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Return how to rebuild `obj`, or NotImplemented for what pickles as it is."""
        kind: Any = type(obj)
        if kind is bytes and self.protocol < 3:
            # As Python does it, but also for b"", for which Python would name `bytes` itself.
            return codecs.encode, (obj.decode("latin1"), "latin1")
        if isinstance(obj, Parameter) and kind.__reduce_ex__ is Parameter.__reduce_ex__:
            hooks: OrderedDict[Any, Any] = OrderedDict()
            arguments = (wrap(obj._array), obj.requires_grad, hooks)
            if not obj.__dict__:
                return _REBUILD_PARAMETER, arguments
            return _REBUILD_PARAMETER_STATE, (*arguments, obj.__dict__)
        if isinstance(obj, Tensor) and kind.__reduce_ex__ is Tensor.__reduce_ex__:
            rebuilt = self.rebuild_tensor(obj, obj.requires_grad)
            if kind is Tensor and not obj.__dict__:
                return rebuilt
            named = _TENSOR if kind is Tensor else kind
            return _REBUILD_ATTRIBUTES, (rebuilt[0], named, rebuilt[1], obj.__dict__)
        if kind is Size:
            return _SIZE, (tuple(obj),)
        if kind is device:
            return _DEVICE, ((obj.type,) if obj.index is None else (obj.type, obj.index))
        if kind is layout:
            return _GET_LAYOUT, (repr(obj),)
        return NotImplemented

    def rebuild_tensor(self, tensor: Tensor, requires_grad: bool) -> tuple[Any, ...]:
        """Return the call that rebuilds a tensor as a view of its storage."""
        array = tensor._array
        storage, offset, strides = self.locate(array)
        hooks: OrderedDict[Any, Any] = OrderedDict()
        shape = tuple(array.shape)
        return _REBUILD_TENSOR, (storage, offset, shape, strides, requires_grad, hooks)

    def locate(self, array: np.ndarray[Any, Any]) -> tuple[Storage, int, tuple[int, ...]]:
        """Return the storage that `array` lies in, its offset, and its strides in elements."""
        memory, strides = _memory(array), _element_strides(array)
        if memory is None or strides is None:
            # PyTorch could not describe this view (negative strides): it gets memory of its own.
            array = array.astype(array.dtype.newbyteorder("="), order="C")
            memory, strides = array.reshape(-1), _element_strides(array)
        storage = self.keep(memory, dtypes.from_numpy_dtype(array.dtype))
        ahead = _address(array) - _address(memory)
        offset = ahead // array.itemsize if array.size else 0
        return storage, offset, cast("tuple[int, ...]", strides)

    def keep(self, memory: np.ndarray[Any, Any], dtype: dtypes.dtype) -> Storage:
        """Return the storage of `memory`, a vector: one for all that lie in it."""
        # Empty arrays have no memory to share, and may have equal addresses.
        key = (_address(memory), memory.nbytes) if memory.nbytes else (id(memory), 0)
        storage = self.storages.get(key)
        if storage is None:
            name = str(len(self.storages))
            storage = self.storages[key] = Storage(memory, dtype, name)
        elif storage.dtype is not dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return storage

    def save_name(self, name: _Global | dtypes.dtype) -> None:
        """Write a name without importing what it names."""
        if isinstance(name, dtypes.dtype):
            return self.save(_DTYPES[name])  # type: ignore[attr-defined]
        self.write(pickle.GLOBAL + f"{name.module}\n{name.name}\n".encode())  # type: ignore[attr-defined]
        return self.memoize(name)  # type: ignore[attr-defined]

    def save_function(self, function: Any) -> None:
        """Write a function's name; an op has its public one, not that of the place it is made at."""
        name = getattr(function, "__name__", "")
        home = sys.modules.get(function.__module__)
        package = sys.modules["tinytorch"]
        if getattr(home, name, None) is not function and getattr(package, name, None) is function:
            return self.save(_Global("tinytorch", name))  # type: ignore[attr-defined]
        return self.save_global(function)

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the name of a function or class; where it has none to import, raise the error of C's pickler."""
        if isinstance(obj, type) and obj in _CLASSES:
            return self.save(_CLASSES[obj])  # type: ignore[attr-defined]
        try:
            return super().save_global(obj, name)  # type: ignore[misc]
        except pickle.PicklingError:
            # Before Python 3.14 it is an AttributeError, for what a function defines.
            pickle.dumps(obj)
            raise

    dispatch: ClassVar[Any] = {
        **pickle._Pickler.dispatch,
        FunctionType: save_function,
        _Global: save_name,
        dtypes.dtype: save_name,
    }


def _address(array: np.ndarray[Any, Any]) -> int:
    return cast(int, array.__array_interface__["data"][0])


def _memory(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """Return all the memory that `array` is a view of, as a vector of its dtype, or None."""
    root, base = array, cast(Any, array)
    while (base := getattr(base, "base", None)) is not None:  # also through as_strided's helpers
        if isinstance(base, np.ndarray):
            root = base
    # The owner may have its dimensions in any order in memory (channels last, Fortran).
    owner = root.transpose(sorted(range(root.ndim), key=lambda d: -root.strides[d]))
    if not owner.flags.c_contiguous or not array.dtype.isnative:
        return None
    memory = owner.reshape(-1)
    if memory.dtype != array.dtype:
        ahead = _address(array) - _address(memory)
        if memory.nbytes % array.itemsize or ahead % array.itemsize:
            return None
        memory = memory.view(np.uint8).view(array.dtype)
    return memory


def _element_strides(array: np.ndarray[Any, Any]) -> tuple[int, ...] | None:
    """Return the strides in elements, or None where PyTorch has no such strides."""
    strides = []
    for length, stride in zip(array.shape, array.strides, strict=True):
        if length <= 1 and (stride < 0 or stride % array.itemsize):
            stride = array.itemsize  # never used to step
        if stride < 0 or stride % array.itemsize:
            return None
        strides.append(stride // array.itemsize)
    return tuple(strides)


def _write_file(path: str, records: list[tuple[str, Any]]) -> None:
    parent = os.path.dirname(path)
    if not os.path.isdir(parent or os.curdir):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if not path or os.path.isdir(path):
        raise RuntimeError(f"invalid file name: {path!r} is no name of a file")
    what = "open file failed with strerror"
    try:
        with replacing(path) as file:
            what = "file write failed"
            _write_archive(file.write, records)
    except OSError as error:
        why = error.strerror or error
        raise RuntimeError(f"{what}: {why}, file path: {path}") from error


# The zip archive ----------------------------------------------------------------------------------

_ALIGNMENT = 64  # of every record, so that storages can be mapped into memory
_FULL32, _FULL16 = 0xFFFFFFFF, 0xFFFF  # in place of a number that stands in a 64-bit field
_LIMIT32, _LIMIT16 = _FULL32, _FULL16  # sizes, offsets and counts from here on need such a field
# Names are UTF-8; the date is 1 January 1980, so that equal contents make equal files.
_UTF8, _DATE = 0x800, 0x21


def _write_archive(write: Callable[[Any], Any], records: list[tuple[str, Any]]) -> None:
    """Write stored records with nothing but `write`, each record's bytes aligned.

    Python's zipfile would seek back to fill in sizes; these are known beforehand, and a pipe or a
    plain object with `write` cannot seek.
    """
    import zlib

    checks = [(name, data, zlib.crc32(data), memoryview(data).nbytes) for name, data in records]
    names = "".join(name for name, _, _, _ in checks).encode()
    combined = 0
    for _, _, crc, _ in checks:
        combined = zlib.crc32(struct.pack("<I", crc), combined)
    serialization_id = f"{zlib.crc32(names):020d}{combined:020d}".encode()
    checks.append((".data/serialization_id", serialization_id, zlib.crc32(serialization_id), 40))

    raw = isinstance(getattr(write, "__self__", None), io.RawIOBase)

    def put(data: Any) -> None:
        view = memoryview(data)
        while len(view):  # an unbuffered file may take less than it is given
            count = write(view)
            if not isinstance(count, int):
                # A raw file says so that it could take nothing yet; others need not say anything.
                count = 0 if raw and count is None else len(view)
            if not 0 < count <= len(view):
                raise OSError(f"file write failed: of {len(view)} bytes, {count} were written")
            view = view[count:]

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
    """The records of a checkpoint. No number in the file is believed before it was checked."""

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
        # PyTorch leaves the sums out on request (set_crc32_options); then all of them are 0.
        self.summed = any(entry.CRC for entry in entries)

    def __contains__(self, name: str) -> bool:
        return self.prefix + name in self.entries

    def size(self, name: str) -> int:
        """Return the number of bytes of a record; RuntimeError if there is none."""
        if name not in self:
            raise RuntimeError(_damaged(f"failed locating file {name}: file not found"))
        size: int = self.entries[self.prefix + name].file_size
        return size

    def offset(self, name: str) -> int:
        """Return where in the file the bytes of a record begin."""
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
        """Fill `memory`, as long as the record at most, with its bytes, checked by its sum."""
        import zlib

        self.file.seek(self.offset(name))
        target = memoryview(cast(Any, memory.view(np.uint8)))
        whole = memory.nbytes == self.size(name)
        if _read_fully(self.file, target) != target.nbytes:
            raise RuntimeError(_damaged(f"failed reading file {name}: file read failed"))
        if whole and self.summed and zlib.crc32(target) != self.entries[self.prefix + name].CRC:
            raise RuntimeError(_damaged(f"failed reading file {name}: its bytes were changed"))
        return memory


class PyTorchFileReader:
    """The records of a checkpoint by name, for programs that read parts of one.

    Args:
        file: a path, or a file that is open for reading.

    Raises:
        RuntimeError: there is no such file, or it is no checkpoint.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save({"x": torch.zeros(2)}, file)
        >>> _ = file.seek(0)
        >>> reader = torch.PyTorchFileReader(file)
        >>> reader.has_record("data.pkl"), len(reader.get_record("data/0"))
        (True, 8)
    """

    def __init__(self, file: Any) -> None:
        opened = isinstance(file, (str, os.PathLike))
        if opened:
            try:
                file = open(file, "rb")  # noqa: SIM115 (it stays open)
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
        """Return whether there is such a record."""
        return name in self._archive

    def get_record(self, name: str) -> bytes:
        """Return the bytes of a record.

        Raises:
            RuntimeError: there is none, or its bytes were changed.
        """
        return self._archive.read(name)

    def get_record_offset(self, name: str) -> int:
        """Return where in the file the bytes of a record begin."""
        return self._archive.offset(name)

    def get_record_size(self, name: str) -> int:
        """Return the number of bytes of a record."""
        return self._archive.size(name)

    def serialization_id(self) -> str:
        """Return the number that tells the file's contents from others', "" if it has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


def _read_fully(file: Any, target: memoryview) -> int:
    """Read until `target` is full or the file ends; return the number of bytes read."""
    done: int = 0
    while done < len(target):  # an unbuffered file may give less than asked for
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


# Loading ------------------------------------------------------------------------------------------


def load(
    f: str | os.PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Return the object that PyTorch's `torch.save` or `save` has written.

    No code from the file runs, unless `weights_only` is False: then the file may call any function
    with any arguments, so do that only with files that you trust.

    Args:
        f: a path, or a file opened for reading bytes that can seek, such as `io.BytesIO`.
        map_location: "cpu" or `device("cpu")` for files that were saved on another device; also a
            dict from location to location, or a function of (storage, location).
        pickle_module: whose `Unpickler` reads, with `weights_only=False`; None means `pickle`.
        weights_only: True, which is what None means if there is no `pickle_module`: data only.
            False unpickles whatever the file holds, such as a whole module. PyTorch's classes are
            found under the same names here, all others are imported as `pickle` does it.
        mmap: map the file into memory instead of reading it: bytes are read when they are used
            (and not checked), and writes to the tensors do not reach the file. `f` must be a path.
        **pickle_load_args: for the `Unpickler`, such as `encoding`; of no effect for data only.

    Raises:
        pickle.UnpicklingError: the file names a function or class that is not data, or is no
            checkpoint.
        AttributeError, ModuleNotFoundError: with `weights_only=False`, there is no such class.
        NotImplementedError: the file has the format before 1.6.
        RuntimeError: the file is damaged, or was saved on a device that is not there.

    Example:
        >>> import io
        >>> buffer = io.BytesIO()
        >>> torch.save([torch.zeros(2), "text"], buffer)
        >>> torch.load(io.BytesIO(buffer.getvalue()), map_location="cpu")
        [tensor([0., 0.]), 'text']
    """
    weights_only = pickle_module is None if weights_only is None else bool(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")

    def unpickle(program: bytes, storages: _StorageReader) -> Any:
        if weights_only:
            return _Reader(storages.load).read(program)
        module = pickle if pickle_module is None else pickle_module
        unpickler = type("_Unpickler", (_Trusting, module.Unpickler), {})
        reader = unpickler(io.BytesIO(program), **{"encoding": "utf-8", **pickle_load_args})
        reader.storages = storages
        return reader.load()

    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        if path.endswith(".safetensors"):
            return _load_safetensors(path)
        with open(path, "rb") as file:
            return _load(file, map_location, unpickle, bool(mmap))
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    if mmap:
        raise ValueError("f must be a file path in order to use the mmap argument")
    return _load(f, map_location, unpickle, False)


def _load(file: IO[bytes], map_location: Any, unpickle: Callable[[bytes, _StorageReader], Any], mapped: bool) -> Any:
    start = file.tell()
    head = file.read(len(_LEGACY_MAGIC))
    file.seek(start)
    if not head:
        raise EOFError("Ran out of input")
    if head.startswith(_LEGACY_MAGIC):
        raise NotImplementedError(
            "load: the file has PyTorch's legacy format (before 1.6, or with "
            "_use_new_zipfile_serialization=False). Load it with PyTorch and save it again."
        )
    if not head.startswith(b"PK\3\4"):
        raise pickle.UnpicklingError(
            f"Weights only load failed. The file is no checkpoint: it begins with {head[:8]!r}, "
            "which is neither a zip archive nor PyTorch's legacy format."
        )
    archive = _Archive(file)
    if "constants.pkl" in archive:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: "
            "they hold programs, which tinytorch cannot run."
        )
    storages = _StorageReader(archive, map_location, mapped)
    return unpickle(archive.read("data.pkl"), storages)


#: What a file in the format before zip archives begins with: the pickle of a long number.
_LEGACY_MAGIC = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."


def _load_safetensors(path: str) -> dict[str, Tensor]:
    try:
        from safetensors.numpy import load_file  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise RuntimeError(
            "Attempting to load a safetensors file but safetensors is not installed. "
            "Please install safetensors with: pip install safetensors"
        ) from error
    return {name: wrap(array) for name, array in load_file(path).items()}


class _StorageReader:
    """Gets storages from an archive, each once, onto the device that `map_location` says."""

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
            self.swapped = sys.byteorder != "little"  # what PyTorch assumes
        if mapped:
            import mmap

            # A private copy on write: the tensors are writable, the file is safe.
            self.map = mmap.mmap(archive.file.fileno(), 0, access=mmap.ACCESS_COPY)

    def load(self, identity: Any) -> Storage:
        """Return the storage that the pickle names: ("storage", type, key, location, length)."""
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
            read = self.read(kind.dtype, key, numel)
            self.loaded[key] = (read, self.restore(read, location))
        read, restored = self.loaded[key]
        if read.dtype is not kind.dtype or read.array.size != numel:
            raise RuntimeError(_damaged(f"storage {key} is described in two ways"))
        return restored

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
                        "load: map_location must return the storage that it was given, or None, "
                        f"but returned {type(result).__name__}"
                    )
                return result
        if location != "cpu":
            _refuse_location(location)
        return storage


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


# The pickle machine -------------------------------------------------------------------------------


class _StorageType:
    """What a name like torch.FloatStorage stands for."""

    def __init__(self, dtype: dtypes.dtype, untyped: bool = False) -> None:
        self.dtype, self.untyped = dtype, untyped


def _rebuild_tensor(storage: Any, offset: Any, shape: Any, strides: Any) -> Tensor:
    """Return a view of `storage`, after checking that it lies inside."""
    numbers = (offset, *shape, *strides)
    if type(storage) is not TypedStorage or not all(type(n) is int and n >= 0 for n in numbers):
        raise pickle.UnpicklingError("a tensor is not described by a storage and whole numbers")
    if len(shape) != len(strides):
        raise RuntimeError(_damaged(f"a tensor has sizes {shape} but strides {strides}"))
    array = storage._array
    size = array.itemsize
    last = offset + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    needed = last + 1 if math.prod(shape) else 0
    if needed > array.size:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, "
            f"and itemsize {size} requiring a storage size of {needed * size} are out of bounds "
            f"for storage of size {array.nbytes}"
        )
    if not needed:
        return cast(Tensor, wrap(np.empty(shape, array.dtype)))
    steps = tuple(stride * size for stride in strides)
    memory = array.view(np.uint8)  # bfloat16 is no buffer, bytes are
    view: np.ndarray[Any, Any] = np.ndarray(shape, array.dtype, memory.data, offset * size, steps)
    return cast(Tensor, wrap(view))


def _rebuild_tensor_v2(
    storage: Any, offset: Any, shape: Any, strides: Any, requires_grad: Any, backward_hooks: Any, metadata: Any = None
) -> Tensor:
    tensor = _rebuild_tensor(storage, offset, shape, strides)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data: Any, requires_grad: Any, backward_hooks: Any) -> Parameter:
    if type(data) is not Tensor:
        raise pickle.UnpicklingError(f"a parameter is made from a {type(data).__name__}")
    return cast(Parameter, Parameter(data, requires_grad))


def _rebuild_parameter_with_state(data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
    return _set_attributes(_rebuild_parameter(data, requires_grad, hooks), state)


def _rebuild_from_type_v2(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    # PyTorch would convert to any class; here the function has made what the class says.
    if (function, cls) != (_rebuild_tensor_v2, Tensor):
        raise pickle.UnpicklingError("only a plain Tensor can be rebuilt with attributes")
    return _set_attributes(function(*arguments), state)


def _set_attributes(obj: Any, state: Any) -> Any:
    """Set attributes that are new to `obj`: a file must not replace its methods or its insides."""
    if type(state) is not dict:
        raise pickle.UnpicklingError(f"the state of a {type(obj).__name__} must be a dict")
    for name in state:
        if type(name) is not str or hasattr(type(obj), name):
            raise pickle.UnpicklingError(f"a {type(obj).__name__} has its own {reprlib.repr(name)}")
    obj.__dict__.update(state)
    return obj


def _ordered_dict(pairs: Any = ()) -> OrderedDict[Any, Any]:
    made: OrderedDict[Any, Any] = OrderedDict()
    for key, value in pairs:  # a list of pairs is how Python 2 wrote it
        made[_checked_key(key)] = value
    return made


def _counter(counts: Any = None) -> Counter[Any]:
    if counts is not None and type(counts) is not dict:
        raise pickle.UnpicklingError("a Counter is made from a dict")
    return Counter(counts)


def _set(items: Any = ()) -> set[Any]:
    return {_checked_key(item) for item in items}


def _size(lengths: Any) -> Size:
    if type(lengths) is not tuple or not all(type(length) is int for length in lengths):
        raise pickle.UnpicklingError("a Size is made from a tuple of ints")
    return Size(lengths)


def _encode(text: Any, encoding: Any = "latin1") -> bytes:
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError("bytes are written as text in latin1 only")
    return text.encode("latin1")


def _bytearray(content: Any = b"", encoding: Any = "latin-1") -> bytearray:
    # Not Python's: bytearray(10**12) would ask for the memory.
    return bytearray(content if type(content) is bytes else _encode(content, encoding))


def _complex(real: Any, imag: Any) -> complex:
    if type(real) is not float or type(imag) is not float:
        raise pickle.UnpicklingError("a complex number is made from two floats")
    return complex(real, imag)


def _device(kind: Any, index: Any = None) -> device:
    return device(kind, index)


def _get_layout(name: Any) -> layout:
    found = getattr(sys.modules["tinytorch"], name.rpartition(".")[2], None)
    if type(found) is not layout:
        raise pickle.UnpicklingError(f"there is no layout {reprlib.repr(name)}")
    return found


#: What the names in a file mean: functions that build data from checked arguments ...
_BUILDERS: dict[str, Callable[..., Any]] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _rebuild_from_type_v2,
    "torch.Size": _size,
    "torch.device": _device,
    "torch.serialization._get_layout": _get_layout,
    "collections.OrderedDict": _ordered_dict,
    "collections.Counter": _counter,
    "builtins.set": _set,
    "builtins.bytearray": _bytearray,
    "builtins.complex": _complex,
    "_codecs.encode": _encode,
}
#: ... and values.
_VALUES: dict[str, Any] = {
    "torch.Tensor": Tensor,
    "torch.nn.parameter.Parameter": Parameter,
    **{f"torch.{each.name}": each for each in dtypes.ALL},
    **{f"torch.{each.tensor_name}Storage": _StorageType(each) for each in dtypes.ALL},
    "torch.storage.UntypedStorage": _StorageType(dtypes.uint8, untyped=True),
}
_ALLOWED: dict[str, Any] = {**_BUILDERS, **_VALUES}

_LITERALS = frozenset({
    "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT",
    "STRING", "BINSTRING", "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8",
    "BYTEARRAY8", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
})  # fmt: skip
_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple, "EMPTY_SET": set}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


class _Reader:
    """Runs a pickle's program as far as it builds data.

    Python's own Unpickler would let a pickle call any object on its stack and set attributes of it;
    here REDUCE, NEWOBJ and BUILD work on the builders in the list alone.
    """

    def __init__(self, load_storage: Callable[[Any], Storage]) -> None:
        self.load_storage = load_storage
        self.outside: Exception | None = None
        self.trusted = dict(_safe)
        self.builders = [*_BUILDERS.values(), *self.trusted.values()]

    def read(self, program: bytes) -> Any:
        """Return the object that the pickle describes."""
        try:
            return self.run(program)
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(f"Weights only load failed. {error}") from None
        except (RuntimeError, ImportError, MemoryError):
            raise  # says what is wrong
        except Exception as error:  # a builder or a stack that damaged bytes have led astray
            if error is self.outside:
                raise
            raise pickle.UnpicklingError(
                f"Weights only load failed. The pickle is damaged: {type(error).__name__}: {error}"
            ) from error

    def run(self, program: bytes) -> Any:
        """Interpret the opcodes: a stack of values, stacks set aside by MARK, and the memo."""
        import pickletools

        stack: list[Any] = []
        aside: list[list[Any]] = []
        memo: dict[int, Any] = {}
        for opcode, argument, _ in pickletools.genops(program):
            name = opcode.name
            if name in _LITERALS:
                stack.append(argument)
            elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
                memo[argument] = stack[-1]  # type: ignore[index]
            elif name == "MEMOIZE":
                memo[len(memo)] = stack[-1]
            elif name in ("BINGET", "LONG_BINGET", "GET"):
                stack.append(memo[argument])  # type: ignore[index]
            elif name in _CONSTANTS:
                stack.append(_CONSTANTS[name])
            elif name in _EMPTY:
                stack.append(_EMPTY[name]())
            elif name == "MARK":
                aside.append(stack)
                stack = []
            elif name in ("TUPLE", "LIST", "DICT", "APPENDS", "SETITEMS", "ADDITEMS", "POP_MARK"):
                items, stack = stack, aside.pop()
                if name == "TUPLE":
                    stack.append(tuple(items))
                elif name == "LIST":
                    stack.append(items)
                elif name == "DICT":
                    stack.append({})
                if name in ("DICT", "SETITEMS"):
                    self.set_items(stack[-1], items)
                elif name == "APPENDS":
                    self.extend(stack[-1], items)
                elif name == "ADDITEMS":
                    self.add(stack[-1], items)
            elif name in _TUPLES:
                items = [stack.pop() for _ in range(_TUPLES[name])]
                stack.append(tuple(reversed(items)))
            elif name == "APPEND":
                item = stack.pop()
                self.extend(stack[-1], [item])
            elif name == "SETITEM":
                value, key = stack.pop(), stack.pop()
                self.set_items(stack[-1], [key, value])
            elif name == "POP":
                stack.pop()
            elif name == "GLOBAL":
                stack.append(self.find(*cast(str, argument).split(" ", 1)))
            elif name == "STACK_GLOBAL":
                attribute, module = stack.pop(), stack.pop()
                stack.append(self.find(module, attribute))
            elif name == "BINPERSID":
                stack.append(self.storage(stack.pop()))
            elif name == "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(self.call(function, arguments))
            elif name == "NEWOBJ":
                arguments, cls = stack.pop(), stack.pop()
                stack.append(self.make(cls, arguments))
            elif name == "BUILD":
                state = stack.pop()
                self.build(stack[-1], state)
            elif name == "STOP":
                return stack.pop()
            elif name not in ("PROTO", "FRAME"):
                self.refuse(f"Unsupported operand {name}: it does not describe data.")
        raise EOFError("Ran out of input")

    def storage(self, identity: Any) -> TypedStorage | UntypedStorage:
        """Return the storage; errors of the file system and of `map_location` pass as they are."""
        try:
            return self.load_storage(identity).as_users_see_it(identity[1].untyped)
        except Exception as error:
            self.outside = error
            raise

    def find(self, module: Any, name: Any) -> Any:
        """Return what a global name means here; most mean nothing."""
        if type(module) is not str or type(name) is not str:
            raise TypeError("a global is named by two strings")
        if module == "__builtin__":  # Python 2's name, which protocol 2 writes
            module = "builtins"
        full = f"{module}.{name}"
        if full in _ALLOWED:
            return _ALLOWED[full]
        if module in _BLOCKED:
            self.refuse(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked."
            )
        for known in (full, f"tiny{full}" if full.startswith("torch.") else full):
            if known in self.trusted:
                return self.trusted[known]
        full = full.removeprefix("builtins.")
        self.refuse(
            f"Unsupported global: GLOBAL {full} was not an allowed global by default. Please use "
            f"`torch.serialization.add_safe_globals([{full}])` or the "
            f"`torch.serialization.safe_globals([{full}])` context manager to allowlist this "
            "global if you trust this class/function."
        )

    def call(self, function: Any, arguments: Any) -> Any:
        """Return `function(*arguments)` for a function in the list."""
        if not any(function is each for each in self.builders):
            self.refuse(f"Trying to call reduce for unrecognized function {reprlib.repr(function)}")
        if type(arguments) is not tuple:
            raise TypeError("arguments must be a tuple")
        return function(*arguments)

    def make(self, cls: Any, arguments: Any) -> Any:
        """Return a new, bare instance of a class that the user has allowed."""
        if not any(cls is each for each in self.trusted.values()):
            self.refuse(
                "Can only create new object for nn.Parameter or classes allowlisted via "
                f"`add_safe_globals` but got {reprlib.repr(cls)}"
            )
        return cls.__new__(cls, *arguments)

    def build(self, obj: Any, state: Any) -> None:
        """Set the attributes of an OrderedDict (`_metadata`), or of what the user has allowed."""
        kind = np.dtype if isinstance(obj, np.dtype) else type(obj)
        if kind is OrderedDict:
            _set_attributes(obj, state)
        elif any(kind is each for each in self.trusted.values()):
            self.set_state(obj, state)
        else:
            self.refuse(
                "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
                f"`add_safe_globals`, but got {kind}"
            )

    @staticmethod
    def set_state(obj: Any, state: Any) -> None:
        """Do what unpickling does with the state of an instance."""
        if hasattr(obj, "__setstate__"):
            obj.__setstate__(state)
            return
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        if state:
            obj.__dict__.update(state)
        for name, value in (slots or {}).items():
            setattr(obj, name, value)

    def extend(self, target: Any, items: list[Any]) -> None:
        """Append to a list."""
        if type(target) is not list:
            self.refuse(f"Can only append to lists, but got {type(target)}")
        target.extend(items)

    def set_items(self, target: Any, items: list[Any]) -> None:
        """Set items of a dict, from keys and values in turn."""
        if type(target) not in (dict, OrderedDict, Counter, collections.defaultdict):
            self.refuse(f"Can only set items of dicts, but got {type(target)}")
        for key, value in zip(items[::2], items[1::2], strict=True):
            target[_checked_key(key)] = value

    def add(self, target: Any, items: list[Any]) -> None:
        """Add to a set."""
        if type(target) is not set:
            self.refuse(f"Can only add to sets, but got {type(target)}")
        target.update(_checked_key(item) for item in items)

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error for a file that holds more than data."""
        raise pickle.UnpicklingError(
            "This file can still be loaded, if you trust its source: (1) with `weights_only=False` "
            "(the default of `torch.load` is True since PyTorch 2.6), which can result in "
            "arbitrary code execution; or (2) as the following message says.\n"
            f"WeightsUnpickler error: {reason}"
        )


# Unpickling with weights_only=False ---------------------------------------------------------------


class _Trusting:
    """What Python's Unpickler needs besides, to read a checkpoint of any objects."""

    storages: _StorageReader

    def persistent_load(self, identity: Any) -> Any:
        """Return the storage that the pickle names, as the user would see it."""
        return self.storages.load(identity).as_users_see_it(identity[1].untyped)

    def find_class(self, module: str, name: str) -> Any:
        """Return what a name means: PyTorch's are looked for here, others are imported."""
        full = f"{module}.{name}"
        if full in _TRUSTED:
            return _TRUSTED[full]
        if module in _COMPILED:
            module, prefix = _COMPILED[module]
            name = name.removeprefix(prefix)
        elif module == "torch" or module.startswith("torch."):
            module = _home_of(f"tiny{module}", name)
        return super().find_class(module, name)  # type: ignore[misc]


def _home_of(module: str, name: str) -> str:
    """Return the module that has `name`: the given one, or else the nearest above it that has."""
    place = module
    while place:
        try:
            found: Any = importlib.import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
            return place
        except (ModuleNotFoundError, AttributeError):
            place = place.rpartition(".")[0]
    return module


class _PickledGenerator(Generator):
    """A generator of PyTorch, until its state is there."""

    def __setstate__(self, state: Any) -> None:
        self.set_state(state[-1])  # (seed, offset, state): the state holds the seed
        self.__class__ = Generator  # type: ignore[assignment]


def _rebuild_any_type(function: Any, cls: Any, arguments: Any, state: Any) -> Any:
    made = function(*arguments)
    if type(made) is not cls:
        made = made.as_subclass(cls)
    _Reader.set_state(made, state)
    return made


#: Where functions of PyTorch's compiled modules are here, and what their names begin with there.
_COMPILED = {
    "torch._C._nn": ("tinytorch.nn.functional", ""),
    "torch._C._linalg": ("tinytorch.linalg", "linalg_"),
    "torch._C._special": ("tinytorch.special", "special_"),
}
#: The names that mean something else here than what is at their place; `sys.modules["tinytorch"]`
#: has the functions that PyTorch keeps in a class.
_TRUSTED: dict[str, Any] = {
    "torch._utils._rebuild_tensor": _rebuild_tensor,
    "torch._utils._rebuild_tensor_v2": _rebuild_tensor_v2,
    "torch._utils._rebuild_parameter": _rebuild_parameter,
    "torch._utils._rebuild_parameter_with_state": _rebuild_parameter_with_state,
    "torch._tensor._rebuild_from_type_v2": _rebuild_any_type,
    "torch.serialization._get_layout": _get_layout,
    "torch._C.TensorBase": Tensor,
    "torch._C._VariableFunctionsClass": sys.modules["tinytorch"],
    "torch._C._VariableFunctions": sys.modules["tinytorch"],
    "torch._C.Generator": _PickledGenerator,
    **{name: value for name, value in _VALUES.items() if isinstance(value, _StorageType)},
}


def _checked_key(key: Any) -> Any:
    """Return `key` if hashing it is harmless: a deep or self-repeating tuple hashes for ever."""
    seen, pending = 0, [key]
    while pending:
        item = pending.pop()
        if isinstance(item, tuple):
            seen += 1 + len(item)
            if seen > 1000:
                raise pickle.UnpicklingError("a key is too large a tuple")
            pending.extend(item)
    return key
