"""Datasets, and combinations of datasets.

`dataset[index]` returns one sample. Two optional methods read many samples at once:

- `__getitems__(indices)`, which PyTorch defines: returns a list of samples, which the collate function then joins.
- `__getbatch__(indices)`, specific to tinytorch: returns the batch that `default_collate` would return for these
  samples, or `NotImplemented`. With it, a batch of `TensorDataset` or `FashionMNIST` costs a few array operations
  instead of a few hundred. It is called only by a `DataLoader` with the default collate function, and only if no
  subclass of the class that defines it overrides `__getitem__` or `__getitems__`.
"""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.warning import warn
from tinytorch.ops.random import Generator, default_generator, randperm

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip

T_co = TypeVar("T_co", covariant=True)


class Dataset(Generic[T_co]):
    """Base class of datasets that map indices to samples. Subclasses implement `__getitem__`.

    They also implement `__len__`, on which samplers and `len(loader)` rely, if the size is known.
    Two more methods are optional (see the docstring of the module): `__getitems__(indices)` returns a
    list of samples, `__getbatch__(indices)` a collated batch.

    Example:
        >>> class Squares(torch.utils.data.Dataset):
        ...     def __len__(self):
        ...         return 4
        ...
        ...     def __getitem__(self, index):
        ...         return index**2
        >>> len(Squares() + Squares()), Squares()[3]
        (8, 9)
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[T_co]) -> Dataset[T_co]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """Base class of datasets that are streams of samples. Subclasses implement `__iter__`.

    It is meant for data without random access, or of unknown length.

    Example:
        >>> class Countdown(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter([3, 2, 1])
        >>> list(torch.utils.data.DataLoader(Countdown(), batch_size=2))
        [tensor([3, 2]), tensor([1])]
    """

    def __add__(self, other: Dataset[T_co]) -> Dataset[T_co]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """A dataset of tensors of shapes (N, ...) with the same N, indexed along their first dimension.

    Example:
        >>> dataset = torch.utils.data.TensorDataset(torch.arange(3), torch.zeros(3, 2))
        >>> dataset[1]
        (tensor(1), tensor([0., 0.]))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __getbatch__(self, indices: Sequence[int]) -> Any:
        if not self.tensors or any(tensor.requires_grad for tensor in self.tensors):
            return NotImplemented  # indexing sample by sample is recorded by autograd, this is not
        selection = positions(indices, len(self))
        if selection is None:
            return NotImplemented
        return [wrap(rows(tensor._array, selection)) for tensor in self.tensors]

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Datasets of equal length, zipped: a sample is the tuple of their samples, or a dict for keyword arguments.

    Example:
        >>> torch.utils.data.StackDataset(image=[10, 20], text=["a", "b"])[1]
        {'image': 20, 'text': 'b'}
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        self._length = len(self._columns()[0])
        if any(self._length != len(dataset) for dataset in self._columns()):
            raise ValueError("Size mismatch between datasets")

    def _columns(self) -> Sequence[Any]:
        return list(self.datasets.values()) if isinstance(self.datasets, dict) else self.datasets

    def _sample(self, items: Sequence[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, items, strict=True))
        return tuple(items)

    def __getitem__(self, index: Any) -> Any:
        return self._sample([dataset[index] for dataset in self._columns()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [read_samples(dataset, indices) for dataset in self._columns()]
        for items in columns:
            if len(items) != len(indices):
                raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
        return [self._sample(items) for items in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """The concatenation of datasets.

    Example:
        >>> both = torch.utils.data.ConcatDataset([[1, 2], [3]])
        >>> len(both), both[-1], both.cumulative_sizes
        (3, 3, [2, 3])
    """

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Return the cumulative sums of the lengths."""
        return list(itertools.accumulate(len(dataset) for dataset in sequence))

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    @property
    def cummulative_sizes(self) -> list[int]:
        """The older spelling of `cumulative_sizes`."""
        warn("`cummulative_sizes` attribute is renamed to `cumulative_sizes`", FutureWarning)
        return self.cumulative_sizes

    def __getitem__(self, idx: Any) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - before]


class ChainDataset(IterableDataset[T_co]):
    """The concatenation of `IterableDataset`s, which are read lazily.

    Example:
        >>> class Pair(torch.utils.data.IterableDataset):
        ...     def __iter__(self):
        ...         return iter("ab")
        >>> list(torch.utils.data.ChainDataset([Pair(), Pair()]))
        ['a', 'b', 'a', 'b']
    """

    def __init__(self, datasets: Iterable[Any]) -> None:
        super().__init__()
        self.datasets = datasets

    def _streams(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T_co]:
        for dataset in self._streams():
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self._streams())


class Subset(Dataset[T_co]):
    """The samples of a dataset at `indices`, in their order.

    Raises:
        NotImplementedError: a subclass overrides `__getitem__` but not `__getitems__`, which a
            `DataLoader` calls instead.

    Example:
        >>> torch.utils.data.Subset("abcdef", [5, 0])[0]
        'f'
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        if type(self).__getitem__ is not Subset.__getitem__ and type(self).__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{type(self).__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom logic. "
                "A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return read_samples(self.dataset, (self.indices[i] for i in indices))

    def __getbatch__(self, indices: Sequence[int]) -> Any:
        read = batch_reader(self.dataset)
        return read([self.indices[i] for i in indices]) if read else NotImplemented

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T_co], lengths: Sequence[int | float], generator: Generator | None = default_generator
) -> list[Subset[T_co]]:
    """Split a dataset randomly into disjoint `Subset`s, the same as PyTorch's for the same seed.

    Args:
        lengths: the sizes, whose sum is the dataset's; or fractions whose sum is 1. A subset's size is then
            floor(fraction · length), plus one for the first subsets to distribute the remainder.

    Example:
        >>> train, val = torch.utils.data.random_split(range(10), [0.75, 0.25])
        >>> len(train), len(val)
        (8, 2)
    """
    of: Any = dataset  # its length is known
    size = len(of)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(size * fraction) for fraction in lengths]
        for i in range(size - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, length in enumerate(sizes):
            if length == 0:
                warn(f"Length of split at index {i} is 0. This might result in an empty dataset.")
    else:
        sizes = lengths  # type: ignore[assignment]
    if sum(sizes) != size:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    indices = randperm(sum(sizes), generator=generator).tolist()
    ends = itertools.accumulate(sizes)
    return [Subset(dataset, indices[end - length : end]) for end, length in zip(ends, sizes, strict=True)]


# Reading many samples at once ---------------------------------------------------------------------


def read_samples(dataset: Any, indices: Iterable[Any]) -> list[Any]:
    """Return the samples at `indices`, by `__getitems__` if the dataset has it, or one by one."""
    getitems = getattr(dataset, "__getitems__", None)
    return getitems(list(indices)) if callable(getitems) else [dataset[i] for i in indices]


def batch_reader(dataset: Any) -> Callable[[Sequence[int]], Any] | None:
    """Return the dataset's `__getbatch__`, or None if it has none or a subclass changed how samples are read."""
    if is_not_shadowed(type(dataset), "__getbatch__", "__getitem__", "__getitems__"):
        return dataset.__getbatch__
    return None


def is_not_shadowed(cls: type, method: str, *others: str) -> bool:
    """Return whether `cls` has `method`, and no class before its owner in the method resolution order defines `others`.

    Then a fast path (`method`) is consistent with the methods that it replaces (`others`).
    """
    for base in cls.__mro__:
        if method in vars(base):
            return True
        if any(other in vars(base) for other in others):
            return False
    return False


def positions(indices: Sequence[Any], length: int) -> slice | np.ndarray[Any, Any] | None:
    """Return `indices` as a slice if they are consecutive, else as an index array.

    Return None if there are no indices, or if some are not integers or out of range: the samples are then read one by
    one, which raises the error of `dataset[index]`.
    """
    if not indices:
        return None
    first, count = indices[0], len(indices)
    # Lists are compared in C, which takes 0.25 microseconds for 64 indices.
    in_range = type(first) is int and 0 <= first <= length - count
    if in_range and indices == list(range(first, first + count)):
        return slice(first, first + count)
    try:
        array = np.fromiter(map(operator.index, indices), np.intp, count)
    except TypeError:
        return None
    return array if -length <= array.min() and array.max() < length else None


def rows(array: np.ndarray[Any, Any], selection: slice | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy of the selected rows: a batch never shares memory with the dataset."""
    return array[selection].copy() if isinstance(selection, slice) else array.take(selection, axis=0)
