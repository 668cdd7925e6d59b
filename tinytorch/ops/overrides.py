"""`__torch_function__`: classes that answer PyTorch's functions themselves, derived from Tensor or not.

A class says how the functions of `torch` treat its instances by a class method `__torch_function__`. Public functions
(`register.Function`) look for it while `active` is set, which is when a program first has a use for it: when it derives
a class from Tensor, enters a `TorchFunctionMode`, or calls one of the functions of `torch.overrides`. The members of
Tensor, which are called straight, get a wrapper each at that moment (`activate`). Other programs never pay for them.

The classes that a package derives from Parameter are left out, as in PyTorch: results computed from them are Tensors.
"""

from __future__ import annotations

import enum
import functools
import threading
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.ops.later import load

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunction", "DisableTorchFunctionSubclass", "TorchFunctionMode", "activate",
    "handle_torch_function", "has_torch_function",
    "is_tensor_like", "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


_TorchFunctionState = enum.Enum("_TorchFunctionState", "ENABLED SUBCLASSES_DISABLED ALL_DISABLED", start=0)
ENABLED, SUBCLASSES_DISABLED, ALL_DISABLED = _TorchFunctionState  # who is asked: all, modes alone, nobody


class _State(threading.local):
    """What a thread's calls look at: who is asked, the modes that are on, and whether the next call asks nobody."""

    def __init__(self) -> None:
        self.asks = ENABLED
        self.modes: tuple[TorchFunctionMode, ...] = ()
        self.skips = False


state = _State()
active = False
_before: list[tuple[Any, str, Any]] = []  # where `activate` has put something, and what was there


# Which types have a say ---------------------------------------------------------------------------


class _Disabled:
    """The `__torch_function__` of classes that have none, so that their instances pass for Tensors."""

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
            # (PyTorch's own tensors are taken for ours: they would ask PyTorch.)
            and not any(each.__module__ == "torch" and each.__name__ == "Tensor" for each in kind.__mro__)
        )
    return known


def _concerned(values: Iterable[Any], found: list[Any], depth: int = 0) -> None:
    """Add what has a say among the arguments, one of each type: derived types first, else from left to right."""
    for value in values:
        kind = type(value)
        if kind is list or kind is tuple:
            if depth < 3:  # (a list may hold itself)
                _concerned(value, found, depth + 1)
        elif _has_say(kind) and not any(type(each) is kind for each in found):
            place = len(found)
            for k, each in enumerate(found):
                if issubclass(kind, type(each)):
                    place = k
                    break
            found.insert(place, value)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Return whether one of the arguments has a `__torch_function__` of its own, or a mode is on.

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
    """Return what the arguments' `__torch_function__` make of a call.

    Args:
        public_api: the function that was called.
        relevant_args: the arguments that may have a say.
        args: all arguments by place.
        kwargs: all arguments by name.

    Raises:
        TypeError: none of them answers.
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
    """Call the function as if its arguments were Tensors, and return its results as instances of the class."""
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


# Off, and modes -----------------------------------------------------------------------------------


class DisableTorchFunctionSubclass:
    """Do what is inside a `with` block without asking classes derived from Tensor; modes are asked.

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
    """Do what is inside a `with` block without asking classes or modes."""

    _asks = ALL_DISABLED


class TorchFunctionMode:
    """What every call of a public function goes to while it is on: a context manager, to derive classes from.

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
        """Return the result of the call `func(*args, **kwargs)`; `types` has the types that have a say."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        push_mode(self)
        return self

    def __exit__(self, *exc: object) -> None:
        pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """Return a mode, as `cls(...)` does, with a warning."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


def push_mode(mode: TorchFunctionMode) -> None:
    """Let a mode be the first that calls go to."""
    activate()
    state.modes = (*state.modes, mode)


def pop_mode() -> TorchFunctionMode:
    """Take away the mode that calls go to first, and return it."""
    if not state.modes:
        raise RuntimeError("trying to pop from empty mode stack")
    *_, last = state.modes
    state.modes = state.modes[:-1]
    return last


class BaseTorchFunctionMode(TorchFunctionMode):
    """The mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        """Return `func(*args, **kwargs)`."""
        return func(*args, **(kwargs or {}))


# The wrappers -------------------------------------------------------------------------------------


def asked(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any] | None:
    """Return the arguments that have a say; None if nobody is to be asked, neither they nor a mode."""
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
    """Return whether arguments of a call that failed have a say, and nobody was asked so far; from now on all are."""
    if active or asked(args, kwargs) is None:
        return False
    activate()
    return True


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that lets a function's arguments answer it themselves.

    Args:
        dispatcher: returns the arguments that may have a say, of the arguments of a call.

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


#: What operators are called for what asks: PyTorch's Tensor has these under one name.
_NAMES = {
    "__abs__": "abs", "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_",
    "__mul__": "mul", "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_",
    "__mod__": "remainder", "__imod__": "remainder_", "__neg__": "neg", "__pos__": "positive", "__matmul__": "matmul",
    "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__rdiv__": "__rtruediv__",
    "__ifloordiv__": "floor_divide_", "__rand__": "bitwise_and", "__ror__": "bitwise_or", "__rxor__": "bitwise_xor",
}  # fmt: skip
#: Operators that are asked for under their own names, but are called otherwise.
_CALLED = {"__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__"}

#: Operators of two; where they cannot be computed Python goes on to the other operand's.
_BINARY = frozenset(
    f"__{form}{name}__"
    for form in ("", "r", "i")
    for name in "add and div eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor".split()
)
_ACCESSORS = ("__get__", "__set__", "__delete__")

#: Members of Tensor that ask nobody, and private ones that ask.
_SILENT = frozenset("__hash__ __init_subclass__ __module__ __new__ __torch_function__ as_subclass".split())
_ASKING = frozenset("_base _cdata _indices _is_view _nnz _values _version".split())

ROOT = __name__.partition(".")[0]
_names: dict[Any, str] = {}  # of Tensor's members, as they are asked for
as_they_are: set[Any] = set()  # whose results are not made instances of the class that is asked


class _Member:
    """A function of Tensor's, or `__get__`, `__set__` or `__delete__` of a property, that asks its arguments.

    Equal to what it stands for, by which tables may have been made.
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
    """A property that asks: its `__get__`, `__set__` and `__delete__` are what is asked for."""

    def __init__(self, name: str, was: property) -> None:
        parts = zip(_ACCESSORS, (was.fget, was.fset, was.fdel), strict=True)
        made = {key: part and _Member(key, part, getattr(was, key)) for key, part in parts}
        read, write, delete = made.values()
        super().__init__(read, write, delete, was.__doc__)
        for key, each in made.items():
            if each is not None:
                vars(self)[key] = each
                _names[each] = f"torch.Tensor.{name}.{key}"


def _iterate(self: Any) -> Iterator[Any]:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def quiet(function: Any) -> Any:
    """Return a function that nobody is asked in: what a walk backward does is its own affair."""

    @functools.wraps(function)
    def quiet(*args: Any, **kwargs: Any) -> Any:
        with DisableTorchFunction():
            return function(*args, **kwargs)

    return quiet


def activate() -> None:
    """Let public functions, and the members of Tensor, ask their arguments from now on."""
    global active
    if active:
        return
    load()
    active = True
    for name, member in list(vars(Tensor).items()):
        if name in _SILENT or (name.startswith("_") and not name.endswith("__") and name not in _ASKING):
            continue
        function = member.fget if isinstance(member, property) else member
        home = getattr(function, "__globals__", {"__name__": ""}).get("__name__", ROOT)
        if home.partition(".")[0] != ROOT:  # what a program has put there is its own
            continue
        if function is not member:
            _put(Tensor, name, _Property(name, member))
        else:
            asking = _Member(name, quiet(member) if name == "backward" else member, member)
            _put(Tensor, name, asking)
            _names[asking] = f"torch.Tensor.{name}"
    _put(Tensor, "__iter__", _iterate)
    as_they_are.update((vars(Tensor)["grad"].__get__, vars(Tensor)["_base"].__get__))


def _put(owner: Any, name: str, made: Any) -> None:
    _before.append((owner, name, vars(owner).get(name)))
    setattr(owner, name, made)


def deactivate() -> None:
    """Put the functions back as they were: for tests, of which each is to see the library as it begins."""
    global active
    while _before:
        owner, name, member = _before.pop()
        if member is None:
            delattr(owner, name)
        else:
            setattr(owner, name, member)
    _names.clear()
    as_they_are.clear()
    active = False


def _derived(cls: Any, /, **kwargs: Any) -> None:
    """Notice a class derived from Tensor."""
    super(Tensor, cls).__init_subclass__(**kwargs)
    ours = cls.__module__.partition(".")[0] == "tinytorch"
    if not ours and getattr(cls, "__torch_function__", disabled) is not disabled:
        activate()


def _make_subclass(cls: Any, data: Tensor, require_grad: bool = False) -> Any:
    """Return an instance of a class derived from Tensor on the memory of `data`, cut off from its graph."""
    made = Tensor.as_subclass(data.detach(), cls)
    made._view, made._edge, made._requires_grad = None, None, False
    return made.requires_grad_(require_grad)


#: Members of Tensor by which classes derive from it; `register` gives them to it.
MEMBERS: dict[str, Any] = {
    "__torch_function__": classmethod(_default),
    "__init_subclass__": classmethod(_derived),
    "_make_subclass": staticmethod(_make_subclass),
}


# Questions ----------------------------------------------------------------------------------------


def is_tensor_like(inp: Any) -> bool:
    """Return whether something is a tensor, or has a `__torch_function__`.

    Example:
        >>> torch.overrides.is_tensor_like(torch.ones(1)), torch.overrides.is_tensor_like(1)
        (True, False)
    """
    activate()
    return type(inp) is Tensor or hasattr(inp, "__torch_function__")


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Return whether a function that a `__torch_function__` was given is a method of Tensor, or reads a property."""
    activate()
    return func.__name__ == "__get__" or (func in _names and func.__name__ not in _ACCESSORS)


def resolve_name(f: Any) -> str | None:
    """Return the name of a public function, as `torch.Tensor.add`; None for any other.

    Example:
        >>> torch.overrides.resolve_name(torch.nn.functional.gelu)
        'torch.nn.functional.gelu'
    """
    activate()
    found: str | None = getattr(f, "path", None) if isinstance(f, staticmethod) else _names.get(f)
    return found


def members() -> dict[Any, str]:
    """Return the members of Tensor that ask, as a `__torch_function__` gets them, with their names."""
    activate()
    return _names
