"""The objects that a function can reach, and so change: they can be saved, restored and compared.

The search starts at the arguments, the closure and the globals that the function names, and goes through containers and
attributes of objects: it finds parameters, their gradients, the states of optimizers and the counters of schedulers.
"""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.ops.random import Generator, default_generator

MOST = 100_000  # largest number of objects
_LIBRARIES = frozenset([*sys.stdlib_module_names, "tinytorch", "torch", "numpy"]) - {"__main__"}
_FIELDS = ("_array", "_cell", "_edge", "_grad", "_hooks", "_requires_grad", "_view")
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
#: Dictionaries of a module whose keys are names of its attributes.
_OF_MODULES = ("_parameters", "_buffers", "_modules")


class Unseen(Exception):
    """Raised with the reason why the objects that a function can reach cannot be determined."""


class Numbers(NamedTuple):
    """The visible state of a tensor or array."""

    array: Any
    version: int | None = None
    requires_grad: bool = False


class Visible:
    """The objects that a call of a function can reach.

    Args:
        function: the function.
        args, kwargs: the arguments of the call.

    Attributes:
        found: the objects, by their path, such as "model.fc1.weight".

    Raises:
        Unseen: there are too many objects.
    """

    def __init__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.found: dict[str, Any] = {"the default generator": default_generator}
        self._ids: set[int] = set()
        self._enter("", function)
        for k, x in enumerate(args):
            self._enter(f"args[{k}]", x)
        for key, x in kwargs.items():
            self._enter(key, x)

    def _enter(self, path: str, start: Any) -> None:
        waiting = [(path, start)]
        while waiting:
            where, x = waiting.pop()
            if not isinstance(x, _PLAIN):
                if id(x) in self._ids:
                    continue
                self._ids.add(id(x))
            while where in self.found:  # two functions may have variables of the same name
                where += "'"
            self.found[where] = x
            if len(self.found) > MOST:
                raise Unseen(f"it sees more than {MOST:,} objects")
            waiting += reversed(list(_inside(where, x)))

    def tensors(self) -> list[Tensor]:
        """Return the tensors that require grad."""
        return [x for x in self.found.values() if isinstance(x, Tensor) and x._requires_grad]

    def keep(self) -> Callable[[], None]:
        """Return a function that restores the present state of all objects."""
        kept = [put_back for x in self.found.values() if (put_back := _kept(x)) is not None]

        def put_back_all() -> None:
            for put_back in kept:
                put_back()

        return put_back_all

    def described(self) -> dict[str, Any]:
        """Return copies of the present state of all objects."""
        return {where: described(x) for where, x in self.found.items()}


# Search -------------------------------------------------------------------------------------------


def _named(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _inside(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that an object contains, with their paths."""
    if isinstance(x, (*_PLAIN, type, types.ModuleType, np.ndarray, np.generic, Generator, _Attributes)):
        return
    if isinstance(x, Tensor):
        yield _named(path, "grad"), x._grad
        yield from _items(path, x.__dict__, True)
    elif isinstance(x, dict):
        yield from _items(path, x, False)
    elif isinstance(x, (list, tuple, collections.deque, set, frozenset)):
        for k, item in enumerate(x):
            yield f"{path}[{k}]", item
    elif isinstance(x, (types.FunctionType, types.MethodType, functools.partial)) or _is_compiled(x):
        yield from _of_function(path, x)
    elif type(x).__module__.partition(".")[0] not in _LIBRARIES - {"tinytorch"} and hasattr(x, "__dict__"):
        yield from _items(path, x.__dict__, True)
        yield from _of_class(path, type(x))


def _is_compiled(x: Any) -> bool:
    return "_torchdynamo_orig_callable" in getattr(x, "__dict__", ())


def _items(path: str, items: dict[Any, Any], attributes: bool) -> Iterator[tuple[str, Any]]:
    if attributes and items:
        yield _named(path, "__dict__"), _Attributes(items)
    for k, (key, x) in enumerate(items.items()):
        if attributes and key in _OF_MODULES and isinstance(x, dict):
            yield from _items(path, x, True)
        elif attributes:
            yield _named(path, str(key)), x
        else:
            yield f"{path}[{key!r}]" if isinstance(key, (str, int)) else f"{path}[{k}]", x


class _Attributes(NamedTuple):
    """The attributes of an object, whose values are visited separately."""

    items: dict[Any, Any]


def _of_function(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """Yield what a function closes over, its defaults, and the globals that it names."""
    if isinstance(x, types.MethodType):
        yield path, x.__func__
        yield _named(path, "self"), x.__self__
    elif isinstance(x, functools.partial):
        yield path, x.func
        yield from _inside(path, list(x.args))
        yield from _items(path, x.keywords, True)
    elif not isinstance(x, types.FunctionType):  # a compiled function
        yield path, x._torchdynamo_orig_callable
    elif (x.__module__ or "").partition(".")[0] not in _LIBRARIES:
        for name, cell in zip(x.__code__.co_freevars, x.__closure__ or (), strict=True):
            try:
                yield _named(path, name), cell.cell_contents
            except ValueError:  # the variable is not assigned yet
                continue
        for name in sorted(_names(x.__code__) & x.__globals__.keys()):
            yield _named(path, name), x.__globals__[name]
        yield _named(path, "__defaults__"), x.__defaults__
        yield _named(path, "__kwdefaults__"), x.__kwdefaults__


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return set(code.co_names).union(*inner)


def _of_class(path: str, kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the methods of a user's class, since the closures and globals of methods are visible too."""
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in _LIBRARIES:
            for name, x in vars(base).items():
                function = x.fget if isinstance(x, property) else getattr(x, "__func__", x)
                if isinstance(function, types.FunctionType) or _is_compiled(function):
                    yield _named(path, name), function


# Save and restore ---------------------------------------------------------------------------------


def _kept(x: Any) -> Callable[[], None] | None:
    """Return a function that restores an object, or None if it cannot change."""
    if isinstance(x, Tensor):
        fields = {name: getattr(x, name) for name in _FIELDS}
        return functools.partial(_put_back, x, fields, _version(x), x._array.copy("K"))
    if isinstance(x, np.ndarray):
        return functools.partial(_fill, x, x.copy("K"))
    if isinstance(x, Generator):
        return functools.partial(_set_state, x, x.get_state())
    if isinstance(x, _Attributes):
        return functools.partial(_refill, x.items, dict(x.items))
    if isinstance(x, (dict, list, set, collections.deque)):
        return functools.partial(_refill, x, dict(x) if isinstance(x, dict) else list(x))
    return None


def _put_back(x: Tensor, fields: dict[str, Any], version: int | None, numbers: Any) -> None:
    for name, value in fields.items():
        if getattr(x, name) is not value:
            setattr(x, name, value)
    if x._cell is not None and version is not None:
        x._cell[0] = version
    _fill(x._array, numbers)


def _version(x: Tensor) -> int | None:
    return None if x._cell is None else x._cell[0]


def _set_state(x: Generator, state: Tensor) -> None:
    x.set_state(state)


def _fill(array: Any, numbers: Any) -> None:
    if array.tobytes() != numbers.tobytes():
        np.copyto(array, numbers)


def _refill(into: Any, items: Any) -> None:
    """Restore the elements of a container if they have changed."""
    if _identities(into) == _identities(items):
        return
    into.clear()
    (into.update if isinstance(into, (dict, set)) else into.extend)(items)


def _identities(x: Any) -> list[int]:
    return [id(item) for item in ([*x, *x.values()] if isinstance(x, dict) else x)]


# Comparison ---------------------------------------------------------------------------------------


def described(x: Any) -> Any:
    """Return a copy of the present state of one object."""
    if isinstance(x, Tensor):
        return Numbers(x._array.copy("K"), _version(x), x._requires_grad)
    if isinstance(x, np.ndarray):
        return Numbers(x.copy("K"))
    if isinstance(x, Generator):
        return Numbers(x.get_state()._array)
    if isinstance(x, _PLAIN):
        return f"{x!r}"
    return f"a {type(x).__name__}"


def difference(expected: Any, found: Any) -> str:
    """Return how a state differs from the expected one; an empty string if it does not."""
    if not (isinstance(expected, Numbers) and isinstance(found, Numbers)):
        what = [description if isinstance(description, str) else "a tensor" for description in (found, expected)]
        return "" if what[0] == what[1] else f"is {what[0]} and not {what[1]}"
    a, b = expected.array, found.array
    for name in ("shape", "dtype"):
        if getattr(a, name) != getattr(b, name):
            return f"has {name} {getattr(b, name)} and not {getattr(a, name)}"
    if a.tobytes() != b.tobytes():
        return _numbers_differ(a, b)
    if a.size > 1 and a.strides != b.strides:
        return f"has strides {b.strides} and not {a.strides} (of bytes)"
    if expected.requires_grad != found.requires_grad:
        return f"has requires_grad={found.requires_grad}"
    if expected.version != found.version:
        return f"has version {found.version} and not {expected.version}"
    return ""


def _numbers_differ(a: Any, b: Any) -> str:
    a, b = (np.ascontiguousarray(array).reshape(-1) for array in (a, b))
    other = (a.view(np.uint8) != b.view(np.uint8)).reshape(a.size, -1).any(1)
    most = ""
    if a.dtype.kind in "fiuc":
        kind = complex if a.dtype.kind == "c" else float
        most = f", by up to {np.abs(a[other].astype(kind) - b[other].astype(kind)).max():.3g}"
    return f"has other numbers in {int(other.sum())} of {a.size} elements{most}"


__all__ = ["Unseen", "Visible", "described", "difference"]
