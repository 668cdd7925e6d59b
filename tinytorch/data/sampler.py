"""Samplers: in which order a `DataLoader` reads a map-style dataset.

Each draws what PyTorch's sampler of the same name draws, in the same order, so the same seed gives
the same order of samples and leaves the generator in the same state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar

from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.create import as_tensor, empty
from tinytorch.ops.random import Generator, multinomial, randint, random_, randperm

__all__ = [
    "BatchSampler", "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler",
    "WeightedRandomSampler",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class Sampler(Generic[T_co]):
    """The base of all samplers: subclass it and write `__iter__`, and `__len__` if known.

    Example:
        >>> class EverySecond(torch.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter(range(0, 6, 2))
        >>> list(torch.utils.data.DataLoader("abcdef", batch_size=2, sampler=EverySecond()))
        [['a', 'c'], ['e']]
    """

    # No __len__ here that raises: `list(sampler)` asks for a length first, and takes a missing one but no error.
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """The indices in order, 0 … len(data_source) - 1.

    Example:
        >>> list(torch.utils.data.SequentialSampler("abc"))
        [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices in random order, or random draws with replacement.

    Args:
        replacement: whether an index may come more than once before all came.
        num_samples: how many indices; as many as there are samples if None. Without replacement,
            more than that goes through the samples several times, each time in a new order.
        generator: where the numbers come from; if None, a new one, seeded by a draw from the
            default generator each time that the sampler is iterated.

    Raises:
        TypeError: `replacement` is no bool.
        ValueError: `num_samples` is no positive integer (or the data source is empty).

    Example:
        >>> sorted(torch.utils.data.RandomSampler(range(4)))
        [0, 1, 2, 3]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={self.replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={self.num_samples}")

    @property
    def num_samples(self) -> int:
        """How many indices one iteration gives."""
        # Asked anew each time: the data source may grow.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            # In blocks of 32, as PyTorch draws them. The last block may be empty and is drawn all the same.
            for _ in range(self.num_samples // 32):
                yield from randint(n, (32,), generator=generator).tolist()
            yield from randint(n, (self.num_samples % 32,), generator=generator).tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from randperm(n, generator=generator).tolist()
            yield from randperm(n, generator=generator).tolist()[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, which comes from `generator`, or from the default one.

    Example:
        >>> sorted(torch.utils.data.SubsetRandomSampler([5, 7, 11]))
        [5, 7, 11]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` random indices 0 … len(weights) - 1, each as probable as its weight says.

    Args:
        weights: weights that need not sum to 1, shape (N,).
        generator: where the numbers come from; the default generator if None.

    Raises:
        ValueError: `num_samples` is no positive integer, `replacement` no bool, or `weights` not one-dimensional.

    Example:
        >>> list(torch.utils.data.WeightedRandomSampler([0, 1, 0], num_samples=3))
        [1, 1, 1]
    """

    weights: Tensor

    def __init__(
        self, weights: Sequence[float], num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(f"num_samples should be a positive integer value, but got num_samples={num_samples}")
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = as_tensor(weights, dtype=dtypes.float64)
        if len(self.weights.shape) != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from drawn.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`; `drop_last` leaves out a last, smaller one.

    Raises:
        ValueError: `batch_size` is no positive integer, or `drop_last` no bool.

    Example:
        >>> list(torch.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
        [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable[Any], batch_size: int, drop_last: bool) -> None:
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(f"batch_size should be a positive integer value, but got batch_size={batch_size}")
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        least = self.batch_size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, self.batch_size))) >= least:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]  # a sampler without a length says so itself
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def draw_seed(generator: Generator | None = None) -> int:
    """Return a random integer 0 … 2^63 - 1, one 64-bit draw from a generator."""
    return int(random_(empty((), dtype=dtypes.int64), generator=generator).item())
