"""Containers of modules (sequence, list, dictionary) and of parameters (list, dictionary)."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain, groupby, islice
from typing import Any, Self, SupportsIndex

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules._family import redefining
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.members import typename

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]


def _normalized_index(index: SupportsIndex, size: int) -> int:
    """Return the index as a non-negative int; raise IndexError if it is out of range."""
    number = operator.index(index)
    if not -size <= number < size:
        raise IndexError(f"index {number} is out of range")
    return number % size


def _renumber(modules: dict[str, Any]) -> OrderedDict[str, Any]:
    return OrderedDict((str(i), module) for i, module in enumerate(modules.values()))


class _ModuleSequence(Module):
    """The base of `Sequential` and `ModuleList`: what both do in the same way."""

    _modules: dict[str, Any]
    __getitem__: Any
    __delitem__: Any

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def append(self, module: Module) -> Self:
        """Add a module at the end and return self."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Remove the module at `key` and return it."""
        module = self[key]
        del self[key]
        return module


@redefining("append", "pop")
class Sequential(_ModuleSequence):
    """Modules in sequence: every module gets the output of the previous one.

    The modules are the arguments, or one `OrderedDict` of name -> module.

    Example:
        >>> from tinytorch import nn
        >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        >>> net(torch.ones(3, 4)).shape
        torch.Size([3, 2])
        >>> net[1], len(net[:2])
        (ReLU(), 2)
        >>> net.append(nn.Tanh()).insert(0, nn.Flatten()).pop(-1), len(net)
        (Tanh(), 4)
    """

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def _name(self, index: int) -> str:
        return next(islice(self._modules, _normalized_index(index, len(self)), None))

    def __getitem__(self, idx: slice | int) -> Any:
        if isinstance(idx, slice):
            return type(self)(OrderedDict(list(self._modules.items())[idx]))
        return self._modules[self._name(idx)]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, self._name(idx), module)

    def __delitem__(self, idx: slice | int) -> None:
        names = list(self._modules)[idx] if isinstance(idx, slice) else [self._name(idx)]
        for name in names:
            delattr(self, name)
        self._modules = _renumber(self._modules)

    def __add__(self, other: Sequential) -> Sequential:
        return Sequential(*self, *self._check_operand(other))

    def __iadd__(self, other: Sequential) -> Self:
        return self.extend(list(self._check_operand(other)))

    def _check_operand(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return other

    def __mul__(self, other: int) -> Sequential:
        return Sequential(*list(self) * self._check_factor(other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        return self.extend(list(self) * (self._check_factor(other) - 1))

    def _check_factor(self, other: Any) -> int:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")
        return other

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add the modules at the end and return self."""
        for module in sequential:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at `index` and return self."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        size = len(self)
        if not -size <= index <= size:
            raise IndexError(f"Index out of range: {index}")
        _insert(self._modules, index + size if index < 0 else index, module)
        return self


def _insert(modules: dict[str, Any], index: int, module: Module) -> None:
    """Increase the numbers of the modules from `index` on, and insert `module` there."""
    for i in range(len(modules), index, -1):
        modules[str(i)] = modules[str(i - 1)]
    modules[str(index)] = module


@redefining("append", "pop")
class ModuleList(_ModuleSequence):
    """A list of modules, which are registered; it has no `forward`.

    Example:
        >>> from tinytorch import nn
        >>> nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        ModuleList(
          (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
        )
        >>> layers = nn.ModuleList([nn.ReLU()]).append(nn.Tanh())
        >>> layers.insert(0, nn.Sigmoid())
        >>> layers.pop(-1), len(layers)
        (Tanh(), 2)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(list(self._modules.values())[idx])
        return self._modules[str(_normalized_index(idx, len(self)))]

    def __setitem__(self, idx: int, module: Module) -> None:
        setattr(self, str(_normalized_index(idx, len(self))), module)

    def __delitem__(self, idx: int | slice) -> None:
        size = len(self)
        for i in range(size)[idx] if isinstance(idx, slice) else [_normalized_index(idx, size)]:
            delattr(self, str(i))
        self._modules = _renumber(self._modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList(chain(self, other))

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add the modules at the end and return self."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for i, module in enumerate(modules, len(self)):
            self.add_module(str(i), module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before the one at `index`."""
        _insert(self._modules, index, module)

    def __repr__(self) -> str:
        # Consecutive modules with the same repr share a line: "(0-2): 3 x Linear(...)".
        lines = []
        first = 0
        for text, group in groupby(map(repr, self)):
            count = len(list(group))
            last = first + count - 1
            line = f"({first}): {text}" if count == 1 else f"({first}-{last}): {count} x {text}"
            lines.append(line.replace("\n", "\n  "))  # (empty lines too, unlike `Module.__repr__`)
            first = last + 1
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)" if lines else f"{self._get_name()}()"


class ModuleDict(Module):
    """An ordered dictionary of modules, which are registered; it has no `forward`.

    The modules are a mapping of name -> module, or (name, module) pairs.

    Example:
        >>> from tinytorch import nn
        >>> layers = nn.ModuleDict({"relu": nn.ReLU(), "linear": nn.Linear(2, 2)})
        >>> "relu" in layers, list(layers), layers["linear"].in_features
        (True, ['relu', 'linear'], 2)
        >>> layers.update({"out": nn.Tanh()})
        >>> layers.pop("linear").in_features, list(layers.items())
        (2, [('relu', ReLU()), ('out', Tanh())])
    """

    _modules: dict[str, Any]

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Any:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: object) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Remove all modules."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Remove the module of this name and return it."""
        return self._modules.pop(key)

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> ItemsView[str, Any]:
        """Return the (name, module) pairs."""
        return self._modules.items()

    def values(self) -> ValuesView[Any]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add the modules of a mapping or of pairs; existing names get the new module."""
        for name, module in _pairs(self, modules, sort=False):
            self[name] = module


def _pairs(self: Module, items: Any, sort: bool) -> list[tuple[Any, Any]]:
    """Return the (key, value) pairs of a mapping, a container like `self`, or an iterable."""
    name = type(self).__name__
    if not isinstance(items, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(items).__name__}"
        )
    if isinstance(items, (OrderedDict, ModuleDict, ParameterDict)):
        return list(items.items())
    if isinstance(items, Mapping):
        return sorted(items.items()) if sort else list(items.items())
    pairs = list(items)
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{i} should be Iterable; is{type(pair).__name__}")
        if len(pair) != 2:  # type: ignore[arg-type]
            length = len(pair)  # type: ignore[arg-type]
            raise ValueError(f"{name} update sequence element #{i} has length {length}; 2 is required")
    return pairs


def _as_parameter(value: Any) -> Any:
    """Return a tensor as a parameter, and other values unchanged."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _describe(key: Any, value: Any, type_name: Any) -> str:
    """Return the line for one entry in the `repr` of a `ParameterList` or `ParameterDict`."""
    if not isinstance(value, Tensor):
        return f"  ({key}): Object of type: {type(value).__name__}"
    name = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"  ({key}): {name} containing: [{type_name(value)} of size {'x'.join(map(str, value.shape))}]"


class ParameterList(Module):
    """A list of parameters, which are registered.

    Tensors become parameters; other objects are stored unchanged.

    Example:
        >>> weights = torch.nn.ParameterList([torch.zeros(2)]).append(torch.zeros(3)).extend([torch.zeros(4)])
        >>> len(weights), len(list(weights.parameters()))
        (3, 3)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, idx: int | slice) -> Any:
        if isinstance(idx, slice):
            return type(self)(self[i] for i in range(len(self))[idx])
        return getattr(self, str(_normalized_index(idx, len(self))))

    def __setitem__(self, idx: int, param: Any) -> None:
        setattr(self, str(_normalized_index(idx, len(self))), _as_parameter(param))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __iadd__(self, parameters: Iterable[Any]) -> Self:
        return self.extend(parameters)

    def append(self, value: Any) -> Self:
        """Add a value at the end and return self."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add the values at the end and return self."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def extra_repr(self) -> str:
        return "\n".join(_describe(i, value, lambda t: t.dtype) for i, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """An ordered dictionary of parameters, which are registered.

    Tensors become parameters; other objects are stored unchanged.

    The argument is a mapping of name -> value (a plain dict is sorted by name), or (name, value) pairs.

    Example:
        >>> params = torch.nn.ParameterDict({"scale": torch.ones(1), "shift": torch.zeros(1)})
        >>> [name for name, _ in params.named_parameters()]
        ['scale', 'shift']
        >>> params.update({"bias": torch.zeros(2)})
        >>> params.pop("shift"), params.get("shift", 0.0), list(params.keys())
        (Parameter containing:
        tensor([0.], requires_grad=True), 0.0, ['scale', 'bias'])
        >>> list(params.fromkeys(["a", "b"], torch.ones(1)))
        ['a', 'b']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._check_key(key))

    def __setitem__(self, key: str, value: Any) -> None:
        setattr(self, self._check_key(key), _as_parameter(value))
        self._keys[key] = None

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def _check_key(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type "
                f"is '{type(key).__name__}')."
            )
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def copy(self) -> ParameterDict:
        """Return a shallow copy."""
        return ParameterDict(OrderedDict(self.items()))

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`; if it is missing, set it to `default`."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self) -> None:
        """Remove all parameters."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Remove the parameter of this name and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Remove the last parameter and return (name, parameter)."""
        key = next(reversed(self._keys), None)
        if key is None:
            raise KeyError("popitem(): dictionary is empty")
        return key, self.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of `key`, or `default` if it is missing."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a new dictionary with the value `default` for all keys."""
        return ParameterDict([(key, default) for key in keys])

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return an iterator over the (name, parameter) pairs."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterator[Any]:
        """Return an iterator over the parameters."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add the values of a mapping (a plain dict sorted by name) or of pairs."""
        for key, value in _pairs(self, parameters, sort=True):
            self[key] = value

    def extra_repr(self) -> str:
        return "\n".join(_describe(key, value, typename) for key, value in self.items())

    def __call__(self, input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: ParameterDict) -> ParameterDict:
        merged = self.copy()
        merged.update(other)
        return merged

    def __ior__(self, other: ParameterDict) -> Self:
        self.update(other)
        return self

    def __ror__(self, other: Any) -> Any:
        merged = other.copy()
        merged.update(self)
        return merged
