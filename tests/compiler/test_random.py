"""Functions and steps of training that are drawn at random: the same compiled, bit for bit."""

from __future__ import annotations

import pytest

from tests.compiler import drawn


@pytest.mark.parametrize("start", range(0, 1000, 50))
def test_drawn_functions_are_the_same_compiled(start: int) -> None:
    for seed in range(start, start + 50):
        text = drawn.function(seed)
        assert not (found := drawn.failure(text)), f"{seed}\n{text}\n{found}"
    assert drawn.counts[True] > drawn.counts[False] / 3  # (the others say why they run as they are)
