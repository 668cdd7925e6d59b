"""`torch.autograd`: `backward`, `grad`, modes, `Function`, hooks, checks. Names are imported when asked for.

`api` has `backward`, `grad` and Tensor's members, `node` the `_saved_*` members of a `grad_fn`. `pytorch_graph`
imitates PyTorch's graph where ours differs.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tinytorch.ops.register import functions

if TYPE_CHECKING:
    from tinytorch.autograd import forward_ad, function, functional, grad_mode, graph, profiler
    from tinytorch.autograd.anomaly import detect_anomaly, set_detect_anomaly
    from tinytorch.autograd.api import backward, grad
    from tinytorch.autograd.function import Function
    from tinytorch.autograd.gradcheck import gradcheck, gradgradcheck
    from tinytorch.autograd.picture import picture
    from tinytorch.autograd.variable import Variable
    from tinytorch.autograd.grad_mode import (
        enable_grad,
        inference_mode,
        is_grad_enabled,
        is_multithreading_enabled,
        no_grad,
        set_grad_enabled,
        set_multithreading_enabled,
    )
    from tinytorch.autograd.node import SavedTensor

__all__ = [
    "Function", "SavedTensor", "Variable", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function",
    "functional", "grad", "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "is_grad_enabled",
    "is_multithreading_enabled", "no_grad", "picture", "profiler", "set_detect_anomaly", "set_grad_enabled",
    "set_multithreading_enabled",
]  # fmt: skip

_NAMES = {
    "autograd.anomaly": "detect_anomaly set_detect_anomaly",
    "autograd.api": "backward grad",
    "autograd.function": "Function",
    "autograd.gradcheck": "gradcheck gradgradcheck",
    "autograd.picture": "picture",
    "autograd.variable": "Variable",
    "autograd.grad_mode": """
        enable_grad inference_mode is_grad_enabled is_multithreading_enabled no_grad set_grad_enabled
        set_multithreading_enabled
    """,
    "autograd.node": "SavedTensor",
}
_WHERE = {name: path for path, names in _NAMES.items() for name in names.split()}
_SUBMODULES = """
    anomaly anomaly_mode forward_ad function functional grad_mode graph profiler profiler_util saved variable
""".split()


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        module = import_module(f"tinytorch.{_WHERE[name]}")
        value = globals()[name] = functions.get(f"autograd.{name}") or getattr(module, name)
        return value
    if name in _SUBMODULES:
        return import_module(f"tinytorch.autograd.{name}")
    raise AttributeError(f"module 'tinytorch.autograd' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES})


class _Package(ModuleType):
    """This package: its `gradcheck` and `picture` are the functions, not the modules of those names."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, getattr(value, name) if name in _WHERE and isinstance(value, ModuleType) else value)


sys.modules[__name__].__class__ = _Package
