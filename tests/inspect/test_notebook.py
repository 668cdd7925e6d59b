"""What notebooks show of tensors and summaries: right figures for every kind of tensor, nothing recorded, safe HTML."""

from __future__ import annotations

import base64
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tinytorch as torch
from tinytorch import nn
from tinytorch.inspect import notebook


class Checked(HTMLParser):
    """Fails if a tag is not closed, or closes another one."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        if tag not in ("img", "rect", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def text_of(html: str) -> list[str]:
    parser = Checked()
    parser.feed(html)
    assert not parser.open
    return parser.text


def shown(x: Any) -> list[str]:
    return text_of(x._repr_html_())


def pictures(html: str) -> list[Any]:
    """Return the images in HTML as arrays (height, width, 3)."""
    found = []
    for data in re.findall(r"base64,([^\"]+)", html):
        file = base64.b64decode(data)
        assert file[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = (int.from_bytes(file[k : k + 4], "big") for k in (16, 20))
        start = file.index(b"IDAT")
        length = int.from_bytes(file[start - 4 : start], "big")
        raw = zlib.decompress(file[start + 4 : start + 4 + length])
        rows = np.frombuffer(raw, np.uint8).reshape(height, 1 + 3 * width)
        assert not rows[:, 0].any()
        found.append(rows[:, 1:].reshape(height, width, 3))
    return found


def test_facts_and_figures() -> None:
    x = torch.tensor([[1.0, -2.0, 3.0], [0.0, 4.0, 6.0]], requires_grad=True)
    found = shown(x)
    assert found[:6] == ["Tensor", "[2, 3]", "float32", "requires_grad", "24 B", "min -2"]
    assert {"max 6", "mean 2", "std 2.646"} <= {*found} and repr(x) in found
    assert "grad_fn MulBackward0" in shown(x * 2) and "requires_grad" not in shown(x * 2)
    assert shown(nn.Linear(2, 2).weight)[0] == "Parameter"


def test_numbers_that_are_not_finite() -> None:
    found = shown(torch.tensor([float("nan"), 1.0, float("inf"), -float("inf"), 3.0]))
    assert {"1 NaN", "2 inf", "min 1", "max 3", "mean 2"} <= {*found}
    assert "20 NaN" in shown(torch.full((20,), float("nan")))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: torch.zeros(0, 3), {"[0, 3]", "0 B"}),
        (lambda: torch.tensor(3.5), {"[]", "min 3.5"}),
        (lambda: torch.arange(20) % 2 == 0, {"bool", "10 true"}),
        (lambda: torch.arange(100), {"int64", "max 99", "mean 49.5"}),
        (lambda: torch.tensor([3 + 4j, 0j]), {"complex64", "max |x| 5", "min |x| 0"}),
        (lambda: torch.randn(4).conj().neg(), {"[4]"}),
        (lambda: torch.tensor([3 + 4j] * 20).conj(), {"max |x| 5"}),
        (lambda: torch.eye(30).to_sparse(), {"sparse_coo, 30 stored", "120 B", "mean 1"}),
        (lambda: torch.eye(30).to_sparse_csr(), {"sparse_csr, 30 stored", "mean 1"}),
        (lambda: torch.empty(3, 4, device="meta"), {"device meta", "48 B"}),
        (lambda: torch.ones(10, 20)[::2].T, {"[20, 5]", "mean 1"}),
        (lambda: torch.ones(1).expand(1000), {"[1000]", "std 0"}),
        (lambda: torch.tensor([1e308, -1e308] * 10, dtype=torch.float64), {"max 1e+308"}),
        (lambda: torch.ones(20, dtype=torch.float16), {"float16", "40 B"}),
    ],
)
def test_every_kind_of_tensor(make: Any, expected: set[str]) -> None:
    assert expected <= {*shown(make())}


def test_dtypes_that_numpy_lacks() -> None:
    pytest.importorskip("ml_dtypes")
    assert {"bfloat16", "mean 1.5"} <= {*shown(torch.tensor([1.0, 2.0] * 20).bfloat16())}
    assert {"float8_e4m3fn", "max 2"} <= {*shown(torch.tensor([1.0, 2.0]).to(torch.float8_e4m3fn))}


def test_a_large_tensor_is_sampled() -> None:
    x = torch.zeros(3000, 1000)
    x[:, 500:] = 2
    state = torch.get_rng_state()
    found = shown(x)
    assert torch.equal(state, torch.get_rng_state())
    assert "figures of 200,000 sampled" in found and "one pixel in 24" in found
    mean = float(next(text for text in found if text.startswith("mean")).split()[1])
    assert abs(mean - 1) < 0.02


def test_images_have_the_colours_of_the_elements() -> None:
    x = torch.zeros(2, 3, 8, 10, dtype=torch.uint8)
    x[0, 0], x[1, 2, 0, 0] = 255, 100
    first, second = pictures(x._repr_html_())
    assert first.shape == (8, 10, 3) and (first == (255, 0, 0)).all()
    assert (second[0, 0] == (0, 0, 100)).all() and not second[1:].any()
    (one,) = pictures(torch.rand(3, 8, 8)._repr_html_())
    assert one.shape == (8, 8, 3)


def test_images_of_matrices() -> None:
    x = torch.zeros(5, 6)
    x[0, 0], x[0, 1] = 2.0, 1.0
    (grey,) = pictures(x._repr_html_())
    assert (grey[0, 0] == 255).all() and (grey[0, 1] == 128).all() and not grey[1:].any()
    x[1, 0], x[1, 1] = -2.0, float("nan")
    (signed,) = pictures(x._repr_html_())
    assert (signed[0, 0] == (178, 40, 40)).all() and (signed[1, 0] == (32, 84, 168)).all()
    assert (signed[2] == 245).all() and (signed[1, 1] == (255, 0, 255)).all()
    assert len(pictures(torch.rand(4, 5, 6, 7)._repr_html_())) == 8
    assert not pictures(torch.rand(2, 3)._repr_html_()) and not pictures(torch.rand(0, 5, 5)._repr_html_())


def test_a_histogram_counts_all_finite_elements() -> None:
    html = torch.tensor([0, 0, 0, 1, 2, 2] * 10)._repr_html_()
    heights = [float(each) for each in re.findall(r'<rect [^>]*height="([\d.]+)"', html)]
    assert heights == pytest.approx([50, 50 / 3, 50 * 2 / 3], abs=0.1)


def test_nothing_is_recorded_and_no_version_changes() -> None:
    x = torch.randn(20, requires_grad=True)
    y = x * 2
    version, node = y._version, y.grad_fn
    y._repr_html_()
    assert y._version == version and y.grad_fn is node
    y.sum().backward()
    assert torch.equal(x.grad, torch.full((20,), 2.0))


def test_repr_is_shown_inside_modes_and_for_classes_that_have_their_own() -> None:
    inside: list[Any] = []

    def function(x: Any) -> Any:
        inside.append(x._repr_html_())
        return x * 2

    torch.func.vmap(function)(torch.ones(3, 2))
    torch.func.jvp(function, (torch.ones(2),), (torch.ones(2),))
    assert inside and set(inside) == {None}

    class Own(torch.Tensor):
        def __repr__(self) -> str:  # type: ignore[override]
            return "mine"

    class Plain(torch.Tensor):
        pass

    class Asks(torch.Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            raise AssertionError(function)

    asks = torch.ones(2).as_subclass(Asks)
    assert asks._repr_html_() is None
    assert torch.ones(2).as_subclass(Own)._repr_html_() is None
    assert shown(torch.ones(2).as_subclass(Plain))[0] == "Plain"


def test_functions_that_display_a_tensor_compile_and_trace() -> None:
    def function(x: Any) -> Any:
        x._repr_html_()
        return x * 2

    x = torch.arange(3.0)
    assert torch.equal(torch.compile(function)(x), x * 2)
    assert torch.equal(torch.fx.symbolic_trace(function)(x), x * 2)


def test_html_is_escaped() -> None:
    kind = type("A<b>", (torch.Tensor,), {})
    html = torch.ones(2).as_subclass(kind)._repr_html_()
    assert "<b>" not in html and "A&lt;b&gt;" in html
    assert notebook.escaped("<\x00&") == "&lt;\ufffd&amp;"


def test_summary() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2)))
    model[0].requires_grad_(False)
    found = "|".join(text_of(torch.summary(model, (1, 3))._repr_html_()))
    assert found.startswith(
        "Layer|Output shape|Parameters|Multiply-adds|Sequential|[1, 2]|26|20|0: Linear|[1, 4]|(16)|12|"
        "1: Sequential|[1, 2]|10|8|0: ReLU|[1, 4]|-|-|1: Linear|[1, 2]|10|8|"
        "26 parameters (10 trainable) · 20 multiply-adds"
    )
    cut = torch.summary(model, (1, 3), depth=1)._repr_html_()
    assert "ReLU" not in cut and cut.count("<details") == 1
    deep = nn.Sequential(*[nn.Sequential(nn.ReLU()) for _ in range(30)])
    html = torch.summary(deep, (1, 3))._repr_html_()
    assert html.count("<details open>") == 1 and html.count("<details>") == 30
