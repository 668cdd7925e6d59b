"""New memory begins filled with a byte, NumPy's and that of the C kernels: it shows if it is read before it is written.

`python -m pytest -p tests.filled tests/nn` runs any tests in memory full of 0xFF, of which a float is NaN.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

_API, _NAME, _Pointer = ctypes.pythonapi, b"mem_handler", ctypes.c_void_p
_Malloc = ctypes.CFUNCTYPE(_Pointer, _Pointer, ctypes.c_size_t)
_API.PyCapsule_GetPointer.restype, _API.PyCapsule_GetPointer.argtypes = _Pointer, [ctypes.py_object, ctypes.c_char_p]
_API.PyCapsule_New.restype, _API.PyCapsule_New.argtypes = ctypes.py_object, [_Pointer, ctypes.c_char_p, _Pointer]


class _Handler(ctypes.Structure):
    """NumPy's `PyDataMem_Handler`."""

    _fields_ = (("name", ctypes.c_char * 128), ("context", _Pointer), ("malloc", _Malloc), ("others", _Pointer * 3))


_functions: Any = _API.PyCapsule_GetPointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
_set, _get = (_Pointer * 2).from_address(_functions + 304 * ctypes.sizeof(_Pointer))
_set_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(_set)
_usual = _Handler.from_address(_API.PyCapsule_GetPointer(ctypes.PYFUNCTYPE(ctypes.py_object)(_get)(), _NAME))
_filling = _Handler.from_buffer_copy(_usual)
_API.Py_IncRef(ctypes.py_object(_filling))  # arrays may live longer than this module
_byte = 0


@_Malloc
def _malloc(context: Any, size: int) -> Any:
    return ctypes.memset(_usual.malloc(context, size), _byte, size)


_filling.malloc = _malloc
_capsule = _API.PyCapsule_New(ctypes.addressof(_filling), _NAME, None)
_mallopt: Any = getattr(_API, "mallopt", lambda *args: None)  # glibc's; M_PERTURB, -6, is what `malloc` fills with


@contextlib.contextmanager
def filled(byte: int) -> Iterator[None]:
    """Fill the memory of new arrays of this thread, and of C, with a byte."""
    global _byte
    before, _byte, handler = _byte, byte, _set_handler(_capsule)
    _mallopt(-6, 256 | byte ^ 0xFF)  # (a value of 0 would fill nothing)
    try:
        yield
    finally:
        _byte = before
        _mallopt(-6, before and 256 | before ^ 0xFF)
        _set_handler(handler)


def bits(value: Any) -> Any:
    """Return a result as something that is equal only if all bits are."""
    if isinstance(value, (list, tuple)):
        return [bits(each) for each in value]
    array = value.numpy(force=True) if hasattr(value, "numpy") else value
    return (array.dtype, array.shape, array.tobytes()) if isinstance(array, np.ndarray) else repr(value)


def reads_what_was_not_written(call: Callable[[], Any]) -> bool:
    """Return whether the result of a call, or its error, depends on what memory was filled with."""
    found = []
    for byte in (0xFF, 0x7B):
        with filled(byte):
            try:
                found.append(bits(call()))
            except Exception as error:  # of any class: it is compared
                found.append(repr(error))
    return bool(found[0] != found[1])


def sizes(value: Any) -> set[int]:
    """Return the sizes of the arrays, or tensors, in an argument."""
    return set().union(*map(sizes, value)) if isinstance(value, (list, tuple)) else {*getattr(value, "shape", ())}


def emptied(value: Any, size: int) -> Any:
    """Return an argument with 0 for a size: of its arrays or tensors, or as a number."""
    if getattr(value, "ndim", 0):
        return value[tuple(slice(None, 0 if n == size else None) for n in value.shape)]
    if type(value) in (list, tuple):
        return type(value)(emptied(each, size) for each in value)
    return 0 if type(value) is int and value == size else value


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Run a test with filled memory."""
    with filled(0xFF):
        return (yield)
