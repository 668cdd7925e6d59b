"""PyTorch's name, `torch.distributed.distributed_c10d`, for `torch.distributed` (floor 4)."""

from tinytorch.distributed import *  # noqa: F403
from tinytorch.distributed import __all__ as __all__
