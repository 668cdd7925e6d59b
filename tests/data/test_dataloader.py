"""The DataLoader: batches, order, draws and errors are PyTorch's."""

from __future__ import annotations

import importlib
import pickle
import warnings

import numpy as np
import pytest

import tinytorch
from tests.data.programs import assert_same, state
from tests.oracle import needs_oracle, torch
from tinytorch.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset


class Squares(Dataset):
    """A dataset of plain numbers."""

    def __init__(self, n=10):
        self.n = n

    def __getitem__(self, index):
        return index**2, float(index)

    def __len__(self):
        return self.n


def stream_of(library, n, told=None):
    """Return an IterableDataset of `library` with n samples that says that it has `told`."""

    class Stream(library.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(n))

        def __len__(self):
            if told is None:
                raise TypeError("no length")
            return told

    return Stream()


def tensors(library, n=11):
    return library.utils.data.TensorDataset(library.arange(2 * n).reshape(n, 2), library.arange(n))


LOADERS = {
    "default": lambda t, d: d.DataLoader(tensors(t)),
    "batches": lambda t, d: d.DataLoader(tensors(t), batch_size=4),
    "drop_last": lambda t, d: d.DataLoader(tensors(t), batch_size=4, drop_last=True),
    "shuffle": lambda t, d: d.DataLoader(tensors(t), batch_size=4, shuffle=True),
    "shuffle, generator": lambda t, d: d.DataLoader(
        tensors(t), batch_size=4, shuffle=True, generator=t.Generator().manual_seed(9)
    ),
    "shuffle, plain samples": lambda t, d: d.DataLoader(Squares(), 3, shuffle=True),
    "sampler": lambda t, d: d.DataLoader(tensors(t), 2, sampler=[3, 1, 2]),
    "weighted": lambda t, d: d.DataLoader(tensors(t), 2, sampler=d.WeightedRandomSampler([1.0] * 11, 7)),
    "batch_sampler": lambda t, d: d.DataLoader(tensors(t), batch_sampler=[[0], (2, 1), [-1]]),
    "no batches": lambda t, d: d.DataLoader(tensors(t), batch_size=None),
    "no batches, shuffle": lambda t, d: d.DataLoader(Squares(), None, shuffle=True),
    "no batches, arrays": lambda t, d: d.DataLoader(np.arange(6).reshape(3, 2), batch_size=None),
    "collate_fn": lambda t, d: d.DataLoader(tensors(t), 4, collate_fn=len),
    "a list": lambda t, d: d.DataLoader([1.5, 2.5, 3.5], 2, shuffle=True),
    "a subset": lambda t, d: d.DataLoader(d.random_split(tensors(t), [0.6, 0.4])[0], 4, shuffle=True),
    "a stack": lambda t, d: d.DataLoader(d.StackDataset(a=tensors(t), b=range(11)), 4, shuffle=True),
    "a sum": lambda t, d: d.DataLoader(tensors(t) + tensors(t, 3), 5, shuffle=True),
    "a stream": lambda t, d: d.DataLoader(stream_of(t, 7, told=7), 3),
    "a stream, drop_last": lambda t, d: d.DataLoader(stream_of(t, 7, 7), 3, drop_last=True),
    "a stream, whole batches": lambda t, d: d.DataLoader(stream_of(t, 6, 6), 3),
    "a stream, no batches": lambda t, d: d.DataLoader(stream_of(t, 3, 3), None),
    "an empty stream": lambda t, d: d.DataLoader(stream_of(t, 0, 0), 3),
    "shuffle=False": lambda t, d: d.DataLoader(stream_of(t, 2, 2), 1, shuffle=False),
}


@pytest.mark.parametrize("name", LOADERS)
def test_two_epochs_and_what_follows_are_as_in_pytorch(name: str) -> None:
    def program(library):
        library.manual_seed(5)
        loader = LOADERS[name](library, library.utils.data)
        first, after_first = list(loader), state(library)
        second = list(loader)
        return first, after_first, second, len(loader), loader.batch_size, state(library)

    assert_same(program)


def test_draws_come_when_pytorch_draws_them() -> None:
    """The workers' seed at the start of the epoch, the order at its first batch."""

    def program(library):
        library.manual_seed(5)
        loader = LOADERS["shuffle"](library, library.utils.data)
        seen = [state(library)]
        batches = iter(loader)
        seen.append(state(library))
        seen.append(next(batches))
        seen.append(state(library))
        list(batches)
        return seen, state(library)

    assert_same(program)


ERRORS = {
    "num_workers": (lambda d: d.DataLoader([1], num_workers=-1), "num_workers option should be non-negative"),
    "timeout": (lambda d: d.DataLoader([1], timeout=-1), "timeout option should be non-negative"),
    "prefetch": (lambda d: d.DataLoader([1], prefetch_factor=2), "prefetch_factor option could only be"),
    "prefetch < 0": (
        lambda d: d.DataLoader([1], num_workers=1, prefetch_factor=-2),
        "prefetch_factor option should be non-negative",
    ),
    "persistent": (lambda d: d.DataLoader([1], persistent_workers=True), "needs num_workers > 0"),
    "context": (
        lambda d: d.DataLoader([1], multiprocessing_context="fork"),
        "multiprocessing_context can only be used with multi-process loading (num_workers > 0)",
    ),
    "sampler, shuffle": (
        lambda d: d.DataLoader([1], shuffle=True, sampler=[0]),
        "sampler option is mutually exclusive with shuffle",
    ),
    "batch_sampler, batch_size": (
        lambda d: d.DataLoader([1], 2, batch_sampler=[[0]]),
        "mutually exclusive with batch_size, shuffle, sampler, and drop_last",
    ),
    "batch_sampler, shuffle": (lambda d: d.DataLoader([1], shuffle=True, batch_sampler=[[0]]), "batch_sampler option"),
    "batch_sampler, sampler": (lambda d: d.DataLoader([1], sampler=[0], batch_sampler=[[0]]), "batch_sampler option"),
    "batch_sampler, drop_last": (
        lambda d: d.DataLoader([1], batch_sampler=[[0]], drop_last=True),
        "batch_sampler option",
    ),
    "no batches, drop_last": (lambda d: d.DataLoader([1], None, drop_last=True), "batch_size=None option disables"),
    "batch_size": (lambda d: d.DataLoader([1], 0), "batch_size should be a positive integer value"),
    "drop_last": (lambda d: d.DataLoader([1], drop_last=1), "drop_last should be a boolean value"),
    "empty, shuffled": (lambda d: d.DataLoader([], shuffle=True), "num_samples should be a positive"),
    "stream, shuffle": (
        lambda d: d.DataLoader(d.ChainDataset([]), shuffle=True),
        "IterableDataset: expected unspecified shuffle option, but got shuffle=True",
    ),
    "stream, sampler": (
        lambda d: d.DataLoader(d.ChainDataset([]), sampler=[0]),
        "IterableDataset: expected unspecified sampler option, but got sampler=[0]",
    ),
    "stream, batch_sampler": (
        lambda d: d.DataLoader(d.ChainDataset([]), batch_sampler=[[0]]),
        "expected unspecified batch_sampler option, but got batch_sampler=[[0]]",
    ),
    "stream without a length": (lambda d: len(d.DataLoader(d.ChainDataset(5))), "'int' object is not iterable"),
    "timeout without workers": (lambda d: iter(d.DataLoader([1], timeout=1)), "requires timeout == 0"),
    "pickled iterator": (lambda d: pickle.dumps(iter(d.DataLoader([1]))), "cannot be pickled"),
    "unknown type": (lambda d: list(d.DataLoader([None])), "default_collate: batch must contain tensors"),
    "index": (lambda d: list(d.DataLoader([1], sampler=[3])), "list index out of range"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    make, words = ERRORS[name]
    assert_same(lambda library: make(library.utils.data), words)


@pytest.mark.parametrize(
    "name", ["batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers"]
)
def test_attributes_are_fixed_after_init(name: str) -> None:
    def program(library):
        setattr(library.utils.data.DataLoader([1]), name, None)

    assert_same(program, f"{name} attribute should not be set after DataLoader is initialized")


def test_attributes_are_pytorchs() -> None:
    names = [
        "batch_size",
        "num_workers",
        "pin_memory",
        "drop_last",
        "timeout",
        "pin_memory_device",
        "prefetch_factor",
        "worker_init_fn",
        "multiprocessing_context",
        "in_order",
        "persistent_workers",
        "generator",
        "dataset",
    ]

    def program(library):
        data = library.utils.data
        loader = data.DataLoader([1, 2], 2)
        kinds = [type(part).__name__ for part in (loader.sampler, loader.batch_sampler)]
        kinds.append(type(data.DataLoader([1], shuffle=True).sampler).__name__)
        return {name: getattr(loader, name) for name in names}, kinds, loader.collate_fn.__name__

    assert_same(program)


def test_other_attributes_may_be_set() -> None:
    loader = DataLoader([1, 2, 3], batch_size=2)
    loader.collate_fn = sum
    assert list(loader) == [3, 3]


def test_pin_memory_warns_as_pytorch_does() -> None:
    def program(library):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loader = library.utils.data.DataLoader([1], pin_memory=True, pin_memory_device="cuda")
            assert [batch.tolist() for batch in loader] == [[1]]
        return [(warning.category.__name__, str(warning.message)) for warning in caught]

    assert_same(program)


def test_a_stream_longer_than_it_said_warns_as_pytorch_does() -> None:
    def program(library):
        loader = library.utils.data.DataLoader(stream_of(library, 4, told=2), None)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            unasked = list(loader), len(caught)
            asked = len(loader), list(loader)
        words = [str(warning.message).partition(" was reported ")[2] for warning in caught]
        return unasked, asked, words

    assert_same(program)


def test_a_stream_that_has_ended_is_not_asked_again() -> None:
    def program(library):
        class Strange(library.utils.data.IterableDataset):
            def __init__(self):
                self.asked = 0

            def __iter__(self):
                return self

            def __next__(self):
                self.asked += 1
                if self.asked == 3:
                    raise StopIteration
                return self.asked

        dataset = Strange()
        return list(library.utils.data.DataLoader(dataset, 4)), dataset.asked

    assert_same(program)


def test_a_stream_is_not_read_ahead() -> None:
    class Stream(IterableDataset):
        def __init__(self):
            self.given = 0

        def __iter__(self):
            while True:
                self.given += 1
                yield self.given

    stream = Stream()
    batches = iter(DataLoader(stream, batch_size=3))
    assert next(batches).tolist() == [1, 2, 3] and stream.given == 3
    assert next(batches).tolist() == [4, 5, 6]


def test_whole_lists_of_samples_are_asked_for_where_offered() -> None:
    class Many(Squares):
        asked: list

        def __getitems__(self, indices):
            self.asked.append(list(indices))
            return [self[i] for i in indices]

    dataset = Many(5)
    dataset.asked = []
    squares, _ = zip(*DataLoader(dataset, batch_size=2), strict=True)
    assert [s.tolist() for s in squares] == [[0, 1], [4, 9], [16]]
    assert dataset.asked == [[0, 1], [2, 3], [4]]


class Counting(TensorDataset):
    """A TensorDataset that counts how it is read."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.items = self.batches = 0

    def __getitem__(self, index):
        self.items += 1
        return super().__getitem__(index)

    def __getbatch__(self, indices):
        self.batches += 1
        return super().__getbatch__(indices)


def test_the_default_collate_takes_whole_batches() -> None:
    dataset = Counting(tinytorch.arange(6))
    assert [x.tolist() for (x,) in DataLoader(dataset, batch_size=4)] == [[0, 1, 2, 3], [4, 5]]
    assert (dataset.items, dataset.batches) == (0, 2)
    subset = Subset(dataset, [5, 0, 2])
    assert [x.tolist() for (x,) in DataLoader(subset, batch_size=2)] == [[5, 0], [2]]
    assert (dataset.items, dataset.batches) == (0, 4)


@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 2, "collate_fn": lambda batch: tinytorch.utils.data.default_collate(batch)},
        {"batch_size": None},
        {"batch_sampler": [(0, 1), iter([2, 3])]},
    ],
    ids=["own collate_fn", "no batches", "batches that are no lists"],
)
def test_everything_else_takes_samples(options) -> None:
    dataset = Counting(tinytorch.arange(4))
    seen = [x.tolist() for (x,) in DataLoader(dataset, **options)]
    assert seen in ([[0, 1], [2, 3]], [0, 1, 2, 3])
    assert (dataset.items, dataset.batches) == (4, 0)


def test_an_extended_default_collate_takes_samples(monkeypatch) -> None:
    from tinytorch.data.collate import default_collate_fn_map

    monkeypatch.setitem(default_collate_fn_map, tinytorch.Tensor, lambda batch, **_: len(batch))
    dataset = Counting(tinytorch.arange(4))
    assert list(DataLoader(dataset, batch_size=3)) == [[3], [1]]


def test_the_iterator() -> None:
    loader = DataLoader([1, 2, 3], batch_size=2)
    batches = iter(loader)
    assert iter(batches) is batches and len(batches) == len(loader) == 2
    assert len(list(batches)) == 2 and next(batches, None) is None
    with pytest.raises(NotImplementedError, match="cannot be pickled"):
        pickle.dumps(batches)


def test_a_loader_can_be_pickled() -> None:
    loader = pickle.loads(pickle.dumps(DataLoader([1, 2, 3], batch_size=2)))
    assert [batch.tolist() for batch in loader] == [[1, 2], [3]]
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3


def test_no_cycle_keeps_a_batch_or_a_loader_alive() -> None:
    import gc
    import weakref

    gc.collect()
    gc.disable()
    try:
        loader = DataLoader(TensorDataset(tinytorch.arange(4)), batch_size=2, shuffle=True)
        batches = iter(loader)
        next(batches)
        watched = weakref.ref(loader)
        del loader, batches
        assert watched() is None
    finally:
        gc.enable()


@needs_oracle
def test_the_modules_have_pytorchs_names() -> None:
    import tinytorch.utils.data.dataloader
    import tinytorch.utils.data.dataset
    import tinytorch.utils.data.sampler

    for name in ("dataloader", "dataset", "sampler"):
        theirs = getattr(torch.utils.data, name)
        ours = getattr(tinytorch.utils.data, name)
        assert sorted(ours.__all__) == sorted(theirs.__all__)
        for public in ours.__all__:
            assert getattr(ours, public) is getattr(getattr(tinytorch.data, name), public)
    left_out = {"IterDataPipe", "MapDataPipe", "DFIterDataPipe", "DataChunk", "DistributedSampler"}
    left_out |= {"argument_validation", "functional_datapipe", "guaranteed_datapipes_determinism"}
    left_out |= {"non_deterministic", "runtime_validation", "runtime_validation_disabled", "_DatasetKind"}
    assert set(torch.utils.data.__all__) - left_out <= set(tinytorch.utils.data.__all__)


def test_the_kind_of_a_dataset_and_the_classes_of_iterators() -> None:
    def program(library):
        module = importlib.import_module(f"{library.__name__}.utils.data.dataloader")
        kinds = module._DatasetKind
        listed = library.utils.data.DataLoader([1, 2])
        streamed = library.utils.data.DataLoader(stream_of(library, 3))
        return (
            listed._dataset_kind == kinds.Map,
            streamed._dataset_kind == kinds.Iterable,
            kinds.Map,
            kinds.Iterable,
            isinstance(iter(listed), module._SingleProcessDataLoaderIter),
            issubclass(module._MultiProcessingDataLoaderIter, module._BaseDataLoaderIter),
        )

    assert_same(program)
