"""Printing, character for character what PyTorch prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import needs_oracle, torch
from tinytorch import dtypes
from tinytorch.kernels.printing import (
    format_tensor,
    get_printoptions,
    printoptions,
    set_printoptions,
)

FLOATS = ["float16", "float32", "float64"]
NAMES = [*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool"]


@pytest.fixture(autouse=True)
def restore_options() -> Iterator[None]:
    yield
    set_printoptions(profile="default")
    if torch is not None:
        torch.set_printoptions(profile="default")


def ours(array: np.ndarray[Any, Any], **options: Any) -> str:
    return format_tensor(array, dtypes.from_numpy_dtype(array.dtype), **options)


def elements(name: str) -> st.SearchStrategy[Any]:
    """Numbers that decide on the notation: of one magnitude, of many, whole, special."""
    if name == "bool":
        return st.booleans()
    if name not in FLOATS:
        limits = np.iinfo(name)
        return st.integers(int(limits.min), int(limits.max)) | st.integers(0, 99)
    mantissa = st.floats(-10, 10)
    largest = 3 if name == "float16" else 12
    scaled = st.builds(lambda m, e: m * 10.0**e, mantissa, st.integers(-12, largest))
    whole = st.integers(-1000, 1000).map(float) | st.integers(-60000, 60000).map(float)
    special = st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan])
    return st.one_of(mantissa, whole, special, scaled)


@st.composite
def printables(draw: st.DrawFn) -> np.ndarray[Any, Any]:
    name = draw(st.sampled_from(NAMES))
    small = arrays_of.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=8)
    large = st.sampled_from([(1001,), (7, 150), (12, 10, 9), (2, 7, 8, 10), (1200, 1), (1, 1200)])
    shape = draw(st.one_of(small, small, small, large))
    pool = draw(st.lists(elements(name), min_size=1, max_size=8))
    seed = draw(st.integers(0, 2**32 - 1))
    chosen = np.random.default_rng(seed).choice(
        np.array(pool, dtype=np.float64 if name in FLOATS else name), shape
    )
    return np.array(chosen, dtype=name)


@needs_oracle
@settings(max_examples=200, deadline=None)
@given(array=printables(), requires_grad=st.booleans(), made=st.booleans())
def test_text_is_pytorchs(array: np.ndarray[Any, Any], requires_grad: bool, made: bool) -> None:
    theirs = torch.from_numpy(array.copy())
    name = None
    requires_grad = requires_grad and array.dtype.kind == "f"
    if requires_grad:
        theirs.requires_grad_()
        if made:
            theirs = theirs.view(theirs.shape)
            name = "ViewBackward0"
    assert ours(array, requires_grad=requires_grad, grad_fn=name) == repr(theirs)


@needs_oracle
@pytest.mark.parametrize(
    "options",
    [
        {"precision": 0},
        {"precision": 8},
        {"edgeitems": 0},
        {"edgeitems": 0, "threshold": 5},
        {"edgeitems": 1, "threshold": 5},
        {"linewidth": 20},
        {"linewidth": 1},
        {"threshold": 0},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "full", "precision": 1},
        {"sci_mode": True},
        {"sci_mode": False},
    ],
)
def test_options_change_the_text_as_in_pytorch(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    arrays = [
        rng.standard_normal(()),
        rng.standard_normal(9).astype(np.float32),
        rng.standard_normal((3, 8)) * 1e5,
        np.arange(24.0).reshape(2, 3, 4),
        np.arange(1100),
        np.zeros((0, 3)),
        np.zeros(3),
    ]
    set_printoptions(**options)
    torch.set_printoptions(**options)
    for array in arrays:
        assert ours(array) == repr(torch.from_numpy(np.array(array)))


@needs_oracle
@pytest.mark.parametrize("default", ["float64", "float16"])
def test_the_default_dtype_is_not_named(default: str) -> None:
    before = torch.get_default_dtype()
    try:
        dtypes.set_default_dtype(getattr(dtypes, default))
        torch.set_default_dtype(getattr(torch, default))
        for name in NAMES:
            for shape in [(2,), (0,), (0, 2)]:
                array = np.ones(shape, dtype=name)
                assert ours(array) == repr(torch.from_numpy(array))
    finally:
        dtypes.set_default_dtype(dtypes.float32)
        torch.set_default_dtype(before)


def test_a_subclass_indents_by_its_own_name() -> None:
    text = ours(np.arange(6.0, dtype=np.float32).reshape(2, 3), name="Weight")
    assert text == "Weight([[0., 1., 2.],\n        [3., 4., 5.]])"


def test_a_device_is_named_before_the_dtype() -> None:
    text = ours(np.ones(1), device="cuda:0")
    assert text == "tensor([1.], device='cuda:0', dtype=torch.float64)"


def test_a_suffix_that_does_not_fit_starts_a_line() -> None:
    text = ours(np.full(9, 0.5, np.float32), grad_fn="AddBackward0", requires_grad=True)
    assert text == (
        "tensor([0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000, 0.5000],\n"
        "       grad_fn=<AddBackward0>)"
    )


def test_bfloat16_prints_its_values() -> None:
    pytest.importorskip("ml_dtypes", reason="the extra bf16 is not installed")
    array = np.array([1.5, -2.0]).astype(dtypes.bfloat16.numpy)
    assert ours(array) == "tensor([ 1.5000, -2.0000], dtype=torch.bfloat16)"


def test_only_the_shown_edges_are_converted() -> None:
    huge = np.broadcast_to(np.float32(1), (10**9, 10**6))  # a zero-stride view: no memory
    assert ours(huge).startswith("tensor([[1., 1., 1.,  ..., 1., 1., 1.],\n        [1., 1., 1.,")


def test_context_restores_the_options_also_after_an_error() -> None:
    before = get_printoptions()
    with pytest.raises(KeyError), printoptions(precision=2, sci_mode=True):
        assert ours(np.array([0.5], np.float32)) == "tensor([5.00e-01])"
        raise KeyError
    assert get_printoptions() == before


def test_an_unknown_profile_changes_nothing() -> None:
    before = get_printoptions()
    set_printoptions(profile="no such profile")
    assert get_printoptions() == before
