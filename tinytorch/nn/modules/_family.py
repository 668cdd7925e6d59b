"""Bases and helpers of layers: `repr` from attribute names, and families with a version per number of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, ClassVar, TypeVar

from tinytorch.nn.modules.module import Module

Class = TypeVar("Class", bound=type)


def non_default(layer: Module, **defaults: Any) -> list[str]:
    """Return "name=value" for those attributes of a layer that differ from the given defaults."""
    return [f"{name}={getattr(layer, name)}" for name, value in defaults.items() if getattr(layer, name) != value]


class ReprLayer(Module):
    """A layer whose `repr` shows the attributes named in `_repr_attributes`, and `inplace` where that is true."""

    _repr_attributes: ClassVar[str] = ""

    def extra_repr(self) -> str:
        """Return the settings."""
        names = self._repr_attributes.split()
        if "inplace" not in names and self.__dict__.get("inplace"):
            names.append("inplace")
        return ", ".join([f"{name}={getattr(self, name)}" for name in names])


def redefining(*names: str) -> Callable[[Class], Class]:
    """Return a decorator that copies inherited methods into a class, so that errors about arguments name that class."""

    def decorate(cls: Class) -> Class:
        for name in names:
            method: Any = getattr(cls, name)
            code = method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__
            copy = FunctionType(*code)
            copy.__doc__, copy.__annotations__ = method.__doc__, method.__annotations__
            copy.__kwdefaults__ = method.__kwdefaults__
            copy.__module__, copy.__qualname__ = method.__module__, f"{cls.__qualname__}.{name}"
            setattr(cls, name, copy)
        return cls

    return decorate


class DimensionalLayer(ReprLayer):
    """The base of a family of layers with versions for 1, 2 and 3 spatial dimensions.

    A version states its number of dimensions in the class statement: `class MaxPool2d(_MaxPoolNd, dims=2)`. From this
    number and the declarations of the family, `__init_subclass__` derives:

    - `_dims`, the number of spatial dimensions;
    - `_function`, the name of its function in `nn.functional`: the family declares "max_pool{dims}d";
    - the family's `_example` at the end of its docstring, unless that has one: `{name}` is the class, `{dims}` the
      number of dimensions, and `{4}` the number 4 once per dimension ("4, 4");
    - copies of the methods listed in `_redefined`, see `redefining`.

    A lazy version also states what it becomes: `class LazyConv2d(_LazyConv, Conv2d, dims=2, becomes=Conv2d)`.
    """

    _dims: ClassVar[int]
    _function: ClassVar[str] = ""
    _example: ClassVar[str] = ""
    _redefined: ClassVar[tuple[str, ...]] = ()

    #: The numbers of dimensions that an input may have, where the layer checks it.
    _input_dims: ClassVar[tuple[int, ...]] = ()

    def __init_subclass__(cls, dims: int | None = None, becomes: Any = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if dims is None:  # a family, or a user's subclass of a version
            return
        cls._dims = dims
        cls._function = cls._function.format(dims=dims)
        if cls._example and cls.__doc__ and ">>>" not in cls.__doc__:
            lengths = [", ".join([str(n)] * dims) for n in range(10)]
            cls.__doc__ += "\n\n    Example:\n" + cls._example.format(*lengths, name=cls.__name__, dims=dims)
        redefining(*cls._redefined)(cls)
        if becomes is not None:
            cls.cls_to_become, cls._input_dims = becomes, becomes._input_dims  # type: ignore[attr-defined]
