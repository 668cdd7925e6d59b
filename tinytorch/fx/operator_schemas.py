"""`torch.fx.operator_schemas`: the arguments of functions and modules by their signatures."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from tinytorch.core.names import module_of
from tinytorch.core.warning import warn
from tinytorch.fx._names import root as package
from tinytorch.kernels.dtypes import dtype
from tinytorch.nn.modules.module import Module
from tinytorch.ops.register import Builtin, Function

__all__ = [
    "ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op", "is_random",
    "normalize_function", "normalize_module", "type_matches",
]  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """The arguments of a call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def is_random(function: Any) -> bool:
    """Return whether a function of `torch` draws random numbers to create a tensor, or seeds the generator."""
    if not isinstance(function, Function) or function.binds:
        return False
    home = module_of(inspect.unwrap(function.raw))
    return home in ("tinytorch.ops.random", "tinytorch.ops.rejection")


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """Return the signatures of a function of `torch`, as a list; None for any other function.

    Args:
        op: the function.
        return_schemas: whether a pair is returned, whose second element has PyTorch's schemas: None here.
    """
    found = None
    if isinstance(op, Builtin):
        try:
            found = [inspect.signature(op)]
        except (TypeError, ValueError):
            found = None
    return (found, None) if return_schemas else found


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise an error if a call changes its arguments.

    Raises:
        RuntimeError: the function writes into its first argument, or `out` is given.
    """
    if not isinstance(target, Function):
        return
    writes = target.__name__.endswith("_") and not target.__name__.endswith("__")
    given = kwargs.get("out") is not None
    if writes or given:
        raise RuntimeError(
            f"Tried to trace mutable operation aten::{target.__name__}{'.out' * given}. FX only supports functional "
            "code, so operations that mutate operands in-place (e.g. via `out` arguments) "
            "are not supported"
        )


# Types of arguments -------------------------------------------------------------------------------


def create_type_hint(x: Any) -> Any:
    """Return the type of a list or tuple of types: that of its items if one of them is a base of all others.

    Example:
        >>> torch.fx.operator_schemas.create_type_hint([int, int])
        list[int]
    """
    if not isinstance(x, (list, tuple)):
        return x

    def of(item: Any) -> Any:
        return list[item] if isinstance(x, list) else tuple[item, ...]

    try:
        bases = [each for each in x if all(issubclass(item, each) for item in x)]
    except TypeError:
        warn(f"We were not able to successfully create type hint from the type {x}")
        return x
    return of(bases[0] if bases else Any)


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Return whether an argument of one type may be given for a parameter of another.

    Example:
        >>> torch.fx.operator_schemas.type_matches(list[int], tuple[int, int])
        True
    """
    if signature_type is argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(each, argument_type) for each in typing.get_args(signature_type))
    if origin is list:
        (item,) = typing.get_args(signature_type)
        if argument_type is int and item is int:  # (a number for all elements)
            return True
        if not inspect.isclass(item):
            warn(f"Does not support nested parametric types, got {signature_type}. Please file a bug.")
            return False
        given = typing.get_args(argument_type)
        if typing.get_origin(argument_type) is list:
            return issubclass(given[0], item)
        if typing.get_origin(argument_type) is not tuple:
            return False
        return all(each is ... or issubclass(each, item) for each in given)
    if signature_type is int and argument_type is dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    if inspect.isclass(argument_type) and inspect.isclass(signature_type):
        return issubclass(argument_type, signature_type)
    return False


# Arguments by signature ---------------------------------------------------------------------------


def normalize_function(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """Return a call's arguments by the function's signature, with its defaults.

    Args:
        target: the function.
        args, kwargs: the arguments.
        arg_types, kwarg_types: types, by which PyTorch chooses among several signatures; here each function has one.
        normalize_to_only_use_kwargs: whether all arguments are named; else those given by position stay so.

    Returns:
        The arguments; None if the signature is not known, does not fit, or has `*args` or `**kwargs`.

    Example:
        >>> from tinytorch.fx.operator_schemas import normalize_function
        >>> normalize_function(torch.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True).kwargs
        {'input': 1, 'inplace': False}
    """
    kwargs = {} if kwargs is None else kwargs
    if isinstance(target, types.BuiltinFunctionType):
        return None
    if isinstance(target, Builtin):
        signatures = get_signature_for_torch_op(target)
        signature = signatures[0] if signatures else None
        builtin = not (isinstance(target, Function) and target.binds)
    else:
        signature, builtin = inspect.signature(inspect.unwrap(target)), False
    if signature is None:
        return None
    try:
        return _bound(signature, args, kwargs, normalize_to_only_use_kwargs)
    except TypeError:
        if builtin:
            return None
        raise


def _normalize_function_or_error(
    target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair:  # fmt: skip
    """As `normalize_function`, but raise RuntimeError where that returns None."""
    found = normalize_function(target, args, kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs)
    if found is None:
        raise RuntimeError(f"Failed to normalize function {target} with args {args} and kwargs {kwargs}")
    return found


def normalize_module(
    root: Module, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:  # fmt: skip
    """Return the arguments of a module's call by the signature of its `forward`; None if it is not of `torch.nn`.

    Raises:
        RuntimeError: there is no such module.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(package().nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _bound(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _bound(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], only_named: bool
) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(each.kind not in plain for each in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    positional = 0 if only_named else len(args)
    values = list(bound.arguments.items())
    return ArgsKwargsPair(tuple([value for _, value in values[:positional]]), dict(values[positional:]))
