"""Native twins of kernels: the same function, compiled.

A kernel in NumPy defines what is computed. `@twin` above it gives it a twin in C, which is taken for the arguments it
is written for (most often contiguous arrays of float32), where the library has been built; the definition does the
rest, and everything where there is no library. Nothing else knows of twins.

`TINYTORCH_NATIVE=0` leaves the library out, `TINYTORCH_NATIVE=avx2` or `=baseline` takes its kernels for a lesser
processor.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

from tinytorch.kernels import parallel

__all__ = ["instructions", "twin"]

Function = TypeVar("Function", bound=Callable[..., Any])

_given = os.environ.get("TINYTORCH_NATIVE", "")
_library: Any = None
if _given != "0":
    try:
        from tinytorch.kernels.native import _native as _library
    except ImportError:  # it was not built
        pass
    else:
        parallel.on_threads_set(_library.set_threads)

#: The instruction set whose kernels are taken; None where there are none.
instructions: str | None = None
if _library is not None:
    instructions = _given if _given in _library.SETS else _library.SETS[-1]

_LOOKS = (*functools.WRAPPER_ASSIGNMENTS, "__code__", "__defaults__", "__kwdefaults__")


def twin(definition: Function) -> Function:
    """Return the native twin of a kernel, which has its name, with the kernel behind it; else the kernel itself."""
    name = definition.__name__
    if instructions is None or name not in _library.KERNELS:
        return definition
    found: Any = functools.update_wrapper(_library.twin(definition, name, instructions), definition, _LOOKS)
    return found
