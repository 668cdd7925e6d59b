"""The functions of `torch.fft` that take and return real numbers.

Complex numbers are not supported: `fft`, `rfft` and the other transforms raise NotImplementedError when called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tinytorch.core.tensor import Tensor
from tinytorch.kernels.dtypes import get_default_dtype
from tinytorch.ops.rearrange import roll
from tinytorch.ops.register import public
from tinytorch.ops.sequences import arange


@public("fft.fftfreq", listed=False)
def fftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Return the sample frequencies of an `n`-point transform: 0 and the positive ones first, then the negative ones.

    Args:
        n: the number of points.
        d: the sample spacing.
        options: dtype, device and requires_grad, as for `arange`.

    Example:
        >>> torch.fft.fftfreq(4)
        tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies(n, d, (n + 1) // 2, -(n // 2), options)


@public("fft.rfftfreq", listed=False)
def rfftfreq(n: int, d: float = 1.0, **options: Any) -> Tensor:
    """Return the (non-negative) sample frequencies of the transform of `n` real numbers; see `fftfreq`.

    Example:
        >>> torch.fft.rfftfreq(4)
        tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies(n, d, n // 2 + 1, 0, options)


def _frequencies(n: int, d: float, positive: int, least: int, options: dict[str, Any]) -> Tensor:
    numbers = [*range(positive), *range(least, 0)]
    requires_grad = options.pop("requires_grad", False)
    place = arange(len(numbers), **{"dtype": get_default_dtype(), **options})
    made = place.new_tensor(numbers) * (1.0 / (n * d))
    return made.requires_grad_(requires_grad)


@public("fft.fftshift")
def fftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Return the input with its dimensions rolled so that frequency 0 is in the middle.

    Args:
        input: a tensor whose dimensions `dim` are in the order of `fftfreq`.
        dim: the dimensions to shift; None for all.

    Example:
        >>> torch.fft.fftshift(torch.tensor([0, 1, -2, -1]))
        tensor([-2, -1,  0,  1])
    """
    return _shift(input, dim, lambda length: length // 2)


@public("fft.ifftshift")
def ifftshift(input: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Undo `fftshift`.

    Example:
        >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
        tensor([ 0,  1, -2, -1])
    """
    return _shift(input, dim, lambda length: (length + 1) // 2)


def _shift(input: Tensor, dim: Any, by: Callable[[int], int]) -> Tensor:
    dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else list(dim)
    return roll(input, [by(input.shape[each]) for each in dims], list(dims))


def _complex(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.fft.{name}: tinytorch has no complex numbers")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Raise NotImplementedError: there are no complex numbers."
    return public(f"fft.{name}")(refuse)


fft, fft2, fftn = map(_complex, ("fft", "fft2", "fftn"))
ifft, ifft2, ifftn = map(_complex, ("ifft", "ifft2", "ifftn"))
rfft, rfft2, rfftn = map(_complex, ("rfft", "rfft2", "rfftn"))
irfft, irfft2, irfftn = map(_complex, ("irfft", "irfft2", "irfftn"))
hfft, hfft2, hfftn = map(_complex, ("hfft", "hfft2", "hfftn"))
ihfft, ihfft2, ihfftn = map(_complex, ("ihfft", "ihfft2", "ihfftn"))
