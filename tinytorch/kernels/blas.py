"""The threads of the OpenBLAS that NumPy computes products with: their number, and that idle threads sleep.

Without OpenBLAS, or where its functions are not found, the functions here do nothing.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

ctypes: Any
try:
    import ctypes
except ImportError:  # Python was built without libffi
    ctypes = None

__all__ = ["SETTINGS", "let_idle_threads_sleep", "limit", "reload_settings", "threads"]

#: The names in environment variables (`OPENBLAS_NUM_THREADS`) by which OpenBLAS lets users choose its threads.
SETTINGS = ("OPENBLAS", "GOTO", "OMP")


def _libraries() -> Iterator[Any]:
    """Yield the libraries that may be NumPy's OpenBLAS, or be linked to it; NumPy has been imported.

    NumPy's wheels contain OpenBLAS in a separate folder; otherwise NumPy's extension modules are linked to it. Opening
    a library that is already loaded only looks it up.
    """
    if ctypes is None:
        return
    package = os.path.dirname(sys.modules["numpy"].__file__ or "")
    linked = getattr(sys.modules.get("numpy._core._multiarray_umath"), "__file__", None)
    for folder in (f"{package}.libs", os.path.join(package, ".dylibs")):
        for path in (*sorted(glob.glob(os.path.join(folder, "*openblas*"))), linked):
            try:
                yield ctypes.CDLL(path)
            except (OSError, TypeError):
                continue


@functools.cache
def threads() -> tuple[Callable[[int], Any], Callable[[], int]] | None:
    """Return the functions that set and get OpenBLAS's number of threads; None if they are not found."""
    for library in _libraries():
        for prefix in ("scipy_openblas", "openblas"):
            for suffix in ("64_", ""):
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                if put is not None and get is not None:
                    put.argtypes, put.restype = [ctypes.c_int], None
                    get.argtypes, get.restype = [], ctypes.c_int
                    return put, get
    return None


def limit(number: int) -> None:
    """Let OpenBLAS use at most `number` threads."""
    functions = threads()
    if functions is not None and functions[1]() > number:
        functions[0](number)


def let_idle_threads_sleep() -> None:
    """Make OpenBLAS's idle threads sleep soon after a product.

    By default they spin for about 20 ms, which takes the processor from the threads that compute elementwise functions
    (`kernels/parallel.py`): a training step of a convolutional network took 40.4 ms instead of 30.0. A value of
    `OPENBLAS_THREAD_TIMEOUT` set by the user is kept. OpenBLAS reads the variable when it is loaded; if NumPy was
    imported before, OpenBLAS is asked to read it again, which the version in NumPy 2.5 does not support.
    """
    variable = "OPENBLAS_THREAD_TIMEOUT"
    if variable in os.environ:
        return
    os.environ[variable] = "16"  # the logarithm of processor cycles: about 25 us
    # Not while another thread may be computing a product; and Windows would terminate the threads.
    if "numpy" in sys.modules and threading.active_count() == 1 and os.name != "nt":
        reload_settings()


def reload_settings() -> bool:
    """Make OpenBLAS read its environment variables again and restart its threads; return whether that was possible."""
    for library in _libraries():
        read = getattr(library, "openblas_read_env", None)
        stop = getattr(library, "blas_thread_shutdown_", None)
        if read is not None and stop is not None:
            read()
            stop()  # the next product starts the threads again, as after a fork
            return True
    return False
