"""Functions that `core` calls but later modules define, since they are ops or know of classes that `core` does not.

This registry is the one place where a module refers to a module after it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: The module that defines each function.
_MODULES = {
    "strided": "core.strided",  # the part of a tensor's memory at a place
    "restrided": "core.strided",  # its gradient: the part at a place of a memory of zeros with a tensor added to it
    "copy_slices": "core.strided",  # a tensor with another one written at a place of its memory
    "first_contact": "ops.overrides",  # whether operands have a `__torch_function__` and have not been asked so far
}
_functions: dict[str, Callable[..., Any]] = {}


def supplied(name: str) -> Callable[..., Any]:
    """Return a function that a later module defines; the module is imported when it is first asked for."""
    function = _functions.get(name)
    if function is None:
        function = _functions[name] = getattr(import_module(f"tinytorch.{_MODULES[name]}"), name)
    return function
