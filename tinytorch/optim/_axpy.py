"""`y += a * x` in one pass through memory, by the BLAS that NumPy brings along.

With ufuncs it takes two passes of one core; the routine `axpy` of BLAS makes one, on all its threads (670,000 weights:
0.05 ms instead of 0.11, in a training step of 1.1 ms). NumPy does not offer it, but its extension module is linked with
a BLAS, in which its names are looked up, too. Where none is found, the ufuncs do it.

Only the plain step of SGD uses it. Between ufuncs, as in Adam, its threads gain nothing: half of the result then lies
in the cache of the other core (measured: 560 to 970 us for the step of Adam, and 650 with ufuncs alone).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

#: What `axpy` is called in the C interface of various builds, {} standing for s (float32) or d (float64), and the bits
#: of its integers: OpenBLAS in NumPy's wheels, Accelerate in those for macOS, OpenBLAS and MKL of distributions.
NAMES = (
    ("scipy_cblas_{}axpy64_", 64),
    ("cblas_{}axpy64_", 64),
    ("cblas_{}axpy$NEWLAPACK$ILP64", 64),
    ("cblas_{}axpy$NEWLAPACK", 32),
    ("cblas_{}axpy", 32),
)


#: Below this many elements finding the addresses (3 us) takes longer than two ufuncs.
SMALL = 2**12


@functools.cache
def routines() -> Mapping[np.dtype[Any], Callable[..., None]]:
    """Return `axpy(n, a, x, 1, y, 1)` of BLAS by dtype, empty where it is not found."""
    found: dict[np.dtype[Any], Callable[..., None]] = {}
    try:
        import ctypes

        from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

        library = ctypes.CDLL(_multiarray_umath.__file__)
    except (ImportError, OSError, AttributeError):  # another layout of NumPy, or linked statically
        return found
    pointer = ctypes.c_void_p
    for letter, number in ("s", ctypes.c_float), ("d", ctypes.c_double):
        for name, bits in NAMES:
            routine = getattr(library, name.format(letter), None)
            if routine is not None:
                integer = ctypes.c_int64 if bits == 64 else ctypes.c_int32
                routine.argtypes = [integer, number, pointer, integer, pointer, integer]
                routine.restype = None
                found[np.dtype(number)] = routine
                break
    return found


def axpy(y: Any, x: Any, a: float) -> bool:
    """Add `a * x` to `y` in place and return True, or return False where BLAS cannot do it."""
    # BLAS sees only pointers: both have to be plain memory, and that of `y` writable. Its integers
    # may have 32 bits. For a = 0 it returns at once, where the sum with 0 * nan has to become nan.
    if not SMALL <= y.size < 2**31 or a == 0:
        return False
    if not (isinstance(y, np.ndarray) and isinstance(x, np.ndarray) and x.dtype == y.dtype):
        return False
    routine = routines().get(y.dtype)
    if routine is None or not (y.flags.carray and x.flags.carray):
        return False
    routine(y.size, a, x.ctypes.data, 1, y.ctypes.data, 1)
    return True
