"""`torch.backends.mkl`: Intel's MKL, which is not used."""

from __future__ import annotations

from ..absent import Idle, answering

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "is_available", "verbose"]

VERBOSE_OFF, VERBOSE_ON = range(2)

is_available = answering("is_available", lambda: False, "Return False: NumPy computes.")


class verbose(Idle):
    """A context manager without effect: MKL, which would log its calls, is not used."""

    def __init__(self, enable: int) -> None:
        self.enable = enable
