"""`torch.masked`: the functions with `mask=`, against PyTorch's: values, dtypes, gradients and errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle

torch = oracle.module()

REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "norm", "logsumexp"]
OF_ONE = ["cumsum", "cumprod", "softmax", "log_softmax", "softmin"]
INDICES = ["argmax", "argmin"]

MASKS = {
    "none": None, "some": [[True, False, True], [True, True, False], [False, True, False], [True, True, True]],
    "empty rows": [[False, False, False], [True, False, False], [False, False, False], [True, False, True]],
    "row": [True, False, True], "column": [[True], [False], [True], [True]],
    "numbers": [[1, 0, 2], [0, 0, 3], [1, 1, 1], [0, 0, 0]],
}  # fmt: skip


def data(library: Any, dtype: str) -> Any:
    """Return the same numbers as a tensor of a library."""
    rows = [[0.5, -1.25, 2.0], [3.0, 0.75, -0.5], [-2.0, 1.5, 4.0], [0.25, -3.0, 1.0]]
    return library.tensor(rows).to(getattr(library, dtype))


def assert_same(call: Any, dtype: str, mask: Any, gradient: bool = True) -> None:
    """Fail unless `call(library, x, mask)` returns, or raises, the same in both libraries."""
    results: list[Any] = []
    for library in (tinytorch, torch):
        x = data(library, dtype)
        x.requires_grad_(gradient and dtype.startswith("float"))
        try:
            with warnings.catch_warnings(action="ignore"):
                y = call(library, x, None if mask is None else library.tensor(mask))
        except Exception as error:
            results.append((type(error), str(error).splitlines()[0].replace("_lastdim", "")))
            continue
        if y.requires_grad:
            y.sum().backward()
        gradients = None if x.grad is None else np.array(x.grad.tolist())
        results.append((str(y.dtype), tuple(y.shape), np.array(y.tolist()), gradients, y.requires_grad))
    ours, theirs = results
    if len(theirs) == 2:
        assert ours[0] is theirs[0] and ours[1] == theirs[1]
        return
    assert (*ours[:2], ours[4]) == (*theirs[:2], theirs[4])
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    np.testing.assert_allclose(ours[2], theirs[2], rtol=tolerance, atol=tolerance)
    assert (ours[3] is None) == (theirs[3] is None)
    if ours[3] is not None:
        np.testing.assert_allclose(ours[3], theirs[3], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, dtype: str, mask: str) -> None:
    if dtype == "uint8" and name in ("var", "std"):
        dtype = "int16"
    for options in ({}, {"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": (0, 1)}, {"dim": ()}):
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, mask=k, **options), dtype, MASKS[mask])  # noqa: B023


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("name", [*OF_ONE, *INDICES, "median"])
def test_functions_along_a_dimension(name: str, dtype: str, mask: str) -> None:
    for dim in (0, 1, -1, 2):
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, dim, mask=k), dtype, MASKS[mask])  # noqa: B023


@pytest.mark.parametrize("mask", MASKS)
def test_indices_of_all_and_medians_that_stay(mask: str) -> None:
    for name in INDICES:
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, mask=k), "float32", MASKS[mask])  # noqa: B023
        assert_same(
            lambda m, x, k: getattr(m.masked, name)(x, 1, keepdim=True, dtype=m.int32, mask=k),  # noqa: B023
            "int16",
            MASKS[mask],
        )
    assert_same(lambda m, x, k: m.masked.median(x, 0, keepdim=True, mask=k), "float64", MASKS[mask])


@pytest.mark.parametrize("mask", MASKS)
def test_orders_and_corrections(mask: str) -> None:
    for order in (0.0, 1.0, 2.0, 3.0, float("inf"), float("-inf")):
        assert_same(lambda m, x, k: m.masked.norm(x, order, 1, mask=k), "float32", MASKS[mask], False)  # noqa: B023
        assert_same(lambda m, x, k: m.masked.normalize(x, order, 1, mask=k), "float32", MASKS[mask], False)  # noqa: B023
    assert_same(lambda m, x, k: m.masked.normalize(x, 2.0, 1, eps=2.0, mask=k), "float64", MASKS[mask])
    for name in ("var", "std"):
        for options in ({"unbiased": False}, {"correction": 0}, {"correction": 2}, {"unbiased": True, "correction": 1}):
            assert_same(
                lambda m, x, k: getattr(m.masked, name)(x, 1, mask=k, **options),  # noqa: B023
                "float64", MASKS[mask], False,
            )  # fmt: skip


@pytest.mark.parametrize("name", [*REDUCTIONS, *OF_ONE, "median"])
def test_dtypes(name: str) -> None:
    for dtype in ("float16", "float32", "int32"):
        for wanted in ("float64", "float32", "int64"):
            if wanted == "int64" and name in ("softmax", "log_softmax", "softmin", "norm", "mean"):
                continue
            dim = 1 if name not in REDUCTIONS else None
            assert_same(
                lambda m, x, k: getattr(m.masked, name)(x, dim=dim, dtype=getattr(m, wanted), mask=k),  # noqa: B023
                dtype, MASKS["some"], False,
            )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_logaddexp(dtype: str) -> None:
    for first, second in (("none", "none"), ("some", "row"), ("empty rows", "some"), ("none", "column")):
        assert_same(
            lambda m, x, k: m.masked.logaddexp(
                x, x.detach() * 2, input_mask=k,
                other_mask=None if MASKS[second] is None else m.tensor(MASKS[second]),  # noqa: B023
            ),
            dtype, MASKS[first], False,
        )  # fmt: skip


def test_wrong_arguments() -> None:
    deep = [[[True, False, True]]]
    for name in REDUCTIONS:
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, mask=k), "float32", deep)  # noqa: B023
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, dim=(0, 0), mask=k), "float32", None)  # noqa: B023
        assert_same(lambda m, x, k: getattr(m.masked, name)(x, dim=7, mask=k), "float32", None)  # noqa: B023
    assert_same(lambda m, x, k: m.masked.mean(x, dtype=m.int64), "float32", None)


def test_the_class_is_not_implemented() -> None:
    x = tinytorch.ones(2)
    assert not tinytorch.masked.is_masked_tensor(x) and not isinstance(x, tinytorch.masked.MaskedTensor)
    for make in (tinytorch.masked.masked_tensor, tinytorch.masked.as_masked_tensor, tinytorch.masked.MaskedTensor):
        with pytest.raises(NotImplementedError, match="no tensors that carry a mask"):
            make(x, x > 0)
    assert tinytorch.masked.__all__ == sorted(torch.masked.__all__)
