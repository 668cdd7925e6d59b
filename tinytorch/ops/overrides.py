"""`__torch_function__`: classes, derived from Tensor or not, that override PyTorch's functions.

A class overrides what `torch` functions do with its instances by a class method `__torch_function__`. Public functions
(`register.Function`) and members of Tensor (`asking`) look at the classes of their arguments, and at the number of
modes that are on, before they do anything else. Classes without overrides are remembered (`plain`), so this is quick.

Classes with `__torch_function__` disabled, like Parameter, are exempt as in PyTorch: results on them are Tensors.
"""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from tinytorch.core import native
from tinytorch.core.call import OPERATOR
from tinytorch.core.declaration import NUMPY_DIMS
from tinytorch.core.mode import PerThread, plain, traced_as
from tinytorch.core.mode import function_modes as modes
from tinytorch.core.names import module_of
from tinytorch.core.notes import leave
from tinytorch.core.supplied import load
from tinytorch.core.tensor import Tensor, received
from tinytorch.core.warning import warn
from tinytorch.ops.signature import UNTOLD, again, own_names

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "asking",
    "handle_torch_function", "has_torch_function",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


_TorchFunctionState = enum.Enum("_TorchFunctionState", "ENABLED SUBCLASSES_DISABLED ALL_DISABLED", start=0)
ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = _TorchFunctionState  # overrides by: classes and modes, modes, nothing


class _State(PerThread):
    """Per-thread dispatch state: what is enabled, the stack of modes, and whether the next call skips dispatch."""

    def __init__(self) -> None:
        self.asks = ENABLED
        self.modes: tuple[TorchFunctionMode, ...] = ()
        self.skips = False


state = _State()


# Which types override functions ------------------------------------------------------------------


class _Disabled:
    """The `__torch_function__` of classes without overrides: their instances are treated as plain Tensors."""

    def __call__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


disabled = _Disabled()


def _has_say(kind: type) -> bool:
    if (
        getattr(kind, "__torch_function__", disabled) is not disabled
        and not issubclass(kind, type)
        # (PyTorch's tensors count as plain Tensors: their `__torch_function__` would call PyTorch.)
        and not any(module_of(each) == "torch" and each.__name__ == "Tensor" for each in kind.__mro__)
    ):
        return True
    if getattr(kind, "_receives", None) is None:
        plain.add(kind)
    return False


def _concerned(values: Iterable[Any], found: list[Any], depth: int = 0) -> None:
    """Collect overriding arguments, one of each type: subclasses before their bases, else from left to right."""
    for value in values:
        kind = type(value)
        if kind in plain:
            continue
        if kind is list or kind is tuple:
            if depth < 3:  # (a list may contain itself)
                _concerned(value, found, depth + 1)
        elif _has_say(kind) and not any(type(each) is kind for each in found):
            place = len(found)
            for k, each in enumerate(found):
                if issubclass(kind, type(each)):
                    place = k
                    break
            found.insert(place, value)


@traced_as("pure")
def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of the arguments overrides `__torch_function__`, or a mode is active.

    Example:
        >>> class Mine(torch.Tensor):
        ...     pass
        >>> torch.overrides.has_torch_function((torch.ones(1), Mine([1.0])))
        True
    """
    return asked(tuple(relevant_args), {}) is not None


def handle_torch_function(
    public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Return the result of a call as computed by the active mode, or by the arguments' `__torch_function__`.

    `relevant_args` are those that may override `public_api`, the function that was called. TypeError: every handler
    returned NotImplemented.
    """
    found: list[Any] = []
    if state.asks is ENABLED:
        _concerned(relevant_args, found)
    kinds = tuple([type(each) for each in found])
    stack = state.modes
    if stack:
        state.modes = stack[:-1]
        try:
            result = stack[-1].__torch_function__(public_api, kinds, args, kwargs)
        finally:
            state.modes = stack
        if result is not NotImplemented:
            return result
    for each in found:
        result = each.__torch_function__(public_api, kinds, args, kwargs)
        if result is not NotImplemented:
            return result
    name = resolve_name(public_api)
    if name is None:
        raise TypeError(
            f"no implementation found for '{public_api.__module__}.{public_api.__name__}' on types that implement "
            f"__torch_function__: {list(kinds)}{f' nor in mode {stack[-1]}' if stack else ''}"
        )
    lines = "".join([f"\n  - mode object {each}" for each in stack[-1:]])
    lines += "".join([f"\n  - tensor subclass {kind}" for kind in kinds])
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{lines}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _torch_function(cls: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """Call the function on its arguments as plain Tensors, and convert its results to the class."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in as_they_are() else _converted(result, cls)


def _converted(result: Any, cls: type) -> Any:
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else Tensor.as_subclass(result, cls)
    if isinstance(result, tuple) and hasattr(result, "_make"):
        return type(result)._make([_converted(each, cls) for each in result])
    if isinstance(result, (tuple, list)):
        return type(result)(_converted(each, cls) for each in result)
    return result


# Disabling, and modes -----------------------------------------------------------------------------


class DisableTorchFunctionSubclass:
    """Disable `__torch_function__` of tensor subclasses inside a `with` block; modes stay active.

    Example:
        >>> class Mine(torch.Tensor):
        ...     pass
        >>> with torch._C.DisableTorchFunctionSubclass():
        ...     type(Mine([1.0]) + 1).__name__
        'Tensor'
    """

    _asks = SUBCLASSES_DISABLED

    def __enter__(self) -> None:
        self._was = state.asks
        if self._was is not ALL_DISABLED:
            state.asks = self._asks

    def __exit__(self, *exc: object) -> None:
        state.asks = self._was


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Disable `__torch_function__` of subclasses and modes inside a `with` block."""

    _asks = ALL_DISABLED


class TorchFunctionMode:
    """Base class of context managers that intercept every call of a public function while active.

    Example:
        >>> class Names(torch.overrides.TorchFunctionMode):
        ...     def __torch_function__(self, func, types, args=(), kwargs=None):
        ...         print(func.__name__)
        ...         return func(*args, **(kwargs or {}))
        >>> with Names():
        ...     x = torch.ones(2) + 1
        ones
        add
    """

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Return the result of the call `func(*args, **kwargs)`; `types` has the overriding argument types."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return `cls(...)`, with PyTorch's deprecation warning."""
        warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`")
        return cls(*args, **kwargs)


def push_mode(mode: TorchFunctionMode) -> None:
    """Push a mode onto the stack: the top of the stack intercepts calls first."""
    state.modes = (*state.modes, mode)
    with modes.lock:
        modes.on += 1


def pop_mode() -> TorchFunctionMode:
    """Pop the top mode off the stack, and return it."""
    if not state.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    *_, last = state.modes
    state.modes = state.modes[:-1]
    with modes.lock:
        modes.on -= 1
    return last


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function unchanged."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Return `func(*args, **kwargs)`."""
        return func(*args, **(kwargs or {}))


# The wrappers -------------------------------------------------------------------------------------


def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Return the overriding arguments of a call; None if neither an argument nor a mode overrides it."""
    skips, state.skips = state.skips, False
    if skips or state.asks is ALL_DISABLED:
        return None
    found: list[Any] = []
    if state.asks is ENABLED:
        _concerned(args, found)
        if kwargs:
            _concerned(kwargs.values(), found)
    return found if found or state.modes else None


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that lets arguments override a function by `__torch_function__`.

    `dispatcher`, called with a call's arguments, returns those that may override the function.

    Example:
        >>> @torch.overrides.wrap_torch_function(lambda a: (a,))
        ... def half(a):
        ...     return a / 2
        >>> half(torch.tensor(3.0))
        tensor(1.5000)
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorator


#: The member passed to `__torch_function__` for an operator: in PyTorch the two share one name.
_NAMES = {
    "__abs__": "abs", "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_",
    "__mod__": "remainder", "__imod__": "remainder_", "__neg__": "neg", "__pos__": "positive", "__matmul__": "matmul",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__rdiv__": "__rtruediv__",
    "__ifloordiv__": "floor_divide_", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip
#: Operators that are passed to `__torch_function__` themselves, but with another `__name__`.
_CALLED = {"__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__"}

#: Binary operators: they return NotImplemented on TypeError, so that Python tries the other operand's.
_BINARY = frozenset(
    f"__{form}{name}__"
    for form in ("", "r", "i")
    for name in "add and div eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor".split()
)
_ACCESSORS = ("__get__", "__set__", "__delete__")

#: Members of Tensor that do not dispatch to `__torch_function__`, and private members that do.
_SILENT = frozenset("__hash__ __init_subclass__ __iter__ __module__ __new__ __torch_function__ as_subclass".split())
_ASKING = frozenset("_base _cdata _indices _is_view _nnz _values _version".split())


def asking(name: str, member: Any, raw: Any = None) -> Any:
    """Return a member of Tensor that hands its call to the mode, or the argument, that overrides it.

    Then come the classes of tensors that compute calls in their own way (`Tensor._receives`).

    Args:
        name: of the member.
        member: the function or property.
        raw: the function that the member computes while no mode is on, by default the member itself.
    """
    if name in _SILENT or (name.startswith("_") and not name.endswith("__") and name not in _ASKING):
        return member
    if isinstance(member, property):
        parts = zip(_ACCESSORS, (member.fget, member.fset, member.fdel), strict=True)
        made = property(*[part and _asking(f"{name}.{key}", part, part) for key, part in parts])
        made.__doc__ = member.__doc__
        return made
    return _asking(name, member, raw or member) if isinstance(member, types.FunctionType) else member


def _asking(name: str, function: Any, raw: Any) -> Any:
    """Return a function that asks first: the shortest one for its arguments, since every call runs it."""
    code = function.__code__
    starred = code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS) or code.co_kwonlyargcount
    if hasattr(function, "caller") and function.caller.form == OPERATOR and name in _NAMES:
        make = _alike  # (it asks itself)
    elif name in _BINARY:
        make = _of_operands
    elif code.co_argcount == 1 and not starred:
        make = _of_self
    else:
        make = _of_two if name == "__getitem__" or name.endswith(".__set__") else _of_arguments
    made: Any = functools.wraps(function)(make(_NAMES.get(name, name), function))
    made.__name__, made.__qualname__ = _CALLED.get(name, name.rpartition(".")[2]), f"Tensor.{name}"
    made.member = name
    return native.asking(made, raw if hasattr(raw, "twin") else getattr(raw, "operated", raw))


def _alike(name: str, function: Any) -> Any:
    """Return a copy of an operator's function, which has its own name."""
    own = native.definition_of(function)
    return types.FunctionType(own.__code__, own.__globals__, name, None, own.__closure__)


def _of_self(name: str, function: Any) -> Any:
    def method(self: Any) -> Any:
        try:
            if modes.on or (type(self) is not Tensor and type(self) not in plain):
                made = answered(name, function, (self,), {})
                if made is not NotImplemented:
                    return made
            return function(self)
        except Exception:
            leave()
            raise

    return method


def _of_operands(name: str, function: Any) -> Any:
    operated: Any = getattr(function, "operated", None)

    def method(self: Any, other: Any) -> Any:
        try:
            if modes.on or type(other) not in plain or type(self) not in plain:
                found = asked((self, other), {})
                if found is not None:
                    return operator_overridden(name, found, self, other)
                made = received(name, function, (self, other), {})
                if made is not NotImplemented:
                    return made
            return function(self, other)
        except Exception:
            leave()
            raise

    def quick(self: Any, other: Any) -> Any:
        if type(self) is Tensor and type(other) in _OPERANDS and not modes.on:
            try:
                return operated(self, other)
            except TypeError:
                return NotImplemented
            except Exception:
                leave()
                raise
        return method(self, other)

    return method if operated is None else quick


#: The classes of operands with which every operator computes.
_OPERANDS = frozenset((Tensor, int, float))


def operator_overridden(name: str, found: list[Any], self: Any, other: Any) -> Any:
    """Return the result of a binary operator that a mode, or one of the operands `found`, overrides."""
    of_tensors = any([isinstance(each, Tensor) for each in found])
    try:
        public = _public("eq" if name == "__eq__" and found and not of_tensors else name)
        return handle_torch_function(public, found, self, other)
    except TypeError:
        return NotImplemented


def _of_two(name: str, function: Any) -> Any:
    def method(self: Any, value: Any) -> Any:
        try:
            if modes.on or type(self) not in plain or not (type(value) in plain or _are_plain(value)):
                made = answered(name, function, (self, value), {})
                if made is not NotImplemented:
                    return made
            return function(self, value)
        except Exception:
            leave()
            raise

    return method


def _of_arguments(name: str, function: Any) -> Any:
    def method(self: Any, first: Any = NOT_GIVEN, /, *more: Any, **named: Any) -> Any:
        try:
            if (
                modes.on or more or named or type(self) not in plain or not (type(first) in plain or _are_plain(first))
            ) and (modes.on or not all(map(_is_plain, (self, first, *more, *named.values())))):
                args = (self, *more) if first is NOT_GIVEN else (self, first, *more)
                made = answered(name, function, args, named)
                if made is not NotImplemented:
                    return made
            try:
                if named and not NUMPY_DIMS.keys().isdisjoint(named):
                    named = own_names(function, named, True)
                if not (more or named):
                    return function(self) if first is NOT_GIVEN else function(self, first)
                return function(self, *more, **named) if first is NOT_GIVEN else function(self, first, *more, **named)
            except UNTOLD as error:
                args = (self, *more) if first is NOT_GIVEN else (self, first, *more)
                return again(error, function, name, function, args, named)
        except Exception:
            leave()
            raise

    return method


def _are_plain(values: Any) -> bool:
    """Return whether an argument is a list or tuple whose elements override nothing."""
    return type(values) in (tuple, list) and plain.issuperset(map(type, values))


def _is_plain(value: Any) -> bool:
    return type(value) in plain or _are_plain(value)


class _NotGiven:
    """The class of what stands for an argument that is not given."""


NOT_GIVEN: Any = _NotGiven()
plain.add(_NotGiven)


def answered(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a mode, or the class of an argument, makes of a member's call; NotImplemented if it is as usual."""
    found = asked(args, kwargs)
    if found is not None:
        return handle_torch_function(_public(name), found, *args, **kwargs)
    return received(name, function, args, kwargs)


#: The code of members that ask first: what an error or a report is about is the function that they call.
ASKING = frozenset(
    [make("", None).__code__ for make in (_of_self, _of_operands, _of_two, _of_arguments)]
    + [answered.__code__, again.__code__, _of_operands("", _of_operands).__code__]
)


def _public(name: str) -> Any:
    """Return the member of Tensor with a name, or the accessor of a property, as `__torch_function__` receives it."""
    own, _, accessor = name.partition(".")
    member = getattr(Tensor, own)
    return getattr(member, accessor) if accessor else member


def quiet(function: Any) -> Any:
    """Return a function that runs with dispatch disabled: overrides do not see the ops of a backward pass."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        before, state.asks = state.asks, ALL_DISABLED
        try:
            return function(*args, **kwargs)
        finally:
            state.asks = before

    return quiet


# Queries ------------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or has a `__torch_function__`.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def declared(function: Any) -> Any:
    """Return the function that a member of Tensor calls after it has asked; other functions as they are."""
    return function.__wrapped__ if hasattr(function, "member") else function


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function passed to `__torch_function__` is a method of Tensor, or a property's `__get__`."""
    return func.__name__ == "__get__" or (isinstance(func, types.FunctionType) and hasattr(func, "member"))


def resolve_name(f: Any) -> str | None:
    """Return the dotted name of a public function, such as `torch.Tensor.add`; None for other objects.

    Example:
        >>> torch.overrides.resolve_name(torch.nn.functional.gelu)
        'torch.nn.functional.gelu'
    """
    if isinstance(f, staticmethod):
        path: str | None = getattr(f, "path", None)
        return path
    return members().get(f) if isinstance(f, (types.FunctionType, types.MethodWrapperType)) else None


@functools.cache
def members() -> dict[Any, str]:
    """Return the dispatching members of Tensor, as `__torch_function__` receives them, with their names."""
    load(Tensor)
    found: dict[Any, str] = {}
    for name, member in vars(Tensor).items():
        if isinstance(member, property):
            for key, part in zip(_ACCESSORS, (member.fget, member.fset, member.fdel), strict=True):
                if hasattr(part, "member"):
                    found[getattr(member, key)] = f"torch.Tensor.{name}.{key}"
        elif hasattr(member, "member"):
            found[member] = f"torch.Tensor.{name}"
    return found


def as_they_are() -> frozenset[Any]:
    """Return the members of Tensor whose results `Tensor.__torch_function__` does not convert to the subclass."""
    members: Any = Tensor  # (on the class, properties are themselves)
    return frozenset((members.grad.__get__, members._base.__get__))
