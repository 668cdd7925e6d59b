"""Elementwise powers, exponentials, logarithms and steps that NumPy lacks, or computes otherwise than PyTorch."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from . import activation, elementary
from . import complex as complexes
from .activation import widened
from .checks import VECTORS, check_fits, in_single, refused
from .dtypes import FLOATS
from .layouts import arranged
from .native import twin
from .parallel import takes_out, threaded
from .reduce import in_rows
from .special import as_floating

Array = Any


def _of_floats(ufunc: Any, name: str, x: Array, y: Array) -> Array:
    """Return `ufunc(x, y)` of two floating-point operands, with PyTorch's error for integers.

    bfloat16 is computed in float32.
    """
    if x.dtype.kind == "f":
        return ufunc(x, y)
    if x.dtype.kind == "c" and ufunc is np.logaddexp:
        return complexes.logaddexp(x, y)
    if x.dtype.kind != "V":
        raise refused(name, x)
    return ufunc(x.astype(np.float32), y.astype(np.float32)).astype(x.dtype)


def _in_float32(function: Any, *operands: Any) -> Array:
    """Return a function of one or two arrays; 16-bit floats are computed in float32."""
    kind = operands[0].dtype
    if kind.itemsize != 2 or kind.kind in "iu":
        return function(*operands)
    return function(*map(widened, operands)).astype(kind)


# Powers -------------------------------------------------------------------------------------------


@twin
def power(a: Any, b: Any) -> Array:
    """Return `a ** b` of arrays or numbers."""
    if isinstance(b, (int, float)) and not isinstance(b, bool):
        if b == 2:
            return np.square(a)
        if b == 3:
            return a * a * a if a.dtype != np.float16 else power(a.astype(np.float32), 3).astype(a.dtype)
        if b == 1:
            return a.copy()
        if b == 0:
            return np.ones_like(a)
        if a.dtype.itemsize == 2 and a.dtype.kind in FLOATS:
            check_fits(a, b)
        if a.dtype.kind == "V" and b == -2:
            return np.reciprocal(np.square(a))
        if b == -0.5 and a.dtype.kind == "V":
            return rsqrt(a)
        if a.dtype.kind == "V":
            return power(a.astype(np.float32), b).astype(a.dtype)
        if a.dtype.itemsize < 4:  # `np.power`, like C's pow: (-0.0) ** 0.5 is 0
            wide = np.atleast_1d(a.astype(np.float32))  # (for 0-d arrays and 0.5 NumPy takes the root)
            exponent = np.full_like(wide, a.dtype.type(b))  # (PyTorch, too, rounds the exponent)
            return np.power(wide, exponent).astype(a.dtype).reshape(a.shape)
        if b == 0.5:
            return np.sqrt(a)
        if b == -1:
            return np.reciprocal(a)
        if b == -2:
            return np.reciprocal(np.square(a))
        if b == -0.5:
            return np.reciprocal(np.sqrt(a))
    elif getattr(b, "dtype", None) is not None:
        if b.dtype.kind == "b":
            raise refused("pow", b)
        if b.dtype.kind == "V" and not b.ndim and hasattr(a, "dtype"):
            return power(a, float(b))  # a number that was converted to bfloat16
        if b.dtype.kind == "i" and np.any(b < 0):
            # Integers: 1 / a ** -b rounded towards zero, so 0 except where a is 1 or -1.
            out = np.power(a, np.where(b < 0, b & 1, b))
            return np.where((b < 0) & (np.abs(a) != 1), np.zeros_like(out), out)
    return np.power(a, b)


def power_of_number(a: Any, b: Any) -> Array:
    """Return a number to the power `b`, in C order, as in PyTorch."""
    return in_rows(power(a, b))


def square(a: Array) -> Array:
    """Return `a * a`; of booleans as integers."""
    return np.square(a.astype(np.int64) if a.dtype.kind == "b" else a)


@twin
def rsqrt(x: Array) -> Array:
    """Return `1 / sqrt(x)`."""
    if x.dtype.itemsize != 2 or not x.flags.c_contiguous:
        return np.reciprocal(np.sqrt(x))
    # Of 16 bits PyTorch rounds the root only where it computes no whole vectors.
    out = np.reciprocal(np.sqrt(x.astype(np.float32))).astype(x.dtype)
    rest = x.size % VECTORS
    if rest:
        out.reshape(-1)[-rest:] = np.reciprocal(np.sqrt(x.reshape(-1)[-rest:]))
    return out


def _ldexp(a: Array, b: Array) -> Array:
    power = np.exp2(b)
    if a.dtype.kind != "c":
        power = in_rows(power)
    return arranged(a * power, a, power)


ldexp = functools.partial(_in_float32, _ldexp)
hypot = functools.partial(_of_floats, np.hypot, "hypot_cpu")


def frexp(x: Array) -> tuple[Array, Array]:
    """Return mantissas of magnitude in [0.5, 1), and exponents, which are 0 for infinities and NaN."""
    mantissa, exponent = np.frexp(widened(x))
    return mantissa.astype(x.dtype, copy=False), np.where(np.isfinite(x), exponent, 0).astype(np.int32)


def power_of_two(x: Array) -> Array:
    """Return 2 to the power of the exponent that `frexp` gives for x."""
    return np.exp2(frexp(x)[1].astype(x.dtype))


def rest_of_square(x: Array) -> Array:
    """Return `1 - x * x`, of real numbers with its digits near 1."""
    return 1 - x * x if x.dtype.kind == "c" else (1 - x) * (1 + x)


# Logarithms ---------------------------------------------------------------------------------------

logaddexp = functools.partial(_of_floats, np.logaddexp, "logaddexp_cpu")
logaddexp2 = functools.partial(_of_floats, np.logaddexp2, "logaddexp2_cpu")


def xlogy(a: Array, b: Array) -> Array:
    """Return `a * log(b)`, which is 0 where a is 0."""
    return np.where(np.equal(a, 0) & ~np.isnan(b), np.zeros_like(b), a * elementary.log(b))


def xlog1py(a: Array, b: Array) -> Array:
    """Return `a * log(1 + b)`, which is 0 where a is 0."""
    value = a * elementary.log1p(b)
    return np.where(np.equal(a, 0) & ~np.isnan(b), np.zeros_like(value), value)


@twin
@threaded
def entropy(x: Array) -> Array:
    """Return `-x * log(x)`: 0 at 0, and minus infinity for negative numbers."""
    positive = x > 0
    value = -x * elementary.log(np.where(positive, x, 1))
    return np.where(positive, value, np.where(x == 0, x * 0, np.where(x < 0, -np.inf, x))).astype(x.dtype)


@twin
@threaded
def log_odds(x: Array) -> Array:
    """Return `log(x / (1 - x))`."""
    return elementary.log(x / (x.dtype.type(1) - x))


def logit(x: Array, eps: Any = None) -> Array:
    """Return `log(x / (1 - x))`; x is first clamped to [eps, 1 - eps], unless `eps` is None or negative."""
    z = as_floating(x)
    one = z.dtype.type(1)
    if eps is not None and eps >= 0:
        low = z.dtype.type(eps)  # (in 16 bits PyTorch rounds at every step)
        z = np.where(z < low, low, np.where(z > one - low, one - low, z))
    return log_odds(z)


def _log_sums(x: Array, dim: int) -> Array:
    """Return the logarithms of the cumulative sums of exp(x), accumulated in a wider dtype as in PyTorch."""
    if x.dtype.kind == "c":
        return complexes.log_sums(x, dim)
    wide = x.astype(np.float32 if x.dtype.itemsize == 2 else np.float64, copy=False)
    return np.logaddexp.accumulate(wide, dim).astype(x.dtype, copy=False)


def logcumsumexp(x: Array, dim: int) -> Array:
    """Return the logarithm of the cumulative sum of exp(x) along `dim`."""
    if x.dtype.kind in "iub":
        raise refused("logcumsumexp_out_cpu", x)
    if not x.ndim or not x.size:
        return x.copy()
    return _log_sums(x if x.flags.c_contiguous else x.copy("C"), dim)


def _signed_sums(weights: Array, a: Array, b: Array, dim: int, reverse: bool) -> Array:
    """Return exp(b) * cumsum(weights * exp(a)) along `dim`, computed with logarithms to avoid overflow."""
    if weights.dtype.kind == "c":
        return complexes.signed_sums(weights, a, b, dim, reverse)
    flip = (slice(None),) * (dim % weights.ndim) + (slice(None, None, -1 if reverse else 1),)
    logs, exponents = np.log(np.abs(weights)) + a, b
    nothing = logs.dtype.type(-np.inf)
    positive, negative = (
        np.exp(_log_sums(np.where(chosen, logs, nothing)[flip], dim)[flip] + exponents)
        for chosen in (weights > 0, weights < 0)
    )
    return positive - negative


def sums_after(v: Array, x: Array, out: Array, dim: int) -> Array:
    """Return for each i the sum over j >= i of v_j exp(x_i - out_j)."""
    return _signed_sums(v, -out, x, dim, True)


def sums_before(v: Array, x: Array, out: Array, dim: int) -> Array:
    """Return for each j the sum over i <= j of v_i exp(x_i - out_j): the transpose of `sums_after`."""
    return _signed_sums(v, x, -out, dim, False)


# Angles -------------------------------------------------------------------------------------------


@takes_out
def degrees(a: Array, out: Any = None) -> Array:
    """Return angles in degrees, from radians."""
    if a.dtype.itemsize < 4:
        return np.rad2deg(a, out)
    return np.multiply(a, 180 / math.pi, out)  # (in float32 the last bit of NumPy's factor is wrong)


@twin
@threaded
@in_single
def sinc(x: Array) -> Array:
    """Return `sin(pi x) / (pi x)`, 1 at 0."""
    whole = np.rint(x.real)
    sine = elementary.sin((x - whole) * math.pi) * (1 - 2 * (whole % 2))
    return np.where(x == 0, 1, sine / (x * math.pi))


def angle(a: Array) -> Array:
    """Return the angle in the complex plane; of real numbers pi if negative, else 0; NaN for NaN."""
    if a.dtype.kind == "c":
        return np.angle(a)
    return np.where(np.isnan(a), a, np.where(a < 0, math.pi, 0)).astype(a.dtype)


# Steps --------------------------------------------------------------------------------------------


@activation.in_epilogue(lambda: ("relu",))
@takes_out
def relu(a: Array, out: Any = None) -> Array:
    """Return `max(a, 0)` of numbers, with PyTorch's error for booleans."""
    if a.dtype.kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    return activation.relu(a) if out is None else activation.relu(a, out=out)


relu.ufunc = activation.relu  # type: ignore[attr-defined]


def heaviside(x: Array, values: Array) -> Array:
    """Return 0 where x is negative or NaN, 1 where it is positive, and `values` where it is 0."""
    return np.where(x == 0, values, (x > 0).astype(x.dtype))
