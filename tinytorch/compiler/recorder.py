"""The recorder: a mode that notes which kernels a call runs, and which arrays they read and return.

As a mode it sees every op, including those in formulas during the backward pass. An array is identified by its `id`
while it is alive; the recorder holds no reference to arrays that the call creates, so that recording takes no more
memory than the call itself.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import logging
import math
import weakref
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tinytorch.core.declaration import NUMBERS
from tinytorch.core.graph import AccumulateGrad, numbers
from tinytorch.core.layout import NoArray
from tinytorch.core.mode import Event, Witness, arriving, local, on
from tinytorch.core.names import module_of
from tinytorch.core.op import Op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import elementary, parallel
from tinytorch.kernels.layouts import arranged
from tinytorch.kernels.places import storage
from tinytorch.kernels.programs import copy_into, fill, holds, laid_out
from tinytorch.kernels.random import Source

DRAWN = "random numbers are drawn by something else than a traced operation"
_told: set[str] = set()  # errors of the compiler


class NotRecorded(Exception):
    """Raised with the reason why a call cannot be recorded, and the line of the user's code, if it is one line's."""

    line: tuple[str, int] | None = None


class Value:
    """An array of the program, described without its elements.

    Attributes:
        shape, dtype, strides: as in NumPy.
        memory: the block of memory that holds it, shared by all views of one array.
        whole: whether it covers that entire block, in C order.
        source: the call that returns it, or None; `output` is its index among the results, None for a single one.
        place: the index of an input among the inputs; None for constants and results.
        name: the preferred name of its variable.
        array: the array of an input or constant; None for the result of a call.
        tensor: the tensor of an input.
        initial: the content of a constant before it is written to; `fills` if a random fill overwrites it first.
    """

    __slots__ = (
        "array", "dtype", "fills", "initial", "memory", "name", "output", "place", "shape", "source", "strides",
        "tensor", "whole",
    )  # fmt: skip

    def __init__(
        self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...], memory: Any, whole: bool,
        source: Call | None = None, output: int | None = None, place: int | None = None, name: str = "",
    ) -> None:  # fmt: skip
        self.shape, self.dtype, self.strides, self.memory, self.whole = shape, dtype, strides, memory, whole
        self.source, self.output, self.place, self.name = source, output, place, name
        self.array: Any = None
        self.initial: Any = None
        self.fills = False
        self.tensor: Tensor | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def constant(self) -> bool:
        """Whether it exists before the call and is not an input."""
        return self.source is None and self.place is None


class Call:
    """A step of the program.

    Attributes:
        kind: NEW (it allocates its result), VIEW (it returns a view), WRITE (it writes into its first argument),
            GRADIENT (it sets the `.grad` of a leaf), STATE (it calls a function that changes Python objects), or TRUTH
            (it checks that a truth value is the one that was recorded).
        function: the function that is called; `args` and `kwargs` have a `Value` for each array.
        name: the preferred name of its result.
        outputs: the results; `several` if it returns a tuple, with None for results that are not used.
        random: whether it draws random numbers.
        counts: whether a write increments the version of the tensor.
        repeats: whether it sets a `.grad` that the call has not read to None: to call the function once more from its
            beginning has no other effect.
        line: file and line number of the user's code.
    """

    NEW, VIEW, WRITE, GRADIENT, STATE, TRUTH = range(6)
    __slots__ = (
        "_inputs", "args", "counts", "function", "kind", "kwargs", "line", "name", "outputs", "random", "repeats",
        "several",
    )  # fmt: skip

    def __init__(
        self, kind: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], name: str,
        line: tuple[str, int] | None = None,
    ) -> None:  # fmt: skip
        self.kind, self.function, self.args, self.kwargs, self.name = kind, function, args, kwargs, name
        self.outputs: list[Any] = []  # a `Value`, or None for a result that is not used
        self.several = self.random = self.repeats = False
        self.counts, self.line = True, line
        self._inputs: list[Value] | None = None

    def copy(self) -> Call:
        """Return a step like this one, with the same values."""
        made = Call(self.kind, self.function, self.args, self.kwargs, self.name, self.line)
        made.outputs, made.several, made.random = list(self.outputs), self.several, self.random
        made.counts, made.repeats = self.counts, self.repeats
        return made

    def inputs(self) -> list[Value]:
        """Return the arrays that the step reads or writes."""
        if self._inputs is None:
            self._inputs = [x for x in parts_of((self.args, self.kwargs)) if type(x) is Value]
        return self._inputs

    def sources(self) -> list[Source]:
        """Return the sources of random numbers that the step draws from."""
        return [x for x in (*self.args, *self.kwargs.values()) if isinstance(x, Source)] if self.random else []

    def is_effect(self, outside: Container[Memory]) -> bool:
        """Return whether the step changes what exists outside of the call (`outside`), but for sources of numbers."""
        if self.kind == Call.WRITE:
            return self.args[0].memory in outside
        return self.kind == Call.STATE or (self.kind == Call.GRADIENT and not self.repeats)

    def clear(self) -> None:
        """Drop the values, which refer back to the call: the cycle would keep both alive."""
        self.args, self.kwargs, self.outputs, self._inputs = (), {}, [], None

    def replace(self, by: dict[int, Value]) -> None:
        """Replace values among the arguments, by the ids of the old ones."""
        if any(id(value) in by for value in self.inputs()):
            self.args, self.kwargs, self._inputs = replaced(self.args, by), replaced(self.kwargs, by), None


def parts_of(x: Any) -> Iterator[Any]:
    """Yield an object that is no tuple, list or dictionary, or those in one."""
    if isinstance(x, (tuple, list, dict)):
        for each in x.values() if isinstance(x, dict) else x:
            yield from parts_of(each)
    else:
        yield x


def mapped(change: Callable[[Any], Any], x: Any) -> Any:
    """Return `change` of an object; of tuples, lists and dictionaries, one with `change` of what is in them."""
    kind = type(x)
    if kind is tuple or kind is list:
        return kind([mapped(change, each) for each in x])
    if kind is dict:
        return {key: mapped(change, each) for key, each in x.items()}
    return change(x)


def replaced(x: Any, by: dict[int, Value]) -> Any:
    """Return an argument with values replaced, by the ids of the old ones."""
    return mapped(lambda each: by.get(id(each), each), x)


def expression(x: Any, shown: Callable[[Any], str]) -> str:
    """Return an object as Python code; `shown` is asked for what is no plain number, text, container or slice."""
    kind = type(x)
    if kind is tuple or kind is list:
        text = ", ".join([expression(each, shown) for each in x])
        return f"[{text}]" if kind is list else f"({text}{',' if len(x) == 1 else ''})"
    if kind is dict:
        return f"{{{', '.join([f'{expression(a, shown)}: {expression(b, shown)}' for a, b in x.items()])}}}"
    if kind is slice:
        return f"slice({', '.join([expression(each, shown) for each in (x.start, x.stop, x.step)])})"
    if x is Ellipsis:
        return "..."
    plain = x is None or kind in (bool, int, str, bytes) or (kind is float and x - x == 0)
    return repr(x) if plain else shown(x)


def strides_in_order(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides of a contiguous array."""
    lengths = itertools.accumulate(reversed(shape[1:]), lambda a, b: a * b, initial=itemsize)
    return tuple(reversed(list(lengths)))[: len(shape)]


def memories_written(calls: Iterable[Call]) -> set[Memory]:
    """Return the memory that calls write to."""
    return {call.args[0].memory for call in calls if call.kind == Call.WRITE}


class Memory:
    """A block of memory; `places` are the locations of the recorded arrays in it."""

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: list[Any] = []


def new_value(
    shape: tuple[int, ...], dtype: Any, source: Call | None = None, output: int | None = None, name: str = ""
) -> Value:
    """Return the value of an array in C order that has new memory."""
    strides = strides_in_order(shape, dtype.itemsize)
    return Value(shape, dtype, strides, Memory(), True, source, output, name=name)


def _graph_of(x: Tensor) -> tuple[Any, ...]:
    """Return what identifies the state of a tensor in the autograd graph."""
    return x._requires_grad, None if x._edge is None else id(x._edge[0]), id(x._array), id(x._view), id(x._hooks)


def tensors_of(x: Any) -> list[Tensor]:
    """Return the tensors in lists, tuples and dictionaries."""
    return [each for each in parts_of(x) if isinstance(each, Tensor)]


def results_in(x: Any, seen: set[int] | None = None) -> list[Tensor]:
    """Return the tensors in the result of a call, also those in objects such as data classes, each of them once."""
    seen = set() if seen is None else seen
    kind = type(x)
    if isinstance(x, (int, float, str, bytes, type, type(None))) or id(x) in seen:
        return []
    seen.add(id(x))
    if isinstance(x, Tensor):
        return [x]
    parts: list[Any] = [*dict.values(x)] if isinstance(x, dict) else [*x] if isinstance(x, (list, tuple)) else []
    if hasattr(x, "__dict__") and kind.__new__ in (object.__new__, dict.__new__):
        parts += x.__dict__.values()
    return [tensor for part in parts for tensor in results_in(part, seen)]


def fault(error: Exception) -> str:
    """Say in the log, once, that there is an error of the compiler, and return it as the reason to run as Python."""
    if isinstance(error, NoArray):  # a sparse tensor, which programs do not have
        return str(error)
    reason = f"{type(error).__name__}: {error}"
    if reason not in _told:
        _told.add(reason)
        text = "torch.compile: an error of the compiler: %s; what it concerns runs as Python"
        logging.getLogger(__name__).error(text, reason, exc_info=error)
    return reason


def is_ours(kind: type) -> bool:
    """Return whether a tensor class is defined in this package: other classes may override operations."""
    return module_of(kind).partition(".")[0] == "tinytorch"


class Recorder(Witness):
    """Records the steps that run while it is on.

    Attributes:
        calls: the steps, in order.
        line: the line of the user's code that is running; the tracer sets it.
        stopped: the reason why the call cannot be recorded, or None; `stops` is called when it is set.
        constants: tensors created by the call whose elements depend only on guarded values.
        released: nodes that a backward pass has visited.
        leaves: by id, leaves whose `.grad` the call reads or sets; `meets` is called with each leaf beforehand.
        raised: the last error of an op: whether it is raised may depend on values.
        tried: whether the call catches errors of its steps.
        changed_state: whether a step has changed Python objects.
        reads: whether reading a tensor's values ends the recording.
        used: whether there was an operation on tensors, be it after the recording has ended.
        trusts: whether a trusted function of the package is running: its effects depend only on its arguments, so
            tensors that it creates are constants, and the program checks the truth values that it reads.
        shared: the memory of inputs that have the same elements as others.
        marks: by sources from which the call draws random numbers, their states before it.
        trial: while a backward pass runs that has no effects, the memory of what existed before it; else None.
        versions: by place, the versions of inputs before the call, plus writes that are counted outside of the program.
        tensors: by place, the inputs; `given` are their values.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.line: tuple[str, int] | None = None
        self.stopped: str | None = None
        self.constants: list[Value] = []
        self.released: set[Any] = set()
        self.leaves: dict[int, Tensor] = {}
        self.meets: Callable[[Tensor], Any] = lambda leaf: None
        self.stops: Callable[[], Any] = lambda: None
        self.changed_state = False
        self.raised: Exception | None = None
        self.tried = False
        self.reads = True
        self.used = False
        self.trusts = False
        self.trial: set[Memory] | None = None
        self.shared: set[Memory] = set()
        self.given: list[Value] = []
        self.versions: dict[int, int] = {}
        self.tensors: dict[int, Tensor] = {}
        self._outside: set[Memory] = set()  # the memory of inputs
        self._seen, self._effect = 0, False  # steps of which it is known whether one has an effect, and whether
        self._first = next(numbers)  # number of a node; nodes that the call creates have higher ones
        self._graphs: dict[int, Any] = {}  # by place, the state of inputs in the autograd graph before the call
        self._changed: set[int] = set()  # by id, tensors that optimizers' steps change
        self._sums: dict[int, int] = {}  # by place, a checksum of inputs before the call
        self._values: dict[int, Value] = {}  # by id of live arrays
        self._places: dict[Any, Value] = {}  # by location in live memory
        self._memories: dict[int, Memory] = {}  # by id of the array that owns it
        self._creations: set[int] = set()  # ids of live arrays that become constants when they are used
        self._deaths: dict[int, Any] = {}  # weak references to arrays, by id
        self.marks: dict[Source, Any] = {}
        self._drawing: set[Source] = set()  # sources of which a draw is expected
        self._outputs: dict[tuple[int, int], Value] = {}  # results of nodes, by id and index

    def stop(self, reason: str) -> None:
        """Note why the call cannot be compiled; the first reason is kept."""
        if self.stopped is None:
            self.stopped = reason
            self.stops()
        if self.trial is not None:
            raise NotRecorded(reason)

    def stop_here(self, reason: str) -> None:
        """Note why the call cannot be compiled, with the user's line."""
        self.stop(f"{self.line[0]}:{self.line[1]}: {reason}" if self.line else reason)

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """Let what stops the recording, and an effect, raise NotRecorded in a `with` block, before it happens."""
        self.trial = set(self._memories.values())
        try:
            with self:
                yield
        finally:
            self.trial = None

    def close(self) -> None:
        """Drop all references."""
        for call in self.calls:
            if call.args or call.outputs:  # (a program may have cleared it)
                call.clear()
        self.meets, self.stops = lambda leaf: None, lambda: None
        self.calls, self.constants, self.raised = [], [], None
        self._values, self._places, self._memories, self._deaths = {}, {}, {}, {}
        self.tensors, self.leaves, self.released, self.given = {}, {}, set(), []

    # Arrays ---------------------------------------------------------------------------------------

    def enter(
        self, array: Any, source: Call | None = None, output: int | None = None, place: int | None = None,
        name: str = "",
    ) -> Value:  # fmt: skip
        """Return a new value for an array."""
        alone = array.base is None
        owner = array if alone else storage(array)
        memory = self._memories.get(id(owner)) or self._new_memory(owner)
        whole = array.flags.c_contiguous and (alone or (owner.base is None and owner.nbytes == array.nbytes))
        value = Value(array.shape, array.dtype, array.strides, memory, whole, source, output, place, name)
        if source is None:
            value.array = array
        self._values[id(array)] = value
        if array is not owner:  # (a view may be freed before the array that owns its memory)
            where = _where(array)
            self._places[where] = value
            memory.places.append(where)
            self._watch(array)
        return value

    def _new_memory(self, owner: Any) -> Memory:
        """Return a new `Memory` for the memory that an array owns."""
        found = self._memories[id(owner)] = Memory()
        self._watch(owner)
        return found

    def _watch(self, array: Any) -> None:
        """Forget an array when it is freed."""
        number = id(array)
        if number not in self._deaths:
            death = self._deaths[number] = _Death(array, self._forget_array)
            death.number = number

    def _forget_array(self, death: _Death) -> None:
        """Forget an array that was freed: its `id` and memory may be reused."""
        number = death.number
        self._deaths.pop(number, None)
        self._values.pop(number, None)
        self._creations.discard(number)
        memory = self._memories.pop(number, None)
        if memory is not None:
            for where in memory.places:
                self._places.pop(where, None)

    def take(self, x: Tensor, name: str) -> None:
        """Note a tensor that exists before the call."""
        place = len(self.tensors)
        before = self.find(x._array)
        value = self.enter(x._array, place=place, name=name)
        value.tensor = x
        self.given.append(value)
        if before is not None:
            self.shared |= {value.memory, before.memory}
        self._outside.add(value.memory)
        self.tensors[place], self.versions[place] = x, x._version
        self._graphs[place], self._sums[place] = _graph_of(x), _sum(x._array)

    def check(self) -> None:
        """Raise NotRecorded if anything but recorded steps changed an input or a constant, or drew random numbers."""
        written = memories_written(self.calls)
        if self._drawing:
            raise NotRecorded(DRAWN)
        for value in self.constants:
            if value.memory not in written and _sum(value.array) != _sum(value.initial):
                raise NotRecorded("a new tensor is written to by something else than a traced operation")
        for place, x in self.tensors.items():
            if self._graphs[place] != _graph_of(x):
                raise NotRecorded("an input gets another graph or other memory")
            value = self.value(x._array)
            known = id(x) in self._changed or value.memory in written
            moved = value.place != place and value.memory not in self.shared
            if not known and (moved or self._sums[place] != _sum(x._array)):
                raise NotRecorded("an input is written to by something else than a traced operation")
        if any(leaf._grad is not None and leaf._grad._requires_grad for leaf in self.leaves.values()):
            raise NotRecorded("a gradient has a graph")

    @on(Event.KNOWN)
    def known(self, x: Any) -> None:
        """Register a tensor as a constant: its elements depend only on guarded values."""
        for tensor in tensors_of(x):
            array = tensor._array
            if self.find(array) is None and id(storage(array)) not in self._memories:
                value = self.enter(array)
                value.initial = array.copy("K")  # it may be written to, also through a view
                self.constants.append(value)

    @on(Event.MADE)
    def _made(self, x: Any) -> None:
        """Observe a creation; a tensor that a trusted function creates becomes a constant when it is used."""
        if self.trusts:
            self._creations.add(id(x._array))
            self._watch(x._array)

    def find(self, array: Any) -> Value | None:
        """Return the value of a known array, or of a known array of the same elements; else None."""
        found = self._values.get(id(array))
        if found is not None or not array.size:
            return found
        where, owner = _where(array), storage(array)
        found = self._places.get(where)
        return self._values.get(id(owner)) if found is None and where == _where(owner) else found

    def value(self, array: Any) -> Value:
        """Return the value of an array."""
        found = self.find(array)
        if found is not None:
            return found
        if id(storage(array)) in self._memories:
            raise NotRecorded("a view was not produced by a traced operation")
        if id(array) in self._creations:
            self.known(wrap(array))
            return self._values[id(array)]
        raise NotRecorded(
            "numbers were not produced by a traced operation (NumPy code, or a creation function that the tracer does "
            "not know)"
        )

    def _taken(self, x: Any) -> Any:
        """Return the value of an array or a tensor, and anything else as it is."""
        if isinstance(x, np.ndarray):
            return self._values.get(id(x)) or self.value(x)
        return self.value(x._array) if isinstance(x, Tensor) else x

    # Steps ----------------------------------------------------------------------------------------

    def add(self, kind: int, function: Any, args: tuple[Any, ...], name: str, kwargs: Any = None) -> Call:
        """Record a step, and return it."""
        taken, named = mapped(self._taken, args), mapped(self._taken, kwargs) if kwargs else {}
        call = Call(kind, function, taken, named, name, self.line)
        self.calls.append(call)
        return call

    def call(self, op: Any, caller: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call of an op, which reports to `computed` or `writes`."""
        self.used = True
        if self.stopped is not None:
            return caller(*args, **kwargs)
        if not isinstance(op, Op):
            self.stop(f"calls {op.__name__}, a Function of its own")
            return caller(*args, **kwargs)
        foreign = next((x for x in tensors_of((args, kwargs)) if not is_ours(type(x))), None)
        if op.data_dependent or foreign is not None:
            answers = f"a {type(foreign).__name__} answers itself"
            reason = "the shape of its result depends on values" if op.data_dependent else answers
            self.stop_here(f"{op.name.strip('_')}: {reason}")
            return caller(*args, **kwargs)
        state = local.state
        before, state.witness = state.witness, self
        try:
            result = caller.caller.witnessed(*args, **kwargs)  # type: ignore[attr-defined]
        except Exception as error:
            self.raised = error
            raise
        finally:
            state.witness = before
        for x in tensors_of(result):
            value = self._values.get(id(x._array))
            if x._edge is not None and value is not None:
                self._outputs.setdefault((id(x._edge[0]), x._edge[1]), value)
        return result

    def computed(self, op: Op, values: tuple[Any, ...], arrays: tuple[Any, ...], results: list[Any]) -> None:
        """Record the kernel that a call has run."""
        if self.stopped is None:
            with self._noting(op.name.strip("_")):
                _refuse_complex((*arrays, *results))
                call = self._add_kernel(op, values, arrays)
                call.several = op.outputs != 1 or bool(op.residuals)
                self._enter_results(call, results)

    def opaque(self, step: Callable[..., Any], arrays: list[Any], results: list[Any], several: bool) -> None:
        """Record a call of a function of arrays that is no kernel of an op."""
        with self._noting("an operator"):
            _refuse_complex((*arrays, *results))
            call = self.add(Call.NEW, step, tuple(arrays), "opaque")
            call.several = several
            self._enter_results(call, results)

    def laid(self, array: Any, copy: Any, operands: list[Any]) -> None:
        """Record the copy of a result in another order of dimensions."""
        self.opaque(arranged, [array, *operands], [copy], False)

    def writes(self, op: Op, values: tuple[Any, ...], arrays: Any, kernel: Any) -> None:
        """Record the write of a call into its first argument."""
        if self.stopped is not None:
            return
        target = values[0]._array
        with self._noting(op.name.strip("_")):
            if self.trial is not None and self.value(target).memory in self.trial:
                raise NotRecorded("a backward pass writes to a tensor that existed before")
            if kernel is not None:
                if any(isinstance(values[i], Tensor) and np.may_share_memory(target, arrays[i]) for i in op.inputs[1:]):
                    raise NotRecorded("what is written shares memory with what is read")
                self.add(Call.WRITE, kernel, tuple(arrays), _name(op))
            elif (isinstance(op.kernel, np.ufunc) or op.kernel in elementary.FUNCTIONS) and arrays[0] is target and all(
                not isinstance(y, np.ndarray) or (y.dtype == target.dtype and y.shape in (target.shape, ()))
                for y in arrays[1:]
            ) and target.dtype in WIDE:  # fmt: skip
                self.add(Call.WRITE, op.kernel, self._converted(op, values, arrays), _name(op))
            elif op.residuals or op.outputs != 1:
                raise NotRecorded("is written in place")
            else:
                call = self._add_kernel(op, values, arrays)
                result = np.empty_like(target)  # in place of the result (another shape would be an error)
                call.outputs.append(self.enter(result, call))
                self.add(Call.WRITE, copy_into, (target, result), "copy")

    def _add_kernel(self, op: Op, values: tuple[Any, ...], arrays: Any) -> Call:
        """Return a new step that calls the kernel of an op."""
        taken = self._converted(op, values, arrays)
        large = op.elementwise and next(x.size for x in taken if isinstance(x, np.ndarray)) >= parallel.LARGE
        if large and len(taken) == 1:
            kernel = getattr(op.kernel, "ufunc", op.kernel) if taken[0].dtype.kind == "f" else op.kernel
            call = self.add(Call.NEW, parallel.blockwise, (kernel, *taken), _name(op))
        elif large:
            call = self.add(Call.NEW, parallel.blockwise, (op.kernel, *taken), _name(op))
        else:
            named = dict(zip(op.arguments[op.positional :], taken[op.positional :], strict=True))
            call = self.add(Call.NEW, op.kernel, tuple(taken[: op.positional]), _name(op), named)
        call.random = Source in map(type, values)
        self._drawing.difference_update(call.sources())
        return call

    def _converted(self, op: Op, values: tuple[Any, ...], arrays: Any) -> tuple[Any, ...]:
        """Return the arguments of a kernel, after recording the dtype conversions of the call's arguments."""
        taken = list(arrays)
        for i in op.inputs:
            value, array = values[i], arrays[i]
            if not isinstance(array, np.ndarray) or (isinstance(value, Tensor) and array is value._array):
                continue
            if op.in_float32 and array.dtype.itemsize == 2:
                raise NotRecorded("numbers of 16 bits")  # computed in 32 bits, see `promoted`
            if isinstance(value, NUMBERS):
                self.known(wrap(array))
            elif isinstance(value, Tensor):
                call = self.add(Call.NEW, np.ndarray.astype, (value._array, array.dtype), "to")
                call.outputs.append(self.enter(array, call))
        return tuple(taken)

    def _enter_results(self, call: Call, results: list[Any]) -> None:
        """Register the results of a step."""
        for k, array in enumerate(results):
            if array is not None and id(array) not in self._values:
                value = self.enter(array, call, k if call.several else None)
                if value.memory in [x.memory for x in call.inputs()]:
                    call.kind = Call.VIEW
                call.outputs.append(value)
            elif call.several:
                call.outputs.append(None)
            else:  # the kernel returned one of its arguments
                self.calls.remove(call)

    # Effects outside of ops -----------------------------------------------------------------------

    @on(Event.DRAWS)
    def _draws(self, source: Source) -> None:
        """Expect the step that draws from a source: without one the numbers of the first call would be constants."""
        if self.trial is not None:
            self.stop("a backward pass draws random numbers")
        self.marks.setdefault(source, (source.mark(), source.normal))
        if source in self._drawing:
            self.stop(DRAWN)
        self._drawing.add(source)

    @on(Event.FILLED)
    def _filled(self, x: Tensor, kernel: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Record a fill with random numbers."""
        self._drawing.discard(args[0])
        if self.stopped is None:
            with self._noting("a random fill"):
                last = self.calls.pop()  # the op that fills it with zeros first
                value = self.value(x._array)
                assert last.kind == Call.WRITE and last.args[0] is value
                used = any(each is value for call in self.calls for each in call.inputs())
                value.fills |= value.constant and value.array.base is None and not used
                self.add(Call.WRITE, fill, (x._array, kernel, *args), "fill").random = True

    @on(Event.WROTE)
    def _wrote(self, function: Callable[..., None], array: Any, args: tuple[Any, ...], counts: bool) -> None:
        """Record a write that is no op; it increments the version if it `counts`."""
        if self.trial is not None:
            self.stop("a backward pass writes to a tensor")
        if self.stopped is None:
            with self._noting("a write"):
                self.add(Call.WRITE, function, (array, *args), function.__name__.strip("_")).counts = counts

    @on(Event.COPIED)
    def _copied(self, array: Any, copy: Any) -> None:
        """Record the copy of an array."""
        if self.stopped is None:
            with self._noting("a copy"):
                call = self.add(Call.NEW, np.copy, (array,), "copy")
                call.outputs.append(self.enter(copy, call))

    def overwrites(self, array: Any, copy: Any) -> None:
        """Record the copy of an array which the last step overwrites."""
        if self.stopped is None:
            write = self.calls.pop()
            self._copied(array, copy)
            self.calls.append(write)

    @contextlib.contextmanager
    def _noting(self, what: str) -> Iterator[None]:
        """Stop the recording when the block raises NotRecorded, or meets a tensor that is not dense."""
        try:
            yield
        except (NotRecorded, NoArray) as reason:
            self.stop_here(f"{what}: {reason}")

    @on(Event.READ)
    def _read(self, x: Any, truth: bool) -> None:
        """Stop when Python reads a tensor's values; record a check of a truth value that trusted code reads."""
        if truth and self.trusts and self.stopped is None:
            with self._noting("a truth value"):
                self.add(Call.TRUTH, holds, (x._array, bool(x._array.item())), "holds")
        elif self.reads:
            self.stop_here("a tensor's value is read by Python")

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Record a node of a backward pass, such as the accumulation into a leaf's `.grad`."""
        self.released.add(node)
        self.used = True
        if self.stopped is not None:
            return run()
        if node.hooks is not None:
            self.stop("a node has hooks")
            return run()
        if 0 < node.number < self._first:  # (its saved tensors are freed in the first call)
            self.stop("backward goes through a graph that existed before the call")
            return run()
        if not isinstance(node, AccumulateGrad):
            grads = run()
            self._name_gradients(node, grads)
            return grads
        g, leaf = arriving(run), node.variable
        self.meet(leaf)
        had = leaf._grad
        grads = run()
        with self._noting("backward"):
            if leaf._grad is had and had is not None:
                self.add(Call.WRITE, np.add, (had._array, g._array), "accumulate")
            elif leaf._grad is not None:
                self._new_gradient(leaf, g)
        return grads

    def _name_gradients(self, node: Any, grads: Any) -> None:
        """Name gradients after their tensors."""
        for edge, g in zip(node.edges, grads, strict=False):
            of = None if edge is None or g is None else self._outputs.get((id(edge[0]), edge[1]))
            value = None if of is None else self.find(g._array)
            if of is not None and of.name and value is not None and value.source is not None and not value.name:
                value.name = f"{of.name}_grad"

    def take_back(self, count: int, constants: int) -> None:
        """Remove the last calls and constants, and the memory of these constants (numbers outlive a call)."""
        memories = {value.memory for value in self.constants[constants:]}
        self._memories = {key: memory for key, memory in self._memories.items() if memory not in memories}
        gone = {id(v) for v in [*self.constants[constants:], *[v for call in self.calls[count:] for v in call.outputs]]}
        self._values = {key: value for key, value in self._values.items() if id(value) not in gone}
        self._places = {key: value for key, value in self._places.items() if id(value) not in gone}
        del self.calls[count:], self.constants[constants:]
        self._seen = min(self._seen, count)

    def _new_gradient(self, leaf: Tensor, g: Tensor) -> None:
        array = leaf._grad._array  # type: ignore[union-attr]
        if array is not g._array:
            call = self.add(Call.NEW, laid_out, (g._array, leaf._array), "gradient")
            call.outputs.append(self.enter(array, call))
        self.set_gradient(leaf)

    def meet(self, leaf: Tensor) -> None:
        """Register a leaf whose `.grad` the call reads or sets."""
        if id(leaf) not in self.leaves:
            self.leaves[id(leaf)] = leaf
            self.meets(leaf)

    def set_gradient(self, leaf: Tensor) -> None:
        """Record the assignment of a leaf's `.grad`."""
        grad = leaf._grad
        unread = id(leaf) not in self.leaves
        self.leaves[id(leaf)] = leaf
        value = None if grad is None else self.value(grad._array)
        of = self.find(leaf._array)
        if value is not None and value.source is not None and not value.name and of is not None:
            value.name = f"{of.name}_grad"
        call = Call(Call.GRADIENT, leaf, (value,), {}, "grad", self.line)
        call.repeats = unread and value is None
        self.calls.append(call)

    def has_effects(self) -> bool:
        """Return whether a step has changed what existed before the call."""
        if not self._effect:
            self._effect = any(call.is_effect(self._outside) for call in self.calls[self._seen :])
            self._seen = len(self.calls)
        return self._effect

    def state(self, function: Callable[[], Any], name: str, written: Iterable[Tensor] = ()) -> None:
        """Record a call that changes Python objects, and the tensors `written`."""
        self._changed.update(id(x) for x in written)
        self.used = True
        self.calls.append(Call(Call.STATE, function, (), {}, name, self.line))


def _refuse_complex(arrays: Iterable[Any]) -> None:
    if any(each.dtype.kind == "c" for each in arrays if isinstance(each, np.ndarray)):
        raise NotRecorded("computes with complex numbers")


@functools.cache
def _name(op: Op) -> str:
    name = op.name.strip("_")
    return name if name.isidentifier() else op.node_class.__name__.removesuffix("Backward0").lower()


WIDE = (np.dtype(np.float32), np.dtype(np.float64))


class _Death(weakref.ref[Any]):
    """A weak reference that remembers the array's id."""

    __slots__ = ("number",)
    number: int


def _where(array: Any) -> tuple[Any, ...]:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _sum(array: Any) -> int:
    """Return a checksum of an array; a contiguous array is not copied."""
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
