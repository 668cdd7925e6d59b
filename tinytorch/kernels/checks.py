"""The dtypes of the arguments of kernels: refused ones, numbers that overflow, 16-bit floats computed in float32."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from . import dtypes
from .dtypes import FLOATS
from .limits import fits
from .meta import copied

#: By character of a floating-point dtype, the absolute value up to which numbers are in its range.
_USUAL = {char: min(float(np.finfo(char).max), 2.0**63) for char in "efd"}
_FLOAT = np.dtype(np.float32)
LARGE = 1e38  # slightly below the largest float32

#: The numbers of 16 bits that a step of PyTorch's vector loops takes: two vectors of AVX2. Some of its functions round
#: intermediate results of the numbers that are left, but not of these.
VECTORS = 32


def require(condition: Any, message: str) -> None:
    """Raise RuntimeError with a message unless the condition holds."""
    if not condition:
        raise RuntimeError(message)


def broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which shapes broadcast; raise PyTorch's error if they do not."""
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return tuple(shapes[0])
    made: tuple[int, ...] = ()
    for shape in shapes:
        for back, (m, n) in enumerate(zip(made[::-1], shape[::-1], strict=False), 1):
            if m != n and 1 not in (m, n):
                raise sizes_differ(m, n, max(len(made), len(shape)) - back)
        made = np.broadcast_shapes(made, shape)
    return made


def sizes_differ(a: int, b: int, dim: int) -> RuntimeError:
    """Return PyTorch's error for two tensors that do not broadcast, because their lengths along `dim` differ."""
    return RuntimeError(
        f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )


def check_expands(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    """Raise PyTorch's error unless an array of a shape broadcasts to the shape `target`."""
    made = broadcast(target, shape)
    if made != target:
        raise RuntimeError(f"output with shape {list(target)} doesn't match the broadcast shape {list(made)}")


def out_of_range(dim: int, bound: int) -> IndexError:
    """Return PyTorch's error for a dimension that is none of those of a tensor with `bound` dimensions."""
    return IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {dim})")


def counted(dim: int, bound: int) -> int:
    """Return a dimension counted from 0, given one of `bound` dimensions that may be counted from the end."""
    if not -bound <= dim < bound:
        raise out_of_range(dim, bound)
    return dim + bound if dim < 0 else dim


def tensor_name(x: Any) -> str:
    """Return PyTorch's name for the dtype of an array, such as "Float"."""
    return dtypes.from_numpy_dtype(x.dtype).tensor_name


def refused(name: str, x: Any) -> NotImplementedError:
    """Return PyTorch's error for a dtype that an op has no kernel for."""
    return NotImplementedError(f"\"{name}\" not implemented for '{tensor_name(x)}'")


def refusing(kernel: Callable[..., Any], name: str, kinds: str, *operands: Any) -> Any:
    """Return `kernel(*operands)`; raise PyTorch's error for an array of one of NumPy's dtype kinds `kinds`."""
    for each in operands:
        if each.dtype.kind in kinds:
            raise refused(name, each)
    return kernel(*operands)


def check_floating(kernel: str, x: Any) -> None:
    """Raise the error of a PyTorch kernel for floating-point dtypes if `x` has another dtype."""
    if x.dtype.kind not in FLOATS:
        raise refused(kernel, x)


def in_single(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Let a kernel of arrays, and numbers, compute 16-bit floats in float32, and round its result once."""

    @functools.wraps(kernel)
    def computed(x: Any, *others: Any, **options: Any) -> Any:
        if x.itemsize != 2 or x.dtype.kind not in FLOATS:
            return kernel(x, *others, **options)
        arrays = (type(x), np.ndarray)
        wide = [y.astype(np.float32) if isinstance(y, arrays) and y.dtype == x.dtype else y for y in (x, *others)]
        return kernel.__globals__[kernel.__name__](*wide, **options).astype(x.dtype)  # (by its twin)

    return computed


def check_fits(x: Any, *values: Any) -> Any:
    """Return the last number, converted for the dtype of `x`; raise PyTorch's error if any is out of range."""
    if x.dtype is not _FLOAT or any([abs(each) > LARGE for each in values]):
        values = tuple([fits(each, dtypes.from_numpy_dtype(x.dtype)) for each in values])
    return values[-1]


def fitting(value: Any, x: Any) -> Any:
    """Return the value to write into `x`: an array unchanged, or a number checked against the range of the dtype."""
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "c" != x.dtype.kind and not value.ndim:
            return fits(value.item(), dtypes.from_numpy_dtype(x.dtype))
        return copied(value, x)
    usual = _USUAL.get(x.dtype.char)
    try:
        if usual is not None and -usual <= value <= usual:
            return value
    except TypeError:  # a complex number
        pass
    return fits(value, dtypes.from_numpy_dtype(x.dtype))


def plain(name: str, argument: str, value: Any) -> Any:
    """Return a 0-d tensor or NumPy scalar as a Python number; arrays, and other values, unchanged."""
    if isinstance(value, np.ndarray) or not hasattr(value, "item"):
        return value
    if value.ndim:
        raise TypeError(f"{name}(): argument '{argument}' must be Number, not Tensor")
    return value.item()


#: The most dimensions that an array of NumPy has.
MOST_DIMENSIONS = 64


def too_many_dimensions(count: int | None = None) -> NotImplementedError:
    """Return the error for a tensor of more dimensions than an array of NumPy can have."""
    have = "a tensor" if count is None else f"a tensor of {count} dimensions"
    return NotImplementedError(
        f"{have} cannot be made: tinytorch's tensors have at most {MOST_DIMENSIONS} dimensions, as NumPy's arrays"
    )


def exceeds_dimensions(error: Exception) -> bool:
    """Return whether an error of NumPy says that an array would have too many dimensions."""
    text = str(error)
    return "maximum supported dimension" in text or "number of dimensions must be within" in text or "ndmax" in text
