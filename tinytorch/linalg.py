"""`torch.linalg`: linear systems, factorizations, norms, products and functions of matrices."""

from typing import TYPE_CHECKING

from tinytorch.kernels.decompose import LinAlgError
from tinytorch.ops import reduce as _reduce  # noqa: F401
from tinytorch.ops.linalg import factor as _factor  # noqa: F401
from tinytorch.ops.linalg import products as _products  # noqa: F401
from tinytorch.ops.linalg import solve as _solve  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.linalg import *  # noqa: F403

__getattr__, __dir__, _names = namespace(__name__)
if not TYPE_CHECKING:
    __all__ = ["LinAlgError", *_names]
