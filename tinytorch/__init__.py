"""tinytorch: PyTorch's API and semantics on NumPy.

import tinytorch as torch
"""

import warnings as _warnings

from tinytorch import device as _device

# PyTorch gives no floating-point warnings; NumPy's are silenced for this package's own calls.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tinytorch\.")
_device.keep_freed_memory()

# isort: off
from tinytorch import autograd  # first: _tensor is part of it

from tinytorch._version import __version__
from tinytorch._tensor import Size, Tensor, is_inference, is_tensor
from tinytorch.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from tinytorch.autograd.mode import *
from tinytorch.device import device
from tinytorch.dtypes import *
from tinytorch.kernels.printing import set_printoptions
from tinytorch.layout import *
from tinytorch.legacy import *
from tinytorch.ops.create import *
from tinytorch.ops.index import *
from tinytorch.ops.linalg import *
from tinytorch.ops.pointwise import *
from tinytorch.ops.random import *
from tinytorch.ops.reduce import *
from tinytorch.ops.shape import *
from tinytorch.serialization import load, save

from tinytorch import methods as _methods

_methods.bind()

from tinytorch import (
    accelerator,
    backends,
    cuda,
    data,
    func,
    linalg,
    nn,
    optim,
    profiler,
    return_types,
    serialization,
    utils,
)
from tinytorch.func import vmap
from tinytorch.nn.functional import (
    alpha_dropout,
    bilinear,
    celu,
    celu_,
    cosine_similarity,
    dropout,
    layer_norm,
    pairwise_distance,
    relu_,
    rms_norm,
    rrelu,
    rrelu_,
    selu,
    selu_,
    threshold,
    threshold_,
)
from tinytorch.ops.nn import hardshrink, log_softmax, prelu, softmax
from tinytorch.ops import random
# isort: on

from math import e, inf, nan, pi

newaxis = None

__all__ = sorted(
    name
    for name in globals()
    if not name.startswith("_") and name not in ("methods", "ops", "kernels", "legacy")
)
