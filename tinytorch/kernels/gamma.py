"""The gamma function and related functions on arrays: log gamma and its derivatives, zeta, incomplete gamma.

The tables are polynomials interpolated at Chebyshev points with 45 digits, each to 1e-18 of the function's smallest
value on its interval, which is less than rounding errors. Numbers of formulas are those in the NIST Digital Library
of Mathematical Functions (DLMF, https://dlmf.nist.gov).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from .native import twin
from .special import as_floating, erfc, fill, in_double, mapped, polynomial

Array = Any

# log(gamma(x)) / (x - 1) on [0.5, 1.5], log(gamma(x)) / (x - 2) on [1.5, 2.5], log(gamma(x)) on [2.5, 4.5], [4.5, 10];
# digamma(x) / (x - its root) on [1, 2], digamma(x) on [2, 4.5], [4.5, 10]; (t - log(1 + t)) / t² on [-0.32, 0.32].
_LOG_NEAR_1 = (
    -0.5772156649015329, 0.4112335167120566, -0.10017140859663287, 0.03382260105347253, -0.01296159693929091,
    0.005298661781194233, -0.0022507796370536217, 0.000980544292606348, -0.00043489947534864617,
    0.0001955067598998176, -8.882228977917857e-05, 4.070006275740668e-05, -1.8782301596444485e-05,
    8.720131172623906e-06, -4.069377017532745e-06, 1.9063116444841117e-06, -8.967663000243577e-07,
    4.2666323095050014e-07, -2.0276573600688865e-07, 9.004201809149558e-08, -4.1872655127847745e-08,
    2.8943959482529098e-08, -1.4930114211673615e-08, -2.0530219606907244e-09, 1.805068039184445e-09,
    5.761159089535886e-09, -3.1825086325769707e-09, -1.6383867000496465e-09, 9.120348154607619e-10,
    4.656918526401498e-10, -2.414820959737613e-10,
)  # fmt: skip
_LOG_NEAR_2 = (
    0.42278433509846713, 0.1612335167120566, -0.016838075263299536, 0.0025726010534730787, -0.000461596939291756,
    9.032844783544811e-05, -1.8636779875052926e-05, 3.981793164267811e-06, -8.716982449081134e-07,
    1.942529426790968e-07, -4.387339030049162e-08, 1.001332635032469e-08, -2.3043102744274226e-09,
    5.339625498454325e-10, -1.2481294697143873e-10, 2.924893264533834e-11, -6.566215046625873e-12,
    1.5405403077263189e-12, -5.117684453811745e-13, 1.2348124407415191e-13,
)  # fmt: skip
_LOG_TO_4 = (
    1.2009736023470743, 1.103156640645243, 0.1651788780501174, -0.018034008606954557, 0.0029294103673858513,
    -0.0005666333292230256, 0.00012090163689344601, -2.7452005463123485e-05, 6.503520690969838e-06,
    -1.5883616056169636e-06, 3.96824007542135e-07, -1.0087706621602323e-07, 2.599650664239172e-08,
    -6.7727434265912624e-09, 1.7790467515463558e-09, -4.709521754029504e-10, 1.267942224847002e-10,
    -3.4022677144173584e-11, 8.156686752647197e-12, -2.1713745278411385e-12, 1.0069288982923977e-12,
    -2.7946397982504617e-13,
)  # fmt: skip
_LOG_TO_10 = (
    7.0521854507385395, 5.253747198930274, 0.5591683503822126, -0.07566233204403222, 0.015329769445208407,
    -0.0037205794984157357, 0.0010015955793065965, -0.0002884027667048191, 8.705051364221406e-05,
    -2.720367657309799e-05, 8.730202698024833e-06, -2.860895037879011e-06, 9.533733037496606e-07,
    -3.22120757281862e-07, 1.1021075682268836e-07, -3.804865942224104e-08, 1.3052967198768977e-08,
    -4.555688535819733e-09, 1.7998894623130534e-09, -6.504474616046485e-10, 1.0302274122268622e-10,
    -3.1828379438625144e-11, 6.040870804625286e-11, -2.2615553207602107e-11,
)  # fmt: skip
_PSI_TO_2 = (
    0.9510558760318328, -0.21181371064073024, 0.06013562106019684, -0.01855061538173984, 0.005936795278301761,
    -0.001935066664735652, 0.0006368880303865817, -0.00021074841288961643, 6.995018825112794e-05,
    -2.3258232466707952e-05, 7.741234508636364e-06, -2.578134894751126e-06, 8.589060721930695e-07,
    -2.8620904099739414e-07, 9.543298288278275e-08, -3.181266980138485e-08, 1.0527692435026686e-08,
    -3.5032218996509724e-09, 1.2469984616707403e-09, -4.197772636734229e-10, 8.734528429142953e-11,
    -2.7468150389464952e-11, 2.918622732168261e-11, -1.0015117602062808e-11,
)  # fmt: skip
_PSI_TO_4 = (
    1.016990911068179, 0.4497478628869748, -0.1001226149524337, 0.029437941186411094, -0.009650870763524024,
    0.0033469158371319, -0.0011997687564708041, 0.000439215550584642, -0.0001630580303134886, 6.112228567284198e-05,
    -2.3068313928460914e-05, 8.748961632723542e-06, -3.3299945042968375e-06, 1.2708081744801923e-06,
    -4.859060866913767e-07, 1.8595863610836167e-07, -7.126773393292779e-08, 2.75230001187125e-08,
    -1.0584877605795721e-08, 3.830621901417019e-09, -1.4535161780372188e-09, 7.640302587514016e-10,
    -3.044954779328799e-10, 1.0765639535756408e-13, 3.722345511906187e-12, 3.7552309449000045e-11,
    -1.5018705243332043e-11,
)  # fmt: skip
_PSI_TO_10 = (
    1.910453526883736, 0.4066678911870634, -0.08254072586621641, 0.0222978464657787, -0.006764689997148364,
    0.0021852994451713108, -0.0007341161328535576, 0.00025323786543515335, -8.903022017296521e-05,
    3.174613782015568e-05, -1.1443544285381904e-05, 4.160407262690824e-06, -1.522889614208246e-06,
    5.60428138606743e-07, -2.0719503131359677e-07, 7.711132682341008e-08, -2.873428987065801e-08,
    1.0408400080990632e-08, -3.8660851074078916e-09, 1.7607154650597304e-09, -6.792891362210681e-10,
    5.942010940460818e-11, -1.540922755369307e-11, 7.706355544825722e-11, -3.021548445863668e-11,
)  # fmt: skip
_LOG_REST = (
    0.5, -0.10666666666666667, 0.025600000000000005, -0.006553599999999857, 0.001747626666666513,
    -0.0004793490285751494, 0.0001342177280028549, -3.817748703121744e-05, 1.0995116250430117e-05,
    -3.198579573829624e-06, 9.382500764464876e-07, -2.771434122350235e-07, 8.235098681169253e-08,
    -2.4598700355632495e-08, 7.379981508984782e-09, -2.217181591399e-09, 6.696353917966154e-10,
    -2.0914679170076595e-10, 6.391333649642185e-11, -1.5168585293276477e-11, 4.4931269946066905e-12,
    -3.0991654291481264e-12, 9.759138743078377e-13,
)  # fmt: skip
_ROOT, _ROOT_REST = 1.4616321449683622, 9.549995429965697e-17  # of digamma, in two parts

_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330,
              854513 / 138, -236364091 / 2730)  # fmt: skip
# The asymptotic series by powers of 1 / x²: of log(gamma(x)) (DLMF 5.11.1) and of digamma(x) (DLMF 5.11.2).
_STIRLING = tuple(b / ((2 * k + 1) * (2 * k + 2)) for k, b in enumerate(_BERNOULLI[:9]))
_ASYMPTOTIC = tuple(-b / (2 * k + 2) for k, b in enumerate(_BERNOULLI[:10]))


def _from_integer(x: Array) -> Array:
    """Return `x` minus the nearest integer, exactly; it determines sin(pi x) up to the sign."""
    return x - np.rint(x)


# The logarithm of gamma ---------------------------------------------------------------------------


def _stirling(x: Array) -> Array:
    """Return log(gamma(x)) - ((x - 1/2) log(x) - x + log(2 pi) / 2) for x >= 10."""
    inverse = 1 / x
    return polynomial(inverse * inverse, _STIRLING) * inverse


def _log_gamma_of_large(x: Array) -> Array:
    value = (x - 0.5) * np.log(x) - x
    value += 0.5 * math.log(2 * math.pi)
    value += _stirling(x)
    value[np.isinf(x)] = np.inf
    return value


def _log_gamma_of_negative(x: Array) -> Array:
    """Return log|gamma(x)| for x <= -0.5, by reflection (DLMF 5.5.3)."""
    sine = np.abs(np.sin(math.pi * _from_integer(x)))
    value = math.log(math.pi) - np.log(-x * sine) - _log_gamma(-x)
    value[(sine == 0) | np.isinf(x)] = np.inf
    return value


def _log_gamma(x: Array) -> Array:
    """Return the logarithm of the absolute value of the gamma function."""
    out = np.full_like(x, np.nan)
    fill(out, (x >= 0.5) & (x < 1.5), lambda x: (x - 1) * mapped(x, 0.5, 1.5, _LOG_NEAR_1) + 0.0, x)
    fill(out, (x >= 1.5) & (x < 2.5), lambda x: (x - 2) * mapped(x, 1.5, 2.5, _LOG_NEAR_2), x)
    fill(out, (x >= 2.5) & (x < 4.5), lambda x: mapped(x, 2.5, 4.5, _LOG_TO_4), x)
    fill(out, (x >= 4.5) & (x < 10), lambda x: mapped(x, 4.5, 10, _LOG_TO_10), x)
    fill(out, x >= 10, _log_gamma_of_large, x)
    fill(out, np.abs(x) < 0.5, lambda x: _log_gamma(1 + x) - np.log(np.abs(x)), x)
    fill(out, x <= -0.5, _log_gamma_of_negative, x)
    return out


@twin
def lgamma(x: Array) -> Array:
    """Return the logarithm of the absolute value of the gamma function."""
    return in_double(_log_gamma, x)


# Its derivatives ----------------------------------------------------------------------------------


def _digamma_of_large(x: Array) -> Array:
    inverse = 1 / x
    square = inverse * inverse
    return np.log(x) - 0.5 * inverse + polynomial(square, _ASYMPTOTIC) * square


def _digamma_of_negative(x: Array) -> Array:
    """Return digamma(x) for x <= 0, by reflection (DLMF 5.5.4)."""
    near = _from_integer(x)
    value = _digamma(1 - x) - math.pi / np.tan(math.pi * near)
    value[near == 0] = np.nan
    zero = x == 0
    value[zero] = np.copysign(np.inf, -x[zero])
    return value


def _digamma(x: Array) -> Array:
    """Return the derivative of `lgamma`."""
    out = np.full_like(x, np.nan)
    fill(out, (x >= 1) & (x < 2), lambda x: ((x - _ROOT) - _ROOT_REST) * mapped(x, 1, 2, _PSI_TO_2), x)
    fill(out, (x >= 2) & (x < 4.5), lambda x: mapped(x, 2, 4.5, _PSI_TO_4), x)
    fill(out, (x >= 4.5) & (x < 10), lambda x: mapped(x, 4.5, 10, _PSI_TO_10), x)
    fill(out, x >= 10, _digamma_of_large, x)
    fill(out, (x > 0) & (x < 1), lambda x: _digamma(1 + x) - 1 / x, x)
    fill(out, x <= 0, _digamma_of_negative, x)
    return out


@twin
def digamma(x: Array) -> Array:
    """Return the derivative of `lgamma`."""
    return in_double(_digamma, x)


def _hurwitz(s: Array, q: Array) -> Array:
    """Return the sum of (q + k) ** -s over k >= 0 for s > 1, q > 0: Euler and Maclaurin's formula (DLMF 25.11.5)."""
    total = np.zeros_like(q)
    for _ in range(10):
        total += np.power(q, -s)
        q = q + 1
    power = np.power(q, -s)
    total += power * q / (s - 1) + 0.5 * power
    factor = s * power / q
    for k, bernoulli in enumerate(_BERNOULLI):
        total += factor * (bernoulli / math.factorial(2 * k + 2))
        factor *= (s + (2 * k + 1)) * (s + (2 * k + 2)) / (q * q)
    return total


def _hurwitz_of_negative(s: Array, q: Array) -> Array:
    """Return the zeta function for an integer s and q < 0, as sums with positive arguments."""
    near = _from_integer(q)
    pole, below = near == 0, near < 0
    up, down = np.where(below, 1 + near, near), np.where(below, -near, 1 - near)
    up, down = (np.where(pole, 1, q) for q in (up, down))
    sign = np.where(np.fmod(s, 2) == 0, 1.0, -1.0)
    value = _hurwitz(s, up) + sign * (_hurwitz(s, down) - _hurwitz(s, 1 - q))
    value[np.rint(s) != s] = np.nan
    value[pole] = np.inf
    return value


def _zeta(s: Array, q: Array) -> Array:
    """Return Hurwitz' zeta function."""
    out = np.full_like(q, np.nan)
    fill(out, (s > 1) & (q > 0) & np.isfinite(q), _hurwitz, s, q)
    fill(out, (s > 1) & (q < 0) & np.isfinite(q), _hurwitz_of_negative, s, q)
    out[~(s <= 1) & (q <= 0) & (np.floor(q) == q)] = np.inf
    limit = s == np.inf
    out[limit & (q < 1)] = np.inf
    out[limit & (q == 1)] = 1
    out[s == 1] = np.inf
    return out


zeta = functools.partial(in_double, _zeta)


def _polygamma(n: int, x: Array) -> Array:
    sign = 1.0 if n % 2 else -1.0
    factorial = math.factorial(n) if n <= 170 else math.inf
    out = sign * factorial * _zeta(np.full_like(x, n + 1), x)
    if n == 1:
        out[x == np.inf] = 0
    return out


@twin
def polygamma(x: Array, n: int) -> Array:
    """Return the n-th derivative of `digamma` (DLMF 5.15.2 and, for n = 1, by reflection, 5.15.6)."""
    x = as_floating(x)
    return in_double(functools.partial(_polygamma, n), x) if n else digamma(x)


def mvlgamma(x: Array, p: int) -> Array:
    """Return the logarithm of the multivariate gamma function of dimension p."""
    if x.dtype == bool:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    x = as_floating(x)
    wide = x.astype(np.float64)
    total: Any = p * (p - 1) / 4 * math.log(math.pi)
    for j in range(p):
        total = total + lgamma(wide - j / 2)
    return total.astype(x.dtype, "C")


# Incomplete gamma functions -----------------------------------------------------------------------


def _rest(a: Array, x: Array) -> tuple[Array, Array]:
    """Return t = x / a - 1, and t - log(1 + t)."""
    t = (x - a) / a
    out = t - np.log(x / a)
    fill(out, np.abs(t) < 0.32, lambda t: t * t * mapped(t, -0.32, 0.32, _LOG_REST), t)
    return t, out


def _prefix(a: Array, x: Array) -> Array:
    """Return x ** a * exp(-x) / gamma(a)."""
    out = np.exp(a * np.log(x) - x - _log_gamma(a))
    fill(out, a >= 10, lambda a, x: np.exp(-a * _rest(a, x)[1] - _stirling(a)) * np.sqrt(a / (2 * math.pi)), a, x)
    return out


def _iterated(step: Any, done: Any, *state: Array) -> Array:
    """Return the first array of the state after as many steps as each element needs, 2000 at most.

    Args:
        step: takes the number of the step and the state; returns the next state.
        done: takes the state; returns a mask of the elements that have converged.
        *state: the initial arrays.
    """
    out = np.empty_like(state[0])
    places = np.flatnonzero(np.ones_like(out))
    for k in range(1, 2001):
        state = step(k, *state)
        if k % 8 and k < 2000:
            continue
        ready = done(*state) | np.isnan(state[0])
        if ready.all() or k == 2000:
            out[places] = state[0]
            break
        if ready.any():  # continue with the others
            out[places[ready]] = state[0][ready]
            rest = ~ready
            places, state = places[rest], tuple([array[rest] for array in state])
    return out


def _lower_series(a: Array, x: Array) -> Array:
    """Return P(a, x) by its power series (DLMF 8.11.4)."""

    def step(k: int, total: Array, term: Array, divisor: Array, x: Array) -> tuple[Array, ...]:
        divisor = divisor + 1
        term = term * (x / divisor)
        return total + term, term, divisor, x

    total = _iterated(step, lambda total, term, *_: np.abs(term) <= 1e-17 * total, 1 / a, 1 / a, a, x)
    return total * _prefix(a, x)


def _upper_fraction(a: Array, x: Array) -> Array:
    """Return Q(a, x) by its continued fraction (DLMF 8.9.2), evaluated with Lentz's method."""

    def step(k: int, value: Array, ratio: Array, b: Array, c: Array, d: Array, a: Array) -> tuple[Array, ...]:
        factor = k * (a - k)
        b = b + 2
        d = 1 / (b + factor * d)
        c = b + factor / c
        ratio = c * d
        return value * ratio, ratio, b, c, d, a

    b = x + 1 - a
    d = 1 / np.where(b == 0, 1e-300, b)
    value = _iterated(step, lambda _, ratio, *__: np.abs(ratio - 1) < 3e-16, d, d, b, np.full_like(x, 1e300), d, a)
    return value * _prefix(a, x)


def _upper_series(a: Array, x: Array) -> Array:
    """Return Q(a, x) for small x: 1 - P, with the leading term of the power series separate (DLMF 8.7.3)."""
    factor, total = np.ones_like(x), np.zeros_like(x)
    for k in range(1, 60):
        factor = factor * (-x / k)
        total = total + factor / (a + k)
    log = np.log(x)
    return -np.expm1(a * log - _log_gamma(1 + a)) - np.exp(a * log - _log_gamma(a)) * total


@functools.cache
def _temme() -> tuple[tuple[float, ...], ...]:
    """Return the coefficients of c_k(eta) in Temme's expansion, by powers of eta (DLMF 8.12.8 to 8.12.12).

    mu = lambda - 1 as a series in eta follows from mu * mu' = eta * (1 + mu); c_0 = 1 / mu - 1 / eta, and
    c_k = c_(k-1)' / eta - d / mu with the d for which it is finite at eta = 0.
    """
    from fractions import Fraction  # imported here because it is slow to import and rarely needed

    orders, powers = 13, 22
    count = powers + 2 * orders
    mu = [Fraction(0), Fraction(1)]
    for n in range(2, count + 3):
        mixed = sum((mu[k] * mu[n + 1 - k] * (n + 1 - k) for k in range(2, n)), Fraction(0))
        mu.append((mu[n - 1] - mixed) / (n + 1))
    inverse = [Fraction(1)]  # of mu / eta
    for n in range(1, count + 2):
        inverse.append(-sum((mu[k + 1] * inverse[n - k] for k in range(1, n + 1)), Fraction(0)))
    first = inverse[1 : count + 1]
    rows, row = [first], first
    for _ in range(1, orders):
        row = [(n + 2) * row[n + 2] - row[1] * first[n] for n in range(len(row) - 2)]
        rows.append(row)
    return tuple(_trimmed([float(coefficient) for coefficient in row[:powers]], k) for k, row in enumerate(rows))


def _trimmed(row: list[float], k: int) -> tuple[float, ...]:
    """Return row k without the last coefficients, which are negligible for |eta| < 0.35 and a > 20."""
    while len(row) > 1 and abs(row[-1]) * 0.35 ** (len(row) - 1) < 1e-18 * 20**k:
        row.pop()
    return tuple(row)


def _uniform(a: Array, x: Array, upper: bool) -> Array:
    """Return P or Q near x = a for large a, by Temme's uniform expansion (DLMF 8.12.3, 8.12.4, 8.12.7)."""
    t, half = _rest(a, x)  # half: eta² / 2
    eta = np.copysign(np.sqrt(2 * half), t)
    total = np.zeros_like(x)
    for row in reversed(_temme()):
        total = total / a + (polynomial(eta, row) if len(row) > 1 else row[0])
    rest = np.exp(-a * half) / np.sqrt(2 * math.pi * a) * total
    way = eta * np.sqrt(a / 2)
    return 0.5 * erfc(way) + rest if upper else 0.5 * erfc(-way) - rest


def _regions(a: Array, x: Array) -> tuple[Array, Array]:
    """Return masks of where P and Q are not limits, and of where the uniform expansion applies."""
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    distance = np.abs(x - a) / np.where(inside, a, 1)
    near = (a > 20) & (distance < 0.3) | (a > 200) & (distance < 4.5 / np.sqrt(np.where(inside, a, 1)))
    return inside, inside & near


def _at_the_ends(out: Array, a: Array, x: Array, start: float) -> Array:
    """Set the values at zeros and infinities: `start` at x = 0, 1 - start at infinity."""
    right = ~(a < 0) & ~(x < 0)  # also if one is NaN and the other determines the value
    out[right & np.isinf(x)] = 1 - start
    out[right & np.isinf(a)] = start
    out[right & np.isinf(a) & np.isinf(x)] = np.nan
    out[right & (x == 0)] = start
    out[right & (a == 0)] = np.nan
    out[right & (a == 0) & (x > 0)] = 1 - start
    return out


def _lower(a: Array, x: Array) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x)."""
    out = np.full_like(x, np.nan)
    inside, near = _regions(a, x)
    fill(out, near, lambda a, x: _uniform(a, x, upper=False), a, x)
    far, rising = inside & ~near, (x > 1) & (x > a)
    fill(out, far & rising, lambda a, x: 1 - _upper_fraction(a, x), a, x)
    fill(out, far & ~rising, _lower_series, a, x)
    return _at_the_ends(out, a, x, 0.0)


def _upper(a: Array, x: Array) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x)."""
    out = np.full_like(x, np.nan)
    inside, near = _regions(a, x)
    fill(out, near, lambda a, x: _uniform(a, x, upper=True), a, x)
    far = inside & ~near
    logs = np.log(np.where(inside, x, 1))
    by_lower = np.where(x > 1.1, x < a, np.where(x <= 0.5, a * logs < -0.4, x * 1.1 < a))
    fill(out, far & by_lower, lambda a, x: 1 - _lower_series(a, x), a, x)
    fill(out, far & ~by_lower & (x > 1.1), _upper_fraction, a, x)
    fill(out, far & ~by_lower & (x <= 1.1), _upper_series, a, x)
    return _at_the_ends(out, a, x, 1.0)


@twin
def igamma(a: Array, x: Array) -> Array:
    """Return the regularized lower incomplete gamma function, computed in float64."""
    return in_double(_lower, a, x)


@twin
def igammac(a: Array, x: Array) -> Array:
    """Return the regularized upper incomplete gamma function, computed in float64."""
    return in_double(_upper, a, x)
