"""Train; stop within an epoch, or go on where another number of processes stopped. Prints the samples in their order.

Arguments: "whole", "stop" or "go on", and the folder of the checkpoint.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator
from typing import Any

import tinytorch as torch
import tinytorch.distributed as dist
import tinytorch.distributed.checkpoint as dcp
from tinytorch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from tinytorch.nn.parallel import DistributedDataParallel
from tinytorch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler

EPOCHS, BATCH = 2, 12  # samples of all processes per step
what, folder = sys.argv[1], sys.argv[2]
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()


class Numbers(Dataset):
    def __len__(self) -> int:
        return 120

    def __getitem__(self, i: int) -> Any:
        return i, torch.full((4,), i / 120)


class From(Sampler):
    """A sampler without its first indices."""

    def __init__(self, sampler: Any, start: int) -> None:
        self.sampler, self.start = sampler, start

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(iter(self.sampler), self.start, None)

    def __len__(self) -> int:
        return len(self.sampler) - self.start


class Progress:
    """Where training is: an entry of the checkpoint, as modules are."""

    def __init__(self) -> None:
        self.epoch = self.samples = 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "samples": self.samples}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.samples = state["epoch"], state["samples"]


torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
progress = Progress()
if what == "go on":
    weights, kept = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": kept, "progress": progress}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=kept)

sampler = DistributedSampler(Numbers(), seed=7)
assert sampler.num_replicas == size and sampler.rank == rank
while progress.epoch < EPOCHS:
    sampler.set_epoch(progress.epoch)
    rest = From(sampler, progress.samples // size)
    for numbers, x in DataLoader(Numbers(), batch_size=BATCH // size, sampler=rest):
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        progress.samples += BATCH
        parts: list[Any] = [None] * size
        dist.all_gather_object(parts, numbers.tolist())
        if rank == 0:
            print("samples", *itertools.chain.from_iterable(zip(*parts, strict=True)))
        if what == "stop" and (progress.epoch, progress.samples) == (1, 48):
            weights, kept = get_state_dict(model, optimizer)
            dcp.save({"model": weights, "optimizer": kept, "progress": progress}, checkpoint_id=folder)
            dist.destroy_process_group()
            sys.exit()
    progress.epoch, progress.samples = progress.epoch + 1, 0
if rank == 0:
    print("weights", *[each for p in model.parameters() for each in p.flatten().tolist()])
dist.destroy_process_group()
