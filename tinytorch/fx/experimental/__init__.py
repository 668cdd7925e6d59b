"""`torch.fx.experimental`: further tracers, and what is computed of graphs."""

import importlib
from typing import Any

from tinytorch.fx.experimental import const_fold, rewriter

__all__ = ["const_fold", "rewriter"]


def __getattr__(name: str) -> Any:
    if name == "proxy_tensor":  # (its rules take time to be imported)
        return importlib.import_module("tinytorch.fx.experimental.proxy_tensor")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
