"""What programs of `torch.compile` call besides the kernels of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .places import is_dense

__all__ = ["Bailout", "as_array", "copy_into", "fill", "holds", "laid_out", "out_of_place"]


def as_array(result: Any) -> Any:
    """Return a kernel's result as an array: ufuncs on 0-d arrays return scalars."""
    return np.asarray(result) if isinstance(result, np.generic) else result


class Bailout(Exception):
    """A truth value differs from the recorded one: the program is left, and the function runs without it."""


def holds(x: Any, expected: bool) -> None:
    """Raise Bailout if the truth value of a number is not the recorded one."""
    if bool(x.item()) is not expected:
        raise Bailout


def fill(array: Any, kernel: Callable[..., None], source: Any, *args: Any) -> None:
    """Fill an array with numbers that `kernel` draws from a source."""
    if array.size:
        with source.lock:
            kernel(array, source, *args)


def copy_into(array: Any, x: Any) -> None:
    """Write `x` into an array, converted to its dtype."""
    np.copyto(array, x, casting="unsafe")


def out_of_place(write: Callable[..., None], prepare: Callable[..., Any] | None, x: Any, *args: Any) -> Any:
    """Return what `write` makes of a copy of `x`, or of the array that `prepare` returns for the same arguments."""
    out = x.copy("C") if prepare is None else prepare(x, *args)
    write(out, *args)
    return out


def laid_out(g: Any, leaf: Any) -> Any:
    """Return a copy of a gradient with the memory layout of its leaf."""
    copy = np.empty_like(leaf, order="K" if is_dense(leaf) else "C")
    copy[...] = g
    return copy
