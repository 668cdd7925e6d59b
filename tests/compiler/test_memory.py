"""What stays in memory of the first call, which is recorded."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import tinytorch as torch
from tinytorch.compiler.program import Program


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Training:
    """A model, its optimizer and a step."""

    def __init__(self) -> None:
        self.model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
        self.optimizer = torch.optim.Adam(self.model.parameters())

    def step(self, x: torch.Tensor) -> torch.Tensor:
        loss = self.model(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return loss


def test_nothing_of_the_first_call_waits_for_the_collector() -> None:
    training = Training()
    step = torch.compile(training.step)
    x = torch.rand(5, 3)
    loss = weakref.ref(step(x))
    gradients = [weakref.ref(p.grad._array) for p in training.model.parameters()]
    assert loss() is None
    step(x)
    assert [each() for each in gradients] == [None] * 4


def test_nothing_of_a_call_that_cannot_be_compiled_waits_for_the_collector() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        parts = [x * 2, x + 1]
        made.extend([weakref.ref(each._array) for each in parts])
        return parts[0] if parts[1].sum().item() > 0 else x

    made: list[weakref.ref[object]] = []
    assert torch.compile(f)(torch.ones(3)).tolist() == [2, 2, 2]
    assert [each() for each in made] == [None] * 2


def test_a_program_that_python_does_not_take_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Program._write

    def changed(self: Program) -> list[str]:
        first, *rest = write(self)
        return [first, "    nobody()", *rest]

    monkeypatch.setattr(Program, "_write", changed)
    f = torch.compile(lambda x: x * 2 + 1)
    for k in range(4):
        assert f(torch.tensor(float(k))).item() == 2 * k + 1
    assert "not compiled: NameError: name 'nobody' is not defined" in f.explain()
