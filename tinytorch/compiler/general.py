"""`General`: a program for tensors of any size, made of a trace; it calls public functions, not kernels."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable
from typing import Any

from tinytorch.compiler import cache
from tinytorch.compiler.entry import Results, all_guards, found, opening, scope_of
from tinytorch.compiler.program import FILE, show_source
from tinytorch.compiler.recorder import NotRecorded
from tinytorch.compiler.trace import Dimension, Text, Trace, fixed, plain
from tinytorch.compiler.tracing import Late, Tracer
from tinytorch.core.mode import local
from tinytorch.core.tensor import Size, Tensor
from tinytorch.nn.modules.module import Module

#: A size that this many calls have had gets a program of its own, if they are this share of all calls at least.
OFTEN, SHARE = 32, 1 / 8
KEPT = 1024  # sizes whose calls are counted
_numbers = itertools.count()


class Missed(Exception):
    """Raised by a program where a size differs in a way that matters."""


class General:
    """A program for tensors of any size, with its guards.

    Args:
        tracer, trace: the record of a call with `args` and `kwargs`.
        result: its result.

    Attributes:
        enter: takes a call's arguments as a tuple and a dictionary, and returns its result, or MISSED.
        guards: the source of the conditions.
        source: the source of the program.
        runs: the number of calls.
        wanted: whether a call was left to a program for its sizes alone, which are frequent.

    Raises:
        NotRecorded: the call cannot be written down for any size.
    """

    extra = retired = False
    broken = ""

    def __init__(self, tracer: Tracer, trace: Trace, args: Any, kwargs: Any, result: Any) -> None:
        recorder, guards = tracer.recorder, tracer.guards
        recorder.check()
        inputs = list(guards.inputs.values())
        results = _Returned(recorder, guards, [], args)
        results.trace = trace
        returned = results.text(result)
        sets = results.assignments(tracer)
        lines, effect = trace.body(" ".join([returned, *sets]))
        if trace.reason is not None:
            raise NotRecorded(trace.reason)
        given = [k for k, item in enumerate(inputs) if not item.stays]
        self.guards = all_guards(guards, inputs, args, kwargs, any_size=True)
        sources = list({source for call in recorder.calls for source in call.sources()})
        shapes = [f"t{k}_shape" for k in given]
        text = " ".join([*lines, returned, *sets, *trace.early])
        sized = {int(k) for k in re.findall(r"\bt(\d+)_shape\b", text)}
        ranks = {k: [f"t{k}._array.ndim == {inputs[k].tensor._array.ndim}"] for k in given}
        changing = [line for k in given for line in found(guards, inputs, k, ranks[k])]
        changing += [f"    t{k}_shape = t{k}._array.shape" for k, _ in enumerate(inputs) if k in given or k in sized]
        changing += [f"    if not ({condition}): return MISSED" for condition in trace.early]
        head = [
            *opening(self.guards, changing),
            f"    if is_frequent(({''.join([f'{name}, ' for name in shapes])})):",
            "        return MISSED",
            *["    marks = marks_of(SOURCES)"] * bool(sources),
            "    try:",
        ]
        body = [*lines, f"made = {returned}", *sets, "return made"]
        first = len(head) + 1
        self._effect = first + (len(lines) if effect is None else effect)
        undo = ["        put_back(SOURCES, marks)"] * bool(sources)
        tail = [
            "    except Missed:",
            *undo,
            "        return MISSED",
            "    except Exception as error:",  # before the first visible effect, the function raises its own error
            f"        if line_of(error) >= {self._effect}:",
            "            raise",
            *undo,
            "        return MISSED",
        ]
        if trace.sets_grad:
            tail += ["    finally:", f"        state.grad = {local.state.grad}"]
        self.file = f"{FILE} for any size {next(_numbers)}>"
        self.source = "\n".join([*head, *[f"        {line}" for line in body], *tail]) + "\n"
        show_source(self, self.file, self.source)
        scope = {**scope_of(guards, inputs, sources), **trace.scope, "Missed": Missed, "is_frequent": self._is_frequent}
        exec(cache.compiled(self.source, self.file), scope)
        self.enter: Callable[..., Any] = scope["enter"]
        self.runs, self.count, self.wanted = 0, len(trace.lines), False
        self._sizes: collections.Counter[Any] = collections.Counter()

    @property
    def programs(self) -> list[General]:
        """The programs: this one."""
        return [self]

    def summary(self) -> str:
        """Return a line about the program."""
        return f"{self.count} calls, for any size"

    def _is_frequent(self, sizes: Any) -> bool:
        """Count a call, and return whether its sizes shall have a program of their own."""
        if len(self._sizes) > KEPT:
            self._sizes.clear()
        self._sizes[sizes] += 1
        count = self._sizes[sizes]
        self.wanted = count == OFTEN and count >= self.runs * SHARE
        return self.wanted


class _Returned(Results):
    """The result of a call, as an expression of the names in a trace."""

    trace: Trace

    def text(self, x: Any) -> str:
        """Return the expression of a result."""
        if type(x) is Dimension:
            return x.text
        if type(x) is Text:
            x = fixed(x)
        if type(x) is Late:
            self.read_late(x)
            return f"{self.trace.name(x.tensor)}.item()"
        return self.trace.name(x) if isinstance(x, Tensor) else super().text(x)


def without_sizes(x: Any, seen: set[int] | None = None) -> Any:
    """Return a result with plain numbers in the place of `Dimension`s; lists, dictionaries and objects are changed."""
    seen = set() if seen is None else seen
    if type(x) in (Dimension, Text) or isinstance(x, Size):
        return plain(x)
    if isinstance(x, tuple):
        parts = [without_sizes(each, seen) for each in x]
        if not any(a is not b for a, b in zip(x, parts, strict=True)):
            return x
        return type(x)._make(parts) if hasattr(x, "_make") else type(x)(parts)
    if isinstance(x, (Tensor, Module, type)) or id(x) in seen:
        return x
    seen.add(id(x))
    if type(x) is list:
        x[:] = [without_sizes(each, seen) for each in x]
    for items in (x if isinstance(x, dict) else {}, getattr(x, "__dict__", {})):
        for key, value in dict.items(items):
            new = without_sizes(value, seen)
            if new is not value:
                dict.__setitem__(items, key, new)
    return x


__all__ = ["General", "without_sizes"]
