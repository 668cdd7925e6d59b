"""`torch.jit`: functions and modules run in Python, without being compiled.

TorchScript is a subset of Python with Python's semantics, so `script` returns its argument. So does `trace`, with one
difference: PyTorch's trace always takes the branches that the example took, the function itself those that its
arguments select. As in PyTorch, a `TracerWarning` says where the function reads values, on which branches can depend.
Files of TorchScript are not supported: `save` and `load` raise NotImplementedError.
"""

import copy
import os
import sys
import types
import typing
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, NoReturn

from tinytorch.core.mode import DispatchMode, Event, traced_as
from tinytorch.core.warning import warn
from tinytorch.nn.modules.module import Module
from tinytorch.ops.overrides import ASKING

from .names import Idle, answering

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptModule", "annotate", "enable_onednn_fusion", "export", "fork",
    "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled",
    "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing", "script_method",
    "set_fusion_strategy", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

_is_a = isinstance
_SWITCH, _USE = "switch to `torch.compile` or `torch.export`", "use `torch.compile` instead"


class Error(RuntimeError):
    """The error of compiled code in PyTorch. tinytorch never raises it; programs catch it."""


class TracerWarning(Warning):
    """The traced function reads values of a tensor: a trace of PyTorch would be for these values alone."""


class ScriptModule(Module):
    """The base class of modules whose methods PyTorch compiles; here a `Module`."""


class Attribute(NamedTuple):
    """A value of a module, and its type."""

    value: Any
    type: Any


def _deprecated(name: str, instead: str, ends: bool = False) -> None:
    """Warn at this module's line, where Python's default filters do not show it: as in PyTorch.

    `ends` says that PyTorch has a warning of its own since Python 3.14.
    """
    what = "not supported in Python 3.14+ and may break" if ends and sys.version_info >= (3, 14) else "deprecated"
    warnings.warn(f"`torch.jit.{name}` is {what}. Please {instead}.", DeprecationWarning, stacklevel=2)


# Compilation, without effect ----------------------------------------------------------------------


def script(
    obj: Any,
    optimize: None = None,
    _frames_up: int = 0,
    _rcb: Callable[[str], Any] | None = None,
    example_inputs: Any = None,
) -> Any:
    """Return a function, class, module, list or dict unchanged: it runs in Python, with the same results.

    Example:
        >>> @torch.jit.script
        ... def double(x: torch.Tensor) -> torch.Tensor:
        ...     return x * 2
        >>> double(torch.ones(1))
        tensor([2.])
    """
    _deprecated("script", _SWITCH, ends=True)
    if not callable(obj) and not _is_a(obj, (list, dict)):
        raise TypeError(f"{type(obj)} is a built-in class: torch.jit.script takes a function, class or module")
    return obj


class _Traced(DispatchMode):
    """Warns where values of tensors become Python's: what depends on them is constant in a trace of PyTorch."""

    #: By the names of the functions that read values, what these become.
    KINDS: typing.ClassVar = {
        "_bool": "Python boolean", "_int": "Python integer", "_index": "Python index", "_float": "Python float",
        "item": "Python number", "tolist": "Python list", "numpy": "NumPy array",
    }  # fmt: skip

    def event(self, kind: Event, **facts: Any) -> None:
        """Warn of the kind of value that the outermost of these functions returns, of those in one module."""
        if kind is not Event.READ:
            return
        frame: types.FrameType | None = sys._getframe(2)
        names, what = sys._getframe(2).f_globals, None
        while frame is not None and (frame.f_globals is names or frame.f_code in ASKING):
            what = self.KINDS.get(frame.f_code.co_name, what)
            frame = frame.f_back
        if what is not None:
            warn(
                f"Converting a tensor to a {what} might cause the trace to be incorrect. We can't record the data flow "
                "of Python values, so this value will be treated as a constant in the future. This means that the "
                "trace might not generalize to other inputs! (So it is in PyTorch; in tinytorch, `trace` returns the "
                "function itself, which reads the value in each call: the results can differ.)",
                TracerWarning,
            )


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
    """Return a function or module unchanged, after calling it once with the example.

    PyTorch's trace takes the branches that the example took, for all later arguments; here a call takes the branches
    that its own arguments select. Where the call reads values of tensors, a `TracerWarning` says so.

    Args:
        optimize, check_trace, check_inputs, check_tolerance, strict: have no effect.

    Example:
        >>> model = torch.jit.trace(torch.nn.ReLU(), torch.ones(1))
        >>> model(torch.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """
    _deprecated("trace", _SWITCH, ends=True)
    if _is_a(func, Module) and not (example_inputs is None and example_kwarg_inputs is None):
        _deprecated("trace_method", _SWITCH, ends=True)
    return _traced(func, example_inputs, example_kwarg_inputs)


def _traced(func: Any, example_inputs: Any, example_kwarg_inputs: dict[str, Any] | None = None) -> Any:
    if not callable(func):
        raise TypeError(f"torch.jit.trace: expected a function or module, but got {type(func)}")
    kwargs: dict[str, Any] = {}
    if example_inputs is None:
        if example_kwarg_inputs is None:
            raise RuntimeError("example_kwarg_inputs should be a dict")
        example_inputs, kwargs = (), example_kwarg_inputs
    args = example_inputs if _is_a(example_inputs, (tuple, list)) else (example_inputs,)
    with _Traced():
        func(*args, **kwargs)
    return func


def trace_module(mod: Module, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Module:
    """Return a module unchanged, after calling each method of `inputs` with its example; see `trace`."""
    _deprecated("trace_method", _SWITCH, ends=True)
    for name, example in inputs.items():
        _traced(getattr(mod, name), example)
    return mod


def _same(fn: Any) -> Any:
    """Return a function, class or module unchanged."""
    return fn


export = script_if_tracing = unused = _same
_overload = _overload_method = _script_if_tracing = _same  # torchvision uses them


def script_method(fn: Any) -> Any:
    """Return a method unchanged."""
    _deprecated("script_method", _SWITCH, ends=True)
    return fn


def interface(obj: Any) -> Any:
    """Return a class unchanged."""
    _deprecated("interface", _USE)
    return obj


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Return a decorator that returns a function unchanged; without arguments, be that decorator."""
    return drop if callable(drop) else _same


def freeze(mod: Module, preserved_attrs: list[str] | None = None, optimize_numerics: bool = True) -> Module:
    """Return a copy of a module in evaluation mode whose parameters require no gradient."""
    _deprecated("freeze", _USE)
    if mod.training:
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return copy.deepcopy(mod).requires_grad_(False)


def optimize_for_inference(mod: Module, other_methods: list[str] | None = None) -> Module:
    """Put a module into evaluation mode, and return it."""
    _deprecated("optimize_for_inference", _USE)
    return mod.eval()


is_scripting = answering("is_scripting", lambda: False, "Return False: code runs in Python.")
is_tracing = answering("is_tracing", lambda: False, "Return False.")


# Annotations --------------------------------------------------------------------------------------


def annotate(the_type: Any, the_value: Any) -> Any:
    """Return the value; the type is for PyTorch's compiler."""
    return the_value


@traced_as("pure")
def isinstance(obj: Any, target_type: Any) -> bool:
    """Return whether `obj` is an instance of a type such as `list[int]` or `dict[str, Tensor]`, checking its elements.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "a"], list[int])
        (True, False)
    """
    if _is_a(target_type, tuple):
        return any(isinstance(obj, kind) for kind in target_type)
    origin, args = typing.get_origin(target_type), typing.get_args(target_type)
    if origin is None:
        if target_type is None:
            target_type = type(None)
        if not _is_a(target_type, type):
            raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
        return _is_a(obj, target_type)
    if origin in (typing.Union, types.UnionType):
        return any(isinstance(obj, kind) for kind in args)
    if not _is_a(obj, origin):
        return False
    if origin is dict:
        return all(isinstance(k, args[0]) and isinstance(v, args[1]) for k, v in obj.items())
    if origin is tuple and Ellipsis not in args:
        return len(obj) == len(args) and all(map(isinstance, obj, args))
    return all(isinstance(element, args[0]) for element in obj)


class _BroadcastingList:
    """`BroadcastingList2[int]`: an int, or a list of two."""

    def __getitem__(self, kind: Any) -> None:
        return None


_list_of = _BroadcastingList()


# Tasks --------------------------------------------------------------------------------------------


class Future:
    """The result of a task, which has finished."""

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
    """Call a function, and return its result as a future: tasks run in order, as in PyTorch outside TorchScript.

    Example:
        >>> torch.jit.wait(torch.jit.fork(torch.add, torch.ones(1), 2))
        tensor([3.])
    """
    _deprecated("fork", _USE)
    return Future(func(*args, **kwargs))


def wait(future: Future) -> Any:
    """Return the result of a task."""
    _deprecated("wait", _USE)
    return future.wait()


# Settings without effect --------------------------------------------------------------------------

_fusion: list[Any] = [[("STATIC", 2), ("DYNAMIC", 10)], False]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Set the strategy of fusing, without effect, and return the previous one."""
    _deprecated("set_fusion_strategy", _USE)
    before: list[tuple[str, int]] = _fusion[0]
    _fusion[0] = strategy
    return before


def enable_onednn_fusion(enabled: bool) -> None:
    """Set whether oneDNN fuses operations, without effect."""
    _fusion[1] = bool(enabled)


def onednn_fusion_enabled() -> bool:
    """Return the setting of `enable_onednn_fusion`."""
    return bool(_fusion[1])


@contextmanager
def optimized_execution(should_optimize: bool) -> typing.Iterator[None]:
    """Return a context manager without effect."""
    yield


class strict_fusion(Idle):
    """A context manager without effect: in PyTorch it requires that the code inside is fused."""


# Files --------------------------------------------------------------------------------------------


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raise NotImplementedError: TorchScript is not written.

    `torch.save(module.state_dict(), f)` saves the parameters, `torch.save(module, f)` the module.
    """
    _deprecated("save", "switch to `torch.export`", ends=True)
    raise NotImplementedError(
        "torch.jit.save: tinytorch writes no TorchScript; torch.save(module.state_dict(), f) keeps the parameters"
    )


def load(f: Any, map_location: Any = None, _extra_files: Any = None, _restore_shapes: bool = False) -> NoReturn:
    """Raise NotImplementedError: TorchScript is not read.

    Raises:
        ValueError: the file does not exist.
        NotImplementedError: the file exists.
    """
    _deprecated("load", "switch to `torch.export`", ends=True)
    if _is_a(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    raise NotImplementedError("torch.jit.load: tinytorch reads no TorchScript")
