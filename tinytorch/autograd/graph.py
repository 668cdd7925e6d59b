"""The graph: `Node`, `AccumulateGrad`, hooks and their handles (floor 2).

An *edge* is a pair `(node, number)`: the node that made a tensor, and which of its outputs the tensor is. A tensor
that requires grad and has no edge is a leaf; the edge to it is `(AccumulateGrad, 0)`, made when first needed.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinytorch._tensor import Tensor
    from tinytorch.autograd.op import Op, Plan

Edge = tuple["Node", int]

#: Creation numbers. They order the graph: a node's number is greater than those of all that it depends on.
numbers = itertools.count(1)


class RemovableHandle:
    """What registering a hook returns; `remove()` takes the hook away. Also a context manager.

    Example:
        >>> import tinytorch as torch
        >>> x = torch.ones(2, requires_grad=True)
        >>> with x.register_hook(lambda g: g * 10):
        ...     (x * 2).sum().backward()
        >>> x.grad
        tensor([20., 20.])
    """

    _ids = itertools.count()

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.id = next(RemovableHandle._ids)
        self._dicts = [weakref.ref(hooks_dict)]
        extras = extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self._dicts += [weakref.ref(extra) for extra in extras if extra is not None]

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        for reference in self._dicts:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


class Hooks:
    """The hooks of one node, or of one leaf: in the order in which they run.

    `tensor[number]` hold the tensor hooks of an output, `pre` the node's hooks on all its outputs' gradients,
    `retain[number]` the tensor that keeps its `.grad`, `post` what sees the gradients of inputs and outputs;
    `accumulated` are a leaf's hooks that run when its `.grad` is up to date.
    """

    __slots__ = ("accumulated", "post", "pre", "retain", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, OrderedDict[int, Callable[..., Any]]] = {}
        self.pre: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.retain: dict[int, weakref.ref[Tensor]] = {}
        self.post: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self.accumulated: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def run_tensor_hooks(hooks: Any, g: Tensor) -> Tensor:
    """Return `g` after each hook had its say: a hook that returns a tensor replaces the gradient."""
    for hook in list(hooks.values()):
        result = hook(g)
        if result is not None:
            _check_replacement(result, g)
            g = result
    return g


def _check_replacement(result: Any, g: Any) -> None:
    if not hasattr(result, "_array"):
        raise TypeError(f"expected Tensor, but hook returned '{type(result).__name__}'")
    if g is not None and result.shape != g.shape:
        raise RuntimeError(
            f"hook '<hook>' has changed the size of value: {tuple(g.shape)} to {tuple(result.shape)}"
        )


class Node:
    """A step of the graph: knows its inputs' edges and turns gradients of its outputs into those of its inputs.

    Attributes:
        edges: per input the edge it came by, or None where no gradient flows.
        saved: what the formulas need, as `plan` says; None once freed.
        number: the creation number.
        shape, dtype: those of the output (NumPy's terms); tuples of them where a node has several outputs.
        hooks: a `Hooks`, or None.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "dtype",
        "edges",
        "hooks",
        "number",
        "plan",
        "saved",
        "shape",
    )

    op: Op
    outputs = 1  # how many; where there are several, gradients come as a tuple

    edges: tuple[Edge | None, ...]
    saved: Any
    number: int
    plan: Plan
    hooks: Hooks | None
    shape: Any
    dtype: Any

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs (None where none flows), given `g`, those of the outputs."""
        raise NotImplementedError

    def release(self) -> None:
        """Free what was saved for the backward pass."""

    def accepts(self, shape: tuple[int, ...], expected: tuple[int, ...]) -> bool:
        """Return whether a gradient of `shape` may be summed to the input's shape, `expected`."""
        return False

    def name(self) -> str:
        """Return the name of the step, as PyTorch's: "MulBackward0"."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Per input, the node that made it and which output of it; `(None, 0)` where no gradient flows."""
        return tuple((None, 0) if edge is None else edge for edge in self.edges)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes on this node."""
        notes: dict[Any, Any] = self.__dict__.setdefault("_metadata", {})
        return notes

    def _sequence_nr(self) -> int:
        return self.number

    def _own_hooks(self) -> Hooks:
        if self.hooks is None:
            self.hooks = Hooks()
        return self.hooks

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Run `fn(grad_inputs, grad_outputs)` after this node; it may return new `grad_inputs`."""
        return add_hook(self._own_hooks().post, fn)

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Run `fn(grad_outputs)` before this node; it may return new `grad_outputs`."""
        return add_hook(self._own_hooks().pre, fn)

    def run_hooks_before(self, g: Any) -> Any:
        """Return `g` after the hooks of the output tensors, the node's pre-hooks and `retain_grad`."""
        hooks = self.hooks
        assert hooks is not None
        gs = list(g) if self.outputs > 1 else [g]
        for number, each in list(hooks.tensor.items()):
            if gs[number] is not None:
                gs[number] = run_tensor_hooks(each, gs[number])
        for hook in list(hooks.pre.values()):
            result = hook(tuple(gs))
            if result is not None:
                result = tuple(result) if isinstance(result, (tuple, list)) else (result,)
                if len(result) != len(gs):
                    raise RuntimeError(
                        f"hook '<prehook>' has returned an incorrect number of values (got {len(result)}, "
                        f"but expected {len(gs)})"
                    )
                for new, old in zip(result, gs, strict=True):
                    if new is not None:
                        _check_replacement(new, old)
                gs = list(result)
        for number, reference in list(hooks.retain.items()):
            tensor = reference()
            if tensor is not None and gs[number] is not None:
                keep(tensor, gs[number])
        return tuple(gs) if self.outputs > 1 else gs[0]

    def run_hooks_after(self, grads: Any, g: Any) -> Any:
        """Return the inputs' gradients after the node's hooks."""
        hooks = self.hooks
        assert hooks is not None
        for hook in list(hooks.post.values()):
            result = hook(tuple(grads), g if self.outputs > 1 else (g,))
            if result is not None:
                result = result if isinstance(result, (tuple, list)) else (result,)
                if len(result) != len(grads):
                    raise RuntimeError(
                        f"hook '<hook>' has returned an incorrect number of values (got {len(result)}, "
                        f"but expected {len(grads)})"
                    )
                for new, old in zip(result, grads, strict=True):
                    if new is not None:
                        _check_replacement(new, old)
                grads = list(result)
        return grads

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def add_hook(
    hooks: OrderedDict[int, Callable[..., Any]], fn: Callable[..., Any]
) -> RemovableHandle:
    """Enter `fn` and return the handle that takes it out."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = fn
    return handle


_accumulating = threading.Lock()  # several threads may run backward through one model


class Start(Node):
    """Where a walk starts: its inputs are the roots, and their gradients are given."""

    __slots__ = ()

    def __init__(self, edges: tuple[Edge, ...], gradients: Any) -> None:
        self.edges, self.saved, self.hooks, self.number = edges, gradients, None, next(numbers)

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the roots."""
        return self.saved


class AccumulateGrad(Node):
    """The end of every path: adds the gradient that arrives into `.grad` of its leaf, `variable`."""

    __slots__ = ("variable",)

    variable: Tensor

    def name(self) -> str:
        """Return PyTorch's name, which has its namespace."""
        return "torch::autograd::AccumulateGrad"

    def run_hooks_before(self, g: Any) -> Any:
        """Return `g` after the leaf's own hooks and this node's."""
        leaf_hooks = self.variable._hooks
        if leaf_hooks is not None and leaf_hooks.tensor:
            g = run_tensor_hooks(leaf_hooks.tensor[0], g)
        return g if self.hooks is None else super().run_hooks_before(g)

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Add `g` into the leaf's `.grad`, then run its post-accumulate hooks."""
        leaf = self.variable
        with _accumulating:
            if create_graph:
                leaf._grad = g.clone() if leaf._grad is None else leaf._grad + g
            elif leaf._grad is None:
                leaf._grad = _owned(g, leaf)
            elif leaf._grad._requires_grad:
                leaf._grad = leaf._grad + g
            else:
                leaf._grad._array += g._array
                leaf._grad._bump()
        hooks = leaf._hooks
        if hooks is not None:
            for hook in list(hooks.accumulated.values()):
                hook(leaf)
        return ()


def _owned(g: Tensor, leaf: Tensor) -> Tensor:
    """Return `g` itself if nothing else holds it or its memory, else a copy: `.grad` is the leaf's own."""
    array = g._array
    memory = array if array.base is None else array.base
    alone = (
        not g._requires_grad
        and sys.getrefcount(g) <= _HELD_G  # no hook and no caller keeps it
        and sys.getrefcount(memory) <= (_HELD_ARRAY if memory is array else 2)
        and array.strides == leaf._array.strides
        and array.flags.writeable
    )
    if alone:
        return g
    copy = g.detach()
    copy._array = array.copy() if array.strides == leaf._array.strides else array.copy("C")
    copy._cell = [0]
    return copy


# References that the walk itself holds when it hands a gradient to a leaf: the walk's variable, the two calls'
# arguments and getrefcount's own; for the array, the tensor's slot, `array`, `memory` and getrefcount's own.
_HELD_G = 4
_HELD_ARRAY = 4


def keep(tensor: Tensor, g: Tensor) -> None:
    """Put `g` into `.grad` of a non-leaf (`retain_grad`, `backward(inputs=)`), added to what is there."""
    if tensor._grad is None:
        tensor._grad = g.clone()
    else:
        tensor._grad = tensor._grad + g


def leaf_edge(leaf: Tensor) -> Edge:
    """Return the edge to a leaf; its `AccumulateGrad` lives as long as some graph leads to it."""
    reference = leaf._accumulator
    if reference is not None:
        node = reference()
        if node is not None:
            return (node, 0)
    node = _new(AccumulateGrad)
    array = leaf._array
    node.variable, node.shape, node.dtype = leaf, array.shape, array.dtype
    node.edges = node.saved = ()
    node.hooks = None
    node.number = -next(
        numbers
    )  # below every other node's, so that leaves come last and get one sum
    leaf._accumulator = _weakly(node)
    return (node, 0)


_new: Any = object.__new__
_weakly = weakref.ref
