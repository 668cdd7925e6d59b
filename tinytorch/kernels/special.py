"""Special functions that NumPy lacks, on arrays.

erf and erfc are two polynomials each, interpolated at Chebyshev points with 50 digits: `erf(x) / x` as a function of
x² in [0, 1], and `(1 + 2x) exp(x²) erfc(x)` as a function of t = (x - 2) / (x + 2) from 1 to infinity. Their relative
approximation errors are below 1e-17 (float64) and 5e-8 (float32), less than the rounding errors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .checks import in_single, refused
from .dtypes import FLOATS
from .native import twin

# Coefficients by ascending power of u in [-1, 1], the interval that x² and t are mapped to.
_SMALL_64 = (
    0.9654687386698673, -0.1405360890227171, 0.019852496688984218, -0.0022854855611440855, 0.00021751715603563488,
    -1.75371694412802e-05, 1.2233827638093572e-06, -7.51156925108609e-08, 4.115751500265885e-09,
    -2.035231956483527e-10, 9.21125018742823e-12, -3.80659122412214e-13,
)  # fmt: skip
_LARGE_64 = (
    1.2329951186255526, -0.1047158376304217, -0.01752790509988164, 0.02650923206564242, -0.010437170695564584,
    0.0011786605700228228, 0.000573325195393502, -0.00017577040026317377, -4.294302715108196e-05,
    1.9946671986843085e-05, 5.276238284544478e-06, -2.209611742380664e-06, -8.91986351271673e-07,
    2.051051339903695e-07, 1.6232670793592582e-07, -3.857463646747757e-09, -2.709062576056771e-08,
    -4.797567173922353e-09, 3.577142945822248e-09, 1.3558779530023195e-09, -2.8686726808966525e-10,
    -1.5716018368930487e-10, 4.8269616325125714e-12,
)  # fmt: skip
_SMALL_32 = (
    0.9654687770939903, -0.14053609137964274, 0.01985180518381977, -0.0022854431428609664, 0.0002193591913438419,
    -1.7650187079697012e-05,
)  # fmt: skip
_LARGE_32 = (
    1.2329951256161689, -0.1047158410111686, -0.017528255760641282, 0.02650940145912648, -0.010434317741703648,
    0.0011772904424725455, 0.0005650331825828576, -0.00017184041849060204, -3.2643553187519696e-05,
    1.521189101778543e-05,
)  # fmt: skip


def polynomial(u: Any, coefficients: tuple[float, ...]) -> Any:
    """Return the polynomial at u, coefficients by ascending power, by Horner's rule in one buffer."""
    value = u * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        value += coefficient
        value *= u
    value += coefficients[0]
    return value


def _large(a: Any, coefficients: tuple[float, ...]) -> Any:
    """Return erfc(a) for a >= 1."""
    t = (a - 2) / (a + 2)  # [1, inf) to [-1/3, 1)
    return np.exp(-a * a) / (1 + 2 * a) * polynomial(1.5 * t - 0.5, coefficients)


def _both(x: Any) -> tuple[Any, Any, Any, Any]:
    """Return |x|, whether it is at most 1, erf of x where it is, and erfc of |x| where it is not."""
    small, large = (_SMALL_32, _LARGE_32) if x.dtype == np.float32 else (_SMALL_64, _LARGE_64)
    a = np.abs(x)
    near = ~(a > 1)  # also for NaN, whose result is NaN
    far = np.clip(a, 1, 40)  # beyond 40 erfc is 0 in every dtype; infinities would give NaN
    x = np.where(near, x, 0)
    return a, near, x * polynomial(2 * (x * x) - 1, small), _large(far, large)  # x² in [0, 1] to u in [-1, 1]


@twin
@in_single
def erf(x: Any) -> Any:
    """Return the error function of each element, in x's floating dtype."""
    x = x[...]
    _, near, inner, tail = _both(x)
    return np.where(near, inner, np.copysign(1 - tail, x)).astype(x.dtype, copy=False)


@twin
@in_single
def erfc(x: Any) -> Any:
    """Return 1 - erf(x), with a small relative error even where it is small."""
    x = x[...]
    _, near, inner, tail = _both(x)
    return np.where(near, 1 - inner, np.where(x > 0, tail, 2 - tail)).astype(x.dtype, copy=False)


# Shared by the families of special functions ------------------------------------------------------


def mapped(x: Any, low: float, high: float, coefficients: tuple[float, ...]) -> Any:
    """Return the polynomial at x, with [low, high] mapped to [-1, 1]."""
    return polynomial((x - (low + high) / 2) * (2 / (high - low)), coefficients)


def fill(out: Any, mask: Any, function: Callable[..., Any], *arrays: Any) -> None:
    """Set `out[mask]` to `function` of the arrays' elements at the mask."""
    if not mask.any():
        return
    if mask.all():
        out[...] = function(*arrays)
    else:
        out[mask] = function(*[array[mask] for array in arrays])


def by_parts(arrays: tuple[Any, ...], *cases: tuple[Any, Callable[..., Any]]) -> Any:
    """Return a function defined by cases (mask, function): the last case whose mask holds counts; else it is NaN."""
    out = np.full_like(arrays[-1], np.nan)
    for mask, function in cases:
        fill(out, mask, function, *arrays)
    return out


_BLOCK = 16384  # elements: many temporary arrays of this size stay in the processor's cache


def in_double(function: Callable[..., Any], *operands: Any) -> Any:
    """Return a function of arrays that broadcast, computed in float64, in the dtype of the arrays.

    PyTorch computes float32 in float32; the result here has an error of at most one unit in the last place.
    """
    first, *others = operands
    arrays = np.broadcast_arrays(*operands) if others and others[0].shape != first.shape else operands
    shape = arrays[0].shape
    if not others and not first.flags.c_contiguous and 0 not in first.strides:
        out = np.empty_like(first)  # with the memory layout of the argument
        out[...] = in_double(function, first.copy("C"))
        return out
    wide = [x.astype(np.float64, copy=False).reshape(-1) for x in arrays]
    size = wide[0].size
    if size <= 2 * _BLOCK:
        return function(*wide).astype(first.dtype, copy=False).reshape(shape)
    out = np.empty_like(first, shape=(size,))
    for start in range(0, size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[part] = function(*[x[part] for x in wide])
    return out.reshape(shape)


def refusing_half(kernel: Callable[..., Any], name: str, *operands: Any) -> Any:
    """Return `kernel(*operands)`; raise PyTorch's error for 16-bit floats."""
    for each in operands:
        if each.dtype.itemsize == 2 and each.dtype.kind in FLOATS:
            raise refused(name, each)
    return kernel(*operands)


def as_floating(x: Any) -> Any:
    """Return an array of integers converted to the default dtype, other arrays unchanged."""
    return x.astype(dtypes.get_default_dtype().numpy) if x.dtype.kind in "iub" else x


# The normal distribution --------------------------------------------------------------------------

# Inverse of erf, in the variables of M. Giles, "Approximating the erfinv function", 2012: erfinv(x) / x by
# w = -log(1 - x²) on [0, 2.75] and [2.75, 6.25], by sqrt(w) on [2.5, 4] and [4, 6.2]. The normal quantile
# -ndtri(p) / z by z = sqrt(-2 log(p)) on [2, 4], [4, 10] and [10, 39].
_ERFINV_1 = (
    1.2207864104624015, 0.34380921803326875, 0.0031773271203162103, -0.005660167699031097, 0.0005785677552925719,
    0.000134094397259107, -3.5568939452805386e-05, -1.731603149132435e-06, 1.5884778482668611e-06,
    -7.833094459186619e-08, -5.816438316655196e-08, 8.582481401617992e-09, 1.6569930105462573e-09,
    -5.120413606266868e-10, -2.4824384717747395e-11, 2.3759324361072006e-11, -6.328316438443627e-13,
    -8.019659574570528e-13,
)  # fmt: skip
_ERFINV_2 = (
    1.9711326474795248, 0.3868118544125806, -0.022563081558628142, -1.8522386646087976e-05, 0.0007742445815399323,
    -0.00021899426780616318, 2.5710709514826048e-05, 3.175326125094495e-06, -2.0357703326151047e-06,
    3.809527408205678e-07, -2.3834016738417436e-09, -1.7448829855777118e-08, 4.601382934834321e-09,
    -3.5004431815323726e-10, -1.3088589442031802e-10, 5.121491189173404e-11, -6.633492014931566e-12,
    -1.1184614927260258e-12, 4.946997928424839e-13,
)  # fmt: skip
_ERFINV_3 = (
    3.0838856104922208, 0.7539442257706239, 0.003021139436374801, -0.001582541089402345, 0.0007883078513035505,
    -0.00040063569846002624, 0.00016966502201594177, -4.739182626859997e-05, 2.4058645410848233e-06,
    5.127311114042634e-06, -2.664792853936729e-06, 5.26480637996182e-07, 9.28911222561948e-08,
    -9.472720749677362e-08, 2.640222955342202e-08, -3.203615866468668e-10, -2.4632549100503405e-09,
    9.505851219841328e-10, -1.1662393838626048e-10, -4.763564203873496e-11, 2.4097707183427266e-11,
    -3.24456440200339e-12,
)  # fmt: skip
_ERFINV_4 = (
    4.950934853078874, 1.1112932209525204, -0.0002406192310305556, -0.00024824882603039037, 9.780198006584821e-05,
    -2.764059170332667e-05, 6.8912643513125166e-06, -1.6195268397807674e-06, 3.839835023614366e-07,
    -1.0711461917225147e-07, 4.294004946426093e-08, -2.3281881715497007e-08, 1.3385626116793025e-08,
    -7.0437412642826285e-09, 3.166431987264544e-09, -1.1489759138301577e-09, 3.041886521716691e-10,
    -2.592786592051373e-11, -3.6557283785043705e-11, 2.533068228263061e-11, -5.817095933784326e-12,
)  # fmt: skip
_TAIL_4 = (
    0.7622067793928698, 0.12624996835057847, -0.053061590323040725, 0.020437234450089818, -0.007530724020574226,
    0.0027036977727604695, -0.0009546478825960963, 0.0003332801105873228, -0.00011541978216625267,
    3.9735308110475825e-05, -1.3618156874214677e-05, 4.6509062835947245e-06, -1.5839541418526996e-06,
    5.381992716195239e-07, -1.8253190424896049e-07, 6.185737546739284e-08, -2.0923316931421288e-08,
    6.9978189219799535e-09, -2.356385838251893e-09, 8.630282783756021e-10, -2.940930094717878e-10,
    5.592227470473974e-11, -1.7543755603623844e-11, 2.156892053381637e-11, -7.461974653997192e-12,
)  # fmt: skip
_TAIL_10 = (
    0.9405718991999958, 0.04269123558551659, -0.024022120553908982, 0.012305513678021705, -0.006001164071549833,
    0.0028402615653321693, -0.0013176219718781367, 0.0006026355087272007, -0.00027273852719131395,
    0.00012244447296892554, -5.462453601304525e-05, 2.424607669195911e-05, -1.071774182848676e-05,
    4.721720493422935e-06, -2.0750666604629717e-06, 9.096016538208678e-07, -3.960705579119086e-07,
    1.7267388523880422e-07, -7.836844205615187e-08, 3.446956689272913e-08, -1.1259858411041487e-08,
    4.589567359035506e-09, -5.094501437345892e-09, 2.3824156228553167e-09, 6.531435495256686e-10,
    -3.404828486314694e-10, -3.9204826654770557e-10, 1.7817657865716072e-10,
)  # fmt: skip
_TAIL_40 = (
    0.9931252314436925, 0.00716410285758032, -0.005788838508223883, 0.004233160221926994, -0.0029353584211685756,
    0.001969643577088817, -0.0012925590004702365, 0.0008347457855005044, -0.0005326225054006351,
    0.00033667132910224993, -0.00021121865842065632, 0.00013170395406422603, -8.17057792849765e-05,
    5.046365012067802e-05, -3.1054078818415774e-05, 1.909071067371916e-05, -1.1696554876533179e-05,
    6.974659920566339e-06, -4.191009440463711e-06, 3.0656421515754954e-06, -2.005374456078797e-06,
    -2.837474801919811e-08, 2.986597509424047e-07, 2.0998193784906138e-06, -1.6816477172276311e-06,
    -2.1783426116697096e-06, 1.7711687460808751e-06, 2.3172087028038385e-06, -1.7699916717167662e-06,
    -1.602872506760551e-06, 1.1841471467858341e-06, 8.032214176230988e-07, -5.702192188963392e-07,
    -2.4308497959681384e-07, 1.6708650072756594e-07, 3.7565052811987564e-08, -2.4867597755381973e-08,
)  # fmt: skip


def _erfinv(x: Any) -> Any:
    """Return the inverse function of `erf`."""
    w = -np.log((1 - x) * (1 + x))
    out = np.full_like(x, np.nan)
    fill(out, w <= 2.75, lambda x, w: x * mapped(w, 0, 2.75, _ERFINV_1), x, w)
    fill(out, (w > 2.75) & (w <= 6.25), lambda x, w: x * mapped(w, 2.75, 6.25, _ERFINV_2), x, w)
    fill(out, (w > 6.25) & (w <= 16), lambda x, w: x * mapped(np.sqrt(w), 2.5, 4, _ERFINV_3), x, w)
    fill(out, (w > 16) & (w < 40), lambda x, w: x * mapped(np.sqrt(w), 4, 6.2, _ERFINV_4), x, w)
    fill(out, np.abs(x) == 1, lambda x: np.copysign(np.inf, x), x)
    return out


@twin
def erfinv(x: Any) -> Any:
    """Return the inverse function of `erf`."""
    return in_double(_erfinv, x)


def _tail(p: Any) -> Any:
    """Return -ndtri(p) for 0 < p <= exp(-2)."""
    z = np.sqrt(-2 * np.log(p))
    out = np.empty_like(z)
    fill(out, z < 4, lambda z: z * mapped(z, 2, 4, _TAIL_4), z)
    fill(out, (z >= 4) & (z < 10), lambda z: z * mapped(z, 4, 10, _TAIL_10), z)
    fill(out, z >= 10, lambda z: z * mapped(z, 10, 39, _TAIL_40), z)
    return out


def _ndtri(p: Any) -> Any:
    """Return the quantile of the standard normal distribution for probability p."""
    out = np.full_like(p, np.nan)
    low = math.exp(-2)
    fill(out, (p > low) & (p < 1 - low), lambda p: math.sqrt(2) * _erfinv(2 * p - 1), p)
    fill(out, (p > 0) & (p <= low), lambda p: -_tail(p), p)
    fill(out, (p < 1) & (p >= 1 - low), lambda p: _tail(1 - p), p)
    out[p == 0] = -np.inf
    out[p == 1] = np.inf
    return out


ndtri = functools.partial(in_double, _ndtri)


def _scaled_tail(a: Any) -> Any:
    """Return exp(a²) erfc(a) for a >= 1."""
    t = np.where(a > 1e18, 1, (a - 2) / (a + 2))
    return polynomial(1.5 * t - 0.5, _LARGE_64) / (1 + 2 * a)


def _erfcx(x: Any) -> Any:
    """Return exp(x²) erfc(x)."""
    return by_parts(
        (x,),
        (np.abs(x) < 1, lambda x: np.exp(x * x) * erfc(x)),
        (x >= 1, _scaled_tail),
        (x <= -1, lambda x: 2 * np.exp(x * x) - _scaled_tail(-x)),
    )


erfcx = functools.partial(in_double, _erfcx)


def _ndtr(x: Any) -> Any:
    """Return the normal distribution function."""
    return erfc(x * -math.sqrt(0.5)) / 2


def _mills(x: Any) -> Any:
    """Return the derivative of `log_ndtr`, the density over `ndtr`: 1 over Mills' ratio of -x."""
    return math.sqrt(2 / math.pi) / _erfcx(x * -math.sqrt(0.5))


mills = functools.partial(in_double, _mills)


def _log_ndtr(x: Any) -> Any:
    """Return the logarithm of the normal distribution function."""
    return by_parts(
        (x,),
        (x < -1, lambda x: np.log(_erfcx(-x * math.sqrt(0.5)) / 2) - x * x / 2),
        (x >= -1, lambda x: np.log1p(-erfc(x * math.sqrt(0.5)) / 2)),
    )


ndtr = functools.partial(in_double, _ndtr)
log_ndtr = functools.partial(in_double, _log_ndtr)
