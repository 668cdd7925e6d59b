"""`torch.storage`: the memory of tensors."""

import io
from typing import Any

from tinytorch.ops.storage import TypedStorage, UntypedStorage
from tinytorch.serialization import load

__all__ = ["StorageBase", "TypedStorage", "UntypedStorage"]

StorageBase = UntypedStorage  # which PyTorch derives from it; a TypedStorage is none


def _load_from_bytes(b: bytes) -> Any:
    """Return the object in the bytes of a file: PyTorch's pickles of a storage call this."""
    return load(io.BytesIO(b), weights_only=False)
