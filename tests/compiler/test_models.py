"""Training steps of all kinds of models, and the examples, compiled and as they are: the same, bit for bit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import tinytorch
from benchmarks.work import WORK
from tests.compiler.test_programs import difference, plain, seen
from tests.test_benchmarks import TRAINING
from tests.test_examples import COMPILED, run
from tests.test_train_fashion_mnist import write_data
from tinytorch.optim.lr_scheduler import LRScheduler

#: What runs as it is: sampling, packed sequences, bags of rows.
AS_IT_IS = {"gru", "recommender"}


def kept(x: Any, found: dict[int, Any]) -> list[Any]:
    """Return the modules, optimizers and tensors that a function closes over."""
    if id(x) in found:
        return []
    found[id(x)] = x
    if isinstance(x, (tinytorch.Tensor, tinytorch.nn.Module, tinytorch.optim.Optimizer)):
        return [x]
    cells = [cell.cell_contents for cell in getattr(x, "__closure__", None) or ()]
    return [each for inner in (x if isinstance(x, (list, tuple)) else cells) for each in kept(inner, found)]


def outcome(name: str, compile_: Any) -> list[Any]:
    """Return all that can be seen of 20 steps: losses, the generator, and at the end weights, gradients and states."""
    tinytorch.manual_seed(0)
    function = WORK[name].make(tinytorch)
    step = compile_(function)
    tinytorch.manual_seed(1)
    found = [(seen(tinytorch.as_tensor(step())), tinytorch.get_rng_state().numpy().tobytes()) for _ in range(20)]
    things = kept(function, {})
    assert any(isinstance(each, tinytorch.optim.Optimizer) for each in things)
    return [found, [seen(each) for each in things]]


@pytest.mark.parametrize("name", TRAINING)
def test_steps_are_the_same_compiled(name: str) -> None:
    made: list[Any] = []

    def compiled(step: Any) -> Any:
        made.append(tinytorch.compile(step))
        return made[0]

    assert not difference(outcome(name, plain), outcome(name, compiled))
    assert bool(made[0].variants) == (name not in AS_IT_IS), made[0].explain()


def test_gradients_last_until_the_step_where_leaves_are_served_early() -> None:
    tinytorch.ones(1, requires_grad=True).register_hook(lambda g: g).remove()  # from then on they are
    assert not difference(outcome("tcn", plain), outcome("tcn", tinytorch.compile))


class Noted:
    """What an example compiles, or does not, and what it was given at each call."""

    def __init__(self, function: Any, compile_: Any) -> None:
        self.step = compile_(function)
        self.given: list[Any] = []

    def __call__(self, *args: Any) -> Any:
        self.given.append(args)
        return self.step(*args)


@pytest.mark.parametrize("name", COMPILED)
def test_examples_are_the_same_compiled(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Twenty steps and more: what is printed, and the models, optimizers and schedulers that the step was given."""
    write_data(tmp_path)
    noted: list[Noted] = []
    outcomes = []
    for compile_ in (plain, tinytorch.compile):
        monkeypatch.setattr(
            tinytorch, "compile", lambda step, how=compile_: noted.append(Noted(step, how)) or noted[-1]
        )
        printed = run(name, capsys, f"{COMPILED[name][0].format(data=tmp_path)} --compile")
        things = [x.state_dict() if isinstance(x, LRScheduler) else x for x in noted[-1].given[-1]]
        assert len(noted[-1].given) >= 20
        outcomes.append([re.sub(r"[\d.]+ s$", "", printed, flags=re.MULTILINE), [seen(x) for x in things]])
    assert not difference(*outcomes)
    assert len(noted[-1].step.variants) == COMPILED[name][1], noted[-1].step.explain()
