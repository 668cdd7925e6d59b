"""`torch._foreach_add` and the like: an operation on each tensor of a list, as optimizers are written with.

PyTorch runs one kernel for the whole list; here the method of each tensor is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import repeat
from typing import Any

import numpy as np

from tinytorch.core.mode import local, tangents_of
from tinytorch.core.tensor import Tensor
from tinytorch.ops.reduce import vector_norm

__all__ = ["functions"]

Tensors = Sequence[Any]

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)
_BINARY = "add sub mul div pow maximum minimum clamp_max clamp_min"
_OF_A_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}  # the method where the second operand is a number


def _checked(function: str, tensors: Any) -> Tensors:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got ({type(tensors).__name__}), but "
            "expected a tuple of Tensors"
        )
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _operands(function: str, tensors: Tensors, other: Any) -> Iterable[Any]:
    """Return the second operand for each tensor: the items of a list, or the same number or 0-d tensor for all."""
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
    if isinstance(other, (np.number, np.bool_)):
        return repeat(other.item())
    if not isinstance(other, (bool, int, float, complex, Tensor)):
        raise TypeError(
            f"{function}() received an invalid combination of arguments - got (list, {type(other).__name__}), but "
            "expected a number, a Tensor, or a tuple of these"
        )
    return repeat(other)


def _factors(function: str, tensors: Tensors, value: Any) -> Iterable[Any]:
    """Return the factor for each tensor: a number, a list of numbers, or a 1-d tensor of them."""
    if isinstance(value, Tensor):
        value = value._array.tolist()
    return _operands(function, tensors, value)


def _plain(name: str, function: str) -> Callable[..., Any]:
    """Return a function that calls a method of each tensor with its operands."""
    method = getattr(Tensor, name)

    def compute(self: Any, *operands: Any, **named: Any) -> Any:
        tensors = _checked(function, self)
        columns = [_operands(function, tensors, each) for each in (*operands, *named.values())]
        return [method(*row) for row in zip(tensors, *columns, strict=False)]

    return compute


def _binary(name: str, function: str) -> Callable[..., Any]:
    suffix = "_" if name.endswith("_") else ""
    method: Any = getattr(Tensor, name, None)  # `maximum` has no in-place form
    clamp = _OF_A_NUMBER.get(name.removesuffix("_"))
    of_number: Any = method if clamp is None else getattr(Tensor, clamp + suffix)

    def compute(self: Any, other: Any, **alpha: Any) -> Any:
        if name == "pow" and isinstance(self, (int, float)):
            return [self**y for y in _checked(function, other)]
        pairs = zip(self, _operands(function, _checked(function, self), other), strict=False)
        return [(method if method and isinstance(y, Tensor) else of_number)(x, y, **alpha) for x, y in pairs]

    return compute


def _ternary(name: str, function: str) -> Callable[..., Any]:
    method = getattr(Tensor, name)

    def compute(self: Tensors, tensors1: Any, tensors2: Any, value: Any = 1, *, scalars: Any = None) -> Any:
        factors = _factors(function, _checked(function, self), value if scalars is None else scalars)
        operands = _operands(function, self, tensors1), _operands(function, self, tensors2)
        return [method(x, y, z, value=factor) for x, y, z, factor in zip(self, *operands, factors, strict=False)]

    return compute


def _norm(self: Tensors, ord: Any = 2, dtype: Any = None) -> Any:
    return [vector_norm(x, ord, dtype=dtype) for x in _checked("_foreach_norm", self)]


def _powsum(self: Tensors, ord: Any = 2, dtype: Any = None) -> Any:
    return [x.abs().pow(ord).sum(dtype=dtype) for x in _checked("_foreach_powsum", self)]


def _constant(value: Any) -> bool:
    """Return whether no tensor among the arguments of a call has a gradient or a tangent."""
    if isinstance(value, (list, tuple, dict)):
        return all(map(_constant, value.values() if isinstance(value, dict) else value))
    return not (isinstance(value, Tensor) and (value.requires_grad or tangents_of(value)))


@contextmanager
def _free() -> Iterator[None]:
    """Let a function that a transform differentiates write to tensors that it captures, as PyTorch lets these."""
    state = local.state
    run, state.run = state.run, None
    try:
        yield
    finally:
        state.run = run


def _function(name: str, compute: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return a function that applies `compute`, which returns a list, to a list of tensors; in place by its name."""

    def foreach(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not name.endswith("_"):
            return tuple(compute(self, *args, **kwargs))
        with _free() if _constant((args, kwargs)) else nullcontext():
            compute(self, *args, **kwargs)
        return self

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = doc
    return foreach


def functions() -> dict[str, Callable[..., Any]]:
    """Return the functions by name.

    Example:
        >>> torch._foreach_mul([torch.ones(2), torch.ones(1)], 3)
        (tensor([3., 3.]), tensor([3.]))
    """
    by_name: dict[str, Callable[..., Any]] = {}

    def add(name: str, make: Callable[[str, str], Callable[..., Any]], doc: str) -> None:
        function = f"_foreach_{name}"
        by_name[function] = _function(function, make(name, function), doc)

    def add_both(name: str, make: Callable[[str, str], Callable[..., Any]], operands: str) -> None:
        add(name, make, f"Return `{name}` of each tensor{operands}.")
        add(f"{name}_", make, f"Apply `{name}_` to each tensor{operands}.")

    for name in _UNARY.split():
        add_both(name, _plain, "")
    for name in _BINARY.split():
        add_both(name, _binary, " and a number, or the tensor at its place in a second list")
    for name in ("addcdiv", "addcmul"):
        add_both(name, _ternary, " and the tensors at its place in two other lists")
    add_both("lerp", _plain, " and the tensor at its place in a second list")
    add("clone", _plain, "Return a copy of each tensor.")
    add("max", _plain, "Return the greatest element of each tensor.")
    add("zero_", _plain, "Fill each tensor with zeros.")
    add("mm", _plain, "Return the product of each matrix and the matrix at its place in a second list.")
    add("copy_", _plain, "Copy each tensor of the second list into the tensor at its place in the first.")
    add("norm", lambda *_: _norm, "Return the norm of each tensor as a vector.")
    add("powsum", lambda *_: _powsum, "Return the sum of powers of each tensor.")
    return by_name


globals().update(functions())
