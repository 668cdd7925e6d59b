"""PyTorch, the oracle of the parity tests, and other packages: if one is missing, tests skip, unless CI requires it."""

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
    torch.set_warn_always(True)  # otherwise some warnings appear only once per process, in the test that is first

#: Whether this build of PyTorch uses fused multiply-add, as all but the baseline build do. In the baseline build the
#: last bits of random numbers, `arange` and `linspace` differ, and tests of these bits compare up to rounding.
FUSED = torch is None or bool(torch.linspace(-3, 3, 101)[50])

#: The mark of tests that compare with PyTorch.
needs_oracle = pytest.mark.skipif(torch is None, reason="PyTorch (the oracle) is not installed")


def needs(name: str) -> Any:
    """Return the mark of a test that needs an optional package: it skips the test if the package is not installed."""
    absent = not REQUIRED and importlib.util.find_spec(name) is None
    return pytest.mark.skipif(absent, reason=f"{name} is not installed")


def package(name: str) -> Any:
    """Return a package that parity tests need beside PyTorch, or skip the calling test module."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if REQUIRED:
            raise
        return pytest.skip(f"{name} is not installed", allow_module_level=True)


def module() -> Any:
    """Return PyTorch, or skip the calling test module if it is not installed."""
    if torch is None:
        pytest.skip("PyTorch (the oracle) is not installed", allow_module_level=True)
    return torch
