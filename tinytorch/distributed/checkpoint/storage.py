"""`StorageWriter` and `StorageReader`: the base classes that write and read the items of plans."""

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
    """An item that has been written, and its location."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes a checkpoint; `save` calls the methods in the order of their definition here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for a new checkpoint."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Store whether this rank is the coordinator."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return the plan with the storage's additions."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return the plans of all ranks with the storage's additions; called on the coordinator only."""

    @abc.abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of the plan, and return a future of the results."""

    @abc.abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Write the metadata, which completes the checkpoint; called on the coordinator only."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return whether this kind of storage supports the id."""

    def storage_meta(self) -> StorageMeta | None:
        """Return the identification of the checkpoint."""
        return None


class StorageReader(abc.ABC):
    """Reads a checkpoint; `load` calls the methods in the order of their definition here."""

    @abc.abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare to read another checkpoint."""

    @abc.abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the checkpoint's metadata."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Store the metadata, and whether this rank is the coordinator."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return the plan with the storage's additions."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans of all ranks with the storage's additions; called on the coordinator only."""

    @abc.abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of the plan, and return a future that is done when all are read."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Return whether this kind of storage supports the id."""
