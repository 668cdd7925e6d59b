"""How a write in place enters the graph, and the checks that come before it.

Writing to a tensor that is not a view gives it a new node. Writing to a view gives its *base* a new node, `CopySlices`:
the former base with the view's part replaced. Views of that base detect the write by the version (see `view.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.declaration import NUMBERS, Op
from tinytorch.core.graph import FREED, Edge, Node, enter
from tinytorch.core.mode import Event, local
from tinytorch.core.node import INPUT, KEPT, OpNode
from tinytorch.core.supplied import bits, memory
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.view import Places, check_recorded, expanded, follow, move_retained, needs_grad, shared_places
from tinytorch.kernels import dtypes, places
from tinytorch.kernels.dtypes import DIFFERENTIABLE
from tinytorch.kernels.meta import NotCopied, is_meta


def edges_of_write(op: Op, x: Tensor, values: Sequence[Any]) -> list[Edge | None] | None:
    """Return the edges of a write's inputs, or None if it is not recorded; raise PyTorch's error if it is illegal."""
    for i in op.inputs:
        value = values[i]
        if isinstance(value, Tensor) and (value._requires_grad if value._view is None else needs_grad(value)):
            break
    else:
        return None
    check_recorded(x)
    tensors = [values[i] for i in op.inputs]
    edges = op.edges_of(tensors)
    if edges is not None and any(isinstance(y, Tensor) and y._cell is None for y in tensors[1:]):
        # An inference tensor must not be saved; PyTorch raises the error before it writes.
        _node(op, edges, (wrap(x._array), *values[1:]), x._array, None)
    return edges


def check_operands_of_write(op: Op, x: Tensor, values: Sequence[Any]) -> None:
    """Raise PyTorch's error if an in-place op must not write to `x`, or reads elements that it changes."""
    target = x._array
    if expanded(target):
        raise shared_places()
    for i in op.inputs[1:]:
        value = values[i]
        if isinstance(value, Tensor) and value._cell is x._cell:
            check_overlap(target, value._array)


def arrays_of_write(op: Op, x: Tensor, values: Sequence[Any], reads: Sequence[str]) -> list[Any]:
    """Return the arguments of a kernel that writes into `x`; arguments that overlap with `x` are copied.

    Args:
        op: the op.
        x: the tensor that the op writes to, the first of `values`.
        values: the arguments of the call.
        reads: by argument, which elements of `x` the argument may contain (see `writing`).
    """
    arrays = list(values)
    for i in op.inputs:
        value = values[i]
        if isinstance(value, Tensor):
            array = arrays[i] = value._array
            if is_meta(array) and not is_meta(x._array):
                raise NotCopied
            if i and on_one_memory(value, x):
                if reads[i] != "any":
                    check_overlap(x._array, array, reads[i] == "same")
                # The check ignores arrays with gaps, so elements that are read could change during the write.
                if np.may_share_memory(array, x._array):
                    arrays[i] = array.copy()
                    if local.state.witness is not None:
                        local.state.witness.event(Event.COPIED, array=array, copy=arrays[i])
        elif not isinstance(value, NUMBERS):
            op.refuse(value, i)
    return arrays


def on_one_memory(x: Tensor, y: Tensor) -> bool:
    """Return whether two tensors share one memory; `.data` shares it but has a different version counter."""
    a, b = x._array, y._array
    return x._cell is y._cell or (a if a.base is None else a.base) is (b if b.base is None else b.base)


def check_overlap(target: Any, read: Any, same: bool = True) -> None:
    """Raise PyTorch's error if a write to `target` changes elements of `read` while they are read.

    As in PyTorch, only dense arrays are checked: for arrays with gaps the check would take too long.

    Args:
        target, read: arrays.
        same: whether the same elements in the same order are allowed.
    """
    if read is target:
        wrong = not same
    else:
        first, last = np.lib.array_utils.byte_bounds(target)
        begin, end = np.lib.array_utils.byte_bounds(read)
        wrong = (
            first < end
            and begin < last
            and places.is_dense(target)
            and places.is_dense(read)
            and not (same and places.same(target, read))
        )
    if wrong:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def fits(target: Any, kernel: Any, first: Any, operand: Any) -> bool:
    """Return whether a kernel of `first` and `operand` can write directly into `target`, its first operand."""
    if first is not target or not isinstance(kernel, np.ufunc):
        return False
    if not isinstance(operand, np.ndarray):
        return target.dtype.kind in DIFFERENTIABLE and target.dtype.itemsize > 2
    shape, other = target.shape, operand.shape
    return (
        operand.dtype == target.dtype
        and target.dtype.kind in DIFFERENTIABLE
        and (
            other == shape[len(shape) - len(other) :]  # the usual case: equal shapes, or rows
            or (len(other) <= len(shape) and all(n in (1, m) for n, m in zip(other[::-1], shape[::-1], strict=False)))
        )
    )


def check_result(result: Any, target: Any) -> None:
    """Raise PyTorch's error unless `result` can be written into `target`."""
    if result.shape != target.shape:
        raise RuntimeError(
            f"output with shape {list(target.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    have, want = dtypes.from_numpy_dtype(result.dtype), dtypes.from_numpy_dtype(target.dtype)
    if have.category > want.category:
        raise RuntimeError(
            f"result type {have.tensor_name} can't be cast to the desired output type {want.tensor_name}"
        )


def record_write(
    op: Op, edges: list[Edge | None], values: Sequence[Any], x: Tensor, residuals: tuple[Any, ...] = (),
    before: Any = None,
) -> None:  # fmt: skip
    """Record the call of an op that has written into `x`; `before` are its former elements, if formulas use them."""
    node = _node(op if op.wants else _constant_op(op), edges, values, x._array, x._cell, residuals)
    if node is None:
        return
    # The memory of the first input now holds the output, so the copy of its former elements is saved. Other tensors on
    # that memory are saved with the version before the write, so that backward detects the write.
    saved = node.saved
    for k, (kind, position) in enumerate(node.plan.sources):
        if kind == KEPT:
            saved[k] = None
        elif kind == INPUT and position == op.inputs[0]:
            held = wrap(before)
            held._edge, held._requires_grad = node.edges[0], node.edges[0] is not None
            saved[k] = (held, 0)
        elif kind == INPUT and saved[k][0]._cell is x._cell:
            saved[k] = (saved[k][0], saved[k][1] - 1)
    written(x, (node, 0))


def _node(
    op: Op, edges: list[Edge | None], values: Sequence[Any], array: Any, cell: Any, residuals: tuple[Any, ...] = ()
) -> OpNode | None:
    """Return the node of a write, or None if no input that needs a gradient has a formula."""
    edges = [None if constant else edge for edge, constant in zip(edges, op._constant, strict=True)]
    given = [(edge is not None) | isinstance(values[i], Tensor) << 8 for edge, i in zip(edges, op.inputs, strict=True)]
    key = sum([bits << k for k, bits in enumerate(given)])
    return op.node(key, edges, values, (array,), cell, residuals) if any(edges) else None


@functools.cache
def _constant_op(declared: Op) -> Op:
    """Return a copy of an op without formulas (a comparison), with gradients of zero for its in-place form."""
    return Op(
        declared.kernel, {declared.arguments[i]: _zeros_like for i in declared.inputs}, arguments=declared.arguments,
        defaults=declared.defaults, positional=declared.positional, name=declared.name,
        node_name=declared.node_class.__name__.removesuffix("Backward0"), broadcasts=declared.broadcasts,
    )  # fmt: skip


def _zeros_like(g: Tensor) -> Tensor:
    zeros: Tensor = constant(np.zeros_like(g._array))
    return zeros


def written(x: Tensor, edge: Edge) -> None:
    """Enter a write in the graph: the new elements of `x` are the output that `edge` refers to."""
    view = x._view
    if view is None:
        old = x._edge
        x._edge, x._requires_grad = edge, True
        move_retained(x, old)
        return
    base = view.base
    old = base._edge
    node = CopySlices(base, x, edge[0], view.places())
    base._edge, base._requires_grad = (node, 0), True
    move_retained(base, old)
    follow(x, view, node.saved)


class CopySlices(Node):
    """A write to a view, as a node of its base: the former base with the view's part replaced by `inner`'s output."""

    __slots__ = ("_shown", "inner", "position")

    inner: Any  # a `Node`; None once freed

    def __init__(self, base: Tensor, x: Tensor, inner: Node, where: Places) -> None:
        if inner.outputs > 1:
            raise RuntimeError("Functions which modify views in-place must return a single Variable")
        edges = list(inner.edges)
        # The view's position among the inputs of the inner node; its former elements came from the base.
        self.position = edges.index(x._edge) if x._edge in edges else None
        if self.position is not None:
            edges[self.position] = base._edge
        enter(self, tuple(edges), base._array.shape, base._array.dtype)
        self.inner, self.saved, self._shown = inner, where, inner._inputs()

    def name(self) -> str:
        """Return PyTorch's name, which includes a C++ namespace."""
        return "torch::autograd::CopySlices"

    def _inputs(self) -> Sequence[int]:
        return self._shown

    def release(self) -> None:
        """Drop the inner node: its saved values are freed, unless a second-order graph leads to its output."""
        self.inner = self.saved = None

    def backward(self, g: Tensor, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of the former base, and of the other inputs of the inner node."""
        if self.saved is None:
            raise RuntimeError(FREED)
        part, whole = self.saved
        at = self.position
        edge = None if at is None else self.edges[at]
        to_base = edge is not None and (needed is None or edge[0] in needed)
        if _expanded(whole) or (to_base and _expanded(part)):
            raise shared_places()
        of_view = None if at is None else self.inner.edges[at]
        if to_base and needed is not None and of_view is not None:
            needed.add(of_view[0])  # the view leads to the nodes that its base leads to
        kind, own = self.inner.dtype.kind, self.dtype.kind
        common = own if kind == "c" else kind  # that of the numbers whose locations these are
        as_kind = bits.as_kind
        g = as_kind(g, common)
        grads = list(self.inner.backward(as_kind(memory.restrided(g, whole, part), kind), create_graph, needed))
        if at is not None and grads[at] is not None:
            replaced = as_kind(grads[at], common)
            grads[at] = as_kind(memory.copy_slices(g, replaced, whole, part), own) if to_base else None
        return grads


def _expanded(where: places.Place) -> bool:
    shape, strides, _ = where
    return 0 not in shape and any(step == 0 and length > 1 for step, length in zip(strides, shape, strict=True))
