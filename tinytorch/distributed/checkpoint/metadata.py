"""The metadata of a checkpoint, and the file `.metadata`, which is a pickle of it with PyTorch's class names."""

from __future__ import annotations

import functools
import os
import pathlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import IO, Any

from tinytorch.core.layout import channels_last, contiguous_format, preserve_format, strided
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels.dtypes import get_default_dtype
from tinytorch.serialization.saving import _Global, _Pickler
from tinytorch.serialization.weights_only import _Reader

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """A part of a tensor: its offsets and its shape."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """The encoding of memory formats, which PyTorch cannot pickle."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format), strict=True))


@dataclass
class TensorProperties:
    """The properties of a tensor other than its shape; only the dtype is used."""

    dtype: Any = field(default_factory=get_default_dtype)
    layout: Any = strided
    requires_grad: bool = False
    memory_format: Any = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        (encoding,) = [code for code, memory_format in _FORMATS.items() if memory_format is self.memory_format]
        return self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        self.memory_format = _FORMATS[encoding]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Return the properties of a tensor."""
        return TensorProperties(dtype=tensor.dtype, requires_grad=tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """An entry that is a tensor, with the chunks in which it is saved."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An entry that is not a tensor."""


@dataclass
class StorageMeta:
    """The identification of a checkpoint."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The content of a checkpoint.

    Args:
        state_dict_metadata: the description of each entry, by name.
        planner_data: the path of keys and indices of each entry, by name.
        storage_data: the location of each chunk, by `MetadataIndex`.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an entry or, with an offset, of a chunk of a tensor; `index` is a hint of the chunk's index."""

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))


@dataclass
class _StorageInfo:
    """The location of a chunk: a file, an offset and a length."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if value is not None}


_StorageInfo.__module__ = f"{__package__}.filesystem"  # the module that files name


# The file -----------------------------------------------------------------------------------------


def _named(cls: type) -> str:
    """Return PyTorch's name of a class, which files contain."""
    return f"{cls.__module__.removeprefix('tiny')}.{cls.__qualname__}"


#: The classes that a file may contain, by PyTorch's names.
_CLASSES: dict[str, Any] = {
    _named(cls): cls
    for cls in (
        BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties,
        TensorStorageMetadata, _MEM_FORMAT_ENCODING, _StorageInfo,
    )
}  # fmt: skip


def _path(*parts: str) -> str:
    return str(pathlib.PurePath(*parts))


_PATHS = {f"{home}.{kind}Path": _path for home in ("pathlib", "pathlib._local") for kind in ("Posix", "Windows")}


class _MetadataPickler(_Pickler):
    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write the classes by PyTorch's names."""
        if isinstance(obj, type) and _named(obj) in _CLASSES:
            return self.save(_global(_named(obj)))  # type: ignore[attr-defined]
        return super().save_global(obj, name)


@functools.cache
def _global(name: str) -> _Global:
    module, _, name = name.rpartition(".")
    return _Global(module, name)


class _MetadataReader(_Reader):
    """Reads only data, these classes, and the globals of `torch.serialization.add_safe_globals`."""

    def __init__(self) -> None:
        super().__init__(lambda identity: None)
        self.trusted = {**self.trusted, **_CLASSES, **_PATHS}
        self.builders += [(builder, builder) for builder in (*_CLASSES.values(), _path)]


def write(metadata: Metadata, file: IO[bytes]) -> None:
    """Write metadata in PyTorch's format."""
    _MetadataPickler(file, 4).dump(metadata)


def read(file: IO[bytes]) -> Metadata:
    """Read metadata that `write` or PyTorch has written. No code from the file runs.

    Raises:
        pickle.UnpicklingError: the file is damaged, or contains other classes.
    """
    try:
        metadata = _MetadataReader().read(file.read())
    except EOFError:
        metadata = None
    if not isinstance(metadata, Metadata) or not isinstance(getattr(metadata, "state_dict_metadata", None), dict):
        raise pickle.UnpicklingError("the file has no metadata of a checkpoint, or it is damaged")
    return metadata
