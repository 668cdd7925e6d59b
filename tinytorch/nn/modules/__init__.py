"""The modules, one file per family; `tinytorch.nn` exports them all."""

# ruff: noqa: F403

from typing import TYPE_CHECKING

from tinytorch.nn._distributed import lazy_names
from tinytorch.nn.modules.activation import *
from tinytorch.nn.modules.adaptive import *
from tinytorch.nn.modules.batchnorm import BatchNorm1d as BatchNorm1d
from tinytorch.nn.modules.batchnorm import BatchNorm2d as BatchNorm2d
from tinytorch.nn.modules.batchnorm import BatchNorm3d as BatchNorm3d
from tinytorch.nn.modules.batchnorm import LazyBatchNorm1d as LazyBatchNorm1d
from tinytorch.nn.modules.batchnorm import LazyBatchNorm2d as LazyBatchNorm2d
from tinytorch.nn.modules.batchnorm import LazyBatchNorm3d as LazyBatchNorm3d
from tinytorch.nn.modules.channelshuffle import *
from tinytorch.nn.modules.container import *
from tinytorch.nn.modules.conv import *
from tinytorch.nn.modules.distance import *
from tinytorch.nn.modules.dropout import *
from tinytorch.nn.modules.flatten import *
from tinytorch.nn.modules.fold import *
from tinytorch.nn.modules.instancenorm import *
from tinytorch.nn.modules.linear import *
from tinytorch.nn.modules.linear_cross_entropy_options import *
from tinytorch.nn.modules.loss import *
from tinytorch.nn.modules.module import Module as Module
from tinytorch.nn.modules.normalization import *
from tinytorch.nn.modules.padding import *
from tinytorch.nn.modules.parallel import *
from tinytorch.nn.modules.pixelshuffle import *
from tinytorch.nn.modules.pooling import *
from tinytorch.nn.modules.rnn import *
from tinytorch.nn.modules.sparse import *
from tinytorch.nn.modules.transformer import *
from tinytorch.nn.modules.upsampling import *

__traced_as__ = "inline"  # by `torch.compile`
__getattr__, __dir__ = lazy_names(__name__, "SyncBatchNorm")

if TYPE_CHECKING:
    from tinytorch.distributed.sync_batchnorm import SyncBatchNorm as SyncBatchNorm
else:  # (type checkers export starred names, unless an `__all__` that they cannot evaluate hides them)
    _layers = {name for name, value in vars().items() if isinstance(value, type) and issubclass(value, Module)}
    __all__ = sorted({*_layers, "LinearCrossEntropyOptions", "SyncBatchNorm"})
