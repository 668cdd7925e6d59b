"""`torch.storage`: the memory that tensors lie in (floor 4)."""

from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
