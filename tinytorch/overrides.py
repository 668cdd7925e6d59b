"""`torch.overrides`: what programs ask, and call, that answer PyTorch's functions by `__torch_function__`."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.ops import overrides
from tinytorch.ops.overrides import (
    BaseTorchFunctionMode,
    TorchFunctionMode,
    handle_torch_function,
    has_torch_function,
    is_tensor_like,
    is_tensor_method_or_property,
    resolve_name,
    wrap_torch_function,
)
from tinytorch.ops.register import functions

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_ignored_functions", "get_overridable_functions",
    "handle_torch_function", "has_torch_function", "is_tensor_like", "is_tensor_method_or_property", "resolve_name",
    "wrap_torch_function",
]  # fmt: skip


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return what can be overridden: the functions of each module, and the methods of Tensor."""
    for declaring in ("ops", "nn.functional"):
        package = importlib.import_module(f"{__package__}.{declaring}")
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(each.name)
    found: dict[Any, list[Any]] = {}
    for name, function in list(functions.items()):
        home, _, own = name.rpartition(".")
        if function.asks and not own.startswith("_"):
            found.setdefault(importlib.import_module(f"{__package__}.{home}".rstrip(".")), []).append(function)
    found[Tensor] = overrides.methods()
    return found


def get_ignored_functions() -> set[Any]:
    """Return functions of `torch`, and methods of Tensor, that cannot be overridden."""
    root = importlib.import_module("tinytorch")
    own = {
        function
        for name in root.__all__
        if inspect.isroutine(function := getattr(root, name)) and not getattr(function, "asks", False)
    }
    return own | overrides.silent()
