"""tinytorch: PyTorch's API and semantics on NumPy.

    import tinytorch as torch
"""

import importlib as _importlib
import warnings as _warnings

from tinytorch import device as _device

# PyTorch gives no floating-point warnings; NumPy's are silenced for this package's own calls.
_warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"tinytorch\.")
_device.keep_freed_memory()

from tinytorch import autograd
from tinytorch._version import __version__
from tinytorch._tensor import Tensor, Size, is_tensor
from tinytorch.dtypes import *
from tinytorch.device import device
from tinytorch.autograd.mode import *

for _name in ("ops.create", "ops.pointwise", "ops.reduce", "ops.linalg", "ops.shape", "ops.index", "ops.nn", "ops.random", "methods", "nn", "optim", "data", "utils", "serialization"):  # development: what is there
    try:
        _module = _importlib.import_module(f"tinytorch.{_name}")
    except ImportError as _e:
        if "tinytorch" not in str(_e):
            raise
        print("missing", _name, _e, file=__import__("sys").stderr)
        continue
    for _n in getattr(_module, "__all__", ()):
        if _name not in ("nn","optim","data","utils"):
            globals()[_n] = getattr(_module, _n)
    if _name == "methods":
        _module.bind()
