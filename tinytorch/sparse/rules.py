"""The rules of functions for sparse tensors, and how a call finds its rule.

A sparse tensor has no array. A function that reads one raises `NoArray`; what called the function catches the error and
calls `of_sparse`, which calls the rule declared for the function's name, or raises an error that names the function.
A method of a sparse tensor goes to `of_sparse` directly. So no function reads a sparse tensor as a dense one by
accident, and calls with dense tensors do not know that there are sparse ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from tinytorch.core.layout import NoArray, sparse_coo
from tinytorch.core.tensor import Tensor

__all__ = ["RULES", "no_rule", "of_sparse", "rule", "unsupported"]

F = TypeVar("F", bound=Callable[..., Any])

#: By the name of a function below `torch`, or of a method of Tensor: the function of sparse tensors.
RULES: dict[str, Callable[..., Any]] = {}
#: By the name of a function that does not take all layouts: those that it takes, and what makes the error for others.
_LIMITED: dict[str, tuple[Any, Callable[[str, Any], Exception]]] = {}


def rule(*names: str, of: Any = None, error: Any = None) -> Callable[[F], F]:
    """Return a decorator that makes a function the rule for the functions and methods with these names.

    Args:
        names: of the functions and methods.
        of: the layouts that they take; None for all. (A formula that calls the function itself may give it others.)
        error: makes the error for other layouts of the name and of the tensor; as a rule `no_rule`.
    """

    def declare(function: F) -> F:
        for name in names:
            RULES[name] = function
            if of is not None:
                _LIMITED[name] = of, error or no_rule
        return function

    return declare


def is_sparse(x: Any) -> bool:
    """Return whether an object is a sparse tensor."""
    return isinstance(x, Tensor) and hasattr(x, "_held")


def _arguments(args: Any) -> Iterator[Any]:
    """Yield arguments, and the elements of those that are sequences."""
    for each in args:
        if isinstance(each, (list, tuple)):
            yield from each
        else:
            yield each


def of_sparse(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception | None = None) -> Any:
    """Return the result of a function's rule for sparse tensors.

    Args:
        name: the function's name below `torch`, or the method's.
        args, kwargs: the arguments of the call.
        error: the error that the function raised; None if it has not been called.

    Raises:
        NotImplementedError: there is no rule.
    """
    found = RULES.get(name)
    tensors = [each for each in _arguments((*args, *kwargs.values())) if is_sparse(each)]
    if not tensors:
        raise NoArray(f"{name}: sparse tensors are not supported here") if error is None else error
    if found is None:
        raise no_rule(name, tensors[0]) from None
    for x in tensors:
        if name in _LIMITED and x.layout not in _LIMITED[name][0]:
            raise _LIMITED[name][1](name, x) from None
    renamed = {"self" if key == "input" else key: value for key, value in kwargs.items()}
    out = renamed.pop("out", None)
    if out is None:
        return found(*args, **renamed)
    if not isinstance(out, Tensor):
        raise NoArray(f"{name}(out=...) of several tensors is not supported for sparse tensors")
    return _written(name, found(*args, **renamed), out)


def _written(name: str, result: Any, out: Any) -> Any:
    """Return `out` after the result has been written to it."""
    if result.requires_grad or out.requires_grad:
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if result.layout is not out.layout:
        raise RuntimeError(f"{name}(): expected `out` to have the layout {result.layout}, but got {out.layout}")
    if is_sparse(out):
        return out._become(result.to(out.dtype))
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result)


def no_rule(name: str, x: Any) -> NoArray:
    """Return PyTorch's error for a function that sparse tensors do not have."""
    backend = "SparseCPU" if x.layout is sparse_coo else "SparseCsrCPU"
    return NoArray(
        f"Could not run 'aten::{name.rpartition('.')[2].strip('_') if name.startswith('__') else name}' with arguments "
        f"from the '{backend}' backend: tinytorch has no rule for {x.layout} tensors. Convert the tensor by to_dense() "
        "where its dense form fits into memory."
    )


def unsupported(name: str, x: Any) -> RuntimeError:
    """Return PyTorch's error for a layout that arithmetic does not support."""
    return RuntimeError(f"unsupported tensor layout: {x._backend()} ({name})")
