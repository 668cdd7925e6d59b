"""tinytorch: PyTorch's API and semantics on NumPy.

import tinytorch as torch
"""

import warnings as _warnings
from importlib import import_module as _import_module

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
from tinytorch.ops.conv import *
from tinytorch.ops.copies import *
from tinytorch.ops.create import *
from tinytorch.ops.embedding import *
from tinytorch.ops.decompose import *
from tinytorch.ops.index import *
from tinytorch.ops.linalg import *
from tinytorch.ops.pointwise import *
from tinytorch.ops.pool import *
from tinytorch.ops.random import *
from tinytorch.ops.reduce import *
from tinytorch.ops.rnn import *
from tinytorch.ops.norm import *
from tinytorch.ops.matrices import *  # after reduce: its norm knows singular values
from tinytorch.ops.resample import *
from tinytorch.ops.shape import *
from tinytorch.ops.solve import *
from tinytorch.ops.special import *
from tinytorch.ops.statistics import *
from tinytorch.ops.storage import *
from tinytorch.serialization import load, save

from tinytorch import methods as _methods

_methods.bind()

from tinytorch import (
    __config__,
    accelerator,
    amp,
    backends,
    compiler,
    cpu,
    cuda,
    data,
    distributed,
    func,
    linalg,
    mps,
    multiprocessing,
    nn,
    optim,
    profiler,
    return_types,
    serialization,
    special,
    storage,
    types,
    utils,
    version,
    xpu,
)
from tinytorch.amp import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_cache_enabled,
    is_autocast_cpu_enabled,
    is_autocast_enabled,
    set_autocast_cache_enabled,
    set_autocast_cpu_dtype,
    set_autocast_cpu_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
    set_autocast_gpu_dtype,
)
from tinytorch.compiler import compile, cond, while_loop
from tinytorch.cuda import OutOfMemoryError
from tinytorch.switches import *
from tinytorch.func import vmap
from tinytorch.nn.functional import (
    bilinear,
    celu,
    celu_,
    cosine_similarity,
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
from tinytorch import random
from tinytorch.functions import *
from tinytorch.losses import *
from tinytorch.summary import summary
from tinytorch.ops.create import inclusive_range as range
from tinytorch import functions as _functions
from tinytorch.amp import lists as _lists
from tinytorch.ops import out as _out
# isort: on

globals().update(_functions.functions())

_lists.install(globals())
_out.install_all(globals())

from math import e, inf, nan, pi

newaxis = None

# Of some size, and few programs need them: imported when first asked for.
_LATER = ("distributions", "functional", "hub", "jit", "testing")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return _import_module(f"tinytorch.{name}")
    raise AttributeError(f"module 'tinytorch' has no attribute {name!r}")


__all__ = sorted(
    name
    for name in (*globals(), *_LATER)
    if not name.startswith("_")
    and name not in ("functions", "losses", "methods", "ops", "kernels", "legacy")
)
