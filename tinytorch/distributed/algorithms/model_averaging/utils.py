"""Averaging of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tinytorch.autograd.grad_mode import no_grad
from tinytorch.distributed.collectives import all_reduce
from tinytorch.distributed.groups import ProcessGroup, _get_default_group, _rank_not_in_group
from tinytorch.nn.parameter import Parameter
from tinytorch.ops.join import cat

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace parameters by their means over a group's processes."""
    group = _get_default_group() if process_group is None else process_group
    parameters = list(params)
    if _rank_not_in_group(group) or not parameters:
        return
    with no_grad():
        flat = cat([p.detach().reshape(-1) for p in parameters])
        flat /= group.size()
        all_reduce(flat, group=group)
        for p, part in zip(parameters, flat.split([p.numel() for p in parameters]), strict=True):
            p.copy_(part.view_as(p))


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Return the parameters with a gradient among a model's parameters or an optimizer's groups.

    Raises:
        NotImplementedError: an element is neither a parameter nor a group.
    """
    parameters: list[Any] = []
    for entry in params:
        if not isinstance(entry, (Parameter, dict)):
            raise NotImplementedError(f"Parameter input of type {type(entry)} is not supported")
        parameters += entry["params"] if isinstance(entry, dict) else [entry]
    return [p for p in parameters if p.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: ProcessGroup | None) -> None:
    """Replace the parameters of `get_params_to_average` by their means over a group's processes."""
    average_parameters(get_params_to_average(params), process_group)
