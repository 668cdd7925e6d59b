"""tinytorch: PyTorch's API and semantics on NumPy.

import tinytorch as torch
"""

import warnings as _warnings
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tinytorch import blas as _blas
from tinytorch import device as _device

# PyTorch gives no floating-point warnings; NumPy's are silenced for this package's own calls.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tinytorch\.")
_device.keep_freed_memory()
_blas.let_idle_threads_sleep()

# isort: off
from tinytorch import autograd  # first: _tensor is part of it

from tinytorch.version import __version__
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
from tinytorch.serialization import PyTorchFileReader, load, save

from tinytorch import methods as _methods

_methods.bind()

from tinytorch import (
    __config__,
    __future__,
    amp,
    backends,
    compiler,
    func,
    linalg,
    nn,
    optim,
    return_types,
    serialization,
    special,
    storage,
    types,
    version,
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
from tinytorch.absent import OutOfMemoryError
from tinytorch.switches import *
from tinytorch.func import vmap
from tinytorch.checks import *
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
from tinytorch.summary import summary
from tinytorch.ops.create import inclusive_range as range
from tinytorch import foreach as _foreach
from tinytorch import functions as _functions
from tinytorch.amp import lists as _lists
from tinytorch.ops import out as _out
# isort: on

globals().update(_functions.functions())
globals().update(_foreach.functions())

_lists.install(globals())
_out.install_all(globals())
_import_module("tinytorch._overrides")  # sees to it that derived classes are noticed

from math import e, inf, nan, pi

newaxis = None

# Imported when first asked for: few programs need them, or they say so by an import of their own.
_LATER = tuple(
    """
    accelerator cpu cuda data distributed distributions fft functional futures fx hub jit library mps
    multiprocessing onnx overrides profiler testing utils xpu
    """.split()
)
_PRIVATE_LATER = (
    "_C", "_VF", "_dynamo", "_higher_order_ops", "_inductor", "_logging", "_subclasses", "ao",
)  # fmt: skip
if _TYPE_CHECKING:
    from tinytorch import (
        accelerator,
        cpu,
        cuda,
        data,
        distributed,
        distributions,
        fft,
        functional,
        futures,
        fx,
        hub,
        jit,
        library,
        mps,
        multiprocessing,
        onnx,
        overrides,
        profiler,
        testing,
        utils,
        xpu,
    )


def __getattr__(name: str) -> _Any:
    if name in _LATER or name in _PRIVATE_LATER:
        return _import_module(f"tinytorch.{name}")
    if name == "Future":
        return _import_module("tinytorch.futures").Future
    if name == "ScriptModule":
        return _import_module("tinytorch.jit").ScriptModule
    if name == "torch":  # PyTorch's own name is one of its names
        return _import_module("tinytorch")
    raise AttributeError(f"module 'tinytorch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


# For type checkers, which take what is imported by its name for private if no list written out has it.
__all__ = [
    "OutOfMemoryError", "PyTorchFileReader", "Size", "Tensor", "autocast", "autocast_decrement_nesting",
    "autocast_increment_nesting", "bilinear", "celu", "celu_", "clear_autocast_cache", "compile", "cond",
    "cosine_similarity", "device", "e", "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype",
    "hardshrink", "inf", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "is_autocast_cache_enabled",
    "is_autocast_cpu_enabled", "is_autocast_enabled", "is_inference", "is_tensor", "layer_norm", "load",
    "log_softmax", "nan", "pairwise_distance", "pi", "prelu", "range", "relu_", "rms_norm", "rrelu", "rrelu_",
    "save", "selu", "selu_", "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_printoptions", "softmax",
    "summary", "threshold", "threshold_", "vmap", "while_loop",
]  # fmt: skip
__all__ = sorted(
    name
    for name in (*globals(), *_LATER)
    if not name.startswith("_")
    and name
    not in ("blas", "foreach", "functions", "losses", "methods", "ops", "kernels", "legacy")
)
