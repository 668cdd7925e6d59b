"""Samplers: the order of the samples and the draws are PyTorch's."""

from __future__ import annotations

import pytest

import tinytorch
from tests.data.programs import assert_same, state
from tinytorch.data import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

WEIGHTS = [0.1, 0.9, 0.4, 0.7, 3.0, 0.6]

PROGRAMS = {
    "sequential": lambda d: d.SequentialSampler(range(5)),
    "random": lambda d: d.RandomSampler(range(100)),
    "fewer": lambda d: d.RandomSampler(range(100), num_samples=7),
    "more than there are": lambda d: d.RandomSampler(range(10), num_samples=37),
    "replacement": lambda d: d.RandomSampler(range(10), replacement=True),
    "replacement, several blocks": lambda d: d.RandomSampler(range(50), True, num_samples=70),
    "replacement, whole blocks": lambda d: d.RandomSampler(range(50), True, num_samples=64),
    "subset": lambda d: d.SubsetRandomSampler([3, 1, 4, 1, 5, 9, 2, 6]),
    "weighted": lambda d: d.WeightedRandomSampler(WEIGHTS, 20),
    "weighted, no replacement": lambda d: d.WeightedRandomSampler(WEIGHTS, 5, replacement=False),
    "batches": lambda d: d.BatchSampler(d.RandomSampler(range(11)), 4, drop_last=False),
    "whole batches": lambda d: d.BatchSampler(d.RandomSampler(range(11)), 4, drop_last=True),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_epochs_and_what_follows_are_as_in_pytorch(name: str) -> None:
    def program(library):
        library.manual_seed(7)
        sampler = PROGRAMS[name](library.utils.data)
        return list(sampler), list(sampler), len(sampler), state(library)

    assert_same(program)


WITH_GENERATOR = {
    "random": lambda d, g: d.RandomSampler(range(20), generator=g),
    "replacement": lambda d, g: d.RandomSampler(range(20), True, 40, generator=g),
    "subset": lambda d, g: d.SubsetRandomSampler(range(9), generator=g),
    "weighted": lambda d, g: d.WeightedRandomSampler(WEIGHTS, 9, generator=g),
}


@pytest.mark.parametrize("name", WITH_GENERATOR)
def test_a_generator_of_its_own_leaves_the_default_one_alone(name: str) -> None:
    def program(library):
        library.manual_seed(1)
        generator = library.Generator().manual_seed(5)
        drawn = list(WITH_GENERATOR[name](library.utils.data, generator))
        return drawn, library.randint(0, 1000, (3,), generator=generator), state(library)

    assert_same(program)


ERRORS = {
    "replacement": (lambda d: d.RandomSampler(range(3), replacement=1), "replacement should be a boolean"),
    "num_samples 0": (lambda d: d.RandomSampler(range(3), num_samples=0), "num_samples should be a positive"),
    "num_samples float": (lambda d: d.RandomSampler(range(3), num_samples=2.0), "but got num_samples=2.0"),
    "empty": (lambda d: d.RandomSampler([]), "num_samples=0"),
    "weighted num_samples": (lambda d: d.WeightedRandomSampler([1], -1), "but got num_samples=-1"),
    "weighted bool": (lambda d: d.WeightedRandomSampler([1], True), "but got num_samples=True"),
    "weighted replacement": (lambda d: d.WeightedRandomSampler([1], 1, 0), "but got replacement=0"),
    "weights 2-d": (lambda d: d.WeightedRandomSampler([[1, 2]], 1), "weights should be a 1d sequence"),
    "batch_size": (lambda d: d.BatchSampler([1], 0, False), "but got batch_size=0"),
    "batch_size bool": (lambda d: d.BatchSampler([1], True, False), "but got batch_size=True"),
    "drop_last": (lambda d: d.BatchSampler([1], 1, 1), "but got drop_last=1"),
    "no length": (lambda d: len(d.BatchSampler(iter([1]), 1, False)), "has no len()"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    make, words = ERRORS[name]
    assert_same(lambda library: make(library.utils.data), words)


def test_random_order_is_a_permutation_and_new_each_time() -> None:
    tinytorch.manual_seed(0)
    sampler = RandomSampler(range(100))
    first, second = list(sampler), list(sampler)
    assert sorted(first) == sorted(second) == list(range(100))
    assert first != second


def test_num_samples_follows_a_data_source_that_grows() -> None:
    source = [1, 2]
    sampler = RandomSampler(source)
    source.append(3)
    assert len(sampler) == 3 and sorted(sampler) == [0, 1, 2]
    assert list(SequentialSampler(source)) == [0, 1, 2]


def test_subset_gives_its_indices() -> None:
    assert sorted(SubsetRandomSampler([5, 7, 11])) == [5, 7, 11]


def test_zero_weights_are_never_drawn() -> None:
    assert set(WeightedRandomSampler([0.0, 1.0, 0.0, 2.0], 50)) <= {1, 3}


def test_batches_of_any_iterable() -> None:
    assert list(BatchSampler("abcde", 2, False)) == [["a", "b"], ["c", "d"], ["e"]]
    assert list(BatchSampler("abcde", 2, True)) == [["a", "b"], ["c", "d"]]
    assert len(BatchSampler("abcde", 2, False)) == 3 and len(BatchSampler("abcde", 2, True)) == 2


def test_the_base_class_has_no_order_and_no_length() -> None:
    with pytest.raises(NotImplementedError):
        iter(Sampler())
    with pytest.raises(TypeError, match="has no len"):
        len(Sampler())  # type: ignore[arg-type]
