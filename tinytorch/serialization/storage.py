"""The memory that tensors of a checkpoint are views of."""

from __future__ import annotations

from typing import Any, NoReturn, cast

import numpy as np

from tinytorch.kernels import dtypes
from tinytorch.ops.storage import TypedStorage, UntypedStorage


class Storage:
    """Memory that tensors are views of: what `load` hands to a callable `map_location`.

    Attributes:
        array: the elements in the order of memory, one-dimensional.
        dtype: their type.
    """

    __module__ = "tinytorch.serialization"  # where users find it
    __slots__ = ("array", "dtype", "key", "seen")

    def __init__(self, array: np.ndarray[Any, Any], dtype: dtypes.dtype, key: str) -> None:
        self.array, self.dtype, self.key = array, dtype, key
        self.seen: TypedStorage | None = None  # the storage as users know it, once it is asked for

    def cpu(self) -> Storage:
        """Return the storage, which is on the CPU."""
        return self

    def cuda(self, device: Any = None, non_blocking: bool = False) -> NoReturn:
        """Raise RuntimeError: there is no such device."""
        _refuse_location("cuda")

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self.array.nbytes

    def as_users_see_it(self, untyped: bool) -> TypedStorage | UntypedStorage:
        """Return the storage that an object holds, one for all that hold it."""
        if self.seen is None:
            memory = UntypedStorage()
            memory._array = self.array.view(np.uint8)
            self.seen = TypedStorage(wrap_storage=memory, dtype=self.dtype)
        return self.seen.untyped() if untyped else self.seen


class _StorageType:
    """What a name like torch.FloatStorage stands for."""

    def __init__(self, dtype: dtypes.dtype, untyped: bool = False) -> None:
        self.dtype, self.untyped = dtype, untyped


def _address(array: np.ndarray[Any, Any]) -> int:
    return cast(int, array.__array_interface__["data"][0])


def _refuse_location(location: str) -> NoReturn:
    if location.startswith("cuda"):
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {location}): use map_location='cpu'"
    )
