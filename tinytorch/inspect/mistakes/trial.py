"""`Trial`: calls that nobody notices, for remedies that are tried before they are shown.

Three things make sure that a trial has no effect:

- No code of the user's runs. `running.Interpreter` evaluates the user's expressions and functions itself, and raises
  `Unknown` at what it does not know to be free of effects: it calls functions of the package, of Python and of NumPy.
- What these are given is a copy (`Trial.private`): of tensors, modules (without hooks) and containers. Objects of other
  classes are given to none of them.
- The state of the thread is a new one (`core.mode.unnoticed`). Its only mode, the trial, sees each op: a tensor that
  would be large loses its data, and the trial ends when its time is over. Warnings are failures, and random numbers
  come from a generator of its own.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from tinytorch import nn
from tinytorch.core.device import device
from tinytorch.core.mode import DispatchMode, local
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels.dtypes import dtype
from tinytorch.kernels.meta import NoData, like
from tinytorch.kernels.random import Source
from tinytorch.nn.modules import module as modules
from tinytorch.ops.register import Function
from tinytorch.optim import optimizer as optimizers

__all__ = ["Failed", "Trial", "Unknown", "is_users", "static"]


class Unknown(Exception):
    """What would have to run might have an effect, or takes too long."""


class Failed(Exception):
    """What was tried raises an error, which is the cause."""


#: How many elements a tensor has at most, and all copies together: others are without data.
MOST, MOST_COPIED = 1 << 20, 1 << 23
#: How many seconds of the processor an error may take, and how many expressions are evaluated.
SECONDS, STEPS = 2.0, 100_000
#: The elements of lists, and of arrays that are no tensors, at most.
ITEMS = 1 << 16

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice, type(...), dtype, device)
_ITERATORS: tuple[Any, ...] = (zip, enumerate, reversed, type({}.keys()), type({}.values()), type({}.items()))
#: Where the package's functions and classes are that have no effects but on their arguments.
_FUNCTIONS = ("tinytorch.nn.functional", "tinytorch.nn.utils", "tinytorch.nn.init", "tinytorch.data.dataset")
_COPIED = (
    "tinytorch.nn",
    "tinytorch.distributions",
    "tinytorch.optim",
    "tinytorch.data.dataset",
    "tinytorch.data.sampler",
)
_CLASSES = (*_COPIED, "tinytorch.core.tensor", "tinytorch.data.dataloader", "tinytorch.ops.random")
#: Functions of the package that concern more than their arguments: the generator of the process, and files.
_OF_PROCESS = ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state", "from_file")
#: Functions of Python and NumPy that have none.
_BUILTINS = {getattr(builtins, name): name for name in (
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max",
    "min", "range", "reversed", "round", "set", "slice", "sorted", "sum", "tuple", "zip")} | {
    copy.copy: "", copy.deepcopy: ""}  # fmt: skip
_OF_NUMPY = {getattr(np, name) for name in (
    "array", "asarray", "stack", "concatenate", "zeros", "ones", "full", "arange", "expand_dims", "squeeze", "reshape",
    "transpose", "mean", "sum", "max", "min", "argmax", "argmin", "float32", "float64", "int32", "int64")}  # fmt: skip
_ARRAYS = {
    "astype",
    "copy",
    "reshape",
    "transpose",
    "mean",
    "sum",
    "max",
    "min",
    "argmax",
    "squeeze",
    "flatten",
    "tolist",
}


def is_users(x: Any) -> bool:
    """Return whether a function or class is none of the package."""
    return (module_of(x) or "").partition(".")[0] != "tinytorch"


def static(owner: Any, name: str) -> Any:
    """Return an attribute of an object, as it is found without running code of the user's; of none, `Unknown`."""
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:
        own = {}
    for names in (own, *(own.get(key, {}) for key in ("_parameters", "_buffers", "_modules") if "_modules" in own)):
        if name in names:
            return names[name]
    for kind in (*(owner.__mro__ if isinstance(owner, type) else ()), *type(owner).__mro__):
        if name in vars(kind):
            value = vars(kind)[name]
            if isinstance(value, (staticmethod, classmethod)):
                return MethodType(value.__func__, kind) if isinstance(value, classmethod) else value.__func__
            if isinstance(value, FunctionType):
                return value if isinstance(owner, type) else MethodType(value, owner)
            if hasattr(type(value), "__get__"):
                break
            return value
    raise Unknown(name)


class Trial(DispatchMode):
    """The mode in which remedies are tried.

    Attributes:
        source: the generator from which random numbers are drawn.
        instead: modules, by the identities of those in whose place they are called.
        goal: an expression of the user's; `passed` is whether it has been evaluated.
        warns: whether warnings are collected, in `usual`, rather than failures.
    """

    def __init__(self) -> None:
        self.source, self.instead = Source(0), dict[int, Any]()
        self.goal: Any = None
        self.passed = False
        self.warns, self.usual = False, set[str]()
        self._end, self._steps, self._copied = time.process_time() + SECONDS, 0, 0
        self._tensors: dict[int, tuple[Any, Any, int]] = {}  # by identity: the tensor, its copy, the copy's version
        self._objects: dict[int, tuple[Any, Any]] = {}

    def tick(self) -> None:
        """Raise Unknown if the time is over."""
        self._steps += 1
        if self._steps > STEPS or time.process_time() > self._end:
            raise Unknown("the time is over")

    def warned(self, message: str) -> None:
        """Make a failure of a warning, unless the call that failed gives it, too."""
        if self.warns:
            self.usual.add(message)
        elif message not in self.usual:
            raise UserWarning(message)

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute a result with data, unless it is large."""
        self.tick()
        given = list(tensors_in((args, kwargs)))
        if any(each.is_meta for each in given):
            return caller(*bare(args), **bare(kwargs))
        if math.prod([max(each.numel(), 1) for each in given]) * _times((args, kwargs)) > MOST:
            with contextlib.suppress(Exception):  # (it depends on the elements, or fails, which is then seen again)
                given += tensors_in(caller(*bare(args), **bare(kwargs)))
            if any(each.numel() > MOST for each in given):
                return caller(*bare(args), **bare(kwargs))
        return caller(*args, **kwargs)

    # Copies -----------------------------------------------------------------------------------------

    def renew(self) -> None:
        """Begin another trial: forget the copies of objects, and of tensors if one of them has been written."""
        self._objects.clear()
        if any(copy._version != version for _, copy, version in self._tensors.values()):
            self._tensors.clear()
            self._copied = 0

    def private(self, x: Any) -> Any:
        """Return a copy of an object, in which nothing is shared with it that could be written; others as they are."""
        kind = type(x)
        if kind in _PLAIN or isinstance(x, type):
            return x
        if kind in (Tensor, nn.Parameter):
            return self._tensor(x)
        if id(x) in self.instead:
            return self.instead[id(x)]
        if id(x) in self._objects:
            return self._objects[id(x)][1]
        if isinstance(x, (list, tuple, dict, set)):
            again = self._container(x)
        elif kind is np.ndarray or isinstance(x, np.generic):
            again = _array(x)
        elif kind is MethodType:
            owner = self.private(x.__self__)
            if isinstance(owner, nn.Module) and not self.is_known(owner) and not is_users(x.__func__):
                owner = self._shell(owner)
            return MethodType(x.__func__, owner)
        elif isinstance(x, nn.Module) or (module_of(kind) or "").startswith(_COPIED):
            again = self._object(x)
        else:
            return x
        if again is not x:
            self._objects[id(x)] = self._objects[id(again)] = x, again  # (a copy is its own copy)
        return again

    def _tensor(self, x: Tensor) -> Tensor:
        if id(x) not in self._tensors:
            state = local.state
            modes, grad = state.modes, state.grad
            state.modes, state.grad = None, False
            try:
                self._copied += x.numel()
                large = x.numel() > MOST or self._copied > MOST_COPIED
                again = bare(x.detach()) if large or x.is_meta else x.detach().clone()
                if x.requires_grad:
                    again.requires_grad_()
                    state.grad = True
                    again = again if x.is_leaf else again.view_as(again)  # (that it is computed counts, too)
            except Exception as error:
                raise Unknown("a tensor that is not copied") from error
            finally:
                state.modes, state.grad = modes, grad
            self._tensors[id(x)] = x, again, again._version
            self._tensors[id(again)] = self._tensors[id(x)]
        return self._tensors[id(x)][1]

    def _container(self, x: Any) -> Any:
        kind = type(x)
        if len(x) > ITEMS:
            raise Unknown("a long list")
        if any(type(each) not in _PLAIN for each in x) if isinstance(x, (dict, set)) else False:
            return x  # (keys of the user's classes have functions of theirs)
        if kind in (dict, OrderedDict):
            return {self.private(key): self.private(value) for key, value in x.items()}
        items = [self.private(each) for each in x]
        if kind in (list, tuple, set):
            return kind(items)
        if not is_users(kind) and isinstance(x, tuple):
            return kind(*items) if hasattr(kind, "_make") else kind(items)
        return x

    def _object(self, x: Any) -> Any:
        """Return a copy of an object of the package, without hooks; itself if the user's code is a part of it."""
        check_hooks()
        if is_users(type(x)) or not hasattr(x, "__dict__"):
            return x
        again = object.__new__(type(x))
        for name, value in vars(x).items():
            if "_hooks" in name:
                value = type(value)()
            elif type(value) in (dict, OrderedDict):
                value = type(value)((key, self.private(each)) for key, each in value.items())
            else:
                value = self.private(value)
            if not all(self.is_known(each) for each in (value.values() if isinstance(value, dict) else (value,))):
                return x
            again.__dict__[name] = value
        return again

    def _shell(self, module: Any) -> Any:
        """Return a module of no class in particular, with copies of the parameters of a module of the user's."""
        check_hooks()
        again = nn.Module()
        again.__dict__["training"] = module.training
        for name in ("_parameters", "_buffers"):
            again.__dict__[name] = {key: self.private(value) for key, value in vars(module)[name].items()}
        for key, child in module._modules.items():
            copied = self.private(child)
            again._modules[key] = copied if child is None or self.is_known(copied) else self._shell(child)
        self._objects[id(again)] = module, again
        return again

    def is_known(self, x: Any) -> bool:
        """Return whether an object is a copy, or such that no code of the user's runs where it is used."""
        kind = type(x)
        if (
            kind in _PLAIN
            or kind in _ITERATORS
            or kind in (Tensor, nn.Parameter, np.ndarray)
            or isinstance(x, np.generic)
        ):
            return True
        if isinstance(x, (list, tuple, set)):
            return (kind in (list, tuple, set) or not is_users(kind)) and all(map(self.is_known, x))
        if kind in (dict, OrderedDict):
            return all(map(self.is_known, x.values()))
        if isinstance(x, (type, FunctionType, BuiltinFunctionType, Function)):
            return x in _BUILTINS or x in _OF_NUMPY or _is_scalar(x) or not is_users(x)
        if kind is MethodType:
            return self.is_known(x.__self__)
        return not is_users(kind) and id(x) in self._objects and self._objects[id(x)][1] is x

    # Calls ------------------------------------------------------------------------------------------

    def do(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call what is known, with arguments of which the same is so.

        Raises:
            Unknown: one of the arguments is not known, or elements are read of a tensor that has none.
            Failed: the call fails.
        """
        self.tick()
        if not all(map(self.is_known, (*args, *kwargs.values()))):
            raise Unknown("an object of the user's")
        try:
            with np.errstate(all="ignore"):
                result = function(*args, **kwargs)
                return list(result) if isinstance(result, GeneratorType) else result
        except (NoData, Unknown) as error:
            raise Unknown("an element that is not there") from error
        except Exception as error:
            raise Failed(error) from error

    def apply(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function or class of the package, of Python or NumPy, or a method of a copy."""
        if not self.may_call(function):
            raise Unknown(getattr(function, "__name__", ""))
        code = getattr(getattr(function, "__init__", None), "__code__", None)
        names = getattr(function, "names", ()) or getattr(code, "co_varnames", ())
        if "device" in names and "device" not in kwargs:
            try:
                made = self.do(function, *args, **kwargs, device="meta")
            except Failed:
                made = None
            if sum(each.numel() for each in tensors_in(made)) > MOST:
                return made
        result = self.do(function, *args, **kwargs)
        if (module_of(type(result)) or "").startswith((*_COPIED, "tinytorch.ops.random")):  # (a loader is not used)
            self._objects[id(result)] = result, result
        return result

    def may_call(self, function: Any) -> bool:
        """Return whether a function or class is known to have no effect but on its arguments."""
        if isinstance(function, Function):
            return function.name not in _OF_PROCESS
        owner = getattr(function, "__self__", None)
        if owner is not None and not isinstance(owner, (type, ModuleType)):
            of_array = isinstance(owner, (np.ndarray, np.generic))
            return self.is_known(owner) and (not of_array or function.__name__ in _ARRAYS)
        if isinstance(function, np.ufunc) or getattr(function, "__module__", "") == "math":
            return True
        try:
            if function in _BUILTINS or function in _OF_NUMPY:
                return True
        except TypeError:  # (it has no hash)
            return False
        if isinstance(function, type) and issubclass(function, nn.Module):
            check_hooks()
        module, refused = module_of(function) or "", getattr(function, "__traced_as__", "") == "refused"
        if isinstance(function, type):
            return module.startswith(_CLASSES)
        return isinstance(function, FunctionType) and module.startswith(_FUNCTIONS) and not refused

    def iterated(self, x: Any) -> Iterator[Any]:
        """Return the elements of a copy."""
        if isinstance(x, (nn.Sequential, nn.ModuleList)) and not is_users(type(x).__iter__):
            yield from map(self.private, x._modules.values())
            return
        if not self.is_known(x):
            raise Unknown("an iterable of the user's")
        items = self.do(iter, x)
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                raise Failed(error) from error
            self.tick()
            yield item


def _is_scalar(x: Any) -> bool:
    return isinstance(x, type) and issubclass(x, np.generic)


def _array(x: Any) -> Any:
    """Return a copy of an array of NumPy, or of a number."""
    if x.size > MOST or (x.dtype.hasobject and any(type(each) not in _PLAIN for each in x.flat)):
        raise Unknown("a large array, or one of objects")
    backwards = tuple([slice(None, None, -1 if step < 0 else 1) for step in x.strides])
    return x[backwards].copy()[backwards] if x.ndim else x.copy()


def tensors_in(x: Any) -> Iterator[Tensor]:
    """Yield the tensors in an object: a tensor, a module, or a container of such."""
    if type(x) in (Tensor, nn.Parameter):
        yield x
    elif isinstance(x, nn.Module):
        yield from tensors_in(list(x.parameters()))
    elif isinstance(x, (list, tuple)):
        for each in x:
            yield from tensors_in(each)
    elif isinstance(x, dict):
        yield from tensors_in(list(x.values()))


def _times(x: Any) -> int:
    """Return how many times larger than its tensors the numbers among its arguments may make a result."""
    if isinstance(x, (list, tuple)):
        return math.prod(map(_times, x))
    if isinstance(x, dict):
        return _times(list(x.values()))
    return abs(x) + 2 if type(x) is int else 1


def bare(x: Any) -> Any:
    """Return a tensor without data, and the like of containers; other objects as they are."""
    if isinstance(x, Tensor):
        if x.is_meta:
            return x
        made = wrap(like(x._array))
        return made.requires_grad_() if x.requires_grad else made
    if type(x) in (list, tuple):
        return type(x)(map(bare, x))
    return {key: bare(value) for key, value in x.items()} if type(x) is dict else x


def check_hooks() -> None:
    """Raise Unknown if there are hooks of all modules or optimizers, which would see those of a trial."""
    of_modules = [value for name, value in vars(modules).items() if name.startswith("_global_")]
    if any([*of_modules, optimizers._step_pre_hooks, optimizers._step_post_hooks]):
        raise Unknown("hooks of all modules")
