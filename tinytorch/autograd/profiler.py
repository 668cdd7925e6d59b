"""PyTorch's name, `torch.autograd.profiler`, for `tinytorch.inspect.events`."""

from tinytorch.inspect.events import *  # noqa: F403
from tinytorch.inspect.events import __all__ as __all__
from tinytorch.inspect.events_util import EventList, FunctionEvent, FunctionEventAvg  # noqa: F401
