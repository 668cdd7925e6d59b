"""First and second derivatives through writes in place: to tensors, views and views of views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tinytorch as torch
from tinytorch.autograd import gradcheck, gradgradcheck


def assigned(x: Any, y: Any) -> Any:
    z = x * 2
    z[1] = y[0] * y[1]
    z[:, 1:] *= y[:, :2]
    return z * z


def copied(x: Any, y: Any) -> Any:
    z = torch.zeros(2, 3, dtype=torch.float64)
    z.copy_(x)
    z[0].copy_(y[1])
    return z.exp()


def filled(x: Any, y: Any) -> Any:
    z = x * y
    z[0].fill_(y.sum())
    z[1, 1:].zero_()
    return z * x


def views_of_views(x: Any, y: Any) -> Any:
    z = (x * 1).reshape(6)
    z.view(2, 3).t()[1].mul_(y[:, 0])
    z.view(3, 2)[0].add_(y[0, :2]).sin_()
    return z * z


def transposed_base(x: Any, y: Any) -> Any:
    z = (x * y).t().clone()
    w = z.t()
    w[1].mul_(y[0])
    return z.tanh() * w.t()


def read_before_and_after(x: Any, y: Any) -> Any:
    z = x * 1
    row = z[0]
    before = row * 2  # saves nothing of row
    z.mul_(y)
    return before * row + z.sum(0)


def masked(x: Any, y: Any) -> Any:
    z = x * 1
    z[x > 0] = y.sum()
    z[torch.tensor([1]), torch.tensor([2])] = y[0, 0]
    z.masked_fill_(y > 0.5, 0.25)
    return z * z


def clamped(x: Any, y: Any) -> Any:
    z = x * y
    z.clamp_(-0.5, 0.5).add_(y, alpha=3).div_(2 + y * y)
    return z


WRITES = [
    assigned,
    copied,
    filled,
    views_of_views,
    transposed_base,
    read_before_and_after,
    masked,
    clamped,
]


@pytest.mark.parametrize("write", WRITES, ids=lambda each: each.__name__)
def test_derivatives_through_writes(write: Callable[[Any, Any], Any]) -> None:
    torch.manual_seed(3)
    x, y = (torch.randn(2, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert gradcheck(write, (x, y))
    assert gradgradcheck(write, (x, y))


def test_random_results_of_tensors_have_zero_gradients() -> None:
    p = torch.full((3,), 0.5, requires_grad=True)
    torch.bernoulli(p).sum().backward()
    assert p.grad.tolist() == [0, 0, 0]
    mean = torch.zeros(3, requires_grad=True)
    torch.normal(mean, torch.ones(3)).sum().backward()
    assert mean.grad.tolist() == [0, 0, 0]


def test_floor_divide_has_no_derivative() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        (x // 2).sum().backward()
