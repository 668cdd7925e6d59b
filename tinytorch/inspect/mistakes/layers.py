"""Layers as they are written: the arguments that one was made with, and the constructors that differ in one of them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any

from tinytorch.core.names import module_of
from tinytorch.core.tensor import Tensor
from tinytorch.inspect.mistakes.trial import Unknown

__all__ = ["arguments_of", "constructor", "constructors", "like", "may_be_made", "number"]


def may_be_made(module: Any) -> bool:
    """Return whether the arguments that a layer was made with can be told from its attributes."""
    known = {"mode", "device", "dtype", "bias", *[name for name in dir(module) if not name.startswith("_")]}
    return all(name in known or name.startswith("_") for name in inspect.signature(type(module)).parameters)


def constructors(module: Any, tensors: list[Tensor]) -> Iterator[tuple[float, str]]:
    """Return constructors of layers that differ from a layer in one argument, with how much they differ."""
    arguments = arguments_of(module)
    name = _class_of(module)
    sizes = dict.fromkeys([size for x in tensors for size in x.shape[::-1] if name != "Embedding"])
    sizes |= dict.fromkeys([int(x.max()) + 1 for x in tensors if not x.is_floating_point() and x.numel()])
    if max(x.ndim for x in tensors) > 2 and name == "Linear":
        yield 0.9, f"nn.Flatten(), {constructor(name, arguments)}"
    if tensors[0].ndim == 2 and name in ("Conv2d", "ConvTranspose2d"):
        side = math.isqrt(tensors[0].shape[1] // module.in_channels)
        if side > 1 and module.in_channels * side**2 == tensors[0].shape[1]:
            yield 0.9, f"nn.Unflatten(1, ({module.in_channels}, {side}, {side})), {constructor(name, arguments)}"
    for k, (argument, (value, default)) in enumerate(arguments.items()):
        if argument == "inplace" and value:
            yield 0.9, constructor(name, arguments, {argument: False})
        elif argument == "batch_first":
            yield 1.2, constructor(name, arguments, {argument: not value})
        elif argument == "dim" and isinstance(value, int):
            yield 1, constructor(name, arguments, {argument: -1})
        elif default is inspect.Parameter.empty and argument != "kernel_size" and list(module.parameters()):
            yield from ((1 + 0.01 * k, constructor(name, arguments, {argument: each})) for each in sizes)
    if name[-2:] in ("1d", "2d", "3d"):
        yield from ((1.05, constructor(f"{name[:-2]}{k}d", arguments)) for k in (1, 2, 3) if str(k) != name[-2])


def arguments_of(module: Any) -> dict[str, tuple[Any, Any]]:
    """Return the arguments that a layer was made with, as far as its attributes tell, and their default values."""
    kind = next((each for each in type(module).__mro__ if each.__name__ == "RNNBase"), type(module))
    found = {}
    for each in inspect.signature(kind).parameters.values():
        value = getattr(module, each.name, each.default)
        if each.name == "bias":
            value = value is not None and value is not False
        if each.name not in ("mode", "device", "dtype") and _is_written(value):
            found[each.name] = number(value), number(each.default)
        elif each.default is inspect.Parameter.empty and each.name not in ("mode", "args", "kwargs"):
            raise Unknown(each.name)
    if found.get("stride") == (found.get("kernel_size", (0,))[0], None):
        del found["stride"]  # (that of a pooling is the size of its window by default)
    return found


def _is_written(value: Any) -> bool:
    """Return whether a value can be written as it is shown."""
    plain = type(value) in (bool, int, float, str, type(None))
    return plain or (isinstance(value, tuple) and all(map(_is_written, value)))


def constructor(name: str, arguments: dict[str, tuple[Any, Any]], changes: Mapping[str, Any] | None = None) -> str:
    """Return the call that makes a layer of a class with some arguments."""
    texts = []
    for argument, (value, default) in arguments.items():
        value = (changes or {}).get(argument, value)
        required = default is inspect.Parameter.empty
        if required or value != default:
            texts.append(f"{value!r}" if required else f"{argument}={value!r}")
    return f"nn.{name}({', '.join(texts)})".replace("'", '"')


def like(module: Any, **changes: Any) -> str:
    """Return the call that makes a layer like another one, with some other arguments."""
    return constructor(_class_of(module), arguments_of(module), changes)


def _class_of(module: Any) -> str:
    """Return the name of the class of `torch.nn` that a module is of."""
    return next(each.__name__ for each in type(module).__mro__ if module_of(each).startswith("tinytorch.nn"))


def number(value: Any) -> Any:
    """Return a tuple of equal numbers as the number, and other values as they are."""
    return value[0] if isinstance(value, tuple) and len(set(value)) == 1 else value
