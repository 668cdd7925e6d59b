"""`torch.backends.mkldnn`: Intel's oneDNN, which is not used; its settings have no effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ..absent import Idle, answering

__all__ = [
    "VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "allow_tf32", "conv", "deterministic", "enabled", "flags",
    "fp32_precision", "is_acl_available", "is_available", "matmul", "rnn", "set_flags", "verbose",
]  # fmt: skip

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = range(3)

enabled = True
deterministic = False
allow_tf32: bool | None = None
fp32_precision = "none"
conv, matmul, rnn = (SimpleNamespace(fp32_precision="none") for _ in range(3))

is_available = answering("is_available", lambda: False, "Return False: NumPy computes.")
is_acl_available = answering("is_acl_available", lambda: False, "Return False: NumPy computes.")


def set_flags(
    _enabled: bool | None = None,
    _deterministic: bool | None = None,
    _allow_tf32: bool | None = None,
    _fp32_precision: str = "none",
) -> tuple[Any, ...]:
    """Change the settings that are not None, and return all previous values."""
    before = enabled, deterministic, allow_tf32, fp32_precision
    new = {"enabled": _enabled, "deterministic": _deterministic, "allow_tf32": _allow_tf32}
    changed = {name: value for name, value in new.items() if value is not None}
    globals().update(changed, fp32_precision=_fp32_precision)
    return before


@contextlib.contextmanager
def flags(
    enabled: bool = False, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """Change the settings inside a `with` block.

    Example:
        >>> with torch.backends.mkldnn.flags(deterministic=True):
        ...     print(torch.backends.mkldnn.deterministic)
        True
        >>> torch.backends.mkldnn.deterministic
        False
    """
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        names = ("enabled", "deterministic", "allow_tf32", "fp32_precision")
        globals().update(zip(names, before, strict=True))


class verbose(Idle):
    """A context manager without effect: oneDNN, which would log its calls, is not used.

    Example:
        >>> with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        ...     y = torch.ones(2) * 2
    """

    def __init__(self, level: int) -> None:
        self.level = level
