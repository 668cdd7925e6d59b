"""`torch.utils.data.distributed`: a sampler that splits a dataset over the processes of a distributed program."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator, Sized

from tinytorch.data.sampler import Sampler
from tinytorch.ops.random import Generator, randperm

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Sample every `num_replicas`-th index, starting at `rank`: the share of one process.

    All processes get the same number of indices: either the first indices are repeated at the end, or the last ones
    are dropped. The shuffled order depends on `seed` and the epoch alone, and not on the number of processes, so
    training can be resumed with another number of processes (docs/distributed.md).

    Args:
        num_replicas: the number of processes; if None, that of the default process group.
        rank: the process whose indices are sampled, from 0; if None, the rank in the default process group.
        seed: the seed of the shuffle, which has to be the same in all processes.

    Example:
        >>> from tinytorch.utils.data.distributed import DistributedSampler
        >>> [list(DistributedSampler(range(5), 2, rank, shuffle=False)) for rank in range(2)]
        [[0, 2, 4], [1, 3, 0]]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        # On use: it needs processes and sockets, which some Pythons lack.
        distributed = importlib.import_module("tinytorch.distributed")
        num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
        rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        share = len(dataset) / num_replicas
        self.num_samples = int(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        indices = list(range(length))
        if self.shuffle:
            generator = Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = randperm(length, generator=generator).tolist()
        if length and self.total_size > length:
            indices *= math.ceil(self.total_size / length)
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, on which the shuffled order depends; to be called at the start of each epoch."""
        self.epoch = epoch
