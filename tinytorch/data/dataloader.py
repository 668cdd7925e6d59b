"""The `DataLoader`: batches of a dataset, in the order of a sampler (floor 4)."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tinytorch.data.collate import default_collate, default_convert, is_default
from tinytorch.data.dataset import Dataset, IterableDataset, batch_reader, read_samples
from tinytorch.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    draw_seed,
)
from tinytorch.ops.random import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


def get_worker_info() -> None:
    """Return None, as PyTorch does in the main process: everything is loaded there.

    Example:
        >>> import tinytorch as torch
        >>> torch.utils.data.get_worker_info() is None
        True
    """
    return None


class _Forever(Sampler[None]):
    """The sampler of a stream, which says itself when it ends."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset.

    Each iteration is one epoch: it asks the sampler for indices, the dataset for samples, and the
    collate function for a batch of them. With the default collate function, a dataset that offers
    `__getbatch__` (`TensorDataset`, `FashionMNIST`, a `Subset` of them) is asked for whole batches:
    the same numbers, many times as fast.

    The order of the samples, and the draws from the random generators, are PyTorch's.

    Args:
        dataset: a map-style dataset (`dataset[index]`, `len(dataset)`) or an `IterableDataset`.
        batch_size: samples per batch; None gives single samples without a batch dimension.
        shuffle: whether to read the samples in a new random order each epoch.
        sampler: the order of the samples: an iterable of indices. Excludes `shuffle`.
        batch_sampler: an iterable of lists of indices. Excludes `batch_size`, `shuffle`, `sampler`,
            `drop_last`.
        num_workers: 0; loading in worker processes is not there yet.
        collate_fn: from a list of samples to a batch; `default_collate`, or `default_convert` if
            `batch_size=None`.
        pin_memory: accepted with PyTorch's warning; there is no accelerator to pin memory for.
        drop_last: whether to leave out a last, smaller batch.
        timeout: must be 0 without workers.
        worker_init_fn: called in workers, so never without.
        multiprocessing_context: must be None without workers.
        generator: where the shuffle and the workers' seed come from; the default generator if None.
        prefetch_factor: must be None without workers.
        persistent_workers: must be False without workers.
        pin_memory_device: deprecated in PyTorch.
        in_order: of no consequence without workers.

    Raises:
        ValueError: arguments that exclude each other or are out of range.
        NotImplementedError: `num_workers` above 0.

    Example:
        >>> import tinytorch as torch
        >>> dataset = torch.utils.data.TensorDataset(torch.arange(5.0), torch.arange(5))
        >>> for x, y in torch.utils.data.DataLoader(dataset, batch_size=3):
        ...     print(x, y)
        tensor([0., 1., 2.]) tensor([0, 1, 2])
        tensor([3., 4.]) tensor([3, 4])
    """

    dataset: Any
    batch_size: int | None
    sampler: Any
    batch_sampler: Any
    _initialized = False
    #: What makes up the iterator's work: setting one of these later would be ignored or wrong.
    _FIXED = frozenset(
        ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
    )

    def __init__(
        self,
        dataset: Dataset[T_co] | Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.persistent_workers = persistent_workers
        self.generator = generator

        self._is_stream = isinstance(dataset, IterableDataset)
        if self._is_stream:
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive "
                    "with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching "
                "and is mutually exclusive with drop_last"
            )

        if sampler is None:
            if self._is_stream:
                sampler = _Forever()
            elif shuffle:
                sampler = RandomSampler(self.dataset, generator=generator)
            else:
                sampler = SequentialSampler(self.dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)

        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self._length_told: int | None = None  # a stream's length, once asked for
        self._initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in self._FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {self.__class__.__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are joined into batches."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """What one step of the iterator takes its index, or list of indices, from."""
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self) -> Iterator[Any]:
        return _Iterator(self)

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = self._length_told = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: Any,
) -> None:
    """Raise for what the arguments about worker processes do not allow."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers > 0:
        if prefetch_factor is not None and prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
        raise NotImplementedError(
            f"DataLoader(num_workers={num_workers}): tinytorch has no worker processes yet, "
            "use num_workers=0. Batches of TensorDataset and FashionMNIST are read whole anyway."
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with "
            f"multi-process loading (num_workers > 0), but got num_workers={num_workers}"
        )


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Raise for what an `IterableDataset`, whose order is its own, does not allow."""
    expected = "DataLoader with IterableDataset: expected unspecified {0} option, but got {0}={1}"
    if shuffle not in (False, None):
        raise ValueError(expected.format("shuffle", shuffle))
    if sampler is not None:
        raise ValueError(expected.format("sampler", sampler))
    if batch_sampler is not None:
        raise ValueError(expected.format("batch_sampler", batch_sampler))


class _Iterator:
    """One epoch of a `DataLoader`."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            if loader.pin_memory_device:
                warnings.warn(
                    "pin_memory_device is deprecated, the current accelerator will be used as the "
                    f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
                    stacklevel=3,
                )
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._loader = loader
        self._dataset = loader.dataset
        self._collate_fn = loader.collate_fn
        self._batched = loader._auto_collation
        self._indices = iter(loader._index_sampler)
        # The seed that workers would get is drawn without workers too: a program's other random
        # numbers must not depend on how its data are loaded. It comes before the draws of the
        # sampler, whose iterator is lazy.
        self._base_seed = draw_seed(loader.generator)
        self._yielded = 0
        self._stream = iter(self._dataset) if loader._is_stream else None
        self._ended = False
        self._length_told = loader._length_told
        whole = self._batched and self._stream is None and is_default(self._collate_fn)
        self._read_batch = batch_reader(self._dataset) if whole else None

    def __iter__(self) -> _Iterator:
        return self

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __next__(self) -> Any:
        indices = next(self._indices)
        if self._stream is not None:
            return self._next_of_stream(self._stream, indices)
        if self._read_batch is not None and type(indices) is list:
            batch = self._read_batch(indices)
            if batch is not NotImplemented:
                return batch
        data = read_samples(self._dataset, indices) if self._batched else self._dataset[indices]
        return self._collate_fn(data)

    def _next_of_stream(self, stream: Iterator[Any], indices: Any) -> Any:
        if self._ended:  # a stream that has ended is not asked again
            raise StopIteration
        if self._batched:
            data: Any = list(itertools.islice(stream, len(indices)))
            self._ended = len(data) < len(indices)
            if not data or (self._ended and self._loader.drop_last):
                raise StopIteration
        else:
            data = next(stream)
        batch = self._collate_fn(data)
        self._yielded += 1
        told = self._length_told
        if told is not None and self._yielded > told:
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {told}"
                "(when accessing len(dataloader)), "
                f"but {self._yielded} samples have been fetched. ",
                stacklevel=3,
            )
        return batch

    def __getstate__(self) -> Any:
        raise NotImplementedError(
            "the iterator of a DataLoader cannot be pickled; pickle the DataLoader"
        )
