"""`torch.distributed.optim`: optimizers distributed over several processes."""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]


def __getattr__(name: str) -> Any:
    """Return a name that is not implemented, from the table in `compat/names.txt`."""
    places = {"DistributedOptimizer": "optimizer", "PostLocalSGDOptimizer": "post_localSGD_optimizer"}
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{places[name]}"), name)
