"""Sequences (`arange`, `linspace`, …), the identity matrix, and the indices of triangular parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.kernels import dtypes
from tinytorch.kernels.checks import refused
from tinytorch.kernels.dtypes import dtype as Dtype
from tinytorch.kernels.limits import fits
from tinytorch.kernels.random import fused
from tinytorch.kernels.silence import quiet, quietly
from tinytorch.ops.arguments import named
from tinytorch.ops.batch_rules import per_example
from tinytorch.ops.create import Array, _is_size, _short, blank, checked_device, finished, is_index, number
from tinytorch.ops.register import no_such_call, public


@quiet
def _fill_in_order(made: Tensor, numbers: Array) -> Tensor:
    made._array[...] = numbers.reshape(made._array.shape)
    return made


# Sequences of numbers -----------------------------------------------------------------------------


@public(listed=False, traced="creates")
@_short("arange")
def arange(
    *args: Any,
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the ceil((end - start) / step) numbers start, start + step, … before `end`: `arange([start,] end, step)`.

    `step` may be negative; RuntimeError if it is zero or leads away from `end`. The dtype is by default int64 if start,
    end and step are ints, else the default dtype; the other arguments are as for `zeros`.

    Example:
        >>> torch.arange(5)
        tensor([0, 1, 2, 3, 4])
        >>> torch.arange(1, 2.5, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    if len(args) == 1 and end is None:
        end = args[0]
    elif args:
        start = args[0]
        end = args[1] if len(args) > 1 else end
        step = args[2] if len(args) > 2 else step
    if end is None or len(args) > 3:
        kinds = ", ".join(type(each).__name__ for each in args)
        raise TypeError(f"arange() received an invalid combination of arguments - got ({kinds})")
    end = number("arange", "end", min(len(args), 2) or 1, end)
    start, step = number("arange", "start", 1, start), number("arange", "step", 3, step)
    kind = out.dtype if out is not None else None if dtype is None else dtypes.as_dtype(dtype)
    if kind is None:
        whole = all(isinstance(each, int) for each in (start, end, step))
        kind = dtypes.int64 if whole else dtypes.get_default_dtype()
    if kind in dtypes.LACKING or kind.is_complex or kind in dtypes.FLOAT8:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{kind.tensor_name}'")
    if isinstance(end, complex) or isinstance(start, complex) or isinstance(step, complex):
        raise RuntimeError("value cannot be converted to type double without overflow")
    count = _count(start, end, step, kind)
    made = blank((count,), out, kind if out is None else dtype, device, layout, requires_grad, None, "arange")
    if kind.is_floating_point:
        return _fill_in_order(made, _progression(float(start), float(step), count, made._array))
    return _fill_in_order(made, np.arange(count, dtype=np.int64) * int(step) + int(start))


@public("range", listed=False, traced="creates")
def inclusive_range(
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return start, start + step, … up to and including `end`: the deprecated `torch.range`; use `arange`.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     torch.range(1, 2, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    start, end = number("range", "start", 1, start), number("range", "end", 2, end)
    step = number("range", "step", 3, step)
    kind = out.dtype if out is not None else dtypes.get_default_dtype()
    kind = kind if dtype is None else dtypes.as_dtype(dtype)
    if kind in dtypes.LACKING or kind.is_complex:
        raise NotImplementedError(f"\"range_cpu\" not implemented for '{kind.tensor_name}'")
    if step == 0 or (int(step) == 0 and not kind.is_floating_point):
        raise RuntimeError("step must be nonzero")
    _check_ends(start, end, step)
    count = int((end - start) / step) + 1
    made = blank((count,), out, kind if out is None else dtype, device, layout, requires_grad, None, "range")
    numbers = np.arange(count, dtype=np.float64 if kind.is_floating_point else np.int64)
    if not kind.is_floating_point:
        start, step = int(start), int(step)
    return _fill_in_order(made, numbers * step + start)


inclusive_range.__name__ = inclusive_range.__qualname__ = "range"


def _check_ends(start: Any, end: Any, step: Any) -> None:
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


def _count(start: Any, end: Any, step: Any, kind: Dtype) -> int:
    """Return the number of elements of `arange`."""
    if step == 0:
        raise RuntimeError("step must be nonzero")
    _check_ends(start, end, step)
    if kind is dtypes.int64:  # PyTorch uses integer arithmetic
        start, end, step = (fits(each, kind) for each in (start, end, step))
        if step == 0:
            raise ValueError("step must be nonzero")
        return len(range(start, end, step))
    return math.ceil((end - start) / step)


@quiet
def _progression(start: float, step: float, count: int, like: Array) -> Array:
    """Return start + step * i for i < count, rounded as PyTorch's kernel rounds it.

    The kernel processes two 32-byte vectors per iteration. In each vector the first element is rounded to the dtype,
    and the other lanes are computed from the rounded element. The tail is computed from `start`.
    """
    lanes = 32 // like.itemsize
    wide = np.float32 if like.itemsize == 2 else np.float64
    start, step = float(wide(start)), float(wide(step))
    numbers = _fused_into(np.arange(count, dtype=wide), step, start, like.dtype)
    if count >= 2 * lanes:
        vectors = numbers[: count // (2 * lanes) * 2 * lanes].reshape(-1, lanes)
        lane = np.broadcast_to(np.arange(lanes, dtype=wide), vectors.shape)
        vectors[...] = _fused_into(lane, step, vectors[:, :1].astype(wide), like.dtype)
    return numbers


def _fused_into(x: Array, y: float, z: Any, dtype: Any) -> Array:
    """Return x * y + z, rounded once and then to `dtype`."""
    if dtype == np.float32:  # of float64: an error of two roundings seldom changes what is rounded to float32
        total = x * y + z
        error = (np.abs(x * y) + np.abs(total)) * 2.0**-51
        low, high = (total - error).astype(dtype), (total + error).astype(dtype)
        if (low.view(np.int32) == high.view(np.int32)).all():
            return low
    return fused(x, y, z).astype(dtype)


@public(listed=False, traced="creates")
@_short("linspace")
@per_example("start", "end")
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return `steps` evenly spaced numbers from `start` to `end`, both included; the others are as for `zeros`.

    Example:
        >>> torch.linspace(0, 1, 5)
        tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    dtype = _complex_dtype("linspace", start, end, out, dtype)
    made = _spaced("linspace", start, end, steps, out, dtype, device, layout, requires_grad)
    if steps <= 1:
        first, _ = _ends("linspace", start, end, None)
        return _fill_in_order(made, np.array([fits(first, made.dtype)] if steps else []))
    first, last = _ends("linspace", start, end, made.dtype)
    return _fill_in_order(made, _steps(first, last, int(steps), made.dtype))


@public(listed=False, traced="creates")
@_short("linspace", np.power)
@per_example("start", "end")
def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return `steps` numbers from base**start to base**end, with evenly spaced exponents; see `linspace`.

    Example:
        >>> torch.logspace(0, 2, 3)
        tensor([  1.,  10., 100.])
    """
    dtype = _complex_dtype("logspace", start, end, out, dtype)
    made = _spaced("logspace", start, end, steps, out, dtype, device, layout, requires_grad)
    kind = made.dtype
    if steps <= 1:  # PyTorch ignores `end` here, and does not convert `start` to an integer dtype
        first, _ = _ends("logspace", start, end, None)
        first = complex(first) if kind.is_complex else float(first)
        power = quietly(np.power, type(first)(base), first).item()
        power = power if kind.category >= dtypes.FLOATING or not steps else fits(power, kind)
        return _fill_in_order(made, np.array([power][: int(steps)]))
    first, last = _ends("logspace", start, end, kind)
    if kind.is_complex:
        powers = quietly(np.power, np.array(base, kind.numpy), _steps(first, last, int(steps), kind))
        return _fill_in_order(made, powers)
    if not kind.is_floating_point:  # the ends are truncated to ints, the exponents between them are not
        first, last, kind = int(first), int(last), dtypes.float64
    exponents = _steps(first, last, int(steps), kind)
    return _fill_in_order(made, quietly(np.power, float(base), exponents.astype(np.float64)))


def _spaced(
    name: str, start: Any, end: Any, steps: Any, out: Any, dtype: Any, device: Any, layout: Any, requires_grad: bool
) -> Tensor:
    if not _is_size(steps):
        base = "" if name == "linspace" else ", float base = 10.0"
        ends = [f"{start} start, {end} end" for end in ("Tensor", "Number") for start in ("Tensor", "Number")]
        raise no_such_call(
            name, (start, end, steps), tuple([f"{each}, int steps{base}, *, Tensor out = None, …" for each in ends])
        )
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    made = blank((int(steps),), out, dtype, device, layout, requires_grad, None, name)
    if made.dtype in dtypes.LACKING and steps > 1:
        raise refused(f"{name}_cpu", made._array)
    return made


def _complex_dtype(name: str, start: Any, end: Any, out: Any, dtype: Any) -> Any:
    """Return the dtype of `linspace`: by default a complex one if an end is a complex number."""
    if not any(isinstance(each, complex) or (isinstance(each, Tensor) and each.is_complex()) for each in (start, end)):
        return dtype
    inferred = dtypes.get_default_dtype().to_complex()
    if dtype is None:
        return inferred if out is None else None
    if not dtypes.as_dtype(dtype).is_complex:
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {dtypes.C_NAMES[inferred.name]} can't be safely cast to passed dtype "
            f"{dtypes.as_dtype(dtype).tensor_name}"
        )
    return dtype


def _ends(name: str, start: Any, end: Any, kind: Dtype | None) -> tuple[Any, Any]:
    ends = []
    for position, (what, value) in enumerate((("start", start), ("end", end)), 1):
        if isinstance(value, Tensor) and value._array.ndim:
            raise RuntimeError(
                f"{name} only supports 0-dimensional start and end tensors, but got {what} with "
                f"{value._array.ndim} dimension(s)."
            )
        given = number(name, what, position, value)
        ends.append(given if kind is None else fits(given, kind))
    return ends[0], ends[1]


@quiet
def _steps(start: Any, end: Any, steps: int, kind: Dtype) -> Array:
    """Return the elements of `linspace`: the first half computed from `start`, the second half from `end`."""
    index = np.arange(steps, dtype=np.int64)
    half = steps // 2
    if kind.itemsize == 2 and kind.is_floating_point:  # each operation rounds to the dtype
        real = kind.numpy.type
        first, last = real(start), real(end)
        step = (last - first) / real(steps - 1)
        return np.concatenate(
            [first + step * index[:half].astype(real), last - step * (steps - 1 - index[half:]).astype(real)]
        )
    if kind.is_complex:
        real = kind.numpy.type
        first, last = real(start), real(end)
        step = (last - first) / real(steps - 1)
        behind = steps - 1 - index[half:]
        return np.concatenate([first + step * index[:half].astype(real), last - step * behind.astype(real)])
    real = np.float32 if kind is dtypes.float32 else np.float64
    first, last = real(start), real(end)
    step = float((last - first) / real(steps - 1))
    index[half:] -= steps - 1
    distance, nearest = index.astype(real), np.full(steps, first)
    distance[-1], nearest[half:] = -0.0, last  # (so that -0.0 stays the last element)
    return fused(distance, step, nearest).astype(kind.numpy, copy=False)


# Matrices -----------------------------------------------------------------------------------------


@public(listed=False, traced="creates")
@_short("eye")
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """Return the (n, m) matrix with ones on the diagonal and zeros elsewhere; m defaults to n.

    Example:
        >>> torch.eye(2, 3)
        tensor([[1., 0., 0.],
                [0., 1., 0.]])
    """
    m = n if m is None else m
    for position, (name, value) in enumerate((("n", n), ("m", m)), 1):
        if not is_index(value):
            raise TypeError(f"eye(): argument '{name}' (position {position}) must be int, not {type(value).__name__}")
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    made = blank((int(n), int(m)), out, dtype, device, layout, requires_grad)
    if made.dtype in dtypes.UNSIGNED:
        raise refused("eye", made._array)
    made._array[...] = 0
    np.fill_diagonal(made._array[:m], 1)
    return made


def _triangle(name: str, find: Any, what: str, example: str) -> Any:
    """Return the public function of the indices of a triangle, whose rows and columns `find` computes."""

    def indices(
        row: int,
        col: int,
        offset: int = 0,
        *,
        dtype: Dtype | None = dtypes.int64,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
    ) -> Tensor:
        on = checked_device(device, layout)
        for argument, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{argument} must be non-negative, got {value}")
        kind = dtypes.int64 if dtype is None else dtypes.as_dtype(dtype)
        if kind not in (dtypes.int64, dtypes.int32):
            raise NotImplementedError(f"\"{name}\" not implemented for '{kind.tensor_name}'")
        return finished(np.stack(find(row, offset, col)).astype(kind.numpy), requires_grad, on)

    doc = f"""Return the indices, shape (2, N), of the {what} of a (row, col) matrix.

    Example:
        >>> torch.{name}(2, 2)
        tensor({example})
    """
    return public(listed=False, traced="creates")(named(indices, name, doc))


tril_indices = _triangle(
    "tril_indices", np.tril_indices, "lower triangle, up to diagonal `offset`,",
    "[[0, 1, 1],\n                [0, 0, 1]]",
)  # fmt: skip
triu_indices = _triangle(
    "triu_indices", np.triu_indices, "upper triangle, from diagonal `offset` on,",
    "[[0, 0, 1],\n                [0, 1, 1]]",
)  # fmt: skip
