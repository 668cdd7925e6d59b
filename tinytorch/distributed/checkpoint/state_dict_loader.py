"""`load`: all ranks read what they need of a checkpoint."""

from __future__ import annotations

import os
import warnings
from typing import Any

from tinytorch.distributed.checkpoint.default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from tinytorch.distributed.checkpoint.filesystem import FileSystemReader
from tinytorch.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from tinytorch.distributed.checkpoint.state_dict_saver import _states, storage_of
from tinytorch.distributed.checkpoint.stateful import Stateful
from tinytorch.distributed.checkpoint.storage import StorageReader
from tinytorch.distributed.checkpoint.utils import _alone, _DistWrapper

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
    """Read a checkpoint, of `save` or of PyTorch's, into a state: tensors in place, all else replaced.

    All ranks call it, each with the entries that it needs; how many had saved them plays no part. As in PyTorch,
    entries that are no tensors may be any objects, and reading them may run code: load only what you trust.

    Args:
        state_dict: what to load into. Entries that have `state_dict` and `load_state_dict` get their state by these.
        checkpoint_id: the folder.
        storage_reader: what reads; a `FileSystemReader` if None.
        planner: what decides what goes where; a `DefaultLoadPlanner` if None.
        process_group: the ranks; all if None.
        no_dist: let this process read, whatever the others do.

    Raises:
        CheckpointException: something failed on a rank: there is no checkpoint, or a damaged one; an entry is missing
            in it, or has another shape. It has the errors.
        RuntimeError: there is neither a `checkpoint_id` nor a `storage_reader`.
    """
    alone = _alone(no_dist, "load")
    reader = storage_of(storage_reader, FileSystemReader, checkpoint_id)
    states = {key: each for key, each in sorted(_states(state_dict).items())}
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
    chosen = DefaultLoadPlanner() if planner is None else planner

    def plan() -> LoadPlan:
        try:
            metadata = storage_reader.read_metadata()
        except Exception as error:
            raise AssertionError(f"metadata is None; global metadata read failed: {error}") from error
        chosen.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        storage_reader.set_up_storage_reader(metadata, ranks.is_coordinator, rank=ranks.rank, use_collectives=True)
        return storage_reader.prepare_local_plan(chosen.create_local_plan())

    mine = ranks.run("plan", plan, lambda plans: storage_reader.prepare_global_plan(chosen.create_global_plan(plans)))
    ranks.run("read", lambda: storage_reader.read_data(chosen.finish_plan(mine), chosen).wait(), lambda done: done)


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Do what `load` does, which PyTorch would have programs call instead."""
    warnings.warn(
        "`load_state_dict` is deprecated and will be removed in future versions. Please use `load` instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_reader.reset()
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    process_group: Any = None,
) -> dict[str, Any]:
    """Return the entries of a checkpoint that keys name; all of them if None."""
    alone = _alone(False, "load")
    found: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner({keys} if isinstance(keys, str) else keys)
    _load_state_dict(
        found, storage_of(storage_reader, FileSystemReader, checkpoint_id), process_group, 0, alone, planner
    )
    return found
