"""Backward outside of what is compiled: its results have a graph, which is one node with a program for each walk."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import tinytorch as torch
from tests.compiler.test_programs import Compile, difference, outcome, plain, tried
from tinytorch import nn
from tinytorch.nn import functional as F


def same(steps: Callable[[Compile], Iterator[Any]]) -> None:
    """Make sure that a program does the same compiled, and that what it compiles is."""
    made: list[Any] = []

    def compiled(function: Any) -> Any:
        made.append(torch.compile(function))
        return made[-1]

    assert not difference(outcome(steps, plain), outcome(steps, compiled))
    for each in made:
        assert re.search(r": [1-9]\d* programs? ran ", each.explain()), each.explain()


class Tied(nn.Module):
    """A language model in small: the weight of its embedding is that of its head; returns logits and loss."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.hidden = nn.Embedding(11, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens: Any, targets: Any) -> Any:
        x = self.embedding(tokens)
        logits = self.head(x + self.hidden(x).tanh())
        return logits, F.cross_entropy(logits.view(-1, 11), targets.view(-1))


def from_one_after_the_other(model: Any, logits: Any, loss: Any) -> Any:
    loss.backward()
    return tried(logits.sum().backward)


def from_one_that_keeps(model: Any, logits: Any, loss: Any) -> Any:
    loss.backward(retain_graph=True)
    (loss * logits.mean()).backward()
    return tried(loss.backward)


def from_one_that_was_written_to(model: Any, logits: Any, loss: Any) -> Any:
    with torch.no_grad():
        logits.mul_(2)
    return tried(loss.backward), tried(logits.sum().backward)


def twice(model: Any, logits: Any, loss: Any) -> Any:
    (g,) = torch.autograd.grad(loss, model.hidden.weight, create_graph=True)
    (g.square().sum() + logits.sum()).backward()
    return g


WALKS: list[Callable[[Any, Any, Any], Any]] = [
    lambda model, logits, loss: loss.backward(),
    lambda model, logits, loss: logits.square().sum().backward(),
    lambda model, logits, loss: (loss + logits.mean()).backward(),
    lambda model, logits, loss: torch.autograd.grad(loss, model.hidden.bias),
    from_one_after_the_other, from_one_that_keeps, from_one_that_was_written_to, twice,
]  # fmt: skip


@pytest.mark.parametrize("walk", WALKS)
def test_two_results_of_a_model_with_a_tied_weight(walk: Callable[[Any, Any, Any], Any]) -> None:
    def steps(compiled: Compile) -> Iterator[Any]:
        torch.manual_seed(0)
        model = Tied()
        run = compiled(model)
        for _ in range(4):
            model.zero_grad()
            logits, loss = run(torch.randint(0, 11, (4, 5)), torch.randint(0, 11, (4, 5)))
            yield walk(model, logits, loss), model, logits.detach(), loss.detach()
            with torch.no_grad():
                for p in model.parameters():
                    p -= 0.1 * p.grad if p.grad is not None else 0

    same(steps)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int]] = {
    "begins with a view": (lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 4), nn.ReLU()), (3, 4, 4), 1),
    "ends in a view": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Unflatten(1, (2, 4))), (3, 4), 1),
    "attention": (lambda: nn.MultiheadAttention(8, 2, batch_first=True), (2, 3, 8), 3),
    "encoder": (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True), (2, 3, 8), 1),
    "recurrent": (lambda: nn.LSTM(8, 4, batch_first=True), (2, 3, 8), 1),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str) -> None:
    make, shape, times = MODULES[name]

    def steps(compiled: Compile) -> Iterator[Any]:
        torch.manual_seed(0)
        model = make()
        run = compiled(model)
        for _ in range(4):
            x = torch.randn(shape, requires_grad=True)
            y = run(*[x] * times)
            (y if isinstance(y, torch.Tensor) else y[0]).square().sum().backward()
            yield y, x, model

    same(steps)


def a_row(b: Any, w: Any) -> Any:
    v = b.clone()
    v[0] = w
    return v.exp()


def rows_by_index(b: Any, w: Any) -> Any:
    v = b * 2
    v.T[torch.tensor([0, 1])] = w[:3]
    return v.sin(), v


def a_view_of_a_view(b: Any, w: Any) -> Any:
    v = torch.zeros(3, 4)
    v[1:].T.copy_(b[1:].T)
    v[2].sub_(w)
    v.select(1, 3).add_(w[0])
    return v * w


def a_mask(b: Any, w: Any) -> Any:
    v = b.clone()
    v[1:].masked_fill_(b[1:] > 0, w.sum())
    v[0].neg_().sub_(w)
    return v[0] * 3, v[1:] * 2


@pytest.mark.parametrize("function", [a_row, rows_by_index, a_view_of_a_view, a_mask])
def test_writes_to_views(function: Callable[..., Any]) -> None:
    def steps(compiled: Compile) -> Iterator[Any]:
        run = compiled(function)
        for k in range(4):
            b, w = torch.randn(3, 4, requires_grad=True), torch.randn(4, requires_grad=True)
            y = run(b, w)
            ys = [y] if isinstance(y, torch.Tensor) else list(y)
            sum([(x**2).sum() for x in ys[: k or None]]).backward(retain_graph=True)
            yield ys, b, w
            yield tried(ys[-1].sum().backward), b, w

    same(steps)


@pytest.mark.parametrize("hooks", [False, True])
def test_a_walk_comes_to_what_its_results_lead_to_alone(hooks: bool) -> None:
    """What comes before the function, and leads to other results, is neither walked through nor freed."""

    def steps(compiled: Compile) -> Iterator[Any]:
        v, w = torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)
        if hooks:
            v.register_hook(lambda g: g * 2)
        run = compiled(lambda x, y: (x.sin(), y.cos()))
        for _ in range(3):
            x, y = v.exp(), w.exp()
            a, b = run(x, y)
            a.sum().backward()
            yield v, w
            b.sum().backward(retain_graph=True)
            yield v, w
            yield tried(torch.autograd.grad, b.sum(), x), tried(a.sum().backward)
            a, b = run(v.exp(), w)  # a leaf, that the first walk does not come to
            (a.sum() * w.detach().sum()).backward()
            yield v, w
            (b.sum() * w.prod()).backward()
            yield v, w

    same(steps)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_leaf_that_a_walk_does_not_come_to_by_all_its_edges_gets_its_gradient(create_graph: bool) -> None:
    """A network that is called again and again with its own state; the walk begins at one result of the last call."""

    def steps(compiled: Compile) -> Iterator[Any]:
        w, v = torch.randn(3, 3, requires_grad=True), torch.randn(3, requires_grad=True)
        watched = torch.ones(1, requires_grad=True)
        watched.register_hook(lambda g: g)  # as long as there is a hook, walks look ahead
        run = compiled(lambda x, h: ((h @ w) * v, (x + h @ w).tanh()))
        for _ in range(3):
            h = torch.zeros(3)
            for _ in range(3):
                y, h = run(torch.randn(3), h)
            y.sum().backward(create_graph=create_graph)
            yield w, v

    same(steps)


@pytest.mark.parametrize("what", ["result", "input"])
def test_what_backward_needs_and_was_written_to_is_an_error(what: str) -> None:
    run = torch.compile(lambda x: x.exp() * x)
    for _ in range(3):
        x = torch.randn(3)
        leaf = x.clone().requires_grad_()
        y = torch.compile(torch.exp)(leaf) if what == "result" else run(leaf)
        with torch.no_grad():
            (y if what == "result" else leaf).mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_a_gradient_with_a_graph_is_not_lost() -> None:
    def steps(compiled: Compile) -> Iterator[Any]:
        def f(x: Any, w: Any) -> Any:
            (w * w).sum().backward()
            w.grad[0] = x.sum()
            return x * 2

        run = compiled(f)
        for _ in range(4):
            x, w = torch.randn(2, requires_grad=True), torch.randn(3, requires_grad=True)
            yield run(x, w), w.grad.requires_grad, torch.autograd.grad(w.grad.sum(), x)

    assert not difference(outcome(steps, plain), outcome(steps, torch.compile))


def test_the_third_gradient_is_added_in_the_layout_of_the_first_two() -> None:
    """The layout of a sum decides the order of the sums that follow."""

    def f(x: Any, b: Any, w: Any) -> Any:
        h, q = x + b, x * 3
        u = (h * w).sum()
        v = (h.T.sin() * w.T.contiguous()).sum()
        return (h.T.cos() * w.T.contiguous()).sum() * u + v + (q * q).sum()

    compiled = torch.compile(f)
    for seed in range(4):
        found = []
        for called in (f, compiled):
            torch.manual_seed(seed)
            x, b, w = torch.randn(97, 8).requires_grad_(), torch.randn(8).requires_grad_(), torch.randn(97, 8)
            called(x, b, w).backward()
            found.append((x.grad.numpy().tobytes(), b.grad.numpy().tobytes()))
        assert found[0] == found[1]
    assert compiled.variants[0].runs == 3
