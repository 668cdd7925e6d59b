"""Helpers of layers: methods written from declared attributes, and families with a version per number of dimensions."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable
from itertools import takewhile
from types import FunctionType
from typing import Any, ClassVar, TypeVar, dataclass_transform

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module

Class = TypeVar("Class", bound=type)


@dataclass_transform(eq_default=False)
def layer(function: Any = None, shown: str = "") -> Callable[[Class], Class]:
    """Return a decorator that writes methods of a layer, as `dataclass` does, from the attributes that it annotates.

    - `__init__`, unless the class defines it: these attributes are its parameters. Those that the `__init__` of the
      base takes are passed to it, the others are assigned; then `__post_init__`, if there is one, is called. Without
      attributes it is a copy of what was written for the base, see `redefining`.
    - `forward`, if there is a `function`: its arguments are the first parameters of the function, up to one that is a
      parameter of `__init__`. It calls the function with them, and with the attributes that it has for the others.
    - `extra_repr` shows the attributes named in `shown`.
    - The docstring refers to the function for the arguments, if it does not refer to one already.
    """

    def decorate(cls: Any) -> Any:
        types = {name: kind for name, kind in inspect.get_annotations(cls).items() if name[0] != "_"}
        if types and "__init__" not in vars(cls):
            passed = [name for name in types if name in _parameters(cls)]
            lines = [f"super().__init__({', '.join([f'{name}={name}' for name in passed])})"]
            lines += [f"self.{name} = {name}" for name in types if name not in passed]
            lines += ["__class__.__post_init__(self)"] * ("__post_init__" in vars(cls))
            _write(cls, "__init__", {**types, "return": "None"}, lines)
            optional = [name for name in types if name in vars(cls)]
            cls.__init__.__defaults__ = tuple([vars(cls)[name] for name in optional])
            for name in optional:  # which only instances have as attributes
                delattr(cls, name)
        elif hasattr(cls.__init__, "declared_in"):
            redefining("__init__")(cls)
        if function is not None:
            name, settings = function.__name__, {*_parameters(cls), "training"}
            parameters = dict(inspect.signature(function).parameters)
            parameters.pop("out", None)
            inputs = list(takewhile(lambda each: each not in settings, parameters))
            given, positional = list(inputs), True
            for each in list(parameters.values())[len(inputs) :]:
                if each.name in settings and each.name not in ("size_average", "reduce"):  # (they are in `reduction`)
                    positional = positional and each.kind is not each.KEYWORD_ONLY
                    given.append(f"self.{each.name}" if positional else f"{each.name}=self.{each.name}")
                else:
                    positional = False
            call = f"return F.{name}({', '.join(given)})"
            _write(cls, "forward", dict.fromkeys([*inputs, "return"], "Tensor"), [call])
            cls.forward.__doc__ = f"Return `nn.functional.{name}` of the input, with the settings of the layer."
            if "nn.functional" not in (cls.__doc__ or ""):
                told, example, rest = (cls.__doc__ or "").partition("\n\n    Example:")
                cls.__doc__ = f"{told}\n\n    Arguments as `nn.functional.{name}`.{example}{rest}"
        if shown:
            cls._repr_attributes = shown
        return cls

    return decorate


def _parameters(cls: Any) -> tuple[str, ...]:
    """Return the names of the parameters of a layer's `__init__`."""
    code = inspect.unwrap(cls.__init__).__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def _write(cls: Any, name: str, annotations: dict[str, str], lines: list[str]) -> None:
    """Define a method of a class, in the module of which `F` is `nn.functional`, by lines of source text."""
    module, scope = sys.modules[cls.__module__], dict[str, Any]()
    head = f"def {name}({', '.join(['self', *annotations][:-1])}):"
    text = "\n        ".join([f"def factory(__class__):\n    {head}", *lines]) + f"\n\n    return {name}\n"
    file = f"{module.__file__} <{cls.__name__}.{name}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file  # for tracebacks, debuggers and the compiler
    exec(compile(text, file, "exec"), vars(module), scope)
    method = scope["factory"](cls)
    method.__qualname__, method.__annotations__ = f"{cls.__qualname__}.{name}", annotations
    method.declared_in = cls
    setattr(cls, name, method)


def non_default(layer: Module, **defaults: Any) -> list[str]:
    """Return "name=value" for those attributes of a layer that differ from the given defaults."""
    return [f"{name}={getattr(layer, name)}" for name, value in defaults.items() if getattr(layer, name) != value]


class ReprLayer(Module):
    """A layer whose `repr` shows the attributes named in `_repr_attributes`, and `inplace` where that is true."""

    forward: Callable[..., Tensor]
    _repr_attributes: ClassVar[str] = ""

    def extra_repr(self) -> str:
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
    _redefined: ClassVar[tuple[str, ...]] = ("forward",)

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
