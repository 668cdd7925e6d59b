"""What PyTorch's parser says of a call whose arguments do not fit a function's signature.

The signature is that of the declaration, with its annotations. Only a call that has failed is compared with it: a
correct one pays nothing, and a function may accept more than it says.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tinytorch.core.declaration import NUMBERS, NUMPY, PUBLIC, missing_argument, own_name, too_many
from tinytorch.core.tensor import Tensor
from tinytorch.kernels import dtypes

#: The classes of errors of which wrong arguments may be the reason: PyTorch looks at those first.
UNTOLD = (TypeError, AttributeError, ValueError, LookupError, RuntimeError)
#: How errors begin that say more than the annotations.
_TOLD = re.compile(r"\w+\(\)( received an invalid combination|: argument '\w+' \(position \d\) must be Number)")


def is_tensor(value: Any) -> bool:
    """Return whether a value counts as a tensor: also if its class has a `__torch_function__`, as PyTorch's tensors."""
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def _is_int(value: Any) -> bool:
    return (isinstance(value, (int, np.integer)) and not isinstance(value, bool)) or _is_number_of(value, "iu")


def _is_number_of(value: Any, kinds: str) -> bool:
    """Return whether a value is a 0-d tensor from which PyTorch reads a number."""
    return isinstance(value, Tensor) and not value._array.ndim and value._array.dtype.kind in kinds


def _is_float(value: Any) -> bool:
    return isinstance(value, NUMBERS) or _is_number_of(value, "fiub")


def _are_ints(value: Any) -> bool:
    return all(map(_is_int, value)) if isinstance(value, (tuple, list)) else _is_int(value)


_PYTHONS = (float, int, bool, complex)
#: The annotations of arguments that may be 0-d tensors, of which PyTorch takes the number.
_NUMBERS = ("float", "int")
#: By an annotation, or the argument's name, PyTorch's name of the type, and the test of a value.
_KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("Tensor", is_tensor),
    "Operand": ("Tensor", lambda x: is_tensor(x) or isinstance(x, NUMBERS)),
    "int": ("int", _is_int),
    "float": ("float", _is_float),
    "bool": ("bool", lambda x: isinstance(x, (bool, np.bool_))),
    "str": ("str", lambda x: isinstance(x, str)),
    **dict.fromkeys(("Dtype", "dtype"), ("torch.dtype", lambda x: isinstance(x, dtypes.dtype) or x in _PYTHONS)),
    **dict.fromkeys(("Generator", "generator"), ("torch.Generator", lambda x: type(x).__name__ == "Generator")),
    "tensors": ("tuple of Tensors", lambda x: isinstance(x, (tuple, list))),
    "str | SizeOrInt": ("tuple of ints", lambda x: isinstance(x, str) or _are_ints(x)),
    **dict.fromkeys(("SizeOrInt", "Dims", "Sequence[int]"), ("tuple of ints", _are_ints)),
}


def type_name(value: Any) -> str:
    """Return the name of a value's type as PyTorch shows it."""
    kind = type(value)
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


@functools.cache
def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(function).parameters


def again(
    error: Exception, call: Any, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any],
    public: Any = None,
) -> Any:  # fmt: skip
    """Return the result of a failed call with PyTorch's names for NumPy's, and numbers for 0-d tensors; or raise.

    Args:
        error: why the call has failed.
        call: is called again, with arguments that are corrected.
        name, function, args, kwargs, public: as for `mistake`.
    """
    own = own_names(function, kwargs, public is None) if isinstance(error, TypeError) else kwargs
    if own.keys() != kwargs.keys():
        try:
            return call(*args, **own)
        except UNTOLD as later:
            error = later
    # (Of a function that PyTorch writes in Python, too, Python says which arguments are missing or unknown.)
    in_python = ".autograd." in function.__module__ if public is None else public.binds
    told = in_python and not isinstance(error, AttributeError)
    if not told and (wrong := mistake(error, name, function, args, kwargs, public)):
        raise wrong from None
    if isinstance(error, (TypeError, AttributeError)) and (numbers := _as_numbers(function, args, own)):
        return call(*numbers[0], **numbers[1])
    raise error


def own_names(function: Any, kwargs: dict[str, Any], is_method: bool = False) -> dict[str, Any]:
    """Replace NumPy's keyword names, and `input` for methods' `self`."""
    names = [*_parameters(function)][is_method:]
    theirs = {"input": "self"} if "self" in names else NUMPY
    own = {theirs[key] if key not in names and theirs.get(key) in names else key: x for key, x in kwargs.items()}
    return own if len(own) == len(kwargs) else kwargs


def _as_numbers(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]] | None:
    """Return the arguments with numbers in the place of 0-d tensors where a number is meant; None without those."""
    kinds, found = inspect.unwrap(function).__annotations__, False

    def number(name: str, value: Any) -> Any:
        nonlocal found
        if not isinstance(value, Tensor) or value.ndim or kinds.get(name, "").partition(" ")[0] not in _NUMBERS:
            return value
        found = True
        return value.item()

    given = list(map(number, _parameters(function), args))
    named = {name: number(name, value) for name, value in kwargs.items()}
    return ([*given, *args[len(given) :]], named) if found else None


def no_such_call(
    name: str, args: tuple[Any, ...], signatures: tuple[str, ...], kwargs: dict[str, Any] | None = None
) -> TypeError:
    """Return PyTorch's error for arguments that match none of a function's signatures."""
    given = [*(kwargs or {}).items()][::-1]  # (in the order of the parser's table)
    named = [f"{key}={type_name(value)}" for key, value in given]
    got = ", ".join([*map(type_name, args), *named]) + ", " * (not args and bool(named))
    return TypeError(
        f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
        + "".join([f" * ({each})\n" for each in signatures])
    )


def mistake(
    error: Exception | None, name: str, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], public: Any = None
) -> TypeError | None:
    """Return PyTorch's error for arguments that do not fit a function's signature; None if they do.

    Args:
        error: why the call has failed: what lacks an attribute that it should have is no tensor.
        name: the public name.
        function: the declared function of Tensors, which may be an op.
        args, kwargs: the arguments; the tensor of a method is none of its arguments.
        public: the `Function`; None for a method.
    """
    if _TOLD.match(str(error)):
        return None
    op, also, lacking = getattr(function, "op", None), getattr(function, "also", {}), getattr(error, "obj", inspect)
    renamed, skipped = PUBLIC if op else {"self": "input"}, public is None
    args, parameters = args[skipped:], {}
    for k, each in enumerate(_parameters(function).values()):
        if k >= skipped:
            parameters[each.name if k and not op else renamed.get(each.name, each.name)] = each
    stars = {own for own, each in parameters.items() if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD)}
    places = [own for own, each in parameters.items() if each.kind <= each.POSITIONAL_OR_KEYWORD]
    required = [own for own, each in parameters.items() if each.default is each.empty and own not in stars]
    if len(args) > len(places) and not stars:
        return too_many(name, len(places), len(args), len(required))
    values, unknown = dict(zip(places, args, strict=False)), []
    for key, value in kwargs.items():
        own = own_name(key) if op else NUMPY.get(key, key)
        own = key if key in parameters else also.get(key, renamed.get(own, own))
        if own in values:
            wrong = "multiple values for" if own == key else "an unexpected keyword"
            return TypeError(f"{name}() got {wrong} argument '{key}'")
        values[own] = value
        if own not in parameters and not (key == "out" and public and public.rule):
            unknown.append(key)
    missing = [own for own in required if own not in values]
    for k, (own, each) in enumerate(parameters.items()):
        if own not in values:
            if own in missing:
                break
            continue
        value, (kind, none, _) = values[own], str(each.annotation).removeprefix("builtins.").partition(" | None")
        if op and k + skipped in op.inputs and each.name != op.many:
            kind = "Tensor" if op.of_tensors or op.operands != 2 else "Operand"
        shown, fits = _KINDS.get(kind, _KINDS.get(own, ("Tensor", lambda x: x is not lacking)))
        if not fits(value) and not (value is None and (none or each.default is None)):
            if public is not None and public.forms:
                return no_such_call(name, args, public.forms, kwargs)
            where = f" (position {k + 1})" if k < len(args) else ""
            what = f"not {type_name(value)}"
            if where and isinstance(value, (tuple, list)) and fits is _are_ints and not _is_int(value[0]):
                what = f"but found element of type {type_name(value[0])} at pos 0"
            return TypeError(f"{name}(): argument '{own}'{where} must be {shown}, {what}")
    if missing:
        return missing_argument(name, *missing)
    return TypeError(f"{name}() got an unexpected keyword argument '{unknown[0]}'") if unknown and not stars else None
