"""`__torch_function__`: classes, derived from Tensor or not, that override PyTorch's functions.

A class overrides what `torch` functions do with its instances by a class method `__torch_function__`. Public functions
(`register.Function`) look for it while `active` is set: from the moment a program derives a class from Tensor, enters a
`TorchFunctionMode`, or calls a function of `torch.overrides`. Members of Tensor bypass `register.Function`; `activate`
wraps each of them at that moment. Other programs never pay for the lookup.

Classes with `__torch_function__` disabled, like Parameter, are exempt as in PyTorch: results on them are Tensors.
"""

from __future__ import annotations

import enum
import functools
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinytorch.core.mode import PerThread, traced_as
from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.ops.later import load

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "activate",
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
active = _lasts = False
_before: list[tuple[Any, str, Any]] = []  # the attributes that `activate` has set: owner, name, previous value


# Which types override functions ------------------------------------------------------------------


class _Disabled:
    """The `__torch_function__` of classes without overrides: their instances are treated as plain Tensors."""

    def __call__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        with DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


disabled = _Disabled()
_answers: dict[type, bool] = {}


def _has_say(kind: type) -> bool:
    known = _answers.get(kind)
    if known is None:
        known = _answers[kind] = (
            kind is not Tensor
            and getattr(kind, "__torch_function__", disabled) is not disabled
            and not issubclass(kind, type)
            # (PyTorch's tensors count as plain Tensors: their `__torch_function__` would call PyTorch.)
            and not any(module_of(each) == "torch" and each.__name__ == "Tensor" for each in kind.__mro__)
        )
    return known


def _concerned(values: Iterable[Any], found: list[Any], depth: int = 0) -> None:
    """Collect overriding arguments, one of each type: subclasses before their bases, else from left to right."""
    for value in values:
        kind = type(value)
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
    activate()
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
    modes = state.modes
    if modes:
        state.modes = modes[:-1]
        try:
            result = modes[-1].__torch_function__(public_api, kinds, args, kwargs)
        finally:
            state.modes = modes
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
            f"__torch_function__: {list(kinds)}{f' nor in mode {modes[-1]}' if modes else ''}"
        )
    lines = "".join([f"\n  - mode object {each}" for each in modes[-1:]])
    lines += "".join([f"\n  - tensor subclass {kind}" for kind in kinds])
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n{lines}\n\n"
        "For more information, try re-running with TORCH_LOGS=not_implemented"
    )


def _default(cls: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
    """Call the function on its arguments as plain Tensors, and convert its results to the class."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **(kwargs or {}))
    return result if func in as_they_are else _converted(result, cls)


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
    activate()
    state.modes = (*state.modes, mode)


def pop_mode() -> TorchFunctionMode:
    """Pop the top mode off the stack, and return it."""
    if not state.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    *_, last = state.modes
    state.modes = state.modes[:-1]
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


def first_contact(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Activate dispatch if it is inactive and the arguments of a failed call override it; return whether they do."""
    if active or asked(args, kwargs) is None:
        return False
    activate()
    return True


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
    activate()

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
_SILENT = frozenset("__hash__ __init_subclass__ __module__ __new__ __torch_function__ as_subclass".split())
_ASKING = frozenset("_base _cdata _indices _is_view _nnz _values _version".split())

ROOT = __name__.partition(".")[0]
_names: dict[Any, str] = {}  # dotted names of Tensor's wrapped members
as_they_are: set[Any] = set()  # functions whose results `_default` does not convert to the subclass


class _Member:
    """A method of Tensor, or a property's `__get__`, `__set__` or `__delete__`, that dispatches to its arguments.

    A wrapper equals the member that it wraps, which may already be a key of dictionaries.
    """

    __wrapped__: Any

    def __init__(self, name: str, function: Any, stands_for: Any) -> None:
        functools.update_wrapper(self, function)
        self.__name__, self.__qualname__ = _CALLED.get(name, name), f"Tensor.{name}"
        self.__module__ = Tensor.__module__
        self._stands_for, self._binary = stands_for, name in _BINARY
        self._public = None if name in _ACCESSORS else _NAMES.get(name, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            found = asked(args, kwargs)
            if found is None:
                return self.__wrapped__(*args, **kwargs)
            public = self if self._public is None else vars(Tensor)[self._public]
            return handle_torch_function(public, found, *args, **kwargs)
        except TypeError:
            if self._binary and len(args) == 2:
                return NotImplemented
            raise

    def __eq__(self, other: object) -> bool:
        return other is self or (not isinstance(other, _Member) and other == self._stands_for)

    def __hash__(self) -> int:
        return hash(self._stands_for)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return repr(self._stands_for)

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (Tensor, self.__qualname__.removeprefix("Tensor."))


class _Property(property):
    """A property whose `__get__`, `__set__` and `__delete__` dispatch to `__torch_function__`."""

    def __init__(self, name: str, was: property) -> None:
        parts = zip(_ACCESSORS, (was.fget, was.fset, was.fdel), strict=True)
        made = {key: part and _Member(key, part, getattr(was, key)) for key, part in parts}
        read, write, delete = made.values()
        super().__init__(read, write, delete)
        self.__doc__ = was.__doc__  # (not by `property`: the docstring of this class would hide it)
        for key, each in made.items():
            if each is not None:
                vars(self)[key] = each
                _names[each] = f"torch.Tensor.{name}.{key}"


def _iter(self: Any) -> Iterator[Any]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def quiet(function: Any) -> Any:
    """Return a function that runs with dispatch disabled: overrides do not see the ops of a backward pass."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunction():
            return function(*args, **kwargs)

    return quiet


def activate(lasting: bool = True) -> None:
    """Let public functions and the members of Tensor dispatch to `__torch_function__` from now on.

    Unless `lasting`, only until `relax` is called, if it is not activated for longer meanwhile.
    """
    global active, _lasts
    _lasts = _lasts or lasting
    if active:
        return
    load()
    active = True
    for name, member in list(vars(Tensor).items()):
        if name in _SILENT or (name.startswith("_") and not name.endswith("__") and name not in _ASKING):
            continue
        function = member.fget if isinstance(member, property) else member
        home = getattr(function, "__globals__", {"__name__": ""}).get("__name__", ROOT)
        if home.partition(".")[0] != ROOT:  # (set by the program, not by the library)
            continue
        if function is not member:
            _put(Tensor, name, _Property(name, member))
        else:
            asking = _Member(name, quiet(member) if name == "backward" else member, member)
            _put(Tensor, name, asking)
            _names[asking] = f"torch.Tensor.{name}"
    _put(Tensor, "__iter__", _iter)
    as_they_are.update((vars(Tensor)["grad"].__get__, vars(Tensor)["_base"].__get__))


def _put(owner: Any, name: str, made: Any) -> None:
    _before.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, made)


def relax() -> None:
    """Undo `activate(lasting=False)`, unless something else has activated dispatch."""
    if active and not _lasts:
        deactivate()


def deactivate() -> None:
    """Undo `activate`, so that each test starts with the library in its initial state."""
    global active, _lasts
    while _before:
        owner, name, member = _before.pop()
        if member is None:
            delattr(owner, name)
        else:
            setattr(owner, name, member)
    _names.clear()
    as_they_are.clear()
    active = _lasts = False


def _derived(cls: Any, /, **kwargs: Any) -> None:
    """Activate dispatch when a program derives a class from Tensor."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    ours = module_of(cls).partition(".")[0] == "tinytorch"
    if not ours and getattr(cls, "__torch_function__", disabled) is not disabled:
        activate()


def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """Return a subclass instance that shares the memory of `data`, detached from its graph."""
    made = Tensor.as_subclass(data.detach(), cls)
    made._view, made._edge, made._requires_grad = None, None, False
    return made.requires_grad_(require_grad)


#: Members of Tensor that support subclassing; `register` binds them.
MEMBERS: dict[str, Any] = {
    "__torch_function__": classmethod(_default),
    "__init_subclass__": classmethod(_derived),
    "_make_subclass": staticmethod(_make_subclass),
}


# Queries ------------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Return whether an object is a tensor, or has a `__torch_function__`.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    activate()
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function passed to `__torch_function__` is a method of Tensor, or a property's `__get__`."""
    activate()
    return is_member(func)


def is_member(func: Callable[..., Any]) -> bool:
    """Return the same, while dispatch is active."""
    return func.__name__ == "__get__" or (func in _names and func.__name__ not in _ACCESSORS)


def resolve_name(f: Any) -> str | None:
    """Return the dotted name of a public function, such as `torch.Tensor.add`; None for other objects.

    Example:
        >>> torch.overrides.resolve_name(torch.nn.functional.gelu)
        'torch.nn.functional.gelu'
    """
    activate()
    found: str | None = getattr(f, "path", None) if isinstance(f, staticmethod) else _names.get(f)
    return found


def members() -> dict[Any, str]:
    """Return the dispatching members of Tensor, as `__torch_function__` receives them, with their names."""
    activate()
    return _names
