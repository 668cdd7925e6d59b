"""Assertions (`torch._check`, `torch._assert` and the like) and arithmetic of sizes (`torch.sym_int` and the like).

PyTorch's compiler takes them for constraints on symbolic sizes; here sizes are Python's numbers.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.ops.register import asking

__all__ = [
    "SymBool", "SymFloat", "SymInt", "_assert", "_assert_async",
    "_check", "_check_index", "_check_is_size", "_check_not_implemented", "_check_tensor_all",
    "_check_tensor_all_with", "_check_type", "_check_value", "_check_with", "sym_float", "sym_int", "sym_ite",
    "sym_max", "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip

__traced_as__ = "inline"  # by `torch.compile`

_DEFAULT_MESSAGE = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


@asking("_assert", binds=True)
def _assert(condition: Any, message: Any) -> None:
    """Raise AssertionError with `message` unless `condition` is true."""
    if not condition:
        raise AssertionError(message)


def _assert_async(input: Tensor, assert_msg: str | None = None) -> None:
    """Raise RuntimeError unless the only element of a tensor is true; on a GPU the error may come later.

    Example:
        >>> torch._assert_async(torch.tensor(True), "it is true")
    """
    if not bool(input):
        raise RuntimeError(
            "Expected Tensor with single nonzero value, but got zero" if assert_msg is None else assert_msg
        )


def _check_with(error_type: type[Exception], cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of type `error_type`, with the text that `message` returns, unless `cond` is True."""
    if cond is True:
        return
    if cond is not False:
        if isinstance(cond, Tensor):
            raise TypeError(
                "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to "
                "assert that all elements are true."
            )
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if message is None:
        raise error_type(_DEFAULT_MESSAGE)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError, with the text that `message` returns, unless `cond` is True.

    Example:
        >>> x = torch.ones(3)
        >>> torch._check(x.ndim == 1, lambda: f"expected a vector, got {x.shape}")
    """
    _check_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: Callable[[], Any] | None = None, *, max: int | None = None) -> None:
    """Raise RuntimeError if `i` is negative, or greater than `max`. Deprecated."""
    warn("_check_is_size is deprecated. Use _check(i >= 0) instead.", FutureWarning)
    _check_with(RuntimeError, i >= 0, message)
    if max is not None:
        _check_with(RuntimeError, i <= max, message)


def _checking(name: str, error_type: type[Exception]) -> Callable[..., None]:
    def check(cond: bool, message: Callable[[], Any] | None = None) -> None:
        _check_with(error_type, cond, message)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raise {error_type.__name__}, with the text that `message` returns, unless `cond` is True."
    return check


_check_index = _checking("_check_index", IndexError)
_check_value = _checking("_check_value", ValueError)
_check_type = _checking("_check_type", TypeError)
_check_not_implemented = _checking("_check_not_implemented", NotImplementedError)


def _check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise an error of type `error_type`, with the text that `message` returns, unless all of `cond` is True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if repr(cond.dtype) != "torch.bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond._is_all_true()), message)


def _check_tensor_all(cond: Tensor, message: Callable[[], Any] | None = None) -> None:
    """Raise RuntimeError, with the text that `message` returns, unless all of `cond` is True."""
    _check_tensor_all_with(RuntimeError, cond, message)


# Sizes as numbers ---------------------------------------------------------------------------------


class SymInt:
    """A symbolic integer of PyTorch's tracing: it has no instances, programs use it with `isinstance`."""

    def __init__(self, node: Any) -> None:
        raise NotImplementedError("tinytorch traces no programs: sizes are numbers")


class SymFloat(SymInt):
    """A symbolic float of PyTorch's tracing: it has no instances."""


class SymBool(SymInt):
    """A symbolic bool of PyTorch's tracing: it has no instances."""


def sym_int(a: Any) -> int:
    """Return a number as an integer, rounded towards zero.

    Example:
        >>> torch.sym_int(3.7), torch.sym_int(-3.7)
        (3, -3)
    """
    return int(a)


@asking("sym_float", binds=True)
def sym_float(a: Any) -> float:
    """Return a number as a float."""
    return float(a)


@asking("sym_not", binds=True)
def sym_not(a: Any) -> bool:
    """Return `not a`."""
    return not a


@asking("sym_max", binds=True)
def sym_max(a: Any, b: Any) -> Any:
    """Return the greater of two numbers: a float if one of them is.

    Example:
        >>> torch.sym_max(3, 2.0)
        3.0
    """
    greater = builtins.max(a, b)
    return float(greater) if isinstance(a, float) or isinstance(b, float) else greater


@asking("sym_min", binds=True)
def sym_min(a: Any, b: Any) -> Any:
    """Return the lesser of two numbers: a float if one of them is."""
    lesser = builtins.min(a, b)
    return float(lesser) if isinstance(a, float) or isinstance(b, float) else lesser


@asking("sym_sqrt", binds=True)
def sym_sqrt(a: Any) -> float:
    """Return the square root of a number."""
    return math.sqrt(a)


@asking("sym_ite", binds=True)
def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """Return `t` if `b` is True, else `f`."""
    if not isinstance(b, bool):
        raise AssertionError(f"expected bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"expected same types, got {type(t)} and {type(f)}")
    return t if b else f


@asking("sym_sum", binds=True)
def sym_sum(args: Any) -> Any:
    """Return the sum of numbers."""
    return builtins.sum(args)
