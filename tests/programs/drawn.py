"""Random programs: a decorator of tests that use them, and a function that runs the text of one with a library."""

from __future__ import annotations

import builtins
import importlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tinytorch
from tests.conftest import PROFILE, seeded
from tests.oracle import FUSED, needs_oracle, torch
from tests.programs.runner import importer

#: A strategy for the random generators that write the text of a program.
RANDOMS = st.randoms(use_true_random=False)

RTOL = {"float16": 1e-2, "bfloat16": 6e-2, "float32": 2e-5, "float64": 1e-10, "complex64": 2e-5, "complex128": 1e-10}
if not FUSED:
    RTOL["float64"] = 1e-6  # weights are drawn in float32


def random_programs(
    examples: int, *drawn: st.SearchStrategy[Any], long: int = 20_000
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test to run on random programs, the same in every run; the test needs PyTorch.

    Args:
        examples: the number of programs.
        *drawn: the strategies of the test's arguments.
        long: the number of programs with HYPOTHESIS_PROFILE=long, whose seed is TINYTORCH_SEED (see `conftest.py`).
    """
    count = long if PROFILE == "long" else max(examples, settings.default.max_examples)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        limits = settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
        return needs_oracle(limits(seeded(given(*drawn)(test))))

    return decorate


def executed(text: str, library: str) -> tuple[dict[str, Any], Exception | None]:
    """Run a program with `library` as `torch`, and return its global names and the error that it raised, or None."""
    names = {"__builtins__": {**vars(builtins), "__import__": importer(library)}, "out": []}
    names["torch"] = importlib.import_module(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "program", "exec"), names)
        except Exception as error:  # any class, since it is compared
            return names, error
    return names, None


def difference(ours: Any, theirs: Any, graph: bool = True, coarse: float = 0.0) -> str | None:
    """Return what is different in two outcomes, or None.

    Args:
        ours, theirs: the outcomes; of a list the first is the result, and the others are gradients.
        graph: whether it is compared what requires grad.
        coarse: the relative error of the coarsest dtype in the program, which gradients may have.
    """
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        if type(ours).__name__ == type(theirs).__name__:
            return None
        # Of two errors in a call another one may come first, that of the dtype for instance.
        if isinstance(theirs, Exception) and isinstance(ours, RuntimeError):
            return None
        return f"{ours!r} against {theirs!r}"
    if isinstance(theirs, (tuple, list)):
        if len(ours) != len(theirs):
            return f"{len(ours)} results against {len(theirs)}"
        found = (
            difference(*both, graph and k == 0, coarse if k else 0.0)
            for k, both in enumerate(zip(ours, theirs, strict=True))
        )
        return next((each for each in found if each), None)
    if not isinstance(theirs, torch.Tensor) or not isinstance(ours, tinytorch.Tensor):
        same = ours == theirs or (ours != ours and theirs != theirs)
        return None if same and type(ours) is type(theirs) else f"{ours!r} against {theirs!r}"
    if str(ours.dtype) != str(theirs.dtype):
        return f"dtype {ours.dtype} against {theirs.dtype}"
    if tuple(ours.shape) != tuple(theirs.shape):
        return f"shape {tuple(ours.shape)} against {tuple(theirs.shape)}"
    if graph and ours.requires_grad != theirs.requires_grad:
        return f"requires_grad {ours.requires_grad} against {theirs.requires_grad}"
    kind = str(theirs.dtype).removeprefix("torch.")
    mine, other = ((each.float() if kind == "bfloat16" else each).numpy(force=True) for each in (ours, theirs))
    rtol = max(RTOL[kind], coarse) if kind in RTOL else 0
    finite = np.abs(other[np.isfinite(other)]) if rtol else other
    largest = float(finite.max()) if finite.size and rtol else 0.0
    with np.errstate(all="ignore"):
        close = np.isclose(mine, other, rtol, rtol * max(largest, 1.0), equal_nan=True)
    return None if close.all() else f"values {mine.tolist()} against {other.tolist()}"
