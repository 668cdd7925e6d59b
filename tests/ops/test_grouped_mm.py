"""`nn.functional.grouped_mm`: groups of rows, of columns and of terms, against PyTorch and against loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, expressions

#: The shapes of the factors of each form; PyTorch wants sizes of 16 bytes.
FORMS = {
    "rows": ((16, 8), (3, 8, 16)), "columns": ((3, 8, 8), (8, 16)), "terms": ((8, 16), (16, 8)),
    "stacks": ((3, 8, 8), (3, 8, 8)),
}  # fmt: skip


def factors(form: str, dtype: str = "float32") -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in FORMS[form]]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ends", [[4, 8, 16], [0, 16, 16], [1, 2, 16]])
@compared(rtol=1e-4, atol=1e-3)
def test_products_and_gradients(torch: Any, form: str, ends: list[int]) -> Any:
    a, b = (torch.tensor(x, requires_grad=True) for x in factors(form))
    offs = None if form == "stacks" else torch.tensor(ends, dtype=torch.int32)
    y = torch.nn.functional.grouped_mm(a, b, offs=offs)
    first = torch.autograd.grad((y * y).sum(), (a, b), create_graph=True)
    second = torch.autograd.grad(sum(g.sin().sum() for g in first), (a, b))
    return [y, type(y.grad_fn).__name__, y.stride(), *first, *second]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("form", FORMS)
@compared(rtol=0.01, atol=0.01)
def test_16_bits(torch: Any, form: str, dtype: str) -> Any:
    a, b = (torch.tensor(x).to(getattr(torch, dtype)) for x in factors(form))
    offs = None if form == "stacks" else torch.tensor([4, 8, 16], dtype=torch.int32)
    y = torch.nn.functional.grouped_mm(a, b, offs=offs)
    return [y.dtype, y.float()]


ERRORS = """
    f(x.double(), w.double(), offs=o); f(x, w.half(), offs=o); f(x, w); f(w, w, offs=o); f(x[0], w, offs=o)
    f(x, w[None], offs=o); f(x, w[:, :4], offs=o); f(x, w, offs=o.long()); f(x, w, offs=o[:2]); f(x, w, offs=o[None])
    f(x, w, offs=o, bias=x[0]); f(x, w, offs=o, out_dtype=torch.float64); f(w.mT, w[:2]); f(x.tolist(), w, offs=o)
    f(x, w, o)
"""


@pytest.mark.parametrize("text", expressions(ERRORS))
@compared
def test_errors(torch: Any, text: str) -> Any:
    names = {
        "torch": torch, "f": torch.nn.functional.grouped_mm, "x": torch.zeros(12, 8), "w": torch.zeros(3, 8, 8),
        "o": torch.tensor([4, 8, 12], dtype=torch.int32),
    }  # fmt: skip
    return eval(text, names)


def test_what_belongs_to_no_group_is_zero() -> None:
    x, w = (tinytorch.tensor(each) for each in factors("rows"))
    y = tinytorch.nn.functional.grouped_mm(x, w, offs=tinytorch.tensor([4, 5, 9], dtype=tinytorch.int32))
    expected = tinytorch.cat([x[:4] @ w[0], x[4:5] @ w[1], x[5:9] @ w[2], tinytorch.zeros(7, 16)])
    tinytorch.testing.assert_close(y, expected)


def test_meta() -> None:
    for form, shape in {"rows": (16, 16), "columns": (8, 16), "terms": (3, 8, 8)}.items():
        a, b = (tinytorch.tensor(x, device="meta") for x in factors(form))
        offs = tinytorch.zeros(3, dtype=tinytorch.int32, device="meta")
        y = tinytorch.nn.functional.grouped_mm(a, b, offs=offs)
        assert y.is_meta and y.shape == shape


def test_a_mixture_of_experts_is_one_program() -> None:
    functional = tinytorch.nn.functional

    def experts(x: Any, w: Any, scores: Any) -> Any:
        chosen, order = tinytorch.sort(scores.argmax(-1))
        counts = tinytorch.histc(chosen.float(), bins=3, min=0, max=2)
        offs = counts.cumsum(0, dtype=tinytorch.int32)
        return functional.grouped_mm(x[order], w, offs=offs)

    compiled = tinytorch.compile(experts, fullgraph=True)
    x, w = (tinytorch.tensor(each) for each in factors("rows"))
    for seed in range(4):
        scores = tinytorch.tensor(np.random.default_rng(seed).normal(size=(16, 3)))
        assert compiled(x, w, scores).equal(experts(x, w, scores))
    assert len(compiled.variants) == 1 and compiled.variants[0].runs == 3
