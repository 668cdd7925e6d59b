"""PyTorch's `torch.nn.parallel`: `DataParallel`, which has one device here, and `DistributedDataParallel`."""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.nn.modules.parallel import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]


def __getattr__(name: str) -> Any:
    if name in ("DistributedDataParallel", "distributed"):  # it imports `tinytorch.distributed`
        module = importlib.import_module("tinytorch.nn.parallel.distributed")
        return module if name == "distributed" else module.DistributedDataParallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
