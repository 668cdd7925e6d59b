"""Lazy members of Tensor: their modules are imported on first access, which keeps the package's import fast."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tinytorch.core.tensor import Tensor

__all__ = ["bind_later", "load"]


class _Later:
    """A placeholder for a member until the module that binds it (by `register.public` or `members`) is imported."""

    __slots__ = ("_module", "_name")

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def load(self) -> Any:
        """Import the module, and return the member that has replaced this placeholder."""
        import_module(self._module)
        member = vars(Tensor)[self._name]
        if member is self:  # (accessed while that module is being imported)
            raise AttributeError(f"{self._module} has not bound Tensor.{self._name}")
        return member

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        member = self.load()
        return member.__get__(instance, owner) if instance is None else getattr(instance, self._name)

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
    """Add lazy members to Tensor, given as module path → member names separated by spaces."""
    bound = vars(Tensor)
    for path, names in members.items():
        for name in names.split():
            if name not in bound:
                setattr(Tensor, name, _Later(f"tinytorch.{path}", name))


def load() -> None:
    """Import the modules of all members that are still placeholders."""
    for member in list(vars(Tensor).values()):
        if isinstance(member, _Later):
            member.load()
