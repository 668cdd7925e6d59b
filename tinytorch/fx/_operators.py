"""`torch.ops.aten` and `torch.ops.profiler`: PyTorch's own operators, under the names that graphs show.

An operator has overloads, such as `torch.ops.aten.add.Tensor`. Most call the public function or the method of Tensor
of that name; `_aten` has those that PyTorch's functions are made of, and that have other arguments.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from tinytorch import ops
from tinytorch.core.tensor import Tensor
from tinytorch.ops import overrides
from tinytorch.ops.register import Function

__all__ = ["COMPUTES", "REDUCTIONS", "OpOverload", "OpOverloadPacket", "Operators"]

#: What operators compute that are no public functions, or have other arguments, by their names.
COMPUTES: dict[str, Callable[..., Any]] = {}
#: The words of `reduction`, for which the operators of losses have numbers.
REDUCTIONS = ("none", "mean", "sum")


def _loss_of(function: Any, *args: Any) -> Any:
    """Return a loss, given the arguments of its operator, which has no deprecated ones."""
    given = dict(zip([name for name in function.names if name not in ("size_average", "reduce")], args, strict=False))
    return function(**{**given, "reduction": REDUCTIONS[given.get("reduction", 1)]})


class Schema(NamedTuple):
    """What is known of an operator's arguments: whether it writes into one."""

    name: str
    overload_name: str
    is_mutable: bool


class _Callable:
    """An operator, with or without an overload's name."""

    __traced_as__ = "inline"
    __name__: str
    packet: OpOverloadPacket

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator; arguments with `__torch_function__` (such as symbolic values) may override it."""
        found = overrides.asked(args, kwargs)
        if found is not None:
            return overrides.handle_torch_function(self, [*args, *kwargs.values()], *args, **kwargs)
        return self.packet.implementation(*args, **kwargs)

    def __reduce__(self) -> Any:
        return _found, (self.packet.namespace, *self.__name__.split("."))


def _found(namespace: str, *names: str) -> Any:
    operator: Any = getattr(ops, namespace)
    for name in names:
        operator = getattr(operator, name)
    return operator


class OpOverloadPacket(_Callable):
    """An operator; its overloads are its attributes.

    Example:
        >>> torch.ops.aten.add(torch.ones(2), 1), torch.ops.aten.add.Tensor
        (tensor([2., 2.]), <OpOverload(op='aten.add', overload='Tensor')>)
    """

    def __init__(self, namespace: str, name: str) -> None:
        self.namespace, self.__name__ = namespace, name
        self.__module__ = f"torch._ops.{namespace}"
        self.__qualname__ = self._qualified_op_name = f"{namespace}::{name}"
        self.packet = self

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __str__(self) -> str:
        return f"{self.namespace}.{self.__name__}"

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"'{self}' object has no attribute '{name}'")
        overload = self.__dict__[name] = OpOverload(self, name)
        return overload

    @functools.cached_property
    def implementation(self) -> Callable[..., Any]:
        """The function that computes the result."""
        found = COMPUTES.get(self.__name__ if self.namespace == "aten" else f"{self.namespace}.{self.__name__}")
        homes = (import_module("tinytorch"), Tensor, import_module("tinytorch.nn.functional"))
        for home in homes if found is None and self.namespace == "aten" else ():
            found = getattr(home, self.__name__, None)
            if found is not None:
                break
        if isinstance(found, Function) and found.name.startswith("nn.") and "reduction" in found.names:
            return functools.partial(_loss_of, found)
        if found is None:
            raise NotImplementedError(f"tinytorch has no operator {self.namespace}::{self.__name__}")
        return found


class OpOverload(_Callable):
    """One overload of an operator."""

    def __init__(self, overloadpacket: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = self.packet = overloadpacket
        self.namespace, self._overloadname = overloadpacket.namespace, overload
        self.__name__ = f"{overloadpacket.__name__}.{overload}"
        self.__module__ = overloadpacket.__module__
        own = overloadpacket.__name__
        self._name = f"{self.namespace}::{own}" + ("" if overload == "default" else f".{overload}")
        self.__qualname__ = self._name
        writes = (own.endswith("_") and not own.endswith("__")) or overload.rpartition("_")[2] == "out"
        self._schema = Schema(f"{self.namespace}::{own}", "" if overload == "default" else overload, writes)

    def __repr__(self) -> str:
        return f"<OpOverload(op='{self.overloadpacket}', overload='{self._overloadname}')>"

    def __str__(self) -> str:
        return f"{self.overloadpacket}.{self._overloadname}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"'{self}' object has no attribute '{name}'")

    def name(self) -> str:
        """Return the name with the namespace: "aten::add.Tensor"."""
        return self._name


class Operators(ops._Namespace):
    """A namespace of operators, which are made when they are first asked for."""

    def __getattr__(self, name: str) -> OpOverloadPacket:
        if name.startswith("__"):
            raise AttributeError(name)
        operator = self.__dict__[name] = OpOverloadPacket(self._name, name)
        return operator
