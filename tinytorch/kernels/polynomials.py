"""Orthogonal polynomials of degree n at x, on arrays: three-term recurrences (DLMF 18.9), n an array too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .special import fill, in_double

Array = Any


def _recurrence(x: Array, n: Array, first: Array, step: Callable[..., Array]) -> Array:
    """Return q_n from q_0 = 1, q_1 = `first` and q_(k+1) = step(k, x, q_k, q_(k-1)), and 0 where n < 0."""
    before, value = np.ones_like(x), np.where(n == 0, 1, first)
    for k in range(1, int(n.max(initial=0))):
        active = (n > k) & ~np.isnan(value)
        if not active.any():
            break
        following = step(k, x, value, before)
        before, value = np.where(active, value, before), np.where(active, following, value)
    return np.where(n < 0, 0, value)


def _degrees(n: Array) -> Array:
    """Return n truncated to an integer; -1, for which all polynomials are 0, if it does not fit into 64 bits."""
    return np.where(np.abs(n) < 2**63, np.trunc(n), -1)


def _chebyshev(
    x: Array, n: Array, slope: float, start: float, bound: int, inside: Callable[..., Array], end: Callable[..., Array]
) -> Array:
    """Return Chebyshev's polynomial of one kind.

    Args:
        x, n: the argument and the degree.
        slope, start: the polynomial of degree 1 is `slope * x + start`.
        bound: for degrees above it and |x| < 1 the value is `inside(n, t)` with x = cos(t).
        inside: the trigonometric form.
        end: the value at x = 1 or -1, as a function of the degree and whether x is 1.
    """

    def by_steps(x: Array, n: Array) -> Array:
        return _recurrence(x, n, slope * x + start, lambda k, x, value, before: 2 * x * value - before)

    n = _degrees(n)
    out = np.zeros_like(x)
    angle, edge = (np.abs(x) < 1) & (n > bound), np.abs(x) == 1
    fill(out, angle, lambda x, n: inside(n, np.arccos(x)), x, n)
    fill(out, edge & (n >= 0), lambda x, n: end(n, x > 0), x, n)
    fill(out, ~angle & ~edge & (n >= 0), by_steps, x, n)
    return out


def _sign(n: Array) -> Array:
    return np.where(np.fmod(n, 2) == 0, 1.0, -1.0)


def _t(x: Array, n: Array) -> Array:
    return _chebyshev(x, n, 1, 0, 6, lambda n, t: np.cos(n * t), lambda n, right: np.where(right, 1, _sign(n)))


def _u(x: Array, n: Array) -> Array:
    def end(n: Array, right: Array) -> Array:
        return np.where(right, n + 1, _sign(n) * (n + 1))

    return _chebyshev(x, n, 2, 0, 8, lambda n, t: np.sin((n + 1) * t) / np.sin(t), end)


def _v(x: Array, n: Array) -> Array:
    def end(n: Array, right: Array) -> Array:
        return np.where(right, 1, _sign(n) * (2 * n + 1))

    return _chebyshev(x, n, 2, -1, 8, lambda n, t: np.cos((n + 0.5) * t) / np.cos(t / 2), end)


def _w(x: Array, n: Array) -> Array:
    def end(n: Array, right: Array) -> Array:
        return np.where(right, 2 * n + 1, _sign(n))

    return _chebyshev(x, n, 2, 1, 8, lambda n, t: np.sin((n + 0.5) * t) / np.sin(t / 2), end)


def _shifted(kind: Callable[..., Array], x: Array, n: Array) -> Array:
    return kind(2 * x - 1, n)


chebyshev_t, chebyshev_u, chebyshev_v, chebyshev_w = (functools.partial(in_double, kind) for kind in (_t, _u, _v, _w))
shifted_t, shifted_u, shifted_v, shifted_w = (
    functools.partial(in_double, functools.partial(_shifted, kind)) for kind in (_t, _u, _v, _w)
)


def _hermite_of_all(factor: int, x: Array, n: Array) -> Array:
    n = _degrees(n)
    return _recurrence(x, np.minimum(n, 513), factor * x, lambda k, x, value, before: factor * (x * value - k * before))


def _hermite(factor: int, x: Array, n: Array) -> Array:
    """Return Hermite's polynomial, the physicists' (factor 2) or the probabilists' (1); NaN above PyTorch's limit."""
    value = in_double(functools.partial(_hermite_of_all, factor), x, n)
    limit = 512 if x.itemsize == 8 else 128
    return np.where(np.greater(n, limit) & np.isfinite(n), np.nan, value).astype(x.dtype, copy=False)


hermite_h, hermite_he = functools.partial(_hermite, 2), functools.partial(_hermite, 1)


def _laguerre(x: Array, n: Array) -> Array:
    value = _recurrence(
        x, _degrees(n), 1 - x, lambda k, x, value, before: ((2 * k + 1 - x) * value - k * before) / (k + 1)
    )
    return np.where((x == 0) & (_degrees(n) >= 0), 1, value)


laguerre = functools.partial(in_double, _laguerre)


def _legendre(x: Array, n: Array) -> Array:
    n = _degrees(n)
    value = _recurrence(x, n, x, lambda k, x, value, before: ((2 * k + 1) * x * value - k * before) / (k + 1))
    ends = np.where(x > 0, 1, _sign(n))
    return np.where((np.abs(x) == 1) & (n >= 0), ends, value)


legendre = functools.partial(in_double, _legendre)
