"""PyTorch's numbers of the gamma, Poisson and binomial distributions, by rejection.

How many words of the generator a number consumes depends on which candidates are rejected, and so does the start of
the next number: the numbers are computed one after the other, in a Python loop. Whatever does not depend on the draws
is computed for the whole array before the loop. The numbers equal PyTorch's, in float64 up to the last bit.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import implicit
from .checks import check_floating, refused, tensor_name
from .native import twin
from .random import Source

Array = Any

# 1/3, and the constant of Marsaglia and Tsang's squeeze, rounded to float32.
_THIRD = np.float32(1 / 3)
_SQUEEZE = float(np.float32(0.0331))


class _Stream:
    """The doubles of a generator one by one; `close` returns unused ones to the generator."""

    def __init__(self, source: Source, guess: int) -> None:
        self.source = source
        self.before = source.mark()
        self.size = min(max(guess, 16), 1 << 16)
        self.batches = 0
        self.rest: Iterator[float] = iter(())
        self.next: Callable[[], float] = self._all().__next__

    def _all(self) -> Iterator[float]:
        while True:
            self.rest = iter(self.source.doubles(self.size).tolist())
            self.batches += 1
            yield from self.rest

    def close(self) -> None:
        left = operator.length_hint(self.rest)
        if left:
            self.source.restore(self.before, 2 * (self.batches * self.size - left))


@twin
def gammas(alpha: Array, source: Source) -> Array:
    """Return numbers of the gamma distributions of shape `alpha` and rate 1, float64.

    Args:
        alpha: float32 or float64; with float32 the constants are computed in it, as in PyTorch.

    Source: Marsaglia and Tsang, "A Simple Method for Generating Gamma Variables", 2000.
    """
    shape, alpha = alpha.shape, alpha.ravel()
    boosted = alpha < 1
    powers = (1 / alpha).tolist()
    d = (np.where(boosted, alpha + 1, alpha) - alpha.dtype.type(_THIRD)).astype(np.float64)
    c = (1 / np.sqrt(9 * d)).tolist()
    d = d.tolist()
    zero = (alpha == 0).tolist()
    log, sqrt, tau = math.log, math.sqrt, 2 * math.pi
    stream = _Stream(source, 3 * alpha.size)
    uniform = stream.next
    waiting = source.normal
    out = []
    for k, boost in enumerate(boosted.tolist()):
        if zero[k]:
            out.append(0.0)
            continue
        scale = (1 - uniform()) ** powers[k] if boost else 1.0
        d_k, c_k = d[k], c[k]
        if not d_k > 0:  # NaN or negative: the result is NaN, as in PyTorch
            c_k = math.nan
        while True:
            y = 0.0
            while True:
                if waiting is None:
                    angle = tau * uniform()
                    radius = sqrt(-2 * math.log1p(-uniform()))
                    x, waiting = radius * math.cos(angle), radius * math.sin(angle)
                else:
                    x, waiting = waiting, None
                y = 1 + c_k * x
                if not y <= 0:
                    break
            v = y * y * y
            u = 1 - uniform()
            xx = x * x
            if u < 1 - _SQUEEZE * xx * xx:
                break
            if v != v or log(u) < 0.5 * xx + d_k * (1 - v + log(v)):
                break
        out.append(scale * d_k * v)
    stream.close()
    source.normal = waiting
    return np.array(out, np.float64).reshape(shape)


@twin
def poissons(rate: Array, source: Source) -> Array:
    """Return numbers of the Poisson distributions of the given float64 rates, as float64.

    For rates below 10 uniforms are multiplied until the product is below exp(-rate); from 10 on it is Hörmann's
    transformed rejection.

    Source: Hörmann, "The Transformed Rejection Method for Generating Poisson Random Variables", 1993.
    """
    shape, rate = rate.shape, rate.ravel()
    root = np.sqrt(rate)
    b = 0.931 + 2.53 * root
    a = -0.059 + 0.02483 * b
    inverse = np.log(1.1239 + 1.1328 / (b - 3.4))
    box = 0.9277 - 3.6224 / (b - 2)
    columns = zip(*(column.tolist() for column in (rate, b, a, inverse, box)), strict=True)
    log, floor, lgamma = math.log, math.floor, math.lgamma
    stream = _Stream(source, 3 * rate.size)
    uniform = stream.next
    out = []
    for mean, b_k, a_k, inverse_k, box_k in columns:
        if mean >= 10:
            log_rate = log(mean)
            while True:
                u, v = uniform() - 0.5, uniform()
                to_edge = 0.5 - abs(u)
                if to_edge == 0:
                    continue
                number = floor((2 * a_k / to_edge + b_k) * u + mean + 0.43)
                if to_edge >= 0.07 and v <= box_k:
                    break
                if number < 0 or (to_edge < 0.013 and v > to_edge):
                    continue
                bound = -mean + number * log_rate - lgamma(number + 1)
                if v == 0 or log(v) + inverse_k - log(a_k / (to_edge * to_edge) + b_k) <= bound:
                    break
        elif mean == 0:
            number = 0
        else:
            least, product, number = math.exp(-mean), uniform(), 0
            while product > least:
                product *= uniform()
                number += 1
        out.append(number)
    stream.close()
    return np.array(out, np.float64).reshape(shape)


# log(k!) minus Stirling's formula, for k from 0 to 9; for larger k `_tail` uses its series.
_TAILS = [math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi)) for k in range(10)]


def _tail(k: float) -> float:
    if k < 10:
        return _TAILS[int(k)]
    square = (k + 1) * (k + 1)
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)


def _many_trials(count: float, p: float, uniform: Callable[[], float]) -> float:
    """Return a binomial number with count * p >= 10, by Hörmann's algorithm BTRS."""
    log = math.log
    spread = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = count * p + 0.5
    box = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * spread
    mode = math.floor((count + 1) * p)
    while True:
        u, v = uniform() - 0.5, uniform()
        to_edge = 0.5 - abs(u)
        if to_edge == 0:
            continue
        k = math.floor((2 * a / to_edge + b) * u + center)
        if to_edge >= 0.07 and v <= box:
            return k
        if k < 0 or k > count:
            continue
        v *= alpha / (a / (to_edge * to_edge) + b)
        bound = (
            (mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1)))
            + (count + 1) * log((count - mode + 1) / (count - k + 1))
            + (k + 0.5) * log(odds * (count - k + 1) / (k + 1))
            + _tail(mode) + _tail(count - mode) - _tail(k) - _tail(count - k)
        )  # fmt: skip
        if v == 0 or log(v) <= bound:
            return k


def _few_trials(count: float, p: float, uniform: Callable[[], float]) -> float:
    """Return a binomial number by summing the geometrically distributed waiting times between successes."""
    scale = math.log1p(-p)
    total, successes = 0.0, 0
    if scale == 0:
        uniform()
        return 0.0
    while True:
        u = uniform()
        total += math.ceil(math.log(u) / scale) if u else math.inf
        if total > count:
            return successes
        successes += 1


@twin
def binomials(count: Array, p: Array, source: Source) -> Array:
    """Return numbers of successes in `count` trials of probability `p`, float64 arrays of one shape.

    Source: Hörmann, "The Generation of Binomial Random Variates", 1993; for small means the waiting times:
        Devroye, "Non-Uniform Random Variate Generation", 1986, X.4.3.
    """
    stream = _Stream(source, 3 * count.size)
    out = []
    for n, p_k in zip(count.ravel().tolist(), p.ravel().tolist(), strict=True):
        if n <= 0 or p_k <= 0:
            number = 0.0
        elif p_k >= 1:
            number = n
        elif p_k != p_k or n != n:
            number = math.nan
        else:
            q = p_k if p_k <= 0.5 else 1 - p_k
            number = (_many_trials if n * q >= 10 else _few_trials)(n, q, stream.next)
            number = number if p_k <= 0.5 else n - number
        out.append(number)
    stream.close()
    return np.array(out, np.float64).reshape(count.shape)


# Kernels of ops -----------------------------------------------------------------------------------


def _check_single_or_double(kernel: str, x: Array) -> None:
    """Raise PyTorch's error for dtypes other than float32 and float64."""
    if x.dtype not in (np.float32, np.float64):
        raise refused(kernel, x)


def poisson(x: Array, source: Source) -> Array:
    """Return numbers of the Poisson distributions of the rates `x`, in their dtype."""
    check_floating("poisson_cpu", x)
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            if not x.min() >= 0 or np.isinf(x).any():
                raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
            out[...] = poissons(x.astype(np.float64), source)
    return out


def binomial(count: Array, p: Array, source: Source) -> Array:
    """Return numbers of successes in `count` trials of probability `p`, in their dtype."""
    out = np.empty_like(count, shape=np.broadcast_shapes(count.shape, p.shape), order="C")
    _check_single_or_double("binomial_cpu", out)
    if p.dtype != count.dtype:
        raise RuntimeError(f"Found dtype {tensor_name(p)} but expected {tensor_name(count)}")
    if out.size:
        count, p = np.broadcast_arrays(count, p)
        with source.lock:
            out[...] = binomials(count.astype(np.float64), p.astype(np.float64), source)
    return out


def gamma(x: Array, source: Source) -> Array:
    """Return numbers of the gamma distributions of shape `x` and rate 1, in its dtype."""
    _check_single_or_double("gamma_cpu", x)
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            np.copyto(out, gammas(x, source), casting="same_kind")
        # Like C's fmax: NaN becomes the smallest positive normal number.
        np.fmax(out, np.finfo(x.dtype).tiny, out=out)
    return out


def gamma_grad(x: Array, output: Array) -> Array:
    """Return the derivative of gamma numbers `output` with respect to their shape parameter `x`."""
    _check_single_or_double("_standard_gamma_grad_cpu", x)
    x, output = np.broadcast_arrays(x, output)
    return implicit.gamma_slope(x.astype(np.float64), output.astype(np.float64)).astype(x.dtype)


def dirichlet(x: Array, source: Source) -> Array:
    """Return numbers of the Dirichlet distributions whose concentrations are in the last dimension of `x`."""
    _check_single_or_double("dirichlet", x)
    out = np.empty_like(x, order="C")
    if out.size:
        with source.lock:
            numbers = gammas(x.astype(np.float64), source)
        numbers = np.fmax(numbers, np.finfo(np.float64).tiny)
        if x.ndim:
            numbers /= np.add.reduce(numbers, -1, keepdims=True)
        else:
            numbers = np.ones(())
        greatest = np.nextafter(x.dtype.type(1), x.dtype.type(0))
        out[...] = np.clip(numbers, np.finfo(x.dtype).tiny, greatest)
    return out


def beta_grad(x: Array, alpha: Array, total: Array) -> Array:
    """Return the derivative by `alpha` of numbers `x` of Beta(alpha, total - alpha), divided by 1 - x."""
    _check_single_or_double("_dirichlet_grad_cpu", x)
    arrays = [each.astype(np.float64) for each in np.broadcast_arrays(x, alpha, total)]
    return implicit.beta_slope(*arrays).astype(x.dtype)
