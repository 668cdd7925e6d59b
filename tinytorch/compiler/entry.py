"""The entry of a program: a function that checks the guards, runs the program and wraps its results.

The entry is generated as source too, since its running time is the overhead of every call.
"""

from __future__ import annotations

import functools
import math
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tinytorch.compiler import cache, inference
from tinytorch.compiler.backward import Backward, Layouts, Spent, Strides, is_freed, marks_of, put_back
from tinytorch.compiler.guards import PLAIN, Guards, Input
from tinytorch.compiler.program import Program, line_of, written
from tinytorch.compiler.recorder import Call, Memory, NotRecorded, Recorder, Value, fault, memories_written
from tinytorch.compiler.tracing import Late, Tracer
from tinytorch.core.mode import local
from tinytorch.core.tensor import Size, Tensor, wrap
from tinytorch.core.view import USUAL, make_view, needs_grad
from tinytorch.kernels import dtypes, norm
from tinytorch.kernels.places import storage
from tinytorch.kernels.programs import Bailout
from tinytorch.kernels.random import Source
from tinytorch.nn.parameter import Parameter
from tinytorch.ops import overrides

#: What `Entry.enter` returns where a guard does not hold, and where a truth value differs from the recorded one.
MISSED: Any = object()
BAILOUT: Any = object()
observer: Any = None  # is told of the programs that are made, and runs them (see `tinytorch.compiler.sweep`)
BUSY: Any = object()  # the program is running in another thread


class Given(NamedTuple):
    """The description of an input tensor.

    Attributes:
        where: the expression by which a call finds it.
        stays: whether it is the same tensor in all calls.
        shape, dtype, contiguous: the properties of its array.
    """

    where: str
    stays: bool
    shape: tuple[int, ...]
    dtype: Any
    contiguous: bool


class Entry:
    """A program with its guards.

    Args:
        function: the compiled function.
        tracer: has the record of a call of the function with `args` and `kwargs`, and the guards of that call.
        result: the result of the call.
        extra: as below.
        infers: whether the program may be rewritten for inference.

    Attributes:
        enter: takes a call's arguments as a tuple and a dictionary, and returns its result, or MISSED, BAILOUT or BUSY.
        guards: the source of the conditions; `called` are names of the objects in these, by id.
        programs: the program, then its backward programs; `inputs` describe the first one's arguments.
        broken: the reason why the program cannot run, or an empty string.
        retired: whether the program must not run again.
        extra: whether another program has the same guards, so that this one runs while that one is busy.
        returned: the expression of the result, of arrays `r0`, `r1`, … and inputs `t0`, ….
        sets: whether it sets attributes of objects.
        arity: the number of arguments by place, and the names of the others.
        has_effects: whether it changes what exists outside of the call, or draws random numbers.
        batched: the expressions of the inputs whose first dimension may have any size, in a program to be saved.
        source: the source of the programs.
        runs: the number of calls.
        frozen: whether the program has been rewritten for inference.

    Raises:
        NotRecorded: the call cannot be compiled.
    """

    def __init__(
        self, function: Callable[..., Any], tracer: Tracer, args: Any, kwargs: Any, result: Any,
        extra: bool = False, layouts: Layouts | None = None, infers: bool = False,
    ) -> None:  # fmt: skip
        recorder, guards = tracer.recorder, tracer.guards
        self._layouts = layouts or Layouts()
        inputs = list(guards.inputs.values())
        tensors = [item.tensor for item in inputs]
        recorder.check()
        self.called = guards.called
        self.has_effects = recorder.has_effects() or any(c.random or c.kind == Call.GRADIENT for c in recorder.calls)
        values = list(recorder.given)
        results = Results(recorder, guards, tensors, args)
        self.returned = returned = results.text(result)
        sets = results.assignments(tracer)
        if results.differentiable and tracer.assigned:
            raise NotRecorded(f"the attribute {tracer.assigned[0][1]} is set, and a result has a graph")
        backward, known = None, len(guards.texts)
        if results.differentiable:
            backward = Backward(function, recorder, result, results.differentiable, tensors, self._layouts,
                                list(results.passed.values()), observer and observer.steps_of)  # fmt: skip
            backward.learn = self._learn
            backward.counters = list({(id(x), name): (x, name) for x, name, *_ in tracer.counted}.values())
            if len(guards.inputs) > len(inputs):
                raise NotRecorded("the backward of a Function reads a tensor that is not saved")
        later = dict.fromkeys([*guards.texts][known:])  # of what a backward pass reads
        shown = results.values + (backward.saved if backward is not None else [])
        calls = recorder.calls if backward is None else backward.calls
        again = backward is not None and (backward.partial or (backward.random and self._layouts.restores))
        restores = recorder.tried or again
        stays = [item.stays for item in inputs]
        cells = [f"*t{k}._cell" for k, item in enumerate(inputs) if item.stays and item.tensor._cell is not None]
        self.frozen = (
            infers and backward is None and not recorder.released and len(cells) == sum(stays)
            and inference.applies(function, calls, values)
        )  # fmt: skip
        if self.frozen:
            calls, shown = inference.rewritten(calls, values, stays, shown)
        steps = None
        if observer is not None and calls:
            steps = observer.steps_of(calls, values, stays, shown, results.views, recorder)
        program = Program(calls, values, stays, shown, results.views, restores, self.frozen)
        self.guards = all_guards(guards, inputs, args, kwargs)
        changing = [line for k, item in enumerate(inputs) if not item.stays for line in _of_given(guards, inputs, k)]
        changing += _overlaps(recorder, inputs)
        given = [f"t{k}._array" for k, item in enumerate(inputs) if not item.stays]
        numbers = {id(x): k for k, x in enumerate(tensors)}
        given += [f"t{numbers[id(value.tensor)]}" for value in program.leaves]
        names = "".join([f"r{k}, " for k in range(len(shown))])
        counts = _counts(recorder, tensors)
        prepare = []
        if backward is not None:
            prepare.append(f"    before = [{', '.join([f't{k}._array.copy()' for k in backward.written])}]")
        if program.sources:
            prepare.append("    marks = marks_of(SOURCES)")
        if self.frozen and cells:  # what `bind` has computed of the weights is valid until one of them is written to
            prepare.append(f"    versions = [moved[0], {', '.join(cells)}]")
            prepare += ["    if versions != SEEN:", "        renew(versions)"]

        def writes(k: int) -> list[int]:
            return program.writes.get(values[k].memory, [])

        lines = [
            *opening(self.guards, changing),
            "    if not LOCK.acquire(False):",
            "        return BUSY",
            *prepare,
            "    try:",
            f"        {names + '= ' if names else ''}step({', '.join(given)})",
            *[f"        t{k}._cell[0] += {count}" for k, count in counts.items()],
            "    except Bailout:",
            *["        put_back(SOURCES, marks)"] * bool(program.sources),
            "        return BAILOUT",
            "    except BaseException as error:",
            # Before the first visible effect, the function runs without the program, and raises its own error.
            f"        if line_of(error) < {program.effect} and isinstance(error, Exception):",
            *["            put_back(SOURCES, marks)"] * (restores and bool(program.sources)),
            "            return MISSED",
            *[f"        t{k}._cell[0] += written_before(error, {writes(k)})" for k in counts],
            *["        retire()"] * program.lends,
            "        raise",
            "    finally:",
            "        LOCK.release()",
        ]
        if backward is not None:
            saved = "".join([f"r{k}, " for k in range(len(results.values), len(shown))])
            whole = "".join([f"t{k}, " for k in range(len(tensors))])
            backward.sources = program.sources if restores else []
            marks = "marks" if backward.sources else "()"
            lines.append(f"    node = graph(({saved}), ({whole}), before, {marks}, args, kwargs)")
        last = ["node.watch(made)"] * (backward is not None and bool(backward.watched)) + sets
        if last:
            lines += [f"    made = {returned}", *[f"    {line}" for line in last], "    return made"]
        else:
            lines.append(f"    return {returned}")
        self._bind = program.binding([item.tensor._array for item in inputs if item.stays])
        scope: dict[str, Any] = {
            **scope_of(guards, inputs, program.sources), "BUSY": BUSY, "BAILOUT": BAILOUT, "LOCK": threading.Lock(),
            "Bailout": Bailout, "SEEN": None, "moved": norm.moved, "needs_grad": needs_grad, "renew": self._renew,
            "retire": self._retire, "spent": _spent, "step": self._first_step, "viewed": _viewed, "wrap": wrap,
            "written": written, "written_before": _written_before,
        }  # fmt: skip
        if backward is not None:
            before = [guard for guard in self.guards if guard not in later]
            scope["graph"], backward.holds = backward.node, _holds(scope, before)
            if later:
                backward.stays = _holds(scope, [*later])
            backward.passed = eval(f"lambda args, kwargs: [{', '.join(results.passed)}]", scope)
        self.programs = [program] if backward is None else [program, *backward.programs]
        self.source = "\n\n".join([part.finish() for part in self.programs]) + "\n"
        exec(cache.compiled("\n".join(lines), "<guards of a compiled step>"), scope)
        self.enter: Callable[..., Any] = scope["enter"]
        self._scope = scope
        self.broken, self.extra, self.retired = "", extra, False
        self.runs = 0
        self.sets = bool(sets)
        self.arity = len(args), tuple(kwargs)
        self.batched: frozenset[str] = frozenset()
        self.inputs = [Given(item.where, item.stays, *_layout(item.tensor._array)) for item in inputs]
        if steps is not None:  # as a generator: it yields the arrays for the program, and gets its results
            call, arrays = f"step({', '.join(given)})", "".join([f"{text}, " for text in given])
            text = "\n".join(lines).replace("def enter(", "def parts(", 1).replace(call, f"(yield ({arrays}))")
            exec(cache.compiled(text, "<guards of a compiled step>"), scope)
            self.parts: Callable[..., Any] = scope["parts"]
            self.step = observer.made(self, program, steps, backward is not None)
            del self._bind
            if backward is not None:
                for (bits, walk), back in zip(backward.walks.items(), backward.programs, strict=True):
                    again = observer.made(self, back, backward.steps[bits], True, walk.step)
                    backward.walks[bits] = walk._replace(step=again)

    @functools.cached_property
    def step(self) -> Callable[..., Any]:
        """The program's function; Python compiles it before the first run."""
        step = self._bind()
        if not self.frozen:
            del self._bind
        return step

    def differs_in_size(self, args: Any, kwargs: Any) -> bool:
        """Return whether the guards hold for a call's arguments, but for the sizes of the tensors."""
        given = [item for item in self.inputs if not item.stays]
        finds = f"lambda args, kwargs: [{', '.join([item.where for item in given])}]"
        if not _holds(self._scope, self.guards)(args, kwargs):
            return False
        try:
            found = eval(finds, self._scope)(args, kwargs)
        except (AttributeError, LookupError, TypeError):
            return False
        return all(
            isinstance(x, Tensor) and x._array.ndim == len(item.shape) and x._array.dtype == item.dtype
            for x, item in zip(found, given, strict=True)
        )

    def _renew(self, versions: list[int]) -> None:
        """Let the next run call `bind` again; `versions` are those of the weights that it will read."""
        self.__dict__.pop("step", None)
        self._scope["SEEN"], self._scope["step"] = versions, self._first_step

    def _retire(self) -> None:
        """Mark the program as retired: the user may hold arrays that lie in its buffers."""
        self.retired, self.enter = True, lambda args, kwargs: MISSED

    def _learn(self, strides: Strides) -> None:
        """Mark the program as retired if it can be recorded anew, for gradients of other layouts."""
        if self._layouts.learn(strides):
            self._retire()

    def _first_step(self, *given: Any) -> Any:
        """Compile the program, and run it."""
        try:
            self._scope["step"] = self.step
        except Exception as error:  # the function runs without it
            self.broken = fault(error)
            raise Bailout from error
        return self.step(*given)


def _layout(array: Any) -> tuple[Any, ...]:
    return array.shape, array.dtype, array.flags.c_contiguous


class Results:
    """The result of a call, as an expression of the arrays `r0`, `r1` and so on.

    Attributes:
        values: the values of these arrays, in order.
        views: the indices of the values that are views of an input.
        differentiable: the results that have a graph.
        arguments: by id, the expressions of the arguments of the call.
        passed: by their expressions, objects in the result that the call has not created.
    """

    def __init__(self, recorder: Recorder, guards: Guards, inputs: list[Tensor], args: Sequence[Any]) -> None:
        self.values: list[Value] = []
        self.views: set[int] = set()
        self.differentiable: list[Tensor] = []
        self.arguments = {id(x): f"args[{k}]" for k, x in enumerate(args)}
        self.passed: dict[str, Any] = {}
        self._recorder, self._guards, self._inputs = recorder, guards, inputs
        self._numbers = {id(x): k for k, x in enumerate(inputs)}
        self._given = {recorder.value(x._array).memory: k for k, x in enumerate(inputs)}
        self._shared: set[Memory] = set()
        self._containers: dict[int, str] = {}  # by id, the name of a list or object
        self._named: dict[int, int] = {}  # by id of a tensor, the index of its array

    def text(self, x: Any) -> str:
        """Return the expression of a result."""
        if type(x) is Late:
            self.values.append(self.read_late(x))
            return f"r{len(self.values) - 1}.item()"
        if isinstance(x, Tensor):
            number = self._numbers.get(id(x))
            if number is not None:
                return f"t{number}"
            if id(x) in self._named:  # it is in several places of the result
                return f"x{self._named[id(x)]}"
            k = self._named[id(x)] = len(self.values)
            try:
                return f"(x{k} := {self._tensor(x)})"
            except NotRecorded as reason:
                found = self._recorder.find(x._array)
                if found is not None and found.source is not None:
                    reason.line = found.source.line
                raise
        if x is None or type(x) in (bool, int, str) or (type(x) is float and x - x == 0):
            return repr(x)
        if isinstance(x, (type, *PLAIN)):
            return self._guards.refer(x)
        if isinstance(x, tuple):
            text = f"({self._joined(x)})"
            if type(x) is tuple:
                return text
            if type(x) is Size:
                return f"Size({text})"
            if hasattr(x, "_make") and hasattr(x, "_fields"):
                return f"{self._guards.refer(type(x))}{text}"
            raise NotRecorded(f"a {type(x).__name__} is returned")
        return self._changeable(x)

    def assignments(self, tracer: Tracer) -> list[str]:
        """Return the statements that set attributes of objects, or count them up, after the result has been made."""
        refer = self._guards.refer
        return [
            *[f"{refer(x)}.{name} = {self.text(value)}" for x, name, value in tracer.assigned],
            *[f"{refer(x)}.{name} {sign}= {y!r}" for x, name, sign, y in tracer.counted],
        ]

    def read_late(self, x: Late) -> Value:
        """Return the value that a number is read from when the function returns."""
        value = self._recorder.value(x.tensor._array)
        later = self._recorder.calls[x.at :]
        if value.memory in memories_written(later) or any(call.kind == Call.STATE for call in later):
            raise NotRecorded("a number is returned that was read from a tensor which changes later")
        return value

    def _changeable(self, x: Any) -> str:
        """Return the expression of a list, dictionary or other object; the result may have it in several places."""
        kind = type(x)
        known = self._containers.get(id(x))
        if known is not None:
            return known
        if not self._guards.made(x):
            if id(x) not in self.arguments and (kind in (list, dict) or not self._guards.refers_to(x)):
                raise NotRecorded(f"a {kind.__name__} is returned that the call has not created")
            where = self.arguments.get(id(x)) or self._guards.refer(x)
            self.passed[where] = x
            return where
        name = self._containers[id(x)] = f"y{len(self._containers)}"
        if kind is list:
            text = f"[{self._joined(x)}]"
        elif kind is dict:
            text = self._items(x)
        elif kind.__new__ in (object.__new__, dict.__new__) and hasattr(x, "__dict__"):  # of another package
            items = self._items(dict(dict.items(x))) if isinstance(x, dict) else "()"
            text = f"rebuilt({self._guards.refer(kind)}, {items}, {self._items(x.__dict__)})"
        else:
            raise NotRecorded(f"a {kind.__name__} is returned")
        return f"({name} := {text})"

    def _items(self, x: dict[Any, Any]) -> str:
        """Return the expression of a dictionary."""
        if not all(type(key) in (str, int, bool) for key in x):
            raise NotRecorded("a dictionary is returned whose keys are neither strings nor integers")
        return f"{{{''.join([f'{key!r}: {self.text(element)}, ' for key, element in x.items()])}}}"

    def _joined(self, x: Collection[Any]) -> str:
        return "".join([f"{self.text(element)}, " for element in x])

    def _tensor(self, x: Tensor) -> str:
        if type(x) is not Tensor:
            raise NotRecorded(f"a {type(x).__name__} is returned")
        if x._cell is None:
            raise NotRecorded("an inference tensor is returned")
        value = self._recorder.value(x._array)
        k = len(self.values)
        self.values.append(value)
        of = self._given.get(value.memory)
        if value.memory in self._recorder.shared:
            raise NotRecorded("a result shares memory with two inputs")
        if of is not None:
            source = self._inputs[of]
            owner, kind = (source, USUAL) if source._view is None else (source._view.base, source._view.kind)
            graph = needs_grad(x)
            for j, same in enumerate(self._inputs):
                if same._cell is x._cell and not (x._view or x._requires_grad) and value.place == j:
                    self.views.add(k)
                    return f"t{j}.detach()"
            if x._view is None or x._view.base is not owner or (graph and not (x._edge and x._view.kind == kind)):
                raise NotRecorded("a result shares memory with an input")
            self.views.add(k)
            if not graph:
                return f"viewed(r{k}, t{of}, state)"
            if self._recorder.released or value.memory in memories_written(self._recorder.calls):
                raise NotRecorded("a result shares memory with an input, and has a graph")
            self.differentiable.append(x)
            return f"node.viewed(r{k}, t{of}, state, {len(self.differentiable) - 1})"
        if value.memory in self._shared:
            base = None if x._view is None or needs_grad(x) else self._named.get(id(x._view.base))
            if base is None:
                raise NotRecorded("two results share memory")
            return f"viewed(r{k}, x{base}, state)"
        self._shared.add(value.memory)
        view = x._view
        # (A view that is the only tensor on its memory may be written to like a tensor that is not a view.)
        alone = view is None or (
            view.kind == USUAL and x._version == 0 and x._edge is not None and view.base._edge is not None
        )
        if not alone:
            return self._view(x, k)
        version = x._cell[0]
        made = f"wrap(r{k})" if not version else f"written(r{k}, {version})"
        if not x._requires_grad:
            return made
        if x._edge is None:
            raise NotRecorded("a leaf is returned that requires grad")
        if x._edge[0] in self._recorder.released:
            if not is_freed(x._edge[0]):
                raise NotRecorded("a result keeps its graph")
            return f"spent({made}, {self._guards.refer((x._edge[0].name(), x._array.shape, x._array.dtype))})"
        if self._recorder.released:
            raise NotRecorded("a result has a graph, and backward was called")
        self.differentiable.append(x)
        return f"node.result(r{k}, {version}, {len(self.differentiable) - 1})"

    def _view(self, x: Tensor, k: int) -> str:
        """Return the expression of a view of memory that the call has allocated."""
        array = storage(x._array)
        if x._view is not None and self._recorder.find(array) is None:  # a kernel returned a part of its memory
            array = x._view.base._array
        base = self._recorder.find(array)
        if base is None or base.place is not None:
            raise NotRecorded("a view is returned of memory that the call has not allocated")
        if needs_grad(x):
            raise NotRecorded("a view is returned that has a graph")
        self.values.append(base)
        j = len(self.values) - 1
        if x._view is not None and x._view.base._array is array:
            self._named[id(x._view.base)] = j
        return f"viewed(r{k}, (x{j} := written(r{j}, {x._version})), state)"


def all_guards(guards: Guards, inputs: list[Input], args: Any, kwargs: Any, any_size: bool = False) -> list[str]:
    """Return all guards of a call, also of the default dtype, and of the number and the names of its arguments."""
    return [
        f"dtypes.get_default_dtype() is {guards.refer(dtypes.get_default_dtype())}",
        f"len(args) == {len(args)} and " + (f"tuple(kwargs) == {tuple(kwargs)!r}" if kwargs else "not kwargs"),
        *guards.texts,
        *[guard for item in inputs if item.stays for guard in _of_kept(guards, item, any_size)],
    ]


def opening(guards: list[str], changing: list[str]) -> list[str]:
    """Return the first lines of `enter`, which check the guards, and find the inputs that change."""
    state = local.state
    conditions = [
        f"state.grad is {state.grad} and state.modes is None and state.inference is {state.inference}",
        "not asking.modes",
        *_together(guards),
    ]
    return [
        "def enter(args, kwargs):",
        "    state = local.state",
        "    try:",
        "        if not (",
        *[f"            {'and ' if k else ''}{condition}" for k, condition in enumerate(conditions)],
        "        ):",
        "            return MISSED",
        *[f"    {line}" for line in changing],
        "    except (AttributeError, LookupError, TypeError, ValueError):",  # an object that a guard reads is gone
        "        return MISSED",
    ]


def scope_of(guards: Guards, inputs: list[Input], sources: list[Source]) -> dict[str, Any]:
    """Return what the source of an entry refers to."""
    return {
        **guards.objects, **{f"t{k}": item.tensor for k, item in enumerate(inputs) if item.stays},
        "MISSED": MISSED, "SOURCES": sources, "asking": overrides.state, "copysign": math.copysign, "dtypes": dtypes,
        "line_of": line_of, "local": local, "marks_of": marks_of, "np": np, "put_back": put_back, "rebuilt": rebuilt,
        "Size": Size,
    }  # fmt: skip


def _together(guards: list[str]) -> list[str]:
    """Return guards, with all guards that require an object (such as hooks) to be empty joined into one."""
    empty = [guard.removeprefix("not ") for guard in guards if re.fullmatch(r"not o\d+", guard)]
    others = [guard for guard in guards if not re.fullmatch(r"not o\d+", guard)]
    return [f"not ({' or '.join(empty)})", *others] if empty else others


def _of_kept(guards: Guards, x: Input, any_size: bool) -> list[str]:
    """Return the guards of a tensor that is the same in all calls."""
    name, array = guards.refer(x.tensor), x.tensor._array
    same = f"is {guards.refer(array)}" if not any_size else f".ndim == {array.ndim}"
    if any_size and isinstance(x.tensor, Parameter):
        same = f".shape == {array.shape}"
    return [
        f"{x.where} is {name} and {name}._array{'' if any_size else ' '}{same}",
        f"{name}._requires_grad is {x.tensor._requires_grad} and {name}._hooks is None",
    ]


def _of_given(guards: Guards, inputs: list[Input], k: int) -> list[str]:
    """Return the lines that find a tensor which changes from call to call, and check its signature."""
    tensor = inputs[k].tensor
    array = tensor._array
    conditions = [f"t{k}._array.shape == {array.shape} and t{k}._array.strides == {array.strides}"]
    if tensor._view is None:
        conditions.append(f"t{k}._view is None")
    elif needs_grad(tensor):
        written_to = memories_written(guards.recorder.calls)
        if tensor._edge is None or tensor._view.seen != tensor._version:
            raise NotRecorded("an input is a view that requires grad")
        if guards.recorder.value(array).memory in written_to:
            raise NotRecorded("an input is a view that requires grad, and is written to")
        conditions.append(f"t{k}._view is not None and t{k}._view.kind == {tensor._view.kind}")
        conditions.append(f"t{k}._view.seen == t{k}._cell[0]")
    else:
        conditions.append(f"t{k}._view is not None and not needs_grad(t{k})")
    return found(guards, inputs, k, conditions)


def found(guards: Guards, inputs: list[Input], k: int, conditions: list[str]) -> list[str]:
    """Return the lines that find a tensor which changes from call to call, and check its kind and the conditions."""
    tensor = inputs[k].tensor
    of_kind = [
        f"type(t{k}) is {guards.refer(type(tensor))} and t{k}._requires_grad is {tensor._requires_grad}",
        f"t{k}._hooks is None and t{k}._cell is not None and (t{k}._edge is None) is {tensor._edge is None}",
        f"t{k}._array.dtype is {guards.refer(tensor._array.dtype)}",
    ]
    others = [
        f"t{k} is not t{j}"
        for j, other in enumerate(inputs)
        if type(other.tensor) is type(tensor) and (j < k or other.stays)
    ]
    text = " and ".join([*of_kind, *conditions, *others])
    return [f"    t{k} = {inputs[k].where}", f"    if not ({text}):", "        return MISSED"]


def _overlaps(recorder: Recorder, inputs: list[Input]) -> list[str]:
    """Return the lines that check that an input which is written to shares no memory with other inputs.

    Two inputs that are the same in all calls, with the same arrays, are looked at once, here.
    """
    memories = memories_written(recorder.calls)
    written_to = [recorder.value(x.tensor._array).memory in memories for x in inputs]
    near: list[tuple[int, int]] = []  # the inputs that end behind the start of the next one, and where
    for low, high, k in sorted([(*byte_bounds(x.tensor._array), k) for k, x in enumerate(inputs)]):
        near = [(end, j) for end, j in near if end > low]
        if any(written_to[j] or written_to[k] for _, j in near) and low < high:
            raise NotRecorded("an input that is written to shares memory with another input")
        near.append((high, k))
    lines = []
    changing = [k for k, x in enumerate(inputs) if not x.stays]
    for k in [k for k, is_written in enumerate(written_to) if is_written]:
        for j in changing if inputs[k].stays else range(len(inputs)):
            if j != k and not (written_to[j] and j < k):
                lines += [f"    if np.may_share_memory(t{k}._array, t{j}._array):", "        return MISSED"]
    return lines


def _counts(recorder: Recorder, tensors: list[Tensor]) -> dict[int, int]:
    """Return the number of writes to inputs, by the index of the first tensor of each version counter."""
    counts: dict[int, int] = {}
    cells: set[int] = set()
    for k, x in enumerate(tensors):
        count = x._version - recorder.versions[k]
        if count and id(x._cell) not in cells:
            cells.add(id(x._cell))
            counts[k] = count
    return counts


def _written_before(error: Exception, lines: list[int]) -> int:
    return sum(line < line_of(error) for line in lines)


def _holds(scope: dict[str, Any], guards: list[str]) -> Callable[..., bool]:
    """Return a function that checks the guards for a call's arguments."""
    check = eval("lambda args, kwargs: " + " and ".join(guards), scope)

    def holds(args: Any, kwargs: Any) -> bool:
        try:
            return bool(check(args, kwargs))
        except (AttributeError, LookupError, TypeError, ValueError):
            return False

    return holds


def _viewed(array: Any, source: Tensor, state: Any) -> Tensor:
    made: Tensor = wrap(array)
    make_view(made, source, state)
    return made


def rebuilt(kind: type, items: Any, attributes: dict[str, Any]) -> Any:
    """Return an object of a class with the given items and attributes, without calling its constructor."""
    x = kind.__new__(kind)  # type: ignore[call-overload]
    if items:
        put = OrderedDict.__setitem__ if isinstance(x, OrderedDict) else dict.__setitem__
        for key, value in items.items():
            put(x, key, value)
    x.__dict__.update(attributes)
    return x


def _spent(made: Tensor, what: tuple[Any, ...]) -> Tensor:
    made._edge, made._requires_grad = (Spent(*what), 0), True
    return made


__all__ = ["BUSY", "BAILOUT", "MISSED", "Entry", "Results", "all_guards", "found", "opening", "scope_of"]
