"""Functions, indexing, layers and training that are drawn at random: the same compiled, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from tests.compiler import drawn, indexed, texts
from tests.compiler.test_programs import difference, plain
from tests.ops.test_random_indexing import Case, cases
from tests.programs.drawn import random_programs
from tests.turns import quarter
from tinytorch.kernels import parallel


@pytest.fixture(params=["as it is", "everything is large"])
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of a few elements be large: what is done in blocks, or computed again, for these alone."""
    if request.param != "as it is":
        monkeypatch.setattr(parallel, "LARGE", 4)
        monkeypatch.setattr(parallel, "CACHED", 8)


@pytest.mark.parametrize("start", quarter(range(0, 1000, 50)))
@pytest.mark.usefixtures("sizes")
def test_drawn_functions_are_the_same_compiled(start: int) -> None:
    for seed in range(start, start + 50):
        text = drawn.function(seed)
        assert not (found := drawn.failure(text)), f"{seed}\n{text}\n{found}"
    assert drawn.counts[True] > drawn.counts[False] / 3  # (the others say why they run as they are)


@pytest.mark.parametrize("start", range(0, 100, 50))
@pytest.mark.parametrize("kind", [texts.of_layers, texts.of_training])
@pytest.mark.usefixtures("sizes")
def test_drawn_layers_and_training_are_the_same_compiled(kind: Any, start: int) -> None:
    made: list[Any] = []
    for seed in range(start, start + 50):
        text = kind(seed)
        (expected, _), (got, compiled) = texts.outcome(text, False), texts.outcome(text, True)
        assert not (found := difference(expected, got)), f"{seed}\n{text}\n{found}"
        made += compiled
    assert sum(bool(each.variants) for each in made) > len(made) / 4


@random_programs(150, cases())
def test_drawn_indexing_is_the_same_compiled(case: Case) -> None:
    for write in indexed.WRITES:
        expected, got = indexed.outcome(case, write, plain), indexed.outcome(case, write, tinytorch.compile)
        assert not (found := difference(expected, got)), f"{write}: {found}"
