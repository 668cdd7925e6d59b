"""PyTorch, the oracle of the parity tests, and other packages: absent they skip tests, unless CI forbids it."""

from __future__ import annotations

import importlib
import importlib.util
import os
from typing import Any

import pytest

REQUIRED = os.environ.get("TINYTORCH_REQUIRE_ORACLE") == "1"

try:
    import torch
except ImportError:
    if REQUIRED:
        raise
    torch = None

if torch is not None:
    torch.set_warn_always(True)  # else some warnings come once in a process, in whichever test is first

#: Whether PyTorch rounds a product and a sum at once here, as all its builds but the plainest do. In that one the last
#: bits of random numbers, `arange` and `linspace` are others: tests of these bits then compare up to rounding.
FUSED = torch is None or bool(torch.linspace(-3, 3, 101)[50])

#: Marks a test that compares with PyTorch.
needs_oracle = pytest.mark.skipif(torch is None, reason="PyTorch (the oracle) is not installed")


def needs(name: str) -> Any:
    """Return the mark of a test that needs the package of an extra: absent it skips the test, unless CI says no."""
    absent = not REQUIRED and importlib.util.find_spec(name) is None
    return pytest.mark.skipif(absent, reason=f"{name} is not installed")


def package(name: str) -> Any:
    """Return a package that parity tests need beside PyTorch, or skip the test module that asked for it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if REQUIRED:
            raise
        return pytest.skip(f"{name} is not installed", allow_module_level=True)


def module() -> Any:
    """Return PyTorch, or skip the test module that asked for it where it is not installed."""
    if torch is None:
        pytest.skip("PyTorch (the oracle) is not installed", allow_module_level=True)
    return torch
