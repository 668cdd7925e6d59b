"""Lowering: kernels that are short in Python are replaced by the calls of NumPy that they consist of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.compiler.recorder import WIDE, Call, Value, new_value
from tinytorch.core.facts import extend, fact
from tinytorch.kernels import arithmetic, elementary, parallel, products, stacked


def transpose(x: Any) -> Any:
    """Return `x.T`."""
    return x.T


def dot(a: Any, b: Any, out: Any = None) -> Any:
    """Return `a.dot(b)`, of matrices that have more than one element."""
    return a.dot(b, out=out)


#: Templates of functions that are not written as a call.
TEXTS: dict[Any, str] = {transpose: "{0}.T", dot: "{0}.dot({1})"}


def named(function: Any, name: str) -> str:
    """Return the name of a kernel in the source."""
    own = getattr(function, "__name__", name)
    return name if own in ("<lambda>", "call", "kernel", "work") else own


def has_out(call: Call) -> bool:
    """Return whether a call takes an argument `out`, an array for its result."""
    known = may_overwrite(call.function) or hasattr(call.function, "overwrites")
    return (known or call.function in (dot, products.product, stacked.matrices, stacked.affine)) and not call.kwargs


def is_pure(call: Call) -> bool:
    """Return whether a call may be removed if its result is not used."""
    return call.kind == Call.VIEW or (call.kind == Call.NEW and (has_out(call) or call.function is parallel.blockwise))


def may_overwrite(function: Any) -> bool:
    """Return whether a function may write its result over an operand of the same shape."""
    return isinstance(function, np.ufunc) or function in _TWINS


def overwritable(call: Call) -> list[Value]:
    """Return the operands over which a call may write its result."""
    if may_overwrite(call.function) or shared_may_overwrite(call):
        return call.inputs()
    place = getattr(call.function, "overwrites", None)
    x = None if place is None or call.kwargs else call.args[place]
    return [x] if x is not None and [y.memory for y in call.inputs()].count(x.memory) == 1 else []


def shared_may_overwrite(call: Call) -> bool:
    """Return whether a call runs, on several threads, a function that may write its result over an operand."""
    if call.function is not parallel.blockwise or call.kwargs:
        return False
    function = call.args[0]
    return may_overwrite(function) or parallel.has_out(function) or hasattr(function, "shares")


def _transposed(x: Value, line: Any) -> Call:
    call = Call(Call.VIEW, transpose, (x,), {}, f"{x.name}_T" if x.name else "transposed", line)
    call.outputs.append(Value(x.shape[::-1], x.dtype, x.strides[::-1], x.memory, False, call))
    return call


def _product(a: Value, b: Value, call: Call, value: Any) -> Call:
    few = len(a.shape) == len(b.shape) == 2 and a.size * b.shape[1] < products.SMALL
    return _step(dot if few and a.size != 1 != b.size else products.product, (a, b), call, value)


def _step(function: Any, args: tuple[Any, ...], like: Call, value: Any) -> Call:
    """Return a step that returns a value."""
    made = Call(Call.NEW, function, args, {}, like.name, like.line)
    made.outputs.append(value)
    value.source, value.output = made, None
    return made


def _matrices(a_turned: bool, b_turned: bool) -> Callable[[Call], list[Call] | None]:
    def lower(call: Call) -> list[Call] | None:
        a, b = call.args
        if a.dtype not in WIDE or b.dtype not in WIDE:
            return None
        steps = [_transposed(x, call.line) if turned else None for x, turned in ((a, a_turned), (b, b_turned))]
        a, b = (x if step is None else step.outputs[0] for x, step in zip((a, b), steps, strict=True))
        return [*filter(None, steps), _product(a, b, call, call.outputs[0])]

    return lower


def _linear(call: Call) -> list[Call] | None:
    x, weight, bias = call.args
    if len(x.shape) != 2 or len(weight.shape) != 2 or x.dtype not in WIDE:
        return None
    if x.size * weight.shape[0] >= products.SMALL or x.size == 1 or weight.size == 1:
        return None
    out: Any = call.outputs[0]
    turned: Any = _transposed(weight, call.line)
    if bias is None:
        return [turned, _product(x, turned.outputs[0], call, out)]
    if len(bias.shape) != 1:
        return None
    middle = new_value(out.shape, out.dtype, name=out.name)
    made = _product(x, turned.outputs[0], call, middle)
    add = _step(np.add, (middle, bias), call, out)
    _for_floats(add)
    return [turned, made, add]


#: The native twins that replace ufuncs on float32 arrays; the ufuncs themselves without a native library.
_FOR_FLOATS: dict[Any, Any] = {
    np.add: arithmetic.add, np.subtract: arithmetic.subtract, np.multiply: arithmetic.multiply,
    np.true_divide: arithmetic.divide,
}  # fmt: skip


_TWINS = elementary.FUNCTIONS.union(_FOR_FLOATS.values())


def _for_floats(call: Call) -> None:
    other = _FOR_FLOATS.get(call.function) if isinstance(call.function, np.ufunc) else None
    if other is not None and all(x.dtype == np.float32 for x in call.args if isinstance(x, Value)):
        call.function = other


extend(products.mm, lowering=_matrices(False, False))
extend(products.mm_nt, lowering=_matrices(False, True))
extend(products.mm_tn, lowering=_matrices(True, False))
extend(products.affine, lowering=_linear)


def lowered(calls: list[Call]) -> list[Call]:
    """Return the calls, those with a rule replaced by the calls that they consist of."""
    found: list[Call] = []
    for call in calls:
        rule = fact(call.function, "lowering") if call.kind == Call.NEW and not call.kwargs else None
        steps = rule(call) if rule is not None else None
        if steps is None:
            _for_floats(call)
        found += [call] if steps is None else steps
    return found


__all__ = [
    "TEXTS", "has_out", "is_pure", "lowered", "may_overwrite", "named", "overwritable", "shared_may_overwrite",
]  # fmt: skip
