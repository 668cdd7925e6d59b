"""What packages do around their operations: caches, decorators, iterators, modules created in a call."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tests.compiler.test_programs import seen
from tinytorch import nn
from tinytorch.utils._pytree import tree_flatten, tree_unflatten


class Recipe:
    def __init__(self, order: str) -> None:
        self.order = order


@functools.lru_cache(16)
def recipe(order: str) -> Recipe:
    return Recipe(order)


@functools.lru_cache(16)
def rows(of: Recipe, shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape if of.order == "kept" else shape[::-1]


class PatternError(ValueError):
    pass


def arranged(x: Any, order: str) -> Any:
    try:
        found = recipe(order)
        return x.reshape(rows(found, tuple(x.shape)))
    except PatternError as error:
        raise PatternError(f"{order}: {error}") from None


def maybe(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def inner(x: Any, *args: Any, **kwargs: Any) -> Any:
        return None if x is None else function(x, *args, **kwargs)

    return inner


class Scaled(nn.Module):
    def __init__(self, inner: nn.Module, by: float) -> None:
        super(Scaled, self).__init__()  # noqa: UP008
        self.inner = inner
        self.by = by

    def forward(self, x: Any) -> Any:
        return self.inner(x) * self.by


linear = nn.Linear(4, 4)
layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
activations = [nn.Tanh(), nn.Sigmoid(), nn.ReLU()]


def cached(x: Any) -> Any:
    return arranged(x, "kept").sum(0) + arranged(x, "turned").sum(1) if x.shape[0] == x.shape[1] else x


def decorated(x: Any) -> Any:
    return maybe(F.gelu)(maybe(operator.mul)(x, 2)) + maybe(torch.add)(x, 1)


def pairs_of_modules(x: Any) -> Any:
    for k, (layer, activation) in enumerate(list(zip(layers, activations, strict=True))):
        x = activation(layer(x)) * (k + 1)
    for _, layer in zip(reversed(range(3)), layers, strict=True):
        x = layer(x)
    return x


def mapped(x: Any) -> Any:
    a, b = map(lambda t: t * 2 + x.sum(), x.chunk(2, dim=1))
    kept = filter(lambda t: t is not None, [a, None, b])
    return functools.reduce(lambda s, t: s + t, kept, 1.0)


def iterated(x: Any) -> Any:
    steps = iter([x, x + 1])
    first, second, third = next(steps), next(steps), next(steps, None)
    for a, b in itertools.product([1, 2], (3,)):
        first = first * a + b
    for each in itertools.chain([x], (second,)):
        first = operator.add(first, each)
    return first if third is None else third


def created_in_the_call(x: Any) -> Any:
    return nn.Sequential(*layers[1:])(x) + Scaled(linear, 0.5)(x) + Scaled(nn.Tanh(), 2.0)(x)


def trees(x: Any) -> Any:
    leaves, structure = tree_flatten({"a": [x, x * 2], "b": x.sin()})
    restored = tree_unflatten([leaf + 1 for leaf in leaves], structure)
    return restored["a"][0] * restored["b"] + restored["a"][1]


def labels(x: Any) -> Any:
    return F.one_hot(x.argmax(1), x.shape[1]) * x


def a_slice_is_new(x: Any) -> Any:
    parts = [x, x * 2, x * 3][1:]
    parts[0] = parts[0].sin()
    return parts[0] + parts[1]


CASES = [
    cached, decorated, pairs_of_modules, mapped, iterated, created_in_the_call, trees, labels, a_slice_is_new,
]  # fmt: skip


@pytest.mark.parametrize("function", CASES)
def test_one_program(function: Callable[[Any], Any]) -> None:
    compiled = torch.compile(function)
    for seed in range(5):
        torch.manual_seed(seed)
        x, y = [z.requires_grad_() for z in [torch.randn(4, 4)] * 2]
        ours, expected = compiled(x), function(y)
        assert seen(ours) == seen(expected)
    assert len(compiled.variants) == 1 and compiled.variants[0].runs == 4, compiled.explain()


@pytest.mark.parametrize("function", [each for each in CASES if each is not cached])
def test_any_size(function: Callable[[Any], Any]) -> None:
    compiled = torch.compile(function)
    with torch.no_grad():
        for size in (2, 3, 5, 4, 7, 6):
            x = torch.randn(size, 4)
            assert torch.equal(compiled(x), function(x))
    assert compiled.recorded <= 3, compiled.explain()


def test_the_argument_of_a_cached_function_is_guarded() -> None:
    """Also where a part of a function gets the object as an argument."""

    def function(x: Any, of: Recipe) -> Any:
        print(end="")
        return x.reshape(rows(of, tuple(x.shape))) + 1

    compiled = torch.compile(function)
    x = torch.randn(2, 3)
    for k in range(12):
        of = recipe("kept" if k % 3 else "turned")
        assert torch.equal(compiled(x, of), function(x, of))


def test_a_step_of_training_that_catches_an_error_of_its_own() -> None:
    found = []
    for wrap in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        parameter = nn.Parameter(torch.randn(4))
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def step(x: Any, parameter: Any = parameter, optimizer: Any = optimizer) -> Any:
            optimizer.zero_grad()
            loss = arranged(x * parameter, "kept").square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        called = wrap(step)
        found.append([[called(torch.ones(2, 4)).item() for _ in range(4)], parameter.tolist()])
    assert found[0] == found[1]
    assert called.variants[0].runs == 3
