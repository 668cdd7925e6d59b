"""Ops that write into their first argument, and have an in-place form: `@writing`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tinytorch.core.call import WRITING, Caller
from tinytorch.core.op import op


def writing(
    *,
    names: tuple[str, ...],
    prepare: Callable[..., Any] | None = None,
    broadcasts: bool = False,
    repeats: Callable[..., bool] | None = None,
    reads: str | dict[str, str] = "other",
    refuses: str | Callable[..., str | None] | None = None,
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
        refuses: see `op`.
        **formulas: see `op`; none may name the first argument, which is written over.
    """

    def declare(write: Callable[..., Any]) -> Any:
        pairs = []
        for name in names:
            kernel = functools.wraps(write)(_out_of_place(write, prepare))
            caller = op(name=name, broadcasts=broadcasts, refuses=refuses, **formulas)(kernel)
            caller.op.node_class.__name__ = name
            permitted = [reads if isinstance(reads, str) else reads.get(x, "other") for x in caller.op.arguments]
            written = Caller(caller.op, WRITING, WRITE=write, REPEATS=repeats, READS=permitted).function
            stem = caller.op.name.strip("_")
            written.__name__ = written.__qualname__ = f"{stem}_"
            written.__doc__ = f"In-place version of `{stem}`: writes into this tensor and returns it."
            pairs.append((caller, written))
        return pairs if len(pairs) > 1 else pairs[0]

    return declare


def _out_of_place(write: Callable[..., Any], prepare: Callable[..., Any] | None) -> Callable[..., Any]:
    def kernel(x: Any, *args: Any) -> Any:
        out = x.copy("C") if prepare is None else prepare(x, *args)
        write(out, *args)
        return out

    return kernel
