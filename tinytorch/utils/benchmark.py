"""`torch.utils.benchmark`, implemented in `tinytorch.inspect.benchmark`."""

from tinytorch.inspect.benchmark import *  # noqa: F403
from tinytorch.inspect.benchmark import __all__ as __all__
