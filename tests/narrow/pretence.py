"""Makes NumPy answer as where `numpy.intp` has 32 bits; for the process, before tinytorch is imported.

NumPy's own integers are int32 there: of its indices (`argmax`, `nonzero` ...), of sums of smaller integers, and of
arrays made of Python's integers. An array of int64 is refused where NumPy needs indices (`take`, `repeat`, `bincount`
...); as an index in brackets it is not. What is pretended was seen in Pyodide 0.27.7 with NumPy 2.0.2.

Methods of arrays are replaced in the table of their class, so that C code which calls them is not affected; calls by
tests, and by other packages than NumPy, are not affected either.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
NOT_AFFECTED = {"tests", "torch", "hypothesis", "_pytest"}

#: Methods and functions whose results are indices.
INDICES = ("argmax argmin argsort argpartition nonzero searchsorted", (
    "flatnonzero argwhere bincount count_nonzero digitize indices lexsort tril_indices triu_indices unravel_index "
    "ravel_multi_index ix_ diag_indices"
))  # fmt: skip
#: Methods that sum or multiply, and those that take indices.
SUMS, TAKES = "sum prod cumsum cumprod trace", "take put repeat"
#: Functions that make arrays, and which argument the numbers are.
MAKES = {"array": 0, "asarray": 0, "full": 1, "arange": 0, "zeros": 0, "ones": 0, "empty": 0}


def affected() -> bool:
    """Return whether tinytorch calls a replaced function, itself or through NumPy."""
    frame: Any = sys._getframe(2)
    while frame.f_globals.get("__name__", "").startswith(("numpy", __name__)):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").partition(".")[0] not in NOT_AFFECTED


def replacing(function: Function) -> Callable[[Function], Function]:
    """Decorate what replaces a function; it gets the arguments of the function."""

    def decorate(new: Function) -> Function:
        @functools.wraps(function)
        def replaced(*args: Any, **kwargs: Any) -> Any:
            return new(*args, **kwargs) if affected() else function(*args, **kwargs)

        return replaced

    return decorate


def narrow(value: Any) -> Any:
    """Return int64 that NumPy chose itself as int32."""
    if isinstance(value, tuple):
        made = [narrow(each) for each in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if getattr(value, "dtype", None) == np.uint64:
        return value.astype(np.uint32)
    return value.astype(INT32) if getattr(value, "dtype", None) == INT64 else value


def refuse(indices: Any) -> None:
    """Raise NumPy's error for an array of int64 where it needs indices."""
    if isinstance(indices, np.ndarray) and indices.dtype.kind in "iu" and not np.can_cast(indices.dtype, INT32):
        raise TypeError(f"Cannot cast array data from dtype('{indices.dtype}') to dtype('int32') by the rule 'safe'")


def indices(function: Function) -> Function:
    """Replace a function that returns indices."""

    @replacing(function)
    def narrowed(*args: Any, **kwargs: Any) -> Any:
        refuse(kwargs.get("out"))
        refuse(kwargs.get("sorter"))
        return narrow(function(*args, **kwargs))

    return narrowed


def total(function: Function, of: int = 0) -> Function:
    """Replace a method that sums the argument at a place."""

    @replacing(function)
    def narrowed(*args: Any, **kwargs: Any) -> Any:
        result, x = function(*args, **kwargs), args[of]
        chosen = kwargs.get("dtype") is None and kwargs.get("out") is None
        small = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "biu" and x.dtype.itemsize < 8
        return narrow(result) if chosen and small else result

    return narrowed


def takes_indices(function: Function, place: int, name: str = "indices") -> Function:
    """Replace a function with an argument of indices."""

    @replacing(function)
    def careful(*args: Any, **kwargs: Any) -> Any:
        refuse(args[place] if len(args) > place else kwargs.get(name))
        return function(*args, **kwargs)

    return careful


def makes(function: Function, place: int) -> Function:
    """Replace a function that makes an array: of Python's integers, or of `dtype=int`."""

    @replacing(function)
    def narrowed(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        kinds = [each for each in (*args[place + 1 :], kwargs.get("dtype")) if isinstance(each, (type, np.dtype))]
        if any(each is int for each in kinds):  # (an equal dtype of NumPy is another)
            return narrow(result)
        if kinds or function in (np.zeros, np.ones, np.empty) or not _whole(args[place:] or list(kwargs.values())):
            return result
        large = result.size and not -(1 << 31) <= result.min() <= result.max() < 1 << 31
        if large and function.__name__ == "arange":
            raise OverflowError("Python int too large to convert to C long")
        return result if large else narrow(result)

    return narrowed


def _whole(value: Any) -> bool:
    """Return whether a value consists of Python's integers."""
    return all(map(_whole, value)) if isinstance(value, (list, tuple, range)) else type(value) in (int, bool)


def install() -> None:
    """Replace NumPy's functions and methods, and leave out the native kernels, which have int64 anywhere."""
    os.environ["TINYTORCH_NATIVE"] = "0"
    array, ufunc = np.ndarray, np.ufunc

    @replacing(np.where)
    def where(*args: Any) -> Any:
        return narrow(_where(*args)) if len(args) == 1 or _whole(args[1:]) else _where(*args)

    @replacing(np.unique)
    def unique(*args: Any, **kwargs: Any) -> Any:
        result = _unique(*args, **kwargs)
        return (result[0], *narrow(tuple(result[1:]))) if isinstance(result, tuple) else result

    @replacing(array.astype)
    def astype(self: Any, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        return _astype(self, INT32 if dtype is int else dtype, *args, **kwargs)

    _where, _unique, _astype = np.where, np.unique, array.astype
    methods: dict[str, Function] = {name: indices(getattr(array, name)) for name in INDICES[0].split()}
    methods |= {name: total(getattr(array, name)) for name in SUMS.split()}
    methods |= {name: takes_indices(getattr(array, name), 1, "repeats") for name in TAKES.split()}
    methods |= {"choose": takes_indices(array.choose, 0), "astype": astype}
    of_ufuncs = {
        "reduce": total(ufunc.reduce, 1), "accumulate": total(ufunc.accumulate, 1),
        "reduceat": takes_indices(ufunc.reduceat, 2),
    }  # fmt: skip
    functions: dict[str, Function] = {name: indices(getattr(np, name)) for name in INDICES[1].split()}
    functions |= {name: makes(getattr(np, name), place) for name, place in MAKES.items()}
    functions |= {"bincount": takes_indices(functions["bincount"], 0), "where": where, "unique": unique}
    for cls, changes in ((array, methods), (ufunc, of_ufuncs)):
        (members,) = gc.get_referents(cls.__dict__)
        members.update(changes)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))
    for name, function in functions.items():
        setattr(np, name, function)
    np.intp = np.int32  # type: ignore[misc]
