"""Intel's MKL: not used."""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = range(2)


def is_available() -> bool:
    """Return False: NumPy does the work."""
    return False


class verbose(contextlib.AbstractContextManager[Any]):
    """Do what is inside a `with` block; MKL, which is not used, says nothing."""

    def __init__(self, enable: int) -> None:
        self.enable = enable

    def __exit__(self, *exc: object) -> None:
        return None
