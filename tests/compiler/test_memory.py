"""What stays in memory of the first call, which is recorded, and what a program keeps."""

from __future__ import annotations

import gc
import importlib
import logging
import re
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch.compiler.program import Program
from tinytorch.kernels import parallel


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


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "LARGE", 64)


class Block(torch.nn.Module):
    """Two layers around a function."""

    def __init__(self, between: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.between = between
        self.expand, self.contract = torch.nn.Linear(4, 32), torch.nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.contract(self.between(self.expand(x)))


def outcome(between: Callable[[torch.Tensor], torch.Tensor], compiled: bool) -> tuple[list[bytes], str]:
    """Return the losses and gradients of some steps of a model of blocks, and the source of the program."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block(between) for _ in range(3)])

    def step(x: torch.Tensor) -> torch.Tensor:
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    run = torch.compile(step) if compiled else step
    seen = []
    for _ in range(3):
        loss = run(torch.randn(16, 4))
        seen += [each.numpy().tobytes() for each in [loss.detach(), *[p.grad for p in model.parameters()]]]
    assert not compiled or run.variants[0].runs == 2
    return seen, run.source if compiled else ""


def in_place(x: torch.Tensor) -> torch.Tensor:
    y = F.gelu(x * 2)
    x.mul_(3)  # (its gradient does not need it)
    return y


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize(
    ("between", "times"),
    [
        (F.gelu, 6),  # its input is kept anyway
        (lambda x: F.gelu(x.view(8, -1)).view(16, -1), 3),  # (a view that the way forward has made is needed)
        (lambda x: F.gelu(F.dropout(x)), 6),
        (lambda x: F.gelu(in_place(x)), 9),  # the one in `in_place`; the other's input is not kept any more
        (torch.sin, 3),  # takes long
        (torch.tanh, 3),  # its own gradient needs the result, not the input
    ],
)
def test_what_is_cheap_is_computed_again(between: Callable[[torch.Tensor], torch.Tensor], times: int) -> None:
    expected, _ = outcome(between, False)
    found, source = outcome(between, True)
    assert found == expected
    assert len(re.findall(r"^[^#]*(?:gelu\(|blockwise\((?:tanh|sin),)", source, re.MULTILINE)) == times, source


@pytest.mark.usefixtures("small_is_large")
def test_what_has_changed_is_not_computed_again() -> None:
    def losses(compiled: bool) -> list[object]:
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(16, 16))
        optimizer = torch.optim.SGD([weight], 0.1)

        def step(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = F.gelu(weight)
            loss = ((y @ x).tanh() @ x).exp().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.detach(), y.detach().sum()

        run = torch.compile(step) if compiled else step
        return [[each.item() for each in run(torch.randn(16, 16))] for _ in range(4)]

    assert losses(True) == losses(False)


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("function", [F.relu, torch.tanh, torch.sigmoid, torch.sin])
def test_what_nobody_uses_any_more_is_written_over(
    function: Callable[[torch.Tensor], torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tinytorch.compiler.program.LARGE", 64)

    def f(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = x.cumsum(0)
        turned = x.cumsum(1)
        y = function(x.cumsum(0)).cumsum(0)
        return y + function(kept) + function(turned.T), kept

    x = torch.randn(12, 12)
    expected, run = f(x), torch.compile(f)
    for _ in range(3):
        for each, other in zip(run(x), expected, strict=True):
            assert each.numpy().tobytes() == other.numpy().tobytes()
    over = re.findall(r"^[^#]*blockwise\((\w+), (\w+).*out=\2\)", run.source, re.MULTILINE)
    assert [name == "add" for name, _ in over] == [False, True], run.source
    assert len(re.findall(r"^[^#]*blockwise\(", run.source, re.MULTILINE)) == 3, run.source


def test_threads_do_not_wait_for_each_other_nor_use_up_the_limit() -> None:
    f = torch.compile(lambda x: x * 2 + 1)
    locks = []
    for k in range(12):
        assert f(torch.tensor([float(k)])).item() == 2 * k + 1  # all programs are busy
        for entry in f.variants[len(locks) :]:
            locks.append(entry.enter.__globals__["LOCK"])
            locks[-1].acquire()
    assert [entry.extra for entry in f.variants] == [False] + [True] * 8 and not f.failed
    for lock in locks:
        lock.release()
    for count in range(2, 9):  # of dimensions
        assert f(torch.ones([1] * count)).view(-1).tolist() == [3]
    assert len(f.variants) == 16 and not f.reasons


def test_a_program_that_python_does_not_take_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    write = Program._write

    def changed(self: Program) -> list[str]:
        first, *rest = write(self)
        return [first, "    nobody()", *rest]

    monkeypatch.setattr(Program, "_write", changed)
    monkeypatch.setattr(logging.getLogger("tinytorch.compiler.recorder"), "handlers", [])  # they let tests fail
    f = torch.compile(lambda x: x * 2 + 1)
    for k in range(4):
        assert f(torch.tensor(float(k))).item() == 2 * k + 1
    assert "not compiled: NameError: name 'nobody' is not defined" in f.explain()


def test_checks_of_overlapping_inputs_do_not_grow_with_the_parameters() -> None:
    """Parameters and running statistics are the same in all calls: only tensors that change are looked at each time."""
    layers = [torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)) for _ in range(10)]
    model = torch.nn.Sequential(*layers)
    compiled = torch.compile(model)
    lines = []
    entry = importlib.import_module("tinytorch.compiler.entry")
    before = entry._overlaps

    def overlaps(*args: Any) -> Any:
        lines.extend(before(*args))
        return lines

    entry._overlaps = overlaps
    try:
        for _ in range(2):
            compiled(torch.randn(3, 4))
    finally:
        entry._overlaps = before
    assert compiled._compiled.variants[0].runs == 1 and 0 < len(lines) <= 2 * 30
