"""`torch.utils.dlpack`: exchange of tensors with other libraries without a copy."""

from tinytorch.ops.memory import DLDeviceType, from_dlpack, to_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]
