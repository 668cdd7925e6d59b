"""`torch.special`: the gamma and Bessel families, the normal distribution's functions, orthogonal polynomials.

(The functions are those of `ops/special.py`, and some of `torch`'s own under the names that SciPy gives them.)
"""

# ruff: noqa: F405 (type checkers have the names of `__all__` from `ops/faces`)

from typing import TYPE_CHECKING

from tinytorch.ops import arithmetic as _arithmetic  # noqa: F401
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops import special as _special  # noqa: F401
from tinytorch.ops import transcendental as _transcendental  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.special import *  # noqa: F403

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
