"""PyTorch's name, `torch.utils.data.dataset`, for `tinytorch.data.dataset` (floor 4)."""

from tinytorch.data.dataset import *  # noqa: F403
from tinytorch.data.dataset import __all__ as __all__
