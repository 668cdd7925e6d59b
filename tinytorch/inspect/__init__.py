"""Tools for inspection: profiles, summaries of models, timings, and the doctor."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["Doctor"]


def __getattr__(name: str) -> Any:
    """Import the doctor on first use."""
    if name == "Doctor":
        return importlib.import_module("tinytorch.inspect.doctor").Doctor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
