"""`torch.utils.dlpack`: memory handed to and taken from other libraries, without a copy."""

from tinytorch.ops.memory import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
