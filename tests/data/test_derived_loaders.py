"""Loaders and iterators that packages derive from PyTorch's by its private names; each program runs with both."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import itertools
from typing import Any

import pytest

import tinytorch
from tests.same import same_as_pytorch


def module(torch: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.utils.data.dataloader")


def drained(loader: Any) -> list[Any]:
    return [each.tolist() for each in loader]


@pytest.mark.parametrize("workers", [0, 1])
def test_what_a_loader_and_its_iterator_keep(workers: int) -> None:
    def program(torch: Any) -> Any:
        torch.manual_seed(3)
        loader = torch.utils.data.DataLoader(list(range(7)), 2, shuffle=True, num_workers=workers, drop_last=True)
        found: list[Any] = [sorted(vars(loader)), loader._dataset_kind == module(torch)._DatasetKind.Map]
        found += [loader._DataLoader__initialized, loader._iterator, loader._IterableDataset_len_called]
        found += [loader._auto_collation, loader._index_sampler is loader.batch_sampler]
        iterator = loader._get_iterator()
        found += [type(iterator).__name__, isinstance(iterator, module(torch)._BaseDataLoaderIter)]
        for _ in range(2):
            found += [next(iterator).tolist(), iterator._num_yielded]
        names = "_base_seed _drop_last _timeout _num_workers _auto_collation _persistent_workers _pin_memory"
        found += [getattr(iterator, name) for name in names.split()]
        if workers:
            names = "_send_idx _rcvd_idx _tasks_outstanding _workers_status _prefetch_factor _in_order _shutdown"
            found += [getattr(iterator, name) for name in names.split()]
            iterator._shutdown_workers()
            found += [iterator._shutdown, [each.is_alive() for each in iterator._workers]]
        else:
            fetcher = iterator._dataset_fetcher
            found += [type(fetcher).__name__, fetcher.auto_collation, fetcher.drop_last, fetcher.dataset]
            found += [iterator._next_index(), fetcher.fetch([5, 6]).tolist()]
        return found

    same_as_pytorch(program)


def test_what_iterators_refuse() -> None:
    def loader(torch: Any, **changed: Any) -> Any:
        made = torch.utils.data.DataLoader([1, 2])
        vars(made).update(changed)
        return made

    same_as_pytorch(lambda t: module(t)._SingleProcessDataLoaderIter(loader(t, num_workers=1)))
    same_as_pytorch(lambda t: module(t)._SingleProcessDataLoaderIter(loader(t, timeout=1)))
    same_as_pytorch(lambda t: iter(loader(t)).__getstate__())
    with pytest.raises(AssertionError, match="num_workers"):
        module(tinytorch)._MultiProcessingDataLoaderIter(loader(tinytorch))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_that_is_none(workers: int) -> None:
    """How fastai makes batches by a dataset of its own: the iterator gets an object with a loader's attributes."""

    def program(torch: Any) -> Any:
        class Fake:
            _IterableDataset_len_called, _auto_collation, drop_last, in_order = None, False, False, True
            _index_sampler, generator, prefetch_factor, timeout = range(100), None, 2, 0
            worker_init_fn = multiprocessing_context = None
            pin_memory, persistent_workers, pin_memory_device = False, False, ""
            _dataset_kind = module(torch)._DatasetKind.Iterable
            num_workers = workers

            def __init__(self) -> None:
                self.dataset = self

            def collate_fn(self, x: Any) -> Any:
                return x

            def __iter__(self) -> Any:
                return iter([torch.tensor([1, 2]), torch.tensor([3])])

        own = module(torch)
        kinds = (own._MultiProcessingDataLoaderIter, own._SingleProcessDataLoaderIter)
        return drained(kinds[workers == 0](Fake()))

    same_as_pytorch(program)


@pytest.mark.parametrize("workers", [0, 1])
def test_samplers_that_never_end(workers: int) -> None:
    """How timm keeps one iterator for all epochs."""

    def program(torch: Any) -> Any:
        class Again:
            def __init__(self, sampler: Any) -> None:
                self.sampler = sampler

            def __iter__(self) -> Any:
                while True:
                    yield from iter(self.sampler)

        class Loader(torch.utils.data.DataLoader):
            def __init__(self, *args: Any, **kwargs: Any) -> None:
                super().__init__(*args, **kwargs)
                self._DataLoader__initialized = False
                self.batch_sampler = Again(self.batch_sampler)
                self._DataLoader__initialized = True
                self.iterator = super().__iter__()

            def __len__(self) -> int:
                return len(self.batch_sampler.sampler)

            def __iter__(self) -> Any:
                return (next(self.iterator) for _ in range(len(self)))

        torch.manual_seed(0)
        loader = Loader(list(range(5)), batch_size=2, shuffle=True, num_workers=workers)
        found = [drained(loader), drained(loader)]
        with contextlib.suppress(AttributeError):
            loader.iterator._shutdown_workers()
        try:
            loader.batch_sampler = None
        except ValueError as error:
            return [found, str(error)]

    same_as_pytorch(program)


@pytest.mark.parametrize("persistent", [False, True])
def test_what_get_iterator_returns_is_what_is_iterated(persistent: bool) -> None:
    """How PyTorch Geometric's loaders change batches on their way; and loaders that live on are reset."""

    def program(torch: Any) -> Any:
        class Changed:
            def __init__(self, iterator: Any) -> None:
                self.iterator = iterator

            def __iter__(self) -> Any:
                return self

            def _reset(self, loader: Any, first_iter: bool = False) -> None:
                self.iterator._reset(loader, first_iter)

            def __next__(self) -> Any:
                return next(self.iterator) * 10

        class Loader(torch.utils.data.DataLoader):
            def _get_iterator(self) -> Any:
                return Changed(super()._get_iterator())

        loader = Loader(list(range(4)), batch_size=2, num_workers=int(persistent), persistent_workers=persistent)
        found = [drained(loader), drained(loader), type(loader._iterator).__name__]
        if persistent:
            loader._iterator.iterator._shutdown_workers()
        return found

    same_as_pytorch(program)


@pytest.mark.parametrize("stream", [False, True])
def test_a_loader_that_calls_no_init(stream: bool) -> None:
    def program(torch: Any) -> Any:
        data = torch.utils.data

        class Stream(data.IterableDataset):
            def __iter__(self) -> Any:
                return iter(range(5))

            def __len__(self) -> int:
                return 3

        class Loader(data.DataLoader):
            def __init__(self, dataset: Any) -> None:
                kinds = module(torch)._DatasetKind
                self.dataset, self.num_workers, self.timeout = dataset, 0, 0
                self._dataset_kind = kinds.Iterable if stream else kinds.Map
                self.sampler = module(torch)._InfiniteConstantSampler() if stream else range(5)
                self.batch_size, self.drop_last = 2, False
                self.batch_sampler = data.BatchSampler(self.sampler, 2, False)
                self.collate_fn = data.default_collate
                self.pin_memory, self.persistent_workers, self.generator = False, False, None
                self._iterator = self._IterableDataset_len_called = None
                self._DataLoader__multiprocessing_context = None

        loader = Loader(Stream() if stream else list(range(5)))
        found = [len(loader), loader._IterableDataset_len_called, loader._iterator, loader.multiprocessing_context]
        iterator = iter(loader)
        found.append([next(iterator).tolist() for _ in range(2)])
        loader.dataset = [1]  # `__init__` never said that it was done
        return found

    same_as_pytorch(program)


def test_a_loader_around_a_loader() -> None:
    """How accelerate's loaders stand for the one they hold, and Lightning makes one anew from its attributes."""

    def program(torch: Any) -> Any:
        DataLoader = torch.utils.data.DataLoader

        class Around(DataLoader):
            def __init__(self, base: Any) -> None:
                self.base = base
                base_class = type(base)
                self.__class__ = type(base_class.__name__, (type(self), base_class), {})

            def __getattr__(self, name: str) -> Any:
                if name == "base":
                    raise AttributeError
                return getattr(self.base, name)

            def __iter__(self) -> Any:
                iterator = self.base.__iter__()
                return itertools.chain([next(iterator)], iterator)

        base = DataLoader(list(range(5)), batch_size=2, drop_last=True)
        around = Around(base)
        public = {name: value for name, value in vars(base).items() if not name.startswith("_")}
        taken = inspect.signature(DataLoader.__init__).parameters
        arguments = {name: value for name, value in public.items() if name in taken}
        arguments |= {"multiprocessing_context": base.multiprocessing_context, "batch_sampler": base.batch_sampler}
        for name in ("batch_size", "sampler", "drop_last"):
            arguments.pop(name)
        again = DataLoader(**arguments)
        return [len(around), isinstance(around, DataLoader), drained(around), sorted(arguments), drained(again)]

    same_as_pytorch(program)


def test_iterators_of_ones_own() -> None:
    def program(torch: Any) -> Any:
        own = module(torch)

        class Backwards(own._SingleProcessDataLoaderIter):
            def _next_index(self) -> Any:
                return super()._next_index()[::-1]

            def _next_data(self) -> Any:
                return super()._next_data() + 0.5

        class Counting(own._MultiProcessingDataLoaderIter):
            def __init__(self, loader: Any) -> None:
                self.asked, self.done = 0, []
                super().__init__(loader)

            def _try_put_index(self) -> None:
                self.asked += 1
                super()._try_put_index()

            def _process_data(self, data: Any, worker_id: int) -> Any:
                self.done.append(worker_id)
                return super()._process_data(data, worker_id)

        found = drained(Backwards(torch.utils.data.DataLoader(list(range(5)), batch_size=2)))
        counting = Counting(torch.utils.data.DataLoader(list(range(5)), batch_size=2, num_workers=2))
        return [found, drained(counting), counting.asked, counting.done]

    same_as_pytorch(program)


def test_parts_of_loaders() -> None:
    def program(torch: Any) -> Any:
        parts = importlib.import_module(f"{torch.__name__}.utils.data._utils")
        worker = importlib.import_module(f"{torch.__name__}.utils.data._utils.worker")
        fetch = importlib.import_module(f"{torch.__name__}.utils.data._utils.fetch")
        try:
            raise KeyError("a")
        except KeyError:
            wrapped = parts.ExceptionWrapper(where="in a test")
        found = [parts.HAS_NUMPY, parts.MP_STATUS_CHECK_INTERVAL, parts.python_exit_status, worker._worker_info]
        found += [wrapped.exc_type, wrapped.where, wrapped.exc_msg.splitlines()[0]]
        found += [list(map(int, worker._generate_state(5 + (7 << 32), 3))), parts.pin_memory.pin_memory([1, "a"])]
        fetcher = fetch._MapDatasetFetcher([3, 4, 5], True, torch.utils.data.default_collate, False)
        stream = fetch._IterableDatasetFetcher([3, 4, 5], True, torch.utils.data.default_collate, False)
        return [found, fetcher.fetch([2, 0]), stream.fetch([None, None]), next(stream.dataset_iter), stream.ended]

    same_as_pytorch(program)
    same_as_pytorch(
        lambda t: importlib.import_module(f"{t.__name__}.utils.data._utils").pin_memory.pin_memory([t.ones(1)])
    )
