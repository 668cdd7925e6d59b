"""Elementwise steps on large arrays, which a program does block by block: same results, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch.kernels import parallel

SHAPE = 521, 1009  # more than `parallel.LARGE`, and no multiple of anything

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "relu": F.relu, "leaky_relu": F.leaky_relu, "elu": F.elu, "celu": lambda x: F.celu(x, 1.5), "selu": F.selu,
    "gelu": F.gelu, "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu, "mish": F.mish,
    "softplus": F.softplus, "logsigmoid": F.logsigmoid, "hardswish": F.hardswish, "hardsigmoid": F.hardsigmoid,
    "hardtanh": F.hardtanh, "relu6": F.relu6, "hardshrink": F.hardshrink, "softshrink": F.softshrink,
    "softsign": F.softsign, "tanhshrink": F.tanhshrink, "threshold": lambda x: F.threshold(x, 0.1, 20.0),
    "sigmoid": torch.sigmoid, "tanh": torch.tanh, "exp": torch.exp, "expm1": torch.expm1, "log1p": torch.log1p,
    "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "sin": torch.sin, "cos": torch.cos, "atan": torch.atan, "erf": torch.erf,
    "abs": torch.abs, "neg": torch.neg, "square": torch.square, "reciprocal": torch.reciprocal, "sign": torch.sign,
    "clamp": lambda x: x.clamp(-0.5, 0.5), "clamp_min": lambda x: x.clamp(min=0.1), "power": lambda x: x**3,
    "degrees": torch.rad2deg, "log10": torch.log10, "lgamma": torch.lgamma, "sinh": torch.sinh,
}  # fmt: skip

MIXED: dict[str, Callable[..., Any]] = {
    "one after another": lambda x, y: ((x * y + 1).tanh() * x - y / 2).exp().clamp(max=3),
    "several results": lambda x, y: (x * y, x + y, (x * y).relu() - 1),
    "one operand for all": lambda x, y: (x + 1, x * 2, x - y),
    "numbers of dimension 0": lambda x, y: (x + y.sum()) * (y - x.mean()) / 3,
    "comparisons": lambda x, y: torch.where(x > y, x * 2, y - 1).neg().abs().sqrt(),
    "integers": lambda x, y: ((x * 100).int() % 7 + 3) * 2,
    "other dtypes on the way": lambda x, y: (x.double() * y.double() + 1.5).exp().log1p().float() * x,
    "views between": lambda x, y: (x * 2 + 1).t() * (y * 3 - 1).t() + 1,
    "of no use": lambda x, y: ((x * 3 + 1) * 0 + y, (x * y * y) is None),
    "again and again": lambda x, y: x * x * x * x + x * x * x + x * x + x + y,
    "the mean": lambda x, y: ((x - y) * (x - y)).mean(),
    "larger and smaller": lambda x, y: torch.maximum(x, y) * torch.minimum(x, y) - torch.fmax(x, y),
    "by rows": lambda x, y: (x * y[0] + x[:, :1]) * x + 1,
}


def numbers(seed: int) -> Any:
    """Return numbers of all kinds."""
    made = torch.randn(SHAPE, generator=torch.Generator().manual_seed(seed))
    special = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-40, -1e-40, 88.0, -104.0, 3e38])
    made.view(-1)[7 * seed :: 97][: 10 * 40] = special.repeat(40)
    return made


def bits(x: Any) -> Any:
    """Return all of a result but which NaN is where: of two operands the processor takes either one's sign."""
    if isinstance(x, tuple):
        return [bits(each) for each in x]
    if not isinstance(x, torch.Tensor):
        return x
    array = x.detach().numpy()
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), np.nan, array)
    return str(x.dtype), array.shape, array.tobytes()


def both(function: Callable[..., Any], backward: bool) -> tuple[Any, Any, Any]:
    """Return what a function gives as it is, what its program gives, and the program."""
    x, y, g = numbers(1), numbers(2), torch.randn(SHAPE, generator=torch.Generator().manual_seed(3))
    x.requires_grad_(backward)

    def step(x: Any, y: Any) -> Any:
        out = function(x, y)
        if not backward:
            return out
        first = out[0] if isinstance(out, tuple) else out
        x.grad = None
        if first.shape == g.shape:
            first.backward(g)
        else:
            first.sum().backward()
        return first.detach()

    found = []
    compiled = torch.compile(step)
    for each in (step, compiled, compiled):
        with np.errstate(all="ignore"):
            found.append((bits(each(x, y)), bits(x.grad)))
    assert compiled.variants[0].runs == 1, compiled.explain()
    return found[0], found[2], compiled


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("backward", [False, True])
def test_functions(name: str, backward: bool) -> None:
    if backward and name in ("sign", "power"):  # (the derivative of one is 0, that of the other powers again)
        return
    function = ACTIVATIONS[name]
    expected, found, compiled = both(lambda x, y: function(x * y) * y + 1, backward)
    assert found == expected
    assert "in_blocks" in compiled.source


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("backward", [False, True])
def test_mixed(name: str, backward: bool) -> None:
    if backward and name in ("integers", "of no use", "several results", "one operand for all"):
        return
    expected, found, compiled = both(MIXED[name], backward)
    assert found == expected
    assert name == "views between" or "in_blocks" in compiled.source


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [parallel.LARGE, parallel.LARGE + 1, 5 * parallel.CACHED + 1, 1_000_003])
def test_sizes_and_threads(size: int, threads: int) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.rand(size)
        f = torch.compile(lambda x: (F.gelu(x) * 2 + x).exp())
        f(x)
        assert bits(f(x)) == bits((F.gelu(x) * 2 + x).exp())
        assert "in_blocks" in f.source
    finally:
        torch.set_num_threads(before)


def test_small_arrays_stay_as_they_are() -> None:
    f = torch.compile(lambda x: (x * 2 + 1).tanh())
    f(torch.rand(1000))
    assert "in_blocks" not in f.source


def test_what_is_computed_on_the_way_takes_no_memory() -> None:
    x = torch.rand(4 * parallel.LARGE)
    f = torch.compile(lambda x: ((((x * 2 + 1) * x).tanh() - x) * 3).exp())
    f(x)
    assert f.variants[0].programs[0].peak == x.nbytes
