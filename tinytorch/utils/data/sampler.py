"""`torch.utils.data.sampler`, implemented in `tinytorch.data.sampler`."""

from tinytorch.data.sampler import *  # noqa: F403
from tinytorch.data.sampler import __all__ as __all__
