"""`functorch`: the predecessor of `torch.func`, and its own functional form of modules."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

from tinytorch import func
from tinytorch.core.warning import warn
from tinytorch.func.modules import stack_module_state
from tinytorch.nn.modules.module import Module
from tinytorch.nn.utils._functional_call import functional_call

from .torch_version import VERSION as __version__  # noqa: F401

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional", "make_functional_with_buffers", "vjp",
    "vmap",
]  # fmt: skip


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters, its buffers and its input."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.stateless_model = copy.deepcopy(model)
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())

    def forward(self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the output of the module with these parameters and buffers."""
        state = dict(zip(self.param_names + self.buffer_names, (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function of its parameters and its input."""

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        """Return the output of the module with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def _warn(name: str, now: str) -> None:
    warn(f"`functorch.{name}` is deprecated: please use `torch.func.{now}` instead", FutureWarning)


def _older(function: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _warn(function.__name__, function.__name__)
        return function(*args, **kwargs)

    return call


functionalize, grad, grad_and_value = map(_older, (func.functionalize, func.grad, func.grad_and_value))
hessian, jacfwd, jacrev = map(_older, (func.hessian, func.jacfwd, func.jacrev))
jvp, vjp, vmap = map(_older, (func.jvp, func.vjp, func.vmap))


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, ...]:
    """Return a module as a function of its parameters and buffers, and copies of the parameters, and of the buffers."""
    _warn("make_functional_with_buffers", "functional_call")
    model = copy.deepcopy(model)
    if disable_autograd_tracking:
        model.requires_grad_(False)
    return FunctionalModuleWithBuffers(model), tuple(model.parameters()), tuple(model.buffers())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, ...]:
    """Return a module as a function of its parameters, and copies of these.

    Raises:
        RuntimeError: the module has buffers.
    """
    _warn("make_functional", "functional_call")
    model = copy.deepcopy(model)
    if next(model.buffers(), None) is not None:
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    if disable_autograd_tracking:
        model.requires_grad_(False)
    return FunctionalModule(model), tuple(model.parameters())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Any, ...]:
    """Return a module as a function of its parameters and buffers, and the stacked ones of several models, for `vmap`.

    Raises:
        RuntimeError: there are no models, or they differ in class or in training mode.
    """
    _warn("combine_state_for_ensemble", "stack_module_state")
    wrong = "combine_state_for_ensemble: Expected "
    if not models:
        raise RuntimeError(f"{wrong}at least one model, got 0.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError(f"{wrong}all models to be of the same class.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError(f"{wrong}all models to have the same training/eval mode.")
    params, buffers = stack_module_state(list(models))
    return FunctionalModuleWithBuffers(models[0]), tuple(params.values()), tuple(buffers.values())
