"""Printing, character for character what PyTorch prints."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tinytorch
from tests.conftest import PROFILE, seeded
from tests.oracle import needs, needs_oracle, torch
from tests.same import same_as_pytorch
from tinytorch.kernels import dtypes
from tinytorch.kernels.printing import format_tensor, get_printoptions, printoptions, set_printoptions

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8"]
NAMES = [*FLOATS, *INTEGERS, "bool"]


@pytest.fixture(autouse=True)
def restore_options() -> Iterator[None]:
    yield
    for library in (tinytorch, torch):
        if library is not None:
            library.set_printoptions(profile="default")


def ours(array: np.ndarray[Any, Any], **options: Any) -> str:
    return format_tensor(array, dtypes.from_numpy_dtype(array.dtype), **options)


# The corpus: arrays that decide on every notation --------------------------------------------------


def numbers(name: str) -> st.SearchStrategy[Any]:
    """Numbers that decide on the notation: of one magnitude, of many, whole, special."""
    if name == "bool":
        return st.booleans()
    if name in INTEGERS:
        limits = np.iinfo(name)
        return st.integers(int(limits.min), int(limits.max)) | st.integers(0, 99)
    mantissa = st.floats(-10, 10)
    low, high = {"float16": (-8, 4), "float64": (-323, 307)}.get(name, (-45, 37))
    common = st.builds(lambda m, e: m * 10.0**e, mantissa, st.integers(-10, min(high, 12)))
    scaled = st.builds(lambda m, e: m * 10.0**e, mantissa, st.integers(low, high))
    # Where the choice between the notations falls.
    edges = st.sampled_from([1e8, 1.0001e8, 1e-4, 0.99e-4, 1000.0, 1001.0, 1.0, 0.5, 2.5, 99999.5])
    whole = st.integers(-1000, 1000).map(float) | st.integers(-60000, 60000).map(float)
    special = st.sampled_from([0.0, -0.0, np.inf, -np.inf, np.nan])
    return st.one_of(mantissa, whole, special, common, scaled, edges)


SHAPES = st.one_of(
    *[st.lists(st.integers(0, 8), max_size=4).map(tuple)] * 3,
    st.lists(st.integers(1, 3), min_size=5, max_size=5).map(tuple),
    st.sampled_from([(1001,), (7, 150), (12, 10, 9), (2, 7, 8, 10), (1200, 1), (1, 1200), (2, 8, 1, 9, 8)]),
)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], str]:
    """Return an array, and the name of the dtype that its tensor gets."""
    name = draw(st.sampled_from(NAMES))
    shape = draw(SHAPES)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    held = "float32" if name == "bfloat16" else name
    if name in FLOATS and draw(st.integers(0, 7)) == 0:  # any bits: all magnitudes, all NaN
        bits = rng.integers(0, 256, (*shape, np.dtype(held).itemsize), np.uint8)
        return bits.view(held)[..., 0], name
    pool = draw(st.lists(numbers(name), min_size=1, max_size=8))
    with np.errstate(over="ignore"):
        values = np.array(pool, dtype=np.float64 if name in FLOATS else name).astype(held)
    return np.array(rng.choice(values, shape), dtype=held), name


#: What is done to a tensor before it is printed. Each is `(library, tensor) -> what is printed`.
CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda L, x: x,
    "transposed": lambda L, x: x.T if x.ndim == 2 else x.transpose(0, -1) if x.ndim else x,
    "stepped": lambda L, x: x[::2] if x.ndim else x,
    "stretched": lambda L, x: x.unsqueeze(0).expand(3, *x.shape),
    "in a list": lambda L, x: [x, {"a": (x, x)}],
    "a detached part": lambda L, x: x.flatten()[1:].detach(),
}
GRADS: dict[str, Callable[[Any, Any], Any]] = {
    "a leaf": lambda L, x: x.requires_grad_(),
    "made": lambda L, x: x.requires_grad_().clone(),
    "a view of a leaf": lambda L, x: x.requires_grad_().view(-1),
    "written to": lambda L, x: x.requires_grad_().clone().zero_(),
    "a parameter": lambda L, x: L.nn.Parameter(x),
    "a frozen parameter": lambda L, x: L.nn.Parameter(x, requires_grad=False),
    "part of a parameter": lambda L, x: L.nn.Parameter(x)[None],
    "in a module": lambda L, x: list(L.nn.ParameterList([x]).parameters()),
}
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 9),
        "threshold": st.sampled_from([0, 1, 5, 20, 1000, float("inf")]),
        "edgeitems": st.integers(0, 5),
        "linewidth": st.sampled_from([1, 10, 20, 60, 80, 81, 120, 500]),
        "profile": st.sampled_from(["default", "short", "full"]),
        "sci_mode": st.sampled_from([True, False, None]),
    },
)


@contextmanager
def settled(library: Any, options: dict[str, Any], default: str) -> Iterator[None]:
    """Print with these options and this default dtype inside the block."""
    library.set_printoptions(**options)
    before = library.get_default_dtype()
    library.set_default_dtype(getattr(library, default))
    try:
        yield
    finally:
        library.set_default_dtype(before)
        library.set_printoptions(profile="default")


def printed(library: Any, array: Any, name: str, change: str, options: Any, default: str) -> str:
    with settled(library, options, default):
        x = library.from_numpy(array.copy()).to(getattr(library, name))
        return repr(({**CHANGES, **GRADS}[change])(library, x))


@needs_oracle
@seeded
@settings(max_examples=800 if PROFILE == "same" else settings().max_examples, deadline=None)
@given(
    made=arrays(),
    change=st.sampled_from([*CHANGES, *GRADS]),
    options=st.just({}) | OPTIONS,
    default=st.sampled_from(["float32", "float32", "float32", "float64", "float16", "bfloat16"]),
)
def test_text_is_pytorchs(made: Any, change: str, options: dict[str, Any], default: str) -> None:
    array, name = made
    if change in GRADS and name not in FLOATS:
        change = "plain"
    given_these = (array, name, change, options, default)
    assert printed(tinytorch, *given_these) == printed(torch, *given_these)


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
        for name in sorted({*NAMES} - {"bfloat16"}):
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


@needs("ml_dtypes")
def test_bfloat16_prints_its_values() -> None:
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


# What is printed besides: sizes, dtypes, results with names, formats -------------------------------

#: Programs `library -> text`, written as expressions of `L`.
TEXTS = """
repr(L.Size([1, 2])), str(L.Size([])), f"{L.Size([3])}", "%s" % (L.zeros(2, 3).shape,), str(L.ones(2).size())
repr(L.float32), str(L.bfloat16), f"{L.int64}", repr([L.bool, L.half, L.double, L.long])
repr(L.device("cpu")), str(L.device("cpu")), f"{L.device('cpu')}", repr(L.device("cpu", 0)), str(L.device("cpu:0"))
repr(L.strided), repr(L.contiguous_format), repr(L.preserve_format), repr(L.channels_last)
[repr(L.finfo(d)) for d in (L.float32, L.float64, L.float16, L.bfloat16)]
[repr(L.iinfo(d)) for d in (L.int8, L.uint8, L.int16, L.int32, L.int64)]
f"{L.tensor(3.14159):.3f}", f"{L.tensor(3.14159)}", f"{L.tensor(1.0):>30}", f"{L.tensor(0.1):.9f}"
f"{L.tensor(3)}", f"{L.tensor(3):5d}|", f"{L.tensor(3):.2f}", f"{L.tensor(True)}", f"{L.tensor(True):d}"
f"{L.tensor(3.5):d}"
f"{L.tensor([1.0])}", f"{L.tensor([[1, 2]])}"
f"{L.tensor([1.0]):.3f}"
f"{L.tensor([1.0]):>30}"
L.ones(2).__format__("")
f"{L.tensor(1.0, requires_grad=True):.2f}", f"{L.tensor(1.0, requires_grad=True)}"
f"{L.tensor(1.0, requires_grad=True)!r}", f"{L.nn.Parameter(L.tensor(2.5))}"
f"{L.tensor(0.1, dtype=L.float16)}", f"{L.tensor(0.1, dtype=L.bfloat16)}", f"{L.tensor(0.1, dtype=L.bfloat16):.5f}"
"%s" % L.tensor(2.5), "%.2f" % L.tensor(2.5), "%d" % L.tensor(2), "{:.2e} {}".format(L.tensor(12345.678), L.tensor([1]))
str([L.tensor([1.0, 2.0]), L.tensor(3)]), str({"a": L.ones(2)}), str((L.zeros(0),))
repr(L.max(L.tensor([[1.0, 2.0], [4.0, 3.0]]), 1)), str(L.sort(L.tensor([3, 1, 2])))
repr(L.topk(L.arange(5.0), 2)), repr(L.aminmax(L.ones(2))), repr(L.cummax(L.ones(3), 0)), repr(L.ones(2).median(0))
repr(L.max(L.ones(2, 2, requires_grad=True), 0)), repr(L.std_mean(L.arange(4.0)))
repr(L.zeros(2, 0)), repr(L.zeros(0)), repr(L.zeros(0, dtype=L.int64)), repr(L.zeros((2, 0), requires_grad=True))
L.ones(2).tolist(), L.tensor(3).tolist(), L.tensor([[1, 2]]).tolist(), L.zeros(0, 2).tolist(), L.zeros(2, 0).tolist()
L.tensor(0.1, dtype=L.bfloat16).tolist(), L.tensor([0.1], dtype=L.float16).tolist(), L.tensor([True]).tolist()
[type(v).__name__ for v in (*L.ones(1, dtype=L.bfloat16).tolist(), L.ones((), dtype=L.bfloat16).item())]
repr(L.ones(2, requires_grad=True).sum()), repr(L.ones(2, requires_grad=True)[0]), repr(L.nn.Linear(2, 3).weight[0])
repr(list(L.nn.Linear(2, 3).parameters())), repr(L.nn.ParameterList([L.ones(2)])), repr(L.nn.Buffer(L.ones(2)))
"""


@pytest.mark.parametrize("text", TEXTS.strip().splitlines())
def test_texts_are_pytorchs(text: str) -> None:
    same_as_pytorch(lambda L: eval(text, {"L": L}))


def test_a_subclass_is_printed_by_its_name() -> None:
    def program(L: Any) -> Any:
        class Weight(L.Tensor):  # type: ignore[misc, name-defined]
            pass

        class Trained(L.nn.Parameter):  # type: ignore[misc, name-defined]
            pass

        x = Weight([[1.5, 2.0]])
        return repr(x), f"{x}", repr([x]), repr(Trained(L.ones(2, 12))), repr(x.requires_grad_())

    same_as_pytorch(program)


def test_contents_can_be_given() -> None:
    text = ours(np.ones(2, np.int32), contents="three of them", requires_grad=False)
    assert text == "tensor(three of them, dtype=torch.int32)"


def test_a_large_tensor_is_cut_before_it_is_written() -> None:
    large = tinytorch.zeros(1000, 1000)
    start = time.perf_counter()
    for _ in range(10):
        repr(large)
    assert time.perf_counter() - start < 0.5  # (writing all takes ten seconds)
