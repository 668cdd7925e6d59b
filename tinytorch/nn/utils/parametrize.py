"""Parametrizations: parameters that modules compute from other parameters at each access."""

from __future__ import annotations

import collections
import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.nn.modules.container import ModuleDict, ModuleList
from tinytorch.nn.modules.module import Module
from tinytorch.nn.parameter import Parameter

__all__ = [
    "ParametrizationList", "cached", "is_parametrized", "register_parametrization", "remove_parametrizations",
    "transfer_parametrizations_and_params", "type_before_parametrizations",
]  # fmt: skip

_cache_enabled = 0
_cache: dict[tuple[int, str], Tensor] = {}


@contextmanager
def cached() -> Iterator[None]:
    """Within the block, compute each parametrized tensor only once.

    Example:
        >>> from tinytorch.nn.utils import parametrize, parametrizations
        >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> with parametrize.cached():
        ...     layer.weight is layer.weight
        True
    """
    global _cache_enabled, _cache
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache = {}


def _register(module: Module, name: str, tensor: Tensor) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _set(destination: Tensor, source: Tensor) -> None:
    """Let `destination` share the memory of `source`."""
    destination.data = source.detach() if source.requires_grad else source


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, applied in order, and the tensors that they are applied to.

    Attributes:
        original: the tensor that the first parametrization takes; `original0`, `original1` … if it takes several.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
        >>> layer.parametrizations.weight
        ParametrizationList(
          (0): _WeightNorm()
        )
    """

    original: Tensor

    def __init__(self, modules: Sequence[Module], original: Tensor, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new: Any = original
            for module in reversed(modules):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor) and not isinstance(new, collections.abc.Sequence):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if isinstance(new, Tensor):
            if original.dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            with no_grad():
                _set(original, new)
            _register(self, "original", original)
        else:
            for k, tensor in enumerate(new):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{k} of the sequence with type {type(tensor).__name__}."
                    )
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{k}", tensor)
        if not unsafe:
            result = self()
            _check_returns_tensor(result)
            for name, value, expected in (("dtype", result.dtype, dtype), ("shape", result.shape, shape)):
                if value != expected:
                    raise ValueError(
                        f"Registering a parametrization may not change the {name} of the tensor, unless `unsafe` flag "
                        f"is enabled.\nunparametrized {name}: {expected}\nparametrized {name}: {value}"
                    )

    def _originals(self) -> list[Tensor]:
        if self.is_tensor:
            return [self.original]
        return [getattr(self, f"original{k}") for k in range(self.ntensors)]

    def right_inverse(self, value: Tensor) -> None:
        """Set the original tensors so that the parametrized tensor is `value`; called by `module.weight = value`."""
        with no_grad():
            new: Any = value
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                new = module.right_inverse(new)
            if self.is_tensor:
                if not isinstance(new, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(new).__name__}")
                new = [new]
            elif not isinstance(new, collections.abc.Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(new).__name__}.")
            if len(new) != self.ntensors:
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of "
                    f"length {len(new)}."
                )
            for k, (tensor, original) in enumerate(zip(new, self._originals(), strict=True)):
                if not isinstance(tensor, Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {k} of type "
                        f"{type(tensor).__name__}"
                    )
                if original.dtype != tensor.dtype:
                    raise ValueError(
                        f"Tensor {k} returned by `right_inverse` has dtype {tensor.dtype} while `original{k}` has "
                        f"dtype {original.dtype}"
                    )
                _set(original, tensor)

    def forward(self) -> Tensor:
        """Return the parametrized tensor."""
        modules = list(self)
        x: Tensor = modules[0](*self._originals())
        for module in modules[1:]:
            x = module(x)
        return x


def _check_returns_tensor(result: Any) -> None:
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")


def _new_class(module: Module) -> None:
    """Give a module a subclass of its class, to which properties can be added."""
    cls = module.__class__

    def default_deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = memo[id(self)] = self.__new__(self.__class__)
            copied.__dict__ = copy.deepcopy(self.__dict__, memo)
        return memo[id(self)]

    def getstate(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members: dict[str, Any] = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _new_property(module: Module, name: str) -> None:
    """Give a module's class the property that computes a tensor, and sets it by the right inverses."""

    def get(self: Any) -> Tensor:
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def set_(self: Any, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(module.__class__, name, property(get, set_))


def register_parametrization(
    module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False
) -> Module:
    """Let `parametrization` compute a parameter or buffer of `module`; return `module`.

    `module.<tensor_name>` is then `parametrization(module.parametrizations.<tensor_name>.original)`. The
    parametrization's method `right_inverse`, if any, computes the original tensor, or several, from the present value.

    Parametrizations of one tensor are applied in order; `unsafe` omits the checks that shape and dtype stay.

    Example:
        >>> from tinytorch.nn.utils import parametrize
        >>> class Symmetric(torch.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).T
        >>> layer = parametrize.register_parametrization(torch.nn.Linear(3, 3), "weight", Symmetric())
        >>> torch.equal(layer.weight, layer.weight.T)
        True
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            present = getattr(module, tensor_name)
            result = parametrization(present)
            _check_returns_tensor(result)
            for name in ("dtype", "shape"):
                value, expected = getattr(result, name), getattr(present, name)
                if value != expected:
                    raise ValueError(
                        f"Registering a parametrization may not change the {name} of the tensor, unless the `unsafe` "
                        f"flag is enabled.\nmodule.{tensor_name}.{name}: {expected}\n"
                        f"parametrization(module.{tensor_name}).{name}: {value}"
                    )
            if hasattr(parametrization, "right_inverse"):
                try:
                    inverse = parametrization.right_inverse(result)
                except NotImplementedError:
                    pass
                else:
                    if not isinstance(inverse, Tensor):
                        raise ValueError(
                            f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}"
                        )
                    for name in ("dtype", "shape"):
                        value, expected = getattr(inverse, name), getattr(present, name)
                        if value != expected:
                            raise ValueError(
                                f"The tensor returned by parametrization.right_inverse must have the same {name} as "
                                f"module.{tensor_name}, unless the `unsafe` flag is enabled.\n"
                                f"module.{tensor_name}.{name}: {expected}\nreturned {name}: {value}"
                            )
        parametrizations: Any = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        parametrizations = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _new_class(module)
            module.parametrizations = ModuleDict()
        _new_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a module, or a tensor of it, is parametrized.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
        >>> parametrize = torch.nn.utils.parametrize
        >>> parametrize.is_parametrized(layer), parametrize.is_parametrized(layer, "bias")
        (True, False)
    """
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Remove the parametrizations of a tensor; return the module.

    The tensor keeps its parametrized value, or without `leave_parametrized` gets that of the original tensor.

    Example:
        >>> from tinytorch.nn.utils import parametrize, parametrizations
        >>> layer = parametrizations.weight_norm(torch.nn.Linear(2, 3))
        >>> parametrize.remove_parametrizations(layer, "weight")
        Linear(in_features=2, out_features=3, bias=True)
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    by_name: Any = module.parametrizations
    parametrizations = by_name[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(module.__class__, tensor_name)
    del by_name[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = module.__class__.__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """Return the class of a module before parametrization.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
        >>> torch.nn.utils.parametrize.type_before_parametrizations(layer)
        <class 'tinytorch.nn.modules.linear.Linear'>
    """
    return module.__class__.__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Give `to_module` the parametrizations of `from_module` and their original tensors; return `to_module`.

    Example:
        >>> layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 1))
        >>> other = torch.nn.utils.parametrize.transfer_parametrizations_and_params(layer, torch.nn.Linear(2, 1))
        >>> torch.equal(layer.weight, other.weight)
        True
    """
    if not is_parametrized(from_module):
        return to_module
    by_name: Any = from_module.parametrizations
    for name in by_name if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        source = by_name[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target: Any = to_module.parametrizations[name]
        for original in ["original"] if target.is_tensor else [f"original{k}" for k in range(target.ntensors)]:
            setattr(target, original, getattr(source, original))
    return to_module
