"""In-place variants of ops, and how a write enters the graph.

Writing to a tensor that is no view gives it a new node. Writing to a view gives its *base* a new node, `CopySlices`:
the base as it was, with the view's part replaced. Views of that base notice by the version (see `view.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from tinytorch.core.graph import FREED, Edge, Node, numbers
from tinytorch.core.mode import dispatch, local
from tinytorch.core.op import Op, op, promoted, translated
from tinytorch.core.tensor import Tensor, constant, wrap
from tinytorch.core.view import (
    View,
    check_recorded,
    count_write,
    expanded,
    follow,
    move_retained,
    needs_grad,
    shared_places,
)
from tinytorch.kernels import dtypes, places
from tinytorch.kernels.dtypes import FLOATS, number
from tinytorch.kernels.parallel import LARGE, blockwise

_F32 = np.dtype(np.float32)


def in_place(caller: Any, name: str | None = None) -> Any:
    """Return the in-place variant of an op: it writes its result into its first argument and returns that.

    Args:
        caller: the op as `op` or `pointwise` made it.
        name: the public name, by default the op's with an underscore.
    """
    made: Op = caller.op
    # Formulas may need what the first argument held: then a copy of it is saved.
    first = made.arguments[made.inputs[0]]
    needs_before = any(first in names for names in made.wants.values())
    plain_ufunc = isinstance(made.kernel, np.ufunc)

    def call(input: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if state.modes is not None:
            return dispatch(made, call, (input, *args), kwargs)
        if not isinstance(input, Tensor):
            made.refuse(input, 0)
        values = made.bind((input, *args), kwargs)
        edges = edges_of_write(made, input, values) if state.grad else None
        if expanded(input._array):
            raise shared_places()
        target = input._array
        for i in made.inputs[1:]:
            if isinstance(values[i], Tensor) and values[i]._cell is input._cell:
                check_overlap(target, values[i]._array)
        residuals: tuple[Any, ...] = ()
        before = None
        try:
            if made.broadcasts and made.positional == 2:
                y, kind = values[1], target.dtype
                if isinstance(y, Tensor) and y._array.dtype is kind and (kind is _F32 or not made.floating):
                    a, b = target, y._array
                elif kind is _F32 and (type(y) is float or type(y) is int) and y and made.of_floats is not None:
                    a, b = target, number(y, kind)
                else:
                    a, b = promoted(made, input, y)
                if edges is None and plain_ufunc and a is target and _fits(b, target):
                    # The short way: nothing is recorded, nothing converted.
                    if kind is _F32 and made.of_floats is not None:
                        made.of_floats(a, b, out=target)
                    elif target.size < LARGE:
                        made.kernel(a, b, out=target)
                    else:
                        blockwise(made.kernel, a, b, out=target)
                    count_write(input)
                    return input
                result = made.kernel(a, b)
            elif made.floating and target.dtype.kind not in FLOATS:
                result = made.kernel(target.astype(dtypes.get_default_dtype().numpy))
            else:
                result = made.run(values)
        except (ValueError, TypeError) as error:
            raise translated(made, values, error) from None
        if made.residuals:
            result, *rest = result
            residuals = tuple(rest)
        check_result(result, target)
        if edges is not None and needs_before:
            before = target.copy()
        np.copyto(target, result, casting="unsafe")
        count_write(input)
        if edges is not None:
            recorded = made if made.wants else _constant(made)
            node = recorded.record(edges, values, (target,), input._cell, residuals, written_to=input, before=before)
            if node is not None:
                written(input, (node, 0))
        return input

    call.writes = True  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = name or f"{made.name}_"
    call.__doc__ = f"In-place version of `{made.name}`: writes the result into this tensor and returns it."
    return call


@functools.cache
def _constant(made: Op) -> Op:
    """Return an op without formulas (a comparison) with gradients of zero, as its in-place form has."""
    return Op(
        made.kernel, {made.arguments[i]: _zeros_like for i in made.inputs}, arguments=made.arguments,
        defaults=made.defaults, positional=made.positional, name=made.name,
        node_name=made.node_class.__name__.removesuffix("Backward0"), broadcasts=made.broadcasts,
    )  # fmt: skip


def _zeros_like(g: Tensor) -> Tensor:
    zeros: Tensor = constant(np.zeros_like(g._array))
    return zeros


def edges_of_write(made: Op, x: Tensor, values: tuple[Any, ...]) -> list[Edge | None] | None:
    """Return the edges of a write's inputs, None where it is not to be recorded, having checked that it may be."""
    for i in made.inputs:
        each = values[i]
        if isinstance(each, Tensor) and (each._requires_grad if each._view is None else needs_grad(each)):
            break
    else:
        return None
    check_recorded(x)
    tensors = [values[i] for i in made.inputs]
    edges = made.edges_of(tensors)
    if edges is not None and any(isinstance(y, Tensor) and y._cell is None for y in tensors[1:]):
        # It must not be saved; PyTorch says so before it writes.
        made.record(list(edges), (wrap(x._array), *values[1:]), (x._array,), None)
    return edges


def check_overlap(target: Any, read: Any, same: bool = True) -> None:
    """Raise PyTorch's error if a write to `target` changes a part of `read` while it is read.

    Like PyTorch, only blocks without gaps are looked at: for others it would take too long.

    Args:
        target, read: arrays.
        same: it does no harm if they are the same elements, in the same order.
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


def _fits(operand: Any, target: Any) -> bool:
    """Return whether a ufunc of `target` and `operand` can write straight into `target`."""
    if not isinstance(operand, np.ndarray):
        return target.dtype.kind in FLOATS and target.dtype.itemsize > 2
    shape, other = target.shape, operand.shape
    return (
        operand.dtype == target.dtype
        and target.dtype.kind in FLOATS
        and (
            other == shape[len(shape) - len(other) :]  # most often, and rows
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


def written(x: Tensor, edge: Edge) -> None:
    """Enter a write in the graph: what `x` holds from now on was made by `edge`."""
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
    """A write to a view, as a step of its base: the base as it was, with the view's part made anew by `inner`."""

    __slots__ = ("_shown", "inner", "position")

    inner: Any  # a `Node`; None once freed

    def __init__(self, base: Tensor, x: Tensor, inner: Node, places: tuple[places.Place, places.Place]) -> None:
        if inner.outputs > 1:
            raise RuntimeError("Functions which modify views in-place must return a single Variable")
        edges = list(inner.edges)
        # Which of the inner step's inputs the view is; what was in it came from the base.
        self.position = edges.index(x._edge) if x._edge in edges else None
        if self.position is not None:
            edges[self.position] = base._edge
        self.edges, self.inner, self.hooks = tuple(edges), inner, None
        self._shown = inner._inputs()
        self.saved = places
        self.number = next(numbers)
        self.shape, self.dtype = base._array.shape, base._array.dtype

    def name(self) -> str:
        """Return PyTorch's name, which has its namespace."""
        return "torch::autograd::CopySlices"

    def _inputs(self) -> Sequence[int]:
        return self._shown

    def release(self) -> None:
        """Let go of the inner step: what it saved is freed, unless a graph of second order leads to its output."""
        self.inner = self.saved = None

    def backward(self, g: Tensor, create_graph: bool, needed: set[Node] | None) -> Any:
        """Return the gradients of what the base was, and of the other inputs of the inner step."""
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
            needed.add(of_view[0])  # what the base leads to, the view that came from it leads to
        grads = list(self.inner.backward(restrided(g, whole, part), create_graph, needed))
        if at is not None and grads[at] is not None:
            grads[at] = copy_slices(g, grads[at], whole, part) if to_base else None
        return grads


def _expanded(where: places.Place) -> bool:
    shape, strides, _ = where
    return 0 not in shape and any(step == 0 and length > 1 for step, length in zip(strides, shape, strict=True))


# Parts of a memory: a view by place, and a family of ops that is closed under differentiation.


def _strided_x(g: Tensor, place: places.Place, whole: places.Place) -> Any:
    g = restrided(g, place, whole)
    # Elements of `x` that share a place in memory share its gradient.
    return g / wrap(places.shares(whole, g._array)) if places.overlaps(whole) else g


#: `strided(x, place, whole)` is what lies at `place` in the memory of `x`, as seen from its first element; `x` itself
#: is the `whole`.
strided = op(name="AsStrided", view=True, x=_strided_x)(lambda x, place, whole: places.at(x, place))
View.by_place = staticmethod(strided)

#: `restrided(x, source, target)` is what lies at `target` in a memory of zeros to which `x` was added at `source`.
restrided = op(name="AsStridedBackward", x=lambda g, source, target: restrided(g, target, source))(
    lambda x, source, target: places.restrided(x, source, target)
)


@op(x=lambda g, whole, part: copy_slices(g, 0.0, whole, part), y=lambda g, whole, part: restrided(g, whole, part))
def copy_slices(x: Any, y: Any, whole: places.Place, part: places.Place) -> Any:
    """Return `x`, which lies at `whole` in some memory, with `y` written at `part` of that memory."""
    return places.replaced(x, y, whole, part)
