"""Declaration of ops from a kernel that writes into its first argument: `@writing`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tinytorch.core.call import WRITING, Caller
from tinytorch.core.op import op
from tinytorch.kernels.programs import out_of_place


def writing(
    *,
    names: tuple[str, ...],
    prepare: Callable[..., Any] | None = None,
    broadcasts: bool = False,
    repeats: Callable[..., bool] | None = None,
    reads: str | dict[str, str] = "other",
    refuses: str | Callable[..., str | None] | None = None,
    complex: str | None = None,
    moves: bool = False,
    batch: str | Callable[..., Any] | None = None,
    **formulas: Any,
) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a function writing into its first argument an op and its in-place form.

    The decorator returns a pair (op, in-place form) if there is one name, else a list with a pair for each name.

    Args:
        names: PyTorch's node names, one for each overload; a second name is that of the overload whose last argument
            is a tensor.
        prepare: returns the array that an out-of-place call writes into; by default a copy of the first argument.
        broadcasts: see `op`.
        repeats: a predicate of a call's arguments: whether the call may write to expanded memory, in which several
            elements share one address; by default none may.
        reads: which part of the written memory other arguments may share: only "other" elements, also the "same" ones
            (the kernel works elementwise), or "any" (the kernel copies the value first); or a dict by argument.
        refuses, complex, moves, batch: see `op`.
        **formulas: see `op`; none may use the first argument, which is overwritten.
    """

    def declare(write: Callable[..., Any]) -> Any:
        pairs, stem = [], write.__name__.strip("_")
        for name in names:
            kernel = functools.partial(out_of_place, write, prepare)
            caller = op(
                kernel, name=name, broadcasts=broadcasts, refuses=refuses, complex=complex, moves=moves,
                batch=batch, **formulas,
            )(write)  # fmt: skip
            caller.op.name = f"_{stem}"  # (an internal name, as of `op_of`)
            permitted = [reads if isinstance(reads, str) else reads.get(x, "other") for x in caller.op.arguments]
            written = Caller(caller.op, WRITING, write, repeats, permitted).function
            written.__name__ = written.__qualname__ = f"{stem}_"
            written.__doc__ = f"In-place version of `{stem}`: writes into this tensor and returns it."
            pairs.append((caller, written))
        return pairs if len(pairs) > 1 else pairs[0]

    return declare
