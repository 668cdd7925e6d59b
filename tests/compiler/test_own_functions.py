"""Users' `autograd.Function`s in compiled functions: forward and backward are parts of the programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tests.compiler.test_programs import seen
from tests.compiler.test_reading import Swish

LOG: list[Any] = []


class Settings:
    factor = 0.5


settings = Settings()
settings.factor = 0.5


class Products(torch.autograd.Function):
    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y, x + y, x > 0

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[2])
        ctx.save_for_backward(*inputs, output[0])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any, h: Any, _: Any) -> Any:
        x, y, z = ctx.saved_tensors
        of_x = g * y + h * z if ctx.needs_input_grad[0] else None
        return of_x, g * x + h if ctx.needs_input_grad[1] else None


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(False)
        return x.round(), x.floor()

    @staticmethod
    def backward(ctx: Any, g: Any, h: Any) -> Any:
        return g.clamp(-1, 1) if h is None else h


class Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, by: float) -> Any:
        ctx.by = by
        return x.view_as(x)

    @staticmethod
    def vjp(ctx: Any, g: Any) -> Any:
        return -ctx.by * g, None


class Logged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        LOG.append(tuple(g.shape))
        return g * 2


class OfNumPy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * torch.from_numpy(np.cos(ctx.saved_tensors[0].numpy()))


class Writing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, total: Any) -> Any:
        ctx.total = total
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        ctx.total.add_(g.sum())
        return g * 2, None


class Noisy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2 + torch.rand_like(g)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


class Configured(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * settings.factor


total = torch.zeros(1)


def products(x: Any) -> Any:
    a, b, positive = Products.apply(x * 2, x + 1)
    return a.sum() + (b * positive).sum()


def only_one_output(x: Any) -> Any:
    return Rounded.apply(x * 3)[0].sin() + Products.apply(x, x)[0]


def within(x: Any) -> Any:
    y = (Swish.apply(x * 2, 0.5) * Rounded.apply(x)[0]).sum()
    y.backward()
    return y.detach()


def grad_inside(x: Any) -> Any:
    (g,) = torch.autograd.grad(products(x), x)
    return g


def second_order_inside(x: Any) -> Any:
    y = Swish.apply(x * 2, 0.3).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return (g * g).sum() + y


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return Swish.apply(x, 2.0)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return Reversed.apply(g, 2.0)


#: Functions, and whether each is one program.
CASES: list[tuple[Callable[[Any], Any], bool]] = [
    (lambda x: Swish.apply(x * 2, 0.5) + 1, True),
    (lambda x: Swish.apply(Swish.apply(x, 0.5), 0.25), True),
    (products, True), (only_one_output, True), (within, True), (grad_inside, True), (second_order_inside, True),
    (lambda x: Reversed.apply(x * 2, 0.3).sin(), True), (lambda x: Nested.apply(x * 2), True),
    (lambda x: Configured.apply(x * 2).cos(), True), (lambda x: Logged.apply(x * 2).sin(), False),
    (lambda x: OfNumPy.apply(x * 2).sin(), False), (lambda x: Writing.apply(x * 2, total), False),
    (lambda x: Noisy.apply(x * 2), False), (lambda x: Doubled.apply(x * 2) * 3, False),
]  # fmt: skip


def outcome(function: Callable[[Any], Any]) -> Any:
    """Return all that can be seen of some calls and of their gradients."""
    LOG.clear()
    total.zero_()
    torch.manual_seed(0)
    found = []
    for _ in range(6):
        x = torch.randn(3, 4, requires_grad=True)
        y = function(x)
        if y.requires_grad:
            y.square().sum().backward()
        found.append((seen(y), seen(x), seen(x.grad), str(LOG), total.item(), torch.rand(1).item()))
    return found


@pytest.mark.parametrize(("function", "whole"), CASES)
def test_the_same_as_eager(function: Callable[[Any], Any], whole: bool) -> None:
    compiled = torch.compile(function)
    assert outcome(compiled) == outcome(function)
    if whole:
        assert len(compiled.variants) == 1 and compiled.variants[0].runs >= 4, compiled.explain()
    else:
        assert compiled.graph_breaks


def test_second_derivatives_of_the_result() -> None:
    compiled = torch.compile(lambda x: Swish.apply(x * 2, 0.3).sum())
    for _ in range(3):
        x = torch.randn(3, requires_grad=True)
        found = []
        for function in (compiled, lambda x: Swish.apply(x * 2, 0.3).sum()):
            (g,) = torch.autograd.grad(function(x), x, create_graph=True)
            found.append([g, *torch.autograd.grad(g.sum(), x)])
        assert all(map(torch.equal, *found))


def test_a_second_derivative_that_is_refused() -> None:
    compiled = torch.compile(products)
    x = torch.randn(3, requires_grad=True)
    for _ in range(3):
        (g,) = torch.autograd.grad(compiled(x).square(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="once_differentiable"):
            g.sum().backward()


def test_what_backward_reads_may_change_after_the_call() -> None:
    compiled = torch.compile(lambda x: Configured.apply(x).sum())
    try:
        for k in range(5):
            x = torch.ones(2, requires_grad=True)
            y = compiled(x)
            settings.factor = 0.5 + k
            y.backward()
            assert x.grad.tolist() == [0.5 + k] * 2
    finally:
        settings.factor = 0.5


def test_a_saved_tensor_that_is_written_to() -> None:
    def function(x: Any) -> Any:
        return Swish.apply(x, 0.5).sum()

    for called in (function, torch.compile(function)):
        for _ in range(3):
            x = torch.ones(2, requires_grad=True)
            y = called(x)
            with torch.no_grad():
                x.add_(1)
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                y.backward()


def test_backward_twice() -> None:
    compiled = torch.compile(lambda x: Swish.apply(x, 0.5).sum())
    for _ in range(3):
        y = compiled(torch.ones(2, requires_grad=True))
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()


def test_any_size() -> None:
    def function(x: Any) -> Any:
        return Swish.apply(x * 2, 0.5) + x.shape[0]

    compiled = torch.compile(function)
    for size in (2, 3, 4, 5, 6, 7):
        x = torch.randn(size, 3, requires_grad=True)
        compiled(x).square().sum().backward()
        ours, x.grad = x.grad, None
        function(x).square().sum().backward()
        assert torch.equal(ours, x.grad)
    assert compiled.recorded == 3


def test_errors_of_a_backward() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g, g

    compiled = torch.compile(lambda x: Wrong.apply(x))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="incorrect number of gradients"):
            compiled(torch.ones(2, requires_grad=True)).sum().backward()
