"""`General`: a program for tensors of any size, made of a transcript; it calls public functions, not kernels."""

from __future__ import annotations

import collections
import itertools
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.compiler import cache
from tinytorch.compiler.backward import marks_of, put_back
from tinytorch.compiler.entry import MISSED, Results, found, guards_of_call, modes_of, rebuilt, together
from tinytorch.compiler.guards import Guards, Input
from tinytorch.compiler.program import FILE, line_of, show_source
from tinytorch.compiler.recorder import NotRecorded, Recorder
from tinytorch.compiler.tracing import Late, Tracer
from tinytorch.compiler.transcript import Dimension, Text, Transcript, fixed, plain
from tinytorch.core.mode import local
from tinytorch.core.tensor import Size, Tensor
from tinytorch.kernels import dtypes
from tinytorch.kernels.random import Source
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops import overrides

#: A size that this many calls have had gets a program of its own, if they are this share of all calls at least.
OFTEN, SHARE = 32, 1 / 8
KEPT = 1024  # sizes whose calls are counted
_numbers = itertools.count()


class Missed(Exception):
    """Raised by a program where a size differs in a way that matters."""


class General:
    """A program for tensors of any size, with its guards.

    Args:
        tracer, transcript: the record of a call with `args` and `kwargs`.
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

    def __init__(self, tracer: Tracer, transcript: Transcript, args: Any, kwargs: Any, result: Any) -> None:
        recorder, guards = tracer.recorder, tracer.guards
        recorder.check()
        inputs = list(guards.inputs.values())
        results = _Returned(recorder, guards, inputs, transcript)
        results.arguments = {id(x): f"args[{k}]" for k, x in enumerate(args)}
        returned, _ = results.text(result)
        sets = results.assignments(tracer.assigned)
        sets += [f"{guards.refer(x)}.{name} {sign}= {y!r}" for x, name, sign, y in tracer.counted]
        lines, effect = transcript.body(" ".join([returned, *sets]))
        if transcript.reason is not None:
            raise NotRecorded(transcript.reason)
        given = [k for k, item in enumerate(inputs) if not item.stays]
        self.guards = [
            *guards_of_call(guards, args, kwargs),
            *guards.texts,
            *[guard for item in inputs if item.stays for guard in _of_kept(guards, item)],
        ]
        sources = {
            x for call in recorder.calls if call.random
            for x in (*call.args, *call.kwargs.values()) if isinstance(x, Source)
        }  # fmt: skip
        shapes = [f"t{k}_shape" for k in given]
        text = " ".join([*lines, returned, *sets, *transcript.early])
        sized = {int(k) for k in re.findall(r"\bt(\d+)_shape\b", text)}
        head = [
            "def enter(args, kwargs):",
            "    state = local.state",
            "    try:",
            f"        if not ({' and '.join([*modes_of(local.state), *together(self.guards)])}):",
            "            return MISSED",
            *[
                f"    {line}"
                for k in given
                for line in found(guards, inputs, k, [f"t{k}._array.ndim == {inputs[k].tensor._array.ndim}"])
            ],
            *[f"        t{k}_shape = t{k}._array.shape" for k, _ in enumerate(inputs) if k in given or k in sized],
            *[f"        if not ({condition}): return MISSED" for condition in transcript.early],
            "    except (AttributeError, LookupError, TypeError, ValueError):",
            "        return MISSED",
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
        if transcript.sets_grad:
            tail += ["    finally:", f"        state.grad = {local.state.grad}"]
        self.file = f"{FILE} for any size {next(_numbers)}>"
        self.source = "\n".join([*head, *[f"        {line}" for line in body], *tail]) + "\n"
        show_source(self, self.file, self.source)
        scope: dict[str, Any] = {
            **guards.objects, **transcript.scope, **{f"t{k}": x.tensor for k, x in enumerate(inputs) if x.stays},
            "MISSED": MISSED, "Missed": Missed, "SOURCES": list(sources),
            "asking": overrides.state, "copysign": math.copysign, "dtypes": dtypes, "is_frequent": self._is_frequent,
            "line_of": line_of, "local": local, "marks_of": marks_of, "np": np, "put_back": put_back,
            "rebuilt": rebuilt,
        }  # fmt: skip
        exec(cache.compiled(self.source, self.file), scope)
        self.enter: Callable[..., Any] = scope["enter"]
        self.runs, self.count, self.wanted = 0, len(transcript.lines), False
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
    """The result of a call, as an expression of the names in a transcript."""

    def __init__(self, recorder: Recorder, guards: Guards, inputs: list[Input], transcript: Transcript) -> None:
        super().__init__(recorder, guards, [])
        self._transcript = transcript

    def text(self, x: Any) -> tuple[str, str]:
        """Return the expression of a result."""
        if type(x) is Dimension:
            return x.text, ""
        if type(x) is Text:
            x = fixed(x)
        if type(x) is Late:
            self.read_late(x)
            return f"{self._transcript.name(x.tensor)}.item()", ""
        if isinstance(x, Tensor):
            return self._transcript.name(x), ""
        return super().text(x)


def _of_kept(guards: Guards, x: Input) -> list[str]:
    """Return the guards of a tensor that is the same in all calls."""
    name = guards.refer(x.tensor)
    return [
        f"{x.where} is {name} and {name}._array.ndim == {x.tensor._array.ndim}",
        *[f"{name}._array.shape == {x.tensor._array.shape}"] * isinstance(x.tensor, Parameter),
        f"{name}._requires_grad is {x.tensor._requires_grad} and {name}._hooks is None",
    ]


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
