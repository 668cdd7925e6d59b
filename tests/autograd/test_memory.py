"""Memory: tensors die when the graph dies, without the garbage collector, and backward frees as it walks."""

from __future__ import annotations

import gc
import tracemalloc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import tinytorch as torch

MEGABYTE = 2**20
LENGTH = 20


@pytest.fixture(autouse=True)
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


def live() -> float:
    """Return the megabytes that are allocated, NumPy's arrays among them."""
    return tracemalloc.get_traced_memory()[0] / MEGABYTE


def chain(x: Any, at_the_middle: Any) -> Any:
    """Return the sum of 20 tanh, each of which saves an output of a megabyte."""
    for k in range(LENGTH):
        x = x.tanh()
        if k == LENGTH // 2:
            x.register_hook(at_the_middle)
    return x.sum()


@pytest.mark.parametrize("retain", [False, True])
def test_backward_frees_what_nodes_saved_as_it_walks(retain: bool) -> None:
    x = torch.ones(MEGABYTE // 4, requires_grad=True)
    middle: list[float] = []
    before = live()
    loss = chain(x, lambda g: middle.append(live()))
    recorded = live() - before
    assert LENGTH <= recorded < LENGTH + 1
    tracemalloc.reset_peak()
    loss.backward(retain_graph=retain)
    peak = tracemalloc.get_traced_memory()[1] / MEGABYTE - before
    held = middle[0] - before
    after = live() - before
    assert peak < LENGTH + 6  # a few gradients at a time
    if retain:
        assert held > LENGTH and after > LENGTH
    else:
        assert held < LENGTH / 2 + 5 and after < 1.1  # x.grad
    del loss
    assert live() - before < 1.1


def everything(x: Any, retain_grad: bool = True) -> Any:
    """Return a scalar of a graph with views, writes, hooks, a Function, what was saved by hooks, and tangents."""

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2 * (ctx.saved_tensors[0] == ctx.saved_tensors[0])

    y = (x * 3).exp() * 2
    if retain_grad:
        y.retain_grad()
    y.register_hook(lambda g: g * 2)
    y[1:3] = x[:2]
    first, second = y.split(len(x) // 2)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        z = Double.apply(first * second).tanh()
    z = z * 1
    z.view(-1)[0].mul_(2)
    return z.sum() + y.log_softmax(0).max()


def use_backward(x: Any) -> None:
    everything(x).backward()


def use_nothing(x: Any) -> None:
    everything(x)


def use_higher_orders(x: Any) -> None:
    # (Not `retain_grad`: a `.grad` that has a graph is part of a cycle, of which PyTorch warns too.)
    (g,) = torch.autograd.grad(everything(x, retain_grad=False), x, create_graph=True)
    (h,) = torch.autograd.grad((g * g).sum(), x, create_graph=True)
    h.sum()


def use_jacobians(x: Any) -> None:
    torch.autograd.functional.jacobian(lambda t: (t * t).exp(), x[:3])
    torch.func.hessian(lambda t: (t.sin() * t).sum())(x.detach()[:3])


def use_tangents(x: Any) -> None:
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual((dual * dual).exp()).tangent
        torch.autograd.grad(tangent.sum(), x)


def use_checkpoint(x: Any) -> None:
    torch.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False).sum().backward()


def use_anomaly_detection(x: Any) -> None:
    with torch.autograd.set_detect_anomaly(True):
        (x * x).exp().sum().backward()


@pytest.mark.parametrize(
    "use",
    [use_backward, use_nothing, use_higher_orders, use_jacobians, use_tangents, use_checkpoint, use_anomaly_detection],
)
def test_nothing_is_left_without_the_collector(use: Any) -> None:
    x = torch.linspace(-1, 1, 100_000, requires_grad=True)
    use(x)  # what is made once
    x.grad = None
    before = live()
    for _ in range(3):
        use(x)
        x.grad = None
    assert live() - before < 0.2


def test_an_intermediate_dies_when_its_last_user_does() -> None:
    x = torch.ones(10, requires_grad=True)
    y = x.exp()
    z = y * y
    dead = weakref.ref(y)
    del y
    assert dead() is not None  # saved for z's backward
    del z
    assert dead() is None
