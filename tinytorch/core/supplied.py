"""What later modules supply, imported on first use: functions that `core` and `ops` call, and members of Tensor.

Modules that come later, or are needed by few programs, are names here, by which their functions are called:
`sparse.of_sparse(...)`. Type checkers and editors see the modules themselves.

A module declares members of Tensor by `declare_members`, or by the arguments `method` and `in_place` of
`ops.register.public`. The class has a `Member` in the place of each from the beginning. It imports the module that the
table `members.txt` names when it is first used, and then the class has the member itself, which asks
`__torch_function__` first (`ops.overrides.asking`).

This is the only place where a module refers to a later module.
"""

from __future__ import annotations

import os
from importlib import import_module
from types import FunctionType
from typing import TYPE_CHECKING, Any

__all__ = [
    "HOMES", "Member", "batches", "batching", "bits", "complete", "declare_members", "declared", "dlpack", "imported",
    "inspect", "left_out", "load", "memory", "outputs", "overriding", "picture",
    "saving", "sparse", "unlisted",
]  # fmt: skip


def imported(path: str) -> Any:
    """Return a module by its path below `tinytorch`, for tables of names that are imported when they are asked for."""
    return import_module(f"tinytorch.{path}")


class _Later:
    """A module that is imported when a function of it is first asked for."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = getattr(imported(self._path), name)
        setattr(self, name, found)  # (the next time it is a plain attribute)
        return found


if TYPE_CHECKING:
    from tinytorch import inspect
    from tinytorch.autograd import batches
    from tinytorch.autograd import node as picture
    from tinytorch.core import strided as memory
    from tinytorch.ops import batching, left_out
    from tinytorch.ops import complex as bits
    from tinytorch.ops import memory as dlpack
    from tinytorch.ops import out as outputs
    from tinytorch.ops import overrides as overriding
    from tinytorch.serialization import saving
    from tinytorch.sparse import supplies as sparse
else:
    memory = _Later("core.strided")  # parts of a tensor's memory by their places
    overriding = _Later("ops.overrides")  # `__torch_function__`
    bits = _Later("ops.complex")  # complex numbers, and lazy conjugates and negatives
    outputs = _Later("ops.out")  # how functions write into `out=`
    dlpack = _Later("ops.memory")  # memory of other libraries
    left_out = _Later("ops.left_out")  # names that tinytorch does not have
    sparse = _Later("sparse.supplies")  # tensors of which only some elements are stored
    batching = _Later("ops.batching")  # tensors inside of `vmap`
    batches = _Later("autograd.batches")  # gradients of batches, and functions of users inside of `vmap`
    picture = _Later("autograd.node")  # what programs see of a node: PyTorch's graph, and hooks
    saving = _Later("serialization.saving")  # how a pickle rebuilds a tensor or a storage
    inspect = _Later("inspect")  # notes on errors, what explains a NaN, bars


# Members of Tensor -----------------------------------------------------------------------------------


def _homes() -> dict[str, str]:
    """Return by the names of members the modules that declare them: the table `members.txt`."""
    homes, home = {}, ""
    with open(f"{os.path.dirname(__file__)}/members.txt", encoding="utf-8") as file:
        for line in file:
            if line[0] not in " #":
                home, _, line = line.partition(":")
            if line[0] != "#":
                homes.update(dict.fromkeys(line.split(), home))
    return homes


HOMES = _homes()
#: What modules have declared so far, by name, before it asks: functions, properties, static methods.
declared: dict[str, Any] = {}
#: The members that `overrides.get_overridable_functions` omits.
unlisted: set[str] = set()
#: What members compute while no mode is on, where it is not the declared function itself.
_raw: dict[str, Any] = {}
_made: dict[str, Any] = {}


def declare_members(found: dict[str, Any], listed: bool = True, raw: Any = None) -> None:
    """Declare members of Tensor, by name; `listed` is as for `ops.register.public`, `raw` as for `overrides.asking`."""
    for name, member in found.items():
        if declared.setdefault(name, member) is not member:
            raise TypeError(f"two members are declared as Tensor.{name}")
        _raw[name] = raw
    if not listed:
        unlisted.update(found)


class Member:
    """A member of Tensor until it is first used: then its module is imported, and the class gets the member itself."""

    __slots__ = ("home", "name", "owner")

    def __init__(self, owner: type, name: str, home: str) -> None:
        self.owner, self.name, self.home = owner, name, home

    def load(self) -> Any:
        """Return the member itself, which the class has from now on."""
        imported(self.home)
        if self.name not in declared:  # (used while that module is being imported)
            raise AttributeError(f"tinytorch.{self.home} has not declared Tensor.{self.name}")
        made = _made.setdefault(self.name, overriding.asking(self.name, declared[self.name], _raw[self.name]))
        if vars(self.owner)[self.name] is self:
            setattr(self.owner, self.name, made)
        return made

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.load().__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        member = self.load()
        if hasattr(member, "__set__"):
            member.__set__(instance, value)
        else:
            vars(instance)[self.name] = value

    def __delete__(self, instance: Any) -> None:
        self.load()
        delattr(instance, self.name)


def complete(cls: Any) -> Any:
    """Give Tensor its members: a `Member` for each function and property of its body, and for each of the table."""
    declare_members({name: each for name, each in vars(cls).items() if isinstance(each, (FunctionType, property))})
    for name, home in (dict.fromkeys(declared, "core.tensor") | HOMES).items():
        setattr(cls, name, Member(cls, name, home))
    return cls


def load(cls: type) -> None:
    """Let Tensor have all its members, whose modules are imported."""
    for member in list(vars(cls).values()):
        if isinstance(member, Member):
            member.load()
