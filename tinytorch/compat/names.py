"""The table of this folder, `names.txt`: by module, the names that it has and what each of them is.

Most are names that packages import and tinytorch does not implement. They can be imported, derived from, and tested
with `isinstance`; calling one raises an error that gives the reason. The head of the table lists the kinds of names.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import importlib
import re
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn

from tinytorch.compat import FOLDER
from tinytorch.core.mode import traced_as

# What is not there ----------------------------------------------------------------------------------


def answering(name: str, function: Callable[..., Any], does: str, example: str = "") -> Callable[..., Any]:
    """Return a function that always returns the same value, with a name, and a docstring with an example.

    Args:
        function: a lambda with PyTorch's parameters that returns the value.
        does: the first line of the docstring.
        example: the lines of the example; by default a call without arguments and its result.
    """
    function.__name__ = function.__qualname__ = name
    traced_as("pure")(function)
    if not example:
        home = function.__module__.replace("tinytorch.absent", "tinytorch.cuda").removeprefix("tiny")
        answer = function()
        example = f">>> {home}.{name}()" + ("" if answer is None else f"\n{answer!r}")
    function.__doc__ = f"{does}\n\n    Example:\n        " + example.replace("\n", "\n        ") + "\n    "
    return function


def refusing(error: type[Exception], words: str) -> Callable[..., NoReturn]:
    """Return a function that raises an error, whatever its arguments."""

    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: the device is not available."""
        raise error(words)

    return refuse


def is_refusing(value: Any) -> bool:
    """Return whether a value is a function that `refusing` returned."""
    return getattr(value, "__code__", None) is refusing(OSError, "").__code__


def same(function: Any) -> Any:
    """Return the function itself: a decorator that marks a function for a feature that is not implemented."""
    return function


def marking(*args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator that returns the function itself."""
    return same


class Refused:
    """The base of classes without instances: programs use them with `isinstance`; their constructor raises an error."""

    _error: tuple[type[Exception], str]  # the error's class and words: each of them says so

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error: the class has no instances."""
        error, words = cls._error
        raise error(words)


class Idle:
    """A context manager without effect."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


class Patch(contextlib.ContextDecorator):
    """Settings of a module of the table that are changed for a while: a context manager and a decorator.

    Args:
        module: the module's name.
        *changes: a name and a value, or a dict.
        **more: further settings.
    """

    def __init__(self, module: str, *changes: Any, **more: Any) -> None:
        given = dict([changes]) if len(changes) == 2 else dict(*changes)
        self.module, self.changes = sys.modules[module], given | more
        self.before: list[dict[str, Any]] = []
        for name in self.changes:
            if name not in vars(self.module):
                raise AttributeError(f"{module.removeprefix('tiny')}.{name} does not exist")

    def __enter__(self) -> None:
        self.before.append({name: vars(self.module)[name] for name in self.changes})
        vars(self.module).update(self.changes)

    def __exit__(self, *error: object) -> None:
        vars(self.module).update(self.before.pop())


# Kinds of names: functions of the module's name, what stands beside the kind, and the names -------------------------

Values = dict[str, Any]


def _missing(module: str, reason: str, names: list[str]) -> Values:
    made: Values = {}
    for name in names:
        error = NotImplementedError, f"{module.removeprefix('tiny')}.{name}: {read().equal[reason]}"
        owner, _, method = name.partition(".")
        if method:
            setattr(made[owner], method, staticmethod(refusing(*error)))
        elif name.lstrip("_")[0].isupper():
            members = {"__module__": module, "__doc__": f"There are none: {read().equal[reason]}.", "_error": error}
            made[name] = type(name, (Refused,), members)
        else:
            made[name] = refusing(*error)
            made[name].__name__ = made[name].__qualname__ = name
            made[name].__module__ = module
    return made


def _raises(module: str, error: str, names: list[str]) -> Values:
    kind, _, words = error.partition(" ")
    return dict.fromkeys(names, refusing(getattr(builtins, kind), words))


def _returns(module: str, value: str, names: list[str]) -> Values:
    made = {}
    for name, parameters in re.findall(r"(\w+)(\(.*\)|$)", "\n".join(names), re.M):
        parameters = parameters[1:-1] if parameters else "*args, **kwargs"
        made[name] = eval(f"lambda {parameters}: {value}", {"__name__": module})
        answering(name, made[name], f"Return {value}.", " ")
    return made


def _from(module: str, home: str, names: list[str]) -> Values:
    found = importlib.import_module(home)
    if names == ["*"]:
        names = found.__all__
    return {new: getattr(found, old or new) for new, _, old in (each.partition("=") for each in names)}


def _of(module: str, home: str, names: list[str]) -> Values:
    return _from(module, f"tinytorch.{home}".rstrip("."), names)


def _modules(module: str, _: str, names: list[str]) -> Values:
    pairs = [each.partition("=") for each in names]
    return {new: importlib.import_module(f"{module}.{old or new}") for new, _, old in pairs}


def _values(module: str, _: str, names: list[str]) -> Values:
    return {name: eval(value, {}) for name, _, value in (each.partition("=") for each in names)}


def _namespace(module: str, name: str, names: list[str]) -> Values:
    return {name: SimpleNamespace(**_values(module, "", names))}


def _patch(module: str, _: str, names: list[str]) -> Values:
    return {"patch": functools.partial(Patch, module)}


def _enumeration(module: str, name: str, members: list[str]) -> Values:
    pairs = dict(each.split("=") for each in members) if "=" in members[0] else members
    return {name: enum.Enum(name, pairs, module=module)}


def _errors(module: str, _: str, names: list[str]) -> Values:
    return {name: type(name, (RuntimeError,), {"__module__": module}) for name in names}


_KINDS: dict[str, Callable[[str, str, list[str]], Values]] = {
    "missing": _missing, "raises": _raises, "returns": _returns, "from": _from, "of": _of, "modules": _modules,
    "values": _values, "namespace": _namespace, "patch": _patch, "enumeration": _enumeration, "errors": _errors,
}  # fmt: skip


# The table ------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """Names of one kind, with what stands beside the kind: the reason of what is missing, a module and so on."""

    kind: str
    beside: str
    names: list[str]


class Table(NamedTuple):
    """By module, its rows; by the words before ` = `, those after it: reasons, and other names of modules.

    `homes` has, by classes and modules of ours, the modules of PyTorch's that they belong to, "" being `torch` itself.
    """

    rows: dict[str, list[Row]]
    equal: dict[str, str]
    homes: dict[str, str]

    def renamed(self) -> dict[str, str]:
        """Return the modules of which others are another name, by these."""
        return {name: own for name, own in self.equal.items() if not name.isupper()}


@functools.cache
def read() -> Table:
    """Return the table."""
    with open(f"{FOLDER}names.txt", encoding="utf-8") as file:
        lines = file.read().replace("\n        ", " ").splitlines()
    table = Table({}, {}, {})
    module = ""
    for line in lines:
        if not line or line[0] == "#":
            continue
        if line.startswith("    "):
            head, _, names = line.rpartition(":")
            kind, _, beside = head.strip().partition(" ")
            table.rows[module].append(Row(kind, beside, names.split()))
        elif " < " in line:
            home, _, names = line.partition(" < ")
            table.homes.update(dict.fromkeys(names.split(), "" if home == "torch" else home))
        elif " = " in line:
            name, _, table.equal[name] = line.partition(" = ")
        else:
            module = line
            table.rows[module] = []
    return table


@functools.cache
def packages() -> frozenset[str]:
    """Return the modules of the table, and the packages that contain them."""
    paths = [path.split(".") for path in (*read().rows, *read().renamed())]
    return frozenset(".".join(parts[:end]) for parts in paths for end in range(1, len(parts) + 1))


@functools.cache
def names_of(module: str) -> Values:
    """Return the names that the table has for a module, such as `tinytorch.distributed.fsdp`, with their values."""
    names: Values = {}
    for kind, beside, listed in read().rows.get(module.removeprefix("tinytorch."), ()):
        names |= _KINDS[kind](module, beside, listed)
    return names


def elsewhere(path: str) -> dict[str, str]:
    """Return those names of a module that are objects of another one, with their paths below `tinytorch`."""
    found: dict[str, str] = {}
    for kind, home, names in read().rows.get(path, ()):
        if kind == "of":
            listed = importlib.import_module(f"tinytorch.{home}").__all__ if names == ["*"] else names
            further = elsewhere(home)
            for new, _, old in (each.partition("=") for each in listed):
                own = f"{read().equal.get(home, home)}.{old or new}".lstrip(".")
                found[new] = further.get(old or new, own)
    return found
