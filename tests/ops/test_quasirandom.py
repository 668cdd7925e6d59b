"""Sobol sequences: the points of PyTorch, to the last bit."""

from __future__ import annotations

import copy
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinytorch
from tests import oracle
from tests.same import compared, outcome
from tinytorch.kernels import sobol

torch = oracle.module()


def engines(*args: Any, **options: Any) -> tuple[Any, Any]:
    """Return an engine of ours, and one of PyTorch's."""
    return tinytorch.quasirandom.SobolEngine(*args, **options), torch.quasirandom.SobolEngine(*args, **options)


def assert_same(ours: Any, theirs: Any) -> None:
    """Fail unless two engines are in the same state."""
    for name in ("sobolstate", "shift", "quasi", "_first_point"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert str(mine.dtype) == str(other.dtype) and mine.tolist() == other.tolist()
    assert ours.num_generated == theirs.num_generated and repr(ours) == repr(theirs)


def test_all_direction_numbers_of_the_package_are_those_of_pytorch() -> None:
    ours, theirs = engines(sobol.OWN)
    assert sobol.OWN == 1111 and np.array_equal(ours.sobolstate.numpy(), theirs.sobolstate.numpy())
    assert (ours.MAXDIM, ours.MAXBIT) == (theirs.MAXDIM, theirs.MAXBIT)
    assert sobol._FILE.stat().st_size < 20_000


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
@pytest.mark.parametrize(
    "scramble", [{}, {"scramble": True, "seed": 5}, {"scramble": True, "seed": 123456789}], ids=str
)
@pytest.mark.parametrize("dimension", [1, 2, 7, 64, 300])
def test_points(dimension: int, scramble: dict[str, Any], dtype: str | None) -> None:
    ours, theirs = engines(dimension, **scramble)
    assert_same(ours, theirs)
    for count in (1, 1, 2, 0, 5, 16, 100, 1):
        points = ours.draw(count, dtype=dtype and getattr(tinytorch, dtype))
        expected = theirs.draw(count, dtype=dtype and getattr(torch, dtype))
        assert str(points.dtype) == str(expected.dtype) and np.array_equal(points.numpy(), expected.numpy())
        assert_same(ours, theirs)
    assert_same(ours.reset(), theirs.reset())
    assert np.array_equal(ours.draw(9).numpy(), theirs.draw(9).numpy())


@pytest.mark.parametrize("scramble", [{}, {"scramble": True, "seed": 1}], ids=str)
def test_fast_forward(scramble: dict[str, Any]) -> None:
    ours, theirs = engines(12, **scramble)
    for count in (0, 1, 2, 5, 0, 1000, 3, 65536):
        ours.fast_forward(count), theirs.fast_forward(count)
        assert ours.num_generated == theirs.num_generated and ours.quasi.tolist() == theirs.quasi.tolist()
        assert np.array_equal(ours.draw(2).numpy(), theirs.draw(2).numpy())
    skipped, drawn = engines(12, **scramble)[0], engines(12, **scramble)[0]
    drawn.draw(700)
    assert np.array_equal(skipped.fast_forward(700).draw(3).numpy(), drawn.draw(3).numpy())


def test_a_far_point() -> None:
    ours, theirs = engines(3)
    ours.fast_forward(2**24 - 3), theirs.fast_forward(2**24 - 3)
    assert np.array_equal(ours.draw(6).numpy(), theirs.draw(6).numpy())


def test_the_default_generator_scrambles_without_a_seed() -> None:
    tinytorch.manual_seed(3), torch.manual_seed(3)
    ours, theirs = engines(4, scramble=True)
    assert_same(ours, theirs)
    assert tinytorch.rand(3).tolist() == torch.rand(3).tolist()


def test_draw_base2_and_out() -> None:
    ours, theirs = engines(3)
    for m in (2, 2, 3):
        assert np.array_equal(ours.draw_base2(m).numpy(), theirs.draw_base2(m).numpy())
    errors = [outcome(lambda _, engine=engine: engine.draw_base2(1), torch)[0].text for engine in (theirs, ours)]
    assert errors[0] == errors[1]
    out = tinytorch.empty(0)
    result = ours.reset().draw_base2(2, out=out, dtype=tinytorch.float64)
    assert result is out and out.tolist() == theirs.reset().draw_base2(2).tolist()


@pytest.mark.parametrize("dimension", [0, -1, 21202, 3.0, "a"])
@compared(to_the_word=True)
def test_dimensions_that_do_not_exist(torch: Any, dimension: Any) -> Any:
    try:
        return torch.quasirandom.SobolEngine(dimension)
    except TypeError:
        return "a TypeError"


@pytest.mark.parametrize(("count", "options"), [
    (0, {}), (-2, {}), (2.0, {}), (3, {"dtype": "bfloat16"}), (3, {"dtype": "int64"}), (3, {"dtype": "float16"}),
])  # fmt: skip
@compared(to_the_word=True)
def test_draws_that_fail(torch: Any, count: Any, options: dict[str, str]) -> Any:
    engine = torch.quasirandom.SobolEngine(3)
    try:
        return engine.draw(count, **{key: getattr(torch, value) for key, value in options.items()})
    finally:
        assert engine.draw(1, dtype=torch.float16).dtype is torch.float16


def test_copies_and_pickles_continue_the_sequence() -> None:
    engine = tinytorch.quasirandom.SobolEngine(3, scramble=True, seed=2)
    engine.draw(3)
    copies = [copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))]
    expected = engine.draw(4).tolist()
    assert all(each.draw(4).tolist() == expected for each in copies)


def test_further_dimensions_need_scipy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sobol, "_table", sobol._table.__wrapped__)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NotImplementedError, match=r"1111 dimensions.*pip install scipy"):
        tinytorch.quasirandom.SobolEngine(1112)

    # A file as SciPy's, of as many dimensions as PyTorch's state lets us recover.
    package, count = tmp_path / "scipy", 1115
    (package / "stats").mkdir(parents=True)
    directions = torch.quasirandom.SobolEngine(count).sobolstate.numpy()
    numbers = directions >> np.arange(29, -1, -1)
    polynomials, initial = (np.concatenate([each, each[: count - sobol.OWN]]) for each in sobol._own())
    polynomials[sobol.OWN :] = [16427, 16441, 16467, 16479]  # the smallest primitive ones of degree 14
    initial[sobol.OWN :, :14] = numbers[sobol.OWN :, :14]
    file = package / "stats" / "_sobol_direction_numbers.npz"
    np.savez(file, poly=polynomials, vinit=initial)
    origin = type("Spec", (), {"origin": str(package / "__init__.py")})
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: origin)
    assert np.array_equal(tinytorch.quasirandom.SobolEngine(count).sobolstate.numpy(), directions)

    initial[5, 2] += 2
    np.savez(file, poly=polynomials, vinit=initial)
    with pytest.raises(NotImplementedError, match="has not the numbers of the table"):
        tinytorch.quasirandom.SobolEngine(count)


def test_the_file_of_the_package_is_what_the_script_writes() -> None:
    assert sobol.packed(*sobol._own()) == sobol._FILE.read_bytes()
