"""`torch.jit`: nothing is compiled; functions and modules run as they are.

TorchScript is a subset of Python with Python's meaning, so `script` can return what it is given. So can `trace`, with
one difference: a trace keeps the way that the example took through `if` and `for`, and the function itself goes by its
arguments. Saved TorchScript is a program in a format of its own: `save` and `load` raise NotImplementedError.
"""

import copy
import os
import types
import typing
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

from tinytorch.nn.modules.module import Module

from ..absent import Idle, answering
from ..named import names_of
from . import annotations as annotations  # what `from __future__ import annotations` would be here

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "fork",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing", "script_method",
    "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_is_a = isinstance


class Error(RuntimeError):
    """What compiled code raises in PyTorch; programs catch it. Never raised here."""


class ScriptModule(Module):
    """The base of modules whose methods are compiled in PyTorch: here a `Module`."""


class Attribute(NamedTuple):
    """A value of a module, and its type."""

    value: Any
    type: Any


# Compilation: none --------------------------------------------------------------------------------


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> Any:
    """Return a function, class, module, list or dict itself: it means the same without being compiled.

    Raises:
        TypeError: `obj` is something else.

    Example:
        >>> @torch.jit.script
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> double(torch.ones(1))
        tensor([2.])
    """
    if not callable(obj) and not _is_a(obj, (list, dict)):
        raise TypeError(f"{type(obj)} is a built-in class: torch.jit.script takes a function, class or module")
    return obj


def trace(
    func: Any,
    example_inputs: Any = None,
    optimize: None = None,
    check_trace: bool = True,
    check_inputs: Any = None,
    check_tolerance: float = 1e-5,
    strict: bool = True,
    _force_outplace: bool = False,
    _module_class: Any = None,
    _compilation_unit: Any = None,
    example_kwarg_inputs: dict[str, Any] | None = None,
    _store_inputs: bool = True,
) -> Any:
    """Return a function or module itself, called once with the example.

    PyTorch's trace does what was done for the example, also where the function would take another way for other
    arguments; here it takes that way.

    Args:
        example_inputs: its arguments, a tuple, or a single tensor.
        optimize, check_trace, check_inputs, check_tolerance, strict: have no effect.
        example_kwarg_inputs: arguments by name, in place of `example_inputs`.

    Raises:
        RuntimeError: there are no example inputs.
        TypeError: `func` cannot be called.

    Example:
        >>> model = torch.jit.trace(torch.nn.ReLU(), torch.ones(1))
        >>> model(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    if not callable(func):
        raise TypeError(f"torch.jit.trace: expected a function or module, but got {type(func)}")
    if example_inputs is None:
        if example_kwarg_inputs is None:
            raise RuntimeError("example_kwarg_inputs should be a dict")
        func(**example_kwarg_inputs)
    else:
        func(*(example_inputs if _is_a(example_inputs, (tuple, list)) else (example_inputs,)))
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Module:
    """Return a module itself, each method of `inputs` called once with its example; see `trace`."""
    for name, example in inputs.items():
        trace(getattr(mod, name), example)
    return mod


def _same(fn: Any) -> Any:
    """Return the function, class or module itself."""
    return fn


export = interface = script_if_tracing = script_method = unused = _same
_overload = _overload_method = _script_if_tracing = _same  # torchvision has them


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a decorator that returns the function itself; so does `ignore` as a decorator without arguments."""
    return drop if callable(drop) else _same


def freeze(mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Module:
    """Return a copy of a module in evaluation mode, whose parameters are constants: they require no gradient.

    Raises:
        RuntimeError: the module is in training mode.
    """
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return copy.deepcopy(mod).requires_grad_(False)


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Module:
    """Return a module itself, in evaluation mode."""
    return mod.eval()


is_scripting = answering("is_scripting", lambda: False, "Return False: code is never compiled.")
is_tracing = answering("is_tracing", lambda: False, "Return False.")


# Annotations --------------------------------------------------------------------------------------


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value: its type is for the compiler."""
    return the_value


def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is of a type such as `list[int]` or `dict[str, Tensor]`, elements included.

    Raises:
        RuntimeError: `target_type` is neither a type nor a tuple of types.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    if _is_a(target_type, tuple):
        return any(isinstance(obj, each) for each in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        if target_type is None:
            target_type = type(None)
        if not _is_a(target_type, type):
            raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
        return _is_a(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, each) for each in args)
    if not _is_a(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple and Ellipsis not in args:
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return all(isinstance(each, args[0]) for each in obj)


# Tasks --------------------------------------------------------------------------------------------


class Future:
    """The result of a task: it is there already."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def wait(self) -> Any:
        """Return the result."""
        return self._value

    def value(self) -> Any:
        """Return the result."""
        return self._value

    def done(self) -> bool:
        """Return True."""
        return True


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call a function, and return what `wait` takes: tasks run one after the other, as in PyTorch outside TorchScript.

    Example:
        >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 2))
        tensor([3.])
    """
    return Future(func(*args, **kwargs))


def wait(future: Future) -> Any:
    """Return the result of a task."""
    return future.wait()


# Settings without effect --------------------------------------------------------------------------

_fusion: list[Any] = [[("STATIC", 2), ("DYNAMIC", 10)], False]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Keep how code is to be fused, and return what was kept before."""
    before: list[tuple[str, int]] = _fusion[0]
    _fusion[0] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Keep whether oneDNN is to fuse code."""
    _fusion[1] = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Return what `enable_onednn_fusion` was told."""
    return bool(_fusion[1])


@contextmanager
def optimized_execution(should_optimize: bool) -> typing.Iterator[None]:
    """Do what is inside a `with` block: it is not compiled in any case."""
    yield


class strict_fusion(Idle):
    """Do what is inside a `with` block: it is not compiled in any case."""


# Files --------------------------------------------------------------------------------------------


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raise NotImplementedError: there is no TorchScript to save.

    `torch.save(module.state_dict(), f)` keeps the parameters, `torch.save(module, f)` the module.
    """
    raise NotImplementedError(
        "torch.jit.save: tinytorch writes no TorchScript; torch.save(module.state_dict(), f) keeps the parameters"
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> NoReturn:
    """Raise NotImplementedError: TorchScript is not read.

    Raises:
        ValueError: there is no such file.
        NotImplementedError: else.
    """
    if _is_a(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    raise NotImplementedError("torch.jit.load: tinytorch reads no TorchScript")


globals().update(names_of(__name__))
