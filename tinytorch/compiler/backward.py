"""The graph of what a compiled function returns: one node, with a program of its own for the way backward."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tinytorch.compiler.program import Program, written
from tinytorch.compiler.recorder import Call, NotRecorded, Recorder, Value, memories_written, tensors_of
from tinytorch.core.engine import walk
from tinytorch.core.graph import FREED, Edge, Node, Start, leaf_edge, numbers, running
from tinytorch.core.mode import local
from tinytorch.core.mode import recording as grad_recording
from tinytorch.core.op import modified
from tinytorch.core.tensor import Tensor, wrap


class Backward:
    """The program of the walk backward from the result of a compiled function to what it was given.

    Args:
        function: what is compiled.
        recorder: has seen a call of it.
        result: what the call returned that has a graph.
        inputs: the tensors that it was given, or read.

    Attributes:
        calls: what the program of the function itself does.
        saved: the values that it hands over to this one.
        program: this one.
        written: the places of inputs that the function writes to: running statistics, say.
        holds: whether the guards hold for a call's arguments.

    Raises:
        NotRecorded: the walk cannot be a program.
    """

    holds: Callable[..., bool]

    def __init__(
        self, function: Callable[..., Any], recorder: Recorder, result: Tensor, inputs: Sequence[Tensor]
    ) -> None:
        calls = list(recorder.calls)
        memories = [recorder.value(x._array).memory for x in inputs]
        changing = memories_written(calls) & {*memories}
        self.written = [k for k, memory in enumerate(memories) if memory in changing]
        wanted = [k for k, x in enumerate(inputs) if x._requires_grad]
        if any(inputs[k]._hooks is not None for k in wanted):
            raise NotRecorded("a tensor has hooks")
        gradient = np.empty_like(result._array, order="C")
        gradient.fill(0.5)
        given = recorder.enter(gradient, place=len(inputs), name="grad")
        # (A pseudo-leaf is walked to, not through: hooks and `.grad` see nothing of this.)
        edges: list[Any] = [inputs[k]._edge or leaf_edge(inputs[k]) for k in wanted]
        edge: Any = result._edge
        if _meets_twice(edge[0], {each[0] for each in edges}):
            raise NotRecorded("a tensor that is given is used twice, and the result has a graph")
        with recorder:
            found = walk(Start((edge,), [wrap(gradient)]), True, False, edges, capture=True)
        if recorder.stopped is not None:
            raise NotRecorded(recorder.stopped)
        after = recorder.calls[len(calls) :]
        results = [found.get(each) for each in edges]
        made = [recorder.value(g._array) for g in results if g is not None]
        saved = _saved(calls, after, made, given)
        if not changing.isdisjoint([memories[k] for k in wanted] + [value.memory for value in saved]):
            raise NotRecorded("what is given is written to, and the gradient needs it")
        kept = [value for value in saved if value.place is None]
        read = [value for value in saved if value.place is not None]
        as_it_came = {k for k, value in enumerate(made) if value is given}
        values = [*kept, *read, given]
        self.program = Program(after, values, [False] * len(values), made, as_it_came)
        self._step = self.program.binding([])()
        self._function, self.calls, self.saved = function, calls, kept
        self._shape, self._dtype = gradient.shape, gradient.dtype
        self._wanted, self._read = wanted, [value.place for value in read]
        self._used = [g is not None for g in results]
        self._random = any(call.random for call in calls)
        self._running = threading.Lock()

    def node(
        self, saved: tuple[Any, ...], tensors: tuple[Tensor, ...], before: list[Any], args: Any, kwargs: Any
    ) -> CompiledFunctionBackward:
        """Return the node of a call; what it writes to held `before`."""
        node = CompiledFunctionBackward()
        node.edges = tuple([tensors[k]._edge or leaf_edge(tensors[k]) for k in self._wanted])
        node.hooks, node.number = None, next(numbers)
        node.shape, node.dtype = self._shape, self._dtype
        node.saved = saved, [(tensors[k], tensors[k]._version) for k in self._read]  # type: ignore[index]
        node.made = self
        node.call = tensors, [x._version for x in tensors], before, args, kwargs
        return node

    def gradients(self, saved: Sequence[Any], read: Sequence[Any], g: Any) -> list[Any]:
        """Return the gradients of the inputs that require them, given arrays."""
        with self._running:
            found = iter(self._step(*saved, *read, g))
        return [wrap(next(found)) if used else None for used in self._used]

    def once_more(self, call: Any) -> Edge:
        """Call the function as it is; return where its result came from, whose gradients are differentiable."""
        if self._random:
            raise RuntimeError(
                "a compiled function that draws random numbers has no derivatives of higher order: call it uncompiled"
            )
        tensors, versions, before, args, kwargs = call
        same = [x._version == version for x, version in zip(tensors, versions, strict=True)]
        if not self.holds(args, kwargs) or not all(same[k] or k in self.written for k in range(len(same))):
            raise RuntimeError(
                "what a compiled function reads has changed since it was called: its derivatives of higher order are "
                "not known any more"
            )
        written_to = [tensors[k] for k in self.written]
        now = [(x._array.copy(), x._version) for x in written_to]
        for x, array in zip(written_to, before, strict=True):
            x._array[...] = array
        try:
            result = self._function(*args, **kwargs)
        finally:
            for x, (array, version) in zip(written_to, now, strict=True):
                x._array[...] = array
                x._cell[0] = version
        (output,) = [x for x in tensors_of(result) if x._requires_grad and not any(x is given for given in tensors)]
        edge = output._current()._edge
        assert edge is not None
        return edge


class CompiledFunctionBackward(Node):
    """A call of a compiled function, as one step of the graph.

    Where the gradients' own derivatives are wanted it becomes the graph of the function as it is: its edge leads there.
    """

    __slots__ = ("call", "made")
    call: Any
    made: Backward | None
    __init__ = object.__init__

    def name(self) -> str:
        """Return PyTorch's name."""
        return type(self).__name__

    def output(self, array: Any, version: int) -> Tensor:
        """Return the result, which was written to so often."""
        made: Tensor = written(array, version)
        made._edge, made._requires_grad = (self, 0), True
        return made

    def release(self) -> None:
        """Free what was saved."""
        self.saved = self.call = None

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Return the gradients of the inputs."""
        if self.made is None:
            return (g,)
        if self.saved is None:
            raise RuntimeError(FREED)
        saved, tensors = self.saved
        for tensor, version in tensors:
            if tensor._version != version:
                raise modified(self, tensor._array, "an input of a compiled function", tensor._version, version)
        if create_graph or local.state.modes is not None:
            self._become(needed)
            return (g,)
        return self.made.gradients(saved, [tensor._array for tensor, _ in tensors], g._array)

    def _become(self, needed: set[Node] | None) -> None:
        """Let the walk go on through the graph of the function as it is: so sums are taken in the order of that.

        The new nodes get numbers right below this one's, as if they had been made by the call.
        """
        first = next(numbers)
        with grad_recording(True):
            edge = self.made.once_more(self.call)  # type: ignore[union-attr]
        inner = sorted([node for node in _walked(edge[0], set()) if node.number > first], key=lambda node: node.number)
        for k, node in enumerate(inner, 1):
            node.number = self.number - 1 + k / (len(inner) + 1)
            if needed is not None and any(to is not None and to[0] in needed for to in node.edges):
                needed.add(node)
        self.edges, self.made, self.saved, self.call = (edge,), None, None, None
        if running.watch is not None:
            running.watch.look(self, needed)


class Spent(Node):
    """Stands for the graph of a result, which the step has walked through already."""

    __slots__ = ()

    def __new__(cls, name: str, shape: Any, kind: Any) -> Spent:
        """Return a node of a class that has the name of the node that it stands for: it is shown by that."""
        return object.__new__(_spent(name))

    def __init__(self, name: str, shape: Any, kind: Any) -> None:
        self.edges = self.saved = ()
        self.hooks, self.number = None, next(numbers)
        self.shape, self.dtype = shape, kind

    def backward(self, g: Any, create_graph: bool, needed: Any) -> Any:
        """Raise PyTorch's error: what the graph saved is freed."""
        raise RuntimeError(FREED)


@functools.cache
def _spent(name: str) -> Any:
    return type(name, (Spent,), {"__slots__": ()})


def _saved(calls: list[Call], after: list[Call], made: list[Value], given: Value) -> list[Value]:
    """Return what the walk (the calls `after`, which end in `made`) needs of what went before it."""
    written_to = memories_written(calls)
    own = {id(given)} | {id(value) for call in after for value in call.outputs if value is not None}
    saved: dict[int, Value] = {}
    for value in [*made, *[value for call in after for value in call.inputs()]]:
        changes = value.constant and value.memory in written_to  # what was drawn at random, say
        if id(value) not in own and (changes or not value.constant):
            saved[id(value)] = value
    return list(saved.values())


def is_freed(node: Any) -> bool:
    """Return whether a walk backward from a node would come to one whose saved tensors are freed."""
    return any(each.saved is None for each in _walked(node, set()))


def _meets_twice(node: Any, ends: set[Any]) -> bool:
    """Return whether several edges lead to one of some nodes: sums of gradients would be taken in another order."""
    met = [edge for each in _walked(node, ends) for edge in each.edges if edge is not None and edge[0] in ends]
    return len(met) > len(set(met))


def _walked(node: Any, ends: set[Any]) -> list[Any]:
    """Return the nodes that a walk backward comes to, before some where it ends."""
    found, seen = [node], {node} | ends
    for each in found:  # grows
        for edge in each.edges:
            if edge is not None and edge[0] not in seen:
                seen.add(edge[0])
                found.append(edge[0])
    return found


__all__ = ["Backward", "Spent", "is_freed"]
