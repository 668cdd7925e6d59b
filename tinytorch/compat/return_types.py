"""PyTorch's name, `torch.return_types`, for `tinytorch.ops.return_types`."""

from tinytorch.ops.return_types import *  # noqa: F403
from tinytorch.ops.return_types import __all__ as __all__
