"""The `DataLoader`: batches of a dataset, in the order of a sampler."""

from __future__ import annotations

import itertools
import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from tinytorch.data.collate import default_collate, default_convert
from tinytorch.data.dataset import Dataset, IterableDataset
from tinytorch.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from tinytorch.data.worker import Failure, Fetcher, Job, Workers, get_worker_info
from tinytorch.ops.random import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


class _InfiniteConstantSampler(Sampler[None]):
    """The sampler of a stream, which says itself when it ends."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset.

    Each iteration is one epoch: it asks the sampler for indices, the dataset for samples, and the collate function for
    a batch of them. With the default collate function, a dataset that offers `__getbatch__` (`TensorDataset`,
    `FashionMNIST`, a `Subset` of them) is asked for whole batches: the same numbers, many times as fast.

    With `num_workers` above 0, processes of their own prepare the next batches while the program works on this one.
    Each has a copy of the dataset; `get_worker_info` tells it which one it is. This pays where a sample takes long to
    make (images that are decoded, augmented, tokenized); reading a `TensorDataset` is faster without.

    The order of the samples, and the draws from the random generators, are PyTorch's, also in workers.

    Args:
        dataset: a map-style dataset (`dataset[index]`, `len(dataset)`) or an `IterableDataset`.
        batch_size: samples per batch; None gives single samples without a batch dimension.
        shuffle: whether to read the samples in a new random order each epoch.
        sampler: the order of the samples: an iterable of indices. Excludes `shuffle`.
        batch_sampler: an iterable of lists of indices. Excludes `batch_size`, `shuffle`, `sampler`, `drop_last`.
        num_workers: how many processes load batches; 0 loads them in the main process.
        collate_fn: from a list of samples to a batch; `default_collate`, or `default_convert` if `batch_size=None`.
        pin_memory: accepted with PyTorch's warning; there is no accelerator to pin memory for.
        drop_last: whether to leave out a last, smaller batch.
        timeout: seconds to wait for a batch of a worker; 0 waits without limit.
        worker_init_fn: called in each worker with its number, after seeding.
        multiprocessing_context: how workers are started: "fork", "spawn", "forkserver" or a context of
            `multiprocessing`; by default Python's, on Linux "fork" before Python 3.14 and "forkserver" since. All but
            "fork" need a dataset, `collate_fn` and `worker_init_fn` that can be pickled.
        generator: where the shuffle and the workers' seed come from; the default generator if None.
        prefetch_factor: how many batches each worker is asked for ahead, by default 2.
        persistent_workers: whether the processes live on after an epoch, for the next one.
        pin_memory_device: deprecated in PyTorch.
        in_order: whether batches come in the sampler's order also where a later one is ready first.

    Raises:
        ValueError: arguments that exclude each other or are out of range.
        TypeError: `multiprocessing_context` is neither text nor a context.
        RuntimeError: in the loop, a worker died, or took longer than `timeout`. What a dataset raises in a worker is
            raised in the main process as the same class, with the worker's traceback in its text.

    Example:
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
    _FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

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
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
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
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")

        if sampler is None:
            if self._is_stream:
                sampler = _InfiniteConstantSampler()
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
        self._iterator: _InWorkers | None = None  # that of workers which live on
        self._warn_of_many_workers()

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in self._FIXED:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are joined into batches."""
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        """0 where samples are asked for by index, 1 for a stream: `_DatasetKind` names them in PyTorch."""
        return int(self._is_stream)

    @property
    def _index_sampler(self) -> Any:
        """What one step of the iterator takes its index, or list of indices, from."""
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def multiprocessing_context(self) -> Any:
        """The context of `multiprocessing` that workers are started with; None for Python's default."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            import multiprocessing

            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
        self._context = context

    def _warn_of_many_workers(self) -> None:
        """Warn of more workers than there are processors."""
        if not self.num_workers:
            return
        if hasattr(os, "sched_getaffinity"):
            most, unsure = len(os.sched_getaffinity(0)), ""
        else:
            most, unsure = os.cpu_count() or 1, " (`cpuset` is not taken into account)"
        if self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}{unsure}, which is smaller than what this DataLoader is going "
                "to create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )

    def __iter__(self) -> Iterator[Any]:
        if not self.num_workers:
            return _InProcess(self)
        if self._iterator is not None:
            self._iterator.reset(self)
            return self._iterator
        self._warn_of_many_workers()
        iterator = _InWorkers(self)
        if self.persistent_workers:
            self._iterator = iterator
        return iterator

    def __len__(self) -> int:
        if not self._is_stream:
            return len(self._index_sampler)
        length = self._length_told = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    """Raise for what the arguments about worker processes do not allow."""
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    """Raise for what an `IterableDataset`, whose order is its own, does not allow."""
    expected = "DataLoader with IterableDataset: expected unspecified {0} option, but got {0}={1}"
    ordered = None if shuffle in (False, None) else shuffle
    options = {"shuffle": ordered, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in options.items():
        if value is not None:
            raise ValueError(expected.format(name, value))


class _Iterator:
    """One epoch of a `DataLoader`."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            if loader.pin_memory_device:
                warnings.warn(
                    "pin_memory_device is deprecated, the current accelerator will be used as the "
                    f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
                    stacklevel=4,
                )
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=4,
            )
        self._index_sampler = loader._index_sampler
        self._dataset = loader.dataset
        self._is_stream = loader._is_stream
        self._making = (loader.dataset, loader.collate_fn, loader._auto_collation, loader._is_stream, loader.drop_last)
        self._indices = iter(self._index_sampler)
        # The seed that workers would get is drawn without workers too: a program's other random numbers must not depend
        # on how its data are loaded. It comes before the draws of the sampler, whose iterator is lazy.
        self._base_seed = draw_seed(loader.generator)
        self._yielded = 0
        self._length_told = loader._length_told

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __next__(self) -> Any:
        batch = self._next()
        if self._is_stream:
            self._yielded += 1
            told = self._length_told
            if told is not None and self._yielded > told:
                warnings.warn(
                    f"Length of IterableDataset {self._dataset} was reported to be {told}(when accessing "
                    f"len(dataloader)), but {self._yielded} samples have been fetched. {self._advice}",
                    stacklevel=2,
                )
        return batch

    #: What a stream that is longer than it said may be due to.
    _advice = ""

    def _next(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        raise NotImplementedError("the iterator of a DataLoader cannot be pickled; pickle the DataLoader")


class _InProcess(_Iterator):
    """Loads each batch when it is asked for."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetch = Fetcher(*self._making).fetch

    def _next(self) -> Any:
        return self._fetch(next(self._indices))


class _InWorkers(_Iterator):
    """Has worker processes load batches ahead.

    The batches of the sampler go round the workers. A worker whose stream has ended is passed over from then on.
    """

    _advice = (
        "For multiprocessing data-loading, this could be caused by not properly configuring the "
        "IterableDataset replica at each worker. Please see "
        "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
    )

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if not loader.prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing

            context = multiprocessing.get_context()
        self._live_on = loader.persistent_workers
        self._count = loader.num_workers
        self._ahead = loader.prefetch_factor * loader.num_workers
        self._timeout = loader.timeout
        self._in_order = loader.in_order
        self._pool = Workers(context, Job(self._count, self._making, self._base_seed, loader.worker_init_fn))
        self._workers = self._pool.processes
        self._begin()

    def reset(self, loader: DataLoader[Any]) -> None:
        """Begin the next epoch of workers that live on."""
        self._yielded = 0
        self._length_told = loader._length_told
        self._pool.resume(self._timeout)
        self._begin()

    def _shutdown_workers(self) -> None:
        """End the workers before the loop does: PyTorch's name, which programs call."""
        self._pool.shut_down()

    def _begin(self) -> None:
        self._indices = iter(self._index_sampler)  # once more, as in PyTorch
        self._number = 0
        self._asked: deque[int] = deque()  # the workers of the batches to come, in order
        self._turns = itertools.cycle(range(self._count))
        for _ in range(self._ahead):
            self._ask()

    def _ask(self) -> None:
        """Ask the worker whose turn it is for one more batch, if there is one."""
        try:
            indices = next(self._indices)
        except StopIteration:
            return
        active = self._pool.active
        for worker in itertools.islice(self._turns, self._count):
            if active[worker] and (self._in_order or self._asked.count(worker) < self._ahead // sum(active)):
                self._pool.put(worker, self._number, indices)
                self._number += 1
                self._asked.append(worker)
                return

    def _next(self) -> Any:
        pool = self._pool
        while True:
            while self._asked and not pool.active[self._asked[0]]:
                self._asked.popleft()
            if not self._asked:
                if not self._live_on:
                    pool.shut_down()
                raise StopIteration
            if self._in_order:
                asked = {self._asked[0]}  # each worker answers in order
            else:
                asked = {worker for worker in self._asked if pool.active[worker]}
            worker, _, batch = pool.get(asked, self._timeout)
            self._asked.remove(worker)
            if pool.ended(batch):
                if not self._live_on:
                    pool.finish(worker)
                else:
                    pool.active[worker] = False
                self._ask()
                continue
            self._ask()
            if isinstance(batch, Failure):
                batch.reraise()
            return batch
