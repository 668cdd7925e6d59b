"""`StorageWriter` and `StorageReader`: what writes and reads what planners have planned."""

from __future__ import annotations

import abc
import os
from dataclasses import dataclass
from typing import Any

from tinytorch.distributed.checkpoint.metadata import Metadata, MetadataIndex, StorageMeta
from tinytorch.distributed.checkpoint.planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner
from tinytorch.distributed.futures import Future

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What has been written, and where."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint; `save` calls its methods in the order in which they stand here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Make ready for a new checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take note of which rank this is."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan with what the storage adds to it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return all ranks' plans with what the storage adds to them; called on the coordinator only."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write what the plan says, and return a future of what has been written."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata, by which there is a checkpoint; called on the coordinator only."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return whether this kind of storage has such names."""

    def storage_meta(self) -> StorageMeta | None:
        """Return which checkpoint it is."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint; `load` calls its methods in the order in which they stand here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Make ready for another checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return what the checkpoint holds."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Take note of what the checkpoint holds, and of which rank this is."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan with what the storage adds to it."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return all ranks' plans with what the storage adds to them; called on the coordinator only."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read what the plan says, and return a future that is done when it has been read."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return whether this kind of storage has such names."""
