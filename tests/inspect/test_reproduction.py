"""`inspect.reproducible` names the first number that differs between two runs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import inspect, nn

X = torch.linspace(-1, 1, 12).reshape(4, 3)


def train(*, change: Any = None) -> Any:
    """Train a network with dropout for two steps, on noise of all three generators; `change` is called before each."""
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        noise = torch.from_numpy(np.random.rand(4, 1)).float() * random.random()
        if change is not None:
            change(model)
        optimizer.zero_grad()
        loss = (model(X) - noise).pow(2).mean()
        loss.backward()
        optimizer.step()
    return model


def line_with(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").split("\n")
    return 1 + next(k for k, line in enumerate(lines) if text in line and "line_with" not in line)


def test_a_training_is_reproducible() -> None:
    report = inspect.reproducible(train, times=3)
    assert report and report.runs == 3 and report.operations > 40
    assert str(report) == f"3 runs of {report.operations} ops are equal, bit for bit"
    assert isinstance(report.result, nn.Sequential)


def test_the_generators_begin_as_they_are() -> None:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    report = inspect.reproducible(lambda: (torch.rand(2), np.random.rand(), random.random()))
    assert report
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    first, second, third = report.result
    assert torch.equal(first, torch.rand(2)) and (second, third) == (np.random.rand(), random.random())


def test_an_argument_that_no_op_has_made() -> None:
    generator = np.random.default_rng()

    def step() -> Any:
        data = torch.from_numpy(generator.random((4, 3)))
        return (data * 2).sum()  # takes other data

    report = inspect.reproducible(step)
    assert not report and report.first is not None
    assert (report.first.what, report.first.number, report.first.op) == ("argument", 0, "mul")
    assert report.first.argument.startswith("argument input")
    assert report.first.line is not None and report.first.line.number == line_with("takes other data")
    assert "run 1 parts from the first one: argument input" in str(report)


def test_random_numbers_of_another_generator() -> None:
    generator = torch.Generator()
    report = inspect.reproducible(lambda: torch.randn(3, generator=generator).sum())
    assert report.first is not None and report.first.op == "sum"
    assert report.first.detail.startswith("random numbers, whose generator was in another state")


def test_a_model_that_the_first_run_trains() -> None:
    model = nn.Sequential(nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        optimizer.zero_grad()
        model(X).pow(2).mean().backward()
        optimizer.step()

    report = inspect.reproducible(step)
    assert report.first is not None
    assert (report.first.what, report.first.op, report.first.argument) == (
        "argument", "linear", "argument weight (0.weight)",
    )  # fmt: skip
    assert report.first.module == "0: Linear" and "was it trained by the first run" in report.first.detail


def test_a_result_that_differs() -> None:
    runs: list[int] = []

    def change(model: Any) -> None:
        runs.append(1)
        model[2].p = 0.5 if len(runs) < 4 else 0.25  # in the second step of the second run

    report = inspect.reproducible(lambda: train(change=change))
    assert report.first is not None
    assert report.first.module == "2: Dropout" and report.first.number > 10

    def scaled() -> Any:
        runs.append(1)
        return torch.ones(2) * len(runs)  # by another number

    report = inspect.reproducible(scaled)
    assert report.first is not None and (report.first.what, report.first.op) == ("result", "mul")
    assert report.first.detail == "[5.0, 5.0] and [6.0, 6.0]"
    assert report.first.line is not None and report.first.line.number == line_with("by another number")


def test_an_op_of_the_backward_pass() -> None:
    runs: list[int] = []

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            runs.append(1)
            return g * len(runs)  # in a backward

    def step() -> None:
        x = torch.ones(2, requires_grad=True)
        Noisy.apply(x).sum().backward()

    report = inspect.reproducible(step)
    assert report.first is not None
    assert (report.first.op, report.first.node) == ("mul", "NoisyBackward")
    assert report.first.line is not None and report.first.line.number == line_with("in a backward")


def test_other_ops_and_other_numbers_of_ops() -> None:
    runs: list[int] = []

    def other() -> Any:
        runs.append(1)
        return X.exp() if len(runs) == 1 else X.sin()

    report = inspect.reproducible(other)
    assert report.first is not None and report.first.what == "op"
    assert report.first.op.startswith("exp at") and report.first.op.endswith("sin in the other")

    def more() -> None:
        runs.append(1)
        for _ in range(len(runs)):
            X.exp()

    runs.clear()
    report = inspect.reproducible(more)
    assert report.first is not None and report.first.what == "end" and "1 in the first, more" in str(report)
    runs.extend([0] * 3)

    def fewer() -> None:
        runs.pop()
        for _ in range(len(runs)):
            X.exp()

    report = inspect.reproducible(fewer)
    assert (
        report.first is not None and report.first.what == "end" and "in the other; the next one is exp" in str(report)
    )


def test_what_is_returned() -> None:
    runs: list[int] = []

    def count() -> Any:
        runs.append(1)
        return {"loss": len(runs)}

    report = inspect.reproducible(count)
    assert report.first is not None and report.first.what == "return value"
    assert inspect.reproducible(lambda: [np.ones(2), None, {"a": torch.ones(1)}, nn.Linear(1, 1)])
    assert not inspect.reproducible(lambda: np.random.default_rng().random(2))


def test_bits_are_compared() -> None:
    runs: list[int] = []

    def zeros() -> Any:
        runs.append(1)
        return torch.zeros(3) * (1.0 if len(runs) == 1 else -1.0)  # -0.0

    assert not inspect.reproducible(zeros)


def test_wrong_arguments() -> None:
    with pytest.raises(ValueError, match="times should be at least 2"):
        inspect.reproducible(train, times=1)
