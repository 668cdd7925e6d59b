"""Plans: what each rank writes or reads, and what makes them."""

from __future__ import annotations

import abc
import io
import math
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from tinytorch.core.tensor import Size, Tensor
from tinytorch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
)

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner",
    "TensorWriteData", "WriteItem", "WriteItemType",
]  # fmt: skip


class WriteItemType(Enum):
    """What is written: a tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """What is read: a tensor, or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """What is known of bytes to write."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """What is known of a tensor to write: which part of it, and of which shape it is as a whole."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """Something to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the tensor's size in bytes; None for what is no tensor."""
        if self.tensor_data is None:
            return None
        return math.prod(self.tensor_data.size) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Something to read: a part of what is saved, and where it goes."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """What a rank writes."""

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What a rank reads."""

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Decides what each rank writes; see `DefaultSavePlanner`, from which others are derived.

    `save` calls its methods in the order in which they stand here.
    """

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Take what is to be saved."""

    @abc.abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return what this rank would write."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return by rank what each writes, and what the checkpoint will hold; called on the coordinator only."""

    @abc.abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Return what this rank writes, given what the coordinator says."""

    @abc.abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return what is to be written for an item."""


class LoadPlanner(abc.ABC):
    """Decides what each rank reads, and where it goes; see `DefaultLoadPlanner`, from which others are derived."""

    @abc.abstractmethod
    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take what is to be loaded into, and what the checkpoint holds."""

    @abc.abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return what this rank would read."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return by rank what each reads; called on the coordinator only."""

    @abc.abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Return what this rank reads, given what the coordinator says."""

    @abc.abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Take over bytes that were read."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Return what bytes are to be read into."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return the tensor, or the part of one, that an item is read into."""

    @abc.abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Take note that an item has been read into the tensor that `resolve_tensor` returned."""
