"""The graph that a backward pass walks: `Node`, `AccumulateGrad` for leaves, and hooks.

An *edge* is a pair `(node, number)`: the node that computed a tensor, and which of its outputs the tensor is. A tensor
that requires grad and has no edge is a leaf; the edge to it is `(AccumulateGrad, 0)`, created when it is first needed.

Source of what hooks see and when: PyTorch's "Autograd mechanics", section "Backward Hooks execution".
"""

from __future__ import annotations

import itertools
import re
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Container, Sequence
from heapq import heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from tinytorch.core import mode
from tinytorch.core.layout import strided
from tinytorch.core.supplied import picture, sparse
from tinytorch.kernels.places import is_dense
from tinytorch.kernels.silence import add_into

if TYPE_CHECKING:
    from tinytorch.core.declaration import Op
    from tinytorch.core.node import Plan
    from tinytorch.core.tensor import Tensor

Edge = tuple["Node", int]
Hook = Callable[..., Any]

#: Creation numbers. They order the graph: a node's number is greater than those of all nodes that it depends on.
numbers = itertools.count(1)

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access "
    "saved tensors after calling backward."
)


#: Whether Python frees a chain of objects by a recursion that may exceed the stack: 3.13 does on small stacks (threads
#: under musl have 128 kB), and in WebAssembly, where Python cannot measure the stack, every version since.
FREES_BY_RECURSION = sys.version_info[:2] == (3, 13) or (
    sys.platform in ("emscripten", "wasi") and sys.version_info >= (3, 13)
)
#: Nodes with numbers that are multiples of this have a `Tail`. (It is a prime: a loop that makes the same number of
#: nodes in each turn does not miss them. In a browser a stack of 1 MB holds about 300 nodes.)
STRIDE = 31 if sys.platform in ("emscripten", "wasi") else 61


# Hooks ----------------------------------------------------------------------------------------------


class Hooks:
    """The hooks of one node or leaf, each kind in the order in which its hooks run.

    Attributes:
        tensor: by the number of an output, the hooks on that tensor's gradient.
        pre: the node's pre-hooks, which receive the gradients of all outputs.
        retain: by the number of an output, the tensor that keeps its `.grad` (`retain_grad`).
        post: the node's hooks, which receive the gradients of its inputs and outputs.
        accumulated: the hooks of a leaf that run after its `.grad` was accumulated.
        lock: held while a gradient is accumulated into the leaf.
    """

    __slots__ = ("accumulated", "lock", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict[int, Hook]] = {}
        self.pre: OrderedDict[int, Hook] = OrderedDict()
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.post: OrderedDict[int, Hook] = OrderedDict()
        self.accumulated: OrderedDict[int, Hook] = OrderedDict()
        self.lock = threading.RLock()  # reentrant: a hook may run backward itself


def run_hooks(hooks: OrderedDict[int, Hook], value: Any, *rest: Any) -> Any:
    """Return `value`, a gradient or a tuple of them, after the hooks: what a hook returns, unless None, replaces it."""
    for hook in list(hooks.values()):
        result = hook(value, *rest)
        if result is not None:
            _check_result(hook, result, value)
            value = result
    return value


def _check_result(hook: Hook, result: Any, value: Any) -> None:
    """Raise PyTorch's error unless a hook's `result` can replace `value`."""
    name = getattr(hook, "__name__", "<unknown>")
    if isinstance(value, tuple):
        if not isinstance(result, tuple):
            raise TypeError(f"expected tuple, but hook returned '{type(result).__name__}'")
        if len(result) != len(value):
            raise RuntimeError(
                f"hook '{name}' has returned an incorrect number of values (got {len(result)}, but expected "
                f"{len(value)})"
            )
        for new, old in zip(result, value, strict=True):
            if new is not None:
                _check_result(hook, new, old)
        return
    if value is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not hasattr(result, "_cell"):
        raise TypeError(f"expected Variable, but hook returned '{type(result).__name__}'")
    if result.dtype is not value.dtype:
        raise RuntimeError(f"hook '{name}' has changed the type of value (was {value.type()} got {result.type()})")
    if result.shape != value.shape:
        raise RuntimeError(f"hook '{name}' has changed the size of value")


# Nodes ----------------------------------------------------------------------------------------------


class _NodeMeta(type):
    """Makes the `ctx` of a `Function`, which users see as its node, an instance of `Node`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, getattr(instance, "_graph_node", instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return type.__subclasscheck__(cls, getattr(subclass, "_face_of", subclass))


class Node(metaclass=_NodeMeta):
    """A recorded operation: it computes the gradients of its inputs from those of its outputs.

    Attributes:
        edges: per input its edge, or None where no gradient flows.
        saved: the values that the formulas need, in the order of `plan`; None once freed.
        number: the creation number.
        shape, dtype: of the output (NumPy's); tuples of them if the node has several outputs.
        hooks: a `Hooks`, or None.
        tail: some nodes have a `Tail` here.

    Example:
        >>> y = torch.ones(2, requires_grad=True).exp()
        >>> isinstance(y.grad_fn, torch.autograd.graph.Node), y.grad_fn.name()
        (True, 'ExpBackward0')
    """

    __slots__ = (
        "__dict__", "__weakref__", "dtype", "edges", "hooks", "number", "plan", "saved", "shape",
        *(("tail",) if FREES_BY_RECURSION else ()),
    )  # fmt: skip

    op: Op
    outputs = 1  # their number; the gradients of several outputs are a tuple
    requires_grad = True
    unreached: Container[Edge] = ()  # edges to inputs that the outputs with a gradient do not depend on

    edges: tuple[Edge | None, ...]
    saved: Any
    number: int
    plan: Plan
    hooks: Hooks | None
    shape: Any
    dtype: Any
    tail: Tail

    def __init__(self) -> None:
        raise TypeError(f"Can't instantiate abstract class {type(self).__name__}")

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs (None where none flows), given the gradients `g` of the outputs."""
        raise NotImplementedError

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs when no output has received a gradient."""
        return (None,) * len(self.edges)

    def take_outputs(self, arrays: Sequence[Any]) -> None:
        """Set `shape` and `dtype` to those of the outputs; of one that is no tensor, given as None, to () and None."""
        shapes = tuple([() if array is None else array.shape for array in arrays])
        dtypes = tuple([None if array is None else array.dtype for array in arrays])
        self.shape, self.dtype = (shapes[0], dtypes[0]) if len(arrays) == 1 else (shapes, dtypes)

    def output(self, number: int) -> str:
        """Return PyTorch's words for an output, with the name of the node as in `Add` for `AddBackward0`."""
        name = re.sub(r"Backward0?(\d*)$", r"\1", self.name())
        return f"output {number} of {name}"

    def release(self) -> None:
        """Free the values that were saved for the backward pass."""

    # What users ask a node for. How PyTorch's graph differs from ours is described in `autograd/pytorch_graph.py`.

    def name(self) -> str:
        """Return the name of the node, as PyTorch's: "MulBackward0"."""
        return type(self).__name__

    def shown(self) -> Any:
        """Return the object that users see as this node: the node itself, except for a `Function`'s."""
        return self

    def _inputs(self) -> Sequence[int]:
        """Return which of `edges` the node shows: PyTorch's has none for an input that cannot have a gradient."""
        return range(len(self.edges))

    def _differentiable(self) -> int:
        """Return the number of outputs whose gradients hooks see."""
        return self.outputs

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Per input, the node that it came from and which output of it; `(None, 0)` where no gradient flows."""
        edges = [self.edges[i] for i in self._inputs()]
        return tuple([(None, 0) if edge is None else (edge[0].shown(), edge[1]) for edge in edges])

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes on this node."""
        notes: dict[Any, Any] = self.__dict__.setdefault("_metadata", {})
        return notes

    @property
    def _input_metadata(self) -> tuple[Any, ...]:
        """The shape and dtype of each gradient that this node receives: one for each output."""
        return picture.input_metadata(self)

    def _sequence_nr(self) -> int:
        return int(self.number)  # (the numbers of a compiled function's nodes are not integers)

    def register_hook(self, fn: Hook) -> Any:
        """Run `fn(grad_inputs, grad_outputs)` after this node; it may return new `grad_inputs`. Return a handle.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x.exp()
            >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_outputs[0] * 2,))
            >>> y.sum().backward()
            >>> x.grad
            tensor([2., 2.])
        """
        return picture.add_hook(self._own_hooks().post, fn)

    def register_prehook(self, fn: Hook) -> Any:
        """Run `fn(grad_outputs)` before this node; it may return new `grad_outputs`. Return a handle.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x.clone()
            >>> handle = y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 2,))
            >>> y.sum().backward()
            >>> x.grad
            tensor([2., 2.])
        """
        return picture.add_hook(self._own_hooks().pre, fn)

    def __call__(self, *gs: Any, **kwargs: Any) -> Any:
        """Return the gradients of the inputs, given those of the outputs; hooks do not run."""
        if kwargs:
            raise TypeError("keyword arguments are not supported")
        if len(gs) != self.outputs:
            raise TypeError(f"expected {self.outputs} arguments, got {len(gs)} instead")
        for k, g in enumerate(gs):
            if g is not None and not hasattr(g, "_array"):
                raise TypeError(f"argument {k} is not a Variable")
        recording = mode.local.state.grad
        if any(g is not None for g in gs):
            grads = self.backward(gs if self.outputs > 1 else gs[0], recording, None)
        else:
            grads = self.without_gradient(recording, None)
        shown = tuple([grads[i] for i in self._inputs()])
        return shown[0] if len(shown) == 1 else shown

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"

    # Hooks.

    def _own_hooks(self) -> Hooks:
        with _creation_lock:
            if self.hooks is None:
                self.hooks = Hooks()
        return self.hooks

    def run_tensor_hooks(self, g: Any) -> Any:
        """Return `g` after the hooks of the output tensors; `retain_grad` stores what these return."""
        hooks = self.hooks
        assert hooks is not None
        gs = self._as_list(g)
        for number, hooks_of_output in list(hooks.tensor.items()):
            gs[number] = run_hooks(hooks_of_output, gs[number])
        for number, reference in list(hooks.retain.items()):
            tensor = reference()
            if tensor is not None and gs[number] is not None:
                _accumulate_retained(tensor, gs[number])
        return self._from_list(gs)

    def run_hooks_before(self, g: Any) -> Any:
        """Return `g` after the hooks of the output tensors, and then the node's pre-hooks."""
        g = self.run_tensor_hooks(g)
        assert self.hooks is not None
        gs = self._as_list(g)
        count = self._differentiable()
        return self._from_list((*run_hooks(self.hooks.pre, tuple(gs[:count])), *gs[count:]))

    def run_hooks_after(self, grads: Sequence[Any], g: Any) -> Any:
        """Return the inputs' gradients after the node's hooks."""
        assert self.hooks is not None
        inputs = self._inputs()
        shown = tuple([grads[i] for i in inputs])
        by_input = dict(
            zip(
                inputs,
                run_hooks(self.hooks.post, shown, tuple(self._as_list(g)[: self._differentiable()])),
                strict=True,
            )
        )
        return [by_input.get(i) for i in range(len(grads))]

    def _as_list(self, g: Any) -> list[Any]:
        """Return the gradients of the outputs as a list, None for an output without one."""
        return [None] * self.outputs if g is None else list(g) if self.outputs > 1 else [g]

    def _from_list(self, gs: Sequence[Any]) -> Any:
        """Return the gradients of the outputs as `backward` takes them; None if no output has one."""
        if self.outputs == 1:
            return gs[0]
        return gs if any(g is not None for g in gs) else None


def enter(node: Any, edges: tuple[Edge | None, ...], shape: Any, dtype: Any, end: bool = False) -> None:
    """Set what every new node has; it is the last one so far.

    Args:
        node: the node.
        edges: those of its inputs.
        shape, dtype: those of its output, or tuples of them.
        end: whether the node is an end of the graph, which saves nothing and has a negative number.
    """
    node.edges = edges
    node.hooks = None
    node.number = -next(numbers) if end else next(numbers)
    node.shape = shape
    node.dtype = dtype
    if end:
        node.saved = ()
    elif FREES_BY_RECURSION:
        add_tail(node)


# How long graphs are freed --------------------------------------------------------------------------


class Tail:
    """Ends the recursion by which a chain of nodes is freed: what the last node's edges refer to is freed afterwards.

    It is in the last slot of a node: Python clears slots in alphabetical order, those of derived classes first. (What
    the garbage collector finds is freed without it: finalizers are called before the first object is freed.)
    """

    __slots__ = ("edges",)

    def __init__(self, edges: tuple[Edge | None, ...]) -> None:
        self.edges: tuple[Edge | None, ...] | None = edges

    def __del__(self) -> None:
        state = _freeing
        state.waiting.append(self.edges)
        self.edges = None
        if not state.busy:
            state.busy = True
            try:
                while state.waiting:
                    state.waiting.pop()  # frees nodes up to the next tails, which append theirs
            finally:
                state.busy = False


def add_tail(node: Node) -> None:
    """Give some nodes a `Tail`; called for each new node with edges where `FREES_BY_RECURSION`."""
    if not node.number % STRIDE:
        node.tail = Tail(node.edges)


class _Freeing(threading.local):
    def __init__(self) -> None:
        self.waiting: list[Any] = []
        self.busy = False


_freeing = _Freeing()


class Start(Node):
    """The node at which a walk starts: its inputs are the roots, whose gradients it returns."""

    __slots__ = ()

    def __init__(self, edges: tuple[Edge, ...], gradients: Any) -> None:
        enter(self, edges, (), None)
        self.saved = gradients

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the roots."""
        return self.saved


class AccumulateGrad(Node):
    """The node of a leaf, `variable`: adds the gradient that arrives into the leaf's `.grad`.

    Its `hooks` share the leaf's hooks, which live as long as the leaf; hooks on the node itself die with the node.
    """

    __slots__ = ("variable",)
    __init__ = object.__init__

    variable: Tensor

    def name(self) -> str:
        """Return PyTorch's name, with its namespace."""
        return "torch::autograd::AccumulateGrad"

    def _sequence_nr(self) -> int:
        return 2**64 - 1  # PyTorch's: before all others

    def _own_hooks(self) -> Hooks:
        hooks, of_leaf = super()._own_hooks(), self.variable._hooks
        if of_leaf is not None:
            hooks.tensor, hooks.accumulated = of_leaf.tensor, of_leaf.accumulated
        return hooks

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Add `g` into the leaf's `.grad`, then run its post-accumulate hooks."""
        leaf = self.variable
        if not leaf._requires_grad:  # frozen since it was recorded
            return ()
        hooks = leaf._hooks
        # Several threads may run backward through one model.
        with _accumulation_lock if hooks is None else hooks.lock:
            before = leaf._grad
            ordinary = g._receives is None and (before is None or before._receives is None)
            if not ordinary and not (g.layout is strided and (before is None or before.layout is strided)):
                leaf._grad = sparse.add_gradient(before, g, create_graph)
            elif before is None:
                leaf._grad = _copy(g, leaf, create_graph)
            elif create_graph:
                leaf._grad = before + g
            elif not ordinary:  # lazy conjugates or negatives
                before.add_(g)
            else:
                add_into(before._array, g._array)
                before._bump()
            if hooks is not None:
                _run_accumulated(hooks, leaf)
        return ()

    def without_gradient(self, create_graph: bool, needed: set[Node] | None) -> Any:
        """Run the post-accumulate hooks, as PyTorch does."""
        hooks = self.variable._hooks
        if hooks is not None:
            with hooks.lock:
                _run_accumulated(hooks, self.variable)
        return ()


def _run_accumulated(hooks: Hooks, leaf: Tensor) -> None:
    for hook in list(hooks.accumulated.values()):
        result = hook(leaf)
        if result is not None:
            _check_result(hook, result, leaf)
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


_accumulation_lock = threading.RLock()  # reentrant: an addition that is recorded may call hooks on saved tensors


def _copy(g: Tensor, leaf: Tensor, recorded: bool) -> Tensor:
    """Return a copy of `g` in memory for `.grad`, with the leaf's strides if the leaf is dense, else contiguous."""
    copy: Tensor = g.detach()
    copy._array = np.empty_like(leaf._array, order="K" if is_dense(leaf._array) else "C")
    copy._cell = [0, mode.runs.begun]
    if recorded:
        return copy.copy_(g)
    copy._array[...] = g._array
    return copy


def _accumulate_retained(tensor: Tensor, g: Tensor) -> None:
    """Accumulate `g` into `.grad` of a non-leaf (`retain_grad`)."""
    with _accumulation_lock:
        tensor._grad = g.clone() if tensor._grad is None else tensor._grad + g


def leaf_edge(leaf: Tensor) -> Edge:
    """Return the edge to a leaf; its `AccumulateGrad` lives as long as a graph refers to it."""
    reference = leaf._accumulator
    node = None if reference is None else reference()
    if node is None:
        with _creation_lock:  # two threads that ask for the edge of one leaf must get one node
            reference = leaf._accumulator
            node = (None if reference is None else reference()) or _accumulator(leaf)
    return (node, 0)


def _accumulator(leaf: Tensor) -> AccumulateGrad:
    """Return a new `AccumulateGrad` for a leaf."""
    node = AccumulateGrad()
    array = leaf._array
    node.variable = leaf
    enter(node, (), array.shape, array.dtype, end=True)
    if leaf._hooks is not None:
        node._own_hooks()
    leaf._accumulator = _weak_reference(node)
    return node


_creation_lock = threading.RLock()  # for objects of which a leaf or a node has at most one
_weak_reference = weakref.ref


def hooks_of_leaf(leaf: Tensor) -> Hooks:
    """Return the hooks of a leaf, created at the first call."""
    with _creation_lock:
        if leaf._hooks is None:
            leaf._hooks = Hooks()
            node = None if leaf._accumulator is None else leaf._accumulator()
            if node is not None:
                node._own_hooks()
    return leaf._hooks


# The order of leaves --------------------------------------------------------------------------------


class Watch:
    """A look ahead on a walk: what it will visit, and when the gradient of a leaf is complete.

    Each leaf is visited as in PyTorch, as soon as the last node that contributes to it has run: hooks see the `.grad`
    of finished layers, and memory that post-accumulate hooks free is free during the walk.

    Attributes:
        number: identifies the walk.
        nodes: the nodes that the walk will visit.
        into_leaves: whether gradients are accumulated into leaves, rather than returned (`autograd.grad`).
        completing: the numbers of the nodes that are the last to contribute to a leaf.
    """

    __slots__ = ("_last", "completing", "into_leaves", "nodes", "number")

    def __init__(self, start: Start, needed: set[Node] | None, into_leaves: bool) -> None:
        self.number, self.into_leaves = start.number, into_leaves
        self.nodes: set[Node] = {start}
        self._last: dict[int, int] = {}  # by the number of a leaf, the number of the last node to contribute to it
        self.look(start, needed)

    def look(self, start: Node, needed: set[Node] | None) -> None:
        """Look ahead from a node: the start, or a node whose edges have changed since the walk began."""
        stack, nodes, last = [start], self.nodes, self._last
        while stack:
            node = stack.pop()
            number = node.number
            for edge in node.edges:
                if edge is None:
                    continue
                child = edge[0]
                if child in nodes:
                    if child.number < 0 and number < last[child.number]:
                        last[child.number] = number
                elif needed is None or child in needed:
                    nodes.add(child)
                    if child.number < 0:
                        last[child.number] = number
                    else:
                        stack.append(child)
        self.completing = set(last.values())

    def serve(self, node: Node, waiting: dict[int, Any], heap: list[int]) -> None:
        """Put the leaves that `node` was the last to contribute to at the top of the heap."""
        for k, edge in enumerate(node.edges):
            if edge is not None and self._last.get(edge[0].number) == node.number:
                entry = waiting.pop(-edge[0].number, None)
                if entry is not None:
                    waiting[_FIRST + k] = entry
                    heappush(heap, _FIRST + k)


_FIRST = -(1 << 62)  # less than minus any creation number


#: How many walks one thread runs inside of each other; Python limits the depth of each thread's stack.
DEEPEST = 20
