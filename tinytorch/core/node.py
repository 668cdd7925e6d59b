"""The recorded call of an op: `Plan`, what it saves for backward, and `OpNode`, its node of the graph.

A formula's parameter names say what it needs: `g`, the gradient of the output, comes first; then any argument of the
op, `out`, `<input>_shape`, a residual by its name, or `<input>_kept`, the input, but None if it was written to, or
if hooks pack what is saved. Only the values that *needed* formulas name are saved; they
are determined once per set of inputs that need a gradient (a `Plan`).
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tinytorch.core.complex import conjugated
from tinytorch.core.graph import FREED, Edge, Node
from tinytorch.core.mode import recording
from tinytorch.core.supplied import picture
from tinytorch.core.tensor import Tensor, wrap
from tinytorch.kernels import dtypes
from tinytorch.kernels.dtypes import DIFFERENTIABLE

Formula = Callable[..., Any]

# The kinds of saved values: how a value is saved and unpacked.
INPUT, OUTPUT, PLAIN, RESIDUAL, SHAPE, PROPERTY, PACKED, KEPT = range(8)
TENSORS = (INPUT, OUTPUT, RESIDUAL, PACKED)

INFERENCE_NOT_SAVED = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


class Plan:
    """The values to save for one set of inputs that need gradients, and the formulas that use them.

    Attributes:
        sources: per saved value (kind, position): which input, argument, output or residual it is.
        rules: (input's position, formula, indices into the saved values of its arguments after `g`).
        holds_tensors: whether any saved value is a tensor (otherwise a second backward does no harm).
        outs: whether the op has several outputs.
    """

    __slots__ = (
        "any_number", "conjugate", "holds_tensors", "index", "joint", "many", "outs", "packed", "rules", "sources",
    )  # fmt: skip

    def __init__(self, joint: bool, many: bool, any_number: bool, outs: bool = False) -> None:
        self.outs = outs
        self.joint = joint  # whether one formula computes the gradients of all inputs that need one
        self.many = many  # whether one formula computes the gradients of a sequence of tensors
        self.any_number = any_number  # whether the op returns any number of outputs
        self.sources: list[tuple[int, Any]] = []
        self.index: dict[tuple[int, Any], int] = {}
        self.rules: list[tuple[int, Formula, tuple[int, ...]]] = []
        self.holds_tensors = False
        self.packed: Plan | None = None  # the plan of the same values, packed by hooks
        self.conjugate: Plan | None = None  # the plan of the same values for complex gradients

    def of_packed(self) -> Plan:
        """Return the plan of the same values with all tensors among them packed by hooks."""
        if self.packed is None:
            self.packed = self.with_packed({k for k, (kind, _) in enumerate(self.sources) if kind in TENSORS})
            self.packed.packed = self.packed
        return self.packed

    def with_packed(self, indices: set[int]) -> Plan:
        """Return the plan of the same values, of which those at these indices were packed by hooks."""
        plan = Plan(self.joint, self.many, self.any_number)
        plan.rules, plan.holds_tensors = self.rules, self.holds_tensors
        plan.sources = [(PACKED, source) if k in indices else source for k, source in enumerate(self.sources)]
        return plan

    def conjugated(self) -> Plan:
        """Return the plan of the same values with the formulas of a holomorphic function for complex gradients."""
        if self.conjugate is None:
            plan = self.conjugate = Plan(self.joint, self.many, self.any_number)
            plan.sources, plan.holds_tensors = self.sources, self.holds_tensors
            plan.rules = [(k, conjugated(formula), indices) for k, formula, indices in self.rules]
        return self.conjugate

    def save(self, source: tuple[int, Any]) -> int:
        """Return the index of the saved value of `source`, which is added if it is new."""
        if source not in self.index:
            self.index[source] = len(self.sources)
            self.sources.append(source)
            self.holds_tensors |= source[0] in TENSORS
        return self.index[source]

    def keep(self, values: Any, out: Any, cell: Any, residuals: Any) -> list[Any]:
        """Return the saved values of a call. It raises a TypeError for a tensor without a version counter.

        Args:
            values: the arguments of the call.
            out: the array of the output, or a tuple of them; `cell` is its version counter.
            residuals: the arrays that the kernel returned for the formulas.
        """
        saved: list[Any] = []
        for kind, i in self.sources:  # (the commonest first)
            if kind == INPUT:
                x = values[i]
                saved.append((x, x._cell[0]))
            elif kind == OUTPUT:
                array, own = (out[i], cell[i]) if self.outs else (out, cell)
                saved.append((array, own, own[0]))
            elif kind == SHAPE:
                saved.append(values[i]._array.shape)
            elif kind == RESIDUAL:
                saved.append((residuals[i], None, 0))
            elif kind == KEPT:
                saved.append((values[i]._array, values[i]._cell, values[i]._cell[0]))
            else:
                saved.append(i(values) if kind == PROPERTY else values[i])
        return saved


class OpNode(Node):
    """A recorded call of an op; each op has its own subclass, with PyTorch's name."""

    __slots__ = ()
    __init__ = object.__init__  # callers create nodes by `node_class()`, which is faster than `object.__new__`

    def release(self) -> None:
        """Free the saved values: a later backward pass through this node is an error."""
        if self.plan.holds_tensors:
            self.saved = None

    def name(self) -> str:
        """Return the name that PyTorch gives the node."""
        return picture.node_name(self)

    def shown(self) -> Any:
        """Return the node, after adding the members `_saved_*` to its class."""
        return self if "shown_as_it_is" in type(self).__dict__ else picture.shown(self)

    def _inputs(self) -> Sequence[int]:
        return picture.inputs_shown(self)

    def _differentiable(self) -> int:
        return self.op.last + 1 if self.op.outputs else self.outputs

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """Per input, the node that produced it and the output's number; `(None, 0)` where no gradient flows."""
        return picture.next_functions(self)

    def backward(self, g: Any, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the inputs by the op's formulas."""
        saved = self.saved
        if saved is None:
            raise RuntimeError(FREED)
        plan = self.plan
        if plan.any_number and self.outputs == 1:
            g = (g,)  # the formula of an op of any number of outputs always gets a tuple
        values = []
        for source, item in zip(plan.sources, saved):  # noqa: B905  (a keyword costs time here)
            kind = source[0]
            if kind not in TENSORS:
                values.append(_unless_written(item) if kind == KEPT else item)
            elif create_graph or kind != INPUT or item[0]._cell[0] != item[1]:
                values.append(self._unpack(source, item, create_graph))
            else:  # the usual case, without a call of `_unpack`
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
        """Return a saved tensor; raise an error if its memory was written to after it was saved."""
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
            made = None if position in self.op.nondiff else self.output(position)
            raise modified(self, array, made, cell[0], version)
        if kind == RESIDUAL:
            if create_graph and array.dtype.kind in DIFFERENTIABLE:
                return None  # a cache: under create_graph the formula computes it from the inputs, differentiably
            return wrap(array)
        tensor = wrap(array)
        if cell is not None:
            tensor._cell = cell
        if create_graph:
            tensor._edge, tensor._requires_grad = (self, position), True
        return tensor

    def _as_recorded(self, tensor: Tensor, position: Any) -> Tensor:
        """Return an input with its edge at the time of recording: in-place ops may have changed the edge since."""
        edge = self.edges[self.op.inputs.index(position)]
        if tensor._edge is edge or not (edge is None or edge[0].number > 0):
            return tensor
        again: Tensor = wrap(tensor._array)
        again._cell = tensor._cell
        again._edge, again._requires_grad = edge, edge is not None
        return again

    def _producer(self, position: Any) -> str | None:
        edge = self.edges[self.op.inputs.index(position)]
        return None if edge is None or edge[0].number < 0 else edge[0].output(edge[1])

    # Hooks on saved tensors.

    def pack(self, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
        """Replace the saved tensors by what `pack` returns for them; backward gets them from `unpack`."""
        plan = self.plan
        if not plan.holds_tensors or plan.packed is plan:
            return
        items = list(self.saved)
        for k, (kind, _) in enumerate(plan.sources):
            if kind in TENSORS:
                items[k] = (packed(self.saved_alone(k), pack), unpack)
            elif kind == KEPT:
                items[k] = None  # (PyTorch's hooks do not see it)
        self.plan, self.saved = plan.of_packed(), items

    def pack_one(self, k: int, pack: Callable[[Tensor], Any], unpack: Callable[[Any], Any]) -> None:
        """Replace one saved tensor by what `pack` returns for it."""
        items = list(self.saved)
        items[k] = (packed(self.saved_alone(k), pack), unpack)
        self.plan, self.saved = self.plan.with_packed({k}), items

    def saved_alone(self, k: int) -> Tensor:
        """Return a saved tensor for a hook, without its edge, which would create a reference cycle."""
        kind, item = self.plan.sources[k][0], self.saved[k]
        tensor: Tensor = item[0]
        if kind != INPUT:
            tensor = wrap(tensor)
            tensor._cell = item[1] or tensor._cell
            tensor._requires_grad = kind == OUTPUT and tensor._array.dtype.kind in DIFFERENTIABLE
        return tensor

    def _unpack_by_hook(self, source: tuple[int, Any], item: tuple[Any, Any], create_graph: bool) -> Tensor | None:
        kind, position = source
        if kind == RESIDUAL and create_graph:
            return None
        tensor = unpacked(*item)
        if not create_graph:
            return tensor
        edge = self.edges[self.op.inputs.index(position)] if kind == INPUT else (self, position)
        return attached(tensor, edge)


def _unless_written(item: tuple[Any, ...] | None) -> Tensor | None:
    """Return a kept input, or None if its memory was written to after it was saved."""
    return None if item is None or item[1][0] != item[2] else wrap(item[0])


def packed(tensor: Tensor, pack: Callable[[Tensor], Any]) -> Any:
    """Return the result of a pack hook for a tensor."""
    cell = tensor._cell
    version = 0 if cell is None else cell[0]
    with recording(False):
        value = pack(tensor)
    if cell is not None and cell[0] != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot "
            "be modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return value


def unpacked(value: Any, unpack: Callable[[Any], Any]) -> Tensor:
    """Return the tensor that an unpack hook returns for a packed value."""
    with recording(False):
        tensor = unpack(value)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(tensor).__name__}"
        )
    return tensor


def attached(tensor: Tensor, edge: Edge | None) -> Tensor:
    """Return the tensor from an unpack hook with the edge of the tensor that was saved."""
    if edge is None or tensor._edge is edge or getattr(edge[0], "variable", None) is tensor:
        return tensor
    again: Tensor = wrap(tensor._array)
    again._cell, again._requires_grad = tensor._cell, True
    if edge[0].number > 0:
        again._edge = edge
    else:
        again._accumulator = weakref.ref(edge[0])  # the new tensor replaces the leaf
    return again


def modified(node: Node, array: Any, producer: str | None, version: int, expected: int) -> RuntimeError:
    """Return PyTorch's error for a saved tensor that was written to before backward."""
    which = f", which is {producer}," if producer else ""
    name = dtypes.from_numpy_dtype(array.dtype).tensor_name
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{name}Tensor {list(array.shape)}]{which} is at version {version}; expected version "
        f"{expected} instead. It was saved for {node.name()}. Hint: make the write out of place (x = x + 1 for "
        "x += 1), or enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True)."
    )
