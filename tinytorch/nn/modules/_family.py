"""What layers of a kind have in common: that their settings are shown, and methods that differ in dimensions only."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from tinytorch.nn.modules.module import Module

Layer = TypeVar("Layer", bound=type)


def own(*names: str) -> Callable[[Layer], Layer]:
    """Give a class methods of its base as its own.

    They are the same code, without a further call; what Python says of missing arguments names the class that the
    user called, and not a base that nobody knows.
    """

    def given(layer: Layer) -> Layer:
        for name in names:
            base = getattr(layer, name)
            method = FunctionType(base.__code__, base.__globals__, name, base.__defaults__, base.__closure__)
            method.__doc__, method.__annotations__ = base.__doc__, base.__annotations__
            method.__kwdefaults__ = base.__kwdefaults__
            method.__module__, method.__qualname__ = base.__module__, f"{layer.__qualname__}.{name}"
            setattr(layer, name, method)
        return layer

    return given


def unusual(layer: Module, **usual: Any) -> list[str]:
    """Return those settings of a layer, as it shows them, that are not as usual."""
    return [f"{name}={getattr(layer, name)}" for name, value in usual.items() if getattr(layer, name) != value]


class Shown(Module):
    """A layer that shows some of its attributes, and that it works in place if it does."""

    _shown: ClassVar[str] = ""

    def extra_repr(self) -> str:
        """Return the settings."""
        names = self._shown.split()
        if "inplace" not in names and self.__dict__.get("inplace"):
            names.append("inplace")
        return ", ".join([f"{name}={getattr(self, name)}" for name in names])
