"""`torch.storage`: the memory of tensors."""

from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]

StorageBase = UntypedStorage  # which PyTorch derives from it; a TypedStorage is none
