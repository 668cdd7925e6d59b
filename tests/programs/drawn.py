"""Programs that are drawn at random: how a test asks for them, and how the text of one is run with a library."""

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

#: A generator for what writes the text of a program.
RANDOMS = st.randoms(use_true_random=False)


def random_programs(
    examples: int, *drawn: st.SearchStrategy[Any], long: int = 20_000
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test on so many random programs, the same in every run, with PyTorch there to compare with.

    Args:
        examples: how many.
        *drawn: what is drawn for the test's arguments.
        long: how many with HYPOTHESIS_PROFILE=long, from a seed that TINYTORCH_SEED sets (see `conftest.py`).
    """
    count = long if PROFILE == "long" else max(examples, settings.default.max_examples)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        limits = settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))
        return needs_oracle(limits(seeded(given(*drawn)(test))))

    return decorate


def executed(text: str, library: str) -> tuple[dict[str, Any], Exception | None]:
    """Return the names that a program leaves, to which the library is `torch`, and the error that ended it."""
    names = {"__builtins__": {**vars(builtins), "__import__": importer(library)}, "out": []}
    names["torch"] = importlib.import_module(library)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "program", "exec"), names)
        except Exception as error:  # every class: it is compared
            return names, error
    return names, None
