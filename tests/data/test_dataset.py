"""Datasets and their combinations."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tinytorch
from tests.data.programs import assert_same, state
from tests.same import same_as_pytorch
from tinytorch.data import (
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from tinytorch.data.dataset import batch_reader, positions, read_samples


class Countdown(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(range(self.n, 0, -1))

    def __len__(self):
        return self.n


class Many(Dataset):
    """A dataset that is asked for lists of samples, and says how often."""

    def __init__(self, wrong=0):
        self.asked, self.wrong = [], wrong

    def __getitems__(self, indices):
        self.asked.append(list(indices))
        return [10 * i for i in indices] + [0] * self.wrong

    def __len__(self):
        return 5


def test_the_base_class_asks_for_getitem() -> None:
    with pytest.raises(NotImplementedError, match="Subclasses of Dataset should implement __getitem__"):
        Dataset()[0]


def test_an_iterable_dataset_must_have_iter() -> None:
    with pytest.raises(TypeError, match="abstract"):
        IterableDataset()


def test_sums_of_datasets() -> None:
    total = TensorDataset(tinytorch.arange(2)) + TensorDataset(tinytorch.arange(3))
    assert isinstance(total, ConcatDataset) and len(total) == 5
    chain = Countdown(2) + Countdown(1)
    assert isinstance(chain, ChainDataset) and list(chain) == [2, 1, 1] and len(chain) == 3


def test_tensor_dataset() -> None:
    dataset = TensorDataset(tinytorch.arange(6).reshape(3, 2), tinytorch.arange(3))
    x, y = dataset[1]
    assert x.tolist() == [2, 3] and y.item() == 1 and len(dataset) == 3
    assert dataset[-1][1].item() == 2
    with pytest.raises(AssertionError, match="Size mismatch between tensors"):
        TensorDataset(tinytorch.arange(2), tinytorch.arange(3))


def test_stack_dataset() -> None:
    assert StackDataset([1, 2], "ab")[1] == (2, "b")
    named = StackDataset(x=[1, 2], y="ab")
    assert named[0] == {"x": 1, "y": "a"} and len(named) == 2
    assert named.__getitems__([1, 0]) == [{"x": 2, "y": "b"}, {"x": 1, "y": "a"}]
    assert StackDataset([1, 2], "ab").__getitems__([1]) == [(2, "b")]


def test_stack_dataset_asks_for_lists_of_samples() -> None:
    many = Many()
    assert StackDataset(many, range(5)).__getitems__([1, 3]) == [(10, 1), (30, 3)]
    assert many.asked == [[1, 3]]
    with pytest.raises(ValueError, match=r"output size mismatch\. Expected 2, got 3"):
        StackDataset(x=Many(wrong=1)).__getitems__([0, 1])


def test_concat_dataset() -> None:
    joined = ConcatDataset([[1, 2], [], [3]])
    assert [joined[i] for i in range(-3, 3)] == [1, 2, 3, 1, 2, 3]
    assert joined.cumulative_sizes == [2, 2, 3] and len(joined) == 3
    with pytest.raises(IndexError):
        joined[3]


def test_chain_dataset_reads_lazily() -> None:
    stream = iter(ChainDataset([Countdown(2), [1, 2]]))
    assert [next(stream), next(stream)] == [2, 1]
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        next(stream)
    with pytest.raises(AssertionError, match="ChainDataset only supports IterableDataset"):
        len(ChainDataset([[1]]))


def test_subset() -> None:
    subset = Subset("abcdef", [5, 0, 3])
    assert subset[0] == "f" and subset.__getitems__([2, 1]) == ["d", "a"] and len(subset) == 3
    array = Subset(np.arange(10) * 2, [5, 0, 3])
    assert array[[0, 2]].tolist() == [10, 6]
    many = Many()
    assert Subset(many, [4, 3, 2]).__getitems__([0, 2]) == [40, 20] and many.asked == [[4, 2]]


def test_a_subset_with_its_own_getitem_needs_its_own_getitems() -> None:
    class Half(Subset):
        def __getitem__(self, idx):
            return "half"

    class Whole(Half):
        def __getitems__(self, indices):
            return [self[i] for i in indices]

    with pytest.raises(NotImplementedError, match="Half overrides __getitem__ but not __getitems__"):
        Half([1], [0])
    tensors = TensorDataset(tinytorch.arange(3))
    assert next(iter(DataLoader(Whole(tensors, [0, 1]), batch_size=2))) == ["half", "half"]


SPLITS = {
    "lengths": (30, [10, 20]),
    "fractions": (30, [0.3, 0.3, 0.4]),
    "a remainder, dealt out": (11, [0.5, 0.25, 0.25]),
    "many remainders": (7, [0.2, 0.2, 0.2, 0.2, 0.2]),
    "a length of 1": (1, [1]),
    "all of it": (5, [1.0]),
}


@pytest.mark.parametrize("name", SPLITS)
@pytest.mark.parametrize("own", [False, True])
def test_random_split_is_pytorchs(name: str, own: bool) -> None:
    size, lengths = SPLITS[name]

    def program(library):
        library.manual_seed(3)
        more = {"generator": library.Generator().manual_seed(42)} if own else {}
        parts = library.utils.data.random_split(range(size), lengths, **more)
        return [list(part.indices) for part in parts], state(library)

    assert_same(program)


ERRORS = {
    "lengths": (lambda d: d.random_split(range(3), [1, 1]), "Sum of input lengths does not equal"),
    "fractions": (lambda d: d.random_split(range(3), [0.5, 0.4]), "Sum of input lengths does not"),
    "fraction": (lambda d: d.random_split(range(3), [1.5, -0.5]), "Fraction at index 0 is not between"),
    "stack both": (lambda d: d.StackDataset([1], x=[1]), "but both types are given"),
    "stack none": (lambda d: d.StackDataset(), "At least one dataset should be passed"),
    "stack sizes": (lambda d: d.StackDataset([1], [1, 2]), "Size mismatch between datasets"),
    "stack sizes, named": (lambda d: d.StackDataset(x=[1], y=[]), "Size mismatch between datasets"),
    "concat none": (lambda d: d.ConcatDataset([]), "datasets should not be an empty iterable"),
    "concat stream": (
        lambda d: d.ConcatDataset([d.ChainDataset([])]),
        "ConcatDataset does not support IterableDataset",
    ),
    "concat index": (lambda d: d.ConcatDataset([[1]])[-2], "absolute value of index should not exceed dataset length"),
    "no tensors": (lambda d: len(d.TensorDataset()), "index out of range"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    make, words = ERRORS[name]
    assert_same(lambda library: make(library.utils.data), words)


def test_random_split_warns_of_an_empty_part() -> None:
    with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
        random_split(range(1), [0.5, 0.5])


# Whole batches -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "indices, expected",
    [
        ([2, 3, 4], slice(2, 5)),
        ([0], slice(0, 1)),
        ([7, 8, 9], slice(7, 10)),
        ([3, 2], [3, 2]),
        ([-2, -1], [-2, -1]),
        ([np.int64(1), np.int64(2)], [1, 2]),
        ([-10, 9], [-10, 9]),
        ([], None),
        ([8, 9, 10], None),
        ([0, 10], None),
        ([-11, 0], None),
        ([1.0, 2.0], None),
        (["a"], None),
    ],
)
def test_positions(indices, expected) -> None:
    found = positions(indices, 10)
    assert found == expected if not isinstance(expected, list) else found.tolist() == expected


def test_positions_of_tensor_indices() -> None:
    found = positions(list(tinytorch.tensor([4, 2])), 10)
    assert isinstance(found, np.ndarray) and found.tolist() == [4, 2]


@pytest.mark.parametrize("indices", [[0, 1, 2], [4, 0, -1], [3]])
def test_a_whole_batch_equals_the_collated_samples(indices) -> None:
    dataset = TensorDataset(tinytorch.rand(5, 2, 3), tinytorch.arange(5), tinytorch.rand(5) > 0.5)
    whole = dataset.__getbatch__(indices)
    single = tinytorch.utils.data.default_collate(read_samples(dataset, indices))
    assert type(whole) is type(single) is list
    for a, b in zip(whole, single, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tolist() == b.tolist()


@pytest.mark.parametrize("indices", [[0, 1, 2], [2, 0]])
def test_a_batch_is_not_a_view_of_the_dataset(indices) -> None:
    data = tinytorch.zeros(3, 2)
    (batch,) = TensorDataset(data).__getbatch__(indices)
    batch.fill_(1.0)
    assert data.sum().item() == 0


def test_a_batch_of_tensors_that_require_grad_is_recorded() -> None:
    weights = tinytorch.ones(4, 2, requires_grad=True)
    (batch,) = next(iter(DataLoader(TensorDataset(weights), batch_size=3)))
    batch.sum().backward()
    assert weights.grad.tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]


def test_a_subset_hands_whole_batches_on() -> None:
    dataset = TensorDataset(tinytorch.arange(10) * 10)
    subset = Subset(Subset(dataset, [9, 7, 5, 3]), np.array([3, 0]))
    assert subset.__getbatch__([0, 1])[0].tolist() == [30, 90]
    assert Subset([1, 2], [0]).__getbatch__([0]) is NotImplemented


def test_whoever_redefines_samples_redefines_batches() -> None:
    class Plain(TensorDataset):
        pass

    class Item(TensorDataset):
        def __getitem__(self, index):
            return index

    class Items(Plain):
        def __getitems__(self, indices):
            return [7 for _ in indices]

    class Both(Item):
        def __getbatch__(self, indices):
            return "batch"

    x = tinytorch.arange(4)
    assert batch_reader(Plain(x)) is not None and batch_reader(Both(x)) is not None
    assert batch_reader(Item(x)) is None and batch_reader(Items(x)) is None
    assert batch_reader([1, 2]) is None
    assert [next(iter(DataLoader(kind(x), batch_size=2))) for kind in (Both,)] == ["batch"]
    assert next(iter(DataLoader(Item(x), batch_size=2))).tolist() == [0, 1]
    assert next(iter(DataLoader(Items(x), batch_size=2))).tolist() == [7, 7]
    assert next(iter(DataLoader(Subset(Item(x), [3, 2]), batch_size=2))).tolist() == [3, 2]


def test_a_bad_index_gives_the_error_of_the_sample() -> None:
    def program(library):
        data = library.utils.data
        dataset = data.TensorDataset(library.arange(3))
        return list(data.DataLoader(dataset, batch_sampler=[[0, 5]]))

    assert_same(program, "index 5 is out of bounds for dimension 0 with size 3")


def test_no_warning_at_a_usual_split() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [len(part) for part in random_split(range(10), [0.5, 0.5])] == [5, 5]


def test_the_older_spelling_of_cumulative_sizes() -> None:
    both = ConcatDataset([[1, 2], [3]])
    with pytest.warns(FutureWarning, match="renamed to `cumulative_sizes`"):
        assert both.cummulative_sizes == [2, 3]


def test_a_dataset_of_no_tensors_and_a_subset_read_as_in_pytorch() -> None:
    def program(torch):
        data = torch.utils.data
        empty = list(data.DataLoader(data.TensorDataset(), sampler=[0, 1]))
        read = []

        class Told(data.Dataset):
            def __getitem__(self, index):
                read.append(index)
                return index

        try:
            data.Subset(Told(), [7, 5]).__getitems__([0, 1, 2])
        except IndexError as error:
            read.append(str(error))
        stream = data.DataLoader(data.ChainDataset([]))
        return [empty, read, type(stream.sampler).__name__]

    same_as_pytorch(program)
