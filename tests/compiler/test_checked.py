"""Each call compared with the function: a program that does anything else is found, and none that does not."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tests.compiler import visible
from tests.compiler.checked import Checked, CheckError
from tests.compiler.test_programs import PROGRAMS, batch, difference, outcome, plain, seen
from tinytorch import nn


@pytest.fixture(autouse=True)
def checking(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr("tinytorch.compiler.Compiled", Checked)
    yield


class Training:
    """A model that is trained, with dropout, running statistics, a schedule, and a counter."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Dropout(0.3), nn.Linear(6, 3))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.1)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 2)

    def step(self, x: Any, y: Any) -> Any:
        self.optimizer.zero_grad()
        loss = F.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        return loss

    def state(self) -> Any:
        return seen([self.model, self.optimizer, self.scheduler.state_dict(), torch.get_rng_state()])


def scope_of(compiled: Any) -> dict[str, Any]:
    """Return the names that the program which was made last sees."""
    scope: dict[str, Any] = inspect.unwrap(compiled.variants[-1].step).__globals__
    return scope


def test_what_is_right_is_what_it_is_without() -> None:
    with_it, without = Training(), Training()
    step = torch.compile(with_it.step)
    assert type(step) is Checked
    for training, function in ((with_it, step), (without, without.step)):
        torch.manual_seed(1)
        for count in (5, 5, 5, 7, 7, 5):
            function(*batch(count))
        training.last = torch.get_rng_state()  # type: ignore[attr-defined]
    assert len(step.variants) == 2
    assert not step.reasons
    assert not difference(without.state(), with_it.state())


@pytest.mark.parametrize("name", list(PROGRAMS)[::5])
def test_programs_pass(name: str) -> None:
    assert not difference(outcome(PROGRAMS[name], plain), outcome(PROGRAMS[name], torch.compile))


#: By a name in the program: what stands in its place, given what is right, and what is said of it.
WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "relu": (lambda right: lambda *args: right(*args) * np.float32(1.0001), "the result has other numbers in 1 of 1"),
    "column_sums": (
        lambda right: lambda x: np.nextafter(right(x), np.float32(9)),
        r"model.\d.bias.grad has other numb",
    ),
    "adam_step": (lambda right: lambda: None, "model.0.weight has other numbers in 24 of 24 elements, by up to 0.0"),
    "steplr_step": (lambda right: lambda: [right(), right()], r"scheduler.*last_epoch is 4 and not 3"),
    "fill": (lambda right: lambda *args: (right(*args), right(*args))[0], "the default generator has other numbers"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name: str) -> None:
    training, without = Training(), Training()
    step = torch.compile(training.step)
    given = batch()
    for each in (step, without.step):
        torch.manual_seed(1)
        each(*given), each(*given)
        state = torch.get_rng_state()
    change, words = WRONG[name]
    scope = scope_of(step)
    assert name in scope, sorted(scope)
    scope[name] = change(scope[name])
    with pytest.raises(CheckError, match=r"the program of Training.step does not do what the function does") as caught:
        step(*given)
    assert re.search(words, str(caught.value)), str(caught.value)
    torch.set_rng_state(state)
    without.step(*given)
    assert not difference(without.state(), training.state())  # what the function does is what remains


def around(step: Any, after: Callable[[Any], Any]) -> None:
    """Let something happen after each run of a program."""
    entry = step.variants[-1]
    right = entry.enter

    def enter(args: Any, kwargs: Any) -> Any:
        return after(right(args, kwargs))

    entry.enter = enter


def test_what_is_returned_is_looked_at() -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x * 2, x.sum().item()

    x = torch.randn(3)
    for wrong, words in (
        (lambda result: (result[0].double(), result[1]), r"the result\[0\] has dtype float64 and not float32"),
        (lambda result: (result[0], 0.5), r"the result\[1\] is 0.5 and not"),
        (lambda result: (result[0],), r"the result\[1\] is nothing and not "),
        (lambda result: (result[0].requires_grad_(), result[1]), r"the result\[0\] has requires_grad=True"),
        (lambda result: (result[0].add_(0), result[1]), r"the result\[0\] has version 1 and not 0"),
        (lambda result: (result[0][None].repeat(2, 1)[0:1], result[1]), r"has shape \(1, 3\) and not \(3,\)"),
    ):
        torch.compiler.reset()
        f(x), f(x)
        around(f, wrong)
        with pytest.raises(CheckError, match=words):
            f(x)


def test_what_is_given_is_looked_at() -> None:
    counts = {"calls": torch.zeros(2)}

    @torch.compile
    def f(x: Any, into: Any) -> Any:
        into.add_(x)
        counts["calls"].add_(1)

    x, into = torch.randn(3), torch.zeros(3)
    for wrong, words in (
        (lambda result: into.data.mul_(2), r"args\[1\] has other numbers in 3 of 3"),
        (lambda result: x._bump(), r"args\[0\] has version 1 and not 0"),
        (lambda result: counts["calls"].sub_(1), r"counts\['calls'\] has other numbers in 2 of 2 elements, by up to 1"),
    ):
        torch.compiler.reset()
        into.fill_(1)
        f(x, into), f(x, into)
        around(f, wrong)
        before = into.clone()
        with pytest.raises(CheckError, match=words):
            f(x, into)
        assert torch.equal(into, before + x)


def test_gradients_of_a_module_are_looked_at() -> None:
    model = torch.compile(nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)))
    for _ in range(3):
        model(torch.randn(5, 3)).sum().backward()
    walks = inspect.unwrap(model._compiled.variants[-1].enter).__globals__["graph"].__self__.walks
    scope = inspect.unwrap(walks[1].step).__globals__
    right = scope["column_sums"]
    scope["column_sums"] = lambda x: right(x) * 2
    with pytest.raises(CheckError, match=r"the gradients of the result\[\d\] has other numbers in"):
        model(torch.randn(5, 3))


def test_errors_are_compared() -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x.exp()

    x = torch.randn(3)
    f(x), f(x)
    scope_of(f)["exp"] = scope_of(f)["np"] = None
    around(f, lambda result: 1 / 0)
    with pytest.raises(CheckError, match="the error is ZeroDivisionError and not nothing"):
        f(x)


def test_what_is_too_much_runs_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visible, "MOST", 20)
    numbers = [float(k) for k in range(100)]

    @torch.compile
    def f(x: Any) -> Any:
        return x * numbers[3]

    f(torch.ones(2))
    around(f, lambda result: 1 / 0)
    with pytest.warns(UserWarning, match=r"is not checked, and runs as it is: it sees more than 20 objects"):
        assert f(torch.ones(2)).tolist() == [3, 3]
    assert f(torch.ones(2)).tolist() == [3, 3]  # and says so once


def test_everything_is_put_back() -> None:
    training = Training()
    training.step(*batch())
    generator = torch.Generator()
    box: dict[str, Any] = {"list": [1, [2]], "set": {3}, "array": np.ones(3)}
    own = [training, generator, box]

    def look() -> Any:
        return seen([training.state(), generator.get_state(), [box["list"], box["set"], box["array"]], vars(training)])

    before = look()
    put_back = visible.Visible(lambda: own, (), {}).keep()
    training.step(*batch())
    training.more = 3  # type: ignore[attr-defined]
    training.model[0].weight.grad = None
    training.model[0].weight.requires_grad_(False)
    generator.manual_seed(3)
    box["list"][1].append(5)
    box["list"].insert(0, 3)
    box["set"].clear()
    box["array"] *= 2
    box["new"] = 3
    assert difference(before, look())
    put_back()
    assert "new" not in box
    assert not difference(before, look())
