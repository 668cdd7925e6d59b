"""tinytorch: PyTorch's API and semantics on NumPy.

import tinytorch as torch
"""

import warnings as _warnings
from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from tinytorch.core import blas as _blas
from tinytorch.core import device as _device

# Submodules that are for other devices, older programs and private names: `tinytorch.cuda` is `compat/cuda/`.
__path__.append(f"{__path__[0]}/compat")

# PyTorch gives no floating-point warnings; NumPy's are silenced for this package's own calls.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tinytorch\.")
_device.keep_freed_memory()
_blas.let_idle_threads_sleep()

# isort: off
from tinytorch import autograd

from tinytorch.version import __version__
from tinytorch.core.tensor import Size, Tensor, is_inference, is_tensor
from tinytorch.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from tinytorch.core.mode import *
from tinytorch.core.device import device
from tinytorch.core.dtypes import *
from tinytorch.kernels.printing import set_printoptions
from tinytorch.core.layout import *
from tinytorch.legacy import *
from tinytorch.ops.nn.conv import *
from tinytorch.ops.copies import *
from tinytorch.ops.create import *
from tinytorch.ops.nn.embedding import *
from tinytorch.ops.linalg.factor import *
from tinytorch.ops.index import *
from tinytorch.ops.linalg.products import *
from tinytorch.ops.pointwise import *
from tinytorch.ops.nn.pool import *
from tinytorch.ops.random import *
from tinytorch.ops.reduce import *
from tinytorch.ops.nn.rnn import *
from tinytorch.ops.nn.norm import *
from tinytorch.ops.linalg.matrices import *
from tinytorch.ops.nn.resample import *
from tinytorch.ops.shape import *
from tinytorch.ops.linalg.solve import *
from tinytorch.ops.special import *
from tinytorch.ops.statistics import *
from tinytorch.ops.memory import *
from tinytorch.serialization import PyTorchFileReader, load, save

from tinytorch.ops import methods as _methods

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
    special,
    storage,
    types,
    version,
)
from tinytorch import return_types
from tinytorch import serialization as serialization
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
from tinytorch.ops.nn.basic import hardshrink, log_softmax, prelu, softmax
from tinytorch import random
from tinytorch.nn.functional.unlike import *
from tinytorch.inspect.summary import summary
from tinytorch.ops.create import inclusive_range as range
from tinytorch import foreach as _foreach
from tinytorch.nn.functional import unlike as _functions
from tinytorch.amp import lists as _lists
from tinytorch.ops import out as _out
# isort: on

globals().update(_functions.functions())
globals().update(_foreach.functions())

_lists.install(globals())
_out.install_all(globals())
_import_module("tinytorch.ops.overrides")  # sees to it that derived classes are noticed

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
        testing,
        utils,
        xpu,
    )
    from tinytorch.inspect import profiler


def __getattr__(name: str) -> object:
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


__all__ = sorted(
    name
    for name in (*globals(), *_LATER)
    if not name.startswith("_")
    and name
    not in ("blas", "foreach", "functions", "losses", "methods", "ops", "kernels", "legacy")
)
