"""`torch.nn.functional`.

Its functions are written in these modules; a new function goes into the module of its family:

| module | functions |
|---|---|
| `layers` | bilinear forms, embeddings, one-hot vectors, dropout, normalisation |
| `activation` | activations, softmax |
| `loss` | losses, distances |
| `projected_loss` | `linear_cross_entropy` |
| `resampling` | resizing and warping: `interpolate`, `grid_sample`, `affine_grid` |
| `unlike` | functions of `torch` with the name, but not the signature, of a function here |
| `ops/nn/` | functions that are ops, and their families: `linear`, `gelu`, convolutions, pooling, attention, `pad` |

The functions check their arguments (in place or not, deprecated ones, shapes, dtypes) and call ops; some are composed
of Tensor operations. Every function is declared by `@public("nn.functional.<name>")`.
"""

from typing import TYPE_CHECKING

from tinytorch.nn.functional import activation, layers, loss, projected_loss, resampling  # noqa: F401
from tinytorch.ops import copies as _copies  # noqa: F401
from tinytorch.ops.linalg import matrices as _matrices  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.nn import attention as _attention  # noqa: F401
from tinytorch.ops.nn import conv as _conv  # noqa: F401
from tinytorch.ops.nn import linear as _linear  # noqa: F401
from tinytorch.ops.nn import padding as _padding  # noqa: F401
from tinytorch.ops.nn import pool as _pool  # noqa: F401
from tinytorch.ops.register import functions as _functions
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.functional import *  # noqa: F403

__traced_as__ = "op"  # by `torch.compile`
__getattr__, __dir__, _names = namespace(__name__)
_threshold = _functions["nn.functional.threshold"]  # (the name that it has in graphs of `torch.fx`)
if not TYPE_CHECKING:
    __all__ = _names
