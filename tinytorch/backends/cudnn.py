"""cuDNN's switches: programs may set them; without a GPU they have no effect, as in PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

__all__ = [
    "allow_tf32", "benchmark", "benchmark_limit", "deterministic", "enabled", "flags", "is_acceptable", "is_available",
    "version",
]  # fmt: skip

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Return False."""
    return False


def is_acceptable(tensor: Any) -> bool:
    """Return False: cuDNN takes tensors on a GPU."""
    return False


def version() -> int | None:
    """Return None: there is no cuDNN."""
    return None


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Set the switches in a `with` block."""
    names = ("enabled", "benchmark", "deterministic", "allow_tf32")
    here = globals()
    before = {name: here[name] for name in names}
    here.update(zip(names, (enabled, benchmark, deterministic, allow_tf32), strict=True))
    try:
        yield
    finally:
        here.update(before)
