"""`load`: all ranks read their entries of a checkpoint."""

from __future__ import annotations

import os
from typing import Any

from tinytorch.core.warning import warn
from tinytorch.distributed.checkpoint.filesystem import FileSystemReader, StorageReader
from tinytorch.distributed.checkpoint.metadata import Metadata
from tinytorch.distributed.checkpoint.planners import DefaultLoadPlanner, LoadPlanner, ReadItem
from tinytorch.distributed.checkpoint.state_dict_saver import _states, storage_of
from tinytorch.distributed.checkpoint.utils import Stateful, _alone, _DistWrapper

__all__ = ["load", "load_state_dict"]


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
) -> None:
    """Load a checkpoint of `save` or of PyTorch into a state: tensors in place, other objects are replaced.

    All ranks call it, each with the entries that it needs; the number of ranks that saved them may differ. As in
    PyTorch, entries may be arbitrary objects, and reading them may run code: load only trusted checkpoints.

    Args:
        state_dict: the state to load into. Entries with `state_dict` and `load_state_dict` are loaded by these methods.
        checkpoint_id: the folder.
        storage_reader: reads the checkpoint; a `FileSystemReader` if None.
        planner: assigns saved entries to the state; a `DefaultLoadPlanner` if None.
        process_group: the process group; all processes if None.
        no_dist: load in this process alone, without communication.

    Raises:
        CheckpointException: loading failed on a rank: the checkpoint does not exist or is damaged, or an entry is
            missing or has another shape. The exception contains the errors.
        RuntimeError: neither `checkpoint_id` nor `storage_reader` is given.
    """
    alone = _alone(no_dist, "load")
    reader = storage_of(storage_reader, FileSystemReader, checkpoint_id)
    states = dict(sorted(_states(state_dict).items()))
    _load_state_dict(states, reader, process_group, 0, alone, planner)
    for key, state in states.items():
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(state)
        else:
            state_dict[key] = state


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner

    metadata: Metadata

    def plan() -> list[ReadItem]:
        nonlocal metadata
        try:
            metadata = storage_reader.read_metadata()
        except Exception as error:
            raise AssertionError(f"metadata is None; global metadata read failed: {error}") from error
        planner.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        return planner.create_local_plan()

    own = ranks.run("plan", plan, lambda plans: plans)
    ranks.run("read", lambda: storage_reader.read(metadata, own, planner), lambda done: done)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Load a checkpoint; deprecated, as in PyTorch: use `load`."""
    warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)
