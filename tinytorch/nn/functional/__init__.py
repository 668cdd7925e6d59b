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
from tinytorch.ops import register as _register
from tinytorch.ops.linalg import matrices as _matrices  # noqa: F401
from tinytorch.ops.nn import activation as _activation  # noqa: F401
from tinytorch.ops.nn import attention as _attention  # noqa: F401
from tinytorch.ops.nn import conv as _conv  # noqa: F401
from tinytorch.ops.nn import linear as _linear  # noqa: F401

if TYPE_CHECKING:
    from tinytorch.nn.functional.activation import *  # noqa: F403
    from tinytorch.nn.functional.layers import *  # noqa: F403
    from tinytorch.nn.functional.loss import *  # noqa: F403
    from tinytorch.nn.functional.padding import *  # noqa: F403
    from tinytorch.nn.functional.pooling import *  # noqa: F403
    from tinytorch.nn.functional.resampling import *  # noqa: F403
    from tinytorch.ops.copies import channel_shuffle as channel_shuffle
    from tinytorch.ops.copies import channel_shuffle as native_channel_shuffle  # noqa: F401
    from tinytorch.ops.copies import pixel_shuffle as pixel_shuffle
    from tinytorch.ops.copies import pixel_unshuffle as pixel_unshuffle
    from tinytorch.ops.linalg.matrices import pdist as pdist
    from tinytorch.ops.nn.activation import gelu as gelu
    from tinytorch.ops.nn.activation import hardshrink as hardshrink
    from tinytorch.ops.nn.activation import logsigmoid as logsigmoid
    from tinytorch.ops.nn.activation import prelu as prelu
    from tinytorch.ops.nn.activation import softplus as softplus
    from tinytorch.ops.nn.activation import softshrink as softshrink
    from tinytorch.ops.nn.attention import multi_head_attention_forward as multi_head_attention_forward
    from tinytorch.ops.nn.attention import scaled_dot_product_attention as scaled_dot_product_attention
    from tinytorch.ops.nn.conv import conv1d as conv1d
    from tinytorch.ops.nn.conv import conv2d as conv2d
    from tinytorch.ops.nn.conv import conv3d as conv3d
    from tinytorch.ops.nn.conv import conv_tbc as conv_tbc
    from tinytorch.ops.nn.conv import conv_transpose1d as conv_transpose1d
    from tinytorch.ops.nn.conv import conv_transpose2d as conv_transpose2d
    from tinytorch.ops.nn.conv import conv_transpose3d as conv_transpose3d
    from tinytorch.ops.nn.conv import fold as fold
    from tinytorch.ops.nn.conv import unfold as unfold
    from tinytorch.ops.nn.linear import linear as linear

if not TYPE_CHECKING:  # all that is declared to be found here
    __all__ = sorted(name.rpartition(".")[2] for name in _register.functions if name.startswith("nn.functional."))

__getattr__, __dir__ = _register.namespace(__name__)
