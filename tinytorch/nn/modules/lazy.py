"""`LazyModuleMixin`: modules that infer the shapes of their parameters at the first call."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from tinytorch.core.tensor import Tensor
from tinytorch.nn.parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Makes a module lazy: its parameters are `UninitializedParameter` until its first call.

    A subclass lists this class before the module's own, sets `cls_to_become`, assigns uninitialized
    parameters in `__init__`, and gives them their shapes in `initialize_parameters`, which is
    called with the arguments of the first call. Then the module becomes a `cls_to_become`.

    Create an optimizer of its parameters only after the first call.

    Example:
        >>> layer = torch.nn.LazyLinear(3)
        >>> layer(torch.ones(2, 7)).shape, layer
        (torch.Size([2, 3]), Linear(in_features=7, out_features=3, bias=True))
    """

    #: The class of the module after the first call; None to keep the class.
    cls_to_become: Any = None

    # Members of `Module` that the mixin uses.
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _register_load_state_dict_pre_hook: Callable[..., Any]
    register_forward_pre_hook: Callable[..., Any]
    _get_name: Callable[[], str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # Uninitialized parameters are saved as they are: they cannot be detached.
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if is_lazy(param) or keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if is_lazy(buffer) or keep_vars else buffer.detach()

    def _load_member(self, name: str, tensor: Tensor, key: str, loaded: Any, assign: bool) -> str | None:
        if is_lazy(tensor) and is_lazy(loaded):
            return None  # neither has values
        return super()._load_member(name, tensor, key, loaded, assign)  # type: ignore[misc]

    def _lazy_load_hook(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: Any, missing_keys: Any,
        unexpected_keys: Any, error_msgs: Any,
    ) -> None:  # fmt: skip
        """Give uninitialized parameters the shapes of the loaded ones, before these are loaded."""
        for name, param in itertools.chain(self._parameters.items(), self._buffers.items()):
            loaded = state_dict.get(prefix + name)
            if param is not None and loaded is not None and is_lazy(param) and not is_lazy(loaded):
                param.materialize(loaded.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Give the parameters their shapes; every subclass defines it, with the arguments of `forward`."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Return whether a parameter or buffer has no shape yet."""
        members = itertools.chain(self._parameters.values(), self._buffers.values())
        return any(is_lazy(member) for member in members)

    def _infer_parameters(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> None:
        """Initialize the parameters from the arguments of the first call, and change the class to `cls_to_become`."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become
