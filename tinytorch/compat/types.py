"""`torch.types`: names for annotations."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TypeAlias

from tinytorch.core.device import device
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels import dtypes
from tinytorch.ops.storage import TypedStorage, UntypedStorage

__all__ = ["Device", "Number", "Storage", "_TensorOrTensors", "_bool", "_device", "_dtype", "_float", "_int", "_size"]

_int = builtins.int
_float = builtins.float
_bool = builtins.bool
_dtype = dtypes.dtype
_device = device
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_TensorOrTensors: TypeAlias = Tensor | Sequence[Tensor]
Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
Storage: TypeAlias = UntypedStorage | TypedStorage
