"""Samplers, which determine the order in which a `DataLoader` reads a map-style dataset.

They draw the same random numbers as PyTorch's samplers, so that the same seed gives the same order of samples and
leaves the generator in the same state.
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
    """Base class of samplers. Subclasses implement `__iter__`, and `__len__` if the length is known.

    Example:
        >>> class EverySecond(torch.utils.data.Sampler):
        ...     def __iter__(self):
        ...         return iter(range(0, 6, 2))
        >>> list(torch.utils.data.DataLoader("abcdef", batch_size=2, sampler=EverySecond()))
        [['a', 'c'], ['e']]
    """

    # No `__len__` that raises: `list(sampler)` calls it if it exists.
    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """Yields the indices from 0 to len(data_source) - 1 in order.

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
    """Yields the indices in random order, or draws them with replacement.

    Args:
        num_samples: the number of indices, by default len(data_source). Without replacement, a larger number
            repeats the samples, in a new order every time.
        generator: the random generator; if None, a new one for every iteration, seeded by the default
            generator.

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
        """The number of indices of an iteration."""
        # Not cached, since the data source may grow.
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = Generator()
            generator.manual_seed(draw_seed())
        if self.replacement:
            # In blocks of 32, as in PyTorch, which draws the last block even if it is empty.
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
    """Yields `indices` in a random order, drawn from `generator` or the default generator.

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
    """Yields `num_samples` random indices, with probabilities proportional to `weights`.

    Args:
        weights: the weights, of shape (N,), which need not sum to 1.

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
        indices = multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from indices.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """Yields lists of `batch_size` indices of another sampler; `drop_last` omits a last, smaller list.

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
        min_size = self.batch_size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, self.batch_size))) >= min_size:
            yield batch

    def __len__(self) -> int:
        n = len(self.sampler)  # type: ignore[arg-type]  # a sampler without a length raises
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


def draw_seed(generator: Generator | None = None) -> int:
    """Return a random integer from 0 to 2^63 - 1, by one 64-bit draw from a generator."""
    return int(random_(empty((), dtype=dtypes.int64), generator=generator).item())
