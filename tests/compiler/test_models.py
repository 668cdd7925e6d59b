"""Training steps of all kinds of models, compiled and as they are: the same losses, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

import tinytorch
from benchmarks.work import WORK
from tests.test_benchmarks import TRAINING

#: What runs as it is: sampling, packed sequences, bags of rows.
AS_IT_IS = {"gru", "recommender"}


def losses(name: str, compile_: Any) -> list[float]:
    tinytorch.manual_seed(0)
    step = compile_(WORK[name].make(tinytorch))
    tinytorch.manual_seed(1)
    return [tinytorch.as_tensor(step()).item() for _ in range(20)]


@pytest.mark.parametrize("name", TRAINING)
def test_losses_are_those_of_the_step_as_it_is(name: str) -> None:
    made: list[Any] = []

    def compiled(step: Any) -> Any:
        made.append(tinytorch.compile(step))
        return made[0]

    assert losses(name, compiled) == losses(name, lambda step: step)
    assert bool(made[0].variants) == (name not in AS_IT_IS), made[0].explain()


def test_gradients_last_until_the_step_where_leaves_are_served_early() -> None:
    tinytorch.ones(1, requires_grad=True).register_hook(lambda g: g).remove()  # from then on they are
    assert losses("tcn", tinytorch.compile) == losses("tcn", lambda step: step)
