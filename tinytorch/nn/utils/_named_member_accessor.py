"""Access to a module's tensors by name, whether parameters, buffers or attributes, and their replacement.

Private in PyTorch too, but packages import it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.module import Module

_MISSING: Any = object()


def _check_type(value: Any, expected: type, prefix: str = "") -> None:
    if not isinstance(value, expected):
        raise TypeError(
            f"{prefix}{value} is not an instance of torch.{'nn.' * (expected is Module)}{expected.__name__}"
        )


def _check_tensor(value: Any, prefix: str = "") -> None:
    if value is not None and value is not _MISSING:
        _check_type(value, Tensor, prefix)


def _check_name(name: str, kind: str) -> None:
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."')
    if not name:
        raise KeyError(f'{kind} name can\'t be empty string ""')


def set_tensor(module: Module, name: str, tensor: Tensor | None) -> None:
    """Replace a module's parameter, buffer or attribute by a tensor, which need not be a Parameter.

    Example:
        >>> layer = torch.nn.Linear(1, 2, bias=False)
        >>> torch.nn.utils._named_member_accessor.set_tensor(layer, "weight", torch.zeros(2, 1))
        >>> layer(torch.ones(1))
        tensor([0., 0.])
    """
    _check_type(module, Module)
    _check_tensor(tensor)
    _check_name(name, "tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            table[name] = tensor  # type: ignore[assignment]
            return
    setattr(module, name, tensor)


def swap_tensor(module: Module, name: str, tensor: Tensor | None, allow_missing: bool = False) -> Tensor | None:
    """Replace a module's parameter, buffer or attribute by a tensor, and return the previous one.

    With `allow_missing` the module may lack the name: then a marker is returned, which deletes the name again if it is
    passed as `tensor`.

    Example:
        >>> layer = torch.nn.Linear(1, 2, bias=False)
        >>> own = torch.nn.utils._named_member_accessor.swap_tensor(layer, "weight", torch.zeros(2, 1))
        >>> layer(torch.ones(1)), own.shape
        (tensor([0., 0.]), torch.Size([2, 1]))
    """
    _check_type(module, Module)
    _check_tensor(tensor)
    _check_name(name, "tensor")
    for table in (module._parameters, module._buffers):
        if name in table:
            previous: Any = table.pop(name) if tensor is _MISSING else table[name]
            break
    else:
        previous = getattr(module, name, _MISSING)
        if previous is _MISSING and not allow_missing:
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        _check_tensor(previous, f"attribute `{name}`: ")
        if tensor is _MISSING and previous is not _MISSING:
            delattr(module, name)
    if tensor is not _MISSING:
        set_tensor(module, name, tensor)
    return previous


def swap_submodule(module: Module, name: str, submodule: Module) -> Module:
    """Replace a submodule, and return the previous one.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.ReLU())
        >>> torch.nn.utils._named_member_accessor.swap_submodule(model, "1", torch.nn.Tanh()), model[1]
        (ReLU(), Tanh())
    """
    _check_type(module, Module)
    _check_type(submodule, Module)
    _check_name(name, "submodule")
    if name not in module._modules:
        raise KeyError(f"submodule {name} does not exist")
    previous: Any = module._modules[name]
    _check_type(previous, Module, f"{name} attribute: ")
    module._modules[name] = submodule
    return previous


class NamedMemberAccessor:
    """Reads and replaces a module's tensors and submodules by path, `"layer.weight"`; it caches submodules.

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

    def _resolve(self, path: str) -> tuple[Module, str]:
        """Return the submodule of a path, and the last name of the path."""
        prefix, _, name = path.rpartition(".")
        return self.get_submodule(prefix), name

    def get_submodule(self, name: str) -> Module:
        """Return a submodule, or the module itself for an empty path."""
        if not name:
            return self.module
        if name not in self.memo:
            parent, last = self._resolve(name)
            if not hasattr(parent, last):
                raise AttributeError(f"{parent._get_name()} has no attribute `{last}`")
            submodule = getattr(parent, last)
            _check_type(submodule, Module, f"submodule `{name}`: ")
            self.memo[name] = submodule
        return self.memo[name]

    def swap_submodule(self, path: str, value: Module) -> Module:
        """Replace a submodule, and return the previous one."""
        return swap_submodule(*self._resolve(path), value)

    def get_tensor(self, name: str) -> Tensor | None:
        """Return a tensor."""
        module, last = self._resolve(name)
        if not hasattr(module, last):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        tensor: Tensor | None = getattr(module, last)
        _check_tensor(tensor)
        return tensor

    def set_tensor(self, name: str, value: Tensor | None) -> None:
        """Replace a tensor."""
        set_tensor(*self._resolve(name), value)

    def del_tensor(self, name: str) -> None:
        """Delete a tensor."""
        module, last = self._resolve(name)
        if not hasattr(module, last):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        delattr(module, last)

    def swap_tensor(self, name: str, value: Tensor | None, allow_missing: bool = False) -> Tensor | None:
        """Replace a tensor, and return the previous one."""
        return swap_tensor(*self._resolve(name), value, allow_missing)

    def get_tensors(self, names: Iterable[str]) -> list[Tensor | None]:
        """Return several tensors."""
        return [self.get_tensor(name) for name in names]

    def set_tensors(self, names: Iterable[str], values: Iterable[Tensor | None]) -> None:
        """Replace several tensors."""
        for name, value in _pairs(names, values):
            self.set_tensor(name, value)

    def set_tensors_dict(self, named_tensors: dict[str, Tensor]) -> None:
        """Replace several tensors, given by name."""
        for name, value in named_tensors.items():
            self.set_tensor(name, value)

    def del_tensors(self, names: Iterable[str]) -> None:
        """Delete several tensors."""
        for name in names:
            self.del_tensor(name)

    def swap_tensors(
        self, names: Iterable[str], values: Iterable[Tensor | None], allow_missing: bool = False
    ) -> list[Tensor | None]:
        """Replace several tensors, and return the previous ones."""
        return [self.swap_tensor(name, value, allow_missing) for name, value in _pairs(names, values)]

    def swap_tensors_dict(
        self, named_tensors: dict[str, Any], allow_missing: bool = False
    ) -> tuple[dict[str, Any], list[str]]:
        """Replace several tensors, given by name; return the previous ones, and the missing names."""
        previous: dict[str, Any] = {}
        try:
            for name, tensor in named_tensors.items():
                previous[name] = self.swap_tensor(name, tensor, allow_missing=True)
            missing = [name for name, tensor in previous.items() if tensor is _MISSING]
            if missing and not allow_missing:
                raise RuntimeError(f"Missing key(s): {', '.join(map(repr, missing))}.")
        except Exception:
            for name, tensor in previous.items():
                self.swap_tensor(name, tensor, allow_missing=True)
            raise
        return previous, missing

    def check_keys(self, keys: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return the names of the module's tensors missing in `keys`, and the unknown names in `keys`."""
        own, names = {name for name, _ in self.named_tensors(remove_duplicate=False)}, set(keys)
        return sorted(own - names), sorted(names - own)

    def named_parameters(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return the module's parameters with their names."""
        return self.module.named_parameters(remove_duplicate=remove_duplicate)

    def named_buffers(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return the module's buffers with their names."""
        return self.module.named_buffers(remove_duplicate=remove_duplicate)

    def named_tensors(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Return the module's parameters and buffers with their names."""
        yield from self.named_parameters(remove_duplicate)
        yield from self.named_buffers(remove_duplicate)

    def named_modules(self, remove_duplicate: bool = True) -> Iterator[tuple[str, Module]]:
        """Return the module and its submodules with their names."""
        return self.module.named_modules(remove_duplicate=remove_duplicate)


def _pairs(names: Iterable[str], values: Iterable[Any]) -> list[tuple[str, Any]]:
    names, values = list(names), list(values)
    if len(names) != len(values):
        raise AssertionError(
            f"names and values must have the same length, got {len(names)} names and {len(values)} values"
        )
    return list(zip(names, values, strict=True))
