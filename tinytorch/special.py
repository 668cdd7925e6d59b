"""`torch.special`: the gamma and Bessel families, the normal distribution's functions, orthogonal polynomials.

(The functions are those of `ops/special.py`, and some of `torch`'s own under the names that SciPy gives them.)
"""

from typing import TYPE_CHECKING

from tinytorch.ops import arithmetic as _arithmetic  # noqa: F401
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops import special as _special  # noqa: F401
from tinytorch.ops import transcendental as _transcendental  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.special import *  # noqa: F403

__traced_as__ = "op"  # by `torch.compile`
__getattr__, __dir__, _names = namespace(__name__)
if not TYPE_CHECKING:
    __all__ = _names
