"""Several threads: on graphs of their own, one shared model, one shared graph; each lock has a test that needs it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch.autograd.graph import register_multi_grad_hook
from tinytorch.core import graph

THREADS = 6


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Let threads take turns at every chance."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work: Callable[[int], None], threads: int = THREADS) -> None:
    """Run `work(0)`, `work(1)` … in threads that start at one moment; an error in one is raised here."""
    barrier = threading.Barrier(threads)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        barrier.wait()
        try:
            work(number)
        except BaseException as error:  # handed on
            errors.append(error)

    started = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]


class Slow(torch.autograd.Function):
    """The identity; on the way back it lets other threads go first."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Return `x` as a tensor of its own."""
        return x.clone()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        """Return `g` later."""
        threading.Event().wait(0.0001)
        return g


class Turns:
    """Stands for an array: in the middle of `+=`, and before a sum, it lets other threads run."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __iadd__(self, other: Any) -> Turns:
        value = self.array.copy()
        threading.Event().wait(0.0005)
        self.array = value + other
        return self


def test_separate_graphs() -> None:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        for _ in range(20):
            x = torch.full((3,), float(number + 1), requires_grad=True)
            (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
            g.sum().backward()
        found[number] = x.grad.tolist()

    together(work)
    assert found == {number: [6.0 * (number + 1)] * 3 for number in range(THREADS)}


def test_one_model_sums_all_gradients() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    inputs = torch.randn(THREADS, 5, 3)
    model(inputs.reshape(-1, 3)).sum().backward()
    expected = [p.grad.clone() for p in model.parameters()]
    for _ in range(10):  # the first gradient of each parameter comes from one of the threads
        model.zero_grad()
        together(lambda number: model(inputs[number]).sum().backward())
        for p, g in zip(model.parameters(), expected, strict=True):
            np.testing.assert_allclose(p.grad.numpy(), g.numpy(), rtol=1e-4, atol=1e-5)


def test_first_gradients_do_not_replace_each_other(monkeypatch: Any) -> None:
    """What becomes `.grad` while another thread is about to do the same must not be lost."""
    x = torch.zeros(2, requires_grad=True)
    take = graph._copy

    def slowly(*args: Any) -> Any:
        threading.Event().wait(0.001)
        return take(*args)

    monkeypatch.setattr(graph, "_copy", slowly)
    together(lambda number: (x * 1.0).sum().backward())
    assert x.grad.tolist() == [THREADS] * 2


def test_sums_do_not_lose_terms() -> None:
    x = torch.zeros(2, requires_grad=True)
    (x * 1.0).sum().backward()
    x.grad._array = Turns(np.ones(2))
    together(lambda number: (x * 1.0).sum().backward())
    assert x.grad._array.array.tolist() == [THREADS + 1] * 2


def test_a_leaf_has_one_accumulator() -> None:
    for _ in range(200):
        x = torch.zeros(1, requires_grad=True)
        results: list[Any] = []
        together(lambda number, x=x, results=results: results.append(x * 1.0), 4)
        assert len({id(y.grad_fn.next_functions[0][0]) for y in results}) == 1


def test_a_leaf_has_one_accumulator_when_making_it_takes_time(monkeypatch: Any) -> None:
    make = graph._accumulator

    def slowly(leaf: Any) -> Any:
        threading.Event().wait(0.001)
        return make(leaf)

    monkeypatch.setattr(graph, "_accumulator", slowly)
    x = torch.zeros(1, requires_grad=True)
    results: list[Any] = []
    together(lambda number: results.append(x * 1.0))
    assert len({id(y.grad_fn.next_functions[0][0]) for y in results}) == 1


def test_hooks_of_a_leaf_are_made_once() -> None:
    for _ in range(100):
        x = torch.zeros(1, requires_grad=True)
        seen: list[int] = []
        together(lambda number, x=x, seen=seen: x.register_hook(lambda g: seen.append(number)), 4)
        x.sum().backward()
        assert sorted(seen) == [0, 1, 2, 3]


def test_one_graph_kept_for_several_backwards() -> None:
    x = torch.full((3,), 2.0, requires_grad=True)
    h = Slow.apply(x * x)
    h.retain_grad()
    seen: list[float] = []
    h.register_hook(lambda g: seen.append(g.sum().item()))
    y = (h * h).sum()

    def work(number: int) -> None:
        for _ in range(5):
            y.backward(retain_graph=True)

    together(work)
    assert x.grad.tolist() == [4 * 8.0 * 5 * THREADS] * 3
    assert h.grad.tolist() == [8.0 * 5 * THREADS] * 3
    assert seen == [24.0] * 5 * THREADS


def test_one_graph_that_the_first_backward_frees() -> None:
    x = torch.ones(3, requires_grad=True)
    y = Slow.apply(x.exp() * x).sum()
    outcomes: list[str] = []

    def work(number: int) -> None:
        try:
            y.backward()
            outcomes.append("done")
        except RuntimeError as error:
            assert "second time" in str(error)
            outcomes.append("freed")

    together(work)
    assert "done" in outcomes
    y = x.sin().sum()
    y.backward()  # all is usable still


def test_a_step_in_a_hook_sees_whole_gradients() -> None:
    """A hook that takes `.grad` away must not do so between another thread's sum and that thread's hook."""
    x = torch.zeros(2, requires_grad=True)
    total = np.zeros(2)
    missing: list[int] = []

    def step(p: Any) -> None:
        if p.grad is None:
            missing.append(1)
            return
        threading.Event().wait(0.0001)
        total[:] += p.grad.numpy()
        p.grad = None

    x.register_post_accumulate_grad_hook(step)

    def work(number: int) -> None:
        for _ in range(10):
            (x * 1.0).sum().backward()

    together(work)
    assert not missing
    assert total.tolist() == [10.0 * THREADS] * 2


def test_hooks_on_several_gradients_keep_walks_apart() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    seen: list[list[float]] = []
    register_multi_grad_hook((x, y), lambda gs: seen.append([g[0].item() for g in gs]))

    def work(number: int) -> None:
        for _ in range(10):
            (Slow.apply(x) * (number + 1) + y * 10 * (number + 1)).sum().backward()

    together(work)
    assert sorted(seen) == sorted([[number + 1.0, 10.0 * (number + 1)] for number in range(THREADS)] * 10)


def test_modes_belong_to_threads() -> None:
    found: dict[int, tuple[bool, bool]] = {}
    x = torch.ones(2, requires_grad=True)

    def work(number: int) -> None:
        with torch.set_grad_enabled(number % 2 == 0):
            for _ in range(50):
                y = x * 2
                assert y.requires_grad == (number % 2 == 0)
                if y.requires_grad:
                    torch.autograd.grad(y.sum(), x)
                assert torch.is_grad_enabled() == (number % 2 == 0)
        found[number] = (torch.is_grad_enabled(), torch.is_inference_mode_enabled())

    with torch.no_grad():
        together(work)
        assert not torch.is_grad_enabled()
    assert set(found.values()) == {(True, False)}


def test_creation_numbers_are_all_different() -> None:
    x = torch.ones(2, requires_grad=True)
    results: list[Any] = []

    def work(number: int) -> None:
        results.extend([(x * 2).exp() for _ in range(200)])

    together(work)
    created = {y.grad_fn.number for y in results}
    created |= {y.grad_fn.next_functions[0][0].number for y in results}
    assert len(created) == 2 * 200 * THREADS
