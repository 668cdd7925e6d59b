"""What is asked of the OpenBLAS that NumPy computes products with: its threads, and that idle ones sleep.

Without OpenBLAS, or where its functions are not found, nothing is asked.
"""

from __future__ import annotations

import functools
import glob
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ctypes: Any
try:
    import ctypes
except ImportError:  # Python was built without libffi
    ctypes = None

__all__ = ["let_idle_threads_sleep", "one_thread", "threads", "told_again"]


def _libraries() -> Iterator[Any]:
    """Yield what may be, or lead to, the OpenBLAS of NumPy, which has been imported.

    NumPy's wheels hold it in a folder of their own; else its extension modules are linked to it. To open a library that
    is loaded already only looks it up.
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
    """Return the functions that set and get OpenBLAS's number of threads; None where there are none."""
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


_limiting = threading.Lock()
_limits = 0  # how many `one_thread` are on
_before = 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Inside, a product takes one thread: for kernels whose own threads each compute products."""
    global _limits, _before
    found = threads()
    if found is None:
        yield
        return
    put, get = found
    with _limiting:
        if not _limits:
            _before = get()
            put(1)
        _limits += 1
    try:
        yield
    finally:
        with _limiting:
            _limits -= 1
            if not _limits:
                put(_before)


def let_idle_threads_sleep() -> None:
    """Tell OpenBLAS to let its threads sleep soon after a product.

    Left alone, they go on looking for work for some 20 ms, and so take the processor from the threads that share
    elementwise work (`kernels/parallel.py`): a training step of a convolutional network took 40.4 ms instead of 30.0.
    A value that the user gives to `OPENBLAS_THREAD_TIMEOUT` stays. OpenBLAS reads the variable when it is loaded; where
    NumPy was imported before, it is told to read again, which that of NumPy 2.5 does not let itself be told.
    """
    variable = "OPENBLAS_THREAD_TIMEOUT"
    if variable in os.environ:
        return
    os.environ[variable] = "16"  # the logarithm of processor cycles: about 25 us
    # Not while another thread may be in the middle of a product; and Windows would end the threads by force.
    if "numpy" in sys.modules and threading.active_count() == 1 and os.name != "nt":
        told_again()


def told_again() -> bool:
    """Tell OpenBLAS to read its variables again and start its threads anew; return whether it has been told."""
    for library in _libraries():
        read = getattr(library, "openblas_read_env", None)
        stop = getattr(library, "blas_thread_shutdown_", None)
        if read is not None and stop is not None:
            read()
            stop()  # the next product starts the threads again, as after a fork
            return True
    return False
