"""Gradient clipping, between `backward()` and the optimizer's step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.core.tensor import Tensor
from tinytorch.core.warning import warn
from tinytorch.ops.create import tensor as make_tensor
from tinytorch.ops.join import stack
from tinytorch.ops.reduce import vector_norm

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors = Tensor | Iterable[Tensor]


def _as_list(tensors: Tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _gradients(parameters: list[Tensor]) -> list[Tensor]:
    return [p.grad for p in parameters if p.grad is not None]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """Return the norm of the elements of all tensors, taken as one vector.

    `foreach` has no effect.

    Example:
        >>> torch.nn.utils.get_total_norm([torch.tensor([3.0]), torch.tensor([4.0])])
        tensor(5.)
    """
    all_tensors = _as_list(tensors)
    norm_type = float(norm_type)
    with no_grad():
        if not all_tensors:
            return make_tensor(0.0)
        norms = [vector_norm(tensor, norm_type) for tensor in all_tensors]
        total: Tensor = vector_norm(stack(norms), norm_type)
        if error_if_nonfinite and not total.isfinite():
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is "
                "non-finite, so it cannot be clipped. To disable this error and scale the "
                "gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
            )
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients by max_norm / (total_norm + 1e-6) where that is below 1.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> weight.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grads_with_norm_([weight], 1.0, torch.tensor(5.0))
        >>> weight.grad
        tensor([0.6000, 0.8000])
    """
    grads = _gradients(_as_list(parameters))
    if not grads:
        return
    with no_grad():
        # Multiplied also if the factor is 1: nan is passed on, where a comparison would drop it.
        factor: Any = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in grads:
            grad.mul_(factor)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale the gradients, taken as one vector, in place to a norm of at most `max_norm`.

    It returns the norm before clipping; other arguments as for `get_total_norm`.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([3.0, 4.0])
        >>> torch.nn.utils.clip_grad_norm_([w], max_norm=1.0)
        tensor(5.)
        >>> w.grad
        tensor([0.6000, 0.8000])

    Source: Pascanu et al., "On the difficulty of training recurrent neural networks", 2012.
    """
    all_parameters = _as_list(parameters)
    if not all_parameters and isinstance(parameters, Iterator):
        warn("`parameters` is an empty generator, no gradient clipping will occur.")
    total = get_total_norm(_gradients(all_parameters), norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(all_parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Deprecated name of `clip_grad_norm_`."""
    warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.", FutureWarning
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clamp each element of the gradients, in place, to [-clip_value, clip_value].

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> w.grad = torch.tensor([-3.0, 0.5])
        >>> torch.nn.utils.clip_grad_value_([w], 1.0)
        >>> w.grad
        tensor([-1.0000,  0.5000])
    """
    bound = float(clip_value)
    with no_grad():
        for grad in _gradients(_as_list(parameters)):
            grad.clamp_(min=-bound, max=bound)
