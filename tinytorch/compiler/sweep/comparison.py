"""Comparing what several runs recorded of one program: whether they can be joined, and what corresponds in them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.compiler.recorder import Call, Memory, Value
from tinytorch.core.tensor import Tensor
from tinytorch.kernels.random import Source


class NotJoined(Exception):
    """Raised with the reason why runs are not joined."""


class Steps(NamedTuple):
    """What a run recorded of a program: see `Program`.

    Attributes:
        calls, inputs, bound, results, views: as the arguments of `Program`.
        losses: the number of results, at the end, that are losses.
    """

    calls: list[Call]
    inputs: list[Value]
    bound: list[bool]
    results: list[Value]
    views: set[int]
    losses: int


def copied(calls: Sequence[Call]) -> list[Call]:
    """Return copies of steps, which a program changes and clears."""
    found = []
    for call in calls:
        copy = call.copy()
        if call.kind == Call.GRADIENT:
            grad = call.function._grad
            copy.kwargs = {"version": 0 if grad is None else grad._cell[0]}
        found.append(copy)
    return found


class PerRun:
    """An argument that differs between runs; `values` has that of each run."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = tuple(values)


class Comparison:
    """Finds what corresponds in the steps of several runs.

    Attributes:
        values: by id of the first run's values, those of all runs.
    """

    def __init__(self, steps: Sequence[Steps]) -> None:
        self.steps, self.values = steps, dict[int, tuple[Value, ...]]()
        self._memories: list[dict[Memory, Memory]] = [{} for _ in steps]
        first = steps[0]
        for other in steps[1:]:
            if (other.bound, other.views, other.losses) != (first.bound, first.views, first.losses):
                raise NotJoined("it reads or returns other tensors than another run")
            if len(other.calls) != len(first.calls):
                counts = f"it makes {len(other.calls)} operations, another run {len(first.calls)}"
                raise NotJoined(f"{counts}{_where(_different(first, other))}")
        for values in zip(*[each.inputs for each in steps], strict=True):
            try:
                self._pair(values, "an input")
            except NotJoined as reason:
                uses = next((call for call in steps[-1].calls if values[-1] in call.inputs()), None)
                raise NotJoined(f"{reason}{_where(uses)}") from None
        for calls in zip(*[each.calls for each in steps], strict=True):
            try:
                self._compare(calls)
            except NotJoined as reason:
                raise NotJoined(f"{reason}{_where(calls[-1])}") from None
        for values in zip(*[each.results for each in steps], strict=True):
            self.argument(values)

    def _pair(self, values: Sequence[Value], what: str) -> None:
        v = values[0]
        for k, other in enumerate(values):
            if other.shape != v.shape:
                raise NotJoined(f"{what} has the shape {other.shape}, in another run {v.shape}")
            if (other.dtype, other.strides) != (v.dtype, v.strides):
                raise NotJoined(f"{what} has another dtype or layout than in another run")
            if self._memories[k].setdefault(v.memory, other.memory) is not other.memory:
                raise NotJoined(f"{what} shares memory with another array")
        self.values[id(v)] = tuple(values)

    def _compare(self, calls: Sequence[Call]) -> None:
        first = calls[0]
        for call in calls:
            if (call.kind, call.several, len(call.args), call.kwargs.keys()) != (
                first.kind, first.several, len(first.args), first.kwargs.keys()
            ):  # fmt: skip
                raise NotJoined("another step")
        if first.kind == Call.GRADIENT:
            self.argument([value_of(each, call.function) for each, call in zip(self.steps, calls, strict=True)])
        elif first.kind == Call.STATE:
            if any(_owner(call.function) is not _owner(first.function) for call in calls):
                raise NotJoined("another step")
        elif any(not _same(call.function, first.function) for call in calls):
            raise NotJoined("another step")
        for x in zip(*[(*call.args, *call.kwargs.values()) for call in calls], strict=True):
            self.argument(x)
        for values in zip(*[call.outputs for call in calls], strict=True):
            if any((value is None) is not (values[0] is None) for value in values):
                raise NotJoined("other results")
            if values[0] is not None:
                self._pair(values, "a result")

    def argument(self, xs: Sequence[Any]) -> Any:
        """Return an argument: of the first run if it is the same in all, else as `PerRun`, within its containers.

        Raises:
            NotJoined: it differs in a way that matters.
        """
        x = xs[0]
        kind = type(x)
        if any(type(each) is not kind for each in xs):
            raise NotJoined(f"an argument is a {type(next(y for y in xs if type(y) is not kind)).__name__}")
        if kind is Value:
            known = self.values.get(id(x))
            if known is None:  # a constant
                self._pair(xs, "a constant")
                known = self.values[id(x)]
            if any(a is not b for a, b in zip(known, xs, strict=True)):
                raise NotJoined("another array")
            return x
        if kind in (tuple, list):
            if any(len(each) != len(x) for each in xs):
                raise NotJoined("another number of arrays")
            return kind([self.argument(each) for each in zip(*xs, strict=True)])
        if kind is Source or (kind is float and any(repr(each) != repr(x) for each in xs)):
            return PerRun(xs)
        if kind in (int, bool, str, float, complex) and any(each != x for each in xs):
            raise NotJoined(f"{next(each for each in xs if each != x)!r} instead of {x!r}")
        if any(not _same(each, x) for each in xs):
            raise NotJoined(f"another {kind.__name__}")
        return x


def _owner(function: Any) -> Any:
    return type(getattr(function, "__self__", function))


def value_of(steps: Steps, leaf: Tensor) -> Value | None:
    """Return the input that is the array of a tensor, or None."""
    return next((value for value in steps.inputs if value.tensor is leaf), None)


def _same(f: Any, g: Any) -> bool:
    """Return whether two functions or other arguments do the same."""
    if f is g:
        return True
    if type(f) is not type(g):
        return False
    if isinstance(f, functools.partial):
        pairs = [(f.func, g.func), *zip((*f.args, *f.keywords.values()), (*g.args, *g.keywords.values()), strict=False)]
        return len(f.args) == len(g.args) and f.keywords.keys() == g.keywords.keys() and all(_same(*x) for x in pairs)
    code = getattr(f, "__code__", None)
    if code is not None:
        cells = [[cell.cell_contents for cell in x.__closure__ or ()] for x in (f, g)]
        return g.__code__ is code and len(cells[0]) == len(cells[1]) and all(map(_same, *cells))
    if isinstance(f, (np.ndarray, Tensor)):
        return False
    try:
        return bool(f == g)
    except Exception:
        return False


def _different(first: Steps, other: Steps) -> Call | None:
    """Return the first step of a run that another run has not."""
    pairs = zip(first.calls, other.calls, strict=False)
    return next((b for a, b in pairs if a.kind != b.kind or not _same(a.function, b.function)), None)


def _where(call: Call | None) -> str:
    return f", at {call.line[0]}:{call.line[1]}" if call is not None and call.line is not None else ""


def difference(first: Steps, other: Steps) -> str | None:
    """Return why two runs cannot be joined, or None."""
    try:
        Comparison([first, other])
    except NotJoined as reason:
        return str(reason)
    return None


__all__ = ["Comparison", "NotJoined", "PerRun", "Steps", "copied", "difference", "value_of"]
