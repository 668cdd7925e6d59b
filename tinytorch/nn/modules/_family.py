"""Bases and helpers of layers: `repr` from attribute names, and families with a version per number of dimensions."""

from __future__ import annotations

from types import FunctionType
from typing import Any, ClassVar

from tinytorch.nn.modules.module import Module


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


class DimensionalLayer(ReprLayer):
    """The base of a family of layers with versions for 1, 2 and 3 spatial dimensions.

    A version states its number of dimensions in the class statement: `class MaxPool2d(_MaxPoolNd, dims=2)`. From this
    number and the declarations of the family, `__init_subclass__` derives:

    - `_dims`, the number of spatial dimensions;
    - `_function`, the name of its function in `nn.functional`: the family declares "max_pool{dims}d";
    - the family's `_example` at the end of its docstring, unless that has one: `{name}` is the class, `{dims}` the
      number of dimensions, and `{4}` the number 4 once per dimension ("4, 4");
    - copies of the methods listed in `_redefined`, so that the error for a missing argument names the version, as in
      PyTorch, and not the family.
    """

    _dims: ClassVar[int]
    _function: ClassVar[str] = ""
    _example: ClassVar[str] = ""
    _redefined: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, dims: int | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if dims is None:  # a family, or a user's subclass of a version
            return
        cls._dims = dims
        cls._function = cls._function.format(dims=dims)
        if cls._example and cls.__doc__ and ">>>" not in cls.__doc__:
            lengths = [", ".join([str(n)] * dims) for n in range(10)]
            cls.__doc__ += "\n\n    Example:\n" + cls._example.format(*lengths, name=cls.__name__, dims=dims)
        for name in cls._redefined:
            setattr(cls, name, _copy_of(getattr(cls, name), f"{cls.__qualname__}.{name}"))


def _copy_of(method: Any, qualname: str) -> FunctionType:
    """Return the same function as a further object, under another qualified name."""
    copy = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__, method.__closure__)
    copy.__doc__, copy.__annotations__ = method.__doc__, method.__annotations__
    copy.__kwdefaults__ = method.__kwdefaults__
    copy.__module__, copy.__qualname__ = method.__module__, qualname
    return copy
