"""`DataLoader`, an iterable over batches of a dataset in the order of a sampler."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from tinytorch.core.warning import warn
from tinytorch.data.collate import default_collate, default_convert
from tinytorch.data.dataset import Dataset, IterableDataset
from tinytorch.data.sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler, draw_seed
from tinytorch.data.worker import (
    ExceptionWrapper,
    Job,
    Workers,
    create_fetcher,
    get_worker_info,
    missing_processes,
)  # fmt: skip
from tinytorch.ops.random import Generator

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)


class _DatasetKind:
    """The values of `DataLoader._dataset_kind`."""

    Map = 0
    Iterable = 1
    create_fetcher = staticmethod(create_fetcher)


class _InfiniteConstantSampler(Sampler[None]):
    """The sampler of an `IterableDataset`, which has no indices and ends by itself."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader(Generic[T_co]):
    """An iterable over the batches of a dataset.

    An iteration is one epoch: the sampler yields indices, the dataset returns samples, and the collate function joins
    them into batches. With the default collate function, a dataset with `__getbatch__` (`TensorDataset`,
    `FashionMNIST`, a `Subset` of them) is read in whole batches, with the same result in much less time.

    With `num_workers` above 0, worker processes prepare the next batches while the program uses the current one. A
    worker has a copy of the dataset, and can identify itself by `get_worker_info`. Workers pay off if samples are
    expensive (decoding, augmentation, tokenization); reading a `TensorDataset` is faster without.

    The order of the samples and the random numbers are those of PyTorch, also in workers.

    Args:
        batch_size: number of samples per batch; None for single samples without a batch dimension.
        num_workers: number of processes that load batches; 0 to load them in the main process.
        collate_fn: maps a list of samples to a batch; by default `default_collate` (`default_convert` if not batching).
        pin_memory: accepted with PyTorch's warning; there is no accelerator to pin memory for.
        multiprocessing_context: the start method: "fork", "spawn", "forkserver" or a context of
            `multiprocessing`; by default Python's, on Linux "fork" before Python 3.14 and "forkserver" since. All but
            "fork" need a dataset, `collate_fn` and `worker_init_fn` that can be pickled.
        generator: the source of shuffling and of the workers' seeds; the default generator if None.
        in_order: whether to return batches in the sampler's order, even if a later one is ready first.

    Raises:
        RuntimeError: while iterating, a worker died, or took longer than `timeout`. An exception in a worker is
            raised in the main process with the same class, and the worker's traceback in its message.

    Where Python cannot start processes (in a browser), batches are loaded in the program's process, with one warning.

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
    # These private names, here and below, are PyTorch's, since packages that derive from it use them.
    __initialized = False
    _iterator: _BaseDataLoaderIter | None = None  # the iterator of persistent workers
    _IterableDataset_len_called: int | None = None  # the length of an IterableDataset, once requested
    __multiprocessing_context: Any = None
    #: Attributes that must not be set after initialization, since the samplers depend on them.
    _FIXED = frozenset(("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"))

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
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

        is_stream = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if is_stream else _DatasetKind.Map
        if is_stream:
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
            if is_stream:
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
        self.__initialized = True
        self._IterableDataset_len_called = self._iterator = None
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__initialized and name in self._FIXED:
            raise ValueError(f"{name} attribute should not be set after {self.__class__.__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are collated into batches."""
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        """The sampler of which one element, an index or a list of indices, makes one step of the iterator."""
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def multiprocessing_context(self) -> Any:
        """The context of `multiprocessing` that starts the workers; None for Python's default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers <= 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading "
                    f"(num_workers > 0), but got num_workers={self.num_workers}"
                )
            if missing_processes():
                self.__multiprocessing_context = context
                return
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
        self.__multiprocessing_context = context

    def check_worker_number_rationality(self) -> None:
        """Warn if there are more workers than processors."""
        if not self.num_workers or missing_processes():
            return
        if hasattr(os, "sched_getaffinity"):
            most, unsure = len(os.sched_getaffinity(0)), ""
        else:
            most, unsure = os.cpu_count() or 1, " (`cpuset` is not taken into account)"
        if self.num_workers > most:
            warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number "
                f"of worker in current system is {most}{unsure}, which is smaller than what this DataLoader is going "
                "to create. Please be aware that excessive worker creation might get DataLoader running slow or even "
                "freeze, lower the worker number to avoid potential slowness/freeze if necessary."
            )

    def __iter__(self) -> Iterator[Any]:
        if not (self.persistent_workers and self.num_workers > 0):
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        if missing_processes():
            return _WithoutWorkers(self, missing_processes())
        self.check_worker_number_rationality()
        try:
            return _MultiProcessingDataLoaderIter(self)
        except OSError as error:
            if error.errno != errno.ENOSYS:  # the system has processes, but not now, for example too many
                raise
            return _WithoutWorkers(self, str(error), getattr(error, "base_seed", None))

    def __len__(self) -> int:
        if self._dataset_kind != _DatasetKind.Iterable:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
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
    """Raise if options of the order are set for an `IterableDataset`, which determines the order itself."""
    expected = "DataLoader with IterableDataset: expected unspecified {0} option, but got {0}={1}"
    ordered = None if shuffle in (False, None) else shuffle
    options = {"shuffle": ordered, "sampler": sampler, "batch_sampler": batch_sampler}
    for name, value in options.items():
        if value is not None:
            raise ValueError(expected.format(name, value))


class _BaseDataLoaderIter:
    """One epoch of a `DataLoader`."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            if loader.pin_memory_device:
                warn(
                    "pin_memory_device is deprecated, the current accelerator will be used as the "
                    f"device,ignore pin_memory_device='{loader.pin_memory_device}'."
                )
            warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used."
            )
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._pin_memory = False
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # The workers' seed is drawn without workers, too, so that a program's random numbers do not depend on
        # `num_workers`. It is drawn before the sampler draws, whose iterator is lazy.
        self._base_seed = self._draw_seed(loader)
        self._persistent_workers = loader.persistent_workers
        self._num_yielded = 0

    def _draw_seed(self, loader: DataLoader[Any]) -> int:
        return draw_seed(loader.generator)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        return len(self._index_sampler)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._IterableDataset_len_called = loader._IterableDataset_len_called

    def __next__(self) -> Any:
        batch = self._next_data()
        self._num_yielded += 1
        if self._dataset_kind == _DatasetKind.Iterable:
            length = self._IterableDataset_len_called
            if length is not None and self._num_yielded > length:
                warn(
                    f"Length of IterableDataset {self._dataset} was reported to be {length}(when accessing "
                    f"len(dataloader)), but {self._num_yielded} samples have been fetched. {self._advice}"
                )
        return batch

    #: Ends the warning about an IterableDataset that is longer than its reported length.
    _advice = ""

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", self.__class__.__name__)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads batches on demand, in the main process."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        if self._num_workers != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires num_workers == 0")
        self._create_fetcher()

    def _create_fetcher(self) -> None:
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last
        )

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _WithoutWorkers(_SingleProcessDataLoaderIter):
    """Loads batches on demand, in the main process, where this Python cannot start workers; warns of that once.

    Args:
        loader: the loader, whose `num_workers` is not 0.
        reason: why no process can be started.
        base_seed: the seed that was drawn for the workers already; None to draw it.
    """

    def __init__(self, loader: DataLoader[Any], reason: str, base_seed: int | None = None) -> None:
        self._drawn = base_seed
        _BaseDataLoaderIter.__init__(self, loader)
        not_called = "" if loader.worker_init_fn is None else ", and worker_init_fn is not called"
        warn(
            f"This Python cannot start worker processes ({reason}): the DataLoader loads its batches in this process, "
            f"as with num_workers=0{not_called}.",
            once=True,
        )
        self._create_fetcher()

    def _draw_seed(self, loader: DataLoader[Any]) -> int:
        return super()._draw_seed(loader) if self._drawn is None else self._drawn

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Start another epoch, of a loader with persistent workers: as a new iterator would, which draws a seed."""
        super()._reset(loader, first_iter)
        self._base_seed = draw_seed(loader.generator)
        self._create_fetcher()


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads batches in advance, in worker processes.

    The index lists of the sampler are assigned to the workers in turn. A worker whose stream has ended gets no more.
    """

    _advice = (
        "For multiprocessing data-loading, this could be caused by not properly configuring the "
        "IterableDataset replica at each worker. Please see "
        "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
    )

    def __init__(self, loader: DataLoader[Any]) -> None:
        super().__init__(loader)
        self._prefetch_factor: int = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        if self._num_workers <= 0:
            raise AssertionError("num_workers must be greater than 0 for MultiProcessingDataLoaderIter")
        if not self._prefetch_factor:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        context = loader.multiprocessing_context
        if context is None:
            import multiprocessing

            context = multiprocessing.get_context()
        self._worker_init_fn = loader.worker_init_fn
        fetcher_args = (self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)
        try:
            self._pool = Workers(context, Job(self._num_workers, fetcher_args, self._base_seed, self._worker_init_fn))
        except OSError as error:
            error.base_seed = self._base_seed  # type: ignore[attr-defined]
            raise
        self._workers = self._pool.processes
        self._workers_status = self._pool.active
        self._shutdown = False
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader[Any], first_iter: bool = False) -> None:
        """Start an epoch; all but the first one reuse persistent workers."""
        super()._reset(loader, first_iter)  # creates the sampler's iterator once more, as in PyTorch
        if not first_iter:
            self._pool.resume(self._timeout)
        self._send_idx = self._rcvd_idx = 0  # the numbers of the next task, and of the next batch
        self._task_info: dict[int | None, tuple[int]] = {}  # the workers of outstanding batches, by number
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    @property
    def _tasks_outstanding(self) -> int:
        return len(self._task_info)

    @property
    def _workers_num_tasks(self) -> list[int]:
        pending = [worker for (worker,) in self._task_info.values()]
        return [pending.count(worker) for worker in range(self._num_workers)]

    def _shutdown_workers(self) -> None:
        self._shutdown = True
        self._workers_status[:] = [False] * self._num_workers
        self._pool.shut_down()

    def _try_put_index(self) -> None:
        """Assign the next indices, if there are any, to the worker whose turn it is."""
        try:
            indices = self._next_index()
        except StopIteration:
            return
        active = self._workers_status
        total_prefetch = self._prefetch_factor * self._num_workers
        for worker in itertools.islice(self._worker_queue_idx_cycle, self._num_workers):
            if active[worker] and (self._in_order or self._workers_num_tasks[worker] < total_prefetch // sum(active)):
                self._pool.put(worker, self._send_idx, indices)
                self._task_info[self._send_idx] = (worker,)
                self._send_idx += 1
                return

    def _next_data(self) -> Any:
        pool, pending = self._pool, self._task_info
        while True:
            lost = [number for number, (worker,) in pending.items() if not pool.active[worker]]
            for number in lost:
                del pending[number]
            if not pending:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            workers = [worker for (worker,) in pending.values()]
            # In order, the next batch is the first worker's next result, since a worker keeps the order of its tasks.
            worker, task, batch = pool.get(workers[:1] if self._in_order else set(workers), self._timeout)
            pending.pop(task)
            self._rcvd_idx += 1
            if not pool.ended(batch):
                return self._process_data(batch, worker)
            self._mark_worker_as_unavailable(worker)
            self._try_put_index()

    def _process_data(self, data: Any, worker_id: int) -> Any:
        """Request another batch and return this one; re-raise the worker's exception."""
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            data.reraise()
        return data

    def _mark_worker_as_unavailable(self, worker_id: int, shutdown: bool = False) -> None:
        """Deactivate a worker whose stream has ended; let it exit unless workers are persistent."""
        if self._persistent_workers and not shutdown:
            self._workers_status[worker_id] = False
        else:
            self._pool.finish(worker_id)
