"""Special functions (gamma, Bessel, normal distribution, orthogonal polynomials) and less common pointwise ops.

`torch.special` and the `torch` namespace share these functions. The special functions are computed in float64 by
`kernels/gamma.py`, `bessel.py`, `polynomials.py` and `special.py`, and rounded to the result's dtype.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.complex import HOLOMORPHIC, OWN
from tinytorch.core.op import in_place, op
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import bessel, gamma, limits, polynomials
from tinytorch.kernels import special as kernels
from tinytorch.kernels import transcendental as steps
from tinytorch.kernels.checks import refusing
from tinytorch.kernels.reduce import axis_of, int_of
from tinytorch.ops import arithmetic, compare, return_types
from tinytorch.ops.arguments import elementwise, exemplified, named, not_derived, not_implemented, op_of
from tinytorch.ops.arithmetic import abs, sgn, zero_gradient
from tinytorch.ops.register import no_such_call, pointwise, public
from tinytorch.ops.transcendental import exp, float_power_dtype, log, pow, sigmoid


def _no_half(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel with PyTorch's error for 16-bit floats."""
    return functools.partial(kernels.refusing_half, kernel, f"{name}_cpu")


# Gamma and related functions ----------------------------------------------------------------------


@elementwise(
    gamma.lgamma, floating=True, x=lambda g, x: g * digamma(x), also="special.gammaln", method=True, in_place=True,
    out="promoted",
)  # fmt: skip
def lgamma(x: Any) -> Any:
    """Return the logarithm of the absolute value of the gamma function.

    Example:
        >>> torch.lgamma(torch.tensor([0.5, 1.0, 5.0]))
        tensor([0.5724, 0.0000, 3.1781])

    Source: DLMF 5.11.1 (Stirling's series) for large arguments; 5.5.3 (reflection) for negative ones.
    """


@elementwise(
    gamma.digamma, floating=True, x=lambda g, x: g * polygamma(1, x), also="special.digamma special.psi", method=True,
    in_place=True, out="promoted",
)  # fmt: skip
def digamma(x: Any) -> Any:
    """Return the digamma function: the derivative of `lgamma`.

    Example:
        >>> torch.digamma(torch.tensor([1.0, 0.5]))
        tensor([-0.5772, -1.9635])

    Source: DLMF 5.11.2 (the asymptotic series) for large arguments; 5.5.4 (reflection) for negative ones.
    """


# PyTorch numbers the in-place form as a separate overload.
_polygamma, _polygamma_in_place = (
    op_of(gamma.polygamma, batch="elementwise", name=f"PolygammaBackward{k}", x=lambda g, x, n: g * polygamma(n + 1, x))
    for k in range(2)
)


@public(also="special.polygamma", out="promoted")
def polygamma(n: int, input: Tensor) -> Tensor:
    """Return the n-th derivative of `digamma`; for n = 0 `digamma` itself. RuntimeError if n is negative.

    Example:
        >>> torch.polygamma(1, torch.tensor([1.0, 0.5]))
        tensor([1.6449, 4.9348])

    Source: DLMF 5.15.2, in terms of Hurwitz' zeta function.
    """
    return _polygamma(input, _order(n))


def _order(n: Any) -> int:
    if type(n) is not builtins.int:
        n = int_of(n, "polygamma", "n")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return n


def polygamma_method(self: Tensor, n: int) -> Tensor:
    """Return the n-th derivative of `digamma`; see `polygamma`.

    Example:
        >>> torch.tensor([1.0, 0.5]).polygamma(1)
        tensor([1.6449, 4.9348])
    """
    return polygamma(n, self)


_write_polygamma = in_place(_polygamma_in_place, "polygamma_")


@public("", method="polygamma_")
def polygamma_(self: Tensor, n: int) -> Tensor:
    """In-place version of `polygamma`."""
    return _write_polygamma(self, _order(n))


def _mvlgamma_x(g: Tensor, x: Tensor, p: int) -> Tensor:
    slope = digamma(x)
    for j in range(1, p):
        slope = slope + digamma(x - j / 2)
    return g * slope


_mvlgamma = op_of(gamma.mvlgamma, batch="elementwise", own_layout=True, x=_mvlgamma_x)


@public(also="special.multigammaln", method=True, out="promoted")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """Return the logarithm of the multivariate gamma function of dimension `p`, which is at least 1.

    It is `p (p - 1) / 4 log(pi)` plus the sum of `lgamma(input - j / 2)` over j from 0 to p - 1.

    Example:
        >>> torch.mvlgamma(torch.tensor([1.5, 3.0]), 2)
        tensor([0.4516, 1.5502])
    """
    return _mvlgamma(input, _dimension(p))


def _dimension(p: Any) -> int:
    if type(p) is not builtins.int:
        p = int_of(p, "mvlgamma", "p")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return p


_write_mvlgamma = in_place(_mvlgamma, "mvlgamma_")


@public("", method="mvlgamma_")
def mvlgamma_(self: Tensor, p: int) -> Tensor:
    """In-place version of `mvlgamma`."""
    return _write_mvlgamma(self, _dimension(p))


def _density(x: Tensor, y: Tensor) -> Tensor:
    """Return the density at y of the gamma distribution of shape x: the derivative of `igamma` by y."""
    return exp((x - 1) * log(y) - y - lgamma(x))


@elementwise(
    functools.partial(refusing, gamma.igamma, "igamma_cpu", "biu"), x=not_derived("igamma: input"),
    y=lambda g, x, y: g * _density(x, y),
    also="special.gammainc", method=True, in_place=True, out="promoted", of_tensors=True,
)  # fmt: skip
def igamma(x: Any, y: Any) -> Any:
    """Return the regularized lower incomplete gamma function P(input, other).

    NotImplementedError: for integers; in backward, if the first argument requires grad, as in PyTorch.

    Example:
        >>> torch.igamma(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
        tensor([0.6321, 0.5940])

    Source: DLMF 8.11.4 (power series); 8.9.2 (continued fraction); 8.12 (Temme's expansion) if both are large.
    """


@elementwise(
    functools.partial(refusing, gamma.igammac, "igammac_cpu", "biu"), x=not_derived("igammac: input"),
    y=lambda g, x, y: -g * _density(x, y),
    also="special.gammaincc", method=True, in_place=True, out="promoted", of_tensors=True,
)  # fmt: skip
def igammac(x: Any, y: Any) -> Any:
    """Return the regularized upper incomplete gamma function Q(input, other) = 1 - P(input, other).

    NotImplementedError: for integers; in backward, if the first argument requires grad, as in PyTorch.

    Example:
        >>> torch.igammac(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))
        tensor([0.3679, 0.4060])

    Source: DLMF 8.11.4 (power series); 8.9.2 (continued fraction); 8.12 (Temme's expansion) if both are large.
    """


@elementwise(
    _no_half("zeta", gamma.zeta), name="special_zeta", floating=True, x=not_derived("zeta"),
    y=lambda g, x, y: g * -x * zeta(x + 1, y), public="special.zeta", out="promoted", operands="either",
)  # fmt: skip
def zeta(x: Any, y: Any) -> Any:
    """Return Hurwitz' zeta function, the sum of `(k + other) ** -input` over k >= 0.

    Example:
        >>> torch.special.zeta(torch.tensor([2.0, 4.0]), 1)
        tensor([1.6449, 1.0823])

    Source: DLMF 25.11.5 (Euler-Maclaurin formula).
    """


# The inverse error function -----------------------------------------------------------------------


def _of_one(name: str, kernel: Any, what: str, argument: str, result: str, slope: Any = None, **facts: Any) -> Any:
    """Return the op of one tensor of `torch.special`, from the formula of its gradient, if it has one."""
    call, shown = f"torch.tensor({argument})", f"special.{name}"
    facts = {"floating": True, "public": shown, "out": "promoted"} | facts
    return exemplified(f"special_{name}", kernel, what, call, result, shown, x=slope, **facts)


erfinv = exemplified(
    "erfinv", kernels.erfinv, "the inverse of `erf`", "torch.tensor([0.0, 0.5, -1.0])", "[0.0000, 0.4769,   -inf]",
    floating=True, also="special.erfinv", method=True, in_place=True, out="promoted",
    x=lambda g, out: g * (0.5 * math.sqrt(math.pi) * exp(out * out)),
)  # fmt: skip


# Bessel functions ---------------------------------------------------------------------------------


def _i1_x(g: Tensor, x: Tensor, slope: Callable[[Tensor], Tensor]) -> Tensor:
    """Return the gradient of `i1` or `i1e` from its derivative `slope`, which is 1 / 2 at 0."""
    tiny = compare.logical_not(arithmetic.abs(x) > limits.finfo(x.dtype).eps)
    return g * slope(x.masked_fill(tiny, 1)).masked_fill(tiny, 0.5)


i0 = exemplified(
    "i0", bessel.i0, "the modified Bessel function of the first kind of order 0", "torch.tensor([0.0, 1.0, -2.0])",
    "[1.0000, 1.2661, 2.2796]", floating=True, also="special.i0", method=True, in_place="function", out="promoted",
    x=lambda g, x: g * i1(x),
)  # fmt: skip


i0e = _of_one(
    "i0e", bessel.i0e, "`exp(-|x|) * i0(x)`", "[0.0, 1000.0]", "[1.0000, 0.0126]",
    lambda g, x, out: g * (i1e(x) - sgn(x) * out), node_name="SpecialI0E",
)  # fmt: skip


i1 = _of_one(
    "i1", bessel.i1, "the modified Bessel function of the first kind of order 1", "[0.0, 1.0, -2.0]",
    "[ 0.0000,  0.5652, -1.5906]", lambda g, x, out: _i1_x(g, x, lambda safe: i0(safe) - out / safe),
)  # fmt: skip


i1e = _of_one(
    "i1e", bessel.i1e, "`exp(-|x|) * i1(x)`", "[0.0, 1000.0]", "[0.0000, 0.0126]",
    lambda g, x, out: _i1_x(g, x, lambda safe: i0e(safe) - out * (sgn(safe) + 1 / safe)), node_name="SpecialI1E",
)  # fmt: skip


(
    bessel_j0, bessel_j1, bessel_y0, bessel_y1, modified_bessel_i0,
    modified_bessel_i1, modified_bessel_k0, modified_bessel_k1, scaled_modified_bessel_k0,
    scaled_modified_bessel_k1, airy_ai, spherical_bessel_j0,
) = (
    _of_one(name, _no_half(name, kernel), f"{what}; without a derivative, as in PyTorch", argument, result)
    for name, kernel, what, argument, result in (
        ("bessel_j0", bessel.bessel_j0, "the Bessel function of the first kind of order 0", "[0.0, 1.0, 10.0]",
         "[ 1.0000,  0.7652, -0.2459]"),
        ("bessel_j1", bessel.bessel_j1, "the Bessel function of the first kind of order 1", "[0.0, 1.0, 10.0]",
         "[0.0000, 0.4401, 0.0435]"),
        ("bessel_y0", bessel.bessel_y0, "the Bessel function of the second kind of order 0", "[0.0, 1.0, 10.0]",
         "[  -inf, 0.0883, 0.0557]"),
        ("bessel_y1", bessel.bessel_y1, "the Bessel function of the second kind of order 1", "[0.0, 1.0, 10.0]",
         "[   -inf, -0.7812,  0.2490]"),
        ("modified_bessel_i0", bessel.i0, "the modified Bessel function of the first kind of order 0",
         "[0.0, 1.0, 2.0]", "[1.0000, 1.2661, 2.2796]"),
        ("modified_bessel_i1", bessel.i1, "the modified Bessel function of the first kind of order 1",
         "[0.0, 1.0, 2.0]", "[0.0000, 0.5652, 1.5906]"),
        ("modified_bessel_k0", bessel.k0, "the modified Bessel function of the second kind of order 0",
         "[0.0, 1.0, 2.0]", "[   inf, 0.4210, 0.1139]"),
        ("modified_bessel_k1", bessel.k1, "the modified Bessel function of the second kind of order 1",
         "[0.0, 1.0, 2.0]", "[   inf, 0.6019, 0.1399]"),
        ("scaled_modified_bessel_k0", bessel.k0e, "`exp(x)` times the modified Bessel function K of order 0",
         "[0.0, 1.0, 1000.0]", "[   inf, 1.1445, 0.0396]"),
        ("scaled_modified_bessel_k1", bessel.k1e, "`exp(x)` times the modified Bessel function K of order 1",
         "[0.0, 1.0, 1000.0]", "[   inf, 1.6362, 0.0396]"),
        ("airy_ai", bessel.airy_ai, "Airy's function Ai", "[-2.0, 0.0, 2.0]", "[0.2274, 0.3550, 0.0349]"),
        ("spherical_bessel_j0", bessel.spherical_bessel_j0, "`sin(x) / x`, 1 at 0", "[0.0, 1.0, 2.0]",
         "[1.0000, 0.8415, 0.4546]"),
    )
)  # fmt: skip

# The normal distribution and the scaled error function --------------------------------------------


ndtr = _of_one(
    "ndtr", kernels.ndtr, "the standard normal cumulative distribution function, accurate even in the lower tail",
    "[-1.0, 0.0, 1.0]", "[0.1587, 0.5000, 0.8413]",
    lambda g, x: g * (exp(x * x / -2) * (1 / math.sqrt(2 * math.pi))),
)  # fmt: skip


ndtri = _of_one(
    "ndtri", _no_half("ndtri", kernels.ndtri), "the quantile function of the standard normal distribution, inverse of "
    "`ndtr`", "[0.0, 0.1587, 0.5]", "[   -inf, -0.9998,  0.0000]",
    lambda g, out: g * (math.sqrt(2 * math.pi) * exp(out * out / 2)),
)  # fmt: skip


_mills = pointwise("mills", kernels.mills, x=lambda g, x, out: -g * out * (x + out))


log_ndtr = _of_one(
    "log_ndtr", _no_half("log_ndtr", kernels.log_ndtr), "the logarithm of `ndtr`, computed without underflow",
    "[-100.0, 0.0]", "[-5.0055e+03, -6.9315e-01]", lambda g, x: g * _mills(x),
)  # fmt: skip


erfcx = _of_one(
    "erfcx", _no_half("erfcx", kernels.erfcx), "`exp(x * x) * erfc(x)`, computed without underflow",
    "[0.0, 1.0, 100.0]", "[1.0000, 0.4276, 0.0056]", lambda g, x, out: g * (2 * x * out - 2 / math.sqrt(math.pi)),
)  # fmt: skip


# Logarithms and exponentials ----------------------------------------------------------------------


entr = _of_one(
    "entr", steps.entropy, "`-x * log(x)`: 0 where x is 0, minus infinity where x is negative", "[-1.0, 0.0, 0.5]",
    "[  -inf, 0.0000, 0.3466]", lambda g, x: g * (-log(x) - 1),
)  # fmt: skip


@elementwise(
    steps.xlog1py, name="special_xlog1py", floating=True, node_name="SpecialXlog1Py",
    x=lambda g, x, y: xlog1py(g, y).masked_fill((x == 0) & (y <= -1), 0), y=lambda g, x, y: g * x / (y + 1),
    public="special.xlog1py", out="promoted", operands="either",
)  # fmt: skip
def xlog1py(x: Any, y: Any) -> Any:
    """Return `x * log(1 + y)`, which is 0 where x is 0.

    Example:
        >>> torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([-1.0, 1.0]))
        tensor([0.0000, 1.3863])
    """


@elementwise(
    steps.logaddexp2, x=lambda g, x, y: g * sigmoid((x - y) * math.log(2)),
    y=lambda g, x, y: g * sigmoid((y - x) * math.log(2)),
    method=True, out="promoted", of_tensors=True,
)  # fmt: skip
def logaddexp2(x: Any, y: Any) -> Any:
    """Return `log2(2 ** x + 2 ** y)`, computed without overflow.

    Example:
        >>> torch.logaddexp2(torch.tensor([1.0, 1000.0]), torch.tensor([1.0, 1000.0]))
        tensor([   2., 1001.])
    """


def _logit_x(g: Tensor, x: Tensor, eps: Any) -> Tensor:
    free = eps is None or eps < 0
    low, high = (0, 1) if free else (eps, 1 - eps)
    outside = (x < low) | (x > high)
    return (g / (x * (1 - x))).masked_fill(outside, math.nan if free else 0)


@public(also="special.logit", method=True, in_place="function", out="promoted")
@op(steps.logit, batch="elementwise", x=_logit_x)
def logit(x: Any, eps: Any = None) -> Any:
    """Return `log(x / (1 - x))`, the inverse of `sigmoid`; NaN outside [0, 1].

    If `eps` is given and not negative, `x` is first clamped to [eps, 1 - eps].

    Example:
        >>> torch.logit(torch.tensor([0.5, 0.9, 1.0]), eps=0.01)
        tensor([0.0000, 2.1972, 4.5951])
    """


_sums_after = op_of(
    steps.sums_after,
    complex=HOLOMORPHIC,
    name="LogcumsumexpBackward",
    v=lambda g, x, out, dim: _sums_before(g, x, out, dim),
    x=lambda g, v, x, out, dim: g * _sums_after(v, x, out, dim),
    out=lambda g, v, x, out, dim: -v * _sums_before(g, x, out, dim),
)
_sums_before = op_of(
    steps.sums_before,
    complex=HOLOMORPHIC,
    name="LogcumsumexpBackwardBackward",
    v=lambda g, x, out, dim: _sums_after(g, x, out, dim),
    x=lambda g, v, x, out, dim: v * _sums_after(g, x, out, dim),
    out=lambda g, v, x, out, dim: -g * _sums_before(v, x, out, dim),
)
_logcumsumexp = op_of(
    steps.logcumsumexp, complex=HOLOMORPHIC, x=lambda g, x, out, dim: _sums_after(g, x, out, dim) if x.ndim else g
)


@public(method=True, out="cummax")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the cumulative sum of `exp(input)` along `dim`, computed without overflow.

    Example:
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0, 1000.0]), 0)
        tensor([0.0000e+00, 6.9315e-01, 1.0000e+03])
    """
    return _logcumsumexp(input, axis_of(dim, input.ndim, "logcumsumexp"))


# Representation of numbers, integer functions and in-place forms ----------------------------------


@elementwise(
    steps.ldexp, floating=True, complex=HOLOMORPHIC, own_layout=True, x=lambda g, y: g * pow(2.0, y),
    y=lambda g, out: g * (out * math.log(2)), method=True, in_place="function", out="promoted", of_tensors=True,
)  # fmt: skip
def ldexp(x: Any, y: Any) -> Any:
    """Return `x * 2 ** y`.

    Example:
        >>> torch.ldexp(torch.tensor([1.5, 2.0]), torch.tensor([1, 10]))
        tensor([   3., 2048.])
    """


_power_of_two = pointwise("power_of_two", steps.power_of_two, x=None)
_frexp = op_of(steps.frexp, batch="elementwise", outputs=2, nondiff=(1,), x=lambda g, x: g[0] / _power_of_two(x))


@public(method=True, out="frexp")
def frexp(input: Tensor) -> Any:
    """Return signed mantissas of magnitude in [0.5, 1), and exponents: `input = mantissa * 2 ** exponent`.

    Example:
        >>> mantissa, exponent = torch.frexp(torch.tensor([1.0, -6.0]))
        >>> mantissa, exponent
        (tensor([ 0.5000, -0.7500]), tensor([1, 3], dtype=torch.int32))
    """
    if not input.dtype.is_floating_point:
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    return return_types.frexp(_frexp(input))


@elementwise(
    functools.partial(refusing, np.nextafter, "nextafter_cpu", "biu"), x=lambda g, x, y: g.masked_fill(x == y, 0),
    y=lambda g: zero_gradient(g),
    method=True, in_place=True, out="promoted", of_tensors=True,
)  # fmt: skip
def nextafter(x: Any, y: Any) -> Any:
    """Return the next floating-point number after `x` in the direction of `y`.

    Example:
        >>> torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0])) - 1
        tensor([1.1921e-07])
    """


@elementwise(
    functools.partial(refusing, np.gcd, "gcd_cpu", "fVb"), refuses="gcd_cpu", x=None, y=None,
    method=True, in_place="function", out="promoted", of_tensors=True,
)  # fmt: skip
def gcd(x: Any, y: Any) -> Any:
    """Return the greatest common divisor of integers.

    Example:
        >>> torch.gcd(torch.tensor([12, -8, 0]), torch.tensor([18, 12, 5]))
        tensor([6, 4, 5])
    """


@elementwise(
    functools.partial(refusing, np.lcm, "lcm_cpu", "fVb"), refuses="lcm_cpu", x=None, y=None,
    method=True, in_place="function", out="promoted", of_tensors=True,
)  # fmt: skip
def lcm(x: Any, y: Any) -> Any:
    """Return the least common multiple of integers.

    Example:
        >>> torch.lcm(torch.tensor([4, -3]), torch.tensor([6, 5]))
        tensor([12, 15])
    """


_heaviside = pointwise(
    "heaviside", steps.heaviside, node_name="NotImplemented", refuses="heaviside_cpu",
    x=not_implemented("heaviside"), y=not_implemented("heaviside"),
)  # fmt: skip
_write_heaviside = in_place(_heaviside)


def _check_step(input: Tensor, values: Tensor) -> None:
    if input.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@public(method=True, out="heaviside")
def heaviside(input: Tensor, values: Tensor) -> Tensor:
    """Return 0 where `input` is negative or NaN, 1 where it is positive, and `values` where it is 0.

    RuntimeError: the dtypes differ; in backward always, since there is no derivative, as in PyTorch.

    Example:
        >>> torch.heaviside(torch.tensor([-1.5, 0.0, 2.0]), torch.tensor([0.5]))
        tensor([0.0000, 0.5000, 1.0000])
    """
    _check_step(input, values)
    return _heaviside(input, values)


@public("", method="heaviside_")
def heaviside_(self: Tensor, values: Tensor) -> Tensor:
    """In-place version of `heaviside`."""
    _check_step(self, values)
    return _write_heaviside(self, values)


@public("", method="float_power_")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """In-place version of `float_power`. RuntimeError unless this tensor is float64, or complex128."""
    needed = float_power_dtype(self, exponent)
    if self.dtype is not needed:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.tensor_name} but the operation's result requires "
            f"dtype {needed.tensor_name}"
        )
    return self.pow_(exponent.to(needed) if isinstance(exponent, Tensor) else exponent)


_min_, _min_to_, _max_, _max_to_ = (
    in_place(each)
    for each in (arithmetic._clamp_min, arithmetic._clamp_min_to, arithmetic._clamp_max, arithmetic._clamp_max_to)
)


@public(method=True)
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place version of `clamp_min`."""
    number = arithmetic.takes_number("clamp_min_", input, min)
    return _min_(input, min) if number else _min_to_(input, arithmetic.bounds_of(input, min, None)[0])


@public(method=True)
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place version of `clamp_max`."""
    number = arithmetic.takes_number("clamp_max_", input, max)
    return _max_(input, max) if number else _max_to_(input, arithmetic.bounds_of(input, None, max)[1])


# Angles of complex numbers ------------------------------------------------------------------------


def _angle_x(g: Tensor, x: Tensor) -> Tensor:
    if x._array.dtype.kind != "c":
        return zero_gradient(g)
    return (g * sgn(x) / abs(x) * 1j).masked_fill(x == 0, 0)


angle = exemplified(
    "angle", steps.angle, "the angle in the complex plane; of real numbers pi if negative, else 0; NaN for NaN",
    "torch.tensor([1.0, -1.0])", "[0.0000, 3.1416]", floating=True, complex=OWN, x=_angle_x, method=True,
    out="promoted",
)  # fmt: skip


# Orthogonal polynomials ---------------------------------------------------------------------------

_POLYNOMIAL = (
    "Tensor x, Tensor n, *, Tensor out = None", "Number x, Tensor n, *, Tensor out = None",
    "Tensor x, Number n, *, Tensor out = None",
)  # fmt: skip


def _polynomial(name: str, kernel: Any, what: str, example: str) -> Any:
    made = pointwise(
        f"special_{name}", _no_half(name, kernel), floating=True, x=None, n=None,
        doc=f"""Return {what} of degree `n` at `input`, 0 where `n` is negative; without a derivative, as in PyTorch.

    Example:
        >>> torch.special.{name}(torch.tensor([0.5, 2.0]), 3)
        tensor({example})

    Source: DLMF 18.9, the three-term recurrence.
    """,
    )  # fmt: skip

    def polynomial(input: Any, n: Any) -> Tensor:
        if not isinstance(input, Tensor) and not isinstance(n, Tensor):
            raise no_such_call(f"special_{name}", (input, n), _POLYNOMIAL)
        return made(input, n)

    return public(f"special.{name}", out="promoted")(named(polynomial, name, made.__doc__))


chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = (
    _polynomial(f"chebyshev_polynomial_{letter}", kernel, f"Chebyshev's polynomial of the {which} kind", example)
    for letter, kernel, which, example in (
        ("t", polynomials.chebyshev_t, "first", "[-1., 26.]"),
        ("u", polynomials.chebyshev_u, "second", "[-1., 56.]"),
        ("v", polynomials.chebyshev_v, "third", "[-1., 41.]"),
        ("w", polynomials.chebyshev_w, "fourth", "[-1., 71.]"),
    )
)
(
    shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
    shifted_chebyshev_polynomial_w,
) = (
    _polynomial(
        f"shifted_chebyshev_polynomial_{letter}", kernel,
        f"Chebyshev's polynomial of the {which} kind, shifted to [0, 1],", example,
    )
    for letter, kernel, which, example in (
        ("t", polynomials.shifted_t, "first", "[-0., 99.]"), ("u", polynomials.shifted_u, "second", "[ -0., 204.]"),
        ("v", polynomials.shifted_v, "third", "[  1., 169.]"), ("w", polynomials.shifted_w, "fourth", "[ -1., 239.]"),
    )
)  # fmt: skip
hermite_polynomial_h = _polynomial(
    "hermite_polynomial_h", polynomials.hermite_h, "the physicists' Hermite polynomial", "[-5., 40.]"
)
hermite_polynomial_he = _polynomial(
    "hermite_polynomial_he", polynomials.hermite_he, "the probabilists' Hermite polynomial", "[-1.3750,  2.0000]"
)
laguerre_polynomial_l = _polynomial(
    "laguerre_polynomial_l", polynomials.laguerre, "Laguerre's polynomial", "[-0.1458, -0.3333]"
)
legendre_polynomial_p = _polynomial(
    "legendre_polynomial_p", polynomials.legendre, "Legendre's polynomial", "[-0.4375, 17.0000]"
)
