"""`torch.storage`: the memory that tensors lie in (floor 4)."""

from tinytorch.ops.memory import TypedStorage, UntypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
