"""`torch.fx.experimental`: further tracers."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    if name == "proxy_tensor":  # (its rules take time to be imported)
        return importlib.import_module("tinytorch.fx.experimental.proxy_tensor")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
