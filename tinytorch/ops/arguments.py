"""Helpers that op modules share: declarations, and checks of arguments."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np

from tinytorch.core.declaration import missing_argument
from tinytorch.core.op import op
from tinytorch.core.tensor import Tensor
from tinytorch.ops.register import also_by as also_by
from tinytorch.ops.register import pointwise


def renamed(caller: Any, name: str) -> Any:
    """Rename an op's node class to PyTorch's name for the overload, such as "SqueezeBackward1"."""
    caller.op.node_class.__name__ = name
    return caller


def exemplified(
    name: str, kernel: Callable[..., Any], what: str, call: str, result: str, shown: str = "", **facts: Any
) -> Any:
    """Declare an op by `register.pointwise`; what it returns, and a call with its result, are its docstring.

    The example calls `torch.shown`, by default `torch.name`.
    """
    doc = f"""Return {what}.

    Example:
        >>> torch.{shown or name}({call})
        tensor({result})
    """
    return pointwise(name, kernel, doc=doc, **facts)


def named(function: Any, name: str, doc: str) -> Any:
    """Return a function that another one made, with its public name and docstring."""
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def op_of(kernel: Callable[..., Any], **facts: Any) -> Any:
    """Return the op of an existing kernel; `facts` are the arguments of `core.op.op`."""
    made = op(**facts)(kernel)
    made.op.name = f"_{kernel.__name__}"  # (an internal name: only the node has PyTorch's)
    return made


def not_implemented(name: str) -> Callable[[Any], NoReturn]:
    """Return the gradient formula of an op without a backward in PyTorch: it raises PyTorch's error."""

    def formula(g: Any) -> NoReturn:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return formula


def not_derived(name: str) -> Callable[[Any], NoReturn]:
    """Return the formula of an argument whose derivative PyTorch lacks: it raises PyTorch's error."""

    def formula(g: Any) -> NoReturn:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return formula


def elementwise(kernel: Callable[..., Any], *, name: str | None = None, **facts: Any) -> Callable[[Any], Any]:
    """Declare the op of a ufunc by `register.pointwise`, with the decorated function's name and docstring."""

    def declare(function: Any) -> Any:
        return pointwise(name or function.__name__, kernel, doc=function.__doc__, **facts)

    return declare


sections_or_indices = also_by(
    sections="indices_or_sections", indices="indices_or_sections", tensor_indices_or_sections="indices_or_sections"
)


def check_tensor(value: Any, name: str, argument: str = "input", position: int = 1) -> None:
    """Raise PyTorch's error unless `value` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name}(): argument '{argument}' (position {position}) must be Tensor, not {type(value).__name__}"
        )


def check_tensors(name: str, **values: Any) -> None:
    """Raise PyTorch's error unless the first arguments of a function, passed here by name, are tensors."""
    for position, (argument, value) in enumerate(values.items(), 1):
        check_tensor(value, name, argument, position)


def check_elements(values: Iterable[Any], position: int = 0) -> None:
    """Raise PyTorch's error unless the elements of the argument at `position`, counted from 0, are tensors."""
    for k, each in enumerate(values):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument {position}, but got {type(each).__name__}")


def ints_of(name: str, argument: str, values: tuple[Any, ...], named: dict[str, Any] | None = None) -> tuple[int, ...]:
    """Return ints passed as separate arguments, or as one sequence, which may be a keyword argument."""
    if named:
        if set(named) != {argument} or values:
            wrong = next((each for each in named if each != argument), argument)
            raise TypeError(f"{name}() got an unexpected keyword argument '{wrong}'")
        values = (named[argument],)
    given = values
    if len(values) == 1:
        first = values[0]
        if isinstance(first, (tuple, list)):
            values = tuple(first)
        elif first is None:
            raise missing_argument(name, argument)
    elif not values:
        raise missing_argument(name, argument)
    for value in values:
        if type(value) is not int:
            break
    else:
        return values
    if bool in map(type, values):  # an int to Python, but not to PyTorch
        at = list(map(type, values)).index(bool)
        what = "not bool" if values == given else f"but found element of type bool at pos {at}"
        raise TypeError(f"{name}(): argument '{argument}' (position 1) must be tuple of ints, {what}")
    try:
        return tuple([operator.index(value) for value in values])
    except TypeError:
        kinds = ", ".join(type(value).__name__ for value in values)
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected ints or a "
            f"sequence of ints as '{argument}'"
        ) from None


def check_some_dim(input: Tensor, name: str) -> None:
    """Raise PyTorch's error for a 0-d tensor."""
    if not input._array.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor")


def unless_empty(name: str, scalar: bool = False) -> Callable[..., str | None]:
    """Return the argument `refuses` of an op whose kernel PyTorch does not call for empty arrays.

    "{4}" in the kernel's name stands for the fifth argument; `scalar`: PyTorch does not call it for a 0-d array either.
    """

    def refuses(*args: Any) -> str | None:
        arrays = [x for x in args if isinstance(x, np.ndarray)]
        if not all([x.size for x in arrays]) or (scalar and not arrays[0].ndim):
            return None
        return name.format(*args)

    return refuses


def unless_scalar(name: str) -> Callable[..., str | None]:
    """Return the argument `refuses` of an op whose kernel PyTorch does not call for a 0-d first argument."""
    return lambda x, *args: name if x.ndim else None
