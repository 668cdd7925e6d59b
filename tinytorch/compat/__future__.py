"""`torch.__future__`: what a conversion of a module does with its parameters."""

from tinytorch.nn.modules._conversion import *  # noqa: F403
from tinytorch.nn.modules._conversion import __all__ as __all__
