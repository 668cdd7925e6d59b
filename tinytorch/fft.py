"""`torch.fft`: discrete Fourier transforms, which `ops/fft.py` declares."""

from typing import TYPE_CHECKING

from tinytorch.ops import fft as _functions  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.fft import *  # noqa: F403

__getattr__, __dir__, _names = namespace(__name__)
if not TYPE_CHECKING:
    __all__ = _names
