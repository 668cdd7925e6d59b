"""PyTorch's face of a node: what users see of it and may ask it for, and what it saved, under PyTorch's names."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.autograd.hooks import RemovableHandle, add_hook
from tinytorch.core.device import cpu, device
from tinytorch.core.graph import FREED, AccumulateGrad, Edge, Hook, Node, within
from tinytorch.core.mode import local
from tinytorch.core.node import INPUT, OUTPUT, PACKED, PLAIN, RESIDUAL, SHAPE, TENSORS, OpNode, Plan
from tinytorch.core.op import Op
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import FLOATS

__all__ = ["InputMetadata", "SavedTensor", "attached", "packed", "unpacked"]


def _call(self: Node, *gs: Any, **kwargs: Any) -> Any:
    """Return the gradients of the inputs, given those of the outputs; no hooks run."""
    if kwargs:
        raise TypeError("keyword arguments are not supported")
    if len(gs) != self.outputs:
        raise TypeError(f"expected {self.outputs} arguments, got {len(gs)} instead")
    for k, g in enumerate(gs):
        if g is not None and not hasattr(g, "_array"):
            raise TypeError(f"argument {k} is not a Variable")
    recording = local.state.grad
    if any(g is not None for g in gs):
        grads = self.backward(gs if self.outputs > 1 else gs[0], recording, None)
    else:
        grads = self.without_gradient(recording, None)
    found = tuple([grads[i] for i in self._inputs()])
    return found[0] if len(found) == 1 else found


def _next_functions(self: Node) -> tuple[tuple[Node | None, int], ...]:
    """Per input, the node that made it and which output of it; `(None, 0)` where no gradient flows."""
    edges = [self.edges[i] for i in self._inputs()]
    return tuple([(None, 0) if edge is None else (edge[0].shown(), edge[1]) for edge in edges])


def _metadata(self: Node) -> dict[Any, Any]:
    """A dictionary for the user's own notes on this node."""
    return self.__dict__.setdefault("_metadata", {})


def _input_metadata(self: Node) -> tuple[InputMetadata, ...]:
    """What is known of the gradients that this node gets: one for each output."""
    if self.outputs == 1:
        return (InputMetadata(list(self.shape), dtypes.from_numpy_dtype(self.dtype)),)
    return tuple(
        [
            InputMetadata(list(shape), dtypes.from_numpy_dtype(kind))
            for shape, kind in zip(self.shape, self.dtype, strict=True)
        ]
    )


def _sequence_nr(self: Node) -> int:
    return int(self.number)  # (those of a compiled function's have others in between)


def _register_hook(self: Node, fn: Hook) -> RemovableHandle:
    """Run `fn(grad_inputs, grad_outputs)` after this node; it may return new `grad_inputs`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x.exp()
        >>> handle = y.grad_fn.register_hook(lambda grad_inputs, grad_outputs: (grad_outputs[0] * 2,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    return add_hook(self._own_hooks().post, fn)


def _register_prehook(self: Node, fn: Hook) -> RemovableHandle:
    """Run `fn(grad_outputs)` before this node; it may return new `grad_outputs`.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x.clone()
        >>> handle = y.grad_fn.register_prehook(lambda grad_outputs: (grad_outputs[0] * 2,))
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """
    return add_hook(self._own_hooks().pre, fn)


def _repr(self: Node) -> str:
    return f"<{type(self).__name__} object at {id(self):#x}>"


def _sequence_nr_of_leaf(self: AccumulateGrad) -> int:
    return 2**64 - 1  # PyTorch's: before all others


def _next_functions_of_op(self: OpNode) -> tuple[tuple[Node | None, int], ...]:
    """Per input, the node that made it and which output of it; `(None, 0)` where no gradient flows."""
    found = _next_functions(self)
    if not self._within:
        return found
    return tuple(
        [
            (within(self._within[i], self, i), 0) if node and i in self._within else (node, nr)
            for i, (node, nr) in zip(self._inputs(), found, strict=True)
        ]
    )


def _pack(self: OpNode, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
    """Keep what `pack` makes of the saved tensors instead of these; backward gets them from `unpack`."""
    plan = self.plan
    if not plan.holds_tensors or plan.packed is plan:
        return
    items = list(self.saved)
    for k, (kind, _) in enumerate(plan.sources):
        if kind in TENSORS:
            items[k] = (packed(self._alone(k), pack), unpack)
    self.plan, self.saved = _of_packed(plan), items


def _pack_one(self: OpNode, k: int, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
    """Keep what `pack` makes of one saved tensor instead of it."""
    items, before = list(self.saved), self.plan
    items[k] = (packed(self._alone(k), pack), unpack)
    plan = Plan(before.joint, before.many, before.any_number)
    plan.rules, plan.holds_tensors = before.rules, True
    plan.sources = list(before.sources)
    plan.sources[k] = (PACKED, before.sources[k])
    self.plan, self.saved = plan, items


def _alone(self: OpNode, k: int) -> Tensor:
    """Return a saved tensor for a hook: without its edge, which would make a cycle."""
    kind, item = self.plan.sources[k][0], self.saved[k]
    tensor: Tensor = item[0]
    if kind != INPUT:
        tensor = wrap(tensor)
        tensor._cell = item[1] or tensor._cell
        tensor._requires_grad = kind == OUTPUT and tensor._array.dtype.kind in FLOATS
    return tensor


def _unpack_by_hook(self: OpNode, source: tuple[int, Any], item: tuple[Any, Any], create_graph: bool) -> Tensor | None:
    kind, position = source
    if kind == RESIDUAL and create_graph:
        return None
    tensor = unpacked(*item)
    if not create_graph:
        return tensor
    edge = self.edges[self.op.inputs.index(position)] if kind == INPUT else (self, position)
    return attached(tensor, edge)


def _saved_sources(self: OpNode) -> dict[str, tuple[tuple[int, Any], int | None]]:
    """Return by PyTorch's name what formulas of the op need, and its index among what was saved, if it was."""
    sources = [source[1] if source[0] == PACKED else source for source in self.plan.sources]
    if (PLAIN, None) in sources:  # a view op's
        sources = [(SHAPE, 0), *[(PLAIN, i) for i in range(1, len(sources))]]
    found: dict[str, tuple[tuple[int, Any], int | None]] = {}
    for source, name in self._shown_names().items():
        if source not in sources and (PLAIN, source[1]) in sources:
            source = (PLAIN, source[1])  # a number was given
        found[name] = source, sources.index(source) if source in sources else None
    return found


def _shown_names(self: OpNode) -> dict[tuple[int, Any], str]:
    """Return PyTorch's names of what the formulas need when all inputs are tensors, by what it is."""
    op = self.op
    tensors = dict.fromkeys(op.inputs, True)
    wanted = {op._source(want, tensors) for wants in op.wants.values() for want in wants}
    names = {source: saved_name(op, source) for source in wanted}
    return {source: name for source, name in names.items() if name is not None}


def _shown(self: OpNode) -> Any:
    """Return the node, whose class has `_saved_*` from now on: `__getattr__` would slow down all attributes."""
    cls = type(self)
    if "_shows" not in cls.__dict__:
        cls._shows = True
        for source, name in self._shown_names().items():
            setattr(cls, f"_saved_{name}", property(functools.partial(_saved_value, name=name)))
            if source[0] in TENSORS:
                setattr(cls, f"_raw_saved_{name}", property(functools.partial(_raw_saved_value, name=name)))
    return self


def _of_packed(plan: Plan) -> Plan:
    """Return a plan for what hooks have packed of the tensors that it saves."""
    if plan.packed is None:
        made = plan.packed = Plan(plan.joint, plan.many, plan.any_number)
        made.rules, made.holds_tensors, made.packed = plan.rules, plan.holds_tensors, made
        made.sources = [(PACKED, source) if source[0] in TENSORS else source for source in plan.sources]
    return plan.packed


class InputMetadata(NamedTuple):
    """The shape and dtype of a gradient that a node gets."""

    shape: list[int]
    dtype: dtypes.dtype
    device: device = cpu
    is_nested_tensor: bool = False
    is_cpp_nested_tensor: bool = False


def _saved_value(node: OpNode, name: str) -> Any:
    """Return what a node saved, as the tensor or the plain value that it was."""
    (kind, position), k = node._saved_sources()[name]
    if k is None:
        return None
    if node.saved is None:
        raise RuntimeError(FREED)
    item = node.saved[k]
    if kind in TENSORS:
        tensor = node._unpack(node.plan.sources[k], item, True)
        return tensor.detach() if name == "indices" else tensor
    if name == "other" and position in node.op.inputs:
        return wrap(np.asarray(item))
    if name == "dim" and isinstance(item, int) and _stem(node.op) in _OVER_SEVERAL:
        item = (item,)
    return _as_shown(item)


def _raw_saved_value(node: OpNode, name: str) -> SavedTensor:
    return SavedTensor(node, node._saved_sources()[name][1])


def saved_name(op: Op, source: tuple[int, Any]) -> str | None:
    """Return PyTorch's name of something saved; None for what is ours alone."""
    kind, position = source
    if kind == OUTPUT:
        return "result" if position == 0 else "indices"
    if kind not in (INPUT, PLAIN, SHAPE):
        return None
    argument = op.arguments[position]
    node = _stem(op)
    if argument == "x":
        argument = "input" if node.startswith("Native") else "self"
    elif argument == "y":
        argument = next((name for name, nodes in _SECOND.items() if node in nodes), "other")
    return f"{argument}_sym_sizes" if kind == SHAPE else argument


def _stem(op: Op) -> str:
    """Return the name of an op's nodes without "Backward0"."""
    return op.node_class.__name__.partition("Backward")[0]


# Reductions over several dimensions.
_OVER_SEVERAL = ("Amax", "Amin", "LinalgVectorNorm", "Logsumexp", "Mean", "Nansum", "Std", "Sum", "Var")


# What PyTorch calls the second input where it is not `other`, by the nodes' names.
_SECOND = {
    "exponent": ("Pow",),
    "mat2": ("Mm", "Bmm"),
    "vec": ("Mv",),
    "tensor": ("Dot",),
    "target": ("BinaryCrossEntropy", "BinaryCrossEntropyWithLogits", "HuberLoss", "MseLoss", "SmoothL1Loss"),
}


_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _as_shown(value: Any) -> Any:
    """Return an argument as PyTorch's nodes show it: integers without sign, sequences as tuples."""
    if isinstance(value, (tuple, list)):
        return tuple([_as_shown(each) for each in value])
    if isinstance(value, int) and value < 0:
        return value + 2**64
    return _REDUCTIONS.get(value, value) if isinstance(value, str) else value


class SavedTensor:
    """One tensor that a node keeps, such as `grad_fn._raw_saved_self`: hooks can be put on it.

    Example:
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x.pow(2)
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.double(), lambda t: t.float())
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, node: Any = None, index: int | None = None) -> None:
        if node is None:
            raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")
        self._node, self._index = node, index

    @property
    def data(self) -> Any:
        """What is kept: what a pack hook made, or the tensor."""
        item = self._node.saved[self._index]
        return item[0] if callable(item[1]) else self._node._alone(self._index)

    @property
    def unpack_hook(self) -> Callable[[Any], Any] | None:
        """The hook that makes a tensor of `data`, or None."""
        item = self._node.saved[self._index]
        return item[1] if callable(item[1]) else None

    def register_hooks(self, pack_hook: Any = None, unpack_hook: Any = None) -> None:
        """Keep what `pack_hook` makes of the tensor; `unpack_hook` gives the tensor back when it is needed.

        Raises:
            TypeError: a hook is not callable.
            RuntimeError: nothing is kept here, or no longer; there are hooks already.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): incompatible function arguments: pass two callables")
        node, k = self._node, self._index
        if k is not None and node.saved is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the "
                "graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need "
                "to backward through the graph a second time or if you need to access saved variables after calling "
                "backward."
            )
        if k is None or node.saved[k] is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if callable(node.saved[k][1]):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        node.pack_one(k, pack_hook, unpack_hook)


def packed(tensor: Tensor, pack: Callable[[Tensor], Any]) -> Any:
    """Return what a pack hook makes of a tensor."""
    cell = tensor._cell
    version = 0 if cell is None else cell[0]
    with no_grad():
        value = pack(tensor)
    if cell is not None and cell[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return value


def unpacked(value: Any, unpack: Callable[[Any], Any]) -> Tensor:
    """Return the tensor that an unpack hook makes of a packed value."""
    with no_grad():
        tensor = unpack(value)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    return tensor


def attached(tensor: Tensor, edge: Edge | None) -> Tensor:
    """Return what an unpack hook gave as the tensor that was saved: in its place of the graph, `edge`."""
    if edge is None or tensor._edge is edge or getattr(edge[0], "variable", None) is tensor:
        return tensor
    again: Tensor = wrap(tensor._array)
    again._cell, again._requires_grad = tensor._cell, True
    if edge[0].number > 0:
        again._edge = edge
    else:
        again._accumulator = weakref.ref(edge[0])  # it stands for the leaf
    return again


for _class, _name, _member in (
    (Node, "__call__", _call),
    (Node, "next_functions", property(_next_functions)),
    (Node, "metadata", property(_metadata)),
    (Node, "_input_metadata", property(_input_metadata)),
    (Node, "_sequence_nr", _sequence_nr),
    (Node, "register_hook", _register_hook),
    (Node, "register_prehook", _register_prehook),
    (Node, "__repr__", _repr),
    (OpNode, "next_functions", property(_next_functions_of_op)),
    (OpNode, "pack", _pack),
    (OpNode, "pack_one", _pack_one),
    (OpNode, "_alone", _alone),
    (OpNode, "_unpack_by_hook", _unpack_by_hook),
    (OpNode, "_saved_sources", _saved_sources),
    (OpNode, "_shown_names", _shown_names),
    (OpNode, "shown", _shown),
    (AccumulateGrad, "_sequence_nr", _sequence_nr_of_leaf),
):
    setattr(_class, _name, _member)
