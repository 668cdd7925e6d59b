"""PyTorch's name, `torch.profiler`, for `tinytorch.inspect.profiler`."""

from tinytorch.inspect.profiler import *  # noqa: F403
from tinytorch.inspect.profiler import __all__ as __all__
