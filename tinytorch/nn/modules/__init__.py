"""The modules, by family; `tinytorch.nn` has them all."""

# ruff: noqa: F403

from typing import TYPE_CHECKING

from tinytorch.nn.modules.activation import *
from tinytorch.nn.modules.adaptive import *
from tinytorch.nn.modules.batchnorm import *
from tinytorch.nn.modules.channelshuffle import *
from tinytorch.nn.modules.container import *
from tinytorch.nn.modules.conv import *
from tinytorch.nn.modules.distance import *
from tinytorch.nn.modules.dropout import *
from tinytorch.nn.modules.flatten import *
from tinytorch.nn.modules.fold import *
from tinytorch.nn.modules.instancenorm import *
from tinytorch.nn.modules.linear import *
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

if not TYPE_CHECKING:  # type checkers take what a star brings for public, unless a list that they cannot read says so
    __all__ = sorted(name for name, value in vars().items() if isinstance(value, type) and issubclass(value, Module))
