"""What programs of `torch.compile` call besides the kernels of operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .dtypes import get_default_dtype
from .places import is_dense

__all__ = ["Bailout", "as_array", "checked", "copy_into", "fill", "holds", "laid_out", "out_of_place", "write"]


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


def checked(name: str, x: Any, shape: tuple[int | None, ...], dtype: Any, order: Any = "C") -> Any:
    """Return an argument of a saved program as an array; ValueError if it is not like the one that it was made for."""
    of_python = isinstance(x, (list, tuple, float))
    x = np.asarray(x, order=order)
    if of_python and x.dtype == np.float64:  # Python's numbers have the default dtype
        x = x.astype(get_default_dtype().numpy)
    fits = len(x.shape) == len(shape) and all(want in (None, have) for have, want in zip(x.shape, shape, strict=True))
    if not fits or x.dtype != dtype:
        wanted = f"an array of shape {str(shape).replace('None', 'n')} and dtype {np.dtype(dtype)} is needed"
        raise ValueError(f"{name}: {wanted}, not one of shape {x.shape} and dtype {x.dtype}")
    return x.view(dtype)  # kernels ask for the very dtype; an array that was pickled has another, equal one


def write(arrays: dict[str, Any], state: Any) -> None:
    """Write arrays over those of a saved program that have the same names; ValueError if a shape is another one."""
    for name, array in arrays.items():
        given = np.asarray(state[name])
        if given.shape != array.shape:
            raise ValueError(f"{name}: an array of shape {array.shape} is needed, not one of shape {given.shape}")
        array[...] = given
