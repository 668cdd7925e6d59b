"""`torch.overrides`: lists of overridable functions, and helpers for classes with `__torch_function__`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

from tinytorch.core.mode import traced_as
from tinytorch.core.supplied import unlisted
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
from tinytorch.ops.overrides import pop_mode as _pop_mode
from tinytorch.ops.overrides import push_mode as _push_mode
from tinytorch.ops.register import functions

__all__ = [
    "BaseTorchFunctionMode", "TorchFunctionMode", "get_default_nowrap_functions", "get_ignored_functions",
    "get_overridable_functions", "get_testing_overrides", "handle_torch_function", "has_torch_function",
    "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like", "is_tensor_method_or_property",
    "redispatch_function", "resolve_name", "wrap_torch_function",
]  # fmt: skip


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Return by namespace what can be overridden: functions, methods of Tensor, and getters of its properties."""
    for folder in ("ops", "nn", "checks", "sparse"):  # importing the modules declares the functions
        package = importlib.import_module(f"{__package__}.{folder}")
        for info in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{package.__name__}."):
            importlib.import_module(info.name)
    overridable: dict[Any, list[Any]] = {}
    for full_name, function in list(functions.items()):
        namespace, _, name = full_name.rpartition(".")
        if (
            function.asks != "nobody"
            and function.listed
            and namespace not in ("autograd", "nn.utils.rnn")
            and name.strip("_") == name
        ):
            for module_name in (namespace, "functional") if function.python else (namespace,):
                module = importlib.import_module(f"{__package__}.{module_name}".rstrip("."))
                overridable.setdefault(module, []).append(function)
    for member, path in overrides.members().items():
        name, _, accessor = path.removeprefix("torch.Tensor.").partition(".")
        if name not in unlisted and accessor in ("", "__get__"):
            overridable.setdefault(vars(Tensor)[name] if accessor else Tensor, []).append(member)
    return overridable


def get_ignored_functions() -> set[Any]:
    """Return the functions of `torch` and the methods of Tensor that cannot be overridden."""
    root = importlib.import_module("tinytorch")
    public = {function for name in root.__all__ if inspect.isroutine(function := getattr(root, name))}
    ignored: set[Any] = {function for function in public if getattr(function, "asks", "nobody") == "nobody"}
    ignored |= {function for function in functions.values() if not function.listed}
    ignored |= {
        member for member, path in overrides.members().items() if path.removeprefix("torch.Tensor.") in unlisted
    }
    return ignored | {vars(Tensor)[name] for name in ("__hash__", "as_subclass")}


def get_default_nowrap_functions() -> set[Any]:
    """Return the members of Tensor whose results `Tensor.__torch_function__` does not convert to the subclass."""
    return set(overrides.as_they_are())


def get_testing_overrides() -> dict[Any, Callable[..., int]]:
    """Return, for each overridable function, a function with the same signature that returns -1.

    Example:
        >>> torch.overrides.get_testing_overrides()[torch.add](1, other=2)
        -1
    """
    overridable = [function for group in get_overridable_functions().values() for function in group]
    overridable += [function for name, function in functions.items() if name.startswith("nn.init.")]
    return {function: _dummy(inspect.signature(function)) for function in overridable}


def _dummy(signature: inspect.Signature) -> Callable[..., int]:
    def dummy(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    dummy.__signature__ = signature  # type: ignore[attr-defined]
    return dummy


@traced_as("pure")
def has_torch_function_unary(tensor: Any) -> bool:
    """Return `has_torch_function((tensor,))`."""
    return has_torch_function((tensor,))


@traced_as("pure")
def has_torch_function_variadic(*tensors: Any) -> bool:
    """Return `has_torch_function(tensors)`."""
    return has_torch_function(tensors)


def redispatch_function(func: Callable[..., Any], types: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
    """Return `func(*args, **kwargs)` without calling `__torch_function__` for it; the functions that it calls do.

    Example:
        >>> class Names(torch.Tensor):
        ...     @classmethod
        ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return torch.overrides.redispatch_function(func, types, args, kwargs)
        >>> type(torch.exp(Names([1.0]))).__name__
        exp
        'Tensor'
    """
    overrides.state.skips = True
    try:
        return func(*args, **(kwargs or {}))
    finally:
        overrides.state.skips = False


def _get_current_function_mode() -> TorchFunctionMode | None:
    return overrides.state.modes[-1] if overrides.state.modes else None


def _get_current_function_mode_stack() -> list[TorchFunctionMode]:
    return list(overrides.state.modes)


def _is_torch_function_mode_enabled() -> bool:
    return bool(overrides.state.modes) and overrides.state.asks is not overrides.ALL_DISABLED


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[TorchFunctionMode]:
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _enable_torch_function() -> Iterator[None]:
    previous, overrides.state.asks = overrides.state.asks, overrides.ENABLED
    try:
        yield
    finally:
        overrides.state.asks = previous
