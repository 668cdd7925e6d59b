"""`torch.special`: gamma and Bessel functions, functions of the normal distribution, orthogonal polynomials.

Most are declared in `ops/special.py`; some are functions of `torch` under their names in SciPy.
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
