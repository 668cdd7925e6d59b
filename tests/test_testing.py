"""`torch.testing`: the same results and error messages as PyTorch's."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests.same import compared, same_as_pytorch

# Calls of assert_close (A), where t is the function `tensor`: the error messages must be equal.
CLOSE = """
    A(t([1.0, 2, 3]), t([1.0, 2, 4]))
    A(t([1.0, 2, 3]), t([1.0, 2, 3 + 1e-6]))
    A(t(1.0), t(2.0))
    A(t(1), t(2))
    A(t(1.0), t(1.0 + 1e-6))
    A(1.0, 2.0)
    A(1, 2)
    A(1, 1)
    A(0.0, 0.0)
    A(1.0, 0.0)
    A(1j, 2j)
    A(1.0, 1.0 + 1e-8)
    A(1.0, float("inf"))
    A(float("nan"), float("nan"))
    A(float("nan"), float("nan"), equal_nan=True)
    A(True, False)
    A(True, True)
    A(None, 1)
    A(1, None)
    A(None, None)
    A("a", "b")
    A("a", "a")
    A({1}, {1})
    A(1, 1.0)
    A(1, 1.0, check_dtype=False)
    A(1, 2.0, check_dtype=False)
    A(t([1, 2]), t([1, 3]))
    A(t([True]), t([False]))
    A(t([1, 2]), t([1.0, 2]))
    A(t([1, 2]), t([1.0, 2]), check_dtype=False)
    A(t([1, 2], dtype=torch.int32), t([3.0, 2], dtype=torch.float64), check_dtype=False)
    A(t([2**62]), t([-(2**62) - 5]))
    A(torch.ones(2), torch.ones(3))
    A(torch.ones(2, 1), torch.ones(2))
    A(torch.ones(2, 2).t()[:, :1], torch.ones(2, 1), check_stride=True)
    A(torch.ones(2, 2).t()[:, :1], torch.ones(2, 1))
    A(torch.ones(2, 3, dtype=torch.float16), torch.zeros(2, 3, dtype=torch.float16))
    A(torch.ones(2, 3, dtype=torch.bfloat16), torch.full((2, 3), 1.01, dtype=torch.bfloat16))
    A(torch.ones(2, 3, dtype=torch.bfloat16), torch.zeros(2, 3, dtype=torch.bfloat16))
    A(torch.ones(2, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64))
    A(torch.ones(2, 3, dtype=torch.float64), torch.ones(2, 3, dtype=torch.float64) + 1.5e-7)
    A(torch.ones(2, 3, dtype=torch.uint8), torch.zeros(2, 3, dtype=torch.uint8))
    A(torch.ones(2, 3, dtype=torch.float16), torch.ones(2, 3) * 1.0005, check_dtype=False)
    A(torch.zeros(0), torch.zeros(0))
    A(torch.zeros(0, 2), torch.zeros(0))
    A(torch.zeros(3), t([0.0, 1, float("inf")]))
    A(t([float("inf")]), t([float("inf")]))
    A(t([float("nan")]), t([float("nan")]))
    A(t([float("nan"), 1]), t([float("nan"), 2]), equal_nan=True)
    A(torch.ones(2), torch.zeros(2), rtol=0, atol=0)
    A(torch.ones(2), torch.zeros(2), rtol=0.1, atol=0.2)
    A(torch.ones(2), torch.zeros(2), rtol=0, atol=1)
    A(torch.ones(2), torch.ones(2), rtol=1)
    A(torch.ones(2), torch.ones(2), atol=1)
    A(torch.ones(2), torch.zeros(2), msg="hi")
    A([torch.ones(2)], [torch.zeros(2)], msg="hi")
    A(torch.ones(2), torch.zeros(2), msg=lambda m: "mine: " + m)
    A([torch.ones(2), torch.zeros(2)], [torch.ones(2), torch.ones(2)])
    A([torch.ones(2)], (torch.ones(2),))
    A([torch.ones(2)], [torch.ones(2), torch.ones(2)])
    A([[1]], [[1, 2]])
    A([1, "a"], [2, "a"])
    A({"a": torch.ones(2)}, {"b": torch.ones(2)})
    A({"a": 1, "b": 1}, {"a": 1})
    A({"a": 1}, {"a": 1, "c": 1})
    A({"a": torch.ones(2)}, {"a": torch.zeros(2)})
    A({"a": [torch.ones(2)]}, {"a": [torch.zeros(2)]})
    A({1: [2, 3]}, {1: [2, 4]})
    A({"b": 1, "a": 2}, {"b": 2, "a": 3})
    A({"a": t([1])}, {"a": t([1.0])})
    A(t([1.0]), 1.0)
    A(1, t([1.0]))
    A(t([1.0]), [1.0])
    A(np.ones(2), np.zeros(2))
    A(np.ones(2), np.ones(2))
    A(np.ones(2), t([1.0, 1.0], dtype=torch.float64))
    A(np.float32(1), np.float32(2))
    A(np.bool_(True), np.bool_(False))
    A(torch.nn.Parameter(torch.ones(2)), torch.ones(2))
    A(torch.nn.Parameter(torch.ones(2)), torch.ones(2), allow_subclasses=False)
    A(torch.ones(2, requires_grad=True) * 1, torch.zeros(2))
"""


def verdict(text: str, torch: Any) -> str:
    names = {"A": torch.testing.assert_close, "t": torch.tensor, "torch": torch, "np": np}
    try:
        assert eval(text, names) is None
    except Exception as error:  # any class, since it is compared
        words = re.sub(r"tinytorch\._tensor|tinytorch", "torch", str(error))
        return f"{type(error).__name__}: {words}"
    return "close"


@pytest.mark.parametrize("text", [line.strip() for line in CLOSE.strip().splitlines()])
@compared
def test_assert_close_word_for_word(torch: Any, text: str) -> str:
    return verdict(text, torch)


def test_assert_close_gives_no_floating_point_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AssertionError, match="inf at index"):
            tinytorch.testing.assert_close(tinytorch.ones(2), tinytorch.zeros(2))


@pytest.mark.parametrize(
    "program",
    [
        lambda torch: torch.testing.assert_allclose(torch.ones(2), torch.zeros(2)),
        lambda torch: torch.testing.assert_allclose(torch.ones(2), torch.ones(2) + 9e-5),
        lambda torch: torch.testing.assert_allclose([1.0, 2.0], torch.tensor([1, 2])),
        lambda torch: torch.testing.assert_allclose(torch.ones(2), [1.0, 2.0], rtol=0, atol=1),
    ],
)
def test_assert_allclose(program: Any) -> None:
    same_as_pytorch(program)


MADE = """
    M(2, 3, dtype=torch.float32, device="cpu")
    M((2, 3), dtype=torch.float64, device="cpu")
    M([4], dtype=torch.int64, device="cpu")
    M((), dtype=torch.float32, device="cpu")
    M(0, dtype=torch.float32, device="cpu")
    M(20, dtype=torch.bool, device="cpu")
    M(20, dtype=torch.uint8, device="cpu")
    M(20, dtype=torch.int8, device="cpu")
    M(20, dtype=torch.int32, device="cpu", low=-1.5, high=2.5)
    M(20, dtype=torch.float16, device="cpu")
    M(20, dtype=torch.float32, device="cpu", low=-1, high=1)
    M(20, dtype=torch.float32, device="cpu", low=3)
    M(20, dtype=torch.float64, device="cpu", requires_grad=True)
    M(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True)
    M(2, 3, dtype=torch.float32, device="cpu", noncontiguous=True).stride()
    M(1, dtype=torch.float32, device="cpu", noncontiguous=True).stride()
    M(2, 3, 2, 2, dtype=torch.float32, device="cpu", memory_format=torch.channels_last).stride()
    M(50, dtype=torch.int64, device="cpu", low=-1, high=2, exclude_zero=True)
    M(20, dtype=torch.bool, device="cpu", exclude_zero=True)
    M(2, dtype=torch.float32, device="cpu", low=1, high=1)
    M(2, dtype=torch.int64, device="cpu", low=1, high=1)
    M(2, dtype=torch.float32, device="cpu", low=2, high=1)
    M(2, dtype=torch.float32, device="cpu", low=float("nan"))
    M(2, dtype=torch.uint8, device="cpu", low=-5, high=-1)
    M(2, dtype=torch.bool, device="cpu", low=2, high=5)
    M(2, dtype=torch.int64, device="cpu", requires_grad=True)
    M(2, 3, 2, 2, dtype=torch.float32, device="cpu", noncontiguous=True, memory_format=torch.channels_last)
"""


@pytest.mark.parametrize("text", [line.strip() for line in MADE.strip().splitlines()])
def test_make_tensor(text: str) -> None:
    same_as_pytorch(lambda torch: eval(text, {"M": torch.testing.make_tensor, "torch": torch}))
