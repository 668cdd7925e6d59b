"""The windows: those of `torch` and of `torch.signal.windows` against PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle
from tests.same import compared, refused, same_to_the_word

torch = oracle.module()

NAMES = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]
#: Arguments after the length.
MORE: list[tuple[str, tuple[Any, ...]]] = [
    *[(name, given) for name in NAMES for given in ((), (True,), (False,))],
    ("hamming_window", (False, 0.6)), ("hamming_window", (True, 0.5, 0.3)),
    ("kaiser_window", (False, 4.0)), ("kaiser_window", (True, 0.0)), ("kaiser_window", (True, -3.0)),
]  # fmt: skip
LENGTHS = [0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 100, 400, 1001]

Signal = tuple[str, dict[str, Any]]
SIGNAL: list[Signal] = [
    *[(name, {}) for name in tinytorch.signal.windows.__all__ if name != "general_cosine"],
    ("exponential", {"tau": 3.0}), ("exponential", {"center": 1.5, "sym": False}), ("gaussian", {"std": 0.3}),
    ("general_cosine", {"a": [0.46, 0.23, 0.31]}), ("general_cosine", {"a": (1.0,)}),
    ("general_hamming", {"alpha": 0.7}), ("kaiser", {"beta": 0.0}), ("kaiser", {"beta": 3.5}),
]  # fmt: skip


def numbers(x: Any) -> Any:
    """Return the values of a tensor as float64."""
    return np.array(x.detach().double().tolist())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize(("name", "more"), MORE, ids=str)
def test_windows(name: str, more: tuple[Any, ...], dtype: str) -> None:
    for length in LENGTHS:
        ours = getattr(tinytorch, name)(length, *more, dtype=getattr(tinytorch, dtype))
        theirs = getattr(torch, name)(length, *more, dtype=getattr(torch, dtype))
        assert str(ours.dtype) == str(theirs.dtype) and ours.shape == theirs.shape and ours.is_contiguous()
        if name == "bartlett_window" and oracle.FUSED:
            assert ours.tolist() == theirs.tolist()
        # The weights are near 1; of Kaiser's window PyTorch's own error is a few units in the last place.
        units = 16 if name == "kaiser_window" else 2
        np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=0, atol=units * torch.finfo(theirs.dtype).eps)


@pytest.mark.parametrize("name", ["blackman_window", "hamming_window", "hann_window"])
def test_most_cosine_windows_are_equal_to_the_last_bit(name: str) -> None:
    different = total = 0
    for length in range(2, 120):
        ours, theirs = getattr(tinytorch, name)(length), getattr(torch, name)(length)
        different += sum(a != b for a, b in zip(ours.tolist(), theirs.tolist(), strict=True))
        total += length
    assert different < total / 10


@pytest.mark.parametrize("name", NAMES)
def test_options(name: str) -> None:
    ours, theirs = getattr(tinytorch, name), getattr(torch, name)
    for options in ({}, {"periodic": False}, {"pin_memory": False}, {"dtype": None}):
        np.testing.assert_allclose(
            numbers(ours(window_length=6, **options)), numbers(theirs(window_length=6, **options)), atol=1e-6
        )
    leaf = ours(5, requires_grad=True)
    assert leaf.requires_grad and leaf.is_leaf and theirs(5, requires_grad=True).requires_grad
    assert ours(5, layout=tinytorch.strided).shape == (5,)
    meta = ours(5, device="meta", dtype=tinytorch.float64)
    assert meta.is_meta and meta.shape == (5,) and meta.dtype is tinytorch.float64
    assert ours(tinytorch.tensor(5)).shape == (5,)
    default = tinytorch.get_default_dtype()
    tinytorch.set_default_dtype(tinytorch.float64)
    try:
        assert ours(5).dtype is tinytorch.float64
    finally:
        tinytorch.set_default_dtype(default)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("args", "options"), [
    ((-1,), {}), ((3.0,), {}), ((True,), {}), (("a",), {}), ((5, 1), {}), ((5,), {"dtype": "int64"}),
    ((0,), {"dtype": "bool"}), ((5,), {"layout": "sparse_coo"}),
], ids=str)  # fmt: skip
@compared(to_the_word=True)
def test_errors(torch: Any, name: str, args: tuple[Any, ...], options: dict[str, str]) -> Any:
    try:
        getattr(torch, name)(*args, **{key: getattr(torch, value) for key, value in options.items()})
    except (TypeError, RuntimeError) as error:
        return type(error).__name__, str(error).split("got")[0]


def test_further_parameters_need_periodic() -> None:
    for library in (torch, tinytorch):
        for name, args, option in (
            ("hamming", (5,), "alpha"), ("kaiser", (5,), "beta"), ("hamming", (5, True), "beta"),
        ):  # fmt: skip
            call, words = getattr(library, f"{name}_window"), "received an invalid combination of arguments"
            refused(TypeError, words, call, *args, **{option: 0.5})
        assert library.hamming_window(5, periodic=True, alpha=0.5).shape == (5,)


def signal(library: Any, name: str, length: int, dtype: str, options: dict[str, Any]) -> Any:
    """Return a window of a library."""
    return getattr(library.signal.windows, name)(length, dtype=getattr(library, dtype), **options)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "options"), SIGNAL, ids=str)
def test_signal_windows(name: str, options: dict[str, Any], dtype: str) -> None:
    for length in LENGTHS:
        for sym in (True, False):
            given = {"sym": sym, **options}
            ours, theirs = signal(tinytorch, name, length, dtype, given), signal(torch, name, length, dtype, given)
            assert str(ours.dtype) == str(theirs.dtype) and ours.shape == theirs.shape
            tolerance = (64 if oracle.FUSED else 2048) * torch.finfo(theirs.dtype).eps
            np.testing.assert_allclose(numbers(ours), numbers(theirs), rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize(("name", "options"), SIGNAL, ids=str)
def test_options_of_signal_windows(name: str, options: dict[str, Any]) -> None:
    window = getattr(tinytorch.signal.windows, name)
    assert window(5, **options).dtype is tinytorch.float32
    assert window(5, **options, device="meta").is_meta
    for length in (0, 1, 5):
        ours = window(length, **options, requires_grad=True)
        theirs = getattr(torch.signal.windows, name)(length, **options, requires_grad=True)
        assert (ours.requires_grad, ours.is_leaf) == (theirs.requires_grad, theirs.is_leaf)


@pytest.mark.parametrize(("name", "options"), [
    *[(name, {"a": [1.0]} if name == "general_cosine" else {}) for name in tinytorch.signal.windows.__all__],
    ("exponential", {"tau": 0}), ("exponential", {"center": 1.0}), ("gaussian", {"std": -1}),
    ("kaiser", {"beta": -1}), ("general_cosine", {"a": []}), ("general_cosine", {"a": 3}),
], ids=str)  # fmt: skip
def test_errors_of_signal_windows(name: str, options: dict[str, Any]) -> None:
    wrong: list[tuple[int, dict[str, str]]] = [(-1, {}), (5, {"dtype": "int64"}), (5, {"dtype": "float16"})]
    wrong += [(5, {"layout": "sparse_coo"}), *([(5, {})] if options and options != {"a": [1.0]} else [])]
    for length, own in wrong:

        def program(torch: Any, length: int = length, own: dict[str, str] = own) -> Any:
            values = {key: getattr(torch, value) for key, value in own.items()}
            return getattr(torch.signal.windows, name)(length, **options, **values)

        same_to_the_word(program)
