"""PyTorch's name, `torch.distributed.distributed_c10d`, for `torch.distributed`."""

from tinytorch.distributed import *  # noqa: F403
from tinytorch.distributed import __all__ as __all__
