"""Native twins of kernels: the same function, compiled.

A kernel in NumPy defines what is computed. `@twin` above it gives it a twin in C, which is called for the arguments it
is written for (most often contiguous float32 arrays), if the library has been built. The definition handles all other
arguments, and everything where there is no library. No other module knows about twins.

`TINYTORCH_NATIVE=0` disables the library; `TINYTORCH_NATIVE=avx2` and `=baseline` choose its kernels for older
processors. `TINYTORCH_NATIVE=kernels` uses the kernels alone, and calls ops in Python.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from .. import parallel

__all__ = ["absence", "build", "calls", "defaults", "instructions", "twin"]

Function = TypeVar("Function", bound=Callable[..., Any])

_setting = os.environ.get("TINYTORCH_NATIVE", "")
_library: Any = None
_failure: ImportError | None = None
if _setting != "0":
    try:
        from . import _native as _library
    except ImportError as error:  # usually the library has not been built
        _failure = error
    else:
        parallel.on_threads_set(_library.set_threads)

#: The library, if it also calls ops and walks backward (core/native.py).
calls: Any = None if _setting == "kernels" else _library
#: The instruction set of the kernels in use; None without the library.
instructions: str | None = None
if _library is not None:
    instructions = _setting if _setting in _library.SETS else _library.SETS[-1]


def build() -> str:
    """Return what the installation noted: when and how the library was built, or why not; "" if it noted nothing."""
    try:
        with open(os.path.join(os.path.dirname(__file__), "build.txt"), encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return ""


def absence() -> str | None:
    """Return why there are no native kernels: a setting, or what the installation noted; None if there are."""
    if _library is not None:
        return None
    if _failure is None:
        return "disabled by TINYTORCH_NATIVE=0"
    names = os.listdir(os.path.dirname(__file__))
    if any(name.startswith("_native.") and name.endswith((".so", ".pyd")) for name in names):
        return f"the library cannot be loaded: {_failure}"
    noted = build()  # (of a library that is not here, in a copy of the package)
    return noted if noted and not noted.startswith(("built", "reused")) else "the library has not been built"


# (Not in a saved program, which has a copy of this module, nor where none can be built.)
if (
    _failure
    and __name__ == "tinytorch.kernels.native"
    and sys.platform != "emscripten"
    and not build().startswith("omitted")
):
    logging.getLogger(__name__).warning("NumPy computes all, which takes longer: no native kernels, %s", absence())


_WRAPPER_ATTRIBUTES = (*functools.WRAPPER_ASSIGNMENTS, "__code__", "__defaults__", "__kwdefaults__")


def defaults(definition: Callable[..., Any]) -> dict[str, Any]:
    """Return the default values of a kernel's parameters by name; of a ufunc, which has no signature, none."""
    while hasattr(definition, "__wrapped__"):
        definition = definition.__wrapped__
    values = getattr(definition, "__defaults__", None) or ()
    code = getattr(definition, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code else ()
    return dict(zip(names[len(names) - len(values) :], values, strict=True))


def twin(definition: Function) -> Function:
    """Return the native twin of a kernel, found by the kernel's name; or the kernel itself if there is none.

    The twin takes the same arguments, by position or by keyword, and calls the kernel for those it does not handle.
    """
    name = definition.__name__
    if instructions is None or name not in _library.KERNELS:
        return definition
    native = _library.twin(definition, name, instructions, defaults(definition))
    wrapper: Any = functools.update_wrapper(native, definition, _WRAPPER_ATTRIBUTES)
    return wrapper
