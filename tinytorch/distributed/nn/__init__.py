"""`torch.distributed.nn`: exchanges that gradients flow through."""

from tinytorch.distributed.nn.functional import *  # noqa: F403
from tinytorch.distributed.nn.functional import __all__ as __all__
