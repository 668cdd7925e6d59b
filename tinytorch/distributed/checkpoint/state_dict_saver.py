"""`save`: all ranks write their entries of a checkpoint."""

from __future__ import annotations

import copy
import os
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from tinytorch.core.warning import warn
from tinytorch.distributed.checkpoint.filesystem import FileSystemWriter, StorageWriter, Written
from tinytorch.distributed.checkpoint.metadata import Metadata
from tinytorch.distributed.checkpoint.planners import DefaultSavePlanner, SavePlanner, WriteItem
from tinytorch.distributed.checkpoint.utils import Stateful, _alone, _DistWrapper
from tinytorch.distributed.groups import get_world_size

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """The kinds of workers that write a checkpoint while the program continues."""

    THREAD = "thread"
    PROCESS = "process"


def save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a checkpoint in PyTorch's format: each rank writes a part, and any number of ranks can `load` it.

    All ranks call it. Entries of the same name on several ranks must have the same value: one of these ranks writes it,
    so that all ranks write about the same number of bytes. The checkpoint becomes visible when all parts are on disk:
    if saving is interrupted, the previous checkpoint stays unchanged.

    Args:
        state_dict: tensors and other objects that can be saved, in dicts and lists. Entries with `state_dict` and
            `load_state_dict`, such as modules and optimizers, are saved by their state.
        checkpoint_id: the folder, which all ranks must be able to access.
        storage_writer: writes the checkpoint; a `FileSystemWriter` if None.
        planner: assigns entries to ranks; a `DefaultSavePlanner` if None.
        process_group: the process group; all processes if None.
        no_dist: save in this process alone, without communication.
        use_collectives: True; False is not implemented.

    Raises:
        CheckpointException: saving failed on a rank; the exception contains the errors.
        RuntimeError: neither `checkpoint_id` nor `storage_writer` is given.

    Example:
        >>> import tempfile, warnings
        >>> import tinytorch.distributed.checkpoint as dcp
        >>> warnings.simplefilter("ignore")  # without a process group there is a warning
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = dcp.save({"weight": torch.ones(2), "epoch": 3}, checkpoint_id=folder)
        ...     state = {"weight": torch.zeros(2), "epoch": 0}
        ...     dcp.load(state, checkpoint_id=folder)
        >>> state
        {'weight': tensor([1., 1.]), 'epoch': 3}
    """
    if not use_collectives:
        raise NotImplementedError("save: use_collectives=False, metadata of each rank by itself, is not supported")
    alone = _alone(no_dist, "save")
    writer = storage_of(storage_writer, FileSystemWriter, checkpoint_id)
    return _save_state_dict(_states(state_dict), writer, process_group, 0, alone, planner)


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return the entries, with the `state_dict()` of entries that have one."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


def storage_of(storage: Any, default: Any, checkpoint_id: str | os.PathLike[str] | None) -> Any:
    """Return the storage argument of a call, or an instance of the default class if it is None."""
    if storage is not None:
        if checkpoint_id is not None:
            storage.reset(checkpoint_id)
        return storage
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not default.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            "Cannot detect which StorageReader or StorageWriter to use. Please specify the "
            "storage_reader/storage_writer."
        )
    return default(checkpoint_id)


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    planner = DefaultSavePlanner() if planner is None else planner
    metadata: Metadata

    def plan() -> tuple[list[WriteItem], dict[str, Any]]:
        planner.set_up_planner(state_dict=state_dict, is_coordinator=ranks.is_coordinator)
        items = planner.create_local_plan()
        storage_writer.prepare()
        return items, planner.mappings

    def plan_for_all(plans: list[tuple[list[WriteItem], dict[str, Any]]]) -> list[list[WriteItem]]:
        nonlocal metadata
        items, metadata = planner.create_global_plan(plans)
        return items

    def finish(results: list[Written]) -> list[Metadata]:
        storage_writer.finish(metadata, results)
        return [metadata] * len(results)

    own = ranks.run("plan", plan, plan_for_all)
    return ranks.run("write", lambda: storage_writer.write(own, ranks.rank, planner), finish)


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Save a checkpoint; deprecated, as in PyTorch: use `save`."""
    warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
        FutureWarning,
    )
    storage_writer.reset()
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)


def async_save(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: StorageWriter | None = None,
    planner: SavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future[Metadata]:
    """Copy the state, and write it in a thread while the program continues; see `save`.

    With several processes, the checkpoint is complete when the function returns: only one thread at a time may use MPI.

    Args:
        async_checkpointer_type: THREAD; PROCESS is not supported.
        async_stager: None; the state is copied before the function returns.

    Returns:
        A future: `result()` waits, and returns the metadata or raises the error.
    """
    if async_stager is not None or async_checkpointer_type is not AsyncCheckpointerType.THREAD or not use_collectives:
        raise NotImplementedError("async_save: only threads, with the state copied at once, are supported")
    writer = storage_of(storage_writer, FileSystemWriter, checkpoint_id)
    alone = _alone(no_dist, "save")
    several = not alone and get_world_size(process_group) > 1
    staged = _states(state_dict) if several else copy.deepcopy(_states(state_dict))
    thread = ThreadPoolExecutor(1, "async_save")
    future = thread.submit(_save_state_dict, staged, writer, process_group, 0, alone, planner)
    thread.shutdown(wait=several)
    return future
