"""Elementwise arithmetic, signs, rounding, bounds and operations on bits, of arrays that broadcast."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from . import complex as complexes
from . import dtypes, limits
from .activation import keep
from .checks import LARGE, VECTORS, check_fits, in_single, refused
from .dtypes import FLOATS, number
from .layouts import arranged
from .native import twin
from .parallel import elementwise, threaded
from .programs import as_array

Array = Any

# Arithmetic ---------------------------------------------------------------------------------------

# Their definition is the ufunc itself; without the native library they are the ufunc.
add = twin(np.add)
subtract = twin(np.subtract)
multiply = twin(np.multiply)
divide = twin(np.true_divide)


@twin
def addcmul(x: Array, a: Array, b: Array, value: float) -> Array:
    """Return `x + value * a * b`."""
    return x + (a * b if value == 1 else value * a * b)


def _factor(value: Any, x: Array) -> Any:
    """Return a number as a factor for `x`: converted to the dtype of `x`, as PyTorch converts scalars."""
    if x.dtype.kind in "fc":
        return value
    return np.asarray(limits.fits(value, dtypes.from_numpy_dtype(x.dtype))).astype(x.dtype)


def _arrays(x: Any, y: Any) -> tuple[Array, Array]:
    """Return both operands as arrays; a number is converted to the other operand's dtype."""
    if not hasattr(x, "dtype"):
        return np.asarray(x).astype(y.dtype), y
    return (x, y) if hasattr(y, "dtype") else (x, np.asarray(y).astype(x.dtype))


def plus_scaled(x: Any, y: Any, alpha: Any) -> Array:
    """Return `x + y * alpha`."""
    x, y = _arrays(x, y)
    return _half_sum(x, y, alpha) if _is_half(x) else x + y * _factor(alpha, y)


def minus_scaled(x: Any, y: Any, alpha: Any) -> Array:
    """Return `x - y * alpha`."""
    x, y = _arrays(x, y)
    return _half_sum(x, y, -alpha) if _is_half(x) else x - y * _factor(alpha, y)


def from_scaled(x: Any, y: Any, alpha: Any) -> Array:
    """Return `y - x * alpha`."""
    x, y = _arrays(x, y)
    return arranged(_half_sum(y, x, -alpha) if _is_half(x) else y - x * _factor(alpha, x), y, x)


def _is_half(x: Array) -> bool:
    return x.itemsize == 2 and x.dtype.kind in FLOATS


def _half_sum(x: Array, y: Array, alpha: Any) -> Array:
    """Return `x + y * alpha` of 16-bit floats.

    As in PyTorch, the factor is rounded to 16 bits, and so is the product, except where whole vectors are computed.
    """
    alpha = float(np.asarray(alpha).astype(x.dtype))
    wide, product = x.astype(np.float32), np.multiply(y.astype(np.float32), alpha, dtype=np.float32)
    # (Of two dense arrays of one layout PyTorch's loop takes all elements, of others those of the last dimension.)
    if x.shape == y.shape and x.strides == y.strides and (x.flags.c_contiguous or x.flags.f_contiguous):
        order = "C" if x.flags.c_contiguous else "F"
        out = _by_vectors(wide.ravel(order), product.ravel(order), x).reshape(x.shape, order=order)
    elif all(not each.ndim or each.shape[-1] == 1 or each.strides[-1] == each.itemsize for each in (x, y)):
        wide, product = np.broadcast_arrays(wide, product)
        out = _by_vectors(wide, product, x)
    else:
        out = wide + product.astype(x.dtype).astype(np.float32)
    return out.astype(x.dtype)


def _by_vectors(wide: Array, product: Array, x: Array) -> Array:
    """Return the sum of arrays of float32, with the products in partial vectors rounded to the dtype of `x`."""
    rest = wide.shape[-1] % VECTORS if wide.ndim else 1
    out = wide + product
    if rest:
        tail = np.s_[..., -rest:] if wide.ndim else ()
        out[tail] = wide[tail] + product[tail].astype(x.dtype).astype(np.float32)
    return out


def number_less(x: Array, y: Any, alpha: Any) -> Array:
    """Return `y - x * alpha` of a number `y`."""
    if alpha != 1 and _is_half(x):
        return _half_sum(np.asarray(y).astype(x.dtype), x, -alpha)
    if x.dtype.kind not in "fc":
        y, alpha = (np.asarray(each).astype(x.dtype) for each in (y, alpha))
    return np.subtract(y, x if alpha == 1 else x * alpha)


@in_single
def add_product(x: Array, tensor1: Array, tensor2: Array, value: Any) -> Array:
    """Return `addcmul` of arrays of any dtype but bool."""
    if x.dtype.kind == "b":
        raise refused("addcmul_cpu_out", x)
    return addcmul(x, tensor1, tensor2, _factor(value, x))


@in_single
def addcdiv(x: Array, tensor1: Array, tensor2: Array, value: Any) -> Array:
    """Return `x + value * tensor1 / tensor2`."""
    return x + (tensor1 / tensor2 if value == 1 else _factor(value, x) * tensor1 / tensor2)


def lerp(x: Array, end: Array, weight: float) -> Array:
    """Return `x + weight * (end - x)`, computed from the nearer end."""
    if x.dtype.kind in "biu":
        raise refused("lerp_kernel_scalar", x)
    if type(weight) is complex:
        weight = limits.fits(weight, dtypes.from_numpy_dtype(x.dtype))
    if x.itemsize == 2:
        return lerp(x.astype(np.float32), end.astype(np.float32), weight).astype(x.dtype)
    return x + weight * (end - x) if abs(weight) < 0.5 else end - (end - x) * (1 - weight)


def lerp_to(x: Array, end: Array, weight: Array) -> Array:
    """As `lerp`, with an array of weights; a single one may have another dtype, to which the others are promoted."""
    if weight.dtype != x.dtype:
        arrays = (x, end, weight)
        operands = [(dtypes.from_numpy_dtype(each.dtype), 2 if each.ndim else 1) for each in arrays]
        kind = dtypes.result_dtype(*operands).numpy
        x, end, weight = (each.astype(kind) for each in arrays)
    if x.dtype.kind in "biu":
        raise refused("lerp_kernel_tensor", x)
    if x.dtype.itemsize < 4:
        return lerp_to(*[each.astype(np.float32) for each in (x, end, weight)]).astype(x.dtype)
    way = end - x
    return np.where(np.abs(weight) < 0.5, x + weight * way, end - way * (1 - weight))


# Division with rounding ---------------------------------------------------------------------------


def _refuse_zero(a: Array, b: Array, name: str) -> None:
    """Raise PyTorch's errors for booleans, and for integers divided by zero (NumPy would warn and return 0)."""
    if a.dtype == np.bool_:
        raise refused(name, a)
    if b.dtype.kind in "iu" and a.size and not np.all(b):
        raise RuntimeError("ZeroDivisionError")


@twin
def floor_divide(a: Array, b: Array) -> Array:
    """Return `a / b`, rounded towards minus infinity."""
    _refuse_zero(a, b, "div_floor_cpu")
    if not b.ndim and _is_half(b) and b == 1:
        return np.floor(a)  # of 16 bits: `a` was divided in float32 (see `promoted`), and may be infinite
    if _is_half(a):
        return _half_floor_divide(a, b)
    return np.floor_divide(a, b)


def _half_floor_divide(a: Array, b: Array) -> Array:
    """Return `floor(a / b)` of arrays of 16-bit floats, by PyTorch's steps, each of which is rounded to 16 bits."""
    one = a.dtype.type(1)
    mod = np.fmod(a, b)
    out = (a - mod) / b
    out = np.where((mod != 0) & ((b < 0) != (mod < 0)), out - one, out)
    down = np.floor(out)
    down = np.where(out - down > a.dtype.type(0.5), down + one, down)
    down = np.where(out == 0, np.copysign(out - out, a / b), down)
    return np.where(b == 0, a / b, down)


@twin
def trunc_divide(a: Array, b: Array) -> Array:
    """Return `a / b`, rounded towards zero."""
    _refuse_zero(a, b, "div_trunc_cpu")
    if a.dtype.kind in "iu":
        quotient = np.floor_divide(a, b)
        return quotient + ((quotient < 0) & (quotient * b != a))
    return np.trunc(np.true_divide(a, b))


@twin
def remainder(a: Array, b: Array) -> Array:
    """Return the remainder of `a / b` with the sign of `b`."""
    _refuse_zero(a, b, "remainder_cpu")
    if a.dtype.kind in "iu":
        return np.remainder(a, b)
    # Not `np.remainder`, whose zeros have the sign of b; PyTorch's have the sign of a.
    out = np.fmod(a, b)
    return np.where((out != 0) & ((out < 0) != np.less(b, 0)), out + b, out)


@twin
def fmod(a: Array, b: Array) -> Array:
    """Return the remainder of `a / b` with the sign of `a`."""
    _refuse_zero(a, b, "fmod_cpu")
    return np.fmod(a, b)


# Absolute value, sign, rounding -------------------------------------------------------------------


def negative(a: Array) -> Array:
    """Return `-a`."""
    try:
        return np.negative(a)
    except TypeError:  # NumPy cannot negate booleans
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use "
            "the `~` or `logical_not()` operator instead."
        ) from None


negative.ufunc = np.negative  # type: ignore[attr-defined]


def _but(kinds: str, name: str, function: Callable[[Array], Array], a: Array) -> Array:
    """Return `function(a)`; raise PyTorch's error for NumPy's dtype kinds `kinds`."""
    if a.dtype.kind in kinds:
        raise refused(name, a)
    return function(a)


def _fraction(a: Array) -> Array:
    return a - np.trunc(a)


absolute: Any = functools.partial(_but, "b", "abs_cpu", np.abs)
floor: Any = functools.partial(_but, "b", "floor_vml_cpu", np.floor)
ceil: Any = functools.partial(_but, "b", "ceil_vml_cpu", np.ceil)
trunc: Any = functools.partial(_but, "b", "trunc_vml_cpu", np.trunc)
frac: Any = functools.partial(_but, "biu", "frac_cpu", _fraction)
for _kernel in (absolute, floor, ceil, trunc, frac):
    _kernel.ufunc = _kernel.args[2]  # (floats need no check)


def conjugate(a: Array) -> Array:
    """Return the complex conjugates."""
    return np.conjugate(a)


def sgn(a: Array) -> Array:
    """Return -1, 0 or 1, the sign of `a`; of complex numbers `a / abs(a)`, 0 for 0."""
    return complexes.sgn(a) if a.dtype.kind == "c" else sign(a)


@twin
def sign(a: Array) -> Array:
    """Return -1, 0 or 1: the sign of `a`."""
    if a.dtype.kind not in FLOATS:
        return a.copy() if a.dtype.kind == "b" else np.sign(a)
    # Comparing is faster than `np.sign`, and gives 0 for NaN, as PyTorch does.
    return np.subtract((a > 0).view(np.int8), (a < 0).view(np.int8)).astype(a.dtype)


@twin
def rounded(x: Array, decimals: int | None = None) -> Array:
    """Return `x` rounded to `decimals` places, halves to the even neighbour."""
    if x.dtype.kind == "b" or (decimals is not None and x.dtype.kind in "iu"):
        raise refused("round_cpu" if decimals else "round_vml_cpu", x)
    if x.itemsize == 2 and x.dtype.kind in FLOATS:  # the product with a power of 10 must not be rounded to 16 bits
        return np.round(x.astype(np.float32), decimals or 0).astype(x.dtype)
    return x.copy() if x.dtype.kind in "iu" else np.round(x, decimals or 0)


# Bounds and selection -----------------------------------------------------------------------------


@threaded
def kept(x: Array, mask: Array) -> Array:
    """Return `x` where the mask, of the same shape, is true, else 0 (even where `x` is infinite or NaN)."""
    return keep(x, mask)


def of_larger(g: Array, x: Array, y: Array) -> Array:
    """Return the gradient of max(x, y) for x: `g` where x is larger, half of it in ties, else 0."""
    part, ties = keep(g, np.logical_not(x < y)), np.equal(x, y)
    return np.where(ties, part / 2, part) if ties.any() else part


#: The types of numbers that are neither bool nor None.
REAL = frozenset((int, float))
_SMALL = 1 << 12


def _bound(value: Any, x: Array) -> Any:
    """Return a bound in the dtype of `x`: with a Python number NumPy would promote bfloat16."""
    if type(value) in REAL:
        value = check_fits(x, value)
    return np.asarray(value).astype(x.dtype) if x.dtype.kind == "V" else value


def clamp_to_tensors(x: Array, min: Any = None, max: Any = None) -> Array:
    """Return `x` clamped to bounds that are arrays, numbers or None."""
    if type(min) in REAL and type(max) in REAL and x.dtype.kind == "f":
        if x.itemsize == 2 or max > LARGE or min < -LARGE:
            check_fits(x, min, max)
        if x.size > _SMALL:
            return x.clip(min, max)  # twice as fast as `maximum` and `minimum`, but with overhead in Python
        low, high = number(min, x.dtype) if min else min, number(max, x.dtype) if max else max
        return np.minimum(np.maximum(x, low), high)
    if min is not None:
        x = np.maximum(x, _bound(min, x))
    return x if max is None else np.minimum(x, _bound(max, x))


@twin
@elementwise
def clamp(x: Array, min: Any = None, max: Any = None) -> Array:
    """Return `x` clamped to numbers."""
    return clamp_to_tensors(x, min, max)


@elementwise
def clamp_min(x: Array, min: Any) -> Array:
    """Return `max(x, min)` of a number `min`."""
    return np.maximum(x, _bound(min, x))


@elementwise
def clamp_max(x: Array, max: Any) -> Array:
    """Return `min(x, max)` of a number `max`."""
    return np.minimum(x, _bound(max, x))


def nan_to_num(x: Array, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Array:
    """Return `x` with NaN and infinities replaced, by default by 0 and the dtype's largest and lowest numbers."""
    if any(map(np.iscomplexobj, (nan, posinf, neginf))):
        raise RuntimeError("value cannot be converted to type double without overflow")
    out = x.copy("K")
    if x.dtype.kind == "c":
        for part, given in ((out.real, x.real), (out.imag, x.imag)):
            part[...] = nan_to_num(given, nan, posinf, neginf)
        return out
    if x.dtype.kind not in FLOATS:
        return out
    greatest = float(limits.finfo(dtypes.from_numpy_dtype(x.dtype)).max)
    new = (0.0 if nan is None else nan, greatest if posinf is None else posinf)
    for value, where in zip(new, (np.isnan(x), x == math.inf), strict=True):
        np.copyto(out, value, casting="unsafe", where=where)
    np.copyto(out, -greatest if neginf is None else neginf, casting="unsafe", where=x == -math.inf)
    return out


# Bits ---------------------------------------------------------------------------------------------


def _of_bits(ufunc: Any, name: str, x: Array, y: Array) -> Array:
    """Return `ufunc(x, y)` of integers and booleans, with PyTorch's error for other dtypes."""
    try:
        return ufunc(x, y)
    except TypeError:
        raise refused(name, x) from None


def _shifted(ufunc: Any, name: str, x: Array, y: Array) -> Array:
    if x.dtype == np.bool_:
        raise refused(name, x)
    return _of_bits(ufunc, name, x, y)


def isclose(x: Array, y: Array, rtol: float, atol: float, equal_nan: bool) -> Array:
    """Return where `|x - y| <= atol + rtol * |y|`, or both are NaN with `equal_nan`."""
    return arranged(as_array(np.isclose(x, y, rtol, atol, equal_nan)), x, y)


def bitwise_not(x: Array) -> Array:
    """Return `~x` of integers and booleans, with PyTorch's error for other dtypes."""
    try:
        return np.invert(x)
    except TypeError:
        raise refused("bitwise_not_cpu", x) from None


bitwise_and = functools.partial(_of_bits, np.bitwise_and, "bitwise_and_cpu")
bitwise_or = functools.partial(_of_bits, np.bitwise_or, "bitwise_or_cpu")
bitwise_xor = functools.partial(_of_bits, np.bitwise_xor, "bitwise_xor_cpu")
left_shift = functools.partial(_shifted, np.left_shift, "lshift_cpu")
right_shift = functools.partial(_shifted, np.right_shift, "rshift_cpu")
