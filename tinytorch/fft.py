"""`torch.fft`: what takes and returns real numbers; the functions are those of `ops/fft.py`."""

from typing import TYPE_CHECKING

from tinytorch.ops import fft as _functions  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.fft import fft as fft
    from tinytorch.ops.fft import fft2 as fft2
    from tinytorch.ops.fft import fftfreq as fftfreq
    from tinytorch.ops.fft import fftn as fftn
    from tinytorch.ops.fft import fftshift as fftshift
    from tinytorch.ops.fft import hfft as hfft
    from tinytorch.ops.fft import hfft2 as hfft2
    from tinytorch.ops.fft import hfftn as hfftn
    from tinytorch.ops.fft import ifft as ifft
    from tinytorch.ops.fft import ifft2 as ifft2
    from tinytorch.ops.fft import ifftn as ifftn
    from tinytorch.ops.fft import ifftshift as ifftshift
    from tinytorch.ops.fft import ihfft as ihfft
    from tinytorch.ops.fft import ihfft2 as ihfft2
    from tinytorch.ops.fft import ihfftn as ihfftn
    from tinytorch.ops.fft import irfft as irfft
    from tinytorch.ops.fft import irfft2 as irfft2
    from tinytorch.ops.fft import irfftn as irfftn
    from tinytorch.ops.fft import rfft as rfft
    from tinytorch.ops.fft import rfft2 as rfft2
    from tinytorch.ops.fft import rfftfreq as rfftfreq
    from tinytorch.ops.fft import rfftn as rfftn

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

__getattr__, __dir__ = namespace(__name__)
