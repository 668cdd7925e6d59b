"""`save`: all ranks write their parts of a checkpoint."""

from __future__ import annotations

import copy
import os
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from tinytorch.distributed.checkpoint.default_planner import DefaultSavePlanner
from tinytorch.distributed.checkpoint.filesystem import FileSystemWriter
from tinytorch.distributed.checkpoint.metadata import Metadata
from tinytorch.distributed.checkpoint.planner import SavePlan, SavePlanner
from tinytorch.distributed.checkpoint.stateful import Stateful
from tinytorch.distributed.checkpoint.storage import StorageWriter, WriteResult
from tinytorch.distributed.checkpoint.utils import _alone, _DistWrapper
from tinytorch.distributed.groups import get_world_size

__all__ = ["AsyncCheckpointerType", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """What writes while the program goes on."""

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
    """Write a checkpoint, which PyTorch reads, too: each rank writes a part, and any number of ranks can `load` it.

    All ranks call it. What several of them have, by name, must be the same there: one of them writes it, so that all
    have about as many bytes to write. What only one has, it writes. The checkpoint is there once all parts are on the
    disk, and not before: what was killed in between leaves the one before as it was.

    Args:
        state_dict: tensors and whatever else can be saved, in dicts and lists. Of entries that have `state_dict` and
            `load_state_dict`, as modules and optimizers, the state is saved.
        checkpoint_id: the folder, which all ranks must see.
        storage_writer: what writes; a `FileSystemWriter` if None.
        planner: what decides who writes what; a `DefaultSavePlanner` if None.
        process_group: the ranks; all if None.
        no_dist: let this process write all, whatever the others do.
        use_collectives: True; PyTorch's way without is not there.

    Returns:
        What the checkpoint holds.

    Raises:
        CheckpointException: something failed on a rank; it has the errors.
        RuntimeError: there is neither a `checkpoint_id` nor a `storage_writer`.

    Example:
        >>> import tempfile, warnings
        >>> import tinytorch.distributed.checkpoint as dcp
        >>> warnings.simplefilter("ignore")  # without a group, one process saves
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
    return _save_state_dict(
        _states(state_dict),
        storage_of(storage_writer, FileSystemWriter, checkpoint_id),
        process_group,
        0,
        alone,
        planner,
    )


def _states(state_dict: dict[str, Any]) -> dict[str, Any]:
    """Return the entries, and of those that have a state, that."""
    return {key: each.state_dict() if isinstance(each, Stateful) else each for key, each in state_dict.items()}


def storage_of(given: Any, usual: Any, checkpoint_id: str | os.PathLike[str] | None) -> Any:
    """Return the storage that a function was given, or else one of the usual class, for a checkpoint of this name.

    Raises:
        RuntimeError: neither is given, or the usual class has no checkpoints of such a name.
    """
    if given is not None:
        if checkpoint_id is not None:
            given.reset(checkpoint_id)
        return given
    if not checkpoint_id:
        raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
    if not usual.validate_checkpoint_id(checkpoint_id):
        raise RuntimeError(
            "Cannot detect which StorageReader or StorageWriter to use. Please specify the "
            "storage_reader/storage_writer."
        )
    return usual(checkpoint_id)


def _save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    ranks = _DistWrapper(process_group, not no_dist, coordinator_rank)
    chosen = DefaultSavePlanner() if planner is None else planner
    metadata: Metadata

    def plan() -> SavePlan:
        meta = storage_writer.storage_meta()
        chosen.set_up_planner(state_dict=state_dict, storage_meta=meta, is_coordinator=ranks.is_coordinator)
        storage_writer.set_up_storage_writer(ranks.is_coordinator, rank=ranks.rank, use_collectives=True)
        return storage_writer.prepare_local_plan(chosen.create_local_plan())

    def plan_for_all(plans: list[SavePlan]) -> list[SavePlan]:
        nonlocal metadata
        plans, metadata = chosen.create_global_plan(plans)
        return storage_writer.prepare_global_plan(plans)

    def finish(results: list[list[WriteResult]]) -> list[Metadata]:
        storage_writer.finish(metadata=metadata, results=results)
        return [metadata] * len(results)

    mine = ranks.run("plan", plan, plan_for_all)
    written: Metadata = ranks.run(
        "write", lambda: storage_writer.write_data(chosen.finish_plan(mine), chosen).wait(), finish
    )
    return written


def save_state_dict(
    state_dict: dict[str, Any],
    storage_writer: StorageWriter,
    process_group: Any = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: SavePlanner | None = None,
) -> Metadata:
    """Do what `save` does, which PyTorch would have programs call instead."""
    warnings.warn(
        "`save_state_dict` is deprecated and will be removed in future versions. Please use `save` instead.",
        FutureWarning,
        stacklevel=2,
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
    """Copy the state, and let a thread write it while the program goes on; see `save`.

    Several processes write before this returns: one thread of each at a time may call MPI.

    Args:
        async_checkpointer_type: THREAD; PROCESS is not supported.
        async_stager: None; the state is copied at once.

    Returns:
        A future: its `result()` waits, and raises what went wrong.

    Raises:
        NotImplementedError: an option that is not supported.
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
