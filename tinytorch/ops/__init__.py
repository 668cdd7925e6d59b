"""The calculus: each op's kernel with the formulas of its gradient (floor 3).

It is `torch.ops`, too, where PyTorch has operators that programs define: see `tinytorch.library`.
"""

from importlib import import_module
from typing import Any, NoReturn


class _Namespace:
    """Operators that a program defined, by name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")


_namespaces: dict[str, _Namespace] = {}


def load_library(path: Any) -> NoReturn:
    """Raise OSError: `torch.ops.load_library` loads operators compiled for PyTorch, which cannot run here."""
    raise OSError(f"could not load {path}: it is compiled for PyTorch, not for tinytorch")


def __getattr__(name: str) -> Any:
    if name == "aten":
        import_module("tinytorch.library")  # enters it
    if name in _namespaces:
        return _namespaces[name]
    raise AttributeError(f"module 'tinytorch.ops' has no attribute {name!r}")
