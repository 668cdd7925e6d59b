"""A module's tensors by name, whether they are parameters, buffers or attributes; and how others take their place.

Private in PyTorch too, but packages import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module

_MISSING: Any = object()


def _check(value: Any, kind: type, what: str = "") -> None:
    if not isinstance(value, kind):
        raise TypeError(f"{what}{value} is not an instance of torch.{'nn.' * (kind is Module)}{kind.__name__}")


def _check_tensor(value: Any, what: str = "") -> None:
    if value is not None and value is not _MISSING:
        _check(value, Tensor, what)


def _check_name(name: str, kind: str) -> None:
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if not name:
        raise KeyError(f'{kind} name can\'t be empty string ""')


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Put a tensor, which need not be a Parameter, in place of a module's parameter, buffer or attribute.

    Raises:
        TypeError: what is given is no module, or no tensor.
        KeyError: the name is empty, or has a point in it.

    Example:
        >>> layer = torch.nn.Linear(1, 2, bias=False)
        >>> torch.nn.utils._named_member_accessor.set_tensor(layer, "weight", torch.zeros(2, 1))
        >>> layer(torch.ones(1))
        tensor([0., 0.])
    """
    _check(module, Module)
    _check_tensor(tensor)
    _check_name(name, "tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            table[name] = tensor  # type: ignore[assignment]
            return
    setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Tensor | None:
    """Put a tensor in place of a module's parameter, buffer or attribute, and return what was there.

    Args:
        allow_missing: the module may have nothing of that name. What is returned then takes the tensor away again, if
            it is given as `tensor`.

    Raises:
        TypeError: what is given is no module or no tensor, or what is there is no tensor.
        KeyError: the name is empty, or has a point in it.
        AttributeError: the module has nothing of that name.

    Example:
        >>> layer = torch.nn.Linear(1, 2, bias=False)
        >>> own = torch.nn.utils._named_member_accessor.swap_tensor(layer, "weight", torch.zeros(2, 1))
        >>> layer(torch.ones(1)), own.shape
        (tensor([0., 0.]), torch.Size([2, 1]))
    """
    _check(module, Module)
    _check_tensor(tensor)
    _check_name(name, "tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            before: Any = table.pop(name) if tensor is _MISSING else table[name]
            break
    else:
        before = getattr(module, name, _MISSING)
        if before is _MISSING and not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        _check_tensor(before, f"attribute `{name}`: ")
        if tensor is _MISSING and before is not _MISSING:
            delattr(module, name)
    if tensor is not _MISSING:
        set_tensor(module, name, tensor)
    return before


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Put a module in place of a submodule, and return what was there.

    Raises:
        TypeError: what is given, or what is there, is no module.
        KeyError: the name is empty or has a point in it, or there is no such submodule.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU())
        >>> torch.nn.utils._named_member_accessor.swap_submodule(model, "1", torch.nn.Tanh()), model[1]
        (ReLU(), Tanh())
    """
    _check(module, Module)
    _check(submodule, Module)
    _check_name(name, "submodule")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    before: Any = module._modules[name]
    _check(before, Module, f"{name} attribute: ")
    module._modules[name] = submodule
    return before


class NamedMemberAccessor:
    """Reads and replaces a module's tensors and submodules by path, `"layer.weight"`; it notes which modules it found.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2))
        >>> accessor = torch.nn.utils._named_member_accessor.NamedMemberAccessor(model)
        >>> accessor.set_tensors_dict({"0.weight": torch.zeros(2, 1), "0.bias": torch.ones(2)})
        >>> model(torch.ones(1))
        tensor([1., 1.])
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.memo: dict[str, Module] = {}

    def _at(self, path: str) -> tuple[Module, str]:
        """Return the submodule that a path leads to, and the name in it."""
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name: str) -> Module:
        """Return a submodule, or the module itself for an empty path."""
        if not name:
            return self.module
        if name not in self.memo:
            above, last = self._at(name)
            if not hasattr(above, last):
                raise AttributeError(f"{above._get_name()} has no attribute `{last}`")
            _check(found := getattr(above, last), Module, f"submodule `{name}`: ")
            self.memo[name] = found
        return self.memo[name]

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Put a module in place of a submodule, and return what was there."""
        return swap_submodule(*self._at(path), value)

    def get_tensor(self, name: str) -> Tensor | None:
        """Return a tensor."""
        module, last = self._at(name)
        if not hasattr(module, last):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        _check_tensor(found := getattr(module, last))
        return found

    def set_tensor(self, name: str, value: Tensor | None) -> None:
        """Put a tensor in place of another."""
        set_tensor(*self._at(name), value)

    def del_tensor(self, name: str) -> None:
        """Take a tensor away."""
        module, last = self._at(name)
        if not hasattr(module, last):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        delattr(module, last)

    def swap_tensor(self, name: str, value: Tensor | None, allow_missing: bool = False) -> Tensor | None:
        """Put a tensor in place of another, and return that."""
        return swap_tensor(*self._at(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor | None]:
        """Return several tensors."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor | None]) -> None:
        """Put tensors in place of others."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Put tensors in place of others, each by its name."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Take tensors away."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor | None], allow_missing: bool = False
    ) -> list[Tensor | None]:
        """Put tensors in place of others, and return those."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Put tensors in place of others, each by its name; return those, and the names that were missing.

        Raises:
            RuntimeError: names are missing, and may not be. Then, as after other errors, all is as before.
        """
        before: dict[str, Any] = {}
        try:
            for name, tensor in named_tensors.items():
                before[name] = self.swap_tensor(name, tensor, allow_missing=True)
            missing = [name for name, tensor in before.items() if tensor is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in before.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return before, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return which names of the module's tensors are missing among `keys`, and which of these it has not."""
        own, given = {name for name, _ in self.named_tensors(remove_duplicate=False)}, set(keys)
        return sorted(own - given), sorted(given - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return the module's parameters with their names."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return the module's buffers with their names."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return both."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Return the module and all in it, with their names."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return list(zip(names, values, strict=True))
