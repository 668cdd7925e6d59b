"""`torch.utils.data.dataset`, implemented in `tinytorch.data.dataset`."""

from tinytorch.data.dataset import *  # noqa: F403
from tinytorch.data.dataset import __all__ as __all__
