"""The rules of functions for sparse tensors, and how a call finds its rule.

A sparse tensor has no array. Its class receives the calls with it before anything is computed (`received`): those of
public functions and of ops that have a rule declared for their name. Other functions are composed of these; an op
without a rule raises an error that names it, as does what reads the array. So no function reads a sparse tensor as a
dense one by accident. A method of a sparse tensor goes to `of_sparse` directly.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from tinytorch.core.layout import NoArray, sparse_coo
from tinytorch.core.mode import elements
from tinytorch.core.tensor import Tensor

__all__ = ["RULES", "no_rule", "of_sparse", "received", "refused", "rule", "unsupported"]

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


def received(name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of the rule of a function or op with this name; NotImplemented if it has none.

    Raises:
        NotImplementedError: an op has no rule.
    """
    if name not in RULES and not hasattr(function, "caller"):
        return NotImplemented
    code, given, named = inspect.unwrap(getattr(function, "raw", function)).__code__, list(args), dict(kwargs)
    for parameter in code.co_varnames[len(given) : code.co_argcount]:  # (rules give some parameters other names)
        if parameter not in named:
            break
        given.append(named.pop(parameter))
    return of_sparse(name, tuple(given), named)


def of_sparse(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the result of a function's rule for sparse tensors.

    Args:
        name: the function's name below `torch`, or the method's.
        args, kwargs: the arguments of the call.

    Raises:
        NotImplementedError: there is no rule.
    """
    found = RULES.get(name)
    tensors = [each for each in elements((*args, *kwargs.values())) if is_sparse(each)]
    if not tensors:
        raise NoArray(f"{name}: sparse tensors are not supported here")
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


def refused(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
    """Return the error of a public function that has no rule for its sparse arguments; `error` if there are none."""
    tensors = [each for each in elements((*args, *kwargs.values())) if is_sparse(each)]
    return no_rule(name, tensors[0]) if tensors else error


def unsupported(name: str, x: Any) -> RuntimeError:
    """Return PyTorch's error for a layout that arithmetic does not support."""
    return RuntimeError(f"unsupported tensor layout: {x._backend()} ({name})")
