"""`torch.utils.data.distributed`: the sampler of programs that run as several processes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sized

from tinytorch import distributed
from tinytorch.data.sampler import Sampler
from tinytorch.ops.random import Generator, randperm

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler[int]):
    """Every `num_replicas`-th index, from `rank` on: the part of one process.

    All parts have the same length: the first indices come again at the end, or the last ones are left out. What the
    parts have at the same places is, together, in the order that `seed` and the epoch give for any number of parts: so
    training goes on with another number of processes where it stopped (docs/distributed.md).

    Args:
        num_replicas: how many parts; as many as there are processes if None.
        rank: which part, from 0; that of this process's rank if None.
        shuffle: take the indices in a random order, another one for each `set_epoch`.
        seed: of that order, the same for all parts.
        drop_last: leave out the last indices, instead of repeating the first ones.

    Raises:
        ValueError: there is no part of this number; or `num_replicas` or `rank` is None, and there is no group.

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
        parts = len(dataset) / num_replicas
        self.num_samples = int(parts) if drop_last else math.ceil(parts)
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
        """Set the epoch, on which the random order depends; call it before each.

        Example:
            >>> sampler = torch.utils.data.DistributedSampler(range(4), num_replicas=2, rank=0)
            >>> sampler.set_epoch(1)
            >>> len(list(sampler))
            2
        """
        self.epoch = epoch
