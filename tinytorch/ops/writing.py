"""Ops that write into their first argument, and have an in-place form: `@writing`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tinytorch.core.inplace import check_overlap, edges_of_write, written
from tinytorch.core.mode import dispatch, local
from tinytorch.core.op import NUMBERS, op, translated
from tinytorch.core.tensor import Tensor
from tinytorch.core.view import count_write, expanded, shared_places
from tinytorch.kernels.dtypes import FLOATS


def writing(
    *,
    names: tuple[str, ...],
    prepare: Callable[..., Any] | None = None,
    broadcasts: bool = False,
    repeats: Callable[..., bool] | None = None,
    reads: str | dict[str, str] = "other",
    **formulas: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Make an op from a function that writes into its first argument, and the op's in-place form.

    What is returned is for each name a pair: the op, and its in-place form; the pair itself where there is one name.

    Args:
        names: PyTorch's names of the nodes, one for each overload; where there are several, the second is the one
            with a tensor for the last argument.
        prepare: makes what a call out of place writes into, by default a copy of the first argument.
        broadcasts: see `op`.
        repeats: says, given the arguments of a call, whether expanded memory may be written to, in which several
            elements share a place; by default never.
        reads: what it may read of the memory that it writes to: only "other" places, also the "same" (it goes
            element by element), or "any" (it takes a number out of it first); or that by argument.
        **formulas: see `op`; none may name the first argument, which is written over.
    """

    def declare(write: Callable[..., Any]) -> Any:
        pairs = []
        for name in names:
            kernel = functools.wraps(write)(_out_of_place(write, prepare))
            caller = op(name=name, broadcasts=broadcasts, **formulas)(kernel)
            caller.op.node_class.__name__ = name
            if name in _OF_A_NUMBER:
                *order, _ = [k for k, constant in enumerate(caller.op._constant) if not constant]
                caller.op.node_class._order = tuple(order)
            pairs.append((caller, _in_place(caller, write, repeats, reads)))
        return pairs if len(pairs) > 1 else pairs[0]

    return declare


#: The nodes of overloads with a number for the last argument, which is no input of the node then.
_OF_A_NUMBER = frozenset(
    """
    FillBackward0 FillBackward2 IndexFillBackward0 MaskedFillBackward0 ScatterBackward1 ZeroBackward0
    """.split()
)


def _out_of_place(write: Callable[..., Any], prepare: Callable[..., Any] | None) -> Callable[..., Any]:
    def kernel(x: Any, *args: Any) -> Any:
        out = x.copy("C") if prepare is None else prepare(x, *args)
        write(out, *args)
        return out

    return kernel


def _in_place(
    caller: Any, write: Callable[..., Any], repeats: Callable[..., bool] | None, reads: str | dict[str, str]
) -> Any:
    made = caller.op
    write = made.looking(write)
    permitted = [reads if isinstance(reads, str) else reads.get(argument, "other") for argument in made.arguments]

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        state = local.state
        if state.modes is not None:
            return dispatch(made, call, (x, *args), kwargs)
        if not isinstance(x, Tensor):
            made.refuse(x, 0)
        values = made.bind((x, *args), kwargs)
        target = x._array
        edges = edges_of_write(made, x, values) if state.grad and target.dtype.kind in FLOATS else None
        if expanded(target) and not (repeats and repeats(*values)):
            raise shared_places()
        arrays = list(values)
        for i in made.inputs:
            value = values[i]
            if isinstance(value, Tensor):
                array = arrays[i] = value._array
                if i and on_one_memory(value, x):
                    if permitted[i] != "any":
                        check_overlap(target, array, permitted[i] == "same")
                    # It does not look at arrays with gaps: what is read must not change under way.
                    if np.may_share_memory(array, target):
                        arrays[i] = array.copy()
            elif not isinstance(value, NUMBERS):
                made.refuse(value, i)
        try:
            write(*arrays)
        except (ValueError, TypeError) as error:
            raise translated(made, values, error) from None
        count_write(x)
        if edges is not None:
            node = made.record(edges, values, (target,), x._cell, written_to=x)
            if node is not None:
                written(x, (node, 0))
        return x

    call.writes = write  # type: ignore[attr-defined]
    call.__name__ = call.__qualname__ = f"{made.name.strip('_')}_"
    call.__doc__ = f"In-place version of `{made.name.strip('_')}`: writes into this tensor and returns it."
    made.callers.append(call)
    return call


def on_one_memory(x: Tensor, y: Tensor) -> bool:
    """Return whether two tensors are views of one memory; `.data` has its own count of writes."""
    a, b = x._array, y._array
    return x._cell is y._cell or (a if a.base is None else a.base) is (b if b.base is None else b.base)
