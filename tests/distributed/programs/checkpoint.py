"""Ranks that save and load checkpoints together: the first argument says what, the second the folder."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

import tinytorch as torch
import tinytorch.distributed as dist
import tinytorch.distributed.checkpoint as dcp
from tinytorch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict

warnings.simplefilter("ignore", UserWarning)  # of overwriting
what, folder = sys.argv[1], Path(sys.argv[2])
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


def trained(seed: int, steps: int) -> tuple[Any, Any]:
    """Return a model and its optimizer, the same on all ranks."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return model, optimizer


def saved(value: float, own: bool = True) -> dict[str, Any]:
    model, optimizer = trained(0, 3)
    state = {"model": model, "optimizer": optimizer, "epoch": 3, "value": torch.full((1000,), value)}
    if own:
        state[f"rank {rank}"] = {"seed": rank, "noise": torch.full((rank + 1,), float(rank))}
    return state


def fails(call: Any) -> dict[int, str]:
    """Return by rank what went wrong in a call."""
    try:
        call()
    except dcp.CheckpointException as error:
        return {rank: f"{type(cause).__name__}: {cause}" for rank, (cause, _) in error.failures.items()}
    raise AssertionError("nothing went wrong")


class Killed(dcp.DefaultSavePlanner):
    """Is gone when it has written half of what it should."""

    written = 0

    def resolve_data(self, write_item: Any) -> Any:
        self.written += 1
        if rank == size - 1 and self.written > 3:
            os._exit(3)
        return super().resolve_data(write_item)


if what == "save":
    dcp.save(saved(1.0), checkpoint_id=folder)
    found = dcp.FileSystemReader(folder).read_metadata()
    written = [0] * size
    for index, info in found.storage_data.items():
        entry = found.state_dict_metadata[index.fqn]
        assert info.relative_path.startswith("__")
        if isinstance(entry, dcp.TensorStorageMetadata):
            written[int(info.relative_path[2])] += entry.size.numel() * entry.properties.dtype.itemsize
        if index.fqn.startswith("rank"):  # what one rank has, it writes
            assert info.relative_path.startswith(f"__{index.fqn[5]}_"), (index, info)
    assert max(written) - min(written) <= 4000, written  # the largest tensor's bytes

elif what == "load":
    model, optimizer = trained(1, 1)
    state = {"model": model, "optimizer": optimizer, "epoch": 0, "value": torch.zeros(1000)}
    other = f"rank {rank % 2}"  # two had saved
    state[other] = {"seed": -1, "noise": torch.zeros(rank % 2 + 1)}
    dcp.load(state, checkpoint_id=folder)
    known, states = trained(0, 3)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), known.parameters(), strict=True))
    ours, theirs = optimizer.state_dict()["state"], states.state_dict()["state"]
    assert len(ours) == 4 and all(torch.equal(ours[i][key], theirs[i][key]) for i in theirs for key in theirs[i])
    assert state["epoch"] == 3 and bool((state["value"] == 1).all())
    assert state[other]["seed"] == rank % 2 and state[other]["noise"].tolist() == [float(rank % 2)] * (rank % 2 + 1)
    # What fails on one rank fails on all, and says where.
    words = fails(lambda: dcp.load({"value" if rank else "nothing": torch.zeros(1000)}, checkpoint_id=folder))
    assert words == {0: "RuntimeError: Missing key in checkpoint state_dict: nothing."}, words
    words = fails(lambda: dcp.load({"value": torch.zeros(1000 + rank)}, checkpoint_id=folder))
    assert set(words) == set(range(1, size)) and "ValueError: Size mismatch between saved" in words[1], words
    # One rank for itself; a group of some.
    alone = {"epoch": 0}
    dcp.load(alone, checkpoint_id=folder, no_dist=True)
    group = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        dcp.save({"x": torch.ones(3) * 2, f"of {rank}": rank}, checkpoint_id=folder / "group", process_group=group)
    dist.barrier()
    part: dict[str, Any] = {"x": torch.zeros(3), "of 0": None, f"of {size - 1}": None}
    dcp.load(part, checkpoint_id=folder / "group")
    assert alone == {"epoch": 3} and part["x"].tolist() == [2, 2, 2] and part[f"of {size - 1}"] == size - 1

    # Rank 0's state for all; and only for rank 0.
    full = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    model, optimizer = trained(rank, rank + 1)
    both = get_state_dict(model, optimizer)
    weights, kept = both if rank == 0 else ({}, {})
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=kept, options=full)
    known, states = trained(0, 1)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), known.parameters(), strict=True))
    ours, theirs = optimizer.state_dict()["state"], states.state_dict()["state"]
    assert all(torch.equal(ours[i][key], theirs[i][key]) for i in theirs for key in theirs[i])
    one = StateDictOptions(full_state_dict=True, cpu_offload=True)
    assert [bool(each) for each in get_state_dict(model, optimizer, options=one)] == [rank == 0] * 2

elif what == "kill":
    dcp.save(saved(2.0), checkpoint_id=folder, planner=Killed())

elif what == "async":
    state = saved(3.0)
    future = dcp.async_save(state, checkpoint_id=folder)
    state["value"].zero_()  # it is saved as it was
    for _ in range(50):  # the program's own exchanges go on
        total = torch.ones(100)
        dist.all_reduce(total)
        assert total[0].item() == size
    future.result()
    loaded = {"value": torch.zeros(1000)}
    dcp.load(loaded, checkpoint_id=folder)
    assert bool((loaded["value"] == 3).all())
    assert len(list(folder.glob("*.distcp"))) == size  # those of the checkpoint before are gone

dist.barrier()
print("done", rank)
dist.destroy_process_group()
