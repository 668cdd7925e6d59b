"""Programs whose numbers are expressions of the batch size, to be saved.

A function is recorded with batches of several sizes. Where a number of a step differs between the records (a length,
the end of a slice), it must be `a * n + b` of the batch size `n`; then the program has that expression in its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.compiler.entry import Entry
from tinytorch.compiler.program import BATCH, Multiple
from tinytorch.compiler.recorder import Call, NotRecorded, Recorder, Value
from tinytorch.compiler.tracing import Tracer
from tinytorch.core.tensor import wrap

#: What is added to the batch size of the function's last call; the first one is that of the program.
_MORE = (0, 1, 3, 8)


class Unlike(Exception):
    """Raised with the reason why a function has no program for batches of any size."""


def of_any_batch(function: Callable[..., Any], entry: Entry) -> Entry:
    """Return a program that does the same as that of an entry, for batches of any size; Unlike if there is none.

    The function is called with batches of several sizes: the first dimension of its first argument is the batch.
    """
    given = [item for item in entry.inputs if item.where.startswith("args[")]
    if not given or entry.arity != (len(given), ()) or any(item.where != f"args[{k}]" for k, item in enumerate(given)):
        raise Unlike("its arguments are not tensors alone")
    if entry.has_effects or entry.frozen or not given[0].shape:
        raise Unlike("it changes what exists outside of it, is made for inference, or its first argument is a number")
    size = max(given[0].shape[0], 2)
    batched = [bool(item.shape) and item.shape[0] == given[0].shape[0] for item in given]
    records = [_recorded(function, given, batched, size + more) for more in _MORE]
    try:
        (tracer, args, result), *others = records
        sizes = [size + more for more in _MORE]
        _join(sizes, tracer.recorder, [each[0].recorder for each in others])
        made = Entry(function, tracer, args, {}, result)
        made.batched = frozenset([item.where for item, is_batch in zip(given, batched, strict=True) if is_batch])
    except NotRecorded as error:
        raise Unlike(str(error)) from error
    finally:
        for each in records:
            each[0].close()
    return made


def arguments(given: list[Any], batched: list[bool], size: int) -> list[Any]:
    """Return arguments for a batch of a size: normal numbers; zeros and ones for integers."""
    draw = np.random.default_rng(size)
    arrays = []
    for item, is_batch in zip(given, batched, strict=True):
        shape = (size, *item.shape[1:]) if is_batch else item.shape
        kind = np.dtype(item.dtype).kind
        array = draw.standard_normal(shape) if kind == "f" else draw.integers(0, 2, shape)
        arrays.append(np.asarray(array).astype(item.dtype))
    return arrays


def _recorded(function: Callable[..., Any], given: list[Any], batched: list[bool], size: int) -> Any:
    recorder = Recorder()
    tracer = Tracer(recorder, strict=True)
    args = tuple([wrap(array) for array in arguments(given, batched, size)])
    try:
        with no_grad(), recorder:
            result = tracer.start(function, args, {})
    except Exception as error:
        raise Unlike(f"{type(error).__name__} with a batch of {size}: {error}") from error
    if recorder.stopped is not None:
        raise Unlike(recorder.stopped)
    return tracer, args, result


def _join(sizes: list[int], first: Recorder, others: list[Recorder]) -> None:
    """Put expressions in the place of the numbers of the first record that differ from those of the others."""
    records = [first, *others]
    if len({len(record.calls) for record in records}) > 1 or len({len(record.constants) for record in records}) > 1:
        raise Unlike("other steps run for other batch sizes")
    join = functools.partial(_joined, sizes)
    made = []
    for constants in zip(*[record.constants for record in records], strict=True):
        shown = {(value.shape, value.dtype, value.initial.tobytes()) for value in constants}
        if len(shown) > 1:
            made.append(_filling(sizes, constants))
    done: set[int] = set()
    for calls in zip(*[record.calls for record in records], strict=True):
        call = calls[0]
        if any(_home(each) != _home(call) or each.kind != call.kind for each in calls):
            raise Unlike("other steps run for other batch sizes")
        for values in zip(*[list(_values(each)) for each in calls], strict=True):
            value = values[0]
            if id(value) not in done:
                done.add(id(value))
                value.shape = join([each.shape for each in values])
                value.strides = join([each.strides for each in values])
        call.args, call.kwargs = join([each.args for each in calls]), join([each.kwargs for each in calls])
        call._inputs = None
    first.constants = [value for value in first.constants if value.constant]
    first.calls[:0] = made


def _filling(sizes: list[int], constants: tuple[Value, ...]) -> Call:
    """Return a step that makes a tensor whose shape, or whose only number, depends on the batch size."""
    value, numbers = constants[0], [each.initial.ravel()[:1].tolist() for each in constants]
    alike = [bool(x) and bool((each.initial == x[0]).all()) for x, each in zip(numbers, constants, strict=True)]
    if not all(alike) or len({each.dtype for each in constants}) > 1:
        raise Unlike("a tensor that it creates depends on the batch size")
    whole = not value.shape and all(x[0] % 1 == 0 for x in numbers)
    fill = _joined(sizes, [int(x[0]) if whole else x[0] for x in numbers])
    call = Call(
        Call.NEW, np.full, (_joined(sizes, [each.shape for each in constants]), fill, value.dtype), {}, "filled"
    )
    call.outputs.append(value)
    value.source, value.array, value.initial = call, None, None
    return call


def _home(call: Call) -> Any:
    function = call.function
    return (function.func, function.args, function.keywords) if isinstance(function, functools.partial) else function


def _values(call: Call) -> Iterator[Value]:
    yield from call.inputs()
    for value in call.outputs:
        if value is not None:
            yield value


def _joined(sizes: list[int], given: list[Any]) -> Any:
    """Return what is given for the first batch size, with expressions where it differs."""
    x, kinds = given[0], {type(each) for each in given}
    if len(kinds) > 1:
        raise Unlike("arguments of other kinds for other batch sizes")
    if isinstance(x, Value):
        return x
    if isinstance(x, (tuple, list)):
        if len({len(each) for each in given}) > 1:
            raise Unlike("other numbers of arguments for other batch sizes")
        parts = [_joined(sizes, list(each)) for each in zip(*given, strict=True)]
        return type(x)._make(parts) if hasattr(x, "_make") else type(x)(parts)
    if type(x) is dict:
        return {key: _joined(sizes, [each[key] for each in given]) for key in x}
    if type(x) is slice:
        return slice(*[_joined(sizes, [getattr(each, part) for each in given]) for part in ("start", "stop", "step")])
    if type(x) is int:
        return _expression(sizes, given)
    own: Any = type(x).__eq__
    if any(each is not x and (own is object.__eq__ or not bool(each == x)) for each in given):
        raise Unlike(f"a {type(x).__name__} that depends on the batch size")
    return x


def _expression(sizes: list[int], given: list[int]) -> int:
    if len(set(given)) == 1:
        return given[0]
    factor, rest = divmod(given[1] - given[0], sizes[1] - sizes[0])
    offset = given[0] - factor * sizes[0]
    if rest or any(factor * n + offset != number for n, number in zip(sizes, given, strict=True)):
        raise Unlike("a number that is no multiple of the batch size")
    made = Multiple(given[0])
    product = BATCH if factor == 1 else f"{factor} * {BATCH}"
    made.text = product if not offset else f"{product} {'+' if offset > 0 else '-'} {abs(offset)}"
    return made


__all__ = ["Unlike", "arguments", "of_any_batch"]
