"""Fusion: runs of elementwise steps on large arrays become one step that computes them block by block.

Intermediate results stay in the cache, where separate steps would read their operands from main memory and write their
results there. Every element is computed by the same operations, so the result is the same, bit for bit.
"""

from __future__ import annotations

import collections
import itertools
from typing import Any

import numpy as np

from tinytorch.compiler.recorder import Call, Memory, Value, strides_in_order
from tinytorch.kernels import parallel


class Fused:
    """Fused steps: the function of a `Call` whose arguments are what they read, and whose outputs are used later.

    Attributes:
        steps: the calls, of elementwise functions.
    """

    def __init__(self, steps: list[Call]) -> None:
        self.steps = steps


def fused(calls: list[Call], results: list[Value]) -> list[Call]:
    """Return the calls, with runs of elementwise ones on large arrays of one shape fused; `results` are used later."""
    uses = collections.Counter([value.memory for call in calls for value in call.inputs()])
    uses.update([value.memory for value in results])
    found: list[Call] = []
    for shape, run in itertools.groupby(calls, _shape):
        steps = list(run)
        found += steps if shape is None else _joined(steps, uses)
    return found


def _joined(steps: list[Call], uses: collections.Counter[Memory]) -> list[Call]:
    """Return a run as one call, or unchanged if no step uses another one's operand or result."""
    within = collections.Counter([value.memory for call in steps for value in call.inputs()])
    made = [value for call in steps for value in call.outputs]
    stays = [value for value in made if uses[value.memory] > within[value.memory]]
    own = {id(value) for value in made}
    given = list({id(value): value for call in steps for value in call.inputs() if id(value) not in own}.values())
    if len(given) + len(stays) == sum(len(call.inputs()) + 1 for call in steps):
        return steps
    joined = Call(Call.NEW, Fused(steps), tuple(given), {}, "fused", steps[0].line)
    joined.outputs, joined.several = stays, True
    for k, value in enumerate(stays):
        value.name = value.name or value.source.name
        value.source, value.output = joined, k
    return [joined]


def function_of(call: Call) -> tuple[Any, tuple[Any, ...]]:
    """Return the function of an elementwise step, and its arguments."""
    return (call.args[0], call.args[1:]) if call.function is parallel.blockwise else (call.function, call.args)


def is_elementwise(call: Call) -> bool:
    """Return whether an element of a step's result depends only on the operands' elements at the same index."""
    function = call.function
    return function is parallel.blockwise or isinstance(function, np.ufunc) or hasattr(function, "elementwise")


def _shape(call: Call) -> tuple[int, ...] | None:
    """Return the shape of an elementwise step's operands and result if it may be computed block by block, else None."""
    if call.kind != Call.NEW or call.several or call.random or not is_elementwise(call):
        return None
    out = call.outputs[0]
    arrays = [out, *[x for x in call.inputs() if x.shape]]
    if out.size < parallel.LARGE or len(arrays) == 1 or any(x.shape != out.shape for x in arrays):
        return None
    for x in arrays:
        if any(x.strides) and x.strides != strides_in_order(x.shape, x.dtype.itemsize):
            return None
    return out.shape


__all__ = ["Fused", "function_of", "fused", "is_elementwise"]
