"""Families of functions with a version for each number of spatial dimensions."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from tinytorch.ops.register import public

P = ParamSpec("P")
R = TypeVar("R")


def versions(
    name: str, *dims: int, also: str = "", **facts: Any
) -> Callable[[Callable[Concatenate[int, P], R]], dict[int, Callable[P, R]]]:
    """Return a decorator that publishes the versions of a function for several numbers of dimensions, and returns them.

    The function's first argument is the number, which a version has in its name, in place of `{}`. The other arguments
    are those of `public`; one that is a dict has a value by the number. The docstring is that of all versions: in it
    `{name}` is the version's name, `{n}` the number, and `{4}` the number 4 once per dimension ("4, 4").
    """

    def declare(function: Any) -> dict[int, Any]:
        _, *parameters = inspect.signature(function).parameters
        given, made = ", ".join(parameters), dict[int, Any]()
        for n in dims:
            own = name.format(n).rpartition(".")[2]
            text = f"def factory(function):\n    def {own}({given}):\n        return function({n}, {given})\n\n"
            text += f"    return {own}\n"
            file = f"{function.__code__.co_filename} <{own}>"
            linecache.cache[file] = len(text), None, text.splitlines(True), file  # for tracebacks and debuggers
            scope: dict[str, Any] = {}
            exec(compile(text, file, "exec"), function.__globals__, scope)
            version = scope["factory"](function)
            version.__qualname__, version.__defaults__ = own, function.__defaults__
            version.__annotations__ = {each: function.__annotations__[each] for each in (*parameters, "return")}
            lengths = [", ".join([str(k)] * n) for k in range(10)]
            version.__doc__ = function.__doc__.format(*lengths, name=own, n=n)
            chosen = {key: each.get(n) if isinstance(each, dict) else each for key, each in facts.items()}
            made[n] = public(name.format(n), also=also.format(n), **chosen)(version)
        return made

    return declare
