"""What packages do around their operations: caches, decorators, iterators, modules created in a call."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable
from typing import Any

import pytest
from tinytorch.utils._pytree import tree_flatten, tree_unflatten

import tinytorch as torch
import tinytorch.nn.functional as F
from tests.compiler.test_programs import seen
from tinytorch import nn


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


class Counting(nn.Module):
    """Counts its calls, in numbers that it does not use."""

    calls = 0

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.steps, self.seen, self.left, self.calls = 0, 0.0, 9, 0

    def forward(self, x: Any) -> Any:
        self.steps += 1
        self.seen = self.seen + 0.5
        self.left -= 2
        self.calls += 1
        self.calls += 1
        return self.linear(x).relu()


class UsingItsCount(Counting):
    def forward(self, x: Any) -> Any:
        self.steps += 1
        return self.linear(x) * self.steps


def counting(kind: type[Counting], wrap: Callable[[Any], Any], sizes: list[int], second: bool) -> Any:
    """Return what can be seen of some calls, of their gradients and of the module, and the compiled module."""
    torch.manual_seed(0)
    module = kind()
    called, found = wrap(module), []
    for size in sizes:
        x = torch.randn(size, 4, requires_grad=True)
        y = called(x)
        (g,) = torch.autograd.grad(y.square().sum(), x, create_graph=second)
        if second:
            g.sum().backward()
        numbers = {key: value for key, value in vars(module).items() if type(value) in (int, float)}
        found.append((seen(y), seen(g.detach()), seen(x.grad), numbers))
    return found, called


@pytest.mark.parametrize("kind", [Counting, UsingItsCount])
@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("sizes", [[2] * 6, [2, 3, 4, 5, 6, 7]])
def test_numbers_that_are_counted_up(kind: type[Counting], second: bool, sizes: list[int]) -> None:
    expected, _ = counting(kind, lambda module: module, sizes, second)
    found, compiled = counting(kind, torch.compile, sizes, second)
    assert found == expected
    assert bool(compiled._compiled.graph_breaks) is (kind is UsingItsCount), compiled.explain()


def test_a_step_that_begins_anew_after_zero_grad() -> None:
    """An error that is caught, and a truth value, may differ after gradients were set to None."""

    def steps(wrap: Callable[[Any], Any], wrong: tuple[int, ...]) -> Any:
        torch.manual_seed(0)
        parameter = nn.Parameter(torch.randn(4, 3))
        optimizer = torch.optim.SGD([parameter], lr=0.1)

        def step(x: Any, rows: Any) -> Any:
            optimizer.zero_grad()
            try:
                y = parameter[rows]
            except IndexError:
                y = parameter.sum(0)[None] * 2
            if (y * x > 100).any():
                y = y / 100
            loss = (y * x).square().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        called, found = wrap(step), []
        for k in range(9):
            parameter.grad = torch.ones(4, 3) if k % 2 else None
            loss = called(torch.full((3,), 1e3 if k == 6 else 1.0), torch.tensor([k % 4, 9 if k in wrong else 1]))
            found.append((loss.item(), parameter.tolist(), seen(parameter.grad)))
        return found, called

    for wrong in ((), (3,), (2, 5, 7)):
        expected, _ = steps(lambda function: function, wrong)
        found, compiled = steps(torch.compile, wrong)
        assert found == expected
        assert compiled.variants[0].runs >= 3


def test_checkpoints() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.Linear(4, 4))

    def function(x: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(model, x * 2, use_reentrant=False).sin()

    compiled = torch.compile(function)
    for seed in range(4):
        found = []
        for called in (compiled, function):
            torch.manual_seed(seed)
            x = torch.randn(3, 4, requires_grad=True)
            y = called(x)
            model.zero_grad()
            y.sum().backward()
            found.append([seen(y), seen(x.grad), [seen(p.grad) for p in model.parameters()], torch.rand(1).item()])
        assert found[0] == found[1]
    assert compiled.variants[0].runs == 3


def test_a_call_of_a_class_of_its_own() -> None:
    class Checked(nn.Module):
        def __call__(self, x: Any, **kwargs: Any) -> Any:
            return super().__call__(x, **kwargs) + 1

        def forward(self, x: Any, by: float = 2.0) -> Any:
            return x * by

    module = Checked()
    compiled = torch.compile(lambda x: module(x, by=3.0))
    for _ in range(3):
        x = torch.randn(3)
        assert torch.equal(compiled(x), x * 3.0 + 1)
    assert compiled.variants[0].runs == 2


def test_a_view_of_memory_that_the_call_fills() -> None:
    def function(x: Any) -> Any:
        filled = torch.empty(3, 4)
        filled[0], filled[1], filled[2] = x, x * 2, x.sin()
        return filled[-1], filled[1:]

    compiled, kept = torch.compile(function), []
    for k in range(5):
        x = torch.full((4,), float(k))
        kept.append((compiled(x), function(x)))
        kept[-1][0][0].add_(k)
        kept[-1][1][0].add_(k)
    assert all(seen(ours) == seen(expected) for ours, expected in kept)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("function", "whole"),
    [
        (lambda x, y: x * 2 + y.sin(), True), (lambda x, y: x * 3 + y * (x * 3), True),
        (lambda x, y: x.detach().add_(1) * y, False), (lambda x, y: y.view(-1), False),
    ],
)  # fmt: skip
def test_inputs_on_the_same_memory(function: Callable[[Any, Any], Any], whole: bool, requires_grad: bool) -> None:
    """The program is for calls whose inputs share memory, or for those whose inputs do not."""
    compiled = torch.compile(function)
    for k in range(9):
        found = []
        for called in (compiled, function):
            torch.manual_seed(k)
            x = torch.randn(2, 3, requires_grad=requires_grad)
            y = torch.randn(2, 3) if k in (3, 5) else x.detach()
            result = called(x, y)
            if result.requires_grad:
                result.sum().backward()
            found.append((seen(result), seen(x), seen(y), result._base is y))
        assert found[0] == found[1]
    assert not whole or sum(variant.runs for variant in compiled.variants) == 7, compiled.explain()


class Keeping(nn.Module):
    """Keeps what it has computed in lists and dictionaries."""

    def __init__(self, reads: bool) -> None:
        super().__init__()
        self.linear, self.reads = nn.Linear(4, 4), reads
        self.steps: list[Any] = [torch.ones(1)]
        self.about: dict[str, Any] = {}
        self.pair = (1, 2)

    def forward(self, x: Any) -> Any:
        if self.reads:
            x = x * self.steps[0].sum()
        self.steps = []
        self.steps.append(x)
        for _ in range(2):
            x = self.linear(x).tanh()
            self.steps.append(x)
        self.about = {"sum": x.sum(), "count": 3}
        self.pair = (x, x * 2)
        return x


@pytest.mark.parametrize("reads", [False, True])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_containers_that_become_attributes(reads: bool, requires_grad: bool) -> None:
    outcomes = []
    for wrap in (lambda module: module, torch.compile):
        torch.manual_seed(0)
        module = Keeping(reads)
        called, found = wrap(module), []
        for _ in range(6):
            with torch.set_grad_enabled(requires_grad):
                x = torch.randn(2, 4)
                y = called(x)
            kept = [*map(seen, module.steps), seen(module.about["sum"]), module.about["count"], *map(seen, module.pair)]
            found.append((seen(y), kept, module.steps[-1] is y, module.pair[0] is y, module.steps[0] is x))
            if requires_grad:
                (y.sum() + module.pair[1].sum()).backward()
                found.append(seen(module.linear.weight.grad))
        outcomes.append(found)
    assert outcomes[0] == outcomes[1]
    if not (reads or requires_grad):
        assert called._compiled.variants[0].runs == 5, called.explain()


class Scale:
    factor = 2.0

    def __init__(self, x: Any) -> None:
        self.x = x

    def scaled(self) -> Any:
        return self.x * self.factor


def test_attributes_of_the_class_of_a_new_object() -> None:
    compiled = torch.compile(lambda x: Scale(x).scaled() + 1)
    try:
        for k in range(6):
            Scale.factor = float(k // 2)
            x = torch.randn(3)
            assert torch.equal(compiled(x), x * Scale.factor + 1)
    finally:
        Scale.factor = 2.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone().clamp_(max=3) + 1, lambda x: x.clamp(max=3.5), lambda x: x.clone().clamp_(1, 4) * 2,
        lambda x: x * 2 if isinstance(x, int | float | torch.Tensor) else x,
    ],
)  # fmt: skip
def test_numbers_that_bound_integers_and_unions_of_types(function: Callable[[Any], Any]) -> None:
    compiled = torch.compile(function)
    for k in range(3):
        x = torch.arange(6) + k
        assert seen(compiled(x)) == seen(function(x))
    assert compiled.variants[0].runs == 2
