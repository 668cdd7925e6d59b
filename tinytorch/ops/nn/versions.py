"""Public functions written from others: versions for several numbers of dimensions, and further parameters."""

from __future__ import annotations

import inspect
import linecache
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from tinytorch.ops.register import public

P = ParamSpec("P")
R = TypeVar("R")


def rewritten(function: Any, name: str, parameters: list[inspect.Parameter], arguments: str) -> Any:
    """Return a function with these parameters, which returns `function(arguments)`, in the module of `function`."""
    given = ", ".join([each.name for each in parameters])
    text = (
        f"def factory(function):\n    def {name}({given}):\n        return function({arguments})\n\n    return {name}\n"
    )
    file = f"{function.__code__.co_filename} <{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file  # for tracebacks and debuggers
    scope: dict[str, Any] = {}
    exec(compile(text, file, "exec"), function.__globals__, scope)
    made = scope["factory"](function)
    made.__qualname__, made.__doc__ = name, function.__doc__
    made.__defaults__ = tuple([each.default for each in parameters if each.default is not each.empty])
    made.__annotations__ = {each.name: each.annotation for each in parameters}
    made.__annotations__["return"] = function.__annotations__["return"]
    return made


def versions(
    name: str, *dims: int, also: str = "", **facts: Any
) -> Callable[[Callable[Concatenate[int, P], R]], dict[int, Callable[P, R]]]:
    """Return a decorator that publishes the versions of a function for several numbers of dimensions, and returns them.

    The function's first argument is the number, which a version has in its name, in place of `{}`. The other arguments
    are those of `public`; one that is a dict has a value by the number. The docstring is that of all versions: in it
    `{name}` is the version's name, `{n}` the number, and `{4}` the number 4 once per dimension ("4, 4").
    """

    def declare(function: Any) -> dict[int, Any]:
        _, *parameters = inspect.signature(function).parameters.values()
        given, made = ", ".join([each.name for each in parameters]), dict[int, Any]()
        for n in dims:
            own = name.format(n).rpartition(".")[2]
            version = rewritten(function, own, parameters, f"{n}, {given}")
            lengths = [", ".join([str(k)] * n) for k in range(10)]
            version.__doc__ = function.__doc__.format(*lengths, name=own, n=n)
            chosen: Any = {key: each.get(n) if isinstance(each, dict) else each for key, each in facts.items()}
            made[n] = public(name.format(n), also=also.format(n), **chosen)(version)
        return made

    return declare
