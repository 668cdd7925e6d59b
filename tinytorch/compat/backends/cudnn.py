"""`torch.backends.cudnn`: cuDNN's settings, which have no effect without a GPU, as in PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ..absent import answering

__all__ = [
    "allow_tf32", "benchmark", "benchmark_limit", "conv", "deterministic", "enabled", "flags", "fp32_precision",
    "is_acceptable", "is_available", "rnn", "set_flags", "version",
]  # fmt: skip

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
conv, rnn = SimpleNamespace(fp32_precision="tf32"), SimpleNamespace(fp32_precision="tf32")

is_available = answering("is_available", lambda: False, "Return False.")
is_acceptable = answering(
    "is_acceptable", lambda tensor: False, "Return False: cuDNN needs tensors on a GPU.",
    ">>> torch.backends.cudnn.is_acceptable(torch.ones(2))\nFalse",
)  # fmt: skip
version = answering("version", lambda: None, "Return None: cuDNN is not available.")


def set_flags(
    _enabled: bool | None = None,
    _benchmark: bool | None = None,
    _benchmark_limit: int | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Change the settings that are not None, and return all previous values.

    Example:
        >>> before = torch.backends.cudnn.set_flags(_benchmark=True)
        >>> torch.backends.cudnn.benchmark
        True
        >>> _ = torch.backends.cudnn.set_flags(*before)
    """
    before = enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision
    new = {
        "enabled": _enabled,
        "benchmark": _benchmark,
        "deterministic": _deterministic,
        "allow_tf32": _allow_tf32,
        "fp32_precision": _fp32_precision,
    }  # (the limit is a setting of cuDNN itself, which is not available)
    globals().update({name: value for name, value in new.items() if value is not None})
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """Change the settings inside a `with` block.

    Example:
        >>> before = torch.backends.cudnn.deterministic
        >>> with torch.backends.cudnn.flags(deterministic=True):
        ...     print(torch.backends.cudnn.deterministic)
        True
        >>> torch.backends.cudnn.deterministic == before
        True
    """
    before = set_flags(enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        set_flags(*before)
