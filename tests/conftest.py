"""Settings of all tests."""

import gc
import importlib.util
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import seed, settings

from tests.oracle import torch
from tinytorch.ops import overrides as _overrides

# The same examples in every run, so that a change is judged by what it changes. Run with
# HYPOTHESIS_PROFILE=explore to look for new ones, with =long for very many, the same ones for the same TINYTORCH_SEED.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("long", max_examples=20_000, deadline=None, database=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
SEED = int(os.environ.get("TINYTORCH_SEED", "0"))
settings.load_profile(PROFILE)

# A shell lets what it runs in the background ignore Ctrl-C, and its children would too: some tests interrupt programs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Not looked through for examples: its import takes PyTorch's database of operators, which tests/ops/test_opinfo.py asks
# for where that is installed.
collect_ignore = ["opinfo.py"]


def seeded(test: Any) -> Any:
    """Let a long run of a test start from the seed."""
    return seed(SEED)(test) if PROFILE == "long" else test


@pytest.fixture(autouse=True)
def libraries_as_they_begin() -> Iterator[None]:
    """Undo what a test may change for the whole process, so that the order of tests does not matter."""
    yield
    if _overrides.active:  # a class derived from Tensor: all functions ask for its `__torch_function__`
        _overrides.deactivate()
    if torch is not None:  # its compiler turns the checks of distributions off
        torch.distributions.Distribution.set_default_validate_args(True)


def pytest_collection_finish() -> None:
    """Keep tens of thousands of tests, which stay to the end, out of each garbage collection."""
    gc.freeze()


def pytest_report_header() -> list[str]:
    """Say what a long run started from, and whether the oracle lacks a part."""
    lines = [f"hypothesis seed: TINYTORCH_SEED={SEED}"] if PROFILE == "long" else []
    if torch is not None and importlib.util.find_spec("ml_dtypes") is None:
        lines.append("PyTorch without ml_dtypes, comparisons of bfloat16 fail: pip install -e '.[oracle]'")
    return lines
