"""`torch.nn.functional`.

Where its functions are written, which is where they are to be looked for and added:

| module | what |
|---|---|
| `layers` | bilinear forms, embeddings and labels, dropout, normalisation |
| `activation` | activations, softmax |
| `loss` | losses, distances |
| `padding` | borders: `pad` |
| `pooling` | maxima and averages of windows, and maxima put back |
| `resampling` | resizing and warping: `interpolate`, `grid_sample`, `affine_grid` |
| `unlike` | those of `torch` that have the name, but not the signature, of one here |
| `ops` | what needs nothing but its op: `linear`, `gelu`, convolutions, attention, `pixel_shuffle` |

The functions of these modules see to arguments (in place or not, deprecated ones, shapes, dtypes) and hand on to
`ops`; some are composed of Tensor operations.
"""

from typing import TYPE_CHECKING

from tinytorch.nn.functional import activation, layers, loss, padding, pooling, resampling  # noqa: F401
from tinytorch.ops import copies as _copies  # noqa: F401
from tinytorch.ops.linalg import matrices as _matrices  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.nn import attention as _attention  # noqa: F401
from tinytorch.ops.nn import conv as _conv  # noqa: F401
from tinytorch.ops.nn import linear as _linear  # noqa: F401
from tinytorch.ops.register import namespace

if TYPE_CHECKING:
    from tinytorch.ops.faces.functional import *  # noqa: F403

__traced_as__ = "op"  # by `torch.compile`
__getattr__, __dir__, _names = namespace(__name__)
if not TYPE_CHECKING:
    __all__ = _names
