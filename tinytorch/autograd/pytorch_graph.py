"""How PyTorch's graph looks where ours differs: names of nodes, the order of their inputs, nodes that we do not have.

Users and their programs read `grad_fn`, `next_functions`, `name()` and the members `_saved_*`, so these are PyTorch's.
All that imitates them is in this file. No call of an op and no backward pass reads it; it is read when a program asks
for one of these, and when hooks on nodes run (they receive the gradients of the inputs that PyTorch's node has).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tinytorch.core.graph import Node
from tinytorch.core.node import INPUT, OUTPUT, PLAIN, SHAPE, OpNode
from tinytorch.core.op import Op

__all__ = ["InnerStep"]


class Difference(NamedTuple):
    """How PyTorch's node, or nodes, for the call of an op differ from ours.

    Attributes:
        inputs: the positions of the inputs that PyTorch's node has, in its order; None for all inputs that can have a
            gradient.
        before: by the position of an input, the name of a node that PyTorch has between that input and this node.
        last: the names of a node that PyTorch has after this one if the output has one dimension, and if it has more
            than two.
    """

    inputs: tuple[int, ...] | None = None
    before: Mapping[int, str] = {}
    last: tuple[str, str] | None = None


#: By the node's name, also with the op's name before it. Overloads that take a number have no input for that.
_DIFFERENCES = {
    "FillBackward0": Difference((0,)),
    "FillBackward2": Difference((0,)),
    "IndexFillBackward0": Difference((0,)),
    "MaskedFillBackward0": Difference((0,)),
    "PowBackward0": Difference((0,)),
    "PowBackward2": Difference((1,)),
    "ScatterBackward1": Difference((0,)),
    "ZeroBackward0": Difference((0,)),
    # PyTorch transposes the weight, makes a matrix of the input, and views the product: `addmm(bias, x, weight.t())`.
    "linear.MmBackward0": Difference((0, 1), {1: "TBackward0"}, ("SqueezeBackward4", "UnsafeViewBackward0")),
    "linear.AddmmBackward0": Difference((2, 0, 1), {1: "TBackward0"}, ("ViewBackward0", "ViewBackward0")),
    "rms_norm.MulBackward0": Difference(before={0: "MulBackward0"}),
    "_cross_entropy.NllLossBackward0": Difference(before={0: "LogSoftmaxBackward0"}),
    "_cross_entropy.NllLoss2DBackward0": Difference(before={0: "LogSoftmaxBackward0"}),
}

#: The names of PyTorch's nodes that are written by hand have their namespace.
_WITH_NAMESPACE = {
    "CopyBackwards": "torch::autograd::CopyBackwards",
    "CopySlices": "torch::autograd::CopySlices",
    "NotImplemented": "torch::autograd::NotImplemented",
}


@functools.cache
def _difference(cls: type[OpNode]) -> Difference:
    for base in cls.__mro__:  # (a node that is shown as PyTorch's last one has the inputs of the product)
        name = base.__name__
        difference = _DIFFERENCES.get(f"{cls.op.name}.{name}") or _DIFFERENCES.get(name)
        if difference is not None:
            return difference
        if base is cls.op.node_class:
            break
    return Difference()


def node_name(node: OpNode) -> str:
    """Return the name of an op's node: that of its class, in some cases with PyTorch's namespace."""
    name = type(node).__name__
    return _WITH_NAMESPACE.get(name, name)


def inputs_shown(node: OpNode) -> Sequence[int]:
    """Return which of the edges of an op's node are inputs of PyTorch's node, in its order."""
    op, inputs = node.op, _difference(type(node)).inputs
    if inputs is not None:
        return inputs
    if op.many is not None:
        return range(len(node.edges))
    return [k for k, constant in enumerate(op._constant) if not constant]


# Nodes that PyTorch has besides ours ----------------------------------------------------------------


class InnerStep(Node):
    """A node that PyTorch has for a part of what one op does here. It exists to be looked at.

    Two that stand for the same part of the same node are equal.
    """

    __slots__ = ("node", "position")

    node: Node  # the op's
    position: int  # that of the op's input before which the step is; -1 for the product before the last step

    def __init__(self, node: Node, position: int) -> None:
        self.node, self.position = node, position
        self.edges = () if position < 0 else (node.edges[position],)
        self.hooks, self.number = None, node.number

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The node of the input; of a product, those of all inputs."""
        return _functions_before(self.node) if self.position < 0 else super().next_functions

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InnerStep) and (self.node, self.position) == (other.node, other.position)

    def __hash__(self) -> int:
        return hash((self.node, self.position))

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(
            f"{self.name()} is no step of its own here but a part of {self.node.name()}: register hooks on that, or "
            "on the tensor"
        )

    register_hook = register_prehook = __call__ = backward = _refuse


class _LastStep:
    """Marks the class of a node that is shown as PyTorch's last node for it, with the product before that."""

    __slots__ = ()


@functools.cache
def _inner_class(name: str) -> Any:
    return type(name, (InnerStep,), {"__slots__": ()})


@functools.cache
def _last_step_class(cls: type[OpNode], name: str) -> type[OpNode]:
    return type(name, (_LastStep, cls), {"__slots__": ()})


def class_shown(node: OpNode) -> type[OpNode]:
    """Return the class that an op's node has for users: the name of the class is the name of PyTorch's last node."""
    cls = type(node)
    if always_shown_as(cls) or len(node.shape) == 2:
        return cls
    names = _difference(cls).last
    assert names is not None
    return _last_step_class(cls, names[len(node.shape) > 1])


def always_shown_as(cls: type[OpNode]) -> bool:
    """Return whether all nodes of a class have that class for users."""
    return issubclass(cls, _LastStep) or _difference(cls).last is None


def next_functions(node: OpNode) -> tuple[tuple[Node | None, int], ...]:
    """Return PyTorch's nodes before that of an op, each with the number of its output."""
    if isinstance(node, _LastStep):
        product = type(node).__mro__[2].__name__
        return ((_inner_class(product)(node, -1), 0),)
    return _functions_before(node)


def _functions_before(node: Any) -> tuple[tuple[Node | None, int], ...]:
    cls: Any = type(node)
    functions, before = super(OpNode, node).next_functions, _difference(cls).before
    return tuple(
        [
            (_inner_class(before[i])(node, i), 0) if function[0] and i in before else function
            for i, function in zip(node._inputs(), functions, strict=True)
        ]
    )


# What a node has saved ------------------------------------------------------------------------------

#: Reductions over several dimensions: they show a single one as a tuple.
_OVER_SEVERAL_DIMENSIONS = ("Amax", "Amin", "LinalgVectorNorm", "Logsumexp", "Mean", "Nansum", "Std", "Sum", "Var")

#: The name of the second input where it is not `other`, by the node's name.
_SECOND_INPUT = {
    "BinaryCrossEntropy": "target",
    "BinaryCrossEntropyWithLogits": "target",
    "Bmm": "mat2",
    "Dot": "tensor",
    "HuberLoss": "target",
    "Mm": "mat2",
    "MseLoss": "target",
    "Mv": "vec",
    "Pow": "exponent",
    "SmoothL1Loss": "target",
}

#: PyTorch's enumeration of the reductions of a loss.
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def _stem(op: Op) -> str:
    """Return the name of an op's nodes without "Backward0"."""
    return op.node_class.__name__.partition("Backward")[0]


def saved_name(op: Op, source: tuple[int, Any]) -> str | None:
    """Return PyTorch's name of a saved value, given its source (see `Plan`); None if PyTorch saves no such value."""
    kind, position = source
    if kind == OUTPUT:
        return "result" if position == 0 else "indices"
    if kind not in (INPUT, PLAIN, SHAPE):
        return None
    argument = op.arguments[position]
    if argument == "x":
        argument = "input" if _stem(op).startswith("Native") else "self"
    elif argument == "y":
        argument = _SECOND_INPUT.get(_stem(op), "other")
    return f"{argument}_sym_sizes" if kind == SHAPE else argument


def argument_shown(op: Op, name: str, value: Any) -> Any:
    """Return a saved argument, under the name that PyTorch has for it, as PyTorch's node shows it."""
    if name == "dim" and isinstance(value, int) and _stem(op) in _OVER_SEVERAL_DIMENSIONS:
        value = (value,)
    return _in_cpp(value)


def _in_cpp(value: Any) -> Any:
    """Return an argument as C++ has it: integers without sign, sequences as tuples, reductions as numbers."""
    if isinstance(value, (tuple, list)):
        return tuple([_in_cpp(item) for item in value])
    if isinstance(value, int) and value < 0:
        return value + 2**64
    return _REDUCTIONS.get(value, value) if isinstance(value, str) else value
