"""Loops along a dimension (`torch._higher_order_ops`) against PyTorch."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

from tests.same import compared, same_as_pytorch


def of(torch: Any, name: str) -> Any:
    return getattr(importlib.import_module(f"{torch.__name__}._higher_order_ops"), name)


def matrix(torch: Any) -> Any:
    return torch.arange(6.0).view(3, 2)


def affine(first: Any, second: Any) -> Any:
    """Compose two maps `x -> a x + b`, by which a linear recurrence is scanned."""
    return first[0] * second[0], first[1] * second[0] + second[1]


SCANS = [
    lambda torch, f: f(lambda s, x: (s + x, s * 2), torch.zeros(2), matrix(torch)),
    lambda torch, f: f(lambda s, x: (s + x, s * 2), torch.zeros(3), matrix(torch), dim=1),
    lambda torch, f: f(lambda s, x: (s + x, s * 2), torch.zeros(2), matrix(torch), dim=-2, reverse=True),
    lambda torch, f: f(
        lambda s, x: ({"a": s["a"] + x[0]}, [x[0].sin(), x[1].sum()]), {"a": torch.zeros(2)},
        (matrix(torch), torch.ones(3, 4)),
    ),
    lambda torch, f: f(lambda s, x: (s, x), torch.zeros(2), []),
    lambda torch, f: f(lambda s, x: (s, x), torch.zeros(2), torch.zeros(0, 2)),
    lambda torch, f: f(lambda s, x: (s, x), torch.zeros(2), matrix(torch), dim=3),
    lambda torch, f: f(lambda s, x: (s, x), None, matrix(torch)),
    lambda torch, f: f(lambda s, x: (s, x), 3, matrix(torch)), lambda torch, f: f(3, torch.zeros(2), matrix(torch)),
]  # fmt: skip
ASSOCIATIVE = [
    lambda torch, f: f(torch.add, matrix(torch), 0, combine_mode="generic"),
    lambda torch, f: f(lambda a, b: a + b, matrix(torch), -1, True, "generic"),
    lambda torch, f: f(lambda a, b: a @ b, torch.arange(20.0).view(5, 2, 2), 0, combine_mode="generic"),
    lambda torch, f: f(affine, (matrix(torch), matrix(torch).cos()), 0, combine_mode="generic"),
    lambda torch, f: f(torch.add, matrix(torch), 0),
    lambda torch, f: f(torch.add, matrix(torch), 2, combine_mode="generic"),
    lambda torch, f: f(torch.add, matrix(torch), 1.5, combine_mode="generic"),
    lambda torch, f: f(torch.add, matrix(torch)[:0], 0, combine_mode="generic"),
    lambda torch, f: f(torch.add, matrix(torch), 0, combine_mode="all"),
    lambda torch, f: f(3, matrix(torch), 0, combine_mode="generic"),
    lambda torch, f: f(affine, (matrix(torch), 3), 0, combine_mode="generic"),
]
MAPS = [
    lambda torch, f: f(lambda x, y: x + y, matrix(torch), torch.ones(2)),
    lambda torch, f: f(lambda x, y: [x[0].sum(), {"b": x[1] * y}], [matrix(torch), torch.ones(3)], torch.tensor(2.0)),
    lambda torch, f: f(lambda x: x + 1, matrix(torch)[:0]),
]
FOREACH = [
    lambda torch, f: f(torch.add, [torch.ones(2), torch.ones(3)], [torch.ones(2), torch.zeros(3)]),
    lambda torch, f: f(torch.mul, [torch.ones(2)], 2.0),
    lambda torch, f: f(lambda a, b: (a, b), [torch.ones(2)], [torch.ones(1)]),
]
PROGRAMS = [
    *[("scan", each) for each in SCANS], *[("associative_scan", each) for each in ASSOCIATIVE],
    *[("map", each) for each in MAPS], *[("foreach_map", each) for each in FOREACH],
]  # fmt: skip


@pytest.mark.parametrize(("name", "program"), PROGRAMS)
def test_call(name: str, program: Any) -> None:
    same_as_pytorch(lambda torch: program(torch, of(torch, name)))


@compared
def test_gradients(torch: Any) -> Any:
    x = torch.tensor([0.5, 2.0, -1.5], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about internals of PyTorch's compiler
        product = of(torch, "associative_scan")(torch.mul, x, 0, combine_mode="generic").sum()
        state, out = of(torch, "scan")(lambda s, y: (s * y, s + y), torch.ones(()), x)
        return torch.autograd.grad(product, x), torch.autograd.grad(state + out.sum(), x)
