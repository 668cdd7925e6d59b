"""`beta * x + alpha * (a @ b)` of 16-bit floats is rounded where PyTorch rounds it: to the bit, for few numbers."""

from __future__ import annotations

import itertools

import pytest

import tinytorch
from tests.oracle import needs_oracle, torch

FACTORS = [(1, 1), (0, 1), (3.4445, 1), (-4.775, 2.0315), (1, 2.0315), (0.3, 0)]
SIZES = [(3, 4, 3), (2, 3, 4), (5, 7, 3), (3, 0, 2), (0, 3, 2)]


def columns(x):
    return x.mT.contiguous().mT


CALLS = {
    "addmm": lambda t, a, b, c, f: t.addmm(c, a, b, **f),
    "addmm of columns": lambda t, a, b, c, f: t.addmm(c, columns(a), columns(b), **f),
    "addmm of a row": lambda t, a, b, c, f: t.addmm(c[:1], a, b, **f) if len(c) else c,
    "addmm_": lambda t, a, b, c, f: c.clone().addmm_(a, b, **f),
    "baddbmm": lambda t, a, b, c, f: t.baddbmm(c, t.stack([a, a + 1]), t.stack([b, b]), **f),
    "addbmm": lambda t, a, b, c, f: t.addbmm(c, t.stack([a, a + 1, a - 1]), t.stack([b] * 3), **f),
    "addbmm of none": lambda t, a, b, c, f: t.addbmm(c, a[None][:0], b[None][:0], **f),
    "addmv": lambda t, a, b, c, f: t.addmv(c[:, 0], a, b[:, 0], **f),
    "addmv, contiguous": lambda t, a, b, c, f: t.addmv(c[:, 0], a, b[:, 0].contiguous(), **f),
    "addmv of columns": lambda t, a, b, c, f: t.addmv(c[:, 0], columns(a), b[:, 0], **f),
    "addr": lambda t, a, b, c, f: t.addr(c, a[:, 0], b[0], **f) if a.numel() else c,
}


@needs_oracle
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_rounds_as_pytorch(name, dtype):
    for (n, k, m), (beta, alpha) in itertools.product(SIZES, FACTORS):
        generator = torch.Generator().manual_seed(n + 10 * k + 100 * m)
        # Eighths, so that the products and their sums are exact in float32 in any order.
        numbers = [torch.randint(-40, 40, shape, generator=generator).div(8) for shape in ((n, k), (k, m), (n, m))]
        results = []
        for library in (tinytorch, torch):
            a, b, c = (library.tensor(each.tolist()).view(each.shape).to(getattr(library, dtype)) for each in numbers)
            out = CALLS[name](library, a, b, c, {"beta": beta, "alpha": alpha})
            assert str(out.dtype).endswith(f".{dtype}")
            results.append(out.float().tolist())
        assert results[0] == results[1], (n, k, m, beta, alpha)
