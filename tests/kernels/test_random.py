"""The random numbers of the kernels, bit for bit PyTorch's, and the state that is left behind."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import FUSED, needs_oracle, torch
from tinytorch.kernels import random as kernels
from tinytorch.kernels.random import Source

SIZES = [0, 1, 2, 7, 15, 16, 17, 23, 24, 25, 31, 32, 33, 1000, 100003]
SEEDS = [0, 1, 2**32 + 5, 2**64 - 1]
FLOATS = ["float16", "float32", "float64"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
DIGITS = {
    "bool": 1, "uint8": 8, "int8": 7, "int16": 15, "int32": 31, "int64": 63,
    "float16": 11, "float32": 24, "float64": 53,
}  # fmt: skip


def assert_same(ours: Any, theirs: Any, source: Source) -> None:
    """Assert equal bits, and generators in equal states."""
    theirs = theirs.contiguous().numpy()
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if FUSED or ours.dtype.kind != "f":
        bits = f"u{ours.itemsize}"
        np.testing.assert_array_equal(np.ascontiguousarray(ours).view(bits), theirs.view(bits))
    else:
        rtol = 8 * float(np.finfo(ours.dtype).eps)
        largest = float(np.abs(theirs).max(initial=0, where=np.isfinite(theirs)))
        np.testing.assert_allclose(ours, theirs, rtol, rtol * largest)
    np.testing.assert_array_equal(source.state(), torch.get_rng_state().numpy())


def doubles(*shape: int) -> Any:
    """Draw PyTorch's float64 uniforms."""
    return torch.rand(*shape, dtype=torch.float64)


def exponential(tensor: Any, rate: float) -> Any:
    """Return what PyTorch's exponential_ gives where it does not draw from MKL's generator."""
    u = doubles(*tensor.shape).numpy().ravel()
    numbers = np.array([-1 / rate * math.log1p(-each) for each in u]).reshape(tensor.shape)
    if tensor.dtype == torch.float16:
        numbers = numbers.astype(np.float32)
    return torch.from_numpy(numbers).to(tensor.dtype)


# Per case: dtypes, PyTorch's fill (which returns its tensor), the kernel. Bernoulli and exponential
# numbers are made of PyTorch's uniforms here, because on Intel processors PyTorch's own come from
# another generator.
CASES: dict[str, tuple[list[str], Callable[[Any], Any], Callable[[Any, Source], None]]] = {
    "uniform": (FLOATS, lambda t: t.uniform_(), lambda a, s: kernels.uniform(a, s)),
    "uniform(-0.3, 0.71)": (FLOATS, lambda t: t.uniform_(-0.3, 0.71), lambda a, s: kernels.uniform(a, s, -0.3, 0.71)),
    "uniform(1000, 1001)": (FLOATS, lambda t: t.uniform_(1e3, 1001), lambda a, s: kernels.uniform(a, s, 1e3, 1001.0)),
    "normal": (FLOATS, lambda t: t.normal_(), lambda a, s: kernels.normal(a, s)),
    "normal(0.3, 1.7)": (FLOATS, lambda t: t.normal_(0.3, 1.7), lambda a, s: kernels.normal(a, s, 0.3, 1.7)),
    "normal(2, 0)": (FLOATS, lambda t: t.normal_(2, 0), lambda a, s: kernels.normal(a, s, 2.0, 0.0)),
    "log_normal": (FLOATS, lambda t: t.log_normal_(0.2, 0.4), lambda a, s: kernels.log_normal(a, s, 0.2, 0.4)),
    "cauchy": (FLOATS, lambda t: t.cauchy_(0.2, 1.3), lambda a, s: kernels.cauchy(a, s, 0.2, 1.3)),
    "exponential": (FLOATS, lambda t: exponential(t, 0.37), lambda a, s: kernels.exponential(a, s, 0.37)),
    "geometric": (FLOATS + INTEGERS, lambda t: t.geometric_(0.3), lambda a, s: kernels.geometric(a, s, 0.3)),
    "bernoulli": (
        [*DIGITS],
        lambda t: (doubles(*t.shape) < 0.3).to(t.dtype),
        lambda a, s: kernels.bernoulli(a, s, 0.3),
    ),
    "integers": (FLOATS + INTEGERS, lambda t: t.random_(1, 100), lambda a, s: kernels.integers(a, s, 1, 99)),
    "wide integers": (["int64"], lambda t: t.random_(-5, 2**40), lambda a, s: kernels.integers(a, s, -5, 2**40 + 5)),
    "28 bits": (["int32"], lambda t: t.random_(0, 2**28), lambda a, s: kernels.integers(a, s, 0, 2**28)),
    "nearly 28 bits": (["int32"], lambda t: t.random_(1, 2**28), lambda a, s: kernels.integers(a, s, 1, 2**28 - 1)),
    "nearly all": (
        ["int64"],
        lambda t: t.random_(-(2**63), 2**63 - 1),
        lambda a, s: kernels.integers(a, s, -(2**63), 2**64 - 1),
    ),
    "all": (["int64"], lambda t: t.random_(-(2**63), None), lambda a, s: kernels.full_range(a, s)),
    "of dtype": ([*DIGITS], lambda t: t.random_(), lambda a, s: kernels.integers_of_dtype(a, s, DIGITS[a.dtype.name])),
}
NAMED = [(name, dtype) for name, (names, _, _) in CASES.items() for dtype in names]


@needs_oracle
@pytest.mark.parametrize(("name", "dtype"), NAMED)
def test_numbers_and_state_are_pytorchs(name: str, dtype: str) -> None:
    _, theirs, fill = CASES[name]
    for seed in SEEDS:
        torch.manual_seed(seed)
        source = Source(seed)
        for size in SIZES:  # in a row: each starts where the last one stopped
            ours = np.zeros(size, dtype)
            with np.errstate(over="ignore"):
                fill(ours, source)
            assert_same(ours, theirs(torch.zeros(size, dtype=getattr(torch, dtype))), source)


@needs_oracle
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["uniform", "normal(0.3, 1.7)", "integers", "log_normal"])
def test_arrays_are_filled_in_the_order_of_their_memory(name: str, dtype: str) -> None:
    _, theirs, fill = CASES[name]

    def layouts(zeros: Callable[[tuple[int, ...]], Any], permute: Callable[..., Any]) -> list[Any]:
        return [
            permute(zeros((4, 6)), (1, 0)),
            permute(zeros((3, 4, 5)), (2, 0, 1)),
            permute(zeros((2, 3)), (1, 0)),
            zeros((9, 11))[::2, 1::3],
            permute(zeros((9, 11))[::2, 1::3], (1, 0)),
            permute(zeros((2, 1, 7, 3)), (0, 3, 1, 2)),
            zeros((9, 3))[:, 1],
        ]

    source = Source(3)
    torch.manual_seed(3)
    ours = layouts(lambda shape: np.zeros(shape, dtype), lambda array, order: array.transpose(order))
    tensors = layouts(
        lambda shape: torch.zeros(shape, dtype=getattr(torch, dtype)), lambda tensor, order: tensor.permute(order)
    )
    for array, tensor in zip(ours, tensors, strict=True):
        fill(array, source)
        assert_same(array, theirs(tensor), source)


@needs_oracle
def test_the_waiting_normal_is_used_across_calls_and_dropped_by_seeding() -> None:
    source = Source(0)
    torch.manual_seed(0)
    for size in (3, 20, 1, 5, 16, 2, 7):
        for dtype in FLOATS:
            ours = np.empty(size, dtype)
            kernels.normal(ours, source)
            assert_same(ours, torch.empty(size, dtype=getattr(torch, dtype)).normal_(), source)
    source.reseed(8)
    torch.manual_seed(8)
    ours = np.empty(3, np.float32)
    kernels.normal(ours, source)
    assert_same(ours, torch.randn(3), source)


@needs_oracle
def test_uniform_between_any_bounds() -> None:
    rng = np.random.default_rng(0)
    for seed in range(30):
        low = float(rng.normal() * 10.0 ** rng.integers(-3, 3))
        high = low + float(abs(rng.normal()) * 10.0 ** rng.integers(-4, 3))
        for dtype in FLOATS:
            source = Source(seed)
            torch.manual_seed(seed)
            ours = np.empty(2000, dtype)
            kernels.uniform(ours, source, low, high)
            assert_same(ours, torch.empty(2000, dtype=getattr(torch, dtype)).uniform_(low, high), source)


@needs_oracle
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 10, 100, 1000, 60000])
def test_permutation(size: int) -> None:
    for seed in range(3 if size > 100 else 30):
        source = Source(seed)
        torch.manual_seed(seed)
        ours = np.empty(size, np.int64)
        kernels.permutation(ours, source)
        assert_same(ours, torch.randperm(size), source)


@given(st.integers(0, 200), st.integers(0, 2**32))
def test_a_permutation_is_the_shuffle_done_step_by_step(size: int, seed: int) -> None:
    expected = list(range(size))
    words = Source(seed).words(max(size - 1, 1)).tolist()
    for i in range(size - 1):
        j = i + words[i] % (size - i)
        expected[i], expected[j] = expected[j], expected[i]
    found = np.empty(size, np.int64)
    kernels.permutation(found, Source(seed))
    assert found.tolist() == expected


def test_permutations_of_which_there_are_too_many_say_so() -> None:
    with pytest.raises(NotImplementedError, match="randperm of 214748364 or more"):
        kernels.permutation(np.broadcast_to(0, 214748364), Source(0))


@needs_oracle
@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli_with_a_probability_each(dtype: str) -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).random((5, 7)).astype(dtype)
        source = Source(seed)
        torch.manual_seed(seed)
        ours = np.empty((5, 7), np.float32)
        kernels.bernoulli_each(ours, source, p)
        assert_same(ours, torch.empty(5, 7).bernoulli_(torch.from_numpy(p)), source)
        across = np.empty((7, 5), np.uint8).T
        kernels.bernoulli_each(across, source, p)
        assert_same(across, torch.empty(7, 5, dtype=torch.uint8).t().bernoulli_(torch.from_numpy(p)), source)


def test_bernoulli_of_certain_outcomes() -> None:
    out = np.empty(1000, bool)
    kernels.bernoulli(out, Source(0), 0.0)
    assert not out.any()
    kernels.bernoulli(out, Source(0), 1.0)
    assert out.all()


@needs_oracle
@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial_with_replacement(dtype: str) -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).random((3, 7)).astype(dtype)
        for rows in (p, p[0], p.T):
            source = Source(seed)
            torch.manual_seed(seed)
            ours = kernels.multinomial(rows, 50, True, source)
            assert_same(ours, torch.multinomial(torch.from_numpy(rows), 50, True), source)


@needs_oracle
@pytest.mark.parametrize("samples", [1, 2, 7])
def test_multinomial_without_replacement(samples: int) -> None:
    for seed in range(5):
        p = np.random.default_rng(seed).random((3, 7)).astype(np.float32)
        source = Source(seed)
        torch.manual_seed(seed)
        ours = kernels.multinomial(p, samples, False, source)
        theirs = (torch.from_numpy(p) / exponential(torch.empty(3, 7), 1.0)).topk(samples)[1]
        assert_same(ours, theirs, source)


# The generator ------------------------------------------------------------------------------------


def test_first_numbers_of_a_seed() -> None:
    """PyTorch's well-known first numbers, for machines without PyTorch."""
    uniforms, normals = np.empty(3, np.float32), np.empty(3, np.float32)
    kernels.uniform(uniforms, Source(0))
    kernels.normal(normals, Source(0))
    np.testing.assert_allclose(uniforms, [0.49625659, 0.76822180, 0.08847743], rtol=1e-7)
    np.testing.assert_allclose(normals, [1.54099607, -0.29342890, -2.17878938], rtol=1e-7)
    order = np.empty(5, np.int64)
    kernels.permutation(order, Source(0))
    assert order.tolist() == [4, 0, 1, 3, 2]


def test_few_words_at_a_time_are_the_same_words() -> None:
    together, apart = Source(5), Source(5)
    expected = together.words(6000)
    counts = [1, 1022, 1023, 1024, 2, 2928]
    np.testing.assert_array_equal(np.concatenate([apart.words(n) for n in counts]), expected)
    high, low = expected[::2].astype(np.uint64), expected[1::2]
    apart.reseed(5)
    np.testing.assert_array_equal(
        np.concatenate([apart.words64(n) for n in (1, 999, 2000)]), high << np.uint64(32) | low
    )


@needs_oracle
@pytest.mark.parametrize("drawn", [0, 1, 623, 624, 625, 1248, 2000])
def test_state_goes_to_pytorch_and_back(drawn: int) -> None:
    source, again = Source(7), Source(0)
    torch.manual_seed(7)
    if drawn:
        source.words(drawn)
    torch.rand(drawn)
    state = source.state()
    np.testing.assert_array_equal(state, torch.get_rng_state().numpy())
    torch.manual_seed(1)
    torch.set_rng_state(torch.from_numpy(state))
    again.set_state(state)
    assert again.seed == 7
    np.testing.assert_array_equal(again.state(), state)
    np.testing.assert_array_equal(again.floats(10), torch.rand(10).numpy())


def test_state_keeps_the_waiting_normal() -> None:
    source, again = Source(7), Source(0)
    numbers = np.empty(3)
    kernels.normal(numbers, source)
    assert source.normal is not None
    again.set_state(source.state())
    assert again.normal == source.normal


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (np.zeros(10, np.uint8), "Expected a CPUGeneratorImplState of size 5056 but found .* 10"),
        (np.zeros(5056, np.uint8), "Invalid mt19937 state"),
        (np.full(5056, 255, np.uint8), "Invalid mt19937 state"),
    ],
)
def test_bytes_that_are_no_state(state: Any, words: str) -> None:
    with pytest.raises(RuntimeError, match=words):
        Source(0).set_state(state)


# Rounding once ------------------------------------------------------------------------------------

REAL = st.floats(-1e100, 1e100).filter(lambda value: value == 0 or abs(value) > 1e-100)


@given(st.lists(REAL | st.integers(-99, 99).map(float), min_size=1, max_size=20), REAL, REAL)
def test_fused_rounds_float64_once(numbers: list[float], y: float, z: float) -> None:
    expected = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x in numbers]
    np.testing.assert_array_equal(kernels.fused(np.array(numbers), y, z), expected)


def test_fused_differs_from_two_roundings() -> None:
    x = np.array([1 + 2.0**-30])
    assert (x * x - (1 + 2.0**-29)).item() == 0.0
    assert kernels.fused(x, x.item(), -(1 + 2.0**-29)).item() == 2.0**-60
    x = np.array([1 + 2.0**-13], np.float32)
    assert kernels.fused(x, x.item(), -(1 + 2.0**-12)).item() == 2.0**-26
