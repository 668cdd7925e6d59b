"""`watch`: what a program computes from what, with lines, also where gradients do not flow.

The graph of a loss has what gradients flow through, and nothing else: a parameter that was cut off by `detach()` has
left no trace in it. So this mode notes every op, creation, read and write as an `Event`, with the events that its
arguments come from: the memory of a tensor tells which event has filled it. A *cut* is then an event that depends on a
parameter without carrying its gradient, and on which the loss depends.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.profiler import tensors_in
from tinytorch.core import engine, mode
from tinytorch.core.graph import AccumulateGrad
from tinytorch.core.mode import arriving, local, on
from tinytorch.core.node import OpNode
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.calls import Call, Listener, array_of, name_of_op
from tinytorch.inspect.places import Line, our_frames, running_modules, users_line
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.places import storage

__all__ = ["Event", "watch"]

#: The names that functions which create tensors of data give it.
_DATA = ("data", "obj", "ndarray")
#: The name of functions that create tensors of no data.
UNKNOWN = "a function"

_WALK = engine.walk.__code__


class Event:
    """Something that a program did with tensors.

    Attributes:
        number: its place in the order of events.
        kind: "leaf" (a tensor met for the first time), "op", "made" (created from data), "read" (its values went to
            Python or NumPy), "detach" or "data".
        name: the name of the op or function.
        line: the user's line.
        module: the module that was running, or None.
        sources: per argument, the events that filled its memory, and whether it was part of the graph.
        recorded: whether the result is part of the graph.
        recording, inference: whether a graph was recorded, and whether inference mode was on.
        differentiable: whether the result has a dtype that gradients have.
        dtypes: the dtypes of the arguments and of the result; `shapes` are their shapes.
        writes: whether it writes into its first argument.
        users: the events that take its result.
    """

    __slots__ = (
        "differentiable", "dtypes", "inference", "kind", "line", "module", "name", "number", "recorded", "recording",
        "shapes", "sources", "users", "writes",
    )  # fmt: skip

    def __init__(self, number: int, kind: str, name: str, line: Line, module: Any) -> None:
        self.number, self.kind, self.name, self.line, self.module = number, kind, name, line, module
        self.sources: list[tuple[list[Event], bool]] = []
        self.users: list[Event] = []
        state = local.state
        self.recorded, self.recording, self.inference = False, state.grad, state.inference
        self.writes = False
        self.differentiable = True
        self.dtypes: tuple[str, ...] = ()
        self.shapes: tuple[tuple[int, ...], ...] = ()

    def take(self, sources: list[Event], carries: bool) -> None:
        """Add an argument."""
        self.sources.append((sources, carries))
        for source in sources:
            source.users.append(self)

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} at {self.line}>"


class Walk(NamedTuple):
    """A backward pass.

    Attributes:
        line: the line that called it.
        roots: the nodes where it began.
        captures: whether it returned the gradients (`autograd.grad`).
        limited: whether it was limited to some inputs (`backward(inputs=...)`).
    """

    line: Line
    roots: tuple[Any, ...]
    captures: bool
    limited: bool


class watch(Listener):
    """Inside, everything that is computed is noted, so that `explain` can say which line cuts a gradient off.

    It keeps what is computed alive, and is slow: it is meant for one step of training. Only the thread that enters the
    context is watched.

    Example:
        >>> w = torch.ones(2, requires_grad=True)
        >>> with torch.inspect.watch() as seen:
        ...     loss = (w.detach() * 2).sum()
        >>> (story,) = seen.explain(loss, {"w": w}).parameters
        >>> story.cause.code, story.cause.certain
        ('detach', True)
    """

    follows = True

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.walks: list[Walk] = []
        #: The modules that were called, with the paths of their lines.
        self.called: dict[int, Any] = {}
        self._arrays: dict[int, Event] = {}  # by id of an array
        self._memories: dict[int, Event] = {}  # by id of the array that owns the memory
        self._writes: dict[int, Event] = {}
        self._kept: list[Any] = []  # what the ids refer to
        self.leaves: dict[int, Event] = {}  # by id of a tensor
        self.nodes: dict[int, Event] = {}  # by number of a node, the event that made it
        self._walk: Any = None
        self.accumulated: dict[int, Walk] = {}  # by id of a leaf, the last backward pass that reached it
        self.without: dict[Any, set[Any]] = {}  # by node, the nodes to which it gave no gradient
        self.vanished: dict[int, Any] = {}  # by number of a node that got only zeros, the node that made them
        self._loss: Any = None

    def explain(self, loss: Any = None, model: Any = None) -> Any:
        """Return the explanation of a loss, by default of the one whose backward was called last; see `explain`."""
        from_module: Any = sys.modules["tinytorch.inspect"]  # (which imports this one)
        return from_module.explain(loss if loss is not None else self, model, seen=self)

    # Events ---------------------------------------------------------------------------------------

    def _new(self, kind: str, name: str) -> Event:
        frame = sys._getframe(1)
        running = list(running_modules(frame))
        self.called |= {id(each): each for each in running if id(each) not in self.called}
        module = running[0] if running else None
        event = Event(len(self.events), kind, name, users_line(frame), None if module is None else weakref.ref(module))
        self.events.append(event)
        return event

    def _sources(self, x: Tensor) -> list[Event]:
        """Return the events that filled the memory of a tensor."""
        array = array_of(x)
        if array is None:
            return []
        owner = storage(array)
        found = self._arrays.get(id(array)) or self._memories.get(id(owner))
        if found is None or (_is_leaf(x) and id(x) not in self.leaves and x._requires_grad):
            leaf = self._leaf(x, array, owner)
            found = found or leaf
            if leaf is not found:
                return [found, leaf]
        last = self._writes.get(id(owner))
        return [found] if last is None or last.number <= found.number else [found, last]

    def _leaf(self, x: Tensor, array: Any, owner: Any) -> Event:
        event = self.leaves.get(id(x))
        if event is None:
            event = self._new("leaf", "")
            event.recorded = x._requires_grad
            self.leaves[id(x)] = event
            self._kept.append(x)
            self._arrays.setdefault(id(array), event)
            self._memories.setdefault(id(owner), event)
            self._kept += [array, owner]
        return event

    def _fills(self, event: Event, x: Tensor, write: bool = False, view: bool = False) -> None:
        """Note that an event has filled the memory of a tensor."""
        array = array_of(x)
        if array is None:
            return
        owner = storage(array)
        self._kept += [array, owner]
        self._arrays[id(array)] = event
        if write:
            self._writes[id(owner)] = event
        elif not view or id(owner) not in self._memories:
            self._memories[id(owner)] = event

    def listen(self, call: Call) -> Iterator[None]:
        """Note a call."""
        inputs = call.inputs
        given = [(self._sources(x), bool(x.requires_grad)) for x in inputs]
        shapes = [tuple(x.shape) for x in inputs]
        kinds = [x.dtype.name for x in inputs]
        yield
        outputs = call.outputs
        if isinstance(call.op, type):  # (what its `forward` computes may also depend on tensors that are no arguments)
            given += [(self._sources(x), False) for x in outputs]
        event = self._new("op", name_of_op(call.op).removesuffix(".forward"))
        for sources, carries in given:
            event.take(sources, carries)
        writes = event.writes = call.writes
        for x in outputs:
            event.recorded |= bool(x.requires_grad)
            self._fills(event, x, writes, bool(getattr(call.op, "view", False)))
            if x._edge is not None:
                self.nodes[x._edge[0].number] = event
        event.differentiable = any((a := array_of(x)) is None or a.dtype.kind in DIFFERENTIABLE for x in outputs)
        event.shapes = (*shapes, *[tuple(x.shape) for x in outputs[:1]])
        event.dtypes = (*kinds, *[x.dtype.name for x in outputs[:1]])

    @on(mode.Event.DETACHED)
    def _detached(self, x: Any, alias: Any) -> None:
        """Note a tensor on the memory of another one that is no part of the graph."""
        sources, carries = self._sources(x), bool(x._requires_grad)
        # (Between `detach` and its `.data` there is a wrapper if members are overridden.)
        by_detach = any(each.f_code.co_name.startswith("detach") for each in our_frames(sys._getframe(1)))
        event = self._new(*("detach", "detach()") if by_detach else ("data", ".data"))
        event.take(sources, carries)
        self._fills(event, alias, view=True)

    @on(mode.Event.FORGOTTEN)
    def _forgotten(self, x: Any) -> None:
        """Note a tensor that `detach_` takes out of the graph."""
        event = self._new("detach", "detach_()")
        event.take(self._sources(x), True)
        self._fills(event, x, view=True)

    @on(mode.Event.READ)
    def _read(self, x: Any, truth: bool) -> None:
        """Note that Python reads a tensor's values."""
        if truth:
            return  # (a decision, which carries no numbers on)
        *_, outer = our_frames(sys._getframe(1))
        event = self._new("read", f"{outer.f_code.co_name.strip('_')}()")
        event.take(self._sources(x), bool(x._requires_grad))

    @on(mode.Event.MADE)
    def _made(self, x: Any) -> None:
        """Note a tensor that a creation function has returned, with the data that it was made of."""
        given = [(inner, inner.f_locals.get(name)) for inner in our_frames(sys._getframe(1)) for name in _DATA]
        inner, data = next((pair for pair in given if pair[1] is not None), (None, None))
        event = self._new("made", UNKNOWN if inner is None else f"{inner.f_code.co_name}()")
        if isinstance(data, np.ndarray):
            source = self._arrays.get(id(data)) or self._memories.get(id(storage(data)))
            if source is not None:
                event.take([source], False)
        for each in tensors_in(data):
            event.take(self._sources(each), bool(each._requires_grad))
        event.recorded = bool(x._requires_grad)
        self.leaves[id(x)] = event
        self._kept.append(x)
        self._fills(event, x)

    # Backward -------------------------------------------------------------------------------------

    def step(self, node: Any, run: Callable[[], Any]) -> Any:
        """Return the gradients that a node's backward computes, having noted where they go."""
        state = local.state
        if state.callbacks is not self._walk:
            self._walk = state.callbacks
            self._begin()
        nonzero = any(map(_any, tensors_in([arriving(run)])))
        alone = type(node).backward is OpNode.backward and not state.grad
        grads = self.unseen(run) if alone else run()
        if isinstance(node, AccumulateGrad):
            self.accumulated[id(node.variable)] = self.walks[-1]
            self._kept.append(node.variable)
        for edge, g in zip(node.edges, grads, strict=False):
            if edge is None:
                continue
            if g is None:
                self.without.setdefault(node, set()).add(edge[0])
            elif nonzero and not _any(g):
                self.vanished[edge[0].number] = node
            elif not nonzero and node.number in self.vanished:
                self.vanished.setdefault(edge[0].number, self.vanished[node.number])
        return grads

    def _begin(self) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code is not _WALK:
            frame = frame.f_back
        assert frame is not None
        names = frame.f_locals
        roots = tuple([edge[0] for edge in names["start"].edges if edge is not None])
        captures = bool(names["capture"])
        line = users_line(frame)
        self.walks.append(Walk(line, roots, captures, names["targets"] is not None and not captures))
        self._kept += roots

    # What was seen --------------------------------------------------------------------------------

    def targets(self, loss: Tensor | None) -> list[Event]:
        """Return the events that computed a loss; without one, those of the last backward pass."""
        if loss is not None:
            array = array_of(loss)
            found = self._arrays.get(id(array)) or self._memories.get(id(storage(array)))
            last = self._writes.get(id(storage(array)))
            return [each for each in (found, last) if each is not None]
        roots = self.walks[-1].roots if self.walks else ()
        return [self.nodes[root.number] for root in roots if root.number in self.nodes]

    def was_called(self, module: Any) -> bool:
        """Return whether a call of a module was seen: one in which there was an op."""
        return id(module) in self.called


def _is_leaf(x: Tensor) -> bool:
    return x._edge is None and x._view is None


def _any(g: Tensor) -> bool:
    array = array_of(g)
    return array is None or bool(np.any(array))
