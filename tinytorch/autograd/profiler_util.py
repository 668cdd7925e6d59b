"""PyTorch's name, `torch.autograd.profiler_util`, for `tinytorch.inspect.events_util`."""

from tinytorch.inspect.events_util import *  # noqa: F403
from tinytorch.inspect.events_util import __all__ as __all__
