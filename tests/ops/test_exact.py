"""Results that floating-point numbers hold exactly are exact, whichever of NumPy's loops the processor makes it take.

`scripts/check_processors` runs this, and all that depends on it, with the loops of older processors too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.oracle import needs_oracle, torch

INF = math.inf
SMALL = range(-14, 15)
WIDE = range(-100, 101)

#: Per function rows of its arguments and the result. Rows that a dtype cannot hold are left out for it.
EXACT: dict[str, list[tuple[float, ...]]] = {
    "log10": [(10.0**k, k) for k in range(23)] + [(0, -INF), (-0.0, -INF), (INF, INF), (-1, math.nan)],
    "log2": [(2.0**k, k) for k in (*WIDE, -149, 127)] + [(0, -INF), (INF, INF), (-1, math.nan)],
    "log": [(1, 0), (0, -INF), (INF, INF), (-1, math.nan)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -INF), (INF, INF), (1e-300, 1e-300)],
    "exp": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (2000, INF), (-2000, 0)],
    "exp2": [(k, 2.0**k) for k in (*WIDE, 126, -149)] + [(INF, INF), (-INF, 0), (2000, INF)],
    "expm1": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -1), (-200, -1)],
    "sqrt": [(float(k * k), k) for k in range(200)] + [(-0.0, -0.0), (INF, INF), (-1, math.nan)],
    "rsqrt": [(4.0**k, 2.0**-k) for k in range(-40, 41)] + [(0, INF), (INF, 0)],
    "reciprocal": [(2.0**k, 2.0**-k) for k in WIDE] + [(0, INF), (-0.0, -INF), (INF, 0)],
    "sin": [(0, 0), (-0.0, -0.0), (INF, math.nan)], "cos": [(0, 1), (-0.0, 1), (INF, math.nan)],
    "tan": [(0, 0), (-0.0, -0.0)], "asin": [(0, 0), (-0.0, -0.0), (2, math.nan)], "acos": [(1, 0), (2, math.nan)],
    "atan": [(0, 0), (-0.0, -0.0)], "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-2000, -INF)],
    "cosh": [(0, 1), (INF, INF), (-INF, INF), (2000, INF)],
    "tanh": [(0, 0), (-0.0, -0.0), (20, 1), (-20, -1), (INF, 1), (-INF, -1)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF)], "acosh": [(1, 0), (INF, INF), (0.5, math.nan)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF)], "sigmoid": [(0, 0.5), (200, 1), (INF, 1), (-INF, 0)],
    "erf": [(0, 0), (-0.0, -0.0), (10, 1), (-10, -1), (INF, 1)],
    "hypot": [(3, 4, 5), (5, 12, 13), (-8, 15, 17), (0, 7, 7), (3 * 2.0**60, 4 * 2.0**60, 5 * 2.0**60)],
    "atan2": [(0, 1, 0), (-0.0, 1, -0.0), (1, INF, 0), (-1, INF, -0.0)],
    "pow": [(b, e, float(b) ** e) for b in range(-12, 13) for e in range(8)]
    + [(b * b, 0.5, b) for b in range(40)] + [(b, k, float(b) ** k) for b in (2, -4) for k in SMALL]
    + [(2, k, 2.0**k) for k in WIDE] + [(0, -1, INF), (2, -INF, 0)],
    "logaddexp": [(0, -INF, 0), (5, -10000, 5), (-INF, -INF, -INF), (INF, INF, INF)],
}  # fmt: skip


def rows(name: str, dtype: Any) -> list[Any]:
    """Return the columns of a function's rows that a dtype can hold."""
    table = np.array(EXACT[name], np.float64)
    with np.errstate(over="ignore"):
        same = table.astype(dtype) == table
    return list(table[(same | np.isnan(table)).all(1)].astype(dtype).T)


def layouts(arrays: list[Any]) -> Iterator[tuple[list[Any], Any]]:
    """Return arrays as operands that loops treat differently, and where in these the first rows lie."""
    count = len(arrays[0])
    yield [np.tile(each, 67) for each in arrays], slice(0, count)
    yield [np.repeat(each, 2)[::2] for each in arrays], slice(0, count)
    yield [each[::-1] for each in arrays], slice(None, None, -1)
    for k in range(min(count, 40)):  # the ends of loops that take several at a time, and 0-d
        yield [np.roll(each, -k)[:3] for each in arrays], None
        yield [each[k] for each in arrays], None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("name", EXACT)
def test_what_can_be_exact_is(name: str, dtype: Any) -> None:
    columns = rows(name, dtype)
    assert len(columns[0]) > 1
    for operands, part in layouts(columns):
        *arguments, expected = operands
        tensors = [tinytorch.from_numpy(np.array(each)) for each in arguments]
        found = getattr(tinytorch, name)(*tensors).numpy()
        if part is not None:
            found, expected = found[part], expected[part]
        np.testing.assert_array_equal(found, expected, str(arguments))
        zeros = expected == 0
        np.testing.assert_array_equal(np.signbit(found)[zeros], np.signbit(expected)[zeros])


@pytest.mark.parametrize("size", [1, 3, 30, 5000, 1 << 19])
def test_log10_of_powers_of_ten(size: int) -> None:
    whole = np.resize(np.arange(-10.0, 11.0, dtype=np.float32), size)
    x = tinytorch.from_numpy((10.0 ** whole.astype(np.float64)).astype(np.float32))
    out = tinytorch.empty(size)
    for found in (x.log10(), tinytorch.log10(x, out=out), out, x.clone().log10_()):
        np.testing.assert_array_equal(found.numpy(), whole)


def test_log10_is_near_elsewhere() -> None:
    x = np.exp(np.random.default_rng(0).uniform(-87, 88, 100_000)).astype(np.float32)
    exact = np.log10(x.astype(np.float64))
    found = tinytorch.from_numpy(x).log10().numpy()
    assert np.all(np.abs(found - exact) <= 4 * np.spacing(np.abs(exact.astype(np.float32))))


@needs_oracle
@pytest.mark.parametrize("name", ["deg2rad", "rad2deg"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_angles_have_pytorchs_bits(name: str, dtype: str) -> None:
    x = np.random.default_rng(0).standard_normal(1000) * 10
    ours, theirs = (
        getattr(library, name)(library.from_numpy(x).to(getattr(library, dtype))).double().numpy()
        for library in (tinytorch, torch)
    )
    np.testing.assert_array_equal(ours, theirs)


#: Per function its derivatives, as (order, x, value) or (order, x, value, dtype), where 1 minus a result, or a power of
#: x, has lost its digits (and PyTorch gives 0, infinity or NaN).
TAILS: dict[str, list[tuple[Any, ...]]] = {
    "x.sigmoid()": [(1, 40.0, math.exp(-40)), (2, 40.0, -math.exp(-40)), (1, 20.0, math.exp(-20), "float32")],
    "x.tanh()": [(1, -19.0, 4 * math.exp(-38)), (1, 25.0, 4 * math.exp(-50)), (1, 11.0, 4 * math.exp(-22), "float32")],
    "F.logsigmoid(x)": [(2, -40.0, -math.exp(-40)), (2, 40.0, -math.exp(-40))],
    "F.silu(x)": [(2, 40.0, -38 * math.exp(-40))],
    "F.gelu(x)": [(1, -9.0, math.erfc(9 / 2**0.5) / 2 - 9 * math.exp(-40.5) / math.sqrt(2 * math.pi))],
    "F.glu(torch.stack((x * 0 + 3, x)), 0)[0]": [(1, 40.0, 3 * math.exp(-40))],
    "F.binary_cross_entropy_with_logits(x, x * 0 + 1)": [(1, 40.0, -math.exp(-40)), (2, 40.0, math.exp(-40))],
    "torch.softmax(torch.stack((x, x * 0)), 0)[0]": [(1, 40.0, math.exp(-40)), (1, 20.0, math.exp(-20), "float32")],
    "torch.log_softmax(torch.stack((x, x * 0)), 0)[0]": [(1, 40.0, math.exp(-40)), (1, 20.0, math.exp(-20), "float32")],
    "torch.logsumexp(torch.stack((x, x * 0)), 0)": [(2, 40.0, math.exp(-40))],
    "F.cross_entropy(torch.stack((x, x * 0)), torch.tensor(0))": [
        (1, 40.0, -math.exp(-40)), (2, 40.0, math.exp(-40)), (1, 20.0, -math.exp(-20), "float32")
    ],
    "x.asin()": [(1, 1 - 2**-40, (2**-40 * (2 - 2**-40)) ** -0.5), (2, 1e-10, 1e-10)],
    "x.atanh()": [(1, 1 - 2**-40, 1 / (2**-40 * (2 - 2**-40)))],
    "x.acosh()": [(1, 1 + 2**-40, (2**-40 * (2 + 2**-40)) ** -0.5)],
    "torch.atan2(x, x.detach())": [(1, 1e200, 5e-201), (1, 1e-200, 5e199)],
    "torch.logaddexp(x, x * 0)": [(2, 100.0, math.exp(-100)), (2, -85.0, math.exp(-85), "float32")],
    "torch.special.log_ndtr(x)": [(2, 12.0, -12 * math.exp(-72) / math.sqrt(2 * math.pi), "float32"), (2, 40.0, 0.0)],
    "torch.sinc(x)": [(1, 1e-30, -(math.pi**2) / 3 * 1e-30), (2, 0.0, -(math.pi**2) / 3)],
    "torch.linalg.vector_norm(torch.stack((x, x)))": [
        (0, 1e200, 2**0.5 * 1e200), (1, 1e200, 2**0.5), (0, 1e-200, 2**0.5 * 1e-200), (1, 1e-200, 2**0.5)
    ],
    "torch.linalg.vector_norm(torch.stack((x, x)), 3)": [(1, 1e200, 2 ** (1 / 3)), (1, 1e-200, 2 ** (1 / 3))],
}  # fmt: skip


@pytest.mark.parametrize("text", TAILS)
def test_derivatives_keep_their_digits_in_tails(text: str) -> None:
    function = eval(f"lambda x: {text}", {"torch": tinytorch, "F": tinytorch.nn.functional})
    for order, at, value, *kind in TAILS[text]:
        x = tinytorch.tensor(at, dtype=getattr(tinytorch, kind[0] if kind else "float64"), requires_grad=True)
        found = function(x)
        for _ in range(order):
            found = tinytorch.autograd.grad(found, x, create_graph=True)[0]
        pushed = tinytorch.func.jvp(function, (x.detach(),), (tinytorch.ones_like(x),))[1] if order == 1 else found
        assert [found.item(), pushed.item()] == pytest.approx([value] * 2, rel=1e-5 if kind else 1e-11, abs=0)


def test_a_slope_does_without_an_input_that_was_written_to() -> None:
    for name in ("sigmoid", "tanh", "sigmoid_", "tanh_"):
        leaf = tinytorch.tensor([0.5, 9.0], requires_grad=True)
        y = getattr(x := leaf * 1, name)()
        if y is not x:
            x.add_(1)
        slope = (1 - y) * (1 + y if "tanh" in name else y)
        assert tinytorch.allclose(tinytorch.autograd.grad(y.sum(), leaf)[0], slope, rtol=1e-5, atol=0)
