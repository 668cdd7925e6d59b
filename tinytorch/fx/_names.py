"""The names that functions and types have in PyTorch: graphs and generated code show them."""

from __future__ import annotations

import builtins
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.ops.register import Builtin, Function, functions

#: Functions whose name in a graph is not that of their declaration.
_IN_GRAPHS = {
    "nn.functional.logsigmoid": "torch._C._nn.log_sigmoid",
    "nn.functional.threshold": "torch.nn.functional._threshold",
    "get_rng_state": "torch.random.get_rng_state",
    "initial_seed": "torch.random.initial_seed",
    "manual_seed": "torch.random.manual_seed",
    "seed": "torch.random.seed",
    "set_rng_state": "torch.random.set_rng_state",
}
_PACKAGE = __name__.partition(".")[0]


def root() -> Any:
    """Return the package, which generated code calls `torch`."""
    return sys.modules[_PACKAGE]


def _home(obj: Any) -> str:
    """Return the module of an object, "" if it tells of none; the module's name is that in PyTorch."""
    module = module_of(obj)
    if not isinstance(module, str):
        return ""
    package, _, rest = module.partition(".")
    if package != _PACKAGE:
        return module
    if not rest or rest.partition(".")[0] in root()._HIDDEN:
        return "torch"
    return f"torch.{rest}"


def is_ours(obj: Any) -> bool:
    """Return whether generated code refers to an object by its path below `torch`: not to methods of Tensor."""
    if callable(obj) and _is_member(obj, getattr(obj, "__name__", "")):
        return False
    module = _home(obj)
    if module:
        return module.partition(".")[0] == "torch"
    name = getattr(obj, "__name__", None)
    return name not in (None, "torch", _PACKAGE) and any(
        getattr(home, name, None) is obj for home in (root(), root().nn.functional)
    )


def _function_name(function: Function) -> str:
    """Return the path of a public function: PyTorch defines some in its compiled module."""
    home, _, own = function.name.rpartition(".")
    special = _IN_GRAPHS.get(function.name)
    if special is not None:
        return special
    if function.python:
        return f"torch.functional.{function.__name__}"
    if home == "nn.functional" and not function.binds:
        return f"torch.{own}" if functions.get(own) is function else f"torch._C._nn.{own}"
    if home in ("fft", "linalg", "special"):
        return f"torch._C._{home}.{function.__name__}"
    return f"torch.{function.name}"


def _is_member(function: Any, name: str) -> bool:
    """Return whether a function is a method of Tensor."""
    if isinstance(function, (type, Builtin)) or isinstance(getattr(function, "__self__", None), types.ModuleType):
        return False
    if getattr(function, "__qualname__", "") == f"Tensor.{name}" and _home(function) == "torch":
        return True
    return vars(Tensor).get(name) is function


def qualified_name(func: Callable[..., Any]) -> str:
    """Return the dotted name by which generated code refers to a function."""
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if isinstance(func, Function):
        return _function_name(func)
    if isinstance(func, Builtin):
        return func.path
    if _is_member(func, name):
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as error:
            raise RuntimeError("Unable to represent lambda") from error
    module = _home(func)
    if not module:
        if not is_ours(func):
            raise RuntimeError(f"cannot find module for {func}")
        module = "torch" if getattr(root(), name, None) is func else "torch.nn.functional"
    return f"{module.replace('torch._ops', 'torch.ops')}.{name}"


def own_name(target: Callable[..., Any]) -> str:
    """Return the last part of a target's name, from which the names of nodes are made."""
    if isinstance(target, Function):
        return _function_name(target).rpartition(".")[2]
    name: str = target.__name__
    return name


def type_name(obj: Any) -> str:
    """Return the text of a type in an annotation."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        module = _home(obj)
        return obj.__qualname__ if module == "builtins" else f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return re.sub(rf"\b{_PACKAGE}\.", "torch.", repr(obj))


def pretty_target(target: Any) -> str:
    """Return the text of a target in a printed graph."""
    if isinstance(target, str):
        return target
    module = module_of(target)
    if module and not hasattr(target, "__name__"):
        return qualified_name(target)
    if module == "builtins":
        return f"builtins.{target.__name__}"
    if module == "_operator":
        return f"operator.{target.__name__}"
    return qualified_name(target)
