"""`torch.special`: the gamma and Bessel families, the normal distribution's functions, orthogonal polynomials.

(Floor 4: the functions are those of `ops/special.py`, and some of `torch`'s own under the names that SciPy gives them.)
"""

from typing import TYPE_CHECKING

from tinytorch.ops import arithmetic as _arithmetic  # noqa: F401
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops import special as _special  # noqa: F401
from tinytorch.ops import transcendental as _transcendental  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.arithmetic import round as round
    from tinytorch.ops.nn.activation import log_softmax as log_softmax
    from tinytorch.ops.nn.activation import softmax as softmax
    from tinytorch.ops.reduce import logsumexp as logsumexp
    from tinytorch.ops.special import airy_ai as airy_ai
    from tinytorch.ops.special import bessel_j0 as bessel_j0
    from tinytorch.ops.special import bessel_j1 as bessel_j1
    from tinytorch.ops.special import bessel_y0 as bessel_y0
    from tinytorch.ops.special import bessel_y1 as bessel_y1
    from tinytorch.ops.special import chebyshev_polynomial_t as chebyshev_polynomial_t
    from tinytorch.ops.special import chebyshev_polynomial_u as chebyshev_polynomial_u
    from tinytorch.ops.special import chebyshev_polynomial_v as chebyshev_polynomial_v
    from tinytorch.ops.special import chebyshev_polynomial_w as chebyshev_polynomial_w
    from tinytorch.ops.special import digamma as digamma
    from tinytorch.ops.special import digamma as psi
    from tinytorch.ops.special import entr as entr
    from tinytorch.ops.special import erfcx as erfcx
    from tinytorch.ops.special import erfinv as erfinv
    from tinytorch.ops.special import hermite_polynomial_h as hermite_polynomial_h
    from tinytorch.ops.special import hermite_polynomial_he as hermite_polynomial_he
    from tinytorch.ops.special import i0 as i0
    from tinytorch.ops.special import i0e as i0e
    from tinytorch.ops.special import i1 as i1
    from tinytorch.ops.special import i1e as i1e
    from tinytorch.ops.special import igamma as gammainc
    from tinytorch.ops.special import igammac as gammaincc
    from tinytorch.ops.special import laguerre_polynomial_l as laguerre_polynomial_l
    from tinytorch.ops.special import legendre_polynomial_p as legendre_polynomial_p
    from tinytorch.ops.special import lgamma as gammaln
    from tinytorch.ops.special import log_ndtr as log_ndtr
    from tinytorch.ops.special import logit as logit
    from tinytorch.ops.special import modified_bessel_i0 as modified_bessel_i0
    from tinytorch.ops.special import modified_bessel_i1 as modified_bessel_i1
    from tinytorch.ops.special import modified_bessel_k0 as modified_bessel_k0
    from tinytorch.ops.special import modified_bessel_k1 as modified_bessel_k1
    from tinytorch.ops.special import mvlgamma as multigammaln
    from tinytorch.ops.special import ndtr as ndtr
    from tinytorch.ops.special import ndtri as ndtri
    from tinytorch.ops.special import polygamma as polygamma
    from tinytorch.ops.special import scaled_modified_bessel_k0 as scaled_modified_bessel_k0
    from tinytorch.ops.special import scaled_modified_bessel_k1 as scaled_modified_bessel_k1
    from tinytorch.ops.special import shifted_chebyshev_polynomial_t as shifted_chebyshev_polynomial_t
    from tinytorch.ops.special import shifted_chebyshev_polynomial_u as shifted_chebyshev_polynomial_u
    from tinytorch.ops.special import shifted_chebyshev_polynomial_v as shifted_chebyshev_polynomial_v
    from tinytorch.ops.special import shifted_chebyshev_polynomial_w as shifted_chebyshev_polynomial_w
    from tinytorch.ops.special import spherical_bessel_j0 as spherical_bessel_j0
    from tinytorch.ops.special import xlog1py as xlog1py
    from tinytorch.ops.special import zeta as zeta
    from tinytorch.ops.transcendental import erf as erf
    from tinytorch.ops.transcendental import erfc as erfc
    from tinytorch.ops.transcendental import exp2 as exp2
    from tinytorch.ops.transcendental import expm1 as expm1
    from tinytorch.ops.transcendental import log1p as log1p
    from tinytorch.ops.transcendental import sigmoid as expit
    from tinytorch.ops.transcendental import sinc as sinc
    from tinytorch.ops.transcendental import xlogy as xlogy

__all__ = [
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t",
    "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w", "digamma", "entr", "erf",
    "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln",
    "hermite_polynomial_h", "hermite_polynomial_he", "i0", "i0e", "i1", "i1e", "laguerre_polynomial_l",
    "legendre_polynomial_p", "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "modified_bessel_i0",
    "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "multigammaln", "ndtr", "ndtri",
    "polygamma", "psi", "round", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w", "sinc", "softmax", "spherical_bessel_j0", "xlog1py", "xlogy", "zeta",
]  # fmt: skip

__getattr__, __dir__ = namespace(__name__)
