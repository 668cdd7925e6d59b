"""What a checkpoint's `.metadata` says, and that file, which is a pickle of it, written and read without PyTorch."""

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
    """A part of a tensor: where in the tensor it begins, and its shape."""

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    """Stands for a memory format, which PyTorch cannot pickle."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = dict(zip(_MEM_FORMAT_ENCODING, (contiguous_format, channels_last, preserve_format), strict=True))


@dataclass
class TensorProperties:
    """What a tensor is beside its shape; only the dtype still has a meaning."""

    dtype: Any = field(default_factory=get_default_dtype)
    layout: Any = strided
    requires_grad: bool = False
    memory_format: Any = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple[Any, ...]:
        (encoding,) = [code for code, each in _FORMATS.items() if each is self.memory_format]
        return self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype, self.layout, self.requires_grad, encoding, self.pin_memory = state
        self.memory_format = _FORMATS[encoding]

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Return those of a tensor."""
        return TensorProperties(dtype=tensor.dtype, requires_grad=tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """An entry that is a tensor, and the parts that it is saved in."""

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An entry that is no tensor."""


@dataclass
class StorageMeta:
    """Which checkpoint it is."""

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """What a checkpoint holds.

    Args:
        state_dict_metadata: by name what each entry is.
        planner_data: by name the path of keys and numbers that the name was made of.
        storage_data: by `MetadataIndex` where it is saved.
    """

    state_dict_metadata: dict[str, TensorStorageMetadata | BytesStorageMetadata]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """The name of an entry or, with an offset, of a part of a tensor; `index` says which part it may be."""

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
    """Where in which file something is saved."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if value is not None}


_StorageInfo.__module__ = f"{__package__}.filesystem"  # the place that files name


# The file -----------------------------------------------------------------------------------------


def _named(cls: type) -> str:
    """Return the name of a class in files: PyTorch's."""
    return f"{cls.__module__.removeprefix('tiny')}.{cls.__qualname__}"


#: By the name in files, what may be in them.
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
        """Write PyTorch's names of the classes."""
        if isinstance(obj, type) and _named(obj) in _CLASSES:
            return self.save(_global(_named(obj)))  # type: ignore[attr-defined]
        return super().save_global(obj, name)


@functools.cache
def _global(name: str) -> _Global:
    module, _, name = name.rpartition(".")
    return _Global(module, name)


class _MetadataReader(_Reader):
    """Reads nothing but data, these classes, and what `torch.serialization.add_safe_globals` has added."""

    def __init__(self) -> None:
        super().__init__(lambda identity: None)
        self.trusted = {**self.trusted, **_CLASSES, **_PATHS}
        self.builders += [(each, each) for each in (*_CLASSES.values(), _path)]


def write(metadata: Metadata, file: IO[bytes]) -> None:
    """Write what PyTorch, too, reads."""
    _MetadataPickler(file, 4).dump(metadata)


def read(file: IO[bytes]) -> Metadata:
    """Return what `write` or PyTorch has written. No code from the file runs.

    Raises:
        pickle.UnpicklingError: the file is damaged, or holds more than data.
    """
    try:
        found = _MetadataReader().read(file.read())
    except EOFError:
        found = None
    if not isinstance(found, Metadata) or not isinstance(getattr(found, "state_dict_metadata", None), dict):
        raise pickle.UnpicklingError("this is no metadata of a checkpoint, or a damaged one")
    return found
