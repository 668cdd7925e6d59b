"""`torch.storage`: the memory that tensors lie in."""

from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
