"""All public functions by name, and all ops; importing this module imports all modules that declare functions."""

from __future__ import annotations

from typing import Any

import tinytorch
import tinytorch.fft
import tinytorch.linalg
import tinytorch.nn.functional
import tinytorch.special
from tinytorch.core.node import OpNode
from tinytorch.ops import out, register, rejection  # noqa: F401  (the ops of the first and the last are in the table, too)

for _name in tinytorch.__all__:
    getattr(tinytorch, _name)

FUNCTIONS = dict(register.functions)


def registered(cls: Any = OpNode) -> set[Any]:
    """Return all ops."""
    ops = {cls.op} if hasattr(cls, "op") else set()
    for each in cls.__subclasses__():
        if each.__module__.startswith("tinytorch"):
            ops |= registered(each)
    return ops
