"""Members of Tensor whose modules are imported when a program first asks for them, so that importing costs little."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tinytorch.core.tensor import Tensor

__all__ = ["bind_later", "load"]


class _Later:
    """Stands for a member, until the module that binds it (`register.public`, `register.members`) is there."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> Any:
        """Return the member, which is now in this one's place."""
        import_module(self._module)
        member = vars(Tensor)[self._name]
        if member is self:  # (asked for while that module is being imported)
            raise AttributeError(f"{self._module} has not bound Tensor.{self._name}")
        return member

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.load().__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        member = self.load()
        if hasattr(member, "__set__"):
            member.__set__(instance, value)
        else:
            vars(instance)[self._name] = value

    def __delete__(self, instance: Any) -> None:
        self.load()
        delattr(instance, self._name)


def bind_later(members: dict[str, str]) -> None:
    """Give Tensor members that are not there yet: their names, separated by spaces, by the modules that bind them."""
    bound = vars(Tensor)
    for path, names in members.items():
        for name in names.split():
            if name not in bound:
                setattr(Tensor, name, _Later(f"tinytorch.{path}", name))


def load() -> None:
    """Import all modules that are left."""
    for member in list(vars(Tensor).values()):
        if isinstance(member, _Later):
            member.load()
