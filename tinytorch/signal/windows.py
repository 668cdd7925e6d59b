"""`torch.signal.windows`: the weights of windows, with SciPy's names and parameters.

They are Tensor code, so with `requires_grad=True` the weights are results of recorded operations, as in PyTorch.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, TypeVar, Unpack

from tinytorch.core.layout import strided
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.ops.arithmetic import minimum
from tinytorch.ops.create import empty, ones, tensor
from tinytorch.ops.sequences import arange, linspace
from tinytorch.ops.special import i0
from tinytorch.ops.transcendental import cos, exp, sin, sqrt

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Tensor])


class _Settings(TypedDict, total=False):
    """The arguments that all windows share."""

    sym: bool
    dtype: Dtype | None
    layout: Any
    device: Any
    requires_grad: bool


class _Weights:
    """What is common to all windows: the checked settings, and the tensors that weights are computed from."""

    def __init__(
        self, name: str, M: int, sym: bool = True, dtype: Dtype | None = None, layout: Any = strided,
        device: Any = None, requires_grad: bool = False, **others: Any,
    ) -> None:  # fmt: skip
        for unknown in others:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        self.M = M
        self.period = M - 1 if sym else M  # of a periodic window, which has one weight less than the symmetric one
        self.here: dict[str, Any] = {"dtype": dtype, "device": device}
        self.leaf: dict[str, Any] = {**self.here, "requires_grad": requires_grad}

    def line(self, start: Any, end: Any) -> Tensor:
        """Return M evenly spaced numbers."""
        return linspace(start, end, self.M, **self.leaf)

    def short(self) -> Tensor:
        """Return the window of length 0 or 1."""
        return (ones if self.M else empty)((self.M,), **self.leaf)


def _window(function: _Function) -> _Function:
    """Show the settings of a function of `_Settings` in its signature."""
    signature, settings = inspect.signature(function), inspect.signature(_Weights).parameters
    shown = [settings[name].replace(kind=inspect.Parameter.KEYWORD_ONLY) for name in _Settings.__annotations__]
    own = list(signature.parameters.values())[:-1]
    function.__signature__ = signature.replace(parameters=[*own, *shown])  # type: ignore[attr-defined]
    return function


@_window
def general_cosine(M: int, *, a: Iterable[float], **settings: Unpack[_Settings]) -> Tensor:
    """Return the sum over i of (-1)^i a[i] cos(2 pi i n / (M - 1)).

    Args:
        M: the number of weights.
        a: the coefficients.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.46, 0.23, 0.31])
        tensor([0.5400, 0.1500, 1.0000, 0.1500, 0.5400])
    """
    weights = _Weights("general_cosine", M, **settings)
    if M < 2:
        return weights.short()
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    angles = weights.line(0, (M - 1) * (2 * math.pi / weights.period))
    coefficients = tensor([(-1) ** i * each for i, each in enumerate(a)], **weights.leaf)
    orders = arange(coefficients.shape[0], **weights.leaf)
    return (coefficients.unsqueeze(-1) * cos(orders.unsqueeze(-1) * angles)).sum(0)


@_window
def general_hamming(M: int, *, alpha: float = 0.54, **settings: Unpack[_Settings]) -> Tensor:
    """Return the window alpha - (1 - alpha) cos(2 pi n / (M - 1)); the other arguments as `general_cosine`.

    Example:
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], **settings)


@_window
def hamming(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return Hamming's window: 0.54 - 0.46 cos(2 pi n / (M - 1)); arguments as `general_cosine`.

    Example:
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, **settings)


@_window
def hann(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return Hann's window: (1 - cos(2 pi n / (M - 1))) / 2; arguments as `general_cosine`.

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, **settings)


@_window
def blackman(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return Blackman's window: `general_cosine` with the coefficients 0.42, 0.5 and 0.08.

    Example:
        >>> torch.signal.windows.blackman(4, sym=False)
        tensor([-1.4901e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01])
    """
    _Weights("blackman", M, **settings)  # whose errors name it
    return general_cosine(M, a=[0.42, 0.5, 0.08], **settings)


@_window
def nuttall(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return Nuttall's window: `general_cosine` with the coefficients 0.3635819, 0.4891775, 0.1365995, 0.0106411.

    Example:
        >>> torch.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], **settings)


@_window
def bartlett(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return Bartlett's window, a triangle: 1 - |2 n / (M - 1) - 1|; arguments as `general_cosine`.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    weights = _Weights("bartlett", M, **settings)
    if M < 2:
        return weights.short()
    step = 2 / weights.period
    return 1 - weights.line(-1, -1 + (M - 1) * step).abs()


@_window
def exponential(M: int, *, center: float | None = None, tau: float = 1.0, **settings: Unpack[_Settings]) -> Tensor:
    """Return Poisson's window: exp(-|n - center| / tau).

    Args:
        center: where the weight is 1; by default the middle. It can be given only with `sym=False`.
        tau: the decay.
        the others: as for `general_cosine`.

    Example:
        >>> torch.signal.windows.exponential(4, tau=2)
        tensor([0.4724, 0.7788, 0.7788, 0.4724])
    """
    weights = _Weights("exponential", M, **settings)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if settings.get("sym", True) and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return weights.short()
    if center is None:
        center = (weights.period if M > 1 else 0) / 2
    rate = 1 / tau
    return exp(-weights.line(-center * rate, (M - 1 - center) * rate).abs())


@_window
def cosine(M: int, **settings: Unpack[_Settings]) -> Tensor:
    """Return the sine window: sin(pi (n + 1 / 2) / M); arguments as `general_cosine`.

    Example:
        >>> torch.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    weights = _Weights("cosine", M, **settings)
    if M == 0:
        return weights.short()
    step = math.pi / (weights.period + 1 if M > 1 else 1)
    return sin(weights.line(0.5 * step, (M - 0.5) * step))


@_window
def gaussian(M: int, *, std: float = 1.0, **settings: Unpack[_Settings]) -> Tensor:
    """Return a Gaussian window: exp(-(n / std)² / 2), with n from the middle.

    Args:
        std: the standard deviation, positive.
        the others: as for `general_cosine`.

    Example:
        >>> torch.signal.windows.gaussian(4, std=2)
        tensor([0.7548, 0.9692, 0.9692, 0.7548])
    """
    weights = _Weights("gaussian", M, **settings)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return weights.short()
    start = -(weights.period if M > 1 else 0) / 2
    scale = 1 / (std * math.sqrt(2))
    return exp(-(weights.line(start * scale, (start + (M - 1)) * scale) ** 2))


@_window
def kaiser(M: int, *, beta: float = 12.0, **settings: Unpack[_Settings]) -> Tensor:
    """Return Kaiser's window: I0(sqrt(beta² - x²)) / I0(beta), with x from -beta to beta.

    Args:
        beta: the shape of the window, not negative.
        the others: as for `general_cosine`.

    Example:
        >>> torch.signal.windows.kaiser(4, beta=2.0)
        tensor([0.4387, 0.9243, 0.9243, 0.4387])
    """
    weights = _Weights("kaiser", M, **settings)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return weights.short()
    edge = tensor(beta, dtype=weights.here["dtype"])  # rounded; its number is needed for a window without data, too
    end = minimum(edge, (M - 1) * (2.0 * edge / weights.period) - edge)
    x = weights.line(-edge, end)
    beta_here = tensor(beta, **weights.here)
    return i0(sqrt(beta_here * beta_here - x**2)) / i0(beta_here)
