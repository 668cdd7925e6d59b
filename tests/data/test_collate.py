"""Collation, compared with PyTorch's type by type."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import tinytorch
from tests.data.programs import assert_same, plain
from tests.oracle import needs_oracle, torch
from tinytorch.data.collate import collate, default_collate, default_collate_fn_map, default_convert

Point = collections.namedtuple("Point", ["x", "y"])


class Frozen(Mapping):
    """A mapping that is made from a dict and cannot be changed."""

    def __init__(self, entries):
        self.entries = dict(entries)

    def __getitem__(self, key):
        return self.entries[key]

    def __iter__(self):
        return iter(self.entries)

    def __len__(self):
        return len(self.entries)


class Stubborn(Frozen):
    """A mapping that cannot be made from a dict alone."""

    def __init__(self, entries, more):
        super().__init__(entries)


class Row(Sequence):
    """A sequence that is made from a list and cannot be changed."""

    def __init__(self, entries):
        self.entries = list(entries)

    def __getitem__(self, index):
        return self.entries[index]

    def __len__(self):
        return len(self.entries)


BATCHES = {
    "ints": lambda t: [1, 2, 3],
    "bools": lambda t: [True, False],
    "ints, then floats": lambda t: [1, 2.5],
    "floats": lambda t: [0.5, 1.5],
    "one float": lambda t: [0.5],
    "text": lambda t: ["a", "b"],
    "bytes": lambda t: [b"a", b"b"],
    "tensors": lambda t: [t.arange(3), t.arange(3) * 2],
    "tensors, 0-d": lambda t: [t.tensor(1.5), t.tensor(2.5)],
    "tensors, bool": lambda t: [t.tensor([True]), t.tensor([False])],
    "a tuple of tensors": lambda t: (t.zeros(2), t.ones(2)),
    "arrays": lambda t: [np.arange(3), np.arange(3) + 1],
    "arrays, float32": lambda t: [np.zeros((2, 1), np.float32), np.ones((2, 1), np.float32)],
    "arrays, 0-d": lambda t: [np.array(1.5), np.array(2.5)],
    "numpy float64": lambda t: [np.float64(1.5), np.float64(2)],
    "numpy float32": lambda t: [np.float32(1.5), np.float32(2)],
    "numpy int32": lambda t: [np.int32(1), np.int32(2)],
    "numpy int64": lambda t: [np.int64(1), np.int64(2)],
    "numpy uint8": lambda t: [np.uint8(1), np.uint8(255)],
    "numpy bool": lambda t: [np.True_, np.False_],
    "tuples": lambda t: [(0, "a"), (1, "b")],
    "lists": lambda t: [[0, 1.5], [2, 3.5]],
    "nested": lambda t: [({"x": (1, [t.ones(2)])}, "s"), ({"x": (2, [t.zeros(2)])}, "t")],
    "dicts": lambda t: [{"A": 0, "B": 1.5}, {"A": 100, "B": 2.5}],
    "dicts, more keys later": lambda t: [{"A": 0}, {"A": 100, "B": 2.5}],
    "ordered": lambda t: [collections.OrderedDict(b=1, a=2), collections.OrderedDict(b=3, a=4)],
    "defaultdicts": lambda t: [collections.defaultdict(int, a=1), collections.defaultdict(int, a=2)],
    "namedtuples": lambda t: [Point(0, 1.5), Point(2, 3.5)],
    "ranges": lambda t: [range(2), range(1, 3)],
    "empty tuples": lambda t: [(), ()],
}


@pytest.mark.parametrize("name", BATCHES)
def test_collate_is_pytorchs(name: str) -> None:
    assert_same(lambda library: library.utils.data.default_collate(BATCHES[name](library)))


ERRORS = {
    "tensors": (lambda t: [t.zeros(2), t.zeros(3)], "to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    "arrays": (lambda t: [np.zeros(2), np.zeros(3)], "stack expects each tensor to be equal size"),
    "sequences": (lambda t: [[1, 2], [1]], "each element in list of batch should be of equal size"),
    "none": (lambda t: [None, None], "found <class 'NoneType'>"),
    "objects": (lambda t: [object()], "batch must contain tensors, numpy arrays, numbers, dicts or lists"),
    "nested": (lambda t: [{"x": [None]}], "found <class 'NoneType'>"),
    "text arrays": (lambda t: [np.array(["a"])], "found <U1"),
    "object arrays": (lambda t: [np.array([None])], "found object"),
    "sets": (lambda t: [{1}], "found <class 'set'>"),
    "nothing": (lambda t: [], "list index out of range"),
    "a missing key": (lambda t: [{"a": 1}, {"b": 1}], "a"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    make, words = ERRORS[name]
    assert_same(lambda library: library.utils.data.default_collate(make(library)), words)


def test_pillow_images_are_an_error() -> None:
    image = pytest.importorskip("PIL.Image").new("L", (2, 2))
    with pytest.raises(TypeError, match=r"found <class 'PIL\.Image\.Image'>"):
        default_collate([image, image])


def test_own_container_types_are_kept_where_they_can_be() -> None:
    frozen = default_collate([Frozen({"a": 1}), Frozen({"a": 2})])
    assert type(frozen) is Frozen and frozen["a"].tolist() == [1, 2]
    stubborn = default_collate([Stubborn({"a": 1}, 0), Stubborn({"a": 2}, 0)])
    assert type(stubborn) is dict and stubborn["a"].tolist() == [1, 2]
    row = default_collate([Row([1, 2]), Row([3, 4])])
    assert type(row) is Row and row[0].tolist() == [1, 3]
    filled = default_collate([collections.defaultdict(list, a=1)])
    assert filled.default_factory is list
    assert default_collate([collections.deque([1, 2])])[1].tolist() == [2]


def test_collating_leaves_the_samples_alone() -> None:
    samples = [{"a": 1}, {"a": 2}], [[1], [2]]
    for batch in samples:
        default_collate(batch)
    assert samples == ([{"a": 1}, {"a": 2}], [[1], [2]])


def test_a_table_of_ones_own() -> None:
    table = {str: lambda batch, *, collate_fn_map: "+".join(batch)}
    assert collate([("a", "b"), ("c", "d")], collate_fn_map=table) == ["a+c", "b+d"]
    base = {object: lambda batch, *, collate_fn_map: len(batch)}
    assert collate([1.5, 2.5], collate_fn_map=base) == 2
    with pytest.raises(TypeError, match="found <class 'int'>"):
        collate([1], collate_fn_map=None)


def test_the_default_table_can_be_extended(monkeypatch) -> None:
    class Money:
        def __init__(self, cents):
            self.cents = cents

    def join(batch, *, collate_fn_map):
        return [money.cents for money in batch]

    monkeypatch.setitem(default_collate_fn_map, Money, join)
    assert default_collate([(Money(1), 2), (Money(3), 4)])[0] == [1, 3]


def test_gradients_flow_through_a_batch() -> None:
    x = tinytorch.ones(2, requires_grad=True)
    default_collate([x * 2, x * 3]).sum().backward()
    assert x.grad.tolist() == [5, 5]


CONVERTED = {
    "int": lambda t: 1,
    "float": lambda t: 1.5,
    "text": lambda t: "a",
    "none": lambda t: None,
    "tensor": lambda t: t.ones(2),
    "array": lambda t: np.arange(3),
    "numpy scalar": lambda t: np.float32(1.5),
    "numpy text": lambda t: np.str_("a"),
    "dict": lambda t: {"x": np.arange(2), "y": "a"},
    "tuple": lambda t: (np.arange(2), 1),
    "list": lambda t: [np.arange(2), [np.zeros(1)]],
    "namedtuple": lambda t: Point(np.array(0), 1),
    "range": lambda t: range(2),
    "set": lambda t: {1},
}


@pytest.mark.parametrize("name", CONVERTED)
def test_convert_is_pytorchs(name: str) -> None:
    assert_same(lambda library: library.utils.data.default_convert(CONVERTED[name](library)))


def test_arrays_of_text_are_left_alone() -> None:
    array = np.array(["a", None], dtype=object)
    assert default_convert(array) is array


@needs_oracle
def test_tensors_of_pytorch_become_tensors_without_a_copy() -> None:
    foreign = torch.arange(3.0)
    converted = default_convert({"x": foreign})["x"]
    foreign[0] = 7
    assert type(converted) is tinytorch.Tensor and converted.tolist() == [7, 1, 2]


@needs_oracle
def test_samples_of_pytorch_tensors_are_collated() -> None:
    samples = [(torch.full((1, 2), float(i)), i) for i in range(3)]
    batch = default_collate(samples)
    expected = torch.utils.data.default_collate(samples)
    assert type(batch[0]) is tinytorch.Tensor and plain(batch) == plain(expected)
    parameter = torch.nn.Parameter(torch.ones(2))
    assert plain(default_collate([parameter, parameter])) == ("torch.float32", [[1, 1], [1, 1]])
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal size"):
        default_collate([torch.zeros(1), torch.zeros(2)])
