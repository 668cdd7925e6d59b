"""The recorded call of an op: `Plan`, what it saves for backward, and `OpNode`, its node of the graph.

A formula's parameter names say what it needs: `g`, the gradient of the output, comes first; then any argument of the
op, `out`, `<input>_shape`, or a residual by its name. Exactly what the *needed* formulas name is saved, determined once
per set of inputs that need a gradient (a `Plan`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from tinytorch.core.graph import FREED, Node
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import FLOATS

Formula = Callable[..., Any]

# The kinds of saved values: how a value is saved and unpacked.
INPUT, OUTPUT, PLAIN, RESIDUAL, SHAPE, PROPERTY, PACKED = range(7)

TENSORS = (INPUT, OUTPUT, RESIDUAL, PACKED)

# By the kind of a source, the expression of the saved value. A tensor without a version cell, as inference tensors
# are, makes it a TypeError.
_SAVED = {
    INPUT: "(a{i}, a{i}._cell[0])",
    OUTPUT: "({out}, None, 0)",  # a later output is new memory that only its own tensor shares
    PLAIN: "a{i}",
    RESIDUAL: "(residuals[{i}], None, 0)",
    SHAPE: "a{i}._array.shape",
    PROPERTY: "PLAN.sources[{k}][1](({arguments}))",
}

INFERENCE_NOT_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


class Plan:
    """What to save for one set of inputs that need gradients, and the formulas that use it.

    Attributes:
        sources: per saved value (kind, position): which input, argument, output or residual it is.
        rules: (input's position, formula, indices into the saved values of its arguments after `g`).
        holds_tensors: whether any saved value is a tensor (otherwise a second backward does no harm).
        keep: the function that returns the saved values of a call, see `compile`.
    """

    __slots__ = ("any_number", "holds_tensors", "index", "joint", "keep", "many", "packed", "rules", "sources")

    keep: Callable[..., list[Any]]

    def __init__(self, joint: bool, many: bool, any_number: bool) -> None:
        self.joint = joint  # one rule for all inputs, told which are needed
        self.many = many  # one rule for a sequence of tensors
        self.any_number = any_number  # of outputs
        self.sources: list[tuple[int, Any]] = []
        self.index: dict[tuple[int, Any], int] = {}
        self.rules: list[tuple[int, Formula, tuple[int, ...]]] = []
        self.holds_tensors = False
        self.packed: Plan | None = None  # the same for values that hooks have packed

    def compile(self, count: int, several: bool) -> None:
        """Generate `keep(*arguments, out, cell, residuals)`: one list display, since a loop over the sources is slower.

        Args:
            count: the number of the op's arguments.
            several: `out` is a tuple of arrays rather than an array; `cell` is the first output's version cell.
        """
        arguments = "".join([f"a{i}, " for i in range(count)])
        saved = []
        for k, (kind, i) in enumerate(self.sources):
            out = f"out[{i}]" if several else "out"
            first = (kind, i) == (OUTPUT, 0)
            expression = f"({out}, cell, cell[0])" if first else _SAVED[kind]
            saved.append(expression.format(i=i, k=k, out=out, arguments=arguments))
        text = f"lambda {arguments}out, cell, residuals: [{', '.join(saved)}]"
        self.keep = eval(text, {"PLAN": self})

    def save(self, source: tuple[int, Any]) -> int:
        """Return the index under which `source` is saved, entering it when new."""
        if source not in self.index:
            self.index[source] = len(self.sources)
            self.sources.append(source)
            self.holds_tensors |= source[0] in TENSORS
        return self.index[source]


class OpNode(Node):
    """A recorded call of an op; each op has a subclass of its own, named as PyTorch names it."""

    __slots__ = ()
    __init__ = object.__init__  # made by the callers below, faster so than by `object.__new__`
    _shows: bool  # whether the class has `_saved_*`
    # Where PyTorch's node has other inputs, or in another order; and by input the name of a node that PyTorch has
    # before it, which our op has within itself.
    _order: ClassVar[tuple[int, ...] | None] = None
    _within: ClassVar[dict[int, str]] = {}

    def release(self) -> None:
        """Free what was saved: a later backward through this node is an error."""
        if self.plan.holds_tensors:
            self.saved = None

    def _inputs(self) -> Sequence[int]:
        op = self.op
        if self._order is not None:
            return self._order
        if op.many is not None:
            return range(len(self.edges))
        return [k for k, constant in enumerate(op._constant) if not constant]

    def _differentiable(self) -> int:
        return self.op.last + 1 if self.op.outputs else self.outputs

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs by the op's formulas."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        plan = self.plan
        if plan.any_number and self.outputs == 1:
            g = (g,)  # an op of any number of outputs gets a tuple also for one
        values = []
        for source, item in zip(plan.sources, saved):  # noqa: B905  (a keyword costs time here)
            kind = source[0]
            if kind not in TENSORS:
                values.append(item)
            elif create_graph or kind != INPUT or item[0]._cell[0] != item[1]:
                values.append(self._unpack(source, item, create_graph))
            else:  # the usual case, in line
                values.append(item[0])
        edges = self.edges
        if plan.joint:
            needs = tuple(edge is not None and (needed is None or edge[0] in needed) for edge in edges)
            _, formula, indices = plan.rules[0]
            return formula(g, needs, *[values[k] for k in indices])
        if plan.many:
            _, formula, indices = plan.rules[0]
            return formula(g, *[values[k] for k in indices])
        grads: list[Any] = [None] * len(edges)
        for i, formula, indices in plan.rules:
            if needed is None or edges[i][0] in needed:  # type: ignore[index]
                if len(indices) == 1:  # the usual numbers of arguments, without building a list
                    grads[i] = formula(g, values[indices[0]])
                elif not indices:
                    grads[i] = formula(g)
                else:
                    grads[i] = formula(g, *[values[k] for k in indices])
        return grads

    def _unpack(self, source: tuple[int, Any], item: Any, create_graph: bool) -> Any:
        """Return a saved tensor, having checked that nobody wrote to its memory since."""
        kind, position = source
        if kind == PACKED:
            return self._unpack_by_hook(position, item, create_graph)
        if kind == INPUT:
            tensor, version = item
            if tensor._cell[0] != version:
                raise modified(self, tensor._array, self._producer(position), tensor._cell[0], version)
            return self._as_recorded(tensor, position) if create_graph else tensor
        array, cell, version = item
        if cell is not None and cell[0] != version:
            raise modified(self, array, f"output {position} of {self.name()}", cell[0], version)
        if kind == RESIDUAL:
            if create_graph and array.dtype.kind in FLOATS:
                return None  # a cache: under create_graph the formula computes it from the inputs, differentiably
            return wrap(array)
        tensor = wrap(array)
        if cell is not None:
            tensor._cell = cell
        if create_graph:
            tensor._edge, tensor._requires_grad = (self, position), True
        return tensor

    def _as_recorded(self, tensor: Tensor, position: Any) -> Tensor:
        """Return an input as it was when recorded: by now it may be detached, or the result of something later."""
        edge = self.edges[self.op.inputs.index(position)]
        if tensor._edge is edge or not (edge is None or edge[0].number > 0):
            return tensor
        again: Tensor = wrap(tensor._array)
        again._cell = tensor._cell
        again._edge, again._requires_grad = edge, edge is not None
        return again

    # What was saved, under PyTorch's names: `_saved_self`, `_raw_saved_self` …

    def _producer(self, position: Any) -> str:
        edge = self.edges[self.op.inputs.index(position)]
        if edge is None:
            return "a tensor that does not require grad"
        return f"output {edge[1]} of {edge[0].name()}"


def modified(node: Node, array: Any, producer: str, found: int, expected: int) -> RuntimeError:
    """Return PyTorch's error for a saved tensor that was written to before backward."""
    kind = dtypes.from_numpy_dtype(array.dtype).tensor_name
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{kind}Tensor {list(array.shape)}], which is {producer}, is at version {found}; expected version "
        f"{expected} instead. It was saved for {node.name()}. Hint: make the write out of place (x = x + 1 for "
        "x += 1), or enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )
