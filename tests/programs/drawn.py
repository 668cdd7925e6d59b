"""Random programs: a decorator of tests that use them, and a function that runs the text of one with a library."""

from __future__ import annotations

import builtins
import importlib
import warnings
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import PROFILE, seeded
from tests.oracle import needs_oracle
from tests.programs.runner import importer

#: A strategy for the random generators that write the text of a program.
RANDOMS = st.randoms(use_true_random=False)


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
