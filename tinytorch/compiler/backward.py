"""The autograd graph of a compiled function's results: one node, with programs for the backward pass."""

from __future__ import annotations

import contextlib
import functools
import operator
import threading
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.function import FunctionNode
from tinytorch.compiler.program import Program, written
from tinytorch.compiler.recorder import Call, Memory, NotRecorded, Recorder, Value, memories_written, results_in
from tinytorch.core.engine import shape_and_kind, walk
from tinytorch.core.graph import FREED, Edge, Node, Start, enter, leaf_edge, numbers
from tinytorch.core.mode import local
from tinytorch.core.mode import recording as grad_recording
from tinytorch.core.node import INPUT, KEPT, OUTPUT, RESIDUAL, OpNode, modified
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.core.view import make_view
from tinytorch.kernels.random import Source

#: The largest number of results with a graph of which each combination has a backward program. Of more results, those
#: from which most backward passes start have one: the first (a loss), the second, both, and all.
MOST = 3


#: Strides, by the number and shape of a result.
Strides = dict[tuple[int, tuple[int, ...]], tuple[int, ...]]


class Layouts:
    """The layouts in which gradients of the results of a function arrive, where these are not in C order.

    Args:
        restores: functions that draw random numbers can be called once more, with the same numbers.

    Attributes:
        strides: by the number and shape of the result.
        open: the function may be recorded anew, for layouts that were not expected.
    """

    def __init__(self, restores: bool = False) -> None:
        self.strides: Strides = {}
        self.restores, self.open = restores, True

    def learn(self, unlike: Strides) -> bool:
        """Note layouts that were not expected, and return whether the function is to be recorded anew for them."""
        new = {key: strides for key, strides in unlike.items() if key not in self.strides}
        if new and self.open:
            self.strides |= new
        return bool(new) and self.open


class Walk(NamedTuple):
    """The program of a backward pass from some of the results.

    Attributes:
        step: takes arrays (saved arrays, inputs, the gradients of the results), returns the gradients of the edges.
        saved, read: the indices of the saved arrays, and of the inputs, that `step` takes.
        arrives: for each edge of the node, whether there is a gradient.
        unreached: the indices of edges that these results do not lead to.
        unchanged, watched: the indices of inputs and of results that must not be written to before the backward pass.
        frees: a bit mask of the results from which no backward pass is possible once this one has freed its arrays.
    """

    step: Callable[..., tuple[Any, ...]]
    saved: list[int]
    read: list[int]
    arrives: list[bool]
    unreached: list[int]
    unchanged: list[int]
    watched: list[int]
    frees: int


class Backward:
    """The programs of backward passes from the results of a compiled function to its inputs.

    Args:
        function: the compiled function.
        recorder: the record of a call of it.
        result: the result of the call; `outputs` are the tensors in it that have a graph.
        inputs: the tensors that the function takes as arguments, or reads elsewhere.
        layouts: the layouts of gradients.
        passed: objects in the result that the call has not created: tensors in them are no results.
        observed: returns what a sweep notes of a program, if one observes.

    Attributes:
        calls: the steps of the forward program.
        saved: the values that the forward program saves for the backward ones.
        programs: the backward programs; `walks` describes them, by bit mask of the results from which they start, and
            `steps` has what `observed` has returned.
        written: the indices of inputs that the function writes to: running statistics, for instance.
        partial: whether only some combinations of results have programs.
        random: whether the function draws random numbers.
        watched: the indices of results that must not be written to before a backward pass.
        holds: returns whether the guards hold for a call's arguments; `stays`, those of what a backward pass reads.
        sources: the sources of random numbers whose states are marked before each call.
        learn: is called with layouts that a gradient has had instead of these.
        passed: returns, for a call's arguments, the objects in its result that it does not create.
        counters: attributes that the function counts up: objects and names.

    Raises:
        NotRecorded: the backward pass cannot be recorded.
    """

    holds: Callable[..., bool]
    stays: Callable[..., bool] | None = None
    sources: list[Source]
    learn: Callable[[Strides], Any]
    passed: Callable[[Any, Any], list[Any]]

    def __init__(
        self, function: Callable[..., Any], recorder: Recorder, result: Any, outputs: Sequence[Tensor],
        inputs: Sequence[Tensor], layouts: Layouts, passed: Sequence[Any] = (), observed: Any = None,
    ) -> None:  # fmt: skip
        self._function, self.calls = function, list(recorder.calls)
        self.random, self.partial = any(call.random for call in self.calls), len(outputs) > MOST
        if self.partial and layouts.restores:
            raise NotRecorded(f"more than {MOST} results of a part have a graph")
        self._running = threading.Lock()
        self.counters: list[tuple[Any, str]] = []
        memories = [recorder.value(x._array).memory for x in inputs]
        changing = memories_written(self.calls) & {*memories}
        self.written = [k for k, memory in enumerate(memories) if memory in changing]
        wanted = [k for k, x in enumerate(inputs) if x._requires_grad]
        if any(inputs[k]._hooks is not None for k in wanted):
            raise NotRecorded("a tensor has hooks")
        if not changing.isdisjoint([memories[k] for k in wanted]):
            raise NotRecorded("an input is written to, and requires a gradient")
        shown = [recorder.value(x._array).memory for x in results_in(result, set(map(id, passed)))]
        gradients = [wrap(_filled(x._array, layouts.strides.get((k, x._array.shape)))) for k, x in enumerate(outputs)]
        given = [
            recorder.enter(g._array, place=len(inputs) + k, name="grad" if len(outputs) == 1 else f"grad_{k + 1}")
            for k, g in enumerate(gradients)
        ]
        self._strides = [value.strides for value in given]
        self._shapes, self._dtypes = [value.shape for value in given], [value.dtype for value in given]
        roots: list[Any] = [x._edge for x in outputs]
        ends = {inputs[k]._edge or leaf_edge(inputs[k]): k for k in wanted}
        nodes = [_walked([root[0]], ends) for root in roots]
        freed = [{node for node in reachable if _holds_tensors(node)} for reachable in nodes]
        looked_at = [_looked_at(recorder, reachable) for reachable in nodes]
        self.saved: list[Value] = []
        self.programs: list[Program] = []
        self.walks: dict[int, Walk] = {}
        self.steps: dict[int, Any] = {}
        with _arriving(roots, ends) as arrivals:
            self._ends = [ends[end] for end in arrivals.values()]
            whole = (1 << len(outputs)) - 1
            for bits in range(1, whole + 1) if len(outputs) <= MOST else (1, 2, 3, whole):
                chosen = [k for k in range(len(outputs)) if bits >> k & 1]
                begins = [given[k] for k in chosen]
                start = Start(tuple([roots[k] for k in chosen]), [gradients[k] for k in chosen])
                reached = {(node, 0): node for node in _walked([roots[k][0] for k in chosen], ())}
                led_to = {end for arrival, end in arrivals.items() if arrival in reached}
                # (A backward pass of the function itself visits all nodes, and may raise their errors.)
                others = [edge for edge, node in reached.items() if not any(node.edges) and edge not in arrivals]
                after, found = _walked_back(recorder, start, [*arrivals], others)
                made = [value for value in found if value is not None]
                needed = _saved(self.calls, after, made, begins)
                views = _views(self.calls, needed, memories)
                if views:  # (views of inputs are not saved but created again)
                    after = views + after
                    needed = _saved(self.calls, after, made, begins)
                kept = [value for value in needed if value.place is None]
                read = [value for value in needed if value.place is not None]
                same = {value.memory for value in needed}.union(*[looked_at[k] for k in chosen])
                if not changing.isdisjoint(same):
                    raise NotRecorded("an input is written to, and its value is needed for a gradient")
                as_it_came = {k for k, value in enumerate(made) if value.memory in [value.memory for value in begins]}
                values = [*kept, *read, *begins]
                if observed:
                    self.steps[bits] = observed(after, values, [False] * len(values), made, as_it_came)
                program = Program(after, values, [False] * len(values), made, as_it_came)
                self.programs.append(program)
                self.saved += [value for value in kept if value not in self.saved]
                self.walks[bits] = Walk(
                    program.binding([])(),
                    [self.saved.index(value) for value in kept],
                    [value.place for value in read],  # type: ignore[misc]
                    [value is not None for value in found],
                    [k for k, end in enumerate(arrivals.values()) if end not in led_to],
                    [k for k, memory in enumerate(memories) if memory in same],
                    [k for k, memory in enumerate(shown) if memory in same and memory not in memories],
                    sum([1 << k for k, nodes_freed in enumerate(freed) if any(nodes_freed & freed[j] for j in chosen)]),
                )
        self.watched = sorted({k for walk in self.walks.values() for k in walk.watched})

    def node(
        self, saved: tuple[Any, ...], tensors: tuple[Tensor, ...], before: list[Any], marks: Sequence[Any],
        args: Any, kwargs: Any,
    ) -> CompiledFunctionBackward:  # fmt: skip
        """Return the node of a call; `before` are copies of the inputs that it writes to, `marks` of `sources`."""
        node = CompiledFunctionBackward()
        edges = tuple([tensors[k]._edge or leaf_edge(tensors[k]) for k in self._ends])
        enter(node, edges, self._shapes[0], self._dtypes[0])
        if len(self._shapes) > 1:
            node.outputs, node.shape, node.dtype = len(self._shapes), tuple(self._shapes), tuple(self._dtypes)
        node.saved, node.made, node.watched = saved, self, {}
        node.bits, node.freed, node.unreached = (1 << node.outputs) - 1, 0, ()
        node.call = tensors, [x._version for x in tensors], before, marks, args, kwargs
        return node

    def gradients(self, walk: Walk, saved: Sequence[Any], tensors: Sequence[Tensor], given: Any) -> list[Any]:
        """Return the gradients of the inputs that require one, by one of the programs."""
        arrays = [saved[k] for k in walk.saved] + [tensors[k]._array for k in walk.read]
        with self._running:
            found = iter(walk.step(*arrays, *[g._array for g in given]))
        return [wrap(next(found)) if arrives else None for arrives in walk.arrives]

    def unlike(self, given: Any) -> Strides:
        """Return the layouts of those gradients that are not laid out as those of the recorded backward pass."""
        found: Strides = {}
        for k, g in enumerate(given):
            if g is not None and g._array.strides != self._strides[k]:
                array = g._array
                same = [n == 1 or s == t for n, s, t in zip(array.shape, array.strides, self._strides[k], strict=True)]
                if array.size and not all(same):
                    found[k, array.shape] = array.strides
        return found

    def known(self, call: Any) -> bool:
        """Return whether the function may be called once more, with the same result."""
        tensors, versions, _, _, args, kwargs = call
        same = [x._version == version for x, version in zip(tensors, versions, strict=True)]
        unwritten = all(same[k] or k in self.written for k in range(len(same)))
        return not (self.random and not self.sources) and unwritten and self.holds(args, kwargs)

    def once_more(self, call: Any) -> tuple[Edge, ...]:
        """Call the function without its program, and return the edges of its results, which have a full graph."""
        if self.random and not self.sources:
            raise RuntimeError(
                "a compiled function that draws random numbers has no derivatives of higher order: call it uncompiled"
            )
        tensors, _, before, marks, args, kwargs = call
        if not self.known(call):
            raise RuntimeError(
                "what a compiled function reads has changed since it was called: derivatives of higher order, or from "
                "this combination of its results, are not known any more"
            )
        written_to = [tensors[k] for k in self.written]
        now = [(x._array.copy(), x._version) for x in written_to]
        for x, array in zip(written_to, before, strict=True):
            x._array[...] = array
        drawn = marks_of(self.sources)
        counts = [getattr(x, name) for x, name in self.counters]
        put_back(self.sources, marks)
        try:
            result = self._function(*args, **kwargs)
        finally:
            put_back(self.sources, drawn)
            for (x, name), count in zip(self.counters, counts, strict=True):
                setattr(x, name, count)
            for x, (array, version) in zip(written_to, now, strict=True):
                x._array[...] = array
                x._cell[0] = version
        found = results_in(result, set(map(id, self.passed(args, kwargs))))
        outputs = [x for x in found if x._requires_grad and not any(x is given for given in tensors)]
        return tuple([x._current()._edge for x in outputs])  # type: ignore[misc]


class CompiledFunctionBackward(Node):
    """The node of a call of a compiled function.

    Under `create_graph` it is replaced by the graph of the function itself, to which its edges lead then.
    """

    __slots__ = ("bits", "call", "freed", "made", "unreached", "watched")
    edges: tuple[Edge, ...]
    bits: int  # bit mask of the results from which the last backward pass started
    call: Any
    freed: int  # bit mask of the results from which no backward pass is possible any more
    made: Backward | None
    watched: dict[int, tuple[Any, Any, int]]  # by index of a result whose memory is saved: array, counter, version
    __init__ = object.__init__

    def name(self) -> str:
        """Return PyTorch's name."""
        return type(self).__name__

    def result(self, array: Any, version: int, number: int) -> Tensor:
        """Return one of the results, as a tensor with a version and this node."""
        made: Tensor = written(array, version)
        made._edge, made._requires_grad = (self, number), True
        return made

    def viewed(self, array: Any, source: Tensor, state: Any, number: int) -> Tensor:
        """Return one of the results, a view of an input, as a tensor with this node."""
        made: Tensor = wrap(array)
        make_view(made, source, state)
        made._edge, made._requires_grad = (self, number), True
        return made

    def watch(self, result: Any) -> None:
        """Register the results whose memory is saved: a later write to them is an error."""
        *_, args, kwargs = self.call
        found = results_in(result, set(map(id, self.made.passed(args, kwargs))))  # type: ignore[union-attr]
        for k in self.made.watched:  # type: ignore[union-attr]
            x = found[k]
            self.watched[k] = x._array, x._cell, x._version  # (not the tensor, which refers to this node)

    def release(self) -> None:
        """Free the saved arrays, except those that backward passes from other results need."""
        walks = {} if self.made is None or self.saved is None else self.made.walks
        self.freed |= walks[self.bits].frees if walks else 0
        left = [walk for bits, walk in walks.items() if not bits & self.freed]
        needed = {k for walk in left for k in walk.saved}
        if walks and self.freed != (1 << self.outputs) - 1:
            self.saved = tuple([x if k in needed else None for k, x in enumerate(self.saved)])
        else:
            self.saved, self.call, self.watched = None, None, {}

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Return the gradients of the inputs."""
        given = [g] if self.outputs == 1 else g
        if self.made is None:
            return given
        self.bits = sum([1 << k for k, g in enumerate(given) if g is not None])
        if self.bits & self.freed or self.saved is None:
            raise RuntimeError(FREED)
        walk = self.made.walks.get(self.bits)
        tensors, versions, _, _, args, kwargs = self.call
        if walk is not None and self.made.stays is not None and not self.made.stays(args, kwargs):
            walk = None
        if walk is not None:
            self.unreached = {self.edges[k] for k in walk.unreached}
            for k in walk.unchanged:
                x = tensors[k]
                if x._version != versions[k]:
                    raise modified(self, x._array, "an input of a compiled function", x._version, versions[k])
            for k in walk.watched:
                array, cell, version = self.watched[k]
                if cell[0] != version:
                    raise modified(self, array, "a result of a compiled function", cell[0], version)
        unlike = self.made.unlike(given) if walk is not None else {}
        if unlike:
            self.made.learn(unlike)
        if walk is None or create_graph or local.state.modes is not None or (unlike and self.made.known(self.call)):
            self._become(needed)
            self.unreached = {self.edges[k] for k, g in enumerate(given) if g is None}
            return given
        if unlike:  # (another layout would be another order of sums, at least)
            given = [g if g is None or (k, g._array.shape) not in unlike else laid_out(g) for k, g in enumerate(given)]
        return self.made.gradients(walk, self.saved, tensors, [g for g in given if g is not None])

    def _become(self, needed: set[Node] | None) -> None:
        """Continue the backward pass through the graph of the function itself, with its order of sums.

        The new nodes get numbers right below that of this one, as if the call had created them.
        """
        first = next(numbers)
        with grad_recording(True):
            edges = self.made.once_more(self.call)  # type: ignore[union-attr]
        nodes = _walked([edge[0] for edge in edges], ())
        inner = sorted([node for node in nodes if node.number > first], key=_number)
        for k, node in enumerate(inner, 1):
            node.number = self.number - 1 + k / (len(inner) + 1)
            if needed is not None and any(to is not None and to[0] in needed for to in node.edges):
                needed.add(node)
        self.edges, self.made, self.saved, self.call, self.watched = edges, None, None, None, {}
        if local.state.watch is not None:
            local.state.watch.look(self, needed)


def laid_out(g: Tensor) -> Tensor:
    """Return a gradient in C order."""
    made: Tensor = wrap(np.ascontiguousarray(g._array))
    return made


def _filled(like: Any, strides: tuple[int, ...] | None) -> Any:
    """Return an array of some numbers for a gradient, in C order or with other strides."""
    if strides is None or any(step < 0 or step % like.itemsize for step in strides):
        return np.full_like(like, 0.5, order="C")
    size = 1 + sum((n - 1) * step // like.itemsize for n, step in zip(like.shape, strides, strict=True))
    return np.lib.stride_tricks.as_strided(np.full_like(like, 0.5, shape=(size,)), like.shape, strides)


def marks_of(sources: list[Source]) -> list[Any]:
    """Return the states of sources of random numbers."""
    return [(source.mark(), source.normal) for source in sources]


def put_back(sources: Iterable[Source], marks: Iterable[Any]) -> None:
    """Restore the states of sources of random numbers."""
    for source, (mark, normal) in zip(sources, marks, strict=True):
        source.restore(mark)
        source.normal = normal


class Spent(Node):
    """The node of a result whose graph the compiled step has already traversed and freed."""

    __slots__ = ()

    def __new__(cls, name: str, shape: Any, kind: Any) -> Spent:
        """Return a node of a class that has the name of the node that it replaces."""
        return object.__new__(_spent(name))

    def __init__(self, name: str, shape: Any, kind: Any) -> None:
        enter(self, (), shape, kind)
        self.saved = ()

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Raise PyTorch's error: the saved tensors are freed."""
        raise RuntimeError(FREED)


@functools.cache
def _spent(name: str) -> Any:
    return type(name, (Spent,), {"__slots__": ()})


class Arrival(Node):
    """The end of one edge to an input; gradients that arrive along different edges are kept separate."""

    __slots__ = ()

    def __init__(self, edge: Edge) -> None:
        enter(self, (), *shape_and_kind(edge), end=True)


@contextlib.contextmanager
def _arriving(roots: Sequence[Edge], ends: Container[Edge]) -> Iterator[dict[Edge, Edge]]:
    """Replace every edge to one of the ends by an edge to an `Arrival`, so that gradients are not summed.

    Yields:
        A dictionary from the new edges, in the order in which a backward pass visits them, to the replaced edges.
    """
    nodes = sorted(_walked([edge[0] for edge in roots], ends), key=_number, reverse=True)
    before = [(node, node.edges) for node in [*nodes, *_inner(nodes)]]
    found: dict[Edge, Edge] = {}
    try:
        for node in nodes:
            edges = node.edges
            own = [(Arrival(edge), 0) if edge in ends else edge for edge in edges]
            found.update({arrival: end for arrival, end in zip(own, edges, strict=True) if arrival is not end})
            node.edges = tuple(own)
            for inner in _inner([node]):
                if node.position is not None:  # the view's edge belongs to the inner node
                    own[node.position] = inner.edges[node.position]
                inner.edges = tuple(own)
        yield found
    finally:
        for node, edges in before:
            node.edges = edges


def _inner(nodes: list[Any]) -> list[Any]:
    """Return the nodes that are nested in others (`CopySlices`)."""
    return [node.inner for node in nodes if getattr(node, "inner", None) is not None]


def _walked_back(
    recorder: Recorder, start: Start, ends: list[Edge], others: list[Edge]
) -> tuple[list[Call], list[Value | None]]:
    """Return the calls of a backward pass to `ends` and `others`, and the gradients that arrive at `ends`.

    The calls are removed from the recorder.
    """
    count, constants = len(recorder.calls), len(recorder.constants)
    try:
        with recorder.trying():
            found = walk(start, True, False, [*ends, *others], capture=True)
    except (RuntimeError, TypeError, ValueError) as error:  # the graph's own; a backward pass will raise it
        raise NotRecorded(f"{type(error).__name__}: {error}") from error
    if recorder.stopped is not None:
        raise NotRecorded(recorder.stopped)
    made = [recorder.value(found[end]._array) if end in found else None for end in ends]
    calls = recorder.calls[count:]
    recorder.take_back(count, constants)
    return calls, made


def _saved(calls: list[Call], after: list[Call], made: list[Value], given: list[Value]) -> list[Value]:
    """Return the values that a backward pass (the calls `after`, with the results `made`) reads of earlier calls."""
    written_to = memories_written(calls)
    own = {id(value) for value in given} | {id(value) for call in after for value in call.outputs if value is not None}
    saved: dict[int, Value] = {}
    for value in [*made, *[value for call in after for value in call.inputs()]]:
        changes = value.constant and value.memory in written_to  # for instance random numbers
        if id(value) not in own and (changes or not value.constant):
            saved[id(value)] = value
    return list(saved.values())


def _views(calls: list[Call], saved: list[Value], given: list[Memory]) -> list[Call]:
    """Return copies of the calls that create the saved values that are views of inputs."""
    waiting = [value for value in saved if value.place is None and value.memory in given]
    sources = {id(value.source) for value in waiting}
    for value in waiting:  # grows
        for source in value.source.inputs() if value.source is not None else ():
            if source.place is None and source.memory in given and id(source.source) not in sources:
                sources.add(id(source.source))
                waiting.append(source)
    return [call.copy() for call in calls if call.kind == Call.VIEW and id(call) in sources]


def is_freed(node: Any) -> bool:
    """Return whether a backward pass from a node would reach a node whose saved tensors are freed."""
    return any(inner.saved is None for inner in _walked([node], ()))


def _holds_tensors(node: Any) -> bool:
    """Return whether a backward pass frees tensors of a node, so that a second one raises an error."""
    release = type(node).release
    if isinstance(node, FunctionNode):
        return bool(node.saved)
    return node.plan.holds_tensors if release is OpNode.release else release is not Node.release


def _looked_at(recorder: Recorder, nodes: list[Any]) -> set[Memory]:
    """Return the memory of saved tensors whose versions some nodes check, and of inputs that they keep."""
    arrays = []
    for node in [*nodes, *_inner(nodes)]:
        if isinstance(node, FunctionNode):
            saved = [item for item in node.saved or () if item is not None and len(item) == 4]
            arrays += [x._array if number is None else x for x, _, _, number in saved]
            continue
        sources = getattr(getattr(node, "plan", None), "sources", ())
        for (kind, _), item in zip(sources, node.saved or (), strict=False):
            if kind == INPUT:
                arrays.append(item[0]._array)
            elif (kind in (OUTPUT, RESIDUAL) and item[1] is not None) or (
                kind == KEPT and item is not None and item[1][0] == item[2]
            ):
                arrays.append(item[0])
    return {value.memory for value in map(recorder.find, arrays) if value is not None}


def _walked(nodes: list[Any], ends: Container[Edge]) -> list[Any]:
    """Return the nodes that a backward pass reaches without following the edges `ends`."""
    found = list(dict.fromkeys(nodes))
    seen = set(found)
    for node in found:  # grows
        for edge in node.edges:
            if edge is not None and edge not in ends and edge[0] not in seen:
                seen.add(edge[0])
                found.append(edge[0])
    return found


_number = operator.attrgetter("number")

__all__ = ["Backward", "Layouts", "Spent", "Strides", "is_freed", "marks_of", "put_back"]
