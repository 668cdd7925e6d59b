"""`torch._int_mm`: products of matrices of bytes, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, expressions

SHAPES = [(1, 1, 1), (1, 768, 33), (17, 100, 64), (5, 33, 2), (33, 1030, 9), (0, 4, 3), (3, 4, 0), (3, 0, 4)]


def factors(torch: Any, m: int, k: int, n: int, dtype: str = "int8") -> tuple[Any, Any]:
    # (On processors without VNNI PyTorch adds pairs of products in 16 bits, which larger factors overflow.)
    rng, limits = np.random.default_rng(0), np.iinfo(dtype)
    a, b = rng.integers(limits.min, limits.max + 1, (m, k)), rng.integers(-64, 64, (k, n))
    return torch.tensor(a.astype(dtype)), torch.tensor(b.astype(np.int8))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
@compared
def test_products(torch: Any, shape: tuple[int, int, int], dtype: str) -> Any:
    a, b = factors(torch, *shape, dtype)
    by_columns = b.t().contiguous().t()
    products = [torch._int_mm(a, b), torch._int_mm(a, by_columns), torch._int_mm(a.t().contiguous().t(), b)]
    return [[y.dtype, y.stride(), y.requires_grad, y] for y in products]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_all_bytes_are_exact(shape: tuple[int, int, int], dtype: str) -> None:
    (m, k, n), rng, limits = shape, np.random.default_rng(0), np.iinfo(dtype)
    a, b = rng.integers(limits.min, limits.max + 1, (m, k)), rng.integers(-128, 128, (k, n))
    found = tinytorch._int_mm(tinytorch.from_numpy(a.astype(dtype)), tinytorch.from_numpy(b.astype(np.int8)))
    assert np.array_equal(found.numpy(), a @ b)


def test_the_largest_sums_are_exact() -> None:
    for value, dtype in ((255, tinytorch.uint8), (-128, tinytorch.int8)):
        a = tinytorch.full((3, 60_000), value, dtype=dtype)
        b = tinytorch.full((60_000, 5), -128, dtype=tinytorch.int8)
        assert tinytorch._int_mm(a, b).unique().tolist() == [value * -128 * 60_000]


@compared
def test_out(torch: Any) -> Any:
    a, b = factors(torch, 4, 7, 6)
    out = torch.zeros(2, 4, 6, dtype=torch.int32)
    result = torch._int_mm(a, b, out=out[1])
    return [result.stride(), out, out._version]


ERRORS = """
    torch._int_mm(a, b[:6]); torch._int_mm(a.int(), b); torch._int_mm(a.bool(), b); torch._int_mm(a, b.float())
    torch._int_mm(a, b.to(torch.uint8)); torch._int_mm(a[0], b); torch._int_mm(a[None], b); torch._int_mm(a, b[None])
    torch._int_mm(a, 3); torch._int_mm(a); torch._int_mm(a, b, out=torch.zeros(4, 6))
    torch._int_mm(a, b, out=torch.zeros(4, 5, dtype=torch.int32))
    torch._int_mm(a, b, out=torch.zeros(0, dtype=torch.int32))
    torch._int_mm(a, b, out=torch.zeros(6, 4, dtype=torch.int32).t()); torch._int_mm(a, b, a)
"""


@pytest.mark.parametrize("text", expressions(ERRORS))
@compared
def test_errors(torch: Any, text: str) -> Any:
    a, b = factors(torch, 4, 7, 6)
    return eval(text, {"torch": torch, "a": a, "b": b})


def test_keywords() -> None:
    a, b = factors(tinytorch, 4, 7, 6)
    expected = a.int() @ b.int()
    assert tinytorch._int_mm(input=a, mat2=b).equal(expected)
    assert tinytorch._int_mm(a, mat2=b).equal(expected)


def test_meta() -> None:
    a, b = (each.to("meta") for each in factors(tinytorch, 4, 7, 6))
    y = tinytorch._int_mm(a, b)
    assert y.is_meta and y.shape == (4, 6) and y.dtype is tinytorch.int32


def test_a_quantized_product_is_one_program() -> None:
    def layer(x: Any, weight: Any, scale: Any) -> Any:
        largest = x.abs().amax(1, keepdim=True) / 127
        rounded = (x / largest).round().to(tinytorch.int8)
        return tinytorch._int_mm(rounded, weight.t()) * largest * scale

    compiled = tinytorch.compile(layer, fullgraph=True)
    weight = factors(tinytorch, 6, 40, 1)[0]
    scale = tinytorch.rand(6)
    for rows in (5, 5, 5):
        x = tinytorch.randn(rows, 40)
        assert compiled(x, weight, scale).equal(layer(x, weight, scale))
    assert len(compiled.variants) == 1 and compiled.variants[0].runs == 2


@pytest.mark.parametrize("most", [9, 2**18, 2**40, 2**62])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_products_of_integers_are_exact(most: int, dtype: Any) -> None:
    """Where BLAS could not hold the sums, they are those of integers, which wrap around."""
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-most, most, (40, 40)).astype(dtype) for _ in range(2))
    product = tinytorch.from_numpy(a) @ tinytorch.from_numpy(b)
    np.testing.assert_array_equal(product.numpy(), np.einsum("ik,kj->ij", a, b))
