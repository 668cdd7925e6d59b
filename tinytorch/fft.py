"""`torch.fft`: what takes and returns real numbers; the functions are those of `ops/fft.py`."""

# ruff: noqa: F405 (type checkers have the names of `__all__` from `ops/faces`)

from typing import TYPE_CHECKING

from tinytorch.ops import fft as _functions  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.fft import *  # noqa: F403

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

__getattr__, __dir__ = namespace(__name__)
