"""Windows, the functions of `torch` that return the weights of a window: `hann_window`, `kaiser_window`, ….

Each step rounds to the dtype, as PyTorch's steps do, so the weights are those of PyTorch to the last bit or two. The
functions of `torch.signal.windows`, which PyTorch computes otherwise, are in `signal/windows.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.layout import strided
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes, meta
from tinytorch.kernels.bessel import i0
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.ops.arguments import named
from tinytorch.ops.create import Array, _is_size, checked_device, finished
from tinytorch.ops.register import no_such_call, public
from tinytorch.ops.sequences import arange

_OPTIONS = (
    "*, torch.dtype dtype = None, torch.layout layout = None, torch.device device = None, bool pin_memory = False, "
    "bool requires_grad = False"
)


def _window(
    name: str, weights: Any, length: Any, periodic: Any, further: tuple[Any, ...], signatures: str, dtype: Any,
    layout: Any, device: Any, requires_grad: bool,
) -> Tensor:  # fmt: skip
    """Return a window as a new leaf.

    Args:
        weights: returns the weights of a symmetric window, given the array of the numbers 0, 1, …, N - 1.
        periodic: whether to return the first weights of a window that is longer by one; None if the call omits it.
        further: the arguments after `periodic`; None if the call omits them.
        signatures: the parameters after `periodic`, which PyTorch lists in its error.
    """
    given = [each for each in (periodic, *further) if each is not None]
    in_order = given == [*(periodic, *further)][: len(given)]  # a parameter needs those before it
    if length is None or not isinstance(periodic, (bool, type(None))) or not in_order:
        kinds = [each for each in (length, *given) if each is not None]
        parameters = ["int window_length", "bool periodic", *signatures.split(", ")][: 2 + len(further)]
        forms = [f"{', '.join(parameters[:count])}, {_OPTIONS}" for count in range(1, len(parameters) + 1)]
        raise no_such_call(name, tuple(kinds), tuple(forms))
    if not _is_size(length):
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {type(length).__name__}")
    kind = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if layout not in (None, strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {layout}")
    if not kind.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {kind}")
    length = int(length)
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    on = checked_device(device)
    if on.type == "meta":
        return finished(meta.empty((length,), kind.numpy), requires_grad)
    if length < 2:
        return finished(np.ones(length, kind.numpy), requires_grad)
    count = length + (periodic is not False)
    numbers = arange(count, dtype=kind)._array
    return finished(np.ascontiguousarray(weights(numbers)[:length]), requires_grad)


# The weights, by the numbers 0, 1, …, N - 1 -----------------------------------------------------


def _cos(x: Array) -> Array:
    return np.cos(x.astype(np.float64)).astype(x.dtype)  # as exact as PyTorch's


def _times(x: Array, factor: float) -> Array:
    return x * x.dtype.type(factor)


def _hamming(alpha: float | None, beta: float | None) -> Callable[[Array], Array]:
    first, second = 0.54 if alpha is None else alpha, 0.46 if beta is None else beta

    def weights(n: Array) -> Array:
        return _times(_cos(_times(n, 2 * math.pi / (n.size - 1))), -second) + n.dtype.type(first)

    return weights


_hann = _hamming(0.5, 0.5)


def _blackman(n: Array) -> Array:
    angles = _times(n, math.pi / (n.size - 1))
    fourth, second = _cos(_times(angles, 4)), _cos(_times(angles, 2))
    return _times(fourth, 0.08) - _times(second, 0.5) + n.dtype.type(0.42)


def _triangle(n: Array) -> Array:
    weights = _times(n, 2 / (n.size - 1))
    falling = weights[(n.size - 1) // 2 + 1 :]
    falling[...] = _times(falling, -1) + n.dtype.type(2)
    return weights


def _kaiser(beta: float | None) -> Callable[[Array], Array]:
    wide = 12.0 if beta is None else beta

    def weights(n: Array) -> Array:
        real = np.float64 if n.itemsize == 8 else np.float32  # of float16 and bfloat16, too
        half = real((n.size - 1) / 2)
        x = (n.astype(real) - half) / half
        radius = np.sqrt(np.abs(real(1) - x * x))
        return (i0(real(wide) * radius) / i0(np.array([wide], real))).astype(n.dtype)

    return weights


# The functions ------------------------------------------------------------------------------------


def _without_parameters(name: str, weights: Callable[[Array], Array], what: str, call: str, result: str) -> Any:
    """Return the public function of a window that has no parameters."""

    def window(
        window_length: int,
        periodic: bool | None = None,
        *,
        dtype: Dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        return _window(name, weights, window_length, periodic, (), "", dtype, layout, device, requires_grad)

    doc = f"""Return the weights of {what}.

    `window_length` is their number N. With `periodic`, which is the default, they are the first N weights of the
    symmetric window of N + 1, as spectral analysis needs them. RuntimeError: N is negative, or `dtype`, by default the
    default dtype, is not of floating point.

    Example:
        >>> torch.{name}({call})
        tensor({result})
    """
    return public(listed=False, traced="creates")(named(window, name, doc))


hann_window = _without_parameters(
    "hann_window", _hann, "Hann's window, (1 - cos(2 pi n / (N - 1))) / 2",
    "5, periodic=False", "[0.0000, 0.5000, 1.0000, 0.5000, 0.0000]",
)  # fmt: skip
blackman_window = _without_parameters(
    "blackman_window", _blackman, "Blackman's window, 0.42 - 0.5 cos(2 pi n / (N - 1)) + 0.08 cos(4 pi n / (N - 1))",
    "5", "[-2.9802e-08,  2.0077e-01,  8.4923e-01,  8.4923e-01,  2.0077e-01]",
)  # fmt: skip
bartlett_window = _without_parameters(
    "bartlett_window", _triangle, "Bartlett's window, a triangle: 1 - |2 n / (N - 1) - 1|",
    "5, periodic=False", "[0.0000, 0.5000, 1.0000, 0.5000, 0.0000]",
)  # fmt: skip


@public(listed=False, traced="creates")
def hamming_window(
    window_length: int,
    periodic: bool | None = None,
    alpha: float | None = None,
    beta: float | None = None,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return the weights of Hamming's window, alpha - beta cos(2 pi n / (N - 1)).

    The coefficients are 0.54 and 0.46 by default; `periodic` must be given with them. Else it is as `hann_window`.

    Example:
        >>> torch.hamming_window(5, periodic=False)
        tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    weights, further = _hamming(alpha, beta), "float alpha, float beta"
    options = (dtype, layout, device, requires_grad)
    return _window("hamming_window", weights, window_length, periodic, (alpha, beta), further, *options)


@public(listed=False, traced="creates")
def kaiser_window(
    window_length: int,
    periodic: bool | None = None,
    beta: float | None = None,
    *,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Return the weights of Kaiser's window, I0(beta sqrt(1 - (2 n / (N - 1) - 1)²)) / I0(beta).

    `beta` is 12 by default; `periodic` must be given with it. Else it is as `hann_window`.

    Example:
        >>> torch.kaiser_window(5, periodic=False)
        tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01, 5.2773e-05])
    """
    options = (dtype, layout, device, requires_grad)
    return _window("kaiser_window", _kaiser(beta), window_length, periodic, (beta,), "float beta", *options)
