"""`torch.storage`: the memory of tensors."""

from tinytorch.ops.storage import TypedStorage, UntypedStorage
from tinytorch.serialization.loading import _load_from_bytes as _load_from_bytes

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]

StorageBase = UntypedStorage  # which PyTorch derives from it; a TypedStorage is none
