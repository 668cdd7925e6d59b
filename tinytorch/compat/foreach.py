"""`torch._foreach_add` and its kin: an operation on each tensor of a list, as optimizers are written with.

PyTorch runs one kernel for the whole list. Here they are the tensors' methods, called in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.ops.reduce import vector_norm

__all__ = ["functions"]

Tensors = Sequence[Any]

_OF_ONE = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_OF_TWO = "add sub mul div pow maximum minimum clamp_max clamp_min"
_WITH_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # of a tensor and a number


def _checked(function: str, tensors: Any) -> Tensors:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(each, Tensor) for each in tensors):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got ({type(tensors).__name__}), but "
            "expected a tuple of Tensors"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _beside(function: str, tensors: Tensors, other: Any) -> Iterable[Any]:
    """Return what goes with each tensor: the items of a list as long, or always the same number or 0-d tensor."""
    if isinstance(other, (list, tuple)):
        if len(other) != len(tensors):
            if other and not isinstance(other[0], Tensor):
                raise RuntimeError(
                    f"Tensor list must have same number of elements as scalar list, got {len(tensors)} and {len(other)}"
                )
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )
        return other
    if not isinstance(other, (bool, int, float, Tensor)):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got (list, {type(other).__name__}), but "
            "expected a number, a Tensor, or a tuple of these"
        )
    return repeat(other)


def _numbers(function: str, tensors: Tensors, value: Any) -> Iterable[Any]:
    """Return the factor for each tensor; a tensor of one dimension holds them."""
    if isinstance(value, Tensor):
        value = value._array.tolist()
    return _beside(function, tensors, value)


def _of_one(name: str, function: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def each(self: Tensors) -> Tensors:
        made = [method(x) for x in _checked(function, self)]
        return self if name.endswith("_") else tuple(made)

    return each


def _two(name: str) -> Callable[..., Any]:
    suffix = "_" if name.endswith("_") else ""
    method: Any = getattr(Tensor, name, None)  # `maximum` has no in-place form
    clamped = _WITH_NUMBERS.get(name.removesuffix("_"))
    of_number: Any = method if clamped is None else getattr(Tensor, clamped + suffix)

    def call(x: Any, y: Any, **alpha: Any) -> Any:
        return (method if method is not None and isinstance(y, Tensor) else of_number)(x, y, **alpha)

    return call


def _of_two(name: str, function: str) -> Callable[..., Any]:
    call = _two(name)

    def each(self: Any, other: Any, **alpha: Any) -> Tensors:
        if name == "pow" and isinstance(self, (int, float)):
            return tuple([self**y for y in _checked(function, other)])
        beside = _beside(function, _checked(function, self), other)
        made = [call(x, y, **alpha) for x, y in zip(self, beside, strict=False)]
        return self if name.endswith("_") else tuple(made)

    return each


def _of_three(name: str, function: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def each(self: Tensors, tensors1: Any, tensors2: Any, value: Any = 1, **named: Any) -> Any:
        factors = _numbers(function, _checked(function, self), named.get("scalars", value))
        places = zip(self, _beside(function, self, tensors1), _beside(function, self, tensors2), factors, strict=False)
        made = [method(x, y, z, value=factor) for x, y, z, factor in places]
        return self if name.endswith("_") else tuple(made)

    return each


def _lerp(name: str, function: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def each(self: Tensors, tensors1: Any, weight: Any = None, *, weights: Any = None) -> Any:
        ends = _beside(function, _checked(function, self), tensors1)
        parts = _beside(function, self, weight if weights is None else weights)
        made = [method(x, y, part) for x, y, part in zip(self, ends, parts, strict=False)]
        return self if name.endswith("_") else tuple(made)

    return each


def _copy(self: Tensors, src: Any, non_blocking: bool = False) -> Tensors:
    beside = _beside("_foreach_copy_", _checked("_foreach_copy_", self), src)
    for x, y in zip(self, beside, strict=False):
        x.copy_(y)
    return self


def _norm(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    return tuple([vector_norm(x, ord, dtype=dtype) for x in _checked("_foreach_norm", self)])


def _powsum(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Any, ...]:
    return tuple([x.abs().pow(ord).sum(dtype=dtype) for x in _checked("_foreach_powsum", self)])


def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions by name.

    Example:
        >>> torch._foreach_mul([torch.ones(2), torch.ones(1)], 3)
        (tensor([3., 3.]), tensor([3.]))
    """
    made: dict[str, Callable[..., Any]] = {}

    def enter(name: str, make: Callable[[str, str], Callable[..., Any]], does: str) -> None:
        function = f"_foreach_{name}"
        each = made[function] = make(name, function)
        each.__name__ = each.__qualname__ = function
        each.__doc__ = does

    for name in _OF_ONE.split():
        enter(name, _of_one, f"Return `{name}` of each tensor.")
        enter(f"{name}_", _of_one, f"Do `{name}_` to each tensor.")
    enter("clone", _of_one, "Return a copy of each tensor.")
    enter("max", _of_one, "Return the greatest element of each tensor.")
    enter("zero_", _of_one, "Fill each tensor with zeros.")
    for name in _OF_TWO.split():
        enter(name, _of_two, f"Return `{name}` of each tensor and a number, or its partner in a list.")
        enter(f"{name}_", _of_two, f"Do `{name}_` to each tensor.")
    enter("mm", _of_two, "Return the product of each matrix with its partner in a list.")
    for name in ("addcdiv", "addcmul"):
        enter(name, _of_three, f"Return `{name}` of each tensor and its partners in two lists.")
        enter(f"{name}_", _of_three, f"Do `{name}_` to each tensor.")
    enter("lerp", _lerp, "Return `lerp` of each tensor and its partner in a list.")
    enter("lerp_", _lerp, "Do `lerp_` to each tensor.")
    enter("copy_", lambda name, function: _copy, "Copy each tensor of a list into its partner.")
    enter("norm", lambda name, function: _norm, "Return the norm of each tensor as a vector.")
    enter("powsum", lambda name, function: _powsum, "Return the sum of powers of each tensor.")
    return made


globals().update(functions())
