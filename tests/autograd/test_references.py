"""Whether `.grad` takes a gradient over or copies it: by Python's counts of references, if these can be relied on."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import tinytorch as torch
from tests.autograd.test_random_programs import STEPS, run
from tests.conftest import seeded
from tests.data.programs import plain
from tinytorch.autograd.references import count_own_references
from tinytorch.core import graph
from tinytorch.core.graph import AccumulateGrad

UNKNOWN = (-1, -1)
COUNTED = hasattr(sys, "getrefcount") and getattr(sys, "_is_gil_enabled", lambda: True)()
needs_counts = pytest.mark.skipif(not COUNTED, reason="this Python's counts are not relied on")


class Always:
    """A number of references that any count is."""

    def __eq__(self, other: object) -> bool:
        return True


def set_own(monkeypatch: pytest.MonkeyPatch, own: tuple[Any, Any]) -> None:
    monkeypatch.setattr(AccumulateGrad, "own_references", own)


def passed_on(look: Callable[[Any], Any]) -> tuple[np.ndarray[Any, Any], int]:
    """Return `.grad` of a leaf as an array, and where the gradient lay that arrived; `look` sees that one."""
    places = []

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            g = g * 2
            places.append(g.data_ptr())
            look(g)
            return g

    x = torch.zeros(3, requires_grad=True)
    Doubled.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    return x.grad.numpy(), places[0]


KEPT: list[Any] = []
HOLDERS = {
    "the tensor": KEPT.append,
    "its array": lambda g: KEPT.append(g.numpy()),
    "a view": lambda g: KEPT.append(g[1:]),
    "a view of its array": lambda g: KEPT.append(g.numpy()[:2]),
    "the tensor, twice": lambda g: KEPT.extend([g, g]),
    "the tensor and its array": lambda g: KEPT.extend([g, g.numpy()]),
    "the tensor, thrice": lambda g: KEPT.append((g, g, g)),
}


def assert_what_is_kept_is_copied() -> None:
    for name, hold in HOLDERS.items():
        grad, place = passed_on(hold)
        KEPT.clear()
        assert grad.ctypes.data != place, name


@needs_counts
def test_a_gradient_that_nobody_holds_is_taken_over() -> None:
    passed_on(lambda g: None)
    assert AccumulateGrad.own_references == count_own_references() != UNKNOWN
    for _ in range(100):  # also by the time that Python has specialised its instructions
        grad, place = passed_on(lambda g: None)
        assert grad.ctypes.data == place


def test_a_gradient_that_somebody_holds_is_copied() -> None:
    assert_what_is_kept_is_copied()


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_it_would_be_shared_without_the_counts(hold: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the tests above can fail."""
    set_own(monkeypatch, (Always(), Always()))
    grad, place = passed_on(hold)
    KEPT.clear()
    assert grad.ctypes.data == place


def test_unknown_counts_are_no_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    set_own(monkeypatch, UNKNOWN)
    for look in (lambda g: None, *HOLDERS.values()):
        grad, place = passed_on(look)
        KEPT.clear()
        assert grad.ctypes.data != place


NUMBERS = itertools.count(1)
UNRELIABLE: dict[str, Callable[[Any], int]] = {
    "none": lambda x: 0,
    "immortal": lambda x: 4,
    "growing": lambda x: next(NUMBERS),
    "twice": lambda x: 2 * sys.getrefcount(x),
    "a debugger's": lambda x: sys.getrefcount(x) + 5,
    "all alike": lambda x: min(sys.getrefcount(x), 3),
}


@pytest.mark.skipif(not hasattr(sys, "getrefcount"), reason="this Python has none")
@pytest.mark.parametrize("count", UNRELIABLE.values(), ids=UNRELIABLE)
def test_counts_that_do_not_follow_are_not_relied_on(count: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "_references", count)
    before = AccumulateGrad.own_references
    assert count_own_references() == UNKNOWN
    assert AccumulateGrad.own_references == before


@needs_counts
@pytest.mark.parametrize("borrowed", [1, 2, 3, 4])
def test_other_counts_are_found(borrowed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a Python whose variables own fewer of the references."""
    monkeypatch.setattr(graph, "_references", lambda x: sys.getrefcount(x) - borrowed)
    own = count_own_references()
    set_own(monkeypatch, own)
    assert_what_is_kept_is_copied()
    grad, place = passed_on(lambda g: None)
    assert (grad.ctypes.data == place) is (own != UNKNOWN)


def test_threads_that_run_at_the_same_time_are_not_relied_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    assert count_own_references() == UNKNOWN


def with_copies(program: Callable[[], Any]) -> Any:
    with pytest.MonkeyPatch.context() as monkeypatch:
        set_own(monkeypatch, UNKNOWN)
        return program()


@seeded
@settings(max_examples=max(100, settings.default.max_examples), deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_random_programs_give_the_same_both_ways(steps: Any) -> None:
    taken, copied = run(torch, steps), with_copies(lambda: run(torch, steps))
    assert repr(plain(taken)) == repr(plain(copied))  # (NaN is not equal to itself)


def training() -> list[Any]:
    """Return what a network has for gradients and weights in a few steps, some of which add to the last gradients."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(48, 5), torch.nn.LayerNorm(5),
    )  # fmt: skip
    seen: list[Any] = []
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    for step in range(6):
        if step % 3 == 0:
            optimizer.zero_grad()
        out = model(torch.randn(4, 1, 6, 6))
        (out * out * model[4].weight.sum()).sum().backward()
        seen += [p.grad.tolist() for p in model.parameters()]
        optimizer.step()
    return seen


def test_training_gives_the_same_both_ways() -> None:
    assert training() == with_copies(training)
