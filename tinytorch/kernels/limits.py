"""Numeric limits of dtypes: `finfo`, `iinfo`, and range checks."""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import numpy as np

from .dtypes import INTEGER, bool, checked, dtype, get_default_dtype

__all__ = ["finfo", "iinfo"]


class _Limits:
    """Base class of `finfo` and `iinfo`: limits of the same dtype are equal."""

    dtype: str
    __traced_as__ = "pure"  # by `torch.compile`

    def __eq__(self, other: object) -> builtins.bool:
        return isinstance(other, type(self)) and self.dtype == other.dtype

    def __hash__(self) -> builtins.int:
        return hash(self.dtype)


#: Limits of dtypes that NumPy lacks: `eps`, `max`, `tiny`, and the number of exact decimal digits.
_BEYOND_NUMPY = {
    "bfloat16": (2.0**-7, (2 - 2.0**-7) * 2.0**127, 2.0**-126, 2),
    "float8_e4m3fn": (2.0**-3, 448.0, 2.0**-6, 0),
    "float8_e4m3fnuz": (2.0**-3, 240.0, 2.0**-7, 0),
    "float8_e5m2": (2.0**-2, 57344.0, 2.0**-14, 0),
    "float8_e5m2fnuz": (2.0**-3, 57344.0, 2.0**-15, 0),
    "float8_e8m0fnu": (1.0, 2.0**127, 2.0**-127, 0),
}


class finfo(_Limits):
    """Limits of a floating-point dtype: `eps`, `max`, `min`, `tiny`, `smallest_normal`, `resolution`, `bits`.

    Example:
        >>> torch.finfo(torch.float32).eps
        1.1920928955078125e-07
    """

    def __init__(self, type: dtype | None = None) -> None:
        type = get_default_dtype() if type is None else type
        type = checked("finfo", "type", 1, type).to_real()
        if not type.is_floating_point:
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'"
            )
        known = _BEYOND_NUMPY.get(type.name)
        if known is not None:
            self.eps, self.max, self.tiny, digits = known
            self.min = self.tiny if type.name == "float8_e8m0fnu" else -self.max  # (float8_e8m0fnu has no sign)
        else:
            info = np.finfo(type.numpy)
            self.eps, self.max, self.min = builtins.float(info.eps), builtins.float(info.max), builtins.float(info.min)
            self.tiny, digits = builtins.float(info.smallest_normal), info.precision
        self.bits = type.itemsize * 8
        self.smallest_normal = self.tiny
        self.resolution = builtins.float(f"1e-{digits}")
        self.dtype = type.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo(_Limits):
    """Limits of an integer dtype: `min`, `max`, `bits`.

    Example:
        >>> torch.iinfo(torch.uint8).max
        255
    """

    def __init__(self, type: dtype) -> None:
        type = checked("iinfo", "type", 1, type)
        if type is bool:
            raise TypeError("torch.bool is not supported by torch.iinfo")
        if type.category != INTEGER:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        info = np.iinfo(type.name)
        self.bits, self.min, self.max = info.bits, builtins.int(info.min), builtins.int(info.max)
        self.dtype = type.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


_C_NAMES = {
    "int32": "int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "float64": "double",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e4m3fnuz": "c10::Float8_e4m3fnuz",
    "float8_e5m2": "c10::Float8_e5m2",
    "float8_e5m2fnuz": "c10::Float8_e5m2fnuz",
}


@functools.cache
def limits_of(kind: dtype) -> tuple[Any, Any]:
    """Return the least and the greatest number of a dtype, cached since NumPy's queries are slow."""
    if kind is bool:
        return 0, 1
    limits = finfo(kind) if kind.is_floating_point or kind.is_complex else iinfo(kind)
    return limits.min, limits.max


def fits(value: Any, kind: dtype) -> Any:
    """Return `value` converted for arrays of dtype `kind`; negative numbers wrap in unsigned dtypes.

    Raises:
        RuntimeError: `value` is out of the range of `kind`.
        OverflowError: `value` is an int of more than 64 bits.
    """
    if isinstance(value, builtins.int) and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert" if value > 0 else "can't convert negative int to unsigned")
    if kind is bool:
        return value
    if isinstance(value, complex):
        if kind.is_complex:
            return value
        if value.imag:
            name = _C_NAMES.get(kind.name, f"{kind.name}_t")
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        value = value.real
    if kind.is_complex:
        return builtins.float(value)
    least, greatest = limits_of(kind)
    if kind.is_floating_point:
        overflows = math.isfinite(value) and abs(value) > greatest
    elif not math.isfinite(value):
        overflows = True
    else:
        wraps = not kind.is_signed and isinstance(value, builtins.int)
        overflows = not (-greatest if wraps else least) <= value <= greatest
    if overflows:
        name = _C_NAMES.get(kind.name, f"{kind.name}_t")
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    if kind.is_floating_point:
        return builtins.float(value)
    return builtins.int(value) if kind.is_signed else builtins.int(value) % (greatest + 1)
