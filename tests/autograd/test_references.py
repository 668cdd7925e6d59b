"""Whether `.grad` takes a gradient over or copies it: a walk in C takes over what nobody else refers to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch.core.native import library

KEPT: list[Any] = []


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


@pytest.mark.skipif(library is None, reason="without the native library gradients are copied")
def test_a_gradient_that_nobody_holds_is_taken_over() -> None:
    # (In a process of its own: while any hook exists, Python walks.)
    program = "from tests.autograd.test_references import passed_on\n"
    program += "for _ in range(9): grad, place = passed_on(lambda g: None); assert grad.ctypes.data == place"
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    "hold",
    [
        KEPT.append,
        lambda g: KEPT.append(g.numpy()),
        lambda g: KEPT.append(g[1:]),
        lambda g: KEPT.append(g.numpy()[:2]),
        lambda g: KEPT.extend([g, g]),
        lambda g: KEPT.extend([g, g.numpy()]),
        lambda g: KEPT.append((g, g, g)),
    ],
    ids=["tensor", "array", "view", "view of the array", "tensor twice", "tensor and array", "tensor thrice"],
)
def test_a_gradient_that_somebody_holds_is_copied(hold: Any) -> None:
    grad, place = passed_on(hold)
    KEPT.clear()
    assert grad.ctypes.data != place


def training(walk_in_python: bool) -> list[Any]:
    """Return what a network has for gradients and weights in a few steps, some of which add to the last gradients."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.ReLU(), torch.nn.Flatten(),
        torch.nn.Linear(48, 5), torch.nn.LayerNorm(5),
    )  # fmt: skip
    hooked = torch.zeros(1, requires_grad=True)
    handle = hooked.register_hook(lambda g: g) if walk_in_python else None  # (while there are hooks)
    seen: list[Any] = []
    optimizer = torch.optim.SGD(model.parameters(), 0.001, momentum=0.9)
    for step in range(6):
        if step % 3 == 0:
            optimizer.zero_grad()
        out = model(torch.randn(4, 1, 6, 6))
        (out * out * model[4].weight.sum()).sum().backward()
        seen += [p.grad.tolist() for p in model.parameters()]
        optimizer.step()
    del handle
    return seen


def test_training_gives_the_same_both_ways() -> None:
    assert training(True) == training(False)
