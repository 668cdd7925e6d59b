"""`Compiled`: a function, the programs that were made of it, and which of them a call may run."""

from __future__ import annotations

import functools
import math
import sys
import threading
import types
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.compiler.program import FILE, Program, written
from tinytorch.compiler.reading import Late, Reader, disabled
from tinytorch.compiler.recorder import STATE, WRITE, Call, NotRecorded, Recorder, Value, root
from tinytorch.core.engine import gradients, walk
from tinytorch.core.graph import FREED, Node, Start, leaf_edge, numbers
from tinytorch.core.mode import local
from tinytorch.core.mode import recording as grad_recording
from tinytorch.core.op import modified
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import make_view, needs_grad
from tinytorch.kernels import dtypes
from tinytorch.nn.modules.module import Module
from tinytorch.ops import overrides

LIMIT = 8  # signatures, after which a function runs as it is: PyTorch's number
_MISSED: Any = object()


class Spent(Node):
    """Stands for the graph of a result, which the step has walked through already."""

    __slots__ = ("_name",)

    def __init__(self, name: str, shape: Any, kind: Any) -> None:
        self.edges = self.saved = ()
        self.hooks, self.number = None, next(numbers)
        self.shape, self.dtype, self._name = shape, kind, name

    def name(self) -> str:
        """Return the name of the node that it stands for."""
        return self._name

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Raise PyTorch's error: what the graph saved is freed."""
        raise RuntimeError(FREED)


class CompileError(RuntimeError):
    """Why a function cannot be compiled, where it must be."""


class Stance:
    """How compiled functions run (`set_stance`)."""

    name = "default"


class _Recording(threading.local):
    count = 0


stance = Stance()
recording = _Recording()
_all: weakref.WeakSet[Compiled] = weakref.WeakSet()


def reset() -> None:
    """Forget all programs."""
    for each in list(_all):
        each.variants.clear()
        each.reasons.clear()
        each.failed = False


class Variant:
    """A program, and the guards of the calls that it is for."""

    def __init__(self, enter: Callable[..., Any], sources: list[str], guards: list[str], summary: str) -> None:
        self.enter, self.sources, self.guards, self.summary = enter, sources, guards, summary


class Compiled:
    """A function that runs as the program that it was seen to be, where that is known to be right.

    Attributes:
        function: what it does.
        variants: the programs, one for each signature.
        reasons: why calls could not be compiled.
        failed: it runs as it is from now on.
    """

    def __init__(self, function: Callable[..., Any], fullgraph: bool = False, limit: int | None = None) -> None:
        self.function, self.fullgraph, self.limit = function, fullgraph, limit or LIMIT
        self.variants: list[Variant] = []
        self.reasons: list[str] = []
        self.failed = False
        self._lock = threading.Lock()
        if not isinstance(function, Module):
            functools.update_wrapper(self, function)
        self._torchdynamo_orig_callable = function
        _all.add(self)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> Any:
        return Compiled, (self.function, self.fullgraph, self.limit)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        if stance.name != "force_eager":
            for variant in self.variants:
                result = variant.enter(args, kwargs)
                if result is not _MISSED:
                    return result
            if not (self.failed or local.state.modes is not None or overrides.active or local.state.inference):
                if stance.name == "default" and not recording.count and self._lock.acquire(False):
                    try:
                        return self._record(args, kwargs)
                    finally:
                        self._lock.release()
                if stance.name == "fail_on_recompile":
                    raise CompileError("a compiled function would be compiled again (`set_stance`)")
        return self.function(*args, **kwargs)

    @property
    def source(self) -> str:
        """The text of the program that was made last, and of its gradient's."""
        return "\n\n".join(self.variants[-1].sources) + "\n" if self.variants else ""

    def explain(self) -> str:
        """Return what was compiled, by which guards it is chosen, and why other calls were not compiled."""
        lines = [
            f"{getattr(self.function, '__qualname__', type(self.function).__name__)}: {len(self.variants)} programs"
        ]
        for k, variant in enumerate(self.variants):
            lines += [f"program {k}: {variant.summary}", *[f"    if {guard}" for guard in variant.guards]]
        lines += [f"not compiled: {reason}" for reason in self.reasons]
        return "\n".join(lines)

    def _record(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(self.variants) >= self.limit:
            self.failed = True
            warnings.warn(
                f"torch.compile: {self.function!r} was called in more than {self.limit} ways and runs as it is from "
                "now on",
                stacklevel=3,
            )
            return self.function(*args, **kwargs)
        recorder = Recorder()
        reader = Reader(recorder)
        reader.refer(_MISSED)  # o0
        recording.count += 1
        try:
            with recorder:
                result = reader.start(self.function, args, kwargs)
            if recorder.stopped is None:
                try:
                    self.variants.append(self._variant(recorder, reader, args, kwargs, result))
                except NotRecorded as reason:
                    recorder.stop(str(reason))
                except Exception as error:  # the call has its result: what fails here is ours
                    recorder.stop(f"{type(error).__name__}: {error}")
        finally:
            recording.count -= 1
            recorder.close()
        if recorder.stopped is not None:
            self.reasons.append(recorder.stopped)
            self.failed = len(self.reasons) > 1  # (a first call may do what later ones do not)
            if self.fullgraph:
                raise CompileError(f"torch.compile(fullgraph=True): {recorder.stopped}")
        return _without_late(result)

    def _variant(self, recorder: Recorder, reader: Reader, args: Any, kwargs: Any, result: Any) -> Variant:
        inputs = list(reader.inputs.values())
        recorder.check([tensor for tensor, *_ in inputs])
        values: list[Any] = [recorder.find(tensor._array) for tensor, *_ in inputs]
        inputs_of = {id(tensor): k for k, (tensor, *_) in enumerate(inputs)}
        stay = [stays for _, _, stays, _ in inputs]
        scope: dict[str, Any] = {
            **reader.objects, "MISSED": _MISSED, "copysign": math.copysign, "local": local, "np": np,
            "overrides": overrides, "wrap": wrap, "spent": _spent, "dtypes": dtypes, "viewed": _viewed,
            "written": written, "needs_grad": needs_grad, "written_before": _written_before,
        }  # fmt: skip
        results = Results(recorder, reader, inputs, scope)
        text = results.text(result)
        backward = self._backward(recorder, results, inputs, scope) if results.differentiable else None
        shown = results.values + (backward.saved if backward is not None else [])
        calls = recorder.calls if backward is None else backward.before
        program = Program(calls, values, stay, shown, results.views)
        bind = program.compiled()
        state = local.state
        conditions = [
            f"state.grad is {state.grad} and state.modes is None and state.inference is {state.inference}",
            f"not overrides.active and len(args) == {len(args)} and len(kwargs) == {len(kwargs)}",
            f"tuple(kwargs) == {tuple(kwargs)!r}",
            f"dtypes.get_default_dtype() is {_refer(scope, dtypes.get_default_dtype())}",
            *reader.guards,
        ]
        given, bound, changing = [], [], []
        for k, (tensor, where, stays, _) in enumerate(inputs):
            array = tensor._array
            leaf = tensor._edge is None
            if stays:
                name = _refer(scope, tensor)
                conditions.append(f"{where} is {name} and {name}._array is {_refer(scope, array)}")
                conditions.append(f"{name}._requires_grad is {tensor._requires_grad} and {name}._hooks is None")
                bound.append(array)
                scope[f"t{k}"] = tensor
            else:
                given.append(f"t{k}._array")
                changing.append(f"    t{k} = {where}")
                changing.append(
                    f"    if not (type(t{k}) is {_refer(scope, type(tensor))} and "
                    f"t{k}._requires_grad is {tensor._requires_grad} and {_as_view(tensor, k)} and "
                    f"t{k}._hooks is None and t{k}._cell is not None and (t{k}._edge is None) is {leaf} and "
                    f"t{k}._array.shape == {array.shape} and "
                    f"t{k}._array.strides == {array.strides} and t{k}._array.dtype is {_refer(scope, array.dtype)}):"
                )
                others = [
                    f"t{k} is not t{j}"
                    for j, (other, _, _, _) in enumerate(inputs)
                    if type(other) is type(tensor) and (j < k or inputs[j][2])
                ]
                if others:
                    changing.append(f"    ) or not ({' and '.join(others)}):")
                    changing[-2] = changing[-2].removesuffix("):")
                changing.append("        return MISSED")
        given += [f"t{inputs_of[id(value.tensor)]}" for value in program.leaves]
        bound += [value.array for value in program.constants if program.is_fixed(value)]
        scope["is_late"] = functools.partial(_is_late, program.effect)
        scope["step"], scope["LOCK"] = bind(*bound), threading.Lock()
        roots = {id(root(call.args[0].array)) for call in recorder.calls if call.kind == WRITE}
        counts: dict[int, int] = {}  # of writes, by the first input that has a count of them
        cells: set[int] = set()
        for k, (tensor, *_) in enumerate(inputs):
            count = tensor._version - recorder.versions[k]
            if count and id(tensor._cell) not in cells:
                cells.add(id(tensor._cell))
                counts[k] = count
        for k in [k for k, (tensor, *_) in enumerate(inputs) if id(root(tensor._array)) in roots]:
            for other, (tensor, *_) in enumerate(inputs):
                if other != k:
                    if np.may_share_memory(tensor._array, inputs[k][0]._array):
                        raise NotRecorded("what is written shares memory with something else that is given")
                    changing += [f"    if np.may_share_memory(t{k}._array, t{other}._array):", "        return MISSED"]
        names = "".join([f"r{k}, " for k in range(len(shown))])
        lines = [
            "def enter(args, kwargs):",
            "    state = local.state",
            "    try:",
            "        if not (",
            *[f"            {'and ' if k else ''}{each}" for k, each in enumerate(conditions)],
            "        ):",
            "            return MISSED",
            *[f"    {line}" for line in changing],
            "    except (AttributeError, LookupError, TypeError, ValueError):",  # something is not there any more
            "        return MISSED",
            "    if not LOCK.acquire(False):",
            "        return MISSED",
            "    try:",
            f"        {names + '= ' if names else ''}step({', '.join(given)})",
            *[f"        t{k}._cell[0] += {count}" for k, count in counts.items()],
            "    except Exception as error:",
            "        if is_late(error):",
            *[f"            t{k}._cell[0] += written_before(error, {self._lines(program, k, inputs)})" for k in counts],
            "            raise",
            "        return MISSED",  # it runs as it is, and raises its own error
            "    finally:",
            "        LOCK.release()",
        ]
        if backward is not None:
            scope["graph"], backward.holds = backward.node, _holds(scope, conditions)
            saved = ", ".join([f"r{k}" for k in range(len(results.values), len(shown))])
            tensors = ", ".join([f"t{k}" for k in range(len(inputs))])
            lines.append(f"    node = graph(({saved}{',' if saved else ''}), ({tensors},), args, kwargs)")
        lines.append(f"    return {text}")
        exec(compile("\n".join(lines), "<guards of a compiled step>", "exec"), scope)
        if backward is not None:
            backward.before, backward.saved = [], []
        sources = [each.finish() for each in (program, *([backward.program] if backward is not None else []))]
        summary = f"{len(calls)} calls, {program.bytes} bytes of buffers"
        return Variant(scope["enter"], sources, conditions, summary)

    @staticmethod
    def _lines(program: Program, k: int, inputs: list[Any]) -> list[int]:
        """Return the lines of a program that write to an input."""
        return program.writes.get(id(root(inputs[k][0]._array)), [])

    def _backward(self, recorder: Recorder, results: Results, inputs: list[Any], scope: dict[str, Any]) -> Backward:
        """Record the walk backward from the results to the inputs, and make its program."""
        before = list(recorder.calls)
        outside = {id(root(tensor._array)) for tensor, *_ in inputs}
        if any(call.kind == WRITE and id(root(call.args[0].array)) in outside for call in before):
            raise NotRecorded("what is given is written to, and the result has a graph")
        wanted = [k for k, (tensor, *_) in enumerate(inputs) if tensor._requires_grad]
        vectors = []
        given: list[Value] = []
        for k, x in enumerate(results.differentiable):
            array = np.empty_like(x._array, order="C")
            array.fill(0.5)
            given.append(recorder.enter(array, place=len(inputs) + k, name=f"grad_{k}" if k else "grad"))
            vectors.append(wrap(array))
        for k in wanted:
            hooks = inputs[k][0]._hooks
            if hooks is not None:
                raise NotRecorded("a tensor has hooks")
        # (A pseudo-leaf is walked to, not through: hooks and `.grad` see nothing of this.)
        edges: list[Any] = [inputs[k][0]._edge or leaf_edge(inputs[k][0]) for k in wanted]
        roots: list[Any] = [x._edge for x in results.differentiable]
        if _meets_twice(roots[0][0], {edge[0] for edge in edges}):
            raise NotRecorded("a tensor that is given is used twice, and the result has a graph")
        start = Start(tuple(roots), vectors)
        with recorder:
            found = walk(start, True, False, edges, capture=True)
        if recorder.stopped is not None:
            raise NotRecorded(recorder.stopped)
        after = recorder.calls[len(before) :]
        gradients = [found.get(edge) for edge in edges]
        made = [recorder.value(g._array) for g in gradients if g is not None]
        written = {id(root(call.args[0].array)) for call in before if call.kind == WRITE}
        # What the walk needs of what went before is saved.
        own = {id(value) for value in given}
        for call in after:
            own.update(id(value) for value in call.outputs if value is not None)
        saved: dict[int, Value] = {}
        for value in [*made, *[value for call in after for value in call.inputs()]]:
            changing = value.constant and id(root(value.array)) in written  # what was drawn at random, say
            if id(value) not in own and (changing or not value.constant):
                saved[id(value)] = value
        kept = [value for value in saved.values() if value.place is None]
        given_before = [value for value in saved.values() if value.place is not None]
        numbers_: list[Any] = [value.place for value in given_before]
        passed = {k for k, value in enumerate(made) if any(value is each for each in given)}  # as it came
        program = Program(after, [*kept, *given_before, *given], [False] * (len(saved) + len(given)), made, passed)
        bind = program.compiled()
        step = bind(*[value.array for value in program.constants if program.is_fixed(value)])
        shapes = [(x._array.shape, x._array.dtype) for x in results.differentiable]
        used = [g is not None for g in gradients]
        random = any(call.random for call in before)
        return Backward(self.function, program, step, before, kept, wanted, numbers_, used, shapes, random)


class Results:
    """What a call returns, as text that makes it of the arrays `r0`, `r1` ….

    Attributes:
        values: the arrays, in that order.
        views: of those that show the memory of an input, by their place, which input.
        differentiable: the results that have a graph.
    """

    def __init__(self, recorder: Recorder, reader: Reader, inputs: list[Any], scope: dict[str, Any]) -> None:
        self.recorder, self.reader, self.scope = recorder, reader, scope
        self.numbers = {id(tensor): k for k, (tensor, *_) in enumerate(inputs)}
        self.memory = {id(root(tensor._array)): k for k, (tensor, *_) in enumerate(inputs)}
        self.inputs = [tensor for tensor, *_ in inputs]
        self.values: list[Value] = []
        self.views: set[int] = set()
        self.differentiable: list[Tensor] = []
        self._shared: set[int] = set()
        self._containers: set[int] = set()

    def text(self, x: Any) -> str:
        """Return the text for a result."""
        if type(x) is Late:
            memory = root(x.tensor._array)
            for call in self.recorder.calls[x.at :]:
                if call.kind == STATE or (call.kind == WRITE and root(call.args[0].array) is memory):
                    raise NotRecorded("a number that was read from a tensor is returned, and the tensor changes later")
            self.values.append(self.recorder.value(x.tensor._array))
            return f"r{len(self.values) - 1}.item()"
        if isinstance(x, Tensor):
            return self._tensor(x)
        if type(x) in (list, dict):
            if id(x) in self._containers or not self.reader.made(x):
                raise NotRecorded("a list or dictionary is returned that was there before, or twice")
            self._containers.add(id(x))
        if type(x) is list:
            return f"[{', '.join([self.text(each) for each in x])}]"
        if isinstance(x, tuple):
            parts = "".join([f"{self.text(each)}, " for each in x])
            if type(x) is tuple:
                return f"({parts})"
            if hasattr(x, "_make") and hasattr(x, "_fields"):
                return f"{_refer(self.scope, type(x))}({parts})"
        if type(x) is dict and all(type(key) is str for key in x):
            return "{" + ", ".join([f"{key!r}: {self.text(each)}" for key, each in x.items()]) + "}"
        if x is None or type(x) in (bool, int, str) or (type(x) is float and x - x == 0):
            return repr(x)
        raise NotRecorded(f"a {type(x).__name__} is returned")

    def _tensor(self, x: Tensor) -> str:
        number = self.numbers.get(id(x))
        if number is not None:
            return f"t{number}"
        if type(x) is not Tensor:
            raise NotRecorded(f"a {type(x).__name__} is returned")
        if x._cell is None:
            raise NotRecorded("an inference tensor is returned")
        value = self.recorder.value(x._array)
        k = len(self.values)
        self.values.append(value)
        memory = id(root(x._array))
        of = self.memory.get(memory)
        if of is not None:
            if x._view is None or needs_grad(x) or id(x._view.base) != id(self.inputs[of]):
                raise NotRecorded("a result shares memory with what is given")
            self.views.add(k)
            return f"viewed(r{k}, t{of}, state)"
        if memory in self._shared:
            raise NotRecorded("two results share memory")
        self._shared.add(memory)
        if x._view is not None:
            return self._view(x, k)
        version = x._cell[0]
        made = f"wrap(r{k})" if not version else f"written(r{k}, {version})"
        if not x._requires_grad:
            return made
        if x._edge is None:
            raise NotRecorded("a leaf is returned that requires grad")
        if x._edge[0] in self.recorder.released:
            if not _is_freed(x._edge[0]):
                raise NotRecorded("a result keeps its graph")
            return f"spent({made}, {_refer(self.scope, (x._edge[0].name(), x._array.shape, x._array.dtype))})"
        if self.recorder.released:
            raise NotRecorded("a result has a graph, and backward was called")
        if self.differentiable:
            raise NotRecorded("several results have a graph")
        self.differentiable.append(x)
        return f"node.output({len(self.differentiable) - 1}, r{k}, {x._cell[0]})"

    def _view(self, x: Tensor, k: int) -> str:
        """Return the text for a view of memory that the call has made."""
        base = self.recorder.find(root(x._array))
        if needs_grad(x) or base is None or base.source is None:
            raise NotRecorded("a view is returned that has a graph")
        self.values.append(base)
        return f"viewed(r{k}, written(r{len(self.values) - 1}, {x._version}), state)"


class Backward:
    """The program of the walk backward from the results of another.

    Attributes:
        saved: the values that the first program hands over.
        inputs, outside: the numbers of the inputs that get gradients, and of those that are read.
    """

    def __init__(
        self, function: Any, program: Program, step: Any, before: list[Call], saved: list[Value], inputs: list[int],
        outside: list[int], used: list[bool], shapes: list[Any], random: bool,
    ) -> None:  # fmt: skip
        self.function, self.program, self.step, self.before = function, program, step, before
        self.saved, self.outside, self.used, self.shapes, self.random = saved, outside, used, shapes, random
        self._of_outside, self._of_wanted = outside, inputs
        self._running = threading.Lock()
        self.holds: Callable[..., bool] = lambda args, kwargs: False

    def node(self, saved: tuple[Any, ...], tensors: tuple[Tensor, ...], args: Any, kwargs: Any) -> CompiledFunction:
        """Return the node of a call."""
        node = CompiledFunction()
        node.edges = tuple([tensors[k]._edge or leaf_edge(tensors[k]) for k in self._of_wanted])
        node.hooks = None
        node.number = next(numbers)
        node.outputs = len(self.shapes)
        if len(self.shapes) == 1:
            node.shape, node.dtype = self.shapes[0]
        else:
            node.shape, node.dtype = zip(*self.shapes, strict=True)
        node.saved = saved, [(tensors[k], tensors[k]._cell[0]) for k in self._of_outside]  # type: ignore[index]
        node.made = self
        node.call = tensors, [x._version for x in tensors], args, kwargs
        return node


class CompiledFunction(Node):
    """A call of a compiled function, as one step of the graph."""

    __slots__ = ("call", "made", "outputs")
    call: Any
    __init__ = object.__init__

    made: Backward

    def name(self) -> str:
        """Return PyTorch's name."""
        return "CompiledFunctionBackward"

    def output(self, number: int, array: Any, version: int) -> Tensor:
        """Return a result, which was written to so often."""
        made: Tensor = written(array, version)
        made._edge, made._requires_grad = (self, number), True
        return made

    def release(self) -> None:
        """Free what was saved."""
        self.saved = self.call = None

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Return the gradients of the inputs."""
        if self.saved is None:
            raise RuntimeError(FREED)
        made = self.made
        saved, tensors = self.saved
        for tensor, version in tensors:
            if tensor._cell[0] != version:
                raise modified(self, tensor._array, "an input of a compiled function", tensor._cell[0], version)
        vectors = [g] if self.outputs == 1 else g
        if create_graph or local.state.modes is not None:
            return self._eager(vectors, create_graph)
        arrays = []
        for each, (shape, kind) in zip(vectors, made.shapes, strict=True):
            arrays.append(np.zeros(shape, kind) if each is None else each._array)
        with made._running:
            found = made.step(*saved, *[tensor._array for tensor, _ in tensors], *arrays)
        rest = iter(found)
        return [wrap(next(rest)) if used else None for used in made.used]

    def _eager(self, vectors: Any, create_graph: bool) -> Any:
        """Return the gradients of the function as it is, called once more: they are differentiable."""
        if self.made.random:
            raise RuntimeError(
                "a compiled function that draws random numbers has no derivatives of higher order: call it uncompiled"
            )
        tensors, versions, args, kwargs = self.call
        if not self.made.holds(args, kwargs) or versions != [x._version for x in tensors]:
            raise RuntimeError(
                "what a compiled function reads has changed since it was called: its derivatives of higher order are "
                "not known any more"
            )
        with grad_recording(True):
            result = self.made.function(*args, **kwargs)
        outputs = [x for x in _flat(result) if x._requires_grad]
        pairs = [(x, v) for x, v in zip(outputs, vectors, strict=True) if v is not None]
        inputs = [tensors[k] for k in self.made._of_wanted]
        return list(gradients([x for x, _ in pairs], [v for _, v in pairs], inputs, create_graph))


def _flat(x: Any) -> list[Tensor]:
    if isinstance(x, Tensor):
        return [x]
    if isinstance(x, dict):
        x = list(x.values())
    return [each for some in x for each in _flat(some)] if isinstance(x, (tuple, list)) else []


def _is_freed(node: Any) -> bool:
    """Return whether a walk backward from a node would come to one whose saved tensors are freed."""
    stack, seen = [node], {node}
    while stack:
        each = stack.pop()
        if each.saved is None:
            return True
        for edge in each.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return False


def _is_late(effect: int, error: Exception) -> bool:
    """Return whether an error was raised after something had been done that can be seen: the step begins at line 1."""
    return _line_of(error) >= effect


def _line_of(error: Exception) -> int:
    """Return the line of a program where an error was raised."""
    step = error.__traceback__
    while step is not None and step.tb_frame.f_code.co_filename != FILE:
        step = step.tb_next
    return sys.maxsize if step is None else step.tb_lineno


def _written_before(error: Exception, lines: list[int]) -> int:
    return sum(line < _line_of(error) for line in lines)


def _holds(scope: dict[str, Any], conditions: list[str]) -> Callable[..., bool]:
    """Return a function that tells of a call's arguments whether the guards hold; not those of the modes."""
    text = "lambda args, kwargs: " + (" and ".join(conditions[2:]) or "True")
    check = eval(text, scope)

    def holds(args: Any, kwargs: Any) -> bool:
        try:
            return bool(check(args, kwargs))
        except (AttributeError, LookupError, TypeError, ValueError):
            return False

    return holds


def _meets_twice(node: Any, ends: set[Any]) -> bool:
    """Return whether several edges lead to one of some nodes: sums of gradients would be taken in another order."""
    stack, seen, met = [node], {node}, set()
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            if edge[0] in ends:
                if edge in met:
                    return True
                met.add(edge)
            elif edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return False


def _viewed(array: Any, source: Tensor, state: Any) -> Tensor:
    made: Tensor = wrap(array)
    make_view(made, source, state)
    return made


def _spent(made: Tensor, what: tuple[Any, ...]) -> Tensor:
    made._edge, made._requires_grad = (Spent(*what), 0), True
    return made


def _as_view(tensor: Tensor, k: int) -> str:
    if tensor._view is None:
        return f"t{k}._view is None"
    if needs_grad(tensor):
        raise NotRecorded("a view that is given requires grad")
    return f"t{k}._view is not None and not needs_grad(t{k})"


def _refer(scope: dict[str, Any], x: Any) -> str:
    for name, known in scope.items():
        if known is x and name[:1] == "o":
            return name
    name = f"o{len(scope)}_"
    scope[name] = x
    return name


def _without_late(x: Any) -> Any:
    """Return a result with the numbers in it that were read last."""
    if type(x) is Late:
        return x.number
    return tuple([_without_late(each) for each in x]) if type(x) is tuple else x


__all__ = ["CompileError", "Compiled", "disabled", "recording", "reset", "stance"]
