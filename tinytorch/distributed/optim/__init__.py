"""`torch.distributed.optim`: optimizers over several processes."""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.distributed.optim.zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]


def __getattr__(name: str) -> Any:
    """Return a name of what is not there, from its module in the table of such names."""
    places = {"DistributedOptimizer": "optimizer", "PostLocalSGDOptimizer": "post_localSGD_optimizer"}
    if name not in places:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{places[name]}"), name)
