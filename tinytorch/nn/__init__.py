"""Neural networks: `nn.Module`, layers, losses, `functional`, `init`."""

from typing import TYPE_CHECKING

from tinytorch.nn import attention as attention
from tinytorch.nn import common_types as common_types
from tinytorch.nn import functional as functional
from tinytorch.nn import grad as grad
from tinytorch.nn import init as init
from tinytorch.nn import modules as modules
from tinytorch.nn import parallel as parallel
from tinytorch.nn import parameter as parameter
from tinytorch.nn import utils as utils
from tinytorch.nn._distributed import lazy_names as _lazy_names
from tinytorch.nn.parameter import Buffer as Buffer
from tinytorch.nn.parameter import Parameter as Parameter
from tinytorch.nn.parameter import UninitializedBuffer as UninitializedBuffer
from tinytorch.nn.parameter import UninitializedParameter as UninitializedParameter

vars(functional)["grad"] = grad  # as in PyTorch

__getattr__, __dir__ = _lazy_names(__name__, "SyncBatchNorm")

if TYPE_CHECKING:
    from tinytorch.nn.modules import *  # noqa: F403
else:  # a star would import the names that are lazy
    globals().update({name: vars(modules)[name] for name in modules.__all__ if name in vars(modules)})
    __all__ = [
        *modules.__all__, "Buffer", "Parameter", "attention", "common_types", "functional", "grad", "init", "modules",
        "parallel", "parameter", "utils",
    ]  # fmt: skip
    __all__.sort()
