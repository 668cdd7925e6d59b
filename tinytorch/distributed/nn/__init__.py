"""`torch.distributed.nn`: differentiable collectives."""

from __future__ import annotations

import importlib
from typing import Any

from tinytorch.distributed.nn.functional import *  # noqa: F403
from tinytorch.distributed.nn.functional import __all__ as __all__


def __getattr__(name: str) -> Any:
    if name == "RemoteModule":  # packages ask for this name
        return getattr(importlib.import_module("tinytorch.distributed.nn.api.remote_module"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
