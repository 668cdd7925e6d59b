"""Runs one program on tinytorch and on PyTorch and compares values, errors and warnings."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import tinytorch
from tests.oracle import torch

Program = Callable[[Any], Any]


def outcome(program: Program, library: Any) -> Any:
    """Return what `program(library)` returns or raises, as plain values, with its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # NumPy's; the package silences them by a filter, which the line above has overruled.
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            result = plain(program(library))
        except Exception as error:
            result = ("raised", type(error).__name__, _words(str(error)))
    return {
        "result": result,
        "warnings": [(w.category.__name__, _words(str(w.message))[:50]) for w in caught],
    }


def _words(text: str) -> str:
    return text.replace("tinytorch", "torch")


def plain(value: Any) -> Any:
    """Return `value`, tensors as (dtype, shape, requires_grad, numbers), modules as their repr."""
    if hasattr(value, "requires_grad"):
        return (str(value.dtype), tuple(value.shape), value.requires_grad, value.detach().tolist())
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return _words(value) if isinstance(value, str) else value
    return _words(repr(value))


def assert_close(ours: Any, theirs: Any, at: str = "result") -> None:
    """Assert equality, of floats up to rounding."""
    if isinstance(ours, float) and isinstance(theirs, float):
        close = math.isclose(ours, theirs, rel_tol=2e-5, abs_tol=3e-6)
        assert close or (math.isnan(ours) and math.isnan(theirs)), f"at {at}: {ours} != {theirs}"
    elif isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"at {at}: {ours} != {theirs}"
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            assert_close(a, b, f"{at}[{i}]")
    elif isinstance(ours, dict) and isinstance(theirs, dict):
        assert list(ours) == list(theirs), f"at {at}: {list(ours)} != {list(theirs)}"
        for key in ours:
            assert_close(ours[key], theirs[key], f"{at}[{key!r}]")
    else:
        assert ours == theirs, f"at {at}: {ours!r} != {theirs!r}"


def check(program: Program) -> None:
    """Assert that the program has the same outcome on both."""
    ours, theirs = outcome(program, tinytorch), outcome(program, torch)
    assert_close(ours["warnings"], theirs["warnings"], "warnings")
    assert_close(ours["result"], theirs["result"])
