"""The members of Tensor: which module declares each, and how the class gets it.

A module declares members by `declare_members`, or by the arguments `method` and `in_place` of `ops.register.public`.
The class has a `Member` in the place of each from the beginning. It imports the module when it is first used, and then
the class has the member itself, which asks `__torch_function__` first (`ops.overrides.asking`).
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from tinytorch._members import HOMES
from tinytorch.core.supplied import imported, overriding

#: What modules have declared so far, by name, before it asks: functions, properties, static methods.
declared: dict[str, Any] = {}
#: The members that `overrides.get_overridable_functions` omits.
unlisted: set[str] = set()
_made: dict[str, Any] = {}


def declare_members(found: dict[str, Any], listed: bool = True) -> None:
    """Declare members of Tensor, by name; `listed` is as for `ops.register.public`."""
    for name, member in found.items():
        if declared.setdefault(name, member) is not member:
            raise TypeError(f"two members are declared as Tensor.{name}")
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
        made = _made.setdefault(self.name, overriding.asking(self.name, declared[self.name]))  # (one for all threads)
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
    homes = {name: home for home, names in HOMES.items() for name in names.split()}
    for name, home in (dict.fromkeys(declared, "core.tensor") | homes).items():
        setattr(cls, name, Member(cls, name, home))
    return cls


def load(cls: type) -> None:
    """Let Tensor have all its members, whose modules are imported."""
    for member in list(vars(cls).values()):
        if isinstance(member, Member):
            member.load()
