"""Configuration of all tests."""

import gc
import importlib.util
import os
import runpy
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import seed, settings

import tinytorch
from tests.oracle import torch
from tinytorch.core import warning

# By default every run uses the same examples, so that results of different commits are comparable.
# HYPOTHESIS_PROFILE=explore searches for new examples; =long runs very many, which TINYTORCH_SEED determines.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.register_profile("long", max_examples=20_000, deadline=None, database=None)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "same")
SEED = int(os.environ.get("TINYTORCH_SEED", "0"))
settings.load_profile(PROFILE)

# A shell starts background processes with SIGINT ignored, and child processes inherit that; some tests send SIGINT.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Not collected for doctests: the first imports PyTorch's operator database, which only tests/ops/test_opinfo.py needs;
# the second is checked by type checkers, not run.
collect_ignore = ["opinfo.py", "typed_torch_program.py"]


class Forgetful(set[str]):
    """The messages that are not issued again: none, so that no test depends on those before it."""

    def add(self, message: str) -> None:
        """Do not add it."""


warning.issued = Forgetful()


def seeded(test: Any) -> Any:
    """Decorate a test so that a long run starts from the seed."""
    return seed(SEED)(test) if PROFILE == "long" else test


@pytest.fixture(autouse=True)
def restored_global_state() -> Iterator[None]:
    """Restore global state that tests may change, so that the order of tests does not matter."""
    yield
    if torch is not None:  # PyTorch's compiler disables the argument checks of distributions
        torch.distributions.Distribution.set_default_validate_args(True)


def pytest_sessionstart() -> None:
    """Refuse to test a checkout with a native library that was built of other sources."""
    root = Path(__file__).parent.parent
    libraries = list((root / "tinytorch" / "kernels" / "native").glob("_native.*.so"))
    if Path(tinytorch.__file__).parent.parent != root or not any([b"sources " in x.read_bytes() for x in libraries]):
        return
    if "LD_PRELOAD" in os.environ:  # sanitizers: a library that was built with other flags
        return
    script = runpy.run_path(str(root / "scripts" / "build_native.py"))
    if script["existing"]() is None:
        raise pytest.UsageError("the native library was built of other sources: run python scripts/build_native.py")


def pytest_collection_finish() -> None:
    """Exclude the test items, which live until the end, from garbage collection."""
    gc.freeze()


def pytest_report_header() -> list[str]:
    """Report the seed of a long run, and a missing package of the oracle."""
    lines = [f"hypothesis seed: TINYTORCH_SEED={SEED}"] if PROFILE == "long" else []
    if torch is not None and importlib.util.find_spec("ml_dtypes") is None:
        lines.append("PyTorch without ml_dtypes, comparisons of bfloat16 fail: pip install -e '.[oracle]'")
    return lines
