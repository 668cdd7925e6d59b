"""Intel's MKL: not used."""

from __future__ import annotations

from ..absent import Idle, answering

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = range(2)


is_available = answering("is_available", lambda: False, "Return False: NumPy does the work.")


class verbose(Idle):
    """Do what is inside a `with` block; MKL, which is not used, says nothing."""

    def __init__(self, enable: int) -> None:
        self.enable = enable
