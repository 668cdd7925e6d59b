"""Recomputation: large elementwise results are computed again in the backward pass instead of being kept for it.

A GELU's input is needed for its own gradient, its result for that of the next layer: computing the result a second time
costs less than the memory that it would take at the peak. The result is the same, bit for bit.
"""

from __future__ import annotations

import collections
from collections.abc import Collection

from tinytorch.compiler.fusing import function_of, is_elementwise
from tinytorch.compiler.recorder import Call, Memory, Value, memories_written, new_value
from tinytorch.kernels import elementary, parallel


def recomputed(calls: list[Call], stays: Collection[Memory]) -> list[Call]:
    """Return the calls, some of them repeated in the backward pass; memory that `stays` is used outside of them."""
    last: dict[Memory, int] = {}
    uses: dict[int, list[int]] = collections.defaultdict(list)  # by id of values, the calls that read them
    shown: dict[Memory, list[tuple[int, Value]]] = collections.defaultdict(list)  # values in it
    for number, call in enumerate(calls):
        for value in call.inputs():
            last[value.memory] = number
            uses[id(value)].append(number)
        for value in call.outputs:
            if value is not None:
                last[value.memory] = number
                shown[value.memory].append((number, value))
    top = _top(calls, last, stays)
    written = memories_written(calls)
    changes = [number for number, call in enumerate(calls) if call.kind == Call.STATE]  # optimizers' steps
    kept = set(stays) | written
    again: dict[int, list[Call]] = collections.defaultdict(list)  # by the index of the call that needs it first
    for number, call in enumerate(calls[:top]):
        if call.kind != Call.NEW or call.several or call.random or not _is_cheap(call):
            continue
        value = call.outputs[0]
        if value.size < parallel.LARGE or not value.whole or value.memory in kept:
            continue
        views = [(at, view) for at, view in shown[value.memory] if view is not value]
        later = [at for at in uses[id(value)] if at > top]
        if not later or later == uses[id(value)]:
            continue
        if any(at <= top and max(uses[id(view)], default=0) > top for at, view in views):
            continue
        changed = any(number < change < later[0] for change in changes)
        if any(
            x.memory in written or (changed if x.memory in stays else last[x.memory] < later[0]) for x in call.inputs()
        ):
            continue
        copy = call.copy()
        made = new_value(value.shape, value.dtype, copy, name=value.name or call.name)
        copy.outputs = [made]
        for reader in calls[top + 1 :]:
            reader.replace({id(value): made})
        for at, view in views:
            if at > top:
                view.memory = made.memory
        kept |= {x.memory for x in call.inputs()}
        last[value.memory] = top
        again[later[0]].append(copy)
    return [step for number, call in enumerate(calls) for step in (*again[number], call)]


def _is_cheap(call: Call) -> bool:
    """Return whether a step is elementwise and inexpensive: no power or sine, for instance."""
    function, _ = function_of(call)
    return (
        is_elementwise(call)
        and function not in elementary.FUNCTIONS
        and (function in parallel.CHEAP or hasattr(function, "elementwise"))
    )


def _top(calls: list[Call], last: dict[Memory, int], stays: Collection[Memory]) -> int:
    """Return the index of the call during which most memory is in use."""
    change = [0] * (len(calls) + 2)
    for number, call in enumerate(calls):
        for value in call.outputs if call.kind != Call.VIEW else ():
            if value is not None and value.memory not in stays:
                size = value.size * value.dtype.itemsize
                change[number] += size
                change[last[value.memory] + 1] -= size
    used = most = top = 0
    for number in range(len(calls)):
        used += change[number]
        if used > most:
            most, top = used, number
    return top


__all__ = ["recomputed"]
