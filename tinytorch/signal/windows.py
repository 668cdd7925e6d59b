"""`torch.signal.windows`: the weights of windows, with SciPy's names and parameters.

They are Tensor code, so with `requires_grad=True` the weights are results of recorded operations, as in PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

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


class _Options:
    """The checked arguments that all windows share."""

    def __init__(self, name: str, M: int, dtype: Dtype | None, layout: Any, device: Any, requires_grad: bool) -> None:
        dtype = dtypes.get_default_dtype() if dtype is None else dtype
        if M < 0:
            raise ValueError(f"{name} requires non-negative window length, got M={M}")
        if layout is not strided:
            raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
        if dtype not in (dtypes.float32, dtypes.float64):
            raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
        self.M = M
        self.here: dict[str, Any] = {"dtype": dtype, "device": device}
        self.leaf: dict[str, Any] = {**self.here, "requires_grad": requires_grad}

    def line(self, start: Any, end: Any) -> Tensor:
        """Return M evenly spaced numbers."""
        return linspace(start, end, self.M, **self.leaf)

    def empty(self) -> Tensor:
        """Return the window of length 0."""
        return empty((0,), **self.leaf)

    def one(self) -> Tensor:
        """Return the window of length 1."""
        return ones((1,), **self.leaf)


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Poisson's window: exp(-|n - center| / tau).

    Args:
        M: the number of weights.
        center: where the weight is 1; by default the middle. It can be given only with `sym=False`.
        tau: the decay.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `tau` is not positive; `center` is given for a symmetric window; `M` is negative, or `dtype` or
            `layout` is not supported.

    Example:
        >>> torch.signal.windows.exponential(4, tau=2)
        tensor([0.4724, 0.7788, 0.7788, 0.4724])
    """
    options = _Options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return options.empty()
    if center is None:
        center = (M - 1 if sym or M == 1 else M) / 2
    rate = 1 / tau
    return exp(-options.line(-center * rate, (M - 1 - center) * rate).abs())


def cosine(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the sine window: sin(pi (n + 1 / 2) / M).

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.cosine(4)
        tensor([0.3827, 0.9239, 0.9239, 0.3827])
    """
    options = _Options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return options.empty()
    step = math.pi / (M if sym or M == 1 else M + 1)
    return sin(options.line(0.5 * step, (M - 0.5) * step))


def gaussian(
    M: int,
    *,
    std: float = 1.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a Gaussian window: exp(-(n / std)² / 2), with n from the middle.

    Args:
        M: the number of weights.
        std: the standard deviation.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `std` is not positive; `M`, `dtype` or `layout` is not supported.

    Example:
        >>> torch.signal.windows.gaussian(4, std=2)
        tensor([0.7548, 0.9692, 0.9692, 0.7548])
    """
    options = _Options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return options.empty()
    start = -(M - 1 if sym or M == 1 else M) / 2
    scale = 1 / (std * math.sqrt(2))
    return exp(-(options.line(start * scale, (start + (M - 1)) * scale) ** 2))


def kaiser(
    M: int,
    *,
    beta: float = 12.0,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Kaiser's window: I0(sqrt(beta² - x²)) / I0(beta), with x from -beta to beta.

    Args:
        M: the number of weights.
        beta: the shape of the window.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `beta` is negative; `M`, `dtype` or `layout` is not supported.

    Example:
        >>> torch.signal.windows.kaiser(4, beta=2.0)
        tensor([0.4387, 0.9243, 0.9243, 0.4387])
    """
    options = _Options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return options.one() if M else options.empty()
    edge = tensor(beta, dtype=options.here["dtype"])  # rounded; its number is needed for a window without data, too
    end = minimum(edge, (M - 1) * (2.0 * edge / (M - 1 if sym else M)) - edge)
    x = options.line(-edge, end)
    beta_here = tensor(beta, **options.here)
    return i0(sqrt(beta_here * beta_here - x**2)) / i0(beta_here)


def hamming(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hamming's window: 0.54 - 0.46 cos(2 pi n / (M - 1)).

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.hamming(5)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Hann's window: (1 - cos(2 pi n / (M - 1))) / 2.

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Blackman's window: a sum of three cosines with the coefficients 0.42, 0.5 and 0.08.

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.blackman(4, sym=False)
        tensor([-1.4901e-08,  3.4000e-01,  1.0000e+00,  3.4000e-01])
    """
    _Options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def bartlett(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Bartlett's window, a triangle: 1 - |2 n / (M - 1) - 1|.

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.bartlett(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    options = _Options("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return options.one() if M else options.empty()
    step = 2 / (M - 1 if sym else M)
    return 1 - options.line(-1, -1 + (M - 1) * step).abs()


def general_cosine(
    M: int,
    *,
    a: Iterable[float],
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the sum over i of (-1)^i a[i] cos(2 pi i n / (M - 1)).

    Args:
        M: the number of weights.
        a: the coefficients.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `a` is empty; `M`, `dtype` or `layout` is not supported.

    Example:
        >>> torch.signal.windows.general_cosine(5, a=[0.46, 0.23, 0.31])
        tensor([0.5400, 0.1500, 1.0000, 0.1500, 0.5400])
    """
    options = _Options("general_cosine", M, dtype, layout, device, requires_grad)
    if M < 2:
        return options.one() if M else options.empty()
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    angles = options.line(0, (M - 1) * (2 * math.pi / (M - 1 if sym else M)))
    coefficients = tensor([(-1) ** i * each for i, each in enumerate(a)], **options.leaf)
    orders = arange(coefficients.shape[0], **options.leaf)
    return (coefficients.unsqueeze(-1) * cos(orders.unsqueeze(-1) * angles)).sum(0)


def general_hamming(
    M: int,
    *,
    alpha: float = 0.54,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the window alpha - (1 - alpha) cos(2 pi n / (M - 1)).

    Args:
        M: the number of weights.
        alpha: the first coefficient.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.general_hamming(5, alpha=0.6)
        tensor([0.2000, 0.6000, 1.0000, 0.6000, 0.2000])
    """
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(
    M: int,
    *,
    sym: bool = True,
    dtype: Dtype | None = None,
    layout: Any = strided,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return Nuttall's window: a sum of four cosines with the coefficients 0.3635819, 0.4891775, 0.1365995, 0.0106411.

    Args:
        M: the number of weights.
        sym: whether the window is symmetric, as filters need it; otherwise periodic, as spectral analysis needs it.
        dtype: float32 or float64; by default the default dtype.
        the others: as for `torch.zeros`.

    Raises:
        ValueError: `M` is negative, or `dtype` or `layout` is another one.

    Example:
        >>> torch.signal.windows.nuttall(5)
        tensor([3.6280e-04, 2.2698e-01, 1.0000e+00, 2.2698e-01, 3.6280e-04])
    """
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
