"""In-place variants of ops, and how a write enters the graph (floor 2).

Writing to a tensor that is no view gives it a new node. Writing to a view gives its *base* a new node, `CopySlices`:
the base as it was, with the view's region replaced. Other views of that base notice by the version (see `view.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch import dtypes
from tinytorch._tensor import Tensor
from tinytorch.autograd.graph import Edge
from tinytorch.autograd.mode import dispatch, local
from tinytorch.autograd.op import NUMBERS, Op, op, promoted, translated
from tinytorch.autograd.view import Steps, check_write, move_retained, refresh, region
from tinytorch.kernels.shape import is_dense


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

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if state.modes is not None:
            return dispatch(made, call, (x, *args), kwargs)
        if not isinstance(x, Tensor):
            made.refuse(x, 0)
        values = made.bind((x, *args), kwargs)
        edges = made.edges_of([values[i] for i in made.inputs]) if state.grad else None
        check_write(x, edges is not None)
        target = x._array
        if x._cell is not None:
            for i in made.inputs[1:]:
                if isinstance(values[i], Tensor) and values[i]._cell is x._cell:
                    check_overlap(target, values[i]._array)
        residuals: tuple[Any, ...] = ()
        before = None
        try:
            if made.broadcasts and made.positional == 2:
                a, b = promoted(made, x, values[1])
                if edges is None and plain_ufunc and a is target and _fits(b, target):
                    made.kernel(
                        a, b, out=target
                    )  # the short way: nothing is recorded, nothing converted
                    x._bump()
                    return x
                result = made.kernel(a, b)
            elif made.floating and target.dtype.kind != "f":
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
        x._bump()
        if edges is not None:
            node = made.record(
                edges, values, (target,), x._cell, residuals, written_to=x, before=before
            )
            if node is not None:
                written(x, (node, 0))
        return x

    call.__name__ = call.__qualname__ = name or f"{made.name}_"
    call.__doc__ = (
        f"In-place version of `{made.name}`: writes the result into this tensor and returns it."
    )
    return call


def writing(
    *,
    names: tuple[str, ...],
    prepare: Callable[..., Any] | None = None,
    broadcasts: bool = False,
    repeats: bool = False,
    **formulas: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Make an op from a function that writes into its first argument, and the op's in-place form.

    Args:
        names: PyTorch's names of the nodes, one for each overload; where there are several, the second is the one
            with a tensor for the last argument.
        prepare: makes what a call out of place writes into, by default a copy of the first argument.
        broadcasts: see `op`.
        repeats: all elements become the same, so expanded memory, in which they share a place, may be written to.
        **formulas: see `op`; none may name the first argument, which is written over.

    Returns:
        For each name a pair: the op, and its in-place form. One pair itself where there is one name.
    """

    def declare(write: Callable[..., Any]) -> Any:
        pairs = []
        for name in names:
            caller = op(name=name, broadcasts=broadcasts, **formulas)(write)
            caller.op.node_class.__name__ = name
            caller.op.kernel = _out_of_place(write, prepare)
            pairs.append((caller, _in_place(caller, write, repeats)))
        return pairs if len(pairs) > 1 else pairs[0]

    return declare


def _out_of_place(
    write: Callable[..., Any], prepare: Callable[..., Any] | None
) -> Callable[..., Any]:
    def kernel(x: Any, *args: Any) -> Any:
        out = x.copy("C") if prepare is None else prepare(x, *args)
        write(out, *args)
        return out

    return kernel


def _in_place(caller: Any, write: Callable[..., Any], repeats: bool) -> Any:
    made = caller.op

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if state.modes is not None:
            return dispatch(made, call, (x, *args), kwargs)
        if not isinstance(x, Tensor):
            made.refuse(x, 0)
        values = made.bind((x, *args), kwargs)
        edges = None
        if state.grad and x._array.dtype.kind == "f":
            edges = made.edges_of([values[i] for i in made.inputs])
        check_write(x, edges is not None, overlap=repeats)
        target = x._array
        arrays = list(values)
        for i in made.inputs:
            value = values[i]
            if isinstance(value, Tensor):
                array = arrays[i] = value._array
                if i and value._cell is x._cell and x._cell is not None:
                    check_overlap(target, array)
                    # It does not look at arrays with gaps: what is read must not change under way.
                    if np.may_share_memory(array, target):
                        arrays[i] = array.copy()
            elif not isinstance(value, NUMBERS):
                made.refuse(value, i)
        try:
            write(*arrays)
        except (ValueError, TypeError) as error:
            raise translated(made, values, error) from None
        x._bump()
        if edges is not None:
            node = made.record(edges, values, (target,), x._cell, written_to=x)
            if node is not None:
                written(x, (node, 0))
        return x

    call.__name__ = call.__qualname__ = f"{made.name.strip('_')}_"
    call.__doc__ = (
        f"In-place version of `{made.name.strip('_')}`: writes into this tensor and returns it."
    )
    return call


def check_overlap(target: Any, read: Any) -> None:
    """Raise PyTorch's error if a write to `target` changes a part of `read` while it is read.

    Like PyTorch, only blocks without gaps are looked at: for others it would take too long.
    """
    if not (is_dense(target) and is_dense(read)):
        return
    first, last = np.lib.array_utils.byte_bounds(target)
    begin, end = np.lib.array_utils.byte_bounds(read)
    if (first, last) == (begin, end) and target.strides == read.strides:
        return  # the same elements at the same places
    if first < end and begin < last:
        raise RuntimeError(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def _fits(operand: Any, target: Any) -> bool:
    """Return whether a ufunc of `target` and `operand` can write straight into `target`."""
    if not isinstance(operand, np.ndarray):
        return target.dtype.kind == "f"
    return (
        operand.dtype == target.dtype
        and target.dtype.kind == "f"
        and (operand.shape == target.shape or operand.ndim == 0)
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
    values = (base, x, view.steps(), base._array.strides)
    made: Op = copy_slices.op
    node = made.record([base._edge, edge], values, (base._array,), base._cell)
    assert node is not None
    old = base._edge
    base._edge, base._requires_grad = (node, 0), True
    move_retained(base, old)
    refresh(x)


# The region of a view, in tensors that are laid out as its base: a family closed under differentiation.


def laid_out(array: Any, strides: tuple[int, ...]) -> Any:
    """Return a copy of `array` whose axes lie in memory in the order of `strides`."""
    order = sorted(range(array.ndim), key=lambda axis: -strides[axis])
    copy = np.empty_like(array, shape=tuple([array.shape[axis] for axis in order]), order="C")
    copy = copy.transpose([order.index(axis) for axis in range(array.ndim)])
    copy[...] = array
    return copy


@op(
    x=lambda g, steps, strides: erase(g, steps, strides),
    y=lambda g, steps, strides: extract(g, steps, strides),
)
def copy_slices(x: Any, y: Any, steps: Steps, strides: tuple[int, ...]) -> Any:
    """Return the base `x` with the region that `steps` lead to replaced by `y`.

    For the record alone: `x` holds it already.
    """
    raise NotImplementedError("CopySlices stands for a write that has happened")


copy_slices.op.node_class.__name__ = "CopySlices"
copy_slices.op.node_class.name = lambda self: "torch::autograd::CopySlices"


@op(x=lambda g, steps, strides: erase(g, steps, strides))
def erase(x: Any, steps: Steps, strides: tuple[int, ...]) -> Any:
    """Return `x` with zeros in the region that `steps` lead to."""
    out = laid_out(x, strides)
    region(out, steps)[...] = 0
    return out


@op(x=lambda g, steps, strides, x_shape: embed(g, steps, strides, x_shape))
def extract(x: Any, steps: Steps, strides: tuple[int, ...]) -> Any:
    """Return a copy of the region that `steps` lead to in `x`."""
    return region(laid_out(x, strides), steps).copy()


@op(x=lambda g, steps, strides: extract(g, steps, strides))
def embed(x: Any, steps: Steps, strides: tuple[int, ...], shape: tuple[int, ...]) -> Any:
    """Return zeros of the base's `shape` with `x` in the region that `steps` lead to."""
    out = laid_out(np.zeros_like(x, shape=shape), strides)
    region(out, steps)[...] = x
    return out
