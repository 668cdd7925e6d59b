"""`torch.utils.dlpack`: memory handed to and taken from other libraries, without a copy (floor 4)."""

from tinytorch.ops.memory import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
