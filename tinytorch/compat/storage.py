"""`torch.storage`: the memory that tensors lie in."""

from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]

StorageBase = UntypedStorage  # which PyTorch derives from it; a TypedStorage is none
