"""`torch.cpu.amp.autocast_mode`."""

from tinytorch.amp.older import older_autocast
from tinytorch.kernels import dtypes

__all__ = ["autocast"]

autocast = older_autocast("cpu", dtypes.bfloat16)
